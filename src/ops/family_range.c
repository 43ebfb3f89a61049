/* range: start, start + delta, ... before the limit. If only a run knows these, `most` is the number of planned
 * elements; without it, the largest possible limit determines it. */
#include <inttypes.h>
#include <math.h>

#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__RANGE_MOST] = {.name = "most", .kind = BERTH_ATTR_DIMS}};
#define MAX_COUNT ((int64_t)1 << 48)

static berth_status fail_delta(berth_error *err) { return berth__fail(err, BERTH_INVALID, "the delta is 0"); }

static berth_status range_fail_count(berth_error *err) {
  return berth__fail(err, BERTH_INVALID, "the range has more elements than memory can hold");
}

static berth_status count_floats(const berth_tensor *bound, int64_t *out, berth_error *err) {
  const double start = berth__load_f64(&bound[BERTH__RANGE_START], 0),
               limit = berth__load_f64(&bound[BERTH__RANGE_LIMIT], 0);
  const double delta = berth__load_f64(&bound[BERTH__RANGE_DELTA], 0);
  if (delta == 0) return fail_delta(err);
  const double count = ceil((limit - start) / delta);
  if (isnan(count) || count > (double)MAX_COUNT) return range_fail_count(err);
  *out = count > 0 ? (int64_t)count : 0;
  return BERTH_OK;
}

static berth_status count_ints(const berth_tensor *bound, int64_t *out, berth_error *err) {
  const int64_t start = berth__load_i64(&bound[BERTH__RANGE_START], 0),
                limit = berth__load_i64(&bound[BERTH__RANGE_LIMIT], 0);
  const int64_t delta = berth__load_i64(&bound[BERTH__RANGE_DELTA], 0);
  if (delta == 0) return fail_delta(err);
  *out = 0;
  if (delta > 0 ? limit <= start : limit >= start) return BERTH_OK;
  const uint64_t span = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
  const uint64_t step = delta > 0 ? (uint64_t)delta : -(uint64_t)delta;
  const uint64_t count = (span - 1) / step + 1;
  if (count > (uint64_t)MAX_COUNT) return range_fail_count(err);
  *out = (int64_t)count;
  return BERTH_OK;
}

/* An unknown limit may be replaced by its upper bound, as long as the range counts up. */
static bool is_bounded(const berth__infer *infer, berth_tensor *bound) {
  if (bound[BERTH__RANGE_START].data == NULL || bound[BERTH__RANGE_DELTA].data == NULL) return false;
  bound[BERTH__RANGE_LIMIT] = berth__infer_most(infer, BERTH__RANGE_LIMIT);
  return bound[BERTH__RANGE_LIMIT].data != NULL && berth__load_f64(&bound[BERTH__RANGE_DELTA], 0) > 0;
}

static berth_status range_count(const berth_tensor *bound, int64_t *out, berth_error *err) {
  return berth__type_is_float(bound[BERTH__RANGE_START].type) ? count_floats(bound, out, err)
                                                              : count_ints(bound, out, err);
}

static berth_status range_infer(berth__infer *infer, berth_error *err) {
  const berth_attr *most = &infer->attrs[BERTH__RANGE_MOST];
  berth_tensor bound[BERTH__RANGE_N_BOUNDS];
  bool known = true;
  BERTH__TRY(berth__want_numeric(infer, BERTH__RANGE_START, err));
  if (most->count > 1 || (most->count == 1 && most->dims[0].name == NULL && most->dims[0].extent < 0))
    return berth__fail(err, BERTH_INVALID, "`most` is one extent of 0 or more");
  for (uint32_t k = 0; k < BERTH__RANGE_N_BOUNDS; k++) {
    int64_t elements;
    BERTH__TRY(berth__want_same_type(infer, 0, k, err));
    if (berth__shape_count(&infer->in_shape[k], &elements) && elements != 1)
      return berth__fail(err, BERTH_INVALID, "operand %" PRIu32 " has more than one element, or none", k);
    bound[k] = berth__infer_tensor(infer, k);
    known = known && bound[k].data != NULL;
  }
  infer->out_type[0] = infer->in_type[0];
  infer->out_shape[0] = (berth__shape){.rank = 1, .dim = {BERTH__DIM_UNKNOWN}};
  int64_t *out = &infer->out_shape[0].dim[0];
  if (known) return range_count(bound, out, err);
  if (!infer->wants_bounds) return BERTH_OK;
  if (most->count == 1) return *out = infer->resolve(infer, &most->dims[0]), BERTH_OK;
  return is_bounded(infer, bound) ? range_count(bound, out, err) : BERTH_OK;
}

static int64_t range_items(const berth_op_call *call) { return call->out[0].dim[0]; }

static berth_status range_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *out = &call->out[0];
  if (berth__type_is_float(out->type)) {
    const double start = berth__load_f64(&call->in[BERTH__RANGE_START], 0),
                 delta = berth__load_f64(&call->in[BERTH__RANGE_DELTA], 0);
    for (int64_t i = call->begin; i < call->end; i++) berth__store_f64(out, i, start + (double)i * delta);
    return BERTH_OK;
  }
  const uint64_t start = (uint64_t)berth__load_i64(&call->in[BERTH__RANGE_START], 0);
  const uint64_t delta = (uint64_t)berth__load_i64(&call->in[BERTH__RANGE_DELTA], 0);
  for (int64_t i = call->begin; i < call->end; i++) berth__store_i64(out, i, (int64_t)(start + (uint64_t)i * delta));
  return BERTH_OK;
}

const berth__family berth__family_range = {
    .attrs = attrs,
    .n_attrs = 1,
    .infer = range_infer,
    .items = range_items,
    .kernel = range_kernel,
    .valued = 1u << BERTH__RANGE_START | 1u << BERTH__RANGE_LIMIT | 1u << BERTH__RANGE_DELTA,
    .bounded = 1u << BERTH__RANGE_START | 1u << BERTH__RANGE_LIMIT | 1u << BERTH__RANGE_DELTA,
    .bound_attr = BERTH__RANGE_MOST + 1,
};
