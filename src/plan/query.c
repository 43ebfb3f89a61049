/* Queries on a plan. */
#include "base/desc.h"
#include "plan/plan.h"

berth_status berth_plan_preset(berth_preset preset, berth_plan_desc *desc, berth_error *err) {
  berth_plan_desc made = BERTH_PLAN_DESC_INIT;
  if (preset != BERTH_PRESET_INFERENCE && preset != BERTH_PRESET_BACKWARD)
    return berth__fail(err, BERTH_INVALID, "there is no preset %d", (int)preset);
  if (preset == BERTH_PRESET_BACKWARD)
    made.flags = BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE;
  return BERTH__RESULT_WRITE(desc, &made, "berth_plan_desc", err);
}

berth_status berth_plan_get_info(const berth_plan *plan, berth_plan_info *out, berth_error *err) {
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  return BERTH__RESULT_WRITE(out, &plan->info, "berth_plan_info", err);
}

uint64_t berth_plan_arena_size(const berth_plan *plan) { return plan->info.arena_size; }

const berth_graph *berth_plan_graph(const berth_plan *plan) { return plan->graph; }

uint32_t berth_plan_step_node(const berth_plan *plan, uint32_t step) {
  return step < plan->n_steps ? plan->order[step] : UINT32_MAX;
}

berth_status berth_plan_slot(const berth_plan *plan, berth_value value, berth_slot *out, berth_error *err) {
  berth_slot slot = BERTH_SLOT_INIT;
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  if (value >= plan->graph->n_values) return berth__fail(err, BERTH_INVALID, "the plan has no value %u", value);
  const berth__place *place = &plan->places[value];
  const berth__value *v = &plan->graph->values[value];
  int64_t count = 0;
  berth__shape_count(&v->shape, &count);
  if (place->buffer != BERTH__NO_BUFFER) slot.offset = plan->buffers[place->buffer].offset + place->root_offset;
  slot.size = berth__place_bytes(place, (uint64_t)count);
  slot.birth = place->birth;
  slot.death = place->death;
  slot.is_view = place->is_view;
  slot.root = place->root;
  slot.root_offset = place->root_offset;
  slot.rank = v->shape.rank;
  memcpy(slot.stride, place->stride, sizeof slot.stride);
  slot.storage = place->storage;
  return BERTH__RESULT_WRITE(out, &slot, "berth_slot", err);
}

berth_status berth_plan_scratch(const berth_plan *plan, uint32_t step, berth_slot *out, berth_error *err) {
  berth_slot slot = BERTH_SLOT_INIT;
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  if (step >= plan->n_steps) return berth__fail(err, BERTH_INVALID, "the plan has no step %u", step);
  if (plan->scratch[step] != BERTH__NO_BUFFER) {
    const berth__buffer *buffer = &plan->buffers[plan->scratch[step]];
    slot.offset = buffer->offset;
    slot.size = buffer->size;
    slot.birth = buffer->birth;
    slot.death = buffer->death;
  }
  return BERTH__RESULT_WRITE(out, &slot, "berth_slot", err);
}

/* A part of a concat that is already in place. */
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

/* Whichever side is made, it is made where the result is. */
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
