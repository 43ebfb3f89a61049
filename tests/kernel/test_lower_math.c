/* Functions of f32 in the kernel language against C's in f64, over all of the floats: steps through their bits, so that
 * every exponent is met. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "functions.h"
#include "kernel/lower/math.h"
#include "run.h"

#define GROUP 64u

static void check_function(berth_context *ctx, const function *f) {
  float *x = malloc(2 * ARGUMENTS * sizeof *x), *y = x + ARGUMENTS;
  for (uint32_t i = 0; i < ARGUMENTS; i++) x[i] = argument_at(i);
  berth__kernel *k = kernel_of(ctx, f->name, GROUP, ARGUMENTS / GROUP);
  const berth__x i = flat_index(k);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  berth__x_store(k, out, i, berth__l_unary(k, f->op, berth__x_load(k, in, i)));
  berth_error err;
  uint32_t *words[] = {(uint32_t *)x, (uint32_t *)y};
  TEST_OK(berth__kernel_finish(k, &err));
  TEST_OK(run_kernel(k, words, (uint64_t[]){ARGUMENTS, ARGUMENTS}, &err));
  berth__kernel_destroy(k);
  uint32_t n_wrong = 0;
  for (uint32_t at = 0; at < ARGUMENTS; at++) {
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
  for (size_t i = 0; i < N_FUNCTIONS; i++) check_function(ctx, &functions[i]);
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
  const uint32_t from = berth__kernel_buffer_of(k, 0, BERTH_F32), to = berth__kernel_buffer_of(k, 1, BERTH_F32);
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
  for (uint32_t i = 0; i < n; i++) x[i] = argument_at(i % ARGUMENTS), y[i] = argument_at((i * 131 + 7) % ARGUMENTS);
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
