/* A program: pipelines for the kernels of a plan, and what each dispatch binds. Command buffers are used once in
 * WebGPU: a run records its dispatches anew, out of what is here. */
#ifndef BERTH_DEVICE_WEBGPU_PROGRAM_H
#define BERTH_DEVICE_WEBGPU_PROGRAM_H

#include "device/gpu/host_step.h"
#include "device/watch.h"
#include "device/webgpu/webgpu.h"

/* The ranges of the arena that a dispatch binds. WebGPU refuses bindings that share bytes, so buffers whose ranges meet
 * are in one. */
typedef struct berth__webgpu_windows {
  uint32_t count;
  berth__span spans[BERTH__KERNEL_BUFFERS];
  uint8_t of[BERTH__KERNEL_BUFFERS]; /* by buffer */
} berth__webgpu_windows;

/* A kernel, for one way in which its buffers share bindings. */
typedef struct berth__webgpu_pipeline {
  uint32_t kernel, n_windows;
  uint8_t window_of[BERTH__KERNEL_BUFFERS];
  berth__wgpu handle;
} berth__webgpu_pipeline;

struct berth__program {
  berth_context *ctx;
  berth__engine *engine;
  berth__program *next; /* of the engine's */
  const berth_plan *plan;
  berth__recipe *recipe;
  berth__host_steps *host;

  /* bindings.c: by how many ranges of the arena are bound. Without windows that is one, which holds all of it. */
  bool windows;
  berth__wgpu group_layouts[BERTH__KERNEL_BUFFERS + 1];
  berth__wgpu layouts[BERTH__KERNEL_BUFFERS + 1];
  berth__wgpu *groups; /* one; with windows, or without dynamic offsets, one a dispatch */
  size_t n_groups;
  berth__wgpu begins; /* where the buffers of each dispatch begin in their bindings, `stride` bytes a dispatch */
  uint32_t stride;

  /* pipeline.c */
  berth__webgpu_pipeline *pipelines;
  size_t n_pipelines;
  uint32_t *pipeline_of; /* one a dispatch */

  berth__observer observer; /* of the run that was submitted */
  berth__block *block;      /* what it is bound to */
  uint64_t bound;           /* its number; 0: none */
  berth__watch *watch;      /* checked mode */
  unsigned char *shadow;    /* what the host sees of the arena then */
};

#define BERTH__WEBGPU_BEGINS (BERTH__KERNEL_BUFFERS * 4u) /* bytes that a kernel may read of `begins` */

/* ---- bindings.c ---- */

berth_status berth__webgpu_windows_of(const berth__program *program, const berth__dispatch *dispatch,
                                      berth__webgpu_windows *out, berth_error *err);
berth_status berth__webgpu_make_bindings(berth__program *program, berth_error *err);
berth_status berth__webgpu_bind_groups(berth__program *program, berth_error *err); /* to program->block */
void berth__webgpu_free_bindings(berth__program *program);

/* ---- pipeline.c ---- */

berth_status berth__webgpu_make_pipelines(berth__program *program, berth_error *err);
void berth__webgpu_free_pipelines(berth__program *program);

#endif
