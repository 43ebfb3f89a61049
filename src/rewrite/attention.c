/* Recognises attention as exporters write it, softmax(q k' * scale + bias) v as separate products, and makes it one
 * node (flash attention): the matrix of scores is then never in memory. Heads that were split by transposes stay
 * views. */
#include "pass/pass.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

/* A match; node `sink` makes its result. */
typedef struct match {
  berth_value q, k, v, bias, out;
  bool is_k_turned; /* k is [B, H, D, T] */
  bool is_merged;   /* the result is [B, S, H * D] */
  double scale;
} match;

typedef struct pass {
  berth__rewrite r;
  berth__uses uses;
  match *matches;
  uint32_t *match_of; /* one per node: the match whose sink it is; BERTH__NO_NODE: none */
  uint32_t n_matches;
} pass;

static const berth__shape *rewrite_attention_shape_of(const berth_graph *graph, berth_value value) {
  return &graph->values[value].shape;
}

/* Skips multiplications and divisions by constants. */
static berth_value unscaled(const berth_graph *graph, berth_value value, double *scale) {
  for (;;) {
    const berth__node *mul = berth__maker(graph, value, BERTH__OP_mul),
                      *div = berth__maker(graph, value, BERTH__OP_div);
    const berth__node *node = mul != NULL ? mul : div;
    double number;
    if (node == NULL) return value;
    const uint32_t at = berth__is_float_number(&graph->values[node->in[1]], &number) ? 1 : 0;
    if (at == 0 && (div != NULL || !berth__is_float_number(&graph->values[node->in[0]], &number))) return value;
    if (!berth__shape_equal(rewrite_attention_shape_of(graph, node->in[1 - at]),
                            rewrite_attention_shape_of(graph, value)))
      return value;
    *scale = div != NULL ? *scale / number : *scale * number;
    value = node->in[1 - at];
  }
}

/* k and v repeated for the heads of a group: [B, KH, T, D] -> [B, KH, 1, T, D] -> [B, KH, G, T, D] -> [B, KH G, T, D].
 * Returns what is repeated, or the value itself. */
static berth_value unrepeated(const berth_graph *graph, berth_value value) {
  const berth__node *merge = berth__maker(graph, value, BERTH__OP_reshape);
  const berth__node *expand = merge != NULL ? berth__maker(graph, merge->in[0], BERTH__OP_expand) : NULL;
  const berth__node *open = expand != NULL ? berth__maker(graph, expand->in[0], BERTH__OP_unsqueeze) : NULL;
  if (open == NULL) return value;
  const berth__shape *x = rewrite_attention_shape_of(graph, open->in[0]),
                     *opened = rewrite_attention_shape_of(graph, open->out[0]);
  const berth__shape *wide = rewrite_attention_shape_of(graph, expand->out[0]),
                     *out = rewrite_attention_shape_of(graph, value);
  if (x->rank != 4 || opened->rank != 5 || wide->rank != 5 || out->rank != 4) return value;
  const bool is_opened = opened->dim[1] == x->dim[1] && opened->dim[2] == 1 && opened->dim[3] == x->dim[2];
  const bool is_wide =
      wide->dim[0] == x->dim[0] && wide->dim[1] == x->dim[1] && wide->dim[3] == x->dim[2] && wide->dim[4] == x->dim[3];
  const bool is_merged = out->dim[0] == x->dim[0] && out->dim[1] == x->dim[1] * wide->dim[2] &&
                         out->dim[2] == x->dim[2] && out->dim[3] == x->dim[3];
  return is_opened && is_wide && is_merged ? open->in[0] : value;
}

/* The product that makes the scores: sets q, k and the factor of the scores. */
static bool match_scores(const pass *p, const berth_graph *graph, berth_value scores, match *m) {
  static const int64_t swap[4] = {0, 1, 3, 2};
  m->scale = 1;
  scores = unscaled(graph, scores, &m->scale);
  const berth__node *product = berth__maker(graph, scores, BERTH__OP_matmul);
  if (product == NULL || p->uses.count[scores] != 1) return false;
  m->q = unscaled(graph, product->in[0], &m->scale);
  m->k = unscaled(graph, product->in[1], &m->scale);
  const berth__node *turn = berth__maker(graph, m->k, BERTH__OP_transpose);
  m->is_k_turned = turn == NULL || !berth__has_perm(turn, swap, 4);
  if (!m->is_k_turned) m->k = unrepeated(graph, unscaled(graph, turn->in[0], &m->scale));
  return rewrite_attention_shape_of(graph, m->q)->rank == 4 && rewrite_attention_shape_of(graph, m->k)->rank == 4;
}

/* A bias must broadcast to the scores, without enlarging them. */
static bool rewrite_attention_is_bias(const berth_graph *graph, berth_value value, const berth__shape *scores) {
  const berth__shape *shape = rewrite_attention_shape_of(graph, value);
  if (shape->rank > 4 || !berth__is_float(graph->values[value].type)) return false;
  for (uint32_t k = 0; k < shape->rank; k++)
    if (shape->dim[k] != 1 && shape->dim[k] != scores->dim[4 - shape->rank + k]) return false;
  return true;
}

static bool match_weights(const pass *p, const berth_graph *graph, const berth__node *softmax, match *m) {
  const berth_value x = softmax->in[0];
  const berth__node *add = berth__maker(graph, x, BERTH__OP_add);
  m->bias = BERTH_VALUE_NONE;
  if (p->uses.count[x] != 1) return false;
  if (add == NULL) return match_scores(p, graph, x, m);
  for (uint32_t k = 0; k < 2; k++) {
    m->bias = add->in[1 - k];
    if (rewrite_attention_is_bias(graph, m->bias, rewrite_attention_shape_of(graph, x)) &&
        berth__shape_equal(rewrite_attention_shape_of(graph, add->in[k]), rewrite_attention_shape_of(graph, x)) &&
        match_scores(p, graph, add->in[k], m))
      return true;
  }
  return false;
}

/* The number of q's heads must be a multiple of that of k and v, and all other extents must match. */
static bool rewrite_attention_fits(const berth_graph *graph, const match *m) {
  const berth__shape *q = rewrite_attention_shape_of(graph, m->q), *k = rewrite_attention_shape_of(graph, m->k),
                     *v = rewrite_attention_shape_of(graph, m->v);
  const int64_t keys = k->dim[m->is_k_turned ? 3 : 2], size = k->dim[m->is_k_turned ? 2 : 3];
  const berth_value values[] = {m->q, m->k, m->v, m->bias, m->out};
  for (uint32_t i = 0; i < sizeof values / sizeof *values; i++)
    if (values[i] != BERTH_VALUE_NONE && graph->values[values[i]].bounded != 0) return false;
  return m->scale != 0 && v->rank == 4 && q->dim[0] == k->dim[0] && q->dim[0] == v->dim[0] && k->dim[1] == v->dim[1] &&
         k->dim[1] > 0 && q->dim[1] % k->dim[1] == 0 && keys == v->dim[2] && size == q->dim[3];
}

/* The merge of the result's heads: a transpose and a reshape after it. */
static void match_merge(const pass *p, const berth_graph *graph, match *m, uint32_t *sink) {
  static const int64_t perm[4] = {0, 2, 1, 3};
  const berth__shape *out = rewrite_attention_shape_of(graph, m->out);
  const berth__node *turn = berth__only_reader(graph, &p->uses, m->out, BERTH__OP_transpose);
  if (turn == NULL || !berth__has_perm(turn, perm, 4)) return;
  const berth__node *merge = berth__only_reader(graph, &p->uses, turn->out[0], BERTH__OP_reshape);
  if (merge == NULL || merge->in[0] != turn->out[0]) return;
  const berth__shape *merged = rewrite_attention_shape_of(graph, merge->out[0]);
  if (merged->rank != 3 || merged->dim[0] != out->dim[0] || merged->dim[1] != out->dim[2]) return;
  *sink = p->uses.reader[turn->out[0]];
  m->out = merge->out[0];
  m->is_merged = true;
}

static bool match_at(const pass *p, const berth_graph *graph, const berth__node *softmax, match *m, uint32_t *sink) {
  const berth_value weights = softmax->out[0];
  *m = (match){0};
  if (softmax->op->code != BERTH__OP_softmax || !berth__is_float(graph->values[weights].type)) return false;
  const int64_t axis = softmax->attrs[BERTH__SOFTMAX_AXIS].i;
  if (rewrite_attention_shape_of(graph, weights)->rank != 4 || (axis != 3 && axis != -1)) return false;
  const berth__node *product = berth__only_reader(graph, &p->uses, weights, BERTH__OP_matmul);
  if (product == NULL || product->in[0] != weights || !match_weights(p, graph, softmax, m)) return false;
  m->v = product->in[1];
  const berth_value shared = unrepeated(graph, m->v);
  if (rewrite_attention_shape_of(graph, shared)->dim[1] == rewrite_attention_shape_of(graph, m->k)->dim[1])
    m->v = shared;
  m->out = product->out[0];
  *sink = p->uses.reader[weights];
  if (!rewrite_attention_fits(graph, m)) return false;
  match_merge(p, graph, m, sink);
  return true;
}

static void rewrite_attention_find(pass *p, const berth_graph *graph) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    uint32_t sink;
    if (match_at(p, graph, &graph->nodes[n], &p->matches[p->n_matches], &sink)) p->match_of[sink] = p->n_matches++;
  }
}

static berth_status rewrite_attention_emit(pass *p, const match *m, berth_error *err) {
  const int64_t swap[4] = {0, 1, 3, 2};
  const berth_attr perm = berth_attr_ints("perm", swap, 4);
  const berth_attr attrs[] = {berth_attr_float("scale", m->scale), berth_attr_int("merged", m->is_merged)};
  berth_value in[5] = {m->q, m->k, m->v, BERTH_VALUE_NONE, m->bias};
  if (m->is_k_turned)
    BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_transpose, &m->k, 1, &perm, 1, m->k, "#keys", &in[1], err));
  return berth__rewrite_make(&p->r, BERTH__OP_attention, in, m->bias != BERTH_VALUE_NONE ? 5 : 3, attrs, 2, m->out,
                             err);
}

static berth_status rewrite_attention_allocate(pass *p, const berth_graph *graph, berth_error *err) {
  uint32_t n_softmax = 1; /* one more, for the match being tried */
  for (size_t n = 0; n < graph->n_nodes; n++) n_softmax += graph->nodes[n].op->code == BERTH__OP_softmax;
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  p->matches = berth__alloc_array(graph->ctx, n_softmax, sizeof *p->matches);
  p->match_of = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->match_of);
  if (p->matches == NULL || p->match_of == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t n = 0; n < graph->n_nodes; n++) p->match_of[n] = BERTH__NO_NODE;
  return BERTH_OK;
}

static berth_status attention_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(rewrite_attention_allocate(p, graph, err));
  rewrite_attention_find(p, graph);
  if (p->n_matches == 0) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (size_t n = 0; n < p->r.n_old; n++) {
    const bool is_sink = p->match_of[n] != BERTH__NO_NODE;
    BERTH__TRY(is_sink ? rewrite_attention_emit(p, &p->matches[p->match_of[n]], err)
                       : berth__rewrite_keep(&p->r, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_attention(berth_graph *graph, berth_error *err) {
  pass p = {0};
  berth_status status = attention_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.matches);
  berth__free(graph->ctx, p.match_of);
  if (status != BERTH_OK || p.n_matches == 0) return status;
  return berth__pass_dead(graph, err); /* the nodes that made the scores */
}
