#include "device/uniform.h"

#include "base/half.h"

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
                         "element %llu is %lld, which the 32 bits that this device has for %s do not hold",
                         (unsigned long long)i, (long long)value, berth_type_name(type));
    dst[i] = (uint32_t)value;
  }
  return BERTH_OK;
}

berth_status berth__uniform_pack(berth_type type, uint32_t *dst, const void *src, uint64_t count, berth_error *err) {
  if (berth__uniform_type(type) != BERTH_F32) return pack_integers(type, dst, src, count, err);
  berth__convert_to_f32(type, (float *)dst, src, count);
  return BERTH_OK;
}

void berth__uniform_unpack(berth_type type, void *dst, const uint32_t *src, uint64_t count) {
  const berth_type stored = berth__uniform_type(type);
  if (stored == BERTH_F32) {
    berth__convert_from_f32(type, dst, (const float *)src, count);
    return;
  }
  const berth_tensor to = {.type = type, .data = dst};
  for (uint64_t i = 0; i < count; i++)
    berth__store_i64(&to, (int64_t)i, stored == BERTH_I32 ? (int64_t)(int32_t)src[i] : (int64_t)src[i]);
}
