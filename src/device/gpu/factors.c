/* Stores factors in 16 bits: values that matrix units multiply as bf16 or f16 anyway. This halves the bytes to write
 * and to read, and the largest products need this form.
 *
 * A factor is a result whose only readers, direct or through views, are such products (or convolutions, attention and
 * its gradients, if they use matrix units). Nothing is lost, since it would be rounded when it is multiplied. Sums over
 * all rows (the gradient of a bias) read it in this form, too. Values with other readers stay f32, and large products
 * get a copy.
 *
 * With bf16, which has the range of f32, results of products without a residual are stored so as well if element-wise
 * nodes make nothing but factors of them (what an activation and its gradient read), or if they are logits. They are
 * rounded once more than they were multiplied, by at most as much as each of their factors was. */
#include "device/gpu/recipe.h"
#include "graph/rewrite.h"
#include "kernel/lower/tile.h"
#include "ops/cross_entropy.h"
#include "ops/epilogue.h"
#include "ops/registry.h"

#define MANY_RESULTS 4096               /* fewer results with long sums are not worth a tile */
#define LARGE_FLOPS ((double)(1 << 30)) /* a product this large pays for a copy */
#define LARGE_LINES 256
#define CHUNK 8 /* elements per 16 bytes */

bool berth__gpu_has_factors(const berth__kernel_limits *limits, uint32_t flags) {
  const uint32_t otherwise = BERTH_PLAN_F16_WEIGHTS | BERTH_PLAN_F32_UNIFORM | BERTH_PLAN_PARAMS_OUTSIDE;
  return (flags & otherwise) == 0 && berth__gpu_multiplies_narrowly(limits) &&
         berth__compute_storage(limits->compute) != BERTH_F32;
}

/* ---- Which products read which factors ---- */

/* Rows, columns and depth of a product's result; false if they are not integers. */
typedef struct product_size {
  int64_t results, rows, columns, depth;
} product_size;

static bool factors_size(const berth_graph *graph, const berth__node *node, product_size *out) {
  const berth__shape *y = &graph->values[node->out[0]].shape, *w = &graph->values[node->in[1]].shape;
  const berth__shape *x = &graph->values[node->in[0]].shape;
  int64_t weights = 0;
  if (!berth__shape_count(y, &out->results) || !berth__shape_count(w, &weights) || y->rank == 0 || out->results == 0)
    return false;
  out->columns = y->dim[y->rank - 1];
  const bool is_batched = node->op->code == BERTH__OP_product && w->rank > 2 && y->rank >= 2;
  out->rows = is_batched ? y->dim[y->rank - 2] : out->results / out->columns;
  out->depth = is_batched ? x->dim[x->rank - 1] : weights / out->columns;
  return true;
}

static bool factors_by_units(const product_size *s) {
  return s->columns >= BERTH__MATRIX_LINES && s->rows >= BERTH__MATRIX_LINES && s->results >= MANY_RESULTS &&
         s->depth >= BERTH__MATRIX_DEPTH;
}

bool berth__gpu_multiplies_weight(const berth_graph *graph, const berth__node *node, uint32_t i) {
  const berth__op_code code = node->op->code;
  product_size s;
  if ((code != BERTH__OP_product && code != BERTH__OP_conv_last) || i != 1) return false;
  return factors_size(graph, node, &s) && factors_by_units(&s);
}

double berth__gpu_product_time(const berth_graph *graph, const berth__node *node) {
  const berth__op_code code = node->op->code;
  product_size s;
  if (code != BERTH__OP_product && code != BERTH__OP_conv_last) return 0;
  if (berth__node_is_bounded(graph, node) || !factors_size(graph, node, &s) || !factors_by_units(&s)) return 0;
  return berth__tile_time(s.results / (s.rows * s.columns), s.rows, s.columns, s.depth);
}

static bool factors_is_f32(const berth_graph *graph, berth_value value) {
  return value != BERTH_VALUE_NONE && graph->values[value].type == BERTH_F32;
}

static bool factors_of_product(const berth_graph *graph, const berth__node *node) {
  product_size s;
  return node->op->code == BERTH__OP_product && node->attrs[BERTH__PRODUCT_PANEL].i == 0 &&
         factors_is_f32(graph, node->in[0]) && factors_is_f32(graph, node->in[1]) &&
         !berth__node_is_bounded(graph, node) && factors_size(graph, node, &s) && factors_by_units(&s);
}

/* With whole runs of 16 bytes per pixel, which windows are copied by. */
static bool factors_of_conv(const berth_graph *graph, const berth__node *node) {
  const berth__shape *x = &graph->values[node->in[0]].shape;
  return node->op->code == BERTH__OP_conv_last && factors_is_f32(graph, node->in[0]) &&
         !berth__node_is_bounded(graph, node) && x->dim[x->rank - 1] % CHUNK == 0 &&
         berth__gpu_multiplies_weight(graph, node, 1);
}

/* All axes but the last are reduced. */
static bool factors_sums_rows(const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_reduce_sum || node->n_in != 1) return false;
  const uint32_t rank = graph->values[node->in[0]].shape.rank;
  const berth_attr *axes = &node->attrs[BERTH__REDUCE_AXES];
  if (rank < 2 || axes->count != rank - 1) return false;
  for (size_t i = 0; i < axes->count; i++)
    if (axes->ints[i] == -1 || axes->ints[i] == (int64_t)rank - 1) return false;
  return true;
}

static bool factors_shows(const berth__node *node) {
  switch (node->op->code) {
    case BERTH__OP_reshape:
    case BERTH__OP_transpose:
    case BERTH__OP_flatten:
    case BERTH__OP_squeeze:
    case BERTH__OP_unsqueeze:
    case BERTH__OP_split:
    case BERTH__OP_narrow: return node->n_in == 1;
    default: return false;
  }
}

/* Whether its kernels can store 16 bits as well as f32. */
static bool factors_may_make(const berth_graph *graph, const berth__node *node) {
  const berth__family *f = node->op->family;
  if (berth__node_is_bounded(graph, node)) return false;
  if (f == &berth__family_unary || f == &berth__family_binary || f == &berth__family_chain ||
      f == &berth__family_cast || f == &berth__family_clamp || factors_shows(node))
    return true;
  switch (node->op->code) {
    case BERTH__OP_product:
    case BERTH__OP_conv_last:
    case BERTH__OP_layer_norm:
    case BERTH__OP_rms_norm:
    case BERTH__OP_layer_norm_grad:
    case BERTH__OP_rms_norm_grad:
    case BERTH__OP_softmax:
    case BERTH__OP_attention:
    case BERTH__OP_attention_grad:
    case BERTH__OP_cross_entropy_grad:
    case BERTH__OP_concat: return true;
    default: return false;
  }
}

/* ---- Finding them ---- */

typedef struct search {
  const berth__kernel_limits *limits;
  const berth_graph *graph;
  bool *is_read, *is_lost; /* one per value: read as a factor; read in another way */
  bool *may_round; /* one per value: a product's result, which may be rounded before element-wise nodes read it */
} search;

/* For attention and its gradients: the operands that are multiplied. */
static bool factors_of_attention(const search *s, const berth__node *node, uint32_t i) {
  const bool is_factor = i <= BERTH__ATTENTION_V || i == BERTH__ATTENTION_DY;
  return is_factor && factors_is_f32(s->graph, node->in[i]) && berth__gpu_attends_by_units(s->limits, s->graph, node);
}

/* Whether the node reads operand i element by element, and makes a factor. */
static bool factors_feeds(const search *s, const berth__node *node, uint32_t i) {
  const berth__family *f = node->op->family;
  const bool is_elementwise =
      f == &berth__family_unary || f == &berth__family_binary || f == &berth__family_chain || f == &berth__family_clamp;
  const bool is_epilogue =
      node->op->code == BERTH__OP_product && i >= berth__epilogue_first(&node->attrs[BERTH__PRODUCT_ADDS]);
  return (is_elementwise || is_epilogue) && s->is_read[node->out[0]] && !s->is_lost[node->out[0]];
}

static bool factors_are_logits(const berth__node *node, uint32_t i) {
  const berth__op_code code = node->op->code;
  return (code == BERTH__OP_cross_entropy || code == BERTH__OP_cross_entropy_grad) && i == BERTH__CROSS_ENTROPY_LOGITS;
}

static void factors_note(search *s, const berth__node *node, uint32_t i) {
  const berth_value value = node->in[i];
  const bool is_multiplied =
      (i <= 1 && factors_of_product(s->graph, node)) || (i == 0 && factors_of_conv(s->graph, node));
  if (is_multiplied || factors_of_attention(s, node, i)) {
    s->is_read[value] = true;
  } else if (s->may_round[value] && (factors_feeds(s, node, i) || factors_are_logits(node, i))) {
    s->is_read[value] = true;
  } else if (factors_shows(node) || node->op->code == BERTH__OP_concat) {
    for (uint32_t k = 0; k < node->n_out; k++) {
      s->is_read[value] = s->is_read[value] || s->is_read[node->out[k]];
      s->is_lost[value] = s->is_lost[value] || s->is_lost[node->out[k]];
    }
  } else if (!factors_sums_rows(s->graph, node)) {
    s->is_lost[value] = true;
  }
}

/* Backwards, because readers come after what they read. */
static void factors_look_back(search *s) {
  const berth_graph *graph = s->graph;
  for (size_t n = graph->n_nodes; n-- > 0;) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++)
      if (node->in[i] != BERTH_VALUE_NONE) factors_note(s, node, i);
  }
}

/* Views have the storage of their source, and so do parts and the value that they form: their bits are copied. Returns
 * whether any value was lost by that. */
static bool factors_look_ahead(search *s) {
  const berth_graph *graph = s->graph;
  bool is_any = false;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    bool is_lost = false;
    if (!factors_shows(node) && node->op->code != BERTH__OP_concat) continue;
    for (uint32_t i = 0; i < node->n_in; i++) is_lost = is_lost || s->is_lost[node->in[i]];
    for (uint32_t k = 0; k < node->n_out && is_lost; k++) {
      is_any = is_any || !s->is_lost[node->out[k]];
      s->is_lost[node->out[k]] = true;
    }
  }
  return is_any;
}

/* Forwards, because views show what comes before them. */
static void factors_mark_rounded(search *s) {
  const berth_graph *graph = s->graph;
  const bool has_range = berth__compute_storage(s->limits->compute) == BERTH_BF16;
  for (size_t n = 0; n < graph->n_nodes && has_range; n++) {
    const berth__node *node = &graph->nodes[n];
    const bool is_product = factors_of_product(graph, node) && node->attrs[BERTH__PRODUCT_ADDS].i == 0;
    const bool is_shown = factors_shows(node) && s->may_round[node->in[0]];
    for (uint32_t k = 0; k < node->n_out; k++) s->may_round[node->out[k]] = is_product || is_shown;
  }
}

static void factors_search(search *s) {
  const berth_graph *graph = s->graph;
  factors_mark_rounded(s);
  for (berth_value v = 0; v < graph->n_values; v++)
    s->is_lost[v] = graph->values[v].kind != BERTH_VALUE_NODE || graph->values[v].type != BERTH_F32;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) s->is_lost[berth__graph_kept(graph, i)] = true;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t k = 0; k < node->n_out && !factors_may_make(graph, node); k++) s->is_lost[node->out[k]] = true;
  }
  do {
    factors_look_back(s);
  } while (factors_look_ahead(s));
}

/* Parts that nobody multiplies, or nobody reads, get the same storage as the others: they may be copied together. */
static void factors_give_on(const berth_graph *graph, bool *is_factor) {
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    const bool is_shown = factors_shows(node) && is_factor[node->in[0]];
    for (uint32_t k = 0; k < node->n_out && is_shown; k++) is_factor[node->out[k]] = true;
  }
}

berth_status berth__gpu_find_factors(const berth__kernel_limits *limits, const berth_graph *graph, bool *is_factor,
                                     berth_error *err) {
  search s = {.limits = limits, .graph = graph, .is_read = is_factor};
  memset(is_factor, 0, graph->n_values * sizeof *is_factor);
  s.is_lost = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *s.is_lost);
  s.may_round = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *s.may_round);
  const berth_status status = s.is_lost != NULL && s.may_round != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  if (status == BERTH_OK) {
    factors_search(&s);
    for (berth_value v = 0; v < graph->n_values; v++) is_factor[v] = is_factor[v] && !s.is_lost[v];
    factors_give_on(graph, is_factor);
  }
  berth__free(graph->ctx, s.is_lost);
  berth__free(graph->ctx, s.may_round);
  return status;
}

/* ---- Copies ---- */

typedef struct copier {
  berth__rewrite r;
  const bool *is_factor; /* one per value that existed before */
  berth_value *copy;     /* the same; NONE: there is none yet */
  berth_error *err;
} copier;

static bool factors_is_large(const berth_graph *graph, const berth__node *node) {
  product_size s;
  if (!factors_of_product(graph, node) || !factors_size(graph, node, &s)) return false;
  return 2 * (double)s.results * (double)s.depth >= LARGE_FLOPS && s.rows >= LARGE_LINES && s.columns >= LARGE_LINES;
}

static const berth__node *factors_view(const berth_graph *graph, berth_value value) {
  if (graph->values[value].kind != BERTH_VALUE_NODE) return NULL;
  const berth__node *node = &graph->nodes[graph->values[value].node];
  return factors_shows(node) && node->n_out == 1 && node->op->code != BERTH__OP_narrow ? node : NULL;
}

/* Weights that no run changes have their own rule. Rows that are not aligned to 16 bytes gain nothing. */
static bool factors_wants_copy(const copier *c, berth_value root) {
  const berth__value *v = &c->r.graph->values[root];
  if (root >= c->r.n_old_values || c->is_factor[root] || v->type != BERTH_F32 || v->shape.rank == 0) return false;
  return (v->kind == BERTH_VALUE_NODE || v->kind == BERTH_VALUE_STATE) && v->shape.dim[v->shape.rank - 1] % CHUNK == 0;
}

/* A copy of the value that only products read. */
static berth_status factors_copy(copier *c, berth_value value, berth_value *out) {
  const berth__node *view = factors_view(c->r.graph, value);
  *out = value;
  if (view != NULL) {
    const berth__node shown = *view; /* a copy of the struct: nodes move while others are added */
    berth_value from = shown.in[0];
    BERTH__TRY(factors_copy(c, shown.in[0], &from));
    if (from == shown.in[0]) return BERTH_OK;
    return berth__rewrite_add(&c->r, shown.op->code, &from, 1, shown.attrs, shown.op->family->n_attrs, value,
                              "#rounded", out, c->err);
  }
  if (!factors_wants_copy(c, value)) return BERTH_OK;
  if (c->copy[value] == BERTH_VALUE_NONE) {
    /* without limits: a clamp that changes nothing but is not a view, so its storage may differ */
    BERTH__TRY(
        berth__rewrite_add(&c->r, BERTH__OP_clamp, &value, 1, NULL, 0, value, "#rounded", &c->copy[value], c->err));
  }
  *out = c->copy[value];
  return BERTH_OK;
}

static berth_status factors_rewrite(copier *c) {
  berth_graph *graph = c->r.graph;
  for (size_t n = 0; n < c->r.n_old; n++) {
    const berth__node *node = &c->r.old[n];
    berth_value both[2] = {BERTH_VALUE_NONE, BERTH_VALUE_NONE};
    if (factors_is_large(graph, node)) {
      for (uint32_t i = 0; i < 2; i++) BERTH__TRY(factors_copy(c, node->in[i], &both[i]));
      node = &c->r.old[n];
      node->in[0] = both[0];
      node->in[1] = both[1];
    }
    BERTH__TRY(berth__rewrite_keep(&c->r, n, c->err));
  }
  return BERTH_OK;
}

static bool factors_has_loop(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->family->is_loop) return true;
  return false;
}

static berth_status factors_copy_all(const berth__kernel_limits *limits, berth_graph *graph, bool *is_factor,
                                     berth_value *copy, berth_error *err) {
  copier c = {.is_factor = is_factor, .copy = copy, .err = err};
  BERTH__TRY(berth__gpu_find_factors(limits, graph, is_factor, err));
  for (size_t v = 0; v < graph->n_values; v++) copy[v] = BERTH_VALUE_NONE;
  berth_status status = berth__rewrite_start(&c.r, graph, err);
  if (status == BERTH_OK) status = factors_rewrite(&c);
  berth__rewrite_finish(&c.r);
  return status;
}

/* A copy made inside a loop would not exist after it. */
berth_status berth__gpu_copy_factors(const berth__kernel_limits *limits, berth_graph *graph, berth_error *err) {
  if (factors_has_loop(graph)) return BERTH_OK;
  bool *is_factor = berth__alloc_array(graph->ctx, graph->n_values, sizeof *is_factor);
  berth_value *copy = berth__alloc_array(graph->ctx, graph->n_values, sizeof *copy);
  const berth_status status = is_factor != NULL && copy != NULL ? factors_copy_all(limits, graph, is_factor, copy, err)
                                                                : berth__fail_nomem(err, "a graph");
  berth__free(graph->ctx, is_factor);
  berth__free(graph->ctx, copy);
  return status;
}
