/* Kernels that wait for others by themselves, and two kernels as one. */
#include "run.h"

#define THREADS 8u

/* Adds up what its workgroup has in shared memory, and stores factor times that. */
static berth__kernel *make_sums(berth_context *ctx, uint64_t groups, float factor, bool awaits) {
  berth_error err;
  berth__kernel *k = kernel_of(ctx, "sums", THREADS, groups);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  const uint32_t array = berth__kernel_shared(k, BERTH__NUM_F32, THREADS),
                 local = berth__kernel_local(k, BERTH__NUM_F32, 1);
  const berth__x value = berth__x_load(k, in, flat_index(k)), zero = berth__x_i32(k, 0);
  if (awaits) berth__x_await(k);
  berth__x_shared_store(k, array, berth__x_thread(k), value);
  berth__x_local_store(k, local, zero, berth__x_f32(k, 0));
  berth__x_barrier(k);
  const berth__x i = berth__x_loop_n(k, THREADS);
  berth__x_local_store(k, local, zero,
                       berth__x_add(k, berth__x_local_load(k, local, zero), berth__x_shared_load(k, array, i)));
  berth__x_end(k);
  if (awaits) berth__x_release(k);
  berth__x_store(k, out, flat_index(k), berth__x_mul(k, berth__x_local_load(k, local, zero), berth__x_f32(k, factor)));
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static void expect_sums(const float *in, const float *out, size_t n, float factor) {
  for (size_t i = 0; i < n; i++) {
    float sum = 0;
    for (size_t j = i / THREADS * THREADS; j < (i / THREADS + 1) * THREADS; j++) sum += in[j];
    assert_true(out[i] == factor * sum);
  }
}

/* Three, one after the other: each keeps its workgroups, buffers and arrays, and waits once. */
static void kernels_stand_beside_each_other(void **state) {
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *a = make_sums(ctx, 3, 2, true), *b = make_sums(ctx, 1, 3, false), *c = make_sums(ctx, 2, 5, true);
  berth__kernel *two, *all;
  float in[6 * THREADS], out[6 * THREADS] = {0};
  uint32_t *words[6];
  uint64_t counts[6];
  static const uint32_t first[] = {0, 3, 4, 6};
  (void)state;
  for (uint32_t i = 0; i < 6 * THREADS; i++) in[i] = (float)(i * i % 23);
  assert_true(berth__kernel_fits_beside(a, b, 64));
  assert_false(berth__kernel_fits_beside(a, b, 63));
  TEST_OK(berth__kernel_beside(a, b, &two, &err));
  TEST_OK(berth__kernel_beside(two, c, &all, &err));
  assert_int_equal(all->n_groups, 6);
  assert_int_equal(count_of(all, BERTH__INST_await), 3);
  assert_true(all->buffers[0].is_early && !all->buffers[2].is_early && all->buffers[4].is_early);
  for (uint32_t i = 0; i < 3; i++) {
    words[2 * i] = (uint32_t *)(void *)&in[first[i] * THREADS];
    words[2 * i + 1] = (uint32_t *)(void *)&out[first[i] * THREADS];
    counts[2 * i] = counts[2 * i + 1] = (first[i + 1] - first[i]) * THREADS;
  }
  TEST_OK(run_kernel(all, words, counts, &err));
  expect_sums(in, out, (size_t)3 * THREADS, 2);
  expect_sums(in + 3 * THREADS, out + 3 * THREADS, THREADS, 3);
  expect_sums(in + 4 * THREADS, out + 4 * THREADS, (size_t)2 * THREADS, 5);
  berth__kernel *const kernels[] = {a, b, c, two, all};
  for (size_t i = 0; i < 5; i++) berth__kernel_destroy(kernels[i]);
  berth_context_destroy(ctx);
}

static void others_do_not_fit(void **state) {
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *a = make_sums(ctx, 1, 1, false), *wide = kernel_of(ctx, "wide", 2 * THREADS, 1);
  (void)state;
  berth__x_store(wide, berth__kernel_buffer_of(wide, 0, BERTH_F32), flat_index(wide), berth__x_f32(wide, 1));
  TEST_OK(berth__kernel_finish(wide, &err));
  assert_false(berth__kernel_fits_beside(a, wide, 1024));
  berth__kernel_destroy(a);
  berth__kernel_destroy(wide);
  berth_context_destroy(ctx);
}

/* What a kernel does before it waits: it stores nothing, and it waits once, outside of blocks. */
static void waiting_has_rules(void **state) {
  (void)state;
  for (int mistake = 0; mistake < 3; mistake++) {
    berth_error err;
    berth_context *ctx = test_context();
    berth__kernel *k = kernel_of(ctx, "waits", THREADS, 1);
    const uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_F32);
    if (mistake == 0) berth__x_store(k, out, flat_index(k), berth__x_f32(k, 1));
    if (mistake == 1) berth__x_await(k);
    if (mistake == 2) berth__x_if(k, berth__x_lt(k, berth__x_thread(k), berth__x_i32(k, 2)));
    berth__x_await(k);
    if (mistake == 2) berth__x_end(k);
    berth__x_store(k, out, flat_index(k), berth__x_f32(k, 2));
    assert_int_not_equal(berth__kernel_finish(k, &err), BERTH_OK);
    assert_non_null(strstr(err.message, "await"));
    berth__kernel_destroy(k);
    berth_context_destroy(ctx);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(kernels_stand_beside_each_other),
      cmocka_unit_test(others_do_not_fit),
      cmocka_unit_test(waiting_has_rules),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
