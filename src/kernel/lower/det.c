/* det: one thread per matrix, which it eliminates in its part of the scratch. */
#include "base/math.h"
#include "kernel/lower.h"

static int64_t lower_det_order_of(const berth_op_call *call) { return call->in[0].dim[call->in[0].rank - 1]; }

uint64_t berth__scratch_of_det(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  uint64_t bytes;
  return berth__mul_u64((uint64_t)berth__count(&call->in[0]), 4, &bytes) ? bytes : UINT64_MAX;
}

typedef struct work {
  berth__kernel *k;
  uint32_t scratch;
  int64_t n;
  berth__x first;   /* offset of the matrix in scratch */
  berth__x product; /* a variable */
} work;

static berth__x lower_det_place(const work *w, berth__x row, berth__x column) {
  return berth__x_add(w->k, w->first, berth__x_add(w->k, berth__x_affine(w->k, row, w->n, 0), column));
}

static berth__x get(const work *w, berth__x row, berth__x column) {
  return berth__x_load(w->k, w->scratch, lower_det_place(w, row, column));
}

static berth__x lower_det_size_of(const work *w, berth__x row, berth__x column) {
  return berth__x1(w->k, BERTH__INST_abs, get(w, row, column));
}

/* The row with the largest element in a column, from the diagonal on. */
static berth__x lower_det_pivot_row(const work *w, berth__x column) {
  berth__kernel *k = w->k;
  const berth__x best = berth__x_variable(k, column);
  const berth__x row = berth__x_loop(k, berth__x_affine(k, column, 1, 1), berth__x_i32(k, w->n), 1);
  const berth__x so_far = berth__x_get(k, best);
  const berth__x is_larger = berth__x_lt(k, lower_det_size_of(w, so_far, column), lower_det_size_of(w, row, column));
  berth__x_set(k, best, berth__x_select(k, is_larger, row, so_far));
  berth__x_end(k);
  return berth__x_get(k, best);
}

/* Swapping two rows changes the sign. */
static void lower_det_swap_rows(const work *w, berth__x a, berth__x b) {
  berth__kernel *k = w->k;
  berth__x_if(k, berth__x_ne(k, a, b));
  const berth__x i = berth__x_loop_n(k, w->n), kept = get(w, a, i);
  berth__x_store(k, w->scratch, lower_det_place(w, a, i), get(w, b, i));
  berth__x_store(k, w->scratch, lower_det_place(w, b, i), kept);
  berth__x_end(k);
  berth__x_set(k, w->product, berth__x1(k, BERTH__INST_neg, berth__x_get(k, w->product)));
  berth__x_end(k);
}

static void eliminate(const work *w, berth__x column, berth__x pivot) {
  berth__kernel *k = w->k;
  const berth__x row = berth__x_loop(k, berth__x_affine(k, column, 1, 1), berth__x_i32(k, w->n), 1);
  const berth__x factor = berth__x_div(k, get(w, row, column), pivot);
  const berth__x i = berth__x_loop(k, column, berth__x_i32(k, w->n), 1);
  const berth__x less = berth__x_mul(k, factor, get(w, column, i));
  berth__x_store(k, w->scratch, lower_det_place(w, row, i), berth__x_sub(k, get(w, row, i), less));
  berth__x_end(k);
  berth__x_end(k);
}

static void multiply_pivots(const work *w) {
  berth__kernel *k = w->k;
  const berth__x column = berth__x_loop_n(k, w->n);
  lower_det_swap_rows(w, lower_det_pivot_row(w, column), column);
  const berth__x pivot = get(w, column, column);
  berth__x_set(k, w->product, berth__x_mul(k, berth__x_get(k, w->product), pivot));
  berth__x_if(k, berth__x_eq(k, pivot, berth__x_f32(k, 0)));
  berth__x_break(k);
  berth__x_end(k);
  eliminate(w, column, pivot);
  berth__x_end(k);
}

berth_status berth__lower_det(berth__lowering *l, berth_error *err) {
  const int64_t n = lower_det_order_of(l->call), count = berth__count(&l->call->out[0]);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const berth__x matrix = berth__l_each(l, k, count);
  k->flops = 2.0 / 3 * (double)count * (double)n * (double)n * (double)n;
  k->bytes = berth__l_bytes(l, 0) + berth__l_bytes(l, berth__operand_out(l->call, 0));
  work w = {.k = k, .n = n, .first = berth__x_affine(k, matrix, n * n, 0)};
  w.product = berth__x_variable(k, berth__x_f32(k, 1));
  if (n > 0) {
    w.scratch = berth__l_scratch(k, BERTH_F32);
    const berth__x i = berth__x_loop_n(k, n * n), at = berth__x_add(k, w.first, i);
    berth__x_store(k, w.scratch, at, berth__l_load(l, k, 0, berth__l_place_flat(k, &l->call->in[0], at)));
    berth__x_end(k);
    multiply_pivots(&w);
  }
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], matrix), berth__x_get(k, w.product));
  return berth__l_end(l, k, err);
}
