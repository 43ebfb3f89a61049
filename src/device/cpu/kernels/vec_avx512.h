/* AVX-512 with BW, VL and VNNI. */
#include <immintrin.h>

#define VF_LANES 16
#define VI_HAS_DOT8 true
#define VI_HAS_NEAR false
#define VI_HAS_PAIRS false
#define VI_SATURATES false
typedef __m512 vf;
typedef __m512i vi; /* 16 i32 */

static inline __mmask16 vf_mask(int64_t n) { return (__mmask16)((1u << n) - 1u); }
static inline vf vf_set1(float x) { return _mm512_set1_ps(x); }
static inline vf vf_load(const float *p) { return _mm512_loadu_ps(p); }
static inline void vf_store(float *p, vf x) { _mm512_storeu_ps(p, x); }
static inline vf vf_load_n(const float *p, int64_t n) { return _mm512_maskz_loadu_ps(vf_mask(n), p); }
/* Like vf_load_n, but lanes that are not loaded come from `other`. */
static inline vf vf_load_else(const float *p, int64_t n, vf other) {
  return _mm512_mask_loadu_ps(other, vf_mask(n), p);
}
static inline void vf_store_n(float *p, vf x, int64_t n) { _mm512_mask_storeu_ps(p, vf_mask(n), x); }
static inline vf vf_load_bf16(const void *p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256((const __m256i *)p)), 16));
}
static inline vf vf_load_f16(const void *p) { return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p)); }
static inline vf vf_fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }   /* a b + c */
static inline vf vf_fnma(vf a, vf b, vf c) { return _mm512_fnmadd_ps(a, b, c); } /* c - a b */
/* a * b + c in the first half; the second half is undefined. It takes half as long where a vector is computed in two
 * halves. */
static inline vf vf_fma_half(vf a, vf b, vf c) {
  return _mm512_castps256_ps512(
      _mm256_fmadd_ps(_mm512_castps512_ps256(a), _mm512_castps512_ps256(b), _mm512_castps512_ps256(c)));
}
/* As in the instruction: min(x, y) is y if either is NaN. */
static inline vf vf_min(vf a, vf b) { return _mm512_min_ps(a, b); }
static inline vf vf_max(vf a, vf b) { return _mm512_max_ps(a, b); }
static inline vf vf_sqrt(vf x) { return _mm512_sqrt_ps(x); }
static inline vf vf_abs(vf x) { return _mm512_abs_ps(x); }
static inline vf vf_round(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
static inline vf vf_floor(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); }
static inline vf vf_ceil(vf x) { return _mm512_roundscale_ps(x, _MM_FROUND_TO_POS_INF | _MM_FROUND_NO_EXC); }
static inline float vf_sum(vf x) { return _mm512_reduce_add_ps(x); }
static inline float vf_most(vf x) { return _mm512_reduce_max_ps(x); }
static inline float vf_least(vf x) { return _mm512_reduce_min_ps(x); }
/* The bits of a vector. */
static inline vi vf_bits(vf x) { return _mm512_castps_si512(x); }
static inline vf vf_from_bits(vi x) { return _mm512_castsi512_ps(x); }
static inline vi vf_to_int(vf x) { return _mm512_cvtps_epi32(x); } /* to nearest even */
static inline vf vf_from_int(vi x) { return _mm512_cvtepi32_ps(x); }
static inline vi vi_set1(int32_t x) { return _mm512_set1_epi32(x); }
static inline vi vi_add(vi a, vi b) { return _mm512_add_epi32(a, b); }
static inline vi vi_sub(vi a, vi b) { return _mm512_sub_epi32(a, b); }
static inline vi vi_and(vi a, vi b) { return _mm512_and_si512(a, b); }
static inline vi vi_or(vi a, vi b) { return _mm512_or_si512(a, b); }
static inline vi vi_xor(vi a, vi b) { return _mm512_xor_si512(a, b); }
#define vi_shift_left(x, n) _mm512_slli_epi32(x, n)
#define vi_shift_right(x, n) _mm512_srli_epi32(x, n) /* zeros come in */
/* x where a < b (and so on), elsewhere y. Comparisons with NaN are false. */
static inline vf vf_pick_lt(vf a, vf b, vf x, vf y) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LT_OQ), y, x);
}
static inline vf vf_pick_le(vf a, vf b, vf x, vf y) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_LE_OQ), y, x);
}
static inline vf vf_pick_eq(vf a, vf b, vf x, vf y) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ), y, x);
}
static inline vf vf_pick_nan(vf a, vf x, vf y) { /* where a is NaN: x */
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q), y, x);
}
/* Transposes: rows become columns. */
static inline void vf_transpose(vf x[16]) {
  vf y[16];
  for (int i = 0; i < 16; i += 2) {
    y[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
    y[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
  }
  for (int i = 0; i < 16; i += 4)
    for (int half = 0; half < 2; half++) {
      x[i + 2 * half] = _mm512_shuffle_ps(y[i + half], y[i + half + 2], _MM_SHUFFLE(1, 0, 1, 0));
      x[i + 2 * half + 1] = _mm512_shuffle_ps(y[i + half], y[i + half + 2], _MM_SHUFFLE(3, 2, 3, 2));
    }
  for (int i = 0; i < 4; i++)
    for (int half = 0; half < 2; half++) {
      y[8 * half + i] = _mm512_shuffle_f32x4(x[8 * half + i], x[8 * half + i + 4], _MM_SHUFFLE(2, 0, 2, 0));
      y[8 * half + i + 4] = _mm512_shuffle_f32x4(x[8 * half + i], x[8 * half + i + 4], _MM_SHUFFLE(3, 1, 3, 1));
    }
  for (int i = 0; i < 8; i++) {
    x[i % 4 + 4 * (i / 4)] = _mm512_shuffle_f32x4(y[i], y[i + 8], _MM_SHUFFLE(2, 0, 2, 0));
    x[i % 4 + 4 * (i / 4) + 8] = _mm512_shuffle_f32x4(y[i], y[i + 8], _MM_SHUFFLE(3, 1, 3, 1));
  }
}
/* Whole vectors of i32, and of bytes. */
static inline vi vi_load(const void *p) { return _mm512_loadu_si512(p); }
static inline void vi_store(void *p, vi x) { _mm512_storeu_si512(p, x); }
static inline vi vi_mul(vi a, vi b) { return _mm512_mullo_epi32(a, b); } /* the low 32 bits */
static inline vi vi_load_u8_n(const void *p, int64_t n) {
  return _mm512_cvtepu8_epi32(_mm_maskz_loadu_epi8(vf_mask(n), p));
}
static inline vi vi_load_i8_n(const void *p, int64_t n) {
  return _mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(vf_mask(n), p));
}
static inline void vi_store_bytes_n(void *p, vi x, int64_t n) { /* the low bytes */
  const __m128i bytes = _mm512_cvtepi32_epi8(x);
  if (n == VF_LANES)
    _mm_storeu_si128((__m128i *)p, bytes);
  else
    _mm_mask_storeu_epi8(p, vf_mask(n), bytes);
}
/* Stores two vectors of elements that fit a byte to each of two addresses. */
static inline void vi_store_bytes_of_two(void *p, void *q, const vi x[2], const vi y[2], bool is_signed) {
  (void)is_signed;
  for (int v = 0; v < 2; v++) vi_store_bytes_n((unsigned char *)p + v * VF_LANES, x[v], VF_LANES);
  for (int v = 0; v < 2; v++) vi_store_bytes_n((unsigned char *)q + v * VF_LANES, y[v], VF_LANES);
}
/* Per lane: sum + the four products of unsigned bytes of x with signed bytes of w. Nothing saturates. */
static inline vi vi_dot(vi sum, vi x, vi w) { return _mm512_dpbusd_epi32(sum, x, w); }
/* Even and odd bytes as pairs of 16 bits, and sum + the two products of such pairs: vi_dot in four steps, for
 * instruction sets without a better one (VI_HAS_DOT8), where it pays to do the first two only once. */
static inline vi vi_even_u8(vi x) { return _mm512_and_si512(x, _mm512_set1_epi16(255)); }
static inline vi vi_odd_u8(vi x) { return _mm512_srli_epi16(x, 8); }
static inline vi vi_even_i8(vi w) { return _mm512_srai_epi16(_mm512_slli_epi16(w, 8), 8); }
static inline vi vi_odd_i8(vi w) { return _mm512_srai_epi16(w, 8); }
static inline vi vi_dot2(vi sum, vi x, vi w) { return _mm512_dpwssd_epi32(sum, x, w); }
/* The first n (at most 4 VF_LANES) bytes of four rows: their columns become the lanes of four vectors. Which column
 * goes to which lane depends on the instruction set: element vi_mixed(part, lane). vi_unmix_n stores low bytes in the
 * order of the columns again. */
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
static inline int vi_mixed(int part, int lane) { return lane / 4 * 16 + part * 4 + lane % 4; }
static inline void vi_mix_n(const void *const row[4], int64_t n, vi out[4]) {
  const __mmask64 mask = n >= 64 ? ~(__mmask64)0 : ((__mmask64)1 << n) - 1;
  vi x[4];
  for (int i = 0; i < 4; i++) x[i] = _mm512_maskz_loadu_epi8(mask, row[i]);
  const vi low = _mm512_unpacklo_epi8(x[0], x[1]), high = _mm512_unpackhi_epi8(x[0], x[1]);
  const vi low2 = _mm512_unpacklo_epi8(x[2], x[3]), high2 = _mm512_unpackhi_epi8(x[2], x[3]);
  out[0] = _mm512_unpacklo_epi16(low, low2);
  out[1] = _mm512_unpackhi_epi16(low, low2);
  out[2] = _mm512_unpacklo_epi16(high, high2);
  out[3] = _mm512_unpackhi_epi16(high, high2);
}
static inline void vi_unmix_n(void *p, const vi x[4], int64_t n, bool is_signed) { /* elements that fit a byte */
  const vi a = _mm512_packs_epi32(x[0], x[1]), b = _mm512_packs_epi32(x[2], x[3]);
  vi bytes = is_signed ? _mm512_packs_epi16(a, b) : _mm512_packus_epi16(a, b);
  unsigned char *to = (unsigned char *)p;
  if (n >= 64) {
    vi_store(to, bytes);
    return;
  }
  if (n & 32) { /* in parts: masked stores of 64 bytes are slow on many machines */
    _mm256_storeu_si256((__m256i *)to, _mm512_castsi512_si256(bytes));
    bytes = _mm512_shuffle_i64x2(bytes, bytes, _MM_SHUFFLE(3, 2, 3, 2));
    to += 32;
  }
  if (n & 16) {
    _mm_storeu_si128((__m128i *)to, _mm512_castsi512_si128(bytes));
    bytes = _mm512_shuffle_i64x2(bytes, bytes, _MM_SHUFFLE(3, 3, 3, 1));
    to += 16;
  }
  if (n & 15) _mm_mask_storeu_epi8(to, (__mmask16)((1u << (n & 15)) - 1u), _mm512_castsi512_si128(bytes));
}
/* Lane i: the sum of x[i]. */
static inline vf vf_sums(vf x[16]) {
  for (int i = 0; i < 8; i++)
    x[i] = _mm512_unpacklo_ps(x[2 * i], x[2 * i + 1]) + _mm512_unpackhi_ps(x[2 * i], x[2 * i + 1]);
  for (int i = 0; i < 4; i++)
    x[i] = _mm512_shuffle_ps(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(1, 0, 1, 0)) +
           _mm512_shuffle_ps(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(3, 2, 3, 2));
  for (int i = 0; i < 2; i++)
    x[i] = _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(2, 0, 2, 0)) +
           _mm512_shuffle_f32x4(x[2 * i], x[2 * i + 1], _MM_SHUFFLE(3, 1, 3, 1));
  return _mm512_shuffle_f32x4(x[0], x[1], _MM_SHUFFLE(2, 0, 2, 0)) +
         _mm512_shuffle_f32x4(x[0], x[1], _MM_SHUFFLE(3, 1, 3, 1));
}
/* 2 VF_LANES bytes as 16-bit numbers, in order; unsigned ones minus 128. */
static inline vi vi_widen_i8(const void *p) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const __m256i *)p)); }
static inline vi vi_widen_u8(const void *p) {
  return _mm512_cvtepi8_epi16(_mm256_xor_si256(_mm256_loadu_si256((const __m256i *)p), _mm256_set1_epi8(-128)));
}
/* Lane i: the sum of x[i]. */
static inline vi vi_sums(const vi x[16]) {
  vi y[16];
  for (int i = 0; i < 8; i++)
    y[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi32(x[2 * i], x[2 * i + 1]), _mm512_unpackhi_epi32(x[2 * i], x[2 * i + 1]));
  for (int i = 0; i < 4; i++)
    y[i] =
        _mm512_add_epi32(_mm512_unpacklo_epi64(y[2 * i], y[2 * i + 1]), _mm512_unpackhi_epi64(y[2 * i], y[2 * i + 1]));
  for (int i = 0; i < 2; i++)
    y[i] = _mm512_add_epi32(_mm512_shuffle_i32x4(y[2 * i], y[2 * i + 1], _MM_SHUFFLE(2, 0, 2, 0)),
                            _mm512_shuffle_i32x4(y[2 * i], y[2 * i + 1], _MM_SHUFFLE(3, 1, 3, 1)));
  return _mm512_add_epi32(_mm512_shuffle_i32x4(y[0], y[1], _MM_SHUFFLE(2, 0, 2, 0)),
                          _mm512_shuffle_i32x4(y[0], y[1], _MM_SHUFFLE(3, 1, 3, 1)));
}
/* Concatenates lanes that fit 16 bits: low's, then high's. */
static inline vi vi_pack_16(vi low, vi high) {
  return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvtepi32_epi16(low)), _mm512_cvtepi32_epi16(high), 1);
}
