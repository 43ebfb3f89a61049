#include "plan/budgeting.h"

#include <stdlib.h>

static void fill(berth_session *session, const berth_graph *graph) {
  berth_error err;
  uint64_t random = 42;
  for (int params = 0; params <= 1; params++) {
    const uint32_t n = params ? berth_graph_n_params(graph) : berth_graph_n_inputs(graph);
    for (uint32_t i = 0; i < n; i++) {
      berth_value_info info = BERTH_VALUE_INFO_INIT;
      TEST_OK(berth_graph_value(graph, params ? berth_graph_param_at(graph, i) : berth_graph_input_at(graph, i), &info,
                                &err));
      float *data = malloc(info.size + 1);
      assert_non_null(data);
      for (uint64_t k = 0; k < info.size / sizeof *data; k++)
        data[k] = (float)((double)(test_random(&random) >> 40) / (double)(1 << 23) - 1) * (params ? 0.25f : 1.0f);
      TEST_OK(params ? berth_session_set_param(session, info.name, data, info.size, &err)
                     : berth_session_write_at(session, i, data, info.size, &err));
      free(data);
    }
  }
}

/* The first output, run once; the caller frees it. NULL: with the guards of a checked session the budget is too small.
 */
static float *run(const berth_graph *graph, const berth_plan_desc *plan, uint32_t flags, uint64_t *n) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  desc.plan = plan;
  desc.flags = flags;
  desc.n_threads = 1;
  const berth_status status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_INFEASIBLE && (flags & BERTH_SESSION_CHECKED)) return NULL;
  TEST_OK(status);
  TEST_OK(berth_plan_check(berth_session_plan(session), &err));
  if (plan->budget != 0) assert_true(berth_plan_arena_size(berth_session_plan(session)) <= plan->budget);
  fill(session, graph);
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_graph_value(graph, berth_graph_output_at(graph, 0), &info, &err));
  float *out = malloc(info.size + 1);
  assert_non_null(out);
  TEST_OK(berth_session_read_at(session, 0, out, info.size, &err));
  *n = info.size / sizeof *out;
  berth_session_destroy(session);
  return out;
}

void assert_same_results(const berth_graph *graph, const berth_plan_desc *desc, uint32_t flags) {
  berth_plan_desc without = *desc;
  uint64_t n;
  without.budget = 0;
  float *want = run(graph, &without, flags, &n);
  for (uint32_t checked = 0; checked <= 1; checked++) {
    float *got = run(graph, desc, flags | (checked ? BERTH_SESSION_CHECKED : 0u), &n);
    for (uint64_t i = 0; i < n && got != NULL; i++)
      if (memcmp(&got[i], &want[i], sizeof *got) != 0)
        fail_msg("element %llu is %.9g and not %.9g", (unsigned long long)i, (double)got[i], (double)want[i]);
    free(got);
  }
  free(want);
}

berth_plan_desc one_thread(uint32_t flags) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags = flags;
  desc.n_threads = 1;
  return desc;
}

berth_status plan_with_share(fixture *f, berth_plan_desc *desc, double share, berth_error *err) {
  desc->budget = 0;
  assert_int_equal(berth_plan_create(f->graph, desc, &f->plan, err), BERTH_OK);
  const berth_plan_info info = test_plan_info(f->plan);
  berth_plan_destroy(f->plan);
  f->plan = NULL;
  desc->budget = info.weights_size + (uint64_t)((double)(info.arena_size - info.weights_size) * share);
  return berth_plan_create(f->graph, desc, &f->plan, err);
}
