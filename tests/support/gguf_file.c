#include "gguf_file.h"

#include <stdbool.h>
#include <stdlib.h>

#include "support.h"

typedef struct maker {
  const char *at;
  uint8_t *bytes;
  size_t size, capacity;
} maker;

static void maker_add(maker *m, const void *data, size_t size) {
  if (m->size + size > m->capacity) {
    m->capacity = 2 * (m->size + size);
    m->bytes = realloc(m->bytes, m->capacity);
    assert_non_null(m->bytes);
  }
  if (size > 0) memcpy(m->bytes + m->size, data, size);
  m->size += size;
}

static void maker_byte(maker *m, unsigned byte) {
  const uint8_t value = (uint8_t)byte;
  maker_add(m, &value, 1);
}

static void maker_number(maker *m, uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) maker_byte(m, (unsigned)(value >> (8 * i)) & 0xFFu);
}

/* Text up to the closing quote. */
static void maker_text(maker *m, bool has_length) {
  const char quote = *m->at++;
  const size_t length_at = m->size;
  if (has_length) maker_number(m, 0, 8);
  const size_t first = m->size;
  while (*m->at != quote) {
    assert_int_not_equal(*m->at, '\0');
    if (m->at[0] == '\\' && m->at[1] == 'x') {
      const char digits[3] = {m->at[2], m->at[3], '\0'};
      maker_byte(m, (unsigned)strtoul(digits, NULL, 16));
      m->at += 4;
    } else {
      maker_byte(m, (unsigned char)*m->at++);
    }
  }
  m->at++;
  const uint64_t length = m->size - first;
  for (size_t i = 0; has_length && i < 8; i++) m->bytes[length_at + i] = (uint8_t)(length >> (8 * i));
}

/* The digits after the letters of a word. */
static uint64_t maker_digits(maker *m, size_t letters) {
  char *end;
  m->at += letters;
  const uint64_t value = *m->at == '-' ? (uint64_t)strtoll(m->at, &end, 0) : strtoull(m->at, &end, 0);
  assert_ptr_not_equal(end, m->at);
  m->at = end;
  return value;
}

static void maker_float(maker *m, bool is_wide) {
  char *end;
  const double wide = strtod(++m->at, &end);
  const float single = (float)wide;
  m->at = end;
  maker_add(m, is_wide ? (const void *)&wide : (const void *)&single, is_wide ? 8 : 4);
}

static void maker_word(maker *m) {
  switch (*m->at) {
    case 'G':
      maker_add(m, m->at, 4);
      m->at += 4;
      break;
    case 'b': maker_number(m, maker_digits(m, 1), 1); break;
    case 'h': maker_number(m, maker_digits(m, 1), 2); break;
    case 'w': maker_number(m, maker_digits(m, 1), 4); break;
    case 'q': maker_number(m, maker_digits(m, 1), 8); break;
    case 'f': maker_float(m, false); break;
    case 'd': maker_float(m, true); break;
    case '\'': maker_text(m, true); break;
    case '"': maker_text(m, false); break;
    case 'z':
      for (uint64_t n = maker_digits(m, 1); n > 0; n--) maker_byte(m, 0);
      break;
    case 'c':
      for (uint64_t n = maker_digits(m, 1), i = 0; i < n; i++) maker_byte(m, (unsigned)i & 0xFFu);
      break;
    case 'p':
      for (const uint64_t n = maker_digits(m, 3); m->size % n != 0;) maker_byte(m, 0);
      break;
    default: fail_msg("no word begins like this: %s", m->at);
  }
}

gguf_file gguf_file_make(const char *words) {
  maker m = {.at = words};
  while (*m.at != '\0') {
    if (*m.at == ' ')
      m.at++;
    else
      maker_word(&m);
  }
  gguf_file file = {.bytes = malloc(m.size > 0 ? m.size : 1), .size = m.size};
  assert_non_null(file.bytes);
  if (m.size > 0) memcpy(file.bytes, m.bytes, m.size);
  free(m.bytes);
  return file;
}

void gguf_file_free(gguf_file *file) { free(file->bytes); }

void gguf_file_write(const char *path, const char *words) {
  gguf_file file = gguf_file_make(words);
  test_write_file(path, file.bytes, file.size);
  gguf_file_free(&file);
}
