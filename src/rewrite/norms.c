/* Norms over the last axes that exporters expanded before ONNX had an op for them: each becomes one node.
 *
 *   layer_norm  d / sqrt(mean(d^2) + epsilon) * scale + bias, where d = x - mean(x)
 * rms_norm    the same with x instead of d, without a bias
 *
 * The quotient may be a product with 1 / sqrt; scale and bias are optional. */
#include "pass/pass.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

typedef struct match {
  berth_value in[3]; /* x, scale, bias: the last two may be BERTH_VALUE_NONE */
  double epsilon;
  bool is_centred;
  uint32_t sink; /* the node that makes the result */
} match;

typedef struct pass {
  const berth_graph *graph;
  berth__rewrite r;
  berth__uses uses;
  match *matches; /* one per node; sink is the node itself, or BERTH__NO_NODE */
  uint32_t n_matches;
} pass;

static bool is_read_by(const pass *p, berth_value value, uint32_t times) {
  return p->uses.count[value] == times && !p->uses.is_output[value];
}

/* The value of which this is the mean along the last axis, kept with extent 1. */
static berth_value meant(const pass *p, berth_value value) {
  const berth__node *mean = berth__maker(p->graph, value, BERTH__OP_reduce_mean);
  if (mean == NULL || mean->n_in != 1 || !is_read_by(p, value, 1)) return BERTH_VALUE_NONE;
  const int64_t rank = p->graph->values[mean->in[0]].shape.rank;
  const berth_attr *axes = &mean->attrs[BERTH__REDUCE_AXES];
  const bool is_last = axes->count == 1 && (axes->ints[0] == -1 || axes->ints[0] == rank - 1);
  return is_last && mean->attrs[BERTH__REDUCE_KEEPDIMS].i != 0 ? mean->in[0] : BERTH_VALUE_NONE;
}

/* The value whose mean square is under a root, and the number added to it. */
static berth_value under_root(const pass *p, berth_value root, double *epsilon) {
  const berth__node *add = berth__maker(p->graph, root, BERTH__OP_add), *square = NULL;
  if (add == NULL || !is_read_by(p, root, 1)) return BERTH_VALUE_NONE;
  for (uint32_t i = 0; i < 2 && square == NULL; i++)
    if (berth__is_float_number(&p->graph->values[add->in[1 - i]], epsilon)) {
      const berth_value squared = meant(p, add->in[i]);
      square = squared != BERTH_VALUE_NONE && is_read_by(p, squared, 1) ? berth__maker(p->graph, squared, BERTH__OP_mul)
                                                                        : NULL;
    }
  return square != NULL && square->in[0] == square->in[1] && *epsilon >= 0 ? square->in[0] : BERTH_VALUE_NONE;
}

/* The value that a node divides by its own root mean square. */
static berth_value normalised(const pass *p, const berth__node *node, double *epsilon) {
  const berth_graph *graph = p->graph;
  for (uint32_t i = 0; i < 2; i++) {
    const berth_value by = node->in[1 - i];
    const berth__node *root = NULL;
    if (node->op->code == BERTH__OP_div && i == 0) root = berth__maker(graph, by, BERTH__OP_sqrt);
    if (node->op->code == BERTH__OP_mul) {
      root = berth__maker(graph, by, BERTH__OP_rsqrt);
      const berth__node *turned = berth__maker(graph, by, BERTH__OP_reciprocal);
      if (turned != NULL && is_read_by(p, turned->in[0], 1)) root = berth__maker(graph, turned->in[0], BERTH__OP_sqrt);
    }
    if (root == NULL || !is_read_by(p, by, 1)) continue;
    const berth_value x = under_root(p, root->in[0], epsilon);
    if (x != BERTH_VALUE_NONE && x == node->in[i]) return x;
  }
  return BERTH_VALUE_NONE;
}

/* The node that is the only reader of the result so far and joins it by `op` with one number per element of a line. */
static bool norms_take(const pass *p, match *m, berth__op_code op, uint32_t operand) {
  const berth_graph *graph = p->graph;
  const berth_value before = graph->nodes[m->sink].out[0];
  const berth__node *next = berth__only_reader(graph, &p->uses, before, op);
  const berth__shape *shape = &graph->values[before].shape;
  if (next == NULL) return false;
  const berth_value with = next->in[0] == before ? next->in[1] : next->in[0];
  const berth__value *value = &graph->values[with];
  if (with == before || value->type != graph->values[before].type || value->bounded != 0) return false;
  if (value->shape.rank != 1 || value->shape.dim[0] != shape->dim[shape->rank - 1]) return false;
  m->in[operand] = with;
  m->sink = p->uses.reader[before];
  return true;
}

static bool norms_match(const pass *p, uint32_t n, match *m) {
  const berth_graph *graph = p->graph;
  const berth__node *node = &graph->nodes[n], *sub;
  *m = (match){.in = {BERTH_VALUE_NONE, BERTH_VALUE_NONE, BERTH_VALUE_NONE}, .sink = n};
  if ((node->op->code != BERTH__OP_div && node->op->code != BERTH__OP_mul) || berth__node_is_bounded(graph, node))
    return false;
  const berth_value x = normalised(p, node, &m->epsilon);
  if (x == BERTH_VALUE_NONE || !berth__is_float(graph->values[x].type)) return false;
  if (!berth__shape_equal(&graph->values[x].shape, &graph->values[node->out[0]].shape)) /* an epsilon with more axes */
    return false;
  m->in[BERTH__NORM_X] = x;
  /* read by the square, twice, and here */
  if ((sub = berth__maker(graph, x, BERTH__OP_sub)) != NULL && is_read_by(p, x, 3) &&
      meant(p, sub->in[1]) == sub->in[0]) {
    m->is_centred = true;
    m->in[BERTH__NORM_X] = sub->in[0];
  }
  if (norms_take(p, m, BERTH__OP_mul, BERTH__NORM_SCALE) && m->is_centred)
    norms_take(p, m, BERTH__OP_add, BERTH__NORM_BIAS);
  return true;
}

static void norms_find(pass *p) {
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) p->matches[n].sink = BERTH__NO_NODE;
  for (uint32_t n = 0; n < p->graph->n_nodes; n++) {
    match m;
    if (!norms_match(p, n, &m)) continue;
    p->matches[m.sink] = m;
    p->n_matches++;
  }
}

static berth_status norms_emit(pass *p, berth_error *err) {
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    const match *m = &p->matches[n];
    if (m->sink != n) {
      BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
      continue;
    }
    const berth_attr attrs[] = {berth_attr_int("axis", -1), berth_attr_float("epsilon", m->epsilon)};
    const uint32_t n_in = m->in[BERTH__NORM_BIAS] != BERTH_VALUE_NONE    ? 3
                          : m->in[BERTH__NORM_SCALE] != BERTH_VALUE_NONE ? 2
                                                                         : 1;
    BERTH__TRY(berth__rewrite_make(&p->r, m->is_centred ? BERTH__OP_layer_norm : BERTH__OP_rms_norm, m->in, n_in, attrs,
                                   2, p->r.old[n].out[0], err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_norms(berth_graph *graph, berth_error *err) {
  pass p = {.graph = graph};
  berth_status status = berth__uses_create(&p.uses, graph, err);
  p.matches = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p.matches);
  if (status == BERTH_OK && p.matches == NULL) status = berth__fail_nomem(err, "rewriting a graph");
  if (status == BERTH_OK) norms_find(&p);
  if (status == BERTH_OK && p.n_matches != 0) {
    status = berth__rewrite_start(&p.r, graph, err);
    if (status == BERTH_OK) status = norms_emit(&p, err);
    berth__rewrite_finish(&p.r);
    if (status == BERTH_OK) status = berth__pass_dead(graph, err);
  }
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.matches);
  return status;
}
