/* Products whose rows are rounded to bytes: every 32 elements share a scale. */
#include <math.h>
#include <stdlib.h>

#include "packed.h"
#include "run.h"

#define GROUP 32
#define DEEP 1280 /* more than the threads of a workgroup round at once, and not a multiple */
#define FEW 13    /* columns of that depth */

static const berth__kernel_limits early = {.group_size = 256,
                                           .lanes = 32,
                                           .exchanges = true,
                                           .begins_early = true,
                                           .has_dot4 = true,
                                           .shared_bytes = 49152,
                                           .shares_well = true};
static const berth__kernel_limits late = {
    .group_size = 128, .lanes = 8, .exchanges = true, .has_dot4 = true, .shared_bytes = 32768, .shares_well = true};

typedef struct rounded {
  float x[MOST * WIDE];    /* what the bytes stand for */
  float step[MOST * WIDE]; /* the scale of each element's group */
} rounded;

/* As docs/ops.md defines it. */
static void round_rows(const packed_data *d, size_t count, rounded *out) {
  for (size_t first = 0; first < count; first += GROUP) {
    float most = 0;
    for (size_t i = first; i < first + GROUP; i++) most = fmaxf(most, fabsf(d->x[i]));
    const float scale = most / 127.0f, by = most > 0 ? 127.0f / most : 0;
    for (size_t i = first; i < first + GROUP; i++) {
      out->x[i] = scale * rintf(d->x[i] * by);
      out->step[i] = scale;
    }
  }
}

/* Sums of the rounded elements are exact but for f32 sums; the rounding changes each by half a step at most. */
static void compare(const packed_data *d, const rounded *r, berth_type type, size_t rows, size_t columns,
                    size_t depth) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < columns; j++) {
      double sum = 0, most = 0, exact = 0, bound = 0;
      for (size_t k = 0; k < depth; k++) {
        const double weight = (double)d->weights[j * depth + k], x = (double)r->x[i * depth + k];
        sum += x * weight;
        most += fabs(x * weight);
        exact += (double)d->x[i * depth + k] * weight;
        bound += (double)r->step[i * depth + k] / 2 * fabs(weight);
      }
      const double got = (double)d->result[i * columns + j];
      if (!(fabs(sum - got) <= 2e-6 * most) || !(fabs(exact - got) <= bound + 2e-6 * most))
        fail_msg("%s, row %zu, column %zu: %g, expected %g, and %g of f32 up to %g", berth_type_name(type), i, j, got,
                 sum, exact, bound);
    }
}

static bool has_bytes(berth_type type) {
  return berth_type_storage(type).elements > 1 && berth__l_blocks_has_bytes(type);
}

static void check(packed_data *d, berth_type type, uint32_t rows, uint32_t columns, uint32_t depth, uint32_t before,
                  const berth__kernel_limits *with) {
  berth_context *ctx = test_context();
  berth__lowering l;
  rounded *r = calloc(1, sizeof *r);
  assert_non_null(r);
  for (size_t i = 0; i < MOST * MANY; i++) d->result[i] = NAN;
  for (size_t i = GROUP; i < 2 * GROUP; i++) d->x[i] = 0; /* a group of zeros */
  round_rows(d, (size_t)rows * depth, r);
  packed_lower_of(&l, type, rows, columns, depth, before, with, ctx);
  assert_int_equal(count_of(l.kernels[0], BERTH__INST_dot4) != 0, has_bytes(type));
  packed_run(d, &l, type, before);
  if (has_bytes(type)) compare(d, r, type, rows, columns, depth);
  free(r);
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

static void each_type(void (*with)(packed_data *d, berth_type type)) {
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  for (size_t t = 0; t < N_PACKED; t++) {
    packed_fill(d, packed_types[t], 0);
    with(d, packed_types[t]);
  }
  free(d);
}

static void check_forms(packed_data *d, berth_type type) {
  for (uint32_t rows = 1; rows <= 4; rows++) check(d, type, rows, MANY, WIDE, 0, rows % 2 == 0 ? &early : &late);
  check(d, type, 1, MANY, WIDE, 0, &early);
  check(d, type, 2, FEW, DEEP, 0, &early);
  if (berth_type_storage(type).elements == GROUP) check(d, type, 4, MANY, 2 * GROUP, 0, &early);
  check(d, type, 3, 1, 256, 0, &early); /* where fewer threads than a subgroup would do */
}

static void rows_are_rounded_as_they_are_on_a_cpu(void **state) {
  (void)state;
  each_type(check_forms);
}

/* A workgroup goes on with further columns, and a thread has two of them. */
static void check_loops(packed_data *d, berth_type type) {
  static const berth__tile_form form = {.thread_rows = 2, .thread_columns = 2, .group_rows = 4, .group_columns = 8};
  if (!has_bytes(type)) return;
  packed_form = &form;
  packed_groups = 2;
  packed_in_bytes = true;
  check(d, type, 2, MANY, WIDE, 0, &early);
  packed_form = NULL;
  packed_in_bytes = false;
}

static void workgroups_go_on_with_further_columns(void **state) {
  (void)state;
  each_type(check_loops);
}

static void check_shifted(packed_data *d, berth_type type) {
  if (!has_bytes(type)) return;
  for (uint32_t before = 1; before < 4; before++) {
    packed_fill(d, type, before);
    check(d, type, 1, MANY, WIDE, before, &early);
  }
}

static void weights_may_begin_anywhere(void **state) {
  (void)state;
  each_type(check_shifted);
}

static void check_odd(packed_data *d, berth_type type) {
  static const float odd[] = {NAN, INFINITY, -INFINITY};
  if (!has_bytes(type)) return;
  for (size_t o = 0; o < 3; o++) {
    berth_context *ctx = test_context();
    berth__lowering l;
    packed_fill(d, type, 0);
    d->x[WIDE + 77] = odd[o];
    packed_lower(&l, type, 2, WIDE, 0, &early, ctx);
    packed_run(d, &l, type, 0);
    for (size_t j = 0; j < MANY; j++) {
      assert_true(isfinite(d->result[j]));
      assert_true(d->result[MANY + j] != d->result[MANY + j]);
    }
    berth__lowering_free(&l);
    berth_context_destroy(ctx);
  }
}

static void a_row_that_has_nan_or_infinity_gives_nan(void **state) {
  (void)state;
  each_type(check_odd);
}

/* Without the instruction, without room for the rows, and where lanes cannot exchange: f32, as before. */
static void rows_stay_as_they_are_elsewhere(void **state) {
  berth__kernel_limits others[3] = {early, early, early};
  berth_context *ctx = test_context();
  (void)state;
  others[0].has_dot4 = false;
  others[1].exchanges = false;
  others[2].shared_bytes = 8192;
  for (size_t i = 0; i < 3; i++) {
    berth__lowering l;
    packed_lower_of(&l, BERTH_Q4_K, 4, MANY, 4096, 0, &others[i], ctx);
    assert_int_equal(count_of(l.kernels[0], BERTH__INST_dot4), 0);
    berth__lowering_free(&l);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_rounded_as_they_are_on_a_cpu), cmocka_unit_test(workgroups_go_on_with_further_columns),
      cmocka_unit_test(weights_may_begin_anywhere), cmocka_unit_test(a_row_that_has_nan_or_infinity_gives_nan),
      cmocka_unit_test(rows_stay_as_they_are_elsewhere)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
