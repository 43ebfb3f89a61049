/* SentencePiece's BPE: among the adjacent pieces that form a token together, those with the best score merge first. */
#include <string.h>

#include "text/vocab.h"

/* Scores as integers, where smaller is better. */
static uint32_t spm_order(float score) {
  uint32_t bits;
  score += 0.0f; /* turns -0 into 0 */
  memcpy(&bits, &score, sizeof bits);
  return (bits & 0x80000000u) != 0 ? bits : ~bits & 0x7FFFFFFFu;
}

static bool spm_rank(const berth__tokenizer *t, const char *text, size_t left, size_t right, uint32_t *rank) {
  const int32_t id = berth__tokenizer_find(t, text, left + right);
  if (id < 0) return false;
  *rank = spm_order(berth__vocab_score(t, (uint32_t)id));
  return true;
}

berth_status berth__encode_spm(berth__encoder *e, const char *text, size_t size, bool first, berth_error *err) {
  static const char space[] = "\xE2\x96\x81";
  e->n_text = 0;
  if (first && e->t->add_space_prefix) BERTH__TRY(berth__encoder_add_text(e, space, 3, err));
  for (size_t at = 0; at < size;) {
    const char *next = memchr(text + at, ' ', size - at);
    const size_t plain = next != NULL ? (size_t)(next - text) - at : size - at;
    BERTH__TRY(berth__encoder_add_text(e, text + at, plain, err));
    if (next != NULL) BERTH__TRY(berth__encoder_add_text(e, space, 3, err));
    at += plain + (next != NULL);
  }
  BERTH__TRY(berth__encoder_merge(e, spm_rank, err));
  for (size_t i = 0; i < e->n_symbols; i++) {
    const berth__symbol *symbol = &e->symbols[i];
    if (symbol->size == 0) continue;
    const int32_t id = berth__tokenizer_find(e->t, e->text + symbol->begin, symbol->size);
    if (id >= 0) {
      BERTH__TRY(berth__encoder_put(e, (uint32_t)id, err));
      continue;
    }
    for (uint32_t k = 0; k < symbol->size; k++) { /* not a token: byte by byte */
      const int32_t byte = e->t->byte_ids[(uint8_t)e->text[symbol->begin + k]];
      const int32_t put = byte >= 0 ? byte : e->t->ids.unk;
      if (put >= 0) BERTH__TRY(berth__encoder_put(e, (uint32_t)put, err));
    }
  }
  return BERTH_OK;
}
