/* Turns matmul into the op that takes a bias and an epilogue; weights keep their layout. */
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

static bool becomes_product(const berth_graph *graph, const berth__node *node) {
  const berth_type type = graph->values[node->out[0]].type;
  if (node->op->code != BERTH__OP_matmul) return false;
  if (!berth__is_float(type)) return false;
  return graph->values[node->in[0]].shape.rank >= 2 && graph->values[node->in[1]].shape.rank >= 2;
}

static berth_status plain_products_rewrite(berth__rewrite *r, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__rewrite_start(r, graph, err));
  for (size_t n = 0; n < r->n_old; n++) {
    const berth__node *node = &r->old[n];
    if (!becomes_product(graph, node)) {
      BERTH__TRY(berth__rewrite_keep(r, n, err));
      continue;
    }
    const berth__shape *w = &graph->values[node->in[1]].shape;
    const berth_attr attrs[] = {berth_attr_int("columns", w->dim[w->rank - 1]), berth_attr_int("panel", 0)};
    BERTH__TRY(berth__rewrite_make(r, BERTH__OP_product, node->in, 2, attrs, 2, node->out[0], err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_plain_products(berth_graph *graph, berth_error *err) {
  berth__rewrite r = {0};
  const berth_status status = plain_products_rewrite(&r, graph, err);
  berth__rewrite_finish(&r);
  return status;
}
