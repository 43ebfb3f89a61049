#include "device.h"

#include <time.h>

#define ROUND_SECONDS 0.05 /* target duration of a submission */
#define MOST_REPEATS 1000u

static const char doing[] = "measuring";

static berth_status make_layout(gpu *g, berth_error *err) {
  berth__engine *e = g->engine;
  const VkDescriptorSetLayoutBinding binding = {.descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                .descriptorCount = 1,
                                                .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = 1, .pBindings = &binding};
  const VkPushConstantRange offsets = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .size = 96};
  BERTH__TRY(berth__vulkan_check(e, BERTH__VK_CREATE(e, DescriptorSetLayout, &set, &g->set_layout), doing, err));
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &g->set_layout,
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &offsets};
  return berth__vulkan_check(e, BERTH__VK_CREATE(e, PipelineLayout, &layout, &g->layout), doing, err);
}

static berth_status make_set(gpu *g, berth_error *err) {
  berth__engine *e = g->engine;
  const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = 1};
  const VkDescriptorPoolCreateInfo pool = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO, .maxSets = 1, .poolSizeCount = 1, .pPoolSizes = &size};
  BERTH__TRY(berth__vulkan_check(e, BERTH__VK_CREATE(e, DescriptorPool, &pool, &g->descriptors), doing, err));
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = g->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &g->set_layout};
  BERTH__TRY(berth__vulkan_check(e, e->vk.AllocateDescriptorSets(e->device, &info, &g->set), doing, err));
  const VkDescriptorBufferInfo buffer = {.buffer = g->block->buffer, .range = VK_WHOLE_SIZE};
  const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                      .dstSet = g->set,
                                      .descriptorCount = 1,
                                      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                      .pBufferInfo = &buffer};
  e->vk.UpdateDescriptorSets(e->device, 1, &write, 0, NULL);
  return BERTH_OK;
}

berth_status gpu_open(gpu *g, uint64_t bytes, berth_error *err) {
  BERTH__TRY(berth__vulkan_open(g->ctx, NULL, 0, &g->engine, err));
  berth__engine *e = g->engine;
  if (e->compiler == NULL) BERTH__TRY(berth__spirv_compiler_create(g->ctx, &e->compiler, err));
  BERTH__TRY(berth__vulkan_block_create(e, bytes, 256, NULL, &g->block, err));
  BERTH__TRY(make_layout(g, err));
  BERTH__TRY(make_set(g, err));
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = e->queue_family};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  BERTH__TRY(berth__vulkan_check(e, BERTH__VK_CREATE(e, CommandPool, &pool, &g->commands), doing, err));
  return berth__vulkan_check(e, BERTH__VK_CREATE(e, Fence, &fence, &g->fence), doing, err);
}

void gpu_close(gpu *g) {
  berth__engine *e = g->engine;
  if (e == NULL) return;
  BERTH__VK_DESTROY(e, Fence, g->fence);
  BERTH__VK_DESTROY(e, CommandPool, g->commands);
  BERTH__VK_DESTROY(e, DescriptorPool, g->descriptors);
  BERTH__VK_DESTROY(e, PipelineLayout, g->layout);
  BERTH__VK_DESTROY(e, DescriptorSetLayout, g->set_layout);
  berth__vulkan_block_destroy(g->block);
  berth__vulkan_close(e);
}

static berth_status make_pipeline(gpu *g, gpu_kernel *kernel, const berth__spirv *spirv, berth_error *err) {
  berth__engine *e = g->engine;
  VkShaderModule module = VK_NULL_HANDLE;
  const VkShaderModuleCreateInfo code = {.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                         .codeSize = spirv->n_words * sizeof(uint32_t),
                                         .pCode = spirv->words};
  BERTH__TRY(berth__vulkan_check(e, BERTH__VK_CREATE(e, ShaderModule, &code, &module), doing, err));
  const VkComputePipelineCreateInfo info = {.sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
                                            .stage = {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                                                      .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                                                      .module = module,
                                                      .pName = "main"},
                                            .layout = g->layout};
  const VkResult result = berth__vulkan_counted(
      e, e->vk.CreateComputePipelines(e->device, e->pipelines, 1, &info, &e->host.callbacks, &kernel->pipeline));
  BERTH__VK_DESTROY(e, ShaderModule, module);
  return berth__vulkan_check(e, result, doing, err);
}

static berth_status record(gpu *g, const gpu_kernel *kernel, berth_error *err) {
  berth__engine *e = g->engine;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  BERTH__TRY(berth__vulkan_check(e, e->vk.BeginCommandBuffer(kernel->commands, &info), doing, err));
  e->vk.CmdBindPipeline(kernel->commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernel->pipeline);
  e->vk.CmdBindDescriptorSets(kernel->commands, VK_PIPELINE_BIND_POINT_COMPUTE, g->layout, 0, 1, &g->set, 0, NULL);
  e->vk.CmdPushConstants(kernel->commands, g->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof kernel->at, kernel->at);
  for (uint32_t i = 0; i < kernel->repeats; i++) {
    e->vk.CmdDispatch(kernel->commands, kernel->columns, kernel->rows, 1);
    berth__vulkan_barrier(e, kernel->commands);
  }
  return berth__vulkan_check(e, e->vk.EndCommandBuffer(kernel->commands), doing, err);
}

/* If a CPU plays the GPU, measures the CPU time of its threads, which other processes do not affect. */
static double now(const gpu *g) {
  struct timespec t;
  const bool is_cpu = g->engine->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  clock_gettime(is_cpu ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

berth_status gpu_time(gpu *g, gpu_kernel *kernel, berth_error *err) {
  const double start = now(g);
  BERTH__TRY(berth__vulkan_submit(g->engine, &kernel->commands, 1, g->fence, doing, err));
  BERTH__TRY(berth__vulkan_wait(g->engine, g->fence, doing, err));
  const double each = (now(g) - start) / kernel->repeats;
  if (kernel->best == 0 || each < kernel->best) kernel->best = each;
  return BERTH_OK;
}

berth_status gpu_make(gpu *g, gpu_kernel *kernel, const char *source, berth_error *err) {
  berth__engine *e = g->engine;
  berth__spirv spirv = {0};
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = g->commands,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = 1};
  BERTH__TRY(berth__spirv_compile(e->compiler, kernel->name, source, strlen(source), &spirv, err));
  berth_status status = make_pipeline(g, kernel, &spirv, err);
  berth__free(g->ctx, spirv.words);
  if (status != BERTH_OK) return status;
  BERTH__TRY(berth__vulkan_check(e, e->vk.AllocateCommandBuffers(e->device, &info, &kernel->commands), doing, err));
  kernel->repeats = 1;
  BERTH__TRY(record(g, kernel, err));
  for (int i = 0; i < 2; i++) BERTH__TRY(gpu_time(g, kernel, err)); /* the first one may compile */
  const double repeats = ROUND_SECONDS / kernel->best;
  kernel->repeats = repeats < 1 ? 1 : repeats > MOST_REPEATS ? MOST_REPEATS : (uint32_t)repeats;
  kernel->best = 0;
  return record(g, kernel, err);
}

void gpu_free(gpu *g, gpu_kernel *kernel) { BERTH__VK_DESTROY(g->engine, Pipeline, kernel->pipeline); }
