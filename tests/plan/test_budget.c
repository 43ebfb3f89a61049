/* Budgets: met by reordering, recomputing and splitting; the results stay the same. */
#include <stdio.h>

#include "plan/budget.h"
#include "plan/budgeting.h"
#include "plan/small_graph.h"

/* ---- Splitting ---- */

/* Eight times as wide in between. */
#define MLP                                                                                         \
  "input %x : f32[64, 32]\nparam %u : f32[32, 256]\nparam %d : f32[256, 32]\nparam %b : f32[256]\n" \
  "%w = matmul(%x, %u)\n%s = add(%w, %b)\n%g = gelu(%s)\n%y = matmul(%g, %d)\n%n = layer_norm(%y)\noutput \"n\" = %n"

static void test_a_wide_middle_is_split(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx, MLP);
  const uint32_t flags[] = {0, BERTH_PLAN_REFERENCE};
  for (size_t i = 0; i < 2; i++) {
    berth_plan_desc desc = one_thread(flags[i]);
    TEST_OK(plan_with_share(f, &desc, 0.5, &err));
    const berth_plan_info info = test_plan_info(f->plan);
    assert_true(info.arena_size <= desc.budget);
    assert_int_equal(info.n_split, 1);
    assert_true(info.n_slices >= 2);
    assert_int_equal(info.n_recomputed, 0);
    TEST_OK(berth_plan_check(f->plan, &err));
    assert_same_results(f->graph, &desc, flags[i] ? BERTH_SESSION_REFERENCE : 0);
    berth_plan_destroy(f->plan);
    f->plan = NULL;
  }
}

/* Two wide branches from the same rows, multiplied. */
static void test_a_gated_middle_is_split(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx,
                         "input %x : f32[1, 64, 32]\nparam %u : f32[32, 256]\nparam %v : f32[32, 256]\n"
                         "param %d : f32[256, 32]\n%a = matmul(%x, %u)\n%b = matmul(%x, %v)\n%s = silu(%a)\n"
                         "%m = mul(%s, %b)\n%y = matmul(%m, %d)\n%r = add(%y, %x)\noutput \"r\" = %r");
  berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE);
  TEST_OK(plan_with_share(f, &desc, 0.3, &err));
  assert_true(test_plan_info(f->plan).n_split >= 1);
  assert_same_results(f->graph, &desc, BERTH_SESSION_REFERENCE);
}

/* What is read by rows and in another way too cannot be made row by row: turned around, or all of it at once. */
static void test_what_others_read_in_another_way_is_not_split(void **state) {
  static const char *const graphs[] = {
      "%t = transpose(%a) {perm = [1, 0]}\n%y = add(%a, %t)",
      "%y = matmul(%a, %a)",
      "%s = softmax(%a) {axis = 1}\n%t = transpose(%a) {perm = [1, 0]}\n%y = mul(%t, %s)",
      "%e = narrow(%a) {starts = [0], ends = [1]}\n%s = softmax(%a) {axis = 1}\n%y = add(%s, %e)",
  };
  fixture *f = *state;
  berth_error err;
  for (size_t i = 0; i < sizeof graphs / sizeof *graphs; i++) {
    char text[400];
    snprintf(text, sizeof text, "input %%x : f32[16, 16]\n%%a = tanh(%%x)\n%s\noutput \"y\" = %%y", graphs[i]);
    f->graph = parse_graph(f->ctx, text);
    for (double share = 0.95; share > 0.35; share -= 0.15) {
      berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE);
      const berth_status status = plan_with_share(f, &desc, share, &err);
      if (status == BERTH_OK)
        assert_same_results(f->graph, &desc, BERTH_SESSION_REFERENCE);
      else
        test_expect_error(status, BERTH_INFEASIBLE, &err, "the budget is");
      berth_plan_destroy(f->plan);
      f->plan = NULL;
    }
    berth_graph_destroy(f->graph);
    f->graph = NULL;
  }
}

/* What a conv net's block may be, from its input on. */
static uint32_t add_block(char *text, size_t size, uint32_t at, uint64_t *random, uint32_t n, int64_t *extent) {
  const uint32_t kernel = 1 + 2 * (uint32_t)(test_random(random) % 3),
                 stride = 1 + (uint32_t)(test_random(random) % 4) / 3;
  const uint32_t pad = kernel / 2, dilation = kernel > 1 && test_random(random) % 4 == 0 ? 2 : 1;
  at += (uint32_t)snprintf(text + at, size - at,
                           "param %%e%u : f32[32, 8, 1, 1]\n%%x%u_e = conv(%%x%u, %%e%u)\n%%x%u_r = relu(%%x%u_e)\n", n,
                           n, n, n, n, n);
  at += (uint32_t)snprintf(text + at, size - at,
                           "param %%k%u : f32[32, 1, %u, %u]\n%%x%u_k = conv(%%x%u_r, %%k%u) {group = 32, pads = [%u, "
                           "%u, %u, %u], strides = [%u, %u], dilations = [%u, %u]}\n",
                           n, kernel, kernel, n, n, n, pad, pad, pad, pad, stride, stride, dilation, dilation);
  const int64_t reach = (kernel - 1) * (int64_t)dilation + 1;
  *extent = (*extent + 2 * (int64_t)pad - reach) / (int64_t)stride + 1;
  const char *middle = "k";
  if (test_random(random) % 3 == 0 && *extent > 4) {
    at += (uint32_t)snprintf(text + at, size - at,
                             "%%x%u_p = %s(%%x%u_k) {kernel = [3, 3], strides = [1, 1], pads = [1, 1, 1, 1]}\n", n,
                             test_random(random) % 2 ? "max_pool" : "avg_pool", n);
    middle = "p";
  }
  const bool adds = stride == 1 && dilation == 1;
  at += (uint32_t)snprintf(text + at, size - at, "param %%d%u : f32[8, 32, 1, 1]\n%%x%u%s = conv(%%x%u_%s, %%d%u)\n", n,
                           n + 1, adds ? "_d" : "", n, middle, n);
  if (adds) at += (uint32_t)snprintf(text + at, size - at, "%%x%u = add(%%x%u_d, %%x%u)\n", n + 1, n + 1, n);
  return at;
}

/* Windows of all kinds: whatever is met gives what it gave before. */
static void test_blocks_with_windows(void **state) {
  fixture *f = *state;
  static const double shares[] = {0.85, 0.6, 0.4};
  uint32_t n_met = 0, n_split = 0;
  for (uint64_t seed = 1; seed <= 12; seed++) {
    char text[8192];
    uint64_t random = seed;
    int64_t extent = 24 + (int64_t)(test_random(&random) % 9);
    const uint32_t n_blocks = 1 + (uint32_t)(test_random(&random) % 3);
    uint32_t at = (uint32_t)snprintf(text, sizeof text, "input %%x0 : f32[%u, 8, %d, %d]\n", seed % 5 == 0 ? 3u : 1u,
                                     (int)extent, (int)extent);
    for (uint32_t i = 0; i < n_blocks; i++) at = add_block(text, sizeof text, at, &random, i, &extent);
    snprintf(text + at, sizeof text - at, "output \"y\" = %%x%u", n_blocks);
    f->graph = parse_graph(f->ctx, text);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
      berth_plan_desc desc = one_thread(BERTH_PLAN_INPUTS_DIE);
      berth_error err;
      berth_status status = plan_with_share(f, &desc, shares[i], &err);
      if (status == BERTH_OK) {
        n_met++;
        n_split += test_plan_info(f->plan).n_split != 0;
        assert_same_results(f->graph, &desc, 0);
      } else {
        test_expect_error(status, BERTH_INFEASIBLE, &err, "the budget is");
      }
      berth_plan_destroy(f->plan);
      f->plan = NULL;
    }
    berth_graph_destroy(f->graph);
    f->graph = NULL;
  }
  print_message("%u of 36 budgets were met, %u by splitting\n", n_met, n_split);
  assert_true(n_met > 12 && n_split > 8);
}

/* Tiles of Winograd convolutions, 4 x 4 or 2 x 2 pixels, whose values depend on all of their rows in the last bits. */
static void test_tiles_stay_whole(void **state) {
  static const uint32_t extents[] = {46, 33};
  static const double shares[] = {0.8, 0.6, 0.45, 0.35};
  fixture *f = *state;
  uint32_t n_split = 0;
  for (size_t e = 0; e < 2; e++) {
    char text[800];
    snprintf(text, sizeof text,
             "input %%x : f32[1, 1, %u, %u]\nparam %%a : f32[32, 1, 5, 5]\nparam %%b : f32[32, 32, 3, 3]\n"
             "param %%c : f32[16, 32, 3, 3]\nparam %%d : f32[4, 16, 3, 3]\n"
             "%%t = conv(%%x, %%a) {pads = [2, 2, 2, 2]}\n%%u = relu(%%t)\n%%v = conv(%%u, %%b) {pads = [1, 1, 1, 1]}\n"
             "%%w = relu(%%v)\n%%y = conv(%%w, %%c) {pads = [1, 1, 1, 1]}\n%%z = conv(%%y, %%d) {pads = [1, 1, 1, 1]}\n"
             "output \"z\" = %%z",
             extents[e], extents[e]);
    f->graph = parse_graph(f->ctx, text);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
      berth_plan_desc desc = one_thread(0);
      berth_error err;
      if (plan_with_share(f, &desc, shares[i], &err) == BERTH_OK) {
        n_split += test_plan_info(f->plan).n_split != 0;
        assert_same_results(f->graph, &desc, 0);
      }
      berth_plan_destroy(f->plan);
      f->plan = NULL;
    }
    berth_graph_destroy(f->graph);
    f->graph = NULL;
  }
  assert_true(n_split >= 4);
}

/* The CPU reads channels first, a few lines at a time: how many depends on the extents, and may not change a bit. */
static void test_a_first_convolution_in_passes(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph =
      parse_graph(f->ctx,
                  "input %x : f32[1, 3, 96, 96]\nparam %a : f32[32, 3, 3, 3]\nparam %b : f32[4, 32, 1, 1]\n"
                  "%c = conv(%x, %a) {pads = [1, 1, 1, 1], strides = [2, 2]}\n%r = clamp(%c) {min = 0, max = 6}\n"
                  "%y = conv(%r, %b)\noutput \"y\" = %y");
  berth_plan_desc desc = one_thread(0);
  TEST_OK(plan_with_share(f, &desc, 0.45, &err));
  assert_true(test_plan_info(f->plan).n_slices >= 4);
  assert_same_results(f->graph, &desc, 0);
}

/* Few outputs of transposed convolutions, whose cells of a stride by a stride are computed together: slices cut them
 * anywhere. */
static void test_cells_may_be_cut(void **state) {
  static const double shares[] = {0.9, 0.8, 0.7, 0.6};
  fixture *f = *state;
  uint32_t n_split = 0;
  f->graph = parse_graph(f->ctx,
                         "input %x : f32[1, 8, 15, 16]\nparam %a : f32[8, 3, 4, 4]\nparam %b : f32[3]\n"
                         "param %c : f32[3, 2, 5, 3]\n"
                         "%t = conv_transpose(%x, %a, %b) {strides = [2, 2], pads = [1, 1, 1, 1]}\n%u = tanh(%t)\n"
                         "%v = conv_transpose(%u, %c) {strides = [3, 2], pads = [2, 0, 1, 0]}\n%w = relu(%v)\n"
                         "%y = avg_pool(%w) {kernel = [3, 3], strides = [3, 3]}\noutput \"y\" = %y");
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    berth_plan_desc desc = one_thread(0);
    berth_error err;
    if (plan_with_share(f, &desc, shares[i], &err) == BERTH_OK) {
      n_split += test_plan_info(f->plan).n_split != 0;
      assert_same_results(f->graph, &desc, 0);
    }
    berth_plan_destroy(f->plan);
    f->plan = NULL;
  }
  assert_true(n_split >= 3);
}

/* What a budget of 1 names as the smallest is a budget that is met, and so is all above it: a search that
 * aims at that size misses it in this network. */
static void test_the_smallest_is_met(void **state) {
  static const unsigned above[] = {0, 1, 3, 10, 30, 80}; /* per cent */
  fixture *f = *state;
  f->graph = parse_graph(f->ctx,
                         "input %x : f32[1, 8, 40, 40]\n"
                         "%v0 = exp(%x)\n"
                         "param %w0 : f32[16, 8, 3, 3]\n"
                         "%c0 = conv(%v0, %w0) {pads = [1, 1, 1, 1]}\n"
                         "%v1 = tanh(%c0)\n"
                         "%v2 = max_pool(%v1) {kernel = [2, 2], strides = [2, 2]}\n"
                         "%v3 = max_pool(%v2) {kernel = [2, 2], strides = [2, 2]}\n"
                         "param %w3 : f32[16, 16, 3, 3]\n"
                         "%c3 = conv(%v3, %w3) {pads = [1, 1, 1, 1]}\n"
                         "%v4 = add(%c3, %v3)\n"
                         "param %w4 : f32[16, 16, 3, 3]\n"
                         "%c4 = conv(%v4, %w4) {pads = [1, 1, 1, 1]}\n"
                         "%v5 = add(%c4, %v4)\n"
                         "param %w5 : f32[4, 16, 3, 3]\n"
                         "%c5 = conv(%v5, %w5) {pads = [1, 1, 1, 1]}\n"
                         "%t5 = tanh(%c5)\n"
                         "%v6 = concat(%v5, %t5) {axis = 1}\n"
                         "param %w6 : f32[20, 20, 3, 3]\n"
                         "%c6 = conv(%v6, %w6) {pads = [1, 1, 1, 1]}\n"
                         "%v7 = tanh(%c6)\n"
                         "param %w7 : f32[40, 20, 3, 3]\n"
                         "%c7 = conv(%v7, %w7) {pads = [1, 1, 1, 1]}\n"
                         "%v8 = tanh(%c7)\n"
                         "param %w8 : f32[4, 40, 3, 3]\n"
                         "%c8 = conv(%v8, %w8) {pads = [1, 1, 1, 1]}\n"
                         "%t8 = tanh(%c8)\n"
                         "%v9 = concat(%v8, %t8) {axis = 1}\n"
                         "param %w9 : f32[44, 44, 3, 3]\n"
                         "%c9 = conv(%v9, %w9) {pads = [1, 1, 1, 1]}\n"
                         "%v10 = tanh(%c9)\n"
                         "%y = exp(%v10)\n"
                         "output \"y\" = %y");
  berth_plan_desc desc = one_thread(0);
  berth_error err;
  unsigned long long least;
  desc.budget = 1;
  assert_int_equal(berth_plan_create(f->graph, &desc, &f->plan, &err), BERTH_INFEASIBLE);
  const char *at = strstr(err.message, "needs ");
  assert_non_null(at);
  assert_int_equal(sscanf(at, "needs %llu", &least), 1);
  for (size_t i = 0; i < sizeof above / sizeof *above; i++) {
    desc.budget = least + least * above[i] / 100;
    TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
    assert_true(test_plan_info(f->plan).arena_size <= desc.budget);
    berth_plan_destroy(f->plan);
    f->plan = NULL;
  }
}

/* ---- Recomputing ---- */

/* %w is cheap to make and wide; it is read at once and again in the end, over the wide middle. */
#define LATE                                                                                            \
  "input %x : f32[16, 16]\nparam %u : f32[16, 256]\nparam %d : f32[256, 16]\n%w = matmul(%x, %u)\n"     \
  "%a = matmul(%w, %d)\n%s = softmax(%a) {axis = 0}\n%v = matmul(%s, %u)\n%c = cumsum(%v) {axis = 0}\n" \
  "%q = reduce_sum(%c) {axes = [1], keepdims = 1}\n%z = mul(%w, %q)\n%y = matmul(%z, %d)\noutput \"y\" = %y"

static void test_a_value_is_made_again(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx, LATE);
  berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE);
  TEST_OK(plan_with_share(f, &desc, 0.75, &err));
  const berth_plan_info info = test_plan_info(f->plan);
  assert_true(info.n_recomputed >= 1);
  assert_true(info.arena_size <= desc.budget);
  assert_same_results(f->graph, &desc, BERTH_SESSION_REFERENCE);
  assert_same_results(f->graph, &desc, BERTH_SESSION_REFERENCE);
}

/* A draw is never drawn again, and what an output shows stays. */
static void test_what_cannot_be_made_again(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx,
                         "param %u : f32[16, 256]\nparam %d : f32[256, 16]\ninput %x : f32[16, 256]\n"
                         "%w = random_uniform(%x)\n%a = matmul(%w, %d)\n%s = softmax(%a) {axis = 0}\n"
                         "%v = matmul(%s, %u)\n%c = cumsum(%v) {axis = 0}\n"
                         "%q = reduce_sum(%c) {axes = [1], keepdims = 1}\n%z = mul(%w, %q)\noutput \"z\" = %z");
  berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE | BERTH_PLAN_INPUTS_OUTSIDE);
  test_expect_error(plan_with_share(f, &desc, 0.75, &err), BERTH_INFEASIBLE, &err, "the budget is");
}

/* ---- Any graph ---- */

/* Bit for bit, whatever was done. */
static void test_random_graphs(void **state) {
  fixture *f = *state;
  uint32_t n_met = 0, n_again = 0, n_split = 0;
  for (uint64_t seed = 1; seed <= 600; seed++) {
    f->graph = small_graph_with(f->ctx, seed + 77, 12 + (uint32_t)(seed % 20), seed % 2 == 0);
    berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE | (seed % 3 == 0 ? BERTH_PLAN_INPUTS_DIE : 0u));
    berth_error err;
    berth_status status = plan_with_share(f, &desc, seed % 5 == 0 ? 0.7 : 0.9, &err);
    if (status == BERTH_OK) {
      const berth_plan_info info = test_plan_info(f->plan);
      n_met++;
      n_again += info.n_recomputed != 0;
      n_split += info.n_split != 0;
      TEST_OK(berth_plan_check(f->plan, &err));
      assert_same_results(f->graph, &desc, BERTH_SESSION_REFERENCE);
    } else {
      test_expect_error(status, BERTH_INFEASIBLE, &err, "the budget is");
    }
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
  print_message("of 600 budgets %u were met, %u by recomputing, %u by splitting\n", n_met, n_again, n_split);
  assert_true(n_met > 8 && n_again > 3 && n_split > 2);
}

/* ---- What is said ---- */

static void test_infeasible(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx, MLP);
  berth_plan_desc desc = one_thread(0);
  test_expect_error(plan_with_share(f, &desc, 0.05, &err), BERTH_INFEASIBLE, &err, "groups of nodes in");
  assert_null(f->plan);
  desc.budget = 100; /* less than the weights */
  test_expect_error(berth_plan_create(f->graph, &desc, &f->plan, &err), BERTH_INFEASIBLE, &err,
                    "the budget is 100 bytes");
  desc.flags = BERTH_PLAN_NO_PASSES; /* the graph as it is */
  test_expect_error(plan_with_share(f, &desc, 0.5, &err), BERTH_INFEASIBLE, &err, "the budget is");
  assert_null(strstr(err.message, "slices"));
  berth_graph_destroy(f->graph); /* what it says adds up */
  f->graph = parse_graph(f->ctx, "state %s : f32[16, 16] = zeros\n%t = tanh(%s)\nupdate %s = %t\noutput \"t\" = %t");
  desc = one_thread(0);
  desc.budget = 100;
  test_expect_error(berth_plan_create(f->graph, &desc, &f->plan, &err), BERTH_INFEASIBLE, &err,
                    "needs 1024 (weights 0, states 1024, activations 0, scratch 0, preparation 0)");
}

static void test_a_budget_that_is_enough_changes_nothing(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx, MLP);
  berth_plan_desc desc = one_thread(0);
  TEST_OK(plan_with_share(f, &desc, 1.0, &err));
  const berth_plan_info info = test_plan_info(f->plan);
  assert_int_equal(info.arena_size, desc.budget);
  assert_int_equal(info.n_split + info.n_recomputed + info.n_slices, 0);
}

/* The values of the graph keep their numbers, so that sessions find inputs and outputs. */
static void test_duplicates(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph = parse_graph(f->ctx, MLP);
  berth_plan_desc desc = one_thread(0);
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
  berth_graph *copy;
  TEST_OK(berth__graph_duplicate(f->plan->graph, &copy, &err));
  assert_int_equal(copy->n_values, f->plan->graph->n_values);
  assert_int_equal(copy->n_nodes, f->plan->graph->n_nodes);
  for (size_t v = 0; v < copy->n_values; v++) {
    assert_string_equal(copy->values[v].name, f->plan->graph->values[v].name);
    assert_int_equal(copy->values[v].node, f->plan->graph->values[v].node);
    assert_true(berth__shape_equal(&copy->values[v].shape, &f->plan->graph->values[v].shape));
  }
  for (size_t n = 0; n < copy->n_nodes; n++) assert_ptr_equal(copy->nodes[n].op, f->plan->graph->nodes[n].op);
  berth_graph_destroy(copy);
}

static berth_status plan_small(berth_context *ctx, berth_error *err, void *user) {
  static const char *const texts[] = {"graph \"t\" {\n" MLP "\n}", "graph \"t\" {\n" LATE "\n}"};
  (void)user;
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < 2 && status == BERTH_OK; i++) {
    berth_graph *graph = NULL;
    berth_plan *plan = NULL;
    berth_plan_desc desc = one_thread(BERTH_PLAN_REFERENCE);
    status = berth_graph_parse(ctx, texts[i], strlen(texts[i]), &graph, err);
    if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
    if (status == BERTH_OK) {
      const berth_plan_info info = test_plan_info(plan);
      desc.budget = info.weights_size + (info.arena_size - info.weights_size) / 4 * 3;
      berth_plan_destroy(plan);
      status = berth_plan_create(graph, &desc, &plan, err);
    }
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  return status;
}

static void test_no_memory(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(plan_small, NULL) > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_a_wide_middle_is_split),
      PLAN_TEST(test_a_gated_middle_is_split),
      PLAN_TEST(test_what_others_read_in_another_way_is_not_split),
      PLAN_TEST(test_blocks_with_windows),
      PLAN_TEST(test_tiles_stay_whole),
      PLAN_TEST(test_a_first_convolution_in_passes),
      PLAN_TEST(test_cells_may_be_cut),
      PLAN_TEST(test_the_smallest_is_met),
      PLAN_TEST(test_a_value_is_made_again),
      PLAN_TEST(test_what_cannot_be_made_again),
      PLAN_TEST(test_random_graphs),
      PLAN_TEST(test_infeasible),
      PLAN_TEST(test_a_budget_that_is_enough_changes_nothing),
      PLAN_TEST(test_duplicates),
      PLAN_TEST(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
