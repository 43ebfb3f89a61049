/* The fast kernels of transposed convolutions. */
#include "conv_shapes.h"

static fast_case transposed_case(const shape *s, const lists *l, const int64_t *output_pads, int64_t panel) {
  fast_case c = {.op = "conv_transpose_last",
                 .in = {F32(s->images, s->height, s->width, s->channels),
                        F32((s->outputs + panel - 1) / panel, s->kernel * s->kernel * s->channels, panel)},
                 .attrs = {ints("kernel", l->kernel, 2), ints("strides", l->strides, 2), ints("pads", l->pads, 4),
                           ints("dilations", l->dilations, 2), FAST_INT("channels", s->outputs),
                           FAST_INT("panel", panel), ints("output_pads", output_pads, 2)},
                 .absolute = tolerance(s->kernel * s->kernel * s->channels)};
  if (s->has_bias) c.in[2] = (fast_operand)F32(s->outputs);
  c.in[0].layout = s->layout;
  return c;
}

static void transposed_shapes(void **state) {
  static const shape shapes[] = {
      {1, 5, 6, 16, 40, 2, 2, 1, 0, 1, true, FAST_PLAIN},
      {2, 4, 3, 9, 7, 3, 2, 1, 1, 1, false, FAST_PADDED},
      {1, 3, 17, 5, 33, 4, 2, 1, 1, 1, true, FAST_PLAIN},
      {1, 4, 5, 8, 12, 3, 1, 1, 1, 1, true, FAST_PLAIN},
      {1, 4, 4, 6, 10, 3, 2, 2, 2, 1, true, FAST_PLAIN},
      {1, 3, 3, 4, 5, 1, 3, 1, 0, 1, true, FAST_PLAIN},
      {1, 2, 2, 3, 65, 5, 3, 1, 2, 1, false, FAST_PLAIN},
      {1, 40, 60, 4, 8, 2, 2, 1, 0, 1, true, FAST_PLAIN},
      /* more taps on a pixel than are summed at once */
      {1, 4, 6, 5, 20, 5, 1, 1, 0, 1, true, FAST_PLAIN},
      {2, 3, 5, 4, 33, 11, 2, 1, 3, 1, false, FAST_PADDED},
  };
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < COUNT(shapes); k++) {
      const lists l = lists_of(&shapes[k]);
      const fast_case c = transposed_case(&shapes[k], &l, (const int64_t[]){0, 1}, isa->panel);
      fast_check_on(&c, isa);
    }
}

/* Weights whose columns are all pixels of a cell. */
static fast_case joined_case(const shape *s, const lists *l, const int64_t *output_pads, int64_t panel) {
  fast_case c = transposed_case(s, l, output_pads, panel);
  const int64_t reach = (s->kernel + s->stride - 1) / s->stride, columns = s->stride * s->stride * s->outputs;
  c.in[1] = (fast_operand)F32((columns + panel - 1) / panel, reach * reach * s->channels, panel);
  c.attrs[7] = (berth_attr)FAST_INT("joined", 1);
  return c;
}

/* Windows that overlap, touch, and leave gaps; cells that pads cut at both ends; one and several panels. */
static void transposed_joined(void **state) {
  static const shape shapes[] = {
      {1, 5, 31, 24, 1, 2, 2, 1, 0, 1, true, FAST_PLAIN},  {2, 4, 3, 5, 2, 2, 2, 1, 0, 1, false, FAST_PADDED},
      {1, 3, 4, 1, 1, 1, 1, 1, 0, 1, true, FAST_PLAIN},    {2, 7, 7, 32, 1, 3, 2, 1, 1, 1, true, FAST_PLAIN},
      {1, 4, 4, 9, 3, 4, 2, 1, 1, 1, true, FAST_PADDED},   {1, 6, 5, 7, 10, 5, 2, 1, 2, 1, false, FAST_PLAIN},
      {1, 3, 2, 4, 5, 8, 3, 1, 4, 1, true, FAST_PLAIN},    {1, 1, 1, 6, 2, 4, 4, 1, 1, 1, true, FAST_PLAIN},
      {1, 3, 3, 5, 3, 2, 3, 1, 0, 1, true, FAST_PLAIN},    {1, 3, 40, 3, 12, 4, 2, 1, 3, 1, false, FAST_PLAIN},
      {1, 3, 5, 1100, 2, 3, 2, 1, 1, 1, true, FAST_PLAIN}, {1, 5, 5, 4, 2, 8, 1, 1, 5, 1, true, FAST_PLAIN},
  };
  static const int64_t extras[][2] = {{0, 0}, {1, 0}};
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++)
    for (size_t k = 0; k < 2 * COUNT(shapes); k++) {
      const shape *s = &shapes[k / 2];
      const lists l = lists_of(s);
      const int64_t *extra = extras[k % 2], whole = (s->height - 1) * s->stride + s->kernel - 2 * s->pad;
      const fast_case c = joined_case(s, &l, extra, isa->panel);
      const int64_t out[] = {s->images, whole + extra[0], whole + (s->width - s->height) * s->stride, s->outputs};
      fast_check_on(&c, isa);
      check_tails(c, 8, out, isa);
    }
}

/* Too many taps for the kernel's table of rows. */
static void transposed_joined_declines(void **state) {
  static const shape s = {1, 9, 9, 3, 1, 17, 2, 1, 0, 1, false, FAST_PLAIN};
  const lists l = lists_of(&s);
  const fast_case c = joined_case(&s, &l, (const int64_t[]){0, 0}, berth__cpu_isa_at(0)->panel);
  (void)state;
  fast_check_declined(&c);
}

/* One kernel for each channel. */
static void transposed_each(void **state) {
  static const shape shapes[] = {
      {1, 5, 6, 33, 33, 4, 2, 1, 1, 1, true, FAST_PLAIN},     {2, 4, 19, 16, 16, 3, 2, 1, 1, 1, false, FAST_PADDED},
      {1, 3, 4, 7, 7, 2, 3, 1, 0, 1, true, FAST_PLAIN},       {1, 6, 40, 5, 5, 7, 3, 1, 2, 1, true, FAST_PLAIN},
      {1, 4, 5, 40, 40, 3, 1, 1, 1, 1, true, FAST_PLAIN},     {1, 5, 3, 9, 9, 3, 2, 3, 2, 1, true, FAST_PLAIN},
      {1, 2, 3, 1100, 1100, 3, 2, 1, 1, 1, true, FAST_PLAIN}, {1, 1, 1, 3, 3, 4, 4, 1, 1, 1, false, FAST_PLAIN},
  };
  static const int64_t extras[][2] = {{0, 0}, {1, 0}};
  (void)state;
  for (size_t k = 0; k < 2 * COUNT(shapes); k++) {
    const shape *s = &shapes[k / 2];
    const lists l = lists_of(s);
    const int64_t *extra = extras[k % 2], reach = (s->kernel - 1) * s->dilation + 1;
    const int64_t whole = (s->height - 1) * s->stride + reach - 2 * s->pad;
    const int64_t out[] = {s->images, whole + extra[0], whole + (s->width - s->height) * s->stride, s->outputs};
    const berth__cpu_isa *isa;
    fast_case c = transposed_case(s, &l, extra, 1);
    c.in[1] = (fast_operand)F32(s->kernel, s->kernel, s->channels);
    c.attrs[7] = (berth_attr)FAST_INT("each", 1);
    fast_check(&c);
    for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) check_tails(c, 8, out, isa);
  }
}

static void transposed_tails(void **state) {
  static const shape few = {2, 5, 4, 12, 45, 4, 2, 1, 1, 1, true, FAST_PLAIN},
                     many = {1, 6, 5, 9, 40, 5, 1, 1, 0, 1, true, FAST_PLAIN};
  static const int64_t none[] = {0, 0};
  const lists of_few = lists_of(&few), of_many = lists_of(&many);
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    check_tails(transposed_case(&few, &of_few, none, isa->panel), 7, (const int64_t[]){2, 10, 8, 45}, isa);
    check_tails(transposed_case(&many, &of_many, none, isa->panel), 7, (const int64_t[]){1, 10, 9, 40}, isa);
  }
}

static void transposed_lines(void **state) {
  const berth__cpu_isa *isa;
  (void)state;
  for (uint32_t i = 0; (isa = berth__cpu_isa_at(i)) != NULL; i++) {
    fast_case c = {.op = "conv_transpose_last",
                   .in = {F32(2, 30, 7), F32(1, 56, isa->panel)},
                   .attrs = {FAST_INTS("kernel", 8), FAST_INTS("strides", 4), FAST_INTS("pads", 2, 2),
                             FAST_INT("channels", 5), FAST_INT("panel", isa->panel)},
                   .absolute = tolerance(14)};
    fast_check_on(&c, isa);
    c.in[0].layout = FAST_REVERSED;
    fast_check_declined(&c);
  }
}

/* Channels first: groups, three axes, and what else is not channels last. */
static void transposed_channels_first(void **state) {
  static const struct {
    uint32_t rank;
    int64_t x[5], w[5], strides[3], pads[6], dilations[3], extra[3], group;
  } cases[] = {
      {3, {2, 6, 37}, {6, 1, 3}, {2}, {1, 1}, {1}, {1}, 6},
      {3, {1, 4, 50}, {4, 5, 16}, {8}, {4, 4}, {1}, {0}, 1},
      {3, {1, 4, 20}, {4, 3, 4}, {1}, {0, 2}, {3}, {0}, 2},
      {4, {1, 6, 9, 11}, {6, 4, 3, 4}, {2, 3}, {1, 0, 2, 1}, {1, 2}, {0, 1}, 3},
      {4, {2, 3, 5, 7}, {3, 2, 1, 1}, {2, 2}, {0, 0, 0, 0}, {1, 1}, {0, 0}, 1},
      {5, {1, 4, 3, 4, 5}, {4, 2, 2, 3, 4}, {2, 1, 2}, {0, 1, 1, 1, 0, 2}, {1, 1, 1}, {1, 0, 0}, 2},
      {4, {1, 5, 6, 39}, {5, 1, 4, 4}, {2, 2}, {1, 1, 1, 1}, {1, 1}, {0, 1}, 5},
      /* more lines than are added at once */
      {4, {1, 4, 20, 6}, {4, 3, 11, 5}, {1, 2}, {3, 7, 1, 2}, {1, 3}, {0, 0}, 2},
      /* cells that do not overlap */
      {5, {2, 5, 3, 4, 7}, {5, 3, 2, 2, 2}, {2, 2, 2}, {0}, {1, 1, 1}, {0}, 1},
      {5, {1, 9, 4, 3, 8}, {9, 4, 1, 3, 2}, {1, 3, 2}, {0}, {1, 1, 1}, {0}, 1},
      {4, {1, 6, 9, 11}, {6, 5, 3, 2}, {3, 2}, {0}, {1, 1}, {0}, 1},
      {3, {2, 3, 70}, {3, 1, 5}, {5}, {0}, {1}, {0}, 1},
  };
  (void)state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    const uint32_t spatial = cases[i].rank - 2;
    fast_case c = {.op = "conv_transpose", .absolute = 1e-4, .relative = 1e-5};
    for (uint32_t k = 0; k < 2; k++) {
      c.in[k] = (fast_operand){.type = BERTH_F32, .rank = cases[i].rank};
      memcpy(c.in[k].dim, k == 0 ? cases[i].x : cases[i].w, sizeof cases[i].x);
    }
    c.attrs[0] = (berth_attr){.name = "strides", .kind = BERTH_ATTR_INTS, .count = spatial, .ints = cases[i].strides};
    c.attrs[1] = (berth_attr){.name = "pads", .kind = BERTH_ATTR_INTS, .count = 2 * spatial, .ints = cases[i].pads};
    c.attrs[2] =
        (berth_attr){.name = "dilations", .kind = BERTH_ATTR_INTS, .count = spatial, .ints = cases[i].dilations};
    c.attrs[3] =
        (berth_attr){.name = "output_padding", .kind = BERTH_ATTR_INTS, .count = spatial, .ints = cases[i].extra};
    c.attrs[4] = (berth_attr)FAST_INT("group", cases[i].group);
    fast_check(&c);
    c.in[2] = (fast_operand){.type = BERTH_F32, .rank = 1, .dim = {cases[i].w[1] * cases[i].group}};
    fast_check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposed_channels_first), cmocka_unit_test(transposed_shapes),
      cmocka_unit_test(transposed_joined),         cmocka_unit_test(transposed_joined_declines),
      cmocka_unit_test(transposed_each),           cmocka_unit_test(transposed_tails),
      cmocka_unit_test(transposed_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
