/* Operators, functions, and methods of values. */
#include <math.h>
#include <string.h>

#include "base/math.h"
#include "text/jinja.h"
#include "text/unicode.h"

berth__jinja_value berth__jinja_argument(const berth__jinja_arguments *args, size_t at, const char *name) {
  for (size_t i = 0, position = 0; i < args->count; i++) {
    if (args->names[i].size != 0 ? berth__jinja_string_is(args->names[i], name) : position == at)
      return args->values[i];
    if (args->names[i].size == 0) position++;
  }
  return berth__jinja_make_undefined((berth__jinja_string){name, strlen(name)});
}

/* ---- Operators ---- */

static bool methods_number(berth__jinja_value value, double *out) {
  if (value.kind == BERTH__JINJA_BOOL) *out = value.as.boolean;
  if (value.kind == BERTH__JINJA_INT) *out = (double)value.as.integer;
  if (value.kind == BERTH__JINJA_FLOAT) *out = value.as.number;
  return value.kind == BERTH__JINJA_BOOL || value.kind == BERTH__JINJA_INT || value.kind == BERTH__JINJA_FLOAT;
}

/* False: the result does not fit, or is undefined. */
static bool methods_integer(berth__jinja_op op, int64_t a, int64_t b, int64_t *out) {
  switch (op) {
    case BERTH__JINJA_ADD: return berth__add_i64(a, b, out);
    case BERTH__JINJA_SUBTRACT: return b != INT64_MIN && berth__add_i64(a, -b, out);
    case BERTH__JINJA_MULTIPLY: {
      const double size = fabs((double)a) * fabs((double)b);
      if (size > 9e18) return false;
      *out = a * b;
      return true;
    }
    case BERTH__JINJA_FLOOR_DIVIDE:
      if (b == 0 || (a == INT64_MIN && b == -1)) return false;
      *out = a / b - (a % b != 0 && (a < 0) != (b < 0));
      return true;
    case BERTH__JINJA_MODULO:
      if (b == 0 || b == -1) {
        *out = 0;
        return b != 0;
      }
      *out = a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
      return true;
    case BERTH__JINJA_POWER:
      *out = 1;
      for (int64_t i = 0; i < b; i++) {
        if (i > 63 || !methods_integer(BERTH__JINJA_MULTIPLY, *out, a, out)) return false;
      }
      return b >= 0;
    default: return false;
  }
}

static berth_status methods_repeat(berth__jinja *j, berth__jinja_string text, int64_t count, berth__jinja_value *out) {
  berth__jinja_buffer b = {NULL, 0, 0};
  for (int64_t i = 0; i < count; i++) BERTH__TRY(berth__jinja_add(j, &b, text.data, text.size));
  *out = berth__jinja_make_string((berth__jinja_string){b.data != NULL ? b.data : "", b.size});
  return BERTH_OK;
}

static berth_status methods_add_lists(berth__jinja *j, const berth__jinja_list *a, const berth__jinja_list *b,
                                      berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < a->count; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, a->items[i]));
  for (size_t i = 0; i < b->count; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, b->items[i]));
  return BERTH_OK;
}

static berth_status methods_numbers(berth__jinja *j, berth__jinja_op op, double a, double b, berth__jinja_value *out) {
  if ((op == BERTH__JINJA_DIVIDE || op == BERTH__JINJA_FLOOR_DIVIDE || op == BERTH__JINJA_MODULO) && b == 0)
    return berth__jinja_fail(j, "a number is divided by 0");
  const double value = op == BERTH__JINJA_ADD            ? a + b
                       : op == BERTH__JINJA_SUBTRACT     ? a - b
                       : op == BERTH__JINJA_MULTIPLY     ? a * b
                       : op == BERTH__JINJA_DIVIDE       ? a / b
                       : op == BERTH__JINJA_FLOOR_DIVIDE ? floor(a / b)
                       : op == BERTH__JINJA_MODULO       ? a - b * floor(a / b)
                                                         : pow(a, b);
  *out = berth__jinja_make_float(value);
  return BERTH_OK;
}

berth_status berth__jinja_binary(berth__jinja *j, berth__jinja_op op, berth__jinja_value a, berth__jinja_value b,
                                 berth__jinja_value *out) {
  static const char *const signs[] = {"+", "-", "*", "/", "//", "%", "**", "~"};
  double left = 0, right = 0;
  if (op == BERTH__JINJA_CONCAT ||
      (op == BERTH__JINJA_ADD && a.kind == BERTH__JINJA_STRING && b.kind == BERTH__JINJA_STRING)) {
    berth__jinja_string parts[2];
    BERTH__TRY(berth__jinja_text_of(j, a, &parts[0]));
    BERTH__TRY(berth__jinja_text_of(j, b, &parts[1]));
    return berth__jinja_join(j, parts, 2, out);
  }
  if (op == BERTH__JINJA_ADD && a.kind == BERTH__JINJA_LIST && b.kind == BERTH__JINJA_LIST)
    return methods_add_lists(j, a.as.list, b.as.list, out);
  if (op == BERTH__JINJA_MULTIPLY && a.kind == BERTH__JINJA_STRING && b.kind == BERTH__JINJA_INT)
    return methods_repeat(j, a.as.string, b.as.integer, out);
  if (!methods_number(a, &left) || !methods_number(b, &right))
    return berth__jinja_fail(j, "%s does not go with values of types %s and %s", signs[op],
                             berth__jinja_kind_name(a.kind), berth__jinja_kind_name(b.kind));
  const bool whole = a.kind != BERTH__JINJA_FLOAT && b.kind != BERTH__JINJA_FLOAT && op != BERTH__JINJA_DIVIDE;
  if (!whole || (op == BERTH__JINJA_POWER && right < 0)) return methods_numbers(j, op, left, right, out);
  *out = berth__jinja_make_int(0);
  const int64_t x = a.kind == BERTH__JINJA_BOOL ? a.as.boolean : a.as.integer;
  const int64_t y = b.kind == BERTH__JINJA_BOOL ? b.as.boolean : b.as.integer;
  if (methods_integer(op, x, y, &out->as.integer)) return BERTH_OK;
  return berth__jinja_fail(j, "%lld %s %lld has no result", (long long)x, signs[op], (long long)y);
}

/* ---- Functions ---- */

static berth_status methods_range(berth__jinja *j, const berth__jinja_arguments *args, berth__jinja_value *out) {
  int64_t bounds[3] = {0, 0, 1};
  if (args->count == 0 || args->count > 3) return berth__jinja_fail(j, "range takes one to three numbers");
  for (size_t i = 0; i < args->count; i++) {
    if (args->values[i].kind != BERTH__JINJA_INT) return berth__jinja_fail(j, "range takes whole numbers");
    bounds[args->count == 1 ? 1 : i] = args->values[i].as.integer;
  }
  if (bounds[2] == 0) return berth__jinja_fail(j, "the step of a range is 0");
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (int64_t i = bounds[0]; bounds[2] > 0 ? i < bounds[1] : i > bounds[1];) {
    BERTH__TRY(berth__jinja_append(j, out->as.list, berth__jinja_make_int(i)));
    if (!berth__add_i64(i, bounds[2], &i)) break;
  }
  return BERTH_OK;
}

static berth_status methods_dict(berth__jinja *j, const berth__jinja_arguments *args, berth__jinja_kind kind,
                                 berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_dict(j, out));
  for (size_t i = 0; i < args->count; i++) {
    if (args->names[i].size != 0) {
      BERTH__TRY(berth__jinja_put(j, out->as.dict, berth__jinja_make_string(args->names[i]), args->values[i]));
    } else if (args->values[i].kind == BERTH__JINJA_DICT) {
      const berth__jinja_dict *from = args->values[i].as.dict;
      for (size_t k = 0; k < from->count; k++)
        BERTH__TRY(berth__jinja_put(j, out->as.dict, from->members[k].key, from->members[k].value));
    }
  }
  out->kind = kind;
  return BERTH_OK;
}

static const char *const methods_functions[] = {"range", "dict", "namespace", "raise_exception", "strftime_now"};

bool berth__jinja_is_function(berth__jinja_string name) {
  for (size_t i = 0; i < sizeof methods_functions / sizeof methods_functions[0]; i++) {
    if (berth__jinja_string_is(name, methods_functions[i])) return true;
  }
  return false;
}

berth_status berth__jinja_function(berth__jinja *j, berth__jinja_string name, const berth__jinja_arguments *args,
                                   berth__jinja_value *out) {
  berth__jinja_string text;
  if (berth__jinja_string_is(name, "range")) return methods_range(j, args, out);
  if (berth__jinja_string_is(name, "dict")) return methods_dict(j, args, BERTH__JINJA_DICT, out);
  if (berth__jinja_string_is(name, "namespace")) return methods_dict(j, args, BERTH__JINJA_NAMESPACE, out);
  BERTH__TRY(berth__jinja_text_of(j, berth__jinja_argument(args, 0, "message"), &text));
  if (berth__jinja_string_is(name, "strftime_now")) return berth__jinja_time(j, text, out);
  return berth__jinja_fail(j, "it says: %.*s", (int)(text.size < 300 ? text.size : 300), text.data);
}

/* ---- Methods ---- */

static berth_status methods_pairs(berth__jinja *j, const berth__jinja_dict *dict, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < dict->count; i++) {
    berth__jinja_value pair;
    BERTH__TRY(berth__jinja_new_list(j, &pair));
    BERTH__TRY(berth__jinja_append(j, pair.as.list, dict->members[i].key));
    BERTH__TRY(berth__jinja_append(j, pair.as.list, dict->members[i].value));
    BERTH__TRY(berth__jinja_append(j, out->as.list, pair));
  }
  return BERTH_OK;
}

static berth_status methods_unknown(berth__jinja *j, berth__jinja_value on, berth__jinja_string name) {
  return berth__jinja_fail(j, "a value of type %s has no method '%.*s'", berth__jinja_kind_name(on.kind),
                           (int)(name.size < 60 ? name.size : 60), name.data);
}

static berth_status methods_of_dict(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                    const berth__jinja_arguments *args, berth__jinja_value *out) {
  berth__jinja_dict *dict = on.as.dict;
  if (berth__jinja_string_is(name, "items")) return methods_pairs(j, dict, out);
  if (berth__jinja_string_is(name, "keys"))
    return berth__jinja_items(j, (berth__jinja_value){BERTH__JINJA_DICT, {.dict = dict}}, out);
  if (berth__jinja_string_is(name, "get") || berth__jinja_string_is(name, "pop")) {
    BERTH__TRY(berth__jinja_item(j, on, berth__jinja_argument(args, 0, "key"), out));
    if (out->kind == BERTH__JINJA_UNDEFINED) {
      *out = berth__jinja_argument(args, 1, "default");
      if (out->kind == BERTH__JINJA_UNDEFINED) *out = BERTH__JINJA_NO_VALUE;
      return BERTH_OK;
    }
    for (size_t i = 0; name.data[0] == 'p' && i < dict->count; i++) {
      bool same = false;
      BERTH__TRY(berth__jinja_equal(j, dict->members[i].key, berth__jinja_argument(args, 0, "key"), &same));
      if (!same) continue;
      BERTH__TRY(berth__jinja_step(j, (dict->count - i - 1) * sizeof *dict->members));
      memmove(dict->members + i, dict->members + i + 1, (dict->count - i - 1) * sizeof *dict->members);
      dict->count--;
      break;
    }
    return BERTH_OK;
  }
  if (berth__jinja_string_is(name, "values")) {
    BERTH__TRY(berth__jinja_new_list(j, out));
    for (size_t i = 0; i < dict->count; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, dict->members[i].value));
    return BERTH_OK;
  }
  if (!berth__jinja_string_is(name, "update")) return methods_unknown(j, on, name);
  const berth__jinja_value more = berth__jinja_argument(args, 0, "other");
  for (size_t i = 0; more.kind == BERTH__JINJA_DICT && i < more.as.dict->count; i++)
    BERTH__TRY(berth__jinja_put(j, dict, more.as.dict->members[i].key, more.as.dict->members[i].value));
  *out = BERTH__JINJA_NO_VALUE;
  return BERTH_OK;
}

static berth_status methods_pop(berth__jinja *j, berth__jinja_list *list, berth__jinja_value at,
                                berth__jinja_value *out) {
  const int64_t count = (int64_t)list->count;
  int64_t i = at.kind == BERTH__JINJA_INT ? at.as.integer : count - 1;
  if (i < 0) i += count;
  if (i < 0 || i >= count) return berth__jinja_fail(j, "pop: there is no such element");
  BERTH__TRY(berth__jinja_step(j, (size_t)(count - i - 1) * sizeof *list->items));
  *out = list->items[i];
  memmove(list->items + i, list->items + i + 1, (size_t)(count - i - 1) * sizeof *list->items);
  list->count--;
  return BERTH_OK;
}

static berth_status methods_of_list(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                    const berth__jinja_arguments *args, berth__jinja_value *out) {
  berth__jinja_list *list = on.as.list;
  const berth__jinja_value first = berth__jinja_argument(args, 0, "object");
  *out = BERTH__JINJA_NO_VALUE;
  if (berth__jinja_string_is(name, "append")) return berth__jinja_append(j, list, first);
  if (berth__jinja_string_is(name, "pop")) return methods_pop(j, list, first, out);
  if (berth__jinja_string_is(name, "extend") && first.kind == BERTH__JINJA_LIST) {
    const size_t n = first.as.list->count;
    for (size_t i = 0; i < n; i++) BERTH__TRY(berth__jinja_append(j, list, first.as.list->items[i]));
    return BERTH_OK;
  }
  if (berth__jinja_string_is(name, "insert") && first.kind == BERTH__JINJA_INT) {
    const int64_t count = (int64_t)list->count;
    int64_t at = first.as.integer < 0 ? first.as.integer + count : first.as.integer;
    at = at < 0 ? 0 : at > count ? count : at;
    BERTH__TRY(berth__jinja_step(j, (size_t)(count - at) * sizeof *list->items));
    BERTH__TRY(berth__jinja_append(j, list, BERTH__JINJA_NO_VALUE));
    memmove(list->items + at + 1, list->items + at, (size_t)(count - at) * sizeof *list->items);
    list->items[at] = berth__jinja_argument(args, 1, "value");
    return BERTH_OK;
  }
  const bool is_index = berth__jinja_string_is(name, "index");
  if (!is_index && !berth__jinja_string_is(name, "count")) return methods_unknown(j, on, name);
  *out = berth__jinja_make_int(0);
  for (size_t i = 0; i < list->count; i++) {
    bool same = false;
    BERTH__TRY(berth__jinja_equal(j, list->items[i], first, &same));
    if (same) out->as.integer = is_index ? (int64_t)i : out->as.integer + 1;
    if (same && is_index) return BERTH_OK;
  }
  return is_index ? berth__jinja_fail(j, "index: there is no such element") : BERTH_OK;
}

berth_status berth__jinja_method(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                 const berth__jinja_arguments *args, berth__jinja_value *out) {
  if (on.kind == BERTH__JINJA_STRING) return berth__jinja_string_method(j, on.as.string, name, args, out);
  if (on.kind == BERTH__JINJA_DICT) return methods_of_dict(j, on, name, args, out);
  if (on.kind == BERTH__JINJA_LIST) return methods_of_list(j, on, name, args, out);
  if (on.kind == BERTH__JINJA_LOOP && berth__jinja_string_is(name, "cycle") && args->count != 0) {
    *out = args->values[on.as.loop->at % args->count];
    return BERTH_OK;
  }
  if (on.kind == BERTH__JINJA_UNDEFINED)
    return berth__jinja_fail(j, "'%.*s' is not defined", (int)(on.as.string.size < 60 ? on.as.string.size : 60),
                             on.as.string.data);
  return methods_unknown(j, on, name);
}
