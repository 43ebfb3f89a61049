/* The third way to meet a budget, step by step: splits groups of nodes, runs ranges of steps in slices or recomputes a
 * value, whatever relieves the fullest step. Every change that is tried is planned. */
#include "plan/batch.h"
#include "plan/budget.h"
#include "plan/budgeter.h"
#include "plan/buffers.h"
#include "plan/split.h"

#define MOST_ROUNDS 100u
#define MOST_PLANNED 100000u /* nodes of the planned graphs, in total */
#define FEW_PLANNED 30000u   /* the same if another plan to start from follows */
#define MOST_TRIALS 1000u    /* planned graphs */
#define MOST_VALUES 6u
#define MOST_GROUPS 4u
#define MOST_PEAKS 4u    /* ranges of steps that run in slices before values are recomputed */
#define WORTH 16u        /* fraction of the load that is worth slicing a range before values are recomputed */
#define MOST_RANGES 6u   /* tried around one step */
#define ROUGH 1u         /* the packer's effort for plans that are tried */
#define MOST_ADDED 4000u /* nodes that slicing a range may add */

/* A plan that was tried. */
typedef struct trial {
  berth_plan *plan;
  uint64_t here; /* the fullest of the changed steps */
} trial;

/* ---- The load ---- */

static berth_status reserve_load(berth__budgeter *b, const berth_plan *plan, berth_error *err) {
  return BERTH__RESERVE(plan->ctx, b->load, b->load_capacity, (size_t)berth__plan_end(plan->n_steps) + 1, err);
}

static bool plan_budget_is_weight(const berth__buffer *buffer) {
  return buffer->kind == BERTH__BUFFER_PARAM || buffer->kind == BERTH__BUFFER_CONSTANT ||
         buffer->kind == BERTH__BUFFER_PRELUDE || buffer->kind == BERTH__BUFFER_STATE;
}

berth_status berth__budget_measure(berth__budgeter *b, const berth_plan *plan, berth_error *err) {
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
static uint64_t fullest_here(const berth__budgeter *b, const berth_plan *plan, berth_value at, berth_value exit) {
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
static berth_status try_graph(berth__budgeter *b, berth_graph *graph, berth_value exit, trial *best, bool *is_better,
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
  berth_status status = berth__budget_measure(b, next.plan, err);
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

static berth_status try_recomputing(berth__budgeter *b, trial *best, berth_error *err) {
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
      berth__budget_inherit(best->plan, b->plan);
      best->plan->info.n_recomputed += n_added;
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
static berth_status plan_budget_try_slices(berth__budgeter *b, budget_slicing *slice, void *what, uint32_t first,
                                           int64_t most, berth_value exit, trial *best, berth_error *err) {
  for (uint32_t n = first; n <= BERTH__BUDGET_SLICES && n <= most; n *= 2) {
    berth_graph *graph;
    bool is_better;
    BERTH__TRY(slice(b->plan, what, n, &graph, err));
    if (graph == NULL) return BERTH_OK;
    BERTH__TRY(try_graph(b, graph, exit, best, &is_better, err));
    if (!is_better && n > first) return BERTH_OK;
    if (!is_better) continue;
    berth__budget_inherit(best->plan, b->plan);
    best->plan->info.n_split++;
    best->plan->info.n_slices += n;
    if (best->here <= b->target) return BERTH_OK;
  }
  return BERTH_OK;
}

static berth_status plan_budget_try_group(berth__budgeter *b, berth__split_group *group, trial *best,
                                          berth_error *err) {
  const berth_value exit = b->plan->graph->nodes[group->nodes[group->n_nodes - 1]].out[0];
  const int64_t most = berth__split_most(b->plan->graph, group);
  return plan_budget_try_slices(b, plan_budget_split_group, group, group->n_slices, most, exit, best, err);
}

static berth_status try_splitting(berth__budgeter *b, trial *best, berth_error *err) {
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
static berth_status try_ranges(berth__budgeter *b, trial *best, berth_error *err) {
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
static bool plan_budget_accept(berth__budgeter *b, berth_status status, trial *best) {
  const bool is_better = status == BERTH_OK && best->plan != NULL;
  berth__budget_choose(b, best->plan, is_better);
  if (is_better) b->is_rough = true;
  return is_better;
}

/* Packs the plan well. */
static berth_status plan_budget_pack(berth__budgeter *b, berth_error *err) {
  berth_graph *graph;
  berth_plan *plan;
  if (!b->is_rough) return BERTH_OK;
  BERTH__TRY(berth__graph_duplicate(b->plan->graph, &graph, err));
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, &plan, err));
  berth__budget_inherit(plan, b->plan);
  b->is_rough = false;
  berth__budget_choose(b, plan, berth__budget_size(plan) <= berth__budget_size(b->plan));
  return BERTH_OK;
}

/* Splitting first, because it costs little time unless windows overlap. */
static berth_status plan_budget_improve(berth__budgeter *b, bool *is_better, berth_error *err) {
  trial best = {0};
  berth_status status = berth__budget_measure(b, b->plan, err);
  if (status == BERTH_OK) status = try_splitting(b, &best, err);
  if (status == BERTH_OK && best.plan == NULL) status = berth__budget_measure(b, b->plan, err);
  if (status == BERTH_OK && best.plan == NULL) status = try_ranges(b, &best, err);
  if (status == BERTH_OK && (best.plan == NULL || best.here > b->target)) status = try_recomputing(b, &best, err);
  *is_better = plan_budget_accept(b, status, &best);
  return status;
}

berth_status berth__budget_steps(berth__budgeter *b, berth_error *err) {
  const uint64_t most_planned = b->is_last ? MOST_PLANNED : FEW_PLANNED;
  bool is_better = true;
  for (uint32_t round = 0; round < MOST_ROUNDS && b->n_trials < MOST_TRIALS && b->n_planned < most_planned && is_better;
       round++) {
    BERTH__TRY(berth__budget_measure(b, b->plan, err));
    if (b->full <= b->target && !berth__budget_is_met(b)) BERTH__TRY(plan_budget_pack(b, err));
    /* If the prelude does not fit, reducing what a run needs does not help. */
    if (berth__budget_is_met(b)) break;
    /* The load may be within the budget although the packing is not: aim lower. */
    if (b->full <= b->target) b->target -= b->target / 64;
    BERTH__TRY(plan_budget_improve(b, &is_better, err));
  }
  return plan_budget_pack(b, err);
}

berth_status berth__budget_peaks(berth__budgeter *b, berth_error *err) {
  bool is_better = true;
  for (uint32_t i = 0; i < MOST_PEAKS && is_better && !berth__budget_is_met(b); i++) {
    trial best = {0};
    berth_status status = berth__budget_measure(b, b->plan, err);
    const uint64_t full = b->full;
    if (status == BERTH_OK) status = try_ranges(b, &best, err);
    if (status == BERTH_OK && best.plan != NULL) status = berth__budget_measure(b, best.plan, err);
    if (status == BERTH_OK && best.plan != NULL && b->full > full - full / WORTH) {
      berth_plan_destroy(best.plan);
      best.plan = NULL;
    }
    is_better = plan_budget_accept(b, status, &best);
    BERTH__TRY(status);
    BERTH__TRY(plan_budget_pack(b, err));
  }
  return BERTH_OK;
}
