/* Choosing a token by its logits. With the same logits and seed, the choice is the same on every machine: exponentials
 * are computed here, in f64 and without contraction, and every sum has a fixed order. */
#ifndef BERTH_GENERATE_SAMPLER_H
#define BERTH_GENERATE_SAMPLER_H

#include "base/context.h"

typedef struct berth__candidate {
  float logit;
  int32_t token;
} berth__candidate;

typedef struct berth__sampler {
  berth_sampling_desc desc;
  uint64_t state; /* of the random number generator */
  uint32_t count; /* size of the vocabulary */
  berth__candidate *candidates;
  size_t capacity; /* of the candidates: as many as are drawn from, which may be far fewer than the vocabulary has */
  uint32_t *penalised; /* one bit per token; all 0 between calls */
} berth__sampler;

berth_status berth__sampler_create(berth_context *ctx, uint32_t count, berth__sampler *out, berth_error *err);
void berth__sampler_free(berth_context *ctx, berth__sampler *sampler);
/* Checks the parameters and seeds the generator. On failure nothing has changed. */
berth_status berth__sampler_set(berth_context *ctx, berth__sampler *sampler, const berth_sampling_desc *desc,
                                berth_error *err);
/* tokens: the conversation so far. */
int32_t berth__sampler_choose(berth__sampler *sampler, const float *logits, const int32_t *tokens, size_t n_tokens);

#endif
