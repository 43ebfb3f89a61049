/* Where the steps of a plan run: on its device, or on the CPU between transfers. */
#include "device/gpu/recipe.h"

typedef struct list {
  berth_segment *out;
  uint32_t capacity, n;
} list;

static void add(list *l, uint32_t step, const char *device, uint64_t down, uint64_t up) {
  const bool goes_on = l->n != 0 && l->n <= l->capacity && strcmp(l->out[l->n - 1].device, device) == 0;
  if (!goes_on) {
    if (l->n < l->capacity) l->out[l->n] = (berth_segment){.first_step = step, .device = device};
    l->n++;
  }
  if (l->n > l->capacity) return;
  berth_segment *last = &l->out[l->n - 1];
  last->n_steps = step + 1 - last->first_step;
  last->bytes_down += down;
  last->bytes_up += up;
}

static uint64_t bytes_of(const berth_plan *plan, const berth_value *values, uint32_t n) {
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
  berth_status status = berth__recipe_create(plan, &berth__least_limits, &recipe, err);
  if (status == BERTH_UNSUPPORTED && (plan->flags & BERTH_PLAN_FALLBACK_CPU)) { /* loops, or extents that a run finds */
    for (uint32_t step = 0; step < plan->n_steps; step++) add(l, step, "cpu", 0, 0);
    return BERTH_OK;
  }
  BERTH__TRY(status);
  for (size_t i = recipe->n_prelude; i < recipe->n_dispatches; i++) { /* the prelude is no part of a run */
    const berth__dispatch *d = &recipe->dispatches[i];
    const berth__node *node = &plan->graph->nodes[plan->order[d->step]];
    const bool on_host = d->kernel == BERTH__ON_HOST;
    add(l, d->step, on_host ? "cpu" : plan->device, on_host ? bytes_of(plan, node->in, node->n_in) : 0,
        on_host ? bytes_of(plan, node->out, node->n_out) : 0);
  }
  berth__recipe_destroy(recipe);
  return BERTH_OK;
}

berth_status berth_plan_segments(const berth_plan *plan, berth_segment *out, uint32_t capacity, uint32_t *n,
                                 berth_error *err) {
  list l = {out, out != NULL ? capacity : 0, 0};
  if (n != NULL) *n = 0;
  if (plan == NULL || n == NULL) return berth__fail(err, BERTH_INVALID, "a plan and a place for the count are needed");
  if (strcmp(plan->device, "cpu") == 0) {
    for (uint32_t step = 0; step < plan->n_steps; step++) add(&l, step, "cpu", 0, 0);
  } else {
    BERTH__TRY(walk(plan, &l, err));
  }
  *n = l.n;
  return BERTH_OK;
}
