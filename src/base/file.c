#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static berth_status fail_io(berth_error *err, const char *what, const char *path, int code) {
  return berth__fail(err, BERTH_IO, "cannot %s \"%s\": %s", what, path, strerror(code));
}

/* Maps an open file. */
static berth_status map_descriptor(int fd, const char *path, berth__mapping *out, berth_error *err) {
  static const uint8_t nothing[1] = {0};
  struct stat info;
  if (fstat(fd, &info) != 0) return fail_io(err, "read", path, errno);
  if (S_ISDIR(info.st_mode)) return fail_io(err, "read", path, EISDIR);
  if (!S_ISREG(info.st_mode)) {
    return berth__fail(err, BERTH_IO, "cannot map \"%s\": it is not a regular file; copy it into one first", path);
  }
  if ((uintmax_t)info.st_size > SIZE_MAX) return fail_io(err, "map", path, EFBIG);
  size_t size = (size_t)info.st_size;
  if (size == 0) {
    *out = (berth__mapping){.data = nothing};
    return BERTH_OK;
  }
  void *base = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (base == MAP_FAILED) return fail_io(err, "map", path, errno);
  *out = (berth__mapping){.data = base, .size = size, .base = base};
  return BERTH_OK;
}

berth_status berth__file_map(const char *path, berth__mapping *out, berth_error *err) {
  *out = (berth__mapping){0};
  int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block here, only to be refused */
  if (fd < 0) return fail_io(err, "open", path, errno);
  berth_status status = map_descriptor(fd, path, out, err);
  close(fd);
  return status;
}

void berth__file_unmap(berth__mapping *mapping) {
  if (mapping->base != NULL) munmap(mapping->base, mapping->size);
  if (mapping->released != NULL) mapping->released(mapping->user, mapping->data, mapping->size);
  *mapping = (berth__mapping){0};
}

void berth__file_release(const berth__mapping *mapping, size_t offset, size_t size) {
  if (mapping->base == NULL || offset >= mapping->size) return;
  if (size > mapping->size - offset) size = mapping->size - offset;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t begin = (offset + page - 1) / page * page; /* whole pages inside the range alone */
  size_t end = (offset + size) / page * page;
  if (begin < end) madvise((uint8_t *)mapping->base + begin, end - begin, MADV_DONTNEED);
}

void berth__file_release_bytes(const berth__mapping *mapping, const void *data, size_t size) {
  uintptr_t at = (uintptr_t)data, start = (uintptr_t)mapping->data;
  if (at >= start && at - start < mapping->size) berth__file_release(mapping, at - start, size);
}
