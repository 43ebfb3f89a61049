/* Merges products of the same x, most often queries, keys and values, into one product. The prelude puts their weights
 * next to each other (packed ones panel after panel, plain ones column after column), and their results are strided
 * views of its result. Done only if all readers of these accept strides. */
#include "base/blocks.h"
#include "graph/region.h"
#include "ops/operand.h"
#include "ops/product.h"
#include "pass/prelude.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

#define MAX_PARTS 4
#define MAX_VIEWS 8 /* consecutive views */

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  berth__uses uses;
  berth__regions regions;
  bool *is_static;
  uint32_t
      *first_of; /* one per node: the first part of the product it is merged into; BERTH__NO_NODE: it is not merged */
  bool changes;
} pass;

static const berth__value *rewrite_merge_products_value_of(const pass *p, berth_value value) {
  return &p->r.graph->values[value];
}

/* ---- Which products can be merged ---- */

static berth_value bias_of(const berth__node *product) {
  return product->n_in > BERTH__PRODUCT_BIAS ? product->in[BERTH__PRODUCT_BIAS] : BERTH_VALUE_NONE;
}

static bool takes_strided(const pass *p, const berth_graph *graph, berth_value value, const berth_tensor *lies,
                          uint32_t depth);

/* Whether all results of a node that makes views of operand 0 can be read in place. */
static bool shows_strided(const pass *p, const berth_graph *graph, const berth__node *node, const berth_tensor *lies,
                          uint32_t depth) {
  if (node->n_in != 1 || depth == MAX_VIEWS) return false;
  for (uint32_t k = 0; k < node->n_out; k++) {
    const berth__value *out = &graph->values[node->out[k]];
    berth_tensor view = berth__value_tensor(out, NULL);
    int64_t offset;
    if (!node->op->family->view(lies, node->attrs, &out->shape, out->type, k, &offset, view.stride)) return false;
    if (!takes_strided(p, graph, node->out[k], &view, depth + 1)) return false;
  }
  return true;
}

/* Attention reads every element so often that it reorders them itself; for others, strided operands are slower to read
 * and cannot be overwritten. */
static bool takes_strided(const pass *p, const berth_graph *graph, berth_value value, const berth_tensor *lies,
                          uint32_t depth) {
  if (p->uses.is_output[value]) return false;
  for (uint32_t n = 0; n <= p->uses.reader[value] && n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] != value) continue;
      const bool shows = i == 0 && node->op->family->view != NULL;
      if (shows ? !shows_strided(p, graph, node, lies, depth) : node->op->code != BERTH__OP_attention) return false;
    }
  }
  return true;
}

/* A weight that no other node reads, and that is packed for this product or plain. */
static bool has_own_weight(const pass *p, const berth_graph *graph, const berth__node *node) {
  const berth_value weight = node->in[BERTH__PRODUCT_WEIGHT];
  const int64_t panel = node->attrs[BERTH__PRODUCT_PANEL].i;
  if (p->uses.count[weight] != 1 || !p->is_static[weight]) return false;
  if (berth__type_is_block(rewrite_merge_products_value_of(p, weight)->type))
    return false; /* blocks keep their layout */
  if (panel == 0) return !p->target->keeps_params && rewrite_merge_products_value_of(p, weight)->shape.rank == 2;
  return berth__maker(graph, weight, BERTH__OP_pack_weights) != NULL &&
         node->attrs[BERTH__PRODUCT_COLUMNS].i % panel == 0;
}

/* A product without an epilogue, with its own weight. */
static bool can_be_part(const pass *p, const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_product || berth__node_is_bounded(graph, node)) return false;
  if (node->attrs[BERTH__PRODUCT_CODE].count != 0 || node->attrs[BERTH__PRODUCT_ADDS].i != 0) return false;
  const berth_value bias = bias_of(node);
  if (!has_own_weight(p, graph, node) || (bias != BERTH_VALUE_NONE && !p->is_static[bias])) return false;
  berth_tensor lies = berth__value_tensor(rewrite_merge_products_value_of(p, node->out[0]), NULL);
  const int64_t columns = node->attrs[BERTH__PRODUCT_COLUMNS].i;
  if (columns == 0 || berth__count(&lies) / columns > p->target->most_merged_rows) return false;
  for (uint32_t axis = 0; axis + 1 < lies.rank; axis++) lies.stride[axis] *= 2; /* strides like those of a part */
  return takes_strided(p, graph, node->out[0], &lies, 0);
}

static bool rewrite_merge_products_fits(const pass *p, const berth__node *a, const berth__node *b) {
  return (bias_of(a) == BERTH_VALUE_NONE) == (bias_of(b) == BERTH_VALUE_NONE) &&
         a->attrs[BERTH__PRODUCT_PANEL].i == b->attrs[BERTH__PRODUCT_PANEL].i &&
         rewrite_merge_products_value_of(p, a->in[BERTH__PRODUCT_WEIGHT])->type ==
             rewrite_merge_products_value_of(p, b->in[BERTH__PRODUCT_WEIGHT])->type;
}

static uint64_t weight_bytes(const pass *p, const berth__node *node) {
  uint64_t bytes = 0;
  berth__value_size(rewrite_merge_products_value_of(p, node->in[BERTH__PRODUCT_WEIGHT]), &bytes);
  return bytes;
}

static void rewrite_merge_products_find(pass *p, const berth_graph *graph) {
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    uint32_t n_parts = 1;
    if (p->first_of[n] != BERTH__NO_NODE || !can_be_part(p, graph, node)) continue;
    uint64_t bytes = weight_bytes(p, node);
    for (uint32_t k = n + 1; k <= p->uses.reader[node->in[0]] && n_parts < MAX_PARTS; k++) {
      const berth__node *other = &graph->nodes[k];
      if (p->first_of[k] != BERTH__NO_NODE || other->n_in == 0 || other->in[0] != node->in[0]) continue;
      if (berth__region_of(&p->regions, k) != berth__region_of(&p->regions, n)) continue;
      if (!can_be_part(p, graph, other) || !rewrite_merge_products_fits(p, node, other)) continue;
      if (bytes + weight_bytes(p, other) > p->target->most_merged_bytes) continue;
      bytes += weight_bytes(p, other);
      p->first_of[k] = n;
      n_parts++;
    }
    if (n_parts == 1) continue;
    p->first_of[n] = n;
    p->changes = true;
  }
}

/* ---- Emitting ---- */

typedef struct parts {
  uint32_t n;
  berth_value weight[MAX_PARTS], bias[MAX_PARTS], out[MAX_PARTS];
  int64_t columns[MAX_PARTS], all;
} parts;

static void rewrite_merge_products_collect(const pass *p, uint32_t first, parts *b) {
  *b = (parts){.n = 0};
  for (uint32_t n = first; n < p->r.n_old && b->n < MAX_PARTS; n++) {
    if (p->first_of[n] != first) continue;
    const berth__node *node = &p->r.old[n];
    b->weight[b->n] = node->in[BERTH__PRODUCT_WEIGHT];
    b->bias[b->n] = bias_of(node);
    b->out[b->n] = node->out[0];
    b->columns[b->n] = node->attrs[BERTH__PRODUCT_COLUMNS].i;
    b->all += b->columns[b->n++];
  }
}

static berth_status rewrite_merge_products_emit(pass *p, uint32_t first, berth_error *err) {
  const berth__node *node = &p->r.old[first];
  const bool is_packed = node->attrs[BERTH__PRODUCT_PANEL].i != 0;
  const berth_attr across = berth_attr_int("axis", is_packed ? 0 : 1), along = berth_attr_int("axis", 0);
  berth_value in[] = {[BERTH__PRODUCT_X] = node->in[BERTH__PRODUCT_X],
                      [BERTH__PRODUCT_WEIGHT] = BERTH_VALUE_NONE,
                      [BERTH__PRODUCT_BIAS] = BERTH_VALUE_NONE};
  berth_value whole;
  int64_t at = 0;
  parts b;
  rewrite_merge_products_collect(p, first, &b);
  const berth_attr attrs[] = {berth_attr_int("columns", b.all), node->attrs[BERTH__PRODUCT_PANEL],
                              node->attrs[BERTH__PRODUCT_ROUNDS]};
  const bool has_bias = b.bias[0] != BERTH_VALUE_NONE;
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_concat, b.weight, b.n, &across, 1, b.weight[0], "#beside",
                                &in[BERTH__PRODUCT_WEIGHT], err));
  if (has_bias)
    BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_concat, b.bias, b.n, &along, 1, b.bias[0], "#beside",
                                  &in[BERTH__PRODUCT_BIAS], err));
  BERTH__TRY(
      berth__rewrite_add(&p->r, BERTH__OP_product, in, has_bias ? 3 : 2, attrs, 3, b.out[0], "#beside", &whole, err));
  const int64_t axis = rewrite_merge_products_value_of(p, whole)->shape.rank - 1;
  for (uint32_t k = 0; k < b.n; k++) {
    const int64_t end = at + b.columns[k];
    const berth_attr range[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &at, 1),
                                berth_attr_ints("ends", &end, 1)};
    BERTH__TRY(berth__rewrite_make(&p->r, BERTH__OP_narrow, &whole, 1, range, 3, b.out[k], err));
    at = end;
  }
  return BERTH_OK;
}

/* ---- The pass ---- */

static berth_status rewrite_merge_products_allocate(pass *p, const berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__regions_create(graph, &p->regions, err));
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  p->first_of = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->first_of);
  if (p->first_of == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t n = 0; n < graph->n_nodes; n++) p->first_of[n] = BERTH__NO_NODE;
  return BERTH_OK;
}

/* The prelude first, because the first part needs the weights of all. */
static berth_status emit_all(pass *p, berth_error *err) {
  for (uint32_t n = 0; n < p->r.n_old; n++)
    if (p->is_static[p->r.old[n].out[0]]) BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
  for (uint32_t n = 0; n < p->r.n_old; n++) {
    if (p->r.old[n].op == NULL) continue;
    if (p->first_of[n] == BERTH__NO_NODE)
      BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
    else if (p->first_of[n] == n)
      BERTH__TRY(rewrite_merge_products_emit(p, n, err));
  }
  return BERTH_OK;
}

static berth_status merge_products_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  p->r.graph = graph;
  BERTH__TRY(rewrite_merge_products_allocate(p, graph, err));
  rewrite_merge_products_find(p, graph);
  p->r.graph = NULL; /* nothing to finish yet */
  if (!p->changes) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  return emit_all(p, err);
}

berth_status berth__rewrite_merge_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  berth_status status = merge_products_rewrite(&p, graph, err);
  if (p.r.old != NULL) berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__regions_free(graph->ctx, &p.regions);
  berth__free(graph->ctx, p.is_static);
  berth__free(graph->ctx, p.first_of);
  return status;
}
