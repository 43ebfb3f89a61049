/* f16 and bf16, against a slow model that knows nothing of bits: a number is a sign, a fraction and a power of two. */
#include "base/half.h"

#include <math.h>

#include "support.h"

static uint32_t bits_of(float f) {
  uint32_t bits;
  memcpy(&bits, &f, sizeof bits);
  return bits;
}

static float from_bits(uint32_t bits) {
  float f;
  memcpy(&f, &bits, sizeof f);
  return f;
}

/* The value of a 16-bit float with `fraction_bits`, by the definition of the format. */
static double value_of(uint16_t h, int fraction_bits) {
  int exponent_bits = 15 - fraction_bits;
  int exponent = (h & 0x7fff) >> fraction_bits;
  int fraction = h & ((1 << fraction_bits) - 1);
  int bias = (1 << (exponent_bits - 1)) - 1;
  double magnitude;
  if (exponent == (1 << exponent_bits) - 1) {
    magnitude = fraction == 0 ? (double)INFINITY : (double)NAN;
  } else if (exponent == 0) {
    magnitude = ldexp(fraction, 1 - bias - fraction_bits);
  } else {
    magnitude = ldexp(fraction + (1 << fraction_bits), exponent - bias - fraction_bits);
  }
  return h & 0x8000 ? -magnitude : magnitude;
}

static void f16_to_f32_is_right_for_every_half(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    double want = value_of((uint16_t)h, 10);
    float got = berth__f16_to_f32((uint16_t)h);
    if (isnan(want)) {
      assert_true(isnan(got));
    } else {
      assert_int_equal(bits_of(got), bits_of((float)want));
    }
  }
}

static void bf16_to_f32_is_right_for_every_half(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    double want = value_of((uint16_t)h, 7);
    float got = berth__bf16_to_f32((uint16_t)h);
    if (isnan(want)) {
      assert_true(isnan(got));
    } else {
      assert_int_equal(bits_of(got), bits_of((float)want));
    }
  }
}

static void every_half_survives_a_round_trip(void **state) {
  (void)state;
  for (uint32_t h = 0; h <= 0xffff; h++) {
    if (!isnan(value_of((uint16_t)h, 10))) {
      assert_int_equal(berth__f32_to_f16(berth__f16_to_f32((uint16_t)h)), h);
      assert_int_equal(berth__f64_to_f16((double)berth__f16_to_f32((uint16_t)h)), h);
    }
    if (!isnan(value_of((uint16_t)h, 7))) {
      assert_int_equal(berth__f32_to_bf16(berth__bf16_to_f32((uint16_t)h)), h);
      assert_int_equal(berth__f64_to_bf16((double)berth__bf16_to_f32((uint16_t)h)), h);
    }
  }
}

static void a_nan_stays_a_quiet_nan_and_keeps_its_sign(void **state) {
  (void)state;
  for (uint32_t payload = 1; payload < 0x400; payload++) {
    uint16_t f16 = (uint16_t)(0xfc00 | payload);
    assert_int_equal(berth__f32_to_f16(berth__f16_to_f32(f16)), f16 | 0x200);
  }
  for (uint32_t payload = 1; payload < 0x80; payload++) {
    uint16_t bf16 = (uint16_t)(0xff80 | payload);
    assert_int_equal(berth__f32_to_bf16(berth__bf16_to_f32(bf16)), bf16 | 0x40);
  }
  /* A payload in the low bits alone must not turn into infinity. */
  assert_int_equal(berth__f32_to_f16(from_bits(0x7f800001)), 0x7e00);
  assert_int_equal(berth__f32_to_bf16(from_bits(0x7f800001)), 0x7fc0);
  assert_int_equal(berth__f64_to_f16((double)NAN) & 0x7fff, 0x7e00);
  assert_int_equal(berth__f64_to_bf16((double)NAN) & 0x7fff, 0x7fc0);
}

typedef struct narrow_format {
  int fraction_bits;
  uint16_t infinity;
  uint16_t (*from_f32)(float);
  uint16_t (*from_f64)(double);
} narrow_format;

static const narrow_format f16 = {10, 0x7c00, berth__f32_to_f16, berth__f64_to_f16};
static const narrow_format bf16 = {7, 0x7f80, berth__f32_to_bf16, berth__f64_to_bf16};

/* Between every number and the next: just under the middle, the middle, just over it; both signs. The number past the
 * largest is what infinity would be if the exponents went on. */
static void check_neighbours(const narrow_format *format) {
  for (uint16_t low = 0; low < format->infinity; low++) {
    uint16_t high = (uint16_t)(low + 1);
    double a = value_of(low, format->fraction_bits);
    double b = high == format->infinity ? 2 * a - value_of((uint16_t)(low - 1), format->fraction_bits)
                                        : value_of(high, format->fraction_bits);
    double middle = (a + b) / 2;
    uint16_t even = low & 1 ? high : low;
    assert_int_equal(format->from_f64(middle), even);
    assert_int_equal(format->from_f64(-middle), even | 0x8000);
    assert_int_equal(format->from_f64(nextafter(middle, 0)), low);
    assert_int_equal(format->from_f64(nextafter(middle, (double)INFINITY)), high);
    float single = (float)middle; /* exact, but for the smallest bf16, whose middle is under the smallest f32 */
    if ((double)single != middle) continue;
    assert_int_equal(format->from_f32(single), even);
    assert_int_equal(format->from_f32(-single), even | 0x8000);
    assert_int_equal(format->from_f32(nextafterf(single, 0)), low);
    assert_int_equal(format->from_f32(nextafterf(single, INFINITY)), high);
  }
}

static void f16_rounds_to_nearest_even_everywhere(void **state) {
  (void)state;
  check_neighbours(&f16);
}

static void bf16_rounds_to_nearest_even_everywhere(void **state) {
  (void)state;
  check_neighbours(&bf16);
}

static void the_ends_of_the_range_are_right(void **state) {
  (void)state;
  const struct {
    double value;
    uint16_t f16, bf16;
  } rows[] = {
      {0.0, 0x0000, 0x0000},
      {-0.0, 0x8000, 0x8000},
      {1.0, 0x3c00, 0x3f80},
      {65504.0, 0x7bff, 0x4780},
      {65519.99, 0x7bff, 0x4780},
      {65520.0, 0x7c00, 0x4780},
      {-1e9, 0xfc00, 0xce6e},
      {0x1p-24, 0x0001, 0x3380},
      {0x1p-25, 0x0000, 0x3300},
      {0x1.1p-25, 0x0001, 0x3308},
      {0x1p-126, 0x0000, 0x0080},
      {0x1p-133, 0x0000, 0x0001},
      {0x1p-134, 0x0000, 0x0000},
      {1e300, 0x7c00, 0x7f80},
      {-1e-300, 0x8000, 0x8000},
      {0x1p-1074, 0x0000, 0x0000},
      {(double)INFINITY, 0x7c00, 0x7f80},
      {-(double)INFINITY, 0xfc00, 0xff80},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assert_int_equal(berth__f64_to_f16(rows[i].value), rows[i].f16);
    assert_int_equal(berth__f64_to_bf16(rows[i].value), rows[i].bf16);
    if ((double)(float)rows[i].value == rows[i].value) {
      assert_int_equal(berth__f32_to_f16((float)rows[i].value), rows[i].f16);
      assert_int_equal(berth__f32_to_bf16((float)rows[i].value), rows[i].bf16);
    }
  }
}

static void f64_rounds_once(void **state) {
  (void)state;
  /* A hair over the middle of 1 and the next f16: through f32 the hair is lost, and the tie goes to 1. */
  double x = 1.0 + 0x1p-11 + 0x1p-40;
  assert_int_equal(berth__f64_to_f16(x), 0x3c01);
  assert_int_equal(berth__f32_to_f16((float)x), 0x3c00);
  double y = 1.0 + 0x1p-8 + 0x1p-40;
  assert_int_equal(berth__f64_to_bf16(y), 0x3f81);
  assert_int_equal(berth__f32_to_bf16((float)y), 0x3f80);
}

#ifdef __FLT16_MANT_DIG__ /* an outside witness, where the compiler is one */
__extension__ typedef _Float16 compiler_half;

static uint16_t compiler_f16(float f) {
  compiler_half h = (compiler_half)f;
  uint16_t bits;
  memcpy(&bits, &h, sizeof bits);
  return bits;
}

static void the_compilers_own_f16_agrees(void **state) {
  (void)state;
  for (uint64_t step = 0; step <= UINT32_MAX; step += 4999) { /* a prime: every pattern of low bits comes up */
    float f = from_bits((uint32_t)step);
    if (!isnan(f)) assert_int_equal(berth__f32_to_f16(f), compiler_f16(f));
  }
}
#endif

static void integers_round_to_even_and_saturate(void **state) {
  (void)state;
  const float src[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 300.0f, -300.0f, 1e30f, -1e30f, NAN, INFINITY, -INFINITY};
  enum {
    N = sizeof src / sizeof *src
  };
  const int8_t want_i8[N] = {0, 2, 2, 0, -2, 127, -128, 127, -128, 0, 127, -128};
  const uint8_t want_u8[N] = {0, 2, 2, 0, 0, 255, 0, 255, 0, 0, 255, 0};
  const int16_t want_i16[N] = {0, 2, 2, 0, -2, 300, -300, INT16_MAX, INT16_MIN, 0, INT16_MAX, INT16_MIN};
  const int32_t want_i32[N] = {0, 2, 2, 0, -2, 300, -300, INT32_MAX, INT32_MIN, 0, INT32_MAX, INT32_MIN};
  const int64_t want_i64[N] = {0, 2, 2, 0, -2, 300, -300, INT64_MAX, INT64_MIN, 0, INT64_MAX, INT64_MIN};
  const uint32_t want_u32[N] = {0, 2, 2, 0, 0, 300, 0, UINT32_MAX, 0, 0, UINT32_MAX, 0};
  const uint8_t want_bool[N] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
  const struct {
    berth_type type;
    const void *want;
  } rows[] = {{BERTH_I8, want_i8},   {BERTH_U8, want_u8},   {BERTH_I16, want_i16},  {BERTH_I32, want_i32},
              {BERTH_I64, want_i64}, {BERTH_U32, want_u32}, {BERTH_BOOL, want_bool}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    int64_t got[N];
    berth__convert_from_f32(rows[i].type, got, src, N);
    assert_memory_equal(got, rows[i].want, N * berth_type_size(rows[i].type));
  }
}

static void the_edges_of_integers_are_exact(void **state) {
  (void)state;
  const float src[] = {2147483520.0f, 2147483648.0f, -2147483648.0f, 4294967040.0f, 9223371487098961920.0f};
  int64_t i64[5];
  int32_t i32[5];
  uint32_t u32[5];
  berth__convert_from_f32(BERTH_I64, i64, src, 5);
  berth__convert_from_f32(BERTH_I32, i32, src, 5);
  berth__convert_from_f32(BERTH_U32, u32, src, 5);
  assert_true(i32[0] == 2147483520 && i32[1] == INT32_MAX && i32[2] == INT32_MIN);
  assert_true(u32[1] == UINT32_C(2147483648) && u32[3] == UINT32_C(4294967040) && u32[4] == UINT32_MAX);
  assert_true(i64[3] == INT64_C(4294967040) && i64[4] == INT64_C(9223371487098961920));
}

static void small_integers_survive_every_type(void **state) {
  (void)state;
  const float src[] = {0, 1, 2, 3, 64, 100, 127};
  enum {
    N = sizeof src / sizeof *src
  };
#define CHECK_TYPE(name, value, text, bytes)                                             \
  {                                                                                      \
    double middle[N];                                                                    \
    float back[N];                                                                       \
    berth__convert_from_f32(BERTH_##name, middle, src, N);                               \
    berth__convert_to_f32(BERTH_##name, back, middle, N);                                \
    for (int i = 0; i < N; i++) {                                                        \
      float want = BERTH_##name == BERTH_BOOL ? (src[i] != 0.0f ? 1.0f : 0.0f) : src[i]; \
      assert_int_equal(bits_of(back[i]), bits_of(want));                                 \
    }                                                                                    \
  }
  BERTH_TYPE_MAP(CHECK_TYPE)
#undef CHECK_TYPE
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(f16_to_f32_is_right_for_every_half),
      cmocka_unit_test(bf16_to_f32_is_right_for_every_half),
      cmocka_unit_test(every_half_survives_a_round_trip),
      cmocka_unit_test(a_nan_stays_a_quiet_nan_and_keeps_its_sign),
      cmocka_unit_test(f16_rounds_to_nearest_even_everywhere),
      cmocka_unit_test(bf16_rounds_to_nearest_even_everywhere),
      cmocka_unit_test(the_ends_of_the_range_are_right),
      cmocka_unit_test(f64_rounds_once),
#ifdef __FLT16_MANT_DIG__
      cmocka_unit_test(the_compilers_own_f16_agrees),
#endif
      cmocka_unit_test(integers_round_to_even_and_saturate),
      cmocka_unit_test(the_edges_of_integers_are_exact),
      cmocka_unit_test(small_integers_survive_every_type),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
