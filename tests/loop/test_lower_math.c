/* Functions of f32 in the loop language against C's in f64, over all of the floats: steps through their bits, so that
 * every exponent is met. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "loop/lower/math.h"
#include "run.h"

#define COUNT 16384u /* of arguments */
#define GROUP 64u

/* Every 2^32 / COUNT-th pattern of bits, off the round ones but for the first few: what is special. */
static float argument(uint32_t i) {
  static const float special[] = {0.0f,        -0.0f,      1.0f,  -1.0f,     INFINITY,   -INFINITY, NAN,   0.5f,
                                  -0.5f,       2.0f,       -2.0f, 0x1p-149f, -0x1p-149f, 0x1p-126f, 88.7f, -87.4f,
                                  1.00000012f, 0.9999999f, 89.4f, 3.4e38f,   -3.4e38f,   8192.0f,   1e6f,  1.57079637f};
  const uint32_t n = sizeof special / sizeof *special;
  if (i < n) return special[i];
  const uint32_t bits = i * (UINT32_MAX / COUNT) + i * 7919u;
  float x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

typedef struct function {
  const char *name;
  berth__op_code op;
  double (*of)(double);
  double relative, absolute; /* what is allowed: one of the two */
} function;

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

/* Subnormal results are only as good as their digits; the activations rest on the device's exp, of which e^-x^2 asks
 * more than it has far out. */
#define TINY 1e-44
static const function functions[] = {
    {"neg", BERTH__OP_neg, negated, 0, 0},
    {"abs", BERTH__OP_abs, fabs, 0, 0},
    {"relu", BERTH__OP_relu, relu, 0, 0},
    {"sign", BERTH__OP_sign, sign, 0, 0},
    {"round", BERTH__OP_round, rint, 0, 0},
    {"floor", BERTH__OP_floor, floor, 0, 0},
    {"ceil", BERTH__OP_ceil, ceil, 0, 0},
    {"sqrt", BERTH__OP_sqrt, sqrt, 1e-7, 0},
    {"rsqrt", BERTH__OP_rsqrt, rsqrt, 3e-7, 0},
    {"reciprocal", BERTH__OP_reciprocal, inverse, 2e-7, TINY},
    {"exp", BERTH__OP_exp, exp, 3e-7, TINY},
    {"expm1", BERTH__OP_expm1, expm1, 5e-7, TINY},
    {"log", BERTH__OP_log, log, 3e-7, 0},
    {"sin", BERTH__OP_sin, sin, 4e-7, 2e-7},
    {"cos", BERTH__OP_cos, cos, 4e-7, 2e-7},
    {"tan", BERTH__OP_tan, tan, 5e-6, 2e-7},
    {"asin", BERTH__OP_asin, asin, 4e-7, 0},
    {"acos", BERTH__OP_acos, acos, 4e-7, 0},
    {"atan", BERTH__OP_atan, atan, 4e-7, TINY},
    {"sinh", BERTH__OP_sinh, sinh, 1e-6, TINY},
    {"cosh", BERTH__OP_cosh, cosh, 1e-6, 0},
    {"tanh", BERTH__OP_tanh, tanh, 4e-7, TINY},
    {"asinh", BERTH__OP_asinh, asinh, 5e-7, TINY},
    {"acosh", BERTH__OP_acosh, acosh, 5e-7, 0},
    {"atanh", BERTH__OP_atanh, atanh, 5e-7, TINY},
    {"softplus", BERTH__OP_softplus, softplus, 5e-7, TINY},
    {"sigmoid", BERTH__OP_sigmoid, sigmoid, 5e-7, TINY},
    {"silu", BERTH__OP_silu, silu, 5e-7, 2e-43},
    {"erf", BERTH__OP_erf, erf, 4e-7, TINY},
    {"gelu", BERTH__OP_gelu, gelu, 2e-6, 2e-11},
    {"gelu_tanh", BERTH__OP_gelu_tanh, gelu_tanh, 2e-6, 2e-11},
};

static bool is_close(double expected, float got, double relative, double absolute) {
  if (isnan(expected)) return isnan(got);
  const float rounded = (float)expected;
  if (rounded == got) return true;
  if (isinf(rounded))
    return fabsf(got) >= 3.40282e38f && (signbit(got) != 0) == (signbit(rounded) != 0); /* one step beside it */
  const double error = fabs((double)got - expected);
  return error <= relative * fabs(expected) || error <= absolute;
}

static void check_function(berth_context *ctx, const function *f) {
  float *x = malloc(2 * COUNT * sizeof *x), *y = x + COUNT;
  for (uint32_t i = 0; i < COUNT; i++) x[i] = argument(i);
  berth__kernel *k = kernel_of(ctx, f->name, GROUP, COUNT / GROUP);
  const berth__x i = flat_index(k);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH__STORE_F32),
                 out = berth__kernel_buffer_of(k, 1, BERTH__STORE_F32);
  berth__x_store(k, out, i, berth__l_unary(k, f->op, berth__x_load(k, in, i)));
  berth_error err;
  uint32_t *words[] = {(uint32_t *)x, (uint32_t *)y};
  TEST_OK(berth__kernel_finish(k, &err));
  TEST_OK(run_kernel(k, words, (uint64_t[]){COUNT, COUNT}, &err));
  berth__kernel_destroy(k);
  uint32_t n_wrong = 0;
  for (uint32_t at = 0; at < COUNT; at++) {
    const double expected = f->of((double)x[at]);
    if (is_close(expected, y[at], f->relative, f->absolute)) continue;
    if (n_wrong++ < 8)
      fprintf(stderr, "%s(%.9g) is %.9g, expected %.9g\n", f->name, (double)x[at], (double)y[at], expected);
  }
  assert_int_equal(n_wrong, 0);
  free(x);
}

static void functions_of_one(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) check_function(ctx, &functions[i]);
  berth_context_destroy(ctx);
}

/* ---- Two arguments ---- */

static void check_two(berth_context *ctx, const char *name, berth__x (*make)(berth__kernel *, berth__x, berth__x),
                      double (*of)(double, double), const float *x, const float *y, uint32_t n, double relative) {
  float *out = malloc(n * sizeof *out), *in = malloc(2 * n * sizeof *in);
  memcpy(in, x, n * sizeof *x);
  memcpy(in + n, y, n * sizeof *y);
  berth__kernel *k = kernel_of(ctx, name, 1, n);
  const berth__x i = berth__x_group(k);
  const uint32_t from = berth__kernel_buffer_of(k, 0, BERTH__STORE_F32),
                 to = berth__kernel_buffer_of(k, 1, BERTH__STORE_F32);
  berth__x_store(k, to, i, make(k, berth__x_load(k, from, i), berth__x_load(k, from, berth__x_affine(k, i, 1, n))));
  berth_error err;
  uint32_t *words[] = {(uint32_t *)in, (uint32_t *)out};
  TEST_OK(berth__kernel_finish(k, &err));
  TEST_OK(run_kernel(k, words, (uint64_t[]){2 * (uint64_t)n, n}, &err));
  berth__kernel_destroy(k);
  uint32_t n_wrong = 0;
  for (uint32_t at = 0; at < n; at++) {
    const double expected = of((double)x[at], (double)y[at]);
    const bool is_good = is_close(expected, out[at], relative, relative > 0 ? TINY : 0) &&
                         (expected != 0 || (signbit(expected) != 0) == (signbit(out[at]) != 0));
    if (is_good) continue;
    if (n_wrong++ < 8)
      fprintf(stderr, "%s(%.9g, %.9g) is %.9g, expected %.9g\n", name, (double)x[at], (double)y[at], (double)out[at],
              expected);
  }
  assert_int_equal(n_wrong, 0);
  free(in);
  free(out);
}

#define EDGES 19u
static const float edges[EDGES] = {0.0f,  -0.0f, 1.0f,  -1.0f, INFINITY, -INFINITY, NAN,    2.0f,      -2.0f,      3.0f,
                                   -3.0f, 0.5f,  -0.5f, 1e-3f, 1e30f,    -7.25f,    100.0f, 0x1p-149f, 16777217.0f};

static void functions_of_two(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  enum {
    MANY = 2048,
    ALL = EDGES * EDGES + MANY
  };
  float x[ALL], y[ALL];
  uint32_t n = 0;
  for (uint32_t i = 0; i < EDGES; i++)
    for (uint32_t j = 0; j < EDGES; j++, n++) x[n] = edges[i], y[n] = edges[j];
  for (uint32_t i = 0; i < MANY; i++, n++) {
    x[n] = ldexpf(1.0f + (float)(i * 37 % 1000) / 1000.0f, (int)(i % 60) - 30);
    y[n] = (float)(i * 53 % 997) / 200.0f - 2.5f;
  }
  check_two(ctx, "pow", berth__m_pow, pow, x, y, n, 6e-6);
  check_two(ctx, "fmod", berth__m_fmod, fmod, x, y, n, 0);
  for (uint32_t i = 0; i < n; i++) x[i] = argument(i % COUNT), y[i] = argument((i * 131 + 7) % COUNT);
  check_two(ctx, "fmod", berth__m_fmod, fmod, x, y, n, 0);
  berth_context_destroy(ctx);
}

/* Powers that models use most, with the power known. */
static berth__x square(berth__kernel *k, berth__x x, berth__x y) {
  (void)y;
  return berth__m_pow(k, x, berth__x_f32(k, 2));
}
static berth__x root(berth__kernel *k, berth__x x, berth__x y) {
  (void)y;
  return berth__m_pow(k, x, berth__x_f32(k, 0.5f));
}
static double square_of(double x, double y) { return (void)y, x * x; }
static double root_of(double x, double y) { return (void)y, x == 0 ? x : pow(x, 0.5); }

static void known_powers(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  check_two(ctx, "square", square, square_of, edges, edges, EDGES, 1e-7);
  check_two(ctx, "root", root, root_of, edges, edges, EDGES, 1e-7);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_of_one),
      cmocka_unit_test(functions_of_two),
      cmocka_unit_test(known_powers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
