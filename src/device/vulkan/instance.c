#include "device/vulkan/instance.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>

static const char layer_name[] = "VK_LAYER_KHRONOS_validation";
static pthread_mutex_t message_lock = PTHREAD_MUTEX_INITIALIZER; /* for the text of the last message, of any instance */

const char *berth__vulkan_reason(berth__vulkan_lack lack) {
  static const char *const reasons[] = {
      [BERTH__VULKAN_NO_LOADER] = "there is no Vulkan loader (Debian: libvulkan1)",
      [BERTH__VULKAN_OLD_LOADER] = "the Vulkan loader knows only Vulkan 1.0; 1.1 is needed",
      [BERTH__VULKAN_NO_DRIVER] = "no Vulkan driver was found (Debian: mesa-vulkan-drivers)",
      [BERTH__VULKAN_NO_COMPUTE] = "no Vulkan device here has a compute queue and Vulkan 1.1",
      [BERTH__VULKAN_NO_SHADERC] =
          "neither libberth_shaderc.so nor a whole libshaderc.so.1, which compile kernels, was found",
      [BERTH__VULKAN_NO_LAYER] =
          "BERTH_VULKAN_VALIDATION (vulkan_validation) is set, but the validation layer is not installed (Debian: "
          "vulkan-validationlayers)",
      [BERTH__VULKAN_NO_MEMORY] = "the driver ran out of memory"};
  return reasons[lack];
}

uint64_t berth__vulkan_messages(const berth__vulkan_instance *instance) { return atomic_load(&instance->heard.count); }

void berth__vulkan_last_message(const berth__vulkan_instance *instance, char text[BERTH__VULKAN_MESSAGE]) {
  pthread_mutex_lock(&message_lock);
  memcpy(text, instance->heard.last, sizeof instance->heard.last);
  pthread_mutex_unlock(&message_lock);
}

/* ---- The validation layer ---- */

/* Loader and drivers also send messages, which are not about berth and are not counted. */
static VkBool32 VKAPI_CALL vulkan_instance_hear(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                                VkDebugUtilsMessageTypeFlagsEXT types,
                                                const VkDebugUtilsMessengerCallbackDataEXT *data, void *user) {
  const bool is_ours =
      (types & (VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT)) != 0;
  berth__vulkan_heard *heard = user;
  (void)severity;
  if (is_ours) {
    pthread_mutex_lock(&message_lock);
    snprintf(heard->last, sizeof heard->last, "%s", data->pMessage);
    pthread_mutex_unlock(&message_lock);
    atomic_fetch_add(&heard->count, 1);
  }
  berth__log(heard->ctx, is_ours ? 2 : 0, is_ours ? "vulkan validation: %s" : "vulkan: %s", data->pMessage);
  return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(berth__vulkan_heard *heard) {
  return (VkDebugUtilsMessengerCreateInfoEXT){.sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
                                              .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                                                                 VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
                                              .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT |
                                                             VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT |
                                                             VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT,
                                              .pfnUserCallback = vulkan_instance_hear,
                                              .pUserData = heard};
}

typedef struct validation {
  bool is_on;
  bool of_barriers; /* "sync": reports accesses without a barrier; it treats bindings as the bytes that are used */
} validation;

static validation wanted_validation(const berth_context *ctx) {
  const char *value = ctx->options.vulkan_validation;
  if (value == NULL || strcmp(value, "0") == 0) return (validation){0};
  return (validation){.is_on = true, .of_barriers = strcmp(value, "sync") == 0};
}

/* ---- Making one ---- */

static berth__vulkan_lack lack_of(VkResult result) {
  switch (result) {
    case VK_SUCCESS: return BERTH__VULKAN_LACKS_NOTHING;
    case VK_ERROR_LAYER_NOT_PRESENT:
    case VK_ERROR_EXTENSION_NOT_PRESENT: return BERTH__VULKAN_NO_LAYER; /* nothing else is requested */
    case VK_ERROR_OUT_OF_HOST_MEMORY:
    case VK_ERROR_OUT_OF_DEVICE_MEMORY: return BERTH__VULKAN_NO_MEMORY;
    default: return BERTH__VULKAN_NO_DRIVER;
  }
}

static VkResult create_handle(berth__vulkan_instance *out, berth__vulkan_heard *heard, PFN_vkCreateInstance create,
                              validation wanted) {
  static const VkValidationFeatureEnableEXT barriers = VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT;
  static const char *const layers[] = {layer_name};
  static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME,
                                           VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME};
  VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(heard);
  const VkValidationFeaturesEXT features = {.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                            .enabledValidationFeatureCount = wanted.of_barriers,
                                            .pEnabledValidationFeatures = &barriers};
  const VkApplicationInfo application = {.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                         .pApplicationName = "berth",
                                         .pEngineName = "berth",
                                         .apiVersion = VK_API_VERSION_1_3};
  messenger.pNext = wanted.of_barriers ? &features : NULL;
  const VkInstanceCreateInfo info = {.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                     .pNext = wanted.is_on ? &messenger : NULL,
                                     .pApplicationInfo = &application,
                                     .enabledLayerCount = wanted.is_on,
                                     .ppEnabledLayerNames = layers,
                                     .enabledExtensionCount = wanted.is_on + (uint32_t)wanted.of_barriers,
                                     .ppEnabledExtensionNames = extensions};
  return create(&info, out->host, &out->handle);
}

/* Drivers and layers are unloaded with the last instance. Once they have been needed they are kept loaded, because
 * loading takes a while, and some leak a little memory every time. */
static void keep_drivers(berth__vulkan_heard *heard, PFN_vkCreateInstance create, validation wanted) {
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  static berth__vulkan_instance keepers[2]; /* the second one with the layer */
  berth__vulkan_instance *keeper = &keepers[wanted.is_on];
  pthread_mutex_lock(&lock);
  if (keeper->handle == VK_NULL_HANDLE && create_handle(keeper, heard, create, wanted) != VK_SUCCESS)
    keeper->handle = VK_NULL_HANDLE;
  pthread_mutex_unlock(&lock);
}

static void vulkan_instance_load_calls(berth__vulkan_instance *out, PFN_vkGetInstanceProcAddr load) {
#define BERTH__VK_INSTANCE(name) out->vk.name = (PFN_vk##name)load(out->handle, "vk" #name);
#define BERTH__VK_OPTIONAL(name) out->vk.name = (PFN_vk##name)load(out->handle, "vk" #name);
#define BERTH__VK_DEVICE(name)
#include "device/vulkan/calls.def"
#undef BERTH__VK_INSTANCE
#undef BERTH__VK_OPTIONAL
#undef BERTH__VK_DEVICE
}

static berth__vulkan_lack vulkan_instance_list_devices(berth__vulkan_instance *out) {
  VkPhysicalDevice all[BERTH__VULKAN_MAX_DEVICES];
  uint32_t n = BERTH__VULKAN_MAX_DEVICES;
  const VkResult result = out->vk.EnumeratePhysicalDevices(out->handle, &n, all);
  if (result != VK_SUCCESS && result != VK_INCOMPLETE) return lack_of(result);
  if (n == 0) return BERTH__VULKAN_NO_DRIVER;
  for (uint32_t i = 0; i < n; i++) {
    VkPhysicalDeviceProperties properties;
    uint32_t family, bits;
    out->vk.GetPhysicalDeviceProperties(all[i], &properties);
    if (properties.apiVersion >= VK_API_VERSION_1_1 && berth__vulkan_queue_family(out, all[i], &family, &bits))
      out->devices[out->n_devices++] = all[i];
  }
  return out->n_devices != 0 ? BERTH__VULKAN_LACKS_NOTHING : BERTH__VULKAN_NO_COMPUTE;
}

static berth__vulkan_lack vulkan_instance_create(berth__vulkan_instance *out) {
  const validation wanted = wanted_validation(out->ctx);
  PFN_vkGetInstanceProcAddr load = berth__vulkan_loader();
  if (load == NULL) return BERTH__VULKAN_NO_LOADER;
  if (load(NULL, "vkEnumerateInstanceVersion") == NULL) return BERTH__VULKAN_OLD_LOADER;
  PFN_vkCreateInstance create_instance = (PFN_vkCreateInstance)load(NULL, "vkCreateInstance");
  if (create_instance == NULL) return BERTH__VULKAN_NO_LOADER;
  const berth__vulkan_lack lack = lack_of(create_handle(out, &out->heard, create_instance, wanted));
  if (lack != BERTH__VULKAN_LACKS_NOTHING) {
    out->handle = VK_NULL_HANDLE;
    return lack;
  }
  keep_drivers(&out->heard, create_instance, wanted);
  vulkan_instance_load_calls(out, load);
  if (wanted.is_on) {
    const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(&out->heard);
    const VkResult result = out->vk.CreateDebugUtilsMessengerEXT(out->handle, &info, out->host, &out->messenger);
    if (result != VK_SUCCESS) return lack_of(result);
  }
  return vulkan_instance_list_devices(out);
}

berth__vulkan_lack berth__vulkan_instance_create(const berth_context *ctx, const VkAllocationCallbacks *host,
                                                 berth__vulkan_instance *out) {
  *out = (berth__vulkan_instance){.ctx = ctx, .host = host, .heard = {.ctx = ctx}};
  const berth__vulkan_lack lack = vulkan_instance_create(out);
  if (lack != BERTH__VULKAN_LACKS_NOTHING) berth__vulkan_instance_destroy(out);
  return lack;
}

void berth__vulkan_instance_destroy(berth__vulkan_instance *instance) {
  if (instance->handle == VK_NULL_HANDLE) return;
  if (instance->messenger != VK_NULL_HANDLE)
    instance->vk.DestroyDebugUtilsMessengerEXT(instance->handle, instance->messenger, instance->host);
  instance->vk.DestroyInstance(instance->handle, instance->host);
  instance->handle = VK_NULL_HANDLE;
}

/* ---- Choosing ---- */

bool berth__vulkan_queue_family(const berth__vulkan_instance *instance, VkPhysicalDevice device, uint32_t *family,
                                uint32_t *timestamp_bits) {
  VkQueueFamilyProperties families[16];
  uint32_t n = sizeof families / sizeof families[0];
  bool found = false;
  *family = *timestamp_bits = 0;
  instance->vk.GetPhysicalDeviceQueueFamilyProperties(device, &n, families);
  for (uint32_t i = 0; i < n; i++) {
    const bool computes = (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) != 0 && families[i].queueCount != 0;
    if (!computes || (found && (*timestamp_bits != 0 || families[i].timestampValidBits == 0))) continue;
    *family = i;
    *timestamp_bits = families[i].timestampValidBits;
    found = true;
  }
  return found;
}

static uint32_t vulkan_instance_rank_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU: return 4;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU: return 3;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU: return 2;
    case VK_PHYSICAL_DEVICE_TYPE_CPU: return 0;
    default: return 1;
  }
}

uint32_t berth__vulkan_best(const berth__vulkan_instance *instance) {
  uint32_t best = 0, best_rank = 0;
  for (uint32_t i = 0; i < instance->n_devices; i++) {
    VkPhysicalDeviceProperties properties;
    instance->vk.GetPhysicalDeviceProperties(instance->devices[i], &properties);
    if (vulkan_instance_rank_of(properties.deviceType) <= best_rank) continue;
    best = i;
    best_rank = vulkan_instance_rank_of(properties.deviceType);
  }
  return best;
}

static bool has_part(const char *name, const char *part) {
  const size_t length = strlen(part);
  for (; *name != '\0'; name++)
    if (strncasecmp(name, part, length) == 0) return true;
  return false;
}

bool berth__vulkan_choose(const berth__vulkan_instance *instance, const char *which, uint32_t *index) {
  *index = berth__vulkan_best(instance);
  if (which == NULL) return true;
  if (which[0] != '\0' && strspn(which, "0123456789") == strlen(which)) {
    const unsigned long number = strtoul(which, NULL, 10);
    *index = number < instance->n_devices ? (uint32_t)number : 0;
    return number < instance->n_devices;
  }
  for (uint32_t i = 0; i < instance->n_devices && which[0] != '\0'; i++) {
    VkPhysicalDeviceProperties properties;
    instance->vk.GetPhysicalDeviceProperties(instance->devices[i], &properties);
    if (!has_part(properties.deviceName, which)) continue;
    *index = i;
    return true;
  }
  return false;
}
