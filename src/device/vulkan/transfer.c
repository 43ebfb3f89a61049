/* Reading, writing and copying bytes of blocks.
 *
 * If the host can access a block, it copies directly: the device is idle then, because a run waits for its end. But
 * reading uncached memory is slow, so the device does such reads and copies. */
#include "base/math.h"
#include "device/vulkan/vulkan.h"

#define SLOW_READ 256u /* up to here slow reads do not matter */

static bool host_reads(const berth__block *block, uint64_t size) {
  return block->data != NULL && (block->is_cached || size <= SLOW_READ);
}

static uint64_t vulkan_transfer_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

static void record_copy(const berth__engine *engine, VkCommandBuffer commands, VkBuffer src, uint64_t src_offset,
                        VkBuffer dst, uint64_t dst_offset, uint64_t size) {
  const VkBufferCopy region = {.srcOffset = src_offset, .dstOffset = dst_offset, .size = size};
  engine->vk.CmdCopyBuffer(commands, src, dst, 1, &region);
}

/* As soon as the call returns, the caller may read and overwrite host-visible memory. */
static berth_status vulkan_transfer_submit(berth__engine *engine, berth__vulkan_lane *lane, bool host_sees,
                                           berth_error *err) {
  BERTH__TRY(berth__vulkan_lane_submit(engine, lane, err));
  return host_sees ? berth__vulkan_lane_wait(engine, lane, err) : BERTH_OK;
}

/* Appends to the open lane, which has room. */
static void vulkan_transfer_append(const berth__block *block, uint64_t offset, const void *src, uint64_t size) {
  berth__vulkan_ring *ring = &block->engine->ring;
  memcpy(ring->open->data + ring->used, src, (size_t)size);
  ring->copies[ring->n_copies++] =
      (berth__vulkan_pending){.block = block, .from = ring->used, .to = block->base + offset, .size = size};
  ring->used += size;
}

berth_status berth__vulkan_write(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                 berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__vulkan_alive(engine, err));
  if (block->data != NULL) {
    if (size != 0) memmove(block->data + offset, src, (size_t)size); /* src may be the slot itself */
    return BERTH_OK;
  }
  engine->ring.mail_of = NULL;
  for (uint64_t at = 0; at < size;) {
    BERTH__TRY(berth__vulkan_lane_open(engine, err));
    const uint64_t n = vulkan_transfer_least(size - at, BERTH__VULKAN_LANE_SIZE - engine->ring.used);
    vulkan_transfer_append(block, offset + at, (const unsigned char *)src + at, n);
    at += n;
  }
  return BERTH_OK;
}

static berth_status start_read(const berth__block *block, uint64_t offset, uint64_t size, berth__vulkan_lane **lane,
                               berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__vulkan_lane_begin(engine, lane, err));
  record_copy(engine, (*lane)->commands, block->buffer, block->base + offset, engine->ring.buffer, (*lane)->offset,
              size);
  return berth__vulkan_lane_submit(engine, *lane, err);
}

/* Lanes are read in the order in which they were started. */
static berth_status read_staged(const berth__block *block, uint64_t offset, unsigned char *dst, uint64_t size,
                                berth_error *err) {
  berth__vulkan_lane *lanes[BERTH__VULKAN_LANES];
  uint64_t started = 0;
  for (uint64_t at = 0; at < size; at += BERTH__VULKAN_LANE_SIZE) {
    for (; started < size && started < at + BERTH__VULKAN_LANES * BERTH__VULKAN_LANE_SIZE;
         started += BERTH__VULKAN_LANE_SIZE) {
      berth__vulkan_lane **lane = &lanes[started / BERTH__VULKAN_LANE_SIZE % BERTH__VULKAN_LANES];
      BERTH__TRY(start_read(block, offset + started, vulkan_transfer_least(size - started, BERTH__VULKAN_LANE_SIZE),
                            lane, err));
    }
    berth__vulkan_lane *lane = lanes[at / BERTH__VULKAN_LANE_SIZE % BERTH__VULKAN_LANES];
    BERTH__TRY(berth__vulkan_lane_wait(block->engine, lane, err));
    memcpy(dst + at, lane->data, (size_t)vulkan_transfer_least(size - at, BERTH__VULKAN_LANE_SIZE));
  }
  return BERTH_OK;
}

berth_status berth__vulkan_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size,
                                berth_error *err) {
  BERTH__TRY(berth__vulkan_alive(block->engine, err));
  if (berth__vulkan_mail_read(block, offset, dst, size)) return BERTH_OK;
  if (!host_reads(block, size)) return read_staged(block, offset, dst, size, err);
  if (size != 0) memmove(dst, block->data + offset, (size_t)size);
  return BERTH_OK;
}

/* ---- Copies ---- */

/* Two engines are two devices to the driver, even if they are the same hardware, so the copy goes through the host. */
static berth_status copy_across(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  if (host_reads(src, size)) return berth__vulkan_write(dst, dst_offset, src->data + src_offset, size, err);
  if (dst->data != NULL) return berth__vulkan_read(src, src_offset, dst->data + dst_offset, size, err);
  for (uint64_t at = 0; at < size; at += BERTH__VULKAN_LANE_SIZE) {
    const uint64_t n = vulkan_transfer_least(size - at, BERTH__VULKAN_LANE_SIZE);
    berth__vulkan_lane *lane;
    BERTH__TRY(start_read(src, src_offset + at, n, &lane, err));
    BERTH__TRY(berth__vulkan_lane_wait(src->engine, lane, err));
    BERTH__TRY(berth__vulkan_write(dst, dst_offset + at, lane->data, n, err));
  }
  return BERTH_OK;
}

/* Inside one block with overlapping ranges: copies through the ring, starting at the end that is not overwritten
 * first. */
static berth_status copy_overlapping(berth__block *block, uint64_t dst, uint64_t src, uint64_t size, berth_error *err) {
  berth__engine *engine = block->engine;
  for (uint64_t done = 0; done < size; done += BERTH__VULKAN_LANE_SIZE) {
    const uint64_t n = vulkan_transfer_least(size - done, BERTH__VULKAN_LANE_SIZE),
                   at = dst < src ? done : size - done - n;
    berth__vulkan_lane *lane;
    BERTH__TRY(berth__vulkan_lane_begin(engine, &lane, err));
    record_copy(engine, lane->commands, block->buffer, block->base + src + at, engine->ring.buffer, lane->offset, n);
    berth__vulkan_barrier(engine, lane->commands);
    record_copy(engine, lane->commands, engine->ring.buffer, lane->offset, block->buffer, block->base + dst + at, n);
    BERTH__TRY(vulkan_transfer_submit(engine, lane, block->data != NULL, err));
  }
  return BERTH_OK;
}

berth_status berth__vulkan_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  berth__engine *engine = dst->engine;
  const uint64_t apart = dst_offset < src_offset ? src_offset - dst_offset : dst_offset - src_offset;
  berth__vulkan_lane *lane;
  BERTH__TRY(berth__vulkan_alive(engine, err));
  BERTH__TRY(berth__vulkan_alive(src->engine, err));
  if (size == 0 || (dst == src && apart == 0)) return BERTH_OK;
  if (dst->data != NULL && host_reads(src, size)) {
    memmove(dst->data + dst_offset, src->data + src_offset, (size_t)size);
    return BERTH_OK;
  }
  engine->ring.mail_of = NULL;
  if (engine != src->engine) return copy_across(dst, dst_offset, src, src_offset, size, err);
  if (dst == src && apart < size) return copy_overlapping(dst, dst_offset, src_offset, size, err);
  BERTH__TRY(berth__vulkan_lane_begin(engine, &lane, err));
  record_copy(engine, lane->commands, src->buffer, src->base + src_offset, dst->buffer, dst->base + dst_offset, size);
  return vulkan_transfer_submit(engine, lane, dst->data != NULL || src->data != NULL, err);
}

/* ---- Filling ---- */

/* The driver fills whole words; partial words at both ends are copied from the lane. */
berth_status berth__vulkan_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  berth__engine *engine = block->engine;
  berth__vulkan_lane *lane;
  BERTH__TRY(berth__vulkan_alive(engine, err));
  if (size == 0) return BERTH_OK;
  if (block->data != NULL) {
    memset(block->data + offset, byte, (size_t)size);
    return BERTH_OK;
  }
  engine->ring.mail_of = NULL;
  const uint64_t first = block->base + offset;
  const uint64_t head = vulkan_transfer_least(size, (4 - first % 4) % 4), tail = (size - head) % 4,
                 middle = size - head - tail;
  BERTH__TRY(berth__vulkan_lane_begin(engine, &lane, err));
  memset(lane->data, byte, 4);
  if (head != 0) record_copy(engine, lane->commands, engine->ring.buffer, lane->offset, block->buffer, first, head);
  if (middle != 0)
    engine->vk.CmdFillBuffer(lane->commands, block->buffer, first + head, middle, byte * UINT32_C(0x01010101));
  if (tail != 0)
    record_copy(engine, lane->commands, engine->ring.buffer, lane->offset, block->buffer, first + head + middle, tail);
  return berth__vulkan_lane_submit(engine, lane, err);
}
