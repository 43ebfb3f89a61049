/* Kernels that choose among boxes: fast against the reference kernels. */
#include <math.h>

#include "fast.h"

#define SHAPE(kind, ...)                                                                               \
  {                                                                                                    \
    .type = (kind), .rank = sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), .dim = { __VA_ARGS__ } \
  }

/* Boxes in a square of 4 overlap often; few different scores are often equal. */
static void boxes_are_kept_as_by_the_reference(void **state) {
  static const int64_t sizes[][3] = {{1, 1, 1}, {1, 1, 7}, {2, 3, 130}, {1, 5, 1000}};
  static const double few[] = {0.5, 0.25, 0.5, -1, NAN, 0.75, 0.125, 0.5, INFINITY, -INFINITY, 0.3};
  static const double most[] = {0, 1, 5, 100000};
  static const double overlap[] = {0, 0.3, 1}, score[] = {-2, 0.25};
  (void)state;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int how = 0; how < 48; how++) {
      fast_case c = {
          .op = "non_max_suppression",
          .in = {SHAPE(BERTH_F32, sizes[i][0], sizes[i][2], 4), SHAPE(BERTH_F32, sizes[i][0], sizes[i][1], sizes[i][2]),
                 SHAPE(BERTH_I64, 1), SHAPE(BERTH_F32, 1), SHAPE(BERTH_F32, 1)},
          .attrs = {FAST_INT("center", how % 2)}};
      c.in[0].low = how % 2 ? 0.1 : 0;
      c.in[0].high = 4;
      if (how / 2 % 2) c.in[1].values = few, c.in[1].n_values = 11;
      c.in[2].values = &most[how / 4 % 4], c.in[2].n_values = 1;
      c.in[3].values = &overlap[how / 16 % 3], c.in[3].n_values = 1;
      c.in[4].values = &score[how % 2], c.in[4].n_values = 1;
      fast_check(&c);
    }
}

/* Corners the other way round, boxes without an area, and numbers that are none. */
static void odd_boxes(void **state) {
  static const double corners[] = {0, 0, 1, 1, 1, 1, 0, 0.5, NAN, 0, 1, 1, 0.2, 0.2, 0.2, 0.9, 0, -0.0, INFINITY, 2};
  static const double most = 20, overlap = 0.4;
  (void)state;
  for (int center = 0; center < 2; center++)
    fast_check(&(fast_case){.op = "non_max_suppression",
                            .in = {{.type = BERTH_F32, .rank = 3, .dim = {1, 45, 4}, .values = corners, .n_values = 20},
                                   SHAPE(BERTH_F32, 1, 2, 45),
                                   {.type = BERTH_I64, .rank = 1, .dim = {1}, .values = &most, .n_values = 1},
                                   {.type = BERTH_F32, .rank = 1, .dim = {1}, .values = &overlap, .n_values = 1}},
                            .attrs = {FAST_INT("center", center)}});
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(boxes_are_kept_as_by_the_reference), cmocka_unit_test(odd_boxes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
