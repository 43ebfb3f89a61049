/* What the kernels of pack_blocks share. */
#ifndef BERTH_OPS_PACK_BLOCKS_H
#define BERTH_OPS_PACK_BLOCKS_H

#include <stdint.h>

#include "berth/berth.h"

/* What stands for 0 in a group. */
float berth__pack_blocks_zero(const berth_tensor *zero, int64_t row, int64_t group);

#endif
