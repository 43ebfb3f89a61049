/* LSTMs over several rows: their weights are packed once, in the prelude, as those of products are. In place, a weight
 * is as fast for a row alone, but every product ends with a sum across a vector. */
#include "pass/prelude.h"
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

#define LEAST_ROWS 8

typedef struct pass {
  const berth__rewrite_target *target;
  berth__rewrite r;
  berth__uses uses;
  bool *is_static;
} pass;

/* A weight with other readers would be in memory twice. */
static bool is_packable(const pass *p, const berth_graph *graph, berth_value weight) {
  return graph->values[weight].shape.rank == 3 && p->is_static[weight] && p->uses.count[weight] == 1;
}

static bool packs_weights(const pass *p, const berth_graph *graph, const berth__node *node) {
  if (node->op->code != BERTH__OP_lstm || berth__node_is_bounded(graph, node)) return false;
  const berth__value *x = &graph->values[node->in[BERTH__RECURRENT_X]];
  return x->type == BERTH_F32 && x->shape.dim[1] >= LEAST_ROWS && !p->is_static[node->in[BERTH__RECURRENT_X]] &&
         is_packable(p, graph, node->in[BERTH__RECURRENT_WEIGHT]) &&
         is_packable(p, graph, node->in[BERTH__RECURRENT_RECURRENCE]);
}

/* [directions, rows, columns] as [panels, columns, directions, panel]. */
static berth_status pack_matrix(pass *p, berth_value *matrix, berth_error *err) {
  const berth__shape shape = p->r.graph->values[*matrix].shape;
  const int64_t perm[] = {2, 0, 1}, panel = p->target->panel;
  const berth_dim dims[] = {{.extent = (shape.dim[1] + panel - 1) / panel},
                            {.extent = shape.dim[2]},
                            {.extent = shape.dim[0]},
                            {.extent = panel}};
  const berth_attr of_perm = berth_attr_ints("perm", perm, 3), of_panel = berth_attr_int("panel", panel),
                   of_shape = berth_attr_dims("shape", dims, 4);
  const berth_value base = *matrix;
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_transpose, matrix, 1, &of_perm, 1, base, "#turned", matrix, err));
  BERTH__TRY(berth__rewrite_add(&p->r, BERTH__OP_pack_weights, matrix, 1, &of_panel, 1, base, "#packed", matrix, err));
  return berth__rewrite_add(&p->r, BERTH__OP_reshape, matrix, 1, &of_shape, 1, base, "#panels", matrix, err);
}

static berth_status pack_recurrent_rewrite(pass *p, berth_graph *graph, berth_error *err) {
  BERTH__TRY(berth__prelude_values(graph, &p->is_static, err));
  BERTH__TRY(berth__uses_create(&p->uses, graph, err));
  BERTH__TRY(berth__rewrite_start(&p->r, graph, err));
  for (size_t n = 0; n < p->r.n_old; n++) {
    berth__node *node = &p->r.old[n];
    if (packs_weights(p, graph, node)) {
      BERTH__TRY(pack_matrix(p, &node->in[BERTH__RECURRENT_WEIGHT], err));
      BERTH__TRY(pack_matrix(p, &node->in[BERTH__RECURRENT_RECURRENCE], err));
    }
    BERTH__TRY(berth__rewrite_keep(&p->r, n, err));
  }
  return BERTH_OK;
}

berth_status berth__rewrite_pack_recurrent(berth_graph *graph, const berth__rewrite_target *target, berth_error *err) {
  pass p = {.target = target};
  const berth_status status = pack_recurrent_rewrite(&p, graph, err);
  berth__rewrite_finish(&p.r);
  berth__uses_free(&p.uses, graph->ctx);
  berth__free(graph->ctx, p.is_static);
  return status;
}
