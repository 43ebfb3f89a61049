/* cast: elements of another type. */
#include "kernel/lower/elements.h"
#include "kernel/lower/math.h"

void berth__l_limits(berth_type type, int64_t *low, int64_t *high) {
  if (berth__l_number(type) == BERTH__NUM_U32 && berth_type_size(type) >= 4) {
    *low = 0;
    *high = UINT32_MAX;
  } else if (berth_type_size(type) >= 4) {
    *low = INT32_MIN;
    *high = INT32_MAX;
  } else {
    berth__int_limits(type, low, high);
  }
}

static berth__x integer(berth__kernel *k, berth__number number, int64_t value) {
  return number == BERTH__NUM_I32 ? berth__x_i32(k, value) : berth__x_u32(k, (uint32_t)value);
}

/* `high` + 1 is a power of two, and so is -`low`: both are floats. */
berth__x berth__l_saturate(berth__kernel *k, berth__x x, berth_type type) {
  const berth__number number = berth__l_number(type);
  int64_t low, high;
  berth__l_limits(type, &low, &high);
  const berth__x is_above = berth__x_le(k, berth__x_f32(k, (float)((double)high + 1)), x);
  const berth__x is_inside =
      berth__x_and(k, berth__x_lt(k, berth__x_f32(k, (float)low - 1), x), berth__x1(k, BERTH__INST_not, is_above));
  const berth__x is_below = berth__x_le(k, x, berth__x_f32(k, (float)low));
  const berth__x inside = berth__x_convert(k, number, berth__x_select(k, is_inside, x, berth__x_f32(k, 0)));
  const berth__x over = berth__x_select(k, is_above, integer(k, number, high), inside);
  return berth__x_select(k, is_below, integer(k, number, low), over);
}

/* The upper half of the bits, rounded to the nearest, ties to even; a NaN stays one. */
static berth__x to_bf16(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, x), sixteen = berth__x_u32(k, 16);
  const berth__x last = berth__x_and(k, berth__x2(k, BERTH__INST_shr, bits, sixteen), berth__x_u32(k, 1));
  const berth__x sum = berth__x_add(k, bits, berth__x_add(k, berth__x_u32(k, 0x7fff), last));
  const berth__x rounded = berth__x_and(k, sum, berth__x_u32(k, 0xffff0000u));
  return berth__x_select(k, berth__x_is_nan(k, x), x, berth__x_bits(k, BERTH__NUM_F32, rounded));
}

/* An integer that f32 would round, with what is cut off marked in its last digit: rounding further then gives what
 * rounding the integer itself would. Only bf16 needs it: an f16 of so large an integer is infinite. */
static berth__x sticky(berth__kernel *k, berth__x x, berth__number number) {
  const berth__x u = berth__x_bits(k, BERTH__NUM_U32, number == BERTH__NUM_I32 ? berth__x1(k, BERTH__INST_abs, x) : x);
  const berth__x cut = berth__x_ne(k, berth__x_and(k, u, berth__x_u32(k, 0xff)), berth__x_u32(k, 0));
  const berth__x kept = berth__x_and(k, u, berth__x_u32(k, 0xffffff00u));
  const berth__x marked = berth__x_or(k, kept, berth__x_select(k, cut, berth__x_u32(k, 0x100), berth__x_u32(k, 0)));
  const berth__x is_large = berth__x_le(k, berth__x_u32(k, 1u << 24), u);
  const berth__x magnitude = berth__x_convert(k, BERTH__NUM_F32, berth__x_select(k, is_large, marked, u));
  if (number == BERTH__NUM_U32) return magnitude;
  const berth__x is_negative = berth__x_lt(k, x, berth__x_i32(k, 0));
  return berth__x_select(k, is_negative, berth__x1(k, BERTH__INST_neg, magnitude), magnitude);
}

static berth__x to_float(berth__kernel *k, berth__x value, berth_type from, berth_type to) {
  const berth__number number = berth__l_number(from);
  const bool is_integer = number == BERTH__NUM_I32 || number == BERTH__NUM_U32;
  if (to == BERTH_BF16 && is_integer && berth_type_size(from) >= 4) return to_bf16(k, sticky(k, value, number));
  value = berth__x_convert(k, BERTH__NUM_F32, value);
  if (to == BERTH_F16 && from != BERTH_F16) return berth__x1(k, BERTH__INST_to_half, value);
  return to == BERTH_BF16 && from != BERTH_BF16 ? to_bf16(k, value) : value;
}

berth__x berth__l_cast(berth__kernel *k, berth__x value, berth_type from, berth_type to) {
  const berth__number before = berth__l_number(from), after = berth__l_number(to);
  if (from == to) return value;
  if (after == BERTH__NUM_F32) return to_float(k, value, from, to);
  if (after == BERTH__NUM_BOOL || before != BERTH__NUM_F32)
    return berth__l_wrap(k, berth__x_convert(k, after, value), to);
  return berth__l_saturate(k, value, to);
}

static berth__x cast_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  return berth__l_cast(k, in[0], l->call->in[0].type, l->call->out[0].type);
}

berth_status berth__lower_cast(berth__lowering *l, berth_error *err) {
  return berth__l_elements(l, cast_value, NULL, err);
}
