/* Values of a graph being rewritten, in two layouts: every value may have a twin, with the same elements and the
 * channel axis moved to the end. Its plain layout is made from the twin, by a transpose, only if it is needed, and the
 * twin of a value without one is made likewise. What is made in a loop stays inside it. */
#ifndef BERTH_REWRITE_TWINS_H
#define BERTH_REWRITE_TWINS_H

#include "graph/rewrite.h"

typedef struct berth__twins {
  berth_value *twin; /* one per value that existed before; BERTH_VALUE_NONE: no twin */
  bool *has_plain;   /* one per value that existed before: its plain layout exists */
} berth__twins;

berth_status berth__twins_create(berth__twins *t, const berth_graph *graph, berth_error *err);
void berth__twins_free(berth__twins *t, berth_context *ctx);

/* The position in the twin of an axis of a plain value; axis may be negative. */
int64_t berth__twins_axis(int64_t axis, uint32_t rank);
/* The twin of a value. */
berth_status berth__twins_last(berth__twins *t, berth__rewrite *r, berth_value value, berth_value *out,
                               berth_error *err);
/* Ensures that a value exists in its plain layout; BERTH_VALUE_NONE is fine. */
berth_status berth__twins_plain(berth__twins *t, berth__rewrite *r, berth_value value, berth_error *err);
/* Keeps an old node, which reads and makes plain values. */
berth_status berth__twins_keep(berth__twins *t, berth__rewrite *r, size_t n, berth_error *err);

#endif
