/* Patterns are regular expressions of a small kind: alternatives of items, where an item is a class of code points and
 * how often it may occur. The first alternative that matches wins, and an item takes as many as it can, as in Perl.
 * There are no groups, so that backtracking is limited to the few items of an alternative. Extensions:
 *
 *   [A--B]   what is in A and not in B
 *   \p{Han}  ideographs
 *   \u{4e00} a code point
 *   \c, \C   an English contraction ('s, 't, 're, ...), in either case or in lower case only
 *   \e       letters with their marks, single spaces between them allowed
 *   \l       white space up to the last line break in it: \s*[\r\n]+
 *   \>       not before anything but white space
 *   $        the end
 *   \3       alone in a pass: ends a word after each group of three digits, counted from the end of their run
 *   \4       the same for 0 to 9, and begins a word before the first group too
 *
 * White space that is not ASCII is not a member of ranges, as in llama.cpp, with which the models are used. */
#include "text/pretoken.h"

#include <string.h>

#include "text/unicode.h"

enum { /* properties of a code point, one bit each */
  PRE_LETTER = 1,
  PRE_NUMBER = 2,
  PRE_PUNCTUATION = 4,
  PRE_SYMBOL = 8,
  PRE_MARK = 16,
  PRE_SPACE = 32,
  PRE_HAN = 64
};

typedef struct pre_set {
  uint32_t bits;     /* any of these */
  uint32_t first, n; /* ranges of the program */
} pre_set;

typedef struct pre_class {
  pre_set in, out;
  bool negated;
} pre_class;

typedef enum pre_kind {
  PRE_CLASS,
  PRE_CONTRACTION,
  PRE_CONTRACTION_LOWER,
  PRE_SPACED_LETTERS,
  PRE_LINES,
  PRE_NOT_BEFORE_TEXT,
  PRE_END
} pre_kind;

typedef struct pre_item {
  pre_kind kind;
  pre_class set;
  uint32_t min, max;
} pre_item;

#define PRE_RANGES 128
#define PRE_ITEMS 48
#define PRE_ALTERNATIVES 20

typedef enum pre_mode {
  PRE_PATTERN,
  PRE_THREES,
  PRE_ASCII_THREES
} pre_mode;

typedef struct pre_pass {
  pre_mode mode;
  uint32_t n_alternatives, n_items, n_ranges;
  uint32_t first[PRE_ALTERNATIVES + 1]; /* the first item of each */
  pre_item items[PRE_ITEMS];
  uint32_t ranges[PRE_RANGES][2];
} pre_pass;

struct berth__pre {
  uint32_t n_passes;
  pre_pass passes[]; /* n_passes of them */
};

/* ---- Parsing patterns. They are built in, so a wrong one is an internal error. ---- */

typedef struct pre_reader {
  const char *at, *end;
  pre_pass *pass;
  bool failed;
} pre_reader;

static uint32_t pre_next(pre_reader *r) {
  uint32_t c = 0;
  if (r->at == r->end) {
    r->failed = true;
    return 0;
  }
  r->at += berth__utf8_read(r->at, (size_t)(r->end - r->at), &c);
  return c;
}

static bool pre_take(pre_reader *r, const char *text) {
  const size_t n = strlen(text);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, text, n) != 0) return false;
  r->at += n;
  return true;
}

/* \p{...}: its bits; 0 if there is no such property. */
static uint32_t pre_take_property(pre_reader *r) {
  static const struct {
    const char *name;
    uint32_t bits;
  } properties[] = {{"\\p{L}", PRE_LETTER}, {"\\p{N}", PRE_NUMBER}, {"\\p{P}", PRE_PUNCTUATION}, {"\\p{S}", PRE_SYMBOL},
                    {"\\p{M}", PRE_MARK},   {"\\p{Han}", PRE_HAN},  {"\\s", PRE_SPACE}};
  for (size_t i = 0; i < sizeof properties / sizeof properties[0]; i++) {
    if (pre_take(r, properties[i].name)) return properties[i].bits;
  }
  return 0;
}

static uint32_t pre_read_hex(pre_reader *r) {
  uint32_t value = 0;
  while (!r->failed && !pre_take(r, "}")) {
    const uint32_t digit = pre_next(r);
    value = value * 16 + (digit <= '9' ? digit - '0' : digit - 'a' + 10);
  }
  return value;
}

static uint32_t pre_char(pre_reader *r) {
  const uint32_t c = pre_next(r);
  if (c != '\\') return c;
  if (pre_take(r, "u{")) return pre_read_hex(r);
  const uint32_t escaped = pre_next(r);
  return escaped == 'r' ? '\r' : escaped == 'n' ? '\n' : escaped == 't' ? '\t' : escaped;
}

static void pre_add_range(pre_reader *r, pre_set *set, uint32_t first, uint32_t last) {
  if (r->pass->n_ranges == PRE_RANGES || last < first) {
    r->failed = true;
    return;
  }
  if (set->n++ == 0) set->first = r->pass->n_ranges;
  r->pass->ranges[r->pass->n_ranges][0] = first;
  r->pass->ranges[r->pass->n_ranges++][1] = last;
}

static void pre_read_brackets(pre_reader *r, pre_class *set) {
  pre_set *part = &set->in;
  set->negated = pre_take(r, "^");
  while (!r->failed && !pre_take(r, "]")) {
    if (pre_take(r, "--")) {
      part = &set->out;
      continue;
    }
    const uint32_t bits = pre_take_property(r);
    if (bits != 0) {
      part->bits |= bits;
      continue;
    }
    const uint32_t first = pre_char(r);
    const bool is_range = r->end - r->at > 1 && r->at[0] == '-' && r->at[1] != '-' && r->at[1] != ']';
    if (is_range) r->at++;
    pre_add_range(r, part, first, is_range ? pre_char(r) : first);
  }
}

static uint32_t pre_read_number(pre_reader *r) {
  uint32_t value = 0;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9') value = value * 10 + (uint32_t)(*r->at++ - '0');
  return value;
}

static void pre_read_count(pre_reader *r, pre_item *item) {
  item->min = item->max = 1;
  if (pre_take(r, "?")) {
    item->min = 0;
  } else if (pre_take(r, "*")) {
    item->min = 0;
    item->max = UINT32_MAX;
  } else if (pre_take(r, "+")) {
    item->max = UINT32_MAX;
  } else if (pre_take(r, "{")) {
    item->min = item->max = pre_read_number(r);
    if (pre_take(r, ",")) item->max = pre_read_number(r);
    if (!pre_take(r, "}")) r->failed = true;
  }
}

static void pre_read_item(pre_reader *r) {
  static const struct {
    const char *text;
    pre_kind kind;
  } special[] = {{"\\c", PRE_CONTRACTION}, {"\\C", PRE_CONTRACTION_LOWER}, {"\\e", PRE_SPACED_LETTERS},
                 {"\\l", PRE_LINES},       {"\\>", PRE_NOT_BEFORE_TEXT},   {"$", PRE_END}};
  if (r->pass->n_items == PRE_ITEMS) {
    r->failed = true;
    return;
  }
  pre_item *item = &r->pass->items[r->pass->n_items++];
  item->kind = PRE_CLASS;
  for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
    if (pre_take(r, special[i].text)) item->kind = special[i].kind;
    if (item->kind != PRE_CLASS) break;
  }
  if (item->kind == PRE_CLASS) {
    if (pre_take(r, "[")) {
      pre_read_brackets(r, &item->set);
    } else if ((item->set.in.bits = pre_take_property(r)) == 0) {
      const uint32_t c = pre_char(r);
      pre_add_range(r, &item->set.in, c, c);
    }
  }
  pre_read_count(r, item);
}

static bool pre_read(pre_pass *pass, const char *pattern) {
  if (strcmp(pattern, "\\3") == 0 || strcmp(pattern, "\\4") == 0) {
    pass->mode = pattern[1] == '3' ? PRE_THREES : PRE_ASCII_THREES;
    return true;
  }
  pre_reader r = {pattern, pattern + strlen(pattern), pass, false};
  pass->n_alternatives = 1;
  while (!r.failed && r.at < r.end) {
    if (pre_take(&r, "|")) {
      if (pass->n_alternatives == PRE_ALTERNATIVES) return false;
      pass->first[pass->n_alternatives++] = pass->n_items;
    } else {
      pre_read_item(&r);
    }
  }
  pass->first[pass->n_alternatives] = pass->n_items;
  return !r.failed;
}

berth_status berth__pre_create(berth_context *ctx, const berth__pre_row *row, berth__pre **out, berth_error *err) {
  uint32_t n = 0;
  *out = NULL;
  while (n < BERTH__PRE_PASSES && row->passes[n] != NULL) n++;
  berth__pre *pre = berth__alloc_zero(ctx, sizeof *pre + n * sizeof *pre->passes);
  if (pre == NULL) return berth__fail_nomem(err, "the patterns of the pre-tokenizer");
  pre->n_passes = n;
  for (uint32_t i = 0; i < n; i++) {
    if (pre_read(&pre->passes[i], row->passes[i])) continue;
    berth__free(ctx, pre);
    return berth__fail(err, BERTH_INTERNAL, "the pre-tokenizer's pattern '%s' cannot be read", row->passes[i]);
  }
  *out = pre;
  return BERTH_OK;
}

void berth__pre_destroy(berth_context *ctx, berth__pre *pre) { berth__free(ctx, pre); }

/* ---- Matching ---- */

typedef struct pre_run {    /* of white space, cached because several words may lie in one */
  size_t begin, end, lines; /* lines: after the last line break */
} pre_run;

typedef struct pre_text {
  const pre_pass *pass;
  pre_run *run;
  const uint32_t *c;   /* white space that is not ASCII is represented by 0x0B */
  const uint8_t *bits; /* per code point */
  size_t end;          /* of the word that is being split */
} pre_text;

#define PRE_NONE SIZE_MAX

static bool pre_in_set(const pre_text *t, const pre_set *set, size_t at) {
  if ((t->bits[at] & set->bits) != 0) return true;
  const uint32_t c = t->c[at];
  for (uint32_t i = set->first; i < set->first + set->n; i++) {
    if (c >= t->pass->ranges[i][0] && c <= t->pass->ranges[i][1]) return true;
  }
  return false;
}

static bool pre_in_class(const pre_text *t, const pre_class *set, size_t at) {
  return (pre_in_set(t, &set->in, at) && !pre_in_set(t, &set->out, at)) != set->negated;
}

/* Length of the contraction at a position; 0: none. */
static size_t pre_contraction(const pre_text *t, size_t at, bool any_case) {
  uint32_t c[2] = {0, 0};
  if (at >= t->end || t->c[at] != '\'') return 0;
  for (size_t i = 0; i < 2 && at + 1 + i < t->end; i++) {
    c[i] = t->c[at + 1 + i];
    if (any_case && c[i] < 0x80) c[i] = berth__unicode_lower(c[i]);
  }
  if (c[0] == 's' || c[0] == 't' || c[0] == 'm' || c[0] == 'd') return 2;
  const bool is_long = (c[0] == 'r' && c[1] == 'e') || (c[0] == 'v' && c[1] == 'e') || (c[0] == 'l' && c[1] == 'l');
  return is_long ? 3 : 0;
}

static size_t pre_spaced_letters(const pre_text *t, size_t at) {
  const size_t begin = at;
  while (at < t->end) {
    const size_t letter = at > begin && t->c[at] == ' ' ? at + 1 : at;
    if (letter >= t->end || (t->bits[letter] & PRE_LETTER) == 0) break;
    at = letter + 1;
    while (at < t->end && (t->bits[at] & PRE_MARK) != 0) at++;
  }
  return at - begin;
}

static size_t pre_lines(const pre_text *t, size_t at) {
  pre_run *run = t->run;
  if (at < run->begin || at >= run->end) {
    *run = (pre_run){at, at, at};
    for (; run->end < t->end && (t->bits[run->end] & PRE_SPACE) != 0; run->end++) {
      if (t->c[run->end] == '\r' || t->c[run->end] == '\n') run->lines = run->end + 1;
    }
  }
  return run->lines > at ? run->lines - at : 0;
}

/* How many times the item matches at a position, at most. *unit is the length of one match. */
static size_t pre_count(const pre_text *t, const pre_item *item, size_t at, size_t *unit) {
  *unit = 1;
  if (item->kind == PRE_CLASS) {
    const size_t most = item->max < t->end - at ? item->max : t->end - at;
    size_t n = 0;
    while (n < most && pre_in_class(t, &item->set, at + n)) n++;
    return n;
  }
  if (item->kind == PRE_NOT_BEFORE_TEXT || item->kind == PRE_END) {
    *unit = 0;
    return at == t->end || (item->kind == PRE_NOT_BEFORE_TEXT && (t->bits[at] & PRE_SPACE) != 0);
  }
  *unit = item->kind == PRE_SPACED_LETTERS ? pre_spaced_letters(t, at)
          : item->kind == PRE_LINES        ? pre_lines(t, at)
                                           : pre_contraction(t, at, item->kind == PRE_CONTRACTION);
  return *unit != 0;
}

/* Where a match of the items ends that begins here; PRE_NONE: no match. Recursion is limited by the items of one
 * alternative. */
static size_t pre_match(const pre_text *t, const pre_item *item, const pre_item *end, size_t at) {
  if (item == end) return at;
  size_t unit;
  size_t n = pre_count(t, item, at, &unit);
  for (;; n--) {
    if (n < item->min) return PRE_NONE;
    const size_t found = pre_match(t, item + 1, end, at + n * unit);
    if (found != PRE_NONE) return found;
    if (n == 0) return PRE_NONE;
  }
}

static size_t pre_match_any(const pre_text *t, size_t at) {
  const pre_pass *pass = t->pass;
  for (uint32_t i = 0; i < pass->n_alternatives; i++) {
    const size_t end = pre_match(t, pass->items + pass->first[i], pass->items + pass->first[i + 1], at);
    if (end != PRE_NONE && end > at) return end;
  }
  return PRE_NONE;
}

/* ---- Splitting ---- */

typedef struct pre_ends {
  size_t *ends;
  size_t n, capacity;
} pre_ends;

static berth_status pre_add_end(berth_context *ctx, pre_ends *ends, size_t end, berth_error *err) {
  if (end == (ends->n != 0 ? ends->ends[ends->n - 1] : 0)) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(ctx, ends->ends, ends->capacity, ends->n + 1, err));
  ends->ends[ends->n++] = end;
  return BERTH_OK;
}

/* If an alternative that begins with a repeated class is the only one and fails here, it also fails in the rest of that
 * run: the same ends would be tried. Without this, `\s+$` takes quadratic time. */
static size_t pre_skip(const pre_text *t, size_t at) {
  const pre_item *item = t->pass->items;
  if (t->pass->n_alternatives > 1 || item->kind != PRE_CLASS || item->min != 1 || item->max != UINT32_MAX)
    return at + 1;
  size_t unit;
  const size_t n = pre_count(t, item, at, &unit);
  return at + (n != 0 ? n : 1);
}

static berth_status pre_split_word(berth_context *ctx, const pre_text *t, size_t at, pre_ends *ends, berth_error *err) {
  while (at < t->end) {
    const size_t found = pre_match_any(t, at);
    if (found == PRE_NONE) {
      at = pre_skip(t, at);
      continue;
    }
    BERTH__TRY(pre_add_end(ctx, ends, at, err));
    BERTH__TRY(pre_add_end(ctx, ends, found, err));
    at = found;
  }
  return pre_add_end(ctx, ends, t->end, err);
}

static berth_status pre_split_threes(berth_context *ctx, const pre_text *t, size_t at, pre_ends *ends,
                                     berth_error *err) {
  const bool ascii = t->pass->mode == PRE_ASCII_THREES;
  while (at < t->end) {
    size_t n = 0;
    while (at + n < t->end &&
           (ascii ? t->c[at + n] >= '0' && t->c[at + n] <= '9' : (t->bits[at + n] & PRE_NUMBER) != 0))
      n++;
    if (ascii && n >= 3 && n % 3 == 0) BERTH__TRY(pre_add_end(ctx, ends, at, err));
    for (size_t group = n % 3; n != 0 && group <= n; group += 3) {
      if (group != 0 && !(ascii && group == n)) BERTH__TRY(pre_add_end(ctx, ends, at + group, err));
    }
    at += n != 0 ? n : 1;
  }
  return pre_add_end(ctx, ends, t->end, err);
}

static uint8_t pre_bits_of(uint32_t c) {
  static const uint8_t bits[8] = {0, PRE_LETTER, PRE_MARK, PRE_NUMBER, PRE_PUNCTUATION, PRE_SYMBOL, 0, 0};
  if (berth__unicode_is_space(c)) return PRE_SPACE;
  if (c == '~') return 0; /* llama.cpp's patterns do not count it among the symbols */
  return (uint8_t)(bits[berth__unicode_category_of(c)] | (berth__unicode_is_han(c) ? PRE_HAN : 0));
}

static berth_status pre_split_all(berth_context *ctx, const berth__pre *pre, pre_text *t, size_t count, pre_ends *from,
                                  pre_ends *to, berth_error *err) {
  BERTH__TRY(pre_add_end(ctx, from, count, err));
  for (uint32_t i = 0; i < pre->n_passes; i++) {
    t->pass = &pre->passes[i];
    *t->run = (pre_run){0, 0, 0};
    to->n = 0;
    for (size_t word = 0; word < from->n; word++) {
      const size_t begin = word == 0 ? 0 : from->ends[word - 1];
      t->end = from->ends[word];
      BERTH__TRY(t->pass->mode == PRE_PATTERN ? pre_split_word(ctx, t, begin, to, err)
                                              : pre_split_threes(ctx, t, begin, to, err));
    }
    const pre_ends swap = *from;
    *from = *to;
    *to = swap;
  }
  return BERTH_OK;
}

berth_status berth__pre_split(berth_context *ctx, const berth__pre *pre, const uint32_t *text, size_t count,
                              size_t **ends, size_t *n_ends, berth_error *err) {
  pre_ends from = {NULL, 0, 0}, to = {NULL, 0, 0};
  uint32_t *c = berth__alloc_array(ctx, count, sizeof *c);
  uint8_t *bits = berth__alloc_array(ctx, count, 1);
  berth_status status = BERTH_OK;
  *ends = NULL;
  *n_ends = 0;
  if (c == NULL || bits == NULL) {
    status = berth__fail_nomem(err, "splitting the text into words");
  } else {
    for (size_t i = 0; i < count; i++) {
      bits[i] = pre_bits_of(text[i]);
      c[i] = bits[i] == PRE_SPACE && text[i] >= 0x80 ? 0x0B : text[i];
    }
    pre_run run;
    pre_text t = {NULL, &run, c, bits, count};
    status = pre_split_all(ctx, pre, &t, count, &from, &to, err);
  }
  berth__free(ctx, c);
  berth__free(ctx, bits);
  berth__free(ctx, to.ends);
  if (status != BERTH_OK) {
    berth__free(ctx, from.ends);
    return status;
  }
  *ends = from.ends;
  *n_ends = from.n;
  return BERTH_OK;
}
