/* Compiled kernels on disk, for devices with slow compilers: one file each, named by a hash of what was compiled. The
 * cache never makes a compilation fail: a file that cannot be read or is not valid counts as missing and is rewritten;
 * a file that cannot be written is skipped. */
#ifndef BERTH_DEVICE_GPU_CACHE_H
#define BERTH_DEVICE_GPU_CACHE_H

#include <stdbool.h>

#include "base/context.h"

typedef struct berth__kernel_cache {
  berth_context *ctx;
  char *folder; /* NULL: no cache */
} berth__kernel_cache;

/* The folder is $BERTH_CACHE_DIR, or $XDG_CACHE_HOME/berth, or $HOME/.cache/berth; an empty BERTH_CACHE_DIR turns the
 * cache off, and so does lack of memory. Does not create the folder yet. */
void berth__kernel_cache_open(berth__kernel_cache *cache, berth_context *ctx);
void berth__kernel_cache_close(berth__kernel_cache *cache);

/* What a kernel was compiled from, and for which target. */
typedef struct berth__kernel_key {
  const char *compiler; /* name and version */
  const char *target;   /* the hardware */
  const char *source;
  size_t size;
  const char *ending; /* suffix of the file name, for people: up to 8 letters */
  uint32_t magic;     /* the first bytes of valid code, in memory order */
} berth__kernel_key;

typedef struct berth__kernel_code {
  void *data; /* from the context, aligned for any type */
  size_t size;
} berth__kernel_code;

/* The name of a source for a target in a pack (pack.h), independent of the compiler; and the checksum of code. */
void berth__kernel_name(const char *target, const char *source, size_t size, uint64_t out[2]);
void berth__kernel_code_sum(const berth__kernel_code *code, uint64_t out[2]);

/* False: not in the cache. */
bool berth__kernel_cache_read(const berth__kernel_cache *cache, const berth__kernel_key *key, berth__kernel_code *out);
void berth__kernel_cache_write(const berth__kernel_cache *cache, const berth__kernel_key *key,
                               const berth__kernel_code *code);

#endif
