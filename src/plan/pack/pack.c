/* berth_pack(), the packer's entry point. Checks the arguments, prepares, solves, and has the result validated by code
 * that knows nothing about the solver. */
#include <string.h>

#include "base/desc.h"
#include "plan/pack/check.h"
#include "plan/pack/heaps.h"
#include "plan/pack/pack.h"
#include "plan/pack/parts.h"
#include "plan/pack/prepare.h"
#include "plan/pack/solve.h"

static berth_status check_arguments(const berth_context *ctx, const berth_pack_buffer *buffers, size_t n,
                                    const uint64_t *offsets, const berth_pack_result *result, const berth_pack_desc *d,
                                    berth_error *err) {
  if (ctx == NULL || result == NULL)
    return berth__fail(err, BERTH_INVALID, "berth_pack needs a context and a pointer to store the result");
  if (n > 0 && (buffers == NULL || offsets == NULL))
    return berth__fail(err, BERTH_INVALID, "berth_pack needs the buffers and a pointer to store their offsets");
  if (d->n_heaps > 0 && (d->heaps == NULL || (n > 0 && d->heap_of == NULL)))
    return berth__fail(err, BERTH_INVALID, "berth_pack with heaps needs the heaps and a pointer to store heap_of");
  return BERTH_OK;
}

static berth__pack_budget make_budget(const berth_pack_desc *d) {
  uint64_t effort = d->effort <= 1 ? BERTH__PACK_DEFAULT_EFFORT : d->effort;
  if (effort > (UINT64_MAX >> 1) / BERTH__PACK_STEP) effort = (UINT64_MAX >> 1) / BERTH__PACK_STEP;
  uint64_t limit = effort * BERTH__PACK_STEP;
  return (berth__pack_budget){.limit = limit, .whole = limit, .progress = d->progress, .user = d->user};
}

/* Offsets in bytes, in the caller's order. */
static void write_offsets(const berth__pack_problem *p, const berth_pack_buffer *buffers, size_t n, uint64_t *offsets) {
  for (size_t i = 0; i < n; i++) offsets[i] = buffers[i].offset == BERTH_PACK_FREE ? 0 : buffers[i].offset;
  berth__pack_offsets(p, offsets);
}

/* The quality of the placement in `offsets`, as measured by the validator. */
static berth_status judge(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, uint64_t capacity,
                          const uint64_t *offsets, berth_pack_result *r, berth_error *err) {
  berth__pack_verdict verdict;
  BERTH__TRY(berth__pack_check(ctx, buffers, NULL, n, offsets, &verdict, err));
  if (verdict.clash)
    return berth__fail(err, BERTH_INTERNAL, "pack: the placement found is wrong for buffers %u and %u; please report",
                       (unsigned)verdict.first, (unsigned)verdict.second);
  r->size = verdict.size;
  r->optimal = r->size == r->lower_bound;
  r->fits = r->size <= capacity;
  r->infeasible = r->lower_bound > capacity;
  return BERTH_OK;
}

berth_status berth__pack_one(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, uint64_t capacity,
                             uint64_t seed, int construct_only, berth__pack_budget *budget, uint64_t *offsets,
                             berth_pack_result *result, berth_error *err) {
  berth__pack_problem p;
  BERTH__TRY(berth__pack_prepare(ctx, buffers, n, &p, err));
  berth__pack_goal goal = {.capacity = INT64_MAX, .seed = seed, .construct_only = construct_only};
  if (capacity != UINT64_MAX && capacity / p.unit < INT64_MAX) goal.capacity = (int64_t)(capacity / p.unit);
  berth_status status;
  BERTH__TRY_OR_FAIL(berth__pack_split(&p, err));
  BERTH__TRY_OR_FAIL(berth__pack_solve(&p, &goal, budget, err));
  write_offsets(&p, buffers, n, offsets);
  *result = (berth_pack_result)BERTH_PACK_RESULT_INIT;
  result->lower_bound = (uint64_t)p.lower_bound * p.unit;
  if (result->lower_bound < p.least_size) result->lower_bound = p.least_size;
  result->nodes = budget->spent / BERTH__PACK_STEP;
  result->cancelled = budget->cancelled;
  status = judge(ctx, buffers, n, capacity, offsets, result, err);
fail:
  berth__pack_release(&p);
  return status;
}

berth_status berth_pack(berth_context *ctx, const berth_pack_buffer *buffers, size_t n, const berth_pack_desc *desc,
                        uint64_t *offsets, berth_pack_result *result, berth_error *err) {
  berth_pack_desc d = BERTH_PACK_DESC_INIT;
  BERTH__TRY(BERTH__DESC_COPY(&d, desc, "berth_pack_desc", err));
  BERTH__TRY(check_arguments(ctx, buffers, n, offsets, result, &d, err));
  BERTH__TRY(berth__result_check(result, "berth_pack_result", err));
  berth_pack_result made = BERTH_PACK_RESULT_INIT;
  berth__pack_budget budget = make_budget(&d);
  if (d.n_heaps > 0)
    BERTH__TRY(berth__pack_heaps(ctx, buffers, n, &d, &budget, offsets, &made, err));
  else
    BERTH__TRY(berth__pack_one(ctx, buffers, n, d.capacity, d.seed, d.effort == 1, &budget, offsets, &made, err));
  return BERTH__RESULT_WRITE(result, &made, "berth_pack_result", err);
}
