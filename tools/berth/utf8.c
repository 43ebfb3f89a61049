#include "utf8.h"

#include <stdint.h>

size_t utf8_length(const char *text) {
  static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
  const unsigned char *byte = (const unsigned char *)text;
  size_t length = byte[0] < 0x80 ? 1 : byte[0] >> 5 == 6 ? 2 : byte[0] >> 4 == 14 ? 3 : byte[0] >> 3 == 30 ? 4 : 0;
  if (length < 2) return length;
  uint32_t code = byte[0] & (0x7fu >> length);
  for (size_t i = 1; i < length; i++) {
    if ((byte[i] & 0xc0) != 0x80) return 0;
    code = code << 6 | (byte[i] & 0x3f);
  }
  if (code < smallest[length] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return 0;
  return length;
}
