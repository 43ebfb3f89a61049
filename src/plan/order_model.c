/* Which lifetimes every node begins and ends.
 *
 * Views do not depend on the order of the nodes, so the classes of a plan without in-place results are the same for
 * every order. A result that overwrites an operand ends that class at the step at which its own begins: the step needs
 * the bytes once, and nothing else changes. So the bytes alive depend only on the set of completed nodes, which makes
 * an exact search possible. */
#include "base/math.h"
#include "plan/order.h"
#include "plan/states.h"

#define NO_CLASS UINT32_MAX
#define NO_NODE UINT32_MAX
#define SEVERAL (UINT32_MAX - 1)

typedef struct maker {
  berth__order_model *model;
  const berth__alias *alias;
  const berth__order_rules *rules;
  uint32_t *class_of;  /* one per value: its root's class; NO_CLASS: it costs nothing */
  berth_value *joined; /* one per value: the root into which a root was moved, or itself */
  uint32_t *concat_of; /* one per value, with PARTS_LEAST: the node that may contain it; NO_NODE, SEVERAL */
  uint32_t n_touches;
} maker;

static berth_value plan_order_model_root_of(const maker *m, berth_value value) {
  berth_value root = berth__alias_root(m->alias, value, NULL);
  while (m->joined[root] != root) root = m->joined[root];
  return root;
}

static bool is_moved(const maker *m, berth_value value) {
  const berth_value root = berth__alias_root(m->alias, value, NULL);
  return m->joined[root] != root;
}

static void plan_order_model_add_parts(maker *m, uint32_t index) {
  const berth__node *node = &m->alias->graph->nodes[index];
  const berth_value whole = node->out[0];
  for (uint32_t i = 0; i < node->n_in; i++) /* an input may be inside in more ways than are modelled */
    if (m->alias->graph->values[node->in[i]].kind == BERTH_VALUE_INPUT) m->model->is_exact = false;
  if (m->alias->values[whole].parent != whole || !berth__alias_is_joinable(m->alias, node)) return;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const berth_value root = berth__alias_root(m->alias, node->in[i], NULL);
    if (m->alias->graph->values[root].kind == BERTH_VALUE_INPUT) m->model->is_exact = false;
    if (m->alias->graph->values[root].kind != BERTH_VALUE_NODE) continue;
    if (!berth__alias_may_join(m->alias, node->in[i], whole)) continue;
    m->model->has_parts = true;
    if (m->rules->parts == BERTH__PARTS_INSIDE && m->joined[root] == root && root != plan_order_model_root_of(m, whole))
      m->joined[root] = whole;
    if (m->rules->parts == BERTH__PARTS_LEAST)
      m->concat_of[root] = m->concat_of[root] == NO_NODE || m->concat_of[root] == index ? index : SEVERAL;
  }
}

static void find_parts(maker *m) {
  const berth_graph *graph = m->alias->graph;
  for (size_t v = 0; v < graph->n_values; v++) {
    m->joined[v] = (berth_value)v;
    m->concat_of[v] = NO_NODE;
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    if (graph->nodes[n].op->code == BERTH__OP_concat) plan_order_model_add_parts(m, n);
    if (graph->nodes[n].op->code == BERTH__OP_choose) m->model->is_exact = false;
  }
}

static void add_class(maker *m, berth_value root) {
  const uint64_t align = m->rules->align;
  const berth__alias_class *from = &m->alias->classes[root];
  const berth_value_kind kind = m->alias->graph->values[root].kind;
  m->class_of[root] = NO_CLASS;
  if (m->alias->values[root].parent != root || m->joined[root] != root || from->size == 0) return;
  if (kind == BERTH_VALUE_PARAM || kind == BERTH_VALUE_CONSTANT || kind == BERTH_VALUE_STATE || from->is_of_prelude)
    return;
  if (!berth__alias_in_arena(m->alias, root) || m->concat_of[root] == SEVERAL) return;
  if (berth__alias_is_preparation(m->alias, root)) return; /* it is placed at the end, where there is room */
  const bool is_boundary = kind == BERTH_VALUE_INPUT || from->has_output;
  const uint64_t room = (from->size + (is_boundary ? m->rules->guard : 0) + align - 1) & ~(align - 1);
  if (kind == BERTH_VALUE_INPUT && !(m->alias->flags & BERTH_PLAN_INPUTS_DIE)) {
    m->model->base += room;
    return;
  }
  m->class_of[root] = m->model->n_classes;
  const bool is_part = m->concat_of[root] != NO_NODE; /* inside, its bytes are not rounded up */
  m->model->classes[m->model->n_classes++] = (berth__order_class){.size = is_part ? from->size : room,
                                                                  .is_there = kind == BERTH_VALUE_INPUT,
                                                                  .stays = from->has_output && !is_part};
}

static uint32_t class_of(const maker *m, berth_value value) {
  return value == BERTH_VALUE_NONE ? NO_CLASS : m->class_of[plan_order_model_root_of(m, value)];
}

static berth__order_touch *touch(maker *m, uint32_t node, uint32_t class) {
  berth__order_model *model = m->model;
  for (uint32_t i = model->first_touch[node]; i < m->n_touches; i++)
    if (model->touches[i].class == class) return &model->touches[i];
  model->touches[m->n_touches] = (berth__order_touch){.class = class, .node = node};
  model->classes[class].n_touches++;
  return &model->touches[m->n_touches++];
}

/* Once the concat has run, a part of it may cost nothing: its other readers do not matter. */
static bool plan_order_model_in_place_over(const maker *m, berth_value part, uint32_t reader) {
  const uint32_t concat = m->concat_of[plan_order_model_root_of(m, part)];
  return concat != NO_NODE && concat != reader;
}

static void touch_all(maker *m, uint32_t index) {
  const berth__node *node = &m->alias->graph->nodes[index];
  const bool is_view = m->alias->values[node->out[0]].is_view;
  const uint32_t in_place = m->rules->in_place && !is_view ? berth__op_in_place_at(node->op, node->attrs, 0) : 0;
  m->model->first_touch[index] = m->n_touches;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (class_of(m, node->in[i]) == NO_CLASS || plan_order_model_in_place_over(m, node->in[i], index)) continue;
    berth__order_touch *read = touch(m, index, class_of(m, node->in[i]));
    const bool may = i < 32 && (in_place >> i & 1u) && !is_moved(m, node->in[i]);
    if (may && berth__alias_may_overwrite(m->alias, node, i, 0)) read->may_yield = true;
    if (m->concat_of[plan_order_model_root_of(m, node->in[i])] == index) read->is_part = true;
  }
  for (uint32_t i = 0; i < node->n_out; i++) {
    const berth_value out = node->out[i];
    if (i != 0 && berth__op_in_place_at(node->op, node->attrs, i) != 0) m->model->is_exact = false; /* not modelled */
    if (class_of(m, out) == NO_CLASS || (is_view && plan_order_model_in_place_over(m, out, index))) continue;
    berth__order_touch *made = touch(m, index, class_of(m, out));
    made->is_result = i == 0 && !is_view && !is_moved(m, out);
  }
}

static void sort_by_class(berth__order_model *model) {
  uint32_t at = 0;
  for (uint32_t c = 0; c < model->n_classes; c++) {
    model->classes[c].first_touch = at;
    at += model->classes[c].n_touches;
    model->classes[c].n_touches = 0;
  }
  for (uint32_t i = 0; i < model->first_touch[model->n_nodes]; i++) {
    berth__order_class *class = &model->classes[model->touches[i].class];
    model->class_touches[class->first_touch + class->n_touches++] = model->touches[i];
  }
}

static void note_preds(berth__order_model *model, const berth_graph *graph, const berth__edge *edges, size_t n_edges) {
  uint32_t at = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    model->first_pred[n] = at;
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE && graph->values[node->in[i]].kind == BERTH_VALUE_NODE)
        model->preds[at++] = graph->values[node->in[i]].node;
    for (size_t i = 0; i < n_edges; i++)
      if (edges[i].to == n) model->preds[at++] = edges[i].from;
  }
  model->first_pred[graph->n_nodes] = at;
}

static berth_status plan_order_model_allocate(berth__order_model *model, const berth_graph *graph, size_t n_edges,
                                              berth_error *err) {
  size_t n_in = 0, n_out = 0, n = graph->n_nodes;
  for (size_t i = 0; i < n; i++) {
    n_in += graph->nodes[i].n_in;
    n_out += graph->nodes[i].n_out;
  }
  if (n_in + n_out + n_edges > UINT32_MAX / 2)
    return berth__fail(err, BERTH_UNSUPPORTED, "the graph is too large to be ordered");
  model->classes = berth__alloc_array(model->ctx, graph->n_values, sizeof *model->classes);
  model->first_touch = berth__alloc_array_zero(model->ctx, n + 1, sizeof *model->first_touch);
  model->touches = berth__alloc_array(model->ctx, n_in + n_out, sizeof *model->touches);
  model->class_touches = berth__alloc_array(model->ctx, n_in + n_out, sizeof *model->class_touches);
  model->scratch = berth__alloc_array_zero(model->ctx, n, sizeof *model->scratch);
  model->first_pred = berth__alloc_array_zero(model->ctx, n + 1, sizeof *model->first_pred);
  model->preds = berth__alloc_array(model->ctx, n_in + n_edges, sizeof *model->preds);
  const bool ok = model->classes && model->first_touch && model->touches && model->class_touches && model->scratch &&
                  model->first_pred && model->preds;
  return ok ? BERTH_OK : berth__fail_nomem(err, "ordering");
}

static void note_moved_outputs(const maker *m) {
  for (size_t v = 0; v < m->alias->graph->n_values; v++) {
    const uint32_t class = m->joined[v] != v ? class_of(m, (berth_value)v) : NO_CLASS;
    if (class != NO_CLASS && m->alias->classes[v].has_output) m->model->classes[class].stays = true;
  }
}

static void plan_order_model_fill(maker *m) {
  berth__order_model *model = m->model;
  const uint64_t align = m->rules->align;
  find_parts(m);
  for (size_t v = 0; v < m->alias->graph->n_values; v++) add_class(m, (berth_value)v);
  note_moved_outputs(m);
  for (uint32_t n = 0; n < model->n_nodes; n++) {
    touch_all(m, n);
    const uint64_t scratch = m->alias->scratch != NULL && !model->in_prelude[n] ? m->alias->scratch[n] : 0;
    model->scratch[n] = (scratch + align - 1) & ~(align - 1);
  }
  model->first_touch[model->n_nodes] = m->n_touches;
  sort_by_class(model);
}

berth_status berth__order_model_create(berth__order_model *model, const berth__alias *alias, const bool *in_prelude,
                                       const berth__order_rules *rules, berth_error *err) {
  const berth_graph *graph = alias->graph;
  *model = (berth__order_model){
      .ctx = alias->ctx, .n_nodes = (uint32_t)graph->n_nodes, .is_exact = rules->guard == 0, .in_prelude = in_prelude};
  maker m = {.model = model,
             .alias = alias,
             .rules = rules,
             .class_of = berth__alloc_array(alias->ctx, graph->n_values, sizeof *m.class_of),
             .joined = berth__alloc_array(alias->ctx, graph->n_values, sizeof *m.joined),
             .concat_of = berth__alloc_array(alias->ctx, graph->n_values, sizeof *m.concat_of)};
  const bool ok = m.class_of != NULL && m.joined != NULL && m.concat_of != NULL;
  berth__edge *edges = NULL;
  size_t n_edges = 0;
  berth_status status = ok ? berth__states_edges(graph, &edges, &n_edges, err) : berth__fail_nomem(err, "ordering");
  if (status == BERTH_OK) status = plan_order_model_allocate(model, graph, n_edges, err);
  if (status == BERTH_OK) {
    plan_order_model_fill(&m);
    note_preds(model, graph, edges, n_edges);
  }
  berth__free(alias->ctx, edges);
  berth__free(alias->ctx, m.class_of);
  berth__free(alias->ctx, m.joined);
  berth__free(alias->ctx, m.concat_of);
  if (status != BERTH_OK) berth__order_model_free(model);
  return status;
}

void berth__order_model_free(berth__order_model *model) {
  berth_context *ctx = model->ctx;
  berth__free(ctx, model->classes);
  berth__free(ctx, model->first_touch);
  berth__free(ctx, model->touches);
  berth__free(ctx, model->class_touches);
  berth__free(ctx, model->scratch);
  berth__free(ctx, model->first_pred);
  berth__free(ctx, model->preds);
  *model = (berth__order_model){.ctx = ctx};
}

typedef struct sweep {
  const berth__order_model *model;
  uint32_t *left; /* one per class: remaining touches; if all remain, it has not begun */
  uint64_t alive;
} sweep;

/* Runs a node and returns the bytes that its step needs. */
static uint64_t plan_order_model_run_node(sweep *s, uint32_t node) {
  uint64_t fresh = 0, over = 0, result = 0;
  berth__order_yield yield = {0};
  for (uint32_t i = s->model->first_touch[node]; i < s->model->first_touch[node + 1]; i++) {
    const berth__order_touch *t = &s->model->touches[i];
    const berth__order_class *class = &s->model->classes[t->class];
    if (!class->is_there && s->left[t->class] == class->n_touches) {
      fresh += class->size;
      if (t->is_result) result = class->size;
    }
    if (--s->left[t->class] != 0 || class->stays) continue;
    over += class->size;
    berth__order_add_yield(&yield, t->may_yield, t->is_part, class->size);
  }
  const uint64_t needs = s->alive + fresh - berth__order_saved(&yield, result) + s->model->scratch[node];
  s->alive = s->alive + fresh - over;
  return needs;
}

uint64_t berth__order_measure(const berth__order_model *model, const uint32_t *order, uint32_t *left,
                              berth__order_load load) {
  sweep s = {.model = model, .left = left, .alive = model->base};
  uint64_t most = 0;
  for (uint32_t c = 0; c < model->n_classes; c++) {
    left[c] = model->classes[c].n_touches;
    if (model->classes[c].is_there && (left[c] != 0 || model->classes[c].stays)) s.alive += model->classes[c].size;
  }
  for (uint32_t step = 0; step < model->n_nodes; step++) {
    load.alive[step] = s.alive;
    load.cost[step] = plan_order_model_run_node(&s, order[step]);
    if (load.cost[step] > most) most = load.cost[step];
  }
  load.alive[model->n_nodes] = s.alive;
  return most;
}
