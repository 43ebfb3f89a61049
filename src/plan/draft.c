/* Drafts. Every scheduling rule gives an order. Each order is tried with and without strided views (which save copies
 * but keep their root alive), and the one with the smallest load is the start of the search for a better one
 * (order_search.c). */
#include "plan/draft.h"

#include "pass/prelude.h"
#include "plan/order.h"

typedef berth__draft draft;

typedef struct drafter {
  const berth_plan *plan;
  const berth__limits *limits;
  uint64_t guard;
  draft best[2]; /* one per variant */
  bool has_best[2];
} drafter;

static const uint32_t variants[] = {0, BERTH_PLAN_NO_STRIDED};
#define N_VARIANTS (sizeof variants / sizeof variants[0])

void berth__draft_free(berth_context *ctx, draft *d) {
  berth__free(ctx, d->order);
  berth__alias_free(&d->alias);
  *d = (draft){.alias = {.ctx = ctx}};
}

/* Decides aliases and measures; d->order is set. */
static berth_status plan_draft_measure(const berth_plan *plan, uint32_t extra_flags, uint64_t guard,
                                       const berth__limits *limits, draft *d, berth_error *err) {
  BERTH__TRY(berth__prelude_first(plan->graph, plan->in_prelude, d->order, &d->n_prelude, err));
  BERTH__TRY(berth__alias_create(&d->alias, plan->graph, plan->storages, plan->flags | extra_flags, d->order,
                                 d->n_prelude, err));
  if (plan->aim != 0) d->alias.aim = plan->aim;
  const bool is_tight = plan->is_tight && !(extra_flags & BERTH_PLAN_NO_REUSE);
  const uint64_t unit = is_tight ? 1 : plan->align;
  berth__alias_concat(&d->alias, unit, guard); /* by activations alone, because a copy also costs time */
  berth__alias_branches(&d->alias);
  d->load = berth__alias_load(&d->alias, unit, guard);
  if (limits != NULL) BERTH__TRY(berth__alias_scratch(&d->alias, limits, plan->n_threads, err));
  d->needs = berth__alias_load(&d->alias, unit, guard);
  return BERTH_OK;
}

berth_status berth__draft_create(const berth_plan *plan, berth__schedule_rule rule, uint32_t extra_flags,
                                 uint64_t guard, const berth__limits *limits, draft *d, berth_error *err) {
  *d = (draft){.alias = {.ctx = plan->ctx}};
  d->order = berth__alloc_array(plan->ctx, plan->graph->n_nodes, sizeof *d->order);
  berth_status status =
      d->order == NULL ? berth__fail_nomem(err, "a plan") : berth__schedule(plan->graph, rule, d->order, err);
  if (status == BERTH_OK) status = plan_draft_measure(plan, extra_flags, guard, limits, d, err);
  if (status != BERTH_OK) berth__draft_free(plan->ctx, d);
  return status;
}

/* Keeps the better of the two and frees the other; the first one wins a tie. */
static void keep_better(drafter *m, size_t variant, draft *next) {
  draft *best = &m->best[variant];
  if (m->has_best[variant] && next->needs >= best->needs) {
    berth__draft_free(m->plan->ctx, next);
    return;
  }
  berth__draft_free(m->plan->ctx, best);
  *best = *next;
  m->has_best[variant] = true;
}

static bool is_variant_off(const berth_plan *plan, uint32_t variant) {
  return variant != 0 && (plan->flags & (variant | BERTH_PLAN_NO_REUSE));
}

static berth_status try_rules(drafter *m, berth_order order, berth_error *err) {
  for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
    if ((rule == BERTH__SCHEDULE_SOURCE) != (order == BERTH_ORDER_SOURCE)) continue;
    for (size_t i = 0; i < N_VARIANTS; i++) {
      draft next;
      if (is_variant_off(m->plan, variants[i])) continue;
      BERTH__TRY(
          berth__draft_create(m->plan, (berth__schedule_rule)rule, variants[i], m->guard, m->limits, &next, err));
      keep_better(m, i, &next);
    }
  }
  return BERTH_OK;
}

/* ---- The search ---- */

/* Takes ownership of a draft's order. */
static berth_status plan_draft_try_order(drafter *m, uint32_t *order, size_t variant, berth_error *err) {
  draft next = {.order = order, .alias = {.ctx = m->plan->ctx}};
  berth_status status = plan_draft_measure(m->plan, variants[variant], m->guard, m->limits, &next, err);
  if (status == BERTH_OK)
    keep_better(m, variant, &next);
  else
    berth__draft_free(m->plan->ctx, &next);
  return status;
}

static berth_status search_model(drafter *m, const berth__order_model *model, size_t variant, uint64_t *bound,
                                 berth_error *err) {
  berth__order_result found;
  const size_t n = m->plan->graph->n_nodes;
  uint32_t *order = berth__alloc_array(m->plan->ctx, n, sizeof *order);
  if (order == NULL) return berth__fail_nomem(err, "ordering");
  memcpy(order, m->best[variant].order, n * sizeof *order);
  berth_status status = berth__order_search(model, order, &found, err);
  *bound = model->is_exact ? found.bound : 0;
  if (status == BERTH_OK && memcmp(order, m->best[variant].order, n * sizeof *order) != 0)
    return plan_draft_try_order(m, order, variant, err);
  berth__free(m->plan->ctx, order);
  return status;
}

static berth_status search_alias(drafter *m, const berth__alias *alias, size_t variant, uint64_t *bound,
                                 berth_error *err) {
  const berth_plan *plan = m->plan;
  berth__order_rules rules = {
      .align = plan->is_tight ? 1 : plan->align, .guard = m->guard, .in_place = !(plan->flags & BERTH_PLAN_NO_INPLACE)};
  bool has_parts = false;
  for (int parts = BERTH__PARTS_APART; parts <= (has_parts ? BERTH__PARTS_LEAST : BERTH__PARTS_APART); parts++) {
    berth__order_model model;
    rules.parts = (berth__order_parts)parts;
    BERTH__TRY(berth__order_model_create(&model, alias, plan->in_prelude, &rules, err));
    model.cancel = plan->cancel;
    has_parts = model.has_parts && !(plan->flags & BERTH_PLAN_NO_CONCAT);
    if (has_parts && parts != BERTH__PARTS_LEAST) model.is_exact = false;
    berth_status status = search_model(m, &model, variant, bound, err);
    berth__order_model_free(&model);
    BERTH__TRY(status);
  }
  return BERTH_OK;
}

static uint32_t count_views(const berth__alias *alias) {
  uint32_t n = 0;
  for (size_t v = 0; v < alias->graph->n_values; v++) n += alias->values[v].is_view;
  return n;
}

static berth_status search_variant(drafter *m, size_t variant, uint32_t *n_views, uint64_t *bound, berth_error *err) {
  const berth_plan *plan = m->plan;
  const uint32_t flags = plan->flags | variants[variant] | BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_CONCAT,
                 before = *n_views;
  berth__alias alias;
  uint32_t *order = berth__alloc_array(plan->ctx, plan->graph->n_nodes, sizeof *order);
  if (order == NULL) return berth__fail_nomem(err, "ordering");
  memcpy(order, m->best[variant].order, plan->graph->n_nodes * sizeof *order); /* the best one may change meanwhile */
  berth_status status =
      berth__alias_create(&alias, plan->graph, plan->storages, flags, order, m->best[variant].n_prelude, err);
  if (status == BERTH_OK) {
    *n_views = count_views(&alias);
    if (*n_views == before) {
      m->has_best[variant] = false; /* no view is strided, so it equals the previous variant */
    } else {
      status = berth__alias_scratch(&alias, m->limits, plan->n_threads, err);
      if (status == BERTH_OK) status = search_alias(m, &alias, variant, bound, err);
    }
    berth__alias_free(&alias);
  }
  berth__free(plan->ctx, order);
  return status;
}

static bool may_be_reordered(const berth_plan *plan) {
  for (size_t n = 0; n < plan->graph->n_nodes; n++)
    if (plan->graph->nodes[n].op->family->is_loop) return false;
  return plan->graph->n_nodes > 2 && !(plan->flags & BERTH_PLAN_NO_REUSE);
}

static berth_status plan_draft_search(drafter *m, uint64_t *order_bound, berth_error *err) {
  uint32_t n_views = UINT32_MAX;
  uint64_t least = UINT64_MAX;
  if (!may_be_reordered(m->plan)) return BERTH_OK;
  for (size_t i = 0; i < N_VARIANTS; i++) {
    uint64_t bound = UINT64_MAX;
    if (is_variant_off(m->plan, variants[i])) continue;
    BERTH__TRY(search_variant(m, i, &n_views, &bound, err));
    if (bound < least) least = bound;
  }
  *order_bound = least;
  return BERTH_OK;
}

berth_status berth__draft_best(const berth_plan *plan, berth_order order, uint64_t guard, const berth__limits *limits,
                               draft *best, berth_error *err) {
  drafter m = {.plan = plan, .limits = limits, .guard = guard};
  uint64_t order_bound = 0;
  for (size_t i = 0; i < N_VARIANTS; i++) m.best[i].alias.ctx = plan->ctx;
  berth_status status = try_rules(&m, order, err);
  if (status == BERTH_OK && order == BERTH_ORDER_MEMORY) status = plan_draft_search(&m, &order_bound, err);
  const size_t kept = m.has_best[1] && m.best[1].load < m.best[0].load ? 1 : 0;
  *best = m.best[kept];
  best->order_bound = order_bound;
  berth__draft_free(plan->ctx, &m.best[1 - kept]);
  if (status != BERTH_OK) berth__draft_free(plan->ctx, best);
  return status;
}
