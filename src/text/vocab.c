/* Tokens and merges as the file has them, and hash tables over them. */
#include "text/vocab.h"

#include <string.h>

#include "base/hash.h"
#include "base/math.h"

#define VOCAB_MAX_TOKENS (1u << 28)

float berth__vocab_score(const berth__tokenizer *t, uint32_t id) {
  return t->scores.count != 0 ? (float)berth__gguf_array_f64(&t->scores, id) : 0.0f;
}

/* Slots for `count` entries: a power of two, at most three quarters full. */
static berth_status vocab_make_slots(berth_context *ctx, uint64_t count, uint32_t **slots, uint32_t *mask,
                                     berth_error *err) {
  uint64_t n = 16;
  while (n * 3 < count * 4) n *= 2;
  *slots = berth__alloc_array_zero(ctx, (size_t)n, sizeof **slots);
  if (*slots == NULL) return berth__fail_nomem(err, "the index of the vocabulary");
  *mask = (uint32_t)n - 1;
  return BERTH_OK;
}

/* ---- Tokens ---- */

/* The slot of a token with this text, or the empty one where it would be. */
static uint32_t *vocab_slot(const berth__tokenizer *t, const char *text, size_t size) {
  uint32_t at = berth__hash(t->ctx->hash_key, text, size) & t->slot_mask;
  for (;; at = (at + 1) & t->slot_mask) {
    if (t->slots[at] == 0) return &t->slots[at];
    const berth__span other = berth__vocab_text(t, t->slots[at] - 1);
    if (other.size == size && memcmp(other.data, text, size) == 0) return &t->slots[at];
  }
}

int32_t berth__tokenizer_find(const berth__tokenizer *t, const char *text, size_t size) {
  if (size == 0 || size > t->longest) return BERTH__NO_TOKEN;
  return (int32_t)*vocab_slot(t, text, size) - 1;
}

static uint16_t vocab_attribute(int64_t type) { /* the numbers of the format */
  static const uint16_t attributes[] = {0,
                                        BERTH__TOKEN_NORMAL,
                                        BERTH__TOKEN_UNKNOWN,
                                        BERTH__TOKEN_CONTROL,
                                        BERTH__TOKEN_USER,
                                        BERTH__TOKEN_UNUSED,
                                        BERTH__TOKEN_BYTE};
  return type >= 0 && type < (int64_t)(sizeof attributes / sizeof attributes[0]) ? attributes[type] : 0;
}

/* An array beside the tokens, one number for each; it may be missing. */
static berth_status vocab_numbers(const berth__tokenizer *t, const char *key, berth__gguf_array *out,
                                  berth_error *err) {
  if (berth__gguf_find(t->model, key) == NULL) return BERTH_OK;
  BERTH__TRY(berth__gguf_array_of(t->model, key, out, err));
  if (!berth__gguf_array_is_number(out))
    return berth__fail(err, BERTH_MALFORMED, "the elements of the key \"%s\" are no numbers but %s", key,
                       berth__gguf_kind_name(out->kind));
  if (out->count < t->count)
    return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" has %llu elements for %u tokens", key,
                       (unsigned long long)out->count, t->count);
  return BERTH_OK;
}

static berth_status vocab_strings(const berth__tokenizer *t, const char *key, berth__gguf_array *out,
                                  berth_error *err) {
  BERTH__TRY(berth__gguf_array_of(t->model, key, out, err));
  if (out->kind != BERTH__GGUF_STRING)
    return berth__fail(err, BERTH_MALFORMED, "the elements of the key \"%s\" are no strings but %s", key,
                       berth__gguf_kind_name(out->kind));
  if (out->count > VOCAB_MAX_TOKENS || out->size >= UINT32_MAX)
    return berth__fail(err, BERTH_UNSUPPORTED, "the key \"%s\" is too large: %llu strings, %llu bytes", key,
                       (unsigned long long)out->count, (unsigned long long)out->size);
  return BERTH_OK;
}

berth_status berth__vocab_load(berth__tokenizer *t, berth_error *err) {
  berth__gguf_array tokens, types = {0};
  BERTH__TRY(vocab_strings(t, "tokenizer.ggml.tokens", &tokens, err));
  if (tokens.count == 0) return berth__fail(err, BERTH_MALFORMED, "the model's vocabulary is empty");
  t->count = (uint32_t)tokens.count;
  t->texts = tokens.data;
  BERTH__TRY(vocab_numbers(t, "tokenizer.ggml.scores", &t->scores, err));
  BERTH__TRY(vocab_numbers(t, "tokenizer.ggml.token_type", &types, err));
  t->offsets = berth__alloc_array(t->ctx, t->count, sizeof *t->offsets);
  t->attributes = berth__alloc_array(t->ctx, t->count, sizeof *t->attributes);
  if (t->offsets == NULL || t->attributes == NULL) return berth__fail_nomem(err, "the index of the vocabulary");
  BERTH__TRY(vocab_make_slots(t->ctx, t->count, &t->slots, &t->slot_mask, err));
  uint64_t offset = 0;
  for (uint32_t id = 0; id < t->count; id++) {
    t->offsets[id] = (uint32_t)offset;
    const berth__span text = berth__vocab_text(t, id);
    offset += 8 + text.size;
    if (text.size > t->longest) t->longest = text.size;
    t->attributes[id] =
        types.count != 0 ? vocab_attribute((int64_t)berth__gguf_array_f64(&types, id)) : BERTH__TOKEN_NORMAL;
    if (text.size != 0) *vocab_slot(t, text.data, text.size) = id + 1; /* of equal texts, the last one counts */
  }
  return BERTH_OK;
}

/* ---- Merges ---- */

/* "left right", as the file has it, at an offset. The space is the first that is not the first byte. */
static berth__span vocab_merge_text(const berth__tokenizer *t, uint32_t offset, size_t *left) {
  const uint8_t *at = t->merges + offset;
  const berth__span text = {(const char *)at + 8, (size_t)berth__vocab_load64(at)};
  const char *space = text.size > 1 ? memchr(text.data + 1, ' ', text.size - 1) : NULL;
  *left = space != NULL ? (size_t)(space - text.data) : 0;
  return text;
}

static bool vocab_is_merge(const berth__tokenizer *t, uint32_t offset, const char *text, size_t left, size_t right) {
  size_t split;
  const berth__span merge = vocab_merge_text(t, offset, &split);
  return split == left && merge.size == left + 1 + right && memcmp(merge.data, text, left) == 0 &&
         memcmp(merge.data + left + 1, text + left, right) == 0;
}

/* text is what both pieces make together. */
static uint32_t *vocab_merge_slot(const berth__tokenizer *t, const char *text, size_t left, size_t right) {
  uint32_t at = berth__hash(t->ctx->hash_key, text, left + right) + (uint32_t)left * 0x9E3779B1u;
  for (at &= t->merge_mask;; at = (at + 1) & t->merge_mask) {
    uint32_t *slot = &t->merge_slots[at];
    if (*slot == 0 || vocab_is_merge(t, *slot - 1, text, left, right)) return slot;
  }
}

bool berth__vocab_merge(const berth__tokenizer *t, const char *text, size_t left, size_t right, uint32_t *rank) {
  *rank = *vocab_merge_slot(t, text, left, right);
  return *rank != 0;
}

static berth_status vocab_add_merge(berth__tokenizer *t, uint32_t offset, char **joined, size_t *capacity,
                                    berth_error *err) {
  size_t left;
  const berth__span text = vocab_merge_text(t, offset, &left);
  if (left == 0) return BERTH_OK; /* not two pieces: it merges nothing */
  BERTH__TRY(BERTH__RESERVE(t->ctx, *joined, *capacity, text.size, err));
  const size_t right = text.size - left - 1;
  memcpy(*joined, text.data, left);
  memcpy(*joined + left, text.data + left + 1, right);
  uint32_t *slot = vocab_merge_slot(t, *joined, left, right);
  if (*slot == 0) *slot = offset + 1; /* of equal merges, the first one counts */
  return BERTH_OK;
}

berth_status berth__vocab_load_merges(berth__tokenizer *t, berth_error *err) {
  berth__gguf_array merges;
  char *joined = NULL;
  size_t capacity = 0;
  uint64_t offset = 0;
  BERTH__TRY(vocab_strings(t, "tokenizer.ggml.merges", &merges, err));
  t->merges = merges.data;
  BERTH__TRY(vocab_make_slots(t->ctx, merges.count, &t->merge_slots, &t->merge_mask, err));
  berth_status status = BERTH_OK;
  for (uint64_t i = 0; i < merges.count && status == BERTH_OK; i++) {
    status = vocab_add_merge(t, (uint32_t)offset, &joined, &capacity, err);
    offset += 8 + berth__vocab_load64(merges.data + offset);
  }
  berth__free(t->ctx, joined);
  return status;
}
