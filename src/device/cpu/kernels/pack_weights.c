/* pack_weights of f32, to f32 or bf16. */
#include "device/cpu/kernels/bf16.h"
#include "device/cpu/kernels/gemm.h"
#include "ops/operand.h"

#define BESIDE 8      /* panels */
#define BLOCK_ROWS 64 /* of each */
#define ITEM_ROWS 4   /* at least */

static bool pack_weights_kernel_takes(const berth_op_call *call) {
  return call->attrs[BERTH__PACK_PANEL].i == VF_PANEL && call->in[0].type == BERTH_F32 &&
         (!berth__call_has(call, 1) || call->in[1].type == BERTH_F32);
}

/* Items follow the file, so that its pages are read one after the other: rows of the weight where these lie together,
 * and otherwise its columns. */
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

static void scale_panel(float *panel, int64_t rows, int64_t columns, const float *scale, int64_t stride) {
  float factor[VF_PANEL] = {0};
  for (int64_t c = 0; c < columns; c++) factor[c] = vf_read(scale + c * stride);
  for (int64_t r = 0; r < rows; r++, panel += VF_PANEL)
    for (int64_t c = 0; c < VF_PANEL; c += VF_LANES) vf_store(panel + c, vf_load(panel + c) * vf_load(factor + c));
}

/* Rows [first, end) of a panel, to where the first of them goes: runs along the last axis but one, one after the other.
 */
static void pack_rows(const berth_tensor *w, float *to, int64_t first, int64_t end, int64_t column, int64_t columns) {
  const uint32_t last = w->rank - 1;
  const float *data = (const float *)w->data + column * w->stride[last];
  const int64_t run = w->dim[last - 1];
  for (int64_t row = first, next; row < end; row = next) {
    int64_t rest = row / run, at = row % run * w->stride[last - 1];
    for (uint32_t axis = last - 1; axis-- > 0; rest /= w->dim[axis]) at += rest % w->dim[axis] * w->stride[axis];
    next = row - row % run + run < end ? row - row % run + run : end;
    gemm_pack_panel(to + (row - first) * VF_PANEL, data + at, next - row, columns, w->stride[last - 1],
                    w->stride[last]);
  }
}

/* Rows two by two, the last one with zeros where it is alone. */
static void pair_rows(const float *from, int64_t rows, uint16_t *to) {
  for (int64_t row = 0; row < rows; row += 2, from += 2 * VF_PANEL)
    for (int64_t c = 0; c < VF_PANEL; c++, to += 2) {
      to[0] = bf16_of(from[c]);
      to[1] = row + 1 < rows ? bf16_of(from[VF_PANEL + c]) : 0;
    }
}

/* Rows [first, end) of the panel `item`, of which `first` is even. */
static void weights_kernel_pack(const berth_op_call *call, int64_t item, int64_t first, int64_t end) {
  const berth_tensor *w = &call->in[0], *scale = &call->in[1], *out = &call->out[0];
  const int64_t groups = call->attrs[BERTH__PACK_GROUPS].i, each = w->dim[w->rank - 1] / groups;
  const int64_t panels = out->dim[0] / groups;
  const int64_t at = item % panels * VF_PANEL, column = item / panels * each + at;
  const int64_t columns = each - at < VF_PANEL ? each - at : VF_PANEL;
  float block[BLOCK_ROWS * VF_PANEL];
  const bool is_bf16 = out->type == BERTH_BF16;
  float *to = is_bf16 ? block : (float *)out->data + (item * out->dim[1] + first) * VF_PANEL;
  pack_rows(w, to, first, end, column, columns);
  if (berth__call_has(call, 1))
    scale_panel(to, end - first, columns, (const float *)scale->data + column * scale->stride[0], scale->stride[0]);
  if (is_bf16) pair_rows(block, end - first, (uint16_t *)out->data + (item * out->dim[1] + first / 2) * VF_PANEL * 2);
}

/* Some panels beside each other, so that memory is read in longer runs. */
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
