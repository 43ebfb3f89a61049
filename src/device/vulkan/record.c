/* Recording: done when a program is bound to a block, and never while it runs. */
#include "device/vulkan/program.h"
#include "loop/render.h"

static const char doing[] = "recording a program";

static void record_dispatch(const berth__program *program, VkCommandBuffer commands, size_t index) {
  const berth__engine *engine = program->engine;
  const berth__dispatch *d = &program->recipe->dispatches[index];
  const berth__kernel *kernel = program->recipe->kernels[d->kernel];
  const VkPipelineLayout layout = program->layouts[berth__vulkan_n_bindings(program, kernel)];
  const uint32_t base = berth__vulkan_window_of(engine, program->block, (berth__span){0, 4}).word;
  uint32_t at[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    at[i] = program->windows ? berth__vulkan_window_of(engine, program->block, d->spans[i]).word
                             : base + (uint32_t)(d->spans[i].at / 4);
  engine->vk.CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program->pipelines[d->kernel]);
  if (program->windows)
    engine->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, layout, 0, 1, &program->sets[index], 0,
                                     NULL);
  engine->vk.CmdPushConstants(commands, layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, kernel->n_buffers * sizeof at[0], at);
  engine->vk.CmdDispatch(commands, berth__grid_columns(kernel->n_groups), berth__grid_rows(kernel->n_groups), 1);
}

static void stamp(const berth__program *program, VkCommandBuffer commands, uint32_t query) {
  program->engine->vk.CmdWriteTimestamp(commands, VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT, program->queries, query);
}

/* Between kernels only what they do matters. */
static void wait_for_kernels(const berth__engine *engine, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT};
  engine->vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0,
                                1, &barrier, 0, NULL, 0, NULL);
}

/* Timed, every dispatch waits for the one before, so that each has its time for itself. */
static void record_dispatches(const berth__program *program, VkCommandBuffer commands, const berth__vulkan_part *part,
                              bool is_timed) {
  const berth__engine *engine = program->engine;
  if (!program->windows)
    engine->vk.CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, program->layouts[1], 0, 1,
                                     &program->sets[0], 0, NULL);
  for (size_t i = part->first; i < part->end; i++) {
    if (i != part->first && (is_timed || program->recipe->dispatches[i].waits)) wait_for_kernels(engine, commands);
    record_dispatch(program, commands, i);
    if (is_timed) stamp(program, commands, (uint32_t)(i - part->first + 1));
  }
}

static berth_status record_part(berth__program *program, const berth__vulkan_part *part, VkCommandBuffer commands,
                                bool is_timed, berth_error *err) {
  berth__engine *engine = program->engine;
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO};
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.BeginCommandBuffer(commands, &info), doing, err));
  engine->counts.recordings++;
  berth__vulkan_barrier(engine, commands);
  if (is_timed) {
    engine->vk.CmdResetQueryPool(commands, program->queries, 0, (uint32_t)(part->end - part->first + 1));
    stamp(program, commands, 0);
  }
  record_dispatches(program, commands, part, is_timed);
  berth__vulkan_barrier(engine, commands);
  return berth__vulkan_check(engine, engine->vk.EndCommandBuffer(commands), doing, err);
}

berth_status berth__vulkan_record(berth__program *program, berth_error *err) {
  for (size_t i = 0; i < program->n_parts; i++) {
    const berth__vulkan_part *part = &program->parts[i];
    if (part->is_on_host) continue;
    BERTH__TRY(record_part(program, part, part->commands, false, err));
    if (program->queries != VK_NULL_HANDLE) BERTH__TRY(record_part(program, part, part->timed, true, err));
  }
  return BERTH_OK;
}
