/* Compiling a binding: plan, program, and an arena that is large enough.
 *
 * Everything that can fail is done first, beside what the session has: the plan, the program, a new arena with the
 * weights in it, the program bound to that arena. Then the session takes it over, which cannot fail. */
#include "session/session.h"

void berth__session_free_binding(berth_session *session, berth__binding *binding) {
  session->device->program_destroy(binding->program);
  if (binding->slots != session->home) berth__slots_destroy(binding->slots);
  berth_plan_destroy(binding->plan);
  berth__free(session->ctx, binding->extents);
  berth__free(session->ctx, binding->outside);
  *binding = (berth__binding){0};
}

/* ---- Programs ---- */

/* The memory of an input outside the arena was given for one shape: it must not be read as another. */
static bool has_other_size(const berth_plan *a, const berth_plan *b, size_t value) {
  uint64_t before = 0, after = 0;
  berth__value_size(&a->graph->values[value], &before);
  berth__value_size(&b->graph->values[value], &after);
  return before != after;
}

/* Where a value lies that this binding does not have in the arena; NULL: nowhere, or in the arena. A param may still
 * have its home in the arena, for other bindings. */
static const void *place_outside(const berth_session *session, const berth__binding *binding, berth_arena *arena,
                                 size_t value) {
  const berth__value *v = &binding->plan->graph->values[value];
  if (v->kind == BERTH_VALUE_CONSTANT) return v->data;
  if (value >= session->graph->n_values || binding->plan->places[value].buffer != BERTH__NO_BUFFER) return NULL;
  if (v->kind == BERTH_VALUE_INPUT && session->n_bindings != 0 &&
      has_other_size(berth__session_current(session)->plan, binding->plan, value))
    return NULL;
  if (session->outside[value] != NULL || v->kind != BERTH_VALUE_PARAM) return session->outside[value];
  const uint64_t offset = session->layout != NULL ? berth_layout_offset(session->layout, v->name) : BERTH_OFFSET_NONE;
  const unsigned char *base = berth_arena_data(arena);
  return offset != BERTH_OFFSET_NONE && base != NULL ? base + offset : NULL;
}

berth_status berth__session_bind_program(const berth_session *session, berth__binding *binding, berth_arena *arena,
                                         uint64_t number, berth_error *err) {
  bool has_changed = binding->bound != number;
  for (size_t v = 0; v < binding->plan->graph->n_values; v++) {
    const void *place = place_outside(session, binding, arena, v);
    has_changed = has_changed || place != binding->outside[v];
    binding->outside[v] = place;
  }
  if (!has_changed) return BERTH_OK;
  binding->bound = 0;
  BERTH__TRY(session->device->program_bind(binding->program, berth__arena_block(arena), binding->outside, err));
  binding->bound = number;
  return BERTH_OK;
}

berth_status berth__session_rebind(berth_session *session, berth_error *err) {
  return berth__session_bind_program(session, berth__session_current(session), session->arena, session->arena_number,
                                     err);
}

/* ---- What a binding needs ---- */

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

static bool has_own_weights(const berth_plan *plan) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    const bool is_weight = buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_PRELUDE;
    if (is_weight && buffer->offset >= plan->params_size) return true;
  }
  return false;
}

/* Whether a run may read values outside the arena from a file that the graph keeps mapped. */
static bool session_compile_reads_files(const berth_plan *plan) {
  if (plan->graph->n_keeps == 0) return false;
  for (uint32_t step = plan->n_prelude; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE) continue;
      const berth_value root = plan->places[node->in[i]].root;
      const berth__value *value = &plan->graph->values[root];
      if (plan->places[root].buffer == BERTH__NO_BUFFER && value->data != NULL && value->blob == NULL) return true;
    }
  }
  return false;
}

static size_t count_prepared(const berth_plan *plan) {
  size_t n = 0;
  for (size_t i = 0; i < plan->n_buffers; i++)
    n += plan->buffers[i].kind == BERTH__BUFFER_PRELUDE && plan->buffers[i].offset < plan->params_size;
  return n;
}

/* A device that cannot find extents during a run must know all of them in advance. */
static berth_status session_compile_check_extents(const berth_session *session, const berth_graph *graph,
                                                  berth_error *err) {
  for (size_t v = 0; v < graph->n_values && session->device->shapes == NULL; v++)
    if (graph->values[v].bounded != 0)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "the extents of '%s' depend on elements that only a run computes, which device '%s' does not "
                         "support",
                         graph->values[v].name, session->device->name);
  return BERTH_OK;
}

static berth_status session_compile(const berth_session *session, const berth_dim *dims, size_t n_dims,
                                    berth__binding *binding, berth_error *err) {
  berth_plan_desc desc = session->plan_desc;
  desc.dims = dims;
  desc.n_dims = n_dims;
  if (session->layout != NULL) desc.layout = session->layout;
  berth__progress(session->ctx, "planning", 0, 0);
  BERTH__TRY(berth__plan_create_on(session->graph, &desc, session->device, &session->profile, &binding->plan, err));
  BERTH__TRY(session_compile_check_extents(session, binding->plan->graph, err));
  BERTH__TRY(read_extents(session, dims, n_dims, &binding->extents, err));
  BERTH__TRY(berth__slots_create(binding->plan, &binding->slots, err));
  binding->has_own_weights = has_own_weights(binding->plan);
  binding->reads_files = session_compile_reads_files(binding->plan);
  berth__session_find_updates(binding->plan, binding);
  binding->outside = berth__alloc_array_zero(session->ctx, binding->plan->graph->n_values, sizeof *binding->outside);
  if (binding->outside == NULL) return berth__fail_nomem(err, "a binding");
  berth__progress(session->ctx, "compiling kernels", 0, 0);
  return session->device->program_create(session->engine, binding->plan, session->checked, &binding->program, err);
}

/* ---- Staging ---- */

/* What a bind has made, before the session takes it over. */
typedef struct staged {
  berth__binding binding;
  berth_arena *arena;   /* NULL: the present one is large enough */
  berth_layout *layout; /* NULL: the session already has one */
} staged;

static void discard(berth_session *session, staged *next) {
  berth_arena_destroy(next->arena);
  berth_layout_destroy(next->layout);
  berth__session_free_binding(session, &next->binding);
  berth__session_release_copies(session);
}

/* A larger arena with the same weights, beside the old one. */
static berth_status make_arena(const berth_session *session, staged *next, berth_error *err) {
  const berth_plan *plan = next->binding.plan;
  berth_arena_desc desc = BERTH_ARENA_DESC_INIT;
  if (session->memory != NULL && session->arena != NULL)
    return berth__fail(err, BERTH_INFEASIBLE, "this binding needs %llu bytes, the memory given has %llu",
                       (unsigned long long)plan->info.arena_size, (unsigned long long)session->memory_size);
  desc.memory = session->memory;
  desc.memory_size = session->memory_size;
  BERTH__TRY(
      berth__arena_create(plan, session->device, session->engine, next->binding.slots, &desc, &next->arena, err));
  if (session->arena == NULL) return BERTH_OK;
  BERTH__TRY(session->device->copy(berth__arena_block(next->arena), 0, berth__arena_block(session->arena), 0,
                                   plan->params_size, err));
  return berth__session_check_mapped(session, err); /* missing pages of files that have shrunk read as zeros */
}

/* The binding's values outside the arena, and its program, bound to its future arena. */
static berth_status stage_program(berth_session *session, staged *next, berth_error *err) {
  berth_arena *arena = next->arena != NULL ? next->arena : session->arena;
  BERTH__TRY(berth__session_bring_out(session, &next->binding, err));
  return berth__session_bind_program(session, &next->binding, arena, session->arena_number + (next->arena != NULL),
                                     err);
}

/* An arena that can grow in place grows after everything that can fail, because it stays grown. */
static berth_status stage(berth_session *session, const berth_dim *dims, size_t n_dims, staged *next,
                          berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(session->ctx, session->bindings, session->bindings_capacity, session->n_bindings + 1, err));
  BERTH__TRY(session_compile(session, dims, n_dims, &next->binding, err));
  if (session->layout == NULL) BERTH__TRY(berth_plan_layout(next->binding.plan, &next->layout, err));
  const uint64_t size = next->binding.plan->info.arena_size;
  const bool is_enough = session->arena != NULL && berth_arena_size(session->arena) >= size;
  const bool may_grow = session->arena != NULL && session->memory == NULL && session->device->block_grow != NULL;
  if (is_enough || may_grow) BERTH__TRY(stage_program(session, next, err));
  if (is_enough || (may_grow && berth__arena_grow(session->arena, size))) return BERTH_OK;
  BERTH__TRY(make_arena(session, next, err));
  return stage_program(session, next, err);
}

/* Nothing can fail from here on. */
static void take_over(berth_session *session, staged *next) {
  if (next->layout != NULL) session->layout = next->layout;
  if (next->arena != NULL) {
    berth__session_forget_mapped(session);
    berth_arena_destroy(session->arena); /* programs that are bound to it are bound again before they run */
    session->arena = next->arena;
    session->arena_number++;
  }
  if (session->home == NULL) {
    session->home = next->binding.slots;
    session->n_prepared = count_prepared(next->binding.plan);
  }
  /* A binding without weights of its own reads what other bindings have prepared. */
  next->binding.makes_all = count_prepared(next->binding.plan) == session->n_prepared;
  next->binding.is_prepared = session->is_prepared && !next->binding.has_own_weights;
  session->bindings[session->n_bindings] = next->binding;
  berth__session_make_current(session, session->n_bindings++);
  berth__session_trim(session);
}

berth_status berth__session_compile(berth_session *session, const berth_dim *dims, size_t n_dims, berth_error *err) {
  staged next = {0};
  const berth_status status = stage(session, dims, n_dims, &next, err);
  if (status == BERTH_OK)
    take_over(session, &next);
  else
    discard(session, &next);
  return status;
}
