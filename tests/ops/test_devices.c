/* Every op case through the public API on every device that this machine has: builder, planner, arena, program. The
 * sessions are checked ones, so that a kernel that writes outside its slots is caught as well. */
#include <stdbool.h>
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

#define NO_OPERAND UINT32_MAX
#define SPARE 2 /* slices of `wide` that are left out: the first and the last */

/* An operand whose first extent only a run knows: the slices of a larger one that `keep` says. */
static berth_status add_bounded(berth_graph *graph, const op_tensor *in, berth_value *out, berth_error *err) {
  const int64_t flat = -1;
  const berth_attr shape = berth_attr_ints("shape", &flat, 1);
  int64_t dim[BERTH_MAX_RANK];
  berth_value values[2], places;
  memcpy(dim, in->dim, sizeof dim);
  dim[0] += SPARE;
  berth_status status = berth_graph_input(graph, "wide", in->type, berth_shape_fixed(in->rank, dim), &values[0], err);
  if (status == BERTH_OK)
    status = berth_graph_input(graph, "keep", BERTH_BOOL, berth_shape_fixed(1, dim), &values[1], err);
  if (status == BERTH_OK) status = berth_graph_add(graph, "non_zero", &values[1], 1, NULL, 0, &places, 1, err);
  if (status == BERTH_OK) status = berth_graph_add(graph, "reshape", &places, 1, &shape, 1, &values[1], 1, err);
  return status == BERTH_OK ? berth_graph_add(graph, "gather", values, 2, NULL, 0, out, 1, err) : status;
}

/* bounded: which operand gets an extent that only a run knows. */
static berth_status build(berth_context *ctx, const op_case *c, uint32_t bounded, berth_graph **graph,
                          berth_error *err) {
  berth_value in[OP_CASE_MAX], out[OP_CASE_MAX];
  char name[32];
  berth_status status = berth_graph_create(ctx, c->name, graph, err);
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    in[i] = BERTH_VALUE_NONE;
    if (c->in[i].type == BERTH_TYPE_NONE) continue;
    snprintf(name, sizeof name, "in%u", i);
    if (i == bounded) {
      status = add_bounded(*graph, &c->in[i], &in[i], err);
      continue;
    }
    status =
        berth_graph_input(*graph, name, c->in[i].type, berth_shape_fixed(c->in[i].rank, c->in[i].dim), &in[i], err);
  }
  uint32_t n_in = c->n_in;
  while (n_in > 0 && in[n_in - 1] == BERTH_VALUE_NONE) n_in--; /* optional operands at the end are simply not given */
  uint32_t n_out = c->error == NULL ? c->n_out : berth__op_find(ctx, c->op)->min_out; /* errors name no outputs */
  if (status == BERTH_OK) status = berth_graph_add(*graph, c->op, in, n_in, c->attrs, c->n_attrs, out, n_out, err);
  for (uint32_t i = 0; i < n_out && status == BERTH_OK; i++) {
    snprintf(name, sizeof name, "out%u", i);
    status = berth_graph_output(*graph, name, out[i], err);
  }
  return status;
}

/* Operands that shapes depend on must be known when a plan is made, but for those that leave extents bounded. */
static berth_status fix_operands(berth_graph *graph, const op_case *c, bool bounds_too, berth_error *err) {
  char name[32];
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < c->n_in && status == BERTH_OK; i++) {
    const op_tensor *in = &c->in[i];
    snprintf(name, sizeof name, "in%u", i);
    int depend = berth_graph_shapes_depend(graph, berth_graph_find(graph, name));
    if (depend == BERTH_SHAPES_FREE || (depend == BERTH_SHAPES_BOUNDED && !bounds_too)) continue;
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
    if (c->in[i].type == BERTH_TYPE_NONE || berth_graph_find(graph, name) == BERTH_VALUE_NONE) continue;
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

static int holds_on(berth_context *ctx, const op_case *c, const char *device, uint32_t n_threads, bool fixes_bounds) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.device = device;
  desc.n_threads = n_threads;
  desc.flags = BERTH_SESSION_CHECKED;
  berth_status status = build(ctx, c, NO_OPERAND, &graph, &err);
  if (status == BERTH_OK) status = fix_operands(graph, c, fixes_bounds, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_OK) status = run(session, c, &err);
  int good = status == BERTH_OK && matches(session, c, device, &err);
  if (status != BERTH_OK) fprintf(stderr, "%s:%d: %s on %s: %s\n", c->file, c->line, c->name, device, err.message);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return good;
}

/* When it is built, when it is planned, or, where only the data is wrong, when it runs. */
static int fails(berth_context *ctx, const op_case *c) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_status status = build(ctx, c, NO_OPERAND, &graph, &err);
  if (status == BERTH_OK) status = fix_operands(graph, c, true, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, &err);
  if (status == BERTH_OK) status = run(session, c, &err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  int good = status != BERTH_OK && strstr(err.message, c->error) != NULL;
  if (!good) fprintf(stderr, "%s:%d: %s: expected '%s', got '%s'\n", c->file, c->line, c->name, c->error, err.message);
  return good;
}

/* A loop_end by itself is no graph; tests/plan/test_loops.c runs whole loops. */
static int is_graph(const op_case *c) { return strcmp(c->op, "loop_end") != 0; }

/* The operand's slices between two that are left out. */
static berth_status write_bounded(berth_session *session, const op_tensor *in, berth_error *err) {
  const size_t slice = in->size / (size_t)in->dim[0], n = (size_t)in->dim[0] + SPARE;
  char *wide = calloc(n, slice + 1), *keep = malloc(n);
  memset(keep, 1, n);
  keep[0] = keep[n - 1] = 0;
  memcpy(wide + slice, in->data, in->size);
  berth_status status = berth_session_write(session, "wide", wide, n * slice, err);
  if (status == BERTH_OK) status = berth_session_write(session, "keep", keep, n, err);
  free(wide);
  free(keep);
  return status;
}

static bool has_shape(berth_session *session, const op_case *c) {
  for (uint32_t i = 0; i < c->n_out; i++) {
    int64_t dim[BERTH_MAX_RANK];
    uint32_t rank;
    if (berth_session_output_shape(session, i, &rank, dim, NULL) != BERTH_OK || rank != c->out[i].rank) return false;
    for (uint32_t d = 0; d < rank; d++)
      if (dim[d] != c->out[i].dim[d]) return false;
  }
  return true;
}

typedef enum outcome {
  REFUSED, /* there is no plan: a rank follows from the extent, or the larger one does not go with the others */
  HOLDS,
  FAILS
} outcome;

static outcome holds_bounded(berth_context *ctx, const op_case *c, uint32_t bounded) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  outcome result = REFUSED;
  desc.flags = BERTH_SESSION_CHECKED;
  berth_status status = build(ctx, c, bounded, &graph, &err);
  if (status == BERTH_OK) status = fix_operands(graph, c, true, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (session != NULL) {
    status = write_bounded(session, &c->in[bounded], &err);
    if (status == BERTH_OK) status = run(session, c, &err);
    result = status == BERTH_OK && has_shape(session, c) && matches(session, c, "cpu", &err) ? HOLDS : FAILS;
  }
  if (result == FAILS) fprintf(stderr, "%s:%d: %s, operand %u: %s\n", c->file, c->line, c->name, bounded, err.message);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  return result;
}

/* The true extent is the case's own; two more are planned. Most ops take any operand so. */
static void cases_hold_with_extents_that_a_run_finds(void **state) {
  berth_context *ctx = test_context();
  int count[3] = {0};
  (void)state;
  for (size_t i = 0; i < cases.count; i++) {
    const op_case *c = &cases.items[i];
    for (uint32_t k = 0; k < c->n_in && c->error == NULL && is_graph(c); k++)
      if (c->in[k].type != BERTH_TYPE_NONE && c->in[k].rank > 0 && c->in[k].dim[0] > 0)
        count[holds_bounded(ctx, c, k)]++;
  }
  print_message("# %d hold, %d refused\n", count[HOLDS], count[REFUSED]);
  assert_int_equal(count[FAILS], 0);
  assert_true(count[HOLDS] > count[REFUSED]);
  berth_context_destroy(ctx);
}

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
    for (size_t i = 0; i < cases.count; i++) {
      if (cases.items[i].error != NULL || !is_graph(&cases.items[i])) continue;
      failures += !holds_on(ctx, &cases.items[i], info.name, 1 + i % 2, true);
      failures += !holds_on(ctx, &cases.items[i], info.name, 1 + i % 2, false);
    }
  }
  assert_int_equal(failures, 0);
  berth_context_destroy(ctx);
}

static void every_wrong_case_is_refused(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  int failures = 0;
  for (size_t i = 0; i < cases.count; i++)
    if (cases.items[i].error != NULL) failures += !fails(ctx, &cases.items[i]);
  assert_int_equal(failures, 0);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_case_holds_on_every_device),
      cmocka_unit_test(every_wrong_case_is_refused),
      cmocka_unit_test(cases_hold_with_extents_that_a_run_finds),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
