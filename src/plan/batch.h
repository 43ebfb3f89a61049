/* A batch in slices: what follows from a slice of the inputs runs for one slice after the other, forward and backward.
 * Sums over the batch (weight gradients, the loss) grow from slice to slice, and what reads them runs after the last.
 * No arithmetic is added but these sums; activations take a slice's part of their bytes. A range of steps can run so by
 * itself: the logits of a long vocabulary, their loss and its gradient, and no more gradients are alive for it.
 *
 *   batch_rule.c  along which axis a node's results are cut, from how its operands are
 *   batch.c       labels for all values, and the graph
 *   batch_range.c which steps to run so by themselves */
#ifndef BERTH_PLAN_BATCH_H
#define BERTH_PLAN_BATCH_H

#include "plan/plan.h"

typedef enum berth__batch_kind {
  BERTH__BATCH_WHOLE, /* it does not depend on the batch: made once, before all slices */
  BERTH__BATCH_CUT,   /* a slice of it depends on that slice of the batch alone */
  BERTH__BATCH_SUM,   /* the sum, or the mean, of what the slices give */
  BERTH__BATCH_LATE   /* it needs all slices: made once, after the last */
} berth__batch_kind;

typedef struct berth__batch_label {
  berth__batch_kind kind;
  uint32_t axis; /* of what is cut */
} berth__batch_label;

#define BERTH__BATCH_NO_AXIS UINT32_MAX

/* The label of the node's results (all of one node's are alike), where operand k is cut along the axis. LATE: there is
 * no rule. */
berth__batch_label berth__batch_result(const berth_graph *graph, const berth__node *node, uint32_t k, uint32_t axis,
                                       int64_t extent);
/* The axis of operand k that goes with such results; NO_AXIS: all of the operand is read. `cut` has the axis where
 * operand 0 is cut. */
uint32_t berth__batch_operand(const berth_graph *graph, const berth__node *node, berth__batch_label result, uint32_t k,
                              uint32_t cut);

/* How many rows the inputs have in common: an extent that their first axes share, above 1; 0: none. */
int64_t berth__batch_extent(const berth_graph *graph);
typedef struct berth__batch_range {
  int64_t extent;    /* of the batch */
  uint32_t n_slices; /* for the whole graph, a divisor of the extent; for some steps, any number that divides rows */
  uint32_t from, to; /* steps of the plan */
  bool sums;  /* sums over the batch may be sums over slices, which are rounded otherwise; without it, results are those
               * of the whole batch to the bit */
  bool fuses; /* the device has the op product, which adds to a sum by itself */
} berth__batch_range;

/* A graph in which these steps run slice by slice, its nodes in the order in which they are to run. Values that come
 * from before the range are cut as they are, what is read after it is put together. *out is NULL where it cannot be
 * done or would change nothing. */
berth_status berth__batch_slice(const berth_plan *plan, const berth__batch_range *range, berth_graph **out,
                                berth_error *err);

/* Ranges of steps around the fullest one in which more is alive than in the steps before and after, the shortest first;
 * `load` has the bytes of every step. Only from..to are filled. Returns how many, up to `most`. */
uint32_t berth__batch_ranges(const uint64_t *load, uint32_t n_steps, uint32_t fullest, uint64_t target,
                             berth__batch_range *ranges, uint32_t most);

#endif
