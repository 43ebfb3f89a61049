/* split: cuts an axis into parts, one output each. Without `parts` they are equal, except that the last one may be
 * shorter. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__SPLIT_AXIS] = {.name = "axis", .kind = BERTH_ATTR_INT},
    [BERTH__SPLIT_SIZES] = {.name = "parts", .kind = BERTH_ATTR_INTS},
};

static uint32_t split_axis_of(const berth_attr *attr, uint32_t rank) {
  return (uint32_t)(attr[BERTH__SPLIT_AXIS].i < 0 ? attr[BERTH__SPLIT_AXIS].i + rank : attr[BERTH__SPLIT_AXIS].i);
}

/* Divides by n >= 1 and rounds up. */
static int64_t split_ceil_div(int64_t x, int64_t n) { return x / n + (x % n != 0); }

/* The parts, one per output, as an attribute or as an operand; neither: equal parts. */
typedef struct parts {
  bool given, known;
  uint32_t count;
  const int64_t *ints; /* attribute */
  berth_tensor tensor; /* operand */
} parts;

static berth_status split_parts_of(const berth__infer *infer, parts *out, berth_error *err) {
  const berth_attr *attr = &infer->attrs[BERTH__SPLIT_SIZES];
  *out = (parts){.given = attr->count > 0, .known = true, .count = attr->count, .ints = attr->ints};
  if (!berth__infer_has(infer, 1)) return BERTH_OK;
  const berth_type type = infer->in_type[1];
  const berth__shape *shape = &infer->in_shape[1];
  if ((type != BERTH_I64 && type != BERTH_I32) || shape->rank != 1)
    return berth__fail(err, BERTH_INVALID, "operand 1, the parts, is %s of rank %" PRIu32 ", expected a list of i64",
                       berth_type_name(type), shape->rank);
  *out = (parts){.given = true, .tensor = berth__infer_tensor(infer, 1), .count = infer->n_out};
  out->known = out->tensor.data != NULL;
  if (berth__dim_is_fixed(shape->dim[0]))
    out->count = shape->dim[0] > UINT32_MAX ? UINT32_MAX : (uint32_t)shape->dim[0];
  return BERTH_OK;
}

static int64_t split_part_at(const parts *p, uint32_t k) {
  return p->ints ? p->ints[k] : berth__load_i64(&p->tensor, k);
}

static berth_status check_parts(const berth__infer *infer, const parts *p, int64_t extent, berth_error *err) {
  int64_t sum = 0;
  if (p->count != infer->n_out)
    return berth__fail(err, BERTH_INVALID, "`parts` has %" PRIu32 " entries for %" PRIu32 " outputs", p->count,
                       infer->n_out);
  for (uint32_t k = 0; p->known && k < p->count; k++) {
    if (split_part_at(p, k) < 0)
      return berth__fail(err, BERTH_INVALID, "part %" PRIu32 " is %" PRId64 ", and a part has 0 elements or more", k,
                         split_part_at(p, k));
    BERTH__TRY(berth__dim_add(sum, split_part_at(p, k), &sum, err));
  }
  if (p->known && berth__dim_is_fixed(extent) && sum != extent)
    return berth__fail(err, BERTH_INVALID, "the parts have %" PRId64 " elements together, but the axis has %" PRId64,
                       sum, extent);
  return BERTH_OK;
}

static berth_status equal_part(int64_t extent, uint32_t n, uint32_t k, int64_t *out, berth_error *err) {
  if (n == 1 || extent == BERTH__DIM_UNKNOWN) return *out = extent, BERTH_OK;
  if (!berth__dim_is_fixed(extent)) return *out = BERTH__DIM_UNKNOWN, BERTH_OK;
  const int64_t part = split_ceil_div(extent, n), last = extent - part * (n - 1);
  if (last < 0)
    return berth__fail(err, BERTH_INVALID,
                       "an axis of %" PRId64 " elements does not split into %" PRIu32 " parts of %" PRId64
                       "; give `parts`",
                       extent, n, part);
  return *out = k + 1 < n ? part : last, BERTH_OK;
}

static berth_status split_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  uint32_t axis;
  BERTH__TRY(berth__want_axis(infer->attrs[BERTH__SPLIT_AXIS].i, in->rank, &axis, err));
  parts p;
  BERTH__TRY(split_parts_of(infer, &p, err));
  if (p.given) BERTH__TRY(check_parts(infer, &p, in->dim[axis], err));
  for (uint32_t k = 0; k < infer->n_out; k++) {
    int64_t part = infer->wants_bounds ? in->dim[axis] : BERTH__DIM_UNKNOWN;
    if (p.given && p.known)
      part = split_part_at(&p, k);
    else if (!p.given && infer->wants_bounds)
      part = split_ceil_div(in->dim[axis], infer->n_out); /* the last part does not grow monotonically with the axis */
    else if (!p.given)
      BERTH__TRY(equal_part(in->dim[axis], infer->n_out, k, &part, err));
    infer->out_type[k] = infer->in_type[0];
    infer->out_shape[k] = *in;
    infer->out_shape[k].dim[axis] = part;
  }
  return BERTH_OK;
}

/* The start of part k on the axis. Without `parts` it may be unknown here, because the number of outputs is not known:
 * a part that could be a shorter last one is not made a view. */
static bool part_start(const berth_attr *list, int64_t extent, int64_t part, uint32_t k, int64_t *start) {
  *start = 0;
  if (list->count == 0) {
    const int64_t longer = split_ceil_div(extent, (int64_t)k + 1);
    if (part < longer && longer * k + part == extent) return false;
    *start = part * k;
    return true;
  }
  for (uint32_t before = 0; before < k; before++) *start += list->ints[before];
  return true;
}

static bool split_view(const berth_tensor *in, const berth_attr *attr, const berth__shape *shape, berth_type type,
                       uint32_t out, int64_t *offset, int64_t *stride) {
  (void)type;
  const uint32_t axis = split_axis_of(attr, in->rank);
  if (!part_start(&attr[BERTH__SPLIT_SIZES], in->dim[axis], shape->dim[axis], out, offset)) return false;
  if (shape->dim[axis] == 0) *offset = 0; /* empty: any position inside the operand */
  *offset *= in->stride[axis];
  memcpy(stride, in->stride, in->rank * sizeof *stride);
  return true;
}

/* Items are elements: those of the first part, then those of the second, ... */
static int64_t split_items(const berth_op_call *call) { return berth__count(&call->in[0]); }

static berth_status split_kernel(const berth_op_call *call, berth_error *err) {
  (void)err;
  const berth_tensor *in = &call->in[0];
  const uint32_t axis = split_axis_of(call->attrs, in->rank);
  const size_t size = berth_type_size(in->type);
  int64_t first = 0, start = 0; /* of the part: its first item, and its start on the axis */
  for (uint32_t k = 0; k < call->n_out && first < call->end; k++) {
    const berth_tensor *out = &call->out[k];
    const int64_t count = berth__count(out);
    berth__copy c = {.rank = in->rank, .to = out->data, .element = size};
    c.from = (const char *)in->data + start * in->stride[axis] * (int64_t)size;
    memcpy(c.dim, out->dim, sizeof c.dim);
    memcpy(c.from_stride, in->stride, sizeof c.from_stride);
    memcpy(c.to_stride, out->stride, sizeof c.to_stride);
    berth__copy_range(&c, call->begin > first ? call->begin - first : 0,
                      call->end - first < count ? call->end - first : count);
    first += count;
    start += out->dim[axis];
  }
  return BERTH_OK;
}

const berth__family berth__family_split = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = split_infer,
    .items = split_items,
    .kernel = split_kernel,
    .view = split_view,
    .valued = 1u << 1,
    .bounded = 1u << 1,
    .attr_of = {[1] = BERTH__SPLIT_SIZES + 1},
};
