/* Chooses the nodes to run in slices: those around the fullest step, as long as values get smaller before and after
 * it. */
#include "plan/split.h"
#include "graph/rewrite.h"

#define MOST_EXITS 6u
#define MOST_LEVELS 8u
#define SUPPOSED_SLICES 8u /* groups are compared as if they ran in this many */

typedef struct finder {
  const berth_plan *plan;
  berth__uses uses;
  uint32_t *step_of;
  uint32_t at; /* the node at the fullest step */
  berth__split_group *groups;
  uint32_t n_groups, most;
} finder;

static uint64_t plan_split_bytes_of(const finder *f, berth_value value) {
  uint64_t size = 0;
  berth__value_size(&f->plan->graph->values[value], &size);
  return size;
}

static bool plan_split_has_node(const berth__split_group *group, uint32_t node) {
  for (uint32_t i = 0; i < group->n_nodes; i++)
    if (group->nodes[i] == node) return true;
  return false;
}

/* All rows of a node's result. */
static berth__rows all_rows(const finder *f, const berth__node *node, uint32_t axis) {
  return (berth__rows){0, f->plan->graph->values[node->out[0]].shape.dim[axis]};
}

/* Whether a node of the group reads rows of an operand, rather than all of it or slices along another axis. */
static bool plan_split_reads_rows(const finder *f, const berth__split_group *group, const berth__node *node,
                                  uint32_t k) {
  const berth_graph *graph = f->plan->graph;
  berth__rows rows;
  return berth__split_operand(graph, node, group->axis, k, all_rows(f, node, group->axis), &rows) &&
         berth__split_operand_axis(graph, node, group->axis, k) == group->axis;
}

static uint32_t reads_inside(const finder *f, const berth__split_group *group, berth_value value) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const berth__node *node = &f->plan->graph->nodes[group->nodes[i]];
    for (uint32_t k = 0; k < node->n_in; k++) n += node->in[k] == value && plan_split_reads_rows(f, group, node, k);
  }
  return n;
}

/* Whether the operand can be made inside the group, slice by slice. */
static bool may_come_inside(const finder *f, const berth__split_group *group, const berth__node *node, uint32_t k) {
  const berth_graph *graph = f->plan->graph;
  const berth_value value = node->in[k];
  if (value == BERTH_VALUE_NONE || graph->values[value].kind != BERTH_VALUE_NODE) return false;
  const uint32_t from = graph->values[value].node;
  if (f->plan->in_prelude[from] || plan_split_has_node(group, from)) return false;
  return plan_split_reads_rows(f, group, node, k) && reads_inside(f, group, value) == f->uses.count[value] &&
         berth__split_may(graph, &graph->nodes[from], group->axis);
}

/* In plan order. */
static void insert(const finder *f, berth__split_group *group, uint32_t node) {
  uint32_t at = group->n_nodes++;
  for (; at > 0 && f->step_of[group->nodes[at - 1]] > f->step_of[node]; at--) group->nodes[at] = group->nodes[at - 1];
  group->nodes[at] = node;
}

/* Extends the group by one level backwards: true if it has grown. */
static bool plan_split_grow(const finder *f, berth__split_group *group) {
  const berth__split_group before = *group;
  for (uint32_t i = 0; i < before.n_nodes; i++) {
    const berth__node *node = &f->plan->graph->nodes[before.nodes[i]];
    for (uint32_t k = 0; k < node->n_in && group->n_nodes < BERTH__SPLIT_NODES; k++)
      if (may_come_inside(f, group, node, k)) insert(f, group, f->plan->graph->values[node->in[k]].node);
  }
  return group->n_nodes > before.n_nodes;
}

/* The bytes of whole values while the group runs, and the largest bytes of sliced ones. */
static void plan_split_measure(const finder *f, berth__split_group *group) {
  const berth_graph *graph = f->plan->graph;
  const berth_value result = graph->nodes[group->nodes[group->n_nodes - 1]].out[0];
  group->whole = plan_split_bytes_of(f, result);
  group->sliced = 0;
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const berth__node *node = &graph->nodes[group->nodes[i]];
    uint64_t cut = node->out[0] != result ? plan_split_bytes_of(f, node->out[0]) : 0;
    for (uint32_t k = 0; k < node->n_in; k++) {
      berth__rows rows;
      if (node->in[k] == BERTH_VALUE_NONE) continue;
      const berth__value *value = &graph->values[node->in[k]];
      if (value->kind == BERTH_VALUE_NODE && plan_split_has_node(group, value->node))
        cut += plan_split_bytes_of(f, node->in[k]);
      else if (berth__split_operand(graph, node, group->axis, k, all_rows(f, node, group->axis), &rows))
        group->whole += plan_split_bytes_of(f, node->in[k]);
    }
    if (cut > group->sliced) group->sliced = cut;
  }
}

static uint64_t plan_split_score(const berth__split_group *group) {
  return group->whole + group->sliced / SUPPOSED_SLICES;
}

static void offer(finder *f, berth__split_group *group) {
  if (!plan_split_has_node(group, f->at)) return;
  plan_split_measure(f, group);
  if (group->sliced == 0) return; /* nothing inside gets smaller */
  uint32_t at = f->n_groups < f->most ? f->n_groups++ : f->most;
  for (; at > 0 && plan_split_score(&f->groups[at - 1]) > plan_split_score(group); at--)
    if (at < f->most) f->groups[at] = f->groups[at - 1];
  if (at < f->most) f->groups[at] = *group;
}

/* The only reader of a node's result. */
static uint32_t reader_of(const finder *f, uint32_t node) {
  const berth_value out = f->plan->graph->nodes[node].out[0];
  return f->uses.count[out] == 1 && !f->uses.is_output[out] ? f->uses.reader[out] : UINT32_MAX;
}

static void plan_split_find(finder *f) {
  const berth_graph *graph = f->plan->graph;
  uint32_t exit = f->at;
  for (uint32_t i = 0; i < MOST_EXITS && exit != UINT32_MAX; i++, exit = reader_of(f, exit)) {
    const berth__node *node = &graph->nodes[exit];
    berth__split_group group = {.nodes = {exit}, .n_nodes = 1, .axis = berth__split_axis(graph, node->out[0])};
    if (f->plan->in_prelude[exit] || !berth__split_may(graph, node, group.axis)) return;
    for (uint32_t level = 0; level < MOST_LEVELS && plan_split_grow(f, &group); level++) offer(f, &group);
  }
}

berth_status berth__split_candidates(const berth_plan *plan, uint32_t step, uint32_t most, berth__split_group *groups,
                                     uint32_t *n, berth_error *err) {
  berth_context *ctx = plan->ctx;
  finder f = {.plan = plan, .at = plan->order[step], .groups = groups, .most = most};
  BERTH__TRY(berth__uses_create(&f.uses, plan->graph, err));
  f.step_of = berth__alloc_array(ctx, plan->graph->n_nodes, sizeof *f.step_of);
  berth_status status = f.step_of != NULL ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i < plan->n_steps && status == BERTH_OK; i++) f.step_of[plan->order[i]] = i;
  if (status == BERTH_OK) plan_split_find(&f);
  *n = f.n_groups;
  berth__free(ctx, f.step_of);
  berth__uses_free(&f.uses, ctx);
  return status;
}
