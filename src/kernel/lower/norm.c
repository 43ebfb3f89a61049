/* layer_norm, rms_norm and their gradients, group_norm, batch_norm. The mean of a row is computed first; a second fold
 * sums the squares of the differences and, at the same time, the mean's rounding error. Elements are written after all
 * threads of the row have read, each by a thread that reads it again, so the result may overwrite the operand. */
#include "ops/norm.h"
#include "kernel/lower/elements.h"
#include "kernel/lower/rows.h"

typedef struct norm {
  const berth__lowering *l;
  const berth__l_rows *rows;
  int64_t count, length;
  bool is_centred;
  berth__x first; /* element of the row */
  berth__x mean;
  /* Position in scale and bias of an element, given its position in its row. */
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
  berth__x mean, rest; /* of the mean, BERTH__X_NONE if there is none */
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

static berth__x lower_norm_normal(berth__kernel *k, const norm *n, const moments *m, berth__x x) {
  if (n->is_centred) x = berth__x_sub(k, berth__x_sub(k, x, m->mean), m->rest);
  return berth__x_mul(k, x, m->factor);
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
  berth__x y = lower_norm_normal(k, n, &of->m, lower_norm_element_at(k, n, i));
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

/* ---- layer_norm and rms_norm: over the axes from `axis` on, to which scale and bias broadcast ---- */

static berth__x place_in_row(berth__kernel *k, const norm *n, uint32_t operand, berth__x row, berth__x i) {
  const berth_op_call *call = n->l->call;
  const uint32_t axis = berth__norm_first_axis(call), rank = call->in[BERTH__NORM_X].rank - axis;
  berth__x at[BERTH_MAX_RANK];
  (void)row;
  berth__l_unravel(k, i, rank, call->in[BERTH__NORM_X].dim + axis, at);
  return berth__l_place_broadcast(k, &call->in[operand], rank, at);
}

berth_status berth__lower_layer_norm(berth__lowering *l, berth_error *err) {
  norm n = {.l = l,
            .count = berth__norm_rows(l->call),
            .length = berth__norm_row_length(l->call),
            .is_centred = l->op->code == BERTH__OP_layer_norm,
            .value_place = place_in_row};
  return lower_norm_add_kernel(l, &n, l->call->attrs[BERTH__LAYER_NORM_EPSILON].f, err);
}

/* ---- layer_norm_grad and rms_norm_grad: with g = dy scale, factor (g - mean of g - normal (mean of g normal)) ---- */

typedef struct norm_slope {
  norm n;
  moments m;
  berth__x held[BERTH__ROWS_HELD]; /* g, if elements are held */
  berth__x mean, along;            /* of g; of g times the normalised element */
} norm_slope;

static berth__x lower_norm_scaled(berth__kernel *k, const norm *n, berth__x dy, berth__x i) {
  if (!berth__l_has(n->l, BERTH__NORM_SCALE)) return dy;
  const berth__x place = place_in_row(k, n, BERTH__NORM_SCALE, BERTH__X_NONE, i);
  return berth__x_mul(k, dy, berth__l_load(n->l, k, BERTH__NORM_SCALE, place));
}

/* Once for all elements that a thread holds; those past the end of the row repeat the last one. */
static void lower_norm_hold_slopes(berth__kernel *k, norm_slope *s) {
  const berth__l_held *held = &s->n.rows->held;
  berth__l_rows_hold_beside(s->n.l, k, s->n.rows, BERTH__NORM_GRAD_DY, s->held);
  for (uint32_t e = 0; e < held->n; e++) {
    const bool is_in = held->is_in[e] == BERTH__X_NONE;
    const berth__x i = is_in ? held->at[e] : berth__x_min(k, held->at[e], berth__x_i32(k, s->n.length - 1));
    s->held[e] = lower_norm_scaled(k, &s->n, s->held[e], i);
  }
}

static berth__x lower_norm_slope_at(berth__kernel *k, const norm_slope *s, berth__x i) {
  const uint32_t e = berth__l_rows_which(s->n.rows, i);
  if (e < s->n.rows->held.n) return s->held[e];
  const berth__x dy = berth__l_load(s->n.l, k, BERTH__NORM_GRAD_DY, berth__x_add(k, s->n.first, i));
  return lower_norm_scaled(k, &s->n, dy, i);
}

static void lower_norm_slope_products(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const norm_slope *s = state;
  const berth__x g = lower_norm_slope_at(k, s, i);
  values[0] = berth__x_mul(k, g, lower_norm_normal(k, &s->n, &s->m, lower_norm_element_at(k, &s->n, i)));
  if (s->n.is_centred) values[1] = g;
}

static berth__x lower_norm_slope_place(berth__kernel *k, const void *state, berth__x i) {
  const norm_slope *s = state;
  return berth__l_place_flat(k, &s->n.l->call->out[0], berth__x_add(k, s->n.first, i));
}

static void lower_norm_slope_write(berth__kernel *k, const void *state, berth__x i, berth__x place) {
  const norm_slope *s = state;
  const berth__x normal = lower_norm_normal(k, &s->n, &s->m, lower_norm_element_at(k, &s->n, i));
  berth__x g = lower_norm_slope_at(k, s, i);
  if (s->n.is_centred) g = berth__x_sub(k, g, s->mean);
  g = berth__x_sub(k, g, berth__x_mul(k, normal, s->along));
  berth__l_store(s->n.l, k, 0, place, berth__x_mul(k, g, s->m.factor));
}

static void lower_norm_slope_fold(berth__kernel *k, norm_slope *s, berth__l_rows *rows) {
  const berth__x zero = berth__x_f32(k, 0);
  const berth__l_fold fold = {.n = s->n.is_centred ? 2 : 1,
                              .start = {zero, zero},
                              .is_sum = true,
                              .element = lower_norm_slope_products,
                              .join = berth__l_join_sums,
                              .state = s};
  berth__x sums[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, rows, &fold, sums);
  s->along = over_length(k, &s->n, sums[0]);
  if (s->n.is_centred) s->mean = over_length(k, &s->n, sums[1]);
}

berth_status berth__lower_layer_norm_grad(berth__lowering *l, berth_error *err) {
  norm_slope s = {.n = {.l = l,
                        .count = berth__norm_rows(l->call),
                        .length = berth__norm_row_length(l->call),
                        .is_centred = l->op->code == BERTH__OP_layer_norm_grad}};
  if (s.n.count == 0 || s.n.length == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = berth__l_rows_hold(l, k, BERTH__NORM_X, s.n.count, s.n.length);
  s.n.rows = &rows;
  s.n.first = berth__x_affine(k, rows.row, s.n.length, 0);
  lower_norm_hold_slopes(k, &s);
  s.m = find_moments(k, &s.n, &rows, l->call->attrs[BERTH__LAYER_NORM_EPSILON].f);
  lower_norm_slope_fold(k, &s, &rows);
  const berth__l_rows_writer writer = {
      .is_dense = true, .place = lower_norm_slope_place, .write = lower_norm_slope_write, .state = &s};
  berth__l_rows_write(l, k, &rows, &writer);
  return berth__l_end(l, k, err);
}

/* ---- layer_norm_scale_grad and rms_norm_scale_grad: the moments of all rows, and then sums over columns, in pieces if
 * there are many rows ---- */

typedef struct norm_columns {
  norm n;         /* describes the rows to sum over */
  uint32_t slots; /* numbers per row in scratch: its mean, the mean's rounding error, its factor; or only the factor */
  int64_t pieces, rows_each;
  uint32_t scratch;
  berth__x column, piece;
} norm_columns;

static norm_columns lower_norm_columns_of(const berth_op_call *call) {
  norm_columns c = {.n = {.count = berth__norm_rows(call),
                          .length = berth__norm_row_length(call),
                          .is_centred = berth__call_code(call) == BERTH__OP_layer_norm_scale_grad}};
  c.slots = c.n.is_centred ? 3 : 1;
  c.pieces = berth__l_pieces_across(c.n.length, c.n.count);
  c.rows_each = (c.n.count + c.pieces - 1) / c.pieces;
  return c;
}

uint64_t berth__scratch_of_norm_scale_grad(const berth_op_call *call, const berth__kernel_limits *limits) {
  const norm_columns c = lower_norm_columns_of(call);
  (void)limits;
  const int64_t numbers = c.n.count * c.slots + (c.pieces > 1 ? call->n_out * c.pieces * c.n.length : 0);
  return (uint64_t)(numbers > 0 ? numbers : 1) * sizeof(uint32_t);
}

static berth_status lower_norm_add_moments(berth__lowering *l, norm_columns *c, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, "moments");
  if (k == NULL) return berth__l_end(l, k, err);
  const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
  berth__l_rows rows = berth__l_rows_hold(l, k, BERTH__NORM_X, c->n.count, c->n.length);
  c->n.rows = &rows;
  c->n.first = berth__x_affine(k, rows.row, c->n.length, 0);
  const moments m = find_moments(k, &c->n, &rows, l->call->attrs[BERTH__LAYER_NORM_EPSILON].f);
  const berth__x to_store[] = {m.factor, m.mean, m.rest};
  berth__l_rows_once(k, &rows);
  for (uint32_t i = 0; i < c->slots; i++)
    berth__x_store(k, scratch, berth__x_affine(k, rows.row, c->slots, i), to_store[i]);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

/* Row i of a piece; the last piece may have fewer. */
static void lower_norm_column_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const norm_columns *c = state;
  const berth__x index = berth__x_add(k, berth__x_affine(k, c->piece, c->rows_each, 0), i), zero = berth__x_f32(k, 0);
  const berth__x is_there = berth__x_lt(k, index, berth__x_i32(k, c->n.count));
  const berth__x row = berth__x_min(k, index, berth__x_i32(k, c->n.count - 1));
  const berth__x place = berth__x_add(k, berth__x_affine(k, row, c->n.length, 0), c->column);
  moments m = {.factor = berth__x_load(k, c->scratch, berth__x_affine(k, row, c->slots, 0))};
  if (c->n.is_centred) {
    m.mean = berth__x_load(k, c->scratch, berth__x_affine(k, row, c->slots, 1));
    m.rest = berth__x_load(k, c->scratch, berth__x_affine(k, row, c->slots, 2));
  }
  const berth__x dy = berth__l_load(c->n.l, k, BERTH__NORM_SCALE_GRAD_DY, place);
  const berth__x normal = lower_norm_normal(k, &c->n, &m, berth__l_load(c->n.l, k, BERTH__NORM_X, place));
  values[0] = berth__x_select(k, is_there, berth__x_mul(k, dy, normal), zero);
  if (c->n.l->call->n_out > 1) values[1] = berth__x_select(k, is_there, dy, zero);
}

/* The position of a piece's sum, for result r. */
static berth__x lower_norm_piece_at(berth__kernel *k, const norm_columns *c, uint32_t r, berth__x piece) {
  const berth__x line = berth__x_affine(k, piece, c->n.length, 0);
  return berth__x_affine(k, berth__x_add(k, line, c->column), 1, c->n.count * c->slots + r * c->pieces * c->n.length);
}

static void lower_norm_piece_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const norm_columns *c = state;
  for (uint32_t r = 0; r < c->n.l->call->n_out; r++)
    values[r] = berth__x_load(k, c->scratch, lower_norm_piece_at(k, c, r, i));
}

static berth_status lower_norm_add_columns(berth__lowering *l, norm_columns *c, bool is_second, berth_error *err) {
  const bool is_first = !is_second && c->pieces > 1;
  berth__kernel *k = berth__l_begin(l, is_second ? "of pieces" : is_first ? "by pieces" : NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const int64_t count = is_first ? c->n.length * c->pieces : c->n.length;
  berth__l_rows rows = berth__l_rows_across(l, k, count, is_second ? c->pieces : c->rows_each);
  const berth__x columns = berth__x_i32(k, c->n.length), zero = berth__x_f32(k, 0);
  c->scratch = berth__l_scratch(k, BERTH_F32);
  c->column = berth__x_rem(k, rows.row, columns);
  c->piece = is_first ? berth__x_div(k, rows.row, columns) : berth__x_i32(k, 0);
  const berth__l_fold fold = {.n = l->call->n_out,
                              .start = {zero, zero},
                              .is_sum = true,
                              .is_ahead = rows.lanes > 1,
                              .element = is_second ? lower_norm_piece_element : lower_norm_column_element,
                              .join = berth__l_join_sums,
                              .state = c};
  berth__x sums[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, sums);
  berth__l_rows_once(k, &rows);
  for (uint32_t r = 0; r < l->call->n_out; r++) {
    if (is_first)
      berth__x_store(k, c->scratch, lower_norm_piece_at(k, c, r, c->piece), sums[r]);
    else
      berth__l_store(l, k, r, berth__l_place_flat(k, &l->call->out[r], c->column), sums[r]);
  }
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_norm_scale_grad(berth__lowering *l, berth_error *err) {
  norm_columns c = lower_norm_columns_of(l->call);
  if (c.n.length == 0) return BERTH_OK;
  c.n.l = l;
  if (c.n.count > 0) BERTH__TRY(lower_norm_add_moments(l, &c, err));
  BERTH__TRY(lower_norm_add_columns(l, &c, false, err));
  return c.pieces > 1 ? lower_norm_add_columns(l, &c, true, err) : BERTH_OK;
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
