/* cast, bitcast: elements of another type. */
#include "kernel/lower/copy.h"
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

/* `high` + 1 and -`low` are powers of two, so both are exact as floats. */
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

/* The upper half of the bits, rounded to nearest even; NaN stays NaN. */
static berth__x to_bf16(berth__kernel *k, berth__x x) {
  const berth__x bits = berth__x_bits(k, BERTH__NUM_U32, x), sixteen = berth__x_u32(k, 16);
  const berth__x last = berth__x_and(k, berth__x2(k, BERTH__INST_shr, bits, sixteen), berth__x_u32(k, 1));
  const berth__x sum = berth__x_add(k, bits, berth__x_add(k, berth__x_u32(k, 0x7fff), last));
  const berth__x rounded = berth__x_and(k, sum, berth__x_u32(k, 0xffff0000u));
  return berth__x_select(k, berth__x_is_nan(k, x), x, berth__x_bits(k, BERTH__NUM_F32, rounded));
}

/* An integer that f32 would round, truncated with a sticky last bit: rounding it further then gives the same as
 * rounding the integer itself. Only bf16 needs it: an f16 of so large an integer is infinite. */
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

/* ---- bitcast ---- */

/* The f32 value of the 16 bits of an f16. */
static berth__x from_half_bits(berth__kernel *k, berth__x bits) {
  const berth__x fraction = berth__x_and(k, bits, berth__x_u32(k, 0x3ff)),
                 exponent = berth__x_and(k, bits, berth__x_u32(k, 0x7c00)),
                 sign =
                     berth__x2(k, BERTH__INST_shl, berth__x_and(k, bits, berth__x_u32(k, 0x8000)), berth__x_u32(k, 16));
  const berth__x moved = berth__x2(k, BERTH__INST_shl, berth__x_or(k, exponent, fraction), berth__x_u32(k, 13));
  const berth__x is_last = berth__x_eq(k, exponent, berth__x_u32(k, 0x7c00)), /* infinity or NaN */
      is_first = berth__x_eq(k, exponent, berth__x_u32(k, 0));                /* 0 and subnormals */
  const berth__x normal = berth__x_add(k, moved, berth__x_u32(k, (127 - 15) << 23));
  const berth__x small = berth__x_bits(
      k, BERTH__NUM_U32, berth__m_scale(k, berth__x_convert(k, BERTH__NUM_F32, fraction), 1.0f / (1 << 24)));
  berth__x all = berth__x_select(k, is_last, berth__x_or(k, moved, berth__x_u32(k, 0x7f800000u)), normal);
  all = berth__x_select(k, is_first, small, all);
  return berth__x_bits(k, BERTH__NUM_F32, berth__x_or(k, all, sign));
}

/* The element of a type with these bits, in the type's number. */
static berth__x from_bits(berth__kernel *k, berth__x bits, berth_type type) {
  const berth__number number = berth__l_number(type);
  if (number == BERTH__NUM_BOOL) return berth__x_ne(k, bits, berth__x_u32(k, 0));
  if (type == BERTH_F16) return from_half_bits(k, bits);
  if (type == BERTH_BF16) bits = berth__x2(k, BERTH__INST_shl, bits, berth__x_u32(k, 16));
  return berth__l_wrap(k, number == BERTH__NUM_U32 ? bits : berth__x_bits(k, number, bits), type);
}

static berth__x bitcast_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth_type from = l->call->in[0].type;
  const berth__x bits = from == BERTH_BOOL ? berth__x_convert(k, BERTH__NUM_U32, in[0]) : berth__x_pack(k, from, in[0]);
  return from_bits(k, bits, l->call->out[0].type);
}

/* Elements stored in their own width have their bits copied unchanged. */
static berth_status copy_bits(berth__lowering *l, berth_error *err) {
  const berth_tensor *in = &l->call->in[0], *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, berth__count(out));
  berth__x bits = berth__l_load_raw(l, k, 0, berth__l_place_flat(k, in, index));
  if (out->type == BERTH_BOOL) bits = berth__x_convert(k, BERTH__NUM_U32, berth__x_ne(k, bits, berth__x_u32(k, 0)));
  berth__l_store_raw(l, k, 0, berth__l_place_flat(k, out, index), bits);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_bitcast(berth__lowering *l, berth_error *err) {
  const berth_type from = l->call->in[0].type, to = l->call->out[0].type;
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (berth_type_size(from) == 8 && from != to)
    return berth__fail(err, BERTH_UNSUPPORTED, "64-bit elements are stored in 32 bits there, so their bits differ");
  const bool lie_as_they_are = berth__l_storage_of(l, 0) == from && berth__l_storage_of(l, l->call->n_in) == to;
  return from == to || !lie_as_they_are ? berth__l_elements(l, from == to ? cast_value : bitcast_value, NULL, err)
                                        : copy_bits(l, err);
}
