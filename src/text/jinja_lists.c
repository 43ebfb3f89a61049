/* Filters for lists. */
#include <string.h>

#include "text/jinja.h"

typedef struct list_call {
  berth__jinja_list *items;
  berth__jinja_value on;
  berth__jinja_string name;
  const berth__jinja_arguments *args;
} list_call;

/* "a.b": a member of a member. */
static berth_status list_member(berth__jinja *j, berth__jinja_value on, berth__jinja_value path,
                                berth__jinja_value *out) {
  *out = on;
  if (path.kind == BERTH__JINJA_INT) return berth__jinja_item(j, on, path, out);
  if (path.kind != BERTH__JINJA_STRING) return BERTH_OK;
  berth__jinja_string rest = path.as.string;
  BERTH__TRY(berth__jinja_step(j, rest.size));
  while (rest.size != 0) {
    const char *dot = memchr(rest.data, '.', rest.size);
    const size_t n = dot != NULL ? (size_t)(dot - rest.data) : rest.size;
    if (out->kind == BERTH__JINJA_UNDEFINED) return BERTH_OK;
    BERTH__TRY(berth__jinja_attribute(j, *out, (berth__jinja_string){rest.data, n}, out));
    rest = (berth__jinja_string){rest.data + n + (dot != NULL), rest.size - n - (dot != NULL)};
  }
  return BERTH_OK;
}

static berth_status list_end(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  (void)j;
  *out = berth__jinja_make_undefined(BERTH__JINJA_STRING_OF("an element of an empty list"));
  if (l->items->count != 0) *out = l->items->items[l->name.data[0] == 'f' ? 0 : l->items->count - 1];
  return BERTH_OK;
}

static berth_status list_copy(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < l->items->count; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, l->items->items[i]));
  return BERTH_OK;
}

static berth_status list_reverse(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const berth__jinja_value bounds[3] = {BERTH__JINJA_NO_VALUE, BERTH__JINJA_NO_VALUE, berth__jinja_make_int(-1)};
  if (l->on.kind == BERTH__JINJA_STRING) return berth__jinja_slice(j, l->on, bounds, out);
  return berth__jinja_slice(j, (berth__jinja_value){BERTH__JINJA_LIST, {.list = l->items}}, bounds, out);
}

/* select, reject (by the item) and selectattr, rejectattr (by a member of it): the items for which a test holds. */
static berth_status list_select(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const bool by_member = l->name.size > 6, wanted = l->name.data[0] == 's';
  const berth__jinja_value test = berth__jinja_argument(l->args, by_member, "test");
  berth__jinja_arguments *rest = berth__jinja_alloc(j, sizeof *rest);
  if (rest == NULL) return berth__jinja_nomem(j);
  rest->count = 0;
  for (size_t i = (size_t)by_member + 1; i < l->args->count; i++) {
    rest->names[rest->count] = (berth__jinja_string){"", 0};
    rest->values[rest->count++] = l->args->values[i];
  }
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < l->items->count; i++) {
    berth__jinja_value item = l->items->items[i];
    BERTH__TRY(berth__jinja_step(j, 0));
    if (by_member) BERTH__TRY(list_member(j, item, berth__jinja_argument(l->args, 0, "attribute"), &item));
    bool holds = berth__jinja_truth(item);
    if (test.kind == BERTH__JINJA_STRING) BERTH__TRY(berth__jinja_test(j, item, test.as.string, rest, &holds));
    if (holds == wanted) BERTH__TRY(berth__jinja_append(j, out->as.list, l->items->items[i]));
  }
  return BERTH_OK;
}

/* map(attribute='a'), or map('filter', arguments) */
static berth_status list_map(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const berth__jinja_value member = berth__jinja_argument(l->args, BERTH__JINJA_MAX_ARGUMENTS, "attribute");
  const berth__jinja_value otherwise = berth__jinja_argument(l->args, BERTH__JINJA_MAX_ARGUMENTS, "default");
  const berth__jinja_value filter = berth__jinja_argument(l->args, 0, "filter");
  berth__jinja_arguments *rest = berth__jinja_alloc(j, sizeof *rest);
  if (rest == NULL) return berth__jinja_nomem(j);
  rest->count = 0;
  for (size_t i = 1; i < l->args->count; i++) {
    rest->names[rest->count] = l->args->names[i];
    rest->values[rest->count++] = l->args->values[i];
  }
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < l->items->count; i++) {
    berth__jinja_value item = l->items->items[i];
    if (member.kind != BERTH__JINJA_UNDEFINED) {
      BERTH__TRY(list_member(j, item, member, &item));
      if (item.kind == BERTH__JINJA_UNDEFINED && otherwise.kind != BERTH__JINJA_UNDEFINED) item = otherwise;
    } else if (filter.kind == BERTH__JINJA_STRING) {
      BERTH__TRY(berth__jinja_filter(j, item, filter.as.string, rest, &item));
    }
    BERTH__TRY(berth__jinja_append(j, out->as.list, item));
  }
  return BERTH_OK;
}

/* The sort key of an item: a member, in lower case if it is a string and case does not matter. */
static berth_status list_sort_key(berth__jinja *j, berth__jinja_value item, berth__jinja_value member,
                                  bool case_matters, berth__jinja_value *out) {
  const berth__jinja_arguments none = {.count = 0};
  BERTH__TRY(list_member(j, item, member, out));
  if (out->kind != BERTH__JINJA_STRING || case_matters) return BERTH_OK;
  return berth__jinja_string_method(j, out->as.string, BERTH__JINJA_STRING_OF("lower"), &none, out);
}

typedef struct list_keyed {
  berth__jinja_value key, item;
} list_keyed;

/* Merge sort, which is stable; n log n comparisons. */
static berth_status list_sort_keyed(berth__jinja *j, list_keyed *items, list_keyed *other, size_t n, bool reverse) {
  for (size_t width = 1; width < n; width *= 2) {
    for (size_t begin = 0; begin < n; begin += 2 * width) {
      const size_t middle = begin + width < n ? begin + width : n, end = middle + width < n ? middle + width : n;
      for (size_t i = begin, a = begin, b = middle; i < end; i++) {
        int order = a == middle ? 1 : b == end ? -1 : 0;
        if (order == 0) {
          BERTH__TRY(berth__jinja_compare(j, items[a].key, items[b].key, &order));
          order = reverse ? -order : order;
        }
        other[i] = order <= 0 ? items[a++] : items[b++];
      }
    }
    memcpy(items, other, n * sizeof *items);
  }
  return BERTH_OK;
}

static berth_status list_sort_by(berth__jinja *j, const list_call *l, berth__jinja_value member, bool case_matters,
                                 bool reverse, berth__jinja_value *out) {
  const size_t n = l->items->count;
  list_keyed *items = berth__jinja_alloc(j, n * sizeof *items), *other = berth__jinja_alloc(j, n * sizeof *other);
  if (items == NULL || other == NULL) return berth__jinja_nomem(j);
  for (size_t i = 0; i < n; i++) {
    items[i].item = l->items->items[i];
    BERTH__TRY(list_sort_key(j, items[i].item, member, case_matters, &items[i].key));
  }
  BERTH__TRY(list_sort_keyed(j, items, other, n, reverse));
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < n; i++) BERTH__TRY(berth__jinja_append(j, out->as.list, items[i].item));
  return BERTH_OK;
}

static berth_status list_sort(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const bool reverse = berth__jinja_truth(berth__jinja_argument(l->args, 0, "reverse"));
  const bool case_matters = berth__jinja_truth(berth__jinja_argument(l->args, 1, "case_sensitive"));
  return list_sort_by(j, l, berth__jinja_argument(l->args, 2, "attribute"), case_matters, reverse, out);
}

static berth_status list_dictsort(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const berth__jinja_arguments none = {.count = 0};
  const berth__jinja_value by = berth__jinja_argument(l->args, 1, "by");
  const bool by_value = by.kind == BERTH__JINJA_STRING && berth__jinja_string_is(by.as.string, "value");
  if (l->on.kind != BERTH__JINJA_DICT) return berth__jinja_fail(j, "dictsort takes a dict");
  berth__jinja_value pairs;
  BERTH__TRY(berth__jinja_method(j, l->on, BERTH__JINJA_STRING_OF("items"), &none, &pairs));
  list_call over = *l;
  over.items = pairs.as.list;
  return list_sort_by(j, &over, berth__jinja_make_int(by_value),
                      berth__jinja_truth(berth__jinja_argument(l->args, 0, "case_sensitive")),
                      berth__jinja_truth(berth__jinja_argument(l->args, 2, "reverse")), out);
}

static berth_status list_extreme(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const berth__jinja_value member = berth__jinja_argument(l->args, 1, "attribute");
  const bool least = berth__jinja_string_is(l->name, "min");
  berth__jinja_value best = BERTH__JINJA_NO_VALUE, key;
  *out = berth__jinja_make_undefined(BERTH__JINJA_STRING_OF("an element of an empty list"));
  for (size_t i = 0; i < l->items->count; i++) {
    int order = -1;
    BERTH__TRY(list_sort_key(j, l->items->items[i], member, false, &key));
    if (i != 0) BERTH__TRY(berth__jinja_compare(j, key, best, &order));
    if (i != 0 && (least ? order >= 0 : order <= 0)) continue;
    best = key;
    *out = l->items->items[i];
  }
  return BERTH_OK;
}

static berth_status list_sum(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  const berth__jinja_value member = berth__jinja_argument(l->args, 0, "attribute");
  *out = berth__jinja_argument(l->args, 1, "start");
  if (out->kind == BERTH__JINJA_UNDEFINED) *out = berth__jinja_make_int(0);
  for (size_t i = 0; i < l->items->count; i++) {
    berth__jinja_value item;
    BERTH__TRY(berth__jinja_step(j, 0));
    BERTH__TRY(list_member(j, l->items->items[i], member, &item));
    BERTH__TRY(berth__jinja_binary(j, BERTH__JINJA_ADD, *out, item, out));
  }
  return BERTH_OK;
}

static berth_status list_unique(berth__jinja *j, const list_call *l, berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_new_list(j, out));
  for (size_t i = 0; i < l->items->count; i++) {
    bool there = false;
    BERTH__TRY(berth__jinja_contains(j, *out, l->items->items[i], &there));
    if (!there) BERTH__TRY(berth__jinja_append(j, out->as.list, l->items->items[i]));
  }
  return BERTH_OK;
}

berth_status berth__jinja_list_filter(berth__jinja *j, berth__jinja_value on, berth__jinja_string name,
                                      const berth__jinja_arguments *args, berth__jinja_value *out, bool *known) {
  static const struct {
    const char *name;
    berth_status (*apply)(berth__jinja *j, const list_call *l, berth__jinja_value *out);
  } filters[] = {{"first", list_end},         {"last", list_end},          {"list", list_copy},
                 {"reverse", list_reverse},   {"select", list_select},     {"reject", list_select},
                 {"selectattr", list_select}, {"rejectattr", list_select}, {"map", list_map},
                 {"sort", list_sort},         {"dictsort", list_dictsort}, {"min", list_extreme},
                 {"max", list_extreme},       {"sum", list_sum},           {"unique", list_unique}};
  for (size_t i = 0; i < sizeof filters / sizeof filters[0]; i++) {
    if (!berth__jinja_string_is(name, filters[i].name)) continue;
    berth__jinja_value items;
    const bool may_be_none =
        filters[i].apply == list_select || filters[i].apply == list_map; /* empty input, empty result */
    if (may_be_none && on.kind == BERTH__JINJA_NONE) return berth__jinja_new_list(j, out);
    BERTH__TRY(berth__jinja_items(j, on, &items));
    const list_call l = {items.as.list, on, name, args};
    return filters[i].apply(j, &l, out);
  }
  *known = false;
  return BERTH_OK;
}
