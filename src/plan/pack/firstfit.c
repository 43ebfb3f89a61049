/* First-fit without a conflict graph.
 *
 * A real trace of 400,000 buffers has 10^10 conflicting pairs, so "all placed buffers that live at the same time" must
 * never be listed. Instead there is a segment tree over the sections:
 *
 * sections    0   1   2   3   4   5   6   7        an item alive in [1, 6) is stored at the nodes marked *
 * .   *   [ *   ] [ *   ] .   .        that cover its range exactly: its pieces
 *
 * Each node keeps two lists of occupied offset ranges, sorted and merged where they touch: `own`, of the pieces stored
 * at this node, and `all`, of everything stored at this node or below it. The occupied offsets in [lo, hi) are then
 * found in O(log S) lists: `all` at the nodes that make up [lo, hi), and `own` at the nodes above them. The lowest gap
 * is found by galloping through these lists in parallel. Merging keeps the lists short: dense packings leave few holes.
 *
 * Lists are stored in one growing array of ranges, in blocks of 4, 8, 16... entries that are reused by size, so that a
 * pass makes almost no allocations and a second pass makes none. */
#include "plan/pack/firstfit.h"

#include <string.h>

enum {
  MAX_DEPTH = 32,
  MAX_LISTS = 4 * MAX_DEPTH,
  N_CLASSES = 32,
  FIRST_CLASS = 2
};

typedef struct interval {
  int64_t lo, hi;
} interval;

typedef struct list {
  uint32_t n;
  uint32_t class_; /* 0: no block yet; otherwise its capacity is 1 << class_ entries */
  size_t at;       /* of its block in the pool */
} list;

typedef struct node {
  list own, all;
} node;

typedef struct pool {
  interval *entries;
  size_t n, capacity;
  size_t free[N_CLASSES]; /* free lists of the blocks of each class, linked by their first entry; SIZE_MAX: empty */
} pool;

struct berth__pack_skyline {
  berth_context *ctx;
  node *nodes; /* node 1 is the root, 2k and 2k+1 are the children of k */
  uint32_t n_leaves;
  pool pool;
};

/* The nodes that an item covers. */
typedef struct path {
  uint32_t piece[2 * MAX_DEPTH], above[2 * MAX_DEPTH];
  uint32_t n_pieces, n_above;
} path;

/* The position of a query in each of its lists. */
typedef struct cursor {
  const interval *range;
  uint32_t n, at;
} cursor;

berth_status berth__pack_skyline_create(berth_context *ctx, uint32_t n_sections, berth__pack_skyline **out,
                                        berth_error *err) {
  *out = NULL;
  berth__pack_skyline *sky = berth__alloc_zero(ctx, sizeof *sky);
  if (sky == NULL) return berth__fail_nomem(err, "placing buffers");
  sky->ctx = ctx;
  for (sky->n_leaves = 1; sky->n_leaves < n_sections;) sky->n_leaves *= 2;
  for (int k = 0; k < N_CLASSES; k++) sky->pool.free[k] = SIZE_MAX;
  sky->nodes = berth__alloc_array_zero(ctx, (size_t)sky->n_leaves * 2, sizeof *sky->nodes);
  if (sky->nodes == NULL) {
    berth__free(ctx, sky);
    return berth__fail_nomem(err, "placing buffers");
  }
  *out = sky;
  return BERTH_OK;
}

void berth__pack_skyline_destroy(berth__pack_skyline *sky) {
  if (sky == NULL) return;
  berth__free(sky->ctx, sky->pool.entries);
  berth__free(sky->ctx, sky->nodes);
  berth__free(sky->ctx, sky);
}

void berth__pack_skyline_clear(berth__pack_skyline *sky) {
  for (size_t k = 0; k < (size_t)sky->n_leaves * 2; k++) sky->nodes[k].own.n = sky->nodes[k].all.n = 0;
}

/* ---- Lists ----------------------------------------------------------------------------------------------------- */

static berth_status pool_block(berth__pack_skyline *sky, uint32_t class_, size_t *at, berth_error *err) {
  pool *p = &sky->pool;
  if (p->free[class_] != SIZE_MAX) {
    *at = p->free[class_];
    p->free[class_] = (size_t)p->entries[*at].lo;
    return BERTH_OK;
  }
  size_t size = (size_t)1 << class_;
  BERTH__TRY(BERTH__RESERVE(sky->ctx, p->entries, p->capacity, p->n + size, err));
  *at = p->n;
  p->n += size;
  return BERTH_OK;
}

static berth_status list_grow(berth__pack_skyline *sky, list *l, berth_error *err) {
  uint32_t class_ = l->class_ == 0 ? FIRST_CLASS : l->class_ + 1;
  size_t at;
  BERTH__TRY(pool_block(sky, class_, &at, err));
  pool *p = &sky->pool;
  if (l->class_ != 0) {
    memcpy(p->entries + at, p->entries + l->at, l->n * sizeof *p->entries);
    p->entries[l->at].lo = p->free[l->class_] == SIZE_MAX ? -1 : (int64_t)p->free[l->class_];
    p->free[l->class_] = l->at;
  }
  l->at = at;
  l->class_ = class_;
  return BERTH_OK;
}

/* The first range that ends at or after `lo`. */
static uint32_t list_find(const interval *range, uint32_t n, int64_t lo) {
  uint32_t from = 0;
  while (from < n) {
    uint32_t middle = from + (n - from) / 2;
    if (range[middle].hi < lo)
      from = middle + 1;
    else
      n = middle;
  }
  return from;
}

/* Adds [lo, hi), merging it with the ranges that it touches or overlaps. */
static berth_status list_add(berth__pack_skyline *sky, list *l, int64_t lo, int64_t hi, uint64_t *ticks,
                             berth_error *err) {
  interval *range = l->n == 0 ? NULL : sky->pool.entries + l->at;
  uint32_t first = l->n == 0 ? 0 : list_find(range, l->n, lo), last = first;
  for (; last < l->n && range[last].lo <= hi; last++) {
    if (range[last].lo < lo) lo = range[last].lo;
    if (range[last].hi > hi) hi = range[last].hi;
  }
  if (first == last) {
    if (l->class_ == 0 || l->n == UINT32_C(1) << l->class_) BERTH__TRY(list_grow(sky, l, err));
    range = sky->pool.entries + l->at;
    memmove(range + first + 1, range + first, (l->n - first) * sizeof *range);
    l->n++;
    *ticks += (l->n - first) / 16;
  } else if (last - first > 1) {
    memmove(range + first + 1, range + last, (l->n - last) * sizeof *range);
    *ticks += (l->n - last) / 16;
    l->n -= last - first - 1;
  }
  range[first] = (interval){lo, hi};
  *ticks += 20;
  return BERTH_OK;
}

/* ---- Nodes ----------------------------------------------------------------------------------------------------- */

/* The pieces of [lo, hi) bottom-up, then the nodes between the two end leaves and the root that are not inside. */
static void find_path(const berth__pack_skyline *sky, uint32_t lo, uint32_t hi, path *p) {
  p->n_pieces = p->n_above = 0;
  uint32_t left = lo + sky->n_leaves, right = hi + sky->n_leaves;
  for (uint32_t a = left, b = right; a < b; a /= 2, b /= 2) {
    if (a & 1) p->piece[p->n_pieces++] = a++;
    if (b & 1) p->piece[p->n_pieces++] = --b;
  }
  uint32_t width = 2, a = left / 2, b = (right - 1) / 2;
  for (; a > 0; a /= 2, b /= 2, width *= 2) {
    uint32_t first_a = a * width - sky->n_leaves, first_b = b * width - sky->n_leaves;
    /* a (b) is inside if it starts at or after lo and ends at or before hi */
    if (first_a < lo || first_a + width > hi) p->above[p->n_above++] = a;
    if (b != a && (first_b < lo || first_b + width > hi)) p->above[p->n_above++] = b;
  }
}

static uint32_t open_lists(const berth__pack_skyline *sky, const path *p, cursor *c) {
  uint32_t n = 0;
  for (uint32_t k = 0; k < p->n_pieces; k++) {
    const list *l = &sky->nodes[p->piece[k]].all;
    if (l->n > 0) c[n++] = (cursor){sky->pool.entries + l->at, l->n, 0};
  }
  for (uint32_t k = 0; k < p->n_above; k++) {
    const list *l = &sky->nodes[p->above[k]].own;
    if (l->n > 0) c[n++] = (cursor){sky->pool.entries + l->at, l->n, 0};
  }
  return n;
}

/* Moves the cursor to the first range that ends after x, with steps that double and then halve. */
static void gallop(cursor *c, int64_t x) {
  uint32_t at = c->at, n = c->n, step = 1;
  if (at >= n || c->range[at].hi > x) return;
  while (step < n - at && c->range[at + step].hi <= x) {
    at += step;
    step *= 2;
  }
  uint32_t end = step < n - at ? at + step : n;
  for (at++; at < end;) {
    uint32_t middle = at + (end - at) / 2;
    if (c->range[middle].hi <= x)
      at = middle + 1;
    else
      end = middle;
  }
  c->at = at;
}

/* The lowest offset from x on with a gap of `size` in all lists. */
static int64_t first_gap(cursor *c, uint32_t n, int64_t x, int64_t size, int64_t align, uint64_t *ticks) {
  uint64_t steps = 0;
  for (uint32_t quiet = 0, k = 0; quiet < n; k = k + 1 < n ? k + 1 : 0) {
    steps++;
    gallop(&c[k], x);
    if (c[k].at >= c[k].n || c[k].range[c[k].at].lo >= x + size) {
      quiet++;
      continue;
    }
    do {
      x = berth__pack_align_up(c[k].range[c[k].at++].hi, align);
      steps++;
    } while (c[k].at < c[k].n && c[k].range[c[k].at].lo < x + size);
    quiet = 0;
  }
  *ticks += steps * 6;
  return x;
}

/* The end of the gap that contains x: the beginning of the lowest range above x. */
static int64_t gap_end(cursor *c, uint32_t n, int64_t x) {
  int64_t end = INT64_MAX;
  for (uint32_t k = 0; k < n; k++) {
    gallop(&c[k], x);
    if (c[k].at < c[k].n && c[k].range[c[k].at].lo < end) end = c[k].range[c[k].at].lo;
  }
  return end;
}

/* The smallest of all gaps that are large enough; the lowest of equal ones. */
static int64_t best_gap(cursor *c, uint32_t n, int64_t size, int64_t align, uint64_t *ticks) {
  int64_t x = 0, best = 0, best_room = INT64_MAX;
  for (;;) {
    x = first_gap(c, n, x, size, align, ticks);
    int64_t end = gap_end(c, n, x);
    *ticks += n * 4;
    if (end == INT64_MAX) return best_room == INT64_MAX ? x : best;
    if (end - x < best_room) {
      best_room = end - x;
      best = x;
    }
    x = berth__pack_align_up(end, align);
  }
}

static berth_status pack_firstfit_take(berth__pack_skyline *sky, const path *p, int64_t lo, int64_t hi, uint64_t *ticks,
                                       berth_error *err) {
  for (uint32_t k = 0; k < p->n_pieces; k++) {
    BERTH__TRY(list_add(sky, &sky->nodes[p->piece[k]].own, lo, hi, ticks, err));
    BERTH__TRY(list_add(sky, &sky->nodes[p->piece[k]].all, lo, hi, ticks, err));
  }
  for (uint32_t k = 0; k < p->n_above; k++) BERTH__TRY(list_add(sky, &sky->nodes[p->above[k]].all, lo, hi, ticks, err));
  return BERTH_OK;
}

berth_status berth__pack_skyline_take(berth__pack_skyline *sky, const berth__pack_item *item, int64_t offset,
                                      uint64_t *ticks, berth_error *err) {
  path p;
  find_path(sky, item->lo, item->hi, &p);
  return pack_firstfit_take(sky, &p, offset, offset + item->size, ticks, err);
}

berth_status berth__pack_skyline_place(berth__pack_skyline *sky, const berth__pack_item *item, berth__pack_rule rule,
                                       int64_t *offset, uint64_t *ticks, berth_error *err) {
  path p;
  cursor c[MAX_LISTS];
  find_path(sky, item->lo, item->hi, &p);
  uint32_t n = open_lists(sky, &p, c);
  *ticks += 40;
  *offset = rule == BERTH__PACK_BEST_FIT ? best_gap(c, n, item->size, item->align, ticks)
                                         : first_gap(c, n, 0, item->size, item->align, ticks);
  return pack_firstfit_take(sky, &p, *offset, *offset + item->size, ticks, err);
}

void berth__pack_skyline_find(const berth__pack_skyline *sky, const berth__pack_item *item, int64_t *offset,
                              uint64_t *ticks) {
  path p;
  cursor c[MAX_LISTS];
  find_path(sky, item->lo, item->hi, &p);
  uint32_t n = open_lists(sky, &p, c);
  *ticks += 40;
  *offset = first_gap(c, n, 0, item->size, item->align, ticks);
}
