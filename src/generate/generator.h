/* A generator: a session with two bindings (rows 1 and rows `chunk`), the tokens of a conversation, and a sampler.
 *
 * Layers with a sliding window keep their rows in rings: going back to a token is possible while what it sees has not
 * been written over (berth__generator_back_to), and otherwise means to evaluate everything again; a mark has a copy of
 * the rings.
 *
 * tokens[0, n_evaluated) are in the cache; those after them, at most one between calls that succeed (the one that
 * `next` gave last), are evaluated when logits are needed. A run that fails or is cancelled writes rows from
 * n_evaluated on alone, which nobody sees before they are written again: the conversation stays what it was. The logits
 * are lost then (has_logits), and come back with another run of the last token. */
#ifndef BERTH_GENERATE_GENERATOR_H
#define BERTH_GENERATE_GENERATOR_H

#include "generate/sampler.h"
#include "session/session.h"
#include "text/tokenizer.h"

typedef struct berth__mark {
  bool is_set;
  uint32_t n_tokens;
  float *logits;            /* NULL until the first mark */
  uint8_t *rings;           /* what they held; NULL until the first mark, and where no row is written over */
  uint32_t written, intact; /* of the generator then */
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
  uint32_t window, near;    /* that a ring's layer sees, and rows of a ring; 0: there are none */
  uint32_t written, intact; /* of rings: positions before the one were written, those before the other are gone */
  uint64_t fingerprint;     /* of the model, for saved conversations; 0: nobody has asked for it yet */
  int32_t *tokens;          /* room for capacity */
  uint32_t n_tokens, n_evaluated;
  int32_t *rows;     /* the tokens of a chunk, filled up */
  float *logits;     /* of token n_evaluated - 1 */
  int32_t *all_rows; /* where somebody wants logits of every row (desc.scores): 0, 1, ... */
  float *scores;     /* and these logits, of a chunk */
  bool has_logits;
  bool has_pick; /* the graph finds the best token, too */
  berth__sampler sampler;
  berth__mark mark;
  berth__stream stream;
  char *text;                                        /* of the last piece */
  uint32_t input_tokens, input_position, input_last; /* numbers of the graph's inputs */
};

/* generator.c: evaluates all tokens, and the last one again where its logits were lost to a run that failed. Fails
 * where there are no tokens. */
berth_status berth__generator_evaluate(berth_generator *generator, berth_error *err);
/* generator.c: the first n tokens stay evaluated, or none where a ring has not all that the next one sees. */
void berth__generator_back_to(berth_generator *generator, uint32_t n);
/* dims.c: what layers with a ring see; 0: there are none. */
uint32_t berth__generator_window(const berth_graph *graph);
/* rings.c: whether a state is a ring. */
bool berth__generator_is_ring(const berth_generator *generator, size_t state);
/* rings.c: into the mark, and back. */
berth_status berth__generator_keep_rings(berth_generator *generator, berth_error *err);
berth_status berth__generator_restore_rings(berth_generator *generator, berth_error *err);
/* pick.c: where logits would have to come from a device, its graph finds the best of them; and that token, where the
 * sampler wants nothing else, and the logits are numbers. */
berth_status berth__generator_add_pick(berth_generator *generator, berth_error *err);
berth_status berth__generator_pick(berth_generator *generator, int32_t *token, bool *is_picked, berth_error *err);
/* generator.c: tokens that the conversation has no room for: slides, or fails. At most the capacity. */
berth_status berth__generator_make_room(berth_generator *generator, uint64_t count, berth_error *err);
/* generator.c: the conversation ends after n_tokens of the tokens that it has. Without the logits of the last of them,
 * another must follow. */
void berth__generator_cut(berth_generator *generator, uint32_t n_tokens, const float *logits);
/* create.c: fresh arrays and a sampler for a generator whose session is there. */
berth_status berth__generator_arrays(berth_generator *generator, berth_error *err);

#endif
