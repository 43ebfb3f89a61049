/* Guards. What a choose takes where its condition is true is needed only then, and so is whatever only that was made
 * from. Walking the steps backwards, every use of a value has a guard: that of its reader, and the condition on top
 * where the reader is a choose that takes the value. What all uses have in common is the guard of the step that makes
 * it, as far as the conditions are known by then. Nothing of this is stored in a graph. */
#include "plan/guard.h"

#define NOT_USED UINT32_MAX
#define MAX_GUARDS 4096u /* and this deep: what goes beyond runs unguarded, which is never wrong */
#define MAX_DEPTH 16u

typedef struct deriver {
  const berth_graph *graph;
  berth__guards *guards;
  uint32_t *step_of; /* one a node */
  uint32_t *common;  /* one a node: what the uses so far have in common */
} deriver;

static uint32_t add_guard(berth__guards *guards, berth_value condition, bool sense, uint32_t parent) {
  uint32_t depth = guards->items[parent].depth + 1;
  for (uint32_t i = parent + 1; i < guards->count; i++) {
    const berth__guard *g = &guards->items[i];
    if (g->condition == condition && g->sense == sense && g->parent == parent) return i;
  }
  if (depth > MAX_DEPTH || guards->count == MAX_GUARDS) return parent;
  guards->items[guards->count] =
      (berth__guard){.condition = condition, .sense = sense, .parent = parent, .depth = depth};
  return guards->count++;
}

static uint32_t common_guard(const berth__guards *guards, uint32_t a, uint32_t b) {
  while (a != b) {
    if (guards->items[a].depth >= guards->items[b].depth)
      a = guards->items[a].parent;
    else
      b = guards->items[b].parent;
  }
  return a;
}

static bool is_made_before(const deriver *d, berth_value value, uint32_t step) {
  const berth__value *v = &d->graph->values[value];
  return v->kind != BERTH_VALUE_NODE || d->step_of[v->node] < step;
}

/* The longest beginning of the chain whose conditions are there when the step is reached. */
static uint32_t known_part(const deriver *d, uint32_t guard, uint32_t step) {
  uint32_t known = guard;
  for (uint32_t g = guard; g != BERTH__NO_GUARD; g = d->guards->items[g].parent)
    if (!is_made_before(d, d->guards->items[g].condition, step)) known = d->guards->items[g].parent;
  return known;
}

static void note_use(const deriver *d, berth_value value, uint32_t guard) {
  if (d->graph->values[value].kind != BERTH_VALUE_NODE) return;
  uint32_t *common = &d->common[d->graph->values[value].node];
  *common = *common == NOT_USED ? guard : common_guard(d->guards, *common, guard);
}

static void visit(const deriver *d, const berth__node *node, uint32_t index, uint32_t step) {
  uint32_t guard = d->common[index] != NOT_USED ? known_part(d, d->common[index], step) : BERTH__NO_GUARD;
  d->guards->of_step[step] = guard;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    bool is_choice = node->op->code == BERTH__OP_choose && i != 0;
    note_use(d, node->in[i], is_choice ? add_guard(d->guards, node->in[0], i == 1, guard) : guard);
  }
}

static void derive(const deriver *d, const uint32_t *order) {
  const berth_graph *graph = d->graph;
  for (size_t n = 0; n < graph->n_nodes; n++) d->common[n] = NOT_USED;
  for (uint32_t step = 0; step < graph->n_nodes; step++) d->step_of[order[step]] = step;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) note_use(d, berth__graph_kept(graph, i), BERTH__NO_GUARD);
  for (uint32_t step = (uint32_t)graph->n_nodes; step-- > 0;) visit(d, &graph->nodes[order[step]], order[step], step);
}

static size_t most_guards(const berth_graph *graph) {
  size_t most = 1;
  for (size_t n = 0; n < graph->n_nodes; n++) most += graph->nodes[n].op->code == BERTH__OP_choose ? 2 : 0;
  return most < MAX_GUARDS ? most : MAX_GUARDS;
}

berth_status berth__guards_create(const berth_graph *graph, const uint32_t *order, berth__guards *out,
                                  berth_error *err) {
  berth_context *ctx = graph->ctx;
  size_t most = most_guards(graph);
  *out = (berth__guards){.items = berth__alloc_array_zero(ctx, most, sizeof *out->items),
                         .count = 1,
                         .of_step = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *out->of_step)};
  deriver d = {.graph = graph,
               .guards = out,
               .step_of = berth__alloc_array(ctx, graph->n_nodes, sizeof *d.step_of),
               .common = berth__alloc_array(ctx, graph->n_nodes, sizeof *d.common)};
  berth_status status = BERTH_OK;
  if (out->items == NULL || out->of_step == NULL || d.step_of == NULL || d.common == NULL) {
    berth__guards_free(ctx, out);
    status = berth__fail_nomem(err, "a plan");
  } else if (most > 1) {
    out->items[0].condition = BERTH_VALUE_NONE;
    derive(&d, order);
  }
  berth__free(ctx, d.step_of);
  berth__free(ctx, d.common);
  return status;
}

void berth__guards_free(berth_context *ctx, berth__guards *guards) {
  berth__free(ctx, guards->items);
  berth__free(ctx, guards->of_step);
  *guards = (berth__guards){.count = 0};
}

bool berth__guard_implies(const berth__guards *guards, uint32_t guard, berth_value condition, bool sense) {
  for (uint32_t g = guard; g != BERTH__NO_GUARD; g = guards->items[g].parent)
    if (guards->items[g].condition == condition && guards->items[g].sense == sense) return true;
  return false;
}
