/* Every allocation and every call of the device fails once while a session is bound, given weights or cloned: on every
 * device the session, its arena and its results are unchanged. BERTH_TEST_DEVICE names a device; by default, they are
 * the CPU and "interp". */
#include <stdbool.h>
#include <stdlib.h>

#include "faulty_device.h"
#include "session/session.h"
#include "support.h"

/* Integers, so that every device gives the same results. `e` is broadcast by the prelude if n is small, and then w is
 * outside the arena; otherwise it is inside. v is read only by the prelude, u by the prelude and by runs, and the
 * constants depend on the shape. The state counts runs. */
static const char text[] =
    "graph \"f\" { input %x : f32[n, 300] param %w : i16[1, 300] param %u : f32[1, 300] param %v : f32[300] "
    "const %one : i64[1] = [1] const %two : f32[1] = [2] state %runs : f32[1] = [10] const %more : f32[1] = [1] "
    "%next = add(%runs, %more) update %runs = %next "
    "%s = shape(%x) {end = 1} %r = concat(%s, %one) {axis = 0} %e = tile(%w, %r) %f = cast(%e) {to = \"f32\"} "
    "%a = sub(%f, %x) %q = mul(%u, %two) %b = add(%a, %q) %g = neg(%v) %h = mul(%b, %g) %y = add(%h, %u) "
    "%z = cast(%s) {to = \"f32\"} %k = add(%y, %z) output \"y\" = %y output \"k\" = %k }";
#define WIDTH 300
#define SMALL 2
#define LARGE 14
#define MOST (LARGE * WIDTH)

typedef struct setting {
  const berth__device *device;
  const char *name;
  uint32_t plan_flags, session_flags;
  bool grows;            /* the arena has room to grow in place */
  int64_t first, second; /* the binding at the start, and the one made while calls fail */
  uint64_t stride;       /* every n-th allocation fails; a driver has very many */
} setting;

typedef struct subject {
  const setting *how;
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  int16_t seed; /* of its current weights */
  int64_t n;    /* of its current binding */
} subject;

static float x[MOST], got[MOST];

static int16_t w_at(int16_t seed, int64_t i) { return (int16_t)(i % 100 - 10 * seed); }
static float u_at(int16_t seed, int64_t i) { return (float)(i % 7 + seed); }
static float v_at(int16_t seed, int64_t i) { return (float)(i % 3 - seed); }

static float y_at(int16_t seed, int64_t i) {
  const int64_t column = i % WIDTH;
  const float b = (float)w_at(seed, column) - x[i] + 2 * u_at(seed, column);
  return u_at(seed, column) - b * v_at(seed, column);
}

static berth_status set_weights(berth_session *session, int16_t seed, berth_error *err) {
  int16_t w[WIDTH];
  float u[WIDTH], v[WIDTH];
  for (int64_t i = 0; i < WIDTH; i++) {
    w[i] = w_at(seed, i);
    u[i] = u_at(seed, i);
    v[i] = v_at(seed, i);
  }
  BERTH__TRY(berth_session_set_param(session, "w", w, sizeof w, err));
  BERTH__TRY(berth_session_set_param(session, "u", u, sizeof u, err));
  return berth_session_set_param(session, "v", v, sizeof v, err);
}

static berth_status create(const subject *s, const berth__device *device, int64_t n, berth_session **out,
                           berth_error *err) {
  const berth_dim dims[] = {{"n", n}};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.dims = dims;
  plan.n_dims = 1;
  plan.effort = 1;
  plan.order = BERTH_ORDER_SOURCE; /* planning is not tested here */
  plan.flags |= s->how->plan_flags;
  if (s->how->grows) plan.align = (uint64_t)2 << 20;
  desc.plan = &plan;
  desc.flags = s->how->session_flags;
  desc.device = s->how->name;
  return berth__session_create_on(s->graph, device, &desc, out, err);
}

static berth_status bind_to(berth_session *session, int64_t n, berth_error *err) {
  return berth_session_bind(session, (berth_dim[]){{"n", n}}, 1, err);
}

/* The results of the last run. */
static void expect_results(berth_session *session, int64_t n, int16_t seed) {
  const size_t size = (size_t)n * WIDTH * sizeof *got;
  berth_error err;
  TEST_OK(berth_session_read(session, "y", got, size, &err));
  for (int64_t i = 0; i < n * WIDTH; i++) assert_true(got[i] == y_at(seed, i));
  TEST_OK(berth_session_read(session, "k", got, size, &err));
  for (int64_t i = 0; i < n * WIDTH; i++) assert_true(got[i] == y_at(seed, i) + (float)n);
}

static float count_runs(berth_session *session) {
  float runs;
  berth_error err;
  TEST_OK(berth_session_state_read(session, "runs", &runs, sizeof runs, &err));
  return runs;
}

static void expect_runs(berth_session *session, int64_t n, int16_t seed) {
  berth_error err;
  const float runs = count_runs(session);
  TEST_OK(berth_session_write(session, "x", x, (size_t)n * WIDTH * sizeof *x, &err));
  TEST_OK(berth_session_run(session, &err));
  assert_true(runs >= 10 && count_runs(session) == runs + 1);
  expect_results(session, n, seed);
}

static void set_up(subject *s, const setting *how) {
  berth_error err;
  memset(s, 0, sizeof *s);
  s->how = how;
  s->seed = 1;
  s->n = how->first;
  for (int64_t i = 0; i < MOST; i++) x[i] = (float)(i % 11 - 5);
  s->ctx = test_context_counting(&s->alloc);
  TEST_OK(berth_graph_parse(s->ctx, text, sizeof text - 1, &s->graph, &err));
  TEST_OK(create(s, faulty_over(how->device, how->grows), how->first, &s->session, &err));
  TEST_OK(set_weights(s->session, s->seed, &err));
  expect_runs(s->session, s->n, s->seed);
}

static void tear_down(subject *s) {
  berth_session_destroy(s->session);
  berth_graph_destroy(s->graph);
  test_context_done(s->ctx, &s->alloc);
  assert_int_equal(faulty.blocks, 0);
  assert_int_equal(faulty.programs, 0);
  assert_int_equal(faulty.engines, 0);
}

/* ---- Sweeping ---- */

typedef berth_status (*operation)(subject *s, berth_error *err);

/* What must not change when an operation fails. */
typedef struct trace {
  uint64_t live_blocks, arena_size;
  int64_t blocks, programs;
  const berth_plan *plan;
  const berth_arena *arena;
  const void *data;
  size_t n_bindings;
  float runs;
} trace;

static trace look(const subject *s) {
  return (trace){.live_blocks = atomic_load(&s->alloc.live_blocks),
                 .arena_size = berth_arena_size(berth_session_arena(s->session)),
                 .blocks = faulty.blocks,
                 .programs = faulty.programs,
                 .plan = berth_session_plan(s->session),
                 .arena = berth_session_arena(s->session),
                 .data = berth_arena_data(berth_session_arena(s->session)),
                 .n_bindings = s->session->n_bindings,
                 .runs = count_runs(s->session)};
}

static void expect_unchanged(const subject *s, const trace *before) {
  const trace after = look(s);
  assert_int_equal(after.arena_size, before->arena_size);
  assert_int_equal(after.blocks, before->blocks);
  assert_int_equal(after.programs, before->programs);
  assert_ptr_equal(after.plan, before->plan);
  assert_ptr_equal(after.arena, before->arena);
  assert_ptr_equal(after.data, before->data);
  assert_int_equal(after.n_bindings, before->n_bindings);
  assert_true(after.runs == before->runs);
}

static bool try_once(subject *s, operation fn, bool fail_device, uint64_t k) {
  berth_error err = {BERTH_OK, ""};
  const trace before = look(s);
  atomic_store(&s->alloc.failed, 0);
  faulty.failed = 0;
  if (fail_device)
    faulty.fail_at = k;
  else
    atomic_store(&s->alloc.fail_at, k);
  const berth_status status = fn(s, &err);
  faulty.fail_at = 0;
  atomic_store(&s->alloc.fail_at, 0);
  const bool has_failed = fail_device ? faulty.failed != 0 : atomic_load(&s->alloc.failed) != 0;
  if (!has_failed) TEST_OK(status);
  if (status == BERTH_OK) return has_failed;
  test_expect_error(status, fail_device ? BERTH_DEVICE_NOMEM : BERTH_NOMEM, &err, NULL);
  expect_unchanged(s, &before);
  if (s->how->stride == 1)
    assert_int_equal(atomic_load(&s->alloc.live_blocks), before.live_blocks); /* but no driver's */
  expect_results(s->session, s->n, s->seed);
  expect_runs(s->session, s->n, s->seed);
  return true;
}

/* One subject survives all failures, until an operation meets none. Returns the number of failures. */
static uint64_t sweep(const setting *how, operation prepare, operation fn, bool fail_device) {
  subject s;
  berth_error err;
  uint64_t n = 0;
  set_up(&s, how);
  if (prepare != NULL) TEST_OK(prepare(&s, &err));
  expect_runs(s.session, s.n, s.seed);
  for (uint64_t k = 1; try_once(&s, fn, fail_device, k); k += fail_device ? 1 : how->stride * test_step()) n++;
  expect_runs(s.session, s.n, s.seed);
  for (int round = 0; round < 2; round++) {
    const int64_t shapes[] = {how->second, how->first, 5};
    for (int i = 0; i < 3; i++) {
      TEST_OK(bind_to(s.session, shapes[i], &err));
      expect_runs(s.session, shapes[i], s.seed);
    }
  }
  tear_down(&s);
  return n;
}

/* ---- Operations ---- */

static berth_status bind_second(subject *s, berth_error *err) {
  const berth_status status = bind_to(s->session, s->how->second, err);
  if (status == BERTH_OK) s->n = s->how->second;
  return status;
}

static berth_status bind_first(subject *s, berth_error *err) {
  const berth_status status = bind_to(s->session, s->how->first, err);
  if (status == BERTH_OK) s->n = s->how->first;
  return status;
}

static berth_status clone_session(subject *s, berth_error *err) {
  berth_session *made;
  const berth_status status = berth_session_clone(s->session, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  faulty.fail_at = 0;
  atomic_store(&s->alloc.fail_at, 0);
  if (status == BERTH_OK) {
    assert_true(count_runs(made) == count_runs(s->session));
    expect_runs(made, s->n, s->seed);
  }
  berth_session_destroy(made);
  return status;
}

static berth_status create_another(subject *s, berth_error *err) {
  berth_session *made;
  const berth_status status = create(s, s->session->device, s->how->second, &made, err);
  assert_true((status == BERTH_OK) == (made != NULL));
  berth_session_destroy(made);
  return status;
}

/* ---- Weights ---- */

/* Sets all weights while the k-th call fails. Those set before the failure are new; one that a device did not write
 * completely is invalid, and runs are refused. Nothing is ever read as something else. */
static bool set_once(subject *s, bool fail_device, uint64_t k) {
  berth_error err;
  const int16_t seed = (int16_t)(s->seed + 1);
  const trace before = look(s);
  faulty.failed = 0;
  atomic_store(&s->alloc.failed, 0);
  if (fail_device)
    faulty.fail_at = k;
  else
    atomic_store(&s->alloc.fail_at, k);
  const berth_status status = set_weights(s->session, seed, &err);
  faulty.fail_at = 0;
  atomic_store(&s->alloc.fail_at, 0);
  const bool has_failed = fail_device ? faulty.failed != 0 : atomic_load(&s->alloc.failed) != 0;
  assert_true((status != BERTH_OK) == has_failed);
  expect_unchanged(s, &before);
  expect_results(s->session, s->n, s->seed); /* of the last run, since there was none after it */
  if (status != BERTH_OK && fail_device && berth_session_run(s->session, &err) != BERTH_OK)
    assert_non_null(strstr(err.message, "has no weights yet"));
  s->seed = seed;
  TEST_OK(set_weights(s->session, seed, &err));
  expect_runs(s->session, s->n, seed);
  return has_failed;
}

static void sweep_weights(const setting *how, bool fail_device) {
  subject s;
  berth_error err;
  set_up(&s, how);
  for (int round = 0; round < 2; round++) {
    for (uint64_t k = 1; set_once(&s, fail_device, k); k++) continue;
    TEST_OK(bind_second(&s, &err));
    expect_runs(s.session, s.n, s.seed);
  }
  TEST_OK(bind_first(&s, &err));
  expect_runs(s.session, s.n, s.seed);
  tear_down(&s);
}

/* It is unknown how far a GPU came: nothing is read or run before the states are set again. */
static void set_again_if_lost(berth_session *session, float runs) {
  berth_error err;
  float read;
  if (!berth_session_states_lost(session)) return;
  test_expect_error(berth_session_state_read(session, "runs", &read, sizeof read, &err), BERTH_INVALID, &err, "lost");
  test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, "lost");
  TEST_OK(berth_session_state_write(session, "runs", &runs, sizeof runs, &err));
  assert_false(berth_session_states_lost(session));
}

/* A run that fails on the device can be repeated: it then does what a bind has left for the run to do. */
static void sweep_runs(const setting *how) {
  subject s;
  berth_error err;
  uint64_t k = 0;
  set_up(&s, how);
  for (faulty.failed = 1; faulty.failed != 0;) {
    TEST_OK(bind_second(&s, &err));
    expect_runs(s.session, s.n, s.seed);
    TEST_OK(bind_first(&s, &err));
    TEST_OK(berth_session_write(s.session, "x", x, (size_t)s.n * WIDTH * sizeof *x, &err));
    const float runs = count_runs(s.session);
    faulty.failed = 0;
    faulty.fail_at = ++k;
    const berth_status status = berth_session_run(s.session, &err);
    faulty.fail_at = 0;
    const bool has_failed = faulty.failed != 0;
    assert_true((status != BERTH_OK) == has_failed);
    set_again_if_lost(s.session, runs);
    faulty.failed = has_failed;
    expect_runs(s.session, s.n, s.seed);
  }
  assert_true(k > 2);
  tear_down(&s);
}

/* ---- Settings ---- */

static void sweep_setting(const setting *how) {
  for (int fail_device = 0; fail_device < 2; fail_device++) {
    assert_true(sweep(how, NULL, bind_second, fail_device != 0) >= 2);
    (void)sweep(how, bind_second, bind_first, fail_device != 0); /* already compiled: there may be nothing to fail */
    assert_true(sweep(how, bind_second, clone_session, fail_device != 0) > 2);
    assert_true(sweep(how, NULL, create_another, fail_device != 0) > 2);
    sweep_weights(how, fail_device != 0);
  }
  sweep_runs(how);
}

static void sweep_device(const char *name, uint64_t stride) {
  static const uint32_t plan_flags[] = {0, BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE};
  const berth__device *device;
  berth_error err;
  TEST_OK(berth__device_find(name, &device, &err));
  for (int order = 0; order < 2; order++)
    for (uint32_t option = 0; option < 4; option++) {
      if (option % 2 == 1 && device != &berth__cpu_device) continue; /* a GPU cannot access values outside the arena */
      const setting how = {.device = device,
                           .name = name,
                           .plan_flags = plan_flags[option == 1],
                           .grows = option == 3,
                           .session_flags = option == 2 ? BERTH_SESSION_CHECKED : 0,
                           .first = order == 0 ? SMALL : LARGE,
                           .second = order == 0 ? LARGE : SMALL,
                           .stride = stride};
      sweep_setting(&how);
    }
}

static void on_the_cpu(void **state) {
  (void)state;
  sweep_device("cpu", 1);
}

static void on_loops(void **state) {
  (void)state;
  sweep_device("interp", 1);
}

static void on_a_gpu(void **state) {
  (void)state;
  sweep_device(getenv("BERTH_TEST_DEVICE"), 29);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(on_the_cpu), cmocka_unit_test(on_loops)};
  const struct CMUnitTest on_one[] = {cmocka_unit_test(on_a_gpu)};
  if (getenv("BERTH_TEST_DEVICE") != NULL) return cmocka_run_group_tests(on_one, NULL, NULL);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
