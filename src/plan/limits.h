/* Everything that the planner knows about a device, so that planning can be tested without a driver. */
#ifndef BERTH_PLAN_LIMITS_H
#define BERTH_PLAN_LIMITS_H

#include "base/profile.h"
#include "graph/graph.h"

/* Beside the flags of a plan: a run may have smaller extents than this call. Scratch is for any of them then. */
#define BERTH__CALL_HAS_BOUNDS (1u << 31)

typedef struct berth__limits {
  const char *device;
  uint64_t min_align; /* offsets are multiples of this, whatever the caller asks for */
  bool takes_small;   /* values smaller than the alignment may lie at multiples of their own size */
  uint64_t max_block; /* the largest arena; 0: no limit */
  uint32_t flags;     /* of berth_plan_desc: always set for this device */
  /* Scratch for one step with n_threads workers. The tensors in call have no data yet. NULL: no op needs any. */
  uint64_t (*scratch)(const struct berth__limits *limits, const berth__op *op, const berth_op_call *call,
                      uint32_t n_threads, uint32_t flags);
  const berth_context *ctx; /* whose options scratch may depend on; NULL: the defaults */
  berth__profile profile;   /* of a GPU: what scratch depends on, and the plan's program is made with */
  bool lies_over;           /* it can write results over operands where that takes scratch (over.h) */
  bool has_prelude;         /* it can run the steps that depend on weights alone once, and not at every run */
  /* Rewrites a bound graph, after the passes, into ops that the device does best. NULL: it takes graphs as they are. */
  berth_status (*rewrite)(const struct berth__limits *limits, berth_graph *graph, uint32_t flags, berth_error *err);
  /* How the elements of each value of such a graph lie in the arena, subject to the policies in flags: fills one entry
   * a value. NULL: all of them by their types. */
  berth_status (*choose_storages)(const struct berth__limits *limits, const berth_graph *graph, uint32_t flags,
                                  berth_storage *out, berth_error *err);
} berth__limits;

#endif
