/* GGUF, the file format of llama.cpp: keys with values, and tensors. Versions 2 and 3, little endian.
 *
 *   header    "GGUF", u32 version, u64 tensors, u64 keys
 *   keys      a string, u32 type of the value, the value
 *   tensors   a string, u32 rank (at most 4), u64 extents (the fastest first), u32 type, u64 offset in the data
 *   data      begins at a multiple of general.alignment (default 32), and so does each tensor in it
 *
 * A string is a u64 length and its bytes, without a terminating zero. An array is a u32 type, a u64 count and the
 * elements; arrays may hold arrays. Nothing but the data is aligned.
 *
 * Everything is checked while it is read, and nothing is copied but names: values and data are read in the mapping, and
 * the data is not touched at all. */
#ifndef BERTH_IMPORT_GGUF_H
#define BERTH_IMPORT_GGUF_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/file_bytes.h"
#include "base/map.h"

typedef enum berth__gguf_kind { /* numbers of the format */
  BERTH__GGUF_U8 = 0,
  BERTH__GGUF_I8 = 1,
  BERTH__GGUF_U16 = 2,
  BERTH__GGUF_I16 = 3,
  BERTH__GGUF_U32 = 4,
  BERTH__GGUF_I32 = 5,
  BERTH__GGUF_F32 = 6,
  BERTH__GGUF_BOOL = 7,
  BERTH__GGUF_STRING = 8,
  BERTH__GGUF_ARRAY = 9,
  BERTH__GGUF_U64 = 10,
  BERTH__GGUF_I64 = 11,
  BERTH__GGUF_F64 = 12
} berth__gguf_kind;

typedef struct berth__gguf_string {
  const char *data; /* not terminated */
  uint64_t size;
} berth__gguf_string;

typedef struct berth__gguf_array {
  berth__gguf_kind kind; /* of the elements */
  uint64_t count;
  const uint8_t *data;   /* the first element; not aligned */
  uint64_t size;         /* bytes of all elements */
  const uint64_t *marks; /* strings of keys: offsets from data of every BERTH__GGUF_STRIDE-th */
} berth__gguf_array;

typedef struct berth__gguf_key {
  char *name;
  berth__gguf_kind kind;
  const uint8_t *data;     /* numbers and bools: the value */
  berth__gguf_string text; /* strings */
  berth__gguf_array array; /* arrays */
} berth__gguf_key;

typedef struct berth__gguf_tensor {
  char *name;
  uint32_t ggml_type;
  berth_type type; /* BERTH_TYPE_NONE: berth has no such type */
  uint32_t rank;
  int64_t dim[4]; /* slowest first, as in berth */
  uint32_t part;  /* the index of its file */
  uint64_t begin; /* offset of its data in that file */
  uint64_t size;  /* bytes; 0 if the type is unknown */
  const uint8_t *data;
} berth__gguf_tensor;

/* A model: one file, or all the parts of a split one. */
typedef struct berth__gguf {
  berth_context *ctx;
  atomic_uint holders;
  uint32_t version;
  uint64_t alignment;
  berth__gguf_string architecture; /* general.architecture; empty if missing */
  berth__gguf_key *keys;           /* of the first part */
  size_t n_keys;
  berth__gguf_tensor *tensors; /* of all parts */
  size_t n_tensors;
  berth__map key_index, tensor_index;
  berth__mapping *files; /* one per part */
  uint32_t n_files;
  void **copies; /* copies of tensors that are not aligned to their elements */
  size_t n_copies, copies_capacity;
} berth__gguf;

/* Takes ownership of the file, also on failure. Parts of a split model are looked up beside path, which may be NULL for
 * memory. */
berth_status berth__gguf_open(berth_context *ctx, const char *path, berth__mapping *file, berth__gguf **out,
                              berth_error *err);
berth__gguf *berth__gguf_retain(berth__gguf *g); /* adds a reference, to be released with destroy */
void berth__gguf_destroy(berth__gguf *g);        /* NULL is allowed */
/* For graphs that keep the model open because of its data (berth__keep of graph.h): pages that may be released, files
 * that have shrunk. */
void berth__gguf_rest(const berth__gguf *g, const void *data, size_t size);
void berth__gguf_rest_header(
    const berth__gguf *g); /* keys, and the texts of tokens: pages are read again when needed */
berth_status berth__gguf_check(const berth__gguf *g, berth_error *err);
/* The file and offset of these bytes; false: they are not in a mapped file. */
bool berth__gguf_file_of(const berth__gguf *g, const void *data, uint64_t size, berth__file_bytes *out);

/* ---- Keys. A leading dot stands for the architecture: ".block_count" is "llama.block_count". ---- */

const berth__gguf_key *berth__gguf_find(const berth__gguf *g, const char *key); /* NULL: not found */
/* Integer keys accept integers of every width, float keys accept every number. If a key is missing or of another kind,
 * the result is MALFORMED, and the message names it. */
berth_status berth__gguf_u64(const berth__gguf *g, const char *key, uint64_t *out, berth_error *err);
berth_status berth__gguf_f64(const berth__gguf *g, const char *key, double *out, berth_error *err);
berth_status berth__gguf_bool(const berth__gguf *g, const char *key, bool *out, berth_error *err);
berth_status berth__gguf_string_of(const berth__gguf *g, const char *key, berth__gguf_string *out, berth_error *err);
berth_status berth__gguf_array_of(const berth__gguf *g, const char *key, berth__gguf_array *out, berth_error *err);
/* The same for optional keys, with a fallback. A key of another kind is still an error. */
berth_status berth__gguf_u64_or(const berth__gguf *g, const char *key, uint64_t fallback, uint64_t *out,
                                berth_error *err);
berth_status berth__gguf_f64_or(const berth__gguf *g, const char *key, double fallback, double *out, berth_error *err);
berth_status berth__gguf_bool_or(const berth__gguf *g, const char *key, bool fallback, bool *out, berth_error *err);

const char *berth__gguf_kind_name(berth__gguf_kind kind); /* "u32"; "unknown" */
bool berth__gguf_is(berth__gguf_string string, const char *text);

/* ---- Arrays. i must be below count, and the element of the kind that is asked for. ---- */

/* Takes constant time in a key's array; in nested arrays, strings are skipped one by one. */
berth__gguf_string berth__gguf_array_string(const berth__gguf_array *array, uint64_t i);
bool berth__gguf_array_is_whole(const berth__gguf_array *array);           /* integers and bools */
bool berth__gguf_array_is_number(const berth__gguf_array *array);          /* integers, bools and floats */
int64_t berth__gguf_array_i64(const berth__gguf_array *array, uint64_t i); /* a u64 above INT64_MAX becomes INT64_MAX */
double berth__gguf_array_f64(const berth__gguf_array *array, uint64_t i);
berth__gguf_array berth__gguf_array_array(const berth__gguf_array *array, uint64_t i); /* skips the arrays before it */

/* ---- Tensors ---- */

const berth__gguf_tensor *berth__gguf_tensor_find(const berth__gguf *g, const char *name); /* NULL: not found */
/* The address of its elements: in the mapping, or a copy that lives as long as the model if the file does not align
 * them. UNSUPPORTED: berth does not have the type. */
berth_status berth__gguf_tensor_data(berth__gguf *g, const berth__gguf_tensor *tensor, const void **out,
                                     berth_error *err);
/* "q4_K", or "type 77" for a number that the format does not define. */
const char *berth__gguf_type_name(uint32_t ggml_type, char text[32]);

#endif
