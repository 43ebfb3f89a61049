/* Which rows every slice of a group makes, and which it reads.
 *
 * Windows of adjacent slices overlap: both read the last rows under the first one's windows. The first slice makes
 * them, and the second one gets them from it.
 *
 * Through several windows, the first row of the result needs many rows of the first node. They are not made all at
 * once: early slices make some of them and nothing of the result. A slice is what it takes to move the end of the
 * result by some rows, and it takes about that much anywhere, also before the first row. So all slices are of about the
 * same size. */
#include "plan/split.h"

#define SAMPLE 6u /* slices that an estimate looks at: tiles make some larger than others */

uint32_t berth__split_place(const berth__split_group *group, const berth_graph *graph, berth_value value) {
  if (value == BERTH_VALUE_NONE || graph->values[value].kind != BERTH_VALUE_NODE) return UINT32_MAX;
  uint32_t i = 0;
  while (i < group->n_nodes && group->nodes[i] != graph->values[value].node) i++;
  return i < group->n_nodes ? i : UINT32_MAX;
}

int64_t berth__split_most(const berth_graph *graph, const berth__split_group *group) {
  const berth__node *last = &graph->nodes[group->nodes[group->n_nodes - 1]];
  const int64_t unit = berth__split_unit(graph, last, group->axis);
  return (graph->values[last->out[0]].shape.dim[group->axis] + unit - 1) / unit;
}

static const berth__node *plan_split_rows_node(const berth__split_table *t, uint32_t i) {
  return &t->graph->nodes[t->group->nodes[i]];
}

static int64_t plan_split_rows_extent(const berth__split_table *t, uint32_t i) {
  return t->graph->values[plan_split_rows_node(t, i)->out[0]].shape.dim[t->group->axis];
}

static int64_t plan_split_rows_unit(const berth__split_table *t, uint32_t i) {
  return berth__split_unit(t->graph, plan_split_rows_node(t, i), t->group->axis);
}

/* The end of the result after so many slices of it; before its first row if they are fewer than 0. */
static int64_t plan_split_rows_end(const berth__split_table *t, int64_t slices) {
  const int64_t unit = plan_split_rows_unit(t, t->group->n_nodes - 1), n = (int64_t)(t->n_slices - t->n_early),
                n_units = berth__split_most(t->graph, t->group);
  return (slices < 0 ? slices * ((n_units + n - 1) / n) : n_units * slices / n) * unit;
}

/* The rows that must be there of each result if the last one is there up to `end`, which may be before its first. */
static void plan_split_rows_reach(const berth__split_table *t, int64_t end, int64_t *ends) {
  const uint32_t last = t->group->n_nodes - 1;
  for (uint32_t i = 0; i <= last; i++) ends[i] = i == last ? end : INT64_MIN;
  for (uint32_t i = last + 1; i-- > 0;) {
    const berth__node *node = plan_split_rows_node(t, i);
    const int64_t unit = plan_split_rows_unit(t, i);
    if (ends[i] > 0) ends[i] = (ends[i] + unit - 1) / unit * unit;
    for (uint32_t k = 0; k < node->n_in; k++) {
      const uint32_t from = berth__split_place(t->group, t->graph, node->in[k]);
      if (from == UINT32_MAX) continue;
      const int64_t want = k == 0 ? berth__split_operand_end(t->graph, node, t->group->axis, ends[i]) : ends[i];
      if (want > ends[from]) ends[from] = want;
    }
  }
}

static void plan_split_rows_extend(berth__rows *rows, berth__rows by) {
  if (by.begin < rows->begin) rows->begin = by.begin;
  if (by.end > rows->end) rows->end = by.end;
}

/* The rows of a result that the nodes after it read in this slice. */
static berth__rows plan_split_rows_read(const berth__split_table *t, uint32_t slice, uint32_t i) {
  const berth_value value = plan_split_rows_node(t, i)->out[0];
  berth__rows rows = {INT64_MAX, INT64_MIN};
  for (uint32_t j = i + 1; j < t->group->n_nodes; j++) {
    const berth__node *node = plan_split_rows_node(t, j);
    const berth__rows made = berth__split_at(t, slice, j)->made;
    for (uint32_t k = 0; k < node->n_in && made.begin < made.end; k++) {
      berth__rows want;
      if (node->in[k] == value && berth__split_operand(t->graph, node, t->group->axis, k, made, &want))
        plan_split_rows_extend(&rows, want);
    }
  }
  return rows;
}

/* What a later slice reads is read from now on. */
static void plan_split_rows_keep(berth__split_table *t, uint32_t i) {
  for (uint32_t s = t->n_slices; s-- > 1;) {
    const int64_t begin = berth__split_at(t, s, i)->read.begin;
    berth__split_part *before = berth__split_at(t, s - 1, i);
    if (begin < before->read.begin) before->read.begin = begin;
  }
}

/* Fills in what the slices make of a result, given what they read of it and made.end. */
static void plan_split_rows_make(berth__split_table *t, uint32_t i) {
  const int64_t unit = plan_split_rows_unit(t, i), extent = plan_split_rows_extent(t, i);
  int64_t done = 0; /* rows before this one need not be made any more */
  for (uint32_t s = 0; s < t->n_slices; s++) {
    berth__split_part *part = berth__split_at(t, s, i);
    int64_t begin = part->read.begin, end = part->made.end;
    part->made = (berth__rows){0, 0};
    if (begin >= end) continue;
    begin = begin / unit * unit;
    end = (end + unit - 1) / unit * unit;
    if (begin < done) begin = done;
    if (end > extent) end = extent;
    if (begin >= end) continue;
    part->made = (berth__rows){begin, end};
    done = end;
  }
}

/* How many slices come before the first one of the result: as many as leave only its share to that, but no more than it
 * has slices. */
static uint32_t plan_split_rows_early(const berth__split_table *t) {
  for (uint32_t early = 0; early < t->n_slices; early++) {
    int64_t ends[BERTH__SPLIT_NODES];
    bool makes_rows = false;
    plan_split_rows_reach(t, plan_split_rows_end(t, -(int64_t)early), ends);
    for (uint32_t i = 0; i < t->group->n_nodes; i++) makes_rows = makes_rows || ends[i] > 0;
    if (!makes_rows) return early;
  }
  return t->n_slices;
}

/* Sets made.end of all results. */
static void plan_split_rows_reach_all(berth__split_table *t) {
  for (uint32_t s = 0; s < t->n_slices; s++) {
    int64_t ends[BERTH__SPLIT_NODES];
    plan_split_rows_reach(t, plan_split_rows_end(t, (int64_t)s + 1 - t->n_early), ends);
    for (uint32_t i = 0; i < t->group->n_nodes; i++) berth__split_at(t, s, i)->made = (berth__rows){0, ends[i]};
  }
}

berth_status berth__split_table_create(berth__split_table *t, const berth_graph *graph, const berth__split_group *group,
                                       uint32_t n_slices, berth_error *err) {
  const uint32_t last = group->n_nodes - 1;
  *t = (berth__split_table){.graph = graph, .group = group, .n_slices = n_slices};
  t->n_early = plan_split_rows_early(t);
  t->n_slices += t->n_early;
  t->parts = berth__alloc_array(graph->ctx, (size_t)t->n_slices * group->n_nodes, sizeof *t->parts);
  if (t->parts == NULL) return berth__fail_nomem(err, "a plan");
  plan_split_rows_reach_all(t);
  for (uint32_t i = last + 1; i-- > 0;) {
    int64_t done = 0;
    for (uint32_t s = 0; s < t->n_slices; s++) {
      berth__split_part *part = berth__split_at(t, s, i);
      part->read = i == last ? (berth__rows){done, part->made.end} : plan_split_rows_read(t, s, i);
      if (part->made.end > done) done = part->made.end;
    }
    plan_split_rows_keep(t, i);
    plan_split_rows_make(t, i);
  }
  return BERTH_OK;
}

void berth__split_table_free(berth__split_table *t) { berth__free(t->graph->ctx, t->parts); }

/* ---- An estimate ---- */

typedef struct estimate {
  berth__split_table table;
  int64_t begin[BERTH__SPLIT_NODES], end[BERTH__SPLIT_NODES]; /* the rows that a slice makes */
  int64_t read[BERTH__SPLIT_NODES];                           /* the first row that it reads */
  int64_t next[BERTH__SPLIT_NODES];                           /* the first row that the slice after it reads */
  uint32_t last_reader[BERTH__SPLIT_NODES];
} estimate;

static int64_t plan_split_rows_clip(const berth__split_table *t, uint32_t i, int64_t row) {
  const int64_t extent = plan_split_rows_extent(t, i);
  return row < 0 ? 0 : row < extent ? row : extent;
}

/* The first row of each result that is read where the rows from `from` on are made next. */
static void plan_split_rows_first_read(estimate *e, const int64_t *from, int64_t *first) {
  const berth__split_table *t = &e->table;
  for (uint32_t i = 0; i < t->group->n_nodes; i++) first[i] = from[i];
  for (uint32_t i = 0; i < t->group->n_nodes; i++) {
    const berth__node *node = plan_split_rows_node(t, i);
    for (uint32_t k = 0; k < node->n_in && from[i] < plan_split_rows_extent(t, i); k++) {
      const uint32_t source = berth__split_place(t->group, t->graph, node->in[k]);
      berth__rows want;
      if (source == UINT32_MAX) continue;
      e->last_reader[source] = i;
      if (berth__split_operand(t->graph, node, t->group->axis, k, (berth__rows){from[i], from[i] + 1}, &want) &&
          want.begin < first[source])
        first[source] = want.begin;
    }
  }
}

static uint64_t plan_split_rows_bytes(const berth__split_table *t, uint32_t i, int64_t rows) {
  uint64_t size = 0;
  berth__value_size(&t->graph->values[plan_split_rows_node(t, i)->out[0]], &size);
  return size / (uint64_t)plan_split_rows_extent(t, i) * (uint64_t)rows;
}

/* Kept rows of all results, and the rows of a slice from where they are made to their last reader. */
static uint64_t plan_split_rows_fullest(const estimate *e) {
  const berth__split_table *t = &e->table;
  uint64_t now = 0, most = 0;
  for (uint32_t i = 0; i + 1 < t->group->n_nodes; i++) now += plan_split_rows_bytes(t, i, e->begin[i] - e->read[i]);
  for (uint32_t i = 0; i < t->group->n_nodes; i++) {
    if (i + 1 < t->group->n_nodes) now += plan_split_rows_bytes(t, i, e->end[i] - e->read[i]);
    if (now > most) most = now;
    if (i + 1 < t->group->n_nodes)
      now = now + plan_split_rows_bytes(t, i, e->end[i] - e->next[i]) -
            plan_split_rows_bytes(t, i, e->begin[i] - e->read[i]);
    for (uint32_t j = 0; j < i; j++)
      if (e->last_reader[j] == i) now -= plan_split_rows_bytes(t, j, e->end[j] - e->read[j]);
  }
  return most;
}

static uint64_t plan_split_rows_slice(estimate *e, uint32_t slice) {
  const uint32_t n = e->table.group->n_nodes;
  plan_split_rows_reach(&e->table, plan_split_rows_end(&e->table, (int64_t)slice + 1), e->end);
  for (uint32_t i = 0; i < n; i++) e->end[i] = plan_split_rows_clip(&e->table, i, e->end[i]);
  plan_split_rows_first_read(e, e->end, e->next);
  return plan_split_rows_fullest(e);
}

uint64_t berth__split_estimate(const berth_graph *graph, const berth__split_group *group, uint32_t n_slices,
                               uint64_t enough) {
  estimate e = {.table = {.graph = graph, .group = group, .n_slices = n_slices}};
  const uint32_t first = n_slices > SAMPLE ? (n_slices - SAMPLE) / 2 : 1;
  uint64_t most = 0;
  plan_split_rows_slice(&e, first - 1);
  for (uint32_t s = first; s < n_slices && s < first + SAMPLE && most <= enough; s++) {
    memcpy(e.begin, e.end, sizeof e.begin);
    memcpy(e.read, e.next, sizeof e.read);
    const uint64_t load = plan_split_rows_slice(&e, s);
    if (load > most) most = load;
  }
  return most;
}
