/* Elements of every type to and from f32. */
#include <math.h>

#include "base/blocks.h"
#include "base/half.h"
#include "base/status.h"
#include "base/storage.h"

/* To an integer of `bits` value bits: [-2^bits, 2^bits) signed, [0, 2^bits) unsigned. Both ends are exact in f32. */
#define INTEGER_FROM_F32(name, type, low, end, min, max)                                                     \
  static void name(void *dst, const float *src, uint64_t count) {                                            \
    type *to = dst;                                                                                          \
    for (uint64_t i = 0; i < count; i++) {                                                                   \
      float x = rintf(src[i]);                                                                               \
      to[i] = x >= (end) ? (type)(max) : x >= (low) ? (type)x : x < (low) ? (type)(min) : (type)0; /* NaN */ \
    }                                                                                                        \
  }

INTEGER_FROM_F32(i8_from_f32, int8_t, -0x1p7f, 0x1p7f, INT8_MIN, INT8_MAX)
INTEGER_FROM_F32(u8_from_f32, uint8_t, 0.0f, 0x1p8f, 0, UINT8_MAX)
INTEGER_FROM_F32(i16_from_f32, int16_t, -0x1p15f, 0x1p15f, INT16_MIN, INT16_MAX)
INTEGER_FROM_F32(i32_from_f32, int32_t, -0x1p31f, 0x1p31f, INT32_MIN, INT32_MAX)
INTEGER_FROM_F32(i64_from_f32, int64_t, -0x1p63f, 0x1p63f, INT64_MIN, INT64_MAX)
INTEGER_FROM_F32(u16_from_f32, uint16_t, 0.0f, 0x1p16f, 0, UINT16_MAX)
INTEGER_FROM_F32(u32_from_f32, uint32_t, 0.0f, 0x1p32f, 0, UINT32_MAX)
INTEGER_FROM_F32(u64_from_f32, uint64_t, 0.0f, 0x1p64f, 0, UINT64_MAX)

/* Converts element by element, with an expression of x. */
#define FROM_F32(name, type, expression)                          \
  static void name(void *dst, const float *src, uint64_t count) { \
    type *to = dst;                                               \
    for (uint64_t i = 0; i < count; i++) {                        \
      float x = src[i];                                           \
      to[i] = (expression);                                       \
    }                                                             \
  }

FROM_F32(f64_from_f32, double, (double)x)
FROM_F32(f16_from_f32, uint16_t, berth__f32_to_f16(x))
FROM_F32(bf16_from_f32, uint16_t, berth__f32_to_bf16(x))
FROM_F32(bool_from_f32, uint8_t, x != 0.0f)

#define TO_F32(name, type, expression)                            \
  static void name(float *dst, const void *src, uint64_t count) { \
    const type *from = src;                                       \
    for (uint64_t i = 0; i < count; i++) {                        \
      type x = from[i];                                           \
      dst[i] = (expression);                                      \
    }                                                             \
  }

TO_F32(f32_from_f64, double, (float)x)
TO_F32(f32_from_f16, uint16_t, berth__f16_to_f32(x))
TO_F32(f32_from_bf16, uint16_t, berth__bf16_to_f32(x))
TO_F32(f32_from_i8, int8_t, (float)x)
TO_F32(f32_from_u8, uint8_t, (float)x)
TO_F32(f32_from_i16, int16_t, (float)x)
TO_F32(f32_from_i32, int32_t, (float)x)
TO_F32(f32_from_i64, int64_t, (float)x)
TO_F32(f32_from_u16, uint16_t, (float)x)
TO_F32(f32_from_u32, uint32_t, (float)x)
TO_F32(f32_from_u64, uint64_t, (float)x)
TO_F32(f32_from_bool, uint8_t, x != 0 ? 1.0f : 0.0f)

void berth__convert_from_f32(berth_type type, void *dst, const float *src, uint64_t count) {
  switch (type) {
    case BERTH_F32: memmove(dst, src, (size_t)count * sizeof *src); break;
    case BERTH_F64: f64_from_f32(dst, src, count); break;
    case BERTH_F16: f16_from_f32(dst, src, count); break;
    case BERTH_BF16: bf16_from_f32(dst, src, count); break;
    case BERTH_I8: i8_from_f32(dst, src, count); break;
    case BERTH_U8: u8_from_f32(dst, src, count); break;
    case BERTH_I16: i16_from_f32(dst, src, count); break;
    case BERTH_I32: i32_from_f32(dst, src, count); break;
    case BERTH_I64: i64_from_f32(dst, src, count); break;
    case BERTH_U16: u16_from_f32(dst, src, count); break;
    case BERTH_U32: u32_from_f32(dst, src, count); break;
    case BERTH_U64: u64_from_f32(dst, src, count); break;
    case BERTH_BOOL: bool_from_f32(dst, src, count); break;
    default: berth__blocks_encode(type, src, count, dst); break;
  }
}

void berth__convert_to_f32(berth_type type, float *dst, const void *src, uint64_t count) {
  switch (type) {
    case BERTH_F32: memmove(dst, src, (size_t)count * sizeof *dst); break;
    case BERTH_F64: f32_from_f64(dst, src, count); break;
    case BERTH_F16: f32_from_f16(dst, src, count); break;
    case BERTH_BF16: f32_from_bf16(dst, src, count); break;
    case BERTH_I8: f32_from_i8(dst, src, count); break;
    case BERTH_U8: f32_from_u8(dst, src, count); break;
    case BERTH_I16: f32_from_i16(dst, src, count); break;
    case BERTH_I32: f32_from_i32(dst, src, count); break;
    case BERTH_I64: f32_from_i64(dst, src, count); break;
    case BERTH_U16: f32_from_u16(dst, src, count); break;
    case BERTH_U32: f32_from_u32(dst, src, count); break;
    case BERTH_U64: f32_from_u64(dst, src, count); break;
    case BERTH_BOOL: f32_from_bool(dst, src, count); break;
    default: berth__blocks_decode(type, src, count, dst); break;
  }
}

static berth_status base_convert_check_elements(berth_type type, const void *src, uint64_t count, const void *dst,
                                                berth_error *err) {
  const berth_storage storage = berth_type_storage(type);
  uint64_t bytes;
  if (storage.bytes == 0) return berth__fail(err, BERTH_INVALID, "there is no type %d", (int)type);
  if (!berth__storage_bytes(storage, count, &bytes))
    return berth__fail(err, BERTH_INVALID, "%llu elements are not a whole number of blocks of %u, which %s has",
                       (unsigned long long)count, storage.elements, berth_type_name(type));
  if ((src == NULL || dst == NULL) && count != 0)
    return berth__fail(err, BERTH_INVALID, "elements are converted from and to NULL");
  return BERTH_OK;
}

berth_status berth_to_f32(berth_type type, const void *src, uint64_t count, float *dst, berth_error *err) {
  BERTH__TRY(base_convert_check_elements(type, src, count, dst, err));
  if (count != 0) berth__convert_to_f32(type, dst, src, count);
  return BERTH_OK;
}

berth_status berth_from_f32(berth_type type, const float *src, uint64_t count, void *dst, berth_error *err) {
  BERTH__TRY(base_convert_check_elements(type, src, count, dst, err));
  if (!berth__type_encodes(type))
    return berth__fail(err, BERTH_UNSUPPORTED, "%s is decoded and not encoded: give its blocks as bytes",
                       berth_type_name(type));
  if (count != 0) berth__convert_from_f32(type, dst, src, count);
  return BERTH_OK;
}
