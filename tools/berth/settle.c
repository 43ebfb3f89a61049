#include "settle.h"

#ifdef __linux__
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that nobody may write are as they are in the file, and may go; others hold what was written. */
static int settle_object(struct dl_phdr_info *info, size_t size, void *user) {
  const uintptr_t page = *(const uintptr_t *)user;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
    const uintptr_t start = ((uintptr_t)info->dlpi_addr + (uintptr_t)segment->p_vaddr + page - 1) / page * page;
    const uintptr_t end =
        ((uintptr_t)info->dlpi_addr + (uintptr_t)segment->p_vaddr + (uintptr_t)segment->p_memsz) / page * page;
    if (start < end) madvise((void *)start, end - start, MADV_DONTNEED);
  }
  return 0;
}

void settle(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
#ifdef __GLIBC__
  malloc_trim(0);
#endif
  dl_iterate_phdr(settle_object, &page);
}

#else

void settle(void) {}

#endif
