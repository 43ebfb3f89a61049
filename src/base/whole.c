#include "base/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_WRITE ((size_t)1 << 30) /* Linux writes no more than 2 GiB per call */
#define SUFFIX ".new"
#define MOST_WRITERS 10 /* of one file at the same time: a digit after the suffix */

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

/* Resolves the symbolic links at `path`, whose target need not exist: 0, or an error number. */
static int whole_follow(const char *path, char name[PATH_MAX]) {
  enum {
    MOST_LINKS = 40 /* the limit of Linux */
  };
  char link[PATH_MAX];
  if (strlen(path) >= PATH_MAX) return ENAMETOOLONG;
  strcpy(name, path);
  for (int i = 0; i < MOST_LINKS; i++) {
    const ssize_t n = readlink(name, link, sizeof link - 1);
    if (n < 0) return 0; /* not a link, or nothing: opening it reports what is wrong */
    link[n] = '\0';
    const char *slash = strrchr(name, '/');
    const size_t folder = link[0] != '/' && slash != NULL ? (size_t)(slash - name) + 1 : 0;
    if (folder + (size_t)n >= PATH_MAX) return ENAMETOOLONG;
    memcpy(name + folder, link, (size_t)n + 1);
  }
  return ELOOP;
}

/* Chooses where the file is written and what it is renamed to. */
static berth_status whole_place(berth__whole *file, berth_error *err) {
  char name[PATH_MAX];
  const int failed = whole_follow(file->path, name);
  if (failed != 0) return berth__fail(err, BERTH_IO, "cannot open %s for writing: %s", file->path, strerror(failed));
  const size_t length = strlen(name);
  file->beside = berth__alloc(file->ctx, 2 * length + 2 + sizeof SUFFIX);
  if (file->beside == NULL) return berth__fail_nomem(err, "writing a file");
  memcpy(file->beside, name, length);
  memcpy(file->beside + length, SUFFIX, sizeof SUFFIX);
  file->name = file->beside + length + 1 + sizeof SUFFIX;
  memcpy(file->name, name, length + 1);
  return BERTH_OK;
}

/* Private files stay private. Until the file has its name its owner may write to it, whatever its mode will be, because
 * other writers of the name look at the files beside it. Failures are ignored: a file system without modes has nothing
 * to preserve. */
static void whole_set_mode(int fd, mode_t mode) {
#ifdef __wasi__
  (void)fd, (void)mode;
#else
  (void)fchmod(fd, mode);
#endif
}

/* Whether nobody else writes to the opened file, and it still has its name: its previous writer may have renamed it
 * since. File systems without locks do without this check. */
static bool whole_is_own(int fd, const char *name) {
  struct stat opened, there;
#ifndef __wasi__
  if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) return false;
#endif
  return fstat(fd, &opened) == 0 && lstat(name, &there) == 0 && S_ISREG(there.st_mode) &&
         opened.st_dev == there.st_dev && opened.st_ino == there.st_ino;
}

/* Opens a file beside the name that no other writer has; -1 and errno: there is none. The leftover of a killed writer
 * is overwritten. Anything else with such a name (a folder, a link, a pipe, another user's file) is left alone. */
static int whole_open_beside(berth__whole *file) {
  char *end = file->beside + strlen(file->beside);
  int failed = EBUSY;
  for (int i = 0; i < MOST_WRITERS; i++) {
    struct stat there;
    end[0] = (char)(i == 0 ? '\0' : '0' + i);
    end[i == 0 ? 0 : 1] = '\0';
    const int fd = open(file->beside, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
    if (fd >= 0 && whole_is_own(fd, file->beside)) {
      if (ftruncate(fd, 0) == 0) return fd;
      failed = errno;
    } else if (fd < 0) {
      failed = errno;
      if (lstat(file->beside, &there) != 0) break; /* no such file can be created */
    }
    if (fd >= 0) close(fd);
  }
  errno = failed;
  return -1;
}

berth_status berth__whole_open(berth_context *ctx, const char *path, berth__whole *out, berth_error *err) {
  struct stat there;
  const bool is_there = stat(path, &there) == 0;
  *out = (berth__whole){.ctx = ctx, .path = path, .fd = -1};
  BERTH__TRY(whole_place(out, err));
  out->is_stream = is_there && !S_ISREG(there.st_mode) && !S_ISDIR(there.st_mode);
  if (is_there && S_ISDIR(there.st_mode))
    errno = EISDIR;
  else if (out->is_stream)
    out->fd = open(path, O_WRONLY | O_CLOEXEC);
  else
    out->fd = whole_open_beside(out);
  out->keeps_mode = out->fd >= 0 && is_there && !out->is_stream;
  if (out->keeps_mode) {
    out->mode = there.st_mode & 0777;
    whole_set_mode(out->fd, out->mode | S_IWUSR);
  }
  if (out->fd >= 0) return BERTH_OK;
  const berth_status status = berth__fail(err, BERTH_IO, "cannot open %s for writing: %s", path, strerror(errno));
  berth__free(ctx, out->beside);
  return status;
}

void berth__whole_write(berth__whole *file, const void *data, size_t size) {
  if (file->failed == 0) file->failed = berth__write_all(file->fd, data, size);
}

/* The folder holds the name, so it is synced too. If it cannot be opened, the rename alone has to do. */
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
  if (file->keeps_mode) whole_set_mode(file->fd, file->mode);
  if (file->failed == 0 && status == BERTH_OK && fsync(file->fd) != 0) file->failed = errno;
  if (status == BERTH_OK && file->failed == 0 && rename(file->beside, file->name) != 0) file->failed = errno;
  if (status == BERTH_OK && file->failed != 0)
    status = berth__fail(err, BERTH_IO, "cannot write %s: %s; what was there before is unchanged", file->path,
                         strerror(file->failed));
  if (status != BERTH_OK) (void)unlink(file->beside);
  close(file->fd); /* its bytes are on disk; up to here, no other writer takes the temporary name */
  if (status == BERTH_OK) whole_sync_folder(file);
  berth__free(file->ctx, file->beside);
  return status;
}
