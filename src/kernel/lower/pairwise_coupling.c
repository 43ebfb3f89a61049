/* pairwise_coupling: one thread per row, with its matrix in scratch (ops/coupling.h). */
#include "kernel/lower/math.h"
#include "ops/coupling.h"

typedef struct coupling {
  berth__lowering *l;
  berth__kernel *k;
  int64_t n;
  uint32_t scratch;
  berth__x row, first; /* first: index of the row's first word */
  berth__x pqp;        /* variable */
} coupling;

uint64_t berth__scratch_of_pairwise_coupling(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  return (uint64_t)call->in[0].dim[0] * (uint64_t)berth__coupling_room(call->attrs[BERTH__COUPLING_CLASSES].i) * 4;
}

static berth__x coupling_q(const coupling *c, berth__x i, berth__x j) {
  return berth__x_add(c->k, c->first, berth__x_add(c->k, berth__x_affine(c->k, i, c->n, 0), j));
}

static berth__x coupling_qp(const coupling *c, berth__x i) {
  return berth__x_add(c->k, c->first, berth__x_affine(c->k, i, 1, c->n * c->n));
}

static berth__x coupling_p(const coupling *c, berth__x i) {
  return berth__l_place(c->k, &c->l->call->out[0], (berth__x[]){c->row, i});
}

static berth__x coupling_load(const coupling *c, berth__x at) { return berth__x_load(c->k, c->scratch, at); }

static berth__x coupling_load_p(const coupling *c, berth__x i) {
  return berth__x_load(c->k, berth__l_out(c->l, c->k, 0), coupling_p(c, i));
}

static void coupling_store_p(const coupling *c, berth__x i, berth__x value) {
  berth__x_store(c->k, berth__l_out(c->l, c->k, 0), coupling_p(c, i), value);
}

static void coupling_add(const coupling *c, berth__x at, berth__x value) {
  berth__x_store(c->k, c->scratch, at, berth__x_add(c->k, coupling_load(c, at), value));
}

static void coupling_matrix(const coupling *c) {
  berth__kernel *k = c->k;
  const berth__x n = berth__x_i32(k, c->n), one = berth__x_f32(k, 1);
  const berth__x each = berth__x_loop_n(k, c->n);
  berth__x_store(k, c->scratch, coupling_q(c, each, each), berth__x_f32(k, 0));
  coupling_store_p(c, each, berth__x_f32(k, 1 / (float)c->n));
  berth__x_end(k);
  const berth__x pair = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x i = berth__x_loop_n(k, c->n);
  const berth__x j = berth__x_loop(k, berth__x_affine(k, i, 1, 1), n, 1);
  const berth__x at = berth__x_get(k, pair);
  const berth__x r = berth__l_load(c->l, k, 0, berth__l_place(k, &c->l->call->in[0], (berth__x[]){c->row, at}));
  const berth__x other = berth__x_sub(k, one, r);
  const berth__x both = berth__x1(k, BERTH__INST_neg, berth__x_mul(k, other, r));
  coupling_add(c, coupling_q(c, i, i), berth__x_mul(k, other, other));
  coupling_add(c, coupling_q(c, j, j), berth__x_mul(k, r, r));
  berth__x_store(k, c->scratch, coupling_q(c, i, j), both);
  berth__x_store(k, c->scratch, coupling_q(c, j, i), both);
  berth__x_set(k, pair, berth__x_affine(k, at, 1, 1));
  berth__x_end(k);
  berth__x_end(k);
}

/* Recomputes Q p and p Q p, and returns the largest error. */
static berth__x coupling_error(const coupling *c) {
  berth__kernel *k = c->k;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0)), most = berth__x_variable(k, berth__x_f32(k, 0));
  berth__x_set(k, c->pqp, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, c->n);
  berth__x_set(k, sum, berth__x_f32(k, 0));
  const berth__x j = berth__x_loop_n(k, c->n);
  const berth__x term = berth__x_mul(k, coupling_load(c, coupling_q(c, i, j)), coupling_load_p(c, j));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), term));
  berth__x_end(k);
  berth__x_store(k, c->scratch, coupling_qp(c, i), berth__x_get(k, sum));
  const berth__x part = berth__x_mul(k, coupling_load_p(c, i), berth__x_get(k, sum));
  berth__x_set(k, c->pqp, berth__x_add(k, berth__x_get(k, c->pqp), part));
  berth__x_end(k);
  berth__x_set(k, most, berth__x_f32(k, 0));
  const berth__x each = berth__x_loop_n(k, c->n);
  const berth__x off = berth__x_sub(k, coupling_load(c, coupling_qp(c, each)), berth__x_get(k, c->pqp));
  const berth__x error = berth__x1(k, BERTH__INST_abs, off), held = berth__x_get(k, most);
  berth__x_set(k, most,
               berth__x_select(k, berth__x_lt(k, held, error), error, held)); /* NaN does not count, as on the CPU */
  berth__x_end(k);
  return berth__x_get(k, most);
}

/* Updates the probability of class i, and rescales the others. */
static void coupling_step(const coupling *c, berth__x i) {
  berth__kernel *k = c->k;
  const berth__x pqp = berth__x_get(k, c->pqp), qp = coupling_load(c, coupling_qp(c, i));
  const berth__x q = coupling_load(c, coupling_q(c, i, i));
  const berth__x step = berth__x_div(k, berth__x_sub(k, pqp, qp), q);
  const berth__x whole = berth__x_add(k, berth__x_f32(k, 1), step);
  coupling_store_p(c, i, berth__x_add(k, coupling_load_p(c, i), step));
  const berth__x inner = berth__x_add(k, berth__x_mul(k, step, q), berth__x_mul(k, berth__x_f32(k, 2), qp));
  const berth__x next = berth__x_add(k, pqp, berth__x_mul(k, step, inner));
  berth__x_set(k, c->pqp, berth__x_div(k, berth__x_div(k, next, whole), whole));
  const berth__x j = berth__x_loop_n(k, c->n);
  const berth__x moved = berth__x_add(k, coupling_load(c, coupling_qp(c, j)),
                                      berth__x_mul(k, step, coupling_load(c, coupling_q(c, i, j))));
  berth__x_store(k, c->scratch, coupling_qp(c, j), berth__x_div(k, moved, whole));
  coupling_store_p(c, j, berth__x_div(k, coupling_load_p(c, j), whole));
  berth__x_end(k);
}

berth_status berth__lower_pairwise_coupling(berth__lowering *l, berth_error *err) {
  const int64_t rows = l->call->in[0].dim[0];
  if (rows == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  coupling c = {.l = l, .k = k, .n = l->call->attrs[BERTH__COUPLING_CLASSES].i};
  c.row = berth__l_each_alone(l, k, rows);
  c.first = berth__x_affine(k, c.row, berth__coupling_room(c.n), 0);
  c.scratch = berth__l_scratch(k, BERTH_F32);
  c.pqp = berth__x_variable(k, berth__x_f32(k, 0));
  coupling_matrix(&c);
  berth__x_loop_n(k, BERTH__COUPLING_ROUNDS);
  const berth__x error = coupling_error(&c);
  berth__x_if(k, berth__x_lt(k, error, berth__x_f32(k, BERTH__COUPLING_ERROR / (float)c.n)));
  berth__x_break(k);
  berth__x_end(k);
  const berth__x i = berth__x_loop_n(k, c.n);
  coupling_step(&c, i);
  berth__x_end(k);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}
