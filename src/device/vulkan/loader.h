/* The Vulkan loader of this machine. */
#ifndef BERTH_DEVICE_VULKAN_LOADER_H
#define BERTH_DEVICE_VULKAN_LOADER_H

#ifndef VK_NO_PROTOTYPES
#define VK_NO_PROTOTYPES
#endif
#include <vulkan/vulkan_core.h>

/* Opens it on the first call; NULL if there is none. */
PFN_vkGetInstanceProcAddr berth__vulkan_loader(void);

#endif
