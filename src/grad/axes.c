/* Gradients of ops along axes: reductions, softmax, running sums and products, top_k. */
#include "grad/grad.h"

/* The axes of a reduction, none negative; all axes if it names none. */
static bool grad_reduced_axes(berth__grad *d, berth__grad_list *axes) {
  const uint32_t rank = berth__grad_rank(d, berth__grad_in(d, BERTH__REDUCE_X));
  if (!berth__grad_read_list(d, BERTH__REDUCE_AXES_OPERAND, BERTH__REDUCE_AXES, axes)) return false;
  for (uint32_t i = 0; i < axes->n; i++) axes->entry[i] = berth__grad_axis(d, axes->entry[i], rank);
  if (axes->n == 0)
    for (; axes->n < rank; axes->n++) axes->entry[axes->n] = axes->n;
  for (uint32_t i = 1; i < axes->n; i++) /* ascending, as unsqueeze requires */
    for (uint32_t k = i; k > 0 && axes->entry[k] < axes->entry[k - 1]; k--) {
      const int64_t swapped = axes->entry[k];
      axes->entry[k] = axes->entry[k - 1];
      axes->entry[k - 1] = swapped;
    }
  return berth__grad_ok(d);
}

/* A result of the reduction with the reduced axes restored as axes of extent 1. */
static berth_value grad_kept(berth__grad *d, berth_value y, const berth__grad_list *axes) {
  return d->node.attrs[BERTH__REDUCE_KEEPDIMS].i != 0 ? y : berth__grad_unsqueeze(d, y, axes->entry, axes->n);
}

void berth__grad_of_reduce(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__REDUCE_X);
  berth_value dy = berth__grad_dy(d);
  berth__grad_list axes;
  if (!grad_reduced_axes(d, &axes)) return;
  if (d->node.op->code == BERTH__OP_reduce_mean)
    dy = berth__grad_div(d, dy, berth__grad_ratio(d, x, berth__grad_out(d)));
  berth__grad_give(d, BERTH__REDUCE_X, berth__grad_expand_like(d, grad_kept(d, dy, &axes), x));
}

/* Equal shares for all elements that equal the maximum (minimum). */
void berth__grad_of_reduce_extreme(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__REDUCE_X), dy = berth__grad_dy(d);
  berth__grad_list axes;
  if (!grad_reduced_axes(d, &axes)) return;
  const berth_value is_it = berth__grad_2(d, BERTH__OP_eq, x, grad_kept(d, berth__grad_out(d), &axes));
  const berth_value mask = berth__grad_cast(d, is_it, berth__grad_type(d, x));
  const berth_value count = berth__grad_reduce(d, BERTH__OP_reduce_sum, mask, axes.entry, axes.n, true);
  berth__grad_give(d, BERTH__REDUCE_X, berth__grad_mul(d, mask, berth__grad_div(d, grad_kept(d, dy, &axes), count)));
}

static berth_value grad_run_products(berth__grad *d, berth_value x, int64_t axis, bool backwards) {
  const berth_attr attrs[3] = {berth_attr_int("axis", axis), berth_attr_int("exclusive", 1),
                               berth_attr_int("reverse", backwards)};
  return berth__grad_op(d, BERTH__OP_cumprod, &x, 1, attrs, 3);
}

/* The product of all other elements: of those before and those after it, so that zeros do no harm. */
static berth_value grad_product_of_others(berth__grad *d, berth_value x, int64_t axis) {
  return berth__grad_mul(d, grad_run_products(d, x, axis, false), grad_run_products(d, x, axis, true));
}

/* Joins several axes into one, the last. */
void berth__grad_of_reduce_prod(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__REDUCE_X), dy = berth__grad_dy(d);
  int64_t perm[BERTH_MAX_RANK] = {0}, back[BERTH_MAX_RANK] = {0};
  berth__grad_list axes;
  uint32_t n = 0;
  if (!grad_reduced_axes(d, &axes)) return;
  const berth_value spread = grad_kept(d, dy, &axes);
  if (axes.n <= 1) {
    const berth_value rest = axes.n == 0 ? dy : berth__grad_mul(d, spread, grad_product_of_others(d, x, axes.entry[0]));
    berth__grad_give(d, BERTH__REDUCE_X, rest);
    return;
  }
  if (!berth__grad_fixed(d, x)) return;
  const berth__shape shape = berth__grad_shape(d, x);
  berth__shape line = {.rank = shape.rank - axes.n + 1, .dim = {0}};
  for (uint32_t i = 0, k = 0; i < shape.rank; i++) {
    if (k < axes.n && axes.entry[k] == i)
      k++;
    else
      line.dim[n] = shape.dim[i], perm[n++] = i;
  }
  line.dim[line.rank - 1] = 1;
  for (uint32_t k = 0; k < axes.n; k++) line.dim[line.rank - 1] *= shape.dim[axes.entry[k]], perm[n++] = axes.entry[k];
  for (uint32_t i = 0; i < shape.rank; i++) back[perm[i]] = i;
  const berth_value moved = berth__grad_transpose(d, x, perm);
  const berth_value others = grad_product_of_others(d, berth__grad_reshape(d, moved, &line), (int64_t)line.rank - 1);
  const berth_value placed = berth__grad_transpose(d, berth__grad_reshape_like(d, others, moved), back);
  berth__grad_give(d, BERTH__REDUCE_X, berth__grad_mul(d, spread, placed));
}

void berth__grad_of_softmax(berth__grad *d) {
  const berth_value y = berth__grad_out(d), dy = berth__grad_dy(d);
  const int64_t axis = d->node.attrs[BERTH__SOFTMAX_AXIS].i;
  if (d->node.op->code == BERTH__OP_log_softmax) {
    const berth_value sum = berth__grad_reduce(d, BERTH__OP_reduce_sum, dy, &axis, 1, true);
    const berth_value p = berth__grad_1(d, BERTH__OP_exp, y);
    berth__grad_give(d, 0, berth__grad_sub(d, dy, berth__grad_mul(d, p, sum)));
    return;
  }
  const berth_value sum = berth__grad_reduce(d, BERTH__OP_reduce_sum, berth__grad_mul(d, dy, y), &axis, 1, true);
  berth__grad_give(d, 0, berth__grad_mul(d, y, berth__grad_sub(d, dy, sum)));
}

/* Running sums in the opposite direction. */
void berth__grad_of_cumsum(berth__grad *d) {
  const bool has_axis = berth__grad_has(d, BERTH__CUMSUM_AXIS_OPERAND);
  const berth_value in[] = {berth__grad_dy(d), has_axis ? berth__grad_in(d, BERTH__CUMSUM_AXIS_OPERAND) : 0};
  const berth_attr attrs[3] = {berth_attr_int("exclusive", d->node.attrs[BERTH__CUMSUM_EXCLUSIVE].i),
                               berth_attr_int("reverse", d->node.attrs[BERTH__CUMSUM_REVERSE].i == 0),
                               berth_attr_int("axis", d->node.attrs[BERTH__CUMSUM_AXIS].i)};
  berth__grad_give(d, BERTH__CUMSUM_X, berth__grad_op(d, BERTH__OP_cumsum, in, has_axis ? 2 : 1, attrs, 3));
}

/* Row i of a square: 1 where element k is a factor of running product i. */
static berth_value grad_taken(berth__grad *d, int64_t n) {
  const bool is_exclusive = d->node.attrs[BERTH__CUMSUM_EXCLUSIVE].i != 0;
  const bool is_reverse = d->node.attrs[BERTH__CUMSUM_REVERSE].i != 0;
  const int64_t dim[] = {n, n};
  double *taken = berth__alloc_array(d->graph->ctx, (size_t)n * (size_t)n, sizeof *taken);
  if (taken == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n; k++)
      taken[i * n + k] = is_reverse ? (is_exclusive ? k > i : k >= i) : (is_exclusive ? k < i : k <= i);
  const berth_value out = berth__grad_tensor(d, BERTH_BOOL, 2, dim, taken);
  berth__free(d->graph->ctx, taken);
  return out;
}

/* One product per element, over its part of the line: also correct for lines with zeros. */
void berth__grad_of_cumprod(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const berth_value x = berth__grad_in(d, BERTH__CUMSUM_X);
  const uint32_t rank = berth__grad_rank(d, x);
  berth__grad_list given;
  int64_t axis = d->node.attrs[BERTH__CUMSUM_AXIS].i, last = -1, row = -2;
  if (!berth__grad_fixed(d, x)) return;
  if (berth__grad_has(d, BERTH__CUMSUM_AXIS_OPERAND)) {
    if (!berth__grad_read_list(d, BERTH__CUMSUM_AXIS_OPERAND, BERTH__CUMSUM_AXIS, &given)) return;
    axis = given.entry[0];
  }
  const uint32_t place = berth__grad_axis(d, axis, rank);
  const berth_value lines = berth__grad_move_axis(d, x, place, rank - 1);
  const berth_value taken = grad_taken(d, berth__grad_shape(d, x).dim[place]);
  const berth_value one = berth__grad_scalar(d, berth__grad_type(d, x), 1);
  const berth_value square = berth__grad_where(d, taken, berth__grad_unsqueeze(d, lines, &row, 1), one);
  const berth_value made = berth__grad_reduce(d, BERTH__OP_reduce_prod, square, &last, 1, false);
  const berth_value y = berth__grad_move_axis(d, made, rank - 1, place);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

/* Scatters back to the original positions, which are all different. */
void berth__grad_of_top_k(berth__grad *d) {
  const berth_value x = berth__grad_in(d, BERTH__TOP_K_X);
  const berth_value in[] = {berth__grad_zeros_like(d, x), d->node.out[1], berth__grad_dy(d)};
  const berth_attr attrs[2] = {berth_attr_int("axis", d->node.attrs[BERTH__TOP_K_AXIS].i),
                               berth_attr_string("reduction", "add")};
  berth__grad_give(d, BERTH__TOP_K_X, berth__grad_op(d, BERTH__OP_scatter, in, 3, attrs, 2));
}
