/* Products of rows with columns that are runs of numbers too: sums go along them in vectors, and nothing is packed. */
#ifndef BERTH_DEVICE_CPU_KERNELS_DOTS_H
#define BERTH_DEVICE_CPU_KERNELS_DOTS_H

#include "device/cpu/kernels/vec.h"

#define DOTS_ROWS 2
#define DOTS_COLUMNS 4
#define DOTS_CACHE_LINE 16 /* floats */

/* Columns are too short for the hardware prefetcher: those of the next tile are prefetched, as much with every step as
 * the step uses. */
static inline __attribute__((always_inline)) void dots_ask_ahead(const float *w, int64_t stride, int64_t k,
                                                                 const int n_columns) {
  const float *next = w + (n_columns * stride + k * n_columns);
  for (int at = 0; at < VF_LANES * n_columns; at += DOTS_CACHE_LINE) __builtin_prefetch(next + at);
}

/* Below, n_rows and n_columns are constants after inlining: the sums live in registers. */
static inline __attribute__((always_inline)) void dots_of(const float *const *x, const float *w, int64_t stride,
                                                          int64_t depth, const int n_rows, const int n_columns,
                                                          float out[][DOTS_COLUMNS]) {
  vf sum[DOTS_ROWS][DOTS_COLUMNS];
  int64_t k = 0;
  for (int r = 0; r < n_rows; r++)
    for (int c = 0; c < n_columns; c++) sum[r][c] = vf_zero();
  for (; k + VF_LANES <= depth; k += VF_LANES) {
    if (n_rows == 1) dots_ask_ahead(w, stride, k, n_columns);
    for (int c = 0; c < n_columns; c++) {
      const vf column = vf_load(w + c * stride + k);
      for (int r = 0; r < n_rows; r++) sum[r][c] = vf_fma(vf_load(x[r] + k), column, sum[r][c]);
    }
  }
  if (k < depth)
    for (int c = 0; c < n_columns; c++) {
      const vf column = vf_load_n(w + c * stride + k, depth - k);
      for (int r = 0; r < n_rows; r++) sum[r][c] = vf_fma(vf_load_n(x[r] + k, depth - k), column, sum[r][c]);
    }
  for (int r = 0; r < n_rows; r++)
    for (int c = 0; c < n_columns; c++) out[r][c] = vf_sum(sum[r][c]);
}

/* One row and one column, in four independent sums. */
static inline float dots_one(const float *x, const float *w, int64_t depth) {
  vf sum[4] = {vf_zero(), vf_zero(), vf_zero(), vf_zero()};
  int64_t k = 0;
  for (; k + 4 * VF_LANES <= depth; k += 4 * VF_LANES)
    for (int i = 0; i < 4; i++) sum[i] = vf_fma(vf_load(x + k + i * VF_LANES), vf_load(w + k + i * VF_LANES), sum[i]);
  for (; k + VF_LANES <= depth; k += VF_LANES) sum[0] = vf_fma(vf_load(x + k), vf_load(w + k), sum[0]);
  if (k < depth) sum[1] = vf_fma(vf_load_n(x + k, depth - k), vf_load_n(w + k, depth - k), sum[1]);
  return vf_sum((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Up to DOTS_ROWS rows times up to DOTS_COLUMNS columns, `stride` elements from one to the next. */
static inline void dots_tile(const float *const *x, const float *w, int64_t stride, int64_t depth, int64_t n_rows,
                             int64_t n_columns, float out[][DOTS_COLUMNS]) {
  if (n_columns == DOTS_COLUMNS && n_rows == DOTS_ROWS) {
    dots_of(x, w, stride, depth, DOTS_ROWS, DOTS_COLUMNS, out);
  } else if (n_columns == DOTS_COLUMNS) {
    dots_of(x, w, stride, depth, 1, DOTS_COLUMNS, out);
  } else {
    for (int64_t r = 0; r < n_rows; r++)
      for (int64_t c = 0; c < n_columns; c++) out[r][c] = dots_one(x[r], w + c * stride, depth);
  }
}

#endif
