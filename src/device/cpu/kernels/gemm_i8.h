/* int8 products with packed weights (ops/bytes.h): what qproduct and qconv_last share. Rows of x are unsigned bytes, in
 * chunks; i8 has its top bit flipped, which adds 128 to it and to its zero point. Numbers are rounded where ops/bytes.h
 * says: no vf_fma, and cmake/Kernels.cmake keeps compilers from making one. */
#ifndef BERTH_DEVICE_CPU_KERNELS_GEMM_I8_H
#define BERTH_DEVICE_CPU_KERNELS_GEMM_I8_H

#include "device/cpu/kernels/chain_run.h"
#include "ops/bytes.h"

#define I8_CHUNK 64               /* rows multiplied with a block of columns together */
#define I8_COLUMNS (4 * VF_PANEL) /* columns per block */
#define I8_NEAR_ROWS 16384        /* of a weight: most for which i8_order has room */

typedef struct i8_job {
  const berth_op_call *call;
  berth__bytes_attrs attrs;
  int64_t depth, groups;        /* rows of the weight; groups of four of them */
  int64_t columns, column_each; /* of the result; of one group of a convolution */
  int32_t x_zero;               /* of the unsigned bytes */
  int32_t weight_shift;         /* what must be added to stored weights */
  uint8_t flip;                 /* xor that turns x into unsigned bytes */
  bool needs_row_sums;
  bool has_bias;     /* of f32; an integer bias is what the sums start with */
  const float *sum;  /* added before the epilogue, in the result's layout; NULL: nothing */
  bool has_epilogue; /* one that cannot be done in registers */
  chain_run epilogue;
} i8_job;

/* How every result is finished: clamped to bounds (those of an epilogue and those of its type times out_scale) and
 * then, if it is a byte, divided by out_scale, rounded and shifted by its zero point. */
typedef struct i8_end {
  vf low, high;
  bool divides;    /* out_scale is not 1 */
  bool is_odd;     /* out_scale is so small or so large that the quotient must be clamped, not the dividend */
  bool may_fail;   /* a scale or a bias is not finite: there may be NaN */
  bool holds_type; /* the bounds are those of the type, times out_scale */
  vf unit, reciprocal, least, most;
  vf down; /* less the zero point: what NaN becomes */
  vi zero;
} i8_end;
static inline vf i8_hold(const i8_end *end, vf x) { return vf_min(end->high, vf_max(end->low, x)); }
/* Takes the result of i8_hold. */
static inline vi i8_byte(const i8_end *end, vf x) {
  if (end->is_odd)
    x = vf_min(end->most, vf_max(end->least, x / end->unit));
  else if (end->divides)
    x = vf_quotient(x, end->unit, end->reciprocal);
  if (end->may_fail) x = vf_pick_nan(x, end->down, x);
  return vi_add(vf_to_int(x), end->zero);
}

/* The order in which the groups of a panel are multiplied if most of its weights are near 0: first pairs of
 * neighbouring groups near 0, then single ones, then the others. */
typedef struct i8_order {
  int64_t n_pairs, n_near, n_far;
  uint16_t group[VI_HAS_NEAR ? I8_NEAR_ROWS / 4 : 1]; /* of pairs: the first */
} i8_order;

/* What turns the sums of a block of columns into results. */
typedef struct i8_block {
  const int8_t *weight; /* the first panel */
  int64_t first, n;     /* columns */
  float scale[I8_COLUMNS], bias[I8_COLUMNS];
  int32_t start[I8_COLUMNS]; /* of the sums: subtracts the zero point of x */
  int32_t weight_zero[I8_COLUMNS];
  i8_end end;
  bool is_plain; /* results are sums times scales, clamped, rounded and shifted, and nothing else */
  bool is_bare;  /* plain, and clamped to the range of their type only, which VI_SATURATES does */
  bool is_near;  /* with VI_HAS_NEAR: most weights are near 0 (vec_avx2.h) */
  i8_order order[I8_COLUMNS / VF_PANEL];
} i8_block;

#define i8_takes BERTH__PER_ISA(berth__i8_takes)
#define i8_prepare BERTH__PER_ISA(berth__i8_prepare)
#define i8_block_of BERTH__PER_ISA(berth__i8_block_of)
#define i8_multiply BERTH__PER_ISA(berth__i8_multiply)
#define i8_sum_rows BERTH__PER_ISA(berth__i8_sum_rows)
#define i8_end_of BERTH__PER_ISA(berth__i8_end_of)
#define i8_epilogue BERTH__PER_ISA(berth__i8_epilogue)

/* The type of the result and the epilogue can be handled in registers, or the result is f32; and sums over `depth` rows
 * of the weight stay within 32 bits. */
bool i8_takes(const berth_op_call *call, int64_t depth);
/* `depth`: rows of the weight; `group`: of a convolution. */
void i8_prepare(i8_job *job, const berth_op_call *call, int64_t depth, int64_t columns, int64_t group);
/* The number of blocks of columns, which have about equal size; block `index` never crosses groups. `rows`: about so
 * many rows will be multiplied with it. */
static inline int64_t i8_blocks_each(int64_t column_each) { return (column_each + I8_COLUMNS - 1) / I8_COLUMNS; }
void i8_block_of(const i8_job *job, int64_t index, int64_t rows, i8_block *block);
/* Rows [row, row + n) of the result, n <= I8_CHUNK; rows of x are `stride` bytes apart and 4 * groups bytes long. The
 * sums of the rows are needed if job->needs_row_sums. */
void i8_multiply(const i8_job *job, const i8_block *block, const uint8_t *x, int64_t stride, const int32_t *row_sum,
                 int64_t row, int64_t n);
void i8_sum_rows(const uint8_t *x, int64_t stride, int64_t length, int64_t n, int32_t *out);
/* For n columns of the result from `first` on. */
void i8_end_of(const berth_op_call *call, const berth__bytes_attrs *attrs, int64_t first, int64_t n, i8_end *end);
/* The epilogue, if it cannot be done in registers; false: there is none. */
bool i8_epilogue(const berth_op_call *call, const berth__bytes_attrs *attrs, chain_run *epilogue);
static inline const float *i8_sum(const berth_op_call *call, const berth__bytes_attrs *attrs) {
  return attrs->own[BERTH__BYTES_ADDS].i != 0 ? call->in[BERTH__BYTES_EXTRA].data : NULL;
}

#endif
