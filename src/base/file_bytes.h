/* Reads bytes of an open file. */
#ifndef BERTH_BASE_FILE_BYTES_H
#define BERTH_BASE_FILE_BYTES_H

#include <stdint.h>

typedef struct berth__file_bytes {
  int fd;
  uint64_t offset, size;
} berth__file_bytes;

#endif
