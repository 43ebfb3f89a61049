#include "base/sort.h"

static void sort_swap(uint32_t *a, uint32_t *b) {
  const uint32_t other = *a;
  *a = *b;
  *b = other;
}

static void sort_sift_down(const void *things, uint32_t *order, size_t root, size_t count, berth__before before) {
  for (size_t child = 2 * root + 1; child < count; child = 2 * root + 1) {
    if (child + 1 < count && before(things, order[child], order[child + 1])) child++;
    if (!before(things, order[root], order[child])) return;
    sort_swap(&order[root], &order[child]);
    root = child;
  }
}

void berth__sort(const void *things, uint32_t *order, size_t count, berth__before before) {
  for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
  for (size_t i = count / 2; i-- > 0;) sort_sift_down(things, order, i, count, before);
  for (size_t i = count; i-- > 1;) {
    sort_swap(&order[0], &order[i]);
    sort_sift_down(things, order, 0, i, before);
  }
}
