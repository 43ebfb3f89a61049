/* Which constants of a file are weights, and what becomes of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "support.h"

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  if (f == NULL) return 1;
  f->ctx = test_context_counting(&f->alloc);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
  free(f);
  return 0;
}

/* A graph whose constants are those of a file: all but "own". */
static void read_graph(fixture *f, const char *statements) {
  berth_error err;
  char text[2048];
  snprintf(text, sizeof text, "graph \"g\" {\n%s\n}\n", statements);
  berth_graph_destroy(f->graph);
  f->graph = NULL;
  TEST_OK(berth_graph_parse(f->ctx, text, strlen(text), &f->graph, &err));
  for (size_t v = 0; v < f->graph->n_values; v++)
    f->graph->values[v].is_initializer =
        f->graph->values[v].kind == BERTH_VALUE_CONSTANT && strcmp(f->graph->values[v].name, "own") != 0;
}

typedef struct row {
  const char *what, *statements, *params; /* the params that there are in the end, each with a space after it */
} row;

#define X "input %x : f32[2, 3] param %w : f32[3, 2] "
#define B "const %b : f32[2] = [1.0, 2.0] "
static const row rows[] = {
    {"a bias", X B "%m = matmul(%x, %w) %y = add(%m, %b) output \"y\" = %y", "w b "},
    {"a bias of one",
     "input %x : f32[2, 3] param %w : f32[3, 1] const %b : f32[1] = [1.0] %m = matmul(%x, %w)"
     "%y = add(%m, %b) output \"y\" = %y",
     "w b "},
    {"a number", X "const %b : f32[] = [2.0] %m = matmul(%x, %w) %y = mul(%m, %b) output \"y\" = %y", "w "},
    {"a factor of one element", X "const %b : f32[1] = [2.0] %m = matmul(%x, %w) %y = mul(%m, %b) output \"y\" = %y",
     "w "},
    {"what inputs are scaled by",
     X "const %s : f32[3] = [1.0, 2.0, 3.0] %n = mul(%x, %s) %y = matmul(%n, %w) output \"y\" = %y", "w "},
    {"a constant of the text",
     X "const %own : f32[2] = [1.0, 2.0] %m = matmul(%x, %w) %y = add(%m, %own) output \"y\" = %y", "w "},
    {"integers", X "const %i : i64[1] = [1] %m = matmul(%x, %w) %y = gather(%m, %i) {axis = 1} output \"y\" = %y",
     "w "},
    {"a small matrix, and a bias after it",
     "input %x : f32[2, 3] const %w : f32[3, 2] = [1.0, 0.0, 0.0, 1.0, 1.0, 1.0] " B
     "%m = matmul(%x, %w) %y = add(%m, %b) output \"y\" = %y",
     "w b "},
    {"a convolution",
     "input %x : f32[1, 1, 4, 4] const %w : f32[1, 1, 1, 1] = [2.0] const %b : f32[1] = [1.0]"
     "%y = conv(%x, %w, %b) output \"y\" = %y",
     "w b "},
    {"turned before it is read",
     X B "const %v : f32[2, 2] = [1.0, 2.0, 3.0, 4.0] %t = transpose(%v) {perm = [1, 0]}"
         "%m = matmul(%x, %w) %n = matmul(%m, %t) %u = unsqueeze(%b) {axes = [0]} %y = add(%n, %u) output \"y\" = %y",
     "w b v "},
    {"statistics",
     "input %x : f32[1, 2, 3] " B "const %s : f32[2] = [1.0, 1.0] const %m : f32[2] = [0.0, 0.0]"
     "const %v : f32[2] = [1.0, 1.0] %y = batch_norm(%x, %s, %b, %m, %v) output \"y\" = %y",
     "b s "},
    {"a table that rows are taken of, as ONNX writes embeddings",
     "input %i : i64[4] param %w : f32[2, 2] const %e : f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"
     "%g = gather(%e, %i) %y = matmul(%g, %w) output \"y\" = %y",
     "w e "},
    {"a table of which always the same rows are taken",
     "input %x : f32[2, 2] const %i : i64[2] = [2, 0] const %e : f32[3, 2] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"
     "%g = gather(%e, %i) %y = mul(%x, %g) output \"y\" = %y",
     ""},
    {"numbers of a list",
     "input %i : i64[4] const %e : f32[3] = [1.0, 2.0, 3.0] param %w : f32[4, 2] %g = gather(%e, %i)"
     "%y = matmul(%g, %w) output \"y\" = %y",
     "w "},
    {"read as something else as well", X B "%m = matmul(%x, %w) %y = add(%m, %b) %z = pow(%y, %b) output \"z\" = %z",
     "w "},
    {"an output itself", X B "%m = matmul(%x, %w) %y = add(%m, %b) output \"y\" = %y output \"b\" = %b", "w "},
};

static void test_weights_are_found_by_where_they_stand(void **state) {
  fixture *f = *state;
  berth_error err;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    char names[200] = "";
    uint32_t n, before;
    read_graph(f, rows[i].statements);
    before = berth_graph_n_params(f->graph);
    TEST_OK(berth_graph_thaw(f->graph, &n, &err));
    TEST_OK(berth_graph_verify(f->graph, &err));
    assert_int_equal(n, berth_graph_n_params(f->graph) - before);
    for (uint32_t k = 0; k < berth_graph_n_params(f->graph); k++) {
      strcat(names, f->graph->values[berth_graph_param_at(f->graph, k)].name);
      strcat(names, " ");
    }
    if (strcmp(names, rows[i].params) != 0) fail_msg("%s: %s, and not %s", rows[i].what, names, rows[i].params);
  }
}

/* They start with the elements that they had, and a step changes them. */
static void test_a_bias_learns(void **state) {
  fixture *f = *state;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_session *session;
  berth_error err;
  const float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {0}, rate = 0.5f;
  float before[4], after[4], bias[2];
  read_graph(f, X B
             "%m = matmul(%x, %w) %y = add(%m, %b) %s = mul(%y, %y) %loss = reduce_sum(%s) {keepdims = 0}"
             "output \"y\" = %y output \"loss\" = %loss");
  TEST_OK(berth_graph_thaw(f->graph, NULL, &err));
  how.optimizer = BERTH_OPTIMIZER_SGD;
  how.momentum = how.weight_decay = 0;
  TEST_OK(berth_graph_train(f->graph, berth_graph_find(f->graph, "loss"), &how, &err));
  TEST_OK(berth_session_create(f->graph, NULL, &session, &err));
  TEST_OK(berth_session_state_write(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", before, sizeof before, &err));
  assert_true(before[0] == 1 && before[1] == 2);
  TEST_OK(berth_session_state_read(session, "b", bias, sizeof bias, &err));
  assert_true(bias[0] == 1 - 0.5f * 4 && bias[1] == 2 - 0.5f * 8); /* 2 (y + y) for two rows */
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", after, sizeof after, &err));
  assert_true(after[0] != before[0]);
  berth_session_destroy(session);
}

static void test_no_graph(void **state) {
  (void)state;
  berth_error err;
  test_expect_error(berth_graph_thaw(NULL, NULL, &err), BERTH_INVALID, &err, "needs a graph");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_weights_are_found_by_where_they_stand, setup, teardown),
      cmocka_unit_test_setup_teardown(test_a_bias_learns, setup, teardown),
      cmocka_unit_test(test_no_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
