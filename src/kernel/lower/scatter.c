/* Puts updates into a copy of the operand. Several updates of one element are applied in their order, so that the
 * result is the same on every device; hence no two threads write the same element. There are three ways:
 * scan   a thread has an element of the result and goes through all updates that could be for it;
 * walk   the operand is copied, then a thread applies the updates that only it can meet, one after the other;
 * order  the same, after the tuples of scatter_nd have been sorted by the slices that they name (scatter_order.c).
 * The first has parallelism, the second little work, and the third both, if a few more kernels pay off. An index out of
 * range is a run-time error on other devices; here its update is dropped. */
#include "kernel/lower/scatter.h"

#include "kernel/lower/copy.h"

#define STEP_OF_WALK 8 /* a step of a walk waits for memory; steps of scans overlap */
#define START 16       /* cost of one more kernel, in steps */
#define MOST_SHARES 64 /* shares of the rows that slices are written to, one walker each */

/* Both ways go over all updates of a thread; a walk needs no copy if the result overwrites the operand. */
static bool scans(const berth__lowering *l, int64_t walkers, int64_t updates) {
  const int64_t all = berth__scatter_rounds(berth__count(&l->call->out[0]));
  const int64_t copy = berth__l_is_placed(l, BERTH__SCATTER_X, 0) ? 0 : all + START;
  return all * (updates + 1) <= berth__scatter_rounds(walkers) * updates * STEP_OF_WALK + copy;
}

static berth__x from_front(berth__kernel *k, berth__x index, int64_t extent) {
  const berth__x is_negative = berth__x_lt(k, index, berth__x_i32(k, 0));
  return berth__x_select(k, is_negative, berth__x_affine(k, index, 1, extent), index);
}

berth__x berth__scatter_in_range(berth__kernel *k, berth__x index, int64_t extent) {
  return berth__x_and(k, berth__x_le(k, berth__x_i32(k, 0), index), berth__x_lt(k, index, berth__x_i32(k, extent)));
}

berth__x berth__scatter_combined(const berth__lowering *l, berth__kernel *k, berth__reduction r, berth__x old,
                                 berth__x update) {
  static const berth__op_code ops[] = {[BERTH__REDUCTION_ADD] = BERTH__OP_add,
                                       [BERTH__REDUCTION_MUL] = BERTH__OP_mul,
                                       [BERTH__REDUCTION_MAX] = BERTH__OP_max,
                                       [BERTH__REDUCTION_MIN] = BERTH__OP_min};
  return r == BERTH__REDUCTION_NONE ? update
                                    : berth__l_binary(k, ops[r], old, update, l->call->in[BERTH__SCATTER_X].type);
}

berth_status berth__scatter_copy(berth__lowering *l, berth_error *err) {
  const berth_tensor *in = &l->call->in[BERTH__SCATTER_X], *out = &l->call->out[0];
  return berth__l_copy_all(
      l, &(berth__l_copy){.rank = in->rank, .dim = in->dim, .from_stride = in->stride, .to_stride = out->stride}, err);
}

berth__x berth__scatter_held(const berth__lowering *l, berth__kernel *k, berth__x place) {
  const berth__x held = berth__x_load(k, berth__l_out(l, k, 0), place);
  return berth__x_convert(k, berth__l_number(l->call->out[0].type), held);
}

/* Puts an update at the position of an index that is in range. */
static void lower_scatter_put(const berth__lowering *l, berth__kernel *k, berth__reduction r, berth__x place,
                              berth__x from) {
  const berth__x old = berth__scatter_held(l, k, place);
  berth__l_store(l, k, 0, place,
                 berth__scatter_combined(l, k, r, old, berth__l_load(l, k, BERTH__SCATTER_UPDATES, from)));
}

/* ---- scatter: one index per update, along an axis ---- */

typedef struct scattering {
  uint32_t axis;
  berth__reduction reduction;
} scattering;

/* Element `j` of the line with coordinates `at` on the other axes. */
static berth__x on_line(berth__kernel *k, const berth_tensor *tensor, const berth__x *at, uint32_t axis, berth__x j) {
  berth__x all[BERTH_MAX_RANK];
  memcpy(all, at, tensor->rank * sizeof *at);
  all[axis] = j;
  return berth__l_place(k, tensor, all);
}

/* The indices may cover less than the operand on the other axes. */
static berth__x has_line(berth__kernel *k, const berth_op_call *call, const berth__x *at, uint32_t axis) {
  berth__x has = berth__x_bool(k, true);
  for (uint32_t i = 0; i < call->out[0].rank; i++)
    if (i != axis && call->in[BERTH__SCATTER_INDICES].dim[i] < call->out[0].dim[i])
      has = berth__x_and(k, has, berth__x_lt(k, at[i], berth__x_i32(k, call->in[BERTH__SCATTER_INDICES].dim[i])));
  return has;
}

static berth_status scan_lines(berth__lowering *l, const scattering *s, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *out = &call->out[0], *indices = &call->in[BERTH__SCATTER_INDICES];
  berth__x at[BERTH_MAX_RANK];
  berth__kernel *k = berth__l_begin(l, "scan");
  berth__l_unravel(k, berth__l_each(l, k, berth__count(out)), out->rank, out->dim, at);
  const berth__x value =
      berth__x_variable(k, berth__l_load(l, k, BERTH__SCATTER_X, berth__l_place(k, &call->in[BERTH__SCATTER_X], at)));
  berth__x_if(k, has_line(k, call, at, s->axis));
  const berth__x j = berth__x_loop_n(k, indices->dim[s->axis]);
  const berth__x given = berth__l_load(l, k, BERTH__SCATTER_INDICES, on_line(k, indices, at, s->axis, j));
  berth__x_if(k, berth__x_eq(k, from_front(k, given, out->dim[s->axis]), at[s->axis]));
  const berth__x update =
      berth__l_load(l, k, BERTH__SCATTER_UPDATES, on_line(k, &call->in[BERTH__SCATTER_UPDATES], at, s->axis, j));
  berth__x_set(k, value, berth__scatter_combined(l, k, s->reduction, berth__x_get(k, value), update));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_end(k);
  berth__l_store(l, k, 0, berth__l_place(k, out, at), berth__x_get(k, value));
  return berth__l_end(l, k, err);
}

static berth_status walk_lines(berth__lowering *l, const scattering *s, int64_t lines, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *out = &call->out[0], *indices = &call->in[BERTH__SCATTER_INDICES];
  int64_t dim[BERTH_MAX_RANK];
  berth__x at[BERTH_MAX_RANK];
  BERTH__TRY(berth__scatter_copy(l, err));
  if (lines == 0) return BERTH_OK;
  memcpy(dim, indices->dim, sizeof dim);
  dim[s->axis] = 1;
  berth__kernel *k = berth__l_begin(l, "walk");
  berth__l_unravel(k, berth__l_each_alone(l, k, lines), out->rank, dim, at);
  const berth__x j = berth__x_loop_n(k, indices->dim[s->axis]);
  const berth__x given = berth__l_load(l, k, BERTH__SCATTER_INDICES, on_line(k, indices, at, s->axis, j));
  const berth__x index = from_front(k, given, out->dim[s->axis]);
  berth__x_if(k, berth__scatter_in_range(k, index, out->dim[s->axis]));
  lower_scatter_put(l, k, s->reduction, on_line(k, out, at, s->axis, index),
                    on_line(k, &call->in[BERTH__SCATTER_UPDATES], at, s->axis, j));
  berth__x_end(k);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_scatter(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const int64_t given = call->attrs[BERTH__SCATTER_AXIS].i;
  const scattering s = {.axis = (uint32_t)(given < 0 ? given + call->out[0].rank : given),
                        .reduction = berth__reduction_of(call->attrs[BERTH__SCATTER_REDUCTION].s)};
  int64_t lines = 1;
  for (uint32_t i = 0; i < call->in[BERTH__SCATTER_INDICES].rank; i++)
    if (i != s.axis) lines *= call->in[BERTH__SCATTER_INDICES].dim[i];
  if (berth__count(&call->out[0]) == 0) return BERTH_OK;
  if (scans(l, lines, call->in[BERTH__SCATTER_INDICES].dim[s.axis])) return scan_lines(l, &s, err);
  return walk_lines(l, &s, lines, err);
}

/* ---- scatter_nd: one tuple of indices per slice ---- */

berth__slices berth__slices_of(const berth_op_call *call) {
  const berth_tensor *out = &call->out[0], *indices = &call->in[BERTH__SCATTER_INDICES];
  berth__slices s = {.reduction = berth__reduction_of(call->attrs[BERTH__SCATTER_ND_REDUCTION].s),
                     .tuple = (uint32_t)indices->dim[indices->rank - 1],
                     .each = 1};
  for (uint32_t i = s.tuple; i < out->rank; i++) s.each *= out->dim[i];
  if (s.tuple > 0) s.n = berth__count(indices) / s.tuple;
  return s;
}

berth__x berth__slices_index(const berth__lowering *l, berth__kernel *k, const berth__slices *s, berth__x tuple,
                             uint32_t i) {
  const berth__x given = berth__l_load(l, k, BERTH__SCATTER_INDICES, berth__x_affine(k, tuple, s->tuple, i));
  return from_front(k, given, l->call->out[0].dim[i]);
}

berth__x berth__slices_update(berth__kernel *k, const berth__slices *s, berth__x tuple, berth__x element) {
  return berth__x_add(k, berth__x_affine(k, tuple, s->each, 0), element);
}

static berth_status scan_slices(berth__lowering *l, const berth__slices *s, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  berth__x at[BERTH_MAX_RANK];
  berth__kernel *k = berth__l_begin(l, "scan");
  const berth__x index = berth__l_each(l, k, berth__count(out));
  berth__l_unravel(k, index, out->rank, out->dim, at);
  const berth__x element = berth__x_rem(k, index, berth__x_i32(k, s->each));
  const berth__x value = berth__x_variable(
      k, berth__l_load(l, k, BERTH__SCATTER_X, berth__l_place(k, &l->call->in[BERTH__SCATTER_X], at)));
  const berth__x tuple = berth__x_loop_n(k, s->n);
  berth__x is_its = berth__x_bool(k, true);
  for (uint32_t i = 0; i < s->tuple; i++)
    is_its = berth__x_and(k, is_its, berth__x_eq(k, berth__slices_index(l, k, s, tuple, i), at[i]));
  berth__x_if(k, is_its);
  const berth__x update = berth__l_load(l, k, BERTH__SCATTER_UPDATES, berth__slices_update(k, s, tuple, element));
  berth__x_set(k, value, berth__scatter_combined(l, k, s->reduction, berth__x_get(k, value), update));
  berth__x_end(k);
  berth__x_end(k);
  berth__l_store(l, k, 0, berth__l_place(k, out, at), berth__x_get(k, value));
  return berth__l_end(l, k, err);
}

/* If few threads would have long walks, several walk, each for a share of the rows: checking an index is cheap compared
 * with an update, which waits for memory. A row's updates are still applied in order, by its owner. */
static int64_t shares_of(const berth_op_call *call, const berth__kernel_limits *limits, const berth__slices *s) {
  int64_t shares = limits->shares_well ? MOST_SHARES : 1;
  while (shares > 1 && (shares * s->each > (int64_t)BERTH__SCATTER_THREADS * STEP_OF_WALK || shares > s->n ||
                        shares > call->out[0].dim[0]))
    shares /= 2;
  return shares;
}

static berth_status walk_slices(berth__lowering *l, const berth__slices *s, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t shares = shares_of(l->call, l->limits, s);
  berth__x at[BERTH_MAX_RANK];
  BERTH__TRY(berth__scatter_copy(l, err));
  berth__kernel *k = berth__l_begin(l, "walk");
  const berth__x walker = berth__l_each_alone(l, k, s->each * shares);
  const berth__x each = berth__x_i32(k, s->each), element = berth__x_rem(k, walker, each);
  berth__l_unravel(k, element, out->rank - s->tuple, out->dim + s->tuple, at + s->tuple);
  const berth__x tuple = berth__x_loop_n(k, s->n);
  berth__x is_inside = berth__x_bool(k, true);
  for (uint32_t i = 0; i < s->tuple; i++) {
    at[i] = berth__slices_index(l, k, s, tuple, i);
    is_inside = berth__x_and(k, is_inside, berth__scatter_in_range(k, at[i], out->dim[i]));
  }
  if (shares > 1) {
    const berth__x share = berth__x_rem(k, at[0], berth__x_i32(k, shares));
    is_inside = berth__x_and(k, is_inside, berth__x_eq(k, share, berth__x_div(k, walker, each)));
  }
  berth__x_if(k, is_inside);
  lower_scatter_put(l, k, s->reduction, berth__l_place(k, out, at), berth__slices_update(k, s, tuple, element));
  berth__x_end(k);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

/* Regardless of whether the result overwrites the operand: the scratch of a call does not depend on that. */
static bool goes_in_order(const berth_op_call *call, const berth__kernel_limits *limits, const berth__slices *s) {
  const int64_t shares = shares_of(call, limits, s), cost = berth__slices_order_cost(s);
  const int64_t walk = berth__scatter_rounds(s->each * shares) * (s->n + s->n * STEP_OF_WALK / shares);
  return limits->shares_well && cost < walk && cost < berth__scatter_rounds(berth__count(&call->out[0])) * s->n;
}

uint64_t berth__scratch_of_scatter_nd(const berth_op_call *call, const berth__kernel_limits *limits) {
  const berth__slices s = berth__slices_of(call);
  return goes_in_order(call, limits, &s) ? berth__slices_order_scratch(&s) : 0;
}

berth_status berth__lower_scatter_nd(berth__lowering *l, berth_error *err) {
  const berth__slices s = berth__slices_of(l->call);
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (s.n == 0) return berth__scatter_copy(l, err);
  if (goes_in_order(l->call, l->limits, &s)) return berth__slices_in_order(l, &s, err);
  return scans(l, s.each, s.n) ? scan_slices(l, &s, err) : walk_slices(l, &s, err);
}
