/* Kernels as WGSL: how it reads, and that an implementation of WebGPU takes every instruction. */
#include <stdlib.h>

#include "kernel/lower.h"
#include "kernel/render.h"
#include "ops/attention.h"
#include "samples.h"
#include "support.h"
#ifdef BERTH__HAS_WEBGPU
#include "device/webgpu/webgpu.h"
#endif

static char *render(const berth__kernel *k, const berth__render_desc *desc) {
  berth_error err;
  berth__text text;
  berth__text_init(&text, k->ctx, NULL, NULL);
  TEST_OK(berth__render_wgsl(k, desc, &text, &err));
  TEST_OK(berth__text_finish(&text, &err));
  return text.data;
}

static void expect_text(sample_fn fn, const berth__render_desc *desc, const char *want) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel *k = sample_make(ctx, "golden", fn);
  char *text = render(k, desc);
  assert_string_equal(text, want);
  berth__free(ctx, text);
  berth__kernel_destroy(k);
  test_context_done(ctx, &alloc);
}

static const berth__render_desc arena = {0}, windows = {.windows = true};

/* ---- How it reads ---- */

static void test_element_wise(void **state) {
  (void)state;
  expect_text(sample_scaled_sum, &arena,
              "// golden\n"
              "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n"
              "struct Begins { b0: u32, b1: u32, }\n"
              "@group(0) @binding(1) var<uniform> at: Begins;\n"
              "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
              "@compute @workgroup_size(64)\n"
              "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
              "  let group = i32(id.x);\n"
              "  let thread = i32(lane);\n"
              "  let v4 = thread + (group * 64i);\n"
              "  if (v4 < 1000i) {\n"
              "    let v13 = (bitcast<f32>(w[at.b0 + bitcast<u32>(v4 + 1000i)]) + bitcast<f32>(w[at.b0 + "
              "bitcast<u32>(v4)])) * 0.1f;\n"
              "    w[at.b1 + bitcast<u32>(v4)] = bitcast<u32>(v13);\n"
              "  }\n"
              "}\n");
}

static void test_a_condition_around_a_barrier(void **state) {
  (void)state;
  expect_text(
      sample_guarded, &arena,
      "// golden\n"
      "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n"
      "struct Begins { b0: u32, b1: u32, b2: u32, }\n"
      "@group(0) @binding(1) var<uniform> at: Begins;\n"
      "var<workgroup> s0: array<f32, 32>;\n"
      "var<workgroup> agreed: u32;\n"
      "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
      "@compute @workgroup_size(32)\n"
      "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
      "  let group = i32(id.x + id.y * 65535u);\n"
      "  if (group >= 70000) { return; }\n"
      "  let thread = i32(lane);\n"
      "  if (lane == 0u) { agreed = select(0u, 1u, w[at.b0] != 0u); } if (workgroupUniformLoad(&agreed) != 0u) {\n"
      "    var x8: f32 = 0.0f;\n"
      "    for (var n11 = thread; n11 < 100i; n11 += 32i) {\n"
      "      x8 = bitcast<f32>(w[at.b1 + bitcast<u32>(n11 + (group * 100i))]) + x8;\n"
      "    }\n"
      "    s0[thread] = x8;\n"
      "    workgroupBarrier();\n"
      "    if (thread == 0i) {\n"
      "      var x24: f32 = 0.0f;\n"
      "      for (var n26 = 0i; n26 < 32i; n26 += 1i) {\n"
      "        x24 = s0[n26] + x24;\n"
      "      }\n"
      "      w[at.b2 + bitcast<u32>(group)] = bitcast<u32>(x24);\n"
      "    }\n"
      "  }\n"
      "}\n");
}

static void test_a_loop_around_barriers(void **state) {
  (void)state;
  expect_text(
      sample_counted, &arena,
      "// golden\n"
      "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n"
      "struct Begins { b0: u32, b1: u32, b2: u32, }\n"
      "@group(0) @binding(1) var<uniform> at: Begins;\n"
      "var<workgroup> s0: array<f32, 32>;\n"
      "var<workgroup> agreed: u32;\n"
      "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
      "@compute @workgroup_size(32)\n"
      "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
      "  let group = i32(id.x);\n"
      "  let thread = i32(lane);\n"
      "  let v4 = min(bitcast<i32>(w[at.b0 + bitcast<u32>(group)]), 320i);\n"
      "  var x6: f32 = 0.0f;\n"
      "  if (lane == 0u) { agreed = bitcast<u32>(v4); } let to_n9 = bitcast<i32>(workgroupUniformLoad(&agreed)); "
      "for (var n9 = 0i; n9 < to_n9; n9 += 32i) {\n"
      "    workgroupBarrier();\n"
      "    s0[thread] = bitcast<f32>(w[at.b1 + bitcast<u32>(thread + n9)]);\n"
      "    workgroupBarrier();\n"
      "    x6 = s0[31i - thread] + x6;\n"
      "  }\n"
      "  w[at.b2 + bitcast<u32>(thread + (group * 32i))] = bitcast<u32>(x6);\n"
      "}\n");
}

static void test_windows_halves_and_local_arrays(void **state) {
  (void)state;
  expect_text(sample_windows, &windows,
              "// golden\n"
              "@group(0) @binding(0) var<storage, read_write> w0: array<u32>;\n"
              "@group(0) @binding(1) var<storage, read_write> w1: array<u32>;\n"
              "struct Begins { b0: u32, b1: u32, }\n"
              "@group(0) @binding(2) var<uniform> at: Begins;\n"
              "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
              "fn berth_div_i32(a: i32, b: i32) -> i32 {\n"
              "  let odd = select(0, 1, b == 0 || b == -1);\n"
              "  let q = a / (b * (1 - odd) + odd);\n"
              "  return q * (1 - odd) - a * select(0, 1, b == -1);\n"
              "}\n"
              "fn berth_rem_i32(a: i32, b: i32) -> i32 {\n"
              "  let odd = select(0, 1, b == 0 || b == -1);\n"
              "  let q = a / (b * (1 - odd) + odd);\n"
              "  return (a - q * b) * (1 - odd);\n"
              "}\n"
              "@compute @workgroup_size(8)\n"
              "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
              "  let thread = i32(lane);\n"
              "  var l0: array<i32, 4>;\n"
              "  for (var n4 = 0i; n4 < 4i; n4 += 1i) {\n"
              "    let v6 = n4 + (thread * 4i);\n"
              "    l0[n4] = i32(unpack2x16float(w0[at.b0 + (bitcast<u32>(v6) >> 1u)] >> ((bitcast<u32>(v6) & 1u) << "
              "4u)).x);\n"
              "  }\n"
              "  let v11 = l0[0i];\n"
              "  let v12 = l0[1i];\n"
              "  if (v12 < v11) {\n"
              "    w1[at.b1 + bitcast<u32>(thread)] = bitcast<u32>(berth_div_i32(v11, v12));\n"
              "  } else {\n"
              "    w1[at.b1 + bitcast<u32>(thread)] = bitcast<u32>(berth_rem_i32(v11, 7i));\n"
              "  }\n"
              "}\n");
}

static void test_windows_that_buffers_share(void **state) {
  static const uint8_t both_in_one[] = {0, 0};
  const berth__render_desc desc = {.windows = true, .window_of = both_in_one};
  (void)state;
  expect_text(sample_scaled_sum, &desc,
              "// golden\n"
              "@group(0) @binding(0) var<storage, read_write> w0: array<u32>;\n"
              "struct Begins { b0: u32, b1: u32, }\n"
              "@group(0) @binding(1) var<uniform> at: Begins;\n"
              "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
              "@compute @workgroup_size(64)\n"
              "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
              "  let group = i32(id.x);\n"
              "  let thread = i32(lane);\n"
              "  let v4 = thread + (group * 64i);\n"
              "  if (v4 < 1000i) {\n"
              "    let v13 = (bitcast<f32>(w0[at.b0 + bitcast<u32>(v4 + 1000i)]) + bitcast<f32>(w0[at.b0 + "
              "bitcast<u32>(v4)])) * 0.1f;\n"
              "    w0[at.b1 + bitcast<u32>(v4)] = bitcast<u32>(v13);\n"
              "  }\n"
              "}\n");
}

static void test_literals_are_exact(void **state) {
  (void)state;
  expect_text(sample_literals, &arena,
              "// golden\n"
              "@group(0) @binding(0) var<storage, read_write> w: array<u32>;\n"
              "struct Begins { b0: u32, b1: u32, }\n"
              "@group(0) @binding(1) var<uniform> at: Begins;\n"
              "fn berth_f32(bits: u32) -> f32 { return bitcast<f32>(bits); }\n"
              "@compute @workgroup_size(1)\n"
              "fn main(@builtin(workgroup_id) id: vec3<u32>, @builtin(local_invocation_index) lane: u32) {\n"
              "  w[at.b0] = bitcast<u32>(berth_f32(0x7f800000u));\n"
              "  w[at.b0 + 1u] = bitcast<u32>(berth_f32(0xff800000u));\n"
              "  w[at.b0 + 2u] = bitcast<u32>(berth_f32(0x7fc00000u));\n"
              "  w[at.b0 + 3u] = bitcast<u32>(berth_f32(0x80000000u));\n"
              "  w[at.b0 + 4u] = bitcast<u32>(berth_f32(0x000116c2u));\n"
              "  w[at.b0 + 5u] = bitcast<u32>(1.0f);\n"
              "  w[at.b0 + 6u] = bitcast<u32>(-2.5f);\n"
              "  w[at.b0 + 7u] = bitcast<u32>(-3.4028234e+38f);\n"
              "  w[at.b0 + 8u] = bitcast<u32>(16777216.0f);\n"
              "  w[at.b0 + 9u] = bitcast<u32>(0.1f);\n"
              "  w[at.b1] = bitcast<u32>(i32(-2147483648));\n"
              "  w[at.b1 + 1u] = bitcast<u32>(bitcast<i32>(w[at.b1]) + 3i);\n"
              "  w[at.b1 + 2u] = bitcast<u32>((bitcast<i32>(w[at.b1]) * (-2i)) - 1i);\n"
              "  let v43 = bitcast<f32>(w[at.b0]) - 0.5f;\n"
              "  w[at.b0] = bitcast<u32>(v43);\n"
              "}\n");
}

/* ---- Every instruction ---- */

static void test_every_instruction_has_a_form(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < 2 * SAMPLES; i++) {
    berth__kernel *k = sample_make(ctx, "all", samples[i / 2]);
    char *text = render(k, i % 2 != 0 ? &windows : &arena);
    assert_null(strpbrk(text, "$#")); /* nothing is left of the rules */
    berth__free(ctx, text);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

#ifdef BERTH__HAS_WEBGPU
static berth_status compile_text(berth__engine *engine, const char *text, berth_error *err) {
  berth__wgpu_wgsl code = {.chain = {.kind = BERTH__WGPU_WGSL}, .code = {text, strlen(text)}};
  const berth__wgpu_named desc = {.next = &code.chain};
  berth__webgpu_watch(engine);
  berth__wgpu module = BERTH__WEBGPU_CREATE(engine, ShaderModule, &desc);
  BERTH__WEBGPU_RELEASE(engine, ShaderModule, module);
  return berth__webgpu_check(engine, "compiling a kernel", err);
}

static void compile_kernel(berth__engine *engine, const berth__kernel *k, const berth__render_desc *desc) {
  berth_error err;
  char *text = render(k, desc);
  const berth_status status = compile_text(engine, text, &err);
  if (status != BERTH_OK) print_message("%s\n", text);
  TEST_OK(status);
  berth__free(engine->core.ctx, text);
}

static void compile(berth__engine *engine, sample_fn fn, const berth__render_desc *desc) {
  berth__kernel *k = sample_make(engine->core.ctx, "all", fn);
  compile_kernel(engine, k, desc);
  berth__kernel_destroy(k);
}

/* Attention as a real GPU gets it, with loops around barriers that end where memory says: the compiler wants all
 * threads to agree. No GPU that is a CPU takes this form, so that running it elsewhere does not show it. */
static void compile_attention(berth__engine *engine, int64_t queries, const char *mode, int64_t window) {
  berth_error err;
  const berth__op *op = berth__op_builtin(BERTH__OP_attention);
  const berth__kernel_limits limits = {.group_size = 256, .lanes = 32, .shared_bytes = 16384, .shares_well = true};
  berth_tensor tensors[7] = {{.type = BERTH_F32, .rank = 4, .dim = {2, 4, queries, 16}},
                             {.type = BERTH_F32, .rank = 4, .dim = {2, 2, 600, 16}},
                             {.type = BERTH_F32, .rank = 4, .dim = {2, 2, 600, 16}},
                             {.type = BERTH_TYPE_NONE},
                             {.type = BERTH_TYPE_NONE},
                             {.type = BERTH_I32, .rank = 1, .dim = {2}},
                             {.type = BERTH_F32, .rank = 4, .dim = {2, 4, queries, 16}}};
  berth_attr attrs[16];
  assert_true(op->family->n_attrs <= sizeof attrs / sizeof attrs[0]);
  for (uint32_t i = 0; i < op->family->n_attrs; i++) attrs[i] = op->family->attrs[i];
  attrs[BERTH__ATTENTION_MODE].s = mode;
  attrs[BERTH__ATTENTION_WINDOW].i = window;
  for (uint32_t i = 0; i < 7; i++) berth__contiguous_strides(tensors[i].rank, tensors[i].dim, tensors[i].stride);
  const berth_op_call call = {.in = tensors,
                              .out = &tensors[6],
                              .n_in = 6,
                              .n_out = 1,
                              .attrs = attrs,
                              .n_attrs = op->family->n_attrs,
                              .user = berth__op_user(op)};
  berth__lowering l = {.ctx = engine->core.ctx, .limits = &limits, .op = op, .call = &call};
  TEST_OK(berth__lower_call(&l, &err));
  assert_non_null(strstr(l.kernels[0]->name, "tiled"));
  for (size_t i = 0; i < l.n_kernels; i++) compile_kernel(engine, l.kernels[i], &arena);
  berth__lowering_free(&l);
}
#endif

static void test_every_instruction_compiles(void **state) {
  (void)state;
#ifdef BERTH__HAS_WEBGPU
  berth_error err;
  berth__engine *engine;
  berth_context *ctx = test_context();
  if (berth__webgpu_try(ctx, 1, &engine, &err) != BERTH_OK) {
    berth_context_destroy(ctx);
    TEST_SKIP(err.message);
  }
  for (size_t i = 0; i < 2 * SAMPLES; i++) compile(engine, samples[i / 2], i % 2 != 0 ? &windows : &arena);
  if (engine->core.profile.loops.exchanges)
    compile(engine, sample_exchanged, &arena);
  else
    print_message("# this implementation has no subgroups, or of several sizes\n");
  for (int64_t queries = 1; queries < 100; queries += 63) {
    compile_attention(engine, queries, "causal", 0);
    compile_attention(engine, queries, "sliding_window", 50);
  }
  test_expect_error(compile_text(engine, "fn main() { nonsense }", &err), BERTH_INTERNAL, &err, "nonsense");
  berth__webgpu_close(engine);
  berth_context_destroy(ctx);
#else
  TEST_SKIP("this build has no device webgpu, and with it no compiler");
#endif
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_element_wise),
      cmocka_unit_test(test_a_condition_around_a_barrier),
      cmocka_unit_test(test_a_loop_around_barriers),
      cmocka_unit_test(test_windows_halves_and_local_arrays),
      cmocka_unit_test(test_windows_that_buffers_share),
      cmocka_unit_test(test_literals_are_exact),
      cmocka_unit_test(test_every_instruction_has_a_form),
      cmocka_unit_test(test_every_instruction_compiles),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
