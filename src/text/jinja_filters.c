/* Filters and tests. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "text/jinja.h"

typedef struct filter_call {
  berth__jinja_value on;
  berth__jinja_string name;
  const berth__jinja_arguments *args;
} filter_call;

static berth_status filter_length(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  berth__jinja_value items;
  if (f->on.kind == BERTH__JINJA_STRING) {
    BERTH__TRY(berth__jinja_step(j, f->on.as.string.size));
    *out = berth__jinja_make_int((int64_t)berth__jinja_characters(f->on.as.string));
    return BERTH_OK;
  }
  BERTH__TRY(berth__jinja_items(j, f->on, &items));
  *out = berth__jinja_make_int((int64_t)items.as.list->count);
  return BERTH_OK;
}

static berth_status filter_default(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  (void)j;
  const bool also_false = berth__jinja_truth(berth__jinja_argument(f->args, 1, "boolean"));
  *out = f->on;
  if (f->on.kind != BERTH__JINJA_UNDEFINED && (!also_false || berth__jinja_truth(f->on))) return BERTH_OK;
  *out = berth__jinja_argument(f->args, 0, "default_value");
  if (out->kind == BERTH__JINJA_UNDEFINED) *out = berth__jinja_make_string(BERTH__JINJA_STRING_OF(""));
  return BERTH_OK;
}

static berth_status filter_tojson(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  const berth__jinja_value indent = berth__jinja_argument(f->args, 1, "indent");
  berth__jinja_buffer b = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_to_json(j, f->on, indent.kind == BERTH__JINJA_INT ? indent.as.integer : -1, &b));
  *out = berth__jinja_make_string((berth__jinja_string){b.data, b.size});
  return BERTH_OK;
}

static berth_status filter_from_json(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  if (f->on.kind != BERTH__JINJA_STRING) return berth__jinja_fail(j, "from_json takes a string");
  return berth__jinja_from_json(j, f->on.as.string, out);
}

static berth_status filter_string(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  berth__jinja_string text;
  BERTH__TRY(berth__jinja_text_of(j, f->on, &text));
  *out = berth__jinja_make_string(text);
  return BERTH_OK;
}

/* Filters that are string methods, for any value with a text. */
static berth_status filter_method(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  berth__jinja_string text;
  BERTH__TRY(berth__jinja_text_of(j, f->on, &text));
  const berth__jinja_string name = berth__jinja_string_is(f->name, "trim") ? BERTH__JINJA_STRING_OF("strip") : f->name;
  return berth__jinja_string_method(j, text, name, f->args, out);
}

static berth_status filter_items(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  const berth__jinja_arguments none = {.count = 0};
  if (f->on.kind == BERTH__JINJA_UNDEFINED) return berth__jinja_new_list(j, out);
  return berth__jinja_method(j, f->on, BERTH__JINJA_STRING_OF("items"), &none, out);
}

static berth_status filter_int(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  char text[64];
  double value = 0;
  (void)j;
  *out = berth__jinja_argument(f->args, 0, "default");
  if (out->kind == BERTH__JINJA_UNDEFINED) *out = berth__jinja_make_int(0);
  if (f->on.kind == BERTH__JINJA_INT || f->on.kind == BERTH__JINJA_BOOL) {
    *out = berth__jinja_make_int(f->on.kind == BERTH__JINJA_INT ? f->on.as.integer : f->on.as.boolean);
    return BERTH_OK;
  }
  if (f->on.kind == BERTH__JINJA_FLOAT) value = f->on.as.number;
  if (f->on.kind == BERTH__JINJA_STRING && f->on.as.string.size < sizeof text) {
    memcpy(text, f->on.as.string.data, f->on.as.string.size);
    text[f->on.as.string.size] = '\0';
    if (!berth__parse_double(text, &value)) return BERTH_OK;
  } else if (f->on.kind != BERTH__JINJA_FLOAT) {
    return BERTH_OK;
  }
  if (fabs(value) < 9e18) *out = berth__jinja_make_int((int64_t)value);
  return BERTH_OK;
}

static berth_status filter_float(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  char text[64];
  double value = 0;
  (void)j;
  *out = berth__jinja_argument(f->args, 0, "default");
  if (out->kind == BERTH__JINJA_UNDEFINED) *out = berth__jinja_make_float(0);
  if (f->on.kind == BERTH__JINJA_FLOAT) *out = f->on;
  if (f->on.kind == BERTH__JINJA_INT) *out = berth__jinja_make_float((double)f->on.as.integer);
  if (f->on.kind != BERTH__JINJA_STRING || f->on.as.string.size >= sizeof text) return BERTH_OK;
  memcpy(text, f->on.as.string.data, f->on.as.string.size);
  text[f->on.as.string.size] = '\0';
  if (berth__parse_double(text, &value)) *out = berth__jinja_make_float(value);
  return BERTH_OK;
}

static berth_status filter_abs(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  *out = f->on;
  if (f->on.kind == BERTH__JINJA_FLOAT) *out = berth__jinja_make_float(fabs(f->on.as.number));
  if (f->on.kind == BERTH__JINJA_INT && f->on.as.integer < 0)
    return berth__jinja_binary(j, BERTH__JINJA_SUBTRACT, berth__jinja_make_int(0), f->on, out);
  return BERTH_OK;
}

static berth_status filter_round(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  const berth__jinja_value digits = berth__jinja_argument(f->args, 0, "precision");
  const double scale = digits.kind == BERTH__JINJA_INT ? pow(10, (double)digits.as.integer) : 1;
  (void)j;
  *out = f->on;
  if (f->on.kind == BERTH__JINJA_INT) *out = berth__jinja_make_float((double)f->on.as.integer);
  if (f->on.kind == BERTH__JINJA_FLOAT) *out = berth__jinja_make_float(nearbyint(f->on.as.number * scale) / scale);
  return BERTH_OK;
}

static berth_status filter_join(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  const berth__jinja_value between = berth__jinja_argument(f->args, 0, "d");
  const berth__jinja_value by = berth__jinja_argument(f->args, 1, "attribute");
  berth__jinja_value items;
  berth__jinja_buffer b = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_items(j, f->on, &items));
  for (size_t i = 0; i < items.as.list->count; i++) {
    berth__jinja_value item = items.as.list->items[i];
    BERTH__TRY(berth__jinja_step(j, 0));
    if (by.kind == BERTH__JINJA_STRING) BERTH__TRY(berth__jinja_attribute(j, item, by.as.string, &item));
    if (i != 0) BERTH__TRY(berth__jinja_add_value(j, &b, between));
    BERTH__TRY(berth__jinja_add_value(j, &b, item));
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

/* Indents every line but the first. */
static berth_status filter_indent(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  const berth__jinja_value width = berth__jinja_argument(f->args, 0, "width");
  const bool first = berth__jinja_truth(berth__jinja_argument(f->args, 1, "first"));
  const bool blank = berth__jinja_truth(berth__jinja_argument(f->args, 2, "blank"));
  berth__jinja_string text, by = BERTH__JINJA_STRING_OF("    ");
  berth__jinja_value spaces;
  berth__jinja_buffer b = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_text_of(j, f->on, &text));
  if (width.kind == BERTH__JINJA_STRING) by = width.as.string;
  if (width.kind == BERTH__JINJA_INT) {
    BERTH__TRY(berth__jinja_binary(j, BERTH__JINJA_MULTIPLY, berth__jinja_make_string(BERTH__JINJA_STRING_OF(" ")),
                                   width, &spaces));
    by = spaces.as.string;
  }
  for (size_t at = 0; at <= text.size;) {
    const char *next = at < text.size ? memchr(text.data + at, '\n', text.size - at) : NULL;
    const size_t end = next != NULL ? (size_t)(next - text.data) : text.size;
    if (at == 0 ? first : (blank || end > at)) BERTH__TRY(berth__jinja_add(j, &b, by.data, by.size));
    BERTH__TRY(berth__jinja_add(j, &b, text.data + at, end - at + (next != NULL)));
    at = end + 1;
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

static berth_status filter_escape(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  static const char *const texts[] = {"&amp;", "&lt;", "&gt;", "&#34;", "&#39;"};
  static const char signs[] = "&<>\"'";
  berth__jinja_string text;
  berth__jinja_buffer b = {NULL, 0, 0};
  BERTH__TRY(berth__jinja_text_of(j, f->on, &text));
  for (size_t i = 0; i < text.size; i++) {
    const char *sign = memchr(signs, text.data[i], sizeof signs - 1);
    const char *escape = sign != NULL ? texts[sign - signs] : NULL;
    BERTH__TRY(escape != NULL ? berth__jinja_add(j, &b, escape, strlen(escape))
                              : berth__jinja_add(j, &b, text.data + i, 1));
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

static berth_status format_part(berth__jinja *j, char kind, berth__jinja_value value, berth__jinja_buffer *b) {
  const bool is_rounded = value.kind == BERTH__JINJA_FLOAT && fabs(value.as.number) < 9e18;
  if (kind == 's') return berth__jinja_add_value(j, b, value);
  if (value.kind == BERTH__JINJA_BOOL) value = berth__jinja_make_int(value.as.boolean);
  if (is_rounded) value = berth__jinja_make_int((int64_t)value.as.number);
  if ((kind != 'd' && kind != 'i') || value.kind != BERTH__JINJA_INT)
    return berth__jinja_fail(j, "format does not know %%%c of a value of type %s", kind,
                             berth__jinja_kind_name(value.kind));
  return berth__jinja_add_value(j, b, value);
}

/* "%s of %d" | format(a, b): the basic conversions of Python. */
static berth_status filter_format(berth__jinja *j, const filter_call *f, berth__jinja_value *out) {
  berth__jinja_string text;
  berth__jinja_buffer b = {NULL, 0, 0};
  size_t used = 0, n = 0; /* positional arguments */
  for (size_t i = 0; i < f->args->count; i++) n += f->args->names[i].size == 0;
  BERTH__TRY(berth__jinja_text_of(j, f->on, &text));
  for (size_t i = 0; i < text.size; i++) {
    const char kind = text.data[i] == '%' && i + 1 < text.size ? text.data[i + 1] : '\0';
    if (kind == '\0' || kind == '%') {
      BERTH__TRY(berth__jinja_add(j, &b, text.data + i, 1));
    } else if (used == n) {
      return berth__jinja_fail(j, "format has %zu value%s, fewer than its text names", n, berth__plural(n));
    } else {
      BERTH__TRY(format_part(j, kind, berth__jinja_argument(f->args, used++, ""), &b));
    }
    if (kind != '\0') i++;
  }
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

berth_status berth__jinja_filter(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                 const berth__jinja_arguments *args, berth__jinja_value *out) {
  static const struct {
    const char *name;
    berth_status (*apply)(berth__jinja *j, const filter_call *f, berth__jinja_value *out);
  } filters[] = {{"trim", filter_method},
                 {"length", filter_length},
                 {"count", filter_length},
                 {"default", filter_default},
                 {"d", filter_default},
                 {"tojson", filter_tojson},
                 {"from_json", filter_from_json},
                 {"fromjson", filter_from_json},
                 {"string", filter_string},
                 {"safe", filter_string},
                 {"upper", filter_method},
                 {"lower", filter_method},
                 {"title", filter_method},
                 {"capitalize", filter_method},
                 {"replace", filter_method},
                 {"items", filter_items},
                 {"int", filter_int},
                 {"float", filter_float},
                 {"abs", filter_abs},
                 {"round", filter_round},
                 {"join", filter_join},
                 {"indent", filter_indent},
                 {"format", filter_format},
                 {"escape", filter_escape},
                 {"e", filter_escape}};
  const filter_call f = {on, name, args};
  for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
    if (berth__jinja_string_is(name, filters[i].name)) return filters[i].apply(j, &f, out);
  }
  bool known = true;
  BERTH__TRY(berth__jinja_list_filter(j, on, name, args, out, &known));
  if (known) return BERTH_OK;
  return berth__jinja_fail(j, "the filter '%.*s' is not known", (int)(name.size < 60 ? name.size : 60), name.data);
}

/* ---- Tests ---- */

static bool test_is_kind(berth__jinja_value on, berth__jinja_string name, bool *out) {
  const bool is_number = on.kind == BERTH__JINJA_INT || on.kind == BERTH__JINJA_FLOAT || on.kind == BERTH__JINJA_BOOL;
  const bool is_sequence =
      on.kind == BERTH__JINJA_LIST || on.kind == BERTH__JINJA_STRING || on.kind == BERTH__JINJA_DICT;
  const struct {
    const char *name;
    bool holds;
  } tests[] = {{"defined", on.kind != BERTH__JINJA_UNDEFINED},
               {"undefined", on.kind == BERTH__JINJA_UNDEFINED},
               {"none", on.kind == BERTH__JINJA_NONE},
               {"string", on.kind == BERTH__JINJA_STRING},
               {"mapping", on.kind == BERTH__JINJA_DICT},
               {"sequence", is_sequence},
               {"iterable", is_sequence || on.kind == BERTH__JINJA_UNDEFINED},
               {"number", is_number},
               {"integer", on.kind == BERTH__JINJA_INT},
               {"float", on.kind == BERTH__JINJA_FLOAT},
               {"boolean", on.kind == BERTH__JINJA_BOOL},
               {"true", on.kind == BERTH__JINJA_BOOL && on.as.boolean},
               {"false", on.kind == BERTH__JINJA_BOOL && !on.as.boolean},
               {"callable", on.kind == BERTH__JINJA_MACRO || on.kind == BERTH__JINJA_FUNCTION}};
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    if (!berth__jinja_string_is(name, tests[i].name)) continue;
    *out = tests[i].holds;
    return true;
  }
  return false;
}

static berth_status test_divides(berth__jinja *j, berth__jinja_value on, berth__jinja_value by, int64_t rest,
                                 bool *out) {
  berth__jinja_value left;
  BERTH__TRY(berth__jinja_binary(j, BERTH__JINJA_MODULO, on, by, &left));
  *out = left.kind == BERTH__JINJA_INT && left.as.integer == rest;
  return BERTH_OK;
}

static berth_status test_case(berth__jinja *j, berth__jinja_value on, berth__jinja_string name, bool *out) {
  const berth__jinja_arguments none = {.count = 0};
  berth__jinja_value changed;
  *out = false;
  if (on.kind != BERTH__JINJA_STRING) return BERTH_OK;
  BERTH__TRY(berth__jinja_string_method(j, on.as.string, name, &none, &changed));
  return berth__jinja_match(j, changed.as.string, on.as.string, out);
}

berth_status berth__jinja_test(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                               const berth__jinja_arguments *args, bool *out) {
  static const struct {
    const char *names;
    int least, most; /* the order of both operands */
  } orders[] = {{"lt lessthan <", -1, -1}, {"le <=", -1, 0}, {"gt greaterthan >", 1, 1}, {"ge >=", 0, 1}};
  const berth__jinja_value other = berth__jinja_argument(args, 0, "other");
  if (test_is_kind(on, name, out)) return BERTH_OK;
  if (berth__jinja_string_is(name, "eq") || berth__jinja_string_is(name, "equalto") ||
      berth__jinja_string_is(name, "sameas") || berth__jinja_string_is(name, "=="))
    return berth__jinja_equal(j, on, other, out);
  if (berth__jinja_string_is(name, "ne") || berth__jinja_string_is(name, "!=")) {
    BERTH__TRY(berth__jinja_equal(j, on, other, out));
    *out = !*out;
    return BERTH_OK;
  }
  if (berth__jinja_string_is(name, "in")) return berth__jinja_contains(j, other, on, out);
  if (berth__jinja_string_is(name, "odd")) return test_divides(j, on, berth__jinja_make_int(2), 1, out);
  if (berth__jinja_string_is(name, "even")) return test_divides(j, on, berth__jinja_make_int(2), 0, out);
  if (berth__jinja_string_is(name, "divisibleby")) return test_divides(j, on, other, 0, out);
  if (berth__jinja_string_is(name, "upper") || berth__jinja_string_is(name, "lower"))
    return test_case(j, on, name, out);
  for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
    for (const char *at = orders[i].names; *at != '\0';) {
      const size_t size = strcspn(at, " ");
      if (berth__jinja_same(name, (berth__jinja_string){at, size})) {
        int order = 0;
        BERTH__TRY(berth__jinja_compare(j, on, other, &order));
        order = order < 0 ? -1 : order > 0;
        *out = order >= orders[i].least && order <= orders[i].most;
        return BERTH_OK;
      }
      at += size + (at[size] == ' ');
    }
  }
  return berth__jinja_fail(j, "the test '%.*s' is not known", (int)(name.size < 60 ? name.size : 60), name.data);
}
