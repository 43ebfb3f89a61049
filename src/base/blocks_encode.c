/* Encodes f32 as blocks, in the formats that are defined by a single rounding. */
#include <math.h>
#include <string.h>

#include "base/blocks.h"
#include "base/half.h"
#include "base/storage.h"

typedef void (*encode_fn)(const float *src, uint8_t *block);

static void encode_f16(float value, uint8_t *at) {
  const uint16_t bits = berth__f32_to_f16(value);
  at[0] = (uint8_t)bits;
  at[1] = (uint8_t)(bits >> 8);
}

/* The largest magnitude of 32, with its sign; NaN is ignored. */
static float encode_largest(const float *x) {
  float most = 0;
  for (int i = 0; i < 32; i++)
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
  return most;
}

/* The minimum and maximum of 32; NaN is ignored. */
static void encode_range(const float *x, float *low, float *high) {
  *low = INFINITY;
  *high = -INFINITY;
  for (int i = 0; i < 32; i++) {
    if (x[i] < *low) *low = x[i];
    if (x[i] > *high) *high = x[i];
  }
  if (*low > *high) *low = *high = 0;
}

/* Quants are computed with the scale before it is rounded, as the formats define it. */
static float encode_inverse(float scale) { return scale != 0 ? 1.0f / scale : 0.0f; }

/* By truncation; NaN becomes `none`. */
static int encode_clamped(float x, int low, int high, int none) {
  if (isnan(x)) return none;
  return x <= (float)low ? low : x >= (float)high ? high : (int)x;
}

/* The nearest integer, halves away from 0, like roundf; values beyond 127 are clamped, and NaN becomes 0. No function
 * call: rows of caches are encoded in every run. */
static int encode_nearest(float x) {
  if (!(fabsf(x) <= 127)) return x > 127 ? 127 : x < -127 ? -127 : 0;
  const int whole = (int)x;
  const float rest = x - (float)whole;
  return whole + (rest >= 0.5f) - (rest <= -0.5f);
}

static void q8_0_encode(const float *src, uint8_t *block) {
  const float scale = fabsf(encode_largest(src)) / 127.0f, by = encode_inverse(scale);
  encode_f16(scale, block);
  for (int i = 0; i < 32; i++) block[2 + i] = (uint8_t)(int8_t)encode_nearest(src[i] * by);
}

/* Numbers of four bits, two per byte; a fifth bit, if there is one, goes into `fifth`. */
static void encode_halves(const int *q, uint8_t *halves, uint8_t *fifth) {
  for (int i = 0; i < 16; i++) halves[i] = (uint8_t)((q[i] & 15) | (q[16 + i] & 15) << 4);
  for (int i = 0; i < 32 && fifth != NULL; i++)
    fifth[i / 8] = (uint8_t)((i % 8 == 0 ? 0 : fifth[i / 8]) | (q[i] >> 4 & 1) << i % 8);
}

/* Symmetric: the largest magnitude becomes the most negative number. The sum that is truncated is positive. */
static void encode_signed(const float *src, int half, uint8_t *block, uint8_t *halves, uint8_t *fifth) {
  const float scale = encode_largest(src) / -(float)half, by = encode_inverse(scale);
  int q[32];
  encode_f16(scale, block);
  for (int i = 0; i < 32; i++) q[i] = encode_clamped(src[i] * by + ((float)half + 0.5f), 0, 2 * half - 1, half);
  encode_halves(q, halves, fifth);
}

/* From the minimum to the maximum. */
static void encode_ranged(const float *src, int last, uint8_t *block, uint8_t *halves, uint8_t *fifth) {
  float low, high;
  int q[32];
  encode_range(src, &low, &high);
  const float scale = (high - low) / (float)last, by = encode_inverse(scale);
  encode_f16(scale, block);
  encode_f16(low, block + 2);
  for (int i = 0; i < 32; i++) q[i] = encode_clamped((src[i] - low) * by + 0.5f, 0, last, 0);
  encode_halves(q, halves, fifth);
}

static void q4_0_encode(const float *src, uint8_t *block) { encode_signed(src, 8, block, block + 2, NULL); }
static void q4_1_encode(const float *src, uint8_t *block) { encode_ranged(src, 15, block, block + 4, NULL); }
static void q5_0_encode(const float *src, uint8_t *block) { encode_signed(src, 16, block, block + 6, block + 2); }
static void q5_1_encode(const float *src, uint8_t *block) { encode_ranged(src, 31, block, block + 8, block + 4); }

static encode_fn encode_find(berth_type type) {
  switch ((int)type) {
    case BERTH_Q8_0: return q8_0_encode;
    case BERTH_Q4_0: return q4_0_encode;
    case BERTH_Q4_1: return q4_1_encode;
    case BERTH_Q5_0: return q5_0_encode;
    case BERTH_Q5_1: return q5_1_encode;
    default: return NULL;
  }
}

bool berth__type_encodes(berth_type type) { return !berth__type_is_block(type) || encode_find(type) != NULL; }

void berth__blocks_encode(berth_type type, const float *src, uint64_t count, void *dst) {
  const berth_storage storage = berth_type_storage(type);
  const encode_fn encode = encode_find(type);
  uint8_t *block = dst;
  if (encode == NULL) return;
  for (uint64_t at = 0; at < count; at += storage.elements, block += storage.bytes) encode(src + at, block);
}
