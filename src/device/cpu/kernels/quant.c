/* quantize, dequantize and quantize_range between f32 and integers of 8 or 16 bits: one scale and zero point for the
 * tensor, one per index of an axis, or of several axes. */
#include "device/cpu/kernels/inlined.h"
#include "device/cpu/kernels/lines.h"
#include "device/cpu/kernels/vec.h"
#include "ops/operand.h"

/* x as rows, each with one scale and zero point, or rows along which they vary. */
typedef struct rows {
  int64_t count, length, entries; /* row r has entry r % entries */
  int64_t all;                    /* elements; the last row may be shorter */
  bool is_along;
  uint32_t n_outer; /* if entries vary along several axes: the axes of x before the last, over which row r is counted */
  int64_t outer[BERTH_MAX_RANK], step[BERTH_MAX_RANK]; /* their extents, and the step between entries on them */
} rows;

#define PIECE 16384 /* elements per row if there is one entry for all */
/* Types are constants in the loops over rows. */

/* The one axis along which an operand has more than one entry: its index in x; -1: it has a single entry; -2: there are
 * several such axes. */
static int quant_kernel_axis_of(const berth_tensor *x, const berth_tensor *entries) {
  int found = -1;
  for (uint32_t k = 0; k < entries->rank; k++) {
    if (entries->dim[k] == 1) continue;
    if (found != -1 || entries->rank > x->rank) return -2;
    found = (int)(x->rank - entries->rank + k);
  }
  return found;
}

static bool quant_kernel_are_alike(const berth_tensor *a, const berth_tensor *b) {
  return a->rank == b->rank && memcmp(a->dim, b->dim, a->rank * sizeof *a->dim) == 0;
}

/* Rows of the last axis of x, for entries that vary along several axes. */
static bool quant_kernel_rows_of_many(const berth_op_call *call, rows *out) {
  const berth_tensor *x = &call->in[BERTH__QUANTIZE_X], *scale = &call->in[BERTH__QUANTIZE_SCALE];
  if (scale->rank > x->rank || x->rank == 0) return false;
  if (berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT) &&
      !quant_kernel_are_alike(scale, &call->in[BERTH__QUANTIZE_ZERO_POINT]))
    return false;
  const uint32_t lacks = x->rank - scale->rank, last = x->rank - 1;
  out->is_along = scale->rank > 0 && scale->dim[scale->rank - 1] != 1;
  out->length = x->dim[last];
  out->count = out->length > 0 ? out->all / out->length : 0;
  out->n_outer = last;
  for (uint32_t k = 0; k < last; k++) {
    out->outer[k] = x->dim[k];
    out->step[k] = k < lacks || scale->dim[k - lacks] == 1 ? 0 : scale->stride[k - lacks];
  }
  return true;
}

static bool quant_kernel_rows_of(const berth_op_call *call, rows *out) {
  const berth_tensor *x = &call->in[BERTH__QUANTIZE_X];
  const bool has_zero = berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT);
  const int axis = quant_kernel_axis_of(x, &call->in[BERTH__QUANTIZE_SCALE]),
            zero_axis = has_zero ? quant_kernel_axis_of(x, &call->in[BERTH__QUANTIZE_ZERO_POINT]) : axis;
  *out = (rows){.all = berth__count(x), .length = PIECE, .entries = 1};
  out->count = (out->all + PIECE - 1) / PIECE;
  if (!berth__is_contiguous(x)) return false;
  if (!berth__is_contiguous(&call->in[BERTH__QUANTIZE_SCALE]) ||
      (has_zero && !berth__is_contiguous(&call->in[BERTH__QUANTIZE_ZERO_POINT])))
    return false;
  if (axis == -2 || axis != zero_axis) return quant_kernel_rows_of_many(call, out);
  if (axis == -1) return true;
  out->is_along = axis + 1 == (int)x->rank;
  out->length = 1;
  for (uint32_t k = (uint32_t)axis + (out->is_along ? 0 : 1); k < x->rank; k++) out->length *= x->dim[k];
  if (!out->is_along) out->entries = x->dim[axis];
  out->count = out->length > 0 ? out->all / out->length : 0;
  return true;
}

static bool quant_kernel_is_byte(berth_type type) { return type == BERTH_U8 || type == BERTH_I8; }
static bool quant_kernel_is_short(berth_type type) { return type == BERTH_U16 || type == BERTH_I16; }
static bool quant_kernel_is_signed(berth_type type) { return type == BERTH_I8 || type == BERTH_I16; }

static bool takes_quantize(const berth_op_call *call) {
  rows r;
  return call->in[BERTH__QUANTIZE_X].type == BERTH_F32 && call->in[BERTH__QUANTIZE_SCALE].type == BERTH_F32 &&
         (quant_kernel_is_byte(call->out[0].type) || quant_kernel_is_short(call->out[0].type)) &&
         quant_kernel_rows_of(call, &r);
}

static bool takes_dequantize(const berth_op_call *call) {
  const berth_type x = call->in[BERTH__QUANTIZE_X].type;
  rows r;
  return call->in[BERTH__QUANTIZE_SCALE].type == BERTH_F32 &&
         (quant_kernel_is_byte(x) || quant_kernel_is_short(x) ||
          (x == BERTH_I32 && !berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT))) &&
         quant_kernel_rows_of(call, &r);
}

static int64_t quant_kernel_items(const berth_op_call *call) {
  rows r;
  quant_kernel_rows_of(call, &r);
  return r.count;
}

#define WORTH 32768 /* elements that are worth a thread */

static int64_t quant_kernel_grain(const berth_op_call *call) {
  rows r;
  quant_kernel_rows_of(call, &r);
  return WORTH / (r.length + 1) + 1;
}

/* n elements as integers of 32 bits, with zeros after them. */
#define WIDEN(c_type)                                                              \
  {                                                                                \
    typedef c_type narrow __attribute__((vector_size(VF_LANES * sizeof(c_type)))); \
    typedef int32_t wide __attribute__((vector_size(VF_LANES * sizeof(int32_t)))); \
    narrow elements = {0};                                                         \
    if (n == VF_LANES) /* a copy of a constant size is a load */                   \
      memcpy(&elements, (const c_type *)data + index, sizeof elements);            \
    else                                                                           \
      memcpy(&elements, (const c_type *)data + index, (size_t)n * sizeof(c_type)); \
    const wide whole = __builtin_convertvector(elements, wide);                    \
    return vi_load(&whole);                                                        \
  }

INLINED vi quant_kernel_load(berth_type type, const void *data, int64_t index, int64_t n) {
  switch (type) {
    case BERTH_U8: return vi_load_u8_n((const uint8_t *)data + index, n);
    case BERTH_I8: return vi_load_i8_n((const uint8_t *)data + index, n);
    case BERTH_U16: WIDEN(uint16_t)
    case BERTH_I16: WIDEN(int16_t)
    default: WIDEN(int32_t)
  }
}

/* Elements that are within the range of the type. */
INLINED void quant_kernel_store(berth_type type, void *to, int64_t index, vi x, int64_t n) {
  typedef uint16_t narrow __attribute__((vector_size(VF_LANES * sizeof(uint16_t))));
  typedef uint32_t wide __attribute__((vector_size(VF_LANES * sizeof(uint32_t))));
  wide whole;
  if (quant_kernel_is_byte(type)) {
    vi_store_bytes_n((uint8_t *)to + index, x, n);
    return;
  }
  vi_store(&whole, x);
  const narrow elements = __builtin_convertvector(whole, narrow);
  if (n == VF_LANES)
    memcpy((uint16_t *)to + index, &elements, sizeof elements);
  else
    memcpy((uint16_t *)to + index, &elements, (size_t)n * sizeof(uint16_t));
}

/* The entry of a row, or the first of those along it. */
static int64_t quant_kernel_entry(const rows *r, int64_t row) {
  int64_t entry = 0;
  if (r->n_outer == 0) return r->is_along ? 0 : row % r->entries;
  for (uint32_t k = r->n_outer; k-- > 0; row /= r->outer[k]) entry += row % r->outer[k] * r->step[k];
  return entry;
}

/* Scale and zero point of n elements from `at` on, in the row with this entry. */
static inline vf quant_kernel_scale_of(const berth_op_call *call, const rows *r, int64_t entry, int64_t at, int64_t n) {
  const float *scale = (const float *)call->in[BERTH__QUANTIZE_SCALE].data + entry;
  return r->is_along ? vf_load_n(scale + at, n) : vf_set1(*scale);
}
INLINED vi quant_kernel_zero_of(const berth_op_call *call, const rows *r, berth_type type, int64_t entry, int64_t at,
                                int64_t n) {
  if (!berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT)) return vi_set1(0);
  return r->is_along ? quant_kernel_load(type, call->in[BERTH__QUANTIZE_ZERO_POINT].data, entry + at, n)
                     : vi_set1((int32_t)berth__load_i64(&call->in[BERTH__QUANTIZE_ZERO_POINT], entry));
}

static inline int64_t row_end(const rows *r, int64_t row) {
  return (row + 1) * r->length < r->all ? r->length : r->all - row * r->length;
}

/* Elements of one scale that permits fast division: the dividend is clamped instead of the quotient. */
static void quantize_line(const float *x, int64_t end, float scale, int32_t zero, bool is_signed, uint8_t *out) {
  const float least = (is_signed ? -128.0f : 0.0f) - (float)zero, most = (is_signed ? 127.0f : 255.0f) - (float)zero;
  const vf low = vf_set1(least * scale), high = vf_set1(most * scale), unit = vf_set1(scale);
  const vf reciprocal = vf_set1(1.0f / scale), nothing = vf_set1((float)-zero);
  const vi shift = vi_set1(zero);
  int64_t at = 0;
  for (; at + 4 * VF_LANES <= end; at += 4 * VF_LANES) {
    vi whole[4];
    for (int i = 0; i < 4; i++) {
      const vf y = vf_quotient(vf_min(high, vf_max(low, vf_load(x + at + i * VF_LANES))), unit, reciprocal);
      whole[i] = vi_add(vf_to_int(vf_pick_nan(y, nothing, y)), shift);
    }
    vi_store_bytes_of_two(out + at, out + at + 2 * VF_LANES, whole, whole + 2, is_signed);
  }
  for (; at < end; at += VF_LANES) {
    const int64_t n = vf_tail(end - at);
    const vf y = vf_quotient(vf_min(high, vf_max(low, vf_load_n(x + at, n))), unit, reciprocal);
    vi_store_bytes_n(out + at, vi_add(vf_to_int(vf_pick_nan(y, nothing, y)), shift), n);
  }
}

INLINED vi quantize_vector(berth_type type, vf x, vf scale, vi zero) {
  const float range = quant_kernel_is_byte(type) ? 255.0f : 65535.0f;
  const float low = quant_kernel_is_signed(type) ? -0.5f * (range + 1) : 0.0f;
  const vf shift = vf_from_int(zero);
  const vf y = vf_min(vf_set1(low + range) - shift, vf_max(vf_set1(low) - shift, x / scale));
  return vi_add(vf_to_int(vf_pick_nan(y, vf_zero() - shift, y)), zero);
}

INLINED void quantize_row(const berth_op_call *call, const rows *r, const berth_type type, int64_t row) {
  const float *x = (const float *)call->in[BERTH__QUANTIZE_X].data + row * r->length;
  const int64_t first = row * r->length, end = row_end(r, row), entry = quant_kernel_entry(r, row);
  if (!r->is_along && quant_kernel_is_byte(type)) {
    const float scale = ((const float *)call->in[BERTH__QUANTIZE_SCALE].data)[entry];
    const berth_tensor *zero = &call->in[BERTH__QUANTIZE_ZERO_POINT];
    const bool has_zero = berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT);
    if (scale > 0 && vf_divides_fast(scale)) {
      quantize_line(x, end, scale, has_zero ? (int32_t)berth__load_i64(zero, entry) : 0, type == BERTH_I8,
                    (uint8_t *)call->out[0].data + first);
      return;
    }
  }
  vf scale = quant_kernel_scale_of(call, r, entry, 0, 0);
  vi zero = quant_kernel_zero_of(call, r, type, entry, 0, 0);
  for (int64_t at = 0; at < end; at += VF_LANES) {
    const int64_t n = vf_tail(end - at);
    if (r->is_along) {
      scale = quant_kernel_scale_of(call, r, entry, at, n);
      zero = quant_kernel_zero_of(call, r, type, entry, at, n);
    }
    quant_kernel_store(type, call->out[0].data, first + at, quantize_vector(type, vf_load_n(x + at, n), scale, zero),
                       n);
  }
}

INLINED void dequantize_row(const berth_op_call *call, const rows *r, const berth_type type, int64_t row) {
  float *out = (float *)call->out[0].data + row * r->length;
  const int64_t first = row * r->length, end = row_end(r, row), entry = quant_kernel_entry(r, row);
  vf scale = quant_kernel_scale_of(call, r, entry, 0, 0);
  vi zero = quant_kernel_zero_of(call, r, type, entry, 0, 0);
  for (int64_t at = 0; at < end; at += VF_LANES) {
    const int64_t n = vf_tail(end - at);
    if (r->is_along) {
      scale = quant_kernel_scale_of(call, r, entry, at, n);
      zero = quant_kernel_zero_of(call, r, type, entry, at, n);
    }
    const vi x = quant_kernel_load(type, call->in[BERTH__QUANTIZE_X].data, first + at, n);
    vf_store_n(out + at, vf_from_int(vi_sub(x, zero)) * scale, n);
  }
}

#define ROWS(of, type)                                                               \
  for (int64_t row = call->begin; row < call->end; row++) of(call, &r, (type), row); \
  break;
static berth_status run_quantize(const berth_op_call *call, berth_error *err) {
  rows r;
  (void)err;
  quant_kernel_rows_of(call, &r);
  switch (call->out[0].type) {
    case BERTH_U8: ROWS(quantize_row, BERTH_U8)
    case BERTH_I8: ROWS(quantize_row, BERTH_I8)
    case BERTH_U16: ROWS(quantize_row, BERTH_U16)
    default: ROWS(quantize_row, BERTH_I16)
  }
  return BERTH_OK;
}

static berth_status run_dequantize(const berth_op_call *call, berth_error *err) {
  rows r;
  (void)err;
  quant_kernel_rows_of(call, &r);
  switch (call->in[BERTH__QUANTIZE_X].type) {
    case BERTH_U8: ROWS(dequantize_row, BERTH_U8)
    case BERTH_I8: ROWS(dequantize_row, BERTH_I8)
    case BERTH_U16: ROWS(dequantize_row, BERTH_U16)
    case BERTH_I16: ROWS(dequantize_row, BERTH_I16)
    default: ROWS(dequantize_row, BERTH_I32)
  }
  return BERTH_OK;
}

/* ---- Other layouts, and scales and zero points that broadcast in other ways ---- */

static bool takes_lines(const berth_op_call *call) {
  const bool is_quantize = berth__call_code(call) == BERTH__OP_quantize;
  const berth_type type = is_quantize ? call->out[0].type : call->in[BERTH__QUANTIZE_X].type;
  const bool is_whole = !is_quantize && type == BERTH_I32;
  return (!is_quantize || call->in[BERTH__QUANTIZE_X].type == BERTH_F32) &&
         call->in[BERTH__QUANTIZE_SCALE].type == BERTH_F32 &&
         (is_whole || quant_kernel_is_byte(type) || quant_kernel_is_short(type)) &&
         (call->n_in <= BERTH__QUANTIZE_ZERO_POINT || berth__call_has(call, BERTH__QUANTIZE_ZERO_POINT));
}

/* A line's part of an operand: n elements, or one for all of them. */
static inline vi quant_kernel_line(const berth_op_call *call, uint32_t operand, const void *data, int64_t step,
                                   int64_t at, int64_t n) {
  const berth_tensor line = {.type = call->in[operand].type, .data = (void *)(uintptr_t)data};
  return step == 0 ? vi_set1((int32_t)berth__load_i64(&line, 0)) : quant_kernel_load(line.type, line.data, at, n);
}

static inline vi quant_kernel_line_zero(const berth_op_call *call, const void *const *in, const int64_t *step,
                                        int64_t at, int64_t n) {
  const uint32_t operand = BERTH__QUANTIZE_ZERO_POINT;
  return call->n_in > operand ? quant_kernel_line(call, operand, in[operand], step[operand], at, n) : vi_set1(0);
}

static inline vf quant_kernel_line_f32(const void *data, int64_t step, int64_t at, int64_t n) {
  return step == 0 ? vf_set1(*(const float *)data) : vf_load_n((const float *)data + at, n);
}

/* Differences of 32-bit numbers take 33 bits. */
static void dequantize_i32_line(float *out, const void *const *in, const int64_t *step, int64_t n) {
  const int32_t *x = in[BERTH__QUANTIZE_X], *zero = in[BERTH__QUANTIZE_ZERO_POINT];
  const float *scale = in[BERTH__QUANTIZE_SCALE];
  const int64_t by_x = step[BERTH__QUANTIZE_X], by_zero = step[BERTH__QUANTIZE_ZERO_POINT];
  const int64_t by_scale = step[BERTH__QUANTIZE_SCALE];
  for (int64_t i = 0; i < n; i++)
    out[i] = (float)((double)x[i * by_x] - (double)zero[i * by_zero]) * scale[i * by_scale];
}

static void dequantize_line(const void *state, void *to, const void *const *in, const int64_t *step, int64_t n) {
  const berth_op_call *call = state;
  float *out = to;
  if (call->in[BERTH__QUANTIZE_X].type == BERTH_I32 && call->n_in > BERTH__QUANTIZE_ZERO_POINT) {
    dequantize_i32_line(out, in, step, n);
    return;
  }
  for (int64_t at = 0; at < n; at += VF_LANES) {
    const int64_t count = vf_tail(n - at);
    const vi x = quant_kernel_line(call, BERTH__QUANTIZE_X, in[BERTH__QUANTIZE_X], step[BERTH__QUANTIZE_X], at, count);
    const vf scale = quant_kernel_line_f32(in[BERTH__QUANTIZE_SCALE], step[BERTH__QUANTIZE_SCALE], at, count);
    const vi zero = quant_kernel_line_zero(call, in, step, at, count);
    vf_store_n(out + at, vf_from_int(vi_sub(x, zero)) * scale, count);
  }
}

static void quantize_any_line(const void *state, void *to, const void *const *in, const int64_t *step, int64_t n) {
  const berth_op_call *call = state;
  for (int64_t at = 0; at < n; at += VF_LANES) {
    const int64_t count = vf_tail(n - at);
    const vf x = quant_kernel_line_f32(in[BERTH__QUANTIZE_X], step[BERTH__QUANTIZE_X], at, count);
    const vf scale = quant_kernel_line_f32(in[BERTH__QUANTIZE_SCALE], step[BERTH__QUANTIZE_SCALE], at, count);
    const vi zero = quant_kernel_line_zero(call, in, step, at, count);
    quant_kernel_store(call->out[0].type, to, at, quantize_vector(call->out[0].type, x, scale, zero), count);
  }
}

static berth_status run_lines(const berth_op_call *call, berth_error *err) {
  (void)err;
  lines_do(call, berth__call_code(call) == BERTH__OP_quantize ? quantize_any_line : dequantize_line, call);
  return BERTH_OK;
}

/* ---- quantize_range ---- */

static berth_status quant_kernel_run_range(const berth_op_call *call, berth_error *err) {
  const float *x = call->in[0].data;
  const int64_t count = berth__count(&call->in[0]);
  vf low[2] = {vf_zero(), vf_zero()}, high[2] = {vf_zero(), vf_zero()}, probe = vf_zero();
  for (int64_t i = 0; i < count; i += VF_LANES) {
    const vf y = i + VF_LANES <= count ? vf_load(x + i) : vf_load_n(x + i, count - i);
    const int half = (int)(i / VF_LANES % 2);
    low[half] = vf_min(low[half], y);
    high[half] = vf_max(high[half], y);
    probe = vf_fma(y, vf_zero(), probe);
  }
  if (vf_sum(probe) != 0) return ((const berth__op *)call->user)->family->kernel(call, err); /* not all finite */
  const float least = vf_least(vf_min(low[0], low[1])), most = vf_most(vf_max(high[0], high[1]));
  const float range = most - least, scale = range == 0 ? 1 : range / 255;
  berth__store_f64(&call->out[0], 0, (double)scale);
  berth__store_f64(&call->out[1], 0, rint((double)(-least / scale)));
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_quant)[] = {
    {"quantize", BERTH__OP_quantize, takes_quantize, quant_kernel_items, quant_kernel_grain, NULL, run_quantize, NULL,
     false, NULL},
    {"dequantize", BERTH__OP_dequantize, takes_dequantize, quant_kernel_items, quant_kernel_grain, NULL, run_dequantize,
     NULL, false, NULL},
    {"quantize lines", BERTH__OP_quantize, takes_lines, lines_items, NULL, NULL, run_lines, NULL, false, NULL},
    {"dequantize lines", BERTH__OP_dequantize, takes_lines, lines_items, NULL, NULL, run_lines, NULL, false, NULL},
    {"quantize_range", BERTH__OP_quantize_range, NULL, NULL, NULL, NULL, quant_kernel_run_range, NULL, false, NULL},
    {0},
};
