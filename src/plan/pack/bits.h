/* Sets of small numbers as arrays of words; the caller knows the number of words. */
#ifndef BERTH_PLAN_PACK_BITS_H
#define BERTH_PLAN_PACK_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline size_t berth__bits_words(size_t n) { return (n + 63) / 64; }

static inline void berth__bits_clear(uint64_t *set, size_t words) { memset(set, 0, words * sizeof *set); }

static inline void berth__bits_copy(uint64_t *to, const uint64_t *from, size_t words) {
  memcpy(to, from, words * sizeof *to);
}

static inline void berth__bits_join(uint64_t *to, const uint64_t *from, size_t words) {
  for (size_t w = 0; w < words; w++) to[w] |= from[w];
}

static inline void berth__bits_add(uint64_t *set, size_t i) { set[i / 64] |= UINT64_C(1) << (i % 64); }

static inline void berth__bits_remove(uint64_t *set, size_t i) { set[i / 64] &= ~(UINT64_C(1) << (i % 64)); }

static inline int berth__bits_has(const uint64_t *set, size_t i) { return (int)((set[i / 64] >> (i % 64)) & 1); }

/* The position of the lowest bit of a word that is not 0. */
static inline unsigned berth__bits_lowest(uint64_t word) {
#if defined(__GNUC__)
  return (unsigned)__builtin_ctzll(word);
#else
  unsigned at = 0;
  for (; (word & 1) == 0; word >>= 1) at++;
  return at;
#endif
}

#endif
