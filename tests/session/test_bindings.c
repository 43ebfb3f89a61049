/* Bindings come and go: they can be dropped, there are only so many, and the weights stay right for those that stay. */
#include "session/session.h"
#include "sessions.h"

/* w is spread by the prelude where n is small, and then lies outside the arena; otherwise inside. */
static const char spread[] =
    "graph \"s\" { input %x : f32[n, 300] param %w : i16[1, 300] const %one : i64[1] = [1] "
    "%s = shape(%x) {end = 1} %r = concat(%s, %one) {axis = 0} %e = tile(%w, %r) %f = cast(%e) {to = \"f32\"} "
    "%y = sub(%f, %x) output \"y\" = %y }";
#define SMALL 2
#define LARGE 14

static void start(fixture *f, const char *device, int64_t n, uint32_t max_bindings) {
  const berth_dim dims[] = {{"n", n}};
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_error err;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  f->graph = session_parse(f->ctx, spread);
  plan.dims = dims;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = device;
  desc.max_bindings = max_bindings;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
}

static void set_w(berth_session *session, int16_t seed) {
  int16_t w[300];
  berth_error err;
  for (int16_t i = 0; i < 300; i++) w[i] = (int16_t)(i * 3 - seed * 100);
  OK(berth_session_set_param(session, "w", w, sizeof w, &err));
}

static void expect(berth_session *session, int64_t n, int16_t seed) {
  static float x[LARGE * 300], y[LARGE * 300];
  const size_t size = (size_t)n * 300 * sizeof *x;
  berth_error err;
  for (int64_t i = 0; i < n * 300; i++) x[i] = (float)(i % 13);
  session_bind(session, n);
  OK(berth_session_write(session, "x", x, size, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, size, &err));
  for (int64_t i = 0; i < n * 300; i++) assert_true(y[i] == (float)(i % 300 * 3 - seed * 100) - x[i]);
}

static bool has(const berth_session *session, int64_t n) {
  for (size_t i = 0; i < session->n_bindings; i++)
    if (session->bindings[i].extents[0] == n) return true;
  return false;
}

static void drop(berth_session *session, int64_t n) {
  berth_error err;
  OK(berth_session_drop(session, (berth_dim[]){{"n", n}}, 1, &err));
  assert_false(has(session, n));
}

static void the_one_bound_longest_ago_goes_first(void **state) {
  fixture f;
  (void)state;
  start(&f, "cpu", 1, 3);
  set_w(f.session, 1);
  for (int64_t n = 1; n <= 3; n++) expect(f.session, n, 1);
  assert_int_equal(berth_session_n_bindings(f.session), 3);
  expect(f.session, 1, 1); /* 2 is the oldest now */
  expect(f.session, 4, 1);
  assert_int_equal(berth_session_n_bindings(f.session), 3);
  assert_true(has(f.session, 1) && has(f.session, 3) && has(f.session, 4) && !has(f.session, 2));
  expect(f.session, 2, 1);
  assert_true(has(f.session, 1) && has(f.session, 2) && has(f.session, 4) && !has(f.session, 3));
  session_finish(&f);
}

static void eight_are_kept_unless_told_otherwise(void **state) {
  static const uint32_t given[] = {0, 1, 2, 20}, kept[] = {8, 1, 2, 12};
  (void)state;
  for (int i = 0; i < 4; i++) {
    fixture f;
    start(&f, "cpu", 1, given[i]);
    set_w(f.session, 1);
    for (int64_t n = 1; n <= 12; n++) {
      expect(f.session, n, 1);
      assert_int_equal(berth_session_n_bindings(f.session), (uint32_t)n < kept[i] ? (uint32_t)n : kept[i]);
    }
    session_finish(&f);
  }
}

static void dropping(void **state) {
  fixture f;
  berth_error err;
  (void)state;
  start(&f, "cpu", 1, 0);
  set_w(f.session, 1);
  for (int64_t n = 1; n <= 4; n++) expect(f.session, n, 1);
  const berth_plan *plan = berth_session_plan(f.session);
  REFUSED(berth_session_drop(f.session, (berth_dim[]){{"n", 4}}, 1, &err), "current");
  REFUSED(berth_session_drop(f.session, (berth_dim[]){{"m", 4}}, 1, &err), "'m'");
  REFUSED(berth_session_drop(f.session, (berth_dim[]){{NULL, 4}}, 1, &err), "NULL");
  REFUSED(berth_session_drop(f.session, NULL, 0, &err), "0 were given");
  REFUSED(berth_session_drop(f.session, NULL, 1, &err), "dimensions");
  REFUSED(berth_session_drop(NULL, NULL, 0, &err), "session");
  assert_int_equal(berth_session_n_bindings(f.session), 4);
  const uint64_t blocks = f.alloc.live_blocks;
  drop(f.session, 2);
  assert_true(f.alloc.live_blocks < blocks);
  drop(f.session, 2); /* once more: it is gone already */
  drop(f.session, 1);
  drop(f.session, 9);
  assert_int_equal(berth_session_n_bindings(f.session), 2);
  assert_ptr_equal(berth_session_plan(f.session), plan);
  OK(berth_session_run(f.session, &err));
  for (int64_t n = 1; n <= 4; n++) expect(f.session, n, 1);
  assert_int_equal(berth_session_n_bindings(f.session), 4);
  session_finish(&f);
}

/* The weights are set, and shapes are bound and dropped, in every order of four steps. */
static void weights_stay_right_on(const char *device, int64_t first) {
  const int64_t other = SMALL + LARGE - first;
  for (uint32_t code = 0; code < 4 * 4 * 4 * 4; code++) {
    fixture f;
    int16_t seed = 1;
    start(&f, device, first, 0);
    set_w(f.session, seed);
    uint32_t left = code;
    for (int step = 0; step < 4; step++, left /= 4) switch (left % 4) {
        case 0: set_w(f.session, ++seed); break;
        case 1: expect(f.session, first, seed); break;
        case 2: expect(f.session, other, seed); break;
        default:
          if (berth__session_current(f.session)->extents[0] != first)
            drop(f.session, first);
          else
            drop(f.session, other);
      }
    berth_session *clone;
    berth_error err;
    OK(berth_session_clone(f.session, &clone, &err));
    assert_int_equal(berth_session_n_bindings(clone), berth_session_n_bindings(f.session));
    for (int round = 0; round < 2; round++) {
      berth_session *session = round == 0 ? f.session : clone;
      expect(session, other, seed);
      expect(session, first, seed);
      drop(session, other);
      set_w(session, 9);
      expect(session, other, 9);
      expect(session, first, 9);
    }
    berth_session_destroy(clone);
    session_finish(&f);
  }
}

static void weights_stay_right(void **state) {
  (void)state;
  weights_stay_right_on("cpu", SMALL);
  weights_stay_right_on("cpu", LARGE);
  weights_stay_right_on(test_gpu(), SMALL);
  weights_stay_right_on(test_gpu(), LARGE);
}

/* Memory that a caller names under one shape is what all shapes read. */
static void named_memory_is_for_all(void **state) {
  static int16_t w[300];
  fixture f;
  berth_error err;
  (void)state;
  for (int16_t i = 0; i < 300; i++) w[i] = (int16_t)(i * 3 - 500);
  start(&f, "cpu", LARGE, 0);
  set_w(f.session, 1);
  expect(f.session, LARGE, 1);
  expect(f.session, SMALL, 1); /* here it lies outside */
  OK(berth_session_use(f.session, "w", w, sizeof w, &err));
  expect(f.session, SMALL, 5);
  expect(f.session, LARGE, 5);
  set_w(f.session, 6);
  expect(f.session, SMALL, 6);
  expect(f.session, LARGE, 6);
  session_finish(&f);
}

/* What the prelude makes has the same name and size in every binding here, and other elements. */
static void what_the_prelude_makes_from_extents_is_the_bindings_own(void **state) {
  static const char text[] =
      "graph \"s\" { input %x : f32[n, 4] param %t : f32[8, 4] %i = shape(%x) {end = 1} "
      "%e = gather(%t, %i) {axis = 0} %y = add(%x, %e) output \"y\" = %y }";
  float t[32], x[16] = {0}, y[16];
  berth_error err;
  fixture f;
  (void)state;
  for (int i = 0; i < 32; i++) t[i] = (float)i;
  session_start_with(&f, text, 2, 0, 0);
  OK(berth_session_set_param(f.session, "t", t, sizeof t, &err));
  for (int round = 0; round < 3; round++)
    for (int64_t n = 2; n <= 4; n++) {
      const size_t size = (size_t)n * 4 * sizeof *x;
      session_bind(f.session, n);
      OK(berth_session_write(f.session, "x", x, size, &err));
      OK(berth_session_run(f.session, &err));
      OK(berth_session_read(f.session, "y", y, size, &err));
      for (int64_t i = 0; i < n * 4; i++) assert_true(y[i] == (float)(n * 4 + i % 4));
    }
  session_finish(&f);
}

/* The same where that lies over a value that is the same in all of them. */
static void what_is_written_over_a_prelude_result_is_the_bindings_own(void **state) {
  static const char text[] =
      "graph \"s\" { input %x : f32[n, 8] param %t : f32[1, 4] %i = shape(%x) {end = 1} %c = cast(%i) {to = \"f32\"} "
      "%d = concat(%t, %t) {axis = 1} %e = mul(%d, %c) %y = add(%x, %e) output \"y\" = %y }";
  const float t[4] = {1, 2, 3, 4}, x[32] = {0};
  (void)state;
  for (uint32_t flags = 0; flags <= BERTH_PLAN_REFERENCE; flags += BERTH_PLAN_REFERENCE) {
    berth_error err;
    fixture f;
    session_start_with(&f, text, 2, flags, 0);
    OK(berth_session_set_param(f.session, "t", t, sizeof t, &err));
    for (int64_t round = 0; round < 6; round++) {
      const int64_t n = 2 + round % 3;
      float y[32];
      session_bind(f.session, n);
      OK(berth_session_write(f.session, "x", x, (size_t)n * 8 * sizeof *x, &err));
      OK(berth_session_run(f.session, &err));
      OK(berth_session_read(f.session, "y", y, (size_t)n * 8 * sizeof *y, &err));
      for (int64_t i = 0; i < n * 8; i++) assert_true(y[i] == t[i % 4] * (float)n);
    }
    session_finish(&f);
  }
}

/* Many shapes take what a few do, and the last bind asks for no more than the first ones: nothing is done for all. */
static void memory_is_level(void **state) {
  fixture f;
  uint64_t bytes = 0, calls = 0, first_calls = 0;
  (void)state;
  start(&f, "cpu", LARGE, 4);
  set_w(f.session, 1);
  for (int64_t n = 1; n < 40; n++) {
    calls = f.alloc.calls;
    session_bind(f.session, n);
    calls = f.alloc.calls - calls;
    if (n == 10) {
      bytes = f.alloc.live_bytes;
      first_calls = calls;
    }
  }
  assert_int_equal(berth_session_n_bindings(f.session), 4);
  assert_true(f.alloc.live_bytes < bytes + bytes / 4);
  assert_true(calls < first_calls + first_calls / 4);
  expect(f.session, 7, 1);
  session_finish(&f);
}

/* A large arena on the CPU grows where it lies: its weights are not in memory twice, and no pointer changes. */
static void large_arenas_grow_in_place(void **state) {
  static const char wide[] =
      "graph \"l\" { input %x : f32[n, 1024] param %w : f32[1024, 1024] %y = matmul(%x, %w) output \"y\" = %y }";
  static float x[1024 * 1024], y[256 * 1024];
  fixture f;
  berth_error err;
  (void)state;
  session_start_with(&f, wide, 1, 0, 1);
  for (size_t i = 0; i < 1024; i++) x[i * 1024 + i] = 2;
  OK(berth_session_set_param(f.session, "w", x, sizeof x, &err));
  const void *data = berth_arena_data(berth_session_arena(f.session));
  uint64_t before = berth_arena_size(berth_session_arena(f.session));
  for (int64_t n = 4; n <= 256; n *= 8) {
    session_bind(f.session, n);
    const uint64_t size = berth_arena_size(berth_session_arena(f.session));
    assert_true(size > before && size >= berth_plan_arena_size(berth_session_plan(f.session)));
    before = size;
    assert_ptr_equal(berth_arena_data(berth_session_arena(f.session)), data);
    OK(berth_session_write(f.session, "x", x, (size_t)n * 4096, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "y", y, (size_t)n * 4096, &err));
    for (int64_t i = 0; i < n * 1024; i++) assert_true(y[i] == (i % 1025 == 0 ? 4 : 0));
  }
  session_finish(&f);
}

/* Nothing of it is touched: an arena of terabytes is refused as fast as one of bytes. */
static void more_than_the_machine_has_is_refused(void **state) {
  static const char text[] =
      "graph \"t\" { input %x : f32[1] const %n : i64[1] = [1000000000000] %y = tile(%x, %n) output \"y\" = %y }";
  fixture f = {.session = NULL};
  berth_error err;
  (void)state;
  f.ctx = test_context_counting(&f.alloc);
  f.graph = session_parse(f.ctx, text);
  berth_status status = berth_session_create(f.graph, NULL, &f.session, &err);
  test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "the arena needs 40000000000");
  test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "in all");
  assert_null(f.session);
  session_finish(&f);
}

/* A limit holds for arenas that grow, too, in place or beside the old one. */
static void a_limit_of_memory_holds_for_every_binding(void **state) {
  static const uint64_t limits[] = {100000, (uint64_t)4 << 20};
  fixture f;
  berth_error err;
  float before[12], after[12];
  (void)state;
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    session_start(&f);
    if (i == 1) session_bind(f.session, 60000); /* large enough to be one that grows in place */
    session_bind(f.session, 2);
    session_run(f.session, 2, before);
    f.ctx->options.memory_limit = limits[i];
    const berth_status status = berth_session_bind(f.session, (berth_dim[]){{"n", 100000}}, 1, &err);
    test_expect_error(status, BERTH_DEVICE_NOMEM, &err, "the memory limit of this context is");
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "y", after, sizeof after, &err));
    assert_memory_equal(before, after, sizeof after);
    session_bind(f.session, 3);
    session_finish(&f);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_one_bound_longest_ago_goes_first),
      cmocka_unit_test(eight_are_kept_unless_told_otherwise),
      cmocka_unit_test(dropping),
      cmocka_unit_test(weights_stay_right),
      cmocka_unit_test(named_memory_is_for_all),
      cmocka_unit_test(what_the_prelude_makes_from_extents_is_the_bindings_own),
      cmocka_unit_test(what_is_written_over_a_prelude_result_is_the_bindings_own),
      cmocka_unit_test(memory_is_level),
      cmocka_unit_test(large_arenas_grow_in_place),
      cmocka_unit_test(more_than_the_machine_has_is_refused),
      cmocka_unit_test(a_limit_of_memory_holds_for_every_binding),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
