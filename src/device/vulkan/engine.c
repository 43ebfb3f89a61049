/* Opening and closing a device. */
#include <stdlib.h>

#include "device/gpu/profile.h"
#include "device/vulkan/vulkan.h"

#define SECOND ((uint64_t)1000 * 1000 * 1000)

static void vulkan_engine_read_options(berth__engine *engine) {
  const berth__options *options = &engine->core.ctx->options;
  /* A CPU that plays a GPU may take minutes for a large model; a GPU that takes so long hangs. */
  const double usual = engine->properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU ? 600 : 60;
  const double seconds = options->vulkan_timeout > 0 ? options->vulkan_timeout : usual;
  const uint64_t binding = options->vulkan_max_binding;
  const char *way = options->vulkan_memory;
  engine->way = way == NULL                  ? BERTH__VULKAN_AUTO
                : strcmp(way, "mapped") == 0 ? BERTH__VULKAN_MAPPED
                                             : BERTH__VULKAN_STAGED;
  engine->timeout = (uint64_t)(seconds * (double)SECOND);
  if (binding != 0 && binding < engine->max_binding) engine->max_binding = binding;
}

/* ---- The device ---- */

#define GROUP_SIZE 256u /* threads: more seldom help, and all current drivers support this many */

static uint32_t vulkan_engine_lesser(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Whether lanes can exchange values, in full subgroups: since Vulkan 1.3 a pipeline can require that. */
static bool can_exchange(const berth__engine *engine, const VkPhysicalDeviceSubgroupProperties *subgroups) {
  VkPhysicalDeviceVulkan13Features newer = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &newer};
  if (engine->properties.apiVersion < VK_API_VERSION_1_3 ||
      (subgroups->supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) == 0 ||
      (subgroups->supportedOperations & VK_SUBGROUP_FEATURE_SHUFFLE_BIT) == 0)
    return false;
  engine->instance.vk.GetPhysicalDeviceFeatures2(engine->physical, &features);
  return newer.computeFullSubgroups != VK_FALSE;
}

static void vulkan_engine_read_properties(berth__engine *engine) {
  const berth__vulkan_instance *instance = &engine->instance;
  VkPhysicalDeviceMaintenance4Properties buffers = {.sType =
                                                        VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES};
  VkPhysicalDeviceMaintenance3Properties allocations = {.sType =
                                                            VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES};
  VkPhysicalDeviceFloatControlsProperties floats = {
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES, .pNext = &buffers};
  VkPhysicalDeviceSubgroupProperties subgroups = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                                  .pNext = &allocations};
  VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2, .pNext = &subgroups};
  instance->vk.GetPhysicalDeviceProperties(engine->physical, &engine->properties);
  if (engine->properties.apiVersion < VK_API_VERSION_1_3) floats.pNext = NULL;
  if (engine->properties.apiVersion >= VK_API_VERSION_1_2) allocations.pNext = &floats;
  instance->vk.GetPhysicalDeviceProperties2(engine->physical, &all);
  instance->vk.GetPhysicalDeviceMemoryProperties(engine->physical, &engine->memory);
  const VkPhysicalDeviceLimits *limits = &engine->properties.limits;
  engine->keeps_nan = floats.shaderSignedZeroInfNanPreserveFloat32 != VK_FALSE;
  engine->keeps_small = floats.shaderDenormPreserveFloat32 != VK_FALSE;
  engine->max_buffer = buffers.maxBufferSize != 0 ? buffers.maxBufferSize : UINT64_MAX;
  engine->max_allocation = allocations.maxMemoryAllocationSize;
  engine->max_binding = limits->maxStorageBufferRange;
  engine->core.max_threads =
      vulkan_engine_lesser(limits->maxComputeWorkGroupInvocations, limits->maxComputeWorkGroupSize[0]);
  engine->core.max_shared = limits->maxComputeSharedMemorySize;
  engine->core.max_groups =
      vulkan_engine_lesser(limits->maxComputeWorkGroupCount[0], limits->maxComputeWorkGroupCount[1]);
  const bool exchanges = can_exchange(engine, &subgroups);
  berth__vulkan_find_units(engine, subgroups.subgroupSize, exchanges);
  const berth__kernel_limits loops = {.group_size = vulkan_engine_lesser(GROUP_SIZE, engine->core.max_threads),
                                      .lanes = subgroups.subgroupSize,
                                      .exchanges = exchanges,
                                      .shared_bytes = engine->core.max_shared,
                                      .shares_well = engine->properties.deviceType != VK_PHYSICAL_DEVICE_TYPE_CPU,
                                      .multiplies = engine->unit_kinds,
                                      .tile_bytes = engine->core.max_shared,
                                      .is_cooperative = engine->unit_kinds != 0};
  berth__profile_set(&engine->core.profile, engine->properties.deviceName, &loops);
}

static void vulkan_engine_load_calls(berth__engine *engine) {
  PFN_vkGetDeviceProcAddr load = engine->instance.vk.GetDeviceProcAddr;
#define BERTH__VK_INSTANCE(name)
#define BERTH__VK_OPTIONAL(name)
#define BERTH__VK_DEVICE(name) engine->vk.name = (PFN_vk##name)load(engine->device, "vk" #name);
#include "device/vulkan/calls.def"
#undef BERTH__VK_INSTANCE
#undef BERTH__VK_OPTIONAL
#undef BERTH__VK_DEVICE
}

static berth_status make_device(berth__engine *engine, berth_error *err) {
  const float priority = 1;
  berth__vulkan_queue_family(&engine->instance, engine->physical, &engine->queue_family, &engine->timestamp_bits);
  const VkDeviceQueueCreateInfo queue = {.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
                                         .queueFamilyIndex = engine->queue_family,
                                         .queueCount = 1,
                                         .pQueuePriorities = &priority};
  const VkPhysicalDeviceVulkan13Features whole = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
                                                  .computeFullSubgroups = VK_TRUE};
  berth__vulkan_wanted wanted = {.next = engine->core.profile.loops.exchanges ? &whole : NULL};
  berth__vulkan_want_units(engine, &wanted);
  const VkDeviceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
                                   .pNext = wanted.next,
                                   .enabledExtensionCount = wanted.n_extensions,
                                   .ppEnabledExtensionNames = wanted.extensions,
                                   .pEnabledFeatures = &wanted.core,
                                   .queueCreateInfoCount = 1,
                                   .pQueueCreateInfos = &queue};
  const VkPipelineCacheCreateInfo cache = {.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO};
  const VkResult result =
      engine->instance.vk.CreateDevice(engine->physical, &info, &engine->host.callbacks, &engine->device);
  if (result == VK_SUCCESS) vulkan_engine_load_calls(engine);
  BERTH__TRY(berth__vulkan_check(engine, result, "opening it", err));
  engine->vk.GetDeviceQueue(engine->device, engine->queue_family, 0, &engine->queue);
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, PipelineCache, &cache, &engine->pipelines), "opening it",
                             err);
}

static berth_status vulkan_engine_open(berth__engine *engine, const char *which, berth_error *err) {
  uint32_t index;
  const berth__vulkan_lack lack =
      berth__vulkan_instance_create(engine->core.ctx, &engine->host.callbacks, &engine->instance);
  if (lack == BERTH__VULKAN_NO_MEMORY) return berth__fail_nomem(err, "the device 'vulkan'");
  if (lack != BERTH__VULKAN_LACKS_NOTHING)
    return berth__fail(err, BERTH_UNSUPPORTED, "the device 'vulkan' cannot be used here: %s",
                       berth__vulkan_reason(lack));
  if (!berth__vulkan_choose(&engine->instance, which, &index))
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "there is no device 'vulkan:%s'; give the number of one (there are %u) or a part of its name",
                       which, engine->instance.n_devices);
  engine->physical = engine->instance.devices[index];
  vulkan_engine_read_properties(engine);
  vulkan_engine_read_options(engine);
  return make_device(engine, err);
}

berth_status berth__vulkan_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err) {
  *out = NULL;
  berth__engine *engine = berth__alloc_zero(ctx, sizeof *engine);
  if (engine == NULL) return berth__fail_nomem(err, "the device 'vulkan'");
  berth__gpu_start(engine, ctx, &berth__vulkan_driver, n_threads);
  berth__vulkan_host_start(&engine->host, ctx);
  berth_status status = vulkan_engine_open(engine, which, err);
  if (status != BERTH_OK) {
    berth__vulkan_close(engine);
    return status;
  }
  *out = engine;
  return BERTH_OK;
}

void berth__vulkan_close(berth__engine *engine) {
  if (engine == NULL) return;
  const berth__vulkan_counts *counts = &engine->counts;
  if (engine->device != VK_NULL_HANDLE) {
    if (!berth__vulkan_may_free(engine)) return; /* otherwise everything that the driver may still use is leaked */
    berth__vulkan_ring_destroy(engine);
    BERTH__VK_DESTROY(engine, PipelineCache, engine->pipelines);
    engine->vk.DestroyDevice(engine->device, &engine->host.callbacks);
    berth__log(
        engine->core.ctx, 0,
        "vulkan: %s closed: %llu submissions, %llu recordings, %llu pipelines; at most %llu bytes of its memory; "
        "left behind: %llu objects, %llu bytes",
        engine->properties.deviceName, (unsigned long long)counts->submissions, (unsigned long long)counts->recordings,
        (unsigned long long)counts->pipelines, (unsigned long long)counts->peak_memory,
        (unsigned long long)counts->handles, (unsigned long long)counts->memory);
  }
  berth__gpu_end(engine);
  berth__spirv_compiler_destroy(engine->compiler);
  berth__vulkan_instance_destroy(&engine->instance);
  berth__vulkan_host_end(&engine->host);
  berth__free(engine->core.ctx, engine);
}
