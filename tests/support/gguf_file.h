/* GGUF files for tests, written as a line of words:
 *
 *   GGUF         these four bytes
 *   b7 h7 w7 q7  a number of 1, 2, 4 or 8 bytes (-1 and 0x1F will do too)
 * f1.5 d1.5    a float of 4 or 8 bytes
 *   'text'       a string: its length in 8 bytes, then its characters
 * "text"       only the characters; in both, \xHH is a byte
 *   pad32        zeros up to a multiple of 32
 * z24 c24      24 zeros; 24 bytes counting up from 0
 *
 * so that GGUF w3 q0 q1 'a' w4 w7 is a file of version 3 with no tensors and one key, a = u32 7. */
#ifndef BERTH_TESTS_GGUF_FILE_H
#define BERTH_TESTS_GGUF_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct gguf_file {
  uint8_t *bytes; /* exactly as long as the file, so that the sanitizer detects reads past its end */
  size_t size;
} gguf_file;

gguf_file gguf_file_make(const char *words); /* fails the test if it is invalid */
void gguf_file_free(gguf_file *file);
void gguf_file_write(const char *path, const char *words);

#define GGUF_HEAD(tensors, keys) "GGUF w3 q" #tensors " q" #keys " "

#endif
