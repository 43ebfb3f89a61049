/* Storage: how the elements of a value lie in memory. A storage is a type, the elements per block and the bytes per
 * block; most types have one element per block. It belongs to the place where a value lives, not to the value: a device
 * may store f16 as f32, or f32 as f16.
 *
 * berth__storage_bytes computes the bytes of values; nothing else multiplies their count by a size. */
#ifndef BERTH_BASE_STORAGE_H
#define BERTH_BASE_STORAGE_H

#include <stdbool.h>

#include "berth/berth.h"

/* Bytes of `count` elements; false if they do not fit in 64 bits or are not whole blocks. */
bool berth__storage_bytes(berth_storage storage, uint64_t count, uint64_t *out);

/* The same for a count that is known to be valid: an element or a size of a planned value. */
static inline uint64_t berth__storage_size(berth_storage storage, uint64_t count) {
  uint64_t bytes = 0;
  (void)berth__storage_bytes(storage, count, &bytes);
  return bytes;
}

/* Elements in `bytes`, which are whole blocks. */
uint64_t berth__storage_count(berth_storage storage, uint64_t bytes);

static inline bool berth__storage_equal(berth_storage a, berth_storage b) {
  return a.type == b.type && a.elements == b.elements && a.bytes == b.bytes;
}

/* Whether elements of both have the same number of bytes, so that one can overwrite the other. */
static inline bool berth__storage_same_width(berth_storage a, berth_storage b) {
  return a.elements == b.elements && a.bytes == b.bytes;
}

/* Alignment of a type's elements in host memory, for kernels that read them directly; blocks may be unaligned. */
static inline size_t berth__type_align(berth_type type) {
  const size_t size = berth_type_size(type);
  return size != 0 ? size : 1;
}

/* Bytes of a dense tensor in host memory; false if the number does not fit. Extents are not negative. */
bool berth__dense_bytes(uint32_t rank, const int64_t *dim, berth_type type, uint64_t *out);

#endif
