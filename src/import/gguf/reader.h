/* Shared by the parts of the reader. */
#ifndef BERTH_IMPORT_GGUF_READER_H
#define BERTH_IMPORT_GGUF_READER_H

#include "import/gguf/gguf.h"

#define BERTH__GGUF_STRIDE 16u /* strings between two marks of an array */

/* Bytes of a value; 0: strings, arrays, and unknown kinds. */
static inline uint32_t berth__gguf_kind_bytes(berth__gguf_kind kind) {
  switch (kind) {
    case BERTH__GGUF_U8:
    case BERTH__GGUF_I8:
    case BERTH__GGUF_BOOL: return 1;
    case BERTH__GGUF_U16:
    case BERTH__GGUF_I16: return 2;
    case BERTH__GGUF_U32:
    case BERTH__GGUF_I32:
    case BERTH__GGUF_F32: return 4;
    case BERTH__GGUF_U64:
    case BERTH__GGUF_I64:
    case BERTH__GGUF_F64: return 8;
    case BERTH__GGUF_STRING:
    case BERTH__GGUF_ARRAY: break;
  }
  return 0;
}

/* Little endian, unaligned. */
static inline uint64_t berth__gguf_word(const uint8_t *data, uint32_t bytes) {
  uint64_t value = 0;
  for (uint32_t i = bytes; i-- > 0;) value = value << 8 | data[i];
  return value;
}

/* A model of one file, of which it takes ownership, also on failure. */
berth_status berth__gguf_create(berth_context *ctx, berth__mapping *file, berth__gguf **out, berth_error *err);
/* Reads the file's keys and tensors into an empty model. On failure the model must be destroyed. */
berth_status berth__gguf_read(berth__gguf *g, berth_error *err);
/* *g is one file that was read. If it is a part of a split model, it becomes the whole model; the path is used to find
 * the other parts. On failure *g must still be destroyed. */
berth_status berth__gguf_join(berth__gguf **g, const char *path, berth_error *err);

#endif
