/* Plans of a model that generates text: one for reading `chunk` tokens at a time, one for a single token, sharing
 * weights and cache in one arena, like a generator. Also part of the WebAssembly module. */
#ifndef BERTH_TOOLS_GENERATION_PLAN_H
#define BERTH_TOOLS_GENERATION_PLAN_H

#include <stdbool.h>

#include "berth/berth.h"

typedef struct generation {
  int64_t ctx, chunk;
  int64_t near;                  /* rows kept by layers with a sliding window; 0: none */
  berth_plan *reading, *writing; /* for chunk tokens, and for one */
  uint64_t arena_size;
} generation;

/* Whether a graph is such a model: it has the named dimensions rows and ctx, or near. */
bool generation_is(const berth_graph *graph);
/* The context that the model was made with; 0: unknown. */
uint64_t generation_context(const berth_model_info *info);
/* The default sizes of a generator, for values of 0. */
void generation_sizes(uint64_t made_with, uint64_t ctx, uint64_t chunk, int64_t *out_ctx, int64_t *out_chunk);

/* Both plans; the descriptor has no dims. */
berth_status generation_plan(const berth_graph *model, const berth_plan_desc *desc, int64_t ctx, int64_t chunk,
                             generation *out, berth_error *err);
void generation_close(generation *plans);
const berth_plan *generation_larger(const generation *plans); /* which determines the arena's size */

#endif
