/* shape and size: a tensor's extents as i64. Known as soon as dimensions are bound, so they run only if extents depend
 * on data. */
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__SHAPE_START] = {.name = "start", .kind = BERTH_ATTR_INT},
                                   [BERTH__SHAPE_END] = {.name = "end", .kind = BERTH_ATTR_INT, .i = INT64_MAX}};

static void shape_range_of(const berth_attr *given, uint32_t rank, int64_t *first, int64_t *last) {
  int64_t r = rank;
  *first = given[0].i < 0 ? given[0].i + r : given[0].i;
  *last = given[1].i < 0 ? given[1].i + r : given[1].i;
  if (*first < 0) *first = 0;
  if (*last > r) *last = r;
  if (*last < *first) *last = *first;
}

static berth_status shape_infer(berth__infer *infer, berth_error *err) {
  (void)err;
  int64_t first, last;
  shape_range_of(infer->attrs, infer->in_shape[0].rank, &first, &last);
  infer->out_type[0] = BERTH_I64;
  infer->out_shape[0] = (berth__shape){.rank = 0};
  if (infer->op->code == BERTH__OP_size) return BERTH_OK;
  infer->out_shape[0].rank = 1;
  infer->out_shape[0].dim[0] = last - first;
  return BERTH_OK;
}

static berth_status shape_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t first, last, *out = call->out[0].data;
  if (berth__call_code(call) == BERTH__OP_size) {
    *out = berth__count(&call->in[0]);
    return BERTH_OK;
  }
  shape_range_of(call->attrs, call->in[0].rank, &first, &last);
  for (int64_t i = first; i < last; i++) out[i - first] = call->in[0].dim[i];
  return BERTH_OK;
}

const berth__family berth__family_shape = {.attrs = attrs, .n_attrs = 2, .infer = shape_infer, .kernel = shape_kernel};
