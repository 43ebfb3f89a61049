/* Reduces the number of phases. A barrier costs a GPU about a microsecond, plus the idle time between the last
 * workgroups of one kernel and the first of the next. The order of a plan is optimised for memory; here every dispatch
 * moves to the first phase that the bytes it reads and writes allow. */
#include "device/gpu/recipe.h"

typedef struct phases {
  berth__recipe *recipe;
  uint32_t *level; /* per dispatch: its phase */
  uint32_t *most;  /* maximum over it and those before it */
  size_t *start;   /* per phase: position of its next dispatch */
  berth__dispatch *out;
} phases;

/* The phase after that of the last dispatch that it must wait for. Earlier dispatches are searched backwards, until the
 * rest cannot change the answer. */
static void phases_find_level(phases *p, size_t first, size_t i) {
  const berth__dispatch *d = p->recipe->dispatches;
  uint32_t level = first > 0 ? p->most[first - 1] + 1 : 0; /* dispatches before `first` belong to another submission */
  for (size_t k = i; k > first && p->most[k - 1] >= level; k--)
    if (p->level[k - 1] >= level && berth__recipe_conflict(p->recipe, &d[k - 1], &d[i])) level = p->level[k - 1] + 1;
  p->level[i] = level;
  p->most[i] = i > 0 && p->most[i - 1] > level ? p->most[i - 1] : level;
}

/* Sorts by phase, and by plan order inside each. */
static berth_status phases_sort(phases *p, berth_error *err) {
  berth__recipe *recipe = p->recipe;
  const size_t n = recipe->n_dispatches, n_levels = (size_t)p->most[n - 1] + 2;
  p->start = berth__alloc_array_zero(recipe->ctx, n_levels, sizeof *p->start);
  if (p->start == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < n; i++) p->start[p->level[i] + 1]++;
  for (size_t i = 1; i < n_levels; i++) p->start[i] += p->start[i - 1];
  for (size_t i = 0; i < n; i++) {
    const size_t at = p->start[p->level[i]]++;
    p->out[at] = recipe->dispatches[i];
  }
  for (size_t i = 0, at = 0; i < n_levels - 1; i++) { /* by now, start[i] is the end of phase i */
    if (at < n) p->out[at].waits = at != 0 && at != recipe->n_prelude;
    for (size_t k = at + 1; k < p->start[i]; k++) p->out[k].waits = false;
    at = p->start[i];
  }
  return BERTH_OK;
}

static berth_status phases_find(phases *p, berth_error *err) {
  berth__recipe *recipe = p->recipe;
  const size_t n = recipe->n_dispatches;
  p->level = berth__alloc_array(recipe->ctx, n, sizeof *p->level);
  p->most = berth__alloc_array(recipe->ctx, n, sizeof *p->most);
  p->out = berth__alloc_array(recipe->ctx, n, sizeof *p->out);
  if (p->level == NULL || p->most == NULL || p->out == NULL) return berth__fail_nomem(err, "a program");
  for (size_t i = 0; i < n; i++) phases_find_level(p, i < recipe->n_prelude ? 0 : recipe->n_prelude, i);
  BERTH__TRY(phases_sort(p, err));
  memcpy(recipe->dispatches, p->out, n * sizeof *p->out);
  return BERTH_OK;
}

/* Whether a dispatch stores bytes of a span. */
static bool phases_stores(const berth__recipe *recipe, const berth__dispatch *d, const berth__span *span) {
  if (d->kernel == BERTH__ON_HOST) return true;
  const berth__kernel *kernel = recipe->kernels[d->kernel];
  for (uint32_t i = 0; i < kernel->n_buffers; i++) {
    const berth__span *to = &d->spans[i];
    if (kernel->buffers[i].is_written && to->at < span->at + span->size && span->at < to->at + to->size) return true;
  }
  return false;
}

/* Whether the dispatch stores what the other one loads before its wait. */
static bool phases_disturbs(const berth__recipe *recipe, const berth__dispatch *writer, const berth__dispatch *early) {
  const berth__kernel *kernel = recipe->kernels[early->kernel];
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (kernel->buffers[i].is_early && phases_stores(recipe, writer, &early->spans[i])) return true;
  return false;
}

/* The first dispatch of the phase that `i` is in. */
static size_t phases_first(const berth__recipe *recipe, size_t i) {
  while (i > 0 && i != recipe->n_prelude && !recipe->dispatches[i].waits) i--;
  return i;
}

bool berth__recipe_is_fresh(const berth__recipe *recipe, size_t dispatch, uint32_t buffer) {
  const size_t end = phases_first(recipe, dispatch);
  if (end == 0 || end == recipe->n_prelude) return false; /* nothing of the submission comes before it */
  for (size_t i = phases_first(recipe, end - 1); i < end; i++)
    if (phases_stores(recipe, &recipe->dispatches[i], &recipe->dispatches[dispatch].spans[buffer])) return true;
  return false;
}

/* Rounds that load what is fresh: their compiler is told that nobody writes it, and may load it before the kernel waits
 * (src/device/cuda/compile.c). */
static bool phases_has_fresh_rounds(const berth__recipe *recipe, size_t dispatch) {
  const berth__kernel *kernel = recipe->kernels[recipe->dispatches[dispatch].kernel];
  if (!berth__kernel_has_rounds(kernel)) return false;
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (!kernel->buffers[i].is_written && berth__recipe_is_fresh(recipe, dispatch, i)) return true;
  return false;
}

static bool phases_loads_early(const berth__kernel *kernel) {
  for (uint32_t i = 0; i < kernel->n_buffers; i++)
    if (kernel->buffers[i].is_early) return true;
  return false;
}

void berth__recipe_mark_early(berth__recipe *recipe) {
  for (size_t i = 0; i < recipe->n_dispatches; i++) {
    berth__dispatch *d = &recipe->dispatches[i];
    d->begins_early = d->kernel != BERTH__ON_HOST && !phases_has_fresh_rounds(recipe, i);
    if (!d->begins_early || !phases_loads_early(recipe->kernels[d->kernel])) continue;
    for (size_t k = i < recipe->n_prelude ? 0 : recipe->n_prelude; k < i && d->begins_early; k++)
      d->begins_early = !phases_disturbs(recipe, &recipe->dispatches[k], d);
  }
}

berth_status berth__recipe_phases(berth__recipe *recipe, berth_error *err) {
  phases p = {.recipe = recipe};
  const berth_status status = recipe->n_dispatches != 0 ? phases_find(&p, err) : BERTH_OK;
  berth__free(recipe->ctx, p.level);
  berth__free(recipe->ctx, p.most);
  berth__free(recipe->ctx, p.start);
  berth__free(recipe->ctx, p.out);
  return status;
}
