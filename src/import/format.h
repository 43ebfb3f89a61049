/* The formats that berth knows: a row of the table in format.c and a folder each. */
#ifndef BERTH_IMPORT_FORMAT_H
#define BERTH_IMPORT_FORMAT_H

#include <stdbool.h>

#include "base/file.h"
#include "import/summary.h"

/* What a graph is loaded from. */
typedef struct berth__load {
  berth_context *ctx;
  const char *path;     /* NULL: it is memory */
  berth__mapping *file; /* the loader takes it over, also on failure */
  berth_type kv;        /* how a GGUF model keeps keys and values; BERTH_TYPE_NONE: as f16 */
  bool has_weights;     /* the caller has weights for all params: files that the model names are not needed */
} berth__load;

typedef struct berth__format {
  const char *name;        /* what the API and the command line call it */
  const char *description; /* "a .. file", for messages */
  /* Content: all of the file is there. */
  bool (*probe)(const uint8_t *data, size_t size);
  const char *ending; /* of a file's name, where the content does not say; NULL: names do not count */
  bool is_weak;       /* the content shows little: other formats and all names are asked first */
  /* Each NULL where files of the format have no such thing, or where this build does not read it. */
  berth_status (*load)(const berth__load *in, berth_graph **out, berth_error *err);
  berth_status (*read_weights)(berth_weights *weights, berth_error *err); /* of its mapping: weights.h */
  berth_status (*inspect)(berth__summary *summary, const berth__mapping *file, berth_error *err);
  bool is_array;
} berth__format;

/* By content and name; path NULL: by content alone. NULL: it is of no format that berth knows. */
const berth__format *berth__format_find(const berth__mapping *file, const char *path);
/* The one that reads weights from this file: where none is found, the first that could, which will say what is wrong.
 */
const berth__format *berth__format_for_weights(const berth__mapping *file, const char *path);
/* The file is of no format, or of one that cannot do what is asked of it: `wanted` is "a graph", say. */
berth_status berth__format_refuse(const berth__format *format, const char *path, const char *wanted, berth_error *err);

/* The rows' functions, each in its folder. */
bool berth__npy_probe(const uint8_t *data, size_t size);
berth_status berth__npy_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);
bool berth__safetensors_probe(const uint8_t *data, size_t size);
berth_status berth__safetensors_read(berth_weights *weights, berth_error *err);
bool berth__gguf_probe(const uint8_t *data, size_t size);
berth_status berth__gguf_read_weights(berth_weights *weights, berth_error *err);
berth_status berth__gguf_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);
bool berth__text_probe(const uint8_t *data, size_t size);
berth_status berth__text_load(const berth__load *in, berth_graph **out, berth_error *err);
berth_status berth__text_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);
berth_status berth__gguf_load(const berth__load *in, berth_graph **out, berth_error *err);
bool berth__onnx_probe(const uint8_t *data, size_t size);
berth_status berth__onnx_load(const berth__load *in, berth_graph **out, berth_error *err);
berth_status berth__onnx_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err);

#endif
