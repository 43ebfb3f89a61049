/* Plans of a model that generates text: one for reading `chunk` tokens at a time, one for a single token, over one set
 * of weights and one cache in one arena, as a generator has them. The WebAssembly module has this file too. */
#ifndef BERTH_TOOLS_GENERATION_PLAN_H
#define BERTH_TOOLS_GENERATION_PLAN_H

#include <stdbool.h>

#include "berth/berth.h"

typedef struct generation {
  int64_t ctx, chunk;
  int64_t near;                  /* rows that layers with a sliding window keep; 0: there are none */
  berth_plan *reading, *writing; /* of chunk tokens, and of one */
  uint64_t arena_size;
} generation;

/* Whether a graph is such a model: it has the named dimensions rows and ctx, or near. */
bool generation_is(const berth_graph *graph);
/* What the model was made with; 0: its file does not say. */
uint64_t generation_context(const berth_model_info *info);
/* The sizes that a generator takes where nobody says: 0 stands for that. */
void generation_sizes(uint64_t made_with, uint64_t ctx, uint64_t chunk, int64_t *out_ctx, int64_t *out_chunk);

/* Both plans; the descriptor has no dims. */
berth_status generation_plan(const berth_graph *model, const berth_plan_desc *desc, int64_t ctx, int64_t chunk,
                             generation *out, berth_error *err);
void generation_close(generation *plans);
const berth_plan *generation_larger(const generation *plans); /* which the arena is as large as */

#endif
