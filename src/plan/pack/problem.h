/* Shared by the parts of the packer: the prepared problem and the remaining effort.
 *
 * Positions and sizes are counted in `unit`s (the greatest common divisor of everything that can matter), so that all
 * decisions use small integers. Every sum of sizes stays below 2^62: prepare.c refuses larger inputs, and nothing after
 * it needs overflow checks. */
#ifndef BERTH_PLAN_PACK_PROBLEM_H
#define BERTH_PLAN_PACK_PROBLEM_H

#include "base/context.h"

#define BERTH__PACK_NO_OFFSET (-1)

/* A buffer with a size and a lifetime. It is alive in the sections [lo, hi), hi > lo: a section is a moment at which a
 * maximal set of buffers is alive, so two items conflict if their section ranges overlap. */
typedef struct berth__pack_item {
  int64_t size;    /* rounded up to the alignment that all items share */
  int64_t tail;    /* how much of the rounding may exceed the end of the block */
  int64_t align;   /* alignment of its offset; 1: none */
  int64_t fixed;   /* its required offset, or BERTH__PACK_NO_OFFSET */
  uint64_t span;   /* its lifetime in the caller's clock, for some orders */
  uint32_t lo, hi; /* its sections */
  uint32_t id;     /* index in the caller's array */
} berth__pack_item;

/* Items without conflicts outside the part: packed on their own, above `base`. */
typedef struct berth__pack_part {
  berth__pack_item *items;
  int64_t *offsets; /* of the best known placement, above base; one per item */
  uint32_t n;
  uint32_t n_sections;
  int64_t base;        /* space below it, taken by buffers that are alive throughout the part */
  int64_t lower_bound; /* of the height, without base */
  int64_t height;      /* of the best known placement, without base; INT64_MAX: none yet */
} berth__pack_part;

typedef struct berth__pack_problem {
  berth_context *ctx;
  berth__pack_item *items; /* after splitting: grouped by part, with settled items in between */
  int64_t *offsets;        /* parallel to items; relative to the base of an item's part */
  berth__pack_part *parts;
  uint32_t n, n_parts;
  uint32_t n_sections; /* before splitting; parts have their own numbering */
  uint64_t unit;       /* bytes per unit */
  uint64_t least_size; /* bytes needed by buffers without a lifetime */
  int64_t settled;     /* top of the items placed by splitting */
  int64_t lower_bound; /* in units */
} berth__pack_problem;

/* Effort, in ticks of about a nanosecond on a desktop of 2020. It is counted by work done, never by a clock, so that
 * results are reproducible. A step of the public interface is BERTH__PACK_STEP ticks. */
enum {
  BERTH__PACK_STEP = 1024
};
#define BERTH__PACK_DEFAULT_EFFORT UINT64_C(800000)

typedef struct berth__pack_budget {
  uint64_t spent, limit; /* ticks */
  uint64_t next_report;  /* ticks at which the next report is due */
  int (*progress)(void *user, const berth_pack_progress *progress);
  void *user;
  uint64_t size, lower_bound; /* bytes, for reports */
  int cancelled;
  uint64_t whole; /* the caller's own limit, for reports: a nested budget may have a lower one */
} berth__pack_budget;

/* Reports progress to the caller when it is due; true if the work should stop. */
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
