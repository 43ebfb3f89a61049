/* Formatting for people: sizes, shapes, summaries, tables, colours. */
#ifndef BERTH_TOOLS_FORMAT_H
#define BERTH_TOOLS_FORMAT_H

#include <stdbool.h>
#include <stdio.h>

#include "berth/berth.h"
#include "elements.h"

enum {
  FORMAT_SIZE = 160
}; /* enough for any of these */

const char *format_count(uint64_t number, char out[FORMAT_SIZE]);          /* 1,234,567 */
const char *format_bytes(uint64_t bytes, char out[FORMAT_SIZE]);           /* 1,234,567 bytes (1.2 MiB) */
const char *format_short_bytes(uint64_t bytes, char out[FORMAT_SIZE]);     /* 1.2 MiB */
const char *format_shape(const berth_shape *shape, char out[FORMAT_SIZE]); /* [batch,1,8,8] */
const char *format_extents(uint32_t rank, const int64_t *extents, char out[FORMAT_SIZE]);
const char *format_summary(const element_summary *summary, char out[FORMAT_SIZE]); /* min .. max .. mean .. */

/* Prints the memory of a plan in a few lines on stdout. */
void format_memory(const berth_plan_info *info);

/* Escape sequences if stdout is a terminal that supports them; otherwise empty strings. */
typedef struct format_colours {
  const char *bold, *good, *bad, *dim, *end;
} format_colours;
format_colours format_stdout_colours(void);
int format_width(void); /* columns of the terminal; 80 if it is not one */

#endif
