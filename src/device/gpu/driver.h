/* The interface that the driver of a GPU implements. Programs, submissions, binding, host steps, checked mode,
 * observers and running are written once (program.c) on top of this table; a device adds its memory (device.h) and its
 * dialect (kernel/dialect.h).
 *
 * A driver's berth__engine begins with a berth__gpu_engine. Its block_destroy calls berth__gpu_forget_block. */
#ifndef BERTH_DEVICE_GPU_DRIVER_H
#define BERTH_DEVICE_GPU_DRIVER_H

#include "base/thread.h"
#include "device/device.h"
#include "device/gpu/recipe.h"

/* Dispatches that are submitted together. */
typedef struct berth__gpu_part {
  size_t first, end; /* range of the recipe's dispatches */
  size_t index;      /* among the program's parts */
  bool is_on_host;   /* a step that runs on the CPU: drivers never see such a part */
} berth__gpu_part;

typedef struct berth__gpu_code berth__gpu_code;       /* defined by each driver: the pipelines of a recipe */
typedef struct berth__gpu_binding berth__gpu_binding; /* defined by each driver: what runs them on one block */

typedef struct berth__gpu_driver {
  const berth__device *device; /* for its name and its memory: write, read, host */
  bool is_host;                /* kernels run inside this process: what the checked mode poisons stays poisoned */
  berth_status (*alive)(const berth__engine *engine, berth_error *err);

  /* What all pipelines of a recipe share, and memory for them; then the pipeline of one dispatch, unless it exists
   * already. The recipe outlives the code. */
  berth_status (*code_create)(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                              berth_error *err);
  berth_status (*make_pipeline)(berth__gpu_code *code, size_t dispatch, berth_error *err);
  void (*code_destroy)(berth__gpu_code *code); /* never NULL; after its bindings */

  /* Makes everything that a run on this block needs, so that a run allocates nothing: descriptors, recordings of every
   * part. Existing bindings are not changed. The parts outlive the binding. */
  berth_status (*bind)(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts, size_t n_parts,
                       berth__gpu_binding **out, berth_error *err);
  void (*unbind)(berth__gpu_binding *binding); /* never NULL */

  /* Starts a part after all previous writes, and returns; wait returns when the part has ended. Only one part runs at a
   * time. timed: whole steps of a part, at most timed_steps of them, with device timestamps around each. */
  berth_status (*submit)(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed, berth_error *err);
  berth_status (*wait)(berth__gpu_binding *binding, berth_error *err);
  /* How many steps a submission can time; 0: the device has no readable clock, and any part of whole steps can be
   * submitted on its own, to be timed by the host's clock. SIZE_MAX: no limit. */
  size_t (*timed_steps)(const berth__engine *engine);
  /* The times of the last timed part, in ms, one per step. */
  berth_status (*times)(berth__gpu_binding *binding, const berth__gpu_part *part, double *ms, berth_error *err);
} berth__gpu_driver;

/* The runtime's part of an engine. */
typedef struct berth__gpu_engine {
  berth_context *ctx;
  const berth__gpu_driver *driver;
  berth__profile profile; /* the engine's own */
  /* Hard limits of a kernel, regardless of the profile. */
  uint32_t max_threads, max_shared, max_groups; /* per workgroup; its shared bytes; workgroups along an axis */
  uint32_t n_threads;                           /* for host steps */
  berth__pool *pool;                            /* of these threads; NULL: not made yet, or one thread */
  berth__program *programs;                     /* list of all programs */
} berth__gpu_engine;

/* engine.c */
void berth__gpu_start(berth__engine *engine, berth_context *ctx, const berth__gpu_driver *driver, uint32_t n_threads);
void berth__gpu_end(berth__engine *engine);
static inline berth__gpu_engine *berth__gpu_core(berth__engine *engine) { return (berth__gpu_engine *)(void *)engine; }
void berth__gpu_use_threads(berth__engine *engine, berth__pool *pool);     /* for the device's table */
void berth__gpu_profile(const berth__engine *engine, berth__profile *out); /* for the device's table */
/* Whether a kernel fits the limits of threads, shared bytes and workgroups. */
berth_status berth__gpu_check_kernel(berth__engine *engine, const berth__kernel *kernel, berth_error *err);

/* program.c: programs of all GPUs, for the device's table. */
berth_status berth__gpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                       berth__program **out, berth_error *err);
void berth__gpu_program_destroy(berth__program *program);
berth_status berth__gpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                     berth_error *err);
void berth__gpu_forget_block(berth__engine *engine, const berth__block *block); /* call before the block is destroyed */

/* run.c */
berth_status berth__gpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err);
berth_status berth__gpu_submit(berth__program *program, const berth__observer *observer, berth_error *err);
berth_status berth__gpu_wait(berth__program *program, berth_error *err);
berth_clock berth__gpu_clock(const berth__engine *engine);

/* The rows of a GPU's device table that are the same for all GPUs. */
#define BERTH__GPU_ROWS                                                                   \
  .profile = berth__gpu_profile, .program_create = berth__gpu_program_create,             \
  .program_destroy = berth__gpu_program_destroy, .program_bind = berth__gpu_program_bind, \
  .prepare = berth__gpu_prepare, .submit = berth__gpu_submit, .wait = berth__gpu_wait

#endif
