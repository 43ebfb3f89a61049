/* The form for people. */
#include "run.h"

/* A kernel that has something of everything. */
static berth__kernel *sample(berth_context *ctx) {
  berth_error err;
  berth__kernel *k = kernel_of(ctx, "sums", 64, 10);
  uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  uint32_t shared = berth__kernel_shared(k, BERTH__NUM_F32, 64), local = berth__kernel_local(k, BERTH__NUM_I32, 4);
  berth__x index = flat_index(k), zero = berth__x_i32(k, 0), sum = berth__x_variable(k, berth__x_f32(k, 0));
  berth__x i = berth__x_loop(k, zero, berth__x_i32(k, 64), 4);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_load(k, in, berth__x_add(k, index, i))));
  berth__x j = berth__x_loop_unrolled(k, zero, berth__x_i32(k, 4), 1);
  berth__x_local_store(k, local, j, berth__x_mul(k, berth__x_add(k, i, j), index));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_shared_store(k, shared, berth__x_thread(k), berth__x1(k, BERTH__INST_exp, berth__x_get(k, sum)));
  berth__x_barrier(k);
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, 600)));
  berth__x old = berth__x_load(k, out, index), bits = berth__x_bits(k, BERTH__NUM_U32, old);
  berth__x_store(k, out, index, berth__x_shared_load(k, shared, berth__x_i32(k, 3)));
  berth__x positive = berth__x_lt(k, bits, berth__x_u32(k, 1u << 31));
  berth__x_store(k, out, zero, berth__x_select(k, positive, old, berth__x_f32(k, -0.25f)));
  berth__x_else(k);
  berth__x_store(k, out, zero, berth__x_convert(k, BERTH__NUM_F32, berth__x_local_load(k, local, zero)));
  berth__x_store_max(k, berth__kernel_buffer_of(k, 2, BERTH_U32), index, berth__x_u32(k, 7));
  berth__x_end(k);
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static const char form[] =
    "kernel sums: 10 x 64 threads\n"
    "  b0: f32 read\n"
    "  b1: f32 read written\n"
    "  b2: u32 read written\n"
    "  s0: f32[64] shared\n"
    "  l0: i32[4] of a thread\n"
    "x0 = thread + group * 64;\n"
    "var v0 = 0.0;\n"
    "for i in 0..64 by 4 {\n"
    "  v0 += b0[x0 + i];\n"
    "  for j in 0..4 unrolled {\n"
    "    l0[j] = x0 * (i + j);\n"
    "  }\n"
    "}\n"
    "s0[thread] = exp(v0);\n"
    "barrier;\n"
    "if x0 < 600 {\n"
    "  x1 = b1[x0];\n"
    "  b1[x0] = s0[3];\n"
    "  b1[0] = (u32_bits(x1) < 2147483648u) ? x1 : -0.25;\n"
    "} else {\n"
    "  b1[0] = f32(l0[0]);\n"
    "  b2[x0] max= 7u;\n"
    "}\n";

static void a_kernel_can_be_read(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = sample(ctx);
  test_buffer text = {0};
  TEST_OK(berth__kernel_print(k, test_buffer_write, &text, &err));
  assert_string_equal(text.data, form);
  test_buffer_free(&text);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static berth_status print_sample(berth_context *ctx, berth_error *err, void *user) {
  const berth__kernel *made = user;
  berth__kernel k = *made;
  k.ctx = ctx;
  test_buffer text = {0};
  berth_status status = berth__kernel_print(&k, test_buffer_write, &text, err);
  test_buffer_free(&text);
  return status;
}

static void memory_that_runs_out_is_told(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = sample(ctx);
  assert_true(test_fail_each_allocation(print_sample, k) >= 2);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_kernel_can_be_read),
      cmocka_unit_test(memory_that_runs_out_is_told),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
