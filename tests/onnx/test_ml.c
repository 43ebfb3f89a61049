/* ai.onnx.ml: files that lie about their trees and lists, and what strings leave of a model. What the ops give is in
 * cases/ml.pack. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnx_writer.h"
#include "support.h"

#define MOST 8

/* One tree of the older ops: a root that leads to two leaves, unless a test changes that. */
typedef struct tree {
  size_t n, n_weights, n_base;
  int64_t tree_ids[MOST], node_ids[MOST], features[MOST], yes[MOST], no[MOST];
  float values[MOST];
  const char *modes[MOST];
  int64_t weight_trees[MOST], weight_nodes[MOST], weight_ids[MOST];
  float weights[MOST], base[MOST];
  size_t n_modes, n_values; /* how many of these lists are written */
  int64_t n_targets;
  const char *aggregate; /* NULL: the default */
} tree;

static tree plain_tree(void) {
  return (tree){.n = 3,
                .n_modes = 3,
                .n_values = 3,
                .node_ids = {0, 1, 2},
                .features = {1},
                .yes = {1},
                .no = {2},
                .values = {0.5f},
                .modes = {"BRANCH_LEQ", "LEAF", "LEAF"},
                .n_weights = 2,
                .weight_nodes = {1, 2},
                .weights = {1, 2},
                .n_targets = 1};
}

/* x : f32[2, 2] goes in, y comes out. */
static pb model_of(pb *node, const char *outputs, int64_t version) {
  const int64_t two_by_two[] = {2, 2};
  pb graph = {0}, opset = onnx_opset("ai.onnx.ml", version);
  char names[64];
  pb_text(&graph, 2, "ml");
  onnx_add_input(&graph, "x", 2, two_by_two);
  snprintf(names, sizeof names, "%s", outputs);
  for (char *name = strtok(names, ","); name != NULL; name = strtok(NULL, ",")) onnx_add_output(&graph, name);
  pb_text(node, NODE_DOMAIN, "ai.onnx.ml");
  pb_put(&graph, GRAPH_NODE, node);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_OPSET, &opset);
  return model;
}

static pb model_of_tree(const tree *t) {
  pb node = onnx_node("TreeEnsembleRegressor", "x", "y");
  onnx_attr_ints(&node, "nodes_treeids", t->n, t->tree_ids);
  onnx_attr_ints(&node, "nodes_nodeids", t->n, t->node_ids);
  onnx_attr_ints(&node, "nodes_featureids", t->n, t->features);
  onnx_attr_ints(&node, "nodes_truenodeids", t->n, t->yes);
  onnx_attr_ints(&node, "nodes_falsenodeids", t->n, t->no);
  onnx_attr_floats(&node, "nodes_values", t->n_values, t->values);
  onnx_attr_strings(&node, "nodes_modes", t->n_modes, t->modes);
  onnx_attr_ints(&node, "target_treeids", t->n_weights, t->weight_trees);
  onnx_attr_ints(&node, "target_nodeids", t->n_weights, t->weight_nodes);
  onnx_attr_ints(&node, "target_ids", t->n_weights, t->weight_ids);
  onnx_attr_floats(&node, "target_weights", t->n_weights, t->weights);
  onnx_attr_floats(&node, "base_values", t->n_base, t->base);
  onnx_attr_int(&node, "n_targets", t->n_targets);
  if (t->aggregate != NULL) onnx_attr_string(&node, "aggregate_function", t->aggregate);
  return model_of(&node, "y", 3);
}

static berth_status load(berth_context *ctx, pb *model, berth_graph **graph, berth_error *err) {
  test_write_file(test_path("ml.onnx"), model->data, model->size);
  pb_free(model);
  return berth_graph_load(ctx, test_path("ml.onnx"), graph, err);
}

static void expect_refused(pb model, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  test_expect_error(load(ctx, &model, &graph, &err), BERTH_MALFORMED, &err, part);
  assert_null(graph);
  test_context_done(ctx, &alloc);
}

#define EXPECT_WRONG(change, part)           \
  do {                                       \
    tree t = plain_tree();                   \
    change;                                  \
    expect_refused(model_of_tree(&t), part); \
  } while (0)

static void trees_that_lie_are_refused(void **state) {
  (void)state;
  EXPECT_WRONG(t.yes[0] = 0, "its trees have a cycle");
  EXPECT_WRONG((t.modes[1] = "BRANCH_LEQ", t.yes[1] = 0, t.no[1] = 2), "its trees have a cycle");
  EXPECT_WRONG(t.no[0] = 7, "node 0 of tree 0 leads to node 7, which is not there");
  EXPECT_WRONG(t.no[0] = -1, "which is not there");
  EXPECT_WRONG(t.tree_ids[2] = 1, "node 0 of tree 0 leads to node 2, which is not there");
  EXPECT_WRONG(t.node_ids[2] = 1, "node 1 of tree 0 is there twice");
  EXPECT_WRONG(t.features[0] = 2, "wants feature 2 of 2");
  EXPECT_WRONG(t.features[0] = -1, "asks for feature -1");
  EXPECT_WRONG(t.features[0] = INT64_MAX, "out of range");
  EXPECT_WRONG(t.values[0] = NAN, "the value of node 0 is NaN");
  EXPECT_WRONG(t.weights[1] = NAN, "weight 1 is NaN");
  EXPECT_WRONG(t.modes[0] = "BRANCH_MAYBE", "node 0 has the mode 'BRANCH_MAYBE', which is not known");
  EXPECT_WRONG(t.n_modes = 2, "2 modes, 3 values");
  EXPECT_WRONG(t.n_values = 1, "3 modes, 1 values");
  EXPECT_WRONG(t.weight_nodes[0] = 9, "weight 0 is of node 9 of tree 0, which is not there");
  EXPECT_WRONG(t.weight_ids[0] = 1, "is for target 1 of 1");
  EXPECT_WRONG(t.weight_ids[0] = -1, "weight 0 is for target -1");
  EXPECT_WRONG(t.n_targets = 0, "it has 0 targets");
  EXPECT_WRONG(t.n_targets = INT64_MAX, "targets");
  EXPECT_WRONG(t.n_base = 2, "2 base values for 1 targets");
  EXPECT_WRONG(t.n = 0, "it has 0 nodes");
}

/* Two weights of one leaf are two, not their sum; a leaf without any takes no part. */
static void the_largest_of_two_weights(void **state) {
  const float x[4] = {0, 0, 0, 1}; /* the first row goes to leaf 1, the second to leaf 2 */
  float y[2];
  tree t = plain_tree();
  berth_error err = {BERTH_OK, ""};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_session *session = NULL;
  (void)state;
  t.aggregate = "MAX";
  t.weight_nodes[1] = 1;
  pb model = model_of_tree(&t);
  TEST_OK(load(ctx, &model, &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  assert_true(y[0] == 2 && y[1] == 0);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* A chain of conditions as deep as there are nodes: nothing here may recurse. */
static pb deep_tree(size_t depth) {
  pb node = onnx_node("TreeEnsembleRegressor", "x", "y");
  const size_t n = 2 * depth + 1;
  int64_t *list[6];
  float *values = calloc(n, sizeof *values);
  const char **modes = calloc(n, sizeof *modes);
  for (int i = 0; i < 6; i++) list[i] = calloc(n, sizeof **list);
  for (size_t i = 0; i < n; i++) { /* even ones ask, odd ones and the last are leaves */
    const int is_leaf = i % 2 == 1 || i + 1 == n;
    list[1][i] = (int64_t)i;
    list[2][i] = is_leaf ? 0 : (int64_t)i + 1;
    list[3][i] = is_leaf ? 0 : (int64_t)i + 2;
    modes[i] = is_leaf ? "LEAF" : "BRANCH_GT";
    values[i] = 1;
  }
  static const char *const names[] = {"nodes_treeids", "nodes_nodeids", "nodes_truenodeids", "nodes_falsenodeids",
                                      "nodes_featureids"};
  for (int i = 0; i < 5; i++) onnx_attr_ints(&node, names[i], n, list[i]);
  onnx_attr_floats(&node, "nodes_values", n, values);
  onnx_attr_strings(&node, "nodes_modes", n, modes);
  onnx_attr_ints(&node, "target_treeids", n, list[0]);
  onnx_attr_ints(&node, "target_nodeids", n, list[1]);
  onnx_attr_ints(&node, "target_ids", n, list[5]);
  onnx_attr_floats(&node, "target_weights", n, values);
  onnx_attr_int(&node, "n_targets", 1);
  for (int i = 0; i < 6; i++) free(list[i]);
  free(values);
  free(modes);
  return model_of(&node, "y", 3);
}

static void a_tree_may_be_very_deep(void **state) {
  berth_context *ctx = test_context();
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  (void)state;
  pb model = deep_tree(20000);
  TEST_OK(load(ctx, &model, &graph, &err));
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static pb classifier(const char *outputs, int of_strings) {
  static const char *const words[] = {"no", "yes"};
  static const int64_t numbers[] = {3, 5};
  static const float coefficients[] = {1, 2}, intercepts[] = {0.5f};
  pb node = onnx_node("LinearClassifier", "x", "label,scores");
  onnx_attr_floats(&node, "coefficients", 2, coefficients);
  onnx_attr_floats(&node, "intercepts", 1, intercepts);
  if (of_strings)
    onnx_attr_strings(&node, "classlabels_strings", 2, words);
  else
    onnx_attr_ints(&node, "classlabels_ints", 2, numbers);
  return model_of(&node, outputs, 1);
}

static void outputs_of_strings_are_left_out(void **state) {
  berth_context *ctx = test_context();
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  (void)state;
  pb model = classifier("label,scores", 1);
  TEST_OK(load(ctx, &model, &graph, &err));
  assert_int_equal(berth_graph_n_outputs(graph), 1);
  assert_string_equal(berth_graph_output_name(graph, 0), "scores");
  berth_graph_destroy(graph);
  model = classifier("label,scores", 0);
  TEST_OK(load(ctx, &model, &graph, &err));
  assert_int_equal(berth_graph_n_outputs(graph), 2);
  berth_graph_destroy(graph);
  graph = NULL;
  model = classifier("label", 1);
  test_expect_error(load(ctx, &model, &graph, &err), BERTH_UNSUPPORTED, &err,
                    "every output depends on strings: tensor 'label': its class labels are strings");
  berth_context_destroy(ctx);
}

static pb one_op(const char *op, const char *list, size_t n, const char *other, size_t n_other) {
  static const float numbers[MOST] = {1, 2, 3};
  pb node = onnx_node(op, "x", "y");
  onnx_attr_floats(&node, list, n, numbers);
  if (other != NULL) onnx_attr_floats(&node, other, n_other, numbers);
  return model_of(&node, "y", 3);
}

static void lists_that_do_not_fit_are_refused(void **state) {
  (void)state;
  expect_refused(one_op("Scaler", "scale", 2, "offset", 1), "2 scales and 1 offsets");
  expect_refused(one_op("Scaler", "scale", 3, "offset", 3), "(Scaler)");
  expect_refused(one_op("Imputer", "replaced_value", 1, NULL, 0), "no imputed values");
  expect_refused(one_op("LabelEncoder", "keys_floats", 3, "values_floats", 2), "3 keys and 2 values");
  expect_refused(one_op("LinearRegressor", "coefficients", 3, NULL, 0), "(LinearRegressor)");
  expect_refused(one_op("LinearRegressor", "coefficients", 0, NULL, 0), "0 coefficients do not make 1 rows");
  expect_refused(one_op("LinearRegressor", "coefficients", 2, "intercepts", 2), "2 intercepts for 1 targets");
  expect_refused(one_op("LinearClassifier", "coefficients", 3, "intercepts", 2), "3 coefficients do not make 2 rows");
  expect_refused(one_op("FeatureVectorizer", "other", 1, NULL, 0), "0 inputdimensions for 1 operands");
  expect_refused(one_op("OneHotEncoder", "other", 1, NULL, 0), "it has no categories");
}

static berth_status load_trees(berth_context *ctx, berth_error *err, void *user) {
  tree t = plain_tree();
  berth_graph *graph = NULL;
  pb model = model_of_tree(&t);
  (void)user;
  const berth_status status = load(ctx, &model, &graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void every_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(load_trees, NULL) > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(trees_that_lie_are_refused),        cmocka_unit_test(the_largest_of_two_weights),
      cmocka_unit_test(a_tree_may_be_very_deep),           cmocka_unit_test(outputs_of_strings_are_left_out),
      cmocka_unit_test(lists_that_do_not_fit_are_refused), cmocka_unit_test(every_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
