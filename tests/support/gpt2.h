/* GPT-2 with a loss, for tests and benchmarks of training: products with weights [from, to] and their biases, one
 * causal attention per layer that reads slices of one product, the tanh form of gelu, embeddings shared with the last
 * product. */
#ifndef BERTH_TESTS_GPT2_H
#define BERTH_TESTS_GPT2_H

#include "berth/berth.h"

typedef struct gpt2_shape {
  int batch, length, vocabulary, positions, layers, heads, channels;
} gpt2_shape;
#define GPT2_124M \
  { 4, 64, 50257, 1024, 12, 12, 768 }

/* Inputs "ids" and "labels" i64[batch, length]; output "loss", the mean cross entropy. Params, in this order of layers:
 *   wte [vocabulary, channels], wpe [positions, channels], lnfw, lnfb [channels], and per layer l "<name>.<l>":
 *   ln1w ln1b qkvw qkvb projw projb ln2w ln2b fcw fcb fcprojw fcprojb */
berth_status build_gpt2(berth_context *ctx, const gpt2_shape *shape, berth_graph **out, berth_error *err);

#endif
