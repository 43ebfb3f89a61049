/* Every op case through the public API on the CPU: builder, planner, arena, program. The sessions are checked ones, so
 * that a kernel that writes outside its slots is caught as well. test_devices_gpu.c has the other devices. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "case_graph.h"
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

static int holds_on(berth_context *ctx, const op_case *c, const char *device, uint32_t n_threads, bool fixes_bounds) {
  berth_error err = {.message = ""};
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  desc.device = device;
  desc.n_threads = n_threads;
  desc.flags = BERTH_SESSION_CHECKED;
  berth_status status = case_build(ctx, c, CASE_NO_OPERAND, &graph, &err);
  if (status == BERTH_OK) status = case_fix_operands(graph, c, fixes_bounds, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_OK) status = case_run(session, c, &err);
  int good = status == BERTH_OK && case_matches(session, c, device, &err);
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
  berth_status status = case_build(ctx, c, CASE_NO_OPERAND, &graph, &err);
  if (status == BERTH_OK) status = case_fix_operands(graph, c, true, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, NULL, &session, &err);
  if (status == BERTH_OK) status = case_run(session, c, &err);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  int good = status != BERTH_OK && strstr(err.message, c->error) != NULL;
  if (!good) fprintf(stderr, "%s:%d: %s: expected '%s', got '%s'\n", c->file, c->line, c->name, c->error, err.message);
  return good;
}

/* The operand's slices between two that are left out. */
static berth_status write_bounded(berth_session *session, const op_tensor *in, berth_error *err) {
  const size_t slice = in->size / (size_t)in->dim[0], n = (size_t)in->dim[0] + CASE_SPARE;
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
  berth_status status = case_build(ctx, c, bounded, &graph, &err);
  if (status == BERTH_OK) status = case_fix_operands(graph, c, true, &err);
  if (status == BERTH_OK) status = berth_session_create(graph, &desc, &session, &err);
  if (session != NULL) {
    status = write_bounded(session, &c->in[bounded], &err);
    if (status == BERTH_OK) status = case_run(session, c, &err);
    result = status == BERTH_OK && has_shape(session, c) && case_matches(session, c, "cpu", &err) ? HOLDS : FAILS;
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
    for (uint32_t k = 0; k < c->n_in && c->error == NULL && case_is_graph(c); k++)
      if (c->in[k].type != BERTH_TYPE_NONE && c->in[k].rank > 0 && c->in[k].dim[0] > 0)
        count[holds_bounded(ctx, c, k)]++;
  }
  print_message("# %d hold, %d refused\n", count[HOLDS], count[REFUSED]);
  assert_int_equal(count[FAILS], 0);
  assert_true(count[HOLDS] > count[REFUSED]);
  berth_context_destroy(ctx);
}

static void every_case_holds(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  int failures = 0;
  for (size_t i = 0; i < cases.count; i++) {
    if (cases.items[i].error != NULL || !case_is_graph(&cases.items[i])) continue;
    failures += !holds_on(ctx, &cases.items[i], "cpu", 1 + i % 2, true);
    failures += !holds_on(ctx, &cases.items[i], "cpu", 1 + i % 2, false);
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
      cmocka_unit_test(every_case_holds),
      cmocka_unit_test(every_wrong_case_is_refused),
      cmocka_unit_test(cases_hold_with_extents_that_a_run_finds),
  };
  return cmocka_run_group_tests(tests, load, unload);
}
