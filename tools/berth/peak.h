/* What a machine, or a device, can do at best, measured now: multiply-adds, and copies. */
#ifndef BERTH_TOOLS_PEAK_H
#define BERTH_TOOLS_PEAK_H

#include <stdbool.h>
#include <stdint.h>

#include "berth/berth.h"

enum {
  PEAK_COPIES = 4
};

typedef struct peak_copy {
  uint64_t bytes;  /* read and written, by all threads: from what fits any cache to what fits none */
  double gb_per_s; /* of such bytes */
} peak_copy;

typedef struct peak {
  bool is_device; /* a device's own, by kernels that run there: multiply-adds of a product, not of registers alone */
  double gflops;  /* f32 multiply-adds, each counted as two */
  peak_copy copies[PEAK_COPIES];
} peak;

extern const uint64_t peak_copy_bytes[PEAK_COPIES];

/* The CPU. Takes some tens of milliseconds and, for that time, 128 MiB. A figure that cannot be had is 0. */
peak peak_measure(uint32_t n_threads);
/* peak_device.c: another device. Takes a second or so, most of it for kernels to be compiled. */
peak peak_measure_on(berth_context *ctx, const char *device, const char *gpu_profile);
/* The least time for so much arithmetic on so many bytes; 0 where the peak is not known. */
double peak_least_ms(const peak *p, double flops, uint64_t bytes);

#endif
