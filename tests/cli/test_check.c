/* `run --check` on differences that right kernels never make: the comparison, with sessions that this test makes up. */
#include "../../tools/berth/check.c"
#include "../../tools/berth/cli.c"
#include "../../tools/berth/elements.c"
#include "../../tools/berth/format.c"
#include "../../tools/berth/json.c"
#include "../../tools/berth/pages.c"
#include "../../tools/berth/progress.c"
#include "../../tools/berth/utf8.c"

#include "support.h"

int runner_write_inputs(runner *r, berth_session *session) {
  (void)r;
  (void)session;
  return CLI_OK;
}
int runner_run(berth_session *session) {
  (void)session;
  return CLI_OK;
}
int runner_session(runner *r, uint32_t session_flags, uint32_t plan_flags, berth_session **out) {
  (void)r;
  (void)session_flags;
  (void)plan_flags;
  *out = NULL;
  return CLI_FAILED;
}

static check_node compared(berth_type type, void *got, void *want, size_t count) {
  check_node node = {.name = "n", .op = "op", .compared = true};
  tool_check_compare(&node, &(record){type, count, got}, &(record){type, count, want});
  return node;
}

static void accepts_small_differences(void **state) {
  (void)state;
  check_node node = compared(BERTH_F32, (float[]){100.05f, 0.00005f}, (float[]){100, 0}, 2);
  assert_true(node.excess < 1 && node.max_abs > 0.049 && node.max_rel > 0.04);
  assert_true(compared(BERTH_BF16, (uint16_t[]){0x3f81}, (uint16_t[]){0x3f80}, 1).excess < 1);
  assert_true(compared(BERTH_F16, (uint16_t[]){0x3c02}, (uint16_t[]){0x3c00}, 1).excess < 1);
}

/* An f32 that an f16 was on the way is as exact as that; integers stay exact. */
static void what_was_rounded_on_the_way_counts(void **state) {
  (void)state;
  check_node node = {.name = "n", .op = "cast", .compared = true, .noise = BERTH_F16};
  tool_check_compare(&node, &(record){BERTH_F32, 2, (float[]){0.002f, 1}}, &(record){BERTH_F32, 2, (float[]){0, 1}});
  assert_true(node.excess < 1);
  tool_check_compare(&node, &(record){BERTH_I32, 1, (int32_t[]){1}}, &(record){BERTH_I32, 1, (int32_t[]){2}});
  assert_true(node.excess > 1);

  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err = {BERTH_OK, ""};
  berth_graph *graph;
  static const char text[] =
      "graph \"n\" { input %x : f32[4] param %w : f16[4] %v = cast(%w) {to = \"f32\"}\n"
      "%a = add(%x, %v) %h = cast(%a) {to = \"bf16\"} %r = reshape(%h) {shape = [2, 2]}\n"
      "%f = cast(%r) {to = \"f32\"} output \"f\" = %f }";
  TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
  check_node nodes[8] = {{0}};
  check_result result = {.nodes = nodes, .n = berth_graph_n_nodes(graph)};
  assert_int_equal(tool_check_find_noise(graph, &result), CLI_OK);
  assert_true(nodes[1].noise != BERTH_F16 && nodes[1].noise != BERTH_BF16); /* the sum: the weight was always f16 */
  assert_int_equal(nodes[4].noise, BERTH_BF16);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* One huge number in an f16 value does not make the others vague; what a sum of usual ones rounds away is noise. */
static void one_huge_number_hides_nothing(void **state) {
  uint16_t got[64], want[64];
  (void)state;
  for (int i = 0; i < 64; i++) got[i] = want[i] = 0x3c00; /* 1 */
  got[5] = want[5] = 0x7bff;                              /* 65504 */
  want[9] = 0;
  got[9] = 0x1800; /* 0.002 */
  assert_true(compared(BERTH_F16, got, want, 64).excess < 1);
  got[9] = 0x2e66; /* 0.1 */
  assert_true(compared(BERTH_F16, got, want, 64).excess > 1);
}

/* The exponents of f64 go from those of its least number to those of its largest. */
static void has_room_for_every_exponent(void **state) {
  double ends[] = {5e-324, 4.2e-322, 1.7e308, -5e-324};
  check_node node = {.name = "n", .op = "exp", .compared = true, .noise = BERTH_F16};
  (void)state;
  tool_check_compare(&node, &(record){BERTH_F64, 4, ends}, &(record){BERTH_F64, 4, ends});
  assert_true(node.excess == 0);
}

static void refuses_large_differences(void **state) {
  (void)state;
  assert_true(compared(BERTH_F32, (float[]){100.2f}, (float[]){100}, 1).excess > 1);
  assert_true(compared(BERTH_F32, (float[]){0.0002f}, (float[]){0}, 1).excess > 1);
  assert_true(compared(BERTH_F16, (uint16_t[]){0x3c10}, (uint16_t[]){0x3c00}, 1).excess > 1);
  assert_true(compared(BERTH_I64, (int64_t[]){5}, (int64_t[]){6}, 1).excess > 1);
  assert_true(compared(BERTH_BOOL, (uint8_t[]){1}, (uint8_t[]){0}, 1).excess > 1);
}

static void knows_what_is_not_finite(void **state) {
  (void)state;
  assert_true(compared(BERTH_F32, (float[]){NAN, INFINITY}, (float[]){NAN, INFINITY}, 2).excess == 0);
  assert_true(compared(BERTH_F32, (float[]){NAN}, (float[]){1}, 1).excess > 1);
  assert_true(compared(BERTH_F32, (float[]){1}, (float[]){NAN}, 1).excess > 1);
  assert_true(compared(BERTH_F32, (float[]){INFINITY}, (float[]){-INFINITY}, 1).excess > 1);
}

static void refuses_another_type_or_count(void **state) {
  (void)state;
  check_node node = {0};
  tool_check_compare(&node, &(record){BERTH_F32, 1, (float[]){0}}, &(record){BERTH_I32, 1, (int32_t[]){0}});
  assert_true(isinf(node.excess));
  node = (check_node){0};
  tool_check_compare(&node, &(record){BERTH_F32, 1, (float[]){0}}, &(record){BERTH_F32, 2, (float[]){0, 0}});
  assert_true(isinf(node.excess));
}

static void finds_the_worst_node(void **state) {
  (void)state;
  check_node nodes[4] = {
      {.name = "fine", .op = "a", .compared = true, .max_abs = 5, .max_rel = 0.1, .excess = 0.5},
      {.name = "wrong", .op = "b", .compared = true, .max_abs = 1, .max_rel = 3, .excess = 2},
      {.name = "view", .op = "c", .max_abs = 99, .excess = 99},
      {.name = "odd", .op = "d", .compared = true, .max_abs = (double)INFINITY, .excess = 1.5},
  };
  check_result result = {.nodes = nodes, .n = 4};
  tool_check_sum_up(&result);
  assert_false(result.ok);
  assert_int_equal(result.worst, 1);
  assert_true(isinf(result.max_abs) && result.max_rel == 3);
  static const char want[] = "\"max_abs\":null,\"max_rel\":3,\"worst_node\":\"wrong\",\"ok\":false";
  json out = JSON_INIT;
  check_write_json(&result, &out);
  assert_false(out.failed);
  assert_non_null(memmem(out.text, out.size, want, sizeof(want) - 1));
  json_free(&out);
}

static void an_empty_model_is_fine(void **state) {
  (void)state;
  check_result result = {.nodes = NULL, .n = 0};
  tool_check_sum_up(&result);
  assert_true(result.ok);
  assert_int_equal(result.worst, UINT32_MAX);
}

static void gathers_strided_tensors(void **state) {
  (void)state;
  float data[6] = {0, 1, 2, 3, 4, 5};
  berth_tensor transposed = {.data = data, .type = BERTH_F32, .rank = 2, .dim = {3, 2}, .stride = {1, 3}};
  record copy = copy_tensor(&transposed);
  assert_int_equal(copy.count, 6);
  assert_memory_equal(copy.data, ((float[]){0, 3, 1, 4, 2, 5}), sizeof(data));
  free(copy.data);
  berth_tensor scalar = {.data = data + 4, .type = BERTH_F32, .rank = 0};
  copy = copy_tensor(&scalar);
  assert_int_equal(copy.count, 1);
  assert_true(((float *)copy.data)[0] == 4);
  free(copy.data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_small_differences),     cmocka_unit_test(what_was_rounded_on_the_way_counts),
      cmocka_unit_test(refuses_large_differences),     cmocka_unit_test(knows_what_is_not_finite),
      cmocka_unit_test(refuses_another_type_or_count), cmocka_unit_test(finds_the_worst_node),
      cmocka_unit_test(an_empty_model_is_fine),        cmocka_unit_test(gathers_strided_tensors),
      cmocka_unit_test(one_huge_number_hides_nothing), cmocka_unit_test(has_room_for_every_exponent),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
