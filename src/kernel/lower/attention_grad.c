/* attention_grad, without the scores in memory (attention_grad_tiled.c has the form for real GPUs). One kernel with a
 * thread per query computes its gradient and stores three numbers of it in scratch; from these, another one with a
 * thread per key computes the gradients of the key and its value. Each recomputes the scores that it needs. */
#include <math.h>

#include "kernel/lower/attention.h"

/* Per query, in scratch: its maximum score, the divisor of its weights, and the sum of its weights times their
 * gradients. */
enum {
  RECORD_LARGEST,
  RECORD_DIVISOR,
  RECORD_SUM,
  RECORD
};

uint64_t berth__scratch_of_attention_grad(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__attention a;
  (void)limits;
  berth__attention_of(call, &a);
  const int64_t queries = a.q.batch * a.q.heads * a.q.length;
  return 4 * RECORD * (uint64_t)(queries > 0 ? queries : 1); /* keys are processed even if no query has written */
}

typedef struct work {
  berth__lowering *l;
  const berth__attention_grad *g;
  berth__kernel *k;
  uint32_t scratch;
  berth__x keys; /* in the batch entry */
  berth__x batch, kv_head;
} work;

/* A row of an operand: its offset and storage. */
typedef struct row {
  uint32_t operand;
  berth__x at;
  int64_t stride;
} row;

static row lower_attention_grad_row(const work *w, uint32_t operand, const berth__heads *h, berth__x head,
                                    berth__x index) {
  return (row){operand, berth__attention_at(w->k, h, w->batch, head, index), h->stride};
}

static berth__x lower_attention_grad_load(const work *w, const row *r, berth__x i) {
  return berth__l_load(w->l, w->k, r->operand, berth__x_add(w->k, r->at, berth__x_affine(w->k, i, r->stride, 0)));
}

static berth__x lower_attention_grad_dot(const work *w, const row *a, const row *b, int64_t n) {
  berth__kernel *k = w->k;
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, n);
  const berth__x left = lower_attention_grad_load(w, a, i), right = lower_attention_grad_load(w, b, i);
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, left, right, berth__x_get(k, sum)));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

/* array += factor times the row. */
static void lower_attention_grad_add(const work *w, uint32_t array, const row *r, berth__x factor, int64_t n) {
  berth__kernel *k = w->k;
  const berth__x i = berth__x_loop_n(k, n);
  const berth__x value = lower_attention_grad_load(w, r, i);
  berth__x_local_store(k, array, i, berth__x3(k, BERTH__INST_fma, factor, value, berth__x_local_load(k, array, i)));
  berth__x_end(k);
}

static uint32_t lower_attention_grad_array(const work *w, int64_t n) {
  berth__kernel *k = w->k;
  const uint32_t array = berth__kernel_local(k, BERTH__NUM_F32, (uint32_t)(n > 0 ? n : 1)); /* never empty */
  const berth__x i = berth__x_loop_n(k, n);
  berth__x_local_store(k, array, i, berth__x_f32(k, 0));
  berth__x_end(k);
  return array;
}

static void lower_attention_grad_store(const work *w, uint32_t result, const berth__heads *h, berth__x head,
                                       berth__x index, uint32_t array) {
  berth__kernel *k = w->k;
  const berth__x to = berth__attention_at(k, h, w->batch, head, index);
  const berth__x i = berth__x_loop_n(k, h->size);
  berth__l_store(w->l, k, result, berth__x_add(k, to, berth__x_affine(k, i, h->stride, 0)),
                 berth__x_local_load(k, array, i));
  berth__x_end(k);
}

static berth__x lower_attention_grad_record(const work *w, berth__x head, berth__x index, int64_t which) {
  const berth__attention *a = &w->g->a;
  berth__kernel *k = w->k;
  const berth__x of_batch = berth__x_add(k, berth__x_affine(k, w->batch, a->q.heads, 0), head);
  return berth__x_affine(k, berth__x_add(k, berth__x_affine(k, of_batch, a->q.length, 0), index), RECORD, which);
}

berth__x berth__attention_slope(berth__kernel *k, const berth__attention *a, berth__x p, berth__x dp, berth__x sum,
                                berth__x product) {
  const berth__x ds = berth__attention_fade(k, berth__x_sub(k, dp, sum), p);
  if (a->cap == 0) return ds;
  const berth__x share = berth__x_mul(k, product, berth__x_f32(k, (float)(a->scale / a->cap)));
  const berth__x t = berth__l_unary(k, BERTH__OP_tanh, share);
  return berth__attention_fade(k, berth__x_sub(k, berth__x_f32(k, 1), berth__x_mul(k, t, t)), ds);
}

/* The gradient that a key's score contributes to its query and to the key. */
static berth__x lower_attention_grad_slope(const work *w, berth__x p, berth__x dp, berth__x sum, berth__x product) {
  const berth__x ds = berth__attention_slope(w->k, &w->g->a, p, dp, sum, product);
  return berth__x_mul(w->k, ds, berth__x_f32(w->k, (float)w->g->a.scale));
}

/* ---- One thread per query ---- */

typedef struct query {
  work w;
  berth__attention_row row;
  row q, dy;
  berth__x largest, total, sum; /* variables */
} query;

/* One key: `sum` is the sum of weights times dp, relative to the maximum score so far. */
static void lower_attention_grad_see(const query *s, berth__x key) {
  const work *w = &s->w;
  const berth__attention *a = &w->g->a;
  berth__kernel *k = w->k;
  const row keys = lower_attention_grad_row(w, BERTH__ATTENTION_K, &a->k, w->kv_head, key);
  const berth__x product = lower_attention_grad_dot(w, &s->q, &keys, a->q.size);
  const berth__x score = berth__attention_score(w->l, k, a, &s->row, key, product);
  const berth__x before = berth__x_get(k, s->largest), after = berth__attention_larger(k, before, score);
  const berth__x fade = berth__attention_weight(k, before, after), weight = berth__attention_weight(k, score, after);
  berth__x_set(k, s->largest, after);
  berth__x_set(k, s->total, berth__x_add(k, berth__attention_fade(k, berth__x_get(k, s->total), fade), weight));
  berth__x_set(k, s->sum, berth__attention_fade(k, berth__x_get(k, s->sum), fade));
  berth__x_if(k, berth__x_ne(k, weight, berth__x_f32(k, 0)));
  const row values = lower_attention_grad_row(w, BERTH__ATTENTION_V, &a->v, w->kv_head, key);
  const berth__x dp = lower_attention_grad_dot(w, &s->dy, &values, a->v.size);
  berth__x_set(k, s->sum, berth__x3(k, BERTH__INST_fma, weight, dp, berth__x_get(k, s->sum)));
  berth__x_end(k);
}

static void lower_attention_grad_turn(const query *s, berth__x key, berth__x largest, berth__x divisor, berth__x sum,
                                      uint32_t array) {
  const work *w = &s->w;
  const berth__attention *a = &w->g->a;
  berth__kernel *k = w->k;
  const row keys = lower_attention_grad_row(w, BERTH__ATTENTION_K, &a->k, w->kv_head, key);
  const berth__x product = lower_attention_grad_dot(w, &s->q, &keys, a->q.size);
  const berth__x score = berth__attention_score(w->l, k, a, &s->row, key, product);
  const berth__x p = berth__x_div(k, berth__attention_weight(k, score, largest), divisor);
  berth__x_if(k, berth__x_ne(k, p, berth__x_f32(k, 0)));
  const row values = lower_attention_grad_row(w, BERTH__ATTENTION_V, &a->v, w->kv_head, key);
  const berth__x dp = lower_attention_grad_dot(w, &s->dy, &values, a->v.size);
  lower_attention_grad_add(w, array, &keys, lower_attention_grad_slope(w, p, dp, sum, product), a->q.size);
  berth__x_end(k);
}

static berth_status lower_attention_grad_queries(berth__lowering *l, const berth__attention_grad *g, berth_error *err) {
  const berth__attention *a = &g->a;
  const int64_t dims[3] = {a->q.batch, a->q.heads, a->q.length};
  berth__kernel *k = berth__l_begin(l, "queries");
  berth__x at[3];
  if (k == NULL) return berth__l_end(l, k, err);
  berth__attention_work(l, a, k);
  berth__l_unravel(k, berth__l_each_alone(l, k, dims[0] * dims[1] * dims[2]), 3, dims, at);
  const berth__x head = at[1], index = at[2];
  query s = {.w = {.l = l, .g = g, .k = k, .scratch = berth__l_scratch(k, BERTH_F32), .batch = at[0]}};
  s.w.keys = berth__attention_keys_of(l, k, a, at[0]);
  s.w.kv_head = berth__x_div(k, head, berth__x_i32(k, a->q.heads / a->k.heads));
  s.row = berth__attention_row_of(k, a, s.w.keys, at[0], head, index);
  s.q = lower_attention_grad_row(&s.w, BERTH__ATTENTION_Q, &a->q, head, index);
  s.dy = lower_attention_grad_row(&s.w, BERTH__ATTENTION_DY, &g->dy, head, index);
  s.largest = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  s.total = berth__x_variable(k, berth__x_f32(k, 0));
  s.sum = berth__x_variable(k, berth__x_f32(k, 0));
  const uint32_t array = lower_attention_grad_array(&s.w, a->q.size);
  lower_attention_grad_see(&s, berth__x_loop(k, s.row.first, s.row.last, 1));
  berth__x_end(k);
  const berth__x largest = berth__x_get(k, s.largest);
  const berth__x divisor = berth__attention_divisor(l, k, a, head, berth__x_get(k, s.total), largest);
  const berth__x sum = berth__x_div(k, berth__x_get(k, s.sum), divisor);
  berth__x_store(k, s.w.scratch, lower_attention_grad_record(&s.w, head, index, RECORD_LARGEST), largest);
  berth__x_store(k, s.w.scratch, lower_attention_grad_record(&s.w, head, index, RECORD_DIVISOR), divisor);
  berth__x_store(k, s.w.scratch, lower_attention_grad_record(&s.w, head, index, RECORD_SUM), sum);
  lower_attention_grad_turn(&s, berth__x_loop(k, s.row.first, s.row.last, 1), largest, divisor, sum, array);
  berth__x_end(k);
  lower_attention_grad_store(&s.w, 0, &a->out, head, index, array);
  return berth__l_end(l, k, err);
}

/* ---- One thread per key ---- */

static void lower_attention_grad_query(const work *w, berth__x key, berth__x head, berth__x index, uint32_t dk,
                                       uint32_t dv) {
  const berth__attention *a = &w->g->a;
  berth__kernel *k = w->k;
  const berth__attention_row at = berth__attention_row_of(k, a, w->keys, w->batch, head, index);
  berth__x_if(k, berth__x_and(k, berth__x_le(k, at.first, key), berth__x_lt(k, key, at.last)));
  const row q = lower_attention_grad_row(w, BERTH__ATTENTION_Q, &a->q, head, index);
  const row keys = lower_attention_grad_row(w, BERTH__ATTENTION_K, &a->k, w->kv_head, key);
  const berth__x product = lower_attention_grad_dot(w, &q, &keys, a->q.size);
  const berth__x score = berth__attention_score(w->l, k, a, &at, key, product);
  const berth__x largest = berth__x_load(k, w->scratch, lower_attention_grad_record(w, head, index, RECORD_LARGEST));
  const berth__x divisor = berth__x_load(k, w->scratch, lower_attention_grad_record(w, head, index, RECORD_DIVISOR));
  const berth__x p = berth__x_div(k, berth__attention_weight(k, score, largest), divisor);
  berth__x_if(k, berth__x_ne(k, p, berth__x_f32(k, 0)));
  const berth__x sum = berth__x_load(k, w->scratch, lower_attention_grad_record(w, head, index, RECORD_SUM));
  const row dy = lower_attention_grad_row(w, BERTH__ATTENTION_DY, &w->g->dy, head, index);
  const row values = lower_attention_grad_row(w, BERTH__ATTENTION_V, &a->v, w->kv_head, key);
  const berth__x dp = lower_attention_grad_dot(w, &dy, &values, a->v.size);
  lower_attention_grad_add(w, dk, &q, lower_attention_grad_slope(w, p, dp, sum, product), a->q.size);
  lower_attention_grad_add(w, dv, &dy, p, a->v.size);
  berth__x_end(k);
  berth__x_end(k);
}

static berth_status lower_attention_grad_keys(berth__lowering *l, const berth__attention_grad *g, berth_error *err) {
  const berth__attention *a = &g->a;
  const int64_t dims[3] = {a->k.batch, a->k.heads, a->k.length}, sharing = a->q.heads / a->k.heads;
  berth__kernel *k = berth__l_begin(l, "keys");
  berth__x at[3];
  if (k == NULL) return berth__l_end(l, k, err);
  berth__attention_work(l, a, k);
  berth__l_unravel(k, berth__l_each_alone(l, k, dims[0] * dims[1] * dims[2]), 3, dims, at);
  work w = {.l = l, .g = g, .k = k, .scratch = berth__l_scratch(k, BERTH_F32), .batch = at[0], .kv_head = at[1]};
  w.keys = berth__attention_keys_of(l, k, a, at[0]);
  const uint32_t dk = lower_attention_grad_array(&w, a->q.size), dv = lower_attention_grad_array(&w, a->v.size);
  const berth__x shared = berth__x_loop_n(k, sharing);
  const berth__x head = berth__x_add(k, berth__x_affine(k, at[1], sharing, 0), shared);
  const berth__x index = berth__x_loop_n(k, a->q.length);
  lower_attention_grad_query(&w, at[2], head, index, dk, dv);
  berth__x_end(k);
  berth__x_end(k);
  lower_attention_grad_store(&w, 1, &g->dk, at[1], at[2], dk);
  lower_attention_grad_store(&w, 2, &g->dv, at[1], at[2], dv);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_attention_grad(berth__lowering *l, berth_error *err) {
  berth__attention_grad g;
  berth__attention_grad_of(l->call, &g);
  berth__attention_form form;
  if (g.a.q.heads == 0 || g.a.k.heads == 0) return BERTH_OK; /* all are empty */
  if (berth__attention_grad_form(&g, l->storage, l->limits, &form))
    return berth__attention_grad_tiled(l, &g, &form, err);
  if (g.a.q.batch * g.a.q.length != 0) BERTH__TRY(lower_attention_grad_queries(l, &g, err));
  if (g.a.k.batch * g.a.k.length != 0) BERTH__TRY(lower_attention_grad_keys(l, &g, err));
  return BERTH_OK;
}
