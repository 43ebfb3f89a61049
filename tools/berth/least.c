#include "least.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
  most_tried = 1 << 15,
  most_tries = 400
};

typedef struct least_attempt {
  const berth_graph *graph;
  berth_dim *dims;
  size_t n;
  const bool *is_free;
  bool is_strict; /* both sides of every choice must be possible, because a run may take either */
  int tries;
} least_attempt;

/* A choice that continues without one of its sides, which cannot be made. */
static bool least_is_halved(const berth_node_info *node) {
  if (strcmp(node->op, "choose") != 0) return false;
  for (uint32_t i = 0; i < node->n_in; i++)
    if (node->in[i] == BERTH_VALUE_NONE) return true;
  return node->n_in < 3;
}

static bool least_is_whole(const berth_graph *bound) {
  for (uint32_t n = 0; n < berth_graph_n_nodes(bound); n++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(bound, n, &node, NULL) == BERTH_OK && least_is_halved(&node)) return false;
  }
  return true;
}

static bool least_bind(least_attempt *a) {
  berth_graph *bound = NULL;
  if (a->tries++ >= most_tries) return false;
  bool is_bound =
      berth_graph_bind(a->graph, a->dims, a->n, &bound, NULL) == BERTH_OK && (!a->is_strict || least_is_whole(bound));
  berth_graph_destroy(bound);
  return is_bound;
}

static void least_set(least_attempt *a, size_t only, int64_t extent) {
  for (size_t i = 0; i < a->n; i++)
    if (a->is_free[i] && (only == SIZE_MAX || only == i)) a->dims[i].extent = extent;
}

/* Doubles one dimension, or all of them (SIZE_MAX), until the graph can be bound; then reduces it as far as
 * possible. */
static bool least_grow(least_attempt *a, size_t which, int64_t below) {
  int64_t good = 2, bad = 1;
  for (;; bad = good, good *= 2) {
    if (good > most_tried || bad >= below) return false;
    least_set(a, which, good);
    if (least_bind(a)) break;
  }
  while (good - bad > 1) {
    int64_t middle = bad + (good - bad) / 2;
    least_set(a, which, middle);
    if (least_bind(a))
      good = middle;
    else
      bad = middle;
  }
  least_set(a, which, good);
  return good < below;
}

/* The smallest value for a single dimension; if none suffices, for all together, and then each separately reduced. */
static bool least_search(least_attempt *a) {
  size_t best = SIZE_MAX;
  int64_t least = INT64_MAX;
  for (size_t i = 0; i < a->n; i++) {
    if (!a->is_free[i]) continue;
    if (least_grow(a, i, least)) {
      best = i;
      least = a->dims[i].extent;
    }
    a->dims[i].extent = 1;
  }
  if (best != SIZE_MAX) {
    a->dims[best].extent = least;
    return true;
  }
  if (!least_grow(a, SIZE_MAX, INT64_MAX)) return false;
  for (size_t i = 0; i < a->n; i++) {
    int64_t before = a->dims[i].extent;
    if (!a->is_free[i]) continue;
    a->dims[i].extent = 1;
    if (!least_bind(a) && !least_grow(a, i, before)) a->dims[i].extent = before;
  }
  return true;
}

/* Some models accept only one extent, which doubling misses: tries common sizes of images and spectra, for one
 * dimension, then for all. */
static bool least_usual(least_attempt *a) {
  static const int64_t usual[] = {3,   24,  28,  40,  48,  80,  96,  112, 160,  192,
                                  224, 299, 320, 384, 416, 480, 640, 768, 16000};
  for (size_t k = 0; k < sizeof usual / sizeof usual[0]; k++) {
    for (size_t i = 0; i <= a->n; i++) {
      if (i < a->n && !a->is_free[i]) continue;
      least_set(a, SIZE_MAX, 1);
      least_set(a, i < a->n ? i : SIZE_MAX, usual[k]);
      if (least_bind(a)) return true;
    }
  }
  return false;
}

/* Shapes that depend on the elements of an input are unknown whatever the dimensions are. */
static bool least_depend_on_inputs(const berth_graph *graph) {
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph); i++)
    if (berth_graph_shapes_depend(graph, berth_graph_input_at(graph, i)) == BERTH_SHAPES_NEED) return true;
  return false;
}

static bool least_has_choices(const berth_graph *graph) {
  for (uint32_t n = 0; n < berth_graph_n_nodes(graph); n++) {
    berth_node_info node = BERTH_NODE_INFO_INIT;
    if (berth_graph_node(graph, n, &node, NULL) == BERTH_OK && strcmp(node.op, "choose") == 0) return true;
  }
  return false;
}

static bool least_try(least_attempt *a) {
  a->tries = 0;
  if (least_bind(a)) return true;
  least_set(a, SIZE_MAX, 1);
  if (least_bind(a) || least_search(a) || least_usual(a)) return true;
  least_set(a, SIZE_MAX, 1);
  return false;
}

bool least_dims(const berth_graph *graph, berth_dim *dims, size_t n, const bool *is_free) {
  least_attempt a = {.graph = graph, .dims = dims, .n = n, .is_free = is_free};
  if (least_depend_on_inputs(graph)) return false;
  berth_dim *first = least_has_choices(graph) ? malloc((n + 1) * sizeof(*first)) : NULL;
  if (first) {
    memcpy(first, dims, n * sizeof(*first));
    a.is_strict = true;
    if (least_try(&a)) {
      free(first);
      return true;
    }
    memcpy(dims, first, n * sizeof(*first));
    a.is_strict = false;
    free(first);
  }
  return least_try(&a);
}
