/* Quantising a row of x to bytes, and one row of a weight in blocks times it. Decoding a token is mostly this, and the
 * weight comes from memory. */
#include "base/blocks_split.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"

#define VECTORS (BLOCKS_X / VF_LANES)

/* Up to VF_LANES blocks of a row, quantised together: what is compared and summed across a block is transposed first,
 * so that each lane belongs to a block. */
typedef struct quantising {
  const float *from;
  int64_t n; /* blocks */
  int8_t *q;
  vf by, scale, low, high; /* by block; the sums of its halves */
} quantising;

static vf quantising_load(const quantising *k, int64_t block, int vector) {
  return vf_load(k->from + block * BLOCKS_X + vector * VF_LANES);
}

static vf quantising_sum(vf x[VF_LANES]) {
  vf_transpose(x);
  for (int i = 1; i < VF_LANES; i++) x[0] += x[i];
  return x[0];
}

/* NaN for blocks that contain NaN or an infinity, and 0 for the others. */
static vf quantising_bad(const quantising *k) {
  float each[VF_LANES] = {0};
  for (int64_t b = 0; b < k->n; b++) {
    vf bad = vf_zero();
    for (int i = 0; i < VECTORS; i++) bad += quantising_load(k, b, i) * 0.0f;
    each[b] = vf_sum(bad);
  }
  return vf_load(each);
}

static void quantising_scale(quantising *k) {
  vf most[VF_LANES], bad = vf_zero();
  for (int64_t b = 0; b < VF_LANES; b++) {
    most[b] = vf_zero();
    for (int i = 0; b < k->n && i < VECTORS; i++) {
      const vf v = quantising_load(k, b, i);
      most[b] = vf_max(most[b], vf_abs(v));
      bad += v * 0.0f;
    }
  }
  vf_transpose(most);
  for (int i = 1; i < VF_LANES; i++) most[0] = vf_max(most[0], most[i]);
  k->by = vf_set1(127.0f) / most[0]; /* infinite for a block of zeros, whose products with it, NaN, become zeros */
  k->scale = most[0] / vf_set1(127.0f);
  if (vf_sum(bad) != 0) k->scale += quantising_bad(k);
}

static void quantising_round(quantising *k) {
  vf half[2][VF_LANES];
  float by[VF_LANES];
  vf_store(by, k->by);
  for (int64_t b = 0; b < VF_LANES; b++) {
    half[0][b] = half[1][b] = vf_zero();
    for (int i = 0; b < k->n && i < VECTORS; i++) {
      const vf number = vf_clamp(quantising_load(k, b, i) * vf_set1(by[b]), vf_set1(-127), vf_set1(127));
      const vi whole = vf_to_int(vf_pick_nan(number, vf_zero(), number));
      vi_store_bytes_n(k->q + b * BLOCKS_X + i * VF_LANES, whole, VF_LANES);
      half[i * VF_LANES / BLOCKS_SUM][b] += vf_from_int(whole);
    }
  }
  k->low = quantising_sum(half[0]); /* integers: exact in any order */
  k->high = quantising_sum(half[1]);
}

static void quantising_store_sum(float *to, const quantising *k, vf sum, bool is_start) {
  const vi start = vf_to_int(sum * vf_set1(-128));
  vf_store(to, k->scale * sum);
  if (is_start) memcpy(to, &start, sizeof start);
}

void blocks_quantise(const float *from, int64_t step, const blocks_x *x, int64_t row) {
  const blocks_row_x to = blocks_row_of(x, row);
  float *scales = x->scale + (to.scale - x->scale), *sum = x->sum + (to.sum - x->sum);
  float *sums = x->sums + (to.sums - x->sums), copy[VF_LANES * BLOCKS_X];
  const int64_t n = x->depth / BLOCKS_X;
  quantising k = {.q = x->q + (to.q - x->q)};
  for (int64_t at = 0; at < n; at += VF_LANES, k.q += VF_LANES * BLOCKS_X) {
    float scale[VF_LANES], both[VF_LANES], low[VF_LANES], high[VF_LANES];
    k.n = vf_tail(n - at);
    k.from = step == 1 ? from + at * BLOCKS_X : copy;
    for (int64_t i = 0; step != 1 && i < k.n * BLOCKS_X; i++) copy[i] = from[(at * BLOCKS_X + i) * step];
    quantising_scale(&k);
    quantising_round(&k);
    vf_store(scale, k.scale);
    quantising_store_sum(low, &k, k.low, x->has_starts);
    quantising_store_sum(high, &k, k.high, x->has_starts);
    quantising_store_sum(both, &k, k.low + k.high, x->has_starts);
    for (int64_t b = 0; b < k.n; b++) {
      scales[at + b] = scale[b];
      sum[2 * (at + b)] = low[b];
      sum[2 * (at + b) + 1] = high[b];
      sums[at + b] = both[b];
    }
  }
}

/* ---- Any format: a block is unpacked, and its bytes are multiplied ---- */

blocks_split blocks_split_of(berth_type type) {
  const blocks_row *row = blocks_find(type);
  return row != NULL ? row->split : NULL;
}

#ifdef __AVX2__
#include "device/cpu/kernels/blocks_avx2.h"
#include "device/cpu/kernels/blocks_avx2_k.h"
#include "device/cpu/kernels/blocks_avx2_points.h"
#include "device/cpu/kernels/blocks_avx2_table.h"
#ifdef __AVX512VNNI__
#include "device/cpu/kernels/blocks_avx512_k.h"
#include "device/cpu/kernels/blocks_points_avx512.h"
#include "device/cpu/kernels/blocks_vbmi.h"
#include "device/cpu/kernels/blocks_vbmi_fours.h"
#endif
#else
static inline __attribute__((always_inline)) float blocks_dot_parts(const uint8_t *w, const blocks_row_x *x,
                                                                    int64_t depth, const int elements, const int bytes,
                                                                    const int group, const bool has_offset,
                                                                    const blocks_split_fn split) {
  berth__block_parts p;
  float total = 0;
  for (int64_t at = 0; at < depth; at += elements, w += bytes) {
    split(w, &p);
    for (int g = 0; g < elements / group; g++) {
      const int8_t *xq = x->q + at + g * group, *wq = p.q + g * group;
      const int64_t first = at + g * group;
      int32_t sum = 0;
      for (int i = 0; i < group; i++) sum += xq[i] * wq[i];
      total += p.factor[g] * x->scale[first / BLOCKS_X] * (float)sum;
      if (has_offset)
        total += p.offset[g] * (group == BLOCKS_X ? x->sums[first / BLOCKS_X] : x->sum[first / BLOCKS_SUM]);
    }
  }
  return total;
}
#endif

#define DOT_BY_PARTS(name, elements, bytes, group, has_offset)                              \
  static float name##_dot_parts(const uint8_t *w, const blocks_row_x *x, int64_t depth) {   \
    return blocks_dot_parts(w, x, depth, elements, bytes, group, has_offset, name##_split); \
  }
DOT_BY_PARTS(q4_1, 32, 20, 32, true)
DOT_BY_PARTS(q5_0, 32, 22, 32, false)
DOT_BY_PARTS(q5_1, 32, 24, 32, true)

#ifndef __AVX2__
DOT_BY_PARTS(q8_0, 32, 34, 32, false)
DOT_BY_PARTS(q4_0, 32, 18, 32, false)
DOT_BY_PARTS(q2_k, 256, 84, 16, true)
DOT_BY_PARTS(q3_k, 256, 110, 16, false)
DOT_BY_PARTS(q4_k, 256, 144, 32, true)
DOT_BY_PARTS(q5_k, 256, 176, 32, true)
DOT_BY_PARTS(q6_k, 256, 210, 16, false)
DOT_BY_PARTS(iq2_xxs, 256, 66, 32, false)
DOT_BY_PARTS(iq2_xs, 256, 74, 16, false)
DOT_BY_PARTS(iq2_s, 256, 82, 16, false)
DOT_BY_PARTS(iq3_xxs, 256, 98, 32, false)
DOT_BY_PARTS(iq3_s, 256, 110, 32, false)
DOT_BY_PARTS(mxfp4, 32, 17, 32, false)
DOT_BY_PARTS(iq4_xs, 256, 136, 32, false)
DOT_BY_PARTS(iq4_nl, 32, 18, 32, false)
DOT_BY_PARTS(q4_0f, 32, 20, 32, false)
DOT_BY_PARTS(q4_1f, 32, 24, 32, true)
#define q8_0_dot q8_0_dot_parts
#define q4_0_dot q4_0_dot_parts
#define q2_k_dot q2_k_dot_parts
#define q3_k_dot q3_k_dot_parts
#define q4_k_dot q4_k_dot_parts
#define q5_k_dot q5_k_dot_parts
#define q6_k_dot q6_k_dot_parts
#define iq2_xxs_dot iq2_xxs_dot_parts
#define iq2_xs_dot iq2_xs_dot_parts
#define iq2_s_dot iq2_s_dot_parts
#define iq3_xxs_dot iq3_xxs_dot_parts
#define iq3_s_dot iq3_s_dot_parts
#define mxfp4_dot mxfp4_dot_parts
#define iq4_xs_dot iq4_xs_dot_parts
#define iq4_nl_dot iq4_nl_dot_parts
#define q4_0f_dot q4_0f_dot_parts
#define q4_1f_dot q4_1f_dot_parts
#endif

typedef float (*blocks_dot)(const uint8_t *w, const blocks_row_x *x, int64_t depth);
static blocks_dot blocks_dot_of(berth_type type) {
  switch ((int)type) {
    case BERTH_Q8_0: return q8_0_dot;
    case BERTH_Q4_0: return q4_0_dot;
    case BERTH_Q4_1: return q4_1_dot_parts;
    case BERTH_Q5_0: return q5_0_dot_parts;
    case BERTH_Q5_1: return q5_1_dot_parts;
    case BERTH_Q2_K: return q2_k_dot;
    case BERTH_Q3_K: return q3_k_dot;
    case BERTH_Q4_K: return q4_k_dot;
    case BERTH_Q5_K: return q5_k_dot;
    case BERTH_Q6_K: return q6_k_dot;
    case BERTH_IQ2_XXS: return iq2_xxs_dot;
    case BERTH_IQ4_NL: return iq4_nl_dot;
    case BERTH_IQ4_XS: return iq4_xs_dot;
    case BERTH_MXFP4: return mxfp4_dot;
    case BERTH_IQ2_XS: return iq2_xs_dot;
    case BERTH_IQ2_S: return iq2_s_dot;
    case BERTH_IQ3_XXS: return iq3_xxs_dot;
    case BERTH_IQ3_S: return iq3_s_dot;
    case BERTH_Q4_0F: return q4_0f_dot;
    case BERTH_Q4_1F: return q4_1f_dot;
    default: return NULL;
  }
}

#ifdef __AVX512VNNI__
typedef void (*blocks_dots_fn)(const uint8_t *w, int64_t row_bytes, int64_t n, const blocks_row_x *x, int64_t depth,
                               float *out);
static blocks_dots_fn blocks_dots_vbmi_of(berth_type type) {
  if (!blocks_has_vbmi()) return NULL;
  if (type == BERTH_IQ2_XXS) return iq2_xxs_dots_vbmi;
  if (type == BERTH_IQ3_XXS) return iq3_xxs_dots_vbmi;
  return type == BERTH_IQ3_S ? iq3_s_dots_vbmi : NULL;
}
#endif

bool blocks_has_dots(berth_type type) { return blocks_dot_of(type) != NULL; }

void blocks_dots(berth_type type, const uint8_t *w, int64_t row_bytes, int64_t n, const blocks_row_x *x, int64_t depth,
                 float *out) {
#ifdef __AVX512VNNI__
  const blocks_dots_fn dots = blocks_dots_vbmi_of(type);
  if (dots != NULL) {
    dots(w, row_bytes, n, x, depth, out);
    return;
  }
#endif
  const blocks_dot dot = blocks_dot_of(type);
  for (int64_t r = 0; r < n; r++) out[r] = dot(w + r * row_bytes, x, depth);
}

/* ---- The order of x ---- */

#ifdef __AVX2__
#ifdef __AVX512VNNI__
int64_t blocks_copies(berth_type type) { return (void)type, 1; }

static void blocks_arrange_points(berth_type type, int8_t *q, int64_t depth) {
  const bool is_fours = type == BERTH_IQ3_XXS || type == BERTH_IQ3_S;
  if (is_fours && blocks_has_vbmi()) fours_arrange_vbmi(q, depth);
  if (type == BERTH_IQ2_XXS && blocks_has_vbmi()) iq2_xxs_arrange_vbmi(q, depth);
  for (int64_t at = 0; type == BERTH_IQ2_XXS && !blocks_has_vbmi() && at < depth; at += 256)
    iq2_xxs_arrange_points(q + at);
}
#else
int64_t blocks_copies(berth_type type) { return type == BERTH_IQ2_XXS ? 2 : 1; }

static void blocks_arrange_points(berth_type type, int8_t *q, int64_t depth) {
  for (int64_t at = 0; type == BERTH_IQ2_XXS && at < depth; at += 256) iq2_xxs_arrange(q + at, q + depth + at);
}
#endif

void blocks_arrange(berth_type type, const blocks_x *x, int64_t row) {
  const int64_t depth = x->depth;
  int8_t *q = x->q + row * depth * x->copies;
  const bool is_joined = type == BERTH_Q4_0 || (type >= BERTH_Q2_K && type <= BERTH_Q6_K) || type == BERTH_IQ4_NL ||
                         type == BERTH_IQ4_XS || type == BERTH_MXFP4 || type == BERTH_Q4_0F || type == BERTH_Q4_1F;
  for (int64_t at = 0; is_joined && at + 256 <= depth; at += 256) blocks_arrange_joined(q + at);
  blocks_arrange_points(type, q, depth);
}
#else
int64_t blocks_copies(berth_type type) { return (void)type, 1; }

void blocks_arrange(berth_type type, const blocks_x *x, int64_t row) {
  (void)type;
  (void)x;
  (void)row;
}
#endif
