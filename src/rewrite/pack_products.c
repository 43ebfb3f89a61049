/* Products with weights: the weight is packed once, in the prelude. */
#include "ops/conv_last.h"
#include "pass/prelude.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

/* A weight that a run also reads unpacked would be in memory twice: not worth it for large ones. */
#define MAX_TWICE ((uint64_t)4 << 20)

#define MIN_NARROW_DEPTH 32
#define MOST_NARROW_ROWS 8

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  bool *is_static;
  bool *is_read_plain; /* one per value: read by a node other than a product that packs it */
  berth_type *was;     /* one per node: type of a product's weight before conversion to f32: bf16, f16; otherwise f32 */
  berth_value *table;  /* one per node: the weight of a product that is a table too; BERTH_VALUE_NONE: none */
} pass;

static bool is_packable(const pass *p, const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_matmul) return false;
  const berth__value *x = &graph->values[node->in[0]], *w = &graph->values[node->in[1]];
  if (!berth__is_float(x->type) || x->shape.rank < 2 || w->shape.rank != 2) return false;
  return p->is_static[node->in[1]] && !p->is_static[node->in[0]];
}

/* Views of a weight count as the weight itself. */
static void note_plain_reads(pass *p, const berth_graph *graph) {
  for (size_t n = graph->n_nodes; n-- > 0;) {
    const berth__node *node = &graph->nodes[n];
    const bool packs = is_packable(p, graph, node),
               shows = node->op->family->view != NULL && p->is_static[node->out[0]];
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE || !p->is_static[node->in[i]] || (packs && i == 1)) continue;
      p->is_read_plain[node->in[i]] = p->is_read_plain[node->in[i]] || !shows || p->is_read_plain[node->out[0]];
    }
  }
}

/* A weight that is bf16 or f16, or was before conversion to f32, is packed in that type, which loses nothing. */
static berth_type type_before(const berth_graph *graph, berth_value weight) {
  const berth__value *value = &graph->values[weight];
  if (value->type != BERTH_F32) return value->type;
  while (value->kind == BERTH_VALUE_NODE) {
    const berth__node *maker = &graph->nodes[value->node];
    const bool is_cast = maker->op->code == BERTH__OP_cast, shows = maker->op->family->view != NULL && !is_cast;
    if (!is_cast && !shows) return BERTH_F32;
    value = &graph->values[maker->in[0]];
    if (is_cast) return value->type == BERTH_BF16 || value->type == BERTH_F16 ? value->type : BERTH_F32;
  }
  return BERTH_F32;
}

/* Whether there are so few columns that they are summed one by one: a panel would be mostly zeros, and many times as
 * large as the weight. Panels are faster if many rows share them and if sums are short. */
static bool is_narrow(const pass *p, const berth_graph *graph, const berth__node *node) {
  const berth__value *x = &graph->values[node->in[0]], *w = &graph->values[node->in[1]];
  const int64_t depth = w->shape.dim[0], columns = w->shape.dim[1], count = berth__value_count(x);
  if (depth < MIN_NARROW_DEPTH || columns == 0) return false;
  return columns == 1 || (columns * 2 <= p->target->panel && count / depth <= MOST_NARROW_ROWS);
}

static berth_status rewrite_products_pack(pass *p, const berth__node *node, berth_type to, berth_error *err) {
  const berth_graph *graph = p->r.graph;
  const int64_t columns = graph->values[node->in[1]].shape.dim[1];
  const int64_t panel = to != BERTH_BF16 && is_narrow(p, graph, node) ? 1 : p->target->panel;
  berth_value in[2] = {node->in[0], BERTH_VALUE_NONE};
  const berth_attr packing[] = {berth_attr_int("panel", panel), berth_attr_string("to", berth_type_name(to))};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_pack_weights, &node->in[1], 1, packing, 2, node->in[1], "#packed",
                                &in[1], err));
  const berth_attr attrs[] = {berth_attr_int("columns", columns), berth_attr_int("panel", panel),
                              berth_attr_int("rounds", p->target->rounds_to_bf16)};
  return berth__rewrite_make(&p->r, BERTH__OP_product, in, 2, attrs, 3, node->out[0], err);
}

/* ---- Tables ---- */

/* Whether runs read the value itself, and not only what the prelude makes from it. */
static bool pack_is_read_by_runs(const pass *p, const berth_graph *graph, berth_value value) {
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in && !p->is_static[node->out[0]]; i++)
      if (node->in[i] == value) return true;
  }
  return false;
}

/* The weight of a product that is also an embedding table, whose rows are the product's columns: as panels of 1 it
 * needs no packing and is in memory once, for any number of rows (bindings with few and with many share it).
 * BERTH_VALUE_NONE: it is not, or is small enough to be there twice. */
static berth_value pack_table_of(const pass *p, const berth_graph *graph, const berth__node *node) {
  static const int64_t turned[2] = {1, 0};
  const berth__node *transpose = berth__maker(graph, node->in[1], BERTH__OP_transpose);
  const berth__value *x = &graph->values[node->in[0]];
  uint64_t size = 0;
  if (transpose == NULL || !berth__has_perm(transpose, turned, 2) || x->type != BERTH_F32 || p->target->rounds_to_bf16)
    return BERTH_VALUE_NONE;
  const berth__node *cast = berth__maker(graph, transpose->in[0], BERTH__OP_cast);
  const berth_value table = cast != NULL ? cast->in[0] : transpose->in[0];
  const berth__value *v = &graph->values[table];
  const bool is_kept =
      v->type == BERTH_F32 || v->type == BERTH_F16 || (v->type == BERTH_BF16 && v->shape.dim[1] % 2 == 0);
  if (v->kind != BERTH_VALUE_PARAM || !is_kept || v->shape.dim[1] == 0 || !berth__value_size(v, &size) ||
      size <= MAX_TWICE)
    return BERTH_VALUE_NONE;
  return pack_is_read_by_runs(p, graph, table) ? table : BERTH_VALUE_NONE;
}

static berth_status pack_keep_table(pass *p, const berth__node *node, berth_value table, berth_error *err) {
  const berth__value *v = &p->r.graph->values[table];
  const int64_t columns = v->shape.dim[0], depth = v->shape.dim[1];
  const bool is_bf16 = v->type == BERTH_BF16; /* whose rows are paired */
  const berth_dim dims[4] = {
      {.extent = columns}, {.extent = is_bf16 ? depth / 2 : depth}, {.extent = 1}, {.extent = 2}};
  const berth_attr shape = berth_attr_dims("shape", dims, is_bf16 ? 4 : 3);
  const berth_attr attrs[] = {berth_attr_int("columns", columns), berth_attr_int("panel", 1)};
  berth_value in[2] = {node->in[0], BERTH_VALUE_NONE};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_reshape, &table, 1, &shape, 1, table, "#columns", &in[1], err));
  return berth__rewrite_make(&p->r, BERTH__OP_product, in, 2, attrs, 2, node->out[0], err);
}

/* ---- Convolutions ---- */

/* A 1 x 1 convolution over every pixel, channels last, is a product, too; the others stay f32. */
static bool is_pointwise(const berth_graph *graph, const berth__node *node) {
  const berth_attr *attr = node->attrs;
  if (node->op->code != BERTH__OP_conv_last || attr[BERTH__LAST_GROUP].i != 1 || attr[BERTH__LAST_ADDS].i != 0 ||
      attr[BERTH__LAST_CODE].count != 0)
    return false;
  for (uint32_t k = 0; k < attr[BERTH__LAST_KERNEL].count; k++)
    if (attr[BERTH__LAST_KERNEL].ints[k] != 1) return false;
  for (uint32_t k = 0; k < attr[BERTH__LAST_STRIDES].count; k++)
    if (attr[BERTH__LAST_STRIDES].ints[k] != 1) return false;
  for (uint32_t k = 0; k < attr[BERTH__LAST_PADS].count; k++)
    if (attr[BERTH__LAST_PADS].ints[k] != 0) return false;
  const berth__value *w = &graph->values[node->in[1]];
  return w->kind == BERTH_VALUE_NODE && graph->nodes[w->node].op->code == BERTH__OP_pack_weights;
}

/* For f16 and bf16: a product takes any number of rows, and its weight is packed alike. */
static bool is_narrow_pointwise(const berth_graph *graph, const berth__node *node) {
  return node->op->code == BERTH__OP_conv_last && graph->values[node->in[0]].type != BERTH_F32 &&
         is_pointwise(graph, node);
}

static berth_status rewrite_narrow_pointwise(pass *p, const berth__node *node, berth_error *err) {
  const berth_value bias = berth__operand_of(node, BERTH__LAST_BIAS);
  const berth_value in[] = {node->in[0], node->in[1], bias};
  const berth_attr attrs[] = {berth_attr_int("columns", node->attrs[BERTH__LAST_CHANNELS].i),
                              berth_attr_int("panel", node->attrs[BERTH__LAST_PANEL].i)};
  return berth__rewrite_make(&p->r, BERTH__OP_product, in, bias != BERTH_VALUE_NONE ? 3 : 2, attrs, 2, node->out[0],
                             err);
}

/* Its weight is packed again, from the original. */
static berth_status rewrite_pointwise(pass *p, const berth__node *node, berth_error *err) {
  const berth_graph *graph = p->r.graph;
  const berth__node *pack = &graph->nodes[graph->values[node->in[1]].node];
  const int64_t panel = node->attrs[BERTH__LAST_PANEL].i;
  const berth_value from[2] = {pack->in[0], pack->n_in > 1 ? pack->in[1] : BERTH_VALUE_NONE};
  berth_value in[3] = {node->in[0], BERTH_VALUE_NONE, berth__operand_of(node, BERTH__LAST_BIAS)};
  const berth_attr packing[] = {berth_attr_int("panel", panel), berth_attr_string("to", "bf16")};
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_pack_weights, from, from[1] != BERTH_VALUE_NONE ? 2 : 1, packing, 2,
                                node->in[1], "#bf16", &in[1], err));
  const berth_attr attrs[] = {berth_attr_int("columns", node->attrs[BERTH__LAST_CHANNELS].i),
                              berth_attr_int("panel", panel), berth_attr_int("rounds", 1)};
  return berth__rewrite_make(&p->r, BERTH__OP_product, in, in[2] != BERTH_VALUE_NONE ? 3 : 2, attrs, 3, node->out[0],
                             err);
}

static berth_status pack_products_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  p->is_read_plain = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *p->is_read_plain);
  p->was = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *p->was);
  p->table = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *p->table);
  if (p->is_read_plain == NULL || p->was == NULL || p->table == NULL)
    return berth__fail_nomem(err, "rewriting a graph");
  note_plain_reads(p, graph);
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const bool packs = is_packable(p, graph, &graph->nodes[n]);
    p->was[n] = packs ? type_before(graph, graph->nodes[n].in[1]) : BERTH_F32;
    p->table[n] = packs ? pack_table_of(p, graph, &graph->nodes[n]) : BERTH_VALUE_NONE;
  }
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (size_t n = 0; n < p->r.n_old; n++) {
    const berth__node *node = &p->r.old[n];
    if (p->target->rounds_to_bf16 && is_pointwise(graph, node)) {
      BERTH__TRY(rewrite_pointwise(p, node, err));
      continue;
    }
    if (is_narrow_pointwise(graph, node)) {
      BERTH__TRY(rewrite_narrow_pointwise(p, node, err));
      continue;
    }
    bool packs = is_packable(p, graph, node);
    uint64_t size = 0;
    if (p->table[n] != BERTH_VALUE_NONE) {
      BERTH__TRY(pack_keep_table(p, node, p->table[n], err));
      continue;
    }
    if (packs) berth__value_size(&graph->values[node->in[1]], &size);
    if (packs && p->is_read_plain[node->in[1]] && size > MAX_TWICE) packs = false;
    const berth_type to = p->target->rounds_to_bf16 ? BERTH_BF16 : p->was[n];
    BERTH__TRY(packs ? rewrite_products_pack(p, node, to, err) : berth__rewrite_keep(&p->r, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_pack_products(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  berth_status status = pack_products_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__free(graph->ctx, p.is_static);
  berth__free(graph->ctx, p.is_read_plain);
  berth__free(graph->ctx, p.was);
  berth__free(graph->ctx, p.table);
  return status;
}
