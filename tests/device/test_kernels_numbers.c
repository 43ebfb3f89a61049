/* Element-wise functions of types that chains of f32 cannot hold: fast kernels against the reference kernels. */
#include <math.h>

#include "fast.h"

static const berth_type integers[] = {BERTH_I8,  BERTH_U8,  BERTH_I16, BERTH_U16,
                                      BERTH_I32, BERTH_U32, BERTH_I64, BERTH_U64};

/* Long lines, short ones, one element for all, and lines that lie in other orders. */
static const struct {
  uint32_t rank, other_rank;
  int64_t dim[3], other[3];
  fast_layout layout;
} pairs[] = {
    {1, 1, {5000}, {5000}, FAST_PLAIN},
    {2, 1, {7, 300}, {300}, FAST_PLAIN},
    {2, 2, {100, 7}, {100, 1}, FAST_PLAIN},
    {2, 0, {3, 700}, {0}, FAST_PADDED},
    {3, 2, {4, 30, 70}, {30, 70}, FAST_REVERSED},
    {2, 2, {9, 301}, {9, 301}, FAST_STEPPED},
    {0, 2, {0}, {3, 3}, FAST_PLAIN},
    {2, 2, {37, 150}, {1, 150}, FAST_REVERSED},
};
#define N_PAIRS (sizeof pairs / sizeof *pairs)

static fast_case case_of(const char *op, berth_type type, size_t i) {
  fast_case c = {.op = op,
                 .in = {{.type = type, .rank = pairs[i].rank, .layout = pairs[i].layout},
                        {.type = type, .rank = pairs[i].other_rank}}};
  memcpy(c.in[0].dim, pairs[i].dim, sizeof pairs[i].dim);
  memcpy(c.in[1].dim, pairs[i].other, sizeof pairs[i].other);
  return c;
}

static void functions_of_f64(void **state) {
  static const char *const ops[] = {"exp",       "expm1", "log",  "sigmoid", "silu", "softplus",
                                    "gelu_tanh", "tanh",  "sinh", "cosh",    "sin",  "cos"};
  static const double special[] = {0,     -0.0,  1,      -1,     INFINITY, -INFINITY, NAN,   1e-320,   -1e-320, 709.7,
                                   709.8, 710.5, -708.5, -745.0, -746.5,   1e5,       1e300, -1e300,   1e-17,   -1e-9,
                                   0.35,  -0.35, 0.7071, 1.4143, 37.5,     -40.5,     99999, 123456.7, 2e-308,  5e-324};
  static const double ranges[] = {1e-6, 0.4, 1, 3, 30, 700};
  (void)state;
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    fast_case c = {.op = ops[k],
                   .in = {{.type = BERTH_F64, .rank = 1, .dim = {300}, .values = special, .n_values = 30}},
                   .absolute = 1e-300,
                   .relative = 1.5e-15};
    if (k == 6) c.relative = 1e-14; /* steep where it is near 0 */
    if (k > 9) c.absolute = 2e-16;
    fast_check(&c);
    c.in[0].values = NULL;
    for (size_t r = 0; r < 6; r++)
      for (fast_layout layout = FAST_PLAIN; layout <= FAST_STEPPED; layout++) {
        c.in[0] = (fast_operand){.type = BERTH_F64, .rank = 2, .dim = {9, 301}, .layout = layout};
        c.in[0].low = -ranges[r], c.in[0].high = ranges[r];
        fast_check(&c);
      }
  }
}

static void powers_of_integers(void **state) {
  static const double base[] = {0, 1, -1, 2, -3, 7, 100, -128, 127, 30000, -5}, exponent[] = {2, 0, 3, -1, 1, 7, -2};
  (void)state;
  for (size_t t = 0; t < 8; t++)
    for (uint32_t n = 1; n <= 7; n += 3)
      for (size_t i = 0; i < N_PAIRS; i++) {
        fast_case c = case_of("pow", integers[t], i);
        c.in[0].values = base;
        c.in[0].n_values = 11;
        c.in[1].values = exponent;
        c.in[1].n_values = n;
        fast_check(&c);
        c.in[1] = (fast_operand){.type = integers[t], .rank = 0, .values = exponent, .n_values = 1};
        fast_check(&c);
      }
}

static void remainders_of_f32(void **state) {
  static const double special[] = {0, -0.0, 5.5, -5.5, INFINITY, -INFINITY, NAN, 1e30, -1e30, 1e-40, 0.3, 7, 3e38};
  static const double by[] = {3, -3, 0.1, -0.1, INFINITY, -INFINITY, NAN, 0, -0.0, 1e-42, 1e20, 7, -0.7, 1e-38};
  (void)state;
  for (int64_t fmod = 0; fmod < 2; fmod++)
    for (size_t i = 0; i < N_PAIRS; i++) {
      fast_case c = case_of("mod", BERTH_F32, i);
      c.attrs[0] = (berth_attr)FAST_INT("fmod", fmod);
      c.in[0].low = -1e6, c.in[0].high = 1e6;
      fast_check(&c);
      c.in[0].values = special;
      c.in[0].n_values = 13;
      c.in[1].values = by;
      c.in[1].n_values = 14;
      fast_check(&c);
    }
}

/* Numbers halfway between two halves and just beside that, so that rounding twice would show. */
static void casts_to_halves_round_once(void **state) {
  static const berth_type types[] = {BERTH_I32, BERTH_U32, BERTH_I64, BERTH_U64, BERTH_F64};
  static double beside[2000];
  (void)state;
  for (int i = 0; i < 2000; i++) {
    const double half = ldexp(257 + i % 50 * 2, i % 47), shift = i % 3 - 1;
    beside[i] = (i % 2 ? -1 : 1) * (half + shift);
  }
  for (size_t t = 0; t < 5; t++)
    for (int k = 0; k < 2; k++) {
      const fast_operand ties = {.type = types[t], .rank = 1, .dim = {2000}, .values = beside, .n_values = 2000};
      const fast_operand large = {.type = types[t], .rank = 1, .dim = {3000}, .low = -9e18, .high = 9e18};
      const berth_attr to = FAST_STRING("to", k == 0 ? "f16" : "bf16");
      fast_check(&(fast_case){.op = "cast", .in = {ties}, .attrs = {to}});
      fast_check(&(fast_case){.op = "cast", .in = {large}, .attrs = {to}});
    }
  /* 2^60 + 2^52 is halfway between two bf16, and the last bits decide, which f64 does not hold */
  const int64_t last[] = {(INT64_C(1) << 60) + (INT64_C(1) << 52), (INT64_C(1) << 60) + (INT64_C(1) << 52) + 1,
                          (INT64_C(1) << 60) + (INT64_C(1) << 52) - 1, -(INT64_C(1) << 60) - (INT64_C(1) << 52) - 1};
  static const uint16_t want[] = {0x5d80, 0x5d81, 0x5d80, 0xdd81};
  for (uint32_t i = 0; berth__cpu_isa_at(i); i++) {
    uint16_t got[4] = {0};
    const berth__op *op = berth__op_find(NULL, "cast");
    const berth_tensor in = {.type = BERTH_I64, .rank = 1, .dim = {4}, .stride = {1}, .data = (void *)(uintptr_t)last};
    const berth_tensor out = {.type = BERTH_BF16, .rank = 1, .dim = {4}, .stride = {1}, .data = got};
    const berth_attr attr = FAST_STRING("to", "bf16");
    berth_op_call call = {
        .in = &in, .out = &out, .n_in = 1, .n_out = 1, .attrs = &attr, .n_attrs = 1, .user = berth__op_user(op)};
    const berth__cpu_kernel *kernel =
        berth__cpu_kernel_find(&(berth__cpu_kernels){.isa = berth__cpu_isa_at(i)}, op, &call);
    assert_non_null(kernel);
    call.end = kernel->items(&call);
    berth_error err;
    TEST_OK(kernel->run(&call, &err));
    assert_memory_equal(got, want, sizeof want);
  }
}

/* Of f64, and of integers to the last bit, which wrap. */
static void products_of_wide_types(void **state) {
  static const berth_type types[] = {BERTH_F64, BERTH_I32, BERTH_U32, BERTH_I64};
  static const fast_layout layouts[] = {FAST_PLAIN, FAST_PADDED, FAST_REVERSED, FAST_REPEATED};
  static const struct {
    uint32_t rank, other_rank;
    int64_t dim[4], other[4];
  } shapes[] = {{2, 2, {5, 7}, {7, 9}},
                {2, 2, {1, 70}, {70, 100}},
                {2, 2, {150, 33}, {33, 70}},
                {3, 3, {3, 90, 17}, {3, 17, 50}},
                {4, 3, {2, 1, 20, 8}, {3, 8, 20}},
                {3, 2, {4, 20, 8}, {8, 20}},
                {2, 2, {6, 0}, {0, 6}},
                {2, 2, {9, 1100}, {1100, 37}},
                {2, 2, {1, 700}, {700, 1}},
                {1, 1, {40}, {40}},
                {1, 3, {40}, {3, 40, 50}},
                {3, 1, {3, 30, 40}, {40}},
                {3, 3, {203, 3, 5}, {203, 5, 4}}};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (size_t k = 0; k < 16; k++) {
        fast_case c = {.op = "matmul",
                       .in = {{.type = types[t], .rank = shapes[i].rank, .layout = layouts[k / 4]},
                              {.type = types[t], .rank = shapes[i].other_rank, .layout = layouts[k % 4]}},
                       .absolute = t == 0 ? 1e-11 : 0};
        memcpy(c.in[0].dim, shapes[i].dim, sizeof shapes[i].dim);
        memcpy(c.in[1].dim, shapes[i].other, sizeof shapes[i].other);
        for (int operand = 0; operand < 2 && t > 0; operand++) {
          c.in[operand].low = types[t] == BERTH_U32 ? 0 : -2e9;
          c.in[operand].high = 2e9;
        }
        fast_check(&c);
      }
}

/* Of f64, and of integers to the last bit: one to three axes, groups, strides, dilations, more depth than a panel. */
static void convolutions_of_wide_types(void **state) {
  static const berth_type types[] = {BERTH_F64, BERTH_I32, BERTH_U32, BERTH_I64};
  static const struct {
    uint32_t rank;
    int64_t x[5], w[5], strides[3], pads[6], dilations[3], group;
  } shapes[] = {{4, {2, 6, 9, 37}, {5, 6, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                {4, {1, 6, 11, 12}, {8, 3, 3, 4}, {2, 3}, {0, 2, 1, 0}, {1, 2}, 2},
                {3, {2, 4, 70}, {3, 4, 5}, {1}, {4, 2}, {2}, 1},
                {5, {1, 3, 5, 6, 7}, {4, 3, 2, 3, 3}, {1, 2, 1}, {1, 0, 1, 0, 1, 2}, {1, 1, 1}, 1},
                {4, {1, 70, 4, 5}, {7, 70, 3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 1},
                {4, {1, 5, 3, 3}, {5, 1, 1, 1}, {1, 1}, {0}, {1, 1}, 5}};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int has_bias = 0; has_bias < 2; has_bias++) {
        const uint32_t spatial = shapes[i].rank - 2;
        fast_case c = {.op = "conv", .absolute = t == 0 ? 1e-11 : 0};
        for (uint32_t k = 0; k < 2u + (uint32_t)has_bias; k++) {
          c.in[k] = (fast_operand){.type = types[t], .rank = k < 2 ? shapes[i].rank : 1};
          memcpy(c.in[k].dim, k == 1 ? shapes[i].w : shapes[i].x, sizeof shapes[i].x);
          if (t > 0) c.in[k].low = types[t] == BERTH_U32 ? 0 : -2e9, c.in[k].high = 2e9;
        }
        if (has_bias) c.in[2].dim[0] = shapes[i].w[0];
        c.attrs[0] =
            (berth_attr){.name = "strides", .kind = BERTH_ATTR_INTS, .count = spatial, .ints = shapes[i].strides};
        c.attrs[1] =
            (berth_attr){.name = "pads", .kind = BERTH_ATTR_INTS, .count = 2 * spatial, .ints = shapes[i].pads};
        c.attrs[2] =
            (berth_attr){.name = "dilations", .kind = BERTH_ATTR_INTS, .count = spatial, .ints = shapes[i].dilations};
        c.attrs[3] = (berth_attr)FAST_INT("group", shapes[i].group);
        fast_check(&c);
      }
}

/* A panel is as wide as two vectors; what is packed of a single column does not take many times its bytes. */
static void narrow_products_take_little_scratch(void **state) {
  const fast_case one = {
      .op = "matmul",
      .in = {{.type = BERTH_I32, .rank = 2, .dim = {1, 700}}, {.type = BERTH_I32, .rank = 2, .dim = {700, 1}}}};
  (void)state;
  assert_in_range(fast_scratch(&one), 1, 2 * 700 * 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(functions_of_f64),           cmocka_unit_test(powers_of_integers),
      cmocka_unit_test(remainders_of_f32),          cmocka_unit_test(casts_to_halves_round_once),
      cmocka_unit_test(products_of_wide_types),     cmocka_unit_test(narrow_products_take_little_scratch),
      cmocka_unit_test(convolutions_of_wide_types),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
