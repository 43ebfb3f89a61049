/* narrow: a slice with steps, with numpy's meaning of negative and of far-out bounds. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/registry.h"

enum {
  AXES,
  STARTS,
  ENDS,
  STEPS
};
static const berth_attr attrs[] = {
    {.name = "axes", .kind = BERTH_ATTR_INTS}, /* empty: the first ones */
    {.name = "starts", .kind = BERTH_ATTR_INTS},
    {.name = "ends", .kind = BERTH_ATTR_INTS},
    {.name = "steps", .kind = BERTH_ATTR_INTS}, /* empty: 1 */
};

typedef struct slice {
  int64_t start, step, count;
} slice;

static int64_t clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The elements start, start + step, ... before `end` of an axis. */
static slice cut(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  slice s = {.step = step};
  if (step > 0) {
    s.start = clamp(start, 0, extent);
    const int64_t span = clamp(end, 0, extent) - s.start;
    s.count = span <= 0 ? 0 : (span - 1) / step + 1;
  } else {
    s.start = clamp(start, -1, extent - 1);
    const int64_t span = s.start - clamp(end, -1, extent - 1);
    s.count = span <= 0 ? 0 : (span - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  }
  return s;
}

static int64_t step_of(const berth_attr *attr, uint32_t k) { return attr[STEPS].count == 0 ? 1 : attr[STEPS].ints[k]; }

/* Where slice k of the lists goes; the axes were checked by inference. */
static uint32_t axis_of(const berth_attr *attr, uint32_t rank, uint32_t k) {
  if (attr[AXES].count == 0) return k;
  const int64_t axis = attr[AXES].ints[k];
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static berth_status check_lists(const berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  const uint32_t n = attr[STARTS].count;
  const bool equal = attr[ENDS].count == n && (attr[AXES].count == n || attr[AXES].count == 0) &&
                     (attr[STEPS].count == n || attr[STEPS].count == 0);
  if (!equal)
    return berth__fail(err, BERTH_INVALID,
                       "`starts` has %" PRIu32 " entries, `ends` %" PRIu32 ", `axes` %" PRIu32 " and `steps` %" PRIu32
                       "; their lengths must be equal",
                       n, attr[ENDS].count, attr[AXES].count, attr[STEPS].count);
  if (n > infer->in_shape[0].rank)
    return berth__fail(err, BERTH_INVALID, "%" PRIu32 " slices for an operand of rank %" PRIu32, n,
                       infer->in_shape[0].rank);
  for (uint32_t k = 0; k < attr[STEPS].count; k++)
    if (attr[STEPS].ints[k] == 0) return berth__fail(err, BERTH_INVALID, "step %" PRIu32 " is 0", k);
  return BERTH_OK;
}

static berth_status infer(berth__infer *infer, berth_error *err) {
  const berth_attr *attr = infer->attrs;
  berth__shape *out = &infer->out_shape[0];
  uint32_t axes;
  BERTH__TRY(check_lists(infer, err));
  BERTH__TRY(berth__want_axes(&attr[AXES], infer->in_shape[0].rank, &axes, err));
  *out = infer->in_shape[0];
  for (uint32_t k = 0; k < attr[STARTS].count; k++) {
    int64_t *dim = &out->dim[axis_of(attr, out->rank, k)];
    const int64_t start = attr[STARTS].ints[k], end = attr[ENDS].ints[k], step = step_of(attr, k);
    const bool whole = start == 0 && end == INT64_MAX && step == 1;
    if (berth__dim_is_fixed(*dim))
      *dim = cut(*dim, start, end, step).count;
    else if (!whole)
      *dim = BERTH__DIM_UNKNOWN;
  }
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

static void place(const berth_tensor *in, const berth_attr *attr, int64_t *offset, int64_t *stride) {
  *offset = 0;
  memcpy(stride, in->stride, in->rank * sizeof *stride);
  for (uint32_t k = 0; k < attr[STARTS].count; k++) {
    const uint32_t axis = axis_of(attr, in->rank, k);
    const slice s = cut(in->dim[axis], attr[STARTS].ints[k], attr[ENDS].ints[k], step_of(attr, k));
    if (s.count == 0) { /* nothing to see: stay inside the operand */
      *offset = 0;
      memcpy(stride, in->stride, in->rank * sizeof *stride);
      return;
    }
    *offset += s.start * in->stride[axis];
    stride[axis] = s.count == 1 ? in->stride[axis] : s.step * in->stride[axis];
  }
}

static bool view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                 uint32_t out, int64_t *offset, int64_t *stride) {
  (void)type;
  (void)out;
  place(in, attr, offset, stride);
  for (uint32_t axis = 0; axis < in->rank; axis++)
    if (stride[axis] < 0 && shape->dim[axis] > 1) return false; /* kernels walk forwards */
  return true;
}

static berth_status kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t stride[BERTH_MAX_RANK], offset;
  place(&call->in[0], call->attrs, &offset, stride);
  berth__copy_view(call, stride, offset);
  return BERTH_OK;
}

const berth__family berth__family_narrow = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << STARTS | 1u << ENDS,
    .infer = infer,
    .items = berth__copy_items,
    .kernel = kernel,
    .view = view,
};
