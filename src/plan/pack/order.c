/* Orders for the constructors.
 *
 * No single order wins: on real networks each of these is the best for some and far from it for others, so the
 * portfolio tries them all. Each order consists of stable sorts, the least important criterion first; remaining ties
 * keep the caller's order, which carries information too (neighbours in a network are similar). */
#include "plan/pack/order.h"

#include <string.h>

#include "plan/pack/prepare.h"
#include "plan/pack/sort.h"

static uint32_t tree_leaves(uint32_t n_sections) {
  uint32_t leaves = 1;
  while (leaves < n_sections) leaves *= 2;
  return leaves;
}

/* The fuller of two sections, the earlier of equal ones; UINT32_MAX means none. */
static uint32_t fuller(const int64_t *load, uint32_t a, uint32_t b) {
  if (a == UINT32_MAX) return b;
  if (b == UINT32_MAX) return a;
  if (load[a] != load[b]) return load[a] > load[b] ? a : b;
  return a < b ? a : b;
}

berth_status berth__pack_sorter_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                       uint32_t n_sections, berth__pack_sorter *sorter, berth_error *err) {
  uint32_t leaves = tree_leaves(n_sections);
  sorter->key = berth__alloc_array(ctx, n > n_sections ? n : n_sections, sizeof *sorter->key);
  sorter->scratch = berth__alloc_array(ctx, n > n_sections ? n : n_sections, sizeof *sorter->scratch);
  sorter->load = berth__alloc_array(ctx, n_sections, sizeof *sorter->load);
  sorter->fullest = berth__alloc_array(ctx, (size_t)leaves * 2, sizeof *sorter->fullest);
  if (sorter->key == NULL || sorter->scratch == NULL || sorter->load == NULL || sorter->fullest == NULL) {
    berth__pack_sorter_destroy(ctx, sorter);
    return berth__fail_nomem(err, "ordering buffers");
  }
  berth__pack_loads(items, n, n_sections, sorter->load);
  for (uint32_t s = 0; s < leaves; s++) sorter->fullest[leaves + s] = s < n_sections ? s : UINT32_MAX;
  for (uint32_t k = leaves - 1; k > 0; k--)
    sorter->fullest[k] = fuller(sorter->load, sorter->fullest[2 * k], sorter->fullest[2 * k + 1]);
  return BERTH_OK;
}

void berth__pack_sorter_destroy(berth_context *ctx, berth__pack_sorter *sorter) {
  berth__free(ctx, sorter->fullest);
  berth__free(ctx, sorter->load);
  berth__free(ctx, sorter->scratch);
  berth__free(ctx, sorter->key);
  memset(sorter, 0, sizeof *sorter);
}

static uint32_t fullest_section(const berth__pack_sorter *sorter, uint32_t leaves, const berth__pack_item *item) {
  uint32_t best = UINT32_MAX;
  for (uint32_t a = item->lo + leaves, b = item->hi + leaves; a < b; a /= 2, b /= 2) {
    if (a & 1) best = fuller(sorter->load, best, sorter->fullest[a++]);
    if (b & 1) best = fuller(sorter->load, best, sorter->fullest[--b]);
  }
  return best;
}

/* A key that grows with a * b, although the product may need 128 bits: the position of its top bit, then the bits
 * below. */
static uint64_t product_key(uint64_t a, uint64_t b) {
  uint64_t a1 = a >> 32, a0 = a & UINT32_MAX, b1 = b >> 32, b0 = b & UINT32_MAX;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), cross = a0 * b1 + (middle & UINT32_MAX);
  uint64_t high = a1 * b1 + (middle >> 32) + (cross >> 32);
  low = (cross << 32) | (low & UINT32_MAX);
  uint64_t bits = 128;
  while (bits > 1 && (high >> 63) == 0) {
    high = (high << 1) | (low >> 63);
    low <<= 1;
    bits--;
  }
  return (bits << 56) | ((high << 1) >> 8);
}

/* Criteria, and lists of them: the most important one first, ended by NONE. */
enum {
  KEY_NONE,
  KEY_SIZE,
  KEY_SECTIONS,
  KEY_SPAN,
  KEY_AREA,
  KEY_BREADTH,
  KEY_START,
  MAX_CRITERIA = 3
};

static const int criteria[BERTH__PACK_N_ORDERS][MAX_CRITERIA] = {
    [BERTH__PACK_BY_LIFETIME] = {KEY_SECTIONS, KEY_SIZE},
    [BERTH__PACK_BY_SIZE] = {KEY_SIZE},
    [BERTH__PACK_BY_SIZE_LIFETIME] = {KEY_SIZE, KEY_SECTIONS},
    [BERTH__PACK_BY_AREA] = {KEY_AREA, KEY_SIZE},
    [BERTH__PACK_BY_BREADTH] = {KEY_BREADTH, KEY_SIZE},
    [BERTH__PACK_BY_START] = {KEY_START, KEY_SIZE},
    [BERTH__PACK_BY_SPAN_AREA] = {KEY_SPAN, KEY_AREA, KEY_BREADTH},
    [BERTH__PACK_BY_BREADTH_AREA] = {KEY_BREADTH, KEY_AREA, KEY_SPAN},
    [BERTH__PACK_BY_BREADTH_SPAN] = {KEY_BREADTH, KEY_SPAN, KEY_AREA},
};

static uint64_t item_key(const berth__pack_sorter *sorter, uint32_t leaves, const berth__pack_item *item, int what) {
  switch (what) {
    case KEY_SIZE: return UINT64_MAX - (uint64_t)item->size;
    case KEY_SECTIONS: return UINT32_MAX - (item->hi - item->lo);
    case KEY_SPAN: return UINT64_MAX - item->span;
    case KEY_AREA: return UINT64_MAX - product_key((uint64_t)item->size, item->span);
    case KEY_BREADTH: return UINT64_MAX - (uint64_t)sorter->load[fullest_section(sorter, leaves, item)];
    default: return item->lo;
  }
}

static void sort_by(const berth__pack_sorter *sorter, const berth__pack_item *items, uint32_t n, uint32_t leaves,
                    int what, uint32_t *out) {
  for (uint32_t i = 0; i < n; i++) sorter->key[i] = item_key(sorter, leaves, &items[i], what);
  berth__pack_sort(out, n, sorter->key, sorter->scratch);
}

void berth__pack_sort_items(const berth__pack_sorter *sorter, const berth__pack_item *items, uint32_t n,
                            uint32_t n_sections, berth__pack_order order, uint32_t *out) {
  uint32_t leaves = tree_leaves(n_sections);
  for (uint32_t i = 0; i < n; i++) {
    out[i] = i;
    sorter->key[i] = items[i].id;
  }
  berth__pack_sort(out, n, sorter->key, sorter->scratch);
  for (int c = MAX_CRITERIA - 1; c >= 0; c--)
    if (criteria[order][c] != KEY_NONE) sort_by(sorter, items, n, leaves, criteria[order][c], out);
}
