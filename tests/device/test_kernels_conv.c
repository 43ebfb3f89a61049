/* The fast kernels of the convolutions with channels last. */
#include "conv_shapes.h"
#include "device/cpu/winograd_rule.h"
#include "ops/chain.h"

static fast_case conv_case(const shape *s, const lists *l, int64_t panel) {
  const int64_t group = s->group ? s->group : 1, each = s->outputs / group;
  const int64_t rows = s->kernel * s->kernel * s->channels / group;
  fast_case c = {
      .op = "conv_last",
      .in = {F32(s->images, s->height, s->width, s->channels), F32(group * ((each + panel - 1) / panel), rows, panel)},
      .attrs = {ints("kernel", l->kernel, 2), ints("strides", l->strides, 2), ints("pads", l->pads, 4),
                ints("dilations", l->dilations, 2), FAST_INT("channels", s->outputs), FAST_INT("panel", panel),
                FAST_INT("group", group)},
      .absolute = tolerance(rows)};
  if (s->has_bias) c.in[2] = (fast_operand)F32(s->outputs);
  c.in[0].layout = s->layout;
  return c;
}

static void check_conv(const shape *s) {
  const lists l = lists_of(s);
  const berth__cpu_isa *isa;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    const fast_case c = conv_case(s, &l, isa->panel);
    fast_check_on(&c, isa);
  }
}

static void conv_last_shapes(void **state) {
  static const shape shapes[] = {
      {1, 9, 8, 16, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},  {2, 7, 5, 9, 7, 3, 2, 1, 1, 1, false, FAST_PLAIN},
      {1, 11, 13, 3, 20, 7, 2, 1, 3, 1, true, FAST_PLAIN}, {1, 12, 9, 3, 33, 3, 2, 1, 1, 1, false, FAST_PADDED},
      {1, 10, 10, 1, 8, 5, 1, 1, 2, 1, true, FAST_PLAIN},  {1, 4, 3, 2, 5, 3, 1, 1, 3, 1, true, FAST_PLAIN},
      {1, 9, 9, 10, 12, 3, 1, 2, 2, 1, false, FAST_PLAIN}, {2, 6, 6, 24, 36, 3, 1, 1, 1, 3, true, FAST_PLAIN},
      {1, 5, 5, 8, 80, 3, 1, 1, 1, 2, true, FAST_PADDED},  {1, 8, 8, 4, 3, 4, 4, 1, 0, 1, true, FAST_PLAIN},
      {1, 3, 3, 300, 70, 3, 1, 1, 1, 1, true, FAST_PLAIN}, {1, 20, 21, 5, 30, 2, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 3, 150, 2, 9, 3, 1, 1, 1, 1, true, FAST_PLAIN},  {1, 17, 4, 1, 6, 3, 1, 1, 5, 1, true, FAST_PLAIN},
      {2, 18, 43, 3, 17, 5, 2, 1, 2, 1, true, FAST_PLAIN}, {1, 20, 1, 8, 16, 3, 1, 1, 1, 1, false, FAST_PADDED},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) check_conv(&shapes[i]);
}

static void conv_last_of_one_pixel(void **state) {
  static const shape shapes[] = {
      {1, 7, 9, 40, 70, 1, 1, 1, 0, 1, true, FAST_PLAIN},  {3, 4, 5, 12, 100, 1, 1, 1, 0, 1, false, FAST_PADDED},
      {1, 9, 8, 20, 24, 1, 2, 1, 0, 1, true, FAST_PLAIN},  {1, 2, 2, 1, 1, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 5, 5, 16, 8, 1, 1, 1, 1, 1, true, FAST_PLAIN},   {1, 1, 1, 50, 260, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 6, 5, 1024, 9, 1, 1, 1, 0, 1, true, FAST_PLAIN}, {2, 6, 5, 12, 18, 1, 1, 1, 0, 3, true, FAST_PLAIN},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) check_conv(&shapes[i]);
}

/* Channels first, and pixels that are no neighbours: lines of x are copied, inside as at borders. */
static void conv_last_turned(void **state) {
  static const shape shapes[] = {
      {1, 9, 8, 3, 40, 3, 1, 1, 1, 1, true, FAST_TURNED},    {2, 18, 43, 3, 17, 3, 2, 1, 1, 1, true, FAST_TURNED},
      {1, 30, 33, 3, 16, 7, 2, 1, 3, 1, false, FAST_TURNED}, {1, 12, 150, 2, 9, 3, 1, 1, 0, 1, true, FAST_TURNED},
      {1, 20, 84, 12, 16, 8, 4, 1, 0, 1, true, FAST_TURNED}, {2, 7, 5, 8, 33, 2, 1, 1, 0, 1, false, FAST_TURNED},
      {1, 4, 3, 6, 5, 3, 1, 1, 3, 1, true, FAST_TURNED},     {1, 9, 21, 5, 20, 5, 2, 1, 2, 1, true, FAST_STEPPED},
      {1, 7, 40, 4, 20, 3, 1, 1, 1, 1, true, FAST_TURNED},   {1, 9, 21, 3, 20, 3, 1, 1, 1, 1, true, FAST_REVERSED},
      {1, 20, 84, 12, 90, 8, 4, 1, 3, 1, true, FAST_TURNED}, {2, 9, 60, 16, 20, 5, 1, 1, 2, 1, false, FAST_TURNED},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) check_conv(&shapes[i]);
}

/* x of other windows with lines of channels that do not lie one after the other is for the reference kernel; so are
 * other panels. */
static void conv_last_declines(void **state) {
  const shape s = {.images = 1, .height = 4, .width = 4, .channels = 3, .outputs = 4, .kernel = 3};
  const lists l = lists_of(&s);
  fast_case c = conv_case(&s, &l, 5);
  (void)state;
  fast_check_declined(&c);
  c = conv_case(&(shape){.height = 4, .width = 4, .channels = 3, .outputs = 4, .kernel = 3}, &l, 32); /* no images */
  fast_check_declined(&c);
  for (uint32_t i = 0; berth__cpu_isa_at(i) != NULL; i++) {
    for (int k = 0; k < 4; k++) { /* many channels, groups, a pixel, dilation */
      const shape other = {
          1, 6, 6, k == 0 ? 17 : 4, 4, k == 2 ? 1 : 3, 1, k == 3 ? 2 : 1, 0, k == 1 ? 2 : 1, true, FAST_TURNED};
      const lists other_lists = lists_of(&other);
      c = conv_case(&other, &other_lists, berth__cpu_isa_at(i)->panel);
      fast_check_declined(&c);
    }
  }
}

/* One and three spatial axes. */
static void conv_last_axes(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    const fast_case line = {
        .op = "conv_last",
        .in = {F32(2, 50, 7), F32(1, 35, isa->panel), F32(6)},
        .attrs = {FAST_INTS("kernel", 5), FAST_INTS("strides", 2), FAST_INTS("pads", 4, 3), FAST_INTS("dilations", 2),
                  FAST_INT("channels", 6), FAST_INT("panel", isa->panel)},
        .absolute = tolerance(35)};
    const fast_case space = {.op = "conv_last",
                             .in = {F32(1, 4, 5, 6, 12), F32(1, 324, isa->panel)},
                             .attrs = {FAST_INTS("kernel", 3, 3, 3), FAST_INTS("pads", 1, 1, 1, 1, 0, 2),
                                       FAST_INT("channels", 6), FAST_INT("panel", isa->panel)},
                             .absolute = tolerance(324)};
    fast_check_on(&line, isa);
    fast_check_on(&space, isa);
  }
}

static void conv_last_tails(void **state) {
  static const shape shapes[] = {{1, 9, 8, 16, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},
                                 {2, 6, 7, 5, 100, 1, 1, 1, 0, 1, false, FAST_PLAIN},
                                 {1, 6, 7, 12, 90, 3, 1, 1, 1, 3, true, FAST_PLAIN}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const shape *s = &shapes[k];
      const lists l = lists_of(s);
      check_tails(conv_case(s, &l, isa->panel), 7, (const int64_t[]){s->images, s->height, s->width, s->outputs}, isa);
    }
}

static fast_case depthwise_case(const shape *s, const lists *l) {
  const int64_t outputs = s->outputs ? s->outputs : s->channels;
  fast_case c = {.op = "depthwise",
                 .in = {F32(s->images, s->height, s->width, s->channels), F32(s->kernel, s->kernel, outputs)},
                 .attrs = {ints("kernel", l->kernel, 2), ints("strides", l->strides, 2), ints("pads", l->pads, 4),
                           ints("dilations", l->dilations, 2)},
                 .absolute = tolerance(s->kernel * s->kernel)};
  if (s->has_bias) c.in[2] = (fast_operand)F32(outputs);
  c.in[0].layout = s->layout;
  return c;
}

static void depthwise_shapes(void **state) {
  static const shape shapes[] = {
      {1, 14, 15, 20, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {2, 13, 12, 33, 0, 3, 2, 1, 1, 1, false, FAST_PLAIN},
      {1, 15, 16, 17, 0, 5, 1, 1, 2, 1, true, FAST_PADDED},
      {1, 17, 18, 16, 0, 5, 2, 1, 2, 1, true, FAST_PLAIN},
      {1, 9, 9, 3, 0, 7, 1, 1, 3, 1, true, FAST_PLAIN},
      {1, 8, 9, 40, 0, 3, 1, 2, 2, 1, true, FAST_PLAIN},
      {1, 2, 2, 5, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {1, 3, 130, 18, 0, 3, 1, 1, 1, 1, false, FAST_PLAIN},
      {1, 12, 11, 8, 0, 3, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 1, 1, 9, 0, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 9, 31, 6, 0, 3, 3, 1, 4, 1, true, FAST_PLAIN},
      {2, 6, 1, 21, 0, 3, 1, 2, 2, 1, true, FAST_PLAIN},
      {1, 25, 5, 24, 0, 3, 1, 1, 1, 1, true, FAST_PADDED},
      {1, 4, 1, 10, 0, 1, 1, 1, 1, 1, true, FAST_PLAIN},
      /* several outputs for each channel */
      {2, 9, 13, 20, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {1, 11, 8, 24, 96, 3, 2, 1, 1, 1, false, FAST_PADDED},
      {1, 7, 9, 3, 51, 5, 1, 1, 2, 1, true, FAST_PLAIN},
      {1, 10, 31, 17, 51, 3, 3, 1, 0, 1, true, FAST_PLAIN},
      {1, 1, 70, 12, 36, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 8, 9, 2, 16, 3, 1, 2, 2, 1, true, FAST_PLAIN},
      {2, 5, 9, 3, 270, 3, 1, 1, 1, 1, true, FAST_PLAIN}, /* more than are done at once */
      {1, 6, 7, 2, 131 * 2, 3, 2, 1, 1, 1, false, FAST_PADDED},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    const lists l = lists_of(&shapes[i]);
    const fast_case c = depthwise_case(&shapes[i], &l);
    fast_check(&c);
  }
}

static void depthwise_axes(void **state) {
  const fast_case line = {.op = "depthwise",
                          .in = {F32(2, 150, 19), F32(31, 19), F32(19)},
                          .attrs = {FAST_INTS("kernel", 31), FAST_INTS("pads", 15, 15)},
                          .absolute = tolerance(31)};
  const fast_case space = {.op = "depthwise",
                           .in = {F32(1, 4, 5, 6, 12), F32(3, 3, 3, 12)},
                           .attrs = {FAST_INTS("kernel", 3, 3, 3), FAST_INTS("pads", 1, 1, 1, 1, 0, 2)},
                           .absolute = tolerance(27)};
  const fast_case uneven = {
      .op = "depthwise",
      .in = {F32(1, 14, 19, 20), F32(3, 3, 20)},
      .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("strides", 2, 1), FAST_INTS("pads", 1, 1, 1, 1)},
      .absolute = tolerance(9)};
  const fast_case uneven_five = {
      .op = "depthwise",
      .in = {F32(1, 14, 19, 20), F32(5, 5, 20)},
      .attrs = {FAST_INTS("kernel", 5, 5), FAST_INTS("strides", 2, 1), FAST_INTS("pads", 2, 2, 2, 2)},
      .absolute = tolerance(25)};
  const fast_case planes = {/* that padding makes of one */
                            .op = "depthwise",
                            .in = {F32(2, 1, 13, 15, 20), F32(1, 3, 3, 20)},
                            .attrs = {FAST_INTS("kernel", 1, 3, 3), FAST_INTS("pads", 1, 1, 1, 2, 1, 1)},
                            .absolute = tolerance(9)};
  const fast_case padding = {
      /* in the place of the one */
      .op = "depthwise",
      .in = {F32(2, 1, 13, 15, 20), F32(1, 3, 3, 20), F32(20)},
      .attrs = {FAST_INTS("kernel", 1, 3, 3), FAST_INTS("strides", 2, 1, 1), FAST_INTS("pads", 1, 1, 1, 0, 1, 1)},
      .absolute = tolerance(9)};
  const fast_case large = {
      .op = "depthwise", .in = {F32(1, 40, 40, 2), F32(40, 40, 2)}, .attrs = {FAST_INTS("kernel", 40, 40)}};
  (void)state;
  fast_check(&line);
  fast_check(&space);
  fast_check(&uneven);
  fast_check(&uneven_five);
  fast_check(&planes);
  fast_check(&padding);
  fast_check_declined(&large);
}

static void depthwise_tails(void **state) {
  static const shape shapes[] = {{1, 9, 8, 20, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN},
                                 {2, 3, 70, 5, 0, 5, 1, 1, 2, 1, false, FAST_PLAIN}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const shape *s = &shapes[k];
      const lists l = lists_of(s);
      check_tails(depthwise_case(s, &l), 4, (const int64_t[]){s->images, s->height, s->width, s->channels}, isa);
    }
}

/* Scratch that is planned for upper bounds, of images and of their sizes. */
static void convolutions_of_bounded_extents(void **state) {
  static const shape shapes[] = {
      {40, 5, 6, 3, 16, 3, 1, 1, 1, 1, true, FAST_PLAIN},    {3, 40, 50, 3, 24, 7, 2, 1, 3, 1, true, FAST_PLAIN},
      {30, 3, 2, 20, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},   {2, 33, 29, 20, 40, 3, 2, 1, 1, 1, true, FAST_PLAIN},
      {20, 5, 5, 64, 8, 1, 1, 1, 0, 1, false, FAST_PLAIN},   {1, 60, 150, 1, 8, 5, 1, 1, 2, 1, false, FAST_PLAIN},
      {1, 40, 45, 12, 200, 3, 3, 1, 1, 4, true, FAST_PLAIN}, {1, 9, 300, 8, 64, 3, 1, 1, 0, 1, true, FAST_PLAIN},
      {2, 40, 70, 3, 24, 3, 2, 1, 1, 1, true, FAST_TURNED},  {2, 24, 90, 12, 24, 7, 2, 1, 3, 1, true, FAST_TURNED},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const shape *s = &shapes[k];
      for (int ends_only = 0; ends_only < 2; ends_only++) {
        lists l = lists_of(s);
        if (ends_only) l.pads[0] = l.pads[1] = 0; /* pads that some sizes do not come to */
        fast_case c = conv_case(s, &l, isa->panel);
        fast_check_bounds(&c, 0, 0, 1, isa);
        for (uint32_t axis = 1; axis < 3 && s->pad > 0; axis++) fast_check_bounds(&c, 0, axis, s->kernel - s->pad, isa);
      }
    }
}

/* fast_check also runs these with the result over x, in ranges of items. */
static void depthwise_over(void **state) {
  static const shape shapes[] = {
      {1, 14, 15, 20, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN},  {2, 13, 12, 33, 0, 3, 1, 1, 1, 1, false, FAST_PLAIN},
      {1, 15, 16, 17, 0, 5, 1, 1, 2, 1, true, FAST_PADDED}, {1, 17, 18, 48, 0, 5, 1, 1, 2, 1, true, FAST_PLAIN},
      {1, 9, 9, 3, 0, 7, 1, 1, 3, 1, true, FAST_PLAIN},     {1, 8, 9, 40, 0, 3, 1, 2, 2, 1, true, FAST_PLAIN},
      {1, 2, 2, 5, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN},     {1, 3, 130, 18, 0, 3, 1, 1, 1, 1, false, FAST_PLAIN},
      {1, 12, 11, 8, 0, 3, 1, 1, 0, 1, true, FAST_PLAIN},   {1, 1, 1, 9, 0, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {1, 21, 3, 16, 0, 3, 1, 4, 4, 1, true, FAST_PLAIN},   {1, 5, 6, 16, 0, 3, 1, 1, 3, 1, true, FAST_PLAIN},
  };
  const fast_case line = {.op = "depthwise",
                          .in = {F32(2, 150, 19), F32(31, 19), F32(19)},
                          .attrs = {FAST_INTS("kernel", 31), FAST_INTS("pads", 15, 15), FAST_INT("over", 1)},
                          .absolute = tolerance(31)};
  const fast_case uneven = {.op = "depthwise",
                            .in = {F32(1, 14, 19, 20), F32(3, 3, 20)},
                            .attrs = {FAST_INTS("kernel", 3, 3), FAST_INTS("pads", 0, 2, 2, 0), FAST_INT("over", 1)},
                            .absolute = tolerance(9)};
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++) {
    const lists l = lists_of(&shapes[i]);
    fast_case c = depthwise_case(&shapes[i], &l);
    c.attrs[4] = (berth_attr)FAST_INT("over", 1);
    fast_check(&c);
  }
  fast_check(&line);
  fast_check(&uneven);
}

static void conv_last_over(void **state) {
  static const shape shapes[] = {
      {1, 7, 9, 40, 40, 1, 1, 1, 0, 1, true, FAST_PLAIN},   {3, 4, 5, 12, 100, 1, 1, 1, 0, 1, false, FAST_PADDED},
      {1, 20, 40, 70, 70, 1, 1, 1, 0, 1, true, FAST_PLAIN}, {1, 2, 2, 1, 1, 1, 1, 1, 0, 1, true, FAST_PLAIN},
      {2, 9, 1, 300, 300, 1, 1, 1, 0, 1, true, FAST_PLAIN}, {1, 1, 1, 50, 260, 1, 1, 1, 0, 1, true, FAST_PLAIN},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const lists l = lists_of(&shapes[k]);
      fast_case c = conv_case(&shapes[k], &l, isa->panel);
      c.attrs[7] = (berth_attr)FAST_INT("over", 1);
      fast_check_on(&c, isa);
    }
}

/* Tails of calls whose result lies over x. */
static void tails_over(void **state) {
  const shape wide = {1, 9, 8, 20, 20, 1, 1, 1, 0, 1, true, FAST_PLAIN},
              deep = {2, 13, 7, 37, 37, 3, 1, 1, 1, 1, true, FAST_PLAIN};
  const lists of_wide = lists_of(&wide), of_deep = lists_of(&deep);
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    fast_case c = conv_case(&wide, &of_wide, isa->panel);
    c.attrs[7] = (berth_attr)FAST_INT("over", 1);
    check_tails(c, 8, (const int64_t[]){wide.images, wide.height, wide.width, wide.channels}, isa);
    c = depthwise_case(&deep, &of_deep);
    c.attrs[4] = (berth_attr)FAST_INT("over", 1);
    check_tails(c, 5, (const int64_t[]){deep.images, deep.height, deep.width, deep.channels}, isa);
  }
}

static fast_case winograd_case(const shape *s, const lists *l, int64_t tile, int64_t panel) {
  const int64_t values = (tile + 2) * (tile + 2);
  fast_case c = {.op = "conv_winograd",
                 .in = {F32(s->images, s->height, s->width, s->channels),
                        F32(values, (s->outputs + panel - 1) / panel, s->channels, panel)},
                 .attrs = {FAST_INT("channels", s->outputs), FAST_INT("panel", panel), FAST_INT("tile", tile),
                           ints("pads", l->pads, 4)},
                 .absolute = 2e-5 * (double)s->channels};
  if (s->has_bias) c.in[2] = (fast_operand)F32(s->outputs);
  c.in[0].layout = s->layout;
  c.in[0].low = -1;
  c.in[0].high = 1;
  c.in[1].low = -0.05; /* values of kernels at Winograd's points are small */
  c.in[1].high = 0.05;
  return c;
}

static void winograd_of_bounded_extents(void **state) {
  static const shape shapes[] = {{5, 37, 41, 16, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},
                                 {30, 7, 6, 40, 20, 3, 1, 1, 1, 1, true, FAST_PLAIN}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < 2; k++)
      for (uint32_t axis = 0; axis < 3; axis++) {
        const lists l = lists_of(&shapes[k]);
        const fast_case c = winograd_case(&shapes[k], &l, 4, isa->panel);
        fast_check_bounds(&c, 0, axis, 1, isa);
      }
}

static void winograd_shapes(void **state) {
  static const shape shapes[] = {
      {1, 8, 8, 16, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},   {2, 7, 13, 9, 7, 3, 1, 1, 1, 1, false, FAST_PADDED},
      {1, 5, 3, 20, 33, 3, 1, 1, 0, 1, true, FAST_PLAIN},   {1, 1, 1, 3, 5, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {1, 40, 30, 4, 20, 3, 1, 1, 2, 1, true, FAST_PLAIN},  {1, 9, 9, 512, 20, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {1, 6, 6, 33, 300, 3, 1, 1, 1, 1, false, FAST_PLAIN},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++)
      for (int64_t tile = 2; tile <= 4; tile += 2) {
        const lists l = lists_of(&shapes[k]);
        const fast_case c = winograd_case(&shapes[k], &l, tile, isa->panel);
        fast_check_on(&c, isa);
      }
}

static void winograd_tails(void **state) {
  static const shape s = {2, 9, 7, 12, 45, 3, 1, 1, 1, 1, true, FAST_PLAIN};
  const lists l = lists_of(&s);
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (int64_t tile = 2; tile <= 4; tile += 2)
      check_tails(winograd_case(&s, &l, tile, isa->panel), 4, (const int64_t[]){s.images, s.height, s.width, s.outputs},
                  isa);
}

static void winograd_weights(void **state) {
  static const fast_layout layouts[] = {FAST_PLAIN, FAST_PADDED, FAST_REVERSED};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(layouts); k++)
      for (int64_t tile = 2; tile <= 4; tile += 2) {
        fast_case c = {.op = "pack_winograd",
                       .in = {F32(3, 3, 5, 41)},
                       .attrs = {FAST_INT("panel", isa->panel), FAST_INT("tile", tile)},
                       .absolute = 2e-6};
        c.in[0].layout = layouts[k];
        fast_check_on(&c, isa);
        c.in[1] = (fast_operand)F32(41);
        c.absolute *= 3;
        fast_check_on(&c, isa);
      }
}

/* With another tensor of the result's shape added, over which the result may lie. */
static void check_adds(fast_case c, uint32_t attr, const int64_t *out, const berth__cpu_isa *isa) {
  c.attrs[attr] = (berth_attr)FAST_INT("adds", 1);
  c.in[3] = (fast_operand)F32(out[0], out[1], out[2], out[3]);
  c.attrs[attr + 1] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_relu, 0, 0, 0);
  fast_check_on(&c, isa);
  c.attrs[attr + 1] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 1, 0);
  c.in[4] = (fast_operand)F32(out[3]);
  c.absolute *= 3;
  fast_check_on(&c, isa);
}

static void sums(void **state) {
  static const shape shapes[] = {{2, 9, 7, 12, 45, 3, 1, 1, 1, 1, true, FAST_PLAIN},
                                 {1, 8, 8, 16, 8, 3, 1, 1, 1, 1, false, FAST_PLAIN}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const shape *s = &shapes[k];
      const lists l = lists_of(s);
      const int64_t out[] = {s->images, s->height, s->width, s->outputs};
      check_adds(conv_case(s, &l, isa->panel), 7, out, isa);
      check_adds(winograd_case(s, &l, 4, isa->panel), 4, out, isa);
      check_adds(winograd_case(s, &l, 2, isa->panel), 4, out, isa);
    }
}

/* Beside a small x, turned lines are in scratch a few at a time; bias, sum and epilogue are added once all the same. */
static void few_turned_lines_at_a_time(void **state) {
  static const shape small = {1, 20, 20, 6, 16, 8, 4, 1, 0, 1, true, FAST_TURNED};
  static const shape larger = {1, 84, 84, 12, 16, 8, 4, 1, 0, 1, true, FAST_TURNED};
  static const shape same = {1, 9, 24, 12, 40, 7, 1, 1, 3, 1, true, FAST_TURNED};
  const berth__cpu_isa *isa = berth__cpu_isa_at(0);
  const lists l = lists_of(&small), of_same = lists_of(&same);
  const int64_t out[] = {1, 9, 24, 40};
  (void)state;
  fast_case c = conv_case(&small, &l, isa->panel);
  assert_in_range(fast_scratch(&c), 1, (3 << 10) + 64);
  c = conv_case(&larger, &l, isa->panel);
  assert_in_range(fast_scratch(&c), 1, 84 * 84 * 12 * 4 / 64 + 64);
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    check_tails(conv_case(&same, &of_same, isa->panel), 7, out, isa);
    check_adds(conv_case(&same, &of_same, isa->panel), 7, out, isa);
  }
}

/* Rows of zeros are shared and short tables lie on the stack; blocks of Winograd's tiles are no larger than they need
 * to be. */
static void little_scratch(void **state) {
  static const shape small = {1, 16, 16, 16, 32, 3, 1, 1, 1, 1, true, FAST_PLAIN};
  static const shape deep = {1, 28, 40, 128, 128, 3, 1, 1, 1, 1, true, FAST_PLAIN};
  static const shape wide = {1, 128, 128, 16, 16, 3, 1, 1, 1, 1, true, FAST_PLAIN};
  const berth__cpu_isa *isa = berth__cpu_isa_at(0);
  const lists l = lists_of(&small);
  (void)state;
  fast_case c = conv_case(&small, &l, isa->panel);
  assert_int_equal(fast_scratch(&c), 0);
  c = depthwise_case(&(shape){1, 16, 16, 16, 0, 3, 1, 1, 1, 1, true, FAST_PLAIN}, &l);
  assert_int_equal(fast_scratch(&c), 0);
  c = winograd_case(&deep, &l, 4, isa->panel);
  assert_in_range(fast_scratch(&c), 1, 192 << 10);
  c = winograd_case(&wide, &l, 4, isa->panel);
  assert_in_range(fast_scratch(&c), 1, 80 << 10);
}

static void winograd_where_it_pays(void **state) {
  (void)state;
  assert_int_equal(berth__cpu_winograd_tile(64, 64, 56, 56), 4);
  assert_int_equal(berth__cpu_winograd_tile(512, 512, 14, 14), 2); /* weights of 36 values would be too large */
  assert_int_equal(berth__cpu_winograd_tile(64, 64, 1, 1), 0);
  assert_int_equal(berth__cpu_winograd_tile(16, 32, 8, 8), 0); /* a microsecond for 90 KB */
  assert_int_equal(berth__cpu_winograd_tile(16, 32, 80, 80), 4);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(conv_last_shapes),
      cmocka_unit_test(conv_last_of_one_pixel),
      cmocka_unit_test(conv_last_turned),
      cmocka_unit_test(few_turned_lines_at_a_time),
      cmocka_unit_test(conv_last_declines),
      cmocka_unit_test(conv_last_axes),
      cmocka_unit_test(conv_last_tails),
      cmocka_unit_test(depthwise_shapes),
      cmocka_unit_test(depthwise_over),
      cmocka_unit_test(conv_last_over),
      cmocka_unit_test(tails_over),
      cmocka_unit_test(depthwise_axes),
      cmocka_unit_test(convolutions_of_bounded_extents),
      cmocka_unit_test(winograd_of_bounded_extents),
      cmocka_unit_test(little_scratch),
      cmocka_unit_test(depthwise_tails),
      cmocka_unit_test(winograd_shapes),
      cmocka_unit_test(winograd_tails),
      cmocka_unit_test(sums),
      cmocka_unit_test(winograd_where_it_pays),
      cmocka_unit_test(winograd_weights),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
