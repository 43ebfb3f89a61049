/* Meeting a budget: changes to a bound graph that make its plan smaller, at the cost of time.
 *
 * budget.c      plans, looks at the fullest step, tries what could help there, and keeps what does
 * updates.c     updates states as early as possible
 * batch.c       runs a batch in slices (batch.h)
 * recompute.c   recomputes values that would be kept for a late reader
 * split.c       runs nodes at the fullest step, with their neighbours, for a slice of their rows at a time
 * split_rule.c  which rows of its operands a node needs for given rows of its result
 *   split_emit.c  the slices as nodes */
#ifndef BERTH_PLAN_BUDGET_H
#define BERTH_PLAN_BUDGET_H

#include "graph/rewrite.h"
#include "plan/plan.h"

/* Makes *plan, which exceeds the budget, smaller; fails with INFEASIBLE and the size reached if that is not enough.
 * *plan remains valid in any case. */
berth_status berth__budget_meet(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                berth_error *err);

/* ---- Rewriting: a copy of the plan's graph, with nodes in plan order ---- */

/* Adds a copy of a node with these operands and attributes (NULL: its own), and new names. */
berth_status berth__budget_add_copy(berth__rewrite *r, const berth__node *node, const berth_value *in,
                                    const berth_attr *attrs, const char *suffix, berth_value *out, berth_error *err);

/* A graph in which states get their next values as early as possible; *out is NULL if nothing moves. */
berth_status berth__updates_early(const berth_plan *plan, berth_graph **out, berth_error *err);

/* ---- Recomputing ---- */

/* Fills `roots` with up to `most` values that are kept over the step but not used there, the largest first. */
uint32_t berth__recompute_candidates(const berth_plan *plan, uint32_t step, berth_value *roots, uint32_t most);
/* A graph in which the values in the root's bytes are recomputed for readers after the step. deep: together with
 * everything they need that is gone by then; otherwise operands are kept longer. *out is NULL if it cannot be done;
 * *n_added: nodes that run again. */
berth_status berth__recompute(const berth_plan *plan, uint32_t step, berth_value root, bool deep, berth_graph **out,
                              uint32_t *n_added, berth_error *err);

/* ---- Splitting ---- */

typedef struct berth__rows {
  int64_t begin, end; /* along the axis that is split */
} berth__rows;

/* The axis along which a value is contiguous slice by slice: the first whose extent is not 1. */
uint32_t berth__split_axis(const berth_graph *graph, berth_value value);
/* Whether rows of the node's single result can be computed separately. */
bool berth__split_may(const berth_graph *graph, const berth__node *node, uint32_t axis);
/* Slices of the node's result begin at multiples of this many rows, and end at one or at the last row: rows of a tile
 * that are computed without the others are rounded differently. */
uint32_t berth__split_unit(const berth_graph *graph, const berth__node *node, uint32_t axis);
/* The rows of operand k that are needed for these rows of the result. False: all of it is needed. */
bool berth__split_operand(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k,
                          berth__rows rows, berth__rows *out);
/* The axis of operand k that has its rows, if it has rows. */
uint32_t berth__split_operand_axis(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k);
/* Attributes for these rows: the remaining padding, or the shape. attrs and ints have space for all of the node's. */
#define BERTH__SPLIT_INTS BERTH_MAX_RANK
void berth__split_attrs(const berth_graph *graph, const berth__node *node, uint32_t axis, berth__rows rows,
                        berth_attr *attrs, int64_t *ints);

/* A group of nodes whose inner values have no other readers. */
#define BERTH__SPLIT_NODES 12u
typedef struct berth__split_group {
  uint32_t nodes[BERTH__SPLIT_NODES]; /* in plan order; only the last one's result leaves the group */
  uint32_t n_nodes;
  uint32_t axis;
  uint64_t whole, sliced; /* bytes at its fullest step: of what stays whole, and of what is sliced */
} berth__split_group;

/* Groups around the node at the step, the most promising first: *n of them, up to `most`. */
berth_status berth__split_candidates(const berth_plan *plan, uint32_t step, uint32_t most, berth__split_group *groups,
                                     uint32_t *n, berth_error *err);
/* The slices that the group can run in, at most. */
int64_t berth__split_most(const berth_plan *plan, const berth__split_group *group);
/* A graph in which the group runs in this many slices. */
berth_status berth__split(const berth_plan *plan, const berth__split_group *group, uint32_t n_slices, berth_graph **out,
                          berth_error *err);

#endif
