/* A batch in slices: every rule gives what the whole batch gives, and training in less learns the same. */
#include <math.h>
#include <stdlib.h>

#include "gpt2.h"
#include "plan/batch.h"
#include "plan/planning.h"

typedef struct row {
  const char *name, *statements;
  uint32_t n_nodes; /* of the graph in two slices, views of rows and what puts slices together included; 0: any */
} row;

#define NOTHING UINT32_MAX /* is cut */
#define X "input %x : f32[4, 6, 8]\n"
static const row rows[] = {
    {"elements", X "input %b : f32[8] %y = add(%x, %b) %z = mul(%y, %x) output \"z\" = %z", 7},
    {"a constant over the batch", X "param %p : f32[4, 1, 8] %y = mul(%x, %p) output \"y\" = %y", 7},
    {"expand", "input %x : f32[4, 1, 8] %y = expand(%x) {shape = [4, 6, 8]} output \"y\" = %y", 0},
    {"softmax", X "%y = softmax(%x) {axis = 1} output \"y\" = %y", 5},
    {"softmax over the batch", X "%y = softmax(%x) {axis = 0} output \"y\" = %y", NOTHING},
    {"norms", X "param %s : f32[8] %n = layer_norm(%x, %s) %y = rms_norm(%n, %s) output \"y\" = %y", 7},
    {"a norm over the batch", X "%n = layer_norm(%x) {axis = 0} output \"y\" = %n", NOTHING},
    {"rows of a product", X "param %w : f32[8, 5] %y = matmul(%x, %w) output \"y\" = %y", 5},
    {"a product for each", X "input %w : f32[4, 8, 5] %y = matmul(%x, %w) output \"y\" = %y", 7},
    {"columns of a product",
     "input %x : f32[4, 8] param %w : f32[6, 8] %t = transpose(%x) {perm = [1, 0]} %y = matmul(%w, %t) output \"y\" = "
     "%y",
     0},
    {"sums over the batch",
     X "input %d : f32[4, 6, 5] %r = reshape(%x) {shape = [-1, 8]} %s = reshape(%d) {shape = [24, 5]}"
       "%t = transpose(%r) {perm = [1, 0]} %g = matmul(%t, %s) output \"g\" = %g",
     0},
    {"convolutions",
     "input %x : f32[4, 3, 7, 7] param %w : f32[5, 3, 3, 3] param %b : f32[5] %y = conv(%x, %w, %b) {pads = [1, 1, 1, "
     "1]}"
     "%p = max_pool(%y) {kernel = [2, 2], strides = [2, 2]} %a = avg_pool(%p) {kernel = [2, 2]} output \"y\" = %a",
     0},
    {"a convolution's weight",
     "input %x : f32[4, 3, 7, 7] input %d : f32[4, 5, 5, 5] %a = transpose(%x) {perm = [1, 0, 2, 3]}"
     "%b = transpose(%d) {perm = [1, 0, 2, 3]} %g = conv(%a, %b) output \"g\" = %g",
     0},
    {"places of maxima",
     "input %x : f32[4, 3, 6, 6] %y, %p = max_pool(%x) {kernel = [2, 2], strides = [2, 2]} output \"y\" = %y "
     "output \"p\" = %p",
     NOTHING},
    {"other norms",
     "input %x : f32[4, 6, 3] param %s : f32[6] param %b : f32[6] param %m : f32[6] param %v : f32[6]"
     "%a = abs(%v) %g = group_norm(%x, %s, %b) {groups = 2} %y = batch_norm(%g, %s, %b, %m, %a) output \"y\" = %y",
     0},
    {"attention", X "%y = attention(%x, %x, %x) {heads = 2, mode = \"causal\"} output \"y\" = %y", 5},
    {"attention with a mask and a length",
     X "input %m : f32[4, 1, 6, 6] input %l : i64[4] param %c : f32[6, 6] %y = attention(%x, %x, %x, _, %m, %l) {heads "
       "= 2}"
       "%z = attention(%y, %x, %x, _, %c) {heads = 2} output \"y\" = %z",
     0},
    {"one long sequence", "input %x : f32[4, 8] %y = attention(%x, %x, %x) {heads = 2} output \"y\" = %y", NOTHING},
    {"positions",
     X "input %p : i64[4, 6] input %q : i64[6] %y = rope(%x, %p) {heads = 2} %z = rope(%y, %q) {heads = 2} output "
       "\"y\" = %z",
     0},
    {"cross entropy", X "input %l : i64[4, 6] %y = cross_entropy(%x, %l) %m = reduce_mean(%y) output \"m\" = %m", 0},
    {"gathers",
     X
     "input %i : i64[4, 6] param %t : f32[9, 8] %e = embedding(%t, %i) input %j : i64[3] %g = gather(%x, %j) {axis = 1}"
     "%h = gather(%t, %i) {axis = 0} %s = add(%e, %h) output \"g\" = %g output \"s\" = %s",
     0},
    {"a gather from the batch", X "input %j : i64[3] %g = gather(%x, %j) {axis = 0} output \"g\" = %g", NOTHING},
    {"reductions",
     X "%a = reduce_max(%x) {axes = [1], keepdims = 0} %b = reduce_mean(%x) {axes = [-1]}"
       "%c = reduce_sum(%x) {axes = [0, 2]} %d = reduce_max(%x) {axes = [0]} %e = reduce_mean(%x) {axes = [0], "
       "keepdims = 0}"
       "output \"a\" = %a output \"b\" = %b output \"c\" = %c output \"d\" = %d output \"e\" = %e",
     0},
    {"moves",
     X "%t = transpose(%x) {perm = [2, 0, 1]} %n = narrow(%t) {axes = [2], starts = [1], ends = [4]}"
       "%a, %b = split(%n) {axis = 0} %c = concat(%b, %a) {axis = 2} %p = pad(%c) {pads = [1, 0, 0, 1, 0, 2]}"
       "%u = unsqueeze(%p) {axes = [1]} %f = squeeze(%u) {axes = [1]} output \"y\" = %f",
     0},
    {"a concat over the batch", X "%c = concat(%x, %x) {axis = 0} %y = relu(%c) output \"y\" = %y", NOTHING},
    {"reshapes",
     X "%a = reshape(%x) {shape = [24, 8]} %b = reshape(%a) {shape = [1, 4, 48]} %c = flatten(%b) {axis = 2}"
       "%d = reshape(%c) {shape = [2, 96]} output \"c\" = %c output \"d\" = %d",
     0},
    {"a reshape of nothing",
     "input %x : f32[4, 5, 0] input %z : f32[4, 3] %r = reshape(%x) {shape = [4, -1]} %y = concat(%z, %r) {axis = 1}"
     "output \"y\" = %y",
     0},
    {"axes of extent 1", "input %x : f32[4, 1, 8] %n = neg(%x) %s = squeeze(%n) %y = relu(%s) output \"y\" = %y", 0},
    {"sums over the batch for each of several",
     "input %x : f32[4, 3, 6] input %d : f32[4, 3, 5] %a = transpose(%x) {perm = [1, 2, 0]}"
     "%b = transpose(%d) {perm = [1, 0, 2]} %g = matmul(%a, %b) %m = reduce_sum(%x) {axes = [0]}"
     "output \"g\" = %g output \"m\" = %m",
     0},
    {"no rule", X "%c = cumsum(%x) {axis = 0} %y = neg(%c) output \"y\" = %y", NOTHING},
    {"statistics of the batch",
     X "%r = relu(%x) %m = reduce_mean(%r) {axes = [0]} %y = sub(%r, %m) %z = exp(%y) output \"z\" = %z", 0},
    {"a state",
     X "state %s : f32[8] = zeros %m = reduce_sum(%x) {axes = [0, 1], keepdims = 0} %n = add(%s, %m)"
       "%y = mul(%x, %s) update %s = %n output \"y\" = %y output \"n\" = %n",
     0},
};

static void fill(berth_session *session, const berth_graph *graph) {
  berth_error err;
  uint64_t random = 7;
  for (uint32_t v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(graph, v, &info, &err));
    if (info.kind != BERTH_VALUE_INPUT && info.kind != BERTH_VALUE_PARAM) continue;
    float *data = malloc(info.size + 1);
    assert_non_null(data);
    if (info.type == BERTH_F32)
      for (uint64_t i = 0; i < info.size / sizeof *data; i++)
        data[i] = (float)((double)(test_random(&random) >> 40) / (double)(1 << 23) - 1);
    else
      for (uint64_t i = 0; i < info.size / sizeof(int64_t); i++)
        ((int64_t *)(void *)data)[i] = (int64_t)(1 + test_random(&random) % 3);
    TEST_OK(info.kind == BERTH_VALUE_PARAM ? berth_session_set_param(session, info.name, data, info.size, &err)
                                           : berth_session_write(session, info.name, data, info.size, &err));
    free(data);
  }
}

/* All outputs of two runs, one after the other; the caller frees them. */
static float *run_graph(const berth_graph *graph, size_t *n) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  float *out = NULL;
  *n = 0;
  desc.flags = BERTH_SESSION_REFERENCE;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_plan_check(berth_session_plan(session), &err));
  fill(session, graph);
  for (int k = 0; k < 2; k++) {
    TEST_OK(berth_session_run(session, &err));
    for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
      berth_value_info info = BERTH_VALUE_INFO_INIT;
      TEST_OK(berth_graph_value(graph, berth_graph_output_at(graph, i), &info, &err));
      out = realloc(out, *n * sizeof *out + info.size);
      assert_non_null(out);
      TEST_OK(berth_session_read_at(session, i, &out[*n], info.size, &err));
      *n += info.size / sizeof *out;
    }
  }
  berth_session_destroy(session);
  return out;
}

typedef struct text {
  char *at;
  size_t size;
} text;

static berth_status put(void *user, const char *from, size_t size) {
  text *t = user;
  t->at = realloc(t->at, t->size + size);
  if (t->at == NULL) return BERTH_NOMEM;
  memcpy(t->at + t->size, from, size);
  t->size += size;
  return BERTH_OK;
}

/* The sliced graph as one that a session takes: from its text. */
static berth_graph *reread(berth_context *ctx, const berth_graph *graph) {
  text t = {0};
  berth_graph *again;
  berth_error err;
  TEST_OK(berth_graph_print(graph, put, &t, &err));
  TEST_OK(berth_graph_parse(ctx, t.at, t.size, &again, &err));
  free(t.at);
  return again;
}

/* The graph in slices gives what the graph gives; takes it over. */
static void compare_graph(fixture *f, const row *r, const berth__batch_range *range, berth_graph *sliced) {
  berth_error err;
  size_t n, n_sliced;
  TEST_OK(berth_graph_verify(sliced, &err));
  berth_graph *again = reread(f->ctx, sliced);
  float *want = run_graph(f->graph, &n), *got = run_graph(again, &n_sliced);
  assert_int_equal(n, n_sliced);
  for (size_t i = 0; i < n; i++)
    if (memcmp(&got[i], &want[i], sizeof *got) != 0 &&
        !(range->sums && fabsf(got[i] - want[i]) <= 2e-5f * (1 + fabsf(want[i]))))
      fail_msg("%s, steps %u to %u in %u slices: element %zu is %g and not %g", r->name, range->from, range->to,
               range->n_slices, i, (double)got[i], (double)want[i]);
  free(want);
  free(got);
  berth_graph_destroy(sliced);
  berth_graph_destroy(again);
}

static void compare_slices(fixture *f, const row *r, uint32_t n_slices, bool sums) {
  berth_graph *sliced;
  berth_error err;
  assert_int_equal(berth__batch_extent(f->plan->graph), strstr(r->statements, "i64[3]") != NULL ? 3 : 4);
  const berth__batch_range all = {.extent = 4, .n_slices = n_slices, .to = f->plan->n_steps, .sums = sums};
  TEST_OK(berth__batch_slice(f->plan, &all, &sliced, &err));
  if ((sliced == NULL) != (r->n_nodes == NOTHING)) fail_msg("%s: cut, or not, against what it says", r->name);
  if (sliced == NULL) return;
  if (n_slices == 2 && r->n_nodes != 0 && berth_graph_n_nodes(sliced) != r->n_nodes)
    fail_msg("%s: %u nodes and not %u", r->name, berth_graph_n_nodes(sliced), r->n_nodes);
  compare_graph(f, r, &all, sliced);
}

/* Every range of steps by itself. Returns how many were cut. */
static uint32_t compare_ranges(fixture *f, const row *r, bool fuses) {
  uint32_t n_cut = 0;
  for (uint32_t from = 0; from < f->plan->n_steps; from++)
    for (uint32_t to = from + 1; to <= f->plan->n_steps; to++) {
      const berth__batch_range range = {
          .extent = 4, .n_slices = 2, .from = from, .to = to, .sums = true, .fuses = fuses};
      berth_graph *sliced;
      berth_error err;
      TEST_OK(berth__batch_slice(f->plan, &range, &sliced, &err));
      if (sliced == NULL) continue;
      compare_graph(f, r, &range, sliced);
      n_cut++;
    }
  return n_cut;
}

static void test_slices_give_what_the_batch_gives(void **state) {
  fixture *f = *state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    plan_text(f, rows[i].statements, BERTH_PLAN_REFERENCE);
    compare_slices(f, &rows[i], 2, true);
    compare_slices(f, &rows[i], 4, true);
    compare_slices(f, &rows[i], 4, false);
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
}

static void test_ranges_of_steps_give_what_the_batch_gives(void **state) {
  fixture *f = *state;
  uint32_t n_cut = 0;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    plan_text(f, rows[i].statements, BERTH_PLAN_REFERENCE);
    n_cut += compare_ranges(f, &rows[i], false) + compare_ranges(f, &rows[i], true);
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
  assert_true(n_cut > 2 * sizeof rows / sizeof *rows);
}

static void test_no_batch_no_slices(void **state) {
  fixture *f = *state;
  plan_text(f, "input %x : f32[1, 6] input %s : f32[] %y = add(%x, %s) output \"y\" = %y", 0);
  assert_int_equal(berth__batch_extent(f->plan->graph), 0);
}

/* ---- Training ---- */

static berth_graph *training(fixture *f, bool clips) {
  static const gpt2_shape shape = {
      .batch = 8, .length = 16, .vocabulary = 40, .positions = 16, .layers = 2, .heads = 2, .channels = 16};
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  how.clip = clips ? 0.5 : 0;
  TEST_OK(build_gpt2(f->ctx, &shape, &graph, &err));
  TEST_OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), &how, &err));
  return graph;
}

static void fill_states(berth_session *session, const berth_graph *graph) {
  berth_error err;
  uint64_t random = 5;
  const float rate = 0.01f;
  for (uint32_t v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(graph, v, &info, &err));
    if (info.kind != BERTH_VALUE_STATE || info.type != BERTH_F32 || strstr(info.name, ".mean") != NULL ||
        strstr(info.name, ".square") != NULL)
      continue;
    float *data = malloc(info.size);
    assert_non_null(data);
    for (uint64_t k = 0; k < info.size / sizeof *data; k++)
      data[k] = (float)((double)(test_random(&random) >> 40) / (double)(1 << 23) - 1) * 0.3f;
    TEST_OK(berth_session_state_write(session, info.name, data, info.size, &err));
    free(data);
  }
  TEST_OK(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
}

static uint32_t run_steps(const berth_graph *graph, uint64_t budget, float *losses, int n) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_error err;
  plan.budget = budget;
  desc.plan = &plan;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_plan_check(berth_session_plan(session), &err));
  if (budget != 0) assert_true(berth_plan_arena_size(berth_session_plan(session)) <= budget);
  fill(session, graph);
  fill_states(session, graph);
  for (int i = 0; i < n; i++) {
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "loss", &losses[i], sizeof losses[i], &err));
  }
  const uint32_t n_slices = test_plan_info(berth_session_plan(session)).n_slices;
  berth_session_destroy(session);
  return n_slices;
}

/* Slices of a whole batch add few operations, but the products of a slice leave most of a large GPU idle, and each of
 * its kernels takes time to start: there, results that are cheap to make are made again instead. */
static void test_a_large_gpu_has_other_costs(void **state) {
  fixture *f = *state;
  static const gpt2_shape shape = {
      .batch = 4, .length = 256, .vocabulary = 100, .positions = 256, .layers = 1, .heads = 2, .channels = 128};
  static const char *const profiles[] = {"nvidia", "hopper"};
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  uint32_t again[2], steps[2];
  berth_error err;
  TEST_OK(build_gpt2(f->ctx, &shape, &f->graph, &err));
  TEST_OK(berth_graph_train(f->graph, berth_graph_find(f->graph, "loss"), &how, &err));
  for (int i = 0; i < 2; i++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.device = "interp";
    desc.gpu_profile = profiles[i];
    desc.compute = BERTH_COMPUTE_BF16;
    TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
    const berth_plan_info whole = test_plan_info(f->plan);
    berth_plan_destroy(f->plan);
    f->plan = NULL;
    desc.budget = whole.arena_size - (whole.activations_size + whole.scratch_size) / 3;
    TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
    const berth_plan_info info = test_plan_info(f->plan);
    assert_true(info.arena_size <= desc.budget);
    again[i] = info.n_recomputed;
    steps[i] = info.n_steps - whole.n_steps;
    berth_plan_destroy(f->plan);
    f->plan = NULL;
  }
  assert_int_equal(again[0], 0);
  assert_true(again[1] > 0 && steps[1] < steps[0] / 2);
}

/* Weights are updated from the sum over all slices, once. */
static void test_training_in_slices_learns_the_same(void **state) {
  fixture *f = *state;
  float want[4], got[4];
  for (int clips = 0; clips <= 1; clips++) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    f->graph = training(f, clips != 0);
    f->plan = make_plan(f->graph, &desc);
    const berth_plan_info info = test_plan_info(f->plan);
    const uint64_t fixed = info.weights_size + info.state_size, rest = info.arena_size - fixed;
    run_steps(f->graph, 0, want, 4);
    assert_true(want[0] > want[1] && want[2] > want[3]);
    for (double share = 0.8; share > 0.3; share -= 0.2) {
      assert_true(run_steps(f->graph, fixed + (uint64_t)((double)rest * share), got, 4) >= 2);
      for (int k = 0; k < 4; k++) assert_true(fabsf(got[k] - want[k]) <= 1e-5f * want[k]);
    }
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_slices_give_what_the_batch_gives),
      PLAN_TEST(test_ranges_of_steps_give_what_the_batch_gives),
      PLAN_TEST(test_no_batch_no_slices),
      PLAN_TEST(test_training_in_slices_learns_the_same),
      PLAN_TEST(test_a_large_gpu_has_other_costs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
