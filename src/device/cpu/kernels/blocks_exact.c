/* Products with weights in blocks whose x must stay f32 (the attribute `exact`): blocks are decoded to f32, a slice of
 * a panel of rows of the weight at a time, which stays in the L1 cache while all rows of x go over it. With few rows
 * of x, each row of the weight is decoded and multiplied block by block. */
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "device/cpu/kernels/inlined.h"

#if VF_LANES == 16
#define ROWS 8 /* of x in a tile: its sums are in registers */
#else
#define ROWS 4
#endif

/* ---- Decoding ---- */

/* VF_LANES elements of a block: a product and its sum, rounded once each. */
INLINED vf exact_numbers(const berth__block_parts *p, int i, const int group) {
  const vf q = vf_from_int(vi_load_i8_n(p->q + i, VF_LANES));
  return q * vf_set1(p->factor[i / group]) + vf_set1(p->offset[i / group]);
}

typedef struct exact_format {
  berth_type type;
  blocks_split split;
  int elements, bytes, group;
} exact_format;

static exact_format exact_format_of(berth_type type) {
  const berth_storage storage = berth_type_storage(type);
  return (exact_format){type, blocks_split_of(type), (int)storage.elements, (int)storage.bytes,
                        (int)berth__block_group(type)};
}

static void exact_no_offset(berth__block_parts *p) {
  for (int g = 0; g < BERTH__BLOCK_GROUPS_MAX; g++) p->offset[g] = -0.0f;
}

static void exact_decode_parts(const exact_format *f, const uint8_t *block, float *to) {
  berth__block_parts p;
  exact_no_offset(&p);
  f->split(block, &p);
  for (int i = 0; i < f->elements; i += VF_LANES) vf_store(to + i, exact_numbers(&p, i, f->group));
}

/* ---- q4_0f and q4_1f ---- */

#ifdef __AVX2__
#define FOURS (32 / VF_LANES) /* vectors of a block */

static inline float fours_real(const uint8_t *at) {
  float number;
  memcpy(&number, at, sizeof number);
  return number;
}

/* 16 bytes: their low halves, then their high halves, less 8 if there is no offset. */
INLINED void fours_numbers(const uint8_t *bytes, const bool has_offset, vf to[FOURS]) {
#if VF_LANES == 16
  const vf first = has_offset ? _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
                              : _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7);
  const vi both = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)bytes));
  to[0] = _mm512_permutexvar_ps(both, first); /* looks at four bits */
  to[1] = _mm512_permutexvar_ps(_mm512_srli_epi32(both, 4), first);
#else
  const vi half = _mm256_set1_epi32(15), less = _mm256_set1_epi32(has_offset ? 0 : 8);
  for (int i = 0; i < 2; i++) {
    const vi both = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(bytes + 8 * i)));
    to[i] = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_and_si256(both, half), less));
    to[2 + i] = _mm256_cvtepi32_ps(_mm256_sub_epi32(_mm256_srli_epi32(both, 4), less));
  }
#endif
}

INLINED void fours_decode(const uint8_t *block, const bool has_offset, float *to) {
  const vf scale = vf_set1(fours_real(block)), offset = has_offset ? vf_set1(fours_real(block + 4)) : vf_zero();
  vf number[FOURS];
  fours_numbers(block + (has_offset ? 8 : 4), has_offset, number);
  UNROLL for (int i = 0; i < FOURS; i++)
      vf_store(to + i * VF_LANES, has_offset ? number[i] * scale + offset : number[i] * scale);
}

INLINED void fours_dot(const uint8_t *w, const float *const *x, int64_t depth, const int rows, const bool has_offset,
                       float *out) {
  vf sum[BLOCKS_EXACT_FEW][2];
  UNROLL for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = vf_zero();
  for (int64_t at = 0; at < depth; at += 32, w += has_offset ? 24 : 20) {
    const vf scale = vf_set1(fours_real(w)), offset = has_offset ? vf_set1(fours_real(w + 4)) : vf_zero();
    vf number[FOURS];
    fours_numbers(w + (has_offset ? 8 : 4), has_offset, number);
    UNROLL for (int i = 0; has_offset && i < FOURS; i++) number[i] = vf_fma(number[i], scale, offset);
    UNROLL for (int r = 0; r < rows; r++) {
      if (has_offset) {
        UNROLL for (int i = 0; i < FOURS; i++) sum[r][i % 2] =
            vf_fma(number[i], vf_load(x[r] + at + i * VF_LANES), sum[r][i % 2]);
      } else {
        vf all = number[0] * vf_load(x[r] + at);
        UNROLL for (int i = 1; i < FOURS; i++) all = vf_fma(number[i], vf_load(x[r] + at + i * VF_LANES), all);
        sum[r][0] = vf_fma(all, scale, sum[r][0]);
      }
    }
  }
  UNROLL for (int r = 0; r < rows; r++) out[r] = vf_sum(sum[r][0] + sum[r][1]);
}
#endif

static void exact_decode(const exact_format *f, const uint8_t *block, float *to) {
#ifdef __AVX2__
  if (f->type == BERTH_Q4_0F)
    fours_decode(block, false, to);
  else if (f->type == BERTH_Q4_1F)
    fours_decode(block, true, to);
  else
#endif
    exact_decode_parts(f, block, to);
}

/* ---- Few rows of x ---- */

INLINED void exact_dot(const exact_format *f, const uint8_t *w, const float *const *x, int64_t depth, const int rows,
                       float *out) {
  berth__block_parts p;
  vf sum[BLOCKS_EXACT_FEW][2];
#ifdef __AVX2__
  if (f->type == BERTH_Q4_0F || f->type == BERTH_Q4_1F) {
    if (f->type == BERTH_Q4_0F)
      fours_dot(w, x, depth, rows, false, out);
    else
      fours_dot(w, x, depth, rows, true, out);
    return;
  }
#endif
  exact_no_offset(&p);
  for (int r = 0; r < rows; r++) sum[r][0] = sum[r][1] = vf_zero();
  for (int64_t at = 0; at < depth; at += f->elements, w += f->bytes) {
    f->split(w, &p);
    for (int i = 0; i < f->elements; i += VF_LANES) {
      const vf number = exact_numbers(&p, i, f->group);
      UNROLL for (int r = 0; r < rows; r++) {
        vf *to = &sum[r][i / VF_LANES % 2];
        *to = vf_fma(number, vf_load(x[r] + at + i), *to);
      }
    }
  }
  for (int r = 0; r < rows; r++) out[r] = vf_sum(sum[r][0] + sum[r][1]);
}

void blocks_exact_dots(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t columns, const blocks_exact_x *x,
                       int64_t n, float *out) {
  const exact_format f = exact_format_of(type);
  for (int64_t c = 0; c < columns; c++, w += row_bytes) {
    float each[BLOCKS_EXACT_FEW] = {0};
    if (n == 1)
      exact_dot(&f, w, x->rows, x->depth, 1, each);
    else if (n == 2)
      exact_dot(&f, w, x->rows, x->depth, 2, each);
    else
      exact_dot(&f, w, x->rows, x->depth, 3, each);
    for (int64_t r = 0; r < n; r++) out[r * VF_PANEL + c] = each[r];
  }
}

/* ---- Many rows: the panel has an element of VF_PANEL rows of the weight side by side ---- */

/* `depth` elements of VF_LANES rows of the weight; missing rows repeat the last one. */
static void exact_unpack_half(const exact_format *f, const uint8_t *w, int64_t row_bytes, int64_t rows, int64_t depth,
                              float *to) {
  float numbers[VF_LANES][BERTH__BLOCK_MAX];
  for (int64_t at = 0; at < depth; at += f->elements, w += f->bytes) {
    for (int64_t r = 0; r < VF_LANES; r++) exact_decode(f, w + (r < rows ? r : rows - 1) * row_bytes, numbers[r]);
    for (int i = 0; i < f->elements; i += VF_LANES) {
      vf turned[VF_LANES];
      for (int r = 0; r < VF_LANES; r++) turned[r] = vf_load(&numbers[r][i]);
      vf_transpose(turned);
      for (int k = 0; k < VF_LANES; k++) vf_store(to + (at + i + k) * VF_PANEL, turned[k]);
    }
  }
}

INLINED void exact_tile(const float *panel, const float *const *x, int64_t first, int64_t depth, const int rows,
                        float *out) {
  vf sum[ROWS][2];
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++) sum[r][h] =
      first != 0 ? vf_load(out + r * VF_PANEL + h * VF_LANES) : vf_zero();
  for (int64_t k = 0; k < depth; k++, panel += VF_PANEL) {
    const vf low = vf_load(panel), high = vf_load(panel + VF_LANES);
    UNROLL for (int r = 0; r < rows; r++) {
      const vf number = vf_set1(x[r][first + k]);
      sum[r][0] = vf_fma(number, low, sum[r][0]);
      sum[r][1] = vf_fma(number, high, sum[r][1]);
    }
  }
  UNROLL for (int r = 0; r < rows; r++) UNROLL for (int h = 0; h < 2; h++)
      vf_store(out + r * VF_PANEL + h * VF_LANES, sum[r][h]);
}

void blocks_exact_product(berth_type type, const uint8_t *w, int64_t columns, const blocks_exact_x *x, int64_t n,
                          float *panel, float *out) {
  const exact_format f = exact_format_of(type);
  const int64_t row_bytes = x->depth / f.elements * f.bytes;
  for (int64_t at = 0, depth; at < x->depth; at += depth) {
    depth = x->depth - at < BLOCKS_EXACT_SLICE ? x->depth - at : BLOCKS_EXACT_SLICE;
    for (int half = 0; half < 2; half++) {
      const int64_t first = half * VF_LANES < columns ? half * VF_LANES : 0, rows = columns - first;
      exact_unpack_half(&f, w + first * row_bytes + at / f.elements * f.bytes, row_bytes, rows, depth,
                        panel + half * VF_LANES);
    }
    for (int64_t r = 0, step; r < n; r += step) {
      step = n - r >= ROWS ? ROWS : 1;
      if (step == ROWS)
        exact_tile(panel, x->rows + r, at, depth, ROWS, out + r * VF_PANEL);
      else
        exact_tile(panel, x->rows + r, at, depth, 1, out + r * VF_PANEL);
    }
  }
}
