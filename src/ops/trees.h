/* The layout of the trees of a tree_ensemble in its operands.
 *
 * nodes [inner, 3] has a row per inner node: its feature, and the next node if its condition is false and if it is
 * true. A next node is the index of an inner node, or ~leaf. Inner nodes precede the inner nodes that they lead to, so
 * every walk ends. The condition is feature <= split, unless bits above the feature modify it. */
#ifndef BERTH_OPS_TREES_H
#define BERTH_OPS_TREES_H

#include "ops/op.h"

#define BERTH__TREE_FEATURE_BITS 24
#define BERTH__TREE_FEATURE ((1 << BERTH__TREE_FEATURE_BITS) - 1)

enum { /* columns of nodes */
  BERTH__TREE_WORD,
  BERTH__TREE_NO, /* and one more: yes */
  BERTH__TREE_COLUMNS = 3
};

/* The outcome of comparing a feature with a split: 1 if it is not above, plus 2 if it is not below; 0: one of them is
 * NaN. */
enum {
  BERTH__TREE_NAN,
  BERTH__TREE_BELOW,
  BERTH__TREE_ABOVE,
  BERTH__TREE_EQUAL
};

/* Bit k: outcome k is true. A node's bits are those that differ from these, which are for <=. */
#define BERTH__TREE_AT_MOST (1 << BERTH__TREE_BELOW | 1 << BERTH__TREE_EQUAL)

typedef enum berth__tree_aggregate {
  BERTH__TREE_SUM,
  BERTH__TREE_AVERAGE,
  BERTH__TREE_MIN,
  BERTH__TREE_MAX,
  BERTH__TREE_AGGREGATES /* none of them */
} berth__tree_aggregate;

/* The range of leaf k's entries among the weights. */
typedef struct berth__tree_leaves {
  int64_t targets;       /* columns of the result */
  const int32_t *target; /* per entry; NULL: each leaf has all targets, in order */
  const int32_t *starts; /* per leaf; NULL: one entry each */
} berth__tree_leaves;

berth__tree_leaves berth__tree_leaves_of(const berth_op_call *call);
berth__tree_aggregate berth__tree_aggregate_of(const berth_attr *attrs);

static inline void berth__tree_entries(const berth__tree_leaves *l, int64_t leaf, int64_t *first, int64_t *last) {
  *first = l->starts != NULL ? l->starts[leaf] : l->target != NULL ? leaf : leaf * l->targets;
  *last = l->starts != NULL ? l->starts[leaf + 1] : *first + (l->target != NULL ? 1 : l->targets);
}

#endif
