#include "ops/chain.h"

#include <inttypes.h>
#include <math.h>

static const uint8_t arity[] = {
#define BERTH__CHAIN(name, n_in) (n_in),
#include "ops/chain.def"
#undef BERTH__CHAIN
};

uint32_t berth__chain_arity(berth__chain_code code) { return arity[code]; }

/* One more than the step, so that ops without a step have 0. */
static const uint8_t code_of_op[BERTH__OP_COUNT] = {
#define BERTH__CHAIN(name, n_in) [BERTH__OP_##name] = BERTH__CHAIN_##name + 1,
#include "ops/chain.def"
#undef BERTH__CHAIN
};

berth__chain_code berth__chain_code_of(berth__op_code op) {
  if (op >= BERTH__OP_COUNT || code_of_op[op] == 0) return BERTH__CHAIN_COUNT;
  return (berth__chain_code)(code_of_op[op] - 1);
}

/* ---- Reading -------------------------------------------------------------------------------------------------- */

static berth_status check_step(const int64_t *step, uint32_t at, uint32_t n_before, berth_error *err) {
  if (step[0] < 0 || step[0] >= BERTH__CHAIN_COUNT)
    return berth__fail(err, BERTH_INVALID, "step %" PRIu32 " of `code` is %" PRId64 ", expected 0 to %d", at, step[0],
                       BERTH__CHAIN_COUNT - 1);
  for (uint32_t k = 0; k < arity[step[0]]; k++)
    if (step[1 + k] < 0 || step[1 + k] >= (int64_t)n_before)
      return berth__fail(err, BERTH_INVALID,
                         "step %" PRIu32 " of `code` reads register %" PRId64 ", expected one of the %" PRIu32
                         " before it",
                         at, step[1 + k], n_before);
  return BERTH_OK;
}

berth_status berth__chain_read(const berth_attr *code, const berth_attr *numbers, uint32_t n_operands,
                               berth__chain *out, berth_error *err) {
  const uint32_t n_steps = code->count / 4;
  if (n_operands > BERTH__CHAIN_OPERANDS || numbers->count > BERTH__CHAIN_NUMBERS || n_steps > BERTH__CHAIN_STEPS)
    return berth__fail(err, BERTH_INVALID,
                       "a chain of %" PRIu32 " operands, %" PRIu32 " numbers and %" PRIu32
                       " steps is too long: the most are %u, %u and %u",
                       n_operands, numbers->count, n_steps, BERTH__CHAIN_OPERANDS, BERTH__CHAIN_NUMBERS,
                       BERTH__CHAIN_STEPS);
  if (code->count % 4 != 0)
    return berth__fail(err, BERTH_INVALID, "`code` has %" PRIu32 " entries, expected four a step", code->count);
  for (uint32_t i = 0; i < n_steps; i++)
    BERTH__TRY(check_step(code->ints + (size_t)4 * i, i, n_operands + numbers->count + i, err));
  *out = (berth__chain){.n_operands = n_operands,
                        .n_numbers = numbers->count,
                        .n_steps = n_steps,
                        .code = code->ints,
                        .numbers = numbers->floats};
  return BERTH_OK;
}

/* ---- One element ---------------------------------------------------------------------------------------------- */

static double chain_sigmoid(double x) {
  const double e = exp(-fabs(x));
  return (x < 0 ? e : 1) / (1 + e);
}

static double chain_with_two(berth__chain_code code, double x, double y) {
  switch (code) {
    case BERTH__CHAIN_add: return x + y;
    case BERTH__CHAIN_sub: return x - y;
    case BERTH__CHAIN_mul: return x * y;
    case BERTH__CHAIN_div: return x / y;
    case BERTH__CHAIN_min: return x < y || isnan(x) ? x : y;
    case BERTH__CHAIN_max: return x > y || isnan(x) ? x : y;
    case BERTH__CHAIN_pow: return pow(x, y);
    case BERTH__CHAIN_eq: return x == y;
    case BERTH__CHAIN_ne: return x != y;
    case BERTH__CHAIN_lt: return x < y;
    case BERTH__CHAIN_le: return x <= y;
    case BERTH__CHAIN_gt: return x > y;
    case BERTH__CHAIN_ge: return x >= y;
    case BERTH__CHAIN_and: return x != 0 && y != 0;
    case BERTH__CHAIN_or: return x != 0 || y != 0;
    default: return (x != 0) != (y != 0); /* xor */
  }
}

/* Inverse functions: trigonometric and hyperbolic. */
static double chain_inverse(berth__chain_code code, double x) {
  switch (code) {
    case BERTH__CHAIN_asin: return asin(x);
    case BERTH__CHAIN_acos: return acos(x);
    case BERTH__CHAIN_atan: return atan(x);
    case BERTH__CHAIN_sinh: return sinh(x);
    case BERTH__CHAIN_cosh: return cosh(x);
    case BERTH__CHAIN_asinh: return asinh(x);
    case BERTH__CHAIN_acosh: return acosh(x);
    default: return atanh(x);
  }
}

static double chain_smooth(berth__chain_code code, double x) {
  switch (code) {
    case BERTH__CHAIN_exp: return exp(x);
    case BERTH__CHAIN_expm1: return expm1(x);
    case BERTH__CHAIN_log: return log(x);
    case BERTH__CHAIN_tanh: return tanh(x);
    case BERTH__CHAIN_sigmoid: return chain_sigmoid(x);
    case BERTH__CHAIN_softplus: return (x < 0 ? 0 : x) + log1p(exp(-fabs(x)));
    case BERTH__CHAIN_erf: return erf(x);
    case BERTH__CHAIN_gelu: return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440);
    case BERTH__CHAIN_gelu_tanh:
      return x == -INFINITY ? 0 : x * chain_sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x));
    case BERTH__CHAIN_silu: return x == -INFINITY ? 0 : x * chain_sigmoid(x);
    case BERTH__CHAIN_sin: return sin(x);
    case BERTH__CHAIN_cos: return cos(x);
    default: return chain_inverse(code, x);
  }
}

static double with_one(berth__chain_code code, double x) {
  switch (code) {
    case BERTH__CHAIN_identity: return x;
    case BERTH__CHAIN_not: return x == 0;
    case BERTH__CHAIN_neg: return -x;
    case BERTH__CHAIN_abs: return fabs(x);
    case BERTH__CHAIN_relu: return x < 0 ? 0 : x;
    case BERTH__CHAIN_sqrt: return sqrt(x);
    case BERTH__CHAIN_rsqrt: return 1 / sqrt(x);
    case BERTH__CHAIN_reciprocal: return 1 / x;
    case BERTH__CHAIN_sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case BERTH__CHAIN_round: return rint(x);
    case BERTH__CHAIN_floor: return floor(x);
    case BERTH__CHAIN_ceil: return ceil(x);
    default: return chain_smooth(code, x);
  }
}

static double with_three(berth__chain_code code, double x, double y, double z) {
  if (code == BERTH__CHAIN_where) return x != 0 ? y : z;
  x = x < y ? y : x; /* clamp */
  return x > z ? z : x;
}

double berth__chain_value(const berth__chain *chain, const double *operands) {
  double at[BERTH__CHAIN_OPERANDS + BERTH__CHAIN_NUMBERS + BERTH__CHAIN_STEPS] = {0};
  uint32_t n = 0;
  for (uint32_t i = 0; i < chain->n_operands; i++) at[n++] = operands[i];
  for (uint32_t i = 0; i < chain->n_numbers; i++) at[n++] = (float)chain->numbers[i];
  for (uint32_t i = 0; i < chain->n_steps; i++) {
    const int64_t *step = chain->code + (size_t)4 * i;
    const berth__chain_code code = (berth__chain_code)step[0];
    double value;
    switch (arity[code]) {
      case 1: value = with_one(code, at[step[1]]); break;
      case 2: value = chain_with_two(code, at[step[1]], at[step[2]]); break;
      default: value = with_three(code, at[step[1]], at[step[2]], at[step[3]]); break;
    }
    at[n++] = (float)value; /* rounded like the result of the node that the step replaces */
  }
  return n > 0 ? at[n - 1] : 0;
}
