/* What the elements of an input may be: ids must lie in the table that they pick from, a mask shows what there is, and
 * a setting has the value that the model asks for. */
#ifndef BERTH_TOOLS_RANGES_H
#define BERTH_TOOLS_RANGES_H

#include <stdbool.h>

#include "berth/berth.h"

typedef struct range {
  int64_t below;  /* the least extent of what nodes pick from with its elements; INT64_MAX: none does */
  bool has_value; /* the elements should all be: */
  int64_t value;  /* 1 for a mask; what a single element is compared with, such as a sample rate */
} range;

/* `bound` has fixed shapes. An input's elements are followed as they are, or seen in another shape or type. */
range ranges_of(const berth_graph *bound, berth_value input);

#endif
