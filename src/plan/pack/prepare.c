/* Preparation: everything that simplifies the problem before the search, in O(n log n).
 *
 * 1. Check: reversed lifetimes, offsets that break their alignment, sums that overflow, fixed buffers that overlap.
 * 2. Leave out buffers without size or lifetime: they conflict with nothing.
 * 3. Compress time. Only the maximal sets of buffers that are alive together matter, and each such set is alive just
 *   before
 *    some buffer ends after another has started. These moments are the sections; a buffer covers a range of them, and
 *    two buffers conflict exactly when their ranges overlap.
 * 4. Scale. There is an optimal placement in which every buffer rests on another one or on the ground (or, if its
 * alignment forces a gap, on the next multiple), so all offsets are sums of sizes, alignments and fixed offsets: divide
 * everything by the greatest common divisor. If all offsets are multiples of more than one unit, sizes are rounded up
 * to it, because the gap is unusable; only at the top of the block may the rounding exceed the end (`tail`). */
#include "plan/pack/prepare.h"

#include <string.h>

#include "base/math.h"
#include "plan/pack/check.h"
#include "plan/pack/sort.h"

#define LARGEST_SUM (UINT64_C(1) << 62)

static uint64_t gcd(uint64_t a, uint64_t b) {
  while (b != 0) {
    uint64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/* Checks a single buffer. */
static berth_status pack_prepare_check_buffer(const berth_pack_buffer *b, size_t i, berth_error *err) {
  if (b->lower > b->upper)
    return berth__fail(err, BERTH_INVALID, "pack: buffer %zu ends at %lld, before it starts at %lld", i,
                       (long long)b->upper, (long long)b->lower);
  if (b->offset == BERTH_PACK_FREE) return BERTH_OK;
  if (b->align > 1 && b->offset % b->align != 0)
    return berth__fail(err, BERTH_INVALID, "pack: buffer %zu is fixed at offset %llu, which is not a multiple of %llu",
                       i, (unsigned long long)b->offset, (unsigned long long)b->align);
  return BERTH_OK;
}

/* An upper bound on all numbers: all buffers stacked on the highest fixed one. */
static berth_status check_sums(const berth_pack_buffer *buffers, size_t n, berth_error *err) {
  uint64_t sum = 0, top = 0;
  for (size_t i = 0; i < n; i++) {
    const berth_pack_buffer *b = &buffers[i];
    BERTH__TRY(pack_prepare_check_buffer(b, i, err));
    uint64_t need = b->size, end = 0;
    int fits = 1;
    if (b->offset != BERTH_PACK_FREE)
      fits = berth__add_u64(b->offset, b->size, &end);
    else if (b->align > 1 && b->size > 0)
      fits = berth__add_u64(need, b->align - 1, &need);
    if (end > top) top = end;
    if (!fits || !berth__add_u64(sum, need, &sum) || sum > LARGEST_SUM || top > LARGEST_SUM - sum)
      return berth__fail(err, BERTH_INVALID,
                         "pack: the sizes up to buffer %zu (%llu bytes) add up to more than 2^62 bytes", i,
                         (unsigned long long)b->size);
  }
  return BERTH_OK;
}

static berth_status check_fixed(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, size_t n_fixed,
                                berth_error *err) {
  berth_status status = BERTH_OK;
  uint32_t *index = berth__alloc_array(ctx, n_fixed, sizeof *index);
  uint64_t *offsets = berth__alloc_array(ctx, n, sizeof *offsets);
  if (index == NULL || offsets == NULL) {
    status = berth__fail_nomem(err, "checking fixed buffers");
    goto fail;
  }
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    offsets[i] = buffers[i].offset;
    if (buffers[i].offset != BERTH_PACK_FREE) index[at++] = (uint32_t)i;
  }
  berth__pack_verdict verdict;
  BERTH__TRY_OR_FAIL(berth__pack_check(ctx, buffers, index, n_fixed, offsets, &verdict, err));
  if (verdict.clash)
    status = berth__fail(err, BERTH_INVALID,
                         "pack: the fixed buffers %u (at %llu) and %u (at %llu) live at the same time and overlap",
                         (unsigned)verdict.first, (unsigned long long)offsets[verdict.first], (unsigned)verdict.second,
                         (unsigned long long)offsets[verdict.second]);
fail:
  berth__free(ctx, offsets);
  berth__free(ctx, index);
  return status;
}

/* The items, not yet scaled, and the requirements of buffers that are not items. */
static void pack_prepare_collect(berth__pack_problem *p, const berth_pack_buffer *buffers, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const berth_pack_buffer *b = &buffers[i];
    if (b->size == 0) continue;
    if (b->lower == b->upper) {
      uint64_t end = (b->offset == BERTH_PACK_FREE ? 0 : b->offset) + b->size;
      if (end > p->least_size) p->least_size = end;
      continue;
    }
    berth__pack_item *item = &p->items[p->n++];
    item->size = (int64_t)b->size;
    item->tail = 0;
    item->align = b->align > 1 ? (int64_t)b->align : 1;
    item->fixed = b->offset == BERTH_PACK_FREE ? BERTH__PACK_NO_OFFSET : (int64_t)b->offset;
    item->span = (uint64_t)b->upper - (uint64_t)b->lower;
    item->id = (uint32_t)i;
  }
}

/* Numbers the sections by going through births and deaths in time. A section closes at the first death after a
 * birth. */
static uint32_t number_sections(berth__pack_problem *p, const berth_pack_buffer *buffers, const uint32_t *by_birth,
                                const uint32_t *by_death) {
  uint32_t sections = 0;
  int open = 0;
  for (uint32_t born = 0, dead = 0; dead < p->n;) {
    berth__pack_item *death = &p->items[by_death[dead]];
    if (born < p->n && buffers[p->items[by_birth[born]].id].lower < buffers[death->id].upper) {
      p->items[by_birth[born++]].lo = sections;
      open = 1;
      continue;
    }
    if (open) sections++;
    open = 0;
    death->hi = sections;
    dead++;
  }
  return sections;
}

static berth_status compress_time(berth__pack_problem *p, const berth_pack_buffer *buffers, berth_error *err) {
  size_t n = p->n;
  uint32_t *lists = berth__alloc_array(p->ctx, n * 3, sizeof *lists);
  uint64_t *key = berth__alloc_array(p->ctx, n, sizeof *key);
  if (lists == NULL || key == NULL) {
    berth__free(p->ctx, key);
    berth__free(p->ctx, lists);
    return berth__fail_nomem(err, "sorting lifetimes");
  }
  uint32_t *by_birth = lists, *by_death = lists + n, *scratch = lists + 2 * n;
  for (uint32_t i = 0; i < n; i++) {
    by_birth[i] = by_death[i] = i;
    key[i] = berth__pack_key_signed(buffers[p->items[i].id].lower);
  }
  berth__pack_sort(by_birth, n, key, scratch);
  for (uint32_t i = 0; i < n; i++) key[i] = berth__pack_key_signed(buffers[p->items[i].id].upper);
  berth__pack_sort(by_death, n, key, scratch);
  p->n_sections = number_sections(p, buffers, by_birth, by_death);
  berth__free(p->ctx, key);
  berth__free(p->ctx, lists);
  return BERTH_OK;
}

static void pack_prepare_scale(berth__pack_problem *p) {
  uint64_t unit = 0, common = 0;
  for (uint32_t i = 0; i < p->n; i++) {
    const berth__pack_item *item = &p->items[i];
    unit = gcd((uint64_t)item->size, unit);
    if (item->align > 1) unit = gcd((uint64_t)item->align, unit);
    if (item->fixed > 0) unit = gcd((uint64_t)item->fixed, unit);
  }
  if (unit == 0) unit = 1;
  for (uint32_t i = 0; i < p->n; i++) {
    berth__pack_item *item = &p->items[i];
    item->size /= (int64_t)unit;
    item->align = item->align > 1 ? item->align / (int64_t)unit : 1;
    if (item->fixed > 0) item->fixed /= (int64_t)unit;
    common = gcd((uint64_t)(item->fixed >= 0 ? item->fixed : item->align), common);
  }
  p->unit = unit;
  for (uint32_t i = 0; i < p->n && common > 1; i++) {
    berth__pack_item *item = &p->items[i];
    int64_t rounded = berth__pack_align_up(item->size, (int64_t)common);
    item->tail = rounded - item->size;
    item->size = rounded;
  }
}

void berth__pack_loads(const berth__pack_item *items, uint32_t n, uint32_t n_sections, int64_t *load) {
  memset(load, 0, n_sections * sizeof *load);
  for (uint32_t i = 0; i < n; i++) {
    load[items[i].lo] += items[i].size;
    if (items[i].hi < n_sections) load[items[i].hi] -= items[i].size;
  }
  int64_t sum = 0;
  for (uint32_t s = 0; s < n_sections; s++) load[s] = sum += load[s];
}

static berth_status check_input(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, berth_error *err) {
  if (n >= UINT32_MAX / 8) return berth__fail(err, BERTH_UNSUPPORTED, "pack: %zu buffers are too many", n);
  BERTH__TRY(check_sums(buffers, n, err));
  size_t n_fixed = 0;
  for (size_t i = 0; i < n; i++) n_fixed += buffers[i].offset != BERTH_PACK_FREE;
  if (n_fixed == 0) return BERTH_OK;
  return check_fixed(ctx, buffers, n, n_fixed, err);
}

berth_status berth__pack_prepare(berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                 berth__pack_problem *problem, berth_error *err) {
  memset(problem, 0, sizeof *problem);
  BERTH__TRY(check_input(ctx, buffers, n, err));
  berth__pack_problem p = {.ctx = ctx, .unit = 1};
  berth_status status = BERTH_OK;
  p.items = berth__alloc_array(ctx, n, sizeof *p.items);
  p.offsets = berth__alloc_array(ctx, n, sizeof *p.offsets);
  if (p.items == NULL || p.offsets == NULL) {
    status = berth__fail_nomem(err, "packing");
    goto fail;
  }
  pack_prepare_collect(&p, buffers, n);
  BERTH__TRY_OR_FAIL(compress_time(&p, buffers, err));
  pack_prepare_scale(&p);
  *problem = p;
  return BERTH_OK;
fail:
  berth__pack_release(&p);
  return status;
}

void berth__pack_release(berth__pack_problem *problem) {
  if (problem->ctx == NULL) return;
  berth__free(problem->ctx, problem->parts);
  berth__free(problem->ctx, problem->offsets);
  berth__free(problem->ctx, problem->items);
  memset(problem, 0, sizeof *problem);
}
