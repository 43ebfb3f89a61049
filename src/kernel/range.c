/* Value ranges of integers. A result that may wrap has the full range. */
#include "kernel/maker.h"

typedef struct range {
  int64_t low, high;
} range;

void berth__range_of_type(berth__number type, int64_t *low, int64_t *high) {
  switch (type) {
    case BERTH__NUM_F32: *low = *high = 0; return;
    case BERTH__NUM_I32: *low = INT32_MIN, *high = INT32_MAX; return;
    case BERTH__NUM_U32: *low = 0, *high = UINT32_MAX; return;
    case BERTH__NUM_BOOL: *low = 0, *high = 1; return;
  }
}

static int64_t kernel_range_least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t kernel_range_most(int64_t a, int64_t b) { return a > b ? a : b; }

/* The smallest 2^n - 1 that is at least x, for x >= 0. */
static int64_t ones_over(int64_t x) {
  int64_t ones = 0;
  while (ones < x) ones = 2 * ones + 1;
  return ones;
}

/* Products of u32 may exceed a signed 64-bit number: the caller's check gives up on such a range. */
static range kernel_range_multiply(range a, range b) {
  if (kernel_range_most(a.high, b.high) > INT32_MAX && (double)a.high * (double)b.high > 9e18)
    return (range){0, INT64_MAX};
  int64_t p = a.low * b.low, q = a.low * b.high, r = a.high * b.low, s = a.high * b.high;
  return (range){kernel_range_least(kernel_range_least(p, q), kernel_range_least(r, s)),
                 kernel_range_most(kernel_range_most(p, q), kernel_range_most(r, s))};
}

static range kernel_range_divide(range a, range b) {
  if (b.low <= 0) { /* by 0 gives 0; by a negative number flips the sign */
    int64_t size = kernel_range_most(-a.low, a.high);
    return b.low < 0 ? (range){-size, size} : (range){kernel_range_least(a.low, 0), kernel_range_most(a.high, 0)};
  }
  return (range){a.low < 0 ? a.low / b.low : a.low / b.high, a.high < 0 ? a.high / b.high : a.high / b.low};
}

static range remain(range a, range b) {
  int64_t size = kernel_range_most(kernel_range_most(-b.low, b.high) - 1, 0);
  range r = {a.low < 0 ? -kernel_range_least(size, -a.low) : 0, a.high > 0 ? kernel_range_least(size, a.high) : 0};
  return r;
}

static range bitwise(berth__inst_code code, range a, range b, range any) {
  if (a.low < 0 && b.low < 0) return any;
  if (code == BERTH__INST_and) {
    if (a.low < 0) return (range){0, b.high};
    return (range){0, b.low < 0 ? a.high : kernel_range_least(a.high, b.high)};
  }
  if (a.low < 0 || b.low < 0) return any;
  return (range){code == BERTH__INST_or ? kernel_range_most(a.low, b.low) : 0,
                 ones_over(kernel_range_most(a.high, b.high))};
}

static range shift(berth__inst_code code, range a, range b, range any) {
  if (b.low < 0 || b.high > 31) return any;
  if (code == BERTH__INST_shl) {
    if (a.low < 0) return any;
    return (range){a.low << b.low, a.high << b.high};
  }
  return (range){a.low < 0 ? a.low >> b.low : a.low >> b.high, a.high < 0 ? a.high >> b.high : a.high >> b.low};
}

static range kernel_range_compare(berth__inst_code code, range a, range b) {
  bool apart = a.high < b.low || b.high < a.low, one = a.low == a.high && b.low == b.high && a.low == b.low;
  switch (code) {
    case BERTH__INST_eq: return (range){one, !apart};
    case BERTH__INST_ne: return (range){apart, !one};
    case BERTH__INST_lt: return (range){a.high < b.low, a.low < b.high};
    default: return (range){a.high <= b.low, a.low <= b.high};
  }
}

static range kernel_range_convert(berth__number type, const berth__inst *a, range any) {
  if (a->type == BERTH__NUM_F32) return any;
  if (type != BERTH__NUM_BOOL) return (range){a->low, a->high};
  if (a->low > 0 || a->high < 0) return (range){1, 1};
  return (range){0, a->low != 0 || a->high != 0};
}

static range kernel_range_absolute(range a) {
  if (a.low >= 0) return a;
  return (range){a.high < 0 ? -a.high : 0, kernel_range_most(-a.low, a.high)};
}

static range kernel_range_compute(berth__inst_code code, berth__number type, const berth__inst *first, range a, range b,
                                  range c, range any) {
  switch (code) {
    case BERTH__INST_add: return (range){a.low + b.low, a.high + b.high};
    case BERTH__INST_sub: return (range){a.low - b.high, a.high - b.low};
    case BERTH__INST_mul: return kernel_range_multiply(a, b);
    case BERTH__INST_div: return kernel_range_divide(a, b);
    case BERTH__INST_rem: return remain(a, b);
    case BERTH__INST_min: return (range){kernel_range_least(a.low, b.low), kernel_range_least(a.high, b.high)};
    case BERTH__INST_max: return (range){kernel_range_most(a.low, b.low), kernel_range_most(a.high, b.high)};
    case BERTH__INST_neg: return (range){-a.high, -a.low};
    case BERTH__INST_abs: return kernel_range_absolute(a);
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor: return bitwise(code, a, b, any);
    case BERTH__INST_not: return type == BERTH__NUM_BOOL ? (range){1 - a.high, 1 - a.low} : any;
    case BERTH__INST_shl:
    case BERTH__INST_shr: return shift(code, a, b, any);
    case BERTH__INST_eq:
    case BERTH__INST_ne:
    case BERTH__INST_lt:
    case BERTH__INST_le: return first->type == BERTH__NUM_F32 ? any : kernel_range_compare(code, a, b);
    case BERTH__INST_select: return (range){kernel_range_least(b.low, c.low), kernel_range_most(b.high, c.high)};
    case BERTH__INST_pack_half: return (range){0, 0xffff};
    case BERTH__INST_convert:
    case BERTH__INST_bits: return kernel_range_convert(type, first, any);
    default: return any;
  }
}

void berth__range_of(const berth__kernel *k, berth__inst_code code, berth__number type, const berth__x *in,
                     int64_t *low, int64_t *high) {
  range any = {0, 0}, of[3] = {{0, 0}, {0, 0}, {0, 0}};
  berth__range_of_type(type, &any.low, &any.high);
  *low = any.low;
  *high = any.high;
  if (type == BERTH__NUM_F32) return;
  for (uint32_t i = 0; i < berth__inst_operands(code); ++i) of[i] = (range){k->insts[in[i]].low, k->insts[in[i]].high};
  range r = kernel_range_compute(code, type, &k->insts[in[0]], of[0], of[1], of[2], any);
  if (r.low < any.low || r.high > any.high) return;
  *low = r.low;
  *high = r.high;
}
