/* From CUDA C to code that the driver can load: NVRTC, with the cache on disk. */
#ifndef BERTH_DEVICE_CUDA_COMPILER_H
#define BERTH_DEVICE_CUDA_COMPILER_H

#include "base/text.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu/cache.h"
#include "device/gpu/pack.h"

typedef struct berth__cuda_compiler {
  berth_context *ctx;
  int capability; /* of the device: 90 for 9.0 */
  berth__nvrtc nvrtc;
  berth_status found; /* whether NVRTC was found; the error says why not */
  berth_error why;
  int architecture; /* to compile for; 0: NVRTC is not open */
  bool is_ptx;      /* the result is PTX, which the driver compiles further */
  berth__kernel_cache cache;
  berth__kernel_pack pack;
} berth__cuda_compiler;

void berth__cuda_compiler_start(berth__cuda_compiler *compiler, berth_context *ctx, int capability);
/* From the first call on, kernels may come from the pack and the cache, and go to the cache. Fails if the named pack is
 * not a pack. */
berth_status berth__cuda_compiler_use_kept(berth__cuda_compiler *compiler, berth_error *err);
void berth__cuda_compiler_end(berth__cuda_compiler *compiler);

typedef struct berth__cuda_source {
  const char *name, *text; /* the name is only for messages */
  size_t size;
  bool is_late; /* it multiplies with warpgroups */
} berth__cuda_source;

/* Looks up compiled code; out->data NULL: none. Free it with berth__free. */
berth_status berth__cuda_compiler_cached(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                         berth__kernel_code *out, berth_error *err);
/* Call before the first kernel that was not found: fails if there is no NVRTC. */
berth_status berth__cuda_compiler_open(berth__cuda_compiler *compiler, berth_error *err);
/* Compiles, and caches the result. May be called on any thread once the compiler is open. */
berth_status berth__cuda_compile(const berth__cuda_compiler *compiler, const berth__cuda_source *source,
                                 berth__kernel_code *out, berth_error *err);

/* Whether the `await` of a kernel is in what was compiled. */
bool berth__cuda_code_awaits(const berth__kernel_code *code);

/* ---- compile.c: all kernels of a recipe ---- */

/* The source of one kernel. Free it with berth__text_free. */
berth_status berth__cuda_render(const berth__recipe *recipe, uint32_t kernel, berth__text *out, berth_error *err);
/* images[i]: kernel i, in the form that the driver loads. Kernels that are not in the pack or the cache are compiled on
 * n_threads threads. The caller frees all images, also after a failure. */
berth_status berth__cuda_compile_all(berth__cuda_compiler *compiler, const berth__recipe *recipe, uint32_t n_threads,
                                     berth__kernel_code *images, berth_error *err);
/* Matrix units exist since 8.0 (80): fails for a kernel that needs them if the target is older. */
berth_status berth__cuda_check_units(const berth__kernel *kernel, int architecture, berth_error *err);
/* For the device's table. */
berth_status berth__cuda_pack_kernels(const berth__recipe *recipe, const char *targets, berth__kernel_packer *out,
                                      berth_error *err);

#endif
