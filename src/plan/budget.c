/* Three ways to meet a budget. The first runs the batch in slices (batch.h), if there is one, which adds almost no
 * work. The second frees values during the stretches in which they are not used and recomputes them, chosen globally by
 * cost (remake.h); it plans a few times at most. The third plans, looks at the fullest step, tries what could help
 * there (slices, recomputing a value), and keeps what does, until the budget is met or nothing helps any more. It takes
 * over if the second way fails, and in small graphs both are tried and the cheaper result wins. The order of the nodes
 * is part of the graph here: nodes are added where they are needed. */
#include "plan/budget.h"

#include <stdio.h>

#include "plan/batch.h"
#include "plan/buffers.h"
#include "plan/remake.h"
#include "plan/split.h"

#define MOST_ROUNDS 100u
#define MOST_PLANNED 100000u /* nodes of the planned graphs, in total */
#define MOST_TRIALS 1000u    /* planned graphs */
#define MOST_VALUES 6u
#define MOST_GROUPS 4u
#define MOST_SLICES BERTH__SPLIT_SLICES
#define MOST_REMAKES 6u /* plans of the second way */
#define MOST_BATCHES 6u /* numbers of slices of a batch */
#define MOST_BATCH_REMAKES 4u
#define MOST_PEAKS 4u       /* ranges of steps that run in slices before values are recomputed */
#define MOST_RANGES 6u      /* tried around one step */
#define ROUGH 1u            /* the packer's effort for plans that are tried */
#define MOST_ADDED 4000u    /* nodes that slicing a range may add */
#define CHEAP 0.01          /* fraction of the work that is not worth another search */
#define SMALL_GRAPH 400u    /* steps of a graph for which both ways are tried */
#define SMALL_TRAINING 150u /* the same if states are updated: slices seldom help there, and trying them takes long */

typedef struct budgeter {
  berth_plan_desc desc; /* in the graph's own order */
  const berth__limits *limits;
  berth_plan *plan;
  uint64_t target; /* bytes in addition to the weights */
  uint64_t *load;  /* one per step of the plan */
  size_t load_capacity;
  uint64_t full; /* its maximum */
  uint32_t step; /* where it occurs */
  bool is_rough; /* it is a trial's plan, packed in haste */
  uint32_t n_trials;
  uint64_t n_planned; /* nodes in all trials, a measure of the time spent */
} budgeter;

/* A plan that was tried. */
typedef struct trial {
  berth_plan *plan;
  uint64_t here; /* the fullest of the changed steps */
} trial;

/* ---- The load ---- */

static berth_status reserve_load(budgeter *b, const berth_plan *plan, berth_error *err) {
  return BERTH__RESERVE(plan->ctx, b->load, b->load_capacity, (size_t)berth__plan_end(plan->n_steps) + 1, err);
}

static bool plan_budget_is_weight(const berth__buffer *buffer) {
  return buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_CONSTANT ||
         buffer->kind == BERTH__BUFFER_PRELUDE || buffer->kind == BERTH__BUFFER_STATE;
}

static berth_status plan_budget_measure(budgeter *b, const berth_plan *plan, berth_error *err) {
  const uint32_t end = berth__plan_end(plan->n_steps);
  BERTH__TRY(reserve_load(b, plan, err));
  memset(b->load, 0, ((size_t)end + 1) * sizeof *b->load);
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (plan_budget_is_weight(buffer) || berth__buffer_is_preparation(plan, buffer)) continue;
    b->load[buffer->birth] += berth__buffer_room(plan, buffer); /* differences: they wrap, but their sums are right */
    b->load[buffer->death] -= berth__buffer_room(plan, buffer);
  }
  b->full = 0;
  b->step = 0;
  for (uint32_t step = 0; step < end; step++) {
    if (step != 0) b->load[step] += b->load[step - 1];
    if (b->load[step] > b->full) {
      b->full = b->load[step];
      b->step = step;
    }
  }
  return BERTH_OK;
}

/* ---- Trying ---- */

/* The fullest of the steps that are new in `plan`, or that make one of the two values. */
static uint64_t fullest_here(const budgeter *b, const berth_plan *plan, berth_value at, berth_value exit) {
  uint64_t most = 0;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth_value out = plan->graph->nodes[plan->order[step]].out[0];
    const bool is_here = out >= b->plan->graph->n_values || out == at || out == exit;
    if (is_here && b->load[step] > most) most = b->load[step];
  }
  return most;
}

/* Plans the graph, taking ownership of it, and keeps the plan in *best if it is better. Trials are compared by their
 * loads, so no time is spent on packing them well. */
static berth_status try_graph(budgeter *b, berth_graph *graph, berth_value exit, trial *best, bool *is_better,
                              berth_error *err) {
  const uint64_t full = b->full;
  const uint32_t step = b->step;
  const berth_value at = b->plan->graph->nodes[b->plan->order[step]].out[0];
  berth_plan_desc desc = b->desc;
  trial next;
  desc.effort = ROUGH;
  *is_better = false;
  b->n_trials++;
  b->n_planned += graph->n_nodes;
  BERTH__TRY(berth__plan_bound(graph, &desc, b->limits, &next.plan, err));
  berth_status status = plan_budget_measure(b, next.plan, err);
  if (status == BERTH_OK) {
    next.here = fullest_here(b, next.plan, at, exit);
    *is_better = b->full <= full && next.here < full && (best->plan == NULL || next.here < best->here);
  }
  b->full = full;
  b->step = step;
  if (*is_better) {
    berth_plan_destroy(best->plan);
    *best = next;
  } else {
    berth_plan_destroy(next.plan);
  }
  return status;
}

static berth_status try_recomputing(budgeter *b, trial *best, berth_error *err) {
  berth_value roots[MOST_VALUES];
  const uint32_t n = berth__recompute_candidates(b->plan, b->step, roots, MOST_VALUES);
  for (uint32_t i = 0; i < n; i++) {
    for (int deep = 0; deep <= 1; deep++) {
      berth_graph *graph;
      uint32_t n_added;
      bool is_better;
      BERTH__TRY(berth__recompute(b->plan, b->step, roots[i], deep != 0, &graph, &n_added, err));
      if (graph == NULL) continue;
      BERTH__TRY(try_graph(b, graph, BERTH_VALUE_NONE, best, &is_better, err));
      if (!is_better) continue;
      best->plan->info.n_recomputed = b->plan->info.n_recomputed + n_added;
      best->plan->info.n_split = b->plan->info.n_split;
      best->plan->info.n_slices = b->plan->info.n_slices;
    }
    if (best->plan != NULL && best->here <= b->target) return BERTH_OK;
  }
  return BERTH_OK;
}

/* A graph in which the group, or the range, runs in n slices; NULL: not possible. */
typedef berth_status budget_slicing(const berth_plan *plan, void *what, uint32_t n, berth_graph **out,
                                    berth_error *err);

static berth_status plan_budget_split_group(const berth_plan *plan, void *what, uint32_t n, berth_graph **out,
                                            berth_error *err) {
  return berth__split(plan, what, n, out, err);
}

static berth_status plan_budget_slice_range(const berth_plan *plan, void *what, uint32_t n, berth_graph **out,
                                            berth_error *err) {
  berth__batch_range *range = what;
  range->n_slices = n;
  return berth__batch_slice(plan, range, out, err);
}

/* Increases the number of slices as long as that helps and is needed. */
static berth_status plan_budget_try_slices(budgeter *b, budget_slicing *slice, void *what, uint32_t first, int64_t most,
                                           berth_value exit, trial *best, berth_error *err) {
  for (uint32_t n = first; n <= MOST_SLICES && n <= most; n *= 2) {
    berth_graph *graph;
    bool is_better;
    BERTH__TRY(slice(b->plan, what, n, &graph, err));
    if (graph == NULL) return BERTH_OK;
    BERTH__TRY(try_graph(b, graph, exit, best, &is_better, err));
    if (!is_better && n > first) return BERTH_OK;
    if (!is_better) continue;
    best->plan->info.n_recomputed = b->plan->info.n_recomputed;
    best->plan->info.n_split = b->plan->info.n_split + 1;
    best->plan->info.n_slices = b->plan->info.n_slices + n;
    if (best->here <= b->target) return BERTH_OK;
  }
  return BERTH_OK;
}

static berth_status plan_budget_try_group(budgeter *b, berth__split_group *group, trial *best, berth_error *err) {
  const berth_value exit = b->plan->graph->nodes[group->nodes[group->n_nodes - 1]].out[0];
  const int64_t most = berth__split_most(b->plan->graph, group);
  return plan_budget_try_slices(b, plan_budget_split_group, group, group->n_slices, most, exit, best, err);
}

static berth_status try_splitting(budgeter *b, trial *best, berth_error *err) {
  berth__split_group groups[MOST_GROUPS];
  uint32_t n;
  BERTH__TRY(berth__split_candidates(b->plan, b->step, b->load, b->target, MOST_GROUPS, groups, &n, err));
  for (uint32_t i = 0; i < n; i++) {
    BERTH__TRY(plan_budget_try_group(b, &groups[i], best, err));
    if (best->plan != NULL && best->here <= b->target) return BERTH_OK;
  }
  return BERTH_OK;
}

/* The steps around the fullest one, over slices of the batch's rows. */
static berth_status try_ranges(budgeter *b, trial *best, berth_error *err) {
  berth__batch_range ranges[MOST_RANGES];
  const int64_t extent = berth__batch_extent(b->plan->graph);
  if (extent == 0 || b->step < b->plan->n_prelude) return BERTH_OK;
  const uint32_t first = b->plan->n_prelude, n_steps = b->plan->n_steps - first;
  const uint32_t n = berth__batch_ranges(b->load + first, n_steps, b->step - first, b->target, ranges, MOST_RANGES);
  for (uint32_t i = 0; i < n; i++) {
    ranges[i].extent = extent;
    ranges[i].sums = b->plan->graph->n_updates != 0;
    ranges[i].fuses = b->limits->rewrite != NULL;
    ranges[i].from += first;
    ranges[i].to += first;
    const int64_t most = MOST_ADDED / (ranges[i].to - ranges[i].from);
    BERTH__TRY(plan_budget_try_slices(b, plan_budget_slice_range, &ranges[i], 2, most, BERTH_VALUE_NONE, best, err));
    if (best->plan != NULL && best->here <= b->target) return BERTH_OK;
  }
  return BERTH_OK;
}

/* Replaces the plan by the trial, if there is one. */
static bool plan_budget_accept(budgeter *b, berth_status status, trial *best) {
  const bool is_better = status == BERTH_OK && best->plan != NULL;
  berth_plan_destroy(is_better ? b->plan : best->plan);
  if (is_better) b->plan = best->plan;
  if (is_better) b->is_rough = true;
  return is_better;
}

static uint64_t plan_budget_size(const berth_plan *plan) {
  return plan->info.arena_size - plan->info.preparation_size; /* which reducing what a run needs does not change */
}

/* Packs the plan well. */
static berth_status plan_budget_pack(budgeter *b, berth_error *err) {
  berth_graph *graph;
  berth_plan *plan;
  if (!b->is_rough) return BERTH_OK;
  BERTH__TRY(berth__graph_duplicate(b->plan->graph, &graph, err));
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, &plan, err));
  plan->info.n_recomputed = b->plan->info.n_recomputed;
  plan->info.n_split = b->plan->info.n_split;
  plan->info.n_slices = b->plan->info.n_slices;
  b->is_rough = false;
  const bool is_better = plan_budget_size(plan) <= plan_budget_size(b->plan);
  berth_plan_destroy(is_better ? b->plan : plan);
  if (is_better) b->plan = plan;
  return BERTH_OK;
}

/* Splitting first, because it costs little time unless windows overlap. */
static berth_status plan_budget_improve(budgeter *b, bool *is_better, berth_error *err) {
  trial best = {0};
  berth_status status = plan_budget_measure(b, b->plan, err);
  if (status == BERTH_OK) status = try_splitting(b, &best, err);
  if (status == BERTH_OK && best.plan == NULL) status = plan_budget_measure(b, b->plan, err);
  if (status == BERTH_OK && best.plan == NULL) status = try_ranges(b, &best, err);
  if (status == BERTH_OK && (best.plan == NULL || best.here > b->target)) status = try_recomputing(b, &best, err);
  *is_better = plan_budget_accept(b, status, &best);
  return status;
}

static bool may_be_rewritten(const berth_plan *plan) {
  for (size_t n = 0; n < plan->graph->n_nodes; n++)
    if (plan->graph->nodes[n].op->family->is_loop) return false;
  for (size_t v = 0; v < plan->graph->n_values; v++)
    if (plan->graph->values[v].bounded != 0) return false;
  return !(plan->flags & (BERTH_PLAN_NO_PASSES | BERTH_PLAN_NO_REUSE));
}

static berth_status plan_budget_search(budgeter *b, uint64_t budget, berth_error *err) {
  bool is_better = true;
  for (uint32_t round = 0; round < MOST_ROUNDS && b->n_trials < MOST_TRIALS && b->n_planned < MOST_PLANNED && is_better;
       round++) {
    BERTH__TRY(plan_budget_measure(b, b->plan, err));
    if (b->full <= b->target && plan_budget_size(b->plan) > budget) BERTH__TRY(plan_budget_pack(b, err));
    /* If the prelude does not fit, reducing what a run needs does not help. */
    if (plan_budget_size(b->plan) <= budget) break;
    /* The load may be within the budget although the packing is not: aim lower. */
    if (b->full <= b->target) b->target -= b->target / 64;
    BERTH__TRY(plan_budget_improve(b, &is_better, err));
  }
  return plan_budget_pack(b, err);
}

/* ---- Recomputing, chosen globally ---- */

/* The bytes that do not depend on runs. */
static uint64_t plan_budget_fixed(const berth_plan *plan) {
  const berth_plan_info *info = &plan->info;
  return info->arena_size - info->activations_size - info->scratch_size - info->preparation_size;
}

static double plan_budget_work(const berth_plan *plan, const berth__limits *limits) {
  double work = 0;
  for (uint32_t step = plan->n_prelude; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    work += berth__plan_work(plan, limits, node, plan->places[node->out[0]].is_view);
  }
  return work;
}

/* Whether `plan` is better than *best: it meets the budget with less work, or is smaller if neither does. */
static bool plan_budget_is_better(const budgeter *b, const berth_plan *plan, const berth_plan *best, uint64_t budget) {
  const bool meets = plan_budget_size(plan) <= budget, best_meets = plan_budget_size(best) <= budget;
  if (meets != best_meets) return meets;
  return meets ? plan_budget_work(plan, b->limits) < plan_budget_work(best, b->limits)
               : plan_budget_size(plan) < plan_budget_size(best);
}

typedef struct remaking {
  berth__remake_model model;
  uint8_t *dropped;
  uint64_t target;
  berth_plan *best; /* NULL: none yet */
} remaking;

/* Plans the choice for the target; *goes_on: a lower target may help. */
static berth_status plan_budget_remake_once(budgeter *b, remaking *r, uint64_t budget, bool *goes_on,
                                            berth_error *err) {
  berth__remake_cost cost;
  berth_graph *graph;
  berth_plan *plan;
  uint32_t n_added;
  *goes_on = false;
  BERTH__TRY(berth__remake_search(&r->model, r->target, r->dropped, &cost, err));
  BERTH__TRY(berth__remake_emit(&r->model, r->dropped, &graph, &n_added, err));
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, &plan, err));
  plan->info.n_recomputed = b->plan->info.n_recomputed + n_added;
  plan->info.n_split = b->plan->info.n_split;
  plan->info.n_slices = b->plan->info.n_slices;
  const uint64_t size = plan_budget_size(plan), over = size > budget ? size - budget : 0;
  *goes_on = over != 0 && cost.peak <= r->target && r->target > over + over / 8;
  r->target -= *goes_on ? over + over / 8 : 0;
  if (plan_budget_is_better(b, plan, r->best != NULL ? r->best : b->plan, budget)) {
    berth_plan_destroy(r->best);
    r->best = plan;
  } else {
    berth_plan_destroy(plan);
  }
  return BERTH_OK;
}

static berth_status plan_budget_remake(budgeter *b, uint64_t budget, berth_plan **best, berth_error *err) {
  remaking r = {0};
  const uint64_t fixed = plan_budget_fixed(b->plan);
  *best = NULL;
  if (budget <= fixed) return BERTH_OK;
  r.target = budget - fixed;
  BERTH__TRY(berth__remake_model_create(&r.model, b->plan, b->limits, err));
  r.dropped = berth__alloc_array_zero(b->plan->ctx, r.model.n_classes, sizeof *r.dropped);
  berth_status status = r.dropped != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  bool goes_on = true;
  for (uint32_t i = 0; i < MOST_REMAKES && goes_on && status == BERTH_OK; i++)
    status = plan_budget_remake_once(b, &r, budget, &goes_on, err);
  berth__free(b->plan->ctx, r.dropped);
  berth__remake_model_free(&r.model);
  if (status != BERTH_OK)
    berth_plan_destroy(r.best);
  else
    *best = r.best;
  return status;
}

/* ---- A batch in slices ---- */

static berth_status plan_budget_slice_batch(budgeter *b, int64_t extent, uint32_t n_slices, berth_plan **out,
                                            berth_error *err) {
  berth_graph *graph;
  *out = NULL;
  const bool trains = b->plan->graph->n_updates != 0; /* otherwise results must stay bitwise the same */
  const berth__batch_range all = {.extent = extent,
                                  .n_slices = n_slices,
                                  .to = b->plan->n_steps,
                                  .sums = trains,
                                  .fuses = b->limits->rewrite != NULL};
  BERTH__TRY(berth__batch_slice(b->plan, &all, &graph, err));
  if (graph == NULL) return BERTH_OK;
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, out, err));
  (*out)->info.n_recomputed = b->plan->info.n_recomputed;
  (*out)->info.n_split = b->plan->info.n_split + 1;
  (*out)->info.n_slices = b->plan->info.n_slices + n_slices;
  return BERTH_OK;
}

/* Combines slices with recomputed values. The values are chosen in a plan of the whole batch, where the search takes a
 * fraction of the time: reducing that plan by some bytes reduces this one by a slice's share of them. */
static berth_status plan_budget_slice_remade(budgeter *b, uint64_t budget, int64_t extent, uint32_t n_slices,
                                             berth_plan **best, berth_error *err) {
  const uint64_t size = plan_budget_size(b->plan);
  uint64_t less = 0;
  for (uint32_t i = 0; i < MOST_BATCH_REMAKES && plan_budget_size(*best) > budget; i++) {
    berth_plan *whole = b->plan, *remade, *sliced;
    less += (plan_budget_size(*best) - budget) * n_slices;
    if (less >= size) return BERTH_OK;
    BERTH__TRY(plan_budget_remake(b, size - less, &remade, err));
    if (remade == NULL) return BERTH_OK;
    b->plan = remade;
    const berth_status status = plan_budget_slice_batch(b, extent, n_slices, &sliced, err);
    b->plan = whole;
    berth_plan_destroy(remade);
    if (status != BERTH_OK || sliced == NULL) return status;
    const bool is_better = plan_budget_is_better(b, sliced, *best, budget);
    berth_plan_destroy(is_better ? *best : sliced);
    if (!is_better) return BERTH_OK;
    *best = sliced;
  }
  return BERTH_OK;
}

/* The fewest slices that meet the budget; if none do, the most, with recomputed values. *best is NULL if slices do not
 * help. */
static berth_status plan_budget_batch(budgeter *b, uint64_t budget, berth_plan **best, berth_error *err) {
  const int64_t extent = berth__batch_extent(b->plan->graph);
  uint32_t n_tried = 0, n_best = 0;
  bool meets = false;
  *best = NULL;
  for (uint32_t n = 2; n <= extent && n <= MOST_SLICES && n_tried < MOST_BATCHES && !meets; n++) {
    berth_plan *plan;
    if (extent % n != 0) continue;
    n_tried++;
    berth_status status = plan_budget_slice_batch(b, extent, n, &plan, err);
    if (status != BERTH_OK) berth_plan_destroy(*best);
    if (status != BERTH_OK || plan == NULL) return status;
    const bool is_better = plan_budget_is_better(b, plan, *best != NULL ? *best : b->plan, budget);
    meets = is_better && plan_budget_size(plan) <= budget;
    berth_plan_destroy(is_better ? *best : plan);
    if (is_better) *best = plan;
    if (is_better) n_best = n;
  }
  if (*best == NULL || meets) return BERTH_OK;
  const berth_status status = plan_budget_slice_remade(b, budget, extent, n_best, best, err);
  if (status != BERTH_OK) berth_plan_destroy(*best);
  return status;
}

/* Runs peaks of the load in slices on their own, as long as that reduces the total. */
static berth_status plan_budget_peaks(budgeter *b, uint64_t budget, berth_error *err) {
  bool is_better = true;
  for (uint32_t i = 0; i < MOST_PEAKS && is_better && plan_budget_size(b->plan) > budget; i++) {
    trial best = {0};
    berth_status status = plan_budget_measure(b, b->plan, err);
    if (status == BERTH_OK) status = try_ranges(b, &best, err);
    is_better = plan_budget_accept(b, status, &best);
    BERTH__TRY(status);
    BERTH__TRY(plan_budget_pack(b, err));
  }
  return BERTH_OK;
}

/* ---- The choice ---- */

/* Recomputed values, and slices of groups, as far as they are worth it. */
static berth_status plan_budget_both(budgeter *b, uint64_t budget, berth_error *err) {
  const double before = plan_budget_work(b->plan, b->limits);
  berth_plan *remade;
  BERTH__TRY(plan_budget_peaks(b, budget, err));
  if (plan_budget_size(b->plan) <= budget) return BERTH_OK;
  BERTH__TRY(plan_budget_remake(b, budget, &remade, err));
  const bool meets = remade != NULL && plan_budget_size(remade) <= budget;
  const bool is_cheap = meets && plan_budget_work(remade, b->limits) <= before * (1 + CHEAP);
  const bool is_small = b->plan->n_steps <= (b->plan->graph->n_updates == 0 ? SMALL_GRAPH : SMALL_TRAINING);
  if (is_cheap || (remade != NULL && !is_small)) { /* the third way continues from the result of the second */
    berth_plan_destroy(b->plan);
    b->plan = remade;
    return meets ? BERTH_OK : plan_budget_search(b, budget, err);
  }
  const berth_status status = plan_budget_search(b, budget, err);
  const bool is_better = status == BERTH_OK && remade != NULL && plan_budget_is_better(b, remade, b->plan, budget);
  berth_plan_destroy(is_better ? b->plan : remade);
  if (is_better) b->plan = remade;
  return status;
}

/* Tries a batch in slices first and takes it if it meets the budget cheaply; otherwise the cheapest of all. */
static berth_status plan_budget_all(budgeter *b, uint64_t budget, berth_error *err) {
  const double before = plan_budget_work(b->plan, b->limits);
  berth_plan *sliced;
  BERTH__TRY(plan_budget_batch(b, budget, &sliced, err));
  const bool is_cheap = sliced != NULL && plan_budget_size(sliced) <= budget &&
                        plan_budget_work(sliced, b->limits) <= before * (1 + CHEAP);
  const berth_status status = is_cheap ? BERTH_OK : plan_budget_both(b, budget, err);
  const bool is_better =
      is_cheap || (status == BERTH_OK && sliced != NULL && plan_budget_is_better(b, sliced, b->plan, budget));
  berth_plan_destroy(is_better ? b->plan : sliced);
  if (is_better) b->plan = sliced;
  return status;
}

/* Updates states as soon as gradients are available, whatever the order was. */
static berth_status plan_budget_settle(budgeter *b, berth_error *err) {
  berth_graph *graph;
  berth_plan *plan;
  BERTH__TRY(berth__updates_early(b->plan, &graph, err));
  if (graph == NULL) return BERTH_OK;
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, &plan, err));
  const bool is_better = plan_budget_size(plan) <= plan_budget_size(b->plan);
  berth_plan_destroy(is_better ? b->plan : plan);
  if (is_better) b->plan = plan;
  return BERTH_OK;
}

static const char *means_text(const berth_plan_info *info, char *text, size_t size) {
  if (info->n_recomputed == 0 && info->n_split == 0) return "";
  snprintf(text, size, ", with %u nodes run again and %u groups of nodes in %u slices", info->n_recomputed,
           info->n_split, info->n_slices);
  return text;
}

berth_status berth__budget_report(const berth_plan *plan, uint64_t budget, berth_error *err) {
  const berth_plan_info *info = &plan->info;
  char means[128];
  if (info->arena_size <= budget) return BERTH_OK;
  return berth__fail(
      err, BERTH_INFEASIBLE,
      "the budget is %llu bytes but the smallest plan found needs %llu (weights %llu, states %llu, activations "
      "%llu, scratch %llu, preparation %llu)%s",
      (unsigned long long)budget, (unsigned long long)info->arena_size, (unsigned long long)info->weights_size,
      (unsigned long long)info->state_size, (unsigned long long)info->activations_size,
      (unsigned long long)info->scratch_size, (unsigned long long)info->preparation_size,
      means_text(info, means, sizeof means));
}

berth_status berth__budget_meet(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                berth_error *err) {
  berth_context *ctx = (*plan)->ctx;
  const uint64_t fixed = plan_budget_fixed(*plan);
  berth_status status = BERTH_OK;
  if (may_be_rewritten(*plan)) {
    budgeter b = {.desc = *desc, .limits = limits, .plan = *plan};
    b.target = desc->budget > fixed ? desc->budget - fixed : 0; /* 0: to report how close it can get */
    b.desc.order = BERTH_ORDER_SOURCE;
    b.desc.budget = b.target;
    status = plan_budget_settle(&b, err);
    if (status == BERTH_OK && plan_budget_size(b.plan) > desc->budget) status = plan_budget_all(&b, desc->budget, err);
    berth__free(ctx, b.load);
    *plan = b.plan;
  }
  return status == BERTH_OK ? berth__budget_report(*plan, desc->budget, err) : status;
}
