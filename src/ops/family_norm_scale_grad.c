/* layer_norm_scale_grad and rms_norm_scale_grad: the gradients of a norm's scale and bias from x and the gradient dy of
 * its result, in the shape of a row: sums over all rows of dy n, where n is the normalised x, and of dy. They are
 * separate from the gradient of x because a batch in slices sums them but cuts that, and a frozen norm does not need
 * them. One item; sums in f64. */
#include "ops/norm.h"

static berth_status norm_scale_grad_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__NORM_X];
  berth__infer forward = *infer;
  berth__shape whole;
  berth_type type;
  uint32_t axis;
  forward.n_in = BERTH__NORM_X + 1;
  forward.n_out = 1;
  forward.out_type = &type;
  forward.out_shape = &whole;
  BERTH__TRY(berth__family_layer_norm.infer(&forward, err));
  BERTH__TRY(berth__want_norm_gradient(infer, BERTH__NORM_SCALE_GRAD_DY, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__LAYER_NORM_AXIS].i, x->rank, &axis, err));
  berth__shape row = {0};
  for (uint32_t i = axis; i < x->rank; i++) row.dim[row.rank++] = x->dim[i];
  for (uint32_t i = 0; i < infer->n_out; i++) {
    infer->out_type[i] = type;
    infer->out_shape[i] = row;
  }
  return BERTH_OK;
}

static uint64_t norm_scale_grad_scratch(const berth_op_call *call) {
  return 2 * sizeof(double) * (uint64_t)berth__norm_row_length(call);
}

static void norm_scale_grad_add(const berth_op_call *call, int64_t start, int64_t length, double *scale, double *bias) {
  const bool is_centred = berth__call_code(call) == BERTH__OP_layer_norm_scale_grad;
  const berth_tensor *x = &call->in[BERTH__NORM_X], *dy = &call->in[BERTH__NORM_SCALE_GRAD_DY];
  const berth__moments m = berth__moments_of(x, start, length, call->attrs[BERTH__LAYER_NORM_EPSILON].f, is_centred);
  double a[BERTH__BLOCK], b[BERTH__BLOCK];
  for (int64_t at = 0; at < length; at += BERTH__BLOCK) {
    const int64_t count = length - at < BERTH__BLOCK ? length - at : BERTH__BLOCK;
    berth__gather_f64(a, x->type, x->data, start + at, 1, count);
    berth__gather_f64(b, dy->type, dy->data, start + at, 1, count);
    for (int64_t i = 0; i < count; i++) {
      scale[at + i] += (a[i] - m.mean) * m.factor * b[i];
      bias[at + i] += b[i];
    }
  }
}

static berth_status norm_scale_grad_kernel(const berth_op_call *call, berth_error *err) {
  const int64_t length = berth__norm_row_length(call), rows = berth__norm_rows(call);
  double *sums = call->scratch;
  (void)err;
  for (int64_t i = 0; i < 2 * length; i++) sums[i] = 0;
  for (int64_t row = 0; row < rows; row++) norm_scale_grad_add(call, row * length, length, sums, sums + length);
  for (uint32_t r = 0; r < call->n_out; r++)
    for (int64_t i = 0; i < length; i++) berth__store_f64(&call->out[r], i, sums[r * length + i]);
  return BERTH_OK;
}

const berth__family berth__family_norm_scale_grad = {.attrs = berth__layer_norm_attrs,
                                                     .n_attrs = BERTH__LAYER_NORM_ATTRS,
                                                     .infer = norm_scale_grad_infer,
                                                     .scratch = norm_scale_grad_scratch,
                                                     .kernel = norm_scale_grad_kernel};
