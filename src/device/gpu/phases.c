/* Fewer and fuller phases. A phase costs a GPU about a microsecond, whatever is in it, and what is small fills little
 * of it: the products that make queries, keys and values, or the rows that go into two caches. So dispatches are put
 * into the first phase that their bytes allow, and those of one phase that are small become one. */
#include "base/math.h"
#include "device/gpu/recipe.h"

#define SMALL_THREADS ((uint64_t)1 << 17) /* about half of what the largest GPUs hold at once */
#define MOST_BUFFERS 8u                   /* that every device binds at once */

typedef struct phases {
  berth__recipe *recipe;
  uint32_t *level;            /* of each dispatch: the phase that it goes into */
  uint32_t *most;             /* of it and those before it */
  size_t *order;              /* dispatches by phase */
  berth__dispatch *out;       /* the new list, its spans and what it does of other steps */
  berth__span *spans, *exact; /* spans of the last one are the last */
  size_t n_out, n_spans, n_also;
  bool *is_done; /* went into another */
} phases;

/* ---- Levels ---- */

/* One more than that of the last one that it must wait for. What comes before is looked at from its end, until nothing
 * there can change the answer. */
static void phases_find_level(phases *p, size_t first, size_t i) {
  const berth__dispatch *d = p->recipe->dispatches;
  uint32_t level = first > 0 ? p->most[first - 1] + 1 : 0; /* what comes before `first` is another submission */
  for (size_t k = i; k > first && p->most[k - 1] >= level; k--)
    if (p->level[k - 1] >= level && berth__recipe_conflict(p->recipe, &d[k - 1], &d[i])) level = p->level[k - 1] + 1;
  p->level[i] = level;
  p->most[i] = i > 0 && p->most[i - 1] > level ? p->most[i - 1] : level;
}

static berth_status phases_sort(phases *p, berth_error *err) {
  const size_t n = p->recipe->n_dispatches, n_levels = (size_t)p->most[n - 1] + 2;
  size_t *start = berth__alloc_array_zero(p->recipe->ctx, n_levels, sizeof *start);
  if (start == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < n; i++) start[p->level[i] + 1]++;
  for (size_t i = 1; i < n_levels; i++) start[i] += start[i - 1];
  for (size_t i = 0; i < n; i++) p->order[start[p->level[i]]++] = i;
  berth__free(p->recipe->ctx, start);
  return BERTH_OK;
}

/* ---- Merging ---- */

static bool phases_is_small(const phases *p, const berth__dispatch *d) {
  if (d->kernel == BERTH__ON_HOST) return false;
  const berth__kernel *kernel = p->recipe->kernels[d->kernel];
  return kernel->n_groups <= SMALL_THREADS && kernel->n_groups * kernel->group_size <= SMALL_THREADS;
}

static bool phases_same_span(const berth__span *a, const berth__span *b) {
  return a->at == b->at && a->size == b->size;
}

/* Which buffers of the last dispatch of the new list those of another become; false: they are too many. */
static bool phases_map_buffers(const phases *p, const berth__dispatch *into, const berth__dispatch *d,
                               uint32_t *becomes) {
  const berth__kernel *a = p->recipe->kernels[into->kernel], *b = p->recipe->kernels[d->kernel];
  uint32_t n = a->n_buffers;
  for (uint32_t i = 0; i < b->n_buffers; i++) {
    becomes[i] = 0;
    while (becomes[i] < a->n_buffers &&
           (a->buffers[becomes[i]].storage != b->buffers[i].storage || a->buffers[becomes[i]].is_written ||
            b->buffers[i].is_written || !phases_same_span(&into->exact[becomes[i]], &d->exact[i])))
      becomes[i]++;
    if (becomes[i] == a->n_buffers) becomes[i] = n++;
  }
  return n <= MOST_BUFFERS;
}

static uint32_t phases_shared_bytes(const berth__kernel *kernel) {
  uint32_t n = 0;
  for (uint32_t i = 0; i < kernel->n_shared; i++) n += kernel->shared[i].count * (uint32_t)sizeof(uint32_t);
  return n;
}

/* The number of a kernel that is the recipe's from here on, or freed. */
static berth_status phases_keep_kernel(berth__recipe *recipe, berth__kernel *kernel, uint32_t *out, berth_error *err) {
  berth_status status = BERTH_OK;
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    if (!berth__kernel_equal(recipe->kernels[i], kernel)) continue;
    *out = (uint32_t)i;
    berth__kernel_destroy(kernel);
    return BERTH_OK;
  }
  status = BERTH__RESERVE(recipe->ctx, recipe->kernels, recipe->kernels_capacity, recipe->n_kernels + 1, err);
  if (status != BERTH_OK) {
    berth__kernel_destroy(kernel);
    return status;
  }
  *out = (uint32_t)recipe->n_kernels;
  recipe->kernels[recipe->n_kernels++] = kernel;
  return BERTH_OK;
}

/* Puts a dispatch into the last one of the new list, where they go together. */
static berth_status phases_merge(phases *p, const berth__dispatch *d, bool *is_merged, berth_error *err) {
  berth__recipe *recipe = p->recipe;
  berth__dispatch *into = &p->out[p->n_out - 1];
  uint32_t becomes[BERTH__KERNEL_BUFFERS];
  berth__kernel *kernel = NULL;
  *is_merged = false;
  if (!phases_is_small(p, into) || !phases_is_small(p, d) || !phases_map_buffers(p, into, d, becomes)) return BERTH_OK;
  const uint32_t before = recipe->kernels[into->kernel]->n_buffers, n = recipe->kernels[d->kernel]->n_buffers;
  BERTH__TRY(berth__kernel_merge(recipe->kernels[into->kernel], recipe->kernels[d->kernel], becomes, &kernel, err));
  if (kernel == NULL) return BERTH_OK;
  if (phases_shared_bytes(kernel) > recipe->plan->profile.loops.shared_bytes) {
    berth__kernel_destroy(kernel);
    return BERTH_OK;
  }
  BERTH__TRY(phases_keep_kernel(recipe, kernel, &into->kernel, err));
  for (uint32_t i = 0; i < n; i++) {
    if (becomes[i] < before) continue;
    p->spans[p->n_spans] = d->spans[i];
    p->exact[p->n_spans++] = d->exact[i];
  }
  if (d->step != into->step) {
    if (into->n_also == 0) into->also = (uint32_t)p->n_also;
    recipe->also[p->n_also++] = d->step;
    into->n_also++;
  }
  *is_merged = true;
  return BERTH_OK;
}

static void phases_put(phases *p, const berth__dispatch *d, bool waits) {
  const uint32_t n = d->kernel != BERTH__ON_HOST ? p->recipe->kernels[d->kernel]->n_buffers : 0;
  berth__dispatch *to = &p->out[p->n_out++];
  *to = *d;
  to->waits = waits;
  to->spans = p->spans + p->n_spans;
  to->exact = p->exact + p->n_spans;
  for (uint32_t i = 0; i < n; i++) {
    p->spans[p->n_spans] = d->spans[i];
    p->exact[p->n_spans++] = d->exact[i];
  }
}

/* The dispatches order[first .. end), which make one phase. */
static berth_status phases_add(phases *p, size_t first, size_t end, bool waits, berth_error *err) {
  const berth__dispatch *d = p->recipe->dispatches;
  for (size_t i = first; i < end; i++) {
    if (p->is_done[i]) continue;
    phases_put(p, &d[p->order[i]], waits && i == first);
    for (size_t k = i + 1; k < end && p->recipe->plan->profile.loops.shares_well; k++)
      if (!p->is_done[k]) BERTH__TRY(phases_merge(p, &d[p->order[k]], &p->is_done[k], err));
  }
  return BERTH_OK;
}

static berth_status phases_add_all(phases *p, berth_error *err) {
  berth__recipe *recipe = p->recipe;
  const size_t n = recipe->n_dispatches, n_prelude = recipe->n_prelude;
  for (size_t i = 0, end; i < n; i = end) {
    const uint32_t level = p->level[p->order[i]];
    for (end = i + 1; end < n && p->level[p->order[end]] == level;) end++;
    BERTH__TRY(phases_add(p, i, end, i != 0 && i != n_prelude, err));
    if (end == n_prelude) recipe->n_prelude = p->n_out;
  }
  return BERTH_OK;
}

/* ---- Kernels that nobody runs any more ---- */

static berth_status phases_drop_kernels(berth__recipe *recipe, berth_error *err) {
  uint32_t *number = berth__alloc_array(recipe->ctx, recipe->n_kernels, sizeof *number), n = 0;
  if (number == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < recipe->n_kernels; i++) number[i] = BERTH__ON_HOST;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    const uint32_t kernel = recipe->dispatches[i].kernel;
    if (kernel != BERTH__ON_HOST) number[kernel] = 0;
  }
  for (size_t i = 0; i < recipe->n_kernels; i++) {
    berth__kernel *kernel = recipe->kernels[i];
    if (number[i] == BERTH__ON_HOST) {
      berth__kernel_destroy(kernel);
    } else {
      number[i] = n;
      recipe->kernels[n++] = kernel;
    }
  }
  recipe->n_kernels = n;
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    berth__dispatch *d = &recipe->dispatches[i];
    if (d->kernel != BERTH__ON_HOST) d->kernel = number[d->kernel];
  }
  berth__free(recipe->ctx, number);
  return BERTH_OK;
}

/* ---- All of it ---- */

static berth_status phases_allocate(phases *p, berth_error *err) {
  berth__recipe *recipe = p->recipe;
  const size_t n = recipe->n_dispatches;
  p->level = berth__alloc_array(recipe->ctx, n, sizeof *p->level);
  p->most = berth__alloc_array(recipe->ctx, n, sizeof *p->most);
  p->order = berth__alloc_array(recipe->ctx, n, sizeof *p->order);
  p->is_done = berth__alloc_array_zero(recipe->ctx, n, sizeof *p->is_done);
  p->out = berth__alloc_array(recipe->ctx, n, sizeof *p->out);
  p->spans = berth__alloc_array(recipe->ctx, recipe->n_spans + 1, sizeof *p->spans);
  p->exact = berth__alloc_array(recipe->ctx, recipe->n_spans + 1, sizeof *p->exact);
  recipe->also = berth__alloc_array(recipe->ctx, n, sizeof *recipe->also);
  const bool has_all = p->level != NULL && p->most != NULL && p->order != NULL && p->is_done != NULL &&
                       p->out != NULL && p->spans != NULL && p->exact != NULL && recipe->also != NULL;
  return has_all ? BERTH_OK : berth__fail_nomem(err, "a program");
}

static void phases_take_over(phases *p) {
  berth__recipe *recipe = p->recipe;
  berth__free(recipe->ctx, recipe->dispatches);
  berth__free(recipe->ctx, recipe->spans);
  berth__free(recipe->ctx, recipe->exact);
  recipe->dispatches_capacity = recipe->n_dispatches;
  recipe->spans_capacity = recipe->exact_capacity = recipe->n_spans + 1;
  recipe->dispatches = p->out;
  recipe->n_dispatches = p->n_out;
  recipe->spans = p->spans;
  recipe->exact = p->exact;
  recipe->n_spans = p->n_spans;
  p->out = NULL;
  p->spans = p->exact = NULL;
}

static berth_status phases_find(phases *p, berth_error *err) {
  const berth__recipe *recipe = p->recipe;
  BERTH__TRY(phases_allocate(p, err));
  for (size_t i = 0; i < recipe->n_dispatches; i++)
    phases_find_level(p, i < recipe->n_prelude ? 0 : recipe->n_prelude, i);
  BERTH__TRY(phases_sort(p, err));
  BERTH__TRY(phases_add_all(p, err));
  phases_take_over(p);
  return phases_drop_kernels(p->recipe, err);
}

berth_status berth__recipe_phases(berth__recipe *recipe, berth_error *err) {
  phases p = {.recipe = recipe};
  if (recipe->n_dispatches == 0) return BERTH_OK;
  const berth_status status = phases_find(&p, err);
  berth__free(recipe->ctx, p.level);
  berth__free(recipe->ctx, p.most);
  berth__free(recipe->ctx, p.order);
  berth__free(recipe->ctx, p.is_done);
  berth__free(recipe->ctx, p.out);
  berth__free(recipe->ctx, p.spans);
  berth__free(recipe->ctx, p.exact);
  return status;
}
