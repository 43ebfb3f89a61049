/* reduce_sum, reduce_mean, reduce_max, reduce_min, reduce_prod, reduce_bytes. If there are few results of many
 * elements, rows are cut into pieces with their own workgroups, and a second kernel folds the results of the pieces. */
#include <math.h>

#include "kernel/lower/elements.h"
#include "kernel/lower/rows.h"
#include "kernel/lower/words.h"
#include "ops/operand.h"

#define WANTED_GROUPS 64 /* that keep a device busy */
#define LEAST_PIECE 8192 /* elements: enough that a second kernel is worth starting */

typedef struct reduction {
  const berth__lowering *l;
  berth__op_code code;
  berth_type type;
  berth__l_space kept; /* tensor 0: the operand; tensor 1: the result */
  berth__l_space gone; /* tensor 0: the operand */
  int64_t count, length;
  int64_t pieces;  /* per row */
  uint32_t beside; /* neighbouring results that a thread computes, because their elements are in one word: 1 or 2 */
} reduction;

/* Whether elements are closer together along rows than across them. */
static bool is_along_rows(const reduction *r) {
  if (r->kept.rank == 0) return true;
  if (r->gone.rank == 0) return false;
  return r->gone.stride[0][r->gone.rank - 1] <= r->kept.stride[0][r->kept.rank - 1];
}

static int64_t lower_reduce_pieces_of(const reduction *r) {
  if (!is_along_rows(r)) return berth__l_pieces_across(r->count, r->length);
  const int64_t wanted = r->count > 0 ? WANTED_GROUPS / r->count : 1, useful = r->length / LEAST_PIECE;
  const int64_t pieces = wanted < useful ? wanted : useful;
  return pieces > 1 ? pieces : 1;
}

static bool lower_reduce_is_even(const berth__l_space *space, uint32_t n) {
  for (uint32_t axis = 0; axis < n; axis++)
    if (space->stride[0][axis] % 2 != 0) return false;
  return true;
}

/* Two, if neighbouring results are of elements of 16 bits that begin at a word in every row. */
static uint32_t lower_reduce_beside_of(const berth__lowering *l, const reduction *r) {
  const uint32_t last = r->kept.rank - 1;
  if (is_along_rows(r) || berth__storage_per_word(berth__l_storage_of(l, BERTH__REDUCE_X)) != 2) return 1;
  const bool is_even = r->kept.stride[0][last] == 1 && r->kept.dim[last] % 2 == 0 &&
                       lower_reduce_is_even(&r->kept, last) && lower_reduce_is_even(&r->gone, r->gone.rank);
  return is_even && berth__l_begins_with_word(l, BERTH__REDUCE_X) ? 2 : 1;
}

static uint32_t axes_of(const berth_op_call *call) {
  const berth_attr *attr = &call->attrs[BERTH__REDUCE_AXES];
  const uint32_t rank = call->in[BERTH__REDUCE_X].rank;
  uint32_t axes = 0;
  for (uint32_t i = 0; i < attr->count; i++) axes |= 1u << (attr->ints[i] < 0 ? attr->ints[i] + rank : attr->ints[i]);
  return attr->count == 0 ? (1u << rank) - 1 : axes;
}

/* Splits the operand's axes into those that are kept and those that are reduced. */
static reduction lower_reduce_describe(const berth_op_call *call) {
  const berth_tensor *in = &call->in[BERTH__REDUCE_X], *out = &call->out[0];
  const uint32_t axes = axes_of(call);
  int64_t dim[2][BERTH_MAX_RANK], stride[2][BERTH_MAX_RANK], to[BERTH_MAX_RANK];
  uint32_t rank[2] = {0, 0};
  const bool keeps_axes = out->rank == in->rank;
  for (uint32_t axis = 0; axis < in->rank; axis++) {
    const uint32_t goes = (axes >> axis) & 1u;
    if (!goes) to[rank[0]] = out->stride[keeps_axes ? axis : rank[0]];
    dim[goes][rank[goes]] = in->dim[axis];
    stride[goes][rank[goes]++] = in->stride[axis];
  }
  reduction r = {.code = berth__call_code(call), .type = out->type};
  berth__l_space_of(&r.kept, rank[0], dim[0]);
  berth__l_space_add(&r.kept, stride[0]);
  berth__l_space_add(&r.kept, to);
  berth__l_space_join(&r.kept);
  berth__l_space_of(&r.gone, rank[1], dim[1]);
  berth__l_space_add(&r.gone, stride[1]);
  berth__l_space_join(&r.gone);
  r.count = berth__l_space_count(&r.kept);
  r.length = berth__l_space_count(&r.gone);
  r.pieces = lower_reduce_pieces_of(&r);
  return r;
}

uint64_t berth__scratch_of_reduce(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  if (berth__call_has(call, BERTH__REDUCE_AXES_OPERAND)) return 0;
  const reduction r = lower_reduce_describe(call);
  return r.pieces > 1 ? (uint64_t)(r.count * r.pieces) * sizeof(uint32_t) : 0;
}

/* ---- One fold ---- */

/* The reduction of nothing. */
static berth__x start_of(berth__kernel *k, const reduction *r) {
  const berth__number number = berth__l_number(r->type);
  const bool is_max = r->code == BERTH__OP_reduce_max, is_min = r->code == BERTH__OP_reduce_min;
  const bool is_prod = r->code == BERTH__OP_reduce_prod;
  if (number == BERTH__NUM_F32) return berth__x_f32(k, is_max ? -INFINITY : is_min ? INFINITY : is_prod ? 1 : 0);
  int64_t low, high;
  berth__int_limits(r->type, &low, &high);
  int64_t value = is_max ? low : is_min ? high : is_prod ? 1 : 0;
  if (number == BERTH__NUM_U32) return berth__x_u32(k, value > UINT32_MAX ? UINT32_MAX : (uint32_t)value);
  return berth__x_i32(k, value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value);
}

/* NaN is propagated. */
static berth__x extreme(berth__kernel *k, berth__x held, berth__x x, bool is_max, bool is_float) {
  if (!is_float) return is_max ? berth__x_max(k, held, x) : berth__x_min(k, held, x);
  const berth__x wins = is_max ? berth__x_lt(k, held, x) : berth__x_lt(k, x, held);
  return berth__x_select(k, berth__x_or(k, wins, berth__x_is_nan(k, x)), x, held);
}

typedef struct source {
  const reduction *r;
  uint32_t scratch; /* where the pieces' results are */
  bool is_second;   /* over those; otherwise over the operand */
  berth__x base;    /* position of the row's first element */
  int64_t step;     /* stride between the pieces of a row */
  berth__x first;   /* of the piece */
  berth__x start;
} source;

static void lower_reduce_load_element(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const source *s = state;
  const reduction *r = s->r;
  if (s->is_second) {
    values[0] = berth__x_load(k, s->scratch, berth__x_add(k, s->base, berth__x_affine(k, i, s->step, 0)));
    return;
  }
  berth__x at[BERTH_MAX_RANK], index = berth__x_add(k, s->first, i);
  const berth__x is_there = berth__x_lt(k, index, berth__x_i32(k, r->length)); /* the last piece may be shorter */
  index = berth__x_min(k, index, berth__x_i32(k, r->length - 1));
  berth__l_unravel(k, index, r->gone.rank, r->gone.dim, at);
  const berth__x place = berth__x_add(k, s->base, berth__l_space_place(k, &r->gone, 0, at));
  if (r->beside > 1) {
    const berth__storage storage = berth__l_storage_of(r->l, BERTH__REDUCE_X);
    const berth__x word = berth__l_load_word(r->l, k, BERTH__REDUCE_X, place);
    for (uint32_t f = 0; f < r->beside; f++) {
      const berth__x x = berth__x_convert(k, berth__l_number(r->type), berth__l_lane(k, storage, word, f));
      values[f] = berth__x_select(k, is_there, x, s->start);
    }
    return;
  }
  berth__x x = berth__l_load(r->l, k, BERTH__REDUCE_X, place);
  if (r->code == BERTH__OP_reduce_bytes) x = berth__x_convert(k, BERTH__NUM_I32, x);
  values[0] = berth__x_select(k, is_there, x, s->start);
}

static berth__x lower_reduce_joined(berth__kernel *k, const reduction *r, berth__x a, berth__x b) {
  const bool is_float = berth__l_number(r->type) == BERTH__NUM_F32;
  switch (r->code) {
    case BERTH__OP_reduce_prod: return berth__x_mul(k, a, b);
    case BERTH__OP_reduce_max: return extreme(k, a, b, true, is_float);
    case BERTH__OP_reduce_min: return extreme(k, a, b, false, is_float);
    default: return berth__x_add(k, a, b);
  }
}

static void lower_reduce_join(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b,
                              berth__x *out) {
  for (uint32_t v = 0; v < BERTH__FOLD_VALUES; v++)
    if (a[v] != BERTH__X_NONE) out[v] = lower_reduce_joined(k, ((const source *)state)->r, a[v], b[v]);
}

static berth__x lower_reduce_divided(berth__kernel *k, const reduction *r, berth__x sum) {
  switch (berth__l_number(r->type)) {
    case BERTH__NUM_F32: return berth__x_div(k, sum, berth__x_f32(k, (float)r->length));
    case BERTH__NUM_I32: return berth__x_div(k, sum, berth__x_i32(k, r->length));
    default: return berth__x_div(k, sum, berth__x_u32(k, (uint32_t)r->length));
  }
}

static void lower_reduce_store_result(berth__kernel *k, const reduction *r, berth__x row, berth__x value) {
  berth__x at[BERTH_MAX_RANK];
  berth__l_unravel(k, row, r->kept.rank, r->kept.dim, at);
  if (r->code == BERTH__OP_reduce_mean) value = lower_reduce_divided(k, r, value);
  berth__l_store(r->l, k, 0, berth__l_space_place(k, &r->kept, 1, at), value);
}

/* Of the results of pieces: sums of narrow numbers are not narrow. */
static berth__storage lower_reduce_storage(const reduction *r) {
  switch (berth__l_number(r->type)) {
    case BERTH__NUM_F32: return BERTH_F32;
    case BERTH__NUM_I32: return BERTH_I32;
    default: return BERTH_U32;
  }
}

static source lower_reduce_source_of(berth__kernel *k, const reduction *r, const berth__l_rows *rows, bool is_second) {
  source s = {.r = r, .is_second = is_second, .start = start_of(k, r)};
  s.scratch = r->pieces > 1 ? berth__l_scratch(k, lower_reduce_storage(r)) : 0;
  const bool is_along = is_along_rows(r);
  s.step = is_along ? 1 : r->count;
  if (is_second) {
    s.base = berth__x_affine(k, rows->row, is_along ? r->pieces : 1, 0);
    return s;
  }
  berth__x at[BERTH_MAX_RANK];
  const berth__x by = berth__x_i32(k, is_along ? r->pieces : r->count / r->beside); /* keeps neighbours together */
  const berth__x high = berth__x_div(k, rows->row, by), low = berth__x_rem(k, rows->row, by);
  const berth__x first = is_along ? high : berth__x_affine(k, low, r->beside, 0);
  berth__l_unravel(k, first, r->kept.rank, r->kept.dim, at);
  s.base = berth__l_space_place(k, &r->kept, 0, at);
  s.first = berth__x_affine(k, is_along ? low : high, rows->length, 0);
  return s;
}

static berth_status lower_reduce_add_kernel(berth__lowering *l, const reduction *r, bool is_second, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, is_second ? "of pieces" : r->pieces > 1 ? "by pieces" : NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const bool is_first = !is_second && r->pieces > 1;
  const uint32_t beside = is_second ? 1 : r->beside;
  const int64_t count = r->count / beside * (is_first ? r->pieces : 1);
  const int64_t length = is_first ? (r->length + r->pieces - 1) / r->pieces : is_second ? r->pieces : r->length;
  berth__l_rows rows =
      is_along_rows(r) ? berth__l_rows_of(l, k, count, length, true) : berth__l_rows_across(l, k, count, length);
  const source s = lower_reduce_source_of(k, r, &rows, is_second);
  const bool is_sum = r->code == BERTH__OP_reduce_sum || r->code == BERTH__OP_reduce_mean;
  const berth__l_fold fold = {.n = beside,
                              .start = {s.start, s.start},
                              .is_sum = is_sum && berth__l_number(r->type) == BERTH__NUM_F32,
                              .is_ahead = rows.lanes > 1 && !is_along_rows(r),
                              .element = lower_reduce_load_element,
                              .join = lower_reduce_join,
                              .state = &s};
  berth__x values[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, values);
  berth__l_rows_once(k, &rows);
  for (uint32_t f = 0; f < beside; f++) {
    const berth__x row = berth__x_affine(k, rows.row, beside, f);
    if (is_first)
      berth__x_store(k, s.scratch, row, values[f]);
    else
      lower_reduce_store_result(k, r, row, values[f]);
  }
  return berth__l_end(l, k, err);
}

berth_status berth__lower_reduce(berth__lowering *l, berth_error *err) {
  if (berth__l_has(l, BERTH__REDUCE_AXES_OPERAND))
    return berth__fail(err, BERTH_UNSUPPORTED, "its axes are an operand, but GPU kernels need them in advance");
  reduction r = lower_reduce_describe(l->call);
  r.l = l;
  if (r.count == 0) return BERTH_OK;
  r.beside = lower_reduce_beside_of(l, &r);
  BERTH__TRY(lower_reduce_add_kernel(l, &r, false, err));
  return r.pieces > 1 ? lower_reduce_add_kernel(l, &r, true, err) : BERTH_OK;
}
