/* The block: one allocation of device memory, zeroed. */
#include "base/math.h"
#include "device/cuda/cuda.h"

#define GIVEN_ALIGN 256u /* minimum alignment of the driver's allocations */

static berth_status cuda_block_allocate(berth__block *block, uint64_t align, berth_error *err) {
  berth__engine *engine = block->engine;
  uint64_t taken = 0;
  if (!berth__align_up(block->size != 0 ? block->size : 1, 4, &taken) ||
      !berth__add_u64(taken, align > GIVEN_ALIGN ? align : 0, &taken))
    taken = UINT64_MAX;
  if (taken > engine->memory)
    return berth__fail(err, BERTH_DEVICE_NOMEM, "the arena takes %llu bytes, but %s has %llu",
                       (unsigned long long)block->size, engine->name, (unsigned long long)engine->memory);
  const berth__cu_result result = berth__cuda_counted(engine, engine->cu->MemAlloc(&block->allocated, (size_t)taken));
  if (result != BERTH__CU_SUCCESS) {
    size_t left = 0, all = 0;
    block->allocated = 0;
    berth_status status = berth__cuda_check(engine, result, "an arena", err);
    if (status == BERTH_DEVICE_NOMEM && engine->cu->MemGetInfo(&left, &all) == BERTH__CU_SUCCESS)
      status =
          berth__fail(err, status, "%s has no memory left for an arena of %llu bytes: %llu of its %llu are free",
                      engine->name, (unsigned long long)block->size, (unsigned long long)left, (unsigned long long)all);
    return status;
  }
  block->taken = taken;
  block->base = (block->allocated + align - 1) & ~(align - 1);
  engine->counts.memory += taken;
  if (engine->counts.memory > engine->counts.peak_memory) engine->counts.peak_memory = engine->counts.memory;
  return BERTH_OK;
}

static berth_status cuda_block_build(berth__block *block, uint64_t align, berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__cuda_staging_need(engine, err));
  BERTH__TRY(cuda_block_allocate(block, align, err));
  return berth__cuda_check(engine, engine->cu->MemsetD8Async(block->allocated, 0, (size_t)block->taken, engine->stream),
                           "clearing an arena", err);
}

berth_status berth__cuda_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                      berth__block **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(berth__cuda_alive(engine, err));
  if (host != NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "an arena on the device 'cuda' cannot lie in memory of the caller");
  berth__block *block = berth__alloc_zero(engine->core.ctx, sizeof *block);
  if (block == NULL) return berth__fail_nomem(err, "an arena");
  *block = (berth__block){.engine = engine, .size = size};
  berth_status status = berth__cuda_enter(engine, err);
  if (status == BERTH_OK) {
    status = cuda_block_build(block, align, err);
    berth__cuda_leave(engine);
  }
  if (status != BERTH_OK) {
    berth__cuda_block_destroy(block);
    return status;
  }
  berth__log(engine->core.ctx, 0, "cuda: a block of %llu bytes on %s", (unsigned long long)block->taken, engine->name);
  *out = block;
  return BERTH_OK;
}

void berth__cuda_block_destroy(berth__block *block) {
  if (block == NULL) return;
  berth__engine *engine = block->engine;
  berth__gpu_forget_block(engine, block);
  if (berth__cuda_enter_to_free(engine)) {
    if (block->allocated != 0) engine->counts.memory -= block->taken;
    BERTH__CUDA_FREE(engine, MemFree, block->allocated);
    berth__cuda_leave(engine);
  }
  berth__free(engine->core.ctx, block);
}
