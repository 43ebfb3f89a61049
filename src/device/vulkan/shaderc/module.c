/* shaderc as a separate library, built from its static archives: on some systems (Debian 12) these are complete, while
 * the shared library lacks half of its symbols. Opened at run time like the shared one, which keeps C++ out of
 * berth. */
#include "device/vulkan/shaderc/functions.h"

extern const berth__shaderc berth__shaderc_table_1;

__attribute__((visibility("default"))) const berth__shaderc berth__shaderc_table_1 = {
#define BERTH__SHADERC_FUNCTION(name) .name = shaderc_##name,
    BERTH__SHADERC_FUNCTIONS(BERTH__SHADERC_FUNCTION)
#undef BERTH__SHADERC_FUNCTION
};
