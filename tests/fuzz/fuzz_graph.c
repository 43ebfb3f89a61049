/* Any bytes as the text of a graph: refused with a reason, or a graph that is printed and read back equal. */
#include "fuzz/fuzz.h"

typedef struct text_buffer {
  char *text;
  size_t size, capacity;
} text_buffer;

static berth_status collect(void *user, const char *text, size_t size) {
  text_buffer *buffer = user;
  if (buffer->capacity - buffer->size < size) {
    buffer->capacity = (buffer->size + size) * 2;
    buffer->text = realloc(buffer->text, buffer->capacity);
    FUZZ_CHECK(buffer->text != NULL);
  }
  memcpy(buffer->text + buffer->size, text, size);
  buffer->size += size;
  return BERTH_OK;
}

static void check_round_trip(berth_context *ctx, const berth_graph *graph) {
  text_buffer first = {NULL, 0, 0}, second = {NULL, 0, 0};
  berth_graph *again;
  berth_error err = {BERTH_OK, ""};
  FUZZ_CHECK(berth_graph_print(graph, collect, &first, NULL) == BERTH_OK);
  if (berth_graph_parse(ctx, first.text, first.size, &again, &err) != BERTH_OK) {
    fprintf(stderr, "%s\n%.*s", err.message, (int)first.size, first.text);
    abort();
  }
  FUZZ_CHECK(berth_graph_equal(graph, again));
  FUZZ_CHECK(berth_graph_print(again, collect, &second, NULL) == BERTH_OK);
  FUZZ_CHECK(first.size == second.size && memcmp(first.text, second.text, first.size) == 0);
  free(first.text);
  free(second.text);
  berth_graph_destroy(again);
}

/* Binding every dimension to a small extent may fail, but only with a reason. */
static void check_bind(const berth_graph *graph) {
  berth_dim dims[4];
  berth_graph *bound;
  berth_error err = {BERTH_OK, ""};
  uint32_t n = berth_graph_n_dims(graph);
  if (n > 4) return;
  for (uint32_t i = 0; i < n; i++) dims[i] = (berth_dim){berth_graph_dim_name(graph, i), (int64_t)i + 2};
  berth_status status = berth_graph_bind(graph, dims, n, &bound, &err);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && err.message[0] != '\0'));
  if (status == BERTH_OK) FUZZ_CHECK(berth_graph_verify(bound, NULL) == BERTH_OK);
  berth_graph_destroy(bound);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  berth_context *ctx = fuzz_context();
  berth_graph *graph;
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_graph_parse(ctx, (const char *)data, size, &graph, &err);
  FUZZ_CHECK((status == BERTH_OK) == (graph != NULL));
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED || status == BERTH_INVALID);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && err.message[0] != '\0'));
  if (status == BERTH_OK) {
    check_round_trip(ctx, graph);
    check_bind(graph);
  }
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  return 0;
}
