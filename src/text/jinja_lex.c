/* Templates to tokens. Text outside of tags is one token, with its white space already trimmed. */
#include <string.h>

#include "base/number.h"
#include "text/jinja.h"
#include "text/unicode.h"

typedef struct jinja_lexer {
  berth__jinja *j;
  const char *text;
  size_t size, at;
  uint32_t line;
  size_t capacity;
  bool trim_next;    /* -%} : strip all following white space */
  bool newline_next; /* %} : strip a following line feed */
} jinja_lexer;

static berth_status lex_add(jinja_lexer *l, berth__jinja_token_kind kind, const char *text, size_t size) {
  berth__jinja *j = l->j;
  if (j->n_tokens == l->capacity) {
    const size_t capacity = l->capacity != 0 ? 2 * l->capacity : 64;
    berth__jinja_token *tokens = berth__jinja_alloc(j, capacity * sizeof *tokens);
    if (tokens == NULL) return berth__jinja_nomem(j);
    if (j->n_tokens != 0) memcpy(tokens, j->tokens, j->n_tokens * sizeof *tokens);
    j->tokens = tokens;
    l->capacity = capacity;
  }
  j->tokens[j->n_tokens++] = (berth__jinja_token){kind, l->line, {text, size}, {BERTH__JINJA_NONE, {.integer = 0}}};
  return BERTH_OK;
}

static bool lex_is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool lex_is_digit(char c) { return c >= '0' && c <= '9'; }
static bool lex_is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (unsigned char)c >= 0x80;
}

static bool lex_at(const jinja_lexer *l, size_t at, const char *text) {
  const size_t n = strlen(text);
  return l->size - at >= n && memcmp(l->text + at, text, n) == 0;
}

static void lex_advance(jinja_lexer *l, size_t to) {
  for (; l->at < to; l->at++) l->line += l->text[l->at] == '\n';
}

/* The plain text before the tag at `end` (or before the end of the template), without the white space that the tags
 * around it strip. */
static berth_status lex_text(jinja_lexer *l, size_t end) {
  size_t from = l->at, to = end;
  const bool is_last = end == l->size;
  const char mark = is_last ? '\0' : end + 2 < l->size ? l->text[end + 2] : '\0';
  if (l->trim_next) {
    while (from < to && lex_is_space(l->text[from])) from++;
  } else if (l->newline_next && from < to && l->text[from] == '\n') {
    from++;
  }
  if (is_last && to > from && l->text[to - 1] == '\n') to--; /* at the end of the template */
  if (mark == '-') {
    while (to > from && lex_is_space(l->text[to - 1])) to--;
  } else if (!is_last && mark != '+' && l->text[end + 1] != '{') { /* indentation before a tag that begins its line */
    size_t begin = to;
    while (begin > from && (l->text[begin - 1] == ' ' || l->text[begin - 1] == '\t')) begin--;
    if (begin == 0 || l->text[begin - 1] == '\n') to = begin;
  }
  if (to > from) BERTH__TRY(lex_add(l, BERTH__JINJA_T_TEXT, l->text + from, to - from));
  l->trim_next = l->newline_next = false;
  lex_advance(l, end);
  return BERTH_OK;
}

static berth_status lex_fail(jinja_lexer *l, const char *what) {
  l->j->line = l->line;
  return berth__jinja_fail(l->j, "%s", what);
}

/* The bytes of a string, with escapes resolved. */
static berth_status lex_unescape(jinja_lexer *l, const char *text, size_t size, berth__jinja_string *out) {
  char *to = berth__jinja_alloc(l->j, size);
  size_t n = 0;
  if (to == NULL) return berth__jinja_nomem(l->j);
  for (size_t i = 0; i < size; i++) {
    if (text[i] != '\\' || i + 1 == size) {
      to[n++] = text[i];
      continue;
    }
    const char c = text[++i];
    const size_t digits = c == 'x' ? 2 : c == 'u' ? 4 : 0;
    if (digits != 0 && size - i > digits) {
      uint32_t value = 0;
      for (size_t k = 1; k <= digits; k++) {
        const char d = text[i + k];
        const uint32_t digit = lex_is_digit(d) ? (uint32_t)(d - '0') : ((uint32_t)d | 32) - 'a' + 10;
        if (digit > 15) return lex_fail(l, "a string has an escape with digits that are not hexadecimal");
        value = value * 16 + digit;
      }
      n += berth__utf8_write(value, to + n); /* never longer than the escape */
      i += digits;
      continue;
    }
    static const char from[] = "ntrfvb0'\"\\", into[] = "\n\t\r\f\v\b\0'\"\\";
    const char *known = memchr(from, c, sizeof from - 1);
    if (known == NULL && c != '\n') to[n++] = '\\';
    if (c != '\n') to[n++] = known != NULL ? into[known - from] : c;
  }
  *out = (berth__jinja_string){to, n};
  return BERTH_OK;
}

static berth_status lex_string(jinja_lexer *l) {
  const char quote = l->text[l->at];
  size_t end = l->at + 1;
  while (end < l->size && l->text[end] != quote) end += l->text[end] == '\\' ? 2 : 1;
  if (end >= l->size) return lex_fail(l, "a string has no end");
  berth__jinja_string text = {"", 0};
  BERTH__TRY(lex_unescape(l, l->text + l->at + 1, end - l->at - 1, &text));
  BERTH__TRY(lex_add(l, BERTH__JINJA_T_STRING, text.data, text.size));
  lex_advance(l, end + 1);
  return BERTH_OK;
}

static berth_status lex_number(jinja_lexer *l) {
  char digits[64];
  size_t end = l->at, n = 0;
  bool is_float = false;
  for (; end < l->size && n < sizeof digits - 1; end++) {
    const char c = l->text[end], next = end + 1 < l->size ? l->text[end + 1] : '\0';
    if (c == '_') continue;
    const bool is_point = c == '.' && !is_float && lex_is_digit(next);
    const bool is_exponent = (c == 'e' || c == 'E') && (lex_is_digit(next) || next == '-' || next == '+');
    const bool is_sign = (c == '-' || c == '+') && n > 0 && (digits[n - 1] | 32) == 'e';
    if (!lex_is_digit(c) && !is_point && !is_exponent && !is_sign) break;
    if (is_point || is_exponent) is_float = true;
    digits[n++] = c;
  }
  digits[n] = '\0';
  berth__jinja_value value = berth__jinja_make_int(0);
  if (is_float) {
    value.kind = BERTH__JINJA_FLOAT;
    if (!berth__parse_double(digits, &value.as.number)) return lex_fail(l, "a number cannot be read");
  } else {
    for (size_t i = 0; i < n; i++) {
      if (value.as.integer > (INT64_MAX - (digits[i] - '0')) / 10) return lex_fail(l, "a number is too large");
      value.as.integer = value.as.integer * 10 + (digits[i] - '0');
    }
  }
  BERTH__TRY(lex_add(l, BERTH__JINJA_T_NUMBER, l->text + l->at, end - l->at));
  l->j->tokens[l->j->n_tokens - 1].value = value;
  l->at = end;
  return BERTH_OK;
}

static berth_status lex_sign(jinja_lexer *l) {
  static const char *const two[] = {"==", "!=", "<=", ">=", "//", "**"};
  static const char one[] = "+-*/%~<>=()[]{},:.|";
  for (size_t i = 0; i < sizeof two / sizeof two[0]; i++) {
    if (!lex_at(l, l->at, two[i])) continue;
    BERTH__TRY(lex_add(l, BERTH__JINJA_T_SIGN, l->text + l->at, 2));
    l->at += 2;
    return BERTH_OK;
  }
  if (memchr(one, l->text[l->at], sizeof one - 1) == NULL) {
    l->j->line = l->line;
    return berth__jinja_fail(l->j, "the character '%c' means nothing here", l->text[l->at]);
  }
  BERTH__TRY(lex_add(l, BERTH__JINJA_T_SIGN, l->text + l->at, 1));
  l->at++;
  return BERTH_OK;
}

/* One token inside a tag; *done if it was the tag's end. Inside brackets, "}}" does not end the tag. */
static berth_status lex_inside(jinja_lexer *l, bool is_output, size_t *brackets, bool *done) {
  const char *end = is_output ? "}}" : "%}";
  const char c = l->text[l->at];
  const bool marked = (c == '-' || c == '+') && lex_at(l, l->at + 1, end);
  if (lex_is_space(c)) {
    lex_advance(l, l->at + 1);
    return BERTH_OK;
  }
  if (marked || (lex_at(l, l->at, end) && (!is_output || *brackets == 0))) {
    BERTH__TRY(lex_add(l, is_output ? BERTH__JINJA_T_OUTPUT_END : BERTH__JINJA_T_TAG_END, end, 2));
    l->trim_next = c == '-';
    l->newline_next = !is_output && c != '+';
    l->at += 2 + marked;
    *done = true;
    return BERTH_OK;
  }
  if (c == '\'' || c == '"') return lex_string(l);
  if (lex_is_digit(c)) return lex_number(l);
  if (lex_is_letter(c)) {
    size_t to = l->at;
    while (to < l->size && (lex_is_letter(l->text[to]) || lex_is_digit(l->text[to]))) to++;
    BERTH__TRY(lex_add(l, BERTH__JINJA_T_NAME, l->text + l->at, to - l->at));
    l->at = to;
    return BERTH_OK;
  }
  if (c == '{' || c == '[' || c == '(') ++*brackets;
  if ((c == '}' || c == ']' || c == ')') && *brackets > 0) --*brackets;
  return lex_sign(l);
}

static berth_status lex_tag(jinja_lexer *l) {
  const bool is_output = l->text[l->at + 1] == '{';
  BERTH__TRY(lex_add(l, is_output ? BERTH__JINJA_T_OUTPUT_BEGIN : BERTH__JINJA_T_TAG_BEGIN, l->text + l->at, 2));
  l->at += 2;
  if (l->at < l->size && (l->text[l->at] == '-' || l->text[l->at] == '+')) l->at++;
  bool done = false;
  size_t brackets = 0;
  while (!done) {
    if (l->at >= l->size) return lex_fail(l, is_output ? "{{ has no }}" : "{% has no %}");
    BERTH__TRY(lex_inside(l, is_output, &brackets, &done));
  }
  return BERTH_OK;
}

static berth_status lex_comment(jinja_lexer *l) {
  size_t end = l->at + 2;
  while (end < l->size && !lex_at(l, end, "#}")) end++;
  if (end >= l->size) return lex_fail(l, "{# has no #}");
  l->trim_next = end > l->at + 2 && l->text[end - 1] == '-';
  l->newline_next = l->text[end - 1] != '+';
  lex_advance(l, end + 2);
  return BERTH_OK;
}

/* {% raw %}: where the text after it begins; 0: it is another tag. *mark: the sign before its end, or 0. */
static size_t lex_named_tag(const jinja_lexer *l, size_t at, const char *name, char *mark) {
  if (!lex_at(l, at, "{%")) return 0;
  at += 2;
  if (at < l->size && (l->text[at] == '-' || l->text[at] == '+')) at++;
  while (at < l->size && lex_is_space(l->text[at])) at++;
  if (!lex_at(l, at, name)) return 0;
  at += strlen(name);
  while (at < l->size && lex_is_space(l->text[at])) at++;
  *mark = at < l->size && (l->text[at] == '-' || l->text[at] == '+') ? l->text[at] : '\0';
  if (*mark != '\0') at++;
  return lex_at(l, at, "%}") ? at + 2 : 0;
}

static berth_status lex_raw(jinja_lexer *l, size_t begin, char mark) {
  lex_advance(l, begin);
  l->trim_next = mark == '-'; /* without it, raw text keeps its leading line feeds */
  for (size_t at = begin; at < l->size; at++) {
    const size_t behind = lex_named_tag(l, at, "endraw", &mark);
    if (behind == 0) continue;
    BERTH__TRY(lex_text(l, at));
    lex_advance(l, behind);
    l->trim_next = mark == '-';
    l->newline_next = mark == '\0';
    return BERTH_OK;
  }
  return lex_fail(l, "{% raw %} has no {% endraw %}");
}

/* Normalises line endings to a line feed. */
static berth_status lex_lines(berth__jinja *j, const char **text, size_t *size) {
  size_t n = 0;
  if (*size == 0 || memchr(*text, '\r', *size) == NULL) return BERTH_OK;
  char *lines = berth__jinja_alloc(j, *size);
  if (lines == NULL) return berth__jinja_nomem(j);
  for (size_t i = 0; i < *size; i++) {
    const bool is_return = (*text)[i] == '\r';
    if (is_return && i + 1 < *size && (*text)[i + 1] == '\n') continue;
    lines[n++] = is_return ? '\n' : (*text)[i];
  }
  *text = lines;
  *size = n;
  return BERTH_OK;
}

berth_status berth__jinja_lex(berth__jinja *j, const char *text, size_t size) {
  BERTH__TRY(lex_lines(j, &text, &size));
  jinja_lexer l = {.j = j, .text = text, .size = size, .line = 1};
  while (l.at < size) {
    size_t tag = l.at;
    while (tag < size && !(text[tag] == '{' && tag + 1 < size &&
                           (text[tag + 1] == '{' || text[tag + 1] == '%' || text[tag + 1] == '#')))
      tag++;
    BERTH__TRY(lex_text(&l, tag));
    if (tag == size) break;
    char mark;
    const size_t raw = lex_named_tag(&l, tag, "raw", &mark);
    if (raw != 0 && mark != '+') {
      BERTH__TRY(lex_raw(&l, raw, mark));
    } else {
      BERTH__TRY(text[tag + 1] == '#' ? lex_comment(&l) : lex_tag(&l));
    }
  }
  return lex_add(&l, BERTH__JINJA_T_END, "", 0);
}
