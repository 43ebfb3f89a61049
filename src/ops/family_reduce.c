/* Reductions over some axes. An item is one element of the result. Floats accumulate in f64, integers in wrapping 64
 * bits, and the result is rounded once. */
#include <math.h>

#include "ops/elementwise.h"
#include "ops/operand.h"

static const berth_attr attrs_of_reduce[] = {
    [BERTH__REDUCE_AXES] = {.name = "axes", .kind = BERTH_ATTR_INTS},
    [BERTH__REDUCE_KEEPDIMS] = {.name = "keepdims", .kind = BERTH_ATTR_INT, .i = 1}};

/* Bit k: axis k is reduced. An empty list means all axes. */
static berth_status reduced_axes(berth__list *list, uint32_t rank, uint32_t *out, berth_error *err) {
  BERTH__TRY(berth__list_axes(list, rank, out, err));
  if (list->count == 0) *out = (1u << rank) - 1;
  return BERTH_OK;
}

/* As long as the axes are unknown, each may be reduced. */
static berth_status infer_open(berth__infer *infer, const berth__list *list, berth_error *err) {
  const berth__shape *in = &infer->in_shape[BERTH__REDUCE_X];
  berth__shape *out = &infer->out_shape[0];
  if (list->count > in->rank)
    return berth__fail(err, BERTH_INVALID, "%u axes are named, but the operand has rank %u", list->count, in->rank);
  out->rank = infer->attrs[BERTH__REDUCE_KEEPDIMS].i ? in->rank : in->rank - list->count;
  for (uint32_t i = 0; i < out->rank; i++) out->dim[i] = BERTH__DIM_UNKNOWN;
  return BERTH_OK;
}

static berth_status infer_reduce(berth__infer *infer, berth_error *err) {
  const berth__shape *in = &infer->in_shape[BERTH__REDUCE_X];
  berth__shape *out = &infer->out_shape[0];
  int64_t keepdims = infer->attrs[BERTH__REDUCE_KEEPDIMS].i;
  berth__list list;
  uint32_t axes;
  BERTH__TRY(berth__want_numeric(infer, BERTH__REDUCE_X, err));
  if (keepdims != 0 && keepdims != 1) return berth__fail(err, BERTH_INVALID, "attribute 'keepdims' is not 0 or 1");
  BERTH__TRY(berth__infer_list(infer, BERTH__REDUCE_AXES, BERTH__REDUCE_AXES_OPERAND, &list, err));
  infer->out_type[0] = infer->in_type[BERTH__REDUCE_X];
  if (infer->op->code == BERTH__OP_reduce_bytes) {
    if (infer->in_type[BERTH__REDUCE_X] != BERTH_U8)
      BERTH__TRY(berth__want_type(infer, BERTH__REDUCE_X, BERTH_I8, err));
    infer->out_type[0] = BERTH_I32;
  }
  if (!list.known && list.count != 0) return infer_open(infer, &list, err);
  BERTH__TRY(reduced_axes(&list, in->rank, &axes, err));
  out->rank = 0;
  for (uint32_t i = 0; i < in->rank; i++) {
    bool reduced = (axes >> i) & 1u;
    if (!reduced || keepdims) out->dim[out->rank++] = reduced ? 1 : in->dim[i];
  }
  return BERTH_OK;
}

/* ---- Folding one block into the state ------------------------------------------------------------------------- */

typedef union accumulator {
  double f;
  int64_t i;
} accumulator;

/* Written so that NaN is propagated. */
static inline double reduce_larger(double a, double b) { return a > b || a != a ? a : b; }
static inline double reduce_smaller(double a, double b) { return a < b || a != a ? a : b; }

/* Several lanes, so that additions do not wait for each other. */
#define LANES 8
#define DEFINE_EXTREME(name, choose)                                       \
  static double name(double state, const double *x, int64_t count) {       \
    double lane[LANES];                                                    \
    int64_t i = 0;                                                         \
    for (int k = 0; k < LANES; k++) lane[k] = state;                       \
    for (; i + LANES <= count; i += LANES)                                 \
      for (int k = 0; k < LANES; k++) lane[k] = choose(x[i + k], lane[k]); \
    for (; i < count; i++) lane[0] = choose(x[i], lane[0]);                \
    for (int k = 1; k < LANES; k++) lane[0] = choose(lane[k], lane[0]);    \
    return lane[0];                                                        \
  }
DEFINE_EXTREME(fold_larger, reduce_larger)
DEFINE_EXTREME(fold_smaller, reduce_smaller)

static double fold_f64(berth__op_code code, double state, const double *x, int64_t count) {
  switch (code) {
    case BERTH__OP_reduce_prod:
      for (int64_t i = 0; i < count; i++) state *= x[i];
      return state;
    case BERTH__OP_reduce_max: return fold_larger(state, x, count);
    case BERTH__OP_reduce_min: return fold_smaller(state, x, count);
    default: return state + berth__block_sum(x, count);
  }
}

static int64_t fold_i64(berth__op_code code, int64_t state, const int64_t *x, int64_t count) {
  uint64_t wrapping = (uint64_t)state;
  switch (code) {
    case BERTH__OP_reduce_prod:
      for (int64_t i = 0; i < count; i++) wrapping *= (uint64_t)x[i];
      return (int64_t)wrapping;
    case BERTH__OP_reduce_max:
      for (int64_t i = 0; i < count; i++) state = x[i] > state ? x[i] : state;
      return state;
    case BERTH__OP_reduce_min:
      for (int64_t i = 0; i < count; i++) state = x[i] < state ? x[i] : state;
      return state;
    default:
      for (int64_t i = 0; i < count; i++) wrapping += (uint64_t)x[i];
      return (int64_t)wrapping;
  }
}

/* The reduction of nothing. */
static accumulator reduce_start(berth__op_code code, berth_type type, bool is_float) {
  int64_t low, high;
  berth__int_limits(type, &low, &high);
  switch (code) {
    case BERTH__OP_reduce_prod: return is_float ? (accumulator){.f = 1} : (accumulator){.i = 1};
    case BERTH__OP_reduce_max: return is_float ? (accumulator){.f = -INFINITY} : (accumulator){.i = low};
    case BERTH__OP_reduce_min: return is_float ? (accumulator){.f = INFINITY} : (accumulator){.i = high};
    default: return is_float ? (accumulator){.f = 0} : (accumulator){.i = 0};
  }
}

/* ---- One item ------------------------------------------------------------------------------------------------- */

typedef struct reduction {
  berth__op_code code;
  bool is_float;
  int64_t count;      /* elements per result */
  berth__runs inside; /* over the reduced axes */
} reduction;

static void reduce_fold_run(const reduction *r, const berth_tensor *in, int64_t base, accumulator *state) {
  union {
    double f[BERTH__BLOCK];
    int64_t i[BERTH__BLOCK];
  } block;
  int64_t step = r->inside.step[0];
  for (int64_t at = 0; at < r->inside.count; at += BERTH__BLOCK) {
    int64_t n = r->inside.count - at < BERTH__BLOCK ? r->inside.count - at : BERTH__BLOCK;
    int64_t index = base + r->inside.index[0] + at * step;
    berth__gather(r->is_float ? BERTH__CLASS_F64 : BERTH__CLASS_I64, &block, in->type, in->data, index, step, n);
    if (r->is_float)
      state->f = fold_f64(r->code, state->f, block.f, n);
    else
      state->i = fold_i64(r->code, state->i, block.i, n);
  }
}

static void reduce_one(reduction *r, const berth_tensor *in, int64_t base, const berth_tensor *out, int64_t item) {
  accumulator state = reduce_start(r->code, in->type, r->is_float);
  berth__runs_start(&r->inside, 0, r->count);
  while (berth__runs_next(&r->inside)) reduce_fold_run(r, in, base, &state);
  bool mean = r->code == BERTH__OP_reduce_mean;
  if (r->is_float)
    berth__store_f64(out, item, mean ? state.f / (double)r->count : state.f);
  else
    berth__store_i64(out, item, mean && r->count > 0 ? state.i / r->count : state.i);
}

/* Splits the operand's axes into those that are kept and those that are reduced. */
static void part_axes(const berth_tensor *in, uint32_t axes, uint32_t reduced, berth__shape *dim, int64_t *stride) {
  dim->rank = 0;
  for (uint32_t i = 0; i < in->rank; i++) {
    if (((axes >> i) & 1u) != reduced) continue;
    dim->dim[dim->rank] = in->dim[i];
    stride[dim->rank++] = in->stride[i];
  }
}

static berth_status reduce_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *in = &call->in[BERTH__REDUCE_X];
  berth__shape kept, gone;
  int64_t kept_stride[BERTH_MAX_RANK], gone_stride[BERTH_MAX_RANK];
  const int64_t *strides[1] = {gone_stride};
  berth__list list;
  uint32_t axes;
  berth__call_list(call, BERTH__REDUCE_AXES, BERTH__REDUCE_AXES_OPERAND, &list);
  BERTH__TRY(reduced_axes(&list, in->rank, &axes, err));
  part_axes(in, axes, 0, &kept, kept_stride);
  part_axes(in, axes, 1, &gone, gone_stride);
  reduction r = {.code = berth__call_code(call), .is_float = berth__type_is_float(in->type), .count = 1};
  for (uint32_t i = 0; i < gone.rank; i++) r.count *= gone.dim[i];
  berth__runs_shape(&r.inside, gone.rank, gone.dim, 1, strides);
  berth__walk walk;
  strides[0] = kept_stride;
  berth__walk_start(&walk, kept.rank, kept.dim, 1, strides, call->begin);
  for (int64_t item = call->begin; item < call->end; item++, berth__walk_next(&walk))
    reduce_one(&r, in, walk.index[0], &call->out[0], item);
  return BERTH_OK;
}

const berth__family berth__family_reduce = {.attrs = attrs_of_reduce,
                                            .n_attrs = 2,
                                            .infer = infer_reduce,
                                            .items = berth__items_elements,
                                            .kernel = reduce_kernel,
                                            .valued = 1u << BERTH__REDUCE_AXES_OPERAND,
                                            .attr_of = {[BERTH__REDUCE_AXES_OPERAND] = BERTH__REDUCE_AXES + 1}};
