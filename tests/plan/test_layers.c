/* Peaks that recomputed values leave run in slices, all at once: a step then takes less, and learns the same. */
#include <math.h>
#include <stdlib.h>

#include "gpt2.h"
#include "plan/budgeter.h"
#include "plan/planning.h"
#include "plan/remake.h"

static const berth__limits limits = {.device = "none", .min_align = 1};

static berth_graph *training(fixture *f) {
  static const gpt2_shape shape = {
      .batch = 8, .length = 32, .vocabulary = 40, .positions = 32, .layers = 3, .heads = 2, .channels = 16};
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  TEST_OK(build_gpt2(f->ctx, &shape, &graph, &err));
  TEST_OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), &how, &err));
  return graph;
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

/* A plan's graph as one that a session takes: from its text. */
static berth_graph *reread(berth_context *ctx, const berth_graph *graph) {
  text t = {0};
  berth_graph *again;
  berth_error err;
  TEST_OK(berth_graph_print(graph, put, &t, &err));
  TEST_OK(berth_graph_parse(ctx, t.at, t.size, &again, &err));
  free(t.at);
  return again;
}

static void fill_random(float *data, uint64_t n, uint64_t *random) {
  for (uint64_t k = 0; k < n; k++)
    data[k] = (float)((double)(test_random(random) >> 40) / (double)(1 << 23) - 1) * 0.3f;
}

static void fill_all(berth_session *session, const berth_graph *graph) {
  berth_error err;
  uint64_t random = 5;
  int64_t ids[256], labels[256];
  const float rate = 0.01f;
  for (int i = 0; i < 256; i++) {
    ids[i] = (int64_t)(test_random(&random) % 40);
    labels[i] = (int64_t)(test_random(&random) % 40);
  }
  for (uint32_t v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_graph_value(graph, v, &info, &err));
    if (info.kind != BERTH_VALUE_STATE || info.type != BERTH_F32 || strstr(info.name, ".mean") != NULL ||
        strstr(info.name, ".square") != NULL)
      continue;
    float *data = malloc(info.size);
    assert_non_null(data);
    fill_random(data, info.size / sizeof *data, &random);
    TEST_OK(berth_session_state_write(session, info.name, data, info.size, &err));
    free(data);
  }
  TEST_OK(berth_session_write(session, "ids", ids, sizeof ids, &err));
  TEST_OK(berth_session_write(session, "labels", labels, sizeof labels, &err));
  TEST_OK(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
}

static void run_steps(const berth_graph *graph, float *losses, int n) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  desc.flags = BERTH_SESSION_REFERENCE;
  desc.n_threads = 1;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  fill_all(session, graph);
  for (int i = 0; i < n; i++) {
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "loss", &losses[i], sizeof losses[i], &err));
  }
  berth_session_destroy(session);
}

/* A plan with values recomputed for a share of its load. */
static berth_plan *remake(const berth_plan *plan, const berth_plan_desc *desc, double share) {
  berth__remake_model model;
  berth__remake_cost cost;
  berth_graph *graph;
  berth_plan *out;
  berth_error err;
  uint32_t n_added;
  TEST_OK(berth__remake_model_create(&model, plan, &limits, &err));
  uint8_t *dropped = calloc(model.n_classes + 1, 1);
  assert_non_null(dropped);
  assert_true(berth__remake_measure(&model, dropped, 0, &cost));
  TEST_OK(berth__remake_search(&model, (uint64_t)((double)cost.peak * share), dropped, &cost, &err));
  TEST_OK(berth__remake_emit(&model, dropped, &graph, &n_added, &err));
  assert_true(n_added > 0);
  TEST_OK(berth__plan_bound(graph, desc, &limits, &out, &err));
  berth__remake_model_free(&model);
  free(dropped);
  return out;
}

static void test_layers_in_slices_learn_the_same(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_error err;
  float want[3], got[3];
  desc.flags = BERTH_PLAN_REFERENCE;
  desc.n_threads = 1;
  desc.order = BERTH_ORDER_SOURCE;
  f->graph = training(f);
  f->plan = make_plan(f->graph, &desc);
  run_steps(f->graph, want, 3);
  assert_true(want[0] > want[1] && want[1] > want[2]);
  uint32_t n_peaks = 0;
  for (double share = 0.7; share > 0.4; share -= 0.1) {
    berth_plan *remade = remake(f->plan, &desc, share), *sliced;
    berth__budgeter b = {.desc = desc, .limits = &limits, .base = remade, .plan = remade};
    TEST_OK(berth__budget_measure(&b, remade, &err));
    b.target = b.full / 100 * 85;
    TEST_OK(berth__budget_layers(&b, remade, &sliced, &err)); /* a budget of 0: as small as it can */
    TEST_OK(berth_plan_check(sliced, &err));
    assert_true(berth__budget_size(sliced) < berth__budget_size(remade));
    n_peaks += test_plan_info(sliced).n_split;
    berth_graph *again = reread(f->ctx, sliced->graph);
    run_steps(again, got, 3);
    berth_graph_destroy(again);
    for (int k = 0; k < 3; k++) assert_true(fabsf(got[k] - want[k]) <= 1e-5f * want[k]);
    berth__free(remade->ctx, b.load);
    berth_plan_destroy(sliced);
    berth_plan_destroy(remade);
  }
  assert_true(n_peaks > 3); /* several at once */
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_layers_in_slices_learn_the_same),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
