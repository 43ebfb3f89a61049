#include "vulkan.h"

#include <stdlib.h>

#include "support.h"

#ifdef BERTH__HAS_VULKAN
#include "device/vulkan/instance.h"

static uint64_t heard;

static const char *ask(void) {
  berth_device_info info = {0};
  berth_error err;
  berth_context *ctx = test_context();
  const uint32_t n = berth_device_count(ctx);
  for (uint32_t i = 0; i < n && (info.name == NULL || strcmp(info.name, "vulkan") != 0); i++)
    TEST_OK(berth_device_at(ctx, i, &info, &err));
  berth_context_destroy(ctx);
  return info.available ? NULL : info.reason;
}

const char *vulkan_test_start(void) {
  setenv("BERTH_VULKAN_VALIDATION", "1", 1);
  const char *reason = ask();
  if (reason == NULL || strstr(reason, "VALIDATION") == NULL) return reason;
  print_message("# skip: validation: %s\n", reason);
  unsetenv("BERTH_VULKAN_VALIDATION");
  return ask();
}

void vulkan_test_silent(void) {
  const uint64_t now = berth__vulkan_messages(), new = now - heard;
  heard = now;
  assert_int_equal(new, 0);
}
#else
const char *vulkan_test_start(void) { return "this build has no device vulkan"; }
void vulkan_test_silent(void) {}
#endif

static void set(const char *name, const char *value) {
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

void vulkan_test_memory(const char *way) { set("BERTH_VULKAN_MEMORY", way); }
void vulkan_test_max_binding(const char *bytes) { set("BERTH_VULKAN_MAX_BINDING", bytes); }
