/* tree_ensemble: the sum (or average, minimum or maximum), per target, of the leaves that many decision trees reach for
 * each row of x. trees.h describes the layout of trees in the operands, which must be constants: a shape depends on
 * them, and inference checks every index in them, so that no kernel has to. An item is one row. */
#include <inttypes.h>
#include <math.h>

#include "ops/registry.h"
#include "ops/trees.h"

static const berth_attr attrs[] = {
    [BERTH__TREES_N_TARGETS] = {.name = "targets", .kind = BERTH_ATTR_INT},
    [BERTH__TREES_AGGREGATE] = {.name = "aggregate", .kind = BERTH_ATTR_STRING, .s = "sum"},
    [BERTH__TREES_MIXED] = {.name = "mixed", .kind = BERTH_ATTR_INT, .i = 1}};

static const char *const aggregates[] = {
    [BERTH__TREE_SUM] = "sum", [BERTH__TREE_AVERAGE] = "average", [BERTH__TREE_MIN] = "min", [BERTH__TREE_MAX] = "max"};

berth__tree_aggregate berth__tree_aggregate_of(const berth_attr *attr) {
  for (int i = 0; i < BERTH__TREE_AGGREGATES; i++)
    if (strcmp(attr[BERTH__TREES_AGGREGATE].s, aggregates[i]) == 0) return (berth__tree_aggregate)i;
  return BERTH__TREE_AGGREGATES;
}

static bool trees_has(const berth_op_call *call, uint32_t i) {
  return i < call->n_in && call->in[i].type != BERTH_TYPE_NONE;
}

berth__tree_leaves berth__tree_leaves_of(const berth_op_call *call) {
  return (berth__tree_leaves){
      .targets = call->out[0].dim[1],
      .target = trees_has(call, BERTH__TREES_TARGETS) ? call->in[BERTH__TREES_TARGETS].data : NULL,
      .starts = trees_has(call, BERTH__TREES_STARTS) ? call->in[BERTH__TREES_STARTS].data : NULL,
  };
}

/* ---- Inference ---- */

typedef struct trees_sizes {
  int64_t inner, trees, leaves, weights, targets;
} trees_sizes;

static bool trees_is_given(const berth__infer *infer, uint32_t i) {
  return i < infer->n_in && infer->in_type[i] != BERTH_TYPE_NONE;
}

static berth_status trees_want_list(const berth__infer *infer, uint32_t i, berth_type type, berth_error *err) {
  BERTH__TRY(berth__want_type(infer, i, type, err));
  return berth__want_rank(infer, i, 1, 1, err);
}

static berth_status trees_check_types(const berth__infer *infer, berth_error *err) {
  const berth_type type = infer->in_type[BERTH__TREES_X];
  int64_t extent;
  if (type != BERTH_F32 && type != BERTH_F64)
    return berth__fail(err, BERTH_INVALID, "x has the type %s, expected f32 or f64", berth_type_name(type));
  BERTH__TRY(berth__want_rank(infer, BERTH__TREES_X, 2, 2, err));
  BERTH__TRY(berth__want_type(infer, BERTH__TREES_NODES, BERTH_I32, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__TREES_NODES, 2, 2, err));
  BERTH__TRY(trees_want_list(infer, BERTH__TREES_SPLITS, type, err));
  BERTH__TRY(trees_want_list(infer, BERTH__TREES_ROOTS, BERTH_I32, err));
  BERTH__TRY(berth__want_type(infer, BERTH__TREES_WEIGHTS, type, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__TREES_WEIGHTS, 1, 2, err));
  if (trees_is_given(infer, BERTH__TREES_TARGETS))
    BERTH__TRY(trees_want_list(infer, BERTH__TREES_TARGETS, BERTH_I32, err));
  if (trees_is_given(infer, BERTH__TREES_STARTS))
    BERTH__TRY(trees_want_list(infer, BERTH__TREES_STARTS, BERTH_I32, err));
  BERTH__TRY(berth__same_dim(infer->in_shape[BERTH__TREES_NODES].dim[1], BERTH__TREE_COLUMNS, "columns of nodes",
                             &extent, err));
  return berth__same_dim(infer->in_shape[BERTH__TREES_NODES].dim[0], infer->in_shape[BERTH__TREES_SPLITS].dim[0],
                         "nodes and splits", &extent, err);
}

/* Rank 2: a row of weights per leaf. Rank 1: entries, each with its target. */
static berth_status trees_size(const berth__infer *infer, trees_sizes *s, berth_error *err) {
  const berth__shape *weights = &infer->in_shape[BERTH__TREES_WEIGHTS];
  const bool has_targets = trees_is_given(infer, BERTH__TREES_TARGETS),
             has_starts = trees_is_given(infer, BERTH__TREES_STARTS);
  const int64_t targets = infer->attrs[BERTH__TREES_N_TARGETS].i;
  s->inner = infer->in_shape[BERTH__TREES_NODES].dim[0];
  s->trees = infer->in_shape[BERTH__TREES_ROOTS].dim[0];
  s->weights = weights->dim[0];
  s->leaves = has_starts ? infer->in_shape[BERTH__TREES_STARTS].dim[0] - 1 : weights->dim[0];
  s->targets = weights->rank == 2 && targets == 0 ? weights->dim[1] : targets;
  if (weights->rank == 2 ? has_targets || has_starts : !has_targets)
    return berth__fail(err, BERTH_INVALID, "weights of rank %" PRIu32 " go %s targets", weights->rank,
                       weights->rank == 2 ? "without" : "with");
  if (weights->rank == 2)
    BERTH__TRY(berth__same_dim(weights->dim[1], s->targets, "targets of a leaf", &s->targets, err));
  if (has_targets && infer->in_shape[BERTH__TREES_TARGETS].dim[0] != s->weights)
    return berth__fail(err, BERTH_INVALID, "there are as many targets as weights, not %" PRId64 " for %" PRId64,
                       infer->in_shape[BERTH__TREES_TARGETS].dim[0], s->weights);
  if (s->targets < 1 || s->leaves < 0)
    return berth__fail(err, BERTH_INVALID, "it has %" PRId64 " targets and %" PRId64 " leaves", s->targets, s->leaves);
  return BERTH_OK;
}

static bool trees_leads_right(int32_t place, int64_t after, const trees_sizes *s) {
  return place < 0 ? ~place < s->leaves : place > after && place < s->inner;
}

static berth_status trees_check_nodes(const berth__infer *infer, const trees_sizes *s, berth_error *err) {
  const int32_t *node = infer->in_data[BERTH__TREES_NODES], *roots = infer->in_data[BERTH__TREES_ROOTS];
  const int64_t features = infer->in_shape[BERTH__TREES_X].dim[1];
  const int32_t most =
      infer->attrs[BERTH__TREES_MIXED].i != 0 ? (16 << BERTH__TREE_FEATURE_BITS) - 1 : BERTH__TREE_FEATURE;
  for (int64_t i = 0; i < s->inner; i++, node += BERTH__TREE_COLUMNS) {
    const int32_t word = node[BERTH__TREE_WORD];
    if (word < 0 || word > most) return berth__fail(err, BERTH_INVALID, "node %" PRId64 " has an unknown condition", i);
    if (berth__dim_is_fixed(features) && (word & BERTH__TREE_FEATURE) >= features)
      return berth__fail(err, BERTH_INVALID, "node %" PRId64 " wants feature %d of %" PRId64, i,
                         word & BERTH__TREE_FEATURE, features);
    if (!trees_leads_right(node[BERTH__TREE_NO], i, s) || !trees_leads_right(node[BERTH__TREE_NO + 1], i, s))
      return berth__fail(err, BERTH_INVALID,
                         "node %" PRId64 " leads to a node before it, or to one that does not exist", i);
  }
  for (int64_t t = 0; t < s->trees; t++)
    if (!trees_leads_right(roots[t], -1, s)) return berth__fail(err, BERTH_INVALID, "tree %" PRId64 " has no root", t);
  return BERTH_OK;
}

static berth_status trees_check_leaves(const berth__infer *infer, const trees_sizes *s, berth_error *err) {
  const int32_t *targets = trees_is_given(infer, BERTH__TREES_TARGETS) ? infer->in_data[BERTH__TREES_TARGETS] : NULL;
  const int32_t *starts = trees_is_given(infer, BERTH__TREES_STARTS) ? infer->in_data[BERTH__TREES_STARTS] : NULL;
  for (int64_t i = 0; targets != NULL && i < s->weights; i++)
    if (targets[i] < 0 || targets[i] >= s->targets)
      return berth__fail(err, BERTH_INVALID, "weight %" PRId64 " is for target %d of %" PRId64, i, targets[i],
                         s->targets);
  for (int64_t i = 0; starts != NULL && i <= s->leaves; i++)
    if (starts[i] < (i == 0 ? 0 : starts[i - 1]) || starts[i] > s->weights)
      return berth__fail(err, BERTH_INVALID, "the weights of leaf %" PRId64 " are out of range", i);
  return BERTH_OK;
}

static bool trees_are_known(const berth__infer *infer) {
  for (uint32_t i = BERTH__TREES_NODES; i < infer->n_in; i++) {
    int64_t count;
    if (!trees_is_given(infer, i)) continue;
    if (!berth__shape_count(&infer->in_shape[i], &count)) return false;
    if (count != 0 && (infer->in_data == NULL || infer->in_data[i] == NULL)) return false;
  }
  return true;
}

static berth_status trees_infer(berth__infer *infer, berth_error *err) {
  trees_sizes s;
  BERTH__TRY(trees_check_types(infer, err));
  if (berth__tree_aggregate_of(infer->attrs) == BERTH__TREE_AGGREGATES)
    return berth__fail(err, BERTH_INVALID, "aggregate \"%s\" is not one of sum, average, min and max",
                       infer->attrs[BERTH__TREES_AGGREGATE].s);
  infer->out_type[0] = infer->in_type[BERTH__TREES_X];
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {infer->in_shape[BERTH__TREES_X].dim[0], BERTH__DIM_UNKNOWN}};
  if (!trees_are_known(infer)) return BERTH_OK; /* an unknown extent prevents planning until it is known */
  BERTH__TRY(trees_size(infer, &s, err));
  BERTH__TRY(trees_check_nodes(infer, &s, err));
  BERTH__TRY(trees_check_leaves(infer, &s, err));
  infer->out_shape[0].dim[1] = s.targets;
  return BERTH_OK;
}

/* The trees were checked when the plan was made, but not against a width that only a run knows. */
static berth_status trees_find(const berth_op_call *call, berth__shape *shapes, berth_error *err) {
  const int32_t *word = call->in[BERTH__TREES_NODES].data;
  const int64_t features = call->in[BERTH__TREES_X].dim[1], n = call->in[BERTH__TREES_NODES].dim[0];
  for (int64_t i = 0; i < n; i++, word += BERTH__TREE_COLUMNS)
    if ((*word & BERTH__TREE_FEATURE) >= features)
      return berth__fail(err, BERTH_INVALID, "node %" PRId64 " looks at feature %d, but x has %" PRId64, i,
                         *word & BERTH__TREE_FEATURE, features);
  shapes[0] = (berth__shape){.rank = 2, .dim = {call->in[BERTH__TREES_X].dim[0], call->out[0].dim[1]}};
  return BERTH_OK;
}

static int64_t trees_items(const berth_op_call *call) { return call->in[BERTH__TREES_X].dim[0]; }

/* ---- The reference kernel ---- */

static bool trees_answer(const berth_op_call *call, int64_t row, int64_t node) {
  const int32_t word = ((const int32_t *)call->in[BERTH__TREES_NODES].data)[node * BERTH__TREE_COLUMNS];
  const int64_t at = row * call->in[BERTH__TREES_X].dim[1] + (word & BERTH__TREE_FEATURE);
  const double x = berth__load_f64(&call->in[BERTH__TREES_X], at);
  const double split = berth__load_f64(&call->in[BERTH__TREES_SPLITS], node);
  const int outcome = (x <= split) + 2 * (x >= split);
  return ((word >> BERTH__TREE_FEATURE_BITS ^ BERTH__TREE_AT_MOST) >> outcome & 1) != 0;
}

static int64_t trees_walk(const berth_op_call *call, int64_t row, int64_t tree) {
  const int32_t *nodes = call->in[BERTH__TREES_NODES].data;
  int32_t at = ((const int32_t *)call->in[BERTH__TREES_ROOTS].data)[tree];
  while (at >= 0)
    at = nodes[(int64_t)at * BERTH__TREE_COLUMNS + BERTH__TREE_NO + (trees_answer(call, row, at) ? 1 : 0)];
  return ~at;
}

/* NaN marks targets without a value so far. */
static double trees_combine(berth__tree_aggregate how, double old, double weight) {
  if (how == BERTH__TREE_MIN) return old <= weight ? old : weight;
  if (how == BERTH__TREE_MAX) return old >= weight ? old : weight;
  return old + weight;
}

static void trees_row(const berth_op_call *call, const berth__tree_leaves *leaves, berth__tree_aggregate how,
                      int64_t row) {
  const bool is_sum = how == BERTH__TREE_SUM || how == BERTH__TREE_AVERAGE;
  const int64_t first = row * leaves->targets, trees = call->in[BERTH__TREES_ROOTS].dim[0];
  for (int64_t t = 0; t < leaves->targets; t++) berth__store_f64(&call->out[0], first + t, is_sum ? 0.0 : (double)NAN);
  for (int64_t tree = 0; tree < trees; tree++) {
    int64_t entry, last, target = 0;
    berth__tree_entries(leaves, trees_walk(call, row, tree), &entry, &last);
    for (; entry < last; entry++, target++) { /* stored every time, because sums are rounded after every tree */
      const int64_t to = first + (leaves->target != NULL ? leaves->target[entry] : target);
      const double weight = berth__load_f64(&call->in[BERTH__TREES_WEIGHTS], entry);
      berth__store_f64(&call->out[0], to, trees_combine(how, berth__load_f64(&call->out[0], to), weight));
    }
  }
  for (int64_t t = 0; t < leaves->targets; t++) {
    const double score = berth__load_f64(&call->out[0], first + t);
    if (how == BERTH__TREE_AVERAGE) berth__store_f64(&call->out[0], first + t, score / (double)trees);
    if (!is_sum && isnan(score)) berth__store_f64(&call->out[0], first + t, 0);
  }
}

static berth_status trees_kernel(const berth_op_call *call, berth_error *err) {
  const berth__tree_leaves leaves = berth__tree_leaves_of(call);
  const berth__tree_aggregate how = berth__tree_aggregate_of(call->attrs);
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++) trees_row(call, &leaves, how, row);
  return BERTH_OK;
}

const berth__family berth__family_tree_ensemble = {.attrs = attrs,
                                                   .n_attrs = sizeof attrs / sizeof *attrs,
                                                   .infer = trees_infer,
                                                   .find = trees_find,
                                                   .items = trees_items,
                                                   .kernel = trees_kernel,
                                                   .valued = ~(1u << BERTH__TREES_X)};
