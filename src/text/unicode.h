/* Code points: UTF-8, categories, lower case, base letters. Nothing depends on a locale. */
#ifndef BERTH_TEXT_UNICODE_H
#define BERTH_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum berth__unicode_category { /* the general category's first letter */
  BERTH__UNICODE_OTHER = 0,            /* C: control, format, surrogates, private use */
  BERTH__UNICODE_LETTER,
  BERTH__UNICODE_MARK,
  BERTH__UNICODE_NUMBER,
  BERTH__UNICODE_PUNCTUATION,
  BERTH__UNICODE_SYMBOL,
  BERTH__UNICODE_SEPARATOR,
  BERTH__UNICODE_UNASSIGNED
} berth__unicode_category;

#define BERTH__REPLACEMENT 0xFFFDu /* what bytes that are no UTF-8 are read as */
#define BERTH__UTF8_MAX 4

berth__unicode_category berth__unicode_category_of(uint32_t c);
bool berth__unicode_is_space(uint32_t c); /* the property White_Space */
bool berth__unicode_is_han(uint32_t c);   /* ideographs, by blocks */
uint32_t berth__unicode_lower(uint32_t c);
uint32_t berth__unicode_upper(uint32_t c);   /* what has this lower case; c where there is none */
uint32_t berth__unicode_base_of(uint32_t c); /* the first code point of the canonical decomposition */

/* Reads the code point at text; size is not 0. Returns the bytes that it takes. A byte that begins none is
 * BERTH__REPLACEMENT and takes 1. Overlong forms and surrogates are read as they are written, as llama.cpp does. */
size_t berth__utf8_read(const char *text, size_t size, uint32_t *c);
/* Like berth__utf8_read, but 0 where there is no code point. Values over U+10FFFF count as one here. */
size_t berth__utf8_length(const char *text, size_t size);
/* Bytes of a sequence that begins with this one, by its high bits alone; 1 for a byte that begins none. */
size_t berth__utf8_expected(char first);
size_t berth__utf8_write(uint32_t c, char out[BERTH__UTF8_MAX]); /* c is at most U+10FFFF */
/* How many bytes at the beginning of text are whole: the rest, at most 3 bytes, begins a character that bytes to come
 * may complete. Bytes that can never be part of a character count as whole. */
size_t berth__utf8_whole(const char *text, size_t size);
/* Bytes of the well-formed character at text (no overlong forms, no surrogates); 0: there is none. */
size_t berth__utf8_valid(const char *text, size_t size);

#endif
