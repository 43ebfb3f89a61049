/* grid_sample and roi_align, to the last bit, and deform_conv: fast kernels against the reference kernels. */
#include <math.h>

#include "fast.h"

static const berth_type types[] = {BERTH_F32, BERTH_F16, BERTH_BF16, BERTH_F64};

/* Points inside, outside and on the edges, and some that are no numbers. */
static void points_of_every_kind(void **state) {
  static const char *const modes[] = {"linear", "nearest", "cubic"}, *const paddings[] = {"zeros", "border",
                                                                                          "reflection"};
  static const double odd[] = {0.1, -0.3, 1, -1, NAN, 0.5, INFINITY, -0.9, 1.2, -1e30, 0.999, 7};
  static const double endless[] = {1, INFINITY, 2, NAN, -3, 0.5, -INFINITY};
  static const struct {
    uint32_t rank;
    int64_t x[5], grid[5];
  } shapes[] = {{4, {2, 3, 9, 11}, {2, 13, 17, 2}},
                {4, {1, 1, 1, 1}, {1, 70, 2, 2}},
                {5, {1, 5, 4, 5, 6}, {1, 3, 9, 7, 3}},
                {3, {2, 4, 40}, {2, 131, 1}}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (size_t mode = 0; mode < 3; mode++)
      for (size_t padding = 0; padding < 3; padding++)
        for (int64_t align = 0; align < 2; align++)
          for (size_t t = 0; t < 4; t++) {
            fast_case c = {.op = "grid_sample",
                           .in = {{.type = types[t], .rank = shapes[i].rank},
                                  {.type = BERTH_F32, .rank = shapes[i].rank, .low = -1.3, .high = 1.3}},
                           .attrs = {FAST_STRING("mode", modes[mode]), FAST_STRING("padding", paddings[padding]),
                                     FAST_INT("align_corners", align)}};
            memcpy(c.in[0].dim, shapes[i].x, sizeof shapes[i].x);
            memcpy(c.in[1].dim, shapes[i].grid, sizeof shapes[i].grid);
            fast_check(&c);
            c.in[1].values = odd;
            c.in[1].n_values = 12;
            c.in[0].values = endless;
            c.in[0].n_values = 7;
            fast_check(&c);
          }
}

/* Regions inside, across the edges and outside, of no size, and of so many samples that the reference kernel has them.
 */
static void regions_of_every_kind(void **state) {
  static const double corners[] = {1,  2,  9,   8,   0,   0,    19,   14,  -5,  -6,  3,   2,  17, 13,
                                   30, 40, 50,  60,  70,  80,   4,    4,   4,   4,   9,   9,  5,  5,
                                   0,  0,  400, 300, 2.5, 1.25, 7.75, 3.5, -60, -60, -50, -50};
  static const double images[] = {0, 1, 1, 0, 1, 0, 0, 1, 0, 1};
  static const char *const modes[] = {"avg", "max"};
  (void)state;
  for (size_t t = 0; t < 3; t++)
    for (size_t mode = 0; mode < 2; mode++)
      for (int64_t ratio = 0; ratio < 4; ratio++)
        for (int64_t half = 0; half < 2; half++)
          fast_check(&(fast_case){
              .op = "roi_align",
              .in = {{.type = types[t], .rank = 4, .dim = {2, 5, 15, 20}},
                     {.type = types[t], .rank = 2, .dim = {10, 4}, .values = corners, .n_values = 40},
                     {.type = BERTH_I64, .rank = 1, .dim = {10}, .values = images, .n_values = 10}},
              .attrs = {FAST_STRING("mode", modes[mode]), FAST_INT("output_height", 3), FAST_INT("output_width", 4),
                        FAST_INT("sampling_ratio", ratio), FAST_INT("half_pixel", half),
                        FAST_FLOAT("spatial_scale", ratio == 1 ? 0.25 : 1)}});
}

/* Taps that stay inside, leave the image or are moved nowhere; groups of both kinds; a mask, and a bias. */
static void taps_that_move(void **state) {
  static const double odd[] = {0.25, -0.75, 2.5, -40, 0, NAN, 1, 60, INFINITY, -1.125, 3};
  static const struct {
    int64_t x[4], weight[4], stride, pad, dilation, group, offset_group;
  } shapes[] = {{{2, 6, 9, 11}, {5, 6, 3, 3}, 1, 1, 1, 1, 1},
                {{1, 4, 20, 70}, {8, 2, 3, 3}, 2, 1, 1, 2, 2},
                {{1, 3, 7, 40}, {1, 3, 1, 1}, 1, 0, 1, 1, 3},
                {{1, 8, 13, 37}, {12, 4, 3, 2}, 1, 2, 2, 2, 4},
                {{1, 2, 5, 33}, {7, 2, 2, 3}, 1, 0, 1, 1, 1}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
    for (int way = 0; way < 8; way++) {
      const int64_t *x = shapes[i].x, *k = shapes[i].weight + 2;
      int64_t offset[4] = {x[0], 2 * shapes[i].offset_group * k[0] * k[1], 0, 0};
      for (int axis = 0; axis < 2; axis++)
        offset[2 + axis] =
            (x[2 + axis] + 2 * shapes[i].pad - (k[axis] - 1) * shapes[i].dilation - 1) / shapes[i].stride + 1;
      fast_case c = {
          .op = "deform_conv",
          .in = {{.type = BERTH_F32, .rank = 4}, {.type = BERTH_F32, .rank = 4}, {.type = BERTH_F32, .rank = 4}},
          .attrs = {FAST_INTS("strides", shapes[i].stride, shapes[i].stride),
                    FAST_INTS("pads", shapes[i].pad, shapes[i].pad, shapes[i].pad, shapes[i].pad),
                    FAST_INTS("dilations", shapes[i].dilation, shapes[i].dilation), FAST_INT("group", shapes[i].group),
                    FAST_INT("offset_group", shapes[i].offset_group)},
          .absolute = 2e-4,
          .relative = 1e-5};
      memcpy(c.in[0].dim, shapes[i].x, sizeof shapes[i].x);
      memcpy(c.in[1].dim, shapes[i].weight, sizeof shapes[i].weight);
      memcpy(c.in[2].dim, offset, sizeof offset);
      if (way & 1) c.in[3] = (fast_operand){.type = BERTH_F32, .rank = 1, .dim = {shapes[i].weight[0]}};
      if (way & 2) {
        c.in[4] = c.in[2];
        c.in[4].dim[1] /= 2;
      }
      if (way & 4) {
        c.in[2].values = odd;
        c.in[2].n_values = 11;
      }
      fast_check(&c);
    }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(points_of_every_kind),
      cmocka_unit_test(regions_of_every_kind),
      cmocka_unit_test(taps_that_move),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
