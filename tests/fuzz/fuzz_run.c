/* Any bytes as the text of a graph: if they are one, and a small one, it is planned and run, with reuse and without;
 * the checked mode finds no stray write, and the results are bitwise the same. A graph with states is run twice. */
#include "fuzz/fuzz.h"
#include "graph/graph.h"

#define MAX_BYTES (1 << 20) /* of all values together */
#define MAX_ITEMS (1 << 16) /* elements of one value */

/* Products of small shapes may still take long: limits the elements that one node touches. */
static int is_small(const berth_graph *graph) {
  uint64_t total = 0;
  if (berth_graph_n_nodes(graph) > 64) return 0;
  for (berth_value v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    FUZZ_CHECK(berth_graph_value(graph, v, &info, NULL) == BERTH_OK);
    total += info.size;
    if (info.size > MAX_ITEMS || total > MAX_BYTES) return 0;
  }
  return 1;
}

/* Loops must end: their number of rounds is a small constant, or an input, which is 0 or 1 here. */
static int is_finite(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++) {
    if (graph->nodes[n].op->code != BERTH__OP_loop_begin) continue;
    const berth__value *trips = &graph->values[graph->nodes[n].in[BERTH__LOOP_TRIPS]];
    if (trips->kind == BERTH_VALUE_INPUT || trips->kind == BERTH_VALUE_PARAM) continue;
    if (trips->blob == NULL || *(const int64_t *)trips->data > 4) return 0;
  }
  return 1;
}

static berth_graph *bind_small(const berth_graph *graph) {
  berth_dim dims[4];
  berth_graph *bound = NULL;
  uint32_t n = berth_graph_n_dims(graph);
  if (n > 4) return NULL;
  for (uint32_t i = 0; i < n; i++) dims[i] = (berth_dim){berth_graph_dim_name(graph, i), (int64_t)i + 2};
  berth_graph_bind(graph, dims, n, &bound, NULL);
  return bound;
}

/* The same bytes for the same value in every session; small numbers, so that indices are sometimes valid. */
static void fill(unsigned char *data, uint64_t size, berth_type type, uint32_t seed) {
  uint64_t count = size / berth_type_size(type);
  for (uint64_t i = 0; i < count; i++) {
    seed = seed * 1664525u + 1013904223u;
    int small = (int)(seed >> 28) - 4;
    if (type == BERTH_F32) ((float *)(void *)data)[i] = (float)small * 0.5f;
    if (type == BERTH_F64) ((double *)(void *)data)[i] = small * 0.5;
    if (type == BERTH_F16 || type == BERTH_BF16) ((uint16_t *)(void *)data)[i] = (uint16_t)(0x3f00 + small);
    if (type == BERTH_I8 || type == BERTH_U8) data[i] = (unsigned char)(small + 4);
    if (type == BERTH_BOOL) data[i] = small > 0;
    if (type == BERTH_I16) ((int16_t *)(void *)data)[i] = (int16_t)small;
    if (type == BERTH_I32 || type == BERTH_U32) ((int32_t *)(void *)data)[i] = small & 3;
    if (type == BERTH_U16) ((uint16_t *)(void *)data)[i] = (uint16_t)small;
    if (type == BERTH_I64 || type == BERTH_U64) ((int64_t *)(void *)data)[i] = small & 1;
  }
}

static void write_all(berth_session *session, const berth_graph *graph) {
  for (berth_value v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    FUZZ_CHECK(berth_graph_value(graph, v, &info, NULL) == BERTH_OK);
    if (info.kind != BERTH_VALUE_INPUT && info.kind != BERTH_VALUE_PARAM) continue;
    unsigned char *data = malloc((size_t)info.size + 1);
    FUZZ_CHECK(data != NULL);
    fill(data, info.size, info.type, v);
    berth_status status = info.kind == BERTH_VALUE_INPUT
                              ? berth_session_write(session, info.name, data, (size_t)info.size, NULL)
                              : berth_session_set_param(session, info.name, data, (size_t)info.size, NULL);
    FUZZ_CHECK(status == BERTH_OK);
    free(data);
  }
}

/* NULL: the run failed, which may be correct for a kernel (an index out of range) or the data (an extent above its
 * bound). */
static berth_session *run(const berth_graph *graph, uint32_t flags, berth_order order, berth_status *status) {
  berth_session *session = NULL;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err = {BERTH_OK, ""};
  plan.flags = flags;
  plan.order = order;
  plan.align = 16;
  plan.effort = 1000; /* many graphs are more important than good plans */
  desc.plan = &plan;
  desc.flags = BERTH_SESSION_CHECKED;
  *status = berth_session_create(graph, &desc, &session, &err);
  FUZZ_CHECK(*status == BERTH_OK || *status == BERTH_INVALID || *status == BERTH_UNSUPPORTED);
  if (*status != BERTH_OK) return NULL;
  FUZZ_CHECK(berth_plan_check(berth_session_plan(session), &err) == BERTH_OK);
  *status = BERTH_OK;
  for (int i = 0; i < (berth_graph_n_states(graph) != 0 ? 2 : 1) && *status == BERTH_OK; i++) {
    write_all(session, graph);
    *status = berth_session_run(session, &err);
  }
  if (*status == BERTH_INTERNAL) fprintf(stderr, "%s\n", err.message);
  FUZZ_CHECK(*status == BERTH_OK || *status == BERTH_INVALID || *status == BERTH_UNSUPPORTED ||
             *status == BERTH_INFEASIBLE);
  return session;
}

static void compare(berth_session *a, berth_session *b, const berth_graph *graph) {
  for (uint32_t i = 0; i < berth_graph_n_outputs(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    FUZZ_CHECK(berth_graph_value(graph, berth_graph_output_at(graph, i), &info, NULL) == BERTH_OK);
    unsigned char *x = calloc(1, (size_t)info.size + 1), *y = calloc(1, (size_t)info.size + 1);
    FUZZ_CHECK(x != NULL && y != NULL);
    FUZZ_CHECK(berth_session_read_at(a, i, x, (size_t)info.size, NULL) == BERTH_OK);
    FUZZ_CHECK(berth_session_read_at(b, i, y, (size_t)info.size, NULL) == BERTH_OK);
    FUZZ_CHECK(memcmp(x, y, (size_t)info.size) == 0);
    uint32_t rank[2];
    int64_t dim[2][BERTH_MAX_RANK] = {{0}};
    FUZZ_CHECK(berth_session_output_shape(a, i, &rank[0], dim[0], NULL) == BERTH_OK);
    FUZZ_CHECK(berth_session_output_shape(b, i, &rank[1], dim[1], NULL) == BERTH_OK);
    FUZZ_CHECK(rank[0] == rank[1] && memcmp(dim[0], dim[1], rank[0] * sizeof dim[0][0]) == 0);
    free(x);
    free(y);
  }
}

static void compare_states(berth_session *a, berth_session *b) {
  const size_t size = (size_t)berth_session_state_size(a);
  unsigned char *x = calloc(1, size + 1), *y = calloc(1, size + 1);
  FUZZ_CHECK(x != NULL && y != NULL && berth_session_state_size(b) == size);
  FUZZ_CHECK(berth_session_state_save(a, x, size, NULL) == BERTH_OK);
  FUZZ_CHECK(berth_session_state_save(b, y, size, NULL) == BERTH_OK);
  FUZZ_CHECK(memcmp(x, y, size) == 0);
  FUZZ_CHECK(berth_session_state_restore(a, y, size, NULL) == BERTH_OK);
  free(x);
  free(y);
}

static void check_run(const berth_graph *graph) {
  static const uint32_t flags[] = {0, BERTH_PLAN_INPUTS_DIE, BERTH_PLAN_NO_CONCAT,
                                   BERTH_PLAN_NO_STRIDED | BERTH_PLAN_NO_INPLACE};
  berth_status plain_status, status;
  berth_session *plain = run(graph, BERTH_PLAN_NO_REUSE, BERTH_ORDER_SOURCE, &plain_status);
  for (uint32_t k = 0; k < 5; k++) {
    berth_session *packed = run(graph, flags[k % 4], k == 4 ? BERTH_ORDER_MEMORY : BERTH_ORDER_SOURCE, &status);
    FUZZ_CHECK(status == plain_status);
    if (status == BERTH_OK) compare(plain, packed, graph);
    if (status == BERTH_OK) compare_states(plain, packed);
    berth_session_destroy(packed);
  }
  berth_session_destroy(plain);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth_graph *graph = NULL, *bound = NULL;
  if (berth_graph_parse(ctx, (const char *)data, size, &graph, NULL) == BERTH_OK) bound = bind_small(graph);
  if (bound != NULL && is_small(bound) && is_finite(bound)) check_run(bound);
  berth_graph_destroy(bound);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return 0;
}
