/* `berth plan MODEL --fit BYTES`: the largest context of a model whose arena has at most this size, with its cache type
 * and prompt chunk. Every candidate is planned, so the answer is exact. */
#ifndef BERTH_TOOLS_FIT_H
#define BERTH_TOOLS_FIT_H

#include "generation.h"

typedef struct fit_request {
  const model_options *model;
  berth_context *ctx;
  const berth_plan_desc *desc; /* without dims */
  uint64_t bytes;
  uint64_t made_with;  /* tokens; 0: unknown */
  uint64_t want_ctx;   /* 0: as many as the model was made with */
  uint64_t want_chunk; /* 0: the best */
  const char *want_kv; /* NULL: the best */
} fit_request;

typedef struct fit_answer {
  bool fits;
  int64_t ctx, chunk; /* if it does not fit: of the smallest possibility */
  const char *kv;
  uint64_t arena_size; /* its size */
} fit_answer;

int fit_search(const fit_request *wanted, fit_answer *out); /* returns exit codes; it is not an error if nothing fits */
void fit_print(const fit_request *wanted, const fit_answer *answer);
void fit_write_json(const fit_request *wanted, const fit_answer *answer, json *out);

#endif
