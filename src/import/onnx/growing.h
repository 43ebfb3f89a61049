/* Values that a loop carries and makes longer in every round. */
#ifndef BERTH_IMPORT_ONNX_GROWING_H
#define BERTH_IMPORT_ONNX_GROWING_H

#include "import/onnx/convert.h"

#define BERTH__ONNX_MOST_GROWING 16 /* extents of one loop */

/* What `grows` of a loop_begin says of an extent. */
typedef struct berth__onnx_growth {
  int64_t value, axis, by;
} berth__onnx_growth;

/* By how much `next` is longer than `carried` along the axis, at most; -1: it is not made from that, or nobody can tell
 * how long the rest is. */
int64_t berth__onnx_growth_of(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis);

/* Whether `next` is `carried` with one slice behind it, and nothing else reads either since node `since`: then *part is
 * the slice, and the loop may as well stack the slices. */
bool berth__onnx_is_appended(const berth_graph *graph, berth_value next, berth_value carried, uint32_t axis,
                             size_t since, berth_value *part);

#endif
