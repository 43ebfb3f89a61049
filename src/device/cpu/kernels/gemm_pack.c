/* Packing the operands of products. */
#include "device/cpu/kernels/gemm.h"

static int64_t gemm_pack_kernel_least(int64_t a, int64_t b) { return a < b ? a : b; }

/* Lines of `from`, n elements each, become columns of `to`: n rows of VF_LANES, padded with zeros. */
static void gemm_pack_kernel_turn(float *to, int64_t to_stride, int64_t to_rows, const float *from, int64_t line_stride,
                                  int64_t lines, int64_t n) {
  vf x[VF_LANES];
  for (int64_t i = 0; i < VF_LANES; i++) {
    const float *line = from + (i < lines ? i * line_stride : 0);
    x[i] = i >= lines ? vf_zero() : n == VF_LANES ? vf_load(line) : vf_load_n(line, n);
  }
  vf_transpose(x);
  for (int64_t i = 0; i < to_rows; i++) vf_store(to + i * to_stride, x[i]);
}

static void gemm_kernel_pack_row(float *panel, const float *from, int64_t columns) {
  for (int64_t at = 0; at < VF_PANEL; at += VF_LANES) {
    const int64_t left = columns - at;
    vf_store(panel + at, left >= VF_LANES ? vf_load(from + at) : left > 0 ? vf_load_n(from + at, left) : vf_zero());
  }
}

static void pack_turned(float *panel, const float *from, int64_t rows, int64_t columns, int64_t column_stride) {
  for (int64_t r = 0; r < rows; r += VF_LANES)
    for (int64_t at = 0; at < VF_PANEL; at += VF_LANES) {
      const int64_t n = gemm_pack_kernel_least(VF_LANES, rows - r),
                    lines = gemm_pack_kernel_least(VF_LANES, columns - at);
      gemm_pack_kernel_turn(panel + r * VF_PANEL + at, VF_PANEL, n, from + r + (lines > 0 ? at * column_stride : 0),
                            column_stride, lines, n);
    }
}

void gemm_pack_panel(float *panel, const float *from, int64_t rows, int64_t columns, int64_t row_stride,
                     int64_t column_stride) {
  if (column_stride == 1) {
    for (int64_t r = 0; r < rows; r++) gemm_kernel_pack_row(panel + r * VF_PANEL, from + r * row_stride, columns);
    return;
  }
  if (row_stride == 1) {
    pack_turned(panel, from, rows, columns, column_stride);
    return;
  }
  for (int64_t first = 0; first < rows; first += VF_PANEL) { /* one square at a time stays in the L1 cache */
    const int64_t end = gemm_pack_kernel_least(rows, first + VF_PANEL);
    for (int64_t c = 0; c < VF_PANEL; c++)
      for (int64_t r = first; r < end; r++)
        panel[r * VF_PANEL + c] = c < columns ? vf_read(from + r * row_stride + c * column_stride) : 0.0f;
  }
}

/* Contiguous columns are transposed some rows at a time. */
static void pack_turned_halves(float *panel, berth_type type, const uint16_t *from, int64_t rows, int64_t columns,
                               int64_t column_stride) {
  float line[VF_PANEL * VF_PANEL];
  for (int64_t r = 0; r < rows; r += VF_PANEL) {
    const int64_t n = gemm_pack_kernel_least(VF_PANEL, rows - r);
    for (int64_t c = 0; c < columns; c++) chain_load(line + c * VF_PANEL, type, from + c * column_stride + r, 1, n);
    pack_turned(panel + r * VF_PANEL, line, n, columns, VF_PANEL);
  }
}

void gemm_pack_halves(float *panel, berth_type type, const uint16_t *from, int64_t rows, int64_t columns,
                      int64_t row_stride, int64_t column_stride) {
  if (row_stride == 1 && column_stride != 1) {
    pack_turned_halves(panel, type, from, rows, columns, column_stride);
    return;
  }
  for (int64_t r = 0; r < rows; r++, panel += VF_PANEL, from += row_stride) {
    chain_load(panel, type, from, column_stride, columns);
    for (int64_t c = columns; c < VF_PANEL; c++) panel[c] = 0;
  }
}

void gemm_pack_rows(float *to, int64_t to_stride, const float *const *rows, int64_t n, int64_t row_stride,
                    int64_t depth, int64_t step) {
  if (row_stride != 1) {
    for (int64_t r = 0; r < n; r++)
      for (int64_t k = 0; k < depth; k++) to[r * to_stride + k] = vf_read(rows[r] + k * step);
    return;
  }
  for (int64_t r = 0; r < n; r += VF_LANES)
    for (int64_t k = 0; k < depth; k += VF_LANES) {
      const int64_t height = gemm_pack_kernel_least(VF_LANES, n - r),
                    lines = gemm_pack_kernel_least(VF_LANES, depth - k);
      gemm_pack_kernel_turn(to + r * to_stride + k, to_stride, height, rows[r] + k * step, step, lines, height);
    }
}
