/* Driver errors in words; and what happens when a device is lost. */
#include <stdio.h>

#include "device/vulkan/vulkan.h"

/* How long to wait for running work before its objects are destroyed, or else leaked. */
#define GRACE ((uint64_t)10 * 1000 * 1000 * 1000)

static const char *result_text(VkResult result) {
  switch (result) {
    case VK_ERROR_INITIALIZATION_FAILED: return "initialisation failed";
    case VK_ERROR_MEMORY_MAP_FAILED: return "the memory cannot be mapped";
    case VK_ERROR_FEATURE_NOT_PRESENT: return "a feature is missing";
    case VK_ERROR_TOO_MANY_OBJECTS: return "there are too many objects";
    case VK_ERROR_FRAGMENTED_POOL:
    case VK_ERROR_OUT_OF_POOL_MEMORY: return "a pool is used up";
    case VK_ERROR_INVALID_SHADER_NV: return "the driver refuses the kernel";
    default: return "the driver failed";
  }
}

static berth_status lose(berth__engine *engine, berth_error *err) {
  engine->is_lost = true;
  berth__log(engine->core.ctx, 2, "vulkan: %s", engine->why);
  return berth__fail(err, BERTH_DEVICE_LOST, "%s", engine->why);
}

berth_status berth__vulkan_check(berth__engine *engine, VkResult result, const char *doing, berth_error *err) {
  const char *name = engine->properties.deviceName;
  switch (result) {
    case VK_SUCCESS:
      if (!berth__vulkan_host_was_short(&engine->host)) return BERTH_OK;
      __attribute__((fallthrough));
    case VK_ERROR_OUT_OF_HOST_MEMORY:
      return berth__fail(err, BERTH_NOMEM, "the host has no memory left for %s on %s", doing, name);
    case VK_ERROR_OUT_OF_DEVICE_MEMORY:
      return berth__fail(err, BERTH_DEVICE_NOMEM, "%s has no memory left for %s", name, doing);
    case VK_ERROR_DEVICE_LOST:
      snprintf(engine->why, sizeof engine->why,
               "the device %.80s was lost while %s; only a new session can go on from here", name, doing);
      return lose(engine, err);
    default:
      return berth__fail(err, result == VK_ERROR_FEATURE_NOT_PRESENT ? BERTH_UNSUPPORTED : BERTH_INTERNAL,
                         "%s: %s while %s (VkResult %d)", name, result_text(result), doing, (int)result);
  }
}

berth_status berth__vulkan_alive(const berth__engine *engine, berth_error *err) {
  return engine->is_lost ? berth__fail(err, BERTH_DEVICE_LOST, "%s", engine->why) : BERTH_OK;
}

berth_status berth__vulkan_submit(berth__engine *engine, const VkCommandBuffer *commands, uint32_t n, VkFence fence,
                                  const char *doing, berth_error *err) {
  const VkSubmitInfo info = {
      .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO, .commandBufferCount = n, .pCommandBuffers = commands};
  BERTH__TRY(berth__vulkan_alive(engine, err));
  BERTH__TRY(berth__vulkan_check(engine, engine->vk.ResetFences(engine->device, 1, &fence), doing, err));
  engine->counts.submissions++;
  const VkResult result = engine->vk.QueueSubmit(engine->queue, 1, &info, fence);
  return result == VK_SUCCESS ? BERTH_OK : berth__vulkan_check(engine, result, doing, err); /* it runs now */
}

berth_status berth__vulkan_wait(berth__engine *engine, VkFence fence, const char *doing, berth_error *err) {
  const VkResult result = engine->vk.WaitForFences(engine->device, 1, &fence, VK_TRUE, engine->timeout);
  if (result == VK_SUCCESS) return berth__vulkan_check(engine, result, doing, err);
  engine->hung = fence; /* whatever went wrong, it may still be running: none of its objects are used again */
  if (result != VK_TIMEOUT) return berth__vulkan_check(engine, VK_ERROR_DEVICE_LOST, doing, err);
  snprintf(
      engine->why, sizeof engine->why,
      "the device %.60s did not finish %s within %.3g s, and is taken for lost (BERTH_VULKAN_TIMEOUT sets the time)",
      engine->properties.deviceName, doing, (double)engine->timeout / 1e9);
  return lose(engine, err);
}

bool berth__vulkan_may_free(berth__engine *engine) {
  VkFence fences[BERTH__VULKAN_LANES + 1];
  uint32_t n = 0;
  if (engine->is_abandoned) return false;
  (void)berth__vulkan_ring_flush(engine, NULL); /* what cannot be submitted now uses nothing */
  if (engine->hung != VK_NULL_HANDLE) fences[n++] = engine->hung;
  for (uint32_t i = 0; i < BERTH__VULKAN_LANES; i++) {
    if (engine->ring.lanes[i].is_busy) fences[n++] = engine->ring.lanes[i].ends;
    engine->ring.lanes[i].is_busy = false;
  }
  engine->hung = VK_NULL_HANDLE;
  if (n == 0 || engine->vk.WaitForFences(engine->device, n, fences, VK_TRUE, GRACE) != VK_TIMEOUT) return true;
  engine->is_lost = engine->is_abandoned = true;
  snprintf(engine->why, sizeof engine->why, "the device %.80s does not finish what it was given",
           engine->properties.deviceName);
  berth__log(engine->core.ctx, 2, "vulkan: %s; what it works on is never freed", engine->why);
  return false;
}
