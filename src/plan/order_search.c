/* Orders a whole graph, piece by piece.
 *
 * A node that is ordered relative to every other one is at the same position in all orders, and the nodes between two
 * such nodes can be ordered separately: the pieces are independent, and the graph needs as much as its worst piece. So
 * the worst piece is improved until another one is worse, or until it is proven optimal. Pieces that are too large for
 * that are improved around their worst step, a window at a time. */
#include "plan/order.h"

#include "base/cancel.h"

/* Sets of nodes to examine, for a graph of n nodes. */
#define TRIES_AT_LEAST 2048u
#define TRIES_A_NODE 32u
#define TRIES_AT_MOST 65536u
#define TRIES_A_WINDOW 512u

typedef struct piece {
  berth__order_span span;
  uint64_t needs, bound;
} piece;

typedef struct improver {
  const berth__order_model *model;
  uint32_t *order, *step_of, *left;
  berth__order_load load;
  piece *pieces;
  uint32_t n_pieces;
  uint64_t bound; /* of the whole graph: of its worst piece */
  uint32_t tries;
} improver;

/* ---- Pieces ---- */

/* ends: one per step. True if every other node of [begin, step] comes before the one at `step`. */
static void mark_collectors(const improver *m, uint32_t begin, uint32_t end, uint8_t *ends, uint8_t *is_read) {
  uint32_t unread = 0;
  for (uint32_t step = begin; step < end; step++) {
    const uint32_t node = m->order[step];
    for (uint32_t k = m->model->first_pred[node]; k < m->model->first_pred[node + 1]; k++) {
      const uint32_t from = m->step_of[m->model->preds[k]];
      if (from < begin || is_read[from]) continue;
      is_read[from] = 1;
      unread--;
    }
    ends[step] = ++unread == 1;
  }
}

/* The same from the other side: clears steps that do not come before all of [step, end). */
static void unmark_non_sources(uint32_t begin, uint32_t end, const uint32_t *waiting, uint8_t *ends) {
  uint32_t sources = 0; /* of [step, end): nodes that read nothing from it */
  for (uint32_t step = end; step-- > begin;) {
    sources++;
    sources -= waiting[step];
    if (sources != 1) ends[step] = 0;
  }
}

/* waiting[step]: the number of nodes of [begin, end) whose last operand it makes. */
static void count_last_preds(const improver *m, uint32_t begin, uint32_t end, uint32_t *waiting) {
  for (uint32_t step = begin; step < end; step++) waiting[step] = 0;
  for (uint32_t step = begin; step < end; step++) {
    const uint32_t node = m->order[step];
    uint32_t last = UINT32_MAX;
    for (uint32_t k = m->model->first_pred[node]; k < m->model->first_pred[node + 1]; k++) {
      const uint32_t from = m->step_of[m->model->preds[k]];
      if (from >= begin && (last == UINT32_MAX || from > last)) last = from;
    }
    if (last != UINT32_MAX) waiting[last]++;
  }
}

static void add_piece(improver *m, uint32_t begin, uint32_t end) {
  if (begin < end) m->pieces[m->n_pieces++] = (piece){.span = {begin, end}};
}

static berth_status cut_range(improver *m, uint32_t begin, uint32_t end, berth_error *err) {
  berth_context *ctx = m->model->ctx;
  uint8_t *ends = berth__alloc_array_zero(ctx, m->model->n_nodes, sizeof *ends);
  uint8_t *is_read = berth__alloc_array_zero(ctx, m->model->n_nodes, sizeof *is_read);
  uint32_t *waiting = berth__alloc_array(ctx, m->model->n_nodes, sizeof *waiting);
  berth_status status = BERTH_OK;
  if (ends != NULL && is_read != NULL && waiting != NULL) {
    mark_collectors(m, begin, end, ends, is_read);
    count_last_preds(m, begin, end, waiting);
    unmark_non_sources(begin, end, waiting, ends);
    uint32_t from = begin;
    for (uint32_t step = begin; step < end; step++) {
      if (!ends[step]) continue;
      add_piece(m, from, step);
      add_piece(m, step, step + 1);
      from = step + 1;
    }
    add_piece(m, from, end);
  } else {
    status = berth__fail_nomem(err, "ordering");
  }
  berth__free(ctx, ends);
  berth__free(ctx, is_read);
  berth__free(ctx, waiting);
  return status;
}

static berth_status plan_order_search_cut(improver *m, berth_error *err) {
  uint32_t n_once = 0;
  while (n_once < m->model->n_nodes && m->model->in_prelude[m->order[n_once]]) n_once++;
  BERTH__TRY(cut_range(m, 0, n_once, err));
  return cut_range(m, n_once, m->model->n_nodes, err);
}

/* ---- Lower bounds ---- */

/* The minimum that a node's own step needs in any order. */
static uint64_t least_for(const berth__order_model *model, uint32_t node) {
  uint64_t all = model->base + model->scratch[node], result = 0;
  berth__order_yield yield = {0};
  for (uint32_t i = model->first_touch[node]; i < model->first_touch[node + 1]; i++) {
    const berth__order_touch *t = &model->touches[i];
    all += model->classes[t->class].size;
    if (t->is_result) result = model->classes[t->class].size;
    berth__order_add_yield(&yield, t->may_yield, t->is_part, model->classes[t->class].size);
  }
  return all - berth__order_saved(&yield, result);
}

static void measure_piece(const improver *m, piece *p) {
  p->needs = 0;
  for (uint32_t step = p->span.begin; step < p->span.end; step++)
    if (m->load.cost[step] > p->needs) p->needs = m->load.cost[step];
}

static void plan_order_search_measure(improver *m) {
  berth__order_measure(m->model, m->order, m->left, m->load);
  for (uint32_t i = 0; i < m->n_pieces; i++) measure_piece(m, &m->pieces[i]);
}

static void bound_pieces(improver *m) {
  for (uint32_t i = 0; i < m->n_pieces; i++) {
    piece *p = &m->pieces[i];
    for (uint32_t step = p->span.begin; step < p->span.end; step++) {
      const uint64_t least = least_for(m->model, m->order[step]);
      if (least > p->bound) p->bound = least;
    }
    if (p->span.end - p->span.begin == 1) p->bound = p->needs;
    if (p->bound > m->bound) m->bound = p->bound;
  }
}

static piece *worst_piece(const improver *m) {
  piece *worst = &m->pieces[0];
  for (uint32_t i = 1; i < m->n_pieces; i++)
    if (m->pieces[i].needs > worst->needs) worst = &m->pieces[i];
  return worst;
}

/* ---- Improving a piece ---- */

static berth_status plan_order_search_solve(improver *m, berth__order_span span, uint64_t above, uint32_t tries,
                                            berth__order_answer *answer, berth_error *err) {
  BERTH__TRY(berth__check_cancel(m->model->cancel, "planning", err));
  const berth__order_goal goal = {.above = above, .enough = m->bound, .tries = tries < m->tries ? tries : m->tries};
  BERTH__TRY(berth__order_window(m->model, m->order, m->step_of, m->load.alive[span.begin], span, &goal, answer, err));
  m->tries -= answer->tried;
  if (answer->is_found) plan_order_search_measure(m);
  return BERTH_OK;
}

/* The whole piece at once. */
static berth_status solve_piece(improver *m, piece *p, berth_error *err) {
  berth__order_answer answer;
  if (p->span.end - p->span.begin > BERTH__ORDER_WINDOW) return BERTH_OK;
  BERTH__TRY(plan_order_search_solve(m, p->span, p->needs, m->tries / 2, &answer, err));
  if (answer.bound > p->bound) p->bound = answer.bound;
  if (p->bound > m->bound) m->bound = p->bound;
  return BERTH_OK;
}

static uint32_t worst_step(const improver *m, const piece *p) {
  uint32_t worst = p->span.begin;
  for (uint32_t step = worst; step < p->span.end; step++)
    if (m->load.cost[step] > m->load.cost[worst]) worst = step;
  return worst;
}

/* `width` steps around one, as far as the piece extends; `before` of them precede it. */
static berth__order_span span_around(const piece *p, uint32_t step, uint32_t width, uint32_t before) {
  berth__order_span span = {.begin = step - p->span.begin > before ? step - before : p->span.begin};
  span.end = p->span.end - span.begin > width ? span.begin + width : p->span.end;
  return span;
}

static uint64_t most_in(const improver *m, berth__order_span span) {
  uint64_t most = 0;
  for (uint32_t step = span.begin; step < span.end; step++)
    if (m->load.cost[step] > most) most = m->load.cost[step];
  return most;
}

/* Windows around the worst step, from small to large, until one of them lowers it. */
static berth_status solve_window(improver *m, const piece *p, bool *is_better, berth_error *err) {
  const uint32_t step = worst_step(m, p);
  *is_better = false;
  for (uint32_t width = 16; width <= BERTH__ORDER_WINDOW && !*is_better && m->tries != 0; width *= 2) {
    for (uint32_t quarter = 1; quarter <= 3 && !*is_better && m->tries != 0; quarter++) {
      berth__order_answer answer;
      const berth__order_span span = span_around(p, step, width, width / 4 * quarter);
      BERTH__TRY(plan_order_search_solve(m, span, most_in(m, span), TRIES_A_WINDOW, &answer, err));
      *is_better = answer.is_found;
    }
    if (width >= p->span.end - p->span.begin) break;
  }
  return BERTH_OK;
}

/* False: the worst piece cannot be improved, so the rest does not matter. */
static berth_status improve_worst(improver *m, bool *goes_on, berth_error *err) {
  piece *p = worst_piece(m);
  const uint64_t before = p->needs;
  *goes_on = false;
  if (p->needs <= m->bound || m->tries == 0) return BERTH_OK;
  BERTH__TRY(solve_piece(m, p, err));
  if (p->needs <= m->bound || p->needs < before) {
    *goes_on = true;
    return BERTH_OK;
  }
  for (bool is_better = true; is_better && p->needs > m->bound && m->tries != 0;)
    BERTH__TRY(solve_window(m, p, &is_better, err));
  *goes_on = p->needs < before;
  return BERTH_OK;
}

static berth_status plan_order_search_improve(improver *m, berth__order_result *result, berth_error *err) {
  for (uint32_t step = 0; step < m->model->n_nodes; step++) m->step_of[m->order[step]] = step;
  BERTH__TRY(plan_order_search_cut(m, err));
  plan_order_search_measure(m);
  bound_pieces(m);
  for (bool goes_on = true; goes_on;) BERTH__TRY(improve_worst(m, &goes_on, err));
  result->needs = worst_piece(m)->needs;
  result->bound = m->bound < result->needs ? m->bound : result->needs;
  return BERTH_OK;
}

berth_status berth__order_search(const berth__order_model *model, uint32_t *order, berth__order_result *result,
                                 berth_error *err) {
  berth_context *ctx = model->ctx;
  const uint32_t n = model->n_nodes;
  *result = (berth__order_result){0};
  if (n == 0) return BERTH_OK;
  const uint32_t tries = n < TRIES_AT_MOST / TRIES_A_NODE ? TRIES_AT_LEAST + n * TRIES_A_NODE : TRIES_AT_MOST;
  improver m = {.model = model,
                .order = order,
                .step_of = berth__alloc_array(ctx, n, sizeof *m.step_of),
                .left = berth__alloc_array(ctx, model->n_classes, sizeof *m.left),
                .load = {.cost = berth__alloc_array(ctx, n, sizeof *m.load.cost),
                         .alive = berth__alloc_array(ctx, (size_t)n + 1, sizeof *m.load.alive)},
                .pieces = berth__alloc_array(ctx, n, sizeof *m.pieces),
                .tries = tries};
  berth_status status = BERTH_OK;
  if (!m.step_of || !m.left || !m.load.cost || !m.load.alive || !m.pieces) status = berth__fail_nomem(err, "ordering");
  if (status == BERTH_OK) status = plan_order_search_improve(&m, result, err);
  berth__free(ctx, m.step_of);
  berth__free(ctx, m.left);
  berth__free(ctx, m.load.cost);
  berth__free(ctx, m.load.alive);
  berth__free(ctx, m.pieces);
  return status;
}
