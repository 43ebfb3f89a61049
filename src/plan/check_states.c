/* States, for the checker: the values that one run leaves are what the next one finds. */
#include "plan/checker.h"

static berth_status check_shared(const berth__checker *c, berth_value state) {
  const berth_plan *plan = c->plan;
  const char *name = plan->graph->values[state].name;
  const berth__place *place = &plan->places[state];
  if (place->root != state || place->buffer == BERTH__NO_BUFFER ||
      plan->buffers[place->buffer].kind != BERTH__BUFFER_STATE)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: state '%s' has no bytes of its own", name);
  if (c->ranges[state].high > plan->params_size)
    return berth__fail(c->err, BERTH_INTERNAL, "plan check: state '%s' is not among what bindings share", name);
  return BERTH_OK;
}

berth_status berth__check_state_places(const berth__checker *c) {
  const berth_graph *graph = c->plan->graph;
  for (size_t i = 0; i < graph->n_states; i++) BERTH__TRY(check_shared(c, graph->states[i]));
  for (size_t i = 0; i < graph->n_updates; i++) {
    const berth__update *update = &graph->updates[i];
    const berth__range from = c->ranges[update->next], to = c->ranges[update->state];
    const bool is_made = graph->values[update->next].kind == BERTH_VALUE_NODE;
    const bool is_alike =
        berth__storage_equal(c->plan->places[update->next].storage, c->plan->places[update->state].storage);
    if (!is_made || !is_alike || from.low != to.low || from.high != to.high ||
        c->plan->places[update->next].birth < c->plan->n_prelude)
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: '%s' is not made where state '%s' lies",
                         graph->values[update->next].name, graph->values[update->state].name);
  }
  return BERTH_OK;
}

berth_status berth__check_state_write(const berth__checker *c, const berth__node *node, uint32_t step,
                                      berth__range bytes, uint32_t out) {
  const berth_graph *graph = c->plan->graph;
  for (size_t i = 0; i < graph->n_updates; i++) {
    const berth__update *update = &graph->updates[i];
    const bool is_update = out != UINT32_MAX && node->out[out] == update->next;
    if (is_update || !berth__overlap(bytes, c->ranges[update->state])) continue;
    return berth__fail(c->err, BERTH_INTERNAL,
                       "plan check: step %u ('%s') writes over state '%s', which only its "
                       "update may",
                       step, graph->values[node->out[0]].name, graph->values[update->state].name);
  }
  return BERTH_OK;
}

berth_status berth__check_state_ends(berth__checker *c) {
  const berth_graph *graph = c->plan->graph;
  for (size_t i = 0; i < graph->n_updates; i++)
    if (!c->intact[graph->updates[i].next])
      return berth__fail(c->err, BERTH_INTERNAL, "plan check: state '%s' does not hold its next value at the end",
                         graph->values[graph->updates[i].state].name);
  for (size_t i = 0; i < graph->n_updates; i++) c->intact[graph->updates[i].state] = true;
  return BERTH_OK;
}
