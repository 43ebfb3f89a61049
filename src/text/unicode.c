#include "text/unicode.h"

#include "text/unicode_tables.h"

#define UNICODE_COUNT(table) (sizeof(table) / sizeof(table)[0])
#define UNICODE_LAST 0x10FFFFu

/* Index of the last entry that is at most the key; the first entry always is. */
static size_t unicode_search(const uint32_t *table, size_t count, uint32_t key) {
  size_t low = 0, high = count;
  while (high - low > 1) {
    const size_t middle = low + (high - low) / 2;
    if (table[middle] <= key) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

berth__unicode_category berth__unicode_category_of(uint32_t c) {
  if (c > UNICODE_LAST) return BERTH__UNICODE_UNASSIGNED;
  const size_t i = unicode_search(unicode_categories, UNICODE_COUNT(unicode_categories), c << 3 | 7);
  return (berth__unicode_category)(unicode_categories[i] & 7);
}

bool berth__unicode_is_space(uint32_t c) {
  if (c < 0x80) return c == ' ' || (c >= 0x09 && c <= 0x0D);
  return c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 ||
         c == 0x202F || c == 0x205F || c == 0x3000;
}

bool berth__unicode_is_han(uint32_t c) {
  static const uint32_t blocks[][2] = {{0x3400, 0x4DBF},   {0x4E00, 0x9FFF},   {0xF900, 0xFAFF},
                                       {0x20000, 0x2A6DF}, {0x2A700, 0x2EBEF}, {0x2F800, 0x2FA1F}};
  for (size_t i = 0; i < UNICODE_COUNT(blocks); i++) {
    if (c >= blocks[i][0] && c <= blocks[i][1]) return true;
  }
  return false;
}

uint32_t berth__unicode_lower(uint32_t c) {
  if (c < 0x80) return c >= 'A' && c <= 'Z' ? c + 32 : c;
  size_t low = 0, high = UNICODE_COUNT(unicode_lower) / 4;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    const int32_t *run = unicode_lower + 4 * middle;
    if (c < (uint32_t)run[0]) {
      high = middle;
    } else if (c > (uint32_t)run[1]) {
      low = middle + 1;
    } else {
      return (c - (uint32_t)run[0]) % (uint32_t)run[2] == 0 ? (uint32_t)((int32_t)c + run[3]) : c;
    }
  }
  return c;
}

uint32_t berth__unicode_upper(uint32_t c) {
  if (c < 0x80) return c >= 'a' && c <= 'z' ? c - 32 : c;
  for (size_t i = 0; i < UNICODE_COUNT(unicode_lower); i += 4) {
    const int32_t *run = unicode_lower + i, upper = (int32_t)c - run[3];
    if (upper >= run[0] && upper <= run[1] && (upper - run[0]) % run[2] == 0) return (uint32_t)upper;
  }
  return c;
}

uint32_t berth__unicode_base_of(uint32_t c) {
  if (c < unicode_composed[0]) return c;
  if (c >= 0xAC00 && c <= 0xD7A3) return 0x1100 + (c - 0xAC00) / 588; /* Hangul: the leading consonant */
  const size_t i = unicode_search(unicode_composed, UNICODE_COUNT(unicode_composed), c);
  return unicode_composed[i] == c ? unicode_base[i] : c;
}

size_t berth__utf8_expected(char first) {
  const uint8_t high = (uint8_t)first >> 4;
  return high < 12 ? 1 : high < 14 ? 2 : high == 14 ? 3 : 4;
}

/* The length and value of the sequence at text, by its bit patterns only; 0: there is none. */
static size_t utf8_decode(const char *text, size_t size, uint32_t *c) {
  const uint8_t first = (uint8_t)text[0];
  if (first < 0x80) {
    *c = first;
    return 1;
  }
  if (first < 0xC0 || first >= 0xF8) return 0;
  const size_t n = berth__utf8_expected(text[0]);
  if (n > size) return 0;
  uint32_t value = first & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if (((uint8_t)text[i] & 0xC0) != 0x80) return 0;
    value = value << 6 | ((uint8_t)text[i] & 0x3F);
  }
  *c = value;
  return n;
}

size_t berth__utf8_length(const char *text, size_t size) {
  uint32_t c;
  return utf8_decode(text, size, &c);
}

size_t berth__utf8_read(const char *text, size_t size, uint32_t *c) {
  const size_t n = utf8_decode(text, size, c);
  if (n != 0 && *c <= UNICODE_LAST) return n;
  *c = BERTH__REPLACEMENT;
  return 1;
}

size_t berth__utf8_write(uint32_t c, char out[BERTH__UTF8_MAX]) {
  if (c < 0x80) {
    out[0] = (char)c;
    return 1;
  }
  const size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
  for (size_t i = n - 1; i > 0; i--, c >>= 6) out[i] = (char)(0x80 | (c & 0x3F));
  out[0] = (char)(0xF00u >> n | c); /* 0xC0, 0xE0 or 0xF0 */
  return n;
}

size_t berth__utf8_valid(const char *text, size_t size) {
  static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
  uint32_t c = 0;
  const size_t n = utf8_decode(text, size, &c);
  if (n == 0 || c < least[n] || c > UNICODE_LAST || (c >= 0xD800 && c <= 0xDFFF)) return 0;
  return n;
}

/* Whether these bytes, which are not a character, can begin one. The second byte rules out overlong forms, surrogates
 * and values that are too large. */
static bool utf8_begins(const char *text, size_t size) {
  static const char fill[2][3] = {{(char)0x80, (char)0x80, (char)0x80}, {(char)0xBF, (char)0xBF, (char)0xBF}};
  const size_t n = berth__utf8_expected(text[0]);
  if (n <= size) return false;
  for (int i = 0; i < 2; i++) { /* the smallest and the largest character with these bytes */
    char whole[BERTH__UTF8_MAX] = {0};
    for (size_t k = 0; k < n; k++) whole[k] = k < size ? text[k] : fill[i][k - 1];
    if (berth__utf8_valid(whole, n) != 0) return true;
  }
  return false;
}

size_t berth__utf8_whole(const char *text, size_t size) {
  for (size_t back = 1; back <= 3 && back <= size; back++) {
    const uint8_t byte = (uint8_t)text[size - back];
    if (byte < 0x80) return size;
    if (byte >= 0xC0) return utf8_begins(text + size - back, back) ? size - back : size;
  }
  return size;
}
