/* What the CPU makes of plain graphs: channels last, packed weights, epilogues, chains. */
#include "patterns.h"
#include "plan/plan.h"

#define IMAGE PATTERN_IMAGE
#define NORM PATTERN_NORM
#define FOUR PATTERN_FOUR

static void convolutions(void **state) {
  static const pattern patterns[] = {
      {IMAGE("20") "param %w : f32[24, 20, 1, 1] param %b : f32[24] %c = conv(%x, %w, %b) output \"c\" = %c }",
       "conv_last", 1, "conv", 1e-4},
      {IMAGE("6") "param %w : f32[5, 6, 3, 5] %c = conv(%x, %w) {pads = [1, 2, 1, 2], strides = [2, 1]}\n"
                  "%r = relu(%c) output \"r\" = %r }",
       "conv_last", 1, "relu", 1e-4},
      {IMAGE("8") "param %w : f32[8, 1, 3, 3] %c = conv(%x, %w) {pads = [1, 1, 1, 1], group = 8} output \"c\" = %c }",
       "depthwise", 1, "conv", 1e-4},
      {IMAGE("8") "param %w : f32[24, 1, 3, 3] param %b : f32[24] %c = conv(%x, %w, %b) {pads = [1, 1, 1, 1],\n"
                  "group = 8} %r = relu(%c) output \"r\" = %r }",
       "depthwise", 1, "relu", 1e-4},
      {IMAGE("8") "param %w : f32[12, 4, 3, 3] %c = conv(%x, %w) {group = 2} output \"c\" = %c }", "conv_last", 1,
       "conv", 1e-4},
      {IMAGE("64") "param %w : f32[64, 64, 3, 3] %c = conv(%x, %w) {pads = [1, 1, 1, 1]} output \"c\" = %c }",
       "conv_winograd", 1, "conv", 2e-3},
      {"graph \"l\" { input %x : f32[2, 3, 50] param %w : f32[7, 3, 5] %c = conv(%x, %w) {dilations = [2]}\n"
       "output \"c\" = %c }",
       "conv_last", 1, "conv", 1e-4},
      {IMAGE("6") "param %w : f32[6, 4, 2, 2] param %b : f32[4] %c = conv_transpose(%x, %w, %b) {strides = [2, 2]}\n"
                  "%s = sigmoid(%c) output \"s\" = %s }",
       "conv_transpose_last", 1, "conv_transpose", 1e-4},
      {IMAGE("3") "input %w : f32[4, 3, 3, 3] %c = conv(%x, %w) output \"c\" = %c }", "conv_last", 1, "conv", 1e-4},
      /* one that has an epilogue already stays as it is */
      {IMAGE("6") "param %w : f32[5, 6, 3, 3] %c = conv(%x, %w) {code = [22, 0, 0, 0]} output \"c\" = %c }", "conv", 1,
       "conv_last", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* What is made channel by channel: transposed, with strides and pads of every kind, and the gradients of weights. */
static void channel_by_channel(void **state) {
#define SPREAD(kernel, attrs) \
  IMAGE("8") "param %w : f32[8, 1, " kernel "] %c = conv_transpose(%x, %w) {group = 8" attrs "} output \"c\" = %c }"
  static const pattern patterns[] = {
      {SPREAD("3, 3", ", pads = [1, 1, 1, 1]"), "depthwise", 1, "conv_transpose", 1e-4},
      {SPREAD("4, 4", ", strides = [2, 2], pads = [1, 1, 1, 1]"), "conv_transpose_last", 1, "depthwise", 1e-4},
      {SPREAD("3, 3", ", strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 0]"), "conv_transpose_last", 1,
       "depthwise", 1e-4},
      {SPREAD("2, 1", ", strides = [3, 1]"), "conv_transpose_last", 1, "depthwise", 1e-4},
      /* holes between the taps, and more of them than the kernel's tables have */
      {SPREAD("2, 3", ", strides = [1, 2], dilations = [2, 1], pads = [3, 0, 1, 2]"), "depthwise", 1, "conv_transpose",
       1e-4},
      {SPREAD("19, 17", ", strides = [2, 2], pads = [9, 8, 9, 8]"), "depthwise", 1, "conv_transpose", 1e-3},
      {"graph \"s\" { input %x : f32[2, 5, 11] param %w : f32[5, 1, 4] param %b : f32[5]\n"
       "%c = conv_transpose(%x, %w, %b) {group = 5, strides = [3], pads = [2, 1]} %r = relu(%c) output \"r\" = %r }",
       "conv_transpose_last", 1, "relu", 1e-4},
      {IMAGE("4") "param %w : f32[4, 1, 3, 3] " NORM("4") FOUR
       "%c = conv_transpose(%x, %w) {group = 4, strides = [2, 2]}\n"
       "%n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "conv_transpose_last", 1, "batch_norm", 1e-4},
      /* several outputs of a group stay as they are */
      {IMAGE("8") "param %w : f32[8, 2, 3, 3] %c = conv_transpose(%x, %w) {group = 8} output \"c\" = %c }",
       "conv_transpose", 1, "depthwise", 1e-4},
      {"graph \"g\" { input %x : f32[2, 6, 9, 8] input %d : f32[2, 6, 5, 4] %w = conv_weight_grad(%x, %d) {group = 6,\n"
       "kernel = [3, 3], strides = [2, 2], pads = [1, 1, 1, 1]} output \"w\" = %w }",
       "conv_weight_grad", 1, "conv", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Transposed convolutions with strides of 1 are convolutions of the turned kernel, unless most of what they would see
 * is padding. */
static void transposed_with_strides_of_one(void **state) {
#define AROUND(kernel, attrs)                            \
  IMAGE("8")                                             \
  "param %w : f32[8, 5, " kernel                         \
  "] param %b : f32[5] %c = conv_transpose(%x, %w, %b) " \
  "{pads = [1, 1, 1, 1]" attrs "} %r = relu(%c) output \"r\" = %r }"
  static const pattern patterns[] = {
      {AROUND("3, 3", ""), "conv_last", 1, "conv_transpose_last", 1e-4},
      {AROUND("2, 4", ""), "conv_last", 1, "conv_transpose_last", 1e-4},
      {AROUND("3, 2", ", dilations = [1, 2]"), "conv_last", 1, "conv_transpose_last", 1e-4},
      {IMAGE("8") "param %w : f32[8, 1, 3, 3] %c = conv_transpose(%x, %w) {pads = [0, 1, 1, 0]} output \"c\" = %c }",
       "conv_last", 1, "conv_transpose_last", 1e-4},
      {IMAGE("64") "param %w : f32[64, 64, 3, 3] param %b : f32[64] %c = conv_transpose(%x, %w, %b) {pads = [1, 1, 1, "
                   "1]}\n"
                   "output \"c\" = %c }",
       "conv_winograd", 1, "conv_transpose_last", 2e-3},
      {IMAGE("8") "param %w : f32[8, 4, 3, 3] " NORM("4") FOUR
       "%c = conv_transpose(%x, %w) {pads = [1, 1, 1, 1]}\n"
       "%n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "conv_last", 1, "batch_norm", 1e-4},
      /* pads that cut the result, strides, and mostly padding, or much where Winograd does not make up for it */
      {IMAGE("8") "param %w : f32[8, 40, 5, 5] %c = conv_transpose(%x, %w) {pads = [1, 1, 1, 1]} output \"c\" = %c }",
       "conv_transpose_last", 1, "conv_last", 1e-4},
      {IMAGE("64") "param %w : f32[64, 64, 3, 3] %c = conv_transpose(%x, %w) output \"c\" = %c }", "conv_winograd", 1,
       "conv_transpose_last", 2e-3},
      {AROUND("1, 1", ""), "conv_transpose_last", 1, "conv_last", 1e-4},
      {AROUND("3, 3", ", strides = [1, 2]"), "conv_transpose_last", 1, "conv_last", 1e-4},
      {"graph \"g\" { input %x : f32[1, 6, 2, 2] param %w : f32[6, 5, 4, 4] %c = conv_transpose(%x, %w)\n"
       "output \"c\" = %c }",
       "conv_transpose_last", 1, "conv_last", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* All pixels of a cell, a stride by a stride, are columns of one product where few outputs would not fill a panel: a
 * kernel that is no multiple of the stride gets zeros for that, which show in the prelude. */
static void transposed_with_few_outputs(void **state) {
#define JOINED(outputs, kernel, attrs)                                                                             \
  IMAGE("8")                                                                                                       \
  "param %w : f32[8, " outputs ", " kernel "] param %b : f32[" outputs "] %c = conv_transpose(%x, %w, %b) {" attrs \
  "} %s = sigmoid(%c) output \"s\" = %s }"
  static const pattern patterns[] = {
      {JOINED("1", "3, 3", "strides = [2, 2], pads = [1, 1, 1, 1], output_padding = [1, 1]"), "pad", 1, "sigmoid",
       1e-4},
      {JOINED("1", "5, 3", "strides = [2, 2], pads = [2, 1, 1, 0]"), "pad", 1, "sigmoid", 1e-4},
      {JOINED("3", "5, 3", "strides = [2, 2], pads = [2, 1, 1, 0]"), "conv_transpose_last", 1, "sigmoid", 1e-4},
      {JOINED("2", "3, 4", "strides = [2, 4]"), "pad", 1, "sigmoid", 1e-4},
      {JOINED("1", "4, 4", "strides = [2, 2], pads = [1, 1, 1, 1]"), "conv_transpose_last", 1, "pad", 1e-4},
      {"graph \"l\" { input %x : f32[2, 6, 11] param %w : f32[6, 2, 7] %c = conv_transpose(%x, %w) {strides = [3],\n"
       "pads = [2, 1]} output \"c\" = %c }",
       "pad", 1, "conv_transpose", 1e-4},
      {IMAGE("8") "param %w : f32[8, 4, 3, 3] " NORM("4") FOUR
       "param %b : f32[4]\n"
       "%c = conv_transpose(%x, %w, %b) {strides = [2, 2]}\n"
       "%n = batch_norm(%c, %ns, %nb, %nm, %nv) %r = relu(%n) output \"r\" = %r }",
       "conv_transpose_last", 1, "batch_norm", 1e-4},
      /* enough outputs, holes between the taps, and weights that only a run has */
      {JOINED("64", "3, 3", "strides = [2, 2]"), "conv_transpose_last", 1, "pad", 1e-4},
      {JOINED("1", "3, 3", "strides = [2, 2], dilations = [2, 1]"), "conv_transpose_last", 1, "pad", 1e-4},
      {IMAGE("8") "input %w : f32[8, 1, 3, 3] %c = conv_transpose(%x, %w) {strides = [2, 2]} output \"c\" = %c }",
       "conv_transpose_last", 1, "pad", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* Neighbours of a line fill the vectors of a convolution with few outputs. */
static void few_outputs(void **state) {
  static const pattern patterns[] = {
      {IMAGE("5") "param %w : f32[1, 5, 3, 5] param %b : f32[1] %c = conv(%x, %w, %b) {pads = [1, 2, 1, 2]}\n"
                  "output \"c\" = %c }",
       "conv_last", 1, "conv", 1e-4},
      {"graph \"f\" { input %x : f32[1, 1, 96] param %w : f32[1, 1, 9] %c = conv(%x, %w) {strides = [2], pads = [4, 3]}"
       " output \"c\" = %c }",
       "conv_last", 1, "depthwise", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

#define LATE                                                                     \
  "param %ns : f32[4] param %nb : f32[4] param %nm : f32[4] param %nr : f32[4] " \
  "const %one : f32[1] = [1.0]\n"
#define LATE_NORM "%nq = mul(%nr, %nr) %nv = add(%nq, %one) %n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }"

static void batch_norms(void **state) {
  static const pattern patterns[] = {
      {IMAGE("4") NORM("4") FOUR
       "param %w : f32[4, 4, 3, 3] param %b : f32[4]\n"
       "%c = conv(%x, %w, %b) {strides = [2, 2]} %n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "conv_last", 1, "batch_norm", 1e-4},
      {IMAGE("4") NORM("4") FOUR
       "param %w : f32[4, 1, 3, 3]\n"
       "%c = conv(%x, %w) {group = 4} %n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n }",
       "depthwise", 1, "batch_norm", 1e-4},
      /* the result before the norm is wanted too */
      {IMAGE("4") NORM("4") FOUR "param %w : f32[4, 4, 1, 1]\n"
                                 "%c = conv(%x, %w) %n = batch_norm(%c, %ns, %nb, %nm, %nv) output \"n\" = %n\n"
                                 "output \"c\" = %c }",
       "chain", 3, "batch_norm", 1e-4},
      /* what the norm reads is computed after the convolution */
      {IMAGE("4") LATE "param %w : f32[4, 4, 3, 3] %c = conv(%x, %w) " LATE_NORM, "conv_last", 1, "batch_norm", 1e-4},
      {IMAGE("4") LATE "param %w : f32[4, 1, 3, 3] %c = conv(%x, %w) {group = 4} " LATE_NORM, "depthwise", 1,
       "batch_norm", 1e-4},
      {IMAGE("6") LATE "param %w : f32[6, 4, 2, 2] %c = conv_transpose(%x, %w) {strides = [2, 2]} " LATE_NORM,
       "conv_transpose_last", 1, "batch_norm", 1e-4},
      /* all of that in the prelude */
      {IMAGE("4") LATE "param %y : f32[1, 4, 12, 16] param %w : f32[4, 4, 3, 3] %c = conv(%y, %w) " LATE_NORM,
       "conv_last", 1, "batch_norm", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

#define CONV IMAGE("16") "param %w : f32[16, 16, 1, 1] %c = conv(%x, %w)\n"

/* Nodes after a convolution follow its layout; what needs the plain one gets it. */
static void layouts(void **state) {
  static const pattern patterns[] = {
      {CONV "%p = max_pool(%c) {kernel = [2, 2], strides = [2, 2]} output \"p\" = %p }", "transpose", 3, "conv", 1e-4},
      {CONV "%p = avg_pool(%c) {kernel = [3, 3], pads = [1, 1, 1, 1]} %q = reduce_mean(%p) {axes = [2, 3]}\n"
            "%f = flatten(%q) output \"f\" = %f }",
       "reduce_mean", 1, "flatten", 1e-4},
      {CONV "%q = reduce_max(%c) {axes = [2, 3], keepdims = 0} output \"q\" = %q }", "reduce_max", 1, "conv", 1e-4},
      {CONV "%d = concat(%c, %x, %c) {axis = 1} output \"d\" = %d }", "concat", 1, "conv", 1e-4},
      {CONV "%a, %b = split(%c) {axis = 1} %s = sub(%a, %b) output \"s\" = %s }", "narrow", 2, "split", 1e-4},
      {CONV "%n = narrow(%c) {axes = [3, 1], starts = [2, 3], ends = [9, 14]} output \"n\" = %n }", "narrow", 1, "conv",
       1e-4},
      {CONV "%d = pad(%c) {pads = [0, 1, 2, 3, 0, 0, 1, 4]} output \"d\" = %d }", "pad", 1, "conv", 1e-4},
      {CONV "%d = softmax(%c) {axis = 1} output \"d\" = %d }", "softmax", 1, "conv", 1e-4},
      {CONV "%t = transpose(%c) {perm = [0, 2, 3, 1]} %r = reshape(%t) {shape = [1, 192, 16]} output \"r\" = %r }",
       "reshape", 1, "conv", 1e-4},
      {CONV "%r = reshape(%c) {shape = [16, 192]} output \"r\" = %r }", "reshape", 1, "conv", 1e-4},
      {CONV "input %g : f32[16, 1, 1] input %h : f32[12, 16] %a = mul(%c, %g) %b = add(%a, %h) output \"b\" = %b }",
       "conv_last", 1, "mul", 1e-4},
      {CONV "const %e : f32[2] = [2.0, 3.0] %s = resize(%c, %e) {axes = [2, 3]} output \"s\" = %s }", "resize", 1,
       "conv", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static void epilogues(void **state) {
  static const pattern patterns[] = {
      {CONV "%s = sigmoid(%c) %m = mul(%c, %s) output \"m\" = %m }", "conv_last", 1, "mul", 1e-4},
      {CONV "%r = add(%c, %x) %s = relu(%r) output \"s\" = %s }", "conv_last", 1, "add", 1e-4},
      {CONV "%r = add(%x, %c) output \"r\" = %r output \"c\" = %c }", "add", 1, NULL, 1e-4},
      {CONV
       "const %k : f32[1] = [3.0] const %l : f32[] = [6.0] %a = add(%c, %k) %b = clamp(%a) {min = 0.0, max = 6.0}\n"
       "%d = mul(%c, %b) %e = div(%d, %l) output \"e\" = %e }",
       "conv_last", 1, "clamp", 1e-4},
      {"graph \"p\" { input %x : f32[3, 5, 24] input %r : f32[3, 5, 40] param %w : f32[24, 40] param %b : f32[40]\n"
       "%m = matmul(%x, %w) %s = add(%m, %b) %g = gelu(%s) %t = add(%g, %r) output \"t\" = %t }",
       "product", 1, "gelu", 1e-4},
      {"graph \"p\" { input %x : f32[7, 24] input %r : f32[7, 40] param %w : f32[40, 24] param %b : f32[1, 40]\n"
       "%u = transpose(%w) {perm = [1, 0]} %m = matmul(%x, %u) %s = add(%b, %m) %t = add(%r, %s) output \"t\" = %t }",
       "product", 1, "add", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

static void chains(void **state) {
  static const pattern patterns[] = {
      {"graph \"e\" { input %x : f32[4, 9] input %y : f32[9] %a = add(%x, %y) %b = tanh(%a) %c = mul(%b, %x)\n"
       "%d = exp(%c) output \"d\" = %d }",
       "chain", 1, "tanh", 1e-4},
      {"graph \"e\" { input %x : f32[4, 9] input %y : f32[4, 9] %l = lt(%x, %y) %a = neg(%x) %w = where(%l, %a, %y)\n"
       "output \"w\" = %w }",
       "chain", 1, "where", 1e-6},
      /* what is read elsewhere stays */
      {"graph \"e\" { input %x : f32[4, 9] %a = neg(%x) %b = exp(%a) output \"b\" = %b output \"a\" = %a }", "neg", 1,
       "chain", 1e-6},
      /* a constant of one element that alone gives the result its rank */
      {"graph \"e\" { input %x : f32[] const %c : f32[1] = [3] const %d : f32[] = [4] %a = mul(%x, %c)\n"
       "%b = add(%a, %d) output \"b\" = %b }",
       "chain", 1, "mul", 1e-6},
      {"graph \"e\" { input %x : f32[5] const %c : f32[1, 1, 1] = [3] const %d : f32[1, 1, 1] = [4] %a = mul(%x, %c)\n"
       "%b = add(%a, %d) %e = max(%c, %b) output \"e\" = %e }",
       "chain", 1, "mul", 1e-6},
      {"graph \"e\" { input %x : f32[5] const %c : f32[1, 1] = [3] param %d : f32[1, 5] %a = mul(%x, %c)\n"
       "%b = add(%a, %d) output \"b\" = %b }",
       "chain", 1, "mul", 1e-6},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* A convolution takes the parts of a concat one after the other. */
static void concats(void **state) {
  static const pattern parts = {
      CONV
      "param %v : f32[20, 32, 3, 3] param %b : f32[20] %k = concat(%c, %x) {axis = 1}\n"
      "%d = conv(%k, %v, %b) {pads = [1, 1, 1, 1], strides = [2, 2]} %r = relu(%d) output \"r\" = %r }",
      "conv_last", 3, "concat", 1e-4};
  (void)state;
  pattern_check(&parts);
}

/* The result of a residual lies where the other summand was. */
static void residuals_are_written_over(void **state) {
  static const char text[] =
      "graph \"r\" { input %x : f32[64, 64] param %w : f32[64, 64] param %v : f32[64, 64] %h = relu(%x)\n"
      "%m = matmul(%h, %w) %r = relu(%m) %n = matmul(%r, %v) %s = add(%n, %h) output \"s\" = %s }";
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_error err;
  (void)state;
  desc.flags = BERTH_PLAN_INPUTS_DIE;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  assert_int_equal(test_plan_info(plan).activations_size, 2 * 64 * 64 * 4);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

#define LOOP(body)                                                                                       \
  "graph \"o\" { const %trips : i64[] = [3] const %yes : bool[] = [1] input %x : f32[1, 8, 6, 6]\n"      \
  "param %w : f32[8, 8, 3, 3] param %v : f32[6, 6] param %s : f32[8, 1, 1]\n"                            \
  "%c = conv(%x, %w) {pads = [1, 1, 1, 1]}\n%round, %starts, %acc = loop_begin(%trips, %yes, %x)\n" body \
  "%rounds, %more, %last = loop_end(%round, %starts, %trips, %yes, %acc, %next)\n"

/* The body of a loop is rewritten too. Nothing is fused across its border, and what it packs is packed outside. */
static void loops(void **state) {
  static const pattern patterns[] = {
      /* a product of the body, and an epilogue of it */
      {LOOP("%m = matmul(%acc, %v) %next = tanh(%m)\n") "%y = add(%last, %c) output \"y\" = %y }", "product", 1, "tanh",
       1e-4},
      /* the product before the loop is no part of what reads it inside */
      {LOOP("%t = add(%acc, %c) %next = tanh(%t)\n") "output \"y\" = %last }", "conv_last", 1, "tanh", 1e-4},
      /* convolutions inside and outside; a layout that is made inside is not there after the loop */
      {LOOP("%d = conv(%acc, %w) {pads = [1, 1, 1, 1]} %e = add(%d, %c) %next = tanh(%e)\n") "%f = mul(%x, %s) %g = "
                                                                                             "conv(%f, %w) {pads = [1, "
                                                                                             "1, 1, 1]} %h = add(%g, "
                                                                                             "%last) %y = add(%h, %c)\n"
                                                                                             "output \"y\" = %y }",
       "conv_last", 3, "conv", 1e-3},
      {LOOP("%d = conv(%x, %w) {pads = [1, 1, 1, 1]} %next = add(%d, %acc)\n") "%g = max_pool(%x) {kernel = [2, 2]} "
                                                                               "output \"y\" = %last output \"g\" = %g "
                                                                               "}",
       "conv_last", 1, "conv", 1e-3},
  };
  (void)state;
  CHECK_ALL(patterns);
}

#define LINES "graph \"n\" { input %x : f32[3, 5, 24] param %w : f32[24] param %b : f32[24] const %e : f32[] = [1e-5]\n"
#define CENTRED "%m = reduce_mean(%x) {axes = [-1]} %d = sub(%x, %m) %q = mul(%d, %d)\n"
#define ROOT "%v = reduce_mean(%q) {axes = [2]} %a = add(%v, %e) "

/* Norms that were written as means and roots. */
static void norms(void **state) {
  static const pattern patterns[] = {
      {LINES CENTRED ROOT "%s = sqrt(%a) %n = div(%d, %s) %g = mul(%n, %w) %y = add(%g, %b) output \"y\" = %y }",
       "layer_norm", 1, "reduce_mean", 1e-4},
      {LINES CENTRED ROOT "%s = rsqrt(%a) %n = mul(%s, %d) %g = mul(%w, %n) output \"g\" = %g }", "layer_norm", 1,
       "reduce_mean", 1e-4},
      {LINES CENTRED ROOT "%s = sqrt(%a) %i = reciprocal(%s) %n = mul(%d, %i) output \"n\" = %n }", "layer_norm", 1,
       "reduce_mean", 1e-4},
      {LINES "%q = mul(%x, %x) " ROOT "%s = rsqrt(%a) %n = mul(%x, %s) %g = mul(%w, %n) %y = add(%g, %b)\n"
             "output \"y\" = %y }",
       "rms_norm", 1, "reduce_mean", 1e-4},
      /* what is in between is wanted too, or is not what it looks like */
      {LINES CENTRED ROOT "%s = sqrt(%a) %n = div(%d, %s) output \"n\" = %n output \"v\" = %v }", "reduce_mean", 2,
       "layer_norm", 1e-4},
      {LINES CENTRED ROOT "%s = sqrt(%a) %n = div(%x, %s) output \"n\" = %n }", "reduce_mean", 2, "layer_norm", 1e-4},
      {LINES "%m = reduce_mean(%x) {axes = [1]} %d = sub(%x, %m) %q = mul(%d, %d) " ROOT
             "%s = sqrt(%a) %n = div(%d, %s) output \"n\" = %n }",
       "rms_norm", 1, "layer_norm", 1e-4},
      /* the result has more axes than x */
      {LINES "const %f : f32[1, 1, 1, 1] = [1e-5] " CENTRED
             "%v = reduce_mean(%q) {axes = [2]} %a = add(%v, %f) %s = sqrt(%a) %n = div(%d, %s) output \"n\" = %n }",
       "reduce_mean", 2, "layer_norm", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* All weights are packed in the prelude, from where they are: what turns them is a view. */
static void check_packed_once(const char *text, uint32_t flags, uint32_t expected) {
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_plan *plan;
  berth_error err;
  uint32_t n_packed = 0;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  desc.flags = flags;
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const berth__node *node = &plan->graph->nodes[plan->order[step]];
    if (!node->op->family->packs) continue;
    assert_true(step < plan->n_prelude);
    const berth__value *weight = &plan->graph->values[node->in[BERTH__PACK_WEIGHT]];
    assert_true(weight->kind == BERTH_VALUE_PARAM || plan->places[node->in[BERTH__PACK_WEIGHT]].is_view);
    n_packed++;
  }
  assert_int_equal(n_packed, expected);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void loops_pack_outside(void **state) {
  (void)state;
  check_packed_once(
      LOOP("%d = conv(%acc, %w) {pads = [1, 1, 1, 1]} %m = matmul(%d, %v) %next = tanh(%m)\n") "output \"y\" = %last }",
      0, 2);
}

/* Also where that makes eight times as much of them, and where a run has no strided views. */
static void packing_is_never_repeated(void **state) {
  static const char *const grows =
      "graph \"g\" { input %x : f16[1, 64, 32, 32] param %w : f16[64, 64, 3, 3] param %v : f16[2, 64, 1, 1]\n"
      "%c = conv(%x, %w) {pads = [1, 1, 1, 1]} %d = conv(%c, %v) output \"d\" = %d }";
  static const char *const lines =
      "graph \"l\" { input %x : f32[1, 512, 1] param %w : f32[256, 512, 1] param %v : f32[256, 128]\n"
      "%c = conv(%x, %w) %t = transpose(%c) {perm = [0, 2, 1]} %m = matmul(%t, %v) output \"m\" = %m }";
  (void)state;
  check_packed_once(grows, 0, 2);
  check_packed_once(lines, 0, 2);
  check_packed_once(lines, BERTH_PLAN_NO_STRIDED, 2);
}

/* The columns of x, of which a run keeps some. */
#define KEPT                                                                                                       \
  "graph \"b\" { input %x : f32[1, 6, 40] input %which : f32[40] %z = non_zero(%which) %at = squeeze(%z) {axes = " \
  "[0]}\n"                                                                                                         \
  "%k = gather(%x, %at) {axis = 2}\n"

/* Nodes with extents that only a run knows stay; the others do not. */
static void bounds(void **state) {
  static const pattern patterns[] = {
      {"graph \"b\" { input %x : f32[7, 24] param %w : f32[24, 40] %m = matmul(%x, %w) %t = tanh(%m)\n"
       "%n = non_zero(%t) %f = cast(%n) {to = \"f32\"} %r = reduce_sum(%f) output \"r\" = %r output \"t\" = %t }",
       "product", 1, "tanh", 1e-4},
      {"graph \"b\" { input %x : f32[7, 24] param %w : f32[24, 40] %z = non_zero(%x) %f = cast(%z) {to = \"f32\"}\n"
       "%a = tanh(%f) %b = neg(%a) %s = reduce_sum(%b) %m = matmul(%x, %w) %t = add(%m, %s)\n"
       "output \"t\" = %t }",
       "chain", 1, "matmul", 1e-3},
      /* convolutions, products and what is around them, over a width that only a run knows */
      {KEPT "param %w : f32[20, 6, 3] param %v : f32[20, 20, 1] param %b : f32[20]\n"
            "%c = conv(%k, %w, %b) {pads = [1, 1]} %r = relu(%c) %d = conv(%r, %v) %e = add(%d, %r) %t = tanh(%e)\n"
            "%p = avg_pool(%t) {kernel = [2], strides = [2]} output \"p\" = %p }",
       "conv_last", 2, "conv", 1e-4},
      {KEPT "param %w : f32[6, 9] %t = transpose(%k) {perm = [0, 2, 1]} %m = matmul(%t, %w) %r = relu(%m)\n"
            "%n = mul(%m, %r) output \"n\" = %n }",
       "product", 1, "matmul", 1e-4},
      {KEPT "param %w : f32[6, 1, 5] param %u : f32[6, 4, 4] %c = conv(%k, %w) {pads = [2, 2], group = 6}\n"
            "%d = conv_transpose(%c, %u) {strides = [2], pads = [1, 1]} output \"d\" = %d }",
       "conv_transpose_last", 1, "conv", 1e-4},
      /* what joins a product must not be wider than its result turns out to be: here one row meets all */
      {KEPT "param %w : f32[6, 9] const %one : i64[1] = [0] %g = gather(%k, %one) {axis = 2}\n"
            "%s = transpose(%g) {perm = [0, 2, 1]} %t = transpose(%k) {perm = [0, 2, 1]} %m = matmul(%t, %w)\n"
            "%q = reduce_max(%m) {axes = [1]} %a = add(%m, %q) %h = mul(%a, %m) output \"h\" = %h output \"s\" = %s }",
       "product", 1, "matmul", 1e-4},
      /* pads that follow from the extent stay where the extent is known */
      {KEPT "param %w : f32[20, 6, 3] %c = conv(%k, %w) {auto_pad = \"same_upper\", strides = [2]} output \"c\" = %c }",
       "conv", 1, "conv_last", 1e-4},
  };
  (void)state;
  CHECK_ALL(patterns);
}

/* A 0 among the extents of a reshape that rewriting makes is an extent, and does not stand for "as before". */
static void no_channels(void **state) {
  (void)state;
  static const pattern patterns[] = {
      {IMAGE("4") "param %w : f32[8, 4, 3, 3] param %k : f32[0, 1, 1] %c = conv(%x, %w)\n"
                  "%n = narrow(%c) {axes = [1], starts = [0], ends = [0]} %a = add(%n, %k) %r = relu(%a)\n"
                  "output \"r\" = %r output \"c\" = %c }",
       "conv_last", 1, "conv", 1e-4},
      {IMAGE("4") "param %w : f32[0, 4, 1, 1] param %k : f32[1, 0, 1, 1] %c = conv(%x, %w) %a = add(%c, %k)\n"
                  "output \"a\" = %a }",
       "conv", 1, "add", 1e-4},
      {IMAGE("4") "param %w : f32[0, 4, 3, 3] param %s : f32[0] param %b : f32[0] param %m : f32[0] param %v : f32[0]\n"
                  "%c = conv(%x, %w) %n = batch_norm(%c, %s, %b, %m, %v) output \"n\" = %n }",
       "conv", 1, "conv_last", 1e-4},
  };
  CHECK_ALL(patterns);
}

static void fails_each_allocation(void **state) {
  static char text[] = CONV
      "param %v : f32[20, 32, 3, 3] param %b : f32[20] %k = concat(%c, %x) {axis = 1}\n"
      "%d = conv(%k, %v, %b) {pads = [1, 1, 1, 1]} %s = sigmoid(%d) %m = mul(%d, %s) %q = reduce_mean(%m) {axes = [2, "
      "3]}"
      " %f = flatten(%q) param %u : f32[20, 7] %y = matmul(%f, %u) output \"y\" = %y }";
  (void)state;
  assert_true(test_fail_each_allocation(pattern_plan, text) > 0);
  static char loop[] =
      LOOP("%d = conv(%acc, %w) {pads = [1, 1, 1, 1]} %m = matmul(%d, %v) %next = tanh(%m)\n") "output \"y\" = %last }";
  assert_true(test_fail_each_allocation(pattern_plan, loop) > 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(convolutions),
      cmocka_unit_test(channel_by_channel),
      cmocka_unit_test(transposed_with_few_outputs),
      cmocka_unit_test(few_outputs),
      cmocka_unit_test(transposed_with_strides_of_one),
      cmocka_unit_test(batch_norms),
      cmocka_unit_test(layouts),
      cmocka_unit_test(epilogues),
      cmocka_unit_test(chains),
      cmocka_unit_test(concats),
      cmocka_unit_test(residuals_are_written_over),
      cmocka_unit_test(loops),
      cmocka_unit_test(norms),
      cmocka_unit_test(loops_pack_outside),
      cmocka_unit_test(packing_is_never_repeated),
      cmocka_unit_test(bounds),
      cmocka_unit_test(no_channels),
      cmocka_unit_test(fails_each_allocation),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
