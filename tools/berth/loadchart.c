#include "loadchart.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"
#include "csv.h"
#include "format.h"

enum {
  max_columns = 60,
  rows = 10,
  label_width = 11
};

typedef struct text_buffer {
  char *text;
  size_t size, capacity;
} text_buffer;

static berth_status tool_loadchart_append(void *user, const char *text, size_t size) {
  text_buffer *buffer = user;
  if (buffer->capacity - buffer->size < size) {
    size_t capacity = (buffer->size + size) * 2;
    char *grown = realloc(buffer->text, capacity);
    if (!grown) return BERTH_NOMEM;
    buffer->text = grown;
    buffer->capacity = capacity;
  }
  memcpy(buffer->text + buffer->size, text, size);
  buffer->size += size;
  return BERTH_OK;
}

/* The packed buffers, from the plan's own CSV, which includes scratch. */
static int read_buffers(const berth_plan *plan, csv_table *out) {
  text_buffer buffer = {NULL, 0, 0};
  berth_error err = {BERTH_OK, ""};
  berth_status status = berth_plan_report(plan, BERTH_REPORT_CSV, tool_loadchart_append, &buffer, &err);
  if (status == BERTH_OK) status = csv_parse(buffer.text ? buffer.text : "", buffer.size, "the plan's CSV", out, &err);
  free(buffer.text);
  return status == BERTH_OK ? CLI_OK : cli_report(&err);
}

static uint64_t tool_loadchart_clamp_step(int64_t step, uint64_t n_steps) {
  return step < 0 ? 0 : (uint64_t)step > n_steps ? n_steps : (uint64_t)step;
}

/* Weights and states live throughout, so they would only push everything else up. */
static bool tool_loadchart_is_weight(const berth_plan *plan, const berth_pack_buffer *buffer) {
  const berth_plan_info info = cli_plan_info(plan);
  return buffer->offset < info.weights_size + info.state_size;
}

/* load[s]: bytes alive in step s, as a running sum of births minus deaths. */
static uint64_t *load_per_step(const berth_plan *plan, const csv_table *table, uint64_t n_steps) {
  uint64_t *load = calloc((size_t)n_steps + 1, sizeof(*load));
  if (!load) return NULL;
  for (size_t i = 0; i < table->n; i++) {
    if (tool_loadchart_is_weight(plan, &table->buffers[i])) continue;
    load[tool_loadchart_clamp_step(table->buffers[i].lower, n_steps)] += table->buffers[i].size;
    load[tool_loadchart_clamp_step(table->buffers[i].upper, n_steps)] -= table->buffers[i].size;
  }
  for (uint64_t s = 1; s < n_steps; s++) load[s] += load[s - 1];
  return load;
}

/* The largest load of the steps in a column. */
static uint64_t column_load(const uint64_t *load, uint64_t n_steps, uint64_t column, uint64_t n_columns) {
  uint64_t first = column * n_steps / n_columns, last = (column + 1) * n_steps / n_columns;
  uint64_t most = load[first];
  for (uint64_t s = first + 1; s < last; s++) most = load[s] > most ? load[s] : most;
  return most;
}

static char cell(double filled) { return filled >= 0.75 ? '#' : filled >= 0.4 ? '=' : filled > 0 ? '.' : ' '; }

static void tool_loadchart_print_row(int row, const uint64_t *columns, uint64_t n_columns, uint64_t peak) {
  char label[FORMAT_SIZE] = "";
  if (row == rows - 1) format_short_bytes(peak, label);
  if (row == 0) snprintf(label, sizeof(label), "0");
  printf("%*s |", label_width, label);
  for (uint64_t c = 0; c < n_columns; c++) putchar(cell((double)columns[c] / (double)peak * rows - row));
  putchar('\n');
}

static void tool_loadchart_draw(const uint64_t *load, uint64_t n_steps) {
  uint64_t columns[max_columns];
  int room = format_width() - label_width - 4;
  uint64_t n_columns = room < max_columns ? (room > 8 ? (uint64_t)room : 8) : max_columns, peak = 0;
  if (n_steps < n_columns) n_columns -= n_columns % n_steps; /* steps of equal width */
  for (uint64_t c = 0; c < n_columns; c++) {
    columns[c] = column_load(load, n_steps, c, n_columns);
    if (columns[c] > peak) peak = columns[c];
  }
  if (peak == 0) return;
  printf("activations and scratch over time\n");
  for (int row = rows - 1; row >= 0; row--) tool_loadchart_print_row(row, columns, n_columns, peak);
  printf("%*s +", label_width, "");
  for (uint64_t c = 0; c < n_columns; c++) putchar('-');
  printf("\n%*s  step 0%*s%llu\n", label_width, "", (int)n_columns - 6, "", (unsigned long long)n_steps);
}

int loadchart_print(const berth_plan *plan) {
  csv_table table = {0};
  uint64_t n_steps = cli_plan_info(plan).n_steps;
  if (n_steps == 0) return CLI_OK;
  int code = read_buffers(plan, &table);
  if (code != CLI_OK) return code;
  uint64_t *load = load_per_step(plan, &table, n_steps);
  csv_free(&table);
  if (!load) return cli_no_memory();
  tool_loadchart_draw(load, n_steps);
  free(load);
  return CLI_OK;
}
