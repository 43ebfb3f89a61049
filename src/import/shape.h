/* The extents of a tensor in a file, which nobody has checked yet. */
#ifndef BERTH_IMPORT_SHAPE_H
#define BERTH_IMPORT_SHAPE_H

#include "base/math.h"
#include "base/status.h"

/* Bytes of a dense tensor; false when the number does not fit. Extents are not negative. A zero extent makes the
 * tensor empty however large the others are. */
static inline bool berth__dense_size(uint32_t rank, const int64_t *dim, size_t element_size, uint64_t *out) {
  uint64_t size = element_size;
  for (uint32_t i = 0; i < rank; i++) {
    if (dim[i] == 0) {
      *out = 0;
      return true;
    }
  }
  for (uint32_t i = 0; i < rank; i++) {
    if (!berth__mul_u64(size, (uint64_t)dim[i], &size)) return false;
  }
  *out = size;
  return true;
}

#endif
