/* Growing text, and writing text through a caller's function. */
#ifndef BERTH_BASE_TEXT_H
#define BERTH_BASE_TEXT_H

#include "base/context.h"

/* Collects printed text. The first failure sticks and is returned by berth__text_finish, so printing code needs no
 * checks. With a write function, text is written in pieces; without, it stays in data. */
typedef struct berth__text {
  berth_context *ctx;
  berth_write_fn write; /* may be NULL */
  void *user;
  char *data; /* terminated once something has been added */
  size_t size, capacity;
  berth_status status;
} berth__text;

void berth__text_init(berth__text *text, berth_context *ctx, berth_write_fn write, void *user);
void berth__text_add(berth__text *text, const char *bytes, size_t size);
void berth__text_printf(berth__text *text, const char *fmt, ...) BERTH__PRINTF(2, 3);
void berth__text_escape(berth__text *text, const char *string); /* "..." with \" \\ \n \xHH where needed */
/* Flushes the rest and returns the status. With a write function the buffer is freed here; without, the caller frees
 * data with berth__free. */
berth_status berth__text_finish(berth__text *text, berth_error *err);
void berth__text_free(berth__text *text);

#endif
