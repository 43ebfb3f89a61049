/* Nodes in slices: the rows that slices share are made once, and every result stays the same to the bit. */
#include <stdarg.h>
#include <stdio.h>

#include "plan/budgeting.h"
#include "plan/split.h"

#define CHAIN                                                                                                        \
  "input %x : f32[1, 3, 40, 40]\nparam %a : f32[16, 3, 3, 3]\nparam %b : f32[16, 1, 3, 3]\n"                         \
  "param %c : f32[4, 16, 5, 5]\n%p = conv(%x, %a) {pads = [1, 1, 1, 1]}\n%q = relu(%p)\n"                            \
  "%r = conv(%q, %b) {group = 16, pads = [1, 1, 1, 1]}\n%s = max_pool(%r) {kernel = [3, 3], strides = [1, 1], pads " \
  "= [1, 1, 1, 1]}\n%y = conv(%s, %c) {pads = [2, 2, 2, 2], strides = [2, 2]}\noutput \"y\" = %y"

/* ---- Rows ---- */

/* Convolutions and pools. */
static bool has_windows(const berth_plan *plan, uint32_t step) {
  const char *op = plan->graph->nodes[plan->order[step]].op->name;
  return step >= plan->n_prelude &&
         (strstr(op, "conv") != NULL || strstr(op, "pool") != NULL || strstr(op, "depthwise") != NULL);
}

static berth__split_group group_of_windows(const berth_plan *plan) {
  berth__split_group group = {.axis = 1};
  for (uint32_t step = 0; step < plan->n_steps; step++)
    if (has_windows(plan, step)) group.nodes[group.n_nodes++] = plan->order[step];
  assert_int_equal(group.n_nodes, 4);
  return group;
}

/* Every row once, and none much later than the result needs it: the first slices are as small as the others. */
static void test_what_slices_make(void **state) {
  fixture *f = *state;
  berth_error err;
  berth__split_table t;
  f->graph = parse_graph(f->ctx, CHAIN);
  berth_plan_desc desc = one_thread(0);
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
  const berth__split_group group = group_of_windows(f->plan);
  TEST_OK(berth__split_table_create(&t, f->plan->graph, &group, 5, &err));
  assert_true(t.n_early >= 1);
  assert_int_equal(t.n_slices, 5 + t.n_early);
  for (uint32_t i = 0; i < group.n_nodes; i++) {
    const int64_t extent = f->plan->graph->values[f->plan->graph->nodes[group.nodes[i]].out[0]].shape.dim[1];
    int64_t end = 0;
    for (uint32_t s = 0; s < t.n_slices; s++) {
      const berth__split_part *part = berth__split_at(&t, s, i);
      if (part->made.begin == part->made.end) continue;
      assert_int_equal(part->made.begin, end);
      assert_true(part->made.end > end && part->made.end - end <= (extent + 4) / 5);
      assert_true(part->read.begin <= part->made.begin && part->read.end <= part->made.end);
      end = part->made.end;
    }
    assert_int_equal(end, extent);
  }
  berth__split_table_free(&t);
}

/* ---- Work ---- */

/* The elements that windows make. */
static uint64_t made_by_windows(const berth_plan *plan) {
  uint64_t made = 0;
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    int64_t count = 0;
    berth__shape_count(&plan->graph->values[plan->graph->nodes[plan->order[step]].out[0]].shape, &count);
    if (has_windows(plan, step)) made += (uint64_t)count;
  }
  return made;
}

static void test_no_row_is_made_twice(void **state) {
  fixture *f = *state;
  berth_error err;
  static const double shares[] = {0.75, 0.5};
  f->graph = parse_graph(f->ctx, CHAIN);
  berth_plan_desc desc = one_thread(0);
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
  const uint64_t whole = made_by_windows(f->plan);
  for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
    berth_plan_destroy(f->plan);
    f->plan = NULL;
    TEST_OK(plan_with_share(f, &desc, shares[i], &err));
    const berth_plan_info info = test_plan_info(f->plan);
    assert_true(info.n_split >= 1);
    assert_int_equal(info.n_recomputed, 0);
    assert_int_equal(made_by_windows(f->plan), whole);
    TEST_OK(berth_plan_check(f->plan, &err));
    assert_same_results(f->graph, &desc, 0);
  }
}

/* %a is wide and has two readers: where both end, rows can leave the group. */
static void test_branches(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph =
      parse_graph(f->ctx,
                  "input %x : f32[1, 2, 32, 32]\nparam %k : f32[48, 2, 3, 3]\nparam %l : f32[48, 48, 1, 1]\n"
                  "param %m : f32[8, 48, 3, 3]\nparam %n : f32[8, 48, 1, 1]\n%p = conv(%x, %k) {pads = [1, 1, 1, 1]}\n"
                  "%a = conv(%p, %l)\n%b = conv(%a, %m) {pads = [1, 1, 1, 1]}\n%c = conv(%a, %n)\n"
                  "%y = concat(%b, %c) {axis = 1}\noutput \"y\" = %y");
  berth_plan_desc desc = one_thread(0);
  TEST_OK(berth_plan_create(f->graph, &desc, &f->plan, &err));
  const uint64_t whole = made_by_windows(f->plan);
  berth_plan_destroy(f->plan);
  f->plan = NULL;
  TEST_OK(plan_with_share(f, &desc, 0.6, &err));
  assert_true(test_plan_info(f->plan).n_split >= 1);
  assert_int_equal(made_by_windows(f->plan), whole);
  assert_same_results(f->graph, &desc, 0);
}

/* The extents of a reshape in slices are extents: a 0 is not taken from its operand. */
static void test_a_reshape_of_nothing(void **state) {
  fixture *f = *state;
  berth_error err;
  f->graph =
      parse_graph(f->ctx,
                  "input %x : f32[1, 8, 5, 0]\ninput %y : f32[1, 8, 512]\n%r = reshape(%x) {shape = [1, 8, -1]}\n"
                  "%c = cumsum(%y) {axis = 1}\n%e = exp(%c)\n%f = concat(%e, %r) {axis = 2}\n%g = tanh(%f)\n"
                  "%h = mul(%g, %e)\n%s = reduce_sum(%h) {axes = [2]}\noutput \"s\" = %s");
  berth_plan_desc desc = one_thread(0);
  TEST_OK(plan_with_share(f, &desc, 0.75, &err));
  assert_true(test_plan_info(f->plan).n_split >= 1);
  assert_same_results(f->graph, &desc, 0);
}

/* ---- Any windows ---- */

typedef struct net {
  char text[8192];
  uint32_t at, n; /* characters; values %v0 .. %vn */
  int64_t channels, extent[2];
  uint64_t random;
} net;

static int64_t pick(net *w, int64_t least, int64_t most) {
  return least + (int64_t)(test_random(&w->random) % (uint64_t)(most - least + 1));
}

__attribute__((format(printf, 2, 3))) static void write_text(net *w, const char *format, ...) {
  va_list list;
  va_start(list, format);
  w->at += (uint32_t)vsnprintf(w->text + w->at, sizeof w->text - w->at, format, list);
  va_end(list);
  assert_true(w->at < sizeof w->text);
}

typedef struct windows {
  int64_t kernel[2], stride[2], dilation[2], begin[2], end[2], out[2];
} windows;

/* Of any form that gives a result; pads reach no further than a window. */
static windows pick_windows(net *w, int64_t most_kernel, bool dilates) {
  windows v;
  for (int k = 0; k < 2; k++) {
    do {
      v.kernel[k] = pick(w, 1, most_kernel);
      v.stride[k] = pick(w, 0, 3) == 0 ? pick(w, 2, 3) : 1;
      v.dilation[k] = dilates && pick(w, 0, 3) == 0 ? 2 : 1;
      const int64_t reach = (v.kernel[k] - 1) * v.dilation[k] + 1;
      v.begin[k] = pick(w, 0, v.kernel[k] - 1);
      v.end[k] = pick(w, 0, v.kernel[k] - 1);
      v.out[k] = w->extent[k] + v.begin[k] + v.end[k] < reach
                     ? 0
                     : (w->extent[k] + v.begin[k] + v.end[k] - reach) / v.stride[k] + 1;
    } while (v.out[k] < 3);
  }
  return v;
}

static void write_window_attrs(net *w, const windows *v) {
  write_text(w, "strides = [%d, %d], pads = [%d, %d, %d, %d]", (int)v->stride[0], (int)v->stride[1], (int)v->begin[0],
             (int)v->begin[1], (int)v->end[0], (int)v->end[1]);
}

static void add_conv(net *w, bool is_depthwise) {
  const windows v = pick_windows(w, 5, true);
  const int64_t from = w->channels, to = is_depthwise ? from : pick(w, 1, 24);
  write_text(w, "param %%w%u : f32[%d, %d, %d, %d]\n%%c%u = conv(%%v%u, %%w%u) {group = %d, dilations = [%d, %d], ",
             w->n, (int)to, is_depthwise ? 1 : (int)from, (int)v.kernel[0], (int)v.kernel[1], w->n, w->n, w->n,
             is_depthwise ? (int)from : 1, (int)v.dilation[0], (int)v.dilation[1]);
  write_window_attrs(w, &v);
  write_text(w, "}\n%%v%u = %s(%%c%u)\n", w->n + 1, pick(w, 0, 1) ? "relu" : "sigmoid", w->n);
  w->channels = to;
  memcpy(w->extent, v.out, sizeof w->extent);
}

static void add_pool(net *w) {
  const windows v = pick_windows(w, 3, false);
  write_text(w, "%%v%u = %s(%%v%u) {kernel = [%d, %d], ", w->n + 1, pick(w, 0, 1) ? "max_pool" : "avg_pool", w->n,
             (int)v.kernel[0], (int)v.kernel[1]);
  write_window_attrs(w, &v);
  write_text(w, "}\n");
  memcpy(w->extent, v.out, sizeof w->extent);
}

/* Two branches of the same extents, added, or joined along the channels. */
static void add_branches(net *w) {
  const bool adds = pick(w, 0, 1) != 0;
  const int64_t half = 1 + 2 * pick(w, 0, 1), other = adds ? w->channels : pick(w, 1, 12);
  write_text(
      w, "param %%w%u : f32[%d, %d, %d, 3]\n%%c%u = conv(%%v%u, %%w%u) {pads = [%d, 1, %d, 1]}\n%%r%u = relu(%%c%u)\n",
      w->n, (int)other, (int)w->channels, (int)half, w->n, w->n, w->n, (int)half / 2, (int)half / 2, w->n, w->n);
  if (adds)
    write_text(w, "%%v%u = add(%%r%u, %%v%u)\n", w->n + 1, w->n, w->n);
  else
    write_text(w,
               "param %%u%u : f32[%d, %d, 1, 1]\n%%d%u = conv(%%v%u, %%u%u)\n%%v%u = concat(%%r%u, %%d%u) {axis = 1}\n",
               w->n, (int)other, (int)w->channels, w->n, w->n, w->n, w->n + 1, w->n, w->n);
  w->channels = adds ? other : 2 * other;
}

static void write_net(net *w, uint64_t seed) {
  *w = (net){.random = seed, .channels = 3};
  for (int k = 0; k < 2; k++) w->extent[k] = pick(w, 17, 45);
  write_text(w, "input %%v0 : f32[1, 3, %d, %d]\n", (int)w->extent[0], (int)w->extent[1]);
  for (const uint32_t n = (uint32_t)pick(w, 2, 6); w->n < n; w->n++) {
    const int64_t what = w->n == 0 ? 0 : pick(w, 0, 5);
    if (what <= 1)
      add_conv(w, false);
    else if (what == 2)
      add_conv(w, true);
    else if (what == 3)
      add_pool(w);
    else
      add_branches(w);
  }
  write_text(w, "output \"y\" = %%v%u", w->n);
}

/* Bit for bit what they are without a budget. */
static void test_random_windows(void **state) {
  static const double shares[] = {0.8, 0.6, 0.45, 0.3};
  fixture *f = *state;
  uint32_t n_met = 0, n_split = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    net w;
    write_net(&w, seed);
    f->graph = parse_graph(f->ctx, w.text);
    for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
      berth_plan_desc desc = one_thread(0);
      berth_error err;
      const berth_status status = plan_with_share(f, &desc, shares[i], &err);
      if (status == BERTH_OK) {
        n_met++;
        n_split += test_plan_info(f->plan).n_split != 0;
        assert_same_results(f->graph, &desc, 0);
      } else {
        test_expect_error(status, BERTH_INFEASIBLE, &err, "the budget is");
      }
      berth_plan_destroy(f->plan);
      f->plan = NULL;
    }
    berth_graph_destroy(f->graph);
    f->graph = NULL;
  }
  print_message("%u of 160 budgets were met, %u by splitting\n", n_met, n_split);
  assert_true(n_split > 30);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      PLAN_TEST(test_what_slices_make),     PLAN_TEST(test_no_row_is_made_twice), PLAN_TEST(test_branches),
      PLAN_TEST(test_a_reshape_of_nothing), PLAN_TEST(test_random_windows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
