/* States, which outlive a run, and their updates. */
#include "base/math.h"
#include "base/storage.h"
#include "graph/graph.h"

static berth_status check_initial(const char *label, berth_type type, const berth_shape *shape, size_t size,
                                  berth_error *err) {
  uint64_t count = 1, bytes = size;
  for (uint32_t i = 0; i < shape->rank && i < BERTH_MAX_RANK; i++) {
    if (shape->dim[i].name != NULL)
      return berth__fail(err, BERTH_INVALID,
                         "state '%s' has the named dimension '%s' and an initial value; only one that begins as zeros "
                         "may have named dimensions",
                         label, shape->dim[i].name);
    if (shape->dim[i].extent < 0 || !berth__mul_u64(count, (uint64_t)shape->dim[i].extent, &count))
      return berth__fail(err, BERTH_INVALID, "state '%s': dimension %u is %lld, which is negative or too large", label,
                         i, (long long)shape->dim[i].extent);
  }
  if (berth__storage_bytes(berth_type_storage(type), count, &bytes) && bytes != size)
    return berth__fail(err, BERTH_INVALID, "state '%s' needs %llu byte%s by its shape but %zu were given", label,
                       (unsigned long long)bytes, berth__plural(bytes), size);
  return BERTH_OK;
}

static berth_status add_state(berth_graph *graph, const char *name, berth_type type, const berth_shape *shape,
                              const void *data, size_t size, berth_value *out, berth_error *err) {
  berth__blob *initial = NULL;
  if (data == NULL && size != 0)
    return berth__fail(err, BERTH_INVALID, "state '%s': %zu byte%s %s counted but not given", name != NULL ? name : "",
                       size, berth__plural(size), size == 1 ? "is" : "are");
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->states, graph->states_capacity, graph->n_states + 1, err));
  if (data != NULL) {
    BERTH__TRY(check_initial(name != NULL ? name : "", type, shape, size, err));
    initial = berth__blob_create(graph->ctx, data, size);
    if (initial == NULL) return berth__fail_nomem(err, "a state");
  }
  berth_status status = berth__graph_add_source(graph, name, BERTH_VALUE_STATE, type, shape, out, err);
  if (status != BERTH_OK) {
    berth__blob_release(initial);
    return status;
  }
  graph->values[*out].initial = initial;
  graph->states[graph->n_states++] = *out;
  return BERTH_OK;
}

berth_status berth_graph_state(berth_graph *graph, const char *name, berth_type type, berth_shape shape,
                               const void *data, size_t size, berth_value *out, berth_error *err) {
  berth_value ignored;
  if (out == NULL) out = &ignored;
  *out = BERTH_VALUE_NONE;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  return add_state(graph, name, type, &shape, data, size, out, err);
}

/* Extents that are unknown before binding are checked then. */
static bool may_be_equal(int64_t a, int64_t b) { return a == b || a == BERTH__DIM_UNKNOWN || b == BERTH__DIM_UNKNOWN; }

berth_status berth__graph_check_update(const berth_graph *graph, berth__update update, berth_error *err) {
  if (update.state >= graph->n_values || graph->values[update.state].kind != BERTH_VALUE_STATE)
    return berth__fail(err, BERTH_INVALID, "'%s' is updated but is not a state",
                       update.state < graph->n_values ? graph->values[update.state].name : "?");
  const berth__value *state = &graph->values[update.state];
  if (update.next >= graph->n_values)
    return berth__fail(err, BERTH_INVALID, "state '%s' is updated from value %u, which the graph does not have",
                       state->name, update.next);
  const berth__value *next = &graph->values[update.next];
  char wanted[BERTH__SHAPE_TEXT], given[BERTH__SHAPE_TEXT];
  bool fits = state->type == next->type && state->shape.rank == next->shape.rank;
  for (uint32_t i = 0; fits && i < state->shape.rank; i++) fits = may_be_equal(state->shape.dim[i], next->shape.dim[i]);
  if (!fits)
    return berth__fail(err, BERTH_INVALID, "state '%s' is %s%s but is updated from '%s', which is %s%s", state->name,
                       berth_type_name(state->type), berth__shape_text(&state->shape, wanted), next->name,
                       berth_type_name(next->type), berth__shape_text(&next->shape, given));
  if (next->bounded != 0)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "state '%s' is updated from '%s', whose extents depend on elements that only a run computes; a "
                       "state has the same extents in every run",
                       state->name, next->name);
  return BERTH_OK;
}

berth_status berth_graph_update(berth_graph *graph, berth_value state, berth_value next, berth_error *err) {
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  const berth__update update = {.state = state, .next = next};
  BERTH__TRY(berth__graph_check_update(graph, update, err));
  if (berth_graph_next(graph, state) != BERTH_VALUE_NONE)
    return berth__fail(err, BERTH_INVALID, "state '%s' is updated twice; what it becomes is one value",
                       graph->values[state].name);
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->updates, graph->updates_capacity, graph->n_updates + 1, err));
  graph->updates[graph->n_updates++] = update;
  return BERTH_OK;
}
