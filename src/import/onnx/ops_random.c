/* Random numbers, and Dropout, which needs them in training. */
#include <math.h>

#include "import/onnx/compose.h"

/* Some ops have it as a float and Dropout as an integer; without a seed every run draws different numbers. */
static berth_attr seed_of(const berth__onnx_call *call) {
  const berth__onnx_attr *attr = berth__onnx_find(call, "seed");
  if (attr == NULL) return berth_attr_int("seed", -1);
  bool is_float = attr->type == BERTH__ONNX_FLOAT && fabsf(attr->f) < 0x1p62f;
  int64_t seed = is_float ? (int64_t)attr->f : attr->i;
  return berth_attr_int("seed", (int64_t)((uint64_t)seed & UINT32_MAX));
}

/* Draws in the shape of `like`. */
static berth_status draw_like(berth__onnx_call *call, const char *op, berth_value like, berth_type type,
                              berth_value *out, berth_error *err) {
  berth_attr attrs[] = {seed_of(call), berth_attr_string("type", berth_type_name(type))};
  return berth__onnx_emit(call, op, &like, 1, attrs, 2, out, 1, err);
}

static berth_status draw_shape(berth__onnx_call *call, const char *op, berth_value *out, berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK] = {{NULL, 0}};
  berth_type type;
  uint32_t rank;
  const int64_t *shape = berth__onnx_ints(call, "shape", &rank);
  BERTH__TRY(berth__onnx_named_type(call, "dtype", BERTH_F32, &type, err));
  if (rank > BERTH_MAX_RANK)
    return berth__fail(err, BERTH_UNSUPPORTED, "its result has more than %d dimensions", BERTH_MAX_RANK);
  for (uint32_t i = 0; i < rank; i++) dims[i].extent = shape[i];
  berth_attr attrs[] = {seed_of(call), berth_attr_string("type", berth_type_name(type)),
                        berth_attr_dims("shape", dims, rank)};
  return berth__onnx_emit(call, op, NULL, 0, attrs, 3, out, 1, err);
}

/* ---- RandomNormal, RandomUniform, and their ...Like forms ---- */

static berth_status onnx_random_draw(berth__onnx_call *call, const char *op, bool is_like, berth_value *out,
                                     berth_error *err) {
  berth_type type;
  BERTH__TRY(berth__onnx_begin(call, is_like ? 1 : 0, err));
  if (!is_like) return draw_shape(call, op, out, err);
  berth_type own_type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_named_type(call, "dtype", own_type, &type, err));
  return draw_like(call, op, call->in[0], type, out, err);
}

static berth_status draw_scaled(berth__onnx_call *call, const char *op, bool is_like, double scale, double shift,
                                berth_error *err) {
  berth_value drawn;
  BERTH__TRY(onnx_random_draw(call, op, is_like, &drawn, err));
  if (scale != 1) BERTH__TRY(berth__onnx_with(call, "mul", drawn, scale, &drawn, err));
  if (shift != 0) BERTH__TRY(berth__onnx_with(call, "add", drawn, shift, &drawn, err));
  call->out[0] = drawn;
  return BERTH_OK;
}

static berth_status convert_normal(berth__onnx_call *call, berth_error *err) {
  bool is_like = berth__span_is(call->node->op, "RandomNormalLike");
  return draw_scaled(call, "random_normal", is_like, berth__onnx_float(call, "scale", 1),
                     berth__onnx_float(call, "mean", 0), err);
}

static berth_status convert_uniform(berth__onnx_call *call, berth_error *err) {
  bool is_like = berth__span_is(call->node->op, "RandomUniformLike");
  double low = berth__onnx_float(call, "low", 0), high = berth__onnx_float(call, "high", 1);
  return draw_scaled(call, "random_uniform", is_like, high - low, low, err);
}

/* ---- Draws of classes ---- */

/* 1 with the probability that the operand gives. In f64, a draw is never rounded up to 1. */
static berth_status convert_bernoulli(berth__onnx_call *call, berth_error *err) {
  berth_value drawn, probability, is_one;
  berth_type type;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_type own_type = berth__onnx_value_type(call, call->in[0]);
  BERTH__TRY(berth__onnx_named_type(call, "dtype", own_type, &type, err));
  BERTH__TRY(draw_like(call, "random_uniform", call->in[0], BERTH_F64, &drawn, err));
  BERTH__TRY(berth__onnx_cast(call, call->in[0], BERTH_F64, &probability, err));
  BERTH__TRY(berth__onnx_binary(call, "lt", drawn, probability, &is_one, err));
  return berth__onnx_cast(call, is_one, type, &call->out[0], err);
}

/* The upper bounds of the classes in [0, 1), without the last, which is 1: [batch, 1, classes - 1]. */
static berth_status class_ends(berth__onnx_call *call, berth_value logs, berth_value *out, berth_error *err) {
  int64_t axis = 1, start = 0, end = -1;
  berth_attr all_but_last[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                               berth_attr_ints("ends", &end, 1)};
  berth_value wide, shares, sums, ends;
  BERTH__TRY(berth__onnx_cast(call, logs, BERTH_F64, &wide, err));
  BERTH__TRY(berth__onnx_along(call, "softmax", wide, "axis", 1, &shares, err));
  BERTH__TRY(berth__onnx_along(call, "cumsum", shares, "axis", 1, &sums, err));
  BERTH__TRY(berth__onnx_emit(call, "narrow", &sums, 1, all_but_last, 3, &ends, 1, err));
  return berth__onnx_listed(call, "unsqueeze", ends, "axes", &axis, 1, out, err);
}

/* Draws [batch, samples, 1] for any batch: a column of the operand, repeated, has that shape. */
static berth_status draw_samples(berth__onnx_call *call, berth_value logs, int64_t samples, berth_value *out,
                                 berth_error *err) {
  int64_t axis = 1, last = 2, start = 0, end = 1;
  berth_attr first[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &start, 1),
                        berth_attr_ints("ends", &end, 1)};
  berth_dim dims[2] = {{NULL, 1}, {NULL, samples}};
  berth_attr target = berth_attr_dims("shape", dims, 2);
  berth_value column, repeated, drawn;
  BERTH__TRY(berth__onnx_emit(call, "narrow", &logs, 1, first, 3, &column, 1, err));
  BERTH__TRY(berth__onnx_emit(call, "expand", &column, 1, &target, 1, &repeated, 1, err));
  BERTH__TRY(draw_like(call, "random_uniform", repeated, BERTH_F64, &drawn, err));
  return berth__onnx_listed(call, "unsqueeze", drawn, "axes", &last, 1, out, err);
}

/* The class of a draw is the number of upper bounds up to it. */
static berth_status convert_multinomial(berth__onnx_call *call, berth_error *err) {
  berth_value ends, drawn, passed, class_number;
  berth_type type;
  int64_t samples = berth__onnx_int(call, "sample_size", 1), last = 2;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_named_type(call, "dtype", BERTH_I32, &type, err));
  if (berth__onnx_shape(call, call->in[0])->rank != 2)
    return berth__fail(err, BERTH_MALFORMED, "its operand is not a matrix");
  BERTH__TRY(class_ends(call, call->in[0], &ends, err));
  BERTH__TRY(draw_samples(call, call->in[0], samples, &drawn, err));
  BERTH__TRY(berth__onnx_binary(call, "ge", drawn, ends, &passed, err));
  BERTH__TRY(berth__onnx_cast(call, passed, BERTH_I64, &passed, err));
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_sum", passed, &last, 1, false, &class_number, err));
  return berth__onnx_cast(call, class_number, type, &call->out[0], err);
}

/* ---- Dropout ---- */

/* true in the shape of x */
static berth_status all_true(berth__onnx_call *call, berth_value x, berth_value *out, berth_error *err) {
  berth_value in[2];
  BERTH__TRY(berth__onnx_scalar(call, BERTH_BOOL, 1, &in[0], err));
  BERTH__TRY(berth__onnx_unary(call, "shape", x, &in[1], err));
  return berth__onnx_emit(call, "expand", in, 2, NULL, 0, out, 1, err);
}

/* Up to opset 9, the mask had the type of the operand. */
static berth_status keep_all(berth__onnx_call *call, berth_error *err) {
  berth_value mask;
  berth_type type = call->opset < 10 ? berth__onnx_value_type(call, call->in[0]) : BERTH_BOOL;
  call->out[0] = call->in[0];
  if (!berth__onnx_is_asked(call, 1)) return BERTH_OK;
  BERTH__TRY(all_true(call, call->in[0], &mask, err));
  return berth__onnx_cast(call, mask, type, &call->out[1], err);
}

/* The ratio while training, 0 otherwise; in f64. */
static berth_status read_ratio(berth__onnx_call *call, berth_value training, berth_value *out, berth_error *err) {
  berth_value ratio = berth__onnx_in(call, 1), in[3] = {training, BERTH_VALUE_NONE, BERTH_VALUE_NONE};
  if (ratio != BERTH_VALUE_NONE)
    BERTH__TRY(berth__onnx_cast(call, ratio, BERTH_F64, &in[1], err));
  else
    BERTH__TRY(berth__onnx_scalar(call, BERTH_F64, 0.5, &in[1], err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_F64, 0, &in[2], err));
  return berth__onnx_emit(call, "where", in, 3, NULL, 0, out, 1, err);
}

/* x / (1 - ratio) where a draw is at least the ratio, 0 elsewhere. A ratio of 0 keeps everything. */
static berth_status onnx_random_drop(berth__onnx_call *call, berth_value training, berth_error *err) {
  berth_value ratio, one, drawn, dropped, kept, scale, x = call->in[0];
  BERTH__TRY(read_ratio(call, training, &ratio, err));
  BERTH__TRY(draw_like(call, "random_uniform", x, BERTH_F64, &drawn, err));
  BERTH__TRY(berth__onnx_binary(call, "lt", drawn, ratio, &dropped, err));
  BERTH__TRY(berth__onnx_scalar(call, BERTH_F64, 1, &one, err));
  BERTH__TRY(berth__onnx_binary(call, "sub", one, ratio, &scale, err));
  BERTH__TRY(berth__onnx_unary(call, "reciprocal", scale, &scale, err));
  BERTH__TRY(berth__onnx_cast(call, scale, berth__onnx_value_type(call, x), &scale, err));
  BERTH__TRY(berth__onnx_binary(call, "mul", x, scale, &kept, err));
  BERTH__TRY(berth__onnx_replace(call, dropped, 0, kept, &call->out[0], err));
  return berth__onnx_is_asked(call, 1) ? berth__onnx_unary(call, "not", dropped, &call->out[1], err) : BERTH_OK;
}

static berth_status convert_dropout(berth__onnx_call *call, berth_error *err) {
  int64_t is_training;
  uint32_t count;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth_value training = berth__onnx_in(call, 2);
  bool is_plain = training == BERTH_VALUE_NONE ||
                  (berth__onnx_constant_ints(call, training, &is_training, 1, &count) && count == 1 && !is_training);
  return is_plain ? keep_all(call, err) : onnx_random_drop(call, training, err);
}

const berth__onnx_handler berth__onnx_random[] = {
    {"Bernoulli", convert_bernoulli, NULL},       {"Dropout", convert_dropout, NULL},
    {"Multinomial", convert_multinomial, NULL},   {"RandomNormal", convert_normal, NULL},
    {"RandomNormalLike", convert_normal, NULL},   {"RandomUniform", convert_uniform, NULL},
    {"RandomUniformLike", convert_uniform, NULL}, {NULL, NULL, NULL},
};
