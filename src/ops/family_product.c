/* product: x [..., M, K] times a weight, with a bias and an epilogue (epilogue.h).
 * w      with panel > 0 a [K, N] packed by pack_weights: [panels, K, panel]; with panel 0 a plain [..., K, N] whose
 * batch axes broadcast with those of x, as in matmul;
 * packed as f16 it has the same shape; packed as bf16 it is [panels, ceil(K / 2), panel, 2], and with the
 * attribute `rounds` x is rounded to bf16 too;
 * of a block type it is [N, K], with panel 0 and x of f32: a row of blocks per column of the result. Kernels may round
 * x to bytes, 32 of which share a scale, unless the attribute `exact` is set
 *   bias?  [N], f32 or of the type of x
 * sum    [..., M, N], with the attribute `adds`: added before the epilogue; the result may overwrite it
 * followed by the operands of the epilogue, which broadcast to the result [..., M, N]
 * x, a plain w and sum may all be f16 or bf16, and the result with them: sums, bias and epilogue are computed in f32
 * and rounded once. An item is one row of the result. */
#include <inttypes.h>

#include "base/blocks.h"
#include "base/half.h"
#include "base/storage.h"
#include "ops/epilogue.h"
#include "ops/operand.h"
#include "ops/product.h"
#include "ops/registry.h"

static const berth_attr attrs[BERTH__PRODUCT_ATTRS] = {
    [BERTH__PRODUCT_COLUMNS] = {.name = "columns", .kind = BERTH_ATTR_INT},
    [BERTH__PRODUCT_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__PRODUCT_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__PRODUCT_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    [BERTH__PRODUCT_ADDS] = BERTH__ADDS_ATTR,
    [BERTH__PRODUCT_ROUNDS] = {.name = "rounds", .kind = BERTH_ATTR_INT},
    [BERTH__PRODUCT_EXACT] = {.name = "exact", .kind = BERTH_ATTR_INT},
};

static berth_status check_packed(const berth__infer *infer, int64_t columns, int64_t panel, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *w = &infer->in_shape[1];
  const bool is_bf16 = infer->in_type[1] == BERTH_BF16;
  int64_t same, rows = x->dim[x->rank - 1];
  if (is_bf16) rows = berth__dim_is_fixed(rows) ? berth__bf16_pairs(rows) : BERTH__DIM_UNKNOWN;
  BERTH__TRY(berth__want_rank(infer, 1, is_bf16 ? 4 : 3, is_bf16 ? 4 : 3, err));
  BERTH__TRY(berth__same_dim(columns / panel + (columns % panel != 0), w->dim[0],
                             "panels of `columns` and of operand 1", &same, err));
  BERTH__TRY(berth__same_dim(rows, w->dim[1],
                             is_bf16 ? "pairs of columns of operand 0 and pairs of rows of operand 1"
                                     : "columns of operand 0 and rows of operand 1",
                             &same, err));
  if (is_bf16) BERTH__TRY(berth__same_dim(2, w->dim[3], "elements of a pair", &same, err));
  return berth__same_dim(panel, w->dim[2], "`panel` and the width of operand 1's panels", &same, err);
}

static berth_status check_plain(const berth__infer *infer, int64_t columns, berth__shape *batch, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *w = &infer->in_shape[1];
  berth__shape of_weight = *w;
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, 1, 2, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__same_dim(columns, w->dim[w->rank - 1], "`columns` and columns of operand 1", &same, err));
  BERTH__TRY(berth__same_dim(x->dim[x->rank - 1], w->dim[w->rank - 2], "columns of operand 0 and rows of operand 1",
                             &same, err));
  of_weight.rank -= 2;
  return berth__broadcast(batch, &of_weight, batch, err);
}

/* Blocks of a weight run along K. */
static berth_status check_blocks(const berth__infer *infer, int64_t columns, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *w = &infer->in_shape[1];
  int64_t same;
  if (infer->attrs[BERTH__PRODUCT_PANEL].i != 0 || infer->attrs[BERTH__PRODUCT_ROUNDS].i != 0)
    return berth__fail(err, BERTH_INVALID, "operand 1 is %s, which is neither packed into panels nor rounded",
                       berth_type_name(infer->in_type[1]));
  BERTH__TRY(berth__want_rank(infer, 1, 2, 2, err));
  BERTH__TRY(berth__same_dim(columns, w->dim[0], "`columns` and rows of operand 1", &same, err));
  return berth__same_dim(x->dim[x->rank - 1], w->dim[1], "columns of operands 0 and 1", &same, err);
}

static berth_status product_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const int64_t columns = infer->attrs[BERTH__PRODUCT_COLUMNS].i, panel = infer->attrs[BERTH__PRODUCT_PANEL].i;
  berth__shape *out = &infer->out_shape[0];
  int64_t same;
  const bool is_blocks = berth__type_is_block(infer->in_type[1]);
  const bool is_narrow = !is_blocks && (infer->in_type[0] == BERTH_F16 || infer->in_type[0] == BERTH_BF16);
  const berth_type type = is_narrow ? infer->in_type[0] : BERTH_F32;
  const bool is_packed_narrow = panel > 0 && (infer->in_type[1] == BERTH_BF16 || infer->in_type[1] == BERTH_F16);
  BERTH__TRY(berth__want_type(infer, 0, type, err));
  if (!is_blocks && !is_packed_narrow) BERTH__TRY(berth__want_type(infer, 1, panel > 0 ? BERTH_F32 : type, err));
  if (!is_blocks && infer->attrs[BERTH__PRODUCT_ROUNDS].i != 0 && infer->in_type[1] != BERTH_BF16)
    return berth__fail(err, BERTH_INVALID, "`rounds` is set, but operand 1 is %s, expected bf16",
                       berth_type_name(infer->in_type[1]));
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  if (columns < 0 || panel < 0)
    return berth__fail(err, BERTH_INVALID, "`%s` is negative", columns < 0 ? "columns" : "panel");
  *out = *x;
  out->rank -= 2;
  BERTH__TRY(is_blocks   ? check_blocks(infer, columns, err)
             : panel > 0 ? check_packed(infer, columns, panel, err)
                         : check_plain(infer, columns, out, err));
  out->dim[out->rank++] = x->dim[x->rank - 2];
  out->dim[out->rank++] = columns;
  infer->out_type[0] = type;
  if (berth__infer_has(infer, BERTH__PRODUCT_BIAS)) {
    if (infer->in_type[BERTH__PRODUCT_BIAS] != BERTH_F32)
      BERTH__TRY(berth__want_type(infer, BERTH__PRODUCT_BIAS, type, err));
    BERTH__TRY(berth__want_rank(infer, BERTH__PRODUCT_BIAS, 1, 1, err));
    BERTH__TRY(berth__same_dim(columns, infer->in_shape[BERTH__PRODUCT_BIAS].dim[0], "`columns` and bias", &same, err));
  }
  BERTH__TRY(berth__epilogue_check_sum(infer, &infer->attrs[BERTH__PRODUCT_ADDS], out, err));
  return berth__epilogue_check(infer, berth__epilogue_first(&infer->attrs[BERTH__PRODUCT_ADDS]),
                               &infer->attrs[BERTH__PRODUCT_CODE], &infer->attrs[BERTH__PRODUCT_NUMBERS], out, err);
}

static int64_t product_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++) rows *= out->dim[axis];
  return rows;
}

/* The offset of the matrix of x or w for a batch of the result. */
static int64_t matrix_at(const berth_tensor *tensor, const berth_tensor *out, int64_t batch) {
  berth_tensor stack = *tensor;
  int64_t stride[BERTH_MAX_RANK], at = 0;
  stack.rank -= 2;
  berth__broadcast_strides(&stack, out->rank - 2, out->dim, stride);
  for (uint32_t axis = out->rank - 2; axis-- > 0; batch /= out->dim[axis]) at += batch % out->dim[axis] * stride[axis];
  return at;
}

static double product_sum_of_blocks(const berth_op_call *call, int64_t x_at, int64_t column) {
  const berth_tensor *x = &call->in[0], *w = &call->in[1], *bias = &call->in[BERTH__PRODUCT_BIAS];
  const int64_t depth = x->dim[x->rank - 1], x_step = x->stride[x->rank - 1];
  const berth_storage storage = berth_type_storage(w->type);
  const uint8_t *row = (const uint8_t *)w->data + berth__storage_size(storage, (uint64_t)(column * depth));
  double sum = berth__call_has(call, BERTH__PRODUCT_BIAS) ? berth__load_f64(bias, column * bias->stride[0]) : 0;
  for (int64_t k = 0; k < depth; k += storage.elements, row += storage.bytes) {
    float numbers[BERTH__BLOCK_MAX];
    berth__blocks_decode(w->type, row, storage.elements, numbers);
    for (int64_t i = 0; i < storage.elements; i++)
      sum += berth__load_f64(x, x_at + (k + i) * x_step) * (double)numbers[i];
  }
  return sum;
}

static double product_sum_of(const berth_op_call *call, int64_t x_at, int64_t w_at, int64_t column) {
  if (berth__type_is_block(call->in[1].type)) return product_sum_of_blocks(call, x_at, column);
  const berth_tensor *x = &call->in[0], *w = &call->in[1], *bias = &call->in[BERTH__PRODUCT_BIAS];
  const int64_t panel = call->attrs[BERTH__PRODUCT_PANEL].i, depth = x->dim[x->rank - 1];
  const bool is_bf16 = w->type == BERTH_BF16 && panel > 0, rounds = call->attrs[BERTH__PRODUCT_ROUNDS].i != 0;
  const int64_t x_step = x->stride[x->rank - 1], w_step = w->stride[is_bf16 ? 1 : w->rank - 2];
  double sum = berth__call_has(call, BERTH__PRODUCT_BIAS) ? berth__load_f64(bias, column * bias->stride[0]) : 0;
  w_at += panel > 0 ? column / panel * w->stride[0] + column % panel * w->stride[2] : column * w->stride[w->rank - 1];
  for (int64_t k = 0; k < depth; k++) {
    const double value = berth__load_f64(x, x_at + k * x_step);
    const int64_t w_k = is_bf16 ? k / 2 * w_step + k % 2 * w->stride[3] : k * w_step;
    sum += (rounds ? (double)berth__bf16_to_f32(berth__f64_to_bf16(value)) : value) * berth__load_f64(w, w_at + w_k);
  }
  return sum;
}

static berth_status product_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const int64_t m = out->dim[out->rank - 2], n = out->dim[out->rank - 1];
  const bool is_packed = call->attrs[BERTH__PRODUCT_PANEL].i > 0 || berth__type_is_block(call->in[1].type);
  berth__epilogue epilogue;
  const bool adds = call->attrs[BERTH__PRODUCT_ADDS].i != 0;
  BERTH__TRY(berth__epilogue_read(&epilogue, call, berth__epilogue_first(&call->attrs[BERTH__PRODUCT_ADDS]),
                                  &call->attrs[BERTH__PRODUCT_CODE], &call->attrs[BERTH__PRODUCT_NUMBERS], err));
  for (int64_t row = call->begin; row < call->end; row++) {
    const int64_t x_at = matrix_at(x, out, row / m) + row % m * x->stride[x->rank - 2];
    const int64_t w_at = is_packed ? 0 : matrix_at(&call->in[1], out, row / m);
    for (int64_t column = 0; column < n; column++) {
      const double added = adds ? berth__load_f64(&call->in[BERTH__EPILOGUE_SUM], row * n + column) : 0;
      const double value =
          berth__epilogue_value(&epilogue, row * n + column, product_sum_of(call, x_at, w_at, column) + added);
      berth__store_f64(out, row * n + column, value);
    }
  }
  return BERTH_OK;
}

static uint32_t product_in_place_of(const berth_attr *attr) {
  return berth__epilogue_in_place(&attr[BERTH__PRODUCT_ADDS]);
}

const berth__family berth__family_product = {
    .attrs = attrs,
    .n_attrs = BERTH__PRODUCT_ATTRS,
    .required = 1u << BERTH__PRODUCT_COLUMNS,
    .in_place_of = product_in_place_of,
    .may_lack = 1u << 2,
    .takes_blocks = 1u << 1,
    .infer = product_infer,
    .items = product_items,
    .kernel = product_kernel,
};
