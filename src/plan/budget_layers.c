/* Recomputed layers in slices. Where values are recomputed for the backward pass, the load has a peak per layer: what
 * the layer keeps for its own gradients. Such peaks run in slices of the batch, all of them at once, so values need to
 * be given up only as far as the steps between the peaks require: how far is tried, from little to much. */
#include "plan/batch.h"
#include "plan/budget.h"
#include "plan/budgeter.h"

#define REACH 24u  /* steps from a peak to where it begins and ends */
#define LITTLE 64u /* fraction of the target that the load may rise on the way */
#define MOST_PEAKS 64u
#define MOST_SLICES 8u

/* Its steps are known by what they make: values keep their numbers while other peaks are rewritten. */
typedef struct peak {
  berth_value first, last;
} peak;

typedef struct peaks {
  peak list[MOST_PEAKS]; /* the last one first */
  uint32_t n;
  uint64_t target;
} peaks;

/* From this step, downhill. */
static uint32_t plan_layers_walk(const berth__budgeter *b, const berth_plan *plan, uint64_t target, uint32_t from,
                                 bool back) {
  const uint32_t end = back ? plan->n_prelude : plan->n_steps - 1;
  uint32_t best = from, step = from;
  for (uint32_t i = 0; i < REACH && step != end; i++) {
    step = back ? step - 1 : step + 1;
    if (b->load[step] > b->load[best] + target / LITTLE || b->load[step] > target) break;
    if (b->load[step] < b->load[best]) best = step;
  }
  return best;
}

static berth_value plan_layers_made(const berth_plan *plan, uint32_t step) {
  return plan->graph->nodes[plan->order[step]].out[0];
}

/* Stretches of steps over the target, with what leads there. */
static void plan_layers_find(const berth__budgeter *b, const berth_plan *plan, peaks *p) {
  uint32_t limit = plan->n_steps; /* the next peak begins here */
  p->n = 0;
  for (uint32_t step = plan->n_steps; step-- > plan->n_prelude && p->n < MOST_PEAKS;) {
    if (b->load[step] <= p->target) continue;
    const uint32_t end = plan_layers_walk(b, plan, p->target, step, false), to = end < limit ? end : limit - 1;
    while (step > plan->n_prelude && b->load[step - 1] > p->target) step--;
    step = plan_layers_walk(b, plan, p->target, step, true);
    limit = step;
    if (step < to) p->list[p->n++] = (peak){plan_layers_made(plan, step), plan_layers_made(plan, to)};
  }
}

/* Runs a peak in slices. *graph, whose nodes are in execution order, is replaced, or left as it is if that cannot be
 * done. */
static berth_status plan_layers_slice_one(const berth__budgeter *b, const peak *p, uint32_t n_slices,
                                          berth_graph **graph, uint32_t *n_done, berth_error *err) {
  const uint32_t n = (uint32_t)(*graph)->n_nodes;
  berth__batch_range range = {.extent = berth__batch_extent(*graph),
                              .n_slices = n_slices,
                              .sums = (*graph)->n_updates != 0,
                              .fuses = b->limits->rewrite != NULL};
  uint32_t *order = berth__alloc_array((*graph)->ctx, n, sizeof *order);
  berth_graph *sliced = NULL;
  if (order == NULL) return berth__fail_nomem(err, "a plan");
  for (uint32_t i = 0; i < n; i++) {
    order[i] = i;
    if ((*graph)->nodes[i].out[0] == p->first) range.from = i;
    if ((*graph)->nodes[i].out[0] == p->last) range.to = i + 1;
  }
  const berth_plan as_is = {.ctx = (*graph)->ctx, .graph = *graph, .order = order, .n_steps = n};
  const berth_status status =
      range.extent > 1 && range.from < range.to ? berth__batch_slice(&as_is, &range, &sliced, err) : BERTH_OK;
  berth__free((*graph)->ctx, order);
  if (status != BERTH_OK || sliced == NULL) return status;
  berth_graph_destroy(*graph);
  *graph = sliced;
  ++*n_done;
  return BERTH_OK;
}

/* A copy with its nodes in execution order. */
static berth_status plan_layers_copy(const berth_plan *plan, berth_graph **out, berth_error *err) {
  berth_graph *graph;
  berth__rewrite r;
  *out = NULL;
  BERTH__TRY(berth__graph_duplicate(plan->graph, &graph, err));
  berth_status status = berth__rewrite_start(&r, graph, err);
  for (uint32_t step = 0; step < plan->n_steps && status == BERTH_OK; step++)
    status = berth__rewrite_keep(&r, plan->order[step], err);
  berth__rewrite_finish(&r);
  if (status != BERTH_OK)
    berth_graph_destroy(graph);
  else
    *out = graph;
  return status;
}

/* A plan in which all peaks over the target run in slices; NULL: none can. */
static berth_status plan_layers_slice(berth__budgeter *b, const berth_plan *plan, uint64_t target, uint32_t n_slices,
                                      berth_plan **out, berth_error *err) {
  peaks p = {.target = target};
  berth_graph *graph;
  uint32_t n_done = 0;
  *out = NULL;
  BERTH__TRY(berth__budget_measure(b, plan, err));
  plan_layers_find(b, plan, &p);
  if (p.n == 0) return BERTH_OK;
  BERTH__TRY(plan_layers_copy(plan, &graph, err));
  berth_status status = BERTH_OK;
  for (uint32_t i = 0; i < p.n && status == BERTH_OK; i++) /* the last first: labels depend on what comes before */
    status = plan_layers_slice_one(b, &p.list[i], n_slices, &graph, &n_done, err);
  if (status != BERTH_OK || n_done == 0) {
    berth_graph_destroy(graph);
    return status;
  }
  BERTH__TRY(berth__plan_bound(graph, &b->desc, b->limits, out, err));
  berth__budget_inherit(*out, plan);
  (*out)->info.n_split += n_done;
  (*out)->info.n_slices += n_done * n_slices;
  return BERTH_OK;
}

/* As few slices as meet the budget; otherwise what comes closest to it. */
berth_status berth__budget_layers(berth__budgeter *b, const berth_plan *plan, berth_plan **best, berth_error *err) {
  *best = NULL;
  for (uint32_t n = 2; n <= MOST_SLICES; n *= 2) {
    berth_plan *next;
    const berth_status status = plan_layers_slice(b, plan, b->target, n, &next, err);
    const uint64_t least = berth__budget_size(*best != NULL ? *best : plan);
    const bool is_better = next != NULL && berth__budget_size(next) < least;
    if (is_better || status != BERTH_OK) berth_plan_destroy(*best);
    if (is_better || status != BERTH_OK) *best = next;
    if (!is_better) berth_plan_destroy(next);
    if (status != BERTH_OK || (*best != NULL && berth__budget_size(*best) <= b->budget)) return status;
  }
  return BERTH_OK;
}
