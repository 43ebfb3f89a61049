#include "patterns.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static uint32_t count_op(const berth_session *session, const char *op) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_error err;
  uint32_t count = 0;
  for (uint32_t n = 0; n < berth_graph_n_nodes(graph); n++) {
    TEST_OK(berth_graph_node(graph, n, &node, &err));
    count += strcmp(node.op, op) == 0;
  }
  return count;
}

static void fill(berth_type type, void *data, uint64_t size) {
  uint64_t state = 9;
  for (uint64_t i = 0; type == BERTH_F32 && i < size / 4; i++) ((float *)data)[i] = 2 * test_random_f32(&state);
  for (uint64_t i = 0; type == BERTH_BF16 && i < size / 2; i++) /* bf16 of about 1 */
    ((uint16_t *)data)[i] = (uint16_t)(0x3f00 | (test_random(&state) & 0x80ff));
  for (uint64_t i = 0; type == BERTH_F16 && i < size / 2; i++) /* f16 of about 1 */
    ((uint16_t *)data)[i] = (uint16_t)(0x3800 | (test_random(&state) & 0x87ff));
  if (berth_type_storage(type).elements > 1) test_random_blocks(type, data, size, &state);
  if (type == BERTH_BF16 || type == BERTH_F16 || berth_type_storage(type).elements > 1) return;
  for (uint64_t i = 0; type != BERTH_F32 && i < size; i++) ((uint8_t *)data)[i] = (uint8_t)test_random(&state);
}

/* Fills every input and param; runs. */
static berth_status run(const berth_graph *graph, berth_session *session, berth_error *err) {
  for (uint32_t k = 0; k < berth_graph_n_inputs(graph) + berth_graph_n_params(graph); k++) {
    const uint32_t n_inputs = berth_graph_n_inputs(graph);
    const bool is_input = k < n_inputs;
    const berth_value value = is_input ? berth_graph_input_at(graph, k) : berth_graph_param_at(graph, k - n_inputs);
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (berth_graph_value(graph, value, &info, err) != BERTH_OK) return BERTH_INTERNAL;
    void *data = malloc((size_t)info.size);
    assert_non_null(data);
    fill(info.type, data, info.size);
    const berth_status status = is_input ? berth_session_write(session, info.name, data, (size_t)info.size, err)
                                         : berth_session_set_param(session, info.name, data, (size_t)info.size, err);
    free(data);
    if (status != BERTH_OK) return status;
  }
  return berth_session_run(session, err);
}

static void compare(const berth_graph *graph, berth_session *fast, berth_session *reference, double tolerance) {
  berth_error err;
  for (uint32_t k = 0; k < berth_graph_n_outputs(graph); k++) {
    const void *got, *want;
    size_t size;
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    TEST_OK(berth_session_output_data(fast, k, &got, &size, &err));
    TEST_OK(berth_session_output_data(reference, k, &want, &size, &err));
    TEST_OK(berth_graph_value(graph, berth_graph_output_at(graph, k), &info, &err));
    const size_t count = info.type == BERTH_F32 ? size / sizeof(float) : size;
    for (size_t i = 0; i < count; i++) {
      const double a = info.type == BERTH_F32 ? (double)((const float *)got)[i] : ((const uint8_t *)got)[i];
      const double b = info.type == BERTH_F32 ? (double)((const float *)want)[i] : ((const uint8_t *)want)[i];
      if (!(fabs(a - b) <= tolerance)) fail_msg("output %u, element %zu: got %.9g, expected %.9g", k, i, a, b);
    }
  }
}

static void pattern_compare(const pattern *p, const char *device, const char *profile, uint32_t plan_flags) {
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_session *fast, *reference;
  berth_error err;
  TEST_OK(berth_graph_parse(ctx, p->text, strlen(p->text), &graph, &err));
  plan.flags |= plan_flags;
  plan.gpu_profile = profile;
  if (plan_flags != 0 || profile != NULL) desc.plan = &plan;
  desc.device = device;
  TEST_OK(berth_session_create(graph, &desc, &fast, &err));
  plan.gpu_profile = NULL;
  plan.flags = BERTH_PLAN_NO_PASSES; /* without rewriting, including quantised products */
  desc.plan = &plan;
  desc.device = NULL;
  desc.flags = BERTH_SESSION_REFERENCE;
  TEST_OK(berth_session_create(graph, &desc, &reference, &err));
  if (count_op(fast, p->has) != p->count)
    fail_msg("%u nodes of %s, expected %u, in %s", count_op(fast, p->has), p->has, p->count, p->text);
  if (p->lacks != NULL && count_op(fast, p->lacks) != 0) fail_msg("there still is a %s in %s", p->lacks, p->text);
  TEST_OK(run(graph, fast, &err));
  TEST_OK(run(graph, reference, &err));
  compare(graph, fast, reference, p->tolerance);
  berth_session_destroy(fast);
  berth_session_destroy(reference);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

void pattern_check_on(const pattern *p, const char *device, uint32_t plan_flags) {
  pattern_compare(p, device, NULL, plan_flags);
}

void pattern_check_profile(const pattern *p, const char *device, const char *profile) {
  pattern_compare(p, device, profile, 0);
}

void pattern_check_with(const pattern *p, uint32_t plan_flags) { pattern_check_on(p, NULL, plan_flags); }

void pattern_check(const pattern *p) { pattern_check_with(p, 0); }

void patterns_check(const pattern *patterns, size_t n) {
  for (size_t i = 0; i < n; i++) pattern_check(&patterns[i]);
}

berth_status pattern_plan(berth_context *ctx, berth_error *err, void *user) {
  const char *text = user;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, NULL, &plan, err);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}
