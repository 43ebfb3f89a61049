/* Which elements a reduction over some axes folds into which results. */
#ifndef BERTH_DEVICE_CPU_KERNELS_REDUCE_H
#define BERTH_DEVICE_CPU_KERNELS_REDUCE_H

#include "device/cpu/kernels/vec.h"

#define REDUCE_COLUMNS (2 * VF_LANES)

typedef struct axes {
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK], stride[BERTH_MAX_RANK];
  int64_t count;
} axes;

typedef struct reduction {
  axes kept, gone; /* smallest stride last */
  bool in_runs;
  int64_t run;      /* elements of the innermost reduced axis, or rows of columns */
  int64_t step;     /* stride within a run: if it is not 1, runs are gathered piece by piece */
  int64_t n_inner;  /* contiguous results; 1 in runs */
  int64_t n_outer;  /* the other results */
  int64_t per_item; /* outer results in runs, columns otherwise */
} reduction;

#define reduce_read BERTH__PER_ISA(berth__reduce_read)
#define reduce_items BERTH__PER_ISA(berth__reduce_items)
#define reduce_offset_of BERTH__PER_ISA(berth__reduce_offset_of)

/* False: there is nothing to reduce, or the axes are known only during a run. */
bool reduce_read(reduction *r, const berth_op_call *call);
int64_t reduce_items(const berth_op_call *call);
/* The offset of index `at` over the first n axes. */
int64_t reduce_offset_of(const axes *a, uint32_t n, int64_t at);

static inline int64_t reduce_pieces(int64_t count, int64_t each) { return (count + each - 1) / each; }
static inline int64_t reduce_last_of(const axes *a, const int64_t *list, int64_t otherwise) {
  return a->rank > 0 ? list[a->rank - 1] : otherwise;
}

/* A position on all axes but the last, and stepping to the next one. */
typedef struct reduce_place {
  int64_t at[BERTH_MAX_RANK], offset;
} reduce_place;
static inline void reduce_next(const axes *a, reduce_place *p) {
  for (uint32_t i = a->rank > 0 ? a->rank - 1 : 0; i-- > 0;) {
    p->offset += a->stride[i];
    if (++p->at[i] < a->dim[i]) return;
    p->offset -= a->dim[i] * a->stride[i];
    p->at[i] = 0;
  }
}

#endif
