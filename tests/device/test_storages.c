/* How values are stored in the arena of a device, which only the plan shows. BERTH_TEST_DEVICE names a GPU;
 * without it, it is "interp". */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/half.h"
#include "plan/plan.h"
#include "support.h"

static berth_graph *graph_of(berth_context *ctx, const char *statements) {
  char text[4096];
  berth_error err;
  berth_graph *graph;
  snprintf(text, sizeof text, "graph \"g\" { %s }", statements);
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  return graph;
}

static berth_plan *plan_on(const berth_graph *graph, const char *device, uint32_t flags) {
  berth_error err;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  berth_plan *plan;
  desc.device = device;
  desc.flags |= flags;
  TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
  TEST_OK(berth_plan_check(plan, &err));
  return plan;
}

static berth_slot slot_named(const berth_plan *plan, const char *name) {
  berth_slot slot = BERTH_SLOT_INIT;
  berth_error err;
  TEST_OK(berth_plan_slot(plan, berth_graph_find(berth_plan_graph(plan), name), &slot, &err));
  return slot;
}

static void gpus_keep_narrow_types(void **state) {
  static const struct {
    const char *type;
    berth_type own, uniform;
  } rows[] = {{"f32", BERTH_F32, BERTH_F32},   {"f64", BERTH_F32, BERTH_F32}, {"f16", BERTH_F16, BERTH_F32},
              {"bf16", BERTH_BF16, BERTH_F32}, {"i8", BERTH_I8, BERTH_I32},   {"u8", BERTH_U8, BERTH_U32},
              {"bool", BERTH_BOOL, BERTH_U32}, {"i16", BERTH_I16, BERTH_I32}, {"u16", BERTH_U16, BERTH_U32},
              {"i64", BERTH_I32, BERTH_I32},   {"u64", BERTH_U32, BERTH_U32}};
  berth_context *ctx = test_context();
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[128];
    snprintf(text, sizeof text, "input %%x : %s[10] %%y = tile(%%x) {repeats = [2]} output \"y\" = %%y", rows[i].type);
    berth_graph *graph = graph_of(ctx, text);
    for (int uniform = 0; uniform < 2; uniform++) {
      berth_plan *plan = plan_on(graph, "interp", uniform ? BERTH_PLAN_F32_UNIFORM : 0);
      const berth_type want = uniform ? rows[i].uniform : rows[i].own;
      assert_int_equal(slot_named(plan, "y").storage.type, want);
      assert_int_equal(slot_named(plan, "y").size, 20 * berth_type_size(want));
      berth_plan_destroy(plan);
    }
    berth_plan *plan = plan_on(graph, "cpu", 0);
    assert_int_equal(slot_named(plan, "x").storage.type, berth_type_from_name(rows[i].type));
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
}

static uint64_t activations_of(const berth_graph *graph, const char *device) {
  berth_plan *plan = plan_on(graph, device, 0);
  const uint64_t size = test_plan_info(plan).activations_size;
  berth_plan_destroy(plan);
  return size;
}

/* A block of a network in a type of choice: its activations alone count. */
static berth_graph *network(berth_context *ctx, const char *type) {
  char text[1024];
  snprintf(text, sizeof text,
           "input %%x : %s[4, 64, 256] param %%a : %s[256, 512] param %%b : %s[512, 256] param %%g : %s[256] "
           "%%n = layer_norm(%%x, %%g) %%h = matmul(%%n, %%a) %%r = gelu(%%h) %%p = matmul(%%r, %%b) "
           "%%s = add(%%p, %%x) %%m = softmax(%%s) output \"m\" = %%m",
           type, type, type, type);
  return graph_of(ctx, text);
}

static void half_the_width_is_half_the_activations(void **state) {
  berth_context *ctx = test_context();
  berth_graph *wide = network(ctx, "f32"), *half = network(ctx, "f16"), *brain = network(ctx, "bf16");
  static const char *const devices[] = {"cpu", "interp"};
  (void)state;
  for (size_t d = 0; d < 2; d++) {
    const uint64_t whole = activations_of(wide, devices[d]);
    assert_true(whole >= 4 * 64 * (256 + 512) * 4);
    assert_in_range(activations_of(half, devices[d]), whole / 2 - 256, whole / 2 + 256);
    assert_in_range(activations_of(brain, devices[d]), whole / 2 - 256, whole / 2 + 256);
  }
  berth_graph_destroy(wide);
  berth_graph_destroy(half);
  berth_graph_destroy(brain);
  berth_context_destroy(ctx);
}

/* ---- Runs ---- */

static berth_session *session_on(const berth_graph *graph, const char *device, uint32_t flags) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err;
  berth_session *session;
  plan.flags |= flags;
  desc.plan = &plan;
  desc.device = device;
  TEST_OK(berth_session_create(graph, &desc, &session, &err));
  return session;
}

/* Slices that begin inside a word, parts of a concat that do, results over operands, all in bytes: on the device as on
 * the CPU, to the byte. */
static void bytes_inside_words_come_out_alike(void **state) {
  static const char *const text =
      "input %x : u8[3, 7] %a = narrow(%x) {axes = [1], starts = [1], ends = [6]} "
      "%b = narrow(%x) {axes = [0], starts = [1], ends = [2]} %c = add(%b, %b) %d = tile(%c) {repeats = [3, 1]} "
      "%e = concat(%d, %a) {axis = 1} %f = reshape(%e) {shape = [36]} %g = narrow(%f) {starts = [3], ends = [30]} "
      "%h = add(%g, %g) %i = concat(%h, %f, %g) {axis = 0} %j = transpose(%x) %k = reshape(%j) {shape = [21]} "
      "%l = concat(%k, %i) {axis = 0} %m = max(%l, %l) output \"l\" = %m output \"h\" = %h";
  berth_context *ctx = test_context();
  berth_graph *graph = graph_of(ctx, text);
  uint8_t x[21], got[2][111], h[2][27];
  berth_error err;
  (void)state;
  for (int i = 0; i < 21; i++) x[i] = (uint8_t)(i * 37 + 11);
  for (uint32_t flags = 0; flags < 3; flags++) {
    static const uint32_t each[] = {0, BERTH_PLAN_NO_REUSE, BERTH_PLAN_NO_STRIDED | BERTH_PLAN_NO_INPLACE};
    for (int d = 0; d < 2; d++) {
      berth_session *session = session_on(graph, d == 0 ? "cpu" : test_gpu(), each[flags]);
      TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
      TEST_OK(berth_session_run(session, &err));
      TEST_OK(berth_session_read(session, "l", got[d], sizeof got[d], &err));
      TEST_OK(berth_session_read(session, "h", h[d], sizeof h[d], &err));
      berth_session_destroy(session);
    }
    assert_memory_equal(got[0], got[1], sizeof got[0]);
    assert_memory_equal(h[0], h[1], sizeof h[0]);
  }
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* Every f32 of a spread is stored as the nearest f16 and bf16, to the bit. */
/* Weights that a graph makes f32 of keep their 16 bits, for products alone. */
static void weights_keep_their_width(void **state) {
  static const char *const types[] = {"f16", "bf16"};
  static const char *const readers[] = {"", "%z = relu(%f) output \"z\" = %z"};
  berth_context *ctx = test_context();
  (void)state;
  for (int t = 0; t < 2; t++)
    for (int other = 0; other < 2; other++)
      for (int uniform = 0; uniform < 2; uniform++) {
        char text[512];
        snprintf(text, sizeof text,
                 "input %%x : f32[1, 64] param %%w : %s[32, 64] %%f = cast(%%w) {to = \"f32\"} "
                 "%%t = transpose(%%f) {perm = [1, 0]} %%y = matmul(%%x, %%t) output \"y\" = %%y %s",
                 types[t], readers[other]);
        berth_graph *graph = graph_of(ctx, text);
        berth_plan *plan = plan_on(graph, "interp", uniform ? BERTH_PLAN_F32_UNIFORM : 0);
        const bool is_narrow = !other && !uniform;
        assert_int_equal(slot_named(plan, "f").storage.type, is_narrow ? berth_type_from_name(types[t]) : BERTH_F32);
        berth_plan_destroy(plan);
        berth_graph_destroy(graph);
      }
  berth_context_destroy(ctx);
}

/* What a node makes for products alone that round it lies so; not where somebody else reads it, or nothing is rounded.
 */
static void results_lie_as_products_round_them(void **state) {
  static const struct {
    const char *rest; /* after %n, which products read */
    berth_compute compute;
    berth_type want;
  } rows[] = {
      {"", BERTH_COMPUTE_BF16, BERTH_BF16},
      {"", BERTH_COMPUTE_F16, BERTH_F16},
      {"", BERTH_COMPUTE_TF32, BERTH_F32},
      {"", BERTH_COMPUTE_F32, BERTH_F32},
      {"output \"n\" = %n", BERTH_COMPUTE_BF16, BERTH_F32},
      {"%z = softmax(%n) {axis = -1} output \"z\" = %z", BERTH_COMPUTE_BF16, BERTH_F32},
  };
  berth_context *ctx = test_context();
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    berth_error err;
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    berth_plan *plan;
    snprintf(text, sizeof text,
             "input %%x : f32[80, 64] param %%s : f32[64] param %%v : f32[64, 96] param %%w : f32[64, 64] "
             "%%n = rms_norm(%%x, %%s) {axis = -1} %%y = matmul(%%n, %%v) %%o = matmul(%%n, %%w) "
             "output \"y\" = %%y output \"o\" = %%o %s",
             rows[i].rest);
    berth_graph *graph = graph_of(ctx, text);
    desc.device = "interp";
    desc.gpu_profile = "generic";
    desc.compute = rows[i].compute;
    TEST_OK(berth_plan_create(graph, &desc, &plan, &err));
    TEST_OK(berth_plan_check(plan, &err));
    assert_int_equal(slot_named(plan, "n").storage.type, rows[i].want);
    berth_plan_destroy(plan);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
}

static void halves_are_rounded_where_they_are_stored(void **state) {
  enum {
    N = 4096
  };
  static float x[N];
  static uint16_t half[N], brain[N];
  berth_context *ctx = test_context();
  berth_graph *graph = graph_of(ctx,
                                "input %x : f32[4096] %h = cast(%x) {to = \"f16\"} %b = cast(%x) {to = \"bf16\"} "
                                "%i = neg(%h) %j = neg(%i) output \"h\" = %j output \"b\" = %b");
  berth_session *session = session_on(graph, test_gpu(), 0);
  berth_error err;
  uint64_t seed = 3;
  (void)state;
  for (int i = 0; i < N; i++) { /* of every exponent that f16 has, and some beyond */
    const uint32_t exponent = 96 + (uint32_t)i % 50,
                   bits = exponent << 23 | ((uint32_t)test_random(&seed) & 0x807fffff);
    memcpy(&x[i], &bits, 4);
    if (i % 3 == 0) x[i] = berth__f16_to_f32((uint16_t)test_random(&seed)) * (i % 2 ? 1.0f : 1.0f + 0x1p-11f);
    if (x[i] != x[i]) x[i] = 65520.0f;
  }
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "h", half, sizeof half, &err));
  TEST_OK(berth_session_read(session, "b", brain, sizeof brain, &err));
  for (int i = 0; i < N; i++) {
    if (half[i] != berth__f32_to_f16(x[i])) fail_msg("f16 of %a is %04x", (double)x[i], half[i]);
    if (brain[i] != berth__f32_to_bf16(x[i])) fail_msg("bf16 of %a is %04x", (double)x[i], brain[i]);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* ---- Blocks ---- */

static void a_param_in_blocks_is_planned_written_and_read(void **state) {
  static const char *const devices[] = {"cpu", NULL};
  berth_context *ctx = test_context();
  berth_graph *graph = graph_of(ctx,
                                "param %w : q8_0[4, 64] param %v : q4_0[2, 32] input %x : f32[1, 64] "
                                "%u = unpack(%w) %t = transpose(%u) %y = matmul(%x, %t) %z = unpack(%v) "
                                "output \"y\" = %y output \"z\" = %z output \"w\" = %w");
  berth_error err;
  float w[256], v[64], x[64], u[256], z[2][64], y[2][4];
  uint8_t blocks[8 * 34], raw[8 * 34];
  uint64_t seed = 9;
  (void)state;
  for (int i = 0; i < 256; i++) w[i] = test_random_f32(&seed);
  for (int i = 0; i < 64; i++) v[i] = test_random_f32(&seed);
  for (int i = 0; i < 64; i++) x[i] = test_random_f32(&seed);
  TEST_OK(berth_from_f32(BERTH_Q8_0, w, 256, blocks, &err));
  TEST_OK(berth_to_f32(BERTH_Q8_0, blocks, 256, u, &err));
  for (int d = 0; d < 2; d++) {
    const char *device = devices[d] != NULL ? devices[d] : test_gpu();
    berth_session *session = session_on(graph, device, 0);
    const berth_plan *plan = berth_session_plan(session);
    TEST_OK(berth_plan_check(plan, &err));
    const berth_slot slot = slot_named(plan, "w");
    assert_int_equal(slot.size, 272);
    assert_int_equal(slot.storage.elements, 32);
    assert_int_equal(slot.storage.bytes, 34);
    uint8_t four[2 * 18];
    TEST_OK(berth_from_f32(BERTH_Q4_0, v, 64, four, &err));
    TEST_OK(berth_session_set_param(session, "w", blocks, sizeof blocks, &err));
    TEST_OK(berth_session_set_param(session, "v", four, sizeof four, &err));
    TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
    TEST_OK(berth_session_run(session, &err));
    TEST_OK(berth_session_read(session, "y", y[d], sizeof y[d], &err));
    TEST_OK(berth_session_read(session, "z", z[d], sizeof z[d], &err));
    TEST_OK(berth_session_read(session, "w", raw, sizeof raw, &err));
    assert_memory_equal(raw, blocks, sizeof raw);
    for (int i = 0; i < 4; i++) {
      double sum = 0;
      for (int k = 0; k < 64; k++) sum += (double)x[k] * (double)u[i * 64 + k];
      assert_true(y[d][i] - (float)sum < 1e-4f && (float)sum - y[d][i] < 1e-4f);
    }
    berth_session_destroy(session);
  }
  assert_memory_equal(z[0], z[1], sizeof z[0]);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void an_arena_reads_and_writes_blocks(void **state) {
  berth_context *ctx = test_context();
  berth_graph *graph = graph_of(ctx, "input %w : q8_0[3, 32] %u = unpack(%w) output \"u\" = %u");
  berth_plan *plan = plan_on(graph, "cpu", 0);
  berth_arena_desc desc = BERTH_ARENA_DESC_INIT;
  berth_arena *arena;
  berth_error err;
  const berth_value w = berth_graph_find(berth_plan_graph(plan), "w");
  float x[96], back[96];
  uint8_t blocks[102], raw[102];
  uint64_t seed = 21;
  (void)state;
  for (int i = 0; i < 96; i++) x[i] = test_random_f32(&seed);
  TEST_OK(berth_arena_create(plan, &desc, &arena, &err));
  TEST_OK(berth_arena_write_f32(arena, w, 0, x, 96, &err));
  TEST_OK(berth_from_f32(BERTH_Q8_0, x, 96, blocks, &err));
  TEST_OK(berth_arena_read(arena, w, 0, raw, sizeof raw, &err));
  assert_memory_equal(raw, blocks, sizeof raw);
  TEST_OK(berth_arena_read_f32(arena, w, 32, back, 64, &err));
  TEST_OK(berth_to_f32(BERTH_Q8_0, blocks + 34, 64, x, &err));
  assert_memory_equal(back, x, 64 * sizeof(float));
  assert_int_equal(berth_arena_capacity(arena, w), 102);
  test_expect_error(berth_arena_read_f32(arena, w, 1, back, 32, &err), BERTH_INVALID, &err, "whole blocks of 32");
  test_expect_error(berth_arena_write_f32(arena, w, 0, x, 31, &err), BERTH_INVALID, &err, "whole blocks of 32");
  test_expect_error(berth_arena_read_f32(arena, w, 64, back, 64, &err), BERTH_INVALID, &err, "not inside");
  berth_arena_destroy(arena);
  berth_plan_destroy(plan);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void graphs_refuse_what_blocks_are_not_for(void **state) {
  static const struct {
    const char *text, *part;
  } rows[] = {
      {"input %w : q8_0[2, 33] output \"w\" = %w", "the last axis of [2, 33] is not a multiple"},
      {"input %w : q8_0[] output \"w\" = %w", "blocks of 32"},
      {"input %w : q8_0[32, n] output \"w\" = %w", "blocks of 32"},
      {"input %w : q8_0[1, 32] %y = neg(%w) output \"y\" = %y", "operand 0, 'w', is q8_0"},
      {"input %w : q4_0[1, 32] %y = reshape(%w) {shape = [32]} output \"y\" = %y", "unpack makes f32 of it"},
      {"input %x : f32[2, 1] input %w : q8_0[1, 32] %y = matmul(%x, %w) output \"y\" = %y", "operand 1, 'w', is q8_0"},
      {"input %x : f32[32] %y = unpack(%x) output \"y\" = %y", "x is f32"},
      {"const %w : q8_0[32] = [1, 2] output \"a name that is as long as the blocks\" = %w", "given as hex"},
      {"const %w : q8_0[31] = hex \"00\" output \"w\" = %w", "no whole blocks of 32"},
  };
  berth_context *ctx = test_context();
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    char text[512];
    berth_error err;
    berth_graph *graph;
    snprintf(text, sizeof text, "graph \"g\" { %s }", rows[i].text);
    const berth_status status = berth_graph_parse(ctx, text, strlen(text), &graph, &err);
    assert_true(status == BERTH_INVALID || status == BERTH_MALFORMED);
    if (strstr(err.message, rows[i].part) == NULL) fail_msg("%s: %s", rows[i].part, err.message);
  }
  berth_context_destroy(ctx);
}

static berth_status append(void *user, const char *text, size_t size) {
  strncat(user, text, size);
  return BERTH_OK;
}

/* A constant in blocks: as text and back, computed while it is bound, drawn and listed. */
static void constants_in_blocks_are_text_too(void **state) {
  static char text[4096], again[4096], report[65536];
  berth_context *ctx = test_context();
  berth_error err;
  berth_graph *second;
  char hex[69];
  (void)state;
  for (int i = 0; i < 34; i++) snprintf(hex + 2 * (size_t)i, 3, "%02x", i == 1 ? 0x3c : i * 7 % 256);
  hex[1] = '0', hex[0] = '0';
  snprintf(text, sizeof text,
           "const %%w : q8_0[1, 32] = hex \"%s\" %%u = unpack(%%w) input %%x : f32[32] "
           "%%y = add(%%x, %%u) output \"y\" = %%y",
           hex);
  berth_graph *graph = graph_of(ctx, text);
  text[0] = '\0';
  TEST_OK(berth_graph_print(graph, append, text, &err));
  assert_non_null(strstr(text, hex));
  TEST_OK(berth_graph_parse(ctx, text, strlen(text), &second, &err));
  TEST_OK(berth_graph_print(second, append, again, &err));
  assert_string_equal(text, again);
  berth_session *session = session_on(graph, "cpu", 0);
  float x[32] = {0}, y[32];
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_read(session, "y", y, sizeof y, &err));
  for (int i = 0; i < 32; i++) assert_true(y[i] == (float)(int8_t)((i + 2) * 7 % 256)); /* the scale is 1 */
  berth_plan *plan = plan_on(graph, "cpu", BERTH_PLAN_NO_PASSES);
  for (int kind = BERTH_REPORT_TEXT; kind <= BERTH_REPORT_SVG; kind++) {
    report[0] = '\0';
    TEST_OK(berth_plan_report(plan, (berth_report_kind)kind, append, report, &err));
    assert_true(strlen(report) > 20);
  }
  berth_plan_destroy(plan);
  berth_session_destroy(session);
  berth_graph_destroy(second);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(gpus_keep_narrow_types),
      cmocka_unit_test(half_the_width_is_half_the_activations),
      cmocka_unit_test(bytes_inside_words_come_out_alike),
      cmocka_unit_test(halves_are_rounded_where_they_are_stored),
      cmocka_unit_test(weights_keep_their_width),
      cmocka_unit_test(results_lie_as_products_round_them),
      cmocka_unit_test(a_param_in_blocks_is_planned_written_and_read),
      cmocka_unit_test(an_arena_reads_and_writes_blocks),
      cmocka_unit_test(graphs_refuse_what_blocks_are_not_for),
      cmocka_unit_test(constants_in_blocks_are_text_too),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
