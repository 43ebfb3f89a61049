/* The sources of elements of a resized axis, and their weights. Positions are computed in f32, like in other runtimes:
 * at halves, where the last bit decides which neighbour is nearest, results agree with theirs. */
#ifndef BERTH_OPS_RESAMPLE_H
#define BERTH_OPS_RESAMPLE_H

#include "ops/op.h"

typedef enum berth__resample_mode {
  BERTH__RESAMPLE_NEAREST,
  BERTH__RESAMPLE_LINEAR,
  BERTH__RESAMPLE_CUBIC,
  BERTH__RESAMPLE_MODES
} berth__resample_mode;

typedef enum berth__coordinates {
  BERTH__HALF_PIXEL,
  BERTH__HALF_PIXEL_SYMMETRIC,
  BERTH__PYTORCH_HALF_PIXEL,
  BERTH__ALIGN_CORNERS,
  BERTH__ALIGN_CORNERS_SCALED,
  BERTH__ASYMMETRIC,
  BERTH__TF_HALF_PIXEL_FOR_NN,
  BERTH__TF_CROP_AND_RESIZE,
  BERTH__COORDINATES
} berth__coordinates;

typedef enum berth__nearest {
  BERTH__ROUND_PREFER_FLOOR,
  BERTH__ROUND_PREFER_CEIL,
  BERTH__NEAREST_FLOOR,
  BERTH__NEAREST_CEIL,
  BERTH__NEAREST_SIMPLE, /* up if the axis shrinks, down if it grows */
  BERTH__NEARESTS
} berth__nearest;

extern const char *const berth__resample_names[BERTH__RESAMPLE_MODES];
extern const char *const berth__coordinate_names[BERTH__COORDINATES];
extern const char *const berth__nearest_names[BERTH__NEARESTS];
/* The index of a name in a list; the list's length if it is not found. */
uint32_t berth__name_index(const char *name, const char *const *names, uint32_t count);

typedef struct berth__resample {
  berth__resample_mode mode;
  berth__coordinates coordinates;
  berth__nearest nearest;
  double cubic_a;
  bool exclude_outside; /* neighbours beyond the ends have no weight; otherwise the end elements replace them */
  bool antialias;       /* the filter widens if an axis shrinks */
} berth__resample;

typedef struct berth__resample_axis {
  int64_t in, out;
  float scale;
  float roi_begin, roi_end; /* for TF_CROP_AND_RESIZE: in units of the axis */
} berth__resample_axis;

/* Element `index` of the result: `count` neighbours from `first` on; count 0: outside the region. */
typedef struct berth__resample_taps {
  int64_t first, count;
} berth__resample_taps;

/* The largest number of neighbours of an element of the axis; depends only on the extents. */
int64_t berth__resample_most(const berth__resample *how, int64_t in, int64_t out);
/* weight has space for that many. */
berth__resample_taps berth__resample_at(const berth__resample *how, const berth__resample_axis *axis, int64_t index,
                                        double *weight);
/* How a call of `resize` samples, overall and on each axis. It reads operand 1, the target. */
void berth__resize_read(const berth_op_call *call, berth__resample *how, berth__resample_axis *axes);
/* The four weights of cubic interpolation for a fraction of 0 to 1 after the second neighbour. */
void berth__cubic_weights(double a, double fraction, double weight[4]);

#endif
