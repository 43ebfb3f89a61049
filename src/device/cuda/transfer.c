/* Reading, writing and copying bytes of blocks. All copies are on the engine's single stream, in order; writes return
 * when their bytes are in pinned memory, reads when the bytes have arrived. */
#include "device/cuda/cuda.h"

static const char doing[] = "copying";

static uint64_t cuda_transfer_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static berth_status write_all(berth__block *block, uint64_t offset, const unsigned char *src, uint64_t size,
                              berth_error *err) {
  berth__engine *engine = block->engine;
  for (uint64_t at = 0; at < size;) {
    berth__cuda_lane *lane;
    BERTH__TRY(berth__cuda_staging_open(engine, &lane, err));
    const uint64_t used = engine->staging.used, n = cuda_transfer_least(size - at, BERTH__CUDA_LANE_SIZE - used);
    memcpy(lane->data + used, src + at, (size_t)n);
    BERTH__TRY(berth__cuda_check(
        engine, engine->cu->MemcpyHtoDAsync(block->base + offset + at, lane->data + used, (size_t)n, engine->stream),
        doing, err));
    BERTH__TRY(berth__cuda_staging_used(engine, n, err));
    at += n;
  }
  return BERTH_OK;
}

berth_status berth__cuda_write(berth__block *block, uint64_t offset, const void *src, uint64_t size, berth_error *err) {
  BERTH__TRY(berth__cuda_enter(block->engine, err));
  const berth_status status = write_all(block, offset, src, size, err);
  berth__cuda_leave(block->engine);
  return status;
}

static berth_status start_read(const berth__block *block, uint64_t offset, uint64_t size, berth__cuda_lane *lane,
                               berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__cuda_lane_wait(engine, lane, err));
  BERTH__TRY(berth__cuda_check(
      engine, engine->cu->MemcpyDtoHAsync(lane->data, block->base + offset, (size_t)size, engine->stream), doing, err));
  return berth__cuda_lane_mark(engine, lane, err);
}

/* Each lane is read while the next one is being filled. */
static berth_status read_all(const berth__block *block, uint64_t offset, unsigned char *dst, uint64_t size,
                             berth_error *err) {
  berth__engine *engine = block->engine;
  uint64_t started = 0;
  for (uint64_t at = 0; at < size; at += BERTH__CUDA_LANE_SIZE) {
    for (; started < size && started < at + BERTH__CUDA_LANES * BERTH__CUDA_LANE_SIZE; started += BERTH__CUDA_LANE_SIZE)
      BERTH__TRY(start_read(block, offset + started, cuda_transfer_least(size - started, BERTH__CUDA_LANE_SIZE),
                            &engine->staging.down[started / BERTH__CUDA_LANE_SIZE % BERTH__CUDA_LANES], err));
    berth__cuda_lane *lane = &engine->staging.down[at / BERTH__CUDA_LANE_SIZE % BERTH__CUDA_LANES];
    BERTH__TRY(berth__cuda_lane_wait(engine, lane, err));
    memcpy(dst + at, lane->data, (size_t)cuda_transfer_least(size - at, BERTH__CUDA_LANE_SIZE));
  }
  return BERTH_OK;
}

berth_status berth__cuda_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err) {
  BERTH__TRY(berth__cuda_enter(block->engine, err));
  const berth_status status = read_all(block, offset, dst, size, err);
  berth__cuda_leave(block->engine);
  return status;
}

/* ---- Copies ---- */

/* Another engine has another stream, and may be another GPU, so the copy goes through the host. */
static berth_status copy_across(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  berth__engine *from = src->engine;
  for (uint64_t at = 0; at < size; at += BERTH__CUDA_LANE_SIZE) {
    const uint64_t n = cuda_transfer_least(size - at, BERTH__CUDA_LANE_SIZE);
    berth__cuda_lane *lane = &from->staging.down[0];
    BERTH__TRY(berth__cuda_enter(from, err));
    berth_status status = start_read(src, src_offset + at, n, lane, err);
    if (status == BERTH_OK) status = berth__cuda_lane_wait(from, lane, err);
    berth__cuda_leave(from);
    BERTH__TRY(status);
    BERTH__TRY(berth__cuda_write(dst, dst_offset + at, lane->data, n, err));
  }
  return BERTH_OK;
}

/* Inside one block with overlapping ranges: copies through a lane, starting at the end that is not overwritten first.
 * The stream keeps the order, so only the lane's next user waits. */
static berth_status copy_overlapping(berth__block *block, uint64_t dst, uint64_t src, uint64_t size, berth_error *err) {
  berth__engine *engine = block->engine;
  berth__cuda_lane *lane = &engine->staging.down[0];
  BERTH__TRY(berth__cuda_lane_wait(engine, lane, err));
  for (uint64_t done = 0; done < size; done += BERTH__CUDA_LANE_SIZE) {
    const uint64_t n = cuda_transfer_least(size - done, BERTH__CUDA_LANE_SIZE), at = dst < src ? done : size - done - n;
    BERTH__TRY(berth__cuda_check(
        engine, engine->cu->MemcpyDtoHAsync(lane->data, block->base + src + at, (size_t)n, engine->stream), doing,
        err));
    BERTH__TRY(berth__cuda_check(
        engine, engine->cu->MemcpyHtoDAsync(block->base + dst + at, lane->data, (size_t)n, engine->stream), doing,
        err));
  }
  return berth__cuda_lane_mark(engine, lane, err);
}

static berth_status copy_inside(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  berth__engine *engine = dst->engine;
  const uint64_t apart = dst_offset < src_offset ? src_offset - dst_offset : dst_offset - src_offset;
  if (dst == src && apart < size) return copy_overlapping(dst, dst_offset, src_offset, size, err);
  return berth__cuda_check(
      engine, engine->cu->MemcpyDtoDAsync(dst->base + dst_offset, src->base + src_offset, (size_t)size, engine->stream),
      doing, err);
}

berth_status berth__cuda_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                              uint64_t size, berth_error *err) {
  BERTH__TRY(berth__cuda_alive(dst->engine, err));
  BERTH__TRY(berth__cuda_alive(src->engine, err));
  if (size == 0 || (dst == src && dst_offset == src_offset)) return BERTH_OK;
  if (dst->engine != src->engine) return copy_across(dst, dst_offset, src, src_offset, size, err);
  BERTH__TRY(berth__cuda_enter(dst->engine, err));
  const berth_status status = copy_inside(dst, dst_offset, src, src_offset, size, err);
  berth__cuda_leave(dst->engine);
  return status;
}

berth_status berth__cuda_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__cuda_alive(engine, err));
  if (size == 0) return BERTH_OK;
  BERTH__TRY(berth__cuda_enter(engine, err));
  const berth_status status = berth__cuda_check(
      engine, engine->cu->MemsetD8Async(block->base + offset, byte, (size_t)size, engine->stream), doing, err);
  berth__cuda_leave(engine);
  return status;
}

/* ---- Memory of other libraries, in the same context ---- */

berth_status berth__cuda_memory(const berth__block *block, berth_memory *out, berth_error *err) {
  berth__engine *engine = block->engine;
  out->kind = BERTH_MEMORY_CUDA;
  out->index = engine->ordinal;
  out->address = block->base;
  BERTH__TRY(berth__cuda_enter(engine, err));
  const berth_status status = berth__cuda_wait(engine, NULL, "clearing and writing its memory", err);
  berth__cuda_leave(engine);
  return status;
}

/* The engine's stream does not synchronise with the default one, which others use. */
static berth_status cuda_transfer_after_others(berth__engine *engine, berth_error *err) {
  berth__cuda_lane *lane = &engine->staging.down[0];
  BERTH__TRY(berth__cuda_lane_wait(engine, lane, err));
  BERTH__TRY(berth__cuda_check(engine, engine->cu->EventRecord(lane->event, NULL), doing, err));
  return berth__cuda_wait(engine, lane->event, doing, err);
}

static berth_status cuda_transfer_direct(berth__engine *engine, berth__cu_address dst, berth__cu_address src,
                                         uint64_t size, berth_error *err) {
  BERTH__TRY(berth__cuda_enter(engine, err));
  berth_status status = cuda_transfer_after_others(engine, err);
  if (status == BERTH_OK)
    status = berth__cuda_check(engine, engine->cu->MemcpyDtoDAsync(dst, src, (size_t)size, engine->stream), doing, err);
  if (status == BERTH_OK) status = berth__cuda_wait(engine, NULL, doing, err);
  berth__cuda_leave(engine);
  return status;
}

berth_status berth__cuda_write_memory(berth__block *block, uint64_t offset, uint64_t src, uint64_t size,
                                      berth_error *err) {
  return cuda_transfer_direct(block->engine, block->base + offset, src, size, err);
}

berth_status berth__cuda_read_memory(const berth__block *block, uint64_t offset, uint64_t dst, uint64_t size,
                                     berth_error *err) {
  return cuda_transfer_direct(block->engine, dst, block->base + offset, size, err);
}
