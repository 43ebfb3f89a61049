/* Protocol Buffers' wire format. */
#include "import/onnx/wire.h"

berth_status berth__wire_varint(berth__span *span, uint64_t *out, berth_error *err) {
  uint64_t value = 0;
  for (unsigned i = 0; i < 10; i++) {
    if (span->size == 0) return berth__fail(err, BERTH_MALFORMED, "a number runs past the end of its message");
    uint8_t byte = *span->data++;
    span->size--;
    value |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (byte < 0x80) {
      *out = value;
      return BERTH_OK;
    }
  }
  return berth__fail(err, BERTH_MALFORMED, "a number has more than ten bytes");
}

static berth_status onnx_wire_take_fixed(berth__span *span, size_t size, uint64_t *out, berth_error *err) {
  if (span->size < size) return berth__fail(err, BERTH_MALFORMED, "a field runs past the end of its message");
  *out = 0;
  for (size_t i = 0; i < size; i++) *out |= (uint64_t)span->data[i] << (8 * i);
  span->data += size;
  span->size -= size;
  return BERTH_OK;
}

static berth_status take_bytes(berth__span *span, berth__span *out, berth_error *err) {
  uint64_t size = 0;
  BERTH__TRY(berth__wire_varint(span, &size, err));
  if (size > span->size)
    return berth__fail(err, BERTH_MALFORMED,
                       "a field of %llu bytes runs past the end of its message, which has %zu left",
                       (unsigned long long)size, span->size);
  *out = (berth__span){span->data, (size_t)size};
  span->data += size;
  span->size -= (size_t)size;
  return BERTH_OK;
}

berth_status berth__wire_next(berth__span *message, berth__field *field, bool *more, berth_error *err) {
  uint64_t key = 0;
  *more = message->size != 0;
  if (!*more) return BERTH_OK;
  BERTH__TRY(berth__wire_varint(message, &key, err));
  *field = (berth__field){.number = (uint32_t)(key >> 3), .type = (int)(key & 7)};
  if (key >> 3 == 0 || key >> 3 > 0x1fffffff)
    return berth__fail(err, BERTH_MALFORMED, "a field has an impossible number");
  switch (field->type) {
    case BERTH__WIRE_VARINT: return berth__wire_varint(message, &field->value, err);
    case BERTH__WIRE_64: return onnx_wire_take_fixed(message, 8, &field->value, err);
    case BERTH__WIRE_BYTES: return take_bytes(message, &field->bytes, err);
    case BERTH__WIRE_32: return onnx_wire_take_fixed(message, 4, &field->value, err);
    default: return berth__fail(err, BERTH_MALFORMED, "a field has the unknown wire type %d", field->type);
  }
}

static berth_status fail_kind(const char *what, berth_error *err) {
  return berth__fail(err, BERTH_MALFORMED, "%s has the wrong wire type", what);
}

berth_status berth__wire_want_bytes(const berth__field *field, const char *what, berth__span *out, berth_error *err) {
  if (field->type != BERTH__WIRE_BYTES) return fail_kind(what, err);
  *out = field->bytes;
  return BERTH_OK;
}

berth_status berth__wire_want_int(const berth__field *field, const char *what, int64_t *out, berth_error *err) {
  if (field->type != BERTH__WIRE_VARINT) return fail_kind(what, err);
  *out = (int64_t)field->value;
  return BERTH_OK;
}

berth_status berth__wire_want_float(const berth__field *field, const char *what, float *out, berth_error *err) {
  uint32_t bits = (uint32_t)field->value;
  if (field->type != BERTH__WIRE_32) return fail_kind(what, err);
  memcpy(out, &bits, sizeof *out);
  return BERTH_OK;
}

bool berth__span_equal(berth__span a, berth__span b) {
  return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

bool berth__span_is(berth__span span, const char *text) {
  return berth__span_equal(span, (berth__span){(const uint8_t *)text, strlen(text)});
}
