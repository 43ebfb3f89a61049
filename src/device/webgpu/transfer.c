/* Reading, writing and copying bytes of blocks. WebGPU moves whole words: partial words are merged with their
 * neighbours by the host. */
#include "device/webgpu/webgpu.h"

static const char reading[] = "copying from the device", copying[] = "copying on the device",
                  writing[] = "copying to the device";

static uint64_t webgpu_transfer_least(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- Commands, and waiting for them ---- */

berth__wgpu berth__webgpu_record(berth__engine *engine) { return BERTH__WEBGPU_CREATE(engine, CommandEncoder, NULL); }

berth__wgpu berth__webgpu_begin_pass(berth__engine *engine, berth__wgpu encoder, const berth__wgpu_pass_desc *desc) {
  return berth__webgpu_counted(engine, engine->gpu->CommandEncoderBeginComputePass(encoder, desc));
}

void berth__webgpu_end_pass(berth__engine *engine, berth__wgpu pass) {
  engine->gpu->ComputePassEncoderEnd(pass);
  BERTH__WEBGPU_RELEASE(engine, ComputePassEncoder, pass);
}

void berth__webgpu_submit(berth__engine *engine, berth__wgpu encoder) {
  berth__wgpu commands = berth__webgpu_counted(engine, engine->gpu->CommandEncoderFinish(encoder, NULL));
  BERTH__WEBGPU_RELEASE(engine, CommandEncoder, encoder);
  engine->gpu->QueueSubmit(engine->queue, 1, &commands);
  BERTH__WEBGPU_RELEASE(engine, CommandBuffer, commands);
  engine->counts.submissions++;
}

berth_status berth__webgpu_need_staging(berth__engine *engine, berth_error *err) {
  if (engine->staging != NULL) return BERTH_OK;
  return berth__webgpu_make_buffer(engine, BERTH__WGPU_MAP_READ | BERTH__WGPU_COPY_DST, BERTH__WEBGPU_STAGING,
                                   &engine->staging, err);
}

static void on_map(uint32_t status, berth__wgpu_string message, void *user, void *unused) {
  berth__webgpu_on_object(status, NULL, message, user, unused);
}

berth_status berth__webgpu_fetch(berth__engine *engine, uint64_t offset, void *dst, uint64_t size, const char *doing,
                                 berth_error *err) {
  const berth__wgpu_callback callback = {
      .mode = BERTH__WGPU_PROCESS_EVENTS, .call = (berth__wgpu_fn)on_map, .user1 = engine};
  const uint64_t words = size != 0 ? (offset + size + 3) & ~UINT64_C(3) : 4;
  engine->answer = (berth__webgpu_answer){0};
  engine->gpu->BufferMapAsync(engine->staging, BERTH__WGPU_MODE_READ, 0, (size_t)words, callback);
  BERTH__TRY(berth__webgpu_wait(engine, doing, err));
  const bool is_mapped = engine->answer.status == BERTH__WGPU_SUCCESS;
  berth_status status = berth__webgpu_hear(engine, doing, err);
  if (status == BERTH_OK &&
      (!is_mapped || (size != 0 && !engine->gpu->read_mapped(engine->staging, (size_t)offset, dst, (size_t)size))))
    status = berth__fail(err, BERTH_INTERNAL, "%s while %s: the staging buffer cannot be read: %s", engine->name, doing,
                         engine->answer.text);
  if (is_mapped) engine->gpu->BufferUnmap(engine->staging);
  return status;
}

/* ---- Reading ---- */

/* At most one staging buffer, including partial words at both ends. */
static berth_status read_some(const berth__block *block, uint64_t offset, unsigned char *dst, uint64_t size,
                              berth_error *err) {
  berth__engine *engine = block->engine;
  const uint64_t first = offset & ~UINT64_C(3), words = ((offset + size + 3) & ~UINT64_C(3)) - first;
  BERTH__TRY(berth__webgpu_need_staging(engine, err));
  const berth__wgpu encoder = berth__webgpu_record(engine);
  engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, block->buffer, first, engine->staging, 0, words);
  berth__webgpu_submit(engine, encoder);
  return berth__webgpu_fetch(engine, offset - first, dst, size, reading, err);
}

berth_status berth__webgpu_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size,
                                berth_error *err) {
  BERTH__TRY(berth__webgpu_alive(block->engine, err));
  for (uint64_t at = 0; at < size;) {
    const uint64_t n = webgpu_transfer_least(size - at, BERTH__WEBGPU_STAGING - 8);
    BERTH__TRY(read_some(block, offset + at, (unsigned char *)dst + at, n, err));
    at += n;
  }
  return BERTH_OK;
}

/* ---- Writing ---- */

/* Inside one word. */
static berth_status write_part(berth__block *block, uint64_t offset, const unsigned char *src, uint64_t size,
                               berth_error *err) {
  berth__engine *engine = block->engine;
  unsigned char word[4];
  BERTH__TRY(read_some(block, offset & ~UINT64_C(3), word, 4, err));
  memcpy(word + (offset & 3), src, (size_t)size);
  engine->gpu->QueueWriteBuffer(engine->queue, block->buffer, offset & ~UINT64_C(3), word, 4);
  return BERTH_OK;
}

berth_status berth__webgpu_write(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                 berth_error *err) {
  berth__engine *engine = block->engine;
  const unsigned char *bytes = src;
  const uint64_t head = webgpu_transfer_least(size, (4 - offset % 4) % 4), tail = (size - head) % 4,
                 middle = size - head - tail;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  if (head != 0) BERTH__TRY(write_part(block, offset, bytes, head, err));
  if (middle != 0)
    engine->gpu->QueueWriteBuffer(engine->queue, block->buffer, offset + head, bytes + head, (size_t)middle);
  if (tail != 0) BERTH__TRY(write_part(block, offset + head + middle, bytes + head + middle, tail, err));
  return berth__webgpu_hear(engine, writing, err);
}

/* ---- Copies ---- */

/* In pieces, starting at the end that is not overwritten first. */
static uint64_t webgpu_transfer_place_of(uint64_t done, uint64_t n, uint64_t size, bool forwards) {
  return forwards ? done : size - done - n;
}

static berth_status copy_by_host(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                 uint64_t size, berth_error *err) {
  unsigned char *piece = dst->engine->piece;
  for (uint64_t done = 0; done < size;) {
    const uint64_t n = webgpu_transfer_least(size - done, BERTH__WEBGPU_PIECE),
                   at = webgpu_transfer_place_of(done, n, size, dst_offset < src_offset);
    BERTH__TRY(berth__webgpu_read(src, src_offset + at, piece, n, err));
    BERTH__TRY(berth__webgpu_write(dst, dst_offset + at, piece, n, err));
    done += n;
  }
  return BERTH_OK;
}

/* A buffer cannot be copied to itself, so the copy goes through another one. */
static berth_status copy_inside(berth__block *block, uint64_t dst, uint64_t src, uint64_t size, berth_error *err) {
  berth__engine *engine = block->engine;
  if (engine->moving == NULL)
    BERTH__TRY(berth__webgpu_make_buffer(engine, BERTH__WGPU_COPY_SRC | BERTH__WGPU_COPY_DST, BERTH__WEBGPU_STAGING,
                                         &engine->moving, err));
  const berth__wgpu encoder = berth__webgpu_record(engine);
  for (uint64_t done = 0; done < size;) {
    const uint64_t n = webgpu_transfer_least(size - done, BERTH__WEBGPU_STAGING),
                   at = webgpu_transfer_place_of(done, n, size, dst < src);
    engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, block->buffer, src + at, engine->moving, 0, n);
    engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, engine->moving, 0, block->buffer, dst + at, n);
    done += n;
  }
  berth__webgpu_submit(engine, encoder);
  return berth__webgpu_hear(engine, copying, err);
}

berth_status berth__webgpu_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  berth__engine *engine = dst->engine;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  BERTH__TRY(berth__webgpu_alive(src->engine, err));
  if (size == 0 || (dst == src && dst_offset == src_offset)) return BERTH_OK;
  if (engine != src->engine || ((dst_offset | src_offset | size) & 3) != 0)
    return copy_by_host(dst, dst_offset, src, src_offset, size, err);
  if (dst == src) return copy_inside(dst, dst_offset, src_offset, size, err);
  const berth__wgpu encoder = berth__webgpu_record(engine);
  engine->gpu->CommandEncoderCopyBufferToBuffer(encoder, src->buffer, src_offset, dst->buffer, dst_offset, size);
  berth__webgpu_submit(engine, encoder);
  return berth__webgpu_hear(engine, copying, err);
}

/* ---- Filling ---- */

static void webgpu_transfer_clear(berth__block *block, uint64_t offset, uint64_t size) {
  const berth__wgpu encoder = berth__webgpu_record(block->engine);
  block->engine->gpu->CommandEncoderClearBuffer(encoder, block->buffer, offset, size);
  berth__webgpu_submit(block->engine, encoder);
}

berth_status berth__webgpu_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  berth__engine *engine = block->engine;
  BERTH__TRY(berth__webgpu_alive(engine, err));
  if (size != 0 && byte == 0 && ((offset | size) & 3) == 0) {
    webgpu_transfer_clear(block, offset, size);
    return berth__webgpu_hear(engine, writing, err);
  }
  memset(engine->piece, byte, sizeof engine->piece);
  for (uint64_t at = 0; at < size; at += BERTH__WEBGPU_PIECE)
    BERTH__TRY(berth__webgpu_write(block, offset + at, engine->piece,
                                   webgpu_transfer_least(size - at, BERTH__WEBGPU_PIECE), err));
  return BERTH_OK;
}
