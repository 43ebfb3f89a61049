/* WordPiece, the tokenizer of BERT: lower case, accents removed, words split at white space and punctuation, and each
 * word split greedily into the longest tokens. A word that cannot be split into tokens is one unknown token. */
#include "text/unicode.h"
#include "text/vocab.h"

static bool wordpiece_is_ideograph(uint32_t c) { /* each is a word; the gap before U+2B920 is that of the models */
  return berth__unicode_is_han(c) && !(c >= 0x2B820 && c < 0x2B920) && !(c >= 0x2CEB0 && c <= 0x2EBEF);
}

/* Ends the word in the encoder's text. */
static berth_status wordpiece_end_word(berth__encoder *e, berth_error *err) {
  const size_t before = e->out->count;
  if (e->n_text == 3) return BERTH_OK; /* nothing but the mark of a word's beginning */
  for (size_t at = 0; at < e->n_text;) {
    berth__walk walk = BERTH__WALK_BEGIN;
    int32_t id = BERTH__NO_TOKEN;
    size_t length = 0;
    while (at + walk.depth < e->n_text && berth__walk_step(e->t, &e->t->words, &walk, e->text[at + walk.depth])) {
      const int32_t found = berth__walk_token(e->t, &e->t->words, &walk);
      if (found < 0) continue;
      id = found;
      length = walk.depth;
    }
    if (id < 0) {
      e->out->count = before;
      break;
    }
    BERTH__TRY(berth__encoder_put(e, (uint32_t)id, err));
    at += length;
  }
  e->n_text = 3;
  if (e->out->count != before || e->t->ids.unk < 0) return BERTH_OK;
  return berth__encoder_put(e, (uint32_t)e->t->ids.unk, err);
}

static berth_status wordpiece_add(berth__encoder *e, uint32_t c, berth_error *err) {
  const berth__unicode_category category = berth__unicode_category_of(c);
  char bytes[BERTH__UTF8_MAX];
  if (berth__unicode_is_space(c)) return wordpiece_end_word(e, err);
  if (c == 0 || c == BERTH__REPLACEMENT || category == BERTH__UNICODE_OTHER) return BERTH_OK;
  if (e->t->strip_accents && category == BERTH__UNICODE_MARK) return BERTH_OK;
  const bool alone = category == BERTH__UNICODE_PUNCTUATION || (c < 0x7F && category == BERTH__UNICODE_SYMBOL) ||
                     wordpiece_is_ideograph(c);
  if (alone) BERTH__TRY(wordpiece_end_word(e, err));
  const size_t n = berth__utf8_write(e->t->lowercase ? berth__unicode_lower(c) : c, bytes);
  BERTH__TRY(berth__encoder_add_text(e, bytes, n, err));
  return alone ? wordpiece_end_word(e, err) : BERTH_OK;
}

berth_status berth__encode_wordpiece(berth__encoder *e, const char *text, size_t size, berth_error *err) {
  e->n_text = 0;
  BERTH__TRY(berth__encoder_add_text(e, "\xE2\x96\x81", 3, err));
  for (size_t at = 0; at < size;) {
    uint32_t c;
    at += berth__utf8_read(text + at, size - at, &c);
    BERTH__TRY(wordpiece_add(e, e->t->strip_accents ? berth__unicode_base_of(c) : c, err));
  }
  return wordpiece_end_word(e, err);
}
