/* From aliases to buffers and slots: a buffer for each root with bytes in the arena, and one for the scratch of each
 * step that needs it. */
#include "plan/buffers.h"

#include "plan/file_runs.h"

#include "base/math.h"
#include "graph/rewrite.h"

bool berth__buffer_is_packed(const berth__buffer *buffer) {
  return buffer->kind != BERTH__BUFFER_PARAM && buffer->kind != BERTH__BUFFER_CONSTANT &&
         buffer->kind != BERTH__BUFFER_PRELUDE && buffer->kind != BERTH__BUFFER_STATE;
}

uint64_t berth__buffer_room(const berth_plan *plan, const berth__buffer *buffer) {
  const uint64_t unit = plan->is_tight && berth__buffer_is_packed(buffer) ? 1 : plan->align;
  return (buffer->size + buffer->guard + unit - 1) & ~(unit - 1);
}

uint64_t berth__buffer_align(const berth_plan *plan, const berth__buffer *buffer) {
  uint64_t align = plan->align;
  if (plan->is_tight && buffer->kind == BERTH__BUFFER_PARAM && align > BERTH__FILE_ALIGN) return BERTH__FILE_ALIGN;
  if (!plan->is_tight || !berth__buffer_is_packed(buffer) || buffer->kind == BERTH__BUFFER_SCRATCH) return align;
  while (align > 1 && align / 2 >= buffer->size) align /= 2;
  return align;
}

bool berth__buffer_is_preparation(const berth_plan *plan, const berth__buffer *buffer) {
  return (buffer->kind == BERTH__BUFFER_ACTIVATION || buffer->kind == BERTH__BUFFER_SCRATCH) &&
         buffer->death <= plan->n_prelude;
}

static berth__buffer_kind plan_buffers_kind_of(const berth__alias *alias, berth_value root) {
  switch (alias->graph->values[root].kind) {
    case BERTH_VALUE_INPUT: return BERTH__BUFFER_INPUT;
    case BERTH_VALUE_PARAM: return BERTH__BUFFER_PARAM;
    case BERTH_VALUE_CONSTANT: return BERTH__BUFFER_CONSTANT;
    case BERTH_VALUE_STATE: return BERTH__BUFFER_STATE;
    case BERTH_VALUE_DROPPED:
    case BERTH_VALUE_NODE: break;
  }
  if (alias->classes[root].is_of_prelude) return BERTH__BUFFER_PRELUDE;
  return alias->classes[root].has_output ? BERTH__BUFFER_OUTPUT : BERTH__BUFFER_ACTIVATION;
}

static void add_roots(berth_plan *plan, const berth__alias *alias, uint64_t guard) {
  for (size_t v = 0; v < plan->graph->n_values; v++) {
    berth_value root = (berth_value)v;
    plan->places[v].buffer = BERTH__NO_BUFFER;
    if (alias->values[v].parent != root || !berth__alias_in_arena(alias, root)) continue;
    const berth__alias_class *class = &alias->classes[v];
    berth__buffer_kind kind = plan_buffers_kind_of(alias, root);
    bool is_guarded = class->size != 0 && (kind == BERTH__BUFFER_INPUT || kind == BERTH__BUFFER_OUTPUT);
    plan->places[v].buffer = (uint32_t)plan->n_buffers;
    plan->buffers[plan->n_buffers++] = (berth__buffer){.kind = kind,
                                                       .owner = root,
                                                       .size = class->size,
                                                       .guard = is_guarded ? guard : 0,
                                                       .birth = class->birth,
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
    place->storage = from->storage;
    place->is_view = from->is_view;
    place->in_place = from->in_place;
    place->born_inside = from->born_inside;
    const berth__value *value = &plan->graph->values[v];
    place->birth = value->kind == BERTH_VALUE_NODE ? alias->step_of[value->node] : 0;
    place->death = alias->last_use[v] > place->birth ? alias->last_use[v] : place->birth + 1;
    bool stays = value->kind == BERTH_VALUE_PARAM || value->kind == BERTH_VALUE_CONSTANT ||
                 value->kind == BERTH_VALUE_STATE ||
                 (value->kind == BERTH_VALUE_INPUT && !(plan->flags & BERTH_PLAN_INPUTS_DIE));
    bool is_of_prelude =
        value->kind == BERTH_VALUE_NODE && place->birth < plan->n_prelude && alias->last_use[v] > plan->n_prelude;
    if (stays || is_of_prelude || alias->is_output[v]) place->death = berth__plan_end(plan->n_steps);
  }
}

/* A view extends the life of its root. It comes after its operand, so chains are processed backwards. */
static void extend_shown(berth_plan *plan) {
  for (size_t v = plan->graph->n_values; v-- > 0;) {
    if (!plan->places[v].is_view) continue;
    berth__place *shown = &plan->places[plan->graph->nodes[plan->graph->values[v].node].in[0]];
    if (shown->death < plan->places[v].death) shown->death = plan->places[v].death;
  }
}

typedef const int64_t *(*strides_of)(const void *where, berth_value value);

static void describe_call(const berth_graph *graph, strides_of strides, const void *where, const berth__node *node,
                          berth_tensor *tensors, berth_op_call *call) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    berth_value value = node->in[i];
    if (value != BERTH_VALUE_NONE)
      tensors[i] = berth__plan_tensor(graph, value, strides(where, value));
    else
      memset(&tensors[i], 0, sizeof tensors[i]);
  }
  for (uint32_t i = 0; i < node->n_out; i++)
    tensors[node->n_in + i] = berth__plan_tensor(graph, node->out[i], strides(where, node->out[i]));
  *call = (berth_op_call){.struct_size = (uint32_t)sizeof *call,
                          .in = tensors,
                          .n_in = node->n_in,
                          .out = tensors + node->n_in,
                          .n_out = node->n_out,
                          .attrs = node->attrs,
                          .n_attrs = node->op->family->n_attrs,
                          .user = berth__op_user(node->op)};
}

static const int64_t *strides_in_alias(const void *alias, berth_value value) {
  return ((const berth__alias *)alias)->values[value].stride;
}

static const int64_t *strides_in_plan(const void *plan, berth_value value) {
  return ((const berth_plan *)plan)->places[value].stride;
}

void berth__plan_call(const berth_plan *plan, const berth__node *node, berth_tensor *tensors, berth_op_call *call) {
  describe_call(plan->graph, strides_in_plan, plan, node, tensors, call);
}

static size_t most_tensors(const berth_graph *graph) {
  size_t most = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    size_t count = (size_t)graph->nodes[n].n_in + graph->nodes[n].n_out;
    if (count > most) most = count;
  }
  return most;
}

size_t berth__plan_most_tensors(const berth_plan *plan) { return most_tensors(plan->graph); }

static berth_status count_scratch(const berth__alias *alias, uint64_t size, uint64_t *total, const berth__node *node,
                                  berth_error *err) {
  if (berth__add_u64(*total, size, total) && *total <= INT64_MAX / 4) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "node '%s' (%s) asks for %llu bytes of scratch, which is more than 61 bits can count",
                     alias->graph->values[node->out[0]].name, node->op->name, (unsigned long long)size);
}

berth_status berth__alias_scratch(berth__alias *alias, const berth__limits *limits, uint32_t n_threads,
                                  berth_error *err) {
  const berth_graph *graph = alias->graph;
  uint64_t total = 0;
  berth_status status = BERTH_OK;
  berth_tensor *tensors = berth__alloc_array(alias->ctx, most_tensors(graph), sizeof *tensors);
  alias->scratch = berth__alloc_array_zero(alias->ctx, graph->n_nodes, sizeof *alias->scratch);
  if (tensors == NULL || alias->scratch == NULL) status = berth__fail_nomem(err, "planning scratch");
  for (size_t n = 0; n < graph->n_nodes && limits->scratch != NULL && status == BERTH_OK; n++) {
    const berth__node *node = &graph->nodes[n];
    berth_op_call call;
    if (alias->values[node->out[0]].is_view) continue;
    describe_call(graph, strides_in_alias, alias, node, tensors, &call);
    const uint32_t bounds = berth__node_is_bounded(graph, node) ? BERTH__CALL_HAS_BOUNDS : 0;
    alias->scratch[n] = limits->scratch(limits, node->op, &call, n_threads, alias->flags | bounds);
    status = count_scratch(alias, alias->scratch[n], &total, node, err);
  }
  berth__free(alias->ctx, tensors);
  return status;
}

static berth_status add_scratch(berth_plan *plan, const berth__alias *alias, berth_error *err) {
  const bool apart = (plan->flags & BERTH_PLAN_NO_REUSE) != 0;
  uint64_t total = 0;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    plan->scratch[step] = BERTH__NO_BUFFER;
    uint64_t size = alias->scratch[plan->order[step]] + berth__alias_staging(alias, node);
    if (size == 0) continue;
    BERTH__TRY(count_scratch(alias, size, &total, node, err));
    plan->scratch[step] = (uint32_t)plan->n_buffers;
    plan->buffers[plan->n_buffers++] = (berth__buffer){.kind = BERTH__BUFFER_SCRATCH,
                                                       .owner = BERTH_VALUE_NONE,
                                                       .step = step,
                                                       .size = size,
                                                       .birth = apart ? 0 : step,
                                                       .death = apart ? berth__plan_end(plan->n_steps) : step + 1};
  }
  return BERTH_OK;
}

berth_status berth__buffers_create(berth_plan *plan, const berth__alias *alias, uint64_t guard, berth_error *err) {
  size_t n_values = plan->graph->n_values;
  plan->places = berth__alloc_array_zero(plan->ctx, n_values, sizeof *plan->places);
  plan->buffers = berth__alloc_array(plan->ctx, n_values + plan->n_steps, sizeof *plan->buffers);
  plan->scratch = berth__alloc_array(plan->ctx, plan->n_steps, sizeof *plan->scratch);
  if (plan->places == NULL || plan->buffers == NULL || plan->scratch == NULL) return berth__fail_nomem(err, "a plan");
  add_roots(plan, alias, guard);
  place_values(plan, alias);
  extend_shown(plan);
  return add_scratch(plan, alias, err);
}
