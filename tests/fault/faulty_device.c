#include "faulty_device.h"

#define GARBAGE 0xcd

faulty_counts faulty;
static const berth__device *real;
static berth__device table;

static berth_status faulty_call(const char *what, berth_error *err) {
  faulty.calls++;
  if (faulty.fail_at == 0 || --faulty.fail_at != 0) return BERTH_OK;
  faulty.failed++;
  return berth__fail(err, BERTH_DEVICE_NOMEM, "the device was told to fail: %s", what);
}

static berth_status faulty_open(berth_context *ctx, const char *which, uint32_t n_threads, berth__engine **out,
                                berth_error *err) {
  *out = NULL;
  BERTH__TRY(faulty_call("open", err));
  BERTH__TRY(real->open(ctx, which, n_threads, out, err));
  faulty.engines++;
  return BERTH_OK;
}

static void faulty_close(berth__engine *engine) {
  if (engine != NULL) faulty.engines--;
  real->close(engine);
}

static berth_status faulty_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                        berth__block **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(faulty_call("block_create", err));
  BERTH__TRY(real->block_create(engine, size, align, host, out, err));
  faulty.blocks++;
  return BERTH_OK;
}

static void faulty_block_destroy(berth__block *block) {
  if (block != NULL) faulty.blocks--;
  real->block_destroy(block);
}

static berth_status faulty_write(berth__block *block, uint64_t offset, const void *src, uint64_t size,
                                 berth_error *err) {
  const berth_status status = faulty_call("write", err);
  if (status == BERTH_OK) return real->write(block, offset, src, size, err);
  (void)real->fill(block, offset, size, GARBAGE, NULL);
  return status;
}

static berth_status faulty_place(berth__engine *engine, berth__block *block, uint64_t offset, const void *src,
                                 uint64_t size, berth_error *err) {
  const berth_status status = faulty_call("place", err);
  if (status == BERTH_OK) return real->place(engine, block, offset, src, size, err);
  (void)real->fill(block, offset, size, GARBAGE, NULL);
  return status;
}

static berth_status faulty_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size,
                                berth_error *err) {
  const berth_status status = faulty_call("read", err);
  if (status == BERTH_OK) return real->read(block, offset, dst, size, err);
  memset(dst, GARBAGE, (size_t)size);
  return status;
}

static berth_status faulty_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                                uint64_t size, berth_error *err) {
  const berth_status status = faulty_call("copy", err);
  if (status == BERTH_OK) return real->copy(dst, dst_offset, src, src_offset, size, err);
  (void)real->fill(dst, dst_offset, size, GARBAGE, NULL);
  return status;
}

static berth_status faulty_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  const berth_status status = faulty_call("fill", err);
  if (status == BERTH_OK) return real->fill(block, offset, size, byte, err);
  (void)real->fill(block, offset, size, GARBAGE, NULL);
  return status;
}

static berth_status faulty_program_create(berth__engine *engine, const berth_plan *plan, bool checked,
                                          berth__program **out, berth_error *err) {
  *out = NULL;
  BERTH__TRY(faulty_call("program_create", err));
  BERTH__TRY(real->program_create(engine, plan, checked, out, err));
  faulty.programs++;
  return BERTH_OK;
}

static void faulty_program_destroy(berth__program *program) {
  if (program != NULL) faulty.programs--;
  real->program_destroy(program);
}

static berth_status faulty_program_bind(berth__program *program, berth__block *block, const void *const *outside,
                                        berth_error *err) {
  BERTH__TRY(faulty_call("program_bind", err));
  return real->program_bind(program, block, outside, err);
}

static berth_status faulty_prepare(berth__program *program, const berth__observer *observer, berth_error *err) {
  BERTH__TRY(faulty_call("prepare", err));
  return real->prepare(program, observer, err);
}

static berth_status faulty_submit(berth__program *program, const berth__observer *observer, berth_error *err) {
  BERTH__TRY(faulty_call("submit", err));
  return real->submit(program, observer, err);
}

/* The run has ended in any case. */
static berth_status faulty_wait(berth__program *program, berth_error *err) {
  const berth_status status = faulty_call("wait", err);
  const berth_status waited = real->wait(program, status == BERTH_OK ? err : NULL);
  return status != BERTH_OK ? status : waited;
}

const berth__device *faulty_over(const berth__device *device, bool grows) {
  real = device;
  table = *device; /* calls that cannot fail are unchanged */
  table.open = faulty_open;
  table.close = faulty_close;
  table.block_create = faulty_block_create;
  table.block_destroy = faulty_block_destroy;
  table.write = faulty_write;
  if (device->place != NULL) table.place = faulty_place;
  table.read = faulty_read;
  table.copy = faulty_copy;
  table.fill = faulty_fill;
  table.program_create = faulty_program_create;
  table.program_destroy = faulty_program_destroy;
  table.program_bind = faulty_program_bind;
  if (!grows) table.block_grow = NULL;
  if (device->prepare != NULL) table.prepare = faulty_prepare;
  table.submit = faulty_submit;
  table.wait = faulty_wait;
  faulty = (faulty_counts){0};
  return &table;
}
