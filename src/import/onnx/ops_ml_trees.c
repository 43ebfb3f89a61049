/* ai.onnx.ml's trees: TreeEnsemble, whose nodes and leaves are numbered, and the older TreeEnsembleRegressor and
 * TreeEnsembleClassifier, whose nodes are identified by a tree id and a node id. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/onnx/compose.h"
#include "import/onnx/converter.h"
#include "import/onnx/ml_trees.h"

/* A list with one entry per node; NULL: it has another length. */
static const int64_t *trees_list(const berth__onnx_call *call, const char *name, uint32_t n, berth_error *err) {
  uint32_t count;
  const int64_t *list = berth__onnx_ints(call, name, &count);
  if (list != NULL && count == n) return list;
  berth__fail(err, BERTH_MALFORMED, "%s has %" PRIu32 " entries, for %" PRIu32 " nodes", name, count, n);
  return NULL;
}

/* ---- The older ops ---- */

typedef struct old_id {
  int64_t tree, node;
  uint32_t at; /* index in the lists of the file */
} old_id;

typedef struct old_trees {
  berth__onnx_call *call;
  uint32_t n;
  const int64_t *tree_ids, *node_ids, *features, *yes, *no, *missing;
  const berth__span *modes;
  uint32_t n_missing;
  berth__ml_numbers splits;
  old_id *ids;         /* sorted by tree and node */
  int32_t *place;      /* per node: index of an inner node, or ~leaf */
  int32_t *first_leaf; /* per tree, and the end */
  berth__ml_trees trees;
} old_trees;

static int old_by_id(const void *a, const void *b) {
  const old_id *x = a, *y = b;
  if (x->tree != y->tree) return x->tree < y->tree ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

static int old_by_place(const void *a, const void *b) {
  const old_id *x = a, *y = b;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* The index of a node in the lists; UINT32_MAX: not found. */
static uint32_t old_find(const old_trees *o, int64_t tree, int64_t node) {
  const old_id wanted = {tree, node, 0};
  const old_id *found = bsearch(&wanted, o->ids, o->n, sizeof *o->ids, old_by_id);
  return found != NULL ? found->at : UINT32_MAX;
}

static berth_status old_lists(old_trees *o, berth_error *err) {
  uint32_t n_modes;
  o->tree_ids = berth__onnx_ints(o->call, "nodes_treeids", &o->n);
  if (o->n == 0 || o->n > INT32_MAX / 4) return berth__fail(err, BERTH_MALFORMED, "it has %" PRIu32 " nodes", o->n);
  if ((o->node_ids = trees_list(o->call, "nodes_nodeids", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->features = trees_list(o->call, "nodes_featureids", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->yes = trees_list(o->call, "nodes_truenodeids", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->no = trees_list(o->call, "nodes_falsenodeids", o->n, err)) == NULL) return BERTH_MALFORMED;
  o->missing = berth__onnx_ints(o->call, "nodes_missing_value_tracks_true", &o->n_missing);
  o->modes = berth__onnx_strings(o->call, "nodes_modes", &n_modes);
  BERTH__TRY(berth__ml_numbers_of(o->call, "nodes_values", "nodes_values_as_tensor", &o->splits, err));
  if (n_modes == o->n && o->splits.count == o->n && o->n_missing <= o->n) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED,
                     "%" PRIu32 " modes, %" PRIu32 " values and %" PRIu32 " tracks of missing values for %" PRIu32
                     " nodes",
                     n_modes, o->splits.count, o->n_missing, o->n);
}

static berth_status old_mode(const old_trees *o, uint32_t at, berth__ml_mode *out, berth_error *err) {
  static const char *const names[] = {
      [BERTH__ML_LEQ] = "BRANCH_LEQ", [BERTH__ML_LT] = "BRANCH_LT", [BERTH__ML_GTE] = "BRANCH_GTE",
      [BERTH__ML_GT] = "BRANCH_GT",   [BERTH__ML_EQ] = "BRANCH_EQ", [BERTH__ML_NEQ] = "BRANCH_NEQ",
      [BERTH__ML_MEMBER] = "",        [BERTH__ML_LEAF] = "LEAF"};
  for (int i = 0; i <= BERTH__ML_LEAF; i++)
    if (i != BERTH__ML_MEMBER && berth__span_is(o->modes[at], names[i])) return *out = (berth__ml_mode)i, BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "node %" PRIu32 " has the mode '%.*s', which is not known", at,
                     BERTH__SPAN_TEXT(o->modes[at]));
}

/* Sorts the ids and finds the trees: `roots` gets the first node of each tree that the file lists. */
static berth_status old_sort(old_trees *o, old_id *roots, uint32_t *n_roots, berth_error *err) {
  for (uint32_t i = 0; i < o->n; i++) o->ids[i] = (old_id){o->tree_ids[i], o->node_ids[i], i};
  qsort(o->ids, o->n, sizeof *o->ids, old_by_id);
  *n_roots = 0;
  for (uint32_t i = 0; i < o->n; i++) {
    if (i != 0 && old_by_id(&o->ids[i - 1], &o->ids[i]) == 0)
      return berth__fail(err, BERTH_MALFORMED, "node %" PRId64 " of tree %" PRId64 " is there twice", o->ids[i].node,
                         o->ids[i].tree);
    if (i == 0 || o->ids[i - 1].tree != o->ids[i].tree) {
      roots[*n_roots] = o->ids[i];
      roots[(*n_roots)++].node = i; /* where the ids of the tree begin */
    } else if (o->ids[i].at < roots[*n_roots - 1].at) {
      roots[*n_roots - 1].at = o->ids[i].at;
    }
  }
  qsort(roots, *n_roots, sizeof *roots, old_by_place);
  return BERTH_OK;
}

/* Numbers inner nodes and leaves, tree by tree. */
static berth_status old_number(old_trees *o, const old_id *roots, uint32_t n_roots, berth_error *err) {
  int32_t inner = 0, leaves = 0;
  for (uint32_t t = 0; t < n_roots; t++) {
    o->first_leaf[t] = leaves;
    for (uint32_t i = (uint32_t)roots[t].node; i < o->n && o->ids[i].tree == roots[t].tree; i++) {
      berth__ml_mode mode = BERTH__ML_LEQ;
      BERTH__TRY(old_mode(o, o->ids[i].at, &mode, err));
      o->place[o->ids[i].at] = mode == BERTH__ML_LEAF ? ~leaves++ : inner++;
    }
  }
  o->first_leaf[n_roots] = leaves;
  o->trees.n_leaves = leaves;
  return BERTH_OK;
}

static berth_status old_branch(const old_trees *o, uint32_t at, int64_t to, int32_t *place, berth_error *err) {
  const uint32_t found = old_find(o, o->tree_ids[at], to);
  if (found == UINT32_MAX)
    return berth__fail(err, BERTH_MALFORMED,
                       "node %" PRId64 " of tree %" PRId64 " leads to node %" PRId64 ", which is not there",
                       o->node_ids[at], o->tree_ids[at], to);
  *place = o->place[found];
  return BERTH_OK;
}

static berth_status old_add_node(old_trees *o, uint32_t at, berth_error *err) {
  berth__ml_node node = {.feature = o->features[at], .split = berth__ml_number(&o->splits, at)};
  berth__ml_mode mode = BERTH__ML_LEQ;
  BERTH__TRY(old_mode(o, at, &mode, err));
  if (mode == BERTH__ML_LEAF) return BERTH_OK;
  node.turned = berth__ml_turned(mode, at < o->n_missing && o->missing[at] == 1);
  BERTH__TRY(old_branch(o, at, o->yes[at], &node.yes, err));
  BERTH__TRY(old_branch(o, at, o->no[at], &node.no, err));
  return berth__ml_add_node(&o->trees, node, err);
}

/* Adds inner nodes in the order of their numbers. */
static berth_status old_add_nodes(old_trees *o, berth_error *err) {
  old_id *roots = berth__alloc_array(o->trees.ctx, o->n, sizeof *roots);
  uint32_t n_roots = 0;
  if (roots == NULL) return berth__fail_nomem(err, "the trees of a node");
  berth_status status = old_sort(o, roots, &n_roots, err);
  if (status == BERTH_OK) status = old_number(o, roots, n_roots, err);
  for (uint32_t t = 0; t < n_roots && status == BERTH_OK; t++) {
    for (uint32_t i = (uint32_t)roots[t].node; i < o->n && o->ids[i].tree == roots[t].tree && status == BERTH_OK; i++)
      status = old_add_node(o, o->ids[i].at, err);
    if (status == BERTH_OK) status = berth__ml_add_root(&o->trees, o->place[roots[t].at], err);
  }
  berth__free(o->trees.ctx, roots);
  return status;
}

/* Weights of nodes that are not leaves are ignored: some converters write them. */
static berth_status old_add_entries(old_trees *o, const char *kind, berth_error *err) {
  char name[4][32];
  uint32_t n_trees, n_nodes, n_ids;
  berth__ml_numbers weights;
  static const char *const parts[] = {"treeids", "nodeids", "ids", "weights"};
  for (int i = 0; i < 4; i++) snprintf(name[i], sizeof name[i], "%s_%s", kind, parts[i]);
  const int64_t *trees = berth__onnx_ints(o->call, name[0], &n_trees);
  const int64_t *nodes = berth__onnx_ints(o->call, name[1], &n_nodes);
  const int64_t *ids = berth__onnx_ints(o->call, name[2], &n_ids);
  char tensor[64];
  snprintf(tensor, sizeof tensor, "%s_as_tensor", name[3]);
  BERTH__TRY(berth__ml_numbers_of(o->call, name[3], tensor, &weights, err));
  berth_status status = BERTH_OK;
  if (n_trees != n_ids || n_nodes != n_ids || weights.count != n_ids)
    status = berth__fail(err, BERTH_MALFORMED,
                         "%" PRIu32 " tree ids, %" PRIu32 " node ids, %" PRIu32 " ids and %" PRIu32 " weights", n_trees,
                         n_nodes, n_ids, weights.count);
  for (uint32_t i = 0; i < n_ids && status == BERTH_OK; i++) {
    const uint32_t at = old_find(o, trees[i], nodes[i]);
    if (at == UINT32_MAX)
      status = berth__fail(err, BERTH_MALFORMED,
                           "weight %" PRIu32 " is of node %" PRId64 " of tree %" PRId64 ", which is not there", i,
                           nodes[i], trees[i]);
    else if (ids[i] < 0 || ids[i] > INT32_MAX)
      status = berth__fail(err, BERTH_MALFORMED, "weight %" PRIu32 " is for target %" PRId64, i, ids[i]);
    else if (o->place[at] < 0)
      status = berth__ml_add_entry(
          &o->trees, (berth__ml_entry){~o->place[at], (int32_t)ids[i], berth__ml_number(&weights, i)}, err);
  }
  berth__ml_numbers_free(o->call, &weights);
  return status;
}

static berth_status old_read(old_trees *o, const char *kind, berth_error *err) {
  BERTH__TRY(old_lists(o, err));
  o->ids = berth__alloc_array(o->trees.ctx, o->n, sizeof *o->ids);
  o->place = berth__alloc_array_zero(o->trees.ctx, o->n, sizeof *o->place);
  o->first_leaf = berth__alloc_array(o->trees.ctx, (size_t)o->n + 1, sizeof *o->first_leaf);
  if (o->ids == NULL || o->place == NULL || o->first_leaf == NULL) return berth__fail_nomem(err, "the trees of a node");
  BERTH__TRY(old_add_nodes(o, err));
  return old_add_entries(o, kind, err);
}

static void old_free(old_trees *o) {
  berth__ml_numbers_free(o->call, &o->splits);
  berth__free(o->trees.ctx, o->ids);
  berth__free(o->trees.ctx, o->place);
  berth__free(o->trees.ctx, o->first_leaf);
  berth__ml_trees_free(&o->trees);
}

/* ---- Scores ---- */

static berth_type tree_type(const berth__onnx_call *call) {
  return berth__onnx_value_type(call, call->in[0]) == BERTH_F64 ? BERTH_F64 : BERTH_F32;
}

/* base_values as a row in the scores' type. */
static berth_value tree_base(berth__onnx_chain *c, const berth__ml_numbers *base, uint32_t first, uint32_t count,
                             berth_type type) {
  const int64_t extent = count;
  berth_value out = BERTH_VALUE_NONE;
  if (c->status != BERTH_OK) return out;
  void *room = berth__alloc_array(c->call->graph->ctx, count, berth_type_size(type));
  const berth_tensor tensor = {.data = room, .type = type};
  if (room == NULL) return c->status = berth__fail_nomem(c->err, "the numbers of a node"), out;
  for (uint32_t i = 0; i < count; i++) berth__store_f64(&tensor, i, berth__ml_number(base, first + i));
  c->status = berth__onnx_add_made(c->call, type, 1, &extent, room, &out, c->err);
  return out;
}

static berth_value tree_with_base(berth__onnx_chain *c, berth_value scores, const berth__ml_numbers *base,
                                  uint32_t first, uint32_t count) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_type type = berth__onnx_value_type(c->call, scores);
  return berth__chain_binary(c, "add", scores, tree_base(c, base, first, count, type));
}

/* ---- TreeEnsembleRegressor ---- */

static const char *const aggregate_names[] = {"average", "sum", "min", "max"}; /* in TreeEnsemble's order */

static berth_status tree_aggregate_of(const berth__onnx_call *call, const char **out, berth_error *err) {
  static const char *const words[] = {"AVERAGE", "SUM", "MIN", "MAX"};
  const berth__span given = berth__onnx_string(call, "aggregate_function", "SUM");
  for (int i = 0; i < 4; i++)
    if (berth__span_is(given, words[i])) return *out = aggregate_names[i], BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "its aggregate_function '%.*s' is not known", BERTH__SPAN_TEXT(given));
}

static berth_status regressor_emit(old_trees *o, const berth__ml_numbers *base, berth_error *err) {
  berth__onnx_call *call = o->call;
  berth__onnx_chain c = {call, err, BERTH_OK};
  berth__ml_transform transform;
  const char *aggregate = NULL;
  const int64_t targets = berth__onnx_int(call, "n_targets", 0);
  if (targets < 1 || targets > INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED, "it has %" PRId64 " targets", targets);
  if (base->count != 0 && base->count != targets)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " base values for %" PRId64 " targets", base->count, targets);
  BERTH__TRY(berth__ml_transform_of(call, &transform, err));
  BERTH__TRY(tree_aggregate_of(call, &aggregate, err));
  o->trees.n_targets = targets;
  BERTH__TRY(old_read(o, "target", err));
  berth_value scores = BERTH_VALUE_NONE, x = berth__ml_rows(&c, call->in[0], tree_type(call));
  BERTH__TRY(c.status);
  BERTH__TRY(berth__ml_emit_trees(call, &o->trees, x, aggregate, &scores, err));
  if (base->count != 0) scores = tree_with_base(&c, scores, base, 0, base->count);
  scores = berth__chain_cast(&c, scores, BERTH_F32);
  berth__onnx_set(call, 0, berth__ml_transformed(&c, transform, scores, targets == 1));
  return c.status;
}

static berth_status convert_tree_regressor(berth__onnx_call *call, berth_error *err) {
  old_trees o = {.call = call, .trees = {.ctx = call->graph->ctx}};
  berth__ml_numbers base;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__ml_numbers_of(call, "base_values", "base_values_as_tensor", &base, err));
  berth_status status = regressor_emit(&o, &base, err);
  berth__ml_numbers_free(call, &base);
  old_free(&o);
  return status;
}

/* ---- TreeEnsembleClassifier ---- */

typedef struct classifier {
  berth__onnx_chain c;
  old_trees o;
  berth__ml_labels labels;
  berth__ml_transform transform;
  berth__ml_numbers base;
  berth__ml_cover *covers; /* per class */
  berth_value x;
} classifier;

/* The largest score among the classes that a row has weights for. The others have no score, not even 0. */
static berth_value classifier_touched(classifier *f) {
  berth__onnx_chain *c = &f->c;
  berth_value touched = BERTH_VALUE_NONE;
  if (c->status != BERTH_OK) return touched;
  for (size_t i = 0; i < f->o.trees.n_entries; i++) f->o.trees.entries[i].weight = 1;
  c->status = berth__ml_emit_trees(c->call, &f->o.trees, f->x, "max", &touched, c->err);
  return berth__chain_with(c, "gt", touched, 0);
}

static berth_value classifier_best(berth__onnx_chain *c, berth_value scores) {
  const berth_attr along[] = {berth_attr_int("axis", 1), berth_attr_int("keepdims", 0)};
  return berth__chain_emit(c, "arg_max", &scores, 1, along, 2);
}

static void classifier_many(classifier *f, berth_value scores) {
  berth__onnx_chain *c = &f->c;
  bool are_sure = f->base.count != 0;
  if (f->base.count != 0) scores = tree_with_base(c, scores, &f->base, 0, f->base.count);
  for (uint32_t i = 0, sure = 1; i < f->labels.count && !are_sure; i++) {
    sure = sure && f->covers[i].is_sure;
    are_sure = sure && i + 1 == f->labels.count;
  }
  berth_value judged = scores;
  if (!are_sure && c->status == BERTH_OK) {
    const berth_value least = berth__chain_scalar(c, berth__onnx_value_type(c->call, scores), (double)-INFINITY);
    judged = berth__chain_where(c, classifier_touched(f), scores, least);
  }
  berth__ml_set_label(c, &f->labels, classifier_best(c, judged));
  scores = berth__chain_cast(c, scores, BERTH_F32);
  berth__onnx_set(c->call, 1, berth__ml_transformed(c, f->transform, scores, false));
}

static bool classifier_is_positive(const classifier *f) {
  for (size_t i = 0; i < f->o.trees.n_entries; i++)
    if (f->o.trees.entries[i].weight < 0) return false;
  return true;
}

/* The class index, i64 [N], from the score of the second class, [N, 1]. */
static berth_value classifier_is_second(berth__onnx_chain *c, berth_value score, double limit) {
  const int64_t flat = -1;
  const berth_value is_over = berth__chain_with(c, "gt", score, limit);
  return berth__chain_cast(c, berth__chain_reshape(c, is_over, &flat, 1), BERTH_I64);
}

static const berth__ml_labels places = {.ints = (const int64_t[]){0, 1}, .count = 2};

/* One score for two classes, the usual form: weights are given for class 0 only, and mean the second class. */
static void classifier_one_score(classifier *f, berth_value score) {
  berth__onnx_chain *c = &f->c;
  const bool is_positive = classifier_is_positive(f);
  if (f->base.count != 0) score = tree_with_base(c, score, &f->base, 0, 1);
  berth__ml_set_label(c, &f->labels, classifier_is_second(c, score, is_positive ? 0.5 : 0));
  berth_value both;
  if (f->base.count == 2) { /* a class without weights stays 0, whatever its base value is */
    both = berth__ml_beside(c, score, berth__chain_with(c, "mul", score, 0));
    both = berth__ml_transformed(c, f->transform, berth__chain_cast(c, both, BERTH_F32), false);
  } else {
    both = berth__ml_two_classes(c, f->transform, score, !is_positive);
  }
  berth__onnx_set(c->call, 1, both);
}

/* Weights for both classes, or for the second only. */
static void classifier_two_scores(classifier *f, berth_value scores) {
  berth__onnx_chain *c = &f->c;
  const bool is_single = !f->covers[0].is_possible;
  berth_value first = berth__chain_slice(c, scores, 1, 0, 1), second = berth__chain_slice(c, scores, 1, 1, 2);
  if (f->base.count == 2) {
    second = tree_with_base(c, first, &f->base, 1, 1);
    first = berth__chain_unary(c, "neg", second);
  } else if (f->base.count == 1) {
    first = tree_with_base(c, first, &f->base, 0, 1);
  }
  if (is_single) first = berth__chain_with(c, "mul", second, 0); /* a class without weights stays 0 */
  const double limit = is_single && classifier_is_positive(f) ? 0.5 : 0;
  berth_value index = classifier_is_second(c, second, limit);
  berth__ml_set_label(c, is_single || f->labels.are_strings ? &f->labels : &places, index);
  const berth_value both = berth__chain_cast(c, berth__ml_beside(c, first, second), BERTH_F32);
  berth__onnx_set(c->call, 1, berth__ml_transformed(c, f->transform, both, false));
}

static void classifier_single(classifier *f, berth_value score) {
  berth__onnx_chain *c = &f->c;
  if (f->base.count == 1) score = tree_with_base(c, score, &f->base, 0, 1);
  berth__ml_set_label(c, f->labels.are_strings ? &f->labels : &places, classifier_is_second(c, score, 0));
  berth__onnx_set(c->call, 1, berth__ml_transformed(c, f->transform, berth__chain_cast(c, score, BERTH_F32), true));
}

static berth_status classifier_check_base(const classifier *f, berth_error *err) {
  const uint32_t classes = f->labels.count, count = f->base.count;
  if (classes == 0) return berth__fail(err, BERTH_MALFORMED, "it has no class labels");
  if (count == 0 || (classes == 2 ? count <= 2 : count == classes)) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " base values for %" PRIu32 " classes", count, classes);
}

static berth_status classifier_emit(classifier *f, berth_error *err) {
  berth__onnx_call *call = f->c.call;
  berth__onnx_chain *c = &f->c;
  berth_value scores = BERTH_VALUE_NONE;
  BERTH__TRY(classifier_check_base(f, err));
  f->o.trees.n_targets = f->labels.count;
  BERTH__TRY(old_read(&f->o, "class", err));
  f->covers = berth__alloc_array(call->graph->ctx, f->labels.count, sizeof *f->covers);
  if (f->covers == NULL) return berth__fail_nomem(err, "the classes of a node");
  BERTH__TRY(berth__ml_covers(&f->o.trees, f->o.first_leaf, f->covers, err));
  const bool is_one_score = f->labels.count == 2 && !f->covers[1].is_possible;
  if (f->labels.count == 2 && !is_one_score && !f->covers[1].is_sure)
    return berth__onnx_unsupported(call, err, "some rows would have no weight for the second of its two classes");
  if (is_one_score) f->o.trees.n_targets = 1;
  f->x = berth__ml_rows(c, call->in[0], tree_type(call));
  BERTH__TRY(c->status);
  BERTH__TRY(berth__ml_emit_trees(call, &f->o.trees, f->x, "sum", &scores, err));
  if (f->labels.count == 1)
    classifier_single(f, scores);
  else if (is_one_score)
    classifier_one_score(f, scores);
  else if (f->labels.count == 2)
    classifier_two_scores(f, scores);
  else
    classifier_many(f, scores);
  return c->status;
}

static berth_status convert_tree_classifier(berth__onnx_call *call, berth_error *err) {
  classifier f = {.c = {call, err, BERTH_OK}, .o = {.call = call, .trees = {.ctx = call->graph->ctx}}};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__ml_transform_of(call, &f.transform, err));
  BERTH__TRY(berth__ml_labels_of(call, "classlabels_int64s", "classlabels_strings", &f.labels, err));
  BERTH__TRY(berth__ml_numbers_of(call, "base_values", "base_values_as_tensor", &f.base, err));
  berth_status status = classifier_emit(&f, err);
  berth__free(call->graph->ctx, f.covers);
  berth__ml_numbers_free(call, &f.base);
  old_free(&f.o);
  return status;
}

/* ---- TreeEnsemble ---- */

typedef struct new_trees {
  berth__onnx_call *call;
  uint32_t n, n_leaves, n_missing;
  const int64_t *features, *yes, *no, *yes_is_leaf, *no_is_leaf, *missing, *leaf_targets;
  berth__ml_numbers splits, weights, members;
  const uint8_t *modes;
  void *owned_modes;
  uint32_t next_member;
  berth__ml_trees trees;
} new_trees;

static berth_status new_modes(new_trees *o, berth_error *err) {
  const berth__onnx_attr *attr = berth__onnx_find(o->call, "nodes_modes");
  const void *data = NULL;
  berth_type type = BERTH_TYPE_NONE;
  size_t size = 0;
  if (attr != NULL && attr->tensor != NULL)
    BERTH__TRY(
        berth__onnx_elements(attr->tensor, o->call->converter->files, &type, &data, &size, &o->owned_modes, err));
  o->modes = data;
  if (type != BERTH_U8 || size != o->n)
    return berth__fail(err, BERTH_MALFORMED, "nodes_modes must be a tensor of u8 with %" PRIu32 " elements", o->n);
  return BERTH_OK;
}

static berth_status new_lists(new_trees *o, berth_error *err) {
  berth__onnx_call *call = o->call;
  o->features = berth__onnx_ints(call, "nodes_featureids", &o->n);
  if (o->n == 0 || o->n > INT32_MAX / 4) return berth__fail(err, BERTH_MALFORMED, "it has %" PRIu32 " nodes", o->n);
  if ((o->yes = trees_list(o->call, "nodes_truenodeids", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->no = trees_list(o->call, "nodes_falsenodeids", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->yes_is_leaf = trees_list(o->call, "nodes_trueleafs", o->n, err)) == NULL) return BERTH_MALFORMED;
  if ((o->no_is_leaf = trees_list(o->call, "nodes_falseleafs", o->n, err)) == NULL) return BERTH_MALFORMED;
  o->missing = berth__onnx_ints(call, "nodes_missing_value_tracks_true", &o->n_missing);
  o->leaf_targets = berth__onnx_ints(call, "leaf_targetids", &o->n_leaves);
  BERTH__TRY(new_modes(o, err));
  BERTH__TRY(berth__ml_numbers_of(call, NULL, "nodes_splits", &o->splits, err));
  BERTH__TRY(berth__ml_numbers_of(call, NULL, "leaf_weights", &o->weights, err));
  BERTH__TRY(berth__ml_numbers_of(call, NULL, "membership_values", &o->members, err));
  if (o->splits.count == o->n && (o->n_missing == 0 || o->n_missing == o->n) && o->weights.count == o->n_leaves)
    return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED,
                     "%" PRIu32 " splits and %" PRIu32 " tracks of missing values for %" PRIu32 " nodes, %" PRIu32
                     " weights for %" PRIu32 " leaves",
                     o->splits.count, o->n_missing, o->n, o->weights.count, o->n_leaves);
}

static berth_status new_branch(const new_trees *o, uint32_t at, int64_t to, bool is_leaf, int32_t *place,
                               berth_error *err) {
  if (to < 0 || to >= (is_leaf ? o->n_leaves : o->n))
    return berth__fail(err, BERTH_MALFORMED, "node %" PRIu32 " leads to %s %" PRId64 ", which is not there", at,
                       is_leaf ? "leaf" : "node", to);
  *place = is_leaf ? ~(int32_t)to : (int32_t)to;
  return BERTH_OK;
}

static berth_status new_add_node(new_trees *o, uint32_t at, berth_error *err) {
  const bool tracks = at < o->n_missing && o->missing[at] != 0, is_member = o->modes[at] == BERTH__ML_MEMBER;
  berth__ml_node node = {.feature = o->features[at], .split = is_member ? 0 : berth__ml_number(&o->splits, at)};
  if (o->modes[at] > BERTH__ML_MEMBER)
    return berth__fail(err, BERTH_MALFORMED, "node %" PRIu32 " has mode %d, which is not known", at, o->modes[at]);
  if (!is_member) node.turned = berth__ml_turned((berth__ml_mode)o->modes[at], tracks);
  BERTH__TRY(new_branch(o, at, o->yes[at], o->yes_is_leaf[at] != 0, &node.yes, err));
  BERTH__TRY(new_branch(o, at, o->no[at], o->no_is_leaf[at] != 0, &node.no, err));
  return berth__ml_add_node(&o->trees, node, err);
}

/* The members of a set, up to the next NaN, in the order of the nodes that test them. */
static berth_status new_members(new_trees *o, uint32_t at, berth_error *err) {
  const bool tracks = at < o->n_missing && o->missing[at] != 0;
  uint32_t count = 0;
  while (o->next_member + count < o->members.count && !isnan(berth__ml_number(&o->members, o->next_member + count)))
    count++;
  double *members = berth__alloc_array(o->trees.ctx, (size_t)count + 1, sizeof *members);
  if (members == NULL) return berth__fail_nomem(err, "the members of a set");
  for (uint32_t i = 0; i < count; i++) members[i] = berth__ml_number(&o->members, o->next_member + i);
  o->next_member += count + 1;
  berth_status status = berth__ml_set_members(&o->trees, at, members, count, tracks, err);
  berth__free(o->trees.ctx, members);
  return status;
}

/* A root whose branches lead to the same leaf is that leaf. */
static berth_status new_add_roots(new_trees *o, berth_error *err) {
  uint32_t count;
  const int64_t *roots = berth__onnx_ints(o->call, "tree_roots", &count);
  for (uint32_t i = 0; i < count; i++) {
    if (roots[i] < 0 || roots[i] >= o->n)
      return berth__fail(err, BERTH_MALFORMED, "tree %" PRIu32 " begins at node %" PRId64 ", which is not there", i,
                         roots[i]);
    BERTH__TRY(berth__ml_add_root(&o->trees, (int32_t)roots[i], err));
  }
  return BERTH_OK;
}

static berth_status new_read(new_trees *o, berth_error *err) {
  BERTH__TRY(new_lists(o, err));
  o->trees.n_leaves = o->n_leaves;
  for (uint32_t i = 0; i < o->n; i++) BERTH__TRY(new_add_node(o, i, err));
  for (uint32_t i = 0; i < o->n; i++)
    if (o->modes[i] == BERTH__ML_MEMBER) BERTH__TRY(new_members(o, i, err));
  for (uint32_t i = 0; i < o->n_leaves; i++) {
    if (o->leaf_targets[i] < 0 || o->leaf_targets[i] > INT32_MAX)
      return berth__fail(err, BERTH_MALFORMED, "leaf %" PRIu32 " is for target %" PRId64, i, o->leaf_targets[i]);
    const berth__ml_entry entry = {(int32_t)i, (int32_t)o->leaf_targets[i], berth__ml_number(&o->weights, i)};
    BERTH__TRY(berth__ml_add_entry(&o->trees, entry, err));
  }
  return new_add_roots(o, err);
}

static berth_status new_emit(new_trees *o, berth_error *err) {
  berth__onnx_call *call = o->call;
  berth__onnx_chain c = {call, err, BERTH_OK};
  const int64_t aggregate = berth__onnx_int(call, "aggregate_function", 1);
  const int64_t transform = berth__onnx_int(call, "post_transform", BERTH__ML_NONE);
  o->trees.n_targets = berth__onnx_int(call, "n_targets", 1);
  if (aggregate < 0 || aggregate > 3 || transform < 0 || transform > BERTH__ML_PROBIT || o->trees.n_targets < 1 ||
      o->trees.n_targets > INT32_MAX)
    return berth__fail(err, BERTH_MALFORMED,
                       "aggregate_function %" PRId64 ", post_transform %" PRId64 " or n_targets %" PRId64
                       " is not known",
                       aggregate, transform, o->trees.n_targets);
  BERTH__TRY(new_read(o, err));
  berth_value scores = BERTH_VALUE_NONE, x = berth__ml_rows(&c, call->in[0], tree_type(call));
  BERTH__TRY(c.status);
  BERTH__TRY(berth__ml_emit_trees(call, &o->trees, x, aggregate_names[aggregate], &scores, err));
  if (transform != BERTH__ML_NONE) {
    scores = berth__chain_cast(&c, scores, BERTH_F32);
    scores = berth__ml_transformed(&c, (berth__ml_transform)transform, scores, o->trees.n_targets == 1);
  }
  berth__onnx_set(call, 0, berth__chain_cast(&c, scores, berth__onnx_value_type(call, call->in[0])));
  return c.status;
}

static berth_status convert_tree_ensemble(berth__onnx_call *call, berth_error *err) {
  new_trees o = {.call = call, .trees = {.ctx = call->graph->ctx}};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_status status = new_emit(&o, err);
  berth__ml_numbers_free(call, &o.splits);
  berth__ml_numbers_free(call, &o.weights);
  berth__ml_numbers_free(call, &o.members);
  berth__free(call->graph->ctx, o.owned_modes);
  berth__ml_trees_free(&o.trees);
  return status;
}

const berth__onnx_handler berth__onnx_ml_trees[] = {
    {"TreeEnsemble", convert_tree_ensemble, NULL},
    {"TreeEnsembleRegressor", convert_tree_regressor, NULL},
    {"TreeEnsembleClassifier", convert_tree_classifier, NULL},
    {NULL, NULL, NULL},
};
