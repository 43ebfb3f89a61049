/* Merges the kernels of one phase into one launch if kernels begin early (programmatic dependent launch): a kernel that
 * follows several others could only begin once the last of them is running, and waiting for that takes longer than
 * running them as one. */
#include "device/gpu/recipe.h"

static berth_status merge_keep(berth__recipe *recipe, berth__kernel *kernel, uint32_t *out, berth_error *err) {
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    if (!berth__kernel_equal(recipe->kernels[i], kernel)) continue;
    berth__kernel_destroy(kernel);
    *out = (uint32_t)i;
    return BERTH_OK;
  }
  const berth_status status =
      BERTH__RESERVE(recipe->ctx, recipe->kernels, recipe->kernels_capacity, recipe->n_kernels + 1, err);
  if (status != BERTH_OK) {
    berth__kernel_destroy(kernel);
    return status;
  }
  *out = (uint32_t)recipe->n_kernels;
  recipe->kernels[recipe->n_kernels++] = kernel;
  return BERTH_OK;
}

static bool merge_fits(const berth__recipe *recipe, const berth__dispatch *a, const berth__dispatch *b) {
  if (a->kernel == BERTH__ON_HOST || b->kernel == BERTH__ON_HOST) return false;
  return berth__kernel_fits_beside(recipe->kernels[a->kernel], recipe->kernels[b->kernel],
                                   recipe->plan->profile.loops.shared_bytes);
}

/* Merges dispatch b into a, whose spans then are in `room`. */
static berth_status merge_two(berth__recipe *recipe, berth__dispatch *a, const berth__dispatch *b, berth__span *room,
                              size_t *n_room, berth_error *err) {
  const berth__kernel *first = recipe->kernels[a->kernel], *second = recipe->kernels[b->kernel];
  const uint32_t n = first->n_buffers, m = second->n_buffers;
  berth__kernel *kernel;
  BERTH__TRY(berth__kernel_beside(first, second, &kernel, err));
  berth__span *spans = room + *n_room, *exact = spans + n + m;
  memcpy(spans, a->spans, n * sizeof *spans);
  memcpy(spans + n, b->spans, m * sizeof *spans);
  memcpy(exact, a->exact, n * sizeof *exact);
  memcpy(exact + n, b->exact, m * sizeof *exact);
  BERTH__TRY(merge_keep(recipe, kernel, &a->kernel, err));
  a->spans = spans;
  a->exact = exact;
  *n_room += 2 * (size_t)(n + m);
  return BERTH_OK;
}

static berth_status merge_all(berth__recipe *recipe, berth_error *err) {
  size_t n = 0, n_room = 0;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    berth__dispatch *d = &recipe->dispatches[i], *last = n > 0 ? &recipe->dispatches[n - 1] : NULL;
    const bool begins = i == recipe->n_prelude || d->waits;
    if (i == recipe->n_prelude) recipe->n_prelude = n; /* the prelude ends at this dispatch */
    if (last != NULL && !begins && n > recipe->n_prelude && merge_fits(recipe, last, d))
      BERTH__TRY(merge_two(recipe, last, d, recipe->merged, &n_room, err));
    else
      recipe->dispatches[n++] = *d;
  }
  recipe->n_dispatches = n;
  return BERTH_OK;
}

berth_status berth__recipe_merge(berth__recipe *recipe, berth_error *err) {
  if (!recipe->plan->profile.loops.begins_early || recipe->n_spans == 0) return BERTH_OK;
  /* A dispatch that absorbs others copies its spans each time. */
  recipe->merged = berth__alloc_array(recipe->ctx, recipe->n_spans, 2 * BERTH__KERNEL_BUFFERS * sizeof *recipe->merged);
  if (recipe->merged == NULL) return berth__fail_nomem(err, "a program");
  return merge_all(recipe, err);
}

/* Removes the kernels that no dispatch uses any more. */
void berth__recipe_forget_unused(berth__recipe *recipe) {
  size_t n = 0;
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    bool is_used = false;
    for (size_t d = 0; d < recipe->n_dispatches; d++) is_used = is_used || recipe->dispatches[d].kernel == i;
    if (!is_used) {
      berth__kernel_destroy(recipe->kernels[i]);
      continue;
    }
    for (size_t d = 0; d < recipe->n_dispatches; d++)
      if (recipe->dispatches[d].kernel == i) recipe->dispatches[d].kernel = (uint32_t)n;
    recipe->kernels[n++] = recipe->kernels[i];
  }
  recipe->n_kernels = n;
}
