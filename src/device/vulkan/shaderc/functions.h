/* The functions of shaderc that are used: X(name) for shaderc_<name>. */
#ifndef BERTH_DEVICE_VULKAN_SHADERC_FUNCTIONS_H
#define BERTH_DEVICE_VULKAN_SHADERC_FUNCTIONS_H

#include <shaderc/shaderc.h>

#define BERTH__SHADERC_FUNCTIONS(X)         \
  X(compiler_initialize)                    \
  X(compiler_release)                       \
  X(compile_options_initialize)             \
  X(compile_options_release)                \
  X(compile_options_set_optimization_level) \
  X(compile_options_set_target_env)         \
  X(compile_into_spv)                       \
  X(result_release)                         \
  X(result_get_length)                      \
  X(result_get_compilation_status)          \
  X(result_get_bytes)                       \
  X(result_get_error_message)

typedef struct berth__shaderc {
#define BERTH__SHADERC_FUNCTION(name) __typeof__(&shaderc_##name) name;
  BERTH__SHADERC_FUNCTIONS(BERTH__SHADERC_FUNCTION)
#undef BERTH__SHADERC_FUNCTION
} berth__shaderc;

/* The only symbol that the module exports: its table of functions. */
#define BERTH__SHADERC_MODULE "libberth_shaderc.so"
#define BERTH__SHADERC_TABLE "berth__shaderc_table_1"

#endif
