/* What the builder makes of index arithmetic: the same numbers, and the short form where there is one. */
#include <stdlib.h>

#include "run.h"

enum {
  THREADS = 32,
  GROUPS = 24,
  COUNT = THREADS * GROUPS,
  NODES = 24
};

/* An expression as it was asked for. */
typedef struct node {
  berth__inst_code code;
  int32_t value; /* of constants */
  int a, b, c;   /* nodes before it */
  berth__x x;    /* what the builder made of it */
} node;

static int32_t divide(int32_t a, int32_t b) { return b == 0 ? 0 : (int32_t)((int64_t)a / b); }
static int32_t remain(int32_t a, int32_t b) { return b == 0 ? 0 : (int32_t)((int64_t)a % b); }

static int32_t evaluate(const node *nodes, int at, int32_t index) {
  const node *n = &nodes[at];
  if (n->code == BERTH__INST_constant) return n->value;
  if (n->code == BERTH__INST_thread) return index;
  int32_t a = evaluate(nodes, n->a, index), b = evaluate(nodes, n->b, index);
  switch (n->code) {
    case BERTH__INST_add: return (int32_t)((uint32_t)a + (uint32_t)b);
    case BERTH__INST_sub: return (int32_t)((uint32_t)a - (uint32_t)b);
    case BERTH__INST_mul: return (int32_t)((uint32_t)a * (uint32_t)b);
    case BERTH__INST_div: return divide(a, b);
    case BERTH__INST_rem: return remain(a, b);
    case BERTH__INST_min: return a < b ? a : b;
    case BERTH__INST_max: return a > b ? a : b;
    case BERTH__INST_and: return a & b;
    case BERTH__INST_or: return a | b;
    case BERTH__INST_xor: return a ^ b;
    case BERTH__INST_shl: return (int32_t)((uint32_t)a << (b & 31));
    case BERTH__INST_shr: return (int32_t)((int64_t)a >> (b & 31));
    case BERTH__INST_lt: return a < b;
    case BERTH__INST_le: return a <= b;
    case BERTH__INST_eq: return a == b;
    case BERTH__INST_ne: return a != b;
    case BERTH__INST_neg: return (int32_t)(0u - (uint32_t)a);
    case BERTH__INST_abs: return a < 0 ? (int32_t)(0u - (uint32_t)a) : a;
    case BERTH__INST_select: return a < b ? evaluate(nodes, n->c, index) : b;
    default: abort();
  }
}

static const berth__inst_code random_codes[] = {
    BERTH__INST_add, BERTH__INST_add, BERTH__INST_add, BERTH__INST_sub, BERTH__INST_mul, BERTH__INST_mul,
    BERTH__INST_div, BERTH__INST_div, BERTH__INST_rem, BERTH__INST_rem, BERTH__INST_min, BERTH__INST_max,
    BERTH__INST_and, BERTH__INST_or,  BERTH__INST_xor, BERTH__INST_shl, BERTH__INST_shr, BERTH__INST_neg,
    BERTH__INST_abs, BERTH__INST_lt,  BERTH__INST_le,  BERTH__INST_eq,  BERTH__INST_ne,  BERTH__INST_select};

static int pick(uint64_t *random, int n) { return (int)(test_random(random) % (uint64_t)n); }

/* Mostly the numbers that reshapes are made of; now and then one that makes things wrap. */
static int32_t random_constant(uint64_t *random) {
  static const int32_t few[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 32, 48, 64, 96, -1, -2, -3, 31};
  if (pick(random, 30) == 0) return (int32_t)(uint32_t)test_random(random);
  return few[pick(random, (int)(sizeof few / sizeof *few))];
}

static berth__x make(berth__kernel *k, const node *nodes, const node *n) {
  if (n->code == BERTH__INST_constant) return berth__x_i32(k, n->value);
  berth__x a = nodes[n->a].x, b = nodes[n->b].x;
  switch (n->code) {
    case BERTH__INST_lt:
    case BERTH__INST_le:
    case BERTH__INST_eq:
    case BERTH__INST_ne: return berth__x_convert(k, BERTH__NUM_I32, berth__x2(k, n->code, a, b));
    case BERTH__INST_select: return berth__x_select(k, berth__x_lt(k, a, b), nodes[n->c].x, b);
    case BERTH__INST_neg:
    case BERTH__INST_abs: return berth__x1(k, n->code, a);
    case BERTH__INST_shl:
    case BERTH__INST_shr: return berth__x2(k, n->code, a, berth__x_and(k, b, berth__x_i32(k, 31)));
    default: return berth__x2(k, n->code, a, b);
  }
}

/* Nodes from `from` up to NODES; the first ones lean on the index, so that most of them depend on it. */
static void grow(berth__kernel *k, node *nodes, int from, uint64_t *random) {
  for (int i = from; i < NODES; ++i) {
    node *n = &nodes[i];
    n->code = pick(random, 4) == 0 ? BERTH__INST_constant
                                   : random_codes[pick(random, sizeof random_codes / sizeof *random_codes)];
    n->value = random_constant(random);
    n->a = pick(random, i);
    n->b = pick(random, i);
    n->c = pick(random, i);
    n->x = make(k, nodes, n);
  }
}

static void assert_range_holds(const berth__kernel *k, const node *n, int32_t value) {
  const berth__inst *inst = berth__x_inst(k, n->x);
  if (value < inst->low || value > inst->high) {
    fail_msg("%s: %d is not between %lld and %lld", berth__inst_name(n->code), value, (long long)inst->low,
             (long long)inst->high);
  }
}

static void random_expressions_keep_their_values(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  static uint32_t words[COUNT];
  for (uint64_t round = 0; round < 3000; ++round) {
    uint64_t random = round;
    berth__kernel *k = kernel_of(ctx, "random", THREADS, GROUPS);
    uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
    node nodes[NODES] = {{.code = BERTH__INST_thread, .x = flat_index(k)}};
    grow(k, nodes, 1, &random);
    assert_int_equal(k->status, BERTH_OK);
    int step = (int)(round % 7) + 1;
    for (int32_t index = 0; index < COUNT; index += step) {
      for (int i = 0; i < NODES; ++i) assert_range_holds(k, &nodes[i], evaluate(nodes, i, index));
    }
    berth__x_store(k, out, nodes[0].x, nodes[NODES - 1].x);
    finish_and_run(k, words, COUNT);
    for (int32_t index = 0; index < COUNT; ++index) {
      int32_t want = evaluate(nodes, NODES - 1, index);
      if ((int32_t)words[index] != want) {
        fail_msg("round %d, index %d: %d and not %d", (int)round, index, (int32_t)words[index], want);
      }
    }
  }
  berth_context_destroy(ctx);
}

/* What a condition says about ranges holds in its block, and is forgotten after it. */
static void conditions_narrow_ranges_inside_their_blocks_alone(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  static uint32_t words[COUNT];
  for (uint64_t round = 0; round < 1500; ++round) {
    uint64_t random = round + 1000000;
    berth__kernel *k = kernel_of(ctx, "random", THREADS, GROUPS);
    uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
    node base[NODES] = {{.code = BERTH__INST_thread, .x = flat_index(k)}}, yes[NODES], no[NODES], behind[NODES];
    const int shared = 8;
    grow(k, base, 1, &random);
    const int a = pick(&random, shared), b = pick(&random, shared);
    const berth__inst_code codes[] = {BERTH__INST_lt, BERTH__INST_le, BERTH__INST_eq, BERTH__INST_ne};
    const node condition = {.code = codes[pick(&random, 4)], .a = a, .b = b};
    memcpy(yes, base, sizeof base), memcpy(no, base, sizeof base), memcpy(behind, base, sizeof base);
    berth__x_if(k, berth__x2(k, condition.code, base[a].x, base[b].x));
    grow(k, yes, shared, &random);
    berth__x_store(k, out, base[0].x, yes[NODES - 1].x);
    berth__x_else(k);
    grow(k, no, shared, &random);
    berth__x_store(k, out, base[0].x, no[NODES - 1].x);
    berth__x_end(k);
    grow(k, behind, shared, &random);
    berth__x_store(k, out, base[0].x, berth__x_add(k, berth__x_load(k, out, base[0].x), behind[NODES - 1].x));
    finish_and_run(k, words, COUNT);
    for (int32_t index = 0; index < COUNT; ++index) {
      node with_condition[NODES];
      memcpy(with_condition, base, sizeof base);
      with_condition[shared] = condition;
      const node *taken = evaluate(with_condition, shared, index) != 0 ? yes : no;
      uint32_t want = (uint32_t)evaluate(taken, NODES - 1, index) + (uint32_t)evaluate(behind, NODES - 1, index);
      if (words[index] != want) fail_msg("round %d, index %d: %u and not %u", (int)round, index, words[index], want);
    }
  }
  berth_context_destroy(ctx);
}

static void unravel(berth__kernel *k, berth__x index, int rank, const int64_t *dim, berth__x *at) {
  int64_t inner = 1;
  for (int i = rank - 1; i >= 0; --i) {
    at[i] = berth__x_div(k, index, berth__x_i32(k, inner));
    if (i > 0) at[i] = berth__x_rem(k, at[i], berth__x_i32(k, dim[i]));
    inner *= dim[i];
  }
}

static berth__x ravel(berth__kernel *k, int rank, const int64_t *dim, const berth__x *at) {
  berth__x index = berth__x_i32(k, 0);
  for (int i = 0; i < rank; ++i) {
    index = berth__x_add(k, berth__x_mul(k, index, berth__x_i32(k, dim[i])), at[i]);
  }
  return index;
}

static void what_a_reshape_takes_apart_comes_together_again(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{4, 6, 2, 16}, {3, 16, 16, 1}, {768, 1, 1, 1}, {2, 3, 128, 1},
                                      {8, 8, 12, 1}, {5, 7, 11, 2},  {32, 24, 1, 1}, {1, 1, 256, 3}};
  const int n = (int)(sizeof shapes / sizeof *shapes);
  berth_context *ctx = test_context();
  for (int i = 0; i < n * n; ++i) {
    berth__kernel *k = kernel_of(ctx, "reshape", THREADS, GROUPS);
    berth__x at[4], index = flat_index(k);
    unravel(k, index, 4, shapes[i / n], at);
    assert_int_equal(ravel(k, 4, shapes[i / n], at), index);
    unravel(k, ravel(k, 4, shapes[i / n], at), 4, shapes[i % n], at);
    assert_int_equal(ravel(k, 4, shapes[i % n], at), index);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

static void inner_axes_come_out_of_a_sum(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "axes", 48, 10);
  berth__x a = berth__x_group(k), b = berth__x_thread(k), sum = berth__x_add(k, berth__x_affine(k, a, 96, 0), b);
  assert_int_equal(berth__x_div(k, sum, berth__x_i32(k, 96)), a);
  assert_int_equal(berth__x_rem(k, sum, berth__x_i32(k, 96)), b);
  assert_int_equal(berth__x_div(k, sum, berth__x_i32(k, 192)), berth__x_div(k, a, berth__x_i32(k, 2)));
  assert_int_equal(berth__x_rem(k, sum, berth__x_i32(k, 12)), berth__x_rem(k, b, berth__x_i32(k, 12)));
  berth__x twelfths = berth__x_rem(k, berth__x_div(k, sum, berth__x_i32(k, 12)), berth__x_i32(k, 8));
  assert_int_equal(twelfths, berth__x_div(k, b, berth__x_i32(k, 12)));
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void nested_quotients_become_one(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "axes", 48, 10);
  berth__x index = flat_index(k), rows = berth__x_div(k, index, berth__x_i32(k, 6));
  assert_int_equal(berth__x_div(k, rows, berth__x_i32(k, 5)), berth__x_div(k, index, berth__x_i32(k, 30)));
  berth__x fourth = berth__x_rem(k, rows, berth__x_i32(k, 4));
  assert_int_equal(berth__x_div(k, berth__x_rem(k, index, berth__x_i32(k, 24)), berth__x_i32(k, 6)), fourth);
  berth__x joined = berth__x_add(k, berth__x_affine(k, fourth, 6, 0), berth__x_rem(k, index, berth__x_i32(k, 6)));
  assert_int_equal(joined, berth__x_rem(k, index, berth__x_i32(k, 24)));
  assert_int_equal(berth__x_inst(k, joined)->high, 23);
  assert_int_equal(berth__x_sub(k, berth__x_affine(k, index, 3, 5), berth__x_affine(k, index, 2, 5)), index);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static float number_of(const berth__kernel *k, berth__x x) {
  uint32_t bits = 0;
  float value;
  assert_true(berth__x_is_constant(k, x, &bits));
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void assert_int(const berth__kernel *k, berth__x x, int32_t want) {
  uint32_t bits = 0;
  assert_true(berth__x_is_constant(k, x, &bits));
  assert_int_equal((int32_t)bits, want);
}

static void constants_are_computed(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "constants", 4, 1);
  berth__x two = berth__x_f32(k, 2), half = berth__x_f32(k, 0.5f);
  assert_true(number_of(k, berth__x_add(k, two, half)) == 2.5f);
  assert_true(number_of(k, berth__x_div(k, two, half)) == 4);
  assert_true(number_of(k, berth__x1(k, BERTH__INST_exp, berth__x_f32(k, 0))) == 1);
  assert_true(number_of(k, berth__x1(k, BERTH__INST_round, berth__x_f32(k, 2.5f))) == 2);
  assert_true(number_of(k, berth__x1(k, BERTH__INST_to_half, berth__x_f32(k, 2049))) == 2048);
  assert_true(number_of(k, berth__x3(k, BERTH__INST_fma, two, two, half)) == 4.5f);
  assert_true(number_of(k, berth__x_convert(k, BERTH__NUM_F32, berth__x_i32(k, -3))) == -3);
  assert_int(k, berth__x_convert(k, BERTH__NUM_I32, berth__x_f32(k, -2.9f)), -2);
  assert_int(k, berth__x_bits(k, BERTH__NUM_I32, berth__x_f32(k, 1)), 0x3f800000);
  assert_int(k, berth__x_div(k, berth__x_i32(k, 7), berth__x_i32(k, 0)), 0);
  assert_int(k, berth__x_div(k, berth__x_i32(k, INT32_MIN), berth__x_i32(k, -1)), INT32_MIN);
  assert_int(k, berth__x_rem(k, berth__x_i32(k, -7), berth__x_i32(k, 4)), -3);
  assert_int(k, berth__x_is_nan(k, berth__x_f32(k, 1)), 0);
  assert_int(k, berth__x_is_nan(k, berth__x_div(k, berth__x_f32(k, 0), berth__x_f32(k, 0))), 1);
  assert_false(berth__x_is_constant(k, berth__x_convert(k, BERTH__NUM_I32, berth__x_f32(k, 1e20f)), NULL));
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void identities_make_nothing_new(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "identities", 4, 100);
  uint32_t buffer = berth__kernel_buffer_of(k, 0, BERTH_F32);
  berth__x i = berth__x_group(k), f = berth__x_load(k, buffer, i), zero = berth__x_i32(k, 0), one = berth__x_i32(k, 1);
  assert_int_equal(berth__x_add(k, zero, i), i);
  assert_int_equal(berth__x_mul(k, one, i), i);
  assert_int_equal(berth__x_div(k, i, one), i);
  assert_int(k, berth__x_rem(k, i, one), 0);
  assert_int(k, berth__x_mul(k, i, zero), 0);
  assert_int_equal(berth__x_rem(k, i, berth__x_i32(k, 100)), i);
  assert_int(k, berth__x_lt(k, i, berth__x_i32(k, 100)), 1);
  assert_int(k, berth__x_le(k, berth__x_i32(k, 100), i), 0);
  assert_int_equal(berth__x_min(k, i, berth__x_i32(k, 99)), i);
  assert_int_equal(berth__x_mul(k, f, berth__x_f32(k, 1)), f);
  assert_int_not_equal(berth__x_add(k, f, berth__x_f32(k, 0)), f);    /* -0 + 0 is 0 */
  assert_int_not_equal(berth__x_eq(k, f, f), berth__x_bool(k, true)); /* NaN */
  berth__x small = berth__x_lt(k, i, berth__x_i32(k, 10));
  assert_int_equal(berth__x_select(k, small, f, f), f);
  assert_int_equal(berth__x_select(k, small, berth__x_bool(k, true), berth__x_bool(k, false)), small);
  assert_int_equal(berth__x_select(k, berth__x_bool(k, false), f, berth__x_f32(k, 1)), berth__x_f32(k, 1));
  assert_int_equal(berth__x_convert(k, BERTH__NUM_BOOL, berth__x_convert(k, BERTH__NUM_U32, small)), small);
  assert_int_equal(berth__x_bits(k, BERTH__NUM_F32, berth__x_bits(k, BERTH__NUM_U32, f)), f);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void powers_of_two_become_shifts(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "powers", 1, 1000);
  berth__x i = berth__x_group(k), by = berth__x_i32(k, 16), minus = berth__x_affine(k, i, 1, -500);
  assert_int_equal(berth__x_inst(k, berth__x_div(k, i, by))->code, BERTH__INST_shr);
  assert_int_equal(berth__x_inst(k, berth__x_rem(k, i, by))->code, BERTH__INST_and);
  assert_int_equal(berth__x_inst(k, berth__x_div(k, minus, by))->code, BERTH__INST_div);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* Ends that only a run knows: what the loop itself asks need not be asked again. */
static void counters_lie_between_the_ends_of_their_loops(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "counters", 4, 1);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_I32);
  const berth__x from = berth__x_load(k, in, berth__x_i32(k, 0)), to = berth__x_load(k, in, berth__x_i32(k, 1));
  const berth__x i = berth__x_loop(k, from, to, 3);
  assert_int(k, berth__x_lt(k, i, to), 1);
  assert_int(k, berth__x_le(k, from, i), 1);
  assert_false(berth__x_is_constant(k, berth__x_lt(k, from, i), NULL));
  assert_false(berth__x_is_constant(k, berth__x_lt(k, berth__x_affine(k, i, 1, 1), to), NULL));
  berth__x_end(k);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(random_expressions_keep_their_values),
      cmocka_unit_test(conditions_narrow_ranges_inside_their_blocks_alone),
      cmocka_unit_test(what_a_reshape_takes_apart_comes_together_again),
      cmocka_unit_test(inner_axes_come_out_of_a_sum),
      cmocka_unit_test(nested_quotients_become_one),
      cmocka_unit_test(counters_lie_between_the_ends_of_their_loops),
      cmocka_unit_test(constants_are_computed),
      cmocka_unit_test(identities_make_nothing_new),
      cmocka_unit_test(powers_of_two_become_shifts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
