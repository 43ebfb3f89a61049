/* States: which node makes the next value of each, where, and after which readers.
 *
 * The next value of a state is in the state's bytes, which hold the old value until then. So all readers of the old
 * value must come before the node that makes the next one, except that node itself if its op may overwrite the operand.
 * Three things ensure that:
 * order   readers are moved before the writer if none of their operands depends on it
 * copy    if that is impossible, or nothing makes the next value (an input, a constant), an identity at the end of the
 * run copies it
 * keep    a state that another one is updated from is read through an identity at the very beginning; alias analysis
 * makes it a view if its reader comes in time, and a copy otherwise (two states that are swapped)
 * A view of a state (such as a reshape) counts as the state if possible: it is a view only if all its readers come
 * before the writer (alias.c). */
#include "plan/states.h"

#include "graph/rewrite.h"

#define NOT_A_NODE UINT32_MAX

typedef struct settler {
  berth_graph *graph;
  bool in_place;      /* results may overwrite operands */
  bool keeps_order;   /* the graph has loops */
  berth_value *shows; /* one per value: the state that it is or may be a view of; BERTH_VALUE_NONE */
  bool *behind;       /* one per node: it comes after the current writer */
  bool *is_direct;    /* one per update */
  berth__edge *edges; /* from readers to writers */
  size_t n_edges, edges_capacity;
  uint32_t *order;
} settler;

/* Assumes that whatever may be a view of a state is one. */
static void note_shows(const berth_graph *graph, berth_value *shows) {
  for (size_t v = 0; v < graph->n_values; v++)
    shows[v] = graph->values[v].kind == BERTH_VALUE_STATE ? (berth_value)v : BERTH_VALUE_NONE;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    if (node->op->family->view == NULL || node->n_in == 0 || node->in[0] == BERTH_VALUE_NONE) continue;
    for (uint32_t i = 0; i < node->n_out; i++) shows[node->out[i]] = shows[node->in[0]];
  }
}

/* How a node reads a state: not at all, through a possible view, or directly. */
typedef enum sight {
  SEES_NOTHING,
  SEES_VIEW,
  SEES_STATE
} sight;

static sight sight_of(const berth__node *node, const berth_value *shows, berth_value state) {
  sight seen = SEES_NOTHING;
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == state) return SEES_STATE;
    if (node->in[i] != BERTH_VALUE_NONE && shows[node->in[i]] == state) seen = SEES_VIEW;
  }
  return seen;
}

static uint32_t writer_of(const berth_graph *graph, berth_value next) {
  return graph->values[next].kind == BERTH_VALUE_NODE ? graph->values[next].node : NOT_A_NODE;
}

static uint32_t result_index(const berth__node *node, berth_value value) {
  uint32_t i = 0;
  while (node->out[i] != value) i++;
  return i;
}

/* Whether the node's operands allow it to write its result into the state. */
static bool may_write(const settler *s, const berth__node *node, const berth__update *update) {
  if (node->op->family->is_loop) return false;
  const uint32_t allowed = berth__op_in_place_at(node->op, node->attrs, result_index(node, update->next));
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE || s->shows[node->in[i]] != update->state) continue;
    if (!s->in_place || node->in[i] != update->state || i > 31 || !(allowed >> i & 1u)) return false;
  }
  return true;
}

/* Marks everything that depends on the writer, through operands or because it must write after such a reader. */
static void mark_behind(const settler *s, uint32_t writer) {
  const berth_graph *graph = s->graph;
  bool changed = true;
  memset(s->behind, 0, graph->n_nodes * sizeof *s->behind);
  s->behind[writer] = true;
  while (changed) {
    changed = false;
    for (size_t n = 0; n < graph->n_nodes; n++) {
      const berth__node *node = &graph->nodes[n];
      for (uint32_t i = 0; i < node->n_in && !s->behind[n]; i++) {
        const uint32_t maker = node->in[i] != BERTH_VALUE_NONE ? writer_of(graph, node->in[i]) : NOT_A_NODE;
        s->behind[n] = maker != NOT_A_NODE && s->behind[maker];
      }
    }
    for (size_t e = 0; e < s->n_edges; e++) {
      if (!s->behind[s->edges[e].from] || s->behind[s->edges[e].to]) continue;
      s->behind[s->edges[e].to] = changed = true;
    }
  }
}

static berth_status add_edge(settler *s, uint32_t from, uint32_t to, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->graph->ctx, s->edges, s->edges_capacity, s->n_edges + 1, err));
  s->edges[s->n_edges++] = (berth__edge){.from = from, .to = to};
  return BERTH_OK;
}

static bool is_too_late(const settler *s, uint32_t reader, uint32_t writer) {
  return s->keeps_order ? reader > writer : s->behind[reader];
}

/* Whether two states are updated from this value: the second one is a copy. */
static bool plan_states_is_taken(const settler *s, size_t index) {
  for (size_t i = 0; i < index; i++)
    if (s->is_direct[i] && s->graph->updates[i].next == s->graph->updates[index].next) return true;
  return false;
}

static berth_status try_direct(settler *s, size_t index, berth_error *err) {
  const berth_graph *graph = s->graph;
  const berth__update *update = &graph->updates[index];
  const uint32_t writer = writer_of(graph, update->next);
  if (writer == NOT_A_NODE || plan_states_is_taken(s, index) || !may_write(s, &graph->nodes[writer], update))
    return BERTH_OK;
  mark_behind(s, writer);
  for (uint32_t n = 0; n < graph->n_nodes; n++)
    if (n != writer && sight_of(&graph->nodes[n], s->shows, update->state) == SEES_STATE && is_too_late(s, n, writer))
      return BERTH_OK;
  s->is_direct[index] = true;
  for (uint32_t n = 0; n < graph->n_nodes && !s->keeps_order; n++)
    if (n != writer && sight_of(&graph->nodes[n], s->shows, update->state) != SEES_NOTHING && !s->behind[n])
      BERTH__TRY(add_edge(s, n, writer, err));
  return BERTH_OK;
}

static berth_status order_nodes(settler *s, berth_error *err) {
  const berth_graph *graph = s->graph;
  uint32_t on_cycle;
  for (uint32_t n = 0; n < graph->n_nodes; n++) s->order[n] = n;
  if (s->n_edges == 0) return BERTH_OK;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      const uint32_t maker = node->in[i] != BERTH_VALUE_NONE ? writer_of(graph, node->in[i]) : NOT_A_NODE;
      if (maker != NOT_A_NODE) BERTH__TRY(add_edge(s, maker, n, err));
    }
  }
  return berth__topo_order(graph->ctx, (uint32_t)graph->n_nodes, s->edges, s->n_edges, s->order, &on_cycle, err);
}

/* States that others are updated from are read first. */
static berth_status keep_states(settler *s, berth__rewrite *r, berth_error *err) {
  for (size_t i = 0; i < s->graph->n_updates; i++) {
    const berth_value next = s->graph->updates[i].next;
    berth_value kept;
    if (s->graph->values[next].kind != BERTH_VALUE_STATE || next == s->graph->updates[i].state) continue;
    BERTH__TRY(berth__rewrite_add(r, BERTH__OP_identity, &next, 1, NULL, 0, next, ".before", &kept, err));
    s->graph->updates[i].next = kept;
  }
  return BERTH_OK;
}

/* Whether a pending copy reads what this state held. */
static bool is_awaited(const settler *s, const bool *is_done, size_t index) {
  for (size_t i = 0; i < s->graph->n_updates; i++) {
    if (is_done[i] || i == index) continue;
    const uint32_t maker = writer_of(s->graph, s->graph->updates[i].next);
    const berth__node *node = maker != NOT_A_NODE ? &s->graph->nodes[maker] : NULL;
    if (node != NULL && node->n_in == 1 && node->in[0] == s->graph->updates[index].state) return true;
  }
  return false;
}

/* Copies come after everything else; a copy to a state that another copy reads comes later, if possible. */
static berth_status add_copies(settler *s, berth__rewrite *r, berth_error *err) {
  bool *is_done = s->is_direct;
  for (;;) {
    size_t pick = s->graph->n_updates;
    for (size_t i = s->graph->n_updates; i-- > 0;)
      if (!is_done[i] && (pick == s->graph->n_updates || !is_awaited(s, is_done, i) || is_awaited(s, is_done, pick)))
        pick = i;
    if (pick == s->graph->n_updates) return BERTH_OK;
    berth__update *update = &s->graph->updates[pick];
    is_done[pick] = true;
    BERTH__TRY(berth__rewrite_add(r, BERTH__OP_identity, &update->next, 1, NULL, 0, update->state, ".next",
                                  &update->next, err));
  }
}

static berth_status plan_states_rewrite(settler *s, berth_error *err) {
  berth__rewrite r = {0};
  BERTH__TRY(berth__rewrite_start(&r, s->graph, err));
  berth_status status = keep_states(s, &r, err);
  for (size_t i = 0; i < r.n_old && status == BERTH_OK; i++) status = berth__rewrite_keep(&r, s->order[i], err);
  if (status == BERTH_OK) status = add_copies(s, &r, err);
  berth__rewrite_finish(&r);
  return status;
}

static berth_status plan_states_settle(settler *s, berth_error *err) {
  berth_graph *graph = s->graph;
  bool is_settled = true;
  note_shows(graph, s->shows);
  for (size_t n = 0; n < graph->n_nodes; n++) s->keeps_order = s->keeps_order || graph->nodes[n].op->family->is_loop;
  for (size_t i = 0; i < graph->n_updates; i++) {
    BERTH__TRY(try_direct(s, i, err));
    is_settled = is_settled && s->is_direct[i];
  }
  BERTH__TRY(order_nodes(s, err));
  for (uint32_t n = 0; n < graph->n_nodes; n++) is_settled = is_settled && s->order[n] == n;
  return is_settled ? BERTH_OK : plan_states_rewrite(s, err);
}

/* Drops updates of a state from itself. */
static void drop_idle(berth_graph *graph) {
  size_t kept = 0;
  for (size_t i = 0; i < graph->n_updates; i++)
    if (graph->updates[i].next != graph->updates[i].state) graph->updates[kept++] = graph->updates[i];
  graph->n_updates = kept;
}

berth_status berth__states_settle(berth_graph *graph, uint32_t flags, berth_error *err) {
  berth_context *ctx = graph->ctx;
  drop_idle(graph);
  if (graph->n_updates == 0) return BERTH_OK;
  settler s = {.graph = graph,
               .in_place = !(flags & (BERTH_PLAN_NO_INPLACE | BERTH_PLAN_NO_REUSE)),
               .shows = berth__alloc_array(ctx, graph->n_values, sizeof *s.shows),
               .behind = berth__alloc_array(ctx, graph->n_nodes, sizeof *s.behind),
               .is_direct = berth__alloc_array_zero(ctx, graph->n_updates, sizeof *s.is_direct),
               .order = berth__alloc_array(ctx, graph->n_nodes, sizeof *s.order)};
  berth_status status = BERTH_OK;
  if (s.shows == NULL || s.behind == NULL || s.is_direct == NULL || s.order == NULL)
    status = berth__fail_nomem(err, "planning states");
  else
    status = plan_states_settle(&s, err);
  berth__free(ctx, s.shows);
  berth__free(ctx, s.behind);
  berth__free(ctx, s.is_direct);
  berth__free(ctx, s.edges);
  berth__free(ctx, s.order);
  return status;
}

/* writers: one per value, the node that writes a state. Only counts if edges is NULL. */
static size_t plan_states_collect_edges(const berth_graph *graph, const berth_value *shows, const uint32_t *writers,
                                        berth__edge *edges) {
  size_t n_edges = 0;
  for (uint32_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in; i++) {
      const berth_value state = node->in[i] != BERTH_VALUE_NONE ? shows[node->in[i]] : BERTH_VALUE_NONE;
      if (state == BERTH_VALUE_NONE || writers[state] == NOT_A_NODE || n >= writers[state]) continue;
      if (edges != NULL) edges[n_edges] = (berth__edge){.from = n, .to = writers[state]};
      n_edges++;
    }
  }
  return n_edges;
}

static void note_writers(const berth_graph *graph, uint32_t *writers) {
  for (size_t v = 0; v < graph->n_values; v++) writers[v] = NOT_A_NODE;
  for (size_t i = 0; i < graph->n_updates; i++)
    writers[graph->updates[i].state] = writer_of(graph, graph->updates[i].next);
}

berth_status berth__states_edges(const berth_graph *graph, berth__edge **edges, size_t *n_edges, berth_error *err) {
  berth_context *ctx = graph->ctx;
  *edges = NULL;
  *n_edges = 0;
  if (graph->n_updates == 0) return BERTH_OK;
  berth_value *shows = berth__alloc_array(ctx, graph->n_values, sizeof *shows);
  uint32_t *writers = berth__alloc_array(ctx, graph->n_values, sizeof *writers);
  if (shows != NULL && writers != NULL) {
    note_shows(graph, shows);
    note_writers(graph, writers);
    *n_edges = plan_states_collect_edges(graph, shows, writers, NULL);
    *edges = berth__alloc_array(ctx, *n_edges, sizeof **edges);
    if (*edges != NULL) plan_states_collect_edges(graph, shows, writers, *edges);
  }
  berth__free(ctx, shows);
  berth__free(ctx, writers);
  return *edges != NULL ? BERTH_OK : berth__fail_nomem(err, "planning states");
}
