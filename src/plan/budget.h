/* Meeting a budget: what may be done to a bound graph so that its plan is smaller, at the cost of time.
 *
 *   budget.c      plans, looks at the fullest step, tries what could help there, and keeps what does
 *   updates.c     states get their next values as early as they can
 *   batch.c       a batch is run in slices (batch.h)
 *   recompute.c   values that are kept for a late reader are made again for it
 *   split.c       nodes at the fullest step, with those around them, are run for a slice of their rows at a time
 *   split_rule.c  which rows of its operands a node needs for some rows of its result
 *   split_emit.c  the slices as nodes */
#ifndef BERTH_PLAN_BUDGET_H
#define BERTH_PLAN_BUDGET_H

#include "graph/rewrite.h"
#include "plan/plan.h"

/* Makes *plan, which is over the budget, smaller; fails with INFEASIBLE and what was reached where that is not enough.
 * *plan stays a plan in any case. */
berth_status berth__budget_meet(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                berth_error *err);

/* ---- Rewriting: a copy of the plan's graph, its nodes in the plan's order ---- */

/* A node with these operands, and attributes instead of its own (NULL: its own), under new names. */
berth_status berth__budget_add_copy(berth__rewrite *r, const berth__node *node, const berth_value *in,
                                    const berth_attr *attrs, const char *suffix, berth_value *out, berth_error *err);

/* A graph in which the next values of states are made as early as they can be; *out is NULL where nothing moves. */
berth_status berth__updates_early(const berth_plan *plan, berth_graph **out, berth_error *err);

/* ---- Recomputing ---- */

/* Fills `roots` with up to `most` values whose bytes are kept over the step though nobody touches them there, the
 * largest first. */
uint32_t berth__recompute_candidates(const berth_plan *plan, uint32_t step, berth_value *roots, uint32_t most);
/* A graph in which what lies in the root's bytes is made again for its readers after the step. deep: with whatever
 * else is not there any more by then; otherwise operands are kept longer. *out is NULL where it cannot be done;
 * *n_added: nodes that run again. */
berth_status berth__recompute(const berth_plan *plan, uint32_t step, berth_value root, bool deep, berth_graph **out,
                              uint32_t *n_added, berth_error *err);

/* ---- Splitting ---- */

typedef struct berth__rows {
  int64_t begin, end; /* along the axis that is split */
} berth__rows;

/* The axis along which a value lies in memory slice by slice: the first whose extent is not 1. */
uint32_t berth__split_axis(const berth_graph *graph, berth_value value);
/* Whether the rows of the node's one result can be computed by themselves. */
bool berth__split_may(const berth_graph *graph, const berth__node *node, uint32_t axis);
/* The rows of operand k that are needed for these of the result. False: all of it is. */
bool berth__split_operand(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k,
                          berth__rows rows, berth__rows *out);
/* Along which axis of operand k its rows lie, where it has rows. */
uint32_t berth__split_operand_axis(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k);
/* Attributes for these rows: the padding that is left. attrs and pads are room for all of the node's. */
#define BERTH__SPLIT_PADS 8u
void berth__split_attrs(const berth_graph *graph, const berth__node *node, uint32_t axis, berth__rows rows,
                        berth_attr *attrs, int64_t *pads);

/* A group of nodes whose inner values nobody else reads. */
#define BERTH__SPLIT_NODES 12u
typedef struct berth__split_group {
  uint32_t nodes[BERTH__SPLIT_NODES]; /* in the plan's order; the last one's result goes out */
  uint32_t n_nodes;
  uint32_t axis;
  uint64_t whole, sliced; /* bytes at its fullest: what stays whole, and what is cut in slices */
} berth__split_group;

/* Groups around the node at the step, the most promising first: *n of them, up to `most`. */
berth_status berth__split_candidates(const berth_plan *plan, uint32_t step, uint32_t most, berth__split_group *groups,
                                     uint32_t *n, berth_error *err);
/* A graph in which the group runs in so many slices. */
berth_status berth__split(const berth_plan *plan, const berth__split_group *group, uint32_t n_slices, berth_graph **out,
                          berth_error *err);

#endif
