#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support.h"

/* It lies in the folder above the program's own. */
static void fake_cuda_path(char *path, size_t size) {
  char program[512];
  const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
  program[length > 0 ? length : 0] = '\0';
  char *name = strrchr(program, '/');
  snprintf(path, size, "%.*s/../libfake_cuda.so", name != NULL ? (int)(name - program) : 0, program);
}

void *test_fake_cuda(const char *symbol, const char **path) {
  static char library[600];
  const char *folder = test_path("kernels");
  fake_cuda_path(library, sizeof library);
  mkdir(folder, 0700);
  setenv("FAKE_CUDA_DIR", folder, 1);
  void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  void *found = opened != NULL ? dlsym(opened, symbol) : NULL;
  if (found == NULL) fprintf(stderr, "%s\n", dlerror());
  if (path != NULL) *path = library;
  return found;
}
