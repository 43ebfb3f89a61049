/* What a program on any GPU is made from: the kernels of a plan, without duplicates, and the dispatches in order.
 * Devices render the kernels, make pipelines, and record the dispatches. */
#ifndef BERTH_DEVICE_GPU_RECIPE_H
#define BERTH_DEVICE_GPU_RECIPE_H

#include "kernel/lower.h"
#include "plan/plan.h"

/* The bytes of the arena that a buffer of a dispatch covers. */
typedef struct berth__span {
  uint64_t at, size; /* in a dispatch: whole words, multiples of 4 */
} berth__span;

#define BERTH__ON_HOST UINT32_MAX /* instead of a kernel: the step runs on the CPU (host_step.h) */

typedef struct berth__dispatch {
  uint32_t kernel; /* index in the recipe, or BERTH__ON_HOST */
  uint32_t step;
  bool waits; /* preceded by a barrier: it reads or writes what others since the last barrier wrote, or writes what they
                 read */
  bool begins_early;        /* it may begin before the dispatches that it waits for have ended: what it loads before its
                               `await`, if it has one, is not stored by anything in the run */
  const berth__span *spans; /* one per buffer of the kernel, whose offset is at / 4 words */
  const berth__span *exact; /* the same in exact bytes: elements of one or two bytes may begin and end inside a word */
} berth__dispatch;

typedef struct berth__recipe {
  berth_context *ctx;
  const berth_plan *plan;
  berth__kernel **kernels; /* all different */
  size_t n_kernels, kernels_capacity;
  berth__dispatch *dispatches;
  size_t n_dispatches, dispatches_capacity;
  size_t n_prelude; /* the first n_prelude dispatches run once */
  berth__span *spans, *exact;
  berth__span *merged; /* spans of merged dispatches */
  size_t n_spans, spans_capacity, exact_capacity;
} berth__recipe;

/* Uses the plan's profile. Fails with UNSUPPORTED, the node and the reason if a node cannot run there; with
 * BERTH_PLAN_FALLBACK_CPU such a node becomes a host step, and so does a step of the prelude that reads values outside
 * the arena. */
berth_status berth__recipe_create(const berth_plan *plan, berth__recipe **out, berth_error *err);
void berth__recipe_destroy(berth__recipe *recipe); /* NULL is fine */
/* phases.c: reorders the dispatches into as few phases as their bytes allow; a phase contains no barrier. Steps are no
 * longer in plan order then. */
berth_status berth__recipe_phases(berth__recipe *recipe, berth_error *err);
/* merge.c: merges dispatches of a phase into one if that pays off (after berth__recipe_phases); and removes kernels
 * that no dispatch uses. */
berth_status berth__recipe_merge(berth__recipe *recipe, berth_error *err);
void berth__recipe_forget_unused(berth__recipe *recipe);
/* phases.c: which dispatches may begin early; after berth__recipe_phases. */
void berth__recipe_mark_early(berth__recipe *recipe);
/* Whether a dispatch of the phase before stores bytes of a buffer: where kernels begin early, that may still go on. */
bool berth__recipe_is_fresh(const berth__recipe *recipe, size_t dispatch, uint32_t buffer);
bool berth__recipe_conflict(const berth__recipe *recipe, const berth__dispatch *first, const berth__dispatch *second);
/* The exact bytes of the arena from a value's first element to its last. */
berth_status berth__recipe_span(const berth_plan *plan, berth_value value, berth__span *out, berth_error *err);

/* limits.c: the planner's limits for all GPUs: storages, scratch and rewriting for the kernel language. */
berth__limits berth__gpu_limits(const char *device);
/* storages.c */
berth_status berth__gpu_choose_storages(const berth__limits *limits, const berth_graph *graph, uint32_t flags,
                                        berth_storage *out, berth_error *err);
/* work.c */
double berth__gpu_work(const berth__limits *limits, const berth_graph *graph, const berth__node *node,
                       const berth_storage *storages);
/* Whether the plan lets matrix units multiply f32 in a narrower type. */
bool berth__gpu_multiplies_narrowly(const berth__kernel_limits *limits);
/* factors.c: whether a plan may store results in the type that matrix units multiply; which results of a graph are
 * stored so; copies of others for large products. And whether these products multiply operand i, the weight of a
 * node. */
bool berth__gpu_has_factors(const berth__kernel_limits *limits, uint32_t flags);
berth_status berth__gpu_find_factors(const berth__kernel_limits *limits, const berth_graph *graph, bool *is_factor,
                                     berth_error *err);
berth_status berth__gpu_copy_factors(const berth__kernel_limits *limits, berth_graph *graph, berth_error *err);
bool berth__gpu_multiplies_weight(const berth_graph *graph, const berth__node *node, uint32_t i);
/* Nanoseconds that matrix units take for a product; 0 if they do not compute it. */
double berth__gpu_product_time(const berth_graph *graph, const berth__node *node);
/* attention.c: whether matrix units multiply the floats of an attention node or its gradients. */
bool berth__gpu_attends_by_units(const berth__kernel_limits *limits, const berth_graph *graph, const berth__node *node);
/* rewrite.c: rewrites a bound graph for GPUs; a uniform plan for the CPU is made from the same graph, so that sizes
 * agree. */
berth_status berth__gpu_rewrite(const berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err);

#endif
