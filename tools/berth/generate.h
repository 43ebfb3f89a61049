/* What `berth generate` is made of. */
#ifndef BERTH_TOOLS_GENERATE_H
#define BERTH_TOOLS_GENERATE_H

#include "args.h"
#include "cli.h"
#include "progress.h"

typedef struct generate_options {
  const char *path, *prompt, *file, *kv, *device, *compute, *perplexity;
  uint64_t count, ctx, chunk, top_k, seed, threads, memory_limit;
  double temp, top_p, min_p, repeat_penalty;
  arg_list stop;
  bool slide, chat, json;
} generate_options;

/* Perplexity of a text, in windows of the context: the first half of each is there to be known, the second is
 * scored. */
typedef struct generate_score {
  const int32_t *window; /* whose scores come in; NULL: those of nothing that counts */
  uint32_t n_window;
  double nats; /* of those that were scored: the sum of -log p */
  uint64_t n_scored, n_windows;
} generate_score;

typedef struct generate {
  berth_context *ctx;
  berth_cancel *cancel;
  berth_generator *generator;
  progress bar; /* while text is read */
  double load_ms, prompt_ms, decode_ms, started_ms;
  uint64_t prompt_tokens;
  char *text; /* of the last answer, without the text that stopped it; NULL: none. It is terminated, and may have zeros
                 in it */
  size_t text_size, text_capacity;
  size_t text_shown; /* bytes of it that went to stdout */
  int32_t *tokens;
  size_t n_tokens, tokens_capacity;
  const char *stopped_by; /* "end", "count", "stop", "context", "interrupt" */
  generate_score score;
} generate;

/* After an error, or a note, that the context is full. */
void generate_hint_full(const generate_options *wanted);

/* Around the call that reads text. */
void generate_reading(generate *g, const char *what);
void generate_has_read(generate *g);
/* Generates until something stops it, and shows the text as it comes (not with --json). */
int generate_answer(generate *g, const generate_options *wanted);
/* generate_score.c: how well the model foretells the text of a file. */
/* How many tokens a window has where --ctx does not say: 512, or what the model was made with. */
int generate_choose_window(berth_context *ctx, const generate_options *wanted, uint32_t *out);
void generate_on_scores(void *user, uint32_t position, const float *logits, uint32_t count);
int generate_perplexity(generate *g, const generate_options *wanted, const char *text, size_t size);
/* Lines from stdin, each answered. */
int generate_chat(generate *g, const generate_options *wanted, const char *system, size_t size);

#endif
