/* A strict JSON reader (RFC 8259) for untrusted bytes. It is asked for one token at a time, keeps track of open
 * brackets in a few bits, and allocates nothing: strings stay in the input until they are decoded into a caller's
 * buffer.
 *
 *   berth__json json;
 *   berth__json_init(&json, bytes, size);
 *   berth__json_next(&json, &token, err);   KEY and value tokens between OBJECT_BEGIN and OBJECT_END, values between
 *                                           ARRAY_BEGIN and ARRAY_END, then END for ever
 *
 * Commas, colons and nesting are checked here, so a caller sees well-formed JSON or an error. Which keys there are, and
 * whether one comes twice, is for the caller to check. */
#ifndef BERTH_IMPORT_JSON_H
#define BERTH_IMPORT_JSON_H

#include <stdbool.h>

#include "base/status.h"

#define BERTH__JSON_DEPTH 32

typedef enum berth__json_kind {
  BERTH__JSON_END,
  BERTH__JSON_OBJECT_BEGIN,
  BERTH__JSON_OBJECT_END,
  BERTH__JSON_ARRAY_BEGIN,
  BERTH__JSON_ARRAY_END,
  BERTH__JSON_KEY,
  BERTH__JSON_STRING,
  BERTH__JSON_NUMBER,
  BERTH__JSON_TRUE,
  BERTH__JSON_FALSE,
  BERTH__JSON_NULL
} berth__json_kind;

typedef struct berth__json_token {
  berth__json_kind kind;
  const char *text; /* KEY and STRING: the text between the quotes, with escapes; NUMBER: its digits */
  size_t size;
  size_t at; /* its position in the input */
} berth__json_token;

typedef struct berth__json {
  const char *text;
  size_t size, at;
  uint32_t depth;
  uint32_t objects; /* bit k: the bracket at depth k is an object */
  uint8_t expect;   /* what may come next; private to json.c */
} berth__json;

void berth__json_init(berth__json *json, const void *text, size_t size);
berth_status berth__json_next(berth__json *json, berth__json_token *token, berth_error *err);
/* Reads a token that must be of this kind; `what` names it in the message: "the shape must be an array". */
berth_status berth__json_expect(berth__json *json, berth__json_kind kind, const char *what, berth__json_token *token,
                                berth_error *err);

/* The string that a KEY or STRING stands for, terminated; out must hold token->size + 1 bytes, which is always enough.
 * A string that contains a zero character is refused. Returns its length in *length. */
berth_status berth__json_decode(const berth__json_token *token, char *out, size_t *length, berth_error *err);
/* Compares a KEY or STRING without escapes with a word. */
bool berth__json_is(const berth__json_token *token, const char *word);
/* A NUMBER that is an integer from 0 to INT64_MAX. */
berth_status berth__json_natural(const berth__json_token *token, int64_t *out, berth_error *err);

#endif
