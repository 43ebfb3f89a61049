#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WRITE ((size_t)1 << 30) /* Linux takes no more than 2 GiB at a time */
#define SUFFIX ".new"

int berth__write_all(int fd, const void *data, size_t size) {
  const unsigned char *at = data;
  while (size > 0) {
    const ssize_t n = write(fd, at, size < MAX_WRITE ? size : MAX_WRITE);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    at += n;
    size -= (size_t)n;
  }
  return 0;
}

berth_status berth__whole_open(berth_context *ctx, const char *path, berth__whole *out, berth_error *err) {
  const size_t length = strlen(path);
  struct stat there;
  const bool is_there = stat(path, &there) == 0;
  *out = (berth__whole){.ctx = ctx, .path = path, .beside = berth__alloc(ctx, length + sizeof SUFFIX), .fd = -1};
  if (out->beside == NULL) return berth__fail_nomem(err, "writing a file");
  memcpy(out->beside, path, length);
  memcpy(out->beside + length, SUFFIX, sizeof SUFFIX);
  out->is_stream = is_there && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
  if (is_there && S_ISDIR(there.st_mode))
    errno = EISDIR;
  else if (out->is_stream)
    out->fd = open(path, O_WRONLY | O_CLOEXEC);
  else
    out->fd = open(out->beside, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (out->fd >= 0) return BERTH_OK;
  const berth_status status = berth__fail(err, BERTH_IO, "cannot open %s for writing: %s", path, strerror(errno));
  berth__free(ctx, out->beside);
  return status;
}

void berth__whole_write(berth__whole *file, const void *data, size_t size) {
  if (file->failed == 0) file->failed = berth__write_all(file->fd, data, size);
}

/* The folder holds the name: it is brought to disk too. Where it cannot be opened, the rename alone must do. */
static void whole_sync_folder(const berth__whole *file) {
  char *slash = strrchr(file->beside, '/');
  if (slash != NULL) slash[slash == file->beside ? 1 : 0] = '\0';
  const int fd = open(slash != NULL ? file->beside : ".", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)fsync(fd);
  close(fd);
}

static berth_status whole_close_stream(berth__whole *file, berth_status status, berth_error *err) {
  if (close(file->fd) != 0 && file->failed == 0) file->failed = errno;
  if (status == BERTH_OK && file->failed != 0)
    status = berth__fail(err, BERTH_IO, "cannot write all of %s: %s", file->path, strerror(file->failed));
  berth__free(file->ctx, file->beside);
  return status;
}

berth_status berth__whole_close(berth__whole *file, berth_status status, berth_error *err) {
  if (file->is_stream) return whole_close_stream(file, status, err);
  if (file->failed == 0 && status == BERTH_OK && fsync(file->fd) != 0) file->failed = errno;
  if (close(file->fd) != 0 && file->failed == 0) file->failed = errno;
  if (status == BERTH_OK && file->failed == 0 && rename(file->beside, file->path) != 0) file->failed = errno;
  if (status == BERTH_OK && file->failed != 0)
    status = berth__fail(err, BERTH_IO, "cannot write %s: %s; what was there before is unchanged", file->path,
                         strerror(file->failed));
  if (status != BERTH_OK)
    (void)unlink(file->beside);
  else
    whole_sync_folder(file);
  berth__free(file->ctx, file->beside);
  return status;
}
