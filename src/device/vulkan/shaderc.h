/* shaderc, opened at run time. */
#ifndef BERTH_DEVICE_VULKAN_SHADERC_H
#define BERTH_DEVICE_VULKAN_SHADERC_H

#include "base/context.h"
#include "device/vulkan/shaderc/functions.h"

#define BERTH__SHADERC_VERSION 128

typedef struct berth__shaderc_library {
  void *handle;
  berth__shaderc call;
  char version[BERTH__SHADERC_VERSION]; /* part of the cache key */
} berth__shaderc_library;

/* The file that BERTH_SHADERC names; otherwise the module beside the library or the program, and then the system's
 * library. UNSUPPORTED if there is none; the message says what to install. */
berth_status berth__shaderc_open(const char *path, berth__shaderc_library *out,
                                 berth_error *err); /* path NULL: the usual places */
void berth__shaderc_close(berth__shaderc_library *library);

#endif
