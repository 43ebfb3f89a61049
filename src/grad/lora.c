/* Low-rank adapters: a copy of a graph in which products with params get a second, narrow path. */
#include <stdio.h>

#include "base/desc.h"
#include "base/text.h"
#include "graph/graph.h"

typedef struct lora {
  berth_lora_desc desc;
  const berth_graph *from;
  berth_graph *to;
  berth_value *map; /* one per value of `from`: its counterpart in `to` */
  berth_value *a;   /* one per value of `from`, only for params: its adapter in `to`; BERTH_VALUE_NONE: none yet */
  berth_value *b;
  bool *is_asked;                         /* one per value of `from`: an adapter is requested for its products */
  bool *is_plain, *is_turned, *is_shared; /* one per value: multiplied directly; transposed; or also read otherwise */
  size_t n;                               /* number of adapters */
} lora;

/* Whether a node swaps the axes of a matrix; a transpose may also leave them unchanged. */
static bool lora_turns(const berth__node *node) {
  const berth_attr *perm = &node->attrs[BERTH__TRANSPOSE_PERM];
  return node->op->code == BERTH__OP_transpose && (perm->count == 0 || perm->ints[0] != 0);
}

/* The matrix of a product: a param, or the transpose of one. */
static berth_value lora_matrix(const lora *l, const berth__node *node, bool *is_transposed) {
  const berth_graph *graph = l->from;
  *is_transposed = false;
  if (node->op->code != BERTH__OP_matmul || graph->values[node->in[0]].shape.rank < 2) return BERTH_VALUE_NONE;
  berth_value w = node->in[1];
  const berth__value *value = &graph->values[w];
  if (value->kind == BERTH_VALUE_NODE && lora_turns(&graph->nodes[value->node])) {
    w = graph->nodes[value->node].in[0];
    *is_transposed = true;
    value = &graph->values[w];
  }
  const bool is_matrix = value->kind == BERTH_VALUE_PARAM && value->shape.rank == 2 &&
                         berth__type_is_float(value->type) && value->shape.dim[0] > 0 && value->shape.dim[1] > 0;
  return is_matrix ? w : BERTH_VALUE_NONE;
}

static berth_status lora_param(lora *l, berth_value w, const char *suffix, int64_t rows, int64_t columns,
                               berth_value *out, berth_error *err) {
  const int64_t dim[] = {rows, columns};
  berth__text name;
  berth__text_init(&name, l->to->ctx, NULL, NULL);
  berth__text_printf(&name, "%s%s", l->from->values[w].name, suffix);
  berth_status status = berth__text_finish(&name, err);
  if (status == BERTH_OK)
    status = berth_graph_param(l->to, name.data, l->from->values[w].type, berth_shape_fixed(2, dim), out, err);
  berth__text_free(&name);
  return status;
}

/* A matrix in several products has one adapter. */
static berth_status lora_adapter(lora *l, berth_value w, bool is_transposed, berth_error *err) {
  const int64_t *dim = l->from->values[w].shape.dim;
  if (l->a[w] != BERTH_VALUE_NONE) return BERTH_OK;
  BERTH__TRY(lora_param(l, w, ".lora_a", dim[is_transposed], l->desc.rank, &l->a[w], err));
  BERTH__TRY(lora_param(l, w, ".lora_b", l->desc.rank, dim[!is_transposed], &l->b[w], err));
  l->n++;
  return BERTH_OK;
}

#define LORA_NAME 256

/* A name that neither graph has: nodes copied later keep theirs. */
static const char *lora_name(const lora *l, const berth__node *node, const char *suffix, char name[LORA_NAME]) {
  uint32_t taken;
  const char *base = l->from->values[node->out[0]].name;
  snprintf(name, LORA_NAME, "%.180s.%s", base, suffix);
  for (uint32_t i = 2;
       berth__map_get(&l->from->value_names, name, &taken) || berth__map_get(&l->to->value_names, name, &taken); i++)
    snprintf(name, LORA_NAME, "%.180s.%s.%u", base, suffix, i);
  return name;
}

static berth_status lora_op(lora *l, berth__op_code op, berth_value a, berth_value b, const char *name,
                            berth_value *out, berth_error *err) {
  const berth_value in[] = {a, b};
  return berth__graph_add_op(l->to, berth__op_builtin(op), in, 2, NULL, 0, &name, out, 1, err);
}

static berth_status lora_factor(lora *l, const berth__node *node, double factor, berth_value *out, berth_error *err) {
  const berth_type type = l->from->values[node->out[0]].type;
  const float number = (float)factor;
  char name[LORA_NAME];
  double room = factor; /* of f64, as it is */
  if (type != BERTH_F64) BERTH__TRY(berth_from_f32(type, &number, 1, &room, err));
  return berth_graph_constant(l->to, lora_name(l, node, "lora_factor", name), type, berth_shape_fixed(0, NULL), &room,
                              berth_type_size(type), out, err);
}

/* x W + factor (x A) B, under the product's name. */
static berth_status lora_product(lora *l, const berth__node *node, berth_value w, const berth_value *in,
                                 berth_value *out, berth_error *err) {
  const double factor = l->desc.alpha != 0 ? l->desc.alpha / l->desc.rank : 1;
  char name[LORA_NAME];
  berth_value base, narrow, wide, number;
  BERTH__TRY(lora_op(l, BERTH__OP_matmul, in[0], in[1], lora_name(l, node, "frozen", name), &base, err));
  BERTH__TRY(lora_op(l, BERTH__OP_matmul, in[0], l->a[w], lora_name(l, node, "narrow", name), &narrow, err));
  if (factor != 1) { /* applied to the narrow value, which is the smallest */
    BERTH__TRY(lora_factor(l, node, factor, &number, err));
    BERTH__TRY(lora_op(l, BERTH__OP_mul, narrow, number, lora_name(l, node, "scaled", name), &narrow, err));
  }
  BERTH__TRY(lora_op(l, BERTH__OP_matmul, narrow, l->b[w], lora_name(l, node, "wide", name), &wide, err));
  return lora_op(l, BERTH__OP_add, base, wide, l->from->values[node->out[0]].name, out, err);
}

static berth_status lora_copy_node(lora *l, const berth__node *node, const berth_value *in, berth_value *out,
                                   berth_error *err) {
  berth_context *ctx = l->to->ctx;
  const uint32_t n = node->op->family->n_attrs;
  const char **names = berth__alloc_array(ctx, node->n_out, sizeof *names);
  berth_attr *attrs = berth__alloc_array(ctx, n, sizeof *attrs);
  uint32_t n_attrs = 0;
  berth_status status = names != NULL && attrs != NULL ? BERTH_OK : berth__fail_nomem(err, "a node");
  for (uint32_t i = 0; i < node->n_out && status == BERTH_OK; i++) names[i] = l->from->values[node->out[i]].name;
  for (uint32_t i = 0; i < n && status == BERTH_OK; i++) /* an omitted string gets its default again */
    if (node->attrs[i].kind != BERTH_ATTR_STRING || node->attrs[i].s != NULL) attrs[n_attrs++] = node->attrs[i];
  if (status == BERTH_OK)
    status = berth__graph_add_op(l->to, node->op, in, node->n_in, attrs, n_attrs, names, out, node->n_out, err);
  berth__free(ctx, names);
  berth__free(ctx, attrs);
  return status;
}

static berth_status lora_node(lora *l, const berth__node *node, berth_error *err) {
  berth_context *ctx = l->to->ctx;
  bool is_transposed;
  const berth_value w = lora_matrix(l, node, &is_transposed);
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_value *out = berth__alloc_array(ctx, node->n_out, sizeof *out);
  berth_status status = in != NULL && out != NULL ? BERTH_OK : berth__fail_nomem(err, "a node");
  for (uint32_t i = 0; i < node->n_in && status == BERTH_OK; i++)
    in[i] = node->in[i] == BERTH_VALUE_NONE ? BERTH_VALUE_NONE : l->map[node->in[i]];
  if (status == BERTH_OK && w != BERTH_VALUE_NONE && l->is_asked[w]) {
    status = lora_adapter(l, w, is_transposed, err);
    if (status == BERTH_OK) status = lora_product(l, node, w, in, out, err);
  } else if (status == BERTH_OK) {
    status = lora_copy_node(l, node, in, out, err);
  }
  for (uint32_t i = 0; i < node->n_out && status == BERTH_OK; i++) l->map[node->out[i]] = out[i];
  berth__free(ctx, in);
  berth__free(ctx, out);
  return status;
}

/* What a node sees of a value: of a transposed matrix, the matrix. */
static berth_value lora_seen(const berth_graph *graph, berth_value value) {
  const berth__value *v = &graph->values[value];
  const bool is_view = v->kind == BERTH_VALUE_NODE && graph->nodes[v->node].op->code == BERTH__OP_transpose;
  return is_view ? graph->nodes[v->node].in[0] : value;
}

/* A matrix with other readers gets no adapter: merging it would change these, too. The same applies to one that is
 * multiplied both directly and transposed, which one adapter does not fit. */
static void lora_look(lora *l) {
  const berth_graph *graph = l->from;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    bool is_transposed;
    const berth_value w = lora_matrix(l, node, &is_transposed);
    if (w != BERTH_VALUE_NONE) (is_transposed ? l->is_turned : l->is_plain)[w] = true;
    for (uint32_t i = 0; i < node->n_in; i++) {
      const berth_value read = node->in[i];
      if (read == BERTH_VALUE_NONE || (i == 1 && w != BERTH_VALUE_NONE)) continue;
      const berth_value seen = lora_seen(graph, read);
      if (node->op->code != BERTH__OP_transpose || seen != read) l->is_shared[seen] = true;
    }
  }
  for (size_t i = 0; i < graph->n_outputs; i++) l->is_shared[lora_seen(graph, graph->outputs[i].value)] = true;
  for (size_t i = 0; i < graph->n_updates; i++) l->is_shared[lora_seen(graph, graph->updates[i].next)] = true;
  for (size_t v = 0; v < graph->n_values; v++)
    if (l->is_shared[v] || (l->is_plain[v] && l->is_turned[v])) l->is_asked[v] = false;
}

static berth_status lora_check_used(const lora *l, berth_error *err) {
  for (size_t i = 0; i < l->desc.n_params; i++)
    if (l->a[l->desc.params[i]] == BERTH_VALUE_NONE)
      return berth__fail(
          err, BERTH_INVALID,
          "param '%s' cannot have an adapter: it must be the matrix of products, and nothing else may read it",
          l->from->values[l->desc.params[i]].name);
  if (l->n == 0)
    return berth__fail(err, BERTH_INVALID, "graph '%s' has no product of a value and a param that is a matrix",
                       l->from->name);
  return BERTH_OK;
}

static berth_status lora_copy(lora *l, berth_error *err) {
  const berth_graph *from = l->from;
  uint32_t index;
  for (size_t i = 0; i < from->n_dims; i++) BERTH__TRY(berth__graph_dim(l->to, from->dims[i], &index, err));
  BERTH__TRY(berth__graph_set_weights_path(l->to, from->weights_path, err));
  for (size_t i = 0; i < from->n_keeps; i++) BERTH__TRY(berth__graph_keep(l->to, &from->keeps[i], err));
  for (size_t v = 0; v < from->n_values; v++) {
    berth__value copy = from->values[v];
    copy.low = copy.high = NULL;
    if (copy.kind != BERTH_VALUE_NODE) BERTH__TRY(berth__graph_copy_source(l->to, &copy, &l->map[v], err));
  }
  for (size_t n = 0; n < from->n_nodes; n++) BERTH__TRY(lora_node(l, &from->nodes[n], err));
  for (size_t i = 0; i < from->n_outputs; i++)
    BERTH__TRY(berth_graph_output(l->to, from->outputs[i].name, l->map[from->outputs[i].value], err));
  for (size_t i = 0; i < from->n_updates; i++)
    BERTH__TRY(berth_graph_update(l->to, l->map[from->updates[i].state], l->map[from->updates[i].next], err));
  return lora_check_used(l, err);
}

static berth_status lora_mark(lora *l, berth_error *err) {
  for (size_t v = 0; v < l->from->n_values; v++) {
    l->a[v] = BERTH_VALUE_NONE;
    l->is_asked[v] = l->desc.params == NULL;
  }
  for (size_t i = 0; i < l->desc.n_params; i++) {
    const berth_value w = l->desc.params[i];
    if (w >= l->from->n_values || l->from->values[w].kind != BERTH_VALUE_PARAM)
      return berth__fail(err, BERTH_INVALID, "value %u, to be adapted, is not a param of the graph", w);
    l->is_asked[w] = true;
  }
  lora_look(l);
  return BERTH_OK;
}

static berth_status lora_make(lora *l, berth_error *err) {
  berth_context *ctx = l->from->ctx;
  const size_t n = l->from->n_values;
  l->map = berth__alloc_array(ctx, n, sizeof *l->map);
  l->a = berth__alloc_array(ctx, n, sizeof *l->a);
  l->b = berth__alloc_array(ctx, n, sizeof *l->b);
  l->is_asked = berth__alloc_array(ctx, n, sizeof *l->is_asked);
  l->is_plain = berth__alloc_array_zero(ctx, n, 3 * sizeof *l->is_plain);
  const bool has_all = l->map != NULL && l->a != NULL && l->b != NULL && l->is_asked != NULL && l->is_plain != NULL;
  if (has_all) l->is_turned = l->is_plain + n, l->is_shared = l->is_plain + 2 * n;
  berth_status status = has_all ? lora_mark(l, err) : berth__fail_nomem(err, "adapters");
  if (status == BERTH_OK) status = lora_copy(l, err);
  berth__free(ctx, l->map);
  berth__free(ctx, l->a);
  berth__free(ctx, l->b);
  berth__free(ctx, l->is_asked);
  berth__free(ctx, l->is_plain);
  return status;
}

berth_status berth_graph_lora(const berth_graph *graph, const berth_lora_desc *desc, berth_graph **out,
                              berth_error *err) {
  lora l = {.desc = BERTH_LORA_DESC_INIT, .from = graph};
  if (out == NULL) return berth__fail(err, BERTH_INVALID, "berth_graph_lora needs a pointer to store the graph");
  *out = NULL;
  if (graph == NULL) return berth__fail(err, BERTH_INVALID, "the graph is NULL");
  BERTH__TRY(BERTH__DESC_COPY(&l.desc, desc, "berth_lora_desc", err));
  if (l.desc.rank == 0 || l.desc.rank > INT32_MAX || !(l.desc.alpha >= 0))
    return berth__fail(err, BERTH_INVALID, "the rank of adapters is at least 1, and alpha is 0 or more");
  if (l.desc.params == NULL && l.desc.n_params != 0)
    return berth__fail(err, BERTH_INVALID, "params are counted but not given");
  BERTH__TRY(berth_graph_create(graph->ctx, graph->name, &l.to, err));
  l.to->is_bound = graph->is_bound;
  const berth_status status = lora_make(&l, err);
  if (status != BERTH_OK) {
    berth_graph_destroy(l.to);
    return status;
  }
  *out = l.to;
  return BERTH_OK;
}
