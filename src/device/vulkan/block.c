/* The block: one buffer over one piece of device memory, zeroed. */
#include "base/math.h"
#include "device/vulkan/vulkan.h"

static const VkMemoryPropertyFlags mappable =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

static berth_status fail_too_large(const berth__engine *engine, uint64_t size, const char *what, uint64_t most,
                                   berth_error *err) {
  return berth__fail(err, BERTH_DEVICE_NOMEM, "the arena takes %llu bytes, but on %s %s %llu", (unsigned long long)size,
                     engine->properties.deviceName, what, (unsigned long long)most);
}

/* Checked in advance, because not all drivers refuse sizes that they cannot allocate. */
static berth_status vulkan_block_check_size(const berth__engine *engine, uint64_t size, berth_error *err) {
  uint64_t largest = 0;
  for (uint32_t i = 0; i < engine->memory.memoryHeapCount; i++)
    if (engine->memory.memoryHeaps[i].size > largest) largest = engine->memory.memoryHeaps[i].size;
  if (size > largest) return fail_too_large(engine, size, "the largest heap of memory has", largest, err);
  if (size > engine->max_buffer) return fail_too_large(engine, size, "a buffer has at most", engine->max_buffer, err);
  if (size > engine->max_allocation)
    return fail_too_large(engine, size, "one allocation has at most", engine->max_allocation, err);
  return BERTH_OK;
}

/* The memory types to try, best first. If the host can access the device's own memory, staging has no advantage. */
static uint32_t list_types(const berth__engine *engine, const VkMemoryRequirements *requirements, uint32_t types[2]) {
  const VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  const uint32_t allowed = requirements->memoryTypeBits;
  const uint64_t size = requirements->size;
  uint32_t n = 0;
  if (engine->way != BERTH__VULKAN_STAGED &&
      berth__vulkan_memory_type(engine, allowed, engine->way == BERTH__VULKAN_AUTO ? mappable | local : mappable,
                                local | VK_MEMORY_PROPERTY_HOST_CACHED_BIT, size, &types[n]))
    n++;
  if (engine->way != BERTH__VULKAN_MAPPED && berth__vulkan_memory_type(engine, allowed, local, 0, size, &types[n])) n++;
  return n;
}

static berth_status vulkan_block_allocate(berth__block *block, uint64_t size, berth_error *err) {
  berth__engine *engine = block->engine;
  VkMemoryRequirements requirements;
  uint32_t types[2];
  engine->vk.GetBufferMemoryRequirements(engine->device, block->buffer, &requirements);
  const uint32_t n = list_types(engine, &requirements, types);
  if (n == 0)
    return berth__fail(err, BERTH_DEVICE_NOMEM, "no heap of %s that %s has the %llu bytes that the arena takes",
                       engine->properties.deviceName,
                       engine->way == BERTH__VULKAN_MAPPED ? "the host sees" : "is its own", (unsigned long long)size);
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < n; i++) {
    const VkMemoryPropertyFlags flags = engine->memory.memoryTypes[types[i]].propertyFlags;
    status = berth__vulkan_allocate(engine, requirements.size, types[i], &block->memory, err);
    block->allocated = requirements.size;
    block->is_mapped = engine->way != BERTH__VULKAN_STAGED && (flags & mappable) == mappable;
    block->is_cached = block->is_mapped && (flags & VK_MEMORY_PROPERTY_HOST_CACHED_BIT) != 0;
    if (status != BERTH_DEVICE_NOMEM) break;
  }
  return status;
}

static berth_status map(berth__block *block, uint64_t align, berth_error *err) {
  berth__engine *engine = block->engine;
  void *mapped = NULL;
  BERTH__TRY(berth__vulkan_check(engine,
                                 engine->vk.MapMemory(engine->device, block->memory, 0, VK_WHOLE_SIZE, 0, &mapped),
                                 "mapping memory", err));
  const uintptr_t start = (uintptr_t)mapped;
  block->base = ((start + (uintptr_t)align - 1) & ~((uintptr_t)align - 1)) - start;
  block->data = (unsigned char *)mapped + block->base;
  return BERTH_OK;
}

static berth_status vulkan_block_build(berth__block *block, uint64_t align, berth_error *err) {
  berth__engine *engine = block->engine;
  /* The driver chooses the address of mapped memory, so there must be room to align it. */
  const uint64_t slack = align > engine->properties.limits.minMemoryMapAlignment ? align : 0;
  uint64_t size = 0;
  if (!berth__align_up(block->size != 0 ? block->size : 1, 4, &size) || !berth__add_u64(size, slack, &size))
    size = UINT64_MAX;
  BERTH__TRY(vulkan_block_check_size(engine, size, err));
  BERTH__TRY(berth__vulkan_make_buffer(
      engine, size,
      VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
      &block->buffer, err));
  BERTH__TRY(vulkan_block_allocate(block, size, err));
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.BindBufferMemory(engine->device, block->buffer, block->memory, 0),
                                 "binding memory", err));
  if (block->is_mapped) BERTH__TRY(map(block, align, err));
  if (!block->is_cached) BERTH__TRY(berth__vulkan_ring_need(engine, err));
  return berth__vulkan_fill(block, 0, block->size, 0, err);
}

berth_status berth__vulkan_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                        berth__block **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(berth__vulkan_alive(engine, err));
  if (host != NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "an arena on the device 'vulkan' cannot lie in memory of the caller");
  berth__block *block = berth__alloc_zero(engine->core.ctx, sizeof *block);
  if (block == NULL) return berth__fail_nomem(err, "an arena");
  *block = (berth__block){.engine = engine, .size = size};
  berth_status status = vulkan_block_build(block, align, err);
  if (status != BERTH_OK) {
    berth__vulkan_block_destroy(block);
    return status;
  }
  berth__log(engine->core.ctx, 0, "vulkan: a block of %llu bytes on %s, %s", (unsigned long long)block->allocated,
             engine->properties.deviceName, block->data != NULL ? "mapped" : "staged");
  *out = block;
  return BERTH_OK;
}

void berth__vulkan_block_destroy(berth__block *block) {
  if (block == NULL) return;
  berth__engine *engine = block->engine;
  berth__gpu_forget_block(engine, block);
  if (berth__vulkan_may_free(engine)) {
    BERTH__VK_DESTROY(engine, Buffer, block->buffer);
    berth__vulkan_free(engine, &block->memory, block->allocated);
  }
  berth__vulkan_ring_forget(engine, block);
  berth__free(engine->core.ctx, block);
}

void *berth__vulkan_block_host(berth__block *block) { return block->data; }
