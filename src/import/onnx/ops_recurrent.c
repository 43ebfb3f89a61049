/* LSTM, GRU, RNN. berth's ops require the sequence first; `layout` = 1 becomes transposes, which are views. */
#include <stdio.h>
#include <strings.h>

#include "import/onnx/recurrent.h"
#include "ops/recurrent.h"

#define MAX_OPERANDS 9 /* of qlstm */
#define INITIAL_H 5
#define INITIAL_C 6

/* ONNX's names, which ONNX Runtime accepts in any case, and berth's. */
static const char *const names[][2] = {
    {"Affine", "affine"},
    {"Relu", "relu"},
    {"LeakyRelu", "leaky_relu"},
    {"ThresholdedRelu", "thresholded_relu"},
    {"Tanh", "tanh"},
    {"ScaledTanh", "scaled_tanh"},
    {"Sigmoid", "sigmoid"},
    {"HardSigmoid", "hard_sigmoid"},
    {"Elu", "elu"},
    {"Softsign", "softsign"},
    {"Softplus", "softplus"},
};

static const char *activation_name(berth__span name) {
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strlen(names[i][0]) == name.size && strncasecmp(names[i][0], (const char *)name.data, name.size) == 0)
      return names[i][1];
  return NULL;
}

typedef struct activations {
  char names[BERTH__MAX_ACTIVATIONS * 24];
  double alpha[BERTH__MAX_ACTIVATIONS], beta[BERTH__MAX_ACTIVATIONS];
  uint32_t count;
} activations;

/* The lists of parameters have entries only for activations that take one; after the end of a list, defaults apply. */
static berth_status read_activations(const berth__onnx_call *call, activations *out, berth_error *err) {
  const berth__onnx_attr *attr = berth__onnx_find(call, "activations");
  const berth__onnx_attr *alpha = berth__onnx_find(call, "activation_alpha");
  const berth__onnx_attr *beta = berth__onnx_find(call, "activation_beta");
  size_t alphas = 0, betas = 0, used = 0;
  memset(out, 0, sizeof *out);
  if (attr == NULL) return BERTH_OK;
  if (attr->n_strings > BERTH__MAX_ACTIVATIONS)
    return berth__fail(err, BERTH_MALFORMED, "it names %zu activations", attr->n_strings);
  for (size_t i = 0; i < attr->n_strings; i++) {
    const char *name = activation_name(attr->strings[i]);
    bool has_alpha, has_beta;
    if (name == NULL ||
        !berth__activation_defaults(name, strlen(name), &has_alpha, &has_beta, &out->alpha[i], &out->beta[i]))
      return berth__onnx_unsupported(call, err, "there is no activation '%.*s'", (int)attr->strings[i].size,
                                     attr->strings[i].data != NULL ? (const char *)attr->strings[i].data : "");
    if (has_alpha && alpha != NULL && alphas < alpha->n_floats) out->alpha[i] = (double)alpha->floats[alphas++];
    if (has_beta && beta != NULL && betas < beta->n_floats) out->beta[i] = (double)beta->floats[betas++];
    used += (size_t)snprintf(out->names + used, sizeof out->names - used, "%s%s", i == 0 ? "" : " ", name);
    out->count++;
  }
  return BERTH_OK;
}

static berth_status transpose(berth__onnx_call *call, berth_value in, const int64_t *perm, uint32_t rank,
                              berth_value *out, berth_error *err) {
  berth_attr attr = berth_attr_ints("perm", perm, rank);
  return berth__onnx_emit(call, "transpose", &in, 1, &attr, 1, out, 1, err);
}

static berth_status with_sequence_first(berth__onnx_call *call, berth_value *in, size_t n_in, berth_error *err) {
  static const size_t swapped[] = {0, INITIAL_H, INITIAL_C};
  for (size_t i = 0; i < sizeof swapped / sizeof *swapped; i++) {
    size_t operand = swapped[i];
    if (operand >= n_in || in[operand] == BERTH_VALUE_NONE) continue;
    BERTH__TRY(transpose(call, in[operand], (int64_t[]){1, 0, 2}, 3, &in[operand], err));
  }
  return BERTH_OK;
}

static berth_status with_batch_first(berth__onnx_call *call, berth_value *out, size_t n_out, berth_error *err) {
  BERTH__TRY(transpose(call, out[0], (int64_t[]){2, 0, 1, 3}, 4, &out[0], err));
  for (size_t i = 1; i < n_out; i++) BERTH__TRY(transpose(call, out[i], (int64_t[]){1, 0, 2}, 3, &out[i], err));
  return BERTH_OK;
}

static berth_status onnx_recurrent_emit(berth__onnx_call *call, const char *op, const berth_value *in, size_t n_in,
                                        berth_value *out, berth_error *err) {
  activations act;
  char direction[32];
  berth__span given = berth__onnx_string(call, "direction", "forward");
  BERTH__TRY(read_activations(call, &act, err));
  snprintf(direction, sizeof direction, "%.*s", (int)(given.size < sizeof direction ? given.size : 0),
           given.data != NULL ? (const char *)given.data : "");
  berth_attr attrs[] = {
      berth_attr_string("direction", direction),
      berth_attr_string("activations", act.names),
      berth_attr_floats("alpha", act.alpha, act.count),
      berth_attr_floats("beta", act.beta, act.count),
      berth_attr_float("clip", berth__onnx_float(call, "clip", 0)),
      berth_attr_int("input_forget", berth__onnx_int(call, "input_forget", 0)),
      berth_attr_int("linear_before_reset", berth__onnx_int(call, "linear_before_reset", 0)),
  };
  return berth__onnx_emit(call, op, in, n_in, attrs, sizeof attrs / sizeof *attrs, out, call->n_out, err);
}

berth_status berth__onnx_recurrent_layer(berth__onnx_call *call, const char *op, const berth_value *in, size_t n_in,
                                         berth_error *err) {
  berth_value operands[MAX_OPERANDS], out[3];
  bool is_batch_first = berth__onnx_int(call, "layout", 0) != 0;
  if (n_in > MAX_OPERANDS || call->n_out > 3 || call->n_out == 0)
    return berth__fail(err, BERTH_MALFORMED, "it has %zu operands and %zu outputs", n_in, call->n_out);
  memcpy(operands, in, n_in * sizeof *in);
  if (is_batch_first) BERTH__TRY(with_sequence_first(call, operands, n_in, err));
  BERTH__TRY(onnx_recurrent_emit(call, op, operands, n_in, out, err));
  if (is_batch_first) BERTH__TRY(with_batch_first(call, out, call->n_out, err));
  memcpy(call->out, out, call->n_out * sizeof *out);
  return BERTH_OK;
}

static berth_status convert_layer(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_want_in(call, 3, err));
  return berth__onnx_recurrent_layer(call, call->handler->berth_op, call->in, call->n_in, err);
}

const berth__onnx_handler berth__onnx_recurrent[] = {
    {"GRU", convert_layer, "gru"},
    {"LSTM", convert_layer, "lstm"},
    {"RNN", convert_layer, "rnn"},
    {NULL, NULL, NULL},
};
