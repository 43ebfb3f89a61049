/* The arena, through the whole of its public interface, on every device and in every kind of memory. */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/half.h"
#include "support.h"
#include "vulkan.h"

static berth_arena_desc on_device = BERTH_ARENA_DESC_INIT; /* whose arenas are tested */

typedef struct fixture {
  berth_context *ctx;
  berth_graph *graph;
  berth_plan *plan;
  berth_arena *arena;
  berth_error err;
} fixture;

/* One input of every type, [70000] each, so that ranges cross the pieces in which conversions are done. */
enum {
  COUNT = 70000
};
static const berth_type types[] = {BERTH_F32, BERTH_F64, BERTH_F16, BERTH_BF16, BERTH_I8,  BERTH_U8, BERTH_I16,
                                   BERTH_I32, BERTH_I64, BERTH_U32, BERTH_BOOL, BERTH_U16, BERTH_U64};
#define N_TYPES (sizeof types / sizeof types[0])

static void start(fixture *f, const char *text, const berth_plan_desc *desc) {
  memset(f, 0, sizeof *f);
  berth_error err;
  f->ctx = test_context();
  TEST_OK(berth_graph_parse(f->ctx, text, strlen(text), &f->graph, &err));
  TEST_OK(berth_plan_create(f->graph, desc, &f->plan, &err));
  TEST_OK(berth_arena_create(f->plan, &on_device, &f->arena, &err));
}

/* Whether the values of an arena hold one byte all over. */
static bool all_are(const berth_arena *arena, size_t n_values, unsigned char byte) {
  for (berth_value v = 0; v < n_values; v++) {
    const uint64_t size = berth_arena_capacity(arena, v);
    unsigned char *bytes = malloc((size_t)size + 1);
    berth_error err;
    assert_non_null(bytes);
    TEST_OK(berth_arena_read(arena, v, 0, bytes, size, &err));
    uint64_t same = 0;
    while (same < size && bytes[same] == byte) same++;
    free(bytes);
    if (same != size) return false;
  }
  return true;
}

static void finish(fixture *f) {
  berth_arena_destroy(f->arena);
  berth_plan_destroy(f->plan);
  berth_graph_destroy(f->graph);
  berth_context_destroy(f->ctx);
}

static const char all_types[] =
    "graph \"t\" { input %f32 : f32[70000] input %f64 : f64[70000] input %f16 : f16[70000] input %bf16 : bf16[70000]\n"
    "input %i8 : i8[70000] input %u8 : u8[70000] input %i16 : i16[70000] input %i32 : i32[70000] input %i64 : "
    "i64[70000]\n"
    "input %u32 : u32[70000] input %bool : bool[70000] input %u16 : u16[70000] input %u64 : u64[70000] input %other : "
    "f32[70000] output \"f32\" = %f32 }";

static berth_value value_of(const fixture *f, berth_type type) {
  return berth_graph_find(f->graph, berth_type_name(type));
}

static void tells_where_values_lie(void **state) {
  fixture f;
  (void)state;
  start(&f, all_types, NULL);
  assert_int_equal(berth_arena_size(f.arena), berth_plan_arena_size(f.plan));
  for (size_t i = 0; i < N_TYPES; i++) {
    berth_value v = value_of(&f, types[i]);
    berth_slot slot = BERTH_SLOT_INIT;
    assert_int_equal(berth_plan_slot(f.plan, v, &slot, &f.err), BERTH_OK);
    assert_true(berth_arena_has(f.arena, v));
    assert_int_equal(berth_arena_offset(f.arena, v), slot.offset);
    assert_int_equal(berth_arena_capacity(f.arena, v), COUNT * berth_type_size(types[i]));
    assert_int_equal(slot.offset % 64, 0);
  }
  for (int k = 0; k < 2; k++) {
    berth_value none = k == 0 ? N_TYPES + 1 : BERTH_VALUE_NONE; /* after the last input */
    assert_false(berth_arena_has(f.arena, none));
    assert_true(berth_arena_offset(f.arena, none) == BERTH_OFFSET_NONE);
    assert_int_equal(berth_arena_capacity(f.arena, none), 0);
  }
  finish(&f);
}

static void starts_zeroed(void **state) {
  fixture f;
  (void)state;
  start(&f, all_types, NULL);
  assert_true(all_are(f.arena, N_TYPES + 1, 0));
  finish(&f);
}

static void reads_and_writes_bytes(void **state) {
  fixture f;
  unsigned char in[256], out[256];
  (void)state;
  start(&f, all_types, NULL);
  for (int i = 0; i < 256; i++) in[i] = (unsigned char)i;
  berth_value v = value_of(&f, BERTH_I16);
  uint64_t size = berth_arena_capacity(f.arena, v);
  assert_int_equal(berth_arena_write(f.arena, v, 0, in, 256, &f.err), BERTH_OK);
  assert_int_equal(berth_arena_write(f.arena, v, size - 3, in + 1, 3, &f.err), BERTH_OK);
  assert_int_equal(berth_arena_read(f.arena, v, 5, out, 200, &f.err), BERTH_OK);
  assert_memory_equal(out, in + 5, 200);
  assert_int_equal(berth_arena_read(f.arena, v, size - 4, out, 4, &f.err), BERTH_OK);
  assert_memory_equal(out, "\0\1\2\3", 4);
  assert_int_equal(berth_arena_write(f.arena, v, size, NULL, 0, &f.err), BERTH_OK);
  assert_int_equal(berth_arena_read(f.arena, v, size, NULL, 0, &f.err), BERTH_OK);
  assert_int_equal(berth_arena_fill(f.arena, v, 2, 3, 0xee, &f.err), BERTH_OK);
  assert_int_equal(berth_arena_read(f.arena, v, 0, out, 7, &f.err), BERTH_OK);
  assert_memory_equal(out, "\0\1\xee\xee\xee\5\6", 7);
  finish(&f);
}

static const struct {
  uint64_t first, count;
} bad_ranges[] = {{0, 9},
                  {8, 1},
                  {9, 0},
                  {1, 8},
                  {UINT64_MAX, 1},
                  {1, UINT64_MAX},
                  {UINT64_MAX, UINT64_MAX},
                  {4, UINT64_MAX - 3},
                  {UINT64_MAX / 4 + 2, UINT64_MAX / 4},
                  {INT64_MAX, 1}};

/* u8[8]: bytes and elements are the same. */
static void refuses_wrong_ranges(void **state) {
  fixture f;
  unsigned char bytes[16] = {0};
  float floats[16] = {0};
  (void)state;
  start(&f, "graph \"r\" { input %a : u8[8] input %b : u8[8] output \"a\" = %a }", NULL);
#define REFUSED(call) test_expect_error(call, BERTH_INVALID, &f.err, "value 0")
  for (size_t i = 0; i < sizeof bad_ranges / sizeof bad_ranges[0]; i++) {
    uint64_t first = bad_ranges[i].first, count = bad_ranges[i].count;
    REFUSED(berth_arena_write(f.arena, 0, first, bytes, count, &f.err));
    REFUSED(berth_arena_read(f.arena, 0, first, bytes, count, &f.err));
    REFUSED(berth_arena_fill(f.arena, 0, first, count, 1, &f.err));
    REFUSED(berth_arena_write_f32(f.arena, 0, first, floats, count, &f.err));
    REFUSED(berth_arena_read_f32(f.arena, 0, first, floats, count, &f.err));
    REFUSED(berth_arena_copy(f.arena, 0, first, 1, 0, count, &f.err));
    test_expect_error(berth_arena_copy(f.arena, 1, 0, 0, first, count, &f.err), BERTH_INVALID, &f.err, "value");
  }
  REFUSED(berth_arena_copy_first(f.arena, 0, 1, 9, &f.err));
#undef REFUSED
  test_expect_error(berth_arena_write(f.arena, 0, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  test_expect_error(berth_arena_read(f.arena, 0, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  test_expect_error(berth_arena_write_f32(f.arena, 0, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  test_expect_error(berth_arena_read_f32(f.arena, 0, 0, NULL, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  test_expect_error(berth_arena_write(NULL, 0, 0, bytes, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  assert_true(all_are(f.arena, 2, 0));
  finish(&f);
}

/* ---- f32 conversion ------------------------------------------------------------------------------------------- */

static void expect_written(fixture *f, berth_type type, const float *src, uint64_t n, const void *want) {
  unsigned char out[64 * 8];
  berth_value v = value_of(f, type);
  assert_int_equal(berth_arena_write_f32(f->arena, v, 511, src, n, &f->err), BERTH_OK); /* over the edge of a piece */
  assert_int_equal(berth_arena_read(f->arena, v, 511 * berth_type_size(type), out, n * berth_type_size(type), &f->err),
                   BERTH_OK);
  assert_memory_equal(out, want, n * berth_type_size(type));
}

static void converts_to_integers(void **state) {
  fixture f;
  const float src[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300, -300, NAN, INFINITY, -INFINITY, 127.5f, 1e30f, -1e30f};
  (void)state;
  start(&f, all_types, NULL);
#define WRITTEN(type, c_type, ...) expect_written(&f, type, src, 13, (c_type[]){__VA_ARGS__})
  WRITTEN(BERTH_I8, int8_t, 0, 2, 2, 0, -2, 127, -128, 0, 127, -128, 127, 127, -128);
  WRITTEN(BERTH_U8, uint8_t, 0, 2, 2, 0, 0, 255, 0, 0, 255, 0, 128, 255, 0);
  WRITTEN(BERTH_I16, int16_t, 0, 2, 2, 0, -2, 300, -300, 0, INT16_MAX, INT16_MIN, 128, INT16_MAX, INT16_MIN);
  WRITTEN(BERTH_I32, int32_t, 0, 2, 2, 0, -2, 300, -300, 0, INT32_MAX, INT32_MIN, 128, INT32_MAX, INT32_MIN);
  WRITTEN(BERTH_I64, int64_t, 0, 2, 2, 0, -2, 300, -300, 0, INT64_MAX, INT64_MIN, 128, INT64_MAX, INT64_MIN);
  WRITTEN(BERTH_U32, uint32_t, 0, 2, 2, 0, 0, 300, 0, 0, UINT32_MAX, 0, 128, UINT32_MAX, 0);
  WRITTEN(BERTH_BOOL, uint8_t, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
  expect_written(&f, BERTH_BOOL, (float[]){0.0f, -0.0f, 1e-45f}, 3, (uint8_t[]){0, 0, 1});
  WRITTEN(BERTH_F32, float, 0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300, -300, NAN, INFINITY, -INFINITY, 127.5f, 1e30f, -1e30f);
  const float edges[] = {2147483520.0f, 2147483648.0f, 4294967040.0f, 4294967296.0f, 9223371487098961920.0f};
  expect_written(&f, BERTH_I32, edges, 2, (int32_t[]){2147483520, INT32_MAX});
  expect_written(&f, BERTH_U32, edges + 2, 2, (uint32_t[]){4294967040u, UINT32_MAX});
  expect_written(&f, BERTH_I64, edges + 4, 1, (int64_t[]){9223371487098961920});
  finish(&f);
}

static void converts_from_every_type(void **state) {
  fixture f;
  float out[4];
  (void)state;
  start(&f, all_types, NULL);
#define READ(type, c_type, a, b, c)                                                                         \
  do {                                                                                                      \
    berth_value v = value_of(&f, type);                                                                     \
    const c_type in[] = {a, b, c};                                                                          \
    assert_int_equal(berth_arena_write(f.arena, v, 510 * sizeof(c_type), in, sizeof in, &f.err), BERTH_OK); \
    assert_int_equal(berth_arena_read_f32(f.arena, v, 510, out, 3, &f.err), BERTH_OK);                      \
    assert_true(out[0] == (float)in[0] && out[1] == (float)in[1] && out[2] == (float)in[2]);                \
  } while (0)
  READ(BERTH_F32, float, 1.25f, INFINITY, -1e-45f);
  READ(BERTH_F64, double, 0.1, 1e300, -1e-300);
  READ(BERTH_I8, int8_t, -128, 127, 0);
  READ(BERTH_U8, uint8_t, 255, 1, 0);
  READ(BERTH_I16, int16_t, INT16_MIN, INT16_MAX, 5);
  READ(BERTH_I32, int32_t, INT32_MIN, INT32_MAX, 16777217);
  READ(BERTH_I64, int64_t, INT64_MIN, INT64_MAX, 16777217);
  READ(BERTH_U32, uint32_t, UINT32_MAX, 16777217, 0);
  READ(BERTH_BOOL, uint8_t, 0, 1, 1);
  finish(&f);
}

/* An independent way from half bits to a number. */
static double half_value(uint16_t bits, int exponent_bits, int fraction_bits) {
  int bias = (1 << (exponent_bits - 1)) - 1, exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
  double fraction = bits & ((1 << fraction_bits) - 1), value;
  if (exponent == (1 << exponent_bits) - 1)
    value = fraction != 0 ? (double)NAN : (double)INFINITY;
  else if (exponent == 0)
    value = ldexp(fraction, 1 - bias - fraction_bits);
  else
    value = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  return bits & 0x8000 ? -value : value;
}

/* Every pattern out to f32 and back; and between any two neighbours the tie goes to the even one. */
static void check_halves(fixture *f, berth_type type, int exponent_bits, int fraction_bits) {
  static uint16_t in[65536], out[65536];
  static float wide[65536], ties[65536];
  berth_value v = value_of(f, type);
  for (uint32_t i = 0; i < 65536; i++) in[i] = (uint16_t)i;
  assert_int_equal(berth_arena_write(f->arena, v, 2, in, sizeof in, &f->err), BERTH_OK);
  assert_int_equal(berth_arena_read_f32(f->arena, v, 1, wide, 65536, &f->err), BERTH_OK);
  for (uint32_t i = 0; i < 65536; i++) {
    double want = half_value((uint16_t)i, exponent_bits, fraction_bits);
    if (isnan(want) ? !isnan(wide[i]) : ((double)wide[i] != want || !signbit(wide[i]) != !signbit(want)))
      fail_msg("%s %04x became %a, not %a", berth_type_name(type), i, (double)wide[i], want);
  }
  assert_int_equal(berth_arena_fill(f->arena, v, 0, COUNT * 2, 0x55, &f->err), BERTH_OK);
  assert_int_equal(berth_arena_write_f32(f->arena, v, 1, wide, 65536, &f->err), BERTH_OK);
  assert_int_equal(berth_arena_read(f->arena, v, 2, out, sizeof out, &f->err), BERTH_OK);
  for (uint32_t i = 0; i < 65536; i++) {
    bool both_nan = isnan(wide[i]) && isnan(half_value(out[i], exponent_bits, fraction_bits));
    if (!both_nan && out[i] != i) fail_msg("%s %04x came back as %04x", berth_type_name(type), i, out[i]);
  }
  uint16_t infinity = (uint16_t)(((1u << exponent_bits) - 1) << fraction_bits);
  for (uint32_t i = 0; i < 65536; i++) {
    bool finite = (i & 0x7fff) + 1u < infinity; /* it and the next one */
    ties[i] = finite ? (float)(((double)wide[i] + (double)wide[i + 1]) / 2) : 0;
  }
  assert_int_equal(berth_arena_write_f32(f->arena, v, 0, ties, 65536, &f->err), BERTH_OK);
  assert_int_equal(berth_arena_read(f->arena, v, 0, out, sizeof out, &f->err), BERTH_OK);
  for (uint32_t i = 0; i < 65536; i++)
    if ((i & 0x7fff) + 1u < infinity && out[i] != (i % 2 == 0 ? i : i + 1))
      fail_msg("%s: the tie above %04x went to %04x", berth_type_name(type), i, out[i]);
}

static void converts_every_half(void **state) {
  fixture f;
  (void)state;
  start(&f, all_types, NULL);
  check_halves(&f, BERTH_F16, 5, 10);
  check_halves(&f, BERTH_BF16, 8, 7);
  expect_written(
      &f, BERTH_F16,
      (float[]){65519.0f, 65520.0f, -65520.0f, 1e30f, INFINITY, 2.9802322e-8f, 2.98023224e-8f, 2.9802326e-8f}, 8,
      (uint16_t[]){0x7bff, 0x7c00, 0xfc00, 0x7c00, 0x7c00, 0, 0, 1});
  expect_written(&f, BERTH_BF16, (float[]){3.4028235e38f, -3.4028235e38f, 3.3895314e38f, 1e-45f}, 4,
                 (uint16_t[]){0x7f80, 0xff80, 0x7f7f, 0});
  finish(&f);
}

/* ---- Copies --------------------------------------------------------------------------------------------------- */

static void copies_elements(void **state) {
  fixture f;
  float in[8] = {0, 1, 2, 3, 4, 5, 6, 7}, out[8];
  (void)state;
  start(&f, all_types, NULL);
  berth_value a = berth_graph_find(f.graph, "f32"), b = berth_graph_find(f.graph, "other");
#define SAME(...) assert_memory_equal(out, ((float[]){__VA_ARGS__}), sizeof out)
#define OK(call) assert_int_equal(call, BERTH_OK)
  OK(berth_arena_write_f32(f.arena, a, 0, in, 8, &f.err));
  OK(berth_arena_copy(f.arena, b, 2, a, 4, 3, &f.err));
  OK(berth_arena_read_f32(f.arena, b, 0, out, 8, &f.err));
  SAME(0, 0, 4, 5, 6, 0, 0, 0);
  OK(berth_arena_copy_first(f.arena, b, a, 2, &f.err));
  OK(berth_arena_read_f32(f.arena, b, 0, out, 8, &f.err));
  SAME(0, 1, 4, 5, 6, 0, 0, 0);
  OK(berth_arena_copy(f.arena, a, 2, a, 0, 6, &f.err));
  OK(berth_arena_read_f32(f.arena, a, 0, out, 8, &f.err));
  SAME(0, 1, 0, 1, 2, 3, 4, 5);
  OK(berth_arena_copy(f.arena, a, 0, a, 3, 5, &f.err));
  OK(berth_arena_read_f32(f.arena, a, 0, out, 8, &f.err));
  SAME(1, 2, 3, 4, 5, 3, 4, 5);
  OK(berth_arena_copy(f.arena, a, COUNT, b, COUNT, 0, &f.err));
  OK(berth_arena_copy(f.arena, a, 0, b, 0, COUNT, &f.err));
  test_expect_error(berth_arena_copy(f.arena, a, 0, value_of(&f, BERTH_I32), 0, 1, &f.err), BERTH_INVALID, &f.err,
                    "i32");
  test_expect_error(berth_arena_copy(f.arena, a, 0, 99, 0, 1, &f.err), BERTH_INVALID, &f.err, "99");
  test_expect_error(berth_arena_copy(f.arena, 99, 0, a, 0, 1, &f.err), BERTH_INVALID, &f.err, "99");
  finish(&f);
}

static void copies_a_whole_arena(void **state) {
  fixture f, small;
  berth_arena *twin;
  (void)state;
  start(&f, all_types, NULL);
  start(&small, "graph \"s\" { input %x : f32[2] output \"x\" = %x }", NULL);
  assert_int_equal(berth_arena_create(f.plan, &on_device, &twin, &f.err), BERTH_OK);
  for (berth_value v = 0; v <= N_TYPES; v++)
    OK(berth_arena_fill(f.arena, v, 0, berth_arena_capacity(f.arena, v), 0x3c, &f.err));
  OK(berth_arena_copy_all(twin, f.arena, &f.err));
  assert_true(all_are(twin, N_TYPES + 1, 0x3c));
  OK(berth_arena_copy_all(f.arena, f.arena, &f.err));
  test_expect_error(berth_arena_copy_all(small.arena, f.arena, &f.err), BERTH_INVALID, &f.err, "different plans");
  test_expect_error(berth_arena_copy_all(NULL, f.arena, &f.err), BERTH_INVALID, &f.err, NULL);
  berth_arena_destroy(twin);
  finish(&f);
  finish(&small);
}

static void slices(void **state) {
  fixture f;
  void *data = NULL;
  uint64_t count = 0;
  (void)state;
  start(&f, all_types, NULL);
  for (size_t i = 0; i < N_TYPES; i++) {
    berth_value v = value_of(&f, types[i]);
    if (berth_arena_data(f.arena) == NULL) {
      test_expect_error(berth_arena_slice(f.arena, v, types[i], &data, &count, &f.err), BERTH_UNSUPPORTED, &f.err,
                        on_device.device);
      continue;
    }
    OK(berth_arena_slice(f.arena, v, types[i], &data, &count, &f.err));
    assert_ptr_equal(data, (unsigned char *)berth_arena_data(f.arena) + berth_arena_offset(f.arena, v));
    assert_int_equal(count, COUNT);
    berth_type wrong = types[(i + 1) % N_TYPES];
    test_expect_error(berth_arena_slice(f.arena, v, wrong, &data, &count, &f.err), BERTH_INVALID, &f.err,
                      berth_type_name(wrong));
    assert_null(data);
  }
  if (berth_arena_data(f.arena) != NULL) OK(berth_arena_slice(f.arena, 0, BERTH_F32, &data, NULL, &f.err));
  test_expect_error(berth_arena_slice(f.arena, 0, BERTH_F32, NULL, NULL, &f.err), BERTH_INVALID, &f.err, NULL);
  test_expect_error(berth_arena_slice(f.arena, 99, BERTH_F32, &data, NULL, &f.err), BERTH_INVALID, &f.err, "99");
  finish(&f);
}

/* ---- Where the block comes from ------------------------------------------------------------------------------- */

static const char small_text[] =
    "graph \"s\" { input %x : f32[100] param %w : f32[100] %y = add(%x, %w) output \"y\" = %y }";

static void aligns_the_block(void **state) {
  (void)state;
  const uint64_t step = on_device.device == NULL ? 2 : 64; /* others are slow to open */
  for (uint64_t align = 16; align <= (uint64_t)8 << 20; align *= step) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    fixture f;
    desc.align = align;
    start(&f, small_text, &desc);
    uintptr_t base = (uintptr_t)berth_arena_data(f.arena);
    assert_int_equal(base % align, 0);
    for (berth_value v = 0; v < 3; v++) assert_int_equal(berth_arena_offset(f.arena, v) % align, 0);
    if (base != 0) memset((void *)base, 1, (size_t)berth_arena_size(f.arena));
    OK(berth_arena_fill(f.arena, 0, 0, 400, 1, &f.err));
    finish(&f);
  }
}

static void large_blocks_are_aligned_too(void **state) {
  (void)state;
  for (uint64_t align = 16; align <= (uint64_t)4 << 20; align *= 16) {
    berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
    fixture f;
    desc.align = align;
    start(&f, "graph \"l\" { input %x : f32[1000000] output \"x\" = %x }", &desc);
    unsigned char *base = berth_arena_data(f.arena);
    assert_int_equal((uintptr_t)base % align, 0);
    assert_true(all_are(f.arena, 1, 0));
    if (base != NULL) memset(base, 1, (size_t)berth_arena_size(f.arena));
    finish(&f);
  }
}

static void uses_the_callers_memory(void **state) {
  fixture f;
  (void)state;
  start(&f, small_text, NULL);
  uint64_t size = berth_plan_arena_size(f.plan);
  unsigned char *memory = aligned_alloc(64, ((size_t)size + 63) / 64 * 64 + 128);
  assert_non_null(memory);
  memset(memory, 0xaa, (size_t)size + 128);
  berth_arena_desc desc = on_device;
  berth_arena *arena;
  desc.memory = memory;
  desc.memory_size = size - 1;
  test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_INVALID, &f.err, "needs");
  assert_null(arena);
  desc.memory_size = size;
  desc.memory = memory + 8;
  test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_INVALID, &f.err, "not aligned");
  assert_int_equal(memory[0], 0xaa); /* nothing was touched */
  desc.memory = memory;
  if (on_device.device != NULL) { /* the CPU alone can */
    test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_UNSUPPORTED, &f.err, "caller");
    free(memory);
    finish(&f);
    return;
  }
  OK(berth_arena_create(f.plan, &desc, &arena, &f.err));
  assert_ptr_equal(berth_arena_data(arena), memory);
  assert_int_equal(memory[0] | memory[size - 1], 0);
  assert_int_equal(memory[size], 0xaa);
  berth_arena_destroy(arena);
  desc.min_size = size + 1;
  test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_INVALID, &f.err, NULL);
  free(memory);
  finish(&f);
}

static void may_be_larger_but_not_without_end(void **state) {
  fixture f;
  berth_arena *arena;
  berth_arena_desc desc = on_device;
  (void)state;
  start(&f, small_text, NULL);
  desc.min_size = 100000;
  OK(berth_arena_create(f.plan, &desc, &arena, &f.err));
  assert_int_equal(berth_arena_size(arena), 100000);
  const unsigned char *bytes = berth_arena_data(arena);
  if (bytes != NULL) assert_int_equal(bytes[99999], 0);
  berth_arena_destroy(arena);
  const uint64_t huge[] = {UINT64_MAX, UINT64_MAX - 100, UINT64_C(1) << 63, UINT64_C(1) << 62, UINT64_C(1) << 56};
  for (size_t i = 0; i < 5; i++) {
    desc.min_size = huge[i];
    test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_DEVICE_NOMEM, &f.err, "bytes");
    assert_null(arena);
  }
  desc.min_size = 0;
  desc.device = "abacus";
  test_expect_error(berth_arena_create(f.plan, &desc, &arena, &f.err), BERTH_UNSUPPORTED, &f.err, "abacus");
  test_expect_error(berth_arena_create(NULL, NULL, &arena, &f.err), BERTH_INVALID, &f.err, "plan");
  test_expect_error(berth_arena_create(f.plan, NULL, NULL, &f.err), BERTH_INVALID, &f.err, NULL);
  berth_arena_destroy(NULL);
  finish(&f);
}

static void the_arena_outlives_its_plan(void **state) {
  fixture f;
  float x = 4, y = 0;
  (void)state;
  start(&f, small_text, NULL);
  berth_plan_destroy(f.plan);
  berth_graph_destroy(f.graph);
  f.plan = NULL;
  f.graph = NULL;
  OK(berth_arena_write_f32(f.arena, 0, 99, &x, 1, &f.err));
  OK(berth_arena_read_f32(f.arena, 0, 99, &y, 1, &f.err));
  assert_true(y == 4);
  finish(&f);
}

static void empty_plans_have_an_arena(void **state) {
  fixture f;
  float x = 1;
  (void)state;
  start(&f, "graph \"e\" { input %x : f32[0, 3] output \"x\" = %x }", NULL);
  assert_int_equal(berth_arena_capacity(f.arena, 0), 0);
  OK(berth_arena_write(f.arena, 0, 0, NULL, 0, &f.err));
  OK(berth_arena_read_f32(f.arena, 0, 0, &x, 0, &f.err));
  test_expect_error(berth_arena_write(f.arena, 0, 0, &x, 1, &f.err), BERTH_INVALID, &f.err, NULL);
  finish(&f);
}

/* ---- Values without plain bytes ------------------------------------------------------------------------------- */

static void refuses_values_outside(void **state) {
  fixture f;
  float x = 0;
  void *data;
  (void)state;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  assert_int_equal(berth_plan_preset(BERTH_PRESET_BACKWARD, &desc, NULL), BERTH_OK);
  start(&f, small_text, &desc);
  for (berth_value v = 0; v < 2; v++) {
    assert_false(berth_arena_has(f.arena, v));
    assert_true(berth_arena_offset(f.arena, v) == BERTH_OFFSET_NONE);
    assert_int_equal(berth_arena_capacity(f.arena, v), 0);
    test_expect_error(berth_arena_write(f.arena, v, 0, &x, 4, &f.err), BERTH_INVALID, &f.err, "outside");
    test_expect_error(berth_arena_read_f32(f.arena, v, 0, &x, 1, &f.err), BERTH_INVALID, &f.err, "outside");
    test_expect_error(berth_arena_copy(f.arena, 2, 0, v, 0, 1, &f.err), BERTH_INVALID, &f.err, "outside");
    test_expect_error(berth_arena_slice(f.arena, v, BERTH_F32, &data, NULL, &f.err), BERTH_INVALID, &f.err, "outside");
  }
  assert_true(berth_arena_has(f.arena, 2));
  finish(&f);
}

static void refuses_strided_views(void **state) {
  fixture f;
  float x = 0;
  void *data;
  (void)state;
  start(&f,
        "graph \"v\" { input %x : f32[4, 6] input %w : f32[4, 5] %t = transpose(%x) {perm = [1, 0]}\n"
        " %y = matmul(%t, %w) output \"y\" = %y }",
        NULL);
  berth_value t = berth_graph_find(f.graph, "t");
  berth_slot slot = BERTH_SLOT_INIT;
  OK(berth_plan_slot(f.plan, t, &slot, &f.err));
  assert_true(slot.is_view);
  test_expect_error(berth_arena_write_f32(f.arena, t, 0, &x, 1, &f.err), BERTH_INVALID, &f.err, "strided view");
  test_expect_error(berth_arena_read(f.arena, t, 0, &x, 4, &f.err), BERTH_INVALID, &f.err, "strided view");
  test_expect_error(berth_arena_fill(f.arena, t, 0, 4, 1, &f.err), BERTH_INVALID, &f.err, "strided view");
  test_expect_error(berth_arena_slice(f.arena, t, BERTH_F32, &data, NULL, &f.err), BERTH_INVALID, &f.err,
                    "strided view");
  finish(&f);
}

/* A cache along a middle axis lies inside the longer one, head by head, and is still one array to its caller. */
static void inputs_with_gaps(void **state) {
  fixture f;
  float past[24], back[24] = {0};
  void *data;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  (void)state;
  desc.flags = BERTH_PLAN_INPUTS_DIE;
  start(&f,
        "graph \"kv\" { input %past : f32[2, 3, 4] input %new : f16[2, 1, 4] %wide = cast(%new) {to = \"f32\"}\n"
        " %present = concat(%past, %wide) {axis = 1} output \"present\" = %present }",
        &desc);
  berth_value input = berth_graph_find(f.graph, "past"), whole = berth_graph_find(f.graph, "present");
  berth_slot slot = BERTH_SLOT_INIT;
  OK(berth_plan_slot(f.plan, input, &slot, &f.err));
  assert_int_equal(slot.root, whole);
  assert_int_equal(slot.stride[0], 16);
  for (int i = 0; i < 24; i++) past[i] = (float)i;
  OK(berth_arena_fill(f.arena, whole, 0, 128, 0xff, &f.err));
  OK(berth_arena_write(f.arena, input, 0, past, sizeof past, &f.err));
  OK(berth_arena_read(f.arena, input, 0, back, sizeof back, &f.err));
  assert_memory_equal(past, back, sizeof past);
  OK(berth_arena_read(f.arena, input, 40, back, 16, &f.err)); /* across the gap */
  assert_memory_equal(past + 10, back, 16);
  for (int i = 0; i < 4; i++) back[i] = -1;
  OK(berth_arena_write_f32(f.arena, input, 10, back, 4, &f.err));
  OK(berth_arena_read_f32(f.arena, input, 0, back, 24, &f.err));
  for (int i = 0; i < 24; i++) assert_true(back[i] == (i >= 10 && i < 14 ? -1 : (float)i));
  OK(berth_arena_fill(f.arena, input, 44, 8, 0, &f.err));
  OK(berth_arena_read_f32(f.arena, input, 10, back, 4, &f.err));
  assert_true(back[0] == -1 && back[1] == 0 && back[2] == 0 && back[3] == -1);
  uint32_t gap[4];
  OK(berth_arena_read(f.arena, whole, 48, gap, sizeof gap, &f.err));
  for (int i = 0; i < 4; i++) assert_int_equal(gap[i], UINT32_MAX); /* nothing was written there */
  test_expect_error(berth_arena_write(f.arena, input, 90, past, 8, &f.err), BERTH_INVALID, &f.err, "not inside");
  test_expect_error(berth_arena_slice(f.arena, input, BERTH_F32, &data, NULL, &f.err), BERTH_INVALID, &f.err,
                    "lies with gaps inside the result of a concat; use read and write");
  test_expect_error(berth_arena_copy(f.arena, input, 0, whole, 0, 1, &f.err), BERTH_INVALID, &f.err, "with gaps");
  test_expect_error(berth_arena_copy(f.arena, whole, 0, input, 0, 1, &f.err), BERTH_INVALID, &f.err, "with gaps");
  finish(&f);
}

/* A contiguous view is as good as a value of its own. */
static void reads_contiguous_views(void **state) {
  fixture f;
  float in[12], out[6];
  (void)state;
  for (int i = 0; i < 12; i++) in[i] = (float)i;
  start(&f, "graph \"v\" { input %x : f32[4, 3] %n = narrow(%x) {starts = [1], ends = [3]} output \"n\" = %n }", NULL);
  OK(berth_arena_write_f32(f.arena, 0, 0, in, 12, &f.err));
  OK(berth_arena_read_f32(f.arena, 1, 0, out, 6, &f.err));
  assert_memory_equal(out, in + 3, sizeof out);
  test_expect_error(berth_arena_read_f32(f.arena, 1, 0, in, 7, &f.err), BERTH_INVALID, &f.err, NULL);
  finish(&f);
}

/* Four bytes per element whatever the type: floats as f32, integers as integers. */
static void uniform_slots_hold_four_bytes(void **state) {
  fixture f;
  berth_plan_desc desc = BERTH_PLAN_DESC_INIT;
  const float in[3] = {0.1f, 1e30f, -2.5f};
  float out[3];
  void *data;
  uint64_t count;
  (void)state;
  desc.flags = BERTH_PLAN_F32_UNIFORM;
  start(&f, all_types, &desc);
  for (size_t i = 0; i < N_TYPES; i++) {
    berth_value v = value_of(&f, types[i]);
    const bool is_signed =
        types[i] == BERTH_I8 || types[i] == BERTH_I16 || types[i] == BERTH_I32 || types[i] == BERTH_I64;
    const bool is_float =
        types[i] == BERTH_F16 || types[i] == BERTH_BF16 || types[i] == BERTH_F32 || types[i] == BERTH_F64;
    assert_int_equal(berth_arena_capacity(f.arena, v), COUNT * 4);
    OK(berth_arena_write_f32(f.arena, v, COUNT - 3, in, 3, &f.err));
    OK(berth_arena_read_f32(f.arena, v, COUNT - 3, out, 3, &f.err));
    if (is_float) assert_memory_equal(out, in, sizeof in);
    if (!is_float) assert_true(out[2] == (is_signed ? -2 : 0));
    test_expect_error(berth_arena_write_f32(f.arena, v, COUNT - 2, in, 3, &f.err), BERTH_INVALID, &f.err, NULL);
    if (berth_arena_data(f.arena) == NULL) continue;
    OK(berth_arena_slice(f.arena, v, is_float ? BERTH_F32 : is_signed ? BERTH_I32 : BERTH_U32, &data, &count, &f.err));
    assert_int_equal(count, COUNT);
  }
  finish(&f);
}

static void lists_devices(void **state) {
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  (void)state;
  berth_context *ctx = test_context();
  assert_true(berth_device_count(ctx) >= 1);
  TEST_OK(berth_device_at(ctx, 0, &info, &err));
  assert_string_equal(info.name, "cpu");
  assert_true(info.available && info.memory != 0 && strstr(info.description, "2 threads") != NULL);
  test_expect_error(berth_device_at(ctx, 1000, &info, &err), BERTH_INVALID, &err, "1000");
  berth_context_destroy(ctx);
}

static void validation_says_nothing(void **state) {
  (void)state;
  vulkan_test_silent();
}

static int run_on(const char *name, const char *device, const char *memory) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tells_where_values_lie),
      cmocka_unit_test(starts_zeroed),
      cmocka_unit_test(reads_and_writes_bytes),
      cmocka_unit_test(refuses_wrong_ranges),
      cmocka_unit_test(converts_to_integers),
      cmocka_unit_test(converts_from_every_type),
      cmocka_unit_test(converts_every_half),
      cmocka_unit_test(copies_elements),
      cmocka_unit_test(copies_a_whole_arena),
      cmocka_unit_test(slices),
      cmocka_unit_test(aligns_the_block),
      cmocka_unit_test(large_blocks_are_aligned_too),
      cmocka_unit_test(uses_the_callers_memory),
      cmocka_unit_test(may_be_larger_but_not_without_end),
      cmocka_unit_test(the_arena_outlives_its_plan),
      cmocka_unit_test(empty_plans_have_an_arena),
      cmocka_unit_test(refuses_values_outside),
      cmocka_unit_test(refuses_strided_views),
      cmocka_unit_test(inputs_with_gaps),
      cmocka_unit_test(reads_contiguous_views),
      cmocka_unit_test(uniform_slots_hold_four_bytes),
      cmocka_unit_test(validation_says_nothing),
  };
  on_device.device = device;
  vulkan_test_memory(memory);
  return _cmocka_run_group_tests(name, tests, sizeof tests / sizeof tests[0], NULL, NULL);
}

/* Why a device cannot be used; NULL: it can. */
static const char *missing(const char *name) {
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  const char *reason = "this build has no such device";
  berth_context *ctx = test_context();
  const uint32_t n = berth_device_count(ctx);
  for (uint32_t i = 0; i < n; i++) {
    TEST_OK(berth_device_at(ctx, i, &info, &err));
    if (strcmp(info.name, name) == 0) reason = info.available ? NULL : info.reason;
  }
  berth_context_destroy(ctx);
  return reason;
}

static int run_on_vulkan(void) {
  const char *reason = vulkan_test_start();
  if (reason == NULL)
    return run_on("vulkan, mapped", "vulkan", "mapped") + run_on("vulkan, staged", "vulkan", "staged");
  print_message("# skip: device vulkan: %s\n", reason);
  return 0;
}

static int run_on_webgpu(void) {
  const char *reason = missing("webgpu");
  if (reason == NULL) return run_on("webgpu", "webgpu", NULL);
  print_message("# skip: device webgpu: %s\n", reason);
  return 0;
}

int main(void) {
  const struct CMUnitTest listing[] = {cmocka_unit_test(lists_devices)};
  const char *only = getenv("BERTH_TEST_DEVICE");
  int failed = cmocka_run_group_tests(listing, NULL, NULL);
  if (only == NULL || strcmp(only, "cpu") == 0) failed += run_on("cpu", NULL, NULL);
  if (only == NULL || strcmp(only, "vulkan") == 0) failed += run_on_vulkan();
  if (only == NULL || strcmp(only, "webgpu") == 0) failed += run_on_webgpu();
  return failed;
}
