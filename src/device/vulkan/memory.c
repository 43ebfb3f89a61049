/* Buffers and their device memory. */
#include "device/vulkan/vulkan.h"

static uint32_t count_bits(uint32_t x) {
  uint32_t n = 0;
  for (; x != 0; x &= x - 1) n++;
  return n;
}

bool berth__vulkan_memory_type(const berth__engine *engine, uint32_t allowed, VkMemoryPropertyFlags needed,
                               VkMemoryPropertyFlags wanted, uint64_t size, uint32_t *out) {
  bool found = false;
  uint32_t most = 0;
  for (uint32_t i = 0; i < engine->memory.memoryTypeCount; i++) {
    const VkMemoryType *type = &engine->memory.memoryTypes[i];
    const uint32_t has = count_bits(type->propertyFlags & wanted);
    if (!(allowed >> i & 1) || (type->propertyFlags & needed) != needed) continue;
    if (engine->memory.memoryHeaps[type->heapIndex].size < size || (found && has <= most)) continue;
    *out = i;
    most = has;
    found = true;
  }
  return found;
}

berth_status berth__vulkan_allocate(berth__engine *engine, uint64_t size, uint32_t type, VkDeviceMemory *out,
                                    berth_error *err) {
  const VkMemoryAllocateInfo info = {
      .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = size, .memoryTypeIndex = type};
  const VkResult result =
      berth__vulkan_counted(engine, engine->vk.AllocateMemory(engine->device, &info, &engine->host.callbacks, out));
  if (result == VK_ERROR_OUT_OF_DEVICE_MEMORY) {
    const VkMemoryHeap *heap = &engine->memory.memoryHeaps[engine->memory.memoryTypes[type].heapIndex];
    return berth__fail(err, BERTH_DEVICE_NOMEM,
                       "%s has no block of %llu bytes left: its heap has %llu in all, of which this session holds %llu",
                       engine->properties.deviceName, (unsigned long long)size, (unsigned long long)heap->size,
                       (unsigned long long)engine->counts.memory);
  }
  if (result == VK_SUCCESS) engine->counts.memory += size;
  if (engine->counts.memory > engine->counts.peak_memory) engine->counts.peak_memory = engine->counts.memory;
  return berth__vulkan_check(engine, result, "allocating memory", err);
}

void berth__vulkan_free(berth__engine *engine, VkDeviceMemory *memory, uint64_t size) {
  if (*memory == VK_NULL_HANDLE) return;
  engine->vk.FreeMemory(engine->device, *memory, &engine->host.callbacks);
  engine->counts.memory -= size;
  engine->counts.handles--;
  *memory = VK_NULL_HANDLE;
}

berth_status berth__vulkan_make_buffer(berth__engine *engine, uint64_t size, VkBufferUsageFlags usage, VkBuffer *out,
                                       berth_error *err) {
  const VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
                                   .size = size,
                                   .usage = usage,
                                   .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
  return berth__vulkan_check(engine, BERTH__VK_CREATE(engine, Buffer, &info, out), "making a buffer", err);
}
