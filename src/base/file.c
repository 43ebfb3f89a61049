#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#ifndef __wasi__
#include <sys/resource.h>
#endif
#include <sys/stat.h>
#include <unistd.h>

static berth_status fail_io(berth_error *err, const char *what, const char *path, int code) {
  return berth__fail(err, BERTH_IO, "cannot %s \"%s\": %s", what, path, strerror(code));
}

/* The last component of a path, truncated to fit. */
static void base_file_name(const char *path, char *name, size_t size) {
  const char *slash = strrchr(path, '/');
  snprintf(name, size, "%s", slash != NULL && slash[1] != '\0' ? slash + 1 : path);
}

/* Keeps the descriptor open only if the process has plenty, since a model may consist of a thousand files; otherwise
 * -1. */
static int base_file_kept(int fd) {
#ifdef __wasi__
  return fd;
#else
  struct rlimit most;
  return getrlimit(RLIMIT_NOFILE, &most) != 0 || (rlim_t)fd < most.rlim_cur / 2 ? fd : -1;
#endif
}

/* Maps an open file, and keeps it open if descriptors suffice. */
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
  *out = (berth__mapping){
      .data = base, .size = size, .base = base, .fd = base_file_kept(fd), .watch = berth__sigbus_watch(base, size)};
  base_file_name(path, out->name, sizeof out->name);
  return BERTH_OK;
}

/* Takes over the descriptor. */
static berth_status base_file_take(int fd, const char *path, berth__mapping *out, berth_error *err) {
  const berth_status status = map_descriptor(fd, path, out, err);
  if (status != BERTH_OK || out->base == NULL || out->fd < 0) close(fd);
  return status;
}

#define HOW_TO_OPEN (O_RDONLY | O_CLOEXEC | O_NONBLOCK) /* do not block on a pipe that will be refused anyway */

berth_status berth__file_map(const char *path, berth__mapping *out, berth_error *err) {
  *out = (berth__mapping){0};
  int fd = open(path, HOW_TO_OPEN);
  if (fd < 0) return fail_io(err, "open", path, errno);
  return base_file_take(fd, path, out, err);
}

/* ---- Files that files name ---- */

#ifdef __wasi__ /* no links */
static berth_status base_file_map_inside(const char *owner, const char *path, berth__mapping *out, berth_error *err) {
  (void)owner;
  return berth__file_map(path, out, err);
}
#else

/* Both paths without links. */
static bool base_file_is_below(const char *path, const char *folder) {
  const size_t length = strcmp(folder, "/") == 0 ? 0 : strlen(folder);
  return strncmp(path, folder, length) == 0 && path[length] == '/';
}

static bool base_file_cut_name(char *path) {
  char *slash = strrchr(path, '/');
  if (slash == NULL) return false;
  slash[slash == path ? 1 : 0] = '\0';
  return true;
}

/* Whether a path without links is in the folder of a file or, if that file is a link, in the folder of its target. */
static bool base_file_is_beside(const char *real, const char *owner) {
  char given[PATH_MAX], folder[PATH_MAX];
  if (snprintf(given, sizeof given, "%s", owner) >= (int)sizeof given) return false;
  if (!base_file_cut_name(given)) snprintf(given, sizeof given, ".");
  if (realpath(given, folder) != NULL && base_file_is_below(real, folder)) return true;
  return realpath(owner, folder) != NULL && base_file_cut_name(folder) && base_file_is_below(real, folder);
}

/* Opens the file first and then resolves its path, so a link that changes in between is noticed. */
static berth_status base_file_map_inside(const char *owner, const char *path, berth__mapping *out, berth_error *err) {
  struct stat opened, found;
  char real[PATH_MAX];
  int fd = open(path, HOW_TO_OPEN);
  if (fd < 0) return fail_io(err, "open", path, errno);
  if (fstat(fd, &opened) == 0 && realpath(path, real) != NULL && stat(real, &found) == 0 &&
      opened.st_dev == found.st_dev && opened.st_ino == found.st_ino && base_file_is_beside(real, owner))
    return base_file_take(fd, path, out, err);
  close(fd);
  return berth__fail(err, BERTH_MALFORMED, "\"%s\" is a symbolic link that leads out of the model's folder", path);
}

#endif

berth_status berth__file_map_beside(berth_context *ctx, const char *owner, const char *path, berth__mapping *out,
                                    berth_error *err) {
  *out = (berth__mapping){0};
  const char *slash = strrchr(owner, '/');
  const int folder = slash != NULL ? (int)(slash - owner) + 1 : 0;
  const size_t size = (size_t)folder + strlen(path) + 1;
  char *whole = berth__alloc(ctx, size);
  if (whole == NULL) return berth__fail_nomem(err, "a path");
  snprintf(whole, size, "%.*s%s", folder, owner, path);
  const berth_status status = base_file_map_inside(owner, whole, out, err);
  berth__free(ctx, whole);
  return status;
}

/* ---- Mapped bytes ---- */

berth_status berth__file_check(const berth__mapping *mapping, berth_error *err) {
  struct stat info;
  if (mapping->base == NULL) return BERTH_OK;
  if (mapping->fd >= 0 && fstat(mapping->fd, &info) != 0) return fail_io(err, "read", mapping->name, errno);
  if (mapping->fd >= 0 && (uintmax_t)info.st_size < mapping->size)
    return berth__fail(err, BERTH_IO,
                       "\"%s\" has shrunk from %zu to %lld bytes since it was opened; a file must not change while a "
                       "model uses it (replace it by renaming another over it)",
                       mapping->name, mapping->size, (long long)info.st_size);
  if (berth__sigbus_is_lost(mapping->watch))
    return berth__fail(err, BERTH_IO,
                       "\"%s\" could not be read to its end: it was shorter for a while, or its disk fails",
                       mapping->name);
  return BERTH_OK;
}

void berth__file_unmap(berth__mapping *mapping) {
  if (mapping->base != NULL) {
    berth__sigbus_unwatch(mapping->watch);
    munmap(mapping->base, mapping->size);
    if (mapping->fd >= 0) close(mapping->fd);
  }
  if (mapping->released != NULL) mapping->released(mapping->user, mapping->data, mapping->size);
  *mapping = (berth__mapping){0};
}

void berth__file_release(const berth__mapping *mapping, size_t offset, size_t size) {
  if (mapping->base == NULL || offset >= mapping->size) return;
  if (size > mapping->size - offset) size = mapping->size - offset;
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t begin = (offset + page - 1) / page * page; /* only whole pages inside the range */
  size_t end = (offset + size) / page * page;
  if (begin < end) madvise((uint8_t *)mapping->base + begin, end - begin, MADV_DONTNEED);
}

void berth__file_release_bytes(const berth__mapping *mapping, const void *data, size_t size) {
  uintptr_t at = (uintptr_t)data, start = (uintptr_t)mapping->data;
  if (at >= start && at - start < mapping->size) berth__file_release(mapping, at - start, size);
}

void berth__file_release_start(const berth__mapping *mapping, size_t size) {
  berth__file_release(mapping, 0, size);
#ifdef MADV_NOHUGEPAGE
  if (size > mapping->size) size = mapping->size;
  if (mapping->base != NULL && size != 0) (void)madvise(mapping->base, size, MADV_NOHUGEPAGE); /* only advice */
#else
  (void)size;
#endif
}
