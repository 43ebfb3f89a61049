/* NVRTC, NVIDIA's CUDA C compiler, opened at run time: it comes with the toolkit, and in separate packages. */
#ifndef BERTH_DEVICE_CUDA_NVRTC_H
#define BERTH_DEVICE_CUDA_NVRTC_H

#include <stdbool.h>

#include "base/context.h"

#define BERTH__NVRTC_PATH 4096u
#define BERTH__NVRTC_VERSION 96u
#define BERTH__NVRTC_INVALID_OPTION 5

typedef struct berth__nvrtc_program *berth__nvrtc_program;

typedef struct berth__nvrtc_calls {
  const char *(*GetErrorString)(int result);
  int (*GetNumSupportedArchs)(int *count);
  int (*GetSupportedArchs)(int *archs);
  int (*CreateProgram)(berth__nvrtc_program *program, const char *source, const char *name, int n_headers,
                       const char *const *headers, const char *const *names);
  int (*CompileProgram)(berth__nvrtc_program program, int n_options, const char *const *options);
  int (*GetProgramLogSize)(berth__nvrtc_program program, size_t *size);
  int (*GetProgramLog)(berth__nvrtc_program program, char *log);
  int (*GetCUBINSize)(berth__nvrtc_program program, size_t *size);
  int (*GetCUBIN)(berth__nvrtc_program program, char *code);
  int (*GetPTXSize)(berth__nvrtc_program program, size_t *size);
  int (*GetPTX)(berth__nvrtc_program program, char *code);
  int (*DestroyProgram)(berth__nvrtc_program *program);
} berth__nvrtc_calls;

typedef struct berth__nvrtc {
  char path[BERTH__NVRTC_PATH];       /* of the file; empty: not found yet */
  char version[BERTH__NVRTC_VERSION]; /* part of the cache key */
  void *handle;                       /* NULL: not opened yet */
  berth__nvrtc_calls call;
} berth__nvrtc;

/* Finds the file, without opening it if possible, because it is large. BERTH_NVRTC names a file; otherwise the folders
 * of CUDA_PATH and CUDA_HOME, the usual folders, and the system's search path for libraries. UNSUPPORTED: not found,
 * and the message says what to do. */
berth_status berth__nvrtc_find(const berth__options *options, berth__nvrtc *out, berth_error *err);
berth_status berth__nvrtc_open(berth__nvrtc *nvrtc, berth_error *err);
/* The architecture to compile for: the device's own, or the last earlier one that NVRTC knows (90 for sm_90). 0:
 * none. */
int berth__nvrtc_architecture(const berth__nvrtc *nvrtc, int capability);
/* All that it knows, for a message: "75, 80, 90". */
void berth__nvrtc_architectures(const berth__nvrtc *nvrtc, char *out, size_t size);

#endif
