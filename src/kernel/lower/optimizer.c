/* sgd and adamw: one thread per element, which reads everything before it writes. */
#include <math.h>

#include "kernel/lower/math.h"

static berth__x lower_optimizer_element(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x index) {
  return berth__l_load(l, k, operand, berth__l_place_flat(k, &l->call->in[operand], index));
}

/* A scalar; `otherwise` if it is left out. */
static berth__x lower_optimizer_scalar(const berth__lowering *l, berth__kernel *k, uint32_t operand, float otherwise) {
  if (!berth__l_has(l, operand)) return berth__x_f32(k, otherwise);
  return berth__l_load(l, k, operand, berth__x_i32(k, 0));
}

/* The result or, if `apply` is given and 0, the operand that it replaces. */
static void lower_optimizer_store(const berth__lowering *l, berth__kernel *k, uint32_t apply, uint32_t result,
                                  berth__x index, berth__x before, berth__x value) {
  if (berth__l_has(l, apply)) {
    const berth__x given =
        berth__x_convert(k, BERTH__NUM_I32, berth__l_load(l, k, apply, berth__x_i32(k, 0))); /* i64 has two words */
    value = berth__x_select(k, berth__x_ne(k, given, berth__x_i32(k, 0)), value, before);
  }
  berth__l_store(l, k, result, berth__l_place_flat(k, &l->call->out[result], index), value);
}

berth_status berth__lower_sgd(berth__lowering *l, berth_error *err) {
  const berth_attr *attrs = l->call->attrs;
  const int64_t count = berth__count(&l->call->out[0]);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x i = berth__l_each_alone(l, k, count);
  const berth__x w = lower_optimizer_element(l, k, BERTH__SGD_W, i);
  const berth__x scale = lower_optimizer_scalar(l, k, BERTH__SGD_SCALE, 1);
  berth__x step = berth__x_mul(k, scale, lower_optimizer_element(l, k, BERTH__SGD_GRADIENT, i));
  if (attrs[BERTH__SGD_WEIGHT_DECAY].f != 0)
    step = berth__x_add(k, step, berth__m_scale(k, w, (float)attrs[BERTH__SGD_WEIGHT_DECAY].f));
  berth__x velocity = w; /* if there is one */
  if (berth__l_has(l, BERTH__SGD_VELOCITY)) {
    velocity = lower_optimizer_element(l, k, BERTH__SGD_VELOCITY, i);
    step = berth__x_add(k, step, berth__m_scale(k, velocity, (float)attrs[BERTH__SGD_MOMENTUM].f));
  }
  const berth__x next = berth__x_sub(k, w, berth__x_mul(k, lower_optimizer_scalar(l, k, BERTH__SGD_RATE, 0), step));
  if (l->call->n_out > 1) lower_optimizer_store(l, k, BERTH__SGD_APPLY, 1, i, velocity, step);
  lower_optimizer_store(l, k, BERTH__SGD_APPLY, 0, i, w, next);
  return berth__l_end(l, k, err);
}

/* 1 - beta^step, with full precision for beta near 1. */
static berth__x lower_optimizer_correction(berth__kernel *k, double beta, berth__x step) {
  if (beta == 0) return berth__x_f32(k, 1);
  return berth__x1(k, BERTH__INST_neg, berth__m_expm1(k, berth__m_scale(k, step, (float)log(beta))));
}

static berth__x lower_optimizer_moment(berth__kernel *k, double beta, berth__x moment, berth__x value) {
  return berth__x_add(k, berth__m_scale(k, moment, (float)beta), berth__m_scale(k, value, (float)(1 - beta)));
}

berth_status berth__lower_adamw(berth__lowering *l, berth_error *err) {
  const berth_attr *attrs = l->call->attrs;
  const int64_t count = berth__count(&l->call->out[0]);
  const double beta1 = attrs[BERTH__ADAMW_BETA1].f, beta2 = attrs[BERTH__ADAMW_BETA2].f;
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x i = berth__l_each_alone(l, k, count);
  const berth__x w = lower_optimizer_element(l, k, BERTH__ADAMW_W, i);
  const berth__x scale = lower_optimizer_scalar(l, k, BERTH__ADAMW_SCALE, 1);
  const berth__x g = berth__x_mul(k, scale, lower_optimizer_element(l, k, BERTH__ADAMW_GRADIENT, i));
  const berth__x old_mean = lower_optimizer_element(l, k, BERTH__ADAMW_MEAN, i);
  const berth__x old_square = lower_optimizer_element(l, k, BERTH__ADAMW_SQUARE, i);
  const berth__x mean = lower_optimizer_moment(k, beta1, old_mean, g);
  const berth__x square = lower_optimizer_moment(k, beta2, old_square, berth__x_mul(k, g, g));
  const berth__x steps =
      berth__x_convert(k, BERTH__NUM_F32, berth__l_load(l, k, BERTH__ADAMW_STEP, berth__x_i32(k, 0)));
  const berth__x root =
      berth__x1(k, BERTH__INST_sqrt, berth__x_div(k, square, lower_optimizer_correction(k, beta2, steps)));
  const berth__x below = berth__m_plus(k, root, (float)attrs[BERTH__ADAMW_EPSILON].f);
  const berth__x step = berth__x_div(k, berth__x_div(k, mean, lower_optimizer_correction(k, beta1, steps)), below);
  const berth__x change = berth__x_add(k, berth__m_scale(k, w, (float)attrs[BERTH__ADAMW_WEIGHT_DECAY].f), step);
  const berth__x rate = lower_optimizer_scalar(l, k, BERTH__ADAMW_RATE, 0);
  lower_optimizer_store(l, k, BERTH__ADAMW_APPLY, 1, i, old_mean, mean);
  lower_optimizer_store(l, k, BERTH__ADAMW_APPLY, 2, i, old_square, square);
  lower_optimizer_store(l, k, BERTH__ADAMW_APPLY, 0, i, w, berth__x_sub(k, w, berth__x_mul(k, rate, change)));
  return berth__l_end(l, k, err);
}
