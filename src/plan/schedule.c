/* The execution order of nodes. Each rule gives an order; the planner measures them and keeps the best. */
#include "plan/schedule.h"

#include "plan/states.h"

typedef struct scheduler {
  berth_context *ctx;
  const berth_graph *graph;
  uint64_t *bytes;   /* one per value: 0 for inputs, params and constants, which are always alive, and views of them */
  uint32_t *unread;  /* one per value: remaining reads */
  uint32_t *waiting; /* one per node: operands not made yet */
  uint32_t *reads_first; /* one per value and one more: index of its first reader in `reads` */
  uint32_t *reads;
  uint32_t *ready;
  uint32_t n_ready;
  uint64_t *need;     /* one per node: the most bytes that its branch needs */
  bool *decides;      /* one per node: the condition of a choose depends on it */
  berth__edge *edges; /* from readers of states to their writers */
  size_t n_edges;
} scheduler;

static void scheduler_free(scheduler *s) {
  berth__free(s->ctx, s->bytes);
  berth__free(s->ctx, s->unread);
  berth__free(s->ctx, s->waiting);
  berth__free(s->ctx, s->reads_first);
  berth__free(s->ctx, s->reads);
  berth__free(s->ctx, s->ready);
  berth__free(s->ctx, s->need);
  berth__free(s->ctx, s->decides);
  berth__free(s->ctx, s->edges);
}

static void plan_schedule_note_readers(scheduler *s) {
  const berth_graph *graph = s->graph;
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    for (uint32_t i = 0; i < graph->nodes[n].n_in; i++)
      if (graph->nodes[n].in[i] != BERTH_VALUE_NONE) s->reads_first[graph->nodes[n].in[i] + 1]++;
  for (size_t v = 0; v < graph->n_values; v++) {
    s->unread[v] = s->reads_first[v + 1];
    s->reads_first[v + 1] += s->reads_first[v];
  }
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    for (uint32_t i = 0; i < graph->nodes[n].n_in; i++) {
      berth_value value = graph->nodes[n].in[i];
      if (value == BERTH_VALUE_NONE) continue;
      s->reads[s->reads_first[value]++] = n;
      if (graph->values[value].kind == BERTH_VALUE_NODE) s->waiting[n]++;
    }
  }
  for (size_t v = graph->n_values; v > 0; v--) s->reads_first[v] = s->reads_first[v - 1];
  s->reads_first[0] = 0;
  for (size_t i = 0; i < s->n_edges; i++) s->waiting[s->edges[i].to]++;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) s->unread[berth__graph_kept(graph, i)]++; /* never freed */
}

/* Views of values that are always alive cost nothing. Other views count in full: they take over from their operand. */
static void note_bytes(scheduler *s) {
  for (uint32_t n = 0; n < s->graph->n_nodes; n++) {
    const berth__node *node = &s->graph->nodes[n];
    bool is_free = node->op->family->view != NULL && node->in[0] != BERTH_VALUE_NONE && s->bytes[node->in[0]] == 0;
    for (uint32_t i = 0; i < node->n_out && !is_free; i++)
      berth__value_size(&s->graph->values[node->out[i]], &s->bytes[node->out[i]]);
  }
  for (size_t i = 0; i < s->graph->n_updates; i++) s->bytes[s->graph->updates[i].next] = 0; /* in the state's bytes */
}

/* Conditions come as early as possible: what is made before them runs whether it is needed or not. */
static void plan_schedule_note_conditions(scheduler *s) {
  const berth_graph *graph = s->graph;
  for (size_t n = graph->n_nodes; n-- > 0;) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      bool decides = s->decides[n] || (node->op->code == BERTH__OP_choose && i == 0);
      if (!decides || node->in[i] == BERTH_VALUE_NONE) continue;
      const berth__value *value = &graph->values[node->in[i]];
      if (value->kind == BERTH_VALUE_NODE) s->decides[value->node] = true;
    }
  }
}

static berth_status scheduler_create(scheduler *s, const berth_graph *graph, berth_error *err) {
  berth_context *ctx = graph->ctx;
  size_t n_reads = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) n_reads += graph->nodes[n].n_in;
  *s = (scheduler){.ctx = ctx, .graph = graph};
  s->bytes = berth__alloc_array_zero(ctx, graph->n_values, sizeof *s->bytes);
  s->unread = berth__alloc_array_zero(ctx, graph->n_values, sizeof *s->unread);
  s->waiting = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *s->waiting);
  s->reads_first = berth__alloc_array_zero(ctx, graph->n_values + 1, sizeof *s->reads_first);
  s->reads = berth__alloc_array(ctx, n_reads, sizeof *s->reads);
  s->ready = berth__alloc_array(ctx, graph->n_nodes, sizeof *s->ready);
  s->need = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *s->need);
  s->decides = berth__alloc_array_zero(ctx, graph->n_nodes, sizeof *s->decides);
  berth_status status = berth__states_edges(graph, &s->edges, &s->n_edges, err);
  if (status != BERTH_OK) {
    scheduler_free(s);
    return status;
  }
  if (!s->bytes || !s->unread || !s->waiting || !s->reads_first || !s->reads || !s->ready || !s->need || !s->decides) {
    scheduler_free(s);
    return berth__fail_nomem(err, "scheduling");
  }
  note_bytes(s);
  plan_schedule_note_readers(s);
  plan_schedule_note_conditions(s);
  return BERTH_OK;
}

static int64_t bytes_made(const scheduler *s, uint32_t node) {
  uint64_t made = 0;
  for (uint32_t i = 0; i < s->graph->nodes[node].n_out; i++) made += s->bytes[s->graph->nodes[node].out[i]];
  return (int64_t)made;
}

/* How much running a node adds to the bytes alive: its results, minus operands without further readers. */
static int64_t growth(const scheduler *s, uint32_t node) {
  const berth__node *n = &s->graph->nodes[node];
  int64_t total = bytes_made(s, node);
  for (uint32_t i = 0; i < n->n_in; i++) {
    uint32_t times = 0;
    bool first = true;
    if (n->in[i] == BERTH_VALUE_NONE) continue;
    for (uint32_t k = 0; k < n->n_in; k++) {
      times += n->in[k] == n->in[i];
      first = first && !(k < i && n->in[k] == n->in[i]);
    }
    if (first && s->unread[n->in[i]] == times) total -= (int64_t)s->bytes[n->in[i]];
  }
  return total;
}

static void plan_schedule_run_node(scheduler *s, uint32_t node) {
  const berth__node *n = &s->graph->nodes[node];
  for (uint32_t i = 0; i < n->n_in; i++)
    if (n->in[i] != BERTH_VALUE_NONE) s->unread[n->in[i]]--;
  for (uint32_t i = 0; i < n->n_out; i++) {
    for (uint32_t k = s->reads_first[n->out[i]]; k < s->reads_first[n->out[i] + 1]; k++)
      if (--s->waiting[s->reads[k]] == 0) s->ready[s->n_ready++] = s->reads[k];
  }
  for (size_t i = 0; i < s->n_edges; i++)
    if (s->edges[i].from == node && --s->waiting[s->edges[i].to] == 0) s->ready[s->n_ready++] = s->edges[i].to;
}

/* Considers at most this many ready nodes, the newest first, so that wide graphs stay fast. */
#define GREEDY_WINDOW 256u

static uint32_t pick_smallest_growth(const scheduler *s) {
  uint32_t best = s->n_ready - 1;
  int64_t best_growth = growth(s, s->ready[best]);
  uint32_t stop = s->n_ready > GREEDY_WINDOW ? s->n_ready - GREEDY_WINDOW : 0;
  for (uint32_t i = s->n_ready - 1; i-- > stop;) {
    int64_t g = growth(s, s->ready[i]);
    bool decides = s->decides[s->ready[i]], best_decides = s->decides[s->ready[best]];
    bool is_better = g < best_growth || (g == best_growth && s->ready[i] < s->ready[best]);
    if (decides != best_decides ? decides : is_better) {
      best = i;
      best_growth = g;
    }
  }
  return best;
}

static void schedule_greedy(scheduler *s, uint32_t *order) {
  for (uint32_t n = (uint32_t)s->graph->n_nodes; n-- > 0;)
    if (s->waiting[n] == 0) s->ready[s->n_ready++] = n;
  for (uint32_t step = 0; step < s->graph->n_nodes; step++) {
    uint32_t at = pick_smallest_growth(s), node = s->ready[at];
    s->ready[at] = s->ready[--s->n_ready];
    order[step] = node;
    plan_schedule_run_node(s, node);
  }
}

/* As for registers in an expression (Sethi and Ullman): the operand with the largest need first, since the others'
 * results are not alive then. For graphs that are not trees this is a heuristic. */
static void note_needs(scheduler *s) {
  for (uint32_t n = 0; n < s->graph->n_nodes; n++) {
    const berth__node *node = &s->graph->nodes[n];
    uint64_t operands = 0, most = 0;
    for (uint32_t i = 0; i < node->n_in; i++) {
      if (node->in[i] == BERTH_VALUE_NONE || s->graph->values[node->in[i]].kind != BERTH_VALUE_NODE) continue;
      uint64_t need = s->need[s->graph->values[node->in[i]].node];
      if (need > most) most = need;
      operands += s->bytes[node->in[i]];
    }
    uint64_t here = operands + (uint64_t)bytes_made(s, n);
    s->need[n] = here > most ? here : most;
  }
}

/* An unplaced reader of a state that this node writes; UINT32_MAX: none. */
static uint32_t reader_before(const scheduler *s, uint32_t node, const uint32_t *placed) {
  for (size_t i = 0; i < s->n_edges; i++)
    if (s->edges[i].to == node && !placed[s->edges[i].from]) return s->edges[i].from;
  return UINT32_MAX;
}

/* The unplaced node of the operand that needs most; UINT32_MAX: all are placed. */
static uint32_t neediest_operand(const scheduler *s, uint32_t node, const uint32_t *placed) {
  uint32_t best = UINT32_MAX;
  for (uint32_t i = 0; i < s->graph->nodes[node].n_in; i++) {
    berth_value value = s->graph->nodes[node].in[i];
    if (value == BERTH_VALUE_NONE || s->graph->values[value].kind != BERTH_VALUE_NODE) continue;
    uint32_t from = s->graph->values[value].node;
    if (placed[from]) continue;
    if (s->decides[from] && s->graph->nodes[node].op->code == BERTH__OP_choose && i == 0) return from;
    if (best == UINT32_MAX || s->need[from] > s->need[best]) best = from;
  }
  return best;
}

static void schedule_depth(scheduler *s, uint32_t *order) {
  uint32_t *placed = s->waiting, *stack = s->ready, n_placed = 0;
  note_needs(s);
  memset(placed, 0, s->graph->n_nodes * sizeof *placed);
  for (uint32_t last = (uint32_t)s->graph->n_nodes; last-- > 0;) {
    if (placed[last]) continue;
    uint32_t depth = 0;
    stack[depth++] = last;
    while (depth != 0) {
      uint32_t next = neediest_operand(s, stack[depth - 1], placed);
      if (next == UINT32_MAX) next = reader_before(s, stack[depth - 1], placed);
      if (next != UINT32_MAX) {
        stack[depth++] = next;
        continue;
      }
      placed[stack[depth - 1]] = 1;
      order[n_placed++] = stack[--depth];
    }
  }
}

berth_status berth__schedule(const berth_graph *graph, berth__schedule_rule rule, uint32_t *order, berth_error *err) {
  scheduler s;
  bool has_loop = false; /* the inside of a loop stays inside */
  for (uint32_t n = 0; n < graph->n_nodes; n++) has_loop = has_loop || graph->nodes[n].op->family->is_loop;
  for (uint32_t n = 0; n < graph->n_nodes; n++) order[n] = n;
  if (rule == BERTH__SCHEDULE_SOURCE || has_loop || graph->n_nodes < 3) return BERTH_OK;
  BERTH__TRY(scheduler_create(&s, graph, err));
  if (rule == BERTH__SCHEDULE_GREEDY)
    schedule_greedy(&s, order);
  else
    schedule_depth(&s, order);
  scheduler_free(&s);
  return BERTH_OK;
}
