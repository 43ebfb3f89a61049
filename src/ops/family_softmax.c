/* softmax and log_softmax along an axis. An item is one line. The maximum is subtracted first, so nothing overflows; a
 * line of only -inf gives NaN.
 *
 * A line is processed in its class: directly in the output if that is contiguous f32 or f64, otherwise in the call's
 * scratch. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/exp.h"

static const berth_attr attrs_of_softmax[] = {
    [BERTH__SOFTMAX_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT, .i = -1}};

static berth_status infer_softmax(berth__infer *infer, berth_error *err) {
  uint32_t axis;
  BERTH__TRY(berth__want_float(infer, 0, err));
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__SOFTMAX_AXIS].i, infer->in_shape[0].rank, &axis, err));
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

/* Maximum and sum use several lanes, which do not wait for each other. x and y may be the same line. */
#define LANES 8
#define DEFINE_LINES(suffix, c_type, exp_fn)                                             \
  static c_type largest_##suffix(const c_type *x, int64_t count) {                       \
    c_type lane[LANES];                                                                  \
    int64_t i = 0;                                                                       \
    for (int k = 0; k < LANES; k++) lane[k] = -(c_type)INFINITY;                         \
    for (; i + LANES <= count; i += LANES)                                               \
      for (int k = 0; k < LANES; k++) lane[k] = x[i + k] > lane[k] ? x[i + k] : lane[k]; \
    for (; i < count; i++) lane[0] = x[i] > lane[0] ? x[i] : lane[0];                    \
    for (int k = 1; k < LANES; k++) lane[0] = lane[k] > lane[0] ? lane[k] : lane[0];     \
    return lane[0];                                                                      \
  }                                                                                      \
  static double sum_##suffix(const c_type *x, int64_t count) {                           \
    double lane[LANES] = {0};                                                            \
    int64_t i = 0;                                                                       \
    for (; i + LANES <= count; i += LANES)                                               \
      for (int k = 0; k < LANES; k++) lane[k] += (double)x[i + k];                       \
    for (; i < count; i++) lane[0] += (double)x[i];                                      \
    for (int k = 1; k < LANES; k++) lane[0] += lane[k];                                  \
    return lane[0];                                                                      \
  }                                                                                      \
  static void softmax_##suffix(c_type *y, const c_type *x, int64_t count) {              \
    const c_type most = largest_##suffix(x, count);                                      \
    for (int64_t i = 0; i < count; i++) y[i] = exp_fn(x[i] - most);                      \
    const c_type scale = (c_type)(1.0 / sum_##suffix(y, count));                         \
    for (int64_t i = 0; i < count; i++) y[i] *= scale;                                   \
  }                                                                                      \
  static void log_softmax_##suffix(c_type *y, const c_type *x, int64_t count) {          \
    const c_type most = largest_##suffix(x, count);                                      \
    c_type block[BERTH__BLOCK];                                                          \
    double sum = 0;                                                                      \
    for (int64_t at = 0; at < count; at += BERTH__BLOCK) {                               \
      const int64_t n = count - at < BERTH__BLOCK ? count - at : BERTH__BLOCK;           \
      for (int64_t i = 0; i < n; i++) block[i] = exp_fn(x[at + i] - most);               \
      sum += sum_##suffix(block, n);                                                     \
    }                                                                                    \
    const c_type log_sum = (c_type)log(sum);                                             \
    for (int64_t i = 0; i < count; i++) y[i] = x[i] - most - log_sum;                    \
  }

DEFINE_LINES(f32, float, berth__exp_f32)
DEFINE_LINES(f64, double, exp)

static void softmax_line(bool logs, berth__class cls, void *y, const void *x, int64_t count) {
  if (cls == BERTH__CLASS_F64)
    (logs ? log_softmax_f64 : softmax_f64)(y, x, count);
  else
    (logs ? log_softmax_f32 : softmax_f32)(y, x, count);
}

static bool works_in_output(const berth_tensor *in, const berth__lines *lines) {
  return lines->inner == 1 && berth__is_class_type(in->type);
}

static berth_status softmax_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[0], *out = &call->out[0];
  berth__lines lines = berth__lines_of(in, call->attrs[BERTH__SOFTMAX_AXIS].i);
  berth__class cls = berth__class_of(in->type);
  bool logs = berth__call_code(call) == BERTH__OP_log_softmax;
  size_t size = berth_type_size(in->type);
  (void)err;
  for (int64_t line = call->begin; line < call->end && lines.length > 0; line++) {
    int64_t start = berth__line_start(&lines, line);
    if (works_in_output(in, &lines)) {
      softmax_line(logs, cls, (char *)out->data + start * (int64_t)size, (const char *)in->data + start * (int64_t)size,
                   lines.length);
    } else {
      berth__gather(cls, call->scratch, in->type, in->data, start, lines.inner, lines.length);
      softmax_line(logs, cls, call->scratch, call->scratch, lines.length);
      berth__scatter(cls, call->scratch, out->type, out->data, start, lines.inner, lines.length);
    }
  }
  return BERTH_OK;
}

static int64_t softmax_items(const berth_op_call *call) {
  berth__lines lines = berth__lines_of(&call->in[0], call->attrs[BERTH__SOFTMAX_AXIS].i);
  return lines.outer * lines.inner;
}

static uint64_t softmax_scratch(const berth_op_call *call) {
  const berth_tensor *in = &call->in[0];
  berth__lines lines = berth__lines_of(in, call->attrs[BERTH__SOFTMAX_AXIS].i);
  if (works_in_output(in, &lines)) return 0;
  return (uint64_t)lines.length * berth_type_size(berth__class_type(berth__class_of(in->type)));
}

const berth__family berth__family_softmax = {.attrs = attrs_of_softmax,
                                             .n_attrs = 1,
                                             .infer = infer_softmax,
                                             .items = softmax_items,
                                             .scratch = softmax_scratch,
                                             .kernel = softmax_kernel};
