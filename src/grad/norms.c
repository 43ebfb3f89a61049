/* Gradients of norms. With n = (x - mean) / deviation: the gradient by n, minus its mean and minus n times the mean of
 * its product with n, all divided by the deviation. layer_norm_grad does that in one op; it is expanded here for second
 * derivatives. */
#include "grad/grad.h"

/* The normalised values and axes. */
typedef struct normed {
  berth_value x;
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n_axes;
  double epsilon;
  bool is_centred;           /* not for rms_norm */
  berth_value n, rdeviation; /* normalised x; 1 / deviation */
} normed;

static berth_value grad_norm_mean(berth__grad *d, const normed *s, berth_value a) {
  return berth__grad_reduce(d, BERTH__OP_reduce_mean, a, s->axes, s->n_axes, true);
}

static void grad_normalise(berth__grad *d, normed *s) {
  const berth_value x = s->is_centred ? berth__grad_sub(d, s->x, grad_norm_mean(d, s, s->x)) : s->x;
  const berth_value square = grad_norm_mean(d, s, berth__grad_mul(d, x, x));
  s->rdeviation = berth__grad_1(d, BERTH__OP_rsqrt, berth__grad_num(d, BERTH__OP_add, square, s->epsilon));
  s->n = berth__grad_mul(d, x, s->rdeviation);
}

/* The gradient by x from the gradient by n. */
static berth_value grad_norm_back(berth__grad *d, const normed *s, berth_value dn) {
  const berth_value along = grad_norm_mean(d, s, berth__grad_mul(d, dn, s->n));
  berth_value rest = berth__grad_sub(d, dn, berth__grad_mul(d, s->n, along));
  if (s->is_centred) rest = berth__grad_sub(d, rest, grad_norm_mean(d, s, dn));
  return berth__grad_mul(d, s->rdeviation, rest);
}

static normed grad_normed_of(berth__grad *d, bool is_centred) {
  const berth_value x = berth__grad_in(d, BERTH__NORM_X);
  const uint32_t rank = berth__grad_rank(d, x);
  normed s = {.x = x, .epsilon = d->node.attrs[BERTH__LAYER_NORM_EPSILON].f, .is_centred = is_centred};
  for (uint32_t i = berth__grad_axis(d, d->node.attrs[BERTH__LAYER_NORM_AXIS].i, rank); i < rank; i++)
    s.axes[s.n_axes++] = i;
  return s;
}

/* layer_norm and rms_norm: use their gradient ops. */
void berth__grad_of_layer_norm(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__NORM_X), dy = berth__grad_dy(d);
  const bool is_centred = d->node.op->code == BERTH__OP_layer_norm, has_bias = berth__grad_wants(d, BERTH__NORM_BIAS);
  const uint32_t n_attrs = d->node.op->family->n_attrs;
  if (berth__grad_wants(d, BERTH__NORM_SCALE)) {
    const berth_value in[] = {x, dy};
    berth_value out[2];
    berth__grad_ops(d, is_centred ? BERTH__OP_layer_norm_scale_grad : BERTH__OP_rms_norm_scale_grad, in, 2,
                    d->node.attrs, n_attrs, out, has_bias ? 2 : 1);
    berth__grad_give(d, BERTH__NORM_SCALE, out[0]);
    if (has_bias) berth__grad_give(d, BERTH__NORM_BIAS, out[1]);
  } else {
    berth__grad_give(d, BERTH__NORM_BIAS, dy);
  }
  if (!berth__grad_wants(d, BERTH__NORM_X)) return;
  const bool has_scale = berth__grad_has(d, BERTH__NORM_SCALE);
  const berth_value in[] = {x, has_scale ? berth__grad_in(d, BERTH__NORM_SCALE) : BERTH_VALUE_NONE, dy};
  const berth__op_code op = is_centred ? BERTH__OP_layer_norm_grad : BERTH__OP_rms_norm_grad;
  berth__grad_give(d, BERTH__NORM_X, berth__grad_op(d, op, in, 3, d->node.attrs, n_attrs));
}

/* Expanded, for second derivatives. */
void berth__grad_of_layer_norm_grad(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  normed s = grad_normed_of(d, d->node.op->code == BERTH__OP_layer_norm_grad);
  const berth_value dy = berth__grad_in(d, BERTH__NORM_GRAD_DY);
  grad_normalise(d, &s);
  const bool has_scale = berth__grad_has(d, BERTH__NORM_SCALE);
  const berth_value dn = has_scale ? berth__grad_mul(d, dy, berth__grad_in(d, BERTH__NORM_SCALE)) : dy;
  const berth_value out = grad_norm_back(d, &s, dn);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &out);
}

/* The sum over all axes before the normalised ones. */
static berth_value grad_sum_rows(berth__grad *d, const normed *s, berth_value a) {
  int64_t axes[BERTH_MAX_RANK];
  const uint32_t n = berth__grad_rank(d, a) - s->n_axes;
  for (uint32_t i = 0; i < n; i++) axes[i] = i;
  return n == 0 ? berth__grad_1(d, BERTH__OP_identity, a)
                : berth__grad_reduce(d, BERTH__OP_reduce_sum, a, axes, n, false);
}

void berth__grad_of_norm_scale_grad(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  normed s = grad_normed_of(d, d->node.op->code == BERTH__OP_layer_norm_scale_grad);
  const berth_value dy = berth__grad_in(d, BERTH__NORM_SCALE_GRAD_DY);
  berth_value out[2] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  grad_normalise(d, &s);
  out[0] = grad_sum_rows(d, &s, berth__grad_mul(d, dy, s.n));
  if (d->node.n_out > 1) out[1] = grad_sum_rows(d, &s, dy);
  if (berth__grad_ok(d)) berth__grad_through(d, first, out);
}

/* A vector of channels, reshaped to broadcast with x [N, C, ...]. */
static berth_value grad_per_channel(berth__grad *d, berth_value vector, uint32_t rank) {
  int64_t axes[BERTH_MAX_RANK];
  for (uint32_t i = 1; i + 1 < rank; i++) axes[i - 1] = i;
  return rank <= 2 ? vector : berth__grad_unsqueeze(d, vector, axes, rank - 2);
}

/* Sums over all axes except the channels, which are the second. */
static berth_value grad_sum_channels(berth__grad *d, berth_value a) {
  const uint32_t rank = berth__grad_rank(d, a);
  int64_t axes[BERTH_MAX_RANK];
  uint32_t n = 0;
  for (uint32_t i = 0; i < rank; i++)
    if (i != 1) axes[n++] = i;
  return berth__grad_reduce(d, BERTH__OP_reduce_sum, a, axes, n, false);
}

void berth__grad_of_group_norm(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__NORM_X), dy = berth__grad_dy(d);
  const berth__shape shape = berth__grad_shape(d, x);
  int64_t count = 0;
  const int64_t groups = d->node.attrs[BERTH__GROUP_NORM_GROUPS].i;
  if (!berth__grad_fixed(d, x) || !berth__shape_count(&shape, &count)) return;
  const int64_t lines = shape.dim[0] * groups;
  const berth__shape grouped = {.rank = 3, .dim = {shape.dim[0], groups, lines == 0 ? 0 : count / lines}};
  const berth_value x_grouped = berth__grad_reshape(d, x, &grouped);
  const berth_attr epsilon = berth_attr_float("epsilon", d->node.attrs[BERTH__GROUP_NORM_EPSILON].f);
  if (berth__grad_wants(d, BERTH__NORM_BIAS)) berth__grad_give(d, BERTH__NORM_BIAS, grad_sum_channels(d, dy));
  if (berth__grad_wants(d, BERTH__NORM_SCALE)) {
    const berth_value n = berth__grad_op(d, BERTH__OP_layer_norm, &x_grouped, 1, &epsilon, 1);
    berth__grad_give(d, BERTH__NORM_SCALE,
                     grad_sum_channels(d, berth__grad_mul(d, dy, berth__grad_reshape(d, n, &shape))));
  }
  if (!berth__grad_wants(d, BERTH__NORM_X)) return;
  berth_value dn = dy;
  if (berth__grad_has(d, BERTH__NORM_SCALE))
    dn = berth__grad_mul(d, dy, grad_per_channel(d, berth__grad_in(d, BERTH__NORM_SCALE), shape.rank));
  const berth_value in[] = {x_grouped, BERTH_VALUE_NONE, berth__grad_reshape(d, dn, &grouped)};
  const berth_value dx = berth__grad_op(d, BERTH__OP_layer_norm_grad, in, 3, &epsilon, 1);
  berth__grad_give(d, BERTH__NORM_X, berth__grad_reshape(d, dx, &shape));
}

/* With given statistics it is plain arithmetic, which is expanded. */
void berth__grad_of_batch_norm(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__NORM_X);
  const uint32_t rank = berth__grad_rank(d, x);
  berth_value vector[BERTH__NORM_VARIANCE + 1];
  for (uint32_t i = BERTH__NORM_SCALE; i <= BERTH__NORM_VARIANCE; i++)
    vector[i] = grad_per_channel(d, berth__grad_in(d, i), rank);
  const double epsilon = d->node.attrs[BERTH__BATCH_NORM_EPSILON].f;
  const berth_value variance = berth__grad_num(d, BERTH__OP_add, vector[BERTH__NORM_VARIANCE], epsilon);
  const berth_value factor = berth__grad_mul(d, vector[BERTH__NORM_SCALE], berth__grad_1(d, BERTH__OP_rsqrt, variance));
  const berth_value centred = berth__grad_sub(d, x, vector[BERTH__NORM_MEAN]);
  const berth_value y = berth__grad_add(d, berth__grad_mul(d, centred, factor), vector[BERTH__NORM_BIAS]);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}
