/* NVIDIA's driver: a shared library that is looked up when the device is first used. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "device/cuda/api.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;
static char loaded_path[4096]; /* as named by the option; empty: the usual name */
static berth__cu_calls calls;

void berth__cuda_say(const berth__cu_calls *cu, berth__cu_result result, char text[BERTH__CUDA_TEXT]) {
  const char *name = NULL, *words = NULL;
  if (cu->GetErrorName(result, &name) != BERTH__CU_SUCCESS) name = NULL;
  if (cu->GetErrorString(result, &words) != BERTH__CU_SUCCESS) words = NULL;
  if (name != NULL && words != NULL)
    snprintf(text, BERTH__CUDA_TEXT, "%.180s (%.80s)", words, name);
  else
    snprintf(text, BERTH__CUDA_TEXT, "CUDA error %d", result);
}

static void *cuda_library_open(const char *path, char *reason) {
  void *library = dlopen(path != NULL ? path : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library != NULL) return library;
  const char *said = dlerror();
  if (path != NULL)
    snprintf(reason, BERTH__CUDA_TEXT, "BERTH_CUDA_LIBRARY names a library that cannot be opened: %.200s",
             said != NULL ? said : "");
  else
    snprintf(reason, BERTH__CUDA_TEXT,
             "libcuda.so.1 was not found; it comes with NVIDIA's driver: install that, or give a container access to "
             "the GPU");
  return NULL;
}

/* Converts a data pointer to a function pointer: POSIX guarantees that they have the same form, C does not. */
static bool cuda_library_find(void *library, const char *name, void *out) {
  void *found = dlsym(library, name);
  if (found == NULL) return false;
  memcpy(out, &found, sizeof found);
  return true;
}

/* The first missing function; NULL: none. */
static const char *cuda_library_find_all(void *library) {
#define BERTH__CU_CALL(name, symbol, arguments) \
  if (!cuda_library_find(library, symbol, &calls.name)) return symbol;
#define BERTH__CU_EITHER(name, symbol, older, arguments) \
  if (!cuda_library_find(library, symbol, &calls.name) && !cuda_library_find(library, older, &calls.name)) return older;
#define BERTH__CU_MAYBE(name, symbol, arguments) \
  if (!cuda_library_find(library, symbol, &calls.name)) calls.name = NULL;
#include "device/cuda/calls.def"
#undef BERTH__CU_MAYBE
#undef BERTH__CU_CALL
#undef BERTH__CU_EITHER
  return NULL;
}

static bool is_new_enough(void *library, char *reason) {
  berth__cu_result (*get_version)(int *version) = NULL;
  int version = 0;
  const bool is_known =
      cuda_library_find(library, "cuDriverGetVersion", &get_version) && get_version(&version) == BERTH__CU_SUCCESS;
  const char *missing = cuda_library_find_all(library);
  if (is_known && version < BERTH__CU_OLDEST)
    snprintf(reason, BERTH__CUDA_TEXT,
             "the NVIDIA driver is too old: it has CUDA %d.%d, and %d.%d is needed (driver 470 or newer)",
             version / 1000, version % 1000 / 10, BERTH__CU_OLDEST / 1000, BERTH__CU_OLDEST % 1000 / 10);
  else if (missing != NULL)
    snprintf(reason, BERTH__CUDA_TEXT, "the NVIDIA driver lacks %s: it is older or newer than berth knows", missing);
  else
    return true;
  return false;
}

static bool cuda_library_start(char *reason) {
  char text[BERTH__CUDA_TEXT];
  const berth__cu_result result = calls.Init(0);
  if (result == BERTH__CU_SUCCESS) return true;
  berth__cuda_say(&calls, result, text);
  if (result == BERTH__CU_NO_DEVICE)
    snprintf(reason, BERTH__CUDA_TEXT,
             "the NVIDIA driver finds no GPU: %.150s; CUDA_VISIBLE_DEVICES may hide it, or a container has none", text);
  else if (result == BERTH__CU_STUB_LIBRARY)
    snprintf(reason, BERTH__CUDA_TEXT,
             "libcuda.so.1 is the toolkit's stub and no driver: take its folder out of "
             "LD_LIBRARY_PATH");
  else
    snprintf(reason, BERTH__CUDA_TEXT, "the NVIDIA driver does not start: %.200s", text);
  return false;
}

static bool cuda_library_load(const char *path, char *reason) {
  void *library = cuda_library_open(path, reason);
  if (library == NULL) return false;
  if (is_new_enough(library, reason) && cuda_library_start(reason)) return true; /* stays loaded */
  dlclose(library);
  return false;
}

const berth__cu_calls *berth__cuda_library(const char *path, char reason[BERTH__CUDA_TEXT]) {
  reason[0] = '\0';
  pthread_mutex_lock(&lock);
  if (!is_loaded) {
    is_loaded = cuda_library_load(path, reason);
    if (is_loaded) snprintf(loaded_path, sizeof loaded_path, "%s", path != NULL ? path : "");
  } else if (path != NULL && strcmp(path, loaded_path) != 0) {
    snprintf(reason, BERTH__CUDA_TEXT, "another CUDA driver is in use in this process");
  }
  pthread_mutex_unlock(&lock);
  return reason[0] == '\0' ? &calls : NULL;
}
