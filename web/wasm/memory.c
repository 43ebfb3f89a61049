/* Counts allocated bytes: the linker replaces the C library's functions by these (--wrap), because its allocator keeps
 * no count. */
#include <malloc.h>
#include <stdlib.h>

#include "exports.h"

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
int __real_posix_memalign(void **out, size_t align, size_t size);
void __real_free(void *block);

extern char __heap_base; /* end of the module's static data */
static size_t n_used;

static void *count(void *block) {
  if (block != NULL) n_used += malloc_usable_size(block);
  return block;
}

void *__wrap_malloc(size_t size) { return count(__real_malloc(size)); }
void *__wrap_calloc(size_t n, size_t size) { return count(__real_calloc(n, size)); }

void *__wrap_realloc(void *block, size_t size) {
  const size_t before = block != NULL ? malloc_usable_size(block) : 0;
  void *moved = count(__real_realloc(block, size));
  if (moved != NULL) n_used -= before;
  return moved;
}

int __wrap_posix_memalign(void **out, size_t align, size_t size) {
  const int code = __real_posix_memalign(out, align, size);
  if (code == 0) count(*out);
  return code;
}

void __wrap_free(void *block) {
  if (block == NULL) return;
  n_used -= malloc_usable_size(block);
  __real_free(block);
}

double berth_web_used(void) { return (double)((uintptr_t)&__heap_base + n_used); }
