#include "kernel/lanes.h"

#include <math.h>
#include <string.h>

#include "base/half.h"

#define LANES(expression)                      \
  for (uint32_t j = 0; j < n; ++j) expression; \
  return true

typedef const berth__lane *restrict in;
typedef berth__lane *restrict result;

/* Quotients of 32-bit numbers are exact in f64, which divides several at a time. */
static int32_t divide_i32(int32_t a, int32_t b) {
  int32_t by = b == 0 || b == -1 ? 1 : b;
  int32_t quotient = (int32_t)((double)a / (double)by);
  return b == 0 ? 0 : b == -1 ? (int32_t)(0u - (uint32_t)a) : quotient;
}

static int32_t remain_i32(int32_t a, int32_t b) {
  int32_t by = b == 0 || b == -1 ? 1 : b;
  int32_t rest = a - (int32_t)((double)a / (double)by) * by;
  return b == 0 || b == -1 ? 0 : rest;
}

static int32_t shift_right_i32(int32_t a, uint32_t by) {
  uint32_t sign = a < 0 ? UINT32_MAX : 0;
  return (int32_t)((((uint32_t)a ^ sign) >> (by & 31u)) ^ sign);
}

/* Where i32 and u32 differ. */
static bool compute_i32(berth__inst_code code, result out, in a, in b, uint32_t n) {
  switch (code) {
    case BERTH__INST_div: LANES(out[j].i = divide_i32(a[j].i, b[j].i));
    case BERTH__INST_rem: LANES(out[j].i = remain_i32(a[j].i, b[j].i));
    case BERTH__INST_min: LANES(out[j].i = a[j].i < b[j].i ? a[j].i : b[j].i);
    case BERTH__INST_max: LANES(out[j].i = a[j].i > b[j].i ? a[j].i : b[j].i);
    case BERTH__INST_abs: LANES(out[j].u = a[j].i < 0 ? 0u - a[j].u : a[j].u);
    case BERTH__INST_shr: LANES(out[j].i = shift_right_i32(a[j].i, b[j].u));
    case BERTH__INST_lt: LANES(out[j].u = a[j].i < b[j].i);
    case BERTH__INST_le: LANES(out[j].u = a[j].i <= b[j].i);
    default: return false;
  }
}

static bool compute_u32(berth__inst_code code, result out, in a, in b, uint32_t n) {
  switch (code) {
    case BERTH__INST_add: LANES(out[j].u = a[j].u + b[j].u);
    case BERTH__INST_sub: LANES(out[j].u = a[j].u - b[j].u);
    case BERTH__INST_mul: LANES(out[j].u = a[j].u * b[j].u);
    case BERTH__INST_div: LANES(out[j].u = b[j].u == 0 ? 0 : a[j].u / b[j].u);
    case BERTH__INST_rem: LANES(out[j].u = b[j].u == 0 ? 0 : a[j].u % b[j].u);
    case BERTH__INST_min: LANES(out[j].u = a[j].u < b[j].u ? a[j].u : b[j].u);
    case BERTH__INST_max: LANES(out[j].u = a[j].u > b[j].u ? a[j].u : b[j].u);
    case BERTH__INST_neg: LANES(out[j].u = 0u - a[j].u);
    case BERTH__INST_abs: LANES(out[j].u = a[j].u);
    case BERTH__INST_and: LANES(out[j].u = a[j].u & b[j].u);
    case BERTH__INST_or: LANES(out[j].u = a[j].u | b[j].u);
    case BERTH__INST_xor: LANES(out[j].u = a[j].u ^ b[j].u);
    case BERTH__INST_not: LANES(out[j].u = ~a[j].u);
    case BERTH__INST_shl: LANES(out[j].u = a[j].u << (b[j].u & 31u));
    case BERTH__INST_shr: LANES(out[j].u = a[j].u >> (b[j].u & 31u));
    case BERTH__INST_eq: LANES(out[j].u = a[j].u == b[j].u);
    case BERTH__INST_ne: LANES(out[j].u = a[j].u != b[j].u);
    case BERTH__INST_lt: LANES(out[j].u = a[j].u < b[j].u);
    case BERTH__INST_le: LANES(out[j].u = a[j].u <= b[j].u);
    default: return false;
  }
}

/* The products of four bytes with four others. */
static uint32_t dot4(uint32_t a, uint32_t b) {
  uint32_t sum = 0;
  for (uint32_t by = 0; by < 32; by += 8)
    sum += (((a >> by & 255u) ^ 128u) - 128u) * (((b >> by & 255u) ^ 128u) - 128u);
  return sum;
}

static bool compute_bool(berth__inst_code code, result out, in a, in b, uint32_t n) {
  if (code != BERTH__INST_not) return compute_u32(code, out, a, b, n);
  LANES(out[j].u = a[j].u ^ 1u);
}

static bool compute_function(berth__inst_code code, result out, in a, uint32_t n) {
  switch (code) {
    case BERTH__INST_neg: LANES(out[j].u = a[j].u ^ 0x80000000u);
    case BERTH__INST_abs: LANES(out[j].u = a[j].u & 0x7fffffffu);
    case BERTH__INST_sqrt: LANES(out[j].f = sqrtf(a[j].f));
    case BERTH__INST_exp: LANES(out[j].f = expf(a[j].f));
    case BERTH__INST_floor: LANES(out[j].f = floorf(a[j].f));
    case BERTH__INST_ceil: LANES(out[j].f = ceilf(a[j].f));
    case BERTH__INST_round: LANES(out[j].f = rintf(a[j].f));
    case BERTH__INST_trunc: LANES(out[j].f = truncf(a[j].f));
    case BERTH__INST_rounded: LANES(out[j] = a[j]);
    case BERTH__INST_to_half: LANES(out[j].f = berth__f16_to_f32(berth__f32_to_f16(a[j].f)));
    case BERTH__INST_pack_half: LANES(out[j].u = berth__f32_to_f16(a[j].f));
    default: return false;
  }
}

static bool compute_f32(berth__inst_code code, result out, in a, in b, in c, uint32_t n) {
  switch (code) {
    case BERTH__INST_add: LANES(out[j].f = a[j].f + b[j].f);
    case BERTH__INST_sub: LANES(out[j].f = a[j].f - b[j].f);
    case BERTH__INST_mul: LANES(out[j].f = a[j].f * b[j].f);
    case BERTH__INST_div:
    case BERTH__INST_quotient: LANES(out[j].f = a[j].f / b[j].f);
    case BERTH__INST_min: LANES(out[j].f = a[j].f < b[j].f ? a[j].f : b[j].f);
    case BERTH__INST_max: LANES(out[j].f = a[j].f > b[j].f ? a[j].f : b[j].f);
    case BERTH__INST_fma: LANES(out[j].f = a[j].f * b[j].f + c[j].f);
    case BERTH__INST_eq: LANES(out[j].u = a[j].f == b[j].f);
    case BERTH__INST_ne: LANES(out[j].u = a[j].f != b[j].f);
    case BERTH__INST_lt: LANES(out[j].u = a[j].f < b[j].f);
    case BERTH__INST_le: LANES(out[j].u = a[j].f <= b[j].f);
    default: return compute_function(code, out, a, n);
  }
}

/* Out of range any result is allowed; these are what most GPUs give. */
static int32_t f32_to_i32(float x) {
  if (!(x >= -2147483648.0f)) return x < 0 ? INT32_MIN : 0;
  return x < 2147483648.0f ? (int32_t)x : INT32_MAX;
}

static uint32_t f32_to_u32(float x) {
  if (!(x > -1.0f)) return 0;
  return x < 4294967296.0f ? (uint32_t)x : UINT32_MAX;
}

static bool convert_from_f32(berth__number type, result out, in a, uint32_t n) {
  switch (type) {
    case BERTH__NUM_F32: LANES(out[j].f = a[j].f);
    case BERTH__NUM_I32: LANES(out[j].i = f32_to_i32(a[j].f));
    case BERTH__NUM_U32: LANES(out[j].u = f32_to_u32(a[j].f));
    case BERTH__NUM_BOOL: LANES(out[j].u = a[j].f != 0);
  }
  return false;
}

static bool kernel_lanes_convert(berth__number type, berth__number from, result out, in a, uint32_t n) {
  if (from == BERTH__NUM_F32) return convert_from_f32(type, out, a, n);
  if (type == BERTH__NUM_BOOL) {
    LANES(out[j].u = a[j].u != 0);
  }
  if (type != BERTH__NUM_F32) {
    LANES(out[j].u = a[j].u);
  }
  if (from == BERTH__NUM_I32) {
    LANES(out[j].f = (float)a[j].i);
  }
  LANES(out[j].f = (float)a[j].u);
}

/* Byte b of a. */
static bool kernel_lanes_byte(berth__number from, result out, in a, in b, uint32_t n) {
  if (from == BERTH__NUM_I32) {
    LANES(out[j].f = (float)shift_right_i32((int32_t)(a[j].u << (24 - 8 * (b[j].u & 3u))), 24));
  }
  LANES(out[j].f = (float)(a[j].u >> 8 * (b[j].u & 3u) & 255u));
}

bool berth__lanes_compute(berth__inst_code code, berth__number type, berth__number from, berth__lane *out,
                          const berth__lane *a, const berth__lane *b, const berth__lane *c, uint32_t n) {
  switch (code) {
    case BERTH__INST_convert: return kernel_lanes_convert(type, from, out, a, n);
    case BERTH__INST_bits: memcpy(out, a, n * sizeof *out); return true;
    case BERTH__INST_select: LANES(out[j].u = a[j].u != 0 ? b[j].u : c[j].u);
    case BERTH__INST_byte: return kernel_lanes_byte(from, out, a, b, n);
    case BERTH__INST_dot4: LANES(out[j].u = dot4(a[j].u, b[j].u) + c[j].u);
    case BERTH__INST_unpack_half: LANES(out[j].f = berth__f16_to_f32((uint16_t)a[j].u));
    default: break;
  }
  switch (from) {
    case BERTH__NUM_F32: return compute_f32(code, out, a, b, c, n);
    case BERTH__NUM_I32: return compute_i32(code, out, a, b, n) || compute_u32(code, out, a, b, n);
    case BERTH__NUM_U32: return compute_u32(code, out, a, b, n);
    case BERTH__NUM_BOOL: return compute_bool(code, out, a, b, n);
  }
  return false;
}
