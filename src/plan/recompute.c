/* Recomputes values for a late reader, so that they need not be kept in between (rematerialization). */
#include "pass/pass.h"
#include "plan/budget.h"

#define MOST_CLONES 24u

typedef struct cloner {
  const berth_plan *plan;
  uint32_t step;       /* the fullest step */
  uint32_t first_late; /* first of the readers after it */
  uint32_t root_buffer;
  bool deep;
  bool *is_cloned;    /* one per node of the plan's graph */
  berth_value *again; /* one per value: its recomputed version */
  uint32_t *step_of;  /* one per node */
  uint32_t n_cloned;
  bool fails;
} cloner;

static const berth__node *maker_of(const berth_plan *plan, berth_value value) {
  const berth__value *v = &plan->graph->values[value];
  return v->kind == BERTH_VALUE_NODE ? &plan->graph->nodes[v->node] : NULL;
}

static bool is_touched(const berth_plan *plan, uint32_t buffer, uint32_t step) {
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] != BERTH_VALUE_NONE && plan->places[node->in[i]].buffer == buffer) return true;
  for (uint32_t i = 0; i < node->n_out; i++)
    if (plan->places[node->out[i]].buffer == buffer) return true;
  return false;
}

uint32_t berth__recompute_candidates(const berth_plan *plan, uint32_t step, berth_value *roots, uint32_t most) {
  uint32_t n = 0;
  for (uint32_t b = 0; b < plan->n_buffers; b++) {
    const berth__buffer *buffer = &plan->buffers[b];
    if (buffer->kind != BERTH__BUFFER_ACTIVATION || buffer->birth >= step || buffer->death <= step + 1) continue;
    if (is_touched(plan, b, step)) continue;
    uint32_t at = n < most ? n++ : most;
    for (; at > 0 && plan->buffers[plan->places[roots[at - 1]].buffer].size < buffer->size; at--)
      if (at < most) roots[at] = roots[at - 1];
    if (at < most) roots[at] = buffer->owner;
  }
  return n;
}

static bool is_there_late(const cloner *c, berth_value value) {
  const berth_plan *plan = c->plan;
  const berth__place *place = &plan->places[value];
  if (place->buffer == BERTH__NO_BUFFER) return true;
  return place->death > c->first_late;
}

static bool may_be_cloned(const berth__node *node) {
  const berth__family *family = node->op->family;
  return node->op->custom == NULL && !family->is_random && !family->is_loop && node->op->code != BERTH__OP_choose;
}

/* Marks what must run again to make the value available late. */
static void mark(cloner *c, berth_value value) {
  const berth__value *v = &c->plan->graph->values[value];
  if (v->kind != BERTH_VALUE_NODE || c->is_cloned[v->node] || c->fails) return;
  const berth__node *node = &c->plan->graph->nodes[v->node];
  c->fails = !may_be_cloned(node) || c->plan->in_prelude[v->node] || ++c->n_cloned > MOST_CLONES;
  c->is_cloned[v->node] = true;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const bool lies_there = c->plan->places[node->in[i]].buffer == c->root_buffer;
    if (lies_there || (c->deep && !is_there_late(c, node->in[i]))) mark(c, node->in[i]);
  }
}

static bool lies_in_root(const cloner *c, berth_value value) {
  return value != BERTH_VALUE_NONE && c->plan->places[value].buffer == c->root_buffer;
}

/* Values made before the step and read after it. */
static void mark_late_reads(cloner *c) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = c->step + 1; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (!lies_in_root(c, node->in[i]) || maker_of(plan, node->in[i]) == NULL) continue;
      if (c->step_of[plan->graph->values[node->in[i]].node] > c->step) continue;
      if (c->first_late == UINT32_MAX) c->first_late = step;
      mark(c, node->in[i]);
    }
  }
}

berth_status berth__budget_add_copy(berth__rewrite *r, const berth__node *node, const berth_value *in,
                                    const berth_attr *attrs, const char *suffix, berth_value *out, berth_error *err) {
  berth_graph *graph = r->graph;
  char(*names)[256] = berth__alloc_array(graph->ctx, node->n_out, sizeof *names);
  const char **list = berth__alloc_array(graph->ctx, node->n_out, sizeof *list);
  berth_status status = names != NULL && list != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i < node->n_out && status == BERTH_OK; i++) {
    berth__rewrite_name(graph, node->out[i], suffix, names[i], sizeof names[i]);
    list[i] = names[i];
  }
  if (status == BERTH_OK)
    status = berth__graph_add_op(graph, node->op, in, node->n_in, attrs != NULL ? attrs : node->attrs,
                                 node->op->family->n_attrs, list, out, node->n_out, err);
  berth__free(graph->ctx, names);
  berth__free(graph->ctx, list);
  return status;
}

/* Adds a clone of the node, reading recomputed operands if there are any. */
static berth_status emit_clone(const cloner *c, berth__rewrite *r, const berth__node *node, berth_error *err) {
  berth_context *ctx = r->graph->ctx;
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_value *out = berth__alloc_array(ctx, node->n_out, sizeof *out);
  berth_status status = in != NULL && out != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  if (status == BERTH_OK) {
    for (uint32_t i = 0; i < node->n_in; i++)
      in[i] = node->in[i] != BERTH_VALUE_NONE ? c->again[node->in[i]] : BERTH_VALUE_NONE;
    status = berth__budget_add_copy(r, node, in, NULL, "#again", out, err);
  }
  for (uint32_t i = 0; i < node->n_out && status == BERTH_OK; i++) c->again[node->out[i]] = out[i];
  berth__free(ctx, in);
  berth__free(ctx, out);
  return status;
}

static berth_status emit_clones(const cloner *c, berth__rewrite *r, berth_error *err) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = 0; step < c->first_late; step++)
    if (c->is_cloned[plan->order[step]]) BERTH__TRY(emit_clone(c, r, &plan->graph->nodes[plan->order[step]], err));
  return BERTH_OK;
}

static berth_status plan_recompute_emit(const cloner *c, berth__rewrite *r, berth_error *err) {
  const berth_plan *plan = c->plan;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    if (step == c->first_late) BERTH__TRY(emit_clones(c, r, err));
    BERTH__TRY(berth__rewrite_keep(r, plan->order[step], err));
    const berth__node *kept = &r->graph->nodes[r->graph->n_nodes - 1];
    for (uint32_t i = 0; i < kept->n_in && step >= c->first_late; i++)
      if (kept->in[i] != BERTH_VALUE_NONE) kept->in[i] = c->again[kept->in[i]];
  }
  return BERTH_OK;
}

static berth_status plan_recompute_rewrite(const cloner *c, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  berth__rewrite r;
  BERTH__TRY(berth__graph_duplicate(c->plan->graph, &graph, err));
  berth_status status = berth__rewrite_start(&r, graph, err);
  if (status == BERTH_OK) status = plan_recompute_emit(c, &r, err);
  berth__rewrite_finish(&r);
  if (status == BERTH_OK) status = berth__pass_dead(graph, err); /* nodes with late readers only have just moved */
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

berth_status berth__recompute(const berth_plan *plan, uint32_t step, berth_value root, bool deep, berth_graph **out,
                              uint32_t *n_added, berth_error *err) {
  berth_context *ctx = plan->ctx;
  cloner c = {.plan = plan,
              .step = step,
              .first_late = UINT32_MAX,
              .root_buffer = plan->places[root].buffer,
              .deep = deep,
              .is_cloned = berth__alloc_array_zero(ctx, plan->graph->n_nodes, sizeof *c.is_cloned),
              .again = berth__alloc_array(ctx, plan->graph->n_values, sizeof *c.again),
              .step_of = berth__alloc_array(ctx, plan->graph->n_nodes, sizeof *c.step_of)};
  berth_status status = BERTH_OK;
  *out = NULL;
  *n_added = 0;
  if (c.is_cloned == NULL || c.again == NULL || c.step_of == NULL) {
    status = berth__fail_nomem(err, "a plan");
  } else {
    for (uint32_t i = 0; i < plan->n_steps; i++) c.step_of[plan->order[i]] = i;
    for (size_t v = 0; v < plan->graph->n_values; v++) c.again[v] = (berth_value)v;
    mark_late_reads(&c);
    if (c.n_cloned != 0 && !c.fails) status = plan_recompute_rewrite(&c, out, err);
    if (*out != NULL && (*out)->n_nodes > plan->graph->n_nodes)
      *n_added = (uint32_t)((*out)->n_nodes - plan->graph->n_nodes);
  }
  berth__free(ctx, c.is_cloned);
  berth__free(ctx, c.again);
  berth__free(ctx, c.step_of);
  return status;
}
