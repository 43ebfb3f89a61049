/* Weights from a file of any format that has them: the handle, and what formats share. */
#include "import/weights.h"

#include "base/desc.h"
#include "base/storage.h"
#include "import/gguf/gguf.h"

/* ---- For formats ---- */

berth_status berth__weights_add(berth_weights *weights, char *name, berth__weight **out, berth_error *err) {
  uint32_t other;
  berth_status status = BERTH_OK;
  *out = NULL;
  if (weights->count == UINT32_MAX - 1) status = berth__fail(err, BERTH_UNSUPPORTED, "there are too many tensors");
  if (status == BERTH_OK)
    status = BERTH__RESERVE(weights->ctx, weights->tensors, weights->capacity, weights->count + 1, err);
  if (status != BERTH_OK) {
    berth__free(weights->ctx, name);
    return status;
  }
  berth__weight *tensor = &weights->tensors[weights->count];
  *tensor = (berth__weight){.name = name};
  const uint32_t index = (uint32_t)weights->count++; /* from here on the name is freed with the rest */
  if (berth__map_get(&weights->index, name, &other))
    return berth__fail(err, BERTH_MALFORMED, "the name \"%s\" appears twice", name);
  BERTH__TRY(berth__map_put(weights->ctx, &weights->index, name, index, err));
  *out = tensor;
  return BERTH_OK;
}

berth_status berth__weights_place(berth_weights *weights, const uint8_t *section, berth_error *err) {
  for (size_t i = 0; i < weights->count; i++) {
    berth__weight *t = &weights->tensors[i];
    size_t size = (size_t)(t->end - t->begin);
    t->data = section + t->begin;
    if ((uintptr_t)t->data % berth__type_align(t->type) == 0) continue;
    t->copy = berth__alloc(weights->ctx, size);
    if (!t->copy) return berth__fail_nomem(err, "a tensor that the file does not align");
    if (size > 0) memcpy(t->copy, t->data, size);
    t->data = t->copy;
  }
  return BERTH_OK;
}

static uint64_t count_elements(const berth__weight *t) {
  uint64_t n = 1;
  for (uint32_t i = 0; i < t->rank; i++) n *= (uint64_t)t->dim[i]; /* its bytes fit in 64 bits */
  return n;
}

berth_status berth__weights_inspect(berth__summary *summary, const berth__mapping *file, berth_error *err) {
  berth_weights *weights;
  BERTH__TRY(berth_weights_from_memory(summary->ctx, file->data, file->size, &weights, err));
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < weights->count && status == BERTH_OK; i++) {
    const berth__weight *t = &weights->tensors[i];
    status = berth__summary_param(summary, count_elements(t), (uint64_t)(t->end - t->begin), err);
  }
  summary->info.n_metadata = weights->n_metadata;
  berth_weights_destroy(weights);
  return status;
}

/* ---- The handle ---- */

static berth_status import_weights_create(berth_context *ctx, berth_weights **out, berth_error *err) {
  berth_weights *w = berth__alloc_zero(ctx, sizeof *w);
  if (!w) return berth__fail_nomem(err, "weights");
  w->ctx = ctx;
  atomic_init(&w->holders, 1);
  *out = w;
  return BERTH_OK;
}

static berth_status import_read_weights(berth_weights *w, const char *path, berth_error *err) {
  w->path = path;
  const berth_status status = berth__format_for_weights(&w->mapping, path)->read_weights(w, err);
  w->path = NULL;
  return status;
}

berth_status berth_weights_open(berth_context *ctx, const char *path, berth_weights **out, berth_error *err) {
  berth_weights *w = NULL;
  berth_status status;
  if (!out) return berth__fail(err, BERTH_INVALID, "berth_weights_open needs a pointer to store its result");
  *out = NULL;
  if (!ctx || !path) return berth__fail(err, BERTH_INVALID, "berth_weights_open needs a context and a path");
  BERTH__TRY(import_weights_create(ctx, &w, err));
  BERTH__TRY_OR_FAIL(berth__file_map(path, &w->mapping, err));
  w->mapped = true;
  status =
      w->mapping.size != 0 ? import_read_weights(w, path, err) : berth__fail(err, BERTH_MALFORMED, "the file is empty");
  if (status == BERTH_OK) status = berth__weights_check(w, err);
  if (status != BERTH_OK) {
    berth__fail_within(err, status, "%s", path);
    goto fail;
  }
  *out = w;
  return BERTH_OK;
fail:
  berth_weights_destroy(w);
  return status;
}

berth_status berth_weights_from_memory(berth_context *ctx, const void *data, size_t size, berth_weights **out,
                                       berth_error *err) {
  berth_weights *w = NULL;
  if (!out) return berth__fail(err, BERTH_INVALID, "berth_weights_from_memory needs a pointer to store its result");
  *out = NULL;
  if (!ctx || (!data && size > 0)) {
    return berth__fail(err, BERTH_INVALID, "berth_weights_from_memory needs a context and data");
  }
  BERTH__TRY(import_weights_create(ctx, &w, err));
  w->mapping.data = data;
  w->mapping.size = size;
  berth_status status = import_read_weights(w, NULL, err);
  if (status == BERTH_OK) {
    *out = w;
  } else {
    berth_weights_destroy(w);
  }
  return status;
}

void berth__weights_rest(const berth_weights *weights, const void *data, size_t size) {
  if (weights->mapped) berth__file_release_bytes(&weights->mapping, data, size);
  if (weights->gguf != NULL) berth__gguf_rest(weights->gguf, data, size);
}

berth_status berth__weights_check(const berth_weights *weights, berth_error *err) {
  if (weights->gguf != NULL) return berth__gguf_check(weights->gguf, err);
  return weights->mapped ? berth__file_check(&weights->mapping, err) : BERTH_OK;
}

berth_weights *berth__weights_retain(const berth_weights *weights) {
  berth_weights *w = (berth_weights *)(uintptr_t)weights;
  atomic_fetch_add_explicit(&w->holders, 1, memory_order_relaxed);
  return w;
}

void berth_weights_destroy(berth_weights *weights) {
  if (!weights || atomic_fetch_sub_explicit(&weights->holders, 1, memory_order_acq_rel) > 1) return;
  berth_context *ctx = weights->ctx;
  for (size_t i = 0; i < weights->count; i++) {
    berth__free(ctx, weights->tensors[i].name);
    berth__free(ctx, weights->tensors[i].copy);
  }
  berth__free(ctx, weights->tensors);
  berth__map_clear(ctx, &weights->index);
  berth__gguf_destroy(weights->gguf);
  if (weights->mapped) berth__file_unmap(&weights->mapping);
  berth__free(ctx, weights);
}

uint32_t berth_weights_count(const berth_weights *weights) { return weights ? (uint32_t)weights->count : 0; }

berth_status berth_weights_at(const berth_weights *weights, uint32_t index, berth_weight_info *out, berth_error *err) {
  berth_weight_info info = BERTH_WEIGHT_INFO_INIT;
  if (!weights) return berth__fail(err, BERTH_INVALID, "berth_weights_at needs weights");
  if (index >= weights->count) {
    return berth__fail(err, BERTH_INVALID, "there is no tensor %u; the file has %zu", index, weights->count);
  }
  BERTH__TRY(berth__weights_check(weights, err)); /* callers who ask for bytes will read them */
  const berth__weight *t = &weights->tensors[index];
  info.name = t->name;
  info.type = t->type;
  info.rank = t->rank;
  memcpy(info.dim, t->dim, sizeof info.dim);
  info.data = t->data;
  info.size = (uint64_t)(t->end - t->begin);
  return BERTH__RESULT_WRITE(out, &info, "berth_weight_info", err);
}

uint32_t berth_weights_find(const berth_weights *weights, const char *name) {
  uint32_t index;
  return weights && name && berth__map_get(&weights->index, name, &index) ? index : UINT32_MAX;
}
