/* quantize: x / scale rounded to nearest, ties to even, plus the zero point, clamped to the range of the type `to`.
 * dequantize: (x - zero point) * scale, with the difference in the scale's type. Scale and zero point broadcast to
 * x. */
#include <inttypes.h>
#include <math.h>

#include "ops/elementwise.h"
#include "ops/operand.h"

static const berth_attr attrs[] = {[BERTH__QUANTIZE_TO] = {.name = "to", .kind = BERTH_ATTR_STRING, .s = "u8"}};

static berth_status want_broadcast(const berth__infer *infer, uint32_t operand, berth_error *err) {
  const berth__shape *x = &infer->in_shape[BERTH__QUANTIZE_X];
  char shape[BERTH__SHAPE_TEXT], whole[BERTH__SHAPE_TEXT];
  berth__shape result;
  BERTH__TRY(berth__broadcast(x, &infer->in_shape[operand], &result, err));
  bool fits = result.rank == x->rank;
  for (uint32_t axis = 0; fits && axis < x->rank; axis++)
    fits = !berth__dim_is_fixed(x->dim[axis]) || !berth__dim_is_fixed(result.dim[axis]) ||
           x->dim[axis] == result.dim[axis];
  if (fits) return BERTH_OK;
  return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has shape %s, which does not broadcast to %s", operand,
                     berth__shape_text(&infer->in_shape[operand], shape), berth__shape_text(x, whole));
}

static berth_status quantize_infer(berth__infer *infer, berth_error *err) {
  const bool is_quantize = infer->op->code == BERTH__OP_quantize;
  const berth_type to = berth_type_from_name(infer->attrs[BERTH__QUANTIZE_TO].s);
  BERTH__TRY(berth__want_numeric(infer, BERTH__QUANTIZE_X, err));
  BERTH__TRY(berth__want_float(infer, BERTH__QUANTIZE_SCALE, err));
  BERTH__TRY(want_broadcast(infer, BERTH__QUANTIZE_SCALE, err));
  if (is_quantize && !berth__type_is_int(to))
    return berth__fail(err, BERTH_INVALID, "attribute 'to' is '%s', expected the name of an integer type",
                       infer->attrs[BERTH__QUANTIZE_TO].s);
  infer->out_type[0] = is_quantize ? to : infer->in_type[BERTH__QUANTIZE_SCALE];
  infer->out_shape[0] = infer->in_shape[BERTH__QUANTIZE_X];
  if (!berth__infer_has(infer, BERTH__QUANTIZE_ZERO_POINT)) return BERTH_OK;
  BERTH__TRY(want_broadcast(infer, BERTH__QUANTIZE_ZERO_POINT, err));
  return berth__want_type(infer, BERTH__QUANTIZE_ZERO_POINT, is_quantize ? to : infer->in_type[BERTH__QUANTIZE_X], err);
}

typedef struct blocks {
  double x[BERTH__BLOCK], scale[BERTH__BLOCK], zero[BERTH__BLOCK];
} blocks;

/* The quotient of two f32, computed in f64 and rounded to f32, is the f32 quotient, which is rounded further. */
static void quantize_block(blocks *b, bool is_f64, int64_t n) {
  if (is_f64)
    for (int64_t i = 0; i < n; i++) b->x[i] = rint(b->x[i] / b->scale[i]) + b->zero[i];
  else
    for (int64_t i = 0; i < n; i++) b->x[i] = rint((double)(float)(b->x[i] / b->scale[i])) + b->zero[i];
}

static void dequantize_block(blocks *b, bool is_f64, int64_t n) {
  if (is_f64)
    for (int64_t i = 0; i < n; i++) b->x[i] = (b->x[i] - b->zero[i]) * b->scale[i];
  else
    for (int64_t i = 0; i < n; i++) b->x[i] = (double)(float)(b->x[i] - b->zero[i]) * b->scale[i];
}

static void quantize_load(const berth_op_call *call, const berth__runs *runs, uint32_t operand, int64_t at, int64_t n,
                          double *out) {
  const int64_t step = runs->step[operand + 1];
  berth__gather_f64(out, call->in[operand].type, call->in[operand].data, runs->index[operand + 1] + at * step, step, n);
}

static void quantize_run_blocks(const berth_op_call *call, const berth__runs *runs, blocks *b) {
  const berth_tensor *out = &call->out[0];
  for (int64_t at = 0; at < runs->count; at += BERTH__BLOCK) {
    const int64_t n = runs->count - at < BERTH__BLOCK ? runs->count - at : BERTH__BLOCK;
    quantize_load(call, runs, BERTH__QUANTIZE_X, at, n, b->x);
    for (uint32_t operand = BERTH__QUANTIZE_SCALE; operand < call->n_in; operand++)
      if (at == 0 || runs->step[operand + 1] != 0) /* a repeated element fills its block once per run */
        quantize_load(call, runs, operand, at, n, operand == BERTH__QUANTIZE_SCALE ? b->scale : b->zero);
    const bool is_f64 = call->in[BERTH__QUANTIZE_SCALE].type == BERTH_F64;
    (berth__call_code(call) == BERTH__OP_quantize ? quantize_block : dequantize_block)(b, is_f64, n);
    berth__scatter(BERTH__CLASS_F64, b->x, out->type, out->data, runs->index[0] + at * runs->step[0], runs->step[0], n);
  }
}

static berth_status quantize_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  berth__runs runs;
  blocks b;
  memset(b.zero, 0, sizeof b.zero);
  berth__runs_of_call(&runs, call);
  while (berth__runs_next(&runs)) quantize_run_blocks(call, &runs, &b);
  return BERTH_OK;
}

const berth__family berth__family_quantize = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = quantize_infer,
    .items = berth__items_elements,
    .kernel = quantize_kernel,
};
