#include "plan/planning.h"

#include <stdio.h>
#include <stdlib.h>

int planning_setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  if (f == NULL) return -1;
  f->ctx = test_context_counting(&f->alloc);
  *state = f;
  return 0;
}

int planning_teardown(void **state) {
  fixture *f = *state;
  berth_plan_destroy(f->plan);
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
  free(f);
  return 0;
}

berth_graph *parse_graph(berth_context *ctx, const char *statements) {
  berth_error err;
  berth_graph *graph = NULL;
  size_t size = strlen(statements) + 32;
  char *text = malloc(size);
  assert_non_null(text);
  int length = snprintf(text, size, "graph \"test\" {\n%s\n}\n", statements);
  berth_status status = berth_graph_parse(ctx, text, (size_t)length, &graph, &err);
  free(text);
  test_expect_ok(status, &err, statements, __FILE__, __LINE__);
  return graph;
}

berth_plan_desc desc_with(uint32_t flags) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags = flags;
  desc.order = BERTH_ORDER_SOURCE; /* so that a test knows the step at which a value is born */
  return desc;
}

/* Without passes, so that a test finds every value that it wrote, and with the scratch of reference kernels. */
berth_plan *make_plan(const berth_graph *graph, const berth_plan_desc *desc) {
  berth_error err;
  berth_plan *plan = NULL;
  berth_plan_desc as_it_is = desc_with(0);
  if (desc != NULL) as_it_is = *desc;
  as_it_is.flags |= BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE;
  TEST_OK(berth_plan_create(graph, &as_it_is, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  return plan;
}

const berth_plan *plan_again(fixture *f, uint32_t flags) {
  berth_plan_desc desc = desc_with(flags);
  berth_plan_destroy(f->plan);
  f->plan = NULL;
  f->plan = make_plan(f->graph, &desc);
  return f->plan;
}

const berth_plan *plan_text(fixture *f, const char *statements, uint32_t flags) {
  berth_graph_destroy(f->graph);
  f->graph = NULL;
  f->graph = parse_graph(f->ctx, statements);
  return plan_again(f, flags);
}

berth_value find(const berth_plan *plan, const char *name) {
  berth_value value = berth_graph_find(berth_plan_graph(plan), name);
  if (value == BERTH_VALUE_NONE) fail_msg("there is no value '%s'", name);
  return value;
}

berth_slot slot_of(const berth_plan *plan, const char *name) {
  berth_error err;
  berth_slot slot = BERTH_SLOT_INIT;
  TEST_OK(berth_plan_slot(plan, find(plan, name), &slot, &err));
  return slot;
}

const berth__place *place_of(const berth_plan *plan, const char *name) { return &plan->places[find(plan, name)]; }

berth__buffer *buffer_of(const berth_plan *plan, const char *name) {
  uint32_t buffer = place_of(plan, name)->buffer;
  if (buffer == BERTH__NO_BUFFER) fail_msg("'%s' has no buffer", name);
  return &plan->buffers[buffer];
}

int share_bytes(const berth_plan *plan, const char *a, const char *b) {
  berth_slot x = slot_of(plan, a), y = slot_of(plan, b);
  if (x.offset == BERTH_OFFSET_NONE || y.offset == BERTH_OFFSET_NONE) return 0;
  return x.offset < y.offset + y.size && y.offset < x.offset + x.size;
}

void assert_view(const berth_plan *plan, const char *view, const char *root, uint64_t root_offset) {
  berth_slot slot = slot_of(plan, view), whole = slot_of(plan, root);
  if (!slot.is_view) fail_msg("'%s' is no view", view);
  if (slot.root != find(plan, root)) fail_msg("'%s' is a view of '%s'", view, plan->graph->values[slot.root].name);
  assert_int_equal(slot.root_offset, root_offset);
  if (whole.offset == BERTH_OFFSET_NONE)
    assert_int_equal(slot.offset, BERTH_OFFSET_NONE);
  else
    assert_int_equal(slot.offset, whole.offset + root_offset);
}

void assert_owner(const berth_plan *plan, const char *name) {
  berth_slot slot = slot_of(plan, name);
  if (slot.is_view || slot.root != find(plan, name))
    fail_msg("'%s' lies in '%s'", name, plan->graph->values[slot.root].name);
  assert_int_equal(slot.root_offset, 0);
}

void assert_in_place(const berth_plan *plan, const char *result, const char *operand) {
  berth_slot a = slot_of(plan, result), b = slot_of(plan, operand);
  if (!place_of(plan, result)->in_place) fail_msg("'%s' is not made in place", result);
  assert_false(a.is_view);
  assert_int_equal(a.root, b.root);
  assert_int_equal(a.offset, b.offset);
}

uint64_t activations_size(const berth_plan *plan) { return test_plan_info(plan).activations_size; }

/* ---- Runs ---- */

/* Numbers for every input and param, and the outputs. */
typedef struct numbers {
  const berth_graph *graph; /* bound */
  void **data;              /* one per value; NULL for results of nodes and for constants */
  void **expected;          /* one per output */
} numbers;

static char difference[512];

static uint64_t value_size(const berth_graph *graph, berth_value value, berth_value_info *info) {
  berth_error err;
  TEST_OK(berth_graph_value(graph, value, info, &err));
  return info->size;
}

static void fill(void *data, berth_type type, uint64_t size, uint64_t *random) {
  uint64_t n = size / berth_type_size(type);
  for (uint64_t i = 0; i < n; i++) {
    float x = test_random_f32(random);
    uint8_t small = (uint8_t)(test_random(random) % 3);
    uint16_t half = (uint16_t)((type == BERTH_F16 ? 0x3800 : 0x3f00) | (test_random(random) & 0x807f));
    switch (type) {
      case BERTH_F32: ((float *)data)[i] = x; break;
      case BERTH_F64: ((double *)data)[i] = (double)x; break;
      case BERTH_F16:
      case BERTH_BF16: ((uint16_t *)data)[i] = half; break;
      case BERTH_U16:
      case BERTH_I16: ((int16_t *)data)[i] = small; break;
      case BERTH_I32:
      case BERTH_U32: ((int32_t *)data)[i] = small; break;
      case BERTH_U64:
      case BERTH_I64: ((int64_t *)data)[i] = small; break;
      default: ((uint8_t *)data)[i] = type == BERTH_BOOL ? small & 1 : small; break;
    }
  }
}

static void *allocate(uint64_t size) {
  void *data = aligned_alloc(64, (size_t)((size + 127) & ~(uint64_t)63));
  assert_non_null(data);
  return data;
}

static numbers make_numbers(const berth_graph *graph) {
  uint32_t n = berth_graph_n_values(graph);
  uint64_t random = 1234567;
  numbers set = {.graph = graph,
                 .data = calloc(n + 1, sizeof(void *)),
                 .expected = calloc(berth_graph_n_outputs(graph) + 1, sizeof(void *))};
  assert_true(set.data != NULL && set.expected != NULL);
  for (uint32_t v = 0; v < n; v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    uint64_t size = value_size(graph, v, &info);
    if (info.kind != BERTH_VALUE_INPUT && info.kind != BERTH_VALUE_PARAM) continue;
    set.data[v] = allocate(size);
    fill(set.data[v], info.type, size, &random);
  }
  return set;
}

static void free_numbers(numbers *set) {
  for (uint32_t v = 0; v < berth_graph_n_values(set->graph); v++) free(set->data[v]);
  for (uint32_t i = 0; i < berth_graph_n_outputs(set->graph); i++) free(set->expected[i]);
  free(set->data);
  free(set->expected);
}

static berth_status give(berth_session *session, const numbers *set, int params, berth_error *err) {
  for (uint32_t v = 0; v < berth_graph_n_values(set->graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    berth_slot slot = BERTH_SLOT_INIT;
    if (set->data[v] == NULL) continue;
    uint64_t size = value_size(set->graph, v, &info);
    berth_status status = berth_plan_slot(berth_session_plan(session), v, &slot, err);
    if (status == BERTH_OK && (info.kind == BERTH_VALUE_PARAM) == params) {
      if (slot.offset == BERTH_OFFSET_NONE)
        status = berth_session_use(session, info.name, set->data[v], size, err);
      else if (params)
        status = berth_session_set_param(session, info.name, set->data[v], size, err);
      else
        status = berth_session_write(session, info.name, set->data[v], size, err);
    }
    if (status != BERTH_OK) return status;
  }
  return BERTH_OK;
}

/* Compares outputs with the expected ones, which the first run sets. */
static const char *take(berth_session *session, numbers *set, const char *label) {
  berth_error err;
  const char *found = NULL;
  for (uint32_t i = 0; i < berth_graph_n_outputs(set->graph) && found == NULL; i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    uint64_t size = value_size(set->graph, berth_graph_output_at(set->graph, i), &info);
    void *data = allocate(size);
    TEST_OK(berth_session_read_at(session, i, data, size, &err));
    if (set->expected[i] == NULL) {
      set->expected[i] = data;
      continue;
    }
    if (memcmp(data, set->expected[i], size) != 0) {
      snprintf(difference, sizeof difference, "%s: output '%s' (value '%s') differs", label,
               berth_graph_output_name(set->graph, i), info.name);
      found = difference;
    }
    free(data);
  }
  return found;
}

static const char *run_once(const berth_graph *graph, numbers *set, const berth_plan_desc *plan, uint32_t flags,
                            uint32_t n_threads, const char *label) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session = NULL;
  berth_error err;
  const char *found = NULL;
  desc.flags = flags;
  desc.n_threads = n_threads;
  desc.plan = plan;
  berth_status status = berth_session_create(graph, &desc, &session, &err);
  if (status == BERTH_OK) status = give(session, set, 1, &err);
  for (int run = 0; run < 2 && status == BERTH_OK && found == NULL; run++) {
    status = give(session, set, 0, &err);
    if (status == BERTH_OK) status = berth_session_run(session, &err);
    if (status == BERTH_OK) found = take(session, set, label);
  }
  if (status == BERTH_OK) status = berth_plan_check(berth_session_plan(session), &err);
  if (status != BERTH_OK) {
    snprintf(difference, sizeof difference, "%s: %.400s", label, err.message);
    found = difference;
  }
  berth_session_destroy(session);
  return found;
}

/* flags: of every session. Bitwise: the kernels are the same with and without shared bytes. */
static const char *compare_with(const berth_graph *graph, const berth_graph *bound, const berth_plan_desc *desc,
                                const berth_plan_desc *apart, uint32_t flags) {
  numbers set = make_numbers(bound);
  const uint32_t checked = flags | BERTH_SESSION_CHECKED;
  const char *found = run_once(graph, &set, apart, flags, 1, "unplanned");
  if (found == NULL) found = run_once(graph, &set, desc, flags, 1, "1 thread");
  if (found == NULL) found = run_once(graph, &set, desc, flags, 2, "2 threads");
  if (found == NULL) found = run_once(graph, &set, desc, checked, 1, "checked, 1 thread");
  if (found == NULL) found = run_once(graph, &set, desc, checked, 2, "checked, 2 threads");
  free_numbers(&set);
  return found;
}

const char *compare_runs(const berth_graph *graph, const berth_plan_desc *desc) {
  const uint32_t unshared = BERTH_PLAN_NO_REUSE | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_CONCAT | BERTH_PLAN_NO_STRIDED;
  berth_plan_desc apart = desc_with(unshared | BERTH_PLAN_NO_PASSES), lowered = desc_with(unshared | desc->flags);
  berth_graph *bound = NULL;
  berth_error err;
  apart.dims = lowered.dims = desc->dims;
  apart.n_dims = lowered.n_dims = desc->n_dims;
  TEST_OK(berth_graph_bind(graph, desc->dims, desc->n_dims, &bound, &err));
  const char *found = compare_with(graph, bound, desc, &apart, BERTH_SESSION_REFERENCE);
  if (found == NULL) found = compare_with(graph, bound, desc, &lowered, 0);
  berth_graph_destroy(bound);
  return found;
}

void assert_runs_alike(const berth_graph *graph, const berth_plan_desc *desc) {
  const char *found = compare_runs(graph, desc);
  if (found != NULL) fail_msg("%s", found);
}
