/* What the driver of a GPU implements. Programs, submissions, binding, host steps, checked mode, observers and running
 * are written once (program.c) over this table; a device adds its memory (device.h) and its dialect (kernel/dialect.h).
 *
 * A driver's berth__engine begins with a berth__gpu_engine. Its block_destroy calls berth__gpu_forget_block. */
#ifndef BERTH_DEVICE_GPU_DRIVER_H
#define BERTH_DEVICE_GPU_DRIVER_H

#include "base/thread.h"
#include "device/device.h"
#include "device/gpu/recipe.h"

/* Dispatches that are submitted together. */
typedef struct berth__gpu_part {
  size_t first, end; /* of the recipe's dispatches */
  size_t index;      /* among the program's parts */
  bool is_on_host;   /* one step, which the CPU runs: no driver sees such a part */
} berth__gpu_part;

typedef struct berth__gpu_code berth__gpu_code;       /* each driver's own: the pipelines of a recipe */
typedef struct berth__gpu_binding berth__gpu_binding; /* each driver's own: what runs them on one block */

typedef struct berth__gpu_driver {
  const berth__device *device; /* for its name and its memory: write, read, host */
  bool is_host;                /* kernels are this process' own code: what the checked mode poisons stays poisoned */
  berth_status (*alive)(const berth__engine *engine, berth_error *err);

  /* What all pipelines of a recipe share, and room for them; then the pipeline of one dispatch, where it is not there
   * already. The recipe outlives the code. */
  berth_status (*code_create)(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                              berth_error *err);
  berth_status (*make_pipeline)(berth__gpu_code *code, size_t dispatch, berth_error *err);
  void (*code_destroy)(berth__gpu_code *code); /* never NULL; after its bindings */

  /* All that a run on this block needs, so that a run allocates nothing: descriptors, recordings of every part. It
   * changes no binding that is there. The parts outlive it. */
  berth_status (*bind)(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts, size_t n_parts,
                       berth__gpu_binding **out, berth_error *err);
  void (*unbind)(berth__gpu_binding *binding); /* never NULL */

  /* Starts a part after all that was written before, and returns; wait returns when it is over. One is under way at a
   * time. timed: whole steps of a part, at most timed_steps of them, with the device's clock around each. */
  berth_status (*submit)(berth__gpu_binding *binding, const berth__gpu_part *part, bool timed, berth_error *err);
  berth_status (*wait)(berth__gpu_binding *binding, berth_error *err);
  /* How many steps a submission can time; 0: the device has no clock that can be read, and any part of whole steps can
   * be submitted by itself, for the host's clock. SIZE_MAX: as many as there are. */
  size_t (*timed_steps)(const berth__engine *engine);
  /* The times of the timed part that ended last, in ms, one per step. */
  berth_status (*times)(berth__gpu_binding *binding, const berth__gpu_part *part, double *ms, berth_error *err);
} berth__gpu_driver;

/* What the runtime knows of an engine. */
typedef struct berth__gpu_engine {
  berth_context *ctx;
  const berth__gpu_driver *driver;
  berth__profile profile; /* its own */
  /* What a kernel may have at most, whatever the profile says. */
  uint32_t max_threads, max_shared, max_groups; /* of a workgroup, its shared bytes, workgroups along an axis */
  uint32_t n_threads;                           /* for steps on the host */
  berth__pool *pool;                            /* of those; NULL: none so far, or one thread */
  berth__program *programs;                     /* all of them */
} berth__gpu_engine;

/* engine.c */
void berth__gpu_start(berth__engine *engine, berth_context *ctx, const berth__gpu_driver *driver, uint32_t n_threads);
void berth__gpu_end(berth__engine *engine);
static inline berth__gpu_engine *berth__gpu_core(berth__engine *engine) { return (berth__gpu_engine *)(void *)engine; }
void berth__gpu_use_threads(berth__engine *engine, berth__pool *pool);     /* for the device's table */
void berth__gpu_profile(const berth__engine *engine, berth__profile *out); /* for the device's table */
/* Whether a kernel fits: its threads, shared bytes and workgroups. */
berth_status berth__gpu_check_kernel(berth__engine *engine, const berth__kernel *kernel, berth_error *err);

/* program.c: programs of every GPU, for the device's table. */
berth_status berth__gpu_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                       berth__program **out, berth_error *err);
void berth__gpu_program_destroy(berth__program *program);
berth_status berth__gpu_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                     berth_error *err);
void berth__gpu_forget_block(berth__engine *engine, const berth__block *block); /* before it goes */

/* run.c */
berth_status berth__gpu_prepare(berth__program *program, const berth__observer *observer, berth_error *err);
berth_status berth__gpu_submit(berth__program *program, const berth__observer *observer, berth_error *err);
berth_status berth__gpu_wait(berth__program *program, berth_error *err);
berth_clock berth__gpu_clock(const berth__engine *engine);

/* The rows of a GPU's table that are the same for all of them. */
#define BERTH__GPU_ROWS                                                                   \
  .profile = berth__gpu_profile, .program_create = berth__gpu_program_create,             \
  .program_destroy = berth__gpu_program_destroy, .program_bind = berth__gpu_program_bind, \
  .prepare = berth__gpu_prepare, .submit = berth__gpu_submit, .wait = berth__gpu_wait

#endif
