/* Weights inside the library: shared by the handle and by every graph that uses them. The public functions (open,
 * count, at, find, destroy) are for inspecting them. */
#ifndef BERTH_IMPORT_WEIGHTS_H
#define BERTH_IMPORT_WEIGHTS_H

#include <stdatomic.h>

#include "base/map.h"
#include "import/format.h"

struct berth__gguf;

typedef struct berth__weight {
  char *name;
  berth_type type;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
  int64_t begin, end; /* offsets in the data section of the file */
  const void *data;
  void *copy; /* a copy of the data if the file does not align it; otherwise NULL */
} berth__weight;

struct berth_weights {
  berth_context *ctx;
  atomic_uint holders;
  berth__mapping mapping; /* base is NULL for weights from memory, which are not ours to unmap */
  bool mapped;
  const char *path;         /* the file's, while it is read; NULL: it is in memory */
  struct berth__gguf *gguf; /* owns the mapping, and those of a split model's other files; otherwise NULL */
  berth__weight *tensors;
  size_t count, capacity;
  berth__map index;    /* name to tensor */
  uint64_t n_metadata; /* metadata entries in the file */
};

/* For a format's read_weights, which finds the file's bytes in `mapping`: adds a tensor and takes ownership of its
 * name, also on failure. The name must be new. */
berth_status berth__weights_add(berth_weights *weights, char *name, berth__weight **out, berth_error *err);
/* Sets the data, once every tensor has its begin and end: its address in the file, or a copy if it is not aligned. */
berth_status berth__weights_place(berth_weights *weights, const uint8_t *section, berth_error *err);
/* Implements inspect for formats that contain only weights. */
berth_status berth__weights_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);

/* Adds a reference, to be released with berth_weights_destroy. May be called from several threads: const refers to the
 * weights, not to the reference count. Returns its argument. */
berth_weights *berth__weights_retain(const berth_weights *weights);
/* The file's pages with these bytes are not needed for now. */
void berth__weights_rest(const berth_weights *weights, const void *data, size_t size);
berth_status berth__weights_check(const berth_weights *weights, berth_error *err); /* berth__file_check of their file */

#endif
