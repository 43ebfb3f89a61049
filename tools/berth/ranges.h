/* What the elements of an input may be: ids must lie in the table that they pick from. */
#ifndef BERTH_TOOLS_RANGES_H
#define BERTH_TOOLS_RANGES_H

#include "berth/berth.h"

/* The least extent of what nodes pick from with the input's elements, as they are or seen in another shape or type;
 * INT64_MAX where none does. `bound` has fixed shapes. */
int64_t ranges_of(const berth_graph *bound, berth_value input);

#endif
