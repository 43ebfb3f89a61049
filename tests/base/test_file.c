#include "base/file.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
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

/* Whether smaps says that large pages are not wanted ("nh") where these bytes are. */
static bool small_pages_are_wanted(const void *data) {
  bool here = false, small = false;
  char line[512];
  FILE *maps = fopen("/proc/self/smaps", "r");
  assert_non_null(maps);
  while (fgets(line, sizeof line, maps) != NULL) {
    uintptr_t begin, end;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &begin, &end) == 2)
      here = (uintptr_t)data >= begin && (uintptr_t)data < end;
    else if (here && strncmp(line, "VmFlags:", 8) == 0)
      small = strstr(line, " nh") != NULL;
  }
  fclose(maps);
  return small;
}

/* A few bytes of a header should not bring 2 MB of the page cache into the process. */
static void a_released_start_comes_back_in_small_pages(void **state) {
  (void)state;
  enum {
    SIZE = 1 << 16
  };
  static uint8_t bytes[SIZE];
  for (int i = 0; i < SIZE; i++) bytes[i] = (uint8_t)(i >> 3);
  const char *path = test_path("start");
  test_write_file(path, bytes, SIZE);
  const size_t starts[] = {0, 1, 5000, SIZE, SIZE_MAX};
  const bool has_large = access("/sys/kernel/mm/transparent_hugepage", F_OK) == 0;
  for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
    berth__mapping mapping;
    berth_error err;
    TEST_OK(berth__file_map(path, &mapping, &err));
    berth__file_release_start(&mapping, starts[i]);
    assert_memory_equal(mapping.data, bytes, SIZE);
    if (has_large) assert_int_equal(small_pages_are_wanted(mapping.data), starts[i] != 0);
    if (has_large && starts[i] < SIZE / 2) assert_false(small_pages_are_wanted(mapping.data + SIZE / 2));
    berth__file_unmap(&mapping);
  }
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

/* ---- Files that shrink ---- */

static void a_file_that_shrinks_is_an_error(void **state) {
  (void)state;
  enum {
    SIZE = 1 << 16
  };
  static uint8_t bytes[SIZE];
  char path[512];
  berth__mapping mapping;
  berth_error err;
  snprintf(path, sizeof path, "%s", test_path("shrinks"));
  test_write_file(path, bytes, SIZE);
  TEST_OK(berth__file_map(path, &mapping, &err));
  TEST_OK(berth__file_check(&mapping, &err));
  assert_int_equal(truncate(path, SIZE + 1), 0); /* longer is no harm */
  TEST_OK(berth__file_check(&mapping, &err));
  assert_int_equal(truncate(path, SIZE - 1), 0);
  berth_status status = berth__file_check(&mapping, &err);
  test_expect_error(status, BERTH_IO, &err, "\"shrinks\" has shrunk from 65536 to 65535 bytes");
  assert_int_equal(unlink(path), 0); /* what lies under the name now is another file */
  test_write_file(path, bytes, 1);
  test_expect_error(berth__file_check(&mapping, &err), BERTH_IO, &err, "65535");
  berth__file_unmap(&mapping);
  TEST_OK(berth__file_check(&mapping, &err)); /* nothing is mapped */
  TEST_OK(berth__file_map(path, &mapping, &err));
  assert_int_equal(unlink(path), 0);
  TEST_OK(berth__file_check(&mapping, &err));
  berth__file_unmap(&mapping);
}

/* In a process of its own, since the handler stays. */
static int in_child(int (*body)(void)) {
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    signal(SIGBUS, SIG_DFL); /* not the test framework's */
    _exit(body());
  }
  int how;
  assert_int_equal(waitpid(child, &how, 0), child);
  return how;
}

enum {
  CAUGHT_SIZE = 1 << 18
};

static int read_what_is_gone(void) {
  berth__mapping mapping, other;
  const char *path = test_path("caught");
  volatile uint8_t sum = 0;
  if (berth__sigbus_catch(NULL) != BERTH_OK || berth__sigbus_catch(NULL) != BERTH_OK) return 1;
  if (berth__file_map(path, &mapping, NULL) != BERTH_OK || berth__file_map(path, &other, NULL) != BERTH_OK) return 2;
  if (truncate(path, CAUGHT_SIZE / 2) != 0) return 3;
  for (size_t i = 0; i < CAUGHT_SIZE; i++) sum = (uint8_t)(sum + mapping.data[i]);
  if (sum != (uint8_t)(CAUGHT_SIZE / 2 * 3)) return 4; /* what is there is read, and zeros for the rest */
  if (truncate(path, CAUGHT_SIZE) != 0) return 5;
  if (berth__file_check(&mapping, NULL) != BERTH_IO) return 6; /* as long as before, but what was read is not it */
  if (berth__file_check(&other, NULL) != BERTH_OK) return 7;
  berth__file_unmap(&mapping);
  berth__file_unmap(&other);
  return 0;
}

static int touch_a_page_of_nobody(void) {
  const char *path = test_path("caught");
  const int fd = open(path, O_RDONLY);
  const volatile uint8_t *bytes = mmap(NULL, CAUGHT_SIZE, PROT_READ, MAP_PRIVATE, fd, 0);
  if (fd < 0 || bytes == MAP_FAILED || berth__sigbus_catch(NULL) != BERTH_OK) return 1;
  if (truncate(path, 0) != 0) return 2;
  return bytes[CAUGHT_SIZE - 1] + 3; /* not reached */
}

static void host_handler(int number) {
  (void)number;
  _exit(42);
}

static int touch_with_a_handler(void) {
  signal(SIGBUS, host_handler);
  return touch_a_page_of_nobody();
}

static int raise_it(void) {
  signal(SIGBUS, SIG_IGN);
  if (berth__sigbus_catch(NULL) != BERTH_OK) return 1;
  raise(SIGBUS); /* ignored, as before */
  return 0;
}

static void sigbus_is_caught_for_mapped_files_alone(void **state) {
  (void)state;
  uint8_t *bytes = malloc(CAUGHT_SIZE);
  assert_non_null(bytes);
  memset(bytes, 3, CAUGHT_SIZE);
  test_write_file(test_path("caught"), bytes, CAUGHT_SIZE);
  int how = in_child(read_what_is_gone);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  test_write_file(test_path("caught"), bytes, CAUGHT_SIZE);
  how = in_child(touch_with_a_handler);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 42);
  how = in_child(raise_it);
  assert_true(WIFEXITED(how));
  assert_int_equal(WEXITSTATUS(how), 0);
  free(bytes);
  if (TEST_IS_SANITIZED) return; /* the sanitizer has a handler of its own */
  test_write_file(test_path("caught"), "x", 1);
  assert_int_equal(truncate(test_path("caught"), CAUGHT_SIZE), 0);
  how = in_child(touch_a_page_of_nobody);
  assert_true(WIFSIGNALED(how));
  assert_int_equal(WTERMSIG(how), SIGBUS);
}

/* ---- Files that files name ---- */

static berth_status map_beside(const char *owner, const char *name, berth_error *err) {
  berth_context *ctx = test_context();
  berth__mapping mapping;
  char path[512];
  snprintf(path, sizeof path, "%s", test_path(owner));
  const berth_status status = berth__file_map_beside(ctx, path, name, &mapping, err);
  berth__file_unmap(&mapping);
  berth_context_destroy(ctx);
  return status;
}

static void links_do_not_lead_out_of_the_folder(void **state) {
  (void)state;
  berth_error err;
  static const char *const folders[] = {"models", "models/sub", "models2", "elsewhere"};
  static const char *const files[] = {"models/m", "models/w", "models/sub/w", "models2/w", "elsewhere/w"};
  static const char *const links[][2] = {
      {"w", "models/inner"},           {"sub/w", "models/deep"},        {"../elsewhere/w", "models/out"},
      {"../models2/w", "models/near"}, {"../elsewhere", "models/fold"}, {"models", "alias"},
      {"../models/m", "elsewhere/m"},  {"../models/w", "elsewhere/v"}};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) assert_int_equal(mkdir(test_path(folders[i]), 0700), 0);
  for (size_t i = 0; i < sizeof files / sizeof *files; i++) test_write_file(test_path(files[i]), "abc", 3);
  for (size_t i = 0; i < sizeof links / sizeof *links; i++)
    assert_int_equal(symlink(links[i][0], test_path(links[i][1])), 0);
  TEST_OK(map_beside("models/m", "w", &err));
  TEST_OK(map_beside("models/m", "sub/w", &err));
  TEST_OK(map_beside("models/m", "inner", &err));
  TEST_OK(map_beside("models/m", "deep", &err));
  TEST_OK(map_beside("alias/m", "deep", &err));  /* the folder itself may be a link */
  TEST_OK(map_beside("elsewhere/m", "v", &err)); /* both are links into one folder, as in a cache of models */
  static const char *const refused[] = {"out", "near", "fold/w"};
  for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
    const berth_status status = map_beside("models/m", refused[i], &err);
    test_expect_error(status, BERTH_MALFORMED, &err, "leads out of the model's folder");
    test_expect_error(status, BERTH_MALFORMED, &err, refused[i]);
  }
  test_expect_error(map_beside("models/m", "none", &err), BERTH_IO, &err, "No such file");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_is_mapped_as_it_is),
      cmocka_unit_test(an_empty_file_is_no_error),
      cmocka_unit_test(released_pages_stay_readable),
      cmocka_unit_test(a_released_start_comes_back_in_small_pages),
      cmocka_unit_test(a_missing_file_is_named),
      cmocka_unit_test(a_folder_is_refused),
      cmocka_unit_test(a_pipe_is_refused_without_waiting),
      cmocka_unit_test(an_unreadable_file_is_named),
      cmocka_unit_test(only_bytes_of_the_mapping_are_released),
      cmocka_unit_test(a_file_that_shrinks_is_an_error),
      cmocka_unit_test(sigbus_is_caught_for_mapped_files_alone),
      cmocka_unit_test(links_do_not_lead_out_of_the_folder),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
