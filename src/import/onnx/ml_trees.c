#include "import/onnx/ml_trees.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "ops/trees.h"

uint8_t berth__ml_turned(berth__ml_mode mode, bool tracks_missing) {
  static const uint8_t yes[] = {
      [BERTH__ML_LEQ] = 1 << BERTH__TREE_BELOW | 1 << BERTH__TREE_EQUAL,
      [BERTH__ML_LT] = 1 << BERTH__TREE_BELOW,
      [BERTH__ML_GTE] = 1 << BERTH__TREE_ABOVE | 1 << BERTH__TREE_EQUAL,
      [BERTH__ML_GT] = 1 << BERTH__TREE_ABOVE,
      [BERTH__ML_EQ] = 1 << BERTH__TREE_EQUAL,
      [BERTH__ML_NEQ] = 1 << BERTH__TREE_BELOW | 1 << BERTH__TREE_ABOVE | 1 << BERTH__TREE_NAN,
  };
  return (uint8_t)((yes[mode] | (tracks_missing ? 1 << BERTH__TREE_NAN : 0)) ^ BERTH__TREE_AT_MOST);
}

/* ---- Gathering ---- */

berth_status berth__ml_add_node(berth__ml_trees *t, berth__ml_node node, berth_error *err) {
  if (node.feature < 0 || node.feature > BERTH__TREE_FEATURE)
    return berth__fail(err, BERTH_MALFORMED, "node %zu asks for feature %" PRId64 ", which is out of range", t->n_nodes,
                       node.feature);
  if (isnan(node.split)) return berth__fail(err, BERTH_MALFORMED, "the value of node %zu is NaN", t->n_nodes);
  if (t->n_nodes >= INT32_MAX / BERTH__TREE_COLUMNS)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has too many nodes");
  BERTH__TRY(BERTH__RESERVE(t->ctx, t->nodes, t->nodes_capacity, t->n_nodes + 1, err));
  t->nodes[t->n_nodes++] = node;
  return BERTH_OK;
}

berth_status berth__ml_add_entry(berth__ml_trees *t, berth__ml_entry entry, berth_error *err) {
  if (entry.target < 0 || entry.target >= t->n_targets)
    return berth__fail(err, BERTH_MALFORMED, "weight %zu is for target %d of %" PRId64, t->n_entries, entry.target,
                       t->n_targets);
  if (isnan(entry.weight)) return berth__fail(err, BERTH_MALFORMED, "weight %zu is NaN", t->n_entries);
  if (t->n_entries >= INT32_MAX) return berth__fail(err, BERTH_UNSUPPORTED, "it has too many weights");
  BERTH__TRY(BERTH__RESERVE(t->ctx, t->entries, t->entries_capacity, t->n_entries + 1, err));
  t->entries[t->n_entries++] = entry;
  return BERTH_OK;
}

berth_status berth__ml_add_root(berth__ml_trees *t, int32_t root, berth_error *err) {
  if (t->n_roots >= INT32_MAX) return berth__fail(err, BERTH_UNSUPPORTED, "it has too many trees");
  BERTH__TRY(BERTH__RESERVE(t->ctx, t->roots, t->roots_capacity, t->n_roots + 1, err));
  t->roots[t->n_roots++] = root;
  return BERTH_OK;
}

static int ml_trees_compare(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return x < y ? -1 : x > y;
}

/* A binary search among members[first, last), with its root at node `at`. The last question is always equality, so NaN
 * answers no all the way. The depth is logarithmic. */
static berth_status ml_trees_search(berth__ml_trees *t, size_t at, const double *members, size_t first, size_t last,
                                    bool tracks_missing, berth_error *err) {
  const berth__ml_node asked = t->nodes[at];
  if (last - first == 1) {
    t->nodes[at].split = members[first];
    t->nodes[at].turned = berth__ml_turned(BERTH__ML_EQ, tracks_missing);
    return BERTH_OK;
  }
  const size_t middle = first + (last - first) / 2, lower = t->n_nodes, upper = t->n_nodes + 1;
  BERTH__TRY(berth__ml_add_node(t, asked, err));
  BERTH__TRY(berth__ml_add_node(t, asked, err));
  t->nodes[at] = (berth__ml_node){.feature = asked.feature,
                                  .split = members[middle],
                                  .yes = (int32_t)lower,
                                  .no = (int32_t)upper,
                                  .turned = berth__ml_turned(BERTH__ML_LT, false)};
  BERTH__TRY(ml_trees_search(t, lower, members, first, middle, tracks_missing, err));
  return ml_trees_search(t, upper, members, middle, last, tracks_missing, err);
}

berth_status berth__ml_set_members(berth__ml_trees *t, size_t at, double *members, size_t count, bool tracks_missing,
                                   berth_error *err) {
  if (count == 0) return berth__fail(err, BERTH_MALFORMED, "node %zu asks for a member of an empty set", at);
  qsort(members, count, sizeof *members, ml_trees_compare);
  return ml_trees_search(t, at, members, 0, count, tracks_missing, err);
}

void berth__ml_trees_free(berth__ml_trees *t) {
  berth__free(t->ctx, t->nodes);
  berth__free(t->ctx, t->entries);
  berth__free(t->ctx, t->roots);
}

/* ---- Ordering the nodes ---- */

enum { /* values of place[] before a node has its index */
  ML_NEW = -1,
  ML_OPEN = -2 /* on the path to the current node */
};

typedef struct ml_order {
  const berth__ml_trees *t;
  int32_t *place; /* of each node, counted from the end; later from the start */
  int32_t *stack;
  size_t n_stack, n_done;
} ml_order;

/* Continues with an open node: *goes_on is false when both of its branches are done. */
static berth_status ml_order_step(ml_order *o, int32_t node, bool *goes_down, berth_error *err) {
  const int32_t branches[2] = {o->t->nodes[node].no, o->t->nodes[node].yes};
  *goes_down = false;
  for (int i = 0; i < 2; i++) {
    const int32_t to = branches[i];
    if (to < 0 || o->place[to] >= 0) continue;
    if (o->place[to] == ML_OPEN)
      return berth__fail(err, BERTH_MALFORMED, "its trees have a cycle: node %d leads to itself", to);
    o->place[to] = ML_OPEN;
    o->stack[o->n_stack++] = to;
    *goes_down = true;
    return BERTH_OK;
  }
  return BERTH_OK;
}

/* Depth first; a node is done after all its descendants. Read backwards, nodes come before their descendants, and each
 * tree is contiguous. */
static berth_status ml_order_from(ml_order *o, int32_t root, berth_error *err) {
  if (root < 0 || o->place[root] >= 0) return BERTH_OK;
  o->place[root] = ML_OPEN;
  o->stack[0] = root;
  o->n_stack = 1;
  while (o->n_stack != 0) {
    const int32_t node = o->stack[o->n_stack - 1];
    bool goes_down;
    BERTH__TRY(ml_order_step(o, node, &goes_down, err));
    if (goes_down) continue;
    o->place[node] = (int32_t)o->n_done++;
    o->n_stack--;
  }
  return BERTH_OK;
}

/* The indices of all nodes that can be reached from a root; ML_NEW for the others. */
static berth_status ml_order_all(ml_order *o, berth_error *err) {
  for (size_t i = 0; i < o->t->n_nodes; i++) o->place[i] = ML_NEW;
  for (size_t i = o->t->n_roots; i-- > 0;) BERTH__TRY(ml_order_from(o, o->t->roots[i], err));
  for (size_t i = 0; i < o->t->n_nodes; i++)
    if (o->place[i] >= 0) o->place[i] = (int32_t)o->n_done - 1 - o->place[i];
  return BERTH_OK;
}

/* ---- Operands ---- */

typedef struct ml_operands {
  berth__onnx_call *call;
  const berth__ml_trees *t;
  const ml_order *order;
  berth_type type;
  bool is_mixed;
  berth_value in[BERTH__TREES_STARTS + 1];
  size_t n_in;
} ml_operands;

/* Always a constant: shape inference reads it. */
static berth_status ml_constant(const ml_operands *o, berth_type type, uint32_t rank, const int64_t *dim, void *data,
                                berth_value *out, berth_error *err) {
  size_t size = berth_type_size(type);
  for (uint32_t i = 0; i < rank; i++) size *= (size_t)dim[i];
  berth_status status =
      berth_graph_constant(o->call->graph, NULL, type, berth_shape_fixed(rank, dim), data, size, out, err);
  berth__free(o->call->graph->ctx, data);
  return status;
}

static int32_t ml_new_place(const ml_operands *o, int32_t place) { return place < 0 ? place : o->order->place[place]; }

static berth_status ml_node_operands(ml_operands *o, berth_error *err) {
  const int64_t inner = (int64_t)o->order->n_done, dim[2] = {inner, BERTH__TREE_COLUMNS};
  berth_context *ctx = o->call->graph->ctx;
  int32_t *nodes = berth__alloc_array(ctx, (size_t)inner * BERTH__TREE_COLUMNS + 1, sizeof *nodes);
  void *splits = berth__alloc_array(ctx, (size_t)inner + 1, berth_type_size(o->type));
  const berth_tensor room = {.data = splits, .type = o->type};
  if (nodes == NULL || splits == NULL) {
    berth__free(ctx, nodes);
    berth__free(ctx, splits);
    return berth__fail_nomem(err, "the trees of a node");
  }
  for (size_t i = 0; i < o->t->n_nodes; i++) {
    const berth__ml_node *node = &o->t->nodes[i];
    if (o->order->place[i] < 0) continue;
    int32_t *row = nodes + (int64_t)o->order->place[i] * BERTH__TREE_COLUMNS;
    row[BERTH__TREE_WORD] = (int32_t)node->feature | node->turned << BERTH__TREE_FEATURE_BITS;
    row[BERTH__TREE_NO] = ml_new_place(o, node->no);
    row[BERTH__TREE_NO + 1] = ml_new_place(o, node->yes);
    o->is_mixed = o->is_mixed || node->turned != 0;
    berth__store_f64(&room, o->order->place[i], node->split);
  }
  berth_status status = ml_constant(o, BERTH_I32, 2, dim, nodes, &o->in[BERTH__TREES_NODES], err);
  if (status == BERTH_OK) return ml_constant(o, o->type, 1, dim, splits, &o->in[BERTH__TREES_SPLITS], err);
  berth__free(ctx, splits);
  return status;
}

static berth_status ml_root_operand(ml_operands *o, berth_error *err) {
  const int64_t count = (int64_t)o->t->n_roots;
  int32_t *roots = berth__alloc_array(o->call->graph->ctx, o->t->n_roots + 1, sizeof *roots);
  if (roots == NULL) return berth__fail_nomem(err, "the trees of a node");
  for (size_t i = 0; i < o->t->n_roots; i++) roots[i] = ml_new_place(o, o->t->roots[i]);
  return ml_constant(o, BERTH_I32, 1, &count, roots, &o->in[BERTH__TREES_ROOTS], err);
}

/* Entries by leaf, in their original order. */
static berth_status ml_starts(const berth__ml_trees *t, int32_t **starts, int32_t **order, berth_error *err) {
  *starts = berth__alloc_array_zero(t->ctx, (size_t)t->n_leaves + 2, sizeof **starts);
  *order = berth__alloc_array(t->ctx, t->n_entries + 1, sizeof **order);
  if (*starts == NULL || *order == NULL) {
    berth__free(t->ctx, *starts);
    berth__free(t->ctx, *order);
    return berth__fail_nomem(err, "the leaves of a node");
  }
  int32_t *next =
      *starts + 1; /* first counts, then where the next entry of a leaf goes, then where the next leaf starts */
  for (size_t i = 0; i < t->n_entries; i++) next[t->entries[i].leaf + 1]++;
  for (int64_t i = 0; i < t->n_leaves; i++) next[i + 1] += next[i];
  for (size_t i = 0; i < t->n_entries; i++) (*order)[next[t->entries[i].leaf]++] = (int32_t)i;
  return BERTH_OK;
}

/* Counts, tree by tree, the leaves that have an entry for a target. */
typedef struct ml_count {
  int32_t tree, leaf, leaves;
} ml_count;

static void ml_count_entry(ml_count *count, int32_t tree, int32_t leaf) {
  if (count->tree != tree) *count = (ml_count){tree, -1, 0};
  if (count->leaf != leaf) count->leaves++;
  count->leaf = leaf;
}

berth_status berth__ml_covers(const berth__ml_trees *t, const int32_t *first_leaf, berth__ml_cover *covers,
                              berth_error *err) {
  int32_t *starts, *order;
  ml_count *counts = berth__alloc_array(t->ctx, (size_t)t->n_targets, sizeof *counts);
  if (counts == NULL) return berth__fail_nomem(err, "the leaves of a node");
  berth_status status = ml_starts(t, &starts, &order, err);
  if (status != BERTH_OK) {
    berth__free(t->ctx, counts);
    return status;
  }
  for (int64_t i = 0; i < t->n_targets; i++) counts[i] = (ml_count){-1, -1, 0};
  for (size_t i = 0; i < (size_t)t->n_targets; i++) covers[i] = (berth__ml_cover){false, false};
  for (int32_t tree = 0; tree < (int32_t)t->n_roots; tree++)
    for (int32_t leaf = first_leaf[tree]; leaf < first_leaf[tree + 1]; leaf++)
      for (int32_t i = starts[leaf]; i < starts[leaf + 1]; i++) {
        const int32_t target = t->entries[order[i]].target;
        ml_count_entry(&counts[target], tree, leaf);
        covers[target].is_possible = true;
        if (counts[target].leaves == first_leaf[tree + 1] - first_leaf[tree]) covers[target].is_sure = true;
      }
  berth__free(t->ctx, starts);
  berth__free(t->ctx, order);
  berth__free(t->ctx, counts);
  return BERTH_OK;
}

/* All targets of all leaves, with 0 for missing entries, which adds nothing. */
static berth_status ml_dense_weights(ml_operands *o, berth_error *err) {
  const berth__ml_trees *t = o->t;
  const int64_t dim[2] = {t->n_leaves, t->n_targets};
  void *weights = berth__alloc_array_zero(t->ctx, (size_t)(t->n_leaves * t->n_targets) + 1, berth_type_size(o->type));
  const berth_tensor room = {.data = weights, .type = o->type};
  if (weights == NULL) return berth__fail_nomem(err, "the leaves of a node");
  for (size_t i = 0; i < t->n_entries; i++) {
    const berth__ml_entry *e = &t->entries[i];
    const int64_t at = e->leaf * t->n_targets + e->target;
    berth__store_f64(&room, at, berth__load_f64(&room, at) + e->weight);
  }
  o->n_in = BERTH__TREES_WEIGHTS + 1;
  return ml_constant(o, o->type, 2, dim, weights, &o->in[BERTH__TREES_WEIGHTS], err);
}

static berth_status ml_sparse_lists(ml_operands *o, const int32_t *order, berth_error *err) {
  const berth__ml_trees *t = o->t;
  const int64_t count = (int64_t)t->n_entries;
  void *weights = berth__alloc_array(t->ctx, t->n_entries + 1, berth_type_size(o->type));
  int32_t *targets = berth__alloc_array(t->ctx, t->n_entries + 1, sizeof *targets);
  const berth_tensor room = {.data = weights, .type = o->type};
  if (weights == NULL || targets == NULL) {
    berth__free(t->ctx, weights);
    berth__free(t->ctx, targets);
    return berth__fail_nomem(err, "the leaves of a node");
  }
  for (size_t i = 0; i < t->n_entries; i++) {
    berth__store_f64(&room, (int64_t)i, t->entries[order[i]].weight);
    targets[i] = t->entries[order[i]].target;
  }
  berth_status status = ml_constant(o, o->type, 1, &count, weights, &o->in[BERTH__TREES_WEIGHTS], err);
  if (status == BERTH_OK) return ml_constant(o, BERTH_I32, 1, &count, targets, &o->in[BERTH__TREES_TARGETS], err);
  berth__free(t->ctx, targets);
  return status;
}

static berth_status ml_sparse_weights(ml_operands *o, berth_error *err) {
  const int64_t extent = o->t->n_leaves + 1;
  int32_t *starts, *order;
  bool is_one_each = true;
  BERTH__TRY(ml_starts(o->t, &starts, &order, err));
  for (int64_t i = 0; i < o->t->n_leaves; i++) is_one_each = is_one_each && starts[i + 1] - starts[i] == 1;
  berth_status status = ml_sparse_lists(o, order, err);
  berth__free(o->t->ctx, order);
  o->n_in = is_one_each ? BERTH__TREES_TARGETS + 1 : BERTH__TREES_STARTS + 1;
  if (status == BERTH_OK && !is_one_each)
    return ml_constant(o, BERTH_I32, 1, &extent, starts, &o->in[BERTH__TREES_STARTS], err);
  berth__free(o->t->ctx, starts);
  return status;
}

/* If few weights are missing, dense rows take less space than lists of entries with their targets. */
static bool ml_is_dense(const berth__ml_trees *t, const char *aggregate) {
  const bool is_sum = strcmp(aggregate, "sum") == 0 || strcmp(aggregate, "average") == 0;
  if (!is_sum) return false; /* for these, a missing entry is not 0, and two entries are not their sum */
  if (t->n_targets != 0 && t->n_leaves > INT32_MAX / t->n_targets) return false;
  return t->n_leaves * t->n_targets <= 2 * (int64_t)t->n_entries;
}

static berth_status ml_emit_ordered(ml_operands *o, const char *aggregate, berth_value *out, berth_error *err) {
  BERTH__TRY(ml_node_operands(o, err));
  BERTH__TRY(ml_root_operand(o, err));
  BERTH__TRY(ml_is_dense(o->t, aggregate) ? ml_dense_weights(o, err) : ml_sparse_weights(o, err));
  const berth_attr attrs[] = {berth_attr_int("targets", o->t->n_targets), berth_attr_string("aggregate", aggregate),
                              berth_attr_int("mixed", o->is_mixed)};
  return berth__onnx_emit(o->call, "tree_ensemble", o->in, o->n_in, attrs, 3, out, 1, err);
}

berth_status berth__ml_emit_trees(berth__onnx_call *call, berth__ml_trees *t, berth_value x, const char *aggregate,
                                  berth_value *out, berth_error *err) {
  ml_order order = {.t = t};
  ml_operands o = {.call = call, .t = t, .order = &order, .type = berth__onnx_value_type(call, x)};
  if (t->n_roots == 0) return berth__fail(err, BERTH_MALFORMED, "it has no trees");
  order.place = berth__alloc_array(t->ctx, t->n_nodes + 1, sizeof *order.place);
  order.stack = berth__alloc_array(t->ctx, t->n_nodes + 1, sizeof *order.stack);
  o.in[BERTH__TREES_X] = x;
  berth_status status =
      order.place != NULL && order.stack != NULL ? BERTH_OK : berth__fail_nomem(err, "the trees of a node");
  if (status == BERTH_OK) status = ml_order_all(&order, err);
  if (status == BERTH_OK) status = ml_emit_ordered(&o, aggregate, out, err);
  berth__free(t->ctx, order.place);
  berth__free(t->ctx, order.stack);
  return status;
}
