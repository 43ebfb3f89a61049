/* Gradients of ops that move elements: the reverse moves, with zeros for elements that were not taken. */
#include "grad/grad.h"

/* reshape, flatten, squeeze, unsqueeze */
void berth__grad_of_reshape(berth__grad *d) {
  berth__grad_give(d, 0, berth__grad_reshape_like(d, berth__grad_dy(d), berth__grad_in(d, 0)));
}

/* berth__grad_give sums over broadcast axes. */
void berth__grad_of_expand(berth__grad *d) { berth__grad_give(d, BERTH__EXPAND_X, berth__grad_dy(d)); }

void berth__grad_of_transpose(berth__grad *d) {
  const berth_attr *perm = &d->node.attrs[BERTH__TRANSPOSE_PERM];
  const uint32_t rank = berth__grad_rank(d, berth__grad_in(d, 0));
  int64_t back[BERTH_MAX_RANK] = {0};
  for (uint32_t i = 0; i < rank; i++)
    back[perm->count != 0 ? berth__grad_axis(d, perm->ints[i], rank) : rank - 1 - i] = i;
  berth__grad_give(d, 0, berth__grad_transpose(d, berth__grad_dy(d), back));
}

/* A square whose diagonal is the gradient, with its axes in their original places. */
void berth__grad_of_diagonal(berth__grad *d) {
  const berth_value x = berth__grad_in(d, 0);
  const uint32_t rank = berth__grad_rank(d, x);
  const uint32_t first = berth__grad_axis(d, d->node.attrs[BERTH__DIAGONAL_FIRST].i, rank);
  const uint32_t second = berth__grad_axis(d, d->node.attrs[BERTH__DIAGONAL_SECOND].i, rank);
  int64_t last = -1, perm[BERTH_MAX_RANK] = {0}, count[1] = {0};
  if (!berth__grad_fixed(d, x)) return;
  count[0] = berth__grad_shape(d, x).dim[first];
  const berth_value in[] = {berth__grad_scalar(d, BERTH_I64, 0), berth__grad_scalar(d, BERTH_I64, (double)count[0]),
                            berth__grad_scalar(d, BERTH_I64, 1)};
  const berth_value index = berth__grad_op(d, BERTH__OP_range, in, 3, NULL, 0);
  const berth_value is_diagonal = berth__grad_2(d, BERTH__OP_eq, berth__grad_unsqueeze(d, index, &last, 1), index);
  const berth_value dy = berth__grad_unsqueeze(d, berth__grad_dy(d), &last, 1);
  const berth_value square = berth__grad_where(d, is_diagonal, dy, berth__grad_scalar(d, berth__grad_type(d, dy), 0));
  for (uint32_t i = 0, next = 0; i < rank; i++) perm[i] = i == first ? rank - 2 : i == second ? rank - 1 : next++;
  berth__grad_give(d, 0, berth__grad_transpose(d, square, perm));
}

static berth_value grad_pad(berth__grad *d, berth_value a, uint32_t axis, int64_t before, int64_t after) {
  const int64_t pads[] = {before, after}, axes[] = {axis};
  const berth_attr attrs[2] = {berth_attr_ints("pads", pads, 2), berth_attr_ints("axes", axes, 1)};
  return before == 0 && after == 0 ? a : berth__grad_op(d, BERTH__OP_pad, &a, 1, attrs, 2);
}

/* Reverses an axis. */
static berth_value grad_reverse(berth__grad *d, berth_value a, uint32_t axis) {
  const int64_t axes[] = {axis}, start = -1, end = INT64_MIN, step = -1;
  const berth_attr attrs[4] = {berth_attr_ints("axes", axes, 1), berth_attr_ints("starts", &start, 1),
                               berth_attr_ints("ends", &end, 1), berth_attr_ints("steps", &step, 1)};
  return berth__grad_op(d, BERTH__OP_narrow, &a, 1, attrs, 4);
}

/* Inserts step - 1 zeros after every element of an axis. */
static berth_value grad_spread(berth__grad *d, berth_value a, uint32_t axis, int64_t step) {
  berth__shape shape = berth__grad_shape(d, a);
  const int64_t axes[] = {(int64_t)axis + 1};
  if (step == 1) return a;
  shape.dim[axis] *= step;
  a = grad_pad(d, berth__grad_unsqueeze(d, a, axes, 1), axis + 1, 0, step - 1);
  return berth__grad_reshape(d, a, &shape);
}

/* The start of a slice of `count` elements, as narrow interprets it. */
static int64_t grad_slice_start(int64_t start, int64_t step, int64_t extent) {
  const int64_t most = step > 0 ? extent : extent - 1;
  if (start < 0) start = start < -extent ? 0 : start + extent;
  return start > most ? most : start;
}

static berth_value grad_unslice(berth__grad *d, berth_value a, uint32_t axis, int64_t start, int64_t step,
                                int64_t extent) {
  const int64_t count = berth__grad_shape(d, a).dim[axis];
  int64_t first = grad_slice_start(start, step, extent);
  if (count == 0) return grad_pad(d, a, axis, 0, extent);
  if (step < 0) {
    a = grad_reverse(d, a, axis);
    first += (count - 1) * step;
    step = -step;
  }
  return grad_pad(d, grad_spread(d, a, axis, step), axis, first, extent - first - count * step);
}

void berth__grad_of_narrow(berth__grad *d) {
  enum {
    STARTS = 1,
    AXES = 3,
    STEPS = 4
  };
  const berth_value x = berth__grad_in(d, 0);
  const berth__shape shape = berth__grad_shape(d, x);
  berth_value dy = berth__grad_dy(d);
  berth__grad_list axes, starts, steps;
  if (!berth__grad_fixed(d, x) || !berth__grad_read_list(d, AXES, BERTH__NARROW_AXES, &axes) ||
      !berth__grad_read_list(d, STARTS, BERTH__NARROW_STARTS, &starts) ||
      !berth__grad_read_list(d, STEPS, BERTH__NARROW_STEPS, &steps))
    return;
  for (uint32_t i = 0; i < starts.n && berth__grad_ok(d); i++) {
    const uint32_t axis = axes.n == 0 ? i : berth__grad_axis(d, axes.entry[i], shape.rank);
    dy = grad_unslice(d, dy, axis, starts.entry[i], steps.n == 0 ? 1 : steps.entry[i], shape.dim[axis]);
  }
  berth__grad_give(d, 0, dy);
}

void berth__grad_of_split(berth__grad *d) {
  const berth_attr axis = berth_attr_int("axis", d->node.attrs[BERTH__SPLIT_AXIS].i);
  berth_value *parts = berth__alloc_array(d->graph->ctx, d->node.n_out, sizeof *parts);
  if (parts == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return;
  }
  for (uint32_t i = 0; i < d->node.n_out; i++) parts[i] = berth__grad_dy_at(d, i);
  berth__grad_give(d, BERTH__SPLIT_X, berth__grad_op(d, BERTH__OP_concat, parts, d->node.n_out, &axis, 1));
  berth__free(d->graph->ctx, parts);
}

void berth__grad_of_concat(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d);
  const uint32_t axis = berth__grad_axis(d, d->node.attrs[BERTH__CONCAT_AXIS].i, berth__grad_rank(d, dy));
  int64_t at = 0;
  for (uint32_t i = 0; i < d->node.n_in && berth__grad_ok(d); i++) {
    const int64_t extent = berth__grad_shape(d, berth__grad_in(d, i)).dim[axis];
    if (!berth__dim_is_fixed(extent) && !berth__grad_fixed(d, berth__grad_in(d, i))) return;
    if (berth__grad_wants(d, i)) berth__grad_give(d, i, berth__grad_narrow(d, dy, axis, at, at + extent));
    at += extent;
  }
}

/* pad in modes that repeat elements of x: one gather per axis, with indices that pad itself computes. */
static void grad_pad_repeated(berth__grad *d, const berth__shape *shape, const int64_t *before, const int64_t *after) {
  const size_t first = d->graph->n_nodes;
  const berth_attr mode = berth_attr_string("mode", d->node.attrs[BERTH__PAD_MODE].s);
  berth_value y = berth__grad_in(d, BERTH__PAD_X);
  for (uint32_t axis = 0; axis < shape->rank && berth__grad_ok(d); axis++) {
    const int64_t pads[] = {before[axis], after[axis]};
    if (pads[0] == 0 && pads[1] == 0) continue;
    const berth_value bounds[] = {berth__grad_scalar(d, BERTH_I64, 0),
                                  berth__grad_scalar(d, BERTH_I64, (double)shape->dim[axis]),
                                  berth__grad_scalar(d, BERTH_I64, 1)};
    const berth_value index = berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0);
    const berth_attr attrs[2] = {berth_attr_ints("pads", pads, 2), mode};
    const berth_value in[] = {y, berth__grad_op(d, BERTH__OP_pad, &index, 1, attrs, 2)};
    const berth_attr along = berth_attr_int("axis", axis);
    y = berth__grad_op(d, BERTH__OP_gather, in, 2, &along, 1);
  }
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* The pads of every axis, whichever axes the node names. */
static bool grad_read_pads(berth__grad *d, uint32_t rank, int64_t *before, int64_t *after) {
  berth__grad_list pads, axes;
  if (!berth__grad_read_list(d, BERTH__PAD_PADS_OPERAND, BERTH__PAD_PADS, &pads) ||
      !berth__grad_read_list(d, BERTH__PAD_AXES_OPERAND, BERTH__PAD_AXES, &axes))
    return false;
  const uint32_t n = pads.n / 2;
  for (uint32_t i = 0; i < n; i++) {
    const uint32_t axis = axes.n == 0 ? i : berth__grad_axis(d, axes.entry[i], rank);
    before[axis] = pads.entry[i];
    after[axis] = pads.entry[n + i];
  }
  return berth__grad_ok(d);
}

void berth__grad_of_pad(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__PAD_X), dy = berth__grad_dy(d);
  const uint32_t rank = berth__grad_rank(d, x);
  int64_t before[BERTH_MAX_RANK] = {0}, after[BERTH_MAX_RANK] = {0};
  if (!grad_read_pads(d, rank, before, after)) return;
  const berth__shape shape = berth__grad_shape(d, x);
  if (strcmp(d->node.attrs[BERTH__PAD_MODE].s, "constant") != 0) {
    if (berth__grad_fixed(d, x)) grad_pad_repeated(d, &shape, before, after);
    return;
  }
  berth_value dx = dy;
  for (uint32_t axis = 0; axis < rank; axis++) dx = grad_pad(d, dx, axis, -before[axis], -after[axis]);
  berth__grad_give(d, BERTH__PAD_X, dx);
  if (berth__grad_wants(d, BERTH__PAD_VALUE_OPERAND)) /* the part that did not go to x */
    berth__grad_give(d, BERTH__PAD_VALUE_OPERAND,
                     berth__grad_sub(d, berth__grad_op(d, BERTH__OP_reduce_sum, &dy, 1, NULL, 0),
                                     berth__grad_op(d, BERTH__OP_reduce_sum, &dx, 1, NULL, 0)));
}

/* Sums over the copies, axis by axis. */
void berth__grad_of_tile(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__TILE_X);
  const berth__shape shape = berth__grad_shape(d, x);
  berth_value dy = berth__grad_dy(d);
  berth__grad_list repeats;
  if (!berth__grad_fixed(d, x) || !berth__grad_read_list(d, BERTH__TILE_REPEATS_OPERAND, BERTH__TILE_REPEATS, &repeats))
    return;
  for (uint32_t axis = 0; axis < shape.rank && axis < repeats.n && berth__grad_ok(d); axis++) {
    berth__shape copies = berth__grad_shape(d, dy);
    const int64_t over[] = {axis};
    if (repeats.entry[axis] == 1) continue;
    if (copies.rank == BERTH_MAX_RANK) { /* no axis to spare: the axes after it are joined */
      berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient of a tile of %d axes is not supported", BERTH_MAX_RANK);
      return;
    }
    for (uint32_t i = copies.rank; i > axis; i--) copies.dim[i] = copies.dim[i - 1];
    copies.dim[axis] = repeats.entry[axis];
    copies.dim[axis + 1] = shape.dim[axis];
    copies.rank++;
    dy = berth__grad_reduce(d, BERTH__OP_reduce_sum, berth__grad_reshape(d, dy, &copies), over, 1, false);
  }
  berth__grad_give(d, BERTH__TILE_X, dy);
}
