/* Shared weights: the places of one plan's params, by name, for other plans. */
#include "plan/planning.h"

#define PARAMS "param %w : f32[8, 8]\nparam %b : f32[8]\nparam %v : f32[8, 3]\nconst %k : f32[2] = [3, 4]\n"
#define FORWARD                                                                   \
  "input %x : f32[batch, 8]\n" PARAMS                                             \
  "%h = matmul(%x, %w)\n%hb = add(%h, %b)\n%a = relu(%hb)\n%y = matmul(%a, %v)\n" \
  "%s = reduce_sum(%k)\n%z = add(%y, %s)\noutput \"z\" = %z"

typedef struct layouts {
  berth_plan *forward;
  berth_layout *layout;
} layouts;

static layouts take_layout(fixture *f, int64_t batch) {
  layouts l = {0};
  berth_error err;
  berth_dim dims[] = {{"batch", batch}};
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.dims = dims;
  desc.n_dims = 1;
  f->graph = parse_graph(f->ctx, FORWARD);
  l.forward = make_plan(f->graph, &desc);
  TEST_OK(berth_plan_layout(l.forward, &l.layout, &err));
  return l;
}

static void free_layout(layouts *l) {
  berth_layout_destroy(l->layout);
  berth_plan_destroy(l->forward);
}

static void test_queries(void **state) {
  layouts l = take_layout(*state, 4);
  const char *names[] = {"w", "b", "v"};
  for (size_t i = 0; i < 3; i++)
    assert_int_equal(berth_layout_offset(l.layout, names[i]), slot_of(l.forward, names[i]).offset);
  assert_int_equal(berth_layout_offset(l.layout, "k"), BERTH_OFFSET_NONE); /* a constant belongs to one plan */
  assert_int_equal(berth_layout_offset(l.layout, "x"), BERTH_OFFSET_NONE);
  assert_int_equal(berth_layout_offset(l.layout, "nothing"), BERTH_OFFSET_NONE);
  assert_int_equal(berth_layout_offset(l.layout, NULL), BERTH_OFFSET_NONE);
  assert_int_equal(berth_layout_size(l.layout), slot_of(l.forward, "k").offset); /* constants lie after the params */
  free_layout(&l);
}

static void test_every_binding_uses_the_same_bytes(void **state) {
  fixture *f = *state;
  layouts l = take_layout(f, 4);
  for (int64_t batch = 1; batch < 20; batch += 6) {
    berth_dim dims[] = {{"batch", batch}};
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    desc.dims = dims;
    desc.n_dims = 1;
    desc.layout = l.layout;
    berth_plan *plan = make_plan(f->graph, &desc);
    const char *names[] = {"w", "b", "v"};
    for (size_t i = 0; i < 3; i++)
      assert_int_equal(slot_of(plan, names[i]).offset, slot_of(l.forward, names[i]).offset);
    assert_int_equal(test_plan_info(plan).weights_size, berth_layout_size(l.layout) + 64); /* and the constant */
    berth_plan_destroy(plan);
  }
  free_layout(&l);
}

/* Another graph, with some of the params in another order: "backward" of the same weights. */
#define BACKWARD                                                                                                   \
  "input %g : f32[4, 3]\nparam %v : f32[8, 3]\nconst %k : f32[2] = [3, 4]\nparam %w : f32[8, 8]\n"                 \
  "%vt = transpose(%v)\n%gh = matmul(%g, %vt)\n%wt = transpose(%w)\n%gx = matmul(%gh, %wt)\n%s = reduce_sum(%k)\n" \
  "%z = add(%gx, %s)\noutput \"z\" = %z"

static void test_another_graph(void **state) {
  fixture *f = *state;
  layouts l = take_layout(f, 4);
  berth_graph *graph = parse_graph(f->ctx, BACKWARD);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.layout = l.layout;
  berth_plan *plan = make_plan(graph, &desc);
  berth_plan_info info = test_plan_info(plan);
  const char *names[] = {"v", "w"};
  for (size_t i = 0; i < 2; i++) assert_int_equal(slot_of(plan, names[i]).offset, slot_of(l.forward, names[i]).offset);
  /* b is not in this graph; its bytes still belong to no other value. */
  uint64_t b = slot_of(l.forward, "b").offset;
  for (size_t i = 0; i < plan->n_buffers; i++)
    assert_true(plan->buffers[i].offset >= b + 32 || plan->buffers[i].offset + plan->buffers[i].size <= b);
  assert_int_equal(info.weights_size, berth_layout_size(l.layout) + 64);
  assert_int_equal(info.saved, info.total_unshared - info.arena_size);
  desc.flags = BERTH_PLAN_NO_REUSE;
  berth_plan *apart = make_plan(graph, &desc);
  assert_int_equal(info.total_unshared, berth_plan_arena_size(apart));
  berth_plan_destroy(apart);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  free_layout(&l);
}

/* One block for both: as large as the larger plan, and the weights written once. */
static void test_one_arena_for_both(void **state) {
  fixture *f = *state;
  berth_error err;
  layouts l = take_layout(f, 40);
  berth_graph *graph = parse_graph(f->ctx, BACKWARD);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.layout = l.layout;
  berth_plan *plan = make_plan(graph, &desc);
  berth_arena *arena = NULL;
  berth_arena_desc arena_desc = BERTH_ARENA_DESC_INIT;
  arena_desc.min_size = berth_plan_arena_size(l.forward);
  assert_true(berth_plan_arena_size(l.forward) > berth_plan_arena_size(plan));
  TEST_OK(berth_arena_create(plan, &arena_desc, &arena, &err));
  assert_int_equal(berth_arena_size(arena), berth_plan_arena_size(l.forward));
  berth_arena_destroy(arena);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  free_layout(&l);
}

static void expect_refused(fixture *f, const char *text, const berth_plan_desc *desc, const char *part) {
  berth_error err;
  berth_plan *plan = (berth_plan *)(uintptr_t)1;
  berth_graph *graph = parse_graph(f->ctx, text);
  test_expect_error(berth_plan_create(graph, desc, &plan, &err), BERTH_INVALID, &err, part);
  assert_null(plan);
  berth_graph_destroy(graph);
}

static void test_layouts_that_do_not_fit(void **state) {
  fixture *f = *state;
  layouts l = take_layout(f, 4);
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.layout = l.layout;
  expect_refused(f, "param %other : f32[8]\n%y = exp(%other)\noutput \"y\" = %y", &desc,
                 "'other' is not in the layout");
  expect_refused(f, "param %b : f32[9]\n%y = exp(%b)\noutput \"y\" = %y", &desc, "'b' needs 36 bytes");
  expect_refused(f, "param %k : f32[2]\n%y = exp(%k)\noutput \"y\" = %y", &desc, "'k'");
  desc.align = 128;
  expect_refused(f, "param %b : f32[8]\n%y = exp(%b)\noutput \"y\" = %y", &desc, "aligned to 64");
  desc.align = 32; /* a layout that is aligned to more is fine */
  berth_graph *graph = parse_graph(f->ctx, "param %b : f32[8]\n%y = exp(%b)\noutput \"y\" = %y");
  berth_plan_destroy(make_plan(graph, &desc));
  berth_graph_destroy(graph);
  free_layout(&l);
}

/* Params that are planned outside need no place. */
static void test_outside(void **state) {
  fixture *f = *state;
  layouts l = take_layout(f, 4);
  berth_plan_desc desc = desc_with(BERTH_PLAN_PARAMS_OUTSIDE);
  desc.layout = l.layout;
  berth_graph *graph = parse_graph(f->ctx, "param %other : f32[8]\n%y = exp(%other)\noutput \"y\" = %y");
  berth_plan *plan = make_plan(graph, &desc);
  assert_int_equal(slot_of(plan, "y").offset, berth_layout_size(l.layout));
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  free_layout(&l);
}

static void test_wrong_arguments(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_layout *layout = (berth_layout *)(uintptr_t)1;
  test_expect_error(berth_plan_layout(NULL, &layout, &err), BERTH_INVALID, &err, NULL);
  plan_text(f, "input %x : f32[4]\noutput \"x\" = %x", 0);
  test_expect_error(berth_plan_layout(f->plan, NULL, &err), BERTH_INVALID, &err, NULL);
  TEST_OK(berth_plan_layout(f->plan, &layout, &err)); /* no weights at all */
  assert_int_equal(berth_layout_size(layout), 0);
  berth_layout_destroy(layout);
  berth_layout_destroy(NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_queries),
      PLAN_TEST(test_every_binding_uses_the_same_bytes),
      PLAN_TEST(test_another_graph),
      PLAN_TEST(test_one_arena_for_both),
      PLAN_TEST(test_layouts_that_do_not_fit),
      PLAN_TEST(test_outside),
      PLAN_TEST(test_wrong_arguments),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
