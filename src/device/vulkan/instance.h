/* The drivers of this machine, and the physical devices that they show. */
#ifndef BERTH_DEVICE_VULKAN_INSTANCE_H
#define BERTH_DEVICE_VULKAN_INSTANCE_H

#include <stdbool.h>

#include "base/context.h"
#include "device/vulkan/loader.h"

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
const char *berth__vulkan_reason(berth__vulkan_lack lack); /* for people; NULL where nothing is lacking */

#define BERTH__VULKAN_MAX_DEVICES 16u /* those after are not looked at */

/* What the validation layer has said of one instance so far, and the beginning of the last. */
#define BERTH__VULKAN_MESSAGE 240u
typedef struct berth__vulkan_heard {
  const berth_context *ctx;
  _Atomic uint64_t count;
  char last[BERTH__VULKAN_MESSAGE];
} berth__vulkan_heard;

/* Must stay where it was made: the validation layer speaks to it. */
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
  VkPhysicalDevice
      devices[BERTH__VULKAN_MAX_DEVICES]; /* with a compute queue and Vulkan 1.1, as the loader lists them */
  uint32_t n_devices;
  berth__vulkan_heard heard;
} berth__vulkan_instance;

/* host NULL: the driver's own memory. With the context's option vulkan_validation the validation layer is on,
 * with "sync" also its check of barriers. */
berth__vulkan_lack berth__vulkan_instance_create(const berth_context *ctx, const VkAllocationCallbacks *host,
                                                 berth__vulkan_instance *out);
void berth__vulkan_instance_destroy(berth__vulkan_instance *instance);

/* The one that is taken when none is named: a GPU before what plays one. */
uint32_t berth__vulkan_best(const berth__vulkan_instance *instance);
/* `which` is a number, or a part of a name; NULL: the best. False: there is none such. */
bool berth__vulkan_choose(const berth__vulkan_instance *instance, const char *which, uint32_t *index);
/* A family of queues that can compute, with timestamps if there is one. False: none. */
bool berth__vulkan_queue_family(const berth__vulkan_instance *instance, VkPhysicalDevice device, uint32_t *family,
                                uint32_t *timestamp_bits);

uint64_t berth__vulkan_messages(const berth__vulkan_instance *instance);
void berth__vulkan_last_message(const berth__vulkan_instance *instance, char text[BERTH__VULKAN_MESSAGE]);

#endif
