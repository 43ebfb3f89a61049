/* Builds the graph of a choice: the plan's nodes in its order, with clones before their first readers. */
#include "pass/pass.h"
#include "plan/budget.h"
#include "plan/remake.h"

typedef struct emitter {
  berth__rewrite *r;
  berth_value *now; /* one per value: its current version */
  bool *is_late;    /* one per value: a view of recomputed bytes */
  berth_status status;
  berth_error *err;
} emitter;

static void plan_remake_clone(const berth__remake_walk *walk, uint32_t node);

/* The current version of a value: a view of recomputed bytes is made again. */
static berth_value plan_remake_current(const berth__remake_walk *walk, berth_value value) {
  const emitter *e = walk->user;
  const berth__remake_model *model = walk->model;
  if (value == BERTH_VALUE_NONE) return value;
  const berth__value *v = &model->plan->graph->values[value];
  if (e->now[value] != value || !model->is_view[value] || e->is_late[value]) return e->now[value];
  const berth_value shown = model->plan->graph->nodes[v->node].in[0];
  if (shown == BERTH_VALUE_NONE || plan_remake_current(walk, shown) == shown) {
    const bool is_late = shown != BERTH_VALUE_NONE && model->is_view[shown] && e->is_late[shown];
    if (!is_late) return value;
  }
  plan_remake_clone(walk, v->node);
  return e->now[value];
}

/* Adds a clone of the node, reading current versions. */
static void plan_remake_clone(const berth__remake_walk *walk, uint32_t index) {
  emitter *e = walk->user;
  const berth__node *node = &walk->model->plan->graph->nodes[index];
  berth_context *ctx = walk->model->ctx;
  if (e->status != BERTH_OK) return;
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_value *out = berth__alloc_array(ctx, node->n_out, sizeof *out);
  if (in == NULL || out == NULL) e->status = berth__fail_nomem(e->err, "a plan");
  for (uint32_t i = 0; i < node->n_in && e->status == BERTH_OK; i++) in[i] = plan_remake_current(walk, node->in[i]);
  if (e->status == BERTH_OK) e->status = berth__budget_add_copy(e->r, node, in, NULL, "#again", out, e->err);
  for (uint32_t i = 0; i < node->n_out && e->status == BERTH_OK; i++) e->now[node->out[i]] = out[i];
  berth__free(ctx, in);
  berth__free(ctx, out);
}

/* Views of the class are made again after it is recomputed. */
static void plan_remake_forget_views(const berth__remake_walk *walk, uint32_t class) {
  const emitter *e = walk->user;
  const berth__remake_model *model = walk->model;
  const berth_graph *graph = model->plan->graph;
  for (size_t n = 0; n < graph->n_values; n++) {
    berth_value value = (berth_value)n;
    if (!model->is_view[value] || e->now[value] == value) continue;
    while (value != BERTH_VALUE_NONE && model->is_view[value]) value = graph->nodes[graph->values[value].node].in[0];
    if (value != BERTH_VALUE_NONE && model->class_of[value] == class) e->now[n] = (berth_value)n;
  }
}

static void plan_remake_emit_clone(berth__remake_walk *walk, uint32_t class) {
  if (walk->dropped[class] == BERTH__REMAKE_EACH) plan_remake_forget_views(walk, class);
  plan_remake_clone(walk, walk->model->plan->order[walk->model->classes[class].maker]);
}

/* Adds the step itself, reading the current versions of its operands. */
static void plan_remake_emit_step(berth__remake_walk *walk, uint32_t step) {
  emitter *e = walk->user;
  const berth_plan *plan = walk->model->plan;
  const uint32_t index = plan->order[step];
  const berth__node *node = &plan->graph->nodes[index];
  for (uint32_t i = 0; i < node->n_in && e->status == BERTH_OK; i++) (void)plan_remake_current(walk, node->in[i]);
  if (e->status == BERTH_OK) e->status = berth__rewrite_keep(e->r, index, e->err);
  if (e->status != BERTH_OK) return;
  const berth__node *kept = &e->r->graph->nodes[e->r->graph->n_nodes - 1];
  bool has_changed = false;
  for (uint32_t i = 0; i < kept->n_in; i++) {
    if (kept->in[i] == BERTH_VALUE_NONE) continue;
    const berth_value now = e->now[kept->in[i]];
    has_changed = has_changed || (i == 0 && (now != kept->in[i] || e->is_late[kept->in[i]]));
    kept->in[i] = now;
  }
  for (uint32_t i = 0; i < node->n_out && has_changed; i++)
    if (walk->model->is_view[node->out[i]]) e->is_late[node->out[i]] = true;
}

static berth_status plan_remake_emit_all(berth__remake_walk *walk, berth_error *err) {
  const berth__remake_model *model = walk->model;
  emitter *e = walk->user;
  for (uint32_t step = 0; step < model->n_steps && e->status == BERTH_OK; step++) {
    for (uint32_t i = model->first_touch[step]; i < model->first_touch[step + 1]; i++)
      if (!model->touches[i].makes) berth__remake_need(walk, model->touches[i].class, step);
    plan_remake_emit_step(walk, step);
  }
  if (e->status == BERTH_OK && walk->fails) return berth__fail(err, BERTH_INVALID, "a choice cannot be made");
  return e->status;
}

berth_status berth__remake_emit(const berth__remake_model *model, const uint8_t *dropped, berth_graph **out,
                                uint32_t *n_added, berth_error *err) {
  const size_t n_values = model->plan->graph->n_values;
  berth_graph *graph;
  berth__rewrite r = {0};
  emitter e = {.r = &r,
               .now = berth__alloc_array(model->ctx, n_values, sizeof *e.now),
               .is_late = berth__alloc_array_zero(model->ctx, n_values, sizeof *e.is_late),
               .err = err};
  *out = NULL;
  *n_added = 0;
  berth_status status = e.now != NULL && e.is_late != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (size_t v = 0; v < n_values && status == BERTH_OK; v++) e.now[v] = (berth_value)v;
  if (status == BERTH_OK) status = berth__graph_duplicate(model->plan->graph, &graph, err);
  if (status == BERTH_OK) {
    berth__remake_walk walk = {.model = model,
                               .dropped = dropped,
                               .again = model->again,
                               .needed = model->needed,
                               .make = plan_remake_emit_clone,
                               .user = &e};
    berth__remake_walk_start(&walk);
    status = berth__rewrite_start(&r, graph, err);
    if (status == BERTH_OK) status = plan_remake_emit_all(&walk, err);
    berth__rewrite_finish(&r);
    if (status == BERTH_OK) status = berth__pass_dead(graph, err); /* nodes with late readers only have just moved */
    if (status == BERTH_OK && graph->n_nodes > model->plan->graph->n_nodes)
      *n_added = (uint32_t)(graph->n_nodes - model->plan->graph->n_nodes);
    if (status == BERTH_OK)
      *out = graph;
    else
      berth_graph_destroy(graph);
  }
  berth__free(model->ctx, e.now);
  berth__free(model->ctx, e.is_late);
  return status;
}
