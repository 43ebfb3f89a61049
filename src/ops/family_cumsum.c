/* cumsum, cumprod: running sums and products along an axis, in f64 for floats and in wrapping 64 bits for integers. An
 * item is one line.
 *
 * The axis may be an operand, known only to the kernel; then the whole call is one item, because the number of lines is
 * not known before. */
#include "ops/elementwise.h"
#include "ops/operand.h"

static const berth_attr attrs_of_cumsum[] = {
    [BERTH__CUMSUM_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = 0},
    [BERTH__CUMSUM_EXCLUSIVE] = {.name = "exclusive", .kind = BERTH_ATTR_INT, .i = 0},
    [BERTH__CUMSUM_REVERSE] = {.name = "reverse", .kind = BERTH_ATTR_INT, .i = 0}};

static berth_status infer_cumsum(berth__infer *infer, berth_error *err) {
  berth__list list = {.known = true, .count = 1, .at = {infer->attrs[BERTH__CUMSUM_AXIS].i}};
  uint32_t axis;
  BERTH__TRY(berth__want_numeric(infer, BERTH__CUMSUM_X, err));
  if (berth__infer_has(infer, BERTH__CUMSUM_AXIS_OPERAND))
    BERTH__TRY(berth__infer_list(infer, BERTH__CUMSUM_AXIS, BERTH__CUMSUM_AXIS_OPERAND, &list, err));
  if (list.count != 1) return berth__fail(err, BERTH_INVALID, "operand 1 has %u elements, expected one", list.count);
  if (list.known) BERTH__TRY(berth__want_axis(list.at[0], infer->in_shape[BERTH__CUMSUM_X].rank, &axis, err));
  for (uint32_t i = BERTH__CUMSUM_EXCLUSIVE; i <= BERTH__CUMSUM_REVERSE; i++)
    if (infer->attrs[i].i != 0 && infer->attrs[i].i != 1)
      return berth__fail(err, BERTH_INVALID, "attribute '%s' is not 0 or 1", infer->attrs[i].name);
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

static double cumsum_sum_f64(double *x, int64_t count, double sum, bool exclusive) {
  for (int64_t i = 0; i < count; i++) {
    double next = sum + x[i];
    x[i] = exclusive ? sum : next;
    sum = next;
  }
  return sum;
}

static int64_t sum_i64(int64_t *x, int64_t count, int64_t sum, bool exclusive) {
  for (int64_t i = 0; i < count; i++) {
    int64_t next = (int64_t)((uint64_t)sum + (uint64_t)x[i]);
    x[i] = exclusive ? sum : next;
    sum = next;
  }
  return sum;
}

static double cumsum_multiply_f64(double *x, int64_t count, double product, bool exclusive) {
  for (int64_t i = 0; i < count; i++) {
    double next = product * x[i];
    x[i] = exclusive ? product : next;
    product = next;
  }
  return product;
}

static int64_t cumsum_multiply_i64(int64_t *x, int64_t count, int64_t product, bool exclusive) {
  for (int64_t i = 0; i < count; i++) {
    int64_t next = (int64_t)((uint64_t)product * (uint64_t)x[i]);
    x[i] = exclusive ? product : next;
    product = next;
  }
  return product;
}

/* A block is read completely before it is written, so the result may overwrite the operand. */
static void sum_line(const berth_op_call *call, int64_t start, int64_t step, int64_t length) {
  const berth_tensor *in = &call->in[BERTH__CUMSUM_X], *out = &call->out[0];
  bool is_float = berth__type_is_float(in->type), exclusive = call->attrs[BERTH__CUMSUM_EXCLUSIVE].i != 0;
  berth__class cls = is_float ? BERTH__CLASS_F64 : BERTH__CLASS_I64;
  union {
    double f[BERTH__BLOCK];
    int64_t i[BERTH__BLOCK];
  } block;
  const bool multiplies = berth__call_code(call) == BERTH__OP_cumprod;
  double f = multiplies ? 1 : 0;
  int64_t i = multiplies ? 1 : 0;
  for (int64_t at = 0; at < length; at += BERTH__BLOCK) {
    int64_t n = length - at < BERTH__BLOCK ? length - at : BERTH__BLOCK;
    berth__gather(cls, &block, in->type, in->data, start + at * step, step, n);
    if (is_float)
      f = multiplies ? cumsum_multiply_f64(block.f, n, f, exclusive) : cumsum_sum_f64(block.f, n, f, exclusive);
    else
      i = multiplies ? cumsum_multiply_i64(block.i, n, i, exclusive) : sum_i64(block.i, n, i, exclusive);
    berth__scatter(cls, &block, out->type, out->data, start + at * step, step, n);
  }
}

static berth_status cumsum_kernel(const berth_op_call *call, berth_error *err) {
  bool is_operand = berth__call_has(call, BERTH__CUMSUM_AXIS_OPERAND);
  int64_t given =
      is_operand ? berth__load_i64(&call->in[BERTH__CUMSUM_AXIS_OPERAND], 0) : call->attrs[BERTH__CUMSUM_AXIS].i;
  uint32_t axis;
  BERTH__TRY(berth__want_axis(given, call->in[BERTH__CUMSUM_X].rank, &axis, err));
  berth__lines lines = berth__lines_of(&call->in[BERTH__CUMSUM_X], axis);
  int64_t lines_each = is_operand ? lines.outer * lines.inner : 1;
  for (int64_t line = call->begin * lines_each; line < call->end * lines_each && lines.length > 0; line++) {
    int64_t start = berth__line_start(&lines, line), step = lines.inner;
    if (call->attrs[BERTH__CUMSUM_REVERSE].i) {
      start += (lines.length - 1) * step;
      step = -step;
    }
    sum_line(call, start, step, lines.length);
  }
  return BERTH_OK;
}

static int64_t cumsum_items(const berth_op_call *call) {
  if (berth__call_has(call, BERTH__CUMSUM_AXIS_OPERAND)) return 1;
  berth__lines lines = berth__lines_of(&call->in[BERTH__CUMSUM_X], call->attrs[BERTH__CUMSUM_AXIS].i);
  return lines.outer * lines.inner;
}

const berth__family berth__family_cumsum = {.attrs = attrs_of_cumsum,
                                            .n_attrs = 3,
                                            .infer = infer_cumsum,
                                            .items = cumsum_items,
                                            .kernel = cumsum_kernel,
                                            .attr_of = {[BERTH__CUMSUM_AXIS_OPERAND] = BERTH__CUMSUM_AXIS + 1}};
