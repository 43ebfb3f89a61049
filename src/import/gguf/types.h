/* The types of ggml's tensors. */
#ifndef BERTH_IMPORT_GGUF_TYPES_H
#define BERTH_IMPORT_GGUF_TYPES_H

#include "berth/berth.h"

typedef struct berth__ggml_type {
  const char *name;         /* as ggml spells it */
  uint32_t elements, bytes; /* per block; 0: this number is no longer used */
  berth_type type;          /* BERTH_TYPE_NONE: berth has no such type */
} berth__ggml_type;

berth__ggml_type berth__ggml_type_at(uint32_t number); /* name NULL: the format does not define it */

#endif
