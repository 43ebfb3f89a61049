#include "base/text.h"

#include "support.h"

static void text_collects_in_memory(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__text text;
  berth_error err;
  berth__text_init(&text, ctx, NULL, NULL);
  berth__text_add(&text, "abc", 2);
  berth__text_printf(&text, "%d-%s", 42, "x");
  assert_string_equal(text.data, "ab42-x");
  TEST_OK(berth__text_finish(&text, &err));
  assert_string_equal(text.data, "ab42-x");
  assert_int_equal(text.size, 6);
  berth__text_free(&text);
  berth__text_free(&text);
  test_context_done(ctx, &alloc);
}

static void no_text_is_an_empty_string(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__text text;
  berth_error err;
  berth__text_init(&text, ctx, NULL, NULL);
  TEST_OK(berth__text_finish(&text, &err));
  assert_string_equal(text.data, "");
  berth__text_free(&text);
  berth__text_init(&text, ctx, test_buffer_write, NULL);
  TEST_OK(berth__text_finish(&text, &err)); /* nothing to write: the function is not called */
  berth_context_destroy(ctx);
}

static void escapes_are_the_ones_that_are_needed(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__text text;
  berth__text_init(&text, ctx, NULL, NULL);
  berth__text_escape(&text, "a\"b\\c\nd\te\x7f \xc3\xa9");
  assert_string_equal(text.data, "\"a\\\"b\\\\c\\nd\\x09e\\x7f \xc3\xa9\"");
  berth__text_escape(&text, "");
  assert_string_equal(text.data + text.size - 2, "\"\"");
  berth__text_free(&text);
  berth_context_destroy(ctx);
}

static void long_text_goes_out_in_pieces(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  test_buffer out = {0};
  berth__text text;
  berth_error err;
  berth__text_init(&text, ctx, test_buffer_write, &out);
  for (int i = 0; i < 10000; i++) berth__text_printf(&text, "%05d\n", i);
  assert_true(out.size > 0); /* before the end */
  TEST_OK(berth__text_finish(&text, &err));
  assert_int_equal(out.size, 60000);
  assert_memory_equal(out.data + 6 * 1234, "01234\n", 6);
  assert_true(alloc.peak_bytes < 20000);
  test_buffer_free(&out);
  test_context_done(ctx, &alloc);
}

typedef struct limited {
  int left;
  int calls_after;
} limited;

static berth_status write_limited(void *user, const char *text, size_t size) {
  (void)text;
  (void)size;
  limited *l = user;
  if (l->left == 0) {
    l->calls_after++;
    return BERTH_IO;
  }
  l->left--;
  return BERTH_OK;
}

static void the_first_failure_sticks(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  limited l = {.left = 2};
  berth__text text;
  berth_error err;
  berth__text_init(&text, ctx, write_limited, &l);
  for (int i = 0; i < 10000; i++) berth__text_printf(&text, "%05d\n", i);
  test_expect_error(berth__text_finish(&text, &err), BERTH_IO, &err, "writing stopped");
  assert_int_equal(l.calls_after, 1);
  test_context_done(ctx, &alloc);
}

static berth_status print_numbers(berth_context *ctx, berth_error *err, void *user) {
  (void)user;
  berth__text text;
  berth__text_init(&text, ctx, NULL, NULL);
  for (int i = 0; i < 1000; i++) berth__text_printf(&text, "%d,", i);
  berth_status status = berth__text_finish(&text, err);
  if (status != BERTH_OK) assert_null(text.data);
  berth__text_free(&text);
  return status;
}

static void every_failing_allocation_is_reported(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(print_numbers, NULL) > 3);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(text_collects_in_memory),
      cmocka_unit_test(no_text_is_an_empty_string),
      cmocka_unit_test(escapes_are_the_ones_that_are_needed),
      cmocka_unit_test(long_text_goes_out_in_pieces),
      cmocka_unit_test(the_first_failure_sticks),
      cmocka_unit_test(every_failing_allocation_is_reported),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
