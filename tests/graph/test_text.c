/* The text form: what is printed reads back equal, and what is wrong is refused with its line. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "graphs.h"

static int make(void **state) {
  *state = test_context();
  return 0;
}

static int drop(void **state) {
  berth_context_destroy(*state);
  return 0;
}

static const char sample[] =
    "graph \"sample\" {\n"
    "  weights \"w.safetensors\"\n"
    "  input %x : f32[batch, 4] # a comment\n"
    "  param %fc.weight : f32[4, 3]\n"
    "  const %b : f32[3] = [1, -2.5, inf]\n"
    "  const %h : u8[2] = hex \"00ff\"\n"
    "  %m = matmul(%x, %fc.weight) : f32[batch, 3]\n"
    "  %n = layer_norm(%m, _, %b) {epsilon = 1e-6}\n"
    "  %\"a b\", %c = split(%n) {axis = 1, parts = [1, 2]} : f32[batch, 1], f32[batch, 2]\n"
    "  %r = reshape(%c) {shape = [batch, 2, 1]}\n"
    "  %p = pad(%r) {pads = [0, 0, 0, 0, 0, 1], mode = \"constant\", value = -0.5}\n"
    "  output \"r\" = %p\n"
    "  output \"the \\\"rest\\\"\" = %\"a b\"\n"
    "}\n";

static void reads_a_sample(void **state) {
  berth_graph *g = graph_parse(*state, sample);
  berth_node_info node = BERTH_NODE_INFO_INIT;
  berth_value_info value = BERTH_VALUE_INFO_INIT;
  berth_error err;
  assert_string_equal(berth_graph_name(g), "sample");
  assert_string_equal(g->weights_path, "w.safetensors");
  assert_int_equal(berth_graph_n_nodes(g), 5);
  assert_int_equal(berth_graph_n_outputs(g), 2);
  assert_string_equal(berth_graph_output_name(g, 1), "the \"rest\"");
  assert_int_not_equal(berth_graph_find(g, "a b"), BERTH_VALUE_NONE);
  TEST_OK(berth_graph_node(g, 1, &node, &err));
  assert_int_equal(node.in[1], BERTH_VALUE_NONE);
  assert_true(node.attrs[1].f == 1e-6);
  TEST_OK(berth_graph_value(g, berth_graph_find(g, "b"), &value, &err));
  assert_memory_equal(value.data, ((float[]){1, -2.5f, INFINITY}), 12);
  TEST_OK(berth_graph_value(g, berth_graph_find(g, "h"), &value, &err));
  assert_memory_equal(value.data, "\x00\xff", 2);
  graph_round_trip(g);
  berth_graph_destroy(g);
}

/* ---- Constants ------------------------------------------------------------------------------------------------ */

static void check_constant(berth_context *ctx, berth_type type, const void *data, int64_t n) {
  berth_graph *g;
  berth_value c;
  berth_error err;
  TEST_OK(berth_graph_create(ctx, "c", &g, &err));
  TEST_OK(berth_graph_constant(g, "c", type, BERTH_SHAPE(n), data, (size_t)n * berth_type_size(type), &c, &err));
  TEST_OK(berth_graph_output(g, "c", c, &err));
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static void keeps_every_bit_of_constants(void **state) {
  const float f32[] = {0.0f, -0.0f, INFINITY, -INFINITY, 0.1f, 1e-45f, 3.4028235e38f, 16777217.0f, -1.5e-7f};
  const double f64[] = {0.0, -0.0, INFINITY, -INFINITY, 0.1, 5e-324, 1.7976931348623157e308, 9007199254740993.0, -1e22};
  const int64_t i64[] = {INT64_MIN, INT64_MAX, 0, -1, 1};
  const int32_t i32[] = {INT32_MIN, INT32_MAX};
  const uint32_t u32[] = {0, UINT32_MAX, 2147483648u};
  const int16_t i16[] = {INT16_MIN, INT16_MAX};
  const int8_t i8[] = {INT8_MIN, INT8_MAX};
  const uint8_t u8[] = {0, 255}, booleans[] = {0, 1, 1};
  check_constant(*state, BERTH_F32, f32, 9);
  check_constant(*state, BERTH_F64, f64, 9);
  check_constant(*state, BERTH_I64, i64, 5);
  check_constant(*state, BERTH_I32, i32, 2);
  check_constant(*state, BERTH_U32, u32, 3);
  check_constant(*state, BERTH_U16, (uint16_t[]){0, 65535, 7}, 3);
  check_constant(*state, BERTH_U64, (uint64_t[]){0, INT64_MAX, 7}, 3);
  check_constant(*state, BERTH_U64, (uint64_t[]){0, UINT64_MAX, (uint64_t)1 << 63}, 3); /* as hex */
  check_constant(*state, BERTH_I16, i16, 2);
  check_constant(*state, BERTH_I8, i8, 2);
  check_constant(*state, BERTH_U8, u8, 2);
  check_constant(*state, BERTH_BOOL, booleans, 3);
  const uint32_t nans[] = {0x7fc00000, 0xffc00001, 0x7f800001, 0x3f800000, 0xffffffff};
  const uint64_t wide_nans[] = {0x7ff8000000000000, 0xfff0000000000001, 0};
  check_constant(*state, BERTH_F32, nans, 5);
  check_constant(*state, BERTH_F64, wide_nans, 3);
}

/* All patterns, 32 at a time, so that most go through decimal digits. */
static void keeps_every_half(void **state) {
  for (uint32_t first = 0; first < 65536; first += 32) {
    uint16_t half[32];
    for (uint32_t i = 0; i < 32; i++) half[i] = (uint16_t)(first + i);
    check_constant(*state, BERTH_F16, half, 32);
    check_constant(*state, BERTH_BF16, half, 32);
  }
}

static void keeps_random_floats(void **state) {
  uint64_t seed = 3;
  for (int round = 0; round < 200; round++) {
    uint64_t wide[40];
    for (int i = 0; i < 40; i++) wide[i] = test_random(&seed);
    check_constant(*state, BERTH_F64, wide, 40);
    check_constant(*state, BERTH_F32, wide, 64);
    check_constant(*state, BERTH_I64, wide, 40);
  }
}

/* A bool byte other than 0 and 1 comes from a caller's memory. */
static void keeps_odd_booleans(void **state) {
  const uint8_t odd[] = {0, 1, 2, 255};
  check_constant(*state, BERTH_BOOL, odd, 4);
}

static void keeps_large_empty_and_scalar_constants(void **state) {
  berth_graph *g;
  berth_value c;
  berth_error err;
  static float many[1000];
  uint64_t seed = 1;
  for (int i = 0; i < 1000; i++) many[i] = test_random_f32(&seed);
  check_constant(*state, BERTH_F32, many, 64);
  check_constant(*state, BERTH_F32, many, 65);
  check_constant(*state, BERTH_F32, many, 1000);
  check_constant(*state, BERTH_F32, many, 0);
  TEST_OK(berth_graph_create(*state, "", &g, &err));
  TEST_OK(berth_graph_constant(g, "scalar", BERTH_F32, berth_shape_fixed(0, NULL), many, 4, &c, &err));
  TEST_OK(berth_graph_constant(g, "empty", BERTH_I64, BERTH_SHAPE(3, 0, 2), NULL, 0, &c, &err));
  TEST_OK(berth_graph_constant(g, "vast", BERTH_F64, BERTH_SHAPE(0, INT64_C(1) << 40), NULL, 0, &c, &err));
  TEST_OK(berth_graph_output(g, "o", c, &err));
  graph_round_trip(g);
  berth_graph_destroy(g);
}

/* ---- Names ---------------------------------------------------------------------------------------------------- */

static const char *const nasty[] = {"a b", "\"",        "\\",       "%",        "%x", "\xc3\xa9\xe2\x9c\x93",
                                    "\n",  "\t\r",      "\x01\x7f", "\xff\xfe", "_",  "0",
                                    "-",   "a/b:c.d-e", "graph",    "#",        "{}", "hex",
                                    "nan", "a\\x41",    "//",       "'"};
#define N_NASTY (sizeof nasty / sizeof nasty[0])

static void keeps_any_name(void **state) {
  berth_graph *g;
  berth_error err;
  TEST_OK(berth_graph_create(*state, "\"\\\n\xc3\xa9", &g, &err));
  berth_value values[N_NASTY], x = 0;
  for (size_t i = 0; i < N_NASTY; i++) {
    TEST_OK(berth_graph_input(g, nasty[i], BERTH_F32, BERTH_SHAPE(2), &values[i], &err));
    TEST_OK(berth_graph_output(g, nasty[i], values[i], &err));
  }
  for (size_t i = 0; i < N_NASTY; i++) {
    TEST_OK(berth_graph_add(g, "relu", &values[i], 1, NULL, 0, &x, 1, &err));
    char name[64];
    snprintf(name, sizeof name, "%s!", nasty[i]);
    TEST_OK(berth_graph_rename(g, x, name, &err));
  }
  TEST_OK(berth__graph_set_weights_path(g, "a \"b\"\\c", &err));
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static const char *const nasty_dims[] = {"inf",   "nan", "0x",  "a b", "1",  "-1",       "-",   "e",
                                         "batch", "B.C", "f32", "_",   "\"", "\xc3\xa9", "Inf", "-inf",
                                         "1e5",   "%n",  "hex", "INF", "\n", "]"};
#define N_NASTY_DIMS (sizeof nasty_dims / sizeof nasty_dims[0])

static void keeps_any_dimension_name(void **state) {
  berth_error err;
  for (size_t i = 0; i < N_NASTY_DIMS; i++) {
    berth_graph *g;
    berth_value x, y;
    const berth_dim dims[] = {{nasty_dims[i], 0}, {NULL, 2}, {NULL, -1}};
    const berth_attr shape = berth_attr_dims("shape", dims, 3);
    TEST_OK(berth_graph_create(*state, "d", &g, &err));
    TEST_OK(berth_graph_input(g, "x", BERTH_F32, (berth_shape){2, {{nasty_dims[i], 0}, {NULL, 4}}}, &x, &err));
    TEST_OK(berth_graph_add(g, "reshape", &x, 1, &shape, 1, &y, 1, &err));
    TEST_OK(berth_graph_output(g, "y", y, &err));
    graph_round_trip(g);
    berth_graph_destroy(g);
  }
}

/* ---- Attributes ----------------------------------------------------------------------------------------------- */

static berth_status same_as_operand(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static berth_status no_kernel(const berth_op_call *call, berth_error *err) {
  (void)call, (void)err;
  return BERTH_OK;
}

static void register_all_kinds(berth_context *ctx) {
  static const int64_t ints[] = {1, 2};
  static const double floats[] = {0.5};
  static const berth_dim dims[] = {{"n", 0}};
  const berth_attr attrs[] = {
      berth_attr_int("i", 3),         berth_attr_float("f", 0.25),        berth_attr_string("s", "text"),
      berth_attr_ints("is", ints, 2), berth_attr_floats("fs", floats, 1), berth_attr_dims("ds", dims, 1)};
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  berth_error err;
  desc.name = "test.kinds";
  desc.min_in = desc.max_in = 1;
  desc.attrs = attrs;
  desc.n_attrs = 6;
  desc.infer = same_as_operand;
  desc.kernel = no_kernel;
  TEST_OK(berth_op_register(ctx, &desc, &err));
}

static void check_attrs(berth_context *ctx, const berth_attr *attrs, size_t n) {
  berth_graph *g;
  berth_value x, y;
  berth_error err;
  TEST_OK(berth_graph_create(ctx, "a", &g, &err));
  TEST_OK(berth_graph_input(g, "x", BERTH_F32, (berth_shape){1, {{"n", 0}}}, &x, &err));
  TEST_OK(berth_graph_add(g, "test.kinds", &x, 1, attrs, n, &y, 1, &err));
  TEST_OK(berth_graph_output(g, "y", y, &err));
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static void keeps_every_kind_of_attribute(void **state) {
  register_all_kinds(*state);
  const double odd[] = {0.0, -0.0, INFINITY, -INFINITY, 1e300, 5e-324, 0.1, 3.0, -1e22};
  for (size_t i = 0; i < 9; i++) check_attrs(*state, (berth_attr[]){berth_attr_float("f", odd[i])}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_float("f", (double)NAN)}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_float("f", -(double)NAN)}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_floats("fs", odd, 9)}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_floats("fs", (double[]){(double)NAN, -(double)NAN, 1}, 3)}, 1);
  check_attrs(
      *state,
      (berth_attr[]){berth_attr_floats("fs", NULL, 0), berth_attr_ints("is", NULL, 0), berth_attr_dims("ds", NULL, 0)},
      3);
  check_attrs(*state, (berth_attr[]){berth_attr_ints("is", (int64_t[]){INT64_MIN, INT64_MAX, 0}, 3)}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_int("i", INT64_MIN)}, 1);
  check_attrs(*state,
              (berth_attr[]){berth_attr_int("f", 7), berth_attr_ints("fs", (int64_t[]){7, 8}, 2),
                             berth_attr_ints("ds", (int64_t[]){7, -1}, 2)},
              3);
  for (size_t i = 0; i < N_NASTY; i++) check_attrs(*state, (berth_attr[]){berth_attr_string("s", nasty[i])}, 1);
  check_attrs(*state, (berth_attr[]){berth_attr_string("s", "")}, 1);
  check_attrs(*state,
              (berth_attr[]){berth_attr_dims("ds", (berth_dim[]){{"n", 9}, {NULL, 5}, {"inf", 1}, {"m", 0}}, 4)}, 1);
  berth_attr with_count = berth_attr_int("i", 5);
  with_count.count = 77;
  check_attrs(*state, &with_count, 1);
  check_attrs(*state, NULL, 0);
}

/* Ops of users may have names that are no words. */
static void keeps_any_name_of_an_op(void **state) {
  for (size_t i = 0; i < N_NASTY; i++) {
    berth_graph *g;
    berth_value x, y;
    berth_error err;
    const berth_attr declared = berth_attr_int(nasty[i], 1), given = berth_attr_int(nasty[i], 2);
    berth_op_desc desc = BERTH_OP_DESC_INIT;
    desc.name = nasty[i];
    desc.min_in = desc.max_in = 1;
    desc.attrs = &declared;
    desc.n_attrs = 1;
    desc.infer = same_as_operand;
    desc.kernel = no_kernel;
    TEST_OK(berth_op_register(*state, &desc, &err));
    TEST_OK(berth_graph_create(*state, "o", &g, &err));
    TEST_OK(berth_graph_input(g, "x", BERTH_F32, BERTH_SHAPE(2), &x, &err));
    TEST_OK(berth_graph_add(g, nasty[i], &x, 1, &given, 1, &y, 1, &err));
    TEST_OK(berth_graph_output(g, "y", y, &err));
    graph_round_trip(g);
    berth_graph_destroy(g);
  }
}

/* ---- Order ---------------------------------------------------------------------------------------------------- */

static void sorts_statements(void **state) {
  berth_graph *g =
      graph_parse(*state,
                  "graph \"o\" { output \"z\" = %z\n %z = add(%y, %c)\n %y = relu(%x)\n const %c : f32[]=[1]\n"
                  " %e = expand(%c) {shape = [n, 3]}\n input %x : f32[n, 3] output \"e\" = %e }");
  berth_error err;
  TEST_OK(berth_graph_verify(g, &err));
  assert_true(berth_graph_find(g, "y") < berth_graph_find(g, "z"));
  graph_round_trip(g);
  berth_graph_destroy(g);
}

static void sorting_is_stable(void **state) {
  berth_graph *g = graph_parse(*state,
                               "graph \"o\" { input %x : f32[1] %d=relu(%x) %b=relu(%x) %a=relu(%b) %c=relu(%x)\n"
                               "output \"o\" = %a }");
  assert_int_equal(berth_graph_find(g, "x"), 0);
  assert_int_equal(berth_graph_find(g, "d"), 1);
  assert_int_equal(berth_graph_find(g, "b"), 2);
  assert_int_equal(berth_graph_find(g, "a"), 3);
  assert_int_equal(berth_graph_find(g, "c"), 4);
  berth_graph_destroy(g);
}

static void takes_comments_and_spacing(void **state) {
  berth_graph *a = graph_parse(*state, "# first\r\ngraph\t\"g\"{input%x : f32[2]#c\n%y=relu(%x)output\"y\"=%y}# end");
  berth_graph *b = graph_parse(
      *state, "graph \"g\" {\n  input %x : f32 [ 2 ]\n  %y = relu ( %x )\n : f32[2] output \"y\" = %y\n}\n");
  assert_true(berth_graph_equal(a, b));
  berth_graph_destroy(a);
  berth_graph_destroy(b);
}

static void equality_sees_every_difference(void **state) {
  static const char *const others[] = {
      "graph \"h\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %w : f32[n] const %c : f32[1]=[1] %y=add(%w,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[m] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[4] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { param %x : f32[4] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f64[n] const %c : f64[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[2] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%c,%x) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=sub(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=-1} output \"z\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"y\"=%z }",
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%y }",
      ("graph \"g\" { weights \"w\" input %x : f32[n] const %c : f32[1]=[1]"
       " %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }"),
      "graph \"g\" { const %c : f32[1]=[1] input %x : f32[n] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }",
  };
  const char *text =
      "graph \"g\" { input %x : f32[n] const %c : f32[1]=[1] %y=add(%x,%c) %z=softmax(%y) {axis=0} output \"z\"=%z }";
  berth_graph *a = graph_parse(*state, text), *b = graph_parse(*state, text);
  assert_true(berth_graph_equal(a, b));
  berth_graph_destroy(b);
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    b = graph_parse(*state, others[i]);
    if (berth_graph_equal(a, b) || berth_graph_equal(b, a)) fail_msg("equal to: %s", others[i]);
    berth_graph_destroy(b);
  }
  berth_graph_destroy(a);
}

/* ---- Errors --------------------------------------------------------------------------------------------------- */

static const struct {
  const char *text, *part;
  berth_status status;
} malformed[] = {
    {"", "line 1: expected the word graph but the text ends", BERTH_MALFORMED},
    {"\n\ngrph", "line 3: expected the word graph but found 'grph'", BERTH_MALFORMED},
    {"graph g {}", "line 1: expected the graph's name in quotes", BERTH_MALFORMED},
    {"graph \"g\"", "line 1: expected '{' but the text ends", BERTH_MALFORMED},
    {"graph \"g\" {", "line 1", BERTH_MALFORMED},
    {"graph \"g\" {}", "no output", BERTH_INVALID},
    {"graph \"g\" {\n} }", "line 2: expected the end", BERTH_MALFORMED},
    {"graph \"g\n\" {}", "line 1: a string is not closed", BERTH_MALFORMED},
    {"graph \"\\q\" {}", "line 1: a string has an escape", BERTH_MALFORMED},
    {"graph \"\\x0\" {}", "line 1: a string has an escape", BERTH_MALFORMED},
    {"graph \"\\x00\" {}", "zero byte", BERTH_MALFORMED},
    {"graph \"g\" {\n  @\n}", "line 2: unexpected character 0x40", BERTH_MALFORMED},
    {"graph \"g\" {\n  \xff\n}", "line 2: unexpected character 0xff", BERTH_MALFORMED},
    {"graph \"g\" {\n  foo\n}", "line 2: expected input, param, const, state, update, output or %name but found 'foo'",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  weights \"a\"\n weights \"b\"\n}", "line 3: weights are named twice", BERTH_MALFORMED},
    {"graph \"g\" {\n  weights w\n}", "line 2: expected a file's name", BERTH_MALFORMED},
    {"graph \"g\" {\n  input x : f32[1]\n}", "line 2: expected a value such as %x", BERTH_MALFORMED},
    {"graph \"g\" {\n  input % : f32[1]\n}", "line 2: a name must follow %", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %\"\" : f32[1]\n}", "line 2: a name must follow %", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x f32[1]\n}", "line 2: expected ':'", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f31[1]\n}", "line 2: expected a type such as f32 but found 'f31'", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : none[1]\n}", "line 2: expected a type", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32\n}", "expected '['", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1\n}", "expected ','", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1,]\n}", "line 2: expected an extent", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[,]\n}", "line 2: expected an extent", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1.5]\n}", "line 2: expected an integer", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[0x10]\n}", "line 2: expected an integer", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[-3]\n}", "line 2: input 'x': dimension 0 is -3", BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[\"?\"]\n}", "line 2: input 'x'", BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[9223372036854775808]\n}", "line 2: 9223372036854775808 does not fit",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[4611686018427387904, 4611686018427387904]\n}", "line 2: input 'x': its size",
     BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1,1,1,1,1,1,1,1,1]\n}", "line 2: a shape has more than 8", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  input %x : f32[1]\n}", "line 3: 'x' is already defined in line 2",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  param %x : f32[n]\n}", "line 2: param 'x' has the named dimension 'n'", BERTH_INVALID},
    {"graph \"g\" {\n  const %c : f32[n] = [1]\n}", "line 2: constant 'c' needs fixed extents", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[2] = [1]\n}", "line 2", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = [1, 2]\n}", "line 2: there are more than the 1 numbers", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[99999999999] = [1]\n}", "line 2: constant 'c' has fewer numbers",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[9999999999, 9999999999] = [1]\n}", "line 2: constant 'c'", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : i8[1] = [128\n]\n}", "line 2: 128 does not fit in i8", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : u8[1] = [-1]\n}", "-1 does not fit in u8", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : u32[1] = [4294967296]\n}", "does not fit in u32", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : u16[1] = [65536]\n}", "does not fit in u16", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : u64[1] = [-1]\n}", "does not fit in u64", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : bool[1] = [2]\n}", "2 does not fit in bool", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : i64[1] = [1.5]\n}", "line 2: expected an integer", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : i64[1] = [-9223372036854775809]\n}", "does not fit in 64 bits", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = [1.2.3]\n}", "line 2: expected a number but found '1.2.3'", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = [x]\n}", "line 2: expected a number but found 'x'", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = hex 00\n}", "line 2: expected a string of hex digits", BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = hex \"00\"\n}", "line 2: 2 hex digits are given, the shape needs 8",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  const %c : f32[1] = hex \"000000g0\"\n}", "line 2: byte 3 is not hex", BERTH_MALFORMED},
    {"graph \"g\" {\n  %y = relu(%x)\n}", "line 2: node 'y' (relu) reads 'x', which nothing defines", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = rleu(%x)\n}", "line 3: node 'y': there is no op 'rleu'",
     BERTH_UNSUPPORTED},
    {"graph \"g\" {\n  input %x : f32[1]\n\n  %y = relu(%x, %x)\n}", "line 4: node 'y' (relu): 2 operands",
     BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = relu(%x,)\n}", "line 3: expected a value such as %x", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = relu(_)\n}", "line 3: node 'y' (relu): operand 0 is left out",
     BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y, %z = relu(%x)\n}", "line 3: node 'y' (relu): 2 results", BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y, %y = split(%x)\n}", "line 3: 'y' is already defined in line 3",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[2]\n  %y, %z = split(%x) : f32[1]\n  output \"y\" = %y\n}",
     "line 3: 'y' has 2 results but 1 type", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = relu(%x) : f32[2]\n}",
     "line 3: 'y' is written as another type or shape", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = relu(%x) : f16[1]\n}", "line 3: 'y'", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[n]\n  %y = relu(%x) : f32[m]\n}", "line 3: 'y'", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = softmax(%x) {axis = 0.5}\n}",
     "line 3: node 'y' (softmax): attribute 'axis'", BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = softmax(%x) {axis}\n}", "line 3: expected '='", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = softmax(%x) {axis = }\n}", "line 3: expected an integer",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = softmax(%x) {axis = 1 axis = 2}\n}", "line 3: expected ','",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = softmax(%x) {axis = 0, axis = 0}\n}", "'axis' is given twice",
     BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = reshape(%x) {shape = [n, 0.5]}\n}", "line 3: list 'shape' mixes",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = reshape(%x) {shape = [1, [2]]}\n}", "line 3", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %y = reshape(%x) {shape = [\"\"]}\n}", "line 3: node 'y' (reshape)",
     BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  %x = relu(%x)\n}", "line 3: 'x' is already defined", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  output y = %x\n}", "line 3: expected an output's name in quotes",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  output \"\" = %x\n}", "line 3", BERTH_INVALID},
    {"graph \"g\" {\n  input %x : f32[1]\n  output \"y\" = %z\n}",
     "line 3: output 'y' names 'z', which nothing defines", BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  output \"y\" = %x\n  output \"y\" = %x\n}",
     "line 4: the graph already has an output 'y'", BERTH_INVALID},
    {"graph \"g\" {\n  %y = relu(%y)\n  output \"y\" = %y\n}", "line 2: node 'y' (relu) depends on itself",
     BERTH_MALFORMED},
    {"graph \"g\" {\n  input %x : f32[1]\n  %q = relu(%a)\n  %a = add(%x, %c)\n  %b = relu(%a)\n  %c = relu(%b)\n  "
     "output \"y\" = %q\n}",
     "the graph has a cycle", BERTH_MALFORMED},
};

static void refuses_malformed_text(void **state) {
  for (size_t i = 0; i < sizeof malformed / sizeof malformed[0]; i++)
    graph_parse_fails(*state, malformed[i].text, malformed[i].status, malformed[i].part);
}

/* q is after the cycle, not on it. */
static void names_a_node_on_the_cycle(void **state) {
  berth_graph *g;
  berth_error err;
  const char *text =
      "graph \"g\" {\n %q = relu(%a)\n input %x : f32[1]\n %a = add(%x, %c)\n %b = relu(%a)\n %c = relu(%b)\n}";
  test_expect_error(berth_graph_parse(*state, text, strlen(text), &g, &err), BERTH_MALFORMED, &err, "cycle");
  assert_null(strstr(err.message, "'q'"));
}

static void refuses_calls_without_arguments(void **state) {
  berth_graph *g;
  berth_error err;
  test_expect_error(berth_graph_parse(NULL, sample, 3, &g, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_parse(*state, NULL, 3, &g, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_parse(*state, sample, 3, NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_graph_parse(*state, NULL, 0, &g, &err), BERTH_MALFORMED, &err, "text ends");
  test_expect_error(berth_graph_parse(*state, "graph \"a\0b\" {}", 14, &g, &err), BERTH_MALFORMED, &err, "zero byte");
}

static void survives_every_cut_and_every_changed_byte(void **state) {
  size_t size = sizeof sample - 1;
  uint64_t seed = 5;
  for (size_t cut = 0; cut < size; cut += cut + 40 < size ? test_step() : 1) {
    berth_graph *g;
    char *exact = malloc(cut + 1); /* the sanitizer sees a read past the end */
    assert_non_null(exact);
    memcpy(exact, sample, cut);
    berth_error err = {BERTH_OK, ""};
    berth_status status = berth_graph_parse(*state, exact, cut, &g, &err);
    if (cut < size - 1) assert_true(status == BERTH_MALFORMED && err.message[0] != '\0');
    berth_graph_destroy(g);
    memcpy(exact, sample, cut);
    if (cut != 0) exact[cut - 1] = (char)test_random(&seed);
    berth_graph_parse(*state, exact, cut, &g, NULL);
    berth_graph_destroy(g);
    free(exact);
  }
}

static void stops_when_writing_fails_helper(berth_status want, const berth_graph *g, berth_write_fn write) {
  berth_error err;
  test_expect_error(berth_graph_print(g, write, NULL, &err), want, &err, NULL);
}

static berth_status refuse(void *user, const char *text, size_t size) {
  (void)user, (void)text, (void)size;
  return BERTH_IO;
}

static void stops_when_writing_fails(void **state) {
  berth_graph *g = graph_parse(*state, sample);
  stops_when_writing_fails_helper(BERTH_IO, g, refuse);
  stops_when_writing_fails_helper(BERTH_INVALID, g, NULL);
  berth_graph_destroy(g);
}

/* Of the processor's time: a busy machine does not count. */
static double seconds(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void reads_a_long_chain(void **state) {
  const int n = (int)test_share(100000);
  char *all = malloc((size_t)n * 48 + 100), *at = all;
  assert_non_null(all);
  at += sprintf(at, "graph \"chain\" {\n");
  for (int i = n; i > 0; i--) at += sprintf(at, "%%v%d = relu(%%v%d)\n", i, i - 1); /* the last one first */
  at += sprintf(at, "input %%v0 : f32[n]\noutput \"y\" = %%v%d\n}\n", n);
  double start = seconds();
  berth_graph *g = graph_parse(*state, all);
  assert_int_equal(berth_graph_n_nodes(g), n);
  graph_round_trip(g);
  double took = seconds() - start;
  if (took > 60) fail_msg("three passes over %d nodes took %.1f s", n, took);
  berth_graph_destroy(g);
  free(all);
}

/* One node with very many results, each of them an output: nothing is searched name by name. */
static void reads_very_many_results(void **state) {
  const int n = (int)test_share(100000);
  char *all = malloc((size_t)n * 48 + 100), *at = all;
  assert_non_null(all);
  at += sprintf(at, "graph \"wide\" {\ninput %%x : f32[%d]\n", n);
  for (int i = 0; i < n; i++) at += sprintf(at, i == 0 ? "%%v%d" : ", %%v%d", i);
  at += sprintf(at, " = split(%%x) {axis = 0}\n");
  for (int i = 0; i < n; i++) at += sprintf(at, "output \"%d\" = %%v%d\n", i, i);
  sprintf(at, "}\n");
  double start = seconds();
  berth_graph *g = graph_parse(*state, all);
  assert_int_equal(berth_graph_n_outputs(g), n);
  graph_round_trip(g);
  double took = seconds() - start;
  if (took > 60) fail_msg("%d results and outputs took %.1f s", n, took);
  berth_graph_destroy(g);
  free(all);
}

static void reads_long_tokens_and_deep_brackets(void **state) {
  size_t n = 1 << 20;
  char *text = malloc(n + 100);
  assert_non_null(text);
  memset(text, '[', n);
  text[n] = '\0';
  graph_parse_fails(*state, text, BERTH_MALFORMED, "line 1");
  memset(text, '"', n);
  graph_parse_fails(*state, text, BERTH_MALFORMED, "line 1");
  memset(text, 'a', n);
  graph_parse_fails(*state, text, BERTH_MALFORMED, "line 1");
  memset(text, '\n', n);
  graph_parse_fails(*state, text, BERTH_MALFORMED, "line 1048577");
  strcpy(text, "graph \"g\" {");
  memset(text + 11, '%', n - 11);
  graph_parse_fails(*state, text, BERTH_MALFORMED, "line 1");
  free(text);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(reads_a_sample),
      TEST(keeps_every_bit_of_constants),
      TEST(keeps_every_half),
      TEST(keeps_random_floats),
      TEST(keeps_odd_booleans),
      TEST(keeps_large_empty_and_scalar_constants),
      TEST(keeps_any_name),
      TEST(keeps_any_dimension_name),
      TEST(keeps_every_kind_of_attribute),
      TEST(keeps_any_name_of_an_op),
      TEST(sorts_statements),
      TEST(sorting_is_stable),
      TEST(takes_comments_and_spacing),
      TEST(equality_sees_every_difference),
      TEST(refuses_malformed_text),
      TEST(names_a_node_on_the_cycle),
      TEST(refuses_calls_without_arguments),
      TEST(survives_every_cut_and_every_changed_byte),
      TEST(stops_when_writing_fails),
      TEST(reads_a_long_chain),
      TEST(reads_very_many_results),
      TEST(reads_long_tokens_and_deep_brackets),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
