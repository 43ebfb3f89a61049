/* The builder: every op, names, and errors that leave the graph as it was. */
#include <stdio.h>

#include "graph/rewrite.h"
#include "graphs.h"

typedef struct fixture {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_error err;
} fixture;

static void start(fixture *f) {
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  test_expect_ok(berth_graph_create(f->ctx, "g", &f->graph, &f->err), &f->err, "create", __FILE__, __LINE__);
}

static void finish(fixture *f) {
  berth_graph_destroy(f->graph);
  test_context_done(f->ctx, &f->alloc);
}

/* "f32 2, n" */
static berth_value add_input(fixture *f, const char *name, const char *spec) {
  char type[8] = "";
  berth_value value;
  size_t length = strcspn(spec, " ");
  memcpy(type, spec, length);
  spec += length;
  test_expect_ok(berth_graph_input(f->graph, name, berth_type_from_name(type), graph_shape(spec + strspn(spec, " ")),
                                   &value, &f->err),
                 &f->err, "input", __FILE__, __LINE__);
  return value;
}

static void check_value(fixture *f, berth_value value, const char *spec) {
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  char text[256], *at = text;
  assert_int_equal(berth_graph_value(f->graph, value, &info, &f->err), BERTH_OK);
  at += sprintf(at, "%s", berth_type_name(info.type));
  for (uint32_t i = 0; i < info.shape.rank; i++) {
    at += sprintf(at, i == 0 ? " " : ", ");
    if (info.shape.dim[i].name != NULL)
      at += sprintf(at, "%s", info.shape.dim[i].name);
    else
      at += sprintf(at, "%lld", (long long)info.shape.dim[i].extent);
  }
  assert_string_equal(text, spec);
}

#define INTS(key, ...)                                                                                   \
  {                                                                                                      \
    .name = (key), .kind = BERTH_ATTR_INTS, .count = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
    .ints = (const int64_t[]) {                                                                          \
      __VA_ARGS__                                                                                        \
    }                                                                                                    \
  }
#define INT(key, value) \
  { .name = (key), .kind = BERTH_ATTR_INT, .i = (value) }
#define FLOAT(key, value) \
  { .name = (key), .kind = BERTH_ATTR_FLOAT, .f = (value) }
#define STRING(key, value) \
  { .name = (key), .kind = BERTH_ATTR_STRING, .s = (value) }
#define DIMS(key, ...)                                                                                       \
  {                                                                                                          \
    .name = (key), .kind = BERTH_ATTR_DIMS, .count = sizeof((berth_dim[]){__VA_ARGS__}) / sizeof(berth_dim), \
    .dims = (const berth_dim[]) {                                                                            \
      __VA_ARGS__                                                                                            \
    }                                                                                                        \
  }

typedef struct op_case {
  const char *op;
  const char *in[8]; /* "": left out */
  const char *out[4];
  berth_attr attrs[3];
} op_case;

#define UNARY(op)                     \
  {                                   \
    op, {"f32 n, 3"}, {"f32 n, 3"}, { \
      { 0 }                           \
    }                                 \
  }
#define BINARY(op)                             \
  {                                            \
    op, {"f32 n, 3", "f32 3"}, {"f32 n, 3"}, { \
      { 0 }                                    \
    }                                          \
  }
#define BITS(op)                                  \
  {                                               \
    op, {"bool n, 3", "bool 1"}, {"bool n, 3"}, { \
      { 0 }                                       \
    }                                             \
  }
#define COMPARE(op)                             \
  {                                             \
    op, {"f32 n, 3", "f32 3"}, {"bool n, 3"}, { \
      { 0 }                                     \
    }                                           \
  }
#define REDUCE(op)                                                             \
  {                                                                            \
    op, {"f32 n, 3, 4"}, {"f32 n, 4"}, { INTS("axes", 1), INT("keepdims", 0) } \
  }

static const op_case op_cases[] = {
    UNARY("identity"),
    UNARY("neg"),
    UNARY("abs"),
    UNARY("exp"),
    UNARY("log"),
    UNARY("sqrt"),
    UNARY("rsqrt"),
    UNARY("sin"),
    UNARY("cos"),
    UNARY("tan"),
    UNARY("tanh"),
    UNARY("sigmoid"),
    UNARY("relu"),
    UNARY("gelu"),
    UNARY("gelu_tanh"),
    UNARY("silu"),
    UNARY("erf"),
    UNARY("round"),
    UNARY("floor"),
    UNARY("ceil"),
    UNARY("reciprocal"),
    UNARY("sign"),
    UNARY("asin"),
    UNARY("acos"),
    UNARY("atan"),
    UNARY("sinh"),
    UNARY("cosh"),
    UNARY("asinh"),
    UNARY("acosh"),
    UNARY("atanh"),
    UNARY("expm1"),
    UNARY("softplus"),
    {"not", {"bool n"}, {"bool n"}, {{0}}},
    {"clamp", {"f16 n"}, {"f16 n"}, {FLOAT("min", 0), INT("max", 6)}},
    {"cast", {"f32 n, 2"}, {"i8 n, 2"}, {STRING("to", "i8")}},
    BINARY("add"),
    BINARY("sub"),
    BINARY("mul"),
    BINARY("div"),
    BINARY("pow"),
    BINARY("min"),
    BINARY("max"),
    BINARY("mod"),
    BITS("and"),
    BITS("or"),
    BITS("xor"),
    COMPARE("eq"),
    COMPARE("ne"),
    COMPARE("lt"),
    COMPARE("le"),
    COMPARE("gt"),
    COMPARE("ge"),
    {"where", {"bool n, 1", "f32 3", "f32 1, 3"}, {"f32 n, 3"}, {{0}}},
    {"chain", {"f32 n, 3", "bool 3"}, {"i8 n, 3"}, {INTS("code", 1, 0, 1, 0), STRING("type", "i8")}},
    {"matmul", {"f32 n, 2, 3", "f32 3, 5"}, {"f32 n, 2, 5"}, {{0}}},
    {"pack_weights", {"f32 3, n, 5", "f32 5"}, {"f32 2, ?, 4"}, {INT("panel", 4)}},
    {"product", {"f32 n, 2, 3", "f32 2, 3, 4", "f32 5"}, {"f32 n, 2, 5"}, {INT("columns", 5), INT("panel", 4)}},
    {"row_product", {"f32 n, 2, 3", "f32 3, 5"}, {"f32 n, 2, 5"}, {INT("columns", 5)}},
    {"det", {"f32 n, 3, 3"}, {"f32 n"}, {{0}}},
    {"conv", {"f32 n, 2, 8", "f32 4, 2, 3", ""}, {"f32 n, 4, 6"}, {{0}}},
    {"conv_transpose", {"f32 n, 2, 6", "f32 2, 4, 3"}, {"f32 n, 4, 8"}, {{0}}},
    {"conv_weight_grad", {"f32 n, 2, 8", "f32 n, 4, 6"}, {"f32 4, 2, 3"}, {INTS("kernel", 3)}},
    {"attention",
     {"f32 n, 2, s, 8", "f32 n, 2, t, 8", "f32 n, 2, t, 8", "", "f32 s, t"},
     {"f32 n, 2, s, 8"},
     {STRING("mode", "causal")}},
    {"attention_grad",
     {"f32 n, 2, s, 8", "f32 n, 2, t, 8", "f32 n, 2, t, 8", "", "f32 s, t", "", "", "f32 n, 2, s, 8"},
     {"f32 n, 2, s, 8", "f32 n, 2, t, 8", "f32 n, 2, t, 8"},
     {STRING("mode", "causal")}},
    {"expert_matmul", {"f32 n, 8", "f32 4, 6, 8", "i64 n, 2"}, {"f32 n, 2, 6"}, {{0}}},
    {"rope", {"f32 n, 2, s, 8", "i64 s"}, {"f32 n, 2, s, 8"}, {{0}}},
    {"rope_rows", {"f32 n, 16", "f32 3, 16", "i64", "f32 3, 4", "f32 3, 4"}, {"f32 n, 16"}, {INT("heads", 2)}},
    {"max_pool", {"f32 n, 2, 8, 8"}, {"f32 n, 2, 4, 4"}, {INTS("kernel", 2, 2), INTS("strides", 2, 2)}},
    {"avg_pool", {"f32 n, 2, 8, 8"}, {"f32 n, 2, 7, 7"}, {INTS("kernel", 2, 2)}},
    {"max_pool",
     {"f32 n, 2, s"},
     {"f32 n, 2, s", "i64 n, 2, s"},
     {INTS("kernel", 3), STRING("auto_pad", "same_upper")}},
    {"lp_pool", {"f32 n, 2, 8, 8"}, {"f32 n, 2, 7, 7"}, {INTS("kernel", 2, 2)}},
    {"max_unpool", {"f32 n, 2, 4", "i64 n, 2, 4"}, {"f32 n, 2, 8"}, {INTS("kernel", 2), INTS("strides", 2)}},
    {"resize", {"f32 n, 3", "f32 2"}, {"f32 ?, ?"}, {{0}}},
    {"grid_sample", {"f32 n, 2, 8, 8", "f32 n, 5, s, 2"}, {"f32 n, 2, 5, s"}, {{0}}},
    {"roi_align",
     {"f32 n, 2, 8, 8", "f32 r, 4", "i64 r"},
     {"f32 r, 2, 7, 7"},
     {INT("output_height", 7), INT("output_width", 7)}},
    {"max_roi_pool", {"f32 n, 2, 8, 8", "f32 r, 5"}, {"f32 r, 2, 3, 3"}, {INTS("pooled", 3, 3)}},
    {"deform_conv", {"f32 n, 2, 8, 8", "f32 4, 2, 3, 3", "f32 n, 18, 6, 6"}, {"f32 n, 4, 6, 6"}, {{0}}},
    {"conv_last",
     {"f32 n, 8, 2", "f32 2, 6, 4", ""},
     {"f32 n, 6, 5"},
     {INTS("kernel", 3), INT("channels", 5), INT("panel", 4)}},
    {"depthwise", {"f32 n, 8, 8, c", "f32 3, 3, c"}, {"f32 n, 6, 6, c"}, {INTS("kernel", 3, 3)}},
    {"conv_transpose_last",
     {"f32 n, 8, 2", "f32 2, 6, 4"},
     {"f32 n, 10, 5"},
     {INTS("kernel", 3), INT("channels", 5), INT("panel", 4)}},
    {"pack_winograd", {"f32 3, 3, n, 5"}, {"f32 16, 2, n, 4"}, {INT("panel", 4), INT("tile", 2)}},
    {"conv_winograd", {"f32 n, 8, 8, 3", "f32 36, 2, 3, 4"}, {"f32 n, 6, 6, 5"}, {INT("channels", 5), INT("panel", 4)}},
    {"quantize", {"f32 n, 3", "f32", "i8"}, {"i8 n, 3"}, {STRING("to", "i8")}},
    {"dequantize", {"u8 n, 3", "f32 3"}, {"f32 n, 3"}, {{0}}},
    {"quantize_range", {"f32 n, 3"}, {"f32", "u8"}, {{0}}},
    {"reduce_bytes", {"u8 n, 3"}, {"i32 1, 1"}, {{0}}},
    {"unpack", {"q8_0 n, 64"}, {"f32 n, 64"}, {{0}}},
    {"pack_blocks", {"u8 n, 2, 16", "f32 n, 2"}, {"q4_0f n, 64"}, {INT("columns", 64)}},
    {"unpack_rows", {"q8_0 9, 64", "i32 n"}, {"f32 n, 64"}, {{0}}},
    {"pack_weights_i8", {"u8 6, 5"}, {"i8 2, 3, 4, 4"}, {INT("panel", 4)}},
    {"qproduct", {"u8 n, 6", "i8 2, 3, 4, 4", "f32"}, {"f32 n, 5"}, {INT("columns", 5), INT("panel", 4)}},
    {"qconv_last",
     {"u8 n, 8, 2", "i8 2, 3, 4, 4", "f32 5"},
     {"f32 n, 6, 5"},
     {INTS("kernel", 3), INT("channels", 5), INT("panel", 4)}},
    {"qdepthwise", {"i8 n, 8, 8, c", "i8 3, 3, c", "f32"}, {"f32 n, 6, 6, c"}, {INTS("kernel", 3, 3)}},
    REDUCE("reduce_sum"),
    REDUCE("reduce_mean"),
    REDUCE("reduce_max"),
    REDUCE("reduce_min"),
    REDUCE("reduce_prod"),
    {"arg_max", {"f32 n, 5"}, {"i64 n, 1"}, {INT("axis", 1)}},
    {"arg_min", {"f32 n, 5"}, {"i64 n"}, {INT("axis", 1), INT("keepdims", 0)}},
    {"pairwise_coupling", {"f32 n, 6"}, {"f32 n, 4"}, {INT("classes", 4)}},
    {"tree_ensemble", {"f32 n, 5", "i32 1, 3", "f32 1", "i32 1", "f32 2, 1"}, {"f32 n, ?"}, {{0}}},
    {"top_k", {"f32 n, 5"}, {"f32 n, 2", "i64 n, 2"}, {INT("k", 2), INT("axis", 1)}},
    {"cumsum", {"f32 n, 5"}, {"f32 n, 5"}, {INT("axis", 0)}},
    {"cumprod", {"f32 n, 5"}, {"f32 n, 5"}, {INT("axis", 0)}},
    {"bitcast", {"f32 n, 5"}, {"i32 n, 5"}, {STRING("to", "i32")}},
    UNARY("softmax"),
    UNARY("log_softmax"),
    {"cross_entropy", {"f32 n, 5", "i64 n"}, {"f32 n"}, {{0}}},
    {"cross_entropy_grad", {"f32 n, 5", "i64 n", "f32 n"}, {"f32 n, 5"}, {INT("ignore_index", 0)}},
    {"cross_entropy_grad", {"f32 n, 5", "i64 n", "f32 n", "f32 n"}, {"f32 n, 5"}, {{0}}},
    {"layer_norm", {"f32 n, 3", "", "f32 3"}, {"f32 n, 3"}, {{0}}},
    {"rms_norm", {"f32 n, 3", "f32 3"}, {"f32 n, 3"}, {{0}}},
    {"layer_norm_grad", {"f32 n, 3", "", "f32 n, 3"}, {"f32 n, 3"}, {{0}}},
    {"rms_norm_grad", {"f32 n, 3", "f32 3", "f32 n, 3"}, {"f32 n, 3"}, {{0}}},
    {"layer_norm_scale_grad", {"f32 n, 2, 3", "f32 n, 2, 3"}, {"f32 2, 3", "f32 2, 3"}, {INT("axis", 1)}},
    {"rms_norm_scale_grad", {"f32 n, 3", "f32 n, 3"}, {"f32 3"}, {{0}}},
    {"group_norm", {"f32 n, 4, 5"}, {"f32 n, 4, 5"}, {INT("groups", 2)}},
    {"batch_norm", {"f32 n, 4, 5", "f32 4", "f32 4", "f32 4", "f32 4"}, {"f32 n, 4, 5"}, {{0}}},
    {"sgd", {"f32 n, 3", "f32 n, 3", "f32"}, {"f32 n, 3"}, {{0}}},
    {"adamw",
     {"f32 n, 3", "f32 n, 3", "f32 n, 3", "f32 n, 3", "f32", "i64"},
     {"f32 n, 3", "f32 n, 3", "f32 n, 3"},
     {FLOAT("beta1", 0.5)}},
    {"reshape", {"f32 n, 6"}, {"f32 n, 3, 2"}, {DIMS("shape", {"n", 0}, {NULL, 3}, {NULL, -1})}},
    {"flatten", {"f32 n, 6, 2"}, {"f32 n, 12"}, {{0}}},
    {"squeeze", {"f32 n, 1, 2"}, {"f32 n, 2"}, {INTS("axes", 1)}},
    {"unsqueeze", {"f32 n, 2"}, {"f32 1, n, 2"}, {INTS("axes", 0)}},
    {"transpose", {"f32 n, 2, 3"}, {"f32 3, n, 2"}, {INTS("perm", 2, 0, 1)}},
    {"diagonal", {"f32 3, n, 3"}, {"f32 n, 3"}, {INT("axis1", 0), INT("axis2", 2)}},
    {"narrow", {"f32 n, 9"}, {"f32 n, 4"}, {INTS("axes", 1), INTS("starts", 1), INTS("ends", 5)}},
    {"split", {"f32 n, 5"}, {"f32 n, 2", "f32 n, 3"}, {INT("axis", 1), INTS("parts", 2, 3)}},
    {"expand", {"f32 3"}, {"f32 n, 3"}, {DIMS("shape", {"n", 0}, {NULL, 3})}},
    {"random_uniform", {"f32 n, 3"}, {"f32 n, 3"}, {{0}}},
    {"random_normal", {"f16 n, 3"}, {"f16 n, 3"}, {INT("seed", 1)}},
    {"shape", {"f32 n, 3"}, {"i64 2"}, {{0}}},
    {"size", {"f32 n, 3"}, {"i64"}, {{0}}},
    {"tile", {"f32 n, 3"}, {"f32 n, 6"}, {INTS("repeats", 1, 2)}},
    {"reshape", {"f32 n, 3", "i64 2"}, {"f32 ?, ?"}, {{0}}},
    {"range", {"i64", "i64", "i64"}, {"i64 ?"}, {{0}}},
    {"gather_elements", {"f32 n, 3", "i64 n, 5"}, {"f32 n, 5"}, {INT("axis", 1)}},
    {"gather_nd", {"f32 n, 3, 4", "i64 5, 2"}, {"f32 5, 4"}, {{0}}},
    {"scatter_nd", {"f32 n, 3", "i64 5, 1", "f32 5, 3"}, {"f32 n, 3"}, {{0}}},
    {"write_rows", {"f32 n, 8, 4", "f32 n, 2, 4", "i64"}, {"f32 n, 8, 4"}, {{0}}},
    {"non_zero", {"f32 n, 3"}, {"i64 2, ?"}, {{0}}},
    {"unique", {"f32 4, n"}, {"f32 ?, n", "i64 ?", "i64 4", "i64 ?"}, {INT("axis", 0), INT("flat", 0)}},
    {"concat", {"f32 n, 2", "f32 n, 3"}, {"f32 n, 5"}, {INT("axis", 1)}},
    {"pad", {"f32 n, 2"}, {"f32 n, 5"}, {INTS("pads", 0, 1, 0, 2)}},
    {"gather", {"f32 9, 2", "i64 n"}, {"f32 n, 2"}, {{0}}},
    {"embedding", {"f32 9, 2", "i32 n"}, {"f32 n, 2"}, {{0}}},
    {"choose", {"bool 1", "f32 n, 3", "f32 4, 3"}, {"f32 ?, 3"}, {{0}}},
    {"loop_begin", {"i64", "bool 1", "f32 n, 3"}, {"i64", "bool", "f32 n, 3"}, {{0}}},
    {"loop_end", {"i64", "bool", "i64 1", "bool", "f32 n, 3"}, {"i64", "bool", "f32 ?, n, 3"}, {{0}}},
    {"choose", {"bool", "", "f32 n, 3"}, {"f32 n, 3"}, {STRING("reason", "none")}},
    {"qlstm", {"f32 s, 1, n, 8", "f32 1", "i8 1, 8, 2"}, {"f32 s, 1, n, 2", "f32 1, n, 2", "f32 1, n, 2"}, {{0}}},
    {"lstm", {"f32 s, n, 3", "f32 1, 8, 3", "f32 1, 8, 2"}, {"f32 s, 1, n, 2", "f32 1, n, 2", "f32 1, n, 2"}, {{0}}},
    {"gru",
     {"f32 s, n, 3", "f32 2, 6, 3", "f32 2, 6, 2"},
     {"f32 s, 2, n, 2", "f32 2, n, 2"},
     {STRING("direction", "bidirectional")}},
    {"rnn", {"f32 s, n, 3", "f32 1, 2, 3", "f32 1, 2, 2", "", "i32 n"}, {"f32 s, 1, n, 2"}, {FLOAT("clip", 1)}},
    {"dft", {"f32 n, 8, 1"}, {"f32 n, 5, 2"}, {INT("axis", 1), INT("onesided", 1)}},
    {"dft", {"f32 n, 8, 1", "i64"}, {"f32 n, ?, 2"}, {INT("axis", 1)}},
    {"non_max_suppression", {"f32 2, 9, 4", "f32 2, 3, 9", "i64 1"}, {"i64 ?, 3", "i64 1"}, {{0}}},
    {"ngrams", {"i64 n, 7"}, {"f32 n, 3"}, {INTS("pool", 4, 5), INTS("starts", 0), INTS("indexes", 0, 2)}},
    {"scatter", {"f32 n, 4", "i64 n, 2", "f32 n, 2"}, {"f32 n, 4"}, {INT("axis", 1), STRING("reduction", "add")}},
};
#define N_OP_CASES (sizeof op_cases / sizeof op_cases[0])

static size_t count(const char *const *texts, size_t limit) {
  size_t n = 0;
  while (n < limit && texts[n] != NULL) n++;
  return n;
}

static void build_case(const op_case *c) {
  fixture f;
  berth_value in[8], out[4] = {0};
  size_t n_in = count(c->in, 8), n_out = count(c->out, 4), n_attrs = 0;
  start(&f);
  add_input(&f, "anchor", "f32 n"); /* a named dimension that attributes may use */
  for (size_t i = 0; i < n_in; i++) in[i] = c->in[i][0] != '\0' ? add_input(&f, NULL, c->in[i]) : BERTH_VALUE_NONE;
  while (n_attrs < 3 && c->attrs[n_attrs].name != NULL) n_attrs++;
  const berth__op *op = berth__op_find(f.ctx, c->op);
  const berth_status status =
      op->tier == BERTH__PUBLIC
          ? berth_graph_add(f.graph, c->op, in, n_in, c->attrs, n_attrs, out, n_out, &f.err)
          : berth__graph_add_op(f.graph, op, in, n_in, c->attrs, n_attrs, NULL, out, n_out, &f.err);
  if (status != BERTH_OK) fail_msg("%s: %s", c->op, f.err.message);
  for (size_t i = 0; i < n_out; i++) {
    check_value(&f, out[i], c->out[i]);
    assert_int_equal(berth_graph_output(f.graph, NULL, out[i], &f.err), BERTH_OK);
  }
  if (strcmp(c->op, "loop_end") != 0) { /* which does not stand alone; test_loops.c has it with its loop_begin */
    assert_int_equal(berth_graph_verify(f.graph, &f.err), BERTH_OK);
    graph_round_trip(f.graph);
  }
  finish(&f);
}

static void builds_every_op(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  for (size_t i = 0; i < N_OP_CASES; i++) build_case(&op_cases[i]);
  for (uint32_t i = 0; i < BERTH__OP_COUNT; i++) {
    const char *name = berth__op_builtin((berth__op_code)i)->name;
    size_t k = 0;
    while (k < N_OP_CASES && strcmp(op_cases[k].op, name) != 0) k++;
    if (k == N_OP_CASES) fail_msg("op '%s' has no case here", name);
  }
  berth_context_destroy(ctx);
}

static void names_flow_and_are_counted(void **state) {
  fixture f;
  (void)state;
  start(&f);
  berth_value x = add_input(&f, "x", "f32 batch, seq, 4"), y = add_input(&f, "y", "f32 batch, 1, 4"), sum;
  const berth_value in[] = {x, y};
  assert_int_equal(berth_graph_add(f.graph, "add", in, 2, NULL, 0, &sum, 1, &f.err), BERTH_OK);
  check_value(&f, sum, "f32 batch, seq, 4");
  assert_int_equal(berth_graph_n_dims(f.graph), 2);
  assert_string_equal(berth_graph_dim_name(f.graph, 0), "batch");
  assert_string_equal(berth_graph_dim_name(f.graph, 1), "seq");
  assert_null(berth_graph_dim_name(f.graph, 2));
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  assert_int_equal(berth_graph_value(f.graph, sum, &info, &f.err), BERTH_OK);
  assert_int_equal(info.size, 0);
  assert_int_equal(info.kind, BERTH_VALUE_NODE);
  assert_int_equal(info.node, 0);
  finish(&f);
}

/* Arithmetic on a named dimension is not known until it is bound. */
static void unknown_dimensions_have_no_name(void **state) {
  fixture f;
  berth_value x, y;
  berth_attr axis = berth_attr_int("axis", 0);
  (void)state;
  start(&f);
  x = add_input(&f, "x", "f32 n, 4");
  const berth_value in[] = {x, x};
  assert_int_equal(berth_graph_add(f.graph, "concat", in, 2, &axis, 1, &y, 1, &f.err), BERTH_OK);
  check_value(&f, y, "f32 ?, 4");
  assert_int_equal(berth_graph_output(f.graph, "y", y, &f.err), BERTH_OK);
  graph_round_trip(f.graph);
  finish(&f);
}

static void made_up_names_are_free(void **state) {
  fixture f;
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  (void)state;
  start(&f);
  add_input(&f, "input_1", "f32 2");
  add_input(&f, "relu_5", "f32 2");
  add_input(&f, "input_3", "f32 2");
  berth_value x = add_input(&f, NULL, "f32 2"), y = add_input(&f, NULL, "f32 2"), z;
  assert_int_not_equal(x, y);
  assert_int_equal(berth_graph_add(f.graph, "relu", &y, 1, NULL, 0, &z, 1, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_value(f.graph, z, &info, &f.err), BERTH_OK);
  assert_true(strncmp(info.name, "relu_", 5) == 0 && strcmp(info.name, "relu_5") != 0);
  berth_value p, c;
  float data = 1;
  assert_int_equal(berth_graph_param(f.graph, NULL, BERTH_F32, BERTH_SHAPE(2), &p, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_constant(f.graph, NULL, BERTH_F32, berth_shape_fixed(0, NULL), &data, 4, &c, &f.err),
                   BERTH_OK);
  for (berth_value v = 0; v < berth_graph_n_values(f.graph); v++) {
    assert_int_equal(berth_graph_value(f.graph, v, &info, &f.err), BERTH_OK);
    assert_int_equal(berth_graph_find(f.graph, info.name), v);
  }
  finish(&f);
}

/* x = relu(x) is how one writes a chain. */
static void operand_and_result_may_share_a_variable(void **state) {
  fixture f;
  (void)state;
  start(&f);
  berth_value x = add_input(&f, "x", "f32 2");
  assert_int_equal(berth_graph_add(f.graph, "relu", &x, 1, NULL, 0, &x, 1, &f.err), BERTH_OK);
  assert_int_equal(x, 1);
  assert_int_equal(berth_graph_add(f.graph, "neg", &x, 1, NULL, 0, &x, 1, &f.err), BERTH_OK);
  assert_int_equal(f.graph->nodes[1].in[0], 1);
  assert_int_not_equal(berth_graph_add(f.graph, "no_such", &x, 1, NULL, 0, &x, 1, &f.err), BERTH_OK);
  assert_int_equal(x, BERTH_VALUE_NONE);
  finish(&f);
}

static void renames(void **state) {
  fixture f;
  (void)state;
  start(&f);
  berth_value x = add_input(&f, "x", "f32 2"), y = add_input(&f, "y", "f32 2");
  assert_int_equal(berth_graph_rename(f.graph, x, "z", &f.err), BERTH_OK);
  assert_int_equal(berth_graph_find(f.graph, "z"), x);
  assert_int_equal(berth_graph_find(f.graph, "x"), BERTH_VALUE_NONE);
  assert_int_equal(berth_graph_rename(f.graph, x, "z", &f.err), BERTH_OK);
  test_expect_error(berth_graph_rename(f.graph, x, "y", &f.err), BERTH_INVALID, &f.err, "'y'");
  test_expect_error(berth_graph_rename(f.graph, x, "", &f.err), BERTH_INVALID, &f.err, "empty");
  test_expect_error(berth_graph_rename(f.graph, 99, "w", &f.err), BERTH_INVALID, &f.err, "99");
  assert_int_equal(berth_graph_rename(f.graph, y, "x", &f.err), BERTH_OK);
  assert_int_equal(berth_graph_find(f.graph, "x"), y);
  finish(&f);
}

static void lists_what_it_has(void **state) {
  fixture f;
  const int32_t data[2] = {7, -7};
  berth_value_info info = BERTH_VALUE_INFO_INIT;
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_value x, w, c, in[2], y;
  (void)state;
  start(&f);
  w = 0;
  x = add_input(&f, "x", "i32 2");
  assert_int_equal(berth_graph_param(f.graph, "w", BERTH_I32, BERTH_SHAPE(2), &w, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_constant(f.graph, "c", BERTH_I32, BERTH_SHAPE(2), data, sizeof data, &c, &f.err),
                   BERTH_OK);
  in[0] = x, in[1] = c;
  assert_int_equal(berth_graph_add(f.graph, "add", in, 2, NULL, 0, &y, 1, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_output(f.graph, "out", y, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_output(f.graph, "again", y, &f.err), BERTH_OK);
  assert_string_equal(berth_graph_name(f.graph), "g");
  assert_int_equal(berth_graph_n_values(f.graph), 4);
  assert_int_equal(berth_graph_n_nodes(f.graph), 1);
  assert_int_equal(berth_graph_n_inputs(f.graph), 1);
  assert_int_equal(berth_graph_n_params(f.graph), 1);
  assert_int_equal(berth_graph_n_outputs(f.graph), 2);
  assert_int_equal(berth_graph_input_at(f.graph, 0), x);
  assert_int_equal(berth_graph_input_at(f.graph, 1), BERTH_VALUE_NONE);
  assert_int_equal(berth_graph_param_at(f.graph, 0), w);
  assert_int_equal(berth_graph_param_at(f.graph, 1), BERTH_VALUE_NONE);
  assert_int_equal(berth_graph_output_at(f.graph, 1), y);
  assert_int_equal(berth_graph_output_at(f.graph, 2), BERTH_VALUE_NONE);
  assert_string_equal(berth_graph_output_name(f.graph, 1), "again");
  assert_null(berth_graph_output_name(f.graph, 2));
  assert_int_equal(berth_graph_value(f.graph, c, &info, &f.err), BERTH_OK);
  assert_memory_equal(info.data, data, sizeof data);
  assert_int_equal(info.size, sizeof data);
  assert_int_equal(berth_graph_node(f.graph, 0, &node, &f.err), BERTH_OK);
  assert_string_equal(node.op, "add");
  assert_int_equal(node.n_in, 2);
  assert_int_equal(node.in[1], c);
  assert_int_equal(node.out[0], y);
  test_expect_error(berth_graph_node(f.graph, 1, &node, &f.err), BERTH_INVALID, &f.err, "1");
  test_expect_error(berth_graph_value(f.graph, 4, &info, &f.err), BERTH_INVALID, &f.err, "4");
  finish(&f);
}

/* ---- Errors --------------------------------------------------------------------------------------------------- */

/* A graph with x: f32[n, 4], i: i64[4], w: f32[4, 5] and one node. */
static void start_small(fixture *f) {
  start(f);
  add_input(f, "x", "f32 n, 4");
  add_input(f, "i", "i64 4");
  add_input(f, "w", "f32 4, 5");
  berth_value x = 0, y;
  assert_int_equal(berth_graph_add(f->graph, "relu", &x, 1, NULL, 0, &y, 1, &f->err), BERTH_OK);
  assert_int_equal(berth_graph_output(f->graph, "y", y, &f->err), BERTH_OK);
}

typedef struct add_error {
  const char *op;
  berth_value in[3];
  size_t n_in, n_out;
  berth_attr attrs[2];
  berth_status status;
  const char *part;
} add_error;

#define NONE BERTH_VALUE_NONE
static const add_error add_errors[] = {
    {"no_such_op", {0}, 1, 1, {{0}}, BERTH_UNSUPPORTED, "'no_such_op'"},
    {"", {0}, 1, 1, {{0}}, BERTH_UNSUPPORTED, "''"},
    {"relu", {0, 0}, 2, 1, {{0}}, BERTH_INVALID, "node 'relu_4' (relu): 2 operands are given, it takes 1"},
    {"relu", {0}, 0, 1, {{0}}, BERTH_INVALID, "0 operands"},
    {"conv", {0}, 1, 1, {{0}}, BERTH_INVALID, "takes 2 or more"},
    {"concat", {0}, 0, 1, {INT("axis", 0)}, BERTH_INVALID, "takes 1 or more"},
    {"relu", {0}, 1, 2, {{0}}, BERTH_INVALID, "2 results are asked for, it has 1"},
    {"add", {0}, 1, 1, {{0}}, BERTH_INVALID, "(add): 1 operand is given, it takes 2"},
    {"relu", {0}, 1, 0, {{0}}, BERTH_INVALID, "no results"},
    {"relu", {99}, 1, 1, {{0}}, BERTH_INVALID, "operand 0 is value 99"},
    {"relu", {4}, 1, 1, {{0}}, BERTH_INVALID, "value 4"}, /* the number that its own result would get */
    {"relu", {NONE}, 1, 1, {{0}}, BERTH_INVALID, "operand 0 is left out"},
    {"concat", {0, NONE}, 2, 1, {INT("axis", 0)}, BERTH_INVALID, "operand 1 is left out"},
    {"add", {0, 1}, 2, 1, {{0}}, BERTH_INVALID, "node 'add_4' (add)"},
    {"sin", {1}, 1, 1, {{0}}, BERTH_INVALID, "i64"},
    {"add", {0, 2}, 2, 1, {{0}}, BERTH_INVALID, "node 'add_4' (add)"},
    {"matmul", {2, 2}, 2, 1, {{0}}, BERTH_INVALID, "node 'matmul_4' (matmul)"},
    {"softmax", {0}, 1, 1, {INT("axis", 2)}, BERTH_INVALID, "axis"},
    {"softmax", {0}, 1, 1, {INT("axes", 1)}, BERTH_INVALID, "no attribute 'axes'"},
    {"softmax", {0}, 1, 1, {FLOAT("axis", 1)}, BERTH_INVALID, "'axis' is a number, expected an integer"},
    {"softmax", {0}, 1, 1, {INT("axis", 1), INT("axis", 1)}, BERTH_INVALID, "'axis' is given twice"},
    {"softmax", {0}, 1, 1, {{.name = NULL, .kind = BERTH_ATTR_INT}, {0}}, BERTH_INVALID, NULL},
    {"softmax", {0}, 1, 1, {{.name = "axis", .kind = (berth_attr_kind)77}}, BERTH_INVALID, "unknown kind"},
    {"concat", {0}, 1, 1, {{0}}, BERTH_INVALID, "'axis' (an integer) must be given"},
    {"reshape", {0}, 1, 1, {{.name = "shape", .kind = BERTH_ATTR_INTS, .count = 3}}, BERTH_INVALID, "no values"},
    {"cast", {0}, 1, 1, {{.name = "to", .kind = BERTH_ATTR_STRING}}, BERTH_INVALID, "'to'"},
    {"cast", {0}, 1, 1, {STRING("to", "f128")}, BERTH_INVALID, "f128"},
    {"expand", {2}, 1, 1, {INTS("shape", INT64_C(1) << 62, 4, 5)}, BERTH_INVALID, "node 'expand_4' (expand)"},
    {"expand", {2}, 1, 1, {INTS("shape", -5, 4, 5)}, BERTH_INVALID, NULL},
    {"pad", {2}, 1, 1, {INTS("pads", INT64_MAX, 0, INT64_MAX, 0)}, BERTH_INVALID, NULL},
    {"reshape", {2}, 1, 1, {INTS("shape", 1, 1, 1, 1, 1, 1, 1, 1, 20)}, BERTH_INVALID, NULL},
    {"reshape", {2}, 1, 1, {INTS("shape", 19)}, BERTH_INVALID, NULL},
    {"reshape", {2}, 1, 1, {INTS("shape", INT64_C(1) << 62, INT64_C(1) << 62, 20)}, BERTH_INVALID, NULL},
    {"reshape", {0}, 1, 1, {DIMS("shape", {"", 0}, {NULL, 4})}, BERTH_INVALID, NULL},
    {"expand", {2}, 1, 1, {DIMS("shape", {"fresh", 0}, {NULL, 9}, {NULL, 5})}, BERTH_INVALID, NULL},
};

/* The text and the number of dimensions are all there is to a graph. */
static void expect_unchanged(fixture *f, const test_buffer *before, uint32_t n_dims) {
  test_buffer after = graph_text(f->graph);
  assert_string_equal(before->data, after.data);
  test_buffer_free(&after);
  assert_int_equal(berth_graph_n_dims(f->graph), n_dims);
  assert_int_equal(berth_graph_verify(f->graph, &f->err), BERTH_OK);
}

static void refuses_wrong_nodes(void **state) {
  fixture f;
  (void)state;
  start_small(&f);
  test_buffer before = graph_text(f.graph);
  for (size_t i = 0; i < sizeof add_errors / sizeof add_errors[0]; i++) {
    const add_error *c = &add_errors[i];
    berth_value out[2] = {0, 0};
    size_t n_attrs = c->attrs[0].kind == 0 ? 0 : c->attrs[1].kind == 0 ? 1 : 2;
    f.err = (berth_error){BERTH_OK, ""};
    berth_status status = berth_graph_add(f.graph, c->op, c->in, c->n_in, c->attrs, n_attrs, out, c->n_out, &f.err);
    if (status == BERTH_OK) fail_msg("case %zu (%s) was taken", i, c->op);
    test_expect_error(status, c->status, &f.err, c->part);
    if (status == BERTH_INVALID && c->n_out != 0 && strstr(f.err.message, "node '") == NULL)
      fail_msg("case %zu does not name the node: %s", i, f.err.message);
    for (size_t k = 0; k < c->n_out; k++) assert_int_equal(out[k], BERTH_VALUE_NONE);
    assert_int_equal(berth_graph_add(f.graph, c->op, c->in, c->n_in, c->attrs, n_attrs, NULL, c->n_out, NULL), status);
    expect_unchanged(&f, &before, 1);
  }
  test_expect_error(berth_graph_add(f.graph, "relu", NULL, 1, NULL, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, "relu");
  test_expect_error(berth_graph_add(f.graph, "relu", add_errors[0].in, 1, NULL, 3, NULL, 1, &f.err), BERTH_INVALID,
                    &f.err, "relu");
  test_expect_error(berth_graph_add(f.graph, NULL, NULL, 0, NULL, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, "op");
  test_expect_error(berth_graph_add(NULL, "relu", NULL, 0, NULL, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, "graph");
  expect_unchanged(&f, &before, 1);
  test_buffer_free(&before);
  finish(&f);
}

typedef struct source_error {
  const char *name;
  berth_type type;
  uint32_t rank;
  berth_dim dim[3];
  const char *part;
} source_error;

static const source_error source_errors[] = {
    {"x", BERTH_F32, 1, {{NULL, 2}}, "'x'"},
    {"", BERTH_F32, 1, {{NULL, 2}}, "empty"},
    {"z", BERTH_TYPE_NONE, 1, {{NULL, 2}}, "'z'"},
    {"z", (berth_type)99, 1, {{NULL, 2}}, "99 is not a type"},
    {"z", BERTH_F32, 9, {{NULL, 1}}, "rank"},
    {"z", BERTH_F32, 2, {{NULL, 2}, {NULL, -1}}, "'z': dimension 1 is -1"},
    {"z", BERTH_F32, 2, {{NULL, INT64_C(1) << 62}, {NULL, INT64_C(1) << 62}}, "'z'"},
    {"z", BERTH_F64, 1, {{NULL, INT64_C(1) << 62}}, "'z'"},
    {"z", BERTH_F32, 2, {{"fresh", 0}, {"", 0}}, "'z'"},
    {"z", BERTH_F32, 2, {{"fresh", 0}, {"?", 0}}, "'z'"},
    {"z", BERTH_F32, 2, {{"fresh", 0}, {NULL, -7}}, "'z'"},
};

static void refuses_wrong_inputs_and_params(void **state) {
  fixture f;
  (void)state;
  start_small(&f);
  test_buffer before = graph_text(f.graph);
  for (size_t i = 0; i < sizeof source_errors / sizeof source_errors[0]; i++) {
    const source_error *c = &source_errors[i];
    berth_shape shape = {.rank = c->rank};
    berth_value out = 3;
    memcpy(shape.dim, c->dim, sizeof c->dim);
    test_expect_error(berth_graph_input(f.graph, c->name, c->type, shape, &out, &f.err), BERTH_INVALID, &f.err,
                      c->part);
    assert_int_equal(out, BERTH_VALUE_NONE);
    expect_unchanged(&f, &before, 1);
    test_expect_error(berth_graph_param(f.graph, c->name, c->type, shape, &out, &f.err), BERTH_INVALID, &f.err,
                      c->dim[0].name != NULL ? "named dimension" : c->part);
    expect_unchanged(&f, &before, 1);
  }
  test_expect_error(berth_graph_input(NULL, "z", BERTH_F32, BERTH_SHAPE(1), NULL, &f.err), BERTH_INVALID, &f.err, NULL);
  test_buffer_free(&before);
  finish(&f);
}

static void refuses_wrong_constants(void **state) {
  fixture f;
  float data[4] = {0};
  berth_value out;
  (void)state;
  start_small(&f);
  test_buffer before = graph_text(f.graph);
  berth_shape named = {.rank = 1, .dim = {{"n", 0}}};
  const berth_shape two = BERTH_SHAPE(2);
#define REFUSED(part, ...) \
  test_expect_error(berth_graph_constant(f.graph, __VA_ARGS__, &out, &f.err), BERTH_INVALID, &f.err, part)
  REFUSED("'c' needs 8 bytes by its shape but 7", "c", BERTH_F32, two, data, 7);
  REFUSED("'c' has no data", "c", BERTH_F32, two, NULL, 8);
  REFUSED("named dimension 'n'", "c", BERTH_F32, named, data, 4);
  REFUSED("'x'", "x", BERTH_F32, two, data, 8);
  REFUSED("99 is not a type", "c", (berth_type)99, two, data, 0);
  REFUSED("'c'", "c", BERTH_F32, BERTH_SHAPE(INT64_MAX, INT64_MAX), data, 8);
  REFUSED("'c'", "c", BERTH_F32, BERTH_SHAPE(-1), data, 8);
  REFUSED("rank", "c", BERTH_F32, BERTH_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1), data, 4);
#undef REFUSED
  expect_unchanged(&f, &before, 1);
  assert_int_equal(berth_graph_constant(f.graph, "none", BERTH_F32, BERTH_SHAPE(0, 3), NULL, 0, &out, &f.err),
                   BERTH_OK);
  test_buffer_free(&before);
  finish(&f);
}

static void refuses_wrong_outputs(void **state) {
  fixture f;
  (void)state;
  start_small(&f);
  test_buffer before = graph_text(f.graph);
  test_expect_error(berth_graph_output(f.graph, "y", 0, &f.err), BERTH_INVALID, &f.err, "'y'");
  test_expect_error(berth_graph_output(f.graph, "o", 99, &f.err), BERTH_INVALID, &f.err,
                    "'o': the graph has no value 99");
  test_expect_error(berth_graph_output(f.graph, "o", BERTH_VALUE_NONE, &f.err), BERTH_INVALID, &f.err, "'o'");
  test_expect_error(berth_graph_output(f.graph, "", 0, &f.err), BERTH_INVALID, &f.err, "empty");
  expect_unchanged(&f, &before, 1);
  test_buffer_free(&before);
  finish(&f);
}

static void refuses_calls_without_handles(void **state) {
  berth_error err;
  berth_graph *graph;
  (void)state;
  berth_context *ctx = test_context();
  test_expect_error(berth_graph_create(NULL, "g", &graph, &err), BERTH_INVALID, &err, "context");
  test_expect_error(berth_graph_create(ctx, "g", NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_verify(NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_print(NULL, test_buffer_write, NULL, &err), BERTH_INVALID, &err, NULL);
  berth_graph_destroy(NULL);
  assert_int_equal(berth_graph_create(ctx, NULL, &graph, NULL), BERTH_OK);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* A name that is new in an attribute becomes a dimension of the graph: one that a later input may use too. */
static void attributes_may_bring_dimensions(void **state) {
  fixture f;
  berth_value c, e;
  float data = 1;
  berth_attr shape = DIMS("shape", {"rows", 0}, {NULL, 3});
  (void)state;
  start(&f);
  assert_int_equal(berth_graph_constant(f.graph, "c", BERTH_F32, BERTH_SHAPE(1), &data, 4, &c, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_add(f.graph, "expand", &c, 1, &shape, 1, &e, 1, &f.err), BERTH_OK);
  check_value(&f, e, "f32 rows, 3");
  berth_value x = add_input(&f, "x", "f32 rows, 3"), sum;
  const berth_value in[] = {x, e};
  assert_int_equal(berth_graph_add(f.graph, "add", in, 2, NULL, 0, &sum, 1, &f.err), BERTH_OK);
  assert_int_equal(berth_graph_output(f.graph, "y", sum, &f.err), BERTH_OK);
  if (berth_graph_verify(f.graph, &f.err) != BERTH_OK) fail_msg("%s", f.err.message);
  graph_round_trip(f.graph);
  assert_int_equal(berth_graph_n_dims(f.graph), 1);
  finish(&f);
}

/* Rewriting takes the first number that is free, and finds it without trying all those before: trying them all would
 * take 800 million lookups here. */
static void numbered_names_are_found_at_once(void **state) {
  enum {
    NAMES = 40000
  };
  fixture f;
  char name[256], want[32];
  (void)state;
  start(&f);
  const berth_value w = add_input(&f, "w", "f32 2, 2");
  berth_value third = BERTH_VALUE_NONE;
  for (uint32_t i = 1; i <= NAMES; i++) {
    snprintf(want, sizeof want, i == 1 ? "w#p" : "w#p.%u", i);
    berth__rewrite_name(f.graph, w, "#p", name, sizeof name);
    assert_string_equal(name, want);
    berth__rewrite_name(f.graph, w, "#p", name, sizeof name); /* it is still free: nobody took it */
    assert_string_equal(name, want);
    const berth_value value = add_input(&f, name, "f32 2, 2");
    if (i == 3) third = value;
  }
  assert_int_equal(berth_graph_rename(f.graph, third, "other", &f.err), BERTH_OK);
  berth__rewrite_name(f.graph, w, "#p", name, sizeof name);
  assert_string_equal(name, "w#p.3");
  add_input(&f, name, "f32 2, 2");
  berth__rewrite_name(f.graph, w, "#p", name, sizeof name);
  snprintf(want, sizeof want, "w#p.%u", NAMES + 1);
  assert_string_equal(name, want);
  finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(builds_every_op),
      cmocka_unit_test(names_flow_and_are_counted),
      cmocka_unit_test(unknown_dimensions_have_no_name),
      cmocka_unit_test(made_up_names_are_free),
      cmocka_unit_test(operand_and_result_may_share_a_variable),
      cmocka_unit_test(renames),
      cmocka_unit_test(lists_what_it_has),
      cmocka_unit_test(refuses_wrong_nodes),
      cmocka_unit_test(refuses_wrong_inputs_and_params),
      cmocka_unit_test(refuses_wrong_constants),
      cmocka_unit_test(refuses_wrong_outputs),
      cmocka_unit_test(refuses_calls_without_handles),
      cmocka_unit_test(attributes_may_bring_dimensions),
      cmocka_unit_test(numbered_names_are_found_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
