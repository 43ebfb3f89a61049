/* Rewriting the nodes of a bound graph, from the first to the last: each old node is kept, or left out and replaced by
 * others. Values keep their numbers; new ones follow them.
 *
 *   berth__rewrite_start(&r, graph, err);
 *   for (size_t n = 0; n < r.n_old; n++) ... berth__rewrite_keep(&r, n, err), or berth__rewrite_add and _make ...
 * berth__rewrite_finish(&r);         also after a failure
 *
 * A node is added after those that make its operands. Values that no node makes any more are dropped. */
#ifndef BERTH_GRAPH_REWRITE_H
#define BERTH_GRAPH_REWRITE_H

#include "graph/graph.h"

typedef struct berth__rewrite {
  berth_graph *graph;
  berth__node *old; /* the previous nodes; entries that were kept have moved */
  size_t n_old;
  size_t n_old_values;
} berth__rewrite;

berth_status berth__rewrite_start(berth__rewrite *r, berth_graph *graph, berth_error *err);
void berth__rewrite_finish(berth__rewrite *r);

berth_status berth__rewrite_keep(berth__rewrite *r, size_t old, berth_error *err);
/* An unused name: that of `base` with `suffix` appended, and a number if necessary. */
void berth__rewrite_name(berth_graph *graph, berth_value base, const char *suffix, char *name, size_t size);
/* A new node with one result, which is a new value. Its name is `base` with `suffix`, and a number if that is taken. */
berth_status berth__rewrite_add(berth__rewrite *r, berth__op_code op, const berth_value *in, size_t n_in,
                                const berth_attr *attrs, size_t n_attrs, berth_value base, const char *suffix,
                                berth_value *out, berth_error *err);
/* A new node whose result is an existing value: type and shape must be the same. */
berth_status berth__rewrite_make(berth__rewrite *r, berth__op_code op, const berth_value *in, size_t n_in,
                                 const berth_attr *attrs, size_t n_attrs, berth_value out, berth_error *err);

/* Whether a node reads or makes a value with extents that only a run knows, since rewriting depends on shapes. */
bool berth__node_is_bounded(const berth_graph *graph, const berth__node *node);

/* The readers of every value, determined before a rewrite starts. A node that reads a value from outside its loop
 * counts twice, and so does a reader of a value with extents that only a run knows, because a single reader may absorb
 * a value. */
typedef struct berth__uses {
  uint32_t *count;  /* one per value: reads by nodes, outputs, and updates of states */
  uint32_t *reader; /* one per value: its last reader; UINT32_MAX: none */
  bool *is_output;  /* one per value: an output, or the next value of a state */
} berth__uses;
berth_status berth__uses_create(berth__uses *uses, const berth_graph *graph, berth_error *err);
void berth__uses_free(berth__uses *uses, berth_context *ctx);

#endif
