/* From aliases to buffers and places: a buffer for each root that has bytes in the arena, and one for the scratch of
 * each step that needs it. */
#include "plan/buffers.h"

#include "base/math.h"

uint64_t berth__buffer_room(const berth_plan *plan, const berth__buffer *buffer) {
  return (buffer->size + buffer->guard + plan->align - 1) & ~(plan->align - 1);
}

static berth__buffer_kind kind_of(const berth__alias *alias, berth_value root) {
  switch (alias->graph->values[root].kind) {
    case BERTH_VALUE_INPUT: return BERTH__BUFFER_INPUT;
    case BERTH_VALUE_PARAM: return BERTH__BUFFER_PARAM;
    case BERTH_VALUE_CONSTANT: return BERTH__BUFFER_CONSTANT;
    case BERTH_VALUE_DROPPED:
    case BERTH_VALUE_NODE: break;
  }
  if (alias->classes[root].is_prepared) return BERTH__BUFFER_PREPARED;
  return alias->classes[root].has_output ? BERTH__BUFFER_OUTPUT : BERTH__BUFFER_ACTIVATION;
}

static void add_roots(berth_plan *plan, const berth__alias *alias, uint64_t guard) {
  for (size_t v = 0; v < plan->graph->n_values; v++) {
    berth_value root = (berth_value)v;
    plan->places[v].buffer = BERTH__NO_BUFFER;
    if (alias->values[v].parent != root || !berth__alias_in_arena(alias, root)) continue;
    const berth__alias_class *class = &alias->classes[v];
    berth__buffer_kind kind = kind_of(alias, root);
    bool is_guarded = class->size != 0 && (kind == BERTH__BUFFER_INPUT || kind == BERTH__BUFFER_OUTPUT);
    plan->places[v].buffer = (uint32_t)plan->n_buffers;
    plan->buffers[plan->n_buffers++] = (berth__buffer){.kind = kind,
                                                       .owner = root,
                                                       .size = class->size,
                                                       .guard = is_guarded ? guard : 0,
                                                       .birth = kind == BERTH__BUFFER_PREPARED ? 0 : class->birth,
                                                       .death = class->death};
  }
}

static void place_values(berth_plan *plan, const berth__alias *alias) {
  for (size_t v = 0; v < plan->graph->n_values; v++) {
    const berth__alias_value *from = &alias->values[v];
    berth__place *place = &plan->places[v];
    place->root = berth__alias_root(alias, (berth_value)v, &place->root_offset);
    place->buffer = plan->places[place->root].buffer;
    memcpy(place->stride, from->stride, sizeof place->stride);
    place->is_view = from->is_view;
    place->in_place = from->in_place;
    place->born_inside = from->born_inside;
    const berth__value *value = &plan->graph->values[v];
    place->birth = value->kind == BERTH_VALUE_NODE ? alias->step_of[value->node] : 0;
    place->death = alias->last_use[v] > place->birth ? alias->last_use[v] : place->birth + 1;
    bool stays = value->kind == BERTH_VALUE_PARAM || value->kind == BERTH_VALUE_CONSTANT ||
                 (value->kind == BERTH_VALUE_INPUT && !(plan->flags & BERTH_PLAN_INPUTS_DIE));
    bool is_prepared =
        value->kind == BERTH_VALUE_NODE && place->birth < plan->n_prelude && alias->last_use[v] > plan->n_prelude;
    if (stays || is_prepared || alias->is_output[v]) place->death = berth__plan_end(plan->n_steps);
  }
}

/* A view extends the life of what it shows. It comes behind its operand, so that chains are walked from their ends. */
static void extend_shown(berth_plan *plan) {
  for (size_t v = plan->graph->n_values; v-- > 0;) {
    if (!plan->places[v].is_view) continue;
    berth__place *shown = &plan->places[plan->graph->nodes[plan->graph->values[v].node].in[0]];
    if (shown->death < plan->places[v].death) shown->death = plan->places[v].death;
  }
}

void berth__plan_call(const berth_plan *plan, const berth__node *node, berth_tensor *tensors, berth_op_call *call) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_value value = node->in[i];
    if (value != BERTH_VALUE_NONE)
      tensors[i] = berth__plan_tensor(plan->graph, value, plan->places[value].stride);
    else
      memset(&tensors[i], 0, sizeof tensors[i]);
  }
  for (uint32_t i = 0; i < node->n_out; i++)
    tensors[node->n_in + i] = berth__plan_tensor(plan->graph, node->out[i], plan->places[node->out[i]].stride);
  *call = (berth_op_call){.in = tensors,
                          .n_in = node->n_in,
                          .out = tensors + node->n_in,
                          .n_out = node->n_out,
                          .attrs = node->attrs,
                          .n_attrs = node->op->family->n_attrs,
                          .user = berth__op_user(node->op)};
}

size_t berth__plan_most_tensors(const berth_plan *plan) {
  size_t most = 0;
  for (size_t n = 0; n < plan->graph->n_nodes; n++) {
    const size_t count = (size_t)plan->graph->nodes[n].n_in + plan->graph->nodes[n].n_out;
    if (count > most) most = count;
  }
  return most;
}

static berth_status add_scratch(berth_plan *plan, const berth__alias *alias, const berth__limits *limits,
                                berth_error *err) {
  uint64_t total = 0;
  berth_tensor *tensors = berth__alloc_array(plan->ctx, berth__plan_most_tensors(plan), sizeof *tensors);
  if (tensors == NULL) return berth__fail_nomem(err, "planning scratch");
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    berth_op_call call;
    plan->scratch[step] = BERTH__NO_BUFFER;
    if (plan->places[node->out[0]].is_view || limits->scratch == NULL) continue;
    berth__plan_call(plan, node, tensors, &call);
    uint64_t size =
        limits->scratch(node->op, &call, plan->n_threads, plan->flags) + berth__alias_staging(alias, node);
    if (size == 0) continue;
    if (!berth__add_u64(total, size, &total) || total > INT64_MAX / 4) {
      berth__free(plan->ctx, tensors);
      return berth__fail(err, BERTH_INVALID,
                         "node '%s' (%s) asks for %llu bytes of scratch, which is more than 61 bits can count",
                         plan->graph->values[node->out[0]].name, node->op->name, (unsigned long long)size);
    }
    plan->scratch[step] = (uint32_t)plan->n_buffers;
    bool apart = (plan->flags & BERTH_PLAN_NO_REUSE) != 0;
    plan->buffers[plan->n_buffers++] = (berth__buffer){.kind = BERTH__BUFFER_SCRATCH,
                                                       .owner = BERTH_VALUE_NONE,
                                                       .step = step,
                                                       .size = size,
                                                       .birth = apart ? 0 : step,
                                                       .death = apart ? berth__plan_end(plan->n_steps) : step + 1};
  }
  berth__free(plan->ctx, tensors);
  return BERTH_OK;
}

berth_status berth__buffers_create(berth_plan *plan, const berth__alias *alias, uint64_t guard,
                                   const berth__limits *limits, berth_error *err) {
  size_t n_values = plan->graph->n_values;
  plan->places = berth__alloc_array_zero(plan->ctx, n_values, sizeof *plan->places);
  plan->buffers = berth__alloc_array(plan->ctx, n_values + plan->n_steps, sizeof *plan->buffers);
  plan->scratch = berth__alloc_array(plan->ctx, plan->n_steps, sizeof *plan->scratch);
  if (plan->places == NULL || plan->buffers == NULL || plan->scratch == NULL) return berth__fail_nomem(err, "a plan");
  add_roots(plan, alias, guard);
  place_values(plan, alias);
  extend_shown(plan);
  return add_scratch(plan, alias, limits, err);
}
