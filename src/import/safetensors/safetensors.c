/* safetensors: named tensors behind a JSON header.
 *
 *   offset 0      8 bytes       N, the length of the header: unsigned, little endian, at most 100 MB
 *   offset 8      N bytes       the header: one JSON object in UTF-8. It begins with '{' and may end in spaces, which
 *                               writers use to align what follows
 *   offset 8 + N  the rest      the data section: the tensors' elements, little endian, row-major, nothing between them
 *
 * The header has a member for each tensor, and at most one that is called __metadata__:
 *
 *   "conv1.weight": {"dtype": "F32", "shape": [16, 1, 3, 3], "data_offsets": [begin, end]}
 *   "__metadata__": {"any key": "any string"}
 *
 * begin and end count bytes from the start of the data section. What must hold, and is checked here:
 *   - begin <= end <= size of the data section, and end - begin == product(shape) * bytes of the dtype;
 *   - sorted by begin, each tensor begins where the one before it ends; the first begins at 0 and the last ends where
 *     the file does. So no two overlap and no byte is without an owner;
 *   - no name comes twice, and no member is missing, comes twice or is unknown.
 * A shape may be [] (a scalar) and may hold zeros (no bytes). The format does not promise that a tensor is aligned to
 * its elements: where it is not, its bytes are copied to a place that is.
 *
 * Types without a counterpart here (U16, U64, the F8 family, ...) are UNSUPPORTED; everything else that is wrong is
 * MALFORMED. */
#include <stdbool.h>
#include <string.h>

#include "base/file.h"
#include "base/map.h"
#include "base/math.h"
#include "base/sort.h"
#include "base/storage.h"
#include "import/json.h"
#include "import/weights.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are mapped as they lie in the file, which needs a little-endian machine"
#endif

#define PREFIX 8
#define MAX_HEADER 100000000u

/* ---- One tensor's entry ---------------------------------------------------------------------------------------- */

enum {
  FIELD_DTYPE = 1,
  FIELD_SHAPE = 2,
  FIELD_OFFSETS = 4,
  FIELD_ALL = 7
};

static berth_status read_dtype(berth__json *json, berth__weight *t, berth_error *err) {
  static const struct {
    const char *text;
    berth_type type;
  } types[] = {{"F32", BERTH_F32},   {"F64", BERTH_F64}, {"F16", BERTH_F16}, {"BF16", BERTH_BF16}, {"I8", BERTH_I8},
               {"U8", BERTH_U8},     {"I16", BERTH_I16}, {"I32", BERTH_I32}, {"I64", BERTH_I64},   {"U32", BERTH_U32},
               {"BOOL", BERTH_BOOL}, {"U16", BERTH_U16}, {"U64", BERTH_U64}};
  berth__json_token token;
  BERTH__TRY(berth__json_expect(json, BERTH__JSON_STRING, "dtype must be a string", &token, err));
  for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
    if (berth__json_is(&token, types[i].text)) {
      t->type = types[i].type;
      return BERTH_OK;
    }
  }
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "type %.*s is not supported; convert it to one of F32 F64 F16 BF16 I8 U8 "
                     "I16 I32 I64 U16 U32 U64 BOOL",
                     token.size < 32 ? (int)token.size : 32, token.text);
}

/* A JSON array of non-negative integers, at most `most` of them. */
static berth_status read_naturals(berth__json *json, const char *what, uint32_t most, int64_t *out, uint32_t *count,
                                  berth_error *err) {
  berth__json_token token;
  BERTH__TRY(berth__json_expect(json, BERTH__JSON_ARRAY_BEGIN, what, &token, err));
  for (*count = 0;; ++*count) {
    BERTH__TRY(berth__json_next(json, &token, err));
    if (token.kind == BERTH__JSON_ARRAY_END) return BERTH_OK;
    int64_t value;
    BERTH__TRY(berth__json_natural(&token, &value, err));
    if (*count < most) out[*count] = value;
  }
}

static berth_status safetensors_read_shape(berth__json *json, berth__weight *t, berth_error *err) {
  BERTH__TRY(read_naturals(json, "shape must be an array", BERTH_MAX_RANK, t->dim, &t->rank, err));
  if (t->rank > BERTH_MAX_RANK) {
    return berth__fail(err, BERTH_UNSUPPORTED, "the shape has %u dimensions, more than the %d that are supported",
                       t->rank, BERTH_MAX_RANK);
  }
  return BERTH_OK;
}

static berth_status read_offsets(berth__json *json, berth__weight *t, berth_error *err) {
  int64_t offsets[2] = {0, 0};
  uint32_t count;
  BERTH__TRY(read_naturals(json, "data_offsets must be an array", 2, offsets, &count, err));
  if (count != 2) {
    return berth__fail(err, BERTH_MALFORMED, "data_offsets has %u numbers; it must have a begin and an end", count);
  }
  t->begin = offsets[0];
  t->end = offsets[1];
  return BERTH_OK;
}

static berth_status read_fields(berth__json *json, berth__weight *t, berth_error *err) {
  unsigned seen = 0;
  berth__json_token token;
  BERTH__TRY(berth__json_expect(json, BERTH__JSON_OBJECT_BEGIN, "a tensor's entry must be an object", &token, err));
  for (;;) {
    BERTH__TRY(berth__json_next(json, &token, err));
    if (token.kind == BERTH__JSON_OBJECT_END) break;
    unsigned field = berth__json_is(&token, "dtype")          ? FIELD_DTYPE
                     : berth__json_is(&token, "shape")        ? FIELD_SHAPE
                     : berth__json_is(&token, "data_offsets") ? FIELD_OFFSETS
                                                              : 0;
    int shown = token.size < 32 ? (int)token.size : 32;
    if (!field) return berth__fail(err, BERTH_MALFORMED, "the member %.*s is unknown", shown, token.text);
    if (seen & field) return berth__fail(err, BERTH_MALFORMED, "the member %.*s appears twice", shown, token.text);
    seen |= field;
    if (field == FIELD_DTYPE) BERTH__TRY(read_dtype(json, t, err));
    if (field == FIELD_SHAPE) BERTH__TRY(safetensors_read_shape(json, t, err));
    if (field == FIELD_OFFSETS) BERTH__TRY(read_offsets(json, t, err));
  }
  if (seen == FIELD_ALL) return BERTH_OK;
  const char *missing = !(seen & FIELD_DTYPE) ? "dtype" : !(seen & FIELD_SHAPE) ? "shape" : "data_offsets";
  return berth__fail(err, BERTH_MALFORMED, "the member %s is missing", missing);
}

static berth_status safetensors_check_size(const berth__weight *t, uint64_t section, berth_error *err) {
  uint64_t size;
  if (t->begin > t->end) {
    return berth__fail(err, BERTH_MALFORMED, "its data begins at %lld, behind its end at %lld", (long long)t->begin,
                       (long long)t->end);
  }
  if ((uint64_t)t->end > section) {
    return berth__fail(err, BERTH_MALFORMED,
                       "its data ends at byte %lld of a data section of %llu byte%s; the file may "
                       "be cut off",
                       (long long)t->end, (unsigned long long)section, berth__plural(section));
  }
  if (!berth__dense_bytes(t->rank, t->dim, t->type, &size)) {
    return berth__fail(err, BERTH_MALFORMED, "the size of its shape does not fit in 64 bits");
  }
  if (size != (uint64_t)(t->end - t->begin)) {
    return berth__fail(err, BERTH_MALFORMED, "its shape needs %llu bytes, but its data has %llu",
                       (unsigned long long)size, (unsigned long long)(t->end - t->begin));
  }
  return BERTH_OK;
}

/* ---- The header ------------------------------------------------------------------------------------------------ */

static berth_status decode_name(berth_context *ctx, const berth__json_token *token, char **out, berth_error *err) {
  size_t length;
  char *name = berth__alloc(ctx, token->size + 1);
  if (!name) return berth__fail_nomem(err, "a tensor's name");
  berth_status status = berth__json_decode(token, name, &length, err);
  if (status == BERTH_OK) {
    *out = name;
  } else {
    berth__free(ctx, name);
  }
  return status;
}

/* Adds a name, which must be new. */
static berth_status index_name(berth_context *ctx, berth__map *map, const char *name, uint32_t value,
                               berth_error *err) {
  uint32_t other;
  if (berth__map_get(map, name, &other))
    return berth__fail(err, BERTH_MALFORMED, "the name \"%s\" appears twice", name);
  return berth__map_put(ctx, map, name, value, err);
}

static berth_status read_tensor(berth_weights *w, berth__json *json, const berth__json_token *key, uint64_t section,
                                berth_error *err) {
  berth__weight *t;
  char *name = NULL;
  BERTH__TRY(decode_name(w->ctx, key, &name, err));
  BERTH__TRY(berth__weights_add(w, name, &t, err));
  berth_status status = read_fields(json, t, err);
  if (status == BERTH_OK) status = safetensors_check_size(t, section, err);
  return status == BERTH_OK ? BERTH_OK : berth__fail_within(err, status, "tensor \"%s\"", t->name);
}

static berth_status safetensors_read_metadata(berth_context *ctx, berth__json *json, uint64_t *count,
                                              berth_error *err) {
  berth__map keys = {0};
  berth__json_token token;
  char *key = NULL;
  berth_status status;
  BERTH__TRY(berth__json_expect(json, BERTH__JSON_OBJECT_BEGIN, "__metadata__ must be an object", &token, err));
  for (;;) {
    BERTH__TRY_OR_FAIL(berth__json_next(json, &token, err));
    if (token.kind == BERTH__JSON_OBJECT_END) break;
    BERTH__TRY_OR_FAIL(decode_name(ctx, &token, &key, err));
    BERTH__TRY_OR_FAIL(index_name(ctx, &keys, key, 0, err));
    berth__free(ctx, key);
    key = NULL;
    BERTH__TRY_OR_FAIL(berth__json_expect(json, BERTH__JSON_STRING, "__metadata__ may hold only strings", &token, err));
  }
fail:
  *count = keys.count;
  berth__free(ctx, key);
  berth__map_clear(ctx, &keys);
  return status;
}

static berth_status safetensors_read_header(berth_weights *w, const void *header, size_t size, uint64_t section,
                                            berth_error *err) {
  berth__json json;
  berth__json_token token;
  bool metadata = false;
  berth__json_init(&json, header, size);
  if (size == 0 || *(const char *)header != '{') {
    return berth__fail(err, BERTH_MALFORMED, "the header does not begin with '{'; this is not a safetensors file");
  }
  BERTH__TRY(berth__json_next(&json, &token, err));
  for (;;) {
    BERTH__TRY(berth__json_next(&json, &token, err));
    if (token.kind == BERTH__JSON_OBJECT_END) break;
    if (!berth__json_is(&token, "__metadata__")) {
      BERTH__TRY(read_tensor(w, &json, &token, section, err));
    } else if (metadata) {
      return berth__fail(err, BERTH_MALFORMED, "the name \"__metadata__\" appears twice");
    } else {
      metadata = true;
      BERTH__TRY(safetensors_read_metadata(w->ctx, &json, &w->n_metadata, err));
    }
  }
  return berth__json_next(&json, &token, err); /* fails unless only spaces follow */
}

/* ---- The data section ------------------------------------------------------------------------------------------ */

static bool safetensors_is_before(const void *things, uint32_t left, uint32_t right) {
  const berth__weight *tensors = things, *a = &tensors[left], *b = &tensors[right];
  return a->begin != b->begin ? a->begin < b->begin : a->end < b->end;
}

static berth_status check_follows(const berth__weight *previous, const berth__weight *next, berth_error *err) {
  int64_t end = previous ? previous->end : 0;
  if (next->begin == end) return BERTH_OK;
  if (!previous) {
    return berth__fail(err, BERTH_MALFORMED,
                       "the first tensor \"%s\" begins at byte %lld of the data section, not at 0", next->name,
                       (long long)next->begin);
  }
  if (next->begin < end) {
    return berth__fail(err, BERTH_MALFORMED, "the tensors \"%s\" and \"%s\" overlap at byte %lld of the data section",
                       previous->name, next->name, (long long)next->begin);
  }
  return berth__fail(err, BERTH_MALFORMED, "between the tensors \"%s\" and \"%s\" lie %lld bytes that belong to none",
                     previous->name, next->name, (long long)(next->begin - end));
}

static berth_status check_layout(const berth_weights *w, uint64_t section, berth_error *err) {
  const berth__weight *previous = NULL;
  berth_status status = BERTH_OK;
  uint32_t *order = berth__alloc_array(w->ctx, w->count, sizeof *order);
  if (!order) return berth__fail_nomem(err, "the order of the tensors");
  berth__sort(w->tensors, order, w->count, safetensors_is_before);
  for (size_t i = 0; i < w->count && status == BERTH_OK; i++) {
    const berth__weight *next = &w->tensors[order[i]];
    status = check_follows(previous, next, err);
    previous = next;
  }
  berth__free(w->ctx, order);
  BERTH__TRY(status);
  uint64_t end = previous ? (uint64_t)previous->end : 0;
  if (end == section) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "%llu bytes behind the last tensor%s%s%s belong to none",
                     (unsigned long long)(section - end), previous ? " \"" : "", previous ? previous->name : "",
                     previous ? "\"" : "");
}

berth_status berth__safetensors_read(berth_weights *w, berth_error *err) {
  const uint8_t *bytes = w->mapping.data;
  size_t size = w->mapping.size;
  uint64_t header = 0;
  if (size < PREFIX) {
    return berth__fail(err, BERTH_MALFORMED, "the file has %zu bytes, too few for a safetensors header", size);
  }
  for (int i = PREFIX; i-- > 0;) header = header << 8 | bytes[i];
  if (header > MAX_HEADER) {
    return berth__fail(err, BERTH_MALFORMED,
                       "the header is said to have %llu bytes, over the limit of %u; this may not "
                       "be a safetensors file",
                       (unsigned long long)header, MAX_HEADER);
  }
  if (header > size - PREFIX) {
    return berth__fail(err, BERTH_MALFORMED,
                       "the header is said to have %llu bytes, but only %zu follow; the file may "
                       "be cut off",
                       (unsigned long long)header, size - PREFIX);
  }
  uint64_t section = size - PREFIX - header;
  BERTH__TRY(safetensors_read_header(w, bytes + PREFIX, (size_t)header, section, err));
  BERTH__TRY(check_layout(w, section, err));
  return berth__weights_place(w, bytes + PREFIX + header, err);
}

/* Eight bytes with the header's length, then the header, which is a JSON object. */
bool berth__safetensors_probe(const uint8_t *data, size_t size) {
  uint64_t length = 0;
  if (size <= PREFIX || data[PREFIX] != '{') return false;
  for (int i = PREFIX; i-- > 0;) length = length << 8 | data[i];
  return length >= 2 && length <= size - PREFIX;
}
