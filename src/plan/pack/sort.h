/* Sorts index lists by 64-bit keys: stable, and without the C library's qsort (whose order of equal elements, and
 * hidden allocation, differ between platforms). */
#ifndef BERTH_PLAN_PACK_SORT_H
#define BERTH_PLAN_PACK_SORT_H

#include <stddef.h>
#include <stdint.h>

/* Sorts index[0..n) so that key[index[i]] ascends; equal keys keep their order. scratch has n entries. */
void berth__pack_sort(uint32_t *index, size_t n, const uint64_t *key, uint32_t *scratch);

/* A signed number as a key with the same order. */
static inline uint64_t berth__pack_key_signed(int64_t value) { return (uint64_t)value ^ (UINT64_C(1) << 63); }

#endif
