/* Runs GLSL kernels, berth's and hand-written ones, in the same way on the same device: three matrices in one buffer,
 * at offsets in push constants, with many dispatches per submission. */
#ifndef BERTH_BENCH_GPU_DEVICE_H
#define BERTH_BENCH_GPU_DEVICE_H

#include "device/vulkan/vulkan.h"

typedef struct gpu {
  berth_context *ctx;
  berth__engine *engine;
  berth__block *block;
  VkDescriptorSetLayout set_layout;
  VkPipelineLayout layout;
  VkDescriptorPool descriptors;
  VkDescriptorSet set;
  VkCommandPool commands;
  VkFence fence;
} gpu;

/* A kernel that is ready to run. */
typedef struct gpu_kernel {
  const char *name;
  VkPipeline pipeline;
  VkCommandBuffer commands;
  uint32_t columns, rows; /* of the grid */
  uint32_t at[3];         /* beginnings of its buffers, in words */
  uint32_t repeats;       /* dispatches per submission */
  double best;            /* seconds per dispatch, so far */
} gpu_kernel;

berth_status gpu_open(gpu *g, uint64_t bytes, berth_error *err);
void gpu_close(gpu *g);
berth_status gpu_make(gpu *g, gpu_kernel *kernel, const char *source, berth_error *err);
void gpu_free(gpu *g, gpu_kernel *kernel);
/* Runs it and keeps the best time. */
berth_status gpu_time(gpu *g, gpu_kernel *kernel, berth_error *err);

#endif
