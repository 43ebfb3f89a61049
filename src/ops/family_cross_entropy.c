/* cross_entropy: -log softmax(logits) of the label's class, for each row of logits [..., C] and its label [...]; and
 * cross_entropy_grad: (softmax(logits) - 1 at the label) dy, which may overwrite the logits. A row whose label is
 * `ignore_index` gives 0 and has no gradient. Items are rows; sums in f64.
 *
 * Given the losses, the gradient needs no sums: the log of a row's sum is its loss plus the logit at its label. */
#include <inttypes.h>
#include <math.h>

#include "ops/cross_entropy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs_of_cross_entropy[] = {
    [BERTH__CROSS_ENTROPY_IGNORED] = {.name = "ignore_index", .kind = BERTH_ATTR_INT, .i = -100}};

/* An operand with one element per row. */
static berth_status cross_entropy_check_rows(const berth__infer *infer, uint32_t operand, const char *what,
                                             berth_error *err) {
  const berth__shape *logits = &infer->in_shape[BERTH__CROSS_ENTROPY_LOGITS], *rows = &infer->in_shape[operand];
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, operand, logits->rank - 1, logits->rank - 1, err));
  for (uint32_t axis = 0; axis < rows->rank; axis++)
    BERTH__TRY(berth__same_dim(logits->dim[axis], rows->dim[axis], what, &same, err));
  return BERTH_OK;
}

static berth_status cross_entropy_check_losses(const berth__infer *infer, berth_error *err) {
  if (infer->n_in <= BERTH__CROSS_ENTROPY_LOSSES || infer->in_type[BERTH__CROSS_ENTROPY_LOSSES] == BERTH_TYPE_NONE)
    return BERTH_OK;
  const berth_type type = infer->in_type[BERTH__CROSS_ENTROPY_LOGITS];
  BERTH__TRY(berth__want_same_type(infer, BERTH__CROSS_ENTROPY_LOGITS, BERTH__CROSS_ENTROPY_LOSSES, err));
  if (type != BERTH_F32 && type != BERTH_F64)
    return berth__fail(err, BERTH_INVALID,
                       "losses of %s have too few digits for the gradient of the logits: leave them out, and they are "
                       "computed again",
                       berth_type_name(type));
  return cross_entropy_check_rows(infer, BERTH__CROSS_ENTROPY_LOSSES, "rows of logits and losses", err);
}

static berth_status cross_entropy_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *logits = &infer->in_shape[BERTH__CROSS_ENTROPY_LOGITS];
  const bool is_grad = infer->op->code == BERTH__OP_cross_entropy_grad;
  BERTH__TRY(berth__want_float(infer, BERTH__CROSS_ENTROPY_LOGITS, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__CROSS_ENTROPY_LOGITS, 1, BERTH_MAX_RANK, err));
  if (!berth__type_is_int(infer->in_type[BERTH__CROSS_ENTROPY_LABELS]))
    return berth__fail(err, BERTH_INVALID, "operand %d has type %s, and labels are integers",
                       BERTH__CROSS_ENTROPY_LABELS, berth_type_name(infer->in_type[BERTH__CROSS_ENTROPY_LABELS]));
  BERTH__TRY(cross_entropy_check_rows(infer, BERTH__CROSS_ENTROPY_LABELS, "rows of logits and labels", err));
  if (is_grad) {
    BERTH__TRY(berth__want_same_type(infer, BERTH__CROSS_ENTROPY_LOGITS, BERTH__CROSS_ENTROPY_DY, err));
    BERTH__TRY(cross_entropy_check_rows(infer, BERTH__CROSS_ENTROPY_DY, "rows of logits and gradients", err));
    BERTH__TRY(cross_entropy_check_losses(infer, err));
  }
  infer->out_type[0] = infer->in_type[BERTH__CROSS_ENTROPY_LOGITS];
  infer->out_shape[0] = *logits;
  if (!is_grad) infer->out_shape[0].rank--;
  return BERTH_OK;
}

int64_t berth__cross_entropy_rows(const berth_op_call *call) {
  return berth__count(&call->in[BERTH__CROSS_ENTROPY_LABELS]);
}

berth_status berth__cross_entropy_label(const berth_op_call *call, int64_t row, int64_t *label, berth_error *err) {
  const berth_tensor *logits = &call->in[BERTH__CROSS_ENTROPY_LOGITS];
  const int64_t classes = logits->dim[logits->rank - 1];
  *label = berth__load_i64(&call->in[BERTH__CROSS_ENTROPY_LABELS], row);
  if (*label == call->attrs[BERTH__CROSS_ENTROPY_IGNORED].i)
    *label = -1;
  else if (*label < 0 || *label >= classes)
    return berth__fail(err, BERTH_INVALID, "label %" PRId64 " of row %" PRId64 " is not one of %" PRId64 " classes",
                       *label, row, classes);
  return BERTH_OK;
}

/* The maximum of a row, and the sum of exponentials relative to it. */
static double cross_entropy_sum(const berth_tensor *logits, int64_t start, int64_t n, double *most) {
  double sum = 0;
  *most = -(double)INFINITY;
  for (int64_t i = 0; i < n; i++) {
    const double x = berth__load_f64(logits, start + i);
    if (x > *most || isnan(x)) *most = x;
  }
  for (int64_t i = 0; i < n; i++) sum += exp(berth__load_f64(logits, start + i) - *most);
  return sum;
}

bool berth__cross_entropy_knows_sum(const berth_op_call *call, int64_t row, double *loss) {
  if (call->n_in <= BERTH__CROSS_ENTROPY_LOSSES || call->in[BERTH__CROSS_ENTROPY_LOSSES].type == BERTH_TYPE_NONE)
    return false;
  *loss = berth__load_f64(&call->in[BERTH__CROSS_ENTROPY_LOSSES], row);
  return *loss <= BERTH__CROSS_ENTROPY_KNOWN;
}

/* The probability of a logit x is exp(x - offset - rest). */
static void cross_entropy_spread(const berth_op_call *call, int64_t row, int64_t label) {
  const berth_tensor *logits = &call->in[BERTH__CROSS_ENTROPY_LOGITS], *out = &call->out[0];
  const int64_t n = logits->dim[logits->rank - 1], start = row * n;
  const double dy = berth__load_f64(&call->in[BERTH__CROSS_ENTROPY_DY], row);
  double offset = 0, rest = 0;
  if (label >= 0 && berth__cross_entropy_knows_sum(call, row, &rest))
    offset = berth__load_f64(logits, start + label);
  else if (label >= 0)
    rest = log(cross_entropy_sum(logits, start, n, &offset));
  for (int64_t i = 0; i < n; i++) {
    const double p = label < 0 ? 0 : exp(berth__load_f64(logits, start + i) - offset - rest);
    berth__store_f64(out, start + i, label < 0 ? 0 : (p - (i == label)) * dy);
  }
}

static berth_status cross_entropy_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *logits = &call->in[BERTH__CROSS_ENTROPY_LOGITS];
  const int64_t n = logits->dim[logits->rank - 1];
  for (int64_t row = call->begin; row < call->end; row++) {
    int64_t label;
    double most, loss = 0;
    BERTH__TRY(berth__cross_entropy_label(call, row, &label, err));
    if (berth__call_code(call) == BERTH__OP_cross_entropy_grad) {
      cross_entropy_spread(call, row, label);
      continue;
    }
    if (label >= 0) {
      loss = log(cross_entropy_sum(logits, row * n, n, &most));
      loss += most - berth__load_f64(logits, row * n + label);
    }
    berth__store_f64(&call->out[0], row, loss);
  }
  return BERTH_OK;
}

const berth__family berth__family_cross_entropy = {.attrs = attrs_of_cross_entropy,
                                                   .n_attrs = 1,
                                                   .infer = cross_entropy_infer,
                                                   .items = berth__cross_entropy_rows,
                                                   .kernel = cross_entropy_kernel};
