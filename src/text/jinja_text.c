/* Values as text, in Python's form; JSON in both directions; dates. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "text/jinja.h"
#include "text/unicode.h"

static berth_status text_add(berth__jinja *j, berth__jinja_buffer *b, const char *text) {
  return berth__jinja_add(j, b, text, strlen(text));
}

static berth_status text_add_float(berth__jinja *j, berth__jinja_buffer *b, double value) {
  char text[BERTH__DOUBLE_TEXT];
  if (isnan(value) || isinf(value)) return text_add(j, b, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
  berth__format_double(value, text);
  BERTH__TRY(text_add(j, b, text));
  return strpbrk(text, ".e") == NULL ? text_add(j, b, ".0") : BERTH_OK;
}

static berth_status text_add_int(berth__jinja *j, berth__jinja_buffer *b, int64_t value) {
  char text[32];
  snprintf(text, sizeof text, "%lld", (long long)value);
  return text_add(j, b, text);
}

/* A string in the form of Python's repr(). */
static berth_status text_add_quoted(berth__jinja *j, berth__jinja_buffer *b, berth__jinja_string s) {
  const bool has_single = s.size != 0 && memchr(s.data, '\'', s.size) != NULL;
  const char quote = has_single && memchr(s.data, '"', s.size) == NULL ? '"' : '\'';
  BERTH__TRY(berth__jinja_add(j, b, &quote, 1));
  for (size_t i = 0; i < s.size; i++) {
    const char c = s.data[i];
    const char *escape = c == '\n' ? "\\n" : c == '\r' ? "\\r" : c == '\t' ? "\\t" : c == '\\' ? "\\\\" : NULL;
    if (c == quote) BERTH__TRY(text_add(j, b, "\\"));
    BERTH__TRY(escape != NULL ? text_add(j, b, escape) : berth__jinja_add(j, b, &c, 1));
  }
  return berth__jinja_add(j, b, &quote, 1);
}

static berth_status text_enter(berth__jinja *j) {
  if (++j->depth > BERTH__TEMPLATE_DEPTH)
    return berth__jinja_fail(j, "values or calls are nested more than %u deep", BERTH__TEMPLATE_DEPTH);
  return BERTH_OK;
}

static berth_status text_add_repr(berth__jinja *j, berth__jinja_buffer *b, berth__jinja_value value);

static berth_status text_add_list(berth__jinja *j, berth__jinja_buffer *b, const berth__jinja_list *list) {
  BERTH__TRY(text_enter(j));
  BERTH__TRY(text_add(j, b, "["));
  for (size_t i = 0; i < list->count; i++) {
    if (i != 0) BERTH__TRY(text_add(j, b, ", "));
    BERTH__TRY(text_add_repr(j, b, list->items[i]));
  }
  j->depth--;
  return text_add(j, b, "]");
}

static berth_status text_add_dict(berth__jinja *j, berth__jinja_buffer *b, const berth__jinja_dict *dict) {
  BERTH__TRY(text_enter(j));
  BERTH__TRY(text_add(j, b, "{"));
  for (size_t i = 0; i < dict->count; i++) {
    if (i != 0) BERTH__TRY(text_add(j, b, ", "));
    BERTH__TRY(text_add_repr(j, b, dict->members[i].key));
    BERTH__TRY(text_add(j, b, ": "));
    BERTH__TRY(text_add_repr(j, b, dict->members[i].value));
  }
  j->depth--;
  return text_add(j, b, "}");
}

static berth_status text_add_repr(berth__jinja *j, berth__jinja_buffer *b, berth__jinja_value value) {
  if (value.kind == BERTH__JINJA_STRING) return text_add_quoted(j, b, value.as.string);
  return berth__jinja_add_value(j, b, value);
}

berth_status berth__jinja_add_value(berth__jinja *j, berth__jinja_buffer *b, berth__jinja_value value) {
  switch (value.kind) {
    case BERTH__JINJA_UNDEFINED: return BERTH_OK;
    case BERTH__JINJA_NONE: return text_add(j, b, "None");
    case BERTH__JINJA_BOOL: return text_add(j, b, value.as.boolean ? "True" : "False");
    case BERTH__JINJA_INT: return text_add_int(j, b, value.as.integer);
    case BERTH__JINJA_FLOAT: return text_add_float(j, b, value.as.number);
    case BERTH__JINJA_STRING: return berth__jinja_add(j, b, value.as.string.data, value.as.string.size);
    case BERTH__JINJA_LIST: return text_add_list(j, b, value.as.list);
    case BERTH__JINJA_DICT:
    case BERTH__JINJA_NAMESPACE: return text_add_dict(j, b, value.as.dict);
    case BERTH__JINJA_MACRO:
    case BERTH__JINJA_FUNCTION:
    case BERTH__JINJA_LOOP: break;
  }
  return berth__jinja_fail(j, "a %s is not text; is it to be called?", berth__jinja_kind_name(value.kind));
}

berth_status berth__jinja_text_of(berth__jinja *j, berth__jinja_value value, berth__jinja_string *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  *out = value.as.string;
  if (value.kind == BERTH__JINJA_STRING) return BERTH_OK;
  BERTH__TRY(berth__jinja_add_value(j, &b, value));
  *out = (berth__jinja_string){b.data != NULL ? b.data : "", b.size};
  return BERTH_OK;
}

/* ---- Writing JSON ---- */

static berth_status json_add_string(berth__jinja *j, berth__jinja_buffer *b, berth__jinja_string s) {
  BERTH__TRY(text_add(j, b, "\""));
  for (size_t i = 0, plain = 0; i <= s.size; i++) {
    const unsigned char c = i < s.size ? (unsigned char)s.data[i] : 0;
    char escape[8];
    if (i < s.size && c >= 0x20 && c != '"' && c != '\\') continue;
    BERTH__TRY(berth__jinja_add(j, b, s.data + plain, i - plain));
    plain = i + 1;
    if (i == s.size) break;
    const char *known = strchr("\"\"\\\\\nn\rr\tt\bb\ff", c);
    if (c != 0 && known != NULL) {
      snprintf(escape, sizeof escape, "\\%c", known[1]);
    } else {
      snprintf(escape, sizeof escape, "\\u%04x", c);
    }
    BERTH__TRY(text_add(j, b, escape));
  }
  return text_add(j, b, "\"");
}

static berth_status json_break(berth__jinja *j, berth__jinja_buffer *b, int64_t indent, int64_t level) {
  if (indent < 0) return BERTH_OK;
  BERTH__TRY(text_add(j, b, "\n"));
  for (int64_t i = 0; i < indent * level; i++) BERTH__TRY(text_add(j, b, " "));
  return BERTH_OK;
}

static berth_status json_add(berth__jinja *j, berth__jinja_value value, int64_t indent, int64_t level,
                             berth__jinja_buffer *b);

static berth_status json_key(berth__jinja *j, berth__jinja_value key, berth__jinja_buffer *b) {
  if (key.kind == BERTH__JINJA_STRING) {
    BERTH__TRY(json_add_string(j, b, key.as.string));
  } else { /* numbers and similar values have the same text */
    BERTH__TRY(text_add(j, b, "\""));
    BERTH__TRY(json_add(j, key, -1, 0, b));
    BERTH__TRY(text_add(j, b, "\""));
  }
  return text_add(j, b, ": ");
}

static berth_status json_add_many(berth__jinja *j, berth__jinja_value value, int64_t indent, int64_t level,
                                  berth__jinja_buffer *b) {
  const bool is_list = value.kind == BERTH__JINJA_LIST;
  const size_t count = is_list ? value.as.list->count : value.as.dict->count;
  BERTH__TRY(text_enter(j));
  BERTH__TRY(text_add(j, b, is_list ? "[" : "{"));
  for (size_t i = 0; i < count; i++) {
    if (i != 0) BERTH__TRY(text_add(j, b, indent < 0 ? ", " : ","));
    BERTH__TRY(json_break(j, b, indent, level + 1));
    if (!is_list) BERTH__TRY(json_key(j, value.as.dict->members[i].key, b));
    BERTH__TRY(json_add(j, is_list ? value.as.list->items[i] : value.as.dict->members[i].value, indent, level + 1, b));
  }
  if (count != 0) BERTH__TRY(json_break(j, b, indent, level));
  j->depth--;
  return text_add(j, b, is_list ? "]" : "}");
}

static berth_status json_add(berth__jinja *j, berth__jinja_value value, int64_t indent, int64_t level,
                             berth__jinja_buffer *b) {
  switch (value.kind) {
    case BERTH__JINJA_NONE: return text_add(j, b, "null");
    case BERTH__JINJA_BOOL: return text_add(j, b, value.as.boolean ? "true" : "false");
    case BERTH__JINJA_INT:
    case BERTH__JINJA_FLOAT: return berth__jinja_add_value(j, b, value);
    case BERTH__JINJA_STRING: return json_add_string(j, b, value.as.string);
    case BERTH__JINJA_LIST:
    case BERTH__JINJA_DICT:
    case BERTH__JINJA_NAMESPACE: return json_add_many(j, value, indent, level, b);
    case BERTH__JINJA_UNDEFINED:
    case BERTH__JINJA_MACRO:
    case BERTH__JINJA_FUNCTION:
    case BERTH__JINJA_LOOP: break;
  }
  return berth__jinja_fail(j, "a value of type %s cannot be written as JSON", berth__jinja_kind_name(value.kind));
}

berth_status berth__jinja_to_json(berth__jinja *j, berth__jinja_value value, int64_t indent, berth__jinja_buffer *out) {
  return json_add(j, value, indent > 64 ? 64 : indent, 0, out);
}

/* ---- Reading JSON ---- */

typedef struct json_reader {
  berth__jinja *j;
  berth__jinja_string text;
  size_t at;
} json_reader;

static berth_status json_fail(json_reader *r) {
  return berth__jinja_fail(r->j, "JSON cannot be read at its byte %zu", r->at);
}

static void json_space(json_reader *r) {
  for (; r->at < r->text.size; r->at++) {
    const char c = r->text.data[r->at];
    if (c != ' ' && c != '\t' && c != '\r' && c != '\n') return;
  }
}

static bool json_take(json_reader *r, const char *word) {
  const size_t n = strlen(word);
  if (r->text.size - r->at < n || memcmp(r->text.data + r->at, word, n) != 0) return false;
  r->at += n;
  return true;
}

static bool json_hex(json_reader *r, uint32_t *out) {
  *out = 0;
  for (int i = 0; i < 4; i++, r->at++) {
    const char c = r->at < r->text.size ? r->text.data[r->at] : ' ';
    const uint32_t digit = c >= '0' && c <= '9' ? (uint32_t)(c - '0') : ((uint32_t)(unsigned char)c | 32) - 'a' + 10;
    if (digit > 15) return false;
    *out = *out * 16 + digit;
  }
  return true;
}

static berth_status json_escape(json_reader *r, berth__jinja_buffer *b) {
  char bytes[BERTH__UTF8_MAX];
  const char c = r->at < r->text.size ? r->text.data[r->at++] : '\0';
  static const char from[] = "\"\\/nrtbf", into[] = "\"\\/\n\r\t\b\f";
  const char *known = c != '\0' ? strchr(from, c) : NULL;
  uint32_t value, low;
  if (c != 'u') return known != NULL ? berth__jinja_add(r->j, b, into + (known - from), 1) : json_fail(r);
  if (!json_hex(r, &value)) return json_fail(r);
  if (value >= 0xD800 && value < 0xDC00 && json_take(r, "\\u")) {
    if (!json_hex(r, &low) || low < 0xDC00 || low > 0xDFFF) return json_fail(r);
    value = 0x10000 + ((value - 0xD800) << 10) + (low - 0xDC00);
  }
  return berth__jinja_add(r->j, b, bytes, berth__utf8_write(value, bytes));
}

static berth_status json_string(json_reader *r, berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  for (;;) {
    size_t end = r->at;
    while (end < r->text.size && r->text.data[end] != '"' && r->text.data[end] != '\\') end++;
    BERTH__TRY(berth__jinja_add(r->j, &b, r->text.data + r->at, end - r->at));
    r->at = end;
    if (json_take(r, "\"")) break;
    if (!json_take(r, "\\")) return json_fail(r);
    BERTH__TRY(json_escape(r, &b));
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

static berth_status json_number(json_reader *r, berth__jinja_value *out) {
  char digits[64];
  size_t n = 0;
  bool is_int = true;
  while (r->at < r->text.size && n < sizeof digits - 1 && strchr("+-.eE0123456789", r->text.data[r->at]) != NULL &&
         r->text.data[r->at] != '\0') {
    const char c = r->text.data[r->at++];
    if (c == '.' || c == 'e' || c == 'E') is_int = false;
    digits[n++] = c;
  }
  digits[n] = '\0';
  double value;
  if (n == 0 || !berth__parse_double(digits, &value)) return json_fail(r);
  *out = is_int && fabs(value) < 9e15 ? berth__jinja_make_int((int64_t)value) : berth__jinja_make_float(value);
  return BERTH_OK;
}

static berth_status json_value(json_reader *r, berth__jinja_value *out);

static berth_status json_many(json_reader *r, bool is_list, berth__jinja_value *out) {
  const char *end = is_list ? "]" : "}";
  BERTH__TRY(is_list ? berth__jinja_new_list(r->j, out) : berth__jinja_new_dict(r->j, out));
  BERTH__TRY(text_enter(r->j));
  json_space(r);
  while (!json_take(r, end)) {
    berth__jinja_value key = BERTH__JINJA_NO_VALUE, value;
    if (!is_list) {
      json_space(r);
      if (!json_take(r, "\"")) return json_fail(r);
      BERTH__TRY(json_string(r, &key));
      json_space(r);
      if (!json_take(r, ":")) return json_fail(r);
    }
    BERTH__TRY(json_value(r, &value));
    BERTH__TRY(is_list ? berth__jinja_append(r->j, out->as.list, value)
                       : berth__jinja_put(r->j, out->as.dict, key, value));
    json_space(r);
    if (json_take(r, ",")) {
      json_space(r);
    } else if (r->at >= r->text.size || r->text.data[r->at] != end[0]) {
      return json_fail(r);
    }
  }
  r->j->depth--;
  return BERTH_OK;
}

static berth_status json_value(json_reader *r, berth__jinja_value *out) {
  json_space(r);
  if (json_take(r, "{")) return json_many(r, false, out);
  if (json_take(r, "[")) return json_many(r, true, out);
  if (json_take(r, "\"")) return json_string(r, out);
  *out = BERTH__JINJA_NO_VALUE;
  if (json_take(r, "null")) return BERTH_OK;
  *out = berth__jinja_make_bool(true);
  if (json_take(r, "true")) return BERTH_OK;
  *out = berth__jinja_make_bool(false);
  if (json_take(r, "false")) return BERTH_OK;
  return json_number(r, out);
}

berth_status berth__jinja_from_json(berth__jinja *j, berth__jinja_string text, berth__jinja_value *out) {
  json_reader r = {j, text, 0};
  BERTH__TRY(berth__jinja_step(j, text.size)); /* white space is counted nowhere else */
  BERTH__TRY(json_value(&r, out));
  json_space(&r);
  return r.at == text.size ? BERTH_OK : json_fail(&r);
}

/* ---- Dates, in English whatever the locale ---- */

typedef struct text_date {
  int64_t year, month, day, hour, minute, second, weekday, yearday; /* months and days of the year from 1 */
} text_date;

static text_date text_date_of(int64_t seconds) {
  int64_t days = seconds / 86400, rest = seconds % 86400;
  if (rest < 0) {
    rest += 86400;
    days--;
  }
  static const int before[] = {0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334};
  const int64_t shifted = days + 719468; /* days since 1 March of the year 0 */
  const int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097, day_of_era = shifted - era * 146097;
  const int64_t year = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
  const int64_t day_of_year = day_of_era - (365 * year + year / 4 - year / 100), month = (5 * day_of_year + 2) / 153;
  text_date d = {.day = day_of_year - (153 * month + 2) / 5 + 1, .month = month < 10 ? month + 3 : month - 9};
  d.year = year + era * 400 + (d.month <= 2);
  d.hour = rest / 3600;
  d.minute = rest / 60 % 60;
  d.second = rest % 60;
  d.weekday = ((days + 4) % 7 + 7) % 7;
  const bool leap = (d.year % 4 == 0 && d.year % 100 != 0) || d.year % 400 == 0;
  d.yearday = before[d.month - 1] + d.day + (leap && d.month > 2);
  return d;
}

static berth_status text_date_part(berth__jinja *j, berth__jinja_buffer *b, const text_date *d, char c, bool bare) {
  static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                       "July",    "August",   "September", "October", "November", "December"};
  static const char *const weekdays[] = {"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"};
  const struct {
    char c;
    int digits;
    int64_t value;
  } numbers[] = {{'Y', 4, d->year},   {'y', 2, d->year % 100}, {'m', 2, d->month},
                 {'d', 2, d->day},    {'H', 2, d->hour},       {'I', 2, (d->hour + 11) % 12 + 1},
                 {'M', 2, d->minute}, {'S', 2, d->second},     {'j', 3, d->yearday}};
  char text[32];
  if (c == 'B') return text_add(j, b, months[d->month - 1]);
  if (c == 'b') return berth__jinja_add(j, b, months[d->month - 1], 3);
  if (c == 'A') return text_add(j, b, weekdays[d->weekday]);
  if (c == 'a') return berth__jinja_add(j, b, weekdays[d->weekday], 3);
  if (c == 'p') return text_add(j, b, d->hour < 12 ? "AM" : "PM");
  if (c == '%') return text_add(j, b, "%");
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    if (numbers[i].c != c) continue;
    snprintf(text, sizeof text, "%0*lld", bare ? 1 : numbers[i].digits, (long long)numbers[i].value);
    return text_add(j, b, text);
  }
  return berth__jinja_fail(j, "strftime_now does not know %%%c", c);
}

berth_status berth__jinja_time(berth__jinja *j, berth__jinja_string format, berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  const text_date date = text_date_of(j->now);
  for (size_t i = 0; i < format.size; i++) {
    if (format.data[i] != '%' || i + 1 == format.size) {
      BERTH__TRY(berth__jinja_add(j, &b, format.data + i, 1));
      continue;
    }
    const bool bare = format.data[i + 1] == '-' && i + 2 < format.size;
    i += bare ? 2 : 1;
    BERTH__TRY(text_date_part(j, &b, &date, format.data[i], bare));
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}
