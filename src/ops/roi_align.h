/* Where the samples of roi_align lie: for the reference kernel and the fast one. */
#ifndef BERTH_OPS_ROI_ALIGN_H
#define BERTH_OPS_ROI_ALIGN_H

#include "ops/op.h"

/* One axis of a region: its start, the length of a bin, the number of samples per bin; and the extent of x. */
typedef struct berth__roi_bins {
  double start, length;
  int64_t samples, extent;
} berth__roi_bins;

/* The four elements around a sample, within a channel, and their weights. */
typedef struct berth__roi_sample {
  bool inside; /* false: the sample is 0 */
  int64_t from[4];
  double weight[4];
} berth__roi_sample;

/* Fails if the region is of an image that does not exist. */
berth_status berth__roi_align_region(const berth_op_call *call, int64_t region, int64_t *image, berth__roi_bins *rows,
                                     berth__roi_bins *columns, berth_error *err);
/* Sample (i, j) of a bin. */
void berth__roi_align_sample(const berth__roi_bins *rows, const berth__roi_bins *columns, int64_t row, int64_t column,
                             int64_t i, int64_t j, berth__roi_sample *out);

#endif
