#include "ops/conv_last.h"

#include <inttypes.h>
#include <math.h>

#include "ops/operand.h"

static const berth_attr no_auto_pad = BERTH__WINDOW_AUTO_PAD;
static const berth_attr no_list = {.name = "list", .kind = BERTH_ATTR_INTS};

berth__window_attrs berth__last_window(const berth_attr *attrs) {
  return (berth__window_attrs){&attrs[BERTH__LAST_STRIDES], &attrs[BERTH__LAST_PADS], &attrs[BERTH__LAST_DILATIONS],
                               &no_auto_pad};
}

berth__window_attrs berth__winograd_window(const berth_attr *attrs) {
  return (berth__window_attrs){&no_list, &attrs[BERTH__WINOGRAD_PADS], &no_list, &no_auto_pad};
}

/* x and the summand may be f16 or bf16, and the result with them: everything is computed in f32 and rounded once.
 * Weights are f32; those of conv_last may be f16. */
static berth_status last_check_types(const berth__infer *infer, berth_error *err) {
  const berth_type x = infer->in_type[0];
  const bool may_be_half = infer->op->code == BERTH__OP_conv_last;
  if (x != BERTH_F16 && x != BERTH_BF16) BERTH__TRY(berth__want_type(infer, 0, BERTH_F32, err));
  if (!may_be_half || infer->in_type[1] != BERTH_F16) BERTH__TRY(berth__want_type(infer, 1, BERTH_F32, err));
  infer->out_type[0] = x;
  return BERTH_OK;
}

berth_status berth__last_check(const berth__infer *infer, const berth__window_attrs *window, berth_error *err) {
  BERTH__TRY(last_check_types(infer, err));
  BERTH__TRY(berth__want_rank(infer, 0, 3, 2 + BERTH__WINDOW_AXES, err));
  return berth__window_check(window, infer->in_shape[0].rank - 2, err);
}

berth_status berth__last_check_rest(const berth__infer *infer, uint32_t first_extra, const berth_attr *code,
                                    const berth_attr *numbers, berth_error *err) {
  const berth__shape *out = &infer->out_shape[0];
  int64_t same;
  if (berth__infer_has(infer, BERTH__LAST_BIAS)) {
    BERTH__TRY(berth__want_type(infer, BERTH__LAST_BIAS, BERTH_F32, err));
    BERTH__TRY(berth__want_rank(infer, BERTH__LAST_BIAS, 1, 1, err));
    BERTH__TRY(berth__same_dim(out->dim[out->rank - 1], infer->in_shape[BERTH__LAST_BIAS].dim[0],
                               "output channels and bias", &same, err));
  }
  return berth__epilogue_check(infer, first_extra, code, numbers, out, err);
}

berth_status berth__last_check_kernel(const berth__infer *infer, berth_error *err) {
  const berth_attr *kernel = &infer->attrs[BERTH__LAST_KERNEL];
  const uint32_t spatial = infer->in_shape[0].rank - 2;
  if (kernel->count != spatial)
    return berth__fail(err, BERTH_INVALID, "`kernel` has %" PRIu32 " entries, expected %" PRIu32, kernel->count,
                       spatial);
  return berth__window_check_list(kernel, spatial, 1, err);
}

berth_status berth__last_check_count(const berth_attr *attr, berth_error *err) {
  if (attr->i >= 1) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "`%s` is %" PRId64 ", expected 1 or more", attr->name, attr->i);
}

berth_status berth__last_check_packed(const berth__infer *infer, int64_t panels, int64_t rows, int64_t panel,
                                      berth_error *err) {
  const berth__shape *weight = &infer->in_shape[1];
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, 1, 3, 3, err));
  BERTH__TRY(berth__same_dim(panels, weight->dim[0], "panels of the output channels and of the weight", &same, err));
  BERTH__TRY(berth__same_dim(rows, weight->dim[1], "taps times channels and rows of the weight", &same, err));
  return berth__same_dim(panel, weight->dim[2], "`panel` and columns of the weight's panels", &same, err);
}

berth_status berth__last_infer_windows(const berth__infer *infer, const berth__window_attrs *window,
                                       const int64_t *kernel, berth__shape *out, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++) {
    const berth__window_axis w = berth__window_axis_of(window, x->rank - 2, axis, x->dim[1 + axis], kernel[axis]);
    BERTH__TRY(berth__window_count(&w, false, axis, &out->dim[1 + axis], err));
  }
  return BERTH_OK;
}

static bool all_are(const berth_attr *list, int64_t value) {
  for (uint32_t k = 0; k < list->count; k++)
    if (list->ints[k] != value) return false;
  return true;
}

bool berth__last_is_pointwise(const berth_attr *attrs) {
  return all_are(&attrs[BERTH__LAST_KERNEL], 1) && all_are(&attrs[BERTH__LAST_STRIDES], 1) &&
         all_are(&attrs[BERTH__LAST_PADS], 0) && attrs[BERTH__LAST_GROUP].i == 1;
}

berth_status berth__last_check_over(const berth_attr *over, bool may, const char *why, berth_error *err) {
  if (over->i == 0 || (over->i == 1 && may)) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "`over` is %" PRId64 "; it is 0, or 1 with %s", over->i, why);
}

static void conv_last_read_call(const berth_op_call *call, const berth__window_attrs *window, const int64_t *kernel,
                                berth__last *last) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const uint32_t spatial = x->rank - 2, missing = BERTH__WINDOW_AXES - spatial;
  berth__window_read(&last->window, window, spatial, x->dim + 1, kernel, out->dim + 1);
  last->images = x->dim[0];
  last->channels = x->dim[x->rank - 1];
  last->outputs = out->dim[out->rank - 1];
  last->image_stride = x->stride[0];
  last->channel_stride = x->stride[x->rank - 1];
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) last->axis_stride[k] = k < missing ? 0 : x->stride[1 + k - missing];
  last->has_bias = berth__call_has(call, BERTH__LAST_BIAS);
}

void berth__last_read(const berth_op_call *call, berth__last *last) {
  const berth__window_attrs window = berth__last_window(call->attrs);
  conv_last_read_call(call, &window, call->attrs[BERTH__LAST_KERNEL].ints, last);
}

void berth__winograd_read(const berth_op_call *call, berth__last *last) {
  const berth__window_attrs window = berth__winograd_window(call->attrs);
  conv_last_read_call(call, &window, (const int64_t[]){3, 3}, last);
}

berth__last_pixel berth__last_pixel_of(const berth__last *last, int64_t item) {
  const berth__window_axis *w = last->window.axis;
  berth__last_pixel pixel;
  for (uint32_t k = BERTH__WINDOW_AXES; k-- > 0; item /= w[k].out) pixel.at[k] = item % w[k].out;
  pixel.image = item;
  return pixel;
}

int64_t berth__last_input(const berth__last *last, const berth__last_pixel *pixel, int64_t tap) {
  int64_t t[BERTH__WINDOW_AXES], index = pixel->image * last->image_stride;
  berth__window_tap(&last->window, tap, t);
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++) {
    const berth__window_axis *w = &last->window.axis[k];
    const int64_t at = berth__window_input(w, pixel->at[k], t[k]);
    if (at < 0 || at >= w->in) return -1;
    index += at * last->axis_stride[k];
  }
  return index;
}

int64_t berth__last_source(const berth__window_axis *w, int64_t at, int64_t tap) {
  const int64_t shifted = at + w->begin - tap * w->dilation;
  return shifted < 0 || shifted % w->stride != 0 || shifted / w->stride >= w->in ? -1 : shifted / w->stride;
}

double berth__last_bias(const berth_op_call *call, const berth__last *last, int64_t output) {
  const berth_tensor *bias = &call->in[BERTH__LAST_BIAS];
  return last->has_bias ? berth__load_f64(bias, output * bias->stride[0]) : 0;
}

int64_t berth__last_column(const berth_tensor *packed, int64_t columns, int64_t group, int64_t column) {
  const int64_t each = columns / group, panel = packed->dim[2], at = column % each;
  const int64_t panels = (each + panel - 1) / panel * (column / each) + at / panel;
  return panels * packed->stride[0] + at % panel * packed->stride[2];
}

/* The product of (at - point[k]) over all points but one. */
static double product_but(const double *point, int64_t n, int64_t but, double at) {
  double product = 1;
  for (int64_t k = 0; k < n; k++)
    if (k != but) product *= at - point[k];
  return product;
}

/* The coefficients of the product of (x - point[k]) over all points but one; but = n: over all. */
static void polynomial_but(const double *point, int64_t n, int64_t but, double *coefficient, int64_t n_coefficients) {
  for (int64_t i = 0; i < n_coefficients; i++) coefficient[i] = i == 0;
  for (int64_t k = 0; k < n; k++) {
    if (k == but) continue;
    for (int64_t i = n_coefficients; i-- > 0;)
      coefficient[i] = (i > 0 ? coefficient[i - 1] : 0) - point[k] * coefficient[i];
  }
}

/* Polynomials are multiplied by their values at the points 0, +-a, +-1/a and infinity; a pair of points and their
 * reciprocals has smaller rounding errors in f32 than 1 and 2. */
void berth__winograd_matrices(int64_t tile, berth__winograd *out) {
  static const double of_two[] = {0, 1, -1};
  const double a = sqrt(0.5), of_four[] = {0, a, -a, 1 / a, -1 / a};
  const double *point = tile == 2 ? of_two : of_four;
  const int64_t n = tile + 1;
  *out = (berth__winograd){.tile = tile, .size = tile + 2};
  for (int64_t i = 0; i < n; i++) {
    polynomial_but(point, n, i, out->input_side[i], n + 1);
    for (int64_t k = 0; k < 3; k++)
      out->kernel_side[i][k] = pow(point[i], (double)k) / product_but(point, n, i, point[i]);
    for (int64_t k = 0; k < tile; k++) out->output_side[k][i] = pow(point[i], (double)k);
  }
  polynomial_but(point, n, n, out->input_side[n], n + 1);
  out->kernel_side[n][2] = 1;
  out->output_side[tile - 1][n] = 1;
}
