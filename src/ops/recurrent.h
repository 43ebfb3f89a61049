/* What lstm, gru, rnn and qlstm have in common: their attributes, the activations that attributes name, and products of
 * a weight row with a vector. */
#ifndef BERTH_OPS_RECURRENT_H
#define BERTH_OPS_RECURRENT_H

#include "ops/op.h"

extern const berth_attr berth__recurrent_attrs[BERTH__RECURRENT_ATTRS];

#define BERTH__MAX_ACTIVATIONS 6 /* three gates, two directions */

typedef struct berth__activation {
  double (*function)(double x, double alpha, double beta);
  double alpha, beta;
  const char *name; /* as attributes have it */
} berth__activation;

int64_t berth__recurrent_gates(berth__op_code code);           /* 4, 3 and 1 blocks of weights */
uint32_t berth__recurrent_functions(berth__op_code code);      /* 3, 2 and 1 activations a direction */
uint32_t berth__recurrent_directions(const berth_attr *attrs); /* 0: the attribute is wrong */

/* The activations of all directions, in their order. Fails on unknown names and on lists of the wrong length. */
berth_status berth__recurrent_activations(berth__op_code code, const berth_attr *attrs,
                                          berth__activation out[BERTH__MAX_ACTIVATIONS], berth_error *err);

/* The direction and clip, and the activations. */
berth_status berth__recurrent_check(const berth__infer *infer, berth_error *err);

/* How an ONNX activation takes its numbers: alpha and beta where it has them, with their defaults. False: no such
 * one. */
bool berth__activation_defaults(const char *name, size_t length, bool *has_alpha, bool *has_beta, double *alpha,
                                double *beta);

#endif
