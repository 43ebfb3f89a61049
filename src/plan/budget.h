/* Meeting a budget: changes to a bound graph that make its plan smaller, at the cost of time.
 *
 * budget.c        what is aimed at, and which of the ways
 * budget_steps.c  plans, looks at the fullest step, tries what could help there, and keeps what does (budgeter.h)
 * budget_layers.c runs peaks that recomputed values leave in slices, all at once
 * updates.c       updates states as early as possible
 * batch.c         runs a batch in slices (batch.h)
 * recompute.c     recomputes values that would be kept for a late reader
 * split.c         runs nodes at the fullest step, with their neighbours, for a slice of their rows at a time (split.h)
 */
#ifndef BERTH_PLAN_BUDGET_H
#define BERTH_PLAN_BUDGET_H

#include "graph/rewrite.h"
#include "plan/plan.h"

/* Makes *plan, which exceeds the budget, smaller; fails with INFEASIBLE and the size reached if that is not enough.
 * *plan remains valid in any case. is_last: no other plan to start from follows, so everything is tried. */
berth_status berth__budget_meet(berth_plan **plan, const berth_plan_desc *desc, const berth__limits *limits,
                                bool is_last, berth_error *err);

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

#endif
