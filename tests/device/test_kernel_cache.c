/* Compiled kernels on disk: whatever happens to the files, what comes back is right or nothing. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "device/gpu/cache.h"
#include "support.h"
#ifdef BERTH__HAS_VULKAN
#include "device/vulkan/spirv.h"
#endif

#define N_WORDS 9
static uint32_t code[N_WORDS] = {0x07230203, 0x00010300, 1, 2, 0, 5, 6, 7, 8};
static const berth__kernel_code made = {.data = code, .size = sizeof code};
static const char source[] = "void main() {}";
#define KEY(compiler, target, source, size) \
  { compiler, target, source, size, "spv", 0x07230203 }
static const berth__kernel_key key = KEY("shaderc 1", "any", source, sizeof source - 1);

/* A cache in a folder of its own. */
static berth__kernel_cache open_cache(berth_context *ctx, const char *name) {
  berth__kernel_cache cache;
  setenv("BERTH_CACHE_DIR", test_path(name), 1);
  test_read_options(ctx);
  berth__kernel_cache_open(&cache, ctx);
  assert_non_null(cache.folder);
  return cache;
}

/* The one file of the cache. */
static const char *file_of(const berth__kernel_cache *cache) {
  static char path[4096];
  uint32_t n = 0;
  DIR *folder = opendir(cache->folder);
  assert_non_null(folder);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", cache->folder, entry->d_name);
    n++;
  }
  closedir(folder);
  assert_int_equal(n, 1);
  return path;
}

static void expect_there(const berth__kernel_cache *cache) {
  berth__kernel_code found;
  assert_true(berth__kernel_cache_read(cache, &key, &found));
  assert_int_equal(found.size, sizeof code);
  assert_memory_equal(found.data, code, sizeof code);
  berth__free(cache->ctx, found.data);
}

static void expect_missing(const berth__kernel_cache *cache) {
  berth__kernel_code found = {0};
  assert_false(berth__kernel_cache_read(cache, &key, &found));
  assert_null(found.data);
}

static size_t read_file(const char *path, uint8_t *bytes, size_t size) {
  FILE *file = fopen(path, "rb");
  assert_non_null(file);
  const size_t n = fread(bytes, 1, size, file);
  fclose(file);
  return n;
}

static void test_what_was_written_is_read(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel_cache cache = open_cache(ctx, "deep/in/cache");
  expect_missing(&cache);
  berth__kernel_cache_write(&cache, &key, &made);
  expect_there(&cache);
  struct stat about;
  assert_int_equal(stat(cache.folder, &about), 0);
  assert_int_equal(about.st_mode & 0777, 0700);
  assert_int_equal(stat(file_of(&cache), &about), 0);
  assert_int_equal(about.st_mode & 0777, 0600);
  berth__kernel_cache_close(&cache);
  test_context_done(ctx, &alloc);
}

static void test_another_key_is_another_file(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel_cache cache = open_cache(ctx, "keys");
  berth__kernel_cache_write(&cache, &key, &made);
  const berth__kernel_key others[] = {
      KEY("shaderc 2", "any", source, sizeof source - 1), KEY("shaderc 1", "another", source, sizeof source - 1),
      KEY("shaderc 1", "any", source, sizeof source - 2), KEY("shaderc 1", "any", "void main() {;}", 15),
      KEY("shaderc 1a", "ny", source, sizeof source - 1), KEY("shaderc 1", "an", "yvoid main() {}", 15)};
  for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
    berth__kernel_code found;
    assert_false(berth__kernel_cache_read(&cache, &others[i], &found));
  }
  /* A file under a name that is not its own: as if two sources had the same hash. */
  char path[4096];
  snprintf(path, sizeof path, "%s", file_of(&cache));
  uint8_t bytes[512];
  const size_t size = read_file(path, bytes, sizeof bytes);
  unlink(path);
  berth__kernel_cache_write(&cache, &others[0], &made);
  test_write_file(file_of(&cache), bytes, size);
  berth__kernel_code found;
  assert_false(berth__kernel_cache_read(&cache, &others[0], &found));
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static void test_a_byte_that_is_wrong_anywhere(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__kernel_cache cache = open_cache(ctx, "corrupt");
  berth__kernel_cache_write(&cache, &key, &made);
  const char *path = file_of(&cache);
  uint8_t bytes[512];
  const size_t size = read_file(path, bytes, sizeof bytes);
  assert_true(size > sizeof code && size < sizeof bytes);
  for (size_t i = 0; i < size; i++) {
    for (int bit = 0; bit < 8; bit++) {
      bytes[i] ^= (uint8_t)(1 << bit);
      test_write_file(path, bytes, size);
      expect_missing(&cache);
      bytes[i] ^= (uint8_t)(1 << bit);
    }
  }
  berth__kernel_cache_write(&cache, &key, &made); /* takes the place of the last one */
  expect_there(&cache);
  berth__kernel_cache_close(&cache);
  test_context_done(ctx, &alloc);
}

static void test_a_file_of_another_size(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel_cache cache = open_cache(ctx, "short");
  berth__kernel_cache_write(&cache, &key, &made);
  const char *path = file_of(&cache);
  uint8_t bytes[512] = {0};
  const size_t size = read_file(path, bytes, sizeof bytes);
  for (size_t i = 0; i < sizeof bytes; i++) {
    test_write_file(path, bytes, i);
    if (i == size) {
      expect_there(&cache);
    } else {
      expect_missing(&cache);
    }
  }
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static void test_files_that_are_none_of_ours(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel_cache cache = open_cache(ctx, "foreign");
  berth__kernel_cache_write(&cache, &key, &made);
  const char *path = file_of(&cache);
  test_write_file(path, "hello, this is the diary of somebody else, and no code of any kind at all", 72);
  expect_missing(&cache);
  unlink(path);
  assert_int_equal(mkfifo(path, 0600), 0); /* must not wait for a writer */
  expect_missing(&cache);
  unlink(path);
  assert_int_equal(mkdir(path, 0700), 0);
  expect_missing(&cache);
  berth__kernel_cache_write(&cache, &key, &made); /* cannot be, and leaves nothing behind */
  assert_string_equal(file_of(&cache), path);
  expect_missing(&cache);
  rmdir(path);
  /* Whole, but no code of that kind; and less than tells. */
  uint32_t other[N_WORDS] = {0};
  berth__kernel_cache_write(&cache, &key, &(berth__kernel_code){.data = other, .size = sizeof other});
  expect_missing(&cache);
  berth__kernel_cache_write(&cache, &key, &(berth__kernel_code){.data = code, .size = 3});
  expect_missing(&cache);
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static void test_a_folder_that_cannot_be(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  char file[4096];
  snprintf(file, sizeof file, "%s", test_path("in_the_way"));
  test_write_file(file, "x", 1);
  berth__kernel_cache cache = open_cache(ctx, "in_the_way/cache");
  expect_missing(&cache);
  berth__kernel_cache_write(&cache, &key, &made);
  expect_missing(&cache);
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static void expect_folder(berth_context *ctx, const char *own, const char *shared, const char *home, const char *want) {
  static const char *const names[] = {"BERTH_CACHE_DIR", "XDG_CACHE_HOME", "HOME"};
  const char *const values[] = {own, shared, home};
  for (size_t i = 0; i < 3; i++) {
    if (values[i] != NULL) {
      setenv(names[i], values[i], 1);
    } else {
      unsetenv(names[i]);
    }
  }
  berth__kernel_cache cache;
  test_read_options(ctx);
  berth__kernel_cache_open(&cache, ctx);
  if (want != NULL) {
    assert_string_equal(cache.folder, want);
  } else {
    assert_null(cache.folder);
    expect_missing(&cache);
    berth__kernel_cache_write(&cache, &key, &made);
  }
  berth__kernel_cache_close(&cache);
}

static void test_which_folder(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  expect_folder(ctx, "/a/b", "/x", "/h", "/a/b");
  expect_folder(ctx, "", "/x", "/h", NULL);
  expect_folder(ctx, NULL, "/x", "/h", "/x/berth");
  expect_folder(ctx, NULL, "x", "/h", "/h/.cache/berth"); /* one that is not absolute does not count */
  expect_folder(ctx, NULL, NULL, "/h", "/h/.cache/berth");
  expect_folder(ctx, NULL, "", "", NULL);
  expect_folder(ctx, NULL, NULL, NULL, NULL);
  berth_context_destroy(ctx);
}

/* Writes and reads the same key over and over; other code than the file's own is a failure. */
static int write_and_read(const berth__kernel_cache *cache) {
  for (int i = 0; i < 300; i++) {
    berth__kernel_code found;
    berth__kernel_cache_write(cache, &key, &made);
    if (!berth__kernel_cache_read(cache, &key, &found)) return 1;
    const bool is_right = found.size == sizeof code && memcmp(found.data, code, sizeof code) == 0;
    berth__free(cache->ctx, found.data);
    if (!is_right) return 2;
  }
  return 0;
}

static void test_several_processes(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel_cache cache = open_cache(ctx, "processes");
  pid_t children[3];
  for (int i = 0; i < 3; i++) {
    children[i] = fork();
    assert_true(children[i] >= 0);
    if (children[i] == 0) _exit(write_and_read(&cache));
  }
  assert_int_equal(write_and_read(&cache), 0);
  for (int i = 0; i < 3; i++) {
    int status;
    assert_int_equal(waitpid(children[i], &status, 0), children[i]);
    assert_int_equal(status, 0);
  }
  assert_non_null(file_of(&cache)); /* one file: nothing unfinished is left */
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static berth_status use_cache(berth_context *ctx, berth_error *err, void *user) {
  (void)err, (void)user;
  berth__kernel_cache cache;
  berth__kernel_code found;
  berth__kernel_cache_open(&cache, ctx);
  berth__kernel_cache_write(&cache, &key, &made);
  if (berth__kernel_cache_read(&cache, &key, &found)) berth__free(ctx, found.data);
  berth__kernel_cache_close(&cache);
  return BERTH_OK;
}

static void test_memory_that_runs_out(void **state) {
  (void)state;
  setenv("BERTH_CACHE_DIR", test_path("memory"), 1);
  assert_true(test_fail_each_allocation(use_cache, NULL) >= 5);
}

#ifdef BERTH__HAS_VULKAN
/* ---- With the compiler of a device ---- */

static const char shader[] =
    "#version 450\nlayout(set = 0, binding = 0) buffer W { uint w[]; };\nvoid main() { w[0] = 1u; }\n";

static berth__spirv_compiler *make_compiler(berth_context *ctx) {
  berth_error err;
  berth__spirv_compiler *compiler;
  if (berth__spirv_compiler_create(ctx, &compiler, &err) == BERTH_OK) return compiler;
  berth_context_destroy(ctx);
  TEST_SKIP(err.message);
  return NULL;
}

static void test_compiling_uses_the_cache(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel_cache cache = open_cache(ctx, "compiled");
  berth__spirv_compiler *compiler = make_compiler(ctx);
  berth__spirv first, second, third;
  TEST_OK(berth__spirv_compile(compiler, "one", shader, strlen(shader), &first, &err));
  uint8_t bytes[4096];
  const size_t size = read_file(file_of(&cache), bytes, sizeof bytes);
  assert_true(size > first.n_words * 4 && size < sizeof bytes);
  TEST_OK(berth__spirv_compile(compiler, "one", shader, strlen(shader), &second, &err));
  test_write_file(file_of(&cache), bytes, size - 1);
  TEST_OK(berth__spirv_compile(compiler, "one", shader, strlen(shader), &third, &err));
  assert_int_equal(read_file(file_of(&cache), bytes, sizeof bytes), size);
  assert_int_equal(first.n_words, second.n_words);
  assert_int_equal(first.n_words, third.n_words);
  assert_memory_equal(first.words, second.words, first.n_words * 4);
  assert_memory_equal(first.words, third.words, first.n_words * 4);
  berth__free(ctx, first.words);
  berth__free(ctx, second.words);
  berth__free(ctx, third.words);
  berth__spirv_compiler_destroy(compiler);
  berth__kernel_cache_close(&cache);
  berth_context_destroy(ctx);
}

static void test_what_the_compiler_says(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  setenv("BERTH_CACHE_DIR", "", 1);
  test_read_options(ctx);
  berth__spirv_compiler *compiler = make_compiler(ctx);
  berth__spirv out;
  const char wrong[] = "#version 450\nvoid main() { nothing = 1; }\n";
  const berth_status status = berth__spirv_compile(compiler, "add [4]", wrong, strlen(wrong), &out, &err);
  test_expect_error(status, BERTH_INTERNAL, &err, "'add [4]'");
  test_expect_error(status, BERTH_INTERNAL, &err, "'nothing' : undeclared identifier");
  assert_null(out.words);
  berth__spirv_compiler_destroy(compiler);
  berth_context_destroy(ctx);
}

static void test_a_compiler_that_is_not_there(void **state) {
  (void)state;
  berth_error err;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth__spirv_compiler *compiler;
  setenv("BERTH_SHADERC", test_path("no_library.so"), 1);
  test_read_options(ctx);
  test_expect_error(berth__spirv_compiler_create(ctx, &compiler, &err), BERTH_UNSUPPORTED, &err, "no_library.so");
  assert_null(compiler);
  setenv("BERTH_SHADERC", "libm.so.6", 1);
  test_read_options(ctx);
  test_expect_error(berth__spirv_compiler_create(ctx, &compiler, &err), BERTH_UNSUPPORTED, &err, "libm.so.6");
  unsetenv("BERTH_SHADERC");
  test_context_done(ctx, &alloc);
}
#endif

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_what_was_written_is_read),
      cmocka_unit_test(test_another_key_is_another_file),
      cmocka_unit_test(test_a_byte_that_is_wrong_anywhere),
      cmocka_unit_test(test_a_file_of_another_size),
      cmocka_unit_test(test_files_that_are_none_of_ours),
      cmocka_unit_test(test_a_folder_that_cannot_be),
      cmocka_unit_test(test_which_folder),
      cmocka_unit_test(test_several_processes),
      cmocka_unit_test(test_memory_that_runs_out),
#ifdef BERTH__HAS_VULKAN
      cmocka_unit_test(test_compiling_uses_the_cache),
      cmocka_unit_test(test_what_the_compiler_says),
      cmocka_unit_test(test_a_compiler_that_is_not_there),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
