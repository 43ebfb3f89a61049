/* The measured peak of a machine, or a device: multiply-adds, and copies. */
#ifndef BERTH_TOOLS_PEAK_H
#define BERTH_TOOLS_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

enum {
  PEAK_COPIES = 4
};

typedef struct peak_copy {
  uint64_t bytes;  /* read and written, by all threads: sizes from any cache to main memory */
  double gb_per_s; /* at that size */
} peak_copy;

typedef struct peak {
  bool is_device; /* measured by kernels on a device: multiply-adds of a product, not of registers only */
  double gflops;  /* f32 multiply-adds, each counted as two */
  peak_copy copies[PEAK_COPIES];
} peak;

extern const uint64_t peak_copy_bytes[PEAK_COPIES];

/* The CPU. Takes some tens of milliseconds and, during that time, 128 MiB. Figures that cannot be measured are 0. */
peak peak_measure(uint32_t n_threads);
/* peak_device.c: another device. Takes about a second, mostly for compiling kernels. */
peak peak_measure_on(berth_context *ctx, const char *device, const char *gpu_profile);
/* A lower bound on the time for these operations and bytes; 0 if the peak is unknown. */
double peak_least_ms(const peak *p, double flops, uint64_t bytes);

#endif
