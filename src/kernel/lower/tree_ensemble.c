/* tree_ensemble: one thread per row walks down the trees, one after the other. The sum for a single target is in a
 * register; for several, each row of the result is accumulated in place. */
#include <math.h>

#include "kernel/lower/math.h"
#include "ops/trees.h"

typedef struct trees {
  berth__lowering *l;
  berth__kernel *k;
  berth__tree_aggregate how;
  int64_t targets;
  bool has_targets, has_starts;
  berth__x row;
  berth__x sum;   /* variable: for one target */
  berth__x place; /* variable: the current node */
} trees;

static berth__x lower_tree_int(const trees *t, uint32_t operand, berth__x at) {
  return berth__l_load(t->l, t->k, operand, at);
}

/* Whether the condition of a node holds for the row. */
static berth__x lower_tree_answer(const trees *t, berth__x node, berth__x word) {
  berth__kernel *k = t->k;
  const bool is_mixed = t->l->call->attrs[BERTH__TREES_MIXED].i != 0;
  const int64_t features = t->l->call->in[BERTH__TREES_X].dim[1];
  const berth__x feature = is_mixed ? berth__x_and(k, word, berth__x_i32(k, BERTH__TREE_FEATURE)) : word;
  const berth__x x =
      berth__l_load(t->l, k, BERTH__TREES_X, berth__x_add(k, berth__x_affine(k, t->row, features, 0), feature));
  const berth__x split = berth__l_load(t->l, k, BERTH__TREES_SPLITS, node);
  const berth__x is_at_most = berth__x_le(k, x, split);
  if (!is_mixed) return is_at_most;
  const berth__x zero = berth__x_i32(k, 0), one = berth__x_i32(k, 1), two = berth__x_i32(k, 2);
  const berth__x outcome = berth__x_add(k, berth__x_select(k, is_at_most, one, zero),
                                        berth__x_select(k, berth__x_le(k, split, x), two, zero));
  const berth__x turned = berth__x2(k, BERTH__INST_shr, word, berth__x_i32(k, BERTH__TREE_FEATURE_BITS));
  const berth__x bits = berth__x2(k, BERTH__INST_xor, turned, berth__x_i32(k, BERTH__TREE_AT_MOST));
  return berth__x_ne(k, berth__x_and(k, berth__x2(k, BERTH__INST_shr, bits, outcome), one), zero);
}

/* From the root of a tree to a leaf, whose position is below 0. No walk is longer than the number of nodes. */
static void lower_tree_walk(const trees *t, berth__x tree) {
  berth__kernel *k = t->k;
  const berth_tensor *nodes = &t->l->call->in[BERTH__TREES_NODES];
  berth__x_set(k, t->place, lower_tree_int(t, BERTH__TREES_ROOTS, tree));
  if (nodes->dim[0] == 0) return;
  berth__x_loop_n(k, nodes->dim[0] + 1); /* one more: a break needs a loop, and a single round is not made as one */
  const berth__x at = berth__x_get(k, t->place);
  berth__x_if(k, berth__x_lt(k, at, berth__x_i32(k, 0)));
  berth__x_break(k);
  berth__x_end(k);
  const berth__x first = berth__x_affine(k, at, BERTH__TREE_COLUMNS, 0);
  const berth__x word = lower_tree_int(t, BERTH__TREES_NODES, first);
  const berth__x is_yes = lower_tree_answer(t, at, word);
  const berth__x column =
      berth__x_select(k, is_yes, berth__x_i32(k, BERTH__TREE_NO + 1), berth__x_i32(k, BERTH__TREE_NO));
  berth__x_set(k, t->place, lower_tree_int(t, BERTH__TREES_NODES, berth__x_add(k, first, column)));
  berth__x_end(k);
}

static berth__x lower_tree_combined(const trees *t, berth__x old, berth__x weight) {
  berth__kernel *k = t->k;
  if (t->how == BERTH__TREE_MIN) return berth__x_select(k, berth__x_le(k, old, weight), old, weight);
  if (t->how == BERTH__TREE_MAX) return berth__x_select(k, berth__x_le(k, weight, old), old, weight);
  return berth__x_add(k, old, weight);
}

static bool lower_tree_is_extreme(const trees *t) { return t->how == BERTH__TREE_MIN || t->how == BERTH__TREE_MAX; }

/* The initial value of a target: for a minimum above any weight, for a maximum below. */
static berth__x lower_tree_start(const trees *t) {
  if (!lower_tree_is_extreme(t)) return berth__x_f32(t->k, 0);
  return berth__x_f32(t->k, t->how == BERTH__TREE_MIN ? INFINITY : -INFINITY);
}

/* The position of a target's result, which may be part of a wider result. */
static berth__x lower_tree_result(const trees *t, berth__x target) {
  return berth__l_place(t->k, &t->l->call->out[0], (berth__x[]){t->row, target});
}

static void lower_tree_add(const trees *t, berth__x target, berth__x entry) {
  berth__kernel *k = t->k;
  const berth__x weight = berth__l_load(t->l, k, BERTH__TREES_WEIGHTS, entry);
  if (t->targets == 1) {
    berth__x_set(k, t->sum, lower_tree_combined(t, berth__x_get(k, t->sum), weight));
    return;
  }
  const berth__x to = lower_tree_result(t, target);
  const uint32_t out = berth__l_out(t->l, k, 0);
  berth__x_store(k, out, to, lower_tree_combined(t, berth__x_load(k, out, to), weight));
}

/* Adds the entries of the leaf at the end of the walk. */
static void lower_tree_take(const trees *t) {
  berth__kernel *k = t->k;
  const berth__x leaf = berth__x_affine(k, berth__x_get(k, t->place), -1, -1);
  if (t->has_starts) {
    const berth__x first = lower_tree_int(t, BERTH__TREES_STARTS, leaf);
    const berth__x last = lower_tree_int(t, BERTH__TREES_STARTS, berth__x_affine(k, leaf, 1, 1));
    const berth__x entry = berth__x_loop(k, first, last, 1);
    lower_tree_add(t, lower_tree_int(t, BERTH__TREES_TARGETS, entry), entry);
    berth__x_end(k);
  } else if (t->has_targets) {
    lower_tree_add(t, lower_tree_int(t, BERTH__TREES_TARGETS, leaf), leaf);
  } else {
    const berth__x target = berth__x_loop_n(k, t->targets);
    lower_tree_add(t, target, berth__x_add(k, berth__x_affine(k, leaf, t->targets, 0), target));
    berth__x_end(k);
  }
}

/* A target that still has its infinite initial value has no weight in any tree. */
static berth__x lower_tree_finished(const trees *t, berth__x score) {
  berth__kernel *k = t->k;
  if (t->how == BERTH__TREE_AVERAGE)
    return berth__x_div(k, score, berth__x_f32(k, (float)t->l->call->in[BERTH__TREES_ROOTS].dim[0]));
  if (!lower_tree_is_extreme(t)) return score;
  return berth__x_select(k, berth__x_eq(k, score, lower_tree_start(t)), berth__x_f32(k, 0), score);
}

static void lower_tree_each_target(const trees *t, bool is_end) {
  berth__kernel *k = t->k;
  const uint32_t out = berth__l_out(t->l, k, 0);
  const berth__x target = berth__x_loop_n(k, t->targets);
  const berth__x to = lower_tree_result(t, target);
  berth__x_store(k, out, to, is_end ? lower_tree_finished(t, berth__x_load(k, out, to)) : lower_tree_start(t));
  berth__x_end(k);
}

berth_status berth__lower_tree_ensemble(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const int64_t rows = call->in[BERTH__TREES_X].dim[0];
  if (rows == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  trees t = {.l = l, .k = k, .how = berth__tree_aggregate_of(call->attrs), .targets = call->out[0].dim[1]};
  t.has_targets = berth__l_has(l, BERTH__TREES_TARGETS);
  t.has_starts = berth__l_has(l, BERTH__TREES_STARTS);
  t.row = berth__l_each_alone(l, k, rows);
  if (t.targets == 1)
    t.sum = berth__x_variable(k, lower_tree_start(&t));
  else
    lower_tree_each_target(&t, false);
  t.place = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x tree = berth__x_loop_n(k, call->in[BERTH__TREES_ROOTS].dim[0]);
  lower_tree_walk(&t, tree);
  lower_tree_take(&t);
  berth__x_end(k);
  if (t.targets == 1)
    berth__l_store(l, k, 0, lower_tree_result(&t, berth__x_i32(k, 0)), lower_tree_finished(&t, berth__x_get(k, t.sum)));
  else if (t.how != BERTH__TREE_SUM)
    lower_tree_each_target(&t, true);
  return berth__l_end(l, k, err);
}
