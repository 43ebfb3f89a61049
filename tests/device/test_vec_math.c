/* The functions of vec_math.h against the C library in f64, through the kernels of their ops, for every instruction set
 * of this machine: over all magnitudes, and at the values where formulas break. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/cpu/kernel.h"
#include "support.h"

#define N 200003 /* not a multiple of any vector */

static double exact_sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double exact_silu(double x) { return x == -INFINITY ? 0 : x / (1 + exp(-x)); }
static double exact_gelu(double x) { return x == -INFINITY ? 0 : 0.5 * x * erfc(-x * M_SQRT1_2); }
static double exact_gelu_tanh(double x) {
  return x == -INFINITY ? 0 : x * exact_sigmoid(1.5957691216057307117 * (x + 0.044715 * x * x * x));
}
static double exact_softplus(double x) { return (x < 0 ? 0 : x) + log1p(exp(-fabs(x))); }

typedef struct function {
  const char *op;
  double (*exact)(double);
  double ulps;     /* of the result */
  double absolute; /* on top, where the result is the difference of larger numbers */
  double low, high;
} function;

static const function functions[] = {
    {"exp", exp, 2, 0, -90, 90},
    {"expm1", expm1, 2, 0, -40, 90},
    {"log", log, 2, 0, 0, 1e6},
    {"tanh", tanh, 3, 0, -12, 12},
    {"sigmoid", exact_sigmoid, 3, 0, -90, 90},
    {"softplus", exact_softplus, 3, 0, -90, 90},
    {"erf", erf, 3, 0, -5, 5},
    {"gelu", exact_gelu, 8, 1e-9, -12, 12},
    {"gelu_tanh", exact_gelu_tanh, 16, 1e-9, -12, 12},
    {"silu", exact_silu, 4, 2e-36, -90, 90},
    {"sin", sin, 2, 1e-9, -8000, 8000},
    {"cos", cos, 2, 1e-9, -8000, 8000},
    {"asin", asin, 3, 0, -1.1, 1.1},
    {"acos", acos, 3, 0, -1.1, 1.1},
    {"atan", atan, 3, 0, -12, 12},
    {"sinh", sinh, 5, 0, -90, 90},
    {"cosh", cosh, 5, 0, -90, 90},
    {"asinh", asinh, 4, 0, -30, 30},
    {"acosh", acosh, 4, 0, 0.5, 30},
    {"atanh", atanh, 4, 0, -1.1, 1.1},
};

static uint64_t seed;
static double next_number(void) {
  seed = seed * 6364136223846793005u + 1442695040888963407u;
  return (double)(seed >> 11) / 9007199254740992.0;
}

static const float special[] = {0.0f,     -0.0f,     1.0f,    -1.0f,    INFINITY, -INFINITY, NAN,     1e-45f, -1e-45f,
                                1.2e-38f, -1.2e-38f, 1e-20f,  -1e-20f,  88.72f,   88.73f,    89.0f,   -87.3f, -87.4f,
                                -104.0f,  104.0f,    3.4e38f, -3.4e38f, 0.5f,     -0.5f,     0.85f,   -0.85f, 16.0f,
                                -16.0f,   15.0f,     -15.0f,  128.0f,   -128.0f,  8192.0f,   8193.0f, 1e6f,   -1e9f};
#define N_SPECIAL (sizeof special / sizeof *special)

/* Special values, even ones in the function's range, and all magnitudes. */
static void make_inputs(float *x, const function *f) {
  seed = 1;
  for (size_t i = 0; i < N; i++) {
    if (i < N_SPECIAL)
      x[i] = special[i];
    else if (i % 2)
      x[i] = (float)(f->low + (f->high - f->low) * next_number());
    else
      x[i] = (float)((f->low < 0 && i % 4 ? -1 : 1) * exp2(next_number() * 150 - 120) * (1 + next_number()));
  }
}

static double unit_of(double value) {
  int exponent;
  frexp(value, &exponent);
  return ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}

static int is_right(const function *f, float x, float got) {
  const double want = f->exact((double)x);
  if (isnan(want)) return isnan(got);
  if (isinf((float)want) || isinf(got)) { /* the largest numbers may go either way */
    return (double)got == (double)(float)want || fabs(want) > 3.4028230e38;
  }
  if (fabs(want) < 1.1754943e-38 * 1.0001) return fabsf(got) <= 1.1754945e-38f; /* may be 0 */
  return fabs((double)got - want) <= f->ulps * unit_of(want) + f->absolute;
}

static double error_of(const function *f, float x, float got) {
  const double want = f->exact((double)x);
  if (isnan(want) || isinf((float)want) || fabs(want) < 1.2e-38 || fabs((double)x) > 8192) return 0;
  return (fabs((double)got - want) - f->absolute) / unit_of(want);
}

static int check_function(const function *f, const berth__cpu_isa *isa, const float *x, float *y) {
  const berth__op *op = berth__op_find(NULL, f->op);
  const berth_tensor in = {.data = (void *)(uintptr_t)x, .type = BERTH_F32, .rank = 1, .dim = {N}, .stride = {1}};
  const berth_tensor out = {.data = y, .type = BERTH_F32, .rank = 1, .dim = {N}, .stride = {1}};
  berth_op_call call = {.in = &in, .out = &out, .n_in = 1, .n_out = 1, .user = berth__op_user(op)};
  const berth__cpu_kernel *kernel = berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = isa}, op, &call);
  double worst = 0;
  int wrong = 0;
  berth_error err;
  assert_non_null(kernel);
  call.end = kernel->items(&call);
  TEST_OK(kernel->run(&call, &err));
  for (size_t i = 0; i < N; i++) {
    const double error = error_of(f, x[i], y[i]);
    if (error > worst) worst = error;
    if (is_right(f, x[i], y[i])) continue;
    if (wrong++ < 5)
      fprintf(stderr, "%s (%s): %s(%.9g) is %.9g, expected %.9g\n", f->op, isa->name, f->op, (double)x[i], (double)y[i],
              f->exact((double)x[i]));
  }
  printf("%-10s %-9s worst %.2f units in the last place\n", f->op, isa->name, worst);
  return wrong;
}

static void functions_are_right_everywhere(void **state) {
  float *x = malloc(N * sizeof *x), *y = malloc(N * sizeof *y);
  int wrong = 0;
  (void)state;
  assert_true(x != NULL && y != NULL);
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
    make_inputs(x, &functions[k]);
    for (uint32_t i = 0; berth__cpu_isa_at(i) != NULL; i++)
      wrong += check_function(&functions[k], berth__cpu_isa_at(i), x, y);
  }
  free(x);
  free(y);
  assert_int_equal(wrong, 0);
}

/* Bases and exponents of all kinds; where the power is large, the digits of the exponent count. */
static void powers_are_right_everywhere(void **state) {
  enum {
    COUNT = 100003
  };
  float *data = malloc(3 * COUNT * sizeof *data), *x = data, *y = data + COUNT, *z = data + 2 * COUNT;
  const berth__op *op = berth__op_find(NULL, "pow");
  (void)state;
  assert_non_null(data);
  seed = 1;
  for (size_t i = 0; i < COUNT; i++) {
    x[i] = i % 3 ? (float)exp2(next_number() * 40 - 20) : (float)(0.5 + next_number());
    y[i] = i % 5 ? (float)(next_number() * 6 - 3) : (float)(next_number() * 200 - 100);
    if (i < N_SPECIAL * N_SPECIAL) x[i] = special[i % N_SPECIAL], y[i] = special[i / N_SPECIAL];
  }
  for (uint32_t k = 0; berth__cpu_isa_at(k) != NULL; k++) {
    const berth_tensor in[] = {{.data = x, .type = BERTH_F32, .rank = 1, .dim = {COUNT}, .stride = {1}},
                               {.data = y, .type = BERTH_F32, .rank = 1, .dim = {COUNT}, .stride = {1}}};
    const berth_tensor out = {.data = z, .type = BERTH_F32, .rank = 1, .dim = {COUNT}, .stride = {1}};
    const berth_attr fmod_attr = {.name = "fmod", .kind = BERTH_ATTR_INT};
    berth_op_call call = {
        .in = in, .out = &out, .n_in = 2, .n_out = 1, .attrs = &fmod_attr, .n_attrs = 1, .user = berth__op_user(op)};
    const berth__cpu_kernel *kernel =
        berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = berth__cpu_isa_at(k)}, op, &call);
    double worst = 0;
    berth_error err;
    call.end = kernel->items(&call);
    TEST_OK(kernel->run(&call, &err));
    for (size_t i = 0; i < COUNT; i++) {
      const double want = pow((double)x[i], (double)y[i]);
      if (isnan(want) || isinf((float)want) || fabs(want) < 1.18e-38) {
        if (!(isnan(want)          ? isnan(z[i])
              : isinf((float)want) ? (double)z[i] == (double)(float)want || fabs(want) < 3.41e38
                                   : fabsf(z[i]) < 1.19e-38f))
          fail_msg("pow(%.9g, %.9g) is %.9g, expected %.9g", (double)x[i], (double)y[i], (double)z[i], want);
        continue;
      }
      const double error = fabs((double)z[i] - want) / unit_of(want);
      if (error > worst && fabsf(y[i]) < 8) worst = error;
      if (error > 3 + fabs((double)y[i]) / 16)
        fail_msg("pow(%.9g, %.9g) is %.9g, expected %.9g", (double)x[i], (double)y[i], (double)z[i], want);
    }
    printf("%-10s %-9s worst %.2f units in the last place\n", "pow", berth__cpu_isa_at(k)->name, worst);
  }
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(functions_are_right_everywhere),
                                     cmocka_unit_test(powers_are_right_everywhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
