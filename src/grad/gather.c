/* Gradients of gathering and scattering elements by index: each is the reverse of the other. Indices have no
 * gradient. */
#include "grad/grad.h"

static berth_value grad_scatter_nd(berth__grad *d, berth_value x, berth_value indices, berth_value updates,
                                   const char *reduction) {
  const berth_value in[] = {x, indices, updates};
  const berth_attr attr = berth_attr_string("reduction", reduction);
  return berth__grad_op(d, BERTH__OP_scatter_nd, in, 3, &attr, 1);
}

/* The gradient of a value so far, if more can be added to it; a loop's body adds only to its own. */
static berth_value grad_so_far(const berth__grad *d, berth_value value) {
  if (!berth__grad_ok(d) || value >= d->n || d->of[value] == BERTH_VALUE_NONE) return BERTH_VALUE_NONE;
  for (size_t n = 0; n < d->graph->n_nodes; n++)
    if (d->graph->nodes[n].op->family->is_loop) return BERTH_VALUE_NONE;
  return d->of[value];
}

/* gather along an axis, and embedding, which is gather along the first: with that axis in front, the rows that the
 * indices name get the gradients of the slices. They are added to the existing gradient: a table shared with the last
 * product of a language model has one, and a second one of its size is not needed. */
void berth__grad_of_gather(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__GATHER_X), indices = berth__grad_in(d, BERTH__GATHER_INDICES);
  const uint32_t rank = berth__grad_rank(d, x), n = berth__grad_rank(d, indices);
  const bool has_axis = d->node.op->code == BERTH__OP_gather;
  const uint32_t axis = has_axis ? berth__grad_axis(d, d->node.attrs[BERTH__GATHER_AXIS].i, rank) : 0;
  const int64_t last = -1;
  int64_t front[BERTH_MAX_RANK] = {0};
  berth_value dy = berth__grad_dy(d);
  const berth_value so_far = axis == 0 && berth__grad_wants(d, BERTH__GATHER_X) ? grad_so_far(d, x) : BERTH_VALUE_NONE;
  if (so_far != BERTH_VALUE_NONE) {
    const berth_value all = grad_scatter_nd(d, so_far, berth__grad_unsqueeze(d, indices, &last, 1), dy, "add");
    if (berth__grad_ok(d)) d->of[x] = all;
    return;
  }
  berth_value zeros = berth__grad_zeros_like(d, x);
  if (axis != 0 && berth__grad_ok(d)) { /* the axes of the indices come first */
    for (uint32_t i = 0; i < rank - 1 + n; i++) front[i] = i < n ? axis + i : i < n + axis ? i - n : i;
    dy = berth__grad_transpose(d, dy, front);
    zeros = berth__grad_move_axis(d, zeros, axis, 0);
  }
  const berth_value sum = grad_scatter_nd(d, zeros, berth__grad_unsqueeze(d, indices, &last, 1), dy, "add");
  berth__grad_give(d, BERTH__GATHER_X, berth__grad_move_axis(d, sum, 0, axis));
}

static berth_value grad_scatter(berth__grad *d, berth_value x, berth_value indices, berth_value updates, int64_t axis,
                                const char *reduction) {
  const berth_value in[] = {x, indices, updates};
  const berth_attr attrs[2] = {berth_attr_int("axis", axis), berth_attr_string("reduction", reduction)};
  return berth__grad_op(d, BERTH__OP_scatter, in, 3, attrs, 2);
}

void berth__grad_of_gather_elements(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__GATHER_X), indices = berth__grad_in(d, BERTH__GATHER_INDICES);
  berth__grad_give(d, BERTH__GATHER_X,
                   grad_scatter(d, berth__grad_zeros_like(d, x), indices, berth__grad_dy(d),
                                d->node.attrs[BERTH__GATHER_ELEMENTS_AXIS].i, "add"));
}

/* Prepends the first `n` (batch) axes to the tuples of indices, because scatter_nd has no batch axes. */
static berth_value grad_whole_tuples(berth__grad *d, berth_value indices, uint32_t n) {
  const berth__shape shape = berth__grad_shape(d, indices);
  const int64_t last = -1, axis = (int64_t)shape.rank - 1;
  const berth_attr along = berth_attr_int("axis", axis);
  const berth_type type = berth__grad_type(d, indices);
  if (n == 0 || !berth__grad_fixed(d, indices)) return indices;
  const berth_value like = berth__grad_narrow(d, indices, (uint32_t)axis, 0, 1);
  for (uint32_t i = n; i-- > 0 && berth__grad_ok(d);) {
    const berth_value bounds[] = {berth__grad_scalar(d, type, 0), berth__grad_scalar(d, type, (double)shape.dim[i]),
                                  berth__grad_scalar(d, type, 1)};
    berth_value count = berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0);
    for (uint32_t k = i + 1; k < shape.rank; k++) count = berth__grad_unsqueeze(d, count, &last, 1);
    const berth_value parts[] = {berth__grad_expand_like(d, count, like), indices};
    indices = berth__grad_op(d, BERTH__OP_concat, parts, 2, &along, 1);
  }
  return indices;
}

void berth__grad_of_gather_nd(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__GATHER_X);
  const uint32_t shared = (uint32_t)d->node.attrs[BERTH__GATHER_ND_BATCH_DIMS].i;
  const berth_value indices = grad_whole_tuples(d, berth__grad_in(d, BERTH__GATHER_INDICES), shared);
  berth__grad_give(d, BERTH__GATHER_X,
                   grad_scatter_nd(d, berth__grad_zeros_like(d, x), indices, berth__grad_dy(d), "add"));
}

/* ---- scatter and scatter_nd: their effect, and how positions of a tensor are read ---- */

static bool grad_is_nd(const berth__grad *d) { return d->node.op->code == BERTH__OP_scatter_nd; }

static berth_value grad_put(berth__grad *d, berth_value x, berth_value updates, const char *reduction) {
  const berth_value indices = berth__grad_in(d, BERTH__SCATTER_INDICES);
  return grad_is_nd(d) ? grad_scatter_nd(d, x, indices, updates, reduction)
                       : grad_scatter(d, x, indices, updates, d->node.attrs[BERTH__SCATTER_AXIS].i, reduction);
}

static berth_value grad_pick(berth__grad *d, berth_value from) {
  const berth_value in[] = {from, berth__grad_in(d, BERTH__SCATTER_INDICES)};
  if (grad_is_nd(d)) return berth__grad_op(d, BERTH__OP_gather_nd, in, 2, NULL, 0);
  const berth_attr axis = berth_attr_int("axis", d->node.attrs[BERTH__SCATTER_AXIS].i);
  return berth__grad_op(d, BERTH__OP_gather_elements, in, 2, &axis, 1);
}

/* Which updates survive: if an index occurs twice, the last one. Every update is numbered, scattered, and looked up. */
static berth_value grad_stayed(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__SCATTER_X), updates = berth__grad_in(d, BERTH__SCATTER_UPDATES);
  berth__shape shape = berth__grad_shape(d, updates);
  int64_t count = 0;
  if (!berth__grad_fixed(d, updates) || !berth__shape_count(&shape, &count)) return BERTH_VALUE_NONE;
  const berth_value bounds[] = {berth__grad_scalar(d, BERTH_I64, 0), berth__grad_scalar(d, BERTH_I64, (double)count),
                                berth__grad_scalar(d, BERTH_I64, 1)};
  const berth_value numbers = berth__grad_reshape(d, berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0), &shape);
  const berth_value none = berth__grad_expand_like(d, berth__grad_scalar(d, BERTH_I64, -1), x);
  return berth__grad_2(d, BERTH__OP_eq, grad_pick(d, grad_put(d, none, numbers, "none")), numbers);
}

static void grad_scatter_assigned(berth__grad *d) {
  const berth_value dy = berth__grad_dy(d), updates = berth__grad_in(d, BERTH__SCATTER_UPDATES);
  if (berth__grad_wants(d, BERTH__SCATTER_X))
    berth__grad_give(d, BERTH__SCATTER_X, grad_put(d, dy, berth__grad_full_like(d, updates, 0), "none"));
  if (berth__grad_wants(d, BERTH__SCATTER_UPDATES))
    berth__grad_give(
        d, BERTH__SCATTER_UPDATES,
        berth__grad_where(d, grad_stayed(d), grad_pick(d, dy), berth__grad_scalar(d, berth__grad_type(d, dy), 0)));
}

/* dy y, divided by the differentiated value. */
static void grad_scatter_product(berth__grad *d) {
  const berth_value share = berth__grad_mul(d, berth__grad_dy(d), berth__grad_out(d));
  if (berth__grad_wants(d, BERTH__SCATTER_X)) {
    const berth_value x = berth__grad_in(d, BERTH__SCATTER_X);
    const berth_value factor =
        grad_put(d, berth__grad_full_like(d, x, 1), berth__grad_in(d, BERTH__SCATTER_UPDATES), "mul");
    berth__grad_give(d, BERTH__SCATTER_X, berth__grad_mul(d, berth__grad_dy(d), factor));
  }
  if (berth__grad_wants(d, BERTH__SCATTER_UPDATES))
    berth__grad_give(d, BERTH__SCATTER_UPDATES,
                     berth__grad_div(d, grad_pick(d, share), berth__grad_in(d, BERTH__SCATTER_UPDATES)));
}

/* max and min: equal shares for all that equal the result. */
static void grad_scatter_extreme(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__SCATTER_X), y = berth__grad_out(d);
  const berth_type type = berth__grad_type(d, x);
  const berth_value of_x = berth__grad_cast(d, berth__grad_2(d, BERTH__OP_eq, x, y), type);
  const berth_value of_updates = berth__grad_cast(
      d, berth__grad_2(d, BERTH__OP_eq, berth__grad_in(d, BERTH__SCATTER_UPDATES), grad_pick(d, y)), type);
  const berth_value share = berth__grad_div(d, berth__grad_dy(d), grad_put(d, of_x, of_updates, "add"));
  berth__grad_give(d, BERTH__SCATTER_X, berth__grad_mul(d, of_x, share));
  if (berth__grad_wants(d, BERTH__SCATTER_UPDATES))
    berth__grad_give(d, BERTH__SCATTER_UPDATES, berth__grad_mul(d, of_updates, grad_pick(d, share)));
}

void berth__grad_of_scatter(berth__grad *d) {
  const char *reduction = d->node.attrs[grad_is_nd(d) ? BERTH__SCATTER_ND_REDUCTION : BERTH__SCATTER_REDUCTION].s;
  if (strcmp(reduction, "none") == 0) {
    grad_scatter_assigned(d);
  } else if (strcmp(reduction, "add") == 0) {
    const berth_value dy = berth__grad_dy(d);
    berth__grad_give(d, BERTH__SCATTER_X, dy);
    if (berth__grad_wants(d, BERTH__SCATTER_UPDATES)) berth__grad_give(d, BERTH__SCATTER_UPDATES, grad_pick(d, dy));
  } else if (strcmp(reduction, "mul") == 0) {
    grad_scatter_product(d);
  } else {
    grad_scatter_extreme(d);
  }
}
