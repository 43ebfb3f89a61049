/* layer_norm, rms_norm, group_norm, batch_norm. The mean of a row is found first; a second fold takes the squares of
 * what is left and, with it, what rounding took from the mean. Elements are written after all threads of the row have
 * read, and each by one that reads it again, so that the result may lie over the operand. */
#include "kernel/lower/elements.h"
#include "kernel/lower/rows.h"

typedef struct norm {
  const berth__lowering *l;
  const berth__l_rows *rows;
  int64_t count, length;
  bool is_centred;
  berth__x first; /* element of the row */
  berth__x mean;
  /* Places in scale and bias from the element's place in its row. */
  berth__x (*value_place)(berth__kernel *k, const struct norm *n, uint32_t operand, berth__x row, berth__x i);
} norm;

static berth__x lower_norm_element_at(berth__kernel *k, const norm *n, berth__x i) {
  const berth__x held = berth__l_rows_held(n->rows, i);
  if (held != BERTH__X_NONE) return held;
  return berth__l_load(n->l, k, BERTH__NORM_X, berth__x_add(k, n->first, i));
}

static void lower_norm_load_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  values[0] = lower_norm_element_at(k, state, i);
}

static void load_squares(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const norm *n = state;
  const berth__x x = lower_norm_element_at(k, n, i), rest = n->is_centred ? berth__x_sub(k, x, n->mean) : x;
  values[0] = berth__x_mul(k, rest, rest);
  if (n->is_centred) values[1] = rest;
}

static berth__x over_length(berth__kernel *k, const norm *n, berth__x sum) {
  return berth__x_div(k, sum, berth__x_f32(k, (float)n->length));
}

static berth__x inverse_root(berth__kernel *k, berth__x variance, double epsilon) {
  const berth__x root = berth__x1(k, BERTH__INST_sqrt, berth__x_add(k, variance, berth__x_f32(k, (float)epsilon)));
  return berth__x_div(k, berth__x_f32(k, 1), root);
}

typedef struct moments {
  berth__x mean, rest; /* of the mean, BERTH__X_NONE where there is none */
  berth__x factor;
} moments;

static moments find_moments(berth__kernel *k, norm *n, berth__l_rows *rows, double epsilon) {
  const berth__x zero = berth__x_f32(k, 0);
  moments m = {.mean = BERTH__X_NONE, .rest = BERTH__X_NONE};
  berth__l_fold fold = {.n = 1,
                        .start = {zero, zero},
                        .is_sum = true,
                        .element = lower_norm_load_element,
                        .join = berth__l_join_sums,
                        .state = n};
  berth__x sums[BERTH__FOLD_VALUES];
  if (n->is_centred) {
    berth__l_rows_fold(k, rows, &fold, sums);
    n->mean = m.mean = over_length(k, n, sums[0]);
  }
  fold.n = n->is_centred ? 2 : 1;
  fold.element = load_squares;
  berth__l_rows_fold(k, rows, &fold, sums);
  berth__x variance = over_length(k, n, sums[0]);
  if (n->is_centred) {
    m.rest = over_length(k, n, sums[1]);
    variance = berth__x_max(k, berth__x_sub(k, variance, berth__x_mul(k, m.rest, m.rest)), zero);
  }
  m.factor = inverse_root(k, variance, epsilon);
  return m;
}

typedef struct normed {
  const norm *n;
  moments m;
  berth__x row;
} normed;

static berth__x lower_norm_result_place(berth__kernel *k, const void *state, berth__x i) {
  const norm *n = ((const normed *)state)->n;
  return berth__l_place_flat(k, &n->l->call->out[0], berth__x_add(k, n->first, i));
}

static void lower_norm_write_element(berth__kernel *k, const void *state, berth__x i, berth__x place) {
  const normed *of = state;
  const norm *n = of->n;
  berth__x y = lower_norm_element_at(k, n, i);
  if (n->is_centred) y = berth__x_sub(k, berth__x_sub(k, y, of->m.mean), of->m.rest);
  y = berth__x_mul(k, y, of->m.factor);
  if (berth__l_has(n->l, BERTH__NORM_SCALE))
    y = berth__x_mul(k, y,
                     berth__l_load(n->l, k, BERTH__NORM_SCALE, n->value_place(k, n, BERTH__NORM_SCALE, of->row, i)));
  if (berth__l_has(n->l, BERTH__NORM_BIAS))
    y = berth__x_add(k, y,
                     berth__l_load(n->l, k, BERTH__NORM_BIAS, n->value_place(k, n, BERTH__NORM_BIAS, of->row, i)));
  berth__l_store(n->l, k, 0, place, y);
}

static berth_status lower_norm_add_kernel(berth__lowering *l, norm *n, double epsilon, berth_error *err) {
  if (n->count == 0 || n->length == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = berth__l_rows_hold(l, k, BERTH__NORM_X, n->count, n->length);
  n->rows = &rows;
  n->first = berth__x_affine(k, rows.row, n->length, 0);
  const normed of = {.n = n, .m = find_moments(k, n, &rows, epsilon), .row = rows.row};
  const berth__l_rows_writer writer = {
      .is_dense = true, .place = lower_norm_result_place, .write = lower_norm_write_element, .state = &of};
  berth__l_rows_write(l, k, &rows, &writer);
  return berth__l_end(l, k, err);
}

/* ---- layer_norm and rms_norm: over the axes from `axis` on; scale and bias broadcast to these ---- */

static uint32_t lower_norm_first_axis(const berth_op_call *call) {
  const int64_t axis = call->attrs[BERTH__LAYER_NORM_AXIS].i;
  return (uint32_t)(axis < 0 ? axis + (int64_t)call->in[BERTH__NORM_X].rank : axis);
}

static berth__x place_in_row(berth__kernel *k, const norm *n, uint32_t operand, berth__x row, berth__x i) {
  const berth_op_call *call = n->l->call;
  const uint32_t axis = lower_norm_first_axis(call), rank = call->in[BERTH__NORM_X].rank - axis;
  berth__x at[BERTH_MAX_RANK];
  (void)row;
  berth__l_unravel(k, i, rank, call->in[BERTH__NORM_X].dim + axis, at);
  return berth__l_place_broadcast(k, &call->in[operand], rank, at);
}

berth_status berth__lower_layer_norm(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__NORM_X];
  norm n = {
      .l = l, .count = 1, .length = 1, .is_centred = l->op->code == BERTH__OP_layer_norm, .value_place = place_in_row};
  for (uint32_t axis = 0; axis < x->rank; axis++)
    *(axis < lower_norm_first_axis(l->call) ? &n.count : &n.length) *= x->dim[axis];
  return lower_norm_add_kernel(l, &n, l->call->attrs[BERTH__LAYER_NORM_EPSILON].f, err);
}

/* ---- group_norm: of x [N, C, ...], over a group of channels; scale and bias are [C] ---- */

static berth__x place_of_channel(berth__kernel *k, const norm *n, uint32_t operand, berth__x row, berth__x i) {
  const berth_op_call *call = n->l->call;
  const int64_t groups = call->attrs[BERTH__GROUP_NORM_GROUPS].i, channels = call->in[BERTH__NORM_X].dim[1] / groups;
  const berth__x group = berth__x_rem(k, row, berth__x_i32(k, groups));
  const berth__x channel = berth__x_div(k, i, berth__x_i32(k, n->length / channels));
  return berth__x_affine(k, berth__x_add(k, berth__x_affine(k, group, channels, 0), channel),
                         call->in[operand].stride[0], 0);
}

berth_status berth__lower_group_norm(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__NORM_X];
  const int64_t groups = l->call->attrs[BERTH__GROUP_NORM_GROUPS].i;
  if (berth__count(x) == 0) return BERTH_OK;
  norm n = {.l = l, .count = x->dim[0] * groups, .is_centred = true, .value_place = place_of_channel};
  n.length = berth__count(x) / n.count;
  return lower_norm_add_kernel(l, &n, l->call->attrs[BERTH__GROUP_NORM_EPSILON].f, err);
}

/* ---- batch_norm: with given statistics, element by element ---- */

static berth__x of_channel(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x channel) {
  return berth__l_load(l, k, operand, berth__x_affine(k, channel, l->call->in[operand].stride[0], 0));
}

berth_status berth__lower_batch_norm(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__NORM_X];
  const int64_t count = berth__count(x);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count);
  const berth__x plane = berth__x_i32(k, berth__lines_of(x, 1).inner);
  const berth__x channel = berth__x_rem(k, berth__x_div(k, index, plane), berth__x_i32(k, x->dim[1]));
  const berth__x variance = of_channel(l, k, BERTH__NORM_VARIANCE, channel);
  berth__x y = berth__x_sub(k, berth__l_load(l, k, BERTH__NORM_X, index), of_channel(l, k, BERTH__NORM_MEAN, channel));
  y = berth__x_mul(k, y, inverse_root(k, variance, l->call->attrs[BERTH__BATCH_NORM_EPSILON].f));
  y = berth__x_mul(k, y, of_channel(l, k, BERTH__NORM_SCALE, channel));
  y = berth__x_add(k, y, of_channel(l, k, BERTH__NORM_BIAS, channel));
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], index), y);
  return berth__l_end(l, k, err);
}
