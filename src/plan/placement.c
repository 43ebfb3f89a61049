/* Offsets for the buffers that share bytes over time.
 *
 * Activations are packed first. Scratch lives for one step each, so it mostly fits into gaps of that packing; only if
 * it does not, and the bound shows that better is possible, everything is packed together and the smaller result is
 * kept.
 * If buffers keep their exact size (a tight plan), they are first packed as if all were multiples of the alignment,
 * which makes the problem easy to decompose, and then once more, quickly, with exact sizes: the smaller placement is
 * kept.
 * Where buffers take their true size (a plan that is tight), they are first packed as if all were multiples of the
 * alignment, which makes the problem easy to take apart, and then once more, quickly, as they are: the smaller
 * placement stays. */
#include "plan/placement.h"

#include "base/cancel.h"
#include "plan/buffers.h"

typedef struct packing {
  berth_pack_buffer *buffers;
  uint64_t *offsets;
  uint32_t *index; /* per item: the plan's buffer */
  size_t n, n_activations;
  bool as_they_are; /* not rounded up to the plan's alignment */
  berth_pack_result result;
} packing;

static void plan_placement_collect(const berth_plan *plan, packing *p, bool scratch) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    if (!berth__buffer_is_packed(buffer) || (buffer->kind == BERTH__BUFFER_SCRATCH) != scratch) continue;
    if (berth__buffer_is_preparation(plan, buffer)) continue;
    p->index[p->n] = (uint32_t)i;
    const uint64_t room = berth__buffer_room(plan, buffer), align = plan->align;
    p->buffers[p->n++] = (berth_pack_buffer){.size = p->as_they_are ? room : (room + align - 1) & ~(align - 1),
                                             .align = p->as_they_are ? berth__buffer_align(plan, buffer) : align,
                                             .lower = buffer->birth,
                                             .upper = buffer->death,
                                             .offset = BERTH_PACK_FREE};
  }
}

static int is_stopped(void *user, const berth_pack_progress *progress) {
  (void)progress;
  return berth__is_cancelled(user);
}

static berth_status plan_placement_try(const berth_plan *plan, packing *p, size_t n, uint64_t effort,
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

#define LITTLE 256 /* fraction of the arena that is not worth a long search, since loading a model waits for it */
#define LITTLE_EFFORT 20000

/* An effort that the caller requests is spent. The default effort is spent only if a short search leaves more than a
 * small part of the arena to save, or misses the plan's aim; `base` bytes of it are weights and states. */
static berth_status plan_placement_pack(const berth_plan *plan, packing *p, size_t n, uint64_t effort, uint64_t base,
                                        berth_error *err) {
  if (effort != 0) return plan_placement_try(plan, p, n, effort, err);
  BERTH__TRY(plan_placement_try(plan, p, n, LITTLE_EFFORT, err));
  const uint64_t size = p->result.size, nodes = p->result.nodes;
  if (plan->aim != 0 && size <= plan->aim) return BERTH_OK;
  if (p->result.optimal || size - p->result.lower_bound < (base + size) / LITTLE) return BERTH_OK;
  BERTH__TRY(plan_placement_try(plan, p, n, 0, err));
  p->result.nodes += nodes;
  return BERTH_OK;
}

static uint64_t plan_placement_end_of(const berth_plan *plan, const packing *p, size_t n) {
  uint64_t end = 0;
  for (size_t i = 0; i < n; i++) {
    const uint64_t room = berth__buffer_room(plan, &plan->buffers[p->index[i]]);
    if (room != 0 && p->offsets[i] + room > end) end = p->offsets[i] + room;
  }
  return end;
}

static void plan_placement_keep(berth_plan *plan, const packing *p, uint64_t base) {
  for (size_t i = 0; i < p->n; i++) plan->buffers[p->index[i]].offset = base + p->offsets[i];
  uint64_t activations = plan_placement_end_of(plan, p, p->n_activations), all = plan_placement_end_of(plan, p, p->n);
  if (all > activations) { /* rounding above the activations counts as theirs */
    const uint64_t begin = (activations + plan->align - 1) & ~(plan->align - 1);
    activations = begin < all ? begin : all;
  }
  plan->info.activations_size = activations;
  plan->info.scratch_size = all - activations;
}

/* The load, including scratch. */
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

/* Activations keep their offsets; scratch is packed around them. */
static berth_status pack_scratch_around(berth_plan *plan, packing *p, uint64_t effort, uint64_t base,
                                        berth_error *err) {
  for (size_t i = 0; i < p->n_activations; i++) p->buffers[i].offset = p->offsets[i];
  berth_status status = plan_placement_pack(plan, p, p->n, effort, base, err);
  for (size_t i = 0; i < p->n_activations; i++) p->buffers[i].offset = BERTH_PACK_FREE;
  return status;
}

static berth_status plan_placement_place(berth_plan *plan, packing *p, uint64_t base, uint64_t effort,
                                         berth_error *err) {
  berth_plan_info *info = &plan->info;
  uint64_t bound = 0;
  plan_placement_collect(plan, p, false);
  p->n_activations = p->n;
  BERTH__TRY(plan_placement_pack(plan, p, p->n, effort, base, err));
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
  BERTH__TRY(pack_scratch_around(plan, p, effort, base, err));
  info->pack_nodes += p->result.nodes;
  plan_placement_keep(plan, p, base);
  uint64_t size = p->result.size;
  info->optimal = size == bound || (info->optimal && size == activations);
  if (info->optimal || size == activations) return BERTH_OK;
  BERTH__TRY(plan_placement_pack(plan, p, p->n, effort, base, err));
  info->pack_nodes += p->result.nodes;
  const uint64_t worth =
      p->as_they_are ? plan->align : 1; /* bytes that scratch below the activations' top should save */
  info->optimal = p->result.optimal && (p->result.size == size || p->result.size + worth <= size);
  if (p->result.size + worth <= size) plan_placement_keep(plan, p, base);
  return BERTH_OK;
}

/* Whether rounding makes a difference. */
static bool has_slack(const berth_plan *plan) {
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[i];
    const bool is_packed = berth__buffer_is_packed(buffer) && !berth__buffer_is_preparation(plan, buffer);
    if (is_packed && berth__buffer_room(plan, buffer) % plan->align != 0) return true;
  }
  return false;
}

#define QUICK_EFFORT 1 /* a simple placement is enough: small buffers fill the gaps that others leave */

static berth_status place_as_they_are(berth_plan *plan, packing *p, uint64_t base, berth_error *err) {
  berth_plan_info *info = &plan->info;
  const berth_plan_info before = *info;
  uint64_t *offsets = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *offsets);
  if (offsets == NULL) return berth__fail_nomem(err, "packing");
  for (size_t i = 0; i < plan->n_buffers; i++) offsets[i] = plan->buffers[i].offset;
  p->n = 0;
  p->as_they_are = true;
  const berth_status status = plan_placement_place(plan, p, base, QUICK_EFFORT, err);
  const uint64_t bound = info->activations_lower_bound, nodes = before.pack_nodes + info->pack_nodes;
  const uint64_t size = info->activations_size + info->scratch_size;
  const uint64_t rounded = before.activations_size + before.scratch_size;
  if (size >= rounded) { /* the lower bound of buffers with exact sizes still holds */
    const bool is_proven = rounded == bound;
    const bool is_as_good = info->optimal && size == rounded;
    for (size_t i = 0; i < plan->n_buffers; i++) plan->buffers[i].offset = offsets[i];
    *info = before;
    info->activations_lower_bound = bound;
    info->optimal = is_proven || is_as_good;
  }
  info->pack_nodes = nodes;
  berth__free(plan->ctx, offsets);
  return status;
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
  if (status == BERTH_OK && has_slack(plan)) status = place_as_they_are(plan, &p, base, err);
  berth__free(ctx, p.buffers);
  berth__free(ctx, p.offsets);
  berth__free(ctx, p.index);
  return status;
}
