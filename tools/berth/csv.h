/* Buffers as CSV, in MiniMalloc's format.
 *
 *   id,lower,upper,size[,offset][,alignment]     a header with these names, in any order
 *   b1,0,3,4,,64                                 alive over [lower, upper)
 *
 * Ids are any text without line breaks and are kept unchanged; one with a comma is in double quotes (which are part of
 * the id). A buffer with an offset must be placed there; an empty cell leaves it free. Lines end with LF or CRLF; blank
 * lines are skipped. */
#ifndef BERTH_TOOLS_CSV_H
#define BERTH_TOOLS_CSV_H

#include "berth/berth.h"

typedef enum csv_column {
  CSV_ID,
  CSV_LOWER,
  CSV_UPPER,
  CSV_SIZE,
  CSV_OFFSET,
  CSV_ALIGNMENT,
  CSV_N_COLUMNS
} csv_column;

typedef struct csv_table {
  size_t n;
  berth_pack_buffer *buffers;
  const char **ids; /* pointers into id_pool */
  char *id_pool;
  csv_column columns[CSV_N_COLUMNS]; /* in the file's order */
  size_t n_columns;
} csv_table;

/* `name` identifies the data in messages. On failure *out is empty. Free with csv_free either way. */
berth_status csv_parse(const char *data, size_t size, const char *name, csv_table *out, berth_error *err);
void csv_free(csv_table *table);
/* The same columns with these offsets; an offset column is appended if there is none. */
berth_status csv_write(const csv_table *table, const uint64_t *offsets, berth_write_fn write, void *user);

#endif
