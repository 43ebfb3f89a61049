/* The encoder of MiniLM-L6, for tests and benchmarks: matmul, bias add, gelu, residual add and layer norm as separate
 * nodes, one attention op per layer that reads slices of one packed QKV. */
#ifndef BERTH_TESTS_MINILM_H
#define BERTH_TESTS_MINILM_H

#include "berth/berth.h"

typedef struct minilm_shape {
  uint32_t layers;
  int64_t hidden, heads, ffn, sequence;
} minilm_shape;
#define MINILM_L6 \
  { 6, 384, 12, 1536, 128 }

/* Input "hidden_states" f32[sequence, hidden], output "encoded" of the same shape. Names start with "layer<i>.". */
berth_status build_minilm(berth_context *ctx, const minilm_shape *shape, berth_graph **out, berth_error *err);

#endif
