/* volk, compiled in: it opens the Vulkan loader at run time, so that nothing links to it. Its hundreds of global names
 * stay inside this file (cmake/Vulkan.cmake). */
#define VOLK_IMPLEMENTATION
#include "device/vulkan/loader.h"

#include <pthread.h>
#include <volk.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static PFN_vkGetInstanceProcAddr found; /* NULL: no loader */

static void vulkan_loader_load(void) {
  if (volkInitialize() == VK_SUCCESS) found = vkGetInstanceProcAddr;
}

PFN_vkGetInstanceProcAddr berth__vulkan_loader(void) {
  pthread_once(&once, vulkan_loader_load);
  return found;
}
