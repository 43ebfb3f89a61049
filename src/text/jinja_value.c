/* Values: memory, truth, equality, order, and their text. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "text/jinja.h"
#include "text/unicode.h"

/* ---- Memory, steps, errors ---- */

typedef struct berth__jinja_block {
  struct berth__jinja_block *next;
  size_t used, size;
  _Alignas(16) char data[];
} berth__jinja_block;

void *berth__jinja_alloc(berth__jinja *j, size_t size) {
  if (size > BERTH__TEMPLATE_MEMORY || j->used + size > BERTH__TEMPLATE_MEMORY) {
    (void)berth__jinja_fail(j, "the template needs more than %zu MiB", BERTH__TEMPLATE_MEMORY >> 20);
    return NULL;
  }
  size = (size + 15) & ~(size_t)15;
  berth__jinja_block *block = j->blocks;
  if (block == NULL || block->size - block->used < size) {
    const size_t room = size > 16384 ? size : 16384;
    block = berth__alloc(j->ctx, sizeof *block + room);
    if (block == NULL) {
      (void)berth__fail_nomem(j->err, "the template");
      return NULL;
    }
    *block = (berth__jinja_block){j->blocks, 0, room};
    j->blocks = block;
  }
  j->used += size;
  block->used += size;
  return block->data + block->used - size;
}

void berth__jinja_free(berth__jinja *j) {
  for (berth__jinja_block *block = j->blocks, *next; block != NULL; block = next) {
    next = block->next;
    berth__free(j->ctx, block);
  }
  j->blocks = NULL;
}

#undef berth__jinja_fail
#undef berth__jinja_nomem
#undef berth__jinja_step
berth_status berth__jinja_fail(berth__jinja *j, const char *fmt, ...) {
  char text[400];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  return berth__fail(j->err, BERTH_MALFORMED, "the chat template, line %u: %s", j->line, text);
}

berth_status berth__jinja_nomem(const berth__jinja *j) { return j->err->status; }

berth_status berth__jinja_step(berth__jinja *j, size_t bytes) {
  const size_t steps = 1 + bytes / 64;
  if (steps > BERTH__TEMPLATE_STEPS - j->steps)
    return berth__jinja_fail(j, "the template takes more than %u steps", BERTH__TEMPLATE_STEPS);
  j->steps += (uint32_t)steps;
  return BERTH_OK;
}

/* ---- Strings ---- */

bool berth__jinja_same(berth__jinja_string a, berth__jinja_string b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

bool berth__jinja_string_is(berth__jinja_string a, const char *text) {
  return berth__jinja_same(a, (berth__jinja_string){text, strlen(text)});
}

berth_status berth__jinja_match(berth__jinja *j, berth__jinja_string a, berth__jinja_string b, bool *out) {
  *out = false;
  if (a.size != b.size) return BERTH_OK;
  if (a.size >= 64) BERTH__TRY(berth__jinja_step(j, a.size));
  *out = berth__jinja_same(a, b);
  return BERTH_OK;
}

size_t berth__jinja_characters(berth__jinja_string text) {
  size_t n = 0;
  for (size_t at = 0; at < text.size; n++) {
    const size_t size = berth__utf8_length(text.data + at, text.size - at);
    at += size != 0 ? size : 1;
  }
  return n;
}

berth__jinja_string berth__jinja_substring(berth__jinja_string text, size_t first, size_t last) {
  size_t begin = text.size, n = 0, at = 0;
  for (;; n++) {
    if (n == first) begin = at;
    if (n >= last || at >= text.size) break;
    const size_t size = berth__utf8_length(text.data + at, text.size - at);
    at += size != 0 ? size : 1;
  }
  return (berth__jinja_string){text.data + (begin < at ? begin : at), begin < at ? at - begin : 0};
}

berth_status berth__jinja_add(berth__jinja *j, berth__jinja_buffer *buffer, const char *bytes, size_t size) {
  BERTH__TRY(berth__jinja_step(j, size));
  if (size > buffer->capacity - buffer->size) {
    size_t capacity = 2 * buffer->capacity > buffer->size + size ? 2 * buffer->capacity : buffer->size + size;
    if (capacity < 64) capacity = 64;
    char *data = berth__jinja_alloc(j, capacity);
    if (data == NULL) return berth__jinja_nomem(j);
    if (buffer->size != 0) memcpy(data, buffer->data, buffer->size);
    buffer->data = data;
    buffer->capacity = capacity;
  }
  if (size != 0) memcpy(buffer->data + buffer->size, bytes, size);
  buffer->size += size;
  return BERTH_OK;
}

berth_status berth__jinja_join(berth__jinja *j, const berth__jinja_string *parts, size_t count,
                               berth__jinja_value *out) {
  size_t size = 0, at = 0;
  for (size_t i = 0; i < count; i++) size += parts[i].size;
  BERTH__TRY(berth__jinja_step(j, size));
  char *data = berth__jinja_alloc(j, size);
  if (data == NULL) return berth__jinja_nomem(j);
  for (size_t i = 0; i < count; i++) {
    if (parts[i].size != 0) memcpy(data + at, parts[i].data, parts[i].size);
    at += parts[i].size;
  }
  *out = berth__jinja_make_string((berth__jinja_string){data, size});
  return BERTH_OK;
}

/* ---- Lists and dicts ---- */

berth_status berth__jinja_new_list(berth__jinja *j, berth__jinja_value *out) {
  berth__jinja_list *list = berth__jinja_alloc(j, sizeof *list);
  if (list == NULL) return berth__jinja_nomem(j);
  *list = (berth__jinja_list){NULL, 0, 0};
  *out = (berth__jinja_value){BERTH__JINJA_LIST, {.list = list}};
  return BERTH_OK;
}

/* Makes room for one more. */
static berth_status value_grow(berth__jinja *j, void **items, size_t *capacity, size_t count, size_t size) {
  BERTH__TRY(berth__jinja_step(j, 0));
  if (count < *capacity) return BERTH_OK;
  const size_t grown = *capacity != 0 ? 2 * *capacity : 4;
  void *more = berth__jinja_alloc(j, grown * size);
  if (more == NULL) return berth__jinja_nomem(j);
  if (count != 0) memcpy(more, *items, count * size);
  *items = more;
  *capacity = grown;
  return BERTH_OK;
}

berth_status berth__jinja_append(berth__jinja *j, berth__jinja_list *list, berth__jinja_value value) {
  BERTH__TRY(value_grow(j, (void **)&list->items, &list->capacity, list->count, sizeof *list->items));
  list->items[list->count++] = value;
  return BERTH_OK;
}

berth_status berth__jinja_new_dict(berth__jinja *j, berth__jinja_value *out) {
  berth__jinja_dict *dict = berth__jinja_alloc(j, sizeof *dict);
  if (dict == NULL) return berth__jinja_nomem(j);
  *dict = (berth__jinja_dict){NULL, 0, 0};
  *out = (berth__jinja_value){BERTH__JINJA_DICT, {.dict = dict}};
  return BERTH_OK;
}

berth_status berth__jinja_put(berth__jinja *j, berth__jinja_dict *dict, berth__jinja_value key,
                              berth__jinja_value value) {
  BERTH__TRY(berth__jinja_step(j, 64 * (dict->count / 16)));
  for (size_t i = 0; i < dict->count; i++) {
    bool same = false;
    BERTH__TRY(berth__jinja_equal(j, dict->members[i].key, key, &same));
    if (!same) continue;
    dict->members[i].value = value;
    return BERTH_OK;
  }
  BERTH__TRY(value_grow(j, (void **)&dict->members, &dict->capacity, dict->count, sizeof *dict->members));
  dict->members[dict->count++] = (berth__jinja_member){key, value};
  return BERTH_OK;
}

berth_status berth__jinja_get(berth__jinja *j, const berth__jinja_dict *dict, berth__jinja_string key,
                              berth__jinja_value *out) {
  BERTH__TRY(berth__jinja_step(j, 64 * (dict->count / 4)));
  for (size_t i = 0; i < dict->count; i++) {
    bool same = false;
    if (dict->members[i].key.kind != BERTH__JINJA_STRING) continue;
    BERTH__TRY(berth__jinja_match(j, dict->members[i].key.as.string, key, &same));
    if (!same) continue;
    *out = dict->members[i].value;
    break;
  }
  return BERTH_OK;
}

static berth_status value_characters(berth__jinja *j, berth__jinja_string text, berth__jinja_list *list) {
  for (size_t at = 0; at < text.size;) {
    const size_t n = berth__utf8_length(text.data + at, text.size - at);
    const size_t size = n != 0 ? n : 1;
    BERTH__TRY(berth__jinja_append(j, list, berth__jinja_make_string((berth__jinja_string){text.data + at, size})));
    at += size;
  }
  return BERTH_OK;
}

berth_status berth__jinja_items(berth__jinja *j, berth__jinja_value value, berth__jinja_value *out) {
  if (value.kind == BERTH__JINJA_LIST) {
    *out = value;
    return BERTH_OK;
  }
  BERTH__TRY(berth__jinja_new_list(j, out));
  if (value.kind == BERTH__JINJA_UNDEFINED) return BERTH_OK;
  if (value.kind == BERTH__JINJA_STRING) return value_characters(j, value.as.string, out->as.list);
  if (value.kind != BERTH__JINJA_DICT)
    return berth__jinja_fail(j, "a value of type %s cannot be gone through", berth__jinja_kind_name(value.kind));
  for (size_t i = 0; i < value.as.dict->count; i++)
    BERTH__TRY(berth__jinja_append(j, out->as.list, value.as.dict->members[i].key));
  return BERTH_OK;
}

/* ---- Truth, equality, order ---- */

const char *berth__jinja_kind_name(berth__jinja_kind kind) {
  static const char *const names[] = {"undefined", "none", "bool",      "int",   "float",    "string",
                                      "list",      "dict", "namespace", "macro", "function", "loop"};
  return names[kind];
}

bool berth__jinja_truth(berth__jinja_value value) {
  switch (value.kind) {
    case BERTH__JINJA_UNDEFINED:
    case BERTH__JINJA_NONE: return false;
    case BERTH__JINJA_BOOL: return value.as.boolean;
    case BERTH__JINJA_INT: return value.as.integer != 0;
    case BERTH__JINJA_FLOAT: return value.as.number != 0;
    case BERTH__JINJA_STRING: return value.as.string.size != 0;
    case BERTH__JINJA_LIST: return value.as.list->count != 0;
    case BERTH__JINJA_DICT: return value.as.dict->count != 0;
    case BERTH__JINJA_NAMESPACE:
    case BERTH__JINJA_MACRO:
    case BERTH__JINJA_FUNCTION:
    case BERTH__JINJA_LOOP: return true;
  }
  return false;
}

static bool value_number(berth__jinja_value value, double *out) {
  if (value.kind == BERTH__JINJA_BOOL) *out = value.as.boolean;
  if (value.kind == BERTH__JINJA_INT) *out = (double)value.as.integer;
  if (value.kind == BERTH__JINJA_FLOAT) *out = value.as.number;
  return value.kind == BERTH__JINJA_BOOL || value.kind == BERTH__JINJA_INT || value.kind == BERTH__JINJA_FLOAT;
}

static berth_status value_enter(berth__jinja *j) {
  BERTH__TRY(berth__jinja_step(j, 0));
  if (++j->depth > BERTH__TEMPLATE_DEPTH)
    return berth__jinja_fail(j, "values or calls are nested more than %u deep", BERTH__TEMPLATE_DEPTH);
  return BERTH_OK;
}

static berth_status value_equal_lists(berth__jinja *j, const berth__jinja_list *a, const berth__jinja_list *b,
                                      bool *out) {
  *out = a->count == b->count;
  for (size_t i = 0; i < a->count && *out; i++) BERTH__TRY(berth__jinja_equal(j, a->items[i], b->items[i], out));
  return BERTH_OK;
}

static berth_status value_equal_dicts(berth__jinja *j, const berth__jinja_dict *a, const berth__jinja_dict *b,
                                      bool *out) {
  *out = a->count == b->count;
  for (size_t i = 0; i < a->count && *out; i++) {
    bool found = false;
    for (size_t k = 0; k < b->count && !found; k++) {
      BERTH__TRY(berth__jinja_equal(j, a->members[i].key, b->members[k].key, &found));
      if (found) BERTH__TRY(berth__jinja_equal(j, a->members[i].value, b->members[k].value, out));
    }
    if (!found) *out = false;
  }
  return BERTH_OK;
}

berth_status berth__jinja_equal(berth__jinja *j, berth__jinja_value a, berth__jinja_value b, bool *out) {
  double left = 0, right = 0;
  berth_status status = value_enter(j);
  if (status != BERTH_OK) return status;
  if (a.kind == BERTH__JINJA_INT && b.kind == BERTH__JINJA_INT) {
    *out = a.as.integer == b.as.integer;
  } else if (value_number(a, &left) && value_number(b, &right)) {
    *out = left == right;
  } else if (a.kind != b.kind) {
    *out = false;
  } else if (a.kind == BERTH__JINJA_STRING) {
    status = berth__jinja_match(j, a.as.string, b.as.string, out);
  } else if (a.kind == BERTH__JINJA_LIST) {
    status = value_equal_lists(j, a.as.list, b.as.list, out);
  } else if (a.kind == BERTH__JINJA_DICT) {
    status = value_equal_dicts(j, a.as.dict, b.as.dict, out);
  } else {
    *out = a.kind == BERTH__JINJA_NONE || a.kind == BERTH__JINJA_UNDEFINED || a.as.dict == b.as.dict;
  }
  j->depth--;
  return status;
}

static int value_order(size_t a, size_t b) { return a < b ? -1 : a > b; }

berth_status berth__jinja_compare(berth__jinja *j, berth__jinja_value a, berth__jinja_value b, int *out) {
  double left = 0, right = 0;
  BERTH__TRY(berth__jinja_step(j, 0)); /* once per comparison of a sort */
  if (a.kind == BERTH__JINJA_INT && b.kind == BERTH__JINJA_INT) {
    *out = a.as.integer < b.as.integer ? -1 : a.as.integer > b.as.integer;
    return BERTH_OK;
  }
  if (value_number(a, &left) && value_number(b, &right)) {
    *out = left < right ? -1 : left > right;
    return BERTH_OK;
  }
  if (a.kind == BERTH__JINJA_STRING && b.kind == BERTH__JINJA_STRING) {
    const size_t n = a.as.string.size < b.as.string.size ? a.as.string.size : b.as.string.size;
    BERTH__TRY(berth__jinja_step(j, n));
    *out = n != 0 ? memcmp(a.as.string.data, b.as.string.data, n) : 0;
    if (*out == 0) *out = value_order(a.as.string.size, b.as.string.size);
    return BERTH_OK;
  }
  if (a.kind != BERTH__JINJA_LIST || b.kind != BERTH__JINJA_LIST)
    return berth__jinja_fail(j, "values of types %s and %s have no order", berth__jinja_kind_name(a.kind),
                             berth__jinja_kind_name(b.kind));
  BERTH__TRY(value_enter(j));
  *out = 0;
  for (size_t i = 0; *out == 0 && i < a.as.list->count && i < b.as.list->count; i++)
    BERTH__TRY(berth__jinja_compare(j, a.as.list->items[i], b.as.list->items[i], out));
  if (*out == 0) *out = value_order(a.as.list->count, b.as.list->count);
  j->depth--;
  return BERTH_OK;
}

berth_status berth__jinja_contains(berth__jinja *j, berth__jinja_value in, berth__jinja_value what, bool *out) {
  size_t at;
  *out = false;
  if (in.kind == BERTH__JINJA_UNDEFINED) return BERTH_OK;
  if (in.kind == BERTH__JINJA_STRING) {
    if (what.kind != BERTH__JINJA_STRING)
      return berth__jinja_fail(j, "a value of type %s cannot be in a string", berth__jinja_kind_name(what.kind));
    BERTH__TRY(berth__jinja_step(j, in.as.string.size));
    *out = berth__jinja_find(in.as.string, what.as.string, 0, &at);
    return BERTH_OK;
  }
  if (in.kind == BERTH__JINJA_DICT || in.kind == BERTH__JINJA_NAMESPACE) {
    for (size_t i = 0; i < in.as.dict->count && !*out; i++)
      BERTH__TRY(berth__jinja_equal(j, in.as.dict->members[i].key, what, out));
    return BERTH_OK;
  }
  if (in.kind != BERTH__JINJA_LIST)
    return berth__jinja_fail(j, "nothing can be in a value of type %s", berth__jinja_kind_name(in.kind));
  for (size_t i = 0; i < in.as.list->count && !*out; i++)
    BERTH__TRY(berth__jinja_equal(j, in.as.list->items[i], what, out));
  return BERTH_OK;
}
