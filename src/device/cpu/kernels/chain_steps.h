/* The steps of chains as loops over arrays, and the conversion of elements of other types on the way in and out. */
#ifndef BERTH_DEVICE_CPU_KERNELS_CHAIN_STEPS_H
#define BERTH_DEVICE_CPU_KERNELS_CHAIN_STEPS_H

#include "device/cpu/kernels/vec.h"
#include "ops/chain.h"

/* Contiguous f32 (step 1), or one number repeated to a vector (step 0). */
typedef struct chain_register {
  const float *at;
  int64_t step;
} chain_register;

/* n elements from up to four registers; `out` may be one of them. */
typedef void (*chain_step)(float *out, const chain_register *in, int64_t n);

#define chain_steps BERTH__PER_ISA(berth__chain_steps)
#define chain_pair BERTH__PER_ISA(berth__chain_pair)
#define chain_divides_fast BERTH__PER_ISA(berth__chain_divides_fast)
#define chain_load BERTH__PER_ISA(berth__chain_load)
#define chain_store BERTH__PER_ISA(berth__chain_store)

extern const chain_step chain_steps[BERTH__CHAIN_COUNT];
/* Two steps as one: x and y are the operands of the first step, and z and w the other operands of the second, which
 * reads the first one's result as its first operand. Missing operands are repeated constants. Divisions are by a
 * repeated constant, and w is its reciprocal. NULL: there is no such pair. */
chain_step chain_pair(berth__chain_code first, berth__chain_code second);
/* Whether division by this number may be in a pair. */
bool chain_divides_fast(float by);
/* n elements, `stride` apart, converted to f32. */
void chain_load(float *to, berth_type type, const void *from, int64_t stride, int64_t n);
/* Converted as the op cast does. */
void chain_store(void *to, berth_type type, const float *from, int64_t n);

#endif
