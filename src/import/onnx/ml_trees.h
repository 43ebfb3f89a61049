/* Trees as read from files, before they become the operands of a tree_ensemble. */
#ifndef BERTH_IMPORT_ONNX_ML_TREES_H
#define BERTH_IMPORT_ONNX_ML_TREES_H

#include "import/onnx/ml.h"

/* Where a branch leads: the index of a node, or ~leaf. */
typedef struct berth__ml_node {
  int64_t feature;
  double split;
  int32_t yes, no;
  uint8_t turned; /* how the comparison differs from <=: ops/trees.h */
} berth__ml_node;

/* What a leaf contributes to a target. */
typedef struct berth__ml_entry {
  int32_t leaf, target;
  double weight;
} berth__ml_entry;

typedef struct berth__ml_trees {
  berth_context *ctx;
  berth__ml_node *nodes;
  size_t n_nodes, nodes_capacity;
  berth__ml_entry *entries;
  size_t n_entries, entries_capacity;
  int32_t *roots;
  size_t n_roots, roots_capacity;
  int64_t n_leaves, n_targets;
} berth__ml_trees;

/* Comparisons, in the order of TreeEnsemble's numbers. */
typedef enum berth__ml_mode {
  BERTH__ML_LEQ,
  BERTH__ML_LT,
  BERTH__ML_GTE,
  BERTH__ML_GT,
  BERTH__ML_EQ,
  BERTH__ML_NEQ,
  BERTH__ML_MEMBER,
  BERTH__ML_LEAF /* of the older ops only */
} berth__ml_mode;

/* The bits of a comparison; with `tracks_missing`, NaN answers yes. */
uint8_t berth__ml_turned(berth__ml_mode mode, bool tracks_missing);

berth_status berth__ml_add_node(berth__ml_trees *t, berth__ml_node node, berth_error *err);
berth_status berth__ml_add_entry(berth__ml_trees *t, berth__ml_entry entry, berth_error *err);
berth_status berth__ml_add_root(berth__ml_trees *t, int32_t root, berth_error *err);
/* Node `at` tests whether its feature is one of the members, which are sorted here: it is replaced by a search tree. */
berth_status berth__ml_set_members(berth__ml_trees *t, size_t at, double *members, size_t count, bool tracks_missing,
                                   berth_error *err);
void berth__ml_trees_free(berth__ml_trees *t);

/* The op on rows x of f32 or f64: [N, targets]. Refuses cycles. */
berth_status berth__ml_emit_trees(berth__onnx_call *call, berth__ml_trees *t, berth_value x, const char *aggregate,
                                  berth_value *out, berth_error *err);

/* Which targets get a weight for every row, whatever path it takes (some tree has a weight for them in all its leaves),
 * and which for some rows. The leaves of tree k are those from first_leaf[k] to first_leaf[k + 1]. */
typedef struct berth__ml_cover {
  bool is_sure, is_possible;
} berth__ml_cover;
berth_status berth__ml_covers(const berth__ml_trees *t, const int32_t *first_leaf, berth__ml_cover *covers,
                              berth_error *err);

#endif
