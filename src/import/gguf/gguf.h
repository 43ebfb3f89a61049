/* GGUF, the files of llama.cpp and its kin: keys with values, and tensors. Versions 2 and 3, little endian.
 *
 *   header    "GGUF", u32 version, u64 tensors, u64 keys
 *   keys      a string, u32 type of the value, the value
 *   tensors   a string, u32 rank (at most 4), u64 extents (the fastest first), u32 type, u64 offset in the data
 *   data      from the next multiple of general.alignment (32) on; each tensor begins at such a multiple of it
 *
 * A string is a u64 length and bytes that no zero ends. An array is a u32 type, a u64 count and the elements; arrays
 * may hold arrays. Nothing in the file is aligned but the data.
 *
 * Everything is checked while it is read, and nothing is copied but names: values and data are looked at where they are
 * mapped, and the data is not touched at all. */
#ifndef BERTH_IMPORT_GGUF_H
#define BERTH_IMPORT_GGUF_H

#include <stdatomic.h>
#include <stdbool.h>

#include "base/file.h"
#include "base/file_bytes.h"
#include "base/map.h"

typedef enum berth__gguf_kind { /* the numbers of the format */
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
  const uint8_t *data;   /* of the first element; not aligned */
  uint64_t size;         /* bytes of all elements */
  const uint64_t *marks; /* strings of keys: where every BERTH__GGUF_STRIDE-th begins, as a distance from data */
} berth__gguf_array;

typedef struct berth__gguf_key {
  char *name;
  berth__gguf_kind kind;
  const uint8_t *data;     /* of the value: numbers and bools */
  berth__gguf_string text; /* strings */
  berth__gguf_array array; /* arrays */
} berth__gguf_key;

typedef struct berth__gguf_tensor {
  char *name;
  uint32_t ggml_type;
  berth_type type; /* BERTH_TYPE_NONE: berth has no such type */
  uint32_t rank;
  int64_t dim[4]; /* the slowest first, as in berth */
  uint32_t part;  /* the file that it is in */
  uint64_t begin; /* of its data, in that file */
  uint64_t size;  /* bytes; 0 where the type is one that nobody here has heard of */
  const uint8_t *data;
} berth__gguf_tensor;

/* A model: one file, or all the parts of one that was split. */
typedef struct berth__gguf {
  berth_context *ctx;
  atomic_uint holders;
  uint32_t version;
  uint64_t alignment;
  berth__gguf_string architecture; /* general.architecture; empty where there is none */
  berth__gguf_key *keys;           /* of the first part */
  size_t n_keys;
  berth__gguf_tensor *tensors; /* of all parts */
  size_t n_tensors;
  berth__map key_index, tensor_index;
  berth__mapping *files; /* one for each part */
  uint32_t n_files;
  void **copies; /* tensors that are not aligned to their elements */
  size_t n_copies, copies_capacity;
} berth__gguf;

/* Takes over the file, also on failure. Parts of a split model are found beside path, which may be NULL for memory. */
berth_status berth__gguf_open(berth_context *ctx, const char *path, berth__mapping *file, berth__gguf **out,
                              berth_error *err);
berth__gguf *berth__gguf_retain(berth__gguf *g); /* one more holder, to be undone with destroy */
void berth__gguf_destroy(berth__gguf *g);        /* NULL is fine */
/* For whoever keeps the model because of its data (berth__keep of graph.h): pages that may go, files that shrank. */
void berth__gguf_rest(const berth__gguf *g, const void *data, size_t size);
void berth__gguf_rest_header(const berth__gguf *g); /* keys, and the texts of tokens: what is read again comes back */
berth_status berth__gguf_check(const berth__gguf *g, berth_error *err);
/* Where these bytes lie in a file that is open; false: in none. */
bool berth__gguf_file_of(const berth__gguf *g, const void *data, uint64_t size, berth__file_bytes *out);

/* ---- Keys. A key that begins with a dot is below the architecture: ".block_count" is "llama.block_count". ---- */

const berth__gguf_key *berth__gguf_find(const berth__gguf *g, const char *key); /* NULL: there is none */
/* Integers of every width will do for an integer, numbers of every kind for a float. A key that is missing or of
 * another kind is MALFORMED, and the message says which and what it is. */
berth_status berth__gguf_u64(const berth__gguf *g, const char *key, uint64_t *out, berth_error *err);
berth_status berth__gguf_f64(const berth__gguf *g, const char *key, double *out, berth_error *err);
berth_status berth__gguf_bool(const berth__gguf *g, const char *key, bool *out, berth_error *err);
berth_status berth__gguf_string_of(const berth__gguf *g, const char *key, berth__gguf_string *out, berth_error *err);
berth_status berth__gguf_array_of(const berth__gguf *g, const char *key, berth__gguf_array *out, berth_error *err);
/* The same for keys that may be missing: *out is the fallback then. A key of another kind is still an error. */
berth_status berth__gguf_u64_or(const berth__gguf *g, const char *key, uint64_t fallback, uint64_t *out,
                                berth_error *err);
berth_status berth__gguf_f64_or(const berth__gguf *g, const char *key, double fallback, double *out, berth_error *err);
berth_status berth__gguf_bool_or(const berth__gguf *g, const char *key, bool fallback, bool *out, berth_error *err);

const char *berth__gguf_kind_name(berth__gguf_kind kind); /* "u32"; "unknown" */
bool berth__gguf_is(berth__gguf_string string, const char *text);

/* ---- Arrays. i is below count, and the element is of the kind that is asked for. ---- */

/* Strings of a key's array are found in constant time; those of an array inside an array are counted through. */
berth__gguf_string berth__gguf_array_string(const berth__gguf_array *array, uint64_t i);
bool berth__gguf_array_is_whole(const berth__gguf_array *array);           /* integers and bools */
bool berth__gguf_array_is_number(const berth__gguf_array *array);          /* those and floats */
int64_t berth__gguf_array_i64(const berth__gguf_array *array, uint64_t i); /* a u64 over INT64_MAX is INT64_MAX */
double berth__gguf_array_f64(const berth__gguf_array *array, uint64_t i);
berth__gguf_array berth__gguf_array_array(const berth__gguf_array *array, uint64_t i); /* counts through to it */

/* ---- Tensors ---- */

const berth__gguf_tensor *berth__gguf_tensor_find(const berth__gguf *g, const char *name); /* NULL: there is none */
/* Where its elements are: in the mapping, or a copy that lives as long as the model where the file does not align them.
 * UNSUPPORTED: the type is none of berth's. */
berth_status berth__gguf_tensor_data(berth__gguf *g, const berth__gguf_tensor *tensor, const void **out,
                                     berth_error *err);
/* "q4_K" or, for a number that is none of the format's, "type 77". */
const char *berth__gguf_type_name(uint32_t ggml_type, char text[32]);

#endif
