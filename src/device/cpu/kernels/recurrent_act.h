/* The activations of recurrent layers as vector functions, by name. */
#ifndef BERTH_DEVICE_CPU_KERNELS_RECURRENT_ACT_H
#define BERTH_DEVICE_CPU_KERNELS_RECURRENT_ACT_H

#include <string.h>

#include "device/cpu/kernels/vec_math.h"

typedef vf act_function(vf x, vf alpha, vf beta);

static vf act_affine(vf x, vf alpha, vf beta) { return vf_fma(alpha, x, beta); }
static vf act_relu(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_relu(x); }
static vf act_leaky_relu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, vf_zero(), alpha * x, x); }
static vf act_thresholded_relu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, alpha, vf_zero(), x); }
static vf act_tanh(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_tanh(x); }
static vf act_scaled_tanh(vf x, vf alpha, vf beta) { return alpha * vf_tanh(beta * x); }
static vf act_sigmoid(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_sigmoid(x); }
static vf act_hard_sigmoid(vf x, vf alpha, vf beta) {
  return vf_min(vf_max(vf_fma(alpha, x, beta), vf_zero()), vf_set1(1.0f)); /* NaN becomes 0 */
}
static vf act_elu(vf x, vf alpha, vf beta) { return (void)beta, vf_pick_lt(x, vf_zero(), alpha * vf_expm1(x), x); }
static vf act_softsign(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, x / (vf_set1(1.0f) + vf_abs(x)); }
static vf act_softplus(vf x, vf alpha, vf beta) { return (void)alpha, (void)beta, vf_softplus(x); }

static const struct {
  const char *name;
  act_function *function;
} act_table[] = {{"affine", act_affine},
                 {"relu", act_relu},
                 {"leaky_relu", act_leaky_relu},
                 {"thresholded_relu", act_thresholded_relu},
                 {"tanh", act_tanh},
                 {"scaled_tanh", act_scaled_tanh},
                 {"sigmoid", act_sigmoid},
                 {"hard_sigmoid", act_hard_sigmoid},
                 {"elu", act_elu},
                 {"softsign", act_softsign},
                 {"softplus", act_softplus}};

/* NULL: there is none of that name. */
static act_function *act_find(const char *name) {
  for (size_t i = 0; i < sizeof act_table / sizeof *act_table; i++)
    if (strcmp(act_table[i].name, name) == 0) return act_table[i].function;
  return NULL;
}

#endif
