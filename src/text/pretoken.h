/* Pre-tokenizers: what splits a text into words before BPE merges inside each of them. A model names its own in
 * tokenizer.ggml.pre; pretoken_table.c has a row for each name, with the patterns that split. */
#ifndef BERTH_TEXT_PRETOKEN_H
#define BERTH_TEXT_PRETOKEN_H

#include <stdbool.h>

#include "base/context.h"

enum {                          /* what a name says besides how to split */
  BERTH__PRE_IGNORE_MERGES = 1, /* a word that is a token is that token, whatever the merges say */
  BERTH__PRE_ADD_BOS = 2,
  BERTH__PRE_NO_BOS = 4,    /* there is no such token unless the file says so */
  BERTH__PRE_RAW = 8,       /* tokens are UTF-8, with U+2581 for a space, and not bytes written as letters */
  BERTH__PRE_LINES = 16,    /* a word of line feeds that is a token is that token */
  BERTH__PRE_FORCE_BOS = 32 /* even where the file says no */
};

#define BERTH__PRE_PASSES 6

typedef struct berth__pre_row {
  const char *names; /* separated by single spaces */
  uint32_t flags;
  const char *passes[BERTH__PRE_PASSES]; /* each splits further what the one before has split */
} berth__pre_row;

/* NULL: there is no such name. */
const berth__pre_row *berth__pre_find(const char *name, size_t size);
const berth__pre_row *berth__pre_rows(size_t *count);

typedef struct berth__pre berth__pre; /* a row, ready to match */

berth_status berth__pre_create(berth_context *ctx, const berth__pre_row *row, berth__pre **out, berth_error *err);
void berth__pre_destroy(berth_context *ctx, berth__pre *pre);
/* A text as code points; ends[i] becomes the end of word i, as an index into them. Both are the caller's to free with
 * berth__free. Time is linear in count. */
berth_status berth__pre_split(berth_context *ctx, const berth__pre *pre, const uint32_t *text, size_t count,
                              size_t **ends, size_t *n_ends, berth_error *err);

#endif
