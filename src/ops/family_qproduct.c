/* qproduct: int8 x [..., M, K] times a weight packed by pack_weights_i8 from [K, N]. Operands: x, weight, scale,
 * x_zero?, weight_zero?, bias?, those of the epilogue; see bytes.h. An item is one row of the result. */
#include "ops/bytes.h"
#include "ops/conv_last.h"
#include "ops/product.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__QPRODUCT_COLUMNS] = {.name = "columns", .kind = BERTH_ATTR_INT},
    [BERTH__QPRODUCT_PANEL] = {.name = "panel", .kind = BERTH_ATTR_INT},
    [BERTH__QPRODUCT_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__QPRODUCT_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    BERTH__BYTES_ATTR_LIST(BERTH__QPRODUCT_ATTRS),
};

static berth_status qproduct_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  const berth__bytes_attrs own = berth__bytes_attrs_of(infer->op, infer->attrs);
  const int64_t columns = infer->attrs[BERTH__QPRODUCT_COLUMNS].i, panel = infer->attrs[BERTH__QPRODUCT_PANEL].i;
  berth_type weight;
  BERTH__TRY(berth__want_rank(infer, 0, 2, BERTH_MAX_RANK, err));
  for (uint32_t k = BERTH__QPRODUCT_COLUMNS; k <= BERTH__QPRODUCT_PANEL; k++)
    BERTH__TRY(berth__last_check_count(&infer->attrs[k], err));
  BERTH__TRY(berth__bytes_type(&own.own[BERTH__BYTES_WEIGHTS], &weight, err));
  BERTH__TRY(
      berth__bytes_check_packed(infer, columns / panel + (columns % panel != 0), x->dim[x->rank - 1], panel, err));
  infer->out_shape[0] = *x;
  infer->out_shape[0].dim[x->rank - 1] = columns;
  return berth__bytes_check(infer, columns, weight, err);
}

static int64_t qproduct_items(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < out->rank; axis++) rows *= out->dim[axis];
  return rows;
}

static berth_status qproduct_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0];
  const int64_t columns = call->attrs[BERTH__QPRODUCT_COLUMNS].i, depth = x->dim[x->rank - 1];
  berth__bytes b;
  BERTH__TRY(berth__bytes_read(call, &b, err));
  for (int64_t row = call->begin; row < call->end; row++) {
    int64_t at = 0, rest = row;
    for (uint32_t axis = x->rank - 1; axis-- > 0; rest /= x->dim[axis]) at += rest % x->dim[axis] * x->stride[axis];
    for (int64_t column = 0; column < columns; column++) {
      const berth__bytes_column weight = berth__bytes_column_of(&b, columns, 1, column);
      int64_t sum = 0;
      for (int64_t k = 0; k < depth; k++)
        sum += berth__bytes_x(&b, at + k * x->stride[x->rank - 1]) * berth__bytes_weight(&weight, k);
      berth__bytes_store(&b, row * columns + column, column, sum);
    }
  }
  return BERTH_OK;
}

static uint32_t qproduct_in_place_of(const berth_attr *attr) {
  return berth__bytes_in_place(attr + sizeof attrs / sizeof *attrs - BERTH__BYTES_ATTRS);
}

const berth__family berth__family_qproduct = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__QPRODUCT_COLUMNS | 1u << BERTH__QPRODUCT_PANEL,
    .in_place_of = qproduct_in_place_of,
    .may_lack = BERTH__BYTES_MAY_LACK,
    .unit_last = 1u,
    .infer = qproduct_infer,
    .items = qproduct_items,
    .kernel = qproduct_kernel,
};
