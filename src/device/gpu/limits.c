/* The planner's limits for all GPUs. What differs between GPUs, as far as it changes a plan, is their profile, which
 * the caller adds. */
#include "device/gpu/recipe.h"

static uint64_t gpu_limits_scratch(const berth__limits *limits, const berth__op *op, const berth_op_call *call,
                                   uint32_t n_threads, uint32_t flags) {
  (void)n_threads, (void)flags;
  return berth__lower_scratch(op, call, &limits->profile.loops);
}

berth__limits berth__gpu_limits(const char *device) {
  return (berth__limits){.device = device,
                         .min_align = 64,
                         .has_prelude = true,
                         .scratch = gpu_limits_scratch,
                         .rewrite = berth__gpu_rewrite,
                         .choose_storages = berth__gpu_choose_storages,
                         .work = berth__gpu_work};
}
