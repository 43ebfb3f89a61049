/* Values of a graph that is being rewritten, in two layouts: every value may have a twin, the same elements with the
 * axis of channels moved to the end. Its plain layout is made from the twin, by a transpose, only where somebody needs
 * it; the twin of a value that has none is made likewise. What a loop makes stays inside it. */
#ifndef BERTH_REWRITE_TWINS_H
#define BERTH_REWRITE_TWINS_H

#include "graph/rewrite.h"

typedef struct berth__twins {
  berth_value *twin; /* one per value that was there before; BERTH_VALUE_NONE: it has none */
  bool *has_plain;   /* one per value that was there before: its plain layout is there */
} berth__twins;

berth_status berth__twins_create(berth__twins *t, const berth_graph *graph, berth_error *err);
void berth__twins_free(berth__twins *t, berth_context *ctx);

/* Where an axis of a plain value stands in its twin; axis may be negative. */
int64_t berth__twins_axis(int64_t axis, uint32_t rank);
/* The twin of a value. */
berth_status berth__twins_last(berth__twins *t, berth__rewrite *r, berth_value value, berth_value *out,
                               berth_error *err);
/* Makes sure that a value is there in its plain layout; BERTH_VALUE_NONE is. */
berth_status berth__twins_plain(berth__twins *t, berth__rewrite *r, berth_value value, berth_error *err);
/* Keeps an old node, which reads and makes plain values. */
berth_status berth__twins_keep(berth__twins *t, berth__rewrite *r, size_t n, berth_error *err);

#endif
