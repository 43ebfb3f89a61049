/* String methods. Case and white space follow Unicode; positions count characters. */
#include <string.h>

#include "text/jinja.h"
#include "text/unicode.h"

static berth__jinja_value strings_make(const berth__jinja_buffer *b) {
  return berth__jinja_make_string((berth__jinja_string){b->data != NULL ? b->data : "", b->size});
}

typedef struct strings_set { /* characters to strip */
  bool is_space;             /* white space */
  bool ascii[128];
  berth__jinja_string all;
} strings_set;

static strings_set strings_set_of(berth__jinja_value characters) {
  strings_set set = {.is_space = characters.kind != BERTH__JINJA_STRING};
  if (set.is_space) return set;
  set.all = characters.as.string;
  for (size_t i = 0; i < set.all.size; i++) {
    if ((unsigned char)set.all.data[i] < 128) set.ascii[(unsigned char)set.all.data[i]] = true;
  }
  return set;
}

/* Whether the character at text is one of those to strip. */
static berth_status strings_strips(berth__jinja *j, const strings_set *set, const char *text, size_t size,
                                   size_t *length, bool *out) {
  uint32_t c;
  size_t at;
  *length = berth__utf8_read(text, size, &c);
  const unsigned char first = (unsigned char)text[0];
  *out = set->is_space ? berth__unicode_is_space(c) : first < 128 && set->ascii[first];
  if (set->is_space || first < 128) return BERTH_OK;
  BERTH__TRY(berth__jinja_step(j, set->all.size));
  *out = berth__jinja_find(set->all, (berth__jinja_string){text, *length}, 0, &at);
  return BERTH_OK;
}

static berth_status strings_strip_left(berth__jinja *j, const strings_set *set, berth__jinja_string *text) {
  while (text->size != 0) {
    size_t n;
    bool strips = false;
    BERTH__TRY(strings_strips(j, set, text->data, text->size, &n, &strips));
    if (!strips) break;
    *text = (berth__jinja_string){text->data + n, text->size - n};
  }
  return BERTH_OK;
}

static berth_status strings_strip_right(berth__jinja *j, const strings_set *set, berth__jinja_string *text) {
  while (text->size != 0) {
    size_t begin = text->size - 1, n;
    bool strips = false;
    while (begin > 0 && text->size - begin < 4 && ((unsigned char)text->data[begin] & 0xC0) == 0x80) begin--;
    BERTH__TRY(strings_strips(j, set, text->data + begin, text->size - begin, &n, &strips));
    if (!strips) break;
    text->size = begin;
  }
  return BERTH_OK;
}

/* Splits at white space (no separator), or at a text; at most `most` times if that is not negative. */
static berth_status strings_split(berth__jinja *j, berth__jinja_string text, berth__jinja_value separator, int64_t most,
                                  berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  BERTH__TRY(berth__jinja_step(j, text.size));
  const bool by_space = separator.kind != BERTH__JINJA_STRING;
  const strings_set spaces = {.is_space = true};
  if (!by_space && separator.as.string.size == 0) return berth__jinja_fail(j, "split: the separator is empty");
  if (by_space) BERTH__TRY(strings_strip_left(j, &spaces, &text));
  for (int64_t n = 0; !by_space || text.size != 0; n++) {
    size_t at = 0, length = 0;
    bool found = false;
    if (most >= 0 && n >= most) {
      found = false;
    } else if (by_space) {
      for (size_t size; at < text.size && !found; at += found ? 0 : size)
        BERTH__TRY(strings_strips(j, &spaces, text.data + at, text.size - at, &size, &found));
    } else {
      found = berth__jinja_find(text, separator.as.string, 0, &at);
      length = separator.as.string.size;
    }
    const size_t end = found ? at : text.size;
    BERTH__TRY(berth__jinja_append(j, out->as.list, berth__jinja_make_string((berth__jinja_string){text.data, end})));
    if (!found) break;
    text = (berth__jinja_string){text.data + end + length, text.size - end - length};
    if (by_space) BERTH__TRY(strings_strip_left(j, &spaces, &text));
  }
  return BERTH_OK;
}

/* The same from the right. */
static berth_status strings_rsplit(berth__jinja *j, berth__jinja_string text, berth__jinja_value separator,
                                   int64_t most, berth__jinja_value *out) {
  berth__jinja_value all;
  const bool by_space = separator.kind != BERTH__JINJA_STRING;
  BERTH__TRY(strings_split(j, text, separator, most == 0 && !by_space ? 0 : -1, &all));
  const size_t count = all.as.list->count;
  *out = all;
  if (most <= 0 || by_space || most >= (int64_t)count - 1) return BERTH_OK;
  const size_t first = count - (size_t)most; /* the first of the pieces that stay separate */
  const char *end = all.as.list->items[first].as.string.data - separator.as.string.size;
  BERTH__TRY(berth__jinja_new_list(j, out));
  BERTH__TRY(berth__jinja_append(
      j, out->as.list, berth__jinja_make_string((berth__jinja_string){text.data, (size_t)(end - text.data)})));
  for (size_t i = first; i < count; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, all.as.list->items[i]));
  return BERTH_OK;
}

static berth_status strings_lines(berth__jinja *j, berth__jinja_string text, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  BERTH__TRY(berth__jinja_step(j, text.size));
  for (size_t at = 0; at < text.size;) {
    size_t end = at;
    while (end < text.size && text.data[end] != '\n' && text.data[end] != '\r') end++;
    BERTH__TRY(berth__jinja_append(j, out->as.list,
                                   berth__jinja_make_string((berth__jinja_string){text.data + at, end - at})));
    at = end + 1 + (end + 1 < text.size && text.data[end] == '\r' && text.data[end + 1] == '\n');
  }
  return BERTH_OK;
}

static berth_status strings_replace(berth__jinja *j, berth__jinja_string text, berth__jinja_string from,
                                    berth__jinja_string to, int64_t most, berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  size_t at = 0, found;
  BERTH__TRY(berth__jinja_step(j, text.size));
  for (int64_t n = 0; (most < 0 || n < most) && from.size != 0 && berth__jinja_find(text, from, at, &found); n++) {
    BERTH__TRY(berth__jinja_add(j, &b, text.data + at, found - at));
    BERTH__TRY(berth__jinja_add(j, &b, to.data, to.size));
    at = found + from.size;
  }
  BERTH__TRY(berth__jinja_add(j, &b, text.data + at, text.size - at));
  *out = strings_make(&b);
  return BERTH_OK;
}

typedef enum strings_case {
  STRINGS_UPPER,
  STRINGS_LOWER,
  STRINGS_TITLE,
  STRINGS_CAPITALIZE
} strings_case;

static berth_status strings_change_case(berth__jinja *j, berth__jinja_string text, strings_case to,
                                        berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  bool in_word = false;
  for (size_t at = 0; at < text.size;) {
    uint32_t c;
    char bytes[BERTH__UTF8_MAX];
    const size_t size = berth__utf8_read(text.data + at, text.size - at, &c);
    const bool up = to == STRINGS_UPPER || (to == STRINGS_TITLE && !in_word) || (to == STRINGS_CAPITALIZE && at == 0);
    in_word = berth__unicode_category_of(c) == BERTH__UNICODE_LETTER;
    const size_t n = berth__utf8_write(up ? berth__unicode_upper(c) : berth__unicode_lower(c), bytes);
    BERTH__TRY(berth__jinja_add(j, &b, bytes, n));
    at += size;
  }
  *out = strings_make(&b);
  return BERTH_OK;
}

/* startswith and endswith: a text, or any of a list. */
static berth_status strings_has_end(berth__jinja *j, berth__jinja_string text, berth__jinja_value what, bool at_start,
                                    bool *out) {
  *out = false;
  if (what.kind == BERTH__JINJA_LIST) {
    for (size_t i = 0; i < what.as.list->count && !*out; i++) {
      BERTH__TRY(berth__jinja_step(j, 0));
      if (what.as.list->items[i].kind == BERTH__JINJA_STRING)
        BERTH__TRY(strings_has_end(j, text, what.as.list->items[i], at_start, out));
    }
    return BERTH_OK;
  }
  if (what.kind != BERTH__JINJA_STRING) return berth__jinja_fail(j, "startswith and endswith take a string");
  const berth__jinja_string part = what.as.string;
  if (part.size > text.size) return BERTH_OK;
  const char *end = at_start ? text.data : text.data + text.size - part.size;
  return berth__jinja_match(j, (berth__jinja_string){end, part.size}, part, out);
}

static berth_status strings_search(berth__jinja *j, berth__jinja_string text, berth__jinja_string name,
                                   berth__jinja_value what, berth__jinja_value *out) {
  size_t at = 0, found;
  int64_t count = 0, last = -1;
  if (what.kind != BERTH__JINJA_STRING) return berth__jinja_fail(j, "find and count take a string");
  const size_t step = what.as.string.size != 0 ? what.as.string.size : 1;
  const bool first_only = berth__jinja_string_is(name, "find") || berth__jinja_string_is(name, "index");
  BERTH__TRY(berth__jinja_step(j, text.size));
  for (; berth__jinja_find(text, what.as.string, at, &found); at = found + step, count++) {
    last = (int64_t)found;
    if (first_only || found == text.size) break;
  }
  *out = berth__jinja_make_int(berth__jinja_string_is(name, "count") ? count : last);
  if (out->as.integer > 0 && !berth__jinja_string_is(name, "count"))
    out->as.integer = (int64_t)berth__jinja_characters((berth__jinja_string){text.data, (size_t)last});
  if (last < 0 && berth__jinja_string_is(name, "index")) return berth__jinja_fail(j, "index: the text is not in it");
  return BERTH_OK;
}

static berth_status strings_join(berth__jinja *j, berth__jinja_string between, berth__jinja_value items,
                                 berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_items(j, items, &items));
  for (size_t i = 0; i < items.as.list->count; i++) {
    if (i != 0) BERTH__TRY(berth__jinja_add(j, &b, between.data, between.size));
    BERTH__TRY(berth__jinja_add_value(j, &b, items.as.list->items[i]));
  }
  *out = strings_make(&b);
  return BERTH_OK;
}

static bool strings_all(berth__jinja_string text, berth__unicode_category category) {
  for (size_t at = 0; at < text.size;) {
    uint32_t c;
    at += berth__utf8_read(text.data + at, text.size - at, &c);
    if (berth__unicode_category_of(c) != category) return false;
  }
  return text.size != 0;
}

typedef struct strings_call {
  berth__jinja_string on, name;
  berth__jinja_value a, b, c; /* the first arguments */
} strings_call;

static int64_t strings_limit(berth__jinja_value value) {
  return value.kind == BERTH__JINJA_INT ? value.as.integer : -1;
}

static berth_status strings_call_replace(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  if (s->a.kind != BERTH__JINJA_STRING || s->b.kind != BERTH__JINJA_STRING)
    return berth__jinja_fail(j, "replace takes two strings");
  return strings_replace(j, s->on, s->a.as.string, s->b.as.string, strings_limit(s->c), out);
}

static berth_status strings_call_ends(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  bool holds = false;
  BERTH__TRY(strings_has_end(j, s->on, s->a, s->name.data[0] == 's', &holds));
  *out = berth__jinja_make_bool(holds);
  return BERTH_OK;
}

static berth_status strings_call_case(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  const strings_case to = s->name.data[0] == 'u'   ? STRINGS_UPPER
                          : s->name.data[0] == 'l' ? STRINGS_LOWER
                          : s->name.data[0] == 't' ? STRINGS_TITLE
                                                   : STRINGS_CAPITALIZE;
  return strings_change_case(j, s->on, to, out);
}

static berth_status strings_call_strip(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  berth__jinja_string text = s->on;
  BERTH__TRY(berth__jinja_step(j, text.size));
  if (s->a.kind == BERTH__JINJA_STRING) BERTH__TRY(berth__jinja_step(j, s->a.as.string.size));
  const strings_set set = strings_set_of(s->a);
  if (s->name.data[0] != 'r') BERTH__TRY(strings_strip_left(j, &set, &text));
  if (s->name.data[0] != 'l') BERTH__TRY(strings_strip_right(j, &set, &text));
  *out = berth__jinja_make_string(text);
  return BERTH_OK;
}

static berth_status strings_call_split(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  if (s->name.data[0] == 'r') return strings_rsplit(j, s->on, s->a, strings_limit(s->b), out);
  return strings_split(j, s->on, s->a, strings_limit(s->b), out);
}

static berth_status strings_call_search(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  return strings_search(j, s->on, s->name, s->a, out);
}

static berth_status strings_call_kind(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  const bool digits = s->name.data[2] == 'd' || s->name.data[2] == 'n';
  BERTH__TRY(berth__jinja_step(j, s->on.size));
  *out = berth__jinja_make_bool(strings_all(s->on, digits ? BERTH__UNICODE_NUMBER : BERTH__UNICODE_LETTER));
  return BERTH_OK;
}

static berth_status strings_call_lines(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  return strings_lines(j, s->on, out);
}

static berth_status strings_call_join(berth__jinja *j, const strings_call *s, berth__jinja_value *out) {
  return strings_join(j, s->on, s->a, out);
}

berth_status berth__jinja_string_method(berth__jinja *j, berth__jinja_string on, berth__jinja_string name,
                                        const berth__jinja_arguments *args, berth__jinja_value *out) {
  static const struct {
    const char *name;
    berth_status (*call)(berth__jinja *j, const strings_call *s, berth__jinja_value *out);
  } methods[] = {{"strip", strings_call_strip},   {"lstrip", strings_call_strip},     {"rstrip", strings_call_strip},
                 {"split", strings_call_split},   {"rsplit", strings_call_split},     {"startswith", strings_call_ends},
                 {"endswith", strings_call_ends}, {"replace", strings_call_replace},  {"upper", strings_call_case},
                 {"lower", strings_call_case},    {"title", strings_call_case},       {"capitalize", strings_call_case},
                 {"find", strings_call_search},   {"rfind", strings_call_search},     {"index", strings_call_search},
                 {"count", strings_call_search},  {"splitlines", strings_call_lines}, {"join", strings_call_join},
                 {"isdigit", strings_call_kind},  {"isalpha", strings_call_kind},     {"isnumeric", strings_call_kind}};
  const strings_call s = {on, name, berth__jinja_argument(args, 0, "sep"), berth__jinja_argument(args, 1, "maxsplit"),
                          berth__jinja_argument(args, 2, "count")};
  for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
    if (berth__jinja_string_is(name, methods[i].name)) return methods[i].call(j, &s, out);
  }
  return berth__jinja_fail(j, "a string has no method '%.*s'", (int)(name.size < 60 ? name.size : 60), name.data);
}
