/* The tensors of a GGUF file as weights. */
#include "import/weights.h"
#include "import/gguf/gguf.h"

bool berth__gguf_probe(const uint8_t *data, size_t size) { return size >= 4 && memcmp(data, "GGUF", 4) == 0; }

static berth_status gguf_add_weight(berth_weights *w, const berth__gguf_tensor *tensor, berth_error *err) {
  berth__weight *weight;
  const void *data;
  char *name = berth__strdup(w->ctx, tensor->name);
  if (name == NULL) return berth__fail_nomem(err, "a tensor's name");
  BERTH__TRY(berth__weights_add(w, name, &weight, err));
  BERTH__TRY(berth__gguf_tensor_data(w->gguf, tensor, &data, err));
  weight->type = tensor->type;
  weight->rank = tensor->rank;
  memcpy(weight->dim, tensor->dim, sizeof tensor->dim);
  weight->begin = (int64_t)tensor->begin;
  weight->end = (int64_t)(tensor->begin + tensor->size);
  weight->data = data;
  return BERTH_OK;
}

berth_status berth__gguf_read_weights(berth_weights *w, berth_error *err) {
  BERTH__TRY(berth__gguf_open(w->ctx, w->path, &w->mapping, &w->gguf, err));
  for (size_t i = 0; i < w->gguf->n_tensors; i++) BERTH__TRY(gguf_add_weight(w, &w->gguf->tensors[i], err));
  w->n_metadata = w->gguf->n_keys;
  return BERTH_OK;
}
