#include "ops/scatter.h"

#include <math.h>

#include "ops/gather.h"
#include "ops/line.h"

berth__reduction berth__reduction_of(const char *name) {
  static const char *const names[BERTH__REDUCTION_COUNT] = {"none", "add", "mul", "max", "min"};
  uint32_t r = 0;
  while (r < BERTH__REDUCTION_COUNT && strcmp(name, names[r]) != 0) r++;
  return (berth__reduction)r;
}

berth_status berth__want_updates(const berth__infer *infer, const char *reduction, berth_error *err) {
  const berth__reduction r = berth__reduction_of(reduction);
  if (r == BERTH__REDUCTION_COUNT)
    return berth__fail(err, BERTH_INVALID, "reduction \"%s\" is not one of none, add, mul, max and min", reduction);
  BERTH__TRY(berth__want_index_type(infer, 1, err));
  BERTH__TRY(berth__want_same_type(infer, 0, 2, err));
  return r != BERTH__REDUCTION_NONE ? berth__want_numeric(infer, 0, err) : BERTH_OK;
}

static double combine_f64(berth__reduction r, double a, double b) {
  switch (r) {
    case BERTH__REDUCTION_ADD: return a + b;
    case BERTH__REDUCTION_MUL: return a * b;
    case BERTH__REDUCTION_MAX: return isnan(a) || a > b ? a : b; /* NaN is propagated */
    default: return isnan(a) || a < b ? a : b;
  }
}

static int64_t combine_i64(berth__reduction r, int64_t a, int64_t b) {
  switch (r) {
    case BERTH__REDUCTION_ADD: return (int64_t)((uint64_t)a + (uint64_t)b);
    case BERTH__REDUCTION_MUL: return (int64_t)((uint64_t)a * (uint64_t)b);
    case BERTH__REDUCTION_MAX: return a > b ? a : b;
    default: return a < b ? a : b;
  }
}

void berth__put_update(berth__reduction r, const berth_tensor *out, int64_t to, const berth_tensor *updates,
                       int64_t from) {
  const size_t size = berth_type_size(out->type);
  if (r == BERTH__REDUCTION_NONE)
    memcpy(berth__element(out->data, to, size), berth__element(updates->data, from, size), size);
  else if (berth__type_is_float(out->type))
    berth__store_f64(out, to, combine_f64(r, berth__load_f64(out, to), berth__load_f64(updates, from)));
  else
    berth__store_i64(out, to, combine_i64(r, berth__load_i64(out, to), berth__load_i64(updates, from)));
}
