/* Reports where the steps of a plan run: on its device, or on the CPU between transfers. */
#include "base/desc.h"
#include "device/gpu/recipe.h"

typedef struct list {
  unsigned char *out; /* entries of `stride` bytes, the caller's version of the struct */
  size_t stride;
  uint32_t capacity, n;
  berth_segment last;
} list;

static void put_last(const list *l) {
  if (l->n == 0 || l->n > l->capacity) return;
  unsigned char *to = l->out + (l->n - 1) * l->stride;
  const uint32_t stride = (uint32_t)l->stride;
  memcpy(to, &stride, sizeof stride);
  berth__result_write(to, &l->last, sizeof l->last, "berth_segment", NULL);
}

static void gpu_segments_add(list *l, uint32_t step, const char *device, uint64_t down, uint64_t up) {
  if (l->n == 0 || strcmp(l->last.device, device) != 0) {
    put_last(l);
    l->last = (berth_segment)BERTH_SEGMENT_INIT;
    l->last.first_step = step;
    l->last.device = device;
    l->n++;
  }
  l->last.n_steps = step + 1 - l->last.first_step;
  l->last.bytes_down += down;
  l->last.bytes_up += up;
}

static uint64_t gpu_segments_bytes_of(const berth_plan *plan, const berth_value *values, uint32_t n) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < n; i++) {
    int64_t count = 0;
    if (values[i] != BERTH_VALUE_NONE && berth__shape_count(&plan->graph->values[values[i]].shape, &count))
      total += berth__place_bytes(&plan->places[values[i]], (uint64_t)count);
  }
  return total;
}

static berth_status walk(const berth_plan *plan, list *l, berth_error *err) {
  berth__recipe *recipe = NULL;
  berth_status status = berth__recipe_create(plan, &recipe, err);
  if (status == BERTH_UNSUPPORTED && (plan->flags & BERTH_PLAN_FALLBACK_CPU)) { /* loops, or extents found by a run */
    for (uint32_t step = 0; step < plan->n_steps; step++) gpu_segments_add(l, step, "cpu", 0, 0);
    return BERTH_OK;
  }
  BERTH__TRY(status);
  for (size_t i = recipe->n_prelude; i < recipe->n_dispatches; i++) { /* the prelude is not part of a run */
    const berth__dispatch *d = &recipe->dispatches[i];
    const berth__node *node = &plan->graph->nodes[plan->order[d->step]];
    const bool on_host = d->kernel == BERTH__ON_HOST;
    gpu_segments_add(l, d->step, on_host ? "cpu" : plan->device,
                     on_host ? gpu_segments_bytes_of(plan, node->in, node->n_in) : 0,
                     on_host ? gpu_segments_bytes_of(plan, node->out, node->n_out) : 0);
  }
  berth__recipe_destroy(recipe);
  return BERTH_OK;
}

berth_status berth_plan_segments(const berth_plan *plan, berth_segment *out, uint32_t capacity, uint32_t *n,
                                 berth_error *err) {
  list l = {.out = (unsigned char *)out, .capacity = out != NULL ? capacity : 0};
  if (n != NULL) *n = 0;
  if (plan == NULL || n == NULL)
    return berth__fail(err, BERTH_INVALID, "a plan and a pointer to store the count are needed");
  if (l.capacity != 0) {
    BERTH__TRY(berth__result_check(out, "berth_segment", err));
    l.stride = out->struct_size;
  }
  if (strcmp(plan->device, "cpu") == 0) {
    for (uint32_t step = 0; step < plan->n_steps; step++) gpu_segments_add(&l, step, "cpu", 0, 0);
  } else {
    BERTH__TRY(walk(plan, &l, err));
  }
  put_last(&l);
  *n = l.n;
  return BERTH_OK;
}
