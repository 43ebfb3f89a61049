/* Pre-tokenizers: they split a text into words before BPE merges inside each of them. A model names its pre-tokenizer
 * in tokenizer.ggml.pre; pretoken_table.c has a row for each name, with its patterns. */
#ifndef BERTH_TEXT_PRETOKEN_H
#define BERTH_TEXT_PRETOKEN_H

#include <stdbool.h>

#include "base/context.h"

enum {                          /* properties of a name besides its patterns */
  BERTH__PRE_IGNORE_MERGES = 1, /* a word that is a token becomes that token, whatever the merges say */
  BERTH__PRE_ADD_BOS = 2,
  BERTH__PRE_NO_BOS = 4,    /* there is no such token unless the file says so */
  BERTH__PRE_RAW = 8,       /* tokens are UTF-8, with U+2581 for a space, instead of bytes written as letters */
  BERTH__PRE_LINES = 16,    /* a word of line feeds that is a token becomes that token */
  BERTH__PRE_FORCE_BOS = 32 /* even if the file says no */
};

#define BERTH__PRE_PASSES 6

typedef struct berth__pre_row {
  const char *names; /* separated by single spaces */
  uint32_t flags;
  const char *passes[BERTH__PRE_PASSES]; /* each splits the words of the previous one further */
} berth__pre_row;

/* NULL: unknown name */
const berth__pre_row *berth__pre_find(const char *name, size_t size);
const berth__pre_row *berth__pre_rows(size_t *count);

typedef struct berth__pre berth__pre; /* a row, compiled for matching */

berth_status berth__pre_create(berth_context *ctx, const berth__pre_row *row, berth__pre **out, berth_error *err);
void berth__pre_destroy(berth_context *ctx, berth__pre *pre);
/* A text as code points; ends[i] is the end of word i, as an index into them. The caller frees both with berth__free.
 * Time is linear in count. */
berth_status berth__pre_split(berth_context *ctx, const berth__pre *pre, const uint32_t *text, size_t count,
                              size_t **ends, size_t *n_ends, berth_error *err);

#endif
