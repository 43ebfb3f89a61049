/* Matrix units: products, long sums and attention, in each way that they can be computed, on the device that
 * BERTH_TEST_DEVICE names (the interpreter where it names none) against the CPU, in f32 or, where the graph has 16
 * bits, in the same. */
#include <math.h>

#include "berth/berth.h"
#include "support.h"

#define MOST 150000u

typedef struct unit_case {
  const char *text;
  const char *profile; /* NULL: the device's own */
  size_t in[3], out;   /* elements of the inputs a, b and c, and of the result */
} unit_case;

static const unit_case wide_cases[] = {
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
    /* channels last throughout: windows, what is added, strides, weights that are used twice */
    {.text = "graph \"g\" { input %a : f32[1, 24, 14, 14] input %b : f32[24, 24, 3, 3] input %c : f32[40, 24, 1, 1] "
             "%x = conv(%a, %b) {pads = [1, 1, 1, 1]} %y = relu(%x) %z = conv(%y, %b) {pads = [1, 1, 1, 1]} "
             "%s = add(%z, %a) %r = relu(%s) %o = conv(%r, %c) {strides = [2, 2]} output \"o\" = %o }",
     .in = {24 * 196, 24 * 24 * 9, 40 * 24},
     .out = 40 * 49},
    {.text = "graph \"g\" { input %a : f32[1, 4, 70, 24] input %b : f32[1, 2, 90, 24] input %c : f32[1, 2, 90, 40] "
             "%o = attention(%a, %b, %c) {mode = \"causal\"} output \"o\" = %o }",
     .in = {4 * 70 * 24, 2 * 90 * 24, 2 * 90 * 40},
     .out = 4 * 70 * 40},
    {.text = "graph \"g\" { input %a : f32[1, 20, 1, 32] input %b : f32[1, 2, 300, 32] input %c : f32[1, 2, 300, 31] "
             "%o = attention(%a, %b, %c) output \"o\" = %o }",
     .in = {20 * 32, 2 * 300 * 32, 2 * 300 * 31},
     .out = 20 * 31},
};

/* The first has workgroups enough for warpgroups, with the right side across; the second with both along the depth. */
static const unit_case narrow_cases[] = {
    {.text = "graph \"g\" { input %a : f32[1000, 72] input %b : f32[72, 1024] %x = cast(%a) {to = \"bf16\"} "
             "%y = cast(%b) {to = \"bf16\"} %z = matmul(%x, %y) %n = narrow(%z) {axes = [0], starts = [900], ends = "
             "[1000]} "
             "%o = cast(%n) {to = \"f32\"} output \"o\" = %o }",
     .profile = "hopper",
     .in = {72000, 72 * 1024},
     .out = 102400},
    {.text =
         "graph \"g\" { input %a : f32[1024, 80] input %b : f32[1008, 80] %x = cast(%a) {to = \"f16\"} "
         "%y = cast(%b) {to = \"f16\"} %t = transpose(%y) {perm = [1, 0]} %z = matmul(%x, %t) "
         "%n = narrow(%z) {axes = [0], starts = [900], ends = [1000]} %o = cast(%n) {to = \"f32\"} output \"o\" = %o }",
     .profile = "hopper",
     .in = {81920, 1008 * 80},
     .out = 100800},
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

static void f32_is_rounded_as_asked(void **state) {
  static const double tolerance[] = {[BERTH_COMPUTE_TF32X3] = 1e-5,
                                     [BERTH_COMPUTE_TF32] = 2e-3,
                                     [BERTH_COMPUTE_BF16] = 1.5e-2,
                                     [BERTH_COMPUTE_F16] = 2e-3};
  (void)state;
  for (size_t i = 0; i < sizeof wide_cases / sizeof *wide_cases; i++) {
    unit_run(&wide_cases[i], "cpu", BERTH_COMPUTE_F32, unit_want);
    for (int compute = BERTH_COMPUTE_TF32X3; compute <= BERTH_COMPUTE_F16; compute++)
      unit_compare(&wide_cases[i], (berth_compute)compute, tolerance[compute]);
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

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(f32_is_rounded_as_asked),
                                     cmocka_unit_test(what_is_narrow_stays_so)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
