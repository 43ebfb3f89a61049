/* ai.onnx.ml: support vector machines. The kernel of every row with every support vector is a matrix product, and so is
 * the sum with the coefficients. Without support vectors (liblinear), rows are multiplied with the coefficients
 * themselves. */
#include <inttypes.h>
#include <math.h>

#include "import/onnx/compose.h"
#include "import/onnx/ml.h"

/* Pairs of classes times classes: the size of a matrix that is made when a file is loaded. */
#define MOST_VOTES ((int64_t)1 << 26)

typedef enum svm_kernel {
  SVM_LINEAR,
  SVM_POLY,
  SVM_RBF,
  SVM_SIGMOID
} svm_kernel;

typedef struct svm {
  berth__onnx_chain c;
  svm_kernel kernel;
  float gamma, coef0, degree;
  const float *vectors, *coefficients, *rho, *prob_a, *prob_b;
  uint32_t n_vector_numbers, n_coefficients, n_rho, n_prob_a, n_prob_b;
  int64_t n_vectors, features;
} svm;

static berth_status svm_read(svm *s, berth_error *err) {
  static const char *const names[] = {"LINEAR", "POLY", "RBF", "SIGMOID"};
  berth__onnx_call *call = s->c.call;
  const berth__span given = berth__onnx_string(call, "kernel_type", "LINEAR");
  uint32_t count, kernel = 0;
  const float *params = berth__onnx_floats(call, "kernel_params", &count);
  while (kernel < 4 && !berth__span_is(given, names[kernel])) kernel++;
  if (kernel == 4)
    return berth__fail(err, BERTH_MALFORMED, "its kernel_type '%.*s' is not known", BERTH__SPAN_TEXT(given));
  if (count != 0 && count != 3) return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " kernel_params, not 3", count);
  s->kernel = (svm_kernel)kernel;
  s->gamma = count != 0 ? params[0] : 0;
  s->coef0 = count != 0 ? params[1] : 0;
  s->degree = count != 0 ? params[2] : 0;
  s->vectors = berth__onnx_floats(call, "support_vectors", &s->n_vector_numbers);
  s->coefficients = berth__onnx_floats(call, "coefficients", &s->n_coefficients);
  s->rho = berth__onnx_floats(call, "rho", &s->n_rho);
  if (s->n_coefficients == 0 || s->n_rho == 0)
    return berth__fail(err, BERTH_MALFORMED, "it has %" PRIu32 " coefficients and %" PRIu32 " rho", s->n_coefficients,
                       s->n_rho);
  return BERTH_OK;
}

static berth_status svm_check_vectors(svm *s, berth_error *err) {
  if (s->n_vector_numbers == 0 || s->n_vector_numbers % s->n_vectors != 0)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " numbers do not make %" PRId64 " support vectors",
                       s->n_vector_numbers, s->n_vectors);
  s->features = s->n_vector_numbers / s->n_vectors;
  return BERTH_OK;
}

/* ---- Kernels ---- */

/* The mean of the support vectors. Relative to it, distances are the same and products lose fewer digits. */
static void svm_center(const svm *s, float *mean, float *vectors, float *squares) {
  for (int64_t f = 0; f < s->features; f++) {
    double sum = 0;
    for (int64_t v = 0; v < s->n_vectors; v++) sum += (double)s->vectors[v * s->features + f];
    mean[f] = (float)(sum / (double)s->n_vectors);
  }
  for (int64_t v = 0; v < s->n_vectors; v++) {
    double square = 0;
    for (int64_t f = 0; f < s->features; f++) {
      const double number = (double)s->vectors[v * s->features + f] - (double)mean[f];
      vectors[v * s->features + f] = (float)number;
      square += number * number;
    }
    squares[v] = (float)square;
  }
}

static berth_value svm_sum_of_squares(berth__onnx_chain *c, berth_value x) {
  const int64_t last = 1;
  const berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 1)};
  const berth_value square = berth__chain_binary(c, "mul", x, x);
  return berth__chain_emit(c, "reduce_sum", &square, 1, attrs, 2);
}

static berth_value svm_dot(svm *s, berth_value x, const float *vectors) {
  berth__onnx_chain *c = &s->c;
  berth_value weight = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK)
    c->status = berth__ml_transposed(c->call, vectors, s->n_vectors, s->features, &weight, c->err);
  return berth__chain_binary(c, "matmul", x, weight);
}

/* exp(-gamma |x - v|^2), where the square is |x|^2 + |v|^2 - 2 x v. */
static berth_value svm_rbf(svm *s, berth_value x) {
  berth__onnx_chain *c = &s->c;
  const size_t count = (size_t)(s->features * s->n_vectors);
  float *room = berth__alloc_array(c->call->graph->ctx, count + (size_t)(s->features + s->n_vectors), sizeof *room);
  if (room == NULL) {
    c->status = berth__fail_nomem(c->err, "the support vectors of a node");
    return BERTH_VALUE_NONE;
  }
  float *mean = room + count, *squares = mean + s->features;
  svm_center(s, mean, room, squares);
  x = berth__chain_binary(c, "sub", x, berth__ml_vector(c, mean, s->features));
  const berth_value both =
      berth__chain_binary(c, "add", svm_sum_of_squares(c, x), berth__ml_vector(c, squares, s->n_vectors));
  const berth_value twice = berth__chain_with(c, "mul", svm_dot(s, x, room), 2);
  berth__free(c->call->graph->ctx, room);
  const berth_value distance = berth__chain_unary(c, "relu", berth__chain_binary(c, "sub", both, twice));
  return berth__chain_unary(c, "exp", berth__chain_with(c, "mul", distance, -(double)s->gamma));
}

/* [N, vectors] */
static berth_value svm_kernels(svm *s) {
  berth__onnx_chain *c = &s->c;
  const berth_value x = berth__ml_rows(c, c->call->in[0], BERTH_F32);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  if (s->kernel == SVM_RBF) return svm_rbf(s, x);
  berth_value dot = svm_dot(s, x, s->vectors);
  if (s->kernel == SVM_LINEAR) return dot;
  dot = berth__chain_with(c, "add", berth__chain_with(c, "mul", dot, (double)s->gamma), (double)s->coef0);
  if (s->kernel == SVM_SIGMOID) return berth__chain_unary(c, "tanh", dot);
  if (s->degree == 2) return berth__chain_binary(c, "mul", dot, dot);
  if (s->degree == 3) return berth__chain_binary(c, "mul", berth__chain_binary(c, "mul", dot, dot), dot);
  return berth__chain_with(c, "pow", dot, (double)s->degree);
}

/* x times rows of coefficients, [rows, columns], plus a constant. */
static berth_value svm_product(svm *s, berth_value x, int64_t rows, int64_t columns, const float *list, double added) {
  berth__onnx_chain *c = &s->c;
  berth_value weight = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__ml_transposed(c->call, list, rows, columns, &weight, c->err);
  return berth__chain_with(c, "add", berth__chain_binary(c, "matmul", x, weight), added);
}

/* ---- SVMRegressor ---- */

static berth_status convert_svm_regressor(berth__onnx_call *call, berth_error *err) {
  svm s = {.c = {call, err, BERTH_OK}, .n_vectors = berth__onnx_int(call, "n_supports", 0)};
  berth__onnx_chain *c = &s.c;
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(svm_read(&s, err));
  if (s.n_vectors < 0 || s.n_vectors > s.n_coefficients)
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " coefficients for %" PRId64 " support vectors",
                       s.n_coefficients, s.n_vectors);
  berth_value y;
  if (s.n_vectors > 0) {
    BERTH__TRY(svm_check_vectors(&s, err));
    y = svm_product(&s, svm_kernels(&s), 1, s.n_vectors, s.coefficients, (double)s.rho[0]);
  } else {
    const berth_value x = berth__ml_rows(c, call->in[0], BERTH_F32);
    y = svm_product(&s, x, 1, s.n_coefficients, s.coefficients, (double)s.rho[0]);
  }
  if (berth__onnx_int(call, "one_class", 0) != 0) {
    const berth_value inside = berth__chain_with(c, "gt", y, 0);
    y = berth__chain_where(c, inside, berth__chain_scalar(c, BERTH_F32, 1), berth__chain_scalar(c, BERTH_F32, -1));
  }
  berth__onnx_set(call, 0, y);
  return c->status;
}

/* ---- SVMClassifier ---- */

typedef struct svm_classes {
  svm s;
  berth__ml_labels labels;
  berth__ml_transform transform;
  const int64_t *sizes; /* number of support vectors per class */
  int64_t count, pairs;
} svm_classes;

static berth_value svm_list_of(berth__onnx_chain *c, const int64_t *list, int64_t count) {
  berth_value out = BERTH_VALUE_NONE;
  if (c->status == BERTH_OK) c->status = berth__onnx_list(c->call, list, (uint32_t)count, &out, c->err);
  return out;
}

static berth_value svm_columns(berth__onnx_chain *c, berth_value x, const int64_t *which, int64_t count) {
  const berth_attr axis = berth_attr_int("axis", 1);
  return berth__chain_emit(c, "gather", (berth_value[]){x, svm_list_of(c, which, count)}, 2, &axis, 1);
}

/* The scores of one class's vectors against each of the other classes: [N, classes - 1]. Row r of the coefficients is
 * against class r, or r + 1 from the class itself on. */
static berth_value svm_against(svm_classes *k, berth_value kernels, int64_t first, int64_t size) {
  berth__onnx_chain *c = &k->s.c;
  const int64_t others = k->count - 1;
  float *list = berth__alloc_array(c->call->graph->ctx, (size_t)(others * size), sizeof *list);
  if (list == NULL) {
    c->status = berth__fail_nomem(c->err, "the coefficients of a node");
    return BERTH_VALUE_NONE;
  }
  for (int64_t r = 0; r < others; r++)
    for (int64_t v = 0; v < size; v++) list[v * others + r] = k->s.coefficients[r * k->s.n_vectors + first + v];
  berth_value weight = BERTH_VALUE_NONE;
  if (c->status != BERTH_OK)
    berth__free(c->call->graph->ctx, list);
  else
    c->status = berth__onnx_add_made(c->call, BERTH_F32, 2, (int64_t[]){size, others}, list, &weight, c->err);
  return berth__chain_binary(c, "matmul", berth__chain_slice(c, kernels, 1, first, first + size), weight);
}

/* A class without vectors scores 0. */
static berth_value svm_silence(svm_classes *k, berth_value kernels) {
  berth__onnx_chain *c = &k->s.c;
  const berth_value column = berth__chain_with(c, "mul", berth__chain_slice(c, kernels, 1, 0, 1), 0);
  const int64_t zero = 0;
  int64_t *all = berth__alloc_array_zero(c->call->graph->ctx, (size_t)k->count, sizeof *all);
  if (all == NULL) c->status = berth__fail_nomem(c->err, "the classes of a node");
  const berth_value out = svm_columns(c, column, all != NULL ? all : &zero, all != NULL ? k->count - 1 : 1);
  berth__free(c->call->graph->ctx, all);
  return out;
}

/* The scores of all classes side by side: [N, classes (classes - 1)]. */
static berth_value svm_all_against(svm_classes *k, berth_value kernels) {
  berth__onnx_chain *c = &k->s.c;
  const berth_attr axis = berth_attr_int("axis", 1);
  berth_value *parts = berth__alloc_array(c->call->graph->ctx, (size_t)k->count, sizeof *parts);
  if (parts == NULL) {
    c->status = berth__fail_nomem(c->err, "the classes of a node");
    return BERTH_VALUE_NONE;
  }
  int64_t first = 0;
  for (int64_t i = 0; i < k->count && c->status == BERTH_OK; first += k->sizes[i++])
    parts[i] = k->sizes[i] != 0 ? svm_against(k, kernels, first, k->sizes[i]) : svm_silence(k, kernels);
  const berth_value out = berth__chain_emit(c, "concat", parts, (size_t)k->count, &axis, 1);
  berth__free(c->call->graph->ctx, parts);
  return out;
}

/* The score of every pair of classes i < j, above 0 for i: [N, pairs]. */
static berth_value svm_pair_scores(svm_classes *k) {
  berth__onnx_chain *c = &k->s.c;
  const berth_value kernels = svm_kernels(&k->s);
  if (c->status != BERTH_OK) return BERTH_VALUE_NONE;
  if (k->count == 2) return svm_product(&k->s, kernels, 1, k->s.n_vectors, k->s.coefficients, (double)k->s.rho[0]);
  const berth_value all = svm_all_against(k, kernels);
  int64_t *which = berth__alloc_array(c->call->graph->ctx, (size_t)(2 * k->pairs), sizeof *which);
  if (which == NULL) {
    c->status = berth__fail_nomem(c->err, "the classes of a node");
    return BERTH_VALUE_NONE;
  }
  int64_t p = 0;
  for (int64_t i = 0; i < k->count; i++)
    for (int64_t j = i + 1; j < k->count; j++, p++) {
      which[p] = i * (k->count - 1) + j - 1;
      which[k->pairs + p] = j * (k->count - 1) + i;
    }
  berth_value scores = berth__chain_binary(c, "add", svm_columns(c, all, which, k->pairs),
                                           svm_columns(c, all, which + k->pairs, k->pairs));
  berth__free(c->call->graph->ctx, which);
  return berth__chain_binary(c, "add", scores, berth__ml_vector(c, k->s.rho, k->pairs));
}

/* The class with most votes: a pair votes for its first class if its score is above 0, otherwise for its second. */
static berth_value svm_most_votes(svm_classes *k, berth_value scores) {
  berth__onnx_chain *c = &k->s.c;
  const int64_t dim[2] = {k->pairs, k->count};
  float *turns = berth__alloc_array_zero(c->call->graph->ctx, (size_t)(k->pairs * k->count), sizeof *turns);
  float *second = berth__alloc_array(c->call->graph->ctx, (size_t)k->count, sizeof *second);
  berth_value weight = BERTH_VALUE_NONE;
  if (turns == NULL || second == NULL || c->status != BERTH_OK) {
    if (c->status == BERTH_OK) c->status = berth__fail_nomem(c->err, "the classes of a node");
    berth__free(c->call->graph->ctx, turns);
    berth__free(c->call->graph->ctx, second);
    return BERTH_VALUE_NONE;
  }
  int64_t p = 0;
  for (int64_t i = 0; i < k->count; i++) {
    second[i] = (float)i; /* votes of class i if all pairs vote for their second class */
    for (int64_t j = i + 1; j < k->count; j++, p++) turns[p * k->count + i] = 1, turns[p * k->count + j] = -1;
  }
  c->status = berth__onnx_add_made(c->call, BERTH_F32, 2, dim, turns, &weight, c->err);
  const berth_value is_first = berth__chain_cast(c, berth__chain_with(c, "gt", scores, 0), BERTH_F32);
  const berth_value votes = berth__chain_binary(c, "add", berth__chain_binary(c, "matmul", is_first, weight),
                                                berth__ml_vector(c, second, k->count));
  berth__free(c->call->graph->ctx, second);
  const berth_attr along[] = {berth_attr_int("axis", 1), berth_attr_int("keepdims", 0)};
  return berth__chain_emit(c, "arg_max", &votes, 1, along, 2);
}

/* The probability of the first class of each pair, and from those the probability of each class. */
static void svm_set_probabilities(svm_classes *k) {
  berth__onnx_chain *c = &k->s.c;
  const berth_value scores = svm_pair_scores(k);
  const berth_attr classes = berth_attr_int("classes", k->count);
  const berth_attr range[] = {berth_attr_float("min", (double)1e-7f), berth_attr_float("max", (double)(1 - 1e-7f))};
  berth__ml_set_label(c, &k->labels, svm_most_votes(k, scores));
  berth_value p = berth__chain_binary(c, "mul", scores, berth__ml_vector(c, k->s.prob_a, k->pairs));
  p = berth__chain_binary(c, "add", p, berth__ml_vector(c, k->s.prob_b, k->pairs));
  p = berth__chain_unary(c, "sigmoid", berth__chain_unary(c, "neg", p));
  p = berth__chain_emit(c, "clamp", &p, 1, range, 2);
  p = berth__chain_emit(c, "pairwise_coupling", &p, 1, &classes, 1);
  berth__onnx_set(c->call, 1, berth__ml_transformed(c, k->transform, p, false));
}

static void svm_set_pairs(svm_classes *k) {
  berth__onnx_chain *c = &k->s.c;
  const berth_value scores = svm_pair_scores(k);
  berth__ml_set_label(c, &k->labels, svm_most_votes(k, scores));
  berth_value out;
  if (k->count == 2)
    out = berth__ml_two_classes(c, k->transform, scores, k->transform == BERTH__ML_NONE);
  else
    out = berth__ml_transformed(c, k->transform, scores, k->pairs == 1);
  berth__onnx_set(c->call, 1, out);
}

/* liblinear: a row of coefficients per class, one rho for all. */
static void svm_set_linear(svm_classes *k) {
  berth__onnx_chain *c = &k->s.c;
  const berth_value x = berth__ml_rows(c, c->call->in[0], BERTH_F32);
  const berth_value scores =
      svm_product(&k->s, x, k->count, k->s.n_coefficients / k->count, k->s.coefficients, (double)k->s.rho[0]);
  const berth_attr along[] = {berth_attr_int("axis", 1), berth_attr_int("keepdims", 0)};
  berth_value best = berth__chain_emit(c, "arg_max", &scores, 1, along, 2);
  if (k->count == 2 && k->s.n_prob_a == 0) { /* any score that is high enough means the second class */
    bool is_positive = true;
    for (uint32_t i = 0; i < k->s.n_coefficients; i++) is_positive = is_positive && k->s.coefficients[i] >= 0;
    const int64_t last = 1;
    const berth_attr attrs[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 0)};
    const berth_value most = berth__chain_emit(c, "reduce_max", &scores, 1, attrs, 2);
    const berth_value is_high = berth__chain_with(c, is_positive ? "ge" : "gt", most, is_positive ? 0.5 : 0);
    best = berth__chain_where(c, is_high, berth__chain_scalar(c, BERTH_I64, 1), best);
  }
  berth__ml_set_label(c, &k->labels, best);
  berth__onnx_set(c->call, 1, berth__ml_transformed(c, k->transform, scores, k->count == 1));
}

static berth_status svm_check_classes(svm_classes *k, berth_error *err) {
  svm *s = &k->s;
  uint32_t n_sizes;
  k->sizes = berth__onnx_ints(s->c.call, "vectors_per_class", &n_sizes);
  k->count = k->labels.count;
  k->pairs = k->count * (k->count - 1) / 2;
  if (k->count < 2 || k->count > 65535)
    return berth__fail(err, BERTH_MALFORMED, "it has %" PRId64 " class labels", k->count);
  for (uint32_t i = 0; i < n_sizes; i++) {
    if (k->sizes[i] < 0 || k->sizes[i] > INT32_MAX)
      return berth__fail(err, BERTH_MALFORMED, "class %" PRIu32 " has %" PRId64 " support vectors", i, k->sizes[i]);
    s->n_vectors += k->sizes[i];
  }
  if (s->n_vectors == 0)
    return s->n_coefficients % k->count == 0
               ? BERTH_OK
               : berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " coefficients do not make %" PRId64 " rows",
                             s->n_coefficients, k->count);
  BERTH__TRY(svm_check_vectors(s, err));
  if (k->pairs * k->count > MOST_VOTES)
    return berth__fail(err, BERTH_UNSUPPORTED, "%" PRId64 " classes are too many", k->count);
  if (n_sizes != k->count || s->n_rho < k->pairs || s->n_coefficients / s->n_vectors < k->count - 1)
    return berth__fail(err, BERTH_MALFORMED,
                       "%" PRIu32 " vectors_per_class, %" PRIu32 " rho and %" PRIu32 " coefficients for %" PRId64
                       " classes and %" PRId64 " vectors",
                       n_sizes, s->n_rho, s->n_coefficients, k->count, s->n_vectors);
  if (s->n_prob_a != s->n_prob_b || (s->n_prob_a != 0 && s->n_prob_a < k->pairs))
    return berth__fail(err, BERTH_MALFORMED, "%" PRIu32 " prob_a and %" PRIu32 " prob_b for %" PRId64 " pairs",
                       s->n_prob_a, s->n_prob_b, k->pairs);
  return BERTH_OK;
}

static berth_status convert_svm_classifier(berth__onnx_call *call, berth_error *err) {
  svm_classes k = {.s = {.c = {call, err, BERTH_OK}}};
  BERTH__TRY(berth__onnx_begin(call, 1, err));
  BERTH__TRY(svm_read(&k.s, err));
  BERTH__TRY(berth__ml_transform_of(call, &k.transform, err));
  BERTH__TRY(berth__ml_labels_of(call, "classlabels_ints", "classlabels_strings", &k.labels, err));
  k.s.prob_a = berth__onnx_floats(call, "prob_a", &k.s.n_prob_a);
  k.s.prob_b = berth__onnx_floats(call, "prob_b", &k.s.n_prob_b);
  BERTH__TRY(svm_check_classes(&k, err));
  if (k.s.n_vectors == 0)
    svm_set_linear(&k);
  else if (k.s.n_prob_a != 0)
    svm_set_probabilities(&k);
  else
    svm_set_pairs(&k);
  return k.s.c.status;
}

const berth__onnx_handler berth__onnx_ml_svm[] = {
    {"SVMRegressor", convert_svm_regressor, NULL},
    {"SVMClassifier", convert_svm_classifier, NULL},
    {NULL, NULL, NULL},
};
