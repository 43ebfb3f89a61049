/* Chooses the nodes to run in slices: those around the fullest step, as long as values get smaller before and after
 * it. */
#include "plan/split.h"
#include "graph/rewrite.h"

#define MOST_EXITS 10u
#define MOST_LEVELS 16u
#define MOST_STEPS 100u /* from where branches begin to where they end */

typedef struct finder {
  const berth_plan *plan;
  berth__uses uses;
  uint32_t *step_of;
  bool *is_passed;      /* one per node: work space */
  bool *is_taken;       /* one per buffer: likewise */
  const uint64_t *load; /* one per step */
  uint64_t target;
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

/* Marks the buffer of a value; true if it was not marked before. */
static bool plan_split_take(const finder *f, berth_value value) {
  const uint32_t buffer = f->plan->places[value].buffer;
  if (buffer == BERTH__NO_BUFFER || f->is_taken[buffer]) return false;
  f->is_taken[buffer] = true;
  return true;
}

/* The bytes that are alive while the group runs and stay whole: its operands and its result, and what others need after
 * it. */
static uint64_t plan_split_whole(const finder *f, const berth__split_group *group) {
  const berth_plan *plan = f->plan;
  const berth_graph *graph = plan->graph;
  const uint32_t last = group->nodes[group->n_nodes - 1], at = f->step_of[last];
  uint64_t whole = plan_split_bytes_of(f, graph->nodes[last].out[0]);
  memset(f->is_taken, 0, plan->n_buffers * sizeof *f->is_taken);
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const berth__node *node = &graph->nodes[group->nodes[i]];
    for (uint32_t k = 0; k < node->n_in; k++) {
      berth__rows rows;
      if (node->in[k] == BERTH_VALUE_NONE ||
          !berth__split_operand(graph, node, group->axis, k, all_rows(f, node, group->axis), &rows))
        continue;
      const berth_value operand = node->in[k];
      const bool is_inside =
          graph->values[operand].kind == BERTH_VALUE_NODE && plan_split_has_node(group, graph->values[operand].node);
      if (!is_inside && plan_split_take(f, operand)) whole += plan->buffers[plan->places[operand].buffer].size;
    }
  }
  for (uint32_t i = 0; i < group->n_nodes; i++) plan_split_take(f, graph->nodes[group->nodes[i]].out[0]);
  for (size_t b = 0; b < plan->n_buffers; b++) {
    const berth__buffer *buffer = &plan->buffers[b];
    const bool counts = buffer->kind == BERTH__BUFFER_ACTIVATION || buffer->kind == BERTH__BUFFER_INPUT ||
                        buffer->kind == BERTH__BUFFER_OUTPUT;
    if (counts && !f->is_taken[b] && buffer->birth <= at && buffer->death > at) whole += buffer->size;
  }
  return whole;
}

/* The number of slices that is tried after n: double, and as many as there can be. */
static uint32_t next_count(uint32_t n, int64_t most) { return n < most && 2 * n > most ? (uint32_t)most : 2 * n; }

/* Chooses the number of slices. */
static void plan_split_measure(const finder *f, berth__split_group *group) {
  const uint64_t whole = plan_split_whole(f, group);
  const uint64_t enough = f->target > whole ? f->target - whole : 0;
  const int64_t most = berth__split_most(f->plan->graph, group);
  group->load = UINT64_MAX;
  group->covers = 0;
  for (uint32_t i = 0; i < group->n_nodes; i++) {
    const uint64_t load = f->load[f->step_of[group->nodes[i]]];
    group->covers += load > f->target ? load - f->target : 0;
  }
  for (uint32_t n = 2; n <= BERTH__SPLIT_SLICES && n <= most && group->load > f->target; n = next_count(n, most)) {
    const uint64_t load = whole + berth__split_estimate(f->plan->graph, group, n, enough);
    if (load >= group->load) continue;
    group->load = load;
    group->n_slices = n;
  }
}

/* Groups within the target come first: those that make the most room, since slices cannot be joined to another group
 * later; then those with the least to do. Otherwise the smallest comes first. */
static bool plan_split_is_better(const finder *f, const berth__split_group *a, const berth__split_group *b) {
  const bool fits_a = a->load <= f->target, fits_b = b->load <= f->target;
  if (fits_a != fits_b) return fits_a;
  if (fits_a && a->covers != b->covers) return a->covers > b->covers;
  const uint32_t steps_a = a->n_slices * a->n_nodes, steps_b = b->n_slices * b->n_nodes;
  if (fits_a && steps_a != steps_b) return steps_a < steps_b;
  return a->load < b->load;
}

static void offer(finder *f, berth__split_group *group) {
  if (!plan_split_has_node(group, f->at)) return;
  plan_split_measure(f, group);
  if (group->load == UINT64_MAX) return;
  uint32_t at = f->n_groups < f->most ? f->n_groups++ : f->most;
  for (; at > 0 && plan_split_is_better(f, group, &f->groups[at - 1]); at--)
    if (at < f->most) f->groups[at] = f->groups[at - 1];
  if (at < f->most) f->groups[at] = *group;
}

/* How many operands of a node come from those that have been passed. */
static uint32_t reads_passed(const finder *f, const berth__node *node) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < node->n_in; k++) {
    const berth__value *value = node->in[k] != BERTH_VALUE_NONE ? &f->plan->graph->values[node->in[k]] : NULL;
    n += value != NULL && value->kind == BERTH_VALUE_NODE && f->is_passed[value->node];
  }
  return n;
}

/* The next node through which everything passes that depends on this one: its only reader, or where the branches that
 * begin here end. */
static uint32_t plan_split_next_exit(const finder *f, uint32_t from) {
  const berth_plan *plan = f->plan;
  const uint32_t first = f->step_of[from];
  memset(f->is_passed, 0, plan->graph->n_nodes * sizeof *f->is_passed);
  uint32_t n_open = 0; /* reads of what has been passed that are still to come */
  for (uint32_t step = first; step < plan->n_steps && step - first < MOST_STEPS; step++) {
    const uint32_t at = plan->order[step];
    const berth__node *node = &plan->graph->nodes[at];
    const uint32_t n = reads_passed(f, node);
    if (step != first && n == 0) continue;
    n_open -= n;
    if (step != first && n_open == 0) return at;
    if (node->n_out != 1 || f->uses.is_output[node->out[0]]) return UINT32_MAX;
    f->is_passed[at] = true;
    n_open += f->uses.count[node->out[0]];
  }
  return UINT32_MAX;
}

static void plan_split_find(finder *f) {
  const berth_graph *graph = f->plan->graph;
  uint32_t exit = f->at;
  for (uint32_t i = 0; i < MOST_EXITS && exit != UINT32_MAX; i++, exit = plan_split_next_exit(f, exit)) {
    const berth__node *node = &graph->nodes[exit];
    berth__split_group group = {.nodes = {exit}, .n_nodes = 1, .axis = berth__split_axis(graph, node->out[0])};
    if (f->plan->in_prelude[exit] || !berth__split_may(graph, node, group.axis)) return;
    for (uint32_t level = 0; level < MOST_LEVELS && plan_split_grow(f, &group); level++) offer(f, &group);
  }
}

berth_status berth__split_candidates(const berth_plan *plan, uint32_t step, const uint64_t *load, uint64_t target,
                                     uint32_t most, berth__split_group *groups, uint32_t *n, berth_error *err) {
  berth_context *ctx = plan->ctx;
  finder f = {.plan = plan, .at = plan->order[step], .groups = groups, .most = most, .load = load, .target = target};
  BERTH__TRY(berth__uses_create(&f.uses, plan->graph, err));
  f.step_of = berth__alloc_array(ctx, plan->graph->n_nodes, sizeof *f.step_of);
  f.is_passed = berth__alloc_array(ctx, plan->graph->n_nodes, sizeof *f.is_passed);
  f.is_taken = berth__alloc_array(ctx, plan->n_buffers, sizeof *f.is_taken);
  const bool ok = f.step_of != NULL && f.is_passed != NULL && f.is_taken != NULL;
  berth_status status = ok ? BERTH_OK : berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i < plan->n_steps && status == BERTH_OK; i++) f.step_of[plan->order[i]] = i;
  if (status == BERTH_OK) plan_split_find(&f);
  *n = f.n_groups;
  berth__free(ctx, f.step_of);
  berth__free(ctx, f.is_passed);
  berth__free(ctx, f.is_taken);
  berth__uses_free(&f.uses, ctx);
  return status;
}
