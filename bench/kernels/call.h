/* One call of an op, with its own operands, on the fast kernel of an instruction set. Any failure ends the program. */
#ifndef BERTH_BENCH_KERNELS_CALL_H
#define BERTH_BENCH_KERNELS_CALL_H

#include "device/cpu/kernel.h"

enum {
  CALL_OPERANDS = 8,
  CALL_ATTRS = 16,
  CALL_INTS = 32
};

typedef struct call {
  const berth__cpu_isa *isa;
  const berth__op *op;
  berth_attr attrs[CALL_ATTRS];
  int64_t ints[CALL_INTS]; /* storage for attributes */
  uint32_t n_ints;
  berth_tensor in[CALL_OPERANDS], out[CALL_OPERANDS];
  berth_op_call args;
  const berth__cpu_kernel *kernel; /* NULL: the instruction set has no kernel for this call */
} call;

/* Call in this order: start; operands and attributes; finish, which infers and allocates the results. Operands are
 * filled with pseudo-random elements. */
void call_start(call *c, const berth__cpu_isa *isa, berth__op_code op);
void call_operand(call *c, uint32_t index, berth_type type, uint32_t rank, const int64_t *dim);
void call_int(call *c, const char *name, int64_t value);
void call_ints(call *c, const char *name, const int64_t *values, uint32_t count);
void call_finish(call *c);
void call_run(const call *c);
void call_free(call *c);

uint64_t call_bytes(const call *c); /* of all operands and results */

#define CALL_F32(c, index, ...)                                                                         \
  call_operand((c), (index), BERTH_F32, (uint32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), \
               (int64_t[]){__VA_ARGS__})

#endif
