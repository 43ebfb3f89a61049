/* A chain: a small straight-line program over f32 that runs for every element of a result. It represents fused
 * element-wise nodes, alone (op `chain`) or as the epilogue of a product or a convolution (`product`, `conv_last`,
 * `depthwise`: their `code` and `numbers`).
 *
 * Registers are in this order: the operands; the entries of the attribute `numbers`; the results of the steps. The
 * attribute `code` has four entries per step: its operation (berth__chain_code) and the registers that it reads (0 for
 * missing ones). The result of the last step is the element. */
#ifndef BERTH_OPS_CHAIN_H
#define BERTH_OPS_CHAIN_H

#include "ops/op.h"

#define BERTH__CHAIN_STEPS 32u
#define BERTH__CHAIN_OPERANDS 12u
#define BERTH__CHAIN_NUMBERS 32u

/* The numbers are part of the text form: append, never renumber. Arithmetic is that of the ops of the same name. Bools
 * are 1 and 0; everything but 0 is true. */
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

/* Reads and checks: steps must exist, and registers must be defined before their use. */
berth_status berth__chain_read(const berth_attr *code, const berth_attr *numbers, uint32_t n_operands,
                               berth__chain *out, berth_error *err);
/* The step for an op; BERTH__CHAIN_COUNT: none. */
berth__chain_code berth__chain_code_of(berth__op_code op);
uint32_t berth__chain_arity(berth__chain_code code);
/* One element, in f64: for reference kernels. */
double berth__chain_value(const berth__chain *chain, const double *operands);

#endif
