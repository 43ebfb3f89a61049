/* Growing text, and writing text through a caller's function. */
#ifndef BERTH_BASE_TEXT_H
#define BERTH_BASE_TEXT_H

#include "base/context.h"

/* Collects what is printed; the first failure sticks and is returned by berth__text_finish, so that printing code
 * needs no check at every line. With a write function, text goes out in pieces; without, it stays in data. */
typedef struct berth__text {
  berth_context *ctx;
  berth_write_fn write; /* may be NULL */
  void *user;
  char *data; /* terminated once anything was added */
  size_t size, capacity;
  berth_status status;
} berth__text;

void berth__text_init(berth__text *text, berth_context *ctx, berth_write_fn write, void *user);
void berth__text_add(berth__text *text, const char *bytes, size_t size);
void berth__text_printf(berth__text *text, const char *fmt, ...) BERTH__PRINTF(2, 3);
void berth__text_escape(berth__text *text, const char *string); /* "..." with \" \\ \n \xHH where needed */
/* Writes what is left and says how it went. With a write function the buffer is freed here; without, data is the
 * caller's to berth__free. */
berth_status berth__text_finish(berth__text *text, berth_error *err);
void berth__text_free(berth__text *text);

#endif
