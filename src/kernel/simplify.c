/* Simplifies a PURE instruction: constant results, identities, and what follows from the ranges of its operands. */
#include "base/math.h"
#include "kernel/maker.h"

berth__x berth__maker_constant(berth__kernel *k, berth__number type, uint32_t bits) {
  berth__inst inst = {.code = BERTH__INST_constant,
                      .type = (uint8_t)type,
                      .bits = bits,
                      .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}};
  if (type != BERTH__NUM_F32) inst.low = inst.high = type == BERTH__NUM_I32 ? (int64_t)(int32_t)bits : (int64_t)bits;
  return berth__maker_put(k, &inst);
}

bool berth__maker_known(const berth__kernel *k, berth__x x, uint32_t *bits) {
  const berth__inst *inst = &k->insts[x];
  if (inst->code == BERTH__INST_constant) {
    *bits = inst->bits;
    return true;
  }
  if (inst->type == BERTH__NUM_F32 || inst->low != inst->high) return false;
  *bits = (uint32_t)inst->low;
  return true;
}

static berth__x kernel_simplify_put(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t n,
                                    const berth__x *in) {
  berth__inst inst = {
      .code = (uint8_t)code, .type = (uint8_t)type, .in = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE}};
  for (uint32_t i = 0; i < n; ++i) inst.in[i] = in[i];
  berth__range_of(k, code, type, in, &inst.low, &inst.high);
  if (type != BERTH__NUM_F32 && inst.low == inst.high) return berth__maker_constant(k, type, (uint32_t)inst.low);
  return berth__maker_put(k, &inst);
}

static bool is_commutative(berth__inst_code code) {
  switch (code) {
    case BERTH__INST_add:
    case BERTH__INST_mul:
    case BERTH__INST_min:
    case BERTH__INST_max:
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor:
    case BERTH__INST_eq:
    case BERTH__INST_ne: return true;
    default: return false;
  }
}

/* Constants go to the right, and otherwise the older result to the left, so that equal instructions look equal. */
static void order(const berth__kernel *k, berth__inst_code code, berth__x *in) {
  if (!is_commutative(code)) return;
  bool a = k->insts[in[0]].code == BERTH__INST_constant, b = k->insts[in[1]].code == BERTH__INST_constant;
  if (b || (!a && in[0] <= in[1])) return;
  berth__x other = in[0];
  in[0] = in[1];
  in[1] = other;
}

/* x is `code` with a constant on the right. */
static bool is_by_known(const berth__kernel *k, berth__x x, berth__inst_code code, uint32_t *bits) {
  return k->insts[x].code == code && berth__x_is_constant(k, k->insts[x].in[1], bits);
}

/* The integer or bool instruction `code`(x, c) as (y `code` d), with both constants combined. */
static berth__x with(berth__kernel *k, berth__inst_code code, berth__x x, uint32_t bits) {
  return berth__x2(k, code, x, berth__maker_constant(k, berth__maker_type(k, x), bits));
}

static berth__x simplify_add(berth__kernel *k, berth__x a, berth__x b, const uint32_t *known) {
  uint32_t bits;
  if (known != NULL) {
    if (*known == 0) return a;
    if (is_by_known(k, a, BERTH__INST_add, &bits)) return with(k, BERTH__INST_add, k->insts[a].in[0], bits + *known);
  }
  return berth__maker_type(k, a) == BERTH__NUM_I32 ? berth__index_add(k, a, b, 1) : BERTH__X_NONE;
}

static berth__x simplify_sub(berth__kernel *k, berth__x a, berth__x b, const uint32_t *known) {
  if (a == b) return berth__maker_constant(k, berth__maker_type(k, a), 0);
  if (known != NULL) return with(k, BERTH__INST_add, a, 0u - *known);
  return berth__maker_type(k, a) == BERTH__NUM_I32 ? berth__index_add(k, a, b, -1) : BERTH__X_NONE;
}

static berth__x simplify_mul(berth__kernel *k, berth__x a, const uint32_t *known) {
  uint32_t bits;
  if (known == NULL) return BERTH__X_NONE;
  if (*known == 0) return berth__maker_constant(k, berth__maker_type(k, a), 0);
  if (*known == 1) return a;
  if (is_by_known(k, a, BERTH__INST_mul, &bits)) return with(k, BERTH__INST_mul, k->insts[a].in[0], bits * *known);
  if (is_by_known(k, a, BERTH__INST_add, &bits)) {
    return with(k, BERTH__INST_add, with(k, BERTH__INST_mul, k->insts[a].in[0], *known), bits * *known);
  }
  return BERTH__X_NONE;
}

static uint32_t log2_of(uint32_t power) {
  uint32_t n = 0;
  while (power > 1) power >>= 1, ++n;
  return n;
}

static berth__x simplify_div(berth__kernel *k, berth__x a, const uint32_t *known) {
  if (known == NULL) return BERTH__X_NONE;
  if (*known == 0) return berth__maker_constant(k, berth__maker_type(k, a), 0);
  if (*known == 1) return a;
  int64_t by = k->insts[berth__maker_constant(k, berth__maker_type(k, a), *known)].low;
  if (k->status != BERTH_OK || by < 0 || k->insts[a].low < 0) return BERTH__X_NONE;
  if (berth__maker_type(k, a) == BERTH__NUM_I32) {
    berth__x x = berth__index_div(k, a, by);
    if (x != BERTH__X_NONE) return x;
  }
  return berth__is_power_of_two(*known) ? with(k, BERTH__INST_shr, a, log2_of(*known)) : BERTH__X_NONE;
}

static berth__x simplify_rem(berth__kernel *k, berth__x a, const uint32_t *known) {
  if (known == NULL) return BERTH__X_NONE;
  if (*known == 0 || *known == 1) return berth__maker_constant(k, berth__maker_type(k, a), 0);
  int64_t by = k->insts[berth__maker_constant(k, berth__maker_type(k, a), *known)].low;
  if (k->status != BERTH_OK || by < 0 || k->insts[a].low < 0) return BERTH__X_NONE;
  if (k->insts[a].high < by) return a;
  if (berth__maker_type(k, a) == BERTH__NUM_I32) {
    berth__x x = berth__index_rem(k, a, by);
    if (x != BERTH__X_NONE) return x;
  }
  return berth__is_power_of_two(*known) ? with(k, BERTH__INST_and, a, *known - 1) : BERTH__X_NONE;
}

static berth__x simplify_extreme(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b) {
  if (a == b) return a;
  if (!berth__maker_is_integer(berth__maker_type(k, a))) return BERTH__X_NONE;
  const berth__inst *x = &k->insts[a], *y = &k->insts[b];
  bool is_min = code == BERTH__INST_min;
  if (x->high <= y->low) return is_min ? a : b;
  if (y->high <= x->low) return is_min ? b : a;
  return BERTH__X_NONE;
}

static berth__x simplify_bitwise(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b,
                                 const uint32_t *known) {
  berth__number type = berth__maker_type(k, a);
  uint32_t all = type == BERTH__NUM_BOOL ? 1 : UINT32_MAX, bits;
  if (a == b) return code == BERTH__INST_xor ? berth__maker_constant(k, type, 0) : a;
  if (known == NULL) return BERTH__X_NONE;
  if (*known == 0) return code == BERTH__INST_and ? b : a;
  if (*known == all && code != BERTH__INST_xor) return code == BERTH__INST_and ? a : b;
  if (type == BERTH__NUM_BOOL) return berth__x1(k, BERTH__INST_not, a);
  bool keeps_low = berth__is_power_of_two((uint64_t)*known + 1);
  if (code == BERTH__INST_and && keeps_low && k->insts[a].low >= 0 && k->insts[a].high <= (int64_t)*known) return a;
  if (code == BERTH__INST_and && is_by_known(k, a, code, &bits)) return with(k, code, k->insts[a].in[0], bits & *known);
  return BERTH__X_NONE;
}

static berth__x simplify_shift(berth__kernel *k, berth__inst_code code, berth__x a, const uint32_t *known) {
  uint32_t bits;
  if (known == NULL) return BERTH__X_NONE;
  if (*known == 0) return a;
  if (is_by_known(k, a, code, &bits) && bits + *known < 32) return with(k, code, k->insts[a].in[0], bits + *known);
  return BERTH__X_NONE;
}

/* A counter is only visible inside its loop, where it is between the loop's bounds, whatever these are. */
static bool is_within_loop(const berth__kernel *k, berth__inst_code code, berth__x a, berth__x b) {
  const berth__inst *x = &k->insts[a], *y = &k->insts[b];
  if (code == BERTH__INST_lt && x->code == BERTH__INST_loop) return x->in[1] == b;
  return code == BERTH__INST_le && y->code == BERTH__INST_loop && y->in[0] == a && k->insts[y->in[2]].low > 0;
}

/* put resolves comparisons that ranges decide. */
static berth__x simplify_compare(berth__kernel *k, berth__inst_code code, berth__x a, berth__x b,
                                 const uint32_t *known) {
  berth__number type = berth__maker_type(k, a);
  if (type == BERTH__NUM_F32) return BERTH__X_NONE;
  if (a == b) return berth__maker_constant(k, BERTH__NUM_BOOL, code == BERTH__INST_eq || code == BERTH__INST_le);
  if (is_within_loop(k, code, a, b)) return berth__maker_constant(k, BERTH__NUM_BOOL, true);
  if (known == NULL || (code != BERTH__INST_eq && code != BERTH__INST_ne)) return BERTH__X_NONE;
  if (type == BERTH__NUM_BOOL) {
    return (*known != 0) == (code == BERTH__INST_eq) ? a : berth__x1(k, BERTH__INST_not, a);
  }
  const berth__inst *x = &k->insts[a];
  if (x->code == BERTH__INST_convert && berth__maker_type(k, x->in[0]) == BERTH__NUM_BOOL && *known <= 1) {
    berth__x truth = x->in[0];
    return (*known != 0) == (code == BERTH__INST_eq) ? truth : berth__x1(k, BERTH__INST_not, truth);
  }
  return BERTH__X_NONE;
}

static berth__x simplify_select(berth__kernel *k, const berth__x *in) {
  uint32_t condition, yes, no;
  if (berth__maker_known(k, in[0], &condition)) return condition != 0 ? in[1] : in[2];
  if (in[1] == in[2]) return in[1];
  if (berth__maker_type(k, in[1]) == BERTH__NUM_BOOL) {
    bool has_yes = berth__maker_known(k, in[1], &yes), has_no = berth__maker_known(k, in[2], &no);
    if (has_yes && has_no) return yes != 0 ? in[0] : berth__x1(k, BERTH__INST_not, in[0]);
    if (has_yes)
      return yes != 0 ? berth__x_or(k, in[0], in[2]) : berth__x_and(k, berth__x1(k, BERTH__INST_not, in[0]), in[2]);
    if (has_no)
      return no == 0 ? berth__x_and(k, in[0], in[1]) : berth__x_or(k, berth__x1(k, BERTH__INST_not, in[0]), in[1]);
  }
  if (k->insts[in[0]].code == BERTH__INST_not) return berth__x_select(k, k->insts[in[0]].in[0], in[2], in[1]);
  return BERTH__X_NONE;
}

static berth__x simplify_not(berth__kernel *k, berth__x a) {
  const berth__inst *x = &k->insts[a];
  if (x->code == BERTH__INST_not) return x->in[0];
  if (x->type != BERTH__NUM_BOOL) return BERTH__X_NONE;
  if (x->code == BERTH__INST_eq) return berth__x_ne(k, x->in[0], x->in[1]);
  if (x->code == BERTH__INST_ne) return berth__x_eq(k, x->in[0], x->in[1]);
  bool is_ordered = (x->code == BERTH__INST_lt || x->code == BERTH__INST_le) &&
                    berth__maker_is_integer(berth__maker_type(k, x->in[0]));
  if (is_ordered && x->code == BERTH__INST_lt) return berth__x_le(k, x->in[1], x->in[0]);
  if (is_ordered) return berth__x_lt(k, x->in[1], x->in[0]);
  return BERTH__X_NONE;
}

static berth__x simplify_convert(berth__kernel *k, berth__inst_code code, berth__number type, berth__x a) {
  const berth__inst *x = &k->insts[a];
  berth__number from = (berth__number)x->type;
  if (from == type) return a;
  if (berth__maker_is_integer(from) && berth__maker_is_integer(type)) {
    bool is_back = x->code == BERTH__INST_convert && berth__maker_type(k, x->in[0]) == type;
    if (is_back) return x->in[0];
    return code == BERTH__INST_bits ? kernel_simplify_put(k, BERTH__INST_convert, type, 1, &a) : BERTH__X_NONE;
  }
  if (code == BERTH__INST_bits) {
    bool is_back = x->code == BERTH__INST_bits && berth__maker_type(k, x->in[0]) == type;
    return is_back ? x->in[0] : BERTH__X_NONE;
  }
  if (type == BERTH__NUM_BOOL) return berth__x_ne(k, a, berth__maker_constant(k, from, 0));
  return BERTH__X_NONE;
}

/* By a power of two that has a reciprocal: multiplies, which is exact, too. */
static berth__x simplify_quotient(berth__kernel *k, berth__x a, const uint32_t *known) {
  if (known == NULL || (*known & 0x7fffffu) != 0) return BERTH__X_NONE;
  const uint32_t exponent = *known >> 23 & 255u, sign = *known & 0x80000000u;
  if (exponent == 127 && sign == 0) return a;
  if (exponent < 2 || exponent > 252) return BERTH__X_NONE;
  return berth__x_mul(k, a, berth__maker_constant(k, BERTH__NUM_F32, (254u - exponent) << 23 | sign));
}

/* f32: identities that hold for every number, including infinities, NaN and -0. */
static berth__x simplify_f32(berth__kernel *k, berth__inst_code code, const berth__x *in, const uint32_t *known) {
  const uint32_t one = 0x3f800000u, minus_zero = 0x80000000u;
  const berth__inst *a = &k->insts[in[0]];
  switch (code) {
    case BERTH__INST_add: return known != NULL && *known == minus_zero ? in[0] : BERTH__X_NONE;
    case BERTH__INST_sub: return known != NULL && *known == 0 ? in[0] : BERTH__X_NONE;
    case BERTH__INST_mul:
    case BERTH__INST_div: return known != NULL && *known == one ? in[0] : BERTH__X_NONE;
    case BERTH__INST_quotient: return simplify_quotient(k, in[0], known);
    case BERTH__INST_min:
    case BERTH__INST_max: return simplify_extreme(k, code, in[0], in[1]);
    case BERTH__INST_neg: return a->code == BERTH__INST_neg ? a->in[0] : BERTH__X_NONE;
    case BERTH__INST_abs:
    case BERTH__INST_floor:
    case BERTH__INST_ceil:
    case BERTH__INST_round:
    case BERTH__INST_trunc:
    case BERTH__INST_rounded:
    case BERTH__INST_to_half: return a->code == code ? in[0] : BERTH__X_NONE;
    case BERTH__INST_fma:
      if (known != NULL && *known == one) return berth__x_add(k, in[0], in[2]);
      return BERTH__X_NONE;
    default: return BERTH__X_NONE;
  }
}

static berth__x simplify_integer(berth__kernel *k, berth__inst_code code, const berth__x *in, const uint32_t *known) {
  switch (code) {
    case BERTH__INST_add: return simplify_add(k, in[0], in[1], known);
    case BERTH__INST_sub: return simplify_sub(k, in[0], in[1], known);
    case BERTH__INST_mul: return simplify_mul(k, in[0], known);
    case BERTH__INST_div: return simplify_div(k, in[0], known);
    case BERTH__INST_rem: return simplify_rem(k, in[0], known);
    case BERTH__INST_min:
    case BERTH__INST_max: return simplify_extreme(k, code, in[0], in[1]);
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor: return simplify_bitwise(k, code, in[0], in[1], known);
    case BERTH__INST_shl:
    case BERTH__INST_shr: return simplify_shift(k, code, in[0], known);
    case BERTH__INST_abs: return k->insts[in[0]].low >= 0 ? in[0] : BERTH__X_NONE;
    case BERTH__INST_neg: return k->insts[in[0]].code == BERTH__INST_neg ? k->insts[in[0]].in[0] : BERTH__X_NONE;
    case BERTH__INST_not: return simplify_not(k, in[0]);
    default: return BERTH__X_NONE;
  }
}

static berth__x shorten(berth__kernel *k, berth__inst_code code, berth__number type, const berth__x *in,
                        const uint32_t *known) {
  switch (code) {
    case BERTH__INST_select: return simplify_select(k, in);
    case BERTH__INST_convert:
    case BERTH__INST_bits: return simplify_convert(k, code, type, in[0]);
    case BERTH__INST_eq:
    case BERTH__INST_ne:
    case BERTH__INST_lt:
    case BERTH__INST_le: return simplify_compare(k, code, in[0], in[1], known);
    default: break;
  }
  return type == BERTH__NUM_F32 ? simplify_f32(k, code, in, known) : simplify_integer(k, code, in, known);
}

berth__x berth__simplify(berth__kernel *k, berth__inst_code code, berth__number type, uint32_t n, const berth__x *in) {
  uint32_t bits[3] = {0, 0, 0}, n_known = 0, result;
  berth__x operands[3] = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE};
  for (uint32_t i = 0; i < n; ++i) {
    operands[i] = in[i];
    if (!berth__maker_known(k, in[i], &bits[i])) continue;
    operands[i] = berth__maker_constant(k, berth__maker_type(k, in[i]), bits[i]);
    n_known += 1;
  }
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  if (n_known == n && berth__fold(code, type, berth__maker_type(k, operands[0]), bits, &result)) {
    return berth__maker_constant(k, type, result);
  }
  if (n == 2) order(k, code, operands);
  const uint32_t *known = n >= 2 && berth__x_is_constant(k, operands[1], &bits[1]) ? &bits[1] : NULL;
  berth__x x = shorten(k, code, type, operands, known);
  if (k->status != BERTH_OK) return BERTH__X_NONE;
  return x != BERTH__X_NONE ? x : kernel_simplify_put(k, code, type, n, operands);
}
