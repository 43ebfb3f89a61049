/* narrow: a slice with steps. Negative bounds, or bounds out of range, have numpy's meaning, except a start before the
 * axis with a negative step: that means the first element, as in ONNX. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__NARROW_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS}, /* empty: the leading axes */
    [BERTH__NARROW_STARTS] = {.name = "starts", .kind = BERTH_ATTR_INTS},
    [BERTH__NARROW_ENDS] = {.name = "ends", .kind = BERTH_ATTR_INTS},
    [BERTH__NARROW_STEPS] = {.name = "steps", .kind = BERTH_ATTR_INTS}, /* empty: 1 */
};
static const uint32_t operand_of[BERTH__NARROW_N_LISTS] = {
    [BERTH__NARROW_STARTS] = 1, [BERTH__NARROW_ENDS] = 2, [BERTH__NARROW_AXES] = 3, [BERTH__NARROW_STEPS] = 4};

/* The lists; slice k belongs to axis_of(k). */
typedef struct slices {
  berth__list list[BERTH__NARROW_N_LISTS];
} slices;

typedef struct slice {
  int64_t start, step, count;
} slice;

static int64_t narrow_clamp(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The elements start, start + step, ... before `end` of an axis. */
static slice narrow_cut(int64_t extent, int64_t start, int64_t end, int64_t step) {
  if (start < 0) start += extent;
  if (end < 0) end += extent;
  slice s = {.step = step};
  if (extent == 0) return s;
  if (step > 0) {
    s.start = narrow_clamp(start, 0, extent);
    const int64_t span = narrow_clamp(end, 0, extent) - s.start;
    s.count = span <= 0 ? 0 : (span - 1) / step + 1;
  } else {
    s.start = narrow_clamp(start, 0, extent - 1); /* as in ONNX; numpy would return nothing */
    const int64_t span = s.start - narrow_clamp(end, -1, extent - 1);
    s.count = span <= 0 ? 0 : (span - 1) / (step == INT64_MIN ? INT64_MAX : -step) + 1;
  }
  return s;
}

static int64_t narrow_step_of(const slices *s, uint32_t k) {
  return s->list[BERTH__NARROW_STEPS].given ? s->list[BERTH__NARROW_STEPS].at[k] : 1;
}

/* The axis of slice k; inference has checked the axes. */
static uint32_t narrow_axis_of(const slices *s, uint32_t rank, uint32_t k) {
  if (!s->list[BERTH__NARROW_AXES].given) return k;
  const int64_t axis = s->list[BERTH__NARROW_AXES].at[k];
  return (uint32_t)(axis < 0 ? axis + rank : axis);
}

static slice narrow_slice_of(const slices *s, uint32_t k, int64_t extent) {
  return narrow_cut(extent, s->list[BERTH__NARROW_STARTS].at[k], s->list[BERTH__NARROW_ENDS].at[k],
                    narrow_step_of(s, k));
}

static berth_status check_lists(const slices *s, uint32_t rank, berth_error *err) {
  const berth__list *list = s->list;
  const uint32_t n = list[BERTH__NARROW_STARTS].count;
  const bool equal = list[BERTH__NARROW_ENDS].count == n &&
                     (list[BERTH__NARROW_AXES].count == n || !list[BERTH__NARROW_AXES].given) &&
                     (list[BERTH__NARROW_STEPS].count == n || !list[BERTH__NARROW_STEPS].given);
  if (!equal)
    return berth__fail(err, BERTH_INVALID,
                       "`starts` has %" PRIu32 " entries, `ends` %" PRIu32 ", `axes` %" PRIu32 " and `steps` %" PRIu32
                       "; their lengths must be equal",
                       n, list[BERTH__NARROW_ENDS].count, list[BERTH__NARROW_AXES].count,
                       list[BERTH__NARROW_STEPS].count);
  if (n > rank) return berth__fail(err, BERTH_INVALID, "%" PRIu32 " slices for an operand of rank %" PRIu32, n, rank);
  for (uint32_t k = 0; list[BERTH__NARROW_STEPS].known && k < list[BERTH__NARROW_STEPS].count; k++)
    if (list[BERTH__NARROW_STEPS].at[k] == 0) return berth__fail(err, BERTH_INVALID, "step %" PRIu32 " is 0", k);
  return BERTH_OK;
}

static void narrow_axis(const slices *s, uint32_t k, int64_t *dim) {
  const bool known =
      s->list[BERTH__NARROW_STARTS].known && s->list[BERTH__NARROW_ENDS].known && s->list[BERTH__NARROW_STEPS].known;
  const bool whole = known && s->list[BERTH__NARROW_STARTS].at[k] == 0 &&
                     s->list[BERTH__NARROW_ENDS].at[k] == INT64_MAX && narrow_step_of(s, k) == 1;
  if (known && berth__dim_is_fixed(*dim))
    *dim = narrow_slice_of(s, k, *dim).count;
  else if (!whole)
    *dim = BERTH__DIM_UNKNOWN;
}

/* Positive steps up to ends of which only upper bounds are known: larger ends mean longer slices. */
static bool bound_ends(const berth__infer *infer, slices *s) {
  if (!s->list[BERTH__NARROW_STARTS].known || !s->list[BERTH__NARROW_AXES].known || !s->list[BERTH__NARROW_STEPS].known)
    return false;
  for (uint32_t k = 0; k < s->list[BERTH__NARROW_STARTS].count; k++)
    if (narrow_step_of(s, k) < 0) return false;
  return berth__infer_naturals(infer, operand_of[BERTH__NARROW_ENDS], &s->list[BERTH__NARROW_ENDS]);
}

static berth_status narrow_infer(berth__infer *infer, berth_error *err) {
  berth__shape *out = &infer->out_shape[0];
  slices s;
  uint32_t axes;
  *out = infer->in_shape[0];
  infer->out_type[0] = infer->in_type[0];
  bool all_known = true;
  for (uint32_t i = 0; i < BERTH__NARROW_N_LISTS; i++) {
    BERTH__TRY(berth__infer_list(infer, i, operand_of[i], &s.list[i], err));
    all_known = all_known && s.list[i].known;
  }
  BERTH__TRY(check_lists(&s, out->rank, err));
  BERTH__TRY(berth__list_axes(&s.list[BERTH__NARROW_AXES], out->rank, &axes, err));
  if (infer->wants_bounds && !all_known && !bound_ends(infer, &s)) return BERTH_OK; /* no slice outgrows its axis */
  if (!s.list[BERTH__NARROW_AXES].known) {                                          /* any axis may be sliced */
    for (uint32_t axis = 0; axis < out->rank; axis++) out->dim[axis] = BERTH__DIM_UNKNOWN;
    return BERTH_OK;
  }
  for (uint32_t k = 0; k < s.list[BERTH__NARROW_STARTS].count; k++)
    narrow_axis(&s, k, &out->dim[narrow_axis_of(&s, out->rank, k)]);
  return BERTH_OK;
}

static void narrow_place(const berth_tensor *in, const slices *lists, int64_t *offset, int64_t *stride) {
  *offset = 0;
  memcpy(stride, in->stride, in->rank * sizeof *stride);
  for (uint32_t k = 0; k < lists->list[BERTH__NARROW_STARTS].count; k++) {
    const uint32_t axis = narrow_axis_of(lists, in->rank, k);
    const slice s = narrow_slice_of(lists, k, in->dim[axis]);
    if (s.count == 0) { /* empty: any position inside the operand */
      *offset = 0;
      memcpy(stride, in->stride, in->rank * sizeof *stride);
      return;
    }
    *offset += s.start * in->stride[axis];
    stride[axis] = s.count == 1 ? in->stride[axis] : s.step * in->stride[axis];
  }
}

void berth__narrow_shows(const berth_tensor *in, const berth_attr *attr, int64_t *offset, int64_t *stride) {
  slices s;
  for (uint32_t i = 0; i < BERTH__NARROW_N_LISTS; i++) berth__attr_list(&attr[i], &s.list[i]);
  narrow_place(in, &s, offset, stride);
}

static bool narrow_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                        uint32_t out, int64_t *offset, int64_t *stride) {
  (void)type;
  (void)out;
  berth__narrow_shows(in, attr, offset, stride);
  for (uint32_t axis = 0; axis < in->rank; axis++)
    if (stride[axis] < 0 && shape->dim[axis] > 1) return false; /* kernels need non-negative strides */
  return true;
}

static berth_status narrow_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  int64_t stride[BERTH_MAX_RANK], offset;
  slices s;
  for (uint32_t i = 0; i < BERTH__NARROW_N_LISTS; i++) berth__call_list(call, i, operand_of[i], &s.list[i]);
  narrow_place(&call->in[0], &s, &offset, stride);
  berth__copy_view(call, stride, offset);
  return BERTH_OK;
}

const berth__family berth__family_narrow = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = narrow_infer,
    .items = berth__copy_items,
    .kernel = narrow_kernel,
    .view = narrow_view,
    .valued = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
    .bounded = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4,
    .attr_of = {[1] = BERTH__NARROW_STARTS + 1,
                [2] = BERTH__NARROW_ENDS + 1,
                [3] = BERTH__NARROW_AXES + 1,
                [4] = BERTH__NARROW_STEPS + 1},
};
