/* What nodes have to do, counted from their shapes, and the least time that a machine's peak leaves for it. */
#include "../../tools/berth/cli.c"
#include "../../tools/berth/elements.c"
#include "../../tools/berth/pages.c"
#include "../../tools/berth/peak.c"
#include "../../tools/berth/progress.c"
#include "../../tools/berth/work.c"

#include "support.h"

static work work_of(berth_context *ctx, const char *body) {
  char text[1024];
  berth_error err;
  berth_graph *graph;
  berth_node_info info = BERTH_NODE_INFO_INIT;
  snprintf(text, sizeof(text), "graph \"g\" {\n%s\n  output \"y\" = %%y\n}\n", body);
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_graph_node(graph, 0, &info, &err));
  work done = work_of_node(graph, NULL, &info);
  berth_graph_destroy(graph);
  return done;
}

typedef struct expected {
  const char *body;
  double flops;
  uint64_t bytes;
} expected;

static void check_cases(const expected *cases, size_t n) {
  berth_context *ctx = test_context();
  for (size_t i = 0; i < n; i++) {
    work done = work_of(ctx, cases[i].body);
    if (done.flops != cases[i].flops || done.bytes != cases[i].bytes)
      fail_msg("%g flops and %llu bytes for:\n%s", done.flops, (unsigned long long)done.bytes, cases[i].body);
  }
  berth_context_destroy(ctx);
}
#define CHECK(cases) check_cases(cases, sizeof(cases) / sizeof((cases)[0]))

static void counts_products(void **state) {
  (void)state;
  static const expected cases[] = {
      {"input %a : f32[2, 3, 4]\n input %b : f32[4, 5]\n %y = matmul(%a, %b)", 2 * 30 * 4, 4 * (24 + 20 + 30)},
      {"input %x : f32[1, 4, 5, 5]\n input %w : f32[6, 2, 3, 3]\n %y = conv(%x, %w) {group = 2}", 2 * 54 * 2 * 9,
       4 * (100 + 108 + 54)},
      {"input %x : f32[1, 4, 3, 3]\n input %w : f32[4, 2, 2, 2]\n %y = conv_transpose(%x, %w) {strides = [2, 2]}",
       2 * 36 * 8, 4 * (36 + 32 + 72)},
      {"input %x : f32[5, 2, 3]\n input %w : f32[1, 16, 3]\n input %r : f32[1, 16, 4]\n %y, %h, %c = lstm(%x, %w, %r)",
       2 * 5 * 2 * (16 * 3 + 16 * 4), 4 * (30 + 48 + 64 + 40 + 8 + 8)},
  };
  CHECK(cases);
}

/* Two products and five operations a score; of 6 keys the 4 queries of a causal one see 3, 4, 5 and 6. */
static void counts_attention(void **state) {
  (void)state;
#define QKV "input %q : f32[1, 2, 4, 8]\n input %k : f32[1, 2, 6, 8]\n input %v : f32[1, 2, 6, 8]\n"
  static const expected cases[] = {
      {QKV "%y = attention(%q, %k, %v)", 2 * 4 * 6 * (4 * 8 + 5), 4 * (64 + 96 + 96 + 64)},
      {QKV "%y = attention(%q, %k, %v) {mode = \"causal\"}", 2 * (3 + 4 + 5 + 6) * (4 * 8 + 5),
       4 * (64 + 96 + 96 + 64)},
      {QKV "%y = attention(%q, %k, %v) {mode = \"sliding_window\", window = 2}", 2 * 4 * 2 * (4 * 8 + 5),
       4 * (64 + 96 + 96 + 64)},
  };
  CHECK(cases);
}

/* A step of the epilogue is one operation per element: step 1 adds two registers. */
static void counts_fused_ops(void **state) {
  (void)state;
#define X "input %x : f32[1, 5, 5, 4]\n"
  static const expected cases[] = {
      {"input %x : f32[2, 3, 4]\n input %w : f32[4, 5]\n %y = product(%x, %w) {columns = 5}", 2 * 30 * 4,
       4 * (24 + 20 + 30)},
      {"input %a : f32[3, 4]\n input %b : f32[4]\n %y = chain(%a, %b) {code = [1, 0, 1, 0, 1, 2, 0, 0]}", 12 * 2,
       4 * (12 + 4 + 12)},
      {X "input %w : f32[1, 36, 16]\n %y = conv_last(%x, %w) {kernel = [3, 3], channels = 6, panel = 16}", 2 * 54 * 36,
       4 * (100 + 576 + 54)},
      {X "input %w : f32[3, 3, 4]\n %y = depthwise(%x, %w) {kernel = [3, 3]}", 2 * 36 * 9, 4 * (100 + 36 + 36)},
      {X "input %w : f32[36, 1, 4, 16]\n %y = conv_winograd(%x, %w) {channels = 6, panel = 16}", 2 * 54 * 36,
       4 * (100 + 2304 + 54)},
  };
  CHECK(cases);
}

static void counts_the_rest(void **state) {
  (void)state;
  static const expected cases[] = {
      {"input %x : f32[1, 2, 4, 4]\n %y = max_pool(%x) {kernel = [2, 2], strides = [2, 2]}", 8 * 4, 4 * (32 + 8)},
      {"input %x : f32[3, 4]\n %y = softmax(%x)", 60, 96},
      {"input %x : f32[3, 4]\n %y = reduce_sum(%x)", 12, 4 * 13},
      {"input %a : f32[3, 4]\n input %b : f32[4]\n %y = add(%a, %b)", 12, 4 * (12 + 4 + 12)},
      {"input %x : f32[3, 4]\n %y = mul(%x, %x)", 12, 96}, /* an operand is read once */
      {"input %x : f32[3, 4]\n %y = transpose(%x) {perm = [1, 0]}", 0, 96},
      {"input %x : f32[100, 4]\n input %i : i64[3]\n %y = gather(%x, %i) {axis = 0}", 0, 48 + 24 + 48},
      {"input %x : f32[100, 4]\n input %r : f32[3, 4]\n input %p : i64[]\n %y = write_rows(%x, %r, %p)", 0, 2 * 48},
  };
  CHECK(cases);
}

static void tells_the_least_time(void **state) {
  (void)state;
  peak p = {.gflops = 100, .copies = {{1000, 40}, {10000, 20}, {100000, 10}, {1000000, 5}}};
  assert_true(peak_least_ms(&p, 1e8, 0) == 1);
  assert_true(peak_least_ms(&p, 0, 1000) == 1000 / 40.0 * 1e-6);
  assert_true(peak_least_ms(&p, 0, 1001) == 1001 / 20.0 * 1e-6);
  assert_true(peak_least_ms(&p, 0, 5000000) == 1);
  assert_true(peak_least_ms(&p, 5e8, 5000000) == 5);
  memset(&p, 0, sizeof(p));
  assert_true(peak_least_ms(&p, 1e8, 1000) == 0);
}

static void measures_the_machine(void **state) {
  (void)state;
  for (uint32_t threads = 0; threads < 3; threads++) {
    peak p = peak_measure(threads);
    assert_true(p.gflops > 0);
    for (int i = 0; i < PEAK_COPIES; i++) assert_true(p.copies[i].gb_per_s > 0);
    for (int i = 1; i < PEAK_COPIES; i++) assert_true(p.copies[i].bytes > p.copies[i - 1].bytes);
  }
}

/* A device keeps weights of products as f16: that is what a product reads. */
static void counts_bytes_as_they_are_stored(void **state) {
  static const char *const text =
      "graph \"g\" {\n input %a : f32[8, 64]\n param %w : f32[64, 32]\n"
      " %y = matmul(%a, %w)\n output \"y\" = %y\n}\n";
  berth_context *ctx = test_context();
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  (void)state;
  desc.device = "interp";
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  for (int is_half = 0; is_half < 2; is_half++) {
    berth_plan *plan;
    uint64_t bytes = 0;
    desc.flags = is_half ? BERTH_PLAN_F16_WEIGHTS : 0;
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    for (uint32_t i = 0; i < berth_graph_n_nodes(berth_plan_graph(plan)); i++) {
      berth_node_info info = BERTH_NODE_INFO_INIT;
      TEST_OK(berth_graph_node(berth_plan_graph(plan), i, &info, &err));
      bytes += work_of_node(berth_plan_graph(plan), plan, &info).bytes;
    }
    assert_int_equal(bytes, 4 * (8 * 64 + 8 * 32) + (is_half ? 2 : 4) * 64 * 32);
    berth_plan_destroy(plan);
  }
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(counts_products),
      cmocka_unit_test(counts_attention),
      cmocka_unit_test(counts_bytes_as_they_are_stored),
      cmocka_unit_test(counts_fused_ops),
      cmocka_unit_test(counts_the_rest),
      cmocka_unit_test(tells_the_least_time),
      cmocka_unit_test(measures_the_machine),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
