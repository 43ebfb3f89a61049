#include "base/storage.h"

#include "base/math.h"

berth_storage berth_type_storage(berth_type type) {
  switch (type) {
#define BLOCK_STORAGE(name, value, text, elements, bytes) \
  case BERTH_##name: return (berth_storage){type, elements, bytes};
    BERTH_BLOCK_TYPE_MAP(BLOCK_STORAGE)
#undef BLOCK_STORAGE
    default: return (berth_storage){type, 1, (uint32_t)berth_type_size(type)};
  }
}

uint64_t berth_storage_bytes(berth_storage storage, uint64_t count) {
  uint64_t bytes = 0;
  return berth__storage_bytes(storage, count, &bytes) ? bytes : 0;
}

bool berth__storage_bytes(berth_storage storage, uint64_t count, uint64_t *out) {
  if (storage.elements == 0 || count % storage.elements != 0) return false;
  return berth__mul_u64(count / storage.elements, storage.bytes, out);
}

uint64_t berth__storage_count(berth_storage storage, uint64_t bytes) {
  return storage.bytes != 0 ? bytes / storage.bytes * storage.elements : 0;
}

/* An extent of zero makes the tensor empty, however large the others are. */
bool berth__dense_bytes(uint32_t rank, const int64_t *dim, berth_type type, uint64_t *out) {
  uint64_t count = 1;
  for (uint32_t i = 0; i < rank; i++)
    if (dim[i] == 0) count = 0;
  for (uint32_t i = 0; i < rank && count != 0; i++)
    if (!berth__mul_u64(count, (uint64_t)dim[i], &count)) return false;
  return berth__storage_bytes(berth_type_storage(type), count, out);
}
