/* WebGPU as a driver of the GPU runtime: pipelines for the kernels of a recipe, and the bindings of each dispatch.
 * WebGPU's command buffers can be used only once, so a run records its dispatches again, from the data here. */
#ifndef BERTH_DEVICE_WEBGPU_CODE_H
#define BERTH_DEVICE_WEBGPU_CODE_H

#include "device/webgpu/webgpu.h"

/* The ranges of the arena that a dispatch binds. WebGPU refuses bindings that share bytes, so buffers with overlapping
 * ranges share one. */
typedef struct berth__webgpu_windows {
  uint32_t count;
  berth__span spans[BERTH__KERNEL_BUFFERS];
  uint8_t of[BERTH__KERNEL_BUFFERS]; /* indexed by buffer */
} berth__webgpu_windows;

/* A kernel, for one way in which its buffers share bindings. */
typedef struct berth__webgpu_pipeline {
  uint32_t kernel, n_windows;
  uint8_t window_of[BERTH__KERNEL_BUFFERS];
  berth__wgpu handle;
} berth__webgpu_pipeline;

struct berth__gpu_code {
  berth__engine *engine;
  const berth__recipe *recipe;

  /* bindings.c: by the number of bound ranges of the arena. Without windows that is one, which contains all of it. */
  bool windows;
  berth__wgpu group_layouts[BERTH__KERNEL_BUFFERS + 1];
  berth__wgpu layouts[BERTH__KERNEL_BUFFERS + 1];
  size_t n_groups;    /* one; with windows, or without dynamic offsets, one per dispatch */
  berth__wgpu begins; /* the beginnings of each dispatch's buffers in their bindings, `stride` bytes per dispatch */
  uint32_t stride;

  /* pipeline.c */
  berth__webgpu_pipeline *pipelines;
  size_t n_pipelines;
  uint32_t *pipeline_of; /* one per dispatch */
};

struct berth__gpu_binding {
  const berth__gpu_code *code;
  berth__engine *engine;
  berth__block *block;
  berth__wgpu *groups;
  uint64_t timed_bytes; /* bytes of the last submission's timestamps; 0: not timed */
  uint64_t ticks[2 * BERTH__WEBGPU_TIMED];
};

#define BERTH__WEBGPU_BEGINS (BERTH__KERNEL_BUFFERS * 4u) /* bytes of `begins` that a kernel may read */

/* ---- bindings.c ---- */

berth_status berth__webgpu_windows_of(const berth__gpu_code *code, const berth__dispatch *dispatch,
                                      berth__webgpu_windows *out, berth_error *err);
berth_status berth__webgpu_make_layouts(berth__gpu_code *code, berth_error *err);
void berth__webgpu_free_layouts(berth__gpu_code *code);
berth_status berth__webgpu_bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts,
                                size_t n_parts, berth__gpu_binding **out, berth_error *err);
void berth__webgpu_unbind(berth__gpu_binding *binding);

/* ---- pipeline.c ---- */

berth_status berth__webgpu_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                       berth_error *err);
berth_status berth__webgpu_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err);
void berth__webgpu_code_destroy(berth__gpu_code *code);

#endif
