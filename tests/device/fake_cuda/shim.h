/* What rendered CUDA C needs to be C: stands before kernels in the place of their prelude. */
typedef _Bool bool;
#define true 1
#define false 0
#define BERTH_KERNEL(threads) static void
#define BERTH_FUNCTION static
#define __shared__ static
#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))
typedef struct uint4 {
  unsigned x, y, z, w;
} uint4;
struct fake_index {
  unsigned x;
};
struct fake_index blockIdx, threadIdx;
void (*fake_barrier)(void);
#define __syncthreads() fake_barrier()
float fminf(float, float), fmaxf(float, float), fabsf(float), fmaf(float, float, float), sqrtf(float), expf(float),
    floorf(float), ceilf(float), truncf(float), rintf(float);
int abs(int);
static unsigned __float_as_uint(float x) {
  unsigned bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
static int __float_as_int(float x) { return (int)__float_as_uint(x); }
static float __uint_as_float(unsigned bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}
static float __int_as_float(int bits) { return __uint_as_float((unsigned)bits); }
static float berth_from_half(unsigned bits) {
  const unsigned short low = (unsigned short)bits;
  _Float16 x;
  __builtin_memcpy(&x, &low, 2);
  return (float)x;
}
static unsigned berth_half_bits(float x) {
  const _Float16 near = (_Float16)x;
  unsigned short bits;
  __builtin_memcpy(&bits, &near, 2);
  return bits;
}
static float berth_near_half(float x) { return berth_from_half(berth_half_bits(x)); }
static int fake_min_i(int a, int b) { return a < b ? a : b; }
static int fake_max_i(int a, int b) { return a > b ? a : b; }
static unsigned fake_min_u(unsigned a, unsigned b) { return a < b ? a : b; }
static unsigned fake_max_u(unsigned a, unsigned b) { return a > b ? a : b; }
#define min(a, b) _Generic((a) + (b), int : fake_min_i, unsigned : fake_min_u)(a, b)
#define max(a, b) _Generic((a) + (b), int : fake_max_i, unsigned : fake_max_u)(a, b)
static unsigned atomicMax(unsigned *at, unsigned value) {
  const unsigned old = *at;
  if (value > old) *at = value;
  return old;
}
