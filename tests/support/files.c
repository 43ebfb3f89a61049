#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "support.h"

static char folder[256];

static int remove_entry(const char *path, const struct stat *info, int kind, struct FTW *position) {
  (void)info;
  (void)kind;
  (void)position;
  return remove(path);
}

static void remove_folder(void) { nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS); }

static void make_folder(void) {
  const char *base = getenv("TMPDIR");
  snprintf(folder, sizeof folder, "%s/berth-test-XXXXXX", base != NULL ? base : "/tmp");
  assert_non_null(mkdtemp(folder));
  atexit(remove_folder);
}

const char *test_path(const char *name) {
  static char path[512];
  if (folder[0] == '\0') make_folder();
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

void test_write_file(const char *path, const void *data, size_t size) {
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fwrite(data, 1, size, file), size);
  assert_int_equal(fclose(file), 0);
}
