/* How kernels access the arena: as one binding if the device allows that size, otherwise through a window for each
 * buffer of each dispatch. */
#include "device/vulkan/code.h"

static const char doing[] = "making a program";

/* Alignment of a binding's offset, and so the extra bytes it may have to include. */
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

static berth__span vulkan_bindings_whole_arena(const berth_plan *plan) {
  return (berth__span){.at = 0, .size = (plan->info.arena_size + 3) & ~(uint64_t)3};
}

/* ---- Layouts ---- */

static berth_status vulkan_bindings_make_layout(berth__gpu_code *code, uint32_t n, berth_error *err) {
  berth__engine *engine = code->engine;
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
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, DescriptorSetLayout, &set, &code->set_layouts[n]),
                                 doing, err));
  const VkPipelineLayoutCreateInfo layout = {.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                             .setLayoutCount = 1,
                                             .pSetLayouts = &code->set_layouts[n],
                                             .pushConstantRangeCount = 1,
                                             .pPushConstantRanges = &offsets};
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, PipelineLayout, &layout, &code->layouts[n]), doing, err);
}

static berth_status make_all_layouts(berth__gpu_code *code, berth_error *err) {
  const VkPhysicalDeviceLimits *limits = &code->engine->properties.limits;
  for (size_t i = 0; i < code->recipe->n_kernels; i++) {
    const uint32_t n = berth__vulkan_n_bindings(code, code->recipe->kernels[i]);
    if (n > limits->maxPerStageDescriptorStorageBuffers)
      return berth__fail(err, BERTH_UNSUPPORTED, "the kernel '%s' needs %u buffers, and %s binds %u at once",
                         code->recipe->kernels[i]->name, n, code->engine->properties.deviceName,
                         limits->maxPerStageDescriptorStorageBuffers);
    if (code->layouts[n] == VK_NULL_HANDLE) BERTH__TRY(vulkan_bindings_make_layout(code, n, err));
  }
  return BERTH_OK;
}

static berth_status vulkan_bindings_check_windows(const berth__gpu_code *code, berth_error *err) {
  const berth__engine *engine = code->engine;
  const berth__recipe *recipe = code->recipe;
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

berth_status berth__vulkan_make_layouts(berth__gpu_code *code, berth_error *err) {
  code->windows =
      vulkan_bindings_whole_arena(code->recipe->plan).size + offset_align(code->engine) > code->engine->max_binding;
  if (code->windows) BERTH__TRY(vulkan_bindings_check_windows(code, err));
  return make_all_layouts(code, err);
}

void berth__vulkan_free_layouts(berth__gpu_code *code) {
  for (uint32_t n = 0; n <= BERTH__KERNEL_BUFFERS; n++) {
    BERTH__VK_DESTROY(code->engine, PipelineLayout, code->layouts[n]);
    BERTH__VK_DESTROY(code->engine, DescriptorSetLayout, code->set_layouts[n]);
  }
}

/* ---- Descriptor sets ---- */

static berth_status make_pool(berth__gpu_binding *binding, size_t n_sets, size_t n_buffers, berth_error *err) {
  const VkDescriptorPoolSize size = {.type = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, .descriptorCount = (uint32_t)n_buffers};
  const VkDescriptorPoolCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
                                           .maxSets = (uint32_t)n_sets,
                                           .poolSizeCount = 1,
                                           .pPoolSizes = &size};
  binding->sets = berth__alloc_array_zero(binding->engine->core.ctx, n_sets, sizeof *binding->sets);
  if (binding->sets == NULL) return berth__fail_nomem(err, "a program");
  return berth__vulkan_check(
      binding->engine, BERTH__VK_CREATE(binding->engine, DescriptorPool, &info, &binding->descriptors), doing, err);
}

/* A set of n consecutive bindings, for these ranges of the block. */
static berth_status make_set(berth__gpu_binding *binding, const berth__span *spans, uint32_t n, VkDescriptorSet *out,
                             berth_error *err) {
  berth__engine *engine = binding->engine;
  VkDescriptorBufferInfo buffers[BERTH__KERNEL_BUFFERS];
  const VkDescriptorSetAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
                                            .descriptorPool = binding->descriptors,
                                            .descriptorSetCount = 1,
                                            .pSetLayouts = &binding->code->set_layouts[n]};
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.AllocateDescriptorSets(engine->device, &info, out), doing, err));
  if (n == 0) return BERTH_OK;
  for (uint32_t i = 0; i < n; i++) {
    const berth__vulkan_window window = berth__vulkan_window_of(engine, binding->block, spans[i]);
    buffers[i] =
        (VkDescriptorBufferInfo){.buffer = binding->block->buffer, .offset = window.offset, .range = window.range};
  }
  const VkWriteDescriptorSet write = {.sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
                                      .dstSet = *out,
                                      .descriptorCount = n,
                                      .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
                                      .pBufferInfo = buffers};
  engine->vk.UpdateDescriptorSets(engine->device, 1, &write, 0, NULL);
  engine->counts.descriptors++;
  return BERTH_OK;
}

berth_status berth__vulkan_make_sets(berth__gpu_binding *binding, berth_error *err) {
  const berth__recipe *recipe = binding->code->recipe;
  const berth__span whole = vulkan_bindings_whole_arena(recipe->plan);
  if (recipe->n_kernels == 0) return BERTH_OK;
  if (!binding->code->windows) {
    BERTH__TRY(make_pool(binding, 1, 1, err));
    return make_set(binding, &whole, 1, &binding->sets[0], err);
  }
  BERTH__TRY(make_pool(binding, recipe->n_dispatches, recipe->n_spans, err));
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    const berth__dispatch *d = &recipe->dispatches[i];
    if (d->kernel == BERTH__ON_HOST) continue;
    BERTH__TRY(make_set(binding, d->spans, recipe->kernels[d->kernel]->n_buffers, &binding->sets[i], err));
  }
  return BERTH_OK;
}
