/* Kahn's algorithm with a heap of ready items, smallest number first. */
#include "graph/topo.h"

typedef struct sorter {
  uint32_t *first; /* index of an item's first successor in `next` */
  uint32_t *next;
  uint32_t *waiting; /* predecessors not placed yet */
  uint32_t *heap;
  uint32_t heap_size;
} sorter;

static void heap_push(sorter *s, uint32_t item) {
  uint32_t at = s->heap_size++;
  while (at != 0 && s->heap[(at - 1) / 2] > item) {
    s->heap[at] = s->heap[(at - 1) / 2];
    at = (at - 1) / 2;
  }
  s->heap[at] = item;
}

static uint32_t heap_pop(sorter *s) {
  uint32_t top = s->heap[0], last = s->heap[--s->heap_size], at = 0;
  for (;;) {
    uint32_t child = 2 * at + 1;
    if (child >= s->heap_size) break;
    if (child + 1 < s->heap_size && s->heap[child + 1] < s->heap[child]) child++;
    if (s->heap[child] >= last) break;
    s->heap[at] = s->heap[child];
    at = child;
  }
  s->heap[at] = last;
  return top;
}

static void link_edges(sorter *s, uint32_t n, const berth__edge *edges, size_t n_edges) {
  for (size_t i = 0; i < n_edges; i++) {
    s->first[edges[i].from + 1]++;
    s->waiting[edges[i].to]++;
  }
  for (uint32_t i = 0; i < n; i++) s->first[i + 1] += s->first[i];
  for (size_t i = 0; i < n_edges; i++) s->next[s->first[edges[i].from]++] = edges[i].to;
  for (uint32_t i = n; i > 0; i--) s->first[i] = s->first[i - 1];
  s->first[0] = 0;
}

/* Every waiting item has a waiting predecessor; following those backwards must reach a cycle. Writes one such
 * predecessor per item to `before`. */
static uint32_t find_on_cycle(const sorter *s, uint32_t n, const berth__edge *edges, size_t n_edges, uint32_t *before) {
  uint32_t at = 0;
  for (size_t e = 0; e < n_edges; e++)
    if (s->waiting[edges[e].to] != 0 && s->waiting[edges[e].from] != 0) before[edges[e].to] = edges[e].from;
  while (s->waiting[at] == 0) at++;
  for (uint32_t walked = 0; walked < n; walked++) at = before[at];
  return at;
}

static uint32_t place_all(sorter *s, uint32_t n, uint32_t *order) {
  uint32_t placed = 0;
  for (uint32_t i = 0; i < n; i++)
    if (s->waiting[i] == 0) heap_push(s, i);
  while (s->heap_size != 0) {
    uint32_t item = heap_pop(s);
    order[placed++] = item;
    for (uint32_t k = s->first[item]; k < s->first[item + 1]; k++)
      if (--s->waiting[s->next[k]] == 0) heap_push(s, s->next[k]);
  }
  return placed;
}

berth_status berth__topo_order(berth_context *ctx, uint32_t n, const berth__edge *edges, size_t n_edges,
                               uint32_t *order, uint32_t *on_cycle, berth_error *err) {
  sorter s = {.first = berth__alloc_array_zero(ctx, (size_t)n + 1, sizeof(uint32_t)),
              .next = berth__alloc_array(ctx, n_edges, sizeof(uint32_t)),
              .waiting = berth__alloc_array_zero(ctx, n, sizeof(uint32_t)),
              .heap = berth__alloc_array(ctx, n, sizeof(uint32_t))};
  berth_status status = BERTH_OK;
  if (s.first == NULL || s.next == NULL || s.waiting == NULL || s.heap == NULL) {
    status = berth__fail_nomem(err, "sorting the nodes");
  } else {
    link_edges(&s, n, edges, n_edges);
    if (place_all(&s, n, order) != n) {
      *on_cycle = find_on_cycle(&s, n, edges, n_edges, s.heap);
      status = berth__fail(err, BERTH_INVALID, "there is a cycle");
    }
  }
  berth__free(ctx, s.first);
  berth__free(ctx, s.next);
  berth__free(ctx, s.waiting);
  berth__free(ctx, s.heap);
  return status;
}
