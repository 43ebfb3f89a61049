/* Shared by lstm, gru, rnn and qlstm: their attributes, the activations that attributes name, and products of a weight
 * row with a vector. */
#ifndef BERTH_OPS_RECURRENT_H
#define BERTH_OPS_RECURRENT_H

#include "ops/op.h"

extern const berth_attr berth__recurrent_attrs[BERTH__RECURRENT_ATTRS];

#define BERTH__MAX_ACTIVATIONS 6 /* three gates, two directions */

typedef struct berth__activation {
  double (*function)(double x, double alpha, double beta);
  double alpha, beta;
  const char *name; /* as in attributes */
} berth__activation;

int64_t berth__recurrent_gates(berth__op_code code);           /* 4, 3 and 1 blocks of weights */
uint32_t berth__recurrent_functions(berth__op_code code);      /* 3, 2 and 1 activations per direction */
uint32_t berth__recurrent_directions(const berth_attr *attrs); /* 0: invalid attribute */

/* The activations of all directions, in order. Fails on unknown names and on lists of the wrong length. */
berth_status berth__recurrent_activations(berth__op_code code, const berth_attr *attrs,
                                          berth__activation out[BERTH__MAX_ACTIVATIONS], berth_error *err);

/* Checks direction, clip and activations. */
berth_status berth__recurrent_check(const berth__infer *infer, berth_error *err);

/* A weight or a recurrence: [directions, rows, columns], or packed (lstm): [panels, columns, directions, panel], the
 * rows of all gates as the columns of panels, the last one padded with zeros. The panel of a plain one is 0. */
typedef struct berth__recurrent_matrix {
  int64_t directions, columns, panel;
} berth__recurrent_matrix;
static inline berth__recurrent_matrix berth__recurrent_matrix_of(const int64_t *dim, uint32_t rank) {
  return rank == 4 ? (berth__recurrent_matrix){dim[2], dim[1], dim[3]} : (berth__recurrent_matrix){dim[0], dim[2], 0};
}

/* The parameters of an ONNX activation: whether it has alpha and beta, and their defaults. False: unknown. */
bool berth__activation_defaults(const char *name, size_t length, bool *has_alpha, bool *has_beta, double *alpha,
                                double *beta);

#endif
