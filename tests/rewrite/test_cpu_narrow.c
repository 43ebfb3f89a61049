/* What the CPU makes of weights and values of 16 bits. */
#include <math.h>

#include "base/half.h"
#include "patterns.h"
#include "plan/plan.h"

#define IMAGE PATTERN_IMAGE
#define NORM PATTERN_NORM

/* With the flag both sides of a product are rounded; weights that were bf16 all along stay what they are. */
static void bf16_weights(void **state) {
  static const pattern rounded = {
      "graph \"p\" { input %x : f32[7, 24] param %w : f32[24, 40] param %b : f32[40] %m = matmul(%x, %w)\n"
      "%s = add(%m, %b) %g = gelu(%s) output \"g\" = %g }",
      "product", 1, "gelu", 0.1};
  static const pattern exact = {
      "graph \"p\" { input %x : f32[7, 24] param %w : bf16[40, 24] %f = cast(%w) {to = \"f32\"} %t = transpose(%f)\n"
      "%m = matmul(%x, %t) %g = gelu(%m) output \"g\" = %g }",
      "product", 1, "gelu", 1e-4};
  (void)state;
  static const pattern pointwise = {
      IMAGE("8") NORM("6") "[0.5, 1.0, 2.0, 0.25, 1.0, 1.0] param %w : f32[6, 8, 1, 1] param %v : f32[6, 6, 3, 3]\n"
                           "%c = conv(%x, %w) %n = batch_norm(%c, %ns, %nb, %nm, %nv) %r = relu(%n)\n"
                           "%d = conv(%r, %v) {pads = [1, 1, 1, 1]} output \"d\" = %d }",
      "product", 1, "batch_norm", 2.5};
  pattern_check_with(&rounded, BERTH_PLAN_BF16_WEIGHTS);
  pattern_check_with(&pointwise, BERTH_PLAN_BF16_WEIGHTS);
  pattern_check(&exact);
}

static void check_weights(const char *text, uint32_t flags, uint64_t bytes) {
  berth_context *ctx = test_context();
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.flags = flags;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  assert_int_equal(test_plan_info(plan).weights_size, bytes);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void bf16_weights_take_half(void **state) {
  static const char plain[] =
      "graph \"p\" { input %x : f32[7, 24] param %w : f32[24, 64] %m = matmul(%x, %w) output \"m\" = %m }";
  static const char exact[] =
      "graph \"p\" { input %x : f32[7, 24] param %w : bf16[24, 64]\n"
      "%f = cast(%w) {to = \"f32\"} %m = matmul(%x, %f) output \"m\" = %m }";
  (void)state;
  check_weights(plain, 0, 24 * 64 * 4);
  check_weights(plain, BERTH_PLAN_BF16_WEIGHTS, 24 * 64 * 2);
  check_weights(exact, 0, 24 * 64 * 2);
}

/* Numbers of 16 bits: chains, products and convolutions with what comes after them; weights keep their 16 bits. */
static void narrow_numbers(void **state) {
  static const pattern patterns[] = {
      {"graph \"h\" { input %x : f16[7, 24] param %w : f16[24, 40] param %b : f16[40] %m = matmul(%x, %w)\n"
       "%s = add(%m, %b) %g = gelu(%s) %o = cast(%g) {to = \"f32\"} output \"o\" = %o }",
       "product", 1, "gelu", 2e-2},
      {"graph \"h\" { input %x : bf16[7, 24] param %w : bf16[24, 40] const %c : bf16[] = [0.5] %m = matmul(%x, %w)\n"
       "%s = mul(%m, %c) %g = relu(%s) %o = cast(%g) {to = \"f32\"} output \"o\" = %o }",
       "product", 1, "mul", 0.1},
      {"graph \"h\" { input %x : f16[2, 8, 9, 9] param %w : f16[6, 8, 3, 3] %c = conv(%x, %w) %r = relu(%c)\n"
       "%o = cast(%r) {to = \"f32\"} output \"o\" = %o }",
       "conv_last", 1, "relu", 3e-2},
      /* a table is read as it is; two results, one of them of integers */
      {"graph \"h\" { input %x : f16[16] const %i : i64[3] = [7, 0, 49] param %t : f16[50, 16] %e = embedding(%t, %i) "
       "%n = add(%e, %x)\n"
       "%v, %k = top_k(%n) {k = 4} %o = cast(%v) {to = \"f32\"} output \"o\" = %o output \"k\" = %k }",
       "embedding", 1, NULL, 2e-3},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* 64 products of 200 and 200 are more than an f16 holds, and so are squares of 300; what comes of them is not. */
static void sums_of_f16_do_not_overflow(void **state) {
  static const char text[] =
      "graph \"h\" { input %x : f16[1, 64] const %d : f16[] = [0.0001] param %w : f16[64, 64]\n"
      "%m = matmul(%x, %w) %s = mul(%m, %d) %q = mul(%s, %s) %t = mul(%q, %d) output \"t\" = %t }";
  const uint16_t two_hundred = 0x5a40, factor = 0x068e; /* 0.0001 as f16 */
  (void)state;
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  uint16_t x[64], w[64 * 64], out[64];
  for (int i = 0; i < 64; i++) x[i] = two_hundred;
  for (int i = 0; i < 64 * 64; i++) w[i] = two_hundred;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "t", out, sizeof out, &err));
  const double d = (double)berth__f16_to_f32(factor), sum = 64.0 * 200 * 200 * d, want = sum * sum * d;
  for (int i = 0; i < 64; i++) assert_true(fabs((double)berth__f16_to_f32(out[i]) - want) <= 1e-3 * want);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* The result of a graph in which TYPE stands for the type of all numbers, which are such that every type holds them. */
static void run_as(const char *form, const char *type, uint32_t flags, double *out, size_t n) {
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  char text[2048] = {0};
  uint64_t seed = 77;
  float numbers[64 * 64];
  for (const char *at = form; *at != 0;) {
    const bool is_type = strncmp(at, "TYPE", 4) == 0;
    strncat(text, is_type ? type : at, is_type ? strlen(type) : 1);
    at += is_type ? 4 : 1;
  }
  desc.flags = flags;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (berth_value v = 0; v < berth_graph_n_values(graph); v++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    uint16_t data[64 * 64];
    TEST_OK(berth_graph_value(graph, v, &info, &err));
    if (info.kind != BERTH_VALUE_PARAM && info.kind != BERTH_VALUE_INPUT) continue;
    const size_t count = (size_t)(info.size / berth_type_size(info.type));
    for (size_t i = 0; i < count; i++) numbers[i] = (float)((int)(test_random(&seed) % 255) - 127) / 64;
    if (info.type != BERTH_F32) berth__convert_from_f32(info.type, data, numbers, count);
    const void *given = info.type == BERTH_F32 ? (const void *)numbers : data;
    TEST_OK(info.kind == BERTH_VALUE_PARAM ? berth_session_set_param(session, info.name, given, info.size, &err)
                                           : berth_session_write(session, info.name, given, info.size, &err));
  }
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "o", numbers, n * sizeof *numbers, &err));
  for (size_t i = 0; i < n; i++) out[i] = (double)numbers[i];
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static double distance(const double *a, const double *b, size_t n) {
  double sum = 0;
  for (size_t i = 0; i < n; i++) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

/* What is rounded once is nearer to the numbers themselves than what is rounded after every node. */
static void narrow_results_are_nearer(void **state) {
  static const char *const graphs[] = {
      "graph \"b\" { input %x : TYPE[16, 48] param %w : TYPE[48, 64] param %b : TYPE[64] param %v : TYPE[64, 48]\n"
      "param %s : TYPE[48] const %t : TYPE[] = [0.125] %m = matmul(%x, %w) %a = add(%m, %b) %h = mul(%a, %t)\n"
      "%g = gelu(%h) %n = matmul(%g, %v) %r = add(%n, %x) %l = layer_norm(%r, %s) %p = softmax(%l)\n"
      "%o = cast(%p) {to = \"f32\"} output \"o\" = %o }",
      "graph \"c\" { input %x : TYPE[2, 6, 8, 8] param %w : TYPE[6, 6, 3, 3] param %b : TYPE[6] const %t : TYPE[] = "
      "[0.0625]\n%c = conv(%x, %w, %b) {pads = [1, 1, 1, 1]} %h = mul(%c, %t) %g = sigmoid(%h) %r = mul(%g, %h)\n"
      "%s = add(%r, %x) %o = cast(%s) {to = \"f32\"} output \"o\" = %o }",
  };
  static const char *const types[] = {"f16", "bf16"};
  static double exact[768], literal[768], fused[768];
  (void)state;
  for (size_t g = 0; g < 2; g++)
    for (size_t t = 0; t < 2; t++) {
      run_as(graphs[g], "f32", BERTH_SESSION_REFERENCE, exact, 768);
      run_as(graphs[g], types[t], BERTH_SESSION_REFERENCE, literal, 768);
      run_as(graphs[g], types[t], 0, fused, 768);
      const double off = distance(fused, exact, 768), before = distance(literal, exact, 768);
      if (off > before)
        fail_msg("graph %zu in %s: off by %g, rounded after every node by %g", g, types[t], off, before);
    }
}

/* Few columns are not filled up to a panel, so that the weight takes what it takes in the file. */
static void narrow_products(void **state) {
  static const pattern one = {
      "graph \"p\" { input %x : f32[1, 512] param %w : f32[1, 512] param %b : f32[1] %t = transpose(%w)\n"
      "%m = matmul(%x, %t) %a = add(%m, %b) %s = sigmoid(%a) output \"s\" = %s }",
      "product", 1, "sigmoid", 1e-4};
  static const pattern rows = {
      "graph \"p\" { input %x : f32[3, 5, 64] param %w : f32[64, 1] %m = matmul(%x, %w) %r = relu(%m)\n"
      "output \"r\" = %r }",
      "product", 1, "relu", 1e-4};
  static const pattern few = {
      "graph \"p\" { input %x : f32[2, 70] param %w : f32[70, 4] param %b : f32[4] %m = matmul(%x, %w)\n"
      "%a = add(%m, %b) %g = gelu(%a) output \"g\" = %g }",
      "product", 1, "gelu", 1e-4};
  (void)state;
  pattern_check(&one);
  pattern_check(&rows);
  pattern_check(&few);
  check_weights(one.text, 0, 512 * 4 + 64);
  check_weights(rows.text, 0, 64 * 4);
  check_weights(few.text, 0, 70 * 4 * 4 + 32 + 64);
}

/* A table of embeddings that is the weight of a product as well, over 4 MiB: it stays as it is, and is there once. */
#define TIED(rows, type, columns, weight)                                                                  \
  "graph \"t\" { input %x : f32[" rows ", 32] const %i : i64[2] = [7, 39999] param %t : " type "[" columns \
  ", 32]\n"                                                                                                \
  "%e = embedding(%t, %i) " weight                                                                         \
  " {perm = [1, 0]} %y = matmul(%x, %w)\n"                                                                 \
  "output \"e\" = %e output \"y\" = %y }"
static void tables_are_in_memory_once(void **state) {
  static const pattern patterns[] = {
      {TIED("1", "f32", "40000", "%w = transpose(%t)"), "product", 1, "pack_weights", 1e-4},
      {TIED("11", "f32", "40000", "%w = transpose(%t)"), "product", 1, "pack_weights", 1e-4}, /* as with few rows */
      {TIED("1", "f16", "80000", "%f = cast(%t) {to = \"f32\"} %w = transpose(%f)"), "product", 1, "pack_weights",
       1e-4},
      {TIED("1", "bf16", "80000", "%f = cast(%t) {to = \"f32\"} %w = transpose(%f)"), "product", 1, "pack_weights",
       1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static berth_status plan_narrow(berth_context *ctx, berth_error *err, void *user) {
  const char *text = user;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void planning_narrow_may_fail(void **state) {
  static const char text[] =
      "graph \"h\" { input %x : f16[7, 24] param %w : f16[24, 40] const %c : f16[] = [0.5] %m = matmul(%x, %w)\n"
      "%s = mul(%m, %c) %v, %k = top_k(%s) {k = 4} output \"v\" = %v output \"k\" = %k }";
  (void)state;
  assert_true(test_fail_each_allocation(plan_narrow, (void *)(uintptr_t)text) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bf16_weights),
      cmocka_unit_test(bf16_weights_take_half),
      cmocka_unit_test(narrow_numbers),
      cmocka_unit_test(sums_of_f16_do_not_overflow),
      cmocka_unit_test(narrow_results_are_nearer),
      cmocka_unit_test(planning_narrow_may_fail),
      cmocka_unit_test(narrow_products),
      cmocka_unit_test(tables_are_in_memory_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
