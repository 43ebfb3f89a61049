/* Runs a fuzz target on every file of the given folders, and on prefixes of each, as an ordinary test. Fails if a
 * folder is missing or empty. */
#include <dirent.h>
#include <string.h>
#include <sys/stat.h>

#include "fuzz/fuzz.h"

/* From a block of exactly this size, so that the sanitizer detects reads past the end. */
static void run_exact(const uint8_t *data, size_t size) {
  uint8_t *exact = malloc(size > 0 ? size : 1);
  FUZZ_CHECK(exact != NULL);
  memcpy(exact, data, size);
  LLVMFuzzerTestOneInput(exact, size);
  free(exact);
}

static int replay_file(const char *path) {
  struct stat info;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return 0;
  FILE *file = fopen(path, "rb");
  FUZZ_CHECK(file != NULL);
  size_t size = (size_t)info.st_size;
  uint8_t *data = malloc(size > 0 ? size : 1);
  FUZZ_CHECK(data != NULL && fread(data, 1, size, file) == size);
  fclose(file);
  run_exact(data, size);
  size_t step = size / 64 + 1;
  for (size_t cut = 0; cut < size; cut += step) run_exact(data, cut);
  free(data);
  return 1;
}

static int replay_folder(const char *folder) {
  int count = 0;
  char path[4096];
  DIR *dir = opendir(folder);
  if (!dir) return 0;
  for (struct dirent *entry = readdir(dir); entry; entry = readdir(dir)) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    count += replay_file(path);
  }
  closedir(dir);
  return count;
}

int main(int argc, char **argv) {
  int failed = argc < 2;
  if (failed) fprintf(stderr, "usage: %s FOLDER...\n", argv[0]);
  for (int i = 1; i < argc; i++) {
    int count = replay_folder(argv[i]);
    printf("%s: %d files\n", argv[i], count);
    failed |= count == 0;
  }
  return failed;
}
