/* Gradients of attention and rope. The gradients of attention by q, k and v are a separate op, so that no scores are in
 * memory. For bias and sinks, and for second derivatives, attention is expanded into products and a softmax, and the
 * walk goes through those. */
#include <math.h>

#include "grad/grad.h"

typedef struct heads {
  int64_t batch, heads, kv_heads, queries, keys;
  berth_type type; /* type of q, in which everything is computed */
} heads;

/* To [B, H, S, D], from the node's layout. */
static berth_value grad_split_heads(berth__grad *d, berth_value a, const heads *h, int64_t n_heads) {
  const berth__shape shape = berth__grad_shape(d, a);
  const int64_t order[] = {0, 2, 1, 3};
  a = berth__grad_cast(d, a, h->type);
  if (!berth__grad_ok(d) || shape.rank == 4) return a;
  const berth__shape apart = {
      .rank = 4,
      .dim = {h->batch, shape.dim[shape.rank - 2], n_heads, n_heads == 0 ? 0 : shape.dim[shape.rank - 1] / n_heads}};
  return berth__grad_transpose(d, berth__grad_reshape(d, a, &apart), order);
}

/* Repeats every head of k or v for the heads of q that read it. */
static berth_value grad_repeat_heads(berth__grad *d, berth_value a, const heads *h) {
  const berth__shape shape = berth__grad_shape(d, a);
  const int64_t axis = 2, each = h->kv_heads == 0 ? 1 : h->heads / h->kv_heads;
  if (!berth__grad_ok(d) || each == 1) return a;
  const berth_dim spread[] = {
      {NULL, shape.dim[0]}, {NULL, shape.dim[1]}, {NULL, each}, {NULL, shape.dim[2]}, {NULL, shape.dim[3]}};
  const berth__shape merged = {.rank = 4, .dim = {shape.dim[0], h->heads, shape.dim[2], shape.dim[3]}};
  const berth_attr attr = berth_attr_dims("shape", spread, 5);
  a = berth__grad_unsqueeze(d, a, &axis, 1);
  return berth__grad_reshape(d, berth__grad_op(d, BERTH__OP_expand, &a, 1, &attr, 1), &merged);
}

static berth_value grad_count(berth__grad *d, int64_t n) {
  const berth_value bounds[] = {berth__grad_scalar(d, BERTH_I64, 0), berth__grad_scalar(d, BERTH_I64, (double)n),
                                berth__grad_scalar(d, BERTH_I64, 1)};
  return berth__grad_op(d, BERTH__OP_range, bounds, 3, NULL, 0);
}

static berth_value grad_both(berth__grad *d, berth_value a, berth_value b) {
  return a == BERTH_VALUE_NONE ? b : b == BERTH_VALUE_NONE ? a : berth__grad_2(d, BERTH__OP_and, a, b);
}

/* Which keys a query may see by position: [S, T], or [B, 1, S, T] if lengths differ. NONE: all. */
static berth_value grad_seen_by_position(berth__grad *d, const heads *h) {
  const char *mode = d->node.attrs[BERTH__ATTENTION_MODE].s;
  const bool has_length = berth__grad_has(d, BERTH__ATTENTION_LENGTH),
             is_windowed = strcmp(mode, "sliding_window") == 0;
  const bool is_causal = is_windowed || strcmp(mode, "causal") == 0;
  const int64_t last = -1, ones[] = {-3, -2, -1};
  berth_value seen = BERTH_VALUE_NONE, length = BERTH_VALUE_NONE;
  if (!is_causal && !has_length) return seen;
  const berth_value key = grad_count(d, h->keys);
  berth_value query = berth__grad_unsqueeze(d, grad_count(d, h->queries), &last, 1);
  if (has_length) {
    length = berth__grad_cast(d, berth__grad_in(d, BERTH__ATTENTION_LENGTH), BERTH_I64);
    if (berth__grad_rank(d, length) == 1) length = berth__grad_unsqueeze(d, length, ones, 3);
    seen = berth__grad_2(d, BERTH__OP_lt, key, length);
    query = berth__grad_add(d, query, length);
  } else {
    query = berth__grad_num(d, BERTH__OP_add, query, (double)h->keys);
  }
  query = berth__grad_num(d, BERTH__OP_sub, query, (double)h->queries);
  if (is_causal) seen = grad_both(d, seen, berth__grad_2(d, BERTH__OP_le, key, query));
  if (is_windowed) {
    const berth_value before =
        berth__grad_num(d, BERTH__OP_sub, query, (double)d->node.attrs[BERTH__ATTENTION_WINDOW].i);
    seen = grad_both(d, seen, berth__grad_2(d, BERTH__OP_gt, key, before));
  }
  return seen;
}

static berth_value grad_seen(berth__grad *d, const heads *h) {
  berth_value seen = grad_seen_by_position(d, h);
  if (berth__grad_has(d, BERTH__ATTENTION_MASK)) seen = grad_both(d, seen, berth__grad_in(d, BERTH__ATTENTION_MASK));
  if (berth__grad_has(d, BERTH__ATTENTION_BIAS)) {
    const berth_value bias = berth__grad_in(d, BERTH__ATTENTION_BIAS);
    seen = grad_both(d, seen, berth__grad_num(d, BERTH__OP_ne, bias, -(double)INFINITY));
  }
  return seen;
}

static double grad_score_scale(berth__grad *d, berth_value q) {
  const double scale = d->node.attrs[BERTH__ATTENTION_SCALE].f;
  const int64_t size = berth__grad_ok(d) ? berth__grad_shape(d, q).dim[3] : 1;
  return scale != 0 ? scale : 1 / sqrt((double)size);
}

static berth_value grad_products(berth__grad *d, berth_value q, berth_value k) {
  const berth_value scaled = berth__grad_scale(d, q, grad_score_scale(d, q));
  return berth__grad_2(d, BERTH__OP_matmul, scaled, berth__grad_swap_last(d, k));
}

/* tanh of the scores over the cap. */
static berth_value grad_capped(berth__grad *d, berth_value products) {
  return berth__grad_1(d, BERTH__OP_tanh, berth__grad_scale(d, products, 1 / d->node.attrs[BERTH__ATTENTION_CAP].f));
}

static berth_value grad_scores(berth__grad *d, const heads *h, berth_value q, berth_value k) {
  const double cap = d->node.attrs[BERTH__ATTENTION_CAP].f;
  berth_value scores = grad_products(d, q, k);
  if (cap != 0) scores = berth__grad_scale(d, grad_capped(d, scores), cap);
  if (berth__grad_has(d, BERTH__ATTENTION_BIAS))
    scores = berth__grad_add(d, scores, berth__grad_cast(d, berth__grad_in(d, BERTH__ATTENTION_BIAS), h->type));
  return scores;
}

/* Softmax over the keys, including the score that belongs to no key. */
static berth_value grad_weights(berth__grad *d, const heads *h, berth_value scores) {
  const int64_t ones[] = {-2, -1};
  const berth_attr last = berth_attr_int("axis", -1);
  if (!berth__grad_has(d, BERTH__ATTENTION_SINKS)) return berth__grad_op(d, BERTH__OP_softmax, &scores, 1, &last, 1);
  const berth_value sinks = berth__grad_cast(d, berth__grad_in(d, BERTH__ATTENTION_SINKS), h->type);
  const berth_value like = berth__grad_narrow(d, scores, 3, 0, 1);
  const berth_value parts[] = {scores, berth__grad_expand_like(d, berth__grad_unsqueeze(d, sinks, ones, 2), like)};
  const berth_value all = berth__grad_op(d, BERTH__OP_concat, parts, 2, &last, 1);
  return berth__grad_narrow(d, berth__grad_op(d, BERTH__OP_softmax, &all, 1, &last, 1), 3, 0, h->keys);
}

/* Masked keys get a score so low that nothing is left of it, and no weight if no key has one. */
static berth_value grad_attend(berth__grad *d, const heads *h, berth_value q, berth_value k) {
  const double lowest = h->type == BERTH_F16 ? -30000 : -1e30;
  berth_value scores = grad_scores(d, h, q, k);
  const berth_value seen = grad_seen(d, h);
  if (seen != BERTH_VALUE_NONE) scores = berth__grad_where(d, seen, scores, berth__grad_scalar(d, h->type, lowest));
  const berth_value weights = grad_weights(d, h, scores);
  return seen == BERTH_VALUE_NONE ? weights : berth__grad_where(d, seen, weights, berth__grad_scalar(d, h->type, 0));
}

static bool grad_read_heads(berth__grad *d, heads *h) {
  const berth_value q = berth__grad_in(d, BERTH__ATTENTION_Q), k = berth__grad_in(d, BERTH__ATTENTION_K);
  const berth_value v = berth__grad_in(d, BERTH__ATTENTION_V);
  if (!berth__grad_fixed(d, q) || !berth__grad_fixed(d, k) || !berth__grad_fixed(d, v)) return false;
  const berth__shape of_q = berth__grad_shape(d, q), of_k = berth__grad_shape(d, k);
  const bool is_apart = of_q.rank == 4;
  const int64_t given = d->node.attrs[BERTH__ATTENTION_HEADS].i, given_kv = d->node.attrs[BERTH__ATTENTION_KV_HEADS].i;
  *h = (heads){.batch = of_q.rank == 2 ? 1 : of_q.dim[0],
               .heads = is_apart ? of_q.dim[1] : given,
               .kv_heads = is_apart        ? of_k.dim[1]
                           : given_kv != 0 ? given_kv
                                           : given,
               .queries = of_q.dim[of_q.rank - 2],
               .keys = of_k.dim[of_k.rank - 2],
               .type = berth__grad_type(d, q)};
  if (d->node.attrs[BERTH__ATTENTION_RING].i != 0)
    berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient of attention with `ring` is not supported");
  else if (!berth__type_is_float(berth__grad_type(d, k)) || !berth__type_is_float(berth__grad_type(d, v)))
    berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient of attention with keys in blocks is not supported");
  return berth__grad_ok(d);
}

/* From [B, H, S, D] to the layout of the value `like`. */
static berth_value grad_merge_heads(berth__grad *d, berth_value a, berth_value like, bool is_packed) {
  const int64_t order[] = {0, 2, 1, 3};
  if (is_packed) a = berth__grad_transpose(d, a, order);
  return berth__grad_reshape_like(d, a, like);
}

static bool grad_is_packed(const berth__grad *d) {
  return berth__grad_rank(d, berth__grad_in(d, BERTH__ATTENTION_Q)) != 4;
}

/* Its operands with separate heads; heads of k and v are repeated for their readers. */
static void grad_split_operands(berth__grad *d, const heads *h, berth_value *q, berth_value *k, berth_value *v) {
  *q = grad_split_heads(d, berth__grad_in(d, BERTH__ATTENTION_Q), h, h->heads);
  *k = grad_repeat_heads(d, grad_split_heads(d, berth__grad_in(d, BERTH__ATTENTION_K), h, h->kv_heads), h);
  *v = grad_repeat_heads(d, grad_split_heads(d, berth__grad_in(d, BERTH__ATTENTION_V), h, h->kv_heads), h);
}

static void grad_attention_composed(berth__grad *d, const heads *h) {
  const size_t first = d->graph->n_nodes;
  berth_value q, k, v;
  grad_split_operands(d, h, &q, &k, &v);
  berth_value y = berth__grad_2(d, BERTH__OP_matmul, grad_attend(d, h, q, k), v);
  y = grad_merge_heads(d, y, berth__grad_out(d), grad_is_packed(d) || d->node.attrs[BERTH__ATTENTION_MERGED].i != 0);
  if (berth__grad_ok(d)) berth__grad_through(d, first, &y);
}

void berth__grad_of_attention(berth__grad *d) {
  heads h;
  if (!grad_read_heads(d, &h)) return;
  const bool is_narrow = berth__grad_type(d, berth__grad_in(d, BERTH__ATTENTION_K)) != h.type;
  if (is_narrow || berth__grad_wants(d, BERTH__ATTENTION_BIAS) || berth__grad_wants(d, BERTH__ATTENTION_SINKS)) {
    grad_attention_composed(d, &h);
    return;
  }
  berth_value in[BERTH__ATTENTION_DY + 1], out[3];
  for (uint32_t i = 0; i < BERTH__ATTENTION_DY; i++)
    in[i] = berth__grad_has(d, i) ? berth__grad_in(d, i) : BERTH_VALUE_NONE;
  in[BERTH__ATTENTION_DY] = berth__grad_dy(d);
  berth__grad_ops(d, BERTH__OP_attention_grad, in, BERTH__ATTENTION_DY + 1, d->node.attrs, BERTH__ATTENTION_ATTRS, out,
                  3);
  for (uint32_t i = BERTH__ATTENTION_Q; i <= BERTH__ATTENTION_V; i++) berth__grad_give(d, i, out[i]);
}

/* Sums over the heads of q that share a head of k or v: [B, H, T, D] to [B, kv heads, T, D]. */
static berth_value grad_sum_heads(berth__grad *d, berth_value a, const heads *h) {
  const berth__shape shape = berth__grad_shape(d, a);
  const int64_t axis = 2;
  if (!berth__grad_ok(d) || h->heads == h->kv_heads) return a;
  const berth__shape apart = {.rank = 5,
                              .dim = {shape.dim[0], h->kv_heads, h->heads / h->kv_heads, shape.dim[2], shape.dim[3]}};
  return berth__grad_reduce(d, BERTH__OP_reduce_sum, berth__grad_reshape(d, a, &apart), &axis, 1, false);
}

/* Computes the same as ops/family_attention_grad.c, with products. */
void berth__grad_of_attention_grad(berth__grad *d) {
  const size_t first = d->graph->n_nodes;
  const bool is_packed = grad_is_packed(d);
  heads h;
  berth_value q, k, v, out[3];
  if (!grad_read_heads(d, &h)) return;
  grad_split_operands(d, &h, &q, &k, &v);
  const berth_value dy = grad_split_heads(d, berth__grad_in(d, BERTH__ATTENTION_DY), &h, h.heads);
  const berth_value p = grad_attend(d, &h, q, k);
  const berth_value dp = berth__grad_2(d, BERTH__OP_matmul, dy, berth__grad_swap_last(d, v));
  const berth_value sum = berth__grad_sum_last(d, berth__grad_mul(d, p, dp));
  berth_value ds = berth__grad_mul(d, p, berth__grad_sub(d, dp, sum));
  if (d->node.attrs[BERTH__ATTENTION_CAP].f != 0) {
    const berth_value t = grad_capped(d, grad_products(d, q, k));
    ds = berth__grad_mul(d, ds, berth__grad_num_first(d, BERTH__OP_sub, 1, berth__grad_mul(d, t, t)));
  }
  ds = berth__grad_scale(d, ds, grad_score_scale(d, q));
  out[0] = berth__grad_2(d, BERTH__OP_matmul, ds, k);
  out[1] = grad_sum_heads(d, berth__grad_2(d, BERTH__OP_matmul, berth__grad_swap_last(d, ds), q), &h);
  out[2] = grad_sum_heads(d, berth__grad_2(d, BERTH__OP_matmul, berth__grad_swap_last(d, p), dy), &h);
  for (uint32_t i = 0; i < 3 && berth__grad_ok(d); i++) out[i] = grad_merge_heads(d, out[i], d->node.out[i], is_packed);
  if (berth__grad_ok(d)) berth__grad_through(d, first, out);
}

/* Rotates back by the same angle. */
void berth__grad_of_rope(berth__grad *d) {
  const berth_attr *from = d->node.attrs;
  const bool has_tables = berth__grad_has(d, BERTH__ROPE_SIN);
  if (has_tables && (berth__grad_wants(d, BERTH__ROPE_COS) || berth__grad_wants(d, BERTH__ROPE_SIN))) {
    berth__grad_fail(d, BERTH_UNSUPPORTED, "a gradient by the tables of cosines and sines is not supported");
    return;
  }
  const berth_value angle = berth__grad_in(d, has_tables ? BERTH__ROPE_SIN : BERTH__ROPE_POSITIONS);
  const berth_value back = berth__grad_neg(d, angle);
  const berth_value in[] = {berth__grad_dy(d), has_tables ? berth__grad_in(d, BERTH__ROPE_COS) : back, back};
  berth__grad_give(d, BERTH__ROPE_X,
                   berth__grad_op(d, BERTH__OP_rope, in, has_tables ? 3 : 2, from, d->node.op->family->n_attrs));
}
