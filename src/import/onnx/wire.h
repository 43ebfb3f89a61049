/* Protocol Buffers' wire format, read in place: nothing is copied and nothing is allocated.
 *
 * A message is a sequence of fields; each begins with a varint key (number * 8 + wire type):
 *   0  a varint       1  eight bytes       2  a length and that many bytes       5  four bytes
 * Strings, bytes, packed lists and nested messages all have wire type 2. */
#ifndef BERTH_IMPORT_ONNX_WIRE_H
#define BERTH_IMPORT_ONNX_WIRE_H

#include <stdbool.h>

#include "base/status.h"

/* A piece of the mapped file. */
typedef struct berth__span {
  const uint8_t *data;
  size_t size;
} berth__span;

enum {
  BERTH__WIRE_VARINT = 0,
  BERTH__WIRE_64 = 1,
  BERTH__WIRE_BYTES = 2,
  BERTH__WIRE_32 = 5
};

typedef struct berth__field {
  uint32_t number;
  int type;
  uint64_t value;    /* varint, or the bits of a fixed field */
  berth__span bytes; /* wire type 2 */
} berth__field;

/* Removes the next field from the front of *message. *more is false at the end. */
berth_status berth__wire_next(berth__span *message, berth__field *field, bool *more, berth_error *err);
/* Removes one varint from the front: for packed lists. */
berth_status berth__wire_varint(berth__span *span, uint64_t *out, berth_error *err);

/* The field's content as the required wire type, or MALFORMED with `what` in the message. */
berth_status berth__wire_want_bytes(const berth__field *field, const char *what, berth__span *out, berth_error *err);
berth_status berth__wire_want_int(const berth__field *field, const char *what, int64_t *out, berth_error *err);
berth_status berth__wire_want_float(const berth__field *field, const char *what, float *out, berth_error *err);

bool berth__span_is(berth__span span, const char *text);
bool berth__span_equal(berth__span a, berth__span b);

/* For "%.*s" in messages: the first characters of a span, which may be long, empty or NULL. */
#define BERTH__SPAN_TEXT(span) \
  (int)((span).size < 100 ? (span).size : 100), (span).data != NULL ? (const char *)(span).data : ""

#endif
