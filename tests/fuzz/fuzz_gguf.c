/* Any bytes as a GGUF file: refused, or every key and tensor readable and inside the file. */
#include <stdbool.h>

#include "fuzz/fuzz.h"
#include "import/format.h"
#include "import/gguf/gguf.h"

static const uint8_t *first, *last; /* of the file: [first, last) */

static void touch(const void *data, uint64_t size) {
  const uint8_t *bytes = data;
  unsigned sum = 0;
  FUZZ_CHECK(size == 0 || (bytes >= first && bytes <= last && size <= (uint64_t)(last - bytes)));
  for (uint64_t i = 0; i < size; i++) sum |= bytes[i];
  FUZZ_CHECK(sum <= 255);
}

static void touch_array(const berth__gguf_array *array, int depth) {
  touch(array->data, array->size);
  FUZZ_CHECK(array->count <= array->size);
  for (uint64_t i = 0; i < array->count && i < 40; i++) {
    if (array->kind == BERTH__GGUF_STRING) {
      const berth__gguf_string string = berth__gguf_array_string(array, array->count - 1 - i);
      touch(string.data, string.size);
    } else if (array->kind == BERTH__GGUF_ARRAY) {
      const berth__gguf_array inner = berth__gguf_array_array(array, i);
      FUZZ_CHECK(depth < 8);
      touch_array(&inner, depth + 1);
    } else {
      const double number = berth__gguf_array_f64(array, i);
      FUZZ_CHECK(!berth__gguf_array_is_whole(array) || number == number);
    }
  }
}

static void touch_key(const berth__gguf *g, const berth__gguf_key *key) {
  uint64_t whole;
  double number;
  FUZZ_CHECK(key->name[0] == '.' || berth__gguf_find(g, key->name) == key);
  if (key->kind == BERTH__GGUF_ARRAY) touch_array(&key->array, 0);
  if (key->kind == BERTH__GGUF_STRING) touch(key->text.data, key->text.size);
  if (berth__gguf_u64(g, key->name, &whole, NULL) == BERTH_OK)
    FUZZ_CHECK(berth__gguf_f64(g, key->name, &number, NULL) == BERTH_OK && number >= 0);
}

static void touch_tensors(berth__gguf *g) {
  for (size_t i = 0; i < g->n_tensors; i++) {
    const berth__gguf_tensor *t = &g->tensors[i];
    const void *data;
    touch(t->data, t->size);
    FUZZ_CHECK(berth__gguf_tensor_find(g, t->name) == t);
    const berth_status status = berth__gguf_tensor_data(g, t, &data, NULL);
    FUZZ_CHECK(status == (t->type != BERTH_TYPE_NONE ? BERTH_OK : BERTH_UNSUPPORTED));
  }
}

static void check_status(berth_status status, const berth_error *err) {
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED);
  FUZZ_CHECK(status == BERTH_OK || (err->status == status && err->message[0] != '\0'));
}

static void inspect(berth_context *ctx, const uint8_t *data, size_t size, bool is_readable) {
  const berth__mapping memory = {.data = data, .size = size};
  berth__summary *summary;
  berth_error err = {BERTH_OK, ""};
  FUZZ_CHECK(berth__summary_create(ctx, "gguf", &summary, &err) == BERTH_OK);
  const berth_status status = berth__gguf_inspect(summary, &memory, &err);
  check_status(status, &err);
  FUZZ_CHECK(status != BERTH_OK || is_readable);
  berth__summary_finish(summary);
  berth_model_info_destroy(&summary->info);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth__mapping memory = {.data = data, .size = size};
  berth__gguf *g;
  berth_graph *graph = NULL;
  berth_error err = {BERTH_OK, ""};
  first = data;
  last = data + size;
  const berth_status status = berth__gguf_open(ctx, NULL, &memory, &g, &err);
  FUZZ_CHECK((status == BERTH_OK) == (g != NULL));
  check_status(status, &err);
  for (size_t i = 0; g != NULL && i < g->n_keys; i++) touch_key(g, &g->keys[i]);
  if (g != NULL) touch_tensors(g);
  inspect(ctx, data, size, g != NULL);
  berth__gguf_destroy(g);
  if (berth__gguf_probe(data, size)) {
    check_status(berth_graph_from_memory(ctx, data, size, NULL, NULL, &graph, &err), &err);
    berth_graph_destroy(graph);
    berth_load_desc desc = BERTH_LOAD_DESC_INIT; /* the beginning of a larger file */
    desc.file_size = (uint64_t)size << 12;
    const berth_status begun = berth_graph_from_memory_with(ctx, data, size, NULL, NULL, &desc, &graph, &err);
    if (begun != BERTH_IO) check_status(begun, &err);
    berth_graph_destroy(graph);
  }
  berth_context_destroy(ctx);
  return 0;
}
