/* shaderc as a library of its own, made from its static archives: those of some systems (Debian 12) are whole where
 * the shared one lacks half of its symbols. Opened at run time like the shared one, so that C++ stays out of berth. */
#include "device/vulkan/shaderc/functions.h"

extern const berth__shaderc berth__shaderc_table_1;

__attribute__((visibility("default"))) const berth__shaderc berth__shaderc_table_1 = {
#define BERTH__SHADERC_FUNCTION(name) .name = shaderc_##name,
    BERTH__SHADERC_FUNCTIONS(BERTH__SHADERC_FUNCTION)
#undef BERTH__SHADERC_FUNCTION
};
