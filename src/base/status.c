#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>

#ifdef __clang_analyzer__
#undef berth__fail
#undef berth__fail_within
#undef berth__fail_nomem
#endif

#define MESSAGE_SIZE sizeof(((berth_error *)0)->message)

const char *berth_status_name(berth_status status) {
  switch (status) {
#define STATUS_NAME(name, value, text) \
  case BERTH_##name: return #name;
    BERTH_STATUS_MAP(STATUS_NAME)
#undef STATUS_NAME
  }
  return "UNKNOWN";
}

const char *berth_status_text(berth_status status) {
  switch (status) {
#define STATUS_TEXT(name, value, text) \
  case BERTH_##name: return text;
    BERTH_STATUS_MAP(STATUS_TEXT)
#undef STATUS_TEXT
  }
  return "unknown status";
}

const char *berth_version(void) { return BERTH_VERSION; }

/* For text that was cut to fit: removes a partial UTF-8 character at the end, and marks the cut. */
static void mark_cut(char *text, size_t size) {
  size_t end = size - sizeof "...";
  while (end > 0 && ((unsigned char)text[end] & 0xc0) == 0x80) end--;
  memcpy(text + end, "...", sizeof "...");
}

/* Messages repeat names from untrusted files, and end up on terminals. */
static void hide_control(char *text) {
  for (; *text != '\0'; text++)
    if ((unsigned char)*text < 0x20 || *text == 0x7f) *text = '?';
}

/* Formats into a text of `size` bytes. */
static void format(char *text, size_t size, const char *fmt, va_list args) {
  int length = vsnprintf(text, size, fmt, args);
  if (length < 0) text[0] = '\0';
  if (length >= (int)size) mark_cut(text, size);
  hide_control(text);
}

berth_status berth__fail(berth_error *err, berth_status status, const char *fmt, ...) {
  if (err == NULL) return status;
  char message[MESSAGE_SIZE]; /* the arguments may point into *err */
  va_list args;
  va_start(args, fmt);
  format(message, sizeof message, fmt, args);
  va_end(args);
  err->status = status;
  memcpy(err->message, message, strlen(message) + 1);
  return status;
}

berth_status berth__fail_within(berth_error *err, berth_status status, const char *fmt, ...) {
  if (err == NULL) return status;
  char prefix[MESSAGE_SIZE];
  va_list args;
  va_start(args, fmt);
  format(prefix, sizeof prefix, fmt, args);
  va_end(args);
  berth__fail(err, err->status, "%s: %s", prefix, err->message);
  return status;
}

berth_status berth__fail_nomem(berth_error *err, const char *what) {
  return berth__fail(err, BERTH_NOMEM, "not enough memory for %s", what);
}
