/* Fuses products of few rows (GEMV, as in text generation) with the nodes around them: the norm before them, if it has
 * no other readers, and a second product of the same x that their result is combined with (a gate). Such products wait
 * for their weights, and the rest is computed meanwhile. Weights keep their layout. */
#include "base/blocks.h"
#include "ops/epilogue.h"
#include "pass/pass.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

#define MOST_ROWS 4
#define LEAST_COLUMNS 8 /* with fewer, sides are swapped, and the norm would be on the wrong one */

typedef struct row_pass {
  berth__rewrite r;
  const berth__rewrite_target *target;
  berth__uses uses;
  bool *goes;      /* one per node: it is absorbed by another */
  uint32_t *norm;  /* one per node: the norm that a product absorbs; BERTH__NO_NODE: none */
  uint32_t *other; /* one per node: the product for which it becomes the second one; BERTH__NO_NODE: none */
  bool changes;
} row_pass;

static const berth__value *row_value(const berth_graph *graph, berth_value value) { return &graph->values[value]; }

/* A product of few f32 rows whose weight is one matrix for all of them. */
static bool row_is_product(const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_product || berth__node_is_bounded(graph, node)) return false;
  const berth__value *w = row_value(graph, node->in[BERTH__PRODUCT_WEIGHT]), *out = row_value(graph, node->out[0]);
  const int64_t columns = node->attrs[BERTH__PRODUCT_COLUMNS].i, count = berth__value_count(out);
  if (node->attrs[BERTH__PRODUCT_PANEL].i != 0 || node->attrs[BERTH__PRODUCT_ROUNDS].i != 0) return false;
  if (node->attrs[BERTH__PRODUCT_ADDS].i != 0 || w->shape.rank != 2) return false;
  if (out->type != BERTH_F32 || (w->type != BERTH_F32 && !berth__type_is_block(w->type))) return false;
  const berth_value bias = berth__operand_of(node, BERTH__PRODUCT_BIAS);
  if (bias != BERTH_VALUE_NONE && row_value(graph, bias)->type != BERTH_F32) return false;
  return columns >= LEAST_COLUMNS && count > 0 && count / columns <= MOST_ROWS;
}

static bool row_has_extras(const berth__node *node) {
  return node->n_in > berth__epilogue_first(&node->attrs[BERTH__PRODUCT_ADDS]);
}

/* Whether two plain weights have the same layout: both direct, or both viewed through the same ops. */
static bool row_lie_alike(const berth_graph *graph, berth_value a, berth_value b) {
  for (;;) {
    const berth__value *v = row_value(graph, a), *w = row_value(graph, b);
    if (v->kind != w->kind || v->type != w->type || !berth__shape_equal(&v->shape, &w->shape)) return false;
    if (v->kind != BERTH_VALUE_NODE) return v->kind == BERTH_VALUE_PARAM;
    const berth__node *of_a = &graph->nodes[v->node], *of_b = &graph->nodes[w->node];
    if (of_a->op->code != of_b->op->code) return false;
    if (of_a->op->code != BERTH__OP_transpose && of_a->op->code != BERTH__OP_cast) return false;
    a = of_a->in[0];
    b = of_b->in[0];
  }
}

static bool row_can_pair(const row_pass *p, const berth_graph *graph, berth_value a, berth_value b) {
  const berth_type type = row_value(graph, a)->type;
  if (row_value(graph, b)->type != type) return false;
  return berth__type_is_block(type) || (p->target->pairs_plain_weights && row_lie_alike(graph, a, b));
}

/* The product that a product is combined with and that has no other readers; BERTH__NO_NODE: none. */
static uint32_t row_find_other(const row_pass *p, const berth_graph *graph, const berth__node *node) {
  const uint32_t extra = berth__epilogue_first(&node->attrs[BERTH__PRODUCT_ADDS]);
  if (node->n_in != extra + 1) return BERTH__NO_NODE;
  const berth_value value = node->in[extra];
  const berth__node *other = berth__maker(graph, value, BERTH__OP_product);
  if (other == NULL || !row_is_product(graph, other) || row_has_extras(other)) return BERTH__NO_NODE;
  if (p->uses.count[value] != 1 || p->uses.is_output[value]) return BERTH__NO_NODE;
  if (other->attrs[BERTH__PRODUCT_CODE].count != 0 || berth__operand_of(other, BERTH__PRODUCT_BIAS) != BERTH_VALUE_NONE)
    return BERTH__NO_NODE;
  const bool fits = other->in[BERTH__PRODUCT_X] == node->in[BERTH__PRODUCT_X] &&
                    other->attrs[BERTH__PRODUCT_EXACT].i == node->attrs[BERTH__PRODUCT_EXACT].i &&
                    row_can_pair(p, graph, node->in[BERTH__PRODUCT_WEIGHT], other->in[BERTH__PRODUCT_WEIGHT]) &&
                    berth__shape_equal(&row_value(graph, value)->shape, &row_value(graph, node->out[0])->shape);
  return fits ? row_value(graph, value)->node : BERTH__NO_NODE;
}

/* A norm over the last axis whose scale is a vector along it. */
static bool row_is_norm(const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_rms_norm || berth__node_is_bounded(graph, node)) return false;
  const berth__value *x = row_value(graph, node->in[BERTH__NORM_X]);
  const berth_value scale = berth__operand_of(node, BERTH__NORM_SCALE);
  const int64_t axis = node->attrs[BERTH__LAYER_NORM_AXIS].i, last = (int64_t)x->shape.rank - 1;
  if (x->type != BERTH_F32 || scale == BERTH_VALUE_NONE || (axis != -1 && axis != last)) return false;
  const berth__value *s = row_value(graph, scale);
  return s->type == BERTH_F32 && s->shape.rank == 1 && s->shape.dim[0] == x->shape.dim[last];
}

/* Whether a product can be a row product: its epilogue reads at most its second product in addition. */
static bool row_can_be(const row_pass *p, const berth_graph *graph, uint32_t n) {
  const berth__node *node = &graph->nodes[n];
  return row_is_product(graph, node) && (!row_has_extras(node) || p->other[n] != BERTH__NO_NODE);
}

/* Whether a product, including the second of a pair, reads the value only as its x. */
static bool row_reads_as_x(const berth__node *node, berth_value value) {
  for (uint32_t i = 0; i < node->n_in; i++)
    if ((node->in[i] == value) != (i == BERTH__PRODUCT_X)) return false;
  return true;
}

/* Either all readers of a norm absorb it, or none does. */
static void row_find_norm(row_pass *p, const berth_graph *graph, uint32_t norm) {
  const berth_value value = graph->nodes[norm].out[0];
  uint32_t n_readers = 0;
  if (p->uses.is_output[value] || p->uses.count[value] == 0) return;
  for (uint32_t n = norm + 1; n < graph->n_nodes && n <= p->uses.reader[value]; n++) {
    const berth__node *node = &graph->nodes[n];
    if (node->n_in == 0 || node->in[0] != value) continue;
    if (!row_reads_as_x(node, value) || !(p->goes[n] || row_can_be(p, graph, n))) return;
    n_readers++;
  }
  if (n_readers != p->uses.count[value]) return;
  for (uint32_t n = norm + 1; n <= p->uses.reader[value]; n++)
    if (graph->nodes[n].n_in != 0 && graph->nodes[n].in[0] == value) p->norm[n] = norm;
  p->goes[norm] = p->changes = true;
}

static void row_find(row_pass *p, const berth_graph *graph) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    if (!row_is_product(graph, &graph->nodes[n])) continue;
    const uint32_t other = row_find_other(p, graph, &graph->nodes[n]);
    if (other == BERTH__NO_NODE) continue;
    p->other[n] = other;
    p->goes[other] = p->changes = true;
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (row_is_norm(graph, &graph->nodes[n])) row_find_norm(p, graph, n);
}

/* Removed nodes are still in the list of old nodes. */
static berth_status row_emit(row_pass *p, uint32_t n, berth_error *err) {
  const berth__node *node = &p->r.old[n];
  const bool has_norm = p->norm[n] != BERTH__NO_NODE, has_second = p->other[n] != BERTH__NO_NODE;
  const berth__node *norm = has_norm ? &p->r.old[p->norm[n]] : NULL;
  const berth_value in[] = {
      [BERTH__ROW_PRODUCT_X] = has_norm ? norm->in[BERTH__NORM_X] : node->in[BERTH__PRODUCT_X],
      [BERTH__ROW_PRODUCT_WEIGHT] = node->in[BERTH__PRODUCT_WEIGHT],
      [BERTH__ROW_PRODUCT_BIAS] = berth__operand_of(node, BERTH__PRODUCT_BIAS),
      [BERTH__ROW_PRODUCT_SCALE] = has_norm ? norm->in[BERTH__NORM_SCALE] : BERTH_VALUE_NONE,
      [BERTH__ROW_PRODUCT_SECOND] = has_second ? p->r.old[p->other[n]].in[BERTH__PRODUCT_WEIGHT] : BERTH_VALUE_NONE};
  const berth_attr attrs[] = {node->attrs[BERTH__PRODUCT_COLUMNS], node->attrs[BERTH__PRODUCT_CODE],
                              node->attrs[BERTH__PRODUCT_NUMBERS], node->attrs[BERTH__PRODUCT_EXACT],
                              berth_attr_float("epsilon", has_norm ? norm->attrs[BERTH__LAYER_NORM_EPSILON].f : 1e-5)};
  return berth__rewrite_make(&p->r, BERTH__OP_row_product, in, has_second ? 5 : 4, attrs, 5, node->out[0], err);
}

static berth_status row_allocate(row_pass *p, const berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  p->goes = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *p->goes);
  p->norm = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->norm);
  p->other = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->other);
  if (p->goes == NULL || p->norm == NULL || p->other == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t n = 0; n < graph->n_nodes; n++) p->norm[n] = p->other[n] = BERTH__NO_NODE;
  return BERTH_OK;
}

static berth_status row_rewrite(row_pass *p, berth_graph *graph, berth_error *err) {
  if (graph->n_nodes == 0) return BERTH_OK;
  BERTH__TRY(row_allocate(p, graph, err));
  row_find(p, graph);
  if (!p->changes) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    if (p->goes[n]) continue;
    if (p->norm[n] == BERTH__NO_NODE && p->other[n] == BERTH__NO_NODE)
      BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
    else
      BERTH__TRY(row_emit(p, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_row_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  row_pass p = {.target = target};
  const berth_status status = row_rewrite(&p, graph, err);
  if (p.r.old != NULL) berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.goes);
  berth__free(graph->ctx, p.norm);
  berth__free(graph->ctx, p.other);
  return status;
}
