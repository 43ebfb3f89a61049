/* ONNX tensors as elements of berth's types.
 *
 * A TensorProto holds its elements in raw_data (little endian, in memory order), in a typed field (float_data,
 * int32_data, int64_data, double_data, uint64_data; small types, halves and bools are in int32_data), or in another
 * file. */
#include "import/onnx/tensor.h"

#include "base/math.h"
#include "base/memory.h"
#include "base/storage.h"

struct berth__onnx_file {
  berth__span location;
  berth__mapping mapping;
};

static const char *const type_names[] = {
    "undefined", "float32",    "uint8",      "int8",         "uint16",         "int16",      "int32",
    "int64",     "string",     "bool",       "float16",      "float64",        "uint32",     "uint64",
    "complex64", "complex128", "bfloat16",   "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz",
    "uint4",     "int4",       "float4e2m1", "float8e8m0",   "uint2",          "int2"};

static berth_type type_of(int32_t data_type) {
  static const berth_type known[] = {
      [1] = BERTH_F32,  [2] = BERTH_U8,   [3] = BERTH_I8,   [4] = BERTH_U16,  [5] = BERTH_I16,
      [6] = BERTH_I32,  [7] = BERTH_I64,  [9] = BERTH_BOOL, [10] = BERTH_F16, [11] = BERTH_F64,
      [12] = BERTH_U32, [13] = BERTH_U64, [16] = BERTH_BF16};
  return data_type > 0 && (size_t)data_type < sizeof known / sizeof known[0] ? known[data_type] : BERTH_TYPE_NONE;
}

const char *berth__onnx_type_text(int32_t data_type) {
  berth_type type = type_of(data_type);
  if (type != BERTH_TYPE_NONE) return berth_type_name(type);
  return data_type >= 0 && (size_t)data_type < sizeof type_names / sizeof type_names[0] ? type_names[data_type] : "?";
}

berth_status berth__onnx_type(int32_t data_type, berth_type *out, berth_error *err) {
  *out = type_of(data_type);
  if (*out != BERTH_TYPE_NONE) return BERTH_OK;
  if (data_type >= 0 && (size_t)data_type < sizeof type_names / sizeof type_names[0])
    return berth__fail(err, BERTH_UNSUPPORTED, "elements of type %s are not supported", type_names[data_type]);
  return berth__fail(err, BERTH_MALFORMED, "there is no element type %d", data_type);
}

/* ---- External files ---- */

void berth__onnx_files_free(berth__onnx_files *files) {
  for (size_t i = 0; i < files->n_items; i++) berth__file_unmap(&files->items[i].mapping);
  for (size_t i = 0; i < files->n_decoded; i++) berth__free(files->ctx, files->decoded[i]);
  berth__free(files->ctx, files->items);
  berth__free(files->ctx, files->decoded);
  *files = (berth__onnx_files){.ctx = files->ctx};
}

void berth__onnx_files_rest(const berth__onnx_files *files, const void *data, size_t size) {
  for (size_t i = 0; i < files->n_items; i++) berth__file_release_bytes(&files->items[i].mapping, data, size);
}

berth_status berth__onnx_files_check(const berth__onnx_files *files, berth_error *err) {
  for (size_t i = 0; i < files->n_items; i++) BERTH__TRY(berth__file_check(&files->items[i].mapping, err));
  return BERTH_OK;
}

/* Data outside the model's folder is refused: a model must not be able to read other files of the user. */
static bool is_inside_folder(berth__span location) {
  if (location.size == 0 || location.data[0] == '/' || memchr(location.data, '\0', location.size) != NULL) return false;
  for (size_t i = 0; i < location.size;) {
    size_t end = i;
    while (end < location.size && location.data[end] != '/' && location.data[end] != '\\') end++;
    if (end - i == 2 && location.data[i] == '.' && location.data[i + 1] == '.') return false;
    i = end + 1;
  }
  return true;
}

static berth_status map_external(berth__onnx_files *files, berth__span location, const berth__mapping **out,
                                 berth_error *err) {
  if (files->model == NULL)
    return berth__fail(
        err, BERTH_UNSUPPORTED,
        "the weights lie in another file, '%.*s', which a model in memory has no place for; save it with "
        "its weights inside",
        BERTH__SPAN_TEXT(location));
  if (!is_inside_folder(location))
    return berth__fail(err, BERTH_MALFORMED, "external data '%.*s' is outside the model's folder",
                       BERTH__SPAN_TEXT(location));
  for (size_t i = 0; i < files->n_items; i++) {
    if (berth__span_equal(files->items[i].location, location)) {
      *out = &files->items[i].mapping;
      return BERTH_OK;
    }
  }
  BERTH__TRY(BERTH__RESERVE(files->ctx, files->items, files->items_capacity, files->n_items + 1, err));
  char *path = berth__strndup(files->ctx, (const char *)location.data, location.size);
  if (path == NULL) return berth__fail_nomem(err, "a path");
  struct berth__onnx_file *file = &files->items[files->n_items];
  berth_status status = berth__file_map_beside(files->ctx, files->model, path, &file->mapping, err);
  berth__free(files->ctx, path);
  BERTH__TRY(status);
  file->location = location;
  files->n_items++;
  *out = &file->mapping;
  return BERTH_OK;
}

static berth_status external_bytes(const berth__onnx_tensor *tensor, berth__onnx_files *files, size_t size,
                                   berth__span *out, berth_error *err) {
  const berth__mapping *file = NULL;
  if (tensor->external_location.size == 0)
    return berth__fail(err, BERTH_MALFORMED, "its data is in another file, which is not named");
  BERTH__TRY(map_external(files, tensor->external_location, &file, err));
  uint64_t length = tensor->external_length, end;
  if (length == UINT64_MAX) length = size;
  if (!berth__add_u64(tensor->external_offset, length, &end) || end > file->size)
    return berth__fail(err, BERTH_MALFORMED, "external data '%.*s' has %zu bytes, %llu from %llu are needed",
                       BERTH__SPAN_TEXT(tensor->external_location), file->size, (unsigned long long)length,
                       (unsigned long long)tensor->external_offset);
  *out = (berth__span){file->data + tensor->external_offset, (size_t)length};
  return BERTH_OK;
}

/* ---- Typed fields ---- */

/* Which field of TensorProto holds elements of a type, and how it stores them. */
static uint32_t field_of(berth_type type) {
  switch (type) {
    case BERTH_F32: return 4;  /* float_data */
    case BERTH_I64: return 7;  /* int64_data */
    case BERTH_F64: return 10; /* double_data */
    case BERTH_U32:
    case BERTH_U64: return 11; /* uint64_data */
    default: return 5;         /* int32_data */
  }
}

static void store_int(berth_type type, uint8_t *at, uint64_t value) {
  uint16_t half = (uint16_t)value;
  uint32_t word = (uint32_t)value;
  switch (berth_type_size(type)) {
    case 1: *at = type == BERTH_BOOL ? (uint8_t)(value != 0) : (uint8_t)value; break;
    case 2: memcpy(at, &half, 2); break;
    case 4: memcpy(at, &word, 4); break;
    default: memcpy(at, &value, 8); break;
  }
}

typedef struct sink {
  uint8_t *data;
  size_t element, count, used;
  berth_type type;
} sink;

static berth_status onnx_tensor_put(sink *s, uint64_t bits, berth_error *err) {
  if (s->used == s->count) return berth__fail(err, BERTH_MALFORMED, "there are more elements than the shape has");
  store_int(s->type, s->data + s->used * s->element, bits);
  s->used++;
  return BERTH_OK;
}

static berth_status put_field(sink *s, const berth__field *field, berth_error *err) {
  bool is_fixed = s->type == BERTH_F32 || s->type == BERTH_F64;
  if (field->type != BERTH__WIRE_BYTES) {
    bool is_right = is_fixed ? field->type == (s->type == BERTH_F32 ? BERTH__WIRE_32 : BERTH__WIRE_64)
                             : field->type == BERTH__WIRE_VARINT;
    if (!is_right)
      return berth__fail(err, BERTH_MALFORMED, "the elements are stored as something else than their type");
    return onnx_tensor_put(s, field->value, err);
  }
  berth__span packed = field->bytes;
  if (is_fixed) {
    if (packed.size % s->element != 0) return berth__fail(err, BERTH_MALFORMED, "a packed list ends inside an element");
    if (packed.size / s->element > s->count - s->used)
      return berth__fail(err, BERTH_MALFORMED, "there are more elements than the shape has");
    if (packed.size != 0) memcpy(s->data + s->used * s->element, packed.data, packed.size);
    s->used += packed.size / s->element;
    return BERTH_OK;
  }
  while (packed.size != 0) {
    uint64_t value;
    BERTH__TRY(berth__wire_varint(&packed, &value, err));
    BERTH__TRY(onnx_tensor_put(s, value, err));
  }
  return BERTH_OK;
}

static berth_status decode_fields(berth__span message, sink *s, berth_error *err) {
  uint32_t wanted = field_of(s->type);
  for (;;) {
    berth__field field;
    bool more;
    BERTH__TRY(berth__wire_next(&message, &field, &more, err));
    if (!more) break;
    if (field.number == wanted) BERTH__TRY(put_field(s, &field, err));
  }
  if (s->used != s->count)
    return berth__fail(err, BERTH_MALFORMED, "the shape has %zu elements but %zu are stored", s->count, s->used);
  return BERTH_OK;
}

static berth_status onnx_tensor_size_of(const berth__onnx_tensor *tensor, berth_type type, size_t *count, size_t *size,
                                        berth_error *err) {
  uint64_t n = 1, bytes;
  if (tensor->rank_is_too_large)
    return berth__fail(err, BERTH_UNSUPPORTED, "it has more than %d dimensions", BERTH_MAX_RANK);
  for (uint32_t i = 0; i < tensor->rank; i++)
    if (!berth__mul_u64(n, (uint64_t)tensor->dim[i], &n))
      return berth__fail(err, BERTH_MALFORMED, "the product of its dimensions does not fit in 64 bits");
  if (!berth__storage_bytes(berth_type_storage(type), n, &bytes) || bytes > SIZE_MAX / 2)
    return berth__fail(err, BERTH_MALFORMED, "its size does not fit in memory");
  *count = (size_t)n;
  *size = (size_t)bytes;
  return BERTH_OK;
}

static berth_status onnx_tensor_find_elements(const berth__onnx_tensor *tensor, berth__onnx_files *files,
                                              berth_type *type, const void **data, size_t *size, void **owned,
                                              berth_error *err) {
  size_t count;
  berth__span raw = tensor->raw;
  BERTH__TRY(berth__onnx_type(tensor->data_type, type, err));
  BERTH__TRY(onnx_tensor_size_of(tensor, *type, &count, size, err));
  if (tensor->is_external) BERTH__TRY(external_bytes(tensor, files, *size, &raw, err));
  if (raw.data != NULL) {
    if (raw.size != *size)
      return berth__fail(err, BERTH_MALFORMED, "its shape needs %zu bytes but %zu are stored", *size, raw.size);
    *data = raw.data;
    return BERTH_OK;
  }
  /* Typed fields take at least one byte per element, so a larger count is an error that can be found before reading. */
  if (count > tensor->message.size)
    return berth__fail(err, BERTH_MALFORMED, "the shape has %zu elements but fewer are stored", count);
  *owned = berth__alloc(files->ctx, *size);
  if (*owned == NULL) return berth__fail_nomem(err, "a tensor");
  sink s = {.data = *owned, .element = berth_type_size(*type), .count = count, .type = *type};
  *data = *owned;
  return decode_fields(tensor->message, &s, err);
}

berth_status berth__onnx_elements(const berth__onnx_tensor *tensor, berth__onnx_files *files, berth_type *type,
                                  const void **data, size_t *size, void **owned, berth_error *err) {
  *owned = NULL;
  *data = NULL;
  berth_status status = onnx_tensor_find_elements(tensor, files, type, data, size, owned, err);
  if (status != BERTH_OK) {
    berth__free(files->ctx, *owned);
    *owned = NULL;
    return berth__fail_within(err, status, "tensor '%.*s'", BERTH__SPAN_TEXT(tensor->name));
  }
  return BERTH_OK;
}

/* ---- Sparse tensors ---- */

static berth_status read_sparse(berth__span message, berth__onnx_tensor *values, berth__onnx_tensor *indices,
                                berth__onnx_tensor *shape, berth_error *err) {
  berth__span dims = message;
  for (;;) {
    berth__field field;
    bool more;
    berth__span inner;
    BERTH__TRY(berth__wire_next(&message, &field, &more, err));
    if (!more) break;
    if (field.number == 1 || field.number == 2) {
      BERTH__TRY(berth__wire_want_bytes(&field, "a part of a sparse tensor", &inner, err));
      BERTH__TRY(berth__onnx_parse_tensor(inner, field.number == 1 ? values : indices, err));
    }
  }
  /* Field 3, the dense dims, has the same form as a tensor's field 1. */
  for (;;) {
    berth__field field;
    bool more;
    BERTH__TRY(berth__wire_next(&dims, &field, &more, err));
    if (!more) return BERTH_OK;
    if (field.number != 3) continue;
    berth__span packed = field.bytes;
    while (field.type != BERTH__WIRE_BYTES || packed.size != 0) {
      uint64_t value = field.value;
      if (field.type == BERTH__WIRE_BYTES) BERTH__TRY(berth__wire_varint(&packed, &value, err));
      if (value > INT64_MAX || shape->rank == BERTH_MAX_RANK)
        return berth__fail(err, BERTH_MALFORMED, "a sparse tensor has a shape that is not possible");
      shape->dim[shape->rank++] = (int64_t)value;
      if (field.type != BERTH__WIRE_BYTES) break;
    }
  }
}

/* indices: [n], flat indices, or [n, rank], coordinates. */
static berth_status onnx_tensor_scatter(const berth__onnx_tensor *indices, const int64_t *at,
                                        const berth__onnx_tensor *shape, size_t count, const uint8_t *from, uint8_t *to,
                                        size_t element, size_t n, berth_error *err) {
  for (size_t k = 0; k < n; k++) {
    uint64_t position = 0;
    for (uint32_t d = 0; indices->rank == 2 && d < shape->rank; d++) {
      int64_t index = at[k * shape->rank + d];
      if (index < 0 || index >= shape->dim[d])
        return berth__fail(err, BERTH_MALFORMED, "a sparse tensor has an index outside its shape");
      position = position * (uint64_t)shape->dim[d] + (uint64_t)index;
    }
    if (indices->rank != 2) position = (uint64_t)at[k];
    if (position >= count) return berth__fail(err, BERTH_MALFORMED, "a sparse tensor has an index outside its shape");
    memcpy(to + position * element, from + k * element, element);
  }
  return BERTH_OK;
}

berth_status berth__onnx_dense(berth_context *ctx, berth__span sparse, berth__onnx_tensor *shape, berth_type *type,
                               void **owned, size_t *size, berth_error *err) {
  berth__onnx_tensor values = {0}, indices = {0};
  berth__onnx_files none = {.ctx = ctx};
  const void *data = NULL, *at = NULL;
  void *own_data = NULL, *own_at = NULL;
  size_t data_size = 0, at_size = 0, count = 0;
  berth_type at_type;
  *owned = NULL;
  *shape = (berth__onnx_tensor){0};
  BERTH__TRY(read_sparse(sparse, &values, &indices, shape, err));
  shape->name = values.name;
  berth_status status = berth__onnx_elements(&values, &none, type, &data, &data_size, &own_data, err);
  if (status == BERTH_OK) status = berth__onnx_elements(&indices, &none, &at_type, &at, &at_size, &own_at, err);
  if (status == BERTH_OK) status = onnx_tensor_size_of(shape, *type, &count, size, err);
  size_t n = status == BERTH_OK ? (size_t)berth__storage_count(berth_type_storage(*type), data_size) : 0;
  size_t each = indices.rank == 2 ? shape->rank : 1;
  if (status == BERTH_OK && (at_type != BERTH_I64 || values.rank != 1 || at_size / 8 != n * each))
    status = berth__fail(err, BERTH_MALFORMED, "a sparse tensor's indices do not go with its values");
  if (status == BERTH_OK) status = berth__memory_check(ctx, *size, "a sparse tensor", BERTH_NOMEM, err);
  int64_t *aligned = status == BERTH_OK ? berth__alloc(ctx, at_size) : NULL;
  if (status == BERTH_OK) *owned = berth__alloc_zero(ctx, *size);
  if (status == BERTH_OK && (aligned == NULL || *owned == NULL)) status = berth__fail_nomem(err, "a sparse tensor");
  if (status == BERTH_OK) {
    if (at_size != 0) memcpy(aligned, at, at_size);
    status = onnx_tensor_scatter(&indices, aligned, shape, count, data, *owned, berth_type_size(*type), n, err);
  }
  berth__free(ctx, aligned);
  berth__free(ctx, own_data);
  berth__free(ctx, own_at);
  if (status != BERTH_OK) {
    berth__free(ctx, *owned);
    *owned = NULL;
  }
  return status;
}
