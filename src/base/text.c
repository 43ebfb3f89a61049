#include "base/text.h"

#include <stdarg.h>
#include <stdio.h>

#define PIECE 4096 /* bytes that are buffered before they go to the write function */

void berth__text_init(berth__text *text, berth_context *ctx, berth_write_fn write, void *user) {
  *text = (berth__text){.ctx = ctx, .write = write, .user = user, .status = BERTH_OK};
}

static void flush(berth__text *text) {
  if (text->status != BERTH_OK || text->size == 0) return;
  text->status = text->write(text->user, text->data, text->size);
  text->size = 0;
  text->data[0] = '\0';
}

/* Room for `more` bytes and the terminator. */
static int base_text_make_room(berth__text *text, size_t more) {
  if (text->status != BERTH_OK) return 0;
  if (more > SIZE_MAX - text->size - 1) {
    text->status = BERTH_NOMEM;
  } else {
    text->status = BERTH__RESERVE(text->ctx, text->data, text->capacity, text->size + more + 1, NULL);
  }
  return text->status == BERTH_OK;
}

static void added(berth__text *text, size_t size) {
  text->size += size;
  text->data[text->size] = '\0';
  if (text->write != NULL && text->size >= PIECE) flush(text);
}

void berth__text_add(berth__text *text, const char *bytes, size_t size) {
  if (!base_text_make_room(text, size)) return;
  if (size != 0) memcpy(text->data + text->size, bytes, size);
  added(text, size);
}

void berth__text_printf(berth__text *text, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int length = vsnprintf(NULL, 0, fmt, args);
  va_end(args);
  if (length < 0 && text->status == BERTH_OK) text->status = BERTH_INTERNAL;
  if (length < 0 || !base_text_make_room(text, (size_t)length)) return;
  va_start(args, fmt);
  vsnprintf(text->data + text->size, (size_t)length + 1, fmt, args);
  va_end(args);
  added(text, (size_t)length);
}

static void escape_byte(berth__text *text, unsigned char c) {
  if (c == '"') {
    berth__text_add(text, "\\\"", 2);
  } else if (c == '\\') {
    berth__text_add(text, "\\\\", 2);
  } else if (c == '\n') {
    berth__text_add(text, "\\n", 2);
  } else {
    berth__text_printf(text, "\\x%02x", c);
  }
}

void berth__text_escape(berth__text *text, const char *string) {
  berth__text_add(text, "\"", 1);
  const char *plain = string; /* start of the bytes that have not been added yet */
  for (const char *c = string; *c != '\0'; c++) {
    unsigned char byte = (unsigned char)*c;
    if (byte >= 0x20 && byte != 0x7f && byte != '"' && byte != '\\') continue; /* UTF-8 is kept */
    berth__text_add(text, plain, (size_t)(c - plain));
    escape_byte(text, byte);
    plain = c + 1;
  }
  berth__text_add(text, plain, strlen(plain));
  berth__text_add(text, "\"", 1);
}

berth_status berth__text_finish(berth__text *text, berth_error *err) {
  if (text->write != NULL) {
    flush(text);
  } else {
    berth__text_add(text, "", 0); /* makes data a string even if nothing was added */
  }
  berth_status status = text->status;
  if (text->write != NULL || status != BERTH_OK) berth__text_free(text);
  if (status == BERTH_OK) return BERTH_OK;
  if (status == BERTH_NOMEM) return berth__fail_nomem(err, "text");
  if (text->write != NULL) return berth__fail(err, status, "writing stopped: %s", berth_status_text(status));
  return berth__fail(err, status, "text could not be formatted");
}

void berth__text_free(berth__text *text) {
  berth__free(text->ctx, text->data);
  text->data = NULL;
  text->size = text->capacity = 0;
}
