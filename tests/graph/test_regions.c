/* Loops in a graph: which nodes lie inside, and everything that the verifier refuses about them. */
#include "graph/region.h"
#include "graphs.h"

#define HEAD "graph \"g\" { input %n : i64[] input %x : f32[2] const %yes : bool[] = [1]\n"
#define BEGIN "%r, %s, %a = loop_begin(%n, %yes, %x)\n"

static berth_context *ctx;

static int make(void **state) {
  (void)state;
  ctx = test_context();
  return 0;
}

static int drop(void **state) {
  (void)state;
  berth_context_destroy(ctx);
  return 0;
}

static void regions_nest(void **state) {
  berth_graph *graph = graph_parse(ctx, HEAD BEGIN
                                   "%b = neg(%a)\n%i, %j, %c = loop_begin(%n, %yes, %b)\n"
                                   "%d = add(%c, %a)\n%k, %l, %e = loop_end(%i, %j, %n, %yes, %c, %d)\n"
                                   "%f, %g, %y = loop_end(%r, %s, %n, %yes, %a, %e)\n"
                                   "%z = neg(%y) output \"z\" = %z }");
  berth__regions regions;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_verify(graph, &err));
  TEST_OK(berth__regions_create(graph, &regions, &err));
  assert_int_equal(regions.count, 3);
  static const uint32_t expected[] = {0, 1, 1, 2, 2, 1, 0}; /* an end runs inside, a begin outside */
  for (uint32_t n = 0; n < 7; n++) assert_int_equal(berth__region_of(&regions, n), expected[n]);
  static const struct {
    const char *name;
    uint32_t region;
  } values[] = {{"x", 0}, {"r", 1}, {"a", 1}, {"b", 1}, {"i", 2}, {"c", 2}, {"d", 2}, {"e", 1}, {"y", 0}, {"z", 0}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    assert_int_equal(berth__region_of_value(&regions, graph, berth_graph_find(graph, values[i].name)),
                     values[i].region);
  assert_true(berth__region_sees(&regions, 2, 1) && berth__region_sees(&regions, 2, 0));
  assert_false(berth__region_sees(&regions, 1, 2));
  assert_int_equal(berth__region_ended(&regions, 4), 2);
  assert_int_equal(berth__region_ended(&regions, 3), UINT32_MAX);
  berth__regions_free(ctx, &regions);
  berth_graph_destroy(graph);
}

static void a_graph_without_loops_has_one_region(void **state) {
  berth_graph *graph = graph_parse(ctx, HEAD BEGIN "%z = neg(%a) output \"z\" = %z }"); /* begun and never ended */
  berth__regions regions;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_verify(graph, &err));
  TEST_OK(berth__regions_create(graph, &regions, &err));
  assert_int_equal(regions.count, 1);
  assert_int_equal(berth__region_of_value(&regions, graph, berth_graph_find(graph, "a")), 0);
  berth__regions_free(ctx, &regions);
  berth_graph_destroy(graph);
}

static void expect_refused(const char *text, const char *part) {
  berth_graph *graph = NULL;
  berth_error err;
  assert_int_not_equal(berth_graph_parse(ctx, text, strlen(text), &graph, &err), BERTH_OK);
  if (strstr(err.message, part) == NULL) fail_msg("%s", err.message);
}

static void wrong_loops_are_refused(void **state) {
  static const struct {
    const char *text, *part;
  } cases[] = {
      {HEAD "%k, %l, %y = loop_end(%n, %yes, %n, %yes, %x, %x) output \"y\" = %y }",
       "node 'k' (loop_end): its first operand is not the round of a loop_begin"},
      {HEAD BEGIN "%k, %l, %y = loop_end(%r, %s, %n, %yes, %x, %a) output \"y\" = %y }",
       "its operands are not the results of its loop_begin"},
      {HEAD BEGIN "%k, %l, %y = loop_end(%r, %yes, %n, %yes, %a, %a) output \"y\" = %y }",
       "its operands are not the results of its loop_begin"},
      {HEAD BEGIN "%k, %l = loop_end(%r, %s, %n, %yes) output \"k\" = %k }",
       "its operands are not the results of its loop_begin"},
      {HEAD BEGIN "%b = neg(%a) %k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %b) %z = add(%y, %b) output \"z\" = %z }",
       "node 'z' (add): it reads a value from inside a loop that it is not in"},
      {HEAD BEGIN "%k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %a) %z = neg(%a) output \"z\" = %z }",
       "node 'z' (neg): it reads a value from inside a loop"},
      {HEAD BEGIN "%b = neg(%a) %k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %b) output \"b\" = %b }",
       "output 'b' is a value from inside a loop"},
      {HEAD BEGIN "%k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %a)\n"
                  "%o, %p, %z = loop_end(%r, %s, %n, %yes, %a, %a) output \"z\" = %z }",
       "its loop_begin has another end"},
      {HEAD BEGIN "%i, %j, %c = loop_begin(%n, %yes, %x)\n%k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %a)\n"
                  "%o, %p, %z = loop_end(%i, %j, %n, %yes, %c, %c) output \"z\" = %z }",
       "node 'i' (loop_begin): it lies in a loop that ends before it does"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refused(cases[i].text, cases[i].part);
}

/* A graph that was not verified is refused when it is planned. */
static void plans_are_not_made_of_them(void **state) {
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  berth_value in[4], out[2];
  (void)state;
  TEST_OK(berth_graph_create(ctx, "g", &graph, &err));
  TEST_OK(berth_graph_input(graph, "n", BERTH_I64, (berth_shape){.rank = 0}, &in[0], &err));
  TEST_OK(berth_graph_input(graph, "c", BERTH_BOOL, (berth_shape){.rank = 0}, &in[1], &err));
  in[2] = in[0];
  in[3] = in[1];
  TEST_OK(berth_graph_add(graph, "loop_end", in, 4, NULL, 0, out, 2, &err));
  TEST_OK(berth_graph_output(graph, "y", out[0], &err));
  test_expect_error(berth_plan_create(graph, NULL, &plan, &err), BERTH_INVALID, &err, "not the round of a loop_begin");
  berth_graph_destroy(graph);
}

/* What inference says of the two ends. */
static void wrong_ends_are_refused(void **state) {
  static const struct {
    const char *text, *part;
  } cases[] = {
      {HEAD BEGIN "%b = concat(%a, %a) {axis = 0} %k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %b) output \"y\" = %y }",
       "carried value 0 has shape [2] before a round and [4] after it"},
      {HEAD BEGIN "%b = cast(%a) {to = \"i32\"} %k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %b) output \"y\" = %y }",
       "type i32, expected f32"},
      {"graph \"g\" { const %n : i64[] = [9223372036854775807] input %x : f32[2] const %yes : bool[] = [1]\n" BEGIN
       "%k, %l, %y, %z = loop_end(%r, %s, %n, %yes, %a, %a, %a) output \"y\" = %y }",
       "nothing bounds the number of its rounds"},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) expect_refused(cases[i].text, cases[i].part);
}

static berth_status parse_and_verify(berth_context *context, berth_error *err, void *user) {
  static const char text[] =
      HEAD BEGIN "%b = neg(%a) %k, %l, %y = loop_end(%r, %s, %n, %yes, %a, %b) output \"y\" = %y }";
  berth_graph *graph = NULL;
  (void)user;
  berth_status status = berth_graph_parse(context, text, sizeof text - 1, &graph, err);
  if (status == BERTH_OK) status = berth_graph_verify(graph, err);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_may_be_missed(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(parse_and_verify, NULL) >= 20);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(regions_nest),
      cmocka_unit_test(a_graph_without_loops_has_one_region),
      cmocka_unit_test(wrong_loops_are_refused),
      cmocka_unit_test(plans_are_not_made_of_them),
      cmocka_unit_test(wrong_ends_are_refused),
      cmocka_unit_test(no_allocation_may_be_missed),
  };
  return cmocka_run_group_tests(tests, make, drop);
}
