/* conv: x [N, C, spatial...], weight [O, C / group, kernel...], bias [O]?, then the summand and the operands of an
 * epilogue (epilogue.h), for f32, f16 and bf16; one to three spatial axes. */
#include "ops/conv.h"
#include "ops/epilogue.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    BERTH__CONV_ATTR_LIST,
    [BERTH__CONV_CODE] = {.name = "code", .kind = BERTH_ATTR_INTS},
    [BERTH__CONV_NUMBERS] = {.name = "numbers", .kind = BERTH_ATTR_FLOATS},
    [BERTH__CONV_ADDS] = BERTH__ADDS_ATTR,
};

static berth_status check_epilogue(const berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  const berth__shape *out = &infer->out_shape[0];
  const berth_type type = infer->in_type[0];
  if (berth__conv_has_epilogue(attr) && type != BERTH_F16 && type != BERTH_BF16)
    BERTH__TRY(berth__want_type(infer, 0, BERTH_F32, err));
  BERTH__TRY(berth__epilogue_check_sum(infer, &attr[BERTH__CONV_ADDS], out, err));
  return berth__epilogue_check(infer, berth__epilogue_first(&attr[BERTH__CONV_ADDS]), &attr[BERTH__CONV_CODE],
                               &attr[BERTH__CONV_NUMBERS], out, err);
}

static berth_status conv_family_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0], *weight = &infer->in_shape[1];
  const berth__window_attrs window = berth__conv_window(infer->attrs);
  BERTH__TRY(berth__conv_check(infer, err));
  BERTH__TRY(berth__conv_check_channels(infer, err));
  BERTH__TRY(berth__conv_check_bias(infer, 2, weight->dim[0], err));
  berth__shape *out = &infer->out_shape[0];
  *out = (berth__shape){.rank = x->rank, .dim = {x->dim[0], weight->dim[0]}};
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++) {
    const berth__window_axis w =
        berth__window_axis_of(&window, x->rank - 2, axis, x->dim[2 + axis], weight->dim[2 + axis]);
    BERTH__TRY(berth__window_count(&w, false, axis, &out->dim[2 + axis], err));
  }
  infer->out_type[0] = infer->in_type[0];
  return check_epilogue(infer, err);
}

/* Applies the epilogue to a line of float sums. */
static void conv_finish(const berth_op_call *call, const berth__epilogue *epilogue, int64_t first, int64_t n) {
  double *sum = call->scratch;
  const bool adds = call->attrs[BERTH__CONV_ADDS].i != 0;
  for (int64_t i = 0; i < n; i++) {
    const double added = adds ? berth__load_f64(&call->in[BERTH__EPILOGUE_SUM], first + i) : 0;
    sum[i] = berth__epilogue_value(epilogue, first + i, sum[i] + added);
  }
}

/* One output line: every tap adds its weights times the input lines of all channels of the group. */
static void conv_convolve(const berth_op_call *call, const berth__conv *c, const berth__epilogue *epilogue,
                          int64_t item) {
  const berth_tensor *x = &call->in[0], *weight = &call->in[1];
  const berth__window_axis *w = c->window.axis;
  const int64_t outputs = weight->dim[0], channels = weight->dim[1];
  const berth__window_line at = berth__window_line_of(&c->window, outputs, item);
  const int64_t group = at.channel / (outputs / call->attrs[BERTH__CONV_GROUP].i);
  berth__conv_start(call, c, at.channel);
  for (int64_t tap = 0; tap < c->taps; tap++) {
    int64_t t[BERTH__WINDOW_AXES], first, last;
    berth__window_tap(&c->window, tap, t);
    berth__window_span(&w[2], t[2], w[2].out, w[2].in, &first, &last);
    const int64_t i0 = berth__window_input(&w[0], at.plane, t[0]), i1 = berth__window_input(&w[1], at.row, t[1]);
    if (i0 < 0 || i0 >= w[0].in || i1 < 0 || i1 >= w[1].in || first == last) continue;
    const int64_t from = (at.image * x->dim[1] + group * channels) * c->area + (i0 * w[1].in + i1) * w[2].in +
                         berth__window_input(&w[2], first, t[2]);
    c->line->add_rows((char *)call->scratch + first * BERTH__LINE_BYTES, 1,
                      berth__element(weight->data, at.channel * channels * c->taps + tap, c->size), c->taps,
                      berth__element(x->data, from, c->size), c->area, w[2].stride, channels, last - first);
  }
  if (berth__conv_has_epilogue(call->attrs)) conv_finish(call, epilogue, item * w[2].out, w[2].out);
  c->line->store(berth__element(call->out[0].data, item * w[2].out, c->size), call->scratch, w[2].out);
}

static berth_status conv_family_kernel(const berth_op_call *call, berth_error *err) {
  berth__conv conv;
  berth__epilogue epilogue;
  berth__conv_read(call, &conv);
  BERTH__TRY(berth__epilogue_read(&epilogue, call, berth__epilogue_first(&call->attrs[BERTH__CONV_ADDS]),
                                  &call->attrs[BERTH__CONV_CODE], &call->attrs[BERTH__CONV_NUMBERS], err));
  for (int64_t item = call->begin; item < call->end; item++) conv_convolve(call, &conv, &epilogue, item);
  return BERTH_OK;
}

static uint32_t conv_in_place_of(const berth_attr *attr) { return berth__epilogue_in_place(&attr[BERTH__CONV_ADDS]); }

const berth__family berth__family_conv = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .in_place_of = conv_in_place_of,
    .may_lack = 1u << 2,
    .infer = conv_family_infer,
    .items = berth__window_items,
    .scratch = berth__conv_scratch,
    .kernel = conv_family_kernel,
};
