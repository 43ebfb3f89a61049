/* row_product: few rows x [..., M, K] times a weight, as in text generation, fused with the ops around such a product.
 *   w       of a block type [N, K], otherwise f32 [K, N]
 *   bias?   f32 [N]
 * scale?  f32 [K]: x is normalised first: each row is divided by its root mean square (with `epsilon`) and multiplied
 * by scale
 * second? another weight of the same type and shape as w
 * The result [..., M, N] is the product, or the result of the chain `code`; with a second weight, the product with that
 * is the chain's second operand. An item is one row. */
#include <math.h>

#include "base/blocks.h"
#include "base/storage.h"
#include "ops/chain.h"
#include "ops/norm.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[BERTH__ROW_PRODUCT_ATTRS] = {
    [BERTH__ROW_PRODUCT_COLUMNS] = {.name = "columns", .kind = BERTH_ATTR_INT},
    [BERTH__ROW_PRODUCT_EPSILON] = {.name = "epsilon", .kind = BERTH_ATTR_FLOAT, .f = 1e-5},
    [BERTH__ROW_PRODUCT_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__ROW_PRODUCT_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    [BERTH__ROW_PRODUCT_EXACT] = {.name = "exact", .kind = BERTH_ATTR_INT}, /* as in product */
};

static berth_status row_product_check_weight(const berth__infer *infer, uint32_t operand, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__ROW_PRODUCT_X], *w = &infer->in_shape[operand];
  const int64_t columns = infer->attrs[BERTH__ROW_PRODUCT_COLUMNS].i;
  const bool is_blocks = berth__type_is_block(infer->in_type[operand]);
  int64_t same;
  if (!is_blocks) BERTH__TRY(berth__want_type(infer, operand, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, operand, 2, 2, err));
  BERTH__TRY(berth__same_dim(columns, w->dim[is_blocks ? 0 : 1], "`columns` and columns of a weight", &same, err));
  return berth__same_dim(x->dim[x->rank - 1], w->dim[is_blocks ? 1 : 0], "columns of x and rows of a weight", &same,
                         err);
}

static berth_status row_product_check_vector(const berth__infer *infer, uint32_t operand, int64_t n, const char *what,
                                             berth_error *err) {
  int64_t same;
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_type(infer, operand, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, operand, 1, 1, err));
  return berth__same_dim(n, infer->in_shape[operand].dim[0], what, &same, err);
}

static berth_status row_product_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__ROW_PRODUCT_X];
  const berth_attr *attr = infer->attrs;
  const bool has_second = berth__infer_has(infer, BERTH__ROW_PRODUCT_SECOND);
  berth__chain chain;
  BERTH__TRY(berth__want_type(infer, BERTH__ROW_PRODUCT_X, BERTH_F32, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__ROW_PRODUCT_X, 2, BERTH_MAX_RANK, err));
  if (attr[BERTH__ROW_PRODUCT_COLUMNS].i < 0) return berth__fail(err, BERTH_INVALID, "`columns` is negative");
  BERTH__TRY(berth__want_epsilon(&attr[BERTH__ROW_PRODUCT_EPSILON], err));
  BERTH__TRY(row_product_check_weight(infer, BERTH__ROW_PRODUCT_WEIGHT, err));
  BERTH__TRY(row_product_check_vector(infer, BERTH__ROW_PRODUCT_BIAS, attr[BERTH__ROW_PRODUCT_COLUMNS].i,
                                      "`columns` and bias", err));
  BERTH__TRY(
      row_product_check_vector(infer, BERTH__ROW_PRODUCT_SCALE, x->dim[x->rank - 1], "columns of x and scale", err));
  if (has_second) {
    BERTH__TRY(berth__want_same_type(infer, BERTH__ROW_PRODUCT_WEIGHT, BERTH__ROW_PRODUCT_SECOND, err));
    BERTH__TRY(row_product_check_weight(infer, BERTH__ROW_PRODUCT_SECOND, err));
    if (attr[BERTH__ROW_PRODUCT_CODE].count == 0)
      return berth__fail(err, BERTH_INVALID, "there is a second weight, but `code` makes nothing of it");
  }
  if (attr[BERTH__ROW_PRODUCT_CODE].count != 0)
    BERTH__TRY(berth__chain_read(&attr[BERTH__ROW_PRODUCT_CODE], &attr[BERTH__ROW_PRODUCT_NUMBERS], has_second ? 2 : 1,
                                 &chain, err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = attr[BERTH__ROW_PRODUCT_COLUMNS].i;
  infer->out_type[0] = BERTH_F32;
  return BERTH_OK;
}

static int64_t row_product_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++) rows *= out->dim[axis];
  return rows;
}

/* A row of x, normalised if there is a scale. */
static uint64_t row_product_scratch(const berth_op_call *call) {
  const berth_tensor *x = &call->in[BERTH__ROW_PRODUCT_X];
  return (uint64_t)x->dim[x->rank - 1] * sizeof(double);
}

static void row_product_load(const berth_op_call *call, int64_t row, double *out) {
  const berth_tensor *x = &call->in[BERTH__ROW_PRODUCT_X], *scale = &call->in[BERTH__ROW_PRODUCT_SCALE];
  const int64_t depth = x->dim[x->rank - 1];
  int64_t at = 0;
  double squares = 0;
  for (uint32_t axis = x->rank - 1; axis-- > 0; row /= x->dim[axis]) at += row % x->dim[axis] * x->stride[axis];
  for (int64_t k = 0; k < depth; k++) {
    out[k] = berth__load_f64(x, at + k * x->stride[x->rank - 1]);
    squares += out[k] * out[k];
  }
  if (!berth__call_has(call, BERTH__ROW_PRODUCT_SCALE)) return;
  const double root = sqrt(squares / (double)depth + call->attrs[BERTH__ROW_PRODUCT_EPSILON].f);
  for (int64_t k = 0; k < depth; k++) out[k] *= berth__load_f64(scale, k * scale->stride[0]) / root;
}

static double row_product_sum(const berth_tensor *w, const double *x, int64_t depth, int64_t column) {
  double sum = 0;
  if (!berth__type_is_block(w->type)) {
    for (int64_t k = 0; k < depth; k++) sum += x[k] * berth__load_f64(w, k * w->stride[0] + column * w->stride[1]);
    return sum;
  }
  const berth_storage storage = berth_type_storage(w->type);
  const uint8_t *row = (const uint8_t *)w->data + berth__storage_size(storage, (uint64_t)(column * depth));
  for (int64_t k = 0; k < depth; k += storage.elements, row += storage.bytes) {
    float numbers[BERTH__BLOCK_MAX];
    berth__blocks_decode(w->type, row, storage.elements, numbers);
    for (int64_t i = 0; i < storage.elements; i++) sum += x[k + i] * (double)numbers[i];
  }
  return sum;
}

static berth_status row_product_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__ROW_PRODUCT_X], *bias = &call->in[BERTH__ROW_PRODUCT_BIAS];
  const int64_t depth = x->dim[x->rank - 1], n = call->out[0].dim[call->out[0].rank - 1];
  const bool has_second = berth__call_has(call, BERTH__ROW_PRODUCT_SECOND);
  const berth_attr *code = &call->attrs[BERTH__ROW_PRODUCT_CODE];
  berth__chain chain = {.n_steps = 0};
  if (code->count != 0)
    BERTH__TRY(berth__chain_read(code, &call->attrs[BERTH__ROW_PRODUCT_NUMBERS], has_second ? 2 : 1, &chain, err));
  for (int64_t row = call->begin; row < call->end; row++) {
    row_product_load(call, row, call->scratch);
    for (int64_t column = 0; column < n; column++) {
      double value[2] = {row_product_sum(&call->in[BERTH__ROW_PRODUCT_WEIGHT], call->scratch, depth, column), 0};
      if (berth__call_has(call, BERTH__ROW_PRODUCT_BIAS)) value[0] += berth__load_f64(bias, column * bias->stride[0]);
      if (has_second) value[1] = row_product_sum(&call->in[BERTH__ROW_PRODUCT_SECOND], call->scratch, depth, column);
      berth__store_f64(&call->out[0], row * n + column,
                       chain.n_steps != 0 ? berth__chain_value(&chain, value) : value[0]);
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_row_product = {
    .attrs = attrs,
    .n_attrs = BERTH__ROW_PRODUCT_ATTRS,
    .required = 1u << BERTH__ROW_PRODUCT_COLUMNS,
    .unit_last = 1u << BERTH__ROW_PRODUCT_X,
    .takes_blocks = 1u << BERTH__ROW_PRODUCT_WEIGHT | 1u << BERTH__ROW_PRODUCT_SECOND,
    .infer = row_product_infer,
    .items = row_product_items,
    .scratch = row_product_scratch,
    .kernel = row_product_kernel,
};
