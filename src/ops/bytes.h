/* Shared by the int8 products: qproduct, qconv_last and qdepthwise. The sums of (x - x_zero) (weight - weight_zero) are
 * exact 32-bit integers; a bias of i32 is added to them. Then comes sum * scale, plus a bias of f32, with `adds` plus
 * the summand, then the epilogue, and, if the result is u8 or i8, result / out_scale rounded to nearest, ties to even,
 * plus out_zero, clamped; NaN becomes 0. A result of i32 is the sum itself, without a scale. x is u8 or i8. Padding
 * counts as x_zero. scale and weight_zero have one entry, or one per column of the result.
 *
 * Each of these steps is rounded to f32, in this order, by every kernel on every device: a product and a sum are never
 * contracted to an fma. One unit in the last place is enough to change a byte, and everything computed from it. */
#ifndef BERTH_OPS_BYTES_H
#define BERTH_OPS_BYTES_H

#include "ops/epilogue.h"
#include "ops/operand.h"

#define BERTH__BYTES_MAY_LACK \
  (1u << BERTH__BYTES_SCALE | 1u << BERTH__BYTES_X_ZERO | 1u << BERTH__BYTES_WEIGHT_ZERO | 1u << BERTH__BYTES_BIAS)

/* The last attributes of these ops, from position `first` on. `weights` is the type of the weight before packing;
 * `adds` is for results of f32, which may overwrite the summand. */
/* clang-format off */
#define BERTH__BYTES_ATTR_LIST(first)                        \
  [first + BERTH__BYTES_TO] = {.name = "to", .kind = BERTH_ATTR_STRING, .s = "f32"},     \
  [first + BERTH__BYTES_OUT_SCALE] = {.name = "out_scale", .kind = BERTH_ATTR_FLOAT, .f = 1},   \
  [first + BERTH__BYTES_OUT_ZERO] = {.name = "out_zero", .kind = BERTH_ATTR_INT},              \
  [first + BERTH__BYTES_WEIGHTS] = {.name = "weights", .kind = BERTH_ATTR_STRING, .s = "i8"}, \
  [first + BERTH__BYTES_ADDS] = {.name = "adds", .kind = BERTH_ATTR_INT}
/* clang-format on */

/* A weight packed by pack_weights_i8: [panels, ceil(rows / 4) + 1, panel, 4]. Four rows of a column are adjacent; the
 * last group of a column is the sum of its rows, an i32. u8 is stored minus 128. */
static inline int64_t berth__bytes_groups(int64_t rows) { return rows / 4 + (rows % 4 != 0); }
#define BERTH__BYTES_SHIFT 128 /* offset subtracted from u8 weights */

/* The attributes of such an op, at any position. */
typedef struct berth__bytes_attrs {
  const berth_attr *own; /* BERTH__BYTES_... */
  const berth_attr *code, *numbers;
} berth__bytes_attrs;
berth__bytes_attrs berth__bytes_attrs_of(const berth__op *op, const berth_attr *attrs);
/* The first operand of the epilogue. */
static inline uint32_t berth__bytes_epilogue_first(const berth__bytes_attrs *attrs) {
  return BERTH__BYTES_EXTRA + (attrs->own[BERTH__BYTES_ADDS].i != 0);
}
/* `own`: the last attributes of these ops. */
static inline uint32_t berth__bytes_in_place(const berth_attr *own) {
  return own[BERTH__BYTES_ADDS].i != 0 ? 1u << BERTH__BYTES_EXTRA : 0;
}

/* Checks types and extents of all operands, except the weight's extents, for a result with this many columns whose
 * shape is set; sets the type of the result. `weight` is the required type of weight_zero. */
berth_status berth__bytes_check(berth__infer *infer, int64_t columns, berth_type weight, berth_error *err);
/* The type that is named: u8 or i8. */
berth_status berth__bytes_type(const berth_attr *attr, berth_type *out, berth_error *err);
/* Checks the extents of a packed weight. */
berth_status berth__bytes_check_packed(const berth__infer *infer, int64_t panels, int64_t rows, int64_t panel,
                                       berth_error *err);

/* For reference kernels. */
typedef struct berth__bytes {
  const berth_op_call *call;
  berth__bytes_attrs attrs;
  berth__epilogue epilogue;
  int64_t shift; /* offset subtracted from packed weights */
  bool is_x_signed;
  int64_t x_zero;
} berth__bytes;
/* A column of a packed weight: the index of its first row, and the zero point of its entries. */
typedef struct berth__bytes_column {
  const int8_t *first;
  int64_t group_stride, zero;
} berth__bytes_column;
berth_status berth__bytes_read(const berth_op_call *call, berth__bytes *out, berth_error *err);
/* An element minus its zero point. */
static inline int64_t berth__bytes_x(const berth__bytes *b, int64_t index) {
  const uint8_t x = ((const uint8_t *)b->call->in[BERTH__BYTES_X].data)[index];
  return (b->is_x_signed && x > 127 ? (int64_t)x - 256 : (int64_t)x) - b->x_zero;
}
/* A column of a packed weight, with columns in `group` equal groups; and its element of a row, minus its zero point. */
berth__bytes_column berth__bytes_column_of(const berth__bytes *b, int64_t columns, int64_t group, int64_t column);
static inline int64_t berth__bytes_weight(const berth__bytes_column *column, int64_t row) {
  return column->first[row / 4 * column->group_stride + row % 4] - column->zero;
}
int64_t berth__bytes_weight_zero(const berth__bytes *b, int64_t column);
void berth__bytes_store(const berth__bytes *b, int64_t index, int64_t column, int64_t sum);

/* Whether the bias is an i32, in the units of the sums. */
static inline bool berth__bytes_counts_bias(const berth_op_call *call) {
  return berth__call_has(call, BERTH__BYTES_BIAS) && call->in[BERTH__BYTES_BIAS].type == BERTH_I32;
}
/* The entry of a scale or a zero point for a column. */
static inline int64_t berth__bytes_entry(const berth_tensor *tensor, int64_t column) {
  return tensor->rank == 0 || tensor->dim[0] == 1 ? 0 : column * tensor->stride[0];
}

#endif
