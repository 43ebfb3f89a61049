/* The part of vec_portable.h that works lane by lane elsewhere and has instructions in WebAssembly. */
#include <wasm_simd128.h>

static inline vf vf_choose(vi mask, vf x, vf y) { return (vf)wasm_v128_bitselect((v128_t)x, (v128_t)y, (v128_t)mask); }
/* pmin and pmax return their first operand unless the second is smaller or larger: the reverse of what is needed. */
static inline vf vf_min(vf a, vf b) { return (vf)wasm_f32x4_pmin((v128_t)b, (v128_t)a); }
static inline vf vf_max(vf a, vf b) { return (vf)wasm_f32x4_pmax((v128_t)b, (v128_t)a); }
static inline vf vf_sqrt(vf x) { return (vf)wasm_f32x4_sqrt((v128_t)x); }
static inline vf vf_round(vf x) { return (vf)wasm_f32x4_nearest((v128_t)x); }
static inline vf vf_floor(vf x) { return (vf)wasm_f32x4_floor((v128_t)x); }
static inline vf vf_ceil(vf x) { return (vf)wasm_f32x4_ceil((v128_t)x); }
/* The instruction saturates values that are too large, and returns 0 for NaN. */
static inline vi vf_to_int(vf x) {
  const v128_t cut = wasm_i32x4_trunc_sat_f32x4(wasm_f32x4_nearest((v128_t)x));
  const v128_t is_small = wasm_f32x4_lt((v128_t)x, wasm_f32x4_const_splat(2147483648.0f));
  return (vi)wasm_v128_bitselect(cut, wasm_i32x4_const_splat(INT32_MIN), is_small);
}
static inline vf vf_from_int(vi x) { return (vf)wasm_f32x4_convert_i32x4((v128_t)x); }
static inline void vf_transpose(vf x[4]) {
  const v128_t a = (v128_t)x[0], b = (v128_t)x[1], c = (v128_t)x[2], d = (v128_t)x[3];
  const v128_t ab_low = wasm_i32x4_shuffle(a, b, 0, 4, 1, 5), ab_high = wasm_i32x4_shuffle(a, b, 2, 6, 3, 7);
  const v128_t cd_low = wasm_i32x4_shuffle(c, d, 0, 4, 1, 5), cd_high = wasm_i32x4_shuffle(c, d, 2, 6, 3, 7);
  x[0] = (vf)wasm_i64x2_shuffle(ab_low, cd_low, 0, 2);
  x[1] = (vf)wasm_i64x2_shuffle(ab_low, cd_low, 1, 3);
  x[2] = (vf)wasm_i64x2_shuffle(ab_high, cd_high, 0, 2);
  x[3] = (vf)wasm_i64x2_shuffle(ab_high, cd_high, 1, 3);
}

static inline v128_t vi_load_n(const void *p, int64_t n) {
  unsigned char bytes[16] = {0};
  if (n == 4) return wasm_v128_load32_zero(p);
  if (n >= 16) return wasm_v128_load(p);
  memcpy(bytes, p, (size_t)n);
  return wasm_v128_load(bytes);
}
static inline vi vi_load_u8_n(const void *p, int64_t n) {
  return (vi)wasm_u32x4_extend_low_u16x8(wasm_u16x8_extend_low_u8x16(vi_load_n(p, n)));
}
static inline vi vi_load_i8_n(const void *p, int64_t n) {
  return (vi)wasm_i32x4_extend_low_i16x8(wasm_i16x8_extend_low_i8x16(vi_load_n(p, n)));
}
static inline vi vi_widen_i8(const void *p) { return (vi)wasm_i16x8_load8x8(p); }
static inline vi vi_widen_u8(const void *p) { /* minus 128 */
  return (vi)wasm_i16x8_sub(wasm_u16x8_load8x8(p), wasm_i16x8_const_splat(128));
}
/* Products of pairs of 16-bit halves, summed. */
static inline vi vi_dot_halves(vi_half a, vi_half b) { return (vi)wasm_i32x4_dot_i16x8((v128_t)a, (v128_t)b); }
static inline void vi_mix_n(const void *const row[4], int64_t n, vi out[4]) {
  v128_t x[4];
  for (int i = 0; i < 4; i++) x[i] = vi_load_n(row[i], n);
  for (int half = 0; half < 2; half++) {
    const v128_t ab =
        half == 0 ? wasm_i8x16_shuffle(x[0], x[1], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
                  : wasm_i8x16_shuffle(x[0], x[1], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    const v128_t cd =
        half == 0 ? wasm_i8x16_shuffle(x[2], x[3], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
                  : wasm_i8x16_shuffle(x[2], x[3], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    out[2 * half] = (vi)wasm_i16x8_shuffle(ab, cd, 0, 8, 1, 9, 2, 10, 3, 11);
    out[2 * half + 1] = (vi)wasm_i16x8_shuffle(ab, cd, 4, 12, 5, 13, 6, 14, 7, 15);
  }
}
