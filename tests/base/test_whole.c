/* Files that are whole at every moment. */
#include "base/whole.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

static char path[400];

static void read_back(char *text, size_t size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t n = fread(text, 1, size - 1, file);
  text[n] = '\0';
  fclose(file);
}

static bool is_beside(void) {
  char beside[sizeof path + 8];
  snprintf(beside, sizeof beside, "%s.new", path);
  return access(beside, F_OK) == 0;
}

static berth_status write_text(berth_context *ctx, const char *text, berth_status status, berth_error *err) {
  berth__whole file;
  BERTH__TRY(berth__whole_open(ctx, path, &file, err));
  berth__whole_write(&file, text, strlen(text));
  return berth__whole_close(&file, status, err);
}

static void a_file_has_all_or_what_it_had(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  char text[32];
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("file"));
  TEST_OK(write_text(ctx, "first", BERTH_OK, &err));
  read_back(text, sizeof text);
  assert_string_equal(text, "first");
  assert_int_equal(write_text(ctx, "second", BERTH_IO, &err), BERTH_IO); /* something else went wrong */
  read_back(text, sizeof text);
  assert_string_equal(text, "first");
  TEST_OK(write_text(ctx, "third", BERTH_OK, &err));
  read_back(text, sizeof text);
  assert_string_equal(text, "third");
  assert_false(is_beside());
  test_context_done(ctx, &alloc);
}

/* Two that write one file at once, as two trainings with one checkpoint do: whoever ends last has it, as a whole. */
static void writers_of_one_file_do_not_mix(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__whole first, second;
  char text[32];
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("both"));
  TEST_OK(berth__whole_open(ctx, path, &first, &err));
  berth__whole_write(&first, "aaaa", 4);
  TEST_OK(berth__whole_open(ctx, path, &second, &err));
  berth__whole_write(&second, "bb", 2);
  TEST_OK(berth__whole_close(&first, BERTH_OK, &err));
  read_back(text, sizeof text);
  assert_string_equal(text, "aaaa");
  TEST_OK(write_text(ctx, "cccccc", BERTH_OK, &err));
  read_back(text, sizeof text);
  assert_string_equal(text, "cccccc");
  berth__whole_write(&second, "b", 1);
  TEST_OK(berth__whole_close(&second, BERTH_OK, &err));
  read_back(text, sizeof text);
  assert_string_equal(text, "bbb");
  assert_false(is_beside());
  test_context_done(ctx, &alloc);
}

static void a_link_stays_one_and_its_file_is_written(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  char text[32], target[sizeof path];
  struct stat about;
  berth_error err;
  (void)state;
  snprintf(target, sizeof target, "%s", test_path("linked"));
  snprintf(path, sizeof path, "%s", test_path("link"));
  (void)unlink(path);
  (void)unlink(target);
  assert_int_equal(symlink("linked", path), 0); /* it begins in the link's folder, and leads to nothing yet */
  for (int i = 0; i < 2; i++) {
    TEST_OK(write_text(ctx, i == 0 ? "first" : "second", BERTH_OK, &err));
    read_back(text, sizeof text);
    assert_string_equal(text, i == 0 ? "first" : "second");
    assert_int_equal(lstat(path, &about), 0);
    assert_true(S_ISLNK(about.st_mode));
    assert_int_equal(lstat(target, &about), 0);
    assert_true(S_ISREG(about.st_mode));
  }
  assert_false(is_beside());
  (void)unlink(path);
  assert_int_equal(symlink("link", path), 0); /* to itself */
  assert_int_equal(write_text(ctx, "third", BERTH_OK, &err), BERTH_IO);
  (void)unlink(path);
  test_context_done(ctx, &alloc);
}

static void who_may_read_a_file_stays(void **state) {
  static const mode_t modes[] = {0600, 0640, 0444};
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  struct stat about;
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("private"));
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    TEST_OK(write_text(ctx, "first", BERTH_OK, &err));
    assert_int_equal(chmod(path, modes[i]), 0);
    TEST_OK(write_text(ctx, "second", BERTH_OK, &err));
    assert_int_equal(stat(path, &about), 0);
    assert_int_equal(about.st_mode & 0777, modes[i]);
  }
  test_context_done(ctx, &alloc);
}

/* Its mode is that of the file in the end alone: until then others that write the name must see that it is taken. */
static void files_that_are_read_only_have_several_writers_too(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__whole first, second;
  struct stat about;
  char text[32], beside[sizeof path + 8];
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("read_only"));
  snprintf(beside, sizeof beside, "%s.new", path);
  (void)unlink(path);
  TEST_OK(write_text(ctx, "first", BERTH_OK, &err));
  assert_int_equal(chmod(path, 0444), 0);
  TEST_OK(berth__whole_open(ctx, path, &first, &err));
  assert_int_equal(stat(beside, &about), 0);
  assert_true(about.st_mode & S_IWUSR); /* the superuser may write to it anyway, so that opening it says nothing */
  TEST_OK(berth__whole_open(ctx, path, &second, &err));
  berth__whole_write(&second, "second", 6);
  TEST_OK(berth__whole_close(&second, BERTH_OK, &err));
  assert_int_equal(berth__whole_close(&first, BERTH_IO, &err), BERTH_IO);
  read_back(text, sizeof text);
  assert_string_equal(text, "second");
  assert_int_equal(stat(path, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0444);
  assert_false(is_beside());
  test_context_done(ctx, &alloc);
}

/* A folder, a link to a file of somebody else, a pipe that nobody reads. */
static void what_has_the_name_beside_stays(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  char text[32], beside[sizeof path + 8], other[sizeof path];
  struct stat about;
  berth_error err;
  (void)state;
  snprintf(other, sizeof other, "%s", test_path("other"));
  snprintf(path, sizeof path, "%s", test_path("taken"));
  snprintf(beside, sizeof beside, "%s.new", path);
  test_write_file(other, "other", 5);
  for (int i = 0; i < 3; i++) {
    (void)unlink(beside);
    (void)rmdir(beside);
    assert_int_equal(i == 0 ? mkdir(beside, 0700) : i == 1 ? symlink(other, beside) : mkfifo(beside, 0600), 0);
    TEST_OK(write_text(ctx, i == 1 ? "second" : "first", BERTH_OK, &err));
    read_back(text, sizeof text);
    assert_string_equal(text, i == 1 ? "second" : "first");
    assert_int_equal(lstat(path, &about), 0);
    assert_true(S_ISREG(about.st_mode));
    assert_int_equal(lstat(beside, &about), 0);
    assert_true(i == 0 ? S_ISDIR(about.st_mode) : i == 1 ? S_ISLNK(about.st_mode) : S_ISFIFO(about.st_mode));
  }
  (void)unlink(beside);
  snprintf(path, sizeof path, "%s", other);
  read_back(text, sizeof text);
  assert_string_equal(text, "other");
  test_context_done(ctx, &alloc);
}

static void a_pipe_stays_one_and_gets_the_bytes(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  struct stat there;
  char text[32] = "";
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("pipe"));
  (void)unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0);
  const int fd = open(path, O_RDONLY | O_NONBLOCK);
  assert_true(fd >= 0);
  TEST_OK(write_text(ctx, "bytes", BERTH_OK, &err));
  assert_int_equal(stat(path, &there), 0);
  assert_true(S_ISFIFO(there.st_mode));
  assert_int_equal(read(fd, text, sizeof text), 5);
  assert_string_equal(text, "bytes");
  assert_false(is_beside());
  close(fd);
  test_context_done(ctx, &alloc);
}

static void a_folder_is_refused(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  (void)state;
  snprintf(path, sizeof path, "%s", test_path("folder"));
  (void)mkdir(path, 0700);
  test_expect_error(write_text(ctx, "bytes", BERTH_OK, &err), BERTH_IO, &err, "Is a directory");
  assert_false(is_beside());
  test_context_done(ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_file_has_all_or_what_it_had),
      cmocka_unit_test(writers_of_one_file_do_not_mix),
      cmocka_unit_test(a_link_stays_one_and_its_file_is_written),
      cmocka_unit_test(who_may_read_a_file_stays),
      cmocka_unit_test(files_that_are_read_only_have_several_writers_too),
      cmocka_unit_test(what_has_the_name_beside_stays),
      cmocka_unit_test(a_pipe_stays_one_and_gets_the_bytes),
      cmocka_unit_test(a_folder_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
