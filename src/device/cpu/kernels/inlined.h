/* Loops over tiles whose sums are in registers: compilers must inline their functions and unroll them completely. gcc
 * wants to be told how many rounds there are at most. */
#ifndef BERTH_DEVICE_CPU_KERNELS_INLINED_H
#define BERTH_DEVICE_CPU_KERNELS_INLINED_H

#define INLINED static inline __attribute__((always_inline))
#ifdef __clang__
#define UNROLL _Pragma("clang loop unroll(full)")
#define UNROLL_FEW UNROLL
#else
#define UNROLL _Pragma("GCC unroll 16")
#define UNROLL_FEW _Pragma("GCC unroll 4")
#endif

#endif
