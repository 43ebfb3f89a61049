/* Special tokens: their ids, and where they occur in a text. Files rarely declare all of them, so well-known texts are
 * looked up; the lists follow llama.cpp, for which the files are made. */
#include <string.h>

#include "text/vocab.h"

/* ---- Loading ---- */

typedef struct special_rule {
  const char *key;     /* in the file */
  const char *old_key; /* its older name, or NULL */
  size_t field;        /* in berth__token_ids; SIZE_MAX: not stored */
  bool ends;           /* it ends generation */
  const char
      *texts; /* texts that such a token may have, the likeliest first, separated by spaces; NULL: not looked up */
} special_rule;

#define SPECIAL_KEY(name) "tokenizer.ggml." name
#define SPECIAL_FIELD(name) offsetof(berth__token_ids, name)

static const special_rule special_rules[] = {
    {SPECIAL_KEY("bos_token_id"), NULL, SPECIAL_FIELD(bos), false, NULL},
    {SPECIAL_KEY("eos_token_id"), NULL, SPECIAL_FIELD(eos), true, NULL},
    {SPECIAL_KEY("unknown_token_id"), NULL, SPECIAL_FIELD(unk), false, NULL},
    {SPECIAL_KEY("seperator_token_id"), NULL, SPECIAL_FIELD(sep), false, NULL}, /* spelled like this in the format */
    {SPECIAL_KEY("padding_token_id"), NULL, SPECIAL_FIELD(pad), false, NULL},
    {SPECIAL_KEY("mask_token_id"), NULL, SPECIAL_FIELD(mask), false, NULL},
    {SPECIAL_KEY("eot_token_id"), NULL, SPECIAL_FIELD(eot), true,
     "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> [EOT] "
     "<\xEF\xBD\x9C"
     "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C> <end_of_utterance>"},
    {SPECIAL_KEY("eom_token_id"), NULL, SPECIAL_FIELD(eom), true, "<|eom_id|>"},
    {SPECIAL_KEY("fim_pre_token_id"), SPECIAL_KEY("prefix_token_id"), SIZE_MAX, false,
     "<|fim_prefix|> <fim-prefix> <fim_prefix> <\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "begin\xEF\xBD\x9C> <PRE> "
     "\xE2\x96\x81<PRE> <|code_prefix|> <|prefix|>"},
    {SPECIAL_KEY("fim_suf_token_id"), SPECIAL_KEY("suffix_token_id"), SIZE_MAX, false,
     "<|fim_suffix|> <fim-suffix> <fim_suffix> <\xEF\xBD\x9C"
     "fim\xE2\x96\x81hole\xEF\xBD\x9C> <SUF> "
     "\xE2\x96\x81<SUF> <|code_suffix|> <|suffix|>"},
    {SPECIAL_KEY("fim_mid_token_id"), SPECIAL_KEY("middle_token_id"), SIZE_MAX, false,
     "<|fim_middle|> <fim-middle> <fim_middle> <\xEF\xBD\x9C"
     "fim\xE2\x96\x81"
     "end\xEF\xBD\x9C> <MID> "
     "\xE2\x96\x81<MID> <|code_middle|> <|middle|>"},
    {SPECIAL_KEY("fim_pad_token_id"), NULL, SIZE_MAX, true, "<|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD]"},
    {SPECIAL_KEY("fim_rep_token_id"), NULL, SIZE_MAX, true, "<|fim_repo|> <|repo_name|> <fim-repo> <REPO> <reponame>"},
    {SPECIAL_KEY("fim_sep_token_id"), NULL, SIZE_MAX, true, "<|file_sep|>"},
};

static const char special_ends[] =
    "<|eot_id|> <|im_end|> <|end|> <|return|> <|call|> <|flush|> <|calls|> <end_of_turn> <|endoftext|> </s> <|eom_id|> "
    "<EOT> _<EOT> [EOT] [EOS] <|end_of_text|> <end_of_utterance> <eos> <turn|> <|tool_response> "
    "<\xEF\xBD\x9C"
    "end\xE2\x96\x81of\xE2\x96\x81sentence\xEF\xBD\x9C>";

/* The next of the texts that is a token; *at moves past it. */
static int32_t special_next(const berth__tokenizer *t, const char **at) {
  while (**at != '\0') {
    const size_t size = strcspn(*at, " ");
    const int32_t id = berth__tokenizer_find(t, *at, size);
    *at += size + ((*at)[size] == ' ');
    if (id >= 0) return id;
  }
  return BERTH__NO_TOKEN;
}

static int32_t special_find(const berth__tokenizer *t, const char *text) {
  return berth__tokenizer_find(t, text, strlen(text));
}

/* An id that is not a token is ignored, as if the key were missing. */
static berth_status special_read_id(const berth__tokenizer *t, const char *key, int32_t *id, berth_error *err) {
  uint64_t value;
  if (key == NULL) return BERTH_OK;
  BERTH__TRY(berth__gguf_u64_or(t->model, key, UINT64_MAX, &value, err));
  if (value < t->count) *id = (int32_t)value;
  return BERTH_OK;
}

static berth_status special_apply(berth__tokenizer *t, const special_rule *rule, berth_error *err) {
  int32_t unused = BERTH__NO_TOKEN;
  int32_t *id = rule->field == SIZE_MAX ? &unused : (int32_t *)((char *)&t->ids + rule->field);
  BERTH__TRY(special_read_id(t, rule->key, id, err));
  BERTH__TRY(special_read_id(t, rule->old_key, id, err));
  if (*id < 0 && rule->texts != NULL) {
    const char *texts = rule->texts;
    *id = special_next(t, &texts);
    if (*id >= 0) t->attributes[*id] |= BERTH__TOKEN_CONTROL;
  }
  if (*id >= 0 && (uint32_t)*id >= t->count)
    *id = BERTH__NO_TOKEN; /* the kind's default id, but there are fewer tokens */
  if (*id >= 0 && rule->ends) t->attributes[*id] |= BERTH__TOKEN_END;
  return BERTH_OK;
}

/* What some model families need done differently. */
static void special_exceptions(berth__tokenizer *t) {
  static const char shown[] = "<|channel|> <|message|> <|start|> <|constrain|>"; /* gpt-oss: part of its output */
  const char *at = shown;
  for (int32_t id; (id = special_next(t, &at)) >= 0;)
    t->attributes[id] = (uint16_t)((t->attributes[id] & BERTH__TOKEN_END) | BERTH__TOKEN_USER);
  /* gpt-oss and Solar end a message with <|end|> and continue with the next one. */
  const int32_t end = special_find(t, "<|end|>");
  const bool has_call = special_find(t, "<|call|>") >= 0 || special_find(t, "<|calls|>") >= 0;
  if (end >= 0 && has_call && (special_find(t, "<|return|>") >= 0 || special_find(t, "<|flush|>") >= 0))
    t->attributes[end] = BERTH__TOKEN_USER;
  const int32_t slash_s = special_find(t, "</s>"); /* Gemma 4: strikethrough */
  if (slash_s >= 0 && special_find(t, "<|tool_response>") >= 0) t->attributes[slash_s] = BERTH__TOKEN_NORMAL;
}

static bool special_contains(berth__gguf_string text, const char *part) { /* part must be lower case; ASCII */
  const size_t n = strlen(part);
  for (uint64_t i = 0; i + n <= text.size; i++) {
    size_t k = 0;
    while (k < n && (text.data[i + k] | (text.data[i + k] >= 'A' && text.data[i + k] <= 'Z' ? 32 : 0)) == part[k]) k++;
    if (k == n) return true;
  }
  return false;
}

static berth__gguf_string special_string(const berth__tokenizer *t, const char *key) {
  const berth__gguf_key *found = berth__gguf_find(t->model, key);
  return found != NULL && found->kind == BERTH__GGUF_STRING ? found->text : (berth__gguf_string){"", 0};
}

static void special_set_strip(berth__tokenizer *t, const char *text, uint16_t attribute, bool on) {
  const int32_t id = special_find(t, text);
  if (id >= 0) t->attributes[id] = (uint16_t)(on ? t->attributes[id] | attribute : t->attributes[id] & ~attribute);
}

/* Tokens that swallow white space next to them: files do not tell, but the names of models do. */
static void special_strips(berth__tokenizer *t) {
  const berth__gguf_string name = special_string(t, "general.name"), pre = special_string(t, SPECIAL_KEY("pre"));
  const berth__gguf_string architecture = t->model->architecture;
  if (special_contains(pre, "jina-v2-de") || special_contains(pre, "jina-v2-es") ||
      special_contains(pre, "jina-v2-code") || special_contains(architecture, "nomic-bert-moe") ||
      special_contains(architecture, "jina-bert-v3")) {
    special_set_strip(t, "<mask>", BERTH__TOKEN_LSTRIP, true);
  } else if (special_contains(name, "phi-3") || special_contains(name, "phi3")) {
    for (uint32_t i = 0; i < t->special.count; i++) t->attributes[t->special.ids[i]] |= BERTH__TOKEN_RSTRIP;
    special_set_strip(t, "</s>", BERTH__TOKEN_RSTRIP, true);
    special_set_strip(t, "<unk>", BERTH__TOKEN_RSTRIP, false);
    special_set_strip(t, "<s>", BERTH__TOKEN_RSTRIP, false);
    special_set_strip(t, "<|endoftext|>", BERTH__TOKEN_RSTRIP, false);
  } else if (special_contains(name, "modern-bert")) {
    special_set_strip(t, "[MASK]", BERTH__TOKEN_LSTRIP, true);
  }
}

berth_status berth__vocab_load_special(berth__tokenizer *t, berth_error *err) {
  for (size_t i = 0; i < sizeof special_rules / sizeof special_rules[0]; i++)
    BERTH__TRY(special_apply(t, &special_rules[i], err));
  const char *at = special_ends;
  for (int32_t id; (id = special_next(t, &at)) >= 0;) t->attributes[id] |= BERTH__TOKEN_CONTROL | BERTH__TOKEN_END;
  special_exceptions(t);
  BERTH__TRY(berth__sorted_make(t, BERTH__TOKEN_CONTROL | BERTH__TOKEN_USER | BERTH__TOKEN_UNKNOWN, &t->special, err));
  special_strips(t);
  return BERTH_OK;
}
