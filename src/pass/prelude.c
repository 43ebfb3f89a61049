/* Finds the nodes that run once (the prelude).
 *
 * A node that reads only params, constants and results of such nodes gives the same result in every run: a packed
 * weight, a normalisation folded into a convolution, a slice of a weight. It runs in the prelude, when the weights are
 * loaded. Results that runs read stay in the arena next to the weights; params that only the prelude reads need no
 * bytes there. */
#include "pass/prelude.h"

#include <stdlib.h>

#include "graph/rewrite.h"

/* A result that is much larger than its operands (a constant broadcast to a shape) is cheaper to recompute. */
#define MAX_GROWTH 4

static bool reads_weights_alone(const berth_graph *graph, const berth__node *node, const bool *in_prelude) {
  for (uint32_t i = 0; i < node->n_in; i++) {
    if (node->in[i] == BERTH_VALUE_NONE) continue;
    const berth__value *value = &graph->values[node->in[i]];
    const bool is_made_in_prelude = value->kind == BERTH_VALUE_NODE && in_prelude[value->node];
    if (value->kind != BERTH_VALUE_PARAM && value->kind != BERTH_VALUE_CONSTANT && !is_made_in_prelude) return false;
  }
  return node->n_in != 0;
}

static bool is_worth_keeping(const berth_graph *graph, const berth__node *node) {
  uint64_t read = 0, made = 0;
  for (uint32_t i = 0; i < node->n_in; i++) {
    uint64_t size = 0;
    if (node->in[i] != BERTH_VALUE_NONE) berth__value_size(&graph->values[node->in[i]], &size);
    read += size;
  }
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint64_t size = 0;
    berth__value_size(&graph->values[node->out[i]], &size);
    made += size;
  }
  if (node->op->family->view != NULL) return true; /* usually a view, with nothing to store */
  if (node->op->family->packs) return true;
  return made / MAX_GROWTH <= read + 1024;
}

void berth__prelude_mark(const berth_graph *graph, bool *in_prelude) {
  /* Initially: excludes nodes that make outputs, or next values of states, which every run must make. */
  for (size_t n = 0; n < graph->n_nodes; n++) in_prelude[n] = false;
  for (size_t i = 0; i < berth__graph_n_kept(graph); i++) {
    const berth__value *kept = &graph->values[berth__graph_kept(graph, i)];
    if (kept->kind == BERTH_VALUE_NODE) in_prelude[kept->node] = true;
  }
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    in_prelude[n] = !in_prelude[n] && node->op->custom == NULL && !node->op->family->is_random &&
                    !node->op->family->is_loop && reads_weights_alone(graph, node, in_prelude) &&
                    is_worth_keeping(graph, node);
  }
}

berth_status berth__prelude_values(const berth_graph *graph, bool **out, berth_error *err) {
  bool *in_prelude = berth__alloc_array_zero(graph->ctx, graph->n_nodes, sizeof *in_prelude);
  bool *is_static = berth__alloc_array_zero(graph->ctx, graph->n_values, sizeof *is_static);
  *out = NULL;
  if (in_prelude == NULL || is_static == NULL) {
    berth__free(graph->ctx, in_prelude);
    berth__free(graph->ctx, is_static);
    return berth__fail_nomem(err, "rewriting a graph");
  }
  berth__prelude_mark(graph, in_prelude);
  for (size_t v = 0; v < graph->n_values; v++) {
    const berth__value *value = &graph->values[v];
    is_static[v] = value->kind == BERTH_VALUE_PARAM || value->kind == BERTH_VALUE_CONSTANT ||
                   (value->kind == BERTH_VALUE_NODE && in_prelude[value->node]);
  }
  berth__free(graph->ctx, in_prelude);
  *out = is_static;
  return BERTH_OK;
}

static berth_status move_ahead(berth__rewrite *r, const bool *in_prelude, berth_error *err) {
  for (size_t n = 0; n < r->n_old; n++)
    if (in_prelude[n]) BERTH__TRY(berth__rewrite_keep(r, n, err));
  for (size_t n = 0; n < r->n_old; n++)
    if (!in_prelude[n]) BERTH__TRY(berth__rewrite_keep(r, n, err));
  return BERTH_OK;
}

berth_status berth__prelude_hoist(berth_graph *graph, bool *in_prelude, berth_error *err) {
  berth__rewrite r = {0};
  size_t n_once = 0;
  for (size_t n = 0; n < graph->n_nodes; n++) n_once += in_prelude[n];
  BERTH__TRY(berth__rewrite_start(&r, graph, err));
  berth_status status = move_ahead(&r, in_prelude, err);
  berth__rewrite_finish(&r);
  for (size_t n = 0; n < graph->n_nodes; n++) in_prelude[n] = n < n_once;
  return status;
}

/* ---- The order ---- */

/* A node of the prelude that runs read, or nobody. */
typedef struct made {
  uint32_t node;
  uint64_t needs; /* bytes of temporaries needed to make it */
} made;

typedef struct arranger {
  const berth_graph *graph;
  const bool *in_prelude;
  bool *is_temporary; /* one per node: a node of the prelude that only the prelude reads */
  uint64_t *needs;    /* one per node */
  uint32_t *rank;     /* one per node: rank of the first result that needs it */
  uint32_t *stack, *room;
  made *results;
  uint32_t n_results;
} arranger;

static bool prelude_makes(const arranger *a, berth_value value) {
  const berth__value *v = &a->graph->values[value];
  return value != BERTH_VALUE_NONE && v->kind == BERTH_VALUE_NODE && a->in_prelude[v->node];
}

static void find_temporaries(arranger *a) {
  const berth_graph *graph = a->graph;
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in && a->in_prelude[n]; i++)
      if (node->in[i] != BERTH_VALUE_NONE && prelude_makes(a, node->in[i]))
        a->is_temporary[graph->values[node->in[i]].node] = true;
  }
  for (size_t n = 0; n < graph->n_nodes; n++) {
    const berth__node *node = &graph->nodes[n];
    for (uint32_t i = 0; i < node->n_in && !a->in_prelude[n]; i++)
      if (node->in[i] != BERTH_VALUE_NONE && prelude_makes(a, node->in[i]))
        a->is_temporary[graph->values[node->in[i]].node] = false;
  }
}

static uint64_t bytes_made(const berth_graph *graph, const berth__node *node) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < node->n_out && node->op->family->view == NULL; i++) {
    uint64_t size = 0;
    berth__value_size(&graph->values[node->out[i]], &size);
    total += size;
  }
  return total;
}

static int prelude_by_needs(const void *a, const void *b) {
  const made *x = a, *y = b;
  if (x->needs != y->needs) return x->needs > y->needs ? -1 : 1;
  return x->node < y->node ? -1 : x->node > y->node;
}

/* Sums may saturate: they are only compared. */
static void find_results(arranger *a, const uint32_t *order) {
  const berth_graph *graph = a->graph;
  for (size_t i = 0; i < graph->n_nodes; i++) {
    const uint32_t n = order[i];
    if (!a->in_prelude[n]) continue;
    for (uint32_t k = 0; k < graph->nodes[n].n_in; k++) {
      const berth_value in = graph->nodes[n].in[k];
      if (in == BERTH_VALUE_NONE || !prelude_makes(a, in) || !a->is_temporary[graph->values[in].node]) continue;
      const uint32_t from = graph->values[in].node;
      const uint64_t more = a->needs[from] + bytes_made(graph, &graph->nodes[from]);
      a->needs[n] = a->needs[n] + more < more ? UINT64_MAX / 2 : a->needs[n] + more;
    }
    if (!a->is_temporary[n]) a->results[a->n_results++] = (made){.node = n, .needs = a->needs[n]};
  }
  qsort(a->results, a->n_results, sizeof *a->results, prelude_by_needs);
}

/* A node has the rank of the first result that needs it, so its operands have no higher one. */
static void rank_nodes(arranger *a) {
  const berth_graph *graph = a->graph;
  for (uint32_t r = 0; r < a->n_results; r++) {
    uint32_t n_waiting = 0;
    if (a->rank[a->results[r].node] != UINT32_MAX) continue;
    a->rank[a->results[r].node] = r;
    a->stack[n_waiting++] = a->results[r].node;
    while (n_waiting != 0) {
      const berth__node *node = &graph->nodes[a->stack[--n_waiting]];
      for (uint32_t i = 0; i < node->n_in; i++) {
        if (node->in[i] == BERTH_VALUE_NONE || !prelude_makes(a, node->in[i])) continue;
        const uint32_t from = graph->values[node->in[i]].node;
        if (a->rank[from] != UINT32_MAX) continue;
        a->rank[from] = r;
        a->stack[n_waiting++] = from;
      }
    }
  }
}

/* Sorts the first n nodes of the order by rank, stably. */
static void sort_by_rank(arranger *a, uint32_t *order, uint32_t n) {
  uint32_t *first = a->stack, at = 0; /* beginning of each rank */
  for (uint32_t r = 0; r < a->n_results; r++) first[r] = 0;
  for (uint32_t i = 0; i < n; i++) first[a->rank[order[i]]]++;
  for (uint32_t r = 0; r < a->n_results; r++) {
    const uint32_t count = first[r];
    first[r] = at;
    at += count;
  }
  for (uint32_t i = 0; i < n; i++) a->room[first[a->rank[order[i]]]++] = order[i];
  memcpy(order, a->room, n * sizeof *order);
}

static uint32_t put_first(const arranger *a, uint32_t *order) {
  uint32_t n_first = 0, n_rest = 0;
  for (size_t i = 0; i < a->graph->n_nodes; i++) {
    if (a->in_prelude[order[i]])
      order[n_first++] = order[i];
    else
      a->room[n_rest++] = order[i];
  }
  for (uint32_t i = 0; i < n_rest; i++) order[n_first + i] = a->room[i];
  return n_first;
}

static bool keeps_order(const berth_graph *graph) {
  for (size_t n = 0; n < graph->n_nodes; n++)
    if (graph->nodes[n].op->family->is_loop) return true;
  return false;
}

berth_status berth__prelude_first(const berth_graph *graph, const bool *in_prelude, uint32_t *order, uint32_t *n,
                                  berth_error *err) {
  berth_context *ctx = graph->ctx;
  const size_t count = graph->n_nodes;
  arranger a = {.graph = graph,
                .in_prelude = in_prelude,
                .is_temporary = berth__alloc_array_zero(ctx, count, sizeof *a.is_temporary),
                .needs = berth__alloc_array_zero(ctx, count, sizeof *a.needs),
                .rank = berth__alloc_array(ctx, count, sizeof *a.rank),
                .stack = berth__alloc_array(ctx, count, sizeof *a.stack),
                .room = berth__alloc_array(ctx, count, sizeof *a.room),
                .results = berth__alloc_array(ctx, count, sizeof *a.results)};
  berth_status status = BERTH_OK;
  if (a.is_temporary && a.needs && a.rank && a.stack && a.room && a.results) {
    *n = put_first(&a, order);
    for (size_t i = 0; i < count; i++) a.rank[i] = UINT32_MAX;
    if (*n != 0 && !keeps_order(graph)) {
      find_temporaries(&a);
      find_results(&a, order);
      rank_nodes(&a);
      sort_by_rank(&a, order, *n);
    }
  } else {
    status = berth__fail_nomem(err, "a plan");
  }
  berth__free(ctx, a.is_temporary);
  berth__free(ctx, a.needs);
  berth__free(ctx, a.rank);
  berth__free(ctx, a.stack);
  berth__free(ctx, a.room);
  berth__free(ctx, a.results);
  return status;
}
