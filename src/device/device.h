/* The interface of every device: a table of functions. Invalid sizes and ranges are rejected above it (arena.c), so a
 * device sees only ranges inside its block. */
#ifndef BERTH_DEVICE_DEVICE_H
#define BERTH_DEVICE_DEVICE_H

#include "base/file_bytes.h"
#include "base/thread.h"
#include "plan/plan.h"

/* Each device defines these three types. */
typedef struct berth__engine berth__engine;               /* an opened device: its threads, queues, handles */
typedef struct berth__block berth__block;                 /* the one block of memory */
typedef struct berth__program berth__program;             /* the flat list of kernel calls for one plan */
struct berth__recipe;                                     /* device/gpu/recipe.h */
typedef struct berth__kernel_packer berth__kernel_packer; /* device/gpu/pack.h */

/* Called after every step. */
typedef struct berth__observer {
  berth_step_fn call; /* NULL: no observer */
  void *user;
  const berth_cancel *cancel; /* stops the run between steps; NULL: not cancellable */
  uint32_t *begun;            /* of a run: set to one more than the last step that may have begun; NULL: not needed */
  bool is_apart;              /* no step begins before this was called for the previous one */
} berth__observer;

typedef struct berth__device {
  const char *name;
  bool runs_steps_apart; /* if an observer asks for it; otherwise runs are recorded whole */
  /* How many of these devices this machine has, each listed; at least 1. NULL: one, without a name of its own. */
  uint32_t (*count)(const berth_context *ctx);
  /* Describes device `index`. The name is set to that of the table before. */
  void (*describe)(const berth_context *ctx, uint32_t index, berth_device_info *out);
  berth__limits (*limits)(void); /* without a profile */
  bool multiplies;               /* its kernels may have tiles, for matrix units */
  bool has_dot4;                 /* as the profiles say; otherwise, an opened one reports it */
  bool is_cooperative;           /* only for those of profiles with cooperative matrices */
  bool exchanges;                /* lanes exchange values on all of them; otherwise, an opened one reports it */
  /* The profile of an opened device; NULL: not a GPU. */
  void (*profile)(const berth__engine *engine, berth__profile *out);

  /* which: the part after the colon in "name:which"; NULL: none, and always NULL without a count. */
  berth_status (*open)(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                       berth_error *err);
  /* Gives an engine that was opened with one thread a pool, which it then owns; before the first program. Cannot
   * fail. */
  void (*use_threads)(berth__engine *engine, berth__pool *pool);
  void (*close)(berth__engine *engine); /* NULL is fine; after all blocks and programs */

  /* A zeroed block of `size` bytes, its start aligned to `align`. host: the caller's own memory; NULL: the device's. */
  berth_status (*block_create)(berth__engine *engine, uint64_t size, uint64_t align, void *host, berth__block **out,
                               berth_error *err);
  void (*block_destroy)(berth__block *block); /* NULL is fine */
  /* Optional: grows a block in place. Nothing moves, programs stay bound, and the new bytes are zero. If it fails, the
   * block is unchanged, and a new one may succeed. */
  berth_status (*block_grow)(berth__block *block, uint64_t size, berth_error *err);
  berth_status (*write)(berth__block *block, uint64_t offset, const void *src, uint64_t size, berth_error *err);
  /* Optional: writes weights with all threads of the engine, which must be idle otherwise. src is outside the block. */
  berth_status (*place)(berth__engine *engine, berth__block *block, uint64_t offset, const void *src, uint64_t size,
                        berth_error *err);
  /* Optional: maps bytes of a file into the block, without a copy. They are writable (copy on write), and the file is
   * not changed. Only whole pages can be mapped: *count bytes, 0 if none, from offset + *begin on; the other bytes are
   * unchanged. If it fails, the contents of these bytes are lost. */
  berth_status (*map)(berth__block *block, uint64_t offset, const berth__file_bytes *file, uint64_t *begin,
                      uint64_t *count, berth_error *err);
  berth_status (*read)(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err);
  /* The ranges may overlap if the blocks are the same. */
  berth_status (*copy)(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                       uint64_t size, berth_error *err);
  berth_status (*fill)(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err);
  void *(*host)(berth__block *block); /* optional: the bytes, if the host can access them */
  /* Optional, for memory that the host cannot access but other libraries may: the address of the block, returned once
   * no work is running on it; and copies from and to such memory, of the same kind and index, which complete before
   * they return. */
  berth_status (*memory)(const berth__block *block, berth_memory *out, berth_error *err);
  berth_status (*write_memory)(berth__block *block, uint64_t offset, uint64_t src, uint64_t size, berth_error *err);
  berth_status (*read_memory)(const berth__block *block, uint64_t offset, uint64_t dst, uint64_t size,
                              berth_error *err);

  /* The plan outlives the program. checked: poison dead bytes, and verify after every step. */
  berth_status (*program_create)(berth__engine *engine, const berth_plan *plan, bool checked, berth__program **out,
                                 berth_error *err);
  void (*program_destroy)(berth__program *program); /* NULL is fine */
  /* Binds a program to a block, and to the memory of values outside the arena (one pointer per value, NULL if it is
   * inside; the list stays the caller's and is read by runs). Called before the first run and whenever either changes.
   *
   * All or nothing: if it fails, the program stays bound to its previous block and runs there as before, as long as
   * that block exists. So a caller that moves to a new block creates it, binds every program to it, and only then
   * destroys the old one. If one of the binds fails, it binds the previous programs back, which cannot fail: a device
   * keeps what a program needs for the previous block until the next bind, or until either block is destroyed. */
  berth_status (*program_bind)(berth__program *program, berth__block *block, const void *const *outside,
                               berth_error *err);
  /* Runs the steps of the plan's prelude; before the first run, and whenever a weight has changed. NULL: it has
   * none. */
  berth_status (*prepare)(berth__program *program, const berth__observer *observer, berth_error *err);
  /* Optional: the actual shapes of the last run, one per value; NULL: every shape is as planned. A device without this
   * function runs no plan with extents that are bounds. */
  berth__shape *(*shapes)(berth__program *program);
  berth_clock (*clock)(const berth__engine *engine); /* optional: the clock of observers' times; NULL: the host's */
  /* A run, that is, the steps after the prelude, in two halves; neither allocates. submit starts what can be started
   * without waiting (on the CPU: nothing) and returns; wait returns when the run has ended, and does the host's part of
   * it: host steps, submissions after them, calls to the observer, which submit has copied. After a failed submit there
   * is nothing to wait for. Between the two, nothing else is called for the program, its block, or another program of
   * the same engine; wait is not called without submit. */
  berth_status (*submit)(berth__program *program, const berth__observer *observer, berth_error *err);
  berth_status (*wait)(berth__program *program, berth_error *err);
  /* Optional: compiles the kernels of a recipe for targets in the device's own notation; NULL: for the present
   * device. */
  berth_status (*pack_kernels)(const struct berth__recipe *recipe, const char *targets, berth__kernel_packer *out,
                               berth_error *err);
} berth__device;

/* A whole run. */
static inline berth_status berth__device_run(const berth__device *device, berth__program *program,
                                             const berth__observer *observer, berth_error *err) {
  const berth_status status = device->submit(program, observer, err);
  return status == BERTH_OK ? device->wait(program, err) : status;
}

extern const berth__device berth__cpu_device, berth__interp_device;
#ifdef BERTH__HAS_VULKAN
extern const berth__device berth__vulkan_device;
#endif
extern const berth__device berth__webgpu_device; /* if BERTH__HAS_WEBGPU */
extern const berth__device berth__cuda_device;   /* if BERTH__HAS_CUDA */

/* Devices of this build (registry.c). name NULL: "cpu"; "vulkan:1" is one of several. Fails with UNSUPPORTED if there
 * is none. */
berth_status berth__device_find(const char *name, const berth__device **out, berth_error *err);
/* The device that runs a plan with these flags: uniform elements are for GPUs, whose kernels are interpreted on the
 * CPU. */
static inline const berth__device *berth__device_for(const berth__device *device, uint32_t plan_flags) {
  return device == &berth__cpu_device && (plan_flags & BERTH_PLAN_F32_UNIFORM) ? &berth__interp_device : device;
}
/* plan_create.c: the profile to plan with: the named one, or the engine's, or (engine NULL) a generic one. Naming one
 * is an error if the device is not a GPU. */
berth_status berth__device_profile(const berth__device *device, const berth__engine *engine, const char *name,
                                   berth__profile *out, berth_error *err);
/* plan_create.c: a plan for a given device and profile; desc is complete. */
berth_status berth__plan_create_on(const berth_graph *graph, const berth_plan_desc *desc, const berth__device *device,
                                   const berth__profile *profile, berth_plan **out, berth_error *err);
const char *berth__device_which(const char *name); /* "1" of "vulkan:1"; NULL: no such part */

#endif
