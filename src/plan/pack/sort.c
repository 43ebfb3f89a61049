/* A stable sort of index lists by 64-bit keys.
 *
 * Short lists: insertion sort. Longer ones: radix sort by bytes, least significant first, skipping bytes that are the
 * same in all keys. To sort by several criteria, sort several times, the least important criterion first, which works
 * because the sort is stable. */
#include "plan/pack/sort.h"

#include <string.h>

enum {
  INSERTION_MAX = 48,
  DIGITS = 8,
  RADIX = 256
};

static void insertion_sort(uint32_t *index, size_t n, const uint64_t *key) {
  for (size_t i = 1; i < n; i++) {
    uint32_t item = index[i];
    uint64_t k = key[item];
    size_t j = i;
    for (; j > 0 && key[index[j - 1]] > k; j--) index[j] = index[j - 1];
    index[j] = item;
  }
}

/* One stable pass by the byte at `shift`. */
static void pack_sort_scatter(const uint32_t *from, uint32_t *to, size_t n, const uint64_t *key, unsigned shift) {
  size_t start[RADIX] = {0};
  for (size_t i = 0; i < n; i++) start[(key[from[i]] >> shift) & 0xff]++;
  size_t sum = 0;
  for (size_t d = 0; d < RADIX; d++) {
    size_t count = start[d];
    start[d] = sum;
    sum += count;
  }
  for (size_t i = 0; i < n; i++) to[start[(key[from[i]] >> shift) & 0xff]++] = from[i];
}

void berth__pack_sort(uint32_t *index, size_t n, const uint64_t *key, uint32_t *scratch) {
  if (n <= INSERTION_MAX) {
    insertion_sort(index, n, key);
    return;
  }
  uint64_t differ = 0;
  for (size_t i = 1; i < n; i++) differ |= key[index[i]] ^ key[index[0]];
  uint32_t *from = index, *to = scratch;
  for (unsigned digit = 0; digit < DIGITS; digit++) {
    unsigned shift = digit * 8;
    if (((differ >> shift) & 0xff) == 0) continue;
    pack_sort_scatter(from, to, n, key, shift);
    uint32_t *swap = from;
    from = to;
    to = swap;
  }
  if (from != index) memcpy(index, from, n * sizeof *index);
}
