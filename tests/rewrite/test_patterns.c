/* Patterns of exported models that the CPU rewrites: attention, and int8 products. Each graph runs as it is, on the
 * reference kernels, and rewritten. */
#include "patterns.h"

/* ---- Attention ---- */

#define HEADS(x, length)                           \
  "%" x "4 = reshape(%" x ") {shape = [2, " length \
  ", 3, 8]}\n"                                     \
  "%" x "t = transpose(%" x "4) {perm = [0, 2, 1, 3]}\n"
#define QKV                                                                                                     \
  "graph \"a\" { input %q : f32[2, 5, 24] input %k : f32[2, 9, 24] input %v : f32[2, 9, 24]\n"                  \
  "input %m : f32[2, 1, 1, 9] input %r : f32[5, 9] const %s : f32[] = [0.5] const %d : f32[1] = [4.0]\n" HEADS( \
      "q", "5") HEADS("k", "9") HEADS("v", "9")
#define MERGE "%ot = transpose(%o) {perm = [0, 2, 1, 3]}\n%y = reshape(%ot) {shape = [2, 5, 24]}\noutput \"y\" = %y }"

static void attention(void **state) {
  static const pattern patterns[] = {
      {QKV "%kk = transpose(%kt) {perm = [0, 1, 3, 2]} %a = matmul(%qt, %kk) %w = softmax(%a) %o = matmul(%w, %vt)\n"
           "output \"o\" = %o }",
       "attention", 1, "softmax", 1e-5},
      {QKV "%kk = transpose(%k4) {perm = [0, 2, 3, 1]} %a = matmul(%qt, %kk) %b = div(%a, %d) %c = add(%b, %m)\n"
           "%w = softmax(%c) {axis = 3} %o = matmul(%w, %vt)\n" MERGE,
       "attention", 1, "matmul", 1e-5},
      {QKV "%kk = transpose(%kt) {perm = [0, 1, 3, 2]} %qs = mul(%qt, %s) %ks = mul(%s, %kk) %a = matmul(%qs, %ks)\n"
           "%c = add(%r, %a) %w = softmax(%c) %o = matmul(%w, %vt)\n" MERGE,
       "attention", 1, "softmax", 1e-5},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static void grouped_attention(void **state) {
  static const pattern repeated = {
      "graph \"g\" { input %q : f32[1, 4, 6, 8] input %k : f32[1, 2, 7, 8] input %v : f32[1, 2, 7, 8]\n"
      "%k5 = unsqueeze(%k) {axes = [2]} %ke = expand(%k5) {shape = [1, 2, 2, 7, 8]}\n"
      "%kr = reshape(%ke) {shape = [1, 4, 7, 8]} %kt = transpose(%kr) {perm = [0, 1, 3, 2]}\n"
      "%v5 = unsqueeze(%v) {axes = [2]} %ve = expand(%v5) {shape = [1, 2, 2, 7, 8]}\n"
      "%vr = reshape(%ve) {shape = [1, 4, 7, 8]} %a = matmul(%q, %kt) %w = softmax(%a) %o = matmul(%w, %vr)\n"
      "output \"o\" = %o }",
      "attention", 1, "expand", 1e-5};
  (void)state;
  pattern_check(&repeated);
}

/* ---- Rows that are always the same ---- */

/* Several are gathered. */
static void single_rows(void **state) {
  static const pattern patterns[] = {
      {"graph \"r\" { input %x : f32[3, 5, 4] const %i : i64[] = [1] const %j : i64[1] = [-1] %a = gather(%x, %i)\n"
       "%b = gather(%x, %j) %c = mul(%b, %a) %d = gather(%c, %j) {axis = 2} output \"y\" = %d }",
       "narrow", 3, "gather", 0},
      {"graph \"r\" { input %x : f32[3, 5, 4] const %j : i64[2] = [-1, 1] %b = gather(%x, %j) output \"y\" = %b }",
       "gather", 1, "narrow", 0},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* ---- Products of the same x ---- */

#define PROJECT(name, rows, sum)                                                                           \
  "param %w" name " : f32[48, 64] %m" name " = matmul(%x, %w" name ")\n" sum "%r" name " = reshape(%" name \
  ") {shape = [2, " rows ", 4, 16]} %t" name " = transpose(%r" name ") {perm = [0, 2, 1, 3]}\n"
#define SUM(name) "param %b" name " : f32[64] %" name " = add(%m" name ", %b" name ")\n"
#define BARE(name) "%" name " = reshape(%m" name ") {shape = [2, 5, 64]}\n"
#define ATTEND "%o = attention(%tq, %tk, %tv) output \"o\" = %o"
#define ROWS(rows) "graph \"a\" { input %x : f32[2, " rows ", 48]\n"

static void queries_keys_and_values(void **state) {
  static const pattern patterns[] = {
      {ROWS("5") PROJECT("q", "5", SUM("q")) PROJECT("k", "5", SUM("k")) PROJECT("v", "5", SUM("v")) ATTEND " }",
       "product", 1, NULL, 1e-4},
      {ROWS("5") PROJECT("q", "5", BARE("q")) PROJECT("k", "5", BARE("k")) PROJECT("v", "5", BARE("v")) ATTEND " }",
       "product", 1, NULL, 1e-4},
      /* one without a bias, one that is wanted as it is, too many rows */
      {ROWS("5") PROJECT("q", "5", SUM("q")) PROJECT("k", "5", BARE("k")) PROJECT("v", "5", SUM("v")) ATTEND " }",
       "product", 2, NULL, 1e-4},
      {ROWS("5") PROJECT("q", "5", SUM("q")) PROJECT("k", "5", SUM("k")) PROJECT("v", "5", SUM("v")) ATTEND
       " output \"k\" = %k }",
       "product", 2, NULL, 1e-4},
      {ROWS("20") PROJECT("q", "20", SUM("q")) PROJECT("k", "20", SUM("k")) PROJECT("v", "20", SUM("v")) ATTEND " }",
       "product", 3, NULL, 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Panels are packed where they stay. */
static void weights_beside_each_other(void **state) {
  const char *text =
      ROWS("5") PROJECT("q", "5", SUM("q")) PROJECT("k", "5", SUM("k")) PROJECT("v", "5", SUM("v")) ATTEND " }";
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, NULL, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  assert_int_equal(test_plan_info(plan).weights_size, 3 * (48 * 64 + 64) * 4);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* What others read stays, and so does what is no attention. */
static void no_attention(void **state) {
  static const pattern patterns[] = {
      {QKV "%kk = transpose(%kt) {perm = [0, 1, 3, 2]} %a = matmul(%qt, %kk) %w = softmax(%a) %o = matmul(%w, %vt)\n"
           "output \"o\" = %o output \"w\" = %w }",
       "attention", 0, NULL, 1e-5},
      {QKV "%kk = transpose(%kt) {perm = [0, 1, 3, 2]} %a = matmul(%qt, %kk) %b = mul(%a, %m) %w = softmax(%b)\n"
           "%o = matmul(%w, %vt) output \"o\" = %o }",
       "attention", 0, NULL, 1e-5},
      {QKV "%kk = transpose(%kt) {perm = [0, 1, 3, 2]} %a = matmul(%qt, %kk) %w = softmax(%a) {axis = 2}\n"
           "%o = matmul(%w, %vt) output \"o\" = %o }",
       "attention", 0, NULL, 1e-5},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* ---- int8 products ---- */

#define NUMBERS                                                                                                        \
  "const %xs : f32[] = [0.02] const %xz : u8[] = [120] const %ws : f32[] = [0.01] const %wz : i8[] = [0]\n"            \
  "const %ys : f32[] = [0.25] const %yz : u8[] = [100] const %wn : f32[6, 1, 1, 1] = [0.01, 0.02, 0.005, 0.01, 0.03, " \
  "0.01]\n"
#define IMAGE                                                                                      \
  "graph \"c\" { input %x : f32[2, 4, 7, 6] param %w : i8[6, 4, 3, 3] param %b : f32[6]\n" NUMBERS \
  "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz)\n"
#define LAST "%yq = quantize(%r, %ys, %yz) %y = dequantize(%yq, %ys, %yz) output \"y\" = %y }"

static void convolutions_of_bytes(void **state) {
  static const pattern patterns[] = {
      {IMAGE "%wf = dequantize(%w, %ws, %wz) %c = conv(%f, %wf, %b) {pads = [1, 1, 1, 1]} %r = relu(%c)\n" LAST,
       "qconv_last", 1, "conv", 0.2501},
      {IMAGE "%wf = dequantize(%w, %wn) %c = conv(%f, %wf) {strides = [2, 1]} %r = clamp(%c) {min = -2.0, max = 3.0}\n"
             "output \"r\" = %r }",
       "qconv_last", 1, "conv", 1e-4},
      {IMAGE "%wf = dequantize(%w, %ws) %c = conv(%f, %wf) {pads = [1, 1, 1, 1]} %r = add(%c, %b)\n" /* no bias */
             "output \"r\" = %r }",
       "qconv_last", 1, "conv", 1e-4},
      {"graph \"d\" { input %x : f32[1, 6, 7, 6] param %w : i8[6, 1, 3, 3] param %b : f32[6]\n" NUMBERS
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %wn)\n"
       "%r = conv(%f, %wf, %b) {group = 6, pads = [1, 1, 1, 1]}\n" LAST,
       "qdepthwise", 1, "conv", 0.2501},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* A bias of integers whose scale is not that of the sums is no whole number of them: it must not become one. */
static void biases_with_scales_of_their_own(void **state) {
  static const pattern patterns[] = {
      {IMAGE "const %bi : i32[6] = [49, 30, -7, 100, 3, -60] const %bs : f32[] = [0.00001]\n"
             "%wf = dequantize(%w, %ws) %bf = dequantize(%bi, %bs) %c = conv(%f, %wf, %bf) output \"c\" = %c }",
       "qconv_last", 1, "conv", 1e-5},
      {IMAGE "const %bi : i32[6] = [49, 30, -7, 100, 3, -60] const %bs : f32[] = [100000.0]\n"
             "%wf = dequantize(%w, %ws) %bf = dequantize(%bi, %bs) %c = conv(%f, %wf, %bf) output \"c\" = %c }",
       "qconv_last", 1, "conv", 1},
      {IMAGE "const %bi : i32[6] = [49, 30, -7, 100, 3, -60] const %bs : f32[6] = [0.0002, 0.0004, 0.0001, 0.0002, "
             "0.0006, 0.0003]\n" /* all but the last */
             "%wf = dequantize(%w, %wn) %bf = dequantize(%bi, %bs) %c = conv(%f, %wf, %bf) output \"c\" = %c }",
       "qconv_last", 1, "conv", 1e-5},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Sums of integers as ONNX's QLinearConv is imported, with a bias of integers. */
static void convolutions_of_integers(void **state) {
  static const pattern integers = {
      "graph \"i\" { input %q : u8[1, 4, 7, 6] param %w : i8[6, 4, 3, 3] const %z : i32[] = [120]\n"
      "const %b : i32[6] = [100, -2000, 30, 4, 5000, 6] const %n : i32[6, 1, 1, 1] = [0, 3, -2, 5, 0, 1]\n"
      "const %s : f32[6, 1, 1] = [0.01, 0.02, 0.005, 0.01, 0.03, 0.01] const %o : f32[] = [1.0] const %yz : u8[] = "
      "[9]\n"
      "%qi = cast(%q) {to = \"i32\"} %x = sub(%qi, %z) %wi = cast(%w) {to = \"i32\"} %v = sub(%wi, %n)\n"
      "%c = conv(%x, %v, %b) {pads = [1, 1, 1, 1]} %f = cast(%c) {to = \"f32\"} %m = mul(%f, %s)\n"
      "%y = quantize(%m, %o, %yz) output \"y\" = %y }",
      "qconv_last", 1, "conv", 1};
  (void)state;
  pattern_check(&integers);
}

/* Sums of integers that nothing known comes after stay sums; zero points may be one per column, x may be as wide as
 * only a run knows, and come from wherever it likes. */
static void sums_of_integers(void **state) {
  static const pattern patterns[] = {
      {"graph \"i\" { input %q : u8[1, 4, 7, 6] param %w : u8[6, 4, 3, 3] input %z : u8[]\n"
       "const %n : i32[6, 1, 1, 1] = [120, 3, 2, 5, 200, 1] %zi = cast(%z) {to = \"i32\"}\n"
       "%qi = cast(%q) {to = \"i32\"} %x = sub(%qi, %zi) %wi = cast(%w) {to = \"i32\"} %v = sub(%wi, %n)\n"
       "%c = conv(%x, %v) {pads = [1, 1, 1, 1]} output \"c\" = %c }",
       "qconv_last", 1, "conv", 0},
      {"graph \"i\" { input %q : i8[1, 6, 7, 6] param %w : i8[6, 1, 3, 3] input %z : i8[]\n"
       "%zi = cast(%z) {to = \"i32\"} %qi = cast(%q) {to = \"i32\"} %x = sub(%qi, %zi) %v = cast(%w) {to = \"i32\"}\n"
       "%c = conv(%x, %v) {group = 6, strides = [2, 2]} %f = cast(%c) {to = \"f32\"} output \"f\" = %f }",
       "qdepthwise", 1, "conv", 0},
      {"graph \"m\" { input %q : u8[3, 1, 10] param %w : u8[10, 7] param %b : i32[7] const %z : u8[] = [100]\n"
       "%qi = cast(%q) {to = \"i32\"} %zi = cast(%z) {to = \"i32\"} %x = sub(%qi, %zi) %v = cast(%w) {to = \"i32\"}\n"
       "%m = matmul(%x, %v) %r = reshape(%m) {shape = [3, 7]} %s = add(%r, %b) output \"s\" = %s }",
       "qproduct", 1, "matmul", 0},
      {"graph \"m\" { input %x : f32[40, 10] input %k : f32[40] param %w : u8[10, 7] const %ws : f32[] = [0.01]\n"
       "%nz = non_zero(%k) %at = squeeze(%nz) {axes = [0]} %g = gather(%x, %at) {axis = 0}\n"
       "const %s : f32[] = [0.02] const %z : u8[] = [100] %q = quantize(%g, %s, %z)\n"
       "%qi = cast(%q) {to = \"i32\"} %zi = cast(%z) {to = \"i32\"} %xi = sub(%qi, %zi) %v = cast(%w) {to = \"i32\"}\n"
       "%m = matmul(%xi, %v) %f = cast(%m) {to = \"f32\"} %y = mul(%f, %ws) output \"y\" = %y }",
       "qproduct", 1, "matmul", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Two convolutions and a sum: all of it in bytes, channels last; the second sees bytes that may be one off. */
static void a_residual(void **state) {
  static const pattern residual = {
      "graph \"s\" { input %x : f32[1, 4, 7, 6] param %w : i8[6, 4, 3, 3] param %v : i8[6, 6, 1, 1]\n" NUMBERS
      "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %ws, %wz)\n"
      "%c = conv(%f, %wf) %cq = quantize(%c, %ys, %yz) %cf = dequantize(%cq, %ys, %yz)\n"
      "%vf = dequantize(%v, %ws) %d = conv(%cf, %vf) %dq = quantize(%d, %ys, %yz) %df = dequantize(%dq, %ys, %yz)\n"
      "%r = add(%cf, %df)\n" LAST,
      "qconv_last", 2, "add", 1.01};
  (void)state;
  pattern_check(&residual);
}

/* A pooling between two convolutions of bytes pools bytes with their channels last, written either way; with other
 * numbers behind it, it pools numbers, whose quantize follows their layout. */
static void pools_of_bytes(void **state) {
#define POOLED(pool)                                                                                              \
  "graph \"p\" { input %x : f32[1, 4, 7, 6] param %w : i8[6, 4, 3, 3] param %v : i8[5, 6, 3, 3]\n" NUMBERS        \
  "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %ws) %c = conv(%f, %wf)\n" pool \
  "%vf = dequantize(%v, %ws) %d = conv(%pf, %vf) {pads = [1, 1, 1, 1]} output \"d\" = %d }"
#define POOL "max_pool(%a) {kernel = [3, 2], strides = [2, 2], pads = [1, 0, 1, 1]}\n"
  static const pattern patterns[] = {
      {POOLED("%a = quantize(%c, %ys, %yz) %pq = " POOL "%pf = dequantize(%pq, %ys, %yz)\n"), "transpose", 4,
       "quantize_range", 0.06},
      {POOLED("%cq = quantize(%c, %ys, %yz) %a = dequantize(%cq, %ys, %yz) %p = " POOL
              "%pq = quantize(%p, %ys, %yz) %pf = dequantize(%pq, %ys, %yz)\n"),
       "transpose", 4, "dequantize", 0.06},
      {POOLED("%cq = quantize(%c, %ys, %yz) %a = dequantize(%cq, %ys, %yz) %p = " POOL
              "%pq = quantize(%p, %xs, %xz) %pf = dequantize(%pq, %xs, %xz)\n"),
       "dequantize", 1, "conv", 0.06},
      /* bytes that are dequantised and quantised with the same numbers */
      {"graph \"s\" { input %x : f32[2, 3, 4] param %w : i8[12, 5]\n" NUMBERS
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %r = reshape(%f) {shape = [2, 12]}\n"
       "%rq = quantize(%r, %xs, %xz) %rf = dequantize(%rq, %xs, %xz) %wf = dequantize(%w, %ws)\n"
       "%m = matmul(%rf, %wf) output \"m\" = %m }",
       "quantize", 1, "dequantize", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static void products_of_bytes(void **state) {
  static const pattern patterns[] = {
      {"graph \"p\" { input %x : f32[3, 10] param %w : i8[7, 10] param %b : f32[7]\n" NUMBERS
       "const %wr : f32[7, 1] = [0.01, 0.02, 0.005, 0.01, 0.03, 0.01, 0.04]\n"
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %wr)\n"
       "%wt = transpose(%wf) %m = matmul(%f, %wt) %r = add(%m, %b)\n" LAST,
       "qproduct", 1, "matmul", 0.2501},
      {"graph \"m\" { input %x : f32[2, 3, 10] param %w : u8[10, 7] param %b : f32[7]\n" NUMBERS
       "const %n : i32[] = [117] %q = quantize(%x, %xs, %xz) %qi = cast(%q) {to = \"i32\"}\n"
       "%zi = cast(%xz) {to = \"i32\"} %xi = sub(%qi, %zi) %wi = cast(%w) {to = \"i32\"} %wc = sub(%wi, %n)\n"
       "%m = matmul(%xi, %wc) %c = cast(%m) {to = \"f32\"} %s = mul(%c, %ws) %r = add(%b, %s) output \"r\" = %r }",
       "qproduct", 1, "matmul", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Element-wise nodes after int8 products become their epilogues, as after other products. */
static void tails_of_bytes(void **state) {
  static const pattern patterns[] = {
      {"graph \"p\" { input %x : f32[70, 12] input %r : f32[70, 9] param %w : i8[12, 9] param %b : f32[1, 9]\n" NUMBERS
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %ws)\n"
       "%m = matmul(%f, %wf) %s = add(%m, %b) %g = gelu(%s) %t = add(%g, %r) output \"t\" = %t }",
       "qproduct", 1, "gelu", 1e-4},
      {"graph \"p\" { input %x : f32[7, 12] input %r : f32[9, 7] param %w : i8[12, 9]\n" NUMBERS /* strided */
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %ws)\n"
       "%m = matmul(%f, %wf) %u = transpose(%r) %t = sub(%m, %u) output \"t\" = %t }",
       "qproduct", 1, "sub", 1e-4},
      {IMAGE "input %r : f32[2, 6, 5, 4] %wf = dequantize(%w, %wn) %c = conv(%f, %wf, %b)\n"
             "%s = sigmoid(%c) %m = mul(%c, %s) %t = add(%m, %r) output \"t\" = %t }",
       "qconv_last", 1, "sigmoid", 1e-4},
      {IMAGE "%wf = dequantize(%w, %ws) %c = conv(%f, %wf) {pads = [1, 1, 1, 1]} %r = add(%c, %b) %t = tanh(%r)\n"
             "output \"t\" = %t }", /* along the lines, so no bias */
       "qconv_last", 1, "add", 1e-4},
      {"graph \"d\" { input %x : f32[1, 6, 7, 6] param %w : i8[6, 1, 3, 3]\n" NUMBERS
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %wn)\n"
       "%c = conv(%f, %wf) {group = 6, pads = [1, 1, 1, 1]} %h = silu(%c) output \"h\" = %h }",
       "qdepthwise", 1, "silu", 1e-4},
      {"graph \"o\" { input %x : f32[7, 12] param %w : i8[12, 9]\n" NUMBERS /* the product is wanted too */
       "%q = quantize(%x, %xs, %xz) %f = dequantize(%q, %xs, %xz) %wf = dequantize(%w, %ws)\n"
       "%m = matmul(%f, %wf) %t = tanh(%m) output \"t\" = %t output \"m\" = %m }",
       "tanh", 1, NULL, 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static void ranges(void **state) {
  static const pattern range = {
      "graph \"r\" { input %x : f32[4, 9] const %o : f32[] = [0.0] const %i : f32[] = [1.0] const %n : f32[] = "
      "[255.0]\n"
      "const %b : u8[] = [0] %lx = reduce_min(%x) {keepdims = 0} %l = min(%lx, %o) %hx = reduce_max(%x) {keepdims = "
      "0}\n"
      "%h = max(%hx, %o) %d = sub(%h, %l) %e = eq(%d, %o) %f = div(%d, %n) %s = where(%e, %i, %f) %g = neg(%l)\n"
      "%z = quantize(%g, %s, %b) %q = quantize(%x, %s, %z) output \"q\" = %q output \"s\" = %s }",
      "quantize_range", 1, "reduce_min", 0};
  (void)state;
  pattern_check(&range);
}

/* ---- Memory that runs out ---- */

static void fails_each_allocation(void **state) {
  static char attention_text[] = QKV
      "%kk = transpose(%k4) {perm = [0, 2, 3, 1]} %a = matmul(%qt, %kk) %w = softmax(%a) %o = matmul(%w, %vt)\n" MERGE;
  static char quant_text[] =
      IMAGE "%wf = dequantize(%w, %ws, %wz) %c = conv(%f, %wf, %b) {pads = [1, 1, 1, 1]} %r = relu(%c)\n" LAST;
  (void)state;
  assert_true(test_fail_each_allocation(pattern_plan, attention_text) > 0);
  assert_true(test_fail_each_allocation(pattern_plan, quant_text) > 0);
  static char beside_text[] =
      ROWS("5") PROJECT("q", "5", SUM("q")) PROJECT("k", "5", SUM("k")) PROJECT("v", "5", SUM("v")) ATTEND " }";
  assert_true(test_fail_each_allocation(pattern_plan, beside_text) > 0);
}

/* ---- Weights in blocks ---- */

#define LINEAR(y, x, w, type, n, k)                                                         \
  "param %" w " : " type "[" n ", " k "] %u" w " = unpack(%" w ") %t" w " = transpose(%u" w \
  ") {perm = [1, 0]}\n"                                                                     \
  "%" y " = matmul(%" x ", %t" w ")\n"

static void weights_in_blocks(void **state) {
  static const pattern patterns[] = {
      {"graph \"l\" { input %x : f32[5, 256]\n" LINEAR("y", "x", "w", "q4_k", "40", "256") "output \"y\" = %y }",
       "product", 1, "unpack", 0.4},
      {"graph \"l\" { input %x : f32[1, 256]\n" LINEAR("y", "x", "w", "q6_k", "40", "256") "output \"y\" = %y }",
       "product", 1, "transpose", 0.4},
      /* a table that is looked up and multiplied with is there once */
      {"graph \"t\" { const %i : i32[3] = [4, 0, -1] param %w : q8_0[40, 64] %u = unpack(%w)\n"
       "%x = embedding(%u, %i) %t = transpose(%u) {perm = [1, 0]} %y = matmul(%x, %t) output \"y\" = %y }",
       "unpack_rows", 1, "unpack", 0.2},
      {"graph \"g\" { const %i : i32[3] = [4, 0, -1] param %w : iq2_xxs[40, 256] %u = unpack(%w)\n"
       "%x = gather(%u, %i) {axis = 0} output \"x\" = %x }",
       "unpack_rows", 1, "unpack", 0},
      /* a bias, an activation and a residual are the product's */
      {"graph \"e\" { input %x : f32[4, 64] param %b : f32[64]\n" LINEAR(
           "m", "x", "w", "q4_0", "64", "64") "%s = add(%m, %b) %r = relu(%s) %y = add(%r, %x) output \"y\" = %y }",
       "product", 1, "relu", 0.4},
      /* two products of the same x stay two */
      {"graph \"q\" { input %x : f32[4, 64]\n" LINEAR("a", "x", "v", "q4_0", "64", "64")
           LINEAR("b", "x", "w", "q4_0", "64", "64") "output \"a\" = %a output \"b\" = %b }",
       "product", 2, "unpack", 0.4},
      /* what reads the weight itself has it as f32 */
      {"graph \"p\" { input %x : f32[4, 64]\n" LINEAR("m", "x", "w", "q5_0", "64",
                                                      "64") "%y = add(%uw, %uw) output \"y\" = %y output \"m\" = %m }",
       "unpack", 1, NULL, 0.4},
  };
  (void)state;
  CHECK_ALL(patterns);
  static char text[] =
      "graph \"l\" { input %x : f32[5, 256]\n" LINEAR("y", "x", "w", "q4_k", "40", "256") "output \"y\" = %y }";
  assert_true(test_fail_each_allocation(pattern_plan, text) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(attention),
      cmocka_unit_test(grouped_attention),
      cmocka_unit_test(no_attention),
      cmocka_unit_test(single_rows),
      cmocka_unit_test(queries_keys_and_values),
      cmocka_unit_test(weights_beside_each_other),
      cmocka_unit_test(convolutions_of_bytes),
      cmocka_unit_test(biases_with_scales_of_their_own),
      cmocka_unit_test(convolutions_of_integers),
      cmocka_unit_test(sums_of_integers),
      cmocka_unit_test(a_residual),
      cmocka_unit_test(pools_of_bytes),
      cmocka_unit_test(products_of_bytes),
      cmocka_unit_test(tails_of_bytes),
      cmocka_unit_test(ranges),
      cmocka_unit_test(fails_each_allocation),
      cmocka_unit_test(weights_in_blocks),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
