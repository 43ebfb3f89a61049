/* Profiles of GPUs: what a plan is made with is what its program is made with. BERTH_TEST_DEVICE names a device;
 * without it, it is "interp". */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "plan/plan.h"
#include "support.h"

#define HEADS 2
#define SIZE 8

static berth_graph *attention_of(berth_context *ctx, int queries, int keys) {
  char text[512];
  berth_error err;
  berth_graph *graph;
  snprintf(text, sizeof text,
           "graph \"a\" { input %%q : f32[1, %d, %d, %d] input %%k : f32[1, %d, %d, %d] input %%v : f32[1, %d, %d, %d] "
           "%%o = attention(%%q, %%k, %%v) output \"o\" = %%o }",
           HEADS, queries, SIZE, HEADS, keys, SIZE, HEADS, keys, SIZE);
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  return graph;
}

static void write_random(berth_session *session, const char *name, size_t count, uint64_t *seed) {
  berth_error err;
  float *values = malloc(count * sizeof *values);
  assert_non_null(values);
  for (size_t i = 0; i < count; i++) values[i] = test_random_f32(seed);
  TEST_OK(berth_session_write(session, name, values, count * sizeof *values, &err));
  free(values);
}

/* Returns the scratch that was planned. */
static uint64_t attend(const berth_graph *graph, const char *device, const char *profile, int queries, int keys,
                       float *out) {
  berth_error err;
  berth_session *session;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  uint64_t seed = 11;
  plan.gpu_profile = profile;
  desc.plan = &plan;
  desc.device = device;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  write_random(session, "q", (size_t)(HEADS * queries * SIZE), &seed);
  write_random(session, "k", (size_t)(HEADS * keys * SIZE), &seed);
  write_random(session, "v", (size_t)(HEADS * keys * SIZE), &seed);
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "o", out, (size_t)(HEADS * queries * SIZE) * sizeof *out, &err));
  const berth_plan *made = berth_session_plan(session);
  uint64_t scratch = 0;
  for (size_t i = 0; i < made->n_buffers; i++)
    if (made->buffers[i].kind == BERTH__BUFFER_SCRATCH) scratch += made->buffers[i].size;
  if (profile != NULL) assert_string_equal(berth_plan_gpu_profile(made), profile);
  berth_session_destroy(session);
  return scratch;
}

/* Few queries and many keys: real GPUs cut the keys into chunks, each with its part of the result in scratch. */
static void long_keys(void **state) {
  (void)state;
  static const int all_keys[] = {1, 255, 256, 1000, 4096}, all_queries[] = {1, 7, 64};
  berth_context *ctx = test_context();
  static float want[HEADS * 64 * SIZE], got[HEADS * 64 * SIZE];
  for (size_t k = 0; k < 5; k++) {
    for (size_t q = 0; q < 3; q++) {
      const int keys = all_keys[k], queries = all_queries[q];
      berth_graph *graph = attention_of(ctx, queries, keys);
      attend(graph, "cpu", NULL, queries, keys, want);
      const uint64_t scratch = attend(graph, test_gpu(), "generic", queries, keys, got);
      assert_int_equal(scratch != 0, keys >= 256);
      for (int i = 0; i < HEADS * queries * SIZE; i++)
        if (!(fabsf(want[i] - got[i]) <= 2e-5f))
          fail_msg("%d queries, %d keys: element %d is %g, not %g", queries, keys, i, (double)got[i], (double)want[i]);
      berth_graph_destroy(graph);
    }
  }
  berth_context_destroy(ctx);
}

#define ROWS 37
#define KEYS 50
/* Heads that share keys and a window: no products, but blocks of queries and keys where sharing pays. */
static const char gradients[] =
    "graph \"g\" { input %q : f32[1, 4, 37, 8] input %k : f32[1, 2, 50, 8] input %v : f32[1, 2, 50, 8]\n"
    "input %d : f32[1, 4, 37, 8] %x, %y, %z = attention_grad(%q, %k, %v, _, _, _, _, %d)\n"
    "{mode = \"sliding_window\", window = 20} output \"x\" = %x output \"y\" = %y output \"z\" = %z }";

static void differentiate(const berth_graph *graph, const char *device, const char *profile, float *out) {
  static const char *const in[] = {"q", "k", "v", "d"}, *const names[] = {"x", "y", "z"};
  static const size_t counts[] = {4 * ROWS * SIZE, 2 * KEYS * SIZE, 2 * KEYS * SIZE, 4 * ROWS * SIZE};
  berth_error err;
  berth_session *session;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  uint64_t seed = 5;
  plan.gpu_profile = profile;
  desc.plan = &plan;
  desc.device = device;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (int i = 0; i < 4; i++) write_random(session, in[i], counts[i], &seed);
  TEST_OK(berth_session_run(session, &err));
  for (int i = 0; i < 3; i++) {
    TEST_OK(berth_session_read(session, names[i], out, counts[i] * sizeof *out, &err));
    out += counts[i];
  }
  berth_session_destroy(session);
}

static void gradients_in_blocks(void **state) {
  enum {
    COUNT = 4 * ROWS * SIZE + 4 * KEYS * SIZE
  };
  static float want[COUNT], got[COUNT];
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_parse(ctx, gradients, sizeof gradients - 1, &graph, &err));
  differentiate(graph, "cpu", NULL, want);
  differentiate(graph, test_gpu(), "generic", got);
  for (int i = 0; i < COUNT; i++)
    if (!(fabsf(want[i] - got[i]) <= 2e-5f)) fail_msg("element %d is %g, not %g", i, (double)got[i], (double)want[i]);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static uint64_t planned(const berth_graph *graph, const char *device, const char *profile, char name[64]) {
  berth_error err;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.device = device;
  desc.gpu_profile = profile;
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  const uint64_t size = berth_plan_arena_size(plan);
  const char *used = berth_plan_gpu_profile(plan);
  snprintf(name, 64, "%s", used != NULL ? used : "none");
  berth_plan_destroy(plan);
  return size;
}

/* A plan that names no profile asks the device, as a session does: what one tells the other takes. */
static void a_plan_tells_what_a_session_takes(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph = attention_of(ctx, 1, 1000);
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  char name[64];
  desc.device = test_gpu();
  const uint64_t size = planned(graph, test_gpu(), NULL, name);
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  assert_string_equal(berth_plan_gpu_profile(berth_session_plan(session)), name);
  assert_int_equal(berth_plan_arena_size(berth_session_plan(session)), size);
  berth_session_destroy(session);
  assert_true(planned(graph, test_gpu(), "generic", name) > planned(graph, test_gpu(), "cpu", name));
  assert_string_equal(name, "cpu");
  planned(graph, "cpu", NULL, name);
  assert_string_equal(name, "none");
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* A clone is planned with what was named, although the name may be gone. */
static void a_clone_has_the_same(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph = attention_of(ctx, 1, 1000);
  berth_session *session, *clone;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  char name[] = "minimal";
  plan.gpu_profile = name;
  desc.plan = &plan;
  desc.device = test_gpu();
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  memset(name, 'x', sizeof name - 1);
  TEST_OK(berth_session_clone(session, &clone, &err));
  assert_string_equal(berth_plan_gpu_profile(berth_session_plan(clone)), "minimal");
  berth_session_destroy(clone);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void wrong_names(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph = attention_of(ctx, 1, 8);
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.device = test_gpu();
  desc.gpu_profile = "abacus";
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_INVALID, &err, "abacus");
  desc.device = "cpu";
  desc.gpu_profile = "nvidia";
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_INVALID, &err, "no GPU");
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

typedef struct sought {
  char text[16];
  bool is_there;
} sought;

static berth_status take_text(void *user, const char *text, size_t size) {
  sought *s = user;
  const size_t length = strlen(s->text);
  for (size_t i = 0; i + length <= size; i++) s->is_there = s->is_there || memcmp(text + i, s->text, length) == 0;
  return BERTH_OK;
}

/* Whether a kernel has tiles of factors that are rounded so. */
static bool has_tiles(const berth_graph *graph, const berth_plan_desc *desc) {
  berth_error err;
  berth_plan *plan;
  sought s = {.is_there = false};
  snprintf(s.text, sizeof s.text, ", %s, ", berth_compute_name(desc->compute));
  TEST_OK(berth_plan_create(graph, desc, &plan, &err));
  TEST_OK(berth_plan_kernels(plan, take_text, &s, &err));
  berth_plan_destroy(plan);
  return s.is_there;
}

/* Products are rounded where that is asked for, and what has no units for it says so. */
static void computing(void **state) {
  static const char text[] =
      "graph \"g\" { input %a : f32[64, 64] input %b : f32[64, 64] %o = matmul(%a, %b) output \"o\" = %o }";
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_compute compute;
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  desc.device = "interp";
  desc.gpu_profile = "generic";
  assert_true(has_tiles(graph, &desc)); /* of f32, by fours */
  desc.gpu_profile = "turing";
  assert_false(has_tiles(graph, &desc));
  desc.gpu_profile = "generic";
  for (int c = BERTH_COMPUTE_TF32X3; c <= BERTH_COMPUTE_F16; c++) {
    TEST_OK(berth_compute_from_name(berth_compute_name((berth_compute)c), &compute, &err));
    assert_int_equal(compute, c);
    desc.compute = compute;
    assert_true(has_tiles(graph, &desc));
  }
  desc.gpu_profile = "minimal";
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_UNSUPPORTED, &err, "no matrix units for f16");
  desc.gpu_profile = NULL;
  desc.device = "cpu";
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_UNSUPPORTED, &err, "--bf16");
  desc.compute = (berth_compute)9;
  test_expect_error(berth_plan_create(graph, &desc, &plan, &err), BERTH_INVALID, &err, "berth_compute 9");
  test_expect_error(berth_compute_from_name("f8", &compute, &err), BERTH_INVALID, &err, "not in 'f8'");
  assert_null(berth_compute_name((berth_compute)9));
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_keys),
                                     cmocka_unit_test(gradients_in_blocks),
                                     cmocka_unit_test(a_plan_tells_what_a_session_takes),
                                     cmocka_unit_test(a_clone_has_the_same),
                                     cmocka_unit_test(wrong_names),
                                     cmocka_unit_test(computing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
