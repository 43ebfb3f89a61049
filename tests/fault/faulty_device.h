/* A device whose calls fail when they are told to: the table of another one, with a count in front of every call that
 * can fail. What a failed call was to write is full of 0xcd afterwards, as of a device that stopped half-way. */
#ifndef BERTH_TESTS_FAULTY_DEVICE_H
#define BERTH_TESTS_FAULTY_DEVICE_H

#include "device/device.h"

typedef struct faulty_counts {
  uint64_t calls;                    /* that can fail, so far */
  uint64_t failed;                   /* calls that were made to fail */
  uint64_t fail_at;                  /* 1: the next call fails, 2: the one after it, ...; 0: none. Counts down to 0 */
  int64_t blocks, programs, engines; /* alive */
} faulty_counts;

extern faulty_counts faulty;
/* The table over `real`: one at a time, until the next call. It can grow blocks where they lie only when it is told so,
 * as otherwise it has less to do that may fail. */
const berth__device *faulty_over(const berth__device *real, bool grows);

#endif
