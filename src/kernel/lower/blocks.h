/* Elements that lie in blocks, decoded where they are loaded (base/blocks.h has the formats). */
#ifndef BERTH_KERNEL_LOWER_BLOCKS_H
#define BERTH_KERNEL_LOWER_BLOCKS_H

#include "kernel/lower.h"

/* Element `place` of an operand of a block type, as f32. */
berth__x berth__l_load_block(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place);
/* Whether the type has blocks that kernels decode; an error where it has not. */
berth_status berth__l_check_blocks(berth_type type, berth_error *err);

#endif
