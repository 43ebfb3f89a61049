#include "base/file.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static void a_file_is_mapped_as_it_is(void **state) {
  (void)state;
  enum {
    SIZE = 100001
  };
  uint8_t *bytes = malloc(SIZE);
  assert_non_null(bytes);
  for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i * 7);
  const char *path = test_path("plain");
  test_write_file(path, bytes, SIZE);
  berth__mapping mapping;
  berth_error err;
  TEST_OK(berth__file_map(path, &mapping, &err));
  assert_int_equal(mapping.size, SIZE);
  assert_memory_equal(mapping.data, bytes, SIZE);
  berth__file_unmap(&mapping);
  assert_null(mapping.data);
  berth__file_unmap(&mapping); /* again is fine */
  free(bytes);
}

static void an_empty_file_is_no_error(void **state) {
  (void)state;
  const char *path = test_path("empty");
  test_write_file(path, "", 0);
  berth__mapping mapping;
  berth_error err;
  TEST_OK(berth__file_map(path, &mapping, &err));
  assert_non_null(mapping.data);
  assert_int_equal(mapping.size, 0);
  berth__file_release(&mapping, 0, 10);
  berth__file_unmap(&mapping);
}

static void released_pages_stay_readable(void **state) {
  (void)state;
  enum {
    SIZE = 1 << 16
  };
  uint8_t bytes[SIZE];
  for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i >> 3);
  const char *path = test_path("released");
  test_write_file(path, bytes, SIZE);
  berth__mapping mapping;
  berth_error err;
  TEST_OK(berth__file_map(path, &mapping, &err));
  const size_t ranges[][2] = {{0, SIZE},    {1, 5}, {4096, 8192}, {100, SIZE}, {SIZE, 1}, {SIZE + 5, SIZE_MAX},
                              {7, SIZE_MAX}};
  for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
    berth__file_release(&mapping, ranges[i][0], ranges[i][1]);
    assert_memory_equal(mapping.data, bytes, SIZE);
  }
  berth__file_unmap(&mapping);
}

/* Other memory may lie in the pages of anything, and must stay as it is. */
static void only_bytes_of_the_mapping_are_released(void **state) {
  (void)state;
  enum {
    SIZE = 1 << 16
  };
  static uint8_t bytes[SIZE], elsewhere[SIZE];
  memset(bytes, 7, SIZE);
  memset(elsewhere, 9, SIZE);
  const char *path = test_path("released_bytes");
  test_write_file(path, bytes, SIZE);
  berth__mapping mapping;
  berth_error err;
  TEST_OK(berth__file_map(path, &mapping, &err));
  berth__file_release_bytes(&mapping, elsewhere, SIZE);
  berth__file_release_bytes(&mapping, mapping.data, SIZE);
  berth__file_release_bytes(&mapping, mapping.data + SIZE / 2, SIZE_MAX);
  berth__file_release_bytes(&mapping, mapping.data + SIZE, SIZE);
  for (size_t i = 0; i < SIZE; i++) assert_int_equal(elsewhere[i], 9);
  assert_memory_equal(mapping.data, bytes, SIZE);
  berth__file_unmap(&mapping);
}

static void expect_io_error(const char *path, const char *why) {
  berth__mapping mapping = {.data = (const uint8_t *)path, .size = 1};
  berth_error err;
  berth_status status = berth__file_map(path, &mapping, &err);
  test_expect_error(status, BERTH_IO, &err, why);
  test_expect_error(status, BERTH_IO, &err, path);
  assert_null(mapping.data);
}

static void a_missing_file_is_named(void **state) {
  (void)state;
  expect_io_error(test_path("missing"), "No such file");
}

static void a_folder_is_refused(void **state) {
  (void)state;
  const char *path = test_path("folder");
  assert_int_equal(mkdir(path, 0700), 0);
  expect_io_error(path, "Is a directory");
}

static void a_pipe_is_refused_without_waiting(void **state) {
  (void)state;
  const char *path = test_path("pipe");
  assert_int_equal(mkfifo(path, 0600), 0);
  expect_io_error(path, "not a regular file");
}

static void an_unreadable_file_is_named(void **state) {
  (void)state;
  const char *path = test_path("secret");
  test_write_file(path, "x", 1);
  assert_int_equal(chmod(path, 0), 0);
  uid_t self = geteuid();
  const uid_t nobody = 65534;
  if (self == 0 && seteuid(nobody) != 0) TEST_SKIP("root may read every file, and cannot be another user here");
  expect_io_error(path, "Permission denied");
  if (self == 0) assert_int_equal(seteuid(self), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_is_mapped_as_it_is),    cmocka_unit_test(an_empty_file_is_no_error),
      cmocka_unit_test(released_pages_stay_readable), cmocka_unit_test(a_missing_file_is_named),
      cmocka_unit_test(a_folder_is_refused),          cmocka_unit_test(a_pipe_is_refused_without_waiting),
      cmocka_unit_test(an_unreadable_file_is_named),  cmocka_unit_test(only_bytes_of_the_mapping_are_released),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
