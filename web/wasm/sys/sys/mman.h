/* WebAssembly can neither map files nor release pages: these functions fail. */
#ifndef BERTH_WEB_MMAN_H
#define BERTH_WEB_MMAN_H

#include <errno.h>
#include <stddef.h>
#include <sys/types.h>

#define PROT_READ 1
#define PROT_WRITE 2
#define MAP_PRIVATE 2
#define MAP_FAILED ((void *)-1)
#define MADV_DONTNEED 4

static inline void *mmap(void *at, size_t size, int protection, int flags, int file, off_t offset) {
  (void)at, (void)size, (void)protection, (void)flags, (void)file, (void)offset;
  errno = ENOSYS;
  return MAP_FAILED;
}

static inline int munmap(void *at, size_t size) {
  (void)at, (void)size;
  return 0;
}

static inline int madvise(void *at, size_t size, int advice) {
  (void)at, (void)size, (void)advice;
  return 0;
}

#endif
