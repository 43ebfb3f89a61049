/* A chain: a small straight-line program over f32 that is run for every element of a result. It is how element-wise
 * nodes that were fused are written, alone (op `chain`) or after a product or a convolution (`product`, `conv_last`,
 * `depthwise`: their `code` and `numbers`).
 *
 * Registers come in this order: the operands; the entries of the attribute `numbers`; the results of the steps. The
 * attribute `code` has four entries per step: what it does (berth__chain_code) and the registers that it reads (0 where
 * it reads fewer than three). The last step's result is the element. */
#ifndef BERTH_OPS_CHAIN_H
#define BERTH_OPS_CHAIN_H

#include "ops/op.h"

#define BERTH__CHAIN_STEPS 32u
#define BERTH__CHAIN_OPERANDS 12u
#define BERTH__CHAIN_NUMBERS 32u

/* The numbers are part of the text form: append, never renumber. Arithmetic is as the ops of the same name do it. Truth
 * is 1 and 0; what is not 0 is true. */
typedef enum berth__chain_code {
#define BERTH__CHAIN(name, n_in) BERTH__CHAIN_##name,
#include "ops/chain.def"
#undef BERTH__CHAIN
  BERTH__CHAIN_COUNT
} berth__chain_code;

typedef struct berth__chain {
  uint32_t n_operands, n_numbers, n_steps;
  const int64_t *code;
  const double *numbers;
} berth__chain;

/* Checks and reads: steps that exist, registers that come before. */
berth_status berth__chain_read(const berth_attr *code, const berth_attr *numbers, uint32_t n_operands,
                               berth__chain *out, berth_error *err);
/* The step that an op is; BERTH__CHAIN_COUNT: there is none. */
berth__chain_code berth__chain_code_of(berth__op_code op);
uint32_t berth__chain_arity(berth__chain_code code);
/* One element, in f64: what reference kernels use. */
double berth__chain_value(const berth__chain *chain, const double *operands);

#endif
