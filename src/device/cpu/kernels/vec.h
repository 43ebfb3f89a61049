/* The thin vector layer: one vector width per instruction set. `vf` is a vector of VF_LANES f32.
 *
 * Plain arithmetic on vf works with + - * / as in C. Functions that end in _n touch only the first n lanes of memory (0
 * <= n <= VF_LANES); the other lanes are loaded as 0. vf_load_f16 and vf_load_bf16 load VF_LANES elements as f32.
 * BERTH__PER_ISA(name) makes a name that is unique to this build. */
#ifndef BERTH_DEVICE_CPU_KERNELS_VEC_H
#define BERTH_DEVICE_CPU_KERNELS_VEC_H

#include <math.h>
#include <string.h>

#include "device/cpu/kernel.h"

#define BERTH__GLUE_(a, b) a##_##b
#define BERTH__GLUE(a, b) BERTH__GLUE_(a, b)
#define BERTH__PER_ISA(name) BERTH__GLUE(name, BERTH__ISA)
#define BERTH__TEXT_(a) #a
#define BERTH__TEXT(a) BERTH__TEXT_(a)
#define BERTH__ISA_NAME BERTH__TEXT(BERTH__ISA)

#if defined(__AVX512F__) && defined(__AVX512BW__) && defined(__AVX512VL__)
#include "device/cpu/kernels/vec_avx512.h"
#elif defined(__AVX2__) && defined(__FMA__)
#include "device/cpu/kernels/vec_avx2.h"
#else
#include "device/cpu/kernels/vec_portable.h"
#endif

#define VF_PANEL (2 * VF_LANES)

static inline vf vf_zero(void) { return vf_set1(0.0f); }
/* NaN stays. */
static inline vf vf_clamp(vf x, vf low, vf high) { return vf_min(high, vf_max(low, x)); }
/* x / y as a product with 1 / y, corrected by its remainder, which rounds like a division. It needs fused multiply-add,
 * a finite x, and a y that satisfies vf_divides_fast. */
static inline bool vf_divides_fast(float y) { return fabsf(y) > 0x1p-100f && fabsf(y) < 0x1p100f; }
static inline vf vf_quotient(vf x, vf y, vf reciprocal) {
#ifdef __FMA__
  const vf about = x * reciprocal;
  return vf_fma(vf_fnma(about, y, x), reciprocal, about);
#else
  (void)reciprocal;
  return x / y;
#endif
}
/* An element that may be unaligned: weights are read in place in their file. */
static inline float vf_read(const float *p) {
  float x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline vf vf_load_f16_n(const void *p, int64_t n) {
#if defined(__AVX512F__) && VF_LANES == 16
  return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(vf_mask(n), p));
#else
  uint16_t halves[VF_LANES] = {0};
  memcpy(halves, p, (size_t)n * sizeof *halves);
  return vf_load_f16(halves);
#endif
}
static inline int64_t vf_tail(int64_t left) { return left < VF_LANES ? left : VF_LANES; }

#endif
