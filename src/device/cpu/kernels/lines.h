/* Element-wise calls of up to three operands as lines that are contiguous in the result, and contiguous or constant in
 * every operand. Operands that are contiguous along another axis (transposed ones) are transposed into lines first, a
 * rectangle at a time, so that not every element costs a cache line; strided ones are gathered. */
#ifndef BERTH_DEVICE_CPU_KERNELS_LINES_H
#define BERTH_DEVICE_CPU_KERNELS_LINES_H

#include "device/cpu/kernels/vec.h"

/* n elements; steps are 1 or 0, or any number if the line is short. */
typedef void (*line_run)(const void *state, void *out, const void *const *in, const int64_t *step, int64_t n);

#define lines_items BERTH__PER_ISA(berth__lines_items)
#define lines_do BERTH__PER_ISA(berth__lines_do)

/* For a contiguous result. */
int64_t lines_items(const berth_op_call *call);
void lines_do(const berth_op_call *call, line_run run, const void *state);

#endif
