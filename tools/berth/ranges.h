/* Valid elements of an input: ids must be inside the table that they index, a mask is all ones, and a setting has the
 * value that the model expects. */
#ifndef BERTH_TOOLS_RANGES_H
#define BERTH_TOOLS_RANGES_H

#include <stdbool.h>

#include "berth/berth.h"

typedef struct range {
  int64_t below;  /* the smallest extent that nodes index with its elements; INT64_MAX: none */
  bool has_value; /* all elements should be `value`: */
  int64_t value;  /* 1 for a mask; for a setting what it is compared with, such as a sample rate */
} range;

/* `bound` has fixed shapes. Follows an input's elements directly, or through reshapes and casts. */
range ranges_of(const berth_graph *bound, berth_value input);

#endif
