/* Text to tokens and back, with the vocabulary of a GGUF model: SentencePiece (SPM), BPE, WordPiece and Unigram.
 *
 * The texts of the tokens stay in the mapped file; what is built here is an index of about 12 bytes per token and 6 per
 * merge. Encoding takes time proportional to the text (times the logarithm of its longest word), and about forty times
 * its memory, which is freed before it returns. Decoding allocates nothing. A tokenizer is immutable, so several
 * threads may share one. */
#ifndef BERTH_TEXT_TOKENIZER_H
#define BERTH_TEXT_TOKENIZER_H

#include "import/gguf/gguf.h"

typedef struct berth__tokenizer berth__tokenizer;

/* Keeps the model open until it is destroyed. UNSUPPORTED names the unknown kind of tokenizer or pre-tokenizer. */
berth_status berth__tokenizer_create(berth_context *ctx, berth__gguf *model, berth__tokenizer **out, berth_error *err);
void berth__tokenizer_destroy(berth__tokenizer *tokenizer); /* NULL is allowed */

#define BERTH__NO_TOKEN (-1)

typedef struct berth__token_ids { /* BERTH__NO_TOKEN if there is none */
  int32_t bos, eos, eot, eom, unk, sep, pad, mask;
  bool add_bos, add_eos; /* whether encoding adds them when special tokens are requested */
} berth__token_ids;

const berth__token_ids *berth__tokenizer_ids(const berth__tokenizer *tokenizer);
uint32_t berth__tokenizer_count(const berth__tokenizer *tokenizer);
const char *berth__tokenizer_kind(const berth__tokenizer *tokenizer); /* "spm", "bpe", "wordpiece", "unigram" */
/* Whether this token ends generation: eos, eot and others that models use for it. */
bool berth__tokenizer_is_end(const berth__tokenizer *tokenizer, uint32_t id);
/* The token with exactly this text, in the vocabulary's spelling. */
int32_t berth__tokenizer_find(const berth__tokenizer *tokenizer, const char *text, size_t size);

/* ---- Encoding ---- */

enum {
  BERTH__ENCODE_ADD_SPECIAL = 1,  /* bos and so on around the text, as the model requires */
  BERTH__ENCODE_PARSE_SPECIAL = 2 /* "<|im_end|>" in the text is that token instead of letters: for templates */
};

typedef struct berth__tokens { /* start from {0}; free ids with berth__free */
  uint32_t *ids;
  size_t count, capacity;
} berth__tokens;

/* Takes any bytes; invalid UTF-8 becomes byte tokens or replacement characters, depending on the model. Appends to
 * *out, which is unchanged on failure. */
berth_status berth__tokenizer_encode(const berth__tokenizer *tokenizer, const char *text, size_t size, uint32_t flags,
                                     berth__tokens *out, berth_error *err);

/* ---- Decoding ---- */

/* The bytes of one token, which may be part of a character. Returns how many there are, and writes them if they fit.
 * Control tokens have none unless `special`. */
size_t berth__tokenizer_piece(const berth__tokenizer *tokenizer, uint32_t id, bool special, char *out, size_t capacity);

/* Decodes one token after another such that every output is well-formed UTF-8 and no character is split: bytes that
 * begin a character are held back until the rest of it arrives. Bytes that cannot be part of one become U+FFFD. */
typedef struct berth__stream {
  const berth__tokenizer *tokenizer;
  bool special;  /* write control tokens too */
  bool at_start; /* the space that encoding puts before the first word is dropped */
  uint8_t n_held;
  char held[4];
} berth__stream;

berth__stream berth__stream_begin(const berth__tokenizer *tokenizer, bool special, bool at_start);
size_t berth__stream_capacity(const berth__tokenizer *tokenizer);         /* of `out` below; the same for every token */
size_t berth__stream_next(berth__stream *stream, uint32_t id, char *out); /* returns how much was written, perhaps 0 */
size_t berth__stream_end(berth__stream *stream, char *out);               /* what is still held back, as U+FFFD */

#endif
