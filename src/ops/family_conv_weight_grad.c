/* conv_weight_grad: the gradient of a convolution's weight [O, C / group, kernel...] from x [N, C, spatial...] and the
 * gradient dy [N, O, out...] of its result; both with channels last if `channels_last` is 1. Element (o, c, tap) is the
 * sum over all images and positions of dy's channel o times the element of x under the tap, in channel c of o's group.
 * dy may have fewer positions than there are windows. Items are elements of the result; sums in f64. */
#include "ops/conv_weight_grad.h"

#include <inttypes.h>

#include "ops/elementwise.h"
#include "ops/registry.h"

static const berth_attr conv_weight_grad_attrs[] = {
    BERTH__CONV_ATTR_LIST,
    [BERTH__WEIGHT_GRAD_KERNEL] = {.name = "kernel", .kind = BERTH_ATTR_INTS},
    [BERTH__WEIGHT_GRAD_CHANNELS_LAST] = {.name = "channels_last", .kind = BERTH_ATTR_INT},
};

static bool conv_weight_grad_is_last(const berth_attr *attrs) { return attrs[BERTH__WEIGHT_GRAD_CHANNELS_LAST].i != 0; }

static berth_status conv_weight_grad_check(const berth__infer *infer, berth_error *err) {
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  const uint32_t rank = infer->in_shape[BERTH__WEIGHT_GRAD_X].rank;
  int64_t same;
  BERTH__TRY(berth__want_float(infer, BERTH__WEIGHT_GRAD_X, err));
  BERTH__TRY(berth__want_same_type(infer, BERTH__WEIGHT_GRAD_X, BERTH__WEIGHT_GRAD_DY, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__WEIGHT_GRAD_X, 3, 2 + BERTH__WINDOW_AXES, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__WEIGHT_GRAD_DY, rank, rank, err));
  BERTH__TRY(berth__window_check(&window, rank - 2, err));
  BERTH__TRY(berth__window_check_list(&infer->attrs[BERTH__WEIGHT_GRAD_KERNEL], rank - 2, 1, err));
  if (infer->attrs[BERTH__WEIGHT_GRAD_KERNEL].count == 0)
    return berth__fail(err, BERTH_INVALID, "attribute 'kernel' is empty, expected an extent for each spatial axis");
  return berth__same_dim(infer->in_shape[BERTH__WEIGHT_GRAD_X].dim[0], infer->in_shape[BERTH__WEIGHT_GRAD_DY].dim[0],
                         "x and dy", &same, err);
}

/* Divides channels into groups. */
static berth_status conv_weight_grad_divide(int64_t channels, int64_t group, const char *what, int64_t *out,
                                            berth_error *err) {
  *out = BERTH__DIM_UNKNOWN;
  if (group < 1) return berth__fail(err, BERTH_INVALID, "attribute 'group' is %" PRId64 ", expected at least 1", group);
  if (!berth__dim_is_fixed(channels)) return BERTH_OK;
  if (channels % group != 0)
    return berth__fail(err, BERTH_INVALID, "the %" PRId64 " channels of %s do not split into %" PRId64 " groups",
                       channels, what, group);
  *out = channels / group;
  return BERTH_OK;
}

/* dy must not have more positions than there are windows. */
static berth_status conv_weight_grad_check_places(const berth__infer *infer, uint32_t axis, uint32_t at,
                                                  berth_error *err) {
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  const berth__shape *x = &infer->in_shape[BERTH__WEIGHT_GRAD_X], *dy = &infer->in_shape[BERTH__WEIGHT_GRAD_DY];
  const berth__window_axis w =
      berth__window_axis_of(&window, x->rank - 2, axis, x->dim[at], infer->attrs[BERTH__WEIGHT_GRAD_KERNEL].ints[axis]);
  int64_t windows;
  BERTH__TRY(berth__window_count(&w, false, axis, &windows, err));
  if (!berth__dim_is_fixed(windows) || !berth__dim_is_fixed(dy->dim[at]) || dy->dim[at] <= windows) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "dy has %" PRId64 " places on spatial axis %" PRIu32 ", where there are %" PRId64 " windows",
                     dy->dim[at], axis, windows);
}

static berth_status conv_weight_grad_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__WEIGHT_GRAD_X], *dy = &infer->in_shape[BERTH__WEIGHT_GRAD_DY];
  const bool is_last = conv_weight_grad_is_last(infer->attrs);
  const int64_t group = infer->attrs[BERTH__CONV_GROUP].i;
  int64_t each;
  BERTH__TRY(conv_weight_grad_check(infer, err));
  const uint32_t rank = x->rank, channel = is_last ? rank - 1 : 1;
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = rank, .dim = {dy->dim[channel]}};
  BERTH__TRY(conv_weight_grad_divide(x->dim[channel], group, "x", &out->dim[1], err));
  BERTH__TRY(conv_weight_grad_divide(dy->dim[channel], group, "dy", &each, err));
  for (uint32_t k = 0; k + 2 < rank; k++) {
    BERTH__TRY(conv_weight_grad_check_places(infer, k, is_last ? 1 + k : 2 + k, err));
    out->dim[2 + k] = infer->attrs[BERTH__WEIGHT_GRAD_KERNEL].ints[k];
  }
  infer->out_type[0] = infer->in_type[BERTH__WEIGHT_GRAD_X];
  return BERTH_OK;
}

static void conv_weight_grad_place(const berth_tensor *t, bool is_last, berth__weight_grad_operand *out) {
  const uint32_t spatial = t->rank - 2, missing = BERTH__WINDOW_AXES - spatial;
  out->image = t->stride[0];
  out->channel = t->stride[is_last ? t->rank - 1 : 1];
  for (uint32_t k = 0; k < BERTH__WINDOW_AXES; k++)
    out->axis[k] = k < missing ? 0 : t->stride[k - missing + (is_last ? 1 : 2)];
}

void berth__weight_grad_of(const berth_op_call *call, berth__weight_grad *out) {
  const berth_tensor *x = &call->in[BERTH__WEIGHT_GRAD_X], *dy = &call->in[BERTH__WEIGHT_GRAD_DY];
  const berth__window_attrs window = berth__conv_window(call->attrs);
  const bool is_last = conv_weight_grad_is_last(call->attrs);
  const uint32_t first = is_last ? 1 : 2, channel = is_last ? x->rank - 1 : 1;
  berth__window_read(&out->window, &window, x->rank - 2, x->dim + first, call->attrs[BERTH__WEIGHT_GRAD_KERNEL].ints,
                     dy->dim + first);
  out->images = x->dim[0];
  out->channels = x->dim[channel];
  out->outputs = dy->dim[channel];
  out->group = call->attrs[BERTH__CONV_GROUP].i;
  out->taps = berth__window_taps(&out->window);
  conv_weight_grad_place(x, is_last, &out->x);
  conv_weight_grad_place(dy, is_last, &out->dy);
}

/* The products of a line of dy with the elements of x under the tap. */
static double conv_weight_grad_line(const berth_op_call *call, const berth__weight_grad *g, int64_t x, int64_t dy,
                                    int64_t tap) {
  const berth__window_axis *w = &g->window.axis[2];
  int64_t first, last;
  double sum = 0;
  berth__window_span(w, tap, w->out, w->in, &first, &last);
  for (int64_t i = first; i < last; i++)
    sum += berth__load_f64(&call->in[BERTH__WEIGHT_GRAD_X], x + berth__window_input(w, i, tap) * g->x.axis[2]) *
           berth__load_f64(&call->in[BERTH__WEIGHT_GRAD_DY], dy + i * g->dy.axis[2]);
  return sum;
}

static double conv_weight_grad_element(const berth_op_call *call, const berth__weight_grad *g, int64_t item) {
  const berth__window_axis *w = g->window.axis;
  const int64_t each = g->channels / g->group, output = item / g->taps / each;
  const int64_t channel = output / (g->outputs / g->group) * each + item / g->taps % each;
  int64_t tap[BERTH__WINDOW_AXES];
  double sum = 0;
  berth__window_tap(&g->window, item % g->taps, tap);
  for (int64_t line = 0; line < g->images * w[0].out * w[1].out; line++) {
    const int64_t image = line / w[1].out / w[0].out, o0 = line / w[1].out % w[0].out, o1 = line % w[1].out;
    const int64_t i0 = berth__window_input(&w[0], o0, tap[0]), i1 = berth__window_input(&w[1], o1, tap[1]);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in) continue;
    sum += conv_weight_grad_line(
        call, g, image * g->x.image + channel * g->x.channel + i0 * g->x.axis[0] + i1 * g->x.axis[1],
        image * g->dy.image + output * g->dy.channel + o0 * g->dy.axis[0] + o1 * g->dy.axis[1], tap[2]);
  }
  return sum;
}

static berth_status conv_weight_grad_kernel(const berth_op_call *call, berth_error *err) {
  berth__weight_grad g;
  (void)err;
  berth__weight_grad_of(call, &g);
  for (int64_t item = call->begin; item < call->end; item++)
    berth__store_f64(&call->out[0], item, conv_weight_grad_element(call, &g, item));
  return BERTH_OK;
}

const berth__family berth__family_conv_weight_grad = {.attrs = conv_weight_grad_attrs,
                                                      .n_attrs = sizeof conv_weight_grad_attrs / sizeof(berth_attr),
                                                      .required = 1u << BERTH__WEIGHT_GRAD_KERNEL,
                                                      .infer = conv_weight_grad_infer,
                                                      .items = berth__items_elements,
                                                      .kernel = conv_weight_grad_kernel};
