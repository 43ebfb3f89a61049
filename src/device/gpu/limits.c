/* What the planner knows of a GPU, any of them: the sizes of plans must not depend on the driver, so that `plan` tells
 * what `run` will take, on a machine without a GPU too. */
#include "device/gpu/recipe.h"

const berth__loop_limits berth__least_limits = {.group_size = 128, .lanes = 1, .shared_bytes = 16384};

static uint64_t scratch(const berth__op *op, const berth_op_call *call, uint32_t n_threads, uint32_t flags) {
  (void)n_threads, (void)flags;
  return berth__lower_scratch(op, call, &berth__least_limits);
}

berth__limits berth__gpu_limits(const char *device) {
  return (berth__limits){.device = device,
                         .min_align = 64,
                         .has_prelude = true,
                         .scratch = scratch,
                         .rewrite = berth__gpu_rewrite,
                         .choose_storages = berth__gpu_choose_storages};
}
