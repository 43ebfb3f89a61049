/* Zeros that windows read where they reach past their operand. Most rows are short enough to share one that nobody
 * writes; longer ones lie in each worker's scratch. */
#ifndef BERTH_DEVICE_CPU_ZEROS_H
#define BERTH_DEVICE_CPU_ZEROS_H

#include <stdint.h>
#include <string.h>

#define BERTH__CPU_ZEROS 1024

extern const float berth__cpu_zeros[BERTH__CPU_ZEROS];

/* Scratch for `size` bytes of zeros. */
static inline uint64_t berth__cpu_zeros_scratch(uint64_t size) { return size <= sizeof berth__cpu_zeros ? 0 : size; }

/* `size` bytes of zeros, for which there is that scratch. */
static inline const float *berth__cpu_zeros_in(void *scratch, uint64_t size) {
  if (size <= sizeof berth__cpu_zeros) return berth__cpu_zeros;
  return memset(scratch, 0, (size_t)size);
}

/* What follows them in the scratch, which is NULL if there is none. */
static inline void *berth__cpu_after_zeros(void *scratch, uint64_t size) {
  return size <= sizeof berth__cpu_zeros ? scratch : (char *)scratch + size;
}

#endif
