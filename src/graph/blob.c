/* Reference-counted bytes. Graphs that share a blob may be used on different threads, so the count is atomic. */
#include <stdatomic.h>

#include "base/math.h"
#include "graph/graph.h"

#define BLOB_HEADER 64 /* keeps the data aligned for all element types and for vector loads */

struct berth__blob {
  berth_context *ctx;
  atomic_uint references;
  unsigned char *data;
};

berth__blob *berth__blob_create(berth_context *ctx, const void *data, uint64_t size) {
  uint64_t total;
  if (!berth__add_u64(size, sizeof(berth__blob) + BLOB_HEADER, &total)) return NULL;
  berth__blob *blob = berth__alloc_u64(ctx, total);
  if (blob == NULL) return NULL;
  blob->ctx = ctx;
  atomic_init(&blob->references, 1);
  uintptr_t first = (uintptr_t)(blob + 1);
  blob->data = (unsigned char *)blob + sizeof *blob + ((BLOB_HEADER - first % BLOB_HEADER) % BLOB_HEADER);
  if (data != NULL && size != 0) memcpy(blob->data, data, (size_t)size);
  return blob;
}

void berth__blob_retain(berth__blob *blob) { atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed); }

void berth__blob_release(berth__blob *blob) {
  if (blob == NULL) return;
  if (atomic_fetch_sub_explicit(&blob->references, 1, memory_order_acq_rel) == 1) berth__free(blob->ctx, blob);
}

const void *berth__blob_data(const berth__blob *blob) { return blob->data; }
