/* The devices of this build. */
#include "base/desc.h"
#include "device/device.h"

static const berth__device *const devices[] = {
    &berth__cpu_device,    &berth__interp_device,
#ifdef BERTH__HAS_VULKAN
    &berth__vulkan_device,
#endif
#ifdef BERTH__HAS_CUDA
    &berth__cuda_device,
#endif
#ifdef BERTH__HAS_WEBGPU
    &berth__webgpu_device,
#endif
};
#define N_DEVICES (sizeof devices / sizeof devices[0])

const char *berth__device_which(const char *name) {
  const char *colon = name != NULL ? strchr(name, ':') : NULL;
  return colon != NULL ? colon + 1 : NULL;
}

/* "interp" was called "loops" before its first release; scripts that use that name keep working. */
static bool is_name_of(const berth__device *device, const char *name, size_t length) {
  if (strncmp(device->name, name, length) == 0 && device->name[length] == '\0') return true;
  return device == &berth__interp_device && length == 5 && strncmp(name, "loops", length) == 0;
}

berth_status berth__device_find(const char *name, const berth__device **out, berth_error *err) {
  *out = NULL;
  if (name == NULL) name = "cpu";
  const size_t length = strcspn(name, ":");
  for (size_t i = 0; i < N_DEVICES; i++) {
    if (!is_name_of(devices[i], name, length)) continue;
    if (name[length] == ':' && devices[i]->count == NULL)
      return berth__fail(err, BERTH_UNSUPPORTED, "there is one device '%s'; '%s' names a part of it", devices[i]->name,
                         name);
    *out = devices[i];
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "there is no device '%s' in this build; `berth devices` lists what there is", name);
}

static uint32_t device_registry_count_of(const berth__device *device, const berth_context *ctx) {
  return device->count != NULL ? device->count(ctx) : 1;
}

uint32_t berth_device_count(const berth_context *ctx) {
  uint32_t n = 0;
  for (size_t i = 0; i < N_DEVICES; i++) n += device_registry_count_of(devices[i], ctx);
  return n;
}

berth_status berth_device_at(const berth_context *ctx, uint32_t index, berth_device_info *out, berth_error *err) {
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  uint32_t left = index;
  BERTH__TRY(berth__result_check(out, "berth_device_info", err));
  for (size_t i = 0; i < N_DEVICES; i++) {
    const uint32_t n = device_registry_count_of(devices[i], ctx);
    if (left < n) {
      info.name = devices[i]->name;
      devices[i]->describe(ctx, left, &info);
      return BERTH__RESULT_WRITE(out, &info, "berth_device_info", err);
    }
    left -= n;
  }
  return berth__fail(err, BERTH_INVALID, "there is no device number %u", index);
}
