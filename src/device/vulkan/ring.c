/* The staging ring: one buffer visible to host and device, divided into lanes. Each lane has its own commands and
 * fence, so the host fills one while the device processes the previous ones. */
#include "device/vulkan/vulkan.h"

static const char doing[] = "copying";

static berth_status make_memory(berth__engine *engine, berth_error *err) {
  berth__vulkan_ring *ring = &engine->ring;
  const uint64_t size = BERTH__VULKAN_LANES * BERTH__VULKAN_LANE_SIZE + BERTH__VULKAN_MAIL;
  const VkMemoryPropertyFlags needed = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
  VkMemoryRequirements requirements;
  void *data = NULL;
  uint32_t type;
  BERTH__TRY(berth__vulkan_make_buffer(
      engine, size, VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT, &ring->buffer, err));
  engine->vk.GetBufferMemoryRequirements(engine->device, ring->buffer, &requirements);
  if (!berth__vulkan_memory_type(engine, requirements.memoryTypeBits, needed, VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
                                 requirements.size, &type))
    return berth__fail(err, BERTH_DEVICE_NOMEM, "%s has no memory of %llu bytes that the host sees",
                       engine->properties.deviceName, (unsigned long long)requirements.size);
  ring->allocated = requirements.size;
  BERTH__TRY(berth__vulkan_allocate(engine, requirements.size, type, &ring->memory, err));
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.BindBufferMemory(engine->device, ring->buffer, ring->memory, 0),
                                 doing, err));
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.MapMemory(engine->device, ring->memory, 0, VK_WHOLE_SIZE, 0, &data),
                                 doing, err));
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++) {
    ring->lanes[i].offset = i * BERTH__VULKAN_LANE_SIZE;
    ring->lanes[i].data = (unsigned char *)data + ring->lanes[i].offset;
  }
  ring->mail_offset = BERTH__VULKAN_LANES * BERTH__VULKAN_LANE_SIZE;
  ring->mail = (const unsigned char *)data + ring->mail_offset;
  return BERTH_OK;
}

static berth_status make_lanes(berth__engine *engine, berth_error *err) {
  berth__vulkan_ring *ring = &engine->ring;
  const VkCommandPoolCreateInfo pool = {.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                        .queueFamilyIndex = engine->queue_family};
  const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
  VkCommandBuffer commands[BERTH__VULKAN_LANES];
  BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, CommandPool, &pool, &ring->pool), doing, err));
  const VkCommandBufferAllocateInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
                                            .commandPool = ring->pool,
                                            .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
                                            .commandBufferCount = BERTH__VULKAN_LANES};
  BERTH__TRY(
      berth__vulkan_check(engine, engine->vk.AllocateCommandBuffers(engine->device, &info, commands), doing, err));
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++) {
    ring->lanes[i].commands = commands[i];
    BERTH__TRY(berth__vulkan_check(engine, BERTH__VK_CREATE(engine, Fence, &fence, &ring->lanes[i].fence), doing, err));
  }
  return BERTH_OK;
}

berth_status berth__vulkan_ring_need(berth__engine *engine, berth_error *err) {
  if (engine->ring.buffer != VK_NULL_HANDLE) return BERTH_OK;
  berth_status status = make_memory(engine, err);
  if (status == BERTH_OK) status = make_lanes(engine, err);
  if (status != BERTH_OK) berth__vulkan_ring_destroy(engine);
  return status;
}

void berth__vulkan_ring_destroy(berth__engine *engine) {
  berth__vulkan_ring *ring = &engine->ring;
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++) BERTH__VK_DESTROY(engine, Fence, ring->lanes[i].fence);
  BERTH__VK_DESTROY(engine, CommandPool, ring->pool);
  BERTH__VK_DESTROY(engine, Buffer, ring->buffer);
  berth__vulkan_free(engine, &ring->memory, ring->allocated);
  *ring = (berth__vulkan_ring){0};
}

void berth__vulkan_barrier(const berth__engine *engine, VkCommandBuffer commands) {
  const VkMemoryBarrier barrier = {.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
                                   .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
                                   .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT |
                                                    VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
                                                    VK_ACCESS_HOST_READ_BIT | VK_ACCESS_HOST_WRITE_BIT};
  const VkPipelineStageFlags device = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
  engine->vk.CmdPipelineBarrier(commands, device, device | VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &barrier, 0, NULL, 0,
                                NULL);
}

berth_status berth__vulkan_lane_wait(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err) {
  if (!lane->is_busy) return BERTH_OK;
  lane->is_busy = false;
  return berth__vulkan_wait(engine, lane->ends, doing, err);
}

/* The next lane, once nothing uses it any more. */
static berth_status vulkan_ring_take(berth__engine *engine, berth__vulkan_lane **out, berth_error *err) {
  berth__vulkan_lane *lane = &engine->ring.lanes[engine->ring.next];
  BERTH__TRY(berth__vulkan_alive(engine, err));
  BERTH__TRY(berth__vulkan_lane_wait(engine, lane, err));
  engine->ring.next = (engine->ring.next + 1) % BERTH__VULKAN_LANES;
  *out = lane;
  return BERTH_OK;
}

static VkResult vulkan_ring_begin(const berth__engine *engine, const berth__vulkan_lane *lane) {
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  const VkResult result = engine->vk.BeginCommandBuffer(lane->commands, &info);
  if (result == VK_SUCCESS) berth__vulkan_barrier(engine, lane->commands);
  return result;
}

static VkResult vulkan_ring_end(const berth__engine *engine, const berth__vulkan_lane *lane) {
  berth__vulkan_barrier(engine, lane->commands);
  return engine->vk.EndCommandBuffer(lane->commands);
}

berth_status berth__vulkan_lane_begin(berth__engine *engine, berth__vulkan_lane **out, berth_error *err) {
  BERTH__TRY(berth__vulkan_ring_flush(engine, err));
  BERTH__TRY(vulkan_ring_take(engine, out, err));
  const VkResult result = vulkan_ring_begin(engine, *out);
  const berth_status status = berth__vulkan_check(engine, result, doing, err);
  if (status != BERTH_OK && result == VK_SUCCESS) (void)vulkan_ring_end(engine, *out); /* so that it can begin again */
  return status;
}

berth_status berth__vulkan_lane_open(berth__engine *engine, berth_error *err) {
  berth__vulkan_ring *ring = &engine->ring;
  const bool is_full = ring->used == BERTH__VULKAN_LANE_SIZE || ring->n_copies == BERTH__VULKAN_COPIES;
  if (ring->open != NULL && is_full) BERTH__TRY(berth__vulkan_ring_flush(engine, err));
  if (ring->open != NULL) return BERTH_OK;
  ring->used = 0;
  ring->n_copies = 0;
  return vulkan_ring_take(engine, &ring->open, err);
}

/* The copies of the open lane. They may run in any order, so copies to the same bytes need a barrier in between. */
static void vulkan_ring_copy(const berth__engine *engine) {
  const berth__vulkan_ring *ring = &engine->ring;
  const berth__block *target = NULL; /* whose bytes [low, high) have been written since the last barrier */
  uint64_t low = 0, high = 0;
  for (uint32_t i = 0; i < ring->n_copies; i++) {
    const berth__vulkan_pending *c = &ring->copies[i];
    const VkBufferCopy region = {.srcOffset = ring->open->offset + c->from, .dstOffset = c->to, .size = c->size};
    if (c->block == NULL) continue;
    const bool waits = target != NULL && (target != c->block || (c->to < high && low < c->to + c->size));
    if (waits) berth__vulkan_barrier(engine, ring->open->commands);
    engine->vk.CmdCopyBuffer(ring->open->commands, ring->buffer, c->block->buffer, 1, &region);
    const bool is_first = waits || target == NULL;
    low = is_first || c->to < low ? c->to : low;
    high = is_first || c->to + c->size > high ? c->to + c->size : high;
    target = c->block;
  }
}

/* Repeated until the lane can be submitted. */
static berth_status vulkan_ring_record(berth__engine *engine, berth_error *err) {
  BERTH__TRY(berth__vulkan_alive(engine, err));
  VkResult result = vulkan_ring_begin(engine, engine->ring.open);
  if (result == VK_SUCCESS) {
    vulkan_ring_copy(engine);
    result = vulkan_ring_end(engine, engine->ring.open);
  }
  return berth__vulkan_check(engine, result, doing, err);
}

static void vulkan_ring_sent(berth__engine *engine, berth__vulkan_lane *lane, VkFence fence) {
  lane->ends = fence;
  lane->is_busy = true;
  berth__vulkan_host_stock(&engine->host); /* recording took some of it */
}

berth_status berth__vulkan_ring_flush(berth__engine *engine, berth_error *err) {
  berth__vulkan_lane *lane = engine->ring.open;
  if (lane == NULL) return BERTH_OK;
  return berth__vulkan_ring_submit(engine, VK_NULL_HANDLE, lane->fence, doing, err);
}

berth_status berth__vulkan_lane_submit(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err) {
  BERTH__TRY(berth__vulkan_check(engine, vulkan_ring_end(engine, lane), doing, err));
  BERTH__TRY(berth__vulkan_submit(engine, &lane->commands, 1, lane->fence, doing, err));
  vulkan_ring_sent(engine, lane, lane->fence);
  return BERTH_OK;
}

berth_status berth__vulkan_ring_submit(berth__engine *engine, VkCommandBuffer commands, VkFence fence, const char *what,
                                       berth_error *err) {
  berth__vulkan_lane *lane = engine->ring.open;
  VkCommandBuffer both[2];
  uint32_t n = 0;
  if (lane != NULL) {
    BERTH__TRY(vulkan_ring_record(engine, err));
    both[n++] = lane->commands;
  }
  if (commands != VK_NULL_HANDLE) both[n++] = commands;
  BERTH__TRY(berth__vulkan_submit(engine, both, n, fence, what, err));
  engine->ring.open = NULL;
  if (lane != NULL) vulkan_ring_sent(engine, lane, fence);
  return BERTH_OK;
}

void berth__vulkan_ring_forget(berth__engine *engine, const berth__block *block) {
  berth__vulkan_ring *ring = &engine->ring;
  for (uint32_t i = 0; i < ring->n_copies; i++)
    if (ring->copies[i].block == block) ring->copies[i].block = NULL;
}

void berth__vulkan_ring_ended(berth__engine *engine, VkFence fence) {
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++)
    if (engine->ring.lanes[i].ends == fence) engine->ring.lanes[i].is_busy = false;
}
