#include "import/json.h"

#include <string.h>

#include "import/utf8.h"

/* What may come next. A comma leads to KEY or VALUE; the variants with END apply right after a bracket. */
enum {
  EXPECT_VALUE,
  EXPECT_VALUE_OR_END,
  EXPECT_KEY,
  EXPECT_KEY_OR_END,
  EXPECT_COMMA_OR_END,
  EXPECT_NOTHING
};

void berth__json_init(berth__json *json, const void *text, size_t size) {
  memset(json, 0, sizeof *json);
  json->text = text;
  json->size = size;
  json->expect = EXPECT_VALUE;
}

static berth_status import_json_wrong(const berth__json *json, const char *what, berth_error *err) {
  if (json->at >= json->size) return berth__fail(err, BERTH_MALFORMED, "the JSON ends too early: %s", what);
  return berth__fail(err, BERTH_MALFORMED, "the JSON is wrong at byte %zu: %s", json->at, what);
}

static int peek(const berth__json *json) { return json->at < json->size ? (unsigned char)json->text[json->at] : -1; }

static void import_json_skip_space(berth__json *json) {
  for (int c = peek(json); c == ' ' || c == '\t' || c == '\n' || c == '\r'; c = peek(json)) json->at++;
}

static bool inside_object(const berth__json *json) {
  return json->depth > 0 && ((json->objects >> (json->depth - 1)) & 1u);
}

static uint8_t after_value(const berth__json *json) { return json->depth > 0 ? EXPECT_COMMA_OR_END : EXPECT_NOTHING; }

static int hex_digit(int c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/* Four hexadecimal digits at text; -1 if they are not all there. */
static int32_t hex4(const char *text, size_t size) {
  if (size < 4) return -1;
  int32_t value = 0;
  for (size_t i = 0; i < 4; i++) {
    int digit = hex_digit((unsigned char)text[i]);
    if (digit < 0) return -1;
    value = value * 16 + digit;
  }
  return value;
}

/* The character for the escape at text[0] == '\\', and the bytes that the escape takes; 0 if it is wrong. */
static size_t import_json_read_escape(const char *text, size_t size, uint32_t *character) {
  static const char letters[] = "\"\\/bfnrt";
  static const char meaning[] = "\"\\/\b\f\n\r\t";
  if (size < 2) return 0;
  const char *found = text[1] == '\0' ? NULL : strchr(letters, text[1]);
  if (found) {
    *character = (uint32_t)meaning[found - letters];
    return 2;
  }
  int32_t high = text[1] == 'u' ? hex4(text + 2, size - 2) : -1;
  if (high < 0 || (high >= 0xDC00 && high <= 0xDFFF)) return 0;
  *character = (uint32_t)high;
  if (high < 0xD800 || high > 0xDBFF) return 6;
  int32_t low = size >= 12 && text[6] == '\\' && text[7] == 'u' ? hex4(text + 8, size - 8) : -1;
  if (low < 0xDC00 || low > 0xDFFF) return 0;
  *character = 0x10000 + (((uint32_t)high - 0xD800) << 10) + ((uint32_t)low - 0xDC00);
  return 12;
}

static berth_status import_json_read_string(berth__json *json, berth__json_token *token, berth_error *err) {
  size_t start = ++json->at; /* after the quote */
  for (;;) {
    int c = peek(json);
    size_t left = json->size - json->at, step;
    uint32_t ignored;
    if (c < 0) return import_json_wrong(json, "a string is not closed", err);
    if (c == '"') break;
    if (c < 0x20) return import_json_wrong(json, "a control character stands in a string; escape it", err);
    if (c == '\\') {
      step = import_json_read_escape(json->text + json->at, left, &ignored);
      if (step == 0) return import_json_wrong(json, "this escape does not exist or is half of a pair", err);
    } else {
      step = berth__utf8_length(json->text + json->at, left);
      if (step == 0) return import_json_wrong(json, "a string is not UTF-8", err);
    }
    json->at += step;
  }
  token->text = json->text + start;
  token->size = json->at - start;
  json->at++;
  return BERTH_OK;
}

static size_t skip_digits(berth__json *json) {
  size_t start = json->at;
  for (int c = peek(json); c >= '0' && c <= '9'; c = peek(json)) json->at++;
  return json->at - start;
}

static berth_status import_json_read_number(berth__json *json, berth__json_token *token, berth_error *err) {
  size_t start = json->at;
  if (peek(json) == '-') json->at++;
  int first = peek(json);
  size_t digits = skip_digits(json);
  if (digits == 0) return import_json_wrong(json, "a number needs a digit here", err);
  if (first == '0' && digits > 1) return import_json_wrong(json, "a number must not begin with 0", err);
  if (peek(json) == '.') {
    json->at++;
    if (skip_digits(json) == 0) return import_json_wrong(json, "a number needs a digit behind its point", err);
  }
  if (peek(json) == 'e' || peek(json) == 'E') {
    json->at++;
    if (peek(json) == '+' || peek(json) == '-') json->at++;
    if (skip_digits(json) == 0) return import_json_wrong(json, "a number needs a digit in its exponent", err);
  }
  token->kind = BERTH__JSON_NUMBER;
  token->text = json->text + start;
  token->size = json->at - start;
  return BERTH_OK;
}

static berth_status read_word(berth__json *json, berth__json_token *token, berth_error *err) {
  static const struct {
    const char *text;
    berth__json_kind kind;
  } words[] = {{"true", BERTH__JSON_TRUE}, {"false", BERTH__JSON_FALSE}, {"null", BERTH__JSON_NULL}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t length = strlen(words[i].text);
    if (json->size - json->at >= length && memcmp(json->text + json->at, words[i].text, length) == 0) {
      json->at += length;
      token->kind = words[i].kind;
      return BERTH_OK;
    }
  }
  return import_json_wrong(json, "a value is expected here", err);
}

static berth_status open_bracket(berth__json *json, berth__json_token *token, bool object, berth_error *err) {
  if (json->depth == BERTH__JSON_DEPTH) return import_json_wrong(json, "it is nested too deeply", err);
  json->objects &= ~(1u << json->depth);
  if (object) json->objects |= 1u << json->depth;
  json->depth++;
  json->at++;
  json->expect = object ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
  token->kind = object ? BERTH__JSON_OBJECT_BEGIN : BERTH__JSON_ARRAY_BEGIN;
  return BERTH_OK;
}

static void close_bracket(berth__json *json, berth__json_token *token) {
  token->kind = inside_object(json) ? BERTH__JSON_OBJECT_END : BERTH__JSON_ARRAY_END;
  json->at++;
  json->depth--;
  json->expect = after_value(json);
}

static berth_status read_key(berth__json *json, berth__json_token *token, berth_error *err) {
  if (peek(json) != '"') return import_json_wrong(json, "a key in quotes is expected here", err);
  BERTH__TRY(import_json_read_string(json, token, err));
  token->kind = BERTH__JSON_KEY;
  import_json_skip_space(json);
  if (peek(json) != ':') return import_json_wrong(json, "a colon is expected behind a key", err);
  json->at++;
  json->expect = EXPECT_VALUE;
  return BERTH_OK;
}

static berth_status read_value(berth__json *json, berth__json_token *token, berth_error *err) {
  int c = peek(json);
  if (c == '{' || c == '[') return open_bracket(json, token, c == '{', err);
  if (c == '"') {
    token->kind = BERTH__JSON_STRING;
    BERTH__TRY(import_json_read_string(json, token, err));
  } else if (c == '-' || (c >= '0' && c <= '9')) {
    BERTH__TRY(import_json_read_number(json, token, err));
  } else {
    BERTH__TRY(read_word(json, token, err));
  }
  json->expect = after_value(json);
  return BERTH_OK;
}

berth_status berth__json_next(berth__json *json, berth__json_token *token, berth_error *err) {
  memset(token, 0, sizeof *token);
  import_json_skip_space(json);
  token->at = json->at;
  if (json->expect == EXPECT_NOTHING) {
    if (json->at < json->size) return import_json_wrong(json, "nothing may follow the value", err);
    return BERTH_OK; /* kind is END */
  }
  int closing = inside_object(json) ? '}' : ']';
  if (json->expect == EXPECT_COMMA_OR_END) {
    if (peek(json) == closing) {
      close_bracket(json, token);
      return BERTH_OK;
    }
    if (peek(json) != ',') return import_json_wrong(json, "a comma or a closing bracket is expected here", err);
    json->at++;
    import_json_skip_space(json);
    token->at = json->at;
    json->expect = inside_object(json) ? EXPECT_KEY : EXPECT_VALUE;
  }
  if ((json->expect == EXPECT_KEY_OR_END || json->expect == EXPECT_VALUE_OR_END) && peek(json) == closing) {
    close_bracket(json, token);
    return BERTH_OK;
  }
  if (json->expect == EXPECT_KEY || json->expect == EXPECT_KEY_OR_END) return read_key(json, token, err);
  return read_value(json, token, err);
}

berth_status berth__json_expect(berth__json *json, berth__json_kind kind, const char *what, berth__json_token *token,
                                berth_error *err) {
  BERTH__TRY(berth__json_next(json, token, err));
  if (token->kind == kind) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "the JSON is wrong at byte %zu: %s", token->at, what);
}

static size_t put_utf8(char *out, uint32_t c) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n; i-- > 1; c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
  out[0] = (char)((0xF00u >> n) | c); /* 110xxxxx, 1110xxxx, 11110xxx */
  return n;
}

berth_status berth__json_decode(const berth__json_token *token, char *out, size_t *length, berth_error *err) {
  size_t n = 0;
  for (size_t i = 0; i < token->size;) {
    if (token->text[i] != '\\') {
      out[n++] = token->text[i++];
      continue;
    }
    uint32_t character = 0;
    i += import_json_read_escape(token->text + i, token->size - i, &character); /* read_string has checked it */
    if (character == 0) {
      return berth__fail(err, BERTH_MALFORMED, "the string at byte %zu has a zero character in it", token->at);
    }
    n += put_utf8(out + n, character);
  }
  out[n] = '\0';
  *length = n;
  return BERTH_OK;
}

bool berth__json_is(const berth__json_token *token, const char *word) {
  return token->size == strlen(word) && memcmp(token->text, word, token->size) == 0;
}

berth_status berth__json_natural(const berth__json_token *token, int64_t *out, berth_error *err) {
  int64_t value = 0;
  bool whole = token->kind == BERTH__JSON_NUMBER;
  for (size_t i = 0; whole && i < token->size; i++) {
    int digit = token->text[i] - '0';
    whole = digit >= 0 && digit <= 9;
    if (whole && value > (INT64_MAX - digit) / 10) {
      return berth__fail(err, BERTH_MALFORMED, "the number at byte %zu is too large", token->at);
    }
    if (whole) value = value * 10 + digit;
  }
  if (!whole) {
    return berth__fail(err, BERTH_MALFORMED, "a whole number that is not negative is expected at byte %zu", token->at);
  }
  *out = value;
  return BERTH_OK;
}
