/* clamp: min(max(x, min), max). NaN stays; if min is above max the result is max, as in numpy. */
#include <math.h>

#include "ops/elementwise.h"

static const berth_attr attrs_of_clamp[] = {
    [BERTH__CLAMP_MIN] = {.name = "min", .kind = BERTH_ATTR_FLOAT, .f = -INFINITY},
    [BERTH__CLAMP_MAX] = {.name = "max", .kind = BERTH_ATTR_FLOAT, .f = INFINITY}};

typedef struct bounds {
  double low, high;
  int64_t int_low, int_high;
} bounds;

static berth_status infer_clamp(berth__infer *infer, berth_error *err) {
  BERTH__TRY(berth__want_numeric(infer, 0, err));
  for (uint32_t i = BERTH__CLAMP_MIN; i <= BERTH__CLAMP_MAX; i++)
    if (isnan(infer->attrs[i].f))
      return berth__fail(err, BERTH_INVALID, "attribute '%s' is NaN, expected a number", infer->attrs[i].name);
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

static void clamp_f32(void *out, const void *const *in, int64_t count, const void *state) {
  const bounds *b = state;
  const float low = (float)b->low, high = (float)b->high, *a = in[0];
  float *restrict o = out;
  for (int64_t i = 0; i < count; i++) {
    float x = a[i] < low ? low : a[i];
    o[i] = x > high ? high : x;
  }
}

static void clamp_f64(void *out, const void *const *in, int64_t count, const void *state) {
  const bounds *b = state;
  const double *a = in[0];
  double *restrict o = out;
  for (int64_t i = 0; i < count; i++) {
    double x = a[i] < b->low ? b->low : a[i];
    o[i] = x > b->high ? b->high : x;
  }
}

static void clamp_i64(void *out, const void *const *in, int64_t count, const void *state) {
  const bounds *b = state;
  const int64_t *a = in[0];
  int64_t *restrict o = out;
  for (int64_t i = 0; i < count; i++) {
    int64_t x = a[i] < b->int_low ? b->int_low : a[i];
    o[i] = x > b->int_high ? b->int_high : x;
  }
}

/* A bound as an integer of the type: the nearest integer inside the bound, or the type's own limit beyond it. */
static int64_t int_bound(double bound, int64_t low, int64_t high) {
  if (bound >= (double)high) return high; /* for i64, (double)high is 2^63 */
  if (bound <= (double)low) return low;
  return (int64_t)bound;
}

static berth_status clamp_kernel(const berth_op_call *call, berth_error *err) {
  static const berth__block_fn of[] = {clamp_f32, clamp_f64, clamp_i64};
  berth__class cls = berth__class_of(call->in[0].type);
  int64_t low, high;
  (void)err;
  berth__int_limits(call->in[0].type, &low, &high);
  bounds b = {.low = call->attrs[BERTH__CLAMP_MIN].f, .high = call->attrs[BERTH__CLAMP_MAX].f};
  b.int_low = int_bound(ceil(b.low), low, high);
  b.int_high = int_bound(floor(b.high), low, high);
  berth__map_blocks(call, cls, cls, of[cls], &b);
  return BERTH_OK;
}

const berth__family berth__family_clamp = {.attrs = attrs_of_clamp,
                                           .n_attrs = 2,
                                           .infer = infer_clamp,
                                           .items = berth__items_elements,
                                           .kernel = clamp_kernel};
