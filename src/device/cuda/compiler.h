/* From CUDA C to what the driver loads: NVRTC, behind the cache on disk. */
#ifndef BERTH_DEVICE_CUDA_COMPILER_H
#define BERTH_DEVICE_CUDA_COMPILER_H

#include "device/cuda/nvrtc.h"
#include "device/gpu/cache.h"

typedef struct berth__cuda_compiler {
  berth_context *ctx;
  int capability; /* of the device: 90 for 9.0 */
  berth__nvrtc nvrtc;
  berth_status found; /* whether NVRTC is there; the error says why not */
  berth_error why;
  int architecture; /* what is compiled for; 0: NVRTC is not open */
  berth__kernel_cache cache;
} berth__cuda_compiler;

void berth__cuda_compiler_start(berth__cuda_compiler *compiler, berth_context *ctx, int capability);
void berth__cuda_compiler_end(berth__cuda_compiler *compiler);

typedef struct berth__cuda_source {
  const char *name, *text; /* the name is for messages alone */
  size_t size;
} berth__cuda_source;

/* What was compiled before; false: nothing. Free out->data with berth__free. */
bool berth__cuda_compiler_cached(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                 berth__kernel_code *out);
/* Before the first that was not: fails where there is no NVRTC. */
berth_status berth__cuda_compiler_open(berth__cuda_compiler *compiler, berth_error *err);
/* Compiles, and keeps what comes out. On any thread. */
berth_status berth__cuda_compile(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                 berth__kernel_code *out, berth_error *err);

#endif
