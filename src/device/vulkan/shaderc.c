#include "device/vulkan/shaderc.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef BERTH__LIBDIR_FROM_BINDIR
#define BERTH__LIBDIR_FROM_BINDIR "../lib"
#endif

/* ---- Functions ---- */

static bool find_functions(berth__shaderc_library *library) {
  const berth__shaderc *table = dlsym(library->handle, BERTH__SHADERC_TABLE);
  if (table != NULL) {
    library->call = *table;
    return true;
  }
#define BERTH__SHADERC_FUNCTION(name)                                                                            \
  {                                                                                                              \
    void *found = dlsym(library->handle, "shaderc_" #name);                                                      \
    if (found == NULL) return false;                                                                             \
    memcpy(&library->call.name, &found, sizeof found); /* a data pointer cannot be cast to a function pointer */ \
  }
  BERTH__SHADERC_FUNCTIONS(BERTH__SHADERC_FUNCTION)
#undef BERTH__SHADERC_FUNCTION
  return true;
}

/* No function returns the version, so the file itself identifies it. */
static void find_version(berth__shaderc_library *library) {
  Dl_info info;
  struct stat file = {0};
  void *address;
  memcpy(&address, &library->call.compile_into_spv, sizeof address);
  if (dladdr(address, &info) == 0 || info.dli_fname == NULL || stat(info.dli_fname, &file) != 0) file.st_size = 0;
  snprintf(library->version, sizeof library->version, "shaderc %lld %lld.%09ld", (long long)file.st_size,
           (long long)file.st_mtim.tv_sec, (long)file.st_mtim.tv_nsec);
}

/* Stays loaded: memory that it keeps for later compilers is never freed. */
static bool open_file(berth__shaderc_library *library, const char *path) {
  library->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library->handle == NULL) return false;
  if (!find_functions(library)) {
    berth__shaderc_close(library);
    return false;
  }
  find_version(library);
  return true;
}

/* ---- Location ---- */

/* `file` is the path of a library or program; `place` is the module's path relative to its folder. */
static bool open_beside(berth__shaderc_library *library, const char *file, const char *place) {
  char path[PATH_MAX];
  const char *slash = strrchr(file, '/');
  if (slash == NULL) return false;
  const int n = snprintf(path, sizeof path, "%.*s/%s" BERTH__SHADERC_MODULE, (int)(slash - file), file, place);
  return n > 0 && (size_t)n < sizeof path && open_file(library, path);
}

static bool open_module(berth__shaderc_library *library) {
  static const char here;
  Dl_info info;
  char program[PATH_MAX];
  if (dladdr(&here, &info) != 0 && info.dli_fname != NULL && open_beside(library, info.dli_fname, "")) return true;
  const ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
  if (size <= 0) return false;
  program[size] = '\0';
  return open_beside(library, program, "") || open_beside(library, program, BERTH__LIBDIR_FROM_BINDIR "/");
}

berth_status berth__shaderc_open(const char *path, berth__shaderc_library *out, berth_error *err) {
  static const char *const files[] = {BERTH__SHADERC_MODULE, "libshaderc.so.1", "libshaderc_shared.so.1",
                                      "libshaderc.so"};
  *out = (berth__shaderc_library){0};
  if (path != NULL) {
    if (open_file(out, path)) return BERTH_OK;
    const char *why = dlerror();
    return berth__fail(err, BERTH_UNSUPPORTED, "BERTH_SHADERC names '%s', which cannot be opened as shaderc: %s", path,
                       why != NULL ? why : "functions are missing");
  }
  if (open_module(out)) return BERTH_OK;
  for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
    if (open_file(out, files[i])) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "kernels are compiled with shaderc, and neither " BERTH__SHADERC_MODULE
                     " nor libshaderc.so.1 can be opened; BERTH_SHADERC may name one");
}

void berth__shaderc_close(berth__shaderc_library *library) {
  if (library->handle != NULL) dlclose(library->handle);
  library->handle = NULL;
}
