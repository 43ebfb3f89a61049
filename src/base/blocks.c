#include "base/blocks.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/storage.h"

typedef void (*decode_fn)(const uint8_t *block, float *dst);
typedef void (*encode_fn)(const float *src, uint8_t *block);

/* The largest magnitude, with its sign; NaN counts for nothing. */
static float base_blocks_largest(const float *x, uint32_t n) {
  float most = 0;
  for (uint32_t i = 0; i < n; i++)
    if (fabsf(x[i]) > fabsf(most)) most = x[i];
  return most;
}

static float read_scale(const uint8_t *block) {
  uint16_t bits;
  memcpy(&bits, block, sizeof bits);
  return berth__f16_to_f32(bits);
}

static void write_scale(float scale, uint8_t *block) {
  const uint16_t bits = berth__f32_to_f16(scale);
  memcpy(block, &bits, sizeof bits);
}

/* What quants are computed with: the scale before it was rounded, as the format's definition has it. */
static float base_blocks_inverse(float scale) { return scale != 0 ? 1.0f / scale : 0.0f; }

static int base_blocks_clamped(float x, int low, int high) {
  if (isnan(x)) return 0;
  return x <= (float)low ? low : x >= (float)high ? high : (int)x;
}

/* ---- q8_0: the scale, 32 x i8; x = scale * q ---- */

static void q8_0_decode(const uint8_t *block, float *dst) {
  const float scale = read_scale(block);
  for (int i = 0; i < 32; i++) dst[i] = (float)(int8_t)block[2 + i] * scale;
}

static void q8_0_encode(const float *src, uint8_t *block) {
  const float scale = fabsf(base_blocks_largest(src, 32)) / 127.0f, by = base_blocks_inverse(scale);
  write_scale(scale, block);
  for (int i = 0; i < 32; i++) block[2 + i] = (uint8_t)(int8_t)base_blocks_clamped(roundf(src[i] * by), -127, 127);
}

/* ---- q4_0: the scale, then 16 bytes: element i in the low half of byte i, element 16 + i in the high one;
 * x = scale * (q - 8), and the largest magnitude is -8 ---- */

static void q4_0_decode(const uint8_t *block, float *dst) {
  const float scale = read_scale(block);
  for (int i = 0; i < 16; i++) {
    dst[i] = (float)((block[2 + i] & 15) - 8) * scale;
    dst[16 + i] = (float)((block[2 + i] >> 4) - 8) * scale;
  }
}

/* By truncation: the sum is positive. NaN becomes 0, which is 8. */
static uint8_t q4_0_quant(float x, float by) {
  const float q = x * by + 8.5f;
  return isnan(q) ? 8 : (uint8_t)base_blocks_clamped(q, 0, 15);
}

static void q4_0_encode(const float *src, uint8_t *block) {
  const float scale = base_blocks_largest(src, 32) / -8.0f, by = base_blocks_inverse(scale);
  write_scale(scale, block);
  for (int i = 0; i < 16; i++) block[2 + i] = (uint8_t)(q4_0_quant(src[i], by) | q4_0_quant(src[16 + i], by) << 4);
}

/* ---- The table ---- */

static const struct {
  berth_type type;
  decode_fn decode;
  encode_fn encode;
} rows[] = {
    {BERTH_Q8_0, q8_0_decode, q8_0_encode},
    {BERTH_Q4_0, q4_0_decode, q4_0_encode},
};

void berth__blocks_decode(berth_type type, const void *src, uint64_t count, float *dst) {
  const berth_storage storage = berth_type_storage(type);
  const uint8_t *block = src;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (uint64_t at = 0; rows[r].type == type && at < count; at += storage.elements, block += storage.bytes)
      rows[r].decode(block, dst + at);
}

void berth__blocks_encode(berth_type type, const float *src, uint64_t count, void *dst) {
  const berth_storage storage = berth_type_storage(type);
  uint8_t *block = dst;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++)
    for (uint64_t at = 0; rows[r].type == type && at < count; at += storage.elements, block += storage.bytes)
      rows[r].encode(src + at, block);
}
