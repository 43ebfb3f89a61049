/* The classical heuristics by which other compilers and runtimes place buffers, as a baseline. Small and simple:
 * quadratic in the number of buffers alive together, so for tens of thousands of buffers at most.
 *
 * size first-fit     TFLite Micro, RLX: largest first, each at the lowest free offset
 *   size best-fit      TFLite, XLA: largest first, each in the smallest gap that is large enough
 * breadth best-fit   TFLite's other one: by the moment with the most bytes alive, then largest first
 *   start best-fit     ggml: in order of birth */
#ifndef BERTH_BENCH_PACK_CLASSIC_H
#define BERTH_BENCH_PACK_CLASSIC_H

#include <stdint.h>
#include <stdlib.h>

#include "berth/berth.h"

typedef enum classic_rule {
  CLASSIC_SIZE_FIRST,
  CLASSIC_SIZE_BEST,
  CLASSIC_BREADTH_BEST,
  CLASSIC_START_BEST,
  CLASSIC_N
} classic_rule;

static const char *const classic_name[CLASSIC_N] = {"size ff", "size bf", "breadth bf", "start bf"};

typedef struct classic_item {
  const berth_pack_buffer *b;
  uint64_t breadth, offset; /* bytes alive at its fullest moment */
  size_t index;
} classic_item;

static int classic_by_size(const void *x, const void *y) {
  const classic_item *a = x, *b = y;
  if (a->b->size != b->b->size) return a->b->size > b->b->size ? -1 : 1;
  return a->index < b->index ? -1 : 1;
}

static int classic_by_breadth(const void *x, const void *y) {
  const classic_item *a = x, *b = y;
  if (a->breadth != b->breadth) return a->breadth > b->breadth ? -1 : 1;
  return classic_by_size(x, y);
}

static int classic_by_start(const void *x, const void *y) {
  const classic_item *a = x, *b = y;
  if (a->b->lower != b->b->lower) return a->b->lower < b->b->lower ? -1 : 1;
  return classic_by_size(x, y);
}

static int classic_by_offset(const void *x, const void *y) {
  const classic_item *const *a = x, *const *b = y;
  return (*a)->offset < (*b)->offset ? -1 : (*a)->offset > (*b)->offset;
}

static int classic_conflict(const berth_pack_buffer *a, const berth_pack_buffer *b) {
  return a->lower < b->upper && b->lower < a->upper;
}

/* The position of an item among its placed conflicts, which are sorted by offset. */
static uint64_t classic_place(classic_item *const *near, size_t n, uint64_t size, int best_fit) {
  uint64_t top = 0, best = UINT64_MAX, room = UINT64_MAX;
  for (size_t k = 0; k < n; k++) {
    uint64_t gap = near[k]->offset > top ? near[k]->offset - top : 0;
    if (gap >= size && gap < room) {
      best = top;
      room = gap;
      if (!best_fit) return best;
    }
    if (near[k]->offset + near[k]->b->size > top) top = near[k]->offset + near[k]->b->size;
  }
  return best != UINT64_MAX ? best : top;
}

/* Bytes alive at the fullest moment of each item, which is the start of some item within its life. */
static void classic_breadths(classic_item *items, size_t n) {
  for (size_t i = 0; i < n; i++) { /* items are sorted by start: first the load at the start of each */
    items[i].offset = 0;
    for (size_t j = 0; j < n && items[j].b->lower <= items[i].b->lower; j++)
      if (items[j].b->upper > items[i].b->lower) items[i].offset += items[j].b->size;
  }
  for (size_t i = 0; i < n; i++) {
    items[i].breadth = items[i].offset;
    for (size_t j = i + 1; j < n && items[j].b->lower < items[i].b->upper; j++)
      if (items[j].offset > items[i].breadth) items[i].breadth = items[j].offset;
  }
}

/* The size that a rule needs; 0 if memory runs out. */
static uint64_t classic_pack(const berth_pack_buffer *buffers, size_t n, classic_rule rule) {
  static int (*const order[CLASSIC_N])(const void *, const void *) = {classic_by_size, classic_by_size,
                                                                      classic_by_breadth, classic_by_start};
  classic_item *items = malloc((n + 1) * sizeof *items), **near = malloc((n + 1) * sizeof *near);
  uint64_t size = 0;
  for (size_t i = 0; i < n && items != NULL; i++) items[i] = (classic_item){&buffers[i], 0, 0, i};
  if (items != NULL && near != NULL) {
    if (rule == CLASSIC_BREADTH_BEST) {
      qsort(items, n, sizeof *items, classic_by_start);
      classic_breadths(items, n);
    }
    qsort(items, n, sizeof *items, order[rule]);
    for (size_t i = 0; i < n; i++) {
      size_t m = 0;
      for (size_t j = 0; j < i; j++)
        if (items[j].b->size > 0 && classic_conflict(items[i].b, items[j].b)) near[m++] = &items[j];
      qsort(near, m, sizeof *near, classic_by_offset);
      items[i].offset = classic_place(near, m, items[i].b->size, rule != CLASSIC_SIZE_FIRST);
      if (items[i].offset + items[i].b->size > size) size = items[i].offset + items[i].b->size;
    }
  }
  free(near);
  free(items);
  return size;
}

#endif
