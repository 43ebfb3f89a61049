/* Cooperative matrices on the device "vulkan": which sizes are taken, the SPIR-V of kernels that use them, and the
 * kernels themselves with the matrices played, since no CPU driver here has any. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "support.h"
#include "vulkan.h"

#ifdef BERTH__HAS_VULKAN
#include "device/gpu/program.h"
#include "device/vulkan/matrices.h"
#include "device/vulkan/spirv.h"
#include "device/vulkan/vulkan.h"

/* ---- Sizes ---- */

#define ENTRY(m, n, k, type)                                                                                  \
  {                                                                                                           \
    .MSize = m, .NSize = n, .KSize = k, .AType = type, .BType = type, .CType = VK_COMPONENT_TYPE_FLOAT32_KHR, \
    .ResultType = VK_COMPONENT_TYPE_FLOAT32_KHR, .scope = VK_SCOPE_SUBGROUP_KHR                               \
  }
#define F16 VK_COMPONENT_TYPE_FLOAT16_KHR
#define BF16 VK_COMPONENT_TYPE_BFLOAT16_KHR

static void expect_pieces(const VkCooperativeMatrixPropertiesKHR *listed, uint32_t n, bool has_bf16, uint32_t rows,
                          uint32_t columns, uint32_t depth, uint32_t kinds) {
  const berth__vulkan_pieces p = berth__vulkan_pieces_of(listed, n, has_bf16);
  assert_int_equal(p.rows, rows);
  assert_int_equal(p.columns, columns);
  assert_int_equal(p.depth, depth);
  assert_int_equal(p.kinds, kinds);
}

static void the_largest_size_is_taken(void **state) {
  const uint32_t f16 = 1u << BERTH_COMPUTE_F16, bf16 = 1u << BERTH_COMPUTE_BF16;
  const VkCooperativeMatrixPropertiesKHR nvidia[] = {ENTRY(16, 8, 8, F16), ENTRY(16, 16, 16, F16),
                                                     ENTRY(16, 8, 16, F16), ENTRY(16, 16, 16, BF16)},
                                         intel[] = {ENTRY(8, 16, 16, F16), ENTRY(8, 16, 16, BF16)},
                                         apart[] = {ENTRY(8, 8, 16, F16), ENTRY(16, 16, 16, BF16)};
  (void)state;
  expect_pieces(nvidia, 4, true, 16, 16, 16, f16 | bf16);
  expect_pieces(nvidia, 4, false, 16, 16, 16, f16);
  expect_pieces(nvidia, 1, true, 16, 8, 8, f16);
  expect_pieces(intel, 2, true, 8, 16, 16, f16 | bf16);
  expect_pieces(intel + 1, 1, true, 8, 16, 16, bf16);
  expect_pieces(apart, 2, true, 8, 8, 16, f16); /* bf16 has another size */
  expect_pieces(NULL, 0, true, 0, 0, 0, 0);
}

static void other_matrices_are_left(void **state) {
  VkCooperativeMatrixPropertiesKHR p = ENTRY(16, 16, 16, F16);
  (void)state;
  p.scope = (VkScopeKHR)2; /* a workgroup */
  expect_pieces(&p, 1, true, 0, 0, 0, 0);
  p = (VkCooperativeMatrixPropertiesKHR)ENTRY(16, 16, 16, F16);
  p.saturatingAccumulation = VK_TRUE;
  expect_pieces(&p, 1, true, 0, 0, 0, 0);
  p = (VkCooperativeMatrixPropertiesKHR)ENTRY(16, 16, 16, F16);
  p.ResultType = F16;
  expect_pieces(&p, 1, true, 0, 0, 0, 0);
  p = (VkCooperativeMatrixPropertiesKHR)ENTRY(32, 32, 16, F16);
  expect_pieces(&p, 1, true, 0, 0, 0, 0);
  p = (VkCooperativeMatrixPropertiesKHR)ENTRY(16, 16, 16, VK_COMPONENT_TYPE_FLOAT32_KHR);
  expect_pieces(&p, 1, true, 0, 0, 0, 0);
  p = (VkCooperativeMatrixPropertiesKHR)ENTRY(16, 16, 16, BF16);
  expect_pieces(&p, 1, false, 0, 0, 0, 0);
}

/* ---- Graphs ---- */

typedef struct matrix_case {
  const char *text;
  size_t in[3], out; /* elements of the inputs a, b and c, and of the result */
} matrix_case;

static const matrix_case matrix_cases[] = {
    {.text = "graph \"g\" { input %a : f32[70, 136] input %b : f32[136, 72] input %c : f32[72] %m = matmul(%a, %b) "
             "%s = add(%m, %c) %o = relu(%s) output \"o\" = %o }",
     .in = {70 * 136, 136 * 72, 72},
     .out = 70 * 72},
    /* parts of a workgroup share the depth */
    {.text = "graph \"g\" { input %a : f32[70, 700] input %b : f32[700, 72] %o = matmul(%a, %b) output \"o\" = %o }",
     .in = {70 * 700, 700 * 72},
     .out = 70 * 72},
    /* a product of what another one makes, with the right side along the depth */
    {.text = "graph \"g\" { input %a : f32[130, 136] input %b : f32[136, 72] input %c : f32[80, 72] "
             "%x = matmul(%a, %b) %y = relu(%x) %t = transpose(%c) {perm = [1, 0]} %z = matmul(%y, %t) "
             "%w = relu(%z) %u = matmul(%w, %c) %o = narrow(%u) {axes = [0], starts = [0], ends = [130]} "
             "output \"o\" = %o }",
     .in = {130 * 136, 136 * 72, 80 * 72},
     .out = 130 * 72},
    /* channels last: windows, what is added, strides */
    {.text = "graph \"g\" { input %a : f32[1, 24, 14, 14] input %b : f32[24, 24, 3, 3] input %c : f32[40, 24, 1, 1] "
             "%x = conv(%a, %b) {pads = [1, 1, 1, 1]} %y = relu(%x) %z = conv(%y, %b) {pads = [1, 1, 1, 1]} "
             "%s = add(%z, %a) %r = relu(%s) %o = conv(%r, %c) {strides = [2, 2]} output \"o\" = %o }",
     .in = {24 * 196, 24 * 24 * 9, 40 * 24},
     .out = 40 * 49},
    /* parts whose sums take more bytes than the tiles */
    {.text = "graph \"g\" { input %a : f32[128, 512] input %b : f32[512, 128] %o = matmul(%a, %b) output \"o\" = %o }",
     .in = {128 * 512, 512 * 128},
     .out = 128 * 128},
    /* these are not run: large tiles */
    {.text = "graph \"g\" { input %a : f32[1280, 32] input %b : f32[32, 1664] %m = matmul(%a, %b) "
             "%o = narrow(%m) {axes = [0], starts = [1200], ends = [1280]} output \"o\" = %o }",
     .in = {1280 * 32, 32 * 1664},
     .out = 80 * 1664},
    /* attention, which has no matrices of its own here */
    {.text = "graph \"g\" { input %a : f32[1, 4, 70, 24] input %b : f32[1, 2, 90, 24] input %c : f32[1, 2, 90, 40] "
             "%o = attention(%a, %b, %c) {mode = \"causal\"} output \"o\" = %o }",
     .in = {4 * 70 * 24, 2 * 90 * 24, 2 * 90 * 40},
     .out = 4 * 70 * 40},
};
#define N_CASES (sizeof matrix_cases / sizeof *matrix_cases)
#define N_RUN (N_CASES - 2)
static const berth_compute matrix_kinds[] = {BERTH_COMPUTE_F16, BERTH_COMPUTE_BF16};

#define MOST 140000u
static float matrix_data[MOST], matrix_want[MOST], matrix_got[MOST];

static void matrix_fill(const matrix_case *c, size_t i, uint64_t *seed) {
  assert_true(c->in[i] <= MOST && c->out <= MOST);
  for (size_t k = 0; k < c->in[i]; k++) matrix_data[k] = test_random_f32(seed);
}

static void matrix_run(const matrix_case *c, const char *device, berth_compute compute, float *out) {
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  uint64_t seed = 7;
  plan.compute = compute;
  plan.gpu_profile = strcmp(device, "interp") == 0 ? "cooperative" : NULL;
  desc.device = device;
  desc.plan = &plan;
  TEST_OK(berth_graph_parse(ctx, c->text, strlen(c->text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (size_t i = 0; i < 3 && c->in[i] != 0; i++) {
    const char name[2] = {(char)('a' + (int)i), '\0'};
    matrix_fill(c, i, &seed);
    TEST_OK(berth_session_write(session, name, matrix_data, c->in[i] * sizeof *matrix_data, &err));
  }
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "o", out, c->out * sizeof *out, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static uint64_t matrix_at(const berth_plan *plan, const berth_graph *graph, const char *name) {
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  TEST_OK(berth_plan_slot(plan, berth_graph_find(graph, name), &slot, &err));
  assert_int_equal(slot.storage.type, BERTH_F32);
  return slot.offset;
}

static void matrix_play_on(berth__engine *engine, const matrix_case *c, const berth_plan *plan,
                           const berth_graph *graph, float *out) {
  const berth__device *device = &berth__vulkan_device;
  const berth__observer nobody = {0};
  berth__program *program;
  berth__block *block;
  berth_error err;
  uint64_t seed = 7;
  TEST_OK(device->block_create(engine, berth_plan_arena_size(plan), 64, NULL, &block, &err));
  TEST_OK(device->program_create(engine, plan, false, &program, &err));
  TEST_OK(device->program_bind(program, block, NULL, &err));
  for (size_t i = 0; i < 3 && c->in[i] != 0; i++) {
    const char name[2] = {(char)('a' + (int)i), '\0'};
    matrix_fill(c, i, &seed);
    TEST_OK(device->write(block, matrix_at(plan, graph, name), matrix_data, c->in[i] * sizeof *matrix_data, &err));
  }
  TEST_OK(berth__device_run(device, program, &nobody, &err));
  TEST_OK(device->read(block, matrix_at(plan, graph, "o"), out, c->out * sizeof *out, &err));
  device->program_destroy(program);
  device->block_destroy(block);
}

/* On a driver that has no matrices, with kernels in which every thread has whole ones. */
static void matrix_play(const matrix_case *c, const berth__render_units *units, berth_compute compute, float *out) {
  berth_context *ctx = test_context();
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth__engine *engine;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.device = "vulkan";
  desc.gpu_profile = "cooperative";
  desc.compute = compute;
  TEST_OK(berth_graph_parse(ctx, c->text, strlen(c->text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth__vulkan_device.open(ctx, NULL, 1, &engine, &err));
  engine->units = *units;
  engine->core.max_shared = plan->profile.loops.shared_bytes;
  matrix_play_on(engine, c, plan, graph, out);
  berth__vulkan_device.close(engine);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void matrix_compare(const matrix_case *c, const char *what, berth_compute compute, double tolerance) {
  double largest = 0;
  for (size_t i = 0; i < c->out; i++) largest = fmax(largest, fabs((double)matrix_want[i]));
  for (size_t i = 0; i < c->out; i++)
    if (!(fabs((double)matrix_want[i] - (double)matrix_got[i]) <= tolerance * largest))
      fail_msg("%s, %s %s: element %zu is %g, expected %g", berth_compute_name(compute), c->text, what, i,
               (double)matrix_got[i], (double)matrix_want[i]);
}

/* By the interpreter, which multiplies tiles itself. */
static void interpreted_matrices_give_what_the_cpu_gives(void **state) {
  static const double tolerance[] = {2e-3, 1.5e-2};
  (void)state;
  for (size_t i = 0; i < N_RUN; i++) {
    matrix_run(&matrix_cases[i], "cpu", BERTH_COMPUTE_F32, matrix_want);
    for (size_t k = 0; k < 2; k++) {
      matrix_run(&matrix_cases[i], "interp", matrix_kinds[k], matrix_got);
      matrix_compare(&matrix_cases[i], "interpreted", matrix_kinds[k], tolerance[k]);
    }
  }
}

/* As GLSL on a driver; the sums come in the same order, so all that differs is how a driver rounds. */
static void played_matrices_give_what_the_interpreter_gives(void **state) {
  static const berth__render_units units[] = {{.rows = 16, .columns = 16, .depth = 16, .lanes = 32, .is_played = true},
                                              {.rows = 8, .columns = 16, .depth = 16, .lanes = 32, .is_played = true},
                                              {.rows = 16, .columns = 8, .depth = 8, .lanes = 32, .is_played = true}};
  static const double tolerance[] = {1e-3, 8e-3}; /* what lies between products is rounded */
  (void)state;
  const char *reason = vulkan_test_start();
  if (reason != NULL) TEST_SKIP(reason);
  for (size_t i = 0; i < N_RUN; i++)
    for (size_t k = 0; k < 2; k++) {
      matrix_run(&matrix_cases[i], "interp", matrix_kinds[k], matrix_want);
      for (size_t u = 0; u < (i == 0 ? 3u : 1u); u++) {
        memset(matrix_got, 0, sizeof matrix_got);
        matrix_play(&matrix_cases[i], &units[u], matrix_kinds[k], matrix_got);
        matrix_compare(&matrix_cases[i], "played", matrix_kinds[k], tolerance[k]);
      }
    }
  vulkan_test_silent();
}

/* ---- SPIR-V ---- */

/* What is checked of a module that uses matrices: each is defined once, for what it is for, with its type of elements;
 * products take one of each; layouts are numbers; nothing of the other extension is left. */
#define MOST_IDS 65536u
typedef struct spirv_facts {
  uint32_t type_of[MOST_IDS];  /* of results */
  uint32_t use_of[MOST_IDS];   /* of types of matrices: 1 + the use */
  uint32_t value_of[MOST_IDS]; /* 1 + a constant of 32 bits */
  uint32_t encoded[MOST_IDS];  /* a type f32 is 1, f16 2, bf16 3 */
  uint32_t n_types, n_loads, n_stores, n_products, n_capabilities;
} spirv_facts;

static spirv_facts facts;

static void check_access(const uint32_t *w, uint32_t n, uint32_t layout, uint32_t matrix, uint32_t rows_of) {
  (void)rows_of;
  assert_true(n >= layout + 2);
  assert_true(facts.value_of[w[layout]] == 1 || facts.value_of[w[layout]] == 2);
  assert_true(facts.use_of[facts.type_of[matrix]] != 0);
  assert_true(n == layout + 4); /* memory operands and their scope */
}

static void check_word(uint32_t code, const uint32_t *w, uint32_t n, bool is_bf16) {
  switch (code) {
    case 17: /* OpCapability */
      assert_int_not_equal(w[1], 5357);
      facts.n_capabilities += w[1] == 6022 || (is_bf16 && (w[1] == 5116 || w[1] == 5118));
      break;
    case 10: assert_null(strstr((const char *)&w[1], "NV_cooperative")); break; /* OpExtension */
    case 22: facts.encoded[w[1]] = w[2] == 32 ? 1 : n == 3 ? 2 : 3; break;      /* OpTypeFloat */
    case 43: facts.value_of[w[2]] = w[3] + 1; break;                            /* OpConstant */
    case 50: fail_msg("a specialization constant is left"); break;
    case 71: assert_true(w[2] != 1); break; /* OpDecorate: SpecId */
    case 4456:                              /* OpTypeCooperativeMatrixKHR */
      assert_int_equal(n, 7);
      assert_in_range(facts.value_of[w[6]], 1, 3);
      assert_int_equal(facts.value_of[w[3]], 1 + 3); /* a subgroup */
      assert_int_equal(facts.value_of[w[4]], 1 + 16);
      assert_int_equal(facts.value_of[w[5]], 1 + 16);
      assert_int_equal(facts.encoded[w[2]], facts.value_of[w[6]] == 3 ? 1 : is_bf16 ? 3 : 2);
      facts.use_of[w[1]] = facts.value_of[w[6]];
      facts.n_types++;
      break;
    case 4457: /* OpCooperativeMatrixLoadKHR */
      facts.type_of[w[2]] = w[1];
      check_access(w, n, 4, w[2], 0);
      facts.n_loads++;
      break;
    case 4458: /* OpCooperativeMatrixStoreKHR */
      check_access(w, n, 3, w[2], 0);
      facts.n_stores++;
      break;
    case 4459: /* OpCooperativeMatrixMulAddKHR */
      assert_int_equal(n, 6);
      for (uint32_t i = 0; i < 3; i++) assert_int_equal(facts.use_of[facts.type_of[w[3 + i]]], i + 1);
      assert_int_equal(facts.use_of[w[1]], 3);
      facts.type_of[w[2]] = w[1];
      facts.n_products++;
      break;
    case 61: /* OpLoad */ facts.type_of[w[2]] = w[1]; break;
    default: assert_true(code < 5357 || code > 5362); break;
  }
}

static void check_module(const berth__spirv *m, bool is_bf16) {
  memset(&facts, 0, sizeof facts);
  assert_true(m->words[3] <= MOST_IDS);
  size_t at = 5;
  while (at < m->n_words) {
    const uint32_t n = m->words[at] >> 16;
    assert_true(n != 0 && n <= m->n_words - at);
    check_word(m->words[at] & 0xffffu, m->words + at, n, is_bf16);
    at += n;
  }
  assert_int_equal(facts.n_types, 3);
  assert_int_equal(facts.n_capabilities, is_bf16 ? 3 : 1);
  assert_true(facts.n_loads > 1 && facts.n_stores > 0 && facts.n_products > 0);
}

/* BERTH_TEST_KEEP: a folder for the modules, to be looked at. */
static void keep_module(const berth__spirv *m, size_t i, size_t n, bool is_bf16) {
  const char *folder = getenv("BERTH_TEST_KEEP");
  char path[4096];
  if (folder == NULL) return;
  snprintf(path, sizeof path, "%s/%zu-%zu-%s.spv", folder, i, n, is_bf16 ? "bf16" : "f16");
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(m->words, 4, m->n_words, file), m->n_words);
  fclose(file);
}

/* How many kernels with sums it has. */
static size_t check_recipe(berth_context *ctx, berth__spirv_compiler *compiler, const berth__recipe *recipe, size_t i,
                           bool is_bf16) {
  const berth__render_desc desc = {.keeps_nan = true, .units = {.rows = 16, .columns = 16, .depth = 16, .lanes = 32}};
  size_t found = 0;
  berth_error err;
  for (size_t n = 0; n < recipe->n_kernels; n++) {
    berth__text source;
    berth__spirv spirv;
    if (recipe->kernels[n]->n_sums == 0) continue;
    berth__text_init(&source, ctx, NULL, NULL);
    TEST_OK(berth__render_glsl(recipe->kernels[n], &desc, &source, &err));
    TEST_OK(berth__text_finish(&source, &err));
    TEST_OK(berth__spirv_compile(compiler, recipe->kernels[n]->name, source.data, source.size, &spirv, &err));
    TEST_OK(berth__spirv_to_khr(ctx, is_bf16, &spirv, &err));
    check_module(&spirv, is_bf16);
    keep_module(&spirv, i, n, is_bf16);
    berth__free(ctx, spirv.words);
    berth__text_free(&source);
    found++;
  }
  return found;
}

static void kernels_become_modules_of_the_khr_extension(void **state) {
  berth_context *ctx = test_context();
  berth__spirv_compiler *compiler;
  berth_error err;
  (void)state;
  if (berth__spirv_compiler_create(ctx, &compiler, &err) != BERTH_OK) {
    berth_context_destroy(ctx);
    TEST_SKIP("there is no shaderc here");
  }
  for (size_t i = 0; i < N_CASES; i++)
    for (size_t k = 0; k < 2; k++) {
      berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
      berth__recipe *recipe;
      berth_graph *graph;
      berth_plan *plan;
      desc.device = "vulkan";
      desc.gpu_profile = "cooperative";
      desc.compute = matrix_kinds[k];
      TEST_OK(berth_graph_parse(ctx, matrix_cases[i].text, strlen(matrix_cases[i].text), &graph, &err));
      TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
      TEST_OK(berth__recipe_create(plan, &recipe, &err));
      const size_t n = check_recipe(ctx, compiler, recipe, i, matrix_kinds[k] == BERTH_COMPUTE_BF16);
      if ((n > 0) != (i + 1 < N_CASES)) /* all but attention */
        fail_msg("%zu kernels of %s", n, matrix_cases[i].text);
      berth__recipe_destroy(recipe);
      berth_plan_destroy(plan);
      berth_graph_destroy(graph);
    }
  berth__spirv_compiler_destroy(compiler);
  berth_context_destroy(ctx);
}

/* No module of ours: refused, and nothing is lost. */
static void strange_modules_are_refused(void **state) {
  static const uint32_t strange[][9] = {
      {0x07230203, 0x10300, 0, 9, 0},                         /* no matrices */
      {0x07230203, 0x10300, 0, 9, 0, 0},                      /* an instruction of no words */
      {0x07230203, 0x10300, 0, 9, 0, 9u << 16 | 71},          /* one past the end */
      {0x07230203, 0x10300, 0, 9, 0, 4u << 16 | 71, 1, 1, 3}, /* a specialization constant of nobody's */
  };
  static const size_t sizes[] = {5, 6, 6, 9};
  berth_context *ctx = test_context();
  berth_error err;
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    berth__spirv m = {.words = berth__alloc_array(ctx, sizes[i], 4), .n_words = sizes[i]};
    assert_non_null(m.words);
    memcpy(m.words, strange[i], sizes[i] * 4);
    test_expect_error(berth__spirv_to_khr(ctx, false, &m, &err), BERTH_INTERNAL, &err, "not as expected");
    assert_int_equal(m.n_words, sizes[i]);
    berth__free(ctx, m.words);
  }
  berth_context_destroy(ctx);
}

/* ---- Profiles ---- */

/* A plan without the GPU: units are there with the profile that has cooperative matrices, for the kinds that it has. */
static void only_cooperative_profiles_have_units(void **state) {
  static const struct {
    const char *profile;
    berth_compute compute;
    bool is_there;
  } all[] = {{"cooperative", BERTH_COMPUTE_F16, true},
             {"cooperative", BERTH_COMPUTE_BF16, true},
             {"cooperative", BERTH_COMPUTE_TF32, false},
             {"nvidia", BERTH_COMPUTE_F16, false},
             {"generic", BERTH_COMPUTE_BF16, false}};
  berth_context *ctx = test_context();
  (void)state;
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    berth_graph *graph;
    berth_plan *plan;
    berth_error err;
    desc.device = "vulkan";
    desc.gpu_profile = all[i].profile;
    desc.compute = all[i].compute;
    TEST_OK(berth_graph_parse(ctx, matrix_cases[0].text, strlen(matrix_cases[0].text), &graph, &err));
    const berth_status status = berth_plan_create(graph, &desc, &plan, &err);
    if (all[i].is_there)
      TEST_OK(status);
    else
      test_expect_error(status, BERTH_UNSUPPORTED, &err, "VK_KHR_cooperative_matrix");
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_largest_size_is_taken),
                                     cmocka_unit_test(other_matrices_are_left),
                                     cmocka_unit_test(only_cooperative_profiles_have_units),
                                     cmocka_unit_test(kernels_become_modules_of_the_khr_extension),
                                     cmocka_unit_test(strange_modules_are_refused),
                                     cmocka_unit_test(interpreted_matrices_give_what_the_cpu_gives),
                                     cmocka_unit_test(played_matrices_give_what_the_interpreter_gives)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
static void nothing_to_test(void **state) {
  (void)state;
  TEST_SKIP("this build has no device vulkan");
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(nothing_to_test)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
