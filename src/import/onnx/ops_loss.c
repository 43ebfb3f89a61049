/* Losses: the score of the class that each target names, weighted and reduced. */
#include "import/onnx/compose.h"

typedef struct loss {
  berth_value scores;  /* [N, C, ...] */
  berth_value target;  /* [N, ...]: class indices */
  berth_value ignored; /* where the target is ignore_index; BERTH_VALUE_NONE: never */
  berth_value weights; /* [N, ...]: per target, 0 if it is ignored; BERTH_VALUE_NONE: all are 1 */
} loss;

/* Ignored targets may not be valid classes; they are read as class 0 and dropped later. */
static berth_status onnx_loss_read_target(berth__onnx_call *call, loss *l, berth_error *err) {
  const berth__onnx_attr *attr = berth__onnx_find(call, "ignore_index");
  l->ignored = BERTH_VALUE_NONE;
  if (attr == NULL) return BERTH_OK;
  berth_type type = berth__onnx_value_type(call, l->target);
  berth_value index;
  if (type != BERTH_I32 && type != BERTH_I64) return berth__fail(err, BERTH_MALFORMED, "the targets are not integers");
  BERTH__TRY(berth__onnx_scalar(call, BERTH_I64, (double)attr->i, &index, err));
  BERTH__TRY(berth__onnx_cast(call, l->target, BERTH_I64, &l->target, err));
  BERTH__TRY(berth__onnx_binary(call, "eq", l->target, index, &l->ignored, err));
  return berth__onnx_replace(call, l->ignored, 0, l->target, &l->target, err);
}

/* scores[n, target[n, ...], ...] */
static berth_status onnx_loss_pick(berth__onnx_call *call, const loss *l, berth_value *out, berth_error *err) {
  int64_t classes = 1;
  berth_value in[2] = {l->scores, BERTH_VALUE_NONE};
  berth_attr axis = berth_attr_int("axis", 1);
  BERTH__TRY(berth__onnx_listed(call, "unsqueeze", l->target, "axes", &classes, 1, &in[1], err));
  BERTH__TRY(berth__onnx_emit(call, "gather_elements", in, 2, &axis, 1, out, 1, err));
  return berth__onnx_listed(call, "squeeze", *out, "axes", &classes, 1, out, err);
}

static berth_status leave_out(berth__onnx_call *call, const loss *l, berth_value x, berth_value *out,
                              berth_error *err) {
  if (l->ignored == BERTH_VALUE_NONE) return *out = x, BERTH_OK;
  return berth__onnx_replace(call, l->ignored, 0, x, out, err);
}

/* `weight` is [C], or omitted. */
static berth_status onnx_loss_read_weights(berth__onnx_call *call, berth_value weight, loss *l, berth_error *err) {
  berth_value in[2] = {weight, l->target};
  l->weights = BERTH_VALUE_NONE;
  if (weight != BERTH_VALUE_NONE) {
    BERTH__TRY(berth__onnx_emit(call, "gather", in, 2, NULL, 0, &l->weights, 1, err));
    return leave_out(call, l, l->weights, &l->weights, err);
  }
  if (l->ignored == BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(berth__onnx_unary(call, "not", l->ignored, &l->weights, err));
  return berth__onnx_cast(call, l->weights, berth__onnx_value_type(call, l->scores), &l->weights, err);
}

static berth_status put_together(berth__onnx_call *call, const loss *l, berth_value each, berth_value *out,
                                 berth_error *err) {
  berth__span how = berth__onnx_string(call, "reduction", "mean");
  berth_value weights, total;
  if (berth__span_is(how, "none")) return *out = each, BERTH_OK;
  if (berth__span_is(how, "sum")) return berth__onnx_reduce_over(call, "reduce_sum", each, NULL, 0, false, out, err);
  if (!berth__span_is(how, "mean"))
    return berth__fail(err, BERTH_MALFORMED, "reduction is '%.*s', expected none, sum or mean",
                       (int)(how.size > 40 ? 40 : how.size), how.data != NULL ? (const char *)how.data : "");
  if (l->weights == BERTH_VALUE_NONE)
    return berth__onnx_reduce_over(call, "reduce_mean", each, NULL, 0, false, out, err);
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_sum", l->weights, NULL, 0, false, &weights, err));
  BERTH__TRY(berth__onnx_reduce_over(call, "reduce_sum", each, NULL, 0, false, &total, err));
  return berth__onnx_binary(call, "div", total, weights, out, err);
}

/* The scores are logarithms of probabilities. */
static berth_status likelihood_loss(berth__onnx_call *call, berth_value scores, berth_error *err) {
  loss l = {.scores = scores, .target = call->in[1]};
  berth_value each;
  if (berth__onnx_shape(call, scores)->rank < 2)
    return berth__fail(err, BERTH_MALFORMED, "the scores need an axis of classes");
  BERTH__TRY(onnx_loss_read_target(call, &l, err));
  BERTH__TRY(onnx_loss_read_weights(call, berth__onnx_in(call, 2), &l, err));
  BERTH__TRY(onnx_loss_pick(call, &l, &each, err));
  BERTH__TRY(berth__onnx_unary(call, "neg", each, &each, err));
  if (l.weights != BERTH_VALUE_NONE) BERTH__TRY(berth__onnx_binary(call, "mul", each, l.weights, &each, err));
  BERTH__TRY(leave_out(call, &l, each, &each, err));
  return put_together(call, &l, each, &call->out[0], err);
}

static berth_status convert_likelihood(berth__onnx_call *call, berth_error *err) {
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  return likelihood_loss(call, call->in[0], err);
}

static berth_status convert_cross_entropy(berth__onnx_call *call, berth_error *err) {
  berth_value scores;
  BERTH__TRY(berth__onnx_begin(call, 2, err));
  BERTH__TRY(berth__onnx_along(call, "log_softmax", call->in[0], "axis", 1, &scores, err));
  berth__onnx_set(call, 1, scores);
  return likelihood_loss(call, scores, err);
}

const berth__onnx_handler berth__onnx_loss[] = {
    {"NegativeLogLikelihoodLoss", convert_likelihood, NULL},
    {"SoftmaxCrossEntropyLoss", convert_cross_entropy, NULL},
    {NULL, NULL, NULL},
};
