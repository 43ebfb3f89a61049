/* Matrix units: products, long sums and attention, in each way that they can be computed, on the device that
 * BERTH_TEST_DEVICE names (the interpreter where it names none) against the CPU, in f32 or, where the graph has 16
 * bits, in the same. */
#include <math.h>
#include <stdbool.h>

#include "berth/berth.h"
#include "support.h"

#define MOST 600000u

typedef struct unit_case {
  const char *text;
  const char *profile; /* NULL: the device's own */
  uint32_t flags;      /* of the plan */
  size_t in[3], out;   /* elements of the inputs a, b and c, and of the result */
} unit_case;

#define HEADS                                                \
  "%d = attention(%q, %k, %v) {heads = 3, scale = 0.02} "    \
  "%x, %y, %z = attention_grad(%q, %k, %v, _, _, _, _, %d) " \
  "{heads = 3, mode = \"causal\", scale = 0.02} "

/* %h is read by an activation and by the epilogue of a product, and each makes a factor. */
#define ACTIVATION                                                                                                  \
  "graph \"g\" { input %a : f32[80, 64] input %b : f32[64, 144] input %c : f32[144, 72] %h = matmul(%a, %b) "       \
  "%g = gelu_tanh(%h) %y = matmul(%g, %c) %t = transpose(%c) {perm = [1, 0]} %e = matmul(%y, %t) %d = mul(%e, %h) " \
  "%o = matmul(%d, %c) "
#define LOSSES                                                                                             \
  "graph \"g\" { input %a : f32[80, 64] input %b : f32[64, 144] input %c : f32[80] %l = matmul(%a, %b) "   \
  "const %n : i64[1] = [7] %i = expand(%n) {shape = [80]} "                                                \
  "%e = cross_entropy(%l, %i) %d = cross_entropy_grad(%l, %i, %c, %e) %t = transpose(%b) {perm = [1, 0]} " \
  "%g = matmul(%d, %t) %r = unsqueeze(%e) {axes = [1]} %o = concat(%g, %r) {axis = 1} output \"o\" = %o }"

static const unit_case wide_cases[] = {
    {.text = ACTIVATION "output \"o\" = %o }", .in = {80 * 64, 64 * 144, 144 * 72}, .out = 80 * 72},
    {.text = LOSSES, .in = {80 * 64, 64 * 144, 80}, .out = 80 * 65},
    {.text = "graph \"g\" { input %a : f32[70, 136] input %b : f32[136, 72] %o = matmul(%a, %b) output \"o\" = %o }",
     .in = {70 * 136, 136 * 72},
     .out = 70 * 72},
    {.text = "graph \"g\" { input %a : f32[130, 700] input %b : f32[700, 72] %o = matmul(%a, %b) output \"o\" = %o }",
     .in = {130 * 700, 700 * 72},
     .out = 130 * 72},
    {.text = "graph \"g\" { input %a : f32[1, 64, 7, 7] input %b : f32[96, 64, 3, 3] input %c : f32[96] "
             "%o = conv(%a, %b, %c) {pads = [1, 1, 1, 1]} output \"o\" = %o }",
     .in = {64 * 49, 96 * 64 * 9, 96},
     .out = 96 * 49},
    /* f32 in tiles of 64 x 64, with the right side along the depth */
    {.text = "graph \"g\" { input %a : f32[300, 68] input %b : f32[340, 68] %t = transpose(%b) {perm = [1, 0]} "
             "%o = matmul(%a, %t) output \"o\" = %o }",
     .in = {300 * 68, 340 * 68},
     .out = 300 * 340},
    /* channels last throughout: windows, what is added, strides, weights that are used twice */
    {.text = "graph \"g\" { input %a : f32[1, 24, 14, 14] input %b : f32[24, 24, 3, 3] input %c : f32[40, 24, 1, 1] "
             "%x = conv(%a, %b) {pads = [1, 1, 1, 1]} %y = relu(%x) %z = conv(%y, %b) {pads = [1, 1, 1, 1]} "
             "%s = add(%z, %a) %r = relu(%s) %o = conv(%r, %c) {strides = [2, 2]} output \"o\" = %o }",
     .in = {24 * 196, 24 * 24 * 9, 40 * 24},
     .out = 40 * 49},
    /* what the first makes is for the second alone, and lies as it multiplies */
    {.text =
         "graph \"g\" { input %a : f32[130, 136] input %b : f32[136, 72] input %c : f32[72, 80] %x = matmul(%a, %b) "
         "%y = relu(%x) %o = matmul(%y, %c) output \"o\" = %o }",
     .in = {130 * 136, 136 * 72, 72 * 80},
     .out = 130 * 80},
    {.text = "graph \"g\" { input %a : f32[1, 4, 70, 24] input %b : f32[1, 2, 90, 24] input %c : f32[1, 2, 90, 40] "
             "%o = attention(%a, %b, %c) {mode = \"causal\"} output \"o\" = %o }",
     .in = {4 * 70 * 24, 2 * 90 * 24, 2 * 90 * 40},
     .out = 4 * 70 * 40},
    /* a result that is multiplied alone, through views, parts and what they make up, and summed over its rows */
    {.text = "graph \"g\" { input %a : f32[72, 64] input %b : f32[64, 72] %h = matmul(%a, %b) %r = relu(%h) "
             "%p, %q = split(%r) {axis = 0} %n = neg(%p) %m = relu(%q) %j = concat(%n, %m) {axis = 0} "
             "%t = transpose(%j) {perm = [1, 0]} %x = matmul(%t, %r) %y = matmul(%j, %x) "
             "%s = reduce_sum(%j) {axes = [0], keepdims = 0} %z = add(%y, %s) %o = reshape(%z) {shape = [5184]} "
             "output \"o\" = %o }",
     .in = {72 * 64, 64 * 72},
     .out = 72 * 72},
    /* a part that nothing reads, next to one that is multiplied, where parts are copied */
    {.text = "graph \"g\" { input %a : f32[72, 64] input %b : f32[64, 144] input %c : f32[72, 72] "
             "%h = matmul(%a, %b) %r = relu(%h) %p, %q = split(%r) {axis = 1} %o = matmul(%q, %c) output \"o\" = %o }",
     .flags = BERTH_PLAN_NO_STRIDED,
     .in = {72 * 64, 64 * 144, 72 * 72},
     .out = 72 * 72},
    {.text = "graph \"g\" { input %a : f32[1, 20, 1, 32] input %b : f32[1, 2, 300, 32] input %c : f32[1, 2, 300, 31] "
             "%o = attention(%a, %b, %c) output \"o\" = %o }",
     .in = {20 * 32, 2 * 300 * 32, 2 * 300 * 31},
     .out = 20 * 31},
    /* long sums in sections, which see a bias, what is added and an epilogue when they are whole */
    {.text = "graph \"g\" { input %a : f32[70, 1536] input %b : f32[1536, 72] input %c : f32[72] %m = matmul(%a, %b) "
             "%s = add(%m, %c) %o = relu(%s) output \"o\" = %o }",
     .in = {70 * 1536, 1536 * 72, 72},
     .out = 70 * 72},
    {.text = "graph \"g\" { input %a : f32[1, 256, 8, 9] input %b : f32[64, 256, 3, 3] input %c : f32[64] "
             "%x = conv(%a, %b, %c) {pads = [1, 1, 1, 1]} %o = relu(%x) output \"o\" = %o }",
     .in = {256 * 72, 64 * 256 * 9, 64},
     .out = 64 * 72},
    /* attention and its gradients, of what products make for them alone and of what lies as f32 */
    {.text = "graph \"g\" { input %a : f32[140, 64] input %b : f32[64, 144] %m = matmul(%a, %b) "
             "%n = reshape(%m) {shape = [2, 70, 144]} %q, %k, %v = split(%n) {axis = 2} " HEADS
             "%o = concat(%x, %y, %z) {axis = 2} output \"o\" = %o }",
     .in = {140 * 64, 64 * 144},
     .out = 140 * 144},
    {.text = "graph \"g\" { input %a : f32[2, 70, 48] input %b : f32[2, 90, 48] "
             "input %c : f32[2, 90, 48] %q = identity(%a) %k = identity(%b) %v = identity(%c) " HEADS
             "%o = concat(%x, %y, %z) {axis = 1} output \"o\" = %o }",
     .in = {140 * 48, 180 * 48, 180 * 48},
     .out = 500 * 48},
};

/* The first has workgroups enough for warpgroups, with the right side across; the second with both along the depth. */
static const unit_case narrow_cases[] = {
    {.text = "graph \"g\" { input %a : f32[2000, 288] input %b : f32[288, 2048] %x = cast(%a) {to = \"bf16\"} "
             "%y = cast(%b) {to = \"bf16\"} %z = matmul(%x, %y) %n = narrow(%z) {axes = [0], starts = [1930], ends = "
             "[2000]} "
             "%o = cast(%n) {to = \"f32\"} output \"o\" = %o }",
     .profile = "hopper",
     .in = {2000 * 288, 288 * 2048},
     .out = 70 * 2048},
    {.text = "graph \"g\" { input %a : f32[1024, 280] input %b : f32[1016, 280] %x = cast(%a) {to = \"f16\"} "
             "%y = cast(%b) {to = \"f16\"} %t = transpose(%y) {perm = [1, 0]} %z = matmul(%x, %t) "
             "%n = narrow(%z) {axes = [0], starts = [900], ends = [1000]} %o = cast(%n) {to = \"f32\"} output \"o\" = "
             "%o }",
     .profile = "hopper",
     .in = {1024 * 280, 1016 * 280},
     .out = 100 * 1016},
    /* tiles whose first factors are loaded ahead, with what is added at the end */
    {.text = "graph \"g\" { input %a : f32[640, 64] input %b : f32[64, 640] input %c : f32[640, 640] "
             "%x = cast(%a) {to = \"bf16\"} %y = cast(%b) {to = \"bf16\"} %z = cast(%c) {to = \"bf16\"} "
             "%p = product(%x, %y, _, %z) {columns = 640, adds = 1} %o = cast(%p) {to = \"f32\"} output \"o\" = %o }",
     .profile = "nvidia",
     .in = {640 * 64, 64 * 640, 640 * 640},
     .out = 640 * 640},
    {.text = "graph \"g\" { input %a : f32[1, 2, 50, 40] input %b : f32[1, 2, 50, 40] input %c : f32[1, 2, 50, 40] "
             "%x = cast(%a) {to = \"f16\"} %y = cast(%b) {to = \"f16\"} %z = cast(%c) {to = \"f16\"} "
             "%n = attention(%x, %y, %z) %o = cast(%n) {to = \"f32\"} output \"o\" = %o }",
     .in = {4000, 4000, 4000},
     .out = 4000},
};

static float unit_data[MOST], unit_want[MOST], unit_got[MOST];

static void unit_run(const unit_case *c, const char *device, berth_compute compute, float *out) {
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session *session;
  berth_graph *graph;
  berth_error err;
  uint64_t seed = 7;
  plan.compute = compute;
  plan.flags = c->flags;
  plan.gpu_profile = strcmp(device, "cpu") != 0 ? c->profile : NULL;
  desc.device = device;
  desc.plan = &plan;
  TEST_OK(berth_graph_parse(ctx, c->text, strlen(c->text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  for (size_t i = 0; i < 3 && c->in[i] != 0; i++) {
    const char name[2] = {(char)('a' + (int)i), '\0'};
    for (size_t k = 0; k < c->in[i]; k++) unit_data[k] = test_random_f32(&seed);
    TEST_OK(berth_session_write(session, name, unit_data, c->in[i] * sizeof *unit_data, &err));
  }
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "o", out, c->out * sizeof *out, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void unit_compare(const unit_case *c, berth_compute compute, double tolerance) {
  double largest = 0;
  unit_run(c, test_gpu(), compute, unit_got);
  for (size_t i = 0; i < c->out; i++) largest = fmax(largest, fabs((double)unit_want[i]));
  for (size_t i = 0; i < c->out; i++)
    if (!(fabs((double)unit_want[i] - (double)unit_got[i]) <= tolerance * largest))
      fail_msg("%s, %s: element %zu is %g, expected %g", berth_compute_name(compute), c->text, i, (double)unit_got[i],
               (double)unit_want[i]);
}

/* Cooperative matrices have no f32 that is rounded by the units. */
static bool unit_can(berth_compute compute) {
  return strncmp(test_gpu(), "vulkan", 6) != 0 || (compute != BERTH_COMPUTE_TF32X3 && compute != BERTH_COMPUTE_TF32);
}

static void f32_is_rounded_as_asked(void **state) {
  static const double tolerance[] = {[BERTH_COMPUTE_F32] = 2e-6,
                                     [BERTH_COMPUTE_TF32X3] = 1e-5,
                                     [BERTH_COMPUTE_TF32] = 2e-3,
                                     [BERTH_COMPUTE_BF16] = 1.5e-2,
                                     [BERTH_COMPUTE_F16] = 2e-3};
  (void)state;
  for (size_t i = 0; i < sizeof wide_cases / sizeof *wide_cases; i++) {
    unit_run(&wide_cases[i], "cpu", BERTH_COMPUTE_F32, unit_want);
    for (int compute = BERTH_COMPUTE_F32; compute <= BERTH_COMPUTE_F16; compute++)
      if (unit_can((berth_compute)compute)) unit_compare(&wide_cases[i], (berth_compute)compute, tolerance[compute]);
  }
}

static void what_is_narrow_stays_so(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof narrow_cases / sizeof *narrow_cases; i++) {
    /* the interpreter has smaller ones of these (kernel/test_warpgroups.c) */
    if (narrow_cases[i].profile != NULL && strncmp(test_gpu(), "cuda", 4) != 0) continue;
    unit_run(&narrow_cases[i], "cpu", BERTH_COMPUTE_F32, unit_want);
    unit_compare(&narrow_cases[i], BERTH_COMPUTE_F32, i == 0 ? 8e-3 : 2e-3);
  }
}

/* %h is read by products alone, %k by a sum too: the first takes half the bytes with bf16, the second gets a copy where
 * its products are large, which these are not. */
static void factors_lie_as_they_are_multiplied(void **state) {
  static const char text[] =
      "graph \"g\" { input %a : f32[72, 64] input %b : f32[64, 72] input %c : f32[72, 72] %h = matmul(%a, %b) "
      "%k = matmul(%h, %c) %l = matmul(%k, %c) %o = add(%k, %l) output \"o\" = %o }";
  static const berth_compute computes[] = {BERTH_COMPUTE_F32, BERTH_COMPUTE_TF32, BERTH_COMPUTE_BF16};
  (void)state;
  for (size_t i = 0; i < sizeof computes / sizeof *computes; i++) {
    berth_context *ctx = test_context();
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    berth_graph *graph;
    berth_plan *plan;
    berth_slot h = BERTH_SLOT_INIT, k = BERTH_SLOT_INIT;
    berth_error err;
    desc.device = "interp";
    desc.gpu_profile = "hopper";
    desc.compute = computes[i];
    TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    TEST_OK(berth_plan_slot(plan, berth_graph_find(graph, "h"), &h, &err));
    TEST_OK(berth_plan_slot(plan, berth_graph_find(graph, "k"), &k, &err));
    assert_int_equal(h.storage.type, computes[i] == BERTH_COMPUTE_BF16 ? BERTH_BF16 : BERTH_F32);
    assert_int_equal(k.storage.type, BERTH_F32);
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
    berth_context_destroy(ctx);
  }
}

static berth_type stored_as(const char *text, const char *name, berth_compute compute) {
  berth_context *ctx = test_context();
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_slot slot = BERTH_SLOT_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.device = "interp";
  desc.gpu_profile = "hopper";
  desc.compute = compute;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_slot(plan, berth_graph_find(berth_plan_graph(plan), name), &slot, &err));
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return slot.storage.type;
}

/* What an activation and its gradient read is rounded to bf16, which has the range of f32, but not to f16; so are
 * logits. What else reads a product's result gets all of it. */
static void activations_read_what_is_rounded(void **state) {
  (void)state;
  assert_int_equal(stored_as(ACTIVATION "output \"o\" = %o }", "h", BERTH_COMPUTE_BF16), BERTH_BF16);
  assert_int_equal(stored_as(ACTIVATION "output \"o\" = %o }", "h", BERTH_COMPUTE_F16), BERTH_F32);
  assert_int_equal(stored_as(ACTIVATION "output \"o\" = %o }", "h", BERTH_COMPUTE_TF32), BERTH_F32);
  assert_int_equal(stored_as(ACTIVATION "output \"o\" = %o output \"h\" = %h }", "h", BERTH_COMPUTE_BF16), BERTH_F32);
  assert_int_equal(
      stored_as(ACTIVATION "%s = softmax(%h) output \"o\" = %o output \"s\" = %s }", "h", BERTH_COMPUTE_BF16),
      BERTH_F32);
  /* the result of the activation leaves as it is, so that is not a factor */
  assert_int_equal(stored_as(ACTIVATION "output \"o\" = %o output \"g\" = %g }", "h", BERTH_COMPUTE_BF16), BERTH_F32);
  assert_int_equal(stored_as(LOSSES, "l", BERTH_COMPUTE_BF16), BERTH_BF16);
  assert_int_equal(stored_as(LOSSES, "l", BERTH_COMPUTE_F16), BERTH_F32);
}

/* What a convolution makes for another one, with channels last. */
static void convolutions_read_factors(void **state) {
  static const char text[] =
      "graph \"g\" { input %a : f32[1, 24, 14, 14] input %b : f32[24, 24, 3, 3] input %c : f32[40, 24, 1, 1] "
      "%x = conv(%a, %b) {pads = [1, 1, 1, 1]} %y = relu(%x) %z = conv(%y, %c) output \"o\" = %z }";
  (void)state;
  assert_int_equal(stored_as(text, "y#last", BERTH_COMPUTE_BF16), BERTH_BF16);
  assert_int_equal(stored_as(text, "y#last", BERTH_COMPUTE_F16), BERTH_F16);
  assert_int_equal(stored_as(text, "y#last", BERTH_COMPUTE_TF32), BERTH_F32);
}

/* What products make for attention and its gradients alone. */
static void attention_reads_factors(void **state) {
  static const char text[] =
      "graph \"g\" { input %a : f32[140, 64] input %b : f32[64, 144] %m = matmul(%a, %b) "
      "%n = reshape(%m) {shape = [2, 70, 144]} %q, %k, %v = split(%n) {axis = 2} " HEADS
      "output \"x\" = %x output \"y\" = %y output \"z\" = %z }";
  static const berth_compute computes[] = {BERTH_COMPUTE_F32, BERTH_COMPUTE_TF32, BERTH_COMPUTE_BF16};
  static const char *const names[] = {"m", "d"};
  (void)state;
  for (size_t i = 0; i < sizeof computes / sizeof *computes; i++) {
    berth_context *ctx = test_context();
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    berth_graph *graph;
    berth_plan *plan;
    berth_error err;
    desc.device = "interp";
    desc.gpu_profile = "hopper";
    desc.compute = computes[i];
    TEST_OK(berth_graph_parse(ctx, text, sizeof text - 1, &graph, &err));
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
      berth_slot slot = BERTH_SLOT_INIT;
      TEST_OK(berth_plan_slot(plan, berth_graph_find(graph, names[n]), &slot, &err));
      assert_int_equal(slot.storage.type, computes[i] == BERTH_COMPUTE_BF16 ? BERTH_BF16 : BERTH_F32);
    }
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
    berth_context_destroy(ctx);
  }
}

static uint32_t count_steps(const char *text, berth_compute compute) {
  berth_context *ctx = test_context();
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan_info info = BERTH_PLAN_INFO_INIT;
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  desc.device = "interp";
  desc.gpu_profile = "hopper";
  desc.compute = compute;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_get_info(plan, &info, &err));
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return info.n_steps;
}

/* %r is read by two products and a sum, %w is a state: one copy of each, and none for rows that do not begin at 16
 * bytes. */
static void large_products_get_copies(void **state) {
  static const char even[] =
      "graph \"g\" { input %a : f32[1024, 1024] state %w : f32[1024, 1024] = zeros %r = relu(%a) "
      "%x = matmul(%r, %w) %t = transpose(%r) {perm = [1, 0]} %y = matmul(%t, %w) %s = add(%r, %x) %z = add(%s, %y) "
      "%n = add(%w, %z) update %w = %n output \"o\" = %z }";
  static const char odd[] =
      "graph \"g\" { input %a : f32[1023, 1023] state %w : f32[1023, 1023] = zeros %r = relu(%a) "
      "%x = matmul(%r, %w) %s = add(%r, %x) %n = add(%w, %s) update %w = %n output \"o\" = %s }";
  (void)state;
  /* the view of %r becomes one of its copy */
  assert_int_equal(count_steps(even, BERTH_COMPUTE_BF16), count_steps(even, BERTH_COMPUTE_TF32) + 2);
  assert_int_equal(count_steps(odd, BERTH_COMPUTE_BF16), count_steps(odd, BERTH_COMPUTE_TF32));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(f32_is_rounded_as_asked),  cmocka_unit_test(factors_lie_as_they_are_multiplied),
      cmocka_unit_test(attention_reads_factors),  cmocka_unit_test(large_products_get_copies),
      cmocka_unit_test(what_is_narrow_stays_so),  cmocka_unit_test(activations_read_what_is_rounded),
      cmocka_unit_test(convolutions_read_factors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
