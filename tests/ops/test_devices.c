/* Every op case through the public API on every device that this machine has: builder, planner, arena, program. The
 * sessions are checked ones, so that a kernel that writes outside its slots is caught as well. */
#include <stdio.h>
#include <stdlib.h>

#include "cases.h"
#include "ops/op.h"
#include "support.h"

static op_cases cases;

static int load(void **state) {
  (void)state;
  return op_cases_load(&cases, op_cases_folder()) ? 0 : -1;
}

static int unload(void **state) {
  (void)state;
  op_cases_free(&cases);
  return 0;
}

static berth_status build(berth_context *ctx, const op_case *c, berth_graph **graph, berth_error *err) {
  berth_value in[OP_CASE_MAX], out[OP_CASE_MAX];
  char name[32];
  berth_status status = berth_graph_create(ctx, c->name, graph, err);
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    in[i] = BERTH_VALUE_NONE;
    if (c->in[i].type == BERTH_TYPE_NONE) continue;
    snprintf(name, sizeof name, "in%u", i);
    status =
        berth_graph_input(*graph, name, c->in[i].type, berth_shape_fixed(c->in[i].rank, c->in[i].dim), &in[i], err);
  }
  uint32_t n_in = c->n_in;
  while (n_in > 0 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--; /* optional operands at the end are simply not given */
  uint32_t n_out = c->error == NULL ? c->n_out : berth__op_find(ctx, c->op)->min_out; /* errors name no outputs */
  if (status == BERTH_OK) status = berth_graph_add(*graph, c->op, in, n_in, c->attrs, c->n_attrs, out, n_out, err);
  for (uint32_t i = 0; i < c->n_out && status == BERTH_OK; i++) {
    snprintf(name, sizeof name, "out%u", i);
    status = berth_graph_output(*graph, name, out[i], err);
  }
  return status;
}

/* Operands that shapes depend on must be known when a plan is made; what may be wrong only then, is. */
static berth_status fix_operands(berth_graph *graph, const op_case *c, berth_error *err) {
  const uint32_t valued = c->error != NULL ? berth__op_find(NULL, c->op)->family->valued : 0;
  char name[32];
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    const op_tensor *in = &c->in[i];
    snprintf(name, sizeof name, "in%u", i);
    if (!(valued >> i & 1u) && !berth_graph_shapes_depend(graph, berth_graph_find(graph, name))) continue;
    status = berth_graph_fix(graph, name, in->type, in->rank, in->dim, in->data, in->size, err);
  }
  return status;
}

static berth_status run(berth_session *session, const op_case *c, berth_error *err) {
  char name[32];
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    snprintf(name, sizeof name, "in%u", i);
    berth_value_info info;
    const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
    if (c->in[i].type == BERTH_TYPE_NONE) continue;
    status = berth_graph_value(graph, berth_graph_find(graph, name), &info, err);
    if (status != BERTH_OK || info.kind != BERTH_VALUE_INPUT) continue; /* fixed */
    status = berth_session_write(session, name, c->in[i].data, c->in[i].size, err);
  }
  return status == BERTH_OK ? berth_session_run(session, err) : status;
}

static int matches(berth_session *session, const op_case *c, const char *device, berth_error *err) {
  int good = 1;
  for (uint32_t i = 0; i < c->n_out && good; i++) {
    void *got = malloc(c->out[i].size + 1);
    int64_t element = 0;
    good = berth_session_read_at(session, i, got, c->out[i].size, err) == BERTH_OK &&
           op_case_matches(c, &c->out[i], got, &element);
    if (!good)
      fprintf(stderr, "%s:%d: %s on %s: output %u differs at element %lld\n", c->file, c->line, c->name, device, i,
              (long long)element);
    free(got);
  }
  return good;
}

static int holds_on(berth_context *ctx, const op_case *c, const char *device, uint32_t n_threads) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.device = device;
  desc.n_threads = n_threads;
  desc.flags = BERTH_SESSION_CHECKED;
  berth_status status = build(ctx, c, &graph, &err);
  if (status == BERTH_OK) status = fix_operands(graph, c, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_OK) status = run(session, c, &err);
  int good = status == BERTH_OK && matches(session, c, device, &err);
  if (status != BERTH_OK) fprintf(stderr, "%s:%d: %s on %s: %s\n", c->file, c->line, c->name, device, err.message);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return good;
}

static int fails_to_build(berth_context *ctx, const op_case *c) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL, *bound = NULL;
  berth_status status = build(ctx, c, &graph, &err);
  if (status == BERTH_OK) status = fix_operands(graph, c, &err);
  if (status == BERTH_OK) status = berth_graph_bind(graph, NULL, 0, &bound, &err);
  berth_graph_destroy(bound);
  berth_graph_destroy(graph);
  int good = status != BERTH_OK && strstr(err.message, c->error) != NULL;
  if (!good) fprintf(stderr, "%s:%d: %s: expected '%s', got '%s'\n", c->file, c->line, c->name, c->error, err.message);
  return good;
}

/* A loop_end by itself is no graph; tests/plan/test_loops.c runs whole loops. */
static int is_graph(const op_case *c) { return strcmp(c->op, "loop_end") != 0; }

static void every_case_holds_on_every_device(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  int failures = 0;
  for (uint32_t d = 0; d < berth_device_count(ctx); d++) {
    berth_device_info info;
    TEST_OK(berth_device_at(ctx, d, &info, &err));
    if (!info.available) {
      print_message("# skip: device %s: %s\n", info.name, info.reason);
      continue;
    }
    for (size_t i = 0; i < cases.count; i++)
      if (cases.items[i].error == NULL && is_graph(&cases.items[i]))
        failures += !holds_on(ctx, &cases.items[i], info.name, 1 + i % 2);
  }
  assert_int_equal(failures, 0);
  berth_context_destroy(ctx);
}

static void every_wrong_case_is_refused(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  int failures = 0;
  for (size_t i = 0; i < cases.count; i++)
    if (cases.items[i].error != NULL) failures += !fails_to_build(ctx, &cases.items[i]);
  assert_int_equal(failures, 0);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_case_holds_on_every_device),
      cmocka_unit_test(every_wrong_case_is_refused),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
