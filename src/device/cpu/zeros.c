#include "device/cpu/zeros.h"

_Alignas(64) const float berth__cpu_zeros[BERTH__CPU_ZEROS];
