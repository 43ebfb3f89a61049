/* Sorting numbers of things. A heap sort: the C library's qsort may allocate behind the context's back. */
#ifndef BERTH_BASE_SORT_H
#define BERTH_BASE_SORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Whether thing a comes before thing b. */
typedef bool (*berth__before)(const void *things, uint32_t a, uint32_t b);

/* order becomes the numbers 0 to count - 1 of things, the first of them first. */
void berth__sort(const void *things, uint32_t *order, size_t count, berth__before before);

#endif
