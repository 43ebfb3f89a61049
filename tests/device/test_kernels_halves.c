/* f16 and bf16: fast kernels against the reference kernels, which compute in f64 and round once. So a fast kernel may
 * be off by what f32 loses inside, which can turn a rounding: one step of the type, and near 0 what sums of larger
 * numbers lose. Shapes are large enough that calls are cut, and odd enough that the cuts are not even. */
#include "fast.h"
#include "ops/chain.h"

#define OF(t, ...)                                                                                  \
  {                                                                                                 \
    .type = (t), .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }
#define T(...) OF(BERTH_F16, __VA_ARGS__) /* both types in turn */
#define F32(...) OF(BERTH_F32, __VA_ARGS__)
#define COUNT(list) (sizeof(list) / sizeof *(list))

static double step_of(berth_type type) { return type == BERTH_F16 ? 0x1p-10 : 0x1p-7; }

/* On every instruction set, or one; operands that are f16 are then bf16. */
static void check_both(fast_case c, const berth__cpu_isa *isa) {
  const double exact = c.absolute;
  for (int turn = 0; turn < 2; turn++) {
    const berth_type type = turn == 0 ? BERTH_F16 : BERTH_BF16;
    for (uint32_t k = 0; k < FAST_MAX; k++)
      if (c.in[k].type == BERTH_F16 || c.in[k].type == BERTH_BF16) c.in[k].type = type;
    c.relative = step_of(type);
    c.absolute = exact + 1e-7;
    isa != NULL ? fast_check_on(&c, isa) : fast_check(&c);
  }
}

static void lines(void **state) {
  const fast_case cases[] = {
      {.op = "softmax", .in = {T(300, 131)}, .attrs = {FAST_INT("axis", 1)}},
      {.op = "softmax", .in = {T(3, 70, 101)}, .attrs = {FAST_INT("axis", 1)}},
      {.op = "log_softmax", .in = {T(5, 7, 640)}, .attrs = {FAST_INT("axis", -1)}, .absolute = 1e-5},
      {.op = "softmax", .in = {T(1, 40000)}, .attrs = {FAST_INT("axis", 1)}},
      {.op = "layer_norm", .in = {T(130, 257), T(257), T(257)}, .attrs = {FAST_INT("axis", -1)}, .absolute = 2e-3},
      {.op = "rms_norm", .in = {T(2, 65, 300), T(300)}, .attrs = {FAST_INT("axis", -1)}, .absolute = 2e-3},
      {.op = "group_norm", .in = {T(2, 24, 17, 19), T(24), T(24)}, .attrs = {FAST_INT("groups", 6)}, .absolute = 2e-3},
      {.op = "batch_norm",
       .in =
           {T(2, 21, 19, 23), T(21), T(21), T(21), {.type = BERTH_F16, .rank = 1, .dim = {21}, .low = 0.5, .high = 2}},
       .absolute = 2e-3},
      {.op = "cumsum", .in = {T(90, 211)}, .attrs = {FAST_INT("axis", 1)}, .absolute = 1e-3},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) check_both(cases[i], NULL);
}

static void reductions(void **state) {
  static const char *const ops[] = {"reduce_sum", "reduce_mean", "reduce_max", "reduce_min"};
  (void)state;
  for (size_t i = 0; i < COUNT(ops); i++)
    for (int keep = 0; keep < 2; keep++) {
      fast_case c = {
          .op = ops[i], .in = {T(3, 45, 9, 130)}, .attrs = {FAST_INTS("axes", 1, 2), FAST_INT("keepdims", keep)}};
      c.absolute = 1e-3;
      check_both(c, NULL);
      c.attrs[0] = (berth_attr)FAST_INTS("axes", 3);
      check_both(c, NULL);
    }
  for (int keep = 0; keep < 2; keep++) {
    const fast_case c = {
        .op = "arg_max", .in = {T(70, 301)}, .attrs = {FAST_INT("axis", 1), FAST_INT("keepdims", keep)}};
    const fast_case d = {
        .op = "arg_min", .in = {T(70, 301)}, .attrs = {FAST_INT("axis", 0), FAST_INT("keepdims", keep)}};
    check_both(c, NULL);
    check_both(d, NULL);
  }
}

static void pools(void **state) {
  (void)state;
  for (int mode = 0; mode < 8; mode++) {
    fast_case c = {.op = mode & 1 ? "max_pool" : "avg_pool",
                   .in = {T(2, 30, 31, 40)},
                   .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("strides", 2, 2), FAST_INTS("pads", 1, 0, 1, 1),
                             FAST_INT("channels_last", mode >> 1 & 1), FAST_INT("ceil_mode", mode >> 2 & 1),
                             FAST_INT("count_include_pad", mode >> 2 & 1)}};
    check_both(c, NULL);
    c.attrs[2] = (berth_attr)FAST_STRING("auto_pad", "same_upper");
    check_both(c, NULL);
  }
}

/* Weights of convolutions are f32 or f16; what is added is of the type of x, and so is what an epilogue reads. */
static void convolutions(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (int mode = 0; mode < 8; mode++) {
      const int64_t panel = isa->panel, stride = mode & 1 ? 2 : 1, dilation = mode & 2 ? 2 : 1, channels = 11;
      const int64_t height = (34 + 3 - 2 * dilation - 1) / stride + 1, width = (13 + 2 - 2 * dilation - 1) / stride + 1;
      const berth_type weight = mode & 4 ? BERTH_F16 : BERTH_F32;
      fast_case c = {
          .op = "conv_last",
          .in = {T(2, 34, 13, 11), OF(weight, (40 + panel - 1) / panel, 9 * channels, panel), F32(40)},
          .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("strides", stride, stride), FAST_INTS("pads", 1, 1, 2, 1),
                    FAST_INTS("dilations", dilation, dilation), FAST_INT("channels", 40), FAST_INT("panel", panel)},
          .absolute = 1e-3};
      if (weight == BERTH_F16) { /* whose type stays */
        c.relative = step_of(BERTH_F16);
        fast_check_on(&c, isa);
        continue;
      }
      check_both(c, isa);
      c.attrs[6] = (berth_attr)FAST_INT("adds", 1);
      c.attrs[7] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0, BERTH__CHAIN_silu, 2, 0, 0);
      c.in[3] = (fast_operand)T(2, height, width, 40);
      c.in[4] = (fast_operand)T(40);
      check_both(c, isa);
    }
}

/* Scratch that is planned for upper bounds: smaller calls have other boxes. */
static void boxes_of_bounded_extents(void **state) {
  const fast_case cases[] = {
      {.op = "softmax", .in = {OF(BERTH_F16, 70, 301)}, .attrs = {FAST_INT("axis", 1)}},
      {.op = "softmax", .in = {OF(BERTH_BF16, 9, 70, 31)}, .attrs = {FAST_INT("axis", 1)}},
      {.op = "arg_max", .in = {OF(BERTH_F16, 70, 301)}, .attrs = {FAST_INT("axis", 0)}},
      {.op = "max_pool",
       .in = {OF(BERTH_F16, 3, 30, 31, 40)},
       .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("pads", 1, 1, 1, 1)}},
      {.op = "reduce_mean", .in = {OF(BERTH_F16, 40, 50, 21)}, .attrs = {FAST_INTS("axes", 1)}},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    for (uint32_t axis = 0; axis < cases[i].in[0].rank; axis++) fast_check_bounds(&cases[i], 0, axis, 2, NULL);
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    const int64_t panel = isa->panel;
    const fast_case c = {.op = "conv_last",
                         .in = {OF(BERTH_F16, 5, 34, 43, 11), F32((40 + panel - 1) / panel, 9 * 11, panel), F32(40)},
                         .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("pads", 1, 1, 2, 1), FAST_INT("channels", 40),
                                   FAST_INT("panel", panel)}};
    for (uint32_t axis = 0; axis < 3; axis++) fast_check_bounds(&c, 0, axis, 2, isa);
  }
}

static void other_convolutions(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    const int64_t panel = isa->panel, panels = (20 + panel - 1) / panel;
    const fast_case depthwise = {
        .op = "depthwise",
        .in = {T(1, 33, 15, 37), F32(5, 3, 37), F32(37)},
        .attrs = {FAST_INTS("kernel", 5, 3), FAST_INTS("strides", 2, 1), FAST_INTS("pads", 2, 1, 1, 1)},
        .absolute = 1e-3};
    const fast_case winograd = {.op = "conv_winograd",
                                .in = {T(1, 35, 18, 24), F32(36, panels, 24, panel), F32(20)},
                                .attrs = {FAST_INTS("pads", 1, 1, 1, 1), FAST_INT("tile", 4), FAST_INT("channels", 20),
                                          FAST_INT("panel", panel)},
                                .absolute = 1.0}; /* random transformed weights: sums of large numbers */
    const fast_case transposed = {
        .op = "conv_transpose_last",
        .in = {T(3, 12, 11, 24), F32(panels, 16 * 24, panel), F32(20)},
        .attrs = {FAST_INTS("kernel", 4, 4), FAST_INTS("strides", 2, 2), FAST_INTS("pads", 1, 1, 1, 1),
                  FAST_INT("channels", 20), FAST_INT("panel", panel)},
        .absolute = 1e-3};
    fast_case packing = {.op = "pack_winograd",
                         .in = {T(3, 3, 7, 20), F32(20)},
                         .attrs = {FAST_INT("panel", panel), FAST_INT("tile", 4)}};
    packing.absolute = 1e-5;
    packing.relative = 1e-5;
    fast_check_on(&packing, isa);
    check_both(depthwise, isa);
    check_both(winograd, isa);
    check_both(transposed, isa);
  }
}

/* Products, with plain operands of every layout and with packed weights, what is added and an epilogue. */
static void products(void **state) {
  static const int64_t gelu_of_product[] = {BERTH__CHAIN_mul, 0, 1, 0, BERTH__CHAIN_gelu, 2, 0, 0};
  static const fast_layout layouts[] = {FAST_PLAIN, FAST_PADDED, FAST_REVERSED};
  const berth__cpu_isa *isa;
  (void)state;
  for (int a = 0; a < 3; a++)
    for (int b = 0; b < 3; b++) {
      fast_case c = {.op = "matmul", .in = {T(3, 70, 90), T(3, 90, 75)}, .absolute = 1e-3};
      c.in[0].layout = layouts[a];
      c.in[1].layout = layouts[b];
      check_both(c, NULL);
    }
  const fast_case row = {.op = "matmul", .in = {T(2300), T(2300, 40)}, .absolute = 4e-3};
  check_both(row, NULL);
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (int mode = 0; mode < 12; mode++) {
      const int64_t panel = mode % 3 == 2 ? 1 : isa->panel, rows = mode & 1 ? 1 : 67;
      const int64_t columns = panel == 1 ? 5 : 90, panels = (columns + panel - 1) / panel;
      fast_case c = {.op = "product",
                     .in = {T(rows, 51), OF(mode % 3 == 0 ? BERTH_F32 : BERTH_F16, panels, 51, panel), T(columns)},
                     .attrs = {FAST_INT("columns", columns), FAST_INT("panel", panel)},
                     .absolute = 1e-3};
      if (mode & 4) c.in[2] = (fast_operand)F32(columns);
      if (mode >= 6) {
        c.attrs[2] = (berth_attr)FAST_INT("adds", 1);
        c.attrs[3] = (berth_attr){.name = "code", .kind = BERTH_ATTR_INTS, .count = 8, .ints = gelu_of_product};
        c.in[3] = c.in[4] = (fast_operand)T(rows, columns);
      }
      if (mode % 3 == 0) {
        check_both(c, isa);
      } else {
        c.relative = step_of(BERTH_F16);
        fast_check_on(&c, isa);
      }
      if (mode % 3 != 1) continue;
      c.relative = step_of(BERTH_BF16);
      c.in[1] = (fast_operand)OF(BERTH_BF16, panels, 26, panel, 2);
      for (uint32_t k = 0; k < 5; k++)
        if (c.in[k].type == BERTH_F16) c.in[k].type = BERTH_BF16;
      fast_check_on(&c, isa);
    }
}

static void attentions(void **state) {
  (void)state;
  for (int mode = 0; mode < 8; mode++) {
    const int64_t queries = mode & 1 ? 2 : 37, size = mode & 2 ? 40 : 33;
    fast_case c = {.op = "attention",
                   .in = {T(2, 4, queries, size), T(2, 2, 70, size), T(2, 2, 70, 21)},
                   .attrs = {FAST_STRING("mode", mode & 4 ? "causal" : "none")},
                   .absolute = 1e-3};
    check_both(c, NULL);
    c.in[0].layout = c.in[1].layout = FAST_PADDED;
    c.in[4] = (fast_operand)T(queries, 70);
    check_both(c, NULL);
    c.in[3] = (fast_operand)OF(BERTH_BOOL, 2, 1, queries, 70);
    check_both(c, NULL);
    c.in[1].layout = FAST_REVERSED;
    check_both(c, NULL);
  }
}

static void other_ops(void **state) {
  const fast_case cases[] = {
      {.op = "lstm", .in = {T(9, 3, 20), T(1, 64, 20), T(1, 64, 16)}, .absolute = 2e-3},
      {.op = "lstm", .in = {T(3, 33, 20), T(1, 64, 20), T(1, 64, 16)}, .absolute = 2e-3},
      {.op = "gru", .in = {T(9, 3, 20), T(1, 48, 20), T(1, 48, 16)}, .absolute = 2e-3},
      {.op = "rope",
       .in = {T(2, 7, 3 * 22), {.type = BERTH_I64, .rank = 2, .dim = {2, 7}, .low = 0, .high = 5000}},
       .attrs = {FAST_INT("heads", 3), FAST_INT("dims", 14)},
       .absolute = 1e-5},
      {.op = "rope",
       .in = {T(2, 3, 7, 20), T(7, 10), T(7, 10)},
       .attrs = {FAST_INT("interleaved", 1)},
       .absolute = 1e-3},
      {.op = "scatter_nd",
       .in = {T(9, 300), {.type = BERTH_I64, .rank = 2, .dim = {2, 1}, .low = 0, .high = 8}, T(2, 300)},
       .attrs = {FAST_STRING("reduction", "add")}},
      {.op = "chain",
       .in = {T(60, 91), T(91)},
       .attrs = {FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0, BERTH__CHAIN_exp, 2, 0, 0)},
       .absolute = 1e-3},
      {.op = "quantize",
       .in = {T(90, 211), {.type = BERTH_F16, .rank = 0, .low = 0.5, .high = 0.5}},
       .attrs = {FAST_STRING("to", "i8")}},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(cases); i++) check_both(cases[i], NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lines),
      cmocka_unit_test(reductions),
      cmocka_unit_test(pools),
      cmocka_unit_test(convolutions),
      cmocka_unit_test(boxes_of_bounded_extents),
      cmocka_unit_test(other_convolutions),
      cmocka_unit_test(products),
      cmocka_unit_test(attentions),
      cmocka_unit_test(other_ops),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
