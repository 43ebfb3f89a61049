/* Building a plan: bind, order, alias, buffers, weights, packing, check. */
#include "base/cancel.h"
#include "base/math.h"
#include "pass/pass.h"
#include "pass/prelude.h"
#include "plan/budget.h"
#include "plan/buffers.h"
#include "plan/draft.h"
#include "plan/layout.h"
#include "plan/over.h"
#include "plan/placement.h"
#include "plan/preparation.h"
#include "plan/states.h"
#include "rewrite/rewrite.h"

berth_tensor berth__plan_tensor(const berth_graph *graph, berth_value value, const int64_t *stride) {
  const berth__value *v = &graph->values[value];
  berth_tensor tensor = {.type = v->type, .rank = v->shape.rank};
  memcpy(tensor.dim, v->shape.dim, sizeof tensor.dim);
  memcpy(tensor.stride, stride, sizeof tensor.stride);
  return tensor;
}

/* Undoes fill_plan. */
static void empty_plan(berth_plan *plan) {
  berth__free(plan->ctx, plan->order);
  berth__conditions_free(plan->ctx, &plan->conditions);
  berth__free(plan->ctx, plan->places);
  berth__free(plan->ctx, plan->buffers);
  berth__free(plan->ctx, plan->scratch);
  plan->order = plan->scratch = NULL;
  plan->places = NULL;
  plan->buffers = NULL;
  plan->n_buffers = 0;
  plan->info = (berth_plan_info)BERTH_PLAN_INFO_INIT;
}

void berth_plan_destroy(berth_plan *plan) {
  if (plan == NULL) return;
  empty_plan(plan);
  berth_graph_destroy(plan->graph);
  berth__free(plan->ctx, plan->in_prelude);
  berth__free(plan->ctx, plan->storages);
  berth__free(plan->ctx, plan);
}

/* The size of the same graph if nothing shares bytes. */
static berth_status total_unshared(const berth_plan *plan, uint64_t guard, uint64_t *out, berth_error *err) {
  berth__draft apart;
  BERTH__TRY(berth__draft_create(plan, BERTH__SCHEDULE_SOURCE, BERTH_PLAN_NO_REUSE, guard, NULL, &apart, err));
  *out = plan->info.weights_size + plan->info.state_size + apart.load;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    if (plan->buffers[i].kind != BERTH__BUFFER_SCRATCH) continue;
    berth__buffer scratch = plan->buffers[i];
    const berth__node *node = &plan->graph->nodes[plan->order[scratch.step]];
    if (node->op->code == BERTH__OP_loop_end) scratch.size = berth__alias_staging(&apart.alias, node);
    *out += (scratch.size + plan->align - 1) & ~(plan->align - 1);
  }
  berth__draft_free(plan->ctx, &apart);
  return BERTH_OK;
}

static berth_status fill_plan(berth_plan *plan, const berth_plan_desc *desc, const berth__limits *limits,
                              berth_error *err) {
  uint64_t guard = desc->guard, base = 0;
  berth__draft best;
  if (guard == BERTH_GUARD_AUTO) guard = plan->align > BERTH__MIN_GUARD ? plan->align : BERTH__MIN_GUARD;
  BERTH__TRY(berth__check_cancel(plan->cancel, "planning", err));
  BERTH__TRY(berth__draft_best(plan, desc->order, guard, limits, &best, err));
  plan->order = best.order;
  plan->n_prelude = best.n_prelude;
  plan->order_bound = best.order_bound;
  best.order = NULL;
  plan->conditions = best.alias.conditions;
  best.alias.conditions = (berth__conditions){.count = 0};
  berth_status status = berth__buffers_create(plan, &best.alias, guard, err);
  berth__draft_free(plan->ctx, &best);
  BERTH__TRY(status);
  BERTH__TRY(berth__layout_apply(plan, desc->layout, &plan->params_size, &base, err));
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (plan->buffers[i].kind == BERTH__BUFFER_STATE)
      plan->info.state_size += berth__buffer_room(plan, &plan->buffers[i]);
  plan->info.weights_size = base - plan->info.state_size;
  BERTH__TRY(berth__placement(plan, base, desc->effort, err));
  BERTH__TRY(berth__preparation_place(plan, base, desc->effort, err));
  BERTH__TRY(total_unshared(plan, guard, &plan->info.total_unshared, err));
  berth_plan_info *info = &plan->info;
  info->arena_size = base + info->activations_size + info->scratch_size + info->preparation_size;
  info->saved = info->total_unshared > info->arena_size ? info->total_unshared - info->arena_size : 0;
  info->n_values = (uint32_t)plan->graph->n_values;
  info->n_buffers = (uint32_t)plan->n_buffers;
  info->n_steps = plan->n_steps;
  return BERTH_OK;
}

static berth_status fill_again(berth_plan *plan, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_error *err) {
  empty_plan(plan);
  return fill_plan(plan, desc, limits, err);
}

#define WORTH 16u /* one sixteenth less memory is worth the time that overwriting operands costs */

/* Lets results overwrite operands where the plan is fullest, if that makes it smaller. */
static berth_status fill_over(berth_plan *plan, const berth_plan_desc *desc, const berth__limits *limits,
                              berth_error *err) {
  const uint64_t before = plan->info.activations_size + plan->info.scratch_size;
  uint32_t count;
  if (!limits->lies_over || (plan->flags & (BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_REUSE))) return BERTH_OK;
  BERTH__TRY(berth__over_mark(plan, &count, err));
  if (count == 0) return BERTH_OK;
  BERTH__TRY(fill_again(plan, desc, limits, err));
  plan->in_place_over = plan->info.activations_size + plan->info.scratch_size <= before - before / WORTH;
  if (plan->in_place_over) return BERTH_OK;
  berth__over_unmark(plan);
  return fill_again(plan, desc, limits, err);
}

/* A flag that a device cannot use is an error rather than ignored. */
static berth_status check_weights(const berth_plan_desc *desc, const berth__limits *limits, berth_error *err) {
  const bool has_storages = limits->choose_storages != NULL;
  if ((desc->flags & BERTH_PLAN_BF16_WEIGHTS) && has_storages)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "weights as bf16 are for plans of the cpu with elements of their own size; device '%s' can keep "
                       "them as f16 (BERTH_PLAN_F16_WEIGHTS, --f16-weights)",
                       limits->device);
  if ((desc->flags & BERTH_PLAN_F16_WEIGHTS) && !has_storages)
    return berth__fail(
        err, BERTH_UNSUPPORTED,
        "weights as f16 are for GPUs; device '%s' can keep them as bf16 (BERTH_PLAN_BF16_WEIGHTS, --bf16)",
        limits->device);
  return BERTH_OK;
}

static berth_status plan_build_check_desc(const berth_plan_desc *desc, berth_error *err) {
  if (desc->align != 0 && (!berth__is_power_of_two(desc->align) || desc->align > (uint64_t)1 << 40))
    return berth__fail(err, BERTH_INVALID, "an alignment of %llu is asked for; it must be a power of two up to 2^40",
                       (unsigned long long)desc->align);
  if (desc->guard != BERTH_GUARD_AUTO && desc->guard > (uint64_t)1 << 40)
    return berth__fail(err, BERTH_INVALID, "a guard of %llu bytes is asked for; at most 2^40 is sensible",
                       (unsigned long long)desc->guard);
  if (desc->flags >= 2u * BERTH_PLAN_F16_WEIGHTS)
    return berth__fail(err, BERTH_INVALID, "the flags 0x%x have unknown bits", desc->flags);
  if (desc->order != BERTH_ORDER_SOURCE && desc->order != BERTH_ORDER_MEMORY)
    return berth__fail(err, BERTH_INVALID, "there is no order %d", (int)desc->order);
  return BERTH_OK;
}

static uint64_t choose_align(const berth_plan_desc *desc, const berth__limits *limits) {
  uint64_t align = desc->align != 0 ? desc->align : BERTH__DEFAULT_ALIGN;
  return align > limits->min_align ? align : limits->min_align;
}

/* Graphs with loops keep their order. */
static bool has_loops(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->family->is_loop) return true;
  return false;
}

#define REFERENCE_PANEL 16 /* columns of packed bytes; any number would do */

/* Quantised products use integer arithmetic on every device: with floats instead, the resulting bytes would differ. */
static berth_status plan_build_reference(berth_graph *graph, berth_error *err) {
  const berth__rewrite_target target = {.panel = REFERENCE_PANEL};
  return berth__rewrite_quantized(graph, &target, err);
}

/* The passes for all devices, then the device's own. */
static berth_status plan_build_improve(berth_graph *graph, uint32_t flags, const berth__limits *limits,
                                       berth_error *err) {
  BERTH__TRY(berth__pass_all(graph, err));
  if (flags & BERTH_PLAN_REFERENCE) return plan_build_reference(graph, err);
  if (limits->rewrite == NULL) return BERTH_OK;
  return limits->rewrite(limits, graph, flags | (graph->ctx->options.no_reuse ? BERTH_PLAN_NO_REUSE : 0u), err);
}

static berth_status mark_prelude(berth_plan *plan, const berth__limits *limits, berth_error *err) {
  const uint32_t without = BERTH_PLAN_NO_PASSES | BERTH_PLAN_REFERENCE | BERTH_PLAN_PARAMS_OUTSIDE;
  plan->in_prelude = berth__alloc_array_zero(plan->ctx, plan->graph->n_nodes, sizeof *plan->in_prelude);
  if (plan->in_prelude == NULL) return berth__fail_nomem(err, "a plan");
  if (!limits->has_prelude || (plan->flags & without)) return BERTH_OK;
  berth__prelude_mark(plan->graph, plan->in_prelude);
  return has_loops(plan->graph) ? berth__prelude_hoist(plan->graph, plan->in_prelude, err) : BERTH_OK;
}

static berth_status choose_storages(berth_plan *plan, const berth__limits *limits, berth_error *err) {
  if (limits->choose_storages == NULL) return BERTH_OK;
  plan->storages = berth__alloc_array(plan->ctx, plan->graph->n_values, sizeof *plan->storages);
  if (plan->storages == NULL) return berth__fail_nomem(err, "a plan");
  return limits->choose_storages(limits, plan->graph, plan->flags, plan->storages, err);
}

berth_status berth__plan_bound(berth_graph *bound, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err) {
  *out = NULL;
  berth_plan *plan = berth__alloc_zero(bound->ctx, sizeof *plan);
  if (plan == NULL) {
    berth_graph_destroy(bound);
    return berth__fail_nomem(err, "a plan");
  }
  plan->ctx = bound->ctx;
  plan->cancel = desc->cancel;
  plan->graph = bound;
  plan->device = limits->device;
  plan->profile = limits->profile;
  plan->flags = desc->flags | limits->flags | (bound->ctx->options.no_reuse ? BERTH_PLAN_NO_REUSE : 0u);
  plan->align = choose_align(desc, limits);
  plan->is_tight = desc->align == 0 && limits->takes_small && !(plan->flags & BERTH_PLAN_NO_REUSE);
  plan->aim = desc->budget;
  plan->n_threads = desc->n_threads != 0 ? desc->n_threads : bound->ctx->n_threads;
  berth_status status = berth__states_settle(bound, plan->flags, err);
  plan->n_steps = (uint32_t)bound->n_nodes;
  if (status == BERTH_OK) status = mark_prelude(plan, limits, err);
  if (status == BERTH_OK) status = choose_storages(plan, limits, err);
  if (status == BERTH_OK) status = fill_plan(plan, desc, limits, err);
  if (status == BERTH_OK) status = fill_over(plan, desc, limits, err);
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

static berth_status plan_build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err) {
  berth_graph *bound;
  *out = NULL;
  if (berth__graph_n_kept(graph) == 0)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no output, so there is nothing to plan", graph->name);
  BERTH__TRY(berth_graph_bind(graph, desc->dims, desc->n_dims, &bound, err));
  const uint32_t flags = desc->flags | limits->flags;
  berth_status status = flags & BERTH_PLAN_NO_PASSES ? BERTH_OK : plan_build_improve(bound, flags, limits, err);
  berth_plan_desc without = *desc;
  without.budget = 0;
  if (status == BERTH_OK) return berth__plan_bound(bound, &without, limits, out, err);
  berth_graph_destroy(bound);
  return status;
}

/* Tries the other orders as well: keeps the smallest plan, the first on a tie. Loads alone do not decide, since packing
 * and scratch are added. */
static berth_status reorder(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                            berth_plan **plan, berth_error *err) {
  berth_plan_desc again = *desc;
  berth_plan *other;
  again.order = BERTH_ORDER_MEMORY;
  BERTH__TRY(plan_build(graph, &again, limits, &other, err));
  bool is_smaller = other->info.arena_size < (*plan)->info.arena_size;
  berth_plan *kept = is_smaller ? other : *plan, *dropped = is_smaller ? *plan : other;
  kept->order_bound = other->order_bound;
  berth_plan_destroy(dropped);
  *plan = kept;
  return BERTH_OK;
}

/* Meets a budget for a training step, starting from the graph's order and, if that fails, from the smallest one: the
 * search for the smallest order does not care what is kept below the fullest step, such as the gradients of logits
 * during much of the backward pass, but a budget does. `plan` is in the graph's order; the better one is kept. */
static berth_status meet_from_both(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                                   berth_plan **plan, berth_error *err) {
  berth_plan_desc again = *desc;
  berth_plan *other;
  berth_error why;
  again.order = BERTH_ORDER_MEMORY;
  BERTH__TRY(plan_build(graph, &again, limits, &other, err));
  const bool has_smaller = other->info.arena_size < (*plan)->info.arena_size,
             fits = other->info.arena_size <= desc->budget;
  berth_status status = fits ? BERTH_OK : berth__budget_meet(plan, desc, limits, !has_smaller, err);
  bool takes_other = fits;
  if (status == BERTH_INFEASIBLE && has_smaller) {
    const berth_status second = berth__budget_meet(&other, desc, limits, true, &why);
    takes_other = second != BERTH_INFEASIBLE || other->info.arena_size < (*plan)->info.arena_size;
    if (takes_other) status = second;
    if (takes_other && second != BERTH_OK && err != NULL) *err = why;
  }
  berth_plan_destroy(takes_other ? *plan : other);
  if (takes_other) *plan = other;
  return status;
}

/* The load is a lower bound for every packing. */
static void note_order(berth_plan *plan) {
  berth_plan_info *info = &plan->info;
  info->order_optimal = plan->order_bound != 0 && !plan->in_place_over &&
                        info->arena_size - info->weights_size - info->state_size <= plan->order_bound;
}

/* The plan, within the budget if there is one. INFEASIBLE: *plan is the smallest that was found. */
static berth_status plan_build_within(const berth_graph *graph, const berth_plan_desc *desc,
                                      const berth__limits *limits, berth_plan **plan, berth_error *err) {
  berth_plan_desc source = *desc;
  source.order = BERTH_ORDER_SOURCE;
  BERTH__TRY(plan_build(graph, &source, limits, plan, err));
  const bool exceeds_budget = desc->budget != 0 && (*plan)->info.arena_size > desc->budget;
  const bool is_training = (*plan)->graph->n_updates != 0;
  berth_status status = BERTH_OK;
  if (exceeds_budget && is_training)
    status = meet_from_both(graph, desc, limits, plan, err);
  else if (desc->order == BERTH_ORDER_MEMORY || exceeds_budget)
    status = reorder(graph, desc, limits, plan, err);
  if (status == BERTH_OK) note_order(*plan);
  if (status == BERTH_OK && !is_training && desc->budget != 0 && (*plan)->info.arena_size > desc->budget)
    status = berth__budget_meet(plan, desc, limits, true, err);
  return status;
}

berth_status berth__plan_build(const berth_graph *graph, const berth_plan_desc *desc, const berth__limits *limits,
                               berth_plan **out, berth_error *err) {
  berth_plan *plan = NULL;
  *out = NULL;
  BERTH__TRY(plan_build_check_desc(desc, err));
  BERTH__TRY(check_weights(desc, limits, err));
  berth_status status = plan_build_within(graph, desc, limits, &plan, err);
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
