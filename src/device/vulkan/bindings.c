/* How kernels reach the arena: in one piece where the device binds so much, otherwise each buffer of each dispatch in a
 * window of its own. */
#include "device/vulkan/program.h"

static const char doing[] = "making a program";

/* Where a binding may begin, and so what it may have to hold besides. */
static uint64_t offset_align(const berth__engine *engine) {
  const uint64_t align = engine->properties.limits.minStorageBufferOffsetAlignment;
  return align > 4 ? align : 4;
}

berth__vulkan_window berth__vulkan_window_of(const berth__engine *engine, const berth__block *block, berth__span span) {
  if (span.size == 0)
    return (berth__vulkan_window){.range = 4}; /* nothing is read there, but something must be bound */
  const uint64_t at = block->base + span.at, offset = at & ~(offset_align(engine) - 1);
  return (berth__vulkan_window){
      .offset = offset, .range = at - offset + span.size, .word = (uint32_t)((at - offset) / 4)};
}

static berth__span whole_arena(const berth_plan *plan) {
  return (berth__span){.at = 0, .size = (plan->info.arena_size + 3) & ~(uint64_t)3};
}

/* ---- Layouts ---- */

static berth_status make_layout(berth__program *program, uint32_t n, berth_error *err) {
  berth__engine *engine = program->engine;
  VkDescriptorSetLayoutBinding bindings[BERTH__KERNEL_BUFFERS];
  for (uint32_t i = 0; i < n; i++)
    bindings[i] = (VkDescriptorSetLayoutBinding){.binding = i,
                                                 .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                                 .descriptorCount = 1,
                                                 .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT};
  const VkDescriptorSetLayoutCreateInfo set = {
      .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO, .bindingCount = n, .pBindings = bindings};
  const VkPushConstantRange offsets = {.stageFlags = VK_SHADER_STAGE_COMPUTE_BIT,
                                       .size = BERTH__KERNEL_BUFFERS * sizeof(uint32_t)};
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, DescriptorSetLayout, &set, &program->set_layouts[n]),
                                 doing, err));
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &program->set_layouts[n],
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &offsets};
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, PipelineLayout, &layout, &program->layouts[n]), doing,
                             err);
}

static berth_status make_layouts(berth__program *program, berth_error *err) {
  const VkPhysicalDeviceLimits *limits = &program->engine->properties.limits;
  for (size_t i = 0; i < program->recipe->n_kernels; i++) {
    const uint32_t n = berth__vulkan_n_bindings(program, program->recipe->kernels[i]);
    if (n > limits->maxPerStageDescriptorStorageBuffers)
      return berth__fail(err, BERTH_UNSUPPORTED, "the kernel '%s' needs %u buffers, and %s binds %u at once",
                         program->recipe->kernels[i]->name, n, program->engine->properties.deviceName,
                         limits->maxPerStageDescriptorStorageBuffers);
    if (program->layouts[n] == VK_NULL_HANDLE) BERTH__TRY(make_layout(program, n, err));
  }
  return BERTH_OK;
}

/* ---- Descriptor sets ---- */

static berth_status make_set(berth__program *program, uint32_t n, VkDescriptorSet *out, berth_error *err) {
  berth__engine *engine = program->engine;
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = program->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &program->set_layouts[n]};
  return berth__vulkan_check(engine, engine->vk.AllocateDescriptorSets(engine->device, &info, out), doing, err);
}

static berth_status make_pool(berth__program *program, size_t n_sets, size_t n_buffers, berth_error *err) {
  const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = (uint32_t)n_buffers};
  const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = (uint32_t)n_sets,
                                           .poolSizeCount = 1,
                                           .pPoolSizes = &size};
  program->sets = berth__alloc_array_zero(program->ctx, n_sets, sizeof *program->sets);
  if (program->sets == NULL) return berth__fail_nomem(err, "a program");
  return berth__vulkan_check(
      program->engine, BERTH__VK_CREATE(program->engine, DescriptorPool, &info, &program->descriptors), doing, err);
}

static berth_status make_sets(berth__program *program, berth_error *err) {
  const berth__recipe *recipe = program->recipe;
  if (!program->windows) {
    BERTH__TRY(make_pool(program, 1, 1, err));
    return make_set(program, 1, &program->sets[0], err);
  }
  BERTH__TRY(make_pool(program, recipe->n_dispatches, recipe->n_spans, err));
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    if (recipe->dispatches[i].kernel == BERTH__ON_HOST) continue;
    const uint32_t n = recipe->kernels[recipe->dispatches[i].kernel]->n_buffers;
    BERTH__TRY(make_set(program, n, &program->sets[i], err));
  }
  return BERTH_OK;
}

static berth_status check_windows(const berth__program *program, berth_error *err) {
  const berth__engine *engine = program->engine;
  const berth__recipe *recipe = program->recipe;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    const berth__dispatch *d = &recipe->dispatches[i];
    const uint32_t n = d->kernel != BERTH__ON_HOST ? recipe->kernels[d->kernel]->n_buffers : 0;
    for (uint32_t k = 0; k < n; k++)
      if (d->spans[k].size + offset_align(engine) > engine->max_binding)
        return berth__fail(err, BERTH_UNSUPPORTED,
                           "the kernel '%s' uses %llu bytes in one piece, and %s binds at most %llu at once",
                           recipe->kernels[d->kernel]->name, (unsigned long long)d->spans[k].size,
                           engine->properties.deviceName, (unsigned long long)engine->max_binding);
  }
  return BERTH_OK;
}

berth_status berth__vulkan_make_bindings(berth__program *program, berth_error *err) {
  if (program->recipe->n_kernels == 0) return BERTH_OK;
  program->windows = whole_arena(program->plan).size + offset_align(program->engine) > program->engine->max_binding;
  if (program->windows) BERTH__TRY(check_windows(program, err));
  BERTH__TRY(make_layouts(program, err));
  return make_sets(program, err);
}

void berth__vulkan_free_bindings(berth__program *program) {
  BERTH__VK_DESTROY(program->engine, DescriptorPool, program->descriptors);
  for (uint32_t n = 0; n <= BERTH__KERNEL_BUFFERS; n++) {
    BERTH__VK_DESTROY(program->engine, PipelineLayout, program->layouts[n]);
    BERTH__VK_DESTROY(program->engine, DescriptorSetLayout, program->set_layouts[n]);
  }
}

static void write_set(berth__program *program, VkDescriptorSet set, const berth__span *spans, uint32_t n) {
  berth__engine *engine = program->engine;
  VkDescriptorBufferInfo buffers[BERTH__KERNEL_BUFFERS];
  if (n == 0) return;
  for (uint32_t i = 0; i < n; i++) {
    const berth__vulkan_window window = berth__vulkan_window_of(engine, program->block, spans[i]);
    buffers[i] =
        (VkDescriptorBufferInfo){.buffer = program->block->buffer, .offset = window.offset, .range = window.range};
  }
  const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                      .dstSet = set,
                                      .descriptorCount = n, /* of bindings that follow each other */
                                      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                      .pBufferInfo = buffers};
  engine->vk.UpdateDescriptorSets(engine->device, 1, &write, 0, NULL);
  engine->counts.descriptors++;
}

void berth__vulkan_write_bindings(berth__program *program) {
  const berth__recipe *recipe = program->recipe;
  const berth__span whole = whole_arena(program->plan);
  if (recipe->n_kernels == 0) return;
  if (!program->windows) {
    write_set(program, program->sets[0], &whole, 1);
    return;
  }
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    if (recipe->dispatches[i].kernel != BERTH__ON_HOST)
      write_set(program, program->sets[i], recipe->dispatches[i].spans,
                recipe->kernels[recipe->dispatches[i].kernel]->n_buffers);
}
