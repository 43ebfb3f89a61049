/* deform_conv: a convolution of images in which each tap is moved by its own offset at every output position, and
 * interpolates between elements of x. x [N, C, H, W], weight [O, C / group, kernel...], offset [N, offset_group * taps
 * * 2, out...] (down, then right), bias [O]?, mask [N, offset_group * taps, out...]? (a factor per tap). */
#include <inttypes.h>
#include <math.h>

#include "ops/conv.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    BERTH__CONV_ATTR_LIST, [BERTH__DEFORM_OFFSET_GROUP] = {.name = "offset_group", .kind = BERTH_ATTR_INT, .i = 1}};

static berth_status check_groups(const berth__infer *infer, berth_error *err) {
  const int64_t groups = infer->attrs[BERTH__DEFORM_OFFSET_GROUP].i, channels = infer->in_shape[BERTH__DEFORM_X].dim[1];
  if (groups < 1 || (berth__dim_is_fixed(channels) && channels % groups != 0))
    return berth__fail(err, BERTH_INVALID, "the input's channels do not split into %" PRId64 " offset groups", groups);
  return BERTH_OK;
}

/* A map with `each` entries per tap: [N, offset_group * taps * each, out...]. */
static berth_status check_map(const berth__infer *infer, uint32_t operand, int64_t each, berth_error *err) {
  const berth__shape *out = &infer->out_shape[0], *weight = &infer->in_shape[BERTH__DEFORM_WEIGHT];
  int64_t count = each, same;
  BERTH__TRY(berth__want_same_type(infer, BERTH__DEFORM_X, operand, err));
  BERTH__TRY(berth__want_rank(infer, operand, 4, 4, err));
  BERTH__TRY(berth__dim_mul(count, infer->attrs[BERTH__DEFORM_OFFSET_GROUP].i, &count, err));
  BERTH__TRY(berth__dim_mul(count, weight->dim[2], &count, err));
  BERTH__TRY(berth__dim_mul(count, weight->dim[3], &count, err));
  const int64_t want[4] = {out->dim[0], count, out->dim[2], out->dim[3]};
  for (uint32_t axis = 0; axis < 4; axis++)
    BERTH__TRY(berth__same_dim(want[axis], infer->in_shape[operand].dim[axis], "taps and what moves them", &same, err));
  return BERTH_OK;
}

static berth_status deform_conv_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__DEFORM_X], *weight = &infer->in_shape[BERTH__DEFORM_WEIGHT];
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  BERTH__TRY(berth__want_float(infer, BERTH__DEFORM_X, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__DEFORM_X, 4, 4, err));
  BERTH__TRY(berth__conv_check(infer, err));
  BERTH__TRY(berth__conv_check_channels(infer, err));
  BERTH__TRY(berth__conv_check_bias(infer, BERTH__DEFORM_BIAS, weight->dim[0], err));
  BERTH__TRY(check_groups(infer, err));
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = 4, .dim = {x->dim[0], weight->dim[0]}};
  for (uint32_t axis = 0; axis < 2; axis++) {
    const berth__window_axis w = berth__window_axis_of(&window, 2, axis, x->dim[2 + axis], weight->dim[2 + axis]);
    BERTH__TRY(berth__window_count(&w, false, axis, &out->dim[2 + axis], err));
  }
  infer->out_type[0] = infer->in_type[BERTH__DEFORM_X];
  BERTH__TRY(check_map(infer, BERTH__DEFORM_OFFSET, 2, err));
  return berth__infer_has(infer, BERTH__DEFORM_MASK) ? check_map(infer, BERTH__DEFORM_MASK, 1, err) : BERTH_OK;
}

/* The samples of every tap in every channel at one output position. */
static uint64_t deform_conv_scratch(const berth_op_call *call) {
  const berth_tensor *weight = &call->in[BERTH__DEFORM_WEIGHT];
  return (uint64_t)call->in[BERTH__DEFORM_X].dim[1] * (uint64_t)weight->dim[2] * (uint64_t)weight->dim[3] *
         sizeof(double);
}

/* Items are output rows of an image: all output channels share the samples. */
static int64_t deform_conv_items(const berth_op_call *call) { return call->out[0].dim[0] * call->out[0].dim[2]; }

static double deform_conv_element_or_0(const berth_tensor *x, int64_t plane, int64_t row, int64_t column) {
  const bool inside = row >= 0 && row < x->dim[2] && column >= 0 && column < x->dim[3];
  return inside ? berth__load_f64(x, plane + row * x->dim[3] + column) : 0;
}

/* Interpolates between four elements; zeros outside the image. */
static double deform_conv_look(const berth_tensor *x, int64_t plane, double y, double z) {
  if (!(y > -1 && y < (double)x->dim[2] && z > -1 && z < (double)x->dim[3])) return 0;
  const double top = floor(y), left = floor(z), down = y - top, right = z - left;
  const int64_t row = (int64_t)top, column = (int64_t)left;
  return (1 - down) * ((1 - right) * deform_conv_element_or_0(x, plane, row, column) +
                       right * deform_conv_element_or_0(x, plane, row, column + 1)) +
         down * ((1 - right) * deform_conv_element_or_0(x, plane, row + 1, column) +
                 right * deform_conv_element_or_0(x, plane, row + 1, column + 1));
}

static void see(const berth_op_call *call, const berth__window_axis *w, int64_t image, int64_t row, int64_t column) {
  const berth_tensor *x = &call->in[BERTH__DEFORM_X], *offset = &call->in[BERTH__DEFORM_OFFSET],
                     *mask = &call->in[BERTH__DEFORM_MASK];
  const int64_t channels = x->dim[1], taps = w[0].kernel * w[1].kernel,
                groups = call->attrs[BERTH__DEFORM_OFFSET_GROUP].i;
  const int64_t area = w[0].out * w[1].out, at = row * w[1].out + column;
  const bool has_mask = berth__call_has(call, BERTH__DEFORM_MASK);
  double *seen = call->scratch;
  for (int64_t c = 0; c < channels; c++) {
    const int64_t group = c / (channels / groups);
    for (int64_t tap = 0; tap < taps; tap++) {
      const int64_t entry = (image * groups + group) * taps + tap;
      const double y =
          (double)berth__window_input(&w[0], row, tap / w[1].kernel) + berth__load_f64(offset, 2 * entry * area + at);
      const double z = (double)berth__window_input(&w[1], column, tap % w[1].kernel) +
                       berth__load_f64(offset, (2 * entry + 1) * area + at);
      const double factor = has_mask ? berth__load_f64(mask, entry * area + at) : 1;
      seen[c * taps + tap] = factor * deform_conv_look(x, (image * channels + c) * x->dim[2] * x->dim[3], y, z);
    }
  }
}

static double deform_conv_weigh(const berth_op_call *call, int64_t output) {
  const berth_tensor *weight = &call->in[BERTH__DEFORM_WEIGHT];
  const int64_t each = weight->dim[1] * weight->dim[2] * weight->dim[3];
  const int64_t group = output / (weight->dim[0] / call->attrs[BERTH__CONV_GROUP].i);
  const double *seen = (const double *)call->scratch + group * each;
  double sum = berth__call_has(call, BERTH__DEFORM_BIAS) ? berth__load_f64(&call->in[BERTH__DEFORM_BIAS], output) : 0;
  for (int64_t k = 0; k < each; k++) sum += seen[k] * berth__load_f64(weight, output * each + k);
  return sum;
}

static berth_status deform_conv_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *out = &call->out[0];
  berth__conv conv;
  berth__conv_read(call, &conv);
  const berth__window_axis *w = conv.window.axis + 1;
  for (int64_t item = call->begin; item < call->end; item++) {
    const int64_t image = item / out->dim[2], row = item % out->dim[2];
    for (int64_t column = 0; column < out->dim[3]; column++) {
      see(call, w, image, row, column);
      for (int64_t output = 0; output < out->dim[1]; output++)
        berth__store_f64(out, ((image * out->dim[1] + output) * out->dim[2] + row) * out->dim[3] + column,
                         deform_conv_weigh(call, output));
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_deform_conv = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = deform_conv_infer,
    .items = deform_conv_items,
    .scratch = deform_conv_scratch,
    .kernel = deform_conv_kernel,
};
