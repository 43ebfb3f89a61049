/* Where states lie, who writes them, and when. What runs give is tested with sessions. */
#include "plan/planning.h"

#include <stdio.h>

static uint32_t step_of(const berth_plan *plan, const char *result) {
  const uint32_t node = plan->graph->values[find(plan, result)].node;
  uint32_t step = 0;
  while (plan->order[step] != node) step++;
  return step;
}

static uint32_t count_nodes(const berth_plan *plan, const char *op) {
  uint32_t n = 0;
  for (size_t i = 0; i < plan->graph->n_nodes; i++) n += strcmp(plan->graph->nodes[i].op->name, op) == 0;
  return n;
}

/* The value is made in the state's bytes. */
static void assert_lies_in(const berth_plan *plan, const char *value, const char *state) {
  assert_int_equal(slot_of(plan, value).root, find(plan, state));
  assert_int_equal(slot_of(plan, value).offset, slot_of(plan, state).offset);
}

/* Nothing is copied: no node but those of the graph. */
static const berth_plan *plan_without_copies(fixture *f, const char *statements) {
  const berth_plan *plan = plan_text(f, statements, 0);
  assert_int_equal(plan->graph->n_values, f->graph->n_values);
  for (size_t i = 0; i < plan->graph->n_updates; i++)
    assert_int_equal(plan->places[plan->graph->updates[i].next].root, plan->graph->updates[i].state);
  return plan;
}

static void a_state_is_updated_in_place(void **state) {
  const berth_plan *plan = plan_without_copies(*state,
                                               "input %x : f32[4]\nstate %s : f32[4] = zeros\n%n = add(%s, %x)\n"
                                               "update %s = %n\noutput \"n\" = %n");
  assert_in_place(plan, "n", "s");
  assert_lies_in(plan, "n", "s");
  assert_int_equal(buffer_of(plan, "s")->kind, BERTH__BUFFER_STATE);
  assert_int_equal(buffer_of(plan, "s")->death, berth__plan_end(plan->n_steps));
}

static void a_state_is_written_where_it_lies_by_who_does_not_read_it(void **state) {
  const berth_plan *plan = plan_without_copies(*state,
                                               "input %x : f32[4, 4]\nstate %s : f32[4, 4] = zeros\n"
                                               "%n = matmul(%x, %x)\nupdate %s = %n\noutput \"n\" = %n");
  assert_lies_in(plan, "n", "s");
  assert_false(place_of(plan, "n")->in_place);
}

static void readers_are_put_before_the_writer(void **state) {
  const berth_plan *plan =
      plan_without_copies(*state,
                          "input %x : f32[4]\nstate %s : f32[4] = zeros\n%n = add(%s, %x)\n%y = exp(%s)\n"
                          "%v = reshape(%s) {shape = [2, 2]}\n%z = exp(%v)\nupdate %s = %n\n"
                          "output \"n\" = %n\noutput \"y\" = %y\noutput \"z\" = %z");
  assert_true(step_of(plan, "y") < step_of(plan, "n"));
  assert_true(step_of(plan, "z") < step_of(plan, "n"));
  assert_view(plan, "v", "s", 0);
}

/* The graph's own order is kept where it will do. */
static void nothing_moves_without_need(void **state) {
  const berth_plan *plan = plan_without_copies(*state,
                                               "input %x : f32[4]\nstate %s : f32[4] = zeros\n%a = exp(%x)\n"
                                               "%n = add(%s, %x)\n%b = exp(%n)\nupdate %s = %n\n"
                                               "output \"a\" = %a\noutput \"b\" = %b");
  assert_int_equal(step_of(plan, "a"), 0);
  assert_int_equal(step_of(plan, "n"), 1);
  assert_int_equal(step_of(plan, "b"), 2);
}

/* y needs both the old and the next value. */
static void a_reader_behind_the_writer_makes_it_a_copy(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[4]\nstate %s : f32[4] = zeros\n%n = add(%s, %x)\n"
                                     "%y = mul(%n, %s)\nupdate %s = %n\noutput \"y\" = %y",
                                     0);
  assert_owner(plan, "n");
  assert_lies_in(plan, "s.next", "s");
  assert_int_equal(step_of(plan, "s.next"), plan->n_steps - 1);
  assert_int_equal(count_nodes(plan, "identity"), 1);
}

static void an_operand_that_may_not_be_written_over_makes_it_a_copy(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[4, 4]\nstate %s : f32[4, 4] = zeros\n%n = matmul(%s, %x)\n"
                                     "update %s = %n\noutput \"n\" = %n",
                                     0);
  assert_lies_in(plan, "s.next", "s");
  /* It also reads the state through a view. */
  plan = plan_text(f,
                   "input %x : f32[4, 4]\nstate %s : f32[4, 4] = zeros\n%t = transpose(%s) {perm = [1, 0]}\n"
                   "%n = add(%s, %t)\nupdate %s = %n\noutput \"n\" = %n",
                   0);
  assert_lies_in(plan, "s.next", "s");
}

static void in_place_may_be_switched_off(void **state) {
  static const char text[] =
      "input %x : f32[4]\nstate %s : f32[4] = zeros\nstate %t : f32[4] = zeros\n%n = add(%s, %x)\n%m = exp(%x)\n"
      "update %s = %n\nupdate %t = %m\noutput \"n\" = %n";
  const uint32_t flags[] = {BERTH_PLAN_NO_INPLACE, BERTH_PLAN_NO_REUSE, BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_PASSES};
  fixture *f = *state;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    const berth_plan *plan = plan_text(f, text, flags[i]);
    assert_lies_in(plan, "s.next", "s");
    assert_lies_in(plan, "m", "t"); /* it takes nobody's place */
  }
}

static void what_no_node_makes_is_copied(void **state) {
  fixture *f = *state;
  const berth_plan *plan =
      plan_text(f,
                "input %x : f32[4]\nparam %w : f32[4]\nconst %c : f32[4] = [1, 2, 3, 4]\nstate %s : f32[4] = zeros\n"
                "state %t : f32[4] = zeros\nstate %u : f32[4] = zeros\n%k = add(%c, %c)\nstate %v : f32[4] = zeros\n"
                "update %s = %x\nupdate %t = %w\nupdate %u = %c\nupdate %v = %k",
                0);
  static const char *const states[] = {"s", "t", "u"};
  assert_lies_in(plan, "k", "v"); /* a node makes this one, as long as nothing is folded */
  for (size_t i = 0; i < 3; i++) {
    char next[16];
    snprintf(next, sizeof next, "%s.next", states[i]);
    assert_lies_in(plan, next, states[i]);
  }
  assert_int_equal(plan->n_prelude, 0);
}

static void one_value_for_two_states_is_copied_once(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[4]\nstate %s : f32[4] = zeros\nstate %t : f32[4] = zeros\n"
                                     "%n = exp(%x)\nupdate %s = %n\nupdate %t = %n",
                                     0);
  assert_lies_in(plan, "n", "s");
  assert_lies_in(plan, "t.next", "t");
  assert_int_equal(count_nodes(plan, "identity"), 1);
}

static void states_that_change_places_are_copied_through_one_of_them(void **state) {
  fixture *f = *state;
  const berth_plan *plan =
      plan_text(f, "state %a : f32[64] = zeros\nstate %b : f32[64] = zeros\nupdate %a = %b\nupdate %b = %a", 0);
  assert_lies_in(plan, "a.next", "a");
  assert_lies_in(plan, "b.next", "b");
  assert_int_equal(plan->info.activations_size, 256); /* one of them */
  assert_int_equal(plan->info.state_size, 512);
}

static void a_line_of_states_moves_on_without_more_memory(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[64]\nstate %a : f32[64] = zeros\nstate %b : f32[64] = zeros\n"
                                     "state %c : f32[64] = zeros\nupdate %a = %x\nupdate %b = %a\nupdate %c = %b",
                                     0);
  assert_true(step_of(plan, "c.next") < step_of(plan, "b.next"));
  assert_true(step_of(plan, "b.next") < step_of(plan, "a.next"));
  assert_int_equal(plan->info.activations_size, 256); /* the input */
}

static void an_old_value_that_goes_out_is_a_copy(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[4]\nstate %s : f32[4] = zeros\nstate %still : f32[4] = zeros\n"
                                     "%before = identity(%s)\n%n = add(%s, %x)\n%shown = identity(%still)\n"
                                     "update %s = %n\noutput \"before\" = %before\noutput \"shown\" = %shown",
                                     0);
  assert_owner(plan, "before");
  assert_lies_in(plan, "n", "s");
  assert_view(plan, "shown", "still", 0); /* nothing ever writes it */
}

/* What shows the old value is read by someone who needs the next one. */
static void a_view_that_is_read_late_is_a_copy(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[4]\nstate %s : f32[4] = zeros\n"
                                     "%v = reshape(%s) {shape = [2, 2]}\n%n = add(%s, %x)\n"
                                     "%w = reshape(%n) {shape = [2, 2]}\n%y = mul(%v, %w)\nupdate %s = %n\n"
                                     "output \"y\" = %y",
                                     0);
  assert_lies_in(plan, "n", "s");
  assert_owner(plan, "v");
  assert_view(plan, "w", "s", 0);
}

static void a_state_that_is_updated_from_itself_stays(void **state) {
  fixture *f = *state;
  const berth_plan *plan =
      plan_text(f, "state %s : f32[4] = [1, 2, 3, 4]\n%y = exp(%s)\nupdate %s = %s\noutput \"y\" = %y", 0);
  assert_int_equal(plan->n_steps, 1);
}

static void a_choice_may_lie_over_the_state(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %c : bool[]\ninput %x : f32[4]\nstate %s : f32[4] = zeros\n%e = exp(%x)\n"
                                     "%n = choose(%c, %e, %s)\nupdate %s = %n\noutput \"n\" = %n",
                                     0);
  for (size_t i = 0; i < plan->graph->n_updates; i++)
    assert_int_equal(plan->places[plan->graph->updates[i].next].root, find(plan, "s"));
}

#define LOOP                                                                                                        \
  "const %trips : i64[] = [3]\nconst %yes : bool[] = [1]\ninput %x : f32[4]\nstate %s : f32[4] = zeros\n"           \
  "%r, %go, %a = loop_begin(%trips, %yes, %x)\n%b = add(%a, %s)\n%k, %m, %y = loop_end(%r, %go, %trips, %yes, %a, " \
  "%b)\n"

static void a_state_may_be_read_in_a_loop_and_updated_behind_it(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f, LOOP "%n = exp(%y)\nupdate %s = %n\noutput \"y\" = %y", 0);
  assert_lies_in(plan, "n", "s");
  plan = plan_text(f, LOOP "update %s = %y\noutput \"y\" = %y", 0);
  assert_lies_in(plan, "s.next", "s");
}

/* Graphs with loops keep their order: the writer stands before a reader. */
static void a_writer_before_a_loop_that_reads_the_state_is_a_copy(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "const %trips : i64[] = [3]\nconst %yes : bool[] = [1]\ninput %x : f32[4]\n"
                                     "state %s : f32[4] = zeros\n%n = add(%s, %x)\n"
                                     "%r, %go, %a = loop_begin(%trips, %yes, %x)\n%b = add(%a, %s)\n"
                                     "%k, %m, %y = loop_end(%r, %go, %trips, %yes, %a, %b)\n"
                                     "update %s = %n\noutput \"y\" = %y",
                                     0);
  assert_lies_in(plan, "s.next", "s");
}

static void rows_are_written_into_a_cache_in_place(void **state) {
  const berth_plan *plan = plan_without_copies(
      *state,
      "input %row : f32[1, 8]\ninput %at : i32[]\nstate %cache : f32[128, 8] = zeros\n"
      "%next = write_rows(%cache, %row, %at)\n%sum = reduce_sum(%next) {axes = [0]}\nupdate %cache = %next\n"
      "output \"sum\" = %sum");
  assert_in_place(plan, "next", "cache");
  assert_int_equal(plan->info.state_size, 128 * 8 * 4);
}

/* ---- Sizes, places, reports ---- */

static void all_plans_of_a_layout_have_a_state_in_one_place(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_layout *layout;
  static const char text[] =
      "input %x : f32[n, 4]\nparam %w : f32[4, 4]\nstate %s : f32[4] = zeros\nstate %t : f32[m, 4] = zeros\n"
      "%p = matmul(%x, %w)\n%r = reduce_sum(%p) {axes = [0], keepdims = 0}\n%k = add(%s, %r)\n"
      "%v = add(%t, %r)\nupdate %s = %k\nupdate %t = %v\noutput \"p\" = %p";
  berth_dim dims[] = {{"n", 2}, {"m", 3}};
  berth_plan_desc desc = desc_with(0);
  berth_plan *other;
  desc.dims = dims;
  desc.n_dims = 2;
  f->graph = parse_graph(f->ctx, text);
  f->plan = make_plan(f->graph, &desc);
  TEST_OK(berth_plan_layout(f->plan, &layout, &err));
  assert_int_equal(berth_layout_offset(layout, "s"), slot_of(f->plan, "s").offset);
  assert_int_equal(berth_layout_offset(layout, "t"), slot_of(f->plan, "t").offset);
  dims[0].extent = 50;
  desc.layout = layout;
  other = make_plan(f->graph, &desc);
  assert_int_equal(slot_of(other, "s").offset, slot_of(f->plan, "s").offset);
  assert_int_equal(slot_of(other, "t").offset, slot_of(f->plan, "t").offset);
  assert_int_equal(other->info.state_size, f->plan->info.state_size);
  assert_int_equal(other->params_size, f->plan->params_size);
  berth_plan_destroy(other);
  dims[1].extent = 4;
  test_expect_error(berth_plan_create(f->graph, &desc, &other, &err), BERTH_INVALID, &err,
                    "the same extents in all of them");
  berth_layout_destroy(layout);
}

static void a_layout_must_know_the_states(void **state) {
  fixture *f = *state;
  berth_error err;
  berth_layout *layout;
  berth_plan *other;
  plan_text(f, "input %x : f32[4]\nparam %w : f32[4]\n%y = add(%x, %w)\noutput \"y\" = %y", 0);
  TEST_OK(berth_plan_layout(f->plan, &layout, &err));
  berth_graph *with =
      parse_graph(f->ctx, "param %w : f32[4]\nstate %s : f32[4] = zeros\n%n = add(%s, %w)\nupdate %s = %n");
  berth_plan_desc desc = desc_with(0);
  desc.layout = layout;
  test_expect_error(berth_plan_create(with, &desc, &other, &err), BERTH_INVALID, &err,
                    "state 's' is not in the layout");
  berth_graph_destroy(with);
  berth_layout_destroy(layout);
}

static void states_have_their_line(void **state) {
  fixture *f = *state;
  const berth_plan *plan = plan_text(f,
                                     "input %x : f32[32]\nparam %w : f32[16]\nconst %c : f32[32] = hex \""
                                     "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"
                                     "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"
                                     "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f"
                                     "0000803f0000803f0000803f0000803f0000803f0000803f0000803f0000803f\"\n"
                                     "state %s : f32[32] = zeros\n%k = concat(%w, %w) {axis = 0}\n%y = mul(%x, %c)\n"
                                     "%z = add(%y, %k)\n%n = add(%s, %z)\nupdate %s = %n\noutput \"z\" = %z",
                                     0);
  const berth_plan_info *info = &plan->info;
  assert_int_equal(info->state_size, 128);
  assert_int_equal(info->arena_size,
                   info->weights_size + info->state_size + info->activations_size + info->scratch_size);
  assert_true(slot_of(plan, "s").offset + 128 <= plan->params_size);
  assert_true(info->weights_size >= 64 + 128);
  plan_text(f, "input %x : f32[4]\n%y = exp(%x)\noutput \"y\" = %y", 0);
  assert_int_equal(f->plan->info.state_size, 0);
}

static berth_status keep_text(void *user, const char *text, size_t size) {
  char *out = user;
  const size_t n = strlen(out);
  if (n + size < 200000) memcpy(out + n, text, size);
  return BERTH_OK;
}

static void reports_and_pictures_show_states(void **state) {
  static char text[200001];
  fixture *f = *state;
  berth_error err;
  plan_text(f, "input %x : f32[4]\nstate %memory : f32[4] = zeros\n%n = add(%memory, %x)\nupdate %memory = %n", 0);
  TEST_OK(berth_plan_report(f->plan, BERTH_REPORT_TEXT, keep_text, text, &err));
  assert_non_null(strstr(text, " state_size=64\n"));
  assert_non_null(strstr(text, "\t16\tmemory\n"));
  memset(text, 0, sizeof text);
  TEST_OK(berth_plan_report(f->plan, BERTH_REPORT_SVG, keep_text, text, &err));
  assert_non_null(strstr(text, ">state</text>"));
  memset(text, 0, sizeof text);
  TEST_OK(berth_plan_report(f->plan, BERTH_REPORT_CSV, keep_text, text, &err));
  assert_non_null(strstr(text, "memory,0,1,64,0\n"));
}

/* ---- Orders, budgets ---- */

/* Eight readers of a large value, each of which goes into a sum; the state is written first in the source. */
static void every_order_keeps_readers_before_writers(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(0);
  static char text[4000];
  int n = snprintf(text, sizeof text,
                   "input %%x : f32[64]\nstate %%s : f32[64] = zeros\n%%n = add(%%s, %%x)\n%%k0 = exp(%%x)\n");
  for (int i = 0; i < 8; i++)
    n += snprintf(text + n, sizeof text - (size_t)n,
                  "%%p%d = mul(%%s, %%k%d)\n%%e%d = exp(%%p%d)\n%%k%d = add(%%e%d, %%p%d)\n", i, i, i, i, i + 1, i, i);
  snprintf(text + n, sizeof text - (size_t)n, "update %%s = %%n\noutput \"y\" = %%k8\noutput \"n\" = %%n");
  f->graph = parse_graph(f->ctx, text);
  for (int order = 0; order < 2; order++) {
    desc.order = order == 0 ? BERTH_ORDER_SOURCE : BERTH_ORDER_MEMORY;
    berth_plan *plan = make_plan(f->graph, &desc);
    assert_lies_in(plan, "n", "s");
    for (int i = 0; i < 8; i++) {
      char name[16];
      snprintf(name, sizeof name, "p%d", i);
      if (plan->graph->values[find(plan, name)].kind == BERTH_VALUE_NODE)
        assert_true(step_of(plan, name) < step_of(plan, "n"));
    }
    berth_plan_destroy(plan);
  }
}

/* A budget clones and splits nodes; those that read the state may come to stand after its writer. */
static void a_budget_keeps_states_right(void **state) {
  fixture *f = *state;
  berth_plan_desc desc = desc_with(BERTH_PLAN_REFERENCE);
  berth_error err;
  f->graph = parse_graph(
      f->ctx,
      "input %x : f32[64, 64]\nstate %s : f32[64, 64] = zeros\n%e = exp(%s)\n%a = softmax(%x)\n%b = softmax(%a)\n"
      "%c = add(%b, %a)\n%d = softmax(%c)\n%g = add(%d, %c)\n%h = softmax(%g)\n%k = add(%h, %e)\n%n = add(%s, %h)\n"
      "update %s = %n\noutput \"k\" = %k");
  f->plan = make_plan(f->graph, &desc);
  const uint64_t full = f->plan->info.arena_size;
  uint32_t met = 0;
  for (uint64_t part = 95; part >= 50; part -= 5) {
    berth_plan *plan = NULL;
    desc.budget = full * part / 100;
    if (berth_plan_create(f->graph, &desc, &plan, &err) != BERTH_OK) {
      assert_int_equal(err.status, BERTH_INFEASIBLE);
      break;
    }
    TEST_OK(berth_plan_check(plan, &err));
    assert_int_equal(plan->graph->n_updates, 1);
    met++;
    berth_plan_destroy(plan);
  }
  assert_true(met > 0);
}

static berth_status plan_all(berth_context *ctx, berth_error *err, void *user) {
  static const char text[] =
      "graph \"g\" { input %x : f32[4] state %a : f32[4] = zeros state %b : f32[4] = [1, 2, 3, 4] state %c : f32[4] = "
      "zeros %n = add(%a, %x) %y = exp(%a) %z = exp(%y) update %a = %n update %b = %c update %c = %b output \"z\" = %z "
      "}";
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth_layout *layout = NULL;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  (void)user;
  desc.order = BERTH_ORDER_MEMORY;
  desc.effort = 1;
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  if (status == BERTH_OK) status = berth_plan_layout(plan, &layout, err);
  berth_layout_destroy(layout);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void no_allocation_is_taken_for_granted(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(plan_all, NULL) > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(a_state_is_updated_in_place),
      PLAN_TEST(a_state_is_written_where_it_lies_by_who_does_not_read_it),
      PLAN_TEST(readers_are_put_before_the_writer),
      PLAN_TEST(nothing_moves_without_need),
      PLAN_TEST(a_reader_behind_the_writer_makes_it_a_copy),
      PLAN_TEST(an_operand_that_may_not_be_written_over_makes_it_a_copy),
      PLAN_TEST(in_place_may_be_switched_off),
      PLAN_TEST(what_no_node_makes_is_copied),
      PLAN_TEST(one_value_for_two_states_is_copied_once),
      PLAN_TEST(states_that_change_places_are_copied_through_one_of_them),
      PLAN_TEST(a_line_of_states_moves_on_without_more_memory),
      PLAN_TEST(an_old_value_that_goes_out_is_a_copy),
      PLAN_TEST(a_view_that_is_read_late_is_a_copy),
      PLAN_TEST(a_state_that_is_updated_from_itself_stays),
      PLAN_TEST(a_choice_may_lie_over_the_state),
      PLAN_TEST(a_state_may_be_read_in_a_loop_and_updated_behind_it),
      PLAN_TEST(a_writer_before_a_loop_that_reads_the_state_is_a_copy),
      PLAN_TEST(rows_are_written_into_a_cache_in_place),
      PLAN_TEST(all_plans_of_a_layout_have_a_state_in_one_place),
      PLAN_TEST(a_layout_must_know_the_states),
      PLAN_TEST(states_have_their_line),
      PLAN_TEST(reports_and_pictures_show_states),
      PLAN_TEST(every_order_keeps_readers_before_writers),
      PLAN_TEST(a_budget_keeps_states_right),
      cmocka_unit_test(no_allocation_is_taken_for_granted),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
