/* The optimal order of a few steps.
 *
 * A set of nodes that can be done together, with everything they read, determines what is alive after them, whatever
 * their order. So an order is a path through such sets, and the best one is the path whose worst step needs least:
 * Dijkstra's algorithm with the maximum instead of the sum. Two rules keep the number of sets small:
 * - a node that leaves no more alive than before, and whose own step needs no more than the path already did (or
 * may), is done at once: postponing it saves nothing;
 * - paths that need as much as a known order are dropped. */
#include "plan/order.h"

#define WORDS (BERTH__ORDER_WINDOW / 64u)
#define NO_STATE UINT32_MAX
#define MAX_STATES (1u << 18)

typedef struct bits {
  uint64_t word[WORDS];
} bits;

typedef struct local_class {
  uint64_t size;
  bits touches;
  bool is_there; /* before the window */
  bool stays;    /* after it */
} local_class;

typedef struct local_touch {
  uint32_t class;
  bool is_result, may_yield, is_part;
} local_touch;

typedef struct state {
  bits done;
  uint64_t alive, needs;
  uint32_t parent, same_hash;
  uint16_t node, n_done;
  bool is_closed;
} state;

typedef struct open_entry {
  uint64_t needs;
  uint32_t state;
  uint16_t n_done;
} open_entry;

typedef struct searcher {
  berth_context *ctx;
  const berth__order_model *model;
  const berth__order_goal *goal;
  uint32_t n, words;
  uint32_t nodes[BERTH__ORDER_WINDOW];
  bits preds[BERTH__ORDER_WINDOW];
  uint32_t first_touch[BERTH__ORDER_WINDOW + 1];
  local_touch *touches;
  local_class *classes;
  size_t n_classes, classes_capacity, n_touches, touches_capacity;
  uint32_t *hash;
  size_t n_hash, n_states, states_capacity, n_open, open_capacity;
  state *states;
  open_entry *open; /* a heap */
} searcher;

static bool plan_order_window_has_bit(const bits *b, uint32_t i) { return b->word[i / 64] >> (i % 64) & 1u; }
static void set_bit(bits *b, uint32_t i) { b->word[i / 64] |= (uint64_t)1 << (i % 64); }

static bool plan_order_window_is_inside(const searcher *s, const bits *a, const bits *b) {
  for (uint32_t w = 0; w < s->words; w++)
    if (a->word[w] & ~b->word[w]) return false;
  return true;
}

static bool meets(const searcher *s, const bits *a, const bits *b) {
  for (uint32_t w = 0; w < s->words; w++)
    if (a->word[w] & b->word[w]) return true;
  return false;
}

/* ---- The window as bits ---- */

/* The local number of a class; new classes are added. */
static berth_status local_class_of(searcher *s, uint32_t class, const uint32_t *step_of, berth__order_span span,
                                   uint32_t *out, berth_error *err) {
  const berth__order_class *from = &s->model->classes[class];
  const berth__order_touch *touches = s->model->class_touches + from->first_touch;
  local_class made = {.size = from->size, .is_there = from->is_there, .stays = from->stays};
  for (uint32_t i = 0; i < from->n_touches; i++) {
    const uint32_t step = step_of[touches[i].node];
    made.is_there = made.is_there || step < span.begin;
    made.stays = made.stays || step >= span.end;
    if (step >= span.begin && step < span.end) set_bit(&made.touches, step - span.begin);
  }
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->classes, s->classes_capacity, s->n_classes + 1, err));
  *out = (uint32_t)s->n_classes;
  s->classes[s->n_classes++] = made;
  return BERTH_OK;
}

/* map: one per class, UINT32_MAX if it has no local number yet. */
static berth_status plan_order_window_describe(searcher *s, const uint32_t *order, const uint32_t *step_of,
                                               berth__order_span span, uint32_t *map, berth_error *err) {
  const berth__order_model *model = s->model;
  for (uint32_t i = 0; i < s->n; i++) {
    const uint32_t node = order[span.begin + i];
    s->nodes[i] = node;
    s->preds[i] = (bits){{0}};
    for (uint32_t k = model->first_pred[node]; k < model->first_pred[node + 1]; k++) {
      const uint32_t step = step_of[model->preds[k]];
      if (step >= span.begin) set_bit(&s->preds[i], step - span.begin);
    }
    s->first_touch[i] = (uint32_t)s->n_touches;
    for (uint32_t k = model->first_touch[node]; k < model->first_touch[node + 1]; k++) {
      const berth__order_touch *t = &model->touches[k];
      if (map[t->class] == UINT32_MAX) BERTH__TRY(local_class_of(s, t->class, step_of, span, &map[t->class], err));
      BERTH__TRY(BERTH__RESERVE(s->ctx, s->touches, s->touches_capacity, s->n_touches + 1, err));
      s->touches[s->n_touches++] = (local_touch){map[t->class], t->is_result, t->may_yield, t->is_part};
    }
  }
  s->first_touch[s->n] = (uint32_t)s->n_touches;
  return BERTH_OK;
}

/* ---- The sets ---- */

static uint64_t plan_order_window_hash_of(const searcher *s, const bits *b) {
  uint64_t h = 0;
  for (uint32_t w = 0; w < s->words; w++) {
    h = (h ^ b->word[w]) * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
  }
  return h;
}

static bool comes_first(const open_entry *a, const open_entry *b) {
  if (a->needs != b->needs) return a->needs < b->needs;
  if (a->n_done != b->n_done) return a->n_done > b->n_done;
  return a->state < b->state;
}

static berth_status plan_order_window_push(searcher *s, uint32_t index, berth_error *err) {
  const open_entry entry = {.needs = s->states[index].needs, .state = index, .n_done = s->states[index].n_done};
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->open, s->open_capacity, s->n_open + 1, err));
  size_t at = s->n_open++;
  for (; at != 0 && comes_first(&entry, &s->open[(at - 1) / 2]); at = (at - 1) / 2) s->open[at] = s->open[(at - 1) / 2];
  s->open[at] = entry;
  return BERTH_OK;
}

static open_entry pop(searcher *s) {
  const open_entry top = s->open[0], last = s->open[--s->n_open];
  size_t at = 0;
  for (size_t child = 1; child < s->n_open; child = 2 * at + 1) {
    if (child + 1 < s->n_open && comes_first(&s->open[child + 1], &s->open[child])) child++;
    if (!comes_first(&s->open[child], &last)) break;
    s->open[at] = s->open[child];
    at = child;
  }
  s->open[at] = last;
  return top;
}

static berth_status grow_hash(searcher *s, berth_error *err) {
  if (s->n_states * 2 < s->n_hash) return BERTH_OK;
  const size_t n = s->n_hash * 2;
  uint32_t *hash = berth__alloc_array(s->ctx, n, sizeof *hash);
  if (hash == NULL) return berth__fail_nomem(err, "ordering");
  memset(hash, 0xff, n * sizeof *hash);
  for (uint32_t i = 0; i < s->n_states; i++) {
    const size_t at = (size_t)plan_order_window_hash_of(s, &s->states[i].done) & (n - 1);
    s->states[i].same_hash = hash[at];
    hash[at] = i;
  }
  berth__free(s->ctx, s->hash);
  s->hash = hash;
  s->n_hash = n;
  return BERTH_OK;
}

/* Adds a set to the list, or a better path to it. */
static berth_status reach(searcher *s, const state *next, berth_error *err) {
  BERTH__TRY(grow_hash(s, err));
  const size_t at = (size_t)plan_order_window_hash_of(s, &next->done) & (s->n_hash - 1);
  for (uint32_t i = s->hash[at]; i != NO_STATE; i = s->states[i].same_hash) {
    state *known = &s->states[i];
    if (memcmp(&known->done, &next->done, sizeof known->done) != 0) continue;
    if (known->is_closed || known->needs <= next->needs) return BERTH_OK;
    known->needs = next->needs;
    known->parent = next->parent;
    known->node = next->node;
    return plan_order_window_push(s, i, err);
  }
  BERTH__TRY(BERTH__RESERVE(s->ctx, s->states, s->states_capacity, s->n_states + 1, err));
  const uint32_t index = (uint32_t)s->n_states++;
  s->states[index] = *next;
  s->states[index].same_hash = s->hash[at];
  s->hash[at] = index;
  return plan_order_window_push(s, index, err);
}

/* The set with one more node. */
static state plan_order_window_step(const searcher *s, const state *from, uint32_t node) {
  state next = *from;
  uint64_t fresh = 0, over = 0, result = 0;
  berth__order_yield yield = {0};
  set_bit(&next.done, node);
  for (uint32_t i = s->first_touch[node]; i < s->first_touch[node + 1]; i++) {
    const local_touch *t = &s->touches[i];
    const local_class *class = &s->classes[t->class];
    if (!class->is_there && !meets(s, &class->touches, &from->done)) {
      fresh += class->size;
      if (t->is_result) result = class->size;
    }
    if (class->stays || !plan_order_window_is_inside(s, &class->touches, &next.done)) continue;
    over += class->size;
    berth__order_add_yield(&yield, t->may_yield, t->is_part, class->size);
  }
  const uint64_t needs = from->alive + fresh - berth__order_saved(&yield, result) + s->model->scratch[s->nodes[node]];
  if (needs > next.needs) next.needs = needs;
  next.alive = from->alive + fresh - over;
  next.node = (uint16_t)node;
  next.n_done++;
  next.is_closed = false;
  return next;
}

static berth_status plan_order_window_expand(searcher *s, uint32_t index, berth_error *err) {
  const state from = s->states[index];
  state next[BERTH__ORDER_WINDOW];
  uint32_t n_next = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    if (plan_order_window_has_bit(&from.done, i) || !plan_order_window_is_inside(s, &s->preds[i], &from.done)) continue;
    next[n_next] = plan_order_window_step(s, &from, i);
    next[n_next].parent = index;
    if (next[n_next].needs == from.needs && next[n_next].alive <= from.alive) return reach(s, &next[n_next], err);
    if (next[n_next].needs < s->goal->above) n_next++;
  }
  for (uint32_t i = 0; i < n_next; i++) BERTH__TRY(reach(s, &next[i], err));
  return BERTH_OK;
}

static void plan_order_window_keep(const searcher *s, uint32_t last, uint32_t *order, uint32_t *step_of,
                                   berth__order_span span) {
  uint32_t at = span.end;
  for (uint32_t i = last; s->states[i].parent != NO_STATE; i = s->states[i].parent) {
    order[--at] = s->nodes[s->states[i].node];
    step_of[order[at]] = at;
  }
}

static berth_status plan_order_window_search(searcher *s, uint64_t alive, uint32_t *last, berth__order_answer *answer,
                                             berth_error *err) {
  const state start = {.alive = alive, .needs = s->goal->enough, .parent = NO_STATE, .same_hash = NO_STATE};
  BERTH__TRY(reach(s, &start, err));
  while (s->n_open != 0) {
    const open_entry top = pop(s);
    if (s->states[top.state].is_closed || s->states[top.state].needs != top.needs) continue;
    answer->bound = top.needs;
    if (top.n_done == s->n) {
      answer->is_found = true;
      answer->needs = top.needs;
      *last = top.state;
      return BERTH_OK;
    }
    if (answer->tried == s->goal->tries || s->n_states > MAX_STATES) return BERTH_OK;
    answer->tried++;
    s->states[top.state].is_closed = true;
    BERTH__TRY(plan_order_window_expand(s, top.state, err));
  }
  answer->bound = s->goal->above;
  return BERTH_OK;
}

berth_status berth__order_window(const berth__order_model *model, uint32_t *order, uint32_t *step_of, uint64_t alive,
                                 berth__order_span span, const berth__order_goal *goal, berth__order_answer *answer,
                                 berth_error *err) {
  berth_context *ctx = model->ctx;
  const uint32_t n = span.end - span.begin;
  uint32_t *map = berth__alloc_array(ctx, model->n_classes, sizeof *map), last = NO_STATE;
  searcher *s = berth__alloc_zero(ctx, sizeof *s);
  berth_status status = BERTH_OK;
  *answer = (berth__order_answer){.needs = goal->above, .bound = goal->enough};
  if (map == NULL || s == NULL) status = berth__fail_nomem(err, "ordering");
  if (status == BERTH_OK) {
    memset(map, 0xff, model->n_classes * sizeof *map);
    *s = (searcher){.ctx = ctx, .model = model, .goal = goal, .n = n, .words = (n + 63) / 64, .n_hash = 512};
    s->hash = berth__alloc_array(ctx, s->n_hash, sizeof *s->hash);
    if (s->hash == NULL) status = berth__fail_nomem(err, "ordering");
  }
  if (status == BERTH_OK) memset(s->hash, 0xff, s->n_hash * sizeof *s->hash);
  if (status == BERTH_OK) status = plan_order_window_describe(s, order, step_of, span, map, err);
  if (status == BERTH_OK) status = plan_order_window_search(s, alive, &last, answer, err);
  if (status == BERTH_OK && answer->is_found) plan_order_window_keep(s, last, order, step_of, span);
  if (s != NULL) {
    berth__free(ctx, s->touches);
    berth__free(ctx, s->classes);
    berth__free(ctx, s->hash);
    berth__free(ctx, s->states);
    berth__free(ctx, s->open);
  }
  berth__free(ctx, s);
  berth__free(ctx, map);
  return status;
}
