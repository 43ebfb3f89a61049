/* A small JSON writer: builds the text in memory, so that a command that fails prints nothing. */
#ifndef BERTH_TOOLS_JSON_H
#define BERTH_TOOLS_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct json {
  char *text;
  size_t size, capacity;
  bool failed; /* out of memory: the text is not whole */
  bool comma;  /* the next item needs one before it */
} json;
#define JSON_INIT \
  { NULL, 0, 0, false, false }

/* key: NULL inside an array and at the top. Text that is no valid UTF-8 gets replacement characters. */
void json_open_object(json *out, const char *key);
void json_close_object(json *out);
void json_open_array(json *out, const char *key);
void json_close_array(json *out);
void json_string(json *out, const char *key, const char *value);                 /* NULL: null */
void json_string_of(json *out, const char *key, const char *value, size_t size); /* terminated; may have zeros in it */
void json_uint(json *out, const char *key, uint64_t value);
void json_int(json *out, const char *key, int64_t value);
void json_double(json *out, const char *key, double value); /* null where it is not finite: JSON has no such number */
void json_bool(json *out, const char *key, bool value);
void json_null(json *out, const char *key);
void json_ints(json *out, const char *key, uint32_t n, const int64_t *values); /* an array of them */
void json_raw(json *out, const char *text, size_t size);                       /* as it is, between nothing */
void json_end(json *out); /* terminates the text, for those who read it there */

int json_print(json *out); /* to stdout with a newline; returns an exit code and frees */
void json_free(json *out);

#endif
