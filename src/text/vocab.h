/* The internals of a tokenizer, shared by the files of this folder. */
#ifndef BERTH_TEXT_VOCAB_H
#define BERTH_TEXT_VOCAB_H

#include "text/pretoken.h"
#include "text/tokenizer.h"

typedef enum berth__vocab_kind {
  BERTH__VOCAB_SPM,
  BERTH__VOCAB_BPE,
  BERTH__VOCAB_WORDPIECE,
  BERTH__VOCAB_UNIGRAM
} berth__vocab_kind;

enum { /* attributes of a token; several may apply */
  BERTH__TOKEN_UNKNOWN = 1,
  BERTH__TOKEN_UNUSED = 2,
  BERTH__TOKEN_NORMAL = 4,
  BERTH__TOKEN_CONTROL = 8,
  BERTH__TOKEN_USER = 16,
  BERTH__TOKEN_BYTE = 32,
  BERTH__TOKEN_LSTRIP = 64, /* swallows white space on its left */
  BERTH__TOKEN_RSTRIP = 128,
  BERTH__TOKEN_END = 256 /* ends generation */
};

typedef struct berth__span {
  const char *data;
  size_t size;
} berth__span;

/* Tokens sorted by text: prefixes of a text are looked up byte by byte, as in a trie. */
typedef struct berth__sorted {
  uint32_t *ids;
  uint32_t count;
  uint32_t first[257]; /* where those that begin with a byte start */
} berth__sorted;

/* A hash table of numbers. Its tags distinguish most entries without reading their texts, which are in the file. */
typedef struct berth__slots {
  uint32_t *values;
  uint8_t *tags; /* 0: empty */
  uint32_t count;
} berth__slots;

typedef struct berth__charsmap { /* how a Unigram model normalises; see unigram.c */
  const uint8_t *nodes;
  size_t n_nodes;
  const char *texts;
  size_t n_texts;
} berth__charsmap;

struct berth__tokenizer {
  berth_context *ctx;
  berth__gguf *model;
  berth__vocab_kind kind;
  berth__token_ids ids;
  bool add_space_prefix, merge_spaces, escape_spaces, lowercase, strip_accents;
  uint32_t pre_flags;
  berth__pre *pre; /* BPE */

  uint32_t count;
  const uint8_t *texts; /* of the tokens, in the file: each a u64 length and bytes */
  uint32_t *offsets;    /* of each token in texts, and of their end */
  uint16_t *attributes;
  berth__gguf_array scores; /* count 0: there are none */
  size_t longest;           /* of any token's text */
  berth__slots slots;       /* ids by their texts */

  const uint8_t *merges; /* BPE: in the file, like texts. Earlier ones merge first, so offsets are ranks */
  size_t merges_size;
  berth__slots merge_slots; /* offsets by both texts */

  int32_t byte_ids[256];
  berth__sorted special; /* tokens that are searched for in a text before anything else */
  berth__sorted words;   /* WordPiece, Unigram: tokens that texts are split into */
  berth__sorted user;    /* Unigram: what normalising leaves unchanged */
  berth__charsmap charsmap;
  float unknown_score;
};

static inline uint64_t berth__vocab_load64(const uint8_t *at) {
  uint64_t value = 0;
  for (int i = 7; i >= 0; i--) value = value << 8 | at[i];
  return value;
}

/* Sizes come from the index and not from the file, which another program may change. */
static inline berth__span berth__vocab_text(const berth__tokenizer *t, uint32_t id) {
  return (berth__span){(const char *)t->texts + t->offsets[id] + 8, t->offsets[id + 1] - t->offsets[id] - 8};
}

float berth__vocab_score(const berth__tokenizer *t, uint32_t id);
/* The merge of two adjacent pieces of a text: its rank. False: there is none. */
bool berth__vocab_merge(const berth__tokenizer *t, const char *text, size_t left, size_t right, uint32_t *rank);
berth_status berth__vocab_load(berth__tokenizer *t, berth_error *err);        /* tokens, types, scores, their index */
berth_status berth__vocab_load_merges(berth__tokenizer *t, berth_error *err); /* BPE */
void berth__vocab_rest(const berth__tokenizer *t); /* the file's pages are not needed for a while */
berth_status berth__vocab_load_special(berth__tokenizer *t, berth_error *err); /* ids and attributes: special.c */
berth_status berth__unigram_load(berth__tokenizer *t, berth_error *err);

/* Sorts the tokens that have any of these attributes. */
berth_status berth__sorted_make(const berth__tokenizer *t, uint32_t attributes, berth__sorted *out, berth_error *err);

/* A position in a walk through the sorted tokens: those from low to high begin with the `depth` bytes so far. */
typedef struct berth__walk {
  uint32_t low, high;
  size_t depth;
} berth__walk;

#define BERTH__WALK_BEGIN ((berth__walk){0, UINT32_MAX, 0})
/* Advances by a byte; false if no token continues like that. */
bool berth__walk_step(const berth__tokenizer *t, const berth__sorted *sorted, berth__walk *walk, char byte);
/* The token that ends here, or BERTH__NO_TOKEN. */
int32_t berth__walk_token(const berth__tokenizer *t, const berth__sorted *sorted, const berth__walk *walk);

/* ---- Encoding ---- */

typedef struct berth__symbol {
  uint32_t begin, size; /* in the text; size 0: it was merged into the previous one */
  int32_t prev, next;   /* -1: none */
} berth__symbol;

typedef struct berth__pair {
  uint64_t order; /* what merges first: the rank, then the leftmost */
  uint32_t right, size;
} berth__pair;

/* What encoding needs besides its output; reused from word to word. */
typedef struct berth__encoder {
  const berth__tokenizer *t;
  berth__tokens *out;
  berth__symbol *symbols;
  size_t n_symbols, symbols_capacity;
  berth__pair *heap;
  size_t n_heap, heap_capacity;
  char *text; /* in the spelling of the vocabulary */
  size_t n_text, text_capacity;
} berth__encoder;

/* The rank of merging two adjacent pieces; false: they do not merge. */
typedef bool (*berth__merge_rank)(const berth__tokenizer *t, const char *text, size_t left, size_t right,
                                  uint32_t *rank);

berth_status berth__encoder_add_text(berth__encoder *e, const char *bytes, size_t size, berth_error *err);
berth_status berth__encoder_put(berth__encoder *e, uint32_t id, berth_error *err);
/* Splits the encoder's text into characters and merges them until nothing merges any more. */
berth_status berth__encoder_merge(berth__encoder *e, berth__merge_rank rank, berth_error *err);

/* Encode a piece of text without special tokens. `first`: only special tokens came before it. */
berth_status berth__encode_spm(berth__encoder *e, const char *text, size_t size, bool first, berth_error *err);
berth_status berth__encode_bpe(berth__encoder *e, const char *text, size_t size, berth_error *err);
berth_status berth__encode_wordpiece(berth__encoder *e, const char *text, size_t size, berth_error *err);
berth_status berth__encode_unigram(berth__encoder *e, const char *text, size_t size, berth_error *err);

/* ---- Special tokens in a text ---- */

typedef struct berth__fragment {
  size_t begin, end; /* of plain text */
  int32_t id;        /* or a token, instead of text */
} berth__fragment;

/* Splits a text at its special tokens. The caller frees *out with berth__free. */
berth_status berth__special_split(const berth__tokenizer *t, const char *text, size_t size, bool parse,
                                  berth__fragment **out, size_t *count, berth_error *err);

/* The code point that stands for a byte in the vocabularies of GPT-2 and its successors; and the reverse, -1: none. */
uint32_t berth__bpe_letter(uint8_t byte);
int berth__bpe_byte(uint32_t letter);

#endif
