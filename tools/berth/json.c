#include "json.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"
#include "utf8.h"

static void tool_json_put(json *out, const char *text, size_t size) {
  if (out->failed) return;
  if (size > out->capacity - out->size) {
    size_t capacity = out->capacity ? out->capacity : 256;
    while (capacity - out->size < size) capacity *= 2;
    char *grown = realloc(out->text, capacity);
    if (!grown) {
      out->failed = true;
      return;
    }
    out->text = grown;
    out->capacity = capacity;
  }
  memcpy(out->text + out->size, text, size);
  out->size += size;
}

static void put_text(json *out, const char *text) { tool_json_put(out, text, strlen(text)); }

static void put_escaped(json *out, unsigned char c) {
  char escape[8];
  if (c == '"' || c == '\\') {
    snprintf(escape, sizeof(escape), "\\%c", c);
  } else if (c == '\n') {
    snprintf(escape, sizeof(escape), "\\n");
  } else if (c == '\t') {
    snprintf(escape, sizeof(escape), "\\t");
  } else {
    snprintf(escape, sizeof(escape), "\\u%04x", c);
  }
  put_text(out, escape);
}

/* The text is terminated, but may contain zeros. */
static void put_quoted(json *out, const char *text, size_t size) {
  const char *end = text + size;
  tool_json_put(out, "\"", 1);
  while (text < end) {
    unsigned char c = (unsigned char)*text;
    size_t length = utf8_length(text);
    if (length == 0) {
      put_text(out, "\\ufffd");
      text++;
    } else if (c < 0x20 || c == '"' || c == '\\' || c == 0x7f) {
      put_escaped(out, c);
      text++;
    } else {
      tool_json_put(out, text, length);
      text += length;
    }
  }
  tool_json_put(out, "\"", 1);
}

static void begin_item(json *out, const char *key) {
  if (out->comma) tool_json_put(out, ",", 1);
  out->comma = true;
  if (!key) return;
  put_quoted(out, key, strlen(key));
  tool_json_put(out, ":", 1);
}

static void open_group(json *out, const char *key, const char *bracket) {
  begin_item(out, key);
  tool_json_put(out, bracket, 1);
  out->comma = false;
}

static void close_group(json *out, const char *bracket) {
  tool_json_put(out, bracket, 1);
  out->comma = true;
}

void json_open_object(json *out, const char *key) { open_group(out, key, "{"); }
void json_close_object(json *out) { close_group(out, "}"); }
void json_open_array(json *out, const char *key) { open_group(out, key, "["); }
void json_close_array(json *out) { close_group(out, "]"); }

static void put_item(json *out, const char *key, const char *text) {
  begin_item(out, key);
  put_text(out, text);
}

void json_string_of(json *out, const char *key, const char *value, size_t size) {
  begin_item(out, key);
  put_quoted(out, value, size);
}

void json_string(json *out, const char *key, const char *value) {
  if (value)
    json_string_of(out, key, value, strlen(value));
  else
    json_null(out, key);
}

void json_uint(json *out, const char *key, uint64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "%" PRIu64, value);
  put_item(out, key, text);
}

void json_int(json *out, const char *key, int64_t value) {
  char text[32];
  snprintf(text, sizeof(text), "%" PRId64, value);
  put_item(out, key, text);
}

void json_double(json *out, const char *key, double value) {
  char text[40];
  if (!isfinite(value)) {
    json_null(out, key);
    return;
  }
  snprintf(text, sizeof(text), "%.9g", value);
  put_item(out, key, text);
}

void json_bool(json *out, const char *key, bool value) { put_item(out, key, value ? "true" : "false"); }
void json_null(json *out, const char *key) { put_item(out, key, "null"); }

void json_ints(json *out, const char *key, uint32_t n, const int64_t *values) {
  json_open_array(out, key);
  for (uint32_t i = 0; i < n; i++) json_int(out, NULL, values[i]);
  json_close_array(out);
}

void json_raw(json *out, const char *text, size_t size) { tool_json_put(out, text, size); }
void json_end(json *out) { tool_json_put(out, "", 1); }

int json_print(json *out) {
  bool failed = out->failed;
  if (!failed) {
    fwrite(out->text, 1, out->size, stdout);
    fputc('\n', stdout);
  }
  json_free(out);
  return failed ? cli_no_memory() : CLI_OK;
}

void json_free(json *out) {
  free(out->text);
  *out = (json)JSON_INIT;
}
