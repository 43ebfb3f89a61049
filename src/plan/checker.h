/* The state of the checker, for its files alone. */
#ifndef BERTH_PLAN_CHECKER_H
#define BERTH_PLAN_CHECKER_H

#include "graph/region.h"
#include "plan/plan.h"

typedef struct berth__range {
  uint64_t low, high; /* bytes [low, high) of the arena; equal: none */
} berth__range;

/* An empty range overlaps nothing, wherever it lies. */
static inline bool berth__overlap(berth__range a, berth__range b) {
  return (a.low > b.low ? a.low : b.low) < (a.high < b.high ? a.high : b.high);
}

typedef struct berth__checker {
  const berth_plan *plan;
  berth_error *err;
  berth__range *ranges;   /* one per value */
  bool *intact;           /* one per value */
  uint32_t *condition_of; /* one per value: the guard of the step that made it */
  uint32_t *total;        /* one per value: how often it is read once it is made; outputs have one that never comes */
  uint32_t *reads;        /* one per value: reads to come */
  berth_value *alive;     /* values that are intact, still to be read, and may be destroyed */
  size_t n_alive;
  berth__range *kept; /* what is never written: sorted */
  size_t n_kept;
  uint8_t *shown; /* one per value: who reads its bytes, itself or through others that lie in them */
  berth__regions regions;
  bool *goes_back; /* one a region: its end has still to go back once */
} berth__checker;

/* check_conditions.c: nothing is left out that is needed. */
berth_status berth__check_conditions(const berth_plan *plan, berth_error *err);
/* Whether no run does steps with both of these guards. */
bool berth__check_excludes(const berth_plan *plan, uint32_t a, uint32_t b);

/* check_loops.c: every loop is played twice. */

/* Counts a read of the value by a step into its total. */
void berth__check_count_read(berth__checker *c, berth_value value, uint32_t step);
/* False for the places that a loop_end is told of and does not read. */
bool berth__check_is_read(const berth__node *node, uint32_t operand);
/* Whether an end of a loop may write this result over this operand, and must lie there. */
bool berth__check_loop_may_write_over(const berth__checker *c, const berth__node *node, uint32_t out,
                                      berth_value operand);
berth_status berth__check_loop_places(const berth__checker *c, const berth__node *node, uint32_t step);
/* Behind a step: what a loop_begin sets going, and whether a loop_end goes back; *next is the step that follows. */
void berth__check_loop_finish(berth__checker *c, const berth__node *node, uint32_t step, uint32_t *next);
/* True at a loop_end that goes back: it makes the values of the next round and not its own. */
bool berth__check_goes_back(const berth__checker *c, const berth__node *node, uint32_t step);

/* check_states.c: a state lies among what bindings share, and what it is updated from lies exactly there. */
berth_status berth__check_state_places(const berth__checker *c);
/* A write into a state's bytes is its update, or wrong. out: which result; UINT32_MAX: scratch. */
berth_status berth__check_state_write(const berth__checker *c, const berth__node *node, uint32_t step,
                                      berth__range bytes, uint32_t out);
/* Behind the last step: states hold what they were updated from, which is what the next run begins with. */
berth_status berth__check_state_ends(berth__checker *c);

/* check.c: the value is there now. */
void berth__check_made(berth__checker *c, berth_value value, uint32_t step);

#endif
