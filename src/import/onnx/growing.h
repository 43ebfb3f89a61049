/* Values that a loop carries and makes longer in every iteration. */
#ifndef BERTH_IMPORT_ONNX_GROWING_H
#define BERTH_IMPORT_ONNX_GROWING_H

#include "import/onnx/convert.h"

#define BERTH__ONNX_MOST_GROWING 16      /* extents per loop */
#define BERTH__ONNX_GROWS_OPEN INT64_MAX /* by an extent that is not known yet */

/* An extent, as in the `grows` attribute of loop_begin. */
typedef struct berth__onnx_growth {
  int64_t value, axis, by;
} berth__onnx_growth;

/* By how much `next` is longer than `carried` along the axis, at most; -1: it is not made from it. */
int64_t berth__onnx_growth_of(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis);

/* Whether `next` is `carried` with something appended, and nothing else reads either since node `since`: then *concat
 * joins them, its operands from the second on are what is appended, and the loop may stack that instead. */
bool berth__onnx_is_appended(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis,
                             size_t since, const berth__node **concat);

#endif
