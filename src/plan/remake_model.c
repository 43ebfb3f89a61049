/* A model of the plan: bytes, their readers and writers, and when they are idle.
 *
 * Views do not depend on the order, so the classes of a plan without in-place results serve as units. Each has one node
 * that makes it; the other values in it are views. A class that is given up ends with the last step before its longest
 * idle stretch. Its first reader after that, a step or another clone, causes it to be recomputed from what is alive
 * then, and it stays until its last reader; or it is given up again as soon as a step does not need it. A class that is
 * not given up lives as long as clones read it. */
#include "plan/remake.h"

#define MOST_FEW 24u
#define MOST_DEPTH 4000u /* nested clones */
#define MOST_RUNS 4u     /* per step */

typedef struct maker {
  berth__remake_model *model;
  const berth__alias *alias;
  const berth__limits *limits;
  uint32_t n_touches;
  uint32_t *gap, *seen; /* one per class: its longest idle stretch so far; the last step that touched it */
  uint32_t *updated;    /* one per value: for a state, the step that writes its next value */
} maker;

static bool plan_remake_counts(const maker *m, berth_value root) {
  const berth__alias_class *class = &m->alias->classes[root];
  const berth_value_kind kind = m->alias->graph->values[root].kind;
  if (m->alias->values[root].parent != root || class->size == 0 || class->is_of_prelude) return false;
  if (kind == BERTH_VALUE_PARAM || kind == BERTH_VALUE_CONSTANT || kind == BERTH_VALUE_STATE) return false;
  return berth__alias_in_arena(m->alias, root) && !berth__alias_is_preparation(m->alias, root);
}

static bool plan_remake_may_clone(const berth_plan *plan, uint32_t node) {
  const berth__op *op = plan->graph->nodes[node].op;
  return op->custom == NULL && !op->family->is_random && !op->family->is_loop && op->code != BERTH__OP_choose &&
         !plan->in_prelude[node];
}

static void plan_remake_add_class(maker *m, berth_value root) {
  berth__remake_model *model = m->model;
  const berth_graph *graph = m->alias->graph;
  const uint64_t align = model->plan->align;
  model->class_of[root] = BERTH__REMAKE_NEVER;
  if (!plan_remake_counts(m, root)) return;
  const uint64_t room = (m->alias->classes[root].size + align - 1) & ~(align - 1);
  const berth_value_kind kind = graph->values[root].kind;
  if (kind == BERTH_VALUE_INPUT && !(m->alias->flags & BERTH_PLAN_INPUTS_DIE)) {
    model->base += room;
    return;
  }
  const bool is_made = kind == BERTH_VALUE_NODE, stays = m->alias->classes[root].has_output;
  const uint32_t node = graph->values[root].node;
  model->class_of[root] = model->n_classes;
  model->classes[model->n_classes++] =
      (berth__remake_class){.size = room,
                            .root = root,
                            .maker = is_made ? m->alias->step_of[node] : BERTH__REMAKE_NEVER,
                            .is_there = kind == BERTH_VALUE_INPUT,
                            .stays = stays,
                            .may_drop = is_made && !stays && plan_remake_may_clone(model->plan, node)};
}

static uint32_t plan_remake_class(const maker *m, berth_value value) {
  return value == BERTH_VALUE_NONE ? BERTH__REMAKE_NEVER : m->model->class_of[berth__alias_root(m->alias, value, NULL)];
}

static berth__remake_touch *plan_remake_touch(maker *m, uint32_t step, uint32_t class) {
  berth__remake_model *model = m->model;
  for (uint32_t i = model->first_touch[step]; i < m->n_touches; i++)
    if (model->touches[i].class == class) return &model->touches[i];
  model->touches[m->n_touches] = (berth__remake_touch){.class = class};
  return &model->touches[m->n_touches++];
}

/* One class per node: a result of a node with several results is not given up. */
static void plan_remake_note_results(maker *m, uint32_t step, const berth__node *node) {
  uint32_t n_made = 0;
  for (uint32_t i = 0; i < node->n_out; i++) {
    const uint32_t class = plan_remake_class(m, node->out[i]);
    if (class == BERTH__REMAKE_NEVER) continue;
    berth__remake_touch *t = plan_remake_touch(m, step, class);
    if (m->model->classes[class].root != node->out[i]) continue;
    t->makes = true;
    t->is_result = i == 0;
    n_made++;
  }
  for (uint32_t i = m->model->first_touch[step]; i < m->n_touches && n_made > 1; i++)
    if (m->model->touches[i].makes) m->model->classes[m->model->touches[i].class].may_drop = false;
}

static void plan_remake_add_step(maker *m, uint32_t step) {
  berth__remake_model *model = m->model;
  const berth__node *node = &model->plan->graph->nodes[model->plan->order[step]];
  const bool is_view = model->is_view[node->out[0]];
  const uint32_t in_place =
      is_view || (m->alias->flags & BERTH_PLAN_NO_REUSE) ? 0 : berth__op_in_place_at(node->op, node->attrs, 0);
  model->first_touch[step] = m->n_touches;
  for (uint32_t i = 0; i < node->n_in; i++) {
    const uint32_t class = plan_remake_class(m, node->in[i]);
    if (class == BERTH__REMAKE_NEVER) continue;
    berth__remake_touch *t = plan_remake_touch(m, step, class);
    if (i < 32 && (in_place >> i & 1u) && berth__alias_may_overwrite(m->alias, node, i, 0)) t->may_yield = true;
  }
  plan_remake_note_results(m, step, node);
  for (uint32_t i = model->first_touch[step]; i < m->n_touches; i++) {
    const uint32_t c = model->touches[i].class;
    if (m->seen[c] != BERTH__REMAKE_NEVER && step - m->seen[c] > m->gap[c]) {
      m->gap[c] = step - m->seen[c];
      model->classes[c].gap_from = m->seen[c];
    }
    m->seen[c] = step;
  }
}

/* A stretch of a few steps is not worth it: such a class is given up after its last reader, for clones only. */
static void plan_remake_settle_gaps(maker *m) {
  const uint32_t share = m->model->n_steps / 16, few = share < 2 ? 2 : share < MOST_FEW ? share : MOST_FEW;
  for (uint32_t c = 0; c < m->model->n_classes; c++) {
    m->model->classes[c].is_needed_late = m->gap[c] > few;
    if (m->gap[c] <= few) m->model->classes[c].gap_from = m->seen[c] != BERTH__REMAKE_NEVER ? m->seen[c] : 0;
  }
}

/* A clone reads what its node read: a state only before it has its next value. */
static void plan_remake_note_latest(maker *m) {
  berth__remake_model *model = m->model;
  const berth_graph *graph = model->plan->graph;
  for (size_t v = 0; v < graph->n_values; v++) m->updated[v] = BERTH__REMAKE_NEVER;
  for (size_t u = 0; u < graph->n_updates; u++) {
    const berth__value *next = &graph->values[graph->updates[u].next];
    m->updated[graph->updates[u].state] = next->kind == BERTH_VALUE_NODE ? m->alias->step_of[next->node] : 0;
  }
  for (uint32_t step = 0; step < model->n_steps; step++) {
    const berth__node *node = &graph->nodes[model->plan->order[step]];
    model->latest[step] = plan_remake_may_clone(model->plan, model->plan->order[step]) ? BERTH__REMAKE_NEVER : 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE) continue;
      const uint32_t updated = m->updated[berth__alias_root(m->alias, node->in[i], NULL)];
      if (updated < model->latest[step]) model->latest[step] = updated;
    }
  }
}

static void plan_remake_fill(maker *m) {
  berth__remake_model *model = m->model;
  const berth_plan *plan = model->plan;
  const uint64_t align = plan->align;
  for (size_t v = 0; v < plan->graph->n_values; v++) plan_remake_add_class(m, (berth_value)v);
  for (size_t v = 0; v < plan->graph->n_values; v++) {
    const berth_value root = berth__alias_root(m->alias, (berth_value)v, NULL);
    const uint32_t class = model->class_of[root];
    model->is_view[v] = m->alias->values[v].is_view;
    if (class != BERTH__REMAKE_NEVER && v != root && !model->is_view[v]) model->classes[class].may_drop = false;
  }
  for (uint32_t c = 0; c < model->n_classes; c++) m->seen[c] = BERTH__REMAKE_NEVER;
  for (uint32_t step = 0; step < model->n_steps; step++) {
    const uint32_t node = plan->order[step];
    const bool is_in_run = !plan->in_prelude[node];
    plan_remake_add_step(m, step);
    const uint64_t scratch = m->alias->scratch != NULL && is_in_run ? m->alias->scratch[node] : 0;
    model->scratch[step] = (scratch + align - 1) & ~(align - 1);
    model->work[step] = is_in_run ? berth__plan_work(plan, m->limits, &plan->graph->nodes[node],
                                                     model->is_view[plan->graph->nodes[node].out[0]])
                                  : 0;
    model->whole += model->work[step];
  }
  model->first_touch[model->n_steps] = m->n_touches;
  plan_remake_settle_gaps(m);
  plan_remake_note_latest(m);
}

static berth_status plan_remake_allocate(maker *m, berth_error *err) {
  berth__remake_model *model = m->model;
  const berth_graph *graph = model->plan->graph;
  const size_t n = model->n_steps, values = graph->n_values;
  size_t n_touches = 0;
  for (size_t i = 0; i < graph->n_nodes; i++) n_touches += graph->nodes[i].n_in + graph->nodes[i].n_out;
  model->classes = berth__alloc_array(model->ctx, values, sizeof *model->classes);
  model->class_of = berth__alloc_array(model->ctx, values, sizeof *model->class_of);
  model->is_view = berth__alloc_array(model->ctx, values, sizeof *model->is_view);
  model->first_touch = berth__alloc_array(model->ctx, n + 1, sizeof *model->first_touch);
  model->touches = berth__alloc_array(model->ctx, n_touches, sizeof *model->touches);
  model->scratch = berth__alloc_array(model->ctx, n, sizeof *model->scratch);
  model->work = berth__alloc_array(model->ctx, n, sizeof *model->work);
  model->latest = berth__alloc_array(model->ctx, n, sizeof *model->latest);
  model->again = berth__alloc_array(model->ctx, values, sizeof *model->again);
  model->most_runs = MOST_RUNS * (uint32_t)n;
  model->needed = berth__alloc_array(model->ctx, values, sizeof *model->needed);
  model->form = berth__alloc_array(model->ctx, values, sizeof *model->form);
  model->last_use = berth__alloc_array(model->ctx, values + model->most_runs, sizeof *model->last_use);
  model->runs = berth__alloc_array(model->ctx, model->most_runs, sizeof *model->runs);
  m->gap = berth__alloc_array_zero(model->ctx, values, sizeof *m->gap);
  m->seen = berth__alloc_array(model->ctx, values, sizeof *m->seen);
  m->updated = berth__alloc_array(model->ctx, values, sizeof *m->updated);
  const bool ok = model->classes && model->class_of && model->is_view && model->first_touch && model->touches &&
                  model->scratch && model->work && model->latest && model->again && model->needed && model->form &&
                  model->last_use && model->runs && m->gap && m->seen && m->updated;
  return ok ? BERTH_OK : berth__fail_nomem(err, "a plan");
}

berth_status berth__remake_model_create(berth__remake_model *model, const berth_plan *plan, const berth__limits *limits,
                                        berth_error *err) {
  const uint32_t flags = plan->flags | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_CONCAT;
  berth__alias alias;
  *model = (berth__remake_model){.ctx = plan->ctx, .plan = plan, .n_steps = plan->n_steps};
  BERTH__TRY(berth__alias_create(&alias, plan->graph, plan->storages, flags, plan->order, plan->n_prelude, err));
  maker m = {.model = model, .alias = &alias, .limits = limits};
  berth_status status = berth__alias_scratch(&alias, limits, plan->n_threads, err);
  if (status == BERTH_OK) status = plan_remake_allocate(&m, err);
  if (status == BERTH_OK) plan_remake_fill(&m);
  berth__free(plan->ctx, m.gap);
  berth__free(plan->ctx, m.seen);
  berth__free(plan->ctx, m.updated);
  berth__alias_free(&alias);
  if (status != BERTH_OK) berth__remake_model_free(model);
  return status;
}

void berth__remake_model_free(berth__remake_model *model) {
  berth_context *ctx = model->ctx;
  berth__free(ctx, model->classes);
  berth__free(ctx, model->class_of);
  berth__free(ctx, model->is_view);
  berth__free(ctx, model->first_touch);
  berth__free(ctx, model->touches);
  berth__free(ctx, model->scratch);
  berth__free(ctx, model->work);
  berth__free(ctx, model->latest);
  berth__free(ctx, model->again);
  berth__free(ctx, model->needed);
  berth__free(ctx, model->form);
  berth__free(ctx, model->last_use);
  berth__free(ctx, model->runs);
  *model = (berth__remake_model){.ctx = ctx};
}

/* ---- Measuring a choice ---- */

void berth__remake_walk_start(berth__remake_walk *walk) {
  const berth__remake_model *model = walk->model;
  memset(walk->again, 0, model->n_classes);
  for (uint32_t c = 0; c < model->n_classes; c++)
    walk->needed[c] = model->classes[c].maker == BERTH__REMAKE_NEVER ? 0 : model->classes[c].maker;
}

/* Whether the class is available for the step, which needs it. */
static bool plan_remake_is_there(const berth__remake_walk *walk, uint32_t class, uint32_t step) {
  switch (walk->dropped[class]) {
    case BERTH__REMAKE_ONCE: return walk->again[class] || step <= walk->model->classes[class].gap_from;
    case BERTH__REMAKE_EACH: return walk->needed[class] + 1 >= step;
    default: return true;
  }
}

void berth__remake_need(berth__remake_walk *walk, uint32_t class, uint32_t step) {
  const berth__remake_model *model = walk->model;
  const berth__remake_class *c = &model->classes[class];
  const bool is_there = walk->fails || plan_remake_is_there(walk, class, step);
  walk->needed[class] = step;
  if (is_there) return;
  if (model->latest[c->maker] < step || walk->depth == MOST_DEPTH) {
    walk->fails = true;
    return;
  }
  walk->depth++;
  for (uint32_t i = model->first_touch[c->maker]; i < model->first_touch[c->maker + 1]; i++)
    if (model->touches[i].class != class) berth__remake_need(walk, model->touches[i].class, step);
  walk->depth--;
  if (walk->fails) return;
  walk->again[class] = 1;
  walk->make(walk, class);
}

typedef struct recorder {
  const berth__remake_model *model;
  uint32_t n_runs, n_forms;
  double work;
} recorder;

/* False: too many. */
static bool plan_remake_record(recorder *r, uint32_t step, bool is_clone) {
  const berth__remake_model *model = r->model;
  if (r->n_runs == model->most_runs) return false;
  for (uint32_t i = model->first_touch[step]; i < model->first_touch[step + 1]; i++) {
    const berth__remake_touch *t = &model->touches[i];
    if (is_clone && t->makes) model->form[t->class] = r->n_forms++;
    model->last_use[model->form[t->class]] = r->n_runs;
  }
  model->runs[r->n_runs++] = is_clone ? step | BERTH__REMAKE_CLONE : step;
  return true;
}

static void plan_remake_record_clone(berth__remake_walk *walk, uint32_t class) {
  recorder *r = walk->user;
  const uint32_t step = walk->model->classes[class].maker;
  r->work += walk->model->work[step];
  if (!plan_remake_record(r, step, true)) walk->fails = true;
}

/* The bytes that a run needs, on top of those already alive; *alive is what remains. */
static uint64_t plan_remake_sweep(const berth__remake_model *model, uint32_t index, uint32_t *n_forms,
                                  uint64_t *alive) {
  const uint32_t step = model->runs[index] & ~BERTH__REMAKE_CLONE;
  const bool is_clone = (model->runs[index] & BERTH__REMAKE_CLONE) != 0;
  uint64_t fresh = 0, over = 0, result = 0;
  bool yields = false;
  for (uint32_t i = model->first_touch[step]; i < model->first_touch[step + 1]; i++) {
    const berth__remake_touch *t = &model->touches[i];
    const berth__remake_class *class = &model->classes[t->class];
    if (t->makes) {
      if (is_clone) model->form[t->class] = (*n_forms)++;
      fresh += class->size;
      if (t->is_result) result = class->size;
    }
    if (model->last_use[model->form[t->class]] != index || class->stays) continue;
    over += class->size;
    yields = yields || t->may_yield;
  }
  const uint64_t needs = *alive + fresh - (yields ? result : 0) + model->scratch[step];
  *alive += fresh - over;
  return needs;
}

/* Every class in its first version. */
static uint32_t plan_remake_first_forms(const berth__remake_model *model) {
  for (uint32_t c = 0; c < model->n_classes; c++) model->form[c] = c;
  return model->n_classes;
}

bool berth__remake_measure(const berth__remake_model *model, const uint8_t *dropped, uint64_t target,
                           berth__remake_cost *out) {
  recorder r = {.model = model, .n_forms = plan_remake_first_forms(model)};
  berth__remake_walk walk = {.model = model,
                             .dropped = dropped,
                             .again = model->again,
                             .needed = model->needed,
                             .make = plan_remake_record_clone,
                             .user = &r};
  uint64_t alive = model->base;
  berth__remake_walk_start(&walk);
  memset(model->last_use, 0xff, (size_t)model->n_classes * sizeof *model->last_use);
  for (uint32_t step = 0; step < model->n_steps; step++) {
    for (uint32_t i = model->first_touch[step]; i < model->first_touch[step + 1]; i++)
      if (!model->touches[i].makes) berth__remake_need(&walk, model->touches[i].class, step);
    if (walk.fails || !plan_remake_record(&r, step, false)) return false;
  }
  uint32_t n_forms = plan_remake_first_forms(model);
  for (uint32_t c = 0; c < model->n_classes; c++)
    if (model->classes[c].is_there && (model->last_use[c] != UINT32_MAX || model->classes[c].stays))
      alive += model->classes[c].size;
  *out = (berth__remake_cost){.work = r.work};
  for (uint32_t i = 0; i < r.n_runs; i++) {
    const uint64_t needs = plan_remake_sweep(model, i, &n_forms, &alive);
    if (needs > out->peak) out->peak = needs;
    if (needs > target) out->excess += (double)(needs - target);
  }
  return true;
}
