/* Conversations as bytes: a header, the tokens, the logits of the last evaluated token, and the used rows of every
 * state. Little endian. */
#include <inttypes.h>

#include "base/math.h"
#include "generate/generator.h"

static const char save_mark[8] = {'b', 'e', 'r', 't', 'h', 'c', 'v', '1'};

typedef struct save_header {
  char mark[8];
  uint64_t fingerprint; /* of the model */
  uint64_t random;      /* of the sampler */
  uint32_t n_tokens, n_evaluated, vocabulary;
  uint8_t has_logits, at_start, n_held;
  char held[5];  /* of the stream of text */
  uint32_t zero; /* explicit, so that no padding is written */
} save_header;
_Static_assert(sizeof(save_header) == 48, "the header of a saved conversation has no padding");

static const berth__value *save_state(const berth_generator *g, size_t index) {
  return &g->graph->values[g->graph->states[index]];
}

/* Bytes of one row: all dimensions but the first. */
static uint64_t save_row(const berth_generator *g, size_t index) {
  const berth__value *state = save_state(g, index);
  return berth_storage_bytes(berth_type_storage(state->type), (uint64_t)state->shape.dim[1]);
}

static uint64_t save_mix(uint64_t hash, const void *data, size_t size) {
  const uint8_t *bytes = data;
  for (size_t i = 0; i < size; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
  return hash;
}

#define SAVE_PLACES 4 /* places at which a tensor is sampled, from its first bytes to its last */
#define SAVE_BYTES 16 /* bytes per place */

static uint64_t save_mix_data(uint64_t hash, const berth__gguf_tensor *tensor) {
  const uint64_t size = tensor->data != NULL ? tensor->size : 0;
  if (size <= (uint64_t)SAVE_PLACES * SAVE_BYTES) return save_mix(hash, tensor->data, (size_t)size);
  for (uint64_t i = 0; i < SAVE_PLACES; i++)
    hash = save_mix(hash, tensor->data + (size - SAVE_BYTES) / (SAVE_PLACES - 1) * i, SAVE_BYTES);
  return hash;
}

/* Names, types and widths of the states, the model's name, and for each tensor its size and some of its bytes, which
 * differ between a model and its fine-tuned versions. This catches mistakes, not malice. It is computed when a
 * conversation is first saved, because it reads pages all over the file. */
static berth_status save_fingerprint(berth_generator *g, berth_error *err) {
  uint64_t hash = 1469598103934665603u;
  if (g->fingerprint != 0) return BERTH_OK;
  const berth__gguf_key *name = berth__gguf_find(g->model, "general.name");
  BERTH__TRY(berth__gguf_check(g->model, err));
  if (name != NULL && name->kind == BERTH__GGUF_STRING) hash = save_mix(hash, name->text.data, (size_t)name->text.size);
  for (size_t i = 0; i < g->graph->n_states; i++) {
    const berth__value *state = save_state(g, i);
    hash = save_mix(hash, state->name, strlen(state->name));
    hash = save_mix(hash, &state->type, sizeof state->type);
    hash = save_mix(hash, &state->shape.dim[1], sizeof state->shape.dim[1]);
  }
  for (size_t i = 0; i < g->model->n_tensors; i++) {
    const berth__gguf_tensor *tensor = &g->model->tensors[i];
    hash = save_mix(hash, tensor->name, strlen(tensor->name));
    hash = save_mix(hash, &tensor->size, sizeof tensor->size);
    hash = save_mix(hash, &tensor->ggml_type, sizeof tensor->ggml_type);
    hash = save_mix_data(hash, tensor);
    berth__gguf_rest(g->model, tensor->data, (size_t)tensor->size);
  }
  BERTH__TRY(berth__gguf_check(g->model, err));
  g->fingerprint = hash != 0 ? hash : 1;
  return BERTH_OK;
}

/* The rows of a state that a conversation of n_evaluated tokens needs. For a ring these are the rows that the last
 * token sees, because it is evaluated again if its logits were lost. */
static uint64_t save_rows(const berth_generator *g, size_t index, uint64_t n_evaluated) {
  return berth__generator_is_ring(g, index) && n_evaluated > g->window ? g->window : n_evaluated;
}

typedef berth_status (*save_move)(berth_arena *arena, berth_value value, uint64_t offset, uint8_t *bytes, uint64_t size,
                                  berth_error *err);

static berth_status save_read(berth_arena *arena, berth_value value, uint64_t offset, uint8_t *bytes, uint64_t size,
                              berth_error *err) {
  return berth_arena_read(arena, value, offset, bytes, size, err);
}

static berth_status save_write(berth_arena *arena, berth_value value, uint64_t offset, uint8_t *bytes, uint64_t size,
                               berth_error *err) {
  return berth_arena_write(arena, value, offset, bytes, size, err);
}

/* The last rows before n_evaluated, in the order of their positions; in a ring they wrap around. */
static berth_status save_states(berth_generator *g, uint64_t n_evaluated, uint8_t *bytes, save_move move,
                                berth_error *err) {
  for (size_t i = 0; i < g->graph->n_states; i++) {
    const uint64_t row = save_row(g, i), capacity = berth__generator_is_ring(g, i) ? g->near : g->capacity;
    for (uint64_t at = n_evaluated - save_rows(g, i, n_evaluated), n; at < n_evaluated; at += n, bytes += n * row) {
      const uint64_t first = at % capacity, left = capacity - first;
      n = n_evaluated - at < left ? n_evaluated - at : left;
      BERTH__TRY(move(g->session->arena, g->graph->states[i], first * row, bytes, n * row, err));
    }
  }
  return BERTH_OK;
}

/* Bytes after the header. They cannot overflow, since a generator with this many tokens has held them in memory. */
static uint64_t save_rest(const berth_generator *g, uint64_t n_tokens, uint64_t n_evaluated, bool has_logits) {
  uint64_t size = n_tokens * sizeof *g->tokens + (has_logits ? g->vocabulary * sizeof *g->logits : 0);
  for (size_t i = 0; i < g->graph->n_states; i++) size += save_rows(g, i, n_evaluated) * save_row(g, i);
  return size;
}

uint64_t berth_generator_save_size(const berth_generator *g) {
  if (g == NULL) return 0;
  return sizeof(save_header) + save_rest(g, g->n_tokens, g->n_evaluated, g->has_logits);
}

berth_status berth_generator_save(berth_generator *g, void *dst, size_t size, berth_error *err) {
  if (g == NULL || dst == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_generator_save needs a generator and a pointer to store its bytes");
  if (size != berth_generator_save_size(g))
    return berth__fail(err, BERTH_INVALID, "the conversation is %" PRIu64 " bytes, but %zu %s given",
                       berth_generator_save_size(g), size, size == 1 ? "was" : "were");
  BERTH__TRY(save_fingerprint(g, err));
  save_header head = {.fingerprint = g->fingerprint,
                      .random = g->sampler.state,
                      .n_tokens = g->n_tokens,
                      .n_evaluated = g->n_evaluated,
                      .vocabulary = g->vocabulary,
                      .has_logits = g->has_logits,
                      .at_start = g->stream.at_start,
                      .n_held = g->stream.n_held};
  uint8_t *to = dst;
  memcpy(head.mark, save_mark, sizeof save_mark);
  memcpy(head.held, g->stream.held, sizeof g->stream.held);
  memcpy(to, &head, sizeof head);
  to += sizeof head;
  memcpy(to, g->tokens, g->n_tokens * sizeof *g->tokens);
  to += g->n_tokens * sizeof *g->tokens;
  if (g->has_logits) {
    memcpy(to, g->logits, g->vocabulary * sizeof *g->logits);
    to += g->vocabulary * sizeof *g->logits;
  }
  return save_states(g, g->n_evaluated, to, save_read, err);
}

/* ---- Loading ---- */

static berth_status load_check(const berth_generator *g, const uint8_t *src, size_t size, save_header *head,
                               berth_error *err) {
  if (size < sizeof *head)
    return berth__fail(err, BERTH_MALFORMED, "%zu byte%s not a saved conversation", size, size == 1 ? " is" : "s are");
  memcpy(head, src, sizeof *head);
  if (memcmp(head->mark, save_mark, sizeof save_mark) != 0)
    return berth__fail(err, BERTH_MALFORMED, "these bytes are not a saved conversation");
  if (head->fingerprint != g->fingerprint || head->vocabulary != g->vocabulary)
    return berth__fail(err, BERTH_INVALID, "this conversation belongs to another model, or to another type of cache");
  if (head->n_tokens > g->capacity)
    return berth__fail(err, BERTH_INFEASIBLE, "the conversation has %" PRIu32 " tokens, and there is room for %" PRIu32,
                       head->n_tokens, g->capacity);
  if (head->n_evaluated > head->n_tokens || head->n_held > sizeof g->stream.held || head->has_logits > 1 ||
      head->zero != 0 || (head->has_logits && head->n_evaluated == 0) ||
      size != sizeof *head + save_rest(g, head->n_tokens, head->n_evaluated, head->has_logits))
    return berth__fail(err, BERTH_MALFORMED, "the saved conversation is truncated or damaged");
  for (uint32_t i = 0; i < head->n_tokens; i++) {
    int32_t token;
    memcpy(&token, src + sizeof *head + i * sizeof token, sizeof token);
    if (token < 0 || (uint32_t)token >= g->vocabulary)
      return berth__fail(err, BERTH_MALFORMED, "the saved conversation has a token %" PRId32, token);
  }
  return BERTH_OK;
}

berth_status berth_generator_load(berth_generator *g, const void *src, size_t size, berth_error *err) {
  save_header head;
  const uint8_t *from = src;
  if (g == NULL || src == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_generator_load needs a generator and a conversation");
  BERTH__TRY(save_fingerprint(g, err));
  BERTH__TRY(load_check(g, from, size, &head, err));
  from += sizeof head;
  berth_generator_reset(g); /* if the device fails while it writes, the conversation is left empty */
  const uint8_t *logits = from + head.n_tokens * sizeof *g->tokens;
  const size_t n_logits = head.has_logits ? g->vocabulary * sizeof *g->logits : 0;
  uint8_t *rows = (uint8_t *)(uintptr_t)(logits + n_logits); /* they are only read */
  BERTH__TRY(save_states(g, head.n_evaluated, rows, save_write, err));
  memcpy(g->tokens, from, head.n_tokens * sizeof *g->tokens);
  memcpy(g->logits, logits, n_logits);
  g->n_tokens = head.n_tokens;
  g->n_evaluated = head.n_evaluated;
  g->written = g->near != 0 ? head.n_evaluated : 0;
  g->intact = g->near != 0 && head.n_evaluated > g->window ? head.n_evaluated - g->window : 0;
  g->has_logits = head.has_logits;
  g->sampler.state = head.random;
  g->stream = berth__stream_begin(g->tokenizer, false, head.at_start);
  g->stream.n_held = head.n_held;
  memcpy(g->stream.held, head.held, sizeof g->stream.held);
  return BERTH_OK;
}
