/* Byte pair encoding: the text is split into words (pretoken.h), and inside each word the pieces merge in the order of
 * the model's merges. Most vocabularies write every byte as a letter; a space, for example, is U+0120. */
#include <string.h>

#include "text/unicode.h"
#include "text/vocab.h"

/* Bytes that are printable in Latin-1 stand for themselves; the others are numbered from U+0100 on, in order. */
static bool bpe_is_plain(uint32_t byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

uint32_t berth__bpe_letter(uint8_t byte) {
  if (bpe_is_plain(byte)) return byte;
  return byte <= 0x20 ? 0x100u + byte : byte <= 0xA0 ? 0x100u + 0x21 + (byte - 0x7Fu) : 0x143u;
}

int berth__bpe_byte(uint32_t letter) {
  if (letter < 0x100) return bpe_is_plain(letter) ? (int)letter : -1;
  if (letter <= 0x120) return (int)(letter - 0x100);
  if (letter <= 0x142) return (int)(letter - 0x121 + 0x7F);
  return letter == 0x143 ? 0xAD : -1;
}

/* Appends one word, as the vocabulary writes it, to the encoder's text. */
static berth_status bpe_write(berth__encoder *e, const uint32_t *word, size_t count, berth_error *err) {
  const bool raw = (e->t->pre_flags & BERTH__PRE_RAW) != 0;
  e->n_text = 0;
  for (size_t i = 0; i < count; i++) {
    char bytes[BERTH__UTF8_MAX], letter[BERTH__UTF8_MAX];
    const size_t n = berth__utf8_write(word[i], bytes);
    if (raw) BERTH__TRY(berth__encoder_add_text(e, bytes, n, err));
    for (size_t k = 0; !raw && k < n; k++) {
      const size_t size = berth__utf8_write(berth__bpe_letter((uint8_t)bytes[k]), letter);
      BERTH__TRY(berth__encoder_add_text(e, letter, size, err));
    }
  }
  return BERTH_OK;
}

static berth_status bpe_put(berth__encoder *e, const char *text, size_t size, berth_error *err) {
  const int32_t id = berth__tokenizer_find(e->t, text, size);
  if (id >= 0) return berth__encoder_put(e, (uint32_t)id, err);
  for (size_t i = 0; i < size; i++) {
    const int32_t byte = e->t->byte_ids[(uint8_t)text[i]];
    if (byte >= 0) BERTH__TRY(berth__encoder_put(e, (uint32_t)byte, err));
  }
  return BERTH_OK;
}

static berth_status bpe_encode_word(berth__encoder *e, const uint32_t *word, size_t count, berth_error *err) {
  BERTH__TRY(bpe_write(e, word, count, err));
  const bool is_line = (e->t->pre_flags & BERTH__PRE_LINES) != 0 && e->text[0] == '\n';
  if (is_line || (e->t->pre_flags & BERTH__PRE_IGNORE_MERGES) != 0) {
    const int32_t id = berth__tokenizer_find(e->t, e->text, e->n_text);
    if (id >= 0) return berth__encoder_put(e, (uint32_t)id, err);
  }
  BERTH__TRY(berth__encoder_merge(e, berth__vocab_merge, err));
  for (size_t i = 0; i < e->n_symbols; i++) {
    const berth__symbol *symbol = &e->symbols[i];
    if (symbol->size != 0) BERTH__TRY(bpe_put(e, e->text + symbol->begin, symbol->size, err));
  }
  return BERTH_OK;
}

berth_status berth__encode_bpe(berth__encoder *e, const char *text, size_t size, berth_error *err) {
  berth_context *ctx = e->t->ctx;
  size_t *ends = NULL, n_ends = 0, count = 0;
  uint32_t *points = berth__alloc_array(ctx, size, sizeof *points);
  if (points == NULL) return berth__fail_nomem(err, "the text's code points");
  for (size_t at = 0; at < size; count++) {
    at += berth__utf8_read(text + at, size - at, &points[count]);
    if (e->t->escape_spaces && points[count] == ' ') points[count] = 0x2581;
  }
  berth_status status = berth__pre_split(ctx, e->t->pre, points, count, &ends, &n_ends, err);
  for (size_t i = 0, begin = 0; i < n_ends && status == BERTH_OK; begin = ends[i++])
    status = bpe_encode_word(e, points + begin, ends[i] - begin, err);
  berth__free(ctx, ends);
  berth__free(ctx, points);
  return status;
}
