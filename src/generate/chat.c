/* Chats: the model's own template renders the messages as one text, and the conversation becomes that text. The tokens
 * that it already has in common stay evaluated: usually everything but the last message. */
#include <inttypes.h>
#include <time.h>

#include "generate/generator.h"
#include "text/template.h"

#define TOKEN_TEXT 256 /* bytes of the text of a bos or eos token, with its terminator */

static const char *chat_token_text(const berth_generator *g, int32_t id, char *text) {
  text[0] = '\0';
  if (id == BERTH__NO_TOKEN) return text;
  const size_t size = berth__tokenizer_piece(g->tokenizer, (uint32_t)id, true, text, TOKEN_TEXT - 1);
  text[size < TOKEN_TEXT ? size : 0] = '\0';
  return text;
}

/* Local time in seconds since 1970. */
static int64_t chat_now(void) {
  const time_t now = time(NULL);
  struct tm local;
  return (int64_t)now + (localtime_r(&now, &local) != NULL ? (int64_t)local.tm_gmtoff : 0);
}

static berth_status chat_render(berth_generator *g, const berth_message *messages, size_t n, char **text, size_t *size,
                                berth_error *err) {
  char bos[TOKEN_TEXT], eos[TOKEN_TEXT];
  berth__gguf_string source;
  const berth__token_ids *ids = berth__tokenizer_ids(g->tokenizer);
  if (berth__gguf_find(g->model, "tokenizer.chat_template") == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "the model has no chat template: it can only continue texts");
  BERTH__TRY(berth__gguf_string_of(g->model, "tokenizer.chat_template", &source, err));
  berth__chat_message *copies = berth__alloc_array(g->ctx, n, sizeof *copies);
  if (copies == NULL) return berth__fail_nomem(err, "a chat");
  for (size_t i = 0; i < n; i++) copies[i] = (berth__chat_message){messages[i].role, messages[i].content};
  const berth__chat chat = {.messages = copies,
                            .n_messages = n,
                            .add_generation_prompt = true,
                            .bos_token = chat_token_text(g, ids->bos, bos),
                            .eos_token = chat_token_text(g, ids->eos, eos),
                            .now = chat_now()};
  const berth_status status = berth__chat_apply(g->ctx, source.data, (size_t)source.size, &chat, text, size, err);
  berth__free(g->ctx, copies);
  return status;
}

/* Some templates write the bos token, others leave it to the tokenizer. */
static berth_status chat_encode(berth_generator *g, const char *text, size_t size, berth__tokens *tokens,
                                berth_error *err) {
  const berth__token_ids *ids = berth__tokenizer_ids(g->tokenizer);
  BERTH__TRY(berth__tokenizer_encode(g->tokenizer, text, size, BERTH__ENCODE_PARSE_SPECIAL, tokens, err));
  if (!ids->add_bos || ids->bos == BERTH__NO_TOKEN) return BERTH_OK;
  if (tokens->count > 0 && tokens->ids[0] == (uint32_t)ids->bos) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(g->ctx, tokens->ids, tokens->capacity, tokens->count + 1, err));
  memmove(tokens->ids + 1, tokens->ids, tokens->count * sizeof *tokens->ids);
  tokens->ids[0] = (uint32_t)ids->bos;
  tokens->count++;
  return BERTH_OK;
}

/* Drops what does not fit from the front, except a bos token, and enough to leave room for an answer. Returns the
 * number of tokens to drop. */
static size_t chat_shorten(const berth_generator *g, berth__tokens *tokens) {
  const int32_t bos = berth__tokenizer_ids(g->tokenizer)->bos;
  const size_t begins = bos != BERTH__NO_TOKEN && tokens->ids[0] == (uint32_t)bos, half = g->capacity / 2;
  if (tokens->count <= g->capacity) return 0;
  size_t left_out = tokens->count - (half > begins ? half - begins : 1);
  if (begins) tokens->ids[--left_out] = (uint32_t)bos;
  return left_out;
}

static berth_status chat_continue(berth_generator *g, berth__tokens *tokens, berth_error *err) {
  uint32_t same = 0;
  if (tokens->count == 0) return berth__fail(err, BERTH_MALFORMED, "the chat template makes no text from the messages");
  if (tokens->count > g->capacity && !(g->desc.flags & BERTH_GENERATOR_SLIDE))
    return berth__fail(err, BERTH_INFEASIBLE, "the chat has %zu tokens, and the context has room for %" PRIu32,
                       tokens->count, g->capacity);
  const size_t left_out = chat_shorten(g, tokens);
  const uint32_t *ids = tokens->ids + left_out;
  const uint32_t count = (uint32_t)(tokens->count - left_out);
  while (same < count && same < g->n_tokens && g->tokens[same] == (int32_t)ids[same]) same++;
  if (same == count && same > 0) same--; /* evaluate the last one again, for its logits */
  berth__generator_cut(g, same, NULL);
  return berth_generator_feed_tokens(g, (const int32_t *)ids + same, count - same, err);
}

berth_status berth_generator_chat(berth_generator *g, const berth_message *messages, size_t n_messages,
                                  berth_error *err) {
  char *text = NULL;
  size_t size = 0;
  berth__tokens tokens = {0};
  if (g == NULL || messages == NULL || n_messages == 0)
    return berth__fail(err, BERTH_INVALID, "berth_generator_chat needs a generator and messages");
  for (size_t i = 0; i < n_messages; i++)
    if (messages[i].role == NULL || messages[i].content == NULL)
      return berth__fail(err, BERTH_INVALID, "message %zu of the chat has no role or no content", i);
  berth_status status = chat_render(g, messages, n_messages, &text, &size, err);
  if (status == BERTH_OK) status = chat_encode(g, text, size, &tokens, err);
  if (status == BERTH_OK) status = chat_continue(g, &tokens, err);
  berth__free(g->ctx, tokens.ids);
  berth__free(g->ctx, text);
  return status;
}
