/* llama.cpp from its shared library, whose functions are looked up by name. Its structs change between versions: the
 * parts used here have the layout of b10361, and its defaults are checked before use. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "engine.h"
#include "llama_settings.h"

typedef struct llama_context_settings {
  uint32_t n_ctx, n_batch, n_ubatch, counts[4];
  int32_t n_threads, n_threads_batch;
  int32_t ctx_type, rope_scaling, pooling, attention, flash_attention;
  float numbers[6];
  uint32_t yarn_orig_ctx;
  float defrag;
  void *eval, *eval_user;
  int32_t type_k, type_v;
  char unknown[LLAMA_REST];
} llama_context_settings;

typedef struct llama_quantise_settings {
  int32_t n_threads, type, output_type, embedding_type;
  bool allow_requantise, quantise_output;
  char unknown[LLAMA_REST];
} llama_quantise_settings;

typedef struct llama_tokens {
  int32_t count;
  int32_t *token;
  float *embedding;
  int32_t *position, *n_sequences, **sequences;
  int8_t *wants_logits;
} llama_tokens;

typedef struct llama_library {
  llama_model_settings (*model_defaults)(void);
  llama_context_settings (*context_defaults)(void);
  llama_quantise_settings (*quantise_defaults)(void);
  void *(*load)(const char *, llama_model_settings);
  void (*free_model)(void *);
  void *(*context)(void *, llama_context_settings);
  void (*free_context)(void *);
  const void *(*vocabulary)(const void *);
  int32_t (*n_tokens)(const void *);
  int32_t (*tokenise)(const void *, const char *, int32_t, int32_t *, int32_t, bool, bool);
  llama_tokens (*tokens)(int32_t, int32_t, int32_t);
  void (*free_tokens)(llama_tokens);
  int32_t (*decode)(void *, llama_tokens);
  float *(*logits)(void *, int32_t);
  void *(*memory)(const void *);
  void (*clear)(void *, bool);
  uint32_t (*quantise)(const char *, const char *, const llama_quantise_settings *);
} llama_library;

typedef struct llama_state {
  llama_library lib;
  engine_options options;
  void *model, *context;
  const void *vocabulary;
  llama_tokens batch;
  int32_t position, last;
} llama_state;

static void find(void *handle, const char *name, void *to) {
  void *symbol = dlsym(handle, name);
  if (symbol == NULL) engine_stop("there is no %s in llama.cpp's library", name);
  memcpy(to, &symbol, sizeof symbol);
}

static void say_nothing(int level, const char *text, void *user) {
  (void)user;
  if (level == 4) fputs(text, stderr); /* errors */
}

static void check_defaults(const llama_library *l) {
  const llama_model_settings model = l->model_defaults();
  const llama_context_settings context = l->context_defaults();
  const llama_quantise_settings quantise = l->quantise_defaults();
  const bool fits = llama_model_settings_fit(&model) && context.type_k == 1 && context.type_v == 1 &&
                    context.flash_attention == -1 && context.n_threads > 0 &&
                    context.n_threads == context.n_threads_batch && quantise.quantise_output &&
                    !quantise.allow_requantise;
  if (!fits) engine_stop("this is not the llama.cpp that engine_llama.c was written for: its settings differ");
}

static void open_library(const char *path, llama_library *l) {
  void (*log)(void (*)(int, const char *, void *), void *), (*load_all)(const char *), (*start)(void);
  char folder[4096];
  void *handle = path != NULL ? dlopen(path, RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (handle == NULL) engine_stop("llama.cpp: %s", path != NULL ? dlerror() : "its library is not given (--lib)");
  snprintf(folder, sizeof folder, "%s", path);
  char *slash = strrchr(folder, '/');
  if (slash != NULL) *slash = '\0';
  find(handle, "llama_log_set", &log);
  find(handle, "ggml_backend_load_all_from_path", &load_all);
  find(handle, "llama_backend_init", &start);
  find(handle, "llama_model_default_params", &l->model_defaults);
  find(handle, "llama_context_default_params", &l->context_defaults);
  find(handle, "llama_model_quantize_default_params", &l->quantise_defaults);
  find(handle, "llama_model_load_from_file", &l->load);
  find(handle, "llama_model_free", &l->free_model);
  find(handle, "llama_init_from_model", &l->context);
  find(handle, "llama_free", &l->free_context);
  find(handle, "llama_model_get_vocab", &l->vocabulary);
  find(handle, "llama_vocab_n_tokens", &l->n_tokens);
  find(handle, "llama_tokenize", &l->tokenise);
  find(handle, "llama_batch_init", &l->tokens);
  find(handle, "llama_batch_free", &l->free_tokens);
  find(handle, "llama_decode", &l->decode);
  find(handle, "llama_get_logits_ith", &l->logits);
  find(handle, "llama_get_memory", &l->memory);
  find(handle, "llama_memory_clear", &l->clear);
  find(handle, "llama_model_quantize", &l->quantise);
  log(say_nothing, NULL);
  load_all(folder);
  start();
  check_defaults(l);
}

static void *llama_open(const engine_options *o) {
  llama_state *s = calloc(1, sizeof *s);
  if (s == NULL) engine_stop("out of memory");
  open_library(o->library, &s->lib);
  s->options = *o;
  llama_model_settings model = s->lib.model_defaults();
  model.load_mode = o->maps;
  s->model = s->lib.load(o->model, model);
  if (s->model == NULL) engine_stop("llama.cpp does not load %s", o->model);
  llama_context_settings context = s->lib.context_defaults();
  context.n_ctx = o->ctx;
  context.n_batch = context.n_ubatch = o->chunk;
  context.n_threads = context.n_threads_batch = o->threads;
  if (o->f32_cache) context.type_k = context.type_v = context.flash_attention = 0; /* which would round to f16 */
  s->context = s->lib.context(s->model, context);
  if (s->context == NULL) engine_stop("llama.cpp makes no context for %s", o->model);
  s->vocabulary = s->lib.vocabulary(s->model);
  s->batch = s->lib.tokens((int32_t)o->chunk, 0, 1);
  return s;
}

static void llama_close(void *state) {
  llama_state *s = state;
  s->lib.free_tokens(s->batch);
  s->lib.free_context(s->context);
  s->lib.free_model(s->model);
  free(s);
}

static size_t llama_encode(void *state, const char *text, size_t size, int32_t *tokens, size_t capacity) {
  const llama_state *s = state;
  const int32_t n = s->lib.tokenise(s->vocabulary, text, (int32_t)size, tokens, (int32_t)capacity, true, false);
  return (size_t)(n < 0 ? -n : n);
}

static void llama_reset(void *state) {
  llama_state *s = state;
  s->lib.clear(s->lib.memory(s->context), true);
  s->position = 0;
}

static void llama_run(llama_state *s, const int32_t *tokens, int32_t n) {
  for (int32_t i = 0; i < n; i++) {
    s->batch.token[i] = tokens[i];
    s->batch.position[i] = s->position + i;
    s->batch.n_sequences[i] = 1;
    s->batch.sequences[i][0] = 0;
    s->batch.wants_logits[i] = s->options.scores != NULL || i == n - 1;
  }
  s->batch.count = n;
  if (s->lib.decode(s->context, s->batch) != 0) engine_stop("llama.cpp does not read %d tokens", n);
  for (int32_t i = 0; s->options.scores != NULL && i < n; i++)
    s->options.scores(s->options.user, (uint32_t)(s->position + i), s->lib.logits(s->context, i),
                      (uint32_t)s->lib.n_tokens(s->vocabulary));
  s->position += n;
  s->last = n - 1;
}

static void llama_read(void *state, const int32_t *tokens, size_t n) {
  llama_state *s = state;
  for (size_t at = 0, step; at < n; at += step) {
    step = n - at < s->options.chunk ? n - at : s->options.chunk;
    llama_run(s, tokens + at, (int32_t)step);
  }
}

static const float *llama_logits(void *state, uint32_t *count) {
  const llama_state *s = state;
  *count = (uint32_t)s->lib.n_tokens(s->vocabulary);
  return s->lib.logits(s->context, s->last);
}

void llama_quantise(const char *library, const char *from, const char *to, int type, int threads) {
  llama_library l;
  open_library(library, &l);
  llama_quantise_settings settings = l.quantise_defaults();
  settings.n_threads = threads;
  settings.type = type;
  settings.allow_requantise = true;
  if (l.quantise(from, to, &settings) != 0) engine_stop("llama.cpp does not quantise %s", from);
}

const engine llama_engine = {"llama", llama_open, llama_close, llama_encode, llama_reset, llama_read, llama_logits};
