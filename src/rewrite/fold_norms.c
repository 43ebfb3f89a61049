/* Folds batch norms (channels first). If a batch norm is the only reader of a convolution, it is folded into the weight
 * and bias, which the prelude computes. Any other becomes a product and a sum, which fusion then absorbs. */
#include "ops/conv.h"
#include "pass/prelude.h"
#include "rewrite/convolution.h"
#include "rewrite/pattern.h"

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  berth__uses uses;
  bool *is_static;
  uint32_t *norm_of; /* one per node: of a convolution, the norm folded into it; BERTH__NO_NODE: none */
  bool *is_folded;   /* one per node: a norm that is folded into a convolution */
  bool changes;
} pass;

/* An f32 norm whose scale, bias, mean and variance are known before a run. */
static bool fold_is_static(const pass *p, const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_batch_norm || berth__node_is_bounded(graph, node)) return false;
  for (uint32_t i = 0; i < node->n_in; i++)
    if (graph->values[node->in[i]].type != BERTH_F32 || (i != BERTH__NORM_X && !p->is_static[node->in[i]]))
      return false;
  return !p->is_static[node->in[BERTH__NORM_X]];
}

/* Whether a convolution may get another weight and bias. A weight with other readers would be in memory twice. */
static bool fold_takes(const pass *p, const berth_graph *graph, const berth__node *conv) {
  const bool is_plain = conv->op->code == BERTH__OP_conv && !berth__conv_has_epilogue(conv->attrs);
  const bool is_transposed =
      conv->op->code == BERTH__OP_conv_transpose && conv->attrs[BERTH__CONV_GROUP].i == 1; /* outputs are one axis */
  const berth_value bias = berth__operand_of(conv, BERTH__CONV_BIAS);
  if ((!is_plain && !is_transposed) || p->target->keeps_params || berth__node_is_bounded(graph, conv)) return false;
  if (p->uses.count[conv->in[BERTH__CONV_WEIGHT]] != 1 || !p->is_static[conv->in[BERTH__CONV_WEIGHT]]) return false;
  return bias == BERTH_VALUE_NONE || p->is_static[bias];
}

static void fold_find(pass *p, const berth_graph *graph) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *norm = &graph->nodes[n];
    p->norm_of[n] = BERTH__NO_NODE;
    if (!fold_is_static(p, graph, norm)) continue;
    p->changes = true;
    const berth_value x = norm->in[BERTH__NORM_X];
    if (graph->values[x].kind != BERTH_VALUE_NODE || p->uses.count[x] != 1 || p->uses.is_output[x]) continue;
    const uint32_t maker = graph->values[x].node;
    if (!fold_takes(p, graph, &graph->nodes[maker])) continue;
    p->norm_of[maker] = n;
    p->is_folded[n] = true;
  }
}

/* [C] viewed as [C, 1, ...], to broadcast with `after` axes after the channels. */
static berth_status fold_spread(pass *p, berth_value *value, uint32_t after, berth_error *err) {
  berth_dim dims[BERTH_MAX_RANK] = {{.extent = p->r.graph->values[*value].shape.dim[0]}};
  for (uint32_t k = 1; k <= after; k++) dims[k] = (berth_dim){.extent = 1};
  const berth_attr attr = berth_attr_dims("shape", dims, after + 1);
  if (after == 0) return BERTH_OK;
  return berth__rewrite_add(&p->r, BERTH__OP_reshape, value, 1, &attr, 1, *value, "#spread", value, err);
}

static berth_status fold_into_conv(pass *p, const berth__node *conv, const berth__node *norm, berth_error *err) {
  const uint32_t rank = p->r.graph->values[conv->in[BERTH__CONV_WEIGHT]].shape.rank;
  const bool is_transposed = conv->op->code == BERTH__OP_conv_transpose;
  berth_value in[] = {[BERTH__CONV_X] = conv->in[BERTH__CONV_X],
                      [BERTH__CONV_WEIGHT] = BERTH_VALUE_NONE,
                      [BERTH__CONV_BIAS] = berth__operand_of(conv, BERTH__CONV_BIAS)};
  berth_value scaled[] = {conv->in[BERTH__CONV_WEIGHT], BERTH_VALUE_NONE};
  berth_attr given[16];
  uint32_t n_given = 0;
  BERTH__TRY(berth__rewrite_norm(&p->r, norm, in[BERTH__CONV_BIAS], &scaled[1], &in[BERTH__CONV_BIAS], err));
  BERTH__TRY(fold_spread(p, &scaled[1], is_transposed ? rank - 2 : rank - 1, err)); /* the axis of the outputs */
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_mul, scaled, 2, NULL, 0, conv->in[BERTH__CONV_WEIGHT], "#folded",
                                &in[BERTH__CONV_WEIGHT], err));
  for (uint32_t i = 0; i < conv->op->family->n_attrs; i++) given[n_given++] = conv->attrs[i];
  return berth__rewrite_make(&p->r, conv->op->code, in, sizeof in / sizeof *in, given, n_given, norm->out[0], err);
}

static berth_status fold_alone(pass *p, const berth__node *norm, berth_error *err) {
  const uint32_t after = p->r.graph->values[norm->in[BERTH__NORM_X]].shape.rank - 2;
  berth_value product[] = {norm->in[BERTH__NORM_X], BERTH_VALUE_NONE}, sum[2];
  BERTH__TRY(berth__rewrite_norm(&p->r, norm, BERTH_VALUE_NONE, &product[1], &sum[1], err));
  BERTH__TRY(fold_spread(p, &product[1], after, err));
  BERTH__TRY(fold_spread(p, &sum[1], after, err));
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_mul, product, 2, NULL, 0, norm->out[0], "#scaled", &sum[0], err));
  return berth__rewrite_make(&p->r, BERTH__OP_add, sum, 2, NULL, 0, norm->out[0], err);
}

/* The convolution is placed at its norm, when all operands of the norm are available. */
static berth_status fold_all(pass *p, berth_error *err) {
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    const berth__node *node = &p->r.old[n];
    if (p->norm_of[n] != BERTH__NO_NODE) continue;
    if (p->is_folded[n]) {
      uint32_t conv = n;
      while (p->norm_of[conv] != n) conv--;
      BERTH__TRY(fold_into_conv(p, &p->r.old[conv], node, err));
    } else if (fold_is_static(p, p->r.graph, node)) {
      BERTH__TRY(fold_alone(p, node, err));
    } else {
      BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
    }
  }
  return BERTH_OK;
}

static berth_status fold_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  p->norm_of = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->norm_of);
  p->is_folded = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *p->is_folded);
  if (p->norm_of == NULL || p->is_folded == NULL) return berth__fail_nomem(err, "rewriting a graph");
  fold_find(p, graph);
  if (!p->changes) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  return fold_all(p, err);
}

berth_status berth__rewrite_fold_norms(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  const berth_status status = fold_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.is_static);
  berth__free(graph->ctx, p.norm_of);
  berth__free(graph->ctx, p.is_folded);
  return status;
}
