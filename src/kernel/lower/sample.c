#include "kernel/lower/sample.h"

#include "kernel/lower/math.h"

berth__x berth__l_round_away(berth__kernel *k, berth__x x) {
  const berth__x whole = berth__x1(k, BERTH__INST_trunc, x);
  const berth__x part = berth__x1(k, BERTH__INST_abs, berth__x_sub(k, x, whole));
  const berth__x one = berth__m_with_sign(k, berth__x_f32(k, 1.0f), x);
  const berth__x is_far = berth__x_le(k, berth__x_f32(k, 0.5f), part);
  return berth__x_select(k, is_far, berth__x_add(k, whole, one), whole);
}

berth__x berth__l_clamped_index(berth__kernel *k, berth__x x, int64_t extent) {
  const berth__x zero = berth__x_f32(k, 0.0f), last = berth__x_f32(k, (float)(extent - 1));
  const berth__x from_0 = berth__x_select(k, berth__x_lt(k, zero, x), x, zero);
  const berth__x inside = berth__x_convert(k, BERTH__NUM_I32, berth__x_min(k, from_0, last));
  /* Clamped again as an integer, because ranges are derived from that. */
  return berth__x_max(k, berth__x_min(k, inside, berth__x_i32(k, extent - 1)), berth__x_i32(k, 0));
}

berth__x berth__l_cubic(berth__kernel *k, float a, berth__x distance) {
  const berth__x x = berth__x1(k, BERTH__INST_abs, distance);
  const berth__x near_slope = berth__m_plus(k, berth__m_scale(k, x, a + 2), -(a + 3));
  const berth__x near = berth__m_plus(k, berth__x_mul(k, berth__x_mul(k, near_slope, x), x), 1.0f);
  const berth__x far_slope = berth__m_plus(k, berth__x_mul(k, berth__m_plus(k, x, -5.0f), x), 8.0f);
  const berth__x far = berth__m_plus(k, berth__m_scale(k, berth__x_mul(k, far_slope, x), a), -4.0f * a);
  const berth__x tail = berth__x_select(k, berth__m_below(k, x, 2.0f), far, berth__x_f32(k, 0.0f));
  return berth__x_select(k, berth__x_le(k, x, berth__x_f32(k, 1.0f)), near, tail);
}

berth__x berth__l_fmax(berth__kernel *k, berth__x a, berth__x b) {
  return berth__x_select(k, berth__x_or(k, berth__x_lt(k, a, b), berth__x_is_nan(k, a)), b, a);
}

berth__x berth__l_is_finite(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, x), berth__x_u32(k, 0x7fffffffu));
  return berth__x_lt(k, bits, berth__x_u32(k, 0x7f800000u));
}
