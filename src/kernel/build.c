/* Builds instructions: checks types here; simplify.c chooses the form. */
#include <string.h>

#include "kernel/maker.h"

static bool goes_on(const berth__kernel *k) { return k != NULL && k->status == BERTH_OK && k->maker != NULL; }

berth__x berth__x_f32(berth__kernel *k, float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return goes_on(k) ? berth__maker_constant(k, BERTH__NUM_F32, bits) : BERTH__X_NONE;
}

berth__x berth__x_i32(berth__kernel *k, int64_t value) {
  if (!goes_on(k)) return BERTH__X_NONE;
  if (value < INT32_MIN || value > INT32_MAX) {
    return berth__maker_mistake(k, BERTH__INST_constant, "a number does not fit 32 bits");
  }
  return berth__maker_constant(k, BERTH__NUM_I32, (uint32_t)(int32_t)value);
}

berth__x berth__x_u32(berth__kernel *k, uint32_t value) {
  return goes_on(k) ? berth__maker_constant(k, BERTH__NUM_U32, value) : BERTH__X_NONE;
}

berth__x berth__x_bool(berth__kernel *k, bool value) {
  return goes_on(k) ? berth__maker_constant(k, BERTH__NUM_BOOL, value) : BERTH__X_NONE;
}

static berth__x leaf(berth__kernel *k, berth__inst_code code, uint64_t count) {
  if (count > (uint64_t)INT32_MAX) return berth__maker_mistake(k, code, "there are more of them than i32 counts");
  if (count <= 1) return berth__x_i32(k, 0);
  berth__inst inst = {.code = (uint8_t)code,
                      .type = BERTH__NUM_I32,
                      .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE},
                      .high = (int64_t)count - 1};
  return berth__maker_put(k, &inst);
}

berth__x berth__x_group(berth__kernel *k) {
  return goes_on(k) ? leaf(k, BERTH__INST_group, k->n_groups) : BERTH__X_NONE;
}

berth__x berth__x_thread(berth__kernel *k) {
  return goes_on(k) ? leaf(k, BERTH__INST_thread, k->group_size) : BERTH__X_NONE;
}

/* Operand types that an instruction accepts. */
typedef enum takes {
  TAKES_NUMBERS,
  TAKES_INTEGERS,
  TAKES_F32,
  TAKES_U32,
  TAKES_NO_F32,
  TAKES_ANY
} takes;

static takes taken_by(berth__inst_code code) {
  switch (code) {
    case BERTH__INST_add:
    case BERTH__INST_sub:
    case BERTH__INST_mul:
    case BERTH__INST_div:
    case BERTH__INST_min:
    case BERTH__INST_max:
    case BERTH__INST_neg:
    case BERTH__INST_abs:
    case BERTH__INST_lt:
    case BERTH__INST_le: return TAKES_NUMBERS;
    case BERTH__INST_rem:
    case BERTH__INST_shl:
    case BERTH__INST_shr: return TAKES_INTEGERS;
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor:
    case BERTH__INST_not: return TAKES_NO_F32;
    case BERTH__INST_eq:
    case BERTH__INST_ne: return TAKES_ANY;
    case BERTH__INST_dot4:
    case BERTH__INST_unpack_half: return TAKES_U32;
    default: return TAKES_F32; /* fma and functions */
  }
}

static bool kernel_build_is_taken(takes what, berth__number type) {
  switch (what) {
    case TAKES_NUMBERS: return type != BERTH__NUM_BOOL;
    case TAKES_INTEGERS: return berth__maker_is_integer(type);
    case TAKES_F32: return type == BERTH__NUM_F32;
    case TAKES_U32: return type == BERTH__NUM_U32;
    case TAKES_NO_F32: return type != BERTH__NUM_F32;
    case TAKES_ANY: return true;
  }
  return false;
}

static bool kernel_build_is_comparison(berth__inst_code code) {
  return code == BERTH__INST_eq || code == BERTH__INST_ne || code == BERTH__INST_lt || code == BERTH__INST_le;
}

static bool fits_form(berth__kernel *k, berth__inst_code code, uint32_t n) {
  bool has_form = berth__inst_kind_of(code) == BERTH__INST_PURE && berth__inst_operands(code) == n &&
                  code != BERTH__INST_convert && code != BERTH__INST_bits && code != BERTH__INST_byte;
  if (!has_form) berth__maker_mistake(k, code, "this many operands make no such instruction");
  return has_form;
}

static berth__x kernel_build_make(berth__kernel *k, berth__inst_code code, uint32_t n, berth__x *in) {
  if (!berth__maker_accepts(k, code, n, in) || !fits_form(k, code, n)) return BERTH__X_NONE;
  berth__number type = berth__maker_type(k, in[0]);
  bool is_shift = code == BERTH__INST_shl || code == BERTH__INST_shr;
  if (n == 2 && is_shift && berth__maker_is_integer(type) && berth__maker_is_integer(berth__maker_type(k, in[1])))
    in[1] = berth__x_convert(k, type, in[1]);
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  if (!kernel_build_is_taken(taken_by(code), type))
    return berth__maker_mistake(k, code, "an operand's type does not go there");
  for (uint32_t i = 1; i < n; ++i) {
    if (berth__maker_type(k, in[i]) != type)
      return berth__maker_mistake(k, code, "its operands are of different types");
  }
  if (code == BERTH__INST_pack_half) type = BERTH__NUM_U32;
  if (code == BERTH__INST_unpack_half) type = BERTH__NUM_F32;
  return berth__simplify(k, code, kernel_build_is_comparison(code) ? BERTH__NUM_BOOL : type, n, in);
}

berth__x berth__x1(berth__kernel *k, berth__inst_code code, berth__x a) {
  return kernel_build_make(k, code, 1, (berth__x[]){a});
}

berth__x berth__x2(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b) {
  return kernel_build_make(k, code, 2, (berth__x[]){a, b});
}

static berth__x make_select(berth__kernel *k, const berth__x *in) {
  if (!berth__maker_accepts(k, BERTH__INST_select, 3, in)) return BERTH__X_NONE;
  if (berth__maker_type(k, in[0]) != BERTH__NUM_BOOL || berth__maker_type(k, in[1]) != berth__maker_type(k, in[2])) {
    return berth__maker_mistake(k, BERTH__INST_select, "it takes a bool and two of one type");
  }
  return berth__simplify(k, BERTH__INST_select, berth__maker_type(k, in[1]), 3, in);
}

berth__x berth__x3(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b, berth__x c) {
  berth__x in[3] = {a, b, c};
  return code == BERTH__INST_select ? make_select(k, in) : kernel_build_make(k, code, 3, in);
}

berth__x berth__x_convert(berth__kernel *k, berth__number type, berth__x a) {
  if (!berth__maker_accepts(k, BERTH__INST_convert, 1, &a)) return BERTH__X_NONE;
  return berth__maker_type(k, a) == type ? a : berth__simplify(k, BERTH__INST_convert, type, 1, &a);
}

berth__x berth__x_bits(berth__kernel *k, berth__number type, berth__x a) {
  if (!berth__maker_accepts(k, BERTH__INST_bits, 1, &a)) return BERTH__X_NONE;
  if (type == BERTH__NUM_BOOL || berth__maker_type(k, a) == BERTH__NUM_BOOL) {
    return berth__maker_mistake(k, BERTH__INST_bits, "a bool has no bits");
  }
  return berth__maker_type(k, a) == type ? a : berth__simplify(k, BERTH__INST_bits, type, 1, &a);
}

berth__x berth__x_byte(berth__kernel *k, berth__x a, uint32_t which) {
  if (!berth__maker_accepts(k, BERTH__INST_byte, 1, &a)) return BERTH__X_NONE;
  const berth__number type = berth__maker_type(k, a);
  if (!berth__maker_is_integer(type) || which > 3)
    return berth__maker_mistake(k, BERTH__INST_byte, "it is one of the four bytes of an integer");
  const berth__x in[2] = {a, berth__maker_constant(k, type, which)};
  return berth__simplify(k, BERTH__INST_byte, BERTH__NUM_F32, 2, in);
}

berth__x berth__x_affine(berth__kernel *k, berth__x a, int64_t factor, int64_t offset) {
  return berth__x_add(k, berth__x_mul(k, a, berth__x_i32(k, factor)), berth__x_i32(k, offset));
}

berth__x berth__x_is_nan(berth__kernel *k, berth__x a) {
  berth__x bits = berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, a), berth__x_u32(k, 0x7fffffffu));
  return berth__x_lt(k, berth__x_u32(k, 0x7f800000u), bits);
}
