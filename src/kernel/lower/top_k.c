/* top_k. If few of many elements are wanted, all threads of a line find one after the other, each as the best of those
 * that follow the previous one. If there are few long lines, they are cut into pieces with their own workgroups: each
 * finds its own best elements, and a second kernel the best of those. If many elements of a line are wanted, they are
 * found at once: an element's position is the number of better elements, which one thread per element counts. */
#include "kernel/lower/order.h"
#include "kernel/lower/rows.h"
#include "ops/operand.h"

enum {
  VALUES,
  INDICES
};

#define FEW 64     /* results that are found one after the other */
#define PARTS_OF 8 /* if there are so many times as many elements */

#define WANTED_PIECES 64     /* over all lines, to keep a device busy */
#define LEAST_PIECE 256      /* elements */
#define MOST_CANDIDATES 2048 /* that the second kernel searches, per result */

typedef enum stage {
  WHOLE,
  PIECES, /* of lines; the results are candidates, in scratch */
  BEST    /* of candidates */
} stage;

typedef struct search {
  const berth__lowering *l;
  berth__lines from, to;
  bool smallest;
  int64_t pieces; /* per line */
  stage stage;
  uint32_t scratch;    /* PIECES, BEST: element indices, grouped by line */
  berth__x first;      /* PIECES: element of the piece; BEST: candidate of the line */
  berth__x start;      /* of the line */
  berth__x key, index; /* of the previous result; or of the element whose position is being counted */
} search;

enum {
  KEY,
  INDEX
};

static berth__x lower_top_k_place_of(berth__kernel *k, const search *s, berth__x i) {
  return berth__x_add(k, s->start, berth__x_affine(k, i, s->from.inner, 0));
}

static berth__x key_of(berth__kernel *k, const search *s, berth__x i) {
  return berth__l_key(k, berth__l_load(s->l, k, BERTH__TOP_K_X, lower_top_k_place_of(k, s, i)), s->smallest, false);
}

/* Whether b comes after a: of equal elements, the first is better. */
static berth__x is_behind(berth__kernel *k, const berth__x *a, const berth__x *b) {
  const berth__x later = berth__x_and(k, berth__x_eq(k, a[KEY], b[KEY]), berth__x_lt(k, a[INDEX], b[INDEX]));
  return berth__x_or(k, berth__x_lt(k, b[KEY], a[KEY]), later);
}

/* Stores element `index` as result `place` of a line. */
static void lower_top_k_store_result(berth__kernel *k, const search *s, berth__x line, berth__x place, berth__x index) {
  const berth_op_call *call = s->l->call;
  const berth__x to = berth__x_add(k, berth__l_line_start(k, &s->to, line), berth__x_affine(k, place, s->to.inner, 0));
  const berth__x value = berth__l_load(s->l, k, BERTH__TOP_K_X, lower_top_k_place_of(k, s, index));
  berth__l_store(s->l, k, VALUES, berth__l_place_flat(k, &call->out[VALUES], to), value);
  berth__l_store(s->l, k, INDICES, berth__l_place_flat(k, &call->out[INDICES], to), index);
}

/* ---- One after the other ---- */

/* The element of the line for element i of a piece, or for candidate i. */
static berth__x element_of(berth__kernel *k, const search *s, berth__x i) {
  if (s->stage == WHOLE) return i;
  const berth__x at = berth__x_add(k, s->first, i);
  return s->stage == PIECES ? at : berth__x_load(k, s->scratch, at);
}

static void load_behind(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const search *s = state;
  const berth__x element = element_of(k, s, i), length = berth__x_i32(k, s->from.length);
  const berth__x is_there = berth__x_lt(k, element, length); /* the last piece may be shorter, or have no candidates */
  const berth__x inside = berth__x_min(k, element, berth__x_i32(k, s->from.length - 1));
  const berth__x before[2] = {s->key, s->index}, mine[2] = {key_of(k, s, inside), element};
  const berth__x counts = berth__x_and(k, is_there, is_behind(k, before, mine));
  values[KEY] = berth__x_select(k, counts, mine[KEY], berth__x_i32(k, INT32_MIN));
  values[INDEX] = berth__x_select(k, counts, element, berth__x_i32(k, INT32_MAX));
}

static void join_best(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out) {
  (void)state;
  const berth__x wins = is_behind(k, b, a);
  for (int v = KEY; v <= INDEX; v++) out[v] = berth__x_select(k, wins, b[v], a[v]);
}

static int64_t piece_length(const search *s) { return (s->from.length + s->pieces - 1) / s->pieces; }

/* What a row is: a line, a piece of a line, or its candidates. */
static berth__l_rows rows_of_stage(berth__lowering *l, berth__kernel *k, search *s) {
  const int64_t lines = s->from.outer * s->from.inner, candidates = s->pieces * s->to.length;
  const bool is_pieces = s->stage == PIECES, is_along = s->from.inner == 1 || s->stage == BEST;
  const int64_t count = lines * (is_pieces ? s->pieces : 1), length = is_pieces          ? piece_length(s)
                                                                      : s->stage == BEST ? candidates
                                                                                         : s->from.length;
  berth__l_rows rows = berth__l_rows_of(l, k, count, length, is_along);
  const berth__x pieces = berth__x_i32(k, is_pieces ? s->pieces : 1);
  s->start = berth__l_line_start(k, &s->from, berth__x_div(k, rows.row, pieces));
  if (s->stage == WHOLE) return rows;
  s->scratch = berth__l_scratch(k, BERTH_I32);
  s->first = is_pieces ? berth__x_affine(k, berth__x_rem(k, rows.row, pieces), piece_length(s), 0)
                       : berth__x_affine(k, rows.row, candidates, 0);
  return rows;
}

static berth_status add_one_by_one(berth__lowering *l, search *s, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, s->stage == PIECES ? "of pieces" : "of few");
  if (k == NULL) return berth__l_end(l, k, err);
  berth__l_rows rows = rows_of_stage(l, k, s);
  const berth__x key = berth__x_variable(k, berth__x_i32(k, INT32_MAX)); /* no element is better than the initial key */
  const berth__x index = berth__x_variable(k, berth__x_i32(k, -1));
  const berth__x place = berth__x_loop_n(k, s->to.length);
  s->key = berth__x_get(k, key);
  s->index = berth__x_get(k, index);
  const berth__l_fold fold = {.n = 2,
                              .start = {berth__x_i32(k, INT32_MIN), berth__x_i32(k, INT32_MAX)},
                              .element = load_behind,
                              .join = join_best,
                              .state = s};
  berth__x best[BERTH__FOLD_VALUES];
  rows.n_joins = 0;
  berth__l_rows_fold(k, &rows, &fold, best);
  berth__x_set(k, key, best[KEY]);
  berth__x_set(k, index, best[INDEX]);
  berth__l_rows_once(k, &rows);
  if (s->stage == PIECES)
    berth__x_store(k, s->scratch, berth__x_add(k, berth__x_affine(k, rows.row, s->to.length, 0), place), best[INDEX]);
  else
    lower_top_k_store_result(k, s, rows.row, place, best[INDEX]);
  berth__x_end(k);
  if (rows.lanes > 1) berth__x_barrier(k); /* the result has been read before the next search */
  return berth__l_end(l, k, err);
}

/* ---- All at once ---- */

static berth_status add_all_at_once(berth__lowering *l, search *s, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, "of many");
  const berth__x length = berth__x_i32(k, s->from.length);
  const berth__x element = berth__l_each(l, k, s->from.outer * s->from.inner * s->from.length);
  const berth__x line = berth__x_div(k, element, length), index = berth__x_rem(k, element, length);
  s->start = berth__l_line_start(k, &s->from, line);
  const berth__x mine[2] = {key_of(k, s, index), index}, place = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x i = berth__x_loop_n(k, s->from.length), other[2] = {key_of(k, s, i), i};
  const berth__x is_better = berth__x_convert(k, BERTH__NUM_I32, is_behind(k, other, mine));
  berth__x_set(k, place, berth__x_add(k, berth__x_get(k, place), is_better));
  berth__x_end(k);
  const berth__x to = berth__x_get(k, place);
  berth__x_if(k, berth__x_lt(k, to, berth__x_i32(k, s->to.length)));
  lower_top_k_store_result(k, s, line, to, index);
  return berth__l_end(l, k, err);
}

static bool are_few(const search *s) { return s->to.length <= FEW && s->to.length * PARTS_OF <= s->from.length; }

/* If a CPU plays the GPU, a second kernel does not pay off. */
static int64_t pieces_of(const search *s, const berth__kernel_limits *limits) {
  const int64_t lines = s->from.outer * s->from.inner, least = s->to.length * PARTS_OF;
  if (!limits->shares_well || !are_few(s) || lines == 0 || s->to.length == 0) return 1;
  int64_t pieces = WANTED_PIECES / lines;
  const int64_t useful = s->from.length / (least > LEAST_PIECE ? least : LEAST_PIECE),
                most = MOST_CANDIDATES / s->to.length;
  if (pieces > useful) pieces = useful;
  if (pieces > most) pieces = most;
  return pieces > 1 ? pieces : 1;
}

static search search_of(const berth_op_call *call, const berth__kernel_limits *limits) {
  const int64_t axis = call->attrs[BERTH__TOP_K_AXIS].i;
  search s = {.from = berth__lines_of(&call->in[BERTH__TOP_K_X], axis),
              .to = berth__lines_of(&call->out[VALUES], axis),
              .smallest = call->attrs[BERTH__TOP_K_LARGEST].i == 0};
  s.pieces = pieces_of(&s, limits);
  return s;
}

uint64_t berth__scratch_of_top_k(const berth_op_call *call, const berth__kernel_limits *limits) {
  if (berth__call_has(call, BERTH__TOP_K_K_OPERAND)) return 0;
  const search s = search_of(call, limits);
  return s.pieces > 1 ? (uint64_t)(s.from.outer * s.from.inner * s.pieces * s.to.length) * sizeof(int32_t) : 0;
}

berth_status berth__lower_top_k(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  if (berth__l_has(l, BERTH__TOP_K_K_OPERAND))
    return berth__fail(err, BERTH_UNSUPPORTED, "k is an operand, but GPU kernels need it in advance");
  search s = search_of(call, l->limits);
  s.l = l;
  if (berth__count(&call->out[VALUES]) == 0) return BERTH_OK;
  if (!are_few(&s)) return add_all_at_once(l, &s, err);
  if (s.pieces == 1) return add_one_by_one(l, &s, err);
  s.stage = PIECES;
  BERTH__TRY(add_one_by_one(l, &s, err));
  s.stage = BEST;
  return add_one_by_one(l, &s, err);
}
