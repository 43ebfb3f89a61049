/* Weights inside the library: shared by the handle and by every graph that uses them. The public functions (open,
 * count, at, find, destroy) serve for looking at them. */
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
  int64_t begin, end; /* bytes in the section of the file that has the data */
  const void *data;
  void *copy; /* the data where the file does not align it; otherwise NULL */
} berth__weight;

struct berth_weights {
  berth_context *ctx;
  atomic_uint holders;
  berth__mapping mapping; /* base stays NULL for weights from memory, which are not ours to unmap */
  bool mapped;
  const char *path;         /* the file's, while it is read; NULL: it is memory */
  struct berth__gguf *gguf; /* which has the mapping then, and those of a split model's other files; else NULL */
  berth__weight *tensors;
  size_t count, capacity;
  berth__map index;    /* name to tensor */
  uint64_t n_metadata; /* entries that say something of the file */
};

/* For a format's read_weights, which finds the file's bytes in `mapping`: one more tensor, whose name becomes the
 * weights' own, also on failure, and must be new. */
berth_status berth__weights_add(berth_weights *weights, char *name, berth__weight **out, berth_error *err);
/* Data, once every tensor has its begin and end: where it lies in the file, or a copy where it is not aligned. */
berth_status berth__weights_place(berth_weights *weights, const uint8_t *section, berth_error *err);
/* A format's inspect, for all that have nothing but weights. */
berth_status berth__weights_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);

/* One more holder, to be undone with berth_weights_destroy. Holders on several threads are fine; what const promises
 * is the weights, not the count of those who hold them. Returns its argument. */
berth_weights *berth__weights_retain(const berth_weights *weights);
/* The file's pages behind these bytes are not needed for now. */
void berth__weights_rest(const berth_weights *weights, const void *data, size_t size);
berth_status berth__weights_check(const berth_weights *weights, berth_error *err); /* berth__file_check of their file */

#endif
