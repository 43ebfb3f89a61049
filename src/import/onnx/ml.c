#include "import/onnx/ml.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/storage.h"
#include "import/onnx/compose.h"
#include "import/onnx/converter.h"

berth_status berth__ml_transform_of(const berth__onnx_call *call, berth__ml_transform *out, berth_error *err) {
  static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT"};
  const berth__span given = berth__onnx_string(call, "post_transform", "NONE");
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (berth__span_is(given, names[i])) return *out = (berth__ml_transform)i, BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "its post_transform '%.*s' is not known", BERTH__SPAN_TEXT(given));
}

berth_status berth__ml_labels_of(const berth__onnx_call *call, const char *ints, const char *strings,
                                 berth__ml_labels *out, berth_error *err) {
  uint32_t n_ints, n_strings;
  out->ints = berth__onnx_ints(call, ints, &n_ints);
  berth__onnx_strings(call, strings, &n_strings);
  out->are_strings = n_strings != 0;
  out->count = n_strings != 0 ? n_strings : n_ints;
  if (n_ints == 0) out->ints = NULL;
  if (n_ints != 0 && n_strings != 0) return berth__fail(err, BERTH_MALFORMED, "it has both %s and %s", ints, strings);
  return BERTH_OK;
}

berth_status berth__ml_elements(const berth__onnx_call *call, const berth__onnx_tensor *tensor, berth_tensor *out,
                                size_t *count, void **owned, berth_error *err) {
  const void *data;
  size_t size;
  *owned = NULL;
  BERTH__TRY(berth__onnx_elements(tensor, call->converter->files, &out->type, &data, &size, owned, err));
  *count = (size_t)berth__storage_count(berth_type_storage(out->type), size);
  if (*owned == NULL && (uintptr_t)data % berth__type_align(out->type) != 0) {
    *owned = berth__alloc(call->graph->ctx, size);
    if (*owned == NULL) return berth__fail_nomem(err, "the numbers of a node");
    memcpy(*owned, data, size);
    data = *owned;
  }
  out->data = (void *)(uintptr_t)data;
  return BERTH_OK;
}

berth_status berth__ml_numbers_of(const berth__onnx_call *call, const char *list, const char *tensor,
                                  berth__ml_numbers *out, berth_error *err) {
  const berth__onnx_attr *attr = tensor != NULL ? berth__onnx_find(call, tensor) : NULL;
  *out = (berth__ml_numbers){.tensor = {.type = BERTH_F32}};
  if (list != NULL) out->tensor.data = (void *)(uintptr_t)berth__onnx_floats(call, list, &out->count);
  if (attr == NULL || attr->tensor == NULL) return BERTH_OK;
  size_t count;
  if (out->count != 0) return berth__fail(err, BERTH_MALFORMED, "it has both %s and %s", list, tensor);
  BERTH__TRY(berth__ml_elements(call, attr->tensor, &out->tensor, &count, &out->owned, err));
  out->count = (uint32_t)count;
  if (count <= UINT32_MAX && berth__type_is_float(out->tensor.type)) return BERTH_OK;
  berth__ml_numbers_free(call, out);
  return berth__fail(err, BERTH_MALFORMED, "%s is not a tensor of numbers", tensor);
}

void berth__ml_numbers_free(const berth__onnx_call *call, berth__ml_numbers *numbers) {
  berth__free(call->graph->ctx, numbers->owned);
  numbers->owned = NULL;
}

/* ---- Constants ---- */

berth_status berth__ml_list(berth__onnx_call *call, berth_type type, const void *list, uint32_t rank,
                            const int64_t *dim, berth_value *out, berth_error *err) {
  size_t size = berth_type_size(type);
  for (uint32_t i = 0; i < rank; i++) size *= (size_t)dim[i];
  void *copy = berth__alloc(call->graph->ctx, size != 0 ? size : 1);
  if (copy == NULL) return berth__fail_nomem(err, "the numbers of a node");
  if (size != 0) memcpy(copy, list, size);
  return berth__onnx_add_made(call, type, rank, dim, copy, out, err);
}

berth_status berth__ml_transposed(berth__onnx_call *call, const float *list, int64_t rows, int64_t columns,
                                  berth_value *out, berth_error *err) {
  float *copy = berth__alloc_array(call->graph->ctx, (size_t)(rows * columns), sizeof *copy);
  if (copy == NULL) return berth__fail_nomem(err, "the numbers of a node");
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) copy[j * rows + i] = list[i * columns + j];
  return berth__onnx_add_made(call, BERTH_F32, 2, (int64_t[]){columns, rows}, copy, out, err);
}

berth_value berth__ml_vector(berth__onnx_chain *c, const float *list, int64_t count) {
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__ml_list(c->call, BERTH_F32, list, 1, &count, &out, c->err);
  return c->status == BERTH_OK ? out : BERTH_VALUE_NONE;
}

typedef struct ml_entry {
  int64_t bits;
  uint32_t at;
} ml_entry;

static int ml_order(const void *a, const void *b) {
  const ml_entry *x = a, *y = b;
  if (x->bits != y->bits) return x->bits < y->bits ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

/* Equal numbers have equal bits: both zeros are mapped to one. */
static int64_t ml_bits(const berth_tensor *list, uint32_t i) {
  int64_t bits;
  if (!berth__type_is_float(list->type)) return berth__load_i64(list, i);
  const double number = berth__load_f64(list, i) + 0.0;
  memcpy(&bits, &number, sizeof bits);
  return bits;
}

berth_status berth__ml_mark_alone(berth__onnx_call *call, berth_tensor list, uint32_t count, bool takes_last,
                                  bool *is_it, berth_error *err) {
  ml_entry *entries = berth__alloc_array(call->graph->ctx, count, sizeof *entries);
  if (entries == NULL) return berth__fail_nomem(err, "the numbers of a node");
  for (uint32_t i = 0; i < count; i++) entries[i] = (ml_entry){ml_bits(&list, i), i};
  qsort(entries, count, sizeof *entries, ml_order);
  for (uint32_t i = 0; i < count; i++) {
    const bool follows = i != 0 && entries[i - 1].bits == entries[i].bits;
    const bool leads = i + 1 < count && entries[i + 1].bits == entries[i].bits;
    is_it[entries[i].at] = takes_last ? !leads : !follows;
  }
  berth__free(call->graph->ctx, entries);
  return BERTH_OK;
}

/* ---- Rows ---- */

berth_value berth__ml_rows(berth__onnx_chain *c, berth_value x, berth_type type) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const uint32_t rank = berth__onnx_shape(c->call, x)->rank;
  if (rank < 1 || rank > 2) {
    c->status = berth__fail(c->err, BERTH_UNSUPPORTED, "its operand has %" PRIu32 " dimensions, not 1 or 2", rank);
    return BERTH_VALUE_NONE;
  }
  x = berth__chain_cast(c, x, type);
  return rank == 2 ? x : berth__chain_reshape(c, x, (int64_t[]){1, -1}, 2);
}

berth_value berth__ml_beside(berth__onnx_chain *c, berth_value a, berth_value b) {
  const berth_attr axis = berth_attr_int("axis", 1);
  return berth__chain_emit(c, "concat", (berth_value[]){a, b}, 2, &axis, 1);
}

/* ---- Scores ---- */

static berth_value ml_reduced(berth__onnx_chain *c, const char *op, berth_value x) {
  const int64_t last = 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 1)};
  return berth__chain_emit(c, op, &x, 1, attrs, 2);
}

/* Softmax over the nonzero scores; zeros stay 0. */
static berth_value ml_softmax_zero(berth__onnx_chain *c, berth_value x) {
  const berth_value largest = ml_reduced(c, "reduce_max", x);
  const berth_value counts = berth__chain_with(c, "gt", berth__chain_unary(c, "abs", x), 1e-7f);
  const berth_value power = berth__chain_unary(c, "exp", berth__chain_binary(c, "sub", x, largest));
  const berth_value zero = berth__chain_scalar(c, BERTH_F32, 0);
  const berth_value kept = berth__chain_where(c, counts, power, zero);
  const berth_value rest =
      berth__chain_binary(c, "mul", x, berth__chain_unary(c, "exp", berth__chain_unary(c, "neg", largest)));
  return berth__chain_binary(c, "div", berth__chain_where(c, counts, power, rest), ml_reduced(c, "reduce_sum", kept));
}

/* sqrt(2) * inverse_erf(2 x - 1), with Winitzki's approximation of the inverse, as in ONNX Runtime. */
static berth_value ml_probit(berth__onnx_chain *c, berth_value x) {
  const float a = 0.147f, pi = 3.14159265f;
  const berth_value y = berth__chain_with(c, "sub", berth__chain_with(c, "mul", x, 2), 1);
  const berth_value one = berth__chain_scalar(c, BERTH_F32, 1);
  const berth_value product =
      berth__chain_binary(c, "mul", berth__chain_binary(c, "sub", one, y), berth__chain_binary(c, "add", one, y));
  const berth_value log = berth__chain_unary(c, "log", product);
  const berth_value v = berth__chain_with(c, "add", berth__chain_with(c, "mul", log, 0.5), 2 / (pi * a));
  const berth_value v2 = berth__chain_with(c, "mul", log, 1 / a);
  const berth_value root =
      berth__chain_unary(c, "sqrt", berth__chain_binary(c, "sub", berth__chain_binary(c, "mul", v, v), v2));
  const berth_value size = berth__chain_unary(c, "sqrt", berth__chain_binary(c, "sub", root, v));
  const berth_value is_negative = berth__chain_with(c, "lt", y, 0);
  const berth_value inverse = berth__chain_where(c, is_negative, berth__chain_unary(c, "neg", size), size);
  return berth__chain_with(c, "mul", inverse, 1.41421356f);
}

berth_value berth__ml_transformed(berth__onnx_chain *c, berth__ml_transform transform, berth_value scores,
                                  bool is_one) {
  if (transform == BERTH__ML_PROBIT) return ml_probit(c, scores);
  if (is_one) return scores;
  if (transform == BERTH__ML_LOGISTIC) return berth__chain_unary(c, "sigmoid", scores);
  if (transform == BERTH__ML_SOFTMAX) return berth__chain_along(c, "softmax", scores, "axis", 1);
  if (transform == BERTH__ML_SOFTMAX_ZERO) return ml_softmax_zero(c, scores);
  return scores;
}

berth_value berth__ml_two_classes(berth__onnx_chain *c, berth__ml_transform transform, berth_value s, bool is_mixed) {
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_value negative = berth__chain_unary(c, "neg", s);
  if (transform == BERTH__ML_LOGISTIC) {
    berth_value two =
        berth__ml_beside(c, berth__chain_cast(c, negative, BERTH_F32), berth__chain_cast(c, s, BERTH_F32));
    return berth__chain_unary(c, "sigmoid", two);
  }
  if (transform == BERTH__ML_PROBIT) s = ml_probit(c, berth__chain_cast(c, s, BERTH_F32));
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  const berth_value one = berth__chain_scalar(c, berth__onnx_value_type(c->call, s), 1);
  const berth_value first =
      is_mixed && transform != BERTH__ML_PROBIT ? negative : berth__chain_binary(c, "sub", one, s);
  return berth__chain_cast(c, berth__ml_beside(c, first, s), BERTH_F32);
}

void berth__ml_set_label(berth__onnx_chain *c, const berth__ml_labels *labels, berth_value class_index) {
  if (c->status != BERTH_OK) return;
  if (labels->are_strings) {
    berth__onnx_set_absent(c->call, 0, "its class labels are strings");
    return;
  }
  bool counts = true; /* 0, 1, 2, ...: the label is the class index */
  for (uint32_t i = 0; i < labels->count; i++) counts = counts && labels->ints[i] == (int64_t)i;
  berth_value in[2] = {BERTH_VALUE_NONE, class_index};
  if (!counts) {
    const berth_attr axis = berth_attr_int("axis", 0);
    c->status = berth__onnx_list(c->call, labels->ints, labels->count, &in[0], c->err);
    class_index = berth__chain_emit(c, "gather", in, 2, &axis, 1);
  }
  berth__onnx_set(c->call, 0, class_index);
}
