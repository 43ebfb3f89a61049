/* The gradients of attention as products, for devices whose products are far faster than a kernel that goes through
 * queries and keys one by one. The scores are in memory then, for a few sequences at a time: a batch is split into
 * slices of at most MOST_SCORES bytes. With p the weights and dp = dy v':
 *
 *   ds = p (dp - sum of p dp),  dq = scale ds k,  dk = ds' (scale q),  dv = p' dy */
#include <math.h>

#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

#define MOST_SCORES ((int64_t)1 << 26)
#define LEAST_SCORES 4096 /* queries times keys: below it, a single kernel is faster to start */

typedef struct apart {
  int64_t batch, heads, queries, keys, size;
  double scale;
  bool is_causal;
  int64_t step; /* sequences per slice */
} apart;

typedef struct writer {
  berth__rewrite *r;
  const berth__node *node;
  apart a;
  berth_value scale, seen, lowest; /* seen: [S, T], NONE if all are visible */
  berth_status status;
  berth_error *err;
} writer;

/* ---- Matching ---- */

static bool attention_grad_is_plain(const berth_graph *graph, const berth__node *node) {
  const char *mode = node->attrs[BERTH__ATTENTION_MODE].s;
  static const uint32_t floats[] = {BERTH__ATTENTION_Q, BERTH__ATTENTION_K, BERTH__ATTENTION_V, BERTH__ATTENTION_DY};
  for (uint32_t i = BERTH__ATTENTION_MASK; i <= BERTH__ATTENTION_SINKS; i++)
    if (node->in[i] != BERTH_VALUE_NONE) return false;
  for (size_t i = 0; i < sizeof floats / sizeof *floats; i++)
    if (graph->values[node->in[floats[i]]].type != BERTH_F32) return false;
  return node->attrs[BERTH__ATTENTION_CAP].f == 0 && (strcmp(mode, "none") == 0 || strcmp(mode, "causal") == 0) &&
         !berth__node_is_bounded(graph, node);
}

static bool attention_grad_read(const berth_graph *graph, const berth__node *node, apart *out) {
  const berth__shape *q = &graph->values[node->in[BERTH__ATTENTION_Q]].shape;
  const berth__shape *k = &graph->values[node->in[BERTH__ATTENTION_K]].shape;
  const berth__shape *v = &graph->values[node->in[BERTH__ATTENTION_V]].shape;
  const bool is_apart = q->rank == 4;
  const int64_t heads = is_apart ? q->dim[1] : node->attrs[BERTH__ATTENTION_HEADS].i;
  const int64_t of_keys = node->attrs[BERTH__ATTENTION_KV_HEADS].i;
  const int64_t kv_heads = is_apart ? k->dim[1] : of_keys != 0 ? of_keys : heads;
  const double scale = node->attrs[BERTH__ATTENTION_SCALE].f;
  if (q->rank < 3 || heads < 1 || heads != kv_heads || k->rank != q->rank || v->rank != q->rank) return false;
  if (is_apart && node->attrs[BERTH__ATTENTION_MERGED].i != 0) return false; /* dy has another layout */
  if (k->dim[q->rank - 1] != q->dim[q->rank - 1] || v->dim[q->rank - 1] != q->dim[q->rank - 1]) return false;
  *out = (apart){.batch = q->dim[0],
                 .heads = heads,
                 .queries = q->dim[q->rank - 2],
                 .keys = k->dim[q->rank - 2],
                 .size = is_apart ? q->dim[3] : q->dim[q->rank - 1] / heads,
                 .is_causal = strcmp(node->attrs[BERTH__ATTENTION_MODE].s, "causal") == 0};
  if (out->size < 1 || out->batch < 1 || out->keys < out->queries || out->queries * out->keys < LEAST_SCORES)
    return false;
  out->scale = scale != 0 ? scale : 1 / sqrt((double)out->size);
  const int64_t one = out->heads * out->queries * out->keys * (int64_t)sizeof(float);
  out->step = MOST_SCORES / one < out->batch ? MOST_SCORES / one : out->batch;
  return out->step > 0;
}

/* ---- Nodes ---- */

static berth_value attention_grad_op(writer *w, berth__op_code op, const berth_value *in, size_t n,
                                     const berth_attr *attrs, size_t n_attrs) {
  berth_value out = BERTH_VALUE_NONE;
  if (w->status == BERTH_OK)
    w->status = berth__rewrite_add(w->r, op, in, n, attrs, n_attrs, w->node->out[0], "#apart", &out, w->err);
  return out;
}

static berth_value attention_grad_2(writer *w, berth__op_code op, berth_value a, berth_value b) {
  const berth_value in[] = {a, b};
  return attention_grad_op(w, op, in, 2, NULL, 0);
}

static berth_value attention_grad_turn(writer *w, berth_value a, const int64_t *perm) {
  const berth_attr attr = berth_attr_ints("perm", perm, 4);
  return attention_grad_op(w, BERTH__OP_transpose, &a, 1, &attr, 1);
}

static berth_value attention_grad_swap(writer *w, berth_value a) {
  return attention_grad_turn(w, a, (const int64_t[]){0, 1, 3, 2});
}

static berth_value attention_grad_shape(writer *w, berth_value a, const int64_t *dim, uint32_t rank) {
  const berth_attr attr = berth_attr_ints("shape", dim, rank);
  return attention_grad_op(w, BERTH__OP_reshape, &a, 1, &attr, 1);
}

static berth_value attention_grad_constant(writer *w, berth_type type, berth_shape shape, const void *data,
                                           size_t size) {
  berth_value out = BERTH_VALUE_NONE;
  char name[256];
  if (w->status != BERTH_OK) return out;
  berth__rewrite_name(w->r->graph, w->node->out[0], "#apart", name, sizeof name);
  w->status = berth_graph_constant(w->r->graph, name, type, shape, data, size, &out, w->err);
  return out;
}

/* Sequences [from, to) of an operand, [B, H, S, D]. */
static berth_value attention_grad_heads(writer *w, uint32_t operand, int64_t from, int64_t to) {
  berth_value a = w->node->in[operand];
  const berth__shape shape = w->r->graph->values[a].shape;
  const int64_t axis = 0, rows = shape.dim[shape.rank - 2];
  const berth_attr part[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &from, 1),
                             berth_attr_ints("ends", &to, 1)};
  if (to - from != w->a.batch) a = attention_grad_op(w, BERTH__OP_narrow, &a, 1, part, 3);
  if (shape.rank == 4) return a;
  a = attention_grad_shape(w, a, (const int64_t[]){to - from, rows, w->a.heads, w->a.size}, 4);
  return attention_grad_turn(w, a, (const int64_t[]){0, 2, 1, 3});
}

/* Back to the operands' layout. */
static berth_value attention_grad_back(writer *w, berth_value a, int64_t batch, int64_t rows) {
  if (w->r->graph->values[w->node->in[BERTH__ATTENTION_Q]].shape.rank == 4) return a;
  a = attention_grad_turn(w, a, (const int64_t[]){0, 2, 1, 3});
  return attention_grad_shape(w, a, (const int64_t[]){batch, rows, w->a.heads * w->a.size}, 3);
}

/* Query i has position T - S + i. */
static void attention_grad_positions(writer *w) {
  const float scale = (float)w->a.scale, lowest = -1e30f;
  berth_context *ctx = w->r->graph->ctx;
  w->seen = BERTH_VALUE_NONE;
  w->scale = attention_grad_constant(w, BERTH_F32, berth_shape_fixed(0, NULL), &scale, sizeof scale);
  if (!w->a.is_causal || w->status != BERTH_OK) return;
  const size_t n = (size_t)w->a.keys, first = (size_t)(w->a.keys - w->a.queries);
  int32_t *at = berth__alloc_array(ctx, n, sizeof *at);
  if (at == NULL) {
    w->status = berth__fail_nomem(w->err, "a graph");
    return;
  }
  for (size_t i = 0; i < n; i++) at[i] = (int32_t)i;
  const berth_value key = attention_grad_constant(w, BERTH_I32, BERTH_SHAPE(w->a.keys), at, n * sizeof *at);
  const berth_value query =
      attention_grad_constant(w, BERTH_I32, BERTH_SHAPE(w->a.queries, 1), at + first, (n - first) * sizeof *at);
  w->lowest = attention_grad_constant(w, BERTH_F32, berth_shape_fixed(0, NULL), &lowest, sizeof lowest);
  w->seen = attention_grad_2(w, BERTH__OP_le, key, query);
  berth__free(ctx, at);
}

/* The gradients of one slice of sequences. */
static void attention_grad_slice(writer *w, int64_t from, int64_t to, berth_value out[3]) {
  const int64_t last = -1, n = to - from;
  const berth_attr along = berth_attr_int("axis", -1);
  const berth_attr sum[] = {berth_attr_ints("axes", &last, 1), berth_attr_int("keepdims", 1)};
  const berth_value q =
      attention_grad_2(w, BERTH__OP_mul, attention_grad_heads(w, BERTH__ATTENTION_Q, from, to), w->scale);
  const berth_value k = attention_grad_heads(w, BERTH__ATTENTION_K, from, to);
  const berth_value v = attention_grad_heads(w, BERTH__ATTENTION_V, from, to);
  const berth_value dy = attention_grad_heads(w, BERTH__ATTENTION_DY, from, to);
  berth_value scores = attention_grad_2(w, BERTH__OP_matmul, q, attention_grad_swap(w, k));
  const berth_value seen[] = {w->seen, scores, w->lowest};
  if (w->seen != BERTH_VALUE_NONE) scores = attention_grad_op(w, BERTH__OP_where, seen, 3, NULL, 0);
  const berth_value p = attention_grad_op(w, BERTH__OP_softmax, &scores, 1, &along, 1);
  const berth_value dp = attention_grad_2(w, BERTH__OP_matmul, dy, attention_grad_swap(w, v));
  const berth_value both = attention_grad_2(w, BERTH__OP_mul, p, dp);
  const berth_value sums = attention_grad_op(w, BERTH__OP_reduce_sum, &both, 1, sum, 2);
  const berth_value ds = attention_grad_2(w, BERTH__OP_mul, p, attention_grad_2(w, BERTH__OP_sub, dp, sums));
  const berth_value dq = attention_grad_2(w, BERTH__OP_mul, attention_grad_2(w, BERTH__OP_matmul, ds, k), w->scale);
  const berth_value dk = attention_grad_2(w, BERTH__OP_matmul, attention_grad_swap(w, ds), q);
  const berth_value dv = attention_grad_2(w, BERTH__OP_matmul, attention_grad_swap(w, p), dy);
  out[0] = attention_grad_back(w, dq, n, w->a.queries);
  out[1] = attention_grad_back(w, dk, n, w->a.keys);
  out[2] = attention_grad_back(w, dv, n, w->a.keys);
}

static berth_status attention_grad_write(writer *w) {
  const int64_t n = (w->a.batch + w->a.step - 1) / w->a.step;
  berth_context *ctx = w->r->graph->ctx;
  berth_value *parts = berth__alloc_array(ctx, 3 * (size_t)n, sizeof *parts);
  const berth_attr axis = berth_attr_int("axis", 0);
  if (parts == NULL) return berth__fail_nomem(w->err, "a graph");
  attention_grad_positions(w);
  for (int64_t i = 0; i < n && w->status == BERTH_OK; i++) {
    const int64_t from = i * w->a.step, to = from + w->a.step < w->a.batch ? from + w->a.step : w->a.batch;
    berth_value out[3];
    attention_grad_slice(w, from, to, out);
    for (int64_t k = 0; k < 3; k++) parts[k * n + i] = out[k];
  }
  for (uint32_t k = 0; k < 3 && w->status == BERTH_OK; k++)
    w->status =
        berth__rewrite_make(w->r, BERTH__OP_concat, parts + k * n, (size_t)n, &axis, 1, w->node->out[k], w->err);
  berth__free(ctx, parts);
  return w->status;
}

static berth_status attention_grad_rewrite(berth__rewrite *r, berth_graph *graph, berth__rewrite_keeps *keeps,
                                           const void *user, berth_error *err) {
  BERTH__TRY(berth__rewrite_start(r, graph, err));
  for (size_t n = 0; n < r->n_old; n++) {
    writer w = {.r = r, .node = &r->old[n], .err = err};
    const bool is_one = w.node->op->code == BERTH__OP_attention_grad && attention_grad_is_plain(graph, w.node) &&
                        attention_grad_read(graph, w.node, &w.a) && !keeps(graph, w.node, user);
    BERTH__TRY(is_one ? attention_grad_write(&w) : berth__rewrite_keep(r, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_attention_grad(berth_graph *graph, berth__rewrite_keeps *keeps, const void *user,
                                           berth_error *err) {
  berth__rewrite r = {0};
  const berth_status status = attention_grad_rewrite(&r, graph, keeps, user, err);
  berth__rewrite_finish(&r);
  return status;
}
