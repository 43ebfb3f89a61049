/* The bindings of a session: which one is current, and which are dropped when there are too many. */
#include "session/session.h"

static bool is_bound_so(const berth_session *session, const berth__binding *binding, const berth_dim *dims,
                        size_t n_dims) {
  if (n_dims != session->graph->n_dims) return false;
  for (size_t i = 0; i < n_dims; i++) {
    uint32_t index;
    if (dims[i].name == NULL || !berth__map_get(&session->graph->dim_names, dims[i].name, &index)) return false;
    if (binding->extents[index] != dims[i].extent) return false;
    for (size_t k = 0; k < i; k++)
      if (strcmp(dims[k].name, dims[i].name) == 0) return false; /* given twice: compiling reports it */
  }
  return true;
}

/* Returns n_bindings if there is none. */
static size_t find_binding(const berth_session *session, const berth_dim *dims, size_t n_dims) {
  size_t index = 0;
  while (index < session->n_bindings && !is_bound_so(session, &session->bindings[index], dims, n_dims)) index++;
  return index;
}

void berth__session_list_dims(const berth_session *session, const berth__binding *binding, berth_dim *dims) {
  for (size_t i = 0; i < session->graph->n_dims; i++)
    dims[i] = (berth_dim){.name = session->graph->dims[i], .extent = binding->extents[i]};
}

/* ---- The current one ---- */

/* Forgets the memory of inputs that the program was not bound to because their size differs: the caller must name it
 * again. */
static void forget_inputs(berth_session *session, const berth__binding *binding) {
  const berth_graph *graph = session->graph;
  for (size_t i = 0; i < graph->n_inputs; i++) session->outside[graph->inputs[i]] = binding->outside[graph->inputs[i]];
}

void berth__session_make_current(berth_session *session, size_t index) {
  berth__binding *binding = &session->bindings[index];
  forget_inputs(session, binding);
  berth__arena_address(session->arena, binding->slots);
  session->current = index;
  binding->last_used = ++session->clock;
  binding->is_settled = false; /* other bindings may have used the bytes since */
}

berth_status berth_session_bind(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err) {
  if (session == NULL || (dims == NULL && n_dims != 0))
    return berth__fail(err, BERTH_INVALID, "berth_session_bind needs a session and dimensions");
  BERTH__TRY(berth__session_idle(session, err));
  const size_t index = find_binding(session, dims, n_dims);
  if (index == session->n_bindings) return berth__session_compile(session, dims, n_dims, err);
  if (index == session->current) return BERTH_OK;
  BERTH__TRY(
      berth__session_bind_program(session, &session->bindings[index], session->arena, session->arena_number, err));
  berth__session_make_current(session, index);
  return BERTH_OK;
}

/* ---- Dropping ---- */

/* Never the current one. */
static void session_binding_drop(berth_session *session, size_t index) {
  berth__session_free_binding(session, &session->bindings[index]);
  session->n_bindings--;
  memmove(&session->bindings[index], &session->bindings[index + 1],
          (session->n_bindings - index) * sizeof *session->bindings);
  if (session->current > index) session->current--;
  berth__session_release_copies(session);
}

void berth__session_trim(berth_session *session) {
  while (session->n_bindings > session->max_bindings) {
    size_t oldest = session->current == 0 ? 1 : 0;
    for (size_t i = 0; i < session->n_bindings; i++)
      if (i != session->current && session->bindings[i].last_used < session->bindings[oldest].last_used) oldest = i;
    session_binding_drop(session, oldest);
  }
}

static berth_status session_binding_check_names(const berth_session *session, const berth_dim *dims, size_t n_dims,
                                                berth_error *err) {
  if (n_dims != session->graph->n_dims)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has %zu named dimensions, but %zu were given",
                       session->graph->name, session->graph->n_dims, n_dims);
  for (size_t i = 0; i < n_dims; i++) {
    uint32_t index;
    if (dims[i].name == NULL || !berth__map_get(&session->graph->dim_names, dims[i].name, &index))
      return berth__fail(err, BERTH_INVALID, "graph '%s' has no dimension '%s'", session->graph->name,
                         dims[i].name != NULL ? dims[i].name : "(NULL)");
  }
  return BERTH_OK;
}

berth_status berth_session_drop(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err) {
  if (session == NULL || (dims == NULL && n_dims != 0))
    return berth__fail(err, BERTH_INVALID, "berth_session_drop needs a session and dimensions");
  BERTH__TRY(berth__session_idle(session, err));
  BERTH__TRY(session_binding_check_names(session, dims, n_dims, err));
  const size_t index = find_binding(session, dims, n_dims);
  if (index == session->n_bindings) return BERTH_OK; /* it may already be gone, to make room for another */
  if (index == session->current)
    return berth__fail(err, BERTH_INVALID, "the current binding cannot be dropped; bind another one first");
  session_binding_drop(session, index);
  return BERTH_OK;
}

uint32_t berth_session_n_bindings(const berth_session *session) { return (uint32_t)session->n_bindings; }
