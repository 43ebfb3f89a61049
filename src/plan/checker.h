/* The state of the checker, private to its files. */
#ifndef BERTH_PLAN_CHECKER_H
#define BERTH_PLAN_CHECKER_H

#include "graph/region.h"
#include "plan/plan.h"

typedef struct berth__range {
  uint64_t low, high; /* bytes [low, high) of the arena; empty if equal */
} berth__range;

/* An empty range overlaps nothing, at any position. */
static inline bool berth__overlap(berth__range a, berth__range b) {
  return (a.low > b.low ? a.low : b.low) < (a.high < b.high ? a.high : b.high);
}

typedef struct berth__checker {
  const berth_plan *plan;
  berth_error *err;
  berth__range *ranges;   /* one per value */
  bool *intact;           /* one per value */
  uint32_t *condition_of; /* one per value: the condition of the step that made it */
  uint32_t *total;        /* one per value: its number of reads after it is made; outputs have one that never comes */
  uint32_t *reads;        /* one per value: remaining reads */
  berth_value *alive;     /* values that are intact, still to be read, and can be destroyed */
  size_t n_alive;
  berth__range *kept; /* ranges that are never written: sorted */
  size_t n_kept;
  uint8_t *shown; /* one per value: how its bytes are read, directly or through other values in them */
  berth__regions regions;
  bool *goes_back; /* one per region: its end still has to jump back once */
} berth__checker;

/* check_conditions.c: nothing that is needed is skipped. */
berth_status berth__check_conditions(const berth_plan *plan, berth_error *err);
/* Whether no run executes steps with both of these conditions. */
bool berth__check_excludes(const berth_plan *plan, uint32_t a, uint32_t b);

/* check_loops.c: every loop is simulated twice. */

/* Adds a read of the value by a step to its total. */
void berth__check_count_read(berth__checker *c, berth_value value, uint32_t step);
/* False for the places that are operands of a loop_end but not read by it. */
bool berth__check_is_read(const berth__node *node, uint32_t operand);
/* Whether a loop_end may write this result over this operand, and must be in its place. */
bool berth__check_loop_may_write_over(const berth__checker *c, const berth__node *node, uint32_t out,
                                      berth_value operand);
berth_status berth__check_loop_places(const berth__checker *c, const berth__node *node, uint32_t step);
/* After a step: what a loop_begin starts, and whether a loop_end jumps back; *next is the following step. */
void berth__check_loop_finish(berth__checker *c, const berth__node *node, uint32_t step, uint32_t *next);
/* True for a loop_end that jumps back: it makes the values of the next round instead of its own results. */
bool berth__check_goes_back(const berth__checker *c, const berth__node *node, uint32_t step);

/* check_states.c: a state is among the bytes that bindings share, and its next value is exactly there. */
berth_status berth__check_state_places(const berth__checker *c);
/* A write to a state's bytes must be its update. out: which result; UINT32_MAX: scratch. */
berth_status berth__check_state_write(const berth__checker *c, const berth__node *node, uint32_t step,
                                      berth__range bytes, uint32_t out);
/* After the last step: states hold their next values, with which the next run begins. */
berth_status berth__check_state_ends(berth__checker *c);

/* check.c: the value exists now. */
void berth__check_made(berth__checker *c, berth_value value, uint32_t step);

#endif
