/* The helpers that families share. */
#include <math.h>

#include "base/half.h"
#include "ops/elementwise.h"
#include "ops/exp.h"
#include "support.h"

#define BATCH berth__dim_named(0)
#define SEQ berth__dim_named(1)
#define OPEN BERTH__DIM_UNKNOWN

static void dimensions_are_told_apart(void **state) {
  (void)state;
  assert_true(berth__dim_is_fixed(0));
  assert_false(berth__dim_is_fixed(BATCH));
  assert_true(berth__dim_is_named(BATCH));
  assert_false(berth__dim_is_named(OPEN));
  assert_int_equal(berth__dim_index(SEQ), 1);
}

static void expect_broadcast(int64_t a, int64_t b, int64_t want) {
  berth__shape x = {1, {a}}, y = {2, {7, b}}, out;
  berth_error err;
  TEST_OK(berth__broadcast(&x, &y, &out, &err));
  assert_int_equal(out.rank, 2);
  assert_int_equal(out.dim[0], 7);
  assert_int_equal(out.dim[1], want);
  TEST_OK(berth__broadcast(&y, &x, &out, &err));
  assert_int_equal(out.dim[1], want);
}

static void shapes_broadcast(void **state) {
  berth__shape a = {2, {2, 3}}, b = {1, {4}}, out = {0};
  berth_error err;
  (void)state;
  expect_broadcast(3, 3, 3);
  expect_broadcast(1, 3, 3);
  expect_broadcast(1, 0, 0);
  expect_broadcast(BATCH, BATCH, BATCH);
  expect_broadcast(BATCH, 1, BATCH);
  expect_broadcast(BATCH, 5, 5);
  expect_broadcast(BATCH, SEQ, OPEN);
  expect_broadcast(OPEN, 1, OPEN);
  expect_broadcast(OPEN, 5, 5);
  expect_broadcast(OPEN, BATCH, OPEN);
  test_expect_error(berth__broadcast(&a, &b, &out, &err), BERTH_INVALID, &err,
                    "shapes [2, 3] and [4] do not broadcast: axis -1 has 3 and 4");
  assert_int_equal(out.rank, 0);
}

static void expect_same(int64_t a, int64_t b, int64_t want) {
  int64_t out;
  berth_error err;
  TEST_OK(berth__same_dim(a, b, "rows", &out, &err));
  assert_int_equal(out, want);
}

static void equal_dimensions_give_the_better_known(void **state) {
  int64_t out;
  berth_error err;
  (void)state;
  expect_same(3, 3, 3);
  expect_same(3, BATCH, 3);
  expect_same(BATCH, 3, 3);
  expect_same(OPEN, BATCH, BATCH);
  expect_same(BATCH, OPEN, BATCH);
  expect_same(OPEN, OPEN, OPEN);
  expect_same(BATCH, SEQ, BATCH);
  test_expect_error(berth__same_dim(3, 4, "rows", &out, &err), BERTH_INVALID, &err, "rows: extents 3 and 4 differ");
}

static void dimensions_add_and_multiply(void **state) {
  int64_t out;
  berth_error err;
  (void)state;
  TEST_OK(berth__dim_add(2, 3, &out, &err)), assert_int_equal(out, 5);
  TEST_OK(berth__dim_add(0, BATCH, &out, &err)), assert_int_equal(out, BATCH);
  TEST_OK(berth__dim_add(BATCH, 0, &out, &err)), assert_int_equal(out, BATCH);
  TEST_OK(berth__dim_add(BATCH, 1, &out, &err)), assert_int_equal(out, OPEN);
  TEST_OK(berth__dim_mul(2, 3, &out, &err)), assert_int_equal(out, 6);
  TEST_OK(berth__dim_mul(1, SEQ, &out, &err)), assert_int_equal(out, SEQ);
  TEST_OK(berth__dim_mul(SEQ, 1, &out, &err)), assert_int_equal(out, SEQ);
  TEST_OK(berth__dim_mul(SEQ, 0, &out, &err)), assert_int_equal(out, 0);
  TEST_OK(berth__dim_mul(0, OPEN, &out, &err)), assert_int_equal(out, 0);
  TEST_OK(berth__dim_mul(BATCH, SEQ, &out, &err)), assert_int_equal(out, OPEN);
  test_expect_error(berth__dim_add(INT64_MAX, 1, &out, &err), BERTH_INVALID, &err, "too large");
  test_expect_error(berth__dim_mul(INT64_MAX, 2, &out, &err), BERTH_INVALID, &err, "too large");
}

static void axes_are_made_positive(void **state) {
  uint32_t axis;
  berth_error err;
  (void)state;
  TEST_OK(berth__want_axis(-3, 3, &axis, &err)), assert_int_equal(axis, 0);
  TEST_OK(berth__want_axis(2, 3, &axis, &err)), assert_int_equal(axis, 2);
  test_expect_error(berth__want_axis(3, 3, &axis, &err), BERTH_INVALID, &err, "expected -3 to 2");
  test_expect_error(berth__want_axis(-4, 3, &axis, &err), BERTH_INVALID, &err, "axis -4");
  test_expect_error(berth__want_axis(INT64_MIN, 3, &axis, &err), BERTH_INVALID, &err, "out of range");
  test_expect_error(berth__want_axis(0, 0, &axis, &err), BERTH_INVALID, &err, "scalar");
}

static void elements_are_counted(void **state) {
  berth__shape scalar = {0}, box = {3, {2, 3, 4}}, empty = {2, {0, 5}}, open = {2, {2, BATCH}};
  berth__shape huge = {3, {INT64_C(1) << 40, INT64_C(1) << 40, 0}};
  int64_t n = -1;
  (void)state;
  assert_true(berth__shape_count(&scalar, &n)), assert_int_equal(n, 1);
  assert_true(berth__shape_count(&box, &n)), assert_int_equal(n, 24);
  assert_true(berth__shape_count(&empty, &n)), assert_int_equal(n, 0);
  assert_false(berth__shape_count(&open, &n));
  assert_false(berth__shape_count(&huge, &n)); /* its strides would not fit */
}

static void shapes_print_within_their_buffer(void **state) {
  char text[BERTH__SHAPE_TEXT];
  berth__shape shape = {3, {2, BATCH, OPEN}}, largest = {8, {0}};
  (void)state;
  assert_string_equal(berth__shape_text(&shape, text), "[2, ?, ?]");
  for (int i = 0; i < 8; i++) largest.dim[i] = INT64_MAX;
  assert_int_equal(strlen(berth__shape_text(&largest, text)), 8 * 19 + 7 * 2 + 2);
}

static void contiguity_looks_at_what_is_followed(void **state) {
  berth_tensor t = {.type = BERTH_F32, .rank = 3, .dim = {2, 1, 4}, .stride = {4, 99, 1}};
  (void)state;
  assert_true(berth__is_contiguous(&t));
  t.stride[0] = 5;
  assert_false(berth__is_contiguous(&t));
  t.dim[2] = 0;
  assert_true(berth__is_contiguous(&t));
}

/* Runs visit the same places as a walk, in order, whatever the strides. */
static void runs_agree_with_walks(void **state) {
  const int64_t dim[] = {2, 3, 1, 4}, contiguous[] = {12, 4, 4, 1}, row[] = {0, 0, 0, 1}, turned[] = {1, 2, 0, 6};
  const int64_t *strides[] = {contiguous, row, turned};
  (void)state;
  for (int64_t begin = 0; begin <= 24; begin++)
    for (int64_t end = begin; end <= 24; end++) {
      berth__runs runs;
      berth__walk walk;
      int64_t seen = begin;
      berth__walk_start(&walk, 4, dim, 3, strides, begin);
      berth__runs_shape(&runs, 4, dim, 3, strides);
      for (berth__runs_start(&runs, begin, end); berth__runs_next(&runs);)
        for (int64_t i = 0; i < runs.count; i++, seen++, berth__walk_next(&walk))
          for (int k = 0; k < 3; k++) assert_int_equal(runs.index[k] + i * runs.step[k], walk.index[k]);
      assert_int_equal(seen, end);
    }
}

static void contiguous_tensors_are_one_run(void **state) {
  const int64_t dim[] = {2, 3, 4}, contiguous[] = {12, 4, 1};
  const int64_t *strides[] = {contiguous, contiguous};
  berth__runs runs;
  (void)state;
  berth__runs_shape(&runs, 3, dim, 2, strides);
  berth__runs_start(&runs, 0, 24);
  assert_true(berth__runs_next(&runs));
  assert_int_equal(runs.count, 24);
  assert_false(berth__runs_next(&runs));
}

static void single_elements_convert(void **state) {
  uint8_t bytes[8];
  berth_tensor t = {.data = bytes, .type = BERTH_I8};
  (void)state;
  berth__store_f64(&t, 0, -200.7), assert_int_equal(berth__load_i64(&t, 0), -128);
  berth__store_f64(&t, 0, -3.9), assert_int_equal(berth__load_i64(&t, 0), -3);
  berth__store_f64(&t, 0, NAN), assert_int_equal(berth__load_i64(&t, 0), 0);
  berth__store_i64(&t, 3, 300), assert_int_equal(berth__load_i64(&t, 3), 44);
  t.type = BERTH_BOOL;
  berth__store_f64(&t, 1, 0.25), assert_int_equal(bytes[1], 1);
  bytes[1] = 7, assert_true(berth__load_f64(&t, 1) == 1.0);
  t.type = BERTH_F16;
  berth__store_f64(&t, 2, 0.1), assert_true(berth__load_f64(&t, 2) == (double)berth__f16_to_f32(0x2e66));
  assert_int_equal(berth__load_i64(&t, 2), 0);
  t.type = BERTH_F64;
  berth__store_f64(&t, 0, 1e300), assert_int_equal(berth__load_i64(&t, 0), INT64_MAX);
  t.type = BERTH_U32;
  berth__store_i64(&t, 0, -1), assert_true(berth__load_f64(&t, 0) == 4294967295.0);
}

/* Every 2,111th float, and the ends. */
static void exp_is_within_two_units(void **state) {
  (void)state;
  assert_true(berth__exp_f32(0.0f) == 1.0f);
  assert_true(berth__exp_f32(INFINITY) == INFINITY);
  assert_true(berth__exp_f32(-INFINITY) == 0.0f);
  assert_true(isnan(berth__exp_f32(NAN)) && isnan(berth__exp_f32(-NAN)));
  for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 2111) {
    uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    if (isnan(x)) continue;
    double want = exp((double)x), got = (double)berth__exp_f32(x);
    if (isinf((float)want))
      assert_true(isinf(got));
    else
      assert_true(fabs(got - want) <= 0x1p-126 + want * 0x1p-22);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dimensions_are_told_apart),
      cmocka_unit_test(shapes_broadcast),
      cmocka_unit_test(equal_dimensions_give_the_better_known),
      cmocka_unit_test(dimensions_add_and_multiply),
      cmocka_unit_test(axes_are_made_positive),
      cmocka_unit_test(elements_are_counted),
      cmocka_unit_test(shapes_print_within_their_buffer),
      cmocka_unit_test(contiguity_looks_at_what_is_followed),
      cmocka_unit_test(runs_agree_with_walks),
      cmocka_unit_test(contiguous_tensors_are_one_run),
      cmocka_unit_test(single_elements_convert),
      cmocka_unit_test(exp_is_within_two_units),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
