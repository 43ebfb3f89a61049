/* Generators: a conversation with a GGUF model. */
#include <stdlib.h>

#include "exports.h"

static void tell_read(void *user, uint32_t done, uint32_t total) {
  (void)user;
  berth_web_host_progress("reading the text", done, total);
}

static void give_back(void *user, const void *data, size_t size) {
  (void)data;
  (void)size;
  free(user);
}

berth_generator *berth_web_generator(void *data, size_t size, const char *device, const char *kv, uint32_t ctx,
                                     uint32_t chunk, uint32_t flags) {
  berth_generator_desc desc = BERTH_GENERATOR_DESC_INIT;
  berth_generator *generator = NULL;
  desc.flags = flags;
  desc.device = device;
  desc.ctx = ctx;
  desc.chunk = chunk;
  desc.kv = berth_type_from_name(kv);
  desc.progress = tell_read;
  berth_generator_from_memory(web_context, data, size, give_back, data, &desc, &generator, &web_error);
  return generator;
}

berth_generator *berth_web_generator_fork(berth_generator *generator) {
  berth_generator *other = NULL;
  berth_generator_fork(generator, &other, &web_error);
  return other;
}

void berth_web_generator_close(berth_generator *generator) { berth_generator_destroy(generator); }

int berth_web_generator_sample(berth_generator *generator, float temperature, uint32_t top_k, float top_p, float min_p,
                               float repeat_penalty, uint32_t repeat_last, uint64_t seed) {
  berth_sampling_desc desc = BERTH_SAMPLING_DESC_INIT;
  desc.temperature = temperature;
  desc.top_k = top_k;
  desc.top_p = top_p;
  desc.min_p = min_p;
  desc.repeat_penalty = repeat_penalty;
  desc.repeat_last = repeat_last;
  desc.seed = seed;
  return berth_generator_sample(generator, &desc, &web_error) == BERTH_OK;
}

int berth_web_generator_feed(berth_generator *generator, const char *text, size_t size, uint32_t flags) {
  return berth_generator_feed(generator, text, size, flags, &web_error) == BERTH_OK;
}

int berth_web_generator_feed_tokens(berth_generator *generator, const int32_t *tokens, size_t n_tokens) {
  return berth_generator_feed_tokens(generator, tokens, n_tokens, &web_error) == BERTH_OK;
}

int berth_web_generator_chat(berth_generator *generator, const berth_message *messages, size_t n_messages) {
  return berth_generator_chat(generator, messages, n_messages, &web_error) == BERTH_OK;
}

const web_piece *berth_web_generator_next(berth_generator *generator) {
  static web_piece told;
  berth_piece piece = BERTH_PIECE_INIT;
  if (berth_generator_next(generator, &piece, &web_error) != BERTH_OK) return NULL;
  told = (web_piece){piece.token, piece.is_end, piece.text, (uint32_t)piece.text_size};
  return &told;
}

const float *berth_web_generator_logits(berth_generator *generator) {
  const float *logits = NULL;
  uint32_t count;
  return berth_generator_logits(generator, &logits, &count, &web_error) == BERTH_OK ? logits : NULL;
}

int berth_web_generator_mark(berth_generator *generator) {
  return berth_generator_mark(generator, &web_error) == BERTH_OK;
}

int berth_web_generator_rewind(berth_generator *generator) {
  return berth_generator_rewind(generator, &web_error) == BERTH_OK;
}

void berth_web_generator_reset(berth_generator *generator) { berth_generator_reset(generator); }

double berth_web_generator_save_size(const berth_generator *generator) {
  return (double)berth_generator_save_size(generator);
}

int berth_web_generator_save(berth_generator *generator, void *dst, size_t size) {
  return berth_generator_save(generator, dst, size, &web_error) == BERTH_OK;
}

int berth_web_generator_load(berth_generator *generator, const void *src, size_t size) {
  return berth_generator_load(generator, src, size, &web_error) == BERTH_OK;
}

const int32_t *berth_web_generator_tokens(const berth_generator *generator) {
  return berth_generator_tokens(generator);
}

const char *berth_web_describe_generator(const berth_generator *generator) {
  berth_generator_info info = BERTH_GENERATOR_INFO_INIT;
  if (berth_generator_get_info(generator, &info, &web_error) != BERTH_OK) return NULL;
  json *text = web_text_begin();
  json_open_object(text, NULL);
  json_string(text, "architecture", info.architecture);
  json_uint(text, "ctx", info.ctx);
  json_uint(text, "chunk", info.chunk);
  json_uint(text, "vocabulary", info.vocabulary);
  json_uint(text, "nTokens", info.n_tokens);
  json_bool(text, "hasTemplate", info.has_template != 0);
  json_uint(text, "arenaSize", info.arena_size);
  json_uint(text, "weightsSize", info.weights_size);
  json_uint(text, "stateSize", info.state_size);
  json_close_object(text);
  return web_text_finish();
}
