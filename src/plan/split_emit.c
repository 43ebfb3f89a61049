/* Emits a group of nodes in slices: for each slice, views of the rows that it needs, the nodes on those rows, and
 * finally a concat of all slices, which are made in place. */
#include "plan/budget.h"

typedef struct emitter {
  const berth_plan *plan;
  const berth__split_group *group;
  berth__rewrite *r;
  uint32_t *place_in_group;               /* one per node; UINT32_MAX: it is not in the group */
  berth__rows needed[BERTH__SPLIT_NODES]; /* of the results, for the current slice */
  berth_value made[BERTH__SPLIT_NODES];
} emitter;

static const berth__node *node_at(const emitter *e, uint32_t i) { return &e->plan->graph->nodes[e->group->nodes[i]]; }

/* The index of an operand made inside the group; UINT32_MAX: outside. */
static uint32_t plan_split_emit_inside(const emitter *e, berth_value value) {
  const berth__value *v = &e->plan->graph->values[value];
  return v->kind == BERTH_VALUE_NODE ? e->place_in_group[v->node] : UINT32_MAX;
}

static berth__rows plan_split_emit_whole_units(const emitter *e, uint32_t i, berth__rows rows) {
  const berth_graph *graph = e->plan->graph;
  const int64_t unit = berth__split_unit(graph, node_at(e, i), e->group->axis),
                extent = graph->values[node_at(e, i)->out[0]].shape.dim[e->group->axis],
                end = (rows.end + unit - 1) / unit * unit;
  return (berth__rows){rows.begin / unit * unit, end < extent ? end : extent};
}

/* From the rows of the last result back to those of all results. */
static void plan_split_emit_find_rows(emitter *e, berth__rows rows) {
  const uint32_t n = e->group->n_nodes;
  for (uint32_t i = 0; i < n; i++) e->needed[i] = (berth__rows){INT64_MAX, INT64_MIN};
  e->needed[n - 1] = rows;
  for (uint32_t i = n; i-- > 0;) {
    const berth__node *node = node_at(e, i);
    e->needed[i] = plan_split_emit_whole_units(e, i, e->needed[i]);
    for (uint32_t k = 0; k < node->n_in; k++) {
      berth__rows want;
      if (!berth__split_operand(e->plan->graph, node, e->group->axis, k, e->needed[i], &want)) continue;
      const uint32_t from = plan_split_emit_inside(e, node->in[k]);
      if (from == UINT32_MAX) continue;
      if (want.begin < e->needed[from].begin) e->needed[from].begin = want.begin;
      if (want.end > e->needed[from].end) e->needed[from].end = want.end;
    }
  }
}

/* Rows of a value; the value itself if these are all of it. */
static berth_status plan_split_emit_narrow(const emitter *e, berth_value value, uint32_t axis, berth__rows rows,
                                           berth_value *out, berth_error *err) {
  const int64_t extent = e->r->graph->values[value].shape.dim[axis], along = axis;
  *out = value;
  if (rows.begin == 0 && rows.end == extent) return BERTH_OK;
  const berth_attr attrs[] = {berth_attr_ints("axes", &along, 1), berth_attr_ints("starts", &rows.begin, 1),
                              berth_attr_ints("ends", &rows.end, 1)};
  return berth__rewrite_add(e->r, BERTH__OP_narrow, &value, 1, attrs, 3, value, "#rows", out, err);
}

static berth_status plan_split_emit_operand(const emitter *e, uint32_t i, uint32_t k, berth_value *out,
                                            berth_error *err) {
  const berth_graph *graph = e->plan->graph;
  const berth__node *node = node_at(e, i);
  const berth_value value = node->in[k];
  berth__rows want;
  *out = value;
  if (!berth__split_operand(graph, node, e->group->axis, k, e->needed[i], &want)) return BERTH_OK;
  const uint32_t axis = berth__split_operand_axis(graph, node, e->group->axis, k);
  const uint32_t from = plan_split_emit_inside(e, value);
  if (from == UINT32_MAX) return plan_split_emit_narrow(e, value, axis, want, out, err);
  const int64_t first = e->needed[from].begin;
  return plan_split_emit_narrow(e, e->made[from], axis, (berth__rows){want.begin - first, want.end - first}, out, err);
}

static berth_status emit_node(emitter *e, uint32_t i, berth_error *err) {
  berth_context *ctx = e->plan->ctx;
  const berth__node *node = node_at(e, i);
  int64_t ints[BERTH__SPLIT_INTS];
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_attr *attrs = berth__alloc_array(ctx, node->op->family->n_attrs, sizeof *attrs);
  berth_status status = in != NULL && attrs != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t k = 0; k < node->n_in && status == BERTH_OK; k++)
    status = plan_split_emit_operand(e, i, k, &in[k], err);
  if (status == BERTH_OK) {
    berth__split_attrs(e->plan->graph, node, e->group->axis, e->needed[i], attrs, ints);
    status = berth__budget_add_copy(e->r, node, in, attrs, "#slice", &e->made[i], err);
  }
  berth__free(ctx, in);
  berth__free(ctx, attrs);
  return status;
}

static berth_status emit_slices(emitter *e, uint32_t n_slices, berth_error *err) {
  const uint32_t last = e->group->n_nodes - 1;
  const berth_value result = node_at(e, last)->out[0];
  const int64_t unit = berth__split_unit(e->plan->graph, node_at(e, last), e->group->axis);
  const int64_t n_units = berth__split_most(e->plan, e->group);
  berth_value *parts = berth__alloc_array(e->plan->ctx, n_slices, sizeof *parts);
  berth_status status = parts != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t s = 0; s < n_slices && status == BERTH_OK; s++) {
    plan_split_emit_find_rows(e, (berth__rows){n_units * s / n_slices * unit, n_units * (s + 1) / n_slices * unit});
    for (uint32_t i = 0; i <= last && status == BERTH_OK; i++) status = emit_node(e, i, err);
    if (status == BERTH_OK) parts[s] = e->made[last];
  }
  const berth_attr axis = berth_attr_int("axis", e->group->axis);
  if (status == BERTH_OK) status = berth__rewrite_make(e->r, BERTH__OP_concat, parts, n_slices, &axis, 1, result, err);
  berth__free(e->plan->ctx, parts);
  return status;
}

static berth_status plan_split_emit(emitter *e, uint32_t n_slices, berth_error *err) {
  const berth_plan *plan = e->plan;
  const uint32_t last = e->group->nodes[e->group->n_nodes - 1];
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const uint32_t node = plan->order[step];
    if (node == last)
      BERTH__TRY(emit_slices(e, n_slices, err));
    else if (e->place_in_group[node] == UINT32_MAX)
      BERTH__TRY(berth__rewrite_keep(e->r, node, err));
  }
  return BERTH_OK;
}

static berth_status plan_split_emit_rewrite(emitter *e, uint32_t n_slices, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  berth__rewrite r;
  BERTH__TRY(berth__graph_duplicate(e->plan->graph, &graph, err));
  e->r = &r;
  berth_status status = berth__rewrite_start(&r, graph, err);
  if (status == BERTH_OK) status = plan_split_emit(e, n_slices, err);
  berth__rewrite_finish(&r);
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

int64_t berth__split_most(const berth_plan *plan, const berth__split_group *group) {
  const berth__node *last = &plan->graph->nodes[group->nodes[group->n_nodes - 1]];
  const int64_t unit = berth__split_unit(plan->graph, last, group->axis);
  return (plan->graph->values[last->out[0]].shape.dim[group->axis] + unit - 1) / unit;
}

berth_status berth__split(const berth_plan *plan, const berth__split_group *group, uint32_t n_slices, berth_graph **out,
                          berth_error *err) {
  emitter e = {.plan = plan,
               .group = group,
               .place_in_group = berth__alloc_array(plan->ctx, plan->graph->n_nodes, sizeof *e.place_in_group)};
  *out = NULL;
  if (e.place_in_group == NULL) return berth__fail_nomem(err, "a plan");
  for (size_t n = 0; n < plan->graph->n_nodes; n++) e.place_in_group[n] = UINT32_MAX;
  for (uint32_t i = 0; i < group->n_nodes; i++) e.place_in_group[group->nodes[i]] = i;
  berth_status status = plan_split_emit_rewrite(&e, n_slices, out, err);
  berth__free(plan->ctx, e.place_in_group);
  return status;
}
