/* Looking up values. They were checked when the file was read. */
#include "import/gguf/reader.h"

#include <stdio.h>

const char *berth__gguf_kind_name(berth__gguf_kind kind) {
  static const char *const names[] = {"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                      "bool", "string", "array", "u64", "i64", "f64"};
  return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

bool berth__gguf_is(berth__gguf_string string, const char *text) {
  const size_t n = strlen(text);
  return string.size == n && memcmp(string.data, text, n) == 0;
}

/* ---- Numbers ---- */

static bool gguf_is_signed(berth__gguf_kind kind) {
  return kind == BERTH__GGUF_I8 || kind == BERTH__GGUF_I16 || kind == BERTH__GGUF_I32 || kind == BERTH__GGUF_I64;
}

static bool gguf_is_float(berth__gguf_kind kind) { return kind == BERTH__GGUF_F32 || kind == BERTH__GGUF_F64; }

static bool gguf_is_integer(berth__gguf_kind kind) {
  return berth__gguf_kind_bytes(kind) != 0 && !gguf_is_float(kind) && kind != BERTH__GGUF_BOOL;
}

/* The bits of an integer, sign-extended to 64. */
static uint64_t gguf_bits(berth__gguf_kind kind, const uint8_t *data) {
  const uint32_t bytes = berth__gguf_kind_bytes(kind);
  uint64_t bits = berth__gguf_word(data, bytes);
  if (kind == BERTH__GGUF_BOOL) return bits != 0;
  if (gguf_is_signed(kind) && bytes < 8 && (bits >> (8 * bytes - 1)) != 0) bits |= UINT64_MAX << (8 * bytes);
  return bits;
}

static double gguf_number(berth__gguf_kind kind, const uint8_t *data) {
  float single;
  double wide;
  if (kind == BERTH__GGUF_F32) {
    memcpy(&single, data, sizeof single);
    return (double)single;
  }
  if (kind == BERTH__GGUF_F64) {
    memcpy(&wide, data, sizeof wide);
    return wide;
  }
  const uint64_t bits = gguf_bits(kind, data);
  return gguf_is_signed(kind) ? (double)(int64_t)bits : (double)bits;
}

/* ---- Keys ---- */

const berth__gguf_key *berth__gguf_find(const berth__gguf *g, const char *key) {
  uint32_t at;
  char whole[256];
  if (key[0] == '.') {
    const int n = g->architecture.size < sizeof whole ? (int)g->architecture.size : 0;
    if (n == 0 || snprintf(whole, sizeof whole, "%.*s%s", n, g->architecture.data, key) >= (int)sizeof whole)
      return NULL;
    key = whole;
  }
  return berth__map_get(&g->key_index, key, &at) ? &g->keys[at] : NULL;
}

static berth_status gguf_fail_missing(const berth__gguf *g, const char *key, berth_error *err) {
  const int n = key[0] == '.' && g->architecture.size < 64 ? (int)g->architecture.size : 0;
  return berth__fail(err, BERTH_MALFORMED, "the model has no key \"%.*s%s\"", n, n > 0 ? g->architecture.data : "",
                     key);
}

static berth_status gguf_fail_kind(const berth__gguf_key *key, const char *wanted, berth_error *err) {
  return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" has a value of type %s, not %s", key->name,
                     berth__gguf_kind_name(key->kind), wanted);
}

berth_status berth__gguf_u64(const berth__gguf *g, const char *key, uint64_t *out, berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL) return gguf_fail_missing(g, key, err);
  if (!gguf_is_integer(found->kind)) return gguf_fail_kind(found, "a whole number", err);
  const uint64_t bits = gguf_bits(found->kind, found->data);
  if (gguf_is_signed(found->kind) && bits > INT64_MAX)
    return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" is %lld, which must not be negative", found->name,
                       (long long)bits);
  *out = bits;
  return BERTH_OK;
}

berth_status berth__gguf_f64(const berth__gguf *g, const char *key, double *out, berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL) return gguf_fail_missing(g, key, err);
  if (!gguf_is_integer(found->kind) && !gguf_is_float(found->kind)) return gguf_fail_kind(found, "a number", err);
  *out = gguf_number(found->kind, found->data);
  return BERTH_OK;
}

berth_status berth__gguf_bool(const berth__gguf *g, const char *key, bool *out, berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL) return gguf_fail_missing(g, key, err);
  if (found->kind != BERTH__GGUF_BOOL) return gguf_fail_kind(found, "a bool", err);
  *out = gguf_bits(found->kind, found->data) != 0;
  return BERTH_OK;
}

berth_status berth__gguf_string_of(const berth__gguf *g, const char *key, berth__gguf_string *out, berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL) return gguf_fail_missing(g, key, err);
  if (found->kind != BERTH__GGUF_STRING) return gguf_fail_kind(found, "a string", err);
  *out = found->text;
  return BERTH_OK;
}

berth_status berth__gguf_array_of(const berth__gguf *g, const char *key, berth__gguf_array *out, berth_error *err) {
  const berth__gguf_key *found = berth__gguf_find(g, key);
  if (found == NULL) return gguf_fail_missing(g, key, err);
  if (found->kind != BERTH__GGUF_ARRAY) return gguf_fail_kind(found, "an array", err);
  *out = found->array;
  return BERTH_OK;
}

berth_status berth__gguf_u64_or(const berth__gguf *g, const char *key, uint64_t fallback, uint64_t *out,
                                berth_error *err) {
  *out = fallback;
  return berth__gguf_find(g, key) != NULL ? berth__gguf_u64(g, key, out, err) : BERTH_OK;
}

berth_status berth__gguf_f64_or(const berth__gguf *g, const char *key, double fallback, double *out, berth_error *err) {
  *out = fallback;
  return berth__gguf_find(g, key) != NULL ? berth__gguf_f64(g, key, out, err) : BERTH_OK;
}

berth_status berth__gguf_bool_or(const berth__gguf *g, const char *key, bool fallback, bool *out, berth_error *err) {
  *out = fallback;
  return berth__gguf_find(g, key) != NULL ? berth__gguf_bool(g, key, out, err) : BERTH_OK;
}

/* ---- Arrays ---- */

/* From one string to the next. */
static const uint8_t *gguf_after_string(const uint8_t *at) { return at + 8 + berth__gguf_word(at, 8); }

berth__gguf_string berth__gguf_array_string(const berth__gguf_array *array, uint64_t i) {
  const uint8_t *at = array->data;
  if (array->marks != NULL) {
    at += array->marks[i / BERTH__GGUF_STRIDE];
    i %= BERTH__GGUF_STRIDE;
  }
  for (; i > 0; i--) at = gguf_after_string(at);
  return (berth__gguf_string){.data = (const char *)at + 8, .size = berth__gguf_word(at, 8)};
}

bool berth__gguf_array_is_whole(const berth__gguf_array *array) {
  return gguf_is_integer(array->kind) || array->kind == BERTH__GGUF_BOOL;
}

bool berth__gguf_array_is_number(const berth__gguf_array *array) { return berth__gguf_kind_bytes(array->kind) != 0; }

int64_t berth__gguf_array_i64(const berth__gguf_array *array, uint64_t i) {
  const uint64_t bits = gguf_bits(array->kind, array->data + i * berth__gguf_kind_bytes(array->kind));
  return array->kind == BERTH__GGUF_U64 && bits > INT64_MAX ? INT64_MAX : (int64_t)bits;
}

double berth__gguf_array_f64(const berth__gguf_array *array, uint64_t i) {
  return gguf_number(array->kind, array->data + i * berth__gguf_kind_bytes(array->kind));
}

/* The array whose type is at `at`. Its size is found by walking through it, which only files with nested arrays
 * need. */
static berth__gguf_array gguf_array_here(const uint8_t *at) {
  berth__gguf_array array = {
      .kind = (berth__gguf_kind)berth__gguf_word(at, 4), .count = berth__gguf_word(at + 4, 8), .data = at + 12};
  const uint32_t bytes = berth__gguf_kind_bytes(array.kind);
  if (bytes != 0) {
    array.size = array.count * bytes;
    return array;
  }
  const uint8_t *end = array.data;
  for (uint64_t i = 0; i < array.count; i++) {
    if (array.kind == BERTH__GGUF_STRING) {
      end = gguf_after_string(end);
    } else {
      const berth__gguf_array inner = gguf_array_here(end);
      end = inner.data + inner.size;
    }
  }
  array.size = (uint64_t)(end - array.data);
  return array;
}

berth__gguf_array berth__gguf_array_array(const berth__gguf_array *array, uint64_t i) {
  berth__gguf_array found = gguf_array_here(array->data);
  for (; i > 0; i--) found = gguf_array_here(found.data + found.size);
  return found;
}
