/* Chains, single element-wise ops, softmax, norms and reductions: fast kernels against the reference kernels. */
#include <math.h>

#include "fast.h"
#include "ops/chain.h"

#define STEP(name, a, b, c) BERTH__CHAIN_##name, (a), (b), (c)
#define F32(...) \
  { .type = BERTH_F32, __VA_ARGS__ }

/* Shapes that take every way through the executor: long rows, short rows, one row, broadcasts of each kind. */
static const fast_operand pairs[][2] = {
    {F32(.rank = 1, .dim = {5000}), F32(.rank = 1, .dim = {5000})},
    {F32(.rank = 2, .dim = {7, 3000}), F32(.rank = 1, .dim = {3000})},
    {F32(.rank = 2, .dim = {1000, 7}), F32(.rank = 1, .dim = {7})},
    {F32(.rank = 2, .dim = {1000, 7}), F32(.rank = 2, .dim = {1000, 1})},
    {F32(.rank = 2, .dim = {50, 400}), F32(.rank = 2, .dim = {50, 1})},
    {F32(.rank = 4, .dim = {2, 5, 13, 17}), F32(.rank = 3, .dim = {5, 1, 1})},
    {F32(.rank = 4, .dim = {2, 13, 17, 5}), F32(.rank = 4, .dim = {2, 1, 1, 5})},
    {F32(.rank = 4, .dim = {3, 2, 13, 40}), F32(.rank = 4, .dim = {3, 1, 13, 40})},
    {F32(.rank = 3, .dim = {3, 1, 40}), F32(.rank = 3, .dim = {1, 50, 1})},
    {F32(.rank = 0), F32(.rank = 2, .dim = {3, 3})},
    {F32(.rank = 0), F32(.rank = 0)},
    {F32(.rank = 2, .dim = {30, 700}, .layout = FAST_PADDED), F32(.rank = 1, .dim = {1})},
    {F32(.rank = 3, .dim = {4, 30, 70}, .layout = FAST_REVERSED), F32(.rank = 2, .dim = {30, 70})},
    {F32(.rank = 2, .dim = {300, 1200}), F32(.rank = 2, .dim = {300, 1200}, .layout = FAST_PADDED)},
    {F32(.rank = 2, .dim = {3, 70000}), F32(.rank = 2, .dim = {3, 1})},
    {F32(.rank = 2, .dim = {300, 70}, .layout = FAST_REVERSED), F32(.rank = 2, .dim = {300, 1})},
    {F32(.rank = 2, .dim = {37, 1500}, .layout = FAST_REVERSED), F32(.rank = 1, .dim = {1500})},
    {F32(.rank = 2, .dim = {200, 9}, .layout = FAST_REVERSED), F32(.rank = 2, .dim = {200, 9})},
};
#define N_PAIRS (sizeof pairs / sizeof *pairs)

static void sums_broadcast_every_way(void **state) {
  (void)state;
  for (size_t i = 0; i < N_PAIRS; i++) {
    fast_check(&(fast_case){.op = "add", .in = {pairs[i][0], pairs[i][1]}});
    fast_check(&(fast_case){.op = "sub", .in = {pairs[i][1], pairs[i][0]}});
  }
}

static void chains_broadcast_every_way(void **state) {
  (void)state;
  for (size_t i = 0; i < N_PAIRS; i++) /* registers: x, y, 0.5, 6, -0.25, then the steps */
    fast_check(&(fast_case){.op = "chain",
                            .in = {pairs[i][0], pairs[i][1]},
                            .attrs = {FAST_INTS("code", STEP(mul, 0, 2, 0), STEP(add, 5, 1, 0), STEP(clamp, 6, 4, 3),
                                                STEP(sub, 6, 5, 0), STEP(max, 8, 0, 0), STEP(mul, 7, 9, 0)),
                                      FAST_FLOATS("numbers", 0.5, 6, -0.25)},
                            .absolute = 1e-6,
                            .relative = 1e-6});
}

static void chains_may_be_long(void **state) {
  int64_t code[BERTH__CHAIN_STEPS * 4];
  double numbers[BERTH__CHAIN_NUMBERS];
  fast_case c = {.op = "chain", .absolute = 1e-4, .relative = 1e-5};
  (void)state;
  for (uint32_t i = 0; i < BERTH__CHAIN_OPERANDS; i++) {
    c.in[i] = pairs[0][0];
    if (i % 3 == 1) c.in[i] = (fast_operand)F32(.rank = 0);
  }
  for (uint32_t i = 0; i < BERTH__CHAIN_NUMBERS; i++) numbers[i] = 0.0625 * i;
  for (uint32_t i = 0; i < BERTH__CHAIN_STEPS; i++) { /* early results are read late */
    const int64_t step[] = {i % 2 ? BERTH__CHAIN_add : BERTH__CHAIN_sub, 43 + (int64_t)i, (int64_t)i % 44, 0};
    memcpy(code + (size_t)4 * i, step, sizeof step);
  }
  code[1] = 0;
  for (uint32_t i = 20; i < BERTH__CHAIN_STEPS; i++) code[4 * i + 2] = 44 + (int64_t)(i - 20);
  c.attrs[0] = (berth_attr){.name = "code", .kind = BERTH_ATTR_INTS, .count = BERTH__CHAIN_STEPS * 4, .ints = code};
  c.attrs[1] =
      (berth_attr){.name = "numbers", .kind = BERTH_ATTR_FLOATS, .count = BERTH__CHAIN_NUMBERS, .floats = numbers};
  fast_check(&c);
}

static void chains_take_and_give_other_types(void **state) {
  static const berth_type types[] = {BERTH_BOOL, BERTH_U8, BERTH_I8, BERTH_I32};
  static const char *const names[] = {"bool", "u8", "i8", "i32"};
  (void)state;
  for (size_t i = 0; i < 4; i++)
    for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++)
      fast_check(&(fast_case){
          .op = "chain",
          .in = {F32(.rank = 3, .dim = {5, 70, 33}, .low = -300, .high = 300),
                 {.type = types[i], .rank = 2, .dim = {70, 33}, .layout = layout},
                 {.type = types[i], .rank = 3, .dim = {5, 70, 33}}},
          .attrs = {FAST_INTS("code", STEP(where, 1, 0, 2), STEP(add, 2, 3, 0)), FAST_STRING("type", names[i])}});
}

/* Every step, with all that is special. */
static void steps_are_as_the_ops(void **state) {
  static const double special[] = {0, -0.0, 1, -1, 0.5, -2.5, 3.5, INFINITY, -INFINITY, NAN, 7, -7, 1e-40, 2, 1e30};
  static const double other[] = {1, -0.0, 0, NAN, 0.5, 2.5, -INFINITY, 2, INFINITY, 3, -7, 7};
  const fast_operand x = F32(.rank = 1, .dim = {200}, .values = special, .n_values = 15);
  const fast_operand y = F32(.rank = 1, .dim = {200}, .values = other, .n_values = 12);
  const fast_operand z = F32(.rank = 1, .dim = {200}, .values = special, .n_values = 13);
  (void)state;
  for (int64_t code = 0; code < BERTH__CHAIN_COUNT; code++)
    fast_check(&(fast_case){.op = "chain",
                            .in = {x, y, z},
                            .attrs = {FAST_INTS("code", code, 0, 1, 2)},
                            .absolute = 1e-14,
                            .relative = 1e-6});
}

/* Neighbouring steps that run as one loop, with operands of every kind, in both places. */
static void pairs_of_steps(void **state) {
  static const int64_t firsts[] = {BERTH__CHAIN_add, BERTH__CHAIN_sub, BERTH__CHAIN_mul};
  static const int64_t seconds[] = {BERTH__CHAIN_add, BERTH__CHAIN_mul, BERTH__CHAIN_relu, BERTH__CHAIN_clamp,
                                    BERTH__CHAIN_div, BERTH__CHAIN_sub, BERTH__CHAIN_max};
  static const double special[] = {0, -0.0, 1, -1, 0.5, -2.5, 3.5, INFINITY, -INFINITY, NAN, 7, -7, 2, 1e30};
  const fast_operand x = F32(.rank = 2, .dim = {9, 61}, .values = special, .n_values = 14);
  const fast_operand row = F32(.rank = 1, .dim = {61}), scalar = F32(.rank = 0, .values = &special[2], .n_values = 1);
  (void)state;
  for (size_t first = 0; first < 3; first++)
    for (size_t second = 0; second < 7; second++)
      for (int64_t y = 0; y < 4; y++) /* x, row, scalar, number */
        for (int64_t z = 0; z < 4; z++)
          for (int swapped = 0; swapped < 2; swapped++)
            fast_check(&(fast_case){.op = "chain",
                                    .in = {x, row, scalar},
                                    .attrs = {FAST_INTS("code", firsts[first], 0, y, 0, seconds[second],
                                                        swapped ? z : 5, swapped ? 5 : z, 4),
                                              FAST_FLOATS("numbers", -1.5, 6)},
                                    .absolute = 1e-5,
                                    .relative = 1e-6});
}

static void powers_with_roots_and_products(void **state) {
  static const double special[] = {0, -0.0, 1, -1, 0.5, -2.5, 3.5, INFINITY, -INFINITY, NAN, 7, -7, 1e-40, 2, 1e30};
  static const double exponents[] = {2, 3, 0.5, 1, -1, 0, -0.5, 2.5, INFINITY};
  (void)state;
  for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++)
    fast_check(&(fast_case){.op = "pow",
                            .in = {F32(.rank = 1, .dim = {100}, .values = special, .n_values = 15),
                                   F32(.rank = 0, .values = &exponents[i], .n_values = 1)},
                            .absolute = 1e-14,
                            .relative = 1e-6});
}

static void bools_choose_and_compare(void **state) {
  const fast_operand b = {.type = BERTH_BOOL, .rank = 2, .dim = {40, 50}};
  const fast_operand row = {.type = BERTH_BOOL, .rank = 1, .dim = {50}};
  static const char *const logic[] = {"and", "or", "xor", "eq", "ne", "lt"};
  (void)state;
  for (size_t i = 0; i < sizeof logic / sizeof *logic; i++) fast_check(&(fast_case){.op = logic[i], .in = {b, row}});
  fast_check(&(fast_case){.op = "not", .in = {b}});
  fast_check(&(fast_case){.op = "ge", .in = {pairs[2][0], pairs[2][1]}});
  fast_check(&(fast_case){.op = "where", .in = {b, F32(.rank = 0), F32(.rank = 2, .dim = {40, 50})}});
  fast_check(&(fast_case){.op = "where",
                          .in = {row,
                                 {.type = BERTH_I32, .rank = 2, .dim = {40, 1}, .low = -2e9, .high = 2e9},
                                 {.type = BERTH_I32, .rank = 2, .dim = {40, 50}, .low = -2e9, .high = 2e9}}});
}

static void casts_round_and_saturate(void **state) {
  static const char *const names[] = {"bool", "u8", "i8", "i32"};
  static const berth_type types[] = {BERTH_BOOL, BERTH_U8, BERTH_I8, BERTH_I32};
  static const double special[] = {0.5, -0.5, 127.9, 128,      -128.9,    255.5, 256,
                                   3e9, -3e9, NAN,   INFINITY, -INFINITY, 1e-40};
  (void)state;
  for (size_t i = 0; i < 4; i++) {
    fast_check(&(fast_case){.op = "cast",
                            .in = {F32(.rank = 1, .dim = {1000}, .values = special, .n_values = 13)},
                            .attrs = {FAST_STRING("to", names[i])}});
    fast_check(&(fast_case){.op = "cast",
                            .in = {{.type = types[i], .rank = 2, .dim = {30, 33}, .low = -2e9, .high = 2e9}},
                            .attrs = {FAST_STRING("to", "f32")}});
  }
}

static void integers_are_exact(void **state) {
  static const char *const ops[] = {"add", "sub", "mul", "min", "max", "eq", "ne", "lt", "le", "gt", "ge"};
  static const berth_type types[] = {BERTH_I32, BERTH_I64};
  (void)state;
  for (size_t op = 0; op < sizeof ops / sizeof *ops; op++)
    for (size_t i = 0; i < N_PAIRS; i++)
      for (size_t t = 0; t < 2; t++) {
        fast_case c = {.op = ops[op], .in = {pairs[i][0], pairs[i][1]}};
        for (int k = 0; k < 2; k++) {
          c.in[k].type = types[t];
          if (op < 5) c.in[k].low = -2e9, c.in[k].high = 2e9; /* sums and products wrap */
        }
        fast_check(&c);
      }
}

static const berth_type all_types[] = {BERTH_I8,  BERTH_U8,   BERTH_I16, BERTH_U16, BERTH_I32, BERTH_U32, BERTH_I64,
                                       BERTH_U64, BERTH_BOOL, BERTH_F64, BERTH_F32, BERTH_F16, BERTH_BF16};
enum {
  N_TYPES = sizeof all_types / sizeof *all_types,
  N_INTEGERS = 8
};

/* Whatever the type, and however it lies: to the last bit. */
static void loops_of_every_type(void **state) {
  static const char *const numbers[] = {"add", "sub", "mul", "div", "min", "max"}, *const bits[] = {"and", "or", "xor"};
  static const char *const order[] = {"eq", "ne", "lt", "le", "gt", "ge"}, *const one[] = {"neg", "abs", "relu",
                                                                                           "sign"};
  (void)state;
  for (size_t t = 0; t < N_INTEGERS + 2; t++)
    for (size_t i = 0; i < N_PAIRS; i += 3) {
      fast_operand a = pairs[i][0], b = pairs[i][1];
      a.type = b.type = all_types[t];
      a.low = b.low = -200, a.high = b.high = 200;
      const bool is_bool = a.type == BERTH_BOOL, is_float = a.type == BERTH_F64;
      for (size_t k = 0; k < 6 && !is_bool; k++) fast_check(&(fast_case){.op = numbers[k], .in = {a, b}});
      for (size_t k = 0; k < 3 && !is_float; k++) fast_check(&(fast_case){.op = bits[k], .in = {a, b}});
      for (size_t k = 0; k < 6; k++) fast_check(&(fast_case){.op = order[k], .in = {a, b}});
      for (size_t k = 0; k < 4 && !is_bool && a.type != BERTH_U64; k++)
        fast_check(&(fast_case){.op = one[k], .in = {a}});
      if (!is_float) fast_check(&(fast_case){.op = "not", .in = {a}});
      for (int64_t fmod = 0; fmod < 2 && !is_bool && !is_float; fmod++)
        fast_check(&(fast_case){.op = "mod", .in = {a, b}, .attrs = {FAST_INT("fmod", fmod)}});
      fast_check(&(fast_case){.op = "where", .in = {{.type = BERTH_BOOL, .rank = 0}, a, b}});
      fast_operand condition = pairs[i][i % 2];
      condition.type = BERTH_BOOL;
      fast_check(&(fast_case){.op = "where", .in = {condition, a, b}});
      if (!is_bool && a.type != BERTH_U64)
        fast_check(&(fast_case){
            .op = "clamp", .in = {a}, .attrs = {FAST_FLOAT("min", t % 2 ? -1e30 : -3.5), FAST_FLOAT("max", 90.5)}});
    }
}

static void limits_of_integers(void **state) {
  static const double ends[] = {-128, -1, 0, 1, 127, -32768, 32767, -2147483648.0, 2147483647, -9223372036854775808.0};
  static const double by[] = {-1, 0, 1, -128, 2, -1, -32768, -1, 0, -1};
  static const char *const ops[] = {"add", "sub", "mul", "div", "mod", "min", "max"};
  (void)state;
  for (size_t t = 0; t < N_INTEGERS - 1; t++)
    for (size_t k = 0; k < 7; k++)
      fast_check(&(fast_case){.op = ops[k],
                              .in = {{.type = all_types[t], .rank = 1, .dim = {100}, .values = ends, .n_values = 10},
                                     {.type = all_types[t], .rank = 1, .dim = {100}, .values = by, .n_values = 10}}});
}

static void casts_from_all_to_all(void **state) {
  static const double special[] = {0,     -0.0,  0.5,      -0.5,      127.9, 128,  -128.9,       255.5,      256,
                                   65504, 65520, 70000,    -70000,    3e9,   -3e9, 4294967296.0, 1e19,       -1e19,
                                   2e19,  NAN,   INFINITY, -INFINITY, 1e-40, 6e-8, 1e-5,         0.333333333};
  (void)state;
  for (size_t from = 0; from < N_TYPES; from++)
    for (size_t to = 0; to < N_TYPES; to++)
      for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED && from != to; layout++) {
        fast_case c = {.op = "cast", .in = {{.type = all_types[from], .rank = 2, .dim = {7, 101}, .layout = layout}}};
        c.attrs[0] = (berth_attr)FAST_STRING("to", berth_type_name(all_types[to]));
        c.in[0].low = -3e4, c.in[0].high = 3e4;
        fast_check(&c);
        c.in[0].values = special;
        c.in[0].n_values = from < N_INTEGERS + 1 ? 13 : 26;
        fast_check(&c);
      }
}

/* Computed in f32 and rounded once. */
static void halves_as_floats(void **state) {
  static const berth_type halves[] = {BERTH_F16, BERTH_BF16};
  static const char *const one[] = {"neg", "exp", "tanh", "sigmoid", "gelu", "sqrt", "sin", "relu", "erf", "floor"};
  static const char *const two[] = {"add", "sub", "mul", "div", "min", "max"}, *const order[] = {"eq", "lt", "ge"};
  (void)state;
  for (size_t t = 0; t < 2; t++)
    for (size_t i = 0; i < N_PAIRS; i += 2) {
      fast_operand a = pairs[i][0], b = pairs[i][1];
      const double last = t == 0 ? 1e-3 : 8e-3; /* a unit in the last place, where a function is rounded otherwise */
      a.type = b.type = halves[t];
      a.low = b.low = 0.25, a.high = b.high = 3;
      for (size_t k = 0; k < 10; k++)
        fast_check(&(fast_case){.op = one[k], .in = {a}, .relative = last, .absolute = 1e-4});
      for (size_t k = 0; k < 6; k++) fast_check(&(fast_case){.op = two[k], .in = {a, b}, .relative = last});
      for (size_t k = 0; k < 3; k++) fast_check(&(fast_case){.op = order[k], .in = {a, b}});
    }
}

static void clamps_keep_nan(void **state) {
  static const double special[] = {0.5, NAN, 7, -7, INFINITY, -INFINITY};
  (void)state;
  fast_check(&(fast_case){.op = "clamp",
                          .in = {F32(.rank = 1, .dim = {100}, .values = special, .n_values = 6)},
                          .attrs = {FAST_FLOAT("min", -1), FAST_FLOAT("max", 2)}});
}

static void softmax_along_any_axis(void **state) {
  static const int64_t shapes[][3] = {{12, 128, 128}, {3, 197, 197}, {5, 3, 7},  {2, 21, 100},
                                      {1, 1, 5000},   {9, 1, 16},    {1, 40, 33}};
  static const double special[] = {1, NAN, 2, -INFINITY, 0.5, INFINITY, 3, -INFINITY, 4};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int64_t axis = 0; axis < 3; axis++)
      for (int way = 0; way < 4; way++) {
        const bool logs = way % 2 != 0, is_f64 = way > 1;
        fast_case c = {.op = logs ? "log_softmax" : "softmax",
                       .in = {F32(.rank = 3, .low = -20, .high = 20)},
                       .attrs = {FAST_INT("axis", axis)},
                       .absolute = is_f64 ? 1e-14
                                   : logs ? 2e-6
                                          : 1e-12,
                       .relative = is_f64 ? 2e-15 : 3e-6};
        if (is_f64) c.in[0].type = BERTH_F64;
        memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
        fast_check(&c);
        c.in[0].values = special; /* NaN and infinities in some lines */
        c.in[0].n_values = 9;
        if (i == 2) fast_check(&c);
        c.in[0].values = &special[3]; /* nothing but -inf */
        c.in[0].n_values = 1;
        if (i == 2) fast_check(&c);
      }
}

static void norms_keep_digits(void **state) {
  static const double ranges[][2] = {{-3, 3}, {1000, 1001}, {-1e-3, 1e-3}};
  (void)state;
  for (size_t i = 0; i < 3; i++)
    for (int64_t length = 1; length < 6000; length = length * 2 + 5) {
      const fast_operand x = F32(.rank = 2, .dim = {7, length}, .low = ranges[i][0], .high = ranges[i][1]);
      const fast_operand row = F32(.rank = 1, .dim = {length}), left_out = {.type = BERTH_TYPE_NONE};
      fast_check(&(fast_case){.op = "layer_norm", .in = {x, row, row}, .absolute = 2e-5, .relative = 2e-6});
      fast_check(&(fast_case){.op = "layer_norm", .in = {x, left_out, row}, .absolute = 2e-5, .relative = 2e-6});
      fast_check(&(fast_case){.op = "rms_norm", .in = {x, row}, .absolute = 1e-6, .relative = 2e-6});
      fast_check(&(fast_case){.op = "rms_norm", .in = {x}, .absolute = 1e-6, .relative = 2e-6});
    }
}

/* A lane each: fewer rows than lanes, as many, and some left over. */
static void norms_of_short_rows(void **state) {
  static const int64_t shapes[][3] = {{1, 6, 2}, {2, 32, 3}, {5, 21, 1}, {3, 12, 8}, {40, 48, 5}};
  (void)state;
  for (int64_t rows = 1; rows < 200; rows = rows * 3 + 5)
    for (int64_t length = 1; length <= 18; length++) {
      const fast_operand x = F32(.rank = 2, .dim = {rows, length}), row = F32(.rank = 1, .dim = {length});
      fast_check(&(fast_case){.op = "layer_norm", .in = {x, row, row}, .absolute = 2e-5, .relative = 2e-6});
      fast_check(&(fast_case){.op = "rms_norm", .in = {x, row}, .absolute = 1e-6, .relative = 2e-6});
    }
  for (size_t i = 0; i < 5; i++) {
    const fast_operand each = F32(.rank = 1, .dim = {shapes[i][1]}, .low = 0.5, .high = 2);
    fast_case c = {.in = {F32(.rank = 3), each, each}, .absolute = 2e-5, .relative = 2e-6};
    memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
    c.op = "group_norm";
    for (int64_t groups = 3; groups <= shapes[i][1]; groups += 3) {
      if (shapes[i][1] % groups != 0) continue;
      c.attrs[0] = (berth_attr)FAST_INT("groups", groups);
      fast_check(&c);
    }
    c.op = "batch_norm";
    c.in[3] = c.in[4] = each;
    memset(c.attrs, 0, sizeof c.attrs);
    fast_check(&c);
  }
}

static void norms_of_channels(void **state) {
  const fast_operand x = F32(.rank = 4, .dim = {2, 6, 9, 13}),
                     channels = F32(.rank = 1, .dim = {6}, .low = 0.5, .high = 2);
  (void)state;
  for (int64_t groups = 1; groups <= 6; groups++) {
    if (6 % groups != 0) continue;
    fast_check(&(fast_case){.op = "group_norm",
                            .in = {x, channels, channels},
                            .attrs = {FAST_INT("groups", groups)},
                            .absolute = 1e-6,
                            .relative = 2e-6});
  }
  fast_check(&(fast_case){
      .op = "batch_norm", .in = {x, channels, channels, channels, channels}, .absolute = 1e-6, .relative = 1e-6});
  static const int64_t flat[][3] = {{9, 6, 1}, {700, 37, 1}, {3, 6, 2}}; /* channels that are neighbours, or nearly */
  for (size_t i = 0; i < 3; i++) {
    const fast_operand each = F32(.rank = 1, .dim = {flat[i][1]}, .low = 0.5, .high = 2);
    fast_case c = {
        .op = "batch_norm", .in = {F32(.rank = 3), each, each, each, each}, .absolute = 2e-6, .relative = 2e-6};
    memcpy(c.in[0].dim, flat[i], sizeof flat[i]);
    fast_check(&c);
  }
}

static void reductions_over_any_axes(void **state) {
  static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
  static const int64_t shapes[][4] = {{2, 5, 7, 3}, {1, 130, 67, 1}, {3, 1, 1, 5000}, {2, 300, 3, 40}};
  static const fast_layout layouts[] = {FAST_PLAIN, FAST_REVERSED, FAST_STEPPED};
  (void)state;
  for (size_t op = 0; op < 4; op++)
    for (size_t i = 0; i < 4; i++)
      for (size_t layout = 0; layout < 3; layout++)
        for (int mask = 1; mask < 16; mask++) {
          int64_t axes[4];
          uint32_t n = 0;
          fast_case c = {
              .op = ops[op], .in = {F32(.rank = 4, .layout = layouts[layout])}, .absolute = 2e-4, .relative = 1e-6};
          memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
          for (int k = 0; k < 4; k++)
            if (mask >> k & 1) axes[n++] = k;
          c.attrs[0] = (berth_attr){.name = "axes", .kind = BERTH_ATTR_INTS, .count = n, .ints = axes};
          fast_check(&c);
          c.absolute = c.relative = 0; /* integers, one type a mask */
          c.in[0].type = all_types[mask % (N_INTEGERS - 1)];
          c.in[0].low = -300, c.in[0].high = 300;
          fast_check(&c);
        }
  fast_check(&(fast_case){.op = "reduce_sum", .in = {F32(.rank = 1, .dim = {100000})}, .absolute = 1e-2});
  fast_check(&(fast_case){.op = "reduce_sum", /* wraps */
                          .in = {{.type = BERTH_I8, .rank = 2, .dim = {3, 700}, .low = 90, .high = 120}},
                          .attrs = {FAST_INTS("axes", 1)}});
  for (int64_t length = 1; length < 20; length++) /* short lines */
    for (size_t op = 0; op < 4; op++)
      fast_check(&(fast_case){.op = ops[op],
                              .in = {F32(.rank = 2, .dim = {1003, length})},
                              .attrs = {FAST_INTS("axes", 1)},
                              .absolute = 1e-5});
}

static void reductions_keep_nan(void **state) {
  static const double special[] = {1, 2, NAN, 3, 4, 5, 6};
  static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
  (void)state;
  for (size_t op = 0; op < 4; op++)
    for (int64_t axis = 0; axis < 2; axis++)
      fast_check(&(fast_case){.op = ops[op],
                              .in = {F32(.rank = 2, .dim = {20, 7}, .values = special, .n_values = 7)},
                              .attrs = {FAST_INTS("axes", axis)}});
}

static void places_of_extremes(void **state) {
  static const int64_t shapes[][3] = {{3, 5, 7}, {2, 40, 100}, {4, 1, 3000}, {1, 9, 16}, {70, 2, 1}};
  static const double special[] = {1, -7, 2, 7, INFINITY, 7, -INFINITY, 3, 4, NAN, 5, NAN, 0, -0.0};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int64_t axis = 0; axis < 3; axis++)
      for (uint32_t n = 0; n <= 14; n += 7) { /* random, without and with NaN */
        fast_case c = {
            .op = axis % 2 ? "arg_min" : "arg_max", .in = {F32(.rank = 3)}, .attrs = {FAST_INT("axis", axis)}};
        memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
        c.in[0].values = n > 0 ? special : NULL;
        c.in[0].n_values = n;
        fast_check(&c);
        c.op = axis % 2 ? "arg_max" : "arg_min";
        fast_check(&c);
      }
}

/* The same of every other type, and the last of equals. */
static void places_of_other_extremes(void **state) {
  static const int64_t shapes[][3] = {{3, 5, 7}, {2, 40, 150}, {3, 1, 900}, {1, 9, 16}, {70, 2, 1}};
  static const berth_type types[] = {BERTH_I8,  BERTH_U8,  BERTH_I16, BERTH_U16, BERTH_I32,
                                     BERTH_U32, BERTH_I64, BERTH_F64, BERTH_F32};
  static const double special[] = {1, -7, 2, 7, INFINITY, 7, -INFINITY, 3, 4, NAN, 5, NAN, 0, -0.0};
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
      for (int variant = 0; variant < 12; variant++) {
        const bool is_float = types[t] == BERTH_F64 || types[t] == BERTH_F32, is_signed = (int)t % 2 == 0;
        fast_case c = {.op = variant & 1 ? "arg_min" : "arg_max",
                       .in = {{.type = types[t], .rank = 3}},
                       .attrs = {FAST_INT("axis", variant / 4), FAST_INT("select_last", (variant & 2) != 0)}};
        memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
        c.in[0].low = is_signed ? -50 : 1;
        c.in[0].high = 100;
        fast_check(&c);
        if (!is_float) continue;
        c.in[0].values = special;
        for (c.in[0].n_values = 7; c.in[0].n_values <= 14; c.in[0].n_values += 7) fast_check(&c);
      }
}

static void places_of_what_is_set(void **state) {
  static const double values[] = {0, 1, -1, -0.0, 0, 0, 3, 0}, numbers[] = {0, -0.0, NAN, 0, 1e-40, 0, 0, -INFINITY};
  static const berth_type types[] = {BERTH_BOOL, BERTH_I8,  BERTH_U16, BERTH_I32,
                                     BERTH_I64,  BERTH_F16, BERTH_F32, BERTH_F64};
  static const fast_operand shapes[] = {{.rank = 1, .dim = {700}},          {.rank = 3, .dim = {3, 5, 37}},
                                        {.rank = 2, .dim = {2, 257}},       {.rank = 4, .dim = {2, 3, 4, 1}},
                                        {.rank = 3, .dim = {3, 0, 2}},      {.rank = 0},
                                        {.rank = 5, .dim = {2, 1, 3, 2, 9}}};
  (void)state;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++)
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
      fast_case c = {.op = "non_zero", .in = {shapes[i]}};
      c.in[0].type = types[t];
      c.in[0].values = t >= 5 ? numbers : values;
      c.in[0].n_values = 8;
      fast_check(&c);
      c.in[0].n_values = 1; /* nothing is */
      fast_check(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sums_broadcast_every_way),
      cmocka_unit_test(chains_broadcast_every_way),
      cmocka_unit_test(chains_may_be_long),
      cmocka_unit_test(chains_take_and_give_other_types),
      cmocka_unit_test(steps_are_as_the_ops),
      cmocka_unit_test(pairs_of_steps),
      cmocka_unit_test(powers_with_roots_and_products),
      cmocka_unit_test(bools_choose_and_compare),
      cmocka_unit_test(casts_round_and_saturate),
      cmocka_unit_test(integers_are_exact),
      cmocka_unit_test(loops_of_every_type),
      cmocka_unit_test(limits_of_integers),
      cmocka_unit_test(casts_from_all_to_all),
      cmocka_unit_test(halves_as_floats),
      cmocka_unit_test(clamps_keep_nan),
      cmocka_unit_test(softmax_along_any_axis),
      cmocka_unit_test(norms_keep_digits),
      cmocka_unit_test(norms_of_short_rows),
      cmocka_unit_test(norms_of_channels),
      cmocka_unit_test(reductions_over_any_axes),
      cmocka_unit_test(reductions_keep_nan),
      cmocka_unit_test(places_of_extremes),
      cmocka_unit_test(places_of_other_extremes),
      cmocka_unit_test(places_of_what_is_set),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
