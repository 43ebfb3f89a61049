/* What a model with large weights costs: the arena and little more, since weights leave the file's pages as they enter
 * the arena. */
#include <stdio.h>

#include "support.h"

enum {
  ROWS = 64,
  COLUMNS = 1 << 18, /* 64 MiB of f32 */
  START = 4096       /* of the weights in their file */
};

/* ---- Writing protobuf ---- */

typedef struct message {
  uint8_t bytes[1024];
  size_t size;
} message;

static void put_number(message *m, uint64_t value) {
  for (; value >= 0x80; value >>= 7) m->bytes[m->size++] = (uint8_t)(value | 0x80);
  m->bytes[m->size++] = (uint8_t)value;
}

static void put_int(message *m, uint32_t field, uint64_t value) {
  put_number(m, field << 3);
  put_number(m, value);
}

static void put_bytes(message *m, uint32_t field, const void *bytes, size_t size) {
  put_number(m, field << 3 | 2);
  put_number(m, size);
  memcpy(m->bytes + m->size, bytes, size);
  m->size += size;
}

static void put_text(message *m, uint32_t field, const char *text) { put_bytes(m, field, text, strlen(text)); }
static void put_message(message *m, uint32_t field, const message *inner) {
  put_bytes(m, field, inner->bytes, inner->size);
}

static void put_pair(message *tensor, const char *key, const char *value) { /* external_data */
  message entry = {.size = 0};
  put_text(&entry, 1, key);
  put_text(&entry, 2, value);
  put_message(tensor, 13, &entry);
}

static message weights_in_a_file(void) {
  message tensor = {.size = 0};
  char length[32];
  snprintf(length, sizeof length, "%zu", (size_t)ROWS * COLUMNS * sizeof(float));
  put_int(&tensor, 1, ROWS);
  put_int(&tensor, 1, COLUMNS);
  put_int(&tensor, 2, 1); /* float32 */
  put_text(&tensor, 8, "w");
  put_pair(&tensor, "location", "weights.bin");
  put_pair(&tensor, "offset", "4096");
  put_pair(&tensor, "length", length);
  put_int(&tensor, 14, 1); /* external */
  return tensor;
}

static message value(const char *name, const uint64_t *extents, size_t rank) {
  message shape = {.size = 0}, tensor = {.size = 0}, type = {.size = 0}, out = {.size = 0};
  for (size_t i = 0; i < rank; i++) {
    message dim = {.size = 0};
    put_int(&dim, 1, extents[i]);
    put_message(&shape, 1, &dim);
  }
  put_int(&tensor, 1, 1);
  put_message(&tensor, 2, &shape);
  put_message(&type, 1, &tensor);
  put_text(&out, 1, name);
  put_message(&out, 2, &type);
  return out;
}

static message product_model(void) {
  message node = {.size = 0}, graph = {.size = 0}, opset = {.size = 0}, model = {.size = 0};
  const message x = value("x", (const uint64_t[]){1, ROWS}, 2), y = value("y", (const uint64_t[]){1, COLUMNS}, 2);
  const message w = weights_in_a_file();
  put_text(&node, 1, "x");
  put_text(&node, 1, "w");
  put_text(&node, 2, "y");
  put_text(&node, 4, "MatMul");
  put_message(&graph, 1, &node);
  put_text(&graph, 2, "product");
  put_message(&graph, 5, &w);
  put_message(&graph, 11, &x);
  put_message(&graph, 12, &y);
  put_int(&opset, 2, 13);
  put_int(&model, 1, 8);
  put_message(&model, 7, &graph);
  put_message(&model, 8, &opset);
  return model;
}

/* Zeros, with ones in the first and the last element. */
static void write_weights(const char *path) {
  const float one = 1;
  const size_t size = (size_t)ROWS * COLUMNS * sizeof one;
  FILE *file = fopen(path, "wb");
  assert_non_null(file);
  assert_int_equal(fseek(file, START, SEEK_SET), 0);
  assert_int_equal(fwrite(&one, sizeof one, 1, file), 1);
  assert_int_equal(fseek(file, (long)(START + size - sizeof one), SEEK_SET), 0);
  assert_int_equal(fwrite(&one, sizeof one, 1, file), 1);
  assert_int_equal(fclose(file), 0);
}

/* ---- The test ---- */

static uint64_t peak_memory(void) {
  char line[256];
  unsigned long long kib = 0;
  FILE *status = fopen("/proc/self/status", "r");
  while (status != NULL && kib == 0 && fgets(line, sizeof line, status) != NULL) sscanf(line, "VmHWM: %llu kB", &kib);
  if (status != NULL) fclose(status);
  return (uint64_t)kib * 1024;
}

static void weights_are_in_memory_once(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  float x[ROWS];
  const void *y;
  size_t size;
  write_weights(test_path("weights.bin"));
  const message model = product_model();
  test_write_file(test_path("product.onnx"), model.bytes, model.size);
  for (size_t i = 0; i < ROWS; i++) x[i] = (float)(i + 1);
  const uint64_t before = peak_memory();
  TEST_OK(berth_graph_load(ctx, test_path("product.onnx"), &graph, &err));
  TEST_OK(berth_session_create(graph, NULL, &session, &err));
  TEST_OK(berth_session_write(session, "x", x, sizeof x, &err));
  TEST_OK(berth_session_run(session, &err));
  TEST_OK(berth_session_output_data(session, 0, &y, &size, &err));
  const uint64_t used = peak_memory() - before;
  assert_int_equal(size, COLUMNS * sizeof(float));
  assert_true(((const float *)y)[0] == x[0]);
  assert_true(((const float *)y)[COLUMNS - 1] == x[ROWS - 1]);
  const uint64_t arena = berth_plan_arena_size(berth_session_plan(session));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
  if (TEST_IS_SANITIZED) TEST_SKIP("the sanitizers' own memory is counted too");
  if (before == 0) TEST_SKIP("this system does not say how much memory a process used");
  if (used > arena + arena / 5)
    fail_msg("%llu bytes were used for an arena of %llu", (unsigned long long)used, (unsigned long long)arena);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(weights_are_in_memory_once)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
