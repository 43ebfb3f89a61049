#include "device/uniform.h"

#include "base/half.h"
#include "base/storage.h"

berth_type berth__uniform_type(berth_type type) {
  if (berth__type_is_float(type)) return BERTH_F32;
  switch (type) {
    case BERTH_I8:
    case BERTH_I16:
    case BERTH_I32:
    case BERTH_I64: return BERTH_I32;
    default: return BERTH_U32;
  }
}

static berth_status pack_integers(berth_type type, uint32_t *dst, const void *src, uint64_t count, berth_error *err) {
  const berth_tensor from = {.type = type, .data = (void *)(uintptr_t)src};
  const bool is_signed = berth__uniform_type(type) == BERTH_I32;
  for (uint64_t i = 0; i < count; i++) {
    const int64_t value = berth__load_i64(&from, (int64_t)i);
    if (is_signed ? value != (int32_t)value : (uint64_t)value > UINT32_MAX)
      return berth__fail(err, BERTH_INVALID,
                         "element %llu is %lld, which does not fit in the 32 bits that this device has for %s",
                         (unsigned long long)i, (long long)value, berth_type_name(type));
    dst[i] = (uint32_t)value;
  }
  return BERTH_OK;
}

/* Between float types, through f32. */
static void device_uniform_convert(berth_type from, berth_type to, void *dst, const void *src, uint64_t count) {
  float room[256];
  const uint64_t chunk = sizeof room / sizeof room[0];
  const berth_storage in = berth_type_storage(from), out = berth_type_storage(to);
  for (uint64_t done = 0; done < count; done += chunk) {
    const uint64_t n = count - done < chunk ? count - done : chunk;
    berth__convert_to_f32(from, room, (const unsigned char *)src + berth__storage_size(in, done), n);
    berth__convert_from_f32(to, (unsigned char *)dst + berth__storage_size(out, done), room, n);
  }
}

berth_status berth__uniform_pack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count,
                                 berth_error *err) {
  if (type == stored) {
    memcpy(dst, src, (size_t)berth__storage_size(berth_type_storage(type), count));
    return BERTH_OK;
  }
  if (!berth__type_is_float(type)) return pack_integers(type, dst, src, count, err);
  device_uniform_convert(type, stored, dst, src, count);
  return BERTH_OK;
}

void berth__uniform_unpack(berth_type type, berth_type stored, void *dst, const void *src, uint64_t count) {
  if (type == stored) {
    memcpy(dst, src, (size_t)berth__storage_size(berth_type_storage(type), count));
    return;
  }
  if (berth__type_is_float(type)) {
    device_uniform_convert(stored, type, dst, src, count);
    return;
  }
  const berth_tensor to = {.type = type, .data = dst};
  const uint32_t *words = src;
  for (uint64_t i = 0; i < count; i++)
    berth__store_i64(&to, (int64_t)i, stored == BERTH_I32 ? (int64_t)(int32_t)words[i] : (int64_t)words[i]);
}
