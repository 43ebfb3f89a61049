#include "vulkan.h"

#include <stdlib.h>

#include "support.h"

#ifdef BERTH__HAS_VULKAN
#if TEST_IS_SANITIZED
/* The layer's own, when it checks barriers. */
__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libVkLayer_khronos_validation\n"; }
#endif

static uint64_t heard;

static const char *ask(void) {
  berth_device_info info = BERTH_DEVICE_INFO_INIT;
  berth_error err;
  berth_context *ctx = test_context();
  const uint32_t n = berth_device_count(ctx);
  for (uint32_t i = 0; i < n && (info.name == NULL || strcmp(info.name, "vulkan") != 0); i++)
    TEST_OK(berth_device_at(ctx, i, &info, &err));
  berth_context_destroy(ctx);
  return info.available ? NULL : info.reason;
}

const char *vulkan_test_start(void) {
  setenv("BERTH_VULKAN_VALIDATION", "sync", 1);
  const char *reason = ask();
  if (reason == NULL || strstr(reason, "VALIDATION") == NULL) return reason;
  print_message("# skip: validation: %s\n", reason);
  unsetenv("BERTH_VULKAN_VALIDATION");
  return ask();
}

uint64_t vulkan_test_heard(void) {
  const uint64_t now = test_validation_messages(), count = now - heard;
  heard = now;
  return count;
}
#else
const char *vulkan_test_start(void) { return "this build has no device vulkan"; }
uint64_t vulkan_test_heard(void) { return 0; }
#endif

void vulkan_test_silent(void) { assert_int_equal(vulkan_test_heard(), 0); }

static void set(const char *name, const char *value) {
  if (value != NULL)
    setenv(name, value, 1);
  else
    unsetenv(name);
}

void vulkan_test_memory(const char *way) { set("BERTH_VULKAN_MEMORY", way); }
void vulkan_test_max_binding(const char *bytes) { set("BERTH_VULKAN_MAX_BINDING", bytes); }
