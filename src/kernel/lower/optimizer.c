/* sgd and adamw: a thread has an element, or several of very many, and loads everything before it stores the first.
 * What is the same for all elements it computes once. */
#include <math.h>

#include "kernel/lower/math.h"

typedef struct elements {
  const berth__lowering *l;
  uint32_t n;
  berth__x at[BERTH__EACH_AHEAD], is_there[BERTH__EACH_AHEAD];
  berth__x applies; /* a bool; BERTH__X_NONE: always */
} elements;

/* A scalar; `otherwise` if it is left out. */
static berth__x lower_optimizer_scalar(const berth__lowering *l, berth__kernel *k, uint32_t operand, float otherwise) {
  if (!berth__l_has(l, operand)) return berth__x_f32(k, otherwise);
  return berth__l_load(l, k, operand, berth__x_i32(k, 0));
}

static elements lower_optimizer_begin(berth__lowering *l, berth__kernel *k, int64_t count, uint32_t apply) {
  elements s = {.l = l, .applies = BERTH__X_NONE};
  s.n = berth__l_each_ahead(l, k, count, s.at, s.is_there);
  if (berth__l_has(l, apply)) {
    const berth__x given =
        berth__x_convert(k, BERTH__NUM_I32, berth__l_load(l, k, apply, berth__x_i32(k, 0))); /* i64 has two words */
    s.applies = berth__x_ne(k, given, berth__x_i32(k, 0));
  }
  return s;
}

static void lower_optimizer_load(const elements *s, berth__kernel *k, uint32_t operand, berth__x *values) {
  for (uint32_t e = 0; e < s->n; e++)
    values[e] = berth__l_load(s->l, k, operand, berth__l_place_flat(k, &s->l->call->in[operand], s->at[e]));
}

/* The result or, if it is not to be applied, the operand that it replaces. */
static void lower_optimizer_store(const elements *s, berth__kernel *k, uint32_t e, uint32_t result, berth__x before,
                                  berth__x value) {
  if (s->applies != BERTH__X_NONE) value = berth__x_select(k, s->applies, value, before);
  if (s->is_there[e] != BERTH__X_NONE) berth__x_if(k, s->is_there[e]);
  berth__l_store(s->l, k, result, berth__l_place_flat(k, &s->l->call->out[result], s->at[e]), value);
  if (s->is_there[e] != BERTH__X_NONE) berth__x_end(k);
}

berth_status berth__lower_sgd(berth__lowering *l, berth_error *err) {
  const berth_attr *attrs = l->call->attrs;
  const int64_t count = berth__count(&l->call->out[0]);
  const bool has_velocity = berth__l_has(l, BERTH__SGD_VELOCITY);
  berth__x w[BERTH__EACH_AHEAD] = {0}, g[BERTH__EACH_AHEAD] = {0}, velocity[BERTH__EACH_AHEAD] = {0};
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const elements s = lower_optimizer_begin(l, k, count, BERTH__SGD_APPLY);
  const berth__x scale = lower_optimizer_scalar(l, k, BERTH__SGD_SCALE, 1);
  const berth__x rate = lower_optimizer_scalar(l, k, BERTH__SGD_RATE, 0);
  lower_optimizer_load(&s, k, BERTH__SGD_W, w);
  lower_optimizer_load(&s, k, BERTH__SGD_GRADIENT, g);
  if (has_velocity) lower_optimizer_load(&s, k, BERTH__SGD_VELOCITY, velocity);
  for (uint32_t e = 0; e < s.n; e++) {
    berth__x step = berth__x_mul(k, scale, g[e]);
    if (attrs[BERTH__SGD_WEIGHT_DECAY].f != 0)
      step = berth__x_add(k, step, berth__m_scale(k, w[e], (float)attrs[BERTH__SGD_WEIGHT_DECAY].f));
    if (has_velocity) step = berth__x_add(k, step, berth__m_scale(k, velocity[e], (float)attrs[BERTH__SGD_MOMENTUM].f));
    if (l->call->n_out > 1) lower_optimizer_store(&s, k, e, 1, has_velocity ? velocity[e] : w[e], step);
    lower_optimizer_store(&s, k, e, 0, w[e], berth__x_sub(k, w[e], berth__x_mul(k, rate, step)));
  }
  return berth__l_end(l, k, err);
}

/* 1 / (1 - beta^step), with full precision for beta near 1. */
static berth__x lower_optimizer_correction(berth__kernel *k, double beta, berth__x step) {
  if (beta == 0) return berth__x_f32(k, 1);
  return berth__x_div(k, berth__x_f32(k, -1), berth__m_expm1(k, berth__m_scale(k, step, (float)log(beta))));
}

static berth__x lower_optimizer_moment(berth__kernel *k, double beta, berth__x moment, berth__x value) {
  return berth__x_add(k, berth__m_scale(k, moment, (float)beta), berth__m_scale(k, value, (float)(1 - beta)));
}

berth_status berth__lower_adamw(berth__lowering *l, berth_error *err) {
  const berth_attr *attrs = l->call->attrs;
  const int64_t count = berth__count(&l->call->out[0]);
  const double beta1 = attrs[BERTH__ADAMW_BETA1].f, beta2 = attrs[BERTH__ADAMW_BETA2].f;
  berth__x w[BERTH__EACH_AHEAD] = {0}, g[BERTH__EACH_AHEAD] = {0}, old_mean[BERTH__EACH_AHEAD] = {0},
           old_square[BERTH__EACH_AHEAD] = {0};
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const elements s = lower_optimizer_begin(l, k, count, BERTH__ADAMW_APPLY);
  const berth__x scale = lower_optimizer_scalar(l, k, BERTH__ADAMW_SCALE, 1);
  const berth__x rate = lower_optimizer_scalar(l, k, BERTH__ADAMW_RATE, 0);
  const berth__x steps =
      berth__x_convert(k, BERTH__NUM_F32, berth__l_load(l, k, BERTH__ADAMW_STEP, berth__x_i32(k, 0)));
  lower_optimizer_load(&s, k, BERTH__ADAMW_W, w);
  lower_optimizer_load(&s, k, BERTH__ADAMW_GRADIENT, g);
  lower_optimizer_load(&s, k, BERTH__ADAMW_MEAN, old_mean);
  lower_optimizer_load(&s, k, BERTH__ADAMW_SQUARE, old_square);
  const berth__x correction1 = lower_optimizer_correction(k, beta1, steps);
  const berth__x correction2 = lower_optimizer_correction(k, beta2, steps);
  for (uint32_t e = 0; e < s.n; e++) {
    const berth__x slope = berth__x_mul(k, scale, g[e]);
    const berth__x mean = lower_optimizer_moment(k, beta1, old_mean[e], slope);
    const berth__x square = lower_optimizer_moment(k, beta2, old_square[e], berth__x_mul(k, slope, slope));
    const berth__x root = berth__x1(k, BERTH__INST_sqrt, berth__x_mul(k, square, correction2));
    const berth__x below = berth__m_plus(k, root, (float)attrs[BERTH__ADAMW_EPSILON].f);
    const berth__x step = berth__x_div(k, berth__x_mul(k, mean, correction1), below);
    const berth__x change = berth__x_add(k, berth__m_scale(k, w[e], (float)attrs[BERTH__ADAMW_WEIGHT_DECAY].f), step);
    lower_optimizer_store(&s, k, e, 1, old_mean[e], mean);
    lower_optimizer_store(&s, k, e, 2, old_square[e], square);
    lower_optimizer_store(&s, k, e, 0, w[e], berth__x_sub(k, w[e], berth__x_mul(k, rate, change)));
  }
  return berth__l_end(l, k, err);
}
