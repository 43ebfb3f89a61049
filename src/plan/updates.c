/* Moves the updates of states as early as possible. A gradient that waits for the end of a step although its optimiser
 * could run at once is kept for nothing, but the search for the smallest order ignores that if another step is fuller.
 * The moved nodes add no bytes (their results are the states), so the load never rises. */
#include "plan/budget.h"

#define MOST_BYTES 64u /* of a scalar */

typedef struct mover {
  const berth_plan *plan;
  const berth_graph *graph;
  berth__rewrite *r;
  berth_value *shown; /* one per value: the state whose bytes it has; NONE: no state's */
  uint32_t *last;     /* one per value: for a state, its last reader other than its update */
  uint32_t *ready;    /* one per node that may move: the step after which it can run; UINT32_MAX: it stays */
  uint32_t *first;    /* one per step: the first node that becomes ready after it; UINT32_MAX: none */
  uint32_t *next;     /* one per node: the next one that becomes ready after the same step */
  bool *is_early;     /* one per node: it moves to the beginning */
  uint32_t *step_of;  /* one per node */
} mover;

static bool updates_is_next(const berth_graph *graph, berth_value value, berth_value *state) {
  for (size_t u = 0; u < graph->n_updates; u++) {
    if (graph->updates[u].next != value) continue;
    *state = graph->updates[u].state;
    return true;
  }
  return false;
}

static bool updates_makes_next(const berth_graph *graph, const berth__node *node, berth_value state) {
  for (size_t u = 0; u < graph->n_updates; u++)
    for (uint32_t i = 0; i < node->n_out && graph->updates[u].state == state; i++)
      if (graph->updates[u].next == node->out[i]) return true;
  return false;
}

/* Whether all results of the node are next values without readers. */
static bool updates_may_move(const mover *m, const berth__uses *uses, uint32_t index) {
  const berth__node *node = &m->graph->nodes[index];
  berth_value state;
  if (m->plan->in_prelude[index] || node->op->family->is_loop || node->op->code == BERTH__OP_choose) return false;
  for (uint32_t i = 0; i < node->n_out; i++)
    if (uses->count[node->out[i]] > 1 || !updates_is_next(m->graph, node->out[i], &state)) return false;
  return true;
}

static void updates_note_readers(mover *m) {
  for (size_t v = 0; v < m->graph->n_values; v++) {
    m->shown[v] = m->graph->values[v].kind == BERTH_VALUE_STATE ? (berth_value)v : BERTH_VALUE_NONE;
    m->last[v] = 0;
  }
  for (uint32_t step = 0; step < m->plan->n_steps; step++) {
    const berth__node *node = &m->graph->nodes[m->plan->order[step]];
    m->step_of[m->plan->order[step]] = step;
    for (uint32_t i = 0; i < node->n_in; i++) {
      const berth_value state = node->in[i] == BERTH_VALUE_NONE ? BERTH_VALUE_NONE : m->shown[node->in[i]];
      if (state == BERTH_VALUE_NONE || updates_makes_next(m->graph, node, state)) continue;
      m->last[state] = step;
      for (uint32_t k = 0; k < node->n_out && i == 0; k++)
        if (m->plan->places[node->out[k]].is_view) m->shown[node->out[k]] = state;
    }
  }
}

/* Scalars that depend only on states and inputs, so that optimisers wait for nothing but their gradients. */
static void updates_find_early(mover *m) {
  for (uint32_t step = 0; step < m->plan->n_steps; step++) {
    const uint32_t index = m->plan->order[step];
    const berth__node *node = &m->graph->nodes[index];
    bool is_early = !m->plan->in_prelude[index] && !node->op->family->is_loop && node->op->code != BERTH__OP_choose;
    for (uint32_t i = 0; i < node->n_out && is_early; i++) {
      uint64_t size = 0;
      is_early = berth__value_size(&m->graph->values[node->out[i]], &size) && size <= MOST_BYTES;
    }
    for (uint32_t i = 0; i < node->n_in && is_early; i++) {
      if (node->in[i] == BERTH_VALUE_NONE || m->graph->values[node->in[i]].kind != BERTH_VALUE_NODE) continue;
      const uint32_t from = m->graph->values[node->in[i]].node;
      is_early = m->is_early[from] || m->plan->in_prelude[from];
    }
    m->is_early[index] = is_early;
  }
}

/* After its operands are made, and after all readers of what it overwrites. */
static uint32_t updates_ready(const mover *m, uint32_t index) {
  const berth__node *node = &m->graph->nodes[index];
  uint32_t ready = m->plan->n_prelude;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE || m->graph->values[node->in[i]].kind != BERTH_VALUE_NODE) continue;
    const uint32_t from = m->graph->values[node->in[i]].node;
    if (!m->is_early[from] && m->step_of[from] > ready) ready = m->step_of[from];
  }
  for (uint32_t i = 0; i < node->n_out; i++) {
    berth_value state;
    if (updates_is_next(m->graph, node->out[i], &state) && m->last[state] > ready) ready = m->last[state];
  }
  return ready;
}

/* *n_moved: nodes that run earlier than before. Those of the same step keep their order. */
static void updates_find(mover *m, const berth__uses *uses, uint32_t *n_moved) {
  *n_moved = 0;
  updates_note_readers(m);
  updates_find_early(m);
  for (uint32_t step = 0; step < m->plan->n_steps; step++) m->first[step] = UINT32_MAX;
  for (uint32_t n = (uint32_t)m->graph->n_nodes; n-- > 0;) {
    m->ready[n] = UINT32_MAX;
    if (m->is_early[n] || !updates_may_move(m, uses, n)) continue;
    const uint32_t ready = updates_ready(m, n);
    if (ready + 1 >= m->step_of[n]) continue;
    m->ready[n] = ready;
    m->next[n] = m->first[ready];
    m->first[ready] = n;
    ++*n_moved;
  }
}

static berth_status updates_emit_early(const mover *m, berth_error *err) {
  for (uint32_t step = m->plan->n_prelude; step < m->plan->n_steps; step++)
    if (m->is_early[m->plan->order[step]]) BERTH__TRY(berth__rewrite_keep(m->r, m->plan->order[step], err));
  return BERTH_OK;
}

static berth_status updates_emit(const mover *m, berth_error *err) {
  for (uint32_t step = 0; step < m->plan->n_steps; step++) {
    const uint32_t index = m->plan->order[step];
    if (step == m->plan->n_prelude) BERTH__TRY(updates_emit_early(m, err));
    if (m->ready[index] == UINT32_MAX && !m->is_early[index]) BERTH__TRY(berth__rewrite_keep(m->r, index, err));
    for (uint32_t n = m->first[step]; n != UINT32_MAX; n = m->next[n]) BERTH__TRY(berth__rewrite_keep(m->r, n, err));
  }
  return BERTH_OK;
}

static berth_status updates_rewrite(mover *m, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  berth__rewrite r;
  BERTH__TRY(berth__graph_duplicate(m->graph, &graph, err));
  m->r = &r;
  berth_status status = berth__rewrite_start(&r, graph, err);
  if (status == BERTH_OK) status = updates_emit(m, err);
  berth__rewrite_finish(&r);
  m->r = NULL;
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

berth_status berth__updates_early(const berth_plan *plan, berth_graph **out, berth_error *err) {
  berth_context *ctx = plan->ctx;
  const size_t n_values = plan->graph->n_values, n_nodes = plan->graph->n_nodes;
  berth__uses uses;
  uint32_t n_moved = 0;
  *out = NULL;
  if (plan->graph->n_updates == 0) return BERTH_OK;
  BERTH__TRY(berth__uses_create(&uses, plan->graph, err));
  mover m = {.plan = plan,
             .graph = plan->graph,
             .shown = berth__alloc_array(ctx, n_values, sizeof *m.shown),
             .last = berth__alloc_array(ctx, n_values, sizeof *m.last),
             .ready = berth__alloc_array(ctx, n_nodes, sizeof *m.ready),
             .first = berth__alloc_array(ctx, n_nodes, sizeof *m.first),
             .next = berth__alloc_array(ctx, n_nodes, sizeof *m.next),
             .is_early = berth__alloc_array_zero(ctx, n_nodes, sizeof *m.is_early),
             .step_of = berth__alloc_array(ctx, n_nodes, sizeof *m.step_of)};
  const bool ok = m.shown != NULL && m.last != NULL && m.ready != NULL && m.first != NULL && m.next != NULL &&
                  m.is_early != NULL && m.step_of != NULL;
  berth_status status = ok ? BERTH_OK : berth__fail_nomem(err, "a plan");
  if (ok) updates_find(&m, &uses, &n_moved);
  if (n_moved != 0) status = updates_rewrite(&m, out, err);
  berth__free(ctx, m.shown);
  berth__free(ctx, m.last);
  berth__free(ctx, m.ready);
  berth__free(ctx, m.first);
  berth__free(ctx, m.next);
  berth__free(ctx, m.is_early);
  berth__free(ctx, m.step_of);
  berth__uses_free(&uses, ctx);
  return status;
}
