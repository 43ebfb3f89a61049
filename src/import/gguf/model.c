/* A GGUF model and its files. */
#include "base/storage.h"
#include "import/gguf/reader.h"

berth_status berth__gguf_create(berth_context *ctx, berth__mapping *file, berth__gguf **out, berth_error *err) {
  berth__gguf *g = berth__alloc_zero(ctx, sizeof *g);
  berth__mapping *files = berth__alloc_array(ctx, 1, sizeof *files);
  *out = NULL;
  if (g == NULL || files == NULL) {
    berth__free(ctx, g);
    berth__free(ctx, files);
    berth__file_unmap(file);
    return berth__fail_nomem(err, "a model");
  }
  files[0] = *file;
  *file = (berth__mapping){0};
  g->ctx = ctx;
  atomic_init(&g->holders, 1);
  g->files = files;
  g->n_files = 1;
  *out = g;
  return BERTH_OK;
}

berth_status berth__gguf_open(berth_context *ctx, const char *path, berth__mapping *file, berth__gguf **out,
                              berth_error *err) {
  berth__gguf *g;
  *out = NULL;
  BERTH__TRY(berth__gguf_create(ctx, file, &g, err));
  berth_status status = berth__gguf_read(g, err);
  if (status == BERTH_OK) status = berth__gguf_join(&g, path, err);
  berth_error shrunk;
  if (berth__gguf_check(g, &shrunk) != BERTH_OK) { /* the file may have shrunk while it was read */
    if (err != NULL) *err = shrunk;
    status = shrunk.status;
  }
  if (status != BERTH_OK) {
    berth__gguf_destroy(g);
    return status;
  }
  *out = g;
  return BERTH_OK;
}

berth__gguf *berth__gguf_retain(berth__gguf *g) {
  atomic_fetch_add_explicit(&g->holders, 1, memory_order_relaxed);
  return g;
}

void berth__gguf_destroy(berth__gguf *g) {
  if (g == NULL || atomic_fetch_sub_explicit(&g->holders, 1, memory_order_acq_rel) > 1) return;
  berth_context *ctx = g->ctx;
  for (size_t i = 0; i < g->n_keys; i++) {
    berth__free(ctx, g->keys[i].name);
    berth__free(ctx, (void *)(uintptr_t)g->keys[i].array.marks);
  }
  for (size_t i = 0; i < g->n_tensors; i++) berth__free(ctx, g->tensors[i].name);
  for (size_t i = 0; i < g->n_copies; i++) berth__free(ctx, g->copies[i]);
  for (uint32_t i = 0; i < g->n_files; i++) berth__file_unmap(&g->files[i]);
  berth__map_clear(ctx, &g->key_index);
  berth__map_clear(ctx, &g->tensor_index);
  berth__free(ctx, g->keys);
  berth__free(ctx, g->tensors);
  berth__free(ctx, g->copies);
  berth__free(ctx, g->files);
  berth__free(ctx, g);
}

/* Systems map pages around the one that is touched, and newer ones whole large pages of their cache. Those are released
 * too, even if they hold a neighbour's bytes, which are read again from the file if needed. */
#define PAGES_AROUND ((size_t)2 << 20)

void berth__gguf_rest(const berth__gguf *g, const void *data, size_t size) {
  for (uint32_t i = 0; i < g->n_files; i++) {
    const uintptr_t at = (uintptr_t)data, start = (uintptr_t)g->files[i].data;
    if (at < start || at - start >= g->files[i].size) continue;
    const size_t offset = at - start, before = offset % PAGES_AROUND;
    const size_t rest = g->files[i].size - offset, after = rest - (size < rest ? size : rest);
    berth__file_release(&g->files[i], offset - before,
                        before + (rest - after) + (after < PAGES_AROUND ? after : PAGES_AROUND));
  }
}

bool berth__gguf_file_of(const berth__gguf *g, const void *data, uint64_t size, berth__file_bytes *out) {
  for (uint32_t i = 0; i < g->n_files; i++) {
    const berth__mapping *file = &g->files[i];
    const uintptr_t at = (uintptr_t)data, start = (uintptr_t)file->data;
    if (file->base == NULL || file->fd < 0 || at < start || at - start >= file->size) continue;
    *out = (berth__file_bytes){file->fd, at - start, size};
    return size <= file->size - (at - start);
  }
  return false;
}

void berth__gguf_rest_header(const berth__gguf *g) {
  uint64_t end = g->files[0].size;
  for (size_t i = 0; i < g->n_tensors; i++)
    if (g->tensors[i].part == 0 && g->tensors[i].begin < end) end = g->tensors[i].begin;
  berth__file_release_start(&g->files[0], (size_t)end);
}

berth_status berth__gguf_check(const berth__gguf *g, berth_error *err) {
  for (uint32_t i = 0; i < g->n_files; i++) BERTH__TRY(berth__file_check(&g->files[i], err));
  return BERTH_OK;
}

/* ---- Tensors ---- */

const berth__gguf_tensor *berth__gguf_tensor_find(const berth__gguf *g, const char *name) {
  uint32_t at;
  return berth__map_get(&g->tensor_index, name, &at) ? &g->tensors[at] : NULL;
}

berth_status berth__gguf_tensor_data(berth__gguf *g, const berth__gguf_tensor *tensor, const void **out,
                                     berth_error *err) {
  char type[32];
  *out = tensor->data;
  if (tensor->type == BERTH_TYPE_NONE)
    return berth__fail(err, BERTH_UNSUPPORTED, "tensor \"%s\" is of type %s, which berth does not support",
                       tensor->name, berth__gguf_type_name(tensor->ggml_type, type));
  if ((uintptr_t)tensor->data % berth__type_align(tensor->type) == 0) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(g->ctx, g->copies, g->copies_capacity, g->n_copies + 1, err));
  void *copy = berth__alloc_u64(g->ctx, tensor->size);
  if (copy == NULL) return berth__fail_nomem(err, "a tensor that the file does not align");
  if (tensor->size > 0) memcpy(copy, tensor->data, (size_t)tensor->size);
  g->copies[g->n_copies++] = copy;
  *out = copy;
  return BERTH_OK;
}
