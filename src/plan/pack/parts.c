/* Parts: groups of items without conflicts outside are packed on their own.
 *
 * Sorted by birth, the items are split wherever one is born after all previous ones have died. Inside such a range, an
 * item that lives as long as the whole range conflicts with everything else there and can be at the bottom: in any
 * packing, remove it and lift what was below it by its size; nothing ends higher than before. Without it, the rest can
 * often be split again (weights that live for ever hide the cuts between layers), so this is repeated. What is left are
 * the parts, each with a base that the settled items have raised.
 *
 * In this form it holds only if all items have the same alignment and none is fixed; otherwise nothing is settled and
 * only the first split is made. */
#include "plan/pack/parts.h"

#include "plan/pack/bound.h"
#include "plan/pack/sort.h"

/* Nested lifetimes could make the repetition quadratic: this limits how often each item is examined on average. */
enum {
  LOOKS_PER_ITEM = 64
};

typedef struct range {
  uint32_t first, n;
  int64_t base;
} range;

typedef struct splitter {
  berth__pack_problem *p;
  range *stack;
  size_t n_stack, stack_capacity;
  size_t parts_capacity;
  uint64_t looks;
  int may_settle;
} splitter;

static int same_rules_for_all(const berth__pack_problem *p) {
  for (uint32_t i = 0; i < p->n; i++)
    if (p->items[i].fixed >= 0 || p->items[i].align != p->items[0].align) return 0;
  return 1;
}

static berth_status sort_by_birth(berth__pack_problem *p, berth_error *err) {
  size_t n = p->n;
  uint32_t *lists = berth__alloc_array(p->ctx, n * 2, sizeof *lists);
  uint64_t *key = berth__alloc_array(p->ctx, n, sizeof *key);
  berth__pack_item *sorted = berth__alloc_array(p->ctx, n, sizeof *sorted);
  berth_status status = BERTH_OK;
  if (lists == NULL || key == NULL || sorted == NULL) {
    status = berth__fail_nomem(err, "splitting a packing");
    berth__free(p->ctx, sorted);
  } else {
    for (uint32_t i = 0; i < n; i++) {
      lists[i] = i;
      key[i] = p->items[i].lo;
    }
    berth__pack_sort(lists, n, key, lists + n);
    for (uint32_t i = 0; i < n; i++) sorted[i] = p->items[lists[i]];
    berth__free(p->ctx, p->items);
    p->items = sorted;
  }
  berth__free(p->ctx, key);
  berth__free(p->ctx, lists);
  return status;
}

static berth_status push_range(splitter *s, uint32_t first, uint32_t n, int64_t base, berth_error *err) {
  BERTH__TRY(BERTH__RESERVE(s->p->ctx, s->stack, s->stack_capacity, s->n_stack + 1, err));
  s->stack[s->n_stack++] = (range){first, n, base};
  return BERTH_OK;
}

static uint32_t last_section(const berth__pack_item *items, uint32_t n) {
  uint32_t hi = 0;
  for (uint32_t i = 0; i < n; i++)
    if (items[i].hi > hi) hi = items[i].hi;
  return hi;
}

/* Moves the items that live as long as the range to its front and places them. Returns their number. */
static uint32_t pack_parts_settle(splitter *s, range *r) {
  berth__pack_item *items = s->p->items + r->first;
  uint32_t lo = items[0].lo, hi = last_section(items, r->n), count = 0;
  for (uint32_t i = 0; i < r->n && items[i].lo == lo; i++) {
    if (items[i].hi != hi || items[i].tail != 0) continue;
    berth__pack_item item = items[i];
    items[i] = items[count]; /* born in the same section: the order by birth is kept */
    items[count] = item;
    s->p->offsets[r->first + count] = r->base;
    r->base += item.size;
    count++;
  }
  r->first += count;
  r->n -= count;
  if (count > 0 && r->base > s->p->settled) s->p->settled = r->base;
  return count;
}

static berth_status pack_add_part(splitter *s, const range *r, berth_error *err) {
  berth__pack_problem *p = s->p;
  BERTH__TRY(BERTH__RESERVE(p->ctx, p->parts, s->parts_capacity, (size_t)p->n_parts + 1, err));
  berth__pack_part *part = &p->parts[p->n_parts];
  *part = (berth__pack_part){
      .items = p->items + r->first, .offsets = p->offsets + r->first, .n = r->n, .base = r->base, .height = INT64_MAX};
  uint32_t lo = part->items[0].lo;
  part->n_sections = last_section(part->items, part->n) - lo;
  for (uint32_t i = 0; i < part->n; i++) {
    part->items[i].lo -= lo;
    part->items[i].hi -= lo;
  }
  p->n_parts++;
  return berth__pack_lower_bound(p->ctx, part->items, part->n, part->n_sections, &part->lower_bound, err);
}

/* Cuts the range where nothing is alive across the cut; the pieces go on the stack. If there is only one piece, nothing
 * is pushed. */
static berth_status pack_parts_cut(splitter *s, const range *r, uint32_t *pieces, berth_error *err) {
  const berth__pack_item *items = s->p->items + r->first;
  uint32_t start = 0, hi = items[0].hi;
  *pieces = 0;
  for (uint32_t i = 1; i <= r->n; i++) {
    if (i == r->n ? start > 0 : items[i].lo >= hi) {
      BERTH__TRY(push_range(s, r->first + start, i - start, r->base, err));
      start = i;
      ++*pieces;
    }
    if (i < r->n && items[i].hi > hi) hi = items[i].hi;
  }
  return BERTH_OK;
}

static berth_status split_range(splitter *s, range r, berth_error *err) {
  uint64_t allowed = (uint64_t)s->p->n * LOOKS_PER_ITEM;
  for (;;) {
    uint32_t pieces = 0, settled = 0;
    BERTH__TRY(pack_parts_cut(s, &r, &pieces, err));
    if (pieces > 0) return BERTH_OK;
    s->looks += r.n;
    if (s->may_settle && s->looks < allowed) settled = pack_parts_settle(s, &r);
    if (r.n == 0) return BERTH_OK;
    if (settled == 0) return pack_add_part(s, &r, err);
  }
}

berth_status berth__pack_split(berth__pack_problem *p, berth_error *err) {
  if (p->n == 0) return BERTH_OK;
  BERTH__TRY(sort_by_birth(p, err));
  splitter s = {.p = p, .may_settle = same_rules_for_all(p)};
  berth_status status = BERTH_OK;
  BERTH__TRY_OR_FAIL(push_range(&s, 0, p->n, 0, err));
  while (s.n_stack > 0) {
    range r = s.stack[--s.n_stack];
    BERTH__TRY_OR_FAIL(split_range(&s, r, err));
  }
  p->lower_bound = p->settled;
  for (uint32_t i = 0; i < p->n_parts; i++) {
    int64_t bound = p->parts[i].base + p->parts[i].lower_bound;
    if (bound > p->lower_bound) p->lower_bound = bound;
  }
fail:
  berth__free(p->ctx, s.stack);
  return status;
}
