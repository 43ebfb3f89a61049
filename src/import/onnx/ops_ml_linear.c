/* ai.onnx.ml: linear models. Rows times coefficients, which files store as [targets, features]. */
#include <inttypes.h>

#include "import/onnx/compose.h"
#include "import/onnx/ml.h"

typedef struct linear {
  berth__onnx_chain c;
  const float *coefficients, *intercepts;
  uint32_t n_coefficients, n_intercepts;
  int64_t targets, features;
} linear;

/* Finds the number of coefficients per target; `targets` is set. */
static berth_status linear_begin(linear *l, berth_error *err) {
  const int64_t count = l->n_coefficients;
  if (l->targets < 1 || count == 0 || count % l->targets != 0)
    return berth__fail(err, BERTH_MALFORMED, "%" PRId64 " coefficients do not make %" PRId64 " rows", count,
                       l->targets);
  l->features = count / l->targets;
  return BERTH_OK;
}

/* x coefficients + intercepts: [N, targets] */
static berth_value linear_scores(linear *l) {
  berth__onnx_chain *c = &l->c;
  berth_value x = berth__ml_rows(c, c->call->in[0], BERTH_F32), weight = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK)
    c->status = berth__ml_transposed(c->call, l->coefficients, l->targets, l->features, &weight, c->err);
  const berth_value product = berth__chain_binary(c, "matmul", x, weight);
  if ((int64_t)l->n_intercepts != l->targets) return product;
  return berth__chain_binary(c, "add", product, berth__ml_vector(c, l->intercepts, l->targets));
}

static berth_status convert_linear_regressor(berth__onnx_call *call, berth_error *err) {
  linear l = {.c = {call, err, BERTH_OK}, .targets = berth__onnx_int(call, "targets", 1)};
  berth__ml_transform transform;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__ml_transform_of(call, &transform, err));
  l.coefficients = berth__onnx_floats(call, "coefficients", &l.n_coefficients);
  l.intercepts = berth__onnx_floats(call, "intercepts", &l.n_intercepts);
  BERTH__TRY(linear_begin(&l, err));
  if (l.n_intercepts != 0 && (int64_t)l.n_intercepts != l.targets)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " intercepts for %" PRId64 " targets", l.n_intercepts,
                       l.targets);
  berth__onnx_set(call, 0, berth__ml_transformed(&l.c, transform, linear_scores(&l), l.targets == 1));
  return l.c.status;
}

/* How many rows of coefficients a classifier has: from the intercepts, otherwise the features of x, otherwise the
 * labels. */
static int64_t linear_classes(const linear *l, const berth__ml_labels *labels) {
  const berth__shape *shape = berth__onnx_shape(l->c.call, l->c.call->in[0]);
  const int64_t features = shape->rank != 0 ? shape->dim[shape->rank - 1] : 0;
  if (l->n_intercepts != 0) return l->n_intercepts;
  return features > 0 ? l->n_coefficients / features : labels->count;
}

static berth_status convert_linear_classifier(berth__onnx_call *call, berth_error *err) {
  linear l = {.c = {call, err, BERTH_OK}};
  berth__onnx_chain *c = &l.c;
  berth__ml_transform transform;
  berth__ml_labels labels;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(berth__ml_transform_of(call, &transform, err));
  BERTH__TRY(berth__ml_labels_of(call, "classlabels_ints", "classlabels_strings", &labels, err));
  l.coefficients = berth__onnx_floats(call, "coefficients", &l.n_coefficients);
  l.intercepts = berth__onnx_floats(call, "intercepts", &l.n_intercepts);
  l.targets = linear_classes(&l, &labels);
  BERTH__TRY(linear_begin(&l, err));
  const bool is_binary = l.targets == 1;
  if (is_binary ? labels.count != 0 && labels.count != 2 : labels.count < l.targets)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " class labels for %" PRId64 " rows of coefficients",
                       labels.count, l.targets);
  const berth_value scores = linear_scores(&l);
  const berth_attr along[] = {berth_attr_int("axis", 1), berth_attr_int("keepdims", 0)};
  const int64_t flat = -1;
  const berth_value index =
      is_binary
          ? berth__chain_cast(c, berth__chain_reshape(c, berth__chain_with(c, "gt", scores, 0), &flat, 1), BERTH_I64)
          : berth__chain_emit(c, "arg_max", &scores, 1, along, 2);
  berth__ml_set_label(c, &labels, index);
  berth__onnx_set(call, 1,
                  is_binary && labels.count == 2 ? berth__ml_two_classes(c, transform, scores, false)
                                                 : berth__ml_transformed(c, transform, scores, is_binary));
  return c->status;
}

const berth__onnx_handler berth__onnx_ml_linear[] = {
    {"LinearRegressor", convert_linear_regressor, NULL},
    {"LinearClassifier", convert_linear_classifier, NULL},
    {NULL, NULL, NULL},
};
