/* safetensors: good files, every way in which one can be wrong, and no memory. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "import/weights.h"
#include "support/support.h"

typedef struct file {
  uint8_t *bytes; /* exactly as long as the file, so that the sanitizer sees a read past its end */
  size_t size;
} file;

/* A file with this header (its length may be lied about by `stated`, 0: the truth) and this many data bytes, which
 * count up from 0. */
static file make_file(const char *header, uint64_t stated, size_t data) {
  size_t length = strlen(header);
  uint64_t said = stated ? stated : length;
  file f = {malloc(8 + length + data), 8 + length + data};
  assert_non_null(f.bytes);
  for (int i = 0; i < 8; i++) f.bytes[i] = (uint8_t)(said >> (8 * i));
  memcpy(f.bytes + 8, header, length);
  for (size_t i = 0; i < data; i++) f.bytes[8 + length + i] = (uint8_t)i;
  return f;
}

#define TENSOR(name, dtype, shape, begin, end) \
  "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end "]}"

/* ---- Good files ------------------------------------------------------------------------------------------------ */

static void reads_every_type(void **state) {
  (void)state;
  static const struct {
    const char *dtype;
    berth_type type;
  } types[] = {{"F32", BERTH_F32},   {"F64", BERTH_F64}, {"F16", BERTH_F16}, {"BF16", BERTH_BF16}, {"I8", BERTH_I8},
               {"U8", BERTH_U8},     {"I16", BERTH_I16}, {"I32", BERTH_I32}, {"I64", BERTH_I64},   {"U32", BERTH_U32},
               {"BOOL", BERTH_BOOL}, {"U16", BERTH_U16}, {"U64", BERTH_U64}};
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    berth_context *ctx = test_context();
    berth_weights *w;
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    berth_error err;
    char header[256];
    size_t size = 6 * berth_type_size(types[i].type);
    snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"%s\",\"shape\":[2,3],\"data_offsets\":[0,%zu]}}",
             types[i].dtype, size);
    file f = make_file(header, 0, size);
    TEST_OK(berth_weights_from_memory(ctx, f.bytes, f.size, &w, &err));
    assert_int_equal(berth_weights_count(w), 1);
    TEST_OK(berth_weights_at(w, 0, &info, &err));
    assert_string_equal(info.name, "t");
    assert_int_equal(info.type, types[i].type);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.dim[0], 2);
    assert_int_equal(info.dim[1], 3);
    assert_int_equal(info.size, size);
    assert_int_equal((uintptr_t)info.data % berth_type_size(info.type), 0);
    assert_memory_equal(info.data, f.bytes + f.size - size, size);
    berth_weights_destroy(w);
    berth_context_destroy(ctx);
    free(f.bytes);
  }
}

/* Out of order in the header, a scalar, an empty tensor, metadata, an escaped name, spaces at the end. */
static const char several[] =
    "{" TENSOR("b", "F32", "[2]", 4, 12) ",\"__metadata__\":{\"format\":\"pt\",\"by\":\"a \\\"test\\\"\"}," TENSOR(
        "a", "I32", "[]", 0, 4) "," TENSOR("none", "F64", "[3,0,5]", 12, 12) "," TENSOR("\\u00e9.w", "U8", "[1,1,3]",
                                                                                        12, 15) "}    ";

static void reads_several_tensors_from_a_file(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_weights *w;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  berth_error err;
  file f = make_file(several, 0, 15);
  const char *path = test_path("several.safetensors");
  test_write_file(path, f.bytes, f.size);
  free(f.bytes);
  TEST_OK(berth_weights_open(ctx, path, &w, &err));
  assert_int_equal(berth_weights_count(w), 4);
  assert_int_equal(berth_weights_find(w, "b"), 0);
  assert_int_equal(berth_weights_find(w, "a"), 1);
  assert_int_equal(berth_weights_find(w, "\xc3\xa9.w"), 3);
  assert_int_equal(berth_weights_find(w, "c"), UINT32_MAX);
  assert_int_equal(berth_weights_find(w, "__metadata__"), UINT32_MAX);
  TEST_OK(berth_weights_at(w, 0, &info, &err));
  assert_memory_equal(info.data, ((uint8_t[]){4, 5, 6, 7, 8, 9, 10, 11}), 8);
  TEST_OK(berth_weights_at(w, 1, &info, &err));
  assert_int_equal(info.rank, 0);
  assert_int_equal(info.size, 4);
  TEST_OK(berth_weights_at(w, 2, &info, &err));
  assert_int_equal(info.size, 0);
  assert_int_equal(info.dim[2], 5);
  assert_non_null(info.data);
  test_expect_error(berth_weights_at(w, 4, &info, &err), BERTH_INVALID, &err, "no tensor 4");
  berth_weights_destroy(w);
  test_context_done(ctx, &alloc);
}

/* The same header at every distance from an aligned address. */
static void copies_only_what_is_not_aligned(void **state) {
  (void)state;
  _Alignas(16) uint8_t room[256];
  file f = make_file("{" TENSOR("x", "F64", "[2]", 0, 16) "}", 0, 16);
  size_t length = f.size - 16;
  for (size_t shift = 0; shift < 8; shift++) {
    berth_context *ctx = test_context();
    berth_weights *w;
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    berth_error err;
    memcpy(room + shift, f.bytes, f.size);
    TEST_OK(berth_weights_from_memory(ctx, room + shift, f.size, &w, &err));
    TEST_OK(berth_weights_at(w, 0, &info, &err));
    assert_int_equal((uintptr_t)info.data % 8, 0);
    assert_memory_equal(info.data, f.bytes + length, 16);
    bool inside = info.data == (const void *)(room + shift + length);
    assert_int_equal(inside, (shift + length) % 8 == 0);
    berth_weights_destroy(w);
    berth_context_destroy(ctx);
  }
  free(f.bytes);
}

static void holders_share_the_weights(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_weights *w;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  berth_error err;
  file f = make_file(several, 0, 15);
  TEST_OK(berth_weights_from_memory(ctx, f.bytes, f.size, &w, &err));
  assert_ptr_equal(berth__weights_retain(w), w);
  berth_weights_destroy(w);
  TEST_OK(berth_weights_at(w, 3, &info, &err));
  assert_memory_equal(info.data, ((uint8_t[]){12, 13, 14}), 3);
  berth_weights_destroy(w);
  berth_weights_destroy(NULL);
  test_context_done(ctx, &alloc);
  free(f.bytes);
}

static void reads_a_thousand_in_any_order(void **state) {
  (void)state;
  enum {
    COUNT = 1000
  };
  berth_context *ctx = test_context();
  berth_weights *w;
  berth_error err;
  uint64_t random = 7;
  uint32_t order[COUNT];
  char *header = malloc(COUNT * 80 + 2), name[16];
  size_t n = 0;
  for (uint32_t i = 0; i < COUNT; i++) order[i] = i;
  for (uint32_t i = COUNT; i-- > 1;) {
    uint32_t j = (uint32_t)(test_random(&random) % (i + 1)), kept = order[i];
    order[i] = order[j];
    order[j] = kept;
  }
  for (uint32_t i = 0; i < COUNT; i++) {
    n += (size_t)sprintf(header + n, "%c\"t%u\":{\"data_offsets\":[%u,%u],\"dtype\":\"U8\",\"shape\":[3]}",
                         i ? ',' : '{', order[i], 3 * order[i], 3 * order[i] + 3);
  }
  strcpy(header + n, "}");
  file f = make_file(header, 0, 3 * COUNT);
  TEST_OK(berth_weights_from_memory(ctx, f.bytes, f.size, &w, &err));
  for (uint32_t i = 0; i < COUNT; i++) {
    berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
    snprintf(name, sizeof name, "t%u", i);
    TEST_OK(berth_weights_at(w, berth_weights_find(w, name), &info, &err));
    assert_int_equal(*(const uint8_t *)info.data, (uint8_t)(3 * i));
  }
  berth_weights_destroy(w);
  berth_context_destroy(ctx);
  free(f.bytes);
  free(header);
}

/* ---- Bad files ------------------------------------------------------------------------------------------------- */

typedef struct bad_file {
  const char *what;
  const char *header;
  size_t data;
  uint64_t stated;
  berth_status status;
  const char *part; /* of the message */
} bad_file;

#define BAD(what, header, data, part) \
  { what, header, data, 0, BERTH_MALFORMED, part }
#define LIE(what, header, data, stated, part) \
  { what, header, data, stated, BERTH_MALFORMED, part }
#define LACK(what, header, data, part) \
  { what, header, data, 0, BERTH_UNSUPPORTED, part }

static const bad_file bad_files[] = {
    /* the header's length */
    LIE("length one past the end", "{}", 0, 3, "only 2 follow"),
    LIE("length over the limit", "{}", 0, 100000001, "over the limit"),
    LIE("length of all ones", "{}", 0, UINT64_MAX, "over the limit"),
    LIE("length cuts the JSON", "{" TENSOR("a", "U8", "[1]", 0, 1) "}", 1, 20, "not closed"),
    /* the JSON */
    BAD("no header", "", 0, "does not begin with '{'"),
    BAD("space before the brace", " {}", 0, "does not begin with '{'"),
    BAD("an array", "[]", 0, "does not begin with '{'"),
    BAD("not closed", "{", 0, "ends too early"),
    BAD("text behind it", "{}x", 0, "nothing may follow"),
    BAD("zero behind it", "{}\\u0000", 0, "nothing may follow"),
    BAD("bad UTF-8 in a name", "{\"\xff\":{}}", 0, "UTF-8"),
    BAD("zero in a name", "{" TENSOR("a\\u0000", "U8", "[1]", 0, 1) "}", 1, "zero character"),
    /* names */
    BAD("a name twice", "{" TENSOR("a", "U8", "[1]", 0, 1) "," TENSOR("a", "U8", "[1]", 1, 2) "}", 2,
        "\"a\" appears twice"),
    BAD("a name twice, once escaped", "{" TENSOR("a", "U8", "[1]", 0, 1) "," TENSOR("\\u0061", "U8", "[1]", 1, 2) "}",
        2, "\"a\" appears twice"),
    /* metadata */
    BAD("metadata is a list", "{\"__metadata__\":[]}", 0, "must be an object"),
    BAD("metadata holds a number", "{\"__metadata__\":{\"a\":1}}", 0, "only strings"),
    BAD("metadata holds an object", "{\"__metadata__\":{\"a\":{}}}", 0, "only strings"),
    BAD("metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "appears twice"),
    BAD("a key of the metadata twice", "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "\"a\" appears twice"),
    /* entries */
    BAD("an entry is a number", "{\"a\":1}", 0, "tensor \"a\""),
    BAD("an entry is a list", "{\"a\":[]}", 0, "must be an object"),
    BAD("an empty entry", "{\"a\":{}}", 0, "dtype is missing"),
    BAD("no dtype", "{\"a\":{\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "dtype is missing"),
    BAD("no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "shape is missing"),
    BAD("no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "data_offsets is missing"),
    BAD("dtype twice", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\"}}", 1, "dtype appears twice"),
    BAD("unknown member", "{\"a\":{\"strides\":[1]}}", 1, "strides is unknown"),
    BAD("dtype is a number", "{\"a\":{\"dtype\":4}}", 1, "dtype must be a string"),
    LACK("dtype F8_E4M3", "{" TENSOR("a", "F8_E4M3", "[1]", 0, 1) "}", 1, "F8_E4M3"),
    LACK("dtype in small letters", "{" TENSOR("a", "f32", "[1]", 0, 4) "}", 4, "f32"),
    BAD("shape is a number", "{\"a\":{\"shape\":3}}", 0, "shape must be an array"),
    BAD("shape holds a string", "{\"a\":{\"shape\":[\"3\"]}}", 0, "whole number"),
    BAD("shape holds an array", "{\"a\":{\"shape\":[[3]]}}", 0, "whole number"),
    BAD("negative extent", "{\"a\":{\"shape\":[-1]}}", 0, "whole number"),
    BAD("fraction as an extent", "{\"a\":{\"shape\":[1.5]}}", 0, "whole number"),
    BAD("extent over 63 bits", "{\"a\":{\"shape\":[9223372036854775808]}}", 0, "too large"),
    LACK("nine dimensions", "{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", 0, 1) "}", 1, "9 dimensions"),
    BAD("one offset", "{\"a\":{\"data_offsets\":[0]}}", 0, "has 1 numbers"),
    BAD("three offsets", "{\"a\":{\"data_offsets\":[0,1,2]}}", 2, "has 3 numbers"),
    BAD("offsets as an object", "{\"a\":{\"data_offsets\":{}}}", 0, "must be an array"),
    BAD("negative offset", "{\"a\":{\"data_offsets\":[-1,0]}}", 0, "whole number"),
    /* sizes */
    BAD("begin behind end", "{" TENSOR("a", "U8", "[1]", 1, 0) "}", 1, "behind its end"),
    BAD("end outside", "{" TENSOR("a", "U8", "[2]", 0, 2) "}", 1, "data section of 1 byte;"),
    BAD("end far outside", "{" TENSOR("a", "U8", "[2]", 0, 9223372036854775807) "}", 1, "data section of 1 byte;"),
    BAD("too few bytes for the shape", "{" TENSOR("a", "F32", "[2]", 0, 4) "}", 4, "needs 8 bytes"),
    BAD("too many bytes for the shape", "{" TENSOR("a", "F32", "[1]", 0, 8) "}", 8, "needs 4 bytes"),
    BAD("bytes for an empty shape", "{" TENSOR("a", "F32", "[0]", 0, 4) "}", 4, "needs 0 bytes"),
    BAD("size overflows", "{" TENSOR("a", "F32", "[4294967296,4294967296]", 0, 4) "}", 4, "64 bits"),
    BAD("size wraps to its bytes", "{" TENSOR("a", "F64", "[2305843009213693953]", 0, 8) "}", 8, "64 bits"),
    /* layout */
    BAD("overlap", "{" TENSOR("a", "U8", "[4]", 0, 4) "," TENSOR("b", "U8", "[4]", 3, 7) "}", 7,
        "\"a\" and \"b\" overlap at byte 3"),
    BAD("one inside another", "{" TENSOR("in", "U8", "[1]", 1, 2) "," TENSOR("out", "U8", "[4]", 0, 4) "}", 4,
        "\"out\" and \"in\" overlap"),
    BAD("two in one place", "{" TENSOR("a", "U8", "[4]", 0, 4) "," TENSOR("b", "U8", "[4]", 0, 4) "}", 4, "overlap"),
    BAD("hole between", "{" TENSOR("a", "U8", "[2]", 0, 2) "," TENSOR("b", "U8", "[2]", 5, 7) "}", 7,
        "\"a\" and \"b\" lie 3 bytes"),
    BAD("hole in front", "{" TENSOR("a", "U8", "[2]", 1, 3) "}", 3, "begins at byte 1"),
    BAD("hole behind", "{" TENSOR("a", "U8", "[2]", 0, 2) "}", 3, "1 bytes behind the last tensor \"a\""),
    BAD("data and no tensors", "{}", 3, "3 bytes behind"),
};

static void refuses_every_bad_file(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof bad_files / sizeof bad_files[0]; i++) {
    const bad_file *bad = &bad_files[i];
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_weights *w = (berth_weights *)(uintptr_t)1;
    berth_error err = {BERTH_OK, ""};
    file f = make_file(bad->header, bad->stated, bad->data);
    berth_status status = berth_weights_from_memory(ctx, f.bytes, f.size, &w, &err);
    if (status != bad->status) print_error("case: %s\n", bad->what);
    test_expect_error(status, bad->status, &err, bad->part);
    assert_null(w);
    test_context_done(ctx, &alloc);
    free(f.bytes);
  }
}

/* Every prefix of a good file is a bad one. */
static void refuses_every_cut(void **state) {
  (void)state;
  file f = make_file(several, 0, 15);
  for (size_t size = 0; size < f.size; size++) {
    berth_context *ctx = test_context();
    berth_weights *w;
    berth_error err;
    uint8_t *cut = malloc(size ? size : 1);
    memcpy(cut, f.bytes, size);
    test_expect_error(berth_weights_from_memory(ctx, cut, size, &w, &err), BERTH_MALFORMED, &err, NULL);
    free(cut);
    berth_context_destroy(ctx);
  }
  free(f.bytes);
}

static void refuses_bad_arguments(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_weights *w;
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  berth_error err;
  test_expect_error(berth_weights_open(ctx, test_path("absent"), &w, &err), BERTH_IO, &err, "absent");
  test_expect_error(berth_weights_open(ctx, NULL, &w, &err), BERTH_INVALID, &err, "path");
  test_expect_error(berth_weights_open(NULL, "x", &w, &err), BERTH_INVALID, &err, "context");
  test_expect_error(berth_weights_open(ctx, "x", NULL, &err), BERTH_INVALID, &err, "result");
  test_expect_error(berth_weights_from_memory(ctx, NULL, 8, &w, &err), BERTH_INVALID, &err, "data");
  test_expect_error(berth_weights_from_memory(ctx, NULL, 0, &w, &err), BERTH_MALFORMED, &err, "0 bytes");
  test_expect_error(berth_weights_at(NULL, 0, &info, &err), BERTH_INVALID, &err, NULL);
  const char *path = test_path("bad.safetensors");
  test_write_file(path, "junk", 4);
  test_expect_error(berth_weights_open(ctx, path, &w, &err), BERTH_MALFORMED, &err, "bad.safetensors: the file has 4");
  assert_int_equal(berth_weights_open(ctx, path, &w, NULL), BERTH_MALFORMED);
  assert_int_equal(berth_weights_count(NULL), 0);
  assert_int_equal(berth_weights_find(NULL, "a"), UINT32_MAX);
  berth_context_destroy(ctx);
}

/* ---- No memory ------------------------------------------------------------------------------------------------- */

static berth_status open_and_close(berth_context *ctx, berth_error *err, void *user) {
  berth_weights *w;
  berth_status status = berth_weights_open(ctx, user, &w, err);
  if (status != BERTH_OK) assert_null(w);
  berth_weights_destroy(w);
  return status;
}

static void a_writer_refuses_the_name_of_the_metadata(void **state) {
  (void)state;
  static const float one = 1;
  berth_weight_info w = BERTH_WEIGHT_INFO_INIT;
  berth_context *ctx = NULL;
  berth_error err = {BERTH_OK, ""};
  TEST_OK(berth_context_create(NULL, &ctx, &err));
  w.name = "__metadata__", w.type = BERTH_F32, w.data = &one, w.size = sizeof one;
  const char *path = test_path("named.safetensors");
  assert_int_equal(berth_weights_save(ctx, path, &w, 1, &err), BERTH_INVALID);
  assert_non_null(strstr(err.message, "__metadata__"));
  w.name = "__metadata";
  TEST_OK(berth_weights_save(ctx, path, &w, 1, &err));
  berth_context_destroy(ctx);
}

static void survives_failed_allocations(void **state) {
  (void)state;
  file f = make_file(several, 0, 15);
  char path[512];
  snprintf(path, sizeof path, "%s", test_path("alloc.safetensors"));
  test_write_file(path, f.bytes, f.size);
  free(f.bytes);
  assert_true(test_fail_each_allocation(open_and_close, path) > 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_every_type),
      cmocka_unit_test(reads_several_tensors_from_a_file),
      cmocka_unit_test(copies_only_what_is_not_aligned),
      cmocka_unit_test(holders_share_the_weights),
      cmocka_unit_test(reads_a_thousand_in_any_order),
      cmocka_unit_test(refuses_every_bad_file),
      cmocka_unit_test(refuses_every_cut),
      cmocka_unit_test(refuses_bad_arguments),
      cmocka_unit_test(a_writer_refuses_the_name_of_the_metadata),
      cmocka_unit_test(survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
