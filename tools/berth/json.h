/* A small JSON writer: builds the text in memory, so a command that fails prints nothing. */
#ifndef BERTH_TOOLS_JSON_H
#define BERTH_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json {
  char *text;
  size_t size, capacity;
  bool failed; /* out of memory: the text is incomplete */
  bool comma;  /* the next item must be preceded by a comma */
} json;
#define JSON_INIT \
  { NULL, 0, 0, false, false }

/* key: NULL inside an array and at the top level. Invalid UTF-8 is replaced. */
void json_open_object(json *out, const char *key);
void json_close_object(json *out);
void json_open_array(json *out, const char *key);
void json_close_array(json *out);
void json_string(json *out, const char *key, const char *value);                 /* NULL: null */
void json_string_of(json *out, const char *key, const char *value, size_t size); /* terminated; may contain zeros */
void json_uint(json *out, const char *key, uint64_t value);
void json_int(json *out, const char *key, int64_t value);
void json_double(json *out, const char *key, double value); /* null if it is not finite, which JSON cannot express */
void json_bool(json *out, const char *key, bool value);
void json_null(json *out, const char *key);
void json_ints(json *out, const char *key, uint32_t n, const int64_t *values); /* as an array */
void json_raw(json *out, const char *text, size_t size);                       /* inserted verbatim */
void json_end(json *out); /* terminates the text, for readers of the buffer */

int json_print(json *out); /* prints to stdout with a newline; returns an exit code and frees */
void json_free(json *out);

#endif
