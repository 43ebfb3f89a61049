/* Gradients of pooling. That of a maximum goes to its position; those of averages and norms go to all elements of their
 * windows: a conv_transpose with a kernel of ones, per image and channel. */
#include "grad/grad.h"
#include "ops/pool.h"

/* If the node has channels last, moves them to the second axis, for x and everything of its layout; and back. */
static berth_value grad_channels_second(berth__grad *d, berth_value a) {
  const bool is_last = d->node.attrs[BERTH__POOL_CHANNELS_LAST].i != 0;
  return is_last && berth__grad_ok(d) ? berth__grad_move_axis(d, a, berth__grad_rank(d, a) - 1, 1) : a;
}

static void grad_give_pooled(berth__grad *d, berth_value dx) {
  const bool is_last = d->node.attrs[BERTH__POOL_CHANNELS_LAST].i != 0;
  if (is_last && berth__grad_ok(d)) dx = berth__grad_move_axis(d, dx, 1, berth__grad_rank(d, dx) - 1);
  berth__grad_give(d, 0, dx);
}

/* The windows of every spatial axis. */
static bool grad_read_pool(berth__grad *d, const berth__shape *x, const berth__shape *y, berth__window_axis *axis) {
  const berth__window_attrs attrs = berth__pool_window(d->node.attrs);
  const berth_attr *kernel = &d->node.attrs[BERTH__POOL_KERNEL];
  for (uint32_t i = 0; i + 2 < x->rank; i++) {
    axis[i] = berth__window_axis_of(&attrs, x->rank - 2, i, x->dim[2 + i], kernel->ints[i]);
    axis[i].out = y->dim[2 + i];
  }
  return berth__grad_ok(d);
}

/* The indices of the maxima: the node's own if they have the right form, otherwise recomputed. */
static berth_value grad_pool_places(berth__grad *d, berth_value x) {
  if (d->node.n_out > 1 && d->node.attrs[BERTH__POOL_STORAGE_ORDER].i == 0) return d->node.out[1];
  berth_attr attrs[BERTH__POOL_CHANNELS_LAST + 1];
  berth_value out[2];
  memcpy(attrs, d->node.attrs, sizeof attrs);
  attrs[BERTH__POOL_CHANNELS_LAST].i = 0;
  attrs[BERTH__POOL_STORAGE_ORDER].i = 0;
  berth__grad_ops(d, BERTH__OP_max_pool, &x, 1, attrs, BERTH__POOL_CHANNELS_LAST + 1, out, 2);
  return out[1];
}

void berth__grad_of_max_pool(berth__grad *d) {
  const berth_value x = grad_channels_second(d, berth__grad_in(d, 0)), dy = grad_channels_second(d, berth__grad_dy(d));
  const berth__shape shape = berth__grad_shape(d, x), of_y = berth__grad_shape(d, dy);
  int64_t count = 0, windows = 0;
  const berth_attr attr = berth_attr_string("reduction", "add");
  if (!berth__grad_fixed(d, x) || !berth__shape_count(&shape, &count) || !berth__shape_count(&of_y, &windows)) return;
  const berth__shape flat = {.rank = 1, .dim = {count}}, line = {.rank = 1, .dim = {windows}};
  const berth_value places = berth__grad_reshape(d, grad_pool_places(d, x), &line);
  const berth_value zero = berth__grad_scalar(d, BERTH_I64, 0),
                    none = berth__grad_scalar(d, berth__grad_type(d, dy), 0);
  const berth_value found = berth__grad_2(d, BERTH__OP_ge, places, zero); /* a window of only padding has no maximum */
  const berth_value in[] = {berth__grad_reshape(d, berth__grad_zeros_like(d, x), &flat),
                            berth__grad_2(d, BERTH__OP_max, places, zero),
                            berth__grad_where(d, found, berth__grad_reshape(d, dy, &line), none)};
  const berth_value dx = berth__grad_op(d, BERTH__OP_scatter, in, 3, &attr, 1);
  grad_give_pooled(d, berth__grad_reshape(d, dx, &shape));
}

/* Sums dy [N, C, out...] over the windows: [N, C, in...]. */
static berth_value grad_spread_pool(berth__grad *d, const berth__window_axis *axis, berth_value dy,
                                    const berth__shape *x) {
  const uint32_t spatial = x->rank - 2;
  const berth__shape of_dy = berth__grad_shape(d, dy);
  berth__shape single = {.rank = x->rank, .dim = {of_dy.dim[0] * of_dy.dim[1], 1}};
  int64_t strides[BERTH__WINDOW_AXES], dilations[BERTH__WINDOW_AXES], pads[2 * BERTH__WINDOW_AXES];
  int64_t extra[BERTH__WINDOW_AXES];
  berth_dim kernel[BERTH_MAX_RANK] = {{NULL, 1}, {NULL, 1}};
  for (uint32_t i = 0; i < spatial; i++) {
    const berth__window_axis *a = &axis[i];
    const int64_t over = (a->out - 1) * a->stride + (a->kernel - 1) * a->dilation + 1 - a->begin - a->in;
    single.dim[2 + i] = of_dy.dim[2 + i];
    strides[i] = a->stride;
    dilations[i] = a->dilation;
    pads[i] = a->begin;
    pads[spatial + i] = over > 0 ? over : 0;
    extra[i] = over < 0 ? -over : 0;
    kernel[2 + i].extent = a->kernel;
  }
  const berth_attr shape = berth_attr_dims("shape", kernel, x->rank);
  const berth_value one = berth__grad_scalar(d, berth__grad_type(d, dy), 1);
  const berth_value in[] = {berth__grad_reshape(d, dy, &single),
                            berth__grad_op(d, BERTH__OP_expand, &one, 1, &shape, 1)};
  const berth_attr attrs[4] = {
      berth_attr_ints("strides", strides, spatial), berth_attr_ints("dilations", dilations, spatial),
      berth_attr_ints("pads", pads, 2 * spatial), berth_attr_ints("output_padding", extra, spatial)};
  return berth__grad_reshape(d, berth__grad_op(d, BERTH__OP_conv_transpose, in, 2, attrs, 4), x);
}

/* The number of elements of window k that count along an axis. */
static double grad_counted(const berth__window_axis *a, int64_t k, bool with_pads) {
  double n = 0;
  for (int64_t tap = 0; tap < a->kernel; tap++) {
    const int64_t at = berth__window_input(a, k, tap);
    n += with_pads ? at >= -a->begin && at < a->in + a->end : at >= 0 && at < a->in;
  }
  return n;
}

/* 1 / the number of elements that count in each window: a factor per spatial axis. */
static berth_value grad_average_shares(berth__grad *d, berth_value dy, const berth__window_axis *axis, uint32_t rank) {
  const bool with_pads = d->node.attrs[BERTH__POOL_COUNT_INCLUDE_PAD].i != 0;
  for (uint32_t i = 0; i + 2 < rank && berth__grad_ok(d); i++) {
    int64_t dim[BERTH_MAX_RANK];
    double *share = berth__alloc_array(d->graph->ctx, (size_t)axis[i].out, sizeof *share);
    if (share == NULL) {
      d->status = berth__fail_nomem(d->err, "a gradient");
      return dy;
    }
    for (int64_t k = 0; k < axis[i].out; k++) {
      const double n = grad_counted(&axis[i], k, with_pads);
      share[k] = n == 0 ? 0 : 1 / n;
    }
    dim[0] = axis[i].out;
    for (uint32_t k = i + 1; k + 2 < rank; k++) dim[k - i] = 1;
    const berth_value factor = berth__grad_tensor(d, berth__grad_type(d, dy), rank - 2 - i, dim, share);
    berth__free(d->graph->ctx, share);
    dy = berth__grad_mul(d, dy, factor);
  }
  return dy;
}

void berth__grad_of_avg_pool(berth__grad *d) {
  const berth_value x = grad_channels_second(d, berth__grad_in(d, 0)), dy = grad_channels_second(d, berth__grad_dy(d));
  const berth__shape shape = berth__grad_shape(d, x), of_y = berth__grad_shape(d, dy);
  berth__window_axis axis[BERTH__WINDOW_AXES];
  if (!berth__grad_fixed(d, x) || !grad_read_pool(d, &shape, &of_y, axis)) return;
  grad_give_pooled(d, grad_spread_pool(d, axis, grad_average_shares(d, dy, axis, shape.rank), &shape));
}

/* y = (sum |x|^p)^(1/p): sign(x) |x|^(p - 1) times the sum of dy y^(1 - p) over the windows of x; 0 where y is 0. */
void berth__grad_of_lp_pool(berth__grad *d) {
  const berth_value x = grad_channels_second(d, berth__grad_in(d, 0)), dy = grad_channels_second(d, berth__grad_dy(d));
  const berth_value y = grad_channels_second(d, berth__grad_out(d));
  const berth__shape shape = berth__grad_shape(d, x), of_y = berth__grad_shape(d, dy);
  const double p = (double)d->node.attrs[BERTH__POOL_P].i;
  berth__window_axis axis[BERTH__WINDOW_AXES];
  if (!berth__grad_fixed(d, x) || !grad_read_pool(d, &shape, &of_y, axis)) return;
  const berth_type type = berth__grad_type(d, x);
  const berth_value zero = berth__grad_scalar(d, type, 0), one = berth__grad_scalar(d, type, 1);
  const berth_value some = berth__grad_2(d, BERTH__OP_gt, y, zero);
  const berth_value power = berth__grad_num(d, BERTH__OP_pow, berth__grad_where(d, some, y, one), 1 - p);
  const berth_value share = berth__grad_where(d, some, berth__grad_mul(d, dy, power), zero);
  const berth_value size = berth__grad_num(d, BERTH__OP_pow, berth__grad_1(d, BERTH__OP_abs, x), p - 1);
  const berth_value slope = berth__grad_mul(d, berth__grad_1(d, BERTH__OP_sign, x), size);
  grad_give_pooled(d, berth__grad_mul(d, slope, grad_spread_pool(d, axis, share, &shape)));
}
