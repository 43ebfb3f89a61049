/* AVX2 with FMA. */
#include <immintrin.h>

#define VF_LANES 8
#define VI_HAS_DOT8 false
#define VI_HAS_NEAR true
#define VI_HAS_PAIRS true
#define VI_SATURATES true /* vi_store_bytes_of_two clamps its elements to the range of a byte */
typedef __m256 vf;
typedef __m256i vi; /* 8 i32 */

static inline __m256i vf_mask(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
static inline vf vf_set1(float x) { return _mm256_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm256_loadu_ps(p); }
static inline void vf_store(float *p, vf x) { _mm256_storeu_ps(p, x); }
static inline vf vf_load_n(const float *p, int64_t n) { return _mm256_maskload_ps(p, vf_mask(n)); }
static inline vf vf_load_else(const float *p, int64_t n, vf other) {
  return _mm256_blendv_ps(other, vf_load_n(p, n), _mm256_castsi256_ps(vf_mask(n)));
}
/* In parts: a masked store takes tens of operations on AMD's processors. */
static inline void vf_store_n(float *p, vf x, int64_t n) {
  __m128 part = _mm256_castps256_ps128(x);
  if (n >= VF_LANES) {
    _mm256_storeu_ps(p, x);
    return;
  }
  if (n & 4) {
    _mm_storeu_ps(p, part);
    part = _mm256_extractf128_ps(x, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi((__m64 *)(void *)p, part);
    part = _mm_movehl_ps(part, part);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, part);
}
static inline vf vf_load_bf16(const void *p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm_loadu_si128((const __m128i *)p)), 16));
}
static inline vf vf_load_f16(const void *p) { return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p)); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm256_fnmadd_ps(a, b, c); }
static inline vf vf_fma_half(vf a, vf b, vf c) { return vf_fma(a, b, c); }
static inline vf vf_min(vf a, vf b) { return _mm256_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm256_max_ps(a, b); }
static inline vf vf_sqrt(vf x) { return _mm256_sqrt_ps(x); }
static inline vf vf_abs(vf x) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), x); }
static inline vf vf_round(vf x) { return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vf_floor(vf x) { return _mm256_floor_ps(x); }
static inline vf vf_ceil(vf x) { return _mm256_ceil_ps(x); }
static inline float vf_fold(vf x, vf (*join)(vf, vf)) {
  x = join(x, _mm256_permute2f128_ps(x, x, 1));
  x = join(x, _mm256_shuffle_ps(x, x, _MM_SHUFFLE(1, 0, 3, 2)));
  x = join(x, _mm256_shuffle_ps(x, x, _MM_SHUFFLE(2, 3, 0, 1)));
  return _mm256_cvtss_f32(x);
}
static inline vf vf_add(vf a, vf b) { return _mm256_add_ps(a, b); }
static inline float vf_sum(vf x) { return vf_fold(x, vf_add); }
static inline float vf_most(vf x) { return vf_fold(x, vf_max); }
static inline float vf_least(vf x) { return vf_fold(x, vf_min); }
static inline vi vf_bits(vf x) { return _mm256_castps_si256(x); }
static inline vf vf_from_bits(vi x) { return _mm256_castsi256_ps(x); }
static inline vi vf_to_int(vf x) { return _mm256_cvtps_epi32(x); }
static inline vf vf_from_int(vi x) { return _mm256_cvtepi32_ps(x); }
static inline vi vi_set1(int32_t x) { return _mm256_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm256_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm256_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm256_and_si256(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm256_or_si256(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm256_xor_si256(a, b); }
#define vi_shift_left(x, n) _mm256_slli_epi32(x, n)
#define vi_shift_right(x, n) _mm256_srli_epi32(x, n)
static inline vf vf_pick_lt(vf a, vf b, vf x, vf y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LT_OQ)); }
static inline vf vf_pick_le(vf a, vf b, vf x, vf y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_LE_OQ)); }
static inline vf vf_pick_eq(vf a, vf b, vf x, vf y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_EQ_OQ)); }
static inline vf vf_pick_nan(vf a, vf x, vf y) { return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, a, _CMP_UNORD_Q)); }
static inline void vf_transpose(vf x[8]) {
  vf y[8];
  for (int i = 0; i < 8; i += 2) {
    y[i] = _mm256_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm256_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < 8; i += 4)
    for (int half = 0; half < 2; half++) {
      x[i + 2 * half] = _mm256_shuffle_ps(y[i + half], y[i + half + 2], _MM_SHUFFLE(1, 0, 1, 0));
      x[i + 2 * half + 1] = _mm256_shuffle_ps(y[i + half], y[i + half + 2], _MM_SHUFFLE(3, 2, 3, 2));
    }
  for (int i = 0; i < 4; i++) {
    const vf low = x[i], high = x[i + 4];
    x[i] = _mm256_permute2f128_ps(low, high, 0x20);
    x[i + 4] = _mm256_permute2f128_ps(low, high, 0x31);
  }
}
static inline vi vi_load(const void *p) { return _mm256_loadu_si256((const __m256i *)p); }
static inline void vi_store(void *p, vi x) { _mm256_storeu_si256((__m256i *)p, x); }
static inline vi vi_mul(vi a, vi b) { return _mm256_mullo_epi32(a, b); }
static inline __m128i vi_bytes_n(const void *p, int64_t n) {
  uint64_t bytes = 0;
  if (n == VF_LANES)
    memcpy(&bytes, p, sizeof bytes);
  else
    memcpy(&bytes, p, (size_t)n);
  return _mm_cvtsi64_si128((long long)bytes);
}
static inline vi vi_load_u8_n(const void *p, int64_t n) { return _mm256_cvtepu8_epi32(vi_bytes_n(p, n)); }
static inline vi vi_load_i8_n(const void *p, int64_t n) { return _mm256_cvtepi8_epi32(vi_bytes_n(p, n)); }
static inline void vi_store_bytes_n(void *p, vi x, int64_t n) {
  const vi pick = _mm256_setr_epi8(0, 4, 8, 12, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, 0, 4, 8,
                                   12, -1, -1, -1, -1, -1, -1, -1, -1);
  const vi bytes = _mm256_shuffle_epi8(x, pick);
  const __m128i both = _mm_or_si128(_mm256_castsi256_si128(bytes), _mm256_extracti128_si256(bytes, 1));
  if (n == VF_LANES) {
    _mm_storel_epi64((__m128i *)p, both);
    return;
  }
  const long long all = _mm_cvtsi128_si64(both);
  memcpy(p, &all, (size_t)n);
}
/* Stores two vectors of elements that fit a byte to each of two addresses. */
static inline void vi_store_bytes_of_two(void *p, void *q, const vi x[2], const vi y[2], bool is_signed) {
  const vi a = _mm256_packs_epi32(x[0], x[1]), b = _mm256_packs_epi32(y[0], y[1]);
  const vi mixed = is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b);
  const vi bytes = _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
  _mm_storeu_si128((__m128i *)p, _mm256_castsi256_si128(bytes));
  _mm_storeu_si128((__m128i *)q, _mm256_extracti128_si256(bytes, 1));
}
/* Even and odd bytes as pairs of 16 bits: two products with bytes fit into 32. */
static inline vi vi_even_u8(vi x) { return _mm256_and_si256(x, _mm256_set1_epi16(255)); }
static inline vi vi_odd_u8(vi x) { return _mm256_srli_epi16(x, 8); }
static inline vi vi_even_i8(vi w) { return _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8); }
static inline vi vi_odd_i8(vi w) { return _mm256_srai_epi16(w, 8); }
static inline vi vi_dot2(vi sum, vi x, vi w) {
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, w));
  __asm__("" : "+x"(sum)); /* otherwise gcc adds products to each other first and runs out of registers */
  return sum;
}
static inline vi vi_dot(vi sum, vi x, vi w) {
  return vi_dot2(vi_dot2(sum, vi_even_u8(x), vi_even_i8(w)), vi_odd_u8(x), vi_odd_i8(w));
}
/* The same for weights near 0: no sum of two neighbouring products exceeds 16 bits, whatever x is. */
static inline vi vi_dot_near(vi sum, vi x, vi w) {
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(x, w), _mm256_set1_epi16(1)));
  __asm__("" : "+x"(sum));
  return sum;
}
/* The same for two x with two w each, where the sum of all four products of a lane fits 16 bits. The second w is a
 * memory operand of the product, because registers are scarce. */
static inline vi vi_dot_near_two(vi sum, vi x, vi w, vi other_x, const void *other_w) {
  vi other;
  __asm__("vpmaddubsw %2, %1, %0" : "=x"(other) : "x"(other_x), "m"(*(const __m256i_u *)other_w));
  const vi both = _mm256_add_epi16(_mm256_maddubs_epi16(x, w), other);
  sum = _mm256_add_epi32(sum, _mm256_madd_epi16(both, _mm256_set1_epi16(1)));
  __asm__("" : "+x"(sum));
  return sum;
}
/* The sums of what is above 0 and of what is below 0 in each pair of neighbours, which may be added up, and whether w
 * with such sums are near 0. */
static inline vi vi_above(vi w) {
  return _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_max_epi8(w, _mm256_setzero_si256()));
}
static inline vi vi_below(vi w) {
  return _mm256_maddubs_epi16(_mm256_set1_epi8(1), _mm256_min_epi8(w, _mm256_setzero_si256()));
}
static inline vi vi_add_16(vi a, vi b) { return _mm256_add_epi16(a, b); }
static inline bool vi_are_near(vi above, vi below) {
  const vi most = _mm256_set1_epi16(128), least = _mm256_set1_epi16(-128);
  const vi far = _mm256_or_si256(_mm256_cmpgt_epi16(above, most), _mm256_cmpgt_epi16(least, below));
  return _mm256_testz_si256(far, far) != 0;
}
static inline vi vi_evens(vi w) { return _mm256_and_si256(w, _mm256_set1_epi16(0x00ff)); }
static inline vi vi_odds(vi w) { return _mm256_andnot_si256(_mm256_set1_epi16(0x00ff), w); }
/* 2 VF_LANES bytes from each of two addresses, as pairs of 16 bits, in order. */
static inline void vi_pairs_u8(const void *a, const void *b, vi out[2]) {
  const __m128i x = _mm_loadu_si128((const __m128i *)a), y = _mm_loadu_si128((const __m128i *)b);
  out[0] = _mm256_cvtepu8_epi16(_mm_unpacklo_epi8(x, y));
  out[1] = _mm256_cvtepu8_epi16(_mm_unpackhi_epi8(x, y));
}
static inline void vi_pairs_i8(const void *a, const void *b, vi out[2]) {
  const __m128i x = _mm_loadu_si128((const __m128i *)a), y = _mm_loadu_si128((const __m128i *)b);
  out[0] = _mm256_cvtepi8_epi16(_mm_unpacklo_epi8(x, y));
  out[1] = _mm256_cvtepi8_epi16(_mm_unpackhi_epi8(x, y));
}
static inline int vi_mixed(int part, int lane) { return lane / 4 * 16 + part * 4 + lane % 4; }
static inline vi vi_row_n(const void *p, int64_t n) {
  unsigned char bytes[32] = {0};
  if (n >= 32) return vi_load(p);
  memcpy(bytes, p, (size_t)n);
  return vi_load(bytes);
}
static inline void vi_mix_n(const void *const row[4], int64_t n, vi out[4]) {
  vi x[4];
  for (int i = 0; i < 4; i++) x[i] = vi_row_n(row[i], n);
  const vi low = _mm256_unpacklo_epi8(x[0], x[1]), high = _mm256_unpackhi_epi8(x[0], x[1]);
  const vi low2 = _mm256_unpacklo_epi8(x[2], x[3]), high2 = _mm256_unpackhi_epi8(x[2], x[3]);
  out[0] = _mm256_unpacklo_epi16(low, low2);
  out[1] = _mm256_unpackhi_epi16(low, low2);
  out[2] = _mm256_unpacklo_epi16(high, high2);
  out[3] = _mm256_unpackhi_epi16(high, high2);
}
static inline void vi_unmix_n(void *p, const vi x[4], int64_t n, bool is_signed) {
  const vi a = _mm256_packs_epi32(x[0], x[1]), b = _mm256_packs_epi32(x[2], x[3]);
  unsigned char bytes[32];
  vi_store(n >= 32 ? p : (void *)bytes, is_signed ? _mm256_packs_epi16(a, b) : _mm256_packus_epi16(a, b));
  if (n < 32) memcpy(p, bytes, (size_t)n);
}
static inline vf vf_sums(vf x[8]) {
  for (int i = 0; i < 4; i++)
    x[i] = _mm256_unpacklo_ps(x[2 * i], x[2 * i + 1]) + _mm256_unpackhi_ps(x[2 * i], x[2 * i + 1]);
  for (int i = 0; i < 2; i++)
    x[i] = _mm256_shuffle_ps(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(1, 0, 1, 0)) +
           _mm256_shuffle_ps(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(3, 2, 3, 2));
  return _mm256_permute2f128_ps(x[0], x[1], 0x20) + _mm256_permute2f128_ps(x[0], x[1], 0x31);
}
static inline vi vi_widen_i8(const void *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
static inline vi vi_widen_u8(const void *p) { /* minus 128 */
  return _mm256_cvtepi8_epi16(_mm_xor_si128(_mm_loadu_si128((const __m128i *)p), _mm_set1_epi8(-128)));
}
static inline vi vi_sums(const vi x[8]) {
  const vi low = _mm256_hadd_epi32(_mm256_hadd_epi32(x[0], x[1]), _mm256_hadd_epi32(x[2], x[3]));
  const vi high = _mm256_hadd_epi32(_mm256_hadd_epi32(x[4], x[5]), _mm256_hadd_epi32(x[6], x[7]));
  return _mm256_add_epi32(_mm256_permute2x128_si256(low, high, 0x20), _mm256_permute2x128_si256(low, high, 0x31));
}
static inline vi vi_pack_16(vi low, vi high) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), _MM_SHUFFLE(3, 1, 2, 0));
}
