/* Sets `over` on nodes whose op can overwrite an operand only at a price.
 *
 * Such ops first save parts of the operand in scratch, and are a little slower. That is worth it only where the arena
 * is fullest. The largest load among the steps that cannot be reduced is a floor: steps below it need no help, and
 * every step above it gets the attribute. Whether the plan becomes smaller is found out by making it. */
#include "plan/over.h"

#include "plan/buffers.h"

/* The load of every step. */
static void plan_over_measure(const berth_plan *plan, int64_t *load) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (!berth__buffer_is_packed(buffer) || berth__buffer_is_preparation(plan, buffer)) continue;
    load[buffer->birth] += (int64_t)berth__buffer_room(plan, buffer);
    load[buffer->death] -= (int64_t)berth__buffer_room(plan, buffer);
  }
  for (uint32_t step = 1; step < plan->n_steps; step++) load[step] += load[step - 1];
}

/* Whether the result has its own bytes and could have those of operand 0, which has no further readers. */
static bool could_lie_over(const berth_plan *plan, uint32_t step) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  const berth__family *family = node->op->family;
  if (family->over_attr == 0 || step < plan->n_prelude || node->in[0] == BERTH_VALUE_NONE) return false;
  const berth__place *in = &plan->places[node->in[0]], *out = &plan->places[node->out[0]];
  if (out->is_view || out->in_place || out->born_inside || in->buffer == BERTH__NO_BUFFER) return false;
  const berth__buffer *buffer = &plan->buffers[in->buffer];
  if (!berth__buffer_is_packed(buffer) || buffer->kind == BERTH__BUFFER_OUTPUT || buffer->death > step + 1)
    return false;
  const berth__value *values = plan->graph->values;
  const berth_type type = values[node->in[0]].type;
  if (type == BERTH_F16 || type == BERTH_BF16) return false; /* computed in f32 band by band, and bands share lines */
  return family->may_lie_over(node->attrs, &values[node->in[0]].shape, &values[node->out[0]].shape);
}

berth_status berth__over_mark(berth_plan *plan, uint32_t *count, berth_error *err) {
  int64_t *load = berth__alloc_array_zero(plan->ctx, (size_t)berth__plan_end(plan->n_steps) + 1, sizeof *load);
  int64_t floor = 0;
  *count = 0;
  if (load == NULL) return berth__fail_nomem(err, "a plan");
  plan_over_measure(plan, load);
  for (uint32_t step = 0; step < plan->n_steps; step++)
    if (load[step] > floor && !could_lie_over(plan, step)) floor = load[step];
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    if (load[step] <= floor || !could_lie_over(plan, step)) continue;
    node->attrs[node->op->family->over_attr - 1].i = 1;
    ++*count;
  }
  berth__free(plan->ctx, load);
  return BERTH_OK;
}

void berth__over_unmark(berth_plan *plan) {
  for (size_t n = 0; n < plan->graph->n_nodes; n++) {
    const berth__node *node = &plan->graph->nodes[n];
    if (node->op->family->over_attr != 0) node->attrs[node->op->family->over_attr - 1].i = 0;
  }
}
