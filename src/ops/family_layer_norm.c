/* layer_norm and rms_norm over the axes from `axis` to the last. An item is one row of those axes. Scale and bias
 * broadcast to the row's shape. */
#include "ops/norm.h"

const berth_attr berth__layer_norm_attrs[BERTH__LAYER_NORM_ATTRS] = {
    [BERTH__LAYER_NORM_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = -1},
    [BERTH__LAYER_NORM_EPSILON] = {.name = "epsilon", .kind = BERTH_ATTR_FLOAT, .f = 1e-5}};

/* Checks that the operand does not enlarge the row. */
static berth_status want_row_shape(const berth__infer *infer, const berth__shape *row, uint32_t operand,
                                   berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  berth__shape both;
  char text[BERTH__SHAPE_TEXT], row_text[BERTH__SHAPE_TEXT];
  BERTH__TRY(berth__want_same_type(infer, BERTH__NORM_X, operand, err));
  bool fits = shape->rank <= row->rank && berth__broadcast(row, shape, &both, NULL) == BERTH_OK;
  for (uint32_t i = 0; fits && i < row->rank; i++)
    fits = !berth__dim_is_fixed(row->dim[i]) || both.dim[i] == row->dim[i];
  if (fits) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %u has shape %s, which does not broadcast to the normalised shape %s",
                     operand, berth__shape_text(shape, text), berth__shape_text(row, row_text));
}

static berth_status infer_layer_norm(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[BERTH__NORM_X];
  berth__shape row = {0};
  uint32_t axis;
  BERTH__TRY(berth__want_float(infer, BERTH__NORM_X, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__LAYER_NORM_AXIS].i, in->rank, &axis, err));
  BERTH__TRY(berth__want_epsilon(&infer->attrs[BERTH__LAYER_NORM_EPSILON], err));
  for (uint32_t i = axis; i < in->rank; i++) row.dim[row.rank++] = in->dim[i];
  for (uint32_t k = BERTH__NORM_SCALE; k < infer->n_in; k++)
    if (berth__is_given(infer, k)) BERTH__TRY(want_row_shape(infer, &row, k, err));
  infer->out_type[0] = infer->in_type[BERTH__NORM_X];
  infer->out_shape[0] = *in;
  return BERTH_OK;
}

/* Runs over one row, with the own strides of scale and bias. */
static void row_runs(const berth_op_call *call, const berth_tensor *const *values, berth__runs *runs) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  uint32_t axis = berth__norm_first_axis(call), rank = x->rank - axis;
  int64_t stride[3][BERTH_MAX_RANK] = {{0}};
  const int64_t *strides[3] = {stride[0], stride[1], stride[2]};
  berth__contiguous_strides(rank, x->dim + axis, stride[0]);
  for (uint32_t k = 0; k < 2; k++)
    if (values[k]) berth__broadcast_strides(values[k], rank, x->dim + axis, stride[k + 1]);
  berth__runs_shape(runs, rank, x->dim + axis, 3, strides);
}

static berth_status layer_norm_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__NORM_X];
  const berth_tensor *values[2] = {berth__optional(call, BERTH__NORM_SCALE), berth__optional(call, BERTH__NORM_BIAS)};
  bool centred = berth__call_code(call) == BERTH__OP_layer_norm;
  int64_t length = berth__norm_row_length(call);
  berth__runs runs;
  (void)err;
  row_runs(call, values, &runs);
  for (int64_t row = call->begin; row < call->end; row++) {
    berth__moments moments =
        berth__moments_of(x, row * length, length, call->attrs[BERTH__LAYER_NORM_EPSILON].f, centred);
    berth__runs_start(&runs, 0, length);
    while (berth__runs_next(&runs))
      berth__normalise(x, &call->out[0], row * length + runs.index[0], runs.count, moments,
                       (berth__norm_values){values[0], runs.index[1], runs.step[1], 1.0},
                       (berth__norm_values){values[1], runs.index[2], runs.step[2], 0.0});
  }
  return BERTH_OK;
}

const berth__family berth__family_layer_norm = {.attrs = berth__layer_norm_attrs,
                                                .n_attrs = BERTH__LAYER_NORM_ATTRS,
                                                .infer = infer_layer_norm,
                                                .items = berth__norm_rows,
                                                .kernel = layer_norm_kernel};
