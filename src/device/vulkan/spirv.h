/* From GLSL to SPIR-V: shaderc, opened at run time, with a cache on disk. */
#ifndef BERTH_DEVICE_VULKAN_SPIRV_H
#define BERTH_DEVICE_VULKAN_SPIRV_H

#include "base/context.h"

typedef struct berth__spirv {
  uint32_t *words; /* from the context */
  size_t n_words;
} berth__spirv;

typedef struct berth__spirv_compiler berth__spirv_compiler;

/* UNSUPPORTED if the library is not found; the message says what to install. */
berth_status berth__spirv_compiler_create(berth_context *ctx, berth__spirv_compiler **out, berth_error *err);
void berth__spirv_compiler_destroy(berth__spirv_compiler *compiler); /* NULL is fine */

/* `name` is only for messages. Free out->words with berth__free. */
berth_status berth__spirv_compile(berth__spirv_compiler *compiler, const char *name, const char *source, size_t size,
                                  berth__spirv *out, berth_error *err);

#endif
