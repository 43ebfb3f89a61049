/* Ops of one, two and three operands, element by element. */
#include <math.h>

#include "kernel/lower/elements.h"
#include "kernel/lower/math.h"

/* ---- Integers ---- */

static berth__x constant(berth__kernel *k, berth__number type, int32_t value) {
  return type == BERTH__NUM_I32 ? berth__x_i32(k, value) : berth__x_u32(k, (uint32_t)value);
}

/* The only quotient that overflows wraps: division by -1 is negation. */
static berth__x lower_arithmetic_divided(berth__kernel *k, berth__x a, berth__x b, berth__number type) {
  const berth__x quotient = berth__x_div(k, a, b);
  if (type == BERTH__NUM_U32) return quotient;
  return berth__x_select(k, berth__x_eq(k, b, berth__x_i32(k, -1)), berth__x1(k, BERTH__INST_neg, a), quotient);
}

static berth__x remainder_of(berth__kernel *k, berth__x a, berth__x b, berth__number type) {
  const berth__x rest = berth__x_rem(k, a, b);
  if (type == BERTH__NUM_U32) return rest;
  return berth__x_select(k, berth__x_eq(k, b, berth__x_i32(k, -1)), berth__x_i32(k, 0), rest);
}

/* The result has the sign of the divisor. */
static berth__x modulo(berth__kernel *k, berth__x a, berth__x b, berth__number type) {
  const berth__x rest = remainder_of(k, a, b, type);
  if (type == BERTH__NUM_U32) return rest;
  const berth__x zero = berth__x_i32(k, 0);
  const berth__x differ = berth__x2(k, BERTH__INST_xor, berth__x_lt(k, rest, zero), berth__x_lt(k, b, zero));
  const berth__x adds = berth__x_and(k, berth__x_ne(k, rest, zero), differ);
  return berth__x_select(k, adds, berth__x_add(k, rest, b), rest);
}

/* By repeated squaring, with as many rounds as the exponent has bits. */
static berth__x whole_power(berth__kernel *k, berth__x a, berth__x n, berth__number type) {
  const berth__x one = constant(k, type, 1), zero = constant(k, type, 0);
  const berth__x value = berth__x_variable(k, one), base = berth__x_variable(k, a), left = berth__x_variable(k, n);
  berth__x_loop_n(k, 32);
  const berth__x digits = berth__x_get(k, left), square = berth__x_get(k, base);
  berth__x_if(k, berth__x_eq(k, digits, zero));
  berth__x_break(k);
  berth__x_end(k);
  const berth__x is_odd = berth__x_ne(k, berth__x_and(k, digits, one), zero);
  const berth__x times = berth__x_mul(k, berth__x_get(k, value), square);
  berth__x_set(k, value, berth__x_select(k, is_odd, times, berth__x_get(k, value)));
  berth__x_set(k, base, berth__x_mul(k, square, square));
  berth__x_set(k, left, berth__x2(k, BERTH__INST_shr, digits, one));
  berth__x_end(k);
  return berth__x_get(k, value);
}

/* A negative power of anything but 1 and -1 is less than 1 in magnitude, and truncates to 0. */
static berth__x integer_power(berth__kernel *k, berth__x a, berth__x n, berth__number type) {
  if (type == BERTH__NUM_U32) return whole_power(k, a, n, type);
  const berth__x one = berth__x_i32(k, 1), minus = berth__x_i32(k, -1), zero = berth__x_i32(k, 0);
  const berth__x is_negative = berth__x_lt(k, n, zero);
  const berth__x power = whole_power(k, a, berth__x_select(k, is_negative, zero, n), type);
  const berth__x is_odd = berth__x_ne(k, berth__x_and(k, n, one), zero);
  berth__x inverse = berth__x_select(k, berth__x_eq(k, a, minus), berth__x_select(k, is_odd, minus, one), zero);
  inverse = berth__x_select(k, berth__x_eq(k, a, one), one, inverse);
  return berth__x_select(k, is_negative, inverse, power);
}

static berth__x integers(berth__kernel *k, berth__op_code op, berth__x a, berth__x b, berth__number type) {
  switch (op) {
    case BERTH__OP_div: return lower_arithmetic_divided(k, a, b, type);
    case BERTH__OP_mod: return modulo(k, a, b, type);
    case BERTH__OP_pow: return integer_power(k, a, b, type);
    case BERTH__OP_min: return berth__x_min(k, a, b);
    default: return berth__x_max(k, a, b);
  }
}

/* ---- Floats ---- */

/* `first` if it wins or is NaN; a NaN on the other side never loses a comparison, so it is propagated too. */
static berth__x chosen(berth__kernel *k, berth__x wins, berth__x first, berth__x second) {
  return berth__x_select(k, berth__x_or(k, wins, berth__x_is_nan(k, first)), first, second);
}

/* The result has the sign of the divisor, also if it is zero. */
static berth__x float_modulo(berth__kernel *k, berth__x a, berth__x b) {
  const berth__x rest = berth__m_fmod(k, a, b);
  const berth__x differ = berth__x2(k, BERTH__INST_xor, berth__m_below(k, rest, 0), berth__m_below(k, b, 0));
  const berth__x value = berth__x_select(k, differ, berth__x_add(k, rest, b), rest);
  const berth__x is_zero = berth__x_eq(k, rest, berth__x_f32(k, 0));
  return berth__x_select(k, is_zero, berth__m_with_sign(k, rest, b), value);
}

static berth__x floats(berth__kernel *k, berth__op_code op, berth__x a, berth__x b) {
  switch (op) {
    case BERTH__OP_div: return berth__x_quotient(k, a, b);
    case BERTH__OP_mod: return float_modulo(k, a, b);
    case BERTH__OP_pow: return berth__m_pow(k, a, b);
    case BERTH__OP_min: return chosen(k, berth__x_lt(k, a, b), a, b);
    default: return chosen(k, berth__x_lt(k, b, a), a, b);
  }
}

/* ---- Both ---- */

berth__x berth__l_binary(berth__kernel *k, berth__op_code op, berth__x a, berth__x b, berth_type type) {
  const berth__number number = berth__l_number(type);
  switch (op) {
    case BERTH__OP_add: return berth__x_add(k, a, b);
    case BERTH__OP_sub: return berth__x_sub(k, a, b);
    case BERTH__OP_mul: return berth__x_mul(k, a, b);
    case BERTH__OP_and: return berth__x_and(k, a, b);
    case BERTH__OP_or: return berth__x_or(k, a, b);
    case BERTH__OP_xor: return berth__x2(k, BERTH__INST_xor, a, b);
    default: return number == BERTH__NUM_F32 ? floats(k, op, a, b) : integers(k, op, a, b, number);
  }
}

berth__x berth__l_compare(berth__kernel *k, berth__op_code op, berth__x a, berth__x b) {
  switch (op) {
    case BERTH__OP_eq: return berth__x_eq(k, a, b);
    case BERTH__OP_ne: return berth__x_ne(k, a, b);
    case BERTH__OP_lt: return berth__x_lt(k, a, b);
    case BERTH__OP_le: return berth__x_le(k, a, b);
    case BERTH__OP_gt: return berth__x_lt(k, b, a);
    default: return berth__x_le(k, b, a);
  }
}

berth__x berth__l_clamp(berth__kernel *k, berth__x x, berth__x low, berth__x high) {
  x = berth__x_select(k, berth__x_lt(k, x, low), low, x);
  return berth__x_select(k, berth__x_lt(k, high, x), high, x);
}

/* ---- Kernels ---- */

static berth__x integer_unary(berth__kernel *k, berth__op_code op, berth__x a, berth__number type) {
  const berth__x zero = constant(k, type, 0), one = constant(k, type, 1);
  const bool is_signed = type == BERTH__NUM_I32;
  switch (op) {
    case BERTH__OP_not: return berth__x1(k, BERTH__INST_not, a);
    case BERTH__OP_neg: return berth__x_sub(k, zero, a);
    case BERTH__OP_abs: return is_signed ? berth__x1(k, BERTH__INST_abs, a) : a;
    case BERTH__OP_relu: return is_signed ? berth__x_max(k, a, zero) : a;
    default: /* sign */
      if (!is_signed) return berth__x_min(k, a, one);
      return berth__x_max(k, berth__x_min(k, a, one), berth__x_i32(k, -1));
  }
}

static berth__x unary_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth__number number = berth__l_number(l->call->in[0].type);
  if (number == BERTH__NUM_BOOL) return berth__x1(k, BERTH__INST_not, in[0]);
  if (number == BERTH__NUM_F32) return berth__l_unary(k, l->op->code, in[0]);
  return integer_unary(k, l->op->code, in[0], number);
}

static berth__x binary_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth_type type = l->call->in[0].type;
  const berth__number number = berth__l_number(type);
  const bool is_fmod = l->op->code == BERTH__OP_mod && l->call->attrs[BERTH__BINARY_FMOD].i != 0;
  if (!is_fmod) return berth__l_binary(k, l->op->code, in[0], in[1], type);
  return number == BERTH__NUM_F32 ? berth__m_fmod(k, in[0], in[1]) : remainder_of(k, in[0], in[1], number);
}

/* Bools are compared as 0 and 1. */
static berth__x compare_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  berth__x a = in[0], b = in[1];
  if (l->call->in[0].type == BERTH_BOOL) {
    a = berth__x_convert(k, BERTH__NUM_I32, a);
    b = berth__x_convert(k, BERTH__NUM_I32, b);
  }
  return berth__l_compare(k, l->op->code, a, b);
}

static berth__x where_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)l, (void)state;
  return berth__x_select(k, in[BERTH__WHERE_CONDITION], in[BERTH__WHERE_A], in[BERTH__WHERE_B]);
}

/* A bound as an integer of the type: the nearest integer inside the bound, or the type's own limit beyond it. */
static int64_t integer_bound(double bound, int64_t low, int64_t high) {
  if (bound >= (double)high) return high;
  return bound <= (double)low ? low : (int64_t)bound;
}

static berth__x clamp_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth_attr *low = &l->call->attrs[BERTH__CLAMP_MIN], *high = &l->call->attrs[BERTH__CLAMP_MAX];
  const berth__number number = berth__l_number(l->call->in[0].type);
  if (number == BERTH__NUM_F32)
    return berth__l_clamp(k, in[0], berth__x_f32(k, (float)low->f), berth__x_f32(k, (float)high->f));
  int64_t least, most;
  berth__l_limits(l->call->in[0].type, &least, &most);
  const int64_t from = integer_bound(ceil(low->f), least, most), to = integer_bound(floor(high->f), least, most);
  return berth__l_clamp(k, in[0], constant(k, number, (int32_t)from), constant(k, number, (int32_t)to));
}

#define ELEMENTS(name)                                                     \
  berth_status berth__lower_##name(berth__lowering *l, berth_error *err) { \
    return berth__l_elements(l, name##_value, NULL, err);                  \
  }
ELEMENTS(unary)
ELEMENTS(binary)
ELEMENTS(compare)
ELEMENTS(where)
ELEMENTS(clamp)
