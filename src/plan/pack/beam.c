/* Beam search: many placements grow in parallel, and after every item only the most promising ones are kept.
 *
 * A placement grows in the order of offsets. The next item rests on the placed ones, no lower than the previous item
 * (of items at the same offset the one that is born first comes first), so each placement is made in one way only.
 * Taking item i next implies that all other items will lie no lower. An item that has been passed over, because it
 * would rest lower than that, needs something else below it: it will lie on top of an item that was not passed over, or
 * on one that lies on such an item.
 *
 * |   |      b is placed next. a would rest lower: it has been passed over and will lie above c, which
 * | b |      overlaps its lifetime, or not at all. The space below a until then is waste.
 *     a  |___|__c
 *    ____|      |__
 *
 * So every section has a floor below which nothing more will lie. The floor plus the load still to be stacked must stay
 * below the capacity; this detects most dead ends at once, though much later than the propagation of the exact search,
 * which costs a hundred times as much. Unoccupied space below the floor is waste. States are compared by their waste
 * per area placed, both weighted: sections with a large load count more, and so do those in which earlier runs failed.
 *
 * All of it is integer arithmetic except for one division, so that the result is the same everywhere. */
#include "plan/pack/beam.h"

#include <string.h>

#include "plan/pack/prepare.h"
#include "plan/pack/sort.h"

enum {
  NEVER = 1 << 30,   /* higher than every position */
  LARGEST = 1 << 24, /* positions and sums of sizes stay below this: a float holds them exactly */
  FULL_WEIGHT = 1024,
  SPARE = 3,        /* states made per state kept */
  LEAST_WIDTH = 48, /* narrower beams fail */
  MOST_WIDTH = 400,
  N_WASTES = 64,
  MOST_BYTES = 1 << 25
};

/* A partial placement; `rest`, `floor` and `load` are rows of the beam's arrays. */
typedef struct state {
  int64_t waste, area; /* weighted */
  uint64_t hash;       /* of the set of placed items */
  int32_t last;        /* offset of the last placed item */
  uint32_t born;       /* its first section; UINT32_MAX: none is placed */
  uint32_t trail;      /* how it was reached */
} state;

/* A possible placement from a state. */
typedef struct child {
  uint32_t from, item;
} child;

typedef struct step {
  uint32_t before, item; /* an earlier step, or UINT32_MAX */
  int32_t offset;
} step;

typedef struct generation {
  state *states;
  int32_t *rows;  /* per state: rest by item, then floor and load by section; rest is NEVER for placed items */
  uint32_t *kept; /* the states that are kept, best first */
  uint32_t n, n_kept;
} generation;

struct berth__pack_beam {
  berth_context *ctx;
  const berth__pack_item *items;
  uint32_t n, n_sections;
  uint32_t width;
  size_t row;    /* entries of a state's row */
  int32_t limit; /* the capacity plus the largest tail */
  int64_t capacity, largest_tail;
  generation now, next;
  child *children;
  uint32_t n_children;
  uint64_t *key; /* by child, and by state of `next` */
  uint32_t *order, *scratch;
  step *trail;
  size_t n_trail, trail_capacity;
  uint64_t *seen; /* a hash table */
  size_t n_seen;
  uint32_t *twin;   /* by item: an equal one that is placed first, or UINT32_MAX */
  uint64_t *number; /* by item: for hashes */
  int64_t *weight;  /* by section */
  int64_t *blame;   /* by section: how often it eliminated a state recently */
  int64_t *area;    /* by item, weighted */
  int32_t *load;    /* by section */
  float *ground;    /* scratch by section: the floor. Floats, because every processor has a vector minimum for them */
  float *support;   /* scratch by section: the lowest top that an item that was passed over could lie on */
  int32_t *lo, *hi; /* by item: the data for loops over all items, kept compact */
  int aligned;      /* some item has an alignment */
  uint32_t *passed; /* scratch */
  float *low;       /* parallel to passed */
  uint64_t lengths; /* sum of the sections of all items */
  uint64_t ticks;
};

/* ---- Setting up ------------------------------------------------------------------------------------------------ */

static void beam_number_items(berth__pack_beam *b, uint64_t seed) {
  uint64_t random = (seed + UINT64_C(0x9E3779B97F4A7C15)) * UINT64_C(0xD6E8FEB86659FD93) | 1;
  for (uint32_t i = 0; i < b->n; i++) {
    const berth__pack_item *item = &b->items[i];
    b->number[i] = berth__pack_random(&random);
    b->twin[i] = UINT32_MAX;
    b->lo[i] = (int32_t)item->lo;
    b->hi[i] = (int32_t)item->hi;
    if (item->align > 1) b->aligned = 1;
    if (item->tail > b->largest_tail) b->largest_tail = item->tail;
    for (uint32_t j = i; j > 0 && b->items[j - 1].lo == item->lo && b->twin[i] == UINT32_MAX; j--) {
      const berth__pack_item *other = &b->items[j - 1];
      if (other->hi == item->hi && other->size == item->size && other->align == item->align &&
          other->tail == item->tail)
        b->twin[i] = j - 1;
    }
  }
}

/* The square of the load: waste in the fullest sections costs most. */
static void beam_weigh_sections(berth__pack_beam *b) {
  int64_t most = 1;
  for (uint32_t i = 0; i < b->n; i++)
    for (uint32_t s = b->items[i].lo; s < b->items[i].hi; s++) b->load[s] += (int32_t)b->items[i].size;
  for (uint32_t s = 0; s < b->n_sections; s++)
    if (b->load[s] > most) most = b->load[s];
  for (uint32_t s = 0; s < b->n_sections; s++) {
    int64_t share = (int64_t)b->load[s] * FULL_WEIGHT / most;
    b->weight[s] = 1 + share * share / FULL_WEIGHT;
  }
}

static berth_status beam_generation_create(berth__pack_beam *b, generation *g, berth_error *err) {
  size_t states = (size_t)b->width * SPARE;
  g->states = berth__alloc_array(b->ctx, states, sizeof *g->states);
  g->rows = berth__alloc_array(b->ctx, states, b->row * sizeof *g->rows);
  g->kept = berth__alloc_array(b->ctx, states, sizeof *g->kept);
  if (g->states == NULL || g->rows == NULL || g->kept == NULL) return berth__fail_nomem(err, "searching a packing");
  return BERTH_OK;
}

static berth_status beam_allocate(berth__pack_beam *b, berth_error *err) {
  size_t n = b->n, s = b->n_sections, most = (size_t)b->width * (n > SPARE ? n : SPARE);
  BERTH__TRY(beam_generation_create(b, &b->now, err));
  BERTH__TRY(beam_generation_create(b, &b->next, err));
  for (b->n_seen = 64; b->n_seen < (size_t)b->width * SPARE * 4;) b->n_seen *= 2;
  b->children = berth__alloc_array(b->ctx, most, sizeof *b->children);
  b->key = berth__alloc_array(b->ctx, most, sizeof *b->key);
  b->order = berth__alloc_array(b->ctx, most * 2, sizeof *b->order);
  b->seen = berth__alloc_array(b->ctx, b->n_seen, sizeof *b->seen);
  b->twin = berth__alloc_array(b->ctx, n * 2, sizeof *b->twin);
  b->number = berth__alloc_array(b->ctx, n, sizeof *b->number);
  b->weight = berth__alloc_array_zero(b->ctx, s * 2, sizeof *b->weight);
  b->area = berth__alloc_array(b->ctx, n, sizeof *b->area);
  b->load = berth__alloc_array_zero(b->ctx, s, sizeof *b->load);
  b->low = berth__alloc_array(b->ctx, n + s * 2, sizeof *b->low);
  b->lo = berth__alloc_array(b->ctx, n * 2, sizeof *b->lo);
  if (b->children == NULL || b->key == NULL || b->order == NULL || b->seen == NULL || b->twin == NULL ||
      b->number == NULL || b->weight == NULL || b->area == NULL || b->load == NULL || b->low == NULL || b->lo == NULL)
    return berth__fail_nomem(err, "searching a packing");
  b->scratch = b->order + most;
  b->passed = b->twin + n;
  b->blame = b->weight + s;
  b->ground = b->low + n;
  b->support = b->low + n + s;
  b->hi = b->lo + n;
  return BERTH_OK;
}

/* How many states effort and memory allow. */
static uint32_t beam_width(const berth__pack_part *part, uint64_t ticks) {
  uint64_t lengths = 0, n = part->n;
  for (uint32_t i = 0; i < part->n; i++) lengths += part->items[i].hi - part->items[i].lo;
  uint64_t each = SPARE * (n * 2 + lengths / 7) + n * 3 + 500, width = ticks / (each * n);
  uint64_t fits = MOST_BYTES / ((n + 2 * (uint64_t)part->n_sections) * sizeof(int32_t) * SPARE * 2);
  if (width > fits) width = fits;
  return width > MOST_WIDTH ? MOST_WIDTH : (uint32_t)width;
}

int berth__pack_beam_suits(const berth__pack_part *part, uint64_t ticks) {
  int64_t sum = 0;
  for (uint32_t i = 0; i < part->n; i++) {
    if (part->items[i].fixed >= 0) return 0;
    sum += part->items[i].size + part->items[i].align;
    if (sum >= LARGEST) return 0;
  }
  return beam_width(part, ticks) >= LEAST_WIDTH;
}

berth_status berth__pack_beam_create(berth_context *ctx, const berth__pack_part *part, uint64_t seed, uint64_t ticks,
                                     berth__pack_beam **out, berth_error *err) {
  *out = NULL;
  berth__pack_beam *b = berth__alloc_zero(ctx, sizeof *b);
  if (b == NULL) return berth__fail_nomem(err, "searching a packing");
  b->ctx = ctx;
  b->items = part->items;
  b->n = part->n;
  b->n_sections = part->n_sections;
  b->row = (size_t)part->n + 2 * (size_t)part->n_sections;
  for (uint32_t i = 0; i < b->n; i++) b->lengths += b->items[i].hi - b->items[i].lo;
  b->width = beam_width(part, ticks);
  berth_status status = beam_allocate(b, err);
  if (status != BERTH_OK) {
    berth__pack_beam_destroy(b);
    return status;
  }
  beam_number_items(b, seed);
  beam_weigh_sections(b);
  *out = b;
  return BERTH_OK;
}

static void beam_generation_destroy(berth_context *ctx, generation *g) {
  berth__free(ctx, g->kept);
  berth__free(ctx, g->rows);
  berth__free(ctx, g->states);
}

void berth__pack_beam_destroy(berth__pack_beam *b) {
  if (b == NULL) return;
  berth_context *ctx = b->ctx;
  berth__free(ctx, b->trail);
  berth__free(ctx, b->lo);
  berth__free(ctx, b->low);
  berth__free(ctx, b->load);
  berth__free(ctx, b->area);
  berth__free(ctx, b->weight);
  berth__free(ctx, b->number);
  berth__free(ctx, b->twin);
  berth__free(ctx, b->seen);
  berth__free(ctx, b->order);
  berth__free(ctx, b->key);
  berth__free(ctx, b->children);
  beam_generation_destroy(ctx, &b->next);
  beam_generation_destroy(ctx, &b->now);
  berth__free(ctx, b);
}

/* ---- Candidates for the next item ------------------------------------------------------------------------------ */

static int32_t *beam_rest(const berth__pack_beam *b, const generation *g, uint32_t at) { return g->rows + at * b->row; }

/* The order of states: waste per area. Positive floats have the order of their bits. */
static uint64_t beam_key(int64_t waste, int64_t area) {
  float ratio = (float)((double)(waste + 1) / (double)area);
  uint32_t bits;
  memcpy(&bits, &ratio, sizeof bits);
  return bits;
}

/* The waste of lifting all floors to x. */
static int64_t beam_lift(const berth__pack_beam *b, const int32_t *floor, int32_t x) {
  int64_t waste = 0;
  for (uint32_t s = 0; s < b->n_sections; s++) waste += b->weight[s] * (x > floor[s] ? x - floor[s] : 0);
  return waste;
}

/* Lists the children of a state. Many items rest at the same height, so the cost of lifting is cached. */
static void beam_expand(berth__pack_beam *b, uint32_t from) {
  const state *st = &b->now.states[from];
  const int32_t *rest = beam_rest(b, &b->now, from), *floor = rest + b->n, *load = floor + b->n_sections;
  int32_t highest = NEVER, known[N_WASTES];
  int64_t wastes[N_WASTES];
  uint32_t before = b->n_children;
  for (uint32_t s = 0; s < b->n_sections; s++) {
    int32_t most = load[s] > 0 ? b->limit - load[s] : NEVER;
    if (most < highest) highest = most;
  }
  for (uint32_t k = 0; k < N_WASTES; k++) known[k] = -1;
  for (uint32_t i = 0; i < b->n; i++) {
    int32_t x = rest[i];
    if (x > highest || x < st->last) continue;
    if (x == st->last && st->born != UINT32_MAX && b->items[i].lo <= st->born) continue;
    if (b->twin[i] != UINT32_MAX && rest[b->twin[i]] != NEVER) continue;
    uint32_t k = (uint32_t)x % N_WASTES;
    if (known[k] != x) {
      known[k] = x;
      wastes[k] = beam_lift(b, floor, x);
      b->ticks += b->n_sections / 2;
    }
    b->key[b->n_children] = beam_key(st->waste + wastes[k], st->area + b->area[i]);
    b->children[b->n_children++] = (child){from, i};
  }
  b->ticks += b->n + (b->n_children - before) * 6;
  if (b->n_children > before) return;
  for (uint32_t s = 0; s < b->n_sections; s++)
    if (load[s] > 0 && b->limit - load[s] == highest) b->blame[s] += FULL_WEIGHT * 3;
}

/* ---- Making a state -------------------------------------------------------------------------------------------- */

/* The entry of a set with this hash in the table of the generation, or a free one for it. */
static uint64_t *beam_slot(const berth__pack_beam *b, uint64_t hash) {
  size_t at = (hash >> 20) & (b->n_seen - 1);
  while (b->seen[at] != 0 && b->seen[at] != (hash | 1)) at = (at + 1) & (b->n_seen - 1);
  return &b->seen[at];
}

/* Lifts items that conflict with a placed item onto its top; placed items are higher than every top. */
static void beam_place(const berth__pack_beam *b, uint32_t i, int32_t x, int32_t *restrict rest, int32_t *load) {
  const int32_t *restrict lo = b->lo, *restrict hi = b->hi;
  int32_t size = (int32_t)b->items[i].size, top = x + size, from = lo[i], to = hi[i];
  rest[i] = NEVER;
  for (int32_t s = from; s < to; s++) load[s] -= size;
  for (uint32_t j = 0; j < b->n; j++) {
    int32_t lifted = rest[j] < top ? top : rest[j];
    rest[j] = ((lo[j] < to) & (hi[j] > from)) ? lifted : rest[j];
  }
  for (uint32_t j = 0; j < b->n && b->aligned; j++)
    if (rest[j] == top) rest[j] = (int32_t)berth__pack_align_up(top, b->items[j].align);
}

static void beam_lower_to(float *restrict values, uint32_t from, uint32_t to, float x) {
  for (uint32_t s = from; s < to; s++) values[s] = x < values[s] ? x : values[s];
}

static float beam_least_of(const float *values, uint32_t from, uint32_t to) {
  float x = NEVER;
  for (uint32_t s = from; s < to; s++) x = values[s] < x ? values[s] : x;
  return x;
}

/* The lowest positions of items that were passed over: above an item that was not, then above one of themselves. */
static int beam_floor_passed(berth__pack_beam *b, uint32_t n_passed) {
  for (uint32_t k = 0; k < n_passed; k++) {
    const berth__pack_item *item = &b->items[b->passed[k]];
    b->low[k] = beam_least_of(b->support, item->lo, item->hi);
  }
  for (uint32_t k = 0; k < n_passed; k++) {
    const berth__pack_item *item = &b->items[b->passed[k]];
    if (b->low[k] < NEVER) beam_lower_to(b->support, item->lo, item->hi, b->low[k] + (float)item->size);
  }
  for (uint32_t k = 0; k < n_passed; k++) {
    const berth__pack_item *item = &b->items[b->passed[k]];
    float x = beam_least_of(b->support, item->lo, item->hi);
    if (x > (float)(b->limit - item->size)) {
      for (uint32_t s = item->lo; s < item->hi; s++) b->blame[s] += FULL_WEIGHT / 8;
      return 0;
    }
    beam_lower_to(b->ground, item->lo, item->hi, x);
  }
  return 1;
}

/* The floors after an item at x, born in section `born`. False: a dead end. */
static int beam_floors(berth__pack_beam *b, const int32_t *rest, int32_t x, uint32_t born, int32_t *floor) {
  uint32_t n_passed = 0;
  float *restrict ground = b->ground, *restrict support = b->support;
  for (uint32_t s = 0; s < b->n_sections; s++) ground[s] = support[s] = NEVER;
  for (uint32_t j = 0; j < b->n; j++) {
    if (rest[j] == NEVER) continue;
    uint32_t from = (uint32_t)b->lo[j], to = (uint32_t)b->hi[j];
    if (rest[j] < x || (rest[j] == x && from <= born)) {
      b->passed[n_passed++] = j;
      continue;
    }
    float low = (float)rest[j], top = low + (float)b->items[j].size;
    for (uint32_t s = from; s < to; s++) {
      ground[s] = low < ground[s] ? low : ground[s];
      support[s] = top < support[s] ? top : support[s];
    }
  }
  if (n_passed > 0 && !beam_floor_passed(b, n_passed)) return 0;
  for (uint32_t s = 0; s < b->n_sections; s++) floor[s] = (int32_t)ground[s];
  return 1;
}

/* Checks every section and sums up the waste. Finished sections no longer count. */
static int beam_judge(berth__pack_beam *b, const int32_t *floor, const int32_t *load, int64_t *waste) {
  int possible = 1;
  *waste = 0;
  for (uint32_t s = 0; s < b->n_sections; s++) {
    if (load[s] == 0) continue;
    if (floor[s] > b->limit - load[s]) {
      b->blame[s] += FULL_WEIGHT;
      possible = 0;
    } else {
      *waste += b->weight[s] * (floor[s] - (b->load[s] - load[s]));
    }
  }
  return possible;
}

/* Makes a state from a child, if it is new and not a dead end. */
static berth_status beam_make(berth__pack_beam *b, const child *c, berth_error *err) {
  const state *from = &b->now.states[c->from];
  const berth__pack_item *item = &b->items[c->item];
  state *to = &b->next.states[b->next.n];
  int32_t *rest = beam_rest(b, &b->next, b->next.n), *floor = rest + b->n, *load = floor + b->n_sections;
  uint64_t hash = from->hash ^ b->number[c->item];
  uint64_t *slot = beam_slot(b, hash);
  if (*slot != 0) return BERTH_OK;
  memcpy(rest, beam_rest(b, &b->now, c->from), b->row * sizeof *rest);
  int32_t x = rest[c->item];
  b->ticks += b->n * 2 + b->lengths / 7 + b->n_sections / 2 + 100;
  if (x + item->size - item->tail > b->capacity) return BERTH_OK;
  beam_place(b, c->item, x, rest, load);
  int64_t waste;
  if (!beam_floors(b, rest, x, item->lo, floor) || !beam_judge(b, floor, load, &waste)) return BERTH_OK;
  BERTH__TRY(BERTH__RESERVE(b->ctx, b->trail, b->trail_capacity, b->n_trail + 1, err));
  b->trail[b->n_trail] = (step){from->trail, c->item, x};
  *to = (state){.waste = waste,
                .area = from->area + b->area[c->item],
                .hash = hash,
                .last = x,
                .born = item->lo,
                .trail = (uint32_t)b->n_trail++};
  b->next.n++;
  *slot = hash | 1;
  return BERTH_OK;
}

/* ---- Generations ----------------------------------------------------------------------------------------------- */

static void beam_start(berth__pack_beam *b, int64_t capacity) {
  b->capacity = capacity;
  b->limit = (int32_t)(capacity + b->largest_tail < LARGEST ? capacity + b->largest_tail : LARGEST);
  b->n_trail = 0;
  for (uint32_t i = 0; i < b->n; i++) {
    b->area[i] = 0;
    for (uint32_t s = b->items[i].lo; s < b->items[i].hi; s++) b->area[i] += b->weight[s] * b->items[i].size;
  }
  b->now.states[0] = (state){.born = UINT32_MAX, .trail = UINT32_MAX};
  b->now.kept[0] = 0;
  b->now.n = b->now.n_kept = 1;
  memset(b->now.rows, 0, ((size_t)b->n + b->n_sections) * sizeof *b->now.rows);
  memcpy(b->now.rows + b->n + b->n_sections, b->load, b->n_sections * sizeof *b->load);
  memset(b->blame, 0, b->n_sections * sizeof *b->blame);
}

/* From one generation to the next. Children are made in the order of their estimates, and the best of them are kept by
 * their actual values. */
static berth_status beam_advance(berth__pack_beam *b, berth_error *err) {
  b->n_children = 0;
  for (uint32_t k = 0; k < b->now.n_kept; k++) beam_expand(b, b->now.kept[k]);
  for (uint32_t k = 0; k < b->n_children; k++) b->order[k] = k;
  berth__pack_sort(b->order, b->n_children, b->key, b->scratch);
  memset(b->seen, 0, b->n_seen * sizeof *b->seen);
  b->next.n = 0;
  uint32_t most = b->width * SPARE;
  for (uint32_t k = 0; k < b->n_children && b->next.n < most; k++)
    BERTH__TRY(beam_make(b, &b->children[b->order[k]], err));
  for (uint32_t k = 0; k < b->next.n; k++) {
    b->next.kept[k] = k;
    b->key[k] = beam_key(b->next.states[k].waste, b->next.states[k].area);
  }
  berth__pack_sort(b->next.kept, b->next.n, b->key, b->scratch);
  b->next.n_kept = b->next.n < b->width ? b->next.n : b->width;
  for (uint32_t s = 0; s < b->n_sections; s++) b->blame[s] -= b->blame[s] / 4; /* recent ones count most */
  b->ticks += b->n_children * 3;
  generation swap = b->now;
  b->now = b->next;
  b->next = swap;
  return BERTH_OK;
}

/* Sections that eliminated states in the failed run get more weight; a fifth of all weights is redistributed to
 * them. */
static void beam_learn(berth__pack_beam *b) {
  int64_t blame = 0, weight = 0;
  for (uint32_t s = 0; s < b->n_sections; s++) {
    blame += b->blame[s];
    weight += b->weight[s];
  }
  if (weight > (int64_t)FULL_WEIGHT * FULL_WEIGHT * b->n_sections) return; /* learned enough; sums must not overflow */
  for (uint32_t s = 0; s < b->n_sections && blame > 0; s++)
    b->weight[s] += (int64_t)((double)weight / 5 * ((double)b->blame[s] / (double)blame));
}

berth_status berth__pack_beam_run(berth__pack_beam *b, int64_t capacity, berth__pack_budget *budget, int64_t *offsets,
                                  int *found, berth_error *err) {
  *found = 0;
  beam_start(b, capacity);
  for (uint32_t level = 0; level < b->n; level++) {
    BERTH__TRY(beam_advance(b, err));
    budget->spent += b->ticks;
    b->ticks = 0;
    if (b->now.n_kept == 0) {
      beam_learn(b);
      return BERTH_OK;
    }
    if (berth__pack_budget_over(budget)) return BERTH_OK;
  }
  for (uint32_t at = b->now.states[b->now.kept[0]].trail; at != UINT32_MAX; at = b->trail[at].before)
    offsets[b->trail[at].item] = b->trail[at].offset;
  *found = 1;
  return BERTH_OK;
}
