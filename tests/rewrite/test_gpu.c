/* What GPUs make of plain graphs, on the interpreter: batch norms in convolutions, epilogues, q, k and v as one
 * product.
 */
#include <math.h>
#include <stdlib.h>

#include "base/half.h"
#include "patterns.h"

#define IMAGE PATTERN_IMAGE
#define NORM PATTERN_NORM
#define FOUR PATTERN_FOUR

static void check_on_loops(const pattern *patterns, size_t n, uint32_t flags) {
  for (size_t i = 0; i < n; i++) pattern_check_on(&patterns[i], "interp", flags);
}
#define CHECK(patterns) check_on_loops(patterns, sizeof(patterns) / sizeof *(patterns), 0)

static void norms_go_into_convolutions(void **state) {
  static const pattern patterns[] = {
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 3, 3] param %b : f32[4]\n"
                                 "%c = conv(%x, %w, %b) {strides = [2, 2]} %n = batch_norm(%c, %ns, %nb, %nm, %nv)\n"
                                 "output \"n\" = %n }",
       "conv_last", 1, "batch_norm", 1e-4},
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 1, 3, 3]\n" /* every channel its own, no bias */
                                 "%c = conv(%x, %w) {group = 4} %n = batch_norm(%c, %ns, %nb, %nm, %nv)\n"
                                 "output \"n\" = %n }",
       "conv", 1, "batch_norm", 1e-4},
      {"graph \"l\" { input %x : f32[2, 3, 50] " NORM("4") FOUR
       "param %w : f32[4, 3, 5]\n"
       "%c = conv(%x, %w) %n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "conv_last", 1, "batch_norm", 1e-4},
      {IMAGE("6") NORM("4") FOUR "param %w : f32[6, 4, 2, 2] param %b : f32[4]\n"
                                 "%c = conv_transpose(%x, %w, %b) {strides = [2, 2]}\n"
                                 "%n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "conv_transpose", 1, "batch_norm", 1e-4},
      /* with an activation and a residual after it, all of it is one node of a run */
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 3, 3] %c = conv(%x, %w) {pads = [1, 1, 1, 1]}\n"
                                 "%n = batch_norm(%c, %ns, %nb, %nm, %nv) %s = add(%n, %x) %r = relu(%s)\n"
                                 "output \"r\" = %r }",
       "conv_last", 1, "relu", 1e-4},
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 3, 3] %c = conv(%x, %w) {pads = [1, 1, 1, 1]}\n"
                                 "%n = batch_norm(%c, %ns, %nb, %nm, %nv) %s = add(%n, %x) %r = relu(%s)\n"
                                 "output \"r\" = %r }",
       "add", 0, "batch_norm", 1e-4},
  };
  (void)state;
  CHECK(patterns);
}

static void other_norms_become_element_wise(void **state) {
  static const pattern patterns[] = {
      /* before an activation: one chain, beside the two that the prelude has for scale and shift */
      {IMAGE("4") NORM("4") FOUR "%n = batch_norm(%x, %ns, %nb, %nm, %nv) %r = relu(%n) output \"r\" = %r }", "chain",
       3, "relu", 1e-4},
      /* the result before the norm is wanted too */
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 1, 1] %c = conv(%x, %w)\n"
                                 "%n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n output \"c\" = %c }",
       "chain", 3, "batch_norm", 1e-4},
      /* a weight that two convolutions share stays one: the norm is an epilogue */
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 1, 1] %c = conv(%x, %w) %d = conv(%c, %w)\n"
                                 "%n = batch_norm(%d, %ns, %nb, %nm, %nv) output \"n\" = %n output \"c\" = %c }",
       "mul", 0, "batch_norm", 2e-4},
      {"graph \"f\" { input %x : f32[3, 4] " NORM("4") FOUR "%n = batch_norm(%x, %ns, %nb, %nm, %nv)\n"
                                                            "output \"n\" = %n }",
       "chain", 3, "batch_norm", 1e-4},
      /* statistics that a run gives: it stays */
      {IMAGE("4") "input %s : f32[4] const %v : f32[4] = " FOUR
                  "%n = batch_norm(%x, %s, %s, %s, %v) output \"n\" = %n }",
       "batch_norm", 1, "chain", 1e-4},
  };
  (void)state;
  CHECK(patterns);
}

/* Where weights must stay the params that they are, a norm is the epilogue of its convolution. */
static void weights_of_f16_are_not_folded(void **state) {
  static const pattern patterns[] = {
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 1, 1] %c = conv(%x, %w)\n"
                                 "%n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "mul", 0, "batch_norm", 2e-2},
  };
  (void)state;
  check_on_loops(patterns, 1, BERTH_PLAN_F16_WEIGHTS);
}

/* The bias of a convolution runs along its channels, not along its last axis. */
static void biases_of_convolutions(void **state) {
  static const pattern patterns[] = {
      {"graph \"b\" { input %x : f32[1, 3, 6, 5] param %w : f32[5, 3, 1, 1] param %b : f32[5] %c = conv(%x, %w)\n"
       "%s = add(%c, %b) output \"s\" = %s }",
       "conv_last", 1, "add", 1e-4},
      {"graph \"b\" { input %x : f32[1, 3, 6, 5] param %w : f32[5, 3, 1, 1] param %b : f32[1, 5, 1, 1]\n"
       "%c = conv(%x, %w) %s = add(%c, %b) %r = relu(%s) output \"r\" = %r }",
       "conv_last", 1, "add", 1e-4},
  };
  (void)state;
  CHECK(patterns);
}

#define HEADS(q, k, v)                                                     \
  "%qs = reshape(" q                                                       \
  ") {shape = [2, 40, 4, 8]} %qh = transpose(%qs) {perm = [0, 2, 1, 3]}\n" \
  "%ks = reshape(" k                                                       \
  ") {shape = [2, 40, 4, 8]} %kh = transpose(%ks) {perm = [0, 2, 1, 3]}\n" \
  "%vs = reshape(" v                                                       \
  ") {shape = [2, 40, 4, 8]} %vh = transpose(%vs) {perm = [0, 2, 1, 3]}\n" \
  "%a = attention(%qh, %kh, %vh) {merged = 1} output \"a\" = %a }"

/* 80 rows: a GPU takes them as one whatever their number. */
static void queries_keys_and_values_are_one_product(void **state) {
  static const pattern patterns[] = {
      {"graph \"q\" { input %x : f32[2, 40, 32] param %wq : f32[32, 32] param %wk : f32[32, 32] param %wv : f32[32, "
       "32]\n"
       "param %bq : f32[32] param %bk : f32[32] param %bv : f32[32]\n"
       "%q0 = matmul(%x, %wq) %q = add(%q0, %bq) %k0 = matmul(%x, %wk) %k = add(%k0, %bk)\n"
       "%v0 = matmul(%x, %wv) %v = add(%v0, %bv)\n" HEADS("%q", "%k", "%v"),
       "product", 1, "matmul", 2e-3},
      /* weights of [N, K] that are turned */
      {"graph \"t\" { input %x : f32[2, 40, 32] param %wq : f32[32, 32] param %wk : f32[32, 32] param %wv : f32[32, "
       "32]\n"
       "%tq = transpose(%wq) {perm = [1, 0]} %q = matmul(%x, %tq) %tk = transpose(%wk) {perm = [1, 0]}\n"
       "%k = matmul(%x, %tk) %tv = transpose(%wv) {perm = [1, 0]} %v = matmul(%x, %tv)\n" HEADS("%q", "%k", "%v"),
       "product", 1, "matmul", 2e-3},
      /* one that somebody reads in another way stays apart */
      {"graph \"o\" { input %x : f32[2, 40, 32] param %wq : f32[32, 32] param %wk : f32[32, 32] param %wv : f32[32, "
       "32]\n"
       "%q = matmul(%x, %wq) %k = matmul(%x, %wk) %v = matmul(%x, %wv) output \"v\" = %v\n" HEADS("%q", "%k", "%v"),
       "product", 2, "matmul", 2e-3},
  };
  (void)state;
  CHECK(patterns);
}

/* Products and chains of f16 and bf16 compute in f32 and are rounded once. */
static void narrow_numbers(void **state) {
  static const pattern patterns[] = {
      {"graph \"h\" { input %x : f16[7, 24] param %w : f16[24, 40] param %b : f16[40] input %r : f16[7, 40]\n"
       "%m = matmul(%x, %w) %s = add(%m, %b) %a = add(%s, %r) %g = relu(%a) %o = cast(%g) {to = \"f32\"}\n"
       "output \"o\" = %o }",
       "product", 1, "add", 2e-2},
      {"graph \"h\" { input %x : bf16[4, 9] const %c : bf16[] = [0.5] %a = mul(%x, %c) %b = add(%a, %x)\n"
       "%d = neg(%b) %o = cast(%d) {to = \"f32\"} output \"o\" = %o }",
       "chain", 1, "mul", 3e-2},
      /* the result of a product of f32 chooses among f16 */
      {"graph \"h\" { input %x : f32[4, 4] input %y : f32[4, 4] input %z : f16[4, 4] %m = matmul(%x, %y)\n"
       "%l = lt(%m, %x) %n = neg(%z) %w = where(%l, %z, %n) %o = cast(%w) {to = \"f32\"} output \"o\" = %o }",
       "chain", 1, "where", 1e-6},
  };
  (void)state;
  CHECK(patterns);
}

/* 64 products of 200 and 200 are more than an f16 holds; with the factor after them they are not. */
static void sums_of_f16_do_not_overflow(void **state) {
  static const char text[] =
      "graph \"h\" { input %x : f16[1, 64] param %w : f16[64, 64] const %d : f16[] = [0.0001] %m = matmul(%x, %w)\n"
      "%s = mul(%m, %d) output \"s\" = %s }";
  const uint16_t two_hundred = 0x5a40, factor = 0x068e; /* 0.0001 as f16 */
  const double want = 64.0 * 200 * 200 * (double)berth__f16_to_f32(factor);
  berth_context *ctx = test_context();
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  uint16_t x[64], w[64 * 64], out[64];
  (void)state;
  for (int i = 0; i < 64; i++) x[i] = two_hundred;
  for (int i = 0; i < 64 * 64; i++) w[i] = two_hundred;
  desc.device = "interp";
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  TEST_OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "s", out, sizeof out, &err));
  for (int i = 0; i < 64; i++) assert_true(fabs((double)berth__f16_to_f32(out[i]) - want) <= 1e-3 * want);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static berth_status plan_on_loops(berth_context *ctx, berth_error *err, void *user) {
  const char *text = user;
  berth_graph *graph = NULL;
  berth_plan *plan = NULL;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.device = "interp";
  berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, err);
  if (status == BERTH_OK) status = berth_plan_create(graph, &desc, &plan, err);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  return status;
}

static void every_allocation_may_fail(void **state) {
  static const char text[] = IMAGE("4") NORM("4") FOUR
      "param %w : f32[4, 4, 3, 3] %c = conv(%x, %w) {pads = [1, 1, 1, 1]} %n = batch_norm(%c, %ns, %nb, %nm, %nv)\n"
      "%s = add(%n, %x) %r = relu(%s) output \"r\" = %r }";
  (void)state;
  test_fail_each_allocation(plan_on_loops, (void *)(uintptr_t)text);
}

#define GRADIENTS(q, k, rest)                                                                  \
  "graph \"a\" { input %q : f32" q " input %k : f32" k " input %v : f32" k " input %d : f32" q \
  "\n"                                                                                         \
  "%a, %b, %c = attention_grad(%q, %k, %v, _, _, _, _, %d) {" rest                             \
  "} output \"a\" = %a output \"b\" = %b\n"                                                    \
  "output \"c\" = %c }"

/* Numbers, and operands that are read again and again, take no room of a group: the gradient of gelu is one epilogue.
 */
static void long_tails_are_one_epilogue(void **state) {
  static const pattern patterns[] = {
      {"graph \"t\" { input %x : f32[20, 33] param %w : f32[33, 24] input %h : f32[20, 24] %m = matmul(%x, %w)\n"
       "const %a : f32[] = [0.0357] const %b : f32[] = [0.798] const %c : f32[] = [0.107] const %d : f32[] = [1.0]\n"
       "const %e : f32[] = [0.5] %f = mul(%h, %h) %g = mul(%f, %a) %i = add(%g, %b) %j = mul(%h, %i) %k = tanh(%j)\n"
       "%l = mul(%f, %c) %n = add(%l, %b) %o = mul(%h, %n) %p = mul(%k, %k) %q = sub(%d, %p) %r = mul(%q, %o)\n"
       "%s = add(%k, %d) %t = add(%r, %s) %u = mul(%t, %e) %y = mul(%m, %u) output \"y\" = %y }",
       "product", 1, "chain", 1e-5},
  };
  (void)state;
  CHECK(patterns);
}

static void gradients_of_attention_become_products(void **state) {
  static const pattern patterns[] = {
      {GRADIENTS("[2, 64, 32]", "[2, 64, 32]", "heads = 2, mode = \"causal\""), "product", 5, "attention_grad", 1e-3},
      {GRADIENTS("[2, 40, 24]", "[2, 110, 24]", "heads = 3, mode = \"causal\", scale = 0.3"), "product", 5,
       "attention_grad", 1e-3},
      {GRADIENTS("[1, 2, 64, 8]", "[1, 2, 70, 8]", ""), "product", 5, "attention_grad", 1e-3},
      /* few scores; other heads of keys; a window */
      {GRADIENTS("[1, 8, 32]", "[1, 8, 32]", "heads = 2"), "attention_grad", 1, "product", 1e-3},
      {GRADIENTS("[1, 4, 64, 8]", "[1, 2, 64, 8]", ""), "attention_grad", 1, "product", 1e-3},
      {GRADIENTS("[1, 64, 16]", "[1, 64, 16]", "heads = 2, mode = \"sliding_window\", window = 9"), "attention_grad", 1,
       "product", 1e-3},
  };
  /* more than 64 MiB of scores: two sequences, and one more */
  static const pattern large[] = {{GRADIENTS("[3, 1024, 24]", "[3, 1024, 24]", "heads = 6, mode = \"causal\""),
                                   "product", 10, "attention_grad", 1e-3}};
  (void)state;
  CHECK(patterns);
  if (getenv("BERTH_TEST_SLOW") != NULL) CHECK(large);
}

/* Loads decode, so that the weights are in memory as they are; nothing is rounded on the way. */
static void weights_stay_in_blocks(void **state) {
  static const pattern patterns[] = {
      {"graph \"l\" { input %x : f32[5, 256] param %w : q4_k[40, 256] %u = unpack(%w)\n"
       "%t = transpose(%u) {perm = [1, 0]} %y = matmul(%x, %t) output \"y\" = %y }",
       "product", 1, "unpack", 1e-3},
      {"graph \"r\" { input %x : f32[1, 2, 512] param %w : q6_k[33, 512] param %b : f32[33] %u = unpack(%w)\n"
       "%t = transpose(%u) {perm = [1, 0]} %m = matmul(%x, %t) %s = add(%m, %b) %y = relu(%s) output \"y\" = %y }",
       "product", 1, "relu", 1e-3},
      {"graph \"t\" { const %i : i32[3] = [4, 0, -1] param %w : mxfp4[40, 64] %u = unpack(%w)\n"
       "%x = embedding(%u, %i) %t = transpose(%u) {perm = [1, 0]} %y = matmul(%x, %t) output \"y\" = %y }",
       "unpack_rows", 1, "unpack", 1e-3},
  };
  (void)state;
  CHECK(patterns);
}

#define UNPACKED(w, u, t) "%" u " = unpack(%" w ") %" t " = transpose(%" u ") {perm = [1, 0]}\n"

/* A norm goes into the products that read it, where these have few rows and nobody else does. */
static void norms_go_into_products_of_few_rows(void **state) {
  static const pattern patterns[] = {
      {"graph \"n\" { input %x : f32[1, 64] param %s : f32[64] param %w : f32[64, 24] param %v : f32[64, 16]\n"
       "param %b : f32[16] %n = rms_norm(%x, %s) %p = matmul(%n, %w) %q = matmul(%n, %v) %a = add(%q, %b)\n"
       "%r = relu(%a) output \"p\" = %p output \"r\" = %r }",
       "row_product", 2, "rms_norm", 1e-3},
      {"graph \"d\" { input %x : f32[2, 2, 600] param %s : f32[600] param %w : f32[24, 600] %n = rms_norm(%x, %s)\n"
       "%t = transpose(%w) {perm = [1, 0]} %p = matmul(%n, %t) output \"p\" = %p }",
       "row_product", 1, "rms_norm", 1e-3},
      {"graph \"o\" { input %x : f32[1, 64] param %s : f32[64] param %w : f32[64, 24] %n = rms_norm(%x, %s)\n"
       "%p = matmul(%n, %w) output \"p\" = %p output \"n\" = %n }",
       "rms_norm", 1, "row_product", 1e-3},
      {"graph \"m\" { input %x : f32[5, 64] param %s : f32[64] param %w : f32[64, 24] %n = rms_norm(%x, %s)\n"
       "%p = matmul(%n, %w) output \"p\" = %p }",
       "rms_norm", 1, "row_product", 1e-3},
      /* of two readers, one multiplies with it in another place */
      {"graph \"s\" { input %x : f32[1, 64] param %s : f32[64] param %w : f32[64, 64] %n = rms_norm(%x, %s)\n"
       "%p = matmul(%n, %w) %m = mul(%p, %n) output \"m\" = %m }",
       "rms_norm", 1, "row_product", 1e-3},
  };
  (void)state;
  CHECK(patterns);
}

static void gates_are_one_with_what_they_gate(void **state) {
  static const pattern patterns[] = {
      {"graph \"g\" { input %x : f32[1, 256] param %s : f32[256] param %g : q4_k[24, 256] param %u : q4_k[24, "
       "256]\n" UNPACKED("g", "g1", "g2") UNPACKED(
           "u", "u1",
           "u2") "%n = rms_norm(%x, %s) %a = matmul(%n, %g2) %b = matmul(%n, %u2) %c = silu(%a) %y = mul(%c, %b)\n"
                 "output \"y\" = %y }",
       "row_product", 1, "product", 1e-2},
      {"graph \"p\" { input %x : f32[3, 64] param %g : q8_0[9, 64] param %u : q8_0[9, 64]\n" UNPACKED("g", "g1", "g2")
           UNPACKED(
               "u", "u1",
               "u2") "%a = matmul(%x, %g2) %b = matmul(%x, %u2) %c = relu(%a) %y = mul(%c, %b) output \"y\" = %y }",
       "row_product", 1, "product", 1e-2},
      /* other blocks, or a gate that somebody else reads: they stay apart */
      {"graph \"o\" { input %x : f32[1, 64] param %g : q4_0[24, 64] param %u : q8_0[24, 64]\n" UNPACKED("g", "g1", "g2")
           UNPACKED(
               "u", "u1",
               "u2") "%a = matmul(%x, %g2) %b = matmul(%x, %u2) %c = silu(%a) %y = mul(%c, %b) output \"y\" = %y }",
       "product", 2, "row_product", 1e-2},
      {"graph \"r\" { input %x : f32[1, 64] param %g : q8_0[24, 64] param %u : q8_0[24, 64]\n" UNPACKED("g", "g1", "g2")
           UNPACKED("u", "u1",
                    "u2") "%a = matmul(%x, %g2) %b = matmul(%x, %u2) %c = silu(%a) %y = mul(%c, %b) output \"y\" = %y\n"
                          "output \"a\" = %a }",
       "product", 2, "row_product", 1e-2},
  };
  (void)state;
  CHECK(patterns);
}

/* Weights that are no blocks, where kernels begin early. */
#define TURNED(type, name, f32, out)                                                                        \
  "param %" name " : " type "[24, 64] %" f32 " = cast(%" name ") {to = \"f32\"} %" out " = transpose(%" f32 \
  ") {perm = [1, 0]}\n"
#define GATE "%c = silu(%a) %y = mul(%c, %b) output \"y\" = %y }"
static void plain_gates_are_one_with_what_they_gate(void **state) {
  static const pattern patterns[] = {
      {"graph \"b\" { input %x : f32[1, 64] param %s : f32[64]\n" TURNED("bf16", "g", "g1", "g2")
           TURNED("bf16", "u", "u1", "u2") "%n = rms_norm(%x, %s) %a = matmul(%n, %g2) %b = matmul(%n, %u2) " GATE,
       "row_product", 1, "rms_norm", 2e-2},
      {"graph \"f\" { input %x : f32[3, 40] param %g : f32[9, 40] param %u : f32[9, 40] %g2 = transpose(%g) {perm = "
       "[1, 0]} "
       "%u2 = transpose(%u) {perm = [1, 0]} %a = matmul(%x, %g2) %b = matmul(%x, %u2) " GATE,
       "row_product", 1, "product", 1e-2},
      /* across, which no packed form takes */
      {"graph \"a\" { input %x : f32[2, 40] param %g : f32[40, 10] param %u : f32[40, 10]\n"
       "%a = matmul(%x, %g) %b = matmul(%x, %u) " GATE,
       "row_product", 1, "product", 1e-2},
      /* weights of other widths, or that lie another way, stay apart */
      {"graph \"w\" { input %x : f32[1, 64]\n" TURNED("bf16", "g", "g1", "g2")
           TURNED("f16", "u", "u1", "u2") "%a = matmul(%x, %g2) %b = matmul(%x, %u2) " GATE,
       "product", 2, "row_product", 2e-2},
      {"graph \"l\" { input %x : f32[1, 24] param %g : f32[24, 24] param %u : f32[24, 24] %g2 = transpose(%g) {perm = "
       "[1, 0]} "
       "%a = matmul(%x, %g2) %b = matmul(%x, %u) " GATE,
       "product", 2, "row_product", 1e-2},
  };
  static const pattern apart = {
      "graph \"n\" { input %x : f32[2, 40] param %g : f32[40, 10] param %u : f32[40, 10]\n"
      "%a = matmul(%x, %g) %b = matmul(%x, %u) " GATE,
      "product", 2, "row_product", 1e-2};
  (void)state;
  for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++)
    pattern_check_profile(&patterns[i], "interp", "hopper");
  pattern_check_profile(&apart, "interp", "generic"); /* kernels do not begin early there */
}

#define CACHE(type)                                         \
  "graph \"c\" { input %k : " type                          \
  "[7, 16] input %r : f32[2, 16] const %p : i64[1] = [3]\n" \
  "input %c : f32[2, 4] input %s : f32[2, 4] "

/* Rows of a cache are turned where they are written, unless something else reads them, or they make blocks. */
static void rows_of_caches_are_turned_as_they_are_written(void **state) {
  static const pattern patterns[] = {
      {CACHE("f32") "%t = rope(%r, %c, %s) {heads = 2} %w = write_rows(%k, %t, %p) output \"w\" = %w }", "rope_rows", 1,
       "rope", 1e-6},
      {CACHE("f16") "%t = rope(%r, %c, %s) {heads = 2, interleaved = 1} %w = write_rows(%k, %t, %p) {ring = 1}\n"
                    "output \"w\" = %w }",
       "rope_rows", 1, "write_rows", 1e-3},
      {CACHE(
           "f32") "%t = rope(%r, %c, %s) {heads = 2} %w = write_rows(%k, %t, %p) output \"w\" = %w output \"t\" = %t }",
       "write_rows", 1, "rope_rows", 1e-6},
      {CACHE("f32") "%t = rope(%r, %c, %s) {heads = 2} %w = write_rows(%k, %t, %p) %e = relu(%t)\n"
                    "output \"w\" = %w output \"e\" = %e }",
       "write_rows", 1, "rope_rows", 1e-6},
      {CACHE("f32") "const %n : i64[2] = [3, 4] %t = rope(%r, %n) {heads = 2} %w = write_rows(%k, %t, %p)\n"
                    "%d = add(%c, %s) output \"w\" = %w output \"d\" = %d }",
       "write_rows", 1, "rope_rows", 1e-5},
  };
  (void)state;
  CHECK(patterns);
}

static void rows_survive_every_allocation_that_fails(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[1, 32] param %s : f32[32] param %g : q8_0[9, 32] param %u : q8_0[9, 32]\n"
      UNPACKED("g", "g1", "g2") UNPACKED("u", "u1", "u2")
      "%n = rms_norm(%x, %s) %a = matmul(%n, %g2) %b = matmul(%n, %u2) %c = silu(%a) %y = mul(%c, %b)\n"
      "output \"y\" = %y }";
  (void)state;
  test_fail_each_allocation(plan_on_loops, (void *)(uintptr_t)text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(norms_go_into_convolutions),
      cmocka_unit_test(other_norms_become_element_wise),
      cmocka_unit_test(weights_of_f16_are_not_folded),
      cmocka_unit_test(biases_of_convolutions),
      cmocka_unit_test(long_tails_are_one_epilogue),
      cmocka_unit_test(gradients_of_attention_become_products),
      cmocka_unit_test(every_allocation_may_fail),
      cmocka_unit_test(queries_keys_and_values_are_one_product),
      cmocka_unit_test(weights_stay_in_blocks),
      cmocka_unit_test(narrow_numbers),
      cmocka_unit_test(sums_of_f16_do_not_overflow),
      cmocka_unit_test(norms_go_into_products_of_few_rows),
      cmocka_unit_test(gates_are_one_with_what_they_gate),
      cmocka_unit_test(plain_gates_are_one_with_what_they_gate),
      cmocka_unit_test(rows_of_caches_are_turned_as_they_are_written),
      cmocka_unit_test(rows_survive_every_allocation_that_fails),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
