/* Files that are whole at every moment: written beside their name, brought to disk, and then renamed over it. Who reads
 * the name finds what was there before, or all of what is there now. A name that is a device or a pipe stays that, and
 * gets the bytes; a symbolic link stays one, and the file that it leads to is written. Several may write one name at
 * once, in this process or others: each has a file of its own beside it, and the last to close has the name. */
#ifndef BERTH_BASE_WHOLE_H
#define BERTH_BASE_WHOLE_H

#include <sys/types.h>

#include "base/context.h"

typedef struct berth__whole {
  berth_context *ctx;
  const char *path; /* the caller's */
  char *name;       /* what it is renamed to: the path with its links followed */
  char *beside;     /* where it is written */
  int fd;
  bool is_stream; /* a device or a pipe: written as it is */
  bool keeps_mode;
  mode_t mode; /* of the file that it replaces */
  int failed;  /* the error number of the first write that failed; 0: none */
} berth__whole;

/* All of these bytes to a descriptor: 0, or the error number of the write that failed. */
int berth__write_all(int fd, const void *data, size_t size);

/* Where it succeeds, close it, whatever happens in between. */
berth_status berth__whole_open(berth_context *ctx, const char *path, berth__whole *out, berth_error *err);
void berth__whole_write(berth__whole *file, const void *data, size_t size); /* close says what failed */
/* Gives the file its name where `status` is OK and all was written; otherwise whatever has the name stays. */
berth_status berth__whole_close(berth__whole *file, berth_status status, berth_error *err);

#endif
