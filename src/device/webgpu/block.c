/* Buffers, and the block, which is one of them. The standard guarantees that they are zeroed. */
#include "base/math.h"
#include "device/webgpu/webgpu.h"

berth_status berth__webgpu_make_buffer(berth__engine *engine, uint64_t usage, uint64_t size, berth__wgpu *out,
                                       berth_error *err) {
  const berth__wgpu_buffer_desc desc = {.usage = usage, .size = size};
  BERTH__TRY(berth__webgpu_alive(engine, err));
  berth__webgpu_watch(engine);
  *out = BERTH__WEBGPU_CREATE(engine, Buffer, &desc);
  const berth_status status = berth__webgpu_check_made(engine, *out, "making a buffer", err);
  if (status != BERTH_OK) berth__webgpu_free_buffer(engine, out);
  return status;
}

void berth__webgpu_free_buffer(berth__engine *engine, berth__wgpu *buffer) {
  if (*buffer != NULL) engine->gpu->BufferDestroy(*buffer);
  BERTH__WEBGPU_RELEASE(engine, Buffer, *buffer);
}

static berth_status webgpu_block_build(berth__block *block, berth_error *err) {
  berth__engine *engine = block->engine;
  const uint64_t most = engine->limits.buffer;
  if (!berth__align_up(block->size != 0 ? block->size : 1, 4, &block->allocated) || block->allocated > most)
    return berth__fail(err, BERTH_DEVICE_NOMEM, "the arena takes %llu bytes, but on %s a buffer has at most %llu",
                       (unsigned long long)block->size, engine->name, (unsigned long long)most);
  return berth__webgpu_make_buffer(engine, BERTH__WGPU_STORAGE | BERTH__WGPU_COPY_SRC | BERTH__WGPU_COPY_DST,
                                   block->allocated, &block->buffer, err);
}

berth_status berth__webgpu_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                        berth__block **out, berth_error *err) {
  *out = NULL;
  (void)align; /* a buffer satisfies every alignment */
  if (host != NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "an arena on the device 'webgpu' cannot lie in memory of the caller");
  berth__block *block = berth__alloc_zero(engine->core.ctx, sizeof *block);
  if (block == NULL) return berth__fail_nomem(err, "an arena");
  *block = (berth__block){.engine = engine, .size = size};
  berth_status status = webgpu_block_build(block, err);
  if (status != BERTH_OK) {
    berth__webgpu_block_destroy(block);
    return status;
  }
  berth__log(engine->core.ctx, 0, "webgpu: a block of %llu bytes on %s", (unsigned long long)block->allocated,
             engine->name);
  *out = block;
  return BERTH_OK;
}

void berth__webgpu_block_destroy(berth__block *block) {
  if (block == NULL) return;
  berth__gpu_forget_block(block->engine, block);
  berth__webgpu_free_buffer(block->engine, &block->buffer);
  berth__free(block->engine->core.ctx, block);
}
