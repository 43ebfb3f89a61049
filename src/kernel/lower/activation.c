/* The activations of lstm, gru and rnn. */
#include "kernel/lower/recurrent.h"

static berth__x f32(berth__kernel *k, double value) { return berth__x_f32(k, (float)value); }

static berth__x lower_activation_affine(berth__kernel *k, const berth__activation *a, berth__x x) {
  return berth__x_add(k, berth__x_mul(k, f32(k, a->alpha), x), f32(k, a->beta));
}
static berth__x lower_activation_relu(berth__kernel *k, const berth__activation *a, berth__x x) {
  return (void)a, berth__l_unary(k, BERTH__OP_relu, x);
}
static berth__x lower_activation_leaky_relu(berth__kernel *k, const berth__activation *a, berth__x x) {
  return berth__x_select(k, berth__x_lt(k, x, f32(k, 0)), berth__x_mul(k, f32(k, a->alpha), x), x);
}
static berth__x lower_activation_thresholded_relu(berth__kernel *k, const berth__activation *a, berth__x x) {
  return berth__x_select(k, berth__x_lt(k, x, f32(k, a->alpha)), f32(k, 0), x);
}
static berth__x lower_activation_hyperbolic(berth__kernel *k, const berth__activation *a, berth__x x) {
  return (void)a, berth__l_unary(k, BERTH__OP_tanh, x);
}
static berth__x lower_activation_scaled_tanh(berth__kernel *k, const berth__activation *a, berth__x x) {
  const berth__x inner = berth__x_mul(k, f32(k, a->beta), x);
  return berth__x_mul(k, f32(k, a->alpha), berth__l_unary(k, BERTH__OP_tanh, inner));
}
static berth__x lower_activation_sigmoid(berth__kernel *k, const berth__activation *a, berth__x x) {
  return (void)a, berth__l_unary(k, BERTH__OP_sigmoid, x);
}
static berth__x lower_activation_hard_sigmoid(berth__kernel *k, const berth__activation *a, berth__x x) {
  const berth__x line = lower_activation_affine(k, a, x), zero = f32(k, 0), one = f32(k, 1);
  const berth__x low = berth__x_select(k, berth__x_lt(k, zero, line), line, zero);
  return berth__x_select(k, berth__x_lt(k, low, one), low, one);
}
static berth__x lower_activation_elu(berth__kernel *k, const berth__activation *a, berth__x x) {
  const berth__x below = berth__x_mul(k, f32(k, a->alpha), berth__l_unary(k, BERTH__OP_expm1, x));
  return berth__x_select(k, berth__x_lt(k, x, f32(k, 0)), below, x);
}
static berth__x lower_activation_softsign(berth__kernel *k, const berth__activation *a, berth__x x) {
  (void)a;
  return berth__x_div(k, x, berth__x_add(k, f32(k, 1), berth__x1(k, BERTH__INST_abs, x)));
}
static berth__x lower_activation_softplus(berth__kernel *k, const berth__activation *a, berth__x x) {
  return (void)a, berth__l_unary(k, BERTH__OP_softplus, x);
}

static const struct entry {
  const char *name;
  berth__x (*make)(berth__kernel *k, const berth__activation *a, berth__x x);
} table[] = {
    {"affine", lower_activation_affine},
    {"relu", lower_activation_relu},
    {"leaky_relu", lower_activation_leaky_relu},
    {"thresholded_relu", lower_activation_thresholded_relu},
    {"tanh", lower_activation_hyperbolic},
    {"scaled_tanh", lower_activation_scaled_tanh},
    {"sigmoid", lower_activation_sigmoid},
    {"hard_sigmoid", lower_activation_hard_sigmoid},
    {"elu", lower_activation_elu},
    {"softsign", lower_activation_softsign},
    {"softplus", lower_activation_softplus},
};

berth__x berth__activation_of(berth__kernel *k, const berth__activation *a, berth__x x) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strcmp(table[i].name, a->name) == 0) return table[i].make(k, a, x);
  return x;
}

bool berth__activation_equal(const berth__activation *a, const berth__activation *b) {
  return strcmp(a->name, b->name) == 0 && a->alpha == b->alpha && a->beta == b->beta;
}
