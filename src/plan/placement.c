/* Offsets for the buffers that share bytes over time.
 *
 * Activations are packed first. Scratch lives for one step each, so it mostly falls into gaps of that packing; only
 * when it does not, and the bound leaves room for better, everything is packed together and the smaller result is
 * taken. */
#include "plan/placement.h"

#include "base/cancel.h"
#include "plan/buffers.h"

typedef struct packing {
  berth_pack_buffer *buffers;
  uint64_t *offsets;
  uint32_t *index; /* plan buffer of each */
  size_t n, n_activations;
  berth_pack_result result;
} packing;

static bool plan_placement_is_packed(const berth__buffer *buffer) {
  return buffer->kind != BERTH__BUFFER_PARAM && buffer->kind != BERTH__BUFFER_CONSTANT &&
         buffer->kind != BERTH__BUFFER_PRELUDE && buffer->kind != BERTH__BUFFER_STATE;
}

static void plan_placement_collect(const berth_plan *plan, packing *p, bool scratch) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (!plan_placement_is_packed(buffer) || (buffer->kind == BERTH__BUFFER_SCRATCH) != scratch) continue;
    if (berth__buffer_is_preparation(plan, buffer)) continue;
    p->index[p->n] = (uint32_t)i;
    p->buffers[p->n++] = (berth_pack_buffer){.size = berth__buffer_room(plan, buffer),
                                             .align = plan->align,
                                             .lower = buffer->birth,
                                             .upper = buffer->death,
                                             .offset = BERTH_PACK_FREE};
  }
}

static int is_stopped(void *user, const berth_pack_progress *progress) {
  (void)progress;
  return berth__is_cancelled(user);
}

static berth_status plan_placement_pack(const berth_plan *plan, packing *p, size_t n, uint64_t effort,
                                        berth_error *err) {
  berth_pack_desc desc = BERTH_PACK_DESC_INIT;
  desc.effort = effort;
  p->result = (berth_pack_result)BERTH_PACK_RESULT_INIT;
  if (plan->cancel != NULL) {
    desc.progress = is_stopped;
    desc.user = (void *)(uintptr_t)plan->cancel;
  }
  BERTH__TRY(berth_pack(plan->ctx, p->buffers, n, &desc, p->offsets, &p->result, err));
  return p->result.cancelled ? berth__fail(err, BERTH_CANCELLED, "planning was cancelled") : BERTH_OK;
}

static uint64_t plan_placement_end_of(const packing *p, size_t first, size_t n) {
  uint64_t end = 0;
  for (size_t i = first; i < n; i++)
    if (p->buffers[i].size != 0 && p->offsets[i] + p->buffers[i].size > end) end = p->offsets[i] + p->buffers[i].size;
  return end;
}

static void plan_placement_keep(berth_plan *plan, const packing *p, uint64_t base) {
  for (size_t i = 0; i < p->n; i++) plan->buffers[p->index[i]].offset = base + p->offsets[i];
  uint64_t activations = plan_placement_end_of(p, 0, p->n_activations), all = plan_placement_end_of(p, 0, p->n);
  plan->info.activations_size = activations;
  plan->info.scratch_size = all - activations;
}

/* The largest load at one step, scratch included. */
static berth_status load_of_all(const berth_plan *plan, const packing *p, uint64_t *out, berth_error *err) {
  size_t end = berth__plan_end(plan->n_steps);
  int64_t *delta = berth__alloc_array_zero(plan->ctx, end + 1, sizeof *delta), now = 0;
  if (delta == NULL) return berth__fail_nomem(err, "packing");
  for (size_t i = 0; i < p->n; i++) {
    delta[p->buffers[i].lower] += (int64_t)p->buffers[i].size;
    delta[p->buffers[i].upper] -= (int64_t)p->buffers[i].size;
  }
  *out = 0;
  for (size_t t = 0; t < end; t++) {
    now += delta[t];
    if ((uint64_t)now > *out) *out = (uint64_t)now;
  }
  berth__free(plan->ctx, delta);
  return BERTH_OK;
}

/* Activations stay where they are; scratch goes around them. */
static berth_status pack_scratch_around(berth_plan *plan, packing *p, uint64_t effort, berth_error *err) {
  for (size_t i = 0; i < p->n_activations; i++) p->buffers[i].offset = p->offsets[i];
  berth_status status = plan_placement_pack(plan, p, p->n, effort, err);
  for (size_t i = 0; i < p->n_activations; i++) p->buffers[i].offset = BERTH_PACK_FREE;
  return status;
}

static berth_status plan_placement_place(berth_plan *plan, packing *p, uint64_t base, uint64_t effort,
                                         berth_error *err) {
  berth_plan_info *info = &plan->info;
  uint64_t bound = 0;
  plan_placement_collect(plan, p, false);
  p->n_activations = p->n;
  BERTH__TRY(plan_placement_pack(plan, p, p->n, effort, err));
  info->activations_lower_bound = p->result.lower_bound;
  info->optimal = p->result.optimal;
  info->pack_nodes = p->result.nodes;
  uint64_t activations = p->result.size;
  plan_placement_collect(plan, p, true);
  if (p->n == p->n_activations) {
    plan_placement_keep(plan, p, base);
    return BERTH_OK;
  }
  BERTH__TRY(load_of_all(plan, p, &bound, err));
  BERTH__TRY(pack_scratch_around(plan, p, effort, err));
  info->pack_nodes += p->result.nodes;
  plan_placement_keep(plan, p, base);
  uint64_t size = p->result.size;
  info->optimal = size == bound || (info->optimal && size == activations);
  if (info->optimal || size == activations) return BERTH_OK;
  BERTH__TRY(plan_placement_pack(plan, p, p->n, effort, err));
  info->pack_nodes += p->result.nodes;
  info->optimal = p->result.optimal;
  if (p->result.size < size) plan_placement_keep(plan, p, base);
  return BERTH_OK;
}

berth_status berth__placement(berth_plan *plan, uint64_t base, uint64_t effort, berth_error *err) {
  berth_context *ctx = plan->ctx;
  packing p = {.buffers = berth__alloc_array(ctx, plan->n_buffers, sizeof *p.buffers),
               .offsets = berth__alloc_array(ctx, plan->n_buffers, sizeof *p.offsets),
               .index = berth__alloc_array(ctx, plan->n_buffers, sizeof *p.index)};
  berth_status status = BERTH_OK;
  if (p.buffers == NULL || p.offsets == NULL || p.index == NULL)
    status = berth__fail_nomem(err, "packing");
  else
    status = plan_placement_place(plan, &p, base, effort, err);
  berth__free(ctx, p.buffers);
  berth__free(ctx, p.offsets);
  berth__free(ctx, p.index);
  return status;
}
