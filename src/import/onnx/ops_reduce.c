/* Reductions, positions of extremes, softmax and related ops, running sums. */
#include <inttypes.h>
#include <math.h>

#include "import/onnx/compose.h"

/* ---- Over which axes ---- */

typedef struct reduction {
  berth_value axes_operand; /* BERTH_VALUE_NONE: see the list below */
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n;   /* 0: all axes */
  bool is_none; /* over no axis at all: only the element-wise part remains */
  bool keepdims;
} reduction;

/* An axes operand that is not known yet: its length must be known, because an empty list means something else. */
static berth_status read_open_axes(const berth__onnx_call *call, berth_value operand, reduction *r, berth_error *err) {
  const berth__shape *shape = berth__onnx_shape(call, operand);
  if (shape->rank > 1) return berth__fail(err, BERTH_MALFORMED, "the axes have rank %u, expected a list", shape->rank);
  if (shape->rank == 1 && !berth__dim_is_fixed(shape->dim[0]))
    return berth__onnx_unsupported(call, err, "the number of axes is not known");
  if (shape->rank == 0 || shape->dim[0] != 0) r->axes_operand = operand;
  return BERTH_OK;
}

static berth_status onnx_reduce_read_axes(const berth__onnx_call *call, reduction *r, berth_error *err) {
  berth_value operand = berth__onnx_in(call, 1);
  *r = (reduction){.axes_operand = BERTH_VALUE_NONE, .keepdims = berth__onnx_int(call, "keepdims", 1) != 0};
  if (operand == BERTH_VALUE_NONE) {
    uint32_t n;
    const int64_t *axes = berth__onnx_ints(call, "axes", &n);
    if (n > BERTH_MAX_RANK) return berth__fail(err, BERTH_MALFORMED, "it names %" PRIu32 " axes", n);
    for (r->n = 0; r->n < n; r->n++) r->axes[r->n] = axes[r->n];
  } else if (!berth__onnx_constant_ints(call, operand, r->axes, BERTH_MAX_RANK, &r->n)) {
    r->n = 0;
    BERTH__TRY(read_open_axes(call, operand, r, err));
  }
  bool is_empty = r->n == 0 && r->axes_operand == BERTH_VALUE_NONE;
  r->is_none = is_empty && berth__onnx_int(call, "noop_with_empty_axes", 0) != 0;
  return BERTH_OK;
}

static berth_status reduce(berth__onnx_call *call, const reduction *r, const char *op, berth_value x, bool keepdims,
                           berth_value *out, berth_error *err) {
  if (r->is_none) return *out = x, BERTH_OK;
  berth_value in[2] = {x, r->axes_operand};
  berth_attr attrs[] = {berth_attr_int("keepdims", keepdims), berth_attr_ints("axes", r->axes, r->n)};
  bool is_open = r->axes_operand != BERTH_VALUE_NONE;
  return berth__onnx_emit(call, op, in, is_open ? 2 : 1, attrs, is_open ? 1 : 2, out, 1, err);
}

/* Removes the axes of extent 1 that a reduction left. */
static berth_status drop_axes(berth__onnx_call *call, const reduction *r, berth_value x, berth_value *out,
                              berth_error *err) {
  if (r->axes_operand != BERTH_VALUE_NONE) return reduce(call, r, "reduce_max", x, false, out, err);
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = r->n != 0 ? r->n : berth__onnx_shape(call, x)->rank;
  if (r->is_none || n == 0) return *out = x, BERTH_OK;
  for (uint32_t i = 0; i < n; i++) axes[i] = r->n != 0 ? r->axes[i] : (int64_t)i;
  return berth__onnx_listed(call, "squeeze", x, "axes", axes, n, out, err);
}

/* ---- Reductions ---- */

/* The handler's op; bool is converted to bytes. */
static berth_status convert_reduce(berth__onnx_call *call, berth_error *err) {
  reduction r;
  berth_value x;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_reduce_read_axes(call, &r, err));
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_cast(call, call->in[0], type == BERTH_BOOL ? BERTH_U8 : type, &x, err));
  BERTH__TRY(reduce(call, &r, call->handler->berth_op, x, r.keepdims, &x, err));
  return berth__onnx_cast(call, x, type, &call->out[0], err);
}

static berth_status square(berth__onnx_call *call, berth_value x, berth_value *out, berth_error *err) {
  return berth__onnx_binary(call, "mul", x, x, out, err);
}

/* Sums of `before` applied to each element, and `after` applied to that; NULL: neither. Roots and logarithms of
 * integers are computed in f64. */
static berth_status sum_between(berth__onnx_call *call, bool squares, const char *before, const char *after,
                                berth_error *err) {
  reduction r;
  berth_value x;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_reduce_read_axes(call, &r, err));
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  bool is_float = berth__type_is_float(type);
  BERTH__TRY(
      berth__onnx_cast(call, call->in[0], is_float || after == NULL ? berth__onnx_wide(type) : BERTH_F64, &x, err));
  if (squares) BERTH__TRY(square(call, x, &x, err));
  if (before != NULL) BERTH__TRY(berth__onnx_unary(call, before, x, &x, err));
  BERTH__TRY(reduce(call, &r, "reduce_sum", x, r.keepdims, &x, err));
  if (after != NULL) BERTH__TRY(berth__onnx_unary(call, after, x, &x, err));
  return berth__onnx_cast(call, x, type, &call->out[0], err);
}

static berth_status convert_l1(berth__onnx_call *call, berth_error *err) {
  return sum_between(call, false, "abs", NULL, err);
}
static berth_status convert_l2(berth__onnx_call *call, berth_error *err) {
  return sum_between(call, true, NULL, "sqrt", err);
}
static berth_status convert_log_sum(berth__onnx_call *call, berth_error *err) {
  return sum_between(call, false, NULL, "log", err);
}
static berth_status convert_sum_square(berth__onnx_call *call, berth_error *err) {
  return sum_between(call, true, NULL, NULL, err);
}

/* The largest element, or 0 if that is infinite, so that subtracting it does not give NaN. */
static berth_status finite_largest(berth__onnx_call *call, const reduction *r, berth_value x, berth_value *out,
                                   berth_error *err) {
  berth_value most, size, is_infinite;
  BERTH__TRY(reduce(call, r, "reduce_max", x, true, &most, err));
  BERTH__TRY(berth__onnx_unary(call, "abs", most, &size, err));
  BERTH__TRY(berth__onnx_with(call, "eq", size, INFINITY, &is_infinite, err));
  return berth__onnx_replace(call, is_infinite, 0, most, out, err);
}

/* log(sum(exp(x - m))) + m with the largest element m, so that nothing overflows. */
static berth_status convert_log_sum_exp(berth__onnx_call *call, berth_error *err) {
  reduction r;
  berth_value x, most;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(onnx_reduce_read_axes(call, &r, err));
  berth_type type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(
      berth__onnx_cast(call, call->in[0], berth__type_is_float(type) ? berth__onnx_wide(type) : BERTH_F64, &x, err));
  BERTH__TRY(finite_largest(call, &r, x, &most, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", x, most, &x, err));
  BERTH__TRY(berth__onnx_unary(call, "exp", x, &x, err));
  BERTH__TRY(reduce(call, &r, "reduce_sum", x, true, &x, err));
  BERTH__TRY(berth__onnx_unary(call, "log", x, &x, err));
  BERTH__TRY(berth__onnx_binary(call, "add", x, most, &x, err));
  if (!r.keepdims) BERTH__TRY(drop_axes(call, &r, x, &x, err));
  return berth__onnx_cast(call, x, type, &call->out[0], err);
}

static berth_status convert_arg(berth__onnx_call *call, berth_error *err) {
  berth_attr attrs[] = {berth_attr_int("axis", berth__onnx_int(call, "axis", 0)),
                        berth_attr_int("keepdims", berth__onnx_int(call, "keepdims", 1)),
                        berth_attr_int("select_last", berth__onnx_int(call, "select_last_index", 0))};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_emit(call, call->handler->berth_op, call->in, 1, attrs, 3, call->out, 1, err);
}

/* ---- Softmax and related ops ---- */

/* 1 at the first of the largest elements along an axis, 0 elsewhere. */
static berth_status hardmax(berth__onnx_call *call, berth_value x, int64_t axis, berth_value *out, berth_error *err) {
  berth_value most, is_most, count, is_first;
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_max", x, &axis, 1, true, &most, err));
  BERTH__TRY(berth__onnx_binary(call, "eq", x, most, &is_most, err));
  BERTH__TRY(berth__onnx_cast(call, is_most, BERTH_I32, &count, err));
  BERTH__TRY(berth__onnx_along(call, "cumsum", count, "axis", axis, &count, err));
  BERTH__TRY(berth__onnx_with(call, "eq", count, 1, &is_first, err));
  BERTH__TRY(berth__onnx_binary(call, "and", is_most, is_first, &is_first, err));
  return berth__onnx_cast(call, is_first, berth__onnx_value_type(call, x), out, err);
}

static berth_status onnx_reduce_along_axis(berth__onnx_call *call, berth_value x, int64_t axis, berth_value *out,
                                           berth_error *err) {
  const char *op = call->handler->berth_op;
  if (op == NULL) return hardmax(call, x, axis, out, err);
  return berth__onnx_along(call, op, x, "axis", axis, out, err);
}

/* Before opset 13, all axes from `axis` on were joined. */
static berth_status convert_softmax(berth__onnx_call *call, berth_error *err) {
  uint32_t axis;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  const berth__shape *shape = berth__onnx_shape(call, call->in[0]);
  BERTH__TRY(berth__onnx_axis(call, berth__onnx_int(call, "axis", call->opset < 13 ? 1 : -1), shape->rank, &axis, err));
  bool is_line = true; /* the later axes have extent 1 */
  for (uint32_t i = axis + 1; i < shape->rank; i++) is_line = is_line && shape->dim[i] == 1;
  if (call->opset >= 13 || is_line) return onnx_reduce_along_axis(call, call->in[0], axis, &call->out[0], err);
  berth_value rows;
  BERTH__TRY(berth__onnx_along(call, "flatten", call->in[0], "axis", axis, &rows, err));
  BERTH__TRY(onnx_reduce_along_axis(call, rows, 1, &rows, err));
  return berth__onnx_reshape_like(call, rows, call->in[0], &call->out[0], err);
}

/* ---- Along an axis ---- */

static berth_status convert_cumulative(berth__onnx_call *call, berth_error *err) {
  int64_t axis = 0;
  uint32_t count = 0;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  bool is_known = berth__onnx_constant_ints(call, call->in[1], &axis, 1, &count) && count == 1;
  berth_attr attrs[] = {berth_attr_int("exclusive", berth__onnx_int(call, "exclusive", 0)),
                        berth_attr_int("reverse", berth__onnx_int(call, "reverse", 0)), berth_attr_int("axis", axis)};
  return berth__onnx_emit(call, call->handler->berth_op, call->in, is_known ? 1 : 2, attrs, is_known ? 3 : 2, call->out,
                          1, err);
}

/* k is an attribute before opset 10. */
static berth_status convert_top_k(berth__onnx_call *call, berth_error *err) {
  bool is_attr = call->opset < 10;
  int64_t k = berth__onnx_int(call, "k", 0);
  uint32_t count = 1;
  berth_value out[2];
  BERTH__TRY(berth__onnx_begin(call, is_attr ? 1 : 2, err));
  bool is_known = is_attr || (berth__onnx_constant_ints(call, call->in[1], &k, 1, &count) && count == 1);
  berth_attr attrs[] = {berth_attr_int("axis", berth__onnx_int(call, "axis", -1)),
                        berth_attr_int("largest", berth__onnx_int(call, "largest", 1)), berth_attr_int("k", k)};
  BERTH__TRY(berth__onnx_emit(call, "top_k", call->in, is_known ? 1 : 2, attrs, is_known ? 3 : 2, out, 2, err));
  berth__onnx_set(call, 0, out[0]);
  berth__onnx_set(call, 1, out[1]);
  return BERTH_OK;
}

static berth_status convert_det(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_unary(call, "det", call->in[0], &call->out[0], err);
}

const berth__onnx_handler berth__onnx_reduce[] = {
    {"ReduceSum", convert_reduce, "reduce_sum"},
    {"ReduceMean", convert_reduce, "reduce_mean"},
    {"ReduceMax", convert_reduce, "reduce_max"},
    {"ReduceMin", convert_reduce, "reduce_min"},
    {"ReduceProd", convert_reduce, "reduce_prod"},
    {"ReduceL1", convert_l1, NULL},
    {"ReduceL2", convert_l2, NULL},
    {"ReduceLogSum", convert_log_sum, NULL},
    {"ReduceLogSumExp", convert_log_sum_exp, NULL},
    {"ReduceSumSquare", convert_sum_square, NULL},
    {"ArgMax", convert_arg, "arg_max"},
    {"ArgMin", convert_arg, "arg_min"},
    {"Softmax", convert_softmax, "softmax"},
    {"LogSoftmax", convert_softmax, "log_softmax"},
    {"Hardmax", convert_softmax, NULL},
    {"CumProd", convert_cumulative, "cumprod"},
    {"CumSum", convert_cumulative, "cumsum"},
    {"TopK", convert_top_k, NULL},
    {"Det", convert_det, NULL},
    {NULL, NULL, NULL},
};
