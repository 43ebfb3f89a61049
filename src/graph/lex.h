/* Tokens of the text form. */
#ifndef BERTH_GRAPH_LEX_H
#define BERTH_GRAPH_LEX_H

#include <stdbool.h>

#include "base/context.h"

/* Punctuation tokens have their character as kind. */
enum {
  BERTH__TOKEN_END = 256,
  BERTH__TOKEN_WORD,   /* matmul f32 axis inf */
  BERTH__TOKEN_VALUE,  /* %name or %"name": text is the name */
  BERTH__TOKEN_STRING, /* "text", with escapes resolved */
  BERTH__TOKEN_NUMBER
};

typedef struct berth__token {
  int kind;
  const char *text; /* terminated; valid until the next token */
  size_t size;
} berth__token;

typedef struct berth__lexer {
  berth_context *ctx;
  const char *at, *end;
  uint32_t line;
  berth__token token;
  char *text; /* of the current token */
  size_t text_capacity;
} berth__lexer;

berth_status berth__lexer_start(berth__lexer *lexer, berth_context *ctx, const char *text, size_t size,
                                berth_error *err);
void berth__lexer_finish(berth__lexer *lexer);
berth_status berth__lexer_next(berth__lexer *lexer, berth_error *err);
bool berth__lexer_is_word(const berth__lexer *lexer, const char *word);
/* Consumes one punctuation token. */
berth_status berth__lexer_take(berth__lexer *lexer, int kind, berth_error *err);
berth_status berth__lexer_int(berth__lexer *lexer, int64_t *out, berth_error *err);
berth_status berth__lexer_double(berth__lexer *lexer, double *out, berth_error *err); /* also inf, -inf, nan */
int berth__hex_digit(char c);                                                         /* -1: not a digit */
/* MALFORMED errors that begin with the line. */
berth_status berth__lexer_fail(const berth__lexer *lexer, berth_error *err, const char *fmt, ...) BERTH__PRINTF(3, 4);
berth_status berth__lexer_expected(const berth__lexer *lexer, const char *what, berth_error *err);

#endif
