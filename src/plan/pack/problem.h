/* What the parts of the packer hand to each other: the prepared problem and the effort that is left.
 *
 * Positions and sizes are counted in `unit`s (the greatest common divisor of everything that can matter), so that all
 * decisions are made on small integers. Every sum of sizes stays below 2^62: prepare.c refuses larger inputs, and
 * nothing after it needs overflow checks. */
#ifndef BERTH_PLAN_PACK_PROBLEM_H
#define BERTH_PLAN_PACK_PROBLEM_H

#include "base/context.h"

#define BERTH__PACK_NO_OFFSET (-1)

/* A buffer that takes room for some time. It is alive in the sections [lo, hi), hi > lo: a section is a moment at
 * which a maximal set of buffers lives together, so two items conflict when their section ranges overlap. */
typedef struct berth__pack_item {
  int64_t size;    /* room it takes: rounded up to the alignment that all items share */
  int64_t tail;    /* how much of that rounding may stick out above the end of the block */
  int64_t align;   /* its offset is a multiple of this; 1: anywhere */
  int64_t fixed;   /* the offset it must have, or BERTH__PACK_NO_OFFSET */
  uint64_t span;   /* its lifetime in the caller's clock, for orders that look at it */
  uint32_t lo, hi; /* sections */
  uint32_t id;     /* index in the caller's array */
} berth__pack_item;

/* Items that conflict with no item outside: packed on their own, above `base`. */
typedef struct berth__pack_part {
  berth__pack_item *items;
  int64_t *offsets; /* of the best placement known, above base; one for each item */
  uint32_t n;
  uint32_t n_sections;
  int64_t base;        /* room below that buffers alive in the whole part have taken */
  int64_t lower_bound; /* of the height, without base */
  int64_t height;      /* of the best placement known, without base; INT64_MAX: none yet */
} berth__pack_part;

typedef struct berth__pack_problem {
  berth_context *ctx;
  berth__pack_item *items; /* after splitting: grouped by part, those that are settled in between */
  int64_t *offsets;        /* beside items; of a part's items above its base */
  berth__pack_part *parts;
  uint32_t n, n_parts;
  uint32_t n_sections; /* before splitting; parts count their own */
  uint64_t unit;       /* bytes in one unit */
  uint64_t least_size; /* bytes that buffers without a lifetime need */
  int64_t settled;     /* top of the items that splitting has placed */
  int64_t lower_bound; /* units; no placement is smaller */
} berth__pack_problem;

/* Effort, counted in ticks of about a nanosecond on a desktop of 2020 - by what was done, never by a clock, so that
 * the result is the same everywhere. A step of the public interface is BERTH__PACK_STEP ticks. */
enum {
  BERTH__PACK_STEP = 1024
};
#define BERTH__PACK_DEFAULT_EFFORT UINT64_C(800000)

typedef struct berth__pack_budget {
  uint64_t spent, limit; /* ticks */
  uint64_t next_report;  /* ticks at which the caller is told again */
  int (*progress)(void *user, const berth_pack_progress *progress);
  void *user;
  uint64_t size, lower_bound; /* bytes, for the caller's eyes */
  int cancelled;
  uint64_t whole; /* the limit as the caller has set it, for its eyes too: a layer below may have less */
} berth__pack_budget;

/* Tells the caller how far things are when it is time to; true when the work should stop. */
int berth__pack_budget_over(berth__pack_budget *budget);

/* A small deterministic generator (xorshift64*); the state is never 0. */
static inline uint64_t berth__pack_random(uint64_t *state) {
  uint64_t x = *state;
  x ^= x >> 12;
  x ^= x << 25;
  x ^= x >> 27;
  *state = x;
  return x * UINT64_C(0x2545F4914F6CDD1D);
}

static inline int64_t berth__pack_align_up(int64_t x, int64_t align) {
  if (align <= 1) return x;
  int64_t rest = x % align;
  return rest == 0 ? x : x + (align - rest);
}

static inline int berth__pack_conflict(const berth__pack_item *a, const berth__pack_item *b) {
  return a->lo < b->hi && b->lo < a->hi;
}

#endif
