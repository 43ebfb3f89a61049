/* Blocks of products of f64 and of integers of 32 and 64 bits: what matmul and conv of these types are made of. */
#ifndef BERTH_DEVICE_CPU_KERNELS_WIDE_H
#define BERTH_DEVICE_CPU_KERNELS_WIDE_H

#include "device/cpu/kernels/vec.h"

#define WIDE_ROWS 4                                /* of a block, at most */
#define WIDE_BYTES (VF_LANES * (int)sizeof(float)) /* of a vector */
#define WIDE_PANEL (2 * WIDE_BYTES)                /* bytes per row of a panel */
#define WIDE_STEPS 512                             /* of the depth, in a panel */

#define wide_run BERTH__PER_ISA(berth__wide_run)
#define wide_pack BERTH__PER_ISA(berth__wide_pack)

/* Up to WIDE_ROWS rows times the columns of a panel, over some of the depth. Strides are in elements. */
typedef struct wide_block {
  const void *row[WIDE_ROWS];
  const void *b;
  void *out;
  int64_t a_step, b_step, out_stride;
  int64_t depth, columns;
  bool adds; /* to what the result holds already */
} wide_block;

static inline bool wide_takes(berth_type type) {
  return type == BERTH_F64 || type == BERTH_I32 || type == BERTH_U32 || type == BERTH_I64;
}
/* How many columns a panel has. */
static inline int64_t wide_columns(berth_type type) { return WIDE_PANEL / (int64_t)berth_type_size(type); }

void wide_run(berth_type type, const wide_block *w, int64_t n_rows);
/* Columns that do not lie side by side, or are fewer than a panel has, as a panel; zeros are added. */
void wide_pack(berth_type type, void *to, const void *from, int64_t b_step, int64_t b_column, int64_t depth,
               int64_t columns);

#endif
