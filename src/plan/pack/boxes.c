/* Boxes: items that fit together are packed as one.
 *
 * Two items become a box, two boxes a larger one. Those that are alive together are stacked; others are placed side by
 * side:
 *
 * ___________       _______________
 * |     b     |     |      |        |     A box takes no more area than its two parts if their lifetimes, or
 * |___________|     |  a   |   b    |     their sizes, are equal. Otherwise the excess is waste, which costs
 * |     a     |     |      |        |     little where the load is small.
 *    |___________|     |______|________|
 *
 * The cheapest box is made first. A load never rises above the lower bound of the part, so the boxes have the same
 * bound. Small items with a partner disappear, and what is left is what makes the packing difficult: half as many items
 * or fewer, for which the search finds placements that it could not find in time for all items. But a packing of boxes
 * is a special one: if there is none within a capacity, that says nothing about the items. */
#include "plan/pack/boxes.h"

#include "plan/pack/firstfit.h"
#include "plan/pack/prepare.h"
#include "plan/pack/sort.h"

#define NO_BOX UINT32_MAX

enum {
  FULL_WEIGHT = 1024,
  MOST_SIZE = 5, /* a box is at most this fraction of the lower bound high, because large ones are hard to place */
  COARSE_BITS = 20
};

typedef struct box {
  uint32_t lo, hi; /* sections */
  int64_t size, align;
  uint32_t left, right; /* its parts; NO_BOX for an item */
  int stacked;          /* right is on top of left, not beside it */
  uint32_t partner;     /* the cheapest one when last searched; NO_BOX: none */
  int64_t cost;         /* of a box with the partner */
} box;

typedef struct boxer {
  berth_context *ctx;
  const berth__pack_part *part;
  box *boxes; /* the items first, then the boxes made from them */
  uint32_t n_boxes;
  uint32_t *open; /* those that are not in another box */
  uint32_t n_open;
  int64_t *load;
  int64_t *weight; /* by section: prefix sums of the weights */
  unsigned shift;  /* sizes are shifted by this before weighting, so that areas fit in 64 bits */
  int64_t spare;   /* the area that may still be wasted */
  uint64_t ticks;
} boxer;

/* ---- The cost of a box ----------------------------------------------------------------------------------------- */

/* Rounded up: a box with waste is never free. */
static int64_t boxes_coarse(const boxer *b, int64_t size) {
  return (size + ((INT64_C(1) << b->shift) - 1)) >> b->shift;
}

static box boxes_joined(const boxer *b, uint32_t i, uint32_t j) {
  const box *p = &b->boxes[i], *q = &b->boxes[j];
  box both = {.lo = p->lo < q->lo ? p->lo : q->lo,
              .hi = p->hi > q->hi ? p->hi : q->hi,
              .size = p->size > q->size ? p->size : q->size,
              .align = p->align,
              .left = i,
              .right = j,
              .stacked = p->lo < q->hi && q->lo < p->hi,
              .partner = NO_BOX};
  if (both.stacked) both.size = p->size + q->size;
  return both;
}

static int boxes_may_join(const boxer *b, const box *both) {
  const box *p = &b->boxes[both->left], *q = &b->boxes[both->right];
  if (both->size > b->part->lower_bound / MOST_SIZE || p->align != q->align) return 0;
  return !both->stacked || p->align <= 1 || p->size % p->align == 0;
}

/* The waste of a box, where [lo, hi) counts as weight[hi] - weight[lo]; without weights, as its number of sections. */
static int64_t boxes_waste(const boxer *b, const box *both, const int64_t *weight) {
  const box *p = &b->boxes[both->left], *q = &b->boxes[both->right];
  int64_t all = both->hi - both->lo, of_p = p->hi - p->lo, of_q = q->hi - q->lo;
  if (weight != NULL) {
    all = weight[both->hi] - weight[both->lo];
    of_p = weight[p->hi] - weight[p->lo];
    of_q = weight[q->hi] - weight[q->lo];
  }
  if (both->stacked) return (all - of_p) * boxes_coarse(b, p->size) + (all - of_q) * boxes_coarse(b, q->size);
  return (all - of_p - of_q) * boxes_coarse(b, both->size) + of_p * boxes_coarse(b, both->size - p->size) +
         of_q * boxes_coarse(b, both->size - q->size);
}

/* The box's excess over its two parts in a section. */
static int64_t boxes_more(const boxer *b, const box *both, uint32_t s) {
  const box *p = &b->boxes[both->left], *q = &b->boxes[both->right];
  return both->size - (s >= p->lo && s < p->hi ? p->size : 0) - (s >= q->lo && s < q->hi ? q->size : 0);
}

static int boxes_fits(boxer *b, const box *both) {
  b->ticks += (both->hi - both->lo) * 2;
  for (uint32_t s = both->lo; s < both->hi; s++) {
    int64_t more = boxes_more(b, both, s);
    if (more > 0 && b->load[s] + more > b->part->lower_bound) return 0;
  }
  return 1;
}

/* ---- Choosing boxes -------------------------------------------------------------------------------------------- */

static void boxes_compare(boxer *b, uint32_t i, uint32_t j) {
  box both = boxes_joined(b, i, j);
  b->ticks += 8;
  if (!boxes_may_join(b, &both)) return;
  int64_t cost = boxes_waste(b, &both, b->weight);
  if (cost >= b->boxes[i].cost || !boxes_fits(b, &both)) return;
  b->boxes[i].cost = cost;
  b->boxes[i].partner = j;
}

static void boxes_find_partner(boxer *b, uint32_t i) {
  b->boxes[i].cost = INT64_MAX;
  b->boxes[i].partner = NO_BOX;
  for (uint32_t k = 0; k < b->n_open; k++)
    if (b->open[k] != i) boxes_compare(b, i, b->open[k]);
}

static void boxes_join(boxer *b, const box *both) {
  uint32_t made = b->n_boxes++, n = 0;
  for (uint32_t s = both->lo; s < both->hi; s++) b->load[s] += boxes_more(b, both, s);
  b->boxes[made] = *both;
  for (uint32_t k = 0; k < b->n_open; k++)
    if (b->open[k] != both->left && b->open[k] != both->right) b->open[n++] = b->open[k];
  b->open[n++] = made;
  b->n_open = n;
  boxes_find_partner(b, made);
  for (uint32_t k = 0; k + 1 < n; k++) {
    uint32_t i = b->open[k], partner = b->boxes[i].partner;
    if (partner == both->left || partner == both->right)
      boxes_find_partner(b, i);
    else
      boxes_compare(b, i, made);
  }
}

static void boxes_shuffle(boxer *b, uint64_t seed) {
  uint64_t random = seed * UINT64_C(0x9E3779B97F4A7C15) | 1;
  for (uint32_t k = b->n_open; k > 1; k--) {
    uint32_t other = (uint32_t)((berth__pack_random(&random) >> 32) * k >> 32), swap = b->open[k - 1];
    b->open[k - 1] = b->open[other];
    b->open[other] = swap;
  }
}

/* Makes the cheapest box repeatedly, until too much would be wasted. Loads only rise: a box that has become too high
 * stays so, and its first part has to find another partner. */
static void boxes_join_all(boxer *b) {
  for (uint32_t k = 0; k < b->n_open; k++) boxes_find_partner(b, b->open[k]);
  for (;;) {
    uint32_t best = NO_BOX;
    int64_t cost = INT64_MAX;
    for (uint32_t k = 0; k < b->n_open; k++) {
      const box *candidate = &b->boxes[b->open[k]];
      if (candidate->cost >= cost) continue;
      cost = candidate->cost;
      best = b->open[k];
    }
    b->ticks += b->n_open;
    if (best == NO_BOX) return;
    box both = boxes_joined(b, best, b->boxes[best].partner);
    if (!boxes_fits(b, &both)) {
      boxes_find_partner(b, best);
      continue;
    }
    int64_t waste = boxes_waste(b, &both, NULL);
    if (waste > b->spare) return;
    b->spare -= waste;
    boxes_join(b, &both);
  }
}

/* ---- Setting up and handing out -------------------------------------------------------------------------------- */

/* The fourth power of the load: a nearly full section cannot afford waste. */
static void boxes_weigh_sections(boxer *b) {
  int64_t most = 1, sum = 0;
  for (uint32_t s = 0; s < b->part->n_sections; s++)
    if (b->load[s] > most) most = b->load[s];
  while (most >> b->shift >= INT64_C(1) << COARSE_BITS) b->shift++;
  for (uint32_t s = 0; s < b->part->n_sections; s++) {
    int64_t share = boxes_coarse(b, b->load[s]) * FULL_WEIGHT / boxes_coarse(b, most);
    share = share * share / FULL_WEIGHT;
    b->weight[s] = sum;
    sum += 1 + share * share / FULL_WEIGHT;
  }
  b->weight[b->part->n_sections] = sum;
}

static berth_status boxer_create(boxer *b, uint32_t percent, berth_error *err) {
  const berth__pack_part *part = b->part;
  size_t n = part->n, sections = part->n_sections;
  b->boxes = berth__alloc_array(b->ctx, n * 2, sizeof *b->boxes);
  b->open = berth__alloc_array(b->ctx, n, sizeof *b->open);
  b->load = berth__alloc_array(b->ctx, sections * 2 + 1, sizeof *b->load);
  if (b->boxes == NULL || b->open == NULL || b->load == NULL) return berth__fail_nomem(err, "boxing a packing");
  b->weight = b->load + sections;
  berth__pack_loads(part->items, part->n, part->n_sections, b->load);
  boxes_weigh_sections(b);
  for (uint32_t i = 0; i < part->n; i++) {
    const berth__pack_item *item = &part->items[i];
    b->boxes[i] = (box){.lo = item->lo,
                        .hi = item->hi,
                        .size = item->size,
                        .align = item->align,
                        .left = NO_BOX,
                        .right = NO_BOX,
                        .partner = NO_BOX};
    b->open[i] = i;
    b->spare += boxes_coarse(b, item->size) * (item->hi - item->lo);
  }
  b->n_boxes = b->n_open = part->n;
  b->spare = b->spare / 100 * percent;
  return BERTH_OK;
}

static void boxer_destroy(boxer *b) {
  berth__free(b->ctx, b->load);
  berth__free(b->ctx, b->open);
  berth__free(b->ctx, b->boxes);
}

/* The positions of the items: a box is newer than its contents, so going from the newest down, every box knows its
 * position. */
static berth_status boxes_hand_out(const boxer *b, berth__pack_boxes *out, berth_error *err) {
  uint32_t *outer = berth__alloc_array(b->ctx, b->n_boxes, sizeof *outer);
  int64_t *above = berth__alloc_array(b->ctx, b->n_boxes, sizeof *above);
  berth_status status = BERTH_OK;
  if (outer == NULL || above == NULL) {
    status = berth__fail_nomem(err, "boxing a packing");
    goto fail;
  }
  out->n = b->n_open;
  for (uint32_t k = 0; k < b->n_open; k++) {
    const box *made = &b->boxes[b->open[k]];
    outer[b->open[k]] = k;
    above[b->open[k]] = 0;
    out->buffers[k] = (berth_pack_buffer){.size = (uint64_t)made->size,
                                          .align = (uint64_t)made->align,
                                          .lower = made->lo,
                                          .upper = made->hi,
                                          .offset = BERTH_PACK_FREE};
  }
  for (uint32_t k = b->n_boxes; k-- > b->part->n;) {
    const box *made = &b->boxes[k];
    outer[made->left] = outer[made->right] = outer[k];
    above[made->left] = above[k];
    above[made->right] = above[k] + (made->stacked ? b->boxes[made->left].size : 0);
  }
  for (uint32_t i = 0; i < b->part->n; i++) {
    out->box_of[i] = outer[i];
    out->within[i] = above[i];
  }
fail:
  berth__free(b->ctx, above);
  berth__free(b->ctx, outer);
  return status;
}

berth_status berth__pack_boxes_make(berth_context *ctx, const berth__pack_part *part, uint32_t percent,
                                    uint64_t shuffle, berth__pack_boxes *out, uint64_t *ticks, berth_error *err) {
  *out = (berth__pack_boxes){.ctx = ctx};
  boxer b = {.ctx = ctx, .part = part};
  int fixed = 0;
  berth_status status;
  for (uint32_t i = 0; i < part->n; i++) fixed |= part->items[i].fixed >= 0;
  out->buffers = berth__alloc_array(ctx, part->n, sizeof *out->buffers);
  out->box_of = berth__alloc_array(ctx, part->n, sizeof *out->box_of);
  out->within = berth__alloc_array(ctx, part->n, sizeof *out->within);
  if (out->buffers == NULL || out->box_of == NULL || out->within == NULL) {
    status = berth__fail_nomem(err, "boxing a packing");
    goto fail;
  }
  BERTH__TRY_OR_FAIL(boxer_create(&b, percent, err));
  if (shuffle != 0) boxes_shuffle(&b, shuffle);
  if (!fixed) boxes_join_all(&b);
  *ticks += b.ticks;
  BERTH__TRY_OR_FAIL(boxes_hand_out(&b, out, err));
fail:
  boxer_destroy(&b);
  if (status != BERTH_OK) berth__pack_boxes_release(out);
  return status;
}

void berth__pack_boxes_release(berth__pack_boxes *boxes) {
  if (boxes->ctx == NULL) return;
  berth__free(boxes->ctx, boxes->within);
  berth__free(boxes->ctx, boxes->box_of);
  berth__free(boxes->ctx, boxes->buffers);
  *boxes = (berth__pack_boxes){0};
}

/* First-fit in the order of the offsets: an item's position inside its box is still free at its turn. */
static berth_status boxes_settle(berth__pack_skyline *sky, const berth__pack_part *part, const uint32_t *order,
                                 int64_t *offsets, uint64_t *ticks, berth_error *err) {
  for (uint32_t k = 0; k < part->n; k++) {
    uint32_t i = order[k];
    BERTH__TRY(berth__pack_skyline_place(sky, &part->items[i], BERTH__PACK_FIRST_FIT, &offsets[i], ticks, err));
  }
  return BERTH_OK;
}

berth_status berth__pack_boxes_open(const berth__pack_boxes *boxes, const berth__pack_part *part,
                                    const uint64_t *box_offsets, int64_t *offsets, uint64_t *ticks, berth_error *err) {
  size_t n = part->n;
  berth__pack_skyline *sky = NULL;
  uint32_t *order = berth__alloc_array(boxes->ctx, n * 2, sizeof *order);
  uint64_t *key = berth__alloc_array(boxes->ctx, n, sizeof *key);
  berth_status status;
  if (order == NULL || key == NULL) {
    status = berth__fail_nomem(err, "boxing a packing");
    goto fail;
  }
  for (uint32_t i = 0; i < n; i++) {
    order[i] = i;
    key[i] = box_offsets[boxes->box_of[i]] + (uint64_t)boxes->within[i];
  }
  berth__pack_sort(order, n, key, order + n);
  BERTH__TRY_OR_FAIL(berth__pack_skyline_create(boxes->ctx, part->n_sections, &sky, err));
  BERTH__TRY_OR_FAIL(boxes_settle(sky, part, order, offsets, ticks, err));
fail:
  berth__pack_skyline_destroy(sky);
  berth__free(boxes->ctx, key);
  berth__free(boxes->ctx, order);
  return status;
}
