#include "device/cuda/nvrtc.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2", "libnvrtc.so"};
#define N_NAMES (sizeof names / sizeof names[0])

/* ---- Location ---- */

/* NVRTC reports a version, but builds differ, so the file itself identifies it. */
static bool look_at(berth__nvrtc *nvrtc, const char *path) {
  struct stat file;
  if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || strlen(path) >= sizeof nvrtc->path) return false;
  snprintf(nvrtc->path, sizeof nvrtc->path, "%s", path);
  snprintf(nvrtc->version, sizeof nvrtc->version, "NVRTC %lld %lld.%09ld", (long long)file.st_size,
           (long long)file.st_mtim.tv_sec, (long)file.st_mtim.tv_nsec);
  return true;
}

static bool look_in(berth__nvrtc *nvrtc, const char *folder, const char *below) {
  char path[BERTH__NVRTC_PATH];
  for (size_t i = 0; i < N_NAMES; i++) {
    const int n = snprintf(path, sizeof path, "%s%s/%s", folder, below, names[i]);
    if (n > 0 && (size_t)n < sizeof path && look_at(nvrtc, path)) return true;
  }
  return false;
}

static bool find_functions(berth__nvrtc *nvrtc) {
  const struct {
    const char *name;
    void *out;
  } all[] = {{"nvrtcGetErrorString", &nvrtc->call.GetErrorString},
             {"nvrtcCreateProgram", &nvrtc->call.CreateProgram},
             {"nvrtcCompileProgram", &nvrtc->call.CompileProgram},
             {"nvrtcGetProgramLogSize", &nvrtc->call.GetProgramLogSize},
             {"nvrtcGetProgramLog", &nvrtc->call.GetProgramLog},
             {"nvrtcGetCUBINSize", &nvrtc->call.GetCUBINSize},
             {"nvrtcGetCUBIN", &nvrtc->call.GetCUBIN},
             {"nvrtcGetPTXSize", &nvrtc->call.GetPTXSize},
             {"nvrtcGetPTX", &nvrtc->call.GetPTX},
             {"nvrtcGetNumSupportedArchs", &nvrtc->call.GetNumSupportedArchs},
             {"nvrtcGetSupportedArchs", &nvrtc->call.GetSupportedArchs},
             {"nvrtcDestroyProgram", &nvrtc->call.DestroyProgram}};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
    void *found = dlsym(nvrtc->handle, all[i].name);
    if (found == NULL) return false;
    memcpy(all[i].out, &found, sizeof found); /* a data pointer cannot be cast to a function pointer */
  }
  return true;
}

/* Stays loaded, because opening takes long. */
static bool cuda_nvrtc_load(berth__nvrtc *nvrtc, const char *path) {
  nvrtc->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (nvrtc->handle == NULL) return false;
  if (find_functions(nvrtc)) return true;
  dlclose(nvrtc->handle);
  nvrtc->handle = NULL;
  return false;
}

/* Found by the system's search path: only opening it tells. */
static bool ask_system(berth__nvrtc *nvrtc) {
  for (size_t i = 0; i < N_NAMES; i++) {
    Dl_info info;
    void *address;
    if (!cuda_nvrtc_load(nvrtc, names[i])) continue;
    memcpy(&address, &nvrtc->call.CompileProgram, sizeof address);
    if (dladdr(address, &info) == 0 || info.dli_fname == NULL || !look_at(nvrtc, info.dli_fname))
      snprintf(nvrtc->version, sizeof nvrtc->version, "NVRTC %s", names[i]);
    return true;
  }
  return false;
}

berth_status berth__nvrtc_find(const berth__options *options, berth__nvrtc *out, berth_error *err) {
  static const char *const usual[] = {"/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
                                      "/usr/lib/x86_64-linux-gnu", "/usr/lib64"};
  *out = (berth__nvrtc){.path = ""};
  if (options->nvrtc != NULL) {
    if (look_at(out, options->nvrtc)) return BERTH_OK;
    return berth__fail(err, BERTH_UNSUPPORTED, "BERTH_NVRTC names '%s', which is not a file", options->nvrtc);
  }
  if (options->cuda_path != NULL &&
      (look_in(out, options->cuda_path, "/lib64") || look_in(out, options->cuda_path, "/lib")))
    return BERTH_OK;
  for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
    if (look_in(out, usual[i], "")) return BERTH_OK;
  if (ask_system(out)) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "kernels are compiled with NVRTC, and libnvrtc.so was not found: install it with the CUDA toolkit "
                     "or as the package cuda-nvrtc or nvidia-cuda-nvrtc, and name it in BERTH_NVRTC; or bring kernels "
                     "that were compiled elsewhere (berth kernels, BERTH_KERNEL_PACK)");
}

berth_status berth__nvrtc_open(berth__nvrtc *nvrtc, berth_error *err) {
  if (nvrtc->handle != NULL || cuda_nvrtc_load(nvrtc, nvrtc->path)) return BERTH_OK;
  const char *why = dlerror();
  return berth__fail(err, BERTH_UNSUPPORTED, "'%s' cannot be opened as NVRTC: %s", nvrtc->path,
                     why != NULL ? why : "functions are missing, it is older than 11.2");
}

/* ---- Architectures ---- */

enum {
  NVRTC_MOST_ARCHITECTURES = 256
};

/* How many it knows; 0: it does not say. */
static int nvrtc_list(const berth__nvrtc *nvrtc, int archs[NVRTC_MOST_ARCHITECTURES]) {
  int n = 0;
  if (nvrtc->call.GetNumSupportedArchs(&n) != 0 || n <= 0 || n > NVRTC_MOST_ARCHITECTURES) return 0;
  return nvrtc->call.GetSupportedArchs(archs) == 0 ? n : 0;
}

int berth__nvrtc_architecture(const berth__nvrtc *nvrtc, int capability) {
  int archs[NVRTC_MOST_ARCHITECTURES], best = 0;
  const int n = nvrtc_list(nvrtc, archs);
  for (int i = 0; i < n; i++)
    if (archs[i] <= capability && archs[i] > best) best = archs[i];
  return best;
}

void berth__nvrtc_architectures(const berth__nvrtc *nvrtc, char *out, size_t size) {
  int archs[NVRTC_MOST_ARCHITECTURES];
  const int n = nvrtc_list(nvrtc, archs);
  size_t used = 0;
  out[0] = '\0';
  for (int i = 0; i < n && used < size; i++)
    used += (size_t)snprintf(out + used, size - used, "%s%d", i > 0 ? ", " : "", archs[i]);
}
