/* What a program on any GPU is made from: the kernels of a plan, each once, and the dispatches in their order. Devices
 * render the kernels, make pipelines, and record the dispatches. */
#ifndef BERTH_DEVICE_GPU_RECIPE_H
#define BERTH_DEVICE_GPU_RECIPE_H

#include "kernel/lower.h"
#include "plan/plan.h"

/* The bytes of the arena that a buffer of a dispatch stands for. */
typedef struct berth__span {
  uint64_t at, size; /* of a dispatch: whole words, multiples of 4 */
} berth__span;

#define BERTH__ON_HOST UINT32_MAX /* in the place of a kernel: the step runs on the CPU (host_step.h) */

typedef struct berth__dispatch {
  uint32_t kernel; /* of the recipe's, or BERTH__ON_HOST */
  uint32_t step;
  bool waits;               /* a barrier stands before it: it reads or writes what others since the last one wrote, or
                             * writes what they read */
  bool begins_early;        /* it may begin before what it waits for has ended: what it loads before its `await`, if it
                             * has one, nothing else of the run stores */
  const berth__span *spans; /* one per buffer of the kernel: the kernel's offset of it is at / 4 words */
  const berth__span *exact; /* the same to the byte: elements of one or two bytes may begin and end inside a word */
} berth__dispatch;

typedef struct berth__recipe {
  berth_context *ctx;
  const berth_plan *plan;
  berth__kernel **kernels; /* no two are equal */
  size_t n_kernels, kernels_capacity;
  berth__dispatch *dispatches;
  size_t n_dispatches, dispatches_capacity;
  size_t n_prelude; /* the first ones run once */
  berth__span *spans, *exact;
  berth__span *merged; /* of dispatches that were several */
  size_t n_spans, spans_capacity, exact_capacity;
} berth__recipe;

/* With the profile of the plan. Fails with UNSUPPORTED, the node and the reason where a node cannot run there; with
 * BERTH_PLAN_FALLBACK_CPU such a node becomes a dispatch on the host; so does a step of the prelude that reads what is
 * outside the arena. */
berth_status berth__recipe_create(const berth_plan *plan, berth__recipe **out, berth_error *err);
void berth__recipe_destroy(berth__recipe *recipe); /* NULL is fine */
/* phases.c: puts the dispatches into as few phases as their bytes allow, a phase being what has no barrier in it. Steps
 * are no longer in their order then. */
berth_status berth__recipe_phases(berth__recipe *recipe, berth_error *err);
/* merge.c: dispatches of a phase become one, where that pays (after berth__recipe_phases); and kernels that no dispatch
 * has go. */
berth_status berth__recipe_merge(berth__recipe *recipe, berth_error *err);
void berth__recipe_forget_unused(berth__recipe *recipe);
/* phases.c: which dispatches may begin early; after berth__recipe_phases. */
void berth__recipe_mark_early(berth__recipe *recipe);
bool berth__recipe_conflict(const berth__recipe *recipe, const berth__dispatch *first, const berth__dispatch *second);
/* The bytes of the arena that a value's elements lie in, from its first to its last, to the byte. */
berth_status berth__recipe_span(const berth_plan *plan, berth_value value, berth__span *out, berth_error *err);

/* limits.c: the planner's limits of every GPU: storages, scratch and rewriting as the kernel language wants
 * them.
 */
berth__limits berth__gpu_limits(const char *device);
/* storages.c */
berth_status berth__gpu_choose_storages(const berth__limits *limits, const berth_graph *graph, uint32_t flags,
                                        berth_storage *out, berth_error *err);
/* Whether the plan lets matrix units multiply what is f32 as something narrower. */
bool berth__gpu_multiplies_narrowly(const berth__kernel_limits *limits);
/* factors.c: whether a plan lets results lie as what matrix units multiply; which ones do, of a graph as it is planned;
 * copies of others for large products. And whether these multiply operand i, the weight of a node. */
bool berth__gpu_has_factors(const berth__kernel_limits *limits, uint32_t flags);
berth_status berth__gpu_find_factors(const berth__kernel_limits *limits, const berth_graph *graph, bool *is_factor,
                                     berth_error *err);
berth_status berth__gpu_copy_factors(const berth__kernel_limits *limits, berth_graph *graph, berth_error *err);
bool berth__gpu_multiplies_weight(const berth_graph *graph, const berth__node *node, uint32_t i);
/* attention.c: whether matrix units multiply the floats of a node that is attention or its gradients. */
bool berth__gpu_attends_by_units(const berth__kernel_limits *limits, const berth_graph *graph, const berth__node *node);
/* rewrite.c: a bound graph rewritten for GPUs; also what a uniform plan for the CPU is made from, so that sizes agree.
 */
berth_status berth__gpu_rewrite(const berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err);

#endif
