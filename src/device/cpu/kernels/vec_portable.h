/* Plain C with the vector types of gcc and clang: four lanes, which compilers map to SSE2, NEON or other
 * instructions. */
#define VF_LANES 4
#define VI_HAS_DOT8 false
#define VI_HAS_NEAR false
#define VI_HAS_PAIRS false
#define VI_SATURATES false
typedef float vf __attribute__((vector_size(16)));
typedef int32_t vi __attribute__((vector_size(16)));
typedef uint32_t vf_unsigned __attribute__((vector_size(16)));
typedef int16_t vi_half __attribute__((vector_size(16)));
static inline vi vi_add(vi a, vi b) { return (vi)((vf_unsigned)a + (vf_unsigned)b); }

#ifdef __wasm_simd128__
#include "device/cpu/kernels/vec_wasm.h"
#else
static inline vf vf_choose(vi mask, vf x, vf y) { return (vf)(((vi)x & mask) | ((vi)y & ~mask)); }
static inline vf vf_min(vf a, vf b) { return vf_choose((vi)(a < b), a, b); }
static inline vf vf_max(vf a, vf b) { return vf_choose((vi)(a > b), a, b); }
static inline vf vf_each(vf x, float (*f)(float)) { return (vf){f(x[0]), f(x[1]), f(x[2]), f(x[3])}; }
static inline vf vf_sqrt(vf x) { return vf_each(x, sqrtf); }
static inline vf vf_round(vf x) { return vf_each(x, rintf); }
static inline vf vf_floor(vf x) { return vf_each(x, floorf); }
static inline vf vf_ceil(vf x) { return vf_each(x, ceilf); }
static inline vi vf_to_int(vf x) {
  vi r;
  for (int i = 0; i < 4; i++) r[i] = x[i] >= -2147483648.0f && x[i] < 2147483648.0f ? (int32_t)rintf(x[i]) : INT32_MIN;
  return r;
}
static inline vf vf_from_int(vi x) { return (vf){(float)x[0], (float)x[1], (float)x[2], (float)x[3]}; }
static inline void vf_transpose(vf x[4]) {
  for (int row = 1; row < 4; row++)
    for (int column = 0; column < row; column++) {
      const float swapped = x[row][column];
      x[row][column] = x[column][row];
      x[column][row] = swapped;
    }
}
static inline vi vi_load_u8_n(const void *p, int64_t n) {
  vi x = {0, 0, 0, 0};
  for (int64_t i = 0; i < n; i++) x[i] = ((const uint8_t *)p)[i];
  return x;
}
static inline vi vi_load_i8_n(const void *p, int64_t n) {
  vi x = {0, 0, 0, 0};
  for (int64_t i = 0; i < n; i++) x[i] = ((const int8_t *)p)[i];
  return x;
}
/* Products of pairs of 16-bit halves, summed. The products are of bytes: they fit into 16 bits. */
static inline vi vi_dot_halves(vi_half a, vi_half b) {
  const vi products = (vi)(a * b);
  return vi_add((vi)((vf_unsigned)products << 16) >> 16, products >> 16);
}
static inline void vi_mix_n(const void *const row[4], int64_t n, vi out[4]) {
  unsigned char bytes[64] = {0};
  for (int64_t i = 0; i < 4; i++)
    for (int64_t k = 0; k < (n < 16 ? n : 16); k++) bytes[k * 4 + i] = ((const unsigned char *)row[i])[k];
  memcpy(out, bytes, sizeof bytes);
}
/* Converted as a vector: lane by lane, it takes longer than the products that follow. */
typedef int8_t vi_bytes __attribute__((vector_size(8)));
static inline vi vi_widen_i8(const void *p) {
  vi_bytes x;
  memcpy(&x, p, sizeof x);
  return (vi) __builtin_convertvector(x, vi_half);
}
static inline vi vi_widen_u8(const void *p) { /* minus 128 */
  vi_bytes x;
  memcpy(&x, p, sizeof x);
  return (vi) __builtin_convertvector(x ^ (int8_t)-128, vi_half);
}
#endif

static inline vf vf_set1(float x) { return (vf){x, x, x, x}; }
static inline vf vf_load(const float *p) {
  vf x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void vf_store(float *p, vf x) { memcpy(p, &x, sizeof x); }
static inline vf vf_load_n(const float *p, int64_t n) {
  vf x = {0, 0, 0, 0};
  memcpy(&x, p, (size_t)n * sizeof *p);
  return x;
}
static inline vf vf_load_else(const float *p, int64_t n, vf other) {
  memcpy(&other, p, (size_t)n * sizeof *p);
  return other;
}
static inline void vf_store_n(float *p, vf x, int64_t n) {
  for (int64_t i = 0; i < n; i++) p[i] = x[i];
}
static inline vf vf_load_bf16(const void *p) {
  uint16_t half[4];
  memcpy(half, p, sizeof half);
  const vf_unsigned bits = {half[0], half[1], half[2], half[3]};
  return (vf)(bits << 16);
}
/* Exponent and mantissa moved to where f32 has them give the number times 2^-112; infinities and NaN then need a
 * correction. */
static inline vf vf_load_f16(const void *p) {
  uint16_t half[4];
  memcpy(half, p, sizeof half);
  const vf_unsigned bits = {half[0], half[1], half[2], half[3]};
  const vf_unsigned moved = (bits & 0x7fff) << 13, sign = (bits & 0x8000) << 16;
  const vf_unsigned beyond = (vf_unsigned)((vi)moved >= 0x0f800000) & 0x7f800000;
  const vf x = (vf)moved * (vf){0x1p112f, 0x1p112f, 0x1p112f, 0x1p112f};
  return (vf)((vf_unsigned)x | beyond | sign);
}
static inline vf vf_fma(vf a, vf b, vf c) { return a * b + c; }
static inline vf vf_fnma(vf a, vf b, vf c) { return c - a * b; }
static inline vf vf_fma_half(vf a, vf b, vf c) { return vf_fma(a, b, c); }
static inline vf vf_abs(vf x) { return (vf)((vi)x & 0x7fffffff); }
static inline float vf_sum(vf x) { return (x[0] + x[2]) + (x[1] + x[3]); }
static inline float vf_most(vf x) {
  const float a = x[0] > x[2] ? x[0] : x[2], b = x[1] > x[3] ? x[1] : x[3];
  return a > b ? a : b;
}
static inline float vf_least(vf x) {
  const float a = x[0] < x[2] ? x[0] : x[2], b = x[1] < x[3] ? x[1] : x[3];
  return a < b ? a : b;
}
static inline vi vf_bits(vf x) { return (vi)x; }
static inline vf vf_from_bits(vi x) { return (vf)x; }
static inline vi vi_set1(int32_t x) { return (vi){x, x, x, x}; }
static inline vi vi_sub(vi a, vi b) { return (vi)((vf_unsigned)a - (vf_unsigned)b); }
static inline vi vi_and(vi a, vi b) { return a & b; }
static inline vi vi_or(vi a, vi b) { return a | b; }
static inline vi vi_xor(vi a, vi b) { return a ^ b; }
#define vi_shift_left(x, n) ((vi)((vf_unsigned)(x) << (n)))
#define vi_shift_right(x, n) ((vi)((vf_unsigned)(x) >> (n)))
static inline vf vf_pick_lt(vf a, vf b, vf x, vf y) { return vf_choose((vi)(a < b), x, y); }
static inline vf vf_pick_le(vf a, vf b, vf x, vf y) { return vf_choose((vi)(a <= b), x, y); }
static inline vf vf_pick_eq(vf a, vf b, vf x, vf y) { return vf_choose((vi)(a == b), x, y); }
static inline vf vf_pick_nan(vf a, vf x, vf y) {
  return vf_choose((vi)(a == a), y, x); /* NOLINT(misc-redundant-expression): which NaN alone is not */
}
static inline vi vi_load(const void *p) {
  vi x;
  memcpy(&x, p, sizeof x);
  return x;
}
static inline void vi_store(void *p, vi x) { memcpy(p, &x, sizeof x); }
static inline vi vi_mul(vi a, vi b) { return (vi)((vf_unsigned)a * (vf_unsigned)b); }
static inline void vi_store_bytes_n(void *p, vi x, int64_t n) {
  for (int64_t i = 0; i < n; i++) ((uint8_t *)p)[i] = (uint8_t)(x[i] & 255);
}
static inline void vi_store_bytes_of_two(void *p, void *q, const vi x[2], const vi y[2], bool is_signed) {
  (void)is_signed;
  for (int v = 0; v < 2; v++) vi_store_bytes_n((unsigned char *)p + v * VF_LANES, x[v], VF_LANES);
  for (int v = 0; v < 2; v++) vi_store_bytes_n((unsigned char *)q + v * VF_LANES, y[v], VF_LANES);
}
/* Even and odd bytes. */
static inline vi vi_even_u8(vi x) { return x & 0x00ff00ff; }
static inline vi vi_odd_u8(vi x) { return (vi)((vf_unsigned)x >> 8 & 0x00ff00ff); }
static inline vi vi_even_i8(vi w) { return (vi)((vi_half)((vf_unsigned)w << 8) >> 8); }
static inline vi vi_odd_i8(vi w) { return (vi)((vi_half)w >> 8); }
static inline vi vi_dot2(vi sum, vi x, vi w) { return vi_add(sum, vi_dot_halves((vi_half)x, (vi_half)w)); }
static inline vi vi_dot(vi sum, vi x, vi w) {
  return vi_dot2(vi_dot2(sum, vi_even_u8(x), vi_even_i8(w)), vi_odd_u8(x), vi_odd_i8(w));
}
static inline vi vi_dot_near(vi sum, vi x, vi w) { return vi_dot(sum, x, w); }
static inline vi vi_dot_near_two(vi sum, vi x, vi w, vi other_x, const void *other_w) {
  return vi_dot(vi_dot(sum, x, w), other_x, vi_load(other_w));
}
static inline vi vi_above(vi w) { return w; }
static inline vi vi_below(vi w) { return w; }
static inline vi vi_add_16(vi a, vi b) { return vi_add(a, b); }
static inline bool vi_are_near(vi above, vi below) {
  (void)above;
  (void)below;
  return false;
}
static inline vi vi_evens(vi w) { return w; }
static inline vi vi_odds(vi w) { return w; }
static inline int vi_mixed(int part, int lane) { return part * 4 + lane; }
static inline void vi_unmix_n(void *p, const vi x[4], int64_t n, bool is_signed) {
  (void)is_signed;
  for (int64_t k = 0; k < (n < 16 ? n : 16); k++) ((uint8_t *)p)[k] = (uint8_t)(x[k / 4][k % 4] & 255);
}
static inline vf vf_sums(vf x[4]) {
  vf_transpose(x);
  return (x[0] + x[2]) + (x[1] + x[3]);
}
static inline vi vi_sums(const vi x[4]) {
  vi sums;
  for (int i = 0; i < 4; i++) sums[i] = (x[i][0] + x[i][1]) + (x[i][2] + x[i][3]);
  return sums;
}
static inline vi vi_pack_16(vi low, vi high) {
  vi_half x;
  for (int i = 0; i < 4; i++) {
    x[i] = (int16_t)low[i];
    x[i + 4] = (int16_t)high[i];
  }
  return (vi)x;
}
