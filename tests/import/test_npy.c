/* .npy: good files, every way in which one can be wrong, saving, and no memory. */
#include <stdio.h>
#include <stdlib.h>

#include "support/support.h"

typedef struct file {
  uint8_t *bytes; /* exactly as long as the file, so that the sanitizer sees a read past its end */
  size_t size;
} file;

static file make_file(unsigned version, const char *dict, const void *data, size_t size) {
  size_t length = strlen(dict), width = version == 1 ? 2 : 4, start = 8 + width;
  file f = {malloc(start + length + size), start + length + size};
  assert_non_null(f.bytes);
  memcpy(f.bytes, "\x93NUMPY", 6);
  f.bytes[6] = (uint8_t)version;
  f.bytes[7] = 0;
  for (size_t i = 0; i < width; i++) f.bytes[8 + i] = (uint8_t)(length >> (8 * i));
  memcpy(f.bytes + start, dict, length);
  if (size > 0) memcpy(f.bytes + start + length, data, size);
  return f;
}

static berth_status parse(berth_context *ctx, const char *dict, const void *data, size_t size, berth_array *out,
                          berth_error *err) {
  file f = make_file(1, dict, data, size);
  berth_status status = berth_npy_parse(ctx, f.bytes, f.size, out, err);
  free(f.bytes);
  return status;
}

#define DICT(descr, order, shape) "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }"

/* ---- Good files ------------------------------------------------------------------------------------------------ */

static void reads_every_type_in_both_byte_orders(void **state) {
  (void)state;
  static const struct {
    const char *dict;
    berth_type type;
    size_t size;
    uint8_t file[8], want[8]; /* one element */
  } cases[] = {
      {DICT("<f4", "False", "(1,)"), BERTH_F32, 4, {0, 0, 0x80, 0x3f}, {0, 0, 0x80, 0x3f}},
      {DICT(">f4", "False", "(1,)"), BERTH_F32, 4, {0x3f, 0x80, 0, 0}, {0, 0, 0x80, 0x3f}},
      {DICT("=f4", "False", "(1,)"), BERTH_F32, 4, {0, 0, 0x80, 0x3f}, {0, 0, 0x80, 0x3f}},
      {DICT(">f8", "False", "()"), BERTH_F64, 8, {1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1}},
      {DICT("<f2", "False", "(1,)"), BERTH_F16, 2, {1, 2}, {1, 2}},
      {DICT(">f2", "True", "(1,)"), BERTH_F16, 2, {1, 2}, {2, 1}},
      {DICT("|i1", "False", "(1,)"), BERTH_I8, 1, {200}, {200}},
      {DICT("|u1", "False", "(1,)"), BERTH_U8, 1, {200}, {200}},
      {DICT("<u1", "False", "(1,)"), BERTH_U8, 1, {200}, {200}},
      {DICT(">i2", "False", "(1,)"), BERTH_I16, 2, {1, 2}, {2, 1}},
      {DICT(">i4", "False", "(1,)"), BERTH_I32, 4, {1, 2, 3, 4}, {4, 3, 2, 1}},
      {DICT("<i8", "False", "(1,)"), BERTH_I64, 8, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2, 3, 4, 5, 6, 7, 8}},
      {DICT("<u4", "False", "(1,)"), BERTH_U32, 4, {1, 2, 3, 4}, {1, 2, 3, 4}},
      {DICT("<u2", "False", "(1,)"), BERTH_U16, 2, {1, 2}, {1, 2}},
      {DICT(">u8", "False", "(1,)"), BERTH_U64, 8, {1, 2, 3, 4, 5, 6, 7, 8}, {8, 7, 6, 5, 4, 3, 2, 1}},
      {DICT("|b1", "False", "(1,)"), BERTH_BOOL, 1, {1}, {1}},
      {DICT("|b1", "False", "(1,)"), BERTH_BOOL, 1, {7}, {1}},
      {DICT("|b1", "False", "(1,)"), BERTH_BOOL, 1, {0}, {0}},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_context *ctx = test_context();
    berth_array array;
    berth_error err;
    TEST_OK(parse(ctx, cases[i].dict, cases[i].file, cases[i].size, &array, &err));
    assert_int_equal(array.type, cases[i].type);
    assert_int_equal(array.size, cases[i].size);
    assert_memory_equal(array.data, cases[i].want, cases[i].size);
    berth_array_free(ctx, &array);
    assert_null(array.data);
    berth_context_destroy(ctx);
  }
}

static void reads_headers_as_python_may_write_them(void **state) {
  (void)state;
  static const char *const dicts[] = {
      "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }          \n",
      "{\"shape\":(2,3,),\"fortran_order\":False,\"descr\":\"|u1\"}",
      " { 'fortran_order' : False , 'descr' : '|u1' , 'shape' : ( 2 , 3 ) } ",
  };
  for (size_t i = 0; i < sizeof dicts / sizeof dicts[0]; i++) {
    for (unsigned version = 1; version <= 3; version++) {
      berth_context *ctx = test_context();
      berth_array array;
      berth_error err;
      file f = make_file(version, dicts[i], "abcdef", 6);
      TEST_OK(berth_npy_parse(ctx, f.bytes, f.size, &array, &err));
      assert_int_equal(array.rank, 2);
      assert_int_equal(array.dim[0], 2);
      assert_int_equal(array.dim[1], 3);
      assert_memory_equal(array.data, "abcdef", 6);
      berth_array_free(ctx, &array);
      berth_context_destroy(ctx);
      free(f.bytes);
    }
  }
}

static void turns_fortran_order_into_c_order(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_array array;
  berth_error err;
  uint8_t bytes[24 * 2];
  /* element (i, j, k) of [2, 3, 4] lies at i + 2 j + 6 k; its value is its index in C order, big endian */
  for (unsigned i = 0; i < 2; i++) {
    for (unsigned j = 0; j < 3; j++) {
      for (unsigned k = 0; k < 4; k++) {
        unsigned place = i + 2 * j + 6 * k;
        bytes[2 * place] = 1;
        bytes[2 * place + 1] = (uint8_t)(12 * i + 4 * j + k);
      }
    }
  }
  TEST_OK(parse(ctx, DICT(">i2", "True", "(2, 3, 4)"), bytes, sizeof bytes, &array, &err));
  for (int i = 0; i < 24; i++) assert_int_equal(((const int16_t *)array.data)[i], 256 + i);
  berth_array_free(ctx, &array);
  berth_context_destroy(ctx);
}

static void reads_empty_arrays(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_array array;
  berth_error err;
  TEST_OK(parse(ctx, DICT("<f4", "True", "(3, 0)"), NULL, 0, &array, &err));
  assert_int_equal(array.size, 0);
  assert_int_equal(array.dim[0], 3);
  assert_non_null(array.data);
  berth_array_free(ctx, &array);
  TEST_OK(parse(ctx, DICT("<f4", "False", "(9223372036854775807, 9223372036854775807, 0)"), NULL, 0, &array, &err));
  berth_array_free(ctx, &array);
  berth_array_free(ctx, NULL);
  berth_context_destroy(ctx);
}

/* ---- Bad files ------------------------------------------------------------------------------------------------- */

typedef struct bad_dict {
  const char *dict;
  size_t size; /* bytes of data */
  berth_status status;
  const char *part; /* of the message */
} bad_dict;

#define BAD(dict, size, part) \
  { dict, size, BERTH_MALFORMED, part }
#define LACK(dict, size, part) \
  { dict, size, BERTH_UNSUPPORTED, part }

static const bad_dict bad_dicts[] = {
    /* the dict */
    BAD("", 0, "must be a dict"),
    BAD("[]", 0, "must be a dict"),
    BAD("{", 0, "string in quotes"),
    BAD("{}", 0, "'descr' is missing"),
    BAD("{'descr': '<f4', 'shape': (1,)}", 4, "'fortran_order' is missing"),
    BAD("{'descr': '<f4', 'fortran_order': False}", 4, "'shape' is missing"),
    BAD("{'descr': '<f4', 'descr': '<f4'}", 4, "'descr' appears twice"),
    BAD("{'order': 1}", 4, "'order' is unknown"),
    BAD("{descr: '<f4'}", 4, "string in quotes"),
    BAD("{'descr' '<f4'}", 4, "colon"),
    BAD("{'descr': '<f4' 'shape': (1,)}", 4, "comma is missing in the dict"),
    BAD("{'descr': '<f4'", 4, "not closed"),
    BAD("{'descr': '<f4", 4, "not closed"),
    BAD("{'descr\": '<f4'}", 4, "is unknown"),
    BAD("{'de\\x73cr': '<f4'}", 4, "escape"),
    BAD(DICT("<f4", "False", "(1,)") "x", 4, "follows the dict"),
    BAD(DICT("<f4", "False", "(1,)") "{}", 4, "follows the dict"),
    /* descr */
    BAD(DICT("f4", "False", "(1,)"), 4, "'f4' is not a type"),
    BAD(DICT("", "False", "(1,)"), 4, "is not a type"),
    BAD(DICT("|f4", "False", "(1,)"), 4, "byte order"),
    BAD("{'descr': 4}", 4, "string in quotes"),
    LACK(DICT("<u16", "False", "(1,)"), 16, "'<u16'"),
    LACK(DICT("<c8", "False", "(1,)"), 8, "'<c8'"),
    LACK(DICT("<f16", "False", "(1,)"), 16, "'<f16'"),
    LACK(DICT("|O", "False", "(1,)") "", 8, "'|O'"),
    LACK(DICT("<U5", "False", "(1,)"), 20, "'<U5'"),
    LACK(DICT("|S10", "False", "(1,)"), 10, "'|S10'"),
    LACK(DICT("<M8[ns]", "False", "(1,)"), 8, "'<M8[ns]'"),
    LACK("{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (1,)}", 4, "records"),
    /* fortran_order */
    BAD(DICT("<f4", "0", "(1,)"), 4, "True or False"),
    BAD(DICT("<f4", "false", "(1,)"), 4, "True or False"),
    BAD(DICT("<f4", "'True'", "(1,)"), 4, "True or False"),
    BAD(DICT("<f4", "Falsey", "(1,)"), 4, "comma is missing"),
    /* shape */
    BAD(DICT("<f4", "False", "1"), 4, "must be a tuple"),
    BAD(DICT("<f4", "False", "[1]"), 4, "must be a tuple"),
    BAD(DICT("<f4", "False", "(1)"), 4, "needs its comma"),
    BAD(DICT("<f4", "False", "(,)"), 4, "whole numbers"),
    BAD(DICT("<f4", "False", "(1,,2)"), 8, "whole numbers"),
    BAD(DICT("<f4", "False", "(1 2)"), 8, "comma is missing in shape"),
    BAD(DICT("<f4", "False", "(1L,)"), 4, "comma is missing in shape"),
    BAD(DICT("<f4", "False", "(-1,)"), 4, "whole numbers"),
    BAD(DICT("<f4", "False", "(1.0,)"), 4, "comma is missing in shape"),
    BAD(DICT("<f4", "False", "(01,)"), 4, "begins with 0"),
    BAD(DICT("<f4", "False", "(9223372036854775808,)"), 4, "too large"),
    BAD(DICT("<f4", "False", "(99999999999999999999999,)"), 4, "too large"),
    BAD("{'shape': (1, ", 4, "whole numbers"),
    LACK(DICT("<f4", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "more than the 8 dimensions"),
    /* sizes */
    BAD(DICT("<f4", "False", "(4294967296, 4294967296)"), 4, "64 bits"),
    BAD(DICT("<f8", "False", "(2305843009213693953,)"), 8, "64 bits"),
    BAD(DICT("<f4", "False", "(2,)"), 7, "cut off"),
    BAD(DICT("<f4", "False", "(2,)"), 9, "too long"),
    BAD(DICT("<f4", "False", "(0,)"), 1, "too long"),
    BAD(DICT("<f4", "False", "(1000000000000,)"), 4, "cut off"),
};

static void refuses_every_bad_header(void **state) {
  (void)state;
  static const uint8_t zeros[64];
  for (size_t i = 0; i < sizeof bad_dicts / sizeof bad_dicts[0]; i++) {
    const bad_dict *bad = &bad_dicts[i];
    test_alloc alloc = {0};
    berth_context *ctx = test_context_counting(&alloc);
    berth_array array;
    berth_error err = {BERTH_OK, ""};
    berth_status status = parse(ctx, bad->dict, zeros, bad->size, &array, &err);
    if (status != bad->status) print_error("case: %s\n", bad->dict);
    test_expect_error(status, bad->status, &err, bad->part);
    assert_null(array.data);
    test_context_done(ctx, &alloc);
  }
}

static void refuses_a_bad_start(void **state) {
  (void)state;
  static const struct {
    const char *bytes;
    size_t size;
    berth_status status;
    const char *part;
  } cases[] = {
      {"", 0, BERTH_MALFORMED, "not an npy file"},
      {"\x93NUMPZ\x01\0", 8, BERTH_MALFORMED, "not an npy file"},
      {"PK\x03\x04\0\0\0\0\0\0", 10, BERTH_MALFORMED, "not an npy file"},
      {"\x93NUMPY\x00\x00\0\0", 10, BERTH_UNSUPPORTED, "version 0.0"},
      {"\x93NUMPY\x04\x00\0\0\0\0", 12, BERTH_UNSUPPORTED, "version 4.0"},
      {"\x93NUMPY\x01\x01\0\0", 10, BERTH_UNSUPPORTED, "version 1.1"},
      {"\x93NUMPY\x01\x00\0", 9, BERTH_MALFORMED, "ends inside its length"},
      {"\x93NUMPY\x02\x00\0\0\0", 11, BERTH_MALFORMED, "ends inside its length"},
      {"\x93NUMPY\x01\x00\x01\0", 10, BERTH_MALFORMED, "ends inside it"},
      {"\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, BERTH_MALFORMED, "longer than"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
    berth_context *ctx = test_context();
    berth_array array;
    berth_error err;
    uint8_t *exact = malloc(cases[i].size ? cases[i].size : 1);
    memcpy(exact, cases[i].bytes, cases[i].size);
    berth_status status = berth_npy_parse(ctx, exact, cases[i].size, &array, &err);
    test_expect_error(status, cases[i].status, &err, cases[i].part);
    free(exact);
    berth_context_destroy(ctx);
  }
}

static void refuses_every_cut(void **state) {
  (void)state;
  file f = make_file(1, DICT("<f4", "False", "(2,)"), "12345678", 8);
  for (size_t size = 0; size < f.size; size++) {
    berth_context *ctx = test_context();
    berth_array array;
    berth_error err;
    uint8_t *cut = malloc(size ? size : 1);
    memcpy(cut, f.bytes, size);
    test_expect_error(berth_npy_parse(ctx, cut, size, &array, &err), BERTH_MALFORMED, &err, NULL);
    free(cut);
    berth_context_destroy(ctx);
  }
  free(f.bytes);
}

/* ---- Saving ---------------------------------------------------------------------------------------------------- */

static void loads_what_it_saved(void **state) {
  (void)state;
  static const berth_type types[] = {BERTH_F32, BERTH_F64, BERTH_F16, BERTH_I8,   BERTH_U8,  BERTH_I16,
                                     BERTH_I32, BERTH_I64, BERTH_U32, BERTH_BOOL, BERTH_U16, BERTH_U64};
  uint8_t bytes[48];
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = i & 1;
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    for (uint32_t rank = 0; rank <= BERTH_MAX_RANK; rank++) {
      berth_context *ctx = test_context();
      berth_error err;
      berth_array in = {.type = types[i], .rank = rank, .data = bytes}, out;
      in.size = berth_type_size(types[i]);
      for (uint32_t axis = 0; axis < rank; axis++) in.dim[axis] = axis == 0 ? 2 : axis == 1 ? 3 : 1;
      for (uint32_t axis = 0; axis < rank; axis++) in.size *= (uint64_t)in.dim[axis];
      const char *path = test_path("saved.npy");
      TEST_OK(berth_npy_save(ctx, path, &in, &err));
      TEST_OK(berth_npy_load(ctx, path, &out, &err));
      assert_int_equal(out.type, in.type);
      assert_int_equal(out.rank, in.rank);
      assert_memory_equal(out.dim, in.dim, sizeof in.dim);
      assert_int_equal(out.size, in.size);
      assert_memory_equal(out.data, in.data, in.size);
      berth_array_free(ctx, &out);
      berth_context_destroy(ctx);
    }
  }
}

static void writes_the_bytes_that_numpy_writes(void **state) {
  (void)state;
  /* numpy.save of numpy.array([[1, 2]], dtype='<i2') */
  static const char header[] = "{'descr': '<i2', 'fortran_order': False, 'shape': (1, 2), }";
  berth_context *ctx = test_context();
  berth_error err;
  int16_t values[2] = {1, 2};
  berth_array in = {.type = BERTH_I16, .rank = 2, .dim = {1, 2}, .data = values, .size = 4};
  const char *path = test_path("bytes.npy");
  TEST_OK(berth_npy_save(ctx, path, &in, &err));
  uint8_t want[132], got[256];
  memset(want, ' ', sizeof want);
  memcpy(want, "\x93NUMPY\x01\x00\x76\x00", 10);
  memcpy(want + 10, header, sizeof header - 1);
  want[127] = '\n';
  memcpy(want + 128, "\x01\x00\x02\x00", 4);
  FILE *in_file = fopen(path, "rb");
  assert_non_null(in_file);
  assert_int_equal(fread(got, 1, sizeof got, in_file), sizeof want);
  fclose(in_file);
  assert_memory_equal(got, want, sizeof want);
  berth_context_destroy(ctx);
}

/* The longest header there can be. */
static void saves_huge_extents_of_an_empty_array(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  berth_array in = {.type = BERTH_F32, .rank = 8, .dim = {0}}, out;
  for (int i = 1; i < 8; i++) in.dim[i] = INT64_MAX;
  const char *path = test_path("empty.npy");
  TEST_OK(berth_npy_save(ctx, path, &in, &err));
  TEST_OK(berth_npy_load(ctx, path, &out, &err));
  assert_memory_equal(out.dim, in.dim, sizeof in.dim);
  berth_array_free(ctx, &out);
  berth_context_destroy(ctx);
}

static void refuses_to_save_what_is_wrong(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  float value = 1;
  const berth_array good = {.type = BERTH_F32, .rank = 1, .dim = {1}, .data = &value, .size = 4};
  const char *path = test_path("refused.npy");
  berth_array bad = good;
  bad.type = BERTH_BF16;
  bad.size = 2;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_UNSUPPORTED, &err, "cast the array to f32");
  bad = good;
  bad.type = BERTH_TYPE_NONE;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_INVALID, &err, "valid type");
  bad = good;
  bad.rank = 9;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_INVALID, &err, "dimensions");
  bad = good;
  bad.dim[0] = -1;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_INVALID, &err, "negative");
  bad = good;
  bad.size = 8;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_INVALID, &err, "8 bytes");
  bad = good;
  bad.data = NULL;
  test_expect_error(berth_npy_save(ctx, path, &bad, &err), BERTH_INVALID, &err, "no data");
  test_expect_error(berth_npy_save(ctx, NULL, &good, &err), BERTH_INVALID, &err, "path");
  test_expect_error(berth_npy_save(ctx, path, NULL, &err), BERTH_INVALID, &err, "array");
  berth_array array;
  test_expect_error(berth_npy_load(ctx, path, &array, &err), BERTH_IO, &err, "refused.npy"); /* never made */
  test_expect_error(berth_npy_save(ctx, test_path("no/folder.npy"), &good, &err), BERTH_IO, &err, "no/folder.npy");
  berth_context_destroy(ctx);
}

static void reports_a_full_disk(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_error err;
  float value = 1;
  const berth_array array = {.type = BERTH_F32, .rank = 0, .data = &value, .size = 4};
  FILE *full = fopen("/dev/full", "wb");
  if (!full) skip();
  fclose(full);
  test_expect_error(berth_npy_save(ctx, "/dev/full", &array, &err), BERTH_IO, &err, "not complete");
  berth_context_destroy(ctx);
}

static void names_the_file_that_is_wrong(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_array array;
  berth_error err;
  const char *path = test_path("junk.npy");
  test_write_file(path, "junk", 4);
  test_expect_error(berth_npy_load(ctx, path, &array, &err), BERTH_MALFORMED, &err, "junk.npy: ");
  test_expect_error(berth_npy_load(ctx, NULL, &array, &err), BERTH_INVALID, &err, "path");
  test_expect_error(berth_npy_load(ctx, path, NULL, &err), BERTH_INVALID, &err, "result");
  test_expect_error(berth_npy_parse(ctx, NULL, 4, &array, &err), BERTH_INVALID, &err, "data");
  berth_context_destroy(ctx);
}

/* ---- No memory ------------------------------------------------------------------------------------------------- */

static berth_status load_and_free(berth_context *ctx, berth_error *err, void *user) {
  berth_array array;
  const file *f = user;
  berth_status status = berth_npy_parse(ctx, f->bytes, f->size, &array, err);
  if (status != BERTH_OK) assert_null(array.data);
  berth_array_free(ctx, &array);
  return status;
}

static void survives_failed_allocations(void **state) {
  (void)state;
  file f = make_file(1, DICT("<f4", "True", "(1, 2)"), "12345678", 8);
  assert_int_equal(test_fail_each_allocation(load_and_free, &f), 1);
  free(f.bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_every_type_in_both_byte_orders),
      cmocka_unit_test(reads_headers_as_python_may_write_them),
      cmocka_unit_test(turns_fortran_order_into_c_order),
      cmocka_unit_test(reads_empty_arrays),
      cmocka_unit_test(refuses_every_bad_header),
      cmocka_unit_test(refuses_a_bad_start),
      cmocka_unit_test(refuses_every_cut),
      cmocka_unit_test(loads_what_it_saved),
      cmocka_unit_test(writes_the_bytes_that_numpy_writes),
      cmocka_unit_test(saves_huge_extents_of_an_empty_array),
      cmocka_unit_test(refuses_to_save_what_is_wrong),
      cmocka_unit_test(reports_a_full_disk),
      cmocka_unit_test(names_the_file_that_is_wrong),
      cmocka_unit_test(survives_failed_allocations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
