/* max_unpool: x [N, C, spatial...] and its indices from max_pool; every element goes back to its index, and everything
 * else is 0. */
#include <inttypes.h>

#include "ops/line.h"
#include "ops/operand.h"
#include "ops/registry.h"
#include "ops/window.h"

static const berth_attr attrs[] = {
    [BERTH__MAX_UNPOOL_KERNEL] = {.name = "kernel", .kind = BERTH_ATTR_INTS},
    [BERTH__MAX_UNPOOL_STRIDES] = {.name = "strides", .kind = BERTH_ATTR_INTS},
    [BERTH__MAX_UNPOOL_PADS] = {.name = "pads", .kind = BERTH_ATTR_INTS},
};

/* The shape before pooling: (in - 1) * stride + kernel - pads. The indices refer to this shape, even if another one is
 * requested. */
static berth_status pooled_extent(const berth_attr *attr, uint32_t spatial, uint32_t axis, int64_t in, int64_t *out,
                                  berth_error *err) {
  const int64_t stride = attr[BERTH__MAX_UNPOOL_STRIDES].count != 0 ? attr[BERTH__MAX_UNPOOL_STRIDES].ints[axis] : 1;
  int64_t padding = 0;
  *out = BERTH__DIM_UNKNOWN;
  if (!berth__dim_is_fixed(in)) return BERTH_OK;
  if (attr[BERTH__MAX_UNPOOL_PADS].count != 0)
    BERTH__TRY(berth__dim_add(attr[BERTH__MAX_UNPOOL_PADS].ints[axis],
                              attr[BERTH__MAX_UNPOOL_PADS].ints[spatial + axis], &padding, err));
  BERTH__TRY(berth__dim_mul(in > 0 ? in - 1 : 0, stride, out, err));
  BERTH__TRY(berth__dim_add(*out, attr[BERTH__MAX_UNPOOL_KERNEL].ints[axis], out, err));
  if (padding > *out)
    return berth__fail(err, BERTH_INVALID,
                       "pads take %" PRId64 " elements off spatial axis %" PRIu32 ", which has %" PRId64, padding, axis,
                       *out);
  *out -= padding;
  return BERTH_OK;
}

static berth_status max_unpool_pooled_shape(const berth_attr *attr, const berth__shape *x, berth__shape *out,
                                            berth_error *err) {
  *out = *x;
  for (uint32_t axis = 0; axis + 2 < x->rank; axis++)
    BERTH__TRY(pooled_extent(attr, x->rank - 2, axis, x->dim[2 + axis], &out->dim[2 + axis], err));
  return BERTH_OK;
}

static berth_status max_unpool_check(const berth__infer *infer, berth_error *err) {
  const berth__shape *x = &infer->in_shape[0];
  int64_t same;
  BERTH__TRY(berth__want_rank(infer, 0, 3, BERTH_MAX_RANK, err));
  BERTH__TRY(berth__want_type(infer, 1, BERTH_I64, err));
  BERTH__TRY(berth__want_rank(infer, 1, x->rank, x->rank, err));
  for (uint32_t axis = 0; axis < x->rank; axis++)
    BERTH__TRY(berth__same_dim(x->dim[axis], infer->in_shape[1].dim[axis], "elements and places", &same, err));
  const uint32_t spatial = x->rank - 2;
  if (infer->attrs[BERTH__MAX_UNPOOL_KERNEL].count != spatial)
    return berth__fail(err, BERTH_INVALID, "`kernel` has %" PRIu32 " entries, expected %" PRIu32,
                       infer->attrs[BERTH__MAX_UNPOOL_KERNEL].count, spatial);
  BERTH__TRY(berth__window_check_list(&infer->attrs[BERTH__MAX_UNPOOL_KERNEL], spatial, 1, err));
  BERTH__TRY(berth__window_check_list(&infer->attrs[BERTH__MAX_UNPOOL_STRIDES], spatial, 1, err));
  return berth__window_check_list(&infer->attrs[BERTH__MAX_UNPOOL_PADS], 2 * spatial, 0, err);
}

static berth_status asked_shape(const berth__infer *infer, berth__shape *out, berth_error *err) {
  const berth_tensor asked = berth__infer_tensor(infer, BERTH__MAX_UNPOOL_OUTPUT_SHAPE);
  BERTH__TRY(berth__want_type(infer, BERTH__MAX_UNPOOL_OUTPUT_SHAPE, BERTH_I64, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__MAX_UNPOOL_OUTPUT_SHAPE, 1, 1, err));
  const int64_t count = infer->in_shape[BERTH__MAX_UNPOOL_OUTPUT_SHAPE].dim[0];
  if (berth__dim_is_fixed(count) && count != out->rank)
    return berth__fail(err, BERTH_INVALID, "the shape asked for has %" PRId64 " dimensions, expected %" PRIu32, count,
                       out->rank);
  for (uint32_t axis = 2; axis < out->rank; axis++) {
    out->dim[axis] = asked.data ? berth__load_i64(&asked, axis) : BERTH__DIM_UNKNOWN;
    if (asked.data && out->dim[axis] < 0)
      return berth__fail(err, BERTH_INVALID, "extent %" PRIu32 " of the shape asked for is %" PRId64, axis,
                         out->dim[axis]);
  }
  return BERTH_OK;
}

static berth_status max_unpool_infer(berth__infer *infer, berth_error *err) {
  BERTH__TRY(max_unpool_check(infer, err));
  BERTH__TRY(max_unpool_pooled_shape(infer->attrs, &infer->in_shape[0], &infer->out_shape[0], err));
  if (berth__infer_has(infer, BERTH__MAX_UNPOOL_OUTPUT_SHAPE))
    BERTH__TRY(asked_shape(infer, &infer->out_shape[0], err));
  infer->out_type[0] = infer->in_type[0];
  return BERTH_OK;
}

/* Converts an index in the shape before pooling to one in the result; -1: outside. */
static int64_t moved(const berth__shape *pooled, const berth_tensor *out, int64_t place) {
  int64_t to = 0;
  for (uint32_t axis = out->rank; axis-- > 0; place /= pooled->dim[axis]) {
    const int64_t at = place % pooled->dim[axis];
    if (at >= out->dim[axis]) return -1;
    to += at * out->stride[axis];
  }
  return to;
}

/* A single item, because an index may be anywhere in the result. */
static berth_status max_unpool_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0], *out = &call->out[0];
  const size_t size = berth_type_size(x->type);
  const int64_t count = berth__count(x);
  const int64_t *places = call->in[1].data;
  berth__shape in = {.rank = x->rank}, pooled;
  int64_t total = 0;
  memcpy(in.dim, x->dim, sizeof in.dim);
  BERTH__TRY(max_unpool_pooled_shape(call->attrs, &in, &pooled, err));
  if (!berth__shape_count(&pooled, &total)) return berth__fail(err, BERTH_INVALID, "the pooled shape is too large");
  if (berth__count(out) != 0) memset(out->data, 0, (size_t)berth__count(out) * size);
  for (int64_t i = 0; i < count; i++) {
    const int64_t to = places[i] >= 0 && places[i] < total ? moved(&pooled, out, places[i]) : -1;
    if (to < 0)
      return berth__fail(err, BERTH_INVALID, "place %" PRId64 " of element %" PRId64 " is not in the result", places[i],
                         i);
    memcpy(berth__element(out->data, to, size), berth__element(x->data, i, size), size);
  }
  return BERTH_OK;
}

const berth__family berth__family_max_unpool = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .required = 1u << BERTH__MAX_UNPOOL_KERNEL,
    .infer = max_unpool_infer,
    .kernel = max_unpool_kernel,
    .valued = 1u << BERTH__MAX_UNPOOL_OUTPUT_SHAPE,
};
