/* Recipes: what programs of GPUs are made from. */
#include "device/cuda/compiler.h"
#include "device/gpu/recipe.h"
#include "support.h"

static berth_plan *plan_of(berth_context *ctx, const char *text, const char *device, uint32_t flags) {
  berth_error err;
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.device = device;
  if (strcmp(device, "cpu") != 0 || flags != 0)
    desc.gpu_profile = "minimal"; /* the form of kernels follows the profile */
  desc.flags |= flags;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  berth_graph_destroy(graph);
  return plan;
}

static berth__recipe *recipe_of(const berth_plan *plan) {
  berth_error err;
  berth__recipe *recipe;
  TEST_OK(berth__recipe_create(plan, &recipe, &err));
  return recipe;
}

/* Two that do not touch each other's bytes go side by side; what reads them waits. */
static void waits_only_where_bytes_conflict(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(ctx,
                             "graph \"g\" { input %x : f32[8, 8] input %y : f32[8, 8] %a = softmax(%x) "
                             "%b = softmax(%y) %c = matmul(%a, %b) output \"a\" = %a output \"b\" = %b "
                             "output \"c\" = %c }",
                             "interp", 0);
  berth__recipe *recipe = recipe_of(plan);
  assert_int_equal(recipe->n_dispatches, 3);
  assert_false(recipe->dispatches[0].waits || recipe->dispatches[1].waits);
  assert_true(recipe->dispatches[2].waits);
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

/* Two chains whose steps come one chain after the other: as phases they go side by side, and what waits for another
 * still does. */
static void phases_are_as_few_as_bytes_allow(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(ctx,
                             "graph \"g\" { input %x : f32[8, 8] input %y : f32[8, 8] %a = softmax(%x) "
                             "%b = cumsum(%a) {axis = 0} %c = softmax(%b) %d = softmax(%y) %e = cumsum(%d) {axis = 0} "
                             "%f = softmax(%e) output \"a\" = %a output \"b\" = %b output \"c\" = %c "
                             "output \"d\" = %d output \"e\" = %e output \"f\" = %f }",
                             "interp", 0);
  berth__recipe *before = recipe_of(plan), *recipe = recipe_of(plan);
  size_t n_waits = 0;
  TEST_OK(berth__recipe_phases(recipe, &err));
  assert_int_equal(recipe->n_dispatches, before->n_dispatches);
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    n_waits += recipe->dispatches[i].waits;
    for (size_t k = 0, since = 0; k < i; k++) { /* a barrier stands between two that touch the same bytes */
      if (!berth__recipe_conflict(recipe, &recipe->dispatches[k], &recipe->dispatches[i])) continue;
      for (size_t w = k + 1; w <= i; w++) since += recipe->dispatches[w].waits;
      assert_true(since > 0);
      assert_true(recipe->dispatches[k].step < recipe->dispatches[i].step);
    }
  }
  assert_int_equal(recipe->n_dispatches, 6);
  assert_int_equal(n_waits, 2);
  berth__recipe_destroy(before);
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

/* Where kernels begin early, those of a phase become one. No kernel may store what a product loads before it waits;
 * otherwise the product begins when all before it have ended. */
static void phases_become_kernels(void **state) {
  static const char *const texts[] = {
      "graph \"g\" { input %x : f32[1, 64] param %v : f32[64, 64] param %w : f32[64, 64] "
      "%p = transpose(%v) {perm = [1, 0]} %q = transpose(%w) {perm = [1, 0]} %s = softmax(%x) %a = matmul(%s, %p) "
      "%b = matmul(%s, %q) output \"a\" = %a output \"b\" = %b }",
      "graph \"g\" { input %x : f32[1, 64] input %v : f32[64, 64] %r = softmax(%v) %s = softmax(%x) "
      "%p = transpose(%r) {perm = [1, 0]} %a = matmul(%s, %p) output \"a\" = %a output \"r\" = %r }"};
  (void)state;
  for (int is_stored = 0; is_stored < 2; is_stored++) {
    berth_error err;
    berth_context *ctx = test_context();
    berth_graph *graph;
    berth_plan *plan;
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.device = "interp";
    desc.gpu_profile = "hopper";
    TEST_OK(berth_graph_parse(ctx, texts[is_stored], strlen(texts[is_stored]), &graph, &err));
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    berth__recipe *recipe = recipe_of(plan);
    const size_t before = recipe->n_dispatches;
    TEST_OK(berth__recipe_phases(recipe, &err));
    TEST_OK(berth__recipe_merge(recipe, &err));
    berth__recipe_forget_unused(recipe);
    berth__recipe_mark_early(recipe);
    const berth__dispatch *last = &recipe->dispatches[recipe->n_dispatches - 1];
    assert_true(is_stored || recipe->n_dispatches == before - 1);
    for (size_t i = 1; i < recipe->n_dispatches; i++) assert_true(is_stored || recipe->dispatches[i].waits);
    for (size_t i = 0; i < recipe->n_dispatches; i++) assert_true(recipe->dispatches[i].kernel < recipe->n_kernels);
    assert_int_equal(last->begins_early, !is_stored);
    berth__recipe_destroy(recipe);
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
    berth_context_destroy(ctx);
  }
}

/* How many buffers of each dispatch CUDA's compiler may take for memory that no kernel writes, and which dispatches
 * begin early. */
static void expect_constant(const char *text, const char *profile, const char *counts, const char *early) {
  static const char word[] = "__restrict__ b";
  berth_error err;
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.device = "cuda";
  desc.gpu_profile = profile;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  berth__recipe *recipe = recipe_of(plan);
  TEST_OK(berth__recipe_phases(recipe, &err));
  berth__recipe_mark_early(recipe);
  assert_int_equal(recipe->n_dispatches, strlen(counts));
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    berth__text source;
    int n = 0;
    TEST_OK(berth__cuda_render(recipe, recipe->dispatches[i].kernel, &source, &err));
    for (const char *at = strstr(source.data, word); at != NULL; at = strstr(at + 1, word)) n++;
    berth__text_free(&source);
    if (n != counts[i] - '0') fail_msg("%s: dispatch %zu has %d of them", profile, i, n);
    assert_int_equal(recipe->dispatches[i].begins_early, early[i] == 'y');
  }
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* Compilers move loads from such memory across an `await`. So what the phase before makes is none, nor are weights that
 * are loaded before it; of rounds that load and store, which need it, none begins early. */
static void what_is_awaited_is_not_constant(void **state) {
  static const char few[] =
      "graph \"g\" { input %x : f32[1, 64] param %w : f32[64, 64] %p = transpose(%w) {perm = [1, 0]} %r = relu(%x) "
      "%a = matmul(%r, %p) %s = softmax(%a) %c = cumsum(%s) {axis = 1} output \"c\" = %c "
      "output \"a\" = %a output \"s\" = %s }";
  static const char many[] =
      "graph \"g\" { input %x : f32[1024, 1024] %s = softmax(%x) %e = exp(%s) %f = mul(%s, %e) "
      "output \"e\" = %e output \"f\" = %f }";
  (void)state;
  expect_constant(few, "hopper", "1000", "yyyy");
  expect_constant(few, "nvidia", "1211", "yyyy");
  expect_constant(many, "hopper", "111", "ynn");
}

static void equal_layers_share_a_kernel(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(ctx,
                             "graph \"g\" { input %x : f32[4, 8] param %v : f32[8, 8] param %w : f32[8, 8] "
                             "%a = matmul(%x, %v) %b = matmul(%a, %w) output \"b\" = %b }",
                             "interp", 0);
  berth__recipe *recipe = recipe_of(plan);
  assert_int_equal(recipe->n_kernels, 1);
  assert_int_equal(recipe->n_dispatches, 2);
  assert_true(recipe->dispatches[0].spans[1].at != recipe->dispatches[1].spans[1].at);
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

/* Element-wise nodes after a product and after a convolution are part of it. */
static void tails_are_fused(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(ctx,
                             "graph \"g\" { input %x : f32[1, 2, 6, 6] param %w : f32[4, 2, 3, 3] param %v : f32[4, 5] "
                             "%c = conv(%x, %w) %r = relu(%c) %f = reshape(%r) {shape = [16, 4]} %p = matmul(%f, %v) "
                             "%s = sigmoid(%p) %t = mul(%p, %s) output \"t\" = %t }",
                             "interp", 0);
  berth__recipe *recipe = recipe_of(plan);
  assert_int_equal(recipe->n_dispatches, 2);
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

/* What `plan --f32-uniform` says is what a GPU takes. */
static void plans_are_as_large_as_uniform_ones(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[1, 3, 16, 16] input %i : i64[7] param %w : f32[8, 3, 3, 3] param %e : f32[50, 12] "
      "%c = conv(%x, %w) %r = relu(%c) %m = max_pool(%r) {kernel = [2, 2], strides = [2, 2]} %g = gather(%e, %i) "
      "%s = softmax(%g) output \"m\" = %m output \"s\" = %s }";
  (void)state;
  berth_context *ctx = test_context();
  berth_plan *here = plan_of(ctx, text, "cpu", BERTH_PLAN_F32_UNIFORM), *there = plan_of(ctx, text, "interp", 0);
  assert_int_equal(berth_plan_arena_size(here), berth_plan_arena_size(there));
  assert_int_equal(test_plan_info(here).activations_size, test_plan_info(there).activations_size);
  berth_plan_destroy(here);
  berth_plan_destroy(there);
  berth_context_destroy(ctx);
}

static void a_plan_of_other_elements_is_refused(void **state) {
  (void)state;
  berth_error err;
  berth__recipe *recipe;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(ctx, "graph \"g\" { input %x : f32[4] %y = relu(%x) output \"y\" = %y }", "cpu", 0);
  test_expect_error(berth__recipe_create(plan, &recipe, &err), BERTH_INVALID, &err, "four bytes");
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

typedef struct collected {
  char data[16384];
  size_t size, most; /* most: calls that are taken; then it stops */
} collected;

static berth_status collect(void *user, const char *part, size_t size) {
  collected *t = user;
  if (t->most-- == 0) return BERTH_IO;
  if (t->size + size < sizeof t->data) memcpy(t->data + t->size, part, size);
  t->size += size;
  return BERTH_OK;
}

static void kernels_can_be_read(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth_plan *plan = plan_of(
      ctx, "graph \"g\" { input %x : f32[4, 8] %y = softmax(%x) %z = reduce_sum(%y) output \"z\" = %z }", "interp", 0);
  collected all = {.most = SIZE_MAX}, none = {.most = 0};
  TEST_OK(berth_plan_kernels(plan, collect, &all, &err));
  assert_true(all.size < sizeof all.data);
  assert_non_null(strstr(all.data, "kernel softmax"));
  assert_non_null(strstr(all.data, "\n\nkernel reduce_sum"));
  assert_int_equal(berth_plan_kernels(plan, collect, &none, &err), BERTH_IO);
  test_expect_error(berth_plan_kernels(plan, NULL, NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_plan_kernels(NULL, collect, &all, &err), BERTH_INVALID, &err, NULL);
  berth_plan_destroy(plan);
  berth_context_destroy(ctx);
}

static berth_status make_recipe(berth_context *ctx, berth_error *err, void *user) {
  static const char text[] =
      "graph \"g\" { input %x : f32[4, 8] param %w : f32[8, 8] %a = matmul(%x, %w) %b = softmax(%a) output \"b\" = %b "
      "}";
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth__recipe *recipe = NULL;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  (void)user;
  desc.device = "interp";
  desc.gpu_profile = "hopper"; /* dispatches are merged there */
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  if (status == BERTH_OK) status = berth__recipe_create(plan, &recipe, err);
  if (status == BERTH_OK) status = berth__recipe_phases(recipe, err);
  if (status == BERTH_OK) status = berth__recipe_merge(recipe, err);
  berth__recipe_destroy(recipe);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void survives_every_failed_allocation(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(make_recipe, NULL) > 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(waits_only_where_bytes_conflict),
      cmocka_unit_test(phases_are_as_few_as_bytes_allow),
      cmocka_unit_test(what_is_awaited_is_not_constant),
      cmocka_unit_test(equal_layers_share_a_kernel),
      cmocka_unit_test(phases_become_kernels),
      cmocka_unit_test(tails_are_fused),
      cmocka_unit_test(plans_are_as_large_as_uniform_ones),
      cmocka_unit_test(a_plan_of_other_elements_is_refused),
      cmocka_unit_test(survives_every_failed_allocation),
      cmocka_unit_test(kernels_can_be_read),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
