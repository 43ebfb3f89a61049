/* What the tests of the device "vulkan" share. */
#ifndef BERTH_TESTS_DEVICE_VULKAN_H
#define BERTH_TESTS_DEVICE_VULKAN_H

#include <stdint.h>

#include "berth/berth.h"

/* Why the device cannot be tested here; NULL: it can. Turns the validation layer on where it is installed; it also
 * checks barriers, where kernels have windows. */
const char *vulkan_test_start(void);
/* How much the validation layer has said since the last time; and the assertion that it was nothing. */
uint64_t vulkan_test_heard(void);
void vulkan_test_silent(void);

/* In the environment, for devices that are opened from here on. NULL: not set. */
void vulkan_test_memory(const char *way);
void vulkan_test_max_binding(const char *bytes);

#endif
