/* The implementation of WebGPU: a shared library that is looked up when the device is first used. */
#include "device/webgpu/api.h"

#ifndef __wasm__ /* browser.c does this there */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const usual[] = {"libwebgpu_dawn.so", "libwgpu_native.so", "libwebgpu.so", "libwebgpu_wrapper.so"};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool is_loaded;
static char loaded_path[4096]; /* as named by the option; empty: one of the usual names */
static berth__wgpu_calls calls;
static const void *(*mapped_range)(berth__wgpu buffer, size_t offset, size_t size);
static char why[240]; /* empty: no error */

static void *open_named(const char *path) {
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const char *said = library == NULL ? dlerror() : NULL;
  if (said != NULL)
    snprintf(why, sizeof why, "BERTH_WEBGPU_LIBRARY names a library that cannot be opened: %.150s", said);
  return library;
}

static void *open_usual(void) {
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++) {
    void *library = dlopen(usual[i], RTLD_NOW | RTLD_LOCAL);
    if (library != NULL) return library;
  }
  snprintf(why, sizeof why,
           "no implementation of WebGPU was found; set BERTH_WEBGPU_LIBRARY to the path of one (Dawn, wgpu-native)");
  return NULL;
}

/* Converts a data pointer to a function pointer: POSIX guarantees that they have the same form, C does not. */
static void webgpu_library_find(void *library, const char *name, bool is_needed, void *out) {
  void *found = dlsym(library, name);
  if (found == NULL && is_needed && why[0] == '\0')
    snprintf(why, sizeof why, "the implementation of WebGPU lacks %s: it is older or newer than berth knows", name);
  memcpy(out, &found, sizeof found);
}

static bool read_mapped(berth__wgpu buffer, size_t offset, void *dst, size_t size) {
  const unsigned char *bytes = mapped_range(buffer, 0, (offset + size + 3) & ~(size_t)3);
  if (bytes == NULL) return false;
  memcpy(dst, bytes + offset, size);
  return true;
}

static void webgpu_library_rest(uint32_t round, double left) {
  (void)left;
  if (round < 16) return; /* short waits end at once */
  const struct timespec time = {.tv_nsec = round < 64 ? 20 * 1000 : 200 * 1000};
  nanosleep(&time, NULL);
}

static void webgpu_library_load(const char *path) {
  void *library = path != NULL ? open_named(path) : open_usual();
  if (library == NULL) return;
#define BERTH__WGPU_CALL(result, name, ...) webgpu_library_find(library, "wgpu" #name, true, &calls.name);
#define BERTH__WGPU_OPTIONAL(result, name, ...) webgpu_library_find(library, "wgpu" #name, false, &calls.name);
#include "device/webgpu/calls.def"
#undef BERTH__WGPU_CALL
  webgpu_library_find(library, "wgpuBufferGetConstMappedRange", true, &mapped_range);
  calls.read_mapped = read_mapped;
  calls.rest = webgpu_library_rest;
}

/* One for the whole process: two would share the driver and its global state. */
const berth__wgpu_calls *berth__wgpu_library(const char *path, const char **reason) {
  *reason = NULL;
  pthread_mutex_lock(&lock);
  if (!is_loaded) {
    why[0] = '\0';
    webgpu_library_load(path);
    is_loaded = why[0] == '\0';
    if (is_loaded) snprintf(loaded_path, sizeof loaded_path, "%s", path != NULL ? path : "");
    if (!is_loaded) *reason = why;
  } else if (path != NULL && strcmp(path, loaded_path) != 0) {
    *reason = "another implementation of WebGPU is in use in this process";
  }
  pthread_mutex_unlock(&lock);
  return *reason == NULL ? &calls : NULL;
}

#endif
