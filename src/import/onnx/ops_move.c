/* Shapes, slices and other ops that move whole blocks of elements. Most take their lists as operands in newer opsets;
 * they are passed on as operands, and become attributes when they turn out to be constant. */
#include "import/onnx/compose.h"
#include "import/onnx/converter.h"
#include "import/onnx/moving_slice.h"

/* One berth op with the node's operands unchanged. */
static berth_status forward(berth__onnx_call *call, const char *op, const berth_attr *attrs, size_t n_attrs,
                            berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  return berth__onnx_emit(call, op, call->in, call->n_in, attrs, n_attrs, call->out, 1, err);
}

/* A list attribute, if it is given. */
static size_t take_ints(const berth__onnx_call *call, const char *name, const char *berth_name, berth_attr *out) {
  uint32_t count;
  const int64_t *ints = berth__onnx_ints(call, name, &count);
  if (count == 0) return 0;
  *out = berth_attr_ints(berth_name, ints, count);
  return 1;
}

/* ---- Shapes ---- */

static berth_status convert_shape(berth__onnx_call *call, berth_error *err) {
  const berth_attr attrs[2] = {berth_attr_int("start", berth__onnx_int(call, "start", 0)),
                               berth_attr_int("end", berth__onnx_int(call, "end", INT64_MAX))};
  return forward(call, "shape", attrs, 2, err);
}

static berth_status convert_size(berth__onnx_call *call, berth_error *err) {
  return forward(call, "size", NULL, 0, err);
}

static berth_status convert_reshape(berth__onnx_call *call, berth_error *err) {
  berth_attr attrs[2] = {berth_attr_int("allowzero", berth__onnx_int(call, "allowzero", 0))};
  size_t n = 1;
  if (call->opset < 5)
    n += take_ints(call, "shape", "shape", &attrs[n]);
  else
    BERTH__TRY(berth__onnx_want_in(call, 2, err));
  return forward(call, "reshape", attrs, n, err);
}

static berth_status convert_flatten(berth__onnx_call *call, berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", berth__onnx_int(call, "axis", 1));
  return forward(call, "flatten", &axis, 1, err);
}

/* Squeeze and Unsqueeze: `axes` is an attribute up to opset 12. */
static berth_status convert_axes(berth__onnx_call *call, berth_error *err) {
  berth_attr axes;
  const size_t n = call->opset < 13 ? take_ints(call, "axes", "axes", &axes) : 0;
  if (call->opset >= 13 && strcmp(call->handler->berth_op, "unsqueeze") == 0)
    BERTH__TRY(berth__onnx_want_in(call, 2, err));
  return forward(call, call->handler->berth_op, &axes, n, err);
}

static berth_status convert_transpose(berth__onnx_call *call, berth_error *err) {
  berth_attr perm;
  const size_t n = take_ints(call, "perm", "perm", &perm);
  return forward(call, "transpose", &perm, n, err);
}

static berth_status convert_expand(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  return forward(call, "expand", NULL, 0, err);
}

/* A constant of one element, broadcast to the shape. */
static berth_status convert_constant_of_shape(berth__onnx_call *call, berth_error *err) {
  const berth__onnx_attr *value = berth__onnx_find(call, "value");
  const berth__shape *shape;
  berth_value in[2];
  int64_t count;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  in[1] = call->in[0];
  if (value == NULL || value->tensor == NULL) {
    BERTH__TRY(berth__onnx_scalar(call, BERTH_F32, 0, &in[0], err));
  } else {
    BERTH__TRY(berth__onnx_add_tensor(call->converter, NULL, value->tensor, &in[0], err));
    shape = berth__onnx_shape(call, in[0]);
    if (!berth__shape_count(shape, &count) || count != 1)
      return berth__fail(err, BERTH_MALFORMED, "its value has more than one element, or none");
    if (shape->rank != 0) BERTH__TRY(berth__onnx_listed(call, "reshape", in[0], "shape", NULL, 0, &in[0], err));
  }
  return berth__onnx_emit(call, "expand", in, 2, NULL, 0, call->out, 1, err);
}

/* ---- Slices ---- */

static berth_status convert_slice(berth__onnx_call *call, berth_error *err) {
  berth_attr attrs[3];
  size_t n = 0;
  if (call->opset < 10) {
    n += take_ints(call, "starts", "starts", &attrs[n]);
    n += take_ints(call, "ends", "ends", &attrs[n]);
    n += take_ints(call, "axes", "axes", &attrs[n]);
  } else {
    bool done;
    BERTH__TRY(berth__onnx_begin(call, 3, err));
    BERTH__TRY(berth__onnx_moving_slice(call, &done, err));
    if (done) return BERTH_OK;
  }
  return forward(call, "narrow", attrs, n, err);
}

static berth_status convert_split(berth__onnx_call *call, berth_error *err) {
  berth_attr attrs[2] = {berth_attr_int("axis", berth__onnx_int(call, "axis", 0))};
  size_t n = 1;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  const int64_t n_parts = berth__onnx_int(call, "num_outputs", (int64_t)call->n_out);
  if (n_parts != (int64_t)call->n_out)
    return berth__fail(err, BERTH_MALFORMED, "it has %zu output%s, but num_outputs is %lld", call->n_out,
                       berth__plural(call->n_out), (long long)n_parts);
  if (call->opset < 13) n += take_ints(call, "split", "parts", &attrs[n]);
  return berth__onnx_emit(call, "split", call->in, call->n_in, attrs, n, call->out, call->n_out, err);
}

static berth_status onnx_move_convert_concat(berth__onnx_call *call, berth_error *err) {
  if (call->opset >= 4 && berth__onnx_find(call, "axis") == NULL)
    return berth__fail(err, BERTH_MALFORMED, "it has no axis");
  const berth_attr axis = berth_attr_int("axis", berth__onnx_int(call, "axis", 1));
  return forward(call, "concat", &axis, 1, err);
}

/* ---- Expanding ---- */

static berth_status convert_tile(berth__onnx_call *call, berth_error *err) {
  if (call->opset < 6)
    return berth__onnx_unsupported(call, err, "Tile of opset %lld is not supported; opset 6 and newer are",
                                   (long long)call->opset);
  BERTH__TRY(berth__onnx_want_in(call, 2, err));
  return forward(call, "tile", NULL, 0, err);
}

static berth_status convert_pad(berth__onnx_call *call, berth_error *err) {
  static const char *const modes[] = {"constant", "reflect", "edge", "wrap"};
  const berth__span given = berth__onnx_string(call, "mode", "constant");
  berth_attr attrs[3];
  size_t n = 0, mode = 0;
  while (mode < 4 && !berth__span_is(given, modes[mode])) mode++;
  if (mode == 4)
    return berth__fail(err, BERTH_MALFORMED, "its mode '%.*s' is not one of constant, reflect, edge and wrap",
                       (int)(given.size > 40 ? 40 : given.size), (const char *)given.data);
  attrs[n++] = berth_attr_string("mode", modes[mode]);
  if (call->opset < 11) {
    n += take_ints(call, call->opset < 2 ? "paddings" : "pads", "pads", &attrs[n]);
    attrs[n++] = berth_attr_float("value", berth__onnx_float(call, "value", 0));
  } else {
    BERTH__TRY(berth__onnx_want_in(call, 2, err));
  }
  return forward(call, "pad", attrs, n, err);
}

/* Pads or crops to a shape, equally at both ends; the odd element is added at the end and cropped at the beginning. */
static berth_status convert_center_crop_pad(berth__onnx_call *call, berth_error *err) {
  berth_value axes = BERTH_VALUE_NONE, sizes, more, before, pads[2], lists[4], x;
  uint32_t n_axes;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  x = call->in[0];
  const int64_t *ints = berth__onnx_ints(call, "axes", &n_axes);
  const berth_value shape = call->in[1];
  const berth_attr axis = berth_attr_int("axis", 0);
  int64_t all[BERTH_MAX_RANK];
  const uint32_t rank = berth__onnx_shape(call, x)->rank;
  for (uint32_t i = 0; i < rank; i++) all[i] = i;
  BERTH__TRY(berth__onnx_list(call, n_axes != 0 ? ints : all, n_axes != 0 ? n_axes : rank, &axes, err));
  BERTH__TRY(berth__onnx_unary(call, "shape", x, &sizes, err));
  BERTH__TRY(berth__onnx_binary(call, "gather", sizes, axes, &sizes, err));
  BERTH__TRY(berth__onnx_binary(call, "max", sizes, shape, &more, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", more, sizes, &pads[1], err));
  BERTH__TRY(berth__onnx_with(call, "div", pads[1], 2, &pads[0], err));
  BERTH__TRY(berth__onnx_binary(call, "sub", pads[1], pads[0], &pads[1], err));
  BERTH__TRY(berth__onnx_emit(call, "concat", pads, 2, &axis, 1, &lists[1], 1, err));
  lists[0] = x;
  lists[2] = BERTH_VALUE_NONE;
  lists[3] = axes;
  BERTH__TRY(berth__onnx_emit(call, "pad", lists, 4, NULL, 0, &lists[0], 1, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", more, shape, &before, err));
  BERTH__TRY(berth__onnx_with(call, "div", before, 2, &lists[1], err));
  BERTH__TRY(berth__onnx_binary(call, "add", lists[1], shape, &lists[2], err));
  return berth__onnx_emit(call, "narrow", lists, 4, NULL, 0, call->out, 1, err);
}

/* ---- Counting ---- */

/* The operands are scalars; files also have them as lists of one element. If they depend on data, the extent that the
 * file declares for the result is its bound. */
static berth_status convert_range(berth__onnx_call *call, berth_error *err) {
  char name[BERTH__DIM_TEXT];
  berth_dim most;
  bool is_data = false;
  BERTH__TRY(berth__onnx_want_in(call, 3, err));
  BERTH__TRY(berth__onnx_depends_on_data(call, &is_data, err));
  const bool has_bound = is_data && berth__onnx_declared_extent(call, 0, name, &most);
  const berth_attr attr = berth_attr_dims("most", &most, 1);
  return forward(call, "range", &attr, has_bound, err);
}

const berth__onnx_handler berth__onnx_move[] = {
    {"CenterCropPad", convert_center_crop_pad, NULL},
    {"Concat", onnx_move_convert_concat, NULL},
    {"ConstantOfShape", convert_constant_of_shape, NULL},
    {"Expand", convert_expand, NULL},
    {"Flatten", convert_flatten, NULL},
    {"Pad", convert_pad, NULL},
    {"Range", convert_range, NULL},
    {"Reshape", convert_reshape, NULL},
    {"Shape", convert_shape, NULL},
    {"Size", convert_size, NULL},
    {"Slice", convert_slice, NULL},
    {"Split", convert_split, NULL},
    {"Squeeze", convert_axes, "squeeze"},
    {"Tile", convert_tile, NULL},
    {"Transpose", convert_transpose, NULL},
    {"Unsqueeze", convert_axes, "unsqueeze"},
    {NULL, NULL, NULL},
};
