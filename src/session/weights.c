/* Weights: copied into the arena, or left in place for the prelude to read. */
#include "session/session.h"

bool berth__session_in_arena(const berth_session *session, berth_value value) {
  return berth__session_current(session)->plan->places[value].buffer != BERTH__NO_BUFFER;
}

berth_status berth__session_own(berth_session *session, berth_value value, size_t size, berth_error *err) {
  if (session->owned[value] == NULL) session->owned[value] = berth__alloc(session->ctx, size);
  return session->owned[value] != NULL ? BERTH_OK : berth__fail_nomem(err, "a param");
}

static void disown(berth_session *session, berth_value value) {
  berth__free(session->ctx, session->owned[value]);
  session->owned[value] = NULL;
}

/* A param that a binding holds in bytes of its own; other bindings may not have it in the arena at all. */
static bool is_own(const berth_plan *plan, berth_value param) {
  const uint32_t buffer = plan->places[param].buffer;
  return buffer != BERTH__NO_BUFFER && plan->buffers[buffer].offset >= plan->params_size;
}

static bool session_weights_is_outside(const berth__binding *binding, berth_value value) {
  return binding->plan->places[value].buffer == BERTH__NO_BUFFER;
}

/* Whether some binding reads it outside the arena. */
static bool is_outside_somewhere(const berth_session *session, berth_value value) {
  for (size_t i = 0; i < session->n_bindings; i++)
    if (session_weights_is_outside(&session->bindings[i], value)) return true;
  return false;
}

/* ---- Home: the slot of a param among the weights that bindings share ---- */

static bool has_home(const berth_session *session, berth_value param) {
  return berth__slots_offset(session->home, param) < berth_layout_size(session->layout);
}

static berth_status put_home(berth_session *session, berth_value param, const void *data, uint64_t size,
                             berth_error *err) {
  berth__arena_address(session->arena, session->home);
  const berth_status status = berth__arena_put(session->arena, param, 0, data, size, err);
  berth__arena_address(session->arena, berth__session_current(session)->slots);
  return status;
}

static berth_status get_home(berth_session *session, berth_value param, void *data, uint64_t size, berth_error *err) {
  berth__arena_address(session->arena, session->home);
  const berth_status status = berth__arena_get(session->arena, param, data, size, err);
  berth__arena_address(session->arena, berth__session_current(session)->slots);
  return status;
}

/* ---- Copies in host memory ---- */

/* Makes the current binding read the value there. On failure it is still read where it was. */
static berth_status point(berth_session *session, berth_value value, const void *data, berth_error *err) {
  const void *before = session->outside[value];
  session->outside[value] = data;
  const berth_status status = berth__session_rebind(session, err);
  if (status != BERTH_OK) {
    session->outside[value] = before;
    berth__session_current(session)->outside[value] = before; /* its program still has this address */
    berth__session_current(session)->bound = session->arena_number;
  }
  return status;
}

/* The session's own copy, with the contents that the param has had so far. */
static berth_status point_at_copy(berth_session *session, berth_value value, size_t size, berth_error *err) {
  const void *before = session->outside[value];
  const bool is_new = session->owned[value] == NULL;
  BERTH__TRY(berth__session_own(session, value, size, err));
  if (before == session->owned[value]) return BERTH_OK;
  if (before != NULL && size != 0) memcpy(session->owned[value], before, size);
  const berth_status status = point(session, value, session->owned[value], err);
  if (status != BERTH_OK && is_new) disown(session, value);
  return status;
}

/* The current binding has it in the arena. */
static void forget_copy(berth_session *session, berth_value value) {
  session->outside[value] = NULL;
  disown(session, value);
}

void berth__session_release_copies(berth_session *session) {
  for (size_t i = 0; session->home != NULL && i < session->graph->n_params; i++) {
    const berth_value param = session->graph->params[i];
    if (session->owned[param] != NULL && has_home(session, param) && !is_outside_somewhere(session, param))
      forget_copy(session, param);
  }
}

/* The host reads in the value's own type what only the prelude needs; the arena may have it in another storage. */
static berth_status bring_out(berth_session *session, berth_value param, berth_error *err) {
  uint64_t size = 0;
  berth__value_size(&session->graph->values[param], &size);
  BERTH__TRY(berth__session_own(session, param, (size_t)size, err));
  BERTH__TRY(get_home(session, param, session->owned[param], size, err));
  session->outside[param] = session->owned[param];
  return BERTH_OK;
}

berth_status berth__session_bring_out(berth_session *session, const berth__binding *binding, berth_error *err) {
  if (binding->plan->storages == NULL || session->home == NULL) return BERTH_OK;
  for (size_t i = 0; i < session->graph->n_params; i++) {
    const berth_value param = session->graph->params[i];
    if (session_weights_is_outside(binding, param) && session->outside[param] == NULL && session->is_set[param])
      BERTH__TRY(bring_out(session, param, err));
  }
  return BERTH_OK;
}

/* ---- Setting ---- */

/* Steps that can fail without side effects come first: allocating memory, and binding programs to it. The bindings' own
 * slots are filled before they run. */
berth_status berth__session_set_param(berth_session *session, berth_value value, const void *data, size_t size,
                                      berth_error *err) {
  const bool is_home = has_home(session, value), has_copy = !is_home || is_outside_somewhere(session, value);
  if (has_copy) BERTH__TRY(point_at_copy(session, value, size, err));
  berth__session_forget_prepared(session);
  if (is_home) {
    session->is_set[value] = false; /* until all of it has been written */
    BERTH__TRY(put_home(session, value, data, size, err));
  }
  if (has_copy && size != 0) memmove(session->owned[value], data, size);
  if (!has_copy) forget_copy(session, value);
  if (is_own(berth__session_current(session)->plan, value)) berth__session_current(session)->is_settled = false;
  session->is_set[value] = true;
  return BERTH_OK;
}

berth_status berth__session_use(berth_session *session, berth_value value, const void *data, size_t size,
                                berth_error *err) {
  BERTH__TRY(point(session, value, data, err));
  if (session->graph->values[value].kind != BERTH_VALUE_PARAM) return BERTH_OK;
  disown(session, value);
  berth__session_forget_prepared(session);
  session->is_set[value] = false;
  if (has_home(session, value))
    BERTH__TRY(put_home(session, value, data, size, err)); /* for bindings that have it in the arena */
  session->is_set[value] = true;
  return BERTH_OK;
}

/* ---- Weights that come with the graph ---- */

static void let_rest(const berth_graph *graph, const void *data, size_t size) {
  for (size_t i = 0; i < graph->n_keeps; i++)
    if (graph->keeps[i].rest != NULL) graph->keeps[i].rest(graph->keeps[i].object, data, size);
}

static berth_status place_piece(const berth_session *session, berth_value param, uint64_t at, const void *data,
                                uint64_t size, berth_error *err) {
  if (size == 0) return BERTH_OK;
  if (session->device->place == NULL) return berth__arena_put(session->arena, param, at, data, size, err);
  return session->device->place(session->engine, berth__arena_block(session->arena),
                                berth__slots_offset(session->home, param) + at, data, size, err);
}

/* Copied in pieces, each released in the file once it is in the arena: the weights are never in memory twice. */
static berth_status move_weight(berth_session *session, berth_value param, const void *data, uint64_t size,
                                berth_error *err) {
  const uint64_t piece = (uint64_t)2 << 20;
  for (uint64_t at = 0; at < size; at += piece) {
    const uint64_t n = size - at < piece ? size - at : piece;
    const uint8_t *from = (const uint8_t *)data + at;
    BERTH__TRY(berth__graph_check_files(session->graph, err));
    BERTH__TRY(place_piece(session, param, at, from, n, err));
    BERTH__TRY(berth__graph_check_files(session->graph, err));
    let_rest(session->graph, from, (size_t)n);
  }
  session->is_set[param] = true;
  return BERTH_OK;
}

/* ---- Weights that are mapped pages of a file ---- */

/* Bytes before and after the whole pages are copied. *is_placed: false if this is not possible. */
static berth_status map_weight(berth_session *session, berth_value param, const void *data, uint64_t size,
                               bool *is_placed, berth_error *err) {
  const uint64_t offset = berth__slots_offset(session->home, param);
  berth__file_bytes file;
  uint64_t begin = 0, count = 0;
  *is_placed = false;
  if (session->files.find == NULL || session->device->map == NULL || session->checked ||
      !session->files.find(session->files.user, data, size, &file))
    return BERTH_OK;
  BERTH__TRY(session->device->map(berth__arena_block(session->arena), offset, &file, &begin, &count, err));
  if (count == 0) return BERTH_OK;
  if (session->mapped_begin == session->mapped_end) session->mapped_begin = offset + begin;
  if (offset + begin < session->mapped_begin) session->mapped_begin = offset + begin;
  if (offset + begin + count > session->mapped_end) session->mapped_end = offset + begin + count;
  const uint64_t end = begin + count;
  BERTH__TRY(place_piece(session, param, 0, data, begin, err));
  BERTH__TRY(place_piece(session, param, end, (const uint8_t *)data + end, size - end, err));
  let_rest(session->graph, data, (size_t)size);
  *is_placed = session->is_set[param] = true;
  return BERTH_OK;
}

static berth_status place_weight(berth_session *session, berth_value param, const void *data, uint64_t size,
                                 berth_error *err) {
  bool is_placed;
  BERTH__TRY(berth__graph_check_files(session->graph, err));
  BERTH__TRY(map_weight(session, param, data, size, &is_placed, err));
  return is_placed ? berth__graph_check_files(session->graph, err) : move_weight(session, param, data, size, err);
}

static void watch_mapped(berth_session *session) {
  const unsigned char *base = berth_arena_data(session->arena);
  if (session->mapped_begin == session->mapped_end || base == NULL) return;
  session->watch =
      berth__sigbus_watch(base + session->mapped_begin, (size_t)(session->mapped_end - session->mapped_begin));
}

berth_status berth__session_check_mapped(const berth_session *session, berth_error *err) {
  if (session->mapped_begin == session->mapped_end) return BERTH_OK;
  BERTH__TRY(berth__graph_check_files(session->graph, err));
  if (!berth__sigbus_is_lost(session->watch)) return BERTH_OK;
  return berth__fail(err, BERTH_IO,
                     "a file of weights was shorter for a while, or its disk fails: some weights are lost; make the "
                     "session again");
}

void berth__session_forget_mapped(berth_session *session) {
  berth__sigbus_unwatch(session->watch);
  session->watch = NULL;
  session->mapped_begin = session->mapped_end = 0;
}

/* Whether every kernel that reads the param takes it at its alignment in the file. */
static bool may_be_unaligned(const berth_session *session, berth_value param) {
  const berth_plan *plan = berth__session_current(session)->plan;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    if (plan->places[node->out[0]].is_view || node->op->family->takes_unaligned) continue;
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE && plan->places[node->in[i]].root == param) return false;
  }
  return true;
}

static uint64_t weight_bytes(const berth_graph *graph) {
  uint64_t total = 0;
  for (size_t i = 0; i < graph->n_params; i++) {
    uint64_t size = 0;
    if (graph->values[graph->params[i]].data != NULL && berth__value_size(&graph->values[graph->params[i]], &size))
      total += size; /* all of them are in memory or in files, so the sum cannot overflow */
  }
  return total;
}

berth_status berth__session_place_weights(berth_session *session, berth_error *err) {
  const uint64_t total = weight_bytes(session->graph);
  uint64_t done = 0;
  for (size_t i = 0; i < session->graph->n_params; i++) {
    berth_value param = session->graph->params[i];
    const berth__value *value = &session->graph->values[param];
    uint64_t size = 0;
    if (value->data == NULL || !berth__value_size(value, &size)) continue;
    berth__progress(session->ctx, "writing weights", done, total);
    done += size;
    bool is_aligned = (uintptr_t)value->data % berth__type_align(value->type) == 0 || may_be_unaligned(session, param);
    if (has_home(session, param)) {
      BERTH__TRY(place_weight(session, param, value->data, size, err));
    } else if (!is_aligned) {
      BERTH__TRY(berth__graph_check_files(session->graph, err));
      BERTH__TRY(berth__session_set_param(session, param, value->data, (size_t)size, err));
      BERTH__TRY(berth__graph_check_files(session->graph, err));
    } else {
      session->outside[param] = value->data; /* no copy: the graph keeps the mapping */
      session->is_set[param] = true;
    }
  }
  watch_mapped(session);
  if (total != 0) berth__progress(session->ctx, "writing weights", total, total);
  return berth__session_rebind(session, err);
}

static berth_status place_own(berth_session *session, berth_error *err) {
  const berth_plan *plan = berth__session_current(session)->plan;
  for (size_t i = 0; i < session->graph->n_params; i++) {
    const berth_value param = session->graph->params[i];
    const void *data = session->outside[param];
    uint64_t size = 0;
    if (!is_own(plan, param) || data == NULL) continue;
    berth__value_size(&session->graph->values[param], &size);
    BERTH__TRY(berth__arena_put(session->arena, param, 0, data, size, err));
  }
  return BERTH_OK;
}

berth_status berth__session_settle(berth_session *session, berth_error *err) {
  berth__binding *binding = berth__session_current(session);
  if (binding->is_settled) return BERTH_OK;
  BERTH__TRY(berth__graph_check_files(session->graph, err));
  BERTH__TRY(berth__session_place_constants(session, err));
  if (binding->has_own_weights) {
    binding->is_prepared = false;
    BERTH__TRY(place_own(session, err));
  }
  BERTH__TRY(berth__graph_check_files(session->graph, err));
  binding->is_settled = true;
  return BERTH_OK;
}

void berth__session_forget_prepared(berth_session *session) {
  session->is_prepared = false;
  for (size_t i = 0; i < session->n_bindings; i++) session->bindings[i].is_prepared = false;
}

bool berth__session_has_weights(const berth_session *session) {
  for (size_t i = 0; i < session->graph->n_params; i++)
    if (!session->is_set[session->graph->params[i]]) return false;
  return true;
}

/* A step of the prelude has read its operands: their pages in the file may be released. */
static void rest_operands(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out,
                          double ms) {
  const berth_session *session = user;
  const berth_plan *plan = berth__session_current(session)->plan;
  const berth__node *done = &plan->graph->nodes[node];
  (void)step, (void)out, (void)n_out, (void)ms;
  for (uint32_t i = 0; i < done->n_in; i++) {
    uint64_t size = 0;
    if (done->in[i] == BERTH_VALUE_NONE) continue;
    const berth_value root = plan->places[done->in[i]].root;
    const berth__value *value = &plan->graph->values[root];
    if (value->kind != BERTH_VALUE_PARAM || session->outside[root] == NULL || session->outside[root] != value->data)
      continue;
    berth__value_size(value, &size);
    let_rest(session->graph, value->data, (size_t)size);
  }
}

berth_status berth__session_prepare(berth_session *session, berth_error *err) {
  berth__binding *binding = berth__session_current(session);
  const berth__observer observer = {.call = rest_operands, .user = session};
  if (binding->is_prepared) return BERTH_OK;
  if (session->device->prepare != NULL && binding->plan->n_prelude != 0) {
    berth__progress(session->ctx, "preparing weights", 0, 0);
    BERTH__TRY(berth__graph_check_files(session->graph, err));
    berth_status status = session->device->prepare(binding->program, &observer, err);
    if (status == BERTH_OK) status = berth__graph_check_files(session->graph, err);
    if (status != BERTH_OK) { /* temporaries may have overwritten weights that other bindings read */
      berth__session_forget_prepared(session);
      return status;
    }
  }
  binding->is_prepared = true;
  session->is_prepared = session->is_prepared || binding->makes_all;
  return BERTH_OK;
}
