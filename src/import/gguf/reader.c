/* Reading a GGUF file: every length, count and offset is checked before it is used. gguf.h describes the format. */
#include "import/gguf/reader.h"

#include <stdio.h>

#include "base/math.h"
#include "base/sort.h"
#include "import/gguf/types.h"
#include "import/utf8.h"

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "weights are mapped as they lie in the file, which needs a little-endian machine"
#endif

#define DEFAULT_ALIGNMENT 32u
#define MAX_KEY 65535u   /* bytes of a key's name: limit of the format */
#define MAX_NAME 64u     /* bytes of a tensor's name: likewise */
#define MAX_NESTING 4    /* arrays in arrays: no known file has even two */
#define LEAST_KEY 13u    /* minimum bytes: the length of a name, a type, a byte */
#define LEAST_TENSOR 24u /* minimum bytes: the length of a name, a rank, a type, an offset */

/* The part of a file that is still to be read. */
typedef struct gguf_cursor {
  const uint8_t *base;
  uint64_t size, at; /* at <= size */
  uint64_t whole;    /* size of the whole file, of which `size` bytes are available */
} gguf_cursor;

/* ---- Pieces ---- */

/* Reports that `size` more bytes are needed but not available. If only the beginning of the file is given, they may
 * follow. */
static berth_status gguf_fail_cut(const gguf_cursor *c, uint64_t size, const char *what, berth_error *err) {
  if (c->whole > c->size && size <= c->whole - c->at)
    return berth__fail(err, BERTH_IO, "%llu bytes of the file are not all of its header: they end within %s",
                       (unsigned long long)c->size, what);
  return berth__fail(err, BERTH_MALFORMED, "the file ends at byte %llu, within %s; it may be cut off",
                     (unsigned long long)c->whole, what);
}

static berth_status gguf_take(gguf_cursor *c, uint64_t size, const char *what, const uint8_t **out, berth_error *err) {
  if (size > c->size - c->at) return gguf_fail_cut(c, size, what, err);
  *out = c->base + c->at;
  c->at += size;
  return BERTH_OK;
}

static berth_status gguf_take_u32(gguf_cursor *c, const char *what, uint32_t *out, berth_error *err) {
  const uint8_t *data = NULL;
  BERTH__TRY(gguf_take(c, 4, what, &data, err));
  *out = (uint32_t)berth__gguf_word(data, 4);
  return BERTH_OK;
}

static berth_status gguf_take_u64(gguf_cursor *c, const char *what, uint64_t *out, berth_error *err) {
  const uint8_t *data = NULL;
  BERTH__TRY(gguf_take(c, 8, what, &data, err));
  *out = berth__gguf_word(data, 8);
  return BERTH_OK;
}

static berth_status gguf_take_string(gguf_cursor *c, const char *what, berth__gguf_string *out, berth_error *err) {
  const uint8_t *data = NULL;
  BERTH__TRY(gguf_take_u64(c, what, &out->size, err));
  BERTH__TRY(gguf_take(c, out->size, what, &data, err));
  out->data = (const char *)data;
  return BERTH_OK;
}

/* A zero-terminated copy of a name: text without zeros in it, of at most `most` bytes. */
static berth_status gguf_take_name(berth_context *ctx, gguf_cursor *c, const char *what, uint64_t most, char **out,
                                   berth_error *err) {
  berth__gguf_string name;
  *out = NULL;
  BERTH__TRY(gguf_take_string(c, what, &name, err));
  if (name.size > most)
    return berth__fail(err, BERTH_MALFORMED, "%s has %llu bytes; the format allows %llu", what,
                       (unsigned long long)name.size, (unsigned long long)most);
  for (uint64_t i = 0; i < name.size;) {
    const size_t length = berth__utf8_length(name.data + i, (size_t)(name.size - i));
    if (length == 0) return berth__fail(err, BERTH_MALFORMED, "%s is not valid UTF-8", what);
    if (name.data[i] == '\0') return berth__fail(err, BERTH_MALFORMED, "%s has a zero character in it", what);
    i += length;
  }
  *out = berth__strndup(ctx, name.data, (size_t)name.size);
  return *out != NULL ? BERTH_OK : berth__fail_nomem(err, what);
}

/* ---- Values ---- */

static berth_status gguf_take_kind(gguf_cursor *c, berth__gguf_kind *out, berth_error *err) {
  uint32_t kind;
  BERTH__TRY(gguf_take_u32(c, "the type of a value", &kind, err));
  if (kind > BERTH__GGUF_F64)
    return berth__fail(err, BERTH_MALFORMED, "its value has type %u; the format has 0 to %d", kind, BERTH__GGUF_F64);
  *out = (berth__gguf_kind)kind;
  return BERTH_OK;
}

static berth_status gguf_skip_arrays(gguf_cursor *c, uint64_t count, int depth, berth_error *err);

/* Skips the elements of an array at nesting depth `depth`. */
static berth_status gguf_skip_elements(gguf_cursor *c, berth__gguf_kind kind, uint64_t count, int depth,
                                       berth_error *err) {
  static const char what[] = "the elements of an array";
  const uint8_t *data;
  const uint32_t bytes = berth__gguf_kind_bytes(kind);
  uint64_t size;
  berth__gguf_string string;
  if (bytes != 0) {
    if (!berth__mul_u64(count, bytes, &size)) return gguf_fail_cut(c, UINT64_MAX, what, err);
    return gguf_take(c, size, what, &data, err);
  }
  if (kind == BERTH__GGUF_ARRAY) return gguf_skip_arrays(c, count, depth, err);
  for (uint64_t i = 0; i < count; i++) BERTH__TRY(gguf_take_string(c, what, &string, err));
  return BERTH_OK;
}

static berth_status gguf_skip_arrays(gguf_cursor *c, uint64_t count, int depth, berth_error *err) {
  berth__gguf_kind kind = 0;
  uint64_t inner;
  if (depth >= MAX_NESTING)
    return berth__fail(err, BERTH_UNSUPPORTED, "its arrays are nested more than %d deep", MAX_NESTING);
  for (uint64_t i = 0; i < count; i++) {
    BERTH__TRY(gguf_take_kind(c, &kind, err));
    BERTH__TRY(gguf_take_u64(c, "the length of an array", &inner, err));
    BERTH__TRY(gguf_skip_elements(c, kind, inner, depth + 1, err));
  }
  return BERTH_OK;
}

/* Skips strings, and notes where some of them begin. */
static berth_status gguf_mark_strings(berth_context *ctx, gguf_cursor *c, berth__gguf_array *array, berth_error *err) {
  static const char what[] = "an array of strings";
  berth__gguf_string string;
  if (array->count > (c->size - c->at) / 8)
    return gguf_fail_cut(c, array->count < UINT64_MAX / 8 ? array->count * 8 : UINT64_MAX, what, err);
  const size_t n = (size_t)(array->count / BERTH__GGUF_STRIDE + 1);
  uint64_t *marks = berth__alloc_array(ctx, n, sizeof *marks);
  array->marks = marks;
  if (marks == NULL) return berth__fail_nomem(err, what);
  const uint64_t first = c->at;
  for (uint64_t i = 0; i < array->count; i++) {
    if (i % BERTH__GGUF_STRIDE == 0) marks[i / BERTH__GGUF_STRIDE] = c->at - first;
    BERTH__TRY(gguf_take_string(c, what, &string, err));
  }
  return BERTH_OK;
}

static berth_status gguf_take_array(berth_context *ctx, gguf_cursor *c, berth__gguf_array *out, berth_error *err) {
  BERTH__TRY(gguf_take_kind(c, &out->kind, err));
  BERTH__TRY(gguf_take_u64(c, "the length of an array", &out->count, err));
  const uint64_t first = c->at;
  out->data = c->base + first;
  if (out->kind == BERTH__GGUF_STRING)
    BERTH__TRY(gguf_mark_strings(ctx, c, out, err));
  else
    BERTH__TRY(gguf_skip_elements(c, out->kind, out->count, 1, err));
  out->size = c->at - first;
  return BERTH_OK;
}

static berth_status gguf_take_value(berth_context *ctx, gguf_cursor *c, berth__gguf_key *key, berth_error *err) {
  BERTH__TRY(gguf_take_kind(c, &key->kind, err));
  if (key->kind == BERTH__GGUF_STRING) return gguf_take_string(c, "a string", &key->text, err);
  if (key->kind == BERTH__GGUF_ARRAY) return gguf_take_array(ctx, c, &key->array, err);
  return gguf_take(c, berth__gguf_kind_bytes(key->kind), "a value", &key->data, err);
}

/* ---- The header ---- */

static berth_status gguf_check_version(uint32_t version, berth_error *err) {
  if (version == 2 || version == 3) return BERTH_OK;
  if (version == 1)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "the file is GGUF version 1, which was in use for some days in 2023; convert the model again");
  if ((version & 0xFFFFu) == 0 && version != 0)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "the file is big endian; berth reads little-endian GGUF, which is what nearly all files are");
  return berth__fail(err, version == 0 ? BERTH_MALFORMED : BERTH_UNSUPPORTED,
                     "the file says that it is GGUF version %u; berth reads 2 and 3", version);
}

static berth_status gguf_take_count(const gguf_cursor *c, uint64_t count, uint64_t least, const char *what,
                                    berth_error *err) {
  if (count <= (c->size - c->at) / least && count < UINT32_MAX) return BERTH_OK;
  if (count <= (c->whole - c->at) / least && count < UINT32_MAX) return gguf_fail_cut(c, count * least, what, err);
  return berth__fail(err, BERTH_MALFORMED, "the file says that it has %llu %s, more than its %llu bytes can hold",
                     (unsigned long long)count, what, (unsigned long long)c->whole);
}

/* What files are that people take for models: what a download left, or a model in an older format. */
static berth_status gguf_refuse_magic(const gguf_cursor *c, berth_error *err) {
  static const struct {
    const char *begins, *what;
  } kinds[] = {{"version https://git-lfs", "it is a pointer of Git LFS, which 'git lfs pull' replaces by the model"},
               {"<", "it is a web page, which a download gave instead of the model"},
               {"lmgg", "it is in the format that came before GGUF (GGML); convert the model again"},
               {"tjgg", "it is in a format that came before GGUF (GGJT); convert the model again"},
               {"fmgg", "it is in a format that came before GGUF (GGMF); convert the model again"},
               {"algg", "it is an adapter in the format that came before GGUF (GGLA)"}};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const size_t n = strlen(kinds[i].begins);
    if (c->size >= n && memcmp(c->base, kinds[i].begins, n) == 0)
      return berth__fail(err, BERTH_MALFORMED, "the file does not begin with GGUF: %s", kinds[i].what);
  }
  return berth__fail(err, BERTH_MALFORMED, "the file does not begin with GGUF");
}

static berth_status gguf_take_header(gguf_cursor *c, uint32_t *version, uint64_t *n_tensors, uint64_t *n_keys,
                                     berth_error *err) {
  const uint8_t *magic = NULL;
  BERTH__TRY(gguf_take(c, 4, "its first four bytes", &magic, err));
  if (memcmp(magic, "GGUF", 4) != 0) return gguf_refuse_magic(c, err);
  BERTH__TRY(gguf_take_u32(c, "the header", version, err));
  BERTH__TRY(gguf_check_version(*version, err));
  BERTH__TRY(gguf_take_u64(c, "the header", n_tensors, err));
  BERTH__TRY(gguf_take_u64(c, "the header", n_keys, err));
  BERTH__TRY(gguf_take_count(c, *n_keys, LEAST_KEY, "keys", err));
  return gguf_take_count(c, *n_tensors, LEAST_TENSOR, "tensors", err);
}

/* ---- Keys ---- */

static berth_status gguf_take_key(berth__gguf *g, gguf_cursor *c, berth_error *err) {
  uint32_t other;
  berth__gguf_key *key = &g->keys[g->n_keys];
  *key = (berth__gguf_key){0};
  BERTH__TRY(gguf_take_name(g->ctx, c, "the name of a key", MAX_KEY, &key->name, err));
  const uint32_t index = (uint32_t)g->n_keys++; /* from here on it is freed with the rest */
  if (berth__map_get(&g->key_index, key->name, &other))
    return berth__fail(err, BERTH_MALFORMED, "the key \"%s\" appears twice", key->name);
  BERTH__TRY(berth__map_put(g->ctx, &g->key_index, key->name, index, err));
  const berth_status status = gguf_take_value(g->ctx, c, key, err);
  return status == BERTH_OK ? BERTH_OK : berth__fail_within(err, status, "key \"%s\"", key->name);
}

static berth_status gguf_find_alignment(berth__gguf *g, berth_error *err) {
  const berth__gguf_key *key = berth__gguf_find(g, "general.alignment");
  g->alignment = DEFAULT_ALIGNMENT;
  if (key == NULL) return BERTH_OK;
  BERTH__TRY(berth__gguf_u64(g, key->name, &g->alignment, err));
  if (key->kind == BERTH__GGUF_U32 && berth__is_power_of_two(g->alignment)) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "general.alignment is %llu (%s); it must be a power of two as u32",
                     (unsigned long long)g->alignment, berth__gguf_kind_name(key->kind));
}

static berth_status gguf_take_keys(berth__gguf *g, gguf_cursor *c, uint64_t count, berth_error *err) {
  g->keys = berth__alloc_array(g->ctx, (size_t)count, sizeof *g->keys);
  if (g->keys == NULL) return berth__fail_nomem(err, "the keys of a model");
  for (uint64_t i = 0; i < count; i++) BERTH__TRY(gguf_take_key(g, c, err));
  const berth__gguf_key *architecture = berth__gguf_find(g, "general.architecture");
  if (architecture != NULL && architecture->kind == BERTH__GGUF_STRING) g->architecture = architecture->text;
  return gguf_find_alignment(g, err);
}

/* ---- Tensors ---- */

static berth_status gguf_take_shape(gguf_cursor *c, berth__gguf_tensor *t, berth_error *err) {
  int64_t elements = 1;
  BERTH__TRY(gguf_take_u32(c, "the rank of a tensor", &t->rank, err));
  if (t->rank > 4) return berth__fail(err, BERTH_MALFORMED, "it has %u dimensions; the format has at most 4", t->rank);
  for (uint32_t i = t->rank; i-- > 0;) {
    uint64_t extent;
    BERTH__TRY(gguf_take_u64(c, "the shape of a tensor", &extent, err));
    if (extent > INT64_MAX || !berth__mul_extent(elements, (int64_t)extent, &elements))
      return berth__fail(err, BERTH_MALFORMED, "its number of elements does not fit in 63 bits");
    t->dim[i] = (int64_t)extent;
  }
  return BERTH_OK;
}

/* The size in bytes, for a type that the format defines. */
static berth_status gguf_find_size(berth__gguf_tensor *t, berth_error *err) {
  const berth__ggml_type type = berth__ggml_type_at(t->ggml_type);
  if (type.name == NULL) return BERTH_OK; /* newer than this reader, or removed: shown, but never read */
  t->type = type.type;
  const int64_t row = t->rank > 0 ? t->dim[t->rank - 1] : 1;
  if (row % type.elements != 0)
    return berth__fail(err, BERTH_MALFORMED, "its rows have %lld elements, which are not whole %s blocks of %u",
                       (long long)row, type.name, type.elements);
  uint64_t elements = 1;
  for (uint32_t i = 0; i < t->rank; i++) elements *= (uint64_t)t->dim[i]; /* cannot overflow */
  if (!berth__mul_u64(elements / type.elements, type.bytes, &t->size) || t->size > INT64_MAX)
    return berth__fail(err, BERTH_MALFORMED, "its size in bytes does not fit in 63 bits");
  return BERTH_OK;
}

static berth_status gguf_take_fields(berth__gguf *g, gguf_cursor *c, berth__gguf_tensor *t, berth_error *err) {
  BERTH__TRY(gguf_take_shape(c, t, err));
  BERTH__TRY(gguf_take_u32(c, "the type of a tensor", &t->ggml_type, err));
  BERTH__TRY(gguf_find_size(t, err));
  BERTH__TRY(gguf_take_u64(c, "the offset of a tensor", &t->begin, err));
  if (t->begin % g->alignment == 0) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "its data begins at %llu, which is not a multiple of the alignment, %llu",
                     (unsigned long long)t->begin, (unsigned long long)g->alignment);
}

static berth_status gguf_take_tensor(berth__gguf *g, gguf_cursor *c, berth_error *err) {
  uint32_t other;
  berth__gguf_tensor *t = &g->tensors[g->n_tensors];
  *t = (berth__gguf_tensor){0};
  BERTH__TRY(gguf_take_name(g->ctx, c, "the name of a tensor", MAX_NAME, &t->name, err));
  const uint32_t index = (uint32_t)g->n_tensors++; /* from here on it is freed with the rest */
  if (berth__map_get(&g->tensor_index, t->name, &other))
    return berth__fail(err, BERTH_MALFORMED, "the tensor \"%s\" appears twice", t->name);
  BERTH__TRY(berth__map_put(g->ctx, &g->tensor_index, t->name, index, err));
  const berth_status status = gguf_take_fields(g, c, t, err);
  return status == BERTH_OK ? BERTH_OK : berth__fail_within(err, status, "tensor \"%s\"", t->name);
}

/* ---- Data ---- */

/* Turns an offset into a position in the file, whose data begins at `section`. */
static berth_status gguf_place(uint64_t section, berth__gguf_tensor *t, uint64_t *last, berth_error *err) {
  uint64_t begin, end;
  if (!berth__add_u64(section, t->begin, &begin) || !berth__add_u64(begin, t->size, &end))
    return berth__fail(err, BERTH_MALFORMED,
                       "tensor \"%s\" has %llu bytes from byte %llu of the data on, which does not fit in 64 bits",
                       t->name, (unsigned long long)t->size, (unsigned long long)t->begin);
  t->begin = begin;
  if (end > *last) *last = end;
  return BERTH_OK;
}

/* In a partial file no tensor has data, whichever bytes are available: plans must not depend on how many there are. */
static berth_status gguf_place_all(const gguf_cursor *c, uint64_t section, berth__gguf *g, berth_error *err) {
  uint64_t last = 0;
  for (size_t i = 0; i < g->n_tensors; i++) BERTH__TRY(gguf_place(section, &g->tensors[i], &last, err));
  if (last > c->whole)
    return berth__fail(err, BERTH_MALFORMED,
                       "the file is cut off, as by a download that did not finish: it has %llu of the %llu bytes that "
                       "its header describes",
                       (unsigned long long)c->whole, (unsigned long long)last);
  for (size_t i = 0; i < g->n_tensors && c->whole == c->size; i++) g->tensors[i].data = c->base + g->tensors[i].begin;
  return BERTH_OK;
}

static bool gguf_is_before(const void *things, uint32_t left, uint32_t right) {
  const berth__gguf_tensor *tensors = things, *a = &tensors[left], *b = &tensors[right];
  return a->begin != b->begin ? a->begin < b->begin : a->size != b->size ? a->size < b->size : left < right;
}

static berth_status gguf_check_overlap(berth__gguf *g, berth_error *err) {
  const berth__gguf_tensor *tensors = g->tensors, *previous = NULL;
  const size_t count = g->n_tensors;
  berth_status status = BERTH_OK;
  uint32_t *order = berth__alloc_array(g->ctx, count, sizeof *order);
  if (order == NULL) return berth__fail_nomem(err, "the order of the tensors");
  berth__sort(tensors, order, count, gguf_is_before);
  for (size_t i = 0; i < count && status == BERTH_OK; i++) {
    const berth__gguf_tensor *t = &tensors[order[i]];
    if (previous != NULL && t->begin < previous->begin + previous->size)
      status = berth__fail(err, BERTH_MALFORMED, "the tensors \"%s\" and \"%s\" overlap at byte %llu of the file",
                           previous->name, t->name, (unsigned long long)t->begin);
    previous = t;
  }
  berth__free(g->ctx, order);
  return status;
}

static berth_status gguf_take_tensors(berth__gguf *g, gguf_cursor *c, uint64_t count, berth_error *err) {
  uint64_t section;
  g->tensors = berth__alloc_array(g->ctx, (size_t)count, sizeof *g->tensors);
  if (g->tensors == NULL) return berth__fail_nomem(err, "the tensors of a model");
  for (uint64_t i = 0; i < count; i++) BERTH__TRY(gguf_take_tensor(g, c, err));
  if (count == 0) return BERTH_OK;
  if (!berth__align_up(c->at, g->alignment, &section)) return gguf_fail_cut(c, UINT64_MAX, "the data", err);
  BERTH__TRY(gguf_place_all(c, section, g, err));
  return gguf_check_overlap(g, err);
}

berth_status berth__gguf_read(berth__gguf *g, berth_error *err) {
  const berth__mapping *file = &g->files[0];
  gguf_cursor c = {
      .base = file->data, .size = file->size, .whole = file->whole > file->size ? file->whole : file->size};
  uint64_t n_tensors, n_keys;
  BERTH__TRY(gguf_take_header(&c, &g->version, &n_tensors, &n_keys, err));
  BERTH__TRY(gguf_take_keys(g, &c, n_keys, err));
  return gguf_take_tensors(g, &c, n_tensors, err);
}
