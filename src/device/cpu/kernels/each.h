/* Loops over contiguous or strided elements, which compilers can vectorise. The result may overwrite the operand: every
 * element is read before its position is written. */
#ifndef BERTH_DEVICE_CPU_KERNELS_EACH_H
#define BERTH_DEVICE_CPU_KERNELS_EACH_H

/* Placed before a loop: it may be vectorised although the result may alias an operand. clang would warn about each loop
 * that it cannot vectorise. */
#ifdef __clang__
#define BERTH__TOGETHER
#else
#define BERTH__TOGETHER _Pragma("GCC ivdep")
#endif

/* o[i] = expression of x, which is element i of p, for n elements: p and o are pointers, `step` is the stride of p. */
#define BERTH__EACH_ONE(element, result, expression, step) \
  if ((step) == 1) {                                       \
    BERTH__TOGETHER                                        \
    for (int64_t i = 0; i < n; i++) {                      \
      const element x = p[i];                              \
      o[i] = (result)(expression);                         \
    }                                                      \
  } else {                                                 \
    BERTH__TOGETHER                                        \
    for (int64_t i = 0; i < n; i++) {                      \
      const element x = p[i * (step)];                     \
      o[i] = (result)(expression);                         \
    }                                                      \
  }

#endif
