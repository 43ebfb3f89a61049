/* reshape: the same elements in the same order with another shape. */
#include <inttypes.h>

#include "ops/copy.h"
#include "ops/operand.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {
    [BERTH__RESHAPE_SHAPE] = {.name = "shape", .kind = BERTH_ATTR_DIMS},
    [BERTH__RESHAPE_ALLOW_ZERO] = {.name = "allowzero", .kind = BERTH_ATTR_INT},
};

/* A product of extents: the fixed part, and a list of the open dimensions (named or unknown). */
typedef struct factors {
  int64_t fixed;
  uint32_t n_open;
  int64_t open[BERTH_MAX_RANK];
} factors;

static berth_status factor(const berth__shape *shape, int64_t skip, factors *out, berth_error *err) {
  *out = (factors){.fixed = 1};
  for (uint32_t axis = 0; axis < shape->rank; axis++) {
    if ((int64_t)axis == skip) continue;
    if (!berth__dim_is_fixed(shape->dim[axis]))
      out->open[out->n_open++] = shape->dim[axis];
    else
      BERTH__TRY(berth__dim_mul(out->fixed, shape->dim[axis], &out->fixed, err));
  }
  return BERTH_OK;
}

/* Removes the named dimensions that both sides have in common. */
static void cancel(factors *a, factors *b) {
  for (uint32_t i = a->n_open; i-- > 0;)
    for (uint32_t j = b->n_open; j-- > 0;) {
      if (a->open[i] != b->open[j] || !berth__dim_is_named(a->open[i])) continue;
      a->open[i] = a->open[--a->n_open];
      b->open[j] = b->open[--b->n_open];
      break;
    }
}

static berth_status read_extent(const berth__infer *infer, const berth_dim *dim, uint32_t axis, int64_t *out,
                                berth_error *err) {
  const berth__shape *in = &infer->in_shape[0];
  *out = dim->name ? infer->resolve(infer, dim) : dim->extent;
  if (dim->name || dim->extent > 0) return BERTH_OK;
  if (dim->extent < -1)
    return berth__fail(err, BERTH_INVALID,
                       "dimension %" PRIu32 " of the target shape is %" PRId64
                       "; extents are 0 or more, and -1 stands for the one to be inferred",
                       axis, dim->extent);
  if (dim->extent == -1 || infer->attrs[BERTH__RESHAPE_ALLOW_ZERO].i) return BERTH_OK;
  if (axis >= in->rank)
    return berth__fail(err, BERTH_INVALID,
                       "dimension %" PRIu32 " of the target shape is 0 (copy), but the operand has rank %" PRIu32, axis,
                       in->rank);
  *out = in->dim[axis];
  return BERTH_OK;
}

/* The target as given: *inferred is the axis of the -1, or -1. */
static berth_status reshape_read_target(const berth__infer *infer, const berth_dim *target, berth__shape *out,
                                        int64_t *inferred, berth_error *err) {
  *inferred = -1;
  for (uint32_t axis = 0; axis < out->rank; axis++) {
    BERTH__TRY(read_extent(infer, &target[axis], axis, &out->dim[axis], err));
    if (target[axis].name || target[axis].extent != -1) continue;
    if (*inferred >= 0) return berth__fail(err, BERTH_INVALID, "the target shape has more than one -1");
    *inferred = (int64_t)axis;
  }
  return BERTH_OK;
}

static berth_status reshape_fail_count(const factors *in, const factors *out, berth_error *err) {
  return berth__fail(err, BERTH_INVALID,
                     "%" PRId64 " elements cannot take a shape of %" PRId64
                     " elements (not counting named dimensions that both have)",
                     in->fixed, out->fixed);
}

static berth_status reshape_solve(const factors *in, const factors *out, int64_t *dim, berth_error *err) {
  if (out->n_open > 0 || in->n_open > 1) return *dim = BERTH__DIM_UNKNOWN, BERTH_OK;
  if (in->n_open == 1) return *dim = in->fixed == out->fixed ? in->open[0] : BERTH__DIM_UNKNOWN, BERTH_OK;
  if (out->fixed == 0)
    return berth__fail(err, BERTH_INVALID,
                       "the -1 of the target shape cannot be inferred: the other extents have no"
                       " elements; write the extent out");
  if (in->fixed % out->fixed != 0)
    return berth__fail(err, BERTH_INVALID,
                       "the -1 of the target shape cannot be inferred: %" PRId64
                       " elements do not split into parts of %" PRId64,
                       in->fixed, out->fixed);
  return *dim = in->fixed / out->fixed, BERTH_OK;
}

static berth_status reshape_infer(berth__infer *infer, berth_error *err) {
  berth__shape *shape = &infer->out_shape[0];
  int64_t inferred = -1;
  factors in, out;
  berth_dim target[BERTH_MAX_RANK];
  berth__list list;
  BERTH__TRY(berth__infer_dims(infer, BERTH__RESHAPE_SHAPE, 1, target, &list, err));
  infer->out_type[0] = infer->in_type[0];
  *shape = (berth__shape){.rank = list.count};
  if (!list.known) {
    for (uint32_t axis = 0; axis < list.count; axis++) shape->dim[axis] = BERTH__DIM_UNKNOWN;
    return BERTH_OK;
  }
  BERTH__TRY(reshape_read_target(infer, target, shape, &inferred, err));
  BERTH__TRY(factor(&infer->in_shape[0], -1, &in, err));
  BERTH__TRY(factor(shape, inferred, &out, err));
  cancel(&in, &out);
  if (inferred >= 0)
    BERTH__TRY(reshape_solve(&in, &out, &shape->dim[inferred], err));
  else if (in.n_open == 0 && out.n_open == 0 && in.fixed != out.fixed)
    return reshape_fail_count(&in, &out, err);
  return BERTH_OK;
}

const berth__family berth__family_reshape = {
    .attrs = attrs,
    .n_attrs = sizeof attrs / sizeof *attrs,
    .infer = reshape_infer,
    .items = berth__copy_items,
    .kernel = berth__copy_kernel,
    .view = berth__view_reshaped,
    .valued = 1u << 1,
    .attr_of = {[1] = BERTH__RESHAPE_SHAPE + 1},
};
