/* Gathering and scattering elements by index. */
#include "import/onnx/compose.h"

/* One berth op with the node's operands and one attribute. */
static berth_status onnx_index_along_axis(berth__onnx_call *call, const char *op, size_t n_in, const char *attr,
                                          int64_t value, berth_error *err) {
  const berth_attr given = berth_attr_int(attr, value);
  BERTH__TRY(berth__onnx_begin(call, n_in, err));
  return berth__onnx_emit(call, op, call->in, n_in, &given, 1, call->out, 1, err);
}

static berth_status convert_gather(berth__onnx_call *call, berth_error *err) {
  return onnx_index_along_axis(call, call->handler->berth_op, 2, "axis", berth__onnx_int(call, "axis", 0), err);
}

static berth_status convert_gather_nd(berth__onnx_call *call, berth_error *err) {
  return onnx_index_along_axis(call, "gather_nd", 2, "batch_dims", berth__onnx_int(call, "batch_dims", 0), err);
}

static berth_status take_reduction(const berth__onnx_call *call, berth_attr *out, berth_error *err) {
  static const char *const names[] = {"none", "add", "mul", "max", "min"};
  const berth__span given = berth__onnx_string(call, "reduction", "none");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (berth__span_is(given, names[i])) {
      *out = berth_attr_string("reduction", names[i]);
      return BERTH_OK;
    }
  return berth__fail(err, BERTH_MALFORMED, "its reduction '%.*s' is not one of none, add, mul, max and min",
                     (int)(given.size > 40 ? 40 : given.size), (const char *)given.data);
}

/* Scatter is the old name of ScatterElements before opset 11. */
static berth_status convert_scatter(berth__onnx_call *call, berth_error *err) {
  berth_attr reduction;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(take_reduction(call, &reduction, err));
  const berth_attr attrs[] = {berth_attr_int("axis", berth__onnx_int(call, "axis", 0)), reduction};
  return berth__onnx_emit(call, "scatter", call->in, 3, attrs, 2, call->out, 1, err);
}

static berth_status convert_scatter_nd(berth__onnx_call *call, berth_error *err) {
  berth_attr reduction;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  BERTH__TRY(take_reduction(call, &reduction, err));
  return berth__onnx_emit(call, "scatter_nd", call->in, 3, &reduction, 1, call->out, 1, err);
}

/* 0, 1, ... below a count, which is a scalar of i64. */
static berth_status count_up(berth__onnx_call *call, berth_value count, berth_value *out, berth_error *err) {
  berth_value in[3] = {BERTH_VALUE_NONE, count, BERTH_VALUE_NONE};
  BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, 0, &in[0], err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, 1, &in[2], err));
  return berth__onnx_emit(call, "range", in, 3, NULL, 0, out, 1, err);
}

/* An operand of one element as a scalar of i64. */
static berth_status as_scalar(berth__onnx_call *call, berth_value value, berth_value *out, berth_error *err) {
  BERTH__TRY(berth__onnx_cast(call, value, BERTH_I64, &value, err));
  *out = value;
  if (berth__onnx_shape(call, value)->rank == 0) return BERTH_OK;
  return berth__onnx_listed(call, "reshape", value, "shape", NULL, 0, out, err);
}

/* The extent of an axis as a scalar of i64. */
static berth_status extent_of(berth__onnx_call *call, berth_value x, uint32_t axis, berth_value *out,
                              berth_error *err) {
  const berth_attr range[2] = {berth_attr_int("start", axis), berth_attr_int("end", (int64_t)axis + 1)};
  BERTH__TRY(berth__onnx_emit(call, "shape", &x, 1, range, 2, out, 1, err));
  return berth__onnx_listed(call, "reshape", *out, "shape", NULL, 0, out, err);
}

/* where(x < 0, x + count, x) */
static berth_status count_from_end(berth__onnx_call *call, berth_value x, berth_value count, berth_value *out,
                                   berth_error *err) {
  berth_value in[3] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, x};
  BERTH__TRY(berth__onnx_with(call, "lt", x, 0, &in[0], err));
  BERTH__TRY(berth__onnx_binary(call, "add", x, count, &in[1], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, out, 1, err);
}

/* Element k of a list of two, as a scalar. */
static berth_status one_of_two(berth__onnx_call *call, berth_value list, int64_t k, berth_value *out,
                               berth_error *err) {
  const int64_t start = k, end = k + 1;
  const berth_attr cut[2] = {berth_attr_ints("starts", &start, 1), berth_attr_ints("ends", &end, 1)};
  BERTH__TRY(berth__onnx_emit(call, "narrow", &list, 1, cut, 2, out, 1, err));
  return berth__onnx_listed(call, "reshape", *out, "shape", NULL, 0, out, err);
}

/* where(indices == 0 1 ... depth - 1, on, off): an index out of range is off everywhere. */
static berth_status convert_one_hot(berth__onnx_call *call, berth_error *err) {
  berth_value indices, depth, steps, in[3];
  int64_t after[BERTH_MAX_RANK];
  uint32_t axis;
  BERTH__TRY(berth__onnx_begin(call, 3, err));
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  if (rank >= BERTH_MAX_RANK)
    return berth__onnx_unsupported(call, err, "its result has a rank over %d", BERTH_MAX_RANK);
  BERTH__TRY(berth__onnx_axis(call, berth__onnx_int(call, "axis", -1), rank + 1, &axis, err));
  BERTH__TRY(as_scalar(call, call->in[1], &depth, err));
  BERTH__TRY(berth__onnx_cast(call, call->in[0], BERTH_I64, &indices, err));
  BERTH__TRY(count_from_end(call, indices, depth, &indices, err));
  const int64_t at = axis;
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", indices, "axes", &at, 1, &indices, err));
  BERTH__TRY(count_up(call, depth, &steps, err));
  for (uint32_t i = 0; i < rank - axis; i++) after[i] = (int64_t)i + 1;
  if (axis < rank) BERTH__TRY(berth__onnx_listed(call, "unsqueeze", steps, "axes", after, rank - axis, &steps, err));
  BERTH__TRY(berth__onnx_binary(call, "eq", indices, steps, &in[0], err));
  BERTH__TRY(one_of_two(call, call->in[2], 1, &in[1], err));
  BERTH__TRY(one_of_two(call, call->in[2], 0, &in[2], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, call->out, 1, err);
}

/* where(column - row >= k, x, 0), or <= for the lower triangle. */
static berth_status convert_trilu(berth__onnx_call *call, berth_error *err) {
  berth_value rows, columns, diagonal, k, in[3];
  const int64_t last = 1;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  in[1] = call->in[0];
  const uint32_t rank = berth__onnx_shape(call, in[1])->rank;
  if (rank < 2) return berth__fail(err, BERTH_MALFORMED, "its operand has rank %u, and a matrix has 2", rank);
  BERTH__TRY(extent_of(call, in[1], rank - 2, &rows, err));
  BERTH__TRY(extent_of(call, in[1], rank - 1, &columns, err));
  BERTH__TRY(count_up(call, rows, &rows, err));
  BERTH__TRY(count_up(call, columns, &columns, err));
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", rows, "axes", &last, 1, &rows, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", columns, rows, &diagonal, err));
  if (berth__onnx_in(call, 1) != BERTH_VALUE_NONE)
    BERTH__TRY(as_scalar(call, call->in[1], &k, err));
  else
    BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, 0, &k, err));
  const bool upper = berth__onnx_int(call, "upper", 1) != 0;
  BERTH__TRY(berth__onnx_binary(call, upper ? "ge" : "le", diagonal, k, &in[0], err));
  BERTH__TRY(berth__onnx_scalar(call, berth__onnx_value_type(call, in[1]), 0, &in[2], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, call->out, 1, err);
}

/* TensorScatter: an update written into a cache, at a position per batch entry. */
static berth_status convert_tensor_scatter(berth__onnx_call *call, berth_error *err) {
  const berth__span mode = berth__onnx_string(call, "mode", "linear");
  const bool is_ring = berth__span_is(mode, "circular");
  const int64_t given = berth__onnx_int(call, "axis", -2);
  const berth_attr attrs[2] = {berth_attr_int("axis", given), berth_attr_int("ring", is_ring)};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  berth_value in[3] = {call->in[0], call->in[1], berth__onnx_in(call, 2)};
  uint32_t axis;
  BERTH__TRY(berth__onnx_axis(call, given, berth__onnx_shape(call, in[0])->rank, &axis, err));
  if (axis == 0 || (!is_ring && !berth__span_is(mode, "linear")))
    return berth__fail(err, BERTH_MALFORMED,
                       "its axis is that of the batch, or its mode is neither linear nor circular");
  if (in[2] == BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, 0, &in[2], err));
  return berth__onnx_emit(call, "write_rows", in, 3, attrs, 2, call->out, 1, err);
}

/* Element t of a sequence of length n comes from n - 1 - t; elements after the sequence stay: [batch, time] of
 * indices. */
static berth_status reversed_times(berth__onnx_call *call, berth_value x, berth_value lengths, berth_value *out,
                                   berth_error *err) {
  const int64_t last = 1;
  berth_value times, in[3];
  BERTH__TRY(extent_of(call, x, 1, &times, err));
  BERTH__TRY(count_up(call, times, &times, err));
  BERTH__TRY(berth__onnx_cast(call, lengths, BERTH_I64, &lengths, err));
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", lengths, "axes", &last, 1, &lengths, err));
  BERTH__TRY(berth__onnx_binary(call, "lt", times, lengths, &in[0], err));
  BERTH__TRY(berth__onnx_with(call, "sub", lengths, 1, &in[1], err));
  BERTH__TRY(berth__onnx_binary(call, "sub", in[1], times, &in[1], err));
  in[2] = times;
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, out, 1, err);
}

static berth_status convert_reverse_sequence(berth__onnx_call *call, berth_error *err) {
  int64_t swap[BERTH_MAX_RANK] = {1, 0};
  const int64_t batch_axis = berth__onnx_int(call, "batch_axis", 1), last = 2;
  const berth_attr batch_dims = berth_attr_int("batch_dims", 1);
  berth_value in[2], result;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  const uint32_t rank = berth__onnx_shape(call, call->in[0])->rank;
  if (rank < 2 || (batch_axis != 0 && batch_axis != 1) || berth__onnx_int(call, "time_axis", 0) != 1 - batch_axis)
    return berth__fail(err, BERTH_MALFORMED, "its batch and time axes are not the first two of its operand");
  for (uint32_t i = 2; i < rank; i++) swap[i] = i;
  in[0] = call->in[0];
  if (batch_axis == 1) BERTH__TRY(berth__onnx_listed(call, "transpose", in[0], "perm", swap, rank, &in[0], err));
  BERTH__TRY(reversed_times(call, in[0], call->in[1], &in[1], err));
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", in[1], "axes", &last, 1, &in[1], err));
  BERTH__TRY(berth__onnx_emit(call, "gather_nd", in, 2, &batch_dims, 1, &result, 1, err));
  if (batch_axis == 1) return berth__onnx_listed(call, "transpose", result, "perm", swap, rank, call->out, err);
  call->out[0] = result;
  return BERTH_OK;
}

static berth_status convert_non_zero(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_unary(call, "non_zero", call->in[0], call->out, err);
}

/* gather(x, the indices where the condition holds); without an axis, of the flattened elements. */
static berth_status convert_compress(berth__onnx_call *call, berth_error *err) {
  const int64_t flat = -1;
  berth_value in[2];
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  const bool has_axis = berth__onnx_find(call, "axis") != NULL;
  const berth_attr axis = berth_attr_int("axis", has_axis ? berth__onnx_int(call, "axis", 0) : 0);
  in[0] = call->in[0];
  if (!has_axis) BERTH__TRY(berth__onnx_listed(call, "reshape", in[0], "shape", &flat, 1, &in[0], err));
  BERTH__TRY(berth__onnx_unary(call, "non_zero", call->in[1], &in[1], err));
  BERTH__TRY(berth__onnx_listed(call, "reshape", in[1], "shape", &flat, 1, &in[1], err));
  return berth__onnx_emit(call, "gather", in, 2, &axis, 1, call->out, 1, err);
}

static berth_status convert_unique(berth__onnx_call *call, berth_error *err) {
  const bool has_axis = berth__onnx_find(call, "axis") != NULL;
  const berth_attr attrs[3] = {berth_attr_int("axis", has_axis ? berth__onnx_int(call, "axis", 0) : 0),
                               berth_attr_int("flat", !has_axis),
                               berth_attr_int("sorted", berth__onnx_int(call, "sorted", 1))};
  berth_value out[4];
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_emit(call, "unique", call->in, 1, attrs, 3, out, 4, err));
  for (size_t k = 0; k < 4; k++) berth__onnx_set(call, k, out[k]);
  return BERTH_OK;
}

const berth__onnx_handler berth__onnx_index[] = {
    {"Compress", convert_compress, NULL},
    {"Gather", convert_gather, "gather"},
    {"GatherElements", convert_gather, "gather_elements"},
    {"GatherND", convert_gather_nd, NULL},
    {"NonZero", convert_non_zero, NULL},
    {"OneHot", convert_one_hot, NULL},
    {"ReverseSequence", convert_reverse_sequence, NULL},
    {"Scatter", convert_scatter, NULL},
    {"ScatterElements", convert_scatter, NULL},
    {"ScatterND", convert_scatter_nd, NULL},
    {"TensorScatter", convert_tensor_scatter, NULL},
    {"Trilu", convert_trilu, NULL},
    {"Unique", convert_unique, NULL},
    {NULL, NULL, NULL},
};
