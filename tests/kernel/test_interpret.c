/* The interpreter: what instructions give, threads that go different ways, and mistakes that a device would not tell.
 */
#include <math.h>

#include "base/half.h"
#include "run.h"

enum {
  THREADS = 8,
  GROUPS = 37 /* more than run together, and no multiple of that */
};

/* One instruction over numbers that the builder does not know. */
static void compute(berth__inst_code code, berth__storage storage, berth__number result, const berth__lane *a,
                    const berth__lane *b, berth__lane *out, uint32_t n) {
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "one", n, 1);
  uint32_t in[2] = {berth__kernel_buffer_of(k, 0, storage), berth__kernel_buffer_of(k, 1, storage)};
  berth__storage kept = result == BERTH__NUM_F32 ? BERTH_F32 : BERTH_I32;
  uint32_t to = berth__kernel_buffer_of(k, 2, kept);
  berth__x index = flat_index(k), x = berth__x_load(k, in[0], index), y = berth__x_load(k, in[1], index), z;
  if (code == BERTH__INST_convert) {
    z = berth__x_convert(k, result, x);
  } else {
    z = berth__inst_operands(code) == 1 ? berth__x1(k, code, x) : berth__x2(k, code, x, y);
  }
  berth__x_store(k, to, index, berth__x_convert(k, kept == BERTH_F32 ? BERTH__NUM_F32 : BERTH__NUM_I32, z));
  TEST_OK(berth__kernel_finish(k, &err));
  berth__lane from[2][THREADS];
  memcpy(from[0], a, n * sizeof *a);
  memcpy(from[1], b, n * sizeof *b);
  uint32_t *words[] = {&from[0][0].u, &from[1][0].u, &out[0].u};
  TEST_OK(run_kernel(k, words, (uint64_t[]){n, n, n}, &err));
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

static void assert_i32(berth__inst_code code, const int32_t *a, const int32_t *b, const int32_t *want) {
  berth__lane x[4], y[4], out[4];
  for (int i = 0; i < 4; ++i) x[i].i = a[i], y[i].i = b[i];
  compute(code, BERTH_I32, BERTH__NUM_I32, x, y, out, 4);
  for (int i = 0; i < 4; ++i) {
    if (out[i].i != want[i]) fail_msg("%s(%d, %d) is %d", berth__inst_name(code), a[i], b[i], out[i].i);
  }
}

#define FOUR(...) ((const int32_t[4]){__VA_ARGS__})

static void integers_wrap_and_division_is_total(void **state) {
  (void)state;
  const int32_t least = INT32_MIN, most = INT32_MAX;
  assert_i32(BERTH__INST_add, FOUR(most, 1, -1, 5), FOUR(1, 2, -1, -7), FOUR(least, 3, -2, -2));
  assert_i32(BERTH__INST_mul, FOUR(most, 3, -4, 65536), FOUR(2, 5, 6, 65536), FOUR(-2, 15, -24, 0));
  assert_i32(BERTH__INST_div, FOUR(least, 7, -7, 9), FOUR(-1, 2, 2, 0), FOUR(least, 3, -3, 0));
  assert_i32(BERTH__INST_div, FOUR(most, least, least, 1), FOUR(1, 1, 3, least), FOUR(most, least, -715827882, 0));
  assert_i32(BERTH__INST_rem, FOUR(least, 7, -7, 9), FOUR(-1, 2, 4, 0), FOUR(0, 1, -3, 0));
  assert_i32(BERTH__INST_shr, FOUR(-8, 8, least, -1), FOUR(1, 1, 31, 4), FOUR(-4, 4, -1, -1));
  assert_i32(BERTH__INST_abs, FOUR(-8, 8, least, 0), FOUR(0, 0, 0, 0), FOUR(8, 8, least, 0));
  assert_i32(BERTH__INST_lt, FOUR(-1, 0, least, 4), FOUR(0, -1, most, 4), FOUR(1, 0, 1, 0));
  assert_i32(BERTH__INST_le, FOUR(-1, 0, most, 4), FOUR(0, -1, least, 4), FOUR(1, 0, 0, 1));
}

static void u32_has_no_sign(void **state) {
  (void)state;
  berth__lane a[2] = {{.u = 0x80000000u}, {.u = 5}}, b[2] = {{.u = 3}, {.u = 0}}, out[2];
  compute(BERTH__INST_div, BERTH_U32, BERTH__NUM_U32, a, b, out, 2);
  assert_true(out[0].u == 0x80000000u / 3 && out[1].u == 0);
  compute(BERTH__INST_shr, BERTH_U32, BERTH__NUM_U32, a, b, out, 2);
  assert_true(out[0].u == 0x10000000u && out[1].u == 5);
  compute(BERTH__INST_lt, BERTH_U32, BERTH__NUM_BOOL, a, b, out, 2);
  assert_true(out[0].u == 0 && out[1].u == 0);
}

static void numbers_convert_towards_zero(void **state) {
  (void)state;
  const berth__lane a[4] = {{.f = -2.9f}, {.f = 2.9f}, {.f = NAN}, {.f = 1e30f}}, b[4] = {{.u = 0}};
  berth__lane out[4];
  compute(BERTH__INST_convert, BERTH_F32, BERTH__NUM_I32, a, b, out, 4);
  assert_true(out[0].i == -2 && out[1].i == 2);
  compute(BERTH__INST_convert, BERTH_F32, BERTH__NUM_BOOL, a, b, out, 4);
  assert_true(out[0].u == 1 && out[2].u == 1);
}

static void bytes_become_numbers(void **state) {
  (void)state;
  const berth__lane bits = {.u = 0x80ff017fu};
  const float want[2][4] = {{127, 1, 255, 128}, {127, 1, -1, -128}};
  for (uint32_t is_signed = 0; is_signed < 2; is_signed++) {
    berth_error err;
    berth_context *ctx = test_context();
    berth__kernel *k = kernel_of(ctx, "bytes", 1, 1);
    const uint32_t in = berth__kernel_buffer_of(k, 0, is_signed ? BERTH_I32 : BERTH_U32),
                   to = berth__kernel_buffer_of(k, 1, BERTH_F32);
    const berth__x x = berth__x_load(k, in, flat_index(k));
    for (uint32_t i = 0; i < 4; i++) berth__x_store(k, to, berth__x_i32(k, i), berth__x_byte(k, x, i));
    const berth__x known = is_signed ? berth__x_i32(k, bits.i) : berth__x_u32(k, bits.u);
    for (uint32_t i = 0; i < 4; i++) assert_true(berth__x_byte(k, known, i) == berth__x_f32(k, want[is_signed][i]));
    TEST_OK(berth__kernel_finish(k, &err));
    berth__lane from = bits, out[4];
    TEST_OK(run_kernel(k, (uint32_t *[]){&from.u, &out[0].u}, (uint64_t[]){1, 4}, &err));
    for (uint32_t i = 0; i < 4; i++) assert_true(out[i].f == want[is_signed][i]);
    berth__kernel_destroy(k);
    berth_context_destroy(ctx);
  }
}

static void comparisons_with_nan_are_false_but_one(void **state) {
  (void)state;
  const berth__lane a[2] = {{.f = NAN}, {.f = 1}}, b[2] = {{.f = 1}, {.f = 1}};
  berth__lane out[2];
  const berth__inst_code codes[] = {BERTH__INST_eq, BERTH__INST_ne, BERTH__INST_lt, BERTH__INST_le};
  const uint32_t want[][2] = {{0, 1}, {1, 0}, {0, 0}, {0, 1}};
  for (int i = 0; i < 4; ++i) {
    compute(codes[i], BERTH_F32, BERTH__NUM_BOOL, a, b, out, 2);
    assert_true(out[0].u == want[i][0] && out[1].u == want[i][1]);
  }
}

/* ---- Blocks ---- */

/* Thread t adds 1 in each of t rounds, leaves at the fifth, and adds 100 where its round is even. */
static void threads_go_round_as_often_as_each_says(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "rounds", THREADS, 3);
  uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
  berth__x sum = berth__x_variable(k, berth__x_i32(k, 0)), thread = berth__x_thread(k);
  berth__x i = berth__x_loop(k, berth__x_i32(k, 0), thread, 1);
  berth__x_if(k, berth__x_eq(k, i, berth__x_i32(k, 5)));
  berth__x_break(k);
  berth__x_end(k);
  berth__x_if(k, berth__x_eq(k, berth__x_rem(k, i, berth__x_i32(k, 2)), berth__x_i32(k, 0)));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_i32(k, 100)));
  berth__x_else(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_i32(k, 1000)));
  berth__x_end(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_i32(k, 1)));
  berth__x_end(k);
  berth__x_store(k, out, flat_index(k), berth__x_get(k, sum));
  uint32_t words[3 * THREADS];
  finish_and_run(k, words, 3 * THREADS);
  for (uint32_t j = 0; j < 3 * THREADS; ++j) {
    uint32_t rounds = j % THREADS < 5 ? j % THREADS : 5;
    assert_int_equal(words[j], rounds + 100 * ((rounds + 1) / 2) + 1000 * (rounds / 2));
  }
  berth_context_destroy(ctx);
}

/* A break leaves one loop of two, from inside two ifs. */
static void a_break_leaves_the_innermost_loop(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "break", THREADS, 1);
  uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
  berth__x sum = berth__x_variable(k, berth__x_i32(k, 0)), thread = berth__x_thread(k);
  berth__x_loop_n(k, 3);
  berth__x j = berth__x_loop(k, berth__x_i32(k, 0), berth__x_i32(k, 20), 2);
  berth__x_if(k, berth__x_lt(k, berth__x_i32(k, 3), j));
  berth__x_if(k, berth__x_le(k, thread, j));
  berth__x_break(k);
  berth__x_else(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_i32(k, 10)));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), berth__x_i32(k, 1)));
  berth__x_end(k);
  berth__x_end(k);
  berth__x_store(k, out, flat_index(k), berth__x_get(k, sum));
  uint32_t words[THREADS];
  finish_and_run(k, words, THREADS);
  for (uint32_t t = 0; t < THREADS; ++t) {
    uint32_t want = 0;
    for (uint32_t at = 0; at < 20 && !(at > 3 && t <= at); at += 2) want += at > 3 ? 11 : 1;
    assert_int_equal(words[t], 3 * want);
  }
  berth_context_destroy(ctx);
}

/* ---- Memory ---- */

/* Sums over a workgroup, by halves. With `careless`, without the barriers. */
static berth__kernel *sum_by_halves(berth_context *ctx, bool careless) {
  berth_error err;
  berth__kernel *k = kernel_of(ctx, "halves", THREADS, GROUPS);
  uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  uint32_t shared = berth__kernel_shared(k, BERTH__NUM_F32, THREADS);
  berth__x thread = berth__x_thread(k);
  berth__x_shared_store(k, shared, thread, berth__x_load(k, in, flat_index(k)));
  if (!careless) berth__x_barrier(k);
  for (int64_t half = THREADS / 2; half > 0; half /= 2) {
    berth__x_if(k, berth__x_lt(k, thread, berth__x_i32(k, half)));
    berth__x other = berth__x_shared_load(k, shared, berth__x_affine(k, thread, 1, half));
    berth__x_shared_store(k, shared, thread, berth__x_add(k, berth__x_shared_load(k, shared, thread), other));
    berth__x_end(k);
    if (!careless) berth__x_barrier(k);
  }
  berth__x_if(k, berth__x_eq(k, thread, berth__x_i32(k, 0)));
  berth__x_store(k, out, berth__x_group(k), berth__x_shared_load(k, shared, thread));
  berth__x_end(k);
  TEST_OK(berth__kernel_finish(k, &err));
  return k;
}

static void a_workgroup_shares_arrays(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__lane in[GROUPS * THREADS], out[GROUPS];
  for (int i = 0; i < GROUPS * THREADS; ++i) in[i].f = (float)i;
  berth__kernel *k = sum_by_halves(ctx, false);
  TEST_OK(run_kernel(k, (uint32_t *[]){&in[0].u, &out[0].u}, (uint64_t[]){GROUPS * THREADS, GROUPS}, &err));
  for (int g = 0; g < GROUPS; ++g) assert_true(out[g].f == (float)(THREADS * THREADS * g + 28));
  berth__kernel_destroy(k);
  k = sum_by_halves(ctx, true);
  berth_status status =
      run_kernel(k, (uint32_t *[]){&in[0].u, &out[0].u}, (uint64_t[]){GROUPS * THREADS, GROUPS}, &err);
  test_expect_error(status, BERTH_INTERNAL, &err, "no barrier between them");
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* Sums and positions of the largest, over four threads each, by exchange; and the same expanded. */
static void threads_exchange_what_they_have(void **state) {
  (void)state;
  for (int expanded = 0; expanded < 2; ++expanded) {
    berth_error err;
    berth_context *ctx = test_context();
    berth__kernel *k = kernel_of(ctx, "exchange", THREADS, GROUPS);
    const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32),
                   which = berth__kernel_buffer_of(k, 2, BERTH_I32);
    const berth__x own = berth__x_load(k, in, flat_index(k));
    berth__x sum = own, most = own, at = berth__x_thread(k);
    for (uint32_t distance = 1; distance < 4; distance *= 2) {
      sum = berth__x_add(k, sum, berth__x_exchange(k, sum, distance));
      const berth__x other = berth__x_exchange(k, most, distance), there = berth__x_exchange(k, at, distance);
      at = berth__x_select(k, berth__x_lt(k, most, other), there, at);
      most = berth__x_max(k, most, other);
    }
    berth__x_store(k, out, flat_index(k), sum);
    berth__x_store(k, which, flat_index(k), at);
    TEST_OK(berth__kernel_finish(k, &err));
    if (expanded) TEST_OK(berth__kernel_expand(&k, &err));
    assert_int_equal(count_of(k, BERTH__INST_exchange) == 0, expanded);
    berth__lane from[GROUPS * THREADS], sums[GROUPS * THREADS], places[GROUPS * THREADS];
    for (int i = 0; i < GROUPS * THREADS; ++i) from[i].f = (float)(i * 37 % 101);
    const uint64_t n = GROUPS * THREADS;
    TEST_OK(run_kernel(k, (uint32_t *[]){&from[0].u, &sums[0].u, &places[0].u}, (uint64_t[]){n, n, n}, &err));
    for (int i = 0; i < GROUPS * THREADS; ++i) {
      const int first = i - i % 4;
      int best = first;
      for (int j = first; j < first + 4; ++j) best = from[j].f > from[best].f ? j : best;
      assert_true(sums[i].f == from[first].f + from[first + 1].f + from[first + 2].f + from[first + 3].f);
      assert_int_equal(places[i].i, best % THREADS);
    }
    berth__kernel_destroy(k);
    berth_context_destroy(ctx);
  }
}

static void every_thread_has_arrays_of_its_own(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "local", THREADS, 1);
  uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
  berth__kernel_local(k, BERTH__NUM_F32, 3);
  uint32_t local = berth__kernel_local(k, BERTH__NUM_I32, 5);
  berth__x thread = berth__x_thread(k), i = berth__x_loop_n(k, 5);
  berth__x_local_store(k, local, i, berth__x_add(k, berth__x_mul(k, i, i), thread));
  berth__x_end(k);
  berth__x_store(k, out, thread, berth__x_local_load(k, local, berth__x_rem(k, thread, berth__x_i32(k, 5))));
  uint32_t words[THREADS];
  finish_and_run(k, words, THREADS);
  for (uint32_t t = 0; t < THREADS; ++t) assert_int_equal(words[t], (t % 5) * (t % 5) + t);
  berth_context_destroy(ctx);
}

static void halves_lie_two_to_a_word(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "f16", THREADS, 1);
  uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F16), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  berth__x thread = berth__x_thread(k);
  berth__x_store(k, out, thread, berth__x_load(k, in, thread));
  TEST_OK(berth__kernel_finish(k, &err));
  uint32_t halves[THREADS / 2] = {0};
  berth__lane words[THREADS];
  for (uint32_t i = 0; i < THREADS; ++i)
    halves[i / 2] |= (uint32_t)berth__f32_to_f16((float)i + 0.5f) << (16 * (i % 2));
  TEST_OK(run_kernel(k, (uint32_t *[]){halves, &words[0].u}, (uint64_t[]){THREADS, THREADS}, &err));
  for (uint32_t i = 0; i < THREADS; ++i) assert_true(words[i].f == (float)i + 0.5f);
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* Elements that share words are stored one by one, and their neighbours stay. */
static void narrow_elements_keep_to_themselves(void **state) {
  static const struct {
    berth__storage storage;
    uint32_t stored[4]; /* by threads 0 to 3, into elements 1, 3, 5, 7 */
    uint32_t words[4], n;
    uint32_t loaded[4];
  } rows[] = {
      {BERTH_U8, {1, 256 + 2, 255, 0}, {0x02bb01bb, 0x00bbffbb}, 2, {1, 2, 255, 0}},
      {BERTH_BOOL, {1, 0, 1, 0}, {0x00bb01bb, 0x00bb01bb}, 2, {1, 0, 1, 0}},
      {BERTH_I8, {5, (uint32_t)-128, 127, (uint32_t)-1}, {0x80bb05bb, 0xffbb7fbb}, 2, {5, (uint32_t)-128, 127, ~0u}},
      {BERTH_U16, {7, 65536 + 9, 65535, 0}, {0x0007bbbb, 0x0009bbbb, 0xffffbbbb, 0x0000bbbb}, 4, {7, 9, 65535, 0}},
      {BERTH_I16,
       {7, ~0u, 32767, 32768},
       {0x0007bbbb, 0xffffbbbb, 0x7fffbbbb, 0x8000bbbb},
       4,
       {7, ~0u, 32767, ~0u << 15}},
      {BERTH_F16, /* 1, 65520 becomes infinity, 2^-25 rounds to 0, 3 * 2^-25 to 2^-23 */
       {0x3f800000, 0x477ff000, 0x33000000, 0x33c00000},
       {0x3c00bbbb, 0x7c00bbbb, 0x0000bbbb, 0x0002bbbb},
       4,
       {0x3f800000, 0x7f800000, 0, 0x34000000}},
      {BERTH_BF16, /* 1, ties to even down and up, a NaN */
       {0x3f800000, 0x3f808000, 0x3f818000, 0x7f800001},
       {0x3f80bbbb, 0x3f80bbbb, 0x3f82bbbb, 0x7fc0bbbb},
       4,
       {0x3f800000, 0x3f800000, 0x3f820000, 0x7fc00000}},
  };
  berth_context *ctx = test_context();
  (void)state;
  for (size_t r = 0; r < sizeof rows / sizeof rows[0]; r++) {
    berth_error err;
    berth__kernel *k = kernel_of(ctx, "narrow", 4, 1);
    const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_U32), out = berth__kernel_buffer_of(k, 1, rows[r].storage),
                   back = berth__kernel_buffer_of(k, 2, BERTH_U32);
    const berth__x thread = berth__x_thread(k), at = berth__x_affine(k, thread, 2, 1);
    berth__x_store(k, out, at, berth__x_bits(k, berth__storage_number(rows[r].storage), berth__x_load(k, in, thread)));
    berth__x_store(k, back, thread, berth__x_bits(k, BERTH__NUM_U32, berth__x_load(k, out, at)));
    TEST_OK(berth__kernel_finish(k, &err));
    uint32_t stored[4], words[4], loaded[4];
    memcpy(stored, rows[r].stored, sizeof stored);
    memset(words, 0xbb, sizeof words);
    TEST_OK(run_kernel(k, (uint32_t *[]){stored, words, loaded}, (uint64_t[]){4, 8, 4}, &err));
    assert_memory_equal(words, rows[r].words, rows[r].n * sizeof(uint32_t));
    assert_memory_equal(loaded, rows[r].loaded, sizeof loaded);
    test_expect_error(run_kernel(k, (uint32_t *[]){stored, words, loaded}, (uint64_t[]){4, 7, 4}, &err), BERTH_INTERNAL,
                      &err, "thread 3 of workgroup 0 goes to element 7 of buffer 1, which has 7 elements");
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

/* Threads of all workgroups: the largest stays, whatever came before or after it. */
static void the_largest_of_all_threads_stays(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "largest", THREADS, GROUPS);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_U32), out = berth__kernel_buffer_of(k, 1, BERTH_U32);
  const berth__x index = flat_index(k);
  berth__x_store_max(k, out, berth__x_rem(k, index, berth__x_i32(k, 3)), berth__x_load(k, in, index));
  TEST_OK(berth__kernel_finish(k, &err));
  uint32_t given[THREADS * GROUPS], words[3] = {0, 0, UINT32_MAX}, want[3] = {0, 0, UINT32_MAX};
  for (uint32_t i = 0; i < THREADS * GROUPS; ++i) {
    given[i] = i * 2654435761u;
    if (given[i] > want[i % 3]) want[i % 3] = given[i];
  }
  TEST_OK(run_kernel(k, (uint32_t *[]){given, words}, (uint64_t[]){THREADS * GROUPS, 3}, &err));
  assert_memory_equal(words, want, sizeof words);
  test_expect_error(run_kernel(k, (uint32_t *[]){given, words}, (uint64_t[]){THREADS * GROUPS, 2}, &err),
                    BERTH_INTERNAL, &err, "element 2 of buffer 1, which has 2 elements");
  berth__kernel_destroy(k);
  k = kernel_of(ctx, "largest of what", THREADS, 1);
  berth__x_store_max(k, berth__kernel_buffer_of(k, 0, BERTH_I32), berth__x_thread(k), berth__x_u32(k, 1));
  test_expect_error(berth__kernel_finish(k, &err), BERTH_INTERNAL, &err, "buffers and values of u32");
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
}

/* Two threads may write to one word, but not to one element of it. */
static void narrow_elements_have_one_writer(void **state) {
  static const berth__storage storages[] = {BERTH_U8,  BERTH_I8,  BERTH_BOOL, BERTH_U16,
                                            BERTH_I16, BERTH_F16, BERTH_BF16};
  berth_context *ctx = test_context();
  (void)state;
  for (size_t i = 0; i < 2 * sizeof storages / sizeof storages[0]; i++) {
    const berth__storage storage = storages[i / 2];
    const bool is_race = i % 2 != 0;
    berth_error err;
    berth__kernel *k = kernel_of(ctx, "narrow", THREADS, 2);
    const uint32_t out = berth__kernel_buffer_of(k, 0, storage);
    const berth__x thread = berth__x_thread(k), index = flat_index(k);
    /* backwards, so that places do not ascend; all of them once, or the first of the last workgroup's twice */
    const berth__x own = berth__x_affine(k, index, -1, 2 * THREADS - 1);
    const berth__x at = is_race ? berth__x_select(k, berth__x_eq(k, index, berth__x_i32(k, 2 * THREADS - 1)),
                                                  berth__x_i32(k, THREADS - 1), own)
                                : own;
    const berth__x odd = berth__x_rem(k, thread, berth__x_i32(k, 2));
    berth__x_store(k, out, at, berth__x_convert(k, berth__storage_number(storage), odd));
    TEST_OK(berth__kernel_finish(k, &err));
    uint32_t words[2 * THREADS] = {0};
    const berth_status status = run_kernel(k, (uint32_t *[]){words}, (uint64_t[]){2 * THREADS}, &err);
    if (is_race)
      test_expect_error(status, BERTH_INTERNAL, &err,
                        "thread 7 of workgroup 1 goes to element 7 of buffer 0, where another thread stores");
    else
      TEST_OK(status);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

/* ---- Mistakes ---- */

static void write_past_the_end(berth__kernel *k) {
  berth__x_store(k, 0, berth__x_affine(k, berth__x_thread(k), 1, 1), berth__x_i32(k, 0));
}
static void read_before_the_start(berth__kernel *k) {
  berth__x at = berth__x_affine(k, berth__x_thread(k), 1, -1);
  berth__x_store(k, 0, berth__x_thread(k), berth__x_load(k, 0, at));
}
static void two_values_for_a_word(berth__kernel *k) {
  const berth__x thread = berth__x_thread(k);
  berth__x_store(k, 0, berth__x_div(k, thread, berth__x_i32(k, 4)), thread);
}
static void past_a_shared_array(berth__kernel *k) {
  uint32_t shared = berth__kernel_shared(k, BERTH__NUM_I32, THREADS - 1);
  berth__x_shared_store(k, shared, berth__x_thread(k), berth__x_i32(k, 0));
}
static void past_a_local_array(berth__kernel *k) {
  uint32_t local = berth__kernel_local(k, BERTH__NUM_I32, 2);
  berth__x_local_store(k, local, berth__x_thread(k), berth__x_i32(k, 0));
}
static void half_a_barrier(berth__kernel *k) {
  berth__x_if(k, berth__x_lt(k, berth__x_thread(k), berth__x_i32(k, 3)));
  berth__x_barrier(k);
  berth__x_end(k);
}
static void one_group_at_half_a_barrier(berth__kernel *k) {
  berth__x_if(k, berth__x_lt(k, flat_index(k), berth__x_i32(k, THREADS + 4)));
  berth__x_barrier(k);
  berth__x_end(k);
}
static void half_an_exchange(berth__kernel *k) {
  berth__x_if(k, berth__x_lt(k, berth__x_thread(k), berth__x_i32(k, 4)));
  berth__x_store(k, 0, berth__x_thread(k), berth__x_exchange(k, berth__x_thread(k), 1));
  berth__x_end(k);
}
static void two_writers(berth__kernel *k) {
  uint32_t shared = berth__kernel_shared(k, BERTH__NUM_I32, 1);
  berth__x_shared_store(k, shared, berth__x_i32(k, 0), berth__x_thread(k));
}
static void written_where_others_read(berth__kernel *k) {
  uint32_t shared = berth__kernel_shared(k, BERTH__NUM_I32, THREADS);
  berth__x thread = berth__x_thread(k), last = berth__x_affine(k, thread, -1, THREADS - 1);
  berth__x_shared_store(k, shared, thread, thread);
  berth__x_barrier(k);
  berth__x_store(k, 0, thread, berth__x_shared_load(k, shared, last));
  berth__x_shared_store(k, shared, thread, thread);
}

static void what_a_device_would_not_tell_is_an_error(void **state) {
  (void)state;
  static const struct {
    void (*make)(berth__kernel *k);
    const char *message;
  } mistakes[] = {
      {write_past_the_end, "thread 7 of workgroup 0 goes to element 8 of buffer 0, which has 8 elements"},
      {read_before_the_start, "thread 0 of workgroup 0 goes to element -1 of buffer 0"},
      {two_values_for_a_word, "thread 1 of workgroup 0 goes to element 0 of buffer 0, where another thread stores"},
      {past_a_shared_array, "element 7 of shared array 0"},
      {past_a_local_array, "element 2 of local array 0"},
      {half_a_barrier, "3 of 8 threads of workgroup 0"},
      {one_group_at_half_a_barrier, "4 of 8 threads of workgroup 1"},
      {half_an_exchange, "4 of 8 threads of workgroup 0 come to the exchange"},
      {two_writers, "that thread 0 used"},
      {written_where_others_read, "that thread 7 used"},
  };
  berth_context *ctx = test_context();
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; ++i) {
    berth_error err;
    berth__kernel *k = kernel_of(ctx, "mistake", THREADS, 2);
    berth__kernel_buffer_of(k, 0, BERTH_I32);
    mistakes[i].make(k);
    TEST_OK(berth__kernel_finish(k, &err));
    uint32_t words[THREADS] = {0}, *buffers[] = {words};
    test_expect_error(run_kernel(k, buffers, (uint64_t[]){THREADS}, &err), BERTH_INTERNAL, &err, mistakes[i].message);
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

/* Threads that are out of a block may hold any index. */
static void only_threads_that_are_in_are_checked(void **state) {
  (void)state;
  berth_context *ctx = test_context();
  berth__kernel *k = kernel_of(ctx, "inside", THREADS, 2);
  uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_I32);
  berth__x index = flat_index(k);
  berth__x_if(k, berth__x_lt(k, index, berth__x_i32(k, 11)));
  berth__x_store(k, out, index, berth__x_add(k, berth__x_load(k, out, index), index));
  berth__x_end(k);
  uint32_t words[11];
  for (uint32_t i = 0; i < 11; ++i) words[i] = 5;
  finish_and_run(k, words, 11);
  for (uint32_t i = 0; i < 11; ++i) assert_int_equal(words[i], 5 + i);
  berth_context_destroy(ctx);
}

/* ---- Tiles ---- */

/* A matrix of 16 x 16 times itself, transposed, by matrix units. */
static berth__kernel *tile_product(berth_context *ctx, bool waits, bool has_barrier) {
  berth__kernel *k = kernel_of(ctx, "tiles", 32, 1);
  const uint32_t in = berth__kernel_buffer_of(k, 0, BERTH_F32), out = berth__kernel_buffer_of(k, 1, BERTH_F32);
  const berth__x thread = berth__x_thread(k), zero = berth__x_i32(k, 0), yes = berth__x_bool(k, true);
  berth__kernel_sums sums = {.kind = BERTH_COMPUTE_TF32, .together = 1, .group_rows = 4};
  for (int side = 0; side < 2; side++) {
    const berth__kernel_tile tile = berth__kernel_tile_of(
        k, &(berth__tile_desc){
               .kind = sums.kind, .storage = BERTH_F32, .lines = 16, .depth = 16, .slots = 2, .is_deep = true});
    for (int64_t i = 0; i < 2; i++) {
      const berth__x n = berth__x_affine(k, thread, 1, 32 * i), four = berth__x_i32(k, 4);
      const berth__x line = berth__x_div(k, n, four), depth = berth__x_affine(k, berth__x_rem(k, n, four), 4, 0);
      berth__x_shared_copy(k, tile.array, berth__x_tile_at(k, &tile, zero, line, depth), in,
                           berth__x_add(k, berth__x_affine(k, line, 16, 0), depth), yes);
    }
    *(side == 0 ? &sums.left : &sums.right) = tile;
  }
  const uint32_t number = berth__kernel_sums_of(k, &sums);
  berth__x_commit(k);
  if (waits) berth__x_wait(k, 0);
  if (has_barrier) berth__x_barrier(k);
  berth__x_ahead(k, number, zero);
  berth__x_multiply(k, number, zero);
  const berth__x each = berth__x_each(k, number), row = berth__x_sum_row(k, each);
  const berth__x place = berth__x_add(k, berth__x_affine(k, row, 16, 0), berth__x_sum_column(k, each));
  berth__x_store(k, out, place, berth__x_sum(k, each, 0));
  berth__x_end(k);
  return k;
}

static void run_tiles(berth__kernel *k, const float *x, const char *wrong) {
  berth_error err;
  float result[256] = {0};
  uint32_t in[256], out[256];
  uint32_t *words[2] = {in, out};
  const uint64_t counts[2] = {256, 256};
  memcpy(in, x, sizeof in);
  if (wrong != NULL) {
    test_expect_error(run_kernel(k, words, counts, &err), BERTH_INTERNAL, &err, wrong);
    return;
  }
  TEST_OK(run_kernel(k, words, counts, &err));
  memcpy(result, out, sizeof result);
  for (int i = 0; i < 256; i++) {
    float sum = 0;
    for (int d = 0; d < 16; d++) sum += x[i / 16 * 16 + d] * x[i % 16 * 16 + d];
    assert_true(result[i] == sum);
  }
}

/* As they are and expanded; and what is multiplied before it has arrived, or before all threads know of it. */
static void tiles(void **state) {
  (void)state;
  berth_error err;
  berth_context *ctx = test_context();
  float x[256];
  for (int i = 0; i < 256; i++) x[i] = (float)(i * 7 % 11 - 5);
  for (int form = 0; form < 4; form++) {
    berth__kernel *k = tile_product(ctx, form != 2, form != 3);
    TEST_OK(berth__kernel_finish(k, &err));
    if (form == 1) TEST_OK(berth__kernel_expand(&k, &err));
    assert_int_equal(count_of(k, BERTH__INST_multiply), form == 1 ? 0 : 1);
    run_tiles(k, x, form < 2 ? NULL : "not waited for");
    berth__kernel_destroy(k);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(tiles),
      cmocka_unit_test(integers_wrap_and_division_is_total),
      cmocka_unit_test(u32_has_no_sign),
      cmocka_unit_test(numbers_convert_towards_zero),
      cmocka_unit_test(bytes_become_numbers),
      cmocka_unit_test(comparisons_with_nan_are_false_but_one),
      cmocka_unit_test(threads_go_round_as_often_as_each_says),
      cmocka_unit_test(a_break_leaves_the_innermost_loop),
      cmocka_unit_test(a_workgroup_shares_arrays),
      cmocka_unit_test(threads_exchange_what_they_have),
      cmocka_unit_test(every_thread_has_arrays_of_its_own),
      cmocka_unit_test(halves_lie_two_to_a_word),
      cmocka_unit_test(narrow_elements_keep_to_themselves),
      cmocka_unit_test(the_largest_of_all_threads_stays),
      cmocka_unit_test(narrow_elements_have_one_writer),
      cmocka_unit_test(what_a_device_would_not_tell_is_an_error),
      cmocka_unit_test(only_threads_that_are_in_are_checked),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
