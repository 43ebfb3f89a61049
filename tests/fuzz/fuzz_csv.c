/* Any bytes as a CSV of buffers: refused with a line number, or a table that is written and read back the same. */
#include "../../tools/berth/csv.c"

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

static void check_round_trip(const csv_table *table) {
  text_buffer buffer = {NULL, 0, 0};
  csv_table again;
  uint64_t *offsets = malloc((table->n + 1) * sizeof(*offsets));
  FUZZ_CHECK(offsets != NULL);
  for (size_t i = 0; i < table->n; i++) offsets[i] = i * 64;
  FUZZ_CHECK(csv_write(table, offsets, collect, &buffer) == BERTH_OK);
  FUZZ_CHECK(csv_parse(buffer.text, buffer.size, "again", &again, NULL) == BERTH_OK);
  FUZZ_CHECK(again.n == table->n);
  for (size_t i = 0; i < table->n; i++) {
    const berth_pack_buffer *a = &table->buffers[i], *b = &again.buffers[i];
    FUZZ_CHECK(strcmp(table->ids[i], again.ids[i]) == 0);
    FUZZ_CHECK(a->lower == b->lower && a->upper == b->upper && a->size == b->size && a->lower <= a->upper);
    FUZZ_CHECK(a->align == b->align && b->offset == offsets[i]);
  }
  free(offsets);
  free(buffer.text);
  csv_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  csv_table table;
  berth_error err = {BERTH_OK, ""};
  berth_status status = csv_parse((const char *)data, size, "input", &table, &err);
  FUZZ_CHECK(status == BERTH_OK || status == BERTH_MALFORMED || status == BERTH_UNSUPPORTED);
  FUZZ_CHECK(status == BERTH_OK || (err.status == status && strncmp(err.message, "input line ", 11) == 0));
  if (status == BERTH_OK) check_round_trip(&table);
  csv_free(&table);
  return 0;
}
