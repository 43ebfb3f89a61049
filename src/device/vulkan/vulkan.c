/* The Vulkan device. */
#include "device/vulkan/vulkan.h"

#include <stdio.h>

#include "device/gpu/recipe.h"

/* Each physical device is listed; "vulkan" stands for the first one. */
static uint32_t vulkan_count(const berth_context *ctx) {
  berth__vulkan_instance instance;
  if (berth__vulkan_instance_create(ctx, NULL, &instance) != BERTH__VULKAN_LACKS_NOTHING) return 1;
  const uint32_t n = instance.n_devices;
  berth__vulkan_instance_destroy(&instance);
  return n;
}

static const char *const names[BERTH__VULKAN_MAX_DEVICES] = {
    "vulkan:0", "vulkan:1", "vulkan:2",  "vulkan:3",  "vulkan:4",  "vulkan:5",  "vulkan:6",  "vulkan:7",
    "vulkan:8", "vulkan:9", "vulkan:10", "vulkan:11", "vulkan:12", "vulkan:13", "vulkan:14", "vulkan:15"};

/* The best one comes first, the others in their order. */
static uint32_t listed_at(const berth__vulkan_instance *instance, uint32_t index) {
  const uint32_t best = berth__vulkan_best(instance);
  if (index == 0) return best;
  return index <= best ? index - 1 : index;
}

static void describe_physical(const berth__vulkan_instance *instance, uint32_t index, berth_device_info *out) {
  VkPhysicalDeviceProperties properties;
  VkPhysicalDeviceMemoryProperties memory;
  instance->vk.GetPhysicalDeviceProperties(instance->devices[index], &properties);
  instance->vk.GetPhysicalDeviceMemoryProperties(instance->devices[index], &memory);
  snprintf(out->description, sizeof out->description, "%.90s, Vulkan %u.%u.%u", properties.deviceName,
           VK_API_VERSION_MAJOR(properties.apiVersion), VK_API_VERSION_MINOR(properties.apiVersion),
           VK_API_VERSION_PATCH(properties.apiVersion));
  for (uint32_t i = 0; i < memory.memoryHeapCount; i++) {
    const VkMemoryHeap *heap = &memory.memoryHeaps[i];
    if ((heap->flags & VK_MEMORY_HEAP_DEVICE_LOCAL_BIT) && heap->size > out->memory) out->memory = heap->size;
  }
}

static bool has_compiler(const berth_context *ctx) {
  berth__spirv_compiler *compiler;
  berth_error err;
  const bool found = berth__spirv_compiler_create((berth_context *)(uintptr_t)ctx, &compiler, &err) == BERTH_OK;
  if (found) berth__spirv_compiler_destroy(compiler);
  return found;
}

static void vulkan_describe(const berth_context *ctx, uint32_t index, berth_device_info *out) {
  berth__vulkan_instance instance;
  berth__vulkan_lack lack = berth__vulkan_instance_create(ctx, NULL, &instance);
  out->name = berth__vulkan_device.name;
  snprintf(out->description, sizeof out->description, "Vulkan");
  if (lack == BERTH__VULKAN_LACKS_NOTHING) {
    const uint32_t at = listed_at(&instance, index < instance.n_devices ? index : 0);
    describe_physical(&instance, at, out);
    if (index != 0) out->name = names[at];
    if (!has_compiler(ctx)) lack = BERTH__VULKAN_NO_SHADERC;
    berth__vulkan_instance_destroy(&instance);
  }
  out->available = lack == BERTH__VULKAN_LACKS_NOTHING;
  out->reason = berth__vulkan_reason(lack);
}

static berth__limits vulkan_limits(void) { return berth__gpu_limits("vulkan"); }

static berth_clock step_clock(const berth__engine *engine) {
  return engine->timestamp_bits != 0 ? BERTH_CLOCK_DEVICE : BERTH_CLOCK_NONE;
}

const berth__device berth__vulkan_device = {
    .name = "vulkan",
    .count = vulkan_count,
    .describe = vulkan_describe,
    .limits = vulkan_limits,
    .multiplies = true,
    .is_cooperative = true,
    .open = berth__vulkan_open,
    .use_threads = berth__gpu_use_threads,
    .close = berth__vulkan_close,
    .block_create = berth__vulkan_block_create,
    .block_destroy = berth__vulkan_block_destroy,
    .write = berth__vulkan_write,
    .read = berth__vulkan_read,
    .copy = berth__vulkan_copy,
    .fill = berth__vulkan_fill,
    .host = berth__vulkan_block_host,
    .clock = step_clock,
    BERTH__GPU_ROWS,
};
