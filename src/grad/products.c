/* Gradients of products: matmul and det. */
#include "grad/grad.h"

/* matmul of operands with at least two axes: a [..., M, K], b [..., K, N] and dy [..., M, N]. */
static berth_value grad_matmul_a(berth__grad *d, berth_value b, berth_value dy) {
  return berth__grad_2(d, BERTH__OP_matmul, dy, berth__grad_swap_last(d, b));
}

/* Joins all axes but the last. */
static berth_value grad_as_rows(berth__grad *d, berth_value a) {
  const berth__shape shape = berth__grad_shape(d, a);
  if (!berth__grad_ok(d) || shape.rank <= 2) return a;
  const berth_shape shown = berth__shape_export(d->graph, &shape);
  const berth_dim dims[] = {{NULL, -1}, shown.dim[shape.rank - 1]};
  const berth_attr attr = berth_attr_dims("shape", dims, 2);
  return berth__grad_op(d, BERTH__OP_reshape, &a, 1, &attr, 1);
}

static bool grad_is_turned(const berth__grad *d, berth_value a) {
  const berth__value *value = &d->graph->values[a];
  return value->kind == BERTH_VALUE_NODE && d->graph->nodes[value->node].op->code == BERTH__OP_transpose;
}

/* A weight shared by all rows takes one product over all of them, instead of one per batch entry. The gradient of a
 * transposed weight is computed transposed: then the weight itself gets its gradient in its own layout. */
static berth_value grad_matmul_b(berth__grad *d, berth_value a, berth_value b, berth_value dy) {
  const berth__shape of_a = berth__grad_shape(d, a), of_dy = berth__grad_shape(d, dy);
  int64_t count;
  if (berth__grad_rank(d, b) == 2 && of_a.rank > 2 && berth__shape_count(&of_a, &count) && count > 0 &&
      berth__shape_count(&of_dy, &count) && count > 0) {
    a = grad_as_rows(d, a);
    dy = grad_as_rows(d, dy);
  }
  if (berth__grad_ok(d) && grad_is_turned(d, b))
    return berth__grad_swap_last(d, berth__grad_2(d, BERTH__OP_matmul, berth__grad_swap_last(d, dy), a));
  return berth__grad_2(d, BERTH__OP_matmul, berth__grad_swap_last(d, a), dy);
}

void berth__grad_of_matmul(berth__grad *d) {
  berth_value a = berth__grad_in(d, 0), b = berth__grad_in(d, 1), dy = berth__grad_dy(d);
  const bool is_row = berth__grad_rank(d, a) == 1, is_column = berth__grad_rank(d, b) == 1;
  const int64_t first = 0, last = -1, row = is_column ? -1 : -2;
  if (is_column) b = berth__grad_unsqueeze(d, b, &last, 1);
  if (is_row) a = berth__grad_unsqueeze(d, a, &first, 1);
  if (is_row) dy = berth__grad_unsqueeze(d, dy, &row, 1);
  if (is_column) dy = berth__grad_unsqueeze(d, dy, &last, 1);
  if (berth__grad_wants(d, 0)) {
    berth_value da = grad_matmul_a(d, b, dy);
    if (is_row) da = berth__grad_sum_to(d, da, a);
    berth__grad_give(d, 0, is_row ? berth__grad_reshape_like(d, da, berth__grad_in(d, 0)) : da);
  }
  if (berth__grad_wants(d, 1)) {
    berth_value db = grad_matmul_b(d, a, b, dy);
    if (is_column) db = berth__grad_sum_to(d, db, b);
    berth__grad_give(d, 1, is_column ? berth__grad_reshape_like(d, db, berth__grad_in(d, 1)) : db);
  }
}

/* [n, n - 1]: row i is 0, 1, ... without i. */
static berth_value grad_all_but(berth__grad *d, int64_t n) {
  const int64_t dim[] = {n, n - 1};
  double *entries = berth__alloc_array(d->graph->ctx, (size_t)(n * (n - 1)), sizeof *entries);
  if (entries == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < n; i++)
    for (int64_t k = 0; k < n - 1; k++) entries[i * (n - 1) + k] = (double)(k < i ? k : k + 1);
  const berth_value out = berth__grad_tensor(d, BERTH_I64, 2, dim, entries);
  berth__free(d->graph->ctx, entries);
  return out;
}

/* 1 and -1 in a checkerboard pattern. */
static berth_value grad_signs(berth__grad *d, berth_type type, int64_t n) {
  const int64_t dim[] = {n, n};
  double *entries = berth__alloc_array(d->graph->ctx, (size_t)(n * n), sizeof *entries);
  if (entries == NULL) {
    d->status = berth__fail_nomem(d->err, "a gradient");
    return BERTH_VALUE_NONE;
  }
  for (int64_t i = 0; i < n * n; i++) entries[i] = (i / n + i % n) % 2 == 0 ? 1 : -1;
  const berth_value out = berth__grad_tensor(d, type, 2, dim, entries);
  berth__free(d->graph->ctx, entries);
  return out;
}

/* The determinants of x without row i and column k: also correct for singular matrices. */
static berth_value grad_cofactors(berth__grad *d, berth_value x, int64_t n) {
  const uint32_t rank = berth__grad_rank(d, x);
  const berth_value others = grad_all_but(d, n);
  const berth_attr rows = berth_attr_int("axis", (int64_t)rank - 2), columns = berth_attr_int("axis", rank);
  int64_t perm[BERTH_MAX_RANK] = {0};
  const berth_value of_rows[] = {x, others};
  const berth_value picked = berth__grad_op(d, BERTH__OP_gather, of_rows, 2, &rows, 1); /* [..., n, n - 1, n] */
  const berth_value of_columns[] = {picked, others};
  const berth_value minors = berth__grad_op(d, BERTH__OP_gather, of_columns, 2, &columns, 1);
  for (uint32_t i = 0; i < rank + 2; i++) perm[i] = i;
  perm[rank - 1] = rank;
  perm[rank] = rank - 1;
  const berth_value dets = berth__grad_1(d, BERTH__OP_det, berth__grad_transpose(d, minors, perm));
  return berth__grad_mul(d, dets, grad_signs(d, berth__grad_type(d, x), n));
}

void berth__grad_of_det(berth__grad *d) {
  const berth_value x = berth__grad_in(d, 0);
  const uint32_t rank = berth__grad_rank(d, x);
  const int64_t axes[] = {-2, -1};
  if (!berth__grad_fixed(d, x)) return;
  const int64_t n = berth__grad_shape(d, x).dim[rank - 1];
  if (rank + 2 > BERTH_MAX_RANK) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "its gradient needs two more axes than are supported");
    return;
  }
  const berth_value dy = berth__grad_unsqueeze(d, berth__grad_dy(d), axes, 2);
  berth__grad_give(d, 0, n == 1 ? dy : berth__grad_mul(d, dy, grad_cofactors(d, x, n)));
}
