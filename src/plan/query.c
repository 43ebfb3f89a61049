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
  out->size = (uint64_t)count * berth__plan_element(plan->flags, v->type);
  out->birth = place->birth;
  out->death = place->death;
  out->is_view = place->is_view;
  out->root = place->root;
  out->root_offset = place->root_offset;
  out->rank = v->shape.rank;
  memcpy(out->stride, place->stride, sizeof out->stride);
  return BERTH_OK;
}
