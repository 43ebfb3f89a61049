/* Text to tokens and back, with the vocabulary of a GGUF model: SentencePiece (SPM), BPE, WordPiece and Unigram.
 *
 * The texts of the tokens stay in the mapped file; what is made here is an index, of about 12 bytes per token and 6 per
 * merge. Encoding takes time in proportion to the text (times the logarithm of its longest word) and memory of about
 * forty times it, which is freed before it returns. Decoding allocates nothing. A tokenizer is not changed after it was
 * made, so that several threads may use one. */
#ifndef BERTH_TEXT_TOKENIZER_H
#define BERTH_TEXT_TOKENIZER_H

#include "import/gguf/gguf.h"

typedef struct berth__tokenizer berth__tokenizer;

/* Holds the model until it is destroyed. UNSUPPORTED names the kind of tokenizer, or of pre-tokenizer, that is not
 * known. */
berth_status berth__tokenizer_create(berth_context *ctx, berth__gguf *model, berth__tokenizer **out, berth_error *err);
void berth__tokenizer_destroy(berth__tokenizer *tokenizer); /* NULL is fine */

#define BERTH__NO_TOKEN (-1)

typedef struct berth__token_ids { /* BERTH__NO_TOKEN where there is none */
  int32_t bos, eos, eot, eom, unk, sep, pad, mask;
  bool add_bos, add_eos; /* whether encoding adds them where it is asked for special tokens */
} berth__token_ids;

const berth__token_ids *berth__tokenizer_ids(const berth__tokenizer *tokenizer);
uint32_t berth__tokenizer_count(const berth__tokenizer *tokenizer);
const char *berth__tokenizer_kind(const berth__tokenizer *tokenizer); /* "spm", "bpe", "wordpiece", "unigram" */
/* Whether generating ends with this token: eos, eot and what else models use for that. */
bool berth__tokenizer_is_end(const berth__tokenizer *tokenizer, uint32_t id);
/* The token with exactly this text, as the vocabulary writes it. */
int32_t berth__tokenizer_find(const berth__tokenizer *tokenizer, const char *text, size_t size);

/* ---- Encoding ---- */

enum {
  BERTH__ENCODE_ADD_SPECIAL = 1,  /* bos and its kin around the text, as the model wants them */
  BERTH__ENCODE_PARSE_SPECIAL = 2 /* "<|im_end|>" in the text is that token, and not its letters: for templates */
};

typedef struct berth__tokens { /* start from {0}; free ids with berth__free */
  uint32_t *ids;
  size_t count, capacity;
} berth__tokens;

/* Any bytes; those that are no UTF-8 become byte tokens or replacement characters, as the model has it. Adds to *out;
 * on failure, what was added is taken back. */
berth_status berth__tokenizer_encode(const berth__tokenizer *tokenizer, const char *text, size_t size, uint32_t flags,
                                     berth__tokens *out, berth_error *err);

/* ---- Decoding ---- */

/* The bytes of one token, which may be part of a character. Returns how many there are, and writes them where that many
 * fit. Control tokens have none unless `special`. */
size_t berth__tokenizer_piece(const berth__tokenizer *tokenizer, uint32_t id, bool special, char *out, size_t capacity);

/* Decodes one token after another, so that every output is well-formed UTF-8 and no character is split: bytes that
 * begin a character wait for the rest of it. Bytes that can be no part of one become U+FFFD. */
typedef struct berth__stream {
  const berth__tokenizer *tokenizer;
  bool special;  /* write control tokens too */
  bool at_start; /* the space that encoding puts before the first word is left out */
  uint8_t n_held;
  char held[4];
} berth__stream;

berth__stream berth__stream_begin(const berth__tokenizer *tokenizer, bool special, bool at_start);
size_t berth__stream_capacity(const berth__tokenizer *tokenizer);         /* of `out` below; the same for every token */
size_t berth__stream_next(berth__stream *stream, uint32_t id, char *out); /* returns how much was written, maybe 0 */
size_t berth__stream_end(berth__stream *stream, char *out);               /* what still waited, as U+FFFD */

#endif
