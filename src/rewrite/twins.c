#include "rewrite/twins.h"

berth_status berth__twins_create(berth__twins *t, const berth_graph *graph, berth_error *err) {
  t->twin = berth__alloc_array(graph->ctx, graph->n_values, sizeof *t->twin);
  t->has_plain = berth__alloc_array(graph->ctx, graph->n_values, sizeof *t->has_plain);
  if (t->twin == NULL || t->has_plain == NULL) return berth__fail_nomem(err, "rewriting a graph");
  for (size_t v = 0; v < graph->n_values; v++) {
    t->twin[v] = BERTH_VALUE_NONE;
    t->has_plain[v] = graph->values[v].kind != BERTH_VALUE_NODE;
  }
  return BERTH_OK;
}

void berth__twins_free(berth__twins *t, berth_context *ctx) {
  berth__free(ctx, t->twin);
  berth__free(ctx, t->has_plain);
  *t = (berth__twins){0};
}

int64_t berth__twins_axis(int64_t axis, uint32_t rank) {
  if (axis < 0) axis += rank;
  return axis == 0 ? 0 : axis == 1 ? (int64_t)rank - 1 : axis - 1;
}

berth_status berth__twins_last(berth__twins *t, berth__rewrite *r, berth_value value, berth_value *out,
                               berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  const uint32_t rank = r->graph->values[value].shape.rank;
  *out = t->twin[value];
  if (*out != BERTH_VALUE_NONE) return BERTH_OK;
  for (uint32_t axis = 0; axis < rank; axis++) perm[berth__twins_axis(axis, rank)] = axis;
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  BERTH__TRY(berth__rewrite_add(r, BERTH__OP_transpose, &value, 1, &attr, 1, value, "#last", out, err));
  t->twin[value] = *out;
  return BERTH_OK;
}

berth_status berth__twins_plain(berth__twins *t, berth__rewrite *r, berth_value value, berth_error *err) {
  int64_t perm[BERTH_MAX_RANK];
  if (value == BERTH_VALUE_NONE || t->has_plain[value]) return BERTH_OK;
  const uint32_t rank = r->graph->values[value].shape.rank;
  for (uint32_t axis = 0; axis < rank; axis++) perm[axis] = berth__twins_axis(axis, rank);
  const berth_attr attr = berth_attr_ints("perm", perm, rank);
  t->has_plain[value] = true;
  return berth__rewrite_make(r, BERTH__OP_transpose, &t->twin[value], 1, &attr, 1, value, err);
}

/* Before a loop, makes all plain layouts, so that none is made inside and missing after it. Unused ones are removed
 * later. */
static berth_status all_plain(berth__twins *t, berth__rewrite *r, berth_error *err) {
  for (size_t v = 0; v < r->n_old_values; v++)
    if (t->twin[v] != BERTH_VALUE_NONE) BERTH__TRY(berth__twins_plain(t, r, (berth_value)v, err));
  return BERTH_OK;
}

/* After a loop, forgets twins that were made inside. */
static void forget_inside(berth__twins *t, const berth__rewrite *r, const berth__node *end) {
  const berth__value *values = r->graph->values;
  const uint32_t begin = values[end->in[BERTH__LOOP_ROUND]].node;
  for (size_t v = 0; v < r->n_old_values; v++) {
    const berth_value twin = t->twin[v];
    if (twin != BERTH_VALUE_NONE && values[twin].kind == BERTH_VALUE_NODE && values[twin].node > begin)
      t->twin[v] = BERTH_VALUE_NONE;
  }
}

berth_status berth__twins_keep(berth__twins *t, berth__rewrite *r, size_t n, berth_error *err) {
  const berth__node *node = &r->old[n];
  const berth__op_code code = node->op->code;
  if (code == BERTH__OP_loop_begin) BERTH__TRY(all_plain(t, r, err));
  for (uint32_t i = 0; i < node->n_in; i++) BERTH__TRY(berth__twins_plain(t, r, node->in[i], err));
  if (code == BERTH__OP_loop_end) forget_inside(t, r, node);
  for (uint32_t i = 0; i < node->n_out; i++) t->has_plain[node->out[i]] = true;
  return berth__rewrite_keep(r, n, err);
}
