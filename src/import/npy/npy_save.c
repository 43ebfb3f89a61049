/* Writing .npy files; npy.c describes the format. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/storage.h"
#include "base/whole.h"
#include "import/npy/npy.h"

/* The largest header: the magic, eight extents of 19 digits, and the padding to 64. */
#define SAVED_HEADER 512

static berth_status check_array(const berth_array *array, const char **descr, berth_error *err) {
  uint64_t size;
  *descr = NULL;
  if (array->type == BERTH_BF16) {
    return berth__fail(err, BERTH_UNSUPPORTED, "npy has no bf16; cast the array to f32 before it is saved");
  }
  for (size_t i = 0; i < BERTH__NPY_KINDS; i++) {
    if (berth__npy_kinds[i].type == array->type) *descr = berth__npy_kinds[i].text;
  }
  if (!*descr) return berth__fail(err, BERTH_INVALID, "the array has no valid type");
  if (array->rank > BERTH_MAX_RANK) return berth__fail(err, BERTH_INVALID, "the array has too many dimensions");
  for (uint32_t i = 0; i < array->rank; i++) {
    if (array->dim[i] < 0) return berth__fail(err, BERTH_INVALID, "extent %u of the array is negative", i);
  }
  if (!berth__dense_bytes(array->rank, array->dim, array->type, &size) || size != array->size) {
    return berth__fail(err, BERTH_INVALID, "the array's size of %llu bytes is not that of its shape and type",
                       (unsigned long long)array->size);
  }
  if (!array->data && size > 0) return berth__fail(err, BERTH_INVALID, "the array has no data");
  return BERTH_OK;
}

static size_t format_header(const berth_array *array, const char *descr, char text[SAVED_HEADER]) {
  size_t prefix = BERTH__NPY_MAGIC_SIZE + 4;
  char order = berth_type_size(array->type) == 1 ? '|' : BERTH__NPY_NATIVE_ORDER;
  size_t n = prefix + (size_t)snprintf(text + prefix, SAVED_HEADER - prefix,
                                       "{'descr': '%c%s', 'fortran_order': False, 'shape': (", order, descr);
  for (uint32_t i = 0; i < array->rank; i++) {
    const char *comma = i + 1 < array->rank ? ", " : array->rank == 1 ? "," : "";
    n += (size_t)snprintf(text + n, SAVED_HEADER - n, "%lld%s", (long long)array->dim[i], comma);
  }
  n += (size_t)snprintf(text + n, SAVED_HEADER - n, "), }");
  while ((n + 1) % 64 != 0) text[n++] = ' ';
  text[n++] = '\n';
  memcpy(text, BERTH__NPY_MAGIC "\x01\x00", BERTH__NPY_MAGIC_SIZE + 2);
  text[8] = (char)((n - prefix) & 0xFF);
  text[9] = (char)((n - prefix) >> 8);
  return n;
}

berth_status berth_npy_save(berth_context *ctx, const char *path, const berth_array *array, berth_error *err) {
  char text[SAVED_HEADER];
  const char *descr;
  if (!ctx || !path || !array) {
    return berth__fail(err, BERTH_INVALID, "berth_npy_save needs a context, a path and an array");
  }
  berth_status status = check_array(array, &descr, err);
  if (status != BERTH_OK) return berth__fail_within(err, status, "%s", path);
  size_t n = format_header(array, descr, text);
  int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return berth__fail(err, BERTH_IO, "cannot open %s for writing: %s", path, strerror(errno));
  int failed = berth__write_all(fd, text, n);
  if (!failed) failed = berth__write_all(fd, array->data, (size_t)array->size);
  if (close(fd) != 0 && !failed) failed = errno;
  if (!failed) return BERTH_OK;
  return berth__fail(err, BERTH_IO, "cannot write all of %s: %s; what is there now is not complete", path,
                     strerror(failed));
}
