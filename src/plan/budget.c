/* Three ways to meet a budget. The first runs the batch in slices (batch.h), if there is one, which adds almost no
 * work. The second frees values during the stretches in which they are not used and recomputes them, chosen globally by
 * cost (remake.h); it plans a few times at most. The third goes step by step (budget_steps.c). It takes over if the
 * second way fails, and in small graphs both are tried and the cheaper result wins. The order of the nodes is part of
 * the graph here: nodes are added where they are needed. */
#include "plan/budget.h"

#include <stdio.h>

#include "plan/batch.h"
#include "plan/budgeter.h"
#include "plan/remake.h"

#define MOST_REMAKES 6u /* plans of the second way */
#define MOST_BATCHES 6u /* numbers of slices of a batch */
#define MOST_BATCH_REMAKES 4u
#define CHEAP 0.01          /* fraction of the work that is not worth another search */
#define SMALL_GRAPH 400u    /* steps of a graph for which both ways are tried */
#define SMALL_TRAINING 150u /* the same if states are updated: slices seldom help there, and trying them takes long */

static bool may_be_rewritten(const berth_plan *plan) {
  for (size_t n = 0; n < plan->graph->n_nodes; n++)
    if (plan->graph->nodes[n].op->family->is_loop) return false;
  for (size_t v = 0; v < plan->graph->n_values; v++)
    if (plan->graph->values[v].bounded != 0) return false;
  return !(plan->flags & (BERTH_PLAN_NO_PASSES | BERTH_PLAN_NO_REUSE));
}

/* ---- Recomputing, chosen globally ---- */

/* The bytes that do not depend on runs. */
static uint64_t plan_budget_fixed(const berth_plan *plan) {
  const berth_plan_info *info = &plan->info;
  return info->arena_size - info->activations_size - info->scratch_size - info->preparation_size;
}

static double plan_budget_work(const berth__budgeter *b, const berth_plan *plan) {
  double work = 0;
  for (uint32_t step = plan->n_prelude; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    work += berth__plan_work(plan, b->limits, node, plan->places[node->out[0]].is_view);
  }
  return work;
}

/* Whether `plan` is better than *best: it meets the budget with less work, or is smaller if neither does. */
static bool plan_budget_is_better(const berth__budgeter *b, const berth_plan *plan, const berth_plan *best,
                                  uint64_t budget) {
  const bool meets = berth__budget_size(plan) <= budget, best_meets = berth__budget_size(best) <= budget;
  if (meets != best_meets) return meets;
  return meets ? plan_budget_work(b, plan) < plan_budget_work(b, best)
               : berth__budget_size(plan) < berth__budget_size(best);
}

typedef struct remaking {
  berth__remake_model model;
  uint8_t *dropped;
  uint64_t target;
  berth_plan *best; /* NULL: none yet */
} remaking;

/* Plans the choice for the target; *goes_on: a lower target may help. */
static berth_status plan_budget_remake_once(berth__budgeter *b, remaking *r, uint64_t aim, bool *goes_on,
                                            berth_error *err) {
  berth__remake_cost cost;
  berth_graph *graph;
  berth_plan *plan;
  uint32_t n_added;
  *goes_on = false;
  BERTH__TRY(berth__remake_search(&r->model, r->target, r->dropped, &cost, err));
  BERTH__TRY(berth__remake_emit(&r->model, r->dropped, &graph, &n_added, err));
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, &plan, err));
  berth__budget_inherit(plan, b->plan);
  plan->info.n_recomputed += n_added;
  const uint64_t size = berth__budget_size(plan), over = size > aim ? size - aim : 0;
  *goes_on = over != 0 && cost.peak <= r->target && r->target > over + over / 8;
  r->target -= *goes_on ? over + over / 8 : 0;
  if (plan_budget_is_better(b, plan, r->best != NULL ? r->best : b->plan, aim)) {
    berth_plan_destroy(r->best);
    r->best = plan;
  } else {
    berth_plan_destroy(plan);
  }
  return BERTH_OK;
}

static berth_status plan_budget_remake(berth__budgeter *b, uint64_t aim, berth_plan **best, berth_error *err) {
  remaking r = {0};
  const uint64_t fixed = plan_budget_fixed(b->plan);
  *best = NULL;
  if (aim <= fixed) return BERTH_OK;
  r.target = aim - fixed;
  BERTH__TRY(berth__remake_model_create(&r.model, b->plan, b->limits, err));
  r.dropped = berth__alloc_array_zero(b->plan->ctx, r.model.n_classes, sizeof *r.dropped);
  berth_status status = r.dropped != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  bool goes_on = true;
  for (uint32_t i = 0; i < MOST_REMAKES && goes_on && status == BERTH_OK; i++)
    status = plan_budget_remake_once(b, &r, aim, &goes_on, err);
  berth__free(b->plan->ctx, r.dropped);
  berth__remake_model_free(&r.model);
  if (status != BERTH_OK)
    berth_plan_destroy(r.best);
  else
    *best = r.best;
  return status;
}

/* ---- A batch in slices ---- */

static berth_status plan_budget_slice_batch(berth__budgeter *b, int64_t extent, uint32_t n_slices, berth_plan **out,
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
  berth__budget_inherit(*out, b->plan);
  (*out)->info.n_split++;
  (*out)->info.n_slices += n_slices;
  return BERTH_OK;
}

/* Combines slices with recomputed values. The values are chosen in a plan of the whole batch, where the search takes a
 * fraction of the time: reducing that plan by some bytes reduces this one by a slice's share of them. */
static berth_status plan_budget_slice_remade(berth__budgeter *b, int64_t extent, uint32_t n_slices, berth_plan **best,
                                             berth_error *err) {
  const uint64_t size = berth__budget_size(b->plan), aim = b->aim < b->budget ? b->aim : b->budget;
  uint64_t less = 0;
  for (uint32_t i = 0; i < MOST_BATCH_REMAKES && berth__budget_size(*best) > aim; i++) {
    berth_plan *whole = b->plan, *remade, *sliced;
    less += (berth__budget_size(*best) - aim) * n_slices;
    if (less >= size) return BERTH_OK;
    BERTH__TRY(plan_budget_remake(b, size - less, &remade, err));
    if (remade == NULL) return BERTH_OK;
    b->plan = remade;
    const berth_status status = plan_budget_slice_batch(b, extent, n_slices, &sliced, err);
    b->plan = whole;
    berth_plan_destroy(remade);
    if (status != BERTH_OK || sliced == NULL) return status;
    const bool is_better = plan_budget_is_better(b, sliced, *best, b->budget);
    berth_plan_destroy(is_better ? *best : sliced);
    if (!is_better) return BERTH_OK;
    *best = sliced;
  }
  return BERTH_OK;
}

/* The fewest slices that meet the budget; if none do, the most, with recomputed values. *best is NULL if slices do not
 * help. */
static berth_status plan_budget_batch(berth__budgeter *b, berth_plan **best, berth_error *err) {
  const int64_t extent = berth__batch_extent(b->plan->graph);
  uint32_t n_tried = 0, n_best = 0;
  bool meets = false;
  *best = NULL;
  for (uint32_t n = 2; n <= extent && n <= BERTH__BUDGET_SLICES && n_tried < MOST_BATCHES && !meets; n++) {
    berth_plan *plan;
    if (extent % n != 0) continue;
    n_tried++;
    berth_status status = plan_budget_slice_batch(b, extent, n, &plan, err);
    if (status != BERTH_OK) berth_plan_destroy(*best);
    if (status != BERTH_OK || plan == NULL) return status;
    const bool is_better = plan_budget_is_better(b, plan, *best != NULL ? *best : b->plan, b->budget);
    meets = is_better && berth__budget_size(plan) <= b->budget;
    berth_plan_destroy(is_better ? *best : plan);
    if (is_better) *best = plan;
    if (is_better) n_best = n;
  }
  if (*best == NULL || meets) return BERTH_OK;
  const berth_status status = plan_budget_slice_remade(b, extent, n_best, best, err);
  if (status != BERTH_OK) berth_plan_destroy(*best);
  return status;
}

/* ---- The choice ---- */

/* Recomputed values, with layers in slices (budget_layers.c): gives up as little as possible, so it begins far from
 * what is aimed at. *best is NULL if that does not help. */
static berth_status plan_budget_relax(berth__budgeter *b, berth_plan **best, berth_error *err) {
  static const double shares[] = {1.5, 1.2, 1.0}; /* of the target */
  const uint64_t fixed = plan_budget_fixed(b->plan);
  *best = NULL;
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    berth_plan *remade, *sliced = NULL;
    berth_status status = plan_budget_remake(b, fixed + (uint64_t)((double)b->target * shares[i]), &remade, err);
    if (status == BERTH_OK && remade != NULL) status = berth__budget_layers(b, remade, &sliced, err);
    berth_plan_destroy(remade);
    const bool is_better = sliced != NULL && (*best == NULL || plan_budget_is_better(b, sliced, *best, b->budget));
    if (is_better || status != BERTH_OK) berth_plan_destroy(*best);
    if (is_better || status != BERTH_OK) *best = sliced;
    if (!is_better) berth_plan_destroy(sliced);
    if (status != BERTH_OK || (*best != NULL && berth__budget_size(*best) <= b->budget)) return status;
  }
  return BERTH_OK;
}

/* *remade: a plan with recomputed values; NULL: that does not help. */
static berth_status plan_budget_remake_all(berth__budgeter *b, berth_plan **remade, berth_error *err) {
  berth_plan *relaxed;
  BERTH__TRY(plan_budget_remake(b, b->aim, remade, err));
  const bool meets = *remade != NULL && berth__budget_size(*remade) <= b->budget;
  if (meets || !b->is_last || b->plan->graph->n_updates == 0) return BERTH_OK;
  const berth_status status = plan_budget_relax(b, &relaxed, err);
  const bool is_met = status == BERTH_OK && relaxed != NULL && berth__budget_size(relaxed) <= b->budget;
  if (is_met || status != BERTH_OK) berth_plan_destroy(*remade);
  if (is_met || status != BERTH_OK) *remade = relaxed;
  if (!is_met) berth_plan_destroy(relaxed);
  return status;
}

/* Recomputed values, and slices of groups, as far as they are worth it. */
static berth_status plan_budget_both(berth__budgeter *b, berth_error *err) {
  const double before = plan_budget_work(b, b->plan);
  berth_plan *remade;
  BERTH__TRY(berth__budget_peaks(b, err));
  if (berth__budget_is_met(b)) return BERTH_OK;
  BERTH__TRY(plan_budget_remake_all(b, &remade, err));
  const bool meets = remade != NULL && berth__budget_size(remade) <= b->budget;
  const bool is_cheap = meets && plan_budget_work(b, remade) <= before * (1 + CHEAP);
  const bool is_small = b->plan->n_steps <= (b->plan->graph->n_updates == 0 ? SMALL_GRAPH : SMALL_TRAINING);
  if (is_cheap || (remade != NULL && !is_small)) { /* the third way continues from the result of the second */
    berth__budget_choose(b, remade, true);
    return meets ? BERTH_OK : berth__budget_steps(b, err);
  }
  const berth_status status = berth__budget_steps(b, err);
  berth__budget_choose(b, remade,
                       status == BERTH_OK && remade != NULL && plan_budget_is_better(b, remade, b->plan, b->budget));
  return status;
}

/* Tries a batch in slices first and takes it if it meets the budget cheaply; otherwise the cheapest of all. */
static berth_status plan_budget_all(berth__budgeter *b, berth_error *err) {
  const double before = plan_budget_work(b, b->plan);
  berth_plan *sliced;
  BERTH__TRY(plan_budget_batch(b, &sliced, err));
  const bool is_cheap =
      sliced != NULL && berth__budget_size(sliced) <= b->budget && plan_budget_work(b, sliced) <= before * (1 + CHEAP);
  const berth_status status = is_cheap ? BERTH_OK : plan_budget_both(b, err);
  berth__budget_choose(
      b, sliced,
      is_cheap || (status == BERTH_OK && sliced != NULL && plan_budget_is_better(b, sliced, b->plan, b->budget)));
  return status;
}

/* Updates states as soon as gradients are available, whatever the order was. */
static berth_status plan_budget_settle(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                       berth_error *err) {
  berth_graph *graph;
  berth_plan *early;
  BERTH__TRY(berth__updates_early(*plan, &graph, err));
  if (graph == NULL) return BERTH_OK;
  BERTH__TRY(berth__plan_bound(graph, desc, limits, &early, err));
  const bool is_better = berth__budget_size(early) <= berth__budget_size(*plan);
  berth_plan_destroy(is_better ? *plan : early);
  if (is_better) *plan = early;
  return BERTH_OK;
}

/* ---- What is aimed at ---- */

/* A plan that is found with this aim, which is the caller's. */
static berth_status plan_budget_aim(berth_plan *base, uint64_t aim, const berth_plan_desc *desc,
                                    const berth__limits *limits, bool is_last, berth_plan **out, berth_error *err) {
  const uint64_t fixed = plan_budget_fixed(base);
  berth__budgeter b = {.desc = *desc,
                       .limits = limits,
                       .base = base,
                       .plan = base,
                       .budget = desc->budget,
                       .aim = aim,
                       .is_last = is_last};
  b.target = aim > fixed ? aim - fixed : 0; /* 0: as little as possible */
  b.desc.order = BERTH_ORDER_SOURCE;
  b.desc.budget = b.target;
  const berth_status status = plan_budget_all(&b, err);
  berth__free(base->ctx, b.load);
  if (status != BERTH_OK) berth__budget_choose(&b, base, true);
  *out = b.plan;
  return status;
}

/* A search that aims at the budget may miss it where one that aims elsewhere does not: what is in slices early cannot
 * join another group later. So aims that do not depend on the budget follow, and a plan is taken if it meets the
 * budget on the way. If none does, *plan becomes the smallest that they found, whatever the budget was: its size is a
 * budget that is met. */
static berth_status plan_budget_aims(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                     berth_error *err) {
  static const uint32_t shares[] = {3, 8, 0}; /* of what a run needs, as divisors; 0: as little as possible */
  berth_plan *base = *plan, *least = *plan;
  const uint64_t fixed = plan_budget_fixed(base), rest = berth__budget_size(base) - fixed;
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < sizeof shares / sizeof *shares && status == BERTH_OK; i++) {
    berth_plan *next;
    if (berth__budget_size(least) <= desc->budget) break;
    status = plan_budget_aim(base, fixed + (shares[i] != 0 ? rest / shares[i] : 0), desc, limits, true, &next, err);
    const bool is_better = status == BERTH_OK && berth__budget_size(next) < berth__budget_size(least);
    berth_plan *dropped = is_better ? least : next;
    if (is_better) least = next;
    if (dropped != base && dropped != least) berth_plan_destroy(dropped);
  }
  if (least != base) berth_plan_destroy(base);
  *plan = least;
  return status;
}

static const char *means_text(const berth_plan_info *info, char *text, size_t size) {
  if (info->n_recomputed == 0 && info->n_split == 0) return "";
  snprintf(text, size, ", with %u nodes run again and %u groups of nodes in %u slices", info->n_recomputed,
           info->n_split, info->n_slices);
  return text;
}

/* INFEASIBLE, with how close the plan comes, unless it is within the budget. */
static berth_status plan_budget_report(const berth_plan *plan, uint64_t budget, berth_error *err) {
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
                                bool is_last, berth_error *err) {
  berth_plan *met;
  if (!may_be_rewritten(*plan)) return plan_budget_report(*plan, desc->budget, err);
  berth_plan_desc source = *desc;
  const uint64_t fixed = plan_budget_fixed(*plan);
  source.order = BERTH_ORDER_SOURCE;
  source.budget = desc->budget > fixed ? desc->budget - fixed : 0;
  BERTH__TRY(plan_budget_settle(plan, &source, limits, err));
  if (berth__budget_size(*plan) <= desc->budget) return plan_budget_report(*plan, desc->budget, err);
  const bool has_aims = (*plan)->graph->n_updates == 0;
  BERTH__TRY(plan_budget_aim(*plan, desc->budget, desc, limits, is_last, &met, err));
  if (has_aims && berth__budget_size(met) > desc->budget) {
    if (met != *plan) berth_plan_destroy(met);
    BERTH__TRY(plan_budget_aims(plan, desc, limits, err));
  } else if (met != *plan) {
    berth_plan_destroy(*plan);
    *plan = met;
  }
  return plan_budget_report(*plan, desc->budget, err);
}
