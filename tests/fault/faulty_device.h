/* A device whose calls fail on demand: the table of another one, with a counter before every call that can fail. The
 * output of a failed call is filled with 0xcd, as if a device had stopped half-way. */
#ifndef BERTH_TESTS_FAULTY_DEVICE_H
#define BERTH_TESTS_FAULTY_DEVICE_H

#include "device/device.h"

typedef struct faulty_counts {
  uint64_t calls;                    /* calls that can fail, so far */
  uint64_t failed;                   /* calls that were made to fail */
  uint64_t fail_at;                  /* 1: the next call fails, 2: the one after it, ...; 0: none. Counts down to 0 */
  int64_t blocks, programs, engines; /* live ones */
} faulty_counts;

extern faulty_counts faulty;
/* The table over `real`: one at a time, until the next call. It can grow blocks in place only if told so, since
 * otherwise fewer calls could fail. */
const berth__device *faulty_over(const berth__device *real, bool grows);

#endif
