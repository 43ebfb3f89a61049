#include <stdlib.h>

#include "berth/berth.h"
#include "engine.h"

typedef struct berth_state {
  berth_context *ctx;
  berth_generator *generator;
} berth_state;

static void *berth_open(const engine_options *o) {
  berth_state *s = calloc(1, sizeof *s);
  berth_error err;
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  desc.n_threads = (uint32_t)o->threads;
  desc.ctx = o->ctx;
  desc.chunk = o->chunk;
  desc.kv = o->f32_cache ? BERTH_F32 : BERTH_TYPE_NONE;
  desc.scores = o->scores;
  desc.user = o->user;
  if (s == NULL || berth_context_create(NULL, &s->ctx, &err) != BERTH_OK ||
      berth_generator_create(s->ctx, o->model, &desc, &s->generator, &err) != BERTH_OK)
    engine_stop("%s: %s", o->model, s != NULL ? err.message : "out of memory");
  return s;
}

static void berth_close(void *state) {
  berth_state *s = state;
  berth_generator_destroy(s->generator);
  berth_context_destroy(s->ctx);
  free(s);
}

static size_t berth_encode(void *state, const char *text, size_t size, int32_t *tokens, size_t capacity) {
  const berth_state *s = state;
  berth_error err;
  size_t count;
  if (berth_generator_encode(s->generator, text, size, 0, tokens, capacity, &count, &err) != BERTH_OK)
    engine_stop("the text: %s", err.message);
  return count;
}

static void berth_reset(void *state) { berth_generator_reset(((berth_state *)state)->generator); }

static void berth_read(void *state, const int32_t *tokens, size_t n) {
  const berth_state *s = state;
  berth_error err;
  if (berth_generator_feed_tokens(s->generator, tokens, n, &err) != BERTH_OK) engine_stop("reading: %s", err.message);
}

static const float *berth_logits(void *state, uint32_t *count) {
  const berth_state *s = state;
  berth_error err;
  const float *logits = NULL;
  if (berth_generator_logits(s->generator, &logits, count, &err) != BERTH_OK) engine_stop("logits: %s", err.message);
  return logits;
}

const engine berth_engine = {"berth", berth_open, berth_close, berth_encode, berth_reset, berth_read, berth_logits};
