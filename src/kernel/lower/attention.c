/* attention without a matrix of scores (online softmax): weights are relative to the largest score so far, and sums
 * are rescaled when a larger one comes. Here one thread handles a query; attention_tiled.c, attention_few.c and
 * attention_matrix.c have the forms for real GPUs. */
#include "kernel/lower/attention.h"

#include <math.h>

#include "base/blocks.h"
#include "kernel/lower/blocks.h"
#include "kernel/lower/words.h"

berth__x berth__attention_keys_of(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                  berth__x batch) {
  if (a->length == NULL) return berth__x_i32(k, a->k.length);
  const berth__x given = berth__l_load(l, k, BERTH__ATTENTION_LENGTH, berth__x_affine(k, batch, a->length_stride, 0));
  const berth__x keys = berth__x_max(k, given, berth__x_i32(k, 0));
  return a->ring ? keys : berth__x_min(k, keys, berth__x_i32(k, a->k.length));
}

berth__x berth__attention_held(berth__kernel *k, const berth__attention *a, berth__x keys) {
  return a->ring ? berth__x_min(k, keys, berth__x_i32(k, a->k.length)) : keys;
}

/* In a full ring, the last key whose number is `row` modulo the ring's length. */
berth__x berth__attention_key_at(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row) {
  if (!a->ring) return row;
  const berth__x length = berth__x_i32(k, a->k.length), before = berth__x_affine(k, keys, 1, -1);
  const berth__x behind = berth__x_rem(k, berth__x_sub(k, before, row), length); /* a row in use is not past the keys */
  return berth__x_sub(k, before, behind);
}

void berth__attention_range_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x row,
                               berth__x *first, berth__x *last) {
  /* causal: keys up to its own */
  const berth__x seen = berth__x_add(k, keys, berth__x_affine(k, row, 1, 1 - a->q.length)), zero = berth__x_i32(k, 0);
  const berth__x least = a->ring ? berth__x_max(k, zero, berth__x_affine(k, keys, 1, -a->k.length)) : zero;
  *first = a->window > 0 ? berth__x_max(k, least, berth__x_affine(k, seen, 1, -a->window)) : least;
  *last = a->causal ? berth__x_min(k, keys, seen) : keys;
}

berth__x berth__attention_at(berth__kernel *k, const berth__heads *h, berth__x batch, berth__x head, berth__x row) {
  const berth__x at =
      berth__x_add(k, berth__x_affine(k, batch, h->batch_stride, 0), berth__x_affine(k, head, h->head_stride, 0));
  return berth__x_add(k, at, berth__x_affine(k, row, h->row_stride, 0));
}

berth__x berth__attention_load(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x place) {
  return berth__type_is_block(l->call->in[operand].type) ? berth__l_load_block(l, k, operand, place)
                                                         : berth__l_load(l, k, operand, place);
}

static berth__x lower_attention_beside(berth__kernel *k, const int64_t *stride, const berth__attention_row *row) {
  const berth__x at =
      berth__x_add(k, berth__x_affine(k, row->batch, stride[0], 0), berth__x_affine(k, row->head, stride[1], 0));
  return berth__x_add(k, at, berth__x_affine(k, row->row, stride[2], 0));
}

berth__attention_row berth__attention_row_of(berth__kernel *k, const berth__attention *a, berth__x keys, berth__x batch,
                                             berth__x head, berth__x row) {
  berth__attention_row out = {.batch = batch, .head = head, .row = row, .mask = BERTH__X_NONE, .bias = BERTH__X_NONE};
  berth__attention_range_of(k, a, keys, row, &out.first, &out.last);
  if (a->mask != NULL) out.mask = lower_attention_beside(k, a->mask_stride, &out);
  if (a->bias != NULL) out.bias = lower_attention_beside(k, a->bias_stride, &out);
  return out;
}

berth__x berth__attention_scaled(berth__kernel *k, const berth__attention *a, berth__x sum) {
  const berth__x score = berth__x_mul(k, sum, berth__x_f32(k, (float)a->scale));
  if (a->cap == 0) return score;
  const berth__x share = berth__x_mul(k, score, berth__x_f32(k, (float)(1 / a->cap)));
  return berth__x_mul(k, berth__l_unary(k, BERTH__OP_tanh, share), berth__x_f32(k, (float)a->cap));
}

berth__x berth__attention_score(const berth__lowering *l, berth__kernel *k, const berth__attention *a,
                                const berth__attention_row *row, berth__x key, berth__x sum) {
  berth__x score = berth__attention_scaled(k, a, sum);
  berth__x sees = berth__x_and(k, berth__x_le(k, row->first, key), berth__x_lt(k, key, row->last));
  if (a->bias != NULL) {
    const berth__x at = berth__x_add(k, row->bias, berth__x_affine(k, key, a->bias_stride[3], 0));
    score = berth__x_add(k, score, berth__l_load(l, k, BERTH__ATTENTION_BIAS, at));
  }
  if (a->mask != NULL) {
    const berth__x at = berth__x_add(k, row->mask, berth__x_affine(k, key, a->mask_stride[3], 0));
    sees = berth__x_and(k, sees, berth__l_load(l, k, BERTH__ATTENTION_MASK, at));
  }
  return berth__x_select(k, sees, score, berth__x_f32(k, -INFINITY));
}

berth__x berth__attention_larger(berth__kernel *k, berth__x a, berth__x b) {
  return berth__x_select(k, berth__x_or(k, berth__x_lt(k, a, b), berth__x_is_nan(k, b)), b, a);
}

berth__x berth__attention_fade(berth__kernel *k, berth__x x, berth__x factor) {
  const berth__x zero = berth__x_f32(k, 0);
  return berth__x_select(k, berth__x_eq(k, factor, zero), zero, berth__x_mul(k, x, factor));
}

berth__x berth__attention_weight(berth__kernel *k, berth__x score, berth__x largest) {
  const berth__x none = berth__x_eq(k, largest, berth__x_f32(k, -INFINITY));
  const berth__x weight = berth__x1(k, BERTH__INST_exp, berth__x_sub(k, score, largest));
  return berth__x_select(k, none, berth__x_f32(k, 0), weight);
}

berth__x berth__attention_divisor(const berth__lowering *l, berth__kernel *k, const berth__attention *a, berth__x head,
                                  berth__x total, berth__x largest) {
  const berth__x is_none = berth__x_eq(k, total, berth__x_f32(k, 0));
  if (a->sinks != NULL) {
    const berth__x sink = berth__l_load(l, k, BERTH__ATTENTION_SINKS, berth__x_affine(k, head, a->sinks->stride[0], 0));
    total = berth__x_add(k, total, berth__x1(k, BERTH__INST_exp, berth__x_sub(k, sink, largest)));
  }
  return berth__x_select(k, is_none, berth__x_f32(k, 1), total);
}

uint32_t berth__attention_word_of(const berth__lowering *l, uint32_t out, const berth__heads *h) {
  const uint32_t result = berth__operand_out(l->call, out);
  const int64_t n = berth__storage_per_word(berth__l_storage_of(l, result));
  const bool keeps_words = (h->batch == 1 || h->batch_stride % n == 0) && (h->heads == 1 || h->head_stride % n == 0) &&
                           (h->length == 1 || h->row_stride % n == 0);
  return keeps_words && h->stride == 1 && h->size % n == 0 && berth__l_begins_with_word(l, result) ? (uint32_t)n : 1;
}

uint32_t berth__attention_word(const berth__lowering *l, const berth__attention *a) {
  return berth__attention_word_of(l, 0, &a->out);
}

void berth__attention_work(berth__lowering *l, const berth__attention *a, berth__kernel *k) {
  const double pairs = (double)(a->q.batch * a->q.heads * a->q.length) * (double)a->k.length;
  k->flops = 2 * pairs * (double)(a->q.size + a->v.size) * (a->causal && a->q.length == a->k.length ? 0.5 : 1);
  for (uint32_t i = 0; i <= l->call->n_in; i++) k->bytes += berth__l_bytes(l, i); /* the last one is the result */
}

/* ---- One thread per query ---- */

typedef struct work {
  berth__lowering *l;
  const berth__attention *a;
  berth__kernel *k;
  berth__attention_row row;
  berth__x kv_head, query; /* offset of the query's elements */
  uint32_t sums;           /* local: the weighted sum of values so far */
  berth__x largest, total; /* variables */
} work;

static berth__x lower_attention_dot(const work *w, berth__x key) {
  berth__kernel *k = w->k;
  const berth__x keys = berth__attention_at(k, &w->a->k, w->row.batch, w->kv_head, key);
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, w->a->q.size);
  const berth__x left =
      berth__l_load(w->l, k, BERTH__ATTENTION_Q, berth__x_add(k, w->query, berth__x_affine(k, i, w->a->q.stride, 0)));
  const berth__x right = berth__attention_load(w->l, k, BERTH__ATTENTION_K,
                                               berth__x_add(k, keys, berth__x_affine(k, i, w->a->k.stride, 0)));
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, left, right, berth__x_get(k, sum)));
  berth__x_end(k);
  return berth__x_get(k, sum);
}

static void fade_all(const work *w, berth__x factor) {
  berth__kernel *k = w->k;
  berth__x_set(k, w->total, berth__attention_fade(k, berth__x_get(k, w->total), factor));
  const berth__x i = berth__x_loop_n(k, w->a->v.size);
  berth__x_local_store(k, w->sums, i, berth__attention_fade(k, berth__x_local_load(k, w->sums, i), factor));
  berth__x_end(k);
}

static void lower_attention_add_values(const work *w, berth__x key, berth__x weight) {
  berth__kernel *k = w->k;
  const berth__x values = berth__attention_at(k, &w->a->v, w->row.batch, w->kv_head, key);
  berth__x_set(k, w->total, berth__x_add(k, berth__x_get(k, w->total), weight));
  const berth__x i = berth__x_loop_n(k, w->a->v.size);
  const berth__x value = berth__attention_load(w->l, k, BERTH__ATTENTION_V,
                                               berth__x_add(k, values, berth__x_affine(k, i, w->a->v.stride, 0)));
  berth__x_local_store(k, w->sums, i, berth__x3(k, BERTH__INST_fma, weight, value, berth__x_local_load(k, w->sums, i)));
  berth__x_end(k);
}

static void lower_attention_see_keys(const work *w) {
  berth__kernel *k = w->k;
  const berth__x key = berth__x_loop(k, w->row.first, w->row.last, 1);
  const berth__x row = w->a->ring ? berth__x_rem(k, key, berth__x_i32(k, w->a->k.length)) : key;
  const berth__x score = berth__attention_score(w->l, k, w->a, &w->row, key, lower_attention_dot(w, row));
  const berth__x before = berth__x_get(k, w->largest), after = berth__attention_larger(k, before, score);
  const berth__x changes = berth__x_or(k, berth__x_lt(k, before, score), berth__x_is_nan(k, score));
  berth__x_if(k, changes);
  fade_all(w, berth__attention_weight(k, before, after));
  berth__x_set(k, w->largest, after);
  berth__x_end(k);
  const berth__x weight = berth__attention_weight(k, score, after);
  berth__x_if(k, berth__x_ne(k, weight, berth__x_f32(k, 0)));
  lower_attention_add_values(w, row, weight);
  berth__x_end(k);
  berth__x_end(k);
}

static void lower_attention_store_row(const work *w) {
  berth__kernel *k = w->k;
  const berth__x to = berth__attention_at(k, &w->a->out, w->row.batch, w->row.head, w->row.row);
  const berth__x divisor =
      berth__attention_divisor(w->l, k, w->a, w->row.head, berth__x_get(k, w->total), berth__x_get(k, w->largest));
  const uint32_t word = berth__attention_word(w->l, w->a);
  const berth__x first = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, w->a->v.size), word);
  if (word > 1) berth__l_word_begin(w->l, k);
  for (uint32_t f = 0; f < word; f++) {
    const berth__x i = berth__x_affine(k, first, 1, f);
    const berth__x place = berth__x_add(k, to, berth__x_affine(k, i, w->a->out.stride, 0));
    if (word > 1) berth__l_word_lane(k, f, place);
    berth__l_store(w->l, k, 0, place, berth__x_div(k, berth__x_local_load(k, w->sums, i), divisor));
  }
  if (word > 1) berth__l_word_end(w->l, k, berth__x_add(k, to, first));
  berth__x_end(k);
}

static berth_status lower_simple(berth__lowering *l, const berth__attention *a, berth_error *err) {
  const int64_t dims[3] = {a->q.batch, a->q.heads, a->q.length};
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[3];
  berth__attention_work(l, a, k);
  berth__l_unravel(k, berth__l_each(l, k, dims[0] * dims[1] * dims[2]), 3, dims, at);
  const berth__x keys = berth__attention_keys_of(l, k, a, at[0]);
  work w = {.l = l, .a = a, .k = k, .row = berth__attention_row_of(k, a, keys, at[0], at[1], at[2])};
  w.kv_head = berth__x_div(k, at[1], berth__x_i32(k, a->k.heads > 0 ? a->q.heads / a->k.heads : 1));
  w.query = berth__attention_at(k, &a->q, at[0], at[1], at[2]);
  w.sums = berth__kernel_local(k, BERTH__NUM_F32, (uint32_t)a->v.size);
  w.largest = berth__x_variable(k, berth__x_f32(k, -INFINITY));
  w.total = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, a->v.size);
  berth__x_local_store(k, w.sums, i, berth__x_f32(k, 0));
  berth__x_end(k);
  if (a->k.length > 0) lower_attention_see_keys(&w);
  lower_attention_store_row(&w);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_attend(berth__lowering *l, berth_error *err) {
  berth__attention a;
  berth__attention_form form;
  berth__attention_of(l->call, &a);
  const berth_type cache = l->call->in[BERTH__ATTENTION_K].type;
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (berth__type_is_block(cache)) BERTH__TRY(berth__l_check_blocks(cache, err));
  if (berth__attention_form_of(&a, l->limits, &form)) {
    if (BERTH__NATIVE_GPUS && form.few.keys != 0) return berth__attention_few(l, &a, &form, err);
    if (BERTH__NATIVE_GPUS && form.kind != BERTH_COMPUTE_F32) return berth__attention_matrix(l, &a, &form, err);
    return berth__attention_tiled(l, &a, &form, err);
  }
  return lower_simple(l, &a, err);
}
