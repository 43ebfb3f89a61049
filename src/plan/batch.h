/* A batch in slices: what follows from a slice of the inputs runs for one slice after the other, forward and backward.
 * Sums over the batch (weight gradients, the loss) grow from slice to slice, and what reads them runs after the last.
 * No arithmetic is added but these sums; activations take a slice's part of their bytes.
 *
 *   batch_rule.c  along which axis a node's results are cut, from how its operands are
 *   batch.c       labels for all values, and the graph */
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
/* A graph in which the batch runs in so many slices, its nodes in the order in which they are to run. `sums`: sums over
 * the batch may be sums over slices, which are rounded otherwise; without it, results are those of the whole batch to
 * the bit. *out is NULL where it cannot be done or would change nothing. */
berth_status berth__batch_slice(const berth_plan *plan, int64_t extent, uint32_t n_slices, bool sums, berth_graph **out,
                                berth_error *err);

#endif
