#include "csv.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "cli.h"

static const char *const column_names[CSV_N_COLUMNS] = {"id", "lower", "upper", "size", "offset", "alignment"};

typedef struct field {
  const char *text;
  size_t size;
} field;

typedef struct parser {
  const char *at, *end; /* the remaining data */
  const char *name;
  size_t line;
  csv_table *table;
  size_t *lines; /* line number of every row, for messages about ids */
  size_t capacity;
  char *pool_end;
  berth_error *err;
} parser;

#if defined(__GNUC__)
__attribute__((format(printf, 4, 5)))
#endif
static berth_status
tool_csv_fail_at(const parser *p, size_t line, berth_status status, const char *format, ...) {
  if (!p->err) return status;
  p->err->status = status;
  int n = snprintf(p->err->message, sizeof(p->err->message), "%.200s line %zu: ", p->name, line);
  va_list args;
  va_start(args, format);
  vsnprintf(p->err->message + n, sizeof(p->err->message) - (size_t)n, format, args);
  va_end(args);
  return status;
}

#define FAIL(p, ...) tool_csv_fail_at(p, (p)->line, BERTH_MALFORMED, __VA_ARGS__)

static berth_status no_memory(const parser *p) {
  return tool_csv_fail_at(p, p->line, BERTH_NOMEM, "out of host memory for the buffers");
}

/* The next line that is not blank, without its line ending; false at the end of the data. */
static bool tool_csv_next_line(parser *p, field *line) {
  while (p->at < p->end) {
    const char *newline = memchr(p->at, '\n', (size_t)(p->end - p->at));
    const char *stop = newline ? newline : p->end;
    *line = (field){p->at, (size_t)(stop - p->at)};
    p->at = newline ? newline + 1 : p->end;
    p->line++;
    if (line->size && line->text[line->size - 1] == '\r') line->size--;
    for (size_t i = 0; i < line->size; i++) {
      if (line->text[i] != ' ' && line->text[i] != '\t') return true;
    }
  }
  return false;
}

/* Length of the field at the start of the line; a quoted one may contain commas, and "" for a quote. */
static bool field_length(const field *line, size_t *length) {
  size_t i = 0;
  if (line->size && line->text[0] == '"') {
    for (i = 1; i < line->size; i++) {
      if (line->text[i] != '"') continue;
      if (i + 1 < line->size && line->text[i + 1] == '"') {
        i++;
      } else {
        break;
      }
    }
    if (i >= line->size) return false;
  }
  while (i < line->size && line->text[i] != ',') i++;
  *length = i;
  return true;
}

static berth_status tool_csv_split(const parser *p, field line, field *fields, size_t most, size_t *n) {
  *n = 0;
  for (;;) {
    size_t length;
    if (*n == most) return FAIL(p, "more than %zu fields", most);
    if (!field_length(&line, &length)) return FAIL(p, "a quote is not closed");
    fields[(*n)++] = (field){line.text, length};
    if (length == line.size) return BERTH_OK;
    line.text += length + 1;
    line.size -= length + 1;
  }
}

static field tool_csv_trim(field f) {
  while (f.size && (f.text[0] == ' ' || f.text[0] == '\t')) f.text++, f.size--;
  while (f.size && (f.text[f.size - 1] == ' ' || f.text[f.size - 1] == '\t')) f.size--;
  return f;
}

static int shown_size(field f) { return f.size > 60 ? 60 : (int)f.size; }

static berth_status read_column_name(parser *p, field f) {
  csv_table *table = p->table;
  f = tool_csv_trim(f);
  for (int c = 0; c < CSV_N_COLUMNS; c++) {
    if (strlen(column_names[c]) != f.size || memcmp(column_names[c], f.text, f.size) != 0) continue;
    for (size_t i = 0; i < table->n_columns; i++) {
      if (table->columns[i] == (csv_column)c) return FAIL(p, "the column '%s' is there twice", column_names[c]);
    }
    table->columns[table->n_columns++] = (csv_column)c;
    return BERTH_OK;
  }
  return tool_csv_fail_at(
      p, p->line, BERTH_UNSUPPORTED,
      "the column '%.*s' is not supported; the header names id, lower, upper, size and, where wanted, offset "
      "and alignment",
      shown_size(f), f.text);
}

static bool has_column(const csv_table *table, csv_column column) {
  for (size_t i = 0; i < table->n_columns; i++) {
    if (table->columns[i] == column) return true;
  }
  return false;
}

static berth_status tool_csv_read_header(parser *p) {
  field line, fields[16];
  size_t n;
  bool is_empty = p->at == p->end;
  if (!tool_csv_next_line(p, &line)) {
    p->line = 1;
    return FAIL(p, "there is no header%s; it names id, lower, upper and size", is_empty ? ", the file is empty" : "");
  }
  berth_status status = tool_csv_split(p, line, fields, sizeof(fields) / sizeof(fields[0]), &n);
  for (size_t i = 0; i < n && status == BERTH_OK; i++) status = read_column_name(p, fields[i]);
  if (status != BERTH_OK) return status;
  for (int c = CSV_ID; c <= CSV_SIZE; c++) {
    if (!has_column(p->table, (csv_column)c)) return FAIL(p, "the header has no column '%s'", column_names[c]);
  }
  return BERTH_OK;
}

static berth_status read_unsigned(const parser *p, csv_column column, field f, uint64_t *out) {
  uint64_t number = 0;
  f = tool_csv_trim(f);
  bool valid = f.size > 0;
  for (size_t i = 0; i < f.size && valid; i++) {
    uint64_t digit = (uint64_t)(unsigned char)f.text[i] - '0';
    valid = digit <= 9 && number <= (UINT64_MAX - 1 - digit) / 10;
    number = number * 10 + digit;
  }
  if (!valid) {
    return FAIL(p, "%s is '%.*s', which is not a whole number of at most 64 bits", column_names[column], shown_size(f),
                f.text);
  }
  *out = number;
  return BERTH_OK;
}

static berth_status read_signed(const parser *p, csv_column column, field f, int64_t *out) {
  uint64_t magnitude = 0;
  f = tool_csv_trim(f);
  field digits = f;
  bool negative = f.size && f.text[0] == '-';
  if (negative) digits.text++, digits.size--;
  berth_status status = read_unsigned(p, column, digits, &magnitude);
  if (status != BERTH_OK) return status;
  if (magnitude > (uint64_t)INT64_MAX) return FAIL(p, "%s is beyond 63 bits", column_names[column]);
  *out = negative ? -(int64_t)magnitude : (int64_t)magnitude;
  return BERTH_OK;
}

static berth_status read_id(parser *p, field f) {
  if (f.size == 0) return FAIL(p, "the id is empty");
  if (memchr(f.text, '\0', f.size)) return FAIL(p, "the id has a zero byte in it");
  p->table->ids[p->table->n] = p->pool_end;
  memcpy(p->pool_end, f.text, f.size);
  p->pool_end += f.size;
  *p->pool_end++ = '\0';
  return BERTH_OK;
}

static berth_status read_cell(parser *p, csv_column column, field f) {
  berth_pack_buffer *buffer = &p->table->buffers[p->table->n];
  switch (column) {
    case CSV_ID: return read_id(p, f);
    case CSV_LOWER: return read_signed(p, column, f, &buffer->lower);
    case CSV_UPPER: return read_signed(p, column, f, &buffer->upper);
    case CSV_SIZE: return read_unsigned(p, column, f, &buffer->size);
    case CSV_OFFSET: return tool_csv_trim(f).size ? read_unsigned(p, column, f, &buffer->offset) : BERTH_OK;
    case CSV_ALIGNMENT: return tool_csv_trim(f).size ? read_unsigned(p, column, f, &buffer->align) : BERTH_OK;
    case CSV_N_COLUMNS: break;
  }
  return BERTH_OK;
}

static bool grow_to(void **array, size_t capacity, size_t element) {
  void *grown = capacity <= SIZE_MAX / element ? realloc(*array, capacity * element) : NULL;
  if (grown) *array = grown;
  return grown != NULL;
}

static bool reserve_row(parser *p) {
  csv_table *table = p->table;
  if (table->n < p->capacity) return true;
  size_t capacity = p->capacity ? p->capacity * 2 : 64;
  void *buffers = table->buffers, *ids = (void *)table->ids, *lines = p->lines;
  bool done = grow_to(&buffers, capacity, sizeof(*table->buffers)) && grow_to(&ids, capacity, sizeof(*table->ids)) &&
              grow_to(&lines, capacity, sizeof(*p->lines));
  table->buffers = buffers;
  table->ids = ids;
  p->lines = lines;
  if (done) p->capacity = capacity;
  return done;
}

static berth_status read_row(parser *p, field line) {
  csv_table *table = p->table;
  field fields[CSV_N_COLUMNS];
  size_t n;
  if (!reserve_row(p)) return no_memory(p);
  berth_pack_buffer *buffer = &table->buffers[table->n];
  *buffer = (berth_pack_buffer){.align = 1, .offset = BERTH_PACK_FREE};
  berth_status status = tool_csv_split(p, line, fields, table->n_columns, &n);
  if (status != BERTH_OK) return status;
  if (n < table->n_columns) return FAIL(p, "%zu field%s where the header has %zu", n, cli_plural(n), table->n_columns);
  for (size_t i = 0; i < n && status == BERTH_OK; i++) status = read_cell(p, table->columns[i], fields[i]);
  if (status != BERTH_OK) return status;
  if (buffer->lower > buffer->upper) {
    return FAIL(p, "lower is %" PRId64 ", after upper, which is %" PRId64, buffer->lower, buffer->upper);
  }
  p->lines[table->n++] = p->line;
  return BERTH_OK;
}

static uint64_t hash_id(const char *id) {
  uint64_t hash = 0xcbf29ce484222325u;
  for (; *id; id++) hash = (hash ^ (unsigned char)*id) * 0x100000001b3u;
  return hash ^ hash >> 29;
}

static berth_status check_ids(const parser *p) {
  const csv_table *table = p->table;
  size_t slots = 16;
  if (!p->lines) return BERTH_OK; /* no rows */
  while (slots / 2 < table->n) slots *= 2;
  size_t *rows = calloc(slots, sizeof(*rows)); /* row + 1; 0: free */
  if (!rows) return no_memory(p);
  berth_status status = BERTH_OK;
  for (size_t row = 0; row < table->n && status == BERTH_OK; row++) {
    size_t slot = (size_t)hash_id(table->ids[row]) & (slots - 1);
    while (rows[slot] && strcmp(table->ids[rows[slot] - 1], table->ids[row]) != 0) slot = (slot + 1) & (slots - 1);
    if (rows[slot]) {
      status = tool_csv_fail_at(p, p->lines[row], BERTH_MALFORMED, "the id '%.100s' stands in line %zu already",
                                table->ids[row], p->lines[rows[slot] - 1]);
    }
    rows[slot] = row + 1;
  }
  free(rows);
  return status;
}

berth_status csv_parse(const char *data, size_t size, const char *name, csv_table *out, berth_error *err) {
  static const char mark[] = "\xef\xbb\xbf"; /* byte order mark, which some editors write */
  parser p = {.at = data, .end = data + size, .name = name, .table = out, .err = err};
  *out = (csv_table){0};
  if (size >= 3 && memcmp(data, mark, 3) == 0) p.at += 3;
  out->id_pool = p.pool_end = size < SIZE_MAX ? malloc(size + 1) : NULL;
  if (!out->id_pool) return no_memory(&p);
  berth_status status = tool_csv_read_header(&p);
  field line;
  while (status == BERTH_OK && tool_csv_next_line(&p, &line)) status = read_row(&p, line);
  if (status == BERTH_OK) status = check_ids(&p);
  free(p.lines);
  if (status != BERTH_OK) csv_free(out);
  return status;
}

void csv_free(csv_table *table) {
  free(table->buffers);
  free((void *)table->ids);
  free(table->id_pool);
  *table = (csv_table){0};
}

static berth_status write_number(berth_write_fn write, void *user, const char *sign, uint64_t number) {
  char text[32];
  int n = snprintf(text, sizeof(text), "%s%" PRIu64, sign, number);
  return write(user, text, (size_t)n);
}

static berth_status write_signed(berth_write_fn write, void *user, int64_t number) {
  return number < 0 ? write_number(write, user, "-", 0 - (uint64_t)number)
                    : write_number(write, user, "", (uint64_t)number);
}

static berth_status write_cell(const csv_table *table, size_t row, csv_column column, uint64_t offset,
                               berth_write_fn write, void *user) {
  const berth_pack_buffer *buffer = &table->buffers[row];
  switch (column) {
    case CSV_ID: return write(user, table->ids[row], strlen(table->ids[row]));
    case CSV_LOWER: return write_signed(write, user, buffer->lower);
    case CSV_UPPER: return write_signed(write, user, buffer->upper);
    case CSV_SIZE: return write_number(write, user, "", buffer->size);
    case CSV_OFFSET: return write_number(write, user, "", offset);
    case CSV_ALIGNMENT: return write_number(write, user, "", buffer->align);
    case CSV_N_COLUMNS: break;
  }
  return BERTH_INTERNAL;
}

berth_status csv_write(const csv_table *table, const uint64_t *offsets, berth_write_fn write, void *user) {
  csv_column columns[CSV_N_COLUMNS];
  size_t n = table->n_columns;
  berth_status status = BERTH_OK;
  memcpy(columns, table->columns, sizeof(columns));
  if (!has_column(table, CSV_OFFSET)) columns[n++] = CSV_OFFSET;
  for (size_t i = 0; i < n && status == BERTH_OK; i++) {
    if (i) status = write(user, ",", 1);
    if (status == BERTH_OK) status = write(user, column_names[columns[i]], strlen(column_names[columns[i]]));
  }
  if (status == BERTH_OK) status = write(user, "\n", 1);
  for (size_t row = 0; row < table->n && status == BERTH_OK; row++) {
    for (size_t i = 0; i < n && status == BERTH_OK; i++) {
      if (i) status = write(user, ",", 1);
      if (status == BERTH_OK) status = write_cell(table, row, columns[i], offsets[row], write, user);
    }
    if (status == BERTH_OK) status = write(user, "\n", 1);
  }
  return status;
}
