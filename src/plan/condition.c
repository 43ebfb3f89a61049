/* Derives the condition of every step.
 *
 * What a choose takes if its condition is true is needed only then, and so is everything that only it was computed
 * from. Going backwards through the steps, every use of a value has a condition: that of its reader and, if the reader
 * is a choose that takes the value, the condition of that choose as well. The condition of a step is what all uses of
 * its results have in common, as far as those conditions are known when the step runs. Nothing of this is stored in a
 * graph. */
#include "plan/condition.h"

#define NOT_USED UINT32_MAX
#define MAX_CONDITIONS 4096u /* limits of number and depth; steps beyond run unconditionally, which is correct */
#define MAX_DEPTH 16u

typedef struct deriver {
  const berth_graph *graph;
  berth__conditions *conditions;
  uint32_t *step_of; /* one per node */
  uint32_t *common;  /* one per node: common part of the conditions of its uses so far */
} deriver;

static uint32_t add_condition(berth__conditions *conditions, berth_value condition, bool sense, uint32_t parent) {
  uint32_t depth = conditions->items[parent].depth + 1;
  for (uint32_t i = parent + 1; i < conditions->count; i++) {
    const berth__condition *g = &conditions->items[i];
    if (g->condition == condition && g->sense == sense && g->parent == parent) return i;
  }
  if (depth > MAX_DEPTH || conditions->count == MAX_CONDITIONS) return parent;
  conditions->items[conditions->count] =
      (berth__condition){.condition = condition, .sense = sense, .parent = parent, .depth = depth};
  return conditions->count++;
}

static uint32_t common_condition(const berth__conditions *conditions, uint32_t a, uint32_t b) {
  while (a != b) {
    if (conditions->items[a].depth >= conditions->items[b].depth)
      a = conditions->items[a].parent;
    else
      b = conditions->items[b].parent;
  }
  return a;
}

static bool is_made_before(const deriver *d, berth_value value, uint32_t step) {
  const berth__value *v = &d->graph->values[value];
  return v->kind != BERTH_VALUE_NODE || d->step_of[v->node] < step;
}

/* The longest prefix of the chain whose conditions are known when the step runs. */
static uint32_t known_part(const deriver *d, uint32_t under, uint32_t step) {
  uint32_t known = under;
  for (uint32_t g = under; g != BERTH__NO_CONDITION; g = d->conditions->items[g].parent)
    if (!is_made_before(d, d->conditions->items[g].condition, step)) known = d->conditions->items[g].parent;
  return known;
}

static void plan_condition_note_use(const deriver *d, berth_value value, uint32_t under) {
  if (d->graph->values[value].kind != BERTH_VALUE_NODE) return;
  uint32_t *common = &d->common[d->graph->values[value].node];
  *common = *common == NOT_USED ? under : common_condition(d->conditions, *common, under);
}

static void visit(const deriver *d, const berth__node *node, uint32_t index, uint32_t step) {
  uint32_t under = d->common[index] != NOT_USED ? known_part(d, d->common[index], step) : BERTH__NO_CONDITION;
  d->conditions->of_step[step] = under;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    bool is_choice = node->op->code == BERTH__OP_choose && i != 0;
    plan_condition_note_use(d, node->in[i],
                            is_choice ? add_condition(d->conditions, node->in[0], i == 1, under) : under);
  }
}

static void derive(const deriver *d, const uint32_t *order) {
  const berth_graph *graph = d->graph;
  for (size_t n = 0; n < graph->n_nodes; n++) d->common[n] = NOT_USED;
  for (uint32_t step = 0; step < graph->n_nodes; step++) d->step_of[order[step]] = step;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++)
    plan_condition_note_use(d, berth__graph_kept(graph, i), BERTH__NO_CONDITION);
  for (uint32_t step = (uint32_t)graph->n_nodes; step-- > 0;) visit(d, &graph->nodes[order[step]], order[step], step);
}

static size_t most_conditions(const berth_graph *graph) {
  size_t most = 1;
  for (size_t n = 0; n < graph->n_nodes; n++) most += graph->nodes[n].op->code == BERTH__OP_choose ? 2 : 0;
  return most < MAX_CONDITIONS ? most : MAX_CONDITIONS;
}

berth_status berth__conditions_create(const berth_graph *graph, const uint32_t *order, berth__conditions *out,
                                      berth_error *err) {
  berth_context *ctx = graph->ctx;
  size_t most = most_conditions(graph);
  *out = (berth__conditions){.items = berth__alloc_array_zero(ctx, most, sizeof *out->items),
                             .count = 1,
                             .of_step = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *out->of_step)};
  deriver d = {.graph = graph,
               .conditions = out,
               .step_of = berth__alloc_array(ctx, graph->n_nodes, sizeof *d.step_of),
               .common = berth__alloc_array(ctx, graph->n_nodes, sizeof *d.common)};
  berth_status status = BERTH_OK;
  if (out->items == NULL || out->of_step == NULL || d.step_of == NULL || d.common == NULL) {
    berth__conditions_free(ctx, out);
    status = berth__fail_nomem(err, "a plan");
  } else if (most > 1) {
    out->items[0].condition = BERTH_VALUE_NONE;
    derive(&d, order);
  }
  berth__free(ctx, d.step_of);
  berth__free(ctx, d.common);
  return status;
}

void berth__conditions_free(berth_context *ctx, berth__conditions *conditions) {
  berth__free(ctx, conditions->items);
  berth__free(ctx, conditions->of_step);
  *conditions = (berth__conditions){.count = 0};
}

bool berth__condition_implies(const berth__conditions *conditions, uint32_t under, berth_value condition, bool sense) {
  for (uint32_t g = under; g != BERTH__NO_CONDITION; g = conditions->items[g].parent)
    if (conditions->items[g].condition == condition && conditions->items[g].sense == sense) return true;
  return false;
}
