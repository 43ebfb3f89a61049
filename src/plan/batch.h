/* A batch in slices: what depends on a slice of the inputs runs for one slice after the other, forward and backward.
 * Sums over the batch (weight gradients, the loss) accumulate over the slices, and what reads them runs after the last.
 * The only added arithmetic is these sums; activations take only a slice's share of their bytes. A range of steps can
 * also run like this on its own, for example the logits of a long vocabulary, their loss and its gradient, without
 * keeping more gradients alive.
 *
 * batch_rule.c  the axis along which a node's results are cut, depending on its operands
 *   batch.c       labels for all values, and the graph
 * batch_range.c which ranges of steps to run like this */
#ifndef BERTH_PLAN_BATCH_H
#define BERTH_PLAN_BATCH_H

#include "plan/plan.h"

typedef enum berth__batch_kind {
  BERTH__BATCH_WHOLE, /* independent of the batch: made once, before all slices */
  BERTH__BATCH_CUT,   /* each slice depends only on the same slice of the batch */
  BERTH__BATCH_SUM,   /* the sum, or the mean, over the slices */
  BERTH__BATCH_LATE   /* needs all slices: made once, after the last */
} berth__batch_kind;

typedef struct berth__batch_label {
  berth__batch_kind kind;
  uint32_t axis; /* along which it is cut */
} berth__batch_label;

#define BERTH__BATCH_NO_AXIS UINT32_MAX

/* The label of the node's results (the same for all), if operand k is cut along the axis. LATE: there is no rule. */
berth__batch_label berth__batch_result(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis,
                                       int64_t extent);
/* The axis of operand k that corresponds to such results; NO_AXIS: all of the operand is read. `cut` is the axis along
 * which operand 0 is cut. */
uint32_t berth__batch_operand(const berth_graph *graph, const berth__node *node, berth__batch_label result, uint32_t k,
                              uint32_t cut);

/* The batch size: an extent above 1 that is the first of all inputs; 0: none. */
int64_t berth__batch_extent(const berth_graph *graph);
typedef struct berth__batch_range {
  int64_t extent;    /* of the batch */
  uint32_t n_slices; /* for the whole graph, a divisor of the extent; for a range of steps, a divisor of its rows */
  uint32_t from, to; /* steps of the plan */
  bool sums;  /* sums over the batch may become sums over slices, which round differently; else results are unchanged */
  bool fuses; /* the device has the op product, which can add to a sum itself */
} berth__batch_range;

/* A graph in which these steps run slice by slice, with its nodes in execution order. Values from before the range are
 * cut, and what is read after it is joined. *out is NULL if it cannot be done or would change nothing. */
berth_status berth__batch_slice(const berth_plan *plan, const berth__batch_range *range, berth_graph **out,
                                berth_error *err);

/* Ranges of steps around the fullest one that have a higher load than the steps before and after, the shortest first;
 * `load` has the bytes of every step. Fills only from..to. Returns their number, up to `most`. */
uint32_t berth__batch_ranges(const uint64_t *load, uint32_t n_steps, uint32_t fullest, uint64_t target,
                             berth__batch_range *ranges, uint32_t most);

#endif
