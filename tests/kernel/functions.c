#include "functions.h"

#include <math.h>
#include <string.h>

float argument_at(uint32_t i) {
  static const float special[] = {0.0f,        -0.0f,      1.0f,  -1.0f,     INFINITY,   -INFINITY, NAN,   0.5f,
                                  -0.5f,       2.0f,       -2.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 88.7f, -87.4f,
                                  1.00000012f, 0.9999999f, 89.4f, 3.4e38f,   -3.4e38f,   8192.0f,   1e6f,  1.57079637f};
  const uint32_t n = sizeof special / sizeof *special;
  if (i < n) return special[i];
  const uint32_t bits = i * (UINT32_MAX / ARGUMENTS) + i * 7919u;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

static double sigmoid(double x) { return x < 0 ? exp(x) / (1 + exp(x)) : 1 / (1 + exp(-x)); }
static double silu(double x) { return x == -INFINITY ? 0 : x * sigmoid(x); }
static double softplus(double x) { return (x < 0 ? 0 : x) + log1p(exp(-fabs(x))); }
static double gelu(double x) { return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x) {
  return x == -INFINITY ? 0 : x * sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x));
}
static double relu(double x) { return x < 0 ? 0 : x; }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static double rsqrt(double x) { return 1 / sqrt(x); }
static double inverse(double x) { return 1 / x; }
static double negated(double x) { return -x; }

/* The activations use the device's exp, for which e^-x^2 is most demanding for large x. */
const function functions[N_FUNCTIONS] = {
    {"neg", BERTH__OP_neg, negated, 0, 0, 0},
    {"abs", BERTH__OP_abs, fabs, 0, 0, 0},
    {"relu", BERTH__OP_relu, relu, 0, 0, 0},
    {"sign", BERTH__OP_sign, sign, 0, 0, 0},
    {"round", BERTH__OP_round, rint, 0, 0, 0},
    {"floor", BERTH__OP_floor, floor, 0, 0, 0},
    {"ceil", BERTH__OP_ceil, ceil, 0, 0, 0},
    {"sqrt", BERTH__OP_sqrt, sqrt, 1e-7, 0, 0},
    {"rsqrt", BERTH__OP_rsqrt, rsqrt, 3e-7, 0, 0},
    {"reciprocal", BERTH__OP_reciprocal, inverse, 2e-7, TINY, 0},
    {"exp", BERTH__OP_exp, exp, 3e-7, TINY, 0},
    {"expm1", BERTH__OP_expm1, expm1, 5e-7, TINY, 0},
    {"log", BERTH__OP_log, log, 3e-7, 0, 0},
    {"sin", BERTH__OP_sin, sin, 4e-7, 2e-7, 0},
    {"cos", BERTH__OP_cos, cos, 4e-7, 2e-7, 0},
    {"tan", BERTH__OP_tan, tan, 5e-6, 2e-7, 0},
    {"asin", BERTH__OP_asin, asin, 4e-7, 0, 0},
    {"acos", BERTH__OP_acos, acos, 4e-7, 0, 0},
    {"atan", BERTH__OP_atan, atan, 4e-7, TINY, 0},
    {"sinh", BERTH__OP_sinh, sinh, 1e-6, TINY, 0},
    {"cosh", BERTH__OP_cosh, cosh, 1e-6, 0, 0},
    {"tanh", BERTH__OP_tanh, tanh, 4e-7, TINY, 0},
    {"asinh", BERTH__OP_asinh, asinh, 5e-7, TINY, 0},
    {"acosh", BERTH__OP_acosh, acosh, 5e-7, 0, 0},
    {"atanh", BERTH__OP_atanh, atanh, 5e-7, TINY, 0},
    {"softplus", BERTH__OP_softplus, softplus, 5e-7, TINY, 0},
    {"sigmoid", BERTH__OP_sigmoid, sigmoid, 5e-7, TINY, 1e-10},
    {"silu", BERTH__OP_silu, silu, 5e-7, 2e-43, 1e-10},
    {"erf", BERTH__OP_erf, erf, 4e-7, TINY, 0},
    {"gelu", BERTH__OP_gelu, gelu, 2e-6, 2e-11, 1e-10},
    {"gelu_tanh", BERTH__OP_gelu_tanh, gelu_tanh, 2e-6, 2e-11, 1e-10},
};

bool is_close(double expected, float got, double relative, double absolute) {
  if (isnan(expected)) return isnan(got);
  const float rounded = (float)expected;
  if (rounded == got) return true;
  if (isinf(rounded))
    return fabsf(got) >= 3.40282e38f && (signbit(got) != 0) == (signbit(rounded) != 0); /* one step away */
  const double error = fabs((double)got - expected);
  return error <= relative * fabs(expected) || error <= absolute;
}
