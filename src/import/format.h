/* The formats that berth knows: each is a row of the table in format.c and a folder. */
#ifndef BERTH_IMPORT_FORMAT_H
#define BERTH_IMPORT_FORMAT_H

#include <stdbool.h>

#include "base/file.h"
#include "import/summary.h"

/* The source of a graph. */
typedef struct berth__load {
  berth_context *ctx;
  const char *path;      /* NULL: the data is in memory */
  berth__mapping *file;  /* the loader takes ownership, also on failure */
  berth_type kv;         /* how a GGUF model stores keys and values; BERTH_TYPE_NONE: as f16 */
  const berth_dim *dims; /* extents of named dimensions, which a format with `fixes_dims` makes fixed ones */
  size_t n_dims;
  bool has_weights; /* the caller has weights for all params: files that the model refers to are not needed */
} berth__load;

typedef struct berth__format {
  const char *name;        /* its name in the API and the command line */
  const char *description; /* "a .. file", for messages */
  /* Recognises the content of a complete file. */
  bool (*probe)(const uint8_t *data, size_t size);
  const char *ending; /* ending of a file's name, used if the content does not tell; NULL: names do not matter */
  bool is_weak;       /* the content proves little: other formats and all names are tried first */
  /* Each is NULL if the format does not have it, or if this build does not read it. */
  berth_status (*load)(const berth__load *in, berth_graph **out, berth_error *err);
  berth_status (*read_weights)(berth_weights *weights, berth_error *err); /* the weights of a mapped file: weights.h */
  berth_status (*inspect)(berth__summary *summary, const berth__mapping *file, berth_error *err);
  bool is_array;
  bool fixes_dims; /* `load` takes dims */
} berth__format;

/* By content and name; path NULL: by content only. Returns NULL if berth knows no such format. */
const berth__format *berth__format_find(const berth__mapping *file, const char *path);
/* The format that reads weights from this file. If none is recognised, the first that could, which will report what is
 * wrong. */
const berth__format *berth__format_for_weights(const berth__mapping *file, const char *path);
/* Reports that the file has no known format, or one that cannot do what is asked: `wanted` is "a graph", for
 * example. */
berth_status berth__format_refuse(const berth__format *format, const char *path, const char *wanted, berth_error *err);

/* The functions of the rows, each in its folder. */
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
