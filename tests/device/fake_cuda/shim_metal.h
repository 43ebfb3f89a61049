/* Definitions that make rendered Metal valid C++: they replace the prologue of kernels. */
typedef unsigned uint;
typedef unsigned short ushort;
typedef unsigned char uchar;
struct uint4 {
  uint x, y, z, w;
};
struct fake_index {
  uint x;
};
extern "C" {
fake_index blockIdx, threadIdx;
void (*fake_barrier)(void);
}
#define device
#define threadgroup static
#define kernel static
#define char signed char /* signed, as in Metal, on every host */
#define berth_select(no, yes, condition) ((condition) ? (yes) : (no))
enum class mem_flags {
  mem_threadgroup
};
enum memory_order {
  memory_order_relaxed
};
static void threadgroup_barrier(mem_flags) { fake_barrier(); }
static uint fake_said[1024];
template <typename number>
static number simd_shuffle_xor(number x, ushort by) {
  number y;
  __builtin_memcpy(&fake_said[threadIdx.x], &x, sizeof x);
  fake_barrier();
  __builtin_memcpy(&y, &fake_said[threadIdx.x ^ by], sizeof y);
  fake_barrier();
  return y;
}
typedef uint atomic_uint;
static void atomic_fetch_max_explicit(atomic_uint *at, uint value, memory_order) {
  if (value > *at) *at = value;
}

/* An f16, which the host's C++ may lack. */
struct half {
  ushort bits;
  operator float() const {
    const uint exponent = bits >> 10 & 31u, fraction = bits & 1023u;
    float size = __builtin_ldexpf((float)(exponent != 0 ? fraction + 1024u : fraction),
                                  (int)(exponent != 0 ? exponent : 1u) - 25);
    if (exponent == 31u) size = fraction != 0 ? __builtin_nanf("") : __builtin_inff();
    return (bits & 32768u) != 0 ? -size : size;
  }
};
template <typename to, typename from>
static to as_type(from x) {
  static_assert(sizeof(to) == sizeof(from), "as_type keeps the size");
  to y;
  __builtin_memcpy(&y, &x, sizeof y);
  return y;
}
static float berth_from_half(uint bits) { return (float)as_type<half>((ushort)bits); }

template <typename number>
static number min(number a, number b) {
  return a < b ? a : b;
}
template <typename number>
static number max(number a, number b) {
  return a < b ? b : a;
}
static int abs(int a) { return a < 0 ? -a : a; }
static float abs(float a) { return __builtin_fabsf(a); }
static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
static float sqrt(float a) { return __builtin_sqrtf(a); }
static float exp(float a) { return __builtin_expf(a); }
static float floor(float a) { return __builtin_floorf(a); }
static float ceil(float a) { return __builtin_ceilf(a); }
static float trunc(float a) { return __builtin_truncf(a); }
static float rint(float a) { return __builtin_rintf(a); }

/* A parameter of any pointer type. */
struct fake_pointer {
  void *at;
  template <typename element>
  operator element *() const {
    return (element *)at;
  }
};
