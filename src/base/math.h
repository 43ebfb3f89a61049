/* Checked arithmetic: each function returns 0 and leaves *out unchanged if the result does not fit. */
#ifndef BERTH_BASE_MATH_H
#define BERTH_BASE_MATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool berth__add_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (a > UINT64_MAX - b) return false;
  *out = a + b;
  return true;
}

static inline bool berth__mul_u64(uint64_t a, uint64_t b, uint64_t *out) {
  if (b != 0 && a > UINT64_MAX / b) return false;
  *out = a * b;
  return true;
}

static inline bool berth__add_i64(int64_t a, int64_t b, int64_t *out) {
  if ((b > 0 && a > INT64_MAX - b) || (b < 0 && a < INT64_MIN - b)) return false;
  *out = a + b;
  return true;
}

/* For a, b >= 0 only: extents and counts. */
static inline bool berth__mul_extent(int64_t a, int64_t b, int64_t *out) {
  if (b != 0 && a > INT64_MAX / b) return false;
  *out = a * b;
  return true;
}

static inline bool berth__is_power_of_two(uint64_t x) { return x != 0 && (x & (x - 1)) == 0; }

/* align is a power of two. */
static inline bool berth__align_up(uint64_t x, uint64_t align, uint64_t *out) {
  uint64_t sum;
  if (!berth__add_u64(x, align - 1, &sum)) return false;
  *out = sum & ~(align - 1);
  return true;
}

#endif
