/* Turns small weights that a file's reader made constants, so that shapes could depend on them, back into params.
 *
 * A constant is a weight if every reader uses it as one. Products, convolutions, norms, embeddings and recurrent layers
 * have operands that are always weights; so has a gather with varying indices, which is how ONNX writes an embedding.
 * An operand of an element-wise sum or product is a weight if the other operand depends on a weight: the scale of
 * inputs before the first layer stays constant, and so do scalars. */
#include "grad/grad.h"

typedef struct thaw {
  berth_graph *graph;
  bool *is_weight; /* one per value: it will be a param */
  bool *depends;   /* one per value: it depends on a weight */
} thaw;

#define ALL_OPERANDS UINT32_MAX

/* The operands (as bits) of an op that are always weights. */
static uint32_t thaw_weights_of(berth__op_code op) {
  switch (op) {
    case BERTH__OP_matmul: return ALL_OPERANDS;
    case BERTH__OP_conv:
    case BERTH__OP_conv_transpose: return 1u << BERTH__CONV_WEIGHT | 1u << BERTH__CONV_BIAS;
    case BERTH__OP_deform_conv: return 1u << BERTH__DEFORM_WEIGHT | 1u << BERTH__DEFORM_BIAS;
    case BERTH__OP_layer_norm:
    case BERTH__OP_rms_norm:
    case BERTH__OP_group_norm:
    case BERTH__OP_batch_norm: return 1u << BERTH__NORM_SCALE | 1u << BERTH__NORM_BIAS;
    case BERTH__OP_embedding: return 1u << BERTH__GATHER_X;
    case BERTH__OP_lstm:
    case BERTH__OP_gru:
    case BERTH__OP_rnn:
      return 1u << BERTH__RECURRENT_WEIGHT | 1u << BERTH__RECURRENT_RECURRENCE | 1u << BERTH__RECURRENT_BIAS |
             1u << BERTH__RECURRENT_PEEPHOLES;
    default: return 0;
  }
}

/* A table with varying row indices. */
static bool thaw_is_table(const thaw *t, const berth__node *node, uint32_t k) {
  if (node->op->code != BERTH__OP_gather || k != BERTH__GATHER_X || node->attrs[BERTH__GATHER_AXIS].i != 0)
    return false;
  return t->graph->values[node->in[BERTH__GATHER_X]].shape.rank >= 2 &&
         t->graph->values[node->in[BERTH__GATHER_INDICES]].kind != BERTH_VALUE_CONSTANT;
}

/* Only moves elements: its readers decide. */
static bool thaw_moves(berth__op_code op) {
  return op == BERTH__OP_reshape || op == BERTH__OP_transpose || op == BERTH__OP_squeeze || op == BERTH__OP_unsqueeze ||
         op == BERTH__OP_expand || op == BERTH__OP_identity || op == BERTH__OP_cast || op == BERTH__OP_flatten;
}

static bool thaw_makes_sums(const thaw *t, berth_value value) {
  const berth__value *v = &t->graph->values[value];
  if (v->kind != BERTH_VALUE_NODE) return false;
  const berth__op_code op = t->graph->nodes[v->node].op->code;
  return op == BERTH__OP_matmul || op == BERTH__OP_conv || op == BERTH__OP_conv_transpose;
}

/* A single element is a bias if it is added to a product. */
static bool thaw_is_beside(const thaw *t, const berth__node *node, uint32_t k) {
  const berth__op_code op = node->op->code;
  const bool is_arithmetic = op == BERTH__OP_add || op == BERTH__OP_sub || op == BERTH__OP_mul || op == BERTH__OP_div;
  int64_t count = 0;
  if (!is_arithmetic) return false;
  const berth_value other = node->in[1 - k];
  (void)berth__shape_count(&t->graph->values[node->in[k]].shape, &count);
  return t->depends[other] && (count > 1 || (op == BERTH__OP_add && thaw_makes_sums(t, other)));
}

static bool thaw_reads_weight(const thaw *t, const berth__node *node, berth_value value, bool is_sure, bool *reads);

/* Whether all readers of the value use it as a weight, and there is one. is_sure: by its operand position alone. */
static bool thaw_is_read_so(const thaw *t, berth_value value, bool is_sure) {
  bool reads = false;
  for (size_t i = 0; i < t->graph->n_outputs; i++)
    if (t->graph->outputs[i].value == value) return false;
  for (size_t n = 0; n < t->graph->n_nodes; n++)
    if (!thaw_reads_weight(t, &t->graph->nodes[n], value, is_sure, &reads)) return false;
  return reads;
}

static bool thaw_reads_weight(const thaw *t, const berth__node *node, berth_value value, bool is_sure, bool *reads) {
  for (uint32_t k = 0; k < node->n_in; k++) {
    if (node->in[k] != value) continue;
    *reads = true;
    if (k < 32 && (thaw_weights_of(node->op->code) >> k & 1u)) continue;
    if (thaw_is_table(t, node, k)) continue;
    if (k == 0 && thaw_moves(node->op->code) && thaw_is_read_so(t, node->out[0], is_sure)) continue;
    if (is_sure || !thaw_is_beside(t, node, k)) return false;
  }
  return true;
}

static bool thaw_may(const thaw *t, berth_value value) {
  const berth__value *v = &t->graph->values[value];
  return v->kind == BERTH_VALUE_CONSTANT && v->is_initializer && berth__type_is_float(v->type) && v->shape.rank != 0;
}

static void thaw_find(thaw *t, bool is_sure) {
  for (size_t v = 0; v < t->graph->n_values; v++)
    if (thaw_may(t, (berth_value)v) && !t->is_weight[v]) t->is_weight[v] = thaw_is_read_so(t, (berth_value)v, is_sure);
}

static void thaw_mark_dependent(thaw *t) {
  const berth_graph *graph = t->graph;
  for (size_t v = 0; v < graph->n_values; v++)
    t->depends[v] =
        t->is_weight[v] || (graph->values[v].kind == BERTH_VALUE_PARAM && berth__type_is_float(graph->values[v].type));
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    bool depends = false;
    for (uint32_t i = 0; i < node->n_in; i++)
      depends = depends || (node->in[i] != BERTH_VALUE_NONE && t->depends[node->in[i]]);
    for (uint32_t i = 0; i < node->n_out; i++) t->depends[node->out[i]] = depends;
  }
}

static void thaw_retain(void *blob) { berth__blob_retain(blob); }
static void thaw_release(void *blob) { berth__blob_release(blob); }
static void thaw_rest(void *blob, const void *data, size_t size) { (void)blob, (void)data, (void)size; }

/* The bytes stay in place, owned by the graph. */
static berth_status thaw_one(berth_graph *graph, berth_value value, berth_error *err) {
  berth__value *v = &graph->values[value];
  const berth__keep keep = {.object = v->blob, .retain = thaw_retain, .release = thaw_release, .rest = thaw_rest};
  BERTH__TRY(BERTH__RESERVE(graph->ctx, graph->params, graph->params_capacity, graph->n_params + 1, err));
  BERTH__TRY(berth__graph_keep(graph, &keep, err));
  berth__blob_release(v->blob);
  v->blob = NULL;
  v->kind = BERTH_VALUE_PARAM;
  graph->params[graph->n_params++] = value;
  return BERTH_OK;
}

/* Values computed from former constants are no longer known. */
static void thaw_forget(const thaw *t) {
  for (size_t v = 0; v < t->graph->n_values; v++) {
    berth__value *value = &t->graph->values[v];
    if (value->kind != BERTH_VALUE_NODE || !t->depends[v]) continue;
    berth__blob_release(value->blob);
    berth__blob_release(value->low);
    berth__blob_release(value->high);
    value->blob = value->low = value->high = NULL;
    value->data = NULL;
  }
}

static berth_status thaw_all(thaw *t, uint32_t *n, berth_error *err) {
  thaw_find(t, true);
  thaw_mark_dependent(t);
  thaw_find(t, false);
  thaw_mark_dependent(t);
  for (size_t v = 0; v < t->graph->n_values; v++) {
    if (!t->is_weight[v]) continue;
    BERTH__TRY(thaw_one(t->graph, (berth_value)v, err));
    (*n)++;
  }
  thaw_forget(t);
  return BERTH_OK;
}

berth_status berth_graph_thaw(berth_graph *graph, uint32_t *n, berth_error *err) {
  uint32_t ignored;
  if (n == NULL) n = &ignored;
  *n = 0;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_thaw needs a graph");
  berth_context *ctx = graph->ctx;
  thaw t = {.graph = graph,
            .is_weight = berth__alloc_array_zero(ctx, graph->n_values, sizeof *t.is_weight),
            .depends = berth__alloc_array_zero(ctx, graph->n_values, sizeof *t.depends)};
  const bool ok = t.is_weight != NULL && t.depends != NULL;
  const berth_status status = ok ? thaw_all(&t, n, err) : berth__fail_nomem(err, "training");
  berth__free(ctx, t.is_weight);
  berth__free(ctx, t.depends);
  return status;
}
