/* Records the lifetimes of a program's allocations, as an instance for the packer.
 *
 *   make bench
 *   BERTH_TRACE=trace.csv LD_PRELOAD=build/measure/bench/pack/malloc_trace.so some-program
 *
 * Every block is one line `id,lower,upper,size`; the clock counts calls. Sizes are rounded up to 16, like in malloc.
 * Blocks that are never freed live to the end. BERTH_TRACE_MAX limits the number of blocks (default: 400,000). */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
  SLOTS = 1 << 22,
  EARLY_BYTES = 1 << 16
};

typedef struct block {
  uint64_t lower, upper, size;
} block;

typedef struct slot {
  void *ptr; /* NULL: free */
  uint32_t id;
} slot;

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void (*real_free)(void *);
static void *(*real_realloc)(void *, size_t);
static block *blocks;
static slot *slots;
static uint64_t now, n_blocks, n_max = 400000;
static atomic_flag lock = ATOMIC_FLAG_INIT;
static char early[EARLY_BYTES]; /* dlsym itself may allocate before the real functions are known */
static size_t early_used;
static int ready, started;

static void *map(size_t size) {
  void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

static void start(void) {
  if (started) return;
  started = 1;
  *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
  *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
  *(void **)&real_free = dlsym(RTLD_NEXT, "free");
  *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
  const char *max = getenv("BERTH_TRACE_MAX");
  if (max != NULL) n_max = strtoull(max, NULL, 10);
  if (n_max > SLOTS / 2) n_max = SLOTS / 2;
  blocks = map(n_max * sizeof *blocks);
  slots = map(SLOTS * sizeof *slots);
  ready = blocks != NULL && slots != NULL;
}

static size_t hash(const void *ptr) {
  return (size_t)(((uint64_t)(uintptr_t)ptr * UINT64_C(0x9E3779B97F4A7C15)) >> 42);
}

static void born(void *ptr, size_t size) {
  while (atomic_flag_test_and_set(&lock)) continue;
  now++;
  if (ptr != NULL && n_blocks < n_max) {
    size_t at = hash(ptr);
    while (slots[at].ptr != NULL) at = (at + 1) % SLOTS;
    slots[at] = (slot){ptr, (uint32_t)n_blocks};
    blocks[n_blocks++] = (block){now, 0, (size + 15) / 16 * 16};
  }
  atomic_flag_clear(&lock);
}

/* Removes a slot from its probe sequence, so that later look-ups still work. */
static void remove_slot(size_t at) {
  for (size_t next = (at + 1) % SLOTS; slots[next].ptr != NULL; next = (next + 1) % SLOTS) {
    size_t home = hash(slots[next].ptr);
    if ((next - home) % SLOTS < (next - at) % SLOTS) continue;
    slots[at] = slots[next];
    at = next;
  }
  slots[at].ptr = NULL;
}

static void died(void *ptr) {
  while (atomic_flag_test_and_set(&lock)) continue;
  now++;
  size_t at = hash(ptr);
  while (slots[at].ptr != NULL && slots[at].ptr != ptr) at = (at + 1) % SLOTS;
  if (slots[at].ptr == ptr) {
    blocks[slots[at].id].upper = now;
    remove_slot(at);
  }
  atomic_flag_clear(&lock);
}

/* Zeroed, because it is static and never reused. */
static void *early_block(size_t size) {
  size = (size + 15) / 16 * 16;
  if (size > EARLY_BYTES - early_used) return NULL;
  early_used += size;
  return early + early_used - size;
}

void *malloc(size_t size) {
  start();
  if (real_malloc == NULL) return early_block(size);
  void *ptr = real_malloc(size);
  if (ready) born(ptr, size);
  return ptr;
}

void free(void *ptr) {
  if (ptr == NULL || ((char *)ptr >= early && (char *)ptr < early + EARLY_BYTES)) return;
  start();
  if (ready) died(ptr);
  real_free(ptr);
}

void *calloc(size_t count, size_t size) {
  start();
  if (real_calloc == NULL) return size != 0 && count > EARLY_BYTES / size ? NULL : early_block(count * size);
  void *ptr = real_calloc(count, size);
  if (ready) born(ptr, count * size);
  return ptr;
}

void *realloc(void *ptr, size_t size) {
  if (ptr == NULL) return malloc(size);
  start();
  if (ready) died(ptr);
  void *moved = real_realloc(ptr, size);
  if (ready && moved != NULL) born(moved, size);
  return moved;
}

__attribute__((destructor)) static void finish(void) {
  const char *path = getenv("BERTH_TRACE");
  if (!ready || path == NULL) return;
  ready = 0;
  FILE *file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "id,lower,upper,size\n");
  for (uint64_t i = 0; i < n_blocks; i++)
    fprintf(file, "%llu,%llu,%llu,%llu\n", (unsigned long long)i, (unsigned long long)blocks[i].lower,
            (unsigned long long)(blocks[i].upper != 0 ? blocks[i].upper : now + 1), (unsigned long long)blocks[i].size);
  fclose(file);
}
