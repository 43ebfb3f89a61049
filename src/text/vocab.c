/* Tokens and merges as stored in the file, and hash tables over them. */
#include "text/vocab.h"

#include <string.h>

#include "base/hash.h"
#include "base/math.h"

#define VOCAB_MAX_TOKENS (1u << 28)

float berth__vocab_score(const berth__tokenizer *t, uint32_t id) {
  return t->scores.count != 0 ? (float)berth__gguf_array_f64(&t->scores, id) : 0.0f;
}

/* ---- Slots ---- */

/* Slots for `count` entries: at most four fifths are full, which keeps probe sequences short. */
static berth_status slots_make(berth_context *ctx, uint64_t count, berth__slots *out, berth_error *err) {
  out->count = (uint32_t)(count + count / 4 + 8);
  out->values = berth__alloc_array(ctx, out->count, sizeof *out->values);
  out->tags = berth__alloc_zero(ctx, out->count);
  if (out->values == NULL || out->tags == NULL) return berth__fail_nomem(err, "the index of the vocabulary");
  return BERTH_OK;
}

static uint32_t slots_first(const berth__slots *slots, uint32_t hash) {
  return (uint32_t)((uint64_t)hash * slots->count >> 32);
}

static uint32_t slots_next(const berth__slots *slots, uint32_t at) { return at + 1 < slots->count ? at + 1 : 0; }

static uint8_t slots_tag(uint32_t hash) {
  return (uint8_t)((hash & 0xFFFF) % 255 + 1);
} /* the slot index already uses the low bits */

/* ---- Tokens ---- */

/* The slot of a token with this text, or the empty one where it would go. */
static uint32_t vocab_slot(const berth__tokenizer *t, const char *text, size_t size, uint8_t *tag) {
  const uint32_t hash = berth__hash(t->ctx->hash_key, text, size);
  uint32_t at = slots_first(&t->slots, hash);
  *tag = slots_tag(hash);
  for (; t->slots.tags[at] != 0; at = slots_next(&t->slots, at)) {
    if (t->slots.tags[at] != *tag) continue;
    const berth__span other = berth__vocab_text(t, t->slots.values[at]);
    if (other.size == size && memcmp(other.data, text, size) == 0) break;
  }
  return at;
}

int32_t berth__tokenizer_find(const berth__tokenizer *t, const char *text, size_t size) {
  uint8_t tag;
  if (size == 0 || size > t->longest) return BERTH__NO_TOKEN;
  const uint32_t at = vocab_slot(t, text, size, &tag);
  return t->slots.tags[at] != 0 ? (int32_t)t->slots.values[at] : BERTH__NO_TOKEN;
}

static void vocab_add_token(berth__tokenizer *t, uint32_t id, berth__span text) {
  uint8_t tag;
  const uint32_t at = vocab_slot(t, text.data, text.size, &tag);
  t->slots.tags[at] = tag;
  t->slots.values[at] = id; /* among equal texts, the last one counts */
}

static uint16_t vocab_attribute(int64_t type) { /* the values of the format */
  static const uint16_t attributes[] = {0,
                                        BERTH__TOKEN_NORMAL,
                                        BERTH__TOKEN_UNKNOWN,
                                        BERTH__TOKEN_CONTROL,
                                        BERTH__TOKEN_USER,
                                        BERTH__TOKEN_UNUSED,
                                        BERTH__TOKEN_BYTE};
  return type >= 0 && type < (int64_t)(sizeof attributes / sizeof attributes[0]) ? attributes[type] : 0;
}

/* An array parallel to the tokens, one number for each; it may be missing. */
static berth_status vocab_numbers(const berth__tokenizer *t, const char *key, bool whole, berth__gguf_array *out,
                                  berth_error *err) {
  if (berth__gguf_find(t->model, key) == NULL) return BERTH_OK;
  BERTH__TRY(berth__gguf_array_of(t->model, key, out, err));
  if (whole ? !berth__gguf_array_is_whole(out) : !berth__gguf_array_is_number(out))
    return berth__fail(err, BERTH_MALFORMED, "the elements of the key \"%s\" are not %s but %s", key,
                       whole ? "integers" : "numbers", berth__gguf_kind_name(out->kind));
  if (out->count < t->count)
    return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" has %llu elements for %u tokens", key,
                       (unsigned long long)out->count, t->count);
  return BERTH_OK;
}

static berth_status vocab_strings(const berth__tokenizer *t, const char *key, berth__gguf_array *out,
                                  berth_error *err) {
  BERTH__TRY(berth__gguf_array_of(t->model, key, out, err));
  if (out->kind != BERTH__GGUF_STRING)
    return berth__fail(err, BERTH_MALFORMED, "the elements of the key \"%s\" are not strings but %s", key,
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
  BERTH__TRY(vocab_numbers(t, "tokenizer.ggml.scores", false, &t->scores, err));
  BERTH__TRY(vocab_numbers(t, "tokenizer.ggml.token_type", true, &types, err));
  t->offsets = berth__alloc_array(t->ctx, (size_t)t->count + 1, sizeof *t->offsets);
  t->attributes = berth__alloc_array(t->ctx, t->count, sizeof *t->attributes);
  if (t->offsets == NULL || t->attributes == NULL) return berth__fail_nomem(err, "the index of the vocabulary");
  BERTH__TRY(slots_make(t->ctx, t->count, &t->slots, err));
  t->offsets[0] = 0;
  for (uint32_t id = 0; id < t->count; id++) {
    t->offsets[id + 1] = t->offsets[id] + 8 + (uint32_t)berth__vocab_load64(t->texts + t->offsets[id]);
    const berth__span text = berth__vocab_text(t, id);
    if (text.size > t->longest) t->longest = text.size;
    t->attributes[id] = types.count != 0 ? vocab_attribute(berth__gguf_array_i64(&types, id)) : BERTH__TOKEN_NORMAL;
    if (text.size != 0) vocab_add_token(t, id, text);
  }
  return BERTH_OK;
}

/* ---- Merges ---- */

/* "left right", as stored in the file, at an offset. The separating space is the first that is not the first byte. */
static berth__span vocab_merge_text(const berth__tokenizer *t, uint32_t offset, size_t *left) {
  const uint64_t size = berth__vocab_load64(t->merges + offset), most = t->merges_size - offset - 8;
  const berth__span text = {(const char *)t->merges + offset + 8, (size_t)(size < most ? size : most)};
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

/* text is the concatenation of both pieces. */
static uint32_t vocab_merge_slot(const berth__tokenizer *t, const char *text, size_t left, size_t right, uint8_t *tag) {
  const uint32_t hash = berth__hash(t->ctx->hash_key, text, left + right) + (uint32_t)left * 0x9E3779B1u;
  uint32_t at = slots_first(&t->merge_slots, hash);
  *tag = slots_tag(hash);
  for (; t->merge_slots.tags[at] != 0; at = slots_next(&t->merge_slots, at)) {
    if (t->merge_slots.tags[at] == *tag && vocab_is_merge(t, t->merge_slots.values[at], text, left, right)) break;
  }
  return at;
}

bool berth__vocab_merge(const berth__tokenizer *t, const char *text, size_t left, size_t right, uint32_t *rank) {
  uint8_t tag;
  const uint32_t at = vocab_merge_slot(t, text, left, right, &tag);
  if (t->merge_slots.tags[at] == 0) return false;
  *rank = t->merge_slots.values[at];
  return true;
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
  uint8_t tag;
  const uint32_t at = vocab_merge_slot(t, *joined, left, right, &tag);
  if (t->merge_slots.tags[at] != 0) return BERTH_OK; /* among equal merges, the first one counts */
  t->merge_slots.tags[at] = tag;
  t->merge_slots.values[at] = offset;
  return BERTH_OK;
}

berth_status berth__vocab_load_merges(berth__tokenizer *t, berth_error *err) {
  berth__gguf_array merges;
  char *joined = NULL;
  size_t capacity = 0;
  uint64_t offset = 0;
  BERTH__TRY(vocab_strings(t, "tokenizer.ggml.merges", &merges, err));
  t->merges = merges.data;
  t->merges_size = (size_t)merges.size;
  BERTH__TRY(slots_make(t->ctx, merges.count, &t->merge_slots, err));
  berth_status status = BERTH_OK;
  for (uint64_t i = 0; i < merges.count && status == BERTH_OK; i++) {
    status = vocab_add_merge(t, (uint32_t)offset, &joined, &capacity, err);
    offset += 8 + berth__vocab_load64(merges.data + offset);
  }
  berth__free(t->ctx, joined);
  return status;
}

void berth__vocab_rest(const berth__tokenizer *t) {
  berth__gguf_rest(t->model, t->texts, t->offsets[t->count]);
  if (t->merges != NULL) berth__gguf_rest(t->model, t->merges, t->merges_size);
  if (t->scores.count != 0) berth__gguf_rest(t->model, t->scores.data, (size_t)t->scores.size);
}
