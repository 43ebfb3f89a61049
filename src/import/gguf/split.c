/* Models that are split over several files. The first has all keys; each has split.no (from 0), split.count and
 * split.tensors.count (of all parts), and its name ends in "-00002-of-00003.gguf", counted from 1. */
#include <stdio.h>

#include "import/gguf/reader.h"

#define MAX_PARTS 65535u /* llama.cpp writes the counts with 16 bits */

typedef struct gguf_split {
  uint64_t number, count, tensors; /* split.no, split.count, split.tensors.count */
} gguf_split;

static berth_status gguf_split_read(const berth__gguf *g, gguf_split *out, berth_error *err) {
  BERTH__TRY(berth__gguf_u64_or(g, "split.count", 1, &out->count, err));
  BERTH__TRY(berth__gguf_u64_or(g, "split.no", 0, &out->number, err));
  BERTH__TRY(berth__gguf_u64_or(g, "split.tensors.count", g->n_tensors, &out->tensors, err));
  if (out->count == 0) out->count = 1; /* some tools write this for a model in one file */
  if (out->number < out->count && out->count <= MAX_PARTS) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "the file says that it is part number %llu of %llu, counted from 0",
                     (unsigned long long)out->number, (unsigned long long)out->count);
}

/* The ending of a part's name. */
static void gguf_split_ending(uint64_t number, uint64_t count, char out[64]) {
  snprintf(out, 64, "-%05llu-of-%05llu.gguf", (unsigned long long)number + 1, (unsigned long long)count);
}

/* The name of part `number`, without its folder, derived from the path of part `from`. */
static berth_status gguf_split_name(berth_context *ctx, const char *path, const gguf_split *from, uint64_t number,
                                    char **out, berth_error *err) {
  char is[64], wanted[64];
  *out = NULL;
  if (path == NULL)
    return berth__fail(err, BERTH_UNSUPPORTED,
                       "the model is split over %llu files; memory holds only one of them: open it by its path",
                       (unsigned long long)from->count);
  const char *slash = strrchr(path, '/');
  const char *name = slash != NULL ? slash + 1 : path;
  gguf_split_ending(from->number, from->count, is);
  gguf_split_ending(number, from->count, wanted);
  const size_t n = strlen(name), m = strlen(is);
  if (n < m || strcmp(name + n - m, is) != 0)
    return berth__fail(err, BERTH_MALFORMED,
                       "the file is part %llu of %llu of a split model, whose name would end in \"%s\"; without it "
                       "the other parts cannot be found",
                       (unsigned long long)from->number + 1, (unsigned long long)from->count, is);
  const size_t size = n - m + strlen(wanted) + 1;
  *out = berth__alloc(ctx, size);
  if (*out == NULL) return berth__fail_nomem(err, "the name of a file");
  snprintf(*out, size, "%.*s%s", (int)(n - m), name, wanted);
  return BERTH_OK;
}

/* Opens and reads another part. */
static berth_status gguf_split_open(berth_context *ctx, const char *path, const gguf_split *from, uint64_t number,
                                    berth__gguf **out, berth_error *err) {
  berth__mapping file;
  char *name;
  gguf_split is;
  *out = NULL;
  BERTH__TRY(gguf_split_name(ctx, path, from, number, &name, err));
  berth_status status = berth__file_map_beside(ctx, path, name, &file, err);
  if (status != BERTH_OK)
    berth__fail_within(err, status, "part %llu of %llu of the model", (unsigned long long)number + 1,
                       (unsigned long long)from->count);
  if (status == BERTH_OK) status = berth__gguf_create(ctx, &file, out, err);
  if (status == BERTH_OK) {
    status = berth__gguf_read(*out, err);
    if (status == BERTH_OK) status = gguf_split_read(*out, &is, err);
    if (status == BERTH_OK && (is.number != number || is.count != from->count))
      status = berth__fail(err, BERTH_MALFORMED, "its keys say that it is part %llu of %llu",
                           (unsigned long long)is.number + 1, (unsigned long long)is.count);
    if (status != BERTH_OK) berth__fail_within(err, status, "%s", name);
  }
  berth__free(ctx, name);
  if (status == BERTH_OK) return BERTH_OK;
  berth__gguf_destroy(*out);
  *out = NULL;
  return status;
}

/* Moves the tensors and the file of a part to the model. */
static berth_status gguf_split_add(berth__gguf *g, berth__gguf *part, berth_error *err) {
  uint32_t other;
  berth__gguf_tensor *tensors = berth__alloc_array(g->ctx, g->n_tensors + part->n_tensors, sizeof *tensors);
  if (tensors == NULL) return berth__fail_nomem(err, "the tensors of a model");
  if (g->n_tensors > 0) memcpy(tensors, g->tensors, g->n_tensors * sizeof *tensors);
  berth__free(g->ctx, g->tensors);
  g->tensors = tensors;
  const uint32_t number = g->n_files;
  g->files[g->n_files++] = part->files[0];
  part->n_files = 0;
  for (size_t i = 0; i < part->n_tensors; i++) {
    berth__gguf_tensor *t = &part->tensors[i];
    if (berth__map_get(&g->tensor_index, t->name, &other))
      return berth__fail(err, BERTH_MALFORMED, "the tensor \"%s\" is in two parts of the model", t->name);
    BERTH__TRY(berth__map_put(g->ctx, &g->tensor_index, t->name, (uint32_t)g->n_tensors, err));
    t->part = number;
    g->tensors[g->n_tensors++] = *t;
    t->name = NULL; /* owned by the model now */
  }
  return BERTH_OK;
}

/* g is the first part. */
static berth_status gguf_split_gather(berth__gguf *g, const char *path, const gguf_split *first, berth_error *err) {
  berth__mapping *files = berth__alloc_array(g->ctx, (size_t)first->count, sizeof *files);
  if (files == NULL) return berth__fail_nomem(err, "the files of a model");
  files[0] = g->files[0];
  berth__free(g->ctx, g->files);
  g->files = files;
  for (uint64_t i = 1; i < first->count; i++) {
    berth__gguf *part;
    BERTH__TRY(gguf_split_open(g->ctx, path, first, i, &part, err));
    const berth_status status = gguf_split_add(g, part, err);
    berth__gguf_destroy(part);
    BERTH__TRY(status);
  }
  if (g->n_tensors == first->tensors) return BERTH_OK;
  return berth__fail(err, BERTH_MALFORMED, "the model is said to have %llu tensors, but its %llu parts have %zu",
                     (unsigned long long)first->tensors, (unsigned long long)first->count, g->n_tensors);
}

berth_status berth__gguf_join(berth__gguf **g, const char *path, berth_error *err) {
  gguf_split is;
  berth__gguf *first;
  BERTH__TRY(gguf_split_read(*g, &is, err));
  if (is.count == 1) return BERTH_OK;
  if (is.number == 0) {
    char *name; /* refuses a name that does not lead to the others before looking for any of them */
    BERTH__TRY(gguf_split_name((*g)->ctx, path, &is, 0, &name, err));
    berth__free((*g)->ctx, name);
    return gguf_split_gather(*g, path, &is, err);
  }
  BERTH__TRY(gguf_split_open((*g)->ctx, path, &is, 0, &first, err));
  berth__gguf_destroy(*g);
  *g = first;
  gguf_split of_first;
  BERTH__TRY(gguf_split_read(first, &of_first, err));
  of_first.number = is.number; /* names are derived from that of the file that was opened */
  return gguf_split_gather(first, path, &of_first, err);
}
