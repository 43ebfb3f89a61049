/* The devices of this build. */
#include "device/device.h"

static const berth__device *const devices[] = {&berth__cpu_device};
#define N_DEVICES (sizeof devices / sizeof devices[0])

berth_status berth__device_find(const char *name, const berth__device **out, berth_error *err) {
  *out = NULL;
  if (name == NULL) name = "cpu";
  for (size_t i = 0; i < N_DEVICES; i++) {
    if (strcmp(devices[i]->name, name) == 0) {
      *out = devices[i];
      return BERTH_OK;
    }
  }
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "there is no device '%s' in this build; `berth devices` lists what there is", name);
}

uint32_t berth_device_count(const berth_context *ctx) {
  (void)ctx;
  return (uint32_t)N_DEVICES;
}

berth_status berth_device_at(const berth_context *ctx, uint32_t index, berth_device_info *out, berth_error *err) {
  memset(out, 0, sizeof *out);
  if (index >= N_DEVICES) return berth__fail(err, BERTH_INVALID, "there is no device number %u", index);
  devices[index]->describe(ctx, out);
  out->name = devices[index]->name;
  return BERTH_OK;
}
