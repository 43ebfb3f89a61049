/* Kernels while they are made: what is shared, what is taken out, and what is refused. */
#include <stdlib.h>

#include "run.h"

/* A kernel with one buffer of f32. */
static berth__kernel *with_buffer(berth_context *ctx) {
  berth__kernel *k = kernel_of(ctx, "test", 4, 8);
  assert_int_equal(berth__kernel_buffer_of(k, 7, BERTH_F32), 0);
  return k;
}

static berth__x square(berth__kernel *k, berth__x x) { return berth__x_mul(k, x, x); }

static void equal_results_are_made_once_where_they_are_visible(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth__x index = flat_index(k), outer = square(k, index);
  assert_int_equal(square(k, index), outer);
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, 9)));
  assert_int_equal(square(k, index), outer);
  berth__x inner = berth__x_add(k, outer, index);
  assert_int_equal(berth__x_add(k, index, outer), inner);
  berth__x_else(k);
  assert_int_not_equal(berth__x_add(k, outer, index), inner);
  berth__x_end(k);
  assert_int_not_equal(berth__x_add(k, outer, index), inner);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void reads_are_never_shared(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth__x index = flat_index(k), first = berth__x_load(k, 0, index);
  assert_int_not_equal(berth__x_load(k, 0, index), first);
  berth__x variable = berth__x_variable(k, first), got = berth__x_get(k, variable);
  assert_int_not_equal(berth__x_get(k, variable), got);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void a_table_that_grows_forgets_nothing(void **state) {
  (void)state;
  enum {
    MANY = 20000
  };
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth__x *made = malloc(MANY * sizeof *made), f = berth__x_load(k, 0, flat_index(k));
  assert_non_null(made);
  for (int i = 0; i < MANY; ++i) made[i] = berth__x_add(k, f, berth__x_f32(k, (float)i + 1));
  size_t before = k->n_insts;
  for (int i = 0; i < MANY; ++i) assert_int_equal(berth__x_add(k, f, berth__x_f32(k, (float)i + 1)), made[i]);
  assert_int_equal(k->n_insts, before);
  free(made);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void what_nobody_needs_is_taken_out(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  uint32_t unused = berth__kernel_buffer_of(k, 8, BERTH_F32);
  berth__x index = flat_index(k);
  square(k, berth__x_load(k, unused, index));
  berth__x nowhere = berth__x_variable(k, berth__x_f32(k, 0));
  berth__x_loop_n(k, 100); /* sets what nobody gets */
  berth__x_set(k, nowhere, berth__x_add(k, berth__x_get(k, nowhere), berth__x_f32(k, 1)));
  berth__x_end(k);
  berth__x_store(k, 0, index, berth__x_f32(k, 3));
  TEST_OK(berth__kernel_finish(k, &err));
  assert_int_equal(count_of(k, BERTH__INST_load), 0);
  assert_int_equal(count_of(k, BERTH__INST_loop), 0);
  assert_int_equal(count_of(k, BERTH__INST_end), 0);
  assert_int_equal(count_of(k, BERTH__INST_variable), 0);
  assert_int_equal(count_of(k, BERTH__INST_store), 1);
  assert_false(k->buffers[unused].is_read);
  assert_true(k->buffers[0].is_written && !k->buffers[0].is_read);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* What a loop sets late, it may get early in its next round. */
static void what_goes_round_in_a_loop_stays(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth__x a = berth__x_variable(k, berth__x_f32(k, 1)), b = berth__x_variable(k, berth__x_f32(k, 1));
  berth__x_loop_n(k, 5);
  berth__x_set(k, a, berth__x_add(k, berth__x_get(k, a), berth__x_get(k, b)));
  berth__x_set(k, b, berth__x_get(k, a));
  berth__x_end(k);
  berth__x_store(k, 0, flat_index(k), berth__x_get(k, a));
  berth__lane words[32];
  finish_and_run(k, &words[0].u, 32);
  for (int i = 0; i < 32; ++i) assert_true(words[i].f == 32);
  berth_context_destroy(ctx);
}

static void loops_that_run_once_or_never_are_none(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth_error err;
  uint32_t never = berth__kernel_buffer_of(k, 8, BERTH_F32);
  berth__x index = flat_index(k), once = berth__x_loop(k, berth__x_i32(k, 3), berth__x_i32(k, 4), 1);
  assert_true(berth__x_is_constant(k, once, NULL));
  berth__x threads = berth__x_loop(k, berth__x_thread(k), berth__x_i32(k, 4), 4);
  assert_int_equal(threads, berth__x_thread(k));
  berth__x_store(k, 0, index, berth__x_convert(k, BERTH__NUM_F32, berth__x_add(k, once, threads)));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_loop_n(k, 0);
  berth__x_loop_n(k, 10);
  berth__x_store(k, never, index, berth__x_f32(k, 1));
  berth__x_break(k);
  berth__x_end(k);
  berth__x_break(k);
  berth__x_end(k);
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, 32)));
  berth__x_store(k, 0, index, berth__x_load(k, 0, index));
  berth__x_else(k);
  berth__x_store(k, never, index, berth__x_f32(k, 1));
  berth__x_end(k);
  TEST_OK(berth__kernel_finish(k, &err));
  for (size_t i = 0; i < k->n_insts; ++i) {
    assert_int_not_equal(berth__inst_kind_of((berth__inst_code)k->insts[i].code), BERTH__INST_BLOCK);
    assert_int_equal(k->insts[i].depth, 0);
  }
  assert_int_equal(count_of(k, BERTH__INST_store), 2);
  assert_false(k->buffers[never].is_written);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void a_loop_that_runs_once_and_is_left_stays_a_loop(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx);
  berth__x index = flat_index(k), sum = berth__x_variable(k, berth__x_f32(k, 0));
  berth__x_loop_n(k, 3);
  berth__x_loop_n(k, 1);
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, 5)));
  berth__x_break(k);
  berth__x_end(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_f32(k, 1)));
  berth__x_end(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_f32(k, 10)));
  berth__x_end(k);
  berth__x_store(k, 0, index, berth__x_get(k, sum));
  berth__lane words[32];
  finish_and_run(k, &words[0].u, 32);
  for (int i = 0; i < 32; ++i) assert_true(words[i].f == (i < 5 ? 30 : 33));
  berth_context_destroy(ctx);
}

static berth__kernel *sample(berth_context *ctx, uint32_t operand, float factor, uint32_t n_groups) {
  berth_error err;
  berth__kernel *k = kernel_of(ctx, "sample", 64, n_groups);
  uint32_t buffer = berth__kernel_buffer_of(k, operand, BERTH_F32);
  berth__x index = flat_index(k);
  berth__x_store(k, buffer, index, berth__x_mul(k, berth__x_load(k, buffer, index), berth__x_f32(k, factor)));
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static void kernels_that_do_the_same_are_equal(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k[] = {sample(ctx, 0, 2, 8), sample(ctx, 5, 2, 8), sample(ctx, 0, 3, 8), sample(ctx, 0, 2, 9)};
  assert_true(berth__kernel_equal(k[0], k[1]));
  assert_true(berth__kernel_hash(k[0]) == berth__kernel_hash(k[1]));
  for (int i = 2; i < 4; ++i) {
    assert_false(berth__kernel_equal(k[0], k[i]));
    assert_true(berth__kernel_hash(k[0]) != berth__kernel_hash(k[i]));
  }
  for (int i = 0; i < 4; ++i) berth__kernel_destroy(k[i]);
  berth_context_destroy(ctx);
}

static void work_is_counted(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = with_buffer(ctx); /* 32 threads */
  berth__x index = flat_index(k), sum = berth__x_variable(k, berth__x_load(k, 0, index));
  berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, 10), 4);
  berth__x x = berth__x_get(k, sum);
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, x, x, x));
  berth__x_end(k);
  berth__x_store(k, 0, index, berth__x1(k, BERTH__INST_exp, berth__x_get(k, sum)));
  TEST_OK(berth__kernel_finish(k, &err));
  assert_true(k->flops == 32 * (3 * 2 + 1));
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void buffers_are_one_an_operand(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__kernel *k = kernel_of(ctx, "buffers", 1, 1);
  for (uint32_t i = 0; i < BERTH__KERNEL_BUFFERS; ++i) {
    assert_int_equal(berth__kernel_buffer_of(k, 100 + i, BERTH_I32), i);
    assert_int_equal(berth__kernel_buffer_of(k, 100 + i, BERTH_I32), i);
  }
  berth__kernel_buffer_of(k, 7, BERTH_I32);
  test_expect_error(berth__kernel_finish(k, &err), BERTH_UNSUPPORTED, &err, "buffers");
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* ---- Mistakes ---- */

static void open_block(berth__kernel *k) { berth__x_loop_n(k, 4); }
static void end_nothing(berth__kernel *k) { berth__x_end(k); }
static void else_of_a_loop(berth__kernel *k) {
  berth__x_loop_n(k, 4);
  berth__x_else(k);
}
static void break_outside(berth__kernel *k) { berth__x_break(k); }
static void mixed_types(berth__kernel *k) { berth__x_add(k, berth__x_i32(k, 1), berth__x_f32(k, 1)); }
static void wrong_type(berth__kernel *k) { berth__x1(k, BERTH__INST_exp, berth__x_i32(k, 1)); }
static void ordered_bools(berth__kernel *k) { berth__x_lt(k, berth__x_bool(k, true), berth__x_bool(k, false)); }
static void wrong_count(berth__kernel *k) { berth__x1(k, BERTH__INST_add, berth__x_i32(k, 1)); }
static void no_such_result(berth__kernel *k) { berth__x_add(k, 1000, 1000); }
static void out_of_sight(berth__kernel *k) {
  berth__x i = berth__x_loop_n(k, 4);
  berth__x_end(k);
  berth__x_add(k, i, i);
}
static void variable_as_number(berth__kernel *k) {
  berth__x variable = berth__x_variable(k, berth__x_i32(k, 1));
  berth__x_add(k, variable, variable);
}
static void get_of_a_number(berth__kernel *k) { berth__x_get(k, berth__x_i32(k, 1)); }
static void set_of_another_type(berth__kernel *k) {
  berth__x_set(k, berth__x_variable(k, berth__x_i32(k, 1)), berth__x_f32(k, 1));
}
static void store_of_another_type(berth__kernel *k) { berth__x_store(k, 0, berth__x_i32(k, 0), berth__x_i32(k, 0)); }
static void index_of_another_type(berth__kernel *k) { berth__x_load(k, 0, berth__x_f32(k, 0)); }
static void no_such_buffer(berth__kernel *k) { berth__x_load(k, 3, berth__x_i32(k, 0)); }
static void no_such_array(berth__kernel *k) { berth__x_shared_load(k, 0, berth__x_i32(k, 0)); }
static void number_too_large(berth__kernel *k) { berth__x_i32(k, INT64_C(1) << 31); }
static void step_back(berth__kernel *k) { berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, 9), -1); }
static void if_of_a_number(berth__kernel *k) { berth__x_if(k, berth__x_i32(k, 1)); }
static void bits_of_a_bool(berth__kernel *k) { berth__x_bits(k, BERTH__NUM_I32, berth__x_bool(k, true)); }
static void fifth_byte(berth__kernel *k) { berth__x_byte(k, berth__x_u32(k, 1), 4); }
static void byte_of_a_float(berth__kernel *k) { berth__x_byte(k, berth__x_f32(k, 1), 0); }
static void byte_by_number(berth__kernel *k) { berth__x2(k, BERTH__INST_byte, berth__x_u32(k, 1), berth__x_u32(k, 1)); }
static void select_by_number(berth__kernel *k) {
  berth__x one = berth__x_i32(k, 1);
  berth__x_select(k, one, one, one);
}
static void too_deep(berth__kernel *k) {
  for (int i = 0; i < 100; ++i) berth__x_loop_n(k, 2);
}
static void too_many_arrays(berth__kernel *k) {
  for (int i = 0; i < 20; ++i) berth__kernel_local(k, BERTH__NUM_F32, 4);
}

static void mistakes_are_told(void **state) {
  (void)state;
  static const struct {
    void (*make)(berth__kernel *k);
    const char *message;
  } mistakes[] = {
      {open_block, "block is open"},
      {end_nothing, "no block"},
      {else_of_a_loop, "no if"},
      {break_outside, "no loop"},
      {mixed_types, "different types"},
      {wrong_type, "(at `exp`)"},
      {ordered_bools, "type"},
      {wrong_count, "operands"},
      {no_such_result, "visible"},
      {out_of_sight, "visible"},
      {variable_as_number, "variables"},
      {get_of_a_number, "variables"},
      {set_of_another_type, "type"},
      {store_of_another_type, "type"},
      {index_of_another_type, "index"},
      {no_such_buffer, "no such buffer"},
      {no_such_array, "no such buffer"},
      {number_too_large, "32 bits"},
      {step_back, "step"},
      {if_of_a_number, "bool"},
      {bits_of_a_bool, "bool"},
      {fifth_byte, "four bytes"},
      {byte_of_a_float, "four bytes"},
      {byte_by_number, "operands"},
      {select_by_number, "bool"},
      {too_deep, "deep"},
      {too_many_arrays, "arrays"},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
    berth_error err;
    berth__kernel *k = with_buffer(ctx);
    mistakes[i].make(k);
    berth__x_store(k, 0, berth__x_i32(k, 0), berth__x_f32(k, 0)); /* nothing is added any more */
    test_expect_error(berth__kernel_finish(k, &err), BERTH_INTERNAL, &err, mistakes[i].message);
    assert_non_null(strstr(err.message, "kernel test"));
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

static void a_finished_kernel_takes_nothing_more(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__kernel *k = sample(ctx, 0, 2, 8);
  size_t n = k->n_insts;
  assert_int_equal(berth__x_i32(k, 4), BERTH__X_NONE);
  berth__x_barrier(k);
  assert_int_equal(k->n_insts, n);
  test_expect_error(berth__kernel_finish(k, &err), BERTH_INTERNAL, &err, "finished before");
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void no_kernel_is_taken_everywhere(void **state) {
  (void)state;
  berth_error err;
  berth__kernel *k = NULL;
  berth__kernel_destroy(k);
  berth__kernel_buffer_of(k, 0, BERTH_F32);
  berth__kernel_shared(k, BERTH__NUM_F32, 4);
  berth__kernel_local(k, BERTH__NUM_F32, 4);
  berth__x index = berth__x_add(k, berth__x_group(k), berth__x_thread(k));
  assert_int_equal(index, BERTH__X_NONE);
  berth__x_store(k, 0, index, berth__x_load(k, 0, index));
  berth__x_shared_store(k, 0, index, berth__x_shared_load(k, 0, index));
  berth__x_local_store(k, 0, index, berth__x_local_load(k, 0, index));
  berth__x_set(k, berth__x_variable(k, index), berth__x_get(k, index));
  berth__x_select(k, berth__x_is_nan(k, index), berth__x_f32(k, 1), berth__x1(k, BERTH__INST_exp, index));
  berth__x_bits(k, BERTH__NUM_F32, berth__x_convert(k, BERTH__NUM_F32, berth__x_u32(k, 1)));
  berth__x_if(k, berth__x_bool(k, true));
  berth__x_else(k);
  berth__x_loop_unrolled(k, index, berth__x_affine(k, index, 2, 3), 1);
  berth__x_break(k);
  berth__x_barrier(k);
  berth__x_end(k);
  test_expect_error(berth__kernel_finish(k, &err), BERTH_NOMEM, &err, NULL);
}

static berth_status make_with_blocks(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__kernel *k = NULL;
  berth_status status = berth__kernel_create(ctx, "memory", &k, err);
  if (status != BERTH_OK) return status;
  k->group_size = 8;
  k->n_groups = 8;
  uint32_t buffer = berth__kernel_buffer_of(k, 0, BERTH_F32);
  berth__x index = flat_index(k), sum = berth__x_variable(k, berth__x_f32(k, 0));
  berth__x i = berth__x_loop_n(k, 40);
  berth__x_if(k, berth__x_lt(k, i, index));
  for (int64_t n = 1; n < 80; ++n) {
    berth__x place = berth__x_rem(k, berth__x_affine(k, i, n, n), berth__x_i32(k, 64));
    berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_load(k, buffer, place)));
  }
  berth__x_end(k);
  berth__x_end(k);
  berth__x_store(k, buffer, index, berth__x_get(k, sum));
  status = berth__kernel_finish(k, err);
  berth__kernel_destroy(k);
  return status;
}

static void memory_that_runs_out_is_told_at_the_end(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(make_with_blocks, NULL) > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(equal_results_are_made_once_where_they_are_visible),
      cmocka_unit_test(reads_are_never_shared),
      cmocka_unit_test(a_table_that_grows_forgets_nothing),
      cmocka_unit_test(what_nobody_needs_is_taken_out),
      cmocka_unit_test(what_goes_round_in_a_loop_stays),
      cmocka_unit_test(loops_that_run_once_or_never_are_none),
      cmocka_unit_test(a_loop_that_runs_once_and_is_left_stays_a_loop),
      cmocka_unit_test(kernels_that_do_the_same_are_equal),
      cmocka_unit_test(work_is_counted),
      cmocka_unit_test(buffers_are_one_an_operand),
      cmocka_unit_test(mistakes_are_told),
      cmocka_unit_test(a_finished_kernel_takes_nothing_more),
      cmocka_unit_test(no_kernel_is_taken_everywhere),
      cmocka_unit_test(memory_that_runs_out_is_told_at_the_end),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
