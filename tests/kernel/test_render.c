/* Kernels as GLSL and as CUDA C: how it reads, and that a compiler takes every instruction. */
#include "kernel/render.h"

#include <stdlib.h>

#include "samples.h"
#include "support.h"
#ifdef BERTH__HAS_VULKAN
#include "device/vulkan/spirv.h"
#endif

static char *render(const berth__kernel *k, bool windows) {
  berth_error err;
  berth__text text;
  const berth__render_desc desc = {.windows = windows};
  berth__text_init(&text, k->ctx, NULL, NULL);
  TEST_OK(berth__render_glsl(k, &desc, &text, &err));
  TEST_OK(berth__text_finish(&text, &err));
  return text.data;
}

static void expect_text(sample_fn fn, bool windows, const char *want) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel *k = sample_make(ctx, "golden", fn);
  char *text = render(k, windows);
  assert_string_equal(text, want);
  berth__free(ctx, text);
  berth__kernel_destroy(k);
  test_context_done(ctx, &alloc);
}

/* ---- How it reads ---- */

static void test_element_wise(void **state) {
  (void)state;
  expect_text(sample_scaled_sum, false,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "// golden\n"
              "layout(local_size_x = 64, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words { uint w[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[2]; };\n"
              "void main() {\n"
              "  int group = int(gl_WorkGroupID.x);\n"
              "  int thread = int(gl_LocalInvocationID.x);\n"
              "  int v4 = thread + (group * 64);\n"
              "  if (v4 < 1000) {\n"
              "    precise float v13 = (uintBitsToFloat(w[at[0] + uint(v4 + 1000)]) + uintBitsToFloat(w[at[0] + "
              "uint(v4)])) * 0.1;\n"
              "    w[at[1] + uint(v4)] = floatBitsToUint(v13);\n"
              "  }\n"
              "}\n");
}

static void test_shared_memory_and_rows_of_the_grid(void **state) {
  (void)state;
  expect_text(sample_row_sums, false,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "// golden\n"
              "layout(local_size_x = 32, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words { uint w[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[2]; };\n"
              "shared float s0[32];\n"
              "void main() {\n"
              "  int group = int(gl_WorkGroupID.x + gl_WorkGroupID.y * 65535u);\n"
              "  if (group >= 70000) return;\n"
              "  int thread = int(gl_LocalInvocationID.x);\n"
              "  precise float x3 = 0.0;\n"
              "  for (int i6 = thread; i6 < 100; i6 += 32) {\n"
              "    x3 = uintBitsToFloat(w[at[0] + uint(i6 + (group * 100))]) + x3;\n"
              "  }\n"
              "  s0[thread] = x3;\n"
              "  barrier();\n"
              "  if (thread == 0) {\n"
              "    precise float x20 = 0.0;\n"
              "    for (int i22 = 0; i22 < 32; i22 += 1) {\n"
              "      x20 = s0[i22] + x20;\n"
              "    }\n"
              "    w[at[1] + uint(group)] = floatBitsToUint(x20);\n"
              "  }\n"
              "}\n");
}

/* Each exchange has a line of its own, and threads are numbered as subgroups have them. */
static void test_exchanges(void **state) {
  (void)state;
  expect_text(sample_exchanged, false,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "#extension GL_KHR_shader_subgroup_shuffle : require\n"
              "// golden\n"
              "layout(local_size_x = 32, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words { uint w[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[3]; };\n"
              "void main() {\n"
              "  int group = int(gl_WorkGroupID.x);\n"
              "  int thread = int(gl_SubgroupID * gl_SubgroupSize + gl_SubgroupInvocationID);\n"
              "  if (w[at[0]] != 0u) {\n"
              "    int v9 = thread + (group * 32);\n"
              "    precise float v10 = uintBitsToFloat(w[at[1] + uint(v9)]);\n"
              "    int v11 = subgroupShuffleXor(thread, 1u);\n"
              "    precise float v12 = subgroupShuffleXor(v10, 2u);\n"
              "    precise float v15 = (v10 + v12) * float(v11);\n"
              "    w[at[2] + uint(v9)] = floatBitsToUint(v15);\n"
              "  }\n"
              "}\n");
}

static void test_windows_halves_and_local_arrays(void **state) {
  (void)state;
  expect_text(sample_windows, true,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "// golden\n"
              "layout(local_size_x = 8, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words0 { uint w0[]; };\n"
              "layout(set = 0, binding = 1, std430) buffer Words1 { uint w1[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[2]; };\n"
              "int berth_div_i32(int a, int b) {\n"
              "  int odd = mix(0, 1, b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return q * (1 - odd) - a * mix(0, 1, b == -1);\n"
              "}\n"
              "int berth_rem_i32(int a, int b) {\n"
              "  int odd = mix(0, 1, b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return (a - q * b) * (1 - odd);\n"
              "}\n"
              "void main() {\n"
              "  int thread = int(gl_LocalInvocationID.x);\n"
              "  int l0[4];\n"
              "  [[unroll]] for (int i4 = 0; i4 < 4; i4 += 1) {\n"
              "    int v6 = i4 + (thread * 4);\n"
              "    l0[i4] = int(unpackHalf2x16(w0[at[0] + (uint(v6) >> 1u)] >> ((uint(v6) & 1u) << 4u)).x);\n"
              "  }\n"
              "  int v11 = l0[0];\n"
              "  int v12 = l0[1];\n"
              "  if (v12 < v11) {\n"
              "    w1[at[1] + uint(thread)] = uint(berth_div_i32(v11, v12));\n"
              "  } else {\n"
              "    w1[at[1] + uint(thread)] = uint(berth_rem_i32(v11, 7));\n"
              "  }\n"
              "}\n");
}

static void test_literals_are_exact(void **state) {
  (void)state;
  expect_text(sample_literals, false,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "// golden\n"
              "layout(local_size_x = 1, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words { uint w[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[2]; };\n"
              "void main() {\n"
              "  w[at[0]] = floatBitsToUint(uintBitsToFloat(0x7f800000u));\n"
              "  w[at[0] + 1u] = floatBitsToUint(uintBitsToFloat(0xff800000u));\n"
              "  w[at[0] + 2u] = floatBitsToUint(uintBitsToFloat(0x7fc00000u));\n"
              "  w[at[0] + 3u] = floatBitsToUint(uintBitsToFloat(0x80000000u));\n"
              "  w[at[0] + 4u] = floatBitsToUint(uintBitsToFloat(0x000116c2u));\n"
              "  w[at[0] + 5u] = floatBitsToUint(1.0);\n"
              "  w[at[0] + 6u] = floatBitsToUint(-2.5);\n"
              "  w[at[0] + 7u] = floatBitsToUint(-3.4028234e+38);\n"
              "  w[at[0] + 8u] = floatBitsToUint(16777216.0);\n"
              "  w[at[0] + 9u] = floatBitsToUint(0.1);\n"
              "  w[at[1]] = uint(int(0x80000000u));\n"
              "  w[at[1] + 1u] = uint(int(w[at[1]]) + 3);\n"
              "  w[at[1] + 2u] = uint((int(w[at[1]]) * (-2)) - 1);\n"
              "  precise float v43 = uintBitsToFloat(w[at[0]]) - 0.5;\n"
              "  w[at[0]] = floatBitsToUint(v43);\n"
              "}\n");
}

/* ---- Every instruction ---- */

static void test_every_instruction_has_a_form(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < 2 * SAMPLES; i++) {
    berth__kernel *k = sample_make(ctx, "all", samples[i / 2]);
    char *text = render(k, i % 2 != 0);
    assert_null(strpbrk(text, "$@")); /* nothing is left of the rules */
    berth__free(ctx, text);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

#ifdef BERTH__HAS_VULKAN
static void compile(berth__spirv_compiler *compiler, berth_context *ctx, sample_fn fn, bool windows) {
  berth_error err;
  berth__spirv spirv;
  berth__kernel *k = sample_make(ctx, "all", fn);
  char *text = render(k, windows);
  TEST_OK(berth__spirv_compile(compiler, k->name, text, strlen(text), &spirv, &err));
  assert_int_equal(spirv.words[0], 0x07230203);
  berth__free(ctx, spirv.words);
  berth__free(ctx, text);
  berth__kernel_destroy(k);
}
#endif

static void test_every_instruction_compiles(void **state) {
  (void)state;
#ifdef BERTH__HAS_VULKAN
  berth_error err;
  berth__spirv_compiler *compiler;
  setenv("BERTH_CACHE_DIR", "", 1);
  berth_context *ctx = test_context();
  if (berth__spirv_compiler_create(ctx, &compiler, &err) != BERTH_OK) {
    berth_context_destroy(ctx);
    TEST_SKIP(err.message);
  }
  for (size_t i = 0; i < 2 * SAMPLES; i++) compile(compiler, ctx, samples[i / 2], i % 2 != 0);
  compile(compiler, ctx, sample_exchanged, false);
  berth__spirv_compiler_destroy(compiler);
  berth_context_destroy(ctx);
#else
  TEST_SKIP("this build has no device vulkan, and with it no compiler");
#endif
}

/* ---- Memory that runs out ---- */

static berth_status render_everything(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__kernel *k;
  berth__text text;
  berth__text_init(&text, ctx, NULL, NULL);
  BERTH__TRY(berth__kernel_create(ctx, "all", &k, err));
  sample_row_sums(k);
  berth_status status = berth__kernel_finish(k, err);
  if (status == BERTH_OK) status = berth__render_glsl(k, &(berth__render_desc){0}, &text, err);
  berth__text_free(&text);
  berth__kernel_destroy(k);
  return status;
}

static void test_memory_that_runs_out(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(render_everything, NULL) > 3);
}

/* ---- CUDA: what follows the prelude ---- */

static void expect_cuda(sample_fn fn, uint32_t only_read, const char *want) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel *k = sample_make(ctx, "golden", fn);
  const berth__render_desc desc = {.only_read = only_read};
  berth__text text;
  berth_error err;
  berth__text_init(&text, ctx, NULL, NULL);
  TEST_OK(berth__render_cuda(k, &desc, &text, &err));
  TEST_OK(berth__text_finish(&text, &err));
  const char *body = strstr(text.data, "// golden\n");
  assert_non_null(body);
  assert_string_equal(body, want);
  berth__free(ctx, text.data);
  berth__kernel_destroy(k);
  test_context_done(ctx, &alloc);
}

static void test_cuda_reads_what_is_only_read(void **state) {
  (void)state;
  expect_cuda(sample_scaled_sum, 1,
              "// golden\n"
              "BERTH_KERNEL(64) berth_golden(const unsigned *__restrict__ b0, unsigned *b1) {\n"
              "  const int group = (int)blockIdx.x;\n"
              "  const int thread = (int)threadIdx.x;\n"
              "  berth_await();\n"
              "  berth_release();\n"
              "  int v4 = thread + (group * 64);\n"
              "  if (v4 < 1000) {\n"
              "    float v13 = (__uint_as_float(b0[v4 + 1000]) + __uint_as_float(b0[v4])) * 0.1f;\n"
              "    b1[v4] = __float_as_uint(v13);\n"
              "  }\n"
              "}\n");
}

static void sample_dot4(berth__kernel *k) {
  const uint32_t words = berth__kernel_buffer_of(k, 0, BERTH_U32);
  berth__x word[3];
  for (uint32_t i = 0; i < 3; i++) word[i] = berth__x_load(k, words, berth__x_i32(k, i));
  berth__x_store(k, words, berth__x_i32(k, 3), berth__x3(k, BERTH__INST_dot4, word[0], word[1], word[2]));
}

/* Without it, profiles would choose a form that is slower than the one it replaces. */
static void test_cuda_multiplies_four_bytes_at_once(void **state) {
  (void)state;
  expect_cuda(sample_dot4, 0,
              "// golden\n"
              "BERTH_KERNEL(1) berth_golden(unsigned *b0) {\n"
              "  berth_await();\n"
              "  berth_release();\n"
              "  b0[3] = (unsigned)__dp4a((int)b0[0], (int)b0[1], (int)b0[2]);\n"
              "}\n");
}

static void sample_resident(berth__kernel *k) {
  k->group_size = 64;
  k->resident = 2;
  berth__x_store(k, berth__kernel_buffer_of(k, 0, BERTH_U32), berth__x_i32(k, 0), berth__x_u32(k, 1));
}

static void test_cuda_asks_for_workgroups_that_fit_together(void **state) {
  (void)state;
  expect_cuda(sample_resident, 0,
              "// golden\n"
              "#undef BERTH_BOUNDS\n"
              "#define BERTH_BOUNDS(threads) __launch_bounds__(threads, 2)\n"
              "BERTH_KERNEL(64) berth_golden(unsigned *b0) {\n"
              "  berth_await();\n"
              "  berth_release();\n"
              "  b0[0] = 1u;\n"
              "}\n");
}

static void test_cuda_has_elements_of_their_width(void **state) {
  (void)state;
  expect_cuda(sample_windows, 0,
              "// golden\n"
              "BERTH_FUNCTION int berth_div_i32(int a, int b) {\n"
              "  int odd = berth_select(0, 1, b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return q * (1 - odd) - a * berth_select(0, 1, b == -1);\n"
              "}\n"
              "BERTH_FUNCTION int berth_rem_i32(int a, int b) {\n"
              "  int odd = berth_select(0, 1, b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return (a - q * b) * (1 - odd);\n"
              "}\n"
              "BERTH_KERNEL(8) berth_golden(unsigned short *b0, unsigned *b1) {\n"
              "  const int thread = (int)threadIdx.x;\n"
              "  int l0[4];\n"
              "  berth_await();\n"
              "  berth_release();\n"
              "  #pragma unroll\n"
              "for (int i4 = 0; i4 < 4; i4 += 1) {\n"
              "    int v6 = i4 + (thread * 4);\n"
              "    l0[i4] = (int)berth_from_half(b0[v6]);\n"
              "  }\n"
              "  int v11 = l0[0];\n"
              "  int v12 = l0[1];\n"
              "  if (v12 < v11) {\n"
              "    b1[thread] = (unsigned)berth_div_i32(v11, v12);\n"
              "  } else {\n"
              "    b1[thread] = (unsigned)berth_rem_i32(v11, 7);\n"
              "  }\n"
              "}\n");
}

/* An index that fits is a plain sum; what may not fit wraps. */
static void test_cuda_wraps_where_it_may(void **state) {
  (void)state;
  expect_cuda(sample_literals, 0,
              "// golden\n"
              "BERTH_KERNEL(1) berth_golden(unsigned *b0, unsigned *b1) {\n"
              "  berth_await();\n"
              "  berth_release();\n"
              "  b0[0] = __float_as_uint(__uint_as_float(0x7f800000u));\n"
              "  b0[1] = __float_as_uint(__uint_as_float(0xff800000u));\n"
              "  b0[2] = __float_as_uint(__uint_as_float(0x7fc00000u));\n"
              "  b0[3] = __float_as_uint(__uint_as_float(0x80000000u));\n"
              "  b0[4] = __float_as_uint(__uint_as_float(0x000116c2u));\n"
              "  b0[5] = __float_as_uint(1.0f);\n"
              "  b0[6] = __float_as_uint(-2.5f);\n"
              "  b0[7] = __float_as_uint(-3.4028234e+38f);\n"
              "  b0[8] = __float_as_uint(16777216.0f);\n"
              "  b0[9] = __float_as_uint(0.1f);\n"
              "  b1[0] = (unsigned)(-2147483647 - 1);\n"
              "  b1[1] = (unsigned)(int)((unsigned)(int)b1[0] + (unsigned)3);\n"
              "  b1[2] = (unsigned)(int)((unsigned)(int)((unsigned)(int)b1[0] * (unsigned)(-2)) + (unsigned)(-1));\n"
              "  float v43 = __uint_as_float(b0[0]) - 0.5f;\n"
              "  b0[0] = __float_as_uint(v43);\n"
              "}\n");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_element_wise),
      cmocka_unit_test(test_shared_memory_and_rows_of_the_grid),
      cmocka_unit_test(test_exchanges),
      cmocka_unit_test(test_windows_halves_and_local_arrays),
      cmocka_unit_test(test_literals_are_exact),
      cmocka_unit_test(test_every_instruction_has_a_form),
      cmocka_unit_test(test_every_instruction_compiles),
      cmocka_unit_test(test_memory_that_runs_out),
      cmocka_unit_test(test_cuda_reads_what_is_only_read),
      cmocka_unit_test(test_cuda_multiplies_four_bytes_at_once),
      cmocka_unit_test(test_cuda_asks_for_workgroups_that_fit_together),
      cmocka_unit_test(test_cuda_has_elements_of_their_width),
      cmocka_unit_test(test_cuda_wraps_where_it_may),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
