/* The fast kernels of pooling. */
#include <math.h>

#include "conv_shapes.h"

static void pools(void **state) {
  static const berth_type others[] = {BERTH_I8, BERTH_U8, BERTH_I16, BERTH_U32, BERTH_I64, BERTH_F64};
  static const shape shapes[] = {
      {1, 12, 13, 20, 0, 3, 2, 1, 1, 1, false, FAST_PLAIN}, {2, 9, 8, 5, 0, 2, 2, 1, 0, 1, false, FAST_PLAIN},
      {1, 9, 9, 33, 0, 5, 1, 1, 2, 1, false, FAST_PLAIN},   {1, 8, 40, 16, 0, 3, 1, 2, 1, 1, false, FAST_PLAIN},
      {1, 7, 7, 18, 0, 7, 1, 1, 0, 1, false, FAST_PLAIN},   {1, 3, 2, 3, 0, 4, 3, 1, 3, 1, false, FAST_PLAIN},
  };
  (void)state;
  for (size_t i = 0; i < COUNT(shapes); i++)
    for (int variant = 0; variant < 16; variant++) {
      const shape *s = &shapes[i];
      const lists l = lists_of(s);
      const bool is_max = variant & 1, is_last = variant & 2;
      fast_case c = {
          .op = is_max ? "max_pool" : "avg_pool",
          .in = {F32(s->images, s->height, s->width, s->channels)},
          .attrs = {ints("kernel", l.kernel, 2), ints("strides", l.strides, 2), ints("pads", l.pads, 4),
                    ints("dilations", l.dilations, 2), FAST_INT("channels_last", is_last),
                    FAST_INT("count_include_pad", (variant & 4) != 0), FAST_INT("ceil_mode", (variant & 8) != 0)},
          .absolute = is_max ? 0 : 2e-6};
      if (!is_last) c.in[0] = (fast_operand)F32(s->images, s->channels, s->height, s->width);
      fast_check(&c);
      for (size_t t = 0; t < COUNT(others) && is_max && !(variant & 4); t++) {
        c.in[0].type = others[t];
        fast_check(&c);
      }
    }
}

static void pools_with_nan(void **state) {
  static const double values[] = {1, -2, (double)NAN, 4, -5, 6, -7, 8, 9, -10, (double)-INFINITY};
  (void)state;
  for (int is_last = 0; is_last < 2; is_last++) {
    fast_case c = {.op = "max_pool",
                   .in = {F32(1, 7, 8, 19)},
                   .attrs = {FAST_INTS("kernel", 3, 2), FAST_INT("channels_last", is_last)}};
    c.in[0].values = values;
    c.in[0].n_values = COUNT(values);
    fast_check(&c);
    c.in[0].type = BERTH_F64;
    fast_check(&c);
  }
}

/* Every rank and type, windows that begin in padding, places counted either way, equals and NaN. */
static void pools_with_places(void **state) {
  static const berth_type types[] = {BERTH_F32, BERTH_I8,  BERTH_U8,  BERTH_I16, BERTH_U16,
                                     BERTH_I32, BERTH_U32, BERTH_I64, BERTH_F64};
  static const double values[] = {1, -2, (double)NAN, 4, 4, 6, -7, 8, 8, -10, (double)-INFINITY};
  static const int64_t strides[] = {1, 2, 3};
  (void)state;
  for (size_t t = 0; t < COUNT(types); t++)
    for (int variant = 0; variant < 12; variant++) {
      const int64_t step = strides[variant % 3];
      fast_case line = {.op = "max_pool",
                        .in = {F32(2, 3, 41)},
                        .attrs = {FAST_INTS("kernel", 3), FAST_INTS("strides", step), FAST_INTS("pads", 1, 2),
                                  FAST_INT("ceil_mode", variant / 6)},
                        .n_out = 2};
      fast_case plane = {
          .op = "max_pool",
          .in = {F32(1, 3, 9, 20)},
          .attrs = {FAST_INTS("kernel", 2, 3), FAST_INTS("strides", 2, step), FAST_INTS("pads", 1, 1, 0, 2),
                    FAST_INTS("dilations", 1, 2), FAST_INT("storage_order", variant / 6)},
          .n_out = 2};
      fast_case room = {.op = "max_pool",
                        .in = {F32(1, 2, 4, 5, 7)},
                        .attrs = {FAST_INTS("kernel", 2, 2, 2), FAST_INTS("strides", 1, 2, step),
                                  FAST_INT("storage_order", variant / 6)},
                        .n_out = 2};
      fast_case *const cases[] = {&line, &plane, &room};
      for (size_t i = 0; i < COUNT(cases); i++) {
        cases[i]->in[0].type = types[t];
        cases[i]->in[0].low = types[t] == BERTH_F32 ? -1 : 0; /* of integers there are equals */
        cases[i]->in[0].high = 9;
        fast_check(cases[i]);
        if (types[t] != BERTH_F32 && types[t] != BERTH_F64) continue;
        cases[i]->in[0].values = values;
        cases[i]->in[0].n_values = COUNT(values);
        fast_check(cases[i]);
      }
    }
}

static void pools_decline(void **state) {
  const fast_case powers = {.op = "lp_pool", .in = {F32(1, 2, 8)}, .attrs = {FAST_INTS("kernel", 3)}};
  (void)state;
  fast_check_declined(&powers);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pools),
      cmocka_unit_test(pools_with_nan),
      cmocka_unit_test(pools_with_places),
      cmocka_unit_test(pools_decline),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
