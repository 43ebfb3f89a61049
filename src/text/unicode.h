/* Code points: UTF-8, categories, lower case, base letters. Nothing depends on a locale. */
#ifndef BERTH_TEXT_UNICODE_H
#define BERTH_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum berth__unicode_category { /* first letter of the general category */
  BERTH__UNICODE_OTHER = 0,            /* C: control, format, surrogates, private use */
  BERTH__UNICODE_LETTER,
  BERTH__UNICODE_MARK,
  BERTH__UNICODE_NUMBER,
  BERTH__UNICODE_PUNCTUATION,
  BERTH__UNICODE_SYMBOL,
  BERTH__UNICODE_SEPARATOR,
  BERTH__UNICODE_UNASSIGNED
} berth__unicode_category;

#define BERTH__REPLACEMENT 0xFFFDu /* replaces invalid UTF-8 */
#define BERTH__UTF8_MAX 4

berth__unicode_category berth__unicode_category_of(uint32_t c);
bool berth__unicode_is_space(uint32_t c); /* the property White_Space */
bool berth__unicode_is_han(uint32_t c);   /* ideographs, by blocks */
uint32_t berth__unicode_lower(uint32_t c);
uint32_t berth__unicode_upper(uint32_t c);   /* c itself if there is none */
uint32_t berth__unicode_base_of(uint32_t c); /* the first code point of the canonical decomposition */

/* Reads the code point at text; size is not 0. Returns the bytes that it takes. A byte that begins none is read as
 * BERTH__REPLACEMENT and takes 1. Overlong forms and surrogates are accepted, as in llama.cpp. */
size_t berth__utf8_read(const char *text, size_t size, uint32_t *c);
/* Like berth__utf8_read, but 0 if there is no code point. Values above U+10FFFF count as one here. */
size_t berth__utf8_length(const char *text, size_t size);
/* Bytes of a sequence that begins with this byte, by its high bits only; 1 for a byte that begins none. */
size_t berth__utf8_expected(char first);
size_t berth__utf8_write(uint32_t c, char out[BERTH__UTF8_MAX]); /* c is at most U+10FFFF */
/* How many leading bytes of text are complete: the rest, at most 3 bytes, begins a character that later bytes may
 * complete. Bytes that can never be part of a character count as complete. */
size_t berth__utf8_whole(const char *text, size_t size);
/* Bytes of the well-formed character at text (no overlong forms, no surrogates); 0: there is none. */
size_t berth__utf8_valid(const char *text, size_t size);

#endif
