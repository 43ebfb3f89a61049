/* quantize, dequantize, quantize_range. */
#include "kernel/lower/elements.h"
#include "kernel/lower/rows.h"

static berth__x as_f32(berth__kernel *k, berth__x value) { return berth__x_convert(k, BERTH__NUM_F32, value); }

static berth__x quantize_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth__x quotient = berth__x_quotient(k, as_f32(k, in[BERTH__QUANTIZE_X]), in[BERTH__QUANTIZE_SCALE]);
  berth__x steps = berth__x1(k, BERTH__INST_round, quotient);
  if (berth__l_has(l, BERTH__QUANTIZE_ZERO_POINT))
    steps = berth__x_add(k, steps, as_f32(k, in[BERTH__QUANTIZE_ZERO_POINT]));
  return berth__l_saturate(k, steps, l->call->out[0].type);
}

/* Integers are subtracted in their own type: unsigned ones would wrap, and large floats would round. */
static berth__x dequantize_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const bool is_float = berth__l_number(l->call->in[BERTH__QUANTIZE_X].type) == BERTH__NUM_F32;
  const berth__number number = is_float ? BERTH__NUM_F32 : BERTH__NUM_I32;
  berth__x steps = berth__x_convert(k, number, in[BERTH__QUANTIZE_X]);
  if (berth__l_has(l, BERTH__QUANTIZE_ZERO_POINT))
    steps = berth__x_sub(k, steps, berth__x_convert(k, number, in[BERTH__QUANTIZE_ZERO_POINT]));
  return berth__x_mul(k, as_f32(k, steps), in[BERTH__QUANTIZE_SCALE]);
}

berth_status berth__lower_quantize(berth__lowering *l, berth_error *err) {
  return berth__l_elements(l, quantize_value, NULL, err);
}

berth_status berth__lower_dequantize(berth__lowering *l, berth_error *err) {
  return berth__l_elements(l, dequantize_value, NULL, err);
}

/* ---- quantize_range: the minimum and maximum, by one workgroup or, if x is long, by several and then by one over
 * their results ---- */

#define EACH_GROUP 16384 /* elements: enough that a second kernel is worth starting */
#define MOST_GROUPS 128

static int64_t groups_for(const berth_op_call *call) {
  const int64_t wanted = (berth__count(&call->in[BERTH__QUANTIZE_X]) + EACH_GROUP - 1) / EACH_GROUP;
  return wanted < 1 ? 1 : wanted < MOST_GROUPS ? wanted : MOST_GROUPS;
}

uint64_t berth__scratch_of_quantize_range(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  const int64_t groups = groups_for(call);
  return groups > 1 ? (uint64_t)groups * 2 * sizeof(float) : 0;
}

enum {
  LOW,
  HIGH
};

typedef struct search {
  const berth__lowering *l;
  bool is_second; /* over the results of the groups */
  berth__x first; /* first element of this group */
} search;

/* Past the end the last element is counted again, which changes nothing. */
static void load_pair(berth__kernel *k, const void *state, berth__x i, berth__x *values) {
  const search *s = state;
  if (s->is_second) {
    const uint32_t scratch = berth__l_scratch(k, BERTH_F32);
    for (int v = LOW; v <= HIGH; v++) values[v] = berth__x_load(k, scratch, berth__x_affine(k, i, 2, v));
    return;
  }
  const berth__x last = berth__x_i32(k, berth__count(&s->l->call->in[BERTH__QUANTIZE_X]) - 1);
  values[LOW] = values[HIGH] =
      berth__l_load(s->l, k, BERTH__QUANTIZE_X, berth__x_min(k, berth__x_add(k, s->first, i), last));
}

/* NaN is propagated. */
static void join_pairs(berth__kernel *k, const void *state, const berth__x *a, const berth__x *b, berth__x *out) {
  (void)state;
  const berth__x wins[] = {berth__x_lt(k, b[LOW], a[LOW]), berth__x_lt(k, a[HIGH], b[HIGH])};
  for (int v = LOW; v <= HIGH; v++)
    out[v] = berth__x_select(k, berth__x_or(k, wins[v], berth__x_is_nan(k, b[v])), b[v], a[v]);
}

static void lower_quantize_store_result(const berth__lowering *l, berth__kernel *k, const berth__x *e) {
  const berth__x zero = berth__x_f32(k, 0), first = berth__x_i32(k, 0);
  const berth__x range = berth__x_sub(k, e[HIGH], e[LOW]);
  const berth__x step = berth__x_quotient(k, range, berth__x_f32(k, 255));
  const berth__x scale = berth__x_select(k, berth__x_eq(k, range, zero), berth__x_f32(k, 1), step);
  const berth__x point = berth__x_quotient(k, berth__x1(k, BERTH__INST_neg, e[LOW]), scale);
  berth__l_store(l, k, 0, first, scale);
  berth__l_store(l, k, 1, first, berth__l_saturate(k, berth__x1(k, BERTH__INST_round, point), BERTH_U8));
}

/* Over x, or over the results of `groups` groups. */
static berth_status add_pass(berth__lowering *l, int64_t groups, bool is_second, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, is_second ? "of groups" : NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const int64_t count = is_second ? 1 : groups;
  const int64_t length = is_second ? groups : (berth__count(&l->call->in[BERTH__QUANTIZE_X]) + groups - 1) / groups;
  berth__l_rows rows = berth__l_rows_of(l, k, count, length, true);
  const search s = {.l = l, .is_second = is_second, .first = berth__x_affine(k, rows.row, length, 0)};
  const berth__x zero = berth__x_f32(k, 0); /* is always in the range */
  const berth__l_fold fold = {.n = 2, .start = {zero, zero}, .element = load_pair, .join = join_pairs, .state = &s};
  berth__x found[BERTH__FOLD_VALUES];
  berth__l_rows_fold(k, &rows, &fold, found);
  berth__l_rows_once(k, &rows);
  const uint32_t scratch = count > 1 ? berth__l_scratch(k, BERTH_F32) : 0;
  for (int v = LOW; v <= HIGH && count > 1; v++)
    berth__x_store(k, scratch, berth__x_affine(k, rows.row, 2, v), found[v]);
  if (count == 1) lower_quantize_store_result(l, k, found);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_quantize_range(berth__lowering *l, berth_error *err) {
  const int64_t groups = groups_for(l->call);
  BERTH__TRY(add_pass(l, groups, false, err));
  return groups > 1 ? add_pass(l, groups, true, err) : BERTH_OK;
}
