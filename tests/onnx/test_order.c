/* Nodes that are not in order: in the graph, in branches that read names from around them, in functions. Whatever their
 * order, the same graph comes out. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "onnx_writer.h"
#include "support.h"

static const int64_t two[] = {2};

static pb with_input_and_output(void) {
  pb graph = {0}, condition = onnx_value("c", ONNX_BOOL, 0, NULL);
  pb_text(&graph, 2, "test");
  onnx_add_input(&graph, "x", 1, two);
  pb_put(&graph, GRAPH_INPUT, &condition);
  onnx_add_output(&graph, "y");
  return graph;
}

static berth_status load(berth_context *ctx, pb *model, berth_graph **graph, berth_error *err) {
  const char *path = test_path("order.onnx");
  test_write_file(path, model->data, model->size);
  pb_free(model);
  return berth_graph_load(ctx, path, graph, err);
}

static test_buffer text_of(pb *model) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  test_buffer text = {0};
  TEST_OK(load(ctx, model, &graph, &err));
  TEST_OK(berth_graph_print(graph, test_buffer_write, &text, &err));
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  return text;
}

static void expect_same(pb *model, const test_buffer *want) {
  test_buffer text = text_of(model);
  assert_string_equal(text.data, want->data);
  test_buffer_free(&text);
}

/* Nodes of a list that are put in by their places in `order`: "op inputs outputs". */
typedef struct listed_node {
  const char *op, *inputs, *outputs;
} listed_node;

static void put_nodes(pb *list, uint32_t field, const listed_node *nodes, size_t n, const size_t *order) {
  for (size_t i = 0; i < n; i++) {
    const listed_node *listed = &nodes[order != NULL ? order[i] : i];
    pb node = onnx_node(listed->op, listed->inputs, listed->outputs);
    pb_put(list, field, &node);
  }
}

/* The next permutation in the order of the alphabet; false after the last. */
static bool next_order(size_t *order, size_t n) {
  size_t i = n - 1, j = n - 1;
  while (i > 0 && order[i - 1] > order[i]) i--;
  if (i == 0) return false;
  while (order[j] < order[i - 1]) j--;
  size_t swapped = order[i - 1];
  order[i - 1] = order[j];
  order[j] = swapped;
  for (j = n - 1; i < j; i++, j--) {
    swapped = order[i];
    order[i] = order[j];
    order[j] = swapped;
  }
  return true;
}

/* ---- One graph ---- */

/* A row of nodes has one order alone. */
static void any_order_gives_the_same_graph(void **state) {
  static const listed_node nodes[] = {
      {"Neg", "x", "a"}, {"Abs", "a", "b"}, {"Add", "a,b", "d"}, {"Mul", "d,b", "e"}, {"Relu", "e", "y"}};
  enum {
    N = sizeof nodes / sizeof *nodes
  };
  size_t order[N] = {0, 1, 2, 3, 4};
  pb sorted = with_input_and_output();
  int count = 0;
  (void)state;
  put_nodes(&sorted, GRAPH_NODE, nodes, N, NULL);
  pb model = onnx_model(&sorted);
  test_buffer want = text_of(&model);
  do {
    pb graph = with_input_and_output();
    put_nodes(&graph, GRAPH_NODE, nodes, N, order);
    model = onnx_model(&graph);
    expect_same(&model, &want);
    count++;
  } while (next_order(order, N));
  assert_int_equal(count, 120);
  test_buffer_free(&want);
}

static void expect_order(const listed_node *nodes, const size_t *order, const char *const *names, size_t n) {
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth_graph *loaded = NULL;
  pb graph = with_input_and_output();
  put_nodes(&graph, GRAPH_NODE, nodes, n, order);
  pb model = onnx_model(&graph);
  TEST_OK(load(ctx, &model, &loaded, &err));
  for (size_t i = 1; i < n; i++)
    assert_true(berth_graph_find(loaded, names[i - 1]) < berth_graph_find(loaded, names[i]));
  berth_graph_destroy(loaded);
  berth_context_destroy(ctx);
}

/* Of the orders that are right, the file's is kept; otherwise only what must move does. */
static void an_order_that_is_right_stays(void **state) {
  static const listed_node nodes[] = {{"Neg", "x", "a"}, {"Abs", "x", "b"}, {"Relu", "x", "d"}, {"Sum", "a,b,d", "y"}};
  (void)state;
  expect_order(nodes, (size_t[]){0, 1, 2, 3}, (const char *[]){"a", "b", "d", "y"}, 4);
  expect_order(nodes, (size_t[]){2, 0, 1, 3}, (const char *[]){"d", "a", "b", "y"}, 4);
  expect_order(nodes, (size_t[]){1, 2, 0, 3}, (const char *[]){"b", "d", "a", "y"}, 4);
  expect_order(nodes, (size_t[]){1, 3, 0, 2}, (const char *[]){"b", "a", "d", "y"}, 4);
}

/* A long row from its end: no recursion, and no time that grows with the square. */
static void a_long_row_from_its_end(void **state) {
  enum {
    N = 20000
  };
  berth_context *ctx = test_context();
  berth_error err = {BERTH_OK, ""};
  berth_graph *loaded = NULL;
  pb graph = with_input_and_output();
  (void)state;
  for (int i = N; i > 0; i--) {
    char from[16], to[16];
    snprintf(from, sizeof from, i == 1 ? "x" : "v%d", i - 1);
    snprintf(to, sizeof to, i == N ? "y" : "v%d", i);
    onnx_add_node(&graph, "Neg", from, to);
  }
  pb model = onnx_model(&graph);
  TEST_OK(load(ctx, &model, &loaded, &err));
  assert_int_equal(berth_graph_find(loaded, "v19999"), berth_graph_find(loaded, "v1") + N - 2);
  berth_graph_destroy(loaded);
  berth_context_destroy(ctx);
}

/* ---- Branches and functions ---- */

/* if c: (h h) + k, else k, where h and k are made outside. `mine` names the result inside. */
static pb branching_node(bool is_reversed, const char *mine) {
  char inputs[32];
  pb node = onnx_node("If", "c", "r"), then = {0}, otherwise = {0};
  snprintf(inputs, sizeof inputs, "%s,k", mine);
  const listed_node nodes[] = {{"Mul", "h,h", mine}, {"Add", inputs, "s"}};
  put_nodes(&then, GRAPH_NODE, nodes, 2, is_reversed ? (size_t[]){1, 0} : NULL);
  onnx_add_output(&then, "s");
  onnx_add_output(&otherwise, "k");
  onnx_attr_graph(&node, "then_branch", &then);
  onnx_attr_graph(&node, "else_branch", &otherwise);
  return node;
}

/* F(a) = -|a| */
static pb function_of_two(bool is_reversed) {
  static const listed_node nodes[] = {{"Abs", "a", "b"}, {"Neg", "b", "d"}};
  pb function = onnx_function("F", "a", "d");
  put_nodes(&function, FUNCTION_NODE, nodes, 2, is_reversed ? (size_t[]){1, 0} : NULL);
  return function;
}

static pb branching_model(const size_t *order, bool is_reversed_inside, const char *mine) {
  pb graph = with_input_and_output(), function = function_of_two(is_reversed_inside);
  for (size_t i = 0; i < 4; i++) {
    pb node;
    if (order[i] == 0) node = onnx_node("Neg", "x", "h");
    if (order[i] == 1) node = onnx_node("Abs", "h", "k");
    if (order[i] == 2) node = branching_node(is_reversed_inside, mine);
    if (order[i] == 3) {
      node = onnx_node("F", "r", "y");
      pb_text(&node, NODE_DOMAIN, "local");
    }
    pb_put(&graph, GRAPH_NODE, &node);
  }
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, &function);
  return model;
}

static void branches_and_functions(void **state) {
  size_t order[] = {0, 1, 2, 3};
  pb model = branching_model(order, false, "m");
  test_buffer want = text_of(&model);
  (void)state;
  do {
    for (int inside = 0; inside <= 1; inside++) {
      model = branching_model(order, inside != 0, "m");
      expect_same(&model, &want);
    }
  } while (next_order(order, 4));
  test_buffer_free(&want);
}

/* The standard wants names to differ; a file that uses one inside and outside means the one that is made before. */
static void names_that_are_inside_and_outside(void **state) {
  size_t order[] = {0, 1, 2, 3};
  pb model = branching_model(order, false, "r");
  test_buffer want = text_of(&model);
  (void)state;
  model = branching_model(order, true, "r");
  expect_same(&model, &want);
  test_buffer_free(&want);
}

/* ---- Cycles ---- */

static void expect_cycle(pb *model, const char *message) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  test_expect_error(load(ctx, model, &graph, &err), BERTH_MALFORMED, &err, message);
  assert_null(graph);
  test_context_done(ctx, &alloc);
}

static void expect_list_cycles(const listed_node *nodes, size_t n, const char *message) {
  pb graph = with_input_and_output();
  put_nodes(&graph, GRAPH_NODE, nodes, n, NULL);
  pb model = onnx_model(&graph);
  expect_cycle(&model, message);
}

static void cycles_name_their_nodes(void **state) {
  static const listed_node own[] = {{"Add", "x,y", "y"}};
  static const listed_node three[] = {
      {"Neg", "x", "a"}, {"Add", "a,e", "b"}, {"Abs", "b", "d"}, {"Relu", "d", "e"}, {"Mul", "a,e", "y"}};
  listed_node many[20];
  char names[20][8];
  (void)state;
  expect_list_cycles(own, 1, "the ONNX node 'y' (Add) waits for its own result");
  expect_list_cycles(three, 5, "the ONNX nodes 'b' (Add), 'e' (Relu), 'd' (Abs) wait for each other's results");
  for (int i = 0; i < 20; i++) {
    snprintf(names[i], sizeof names[i], "n%d", i);
    many[i] = (listed_node){"Neg", names[i], names[(i + 1) % 20]};
  }
  expect_list_cycles(many, 20, "'n14' (Neg) and 12 more wait for each other's results");
}

/* A branch reads what follows from the result of the If itself. */
static void cycles_through_branches(void **state) {
  pb graph = with_input_and_output(), node = branching_node(false, "m");
  (void)state;
  pb_put(&graph, GRAPH_NODE, &node);
  onnx_add_node(&graph, "Neg", "r", "h");
  onnx_add_node(&graph, "Abs", "x", "k");
  onnx_add_node(&graph, "Abs", "h", "y");
  pb model = onnx_model(&graph);
  expect_cycle(&model, "the ONNX nodes 'r' (If), 'h' (Neg) wait for each other's results");
}

static void cycles_in_functions(void **state) {
  static const listed_node nodes[] = {{"Add", "a,d", "b"}, {"Neg", "b", "d"}};
  pb function = onnx_function("F", "a", "d"), graph = with_input_and_output(), node = onnx_node("F", "x", "y");
  (void)state;
  put_nodes(&function, FUNCTION_NODE, nodes, 2, NULL);
  pb_text(&node, NODE_DOMAIN, "local");
  pb_put(&graph, GRAPH_NODE, &node);
  pb model = onnx_model(&graph);
  pb_put(&model, MODEL_FUNCTION, &function);
  expect_cycle(&model, "the function 'F': the ONNX nodes 'b' (Add), 'd' (Neg) wait for each other's results");
}

/* ---- Every allocation may fail ---- */

static berth_status load_unsorted(berth_context *ctx, berth_error *err, void *user) {
  berth_graph *graph = NULL;
  (void)user;
  berth_status status = berth_graph_load(ctx, test_path("order.onnx"), &graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void failing_allocations(void **state) {
  pb model = branching_model((size_t[]){3, 2, 1, 0}, true, "m");
  (void)state;
  test_write_file(test_path("order.onnx"), model.data, model.size);
  pb_free(&model);
  assert_true(test_fail_each_allocation(load_unsorted, NULL) > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(any_order_gives_the_same_graph),
      cmocka_unit_test(an_order_that_is_right_stays),
      cmocka_unit_test(a_long_row_from_its_end),
      cmocka_unit_test(branches_and_functions),
      cmocka_unit_test(names_that_are_inside_and_outside),
      cmocka_unit_test(cycles_name_their_nodes),
      cmocka_unit_test(cycles_through_branches),
      cmocka_unit_test(cycles_in_functions),
      cmocka_unit_test(failing_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
