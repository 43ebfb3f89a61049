#include "ops/recurrent.h"

#include <math.h>

const berth_attr berth__recurrent_attrs[BERTH__RECURRENT_ATTRS] = {
    [BERTH__RECURRENT_DIRECTION] = {.name = "direction", .kind = BERTH_ATTR_STRING, .s = "forward"},
    [BERTH__RECURRENT_ACTIVATIONS] = {.name = "activations", .kind = BERTH_ATTR_STRING, .s = ""},
    [BERTH__RECURRENT_ALPHA] = {.name = "alpha", .kind = BERTH_ATTR_FLOATS},
    [BERTH__RECURRENT_BETA] = {.name = "beta", .kind = BERTH_ATTR_FLOATS},
    [BERTH__RECURRENT_CLIP] = {.name = "clip", .kind = BERTH_ATTR_FLOAT},
    [BERTH__RECURRENT_INPUT_FORGET] = {.name = "input_forget", .kind = BERTH_ATTR_INT},
    [BERTH__RECURRENT_LINEAR_BEFORE_RESET] = {.name = "linear_before_reset", .kind = BERTH_ATTR_INT},
};

static bool recurrent_is_lstm(berth__op_code code) { return code == BERTH__OP_lstm || code == BERTH__OP_qlstm; }

int64_t berth__recurrent_gates(berth__op_code code) {
  return recurrent_is_lstm(code) ? 4 : code == BERTH__OP_gru ? 3 : 1;
}

uint32_t berth__recurrent_functions(berth__op_code code) {
  return recurrent_is_lstm(code) ? 3 : code == BERTH__OP_gru ? 2 : 1;
}

uint32_t berth__recurrent_directions(const berth_attr *attrs) {
  const char *direction = attrs[BERTH__RECURRENT_DIRECTION].s;
  if (strcmp(direction, "bidirectional") == 0) return 2;
  return strcmp(direction, "forward") == 0 || strcmp(direction, "reverse") == 0 ? 1 : 0;
}

/* ---- Activations ---- */

static double recurrent_affine(double x, double alpha, double beta) { return alpha * x + beta; }
static double recurrent_relu(double x, double alpha, double beta) { return (void)alpha, (void)beta, x < 0 ? 0 : x; }
static double recurrent_leaky_relu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * x : x; }
static double recurrent_thresholded_relu(double x, double alpha, double beta) { return (void)beta, x < alpha ? 0 : x; }
static double recurrent_hyperbolic(double x, double alpha, double beta) { return (void)alpha, (void)beta, tanh(x); }
static double recurrent_scaled_tanh(double x, double alpha, double beta) { return alpha * tanh(beta * x); }
static double recurrent_sigmoid(double x, double alpha, double beta) {
  return (void)alpha, (void)beta, 1 / (1 + exp(-x));
}
static double recurrent_hard_sigmoid(double x, double alpha, double beta) { return fmin(fmax(alpha * x + beta, 0), 1); }
static double recurrent_elu(double x, double alpha, double beta) { return (void)beta, x < 0 ? alpha * expm1(x) : x; }
static double recurrent_softsign(double x, double alpha, double beta) {
  return (void)alpha, (void)beta, x / (1 + fabs(x));
}
static double recurrent_softplus(double x, double alpha, double beta) {
  return (void)alpha, (void)beta, fmax(x, 0) + log1p(exp(-fabs(x)));
}

static const struct entry {
  const char *name;
  double (*function)(double x, double alpha, double beta);
  bool has_alpha, has_beta;
  double alpha, beta;
} table[] = {
    {"affine", recurrent_affine, true, true, 1, 0},
    {"relu", recurrent_relu, false, false, 0, 0},
    {"leaky_relu", recurrent_leaky_relu, true, false, 0.01, 0},
    {"thresholded_relu", recurrent_thresholded_relu, true, false, 1, 0},
    {"tanh", recurrent_hyperbolic, false, false, 0, 0},
    {"scaled_tanh", recurrent_scaled_tanh, true, true, 1, 1},
    {"sigmoid", recurrent_sigmoid, false, false, 0, 0},
    {"hard_sigmoid", recurrent_hard_sigmoid, true, true, 0.2, 0.5},
    {"elu", recurrent_elu, true, false, 1, 0},
    {"softsign", recurrent_softsign, false, false, 0, 0},
    {"softplus", recurrent_softplus, false, false, 0, 0},
};

static const struct entry *recurrent_find(const char *name, size_t length) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0) return &table[i];
  return NULL;
}

bool berth__activation_defaults(const char *name, size_t length, bool *has_alpha, bool *has_beta, double *alpha,
                                double *beta) {
  const struct entry *entry = recurrent_find(name, length);
  if (entry == NULL) return false;
  *has_alpha = entry->has_alpha;
  *has_beta = entry->has_beta;
  *alpha = entry->alpha;
  *beta = entry->beta;
  return true;
}

static const char *default_names(berth__op_code code) {
  return recurrent_is_lstm(code) ? "sigmoid tanh tanh" : code == BERTH__OP_gru ? "sigmoid tanh" : "tanh";
}

static berth_status read_names(const char *names, uint32_t most, berth__activation *out, uint32_t *count,
                               berth_error *err) {
  *count = 0;
  for (const char *at = names + strspn(names, " "); *at != '\0'; at += strspn(at, " ")) {
    size_t length = strcspn(at, " ");
    const struct entry *entry = recurrent_find(at, length);
    if (entry == NULL)
      return berth__fail(err, BERTH_INVALID, "'%.*s' in attribute 'activations' is not one that is known",
                         (int)(length > 60 ? 60 : length), at);
    if (*count < most) out[*count] = (berth__activation){entry->function, entry->alpha, entry->beta, entry->name};
    ++*count;
    at += length;
  }
  return BERTH_OK;
}

static berth_status recurrent_read_numbers(const berth_attr *attr, uint32_t count, berth_error *err) {
  if (attr->count == 0 || attr->count == count) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "attribute '%s' has %u numbers for %u activations", attr->name, attr->count,
                     count);
}

berth_status berth__recurrent_activations(berth__op_code code, const berth_attr *attrs,
                                          berth__activation out[BERTH__MAX_ACTIVATIONS], berth_error *err) {
  const char *names = attrs[BERTH__RECURRENT_ACTIVATIONS].s;
  const berth_attr *alpha = &attrs[BERTH__RECURRENT_ALPHA], *beta = &attrs[BERTH__RECURRENT_BETA];
  uint32_t each = berth__recurrent_functions(code), directions = berth__recurrent_directions(attrs), count;
  bool is_default = names[0] == '\0';
  BERTH__TRY(read_names(is_default ? default_names(code) : names, BERTH__MAX_ACTIVATIONS, out, &count, err));
  if (is_default && directions == 2) memcpy(out + each, out, each * sizeof *out);
  if (is_default) count = each * directions;
  if (count != each * directions)
    return berth__fail(err, BERTH_INVALID, "attribute 'activations' names %u, but %u are needed", count,
                       each * directions);
  BERTH__TRY(recurrent_read_numbers(alpha, count, err));
  BERTH__TRY(recurrent_read_numbers(beta, count, err));
  for (uint32_t i = 0; i < count; i++) {
    if (alpha->count != 0) out[i].alpha = alpha->floats[i];
    if (beta->count != 0) out[i].beta = beta->floats[i];
  }
  return BERTH_OK;
}

berth_status berth__recurrent_check(const berth__infer *infer, berth_error *err) {
  berth__activation activations[BERTH__MAX_ACTIVATIONS];
  if (berth__recurrent_directions(infer->attrs) == 0)
    return berth__fail(err, BERTH_INVALID, "direction \"%s\" is not one of forward, reverse and bidirectional",
                       infer->attrs[BERTH__RECURRENT_DIRECTION].s);
  if (!(infer->attrs[BERTH__RECURRENT_CLIP].f >= 0))
    return berth__fail(err, BERTH_INVALID, "attribute 'clip' is negative or not a number");
  return berth__recurrent_activations(infer->op->code, infer->attrs, activations, err);
}
