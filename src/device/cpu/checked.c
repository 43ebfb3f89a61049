/* The checked mode: finds the kernel that writes where it must not.
 *
 * While a step runs, every byte that belongs to no live buffer holds a pattern (and is poisoned in builds with
 * AddressSanitizer, so that even a stray read is caught where it happens). After the step, the pattern must be intact,
 * and live buffers that the step does not write must be unchanged. The same holds for those shared weights that this
 * plan does not use, because another plan may. */
#include <stdlib.h>

#include "device/cpu/cpu.h"

#if defined(__SANITIZE_ADDRESS__)
#define HAS_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define HAS_ASAN 1
#endif
#endif

#ifdef HAS_ASAN
#include <sanitizer/asan_interface.h>
static void poison(void *at, uint64_t size) { ASAN_POISON_MEMORY_REGION(at, (size_t)size); }
static void unpoison(void *at, uint64_t size) { ASAN_UNPOISON_MEMORY_REGION(at, (size_t)size); }
#else
static void poison(void *at, uint64_t size) { (void)at, (void)size; }
static void unpoison(void *at, uint64_t size) { (void)at, (void)size; }
#endif

#define PATTERN 0xdbu

struct berth__watch {
  berth_context *ctx;
  const berth_plan *plan;
  unsigned char *base;
  uint32_t *sorted; /* buffers sorted by offset */
  uint64_t *sums;   /* one per buffer: checksum from before the step */
  bool *is_written; /* one per buffer: the step may write it */
  uint64_t shared;  /* checksum of the shared weights that this plan does not use */
};

typedef struct placed {
  uint64_t offset;
  uint32_t index;
} placed;

static int by_offset(const void *a, const void *b) {
  const placed *x = a, *y = b;
  if (x->offset != y->offset) return x->offset < y->offset ? -1 : 1;
  return x->index < y->index ? -1 : x->index > y->index;
}

static berth_status sort_buffers(berth__watch *watch, berth_error *err) {
  size_t n = watch->plan->n_buffers;
  placed *order = berth__alloc_array(watch->ctx, n, sizeof *order);
  if (order == NULL) return berth__fail_nomem(err, "checked mode");
  for (size_t i = 0; i < n; i++) order[i] = (placed){watch->plan->buffers[i].offset, (uint32_t)i};
  qsort(order, n, sizeof *order, by_offset);
  for (size_t i = 0; i < n; i++) watch->sorted[i] = order[i].index;
  berth__free(watch->ctx, order);
  return BERTH_OK;
}

berth_status berth__watch_create(const berth_plan *plan, berth__watch **out, berth_error *err) {
  *out = NULL;
  berth__watch *watch = berth__alloc_zero(plan->ctx, sizeof *watch);
  if (watch == NULL) return berth__fail_nomem(err, "checked mode");
  watch->ctx = plan->ctx;
  watch->plan = plan;
  watch->sorted = berth__alloc_array(plan->ctx, plan->n_buffers, sizeof *watch->sorted);
  watch->sums = berth__alloc_array_zero(plan->ctx, plan->n_buffers, sizeof *watch->sums);
  watch->is_written = berth__alloc_array_zero(plan->ctx, plan->n_buffers, sizeof *watch->is_written);
  berth_status status = BERTH_OK;
  if (watch->sorted == NULL || watch->sums == NULL || watch->is_written == NULL)
    status = berth__fail_nomem(err, "checked mode");
  else
    status = sort_buffers(watch, err);
  if (status != BERTH_OK) {
    berth__watch_destroy(watch);
    return status;
  }
  *out = watch;
  return BERTH_OK;
}

void berth__watch_destroy(berth__watch *watch) {
  if (watch == NULL) return;
  berth__free(watch->ctx, watch->sorted);
  berth__free(watch->ctx, watch->sums);
  berth__free(watch->ctx, watch->is_written);
  berth__free(watch->ctx, watch);
}

/* Visits the gaps between two live buffers at a step: unused bytes and guard bytes. Stops when `visit` returns
 * false. */
typedef bool (*gap_fn)(berth__watch *watch, uint64_t begin, uint64_t end, uint32_t after, void *user);

static void for_each_gap(berth__watch *watch, uint32_t step, gap_fn visit, void *user) {
  const berth_plan *plan = watch->plan;
  uint64_t at = 0;
  uint32_t after = BERTH__NO_BUFFER;
  for (size_t i = 0; i < plan->n_buffers; i++) {
    const berth__buffer *buffer = &plan->buffers[watch->sorted[i]];
    if (step < buffer->birth || step >= buffer->death || buffer->size == 0) continue;
    if (buffer->offset > at && !visit(watch, at, buffer->offset, after, user)) return;
    at = buffer->offset + buffer->size;
    after = watch->sorted[i];
  }
  if (plan->info.arena_size > at) visit(watch, at, plan->info.arena_size, after, user);
}

/* The part of a gap that comes after the shared weights. */
static uint64_t behind_shared(const berth__watch *watch, uint64_t begin, uint64_t end) {
  const uint64_t shared = watch->plan->params_size;
  if (begin >= shared) return begin;
  return end < shared ? end : shared;
}

static bool fill_gap(berth__watch *watch, uint64_t begin, uint64_t end, uint32_t after, void *user) {
  (void)after, (void)user;
  begin = behind_shared(watch, begin, end);
  memset(watch->base + begin, PATTERN, (size_t)(end - begin));
  return true;
}

/* The prelude may read a weight where other plans have it. GPU kernels move whole words: the last word of a narrow
 * value may reach past its end, and whatever they write there is verified after the step like everything else. */
static bool poison_gap(berth__watch *watch, uint64_t begin, uint64_t end, uint32_t after, void *user) {
  (void)after, (void)user;
  begin = behind_shared(watch, begin, end);
  if (berth_plan_gpu_profile(watch->plan) != NULL) begin = (begin + 3) & ~(uint64_t)3;
  if (begin < end) poison(watch->base + begin, end - begin);
  return true;
}

void berth__watch_start(berth__watch *watch, unsigned char *base) {
  watch->base = base;
  memset(watch->is_written, 0,
         watch->plan->n_buffers * sizeof *watch->is_written); /* an earlier run may have failed midway */
}

void berth__watch_stop(berth__watch *watch) { unpoison(watch->base, watch->plan->info.arena_size); }

#define SUM_START 0xcbf29ce484222325u

static uint64_t add_bytes(uint64_t sum, const unsigned char *bytes, uint64_t size) {
  uint64_t i = 0, word;
  for (; i + 8 <= size; i += 8) {
    memcpy(&word, bytes + i, 8);
    sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
    sum ^= sum >> 29;
  }
  for (; i < size; i++) sum = (sum ^ bytes[i]) * 0x100000001b3u;
  return sum;
}

static uint64_t cpu_checked_sum_of(const berth__watch *watch, const berth__buffer *buffer) {
  return add_bytes(SUM_START, watch->base + buffer->offset, buffer->size);
}

static bool add_shared(berth__watch *watch, uint64_t begin, uint64_t end, uint32_t after, void *user) {
  uint64_t *sum = user;
  (void)after;
  *sum = add_bytes(*sum, watch->base + begin, behind_shared(watch, begin, end) - begin);
  return true;
}

static uint64_t sum_of_shared(berth__watch *watch, uint32_t step) {
  uint64_t sum = SUM_START;
  for_each_gap(watch, step, add_shared, &sum);
  return sum;
}

static void mark_written(berth__watch *watch, uint32_t step, bool value) {
  const berth_plan *plan = watch->plan;
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  for (uint32_t i = 0; i < node->n_out; i++) {
    uint32_t buffer = plan->places[node->out[i]].buffer;
    if (buffer != BERTH__NO_BUFFER) watch->is_written[buffer] = value;
  }
  if (plan->scratch[step] != BERTH__NO_BUFFER) watch->is_written[plan->scratch[step]] = value;
}

static bool is_watched(const berth__watch *watch, size_t index, uint32_t step) {
  const berth__buffer *buffer = &watch->plan->buffers[index];
  return step >= buffer->birth && step < buffer->death && !watch->is_written[index];
}

void berth__watch_before(berth__watch *watch, uint32_t step) {
  mark_written(watch, step, true);
  for_each_gap(watch, step, fill_gap, NULL);
  for (size_t i = 0; i < watch->plan->n_buffers; i++)
    if (is_watched(watch, i, step)) watch->sums[i] = cpu_checked_sum_of(watch, &watch->plan->buffers[i]);
  watch->shared = sum_of_shared(watch, step);
  for_each_gap(watch, step, poison_gap, NULL);
}

static const char *buffer_name(const berth_plan *plan, uint32_t index) {
  if (index == BERTH__NO_BUFFER) return "the start of the arena";
  berth_value owner = plan->buffers[index].owner;
  return owner != BERTH_VALUE_NONE ? plan->graph->values[owner].name : "its scratch";
}

typedef struct stray {
  uint64_t offset;
  uint32_t after;
  bool found;
} stray;

static bool look_at_gap(berth__watch *watch, uint64_t begin, uint64_t end, uint32_t after, void *user) {
  stray *s = user;
  for (uint64_t i = behind_shared(watch, begin, end); i < end; i++) {
    if (watch->base[i] == PATTERN) continue;
    *s = (stray){.offset = i, .after = after, .found = true};
    return false;
  }
  return true;
}

static berth_status verify(berth__watch *watch, uint32_t step, berth_error *err) {
  const berth_plan *plan = watch->plan;
  const berth__node *node = &plan->graph->nodes[plan->order[step]];
  const char *name = plan->graph->values[node->out[0]].name;
  stray s = {.found = false};
  for_each_gap(watch, step, look_at_gap, &s);
  if (s.found)
    return berth__fail(
        err, BERTH_INTERNAL,
        "node '%s' (%s) wrote at byte %llu of the arena, which belongs to nobody at step %u (behind '%s')", name,
        node->op->name, (unsigned long long)s.offset, step, buffer_name(plan, s.after));
  if (watch->shared != sum_of_shared(watch, step))
    return berth__fail(err, BERTH_INTERNAL,
                       "node '%s' (%s) wrote between the weights, where there is nothing or another shape's", name,
                       node->op->name);
  for (size_t i = 0; i < plan->n_buffers; i++)
    if (is_watched(watch, i, step) && watch->sums[i] != cpu_checked_sum_of(watch, &plan->buffers[i]))
      return berth__fail(err, BERTH_INTERNAL, "node '%s' (%s) wrote into '%s', which is not one of its results", name,
                         node->op->name, buffer_name(plan, (uint32_t)i));
  return BERTH_OK;
}

berth_status berth__watch_after(berth__watch *watch, uint32_t step, berth_error *err) {
  unpoison(watch->base, watch->plan->info.arena_size);
  berth_status status = verify(watch, step, err);
  mark_written(watch, step, false);
  return status;
}
