#include "text/tokenizer.h"

#include <string.h>

#include "text/vocab.h"

/* ---- Creating ---- */

typedef struct tokenizer_model {
  const char *name; /* tokenizer.ggml.model */
  berth__vocab_kind kind;
  berth__token_ids ids; /* defaults if the file does not say */
  bool add_space_prefix;
} tokenizer_model;

static const tokenizer_model tokenizer_models[] = {
    {"llama", BERTH__VOCAB_SPM, {1, 2, -1, -1, 0, -1, -1, -1, true, false}, true},
    {"gpt2", BERTH__VOCAB_BPE, {11, 11, -1, -1, -1, -1, -1, -1, false, false}, false},
    {"gemma4", BERTH__VOCAB_BPE, {-1, -1, -1, -1, -1, -1, -1, -1, false, false}, false},
    {"bert", BERTH__VOCAB_WORDPIECE, {101, -1, -1, -1, 100, 102, 0, 103, true, false}, false},
    {"t5", BERTH__VOCAB_UNIGRAM, {-1, 1, -1, -1, 2, -1, 0, -1, false, true}, false},
};

static berth_status tokenizer_choose(berth__tokenizer *t, const tokenizer_model **out, berth_error *err) {
  berth__gguf_string name;
  BERTH__TRY(berth__gguf_string_of(t->model, "tokenizer.ggml.model", &name, err));
  for (size_t i = 0; i < sizeof tokenizer_models / sizeof tokenizer_models[0]; i++) {
    if (!berth__gguf_is(name, tokenizer_models[i].name)) continue;
    *out = &tokenizer_models[i];
    t->kind = (*out)->kind;
    t->ids = (*out)->ids;
    t->add_space_prefix = (*out)->add_space_prefix;
    t->escape_spaces = t->kind != BERTH__VOCAB_BPE;
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "the tokenizer \"%.*s\" is not known; there are llama, gpt2, bert, t5, gemma4",
                     (int)(name.size < 64 ? name.size : 64), name.data);
}

static berth_status tokenizer_load_pre(berth__tokenizer *t, const tokenizer_model *model, berth_error *err) {
  berth__gguf_string name = {"default", 7};
  if (strcmp(model->name, "gemma4") == 0) {
    name = (berth__gguf_string){"gemma4", 6};
  } else if (berth__gguf_find(t->model, "tokenizer.ggml.pre") != NULL) {
    BERTH__TRY(berth__gguf_string_of(t->model, "tokenizer.ggml.pre", &name, err));
    if (name.size == 0) name = (berth__gguf_string){"default", 7};
  }
  const berth__pre_row *row = berth__pre_find(name.data, (size_t)name.size);
  if (row == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED, "the pre-tokenizer \"%.*s\" is not known: text would be split wrongly",
                       (int)(name.size < 64 ? name.size : 64), name.data);
  t->pre_flags = row->flags;
  t->escape_spaces = (row->flags & BERTH__PRE_RAW) != 0;
  if ((row->flags & BERTH__PRE_ADD_BOS) != 0) t->ids.add_bos = true;
  if ((row->flags & BERTH__PRE_NO_BOS) != 0) t->ids.bos = BERTH__NO_TOKEN;
  return berth__pre_create(t->ctx, row, &t->pre, err);
}

static berth_status tokenizer_load_flags(berth__tokenizer *t, berth_error *err) {
  const berth__gguf *g = t->model;
  BERTH__TRY(berth__gguf_bool_or(g, "tokenizer.ggml.add_space_prefix", t->add_space_prefix, &t->add_space_prefix, err));
  BERTH__TRY(berth__gguf_bool_or(g, "tokenizer.ggml.remove_extra_whitespaces", false, &t->merge_spaces, err));
  BERTH__TRY(berth__gguf_bool_or(g, "tokenizer.ggml.add_bos_token", t->ids.add_bos, &t->ids.add_bos, err));
  BERTH__TRY(berth__gguf_bool_or(g, "tokenizer.ggml.add_eos_token", t->ids.add_eos, &t->ids.add_eos, err));
  BERTH__TRY(berth__gguf_bool_or(g, "tokenizer.ggml.normalizer.lowercase", true, &t->lowercase, err));
  if ((t->pre_flags & BERTH__PRE_FORCE_BOS) != 0) t->ids.add_bos = true;
  return berth__gguf_bool_or(g, "tokenizer.ggml.normalizer.strip_accents", t->lowercase, &t->strip_accents, err);
}

/* The tokens that stand for single bytes: "<0x0A>", or the byte itself. */
static void tokenizer_find_bytes(berth__tokenizer *t) {
  static const char hex[] = "0123456789ABCDEF";
  const bool letters = t->kind == BERTH__VOCAB_BPE && (t->pre_flags & BERTH__PRE_RAW) == 0;
  for (int i = 0; i < 256; i++) {
    const char name[6] = {'<', '0', 'x', hex[i >> 4], hex[i & 15], '>'}, byte = (char)i;
    t->byte_ids[i] = letters ? BERTH__NO_TOKEN : berth__tokenizer_find(t, name, sizeof name);
    if (letters || (t->kind == BERTH__VOCAB_SPM && t->byte_ids[i] < 0))
      t->byte_ids[i] = berth__tokenizer_find(t, &byte, 1);
  }
}

static berth_status tokenizer_load(berth__tokenizer *t, berth_error *err) {
  const tokenizer_model *model = NULL;
  BERTH__TRY(tokenizer_choose(t, &model, err));
  BERTH__TRY(berth__vocab_load(t, err));
  if (t->kind == BERTH__VOCAB_BPE) {
    BERTH__TRY(tokenizer_load_pre(t, model, err));
    BERTH__TRY(berth__vocab_load_merges(t, err));
  }
  BERTH__TRY(tokenizer_load_flags(t, err));
  if (t->kind == BERTH__VOCAB_UNIGRAM) BERTH__TRY(berth__unigram_load(t, err)); /* before attributes change */
  BERTH__TRY(berth__vocab_load_special(t, err));
  if (t->kind == BERTH__VOCAB_WORDPIECE) BERTH__TRY(berth__sorted_make(t, UINT32_MAX, &t->words, err));
  tokenizer_find_bytes(t);
  berth__vocab_rest(t);
  return BERTH_OK;
}

berth_status berth__tokenizer_create(berth_context *ctx, berth__gguf *model, berth__tokenizer **out, berth_error *err) {
  *out = NULL;
  berth__tokenizer *t = berth__alloc_zero(ctx, sizeof *t);
  if (t == NULL) return berth__fail_nomem(err, "the tokenizer");
  t->ctx = ctx;
  t->model = berth__gguf_retain(model);
  const berth_status status = tokenizer_load(t, err);
  if (status != BERTH_OK) {
    berth__tokenizer_destroy(t);
    return status;
  }
  *out = t;
  return BERTH_OK;
}

void berth__tokenizer_destroy(berth__tokenizer *t) {
  if (t == NULL) return;
  berth_context *ctx = t->ctx;
  void *const parts[] = {t->offsets,          t->attributes,  t->slots.values, t->slots.tags, t->merge_slots.values,
                         t->merge_slots.tags, t->special.ids, t->words.ids,    t->user.ids};
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) berth__free(ctx, parts[i]);
  berth__pre_destroy(ctx, t->pre);
  berth__gguf_destroy(t->model);
  berth__free(ctx, t);
}

/* ---- Queries ---- */

const berth__token_ids *berth__tokenizer_ids(const berth__tokenizer *t) { return &t->ids; }

uint32_t berth__tokenizer_count(const berth__tokenizer *t) { return t->count; }

const char *berth__tokenizer_kind(const berth__tokenizer *t) {
  static const char *const names[] = {"spm", "bpe", "wordpiece", "unigram"};
  return names[t->kind];
}

bool berth__tokenizer_is_end(const berth__tokenizer *t, uint32_t id) {
  return id < t->count && (t->attributes[id] & BERTH__TOKEN_END) != 0;
}

/* ---- Encoding ---- */

static berth_status tokenizer_encode_text(berth__encoder *e, const char *text, size_t size, bool first,
                                          berth_error *err) {
  switch (e->t->kind) {
    case BERTH__VOCAB_SPM: return berth__encode_spm(e, text, size, first, err);
    case BERTH__VOCAB_BPE: return berth__encode_bpe(e, text, size, err);
    case BERTH__VOCAB_WORDPIECE: return berth__encode_wordpiece(e, text, size, err);
    case BERTH__VOCAB_UNIGRAM: return berth__encode_unigram(e, text, size, err);
  }
  return BERTH_OK;
}

static berth_status tokenizer_put_special(berth__encoder *e, bool wanted, int32_t id, berth_error *err) {
  return wanted && id >= 0 ? berth__encoder_put(e, (uint32_t)id, err) : BERTH_OK;
}

static berth_status tokenizer_encode_all(berth__encoder *e, const char *text, const berth__fragment *fragments,
                                         size_t count, bool add_special, berth_error *err) {
  const berth__token_ids *ids = &e->t->ids;
  const bool is_bert = e->t->kind == BERTH__VOCAB_WORDPIECE;
  BERTH__TRY(tokenizer_put_special(e, add_special && (ids->add_bos || is_bert), ids->bos, err));
  bool first = true;
  for (size_t i = 0; i < count; i++) {
    const berth__fragment *fragment = &fragments[i];
    BERTH__TRY(fragment->id >= 0
                   ? berth__encoder_put(e, (uint32_t)fragment->id, err)
                   : tokenizer_encode_text(e, text + fragment->begin, fragment->end - fragment->begin, first, err));
    first = fragment->id >= 0;
  }
  if (is_bert) return tokenizer_put_special(e, add_special, ids->sep, err);
  return tokenizer_put_special(e, add_special && ids->add_eos, ids->eos, err);
}

berth_status berth__tokenizer_encode(const berth__tokenizer *t, const char *text, size_t size, uint32_t flags,
                                     berth__tokens *out, berth_error *err) {
  const size_t before = out->count;
  berth__fragment *fragments = NULL;
  size_t count = 0;
  /* Positions are 32 bits, and a space may become three bytes. */
  if (size > INT32_MAX / 4)
    return berth__fail(err, BERTH_UNSUPPORTED, "the text has %llu bytes; at most %d can be encoded at once",
                       (unsigned long long)size, INT32_MAX / 4);
  BERTH__TRY(berth__special_split(t, text, size, (flags & BERTH__ENCODE_PARSE_SPECIAL) != 0, &fragments, &count, err));
  berth__encoder e = {.t = t, .out = out};
  const berth_status status =
      tokenizer_encode_all(&e, text, fragments, count, (flags & BERTH__ENCODE_ADD_SPECIAL) != 0, err);
  berth__free(t->ctx, e.symbols);
  berth__free(t->ctx, e.heap);
  berth__free(t->ctx, e.text);
  berth__free(t->ctx, fragments);
  berth__vocab_rest(t);
  if (status != BERTH_OK) out->count = before;
  return status;
}
