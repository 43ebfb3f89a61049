/* Vulkan as a driver of the GPU runtime: pipelines for the kernels of a recipe, and command buffers that dispatch them,
 * recorded once for a block. */
#ifndef BERTH_DEVICE_VULKAN_CODE_H
#define BERTH_DEVICE_VULKAN_CODE_H

#include "device/vulkan/vulkan.h"

struct berth__gpu_code {
  berth__engine *engine;
  const berth__recipe *recipe;
  /* bindings.c: by the number of buffers a kernel has bound. Without windows that is one, which contains the whole
   * arena. */
  bool windows;
  VkDescriptorSetLayout set_layouts[BERTH__KERNEL_BUFFERS + 1];
  VkPipelineLayout layouts[BERTH__KERNEL_BUFFERS + 1];
  VkPipeline *pipelines; /* one per kernel */
};

#define BERTH__VULKAN_LETTERS 8u
typedef struct berth__vulkan_letter {
  uint64_t at, size; /* range of the block */
  uint64_t offset;   /* destination */
} berth__vulkan_letter;

struct berth__gpu_binding {
  const berth__gpu_code *code;
  berth__engine *engine;
  berth__block *block;
  size_t n_parts;
  VkDescriptorPool descriptors;
  VkDescriptorSet *sets; /* one; with windows, one per dispatch */
  VkCommandPool pool;
  VkCommandBuffer *commands; /* two per part: plain, and with a timestamp after every step, for observers */
  VkFence fence;
  VkQueryPool queries; /* NULL: the device has no timestamps */
  uint64_t *ticks;     /* for one part */
  berth__vulkan_letter mail[BERTH__VULKAN_LETTERS];
  uint32_t n_mail;
  bool brings_mail; /* by the current submission */
};

/* ---- bindings.c ---- */

/* A kernel accesses a range of the block through a binding that begins at `offset`, from its word `word` on. */
typedef struct berth__vulkan_window {
  uint64_t offset, range; /* in bytes of the buffer */
  uint32_t word;
} berth__vulkan_window;
berth__vulkan_window berth__vulkan_window_of(const berth__engine *engine, const berth__block *block, berth__span span);

berth_status berth__vulkan_make_layouts(berth__gpu_code *code, berth_error *err);
void berth__vulkan_free_layouts(berth__gpu_code *code);
berth_status berth__vulkan_make_sets(berth__gpu_binding *binding, berth_error *err); /* written for its block */
static inline uint32_t berth__vulkan_n_bindings(const berth__gpu_code *code, const berth__kernel *kernel) {
  return code->windows ? kernel->n_buffers : 1;
}

/* ---- pipeline.c ---- */

berth_status berth__vulkan_code_create(berth__engine *engine, const berth__recipe *recipe, berth__gpu_code **out,
                                       berth_error *err);
berth_status berth__vulkan_make_pipeline(berth__gpu_code *code, size_t dispatch, berth_error *err);
void berth__vulkan_code_destroy(berth__gpu_code *code);

/* ---- mail.c ---- */

void berth__vulkan_mail_plan(berth__gpu_binding *binding); /* before the last part is recorded */
void berth__vulkan_mail_record(const berth__gpu_binding *binding, VkCommandBuffer commands);

/* ---- record.c ---- */

berth_status berth__vulkan_bind(berth__gpu_code *code, berth__block *block, const berth__gpu_part *parts,
                                size_t n_parts, berth__gpu_binding **out, berth_error *err);
void berth__vulkan_unbind(berth__gpu_binding *binding);

#endif
