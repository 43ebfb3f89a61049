/* Loops over elements that lie one after the other or some step apart, which compilers turn into vectors. The result
 * may lie where the operand does: every element is read before its place is written. */
#ifndef BERTH_DEVICE_CPU_KERNELS_EACH_H
#define BERTH_DEVICE_CPU_KERNELS_EACH_H

/* Before a loop: elements may be done together, though the result may lie where an operand does. clang would say which
 * loops it cannot do so. */
#ifdef __clang__
#define BERTH__TOGETHER
#else
#define BERTH__TOGETHER _Pragma("GCC ivdep")
#endif

/* o[i] = expression of x, the element i of p, for n of them: p and o are pointers, `step` is that of p. */
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
