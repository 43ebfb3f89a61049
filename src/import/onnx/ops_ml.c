/* ai.onnx.ml: scalers, normalisers, encoders. Maps exist only in files: a ZipMap becomes the tensor that it zips, whose
 * columns are in the order of its labels. */
#include <inttypes.h>
#include <math.h>

#include "import/onnx/compose.h"
#include "import/onnx/ml.h"

static uint32_t ml_rank(const berth__onnx_call *call, berth_value x) { return berth__onnx_shape(call, x)->rank; }

static berth_status ml_want_rows(const berth__onnx_call *call, berth_error *err) {
  const uint32_t rank = ml_rank(call, call->in[0]);
  if (rank >= 1 && rank <= 2) return BERTH_OK;
  return berth__fail(err, BERTH_UNSUPPORTED, "its operand has %" PRIu32 " dimensions, not 1 or 2", rank);
}

/* ---- Scaler, Binarizer, Normalizer, Imputer ---- */

/* A list with one number per feature, or one for all. */
static berth_value ml_of_features(berth__onnx_chain *c, const float *list, uint32_t count, berth_type type) {
  return berth__chain_cast(c, berth__ml_vector(c, list, count), type);
}

static berth_status convert_scaler(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  uint32_t n_offsets, n_scales;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(ml_want_rows(call, err));
  const float *offsets = berth__onnx_floats(call, "offset", &n_offsets);
  const float *scales = berth__onnx_floats(call, "scale", &n_scales);
  if (n_scales == 0 || n_scales != n_offsets)
    return berth__fail(err, BERTH_MALFORMED,
                       "%" PRIu32 " scales and %" PRIu32 " offsets: there must be as many, and one", n_scales,
                       n_offsets);
  const berth_type type = berth__onnx_value_type(call, call->in[0]) == BERTH_F64 ? BERTH_F64 : BERTH_F32;
  berth_value x = berth__chain_cast(&c, call->in[0], type);
  x = berth__chain_binary(&c, "sub", x, ml_of_features(&c, offsets, n_offsets, type));
  x = berth__chain_binary(&c, "mul", x, ml_of_features(&c, scales, n_scales, type));
  berth__onnx_set(call, 0, berth__chain_cast(&c, x, BERTH_F32));
  return c.status;
}

static berth_status convert_binarizer(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  const berth_type type = berth__onnx_value_type(call, call->in[0]);
  const berth_type wide = berth__type_is_float(type) ? type : BERTH_F32;
  const berth_value x = berth__chain_cast(&c, call->in[0], wide);
  const berth_value is_over = berth__chain_with(&c, "gt", x, berth__onnx_float(call, "threshold", 0));
  berth__onnx_set(call, 0, berth__chain_cast(&c, is_over, type));
  return c.status;
}

static berth_value ml_along_row(berth__onnx_chain *c, const char *op, berth_value x) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const int64_t last = ml_rank(c->call, x) - 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 1)};
  return berth__chain_emit(c, op, &x, 1, attrs, 2);
}

/* A row with norm 0 is unchanged. */
static berth_status convert_normalizer(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const berth__span norm = berth__onnx_string(call, "norm", "MAX");
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(ml_want_rows(call, err));
  const berth_value x = berth__chain_cast(&c, call->in[0], BERTH_F32);
  berth_value size, y;
  if (berth__span_is(norm, "L2")) {
    const berth_value square =
        berth__chain_cast(&c, berth__chain_binary(&c, "mul", call->in[0], call->in[0]), BERTH_F32);
    size = ml_along_row(&c, "reduce_sum", square);
    y = berth__chain_unary(&c, "sqrt", berth__chain_binary(&c, "div", square, size));
    y = berth__chain_where(&c, berth__chain_with(&c, "lt", x, 0), berth__chain_unary(&c, "neg", y), y);
  } else if (berth__span_is(norm, "L1") || berth__span_is(norm, "MAX")) {
    const bool is_max = berth__span_is(norm, "MAX");
    size = ml_along_row(&c, is_max ? "reduce_max" : "reduce_sum", is_max ? x : berth__chain_unary(&c, "abs", x));
    y = berth__chain_binary(&c, "div", x, size);
  } else {
    return berth__fail(err, BERTH_MALFORMED, "its norm '%.*s' is not one of MAX, L1 and L2", BERTH__SPAN_TEXT(norm));
  }
  berth__onnx_set(call, 0, berth__chain_where(&c, berth__chain_with(&c, "ne", size, 0), y, x));
  return c.status;
}

static berth_status convert_imputer(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  uint32_t n_floats, n_ints;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(ml_want_rows(call, err));
  const float *floats = berth__onnx_floats(call, "imputed_value_floats", &n_floats);
  const int64_t *ints = berth__onnx_ints(call, "imputed_value_int64s", &n_ints);
  const berth_value x = call->in[0];
  const berth_type type = berth__onnx_value_type(call, x);
  const bool is_float = berth__type_is_float(type);
  if ((is_float ? n_floats : n_ints) == 0)
    return berth__fail(err, BERTH_MALFORMED, "it has no imputed values of its operand's type");
  berth_value replaced, found;
  if (is_float) {
    const double number = berth__onnx_float(call, "replaced_value_float", 0);
    replaced = ml_of_features(&c, floats, n_floats, type);
    found = isnan(number) ? berth__chain_binary(&c, "ne", x, x) : berth__chain_with(&c, "eq", x, number);
  } else {
    const int64_t number = berth__onnx_int(call, "replaced_value_int64", 0), extent = n_ints;
    berth_value wanted = BERTH_VALUE_NONE, list = BERTH_VALUE_NONE;
    BERTH__TRY(berth__onnx_list(call, &number, 1, &wanted, err));
    BERTH__TRY(berth__ml_list(call, BERTH_I64, ints, 1, &extent, &list, err));
    replaced = berth__chain_cast(&c, list, type);
    found = berth__chain_binary(&c, "eq", x, berth__chain_cast(&c, wanted, type));
  }
  berth__onnx_set(call, 0, berth__chain_where(&c, found, replaced, x));
  return c.status;
}

/* ---- Features ---- */

/* The elements at the given indices of the last axis. */
static berth_status convert_array_feature_extractor(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  const uint32_t rank = ml_rank(call, call->in[0]);
  if (rank == 0) return berth__fail(err, BERTH_MALFORMED, "its operand is a scalar");
  const berth_attr axis = berth_attr_int("axis", (int64_t)rank - 1);
  const int64_t flat = -1;
  const berth_value in[2] = {call->in[0], berth__chain_reshape(&c, call->in[1], &flat, 1)};
  berth_value y = berth__chain_emit(&c, "gather", in, 2, &axis, 1);
  if (rank == 1) y = berth__chain_reshape(&c, y, (int64_t[]){1, -1}, 2);
  berth__onnx_set(call, 0, y);
  return c.status;
}

/* [N, width] of f32: truncated, or padded with 0. */
static berth_value ml_features(berth__onnx_chain *c, berth_value x, int64_t width) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  x = berth__chain_cast(c, x, BERTH_F32);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  x = ml_rank(c->call, x) == 1 ? berth__chain_reshape(c, x, (int64_t[]){1, -1}, 2)
                               : berth__chain_along(c, "flatten", x, "axis", 1);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const int64_t given = berth__onnx_shape(c->call, x)->dim[1];
  if (!berth__dim_is_fixed(given)) {
    c->status = berth__fail(c->err, BERTH_UNSUPPORTED, "an operand has an unknown number of features");
    return BERTH_VALUE_NONE;
  }
  if (given > width) return berth__chain_slice(c, x, 1, 0, width);
  return given == width ? x : berth__chain_listed(c, "pad", x, "pads", (int64_t[]){0, 0, 0, width - given}, 4);
}

static berth_status convert_feature_vectorizer(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  const berth_attr axis = berth_attr_int("axis", 1);
  uint32_t count;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__onnx_want_in(call, call->n_in, err));
  const int64_t *widths = berth__onnx_ints(call, "inputdimensions", &count);
  if (count != call->n_in)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " inputdimensions for %zu operands", count, call->n_in);
  berth_value *parts = berth__alloc_array(call->graph->ctx, count, sizeof *parts);
  if (parts == NULL) return berth__fail_nomem(err, "the operands of a node");
  for (uint32_t i = 0; i < count && c.status == BERTH_OK; i++) {
    if (widths[i] < 0 || widths[i] > INT32_MAX || ml_rank(call, call->in[i]) == 0)
      c.status =
          berth__fail(err, BERTH_MALFORMED, "operand %" PRIu32 " cannot have %" PRId64 " features", i, widths[i]);
    parts[i] = ml_features(&c, call->in[i], widths[i]);
  }
  berth__onnx_set(call, 0, berth__chain_emit(&c, "concat", parts, count, &axis, 1));
  berth__free(call->graph->ctx, parts);
  return c.status;
}

/* ---- Encoders ---- */

/* x[..., 1] == list[n]: bool [..., n] */
static berth_value ml_is_each(berth__onnx_chain *c, berth_value x, berth_value list) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const int64_t last = ml_rank(c->call, x);
  if (last >= BERTH_MAX_RANK) {
    c->status = berth__fail(c->err, BERTH_UNSUPPORTED, "its result has a rank over %d", BERTH_MAX_RANK);
    return BERTH_VALUE_NONE;
  }
  return berth__chain_binary(c, "eq", berth__chain_listed(c, "unsqueeze", x, "axes", &last, 1), list);
}

/* A category that is listed twice stands for its last index. */
static berth_status ml_last_places(berth__onnx_call *call, const int64_t *list, uint32_t count, berth_value *out,
                                   berth_error *err) {
  const int64_t extent = count;
  bool *is_last = berth__alloc_array(call->graph->ctx, count, sizeof *is_last);
  if (is_last == NULL) return berth__fail_nomem(err, "the categories of a node");
  berth_status status = berth__ml_mark_alone(call, (berth_tensor){.data = (void *)(uintptr_t)list, .type = BERTH_I64},
                                             count, true, is_last, err);
  if (status == BERTH_OK)
    status =
        berth_graph_constant(call->graph, NULL, BERTH_BOOL, berth_shape_fixed(1, &extent), is_last, count, out, err);
  berth__free(call->graph->ctx, is_last);
  return status;
}

static berth_status convert_one_hot_encoder(berth__onnx_call *call, berth_error *err) {
  berth__onnx_chain c = {call, err, BERTH_OK};
  uint32_t count, n_strings;
  berth_value list, is_last;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  const int64_t *categories = berth__onnx_ints(call, "cats_int64s", &count);
  berth__onnx_strings(call, "cats_strings", &n_strings);
  if (count == 0 || n_strings != 0)
    return berth__fail(err, n_strings != 0 ? BERTH_UNSUPPORTED : BERTH_MALFORMED, "%s",
                       n_strings != 0 ? "categories of strings are not supported" : "it has no categories");
  BERTH__TRY(berth__onnx_list(call, categories, count, &list, err));
  BERTH__TRY(ml_last_places(call, categories, count, &is_last, err));
  const berth_value is_each = ml_is_each(&c, berth__chain_cast(&c, call->in[0], BERTH_I64), list);
  const berth_value is_it = berth__chain_binary(&c, "and", is_each, is_last);
  berth__onnx_set(call, 0, berth__chain_cast(&c, is_it, BERTH_F32));
  return c.status;
}

/* ZipMap: the tensor is passed through. */
static berth_status convert_zip_map(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  call->out[0] = call->in[0];
  return BERTH_OK;
}

/* Between strings and integers: strings as input are refused where they are made. */
static berth_status convert_category_mapper(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  berth__onnx_set_absent(call, 0, "a CategoryMapper gives strings");
  return BERTH_OK;
}

const berth__onnx_handler berth__onnx_ml[] = {
    {"Scaler", convert_scaler, NULL},
    {"Binarizer", convert_binarizer, NULL},
    {"Normalizer", convert_normalizer, NULL},
    {"Imputer", convert_imputer, NULL},
    {"ArrayFeatureExtractor", convert_array_feature_extractor, NULL},
    {"FeatureVectorizer", convert_feature_vectorizer, NULL},
    {"OneHotEncoder", convert_one_hot_encoder, NULL},
    {"ZipMap", convert_zip_map, NULL},
    {"CategoryMapper", convert_category_mapper, NULL},
    {NULL, NULL, NULL},
};
