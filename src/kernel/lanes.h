/* Computes PURE instructions for any number of threads at a time; used by constant folding and the interpreter. */
#ifndef BERTH_KERNEL_LANES_H
#define BERTH_KERNEL_LANES_H

#include "kernel/kernel.h"

typedef union berth__lane {
  float f;
  int32_t i;
  uint32_t u; /* bool: 0 or 1 */
} berth__lane;

/* out[0 .. n - 1] from operands of type `from` (of select: of its arms); operands that the code does not have are
 * ignored. False: not a PURE instruction with operands. */
bool berth__lanes_compute(berth__inst_code code, berth__number type, berth__number from, berth__lane *out,
                          const berth__lane *a, const berth__lane *b, const berth__lane *c, uint32_t n);

#endif
