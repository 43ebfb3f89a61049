/* States that are ring buffers, of layers with a sliding window. */
#include "generate/generator.h"

bool berth__generator_is_ring(const berth_generator *g, size_t state) {
  const int64_t rows = g->graph->values[g->graph->states[state]].shape.dim[0];
  return berth__dim_is_named(rows) && strcmp(berth_graph_dim_name(g->graph, berth__dim_index(rows)), "near") == 0;
}

/* If the context is no longer than a ring, no row is ever overwritten. */
static bool rings_lose(const berth_generator *g) { return g->near != 0 && g->near < g->capacity; }

static uint64_t rings_bytes(const berth_generator *g, size_t state) {
  const berth__value *value = &g->graph->values[g->graph->states[state]];
  if (!berth__generator_is_ring(g, state)) return 0;
  return g->near * berth_storage_bytes(berth_type_storage(value->type), (uint64_t)value->shape.dim[1]);
}

berth_status berth__generator_keep_rings(berth_generator *g, berth_error *err) {
  uint64_t total = 0;
  g->mark.written = g->written;
  g->mark.intact = g->intact;
  if (!rings_lose(g)) return BERTH_OK;
  for (size_t i = 0; i < g->graph->n_states; i++)
    total += rings_bytes(g, i); /* the states are in memory, so the sum cannot overflow */
  if (g->mark.rings == NULL) g->mark.rings = berth__alloc_u64(g->ctx, total);
  if (g->mark.rings == NULL) return berth__fail_nomem(err, "a mark");
  uint8_t *to = g->mark.rings;
  for (size_t i = 0; i < g->graph->n_states; i++) {
    const uint64_t bytes = rings_bytes(g, i);
    if (bytes != 0) BERTH__TRY(berth_arena_read(g->session->arena, g->graph->states[i], 0, to, bytes, err));
    to += bytes;
  }
  return BERTH_OK;
}

berth_status berth__generator_restore_rings(berth_generator *g, berth_error *err) {
  const uint8_t *from = g->mark.rings;
  if (g->mark.intact == g->intact) return BERTH_OK; /* nothing has been overwritten since the mark */
  for (size_t i = 0; i < g->graph->n_states && from != NULL; i++) {
    const uint64_t bytes = rings_bytes(g, i);
    if (bytes != 0) BERTH__TRY(berth_arena_write(g->session->arena, g->graph->states[i], 0, from, bytes, err));
    from += bytes;
  }
  g->written = g->mark.written;
  g->intact = g->mark.intact;
  return BERTH_OK;
}
