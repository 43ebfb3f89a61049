/* Which rows every slice of a group makes, and which it reads.
 *
 * Windows of adjacent slices overlap: both read the last rows under the first one's windows. If rows are kept, the
 * first slice makes them, and the second one gets them from it; otherwise both make them. */
#include "plan/split.h"

uint32_t berth__split_place(const berth__split_group *group, const berth_graph *graph, berth_value value) {
  if (value == BERTH_VALUE_NONE || graph->values[value].kind != BERTH_VALUE_NODE) return UINT32_MAX;
  uint32_t i = 0;
  while (i < group->n_nodes && group->nodes[i] != graph->values[value].node) i++;
  return i < group->n_nodes ? i : UINT32_MAX;
}

static void plan_split_rows_extend(berth__rows *rows, berth__rows by) {
  if (by.begin < rows->begin) rows->begin = by.begin;
  if (by.end > rows->end) rows->end = by.end;
}

/* The rows of a result that the nodes after it read in this slice. */
static berth__rows plan_split_rows_read(const berth__split_table *t, uint32_t slice, uint32_t i) {
  const berth_value value = t->graph->nodes[t->group->nodes[i]].out[0];
  berth__rows rows = {INT64_MAX, INT64_MIN};
  for (uint32_t j = i + 1; j < t->group->n_nodes; j++) {
    const berth__node *node = &t->graph->nodes[t->group->nodes[j]];
    const berth__rows made = berth__split_at(t, slice, j)->made;
    for (uint32_t k = 0; k < node->n_in && made.begin < made.end; k++) {
      berth__rows want;
      if (node->in[k] == value && berth__split_operand(t->graph, node, t->group->axis, k, made, &want))
        plan_split_rows_extend(&rows, want);
    }
  }
  return rows;
}

/* Fills in what the slices make of a result, given what they read of it. */
static void plan_split_rows_make(berth__split_table *t, uint32_t i) {
  const berth__node *node = &t->graph->nodes[t->group->nodes[i]];
  const int64_t unit = berth__split_unit(t->graph, node, t->group->axis),
                extent = t->graph->values[node->out[0]].shape.dim[t->group->axis];
  int64_t done = 0; /* rows before this one need not be made any more */
  for (uint32_t s = 0; s < t->n_slices; s++) {
    berth__split_part *part = berth__split_at(t, s, i);
    int64_t begin = part->read.begin, end = part->read.end;
    part->made = (berth__rows){0, 0};
    if (begin >= end) continue;
    begin = begin / unit * unit;
    end = (end + unit - 1) / unit * unit;
    if (begin < done) begin = done;
    if (end > extent) end = extent;
    if (begin < end) part->made = (berth__rows){begin, end};
    if (begin < end && t->keeps) done = end;
  }
}

/* What a later slice reads is read from now on. */
static void plan_split_rows_keep(berth__split_table *t, uint32_t i) {
  for (uint32_t s = t->n_slices; s-- > 1;) {
    const int64_t begin = berth__split_at(t, s, i)->read.begin;
    berth__split_part *before = berth__split_at(t, s - 1, i);
    if (begin < before->read.begin) before->read.begin = begin;
  }
}

berth_status berth__split_table_create(berth__split_table *t, const berth_graph *graph, const berth__split_group *group,
                                       uint32_t n_slices, bool keeps, berth_error *err) {
  const uint32_t last = group->n_nodes - 1;
  const int64_t unit = berth__split_unit(graph, &graph->nodes[group->nodes[last]], group->axis);
  const int64_t n_units = berth__split_most(graph, group);
  *t = (berth__split_table){.graph = graph, .group = group, .n_slices = n_slices, .keeps = keeps};
  t->parts = berth__alloc_array(graph->ctx, (size_t)n_slices * group->n_nodes, sizeof *t->parts);
  if (t->parts == NULL) return berth__fail_nomem(err, "a plan");
  for (uint32_t i = last + 1; i-- > 0;) {
    for (uint32_t s = 0; s < n_slices; s++)
      berth__split_at(t, s, i)->read =
          i == last ? (berth__rows){n_units * s / n_slices * unit, n_units * (s + 1) / n_slices * unit}
                    : plan_split_rows_read(t, s, i);
    if (keeps) plan_split_rows_keep(t, i);
    plan_split_rows_make(t, i);
  }
  return BERTH_OK;
}

void berth__split_table_free(berth__split_table *t) { berth__free(t->graph->ctx, t->parts); }
