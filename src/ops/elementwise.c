#include "ops/elementwise.h"

#include <math.h>

#include "base/half.h"

berth__class berth__class_of(berth_type type) {
  if (type == BERTH_F64) return BERTH__CLASS_F64;
  if (type == BERTH_U64) return BERTH__CLASS_U64;
  return berth__type_is_float(type) ? BERTH__CLASS_F32 : BERTH__CLASS_I64;
}

berth_type berth__class_type(berth__class cls) {
  static const berth_type types[BERTH__CLASSES] = {BERTH_F32, BERTH_F64, BERTH_I64, BERTH_U64};
  return types[cls];
}

bool berth__is_class_type(berth_type type) { return type == berth__class_type(berth__class_of(type)); }

/* ---- Gather --------------------------------------------------------------------------------------------------- */

/* One loop: `convert` of x, an element of c_type. */
#define GATHER(c_type, convert)                       \
  do {                                                \
    const c_type *src = (const c_type *)data + index; \
    for (int64_t i = 0; i < count; i++) {             \
      c_type x = src[i * step];                       \
      dst[i] = (convert);                             \
    }                                                 \
  } while (0);                                        \
  break

static void gather_f32(float *dst, berth_type type, const void *data, int64_t index, int64_t step, int64_t count) {
  switch (type) {
    case BERTH_F16: GATHER(uint16_t, berth__f16_to_f32(x));
    case BERTH_BF16: GATHER(uint16_t, berth__bf16_to_f32(x));
    default: GATHER(float, x);
  }
}

static void gather_i64(int64_t *dst, berth_type type, const void *data, int64_t index, int64_t step, int64_t count) {
  switch (type) {
    case BERTH_I8: GATHER(int8_t, x);
    case BERTH_U8: GATHER(uint8_t, x);
    case BERTH_I16: GATHER(int16_t, x);
    case BERTH_U16: GATHER(uint16_t, x);
    case BERTH_I32: GATHER(int32_t, x);
    case BERTH_U32: GATHER(uint32_t, x);
    case BERTH_BOOL: GATHER(uint8_t, x != 0);
    default: GATHER(int64_t, x);
  }
}

void berth__gather_f64(double *dst, berth_type type, const void *data, int64_t index, int64_t step, int64_t count) {
  switch (type) {
    case BERTH_F32: GATHER(float, (double)x);
    case BERTH_F64: GATHER(double, x);
    case BERTH_F16: GATHER(uint16_t, (double)berth__f16_to_f32(x));
    case BERTH_BF16: GATHER(uint16_t, (double)berth__bf16_to_f32(x));
    case BERTH_I8: GATHER(int8_t, x);
    case BERTH_U8: GATHER(uint8_t, x);
    case BERTH_I16: GATHER(int16_t, x);
    case BERTH_U16: GATHER(uint16_t, x);
    case BERTH_I32: GATHER(int32_t, x);
    case BERTH_U32: GATHER(uint32_t, x);
    case BERTH_U64: GATHER(uint64_t, (double)x);
    case BERTH_BOOL: GATHER(uint8_t, x != 0);
    default: GATHER(int64_t, (double)x);
  }
}

void berth__gather(berth__class cls, void *dst, berth_type type, const void *data, int64_t index, int64_t step,
                   int64_t count) {
  if (step == 1 && type == berth__class_type(cls)) {
    size_t size = berth_type_size(type);
    memcpy(dst, (const char *)data + index * (int64_t)size, (size_t)count * size);
    return;
  }
  switch (cls) {
    case BERTH__CLASS_F32: gather_f32(dst, type, data, index, step, count); return;
    case BERTH__CLASS_F64: berth__gather_f64(dst, type, data, index, step, count); return;
    case BERTH__CLASS_I64:
    case BERTH__CLASS_U64: gather_i64(dst, type, data, index, step, count); return; /* the same bits */
    case BERTH__CLASSES: return;
  }
}

/* ---- Scatter -------------------------------------------------------------------------------------------------- */

#define SCATTER(c_type, convert)                                   \
  do {                                                             \
    c_type *dst = (c_type *)data + index;                          \
    for (int64_t i = 0; i < count; i++) dst[i * step] = (convert); \
  } while (0);                                                     \
  break

static int64_t saturate(double x, int64_t low, int64_t high) {
  if (isnan(x)) return 0;
  if (x >= 0x1p63) return high;
  if (x < -0x1p63) return low;
  int64_t truncated = (int64_t)x;
  return truncated < low ? low : truncated > high ? high : truncated;
}

static uint64_t saturate_u64(double x) {
  if (!(x > 0)) return 0; /* including NaN */
  return x >= 0x1p64 ? UINT64_MAX : (uint64_t)x;
}

static void scatter_f32(const float *src, berth_type type, void *data, int64_t index, int64_t step, int64_t count) {
  int64_t low, high;
  berth__int_limits(type, &low, &high);
  switch (type) {
    case BERTH_F32: SCATTER(float, src[i]);
    case BERTH_F64: SCATTER(double, (double)src[i]);
    case BERTH_F16: SCATTER(uint16_t, berth__f32_to_f16(src[i]));
    case BERTH_BF16: SCATTER(uint16_t, berth__f32_to_bf16(src[i]));
    case BERTH_I8: SCATTER(int8_t, (int8_t)saturate((double)src[i], low, high));
    case BERTH_U8: SCATTER(uint8_t, (uint8_t)saturate((double)src[i], low, high));
    case BERTH_I16: SCATTER(int16_t, (int16_t)saturate((double)src[i], low, high));
    case BERTH_U16: SCATTER(uint16_t, (uint16_t)saturate((double)src[i], low, high));
    case BERTH_I32: SCATTER(int32_t, (int32_t)saturate((double)src[i], low, high));
    case BERTH_U32: SCATTER(uint32_t, (uint32_t)saturate((double)src[i], low, high));
    case BERTH_U64: SCATTER(uint64_t, saturate_u64((double)src[i]));
    case BERTH_BOOL: SCATTER(uint8_t, src[i] != 0.0f);
    default: SCATTER(int64_t, saturate((double)src[i], low, high));
  }
}

static void scatter_f64(const double *src, berth_type type, void *data, int64_t index, int64_t step, int64_t count) {
  int64_t low, high;
  berth__int_limits(type, &low, &high);
  switch (type) {
    case BERTH_F32: SCATTER(float, (float)src[i]);
    case BERTH_F64: SCATTER(double, src[i]);
    case BERTH_F16: SCATTER(uint16_t, berth__f64_to_f16(src[i]));
    case BERTH_BF16: SCATTER(uint16_t, berth__f64_to_bf16(src[i]));
    case BERTH_I8: SCATTER(int8_t, (int8_t)saturate(src[i], low, high));
    case BERTH_U8: SCATTER(uint8_t, (uint8_t)saturate(src[i], low, high));
    case BERTH_I16: SCATTER(int16_t, (int16_t)saturate(src[i], low, high));
    case BERTH_U16: SCATTER(uint16_t, (uint16_t)saturate(src[i], low, high));
    case BERTH_I32: SCATTER(int32_t, (int32_t)saturate(src[i], low, high));
    case BERTH_U32: SCATTER(uint32_t, (uint32_t)saturate(src[i], low, high));
    case BERTH_U64: SCATTER(uint64_t, saturate_u64(src[i]));
    case BERTH_BOOL: SCATTER(uint8_t, src[i] != 0.0);
    default: SCATTER(int64_t, saturate(src[i], low, high));
  }
}

/* An integer of more than 53 bits as a double with a sticky last bit, so that rounding it further to a half float
 * equals rounding the integer itself. */
static double sticky_u64(uint64_t magnitude) {
  if (magnitude >> 53) magnitude = (magnitude & ~UINT64_C(0x7ff)) | ((magnitude & 0x7ff) ? 0x800 : 0);
  return (double)magnitude;
}

static double sticky_f64(int64_t x) { return x < 0 ? -sticky_u64(0 - (uint64_t)x) : sticky_u64((uint64_t)x); }

static void scatter_i64(const int64_t *src, berth_type type, void *data, int64_t index, int64_t step, int64_t count) {
  switch (type) {
    case BERTH_F32: SCATTER(float, (float)src[i]);
    case BERTH_F64: SCATTER(double, (double)src[i]);
    case BERTH_F16: SCATTER(uint16_t, berth__f64_to_f16(sticky_f64(src[i])));
    case BERTH_BF16: SCATTER(uint16_t, berth__f64_to_bf16(sticky_f64(src[i])));
    case BERTH_I8: SCATTER(int8_t, (int8_t)src[i]);
    case BERTH_U8: SCATTER(uint8_t, (uint8_t)src[i]);
    case BERTH_I16: SCATTER(int16_t, (int16_t)src[i]);
    case BERTH_U16: SCATTER(uint16_t, (uint16_t)src[i]);
    case BERTH_I32: SCATTER(int32_t, (int32_t)src[i]);
    case BERTH_U32: SCATTER(uint32_t, (uint32_t)src[i]);
    case BERTH_BOOL: SCATTER(uint8_t, src[i] != 0);
    default: SCATTER(int64_t, src[i]); /* u64 has the same bits */
  }
}

/* A u64 differs from the i64 with the same bits only when converted to a float. */
static void scatter_u64(const uint64_t *src, berth_type type, void *data, int64_t index, int64_t step, int64_t count) {
  switch (type) {
    case BERTH_F32: SCATTER(float, (float)src[i]);
    case BERTH_F64: SCATTER(double, (double)src[i]);
    case BERTH_F16: SCATTER(uint16_t, berth__f64_to_f16(sticky_u64(src[i])));
    case BERTH_BF16: SCATTER(uint16_t, berth__f64_to_bf16(sticky_u64(src[i])));
    default: scatter_i64((const int64_t *)src, type, data, index, step, count);
  }
}

void berth__scatter(berth__class cls, const void *src, berth_type type, void *data, int64_t index, int64_t step,
                    int64_t count) {
  if (step == 1 && type == berth__class_type(cls)) {
    size_t size = berth_type_size(type);
    memcpy((char *)data + index * (int64_t)size, src, (size_t)count * size);
    return;
  }
  switch (cls) {
    case BERTH__CLASS_F32: scatter_f32(src, type, data, index, step, count); return;
    case BERTH__CLASS_F64: scatter_f64(src, type, data, index, step, count); return;
    case BERTH__CLASS_I64: scatter_i64(src, type, data, index, step, count); return;
    case BERTH__CLASS_U64: scatter_u64(src, type, data, index, step, count); return;
    case BERTH__CLASSES: return;
  }
}

/* ---- One element ---------------------------------------------------------------------------------------------- */

double berth__load_f64(const berth_tensor *tensor, int64_t element_index) {
  double value = 0;
  berth__gather_f64(&value, tensor->type, tensor->data, element_index, 1, 1);
  return value;
}

void berth__store_f64(const berth_tensor *tensor, int64_t element_index, double value) {
  scatter_f64(&value, tensor->type, tensor->data, element_index, 1, 1);
}

int64_t berth__load_i64(const berth_tensor *tensor, int64_t element_index) {
  int64_t value = 0;
  if (!berth__type_is_float(tensor->type)) {
    gather_i64(&value, tensor->type, tensor->data, element_index, 1, 1);
    return value;
  }
  return saturate(berth__load_f64(tensor, element_index), INT64_MIN, INT64_MAX);
}

void berth__store_i64(const berth_tensor *tensor, int64_t element_index, int64_t value) {
  scatter_i64(&value, tensor->type, tensor->data, element_index, 1, 1);
}

/* ---- Runs ----------------------------------------------------------------------------------------------------- */

/* Whether the axes `outer` and `inner` are contiguous in every tensor. */
static bool elementwise_can_merge(const berth__runs *runs, uint32_t kept, const int64_t *const *stride, uint32_t axis,
                                  int64_t extent) {
  for (uint32_t k = 0; k < runs->n; k++)
    if (runs->stride[k][kept] != stride[k][axis] * extent) return false;
  return true;
}

void berth__runs_shape(berth__runs *runs, uint32_t rank, const int64_t *dim, uint32_t n, const int64_t *const *stride) {
  uint32_t kept = 0;
  runs->n = n;
  for (uint32_t axis = 0; axis < rank; axis++) {
    if (dim[axis] == 1) continue;
    if (kept > 0 && elementwise_can_merge(runs, kept - 1, stride, axis, dim[axis])) {
      kept--;
      runs->dim[kept] *= dim[axis];
    } else {
      runs->dim[kept] = dim[axis];
    }
    for (uint32_t k = 0; k < n; k++) runs->stride[k][kept] = stride[k][axis];
    kept++;
  }
  if (kept == 0) { /* a scalar is a run of one element */
    runs->dim[kept] = 1;
    for (uint32_t k = 0; k < n; k++) runs->stride[k][kept] = 0;
    kept++;
  }
  runs->rank = kept;
  for (uint32_t k = 0; k < n; k++) runs->step[k] = runs->stride[k][kept - 1];
}

void berth__runs_start(berth__runs *runs, int64_t begin, int64_t end) {
  uint32_t last = runs->rank - 1;
  runs->left = end > begin ? end - begin : 0;
  runs->count = 0;
  if (runs->left == 0) return;
  for (uint32_t k = 0; k < runs->n; k++) runs->strides[k] = runs->stride[k];
  berth__walk_start(&runs->walk, last, runs->dim, runs->n, runs->strides, begin / runs->dim[last]);
  runs->inner = begin % runs->dim[last];
}

bool berth__runs_next(berth__runs *runs) {
  int64_t row = runs->dim[runs->rank - 1];
  if (runs->left == 0) return false;
  if (runs->inner == row) {
    berth__walk_next(&runs->walk);
    runs->inner = 0;
  }
  runs->count = row - runs->inner;
  if (runs->count > runs->left) runs->count = runs->left;
  for (uint32_t k = 0; k < runs->n; k++) runs->index[k] = runs->walk.index[k] + runs->inner * runs->step[k];
  runs->inner += runs->count;
  runs->left -= runs->count;
  return true;
}

void berth__runs_of_call(berth__runs *runs, const berth_op_call *call) {
  const berth_tensor *out = &call->out[0];
  int64_t operand[3][BERTH_MAX_RANK];
  const int64_t *stride[4] = {out->stride, operand[0], operand[1], operand[2]};
  for (uint32_t k = 0; k < call->n_in; k++) berth__broadcast_strides(&call->in[k], out->rank, out->dim, operand[k]);
  berth__runs_shape(runs, out->rank, out->dim, call->n_in + 1, stride);
  berth__runs_start(runs, call->begin, call->end);
}

/* ---- Blocks --------------------------------------------------------------------------------------------------- */

typedef union block {
  float f32[BERTH__BLOCK];
  double f64[BERTH__BLOCK];
  int64_t i64[BERTH__BLOCK];
} block;

/* The address of the tensor's elements if they can be used directly, or NULL. */
static void *usable_block(const berth_tensor *tensor, berth__class cls, int64_t index, int64_t step) {
  if (tensor->type != berth__class_type(cls) || step != 1) return NULL;
  return (char *)tensor->data + index * (int64_t)berth_type_size(tensor->type);
}

static void map_run(const berth_op_call *call, const berth__runs *runs, berth__class in_class, berth__class out_class,
                    berth__block_fn fn, const void *state) {
  block in_block[2], out_block;
  for (int64_t at = 0; at < runs->count; at += BERTH__BLOCK) {
    int64_t n = runs->count - at < BERTH__BLOCK ? runs->count - at : BERTH__BLOCK;
    const void *in[2] = {NULL, NULL};
    for (uint32_t k = 0; k < call->n_in; k++) {
      int64_t step = runs->step[k + 1], index = runs->index[k + 1] + at * step;
      in[k] = usable_block(&call->in[k], in_class, index, step);
      if (in[k]) continue;
      in[k] = &in_block[k];
      if (step != 0 || at == 0) /* a repeated element fills its block once per run */
        berth__gather(in_class, &in_block[k], call->in[k].type, call->in[k].data, index, step, n);
    }
    int64_t index = runs->index[0] + at * runs->step[0];
    void *out = usable_block(&call->out[0], out_class, index, runs->step[0]);
    if (out == in[0] || out == in[1]) out = NULL; /* block functions must not be passed overlapping blocks */
    fn(out ? out : &out_block, in, n, state);
    if (!out) berth__scatter(out_class, &out_block, call->out[0].type, call->out[0].data, index, runs->step[0], n);
  }
}

void berth__map_blocks(const berth_op_call *call, berth__class in_class, berth__class out_class, berth__block_fn fn,
                       const void *state) {
  berth__runs runs;
  berth__runs_of_call(&runs, call);
  while (berth__runs_next(&runs)) map_run(call, &runs, in_class, out_class, fn, state);
}

/* ---- Helpers -------------------------------------------------------------------------------------------------- */

double berth__block_sum(const double *values, int64_t count) {
  double lane[8] = {0};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8)
    for (int k = 0; k < 8; k++) lane[k] += values[i + k];
  for (; i < count; i++) lane[i & 7] += values[i];
  return ((lane[0] + lane[4]) + (lane[1] + lane[5])) + ((lane[2] + lane[6]) + (lane[3] + lane[7]));
}

int64_t berth__items_elements(const berth_op_call *call) { return berth__count(&call->out[0]); }

berth__lines berth__lines_of(const berth_tensor *tensor, int64_t axis) {
  berth__lines lines = {1, 1, 1};
  int64_t at = axis < 0 ? axis + (int64_t)tensor->rank : axis;
  for (int64_t i = 0; i < (int64_t)tensor->rank; i++) {
    int64_t *part = i < at ? &lines.outer : i == at ? &lines.length : &lines.inner;
    *part *= tensor->dim[i];
  }
  return lines;
}
