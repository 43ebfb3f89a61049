/* Files that are whole at every moment: written under a temporary name beside their own, synced, and then renamed. A
 * reader of the name finds either the old contents or all of the new ones. A device or a pipe is written directly; a
 * symbolic link is kept, and its target is written. Several writers may write one name at once, in this process or
 * others: each has its own temporary file, and the last to close wins. */
#ifndef BERTH_BASE_WHOLE_H
#define BERTH_BASE_WHOLE_H

#include <sys/types.h>

#include "base/context.h"

typedef struct berth__whole {
  berth_context *ctx;
  const char *path; /* the caller's */
  char *name;       /* the final name: the path with its links followed */
  char *beside;     /* the temporary name */
  int fd;
  bool is_stream; /* a device or a pipe: written directly */
  bool keeps_mode;
  mode_t mode; /* mode of the file that it replaces */
  int failed;  /* the error number of the first write that failed; 0: none */
} berth__whole;

/* Writes all bytes to a descriptor: 0, or the error number of the write that failed. */
int berth__write_all(int fd, const void *data, size_t size);

/* If it succeeds, the file must be closed, whatever happens in between. */
berth_status berth__whole_open(berth_context *ctx, const char *path, berth__whole *out, berth_error *err);
void berth__whole_write(berth__whole *file, const void *data, size_t size); /* errors are reported by close */
/* Renames the file if `status` is OK and everything was written; otherwise the existing file stays. */
berth_status berth__whole_close(berth__whole *file, berth_status status, berth_error *err);

#endif
