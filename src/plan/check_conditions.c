/* Checks conditions from the opposite direction: for every step that may be skipped, the readers of its results must be
 * skipped with it, or be a choose that then takes the other side. */
#include "plan/checker.h"

/* Whether the chain of `condition`, extended by one more condition if there is one, begins with the chain `start`. */
static bool begins_with(const berth_plan *plan, uint32_t under, berth_value condition, bool sense, uint32_t start) {
  const berth__condition *items = plan->conditions.items;
  if (condition != BERTH_VALUE_NONE && items[start].condition == condition && items[start].sense == sense &&
      items[start].parent == under)
    return true;
  while (items[under].depth > items[start].depth) under = items[under].parent;
  return under == start;
}

static uint32_t condition_of(const berth_plan *plan, const uint32_t *step_of, berth_value value) {
  const berth__value *v = &plan->graph->values[value];
  return v->kind == BERTH_VALUE_NODE ? plan->conditions.of_step[step_of[v->node]] : BERTH__NO_CONDITION;
}

/* The conditions themselves must have been made when they are evaluated. */
static berth_status plan_conditions_check_table(const berth_plan *plan, const uint32_t *step_of, berth_error *err) {
  const berth__conditions *conditions = &plan->conditions;
  for (uint32_t g = 1; g < conditions->count; g++) {
    const berth__condition *item = &conditions->items[g];
    bool ok = item->parent < g && item->depth == conditions->items[item->parent].depth + 1 &&
              item->condition < plan->graph->n_values && plan->graph->values[item->condition].type == BERTH_BOOL &&
              begins_with(plan, item->parent, BERTH_VALUE_NONE, false, condition_of(plan, step_of, item->condition));
    if (!ok) return berth__fail(err, BERTH_INTERNAL, "plan check: condition %u is not one", g);
  }
  return BERTH_OK;
}

static berth_status check_reader(const berth_plan *plan, const uint32_t *step_of, uint32_t step, berth_error *err) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  uint32_t mine = plan->conditions.of_step[step];
  if (mine >= plan->conditions.count)
    return berth__fail(err, BERTH_INTERNAL, "plan check: step %u has no condition", step);
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    berth_value condition = node->op->code == BERTH__OP_choose && i != 0 ? node->in[0] : BERTH_VALUE_NONE;
    if (!begins_with(plan, mine, condition, i == 1, condition_of(plan, step_of, node->in[i])))
      return berth__fail(err, BERTH_INTERNAL, "plan check: step %u reads '%s', which may have been left out", step,
                         plan->graph->values[node->in[i]].name);
  }
  return BERTH_OK;
}

static berth_status plan_conditions_check_all(const berth_plan *plan, const uint32_t *step_of, berth_error *err) {
  BERTH__TRY(plan_conditions_check_table(plan, step_of, err));
  for (uint32_t step = 0; step < plan->n_steps; step++) BERTH__TRY(check_reader(plan, step_of, step, err));
  for (size_t i = 0; i < plan->graph->n_outputs; i++)
    if (condition_of(plan, step_of, plan->graph->outputs[i].value) != BERTH__NO_CONDITION)
      return berth__fail(err, BERTH_INTERNAL, "plan check: output '%s' may be left out", plan->graph->outputs[i].name);
  for (size_t i = 0; i < plan->graph->n_updates; i++)
    if (condition_of(plan, step_of, plan->graph->updates[i].next) != BERTH__NO_CONDITION)
      return berth__fail(err, BERTH_INTERNAL, "plan check: the update of state '%s' may be left out",
                         plan->graph->values[plan->graph->updates[i].state].name);
  return BERTH_OK;
}

berth_status berth__check_conditions(const berth_plan *plan, berth_error *err) {
  uint32_t *step_of = berth__alloc_array(plan->ctx, plan->n_steps, sizeof *step_of);
  if (step_of == NULL) return berth__fail_nomem(err, "checking a plan");
  for (uint32_t step = 0; step < plan->n_steps; step++) step_of[plan->order[step]] = step;
  berth_status status = plan_conditions_check_all(plan, step_of, err);
  berth__free(plan->ctx, step_of);
  return status;
}

bool berth__check_excludes(const berth_plan *plan, uint32_t a, uint32_t b) {
  const berth__condition *items = plan->conditions.items;
  for (uint32_t i = a; i != BERTH__NO_CONDITION; i = items[i].parent)
    for (uint32_t k = b; k != BERTH__NO_CONDITION; k = items[k].parent)
      if (items[i].condition == items[k].condition && items[i].sense != items[k].sense) return true;
  return false;
}
