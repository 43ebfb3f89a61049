/* Moves, resampling, top_k and dft: fast kernels against the reference kernels; what is moved, to the last bit. */
#include <math.h>

#include "fast.h"

#define OF(kind, ...) \
  { .type = (kind), __VA_ARGS__ }

static const berth_type types[] = {BERTH_F32, BERTH_U8, BERTH_F16, BERTH_I64};

static void transposes_of_every_order(void **state) {
  static const int64_t shapes[][3] = {{3, 40, 37}, {64, 16, 16}, {1, 130, 257}, {70, 1, 3}, {5, 300, 1}, {2, 2, 2}};
  static const int64_t orders[][3] = {{0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}, {0, 1, 2}};
  (void)state;
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 6; k++)
      for (size_t t = 0; t < 4; t++)
        for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
          fast_case c = {.op = "transpose", .in = {OF(types[t], .rank = 3, .layout = layout)}};
          memcpy(c.in[0].dim, shapes[i], sizeof shapes[i]);
          c.attrs[0] = (berth_attr){.name = "perm", .kind = BERTH_ATTR_INTS, .count = 3, .ints = orders[k]};
          fast_check(&c);
        }
}

static void transposes_of_large_tensors(void **state) {
  (void)state;
  fast_check(&(fast_case){.op = "transpose",
                          .in = {OF(BERTH_F32, .rank = 4, .dim = {2, 24, 70, 90})},
                          .attrs = {FAST_INTS("perm", 0, 2, 3, 1)}});
  fast_check(&(fast_case){.op = "transpose",
                          .in = {OF(BERTH_F32, .rank = 4, .dim = {2, 70, 90, 24})},
                          .attrs = {FAST_INTS("perm", 0, 3, 1, 2)}});
  fast_check(&(fast_case){.op = "transpose",
                          .in = {OF(BERTH_F32, .rank = 4, .dim = {2, 50, 12, 32})},
                          .attrs = {FAST_INTS("perm", 0, 2, 1, 3)}});
  fast_check(&(fast_case){.op = "transpose",
                          .in = {OF(BERTH_F32, .rank = 3, .dim = {20000, 3, 2})},
                          .attrs = {FAST_INTS("perm", 0, 2, 1)}});
}

/* Lines of every length that is copied in a way of its own, of every size of element. */
static void short_lines(void **state) {
  static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65, 129};
  (void)state;
  for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++)
    for (size_t t = 0; t < 4; t++) {
      const int64_t n = lengths[k];
      fast_check(&(fast_case){.op = "transpose",
                              .in = {OF(types[t], .rank = 4, .dim = {2, 9, 11, n})},
                              .attrs = {FAST_INTS("perm", 0, 2, 1, 3)}});
      fast_check(&(fast_case){.op = "split",
                              .in = {OF(types[t], .rank = 3, .dim = {3, 7, n + 2})},
                              .attrs = {FAST_INT("axis", 2), FAST_INTS("parts", n, 2)},
                              .n_out = 2});
    }
}

static void copies_of_strided_operands(void **state) {
  static const char *const ops[] = {"identity", "flatten"};
  (void)state;
  for (size_t op = 0; op < 2; op++)
    for (size_t t = 0; t < 4; t++)
      for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++)
        fast_check(&(fast_case){.op = ops[op], .in = {OF(types[t], .rank = 3, .dim = {30, 41, 50}, .layout = layout)}});
  fast_check(&(fast_case){.op = "identity", .in = {OF(BERTH_F32, .rank = 0)}});
  fast_check(&(fast_case){.op = "identity", .in = {OF(BERTH_F32, .rank = 1, .dim = {50000})}});
}

static void parts_and_wholes(void **state) {
  (void)state;
  for (int64_t axis = 0; axis < 3; axis++) {
    fast_case whole = {.op = "concat", .attrs = {FAST_INT("axis", axis)}};
    for (int k = 0; k < 3; k++) {
      whole.in[k] = (fast_operand)OF(BERTH_F32, .rank = 3, .dim = {20, 30, 40}, .layout = (fast_layout)k);
      whole.in[k].dim[axis] = 5 + 10 * k;
    }
    fast_check(&whole);
    fast_check(&(fast_case){
        .op = "narrow",
        .in = {OF(BERTH_F32, .rank = 3, .dim = {20, 30, 40})},
        .attrs = {FAST_INTS("starts", 3), FAST_INTS("ends", 17), FAST_INTS("axes", axis), FAST_INTS("steps", 2)}});
  }
  fast_check(&(fast_case){.op = "concat", /* a column, whose elements are no neighbours in the result */
                          .in = {OF(BERTH_F32, .rank = 2, .dim = {50, 3}), OF(BERTH_F32, .rank = 2, .dim = {50, 1})},
                          .attrs = {FAST_INT("axis", 1)}});
  fast_check(&(fast_case){.op = "split",
                          .in = {OF(BERTH_F32, .rank = 2, .dim = {20, 30}, .layout = FAST_REVERSED)},
                          .attrs = {FAST_INT("axis", 1), FAST_INTS("parts", 30)}});
}

/* No view walks backwards, but a copy does. */
/* What operands say of a shape, the result has: a run may find them. */
static void shapes_from_operands(void **state) {
  static const double wide[] = {4, 3, 50}, flat[] = {-1, 30}, axes[] = {0, 2};
  static const int64_t one[] = {3, 1};
  (void)state;
  for (size_t t = 0; t < 4; t++) {
    fast_case expand = {.op = "expand",
                        .in = {OF(types[t], .rank = 2), OF(BERTH_I64, .rank = 1, .dim = {3}, .values = wide)}};
    memcpy(expand.in[0].dim, one, sizeof one);
    expand.in[1].n_values = 3;
    fast_check(&expand);
    fast_check(&(fast_case){.op = "reshape",
                            .in = {OF(types[t], .rank = 3, .dim = {6, 5, 8}, .layout = FAST_REVERSED),
                                   OF(BERTH_I64, .rank = 1, .dim = {2}, .values = flat, .n_values = 2)}});
    fast_check(&(fast_case){.op = "unsqueeze",
                            .in = {OF(types[t], .rank = 2, .dim = {6, 5}, .layout = FAST_PADDED),
                                   OF(BERTH_I64, .rank = 1, .dim = {2}, .values = axes, .n_values = 2)}});
  }
}

static void slices_backwards(void **state) {
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (fast_layout layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
      const fast_operand x = OF(types[t], .rank = 3, .dim = {20, 30, 140}, .layout = layout);
      for (int64_t axis = 0; axis < 3; axis++)
        for (int64_t step = -3; step < 0; step++)
          fast_check(&(fast_case){.op = "narrow",
                                  .in = {x},
                                  .attrs = {FAST_INTS("starts", 17), FAST_INTS("ends", 2), FAST_INTS("axes", axis),
                                            FAST_INTS("steps", step)}});
      fast_check(&(fast_case){.op = "narrow",
                              .in = {x},
                              .attrs = {FAST_INTS("starts", -1, -1, -1), FAST_INTS("ends", -1000, -1000, -1000),
                                        FAST_INTS("steps", -1, -1, -2)}});
    }
}

static void pads_of_every_axis(void **state) {
  static const int64_t pads[][6] = {{0, 0, 0, 0, 0, 3},   {0, 2, 0, 0, 1, 0},  {1, 0, 0, 2, 0, 0}, {1, 2, 3, 3, 2, 1},
                                    {-1, 2, 0, 0, -3, 0}, {0, 0, -2, 0, 0, 5}, {0, 0, 0, 0, 0, 0}};
  static const int64_t shapes[][3] = {{4, 30, 20}, {3, 40, 1}, {5, 7, 3000}, {1, 9, 8}};
  (void)state;
  for (size_t i = 0; i < 7; i++)
    for (size_t k = 0; k < 4; k++)
      for (size_t t = 0; t < 4; t++) {
        fast_case c = {
            .op = "pad", .in = {OF(types[t], .rank = 3)}, .attrs = {FAST_INTS("pads", 0), FAST_FLOAT("value", 2.5)}};
        memcpy(c.in[0].dim, shapes[k], sizeof shapes[k]);
        c.attrs[0].count = 6;
        c.attrs[0].ints = pads[i];
        if (pads[i][2] + pads[i][5] + shapes[k][2] <= 0 || (pads[i][2] < 0 && shapes[k][2] < 3) ||
            (pads[i][0] < 0 && shapes[k][0] < 2))
          continue;
        fast_check(&c);
      }
  fast_check(&(fast_case){
      .op = "pad", /* some axes, and a value that is an operand */
      .in = {OF(BERTH_F32, .rank = 3, .dim = {2, 3, 50}), OF(BERTH_TYPE_NONE, .rank = 0), OF(BERTH_F32, .rank = 0)},
      .attrs = {FAST_INTS("pads", 1, 2), FAST_INTS("axes", -1)}});
}

/* Channels that move together, from where a number as wide as they are may not begin. */
static void elements_that_are_not_aligned(void **state) {
  static const char *const modes[] = {"reflect", "edge", "wrap"};
  static const double scales[] = {1, 2, 1.5, 1};
  static const berth_type narrow[] = {BERTH_U8, BERTH_F16, BERTH_I32};
  (void)state;
  for (int64_t channels = 2; channels <= 8; channels *= 2)
    for (size_t t = 0; t < 3; t++) {
      const fast_operand x = {.type = narrow[t], .rank = 4, .dim = {2, 5, 7, channels}, .layout = FAST_OFFSET};
      for (size_t mode = 0; mode < 3; mode++)
        fast_check(
            &(fast_case){.op = "pad",
                         .in = {x},
                         .attrs = {FAST_INTS("pads", 0, 1, 2, 0, 0, 2, 3, 0), FAST_STRING("mode", modes[mode])}});
      fast_check(&(fast_case){.op = "resize",
                              .in = {x, OF(BERTH_F32, .rank = 1, .dim = {4}, .values = scales, .n_values = 4)}});
    }
}

/* Borders of what is inside, further out than it reaches, on several axes, and of rows that stay whole. */
static void pads_that_repeat(void **state) {
  static const char *const modes[] = {"reflect", "edge", "wrap"};
  static const int64_t pads[][6] = {{0, 0, 2, 0, 0, 3}, {0, 2, 0, 0, 1, 0},   {1, 2, 0, 3, 2, 0},
                                    {2, 9, 1, 1, 0, 7}, {0, -1, 2, 0, 3, -2}, {3, 0, 0, 2, 0, 0}};
  static const int64_t shapes[][3] = {{4, 30, 20}, {3, 4, 5}, {2, 3, 700}, {2, 5, 3}};
  (void)state;
  for (size_t i = 0; i < 6; i++)
    for (size_t k = 0; k < 4; k++)
      for (size_t t = 0; t < 12; t++) {
        fast_case c = {.op = "pad",
                       .in = {OF(types[t / 3], .rank = 3)},
                       .attrs = {FAST_INTS("pads", 0), FAST_STRING("mode", modes[t % 3])}};
        memcpy(c.in[0].dim, shapes[k], sizeof shapes[k]);
        c.attrs[0].count = 6;
        c.attrs[0].ints = pads[i];
        fast_check(&c);
      }
  fast_check(&(fast_case){.op = "pad", /* one element, again and again */
                          .in = {OF(BERTH_F32, .rank = 1, .dim = {1})},
                          .attrs = {FAST_INTS("pads", 3, 4), FAST_STRING("mode", "reflect")}});
}

static void resizes_of_every_kind(void **state) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {"half_pixel", "align_corners", "asymmetric"};
  static const struct {
    int64_t x[4];
    double scale[4];
  } shapes[] = {
      {{2, 5, 20, 30}, {1, 1, 2, 2}},      {{2, 5, 20, 31}, {1, 1, 2, 3}},  {{1, 20, 31, 5}, {1, 2, 2, 1}},
      {{1, 20, 31, 40}, {1, 0.5, 0.7, 1}}, {{3, 1, 1, 50}, {1, 1, 1, 1.3}}, {{1, 10, 10, 19}, {1, 3, 1, 1}},
      {{1, 3, 200, 150}, {1, 1, 4, 4}},
  };
  (void)state;
  for (size_t mode = 0; mode < 3; mode++)
    for (size_t c = 0; c < 3; c++)
      for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        fast_case resize = {.op = "resize",
                            .in = {OF(BERTH_F32, .rank = 4),
                                   OF(BERTH_F32, .rank = 1, .dim = {4}, .values = shapes[i].scale, .n_values = 4)},
                            .attrs = {FAST_STRING("mode", modes[mode]), FAST_STRING("coordinates", coordinates[c])},
                            .absolute = mode == 0 ? 0 : 3e-6,
                            .relative = mode == 0 ? 0 : 1e-6};
        memcpy(resize.in[0].dim, shapes[i].x, sizeof shapes[i].x);
        fast_check(&resize);
        resize.attrs[2] = (berth_attr)FAST_INT("antialias", 1);
        if (mode > 0) fast_check(&resize);
      }
}

static void resizes_by_scales_near_one(void **state) {
  static const double scales[] = {1.05, 2, 1};
  (void)state;
  fast_check(&(fast_case){.op = "resize",
                          .in = {OF(BERTH_F32, .rank = 3, .dim = {10, 20, 7}),
                                 OF(BERTH_F32, .rank = 1, .dim = {3}, .values = scales, .n_values = 3)},
                          .attrs = {FAST_STRING("mode", "linear"), FAST_STRING("coordinates", "asymmetric")},
                          .absolute = 1e-6,
                          .relative = 1e-6});
}

static void resizes_of_other_types(void **state) {
  static const double scales[] = {2, 1.5}, last[] = {1, 2, 1.5, 1};
  static const berth_type all[] = {BERTH_U8, BERTH_I16, BERTH_I64, BERTH_BOOL, BERTH_F16, BERTH_BF16};
  static const char *const modes[] = {"linear", "cubic"};
  (void)state;
  fast_check(&(fast_case){.op = "resize",
                          .in = {OF(BERTH_I32, .rank = 2, .dim = {9, 11}, .low = -2e9, .high = 2e9),
                                 OF(BERTH_F32, .rank = 1, .dim = {2}, .values = scales, .n_values = 2)}});
  for (size_t t = 0; t < 6; t++)
    for (int64_t channels = 1; channels < 8; channels += 2)
      fast_check(&(fast_case){.op = "resize",
                              .in = {OF(all[t], .rank = 4, .dim = {2, 9, 11, channels}),
                                     OF(BERTH_F32, .rank = 1, .dim = {4}, .values = last, .n_values = 4)}});
  for (size_t t = 4; t < 6; t++)
    for (size_t k = 0; k < 4; k++) {
      fast_case c = {.op = "resize",
                     .in = {OF(all[t], .rank = 2, .dim = {9, 11}),
                            OF(BERTH_F32, .rank = 1, .dim = {2}, .values = scales, .n_values = 2)},
                     .attrs = {FAST_STRING("mode", modes[k % 2])},
                     .absolute = t == 4 ? 2e-3 : 2e-2}; /* a unit in the last place */
      if (k > 1) {
        c.in[0] = (fast_operand)OF(all[t], .rank = 4, .dim = {2, 9, 11, 5});
        c.in[1] = (fast_operand)OF(BERTH_F32, .rank = 1, .dim = {4}, .values = last, .n_values = 4);
      }
      fast_check(&c);
    }
}

/* Integers, which are cut off from sums in f64, axes that are not neighbours or more than two, regions, and scales near
 * 1: to the last bit. */
static void resizes_left_to_any(void **state) {
  static const char *const modes[] = {"nearest", "linear", "cubic"};
  static const char *const coordinates[] = {"half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric",
                                            "tf_crop_and_resize"};
  static const berth_type all[] = {BERTH_U8,  BERTH_I8,  BERTH_U16, BERTH_I16, BERTH_I32,
                                   BERTH_I64, BERTH_F32, BERTH_F64, BERTH_F16, BERTH_BF16};
  static const double region[] = {0, -0.25, 0.125, 0.25, 0, 1, 0.75, 1.25, 0.875, 1};
  static const struct {
    int64_t x[5];
    double scale[5];
  } shapes[] = {{{2, 3, 4, 5, 6}, {1, 1, 2, 1.5, 2}},  {{1, 4, 5, 6, 3}, {1, 2, 1.5, 0.6, 1}},
                {{2, 3, 4, 5, 9}, {1, 1, 1, 1, 3}},    {{1, 2, 9, 11, 3}, {1, 1, 0.5, 1.7, 1}},
                {{1, 2, 7, 5, 8}, {1, 3, 1, 1.05, 1}}, {{1, 1, 3, 2, 600}, {1, 1, 2, 3, 1}},
                {{1, 2, 3, 16, 1}, {1, 1, 1, 2, 1}},   {{2, 1, 20, 1, 1}, {1, 1, 0.6, 1, 1}}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t t = 0; t < sizeof all / sizeof *all; t++)
      for (size_t mode = 0; mode < 3; mode++)
        for (size_t k = 0; k < 5; k++) {
          const bool is_int = !berth__type_is_float(all[t]);
          fast_case c = {.op = "resize",
                         .in = {OF(all[t], .rank = 5, .low = -200, .high = 300),
                                OF(BERTH_F32, .rank = 1, .dim = {5}, .values = shapes[i].scale, .n_values = 5)},
                         .attrs = {FAST_STRING("mode", modes[mode]), FAST_STRING("coordinates", coordinates[k]),
                                   FAST_FLOAT("extrapolation", 7.5)},
                         .absolute = is_int || mode == 0                           ? 0
                                     : all[t] == BERTH_F16 || all[t] == BERTH_BF16 ? 2
                                                                                   : 1e-3};
          memcpy(c.in[0].dim, shapes[i].x, sizeof shapes[i].x);
          if (k == 4) c.in[2] = (fast_operand)OF(BERTH_F32, .rank = 1, .dim = {10}, .values = region, .n_values = 10);
          fast_check(&c);
          c.attrs[3] = (berth_attr)FAST_INT("antialias", 1);
          if (mode > 0 && k == 0) fast_check(&c);
        }
}

/* ---- The best of a line ---- */

static void best_of_lines(void **state) {
  static const berth_type all[] = {BERTH_F32, BERTH_F16, BERTH_BF16, BERTH_I8, BERTH_U8, BERTH_I32, BERTH_U32};
  static const double special[] = {1, (double)NAN, -0.0, 0, 3, 3, (double)-INFINITY, 2, (double)INFINITY, -1, 1, 1};
  static const int64_t dims[][3] = {{3, 700, 1}, {2, 9, 5}, {1, 5000, 1}, {2, 300, 3}};
  static const int64_t wanted[] = {1, 5, 9, 200, 1000};
  (void)state;
  for (size_t t = 0; t < 7; t++)
    for (size_t i = 0; i < 20; i++)
      for (int64_t largest = 0; largest < 2; largest++) {
        fast_case c = {.op = "top_k",
                       .in = {OF(all[t], .rank = 3, .low = -100, .high = 100)},
                       .attrs = {FAST_INT("k", wanted[i % 5]), FAST_INT("axis", 1), FAST_INT("largest", largest)},
                       .n_out = 2};
        memcpy(c.in[0].dim, dims[i / 5], sizeof dims[i / 5]);
        if (wanted[i % 5] > dims[i / 5][1]) c.attrs[0].i = dims[i / 5][1];
        fast_check(&c);
        c.in[0].values = special; /* equal ones, infinities and NaN */
        c.in[0].n_values = t < 3 ? 12 : 1;
        if (t < 4 && i % 5 < 3) fast_check(&c);
      }
  fast_check_declined(&(fast_case){
      .op = "top_k", .in = {OF(BERTH_I64, .rank = 1, .dim = {50})}, .attrs = {FAST_INT("k", 3)}, .n_out = 2});
}

/* In order and in reverse, which a partition must not take for ever over. */
static void best_of_sorted_lines(void **state) {
  static double up[4000], down[4000];
  (void)state;
  for (int i = 0; i < 4000; i++) {
    up[i] = i;
    down[i] = 4000 - i;
  }
  for (int64_t k = 1; k <= 4000; k = k * 7 + 1)
    for (int way = 0; way < 2; way++)
      fast_check(
          &(fast_case){.op = "top_k",
                       .in = {OF(BERTH_F32, .rank = 1, .dim = {4000}, .values = way ? up : down, .n_values = 4000)},
                       .attrs = {FAST_INT("k", k)},
                       .n_out = 2});
}

/* ---- Running sums, and repetitions ---- */

static void sums_across_lines(void **state) {
  static const berth_type all[] = {BERTH_F32, BERTH_F64, BERTH_I32, BERTH_I64};
  static const int64_t dims[][3] = {{3, 40, 70}, {1, 9, 200}, {2, 1, 5}};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t i = 0; i < 3; i++)
      for (int variant = 0; variant < 16; variant++) {
        fast_case c = {.op = variant & 8 ? "cumprod" : "cumsum",
                       .in = {OF(all[t], .rank = 3)},
                       .attrs = {FAST_INT("axis", variant & 1), FAST_INT("exclusive", (variant & 2) != 0),
                                 FAST_INT("reverse", (variant & 4) != 0)}};
        memcpy(c.in[0].dim, dims[i], sizeof dims[i]);
        fast_check(&c);
      }
  fast_check_declined(
      &(fast_case){.op = "cumsum", .in = {OF(BERTH_F32, .rank = 2, .dim = {3, 50})}, .attrs = {FAST_INT("axis", 1)}});
}

static void tiles_of_short_lines(void **state) {
  static const int64_t dims[][3] = {{2, 3, 5}, {1, 7, 1}, {4, 1, 9}};
  static const int64_t repeats[][3] = {{3, 2, 4}, {1, 1, 3}, {5, 1, 1}, {1, 6, 1}};
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (size_t i = 0; i < 12; i++) {
      fast_case c = {.op = "tile", .in = {OF(types[t], .rank = 3)}};
      memcpy(c.in[0].dim, dims[i / 4], sizeof dims[i / 4]);
      c.attrs[0] = (berth_attr){.name = "repeats", .kind = BERTH_ATTR_INTS, .count = 3, .ints = repeats[i % 4]};
      fast_check(&c);
    }
}

/* ---- Transforms ---- */

/* Lengths of small factors, of large primes, and of both. */
static void transforms_of_every_length(void **state) {
  static const int64_t lengths[] = {1, 2, 3, 4, 5, 7, 8, 9, 12, 31, 37, 60, 64, 74, 97, 120, 256, 400, 509};
  (void)state;
  for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
    for (int variant = 0; variant < 8; variant++) {
      const bool is_complex = variant & 1, is_inverse = variant & 2, is_onesided = (variant & 4) && !is_inverse;
      fast_case c = {.op = "dft",
                     .in = {OF(variant == 4 ? BERTH_F64 : BERTH_F32, .rank = 3)},
                     .attrs = {FAST_INT("axis", variant & 1), FAST_INT("inverse", is_inverse),
                               FAST_INT("onesided", is_onesided && !is_complex)},
                     .absolute = 3e-5,
                     .relative = 1e-6};
      const int64_t dim[] = {variant & 1 ? 3 : lengths[i], variant & 1 ? lengths[i] : 3, is_complex ? 2 : 1};
      memcpy(c.in[0].dim, dim, sizeof dim);
      fast_check(&c);
    }
  fast_check(&(fast_case){.op = "dft", /* a real line from half of its spectrum; cut, and filled up */
                          .in = {OF(BERTH_F32, .rank = 3, .dim = {2, 38, 2})},
                          .attrs = {FAST_INT("axis", 1), FAST_INT("inverse", 1), FAST_INT("onesided", 1)},
                          .absolute = 1e-5});
  for (int64_t length = 20; length < 90; length += 37)
    fast_check(&(fast_case){.op = "dft",
                            .in = {OF(BERTH_F32, .rank = 3, .dim = {2, 50, 1})},
                            .attrs = {FAST_INT("axis", 1), FAST_INTS("length", length)},
                            .absolute = 3e-5});
}

/* Rows at a position of a run: in place, apart, in any split, and around the end of a ring. */
/* ---- Picking and putting by index ---- */

static const double picks[] = {0, 3, -1, 2, 4, -5, 1, 1, 0, -2, 3};
static const berth_type moved[] = {BERTH_F32, BERTH_I8, BERTH_F16, BERTH_I64};
#define INDICES(kind, ...)                                                                                             \
  {                                                                                                                    \
    .type = (kind), .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = {__VA_ARGS__}, .values = picks, \
    .n_values = 11                                                                                                     \
  }

static void elements_by_index(void **state) {
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (int64_t axis = -1; axis < 3; axis++) {
      const fast_operand x = {.type = moved[t], .rank = 3, .dim = {5, 6, 7}};
      fast_check(&(fast_case){.op = "gather_elements",
                              .in = {x, INDICES(t % 2 ? BERTH_I32 : BERTH_I64, 5, 6, 7)},
                              .attrs = {FAST_INT("axis", axis)}});
      fast_check(&(fast_case){
          .op = "gather_elements", .in = {x, INDICES(BERTH_I64, 3, 2, 5)}, .attrs = {FAST_INT("axis", axis)}});
    }
}

/* Slices of a few bytes, one after the other. */
static void short_slices(void **state) {
  (void)state;
  for (size_t t = 0; t < 4; t++)
    for (int64_t axis = 0; axis < 3; axis++) {
      const fast_operand x = {.type = moved[t], .rank = 3, .dim = {5, 6, axis == 0 ? 1 : 5}};
      fast_check(
          &(fast_case){.op = "gather", .in = {x, INDICES(BERTH_I64, 700, 3)}, .attrs = {FAST_INT("axis", axis)}});
      const fast_operand table = {.type = moved[t], .rank = 2, .dim = {5, 7}};
      fast_check(&(fast_case){.op = "embedding", .in = {table, INDICES(BERTH_I32, 40)}});
    }
}

static void slices_by_index(void **state) {
  (void)state;
  for (size_t t = 0; t < 4; t++) {
    const fast_operand x = {.type = moved[t], .rank = 4, .dim = {5, 6, 5, 7}};
    for (int64_t width = 1; width <= 4; width++)
      fast_check(&(fast_case){.op = "gather_nd", .in = {x, INDICES(BERTH_I64, 300, width)}});
    fast_check(
        &(fast_case){.op = "gather_nd", .in = {x, INDICES(BERTH_I32, 5, 70, 2)}, .attrs = {FAST_INT("batch_dims", 1)}});
  }
}

static void updates_by_index(void **state) {
  static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
  static const berth_type numbers[] = {BERTH_F32, BERTH_F64, BERTH_I32, BERTH_I64, BERTH_I8, BERTH_F16};
  (void)state;
  for (size_t t = 0; t < 6; t++)
    for (size_t r = 0; r < 5; r++) {
      const fast_operand x = {.type = numbers[t], .rank = 3, .dim = {5, 6, 300}};
      for (int64_t axis = 0; axis < 3; axis++) {
        if (r > 0 && t > 3) continue; /* the op's own kernel does those */
        fast_operand i = INDICES(BERTH_I64, 5, 6, 300);
        i.dim[axis] += axis == 2 ? -7 : 3;
        fast_operand u = x;
        u.dim[axis] = i.dim[axis];
        fast_check(&(fast_case){.op = "scatter",
                                .in = {x, i, u},
                                .attrs = {FAST_INT("axis", axis), FAST_STRING("reduction", reductions[r])}});
      }
      for (int64_t width = 1; width <= 3 && (r == 0 || t < 4); width++) {
        fast_operand u = {.type = numbers[t], .rank = (uint32_t)(4 - width), .dim = {40}};
        for (uint32_t k = 1; k < u.rank; k++) u.dim[k] = x.dim[width + k - 1];
        fast_check(&(fast_case){.op = "scatter_nd",
                                .in = {x, INDICES(BERTH_I32, 40, width), u},
                                .attrs = {FAST_STRING("reduction", reductions[r])}});
      }
    }
}

/* Shorter lines may be harder to transform. */
static void transforms_of_bounded_lengths(void **state) {
  (void)state;
  for (int is_onesided = 0; is_onesided < 2; is_onesided++)
    for (int64_t length = 64; length < 70; length++)
      fast_check_bounds(&(fast_case){.op = "dft",
                                     .in = {OF(BERTH_F32, .rank = 3, .dim = {2, length, 1})},
                                     .attrs = {FAST_INT("axis", 1), FAST_INT("onesided", is_onesided)}},
                        0, 1, 1, NULL);
}

static void rows_of_caches(void **state) {
  static const double positions[] = {0, 3, 11, 13};
  (void)state;
  for (int i = 0; i < 4; i++)
    for (int64_t n = 1; n < 4; n++)
      for (int layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
        fast_case c = {.op = "write_rows",
                       .in = {OF(BERTH_F32, .rank = 3, .dim = {5, 16, 7}),
                              OF(BERTH_F32, .rank = 3, .dim = {5, n, 7}, .layout = (fast_layout)layout),
                              OF(BERTH_I32, .values = &positions[i], .n_values = 1)}};
        fast_check(&c);
        c.attrs[0] = (berth_attr)FAST_INT("ring", 1);
        c.in[1].dim[1] = n + 9;
        fast_check(&c);
      }
}

/* Rows of f32 that become q8_0 on the way. */
static void rows_of_caches_in_blocks(void **state) {
  static const double positions[] = {0, 11, 14};
  (void)state;
  for (int i = 0; i < 3; i++)
    for (int layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++) {
      fast_case c = {.op = "write_rows",
                     .in = {OF(BERTH_Q8_0, .rank = 3, .dim = {3, 16, 64}),
                            OF(BERTH_F32, .rank = 3, .dim = {3, 2, 64}, .layout = (fast_layout)layout),
                            OF(BERTH_I32, .values = &positions[i], .n_values = 1)}};
      fast_check(&c);
      c.attrs[0] = (berth_attr)FAST_INT("ring", 1);
      c.in[1].dim[1] = 9;
      fast_check(&c);
    }
}

/* Rows of f32 that are rounded on the way, also along the axis that the rows are counted on. */
static void rows_of_caches_of_halves(void **state) {
  static const berth_type halves[] = {BERTH_F16, BERTH_BF16};
  static const double positions[] = {0, 11, 14};
  (void)state;
  for (int i = 0; i < 6; i++)
    for (int layout = FAST_PLAIN; layout <= FAST_REVERSED; layout++)
      for (int axis = 1; axis < 3; axis++) {
        fast_case c = {.op = "write_rows",
                       .in = {OF(halves[i / 3], .rank = 3, .dim = {3, 16, 19}),
                              OF(BERTH_F32, .rank = 3, .dim = {3, 2, 19}, .layout = (fast_layout)layout),
                              OF(BERTH_I32, .values = &positions[i % 3], .n_values = 1)},
                       .attrs = {FAST_INT("axis", axis)}};
        if (axis == 2) c.in[1].dim[1] = 16, c.in[1].dim[2] = 2;
        fast_check(&c);
        c.attrs[1] = (berth_attr)FAST_INT("ring", 1);
        c.in[1].dim[axis] = 9;
        fast_check(&c);
      }
}

/* What a row is worth does not depend on how it is kept. */
static void rows_in_blocks_are_shared_out(void **state) {
  fast_case c = {.op = "write_rows",
                 .in = {OF(BERTH_F32, .rank = 2, .dim = {64, 4096}), OF(BERTH_F32, .rank = 2, .dim = {32, 4096}),
                        OF(BERTH_I32, .rank = 0, .low = 0, .high = 1)}};
  (void)state;
  const int64_t grain = fast_grain(&c);
  c.in[0].type = BERTH_Q8_0;
  assert_true(grain < 32);
  assert_int_equal(fast_grain(&c), grain);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposes_of_every_order),
      cmocka_unit_test(transposes_of_large_tensors),
      cmocka_unit_test(short_lines),
      cmocka_unit_test(copies_of_strided_operands),
      cmocka_unit_test(parts_and_wholes),
      cmocka_unit_test(shapes_from_operands),
      cmocka_unit_test(slices_backwards),
      cmocka_unit_test(pads_of_every_axis),
      cmocka_unit_test(resizes_of_every_kind),
      cmocka_unit_test(resizes_by_scales_near_one),
      cmocka_unit_test(pads_that_repeat),
      cmocka_unit_test(elements_that_are_not_aligned),
      cmocka_unit_test(resizes_of_other_types),
      cmocka_unit_test(resizes_left_to_any),
      cmocka_unit_test(best_of_lines),
      cmocka_unit_test(best_of_sorted_lines),
      cmocka_unit_test(sums_across_lines),
      cmocka_unit_test(tiles_of_short_lines),
      cmocka_unit_test(transforms_of_every_length),
      cmocka_unit_test(transforms_of_bounded_lengths),
      cmocka_unit_test(rows_of_caches),
      cmocka_unit_test(rows_of_caches_in_blocks),
      cmocka_unit_test(rows_of_caches_of_halves),
      cmocka_unit_test(rows_in_blocks_are_shared_out),
      cmocka_unit_test(elements_by_index),
      cmocka_unit_test(short_slices),
      cmocka_unit_test(slices_by_index),
      cmocka_unit_test(updates_by_index),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
