/* Draws without a seed: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"),
 * which computes the n-th words from n, so that threads and vectors share the work. */
#ifndef BERTH_OPS_DRAWS_H
#define BERTH_OPS_DRAWS_H

#include "ops/op.h"

#define BERTH__DRAWS_ROUNDS 10

/* Four words of random bits in place of a counter of four words. */
static inline void berth__draws_words(uint32_t counter[4], uint32_t key_low, uint32_t key_high) {
  uint32_t a = counter[0], b = counter[1], c = counter[2], d = counter[3];
  for (int round = 0; round < BERTH__DRAWS_ROUNDS; round++) {
    const uint64_t first = (uint64_t)a * UINT32_C(0xd2511f53), second = (uint64_t)c * UINT32_C(0xcd9e8d57);
    const uint32_t next_a = (uint32_t)(second >> 32) ^ b ^ key_low, next_c = (uint32_t)(first >> 32) ^ d ^ key_high;
    b = (uint32_t)second;
    d = (uint32_t)first;
    a = next_a;
    c = next_c;
    key_low += UINT32_C(0x9e3779b9);
    key_high += UINT32_C(0xbb67ae85);
  }
  counter[0] = a;
  counter[1] = b;
  counter[2] = c;
  counter[3] = d;
}

/* A key for the draws of an item of a call: another one at every run. */
uint64_t berth__draws_key(const berth_op_call *call, int64_t item);

#endif
