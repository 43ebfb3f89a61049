/* The search for values to recompute. Choices are measured on the model instead of being planned: a measurement takes
 * microseconds.
 *
 * Classes that have no late readers and can be recomputed cheaply from one other class are given up from the start:
 * that costs nothing until a clone needs them, and then less than keeping them. A move gives up a class, by itself or
 * with its operands (which would be kept longer for it otherwise), or everything that can be recomputed cheaply from
 * one class: two norms of the same x are worth keeping x for, one is not. The move with the largest reduction of the
 * bytes over the target per added work is made, repeatedly. The value of a move changes with the others, so the best
 * few of the last round are measured again each time. Then classes that need not be given up are kept after all, the
 * most expensive first. In small graphs, classes are exchanged as long as that saves work, and the whole search is
 * repeated from nearby choices; and all of it once more with classes that may be recomputed for each step that needs
 * them. */
#include "plan/remake.h"

#include <stdlib.h>

#include "base/cancel.h"

#define FRESH 24u     /* moves measured each time */
#define ALL_EVERY 32u /* rounds after which all are measured */
#define SMALL 48u     /* most classes of a graph for which exchanges are tried */
#define PAIRS 24u     /* most classes for which one is exchanged for two */
#define SWAPS_AT_MOST 64u
#define STAGES 48u
#define RESTARTS 24u      /* from nearby choices */
#define LAST_RESTARTS 8u  /* the same with all kinds of choices */
#define SHAKEN 3u         /* classes in which these differ */
#define DEPTHS 3u         /* a class by itself, with its operands, with their operands */
#define FROM DEPTHS       /* everything that is made from a class */
#define EACH (DEPTHS + 1) /* a class by itself, recomputed for each step that needs it */
#define KINDS (DEPTHS + 2)
#define MOST_LINKS 8u     /* classes between the two */
#define LEAST_SHARE 1000u /* fraction of the target: smaller classes are not given up unless they are needed late */
#define QUICK 16.0        /* operations per byte that is cheap to recompute */

typedef struct move {
  uint32_t class, depth;
  double worth; /* reduction of bytes times steps over the target, per operation */
} move;

typedef struct search {
  const berth__remake_model *model;
  uint64_t target;
  uint8_t *dropped, *before, *best, *kept; /* the last three: work space */
  berth__remake_cost now;
  move *moves;
  uint32_t *classes; /* that can be given up */
  uint32_t *source;  /* one per class: what it can be recomputed from cheaply; NEVER: nothing */
  uint32_t n_moves, n;
  uint8_t n_choices; /* kinds of choices tried for a class */
  uint64_t seed;
} search;

/* Gives up the class and, to this depth, its operands. */
static void plan_remake_mark(const search *s, uint32_t class, uint32_t depth) {
  const berth__remake_model *model = s->model;
  const uint32_t maker = model->classes[class].maker;
  for (uint32_t c = 0; c < model->n_classes && depth == FROM; c++)
    if (s->source[c] == class) s->dropped[c] = BERTH__REMAKE_ONCE;
  if (depth == EACH) s->dropped[class] = BERTH__REMAKE_EACH;
  if (depth == FROM || depth == EACH) return;
  s->dropped[class] = BERTH__REMAKE_ONCE;
  for (uint32_t i = model->first_touch[maker]; i < model->first_touch[maker + 1] && depth > 0; i++) {
    const uint32_t from = model->touches[i].class;
    if (from != class && model->classes[from].may_drop) plan_remake_mark(s, from, depth - 1);
  }
}

static double plan_remake_worth(const search *s, const move *m) {
  berth__remake_cost cost;
  if (s->dropped[m->class] && m->depth == 0) return -1;
  if (s->dropped[m->class] == BERTH__REMAKE_EACH && m->depth == EACH) return -1;
  memcpy(s->before, s->dropped, s->model->n_classes);
  plan_remake_mark(s, m->class, m->depth);
  const bool ok = berth__remake_measure(s->model, s->dropped, s->target, &cost);
  memcpy(s->dropped, s->before, s->model->n_classes);
  const double less = s->now.excess - cost.excess, more = cost.work - s->now.work;
  if (!ok || less <= 0) return -1;
  return less / (more < 1 ? 1 : more);
}

static int plan_remake_compare(const void *a, const void *b) {
  const move *x = a, *y = b;
  if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
  if (x->depth != y->depth) return x->depth < y->depth ? -1 : 1;
  return x->class < y->class ? -1 : 1;
}

static void plan_remake_value(search *s, uint32_t n) {
  for (uint32_t i = 0; i < n; i++) s->moves[i].worth = plan_remake_worth(s, &s->moves[i]);
  if (s->n_moves > 1) qsort(s->moves, s->n_moves, sizeof *s->moves, plan_remake_compare);
}

/* False: no move reduces anything any more. */
static bool plan_remake_step(search *s, uint32_t round) {
  if (s->n_moves == 0) return false;
  plan_remake_value(s, round % ALL_EVERY == 0 || s->n_moves <= FRESH ? s->n_moves : FRESH);
  if (s->moves[0].worth <= 0) plan_remake_value(s, s->n_moves);
  if (s->moves[0].worth <= 0) return false;
  plan_remake_mark(s, s->moves[0].class, s->moves[0].depth);
  berth__remake_measure(s->model, s->dropped, s->target, &s->now);
  return true;
}

static bool plan_remake_try(const search *s, uint32_t class, uint8_t value, berth__remake_cost *out) {
  const uint8_t before = s->dropped[class];
  s->dropped[class] = value;
  const bool ok = berth__remake_measure(s->model, s->dropped, s->target, out);
  s->dropped[class] = before;
  return ok;
}

static bool plan_remake_is_less(const berth__remake_cost *a, const berth__remake_cost *b) {
  return a->excess != b->excess ? a->excess < b->excess : a->work < b->work;
}

/* Keeps what the target does not require to be given up, the most expensive first. */
static void plan_remake_keep(search *s) {
  for (;;) {
    uint32_t best = BERTH__REMAKE_NEVER;
    berth__remake_cost cost, least = s->now;
    uint8_t best_choice = BERTH__REMAKE_KEPT;
    for (uint32_t i = 0; i < s->n; i++) {
      const uint32_t class = s->classes[i];
      for (uint8_t choice = 0; choice < s->dropped[class]; choice++) {
        if (!plan_remake_try(s, class, choice, &cost) || cost.excess > s->now.excess) continue;
        if (best == BERTH__REMAKE_NEVER ? cost.work > least.work : cost.work >= least.work) continue;
        best = class;
        best_choice = choice;
        least = cost;
      }
    }
    if (best == BERTH__REMAKE_NEVER) return;
    s->dropped[best] = best_choice;
    s->now = least;
  }
}

/* In large graphs in one pass, from the most expensive node to the cheapest. */
static int plan_remake_compare_work(const void *a, const void *b) {
  const move *x = a, *y = b;
  if (x->worth != y->worth) return x->worth > y->worth ? -1 : 1;
  return x->class < y->class ? -1 : 1;
}

static void plan_remake_keep_once(search *s) {
  for (uint32_t i = 0; i < s->n; i++) {
    const berth__remake_class *class = &s->model->classes[s->classes[i]];
    s->moves[i] = (move){.class = s->classes[i], .worth = s->model->work[class->maker]};
  }
  if (s->n > 1) qsort(s->moves, s->n, sizeof *s->moves, plan_remake_compare_work);
  for (uint32_t i = 0; i < s->n; i++) {
    berth__remake_cost cost;
    const uint32_t class = s->moves[i].class;
    if (!s->dropped[class] || !plan_remake_try(s, class, 0, &cost)) continue;
    if (cost.excess > s->now.excess || cost.work > s->now.work) continue;
    s->dropped[class] = 0;
    s->now = cost;
  }
}

/* Gives up another class instead, or two: takes the first choice that saves work. */
static bool plan_remake_swap_for(search *s, uint32_t from, uint8_t how) {
  const bool with_two = s->n <= PAIRS && s->dropped[from] == BERTH__REMAKE_KEPT && how == BERTH__REMAKE_ONCE;
  berth__remake_cost cost;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t class = s->classes[i];
    if (class == from || s->dropped[class]) continue;
    s->dropped[class] = how;
    if (berth__remake_measure(s->model, s->dropped, s->target, &cost) && plan_remake_is_less(&cost, &s->now)) {
      s->now = cost;
      return true;
    }
    for (uint32_t k = i + 1; k < s->n && with_two; k++) {
      const uint32_t other = s->classes[k];
      if (other == from || s->dropped[other] || !plan_remake_try(s, other, BERTH__REMAKE_ONCE, &cost)) continue;
      if (!plan_remake_is_less(&cost, &s->now)) continue;
      s->dropped[other] = BERTH__REMAKE_ONCE;
      s->now = cost;
      return true;
    }
    s->dropped[class] = BERTH__REMAKE_KEPT;
  }
  return false;
}

/* Tries to exchange a class, by itself or for others. */
static bool plan_remake_swap_one(search *s, uint32_t from) {
  const uint8_t before = s->dropped[from];
  const bool has_each = s->n_choices > BERTH__REMAKE_EACH;
  for (uint8_t choice = 0; choice < s->n_choices; choice++) {
    berth__remake_cost cost;
    if (choice == before || (!has_each && choice != BERTH__REMAKE_KEPT)) continue;
    s->dropped[from] = choice;
    if (berth__remake_measure(s->model, s->dropped, s->target, &cost) && plan_remake_is_less(&cost, &s->now)) {
      s->now = cost;
      return true;
    }
    for (uint8_t how = BERTH__REMAKE_ONCE; how < s->n_choices; how++)
      if (plan_remake_swap_for(s, from, how)) return true;
  }
  s->dropped[from] = before;
  return false;
}

static bool plan_remake_swap(search *s) {
  for (uint32_t i = 0; i < s->n; i++)
    if (plan_remake_swap_one(s, s->classes[i])) return true;
  return false;
}

static berth_status plan_remake_aim(search *s, uint64_t target, berth_error *err) {
  s->target = target;
  berth__remake_measure(s->model, s->dropped, s->target, &s->now);
  for (uint32_t round = 0; s->now.peak > s->target && plan_remake_step(s, round); round++)
    BERTH__TRY(berth__check_cancel(s->model->plan->cancel, "planning", err));
  return BERTH_OK;
}

/* If no move reduces anything, tries targets just below the peak, repeatedly. */
static berth_status plan_remake_lower(search *s, berth_error *err) {
  const uint64_t goal = s->target;
  BERTH__TRY(plan_remake_aim(s, goal, err));
  for (uint32_t i = 0; i < STAGES && s->now.peak > goal; i++) {
    const uint64_t before = s->now.peak, next = before - before / 24;
    BERTH__TRY(plan_remake_aim(s, next > goal ? next : goal, err));
    if (s->now.peak >= before) break;
    BERTH__TRY(plan_remake_aim(s, goal, err));
  }
  s->target = goal;
  berth__remake_measure(s->model, s->dropped, s->target, &s->now);
  return BERTH_OK;
}

static void plan_remake_polish(search *s) {
  plan_remake_keep(s);
  for (uint32_t i = 0; i < SWAPS_AT_MOST && plan_remake_swap(s); i++) plan_remake_keep(s);
}

static berth_status plan_remake_improve(search *s, berth_error *err) {
  BERTH__TRY(plan_remake_lower(s, err));
  if (s->n > SMALL)
    plan_remake_keep_once(s);
  else
    plan_remake_polish(s);
  return BERTH_OK;
}

/* The next number of a deterministic sequence. */
static uint32_t plan_remake_draw(search *s, uint32_t below) {
  s->seed = s->seed * 6364136223846793005u + 1442695040888963407u;
  return (uint32_t)((s->seed >> 33) % below);
}

/* Flips some classes; false: that cannot be measured. */
static bool plan_remake_shake(search *s) {
  for (uint32_t i = 0; i < SHAKEN; i++) {
    uint8_t *choice = &s->dropped[s->classes[plan_remake_draw(s, s->n)]];
    const uint32_t step = s->n_choices > 2 ? 1 + plan_remake_draw(s, s->n_choices - 1u) : 1;
    *choice = (uint8_t)((*choice + step) % s->n_choices);
  }
  return berth__remake_measure(s->model, s->dropped, s->target, &s->now);
}

static berth_status plan_remake_restart(search *s, uint32_t times, berth_error *err) {
  berth__remake_cost least = s->now;
  memcpy(s->best, s->dropped, s->model->n_classes);
  for (uint32_t i = 0; i < times; i++) {
    if (plan_remake_shake(s)) BERTH__TRY(plan_remake_improve(s, err));
    if (plan_remake_is_less(&s->now, &least)) {
      least = s->now;
      memcpy(s->best, s->dropped, s->model->n_classes);
    }
    memcpy(s->dropped, s->best, s->model->n_classes);
    s->now = least;
  }
  return BERTH_OK;
}

/* The only operand that matters for recomputing a class; NEVER: it is expensive, or there are several. */
static uint32_t plan_remake_operand(const berth__remake_model *model, uint32_t class) {
  const berth__remake_class *c = &model->classes[class];
  uint64_t most = 0, all = 0;
  uint32_t largest = BERTH__REMAKE_NEVER;
  if (!c->may_drop || model->work[c->maker] > QUICK * (double)c->size) return BERTH__REMAKE_NEVER;
  for (uint32_t i = model->first_touch[c->maker]; i < model->first_touch[c->maker + 1]; i++) {
    const uint32_t from = model->touches[i].class;
    if (from == class) continue;
    all += model->classes[from].size;
    if (model->classes[from].size <= most) continue;
    most = model->classes[from].size;
    largest = from;
  }
  return all <= c->size + c->size / 2 ? largest : BERTH__REMAKE_NEVER;
}

/* Classes that are not needed after their idle stretch are given up from the start if they are cheap to recompute; the
 * source of the others is found through these. Operands precede what is made from them, except for the order of
 * steps. */
static void plan_remake_find_sources(search *s) {
  const berth__remake_model *model = s->model;
  for (uint32_t c = 0; c < model->n_classes; c++) {
    s->source[c] = plan_remake_operand(model, c);
    if (s->source[c] != BERTH__REMAKE_NEVER && !model->classes[c].is_needed_late) s->dropped[c] = 1;
  }
  for (uint32_t c = 0; c < model->n_classes; c++)
    for (uint32_t k = 0; k < MOST_LINKS && s->source[c] != BERTH__REMAKE_NEVER; k++) {
      const uint32_t from = s->source[c];
      if (!s->dropped[from] || s->source[from] == BERTH__REMAKE_NEVER) break;
      s->source[c] = s->source[from];
    }
}

/* For classes that are needed late; or for all that are not too small. */
static void plan_remake_find_moves(search *s, bool has_all) {
  memset(s->dropped, 0, s->model->n_classes);
  plan_remake_find_sources(s);
  s->n = s->n_moves = 0;
  for (uint32_t c = 0; c < s->model->n_classes; c++) {
    const bool is_small = s->model->classes[c].size < s->target / LEAST_SHARE;
    s->moves[s->n_moves++] = (move){.class = c, .depth = FROM};
    if (!s->model->classes[c].may_drop) continue;
    s->classes[s->n++] = c;
    if (s->n_choices > BERTH__REMAKE_EACH) s->moves[s->n_moves++] = (move){.class = c, .depth = EACH};
    if (!s->model->classes[c].is_needed_late && (is_small || !has_all)) continue;
    for (uint32_t depth = 0; depth < DEPTHS; depth++) s->moves[s->n_moves++] = (move){.class = c, .depth = depth};
  }
}

/* Keeps the previous choice if the new one is no better. */
static void plan_remake_take_better(search *s, const berth__remake_cost *before) {
  if (plan_remake_is_less(&s->now, before)) return;
  s->now = *before;
  memcpy(s->dropped, s->kept, s->model->n_classes);
}

/* Starts with nothing given up. */
static berth_status plan_remake_again(search *s, bool has_all, berth_error *err) {
  const berth__remake_cost before = s->now;
  memcpy(s->kept, s->dropped, s->model->n_classes);
  plan_remake_find_moves(s, has_all);
  BERTH__TRY(plan_remake_improve(s, err));
  plan_remake_take_better(s, &before);
  return BERTH_OK;
}

/* Starts with everything given up, in one way. */
static void plan_remake_from_all(search *s, uint8_t choice) {
  const berth__remake_cost before = s->now;
  memcpy(s->kept, s->dropped, s->model->n_classes);
  for (uint32_t i = 0; i < s->n; i++) s->dropped[s->classes[i]] = choice;
  if (berth__remake_measure(s->model, s->dropped, s->target, &s->now))
    plan_remake_polish(s);
  else
    s->now = before;
  plan_remake_take_better(s, &before);
}

/* With few moves and with many, since neither is always better. */
static berth_status plan_remake_run(search *s, berth_error *err) {
  if (!berth__remake_measure(s->model, s->dropped, s->target, &s->now) || s->now.peak <= s->target) return BERTH_OK;
  plan_remake_find_moves(s, false);
  BERTH__TRY(plan_remake_improve(s, err));
  BERTH__TRY(plan_remake_again(s, true, err));
  if (s->n == 0 || s->n > SMALL) return BERTH_OK;
  BERTH__TRY(plan_remake_restart(s, RESTARTS, err));
  s->n_choices = BERTH__REMAKE_CHOICES;
  plan_remake_polish(s);
  BERTH__TRY(plan_remake_again(s, true, err));
  plan_remake_from_all(s, BERTH__REMAKE_ONCE);
  plan_remake_from_all(s, BERTH__REMAKE_EACH);
  return plan_remake_restart(s, LAST_RESTARTS, err);
}

berth_status berth__remake_search(const berth__remake_model *model, uint64_t target, uint8_t *dropped,
                                  berth__remake_cost *out, berth_error *err) {
  berth_context *ctx = model->ctx;
  const size_t n = model->n_classes;
  search s = {.model = model,
              .target = target,
              .dropped = dropped,
              .before = berth__alloc_array(ctx, n, sizeof *s.before),
              .best = berth__alloc_array(ctx, n, sizeof *s.best),
              .kept = berth__alloc_array(ctx, n, sizeof *s.kept),
              .moves = berth__alloc_array(ctx, n, KINDS * sizeof *s.moves),
              .classes = berth__alloc_array(ctx, n, sizeof *s.classes),
              .source = berth__alloc_array(ctx, n, sizeof *s.source),
              .n_choices = BERTH__REMAKE_EACH,
              .seed = 1};
  berth_status status = BERTH_OK;
  memset(dropped, 0, n);
  if (s.before == NULL || s.best == NULL || s.kept == NULL || s.moves == NULL || s.classes == NULL || s.source == NULL)
    status = berth__fail_nomem(err, "a plan");
  if (status == BERTH_OK) status = plan_remake_run(&s, err);
  *out = s.now;
  berth__free(ctx, s.before);
  berth__free(ctx, s.best);
  berth__free(ctx, s.kept);
  berth__free(ctx, s.moves);
  berth__free(ctx, s.classes);
  berth__free(ctx, s.source);
  return status;
}
