#include "base/half.h"

static uint32_t f32_bits(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static float f32_from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* x / 2^shift, to the nearest, ties to even. shift: 1 to 63; x is at most 2^63. */
static uint64_t shift_right_even(uint64_t x, unsigned shift) {
  uint64_t half_less_one = (UINT64_C(1) << (shift - 1)) - 1;
  return (x + half_less_one + ((x >> shift) & 1)) >> shift;
}

/* A binary format with the sign in the top bit, as in IEEE 754. */
typedef struct float_format {
  unsigned exponent_bits, fraction_bits;
} float_format;

static const float_format F64 = {11, 52}, F32 = {8, 23}, F16 = {5, 10}, BF16 = {8, 7};

static uint64_t infinity_bits(float_format f) { return ((UINT64_C(1) << f.exponent_bits) - 1) << f.fraction_bits; }

/* Rounds a number of a wide format to a narrow one, once. A carry out of the fraction increments the exponent, which is
 * correct: it means rounding up to the next power of two, or to infinity. */
static uint16_t base_half_narrow(uint64_t bits, float_format wide, float_format to) {
  unsigned sign_shift = wide.exponent_bits + wide.fraction_bits;
  uint16_t sign = (uint16_t)((bits >> sign_shift) << 15);
  unsigned drop = wide.fraction_bits - to.fraction_bits;
  uint64_t magnitude = bits & ((UINT64_C(1) << sign_shift) - 1);
  uint64_t infinity = infinity_bits(to);
  if (magnitude > infinity_bits(wide)) { /* NaN: made quiet, the top of its payload kept */
    uint64_t payload = (magnitude >> drop) & ((UINT64_C(1) << to.fraction_bits) - 1);
    return (uint16_t)(sign | infinity | UINT64_C(1) << (to.fraction_bits - 1) | payload);
  }
  int bias_less = (1 << (wide.exponent_bits - 1)) - (1 << (to.exponent_bits - 1));
  int exponent = (int)(magnitude >> wide.fraction_bits) - bias_less;
  uint64_t rounded;
  if (exponent > 0) {
    rounded = shift_right_even(magnitude - ((uint64_t)bias_less << wide.fraction_bits), drop);
    if (rounded > infinity) rounded = infinity;
  } else { /* subnormal in the narrow format: the leading one becomes part of the fraction */
    uint64_t one = UINT64_C(1) << wide.fraction_bits;
    unsigned shift = drop + 1u - (unsigned)exponent;
    int too_small = shift > wide.fraction_bits + 1;
    rounded = too_small ? 0 : shift_right_even((magnitude & (one - 1)) | one, shift);
  }
  return (uint16_t)(sign | rounded);
}

float berth__f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16;
  uint32_t exponent = (h >> 10) & 0x1f;
  uint32_t fraction = h & 0x3ff;
  if (exponent == 0x1f) { /* infinity, or NaN made quiet */
    uint32_t quiet = fraction != 0 ? UINT32_C(0x400000) : 0;
    return f32_from_bits(sign | UINT32_C(0x7f800000) | quiet | fraction << 13);
  }
  if (exponent == 0) { /* zero or subnormal: fraction * 2^-24, which is exact */
    float magnitude = (float)fraction * 0x1p-24f;
    return f32_from_bits(sign | f32_bits(magnitude));
  }
  return f32_from_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

float berth__bf16_to_f32(uint16_t h) { return f32_from_bits((uint32_t)h << 16); }

uint16_t berth__f32_to_f16(float f) { return base_half_narrow(f32_bits(f), F32, F16); }

uint16_t berth__f32_to_bf16(float f) {
  uint32_t bits = f32_bits(f);
  if ((bits & 0x7fffffff) > 0x7f800000) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)shift_right_even(bits, 16); /* the same exponents, so subnormals are no special case */
}

static uint64_t f64_bits(double f) {
  uint64_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

uint16_t berth__f64_to_f16(double f) { return base_half_narrow(f64_bits(f), F64, F16); }

uint16_t berth__f64_to_bf16(double f) { return base_half_narrow(f64_bits(f), F64, BF16); }
