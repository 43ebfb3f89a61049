/* max_pool, avg_pool and lp_pool: one thread per element of the result, which iterates over the taps of its window that
 * are not padding. */
#include <math.h>

#include "kernel/lower/elements.h"
#include "kernel/lower/math.h"
#include "ops/pool.h"

typedef struct pooling {
  berth__lowering *l;
  berth__kernel *k;
  berth__window window;
  uint32_t missing;            /* axes of the window that the tensors lack */
  uint32_t first;              /* first spatial axis of the tensors */
  berth__x at[BERTH_MAX_RANK]; /* index of the result's element */
  berth__x best, place;        /* variables */
} pooling;

/* Taps [first, last) of an axis. */
typedef struct taps {
  berth__x first, last;
} taps;

static bool has_places(const pooling *p) { return p->l->call->n_out > 1; }

static berth__op_code lower_pool_op_of(const pooling *p) { return p->l->op->code; }

static berth__x lower_pool_output_at(const pooling *p, uint32_t axis) {
  return axis < p->missing ? berth__x_i32(p->k, 0) : p->at[p->first + axis - p->missing];
}

/* x / n rounded up, at least 0. */
static berth__x lower_pool_ceil_div(berth__kernel *k, berth__x x, int64_t n) {
  const berth__x from_0 = berth__x_max(k, x, berth__x_i32(k, 0));
  return berth__x_div(k, berth__x_affine(k, from_0, 1, n - 1), berth__x_i32(k, n));
}

/* The taps of the window at `at` that are in [low, high) of the input. */
static taps taps_in(berth__kernel *k, const berth__window_axis *w, berth__x at, int64_t low, int64_t high) {
  const berth__x start = berth__x_affine(k, at, w->stride, -w->begin); /* of tap 0 */
  const berth__x first = lower_pool_ceil_div(k, berth__x_affine(k, start, -1, low), w->dilation);
  const berth__x last = lower_pool_ceil_div(k, berth__x_affine(k, start, -1, high), w->dilation);
  return (taps){first, berth__x_min(k, last, berth__x_i32(k, w->kernel))};
}

/* ---- Per tap ---- */

static berth__x is_above(const pooling *p, berth__x value, berth__x best) {
  const berth__x above = berth__x_lt(p->k, best, value);
  if (!berth__type_is_float(p->l->call->in[0].type)) return above;
  const berth__x is_nan = berth__x_is_nan(p->k, value);
  if (!has_places(p)) return berth__x_or(p->k, above, is_nan);
  const berth__x is_first = berth__x1(p->k, BERTH__INST_not, berth__x_is_nan(p->k, best));
  return berth__x_or(p->k, above, berth__x_and(p->k, is_nan, is_first));
}

static void take_max(const pooling *p, berth__x value, berth__x flat) {
  berth__x is_new = is_above(p, value, berth__x_get(p->k, p->best));
  if (has_places(p)) {
    const berth__x none = berth__x_lt(p->k, berth__x_get(p->k, p->place), berth__x_i32(p->k, 0));
    is_new = berth__x_or(p->k, is_new, none);
    berth__x_set(p->k, p->place, berth__x_select(p->k, is_new, flat, berth__x_get(p->k, p->place)));
  }
  berth__x_set(p->k, p->best, berth__x_select(p->k, is_new, value, berth__x_get(p->k, p->best)));
}

static berth__x power(const pooling *p, berth__x value) {
  const int64_t exponent = p->l->call->attrs[BERTH__POOL_P].i;
  if (lower_pool_op_of(p) == BERTH__OP_avg_pool) return value;
  const berth__x size = berth__x1(p->k, BERTH__INST_abs, value);
  if (exponent == 1) return size;
  if (exponent == 2) return berth__x_mul(p->k, value, value);
  return berth__m_pow(p->k, size, berth__x_f32(p->k, (float)exponent));
}

static void lower_pool_take(const pooling *p, const berth__x *in_at) {
  const berth_tensor *x = &p->l->call->in[0];
  berth__x from[BERTH_MAX_RANK], flat = berth__x_i32(p->k, 0);
  memcpy(from, p->at, sizeof from);
  for (uint32_t axis = p->missing; axis < BERTH__WINDOW_AXES; axis++) from[p->first + axis - p->missing] = in_at[axis];
  const berth__x value = berth__l_load(p->l, p->k, 0, berth__l_place(p->k, x, from));
  if (lower_pool_op_of(p) != BERTH__OP_max_pool) {
    berth__x_set(p->k, p->best, berth__x_add(p->k, berth__x_get(p->k, p->best), power(p, value)));
    return;
  }
  for (uint32_t axis = 0; axis < x->rank; axis++)
    flat = berth__x_add(p->k, berth__x_affine(p->k, flat, x->dim[axis], 0), from[axis]);
  take_max(p, value, flat);
}

static void walk_taps(const pooling *p) {
  berth__x in_at[BERTH__WINDOW_AXES];
  for (uint32_t axis = 0; axis < BERTH__WINDOW_AXES; axis++) {
    const berth__window_axis *w = &p->window.axis[axis];
    const berth__x at = lower_pool_output_at(p, axis);
    const taps t = taps_in(p->k, w, at, 0, w->in);
    const berth__x tap = berth__x_loop(p->k, t.first, t.last, 1);
    in_at[axis] =
        berth__x_add(p->k, berth__x_affine(p->k, at, w->stride, -w->begin), berth__x_affine(p->k, tap, w->dilation, 0));
  }
  lower_pool_take(p, in_at);
  for (uint32_t axis = 0; axis < BERTH__WINDOW_AXES; axis++) berth__x_end(p->k);
}

/* ---- Before and after the taps ---- */

static berth__x start_value(const pooling *p) {
  const berth_type type = p->l->call->in[0].type;
  int64_t low, high;
  if (lower_pool_op_of(p) != BERTH__OP_max_pool) return berth__x_f32(p->k, 0.0f);
  if (berth__type_is_float(type)) return berth__x_f32(p->k, -INFINITY);
  berth__int_limits(type, &low, &high);
  if (berth__l_number(type) == BERTH__NUM_U32) return berth__x_u32(p->k, 0);
  return berth__x_i32(p->k, low < INT32_MIN ? INT32_MIN : low);
}

/* The average of nothing is 0: all taps of a dilated window may be padding. */
static berth__x average(const pooling *p, berth__x sum) {
  const bool with_padding = p->l->call->attrs[BERTH__POOL_COUNT_INCLUDE_PAD].i != 0;
  const berth__x zero = berth__x_i32(p->k, 0);
  berth__x count = berth__x_i32(p->k, 1);
  for (uint32_t axis = 0; axis < BERTH__WINDOW_AXES; axis++) {
    const berth__window_axis *w = &p->window.axis[axis];
    const taps t = taps_in(p->k, w, lower_pool_output_at(p, axis), with_padding ? -w->begin : 0,
                           with_padding ? w->in + w->end : w->in);
    count = berth__x_mul(p->k, count, berth__x_max(p->k, berth__x_sub(p->k, t.last, t.first), zero));
  }
  const berth__x at_least_1 = berth__x_max(p->k, count, berth__x_i32(p->k, 1));
  return berth__x_div(p->k, sum, berth__x_convert(p->k, BERTH__NUM_F32, at_least_1));
}

static berth__x lower_pool_finish(const pooling *p, berth__x value) {
  const int64_t exponent = p->l->call->attrs[BERTH__POOL_P].i;
  if (lower_pool_op_of(p) == BERTH__OP_avg_pool) return average(p, value);
  if (lower_pool_op_of(p) == BERTH__OP_max_pool || exponent == 1) return value;
  if (exponent == 2) return berth__x1(p->k, BERTH__INST_sqrt, value);
  return berth__m_pow(p->k, value, berth__x_f32(p->k, (float)(1.0 / (double)exponent)));
}

/* A position in x, with the first spatial axis innermost. */
static berth__x lower_pool_column_major(const pooling *p, berth__x place) {
  const berth__window_axis *w = p->window.axis;
  const int64_t dim[] = {w[0].in, w[1].in, w[2].in};
  const berth__x area = berth__x_i32(p->k, dim[0] * dim[1] * dim[2]);
  const berth__x from_0 = berth__x_max(p->k, place, berth__x_i32(p->k, 0));
  berth__x at[BERTH__WINDOW_AXES];
  const berth__x inside = berth__x_rem(p->k, from_0, area);
  berth__l_unravel(p->k, inside, BERTH__WINDOW_AXES, dim, at);
  const berth__x inner = berth__x_add(p->k, at[1], berth__x_affine(p->k, at[2], dim[1], 0));
  const berth__x turned = berth__x_add(p->k, at[0], berth__x_affine(p->k, inner, dim[0], 0));
  const berth__x moved = berth__x_add(p->k, berth__x_sub(p->k, from_0, inside), turned);
  return berth__x_select(p->k, berth__x_lt(p->k, place, berth__x_i32(p->k, 0)), place, moved);
}

static void lower_pool_store(const pooling *p) {
  const berth_op_call *call = p->l->call;
  berth__l_store(p->l, p->k, 0, berth__l_place(p->k, &call->out[0], p->at),
                 lower_pool_finish(p, berth__x_get(p->k, p->best)));
  if (!has_places(p)) return;
  berth__x place = berth__x_get(p->k, p->place);
  if (call->attrs[BERTH__POOL_STORAGE_ORDER].i != 0) place = lower_pool_column_major(p, place);
  berth__l_store(p->l, p->k, 1, berth__l_place(p->k, &call->out[1], p->at), place);
}

berth_status berth__lower_pool(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const berth__window_attrs attributes = berth__pool_window(call->attrs);
  pooling p = {.l = l,
               .missing = BERTH__WINDOW_AXES - (x->rank - 2),
               .first = call->attrs[BERTH__POOL_CHANNELS_LAST].i != 0 ? 1 : 2};
  berth__window_read(&p.window, &attributes, x->rank - 2, x->dim + p.first, call->attrs[BERTH__POOL_KERNEL].ints,
                     out->dim + p.first);
  p.k = berth__l_begin(l, NULL);
  berth__l_unravel(p.k, berth__l_each(l, p.k, berth__count(out)), out->rank, out->dim, p.at);
  p.best = berth__x_variable(p.k, start_value(&p));
  if (has_places(&p)) p.place = berth__x_variable(p.k, berth__x_i32(p.k, -1));
  walk_taps(&p);
  lower_pool_store(&p);
  return berth__l_end(l, p.k, err);
}
