/* Values that are made again, chosen as a whole: as good as trying every choice, and the same results. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "gpt2.h"
#include "plan/budget.h"
#include "plan/planning.h"
#include "plan/remake.h"
#include "plan/small_graph.h"

static const berth__limits limits = {.device = "none", .min_align = 1};

#define MOST_TRIED 9u /* classes whose choices are all tried */

/* The least work that meets the target, of all choices; negative: none does. */
static double try_all(const berth__remake_model *model, uint64_t target, uint8_t *dropped) {
  uint32_t candidates[MOST_TRIED], n = 0;
  double best = -1;
  for (uint32_t c = 0; c < model->n_classes; c++)
    if (model->classes[c].may_drop) {
      if (n == MOST_TRIED) return -2;
      candidates[n++] = c;
    }
  uint32_t sets = 1;
  for (uint32_t i = 0; i < n; i++) sets *= BERTH__REMAKE_CHOICES;
  for (uint32_t set = 0; set < sets; set++) {
    berth__remake_cost cost;
    uint32_t left = set;
    memset(dropped, 0, model->n_classes);
    for (uint32_t i = 0; i < n; i++, left /= BERTH__REMAKE_CHOICES)
      dropped[candidates[i]] = (uint8_t)(left % BERTH__REMAKE_CHOICES);
    if (!berth__remake_measure(model, dropped, target, &cost) || cost.peak > target) continue;
    if (best < 0 || cost.work < best) best = cost.work;
  }
  return best;
}

static void compare_with_all(berth_plan *plan, uint32_t *n_compared, uint32_t *n_worse, uint64_t seed) {
  berth__remake_model model;
  berth__remake_cost whole, found;
  berth_error err;
  TEST_OK(berth__remake_model_create(&model, plan, &limits, &err));
  uint8_t *dropped = calloc(model.n_classes + 1, 1);
  assert_non_null(dropped);
  assert_true(berth__remake_measure(&model, dropped, 0, &whole));
  for (uint32_t percent = 95; percent >= 50; percent -= 15) {
    const uint64_t target = whole.peak / 100 * percent;
    const double best = try_all(&model, target, dropped);
    if (best < -1) break;
    TEST_OK(berth__remake_search(&model, target, dropped, &found, &err));
    const bool meets = found.peak <= target;
    if (best < 0) assert_false(meets);
    if (best < 0) break;
    (*n_compared)++;
    if (meets && found.work <= best * 1.0000001) continue;
    (*n_worse)++;
    print_message("seed %llu at %u %%: %g, and %g of all choices\n", (unsigned long long)seed, percent,
                  meets ? found.work : -1, best);
  }
  free(dropped);
  berth__remake_model_free(&model);
}

static void test_a_choice_is_as_good_as_any(void **state) {
  fixture *f = *state;
  uint32_t n_compared = 0, n_worse = 0;
  for (uint64_t seed = 1; seed <= 120; seed++) {
    berth_plan_desc desc = desc_with(BERTH_PLAN_INPUTS_DIE);
    f->graph = small_graph_with(f->ctx, seed, 14, false);
    f->plan = make_plan(f->graph, &desc);
    compare_with_all(f->plan, &n_compared, &n_worse, seed);
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
  print_message("# %u choices compared\n", n_compared);
  assert_true(n_compared > 10);
  assert_int_equal(n_worse, 0);
}

/* What the model says of a choice holds for the graph that it gives. */
static void test_the_graph_of_a_choice_has_its_load(void **state) {
  fixture *f = *state;
  berth_error err;
  for (uint64_t seed = 1; seed <= 60; seed++) {
    berth_plan_desc desc = desc_with(BERTH_PLAN_INPUTS_DIE);
    berth__remake_model model, of_graph;
    berth__remake_cost whole, found, after;
    berth_graph *graph;
    berth_plan *plan;
    uint32_t n_added;
    f->graph = small_graph_with(f->ctx, seed, 24, false);
    f->plan = make_plan(f->graph, &desc);
    TEST_OK(berth__remake_model_create(&model, f->plan, &limits, &err));
    uint8_t *dropped = calloc(model.n_classes + 1, 1), *none = calloc(8 * (model.n_classes + 1), 1);
    assert_true(dropped != NULL && none != NULL);
    assert_true(berth__remake_measure(&model, none, 0, &whole));
    TEST_OK(berth__remake_search(&model, whole.peak * 3 / 4, dropped, &found, &err));
    TEST_OK(berth__remake_emit(&model, dropped, &graph, &n_added, &err));
    TEST_OK(berth_graph_verify(graph, &err));
    desc.order = BERTH_ORDER_SOURCE;
    TEST_OK(berth__plan_bound(graph, &desc, &limits, &plan, &err));
    TEST_OK(berth_plan_check(plan, &err));
    TEST_OK(berth__remake_model_create(&of_graph, plan, &limits, &err));
    assert_true(berth__remake_measure(&of_graph, none, 0, &after));
    assert_true(after.peak <= found.peak);
    berth__remake_model_free(&of_graph);
    berth__remake_model_free(&model);
    berth_plan_destroy(plan);
    free(dropped);
    free(none);
    berth_plan_destroy(f->plan);
    berth_graph_destroy(f->graph);
    f->plan = NULL;
    f->graph = NULL;
  }
}

/* ---- Training ---- */

static berth_graph *training(fixture *f) {
  static const gpt2_shape shape = {
      .batch = 2, .length = 24, .vocabulary = 40, .positions = 24, .layers = 4, .heads = 2, .channels = 16};
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  TEST_OK(build_gpt2(f->ctx, &shape, &graph, &err));
  TEST_OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), &how, &err));
  return graph;
}

static void fill_training(berth_session *session, const berth_graph *graph) {
  berth_error err;
  uint64_t random = 5;
  int64_t ids[48], labels[48];
  const float rate = 0.01f;
  for (int i = 0; i < 48; i++) {
    ids[i] = (int64_t)(test_random(&random) % 40);
    labels[i] = (int64_t)(test_random(&random) % 40);
  }
  for (uint32_t v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(graph, v, &info, &err));
    if (info.kind != BERTH_VALUE_STATE || info.type != BERTH_F32 || strchr(info.name, '.') != strrchr(info.name, '.'))
      continue;
    if (strstr(info.name, ".mean") != NULL || strstr(info.name, ".square") != NULL) continue;
    float *data = malloc(info.size);
    assert_non_null(data);
    for (uint64_t k = 0; k < info.size / sizeof *data; k++)
      data[k] = (float)((double)(test_random(&random) >> 40) / (double)(1 << 23) - 1) * 0.3f;
    TEST_OK(berth_session_state_write(session, info.name, data, info.size, &err));
    free(data);
  }
  TEST_OK(berth_session_write(session, "ids", ids, sizeof ids, &err));
  TEST_OK(berth_session_write(session, "labels", labels, sizeof labels, &err));
  TEST_OK(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
}

static void run_steps(const berth_graph *graph, uint64_t budget, float *losses, int n) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_error err;
  plan.budget = budget;
  plan.n_threads = 1;
  desc.plan = &plan;
  desc.n_threads = 1;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_plan_check(berth_session_plan(session), &err));
  if (budget != 0) assert_true(berth_plan_arena_size(berth_session_plan(session)) <= budget);
  fill_training(session, graph);
  for (int i = 0; i < n; i++) {
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "loss", &losses[i], sizeof losses[i], &err));
  }
  berth_session_destroy(session);
}

/* Clones read weights before their update. Where slices of the batch add up, sums are rounded otherwise. */
static void test_training_in_less_learns_the_same(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(0);
  float want[3], got[3];
  desc.n_threads = 1;
  f->graph = training(f);
  f->plan = make_plan(f->graph, &desc);
  const berth_plan_info info = test_plan_info(f->plan);
  const uint64_t fixed = info.weights_size + info.state_size, rest = info.arena_size - fixed;
  run_steps(f->graph, 0, want, 3);
  assert_true(want[0] > want[1] && want[1] > want[2]);
  static const double shares[] = {0.75, 0.5, 0.35};
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    run_steps(f->graph, fixed + (uint64_t)((double)rest * shares[i]), got, 3);
    for (int k = 0; k < 3; k++) assert_true(fabsf(got[k] - want[k]) <= 1e-5f * want[k]);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_a_choice_is_as_good_as_any),
      PLAN_TEST(test_the_graph_of_a_choice_has_its_load),
      PLAN_TEST(test_training_in_less_learns_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
