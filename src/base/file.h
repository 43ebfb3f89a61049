/* Files, mapped to read, and memory that takes the place of one. */
#ifndef BERTH_BASE_FILE_H
#define BERTH_BASE_FILE_H

#include "base/context.h"

typedef struct berth__mapping {
  const uint8_t *data; /* never NULL after success, also for an empty file */
  size_t size;
  void *base;                /* what to unmap; NULL for an empty file, and for memory */
  berth_release_fn released; /* memory: called when it is no longer needed; may be NULL */
  void *user;
} berth__mapping;

berth_status berth__file_map(const char *path, berth__mapping *out, berth_error *err);
void berth__file_unmap(berth__mapping *mapping);
/* Pages that are no longer needed may go; the mapping stays readable. */
void berth__file_release(const berth__mapping *mapping, size_t offset, size_t size);
/* The same by address; bytes outside the mapping are left alone. */
void berth__file_release_bytes(const berth__mapping *mapping, const void *data, size_t size);

#endif
