/* A common interface to berth and llama.cpp, so that both are measured by the same code. */
#ifndef BERTH_BENCH_LLAMA_ENGINE_H
#define BERTH_BENCH_LLAMA_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void (*scores_fn)(void *user, uint32_t position, const float *logits, uint32_t count);

typedef struct engine_options {
  const char *model;
  const char *library; /* llama.cpp's libllama.*.so, with its dependencies in the same folder */
  int threads;
  uint32_t ctx, chunk; /* 0: what the model was made with; tokens per chunk of a prompt */
  bool maps;           /* llama.cpp: keeps weights in the mapped file if possible */
  bool f32_cache;      /* instead of the engine's own default */
  scores_fn scores;    /* as in berth_generator_desc */
  void *user;
} engine_options;

/* Any failure writes a line to stderr and ends the program. */
typedef struct engine {
  const char *name;
  void *(*open)(const engine_options *options);
  void (*close)(void *state);
  /* At most as many tokens as fit; returns how many the text has. */
  size_t (*encode)(void *state, const char *text, size_t size, int32_t *tokens, size_t capacity);
  void (*reset)(void *state);
  void (*read)(void *state, const int32_t *tokens, size_t n); /* evaluates them after the existing tokens */
  const float *(*logits)(void *state, uint32_t *count);       /* after the last token */
} engine;

extern const engine berth_engine, llama_engine;

void engine_stop(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Writes `to`, with the weights of `from` quantised again: type is a number of llama.cpp's enum llama_ftype. */
void llama_quantise(const char *library, const char *from, const char *to, int type, int threads);

#endif
