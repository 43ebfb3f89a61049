/* `berth plan MODEL --fit BYTES`: the largest context of a model, with the type of its cache and the chunk that text is
 * read in, whose arena has at most so many bytes. Every candidate is planned: the answer is exact. */
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
  uint64_t want_chunk; /* 0: what is best */
  const char *want_kv; /* NULL: what is best */
} fit_request;

typedef struct fit_answer {
  bool fits;
  int64_t ctx, chunk; /* where it does not: of the least that there is */
  const char *kv;
  uint64_t arena_size; /* of that */
} fit_answer;

int fit_search(const fit_request *wanted, fit_answer *out); /* exit codes; not fitting is no failure here */
void fit_print(const fit_request *wanted, const fit_answer *answer);
void fit_write_json(const fit_request *wanted, const fit_answer *answer, json *out);

#endif
