/* Reading and writing values, and running. */
#include "base/desc.h"
#include "session/session.h"

/* The value as the current binding has it. */
static const berth__value *bound_value(const berth_session *session, berth_value value) {
  return &berth__session_current(session)->plan->graph->values[value];
}

/* As found by the last run, if the plan has only a bound. */
static const berth__shape *true_shape(const berth_session *session, berth_value value) {
  const berth__shape *shapes =
      session->device->shapes != NULL ? session->device->shapes(berth__session_current(session)->program) : NULL;
  return shapes != NULL ? &shapes[value] : &bound_value(session, value)->shape;
}

static uint64_t true_size(const berth_session *session, berth_value value) {
  const berth__value as_is = {.type = bound_value(session, value)->type, .shape = *true_shape(session, value)};
  uint64_t size = 0;
  berth__value_size(&as_is, &size);
  return size;
}

static berth_status session_io_check_size(const berth_session *session, const char *what, berth_value value,
                                          const void *data, size_t size, berth_error *err) {
  const berth__value *v = bound_value(session, value);
  char shape[BERTH__SHAPE_TEXT];
  uint64_t expected = 0;
  berth__value_size(v, &expected);
  if (expected != size)
    return berth__fail(err, BERTH_INVALID, "%s '%s' is %s%s and has %llu byte%s, but %zu %s given", what, v->name,
                       berth_type_name(v->type), berth__shape_text(&v->shape, shape), (unsigned long long)expected,
                       berth__plural(expected), size, size == 1 ? "was" : "were");
  if (data == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "%s '%s': the data is NULL", what, v->name);
  return BERTH_OK;
}

berth_status berth__session_place_constants(berth_session *session, berth_error *err) {
  const berth_graph *graph = berth__session_current(session)->plan->graph;
  for (size_t v = 0; v < graph->n_values; v++) {
    uint64_t size = 0;
    if (graph->values[v].kind != BERTH_VALUE_CONSTANT || !berth__session_in_arena(session, (berth_value)v)) continue;
    berth__value_size(&graph->values[v], &size);
    BERTH__TRY(berth__arena_put(session->arena, (berth_value)v, 0, graph->values[v].data, size, err));
  }
  return BERTH_OK;
}

static berth_status find_value(const berth_session *session, const char *name, berth_value_kind kind, const char *what,
                               berth_value *out, berth_error *err) {
  if (session == NULL || name == NULL) return berth__fail(err, BERTH_INVALID, "a session and a name are needed");
  BERTH__TRY(berth__session_idle(session, err));
  *out = berth_graph_find(session->graph, name);
  if (*out != BERTH_VALUE_NONE && session->graph->values[*out].kind == kind) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "graph '%s' has no %s '%s'", session->graph->name, what, name);
}

berth_status berth_session_set_param(berth_session *session, const char *name, const void *data, size_t size,
                                     berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  BERTH__TRY(find_value(session, name, BERTH_VALUE_PARAM, "param", &value, err));
  BERTH__TRY(session_io_check_size(session, "param", value, data, size, err));
  return berth__session_set_param(session, value, data, size, err);
}

berth_status berth_session_use(berth_session *session, const char *name, const void *data, size_t size,
                               berth_error *err) {
  if (session == NULL || name == NULL) return berth__fail(err, BERTH_INVALID, "a session and a name are needed");
  BERTH__TRY(berth__session_idle(session, err));
  berth_value value = berth_graph_find(session->graph, name);
  berth_value_kind kind = value != BERTH_VALUE_NONE ? session->graph->values[value].kind : BERTH_VALUE_DROPPED;
  if (kind != BERTH_VALUE_INPUT && kind != BERTH_VALUE_PARAM)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no input or param '%s'", session->graph->name, name);
  if (berth__session_in_arena(session, value))
    return berth__fail(err, BERTH_INVALID, "'%s' lies in the arena; write to it, or plan it outside", name);
  BERTH__TRY(session_io_check_size(session, "value", value, data, size, err));
  if ((uintptr_t)data % berth__type_align(bound_value(session, value)->type) != 0)
    return berth__fail(err, BERTH_INVALID, "the memory for '%s' is not aligned to its elements", name);
  return berth__session_use(session, value, data, size, err);
}

static berth_status session_io_write_input(berth_session *session, berth_value value, const void *src, size_t size,
                                           berth_error *err) {
  BERTH__TRY(session_io_check_size(session, "input", value, src, size, err));
  if (!berth__session_in_arena(session, value))
    return berth__fail(err, BERTH_INVALID,
                       "input '%s' is planned outside the arena; name its memory with berth_session_use",
                       session->graph->values[value].name);
  return berth__arena_put(session->arena, value, 0, src, size, err);
}

berth_status berth_session_write(berth_session *session, const char *input, const void *src, size_t size,
                                 berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  BERTH__TRY(find_value(session, input, BERTH_VALUE_INPUT, "input", &value, err));
  return session_io_write_input(session, value, src, size, err);
}

static berth_status session_io_input_at(const berth_session *session, uint32_t index, berth_value *out,
                                        berth_error *err) {
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  *out = berth_graph_input_at(session->graph, index);
  if (*out != BERTH_VALUE_NONE) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "graph '%s' has no input number %u; it has %zu", session->graph->name, index,
                     session->graph->n_inputs);
}

berth_status berth_session_write_at(berth_session *session, uint32_t input, const void *src, size_t size,
                                    berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  BERTH__TRY(session_io_input_at(session, input, &value, err));
  return session_io_write_input(session, value, src, size, err);
}

static berth_status session_io_output_at(const berth_session *session, uint32_t index, berth_value *out,
                                         berth_error *err) {
  if (session == NULL) return berth__fail(err, BERTH_INVALID, "the session is NULL");
  BERTH__TRY(berth__session_idle(session, err));
  *out = berth_graph_output_at(session->graph, index);
  if (*out != BERTH_VALUE_NONE) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "graph '%s' has no output number %u; it has %zu", session->graph->name, index,
                     session->graph->n_outputs);
}

/* An output that is a view of a value outside the arena lies outside too. */
static berth_status outside_data(const berth_session *session, uint32_t output, berth_value value, const void **data,
                                 berth_error *err) {
  const berth__place *place = &berth__session_current(session)->plan->places[value];
  const unsigned char *root = berth__session_current(session)->outside[place->root];
  if (root == NULL)
    return berth__fail(err, BERTH_INVALID, "output %u shows '%s', which lies outside the arena and has no memory yet",
                       output, session->graph->values[place->root].name);
  *data = root + place->root_offset;
  return BERTH_OK;
}

/* Memory for the planned extents is large enough for the true ones. */
static berth_status check_room(const berth_session *session, berth_value value, const void *dst, size_t *size,
                               berth_error *err) {
  const berth__value *v = bound_value(session, value);
  const uint64_t needed = true_size(session, value);
  char shape[BERTH__SHAPE_TEXT];
  uint64_t planned = 0;
  berth__value_size(v, &planned);
  if (v->bounded == 0) return session_io_check_size(session, "output", value, dst, *size, err);
  if (*size < needed || *size > planned)
    return berth__fail(err, BERTH_INVALID,
                       "output '%s' is %s%s in the last run and has %llu byte%s (%llu %s planned), but room for %zu was"
                       " given",
                       v->name, berth_type_name(v->type), berth__shape_text(true_shape(session, value), shape),
                       (unsigned long long)needed, berth__plural(needed), (unsigned long long)planned,
                       planned == 1 ? "is" : "are", *size);
  if (dst == NULL && needed != 0) return berth__fail(err, BERTH_INVALID, "output '%s': the data is NULL", v->name);
  *size = (size_t)needed;
  return BERTH_OK;
}

berth_status berth_session_output_shape(const berth_session *session, uint32_t output, uint32_t *rank, int64_t *dim,
                                        berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  if (rank != NULL) *rank = 0;
  if (rank == NULL || dim == NULL)
    return berth__fail(err, BERTH_INVALID, "places for the rank and the extents are needed");
  BERTH__TRY(session_io_output_at(session, output, &value, err));
  const berth__shape *shape = true_shape(session, value);
  *rank = shape->rank;
  memcpy(dim, shape->dim, sizeof shape->dim);
  return BERTH_OK;
}

berth_status berth_session_read_at(berth_session *session, uint32_t output, void *dst, size_t size, berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  BERTH__TRY(session_io_output_at(session, output, &value, err));
  BERTH__TRY(check_room(session, value, dst, &size, err));
  if (berth__session_in_arena(session, value)) return berth__arena_get(session->arena, value, dst, size, err);
  const void *data = NULL;
  BERTH__TRY(outside_data(session, output, value, &data, err));
  if (size != 0) memcpy(dst, data, size);
  return BERTH_OK;
}

berth_status berth_session_read(berth_session *session, const char *output, void *dst, size_t size, berth_error *err) {
  if (session == NULL || output == NULL) return berth__fail(err, BERTH_INVALID, "a session and a name are needed");
  for (uint32_t i = 0; i < session->graph->n_outputs; i++)
    if (strcmp(session->graph->outputs[i].name, output) == 0) return berth_session_read_at(session, i, dst, size, err);
  return berth__fail(err, BERTH_INVALID, "graph '%s' has no output '%s'", session->graph->name, output);
}

static berth_status want_places(bool has_data, size_t *size, berth_error *err) {
  if (size != NULL) *size = 0;
  if (!has_data || size == NULL)
    return berth__fail(err, BERTH_INVALID, "places for the pointer and the size are needed");
  return BERTH_OK;
}

static berth_status slot_data(berth_session *session, berth_value value, void **data, size_t *size, berth_error *err) {
  BERTH__TRY(berth_arena_slice(session->arena, value, bound_value(session, value)->type, data, NULL, err));
  *size = (size_t)true_size(session, value);
  return BERTH_OK;
}

berth_status berth_session_input_data(berth_session *session, uint32_t input, void **data, size_t *size,
                                      berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  if (data != NULL) *data = NULL;
  BERTH__TRY(want_places(data != NULL, size, err));
  BERTH__TRY(session_io_input_at(session, input, &value, err));
  if (!berth__session_in_arena(session, value))
    return berth__fail(err, BERTH_INVALID, "input '%s' is planned outside the arena",
                       session->graph->values[value].name);
  return slot_data(session, value, data, size, err);
}

berth_status berth_session_output_data(berth_session *session, uint32_t output, const void **data, size_t *size,
                                       berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  void *at = NULL;
  if (data != NULL) *data = NULL;
  BERTH__TRY(want_places(data != NULL, size, err));
  BERTH__TRY(session_io_output_at(session, output, &value, err));
  if (berth__session_in_arena(session, value)) {
    BERTH__TRY(slot_data(session, value, &at, size, err));
    *data = at;
    return BERTH_OK;
  }
  BERTH__TRY(outside_data(session, output, value, data, err));
  *size = (size_t)true_size(session, value);
  return BERTH_OK;
}

/* ---- Memory that other libraries address as well ---- */

/* Where a value outside the arena lies: in host memory. */
static berth_memory session_io_host(const void *data, uint64_t size) {
  berth_memory memory = BERTH_MEMORY_INIT;
  memory.address = (uint64_t)(uintptr_t)data;
  memory.size = size;
  return memory;
}

static berth_status session_io_memory(berth_session *session, berth_value value, berth_memory *out, berth_error *err) {
  berth_memory memory;
  BERTH__TRY(berth__arena_memory(session->arena, value, bound_value(session, value)->type, &memory, err));
  memory.size = true_size(session, value);
  return BERTH__RESULT_WRITE(out, &memory, "berth_memory", err);
}

berth_status berth_session_input_memory(berth_session *session, uint32_t input, berth_memory *out, berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  BERTH__TRY(berth__result_check(out, "berth_memory", err));
  BERTH__TRY(session_io_input_at(session, input, &value, err));
  if (!berth__session_in_arena(session, value))
    return berth__fail(err, BERTH_INVALID, "input '%s' is planned outside the arena",
                       session->graph->values[value].name);
  return session_io_memory(session, value, out, err);
}

berth_status berth_session_output_memory(berth_session *session, uint32_t output, berth_memory *out, berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  const void *data = NULL;
  BERTH__TRY(berth__result_check(out, "berth_memory", err));
  BERTH__TRY(session_io_output_at(session, output, &value, err));
  if (berth__session_in_arena(session, value)) return session_io_memory(session, value, out, err);
  BERTH__TRY(outside_data(session, output, value, &data, err));
  const berth_memory memory = session_io_host(data, true_size(session, value));
  return BERTH__RESULT_WRITE(out, &memory, "berth_memory", err);
}

static berth_status session_io_given(const berth_memory *given, berth_memory *out, berth_error *err) {
  *out = (berth_memory)BERTH_MEMORY_INIT;
  if (given == NULL) return berth__fail(err, BERTH_INVALID, "the memory is NULL");
  BERTH__TRY(BERTH__DESC_COPY(out, given, "berth_memory", err));
  if (out->kind == BERTH_MEMORY_HOST || out->kind == BERTH_MEMORY_CUDA) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "there is no memory of kind %d", (int)out->kind);
}

berth_status berth_session_write_memory(berth_session *session, uint32_t input, const berth_memory *src,
                                        berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  berth_memory from;
  BERTH__TRY(session_io_given(src, &from, err));
  BERTH__TRY(session_io_input_at(session, input, &value, err));
  if (from.kind == BERTH_MEMORY_HOST)
    return session_io_write_input(session, value, (const void *)(uintptr_t)from.address, (size_t)from.size, err);
  BERTH__TRY(
      session_io_check_size(session, "input", value, (const void *)(uintptr_t)from.address, (size_t)from.size, err));
  return berth__arena_write_memory(session->arena, value, &from, err);
}

berth_status berth_session_read_memory(berth_session *session, uint32_t output, const berth_memory *dst,
                                       berth_error *err) {
  berth_value value = BERTH_VALUE_NONE;
  berth_memory to;
  BERTH__TRY(session_io_given(dst, &to, err));
  if (to.kind == BERTH_MEMORY_HOST)
    return berth_session_read_at(session, output, (void *)(uintptr_t)to.address, (size_t)to.size, err);
  BERTH__TRY(session_io_output_at(session, output, &value, err));
  size_t size = (size_t)to.size;
  BERTH__TRY(check_room(session, value, (const void *)(uintptr_t)to.address, &size, err));
  to.size = size;
  return berth__arena_read_memory(session->arena, value, &to, err);
}
