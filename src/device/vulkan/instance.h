/* The drivers of this machine, and their physical devices. */
#ifndef BERTH_DEVICE_VULKAN_INSTANCE_H
#define BERTH_DEVICE_VULKAN_INSTANCE_H

#include <stdbool.h>

#include "base/context.h"
#include "device/vulkan/loader.h"
#include "device/vulkan/matrices.h"

/* Why there is nothing to open. */
typedef enum berth__vulkan_lack {
  BERTH__VULKAN_LACKS_NOTHING,
  BERTH__VULKAN_NO_LOADER,
  BERTH__VULKAN_OLD_LOADER,
  BERTH__VULKAN_NO_DRIVER,
  BERTH__VULKAN_NO_COMPUTE,
  BERTH__VULKAN_NO_SHADERC,
  BERTH__VULKAN_NO_LAYER,
  BERTH__VULKAN_NO_MEMORY
} berth__vulkan_lack;
const char *berth__vulkan_reason(berth__vulkan_lack lack); /* for people; NULL if nothing is missing */

#define BERTH__VULKAN_MAX_DEVICES 16u /* further devices are ignored */

/* Messages of the validation layer for one instance: their number, and the beginning of the last one. */
#define BERTH__VULKAN_MESSAGE 240u
typedef struct berth__vulkan_heard {
  const berth_context *ctx;
  _Atomic uint64_t count;
  char last[BERTH__VULKAN_MESSAGE];
} berth__vulkan_heard;

/* Must not be moved: the validation layer has a pointer to it. */
typedef struct berth__vulkan_instance {
  const berth_context *ctx;
  const VkAllocationCallbacks *host;
  VkInstance handle;
  VkDebugUtilsMessengerEXT messenger;
  struct {
#define BERTH__VK_INSTANCE(name) PFN_vk##name name;
#define BERTH__VK_OPTIONAL(name) PFN_vk##name name;
#define BERTH__VK_DEVICE(name)
#include "device/vulkan/calls.def"
#undef BERTH__VK_INSTANCE
#undef BERTH__VK_OPTIONAL
#undef BERTH__VK_DEVICE
  } vk;
  VkPhysicalDevice devices[BERTH__VULKAN_MAX_DEVICES]; /* with a compute queue and Vulkan 1.1, in the loader's order */
  uint32_t n_devices;
  berth__vulkan_heard heard;
} berth__vulkan_instance;

/* host NULL: the driver's own memory. The context's option vulkan_validation turns on the validation layer, with "sync"
 * also its synchronisation checks. */
berth__vulkan_lack berth__vulkan_instance_create(const berth_context *ctx, const VkAllocationCallbacks *host,
                                                 berth__vulkan_instance *out);
void berth__vulkan_instance_destroy(berth__vulkan_instance *instance);

/* The default device: a GPU is preferred to a CPU that plays one. */
uint32_t berth__vulkan_best(const berth__vulkan_instance *instance);
/* `which` is a number, or part of a name; NULL: the best one. False: there is no such device. */
bool berth__vulkan_choose(const berth__vulkan_instance *instance, const char *which, uint32_t *index);
/* A queue family that supports compute, with timestamps if possible. False: none. */
bool berth__vulkan_queue_family(const berth__vulkan_instance *instance, VkPhysicalDevice device, uint32_t *family,
                                uint32_t *timestamp_bits);

uint64_t berth__vulkan_messages(const berth__vulkan_instance *instance);
void berth__vulkan_last_message(const berth__vulkan_instance *instance, char text[BERTH__VULKAN_MESSAGE]);

#endif
