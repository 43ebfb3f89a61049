/* Shared by the files of `berth generate`. */
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

/* Perplexity of a text, in windows of the context: the first half of each window is only context, the second half is
 * scored. */
typedef struct generate_score {
  const int32_t *window; /* window whose logits arrive; NULL: not scored */
  uint32_t n_window;
  double nats; /* over the scored tokens: the sum of -log p */
  uint64_t n_scored, n_windows;
} generate_score;

typedef struct generate {
  berth_context *ctx;
  berth_cancel *cancel;
  berth_generator *generator;
  progress bar; /* while a prompt is read */
  double load_ms, prompt_ms, decode_ms, started_ms;
  uint64_t prompt_tokens;
  char *text; /* of the last answer, without the stop text; NULL: none. Terminated, but may contain zeros */
  size_t text_size, text_capacity;
  size_t text_shown; /* bytes already written to stdout */
  int32_t *tokens;
  size_t n_tokens, tokens_capacity;
  const char *stopped_by; /* "end", "count", "stop", "context", "interrupt" */
  generate_score score;
} generate;

/* Prints a hint, after an error or a note, that the context is full. */
void generate_hint_full(const generate_options *wanted);

/* Brackets the call that reads a prompt. */
void generate_reading(generate *g, const char *what);
void generate_has_read(generate *g);
/* Generates until something stops it, and prints the text as it arrives (not with --json). */
int generate_answer(generate *g, const generate_options *wanted);
/* generate_score.c: how well the model predicts the text of a file. */
/* Tokens per window if --ctx is not given: 512, or what the model was made with. */
int generate_choose_window(berth_context *ctx, const generate_options *wanted, uint32_t *out);
void generate_on_scores(void *user, uint32_t position, const float *logits, uint32_t count);
int generate_perplexity(generate *g, const generate_options *wanted, const char *text, size_t size);
/* Answers each line of stdin. */
int generate_chat(generate *g, const generate_options *wanted, const char *system, size_t size);

#endif
