/* Builds the constant parts of a search state: which items conflict, which are equal, and which offsets the fixed items
 * rule out. Needs memory for all conflicting pairs, so it is for parts of a few thousand items. */
#include <string.h>

#include "plan/pack/bits.h"
#include "plan/pack/sort.h"
#include "plan/pack/state.h"

static int free_conflict(const berth__pack_state *s, uint32_t i, uint32_t j) {
  return i != j && s->items[j].fixed < 0 && berth__pack_conflict(&s->items[i], &s->items[j]);
}

/* Runs the same loop twice: once to count, once to write. Fixed items are not listed; they are in the holes. */
static berth_status list_conflicts(berth__pack_state *s, berth_error *err) {
  s->conflicts_at = berth__alloc_array_zero(s->ctx, (size_t)s->n + 1, sizeof *s->conflicts_at);
  if (s->conflicts_at == NULL) return berth__fail_nomem(err, "searching a packing");
  uint64_t total = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    for (uint32_t j = 0; j < s->n && s->items[i].fixed < 0; j++) total += (uint64_t)free_conflict(s, i, j);
    s->conflicts_at[i + 1] = (uint32_t)total;
  }
  if (total >= UINT32_MAX) return berth__fail(err, BERTH_UNSUPPORTED, "pack: too many conflicts for a search");
  s->conflicts = berth__alloc_array(s->ctx, (size_t)total, sizeof *s->conflicts);
  if (s->conflicts == NULL) return berth__fail_nomem(err, "searching a packing");
  uint32_t at = 0;
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t j = 0; j < s->n && s->items[i].fixed < 0; j++)
      if (free_conflict(s, i, j)) s->conflicts[at++] = j;
  s->conflict_sets = berth__alloc_array_zero(s->ctx, s->n, s->words * sizeof *s->conflict_sets);
  if (s->conflict_sets == NULL) return berth__fail_nomem(err, "searching a packing");
  for (uint32_t i = 0; i < s->n; i++)
    for (uint32_t e = s->conflicts_at[i]; e < s->conflicts_at[i + 1]; e++)
      berth__bits_add(s->conflict_sets + i * s->words, s->conflicts[e]);
  return BERTH_OK;
}

static int equal_items(const berth__pack_item *a, const berth__pack_item *b) {
  return a->lo == b->lo && a->hi == b->hi && a->size == b->size && a->align == b->align && a->tail == b->tail;
}

static void find_twins(berth__pack_state *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    s->twin[i] = s->next_twin[i] = UINT32_MAX;
    for (uint32_t e = s->conflicts_at[i]; e < s->conflicts_at[i + 1] && s->conflicts[e] < i; e++)
      if (equal_items(&s->items[i], &s->items[s->conflicts[e]])) s->twin[i] = s->conflicts[e];
    if (s->twin[i] != UINT32_MAX) s->next_twin[s->twin[i]] = i;
  }
}

/* The holes of one item: sorted by lo because `fixed` is sorted by offset, then merged. Returns their number. */
static uint32_t holes_of(const berth__pack_state *s, uint32_t i, const uint32_t *fixed, uint32_t n_fixed,
                         berth__pack_hole *out) {
  const berth__pack_item *item = &s->items[i];
  uint32_t n = 0;
  for (uint32_t k = 0; k < n_fixed; k++) {
    const berth__pack_item *other = &s->items[fixed[k]];
    if (!berth__pack_conflict(item, other)) continue;
    int64_t lo = other->fixed - item->size, hi = other->fixed + other->size;
    if (n > 0 && lo < out[n - 1].hi) {
      if (hi > out[n - 1].hi) out[n - 1].hi = hi;
    } else {
      out[n++] = (berth__pack_hole){lo, hi};
    }
  }
  return n;
}

/* fixed: the fixed items by offset; the caller's scratch of 2 * n entries. */
static berth_status list_holes(berth__pack_state *s, uint32_t *fixed, uint64_t *key, berth_error *err) {
  uint32_t n_fixed = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->items[i].fixed < 0) continue;
    fixed[n_fixed++] = i;
    key[i] = (uint64_t)s->items[i].fixed;
  }
  s->n_free = s->n - n_fixed;
  if (n_fixed == 0) return BERTH_OK;
  berth__pack_sort(fixed, n_fixed, key, fixed + s->n);
  size_t total = 0, capacity = 0;
  s->holes_at = berth__alloc_array_zero(s->ctx, (size_t)s->n + 1, sizeof *s->holes_at);
  if (s->holes_at == NULL) return berth__fail_nomem(err, "searching a packing");
  for (uint32_t i = 0; i < s->n; i++) {
    if (s->items[i].fixed < 0) {
      BERTH__TRY(BERTH__RESERVE(s->ctx, s->holes, capacity, total + n_fixed, err));
      total += holes_of(s, i, fixed, n_fixed, s->holes + total);
    }
    s->holes_at[i + 1] = (uint32_t)total;
  }
  return BERTH_OK;
}

static berth_status make_scratch(berth__pack_state *s, berth_error *err) {
  berth_context *ctx = s->ctx;
  size_t n = s->n;
  s->twin = berth__alloc_array(ctx, n * 2, sizeof *s->twin);
  s->bounds = berth__alloc_array_zero(ctx, n, sizeof *s->bounds);
  s->queue = berth__alloc_array(ctx, n, sizeof *s->queue);
  s->queued = berth__alloc_array_zero(ctx, n, sizeof *s->queued);
  s->by_low = berth__alloc_array(ctx, n, sizeof *s->by_low);
  s->chain = berth__alloc_array(ctx, n * 2, sizeof *s->chain);
  s->load = berth__alloc_array(ctx, s->n_sections, sizeof *s->load);
  s->top = berth__alloc_array(ctx, (size_t)s->n_sections * 3, sizeof *s->top);
  s->links = berth__alloc_array(ctx, n, sizeof *s->links);
  s->critical = berth__alloc_array(ctx, (size_t)s->n_sections * 2 + 1, sizeof *s->critical);
  s->conflict = berth__alloc_array_zero(ctx, s->words * 3, sizeof *s->conflict);
  s->weight = berth__alloc_array_zero(ctx, n, sizeof *s->weight);
  s->pool = berth__alloc_array_zero(ctx, s->words, sizeof *s->pool);
  if (s->twin == NULL || s->bounds == NULL || s->queue == NULL || s->queued == NULL || s->by_low == NULL ||
      s->chain == NULL || s->top == NULL || s->critical == NULL || s->conflict == NULL || s->weight == NULL ||
      s->pool == NULL || s->load == NULL || s->links == NULL)
    return berth__fail_nomem(err, "searching a packing");
  s->chain_at = s->chain + n;
  s->next_twin = s->twin + n;
  s->latest = s->top + s->n_sections;
  s->least_top = s->top + 2 * (size_t)s->n_sections;
  s->critical_at = s->critical + s->n_sections;
  s->candidate = s->conflict + s->words;
  s->skipped = s->conflict + 2 * s->words;
  s->pool_capacity = s->words;
  return BERTH_OK;
}

berth_status berth__pack_state_create(berth_context *ctx, const berth__pack_item *items, uint32_t n,
                                      uint32_t n_sections, berth__pack_state *s, berth_error *err) {
  memset(s, 0, sizeof *s);
  s->ctx = ctx;
  s->items = items;
  s->n = n;
  s->n_sections = n_sections;
  s->words = berth__bits_words(n);
  for (uint32_t i = 0; i < n; i++)
    if (items[i].tail > s->largest_tail) s->largest_tail = items[i].tail;
  berth_status status;
  uint64_t *key = berth__alloc_array(ctx, n, sizeof *key);
  BERTH__TRY_OR_FAIL(make_scratch(s, err));
  BERTH__TRY_OR_FAIL(key == NULL ? berth__fail_nomem(err, "searching a packing") : BERTH_OK);
  BERTH__TRY_OR_FAIL(list_holes(s, s->chain, key, err));
  BERTH__TRY_OR_FAIL(list_conflicts(s, err));
  find_twins(s);
fail:
  berth__free(ctx, key);
  if (status != BERTH_OK) berth__pack_state_destroy(s);
  return status;
}

void berth__pack_state_destroy(berth__pack_state *s) {
  berth_context *ctx = s->ctx;
  if (ctx == NULL) return;
  berth__free(ctx, s->pool);
  berth__free(ctx, s->trail);
  berth__free(ctx, s->weight);
  berth__free(ctx, s->conflict);
  berth__free(ctx, s->critical);
  berth__free(ctx, s->links);
  berth__free(ctx, s->load);
  berth__free(ctx, s->top);
  berth__free(ctx, s->chain);
  berth__free(ctx, s->by_low);
  berth__free(ctx, s->queued);
  berth__free(ctx, s->queue);
  berth__free(ctx, s->bounds);
  berth__free(ctx, s->holes);
  berth__free(ctx, s->holes_at);
  berth__free(ctx, s->twin);
  berth__free(ctx, s->conflict_sets);
  berth__free(ctx, s->conflicts);
  berth__free(ctx, s->conflicts_at);
  memset(s, 0, sizeof *s);
}
