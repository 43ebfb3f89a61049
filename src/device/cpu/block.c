/* The block: one piece of host memory, aligned and zeroed.
 *
 * Blocks of at least a huge page are mapped at a huge page's alignment, and the kernel is asked to back them with huge
 * pages: fewer TLB misses while weights stream through. They come zeroed and cost nothing until they are touched.
 * Address space is reserved after them, without memory, so that a block can grow in place. */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/math.h"
#include "base/memory.h"
#include "device/cpu/cpu.h"

#define HUGE_PAGE ((uint64_t)2 << 20)
#define MIN_RESERVE ((uint64_t)256 << 20)

struct berth__block {
  berth_context *ctx;
  unsigned char *data;
  uint64_t size;
  void *mapped; /* what to unmap; NULL: not mapped */
  size_t mapped_size;
  uint64_t reach;  /* mapped: how many bytes from data on it may grow to */
  void *allocated; /* what to free; NULL: not allocated */
};

static berth_status fail_no_room(uint64_t size, berth_error *err) {
  return berth__fail(err, BERTH_DEVICE_NOMEM, "the host has no block of %llu bytes for the arena",
                     (unsigned long long)size);
}

static berth_status cpu_block_check(const berth_context *ctx, uint64_t size, berth_error *err) {
  return berth__memory_check(ctx, size, "the arena", BERTH_DEVICE_NOMEM, err);
}

#ifdef MADV_HUGEPAGE
/* Rounded up to a whole huge page, so that the last page can be a huge one too. */
static berth_status open_bytes(berth__block *block, uint64_t size, berth_error *err) {
  uint64_t end;
  if (!berth__align_up(size, HUGE_PAGE, &end) || end > block->reach) return fail_no_room(size, err);
  if (mprotect(block->data, (size_t)end, PROT_READ | PROT_WRITE) != 0) return fail_no_room(size, err);
  (void)madvise(block->data, (size_t)size, MADV_HUGEPAGE); /* only advice: the block works without it */
  return BERTH_OK;
}

/* Address space only: it takes no memory. If the process cannot have that much, the block cannot grow in place. */
static void *cpu_block_reserve(uint64_t size, uint64_t align, uint64_t *total) {
  uint64_t wanted[2] = {0, 0};
  if (sizeof(void *) > 4 && berth__mul_u64(size, 4, &wanted[0]) && wanted[0] < MIN_RESERVE) wanted[0] = MIN_RESERVE;
  wanted[1] = size;
  for (int i = 0; i < 2; i++) {
    if (wanted[i] < size || !berth__add_u64(wanted[i], align, total) || !berth__align_up(*total, HUGE_PAGE, total) ||
        *total > SIZE_MAX)
      continue;
    void *mapped = mmap(NULL, (size_t)*total, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped != MAP_FAILED) return mapped;
  }
  return NULL;
}

static berth_status map_block(berth__block *block, uint64_t align, berth_error *err) {
  uint64_t total;
  if (align < HUGE_PAGE) align = HUGE_PAGE;
  void *mapped = cpu_block_reserve(block->size, align, &total);
  if (mapped == NULL) return fail_no_room(block->size, err);
  block->mapped = mapped;
  block->mapped_size = (size_t)total;
  uintptr_t start = ((uintptr_t)mapped + (uintptr_t)align - 1) & ~((uintptr_t)align - 1);
  block->data = (unsigned char *)mapped + (start - (uintptr_t)mapped);
  block->reach = total - (start - (uintptr_t)mapped);
  return open_bytes(block, block->size, err);
}

berth_status berth__cpu_block_grow(berth__block *block, uint64_t size, berth_error *err) {
  if (block->mapped == NULL) return fail_no_room(size, err);
  BERTH__TRY(cpu_block_check(block->ctx, size, err));
  BERTH__TRY(open_bytes(block, size, err));
  block->size = size;
  return BERTH_OK;
}
#else
berth_status berth__cpu_block_grow(berth__block *block, uint64_t size, berth_error *err) {
  (void)block;
  return fail_no_room(size, err);
}
#endif

static berth_status allocate_block(berth__block *block, uint64_t align, berth_error *err) {
  if (align < sizeof(void *)) align = sizeof(void *);
  if (block->size > SIZE_MAX || align > SIZE_MAX) return fail_no_room(block->size, err);
  if (posix_memalign(&block->allocated, (size_t)align, (size_t)(block->size != 0 ? block->size : 1)) != 0) {
    block->allocated = NULL;
    return fail_no_room(block->size, err);
  }
  block->data = block->allocated;
  memset(block->data, 0, (size_t)block->size);
  return BERTH_OK;
}

static berth_status cpu_take_block(berth__block *block, uint64_t align, berth_error *err) {
#ifdef MADV_HUGEPAGE
  if (block->size >= HUGE_PAGE || align >= HUGE_PAGE) return map_block(block, align, err);
#endif
  return allocate_block(block, align, err);
}

berth_status berth__cpu_block_create(berth__engine *engine, uint64_t size, uint64_t align, void *host,
                                     berth__block **out, berth_error *err) {
  berth_status status = BERTH_OK;
  *out = NULL;
  berth_context *ctx = engine->ctx;
  berth__block *block = berth__alloc_zero(ctx, sizeof *block);
  if (block == NULL) return berth__fail_nomem(err, "an arena");
  block->ctx = ctx;
  block->size = size;
  if (host != NULL) {
    block->data = host;
    memset(host, 0, (size_t)size);
  } else {
    status = cpu_block_check(ctx, size, err);
    if (status == BERTH_OK) status = cpu_take_block(block, align, err);
  }
  if (status != BERTH_OK) {
    berth__cpu_block_destroy(block);
    return status;
  }
  *out = block;
  return BERTH_OK;
}

void berth__cpu_block_destroy(berth__block *block) {
  if (block == NULL) return;
  if (block->mapped != NULL) munmap(block->mapped, block->mapped_size);
  free(block->allocated);
  berth__free(block->ctx, block);
}

void *berth__cpu_host(berth__block *block) { return block->data; }

berth_status berth__cpu_write(berth__block *block, uint64_t offset, const void *src, uint64_t size, berth_error *err) {
  (void)err;
  if (size != 0) memmove(block->data + offset, src, (size_t)size); /* src may be the slot itself */
  return BERTH_OK;
}

typedef struct cpu_placing {
  unsigned char *to;
  const unsigned char *from;
  uint64_t size;
} cpu_placing;

#define PLACE_BYTES ((uint64_t)64 << 10) /* bytes per work item */
#define PLACE_GRAIN 4                    /* items worth waking a thread for */

static void cpu_place_some(void *user, uint32_t worker, int64_t begin, int64_t end) {
  const cpu_placing *p = user;
  const uint64_t first = (uint64_t)begin * PLACE_BYTES, last = (uint64_t)end * PLACE_BYTES;
  (void)worker;
  memcpy(p->to + first, p->from + first, (size_t)((last < p->size ? last : p->size) - first));
}

berth_status berth__cpu_place(berth__engine *engine, berth__block *block, uint64_t offset, const void *src,
                              uint64_t size, berth_error *err) {
  cpu_placing p = {block->data + offset, src, size};
  (void)err;
  berth__pool_run_split(engine->pool, (int64_t)(size / PLACE_BYTES + (size % PLACE_BYTES != 0)), PLACE_GRAIN,
                        BERTH__SPLIT_PARTS, cpu_place_some, &p);
  return BERTH_OK;
}

#ifdef MADV_HUGEPAGE
#define MAP_LEAST ((uint64_t)64 << 10) /* below this, copying is as fast */

/* The pages that lie entirely within this piece. A mapped block begins on a page boundary. */
static uint64_t cpu_map_pages(const berth__block *block, uint64_t offset, const berth__file_bytes *file,
                              uint64_t *begin) {
  const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
  *begin = (page - offset % page) % page;
  if (block->mapped == NULL || offset % page != file->offset % page || file->size < *begin + MAP_LEAST) return 0;
  return (file->size - *begin) / page * page;
}

berth_status berth__cpu_map(berth__block *block, uint64_t offset, const berth__file_bytes *file, uint64_t *begin,
                            uint64_t *count, berth_error *err) {
  *count = cpu_map_pages(block, offset, file, begin);
  if (*count == 0) return BERTH_OK;
  const size_t size = (size_t)*count;
  void *to = block->data + offset + *begin;
  const void *at =
      mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, file->fd, (off_t)(file->offset + *begin));
  if (at != MAP_FAILED) {
    (void)madvise(to, size, MADV_WILLNEED); /* so that the disk is read while the rest is prepared */
    return BERTH_OK;
  }
  *count = 0; /* the old contents may be gone by now */
  at = mmap(to, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return at != MAP_FAILED ? BERTH_OK : fail_no_room(block->size, err);
}
#else
berth_status berth__cpu_map(berth__block *block, uint64_t offset, const berth__file_bytes *file, uint64_t *begin,
                            uint64_t *count, berth_error *err) {
  (void)block, (void)offset, (void)file, (void)err;
  *begin = *count = 0;
  return BERTH_OK;
}
#endif

berth_status berth__cpu_read(const berth__block *block, uint64_t offset, void *dst, uint64_t size, berth_error *err) {
  (void)err;
  if (size != 0) memmove(dst, block->data + offset, (size_t)size);
  return BERTH_OK;
}

berth_status berth__cpu_copy(berth__block *dst, uint64_t dst_offset, const berth__block *src, uint64_t src_offset,
                             uint64_t size, berth_error *err) {
  (void)err;
  if (size != 0) memmove(dst->data + dst_offset, src->data + src_offset, (size_t)size);
  return BERTH_OK;
}

berth_status berth__cpu_fill(berth__block *block, uint64_t offset, uint64_t size, uint8_t byte, berth_error *err) {
  (void)err;
  if (size != 0) memset(block->data + offset, byte, (size_t)size);
  return BERTH_OK;
}
