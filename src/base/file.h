/* Files mapped for reading, and memory used in place of a file. */
#ifndef BERTH_BASE_FILE_H
#define BERTH_BASE_FILE_H

#include "base/context.h"
#include "base/sigbus.h"

typedef struct berth__mapping {
  const uint8_t *data; /* never NULL after success, also for an empty file */
  size_t size;
  uint64_t whole;            /* memory that is the beginning of a file: size of the whole file; otherwise 0 */
  void *base;                /* what to unmap; NULL for an empty file, and for memory */
  berth_release_fn released; /* memory: called when it is no longer needed; may be NULL */
  void *user;
  int fd;              /* with base: the file, to ask for its size; -1: it was closed */
  berth__watch *watch; /* with base: catches SIGBUS; otherwise NULL */
  char name[64];       /* with base: the file's name without its folder, for messages */
} berth__mapping;

berth_status berth__file_map(const char *path, berth__mapping *out, berth_error *err);
/* A file that another one names, in that one's folder or below it. A path that leads out of it, by whatever symbolic
 * links, is refused as MALFORMED. If `owner` is itself a link, the folder of its target is allowed as well: model
 * caches hold links to files that are stored side by side elsewhere. */
berth_status berth__file_map_beside(berth_context *ctx, const char *owner, const char *path, berth__mapping *out,
                                    berth_error *err);
/* Fails if the file has become shorter than the mapping, since bytes past its end must not be touched. Called before
 * mapped bytes are read, and after: if SIGBUS is caught, they may have read as zeros in between. */
berth_status berth__file_check(const berth__mapping *mapping, berth_error *err);
void berth__file_unmap(berth__mapping *mapping);
/* Releases pages that are no longer needed; the mapping stays readable. */
void berth__file_release(const berth__mapping *mapping, size_t offset, size_t size);
/* The same by address; bytes outside the mapping are left alone. */
void berth__file_release_bytes(const berth__mapping *mapping, const void *data, size_t size);
/* Releases the first bytes, of which a few will be read again: no longer as large pages, which are mapped as a whole.
 */
void berth__file_release_start(const berth__mapping *mapping, size_t size);

#endif
