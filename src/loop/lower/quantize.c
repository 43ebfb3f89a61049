/* quantize, dequantize, quantize_range. */
#include "loop/lower/elements.h"

enum {
  X,
  SCALE,
  ZERO_POINT
};

static berth__x as_f32(berth__kernel *k, berth__x value) { return berth__x_convert(k, BERTH__NUM_F32, value); }

static berth__x quantize_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const berth__x quotient = berth__x_div(k, as_f32(k, in[X]), in[SCALE]);
  berth__x steps = berth__x1(k, BERTH__INST_round, quotient);
  if (berth__l_has(l, ZERO_POINT)) steps = berth__x_add(k, steps, as_f32(k, in[ZERO_POINT]));
  return berth__l_saturate(k, steps, l->call->out[0].type);
}

/* Integers are subtracted as such: unsigned ones would wrap, and large floats would round. */
static berth__x dequantize_value(const berth__lowering *l, berth__kernel *k, const berth__x *in, const void *state) {
  (void)state;
  const bool is_float = berth__l_number(l->call->in[X].type) == BERTH__NUM_F32;
  const berth__number number = is_float ? BERTH__NUM_F32 : BERTH__NUM_I32;
  berth__x steps = berth__x_convert(k, number, in[X]);
  if (berth__l_has(l, ZERO_POINT)) steps = berth__x_sub(k, steps, berth__x_convert(k, number, in[ZERO_POINT]));
  return berth__x_mul(k, as_f32(k, steps), in[SCALE]);
}

berth_status berth__lower_quantize(berth__lowering *l, berth_error *err) {
  return berth__l_elements(l, quantize_value, NULL, err);
}

berth_status berth__lower_dequantize(berth__lowering *l, berth_error *err) {
  return berth__l_elements(l, dequantize_value, NULL, err);
}

/* ---- quantize_range: the least and the largest element, by one workgroup or, where x is long, by several and then by
 * one over what these found ---- */

#define EACH_GROUP 16384 /* elements: so many that a second kernel is worth its start */
#define MOST_GROUPS 128
#define MOST_THREADS 256u

static int64_t groups_for(const berth_op_call *call) {
  const int64_t wanted = (berth__count(&call->in[X]) + EACH_GROUP - 1) / EACH_GROUP;
  return wanted < 1 ? 1 : wanted < MOST_GROUPS ? wanted : MOST_GROUPS;
}

uint64_t berth__scratch_of_quantize_range(const berth_op_call *call, const berth__loop_limits *limits) {
  (void)limits;
  const int64_t groups = groups_for(call);
  return groups > 1 ? (uint64_t)groups * 2 * sizeof(float) : 0;
}

/* The lower (sense 1) or the higher (-1) of two; a NaN stays. */
static berth__x extreme(berth__kernel *k, berth__x held, berth__x x, bool lower) {
  const berth__x wins = lower ? berth__x_lt(k, x, held) : berth__x_lt(k, held, x);
  return berth__x_select(k, berth__x_or(k, wins, berth__x_is_nan(k, x)), x, held);
}

typedef struct extremes {
  berth__x low, high; /* values, or variables */
} extremes;

static void take(berth__kernel *k, const extremes *e, berth__x low, berth__x high) {
  berth__x_set(k, e->low, extreme(k, berth__x_get(k, e->low), low, true));
  berth__x_set(k, e->high, extreme(k, berth__x_get(k, e->high), high, false));
}

static uint32_t threads_for(const berth__loop_limits *limits) {
  uint32_t threads = 1;
  while (threads < MOST_THREADS && threads * 2 <= limits->group_size) threads *= 2;
  return threads;
}

/* Of all threads of a workgroup; what comes out is for thread 0, inside the block that is opened for it. */
static extremes of_group(berth__kernel *k, const extremes *mine) {
  const uint32_t low = berth__kernel_shared(k, BERTH__NUM_F32, k->group_size);
  const uint32_t high = berth__kernel_shared(k, BERTH__NUM_F32, k->group_size);
  const berth__x thread = berth__x_thread(k), first = berth__x_i32(k, 0);
  berth__x_shared_store(k, low, thread, berth__x_get(k, mine->low));
  berth__x_shared_store(k, high, thread, berth__x_get(k, mine->high));
  for (uint32_t half = k->group_size / 2; half > 0; half /= 2) {
    berth__x_barrier(k);
    berth__x_if(k, berth__x_lt(k, thread, berth__x_i32(k, half)));
    const berth__x other = berth__x_affine(k, thread, 1, half);
    const berth__x lower = berth__x_shared_load(k, low, other), higher = berth__x_shared_load(k, high, other);
    berth__x_shared_store(k, low, thread, extreme(k, berth__x_shared_load(k, low, thread), lower, true));
    berth__x_shared_store(k, high, thread, extreme(k, berth__x_shared_load(k, high, thread), higher, false));
    berth__x_end(k);
  }
  berth__x_if(k, berth__x_eq(k, thread, first));
  return (extremes){.low = berth__x_shared_load(k, low, first), .high = berth__x_shared_load(k, high, first)};
}

/* Where a group's extremes lie in scratch: 2 g and behind it. */
static berth__x in_scratch(berth__kernel *k, berth__x group, int64_t which) {
  return berth__x_affine(k, group, 2, which);
}

static void store_result(const berth__lowering *l, berth__kernel *k, extremes e) {
  const berth__x zero = berth__x_f32(k, 0), first = berth__x_i32(k, 0);
  const berth__x range = berth__x_sub(k, e.high, e.low);
  const berth__x step = berth__x_div(k, range, berth__x_f32(k, 255));
  const berth__x scale = berth__x_select(k, berth__x_eq(k, range, zero), berth__x_f32(k, 1), step);
  const berth__x point = berth__x_div(k, berth__x1(k, BERTH__INST_neg, e.low), scale);
  berth__l_store(l, k, 0, first, scale);
  berth__l_store(l, k, 1, first, berth__l_saturate(k, berth__x1(k, BERTH__INST_round, point), BERTH_U8));
}

/* One pass: over x (`from_scratch` false) or over what `n` groups found; into scratch where there are several groups
 * now. */
static berth_status add_pass(berth__lowering *l, int64_t groups, int64_t n, bool from_scratch, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, from_scratch ? "of groups" : NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  k->group_size = threads_for(l->limits);
  k->n_groups = (uint64_t)groups;
  const berth__x zero = berth__x_f32(k, 0), group = berth__x_group(k), thread = berth__x_thread(k);
  const extremes mine = {.low = berth__x_variable(k, zero), .high = berth__x_variable(k, zero)};
  const berth__x first = berth__x_add(k, berth__x_affine(k, group, k->group_size, 0), thread);
  const berth__x i = berth__x_loop(k, first, berth__x_i32(k, n), groups * k->group_size);
  const uint32_t source = from_scratch ? berth__l_scratch(k, BERTH__STORE_F32) : berth__l_in(l, k, X);
  const berth__x low = berth__x_load(k, source, from_scratch ? in_scratch(k, i, 0) : i);
  take(k, &mine, low, from_scratch ? berth__x_load(k, source, in_scratch(k, i, 1)) : low);
  berth__x_end(k);
  const extremes all = of_group(k, &mine);
  if (groups == 1) {
    store_result(l, k, all);
  } else {
    const uint32_t scratch = berth__l_scratch(k, BERTH__STORE_F32);
    berth__x_store(k, scratch, in_scratch(k, group, 0), all.low);
    berth__x_store(k, scratch, in_scratch(k, group, 1), all.high);
  }
  berth__x_end(k);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_quantize_range(berth__lowering *l, berth_error *err) {
  const int64_t groups = groups_for(l->call);
  BERTH__TRY(add_pass(l, groups, berth__count(&l->call->in[X]), false, err));
  return groups > 1 ? add_pass(l, 1, groups, true, err) : BERTH_OK;
}
