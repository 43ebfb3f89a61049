/* Compiled kernels on disk, one file each, named by a hash of what they were compiled from, for devices whose
 * compilers are slow. The cache never makes a compilation fail: a file that cannot be read or is not valid counts as
 * missing and is written again; a file that cannot be written is skipped. */
#ifndef BERTH_DEVICE_GPU_CACHE_H
#define BERTH_DEVICE_GPU_CACHE_H

#include <stdbool.h>

#include "base/context.h"

typedef struct berth__kernel_cache {
  berth_context *ctx;
  char *folder; /* NULL: there is no cache */
} berth__kernel_cache;

/* The folder is $BERTH_CACHE_DIR, else $XDG_CACHE_HOME/berth, else $HOME/.cache/berth; an empty BERTH_CACHE_DIR turns
 * the cache off, and so does memory that runs out. Makes no folder yet. */
void berth__kernel_cache_open(berth__kernel_cache *cache, berth_context *ctx);
void berth__kernel_cache_close(berth__kernel_cache *cache);

/* What a compiled kernel was made from, and for. */
typedef struct berth__kernel_key {
  const char *compiler; /* which one, in which version */
  const char *target;   /* what its code runs on */
  const char *source;
  size_t size;
  const char *ending; /* of the file's name, for people: up to 8 letters */
  uint32_t magic;     /* the first bytes of such code, as they lie there: anything else is no code */
} berth__kernel_key;

typedef struct berth__kernel_code {
  void *data; /* from the context, aligned for any type */
  size_t size;
} berth__kernel_code;

/* What a source and a target are called in a pack (pack.h), whatever compiled them; and what the bytes of code are. */
void berth__kernel_name(const char *target, const char *source, size_t size, uint64_t out[2]);
void berth__kernel_code_sum(const berth__kernel_code *code, uint64_t out[2]);

/* False: it is not there. */
bool berth__kernel_cache_read(const berth__kernel_cache *cache, const berth__kernel_key *key, berth__kernel_code *out);
void berth__kernel_cache_write(const berth__kernel_cache *cache, const berth__kernel_key *key,
                               const berth__kernel_code *code);

#endif
