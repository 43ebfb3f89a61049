/* .npy: one array after a header that is a Python literal.
 *
 *   offset 0   6 bytes   "\x93NUMPY"
 *   offset 6   2 bytes   the version: 1.0, 2.0 or 3.0
 *   offset 8   L         the length of the header, little endian: 2 bytes in version 1, 4 bytes in versions 2 and 3
 *   then       L bytes   the header: a dict with exactly these keys, in any order, then spaces and a newline, which
 *                        align what follows. Latin-1 in versions 1 and 2, UTF-8 in version 3
 *   then       the rest  the elements and nothing else
 *
 *   {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }
 *
 * descr is the byte order ('<' little, '>' big, '=' the machine's, '|' where there is none), then the kind and the
 * bytes of an element: f2 f4 f8 i1 i2 i4 i8 u1 u4 b1. Other kinds (u2, u8, c8, strings, dates, objects, and records,
 * whose descr is a list) are UNSUPPORTED. With fortran_order the first axis runs fastest. shape is a tuple: () for a
 * scalar, (3,) with its comma for one axis.
 *
 * What comes out is in the machine's byte order and in C order (the last axis runs fastest); bools are 0 or 1. What
 * goes out is version 1, with the elements at a multiple of 64. */
#include "import/npy/npy.h"

#include <stdbool.h>
#include <string.h>

#include "base/context.h"
#include "base/file.h"
#include "base/math.h"
#include "base/memory.h"
#include "base/storage.h"
#include "import/format.h"

#define MAX_HEADER 65536u /* numpy itself reads at most 10,000 characters by default */

const berth__npy_kind berth__npy_kinds[BERTH__NPY_KINDS] = {
    {"f2", BERTH_F16}, {"f4", BERTH_F32}, {"f8", BERTH_F64}, {"i1", BERTH_I8},   {"u1", BERTH_U8},  {"i2", BERTH_I16},
    {"i4", BERTH_I32}, {"i8", BERTH_I64}, {"u4", BERTH_U32}, {"b1", BERTH_BOOL}, {"u2", BERTH_U16}, {"u8", BERTH_U64}};

typedef struct header {
  berth_type type;
  bool swapped; /* the other byte order */
  bool fortran;
  uint32_t rank;
  int64_t dim[BERTH_MAX_RANK];
} header;

/* ---- The header's dict ----------------------------------------------------------------------------------------- */

typedef struct reader {
  const char *at, *end;
} reader;

static berth_status npy_wrong(const char *what, berth_error *err) {
  return berth__fail(err, BERTH_MALFORMED, "the npy header is wrong: %s", what);
}

static void npy_skip_space(reader *r) {
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) r->at++;
}

/* Skips the character if it comes next. */
static bool npy_take(reader *r, char c) {
  npy_skip_space(r);
  if (r->at == r->end || *r->at != c) return false;
  r->at++;
  return true;
}

static bool npy_take_word(reader *r, const char *word) {
  size_t length = strlen(word);
  npy_skip_space(r);
  if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) return false;
  r->at += length;
  return true;
}

/* A string in single or double quotes; no valid one has an escape. */
static berth_status take_string(reader *r, const char **text, size_t *size, berth_error *err) {
  npy_skip_space(r);
  if (r->at == r->end || (*r->at != '\'' && *r->at != '"')) return npy_wrong("a string in quotes is expected", err);
  char quote = *r->at++;
  const char *close = memchr(r->at, quote, (size_t)(r->end - r->at));
  if (!close) return npy_wrong("a string is not closed", err);
  *text = r->at;
  *size = (size_t)(close - r->at);
  r->at = close + 1;
  return memchr(*text, '\\', *size) ? npy_wrong("a string has an escape in it", err) : BERTH_OK;
}

static berth_status take_natural(reader *r, int64_t *out, berth_error *err) {
  int64_t value = 0;
  npy_skip_space(r);
  const char *start = r->at;
  for (; r->at < r->end && *r->at >= '0' && *r->at <= '9'; r->at++) {
    int digit = *r->at - '0';
    if (value > (INT64_MAX - digit) / 10) return npy_wrong("an extent is too large", err);
    value = value * 10 + digit;
  }
  if (r->at == start) return npy_wrong("shape must hold whole numbers that are not negative", err);
  if (*start == '0' && r->at - start > 1) return npy_wrong("an extent begins with 0", err);
  *out = value;
  return BERTH_OK;
}

static berth_status read_descr(reader *r, header *h, berth_error *err) {
  const char *text;
  size_t size;
  npy_skip_space(r);
  if (r->at < r->end && *r->at == '[') {
    return berth__fail(err, BERTH_UNSUPPORTED, "the npy file holds records; save each field as an array of its own");
  }
  BERTH__TRY(take_string(r, &text, &size, err));
  int shown = size < 32 ? (int)size : 32;
  if (size < 2 || !memchr("<>=|", text[0], 4)) {
    return berth__fail(err, BERTH_MALFORMED, "the npy header is wrong: descr '%.*s' is not a type", shown, text);
  }
  for (size_t i = 0; i < BERTH__NPY_KINDS; i++) {
    if (size != 3 || memcmp(berth__npy_kinds[i].text, text + 1, 2) != 0) continue;
    h->type = berth__npy_kinds[i].type;
    bool one_byte = berth_type_size(h->type) == 1;
    if (text[0] == '|' && !one_byte) return npy_wrong("descr does not say the byte order", err);
    h->swapped = !one_byte && text[0] != '=' && text[0] != BERTH__NPY_NATIVE_ORDER;
    return BERTH_OK;
  }
  return berth__fail(err, BERTH_UNSUPPORTED,
                     "the npy type '%.*s' is not supported; convert it to one of f2 f4 f8 i1 i2 i4 i8 u1 u4 b1", shown,
                     text);
}

static berth_status read_fortran(reader *r, header *h, berth_error *err) {
  h->fortran = npy_take_word(r, "True");
  if (h->fortran || npy_take_word(r, "False")) return BERTH_OK;
  return npy_wrong("fortran_order must be True or False", err);
}

static berth_status npy_read_shape(reader *r, header *h, berth_error *err) {
  bool comma = true;
  if (!npy_take(r, '(')) return npy_wrong("shape must be a tuple", err);
  for (h->rank = 0; !npy_take(r, ')'); h->rank++) {
    int64_t extent = 0;
    if (!comma) return npy_wrong("a comma is missing in shape", err);
    BERTH__TRY(take_natural(r, &extent, err));
    if (h->rank == BERTH_MAX_RANK) {
      return berth__fail(err, BERTH_UNSUPPORTED, "the npy file has more than the %d dimensions that are supported",
                         BERTH_MAX_RANK);
    }
    h->dim[h->rank] = extent;
    comma = npy_take(r, ',');
  }
  return h->rank == 1 && !comma ? npy_wrong("shape must be a tuple; one extent needs its comma", err) : BERTH_OK;
}

enum {
  KEY_DESCR = 1,
  KEY_FORTRAN = 2,
  KEY_SHAPE = 4,
  KEY_ALL = 7
};

static unsigned find_key(const char *text, size_t size) {
  static const struct {
    const char *name;
    unsigned key;
  } keys[] = {{"descr", KEY_DESCR}, {"fortran_order", KEY_FORTRAN}, {"shape", KEY_SHAPE}};
  for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
    if (strlen(keys[i].name) == size && memcmp(keys[i].name, text, size) == 0) return keys[i].key;
  }
  return 0;
}

static berth_status read_entry(reader *r, header *h, unsigned *seen, berth_error *err) {
  const char *name;
  size_t size;
  BERTH__TRY(take_string(r, &name, &size, err));
  unsigned key = find_key(name, size);
  int shown = size < 32 ? (int)size : 32;
  if (!key || (*seen & key)) {
    return berth__fail(err, BERTH_MALFORMED, "the npy header is wrong: the key '%.*s' %s", shown, name,
                       key ? "appears twice" : "is unknown");
  }
  *seen |= key;
  if (!npy_take(r, ':')) return npy_wrong("a colon is missing behind a key", err);
  if (key == KEY_DESCR) return read_descr(r, h, err);
  if (key == KEY_FORTRAN) return read_fortran(r, h, err);
  return npy_read_shape(r, h, err);
}

static berth_status read_dict(reader *r, header *h, berth_error *err) {
  unsigned seen = 0;
  bool comma = true;
  if (!npy_take(r, '{')) return npy_wrong("it must be a dict", err);
  while (!npy_take(r, '}')) {
    if (!comma) return npy_wrong("a comma is missing in the dict, or the dict is not closed", err);
    BERTH__TRY(read_entry(r, h, &seen, err));
    comma = npy_take(r, ',');
  }
  if (seen != KEY_ALL) {
    return npy_wrong(!(seen & KEY_DESCR)     ? "the key 'descr' is missing"
                     : !(seen & KEY_FORTRAN) ? "the key 'fortran_order' is missing"
                                             : "the key 'shape' is missing",
                     err);
  }
  npy_skip_space(r);
  return r->at == r->end ? BERTH_OK : npy_wrong("something follows the dict", err);
}

/* ---- The elements ---------------------------------------------------------------------------------------------- */

/* One element in the machine's byte order. */
static void copy_element(uint8_t *dst, const uint8_t *src, size_t size, bool swapped) {
  if (!swapped) {
    memcpy(dst, src, size);
    return;
  }
  for (size_t i = 0; i < size; i++) dst[i] = src[size - 1 - i];
}

/* Walks the result in C order and tracks the element's index in Fortran order, where axis 0 runs fastest. */
static void copy_fortran(const header *h, uint8_t *dst, const uint8_t *src, uint64_t count, size_t size) {
  int64_t at[BERTH_MAX_RANK] = {0};
  int64_t stride[BERTH_MAX_RANK];
  int64_t index = 0, step = 1;
  for (uint32_t i = 0; i < h->rank; step *= h->dim[i++]) stride[i] = step;
  for (uint64_t n = 0; n < count; n++, dst += size) {
    copy_element(dst, src + (size_t)index * size, size, h->swapped);
    for (uint32_t axis = h->rank; axis-- > 0;) {
      index += stride[axis];
      if (++at[axis] < h->dim[axis]) break;
      index -= stride[axis] * h->dim[axis];
      at[axis] = 0;
    }
  }
}

static void copy_elements(const header *h, uint8_t *dst, const uint8_t *src, uint64_t size) {
  size_t element = berth_type_size(h->type);
  uint64_t count = size / element;
  if (count == 0) return;
  if (h->fortran && h->rank > 1) {
    copy_fortran(h, dst, src, count, element);
  } else if (h->swapped) {
    for (uint64_t i = 0; i < count; i++) copy_element(dst + i * element, src + i * element, element, true);
  } else {
    memcpy(dst, src, (size_t)size);
  }
  if (h->type == BERTH_BOOL) {
    for (uint64_t i = 0; i < count; i++) dst[i] = dst[i] != 0;
  }
}

/* ---- The file -------------------------------------------------------------------------------------------------- */

/* Finds the header's dict and the elements after it. */
static berth_status split_file(const uint8_t *bytes, size_t size, reader *dict, const uint8_t **elements,
                               berth_error *err) {
  if (size < BERTH__NPY_MAGIC_SIZE + 2 || memcmp(bytes, BERTH__NPY_MAGIC, BERTH__NPY_MAGIC_SIZE) != 0) {
    return berth__fail(err, BERTH_MALFORMED, "the file does not begin with \\x93NUMPY; it is not an npy file");
  }
  unsigned major = bytes[6], minor = bytes[7];
  if (major < 1 || major > 3 || minor != 0) {
    return berth__fail(err, BERTH_UNSUPPORTED, "npy version %u.%u is not supported; 1.0, 2.0 and 3.0 are", major,
                       minor);
  }
  size_t width = major == 1 ? 2 : 4, start = BERTH__NPY_MAGIC_SIZE + 2 + width, length = 0;
  if (size < start) return npy_wrong("the file ends inside its length", err);
  for (size_t i = width; i-- > 0;) length = length << 8 | bytes[BERTH__NPY_MAGIC_SIZE + 2 + i];
  if (length > MAX_HEADER) return npy_wrong("it is longer than 65,536 bytes", err);
  if (length > size - start) return npy_wrong("the file ends inside it", err);
  dict->at = (const char *)bytes + start;
  dict->end = dict->at + length;
  *elements = bytes + start + length;
  return BERTH_OK;
}

bool berth__npy_probe(const uint8_t *data, size_t size) {
  return size >= BERTH__NPY_MAGIC_SIZE && memcmp(data, BERTH__NPY_MAGIC, BERTH__NPY_MAGIC_SIZE) == 0;
}

/* One array, which could be a param. */
berth_status berth__npy_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err) {
  reader dict = {NULL, NULL};
  const uint8_t *elements = NULL;
  header h = {0};
  uint64_t bytes;
  BERTH__TRY(split_file(file->data, file->size, &dict, &elements, err));
  BERTH__TRY(read_dict(&dict, &h, err));
  if (!berth__dense_bytes(h.rank, h.dim, h.type, &bytes))
    return berth__fail(err, BERTH_MALFORMED, "the size of the npy shape does not fit in 64 bits");
  return berth__summary_param(summary, berth__storage_count(berth_type_storage(h.type), bytes), bytes, err);
}

berth_status berth_npy_parse(berth_context *ctx, const void *data, size_t size, berth_array *out, berth_error *err) {
  reader dict = {NULL, NULL};
  const uint8_t *elements = NULL;
  header h = {0};
  uint64_t need;
  if (!out) return berth__fail(err, BERTH_INVALID, "berth_npy_parse needs a pointer to store its result");
  memset(out, 0, sizeof *out);
  if (!ctx || (!data && size > 0)) return berth__fail(err, BERTH_INVALID, "berth_npy_parse needs a context and data");
  BERTH__TRY(split_file(data, size, &dict, &elements, err));
  BERTH__TRY(read_dict(&dict, &h, err));
  if (!berth__dense_bytes(h.rank, h.dim, h.type, &need)) {
    return berth__fail(err, BERTH_MALFORMED, "the size of the npy shape does not fit in 64 bits");
  }
  size_t have = size - (size_t)(elements - (const uint8_t *)data);
  if (need != have) {
    return berth__fail(err, BERTH_MALFORMED,
                       "the npy shape needs %llu bytes of elements, but %zu are there; the file "
                       "is %s",
                       (unsigned long long)need, have, have < need ? "cut off" : "too long");
  }
  BERTH__TRY(berth__memory_check(ctx, need, "the array of an npy file", BERTH_NOMEM, err));
  void *block = berth__alloc(ctx, (size_t)need);
  if (!block) return berth__fail_nomem(err, "the elements of an npy file");
  copy_elements(&h, block, elements, need);
  *out = (berth_array){.type = h.type, .rank = h.rank, .data = block, .size = need};
  memcpy(out->dim, h.dim, sizeof h.dim);
  return BERTH_OK;
}

berth_status berth_npy_load(berth_context *ctx, const char *path, berth_array *out, berth_error *err) {
  berth__mapping mapping;
  if (!out) return berth__fail(err, BERTH_INVALID, "berth_npy_load needs a pointer to store its result");
  memset(out, 0, sizeof *out);
  if (!ctx || !path) return berth__fail(err, BERTH_INVALID, "berth_npy_load needs a context and a path");
  BERTH__TRY(berth__file_map(path, &mapping, err));
  berth_status status = mapping.size != 0 ? berth_npy_parse(ctx, mapping.data, mapping.size, out, err)
                                          : berth__fail(err, BERTH_MALFORMED, "the file is empty");
  if (status == BERTH_OK) {
    status = berth__file_check(&mapping, err);
    if (status != BERTH_OK) berth_array_free(ctx, out);
  }
  berth__file_unmap(&mapping);
  return status == BERTH_OK ? BERTH_OK : berth__fail_within(err, status, "%s", path);
}

void berth_array_free(berth_context *ctx, berth_array *array) {
  if (!array) return;
  berth__free(ctx, array->data);
  memset(array, 0, sizeof *array);
}
