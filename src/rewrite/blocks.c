/* Keeps quantised weights (block types) quantised. Graphs have an `unpack` in front of each reader of such a weight; as
 * a separate node, it would put the whole weight into memory as f32. Here a product reads the blocks themselves, and an
 * embedding table decodes only the rows that are looked up. Other readers keep their unpack. */
#include "base/blocks.h"
#include "pass/pass.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

/* The replacement of a node, which reads these blocks. */
typedef struct blocks_match {
  berth__op_code op;
  berth_value blocks;
  bool is_exact; /* a product must not round x */
} blocks_match;

/* Finds the matrix in blocks that a value was unpacked from. */
static bool blocks_find_source(const berth_graph *graph, berth_value value, blocks_match *out) {
  const berth__node *unpack = berth__maker(graph, value, BERTH__OP_unpack);
  if (unpack == NULL || berth__node_is_bounded(graph, unpack)) return false;
  out->blocks = unpack->in[0];
  out->is_exact = unpack->attrs[BERTH__UNPACK_EXACT].i != 0;
  return graph->values[out->blocks].shape.rank == 2;
}

static bool blocks_match_product(const berth_graph *graph, const berth__node *node, blocks_match *out) {
  static const int64_t turned[] = {1, 0};
  const berth__value *x = &graph->values[node->in[0]];
  const berth__node *transpose = berth__maker(graph, node->in[1], BERTH__OP_transpose);
  if (x->type != BERTH_F32 || x->shape.rank < 2) return false;
  if (transpose == NULL || !berth__has_perm(transpose, turned, 2)) return false;
  out->op = BERTH__OP_product;
  return blocks_find_source(graph, transpose->in[0], out);
}

static bool blocks_match_rows(const berth_graph *graph, const berth__node *node, blocks_match *out) {
  const bool is_gather = node->op->code == BERTH__OP_gather;
  if (is_gather && node->attrs[BERTH__GATHER_AXIS].i != 0 && node->attrs[BERTH__GATHER_AXIS].i != -2) return false;
  out->op = BERTH__OP_unpack_rows;
  return blocks_find_source(graph, node->in[BERTH__GATHER_X], out);
}

static bool blocks_find_match(const berth_graph *graph, const berth__node *node, blocks_match *out) {
  switch ((int)node->op->code) {
    case BERTH__OP_matmul: return blocks_match_product(graph, node, out);
    case BERTH__OP_gather:
    case BERTH__OP_embedding: return blocks_match_rows(graph, node, out);
    default: return false;
  }
}

static berth_status blocks_emit(berth__rewrite *r, const berth__node *node, const blocks_match *match,
                                berth_error *err) {
  if (match->op == BERTH__OP_unpack_rows) {
    const berth_value in[] = {
        [BERTH__UNPACK_ROWS_X] = match->blocks, [BERTH__UNPACK_ROWS_IDS] = node->in[BERTH__GATHER_INDICES]};
    return berth__rewrite_make(r, match->op, in, 2, NULL, 0, node->out[0], err);
  }
  const berth_value in[] = {[BERTH__PRODUCT_X] = node->in[0], [BERTH__PRODUCT_WEIGHT] = match->blocks};
  const berth_attr attrs[] = {berth_attr_int("columns", r->graph->values[match->blocks].shape.dim[0]),
                              berth_attr_int("exact", match->is_exact)};
  return berth__rewrite_make(r, match->op, in, 2, attrs, 2, node->out[0], err);
}

static berth_status blocks_rewrite(berth__rewrite *r, berth_graph *graph, const blocks_match *matches,
                                   berth_error *err) {
  BERTH__TRY(berth__rewrite_start(r, graph, err));
  for (size_t n = 0; n < r->n_old; n++)
    BERTH__TRY(matches[n].op != BERTH__OP_CUSTOM ? blocks_emit(r, &r->old[n], &matches[n], err)
                                                 : berth__rewrite_keep(r, n, err));
  return BERTH_OK;
}

berth_status berth__rewrite_blocks(berth_graph *graph, berth_error *err) {
  berth__rewrite r = {0};
  bool has_any = false;
  if (graph->n_nodes == 0) return BERTH_OK;
  blocks_match *matches = berth__alloc_array(graph->ctx, graph->n_nodes, sizeof *matches);
  if (matches == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t n = 0; n < graph->n_nodes; n++) {
    if (blocks_find_match(graph, &graph->nodes[n], &matches[n]))
      has_any = true;
    else
      matches[n] = (blocks_match){.op = BERTH__OP_CUSTOM};
  }
  berth_status status = BERTH_OK;
  if (has_any) {
    status = blocks_rewrite(&r, graph, matches, err);
    berth__rewrite_finish(&r);
    if (status == BERTH_OK) status = berth__pass_dead(graph, err); /* removes the unpacks */
  }
  berth__free(graph->ctx, matches);
  return status;
}
