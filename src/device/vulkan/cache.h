/* Compiled kernels on disk, one file each, named after what it was made from. Nothing here fails a compilation: what
 * cannot be read, or is not what it should be, counts as missing and is written again; what cannot be written is not.
 */
#ifndef BERTH_DEVICE_VULKAN_CACHE_H
#define BERTH_DEVICE_VULKAN_CACHE_H

#include <stdbool.h>

#include "device/vulkan/spirv.h"

typedef struct berth__spirv_cache {
  berth_context *ctx;
  char *folder; /* NULL: there is no cache */
} berth__spirv_cache;

/* The folder is $BERTH_CACHE_DIR, else $XDG_CACHE_HOME/berth, else $HOME/.cache/berth; an empty BERTH_CACHE_DIR turns
 * the cache off, and so does memory that runs out. Makes no folder yet. */
void berth__spirv_cache_open(berth__spirv_cache *cache, berth_context *ctx);
void berth__spirv_cache_close(berth__spirv_cache *cache);

/* What a compiled kernel was made from. */
typedef struct berth__spirv_key {
  const char *compiler; /* which one, in which version */
  const char *source;
  size_t size;
} berth__spirv_key;

/* False: it is not there. */
bool berth__spirv_cache_read(const berth__spirv_cache *cache, const berth__spirv_key *key, berth__spirv *out);
void berth__spirv_cache_write(const berth__spirv_cache *cache, const berth__spirv_key *key, const berth__spirv *spirv);

#endif
