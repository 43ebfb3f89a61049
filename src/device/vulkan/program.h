/* A program: pipelines for the kernels of a plan, and command buffers that dispatch them. */
#ifndef BERTH_DEVICE_VULKAN_PROGRAM_H
#define BERTH_DEVICE_VULKAN_PROGRAM_H

#include "device/gpu/host_step.h"
#include "device/vulkan/vulkan.h"
#include "device/watch.h"

/* Dispatches that run in one submission; or one step on the host. */
typedef struct berth__vulkan_part {
  size_t first, end; /* of the recipe's dispatches */
  bool is_on_host;
  VkCommandBuffer commands;
  VkCommandBuffer timed; /* the same with a timestamp behind every dispatch; for observers */
} berth__vulkan_part;

struct berth__program {
  berth_context *ctx;
  berth__engine *engine;
  berth__program *next; /* of the engine's */
  const berth_plan *plan;
  berth__recipe *recipe;
  berth__host_steps *host;

  /* bindings.c: by how many buffers a kernel has bound. Without windows that is one, which holds the whole arena. */
  bool windows;
  VkDescriptorSetLayout set_layouts[BERTH__KERNEL_BUFFERS + 1];
  VkPipelineLayout layouts[BERTH__KERNEL_BUFFERS + 1];
  VkDescriptorPool descriptors;
  VkDescriptorSet *sets; /* one; with windows one a dispatch */
  VkPipeline *pipelines; /* one a kernel */

  berth__vulkan_part *parts;
  size_t n_parts, n_prelude; /* the first ones run once */
  VkCommandPool pool;
  VkFence fence;
  VkQueryPool queries; /* NULL: the device has no timestamps */
  uint64_t *ticks;     /* of one part */

  berth__observer observer; /* of the run that was submitted */
  berth__block *block;      /* what it is bound to */
  uint64_t bound;           /* its number; 0: none */
  berth__watch *watch;      /* checked mode: every step is a part */
  unsigned char *shadow;    /* what the host sees of the arena then, where it does not see the arena itself */
};

/* ---- bindings.c ---- */

/* Where a kernel finds a range of the block: in a binding that begins at `offset`, from word `word` of it on. */
typedef struct berth__vulkan_window {
  uint64_t offset, range; /* bytes of the buffer */
  uint32_t word;
} berth__vulkan_window;
berth__vulkan_window berth__vulkan_window_of(const berth__engine *engine, const berth__block *block, berth__span span);

berth_status berth__vulkan_make_bindings(berth__program *program, berth_error *err);
void berth__vulkan_free_bindings(berth__program *program);
void berth__vulkan_write_bindings(berth__program *program); /* to program->block */
static inline uint32_t berth__vulkan_n_bindings(const berth__program *program, const berth__kernel *kernel) {
  return program->windows ? kernel->n_buffers : 1;
}

/* ---- pipeline.c ---- */

berth_status berth__vulkan_make_pipelines(berth__program *program, berth_error *err);
void berth__vulkan_free_pipelines(berth__program *program);

/* ---- record.c ---- */

berth_status berth__vulkan_record(berth__program *program, berth_error *err); /* all parts, for program->block */

#endif
