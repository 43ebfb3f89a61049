#include "pages.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <link.h>
#include <malloc.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Segments that nobody writes to: they are as they are in their files. */
static int pages_of_object(struct dl_phdr_info *info, size_t size, void *user) {
  const uintptr_t page = *(const uintptr_t *)user;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
    const uintptr_t first = begin / page * page;
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers */
    (void)madvise((void *)first, (end / page * page) - first, MADV_DONTNEED);
  }
  return 0;
}

void pages_let_go(void) {
  uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  malloc_trim(0);
  dl_iterate_phdr(pages_of_object, &page);
}
#else
void pages_let_go(void) {}
#endif
