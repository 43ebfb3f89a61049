#include "pages.h"

#include <stdlib.h>

#ifdef __GLIBC__
#include <link.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

/* Read-only segments, whose pages can be reloaded from their files. They are looked up once, since that reads the first
 * pages of every library; libraries opened later keep their pages. Once a library has been closed, anything may be at
 * its addresses. */
typedef struct segments {
  uintptr_t page;
  unsigned long long closed; /* closed libraries at the time of the lookup */
  size_t count;
  struct {
    uintptr_t begin, size;
  } items[64];
} segments;

static int segments_of_object(struct dl_phdr_info *info, size_t size, void *user) {
  segments *s = user;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum && s->count < sizeof(s->items) / sizeof(s->items[0]); i++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
    if (segment->p_type != PT_LOAD || (segment->p_flags & PF_W)) continue;
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr, end = begin + segment->p_memsz;
    s->items[s->count].begin = begin / s->page * s->page;
    s->items[s->count].size = (end / s->page * s->page) - s->items[s->count].begin;
    s->count++;
  }
  return 0;
}

/* The loader's counters, reported with the first object. */
static int count_closed(struct dl_phdr_info *info, size_t size, void *user) {
  (void)size;
  *(unsigned long long *)user = info->dlpi_subs;
  return 1;
}

void pages_let_go(void) {
  static segments found;
  unsigned long long closed = 0;
  malloc_trim(0);
  dl_iterate_phdr(count_closed, &closed);
  if (found.page == 0 || found.closed != closed) {
    found = (segments){.page = (uintptr_t)sysconf(_SC_PAGESIZE), .closed = closed};
    dl_iterate_phdr(segments_of_object, &found);
  }
  for (size_t i = 0; i < found.count; i++) {
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the loader gives addresses as numbers */
    (void)madvise((void *)found.items[i].begin, found.items[i].size, MADV_DONTNEED);
  }
}
#else
void pages_let_go(void) {}
#endif
