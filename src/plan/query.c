/* Asking a plan. */
#include "plan/plan.h"

berth_plan_desc berth_plan_preset(berth_preset preset) {
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.order = BERTH_ORDER_MEMORY;
  if (preset == BERTH_PRESET_BACKWARD)
    desc.flags = BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE;
  return desc;
}

berth_plan_info berth_plan_get_info(const berth_plan *plan) { return plan->info; }

uint64_t berth_plan_arena_size(const berth_plan *plan) { return plan->info.arena_size; }

const berth_graph *berth_plan_graph(const berth_plan *plan) { return plan->graph; }

uint32_t berth_plan_step_node(const berth_plan *plan, uint32_t step) {
  return step < plan->n_steps ? plan->order[step] : UINT32_MAX;
}

berth_status berth_plan_slot(const berth_plan *plan, berth_value value, berth_slot *out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_slot needs a place for the slot");
  memset(out, 0, sizeof *out);
  out->offset = BERTH_OFFSET_NONE;
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  if (value >= plan->graph->n_values) return berth__fail(err, BERTH_INVALID, "the plan has no value %u", value);
  const berth__place *place = &plan->places[value];
  const berth__value *v = &plan->graph->values[value];
  int64_t count = 0;
  berth__shape_count(&v->shape, &count);
  if (place->buffer != BERTH__NO_BUFFER) out->offset = plan->buffers[place->buffer].offset + place->root_offset;
  out->size = berth__place_bytes(place, (uint64_t)count);
  out->birth = place->birth;
  out->death = place->death;
  out->is_view = place->is_view;
  out->root = place->root;
  out->root_offset = place->root_offset;
  out->rank = v->shape.rank;
  memcpy(out->stride, place->stride, sizeof out->stride);
  out->storage = place->storage;
  return BERTH_OK;
}

berth_status berth_plan_scratch(const berth_plan *plan, uint32_t step, berth_slot *out, berth_error *err) {
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_plan_scratch needs a place for the slot");
  *out = (berth_slot){.offset = BERTH_OFFSET_NONE, .root = BERTH_VALUE_NONE};
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  if (step >= plan->n_steps) return berth__fail(err, BERTH_INVALID, "the plan has no step %u", step);
  if (plan->scratch[step] == BERTH__NO_BUFFER) return BERTH_OK;
  const berth__buffer *buffer = &plan->buffers[plan->scratch[step]];
  out->offset = buffer->offset;
  out->size = buffer->size;
  out->birth = buffer->birth;
  out->death = buffer->death;
  return BERTH_OK;
}

/* A part of a concat that already lies in its place. */
static bool concat_is_done(const berth_plan *plan, const berth__node *node) {
  if (node->op->code != BERTH__OP_concat) return false;
  const berth__place *whole = &plan->places[node->out[0]];
  uint64_t at = whole->root_offset;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const berth__place *part = &plan->places[node->in[i]];
    int64_t count = 0;
    berth__shape_count(&plan->graph->values[node->in[i]].shape, &count);
    const uint64_t size = berth__place_bytes(whole, (uint64_t)count);
    bool lies_there = part->root == whole->root && part->root_offset == at;
    if (size != 0 && !lies_there) return false;
    at += size;
  }
  berth_tensor out = berth__plan_tensor(plan->graph, node->out[0], whole->stride);
  return berth__is_contiguous(&out);
}

/* Whichever side was made, it was made where the result lies. */
static bool choice_is_done(const berth_plan *plan, const berth__node *node) {
  if (node->op->code != BERTH__OP_choose || node->n_in != 3) return false;
  const berth__place *out = &plan->places[node->out[0]];
  for (uint32_t i = 1; i <= 2; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) return false;
    const berth__place *in = &plan->places[node->in[i]];
    if (in->root != out->root || in->root_offset != out->root_offset) return false;
  }
  return true;
}

bool berth__plan_needs_kernel(const berth_plan *plan, const berth__node *node) {
  return !plan->places[node->out[0]].is_view && !concat_is_done(plan, node) && !choice_is_done(plan, node);
}
