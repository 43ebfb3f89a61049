/* Weights that the CPU packs, mostly in a prelude, and the memory that plans then take. */
#include "patterns.h"
#include "plan/plan.h"

static const char weights_text[] =
    "graph \"w\" { input %x : f32[n, 8] param %w : f32[8, 6] param %v : f32[8, 6] %s = add(%w, %v)\n"
    "%y = matmul(%x, %s) output \"y\" = %y }";

static void run_product(berth_session *session, int64_t n, float *y) {
  float x[32];
  berth_error err;
  for (int i = 0; i < 8 * (int)n; i++) x[i] = (float)(i % 5) - 2;
  TEST_OK(berth_session_write(session, "x", x, (size_t)n * 32, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, (size_t)n * 24, &err));
}

static void expect_product(const float *y, int64_t n, float weight) {
  for (int64_t i = 0; i < n; i++) {
    float sum = 0;
    for (int k = 0; k < 8; k++) sum += ((float)((i * 8 + k) % 5) - 2) * weight;
    for (int c = 0; c < 6; c++) assert_float_equal(y[i * 6 + c], sum, 1e-5);
  }
}

static void set_all(berth_session *session, const char *name, float value) {
  float w[48];
  berth_error err;
  for (int i = 0; i < 48; i++) w[i] = value;
  TEST_OK(berth_session_set_param(session, name, w, sizeof w, &err));
}

static berth_plan_info plan_of(const char *text) {
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, NULL, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  const berth_plan_info info = test_plan_info(plan);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  assert_int_equal(info.arena_size,
                   info.weights_size + info.activations_size + info.scratch_size + info.preparation_size);
  return info;
}

#define RAW(type, scale)                                                                             \
  "graph \"p\" { input %x : f32[3, 96] param %w : " type "[40, 96] param %s : f32" scale             \
  " %f = dequantize(%w, %s) %t = transpose(%f) %m = matmul(%x, %t) %r = relu(%m) output \"r\" = %r " \
  "}"

/* Bytes and halves are packed as they lie in the file: they are never in memory as f32 and plain. */
static void weights_are_packed_from_bytes(void **state) {
  static const pattern per_column = {RAW("i8", "[40, 1]"), "pack_weights", 1, "dequantize", 1e-2};
  static const pattern of_all = {RAW("u8", "[1]"), "pack_weights", 1, "dequantize", 1e-2};
  static const pattern cast = {
      "graph \"p\" { input %x : f32[3, 96] param %w : i8[96, 40] %f = cast(%w) {to = \"f32\"} %m = matmul(%x, %f)\n"
      "%r = relu(%m) output \"r\" = %r }",
      "pack_weights", 1, "cast", 1e-2};
  static const pattern per_row = {RAW("i8", "[1, 96]"), "dequantize", 1, "matmul", 1e-2};
  static const pattern conv = {
      "graph \"p\" { input %x : f32[1, 5, 9, 9] param %w : i8[40, 5, 3, 3] param %s : f32[40, 1, 1, 1]\n"
      "param %z : i8[40, 1, 1, 1] %f = dequantize(%w, %s, %z) %c = conv(%x, %f) {strides = [2, 2]} output \"c\" = %c }",
      "pack_weights", 1, "dequantize", 1e-2};
  (void)state;
  pattern_check(&per_column);
  pattern_check(&of_all);
  pattern_check(&cast);
  pattern_check(&per_row);
  pattern_check(&conv);
  assert_int_equal(plan_of(per_column.text).preparation_peak, 0);
  assert_int_equal(plan_of(conv.text).preparation_peak, 0);
  assert_true(plan_of(per_row.text).preparation_peak >= 40 * 96 * 4);
}

/* A change of shape between the bytes and the product does not hide them. */
static void views_go_before_the_dequantize(void **state) {
  static const pattern flat = {
      "graph \"p\" { input %x : u8[2, 4, 3, 4] param %w : i8[5, 48] const %s : f32[] = [0.25] const %z : u8[] = [7]\n"
      "param %t : f32[5, 1] %d = dequantize(%x, %s, %z) %f = flatten(%d) %e = dequantize(%w, %t) %v = transpose(%e)\n"
      "%m = matmul(%f, %v) output \"m\" = %m }",
      "qproduct", 1, "matmul", 1e-2};
  (void)state;
  pattern_check(&flat);
}

/* Volumes are pooled with their channels last. */
static void volumes_are_turned_once_they_are_small(void **state) {
  static const pattern pooled = {
      "graph \"v\" { input %x : f32[2, 3, 6, 8, 7] param %w : f32[20, 3, 3, 3, 3]\n"
      "%c = conv(%x, %w) {pads = [1, 1, 1, 1, 1, 1]} %m = max_pool(%c) {kernel = [2, 3, 2], strides = [2, 2, 2]}\n"
      "%a = avg_pool(%m) {kernel = [1, 2, 2]} output \"a\" = %a }",
      "conv_last", 1, "conv", 1e-4};
  (void)state;
  pattern_check(&pooled);
  assert_true(plan_of(pooled.text).activations_size < 2 * 2 * 20 * 6 * 8 * 7 * 4);
}

/* What grows into an output is turned before it does, so that the large one exists once. */
static void outputs_are_turned_before_they_grow(void **state) {
  static const pattern grown = {
      "graph \"u\" { input %x : f32[1, 6, 12, 16] param %w : f32[5, 6, 1, 1] const %s : f32[4] = [1.0, 1.0, 3.0, 2.0]\n"
      "%c = conv(%x, %w) %r = resize(%c, %s) {mode = \"linear\"} %y = sigmoid(%r) output \"y\" = %y }",
      "conv_last", 1, "conv", 1e-4};
  (void)state;
  pattern_check(&grown);
  assert_true(plan_of(grown.text).activations_size < 2 * 5 * 36 * 32 * 4);
}

/* A result that was made as bytes with channels last is turned before it becomes numbers four times as wide. */
static void bytes_are_turned_before_they_are_numbers(void **state) {
  static const pattern made = {
      "graph \"t\" { input %x : f32[1, 4, 20, 20] param %w : i8[32, 4, 3, 3] const %s : f32[] = [0.02]\n"
      "const %z : u8[] = [120] const %ys : f32[] = [0.25] %q = quantize(%x, %s, %z) %f = dequantize(%q, %s, %z)\n"
      "%v = dequantize(%w, %s) %c = conv(%f, %v) {pads = [1, 1, 1, 1]} %yq = quantize(%c, %ys, %z)\n"
      "%y = dequantize(%yq, %ys, %z) output \"y\" = %y }",
      "qconv_last", 1, "conv", 0.2501};
  (void)state;
  pattern_check(&made);
  assert_int_equal(plan_of(made.text).activations_size, 32 * 20 * 20 * (1 + 4) + 4 * 20 * 20 * 4); /* and x */
}

/* Temporaries lie where weights are to go that are made later, the largest first, and where a run has its activations.
 */
static void preparation_takes_what_is_free(void **state) {
  static const pattern later = {
      "graph \"p\" { input %x : f32[1, 64] param %a : f32[64, 128] param %b : f32[128, 64] %t = tanh(%b)\n"
      "%h = matmul(%x, %a) %y = matmul(%h, %t) output \"y\" = %y }",
      "product", 2, "matmul", 1e-2};
  static const pattern beside = {
      "graph \"p\" { input %x : f32[256, 64] param %a : f32[64, 64] %t = tanh(%a) %y = matmul(%x, %t)\n"
      "output \"y\" = %y }",
      "product", 1, "matmul", 1e-2};
  (void)state;
  pattern_check(&later);
  pattern_check(&beside);
  berth_plan_info info = plan_of(later.text);
  assert_int_equal(info.preparation_peak, 128 * 64 * 4);
  assert_int_equal(info.preparation_size, 0);
  info = plan_of(beside.text);
  assert_int_equal(info.preparation_peak, 64 * 64 * 4);
  assert_int_equal(info.preparation_size, 0);
}

/* A convolution of few channels needs no copy of its operand with channels last; others do, and so does a second reader
 * that cannot do without. */
static void pictures_are_read_where_they_lie(void **state) {
#define PICTURE(channels, kernel) \
  "graph \"p\" { input %x : f32[1, " channels ", 40, 40] param %w : f32[16, " channels ", " kernel "]\n"
#define CONVOLVE "%c = conv(%x, %w) {strides = [4, 4]}"
  static const pattern direct = {PICTURE("3", "8, 8") CONVOLVE "output \"c\" = %c }", "conv_last", 1, "conv", 1e-3};
  static const pattern line = {
      "graph \"l\" { input %x : f32[2, 12, 500] param %w : f32[16, 12, 9]\n"
      "%c = conv(%x, %w) {strides = [4], pads = [4, 4]} output \"c\" = %c }",
      "conv_last", 1, "conv", 1e-3};
  static const pattern many = {PICTURE("17", "8, 8") CONVOLVE "output \"c\" = %c }", "conv_last", 1, "conv", 1e-3};
  static const pattern pixels = {PICTURE("3", "1, 1") CONVOLVE "output \"c\" = %c }", "conv_last", 1, "conv", 1e-3};
  (void)state;
  pattern_check(&direct);
  pattern_check(&line);
  pattern_check(&many);
  pattern_check(&pixels);
  /* the result is made with channels last, and turned */
  assert_int_equal(plan_of(direct.text).activations_size, (3 * 40 * 40 + 2 * 16 * 9 * 9) * 4);
  assert_int_equal(plan_of(line.text).activations_size, (2 * 12 * 500 + 2 * 2 * 16 * 125) * 4);
  assert_int_equal(plan_of(many.text).activations_size, (2 * 17 * 40 * 40 + 16 * 9 * 9) * 4);
  assert_true(plan_of(pixels.text).activations_size >= (3 * 40 * 40 * 2 + 16 * 10 * 10) * 4);
}

/* It runs when the weights are there, again when one changes, and serves every binding. */
static void a_prelude_follows_the_weights(void **state) {
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_session *session, *clone;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_dim dim = {.name = "n", .extent = 2};
  berth_error err;
  float y[24];
  (void)state;
  TEST_OK(berth_graph_parse(ctx, weights_text, strlen(weights_text), &graph, &err));
  plan.dims = &dim;
  plan.n_dims = 1;
  desc.plan = &plan;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  assert_true(berth_session_plan(session)->n_prelude >= 2); /* the sum, and its packing */
  assert_false(berth_arena_has(berth_session_arena(session), berth_graph_find(graph, "w")));
  set_all(session, "w", 1);
  test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, "param 'v' has no weights yet");
  set_all(session, "v", 2);
  run_product(session, 2, y);
  expect_product(y, 2, 3);
  set_all(session, "w", 5);
  run_product(session, 2, y);
  expect_product(y, 2, 7);
  dim.extent = 4;
  TEST_OK(berth_session_bind(session, &dim, 1, &err));
  run_product(session, 4, y);
  expect_product(y, 4, 7);
  set_all(session, "v", 1);
  TEST_OK(berth_session_clone(session, &clone, &err));
  run_product(clone, 4, y);
  expect_product(y, 4, 6);
  dim.extent = 2;
  TEST_OK(berth_session_bind(session, &dim, 1, &err));
  run_product(session, 2, y);
  expect_product(y, 2, 6);
  berth_session_destroy(clone);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* Weights of an LSTM over several rows are packed, unless something else reads them. */
static void recurrent_weights(void **state) {
#define LSTM(batch, d, attrs)                                                                    \
  "graph \"l\" { input %x : f32[6, " batch ", 5] param %w : f32[" d ", 36, 5] param %r : f32[" d \
  ", 36, 9]\n"                                                                                   \
  "param %b : f32[" d ", 72] %y, %h, %c = lstm(%x, %w, %r, %b) {" attrs "} output \"y\" = %y output \"c\" = %c "
  static const pattern patterns[] = {
      {LSTM("8", "1", "") "}", "pack_weights", 2, NULL, 1e-4},
      {LSTM("33", "2", "direction = \"bidirectional\"") "}", "pack_weights", 2, NULL, 1e-4},
      {LSTM("7", "1", "direction = \"reverse\"") "}", "lstm", 1, "pack_weights", 1e-4},
      {LSTM("9", "1", "") "%s = neg(%w) output \"s\" = %s }", "lstm", 1, "pack_weights", 1e-4},
      {"graph \"g\" { input %x : f32[6, 12, 5] param %w : f32[1, 27, 5] param %r : f32[1, 27, 9]\n"
       "%y, %h = gru(%x, %w, %r) output \"y\" = %y }",
       "gru", 1, "pack_weights", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* A weight that a run computes is packed in every run. */
static void moving_weights(void **state) {
  static const pattern patterns[] = {
      {"graph \"m\" { input %x : f32[1, 8, 9, 10] input %w : f32[12, 8, 3, 3] input %b : f32[12]\n"
       "%c = conv(%x, %w, %b) {pads = [1, 1, 1, 1]} %r = relu(%c) output \"r\" = %r }",
       "conv_last", 1, "conv", 1e-4},
      {"graph \"m\" { input %x : f32[1, 8, 9, 10] input %w : f32[2, 8, 3, 3]\n"
       "%c = conv(%x, %w) {pads = [1, 1, 1, 1]} %n = neg(%c) output \"n\" = %n }",
       "conv_last", 1, "conv", 1e-4},
      {"graph \"m\" { input %x : f32[1, 8, 9, 10] input %v : f32[1, 8, 9, 10] param %p : f32[8, 8, 3, 3]\n"
       "%a = conv(%v, %p) {pads = [1, 1, 1, 1]} %s = narrow(%a) {axes = [2, 3], starts = [0, 0], ends = [3, 3]}\n"
       "%c = conv(%x, %s) {strides = [2, 2]} output \"c\" = %c }",
       "conv_last", 2, "conv", 1e-3},
      {"graph \"m\" { input %x : f32[1, 8, 9, 10] input %w : f32[8, 5, 2, 2]\n"
       "%c = conv_transpose(%x, %w) {strides = [2, 2]} output \"c\" = %c }",
       "conv_transpose_last", 1, "conv_transpose", 1e-4},
      {"graph \"m\" { input %x : f32[1, 8, 4, 5, 6] param %w : f32[12, 8, 3, 2, 3]\n"
       "%c = conv(%x, %w) {pads = [1, 0, 1, 1, 1, 1]} output \"c\" = %c }",
       "conv_last", 1, "conv", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(weights_are_packed_from_bytes),
      cmocka_unit_test(views_go_before_the_dequantize),
      cmocka_unit_test(volumes_are_turned_once_they_are_small),
      cmocka_unit_test(outputs_are_turned_before_they_grow),
      cmocka_unit_test(bytes_are_turned_before_they_are_numbers),
      cmocka_unit_test(preparation_takes_what_is_free),
      cmocka_unit_test(a_prelude_follows_the_weights),
      cmocka_unit_test(recurrent_weights),
      cmocka_unit_test(moving_weights),
      cmocka_unit_test(pictures_are_read_where_they_lie),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
