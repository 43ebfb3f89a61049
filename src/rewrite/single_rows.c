/* A gather of one row that is always the same becomes a slice: a view instead of a copy. Exporters take the queries,
 * keys and values of a packed product in this way, and the heads behind them then lie where the product was written. */
#include "rewrite/pattern.h"
#include "rewrite/rewrite.h"

/* False: it takes several rows, or which one only a run knows. */
static bool find_single_row(const berth_graph *graph, const berth__node *node, int64_t *axis, int64_t *row) {
  if (node->op->code != BERTH__OP_gather || berth__node_is_bounded(graph, node)) return false;
  const berth__value *indices = &graph->values[node->in[BERTH__GATHER_INDICES]];
  const berth__shape *shape = &graph->values[node->in[BERTH__GATHER_X]].shape;
  if (indices->kind != BERTH_VALUE_CONSTANT || indices->data == NULL || berth__value_count(indices) != 1) return false;
  const berth_tensor from = {.data = (void *)(uintptr_t)indices->data, .type = indices->type};
  *axis = node->attrs[BERTH__GATHER_AXIS].i;
  if (*axis < 0) *axis += shape->rank;
  *row = berth__load_i64(&from, 0);
  if (*row < 0) *row += shape->dim[*axis];
  return *row >= 0 && *row < shape->dim[*axis] && berth__value_count(&graph->values[node->out[0]]) != 0;
}

static bool has_single_rows(const berth_graph *graph) {
  int64_t axis, row;
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (find_single_row(graph, &graph->nodes[n], &axis, &row)) return true;
  return false;
}

static berth_status show_row(berth__rewrite *r, const berth__node *node, int64_t axis, int64_t row, berth_error *err) {
  const berth_value x = node->in[BERTH__GATHER_X], out = node->out[0];
  const berth__shape shape = r->graph->values[out].shape;
  const int64_t end = row + 1;
  const berth_attr slice[] = {berth_attr_ints("axes", &axis, 1), berth_attr_ints("starts", &row, 1),
                              berth_attr_ints("ends", &end, 1)};
  const berth_attr whole = berth_attr_ints("shape", shape.dim, shape.rank);
  berth_value shown;
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_narrow, &x, 1, slice, 3, x, "#row", &shown, err));
  return berth__rewrite_make(r, BERTH__OP_reshape, &shown, 1, &whole, 1, out, err);
}

berth_status berth__rewrite_single_rows(berth_graph *graph, berth_error *err) {
  berth__rewrite r;
  berth_status status = BERTH_OK;
  if (!has_single_rows(graph)) return BERTH_OK;
  BERTH__TRY(berth__rewrite_start(&r, graph, err));
  for (size_t n = 0; n < r.n_old && status == BERTH_OK; n++) {
    int64_t axis, row;
    status = find_single_row(graph, &r.old[n], &axis, &row) ? show_row(&r, &r.old[n], axis, row, err)
                                                            : berth__rewrite_keep(&r, n, err);
  }
  berth__rewrite_finish(&r);
  return status;
}
