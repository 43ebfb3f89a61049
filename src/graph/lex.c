/* Tokens of the text form. */
#include "graph/lex.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/number.h"

berth_status berth__lexer_fail(const berth__lexer *lexer, berth_error *err, const char *fmt, ...) {
  char message[384];
  va_list args;
  va_start(args, fmt);
  vsnprintf(message, sizeof message, fmt, args);
  va_end(args);
  return berth__fail(err, BERTH_MALFORMED, "line %u: %s", lexer->line, message);
}

berth_status berth__lexer_expected(const berth__lexer *lexer, const char *what, berth_error *err) {
  if (lexer->token.kind == BERTH__TOKEN_END)
    return berth__lexer_fail(lexer, err, "expected %s but the text ends", what);
  return berth__lexer_fail(lexer, err, "expected %s but found '%.60s'", what, lexer->token.text);
}

static bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.';
}

static bool is_name_char(char c) { return is_word_char(c) || c == ':' || c == '/' || c == '-'; }

static berth_status add_char(berth__lexer *lexer, char c, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(lexer->ctx, lexer->text, lexer->text_capacity, lexer->token.size + 2, err));
  lexer->text[lexer->token.size++] = c;
  lexer->text[lexer->token.size] = '\0';
  lexer->token.text = lexer->text;
  return BERTH_OK;
}

static void graph_lex_skip_space(berth__lexer *lexer) {
  while (lexer->at < lexer->end) {
    if (*lexer->at == '#') {
      while (lexer->at < lexer->end && *lexer->at != '\n') lexer->at++;
    } else if (*lexer->at == '\n') {
      lexer->line++;
      lexer->at++;
    } else if (*lexer->at == ' ' || *lexer->at == '\t' || *lexer->at == '\r') {
      lexer->at++;
    } else {
      return;
    }
  }
}

int berth__hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

static berth_status graph_lex_read_escape(berth__lexer *lexer, char *out, berth_error *err) {
  if (lexer->at == lexer->end) return berth__lexer_fail(lexer, err, "a string is not closed");
  char c = *lexer->at++;
  switch (c) {
    case 'n': *out = '\n'; return BERTH_OK;
    case 't': *out = '\t'; return BERTH_OK;
    case 'r': *out = '\r'; return BERTH_OK;
    case '"':
    case '\\': *out = c; return BERTH_OK;
    case 'x':
      if (lexer->end - lexer->at >= 2 && berth__hex_digit(lexer->at[0]) >= 0 && berth__hex_digit(lexer->at[1]) >= 0) {
        *out = (char)(berth__hex_digit(lexer->at[0]) * 16 + berth__hex_digit(lexer->at[1]));
        lexer->at += 2;
        return *out != '\0' ? BERTH_OK : berth__lexer_fail(lexer, err, "a string must not hold a zero byte");
      }
      break;
    default: break;
  }
  return berth__lexer_fail(lexer, err, "a string has an escape that is not one of \\n \\t \\r \\\" \\\\ \\xHH");
}

/* lexer->at is after the opening quote. */
static berth_status graph_lex_read_string(berth__lexer *lexer, berth_error *err) {
  for (;;) {
    if (lexer->at == lexer->end || *lexer->at == '\n') return berth__lexer_fail(lexer, err, "a string is not closed");
    char c = *lexer->at++;
    if (c == '"') return BERTH_OK;
    if (c == '\0') return berth__lexer_fail(lexer, err, "a string must not hold a zero byte");
    if (c == '\\') BERTH__TRY(graph_lex_read_escape(lexer, &c, err));
    BERTH__TRY(add_char(lexer, c, err));
  }
}

static berth_status read_while(berth__lexer *lexer, bool (*belongs)(char), berth_error *err) {
  while (lexer->at < lexer->end && belongs(*lexer->at)) BERTH__TRY(add_char(lexer, *lexer->at++, err));
  return BERTH_OK;
}

static berth_status graph_lex_read_number(berth__lexer *lexer, berth_error *err) {
  BERTH__TRY(add_char(lexer, *lexer->at++, err));
  for (;;) {
    char last = lexer->text[lexer->token.size - 1];
    bool is_sign = lexer->at < lexer->end && (*lexer->at == '-' || *lexer->at == '+') && (last == 'e' || last == 'E');
    if (lexer->at == lexer->end || !(is_word_char(*lexer->at) || is_sign)) return BERTH_OK;
    BERTH__TRY(add_char(lexer, *lexer->at++, err));
  }
}

static berth_status read_token(berth__lexer *lexer, berth_error *err) {
  char c = *lexer->at;
  if (c == '"') {
    lexer->token.kind = BERTH__TOKEN_STRING;
    lexer->at++;
    return graph_lex_read_string(lexer, err);
  }
  if (c == '%') {
    lexer->token.kind = BERTH__TOKEN_VALUE;
    lexer->at++;
    if (lexer->at < lexer->end && *lexer->at == '"') {
      lexer->at++;
      BERTH__TRY(graph_lex_read_string(lexer, err));
    } else {
      BERTH__TRY(read_while(lexer, is_name_char, err));
    }
    return lexer->token.size != 0 ? BERTH_OK : berth__lexer_fail(lexer, err, "a name must follow %%");
  }
  if ((c >= '0' && c <= '9') || c == '-' || c == '+') {
    lexer->token.kind = BERTH__TOKEN_NUMBER;
    return graph_lex_read_number(lexer, err);
  }
  if (is_word_char(c)) {
    lexer->token.kind = BERTH__TOKEN_WORD;
    return read_while(lexer, is_word_char, err);
  }
  if (strchr("{}()[]=,:", c) == NULL || c == '\0')
    return berth__lexer_fail(lexer, err, "unexpected character 0x%02x", (unsigned)(unsigned char)c);
  lexer->token.kind = c;
  lexer->at++;
  return add_char(lexer, c, err);
}

berth_status berth__lexer_next(berth__lexer *lexer, berth_error *err) {
  graph_lex_skip_space(lexer);
  lexer->token = (berth__token){.kind = BERTH__TOKEN_END, .text = "", .size = 0};
  return lexer->at == lexer->end ? BERTH_OK : read_token(lexer, err);
}

berth_status berth__lexer_start(berth__lexer *lexer, berth_context *ctx, const char *text, size_t size,
                                berth_error *err) {
  *lexer = (berth__lexer){.ctx = ctx, .at = text, .end = text + size, .line = 1};
  return berth__lexer_next(lexer, err);
}

void berth__lexer_finish(berth__lexer *lexer) {
  berth__free(lexer->ctx, lexer->text);
  lexer->text = NULL;
}

bool berth__lexer_is_word(const berth__lexer *lexer, const char *word) {
  return lexer->token.kind == BERTH__TOKEN_WORD && strcmp(lexer->token.text, word) == 0;
}

berth_status berth__lexer_take(berth__lexer *lexer, int kind, berth_error *err) {
  char what[4] = {'\'', (char)kind, '\'', '\0'};
  if (lexer->token.kind != kind) return berth__lexer_expected(lexer, what, err);
  return berth__lexer_next(lexer, err);
}

berth_status berth__lexer_int(berth__lexer *lexer, int64_t *out, berth_error *err) {
  char *end;
  if (lexer->token.kind != BERTH__TOKEN_NUMBER) return berth__lexer_expected(lexer, "an integer", err);
  errno = 0;
  long long value = strtoll(lexer->token.text, &end, 10);
  if (*end != '\0') return berth__lexer_expected(lexer, "an integer", err);
  if (errno == ERANGE) return berth__lexer_fail(lexer, err, "%s does not fit in 64 bits", lexer->token.text);
  *out = value;
  return berth__lexer_next(lexer, err);
}

berth_status berth__lexer_double(berth__lexer *lexer, double *out, berth_error *err) {
  bool is_number = lexer->token.kind == BERTH__TOKEN_NUMBER || berth__lexer_is_word(lexer, "inf") ||
                   berth__lexer_is_word(lexer, "nan");
  if (!is_number) return berth__lexer_expected(lexer, "a number", err);
  if (!berth__parse_double(lexer->token.text, out)) return berth__lexer_expected(lexer, "a number", err);
  return berth__lexer_next(lexer, err);
}
