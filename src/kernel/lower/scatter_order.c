/* scatter_nd for many tuples: they are sorted by their slices first, and each slice then gets its updates one after the
 * other, by threads that meet no others.
 *
 * rows      the number of each tuple's slice
 * order     the rank of each tuple: the number of tuples before it, of smaller slices or earlier ones of its own. Every
 *           tuple is compared with every other, which takes no more than one kernel and no atomics. Stores the tuple at
 *           its rank, with the end of its slice: the number of tuples of smaller slices or its own
 * in order  a thread per rank and element. The first tuple of a slice applies all of its updates, and the other threads
 *           end: where a slice ends is known beforehand, so several updates are loaded at once */
#include "kernel/lower/scatter.h"

#include "kernel/lower/rows.h"

#define NO_SLICE (INT32_MAX - 1) /* of an index out of range: sorted behind all others */
#define KERNELS 3
#define COST_OF_KERNEL 128
#define UPDATES_AHEAD 8 /* a frequent token has hundreds */
#define COMPARED 4      /* tuples that are compared in the time of a step */

enum {
  SLICE,
  ORDER,
  END,
  N_LISTS
}; /* in scratch, one entry per tuple or rank */

int64_t berth__slices_order_cost(const berth__slices *s) {
  return KERNELS * COST_OF_KERNEL + berth__scatter_rounds(s->n / COMPARED * s->n) +
         2 * berth__scatter_rounds(s->n * s->each);
}

uint64_t berth__slices_order_scratch(const berth__slices *s) { return N_LISTS * (uint64_t)s->n * sizeof(uint32_t); }

static berth__x order_load(berth__kernel *k, uint32_t scratch, const berth__slices *s, int list, berth__x i) {
  return berth__x_load(k, scratch, berth__x_affine(k, i, 1, list * s->n));
}

static void order_store(berth__kernel *k, uint32_t scratch, const berth__slices *s, int list, berth__x i,
                        berth__x value) {
  berth__x_store(k, scratch, berth__x_affine(k, i, 1, list * s->n), value);
}

static berth_status order_add_rows(berth__lowering *l, const berth__slices *s, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, "rows");
  const berth__x tuple = berth__l_each_alone(l, k, s->n);
  const uint32_t scratch = berth__l_scratch(k, BERTH_I32);
  berth__x is_inside = berth__x_bool(k, true), slice = berth__x_i32(k, 0);
  for (uint32_t i = 0; i < s->tuple; i++) {
    const berth__x index = berth__slices_index(l, k, s, tuple, i);
    is_inside = berth__x_and(k, is_inside, berth__scatter_in_range(k, index, out->dim[i]));
    slice = berth__x_add(k, berth__x_affine(k, slice, out->dim[i], 0), index);
  }
  order_store(k, scratch, s, SLICE, tuple, berth__x_select(k, is_inside, slice, berth__x_i32(k, NO_SLICE)));
  return berth__l_end(l, k, err);
}

typedef struct ranking {
  const berth__slices *s;
  uint32_t scratch;
  berth__x tuple, slice; /* of the row: the tuple whose rank is counted */
} ranking;

static void order_take(berth__kernel *k, const void *state, const berth__x *i, uint32_t n, const berth__x *before,
                       berth__x *out) {
  const ranking *r = state;
  const berth__x zero = berth__x_i32(k, 0), one = berth__x_i32(k, 1), next = berth__x_affine(k, r->slice, 1, 1);
  berth__x others[BERTH__ROWS_AHEAD];
  for (uint32_t e = 0; e < n; e++) others[e] = order_load(k, r->scratch, r->s, SLICE, i[e]);
  out[0] = before[0], out[1] = before[1];
  for (uint32_t e = 0; e < n; e++) {
    const berth__x bound = berth__x_select(k, berth__x_lt(k, i[e], r->tuple), next, r->slice);
    out[0] = berth__x_add(k, out[0], berth__x_select(k, berth__x_lt(k, others[e], bound), one, zero));
    out[1] = berth__x_add(k, out[1], berth__x_select(k, berth__x_lt(k, others[e], next), one, zero));
  }
}

static berth_status order_add_ranks(berth__lowering *l, const berth__slices *s, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, "order");
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = berth__l_rows_of(l, k, s->n, s->n, true);
  ranking r = {.s = s, .scratch = berth__l_scratch(k, BERTH_I32)};
  r.tuple = berth__x_min(k, rows.row, berth__x_i32(k, s->n - 1));
  r.slice = order_load(k, r.scratch, s, SLICE, r.tuple);
  const berth__x zero = berth__x_i32(k, 0);
  const berth__l_fold fold = {
      .n = 2, .start = {zero, zero}, .take = order_take, .join = berth__l_join_sums, .state = &r};
  berth__x counts[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, counts);
  berth__l_rows_once(k, &rows);
  order_store(k, r.scratch, s, ORDER, counts[0], rows.row);
  order_store(k, r.scratch, s, END, counts[0], counts[1]);
  berth__x_end(k);
  k->bytes = (double)berth__slices_order_scratch(s);
  return berth__l_end(l, k, err);
}

/* The updates of several ranks, which are all loaded before the first is applied. */
static void order_apply_some(berth__lowering *l, berth__kernel *k, const berth__slices *s, uint32_t scratch,
                             berth__x rank, uint32_t n, berth__x element, berth__x value) {
  berth__x updates[UPDATES_AHEAD];
  for (uint32_t e = 0; e < n; e++) {
    const berth__x tuple = order_load(k, scratch, s, ORDER, berth__x_affine(k, rank, 1, e));
    updates[e] = berth__l_load(l, k, BERTH__SCATTER_UPDATES, berth__slices_update(k, s, tuple, element));
  }
  for (uint32_t e = 0; e < n; e++)
    berth__x_set(k, value, berth__scatter_combined(l, k, s->reduction, berth__x_get(k, value), updates[e]));
}

/* All updates of the slice whose first tuple has this rank. */
static void order_apply(berth__lowering *l, berth__kernel *k, const berth__slices *s, uint32_t scratch, berth__x rank,
                        berth__x end, berth__x element) {
  const berth_tensor *out = &l->call->out[0];
  const berth__x slice = order_load(k, scratch, s, SLICE, order_load(k, scratch, s, ORDER, rank));
  berth__x at[BERTH_MAX_RANK];
  berth__x_if(k, berth__x_ne(k, slice, berth__x_i32(k, NO_SLICE)));
  berth__l_unravel(k, slice, s->tuple, out->dim, at);
  berth__l_unravel(k, element, out->rank - s->tuple, out->dim + s->tuple, at + s->tuple);
  const berth__x place = berth__l_place(k, out, at);
  const berth__x value = berth__x_variable(k, berth__scatter_held(l, k, place));
  const berth__x next = berth__x_variable(k, rank); /* the first rank that is left */
  const berth__x first = berth__x_loop(k, rank, berth__x_affine(k, end, 1, -(UPDATES_AHEAD - 1)), UPDATES_AHEAD);
  berth__x_set(k, next, berth__x_affine(k, first, 1, UPDATES_AHEAD));
  order_apply_some(l, k, s, scratch, first, UPDATES_AHEAD, element, value);
  berth__x_end(k);
  order_apply_some(l, k, s, scratch, berth__x_loop(k, berth__x_get(k, next), end, 1), 1, element, value);
  berth__x_end(k);
  berth__l_store(l, k, 0, place, berth__x_get(k, value));
  berth__x_end(k);
}

berth_status berth__slices_in_order(berth__lowering *l, const berth__slices *s, berth_error *err) {
  BERTH__TRY(berth__scatter_copy(l, err));
  BERTH__TRY(order_add_rows(l, s, err));
  BERTH__TRY(order_add_ranks(l, s, err));
  berth__kernel *k = berth__l_begin(l, "in order");
  if (k == NULL) return berth__l_end(l, k, err);
  const berth__x thread = berth__l_each_alone(l, k, s->n * s->each), each = berth__x_i32(k, s->each);
  const berth__x rank = berth__x_div(k, thread, each), zero = berth__x_i32(k, 0);
  const uint32_t scratch = berth__l_scratch(k, BERTH_I32);
  const berth__x end = order_load(k, scratch, s, END, rank);
  const berth__x before = order_load(k, scratch, s, END, berth__x_max(k, berth__x_affine(k, rank, 1, -1), zero));
  berth__x_if(k, berth__x_or(k, berth__x_eq(k, rank, zero), berth__x_ne(k, before, end)));
  order_apply(l, k, s, scratch, rank, end, berth__x_rem(k, thread, each));
  berth__x_end(k);
  k->bytes = 3 * berth__l_bytes(l, BERTH__SCATTER_UPDATES); /* at most: each slice is loaded and stored once */
  return berth__l_end(l, k, err);
}
