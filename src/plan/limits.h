/* Everything that the planner knows about a device, so that planning can be tested without a driver. */
#ifndef BERTH_PLAN_LIMITS_H
#define BERTH_PLAN_LIMITS_H

#include "base/profile.h"
#include "graph/graph.h"

/* In addition to a plan's flags: extents at run time may be smaller than in this call. Scratch must suffice for all of
 * them. */
#define BERTH__CALL_HAS_BOUNDS (1u << 31)

typedef struct berth__limits {
  const char *device;
  uint64_t min_align; /* minimum alignment of offsets, whatever the caller requests */
  bool takes_small;   /* values smaller than the alignment may be aligned to their own size */
  uint64_t max_block; /* the largest arena; 0: no limit */
  uint32_t flags;     /* of berth_plan_desc: always set for this device */
  /* Scratch for one step with n_threads workers. The tensors in call have no data yet. NULL: no op needs any. */
  uint64_t (*scratch)(const struct berth__limits *limits, const berth__op *op, const berth_op_call *call,
                      uint32_t n_threads, uint32_t flags);
  const berth_context *ctx; /* its options may affect scratch; NULL: the defaults */
  berth__profile profile;   /* of a GPU: affects scratch; the plan's program is made with it */
  bool lies_over;           /* it can write results over operands even if that takes scratch (over.h) */
  bool has_prelude;         /* it can run the steps that depend only on weights once, instead of in every run */
  /* Rewrites a bound graph, after the passes, into ops that suit the device. NULL: not needed. */
  berth_status (*rewrite)(const struct berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err);
  /* The storage in the arena of each value of such a graph, subject to the policies in flags: fills one entry per
   * value. NULL: all follow from their types. */
  berth_status (*choose_storages)(const struct berth__limits *limits, const berth_graph *graph, uint32_t flags,
                                  berth_storage *out, berth_error *err);
  /* What a node with such storages costs, in numbers of any unit, to choose what runs again to meet a budget. NULL:
   * berth__node_work. */
  double (*work)(const struct berth__limits *limits, const berth_graph *graph, const berth__node *node,
                 const berth_storage *storages);
} berth__limits;

#endif
