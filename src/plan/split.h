/* Splitting: nodes around the fullest step run for a slice of their rows at a time.
 *
 * split.c       chooses the nodes
 * split_rule.c  which rows of its operands a node needs for given rows of its result
 * split_rows.c  which rows each slice makes, and which of them later slices read again
 * split_emit.c  the slices as nodes */
#ifndef BERTH_PLAN_SPLIT_H
#define BERTH_PLAN_SPLIT_H

#include "plan/plan.h"

/* ---- Rules ---- */

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
/* The end of the rows of operand 0 that are needed for the rows before `end`, without regard to where both begin and
 * end: before the first row, too. */
int64_t berth__split_operand_end(const berth_graph *graph, const berth__node *node, uint32_t axis, int64_t end);
/* The axis of operand k that has its rows, if it has rows. */
uint32_t berth__split_operand_axis(const berth_graph *graph, const berth__node *node, uint32_t axis, uint32_t k);
/* Attributes for these rows: the remaining padding, or the shape. attrs and ints have space for all of the node's. */
#define BERTH__SPLIT_INTS BERTH_MAX_RANK
void berth__split_attrs(const berth_graph *graph, const berth__node *node, uint32_t axis, berth__rows rows,
                        berth_attr *attrs, int64_t *ints);

/* ---- Groups ---- */

/* A group of nodes whose inner values have no other readers. */
#define BERTH__SPLIT_NODES 24u
#define BERTH__SPLIT_SLICES 64u /* the most */
typedef struct berth__split_group {
  uint32_t nodes[BERTH__SPLIT_NODES]; /* in plan order; only the last one's result leaves the group */
  uint32_t n_nodes;
  uint32_t axis;
  uint32_t n_slices; /* as few as keep it within the target, or as many as make it smallest */
  uint64_t load;     /* what its fullest step then takes, about */
  uint64_t covers;   /* by how much steps of its nodes exceed the target now */
} berth__split_group;

/* Groups around the node at the step, the most promising first: *n of them, up to `most`. load: one per step. */
berth_status berth__split_candidates(const berth_plan *plan, uint32_t step, const uint64_t *load, uint64_t target,
                                     uint32_t most, berth__split_group *groups, uint32_t *n, berth_error *err);
/* The slices that the group can run in, at most. */
int64_t berth__split_most(const berth_graph *graph, const berth__split_group *group);
/* A graph in which the group runs in this many slices. Rows that several slices read are made once and kept in
 * between. */
berth_status berth__split(const berth_plan *plan, const berth__split_group *group, uint32_t n_slices, berth_graph **out,
                          berth_error *err);

/* ---- Rows ---- */

typedef struct berth__split_part {
  berth__rows read; /* by nodes of the slice; its begin is the first row that a later slice reads, if that is less */
  berth__rows made; /* empty: none */
} berth__split_part;

/* What each slice does with each result of the group. */
typedef struct berth__split_table {
  const berth_graph *graph;
  const berth__split_group *group;
  uint32_t n_slices; /* with the early ones, which make rows of inner results alone */
  uint32_t n_early;
  berth__split_part *parts; /* those of slice 0 first, in the order of the group's nodes */
} berth__split_table;

berth_status berth__split_table_create(berth__split_table *t, const berth_graph *graph, const berth__split_group *group,
                                       uint32_t n_slices, berth_error *err);
void berth__split_table_free(berth__split_table *t);
/* The bytes of the group's inner results at the fullest step of a slice, about, if it runs in n slices and keeps rows.
 * If they are more than `enough`, it does not matter how many they are. */
uint64_t berth__split_estimate(const berth_graph *graph, const berth__split_group *group, uint32_t n_slices,
                               uint64_t enough);

static inline berth__split_part *berth__split_at(const berth__split_table *t, uint32_t slice, uint32_t i) {
  return &t->parts[(size_t)slice * t->group->n_nodes + i];
}

/* The index in the group of the node that makes a value; UINT32_MAX: it comes from outside. */
uint32_t berth__split_place(const berth__split_group *group, const berth_graph *graph, berth_value value);

#endif
