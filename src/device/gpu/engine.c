/* Shared by the engines of all GPUs. */
#include "device/gpu/driver.h"
#include "kernel/render.h"

void berth__gpu_start(berth__engine *engine, berth_context *ctx, const berth__gpu_driver *driver, uint32_t n_threads) {
  *berth__gpu_core(engine) = (berth__gpu_engine){.ctx = ctx,
                                                 .driver = driver,
                                                 .max_threads = UINT32_MAX,
                                                 .max_shared = UINT32_MAX,
                                                 .max_groups = UINT32_MAX,
                                                 .n_threads = n_threads};
}

void berth__gpu_end(berth__engine *engine) { berth__pool_destroy(berth__gpu_core(engine)->pool); }

void berth__gpu_use_threads(berth__engine *engine, berth__pool *pool) {
  berth__gpu_core(engine)->pool = pool;
  berth__gpu_core(engine)->n_threads = berth__pool_n_threads(pool);
}

void berth__gpu_profile(const berth__engine *engine, berth__profile *out) {
  *out = ((const berth__gpu_engine *)(const void *)engine)->profile;
}

berth_status berth__gpu_check_kernel(berth__engine *engine, const berth__kernel *kernel, berth_error *err) {
  const berth__gpu_engine *core = berth__gpu_core(engine);
  const uint64_t shared = berth__kernel_shared_bytes(kernel);
  if (kernel->group_size > core->max_threads)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has workgroups of %u threads, which are too many for %s",
                       kernel->group_size, core->profile.name);
  if (shared > core->max_shared)
    return berth__fail(err, BERTH_UNSUPPORTED, "its workgroups share %llu bytes, and %s has %u",
                       (unsigned long long)shared, core->profile.name, core->max_shared);
  if (berth__grid_columns(kernel->n_groups) > core->max_groups || berth__grid_rows(kernel->n_groups) > core->max_groups)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has %llu workgroups, which are too many for %s",
                       (unsigned long long)kernel->n_groups, core->profile.name);
  return BERTH_OK;
}
