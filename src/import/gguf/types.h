/* The types of ggml's tensors. */
#ifndef BERTH_IMPORT_GGUF_TYPES_H
#define BERTH_IMPORT_GGUF_TYPES_H

#include "berth/berth.h"

typedef struct berth__ggml_type {
  const char *name;         /* as ggml spells it */
  uint32_t elements, bytes; /* of a block; 0: no type has this number any more */
  berth_type type;          /* BERTH_TYPE_NONE: berth has none like it */
} berth__ggml_type;

berth__ggml_type berth__ggml_type_at(uint32_t number); /* name NULL: it is none of the format's */

#endif
