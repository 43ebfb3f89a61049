/* tree_ensemble. A walk down a tree is a chain of dependent loads, and a branch per answer would be mispredicted half
 * of the time. So several walks proceed side by side, without branches: several rows in one tree if there are many
 * rows, several trees for one row if there are few. Walks that have reached their leaf stay there until all have. Sums
 * are taken tree by tree in either case. */
#include <math.h>

#include "device/cpu/kernels/vec.h"
#include "ops/trees.h"

#define LANES 8      /* walks side by side */
#define MOST_ROWS 64 /* per item: their leaves, and the nodes of a tree, stay in the cache */

static bool tree_kernel_takes(const berth_op_call *call) {
  return call->in[BERTH__TREES_X].dim[1] <= BERTH__TREE_FEATURE; /* indices into x fit 32 bits */
}

static int64_t tree_kernel_items(const berth_op_call *call) {
  return (call->in[BERTH__TREES_X].dim[0] + MOST_ROWS - 1) / MOST_ROWS;
}

typedef struct tree_job {
  const int32_t *nodes, *roots;
  int64_t trees, features;
  berth__tree_leaves leaves;
  berth__tree_aggregate how;
  bool is_mixed;
} tree_job;

static tree_job tree_job_of(const berth_op_call *call) {
  return (tree_job){
      .nodes = call->in[BERTH__TREES_NODES].data,
      .roots = call->in[BERTH__TREES_ROOTS].data,
      .trees = call->in[BERTH__TREES_ROOTS].dim[0],
      .features = call->in[BERTH__TREES_X].dim[1],
      .leaves = berth__tree_leaves_of(call),
      .how = berth__tree_aggregate_of(call->attrs),
      .is_mixed = call->attrs[BERTH__TREES_MIXED].i != 0,
  };
}

/* `at` holds node indices; each becomes that of a leaf, below 0. Walk i reads the features from x + row[i] on. A
 * finished walk goes through the motions of node 0 and keeps its index. */
#define TREE_WALK(NAME, TYPE, IS_MIXED)                                                                               \
  static inline void NAME(const int32_t *nodes, const TYPE *splits, const TYPE *x, const int32_t row[LANES],          \
                          int32_t at[LANES]) {                                                                        \
    int32_t all = at[0];                                                                                              \
    for (int i = 1; i < LANES; i++) all &= at[i];                                                                     \
    while (all >= 0) {                                                                                                \
      all = -1;                                                                                                       \
      for (int i = 0; i < LANES; i++) {                                                                               \
        const int32_t over = at[i] >> 31, node = at[i] & ~over;                                                       \
        const int32_t *const row_of_node = nodes + (size_t)(uint32_t)node * BERTH__TREE_COLUMNS;                      \
        const int32_t word = row_of_node[BERTH__TREE_WORD];                                                           \
        const TYPE feature = x[row[i] + (IS_MIXED ? word & BERTH__TREE_FEATURE : word)], split = splits[node];        \
        const int outcome = (feature <= split) + (IS_MIXED ? 2 * (feature >= split) : 0);                             \
        const int yes = IS_MIXED ? (word >> BERTH__TREE_FEATURE_BITS ^ BERTH__TREE_AT_MOST) >> outcome & 1 : outcome; \
        const int32_t next = row_of_node[BERTH__TREE_NO + yes];                                                       \
        at[i] = (at[i] & over) | (next & ~over);                                                                      \
        all &= at[i];                                                                                                 \
      }                                                                                                               \
    }                                                                                                                 \
  }

#define TREE_COMBINED(HOW, OLD, WEIGHT)                                                      \
  ((HOW) == BERTH__TREE_MIN   ? ((OLD) <= (WEIGHT) ? (OLD) : (WEIGHT)) /* NaN is replaced */ \
   : (HOW) == BERTH__TREE_MAX ? ((OLD) >= (WEIGHT) ? (OLD) : (WEIGHT))                       \
                              : (OLD) + (WEIGHT))

#define TREE_TYPE(NAME, TYPE)                                                                                          \
  TREE_WALK(NAME##_walk_mixed, TYPE, true)                                                                             \
  TREE_WALK(NAME##_walk_plain, TYPE, false)                                                                            \
                                                                                                                       \
  static void NAME##_walk(const tree_job *job, const TYPE *splits, const TYPE *x, const int32_t row[LANES],            \
                          int32_t at[LANES]) {                                                                         \
    if (job->is_mixed)                                                                                                 \
      NAME##_walk_mixed(job->nodes, splits, x, row, at);                                                               \
    else                                                                                                               \
      NAME##_walk_plain(job->nodes, splits, x, row, at);                                                               \
  }                                                                                                                    \
                                                                                                                       \
  static inline void NAME##_add(const tree_job *job, const TYPE *weights, TYPE *out, int32_t place) {                  \
    const int64_t leaf = ~place;                                                                                       \
    int64_t first, last;                                                                                               \
    if (job->leaves.target == NULL && job->leaves.targets == 1) { /* one weight per leaf */                            \
      out[0] = TREE_COMBINED(job->how, out[0], weights[leaf]);                                                         \
      return;                                                                                                          \
    }                                                                                                                  \
    berth__tree_entries(&job->leaves, leaf, &first, &last);                                                            \
    for (int64_t i = first; i < last; i++) {                                                                           \
      TYPE *const to = out + (job->leaves.target != NULL ? job->leaves.target[i] : i - first);                         \
      *to = TREE_COMBINED(job->how, *to, weights[i]);                                                                  \
    }                                                                                                                  \
  }                                                                                                                    \
                                                                                                                       \
  static void NAME##_rows(const tree_job *job, const TYPE *splits, const TYPE *weights, const TYPE *x, TYPE *out,      \
                          int64_t rows) {                                                                              \
    for (int64_t tree = 0; tree < job->trees; tree++)                                                                  \
      for (int64_t r = 0; r < rows; r += LANES) {                                                                      \
        int32_t row[LANES], at[LANES];                                                                                 \
        const int64_t n = rows - r < LANES ? rows - r : LANES;                                                         \
        for (int i = 0; i < LANES; i++) {                                                                              \
          row[i] = (int32_t)((r + (i < n ? i : n - 1)) * job->features);                                               \
          at[i] = job->roots[tree];                                                                                    \
        }                                                                                                              \
        NAME##_walk(job, splits, x, row, at);                                                                          \
        for (int i = 0; i < n; i++) NAME##_add(job, weights, out + (r + i) * job->leaves.targets, at[i]);              \
      }                                                                                                                \
  }                                                                                                                    \
                                                                                                                       \
  static void NAME##_trees(const tree_job *job, const TYPE *splits, const TYPE *weights, const TYPE *x, TYPE *out) {   \
    static const int32_t row[LANES] = {0};                                                                             \
    for (int64_t tree = 0; tree < job->trees; tree += LANES) {                                                         \
      int32_t at[LANES];                                                                                               \
      const int64_t n = job->trees - tree < LANES ? job->trees - tree : LANES;                                         \
      for (int i = 0; i < LANES; i++) at[i] = job->roots[tree + (i < n ? i : n - 1)];                                  \
      NAME##_walk(job, splits, x, row, at);                                                                            \
      for (int i = 0; i < n; i++) NAME##_add(job, weights, out, at[i]);                                                \
    }                                                                                                                  \
  }                                                                                                                    \
                                                                                                                       \
  static void NAME##_finish(const tree_job *job, TYPE *out, int64_t count) {                                           \
    const TYPE trees = (TYPE)job->trees;                                                                               \
    for (int64_t i = 0; i < count && job->how == BERTH__TREE_AVERAGE; i++) out[i] /= trees;                            \
    for (int64_t i = 0; i < count && (job->how == BERTH__TREE_MIN || job->how == BERTH__TREE_MAX); i++)                \
      if (isnan(out[i])) out[i] = 0; /* no tree has a weight for it */                                                 \
  }                                                                                                                    \
                                                                                                                       \
  static void NAME##_item(const berth_op_call *call, const tree_job *job, int64_t item) {                              \
    const TYPE *splits = call->in[BERTH__TREES_SPLITS].data, *weights = call->in[BERTH__TREES_WEIGHTS].data;           \
    const int64_t first = item * MOST_ROWS, targets = job->leaves.targets;                                             \
    const int64_t left = call->in[BERTH__TREES_X].dim[0] - first, rows = left < MOST_ROWS ? left : MOST_ROWS;          \
    const TYPE *x = (const TYPE *)call->in[BERTH__TREES_X].data + first * job->features;                               \
    TYPE *out = (TYPE *)call->out[0].data + first * targets;                                                           \
    const bool is_sum = job->how == BERTH__TREE_SUM || job->how == BERTH__TREE_AVERAGE;                                \
    for (int64_t i = 0; i < rows * targets; i++) out[i] = is_sum ? 0 : (TYPE)NAN;                                      \
    if (rows >= LANES / 2)                                                                                             \
      NAME##_rows(job, splits, weights, x, out, rows);                                                                 \
    else                                                                                                               \
      for (int64_t r = 0; r < rows; r++) NAME##_trees(job, splits, weights, x + r * job->features, out + r * targets); \
    NAME##_finish(job, out, rows *targets);                                                                            \
  }

TREE_TYPE(tree_f32, float)
TREE_TYPE(tree_f64, double)

static berth_status tree_kernel_run(const berth_op_call *call, berth_error *err) {
  const tree_job job = tree_job_of(call);
  const bool is_f64 = call->in[BERTH__TREES_X].type == BERTH_F64;
  (void)err;
  for (int64_t item = call->begin; item < call->end; item++)
    if (is_f64)
      tree_f64_item(call, &job, item);
    else
      tree_f32_item(call, &job, item);
  return BERTH_OK;
}

/* An item is a walk for every row and tree, so bytes are no measure of it. */
static int64_t tree_kernel_grain(const berth_op_call *call) {
  return call->in[BERTH__TREES_ROOTS].dim[0] * MOST_ROWS >= 1024 ? 1 : 1024 / MOST_ROWS;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_trees)[] = {
    {.name = "tree_ensemble",
     .code = BERTH__OP_tree_ensemble,
     .takes = tree_kernel_takes,
     .items = tree_kernel_items,
     .grain = tree_kernel_grain,
     .run = tree_kernel_run},
    {0},
};
