/* Products with weights that stay in blocks (base/blocks.h): what the files of product_blocks share.
 *
 * Rows of x are quantised first, as llama.cpp does it: 32 elements share a scale, and are bytes of -127 to 127. Then
 * products of bytes are summed as integers, exactly, over each group of the weight, and the sums are multiplied by both
 * scales and added up in f32. An offset of a group is multiplied by the sum of x there. */
#ifndef BERTH_DEVICE_CPU_KERNELS_BLOCKS_H
#define BERTH_DEVICE_CPU_KERNELS_BLOCKS_H

#include "base/blocks.h"
#include "device/cpu/kernels/vec.h"

#define BLOCKS_X 32   /* elements of x that share a scale */
#define BLOCKS_SUM 16 /* and a sum: the smallest group that there is */

/* A row of x. */
typedef struct blocks_row_x {
  const int8_t *q;
  const float *scale;  /* one for every 32 */
  const float *sum;    /* one for every 16: their bytes added up, times the scale */
  const float *sums;   /* the same for every 32 */
  const int8_t *minus; /* -q, where the kernel of one row wants that, too */
} blocks_row_x;

/* Some rows of x in scratch. */
typedef struct blocks_x {
  int64_t depth, copies; /* 2: with -q behind each row */
  int8_t *q;
  float *scale, *sum, *sums;
} blocks_x;

/* Bytes of so many rows; and where their parts are in them. */
static inline uint64_t blocks_x_bytes(int64_t rows, int64_t depth, int64_t copies) {
  return (uint64_t)rows * ((uint64_t)(depth * copies) + 4 * sizeof(float) * (uint64_t)(depth / BLOCKS_X));
}
static inline blocks_x blocks_x_in(void *scratch, int64_t rows, int64_t depth, int64_t copies) {
  const int64_t n = rows * (depth / BLOCKS_X);
  float *numbers = scratch;
  return (blocks_x){.depth = depth,
                    .copies = copies,
                    .scale = numbers,
                    .sum = numbers + n,
                    .sums = numbers + 3 * n,
                    .q = (int8_t *)(numbers + 4 * n)};
}
static inline blocks_row_x blocks_row_of(const blocks_x *x, int64_t row) {
  const int64_t n = x->depth / BLOCKS_X;
  const int8_t *q = x->q + row * x->depth * x->copies;
  return (blocks_row_x){q, x->scale + row * n, x->sum + row * 2 * n, x->sums + row * n, q + x->depth};
}

#define blocks_quantise BERTH__PER_ISA(berth__blocks_quantise)
#define blocks_copies BERTH__PER_ISA(berth__blocks_copies)
#define blocks_arrange BERTH__PER_ISA(berth__blocks_arrange)
#define blocks_dot_of BERTH__PER_ISA(berth__blocks_dot_of)
#define blocks_split_of BERTH__PER_ISA(berth__blocks_split_of)
#define blocks_panel_bytes BERTH__PER_ISA(berth__blocks_panel_bytes)
#define blocks_unpack BERTH__PER_ISA(berth__blocks_unpack)
#define blocks_multiply BERTH__PER_ISA(berth__blocks_multiply)

/* A row of f32, its elements `step` apart, into row `row` of x. A block with NaN or an infinity in it has NaN for its
 * scale. */
void blocks_quantise(const float *from, int64_t step, const blocks_x *x, int64_t row);

/* One row of a weight times one row of x, whose bytes are put into the order that the kernel of this type likes. */
int64_t blocks_copies(berth_type type);
void blocks_arrange(berth_type type, const blocks_x *x, int64_t row);
typedef float (*blocks_dot)(const uint8_t *w, const blocks_row_x *x, int64_t depth);
blocks_dot blocks_dot_of(berth_type type);
typedef void (*blocks_split)(const uint8_t *block, berth__block_parts *parts);
blocks_split blocks_split_of(berth_type type);

/* VF_PANEL rows of a weight, taken apart and laid beside each other in scratch; times rows of x. */
uint64_t blocks_panel_bytes(berth_type type, int64_t depth);
void blocks_unpack(berth_type type, const uint8_t *w, int64_t columns, int64_t depth, void *panel);
/* The first n rows of x; out has them VF_PANEL numbers apart. */
void blocks_multiply(berth_type type, const void *panel, int64_t columns, const blocks_x *x, int64_t n, float *out);

#endif
