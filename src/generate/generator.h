/* A generator: a session with two bindings (1 row and `chunk` rows; on the CPU often a third one, of few rows), the
 * tokens of a conversation, and a sampler.
 *
 * Layers with a sliding window keep their rows in ring buffers. Going back to a token is possible while the rows that
 * it sees have not been overwritten (berth__generator_back_to); otherwise everything must be evaluated again. A mark
 * has a copy of the rings.
 *
 * tokens[0, n_evaluated) are in the cache. Those after them are evaluated when logits are needed; between successful
 * calls there is at most one, which `next` returned last. A run that fails or is cancelled writes only rows from
 * n_evaluated on, which are written again before anything reads them, so the conversation is unchanged. Its logits are
 * lost (has_logits), and come back when the last token is evaluated again. */
#ifndef BERTH_GENERATE_GENERATOR_H
#define BERTH_GENERATE_GENERATOR_H

#include "generate/sampler.h"
#include "session/session.h"
#include "text/tokenizer.h"

typedef struct berth__mark {
  bool is_set;
  uint32_t n_tokens;
  float *logits;            /* NULL until the first mark */
  uint8_t *rings;           /* their contents then; NULL until the first mark, and if no row is ever overwritten */
  uint32_t written, intact; /* the generator's values at the time */
} berth__mark;

struct berth_generator {
  berth_context *ctx;
  berth__gguf *model;
  berth__tokenizer *tokenizer;
  berth_graph *graph;
  berth_session *session;
  berth_generator_desc desc;
  char architecture[64];
  uint32_t capacity, chunk, vocabulary;
  uint32_t few, few_from; /* rows of the third binding (0: there is none), and the fewest tokens that are worth a run */
  uint32_t window,
      near; /* the number of keys that a layer with a ring sees, and the rows of a ring; 0: there are no rings */
  uint32_t written,
      intact; /* of rings: positions before `written` have been written, and those before `intact` overwritten */
  uint64_t fingerprint; /* of the model, for saved conversations; 0: not computed yet */
  int32_t *tokens;      /* of length capacity */
  uint32_t n_tokens, n_evaluated;
  int32_t *rows;     /* the tokens of a chunk, padded */
  float *logits;     /* of token n_evaluated - 1 */
  int32_t *all_rows; /* 0, 1, ...: if the caller wants the logits of every row (desc.scores) */
  float *scores;     /* the logits of all rows of a chunk */
  bool has_logits;
  bool has_pick; /* the graph also finds the best token */
  berth__sampler sampler;
  berth__mark mark;
  berth__stream stream;
  char *text;                                        /* of the last piece of text */
  uint32_t input_tokens, input_position, input_last; /* indices of the graph's inputs */
};

/* generator.c: evaluates all tokens, and the last one again if its logits were lost to a failed run. Fails if there are
 * no tokens. */
berth_status berth__generator_evaluate(berth_generator *generator, berth_error *err);
/* generator.c: keeps the first n tokens evaluated, or none if a ring no longer has everything that the next one
 * sees. */
void berth__generator_back_to(berth_generator *generator, uint32_t n);
/* generator.c: makes the binding of so many rows current. */
berth_status berth__generator_bind(berth_generator *generator, uint32_t rows, berth_error *err);
/* dims.c: the fewest tokens that take longer one at a time than in a run of BERTH__FEW_ROWS rows, on the CPU; 0: a
 * binding of these rows is not worth having. */
#define BERTH__FEW_ROWS 16u
uint32_t berth__generator_few_from(const berth_graph *graph);
/* dims.c: the keys that layers with a ring see; 0: there are none. */
uint32_t berth__generator_window(const berth_graph *graph);
/* rings.c: whether a state is a ring. */
bool berth__generator_is_ring(const berth_generator *generator, size_t state);
/* rings.c: copy the rings to the mark, and back. */
berth_status berth__generator_keep_rings(berth_generator *generator, berth_error *err);
berth_status berth__generator_restore_rings(berth_generator *generator, berth_error *err);
/* pick.c: if logits would have to be copied from a device, its graph also finds the best token. `pick` returns that
 * token if the sampler needs nothing else and the logits are numbers. */
berth_status berth__generator_add_pick(berth_generator *generator, berth_error *err);
berth_status berth__generator_pick(berth_generator *generator, int32_t *token, bool *is_picked, berth_error *err);
/* generator.c: makes room for more tokens: slides the conversation, or fails. n is at most the capacity. */
berth_status berth__generator_make_room(berth_generator *generator, uint64_t count, berth_error *err);
/* generator.c: cuts the conversation after n_tokens of its tokens. Without the logits of the last one, another token
 * must follow. */
void berth__generator_cut(berth_generator *generator, uint32_t n_tokens, const float *logits);
/* create.c: new arrays and a sampler for a generator that has its session. */
berth_status berth__generator_arrays(berth_generator *generator, berth_error *err);

#endif
