/* pack_weights of f32, halves and bytes, to f32, f16 or bf16. Panels have the width of this instruction set, or one
 * column. */
#include "device/cpu/kernels/bf16.h"
#include "device/cpu/kernels/gemm.h"
#include "device/cpu/kernels/half.h"
#include "ops/operand.h"

#define BESIDE 8      /* panels */
#define BLOCK_ROWS 64 /* of each panel */
#define ITEM_ROWS 4   /* at least */

static bool pack_weights_kernel_takes(const berth_op_call *call) {
  const int64_t panel = call->attrs[BERTH__PACK_PANEL].i;
  const berth_type type = call->in[BERTH__PACK_WEIGHT].type;
  if (panel != VF_PANEL && (panel != 1 || call->out[0].type == BERTH_BF16)) return false;
  if (berth__call_has(call, BERTH__PACK_SCALE) && call->in[BERTH__PACK_SCALE].type != BERTH_F32) return false;
  return type == BERTH_F32 || type == BERTH_F16 || type == BERTH_BF16 || type == BERTH_I8 || type == BERTH_U8;
}

/* Items follow the order of the file, so that its pages are read in sequence: rows of the weight if these are
 * contiguous, otherwise columns. */
static bool follows_rows(const berth_op_call *call) {
  const berth_tensor *w = &call->in[0];
  return w->stride[w->rank - 1] <= w->stride[w->rank - 2];
}

static int64_t pack_weights_kernel_rows_of(const berth_op_call *call) {
  const berth_tensor *w = &call->in[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) rows *= w->dim[axis];
  return rows;
}

static int64_t item_rows(const berth_op_call *call) {
  const int64_t rows = pack_weights_kernel_rows_of(call), each = (rows / 16 + ITEM_ROWS - 1) / ITEM_ROWS * ITEM_ROWS;
  return follows_rows(call) && each > 0 && each < rows ? each : rows;
}

static int64_t row_blocks(const berth_op_call *call) {
  const int64_t each = item_rows(call);
  return each > 0 ? (pack_weights_kernel_rows_of(call) + each - 1) / each : 1;
}

static int64_t pack_weights_kernel_items(const berth_op_call *call) {
  return row_blocks(call) * ((call->out[0].dim[0] + BESIDE - 1) / BESIDE);
}

/* Element i of a weight or a zero point, which may be unaligned. */
static float pack_weights_kernel_read(const berth_tensor *from, int64_t i) {
  uint16_t half;
  switch (from->type) {
    case BERTH_I8: return (float)((const int8_t *)from->data)[i];
    case BERTH_U8: return (float)((const uint8_t *)from->data)[i];
    case BERTH_F16:
    case BERTH_BF16:
      memcpy(&half, (const uint16_t *)from->data + i, sizeof half);
      return from->type == BERTH_F16 ? half_to_float(half) : half_from_bits((uint32_t)half << 16);
    default: return vf_read((const float *)from->data + i);
  }
}

/* Element `column` of an operand that has one element per column, or one for all. */
static float pack_weights_kernel_at(const berth_tensor *from, int64_t column) {
  return pack_weights_kernel_read(from, from->dim[0] == 1 ? 0 : column * from->stride[0]);
}

/* Subtracts the zero points and multiplies by the scales, in a panel whose first column is `column`. */
static void finish_panel(const berth_op_call *call, float *panel, int64_t width, int64_t rows, int64_t column,
                         int64_t columns) {
  const bool has_scale = berth__call_has(call, BERTH__PACK_SCALE), has_zero = berth__call_has(call, BERTH__PACK_ZERO);
  float factor[VF_PANEL] = {0}, zero[VF_PANEL] = {0};
  if (!has_scale && !has_zero) return;
  for (int64_t c = 0; c < columns; c++) {
    factor[c] = has_scale ? pack_weights_kernel_at(&call->in[BERTH__PACK_SCALE], column + c) : 1;
    zero[c] = has_zero ? pack_weights_kernel_at(&call->in[BERTH__PACK_ZERO], column + c) : 0;
  }
  if (width == 1) {
    for (int64_t r = 0; r < rows; r++) panel[r] = (panel[r] - zero[0]) * factor[0];
    return;
  }
  for (int64_t r = 0; r < rows; r++, panel += VF_PANEL)
    for (int64_t c = 0; c < VF_PANEL; c += VF_LANES)
      vf_store(panel + c, (vf_load(panel + c) - vf_load(zero + c)) * vf_load(factor + c));
}

/* Like berth__packed_weight. */
static void drop_subnormals(float *rows, int64_t n) {
  const vf least = vf_set1(0x1p-126f);
  for (int64_t i = 0; i < n; i += VF_LANES) {
    const int64_t lanes = vf_tail(n - i);
    const vf x = vf_load_n(rows + i, lanes);
    vf_store_n(rows + i, vf_pick_lt(vf_abs(x), least, vf_zero(), x), lanes);
  }
}

/* Like gemm_pack_panel, for any type and panels of any width. */
static void pack_any(float *to, int64_t width, const berth_tensor *w, int64_t at, int64_t rows, int64_t columns) {
  const int64_t down = w->stride[w->rank - 2], across = w->stride[w->rank - 1];
  for (int64_t r = 0; r < rows; r++)
    for (int64_t c = 0; c < width; c++)
      to[r * width + c] = c < columns ? pack_weights_kernel_read(w, at + r * down + c * across) : 0;
}

/* Rows [first, end) of a panel, to the address of the first: contiguous runs along the last axis but one. */
static void pack_rows(const berth_tensor *w, float *to, int64_t width, int64_t first, int64_t end, int64_t column,
                      int64_t columns) {
  const uint32_t last = w->rank - 1;
  const int64_t run = w->dim[last - 1];
  for (int64_t row = first, next; row < end; row = next) {
    int64_t rest = row / run, at = column * w->stride[last] + row % run * w->stride[last - 1];
    for (uint32_t axis = last - 1; axis-- > 0; rest /= w->dim[axis]) at += rest % w->dim[axis] * w->stride[axis];
    next = row - row % run + run < end ? row - row % run + run : end;
    const uint16_t *halves = (const uint16_t *)w->data + at;
    const bool is_narrow = w->type == BERTH_F16 || w->type == BERTH_BF16;
    if (is_narrow && width == VF_PANEL && (uintptr_t)w->data % sizeof *halves == 0)
      gemm_pack_halves(to + (row - first) * width, w->type, halves, next - row, columns, w->stride[last - 1],
                       w->stride[last]);
    else if (w->type == BERTH_F32 && width == VF_PANEL)
      gemm_pack_panel(to + (row - first) * width, (const float *)w->data + at, next - row, columns, w->stride[last - 1],
                      w->stride[last]);
    else
      pack_any(to + (row - first) * width, width, w, at, next - row, columns);
  }
}

/* Rows in pairs; an odd last row is paired with zeros. */
static void pair_rows(const float *from, int64_t rows, uint16_t *to) {
  for (int64_t row = 0; row < rows; row += 2, from += 2 * VF_PANEL)
    for (int64_t c = 0; c < VF_PANEL; c++, to += 2) {
      to[0] = bf16_of(from[c]);
      to[1] = row + 1 < rows ? bf16_of(from[VF_PANEL + c]) : 0;
    }
}

/* Rows [first, end) of the panel `item`; `first` is even. */
static void weights_kernel_pack(const berth_op_call *call, int64_t item, int64_t first, int64_t end) {
  const berth_tensor *w = &call->in[BERTH__PACK_WEIGHT], *out = &call->out[0];
  const int64_t groups = call->attrs[BERTH__PACK_GROUPS].i, each = w->dim[w->rank - 1] / groups;
  const int64_t panels = out->dim[0] / groups, width = call->attrs[BERTH__PACK_PANEL].i;
  const int64_t at = item % panels * width, column = item / panels * each + at;
  const int64_t columns = each - at < width ? each - at : width;
  float block[BLOCK_ROWS * VF_PANEL];
  const bool is_bf16 = out->type == BERTH_BF16, is_f16 = out->type == BERTH_F16;
  float *to = is_bf16 || is_f16 ? block : (float *)out->data + (item * out->dim[1] + first) * width;
  pack_rows(w, to, width, first, end, column, columns);
  finish_panel(call, to, width, end - first, column, columns);
  drop_subnormals(to, (end - first) * width);
  if (is_f16)
    half_store_line((uint16_t *)out->data + (item * out->dim[1] + first) * width, block, (end - first) * width);
  if (is_bf16) pair_rows(block, end - first, (uint16_t *)out->data + (item * out->dim[1] + first / 2) * VF_PANEL * 2);
}

/* Several neighbouring panels, so that memory is read in longer runs. */
static berth_status pack_weights_kernel_run(const berth_op_call *call, berth_error *err) {
  const int64_t panels = call->out[0].dim[0], across = (panels + BESIDE - 1) / BESIDE;
  const int64_t all_rows = pack_weights_kernel_rows_of(call), each = item_rows(call);
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t first = item % across * BESIDE, last = first + BESIDE < panels ? first + BESIDE : panels;
    const int64_t top = item / across * each, end = top + each < all_rows ? top + each : all_rows;
    for (int64_t row = top; row < end; row += BLOCK_ROWS)
      for (int64_t k = first; k < last; k++)
        weights_kernel_pack(call, k, row, row + BLOCK_ROWS < end ? row + BLOCK_ROWS : end);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pack_weights)[] = {{.name = "pack_weights",
                                                                          .code = BERTH__OP_pack_weights,
                                                                          .takes = pack_weights_kernel_takes,
                                                                          .items = pack_weights_kernel_items,
                                                                          .run = pack_weights_kernel_run},
                                                                         {0}};
