/* The staging ring: one buffer that host and device see, in lanes. Each lane has commands and a fence of its own, so
 * the host fills one while the device empties those before. */
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

static berth_status vulkan_ring_begin(berth__engine *engine, berth__vulkan_lane **out, berth_error *err) {
  const VkCommandBufferBeginInfo info = {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                         .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  berth__vulkan_lane *lane = &engine->ring.lanes[engine->ring.next];
  BERTH__TRY(berth__vulkan_alive(engine, err));
  BERTH__TRY(berth__vulkan_lane_wait(engine, lane, err));
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.BeginCommandBuffer(lane->commands, &info), doing, err));
  berth__vulkan_barrier(engine, lane->commands);
  engine->ring.next = (engine->ring.next + 1) % BERTH__VULKAN_LANES;
  *out = lane;
  return BERTH_OK;
}

berth_status berth__vulkan_lane_begin(berth__engine *engine, berth__vulkan_lane **out, berth_error *err) {
  BERTH__TRY(berth__vulkan_ring_flush(engine, err));
  return vulkan_ring_begin(engine, out, err);
}

berth_status berth__vulkan_lane_open(berth__engine *engine, berth_error *err) {
  berth__vulkan_ring *ring = &engine->ring;
  if (ring->open != NULL && ring->used == BERTH__VULKAN_LANE_SIZE) BERTH__TRY(berth__vulkan_ring_flush(engine, err));
  if (ring->open != NULL) return BERTH_OK;
  ring->used = 0;
  ring->target = NULL;
  return vulkan_ring_begin(engine, &ring->open, err);
}

berth_status berth__vulkan_ring_flush(berth__engine *engine, berth_error *err) {
  berth__vulkan_lane *lane = engine->ring.open;
  if (lane == NULL) return BERTH_OK;
  engine->ring.open = NULL;
  return berth__vulkan_lane_submit(engine, lane, err);
}

static berth_status vulkan_ring_end(berth__engine *engine, const berth__vulkan_lane *lane, berth_error *err) {
  berth__vulkan_barrier(engine, lane->commands);
  return berth__vulkan_check(engine, engine->vk.EndCommandBuffer(lane->commands), doing, err);
}

static void vulkan_ring_sent(berth__engine *engine, berth__vulkan_lane *lane, VkFence fence) {
  lane->ends = fence;
  lane->is_busy = true;
  berth__vulkan_host_stock(&engine->host); /* what was recorded holds some of it */
}

berth_status berth__vulkan_lane_submit(berth__engine *engine, berth__vulkan_lane *lane, berth_error *err) {
  BERTH__TRY(vulkan_ring_end(engine, lane, err));
  BERTH__TRY(berth__vulkan_submit(engine, &lane->commands, 1, lane->fence, doing, err));
  vulkan_ring_sent(engine, lane, lane->fence);
  return BERTH_OK;
}

berth_status berth__vulkan_ring_submit(berth__engine *engine, VkCommandBuffer commands, VkFence fence, const char *what,
                                       berth_error *err) {
  berth__vulkan_lane *lane = engine->ring.open;
  const VkCommandBuffer both[2] = {lane != NULL ? lane->commands : commands, commands};
  engine->ring.open = NULL;
  if (lane != NULL) BERTH__TRY(vulkan_ring_end(engine, lane, err));
  BERTH__TRY(berth__vulkan_submit(engine, both, lane != NULL ? 2 : 1, fence, what, err));
  if (lane != NULL) vulkan_ring_sent(engine, lane, fence);
  return BERTH_OK;
}

void berth__vulkan_ring_ended(berth__engine *engine, VkFence fence) {
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++)
    if (engine->ring.lanes[i].ends == fence) engine->ring.lanes[i].is_busy = false;
}
