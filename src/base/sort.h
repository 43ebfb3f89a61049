/* Sorts indices. Heap sort, because the C library's qsort may allocate without the context. */
#ifndef BERTH_BASE_SORT_H
#define BERTH_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether thing a comes before thing b. */
typedef bool (*berth__before)(const void *things, uint32_t a, uint32_t b);

/* Fills order with the indices 0 to count - 1 of things, sorted. */
void berth__sort(const void *things, uint32_t *order, size_t count, berth__before before);

#endif
