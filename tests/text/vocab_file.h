/* Small vocabularies as GGUF files in memory. */
#ifndef BERTH_TESTS_VOCAB_FILE_H
#define BERTH_TESTS_VOCAB_FILE_H

#include "support.h"
#include "text/tokenizer.h"

typedef struct vocab_desc {
  const char *model, *pre;   /* pre may be NULL */
  const char *name;          /* general.name, or NULL */
  const char *const *tokens; /* ended by NULL. One that begins with \x01 is a control token, with \x02 one that a user
                                defined, with \x03 unknown, with \x04 a byte; the mark is not part of it */
  const float *scores;       /* or NULL */
  const float *types;        /* token_type as floats, which no file should have; NULL: integers, by the marks */
  const char *const *merges; /* or NULL */
  const char *const *ids;    /* "bos_token_id=1", "add_bos_token=true", ended by NULL; or NULL */
  const char *charsmap;      /* or NULL */
  size_t charsmap_size;
} vocab_desc;

typedef struct vocab_bytes {
  uint8_t *data;
  size_t size, capacity;
} vocab_bytes;

vocab_bytes vocab_file_make(const vocab_desc *desc); /* free data with free() */
/* A tokenizer over such a file. */
berth_status vocab_open(berth_context *ctx, const vocab_desc *desc, berth__tokenizer **out, berth_error *err);

/* Encodes and writes the ids as "1 2 3" into a buffer that lives until the next call. */
const char *vocab_encode(berth__tokenizer *t, const char *text, size_t size, uint32_t flags);

#endif
