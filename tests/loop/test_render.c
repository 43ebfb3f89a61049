/* Kernels as GLSL: how it reads, and that a compiler takes every instruction. */
#include "loop/render.h"

#include <math.h>
#include <stdlib.h>

#include "support.h"
#ifdef BERTH__HAS_VULKAN
#include "device/vulkan/spirv.h"
#endif

typedef void (*make_fn)(berth__kernel *k);

static berth__kernel *make(berth_context *ctx, const char *name, make_fn fn) {
  berth_error err;
  berth__kernel *k;
  TEST_OK(berth__kernel_create(ctx, name, &k, &err));
  fn(k);
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static char *render(const berth__kernel *k, bool windows) {
  berth_error err;
  berth__text text;
  const berth__render_desc desc = {.windows = windows};
  berth__text_init(&text, k->ctx, NULL, NULL);
  TEST_OK(berth__render_glsl(k, &desc, &text, &err));
  TEST_OK(berth__text_finish(&text, &err));
  return text.data;
}

static void expect_text(make_fn fn, bool windows, const char *want) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel *k = make(ctx, "golden", fn);
  char *text = render(k, windows);
  assert_string_equal(text, want);
  berth__free(ctx, text);
  berth__kernel_destroy(k);
  test_context_done(ctx, &alloc);
}

/* ---- How it reads ---- */

static berth__x flat_index(berth__kernel *k, uint32_t group_size, uint64_t n_groups) {
  k->group_size = group_size;
  k->n_groups = n_groups;
  const berth__x thread = berth__x_thread(k); /* first, by itself: compilers differ in the order of arguments */
  return berth__x_add(k, berth__x_affine(k, berth__x_group(k), group_size, 0), thread);
}

static void make_scaled_sum(berth__kernel *k) {
  const uint32_t a = berth__kernel_buffer_of(k, 0, BERTH__STORE_F32),
                 b = berth__kernel_buffer_of(k, 1, BERTH__STORE_F32);
  const berth__x i = flat_index(k, 64, 16);
  berth__x_if(k, berth__x_lt(k, i, berth__x_i32(k, 1000)));
  const berth__x far = berth__x_load(k, a, berth__x_affine(k, i, 1, 1000));
  const berth__x sum = berth__x_add(k, berth__x_load(k, a, i), far);
  berth__x_store(k, b, i, berth__x_mul(k, sum, berth__x_f32(k, 0.1f)));
  berth__x_end(k);
}

static void test_element_wise(void **state) {
  (void)state;
  expect_text(make_scaled_sum, false,
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

static void make_row_sums(berth__kernel *k) {
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH__STORE_F32),
                 out = berth__kernel_buffer_of(k, 1, BERTH__STORE_F32);
  const uint32_t shared = berth__kernel_shared(k, BERTH__NUM_F32, 32);
  k->group_size = 32;
  k->n_groups = 70000;
  const berth__x group = berth__x_group(k), thread = berth__x_thread(k);
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth__x j = berth__x_loop(k, thread, berth__x_i32(k, 100), 32);
  const berth__x element = berth__x_load(k, in, berth__x_add(k, berth__x_affine(k, group, 100, 0), j));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), element));
  berth__x_end(k);
  berth__x_shared_store(k, shared, thread, berth__x_get(k, sum));
  berth__x_barrier(k);
  berth__x_if(k, berth__x_eq(k, thread, berth__x_i32(k, 0)));
  const berth__x total = berth__x_variable(k, berth__x_f32(k, 0.0f));
  const berth__x t = berth__x_loop_n(k, 32);
  const berth__x part = berth__x_shared_load(k, shared, t);
  berth__x_set(k, total, berth__x_add(k, berth__x_get(k, total), part));
  berth__x_end(k);
  berth__x_store(k, out, group, berth__x_get(k, total));
  berth__x_end(k);
}

static void test_shared_memory_and_rows_of_the_grid(void **state) {
  (void)state;
  expect_text(make_row_sums, false,
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

static void make_windows(berth__kernel *k) {
  const uint32_t half = berth__kernel_buffer_of(k, 0, BERTH__STORE_F16),
                 out = berth__kernel_buffer_of(k, 1, BERTH__STORE_I32);
  const uint32_t local = berth__kernel_local(k, BERTH__NUM_I32, 4);
  const berth__x i = flat_index(k, 8, 1);
  const berth__x j = berth__x_loop_unrolled(k, berth__x_i32(k, 0), berth__x_i32(k, 4), 1);
  const berth__x element = berth__x_load(k, half, berth__x_add(k, berth__x_affine(k, i, 4, 0), j));
  berth__x_local_store(k, local, j, berth__x_convert(k, BERTH__NUM_I32, element));
  berth__x_end(k);
  const berth__x first = berth__x_local_load(k, local, berth__x_i32(k, 0));
  const berth__x by = berth__x_local_load(k, local, berth__x_i32(k, 1));
  berth__x_if(k, berth__x_lt(k, by, first));
  berth__x_store(k, out, i, berth__x_div(k, first, by));
  berth__x_else(k);
  berth__x_store(k, out, i, berth__x2(k, BERTH__INST_rem, first, berth__x_i32(k, 7)));
  berth__x_end(k);
}

static void test_windows_halves_and_local_arrays(void **state) {
  (void)state;
  expect_text(make_windows, true,
              "#version 450\n"
              "#extension GL_EXT_control_flow_attributes : enable\n"
              "// golden\n"
              "layout(local_size_x = 8, local_size_y = 1, local_size_z = 1) in;\n"
              "layout(set = 0, binding = 0, std430) buffer Words0 { uint w0[]; };\n"
              "layout(set = 0, binding = 1, std430) buffer Words1 { uint w1[]; };\n"
              "layout(push_constant, std430) uniform Begins { uint at[2]; };\n"
              "int berth_div_i32(int a, int b) {\n"
              "  int odd = int(b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return q * (1 - odd) - a * int(b == -1);\n"
              "}\n"
              "int berth_rem_i32(int a, int b) {\n"
              "  int odd = int(b == 0 || b == -1);\n"
              "  int q = a / (b * (1 - odd) + odd);\n"
              "  return (a - q * b) * (1 - odd);\n"
              "}\n"
              "void main() {\n"
              "  int thread = int(gl_LocalInvocationID.x);\n"
              "  int l0[4];\n"
              "  [[unroll]] for (int i4 = 0; i4 < 4; i4 += 1) {\n"
              "    l0[i4] = int(unpackHalf2x16(w0[at[0] + (uint(i4 + (thread * 4)) >> 1u)] >> ((uint(i4 + (thread * "
              "4)) & 1u) << 4u)).x);\n"
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

static void make_literals(berth__kernel *k) {
  static const float values[] = {INFINITY, -INFINITY, NAN, -0.0f, 1e-40f, 1.0f, -2.5f, 3.4e38f, 16777216.0f, 0.1f};
  const uint32_t f = berth__kernel_buffer_of(k, 0, BERTH__STORE_F32),
                 i = berth__kernel_buffer_of(k, 1, BERTH__STORE_I32);
  const berth__x zero = berth__x_i32(k, 0);
  for (size_t v = 0; v < sizeof values / sizeof values[0]; v++)
    berth__x_store(k, f, berth__x_i32(k, (int64_t)v), berth__x_f32(k, values[v]));
  berth__x_store(k, i, zero, berth__x_i32(k, INT32_MIN));
  berth__x_store(k, i, berth__x_i32(k, 1), berth__x_sub(k, berth__x_load(k, i, zero), berth__x_i32(k, -3)));
  berth__x_store(k, i, berth__x_i32(k, 2), berth__x_affine(k, berth__x_load(k, i, zero), -2, -1));
  berth__x_store(k, f, zero, berth__x_add(k, berth__x_load(k, f, zero), berth__x_f32(k, -0.5f)));
}

static void test_literals_are_exact(void **state) {
  (void)state;
  expect_text(make_literals, false,
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
              "  w[at[0] + 7u] = floatBitsToUint(3.4e+38);\n"
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

typedef struct values {
  berth__x of[4][3]; /* by type */
} values;

static values load_values(berth__kernel *k) {
  static const berth__storage storages[] = {BERTH__STORE_F32, BERTH__STORE_I32, BERTH__STORE_U32};
  values v;
  for (uint32_t type = 0; type < 3; type++)
    for (uint32_t i = 0; i < 3; i++)
      v.of[type][i] = berth__x_load(k, berth__kernel_buffer_of(k, type, storages[type]), berth__x_i32(k, i));
  for (uint32_t i = 0; i < 3; i++) v.of[BERTH__NUM_BOOL][i] = berth__x_eq(k, v.of[1][i], v.of[1][(i + 1) % 3]);
  return v;
}

static void keep(berth__kernel *k, berth__x x, int64_t *n) {
  const berth__number type = (berth__number)berth__x_inst(k, x)->type;
  const berth__x bits = type == BERTH__NUM_BOOL  ? berth__x_convert(k, BERTH__NUM_U32, x)
                        : type == BERTH__NUM_U32 ? x
                                                 : berth__x_bits(k, BERTH__NUM_U32, x);
  berth__x_store(k, berth__kernel_buffer_of(k, 3, BERTH__STORE_U32), berth__x_i32(k, (*n)++), bits);
}

#define F 1u
#define I 2u
#define U 4u
#define B 8u

/* Which types an instruction is for: one bit each. */
static uint32_t types_of(berth__inst_code code) {
  switch (code) {
    case BERTH__INST_rem: return I | U;
    case BERTH__INST_and:
    case BERTH__INST_or:
    case BERTH__INST_xor:
    case BERTH__INST_not: return I | U | B;
    case BERTH__INST_shl:
    case BERTH__INST_shr: return I | U;
    case BERTH__INST_neg: return F | I | U;
    case BERTH__INST_abs: return F | I;
    case BERTH__INST_eq:
    case BERTH__INST_ne: return F | I | U | B;
    case BERTH__INST_fma:
    case BERTH__INST_sqrt:
    case BERTH__INST_exp:
    case BERTH__INST_floor:
    case BERTH__INST_ceil:
    case BERTH__INST_round:
    case BERTH__INST_trunc:
    case BERTH__INST_to_half: return F;
    default: return F | I | U;
  }
}

static berth__x apply(berth__kernel *k, berth__inst_code code, const berth__x *in) {
  switch (berth__inst_operands(code)) {
    case 1: return berth__x1(k, code, in[0]);
    case 2: return berth__x2(k, code, in[0], in[1]);
    default: return berth__x3(k, code, in[0], in[1], in[2]);
  }
}

static void make_conversions(berth__kernel *k, const values *v, int64_t *n) {
  for (uint32_t from = 0; from < 4; from++) {
    for (uint32_t to = 0; to < 4; to++) {
      keep(k, berth__x_convert(k, (berth__number)to, v->of[from][1]), n);
      if (from < 3 && to < 3) keep(k, berth__x_bits(k, (berth__number)to, v->of[from][2]), n);
    }
  }
}

static void make_everything(berth__kernel *k) {
  const values v = load_values(k);
  int64_t n = 0;
  for (int code = BERTH__INST_add; code <= BERTH__INST_to_half; code++) {
    for (uint32_t type = 0; type < 4; type++) {
      if (code == BERTH__INST_select) {
        keep(k, berth__x_select(k, v.of[3][0], v.of[type][0], v.of[type][1]), &n);
        continue;
      }
      if ((types_of((berth__inst_code)code) >> type & 1u) == 0) continue;
      berth__x in[3] = {v.of[type][0], v.of[type][1], v.of[type][2]};
      if (code == BERTH__INST_shl || code == BERTH__INST_shr)
        in[1] = berth__x2(k, BERTH__INST_and, in[1], type == 1 ? berth__x_i32(k, 31) : berth__x_u32(k, 31));
      keep(k, apply(k, (berth__inst_code)code, in), &n);
    }
  }
  make_conversions(k, &v, &n);
}

static void make_blocks(berth__kernel *k) {
  make_row_sums(k);
  const uint32_t out = berth__kernel_buffer_of(k, 4, BERTH__STORE_U32);
  const berth__x i = berth__x_loop_n(k, 10);
  berth__x_if(k, berth__x_lt(k, berth__x_load(k, out, i), berth__x_u32(k, 3)));
  berth__x_break(k);
  berth__x_else(k);
  berth__x_store(k, out, i, berth__x_u32(k, 9));
  berth__x_end(k);
  berth__x_end(k);
}

static const make_fn kernels[] = {make_scaled_sum, make_row_sums,   make_windows,
                                  make_literals,   make_everything, make_blocks};
#define N_KERNELS (sizeof kernels / sizeof kernels[0])

static void test_every_instruction_has_a_form(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < 2 * N_KERNELS; i++) {
    berth__kernel *k = make(ctx, "all", kernels[i / 2]);
    char *text = render(k, i % 2 != 0);
    assert_null(strpbrk(text, "$@")); /* nothing is left of the rules */
    berth__free(ctx, text);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

#ifdef BERTH__HAS_VULKAN
static void compile(berth__spirv_compiler *compiler, berth_context *ctx, make_fn fn, bool windows) {
  berth_error err;
  berth__spirv spirv;
  berth__kernel *k = make(ctx, "all", fn);
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
  berth_context *ctx = test_context();
  setenv("BERTH_CACHE_DIR", "", 1);
  if (berth__spirv_compiler_create(ctx, &compiler, &err) != BERTH_OK) {
    berth_context_destroy(ctx);
    TEST_SKIP(err.message);
  }
  for (size_t i = 0; i < 2 * N_KERNELS; i++) compile(compiler, ctx, kernels[i / 2], i % 2 != 0);
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
  make_row_sums(k);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_element_wise),
      cmocka_unit_test(test_shared_memory_and_rows_of_the_grid),
      cmocka_unit_test(test_windows_halves_and_local_arrays),
      cmocka_unit_test(test_literals_are_exact),
      cmocka_unit_test(test_every_instruction_has_a_form),
      cmocka_unit_test(test_every_instruction_compiles),
      cmocka_unit_test(test_memory_that_runs_out),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
