/* States in sessions: what a run leaves is what the next one finds, on the CPU and on a GPU (support.h says which). */
#include <stdbool.h>
#include <stdio.h>

#include "sessions.h"

static const char *device = "cpu";

static void start_on(fixture *f, const char *text, const berth_dim *dims, size_t n_dims, uint32_t plan_flags,
                     uint32_t session_flags) {
  berth_error err;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(f, 0, sizeof *f);
  f->ctx = test_context_counting(&f->alloc);
  f->graph = session_parse(f->ctx, text);
  plan.flags = plan_flags;
  plan.dims = dims;
  plan.n_dims = n_dims;
  plan.effort = 1;
  desc.plan = &plan;
  desc.flags = session_flags;
  desc.device = device;
  OK(berth_session_create(f->graph, &desc, &f->session, &err));
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
  float rows[64];
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
  session_bind(f.session, 32);
  assert_true(berth_arena_size(berth_session_arena(f.session)) > small);
  ASSERT_STATE(f.session, "mean", 6, 0);
  run_mean(f.session, 32, 1, 2);
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
  REFUSED(berth_session_state_restore(f.session, saved, size, &err), "was not saved from");
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
      REFUSED(berth_session_state_restore(f.session, saved, size, &err), "was not saved from");
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

/* ---- Random graphs against a few lines of C ---- */

enum {
  MOST_VALUES = 40,
  ELEMENTS = 4, /* every value is f32[2, 2] */
  MOST_STATES = 5
};

typedef struct made {
  char op; /* x: input, s: state, or what run_model knows */
  int a, b;
} made;

typedef struct model {
  made values[MOST_VALUES];
  int n, n_states, next[MOST_STATES]; /* states are values 1 and so on; -1: not updated */
  float state[MOST_STATES][ELEMENTS], value[MOST_VALUES][ELEMENTS];
} model;

static int any(uint64_t *seed, int n) { return (int)(test_random(seed) % (uint64_t)n); }

static void make_model(model *m, uint64_t seed) {
  static const char ops[] = "naamvtirc";
  memset(m, 0, sizeof *m);
  m->n_states = 1 + any(&seed, MOST_STATES);
  m->values[m->n++].op = 'x';
  for (int i = 0; i < m->n_states; i++) {
    m->values[m->n++].op = 's';
    for (int k = 0; k < ELEMENTS; k++) m->state[i][k] = (float)any(&seed, 9) - 4;
  }
  const int end = m->n + 2 + any(&seed, 14);
  while (m->n < end) {
    made *v = &m->values[m->n];
    v->op = ops[any(&seed, (int)sizeof ops - 1)];
    v->a = any(&seed, m->n);
    v->b = any(&seed, m->n);
    m->n++;
  }
  for (int i = 0; i < m->n_states; i++) m->next[i] = any(&seed, 8) == 0 ? -1 : any(&seed, m->n);
}

static void run_model(model *m, const float *x) {
  for (int v = 0, s = 0; v < m->n; v++) {
    const float *a = m->value[m->values[v].a], *b = m->value[m->values[v].b];
    float *y = m->value[v];
    for (int k = 0; k < ELEMENTS; k++) switch (m->values[v].op) {
        case 'x': y[k] = x[k]; break;
        case 's': y[k] = m->state[s][k]; break;
        case 'n': y[k] = -a[k]; break;
        case 'a': y[k] = a[k] + b[k]; break;
        case 'm': y[k] = a[k] > b[k] ? a[k] : b[k]; break;
        case 't': y[k] = a[k % 2 * 2 + k / 2]; break;
        case 'r': y[k] = k < 2 ? a[k + 2] : b[k - 2]; break; /* a roll: concat of rows */
        case 'c': y[k] = k < 2 ? a[k] : b[k]; break;         /* rows of b written into a */
        default: y[k] = a[k]; break;                         /* i, v: the same elements */
      }
    s += m->values[v].op == 's';
  }
  for (int i = 0; i < m->n_states; i++)
    if (m->next[i] >= 0) memcpy(m->state[i], m->value[m->next[i]], sizeof m->state[i]);
}

static size_t print_node(const made *v, int i, char *text, size_t size) {
  switch (v->op) {
    case 'n': return (size_t)snprintf(text, size, "%%v%d = neg(%%v%d)\n", i, v->a);
    case 'a': return (size_t)snprintf(text, size, "%%v%d = add(%%v%d, %%v%d)\n", i, v->a, v->b);
    case 'm': return (size_t)snprintf(text, size, "%%v%d = max(%%v%d, %%v%d)\n", i, v->a, v->b);
    case 't': return (size_t)snprintf(text, size, "%%v%d = transpose(%%v%d) {perm = [1, 0]}\n", i, v->a);
    case 'i': return (size_t)snprintf(text, size, "%%v%d = identity(%%v%d)\n", i, v->a);
    case 'v':
      return (size_t)snprintf(
          text, size, "%%w%d = reshape(%%v%d) {shape = [4]}\n%%v%d = reshape(%%w%d) {shape = [2, 2]}\n", i, v->a, i, i);
    case 'r':
      return (size_t)snprintf(
          text, size,
          "%%p%d = narrow(%%v%d) {starts = [1], ends = [2]}\n"
          "%%q%d = narrow(%%v%d) {starts = [0], ends = [1]}\n%%v%d = concat(%%p%d, %%q%d) {axis = 0}\n",
          i, v->a, i, v->b, i, i, i);
    default:
      return (size_t)snprintf(
          text, size, "%%q%d = narrow(%%v%d) {starts = [1], ends = [2]}\n%%v%d = write_rows(%%v%d, %%q%d, %%at)\n", i,
          v->b, i, v->a, i);
  }
}

static void print_model(const model *m, char *text, size_t size) {
  size_t n = (size_t)snprintf(text, size, "graph \"r\" {\nconst %%at : i32[] = [1]\ninput %%v0 : f32[2, 2]\n");
  for (int i = 0; i < m->n_states; i++)
    n += (size_t)snprintf(text + n, size - n, "state %%v%d : f32[2, 2] = [%g, %g, %g, %g]\n", i + 1,
                          (double)m->state[i][0], (double)m->state[i][1], (double)m->state[i][2],
                          (double)m->state[i][3]);
  for (int i = m->n_states + 1; i < m->n; i++) n += print_node(&m->values[i], i, text + n, size - n);
  for (int i = 0; i < m->n_states; i++)
    if (m->next[i] >= 0) n += (size_t)snprintf(text + n, size - n, "update %%v%d = %%v%d\n", i + 1, m->next[i]);
  snprintf(text + n, size - n, "output \"last\" = %%v%d\noutput \"middle\" = %%v%d\n}\n", m->n - 1,
           (m->n + m->n_states) / 2 + 1);
}

static void compare_model(model m, const char *text, uint32_t plan_flags, uint32_t session_flags, uint64_t seed) {
  fixture f;
  berth_error err;
  const int middle = (m.n + m.n_states) / 2 + 1;
  start_on(&f, text, NULL, 0, plan_flags, session_flags);
  for (int run = 0; run < 4; run++) {
    float x[ELEMENTS], got[2][ELEMENTS];
    for (int k = 0; k < ELEMENTS; k++) x[k] = (float)(run + k - 2);
    OK(berth_session_write(f.session, "v0", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    run_model(&m, x);
    OK(berth_session_read(f.session, "last", got[0], sizeof got[0], &err));
    OK(berth_session_read(f.session, "middle", got[1], sizeof got[1], &err));
    bool is_same = true;
    for (int k = 0; k < ELEMENTS; k++)
      is_same = is_same && got[0][k] == m.value[m.n - 1][k] && got[1][k] == m.value[middle][k];
    for (int i = 0; i < m.n_states; i++) {
      char name[16];
      snprintf(name, sizeof name, "v%d", i + 1);
      read_state(f.session, name, got[0], ELEMENTS);
      for (int k = 0; k < ELEMENTS; k++) is_same = is_same && got[0][k] == m.state[i][k];
    }
    if (!is_same)
      fail_msg("run %d with flags 0x%x, 0x%x on %s, seed %llu:\n%s", run, plan_flags, session_flags, device,
               (unsigned long long)seed, text);
  }
  session_finish(&f);
}

static void random_graphs_run_as_written(void **state) {
  static const uint32_t flags[] = {0,
                                   BERTH_PLAN_INPUTS_DIE,
                                   BERTH_PLAN_NO_INPLACE,
                                   BERTH_PLAN_NO_REUSE,
                                   BERTH_PLAN_NO_STRIDED,
                                   BERTH_PLAN_NO_PASSES,
                                   BERTH_PLAN_REFERENCE};
  const int n_graphs = strcmp(device, "cpu") == 0 ? 150 : strcmp(device, "loops") == 0 ? 60 : 12;
  static char text[16384];
  (void)state;
  for (uint64_t seed = 1; seed <= (uint64_t)n_graphs; seed++) {
    model m;
    make_model(&m, seed);
    if (m.values[m.n - 1].op == 's' || m.values[(m.n + m.n_states) / 2 + 1].op == 's') continue;
    print_model(&m, text, sizeof text);
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) compare_model(m, text, flags[i], 0, seed);
    if (strcmp(device, "cpu") == 0) compare_model(m, text, 0, BERTH_SESSION_CHECKED, seed);
  }
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
      cmocka_unit_test(random_graphs_run_as_written),
  };
  int failed = cmocka_run_group_tests_name("cpu", tests, NULL, NULL);
  device = test_gpu();
  return failed + cmocka_run_group_tests_name(device, tests, NULL, NULL);
}
