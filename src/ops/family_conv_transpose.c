/* conv_transpose: x [N, C, spatial...], weight [C, O / group, kernel...], bias [O]?; one to three spatial axes. Every
 * input element adds its window of weights to the output; here every output line gathers what contributes to it. */
#include <inttypes.h>

#include "ops/conv.h"
#include "ops/registry.h"

enum {
  OUTPUT_PADDING = BERTH__CONV_ATTRS,
  OUTPUT_SHAPE
};
static const berth_attr attrs[] = {
    BERTH__CONV_ATTR_LIST, [BERTH__CONV_TRANSPOSE_OUTPUT_PADDING] = {.name = "output_padding", .kind = BERTH_ATTR_INTS},
    [BERTH__CONV_TRANSPOSE_OUTPUT_SHAPE] = {.name = "output_shape",
                                            .kind = BERTH_ATTR_INTS}, /* spatial extents; pads follow from them */
};

static int64_t extra_of(const berth_attr *attr, uint32_t axis) {
  return attr[OUTPUT_PADDING].count != 0 ? attr[OUTPUT_PADDING].ints[axis] : 0;
}

static berth_status check_channels(const berth__infer *infer, berth_error *err) {
  const int64_t group = infer->attrs[BERTH__CONV_GROUP].i, channels = infer->in_shape[0].dim[1];
  const int64_t expected = infer->in_shape[1].dim[0];
  if (berth__dim_is_fixed(expected) && berth__dim_is_fixed(channels) && expected != channels)
    return berth__fail(err, BERTH_INVALID, "the weight expects %" PRId64 " input channels but the input has %" PRId64,
                       expected, channels);
  if (berth__dim_is_fixed(channels) && channels % group != 0)
    return berth__fail(err, BERTH_INVALID, "the input's %" PRId64 " channels do not split into %" PRId64 " groups",
                       channels, group);
  return BERTH_OK;
}

/* The output before cropping by pads: (in - 1) * stride + reach + extra. */
static berth_status whole_extent(const berth__window_axis *w, int64_t extra, uint32_t axis, int64_t *out,
                                 berth_error *err) {
  int64_t reach, steps;
  if (w->in == 0 || w->kernel == 0)
    return berth__fail(err, BERTH_INVALID, "spatial axis %" PRIu32 " of the input or of the kernel is empty", axis);
  if (!berth__window_reach(w, &reach))
    return berth__fail(err, BERTH_INVALID,
                       "a kernel of %" PRId64 " with dilation %" PRId64 " on spatial axis %" PRIu32 " is too large",
                       w->kernel, w->dilation, axis);
  BERTH__TRY(berth__dim_mul(w->in - 1, w->stride, &steps, err));
  BERTH__TRY(berth__dim_add(steps, reach, out, err));
  return berth__dim_add(*out, extra, out, err);
}

/* With `output_shape` or `auto_pad` the extent is given, and determines the pads; `auto_pad` only crops. */
static berth_status conv_transpose_extent(const berth__infer *infer, uint32_t axis, int64_t *out, berth_error *err) {
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const berth__window_axis w =
      berth__window_axis_of(&window, x->rank - 2, axis, x->dim[2 + axis], weight->dim[2 + axis]);
  int64_t padding, whole = 0;
  *out = infer->attrs[OUTPUT_SHAPE].count != 0 ? infer->attrs[OUTPUT_SHAPE].ints[axis] : BERTH__DIM_UNKNOWN;
  if (infer->attrs[OUTPUT_SHAPE].count == 0 && berth__window_is_auto(&window))
    BERTH__TRY(berth__dim_mul(w.in, w.stride, out, err));
  if (!berth__dim_is_fixed(w.in) || !berth__dim_is_fixed(w.kernel)) return BERTH_OK;
  BERTH__TRY(whole_extent(&w, extra_of(infer->attrs, axis), axis, &whole, err));
  if (infer->attrs[OUTPUT_SHAPE].count != 0) return BERTH_OK;
  if (berth__window_is_auto(&window)) return *out = *out < whole ? *out : whole, BERTH_OK;
  BERTH__TRY(berth__dim_add(w.begin, w.end, &padding, err));
  if (padding > whole)
    return berth__fail(err, BERTH_INVALID,
                       "pads take %" PRId64 " elements off spatial axis %" PRIu32 " of the output, which has %" PRId64,
                       padding, axis, whole);
  *out = whole - padding;
  return BERTH_OK;
}

static berth_status conv_transpose_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  int64_t outputs = 0;
  BERTH__TRY(berth__conv_check(infer, err));
  BERTH__TRY(berth__window_check_list(&infer->attrs[OUTPUT_PADDING], x->rank - 2, 0, err));
  BERTH__TRY(berth__window_check_list(&infer->attrs[OUTPUT_SHAPE], x->rank - 2, 1, err));
  if (infer->attrs[OUTPUT_SHAPE].count != 0 && infer->attrs[BERTH__CONV_PADS].count != 0)
    return berth__fail(err, BERTH_INVALID, "`pads` are given beside `output_shape`, which they follow from");
  BERTH__TRY(check_channels(infer, err));
  BERTH__TRY(berth__dim_mul(weight->dim[1], infer->attrs[BERTH__CONV_GROUP].i, &outputs, err));
  BERTH__TRY(berth__conv_check_bias(infer, 2, outputs, err));
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = x->rank, .dim = {x->dim[0], outputs}};
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++)
    BERTH__TRY(conv_transpose_extent(infer, axis, &out->dim[2 + axis], err));
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* The input whose window has tap `tap` at output element `at`; -1: none. */
static int64_t input_of(const berth__window_axis *w, int64_t at, int64_t tap) {
  const int64_t shifted = at + w->begin - tap * w->dilation;
  return shifted < 0 || shifted % w->stride != 0 || shifted / w->stride >= w->in ? -1 : shifted / w->stride;
}

static void conv_transpose_collect(const berth_op_call *call, const berth__conv *c, int64_t item) {
  const berth_tensor *x = &call->in[0], *weight = &call->in[1];
  const berth__window_axis *w = c->window.axis;
  const int64_t each = weight->dim[1], channels = x->dim[1] / call->attrs[BERTH__CONV_GROUP].i;
  const berth__window_line at = berth__window_line_of(&c->window, call->out[0].dim[1], item);
  const int64_t group = at.channel / each;
  berth__conv_start(call, c, at.channel);
  for (int64_t tap = 0; tap < c->taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, last;
    berth__window_tap(&c->window, tap, t);
    berth__window_span(&w[2], t[2], w[2].in, w[2].out, &first, &last);
    const int64_t i0 = input_of(&w[0], at.plane, t[0]), i1 = input_of(&w[1], at.row, t[1]);
    if (i0 < 0 || i1 < 0 || first == last) continue;
    const int64_t from = (at.image * x->dim[1] + group * channels) * c->area + (i0 * w[1].in + i1) * w[2].in + first;
    const int64_t factor = (group * channels * each + at.channel % each) * c->taps + tap;
    c->line->add_rows((char *)call->scratch + berth__window_input(&w[2], first, t[2]) * BERTH__LINE_BYTES, w[2].stride,
                      berth__element(weight->data, factor, c->size), each * c->taps,
                      berth__element(x->data, from, c->size), c->area, 1, channels, last - first);
  }
  c->line->store(berth__element(call->out[0].data, item * w[2].out, c->size), call->scratch, w[2].out);
}

/* Pads determined by the output's extent: excess is cropped at both ends; missing elements are at the end. */
static void place_output(const berth_op_call *call, berth__conv *conv) {
  const berth__window_attrs window = berth__conv_window(call->attrs);
  const uint32_t spatial = call->in[0].rank - 2;
  if (call->attrs[OUTPUT_SHAPE].count == 0 && !berth__window_is_auto(&window)) return;
  for (uint32_t axis = 0; axis < spatial; axis++) {
    berth__window_axis *w = &conv->window.axis[BERTH__WINDOW_AXES - spatial + axis];
    int64_t whole = 0;
    (void)whole_extent(w, extra_of(call->attrs, axis), axis, &whole, NULL); /* inference has checked this */
    berth__window_split_pad(&window, whole > w->out ? whole - w->out : 0, &w->begin, &w->end);
  }
}

void berth__conv_read_transposed(const berth_op_call *call, berth__conv *conv) {
  berth__conv_read(call, conv);
  place_output(call, conv);
}

static berth_status conv_transpose_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  berth__conv conv;
  berth__conv_read_transposed(call, &conv);
  for (int64_t item = call->begin; item < call->end; item++) conv_transpose_collect(call, &conv, item);
  return BERTH_OK;
}

const berth__family berth__family_conv_transpose = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = conv_transpose_infer,
    .items = berth__window_items,
    .scratch = berth__conv_scratch,
    .kernel = conv_transpose_kernel,
};
