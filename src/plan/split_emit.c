/* Emits a group of nodes in slices: for each slice, views of the rows that it needs, the nodes on those rows, and
 * finally a concat of all slices, which are made in place.
 *
 * Rows of an inner result that a later slice reads too are copied while they are there. The later slice makes the rows
 * after them and joins the two in a concat, so the slice before need not stay. */
#include "plan/budget.h"
#include "plan/split.h"

/* Rows of a result of the group. */
typedef struct held {
  berth_value value; /* BERTH_VALUE_NONE: no rows */
  berth__rows rows;
} held;

typedef struct emitter {
  const berth_plan *plan;
  const berth__split_group *group;
  berth__split_table table;
  berth__rewrite r;
  uint32_t slice;                 /* the current one */
  held now[BERTH__SPLIT_NODES];   /* the results, in it */
  held later[BERTH__SPLIT_NODES]; /* what later slices read of them */
} emitter;

static const berth__node *node_at(const emitter *e, uint32_t i) { return &e->plan->graph->nodes[e->group->nodes[i]]; }

static berth__split_part *part_at(const emitter *e, uint32_t i) { return berth__split_at(&e->table, e->slice, i); }

/* Rows of a value; the value itself if these are all of it. */
static berth_status plan_split_emit_narrow(emitter *e, berth_value value, uint32_t axis, berth__rows rows,
                                           berth_value *out, berth_error *err) {
  const int64_t extent = e->r.graph->values[value].shape.dim[axis], along = axis;
  *out = value;
  if (rows.begin == 0 && rows.end == extent) return BERTH_OK;
  const berth_attr attrs[] = {berth_attr_ints("axes", &along, 1), berth_attr_ints("starts", &rows.begin, 1),
                              berth_attr_ints("ends", &rows.end, 1)};
  return berth__rewrite_add(&e->r, BERTH__OP_narrow, &value, 1, attrs, 3, value, "#rows", out, err);
}

/* Rows that are held, of which these are some. */
static berth_status plan_split_emit_held(emitter *e, const held *from, berth__rows rows, berth_value *out,
                                         berth_error *err) {
  const int64_t first = from->rows.begin;
  return plan_split_emit_narrow(e, from->value, e->group->axis, (berth__rows){rows.begin - first, rows.end - first},
                                out, err);
}

static berth_status plan_split_emit_operand(emitter *e, uint32_t i, uint32_t k, berth_value *out, berth_error *err) {
  const berth_graph *graph = e->plan->graph;
  const berth__node *node = node_at(e, i);
  berth__rows want;
  *out = node->in[k];
  if (!berth__split_operand(graph, node, e->group->axis, k, part_at(e, i)->made, &want)) return BERTH_OK;
  const uint32_t from = berth__split_place(e->group, graph, node->in[k]);
  if (from != UINT32_MAX) return plan_split_emit_held(e, &e->now[from], want, out, err);
  const uint32_t axis = berth__split_operand_axis(graph, node, e->group->axis, k);
  return plan_split_emit_narrow(e, node->in[k], axis, want, out, err);
}

/* The node, for the rows that the slice makes. */
static berth_status emit_node(emitter *e, uint32_t i, berth_value *out, berth_error *err) {
  berth_context *ctx = e->plan->ctx;
  const berth__node *node = node_at(e, i);
  int64_t ints[BERTH__SPLIT_INTS];
  berth_value *in = berth__alloc_array(ctx, node->n_in, sizeof *in);
  berth_attr *attrs = berth__alloc_array(ctx, node->op->family->n_attrs, sizeof *attrs);
  berth_status status = in != NULL && attrs != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t k = 0; k < node->n_in && status == BERTH_OK; k++)
    status = plan_split_emit_operand(e, i, k, &in[k], err);
  if (status == BERTH_OK) {
    berth__split_attrs(e->plan->graph, node, e->group->axis, part_at(e, i)->made, attrs, ints);
    status = berth__budget_add_copy(&e->r, node, in, attrs, "#slice", out, err);
  }
  berth__free(ctx, in);
  berth__free(ctx, attrs);
  return status;
}

static berth_status plan_split_emit_join(emitter *e, const berth_value *parts, size_t n, berth_value *out,
                                         berth_error *err) {
  const berth_attr axis = berth_attr_int("axis", e->group->axis);
  return berth__rewrite_add(&e->r, BERTH__OP_concat, parts, n, &axis, 1, parts[n - 1], "#kept", out, err);
}

/* What earlier slices left and what this one makes. */
static berth_status plan_split_emit_result(emitter *e, uint32_t i, berth_error *err) {
  const berth__rows made = part_at(e, i)->made;
  held *now = &e->now[i];
  *now = e->later[i];
  if (made.begin >= made.end) return BERTH_OK;
  berth_value parts[] = {now->value, BERTH_VALUE_NONE};
  BERTH__TRY(emit_node(e, i, &parts[1], err));
  if (now->value == BERTH_VALUE_NONE) {
    *now = (held){parts[1], made};
    return BERTH_OK;
  }
  now->rows.end = made.end;
  return plan_split_emit_join(e, parts, 2, &now->value, err);
}

/* Copies what later slices read. A view would keep all rows of this slice; all of them need no copy. */
static berth_status plan_split_emit_keep(emitter *e, uint32_t i, berth_error *err) {
  const held *now = &e->now[i];
  held *later = &e->later[i];
  *later = (held){.value = BERTH_VALUE_NONE};
  if (e->slice + 1 == e->table.n_slices || now->value == BERTH_VALUE_NONE) return BERTH_OK;
  const int64_t first = berth__split_at(&e->table, e->slice + 1, i)->read.begin;
  if (first >= now->rows.end) return BERTH_OK;
  *later = *now;
  if (first <= now->rows.begin) return BERTH_OK;
  berth_value view;
  later->rows.begin = first;
  BERTH__TRY(plan_split_emit_held(e, now, later->rows, &view, err));
  return plan_split_emit_join(e, &view, 1, &later->value, err);
}

static berth_status emit_slices(emitter *e, berth_error *err) {
  const uint32_t last = e->group->n_nodes - 1, n_slices = e->table.n_slices;
  uint32_t n_parts = 0;
  berth_value *parts = berth__alloc_array(e->plan->ctx, n_slices, sizeof *parts);
  berth_status status = parts != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i <= last; i++) e->later[i] = (held){.value = BERTH_VALUE_NONE};
  for (e->slice = 0; e->slice < n_slices && status == BERTH_OK; e->slice++) {
    for (uint32_t i = 0; i <= last && status == BERTH_OK; i++) {
      status = plan_split_emit_result(e, i, err);
      if (status == BERTH_OK) status = plan_split_emit_keep(e, i, err);
    }
    if (e->now[last].value != BERTH_VALUE_NONE) parts[n_parts++] = e->now[last].value;
  }
  const berth_attr axis = berth_attr_int("axis", e->group->axis);
  if (status == BERTH_OK)
    status = berth__rewrite_make(&e->r, BERTH__OP_concat, parts, n_parts, &axis, 1, node_at(e, last)->out[0], err);
  berth__free(e->plan->ctx, parts);
  return status;
}

static berth_status plan_split_emit(emitter *e, berth_error *err) {
  const berth_plan *plan = e->plan;
  const berth_value result = node_at(e, e->group->n_nodes - 1)->out[0];
  for (uint32_t step = 0; step < plan->n_steps; step++) {
    const uint32_t node = plan->order[step];
    const berth_value out = plan->graph->nodes[node].n_out != 0 ? plan->graph->nodes[node].out[0] : BERTH_VALUE_NONE;
    if (out == result)
      BERTH__TRY(emit_slices(e, err));
    else if (berth__split_place(e->group, plan->graph, out) == UINT32_MAX)
      BERTH__TRY(berth__rewrite_keep(&e->r, node, err));
  }
  return BERTH_OK;
}

static berth_status plan_split_emit_rewrite(emitter *e, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  BERTH__TRY(berth__graph_duplicate(e->plan->graph, &graph, err));
  berth_status status = berth__rewrite_start(&e->r, graph, err);
  if (status == BERTH_OK) status = plan_split_emit(e, err);
  berth__rewrite_finish(&e->r);
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

berth_status berth__split(const berth_plan *plan, const berth__split_group *group, uint32_t n_slices, berth_graph **out,
                          berth_error *err) {
  emitter e = {.plan = plan, .group = group};
  *out = NULL;
  BERTH__TRY(berth__split_table_create(&e.table, plan->graph, group, n_slices, err));
  const berth_status status = plan_split_emit_rewrite(&e, out, err);
  berth__split_table_free(&e.table);
  return status;
}
