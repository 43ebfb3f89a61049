/* Temporaries and scratch of the prelude.
 *
 * They live before the first run, so all memory that a run needs except its inputs is available to them: the bytes of
 * activations and scratch, and those of weights that the prelude makes later. They are placed after everything else,
 * and the arena grows only if they do not fit.
 *
 * With a layout there may be bytes among the weights that this plan does not know: those are left alone. */
#include "plan/preparation.h"

#include <stdlib.h>

#include "base/cancel.h"
#include "plan/buffers.h"

typedef struct preparation {
  berth_plan *plan;
  uint64_t base, top; /* end of the weights, and size of a run */
  berth_pack_buffer *buffers;
  uint64_t *offsets;
  uint32_t *index; /* buffer indices; those that have to be placed come first */
  size_t n, n_free;
} preparation;

static berth_pack_buffer preparation_buffer(const berth_plan *plan, const berth__buffer *buffer) {
  return (berth_pack_buffer){.size = berth__buffer_room(plan, buffer),
                             .align = berth__buffer_align(plan, buffer),
                             .lower = buffer->birth,
                             .upper = buffer->death < plan->n_prelude ? buffer->death : plan->n_prelude,
                             .offset = BERTH_PACK_FREE};
}

static void preparation_collect(preparation *p) {
  const berth_plan *plan = p->plan;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    if (!berth__buffer_is_preparation(plan, &plan->buffers[i])) continue;
    p->index[p->n] = (uint32_t)i;
    p->buffers[p->n++] = preparation_buffer(plan, &plan->buffers[i]);
  }
  p->n_free = p->n;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (berth__buffer_is_preparation(plan, buffer) || buffer->birth >= plan->n_prelude || buffer->size == 0) continue;
    p->buffers[p->n] = preparation_buffer(plan, buffer);
    p->buffers[p->n++].offset = buffer->offset;
  }
}

static int preparation_by_offset(const void *a, const void *b) {
  const berth_pack_buffer *x = a, *y = b;
  return x->offset != y->offset ? (x->offset < y->offset ? -1 : 1) : 0;
}

/* Bytes below `base` that do not belong to this plan: occupied throughout. */
static void preparation_block(preparation *p) {
  const size_t n = p->n;
  uint64_t at = 0;
  qsort(p->buffers + p->n_free, n - p->n_free, sizeof *p->buffers, preparation_by_offset);
  for (size_t i = p->n_free; i <= n; i++) {
    const uint64_t next = i < n && p->buffers[i].offset < p->base ? p->buffers[i].offset : p->base;
    if (next > at)
      p->buffers[p->n++] =
          (berth_pack_buffer){.size = next - at, .align = 1, .lower = 0, .upper = p->plan->n_prelude, .offset = at};
    if (next == p->base) break;
    at = next + p->buffers[i].size;
  }
}

static uint64_t preparation_peak(const preparation *p, int64_t *delta) {
  int64_t now = 0, most = 0;
  for (size_t i = 0; i < p->n_free; i++) {
    delta[p->buffers[i].lower] += (int64_t)p->buffers[i].size;
    delta[p->buffers[i].upper] -= (int64_t)p->buffers[i].size;
  }
  for (uint32_t step = 0; step < p->plan->n_prelude; step++) {
    now += delta[step];
    if (now > most) most = now;
  }
  return (uint64_t)most;
}

static int preparation_stops(void *user, const berth_pack_progress *progress) {
  (void)progress;
  return berth__is_cancelled(user);
}

/* If a simple placement fits into the memory of a run, there is nothing to search for. */
static berth_status preparation_pack(preparation *p, uint64_t effort, berth_error *err) {
  const berth_plan *plan = p->plan;
  for (int round = 0; round < 2; round++) {
    berth_pack_desc desc = BERTH_PACK_DESC_INIT;
    berth_pack_result result = BERTH_PACK_RESULT_INIT;
    desc.effort = round == 0 ? 1 : effort;
    if (plan->cancel != NULL) {
      desc.progress = preparation_stops;
      desc.user = (void *)(uintptr_t)plan->cancel;
    }
    BERTH__TRY(berth_pack(plan->ctx, p->buffers, p->n, &desc, p->offsets, &result, err));
    if (result.cancelled) return berth__fail(err, BERTH_CANCELLED, "planning was cancelled");
    if (result.size <= p->top || result.optimal) break;
  }
  return BERTH_OK;
}

static berth_status preparation_run(preparation *p, uint64_t effort, int64_t *delta, berth_error *err) {
  berth_plan *plan = p->plan;
  uint64_t end = p->top;
  preparation_collect(p);
  preparation_block(p);
  plan->info.preparation_peak = preparation_peak(p, delta);
  BERTH__TRY(preparation_pack(p, effort, err));
  for (size_t i = 0; i < p->n_free; i++) {
    plan->buffers[p->index[i]].offset = p->offsets[i];
    if (p->buffers[i].size != 0 && p->offsets[i] + p->buffers[i].size > end) end = p->offsets[i] + p->buffers[i].size;
  }
  plan->info.preparation_size = end - p->top;
  if (end > p->top) plan->info.optimal = 0;
  return BERTH_OK;
}

berth_status berth__preparation_place(berth_plan *plan, uint64_t base, uint64_t effort, berth_error *err) {
  berth_context *ctx = plan->ctx;
  size_t n_free = 0;
  for (size_t i = 0; i < plan->n_buffers; i++) n_free += berth__buffer_is_preparation(plan, &plan->buffers[i]);
  if (n_free == 0) return BERTH_OK;
  preparation p = {.plan = plan,
                   .base = base,
                   .top = base + plan->info.activations_size + plan->info.scratch_size,
                   .buffers = berth__alloc_array(ctx, 2 * plan->n_buffers + 1, sizeof *p.buffers),
                   .offsets = berth__alloc_array(ctx, 2 * plan->n_buffers + 1, sizeof *p.offsets),
                   .index = berth__alloc_array(ctx, plan->n_buffers, sizeof *p.index)};
  int64_t *delta = berth__alloc_array_zero(ctx, (size_t)plan->n_prelude + 1, sizeof *delta);
  berth_status status = BERTH_OK;
  if (p.buffers == NULL || p.offsets == NULL || p.index == NULL || delta == NULL)
    status = berth__fail_nomem(err, "packing");
  else
    status = preparation_run(&p, effort, delta, err);
  berth__free(ctx, p.buffers);
  berth__free(ctx, p.offsets);
  berth__free(ctx, p.index);
  berth__free(ctx, delta);
  return status;
}
