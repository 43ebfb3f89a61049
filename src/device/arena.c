/* The arena: every access is checked here, once for all devices. */
#include "device/arena.h"

#include "base/blocks.h"
#include "base/desc.h"
#include "base/half.h"
#include "base/math.h"
#include "device/uniform.h"

typedef struct slot {
  uint64_t offset; /* BERTH_OFFSET_NONE: not in the arena */
  uint64_t size;
  uint64_t run, pitch; /* contiguous bytes, and the distance to the next ones; run = size: all are contiguous */
  berth_type type;
  bool is_open;          /* bytes can be read and written here: it is not a strided view */
  berth_storage storage; /* storage in the arena: possibly another type than the value's own */
} slot;

struct berth__slots {
  berth_context *ctx;
  size_t count;
  slot items[]; /* one per value */
};

struct berth_arena {
  berth_context *ctx;
  const berth__device *device;
  berth__engine *own_engine; /* NULL: the session's is used */
  berth__slots *own_slots;   /* NULL: uses the session's */
  const berth__slots *slots;
  berth__block *block;
  uint64_t size, align;
};

/* All gaps of an input inside the result of a concat have the same size. */
static void measure_gaps(const berth_tensor *tensor, bool is_input, slot *s) {
  uint32_t axis = tensor->rank;
  int64_t together = 1;
  s->run = s->size;
  s->is_open = berth__is_contiguous(tensor);
  if (s->is_open || !is_input) return;
  for (; axis > 0 && (tensor->dim[axis - 1] == 1 || tensor->stride[axis - 1] == together); axis--)
    together *= tensor->dim[axis - 1];
  s->run = berth__storage_size(s->storage, (uint64_t)together);
  s->pitch = berth__storage_size(s->storage, (uint64_t)tensor->stride[axis - 1]);
  s->is_open = true;
}

berth_status berth__slots_create(const berth_plan *plan, berth__slots **out, berth_error *err) {
  size_t n = plan->graph->n_values;
  uint64_t bytes;
  *out = NULL;
  if (!berth__mul_u64(n, sizeof(slot), &bytes) || bytes > SIZE_MAX - sizeof(berth__slots))
    return berth__fail_nomem(err, "an arena");
  berth__slots *slots = berth__alloc(plan->ctx, sizeof *slots + (size_t)bytes);
  if (slots == NULL) return berth__fail_nomem(err, "an arena");
  slots->ctx = plan->ctx;
  slots->count = n;
  for (size_t v = 0; v < n; v++) {
    berth_slot from = BERTH_SLOT_INIT;
    berth_plan_slot(plan, (berth_value)v, &from, NULL);
    berth_tensor tensor = berth__plan_tensor(plan->graph, (berth_value)v, from.stride);
    slots->items[v] = (slot){.offset = from.offset, .size = from.size, .type = tensor.type, .storage = from.storage};
    measure_gaps(&tensor, plan->graph->values[v].kind == BERTH_VALUE_INPUT, &slots->items[v]);
  }
  *out = slots;
  return BERTH_OK;
}

berth_status berth__slots_clone(const berth__slots *slots, berth__slots **out, berth_error *err) {
  const size_t size = sizeof *slots + slots->count * sizeof(slot); /* as allocated */
  *out = berth__alloc(slots->ctx, size);
  if (*out == NULL) return berth__fail_nomem(err, "an arena");
  memcpy(*out, slots, size);
  return BERTH_OK;
}

uint64_t berth__slots_offset(const berth__slots *slots, berth_value value) {
  return value < slots->count ? slots->items[value].offset : BERTH_OFFSET_NONE;
}

void berth__slots_destroy(berth__slots *slots) {
  if (slots != NULL) berth__free(slots->ctx, slots);
}

void berth__arena_address(berth_arena *arena, const berth__slots *slots) { arena->slots = slots; }

static berth_status check_memory(const void *memory, uint64_t memory_size, uint64_t size, uint64_t align,
                                 berth_error *err) {
  if (memory == NULL) return BERTH_OK;
  if (memory_size < size)
    return berth__fail(err, BERTH_INVALID, "the memory given has %llu bytes, the plan needs %llu",
                       (unsigned long long)memory_size, (unsigned long long)size);
  if ((uintptr_t)memory % align != 0)
    return berth__fail(err, BERTH_INVALID, "the memory given is not aligned to the %llu bytes that were planned",
                       (unsigned long long)align);
  return BERTH_OK;
}

static berth_status make_block(berth_arena *arena, berth__engine *engine, const char *which, void *memory,
                               berth_error *err) {
  if (engine == NULL) BERTH__TRY(arena->device->open(arena->ctx, which, 1, &arena->own_engine, err));
  return arena->device->block_create(engine != NULL ? engine : arena->own_engine, arena->size, arena->align, memory,
                                     &arena->block, err);
}

berth_status berth__arena_create(const berth_plan *plan, const berth__device *device, berth__engine *engine,
                                 const berth__slots *slots, const berth_arena_desc *desc, berth_arena **out,
                                 berth_error *err) {
  uint64_t size = plan->info.arena_size > desc->min_size ? plan->info.arena_size : desc->min_size;
  *out = NULL;
  BERTH__TRY(check_memory(desc->memory, desc->memory_size, size, plan->align, err));
  if (desc->memory != NULL) size = desc->memory_size;
  berth_arena *arena = berth__alloc_zero(plan->ctx, sizeof *arena);
  if (arena == NULL) return berth__fail_nomem(err, "an arena");
  *arena = (berth_arena){.ctx = plan->ctx, .device = device, .slots = slots, .size = size, .align = plan->align};
  berth_status status = make_block(arena, engine, berth__device_which(desc->device), desc->memory, err);
  if (status != BERTH_OK) {
    berth_arena_destroy(arena);
    return status;
  }
  berth__log(plan->ctx, 0, "arena of %llu bytes on %s: weights %llu, activations %llu, scratch %llu",
             (unsigned long long)size, device->name, (unsigned long long)plan->info.weights_size,
             (unsigned long long)plan->info.activations_size, (unsigned long long)plan->info.scratch_size);
  *out = arena;
  return BERTH_OK;
}

berth_status berth_arena_create(const berth_plan *plan, const berth_arena_desc *desc, berth_arena **out,
                                berth_error *err) {
  berth_arena_desc full = BERTH_ARENA_DESC_INIT;
  const berth__device *device;
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_arena_create needs a pointer to store the arena");
  *out = NULL;
  if (plan == NULL) return berth__fail(err, BERTH_INVALID, "the plan is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&full, desc, "berth_arena_desc", err));
  BERTH__TRY(berth__device_find(full.device, &device, err));
  berth__slots *slots;
  BERTH__TRY(berth__slots_create(plan, &slots, err));
  berth_status status = berth__arena_create(plan, device, NULL, slots, &full, out, err);
  if (status != BERTH_OK)
    berth__slots_destroy(slots);
  else
    (*out)->own_slots = slots;
  return status;
}

void berth_arena_destroy(berth_arena *arena) {
  if (arena == NULL) return;
  arena->device->block_destroy(arena->block);
  arena->device->close(arena->own_engine);
  berth__slots_destroy(arena->own_slots);
  berth__free(arena->ctx, arena);
}

bool berth__arena_grow(berth_arena *arena, uint64_t size) {
  if (arena->device->block_grow == NULL || arena->device->block_grow(arena->block, size, NULL) != BERTH_OK)
    return false;
  arena->size = size;
  return true;
}

berth__block *berth__arena_block(berth_arena *arena) { return arena->block; }

uint64_t berth_arena_size(const berth_arena *arena) { return arena->size; }

int berth_arena_has(const berth_arena *arena, berth_value value) {
  return value < arena->slots->count && arena->slots->items[value].offset != BERTH_OFFSET_NONE;
}

uint64_t berth_arena_offset(const berth_arena *arena, berth_value value) {
  return value < arena->slots->count ? arena->slots->items[value].offset : BERTH_OFFSET_NONE;
}

uint64_t berth_arena_capacity(const berth_arena *arena, berth_value value) {
  return berth_arena_has(arena, value) ? arena->slots->items[value].size : 0;
}

static berth_status find_slot(const berth_arena *arena, berth_value value, const slot **out, berth_error *err) {
  if (arena == NULL) return berth__fail(err, BERTH_INVALID, "the arena is NULL");
  if (value >= arena->slots->count) return berth__fail(err, BERTH_INVALID, "the arena's plan has no value %u", value);
  if (arena->slots->items[value].offset == BERTH_OFFSET_NONE)
    return berth__fail(err, BERTH_INVALID, "value %u has no bytes in the arena: it was planned outside", value);
  if (!arena->slots->items[value].is_open)
    return berth__fail(err, BERTH_INVALID, "value %u is a strided view; use the value that owns its bytes", value);
  *out = &arena->slots->items[value];
  return BERTH_OK;
}

static berth_status want_no_gaps(const slot *s, berth_value value, berth_error *err) {
  if (s->run == s->size) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID,
                     "input %u lies with gaps inside the result of a concat; use read and write, or plan without "
                     "strided views",
                     value);
}

/* The position of byte `offset` of a slot, and how many of the next `size` bytes are contiguous there. */
static uint64_t find_run(const slot *s, uint64_t offset, uint64_t size, uint64_t *count) {
  const uint64_t inside = s->run != 0 ? offset % s->run : 0, left = s->run - inside;
  *count = s->run == s->size || size < left ? size : left;
  return s->run == s->size ? s->offset + offset : s->offset + offset / s->run * s->pitch + inside;
}

static berth_status write_bytes(berth_arena *arena, const slot *s, uint64_t offset, const void *src, uint64_t size,
                                berth_error *err) {
  const unsigned char *from = src;
  uint64_t count;
  do {
    const uint64_t at = find_run(s, offset, size, &count);
    BERTH__TRY(arena->device->write(arena->block, at, from, count, err));
    if (count != 0) from += count;
    offset += count;
    size -= count;
  } while (size != 0);
  return BERTH_OK;
}

static berth_status device_arena_read_bytes(const berth_arena *arena, const slot *s, uint64_t offset, void *dst,
                                            uint64_t size, berth_error *err) {
  unsigned char *to = dst;
  uint64_t count;
  do {
    const uint64_t at = find_run(s, offset, size, &count);
    BERTH__TRY(arena->device->read(arena->block, at, to, count, err));
    if (count != 0) to += count;
    offset += count;
    size -= count;
  } while (size != 0);
  return BERTH_OK;
}

/* [first, first + count) must be inside [0, limit). */
static berth_status check_range(uint64_t first, uint64_t count, uint64_t limit, const char *unit, berth_value value,
                                berth_error *err) {
  uint64_t end;
  if (!berth__add_u64(first, count, &end) || end > limit)
    return berth__fail(err, BERTH_INVALID, "%s %llu up to %llu + %llu are not inside value %u, which has %llu", unit,
                       (unsigned long long)first, (unsigned long long)first, (unsigned long long)count, value,
                       (unsigned long long)limit);
  return BERTH_OK;
}

berth_status berth_arena_write(berth_arena *arena, berth_value value, uint64_t offset, const void *src, uint64_t size,
                               berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(check_range(offset, size, s->size, "bytes", value, err));
  if (src == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "there is nothing to write from");
  return write_bytes(arena, s, offset, src, size, err);
}

berth_status berth_arena_read(const berth_arena *arena, berth_value value, uint64_t offset, void *dst, uint64_t size,
                              berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(check_range(offset, size, s->size, "bytes", value, err));
  if (dst == NULL && size != 0) return berth__fail(err, BERTH_INVALID, "there is nowhere to read to");
  return device_arena_read_bytes(arena, s, offset, dst, size, err);
}

berth_status berth_arena_fill(berth_arena *arena, berth_value value, uint64_t offset, uint64_t size, uint8_t byte,
                              berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(check_range(offset, size, s->size, "bytes", value, err));
  for (uint64_t count; size != 0; offset += count, size -= count) {
    const uint64_t at = find_run(s, offset, size, &count);
    BERTH__TRY(arena->device->fill(arena->block, at, count, byte, err));
  }
  return BERTH_OK;
}

/* ---- Elements ---- */

static berth_status device_arena_find_elements(const berth_arena *arena, berth_value value, uint64_t first,
                                               uint64_t count, const slot **out, berth_error *err) {
  BERTH__TRY(find_slot(arena, value, out, err));
  const berth_storage storage = (*out)->storage;
  BERTH__TRY(check_range(first, count, berth__storage_count(storage, (*out)->size), "elements", value, err));
  if (first % storage.elements == 0 && count % storage.elements == 0) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "value %u is %s: elements %llu up to %llu + %llu are not whole blocks of %u",
                     value, berth_type_name(storage.type), (unsigned long long)first, (unsigned long long)first,
                     (unsigned long long)count, storage.elements);
}

#define CHUNK 512u /* elements converted at a time, on the stack */

berth_status berth_arena_write_f32(berth_arena *arena, berth_value value, uint64_t first, const float *src,
                                   uint64_t count, berth_error *err) {
  const slot *s = NULL;
  double room[CHUNK]; /* for elements of up to eight bytes */
  BERTH__TRY(device_arena_find_elements(arena, value, first, count, &s, err));
  if (src == NULL && count != 0) return berth__fail(err, BERTH_INVALID, "there is nothing to write from");
  if (!berth__type_encodes(s->storage.type))
    return berth__fail(err, BERTH_UNSUPPORTED, "value %u is %s, which is not encoded: write its blocks as bytes", value,
                       berth_type_name(s->storage.type));
  for (uint64_t done = 0; done < count; done += CHUNK) {
    uint64_t n = count - done < CHUNK ? count - done : CHUNK;
    berth__convert_from_f32(s->storage.type, room, src + done, n);
    BERTH__TRY(write_bytes(arena, s, berth__storage_size(s->storage, first + done), room,
                           berth__storage_size(s->storage, n), err));
  }
  return BERTH_OK;
}

berth_status berth_arena_read_f32(const berth_arena *arena, berth_value value, uint64_t first, float *dst,
                                  uint64_t count, berth_error *err) {
  const slot *s = NULL;
  double room[CHUNK];
  BERTH__TRY(device_arena_find_elements(arena, value, first, count, &s, err));
  if (dst == NULL && count != 0) return berth__fail(err, BERTH_INVALID, "there is nowhere to read to");
  for (uint64_t done = 0; done < count; done += CHUNK) {
    uint64_t n = count - done < CHUNK ? count - done : CHUNK;
    BERTH__TRY(device_arena_read_bytes(arena, s, berth__storage_size(s->storage, first + done), room,
                                       berth__storage_size(s->storage, n), err));
    berth__convert_to_f32(s->storage.type, dst + done, room, n);
  }
  return BERTH_OK;
}

/* Checks that all elements can be stored, before the first one is written. */
static berth_status device_arena_check_elements(const slot *s, const void *src, uint64_t count, berth_error *err) {
  const berth_storage own = berth_type_storage(s->type);
  uint32_t room[CHUNK];
  for (uint64_t done = 0; done < count; done += CHUNK) {
    const uint64_t n = count - done < CHUNK ? count - done : CHUNK;
    const void *from = (const unsigned char *)src + berth__storage_size(own, done);
    BERTH__TRY(berth__uniform_pack(s->type, s->storage.type, room, from, n, err));
  }
  return BERTH_OK;
}

berth_status berth__arena_put(berth_arena *arena, berth_value value, uint64_t offset, const void *src, uint64_t size,
                              berth_error *err) {
  const slot *s = NULL;
  uint32_t room[CHUNK];
  BERTH__TRY(find_slot(arena, value, &s, err));
  if (s->storage.type == s->type) return berth_arena_write(arena, value, offset, src, size, err);
  const berth_storage own = berth_type_storage(s->type);
  const uint64_t first = berth__storage_count(own, offset), count = berth__storage_count(own, size);
  BERTH__TRY(device_arena_find_elements(arena, value, first, count, &s, err));
  if (!berth__type_is_float(s->type) && count > CHUNK) BERTH__TRY(device_arena_check_elements(s, src, count, err));
  for (uint64_t done = 0; done < count; done += CHUNK) {
    uint64_t n = count - done < CHUNK ? count - done : CHUNK;
    BERTH__TRY(berth__uniform_pack(s->type, s->storage.type, room,
                                   (const unsigned char *)src + berth__storage_size(own, done), n, err));
    BERTH__TRY(write_bytes(arena, s, berth__storage_size(s->storage, first + done), room,
                           berth__storage_size(s->storage, n), err));
  }
  return BERTH_OK;
}

berth_status berth__arena_get(const berth_arena *arena, berth_value value, void *dst, uint64_t size, berth_error *err) {
  const slot *s = NULL;
  uint32_t room[CHUNK];
  BERTH__TRY(find_slot(arena, value, &s, err));
  if (s->storage.type == s->type) return berth_arena_read(arena, value, 0, dst, size, err);
  const berth_storage own = berth_type_storage(s->type);
  const uint64_t count = berth__storage_count(own, size);
  BERTH__TRY(device_arena_find_elements(arena, value, 0, count, &s, err));
  for (uint64_t done = 0; done < count; done += CHUNK) {
    uint64_t n = count - done < CHUNK ? count - done : CHUNK;
    BERTH__TRY(device_arena_read_bytes(arena, s, berth__storage_size(s->storage, done), room,
                                       berth__storage_size(s->storage, n), err));
    berth__uniform_unpack(s->type, s->storage.type, (unsigned char *)dst + berth__storage_size(own, done), room, n);
  }
  return BERTH_OK;
}

berth_status berth_arena_copy(berth_arena *arena, berth_value dst, uint64_t dst_first, berth_value src,
                              uint64_t src_first, uint64_t count, berth_error *err) {
  const slot *to = NULL, *from = NULL;
  BERTH__TRY(device_arena_find_elements(arena, dst, dst_first, count, &to, err));
  BERTH__TRY(device_arena_find_elements(arena, src, src_first, count, &from, err));
  BERTH__TRY(want_no_gaps(to, dst, err));
  BERTH__TRY(want_no_gaps(from, src, err));
  if (!berth__storage_equal(to->storage, from->storage))
    return berth__fail(err, BERTH_INVALID, "value %u is %s and value %u is %s; a copy needs one type", dst,
                       berth_type_name(to->type), src, berth_type_name(from->type));
  return arena->device->copy(arena->block, to->offset + berth__storage_size(to->storage, dst_first), arena->block,
                             from->offset + berth__storage_size(from->storage, src_first),
                             berth__storage_size(to->storage, count), err);
}

berth_status berth_arena_copy_first(berth_arena *arena, berth_value dst, berth_value src, uint64_t count,
                                    berth_error *err) {
  return berth_arena_copy(arena, dst, 0, src, 0, count, err);
}

berth_status berth_arena_copy_all(berth_arena *dst, const berth_arena *src, berth_error *err) {
  if (dst == NULL || src == NULL) return berth__fail(err, BERTH_INVALID, "copying an arena needs two arenas");
  if (dst->device != src->device || dst->size != src->size)
    return berth__fail(
        err, BERTH_INVALID, "the arenas belong to different plans: %llu bytes on %s and %llu bytes on %s",
        (unsigned long long)dst->size, dst->device->name, (unsigned long long)src->size, src->device->name);
  return dst->device->copy(dst->block, 0, src->block, 0, src->size, err);
}

berth_status berth_arena_slice(berth_arena *arena, berth_value value, berth_type type, void **data, uint64_t *count,
                               berth_error *err) {
  const slot *s = NULL;
  if (data != NULL) *data = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  if (data == NULL) return berth__fail(err, BERTH_INVALID, "a slice needs a pointer to store its address");
  BERTH__TRY(want_no_gaps(s, value, err));
  if (type != s->storage.type)
    return berth__fail(err, BERTH_INVALID, "value %u is %s, a slice of %s is asked for", value,
                       berth_type_name(s->storage.type), berth_type_name(type));
  unsigned char *base = berth_arena_data(arena);
  if (base == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "the host does not see the memory of device '%s'; use read and write",
                       arena->device->name);
  *data = base + s->offset;
  if (count != NULL) *count = berth__storage_count(s->storage, s->size);
  return BERTH_OK;
}

void *berth_arena_data(berth_arena *arena) {
  return arena->device->host != NULL ? arena->device->host(arena->block) : NULL;
}

/* ---- Memory shared with other libraries ---- */

/* The address of the block. */
static berth_status arena_block_memory(const berth_arena *arena, berth_memory *out, berth_error *err) {
  *out = (berth_memory)BERTH_MEMORY_INIT;
  if (arena->device->memory != NULL) return arena->device->memory(arena->block, out, err);
  out->address = (uint64_t)(uintptr_t)(arena->device->host != NULL ? arena->device->host(arena->block) : NULL);
  if (out->address != 0 || arena->size == 0) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "the memory of device '%s' has no address that others could use; use read and write",
                     arena->device->name);
}

static berth_status arena_want_type(const slot *s, berth_value value, berth_type type, berth_error *err) {
  if (type == s->storage.type) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "value %u is %s, and lies in the arena as %s: use read and write", value,
                     berth_type_name(type), berth_type_name(s->storage.type));
}

berth_status berth__arena_memory(const berth_arena *arena, berth_value value, berth_type type, berth_memory *out,
                                 berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(want_no_gaps(s, value, err));
  BERTH__TRY(arena_want_type(s, value, type, err));
  BERTH__TRY(arena_block_memory(arena, out, err));
  out->address += s->offset;
  out->size = s->size;
  return BERTH_OK;
}

/* Whether the device can copy from and to such memory. */
static berth_status arena_can_reach(const berth_arena *arena, const berth_memory *memory, berth_error *err) {
  berth_memory own;
  BERTH__TRY(arena_block_memory(arena, &own, err));
  if (own.kind != memory->kind)
    return berth__fail(err, BERTH_UNSUPPORTED, "device '%s' cannot address the memory that is given: it is %s",
                       arena->device->name, memory->kind == BERTH_MEMORY_CUDA ? "that of a GPU" : "not that of a GPU");
  if (own.index == memory->index) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "the memory that is given is that of GPU %u, and the arena lies on GPU %u",
                     memory->index, own.index);
}

berth_status berth__arena_write_memory(berth_arena *arena, berth_value value, const berth_memory *src,
                                       berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(arena_want_type(s, value, s->type, err));
  BERTH__TRY(arena_can_reach(arena, src, err));
  for (uint64_t done = 0, count; done < src->size; done += count) {
    const uint64_t at = find_run(s, done, src->size - done, &count);
    BERTH__TRY(arena->device->write_memory(arena->block, at, src->address + done, count, err));
  }
  return BERTH_OK;
}

berth_status berth__arena_read_memory(const berth_arena *arena, berth_value value, const berth_memory *dst,
                                      berth_error *err) {
  const slot *s = NULL;
  BERTH__TRY(find_slot(arena, value, &s, err));
  BERTH__TRY(arena_want_type(s, value, s->type, err));
  BERTH__TRY(arena_can_reach(arena, dst, err));
  for (uint64_t done = 0, count; done < dst->size; done += count) {
    const uint64_t at = find_run(s, done, dst->size - done, &count);
    BERTH__TRY(arena->device->read_memory(arena->block, at, dst->address + done, count, err));
  }
  return BERTH_OK;
}
