/* Validated UTF-8. */
#ifndef BERTH_IMPORT_UTF8_H
#define BERTH_IMPORT_UTF8_H

#include <stddef.h>

/* Bytes of the character at text, 0 if it is invalid: no overlong forms, surrogates or values above 10FFFF. size >
 * 0. */
static inline size_t berth__utf8_length(const char *text, size_t size) {
  const unsigned char *s = (const unsigned char *)text;
  unsigned char c = s[0];
  size_t n = c < 0x80 ? 1 : c >= 0xC2 && c <= 0xDF ? 2 : c >= 0xE0 && c <= 0xEF ? 3 : c >= 0xF0 && c <= 0xF4 ? 4 : 0;
  if (n == 0 || n > size) return 0;
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xC0) != 0x80) return 0;
  }
  if ((c == 0xE0 && s[1] < 0xA0) || (c == 0xED && s[1] > 0x9F)) return 0;
  if ((c == 0xF0 && s[1] < 0x90) || (c == 0xF4 && s[1] > 0x8F)) return 0;
  return n;
}

#endif
