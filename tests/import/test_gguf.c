/* GGUF: what good files say, every way in which one can be wrong, models in several files, and no memory. */
#include <stdio.h>
#include <stdlib.h>

#include "import/gguf/gguf.h"
#include "import/gguf/types.h"
#include "support/gguf_file.h"
#include "support/support.h"

static berth_status open_memory(berth_context *ctx, const gguf_file *file, berth__gguf **out, berth_error *err) {
  berth__mapping memory = {.data = file->bytes, .size = file->size};
  return berth__gguf_open(ctx, NULL, &memory, out, err);
}

static berth_status open_path(berth_context *ctx, const char *path, berth__gguf **out, berth_error *err) {
  berth__mapping file;
  *out = NULL;
  berth_status status = berth__file_map(path, &file, err);
  return status == BERTH_OK ? berth__gguf_open(ctx, path, &file, out, err) : status;
}

/* ---- Good files ------------------------------------------------------------------------------------------------ */

static const char every_kind[] = GGUF_HEAD(0, 17)
    "'u8' w0 b200 'i8' w1 b-3 'u16' w2 h60000 'i16' w3 h-300 'u32' w4 w4000000000 'i32' w5 w-5 'f32' w6 f0.25 "
    "'bool' w7 b1 'string' w8 'h\\xC3\\xA9llo' 'u64' w10 q18446744073709551615 'i64' w11 q-9 'f64' w12 d1e300 "
    "'general.architecture' w8 'llama' 'llama.block_count' w4 w22 "
    "'numbers' w9 w3 q3 h1 h-2 h3 'strings' w9 w8 q3 'a' '' 'ccc' "
    "'nested' w9 w9 q3 w4 q2 w7 w8 w8 q2 'x' 'yz' w9 q1 w6 q1 f0.5";

static void expect_u64(const berth__gguf *g, const char *key, uint64_t want) {
  berth_error err;
  uint64_t value = want + 1;
  TEST_OK(berth__gguf_u64(g, key, &value, &err));
  assert_true(value == want);
}

static void expect_f64(const berth__gguf *g, const char *key, double want) {
  berth_error err;
  double value = want + 1;
  TEST_OK(berth__gguf_f64(g, key, &value, &err));
  assert_true(value == want);
}

static void expect_no_u64(const berth__gguf *g, const char *key, const char *part) {
  berth_error err;
  uint64_t value;
  test_expect_error(berth__gguf_u64(g, key, &value, &err), BERTH_MALFORMED, &err, part);
}

static void expect_text(berth__gguf_string text, const char *want) {
  assert_int_equal(text.size, strlen(want));
  assert_memory_equal(text.data, want, strlen(want));
}

static void numbers_of_every_kind_are_read(const berth__gguf *g) {
  static const struct {
    const char *key;
    double value;
  } numbers[] = {{"u8", 200}, {"i8", -3},   {"u16", 60000}, {"i16", -300},  {"u32", 4000000000},
                 {"i32", -5}, {"f32", .25}, {"i64", -9},    {"f64", 1e300}, {"u64", 18446744073709551615.0}};
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) expect_f64(g, numbers[i].key, numbers[i].value);
  expect_u64(g, "u8", 200);
  expect_u64(g, "u16", 60000);
  expect_u64(g, "u32", 4000000000);
  expect_u64(g, "u64", UINT64_MAX);
  expect_u64(g, ".block_count", 22);
  expect_u64(g, "llama.block_count", 22);
  expect_no_u64(g, "i8", "\"i8\" is -3, which must not be negative");
  expect_no_u64(g, "i64", "\"i64\" is -9");
  expect_no_u64(g, "f32", "\"f32\" has a value of type f32, not a whole number");
  expect_no_u64(g, "bool", "\"bool\" has a value of type bool, not a whole number");
  expect_no_u64(g, "string", "of type string");
  expect_no_u64(g, "absent", "no key \"absent\"");
  expect_no_u64(g, ".absent", "no key \"llama.absent\"");
}

static void other_kinds_are_read(const berth__gguf *g) {
  berth_error err;
  berth__gguf_string text;
  bool yes = false;
  uint64_t whole = 0;
  double number = 0;
  TEST_OK(berth__gguf_bool(g, "bool", &yes, &err));
  assert_true(yes);
  TEST_OK(berth__gguf_string_of(g, "string", &text, &err));
  expect_text(text, "h\xC3\xA9llo");
  test_expect_error(berth__gguf_string_of(g, "u8", &text, &err), BERTH_MALFORMED, &err, "of type u8, not a string");
  test_expect_error(berth__gguf_bool(g, "u8", &yes, &err), BERTH_MALFORMED, &err, "of type u8, not a bool");
  test_expect_error(berth__gguf_f64(g, "numbers", &number, &err), BERTH_MALFORMED, &err, "of type array");
  TEST_OK(berth__gguf_u64_or(g, "absent", 7, &whole, &err));
  assert_int_equal(whole, 7);
  TEST_OK(berth__gguf_u64_or(g, "u8", 7, &whole, &err));
  assert_int_equal(whole, 200);
  test_expect_error(berth__gguf_u64_or(g, "string", 7, &whole, &err), BERTH_MALFORMED, &err, "of type string");
  TEST_OK(berth__gguf_f64_or(g, "absent", .5, &number, &err));
  assert_true(number == .5);
  TEST_OK(berth__gguf_bool_or(g, "absent", true, &yes, &err));
  assert_true(yes);
  TEST_OK(berth__gguf_bool_or(g, "bool", false, &yes, &err));
  assert_true(yes);
}

static void arrays_are_read(const berth__gguf *g) {
  berth_error err;
  berth__gguf_array array, inner;
  TEST_OK(berth__gguf_array_of(g, "numbers", &array, &err));
  assert_int_equal(array.count, 3);
  assert_true(berth__gguf_array_is_whole(&array) && berth__gguf_array_is_number(&array));
  assert_int_equal(berth__gguf_array_i64(&array, 1), -2);
  assert_true(berth__gguf_array_f64(&array, 2) == 3.0);
  TEST_OK(berth__gguf_array_of(g, "strings", &array, &err));
  assert_int_equal(array.count, 3);
  assert_false(berth__gguf_array_is_number(&array));
  expect_text(berth__gguf_array_string(&array, 0), "a");
  expect_text(berth__gguf_array_string(&array, 1), "");
  expect_text(berth__gguf_array_string(&array, 2), "ccc");
  TEST_OK(berth__gguf_array_of(g, "nested", &array, &err));
  assert_int_equal(array.kind, BERTH__GGUF_ARRAY);
  inner = berth__gguf_array_array(&array, 0);
  assert_int_equal(berth__gguf_array_i64(&inner, 1), 8);
  inner = berth__gguf_array_array(&array, 1);
  expect_text(berth__gguf_array_string(&inner, 1), "yz");
  inner = berth__gguf_array_array(&array, 2);
  inner = berth__gguf_array_array(&inner, 0);
  assert_true(berth__gguf_array_f64(&inner, 0) == .5);
  test_expect_error(berth__gguf_array_of(g, "u8", &array, &err), BERTH_MALFORMED, &err, "not an array");
}

static void reads_every_kind_of_value(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__gguf *g;
  gguf_file file = gguf_file_make(every_kind);
  for (uint8_t version = 2; version <= 3; version++) {
    file.bytes[4] = version;
    TEST_OK(open_memory(ctx, &file, &g, &err));
    assert_int_equal(g->version, version);
    assert_int_equal(g->n_keys, 17);
    assert_int_equal(g->alignment, 32);
    expect_text(g->architecture, "llama");
    numbers_of_every_kind_are_read(g);
    other_kinds_are_read(g);
    arrays_are_read(g);
    berth__gguf_destroy(g);
  }
  gguf_file_free(&file);
  berth_context_destroy(ctx);
}

/* Two tensors out of order, one of no dimensions, one without elements, one of an unknown type. */
static const char tensors[] = GGUF_HEAD(5, 0)
    "'b' w2 q4 q2 w0 q32 'a' w1 q32 w8 q64 'scalar' w0 w26 q0 'none' w2 q0 q3 w1 q128 'new' w1 q5 w99 q128 "
    "pad32 w7 z28 c32 c34 z30";

static void reads_tensors(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__gguf *g;
  const void *data;
  gguf_file file = gguf_file_make(tensors);
  TEST_OK(open_memory(ctx, &file, &g, &err));
  assert_int_equal(g->n_tensors, 5);
  const berth__gguf_tensor *t = berth__gguf_tensor_find(g, "b");
  assert_int_equal(t->type, BERTH_F32);
  assert_int_equal(t->rank, 2);
  assert_int_equal(t->dim[0], 2); /* the slowest first */
  assert_int_equal(t->dim[1], 4);
  assert_int_equal(t->size, 32);
  TEST_OK(berth__gguf_tensor_data(g, t, &data, &err));
  assert_int_equal(((const uint8_t *)data)[31], 31);
  t = berth__gguf_tensor_find(g, "a");
  assert_int_equal(t->type, BERTH_Q8_0);
  assert_int_equal(t->size, 34);
  assert_int_equal(t->data[33], 33);
  t = berth__gguf_tensor_find(g, "scalar");
  assert_int_equal(t->type, BERTH_I32);
  assert_int_equal(t->rank, 0);
  assert_int_equal(t->data[0], 7);
  t = berth__gguf_tensor_find(g, "none");
  assert_int_equal(t->size, 0);
  t = berth__gguf_tensor_find(g, "new");
  assert_int_equal(t->type, BERTH_TYPE_NONE);
  test_expect_error(berth__gguf_tensor_data(g, t, &data, &err), BERTH_UNSUPPORTED, &err, "\"new\" is of type type 99");
  assert_null(berth__gguf_tensor_find(g, "c"));
  berth__gguf_destroy(g);
  gguf_file_free(&file);
  berth_context_destroy(ctx);
}

/* As many strings as a tokenizer has: each is found without going through those before it. */
static void finds_any_of_many_strings(void **state) {
  (void)state;
  enum {
    COUNT = 1000
  };
  berth_context *ctx = test_context();
  berth_error err;
  berth__gguf *g;
  berth__gguf_array array;
  char *words = malloc(COUNT * 8 + 64), want[8];
  size_t n = (size_t)sprintf(words, GGUF_HEAD(0, 1) "'tokens' w9 w8 q%d", COUNT);
  for (int i = 0; i < COUNT; i++) n += (size_t)sprintf(words + n, " '%d'", i);
  gguf_file file = gguf_file_make(words);
  TEST_OK(open_memory(ctx, &file, &g, &err));
  TEST_OK(berth__gguf_array_of(g, "tokens", &array, &err));
  for (int i = COUNT; i-- > 0;) {
    snprintf(want, sizeof want, "%d", i);
    expect_text(berth__gguf_array_string(&array, (uint64_t)i), want);
  }
  berth__gguf_destroy(g);
  gguf_file_free(&file);
  free(words);
  berth_context_destroy(ctx);
}

/* An alignment of 1 puts elements anywhere. */
static void copies_only_what_is_not_aligned(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  berth__gguf *g;
  const void *data;
  gguf_file file = gguf_file_make(GGUF_HEAD(
      3, 1) "'general.alignment' w4 w1 'x' w1 q3 w24 q0 'y' w1 q2 w0 q3 'z' w1 q5 w24 q11 "
            "\"abc\" f1 f2 \"defgh\"");
  TEST_OK(open_memory(ctx, &file, &g, &err));
  int copied = 0;
  for (size_t i = 0; i < g->n_tensors; i++) {
    TEST_OK(berth__gguf_tensor_data(g, &g->tensors[i], &data, &err));
    assert_memory_equal(data, g->tensors[i].data, g->tensors[i].size);
    if (data != g->tensors[i].data) copied++;
    if (i == 1) assert_int_equal((uintptr_t)data % 4, 0);
  }
  assert_int_equal(copied, (uintptr_t)g->tensors[1].data % 4 != 0 ? 1 : 0);
  berth__gguf_destroy(g);
  test_context_done(ctx, &alloc);
  gguf_file_free(&file);
}

/* Types without support here are shown by the names that people know them by, with their sizes. */
static void types_are_named(void **state) {
  static const struct {
    uint32_t number;
    const char *name;
    uint32_t elements, bytes;
    berth_type type;
  } types[] = {{17, "iq2_xs", 256, 74, BERTH_IQ2_XS},   {18, "iq3_xxs", 256, 98, BERTH_IQ3_XXS},
               {21, "iq3_s", 256, 110, BERTH_IQ3_S},    {22, "iq2_s", 256, 82, BERTH_IQ2_S},
               {29, "iq1_m", 256, 56, BERTH_TYPE_NONE}, {31, "q4_0_4_4", 32, 18, BERTH_TYPE_NONE},
               {42, "q2_0", 64, 18, BERTH_TYPE_NONE},   {77, "type 77", 0, 0, BERTH_TYPE_NONE}};
  (void)state;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    char text[32];
    const berth__ggml_type type = berth__ggml_type_at(types[i].number);
    assert_string_equal(berth__gguf_type_name(types[i].number, text), types[i].name);
    assert_true(type.elements == types[i].elements && type.bytes == types[i].bytes && type.type == types[i].type);
  }
}

/* ---- Bad files ------------------------------------------------------------------------------------------------- */

typedef struct bad_file {
  const char *what, *words;
  berth_status status;
  const char *part; /* of the message */
} bad_file;

#define BAD(what, words, part) \
  { what, words, BERTH_MALFORMED, part }
#define LACK(what, words, part) \
  { what, words, BERTH_UNSUPPORTED, part }
#define ONE_TENSOR(fields, data) GGUF_HEAD(1, 0) "'t' " fields " pad32 " data

static const bad_file bad_files[] = {
    /* the header */
    BAD("another magic", "\"FUGG\" w3 q0 q0", "does not begin with GGUF"),
    BAD("a pointer of Git LFS", "\"version https://git-lfs.github.com/spec/v1\"", "'git lfs pull'"),
    BAD("a web page", "\"<!DOCTYPE html><html>\"", "a web page"),
    BAD("a model from before GGUF", "\"tjgg\" w3 w32000", "before GGUF (GGJT)"),
    BAD("version 0", "GGUF w0 q0 q0", "version 0"),
    LACK("version 1", "GGUF w1 w0 w0", "version 1"),
    LACK("a version to come", "GGUF w4 q0 q0", "version 4; berth reads 2 and 3"),
    LACK("big endian", "GGUF w0x03000000 q0 q0", "big endian"),
    BAD("more tensors than bytes", GGUF_HEAD(-1, 0), "18446744073709551615 tensors"),
    BAD("more keys than bytes", GGUF_HEAD(0, -1), "18446744073709551615 keys"),
    BAD("one key too many", GGUF_HEAD(0, 2) "'a' w0 b0", "2 keys"),
    BAD("one tensor too many", GGUF_HEAD(2, 0) "'t' w0 w24 q0 q0 w1 z12", "within the offset of a tensor"),
    /* keys */
    BAD("a key's length of all ones", GGUF_HEAD(0, 1) "q-1 \"a\" w0 b0", "within the name of a key"),
    BAD("a key's length past the end", GGUF_HEAD(0, 1) "q7 \"a\" w0 b0", "within the name of a key"),
    BAD("a zero in a key", GGUF_HEAD(0, 1) "'a\\x00b' w0 b0", "zero character"),
    BAD("a key that is no UTF-8", GGUF_HEAD(0, 1) "'\\xFF' w0 b0", "not valid UTF-8"),
    BAD("a key twice", GGUF_HEAD(0, 2) "'a' w0 b0 'a' w0 b0", "\"a\" appears twice"),
    BAD("a key of 65536 bytes", GGUF_HEAD(0, 1) "q65536 c1 z65535 w0 b0", "has 65536 bytes; the format allows 65535"),
    /* values */
    BAD("a value of type 13", GGUF_HEAD(0, 1) "'a' w13 b0", "key \"a\": its value has type 13"),
    BAD("a value of type -1", GGUF_HEAD(0, 1) "'a' w-1 b0", "type 4294967295"),
    BAD("a string past the end", GGUF_HEAD(0, 1) "'a' w8 q3 \"ab\"", "key \"a\": the file ends at byte 47, within a"),
    BAD("a string's length of all ones", GGUF_HEAD(0, 1) "'a' w8 q-1 \"ab\"", "within a string"),
    BAD("an array of type 13", GGUF_HEAD(0, 1) "'a' w9 w13 q0", "type 13"),
    BAD("an array past the end", GGUF_HEAD(0, 1) "'a' w9 w4 q2 w1", "within the elements of an array"),
    BAD("an array whose size wraps", GGUF_HEAD(0, 1) "'a' w9 w10 q0x2000000000000001 q1", "elements of an array"),
    BAD("more strings than bytes", GGUF_HEAD(0, 1) "'a' w9 w8 q-1 'a'", "within an array of strings"),
    BAD("a string of an array past the end", GGUF_HEAD(0, 1) "'a' w9 w8 q2 'a' q9 z8", "within an array of strings"),
    BAD("an inner array past the end", GGUF_HEAD(0, 1) "'a' w9 w9 q1 w0 q3 b1", "within the elements of an array"),
    BAD("more inner arrays than bytes", GGUF_HEAD(0, 1) "'a' w9 w9 q-1 w0 q0", "within the type of a value"),
    LACK("arrays five deep", GGUF_HEAD(0, 1) "'a' w9 w9 q1 w9 q1 w9 q1 w9 q1 w0 q0", "nested more than 4 deep"),
    /* the alignment */
    BAD("alignment 13", GGUF_HEAD(0, 1) "'general.alignment' w4 w13", "general.alignment is 13"),
    BAD("alignment 0", GGUF_HEAD(0, 1) "'general.alignment' w4 w0", "general.alignment is 0"),
    BAD("an alignment of 64 bits", GGUF_HEAD(0, 1) "'general.alignment' w10 q32", "power of two as u32"),
    BAD("an alignment as text", GGUF_HEAD(0, 1) "'general.alignment' w8 '32'", "of type string"),
    /* tensors */
    BAD("a name of 65 bytes", GGUF_HEAD(1, 0) "q65 c1 z64 w0 w0 q0 pad32 z4", "has 65 bytes; the format allows 64"),
    BAD("a name's length of all ones", GGUF_HEAD(1, 0) "q-1 \"t\" w0 w0 q0 z32", "within the name of a tensor"),
    BAD("a name with a zero", GGUF_HEAD(1, 0) "'t\\x00' w0 w0 q0 pad32 z4", "zero character"),
    BAD("a name twice", GGUF_HEAD(2, 0) "'t' w0 w0 q0 't' w0 w0 q32 pad32 z36", "tensor \"t\" appears twice"),
    BAD("five dimensions", ONE_TENSOR("w5 q1 q1 q1 q1 q1 w0 q0", "z4"), "tensor \"t\": it has 5 dimensions"),
    BAD("an extent of -1", ONE_TENSOR("w1 q-1 w0 q0", "z4"), "does not fit in 63 bits"),
    BAD("too many elements", ONE_TENSOR("w2 q8589934588 q8589934588 w0 q0", "z4"), "number of elements"),
    BAD("too many elements behind a zero", ONE_TENSOR("w3 q0x4000000000000000 q4 q0 w0 q0", "z4"), "number of elem"),
    BAD("too many bytes", ONE_TENSOR("w2 q1533916892 q1533916892 w27 q0", "z4"), "its size in bytes"),
    BAD("half a block", ONE_TENSOR("w2 q16 q2 w8 q0", "z34"), "16 elements, which are not whole q8_0 blocks of 32"),
    BAD("a scalar of a block type", ONE_TENSOR("w0 w12 q0", "z144"), "not whole q4_K blocks"),
    BAD("an offset of all ones", ONE_TENSOR("w1 q1 w0 q-1", "z4"), "not a multiple of the alignment"),
    BAD("an offset that wraps", ONE_TENSOR("w1 q1 w0 q0xFFFFFFFFFFFFFFE0", "z4"),
        "4 bytes from byte 18446744073709551"),
    BAD("an offset that is not aligned", ONE_TENSOR("w1 q1 w0 q4", "z8"), "begins at 4, which is not a multiple"),
    BAD("an offset behind the file", ONE_TENSOR("w1 q1 w0 q32", "z4"), "it has 68 of the 100 bytes"),
    BAD("an unknown type behind the file", ONE_TENSOR("w1 q1 w77 q64", "z4"), "it has 68 of the 128 bytes"),
    BAD("an alignment that the offsets do not have",
        GGUF_HEAD(2, 1) "'general.alignment' w4 w64 't' w1 q1 w0 q0 'u' w1 q1 w0 q32 pad64 z64", "alignment, 64"),
    BAD("data that is cut off", ONE_TENSOR("w1 q2 w0 q0", "z7"), "did not finish: it has 71 of the 72 bytes"),
    BAD("data of three tensors that is cut off in the first",
        GGUF_HEAD(3, 0) "'t' w1 q40 w0 q0 'u' w1 q1 w0 q256 'v' w1 q1 w0 q192 pad32 z100",
        "it has 228 of the 388 bytes"),
    BAD("no data", GGUF_HEAD(1, 0) "'t' w1 q2 w0 q0", "of the 72 bytes"),
    BAD("sizes that add up to too much",
        GGUF_HEAD(2, 0) "'t' w1 q0x7FFFFFFFFFFFFFC0 w24 q0 'u' w1 q0x7FFFFFFFFFFFFFC0 w24 q0x7FFFFFFFFFFFFFC0 pad32",
        "of the 18446744073709551"),
    BAD("two tensors in one place", GGUF_HEAD(2, 0) "'t' w1 q1 w0 q0 'u' w1 q1 w0 q0 pad32 z4",
        "\"t\" and \"u\" overlap"),
    BAD("overlap out of order", GGUF_HEAD(3, 0) "'t' w1 q1 w0 q64 'u' w1 q9 w0 q32 'v' w1 q1 w0 q0 pad32 z72",
        "\"u\" and \"t\" overlap"),
    /* parts */
    BAD("part 3 of 3, counted from 0", GGUF_HEAD(0, 2) "'split.no' w2 h3 'split.count' w2 h3", "part number 3 of 3"),
    BAD("part -1", GGUF_HEAD(0, 2) "'split.no' w5 w-1 'split.count' w2 h3", "must not be negative"),
    BAD("parts without end", GGUF_HEAD(0, 1) "'split.count' w10 q-1", "of 18446744073709551615"),
    LACK("a part in memory", GGUF_HEAD(0, 1) "'split.count' w2 h2", "split over 2 files; memory holds only one"),
};

static void refuses_every_bad_file(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
    const bad_file *bad = &bad_files[i];
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_error err = {BERTH_OK, ""};
    berth__gguf *g;
    gguf_file file = gguf_file_make(bad->words);
    const berth_status status = open_memory(ctx, &file, &g, &err);
    if (status != bad->status || strstr(err.message, bad->part) == NULL)
      fail_msg("%s: status %d, \"%s\"", bad->what, (int)status, err.message);
    assert_null(g);
    test_context_done(ctx, &alloc);
    gguf_file_free(&file);
  }
}

static void refuses_every_cut(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__gguf *g;
  gguf_file whole = gguf_file_make(GGUF_HEAD(
      1, 3) "'a' w9 w8 q2 'x' 'yy' 'n' w9 w9 q1 w4 q1 w5 'b' w8 'text' "
            "'t' w2 q2 q2 w0 q0 pad32 c16");
  for (size_t size = 0; size < whole.size; size++) {
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (size > 0) memcpy(bytes, whole.bytes, size);
    gguf_file cut = {.bytes = bytes, .size = size};
    test_expect_error(open_memory(ctx, &cut, &g, &err), BERTH_MALFORMED, &err, NULL);
    assert_null(g);
    free(bytes);
  }
  TEST_OK(open_memory(ctx, &whole, &g, &err));
  berth__gguf_destroy(g);
  gguf_file_free(&whole);
  berth_context_destroy(ctx);
}

/* The beginning of a file is enough where it has all of the header, and asks for more where it has not. */
static void a_header_is_read_without_its_data(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth__gguf *g;
  gguf_file whole = gguf_file_make(GGUF_HEAD(
      2, 3) "'a' w9 w8 q2 'x' 'yy' 'n' w9 w9 q1 w4 q1 w5 'b' w8 'text' "
            "'t' w2 q2 q2 w0 q0 'u' w1 q4 w0 q32 pad32 c16 pad32 c16");
  bool is_whole = false;
  for (size_t size = 0; size < whole.size; size++) {
    uint8_t *bytes = malloc(size > 0 ? size : 1);
    if (size > 0) memcpy(bytes, whole.bytes, size);
    berth__mapping memory = {.data = bytes, .size = size, .whole = whole.size};
    const berth_status status = berth__gguf_open(ctx, NULL, &memory, &g, &err);
    if (status != BERTH_OK) {
      test_expect_error(status, BERTH_IO, &err, "not all of its header");
      assert_false(is_whole);
    } else {
      is_whole = true;
      assert_int_equal(g->n_tensors, 2);
      for (size_t i = 0; i < 2; i++) assert_true(g->tensors[i].data == NULL && g->tensors[i].size == 16);
      assert_true(g->tensors[1].begin == g->tensors[0].begin + 32);
    }
    berth__gguf_destroy(g);
    free(bytes);
  }
  assert_true(is_whole); /* before the data is there */
  gguf_file_free(&whole);
  berth_context_destroy(ctx);
}

/* What no file of that size can hold is wrong at once, however much of it is there. */
static void a_header_that_lies_is_refused(void **state) {
  (void)state;
  static const struct {
    const char *words, *part;
    uint64_t file_size;
  } cases[] = {
      {GGUF_HEAD(0, 1000), "says that it has 1000 keys", 1000},
      {GGUF_HEAD(1000, 0), "says that it has 1000 tensors", 1000},
      {GGUF_HEAD(0, 1) "'a' w9 w0 q1000", "it may be cut off", 1000},
      {GGUF_HEAD(0, 1) "'a' w9 w12 q-1", "it may be cut off", 1u << 30},
      {GGUF_HEAD(0, 1) "'a' w9 w8 q-1", "it may be cut off", 1u << 30},
      {GGUF_HEAD(1, 0) "'t' w1 q1000 w0 q0 pad32", "it has 4000 of the 4064 bytes", 4000},
      {GGUF_HEAD(0, 1) "'a' w8 'b'", "cannot begin with", 20},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_error err = {BERTH_OK, ""};
    berth_model_info *info;
    gguf_file file = gguf_file_make(cases[i].words);
    const berth_status status = berth_model_inspect_memory(ctx, file.bytes, file.size, cases[i].file_size, &info, &err);
    if ((status != BERTH_MALFORMED && status != BERTH_INVALID) || strstr(err.message, cases[i].part) == NULL)
      fail_msg("%s: status %d, \"%s\"", cases[i].words, (int)status, err.message);
    assert_null(info);
    gguf_file_free(&file);
  }
  berth_context_destroy(ctx);
}

static void only_of_gguf_the_beginning_is_enough(void **state) {
  (void)state;
  static const char text[] = "graph \"g\" { input %x : f32[2]\n output \"y\" = %x }";
  berth_context *ctx = test_context();
  berth_load_desc desc = BERTH_LOAD_DESC_INIT;
  berth_graph *graph;
  berth_error err;
  desc.file_size = sizeof text - 1;
  TEST_OK(berth_graph_from_memory_with(ctx, text, sizeof text - 1, NULL, NULL, &desc, &graph, &err));
  berth_graph_destroy(graph);
  desc.file_size++;
  test_expect_error(berth_graph_from_memory_with(ctx, text, sizeof text - 1, NULL, NULL, &desc, &graph, &err),
                    BERTH_UNSUPPORTED, &err, "only a GGUF file");
  assert_null(graph);
  test_expect_error(berth_graph_load_with(ctx, "x", &desc, &graph, &err), BERTH_INVALID, &err, "from memory");
  berth_context_destroy(ctx);
}

/* ---- Models in several files ----------------------------------------------------------------------------------- */

#define PART(no, count, all, name, value)                                                         \
  "'split.no' w2 h" #no " 'split.count' w2 h" #count " 'split.tensors.count' w5 w" #all " '" name \
  "' w1 q1 w26 q0 pad32 w" #value
#define PART_FILE(no, name, value) GGUF_HEAD(1, 3) PART(no, 3, 3, name, value)

static void write_parts(void) {
  gguf_file_write(test_path("m-00001-of-00003.gguf"),
                  GGUF_HEAD(1, 4) "'general.architecture' w8 'llama' " PART(0, 3, 3, "a", 11));
  gguf_file_write(test_path("m-00002-of-00003.gguf"), PART_FILE(1, "b", 22));
  gguf_file_write(test_path("m-00003-of-00003.gguf"), PART_FILE(2, "c", 33));
}

static void expect_parts_bad(const char *path, berth_status want, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  berth__gguf *g;
  test_expect_error(open_path(ctx, path, &g, &err), want, &err, part);
  test_context_done(ctx, &alloc);
}

static void any_part_opens_the_model(void **state) {
  (void)state;
  write_parts();
  for (int i = 1; i <= 3; i++) {
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_error err;
    berth__gguf *g;
    char name[32];
    snprintf(name, sizeof name, "m-%05d-of-00003.gguf", i);
    TEST_OK(open_path(ctx, test_path(name), &g, &err));
    assert_int_equal(g->n_files, 3);
    assert_int_equal(g->n_tensors, 3);
    expect_text(g->architecture, "llama");
    for (uint32_t k = 0; k < 3; k++) {
      const berth__gguf_tensor *t = berth__gguf_tensor_find(g, (const char *[]){"a", "b", "c"}[k]);
      assert_non_null(t);
      assert_int_equal(t->part, k);
      assert_int_equal(t->data[0], 11 * (k + 1));
      berth__gguf_rest(g, t->data, (size_t)t->size);
      assert_int_equal(t->data[0], 11 * (k + 1));
    }
    TEST_OK(berth__gguf_check(g, &err));
    assert_ptr_equal(berth__gguf_retain(g), g);
    berth__gguf_destroy(g);
    berth__gguf_destroy(g);
    test_context_done(ctx, &alloc);
  }
}

static void parts_that_do_not_fit_are_refused(void **state) {
  (void)state;
  const char *second = "m-00002-of-00003.gguf";
  write_parts();
  gguf_file_write(test_path(second), PART_FILE(2, "b", 22));
  expect_parts_bad(test_path("m-00001-of-00003.gguf"), BERTH_MALFORMED,
                   "m-00002-of-00003.gguf: its keys say that it is part 3 of 3");
  gguf_file_write(test_path(second), GGUF_HEAD(1, 0) "'b' w1 q1 w26 q0 pad32 w5");
  expect_parts_bad(test_path("m-00001-of-00003.gguf"), BERTH_MALFORMED, "part 1 of 1");
  gguf_file_write(test_path(second), PART_FILE(1, "a", 22));
  expect_parts_bad(test_path("m-00003-of-00003.gguf"), BERTH_MALFORMED, "\"a\" is in two parts");
  gguf_file_write(test_path(second), "GGUF w3 q0");
  expect_parts_bad(test_path("m-00001-of-00003.gguf"), BERTH_MALFORMED, "m-00002-of-00003.gguf: the file ends");
  gguf_file_write(test_path(second),
                  GGUF_HEAD(0, 3) "'split.no' w2 h1 'split.count' w2 h3 'split.tensors.count' w5 w3");
  expect_parts_bad(test_path("m-00001-of-00003.gguf"), BERTH_MALFORMED,
                   "said to have 3 tensors, but its 3 parts have 2");
  assert_int_equal(remove(test_path(second)), 0);
  expect_parts_bad(test_path("m-00001-of-00003.gguf"), BERTH_IO, "part 2 of 3 of the model: cannot open");
  write_parts();
  assert_int_equal(remove(test_path("m-00001-of-00003.gguf")), 0);
  expect_parts_bad(test_path("m-00003-of-00003.gguf"), BERTH_IO, "part 1 of 3 of the model: cannot open");
  write_parts();
  gguf_file_write(test_path("other.gguf"), PART_FILE(0, "a", 1));
  expect_parts_bad(test_path("other.gguf"), BERTH_MALFORMED, "would end in \"-00001-of-00003.gguf\"");
}

/* ---- Through the public functions ------------------------------------------------------------------------------ */

static void weights_of_all_parts_are_attached(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  berth_weights *weights;
  berth_graph *graph;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  static const char text[] = "graph \"g\" { param %a : i32[1] param %b : i32[1] %s = add(%a, %b) output \"s\" = %s }";
  write_parts();
  TEST_OK(berth_weights_open(ctx, test_path("m-00002-of-00003.gguf"), &weights, &err));
  assert_int_equal(berth_weights_count(weights), 3);
  TEST_OK(berth_weights_at(weights, berth_weights_find(weights, "c"), &info, &err));
  assert_int_equal(*(const int32_t *)info.data, 33);
  assert_int_equal(info.size, 4);
  TEST_OK(berth_graph_from_memory(ctx, text, sizeof text - 1, NULL, NULL, &graph, &err));
  TEST_OK(berth_graph_attach(graph, weights, &err));
  berth_weights_destroy(weights);
  berth_graph_destroy(graph);
  gguf_file file = gguf_file_make(tensors);
  test_expect_error(berth_weights_from_memory(ctx, file.bytes, file.size, &weights, &err), BERTH_UNSUPPORTED, &err,
                    "tensor \"new\" is of type type 99, which berth does not support");
  gguf_file_free(&file);
  test_context_done(ctx, &alloc);
}

static const berth_model_key *shown_key(const berth_model_info *info, const char *name) {
  for (size_t i = 0; i < info->n_keys; i++)
    if (strcmp(info->keys[i].name, name) == 0) return &info->keys[i];
  fail_msg("no key %s", name);
  return NULL;
}

static void expect_shown(const berth_model_info *info, const char *name, const char *type, uint64_t count,
                         const char *value) {
  const berth_model_key *key = shown_key(info, name);
  assert_string_equal(key->type, type);
  assert_int_equal(key->count, count);
  assert_string_equal(key->values[key->n_values - 1], value);
}

static void inspect_shows_keys_and_tensors(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth_model_info *info;
  gguf_file_write(test_path("kinds.gguf"), every_kind);
  TEST_OK(berth_model_inspect(ctx, test_path("kinds.gguf"), &info, &err));
  assert_int_equal(info->ir_version, 3);
  assert_string_equal(info->architecture, "llama");
  assert_string_equal(info->tokenizer, "");
  expect_shown(info, "u64", "u64", 1, "18446744073709551615");
  expect_shown(info, "i16", "i16", 1, "-300");
  expect_shown(info, "bool", "bool", 1, "true");
  expect_shown(info, "f64", "f64", 1, "1e+300");
  expect_shown(info, "string", "string", 1, "h\xC3\xA9llo");
  expect_shown(info, "strings", "string", 3, "ccc");
  expect_shown(info, "nested", "array", 3, "1 of array");
  assert_true(shown_key(info, "numbers")->is_array && !shown_key(info, "string")->is_array);
  berth_model_info_destroy(info);
  gguf_file_write(test_path("tensors.gguf"), tensors);
  TEST_OK(berth_model_inspect(ctx, test_path("tensors.gguf"), &info, &err));
  assert_int_equal(info->n_tensors, 5);
  assert_int_equal(info->param_bytes, 32 + 34 + 4);
  assert_string_equal(info->tensors[1].type, "q8_0");
  assert_true(info->tensors[1].supported);
  assert_string_equal(info->tensors[4].type, "type 99");
  assert_false(info->tensors[4].supported);
  berth_model_info_destroy(info);
  write_parts();
  TEST_OK(berth_model_inspect(ctx, test_path("m-00003-of-00003.gguf"), &info, &err));
  assert_int_equal(info->n_files, 3);
  assert_string_equal(info->files[2], "m-00003-of-00003.gguf");
  assert_int_equal(info->n_tensors, 3);
  berth_model_info_destroy(info);
  berth_context_destroy(ctx);
}

/* The shortest text that is the same f32; the double that it is has nine digits more. */
static void an_f32_is_shown_short(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth_model_info *info;
  gguf_file_write(test_path("f.gguf"), GGUF_HEAD(0, 3) "'a' w6 f1e-5 'b' w6 w0x7FC00000 'c' w9 w6 q2 f1 f0.1");
  TEST_OK(berth_model_inspect(ctx, test_path("f.gguf"), &info, &err));
  expect_shown(info, "a", "f32", 1, "1e-05");
  expect_shown(info, "b", "f32", 1, "nan");
  expect_shown(info, "c", "f32", 2, "0.1");
  berth_model_info_destroy(info);
  berth_context_destroy(ctx);
}

/* ---- No memory ------------------------------------------------------------------------------------------------- */

static berth_status open_all(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__gguf *g;
  gguf_file file = gguf_file_make(every_kind);
  berth_status status = open_memory(ctx, &file, &g, err);
  berth__gguf_destroy(g);
  gguf_file_free(&file);
  if (status != BERTH_OK) return status;
  status = open_path(ctx, test_path("m-00002-of-00003.gguf"), &g, err);
  berth__gguf_destroy(g);
  if (status != BERTH_OK) return status;
  berth_weights *weights;
  status = berth_weights_open(ctx, test_path("m-00002-of-00003.gguf"), &weights, err);
  berth_weights_destroy(weights);
  if (status != BERTH_OK) return status;
  berth_model_info *info;
  status = berth_model_inspect(ctx, test_path("kinds.gguf"), &info, err);
  berth_model_info_destroy(info);
  if (status != BERTH_OK) return status;
  gguf_file kinds = gguf_file_make(every_kind);
  status = berth_model_inspect_memory(ctx, kinds.bytes, kinds.size, kinds.size + 1, &info, err);
  berth_model_info_destroy(info);
  gguf_file_free(&kinds);
  return status;
}

static void survives_failed_allocations(void **state) {
  (void)state;
  write_parts();
  gguf_file_write(test_path("kinds.gguf"), every_kind);
  assert_true(test_fail_each_allocation(open_all, NULL) > 40);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_every_kind_of_value),
      cmocka_unit_test(reads_tensors),
      cmocka_unit_test(finds_any_of_many_strings),
      cmocka_unit_test(copies_only_what_is_not_aligned),
      cmocka_unit_test(types_are_named),
      cmocka_unit_test(refuses_every_bad_file),
      cmocka_unit_test(refuses_every_cut),
      cmocka_unit_test(a_header_is_read_without_its_data),
      cmocka_unit_test(a_header_that_lies_is_refused),
      cmocka_unit_test(only_of_gguf_the_beginning_is_enough),
      cmocka_unit_test(any_part_opens_the_model),
      cmocka_unit_test(parts_that_do_not_fit_are_refused),
      cmocka_unit_test(weights_of_all_parts_are_attached),
      cmocka_unit_test(inspect_shows_keys_and_tensors),
      cmocka_unit_test(an_f32_is_shown_short),
      cmocka_unit_test(survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
