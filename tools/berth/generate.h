/* What `berth generate` is made of. */
#ifndef BERTH_TOOLS_GENERATE_H
#define BERTH_TOOLS_GENERATE_H

#include "args.h"
#include "cli.h"
#include "progress.h"

typedef struct generate_options {
  const char *path, *prompt, *file, *kv, *device;
  uint64_t count, ctx, chunk, top_k, seed, threads, memory_limit;
  double temp, top_p, min_p, repeat_penalty;
  arg_list stop;
  bool slide, chat, json;
} generate_options;

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
} generate;

/* Around the call that reads text. */
void generate_reading(generate *g, const char *what);
void generate_has_read(generate *g);
/* Generates until something stops it, and shows the text as it comes (not with --json). */
int generate_answer(generate *g, const generate_options *wanted);
/* Lines from stdin, each answered. */
int generate_chat(generate *g, const generate_options *wanted, const char *system, size_t size);

#endif
