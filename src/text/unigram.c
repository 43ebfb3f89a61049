/* SentencePiece's Unigram, the tokenizer of T5 and XLM-RoBERTa: among all ways to split a text into tokens, the one
 * with the best sum of scores, found from left to right (Viterbi).
 *
 * The text is normalised first. Models may contain a map for that: a double array (a trie in two interleaved arrays,
 * packed into one of u32) from prefixes of the text to their replacements.
 *   u32 size of the array in bytes; the array; texts, each terminated by a zero
 * A node has its character in bits 0 to 7, bit 8 set if a text ends there, and the offset to its children from bit 10
 * on, times 256 if bit 9 is set; a node with bit 31 set is the position of such a text. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "text/unicode.h"
#include "text/vocab.h"

static uint32_t unigram_load32(const uint8_t *at) {
  return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static berth_status unigram_load_charsmap(berth__tokenizer *t, berth_error *err) {
  static const char key[] = "tokenizer.ggml.precompiled_charsmap";
  berth__gguf_array map;
  if (berth__gguf_find(t->model, key) == NULL) return BERTH_OK;
  BERTH__TRY(berth__gguf_array_of(t->model, key, &map, err));
  if (map.kind != BERTH__GGUF_I8 && map.kind != BERTH__GGUF_U8)
    return berth__fail(err, BERTH_MALFORMED, "the elements of the key \"%s\" are not bytes but %s", key,
                       berth__gguf_kind_name(map.kind));
  if (map.count == 0) return BERTH_OK;
  const uint32_t size = map.count >= 4 ? unigram_load32(map.data) : 0;
  if (map.count < 4 || size >= map.count - 4)
    return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" has %llu bytes, which is too short for its array", key,
                       (unsigned long long)map.count);
  if (map.data[map.count - 1] != 0)
    return berth__fail(err, BERTH_MALFORMED, "the last text of the key \"%s\" is not ended by a zero", key);
  t->charsmap.nodes = map.data + 4;
  t->charsmap.n_nodes = size / 4;
  t->charsmap.texts = (const char *)map.data + 4 + size;
  t->charsmap.n_texts = (size_t)map.count - 4 - size;
  return BERTH_OK;
}

berth_status berth__unigram_load(berth__tokenizer *t, berth_error *err) {
  float least = FLT_MAX;
  BERTH__TRY(unigram_load_charsmap(t, err));
  for (uint32_t id = 0; id < t->count; id++) {
    if ((t->attributes[id] & BERTH__TOKEN_NORMAL) != 0) least = fminf(least, berth__vocab_score(t, id));
  }
  t->unknown_score = least - 10.0f;
  BERTH__TRY(berth__sorted_make(t, BERTH__TOKEN_NORMAL | BERTH__TOKEN_USER | BERTH__TOKEN_UNUSED, &t->words, err));
  return berth__sorted_make(t, BERTH__TOKEN_USER, &t->user, err);
}

/* ---- Normalising ---- */

/* A node of the map; a missing one is like one without children. */
static uint32_t unigram_node(const berth__charsmap *map, uint32_t i) {
  return i < map->n_nodes ? unigram_load32(map->nodes + 4 * (size_t)i) : UINT32_MAX;
}

static uint32_t unigram_children(uint32_t node) { return (node >> 10) << ((node & (1u << 9)) >> 6); }

/* The map's entry for the beginning of a text: how many bytes it covers; 0: none. */
static size_t unigram_mapped(const berth__charsmap *map, const char *text, size_t size, berth__span *out) {
  size_t taken = 0;
  if (map->n_nodes == 0) return 0;
  uint32_t at = unigram_children(unigram_node(map, 0));
  for (size_t i = 0; i < size && text[i] != '\0'; i++) {
    const uint32_t c = (uint8_t)text[i];
    at ^= c;
    const uint32_t node = unigram_node(map, at);
    if ((node & (1u << 31 | 0xFF)) != c) break;
    at ^= unigram_children(node);
    if ((node >> 8 & 1) == 0) continue;
    const uint32_t place = unigram_node(map, at) & 0x7FFFFFFFu;
    if (place >= map->n_texts) break;
    *out = (berth__span){map->texts + place, strlen(map->texts + place)};
    taken = i + 1;
  }
  return taken;
}

/* The replacement for the beginning of a text; returns how many bytes of it that covers. */
static size_t unigram_prefix(const berth__tokenizer *t, const char *text, size_t size, berth__span *out) {
  berth__walk walk = BERTH__WALK_BEGIN;
  size_t taken = 0;
  while (taken < size && berth__walk_step(t, &t->user, &walk, text[taken])) taken++;
  if (taken == 0) {
    taken = unigram_mapped(&t->charsmap, text, size, out);
    if (taken != 0) return taken;
    taken = berth__utf8_length(text, size);
  }
  *out = taken != 0 ? (berth__span){text, taken} : (berth__span){"\xEF\xBF\xBD", 3};
  return taken != 0 ? taken : 1;
}

static berth_status unigram_normalise(berth__encoder *e, const char *text, size_t size, berth_error *err) {
  const berth__tokenizer *t = e->t;
  const berth__span space = t->escape_spaces ? (berth__span){"\xE2\x96\x81", 3} : (berth__span){" ", 1};
  bool prepended = false, in_word = false;
  e->n_text = 0;
  for (size_t at = 0; at < size;) {
    berth__span part;
    at += unigram_prefix(t, text + at, size - at, &part);
    for (size_t i = 0; i < part.size; i++) {
      if (part.data[i] == ' ') {
        in_word = false;
        if (!t->merge_spaces) BERTH__TRY(berth__encoder_add_text(e, space.data, space.size, err));
        continue;
      }
      if (!in_word && ((t->add_space_prefix && !prepended) || t->merge_spaces)) {
        BERTH__TRY(berth__encoder_add_text(e, space.data, space.size, err));
        prepended = true;
      }
      in_word = true;
      BERTH__TRY(berth__encoder_add_text(e, part.data + i, 1, err));
    }
  }
  return BERTH_OK;
}

/* ---- The best path ---- */

typedef struct unigram_step {
  double score; /* of all tokens up to here */
  uint32_t from;
  int32_t id;
} unigram_step;

static void unigram_offer(unigram_step *step, double score, size_t from, int32_t id) {
  if (score > step->score) *step = (unigram_step){score, (uint32_t)from, id};
}

static void unigram_forward(const berth__encoder *e, unigram_step *steps) {
  const berth__tokenizer *t = e->t;
  for (size_t at = 0; at < e->n_text;) {
    const size_t expected = berth__utf8_expected(e->text[at]);
    const size_t character = expected < e->n_text - at ? expected : e->n_text - at;
    bool is_token = false;
    berth__walk walk = BERTH__WALK_BEGIN;
    while (at + walk.depth < e->n_text && berth__walk_step(t, &t->words, &walk, e->text[at + walk.depth])) {
      const int32_t id = berth__walk_token(t, &t->words, &walk);
      if (id < 0) continue;
      if (walk.depth == character) is_token = true;
      const bool is_user = (t->attributes[id] & BERTH__TOKEN_USER) != 0;
      const double score = is_user ? 0.0 : (double)berth__vocab_score(t, (uint32_t)id);
      unigram_offer(&steps[at + walk.depth], steps[at].score + score, at, id);
    }
    if (!is_token) unigram_offer(&steps[at + character], steps[at].score + (double)t->unknown_score, at, t->ids.unk);
    at += character;
  }
}

/* Consecutive unknown tokens become one. */
static berth_status unigram_back(berth__encoder *e, const unigram_step *steps, berth_error *err) {
  const size_t begin = e->out->count;
  bool was_unknown = false;
  for (size_t at = e->n_text;; at = steps[at].from) {
    const int32_t id = steps[at].id;
    const bool is_unknown = id == e->t->ids.unk;
    if (!(was_unknown && is_unknown) && id >= 0) BERTH__TRY(berth__encoder_put(e, (uint32_t)id, err));
    was_unknown = is_unknown;
    if (steps[at].from == 0) break;
  }
  for (size_t a = begin, b = e->out->count; a + 1 < b; a++) {
    const uint32_t swap = e->out->ids[a];
    e->out->ids[a] = e->out->ids[--b];
    e->out->ids[b] = swap;
  }
  return BERTH_OK;
}

berth_status berth__encode_unigram(berth__encoder *e, const char *text, size_t size, berth_error *err) {
  BERTH__TRY(unigram_normalise(e, text, size, err));
  if (e->n_text == 0) return BERTH_OK;
  unigram_step *steps = berth__alloc_array(e->t->ctx, e->n_text + 1, sizeof *steps);
  if (steps == NULL) return berth__fail_nomem(err, "the ways to split the text");
  for (size_t i = 0; i <= e->n_text; i++) steps[i] = (unigram_step){i == 0 ? 0.0 : -DBL_MAX, 0, e->t->ids.unk};
  unigram_forward(e, steps);
  const berth_status status = unigram_back(e, steps, err);
  berth__free(e->t->ctx, steps);
  return status;
}
