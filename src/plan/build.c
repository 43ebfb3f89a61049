/* Building a plan: bind, order, alias, buffers, weights, packing, check. */
#include <stdlib.h>

#include "base/math.h"
#include "pass/pass.h"
#include "plan/alias.h"
#include "plan/buffers.h"
#include "plan/layout.h"
#include "plan/placement.h"
#include "plan/prelude.h"
#include "plan/schedule.h"

berth_tensor berth__plan_tensor(const berth_graph *graph, berth_value value, const int64_t *stride) {
  const berth__value *v = &graph->values[value];
  berth_tensor tensor = {.type = v->type, .rank = v->shape.rank};
  memcpy(tensor.dim, v->shape.dim, sizeof tensor.dim);
  memcpy(tensor.stride, stride, sizeof tensor.stride);
  return tensor;
}

void berth_plan_destroy(berth_plan *plan) {
  if (plan == NULL) return;
  berth_graph_destroy(plan->graph);
  berth__free(plan->ctx, plan->order);
  berth__free(plan->ctx, plan->once);
  berth__guards_free(plan->ctx, &plan->guards);
  berth__free(plan->ctx, plan->places);
  berth__free(plan->ctx, plan->buffers);
  berth__free(plan->ctx, plan->scratch);
  berth__free(plan->ctx, plan);
}

/* One way to run the graph, measured by its load. */
typedef struct draft {
  uint32_t *order;
  uint32_t n_prelude;
  berth__alias alias;
  uint64_t load;
} draft;

static void draft_free(berth_context *ctx, draft *d) {
  berth__free(ctx, d->order);
  berth__alias_free(&d->alias);
  *d = (draft){.alias = {.ctx = ctx}};
}

static berth_status put_prelude_first(const berth_plan *plan, draft *d, berth_error *err) {
  uint32_t *room = berth__alloc_array(plan->ctx, plan->graph->n_nodes, sizeof *room);
  if (room == NULL) return berth__fail_nomem(err, "a plan");
  d->n_prelude = berth__prelude_first(plan->graph, plan->once, d->order, room);
  berth__free(plan->ctx, room);
  return BERTH_OK;
}

static berth_status draft_create(const berth_plan *plan, berth__schedule_rule rule, uint32_t extra_flags,
                                 uint64_t guard, draft *d, berth_error *err) {
  berth_context *ctx = plan->ctx;
  *d = (draft){.alias = {.ctx = ctx}};
  d->order = berth__alloc_array(ctx, plan->graph->n_nodes, sizeof *d->order);
  if (d->order == NULL) return berth__fail_nomem(err, "a plan");
  berth_status status = berth__schedule(plan->graph, rule, d->order, err);
  if (status == BERTH_OK) status = put_prelude_first(plan, d, err);
  if (status == BERTH_OK)
    status = berth__alias_create(&d->alias, plan->graph, plan->flags | extra_flags, d->order, d->n_prelude, err);
  if (status != BERTH_OK) {
    draft_free(ctx, d);
    return status;
  }
  berth__alias_concat(&d->alias, plan->align, guard);
  berth__alias_branches(&d->alias);
  d->load = berth__alias_load(&d->alias, plan->align, guard);
  return BERTH_OK;
}

/* Tries the graph's own order, or else every other one, each with and without strided views (those save copies but keep
 * their root alive), and keeps the one with the smallest load; the first wins a tie. */
static berth_status best_draft(const berth_plan *plan, berth_order order, uint64_t guard, draft *best,
                               berth_error *err) {
  static const uint32_t variants[] = {0, BERTH_PLAN_NO_STRIDED};
  bool have = false;
  *best = (draft){.alias = {.ctx = plan->ctx}};
  for (int rule = 0; rule < BERTH__SCHEDULE_RULES; rule++) {
    if ((rule == BERTH__SCHEDULE_SOURCE) != (order == BERTH_ORDER_SOURCE)) continue;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
      draft next;
      if (variants[i] != 0 && (plan->flags & (variants[i] | BERTH_PLAN_NO_REUSE))) continue;
      berth_status status = draft_create(plan, (berth__schedule_rule)rule, variants[i], guard, &next, err);
      if (status != BERTH_OK) {
        draft_free(plan->ctx, best);
        return status;
      }
      if (have && next.load >= best->load) {
        draft_free(plan->ctx, &next);
        continue;
      }
      draft_free(plan->ctx, best);
      *best = next;
      have = true;
    }
  }
  return BERTH_OK;
}

/* What the same graph takes when nothing shares bytes. */
static berth_status total_unshared(const berth_plan *plan, uint64_t guard, uint64_t *out, berth_error *err) {
  draft apart;
  BERTH__TRY(draft_create(plan, BERTH__SCHEDULE_SOURCE, BERTH_PLAN_NO_REUSE, guard, &apart, err));
  *out = plan->info.weights_size + apart.load;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    if (plan->buffers[i].kind != BERTH__BUFFER_SCRATCH) continue;
    berth__buffer scratch = plan->buffers[i];
    const berth__node *node = &plan->graph->nodes[plan->order[scratch.step]];
    if (node->op->code == BERTH__OP_loop_end) scratch.size = berth__alias_staging(&apart.alias, node);
    *out += berth__buffer_room(plan, &scratch);
  }
  draft_free(plan->ctx, &apart);
  return BERTH_OK;
}

static berth_status fill_plan(berth_plan *plan, const berth_plan_desc *desc, const berth__limits *limits,
                              berth_error *err) {
  uint64_t guard = desc->guard, base = 0;
  draft best;
  if (guard == BERTH_GUARD_AUTO) guard = plan->align > BERTH__MIN_GUARD ? plan->align : BERTH__MIN_GUARD;
  BERTH__TRY(best_draft(plan, desc->order, guard, &best, err));
  plan->order = best.order;
  plan->n_prelude = best.n_prelude;
  best.order = NULL;
  plan->guards = best.alias.guards;
  best.alias.guards = (berth__guards){.count = 0};
  berth_status status = berth__buffers_create(plan, &best.alias, guard, limits, err);
  draft_free(plan->ctx, &best);
  BERTH__TRY(status);
  BERTH__TRY(berth__layout_apply(plan, desc->layout, &plan->params_size, &base, err));
  plan->info.weights_size = base;
  BERTH__TRY(berth__placement(plan, base, desc->effort, err));
  BERTH__TRY(total_unshared(plan, guard, &plan->info.total_unshared, err));
  berth_plan_info *info = &plan->info;
  info->arena_size = base + info->activations_size + info->scratch_size;
  info->saved = info->total_unshared > info->arena_size ? info->total_unshared - info->arena_size : 0;
  info->n_values = (uint32_t)plan->graph->n_values;
  info->n_buffers = (uint32_t)plan->n_buffers;
  info->n_steps = plan->n_steps;
  return BERTH_OK;
}

static berth_status check_desc(const berth_plan_desc *desc, berth_error *err) {
  if (desc->align != 0 && (!berth__is_power_of_two(desc->align) || desc->align > (uint64_t)1 << 40))
    return berth__fail(err, BERTH_INVALID, "an alignment of %llu is asked for; it must be a power of two up to 2^40",
                       (unsigned long long)desc->align);
  if (desc->guard != BERTH_GUARD_AUTO && desc->guard > (uint64_t)1 << 40)
    return berth__fail(err, BERTH_INVALID, "a guard of %llu bytes is asked for; at most 2^40 is sensible",
                       (unsigned long long)desc->guard);
  if (desc->flags >= 2u * BERTH_PLAN_FALLBACK_CPU)
    return berth__fail(err, BERTH_INVALID, "the flags 0x%x have bits that stand for nothing", desc->flags);
  if (desc->order != BERTH_ORDER_SOURCE && desc->order != BERTH_ORDER_MEMORY)
    return berth__fail(err, BERTH_INVALID, "there is no order %d", (int)desc->order);
  return BERTH_OK;
}

static uint64_t choose_align(const berth_plan_desc *desc, const berth__limits *limits) {
  uint64_t align = desc->align != 0 ? desc->align : BERTH__DEFAULT_ALIGN;
  return align > limits->min_align ? align : limits->min_align;
}

static bool reuse_is_off(void) {
  const char *setting = getenv("BERTH_ARENA_NO_REUSE");
  return setting != NULL && strcmp(setting, "1") == 0;
}

/* Nodes of loops stay where they are: nothing is moved in or out. */
static bool has_loops(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->family->is_loop) return true;
  return false;
}

/* Extents that only a run knows: rewriting goes by shapes. */
static bool has_bounds(const berth_graph *graph) {
  for (size_t v = 0; v < graph->n_values; v++)
    if (graph->values[v].bounded != 0) return true;
  return false;
}

/* The passes that every device likes, then the device's own. */
static berth_status improve(berth_plan *plan, const berth__limits *limits, berth_error *err) {
  BERTH__TRY(berth__pass_all(plan->graph, err));
  if (limits->lower == NULL || (plan->flags & BERTH_PLAN_REFERENCE)) return BERTH_OK;
  if (has_loops(plan->graph) || has_bounds(plan->graph)) return BERTH_OK;
  return limits->lower(plan->graph, plan->flags, err);
}

static berth_status mark_prelude(berth_plan *plan, const berth__limits *limits, berth_error *err) {
  const uint32_t without = BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE | BERTH_PLAN_PARAMS_OUTSIDE;
  plan->once = berth__alloc_array_zero(plan->ctx, plan->graph->n_nodes, sizeof *plan->once);
  if (plan->once == NULL) return berth__fail_nomem(err, "a plan");
  if (limits->has_prelude && !(plan->flags & without) && !has_loops(plan->graph))
    berth__prelude_mark(plan->graph, plan->once);
  return BERTH_OK;
}

static berth_status build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                          berth_plan **out, berth_error *err) {
  *out = NULL;
  if (graph->n_outputs == 0)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no output, so there is nothing to plan", graph->name);
  berth_plan *plan = berth__alloc_zero(graph->ctx, sizeof *plan);
  if (plan == NULL) return berth__fail_nomem(err, "a plan");
  plan->ctx = graph->ctx;
  plan->device = limits->device;
  plan->flags = desc->flags | limits->flags | (reuse_is_off() ? BERTH_PLAN_NO_REUSE : 0u);
  plan->align = choose_align(desc, limits);
  plan->n_threads = desc->n_threads != 0 ? desc->n_threads : graph->ctx->n_threads;
  berth_status status = berth_graph_bind(graph, desc->dims, desc->n_dims, &plan->graph, err);
  if (status == BERTH_OK && !(plan->flags & BERTH_PLAN_NO_PASSES)) status = improve(plan, limits, err);
  if (status == BERTH_OK) status = mark_prelude(plan, limits, err);
  if (status == BERTH_OK) {
    plan->n_steps = (uint32_t)plan->graph->n_nodes;
    status = fill_plan(plan, desc, limits, err);
  }
#ifndef NDEBUG
  if (status == BERTH_OK) status = berth_plan_check(plan, err);
#endif
  if (status != BERTH_OK) {
    berth_plan_destroy(plan);
    return status;
  }
  *out = plan;
  return BERTH_OK;
}

/* The other orders as well: the smaller plan stays, the first on a tie. The loads alone do not tell, since packing and
 * scratch come on top. */
static berth_status reorder(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                            berth_plan **plan, berth_error *err) {
  berth_plan_desc again = *desc;
  berth_plan *other;
  again.order = BERTH_ORDER_MEMORY;
  BERTH__TRY(build(graph, &again, limits, &other, err));
  bool is_smaller = other->info.arena_size < (*plan)->info.arena_size;
  berth_plan_destroy(is_smaller ? *plan : other);
  if (is_smaller) *plan = other;
  return BERTH_OK;
}

static berth_status check_budget(const berth_plan *plan, uint64_t budget, berth_error *err) {
  const berth_plan_info *info = &plan->info;
  if (budget == 0 || info->arena_size <= budget) return BERTH_OK;
  return berth__fail(err, BERTH_INFEASIBLE,
                     "the budget is %llu bytes but the smallest plan found needs %llu (weights %llu, activations %llu, "
                     "scratch %llu)",
                     (unsigned long long)budget, (unsigned long long)info->arena_size,
                     (unsigned long long)info->weights_size, (unsigned long long)info->activations_size,
                     (unsigned long long)info->scratch_size);
}

berth_status berth__plan_build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err) {
  berth_plan *plan;
  *out = NULL;
  berth_plan_desc source = *desc;
  BERTH__TRY(check_desc(desc, err));
  source.order = BERTH_ORDER_SOURCE;
  BERTH__TRY(build(graph, &source, limits, &plan, err));
  bool is_over = desc->budget != 0 && plan->info.arena_size > desc->budget;
  berth_status status = BERTH_OK;
  if (desc->order == BERTH_ORDER_MEMORY || is_over) status = reorder(graph, desc, limits, &plan, err);
  if (status == BERTH_OK) status = check_budget(plan, desc->budget, err);
  if (status == BERTH_OK && limits->max_block != 0 && plan->info.arena_size > limits->max_block)
    status =
        berth__fail(err, BERTH_INFEASIBLE, "the plan needs a block of %llu bytes, device '%s' gives at most %llu",
                    (unsigned long long)plan->info.arena_size, limits->device, (unsigned long long)limits->max_block);
  if (status != BERTH_OK) {
    berth_plan_destroy(plan);
    return status;
  }
  *out = plan;
  return BERTH_OK;
}
