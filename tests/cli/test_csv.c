/* The CSV reader and writer of `berth pack`. The tool is no library, so its source is part of this test. */
#include "../../tools/berth/csv.c"

#include "support.h"

static berth_status parse(const char *text, csv_table *table, berth_error *err) {
  *err = (berth_error){BERTH_OK, ""};
  return csv_parse(text, strlen(text), "b.csv", table, err);
}

static void expect_refused(const char *text, berth_status want, const char *part) {
  csv_table table;
  berth_error err;
  berth_status status = parse(text, &table, &err);
  test_expect_error(status, want, &err, part);
  assert_null(table.buffers);
  assert_null(table.ids);
  assert_int_equal(table.n, 0);
  csv_free(&table);
}

static void reads_plain_rows(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  TEST_OK(parse("id,lower,upper,size\na,0,3,4\nb,-2,9,18446744073709551614\n", &table, &err));
  assert_int_equal(table.n, 2);
  assert_string_equal(table.ids[0], "a");
  assert_true(table.buffers[0].lower == 0 && table.buffers[0].upper == 3 && table.buffers[0].size == 4);
  assert_true(table.buffers[0].offset == BERTH_PACK_FREE && table.buffers[0].align == 1);
  assert_true(table.buffers[1].lower == -2 && table.buffers[1].size == UINT64_MAX - 1);
  csv_free(&table);
}

static void reads_columns_in_any_order(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  TEST_OK(parse(" size ,alignment,id,offset,upper,lower\n8,64,x,128,2,1\n4,,y,,5,3\n", &table, &err));
  assert_int_equal(table.n, 2);
  assert_true(table.buffers[0].size == 8 && table.buffers[0].align == 64 && table.buffers[0].offset == 128);
  assert_true(table.buffers[0].lower == 1 && table.buffers[0].upper == 2);
  assert_true(table.buffers[1].align == 1 && table.buffers[1].offset == BERTH_PACK_FREE);
  csv_free(&table);
}

static void accepts_crlf_blank_lines_marks_and_no_last_newline(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  TEST_OK(parse("\xef\xbb\xbf\r\nid,lower,upper,size\r\n\r\n \t\na, 0 ,3,4\r\n\nb,1,2,5", &table, &err));
  assert_int_equal(table.n, 2);
  assert_string_equal(table.ids[1], "b");
  assert_true(table.buffers[1].size == 5);
  csv_free(&table);
}

static void keeps_ids_as_they_are(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  TEST_OK(parse("id,lower,upper,size\n a b ,0,1,1\n\"x,\"\"y\",0,1,1\nlayer/1:0,0,1,1\n", &table, &err));
  assert_string_equal(table.ids[0], " a b ");
  assert_string_equal(table.ids[1], "\"x,\"\"y\"");
  assert_string_equal(table.ids[2], "layer/1:0");
  csv_free(&table);
}

static void accepts_a_header_alone(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  TEST_OK(parse("id,lower,upper,size\n", &table, &err));
  assert_int_equal(table.n, 0);
  csv_free(&table);
}

static void refuses_wrong_headers(void **state) {
  (void)state;
  expect_refused("", BERTH_MALFORMED, "b.csv line 1: there is no header");
  expect_refused("\n\n", BERTH_MALFORMED, "there is no header");
  expect_refused("id,lower,upper\na,0,1\n", BERTH_MALFORMED, "no column 'size'");
  expect_refused("\nid,lower,upper,size,id\n", BERTH_MALFORMED, "line 2: the column 'id' is there twice");
  expect_refused("id,lower,upper,size,gaps\na,0,1,1,\n", BERTH_UNSUPPORTED, "'gaps' is not supported");
  expect_refused("a,0,1,1\n", BERTH_UNSUPPORTED, "'a' is not supported");
}

static void refuses_wrong_rows_and_names_the_line(void **state) {
  (void)state;
#define HEADER "id,lower,upper,size\nok,0,1,1\n\n"
  expect_refused(HEADER "a,0,1\n", BERTH_MALFORMED, "b.csv line 4: 3 fields where the header has 4");
  expect_refused(HEADER "a,0,1,1,1\n", BERTH_MALFORMED, "line 4: more than 4 fields");
  expect_refused(HEADER "a,0,x,1\n", BERTH_MALFORMED, "line 4: upper is 'x'");
  expect_refused(HEADER "a,0,1,-1\n", BERTH_MALFORMED, "line 4: size is '-1'");
  expect_refused(HEADER "a,0,1,\n", BERTH_MALFORMED, "line 4: size is ''");
  expect_refused(HEADER "a,0,1,1.5\n", BERTH_MALFORMED, "line 4: size is '1.5'");
  expect_refused(HEADER "a,0,1,18446744073709551615\n", BERTH_MALFORMED, "64 bits");
  expect_refused(HEADER "a,0,9223372036854775808,1\n", BERTH_MALFORMED, "line 4: upper is beyond 63 bits");
  expect_refused(HEADER "a,-,1,1\n", BERTH_MALFORMED, "line 4: lower is ''");
  expect_refused(HEADER "a,5,3,1\n", BERTH_MALFORMED, "line 4: lower is 5, after upper, which is 3");
  expect_refused(HEADER ",0,1,1\n", BERTH_MALFORMED, "line 4: the id is empty");
  expect_refused(HEADER "\"a,0,1,1\n", BERTH_MALFORMED, "line 4: a quote is not closed");
  expect_refused(HEADER "b,0,1,1\nok,0,1,1\n", BERTH_MALFORMED, "line 5: the id 'ok' stands in line 2 already");
#undef HEADER
}

static void refuses_a_zero_byte(void **state) {
  (void)state;
  static const char text[] = "id,lower,upper,size\na\0b,0,1,1\n";
  csv_table table;
  berth_error err = {BERTH_OK, ""};
  berth_status status = csv_parse(text, sizeof(text) - 1, "b.csv", &table, &err);
  test_expect_error(status, BERTH_MALFORMED, &err, "line 2: the id has a zero byte");
}

static void works_without_an_error(void **state) {
  (void)state;
  csv_table table;
  assert_int_equal(csv_parse("x", 1, "b.csv", &table, NULL), BERTH_UNSUPPORTED);
}

static void expect_written(const char *text, const uint64_t *offsets, const char *want) {
  csv_table table;
  berth_error err;
  test_buffer buffer = {0};
  TEST_OK(parse(text, &table, &err));
  assert_int_equal(csv_write(&table, offsets, test_buffer_write, &buffer), BERTH_OK);
  assert_string_equal(buffer.data, want);
  test_buffer_free(&buffer);
  csv_free(&table);
}

static void writes_the_columns_it_read(void **state) {
  (void)state;
  expect_written("id,lower,upper,size\na,-1,3,4\nb,2,3,5\n", (uint64_t[]){0, 4},
                 "id,lower,upper,size,offset\na,-1,3,4,0\nb,2,3,5,4\n");
  expect_written("size,offset,id,upper,lower,alignment\n4,,\"a,b\",3,0,8\n", (uint64_t[]){16},
                 "size,offset,id,upper,lower,alignment\n4,16,\"a,b\",3,0,8\n");
}

static berth_status refuse_after_five(void *user, const char *text, size_t size) {
  int *calls = user;
  (void)text;
  (void)size;
  return ++*calls > 5 ? BERTH_IO : BERTH_OK;
}

static void stops_when_writing_fails(void **state) {
  (void)state;
  csv_table table;
  berth_error err;
  int calls = 0;
  TEST_OK(parse("id,lower,upper,size\na,0,3,4\n", &table, &err));
  assert_int_equal(csv_write(&table, (uint64_t[]){0}, refuse_after_five, &calls), BERTH_IO);
  assert_int_equal(calls, 6);
  csv_free(&table);
}

/* A million rows would take too long under the sanitizer; a tenth of them shows the growth and the id table. */
static void reads_many_rows(void **state) {
  (void)state;
  enum {
    n = 100000,
    row_size = 40
  };
  char *text = malloc((size_t)n * row_size + 64);
  csv_table table;
  berth_error err = {BERTH_OK, ""};
  assert_non_null(text);
  size_t size = (size_t)sprintf(text, "id,lower,upper,size\n");
  for (int i = 0; i < n; i++) size += (size_t)sprintf(text + size, "buffer%d,%d,%d,%d\n", i, i, i + 7, i % 100);
  TEST_OK(csv_parse(text, size, "b.csv", &table, &err));
  assert_int_equal(table.n, n);
  assert_string_equal(table.ids[n - 1], "buffer99999");
  assert_int_equal(table.buffers[n - 1].upper, n + 6);
  csv_free(&table);
  free(text);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_plain_rows),
      cmocka_unit_test(reads_columns_in_any_order),
      cmocka_unit_test(accepts_crlf_blank_lines_marks_and_no_last_newline),
      cmocka_unit_test(keeps_ids_as_they_are),
      cmocka_unit_test(accepts_a_header_alone),
      cmocka_unit_test(refuses_wrong_headers),
      cmocka_unit_test(refuses_wrong_rows_and_names_the_line),
      cmocka_unit_test(refuses_a_zero_byte),
      cmocka_unit_test(works_without_an_error),
      cmocka_unit_test(writes_the_columns_it_read),
      cmocka_unit_test(stops_when_writing_fails),
      cmocka_unit_test(reads_many_rows),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
