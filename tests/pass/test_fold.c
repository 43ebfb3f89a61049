/* What becomes of constants: results that follow from them, operands that turn into attributes, and nodes that are
 * not needed any more. */
#include <stdlib.h>

#include "pass/pass.h"
#include "plan/plan.h"
#include "support.h"

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph, *bound;
} fixture;

static int setup(void **state) {
  fixture *f = calloc(1, sizeof *f);
  if (f == NULL) return -1;
  f->ctx = test_context_counting(&f->alloc);
  *state = f;
  return 0;
}

static int teardown(void **state) {
  fixture *f = *state;
  berth_graph_destroy(f->graph);
  berth_graph_destroy(f->bound);
  test_context_done(f->ctx, &f->alloc);
  free(f);
  return 0;
}

static void parse(fixture *f, const char *text) {
  berth_error err;
  TEST_OK(berth_graph_parse(f->ctx, text, strlen(text), &f->graph, &err));
}

static void bind(fixture *f, int64_t n) {
  berth_error err;
  const berth_dim dim = {"n", n};
  TEST_OK(berth_graph_bind(f->graph, &dim, f->graph->n_dims, &f->bound, &err));
}

static void run_passes(fixture *f) {
  berth_error err;
  TEST_OK(berth__pass_all(f->bound, &err));
  TEST_OK(berth_graph_verify(f->bound, &err));
}

static const berth__value *value_of(const berth_graph *graph, const char *name) {
  const berth_value value = berth_graph_find(graph, name);
  assert_int_not_equal(value, BERTH_VALUE_NONE);
  return &graph->values[value];
}

static const berth__node *maker_of(const berth_graph *graph, const char *name) {
  const berth__value *value = value_of(graph, name);
  assert_int_equal(value->kind, BERTH_VALUE_NODE);
  return &graph->nodes[value->node];
}

static void assert_shape(const berth_graph *graph, const char *name, const char *want) {
  char text[BERTH__SHAPE_TEXT];
  assert_string_equal(berth__shape_text(&value_of(graph, name)->shape, text), want);
}

/* As exporters write it: the batch from the shape, the rest from constants. */
static const char shape_arithmetic[] =
    "graph \"g\" {\n"
    "input %x : f32[n, 6]\n"
    "const %rest : i64[2] = [2, 3]\n"
    "%extents = shape(%x)\n"
    "%first = narrow(%extents) {starts = [0], ends = [1]}\n"
    "%target = concat(%first, %rest) {axis = 0}\n"
    "%y = reshape(%x, %target)\n"
    "output \"y\" = %y\n"
    "}\n";

static void shape_arithmetic_folds_away(void **state) {
  fixture *f = *state;
  parse(f, shape_arithmetic);
  assert_shape(f->graph, "y", "[?, ?, ?]");
  bind(f, 5);
  assert_shape(f->bound, "y", "[5, 2, 3]");
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1);
  const berth__node *node = maker_of(f->bound, "y");
  assert_int_equal(node->n_in, 1);
  assert_int_equal(node->attrs[0].count, 3);
  assert_int_equal(node->attrs[0].dims[0].extent, 5);
  assert_int_equal(node->attrs[0].dims[2].extent, 3);
  const char *const gone[] = {"rest", "extents", "first", "target"};
  for (size_t i = 0; i < 4; i++) {
    assert_int_equal(value_of(f->bound, gone[i])->kind, BERTH_VALUE_DROPPED);
    assert_null(value_of(f->bound, gone[i])->blob);
  }
}

static void a_reshape_by_operand_is_a_view(void **state) {
  fixture *f = *state;
  berth_plan *plan;
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  const berth_dim dim = {"n", 3};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.dims = &dim;
  desc.n_dims = 1;
  parse(f, shape_arithmetic);
  TEST_OK(berth_plan_create(f->graph, &desc, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  TEST_OK(berth_plan_slot(plan, berth_graph_find(f->graph, "y"), &slot, &err));
  assert_true(slot.is_view);
  assert_int_equal(slot.root, berth_graph_find(f->graph, "x"));
  assert_int_equal(test_plan_info(plan).weights_size, 0);
  berth_plan_destroy(plan);
}

static void a_slice_by_operand_is_where_it_says(void **state) {
  fixture *f = *state;
  berth_plan *plan;
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  const berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  parse(f,
        "graph \"g\" {\ninput %x : f32[4, 3]\nconst %from : i64[1] = [2]\nconst %to : i32[1] = [100]\n"
        "%y = narrow(%x, %from, %to)\noutput \"y\" = %y\n}\n");
  TEST_OK(berth_plan_create(f->graph, &desc, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  TEST_OK(berth_plan_slot(plan, berth_graph_find(f->graph, "y"), &slot, &err));
  assert_true(slot.is_view);
  assert_int_equal(slot.root_offset, 2 * 3 * sizeof(float));
  berth_plan_destroy(plan);
}

static void small_results_are_known_at_once(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\ninput %x : f32[6]\nconst %two : i64[1] = [2]\nconst %three : i64[1] = [3]\n"
        "%target = concat(%two, %three) {axis = 0}\n%y = reshape(%x, %target)\noutput \"y\" = %y\n}\n");
  assert_shape(f->graph, "y", "[2, 3]");
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_error err;
  TEST_OK(berth_graph_value(f->graph, berth_graph_find(f->graph, "target"), &info, &err));
  assert_int_equal(info.kind, BERTH_VALUE_NODE);
  assert_null(info.data); /* data is what constants and params have */
  TEST_OK(berth__graph_clone(f->graph, &f->bound, &err));
  assert_true(berth_graph_equal(f->graph, f->bound));
}

static void what_a_run_computes_stays(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\ninput %x : f32[2]\nconst %a : f32[2] = [1, 2]\nconst %b : f32[2] = [3, 4]\n"
        "%c = mul(%a, %b)\n%y = add(%x, %c)\n%z = add(%c, %c)\noutput \"y\" = %y\noutput \"z\" = %z\n}\n");
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1);
  assert_string_equal(maker_of(f->bound, "y")->op->name, "add");
  const berth__value *c = value_of(f->bound, "c"), *z = value_of(f->bound, "z");
  assert_int_equal(c->kind, BERTH_VALUE_CONSTANT);
  assert_true(((const float *)c->data)[1] == 8);
  assert_int_equal(z->kind, BERTH_VALUE_CONSTANT); /* an output that is a constant */
  assert_true(((const float *)z->data)[0] == 6);
  assert_int_equal(value_of(f->bound, "a")->kind, BERTH_VALUE_DROPPED);
}

/* A part of a constant that stays needs no bytes of its own; one of a constant that goes does, and is the smaller. */
static void parts_of_constants_that_stay_are_views(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\nconst %c : f32[2, 2] = [1, 2, 3, 4]\nconst %d : f32[2, 2] = [1, 2, 3, 4]\n"
        "%row = narrow(%c) {starts = [1], ends = [2]}\n%turned = transpose(%c)\n"
        "%alone = narrow(%d) {starts = [1], ends = [2]}\noutput \"c\" = %c\noutput \"row\" = %row\n"
        "output \"turned\" = %turned\noutput \"alone\" = %alone\n}\n");
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1);
  assert_string_equal(maker_of(f->bound, "row")->op->name, "narrow");
  assert_int_equal(value_of(f->bound, "turned")->kind, BERTH_VALUE_CONSTANT); /* strided: copied at every run */
  assert_int_equal(value_of(f->bound, "alone")->kind, BERTH_VALUE_CONSTANT);
  assert_int_equal(value_of(f->bound, "d")->kind, BERTH_VALUE_DROPPED);
}

static void random_numbers_are_not_constants(void **state) {
  fixture *f = *state;
  parse(f, "graph \"g\" {\nconst %like : f32[2] = [1, 2]\n%y = random_uniform(%like)\noutput \"y\" = %y\n}\n");
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1);
}

static void dead_nodes_and_constants_go(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\ninput %x : f32[2]\ninput %unused : f32[2]\nparam %w : f32[2]\nconst %c : f32[2] = [1, 2]\n"
        "%a = neg(%x)\n%b = add(%a, %c)\n%p, %q = split(%x)\noutput \"q\" = %q\n}\n");
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1); /* the split: one of its results is needed */
  assert_int_equal(value_of(f->bound, "p")->kind, BERTH_VALUE_NODE);
  assert_int_equal(value_of(f->bound, "q")->node, 0);
  assert_int_equal(value_of(f->bound, "b")->kind, BERTH_VALUE_DROPPED);
  assert_int_equal(value_of(f->bound, "c")->kind, BERTH_VALUE_DROPPED);
  assert_int_equal(value_of(f->bound, "unused")->kind, BERTH_VALUE_INPUT);
  assert_int_equal(value_of(f->bound, "w")->kind, BERTH_VALUE_PARAM);
}

/* A double does not hold this integer, so the operand must not become an attribute. */
static void numbers_that_an_attribute_cannot_hold_stay_operands(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\ninput %x : i64[1]\nconst %pads : i64[2] = [0, 1]\n"
        "const %exact : i64[] = [9007199254740993]\nconst %small : i64[1] = [7]\n"
        "%y = pad(%x, %pads, %exact)\n%z = pad(%x, %pads, %small)\noutput \"y\" = %y\noutput \"z\" = %z\n}\n");
  bind(f, 0);
  run_passes(f);
  const berth__node *y = maker_of(f->bound, "y"), *z = maker_of(f->bound, "z");
  assert_int_equal(y->n_in, 3);
  assert_int_equal(y->in[1], BERTH_VALUE_NONE);
  assert_int_equal(y->in[2], berth_graph_find(f->bound, "exact"));
  assert_int_equal(z->n_in, 1);
  assert_true(z->attrs[2].f == 7);
}

/* An index out of range is the run's to report, not the compiler's. */
static void a_kernel_that_refuses_runs_later(void **state) {
  fixture *f = *state;
  parse(f,
        "graph \"g\" {\nconst %x : f32[2] = [1, 2]\nconst %i : i64[1] = [5]\n%y = gather(%x, %i)\n"
        "output \"y\" = %y\n}\n");
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 1);
}

static const char shape_from_outside[] =
    "graph \"g\" {\n"
    "input %x : f32[2, 3]\n"
    "input %target : i64[2]\n"
    "input %beside : f32[3, 2]\n"
    "%y = reshape(%x, %target)\n"
    "%z = add(%y, %beside)\n"
    "output \"z\" = %z\n"
    "}\n";

static void inputs_that_shapes_depend_on_must_be_fixed(void **state) {
  fixture *f = *state;
  berth_error err;
  const int64_t target[2] = {3, -1}, extent = 2;
  parse(f, shape_from_outside);
  assert_true(berth_graph_shapes_depend(f->graph, berth_graph_find(f->graph, "target")));
  assert_false(berth_graph_shapes_depend(f->graph, berth_graph_find(f->graph, "x")));
  assert_false(berth_graph_shapes_depend(f->graph, berth_graph_find(f->graph, "y")));
  test_expect_error(berth_graph_bind(f->graph, NULL, 0, &f->bound, &err), BERTH_UNSUPPORTED, &err,
                    "shapes depend on the elements of input 'target'");
  TEST_OK(berth_graph_fix(f->graph, "target", BERTH_I64, 1, &extent, target, sizeof target, &err));
  assert_int_equal(berth_graph_n_inputs(f->graph), 2);
  assert_shape(f->graph, "y", "[3, 2]");
  TEST_OK(berth_graph_verify(f->graph, &err));
  bind(f, 0);
  run_passes(f);
  assert_int_equal(f->bound->n_nodes, 2);
}

static void a_fix_that_fails_changes_nothing(void **state) {
  fixture *f = *state;
  berth_error err;
  const int64_t wrong[2] = {4, 2}, other[2] = {2, 3}, extent = 2, long_extent = 3;
  parse(f, shape_from_outside);
  test_expect_error(berth_graph_fix(f->graph, "target", BERTH_I64, 1, &extent, wrong, sizeof wrong, &err),
                    BERTH_INVALID, &err, "6 elements cannot take a shape of 8");
  test_expect_error(berth_graph_fix(f->graph, "target", BERTH_I64, 1, &extent, other, sizeof other, &err),
                    BERTH_INVALID, &err, "do not broadcast"); /* fails after a node that went well */
  test_expect_error(berth_graph_fix(f->graph, "target", BERTH_I32, 1, &extent, wrong, 8, &err), BERTH_INVALID, &err,
                    "does not fit");
  test_expect_error(berth_graph_fix(f->graph, "target", BERTH_I64, 1, &long_extent, wrong, 24, &err), BERTH_INVALID,
                    &err, "does not fit");
  test_expect_error(berth_graph_fix(f->graph, "target", BERTH_I64, 1, &extent, wrong, 8, &err), BERTH_INVALID, &err,
                    "8 bytes do not make up its shape");
  test_expect_error(berth_graph_fix(f->graph, "y", BERTH_F32, 0, NULL, wrong, 4, &err), BERTH_INVALID, &err,
                    "has no input 'y'");
  assert_int_equal(berth_graph_n_inputs(f->graph), 3);
  assert_int_equal(value_of(f->graph, "target")->kind, BERTH_VALUE_INPUT);
  assert_shape(f->graph, "y", "[?, ?]");
  TEST_OK(berth_graph_verify(f->graph, &err));
}

static void elements_of_a_run_cannot_make_shapes(void **state) {
  fixture *f = *state;
  berth_error err;
  parse(f, "graph \"g\" {\nparam %w : f32[1]\n%y = range(%w, %w, %w)\noutput \"y\" = %y\n}\n");
  test_expect_error(berth_graph_bind(f->graph, NULL, 0, &f->bound, &err), BERTH_UNSUPPORTED, &err,
                    "elements that only a run computes");
  assert_null(f->bound);
}

static void open_shapes_that_nobody_needs_do_not_matter(void **state) {
  fixture *f = *state;
  parse(f, "graph \"g\" {\ninput %x : f32[1]\n%i = range(%x, %x, %x)\n%y = neg(%x)\noutput \"y\" = %y\n}\n");
  bind(f, 0);
  assert_int_equal(f->bound->n_nodes, 1);
  assert_int_equal(value_of(f->bound, "i")->kind, BERTH_VALUE_DROPPED);
}

static berth_status fix_and_plan(berth_context *ctx, berth_error *err, void *user) {
  const int64_t target[2] = {3, 2}, extent = 2;
  const berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  (void)user;
  berth_status status = berth_graph_parse(ctx, shape_from_outside, sizeof shape_from_outside - 1, &graph, err);
  if (status == BERTH_OK) status = berth_graph_fix(graph, "target", BERTH_I64, 1, &extent, target, sizeof target, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static berth_status plan_shape_arithmetic(berth_context *ctx, berth_error *err, void *user) {
  const berth_dim dim = {"n", 3};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  (void)user;
  desc.dims = &dim;
  desc.n_dims = 1;
  berth_status status = berth_graph_parse(ctx, shape_arithmetic, sizeof shape_arithmetic - 1, &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void any_allocation_may_fail(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(fix_and_plan, NULL) > 20);
  assert_true(test_fail_each_allocation(plan_shape_arithmetic, NULL) > 20);
}

#define FOLD_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      FOLD_TEST(shape_arithmetic_folds_away),
      FOLD_TEST(a_reshape_by_operand_is_a_view),
      FOLD_TEST(a_slice_by_operand_is_where_it_says),
      FOLD_TEST(small_results_are_known_at_once),
      FOLD_TEST(what_a_run_computes_stays),
      FOLD_TEST(parts_of_constants_that_stay_are_views),
      FOLD_TEST(random_numbers_are_not_constants),
      FOLD_TEST(dead_nodes_and_constants_go),
      FOLD_TEST(numbers_that_an_attribute_cannot_hold_stay_operands),
      FOLD_TEST(a_kernel_that_refuses_runs_later),
      FOLD_TEST(inputs_that_shapes_depend_on_must_be_fixed),
      FOLD_TEST(a_fix_that_fails_changes_nothing),
      FOLD_TEST(elements_of_a_run_cannot_make_shapes),
      FOLD_TEST(open_shapes_that_nobody_needs_do_not_matter),
      cmocka_unit_test(any_allocation_may_fail),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
