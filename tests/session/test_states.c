/* States in sessions: what a run leaves is what the next one finds, on the CPU and on a GPU (support.h says which). */
#include <stdbool.h>

#include "sessions.h"

static const char *device = "cpu";

static void start_on(fixture *f, const char *text, const berth_dim *dims, size_t n_dims, uint32_t plan_flags,
                     uint32_t session_flags) {
  session_start_on(f, text, device, dims, n_dims, plan_flags, session_flags);
}

static void start(fixture *f, const char *text) { start_on(f, text, NULL, 0, 0, 0); }

static void read_state(berth_session *session, const char *name, float *dst, size_t n) {
  berth_error err;
  OK(berth_session_state_read(session, name, dst, n * sizeof *dst, &err));
}

#define ASSERT_STATE(session, name, ...)                                              \
  do {                                                                                \
    const float want_[] = {__VA_ARGS__};                                              \
    float got_[sizeof want_ / sizeof *want_];                                         \
    read_state(session, name, got_, sizeof want_ / sizeof *want_);                    \
    for (size_t i_ = 0; i_ < sizeof want_ / sizeof *want_; i_++)                      \
      if (got_[i_] != want_[i_]) fail_msg("%s[%zu]: %g", name, i_, (double)got_[i_]); \
  } while (0)

/* ---- A mean that fades, and a counter ---- */

static const char mean_text[] =
    "graph \"mean\" { input %x : f32[n, 2] param %keep : f32[1] state %mean : f32[2] = [8, -8] state %count : i32[] = "
    "zeros\n"
    "  const %one : i32[] = [1] %next = add(%count, %one) %row = reduce_sum(%x) {axes = [0], keepdims = 0}\n"
    "  %old = mul(%mean, %keep) %new = add(%old, %row) %before = identity(%mean)\n"
    "  update %count = %next update %mean = %new output \"mean\" = %new output \"before\" = %before\n"
    "  output \"count\" = %next }";

static void start_mean(fixture *f, uint32_t session_flags) {
  berth_error err;
  const float half = 0.5f;
  start_on(f, mean_text, &(berth_dim){"n", 1}, 1, 0, session_flags);
  OK(berth_session_set_param(f->session, "keep", &half, sizeof half, &err));
}

static void run_mean(berth_session *session, int64_t n, float x, float y) {
  berth_error err;
  float rows[512];
  for (int64_t i = 0; i < n; i++) {
    rows[2 * i] = i == 0 ? x : 0;
    rows[2 * i + 1] = i == 0 ? y : 0;
  }
  OK(berth_session_write(session, "x", rows, (size_t)n * 8, &err));
  OK(berth_session_run(session, &err));
}

static int32_t count_of(berth_session *session) {
  berth_error err;
  int32_t count = -1;
  OK(berth_session_state_read(session, "count", &count, sizeof count, &err));
  return count;
}

static void a_run_finds_what_the_last_one_left(void **state) {
  const uint32_t flags[] = {0, BERTH_SESSION_CHECKED, BERTH_SESSION_REFERENCE};
  (void)state;
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
    fixture f;
    berth_error err;
    float before[2], mean[2];
    int32_t count;
    if (flags[i] == BERTH_SESSION_CHECKED && strcmp(device, "cpu") != 0) continue;
    start_mean(&f, flags[i]);
    ASSERT_STATE(f.session, "mean", 8, -8);
    run_mean(f.session, 1, 2, 4);
    ASSERT_STATE(f.session, "mean", 6, 0);
    run_mean(f.session, 1, 1, 2);
    ASSERT_STATE(f.session, "mean", 4, 2);
    OK(berth_session_read(f.session, "before", before, sizeof before, &err));
    OK(berth_session_read(f.session, "mean", mean, sizeof mean, &err));
    OK(berth_session_read(f.session, "count", &count, sizeof count, &err));
    assert_true(before[0] == 6 && before[1] == 0 && mean[0] == 4 && mean[1] == 2);
    assert_int_equal(count, 2);
    assert_int_equal(count_of(f.session), 2);
    session_finish(&f);
  }
}

static void states_are_written_and_reset(void **state) {
  fixture f;
  berth_error err;
  const float mean[] = {2, 20};
  (void)state;
  start_mean(&f, 0);
  run_mean(f.session, 1, 2, 4);
  OK(berth_session_state_write(f.session, "mean", mean, sizeof mean, &err));
  ASSERT_STATE(f.session, "mean", 2, 20);
  run_mean(f.session, 1, 0, 0);
  ASSERT_STATE(f.session, "mean", 1, 10);
  OK(berth_session_state_reset(f.session, "mean", &err));
  ASSERT_STATE(f.session, "mean", 8, -8);
  assert_int_equal(count_of(f.session), 2);
  run_mean(f.session, 1, 0, 0);
  OK(berth_session_state_reset(f.session, NULL, &err));
  ASSERT_STATE(f.session, "mean", 8, -8);
  assert_int_equal(count_of(f.session), 0);
  REFUSED(berth_session_state_read(f.session, "x", &(float){0}, 4, &err), "no state 'x'");
  REFUSED(berth_session_state_read(f.session, "mean", &(float){0}, 4, &err), "has 8 bytes, but 4 were given");
  REFUSED(berth_session_state_read(f.session, "mean", NULL, 8, &err), "NULL");
  REFUSED(berth_session_state_write(f.session, "mean", NULL, 8, &err), "NULL");
  REFUSED(berth_session_state_write(f.session, "mean", mean, 9, &err), "9 were given");
  REFUSED(berth_session_state_write(NULL, "mean", mean, 8, &err), "needed");
  REFUSED(berth_session_state_reset(f.session, "keep", &err), "no state");
  REFUSED(berth_session_state_reset(NULL, NULL, &err), "NULL");
  REFUSED(berth_session_use(f.session, "mean", mean, 8, &err), "no input or param");
  REFUSED(berth_session_set_param(f.session, "mean", mean, 8, &err), "no param");
  ASSERT_STATE(f.session, "mean", 8, -8);
  session_finish(&f);
}

static void states_survive_other_bindings_a_larger_arena_and_new_weights(void **state) {
  fixture f;
  berth_error err;
  const float quarter = 0.25f;
  (void)state;
  start_mean(&f, 0);
  run_mean(f.session, 1, 2, 4);
  const uint64_t small = berth_arena_size(berth_session_arena(f.session));
  session_bind(f.session, 200);
  assert_true(berth_arena_size(berth_session_arena(f.session)) > small);
  ASSERT_STATE(f.session, "mean", 6, 0);
  run_mean(f.session, 200, 1, 2);
  ASSERT_STATE(f.session, "mean", 4, 2);
  session_bind(f.session, 1);
  OK(berth_session_set_param(f.session, "keep", &quarter, sizeof quarter, &err));
  ASSERT_STATE(f.session, "mean", 4, 2);
  run_mean(f.session, 1, 0, 0.5f);
  ASSERT_STATE(f.session, "mean", 1, 1);
  session_bind(f.session, 7);
  assert_int_equal(count_of(f.session), 3);
  session_finish(&f);
}

static void a_clone_goes_on_from_there_by_itself(void **state) {
  fixture f;
  berth_error err;
  berth_session *clone;
  (void)state;
  start_mean(&f, 0);
  run_mean(f.session, 1, 2, 4);
  session_bind(f.session, 5);
  OK(berth_session_clone(f.session, &clone, &err));
  ASSERT_STATE(clone, "mean", 6, 0);
  assert_int_equal(count_of(clone), 1);
  run_mean(clone, 5, 1, 2);
  run_mean(clone, 5, 0, 0);
  ASSERT_STATE(clone, "mean", 2, 1);
  ASSERT_STATE(f.session, "mean", 6, 0);
  run_mean(f.session, 5, 5, 0);
  ASSERT_STATE(f.session, "mean", 8, 0);
  ASSERT_STATE(clone, "mean", 2, 1);
  berth_session_destroy(clone);
  session_finish(&f);
}

static void states_are_saved_and_restored(void **state) {
  fixture f, other;
  berth_error err;
  unsigned char saved[64], again[64];
  (void)state;
  start_mean(&f, 0);
  start_mean(&other, 0);
  run_mean(f.session, 1, 2, 4);
  const size_t size = (size_t)berth_session_state_size(f.session);
  assert_int_equal(size, 16 + 8 + 8);
  OK(berth_session_state_save(f.session, saved, size, &err));
  run_mean(f.session, 1, 7, 7);
  OK(berth_session_state_restore(f.session, saved, size, &err));
  ASSERT_STATE(f.session, "mean", 6, 0);
  assert_int_equal(count_of(f.session), 1);
  OK(berth_session_state_restore(other.session, saved, size, &err)); /* of another context */
  ASSERT_STATE(other.session, "mean", 6, 0);
  OK(berth_session_state_save(other.session, again, size, &err));
  assert_memory_equal(saved, again, size);
  REFUSED(berth_session_state_save(f.session, saved, size - 1, &err), "take 32 bytes, but 31");
  REFUSED(berth_session_state_restore(f.session, saved, size + 1, &err), "33 were given");
  REFUSED(berth_session_state_restore(f.session, NULL, size, &err), "NULL");
  REFUSED(berth_session_state_save(NULL, saved, size, &err), "NULL");
  saved[9] ^= 1;
  REFUSED(berth_session_state_restore(f.session, saved, size, &err), "were not saved from");
  ASSERT_STATE(f.session, "mean", 6, 0);
  session_finish(&f);
  session_finish(&other);
}

static void states_of_another_graph_are_refused(void **state) {
  static const char *const texts[] = {
      "graph \"a\" { state %s : f32[2, 3] = zeros %n = exp(%s) update %s = %n }",
      "graph \"a\" { state %s : f32[3, 2] = zeros %n = exp(%s) update %s = %n }",
      "graph \"a\" { state %t : f32[2, 3] = zeros %n = exp(%t) update %t = %n }",
      "graph \"a\" { state %s : i32[2, 3] = zeros %n = neg(%s) update %s = %n }",
  };
  unsigned char saved[64];
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
    fixture f;
    berth_error err;
    start(&f, texts[i]);
    const size_t size = (size_t)berth_session_state_size(f.session);
    assert_int_equal(size, 40);
    if (i == 0)
      OK(berth_session_state_save(f.session, saved, size, &err));
    else
      REFUSED(berth_session_state_restore(f.session, saved, size, &err), "were not saved from");
    session_finish(&f);
  }
}

static void a_session_without_states_has_nothing_to_save(void **state) {
  fixture f;
  berth_error err;
  (void)state;
  start(&f, "graph \"n\" { input %x : f32[2] %y = exp(%x) output \"y\" = %y }");
  assert_int_equal(berth_session_state_size(f.session), 0);
  assert_int_equal(berth_session_state_size(NULL), 0);
  OK(berth_session_state_save(f.session, NULL, 0, &err));
  OK(berth_session_state_restore(f.session, NULL, 0, &err));
  OK(berth_session_state_reset(f.session, NULL, &err));
  session_finish(&f);
}

/* An element that the device has no bits for: nothing is restored. */
static void a_restore_that_fails_changes_nothing(void **state) {
  static const char text[] =
      "graph \"w\" { state %a : i64[1] = [1] state %b : i64[1] = [2] %n = add(%a, %b) update %b = %n }";
  const char *on = device;
  fixture f, wide;
  berth_error err;
  unsigned char saved[64];
  int64_t a = 5, b = (int64_t)1 << 40;
  (void)state;
  if (strcmp(device, "cpu") == 0) return;
  start(&f, text);
  device = "cpu";
  start(&wide, text);
  device = on;
  OK(berth_session_state_write(wide.session, "a", &a, 8, &err));
  OK(berth_session_state_write(wide.session, "b", &b, 8, &err));
  const size_t size = (size_t)berth_session_state_size(wide.session);
  OK(berth_session_state_save(wide.session, saved, size, &err));
  if (berth_session_state_restore(f.session, saved, size, &err) != BERTH_OK) {
    OK(berth_session_state_read(f.session, "a", &a, 8, &err));
    OK(berth_session_state_read(f.session, "b", &b, 8, &err));
    assert_true(a == 1 && b == 2);
  } else {
    OK(berth_session_state_read(f.session, "b", &b, 8, &err));
    assert_true(b == (int64_t)1 << 40);
  }
  session_finish(&f);
  session_finish(&wide);
}

static void extents_of_a_state_are_the_same_in_all_bindings(void **state) {
  static const char text[] =
      "graph \"e\" { input %x : f32[n, 4] state %s : f32[m, 4] = zeros %r = reduce_sum(%x) {axes = [0]}\n"
      "  %k = add(%s, %r) update %s = %k output \"r\" = %r }";
  fixture f;
  berth_error err;
  const float x[12] = {1, 2, 3, 4};
  (void)state;
  start_on(&f, text, (berth_dim[]){{"n", 1}, {"m", 2}}, 2, 0, 0);
  OK(berth_session_write(f.session, "x", x, 16, &err));
  OK(berth_session_run(f.session, &err));
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{"n", 1}, {"m", 3}}, 2, &err), "the same extents");
  ASSERT_STATE(f.session, "s", 1, 2, 3, 4, 1, 2, 3, 4);
  OK(berth_session_bind(f.session, (berth_dim[]){{"n", 3}, {"m", 2}}, 2, &err));
  OK(berth_session_write(f.session, "x", x, 48, &err));
  OK(berth_session_run(f.session, &err));
  ASSERT_STATE(f.session, "s", 2, 4, 6, 8, 2, 4, 6, 8);
  session_finish(&f);
}

/* A cache of keys: rows at a position that a run is told. */
static void a_cache_is_filled_row_by_row(void **state) {
  static const char text[] =
      "graph \"c\" { input %row : f32[1, 2] input %at : i32[] state %cache : f32[4, 2] = zeros\n"
      "  %next = write_rows(%cache, %row, %at) %sum = reduce_sum(%next) {axes = [0]}\n"
      "  update %cache = %next output \"sum\" = %sum }";
  fixture f;
  berth_error err;
  (void)state;
  start(&f, text);
  for (int32_t at = 3; at >= 0; at--) {
    const float row[] = {(float)at + 1, 10};
    float sum[2];
    OK(berth_session_write(f.session, "row", row, sizeof row, &err));
    OK(berth_session_write(f.session, "at", &at, sizeof at, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "sum", sum, sizeof sum, &err));
    assert_true(sum[1] == 10.0f * (float)(4 - at));
  }
  ASSERT_STATE(f.session, "cache", 1, 10, 2, 10, 3, 10, 4, 10);
  session_finish(&f);
}

static void a_choice_decides_whether_a_state_moves_on(void **state) {
  static const char text[] =
      "graph \"g\" { input %go : bool[] input %x : f32[2] state %sum : f32[2] = zeros state %was : f32[2] = zeros\n"
      "  %more = add(%sum, %x) %next = choose(%go, %more, %sum) %neg = neg(%sum)\n"
      "  update %sum = %next update %was = %neg output \"next\" = %next }";
  const bool go[] = {true, false, true, true, false};
  fixture f;
  berth_error err;
  float sum = 0;
  (void)state;
  start(&f, text);
  for (size_t i = 0; i < sizeof go / sizeof *go; i++) {
    const float x[] = {(float)i + 1, 1};
    float was[2], got[2];
    OK(berth_session_write(f.session, "go", &go[i], 1, &err));
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    read_state(f.session, "was", was, 2);
    assert_true(was[0] == -sum);
    if (go[i]) sum += x[0];
    read_state(f.session, "sum", got, 2);
    assert_true(got[0] == sum);
  }
  session_finish(&f);
}

static void a_loop_may_read_a_state(void **state) {
  static const char text[] =
      "graph \"l\" { const %trips : i64[] = [3] const %yes : bool[] = [1] input %x : f32[2] state %s : f32[2] = [1, "
      "2]\n"
      "  %r, %go, %a = loop_begin(%trips, %yes, %x) %b = add(%a, %s)\n"
      "  %k, %m, %y = loop_end(%r, %go, %trips, %yes, %a, %b) update %s = %y output \"y\" = %y }";
  fixture f;
  berth_error err;
  const float x[] = {1, 0};
  (void)state;
  if (strcmp(device, "cpu") != 0) return; /* loops run on the CPU alone */
  start(&f, text);
  for (int i = 0; i < 2; i++) {
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
  }
  ASSERT_STATE(f.session, "s", 1 + 3 * 4, 3 * 6);
  session_finish(&f);
}

/* The weights' prelude runs again when they are set, beside states that are not its own. */
static void a_state_is_no_weight(void **state) {
  static const char text[] =
      "graph \"p\" { input %x : f32[2, 4] param %v : f32[4, 4] state %w : f32[4, 4] = zeros\n"
      "  %y = matmul(%x, %w) %z = matmul(%x, %v) %t = transpose(%x) {perm = [1, 0]} %g = matmul(%t, %y)\n"
      "  %next = add(%w, %v) update %w = %next output \"y\" = %y output \"z\" = %z output \"g\" = %g }";
  fixture f;
  berth_error err;
  float v[16], x[8] = {1, 0, 0, 0, 0, 1, 0, 0}, y[8];
  (void)state;
  for (int i = 0; i < 16; i++) v[i] = (float)i;
  start(&f, text);
  for (int run = 0; run < 3; run++) {
    OK(berth_session_set_param(f.session, "v", v, sizeof v, &err));
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "y", y, sizeof y, &err));
    for (int i = 0; i < 8; i++) assert_true(y[i] == (float)(run * i));
  }
  session_finish(&f);
}

/* ---- Graphs that devices rewrite ---- */

/* Reads every state of the session into room, one after the other. */
static size_t read_all(berth_session *session, float *room) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  berth_error err;
  size_t n = 0;
  for (uint32_t i = 0; i < berth_graph_n_states(graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    OK(berth_graph_value(graph, berth_graph_state_at(graph, i), &info, &err));
    OK(berth_session_state_read(session, info.name, room + n, (size_t)info.size, &err));
    n += (size_t)info.size / sizeof *room;
  }
  return n;
}

static void feed(berth_session *session, int run) {
  const berth_graph *graph = berth_plan_graph(berth_session_plan(session));
  static float data[4096];
  berth_error err;
  for (uint32_t i = 0; i < berth_graph_n_inputs(graph) + berth_graph_n_params(graph); i++) {
    const bool is_input = i < berth_graph_n_inputs(graph);
    const uint32_t index = is_input ? i : i - berth_graph_n_inputs(graph);
    uint64_t seed = i + 100u * (unsigned)(is_input ? run + 1 : 0);
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    if (!is_input && run != 0) continue;
    OK(berth_graph_value(graph, is_input ? berth_graph_input_at(graph, index) : berth_graph_param_at(graph, index),
                         &info, &err));
    for (size_t k = 0; k < info.size / 4; k++) data[k] = test_random_f32(&seed) * 0.5f;
    if (is_input)
      OK(berth_session_write(session, info.name, data, (size_t)info.size, &err));
    else
      OK(berth_session_set_param(session, info.name, data, (size_t)info.size, &err));
  }
}

/* As rewritten and shared as can be, and as plain as can be. */
static void compare_with_reference(const char *text) {
  static float got[8192], want[8192];
  const char *on = device;
  fixture f, plain;
  berth_error err;
  start(&f, text);
  device = "cpu";
  start_on(&plain, text, NULL, 0, BERTH_PLAN_REFERENCE | BERTH_PLAN_NO_REUSE, BERTH_SESSION_REFERENCE);
  device = on;
  for (int run = 0; run < 3; run++) {
    feed(f.session, run);
    feed(plain.session, run);
    OK(berth_session_run(f.session, &err));
    OK(berth_session_run(plain.session, &err));
    const size_t n = read_all(f.session, got);
    assert_int_equal(read_all(plain.session, want), n);
    session_assert_close(got, want, n);
  }
  session_finish(&f);
  session_finish(&plain);
}

static void rewritten_graphs_keep_their_states(void **state) {
  static const char *const texts[] = {
      /* channels last: what the states become has a twin */
      "graph \"conv\" { input %x : f32[1, 8, 6, 6] param %w : f32[8, 8, 3, 3] param %v : f32[8, 8, 1, 1]\n"
      "  state %s : f32[1, 8, 6, 6] = zeros state %t : f32[1, 8, 6, 6] = zeros\n"
      "  %a = conv(%x, %w) {pads = [1, 1, 1, 1]} %b = add(%a, %s) %c = relu(%b) %d = conv(%c, %v) %e = conv(%t, %v)\n"
      "  %g = add(%d, %e) update %s = %c update %t = %g output \"d\" = %d }",
      /* a residual sum over the state, and products beside each other */
      "graph \"product\" { input %x : f32[4, 16] param %q : f32[16, 16] param %k : f32[16, 16] param %b : f32[16]\n"
      "  state %s : f32[4, 16] = zeros state %t : f32[4, 16] = zeros state %u : f32[4, 16] = zeros\n"
      "  %m = matmul(%x, %q) %n = matmul(%x, %k) %o = add(%m, %b) %p = add(%o, %s) %r = softmax(%t)\n"
      "  update %s = %p update %t = %n update %u = %r output \"o\" = %o }",
      /* a chain whose middle and whose end are states */
      "graph \"chain\" { input %x : f32[64] state %s : f32[64] = zeros state %t : f32[64] = zeros\n"
      "  %a = add(%x, %s) %b = sigmoid(%a) %c = mul(%b, %t) %d = sub(%c, %x) %e = tanh(%d)\n"
      "  update %s = %b update %t = %e output \"e\" = %e }",
      /* attention over a cache that grows */
      "graph \"cache\" { input %x : f32[1, 8] param %q : f32[8, 8] state %k : f32[16, 8] = zeros\n"
      "  state %at : i32[] = zeros const %one : i32[] = [1]\n"
      "  %row = matmul(%x, %q) %keys = write_rows(%k, %row, %at) %next = add(%at, %one)\n"
      "  %y = attention(%row, %keys, %keys) {heads = 2} update %k = %keys update %at = %next output \"y\" = %y }",
  };
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) compare_with_reference(texts[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_finds_what_the_last_one_left),
      cmocka_unit_test(states_are_written_and_reset),
      cmocka_unit_test(states_survive_other_bindings_a_larger_arena_and_new_weights),
      cmocka_unit_test(a_clone_goes_on_from_there_by_itself),
      cmocka_unit_test(states_are_saved_and_restored),
      cmocka_unit_test(states_of_another_graph_are_refused),
      cmocka_unit_test(a_session_without_states_has_nothing_to_save),
      cmocka_unit_test(a_restore_that_fails_changes_nothing),
      cmocka_unit_test(extents_of_a_state_are_the_same_in_all_bindings),
      cmocka_unit_test(a_cache_is_filled_row_by_row),
      cmocka_unit_test(a_choice_decides_whether_a_state_moves_on),
      cmocka_unit_test(a_loop_may_read_a_state),
      cmocka_unit_test(a_state_is_no_weight),
      cmocka_unit_test(rewritten_graphs_keep_their_states),
  };
  int failed = cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
  device = test_gpu();
  return failed + cmocka_run_group_tests_name(device, tests, NULL, NULL);
}
