/* Where the points of a grid_sample lie in its image: for the reference kernel and the fast one. */
#ifndef BERTH_OPS_GRID_SAMPLE_H
#define BERTH_OPS_GRID_SAMPLE_H

#include "ops/resample.h"
#include "ops/window.h"

#define BERTH__GRID_TAPS 4 /* per axis, at most */

/* The neighbours of a point on one axis: positions (-1: zero) and weights. */
typedef struct berth__grid_neighbours {
  int64_t count, place[BERTH__GRID_TAPS];
  double weight[BERTH__GRID_TAPS];
} berth__grid_neighbours;

typedef struct berth__grid_sampling {
  berth__resample_mode mode;
  uint32_t padding; /* the index of its name */
  bool align;
  uint32_t spatial;
  int64_t points, area; /* per image of the result, per channel of x */
} berth__grid_sampling;

void berth__grid_sample_read(const berth_op_call *call, berth__grid_sampling *s);
/* Of point `item`, counted over all images: for each spatial axis. */
void berth__grid_sample_near(const berth_op_call *call, const berth__grid_sampling *s, int64_t item,
                             berth__grid_neighbours *near);

#endif
