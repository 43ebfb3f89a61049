/* The settings of a context: its descriptor, overridden by the environment. Read once, when the context is made; no
 * other part of the library reads the environment. */
#ifndef BERTH_BASE_OPTIONS_H
#define BERTH_BASE_OPTIONS_H

#include <stdbool.h>

#include "base/status.h"

/* Texts are NULL if not set. A number of 0 is the device's default. */
typedef struct berth__options {
  char *cpu_isa, *cpu_backend;
  char *cache_dir; /* resolved: the folder itself; NULL: nothing is cached */
  char *shaderc;
  char *vulkan_memory, *vulkan_validation;
  char *webgpu_library, *webgpu_offsets;
  char *cuda_library, *nvrtc, *kernel_pack;
  char *cuda_path;                                     /* the CUDA installation, from the environment */
  double vulkan_timeout, webgpu_timeout, cuda_timeout; /* seconds */
  uint64_t vulkan_max_binding, webgpu_max_binding;
  bool loops_unshared; /* `interp` runs kernels without shared memory */
  bool no_reuse;       /* BERTH_PLAN_NO_REUSE in every plan */
  bool catches_sigbus;
  uint64_t memory_limit; /* bytes; 0: the machine's memory */
  uint64_t hash_seed;    /* 0: random */
} berth__options;

/* given: NULL or the caller's struct. On failure *out may be partly filled and must still be freed. */
berth_status berth__options_read(berth_context *ctx, const berth_options *given, berth__options *out, berth_error *err);
void berth__options_free(berth_context *ctx, berth__options *options);

#endif
