#include "ops/line.h"

#include "base/half.h"

#define INTEGER_LOAD(e) ((uint64_t)(int64_t)(e))

#define NAME f32
#define ELEMENT float
#define SUM double
#define LOAD(e) ((double)(e))
#define STORE(s) ((float)(s))
#include "ops/line_type.h"

#define NAME f64
#define ELEMENT double
#define SUM double
#define LOAD(e) (e)
#define STORE(s) (s)
#include "ops/line_type.h"

#define NAME f16
#define ELEMENT uint16_t
#define SUM double
#define LOAD(e) ((double)berth__f16_to_f32(e))
#define STORE(s) berth__f64_to_f16(s)
#include "ops/line_type.h"

#define NAME bf16
#define ELEMENT uint16_t
#define SUM double
#define LOAD(e) ((double)berth__bf16_to_f32(e))
#define STORE(s) berth__f64_to_bf16(s)
#include "ops/line_type.h"

#define NAME i8
#define ELEMENT int8_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((int8_t)(s))
#include "ops/line_type.h"

#define NAME u8
#define ELEMENT uint8_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((uint8_t)(s))
#include "ops/line_type.h"

#define NAME i16
#define ELEMENT int16_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((int16_t)(s))
#include "ops/line_type.h"

#define NAME u16
#define ELEMENT uint16_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((uint16_t)(s))
#include "ops/line_type.h"

#define NAME i32
#define ELEMENT int32_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((int32_t)(s))
#include "ops/line_type.h"

#define NAME i64
#define ELEMENT int64_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((int64_t)(s))
#include "ops/line_type.h"

#define NAME u32
#define ELEMENT uint32_t
#define SUM uint64_t
#define LOAD(e) INTEGER_LOAD(e)
#define STORE(s) ((uint32_t)(s))
#include "ops/line_type.h"

const berth__line_ops *berth__line_ops_of(berth_type type) {
  switch (type) {
    case BERTH_F32: return &line_f32;
    case BERTH_F64: return &line_f64;
    case BERTH_F16: return &line_f16;
    case BERTH_BF16: return &line_bf16;
    case BERTH_I8: return &line_i8;
    case BERTH_U8: return &line_u8;
    case BERTH_I16: return &line_i16;
    case BERTH_U16: return &line_u16;
    case BERTH_I32: return &line_i32;
    case BERTH_I64: return &line_i64;
    case BERTH_U32: return &line_u32;
    default: return NULL;
  }
}

void berth__line_load(const berth_tensor *tensor, int64_t index, int64_t stride, int64_t n, double *out) {
  const void *data = berth__element(tensor->data, index, berth_type_size(tensor->type));
  const float *f32 = data;
  const double *f64 = data;
  const uint16_t *half = data;
  switch (tensor->type) {
    case BERTH_F32:
      for (int64_t i = 0; i < n; i++) out[i] = (double)f32[i * stride];
      break;
    case BERTH_F64:
      for (int64_t i = 0; i < n; i++) out[i] = f64[i * stride];
      break;
    case BERTH_F16:
      for (int64_t i = 0; i < n; i++) out[i] = (double)berth__f16_to_f32(half[i * stride]);
      break;
    default:
      for (int64_t i = 0; i < n; i++) out[i] = (double)berth__bf16_to_f32(half[i * stride]);
      break;
  }
}

void berth__line_store(const berth_tensor *tensor, int64_t index, int64_t n, const double *values) {
  berth__line_ops_of(tensor->type)
      ->store(berth__element(tensor->data, index, berth_type_size(tensor->type)), values, n);
}
