/* Compiling a binding: plan, program, and an arena that is large enough for it. */
#include "session/session.h"

void berth__session_free_binding(berth_session *session, berth__binding *binding) {
  session->device->program_destroy(binding->program);
  berth__slots_destroy(binding->slots);
  berth_plan_destroy(binding->plan);
  berth__free(session->ctx, binding->extents);
  berth__free(session->ctx, binding->outside);
  *binding = (berth__binding){0};
}

/* Where a value lies that this binding does not have in the arena. A param may have a place there for other bindings.
 */
static const void *place_outside(const berth_session *session, const berth__binding *binding, size_t value) {
  const berth__value *v = &binding->plan->graph->values[value];
  if (v->kind == BERTH_VALUE_CONSTANT) return v->data;
  if (value >= session->graph->n_values) return NULL; /* the device's own: made by its nodes */
  if (session->outside[value] != NULL || v->kind != BERTH_VALUE_PARAM) return session->outside[value];
  const uint64_t offset = session->layout != NULL ? berth_layout_offset(session->layout, v->name) : BERTH_OFFSET_NONE;
  const unsigned char *base = berth_arena_data(session->arena);
  return offset != BERTH_OFFSET_NONE && base != NULL ? base + offset : NULL;
}

static berth_status bind_program(berth_session *session, berth__binding *binding, berth_error *err) {
  for (size_t v = 0; v < binding->plan->graph->n_values; v++) binding->outside[v] = place_outside(session, binding, v);
  return session->device->program_bind(binding->program, berth__arena_block(session->arena), binding->outside, err);
}

berth_status berth__session_rebind(berth_session *session, berth_error *err) {
  for (size_t i = 0; i < session->n_bindings; i++) BERTH__TRY(bind_program(session, &session->bindings[i], err));
  return BERTH_OK;
}

/* The plan was made with these dims, so every name is bound exactly once. */
static berth_status read_extents(const berth_session *session, const berth_dim *dims, size_t n_dims, int64_t **out,
                                 berth_error *err) {
  int64_t *extents = berth__alloc_array_zero(session->ctx, session->graph->n_dims, sizeof *extents);
  *out = extents;
  if (extents == NULL) return berth__fail_nomem(err, "a binding");
  for (size_t i = 0; i < n_dims; i++) {
    uint32_t index;
    if (berth__map_get(&session->graph->dim_names, dims[i].name, &index)) extents[index] = dims[i].extent;
  }
  return BERTH_OK;
}

/* A larger arena with the same weights, still addressed by the current binding. The old one is kept until the new one
 * is complete. */
static berth_status grow_arena(berth_session *session, const berth__binding *binding, berth_error *err) {
  const berth_plan *plan = binding->plan;
  const berth__slots *slots = session->n_bindings != 0 ? berth__session_current(session)->slots : binding->slots;
  berth_arena *arena;
  berth_arena_desc desc = BERTH_ARENA_DESC_INIT;
  if (session->memory != NULL && session->arena != NULL)
    return berth__fail(err, BERTH_INFEASIBLE, "this binding needs %llu bytes, the memory given has %llu",
                       (unsigned long long)plan->info.arena_size, (unsigned long long)session->memory_size);
  desc.memory = session->memory;
  desc.memory_size = session->memory_size;
  BERTH__TRY(berth__arena_create(plan, session->device, session->engine, slots, &desc, &arena, err));
  if (session->arena != NULL) {
    berth_status status = session->device->copy(berth__arena_block(arena), 0, berth__arena_block(session->arena), 0,
                                                plan->params_size, err);
    if (status != BERTH_OK) {
      berth_arena_destroy(arena);
      return status;
    }
  }
  berth_arena_destroy(session->arena);
  session->arena = arena;
  return session->n_bindings != 0 ? berth__session_settle(session, err) : BERTH_OK;
}

static bool has_own_weights(const berth_plan *plan) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    const bool is_weight = buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_PREPARED;
    if (is_weight && buffer->offset >= plan->params_size) return true;
  }
  return false;
}

/* A binding without weights of its own reads what the others have prepared. */
static bool shares_prepared(const berth_session *session) {
  const berth__binding *first = &session->bindings[0];
  return first->is_prepared && !first->has_own_weights;
}

/* A device that finds no extents while it runs must know them all before. */
static berth_status check_extents(const berth_session *session, const berth_graph *graph, berth_error *err) {
  for (size_t v = 0; v < graph->n_values && session->device->shapes == NULL; v++)
    if (graph->values[v].bounded != 0)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "the extents of '%s' depend on elements that only a run computes, which device '%s' does not "
                         "support",
                         graph->values[v].name, session->device->name);
  return BERTH_OK;
}

static berth_status compile(berth_session *session, const berth_dim *dims, size_t n_dims, berth__binding *binding,
                            berth_error *err) {
  berth_plan_desc desc = session->plan_desc;
  desc.dims = dims;
  desc.n_dims = n_dims;
  if (session->layout != NULL) desc.layout = session->layout;
  berth__progress(session->ctx, "planning", 0, 0);
  BERTH__TRY(berth__plan_create_on(session->graph, &desc, session->device, &session->profile, &binding->plan, err));
  BERTH__TRY(check_extents(session, binding->plan->graph, err));
  BERTH__TRY(read_extents(session, dims, n_dims, &binding->extents, err));
  BERTH__TRY(berth__slots_create(binding->plan, &binding->slots, err));
  binding->has_own_weights = has_own_weights(binding->plan);
  binding->is_prepared = session->n_bindings != 0 && !binding->has_own_weights && shares_prepared(session);
  binding->outside = berth__alloc_array_zero(session->ctx, binding->plan->graph->n_values, sizeof *binding->outside);
  if (binding->outside == NULL) return berth__fail_nomem(err, "a binding");
  berth__progress(session->ctx, "compiling kernels", 0, 0);
  BERTH__TRY(session->device->program_create(session->engine, binding->plan, session->checked, &binding->program, err));
  if (session->layout == NULL) BERTH__TRY(berth_plan_layout(binding->plan, &session->layout, err));
  if (session->arena == NULL || berth_arena_size(session->arena) < binding->plan->info.arena_size)
    BERTH__TRY(grow_arena(session, binding, err));
  return BERTH_OK;
}

berth_status berth__session_compile(berth_session *session, const berth_dim *dims, size_t n_dims, size_t *index,
                                    berth_error *err) {
  berth__binding binding = {0};
  BERTH__TRY(BERTH__RESERVE(session->ctx, session->bindings, session->bindings_capacity, session->n_bindings + 1, err));
  berth_status status = compile(session, dims, n_dims, &binding, err);
  if (status != BERTH_OK) {
    berth__session_free_binding(session, &binding);
    return status;
  }
  if (session->n_bindings != 0) status = berth__session_bring_out(session, &binding, err);
  *index = session->n_bindings;
  session->bindings[session->n_bindings++] = binding;
  return status == BERTH_OK ? berth__session_rebind(session, err) : status;
}

static bool is_bound_so(const berth_session *session, const berth__binding *binding, const berth_dim *dims,
                        size_t n_dims) {
  if (n_dims != session->graph->n_dims) return false;
  for (size_t i = 0; i < n_dims; i++) {
    uint32_t index;
    if (dims[i].name == NULL || !berth__map_get(&session->graph->dim_names, dims[i].name, &index)) return false;
    if (binding->extents[index] != dims[i].extent) return false;
    for (size_t k = 0; k < i; k++)
      if (strcmp(dims[k].name, dims[i].name) == 0) return false; /* given twice: compiling says so */
  }
  return true;
}

/* The memory of an input outside the arena was given for one shape: it is not read as another. */
static void forget_inputs(berth_session *session, const berth_plan *from, const berth_plan *to) {
  const berth_graph *graph = session->graph;
  for (size_t i = 0; i < graph->n_inputs; i++) {
    uint64_t before = 0, after = 0;
    berth__value_size(&from->graph->values[graph->inputs[i]], &before);
    berth__value_size(&to->graph->values[graph->inputs[i]], &after);
    if (before != after) session->outside[graph->inputs[i]] = NULL;
  }
}

berth_status berth_session_bind(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err) {
  if (session == NULL || (dims == NULL && n_dims != 0))
    return berth__fail(err, BERTH_INVALID, "berth_session_bind needs a session and dimensions");
  size_t index = 0;
  while (index < session->n_bindings && !is_bound_so(session, &session->bindings[index], dims, n_dims)) index++;
  if (index == session->n_bindings) BERTH__TRY(berth__session_compile(session, dims, n_dims, &index, err));
  if (index == session->current) return BERTH_OK;
  forget_inputs(session, berth__session_current(session)->plan, session->bindings[index].plan);
  berth__arena_address(session->arena, session->bindings[index].slots);
  session->current = index;
  return berth__session_settle(session, err);
}
