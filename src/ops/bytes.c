#include "ops/bytes.h"

#include <inttypes.h>
#include <math.h>

#include "ops/conv_last.h"
#include "ops/operand.h"
#include "ops/product.h"

berth__bytes_attrs berth__bytes_attrs_of(const berth__op *op, const berth_attr *attrs) {
  const berth_attr *own = attrs + op->family->n_attrs - BERTH__BYTES_ATTRS;
  if (op->code == BERTH__OP_qproduct)
    return (berth__bytes_attrs){own, &attrs[BERTH__PRODUCT_CODE], &attrs[BERTH__PRODUCT_NUMBERS]};
  return (berth__bytes_attrs){own, &attrs[BERTH__LAST_CODE], &attrs[BERTH__LAST_NUMBERS]};
}

berth_status berth__bytes_type(const berth_attr *attr, berth_type *out, berth_error *err) {
  *out = berth_type_from_name(attr->s);
  if (*out == BERTH_U8 || *out == BERTH_I8) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "attribute '%s' is '%s', expected u8 or i8", attr->name, attr->s);
}

/* One entry, or one per column. */
static berth_status check_entries(const berth__infer *infer, uint32_t operand, berth_type type, int64_t columns,
                                  berth_error *err) {
  const berth__shape *shape = &infer->in_shape[operand];
  int64_t same;
  if (!berth__infer_has(infer, operand)) return BERTH_OK;
  BERTH__TRY(berth__want_type(infer, operand, type, err));
  BERTH__TRY(berth__want_rank(infer, operand, 0, 1, err));
  if (shape->rank == 0 || shape->dim[0] == 1) return BERTH_OK;
  return berth__same_dim(columns, shape->dim[0], "columns of the result and entries of a scale or zero point", &same,
                         err);
}

/* Sums are returned unchanged, so no further attribute may be set. */
static berth_status bytes_check_sums(berth__infer *infer, const berth_attr *own, berth_error *err) {
  const berth__bytes_attrs attrs = berth__bytes_attrs_of(infer->op, infer->attrs);
  infer->out_type[0] = BERTH_I32;
  if (!berth__infer_has(infer, BERTH__BYTES_SCALE) && !berth__infer_has(infer, BERTH__BYTES_BIAS) &&
      own[BERTH__BYTES_ADDS].i == 0 && attrs.code->count == 0)
    return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "a result of i32 takes no scale, no bias, no sum and no epilogue");
}

static berth_status bytes_check_result(berth__infer *infer, const berth_attr *own, berth_error *err) {
  infer->out_type[0] = BERTH_F32;
  if (strcmp(own[BERTH__BYTES_TO].s, "i32") == 0) return bytes_check_sums(infer, own, err);
  if (strcmp(own[BERTH__BYTES_TO].s, "f32") != 0)
    BERTH__TRY(berth__bytes_type(&own[BERTH__BYTES_TO], &infer->out_type[0], err));
  if (!berth__infer_has(infer, BERTH__BYTES_SCALE))
    return berth__fail(err, BERTH_INVALID, "operand 2, the scale, is left out, but the result is %s, expected i32",
                       own[BERTH__BYTES_TO].s);
  if (own[BERTH__BYTES_ADDS].i != 0) {
    if (infer->out_type[0] != BERTH_F32)
      return berth__fail(err, BERTH_INVALID, "`adds` is set, but the result is %s, expected f32",
                         berth_type_name(infer->out_type[0]));
    BERTH__TRY(berth__epilogue_check_added(infer, BERTH__BYTES_EXTRA, &infer->out_shape[0], err));
  }
  if (own[BERTH__BYTES_OUT_SCALE].f > 0) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "`out_scale` is %g, expected more than 0", own[BERTH__BYTES_OUT_SCALE].f);
}

berth_status berth__bytes_check(berth__infer *infer, int64_t columns, berth_type weight, berth_error *err) {
  const berth__bytes_attrs attrs = berth__bytes_attrs_of(infer->op, infer->attrs);
  const berth_type x = infer->in_type[BERTH__BYTES_X];
  int64_t same;
  if (x != BERTH_U8 && x != BERTH_I8)
    return berth__fail(err, BERTH_INVALID, "operand 0 has type %s, expected u8 or i8", berth_type_name(x));
  BERTH__TRY(check_entries(infer, BERTH__BYTES_SCALE, BERTH_F32, columns, err));
  BERTH__TRY(check_entries(infer, BERTH__BYTES_X_ZERO, x, 1, err));
  BERTH__TRY(check_entries(infer, BERTH__BYTES_WEIGHT_ZERO, weight, columns, err));
  if (berth__infer_has(infer, BERTH__BYTES_BIAS)) {
    if (infer->in_type[BERTH__BYTES_BIAS] != BERTH_I32)
      BERTH__TRY(berth__want_type(infer, BERTH__BYTES_BIAS, BERTH_F32, err));
    BERTH__TRY(berth__want_rank(infer, BERTH__BYTES_BIAS, 1, 1, err));
    BERTH__TRY(berth__same_dim(columns, infer->in_shape[BERTH__BYTES_BIAS].dim[0], "columns of the result and bias",
                               &same, err));
  }
  BERTH__TRY(bytes_check_result(infer, attrs.own, err));
  return berth__epilogue_check(infer, berth__bytes_epilogue_first(&attrs), attrs.code, attrs.numbers,
                               &infer->out_shape[0], err);
}

berth_status berth__bytes_check_packed(const berth__infer *infer, int64_t panels, int64_t rows, int64_t panel,
                                       berth_error *err) {
  const berth__shape *w = &infer->in_shape[BERTH__BYTES_WEIGHT];
  int64_t same, groups = berth__dim_is_fixed(rows) ? berth__bytes_groups(rows) + 1 : BERTH__DIM_UNKNOWN;
  BERTH__TRY(berth__want_type(infer, BERTH__BYTES_WEIGHT, BERTH_I8, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__BYTES_WEIGHT, 4, 4, err));
  BERTH__TRY(berth__same_dim(panels, w->dim[0], "panels of the result and of the weight", &same, err));
  BERTH__TRY(berth__same_dim(groups, w->dim[1], "groups of four rows and groups of the weight", &same, err));
  BERTH__TRY(berth__same_dim(panel, w->dim[2], "`panel` and columns of the weight's panels", &same, err));
  return berth__same_dim(4, w->dim[3], "bytes of a group", &same, err);
}

berth_status berth__bytes_read(const berth_op_call *call, berth__bytes *out, berth_error *err) {
  const berth__op *op = call->user;
  out->call = call;
  out->attrs = berth__bytes_attrs_of(op, call->attrs);
  out->shift = strcmp(out->attrs.own[BERTH__BYTES_WEIGHTS].s, "u8") == 0 ? BERTH__BYTES_SHIFT : 0;
  out->is_x_signed = call->in[BERTH__BYTES_X].type == BERTH_I8;
  out->x_zero = berth__call_has(call, BERTH__BYTES_X_ZERO) ? berth__load_i64(&call->in[BERTH__BYTES_X_ZERO], 0) : 0;
  return berth__epilogue_read(&out->epilogue, call, berth__bytes_epilogue_first(&out->attrs), out->attrs.code,
                              out->attrs.numbers, err);
}

int64_t berth__bytes_weight_zero(const berth__bytes *b, int64_t column) {
  const berth_tensor *zero = &b->call->in[BERTH__BYTES_WEIGHT_ZERO];
  if (!berth__call_has(b->call, BERTH__BYTES_WEIGHT_ZERO)) return 0;
  return berth__load_i64(zero, berth__bytes_entry(zero, column));
}

berth__bytes_column berth__bytes_column_of(const berth__bytes *b, int64_t columns, int64_t group, int64_t column) {
  const berth_tensor *w = &b->call->in[BERTH__BYTES_WEIGHT];
  const int64_t each = columns / group, panel = w->dim[2], at = column % each;
  const int64_t panels = (each + panel - 1) / panel * (column / each) + at / panel;
  return (berth__bytes_column){(const int8_t *)w->data + panels * w->stride[0] + at % panel * w->stride[2],
                               w->stride[1], berth__bytes_weight_zero(b, column) - b->shift};
}

/* The sum, product or quotient of two f32, computed in f64 and rounded, equals the f32 result. */
static double as_f32(double value) { return (double)(float)value; }

/* The sum plus an integer bias in the same units; 32 bits wrap. */
static int32_t whole_sum(const berth__bytes *b, int64_t column, int64_t sum) {
  const berth_tensor *bias = &b->call->in[BERTH__BYTES_BIAS];
  if (berth__bytes_counts_bias(b->call)) sum += berth__load_i64(bias, column * bias->stride[0]);
  const uint32_t bits = (uint32_t)(uint64_t)sum;
  int32_t whole;
  memcpy(&whole, &bits, sizeof whole);
  return whole;
}

void berth__bytes_store(const berth__bytes *b, int64_t index, int64_t column, int64_t sum) {
  const berth_tensor *in = b->call->in, *out = &b->call->out[0], *bias = &in[BERTH__BYTES_BIAS];
  const berth_attr *own = b->attrs.own;
  if (out->type == BERTH_I32) {
    berth__store_i64(out, index, sum);
    return;
  }
  const double scale = berth__load_f64(&in[BERTH__BYTES_SCALE], berth__bytes_entry(&in[BERTH__BYTES_SCALE], column));
  double value = as_f32((double)(float)whole_sum(b, column, sum) * scale);
  if (berth__call_has(b->call, BERTH__BYTES_BIAS) && !berth__bytes_counts_bias(b->call))
    value = as_f32(value + berth__load_f64(bias, column * bias->stride[0]));
  if (own[BERTH__BYTES_ADDS].i != 0) value = as_f32(value + berth__load_f64(&in[BERTH__BYTES_EXTRA], index));
  value = berth__epilogue_value(&b->epilogue, index, value);
  if (out->type != BERTH_F32) {
    value = as_f32(value / as_f32(own[BERTH__BYTES_OUT_SCALE].f));
    value = rint(value) + (double)own[BERTH__BYTES_OUT_ZERO].i;
  }
  berth__store_f64(out, index, value);
}
