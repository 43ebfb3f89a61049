/* examples/decoder: caches with a capacity as states, and one plan for every token. Token by token it gives what a
 * prefill of all tokens gives, in chunks too, on every device that is there. */
#include <stdio.h>
#include <stdlib.h>

#include "sessions.h"

#define CAPACITY 64
#define VOCABULARY 64
#define KEYS 16 /* two heads of 8, each for two of the queries */
#define CACHES 4

static const char *const caches[CACHES] = {"keys0", "values0", "keys1", "values1"};
typedef float cache[CAPACITY * KEYS];

typedef struct model {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
} model;

static void set_weights(const model *m) {
  static float weights[VOCABULARY * 32];
  berth_error err;
  uint64_t seed = 3;
  for (uint32_t i = 0; i < berth_graph_n_params(m->graph); i++) {
    berth_value_info info = BERTH_VALUE_INFO_INIT;
    OK(berth_graph_value(m->graph, berth_graph_param_at(m->graph, i), &info, &err));
    assert_true(info.size <= sizeof weights);
    for (size_t k = 0; k < info.size / sizeof *weights; k++) weights[k] = 0.4f * test_random_f32(&seed);
    OK(berth_session_set_param(m->session, info.name, weights, (size_t)info.size, &err));
  }
}

static void model_start(model *m, const char *device, int64_t n) {
  const char *source = getenv("BERTH_SRC");
  char path[1024];
  berth_error err;
  berth_dim dim = {"n", n};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(m, 0, sizeof *m);
  snprintf(path, sizeof path, "%s/examples/decoder/decoder.berth", source != NULL ? source : ".");
  m->ctx = test_context_counting(&m->alloc);
  OK(berth_graph_load(m->ctx, path, &m->graph, &err));
  plan.dims = &dim;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = device;
  OK(berth_session_create(m->graph, &desc, &m->session, &err));
  set_weights(m);
}

static void model_finish(model *m) {
  berth_session_destroy(m->session);
  berth_graph_destroy(m->graph);
  test_context_done(m->ctx, &m->alloc);
}

static int32_t token_at(int32_t position) { return 11 * position % VOCABULARY; }

/* Tokens [first, first + n), as if the first of them stood at `position`. */
static berth_status run_tokens(model *m, int32_t first, int32_t n, int32_t position, berth_error *out) {
  berth_error err;
  int32_t tokens[CAPACITY];
  for (int32_t i = 0; i < n; i++) tokens[i] = token_at(first + i);
  OK(berth_session_write(m->session, "token", tokens, (size_t)n * sizeof *tokens, &err));
  OK(berth_session_write(m->session, "position", &position, sizeof position, &err));
  return berth_session_run(m->session, out);
}

/* Tokens [position, position + n), whose logits go to their place in y. */
static void model_step(model *m, int32_t position, int32_t n, float *y) {
  berth_error err;
  OK(run_tokens(m, position, n, position, &err));
  OK(berth_session_read(m->session, "logits", y + position * VOCABULARY, (size_t)n * VOCABULARY * sizeof *y, &err));
}

static void prefill(const char *device, float *y) {
  model m;
  model_start(&m, device, CAPACITY);
  model_step(&m, 0, CAPACITY, y);
  model_finish(&m);
}

static void read_caches(const model *m, cache *out) {
  berth_error err;
  for (int i = 0; i < CACHES; i++) OK(berth_session_state_read(m->session, caches[i], out[i], sizeof out[i], &err));
}

/* ---- Tests ---- */

typedef void (*device_test)(const char *device);

static void on_every_device(device_test test) {
  berth_context *ctx = test_context();
  for (uint32_t i = 0; i < berth_device_count(ctx); i++) {
    berth_device_info info = BERTH_DEVICE_INFO_INIT;
    berth_error err;
    OK(berth_device_at(ctx, i, &info, &err));
    if (!info.available) continue;
    print_message("# %s\n", info.name);
    test(info.name);
  }
  berth_context_destroy(ctx);
}

static float want[CAPACITY * VOCABULARY], got[CAPACITY * VOCABULARY];

static void check_token_by_token(const char *device) {
  model m;
  prefill("cpu", want);
  prefill(device, got);
  session_assert_close(got, want, CAPACITY * VOCABULARY);
  memset(got, 0, sizeof got);
  model_start(&m, device, 1);
  for (int32_t t = 0; t < CAPACITY; t++) model_step(&m, t, 1, got);
  session_assert_close(got, want, CAPACITY * VOCABULARY);
  model_finish(&m);
}

static void token_by_token_is_a_prefill_of_all(void **state) {
  (void)state;
  on_every_device(check_token_by_token);
}

/* The caches are the same in all bindings. */
static void check_chunks(const char *device) {
  model m;
  prefill(device, want);
  memset(got, 0, sizeof got);
  model_start(&m, device, 24);
  model_step(&m, 0, 24, got);
  model_step(&m, 24, 24, got);
  session_bind(m.session, 1);
  for (int32_t t = 48; t < 56; t++) model_step(&m, t, 1, got);
  session_bind(m.session, 8);
  model_step(&m, 56, 8, got);
  session_assert_close(got, want, CAPACITY * VOCABULARY);
  model_finish(&m);
}

static void chunks_are_a_prefill_of_all(void **state) {
  (void)state;
  on_every_device(check_chunks);
}

/* Each cache has one place: what is written lies over what was there, and is of no size of its own. */
static void check_places(const char *device) {
  model m;
  berth_error err;
  model_start(&m, device, 1);
  const berth_plan *plan = berth_session_plan(m.session);
  for (int i = 0; i < CACHES; i++) {
    char name[32];
    berth_slot before = BERTH_SLOT_INIT, after = BERTH_SLOT_INIT;
    snprintf(name, sizeof name, "next_%s", caches[i]);
    OK(berth_plan_slot(plan, berth_graph_find(m.graph, caches[i]), &before, &err));
    OK(berth_plan_slot(plan, berth_graph_find(m.graph, name), &after, &err));
    assert_true(before.offset != BERTH_OFFSET_NONE);
    assert_true(before.offset == after.offset);
  }
  const berth_plan_info info = test_plan_info(plan);
  assert_true(info.state_size >= CACHES * sizeof(cache));
  assert_true(info.activations_size + info.scratch_size < sizeof(cache)); /* no room for a copy of any of them */
  model_finish(&m);
}

static void caches_are_not_copied(void **state) {
  (void)state;
  on_every_device(check_places);
}

static void steps_allocate_nothing(void **state) {
  (void)state;
  model m;
  berth_error err;
  model_start(&m, "cpu", 1);
  OK(run_tokens(&m, 0, 1, 0, &err));
  const uint64_t calls = m.alloc.calls;
  for (int32_t t = 1; t < CAPACITY; t++) OK(run_tokens(&m, t, 1, t, &err));
  assert_int_equal(m.alloc.calls, calls);
  model_finish(&m);
}

/* A position that does not fit is refused before anything is written. */
static void the_cpu_names_positions_that_do_not_fit(void **state) {
  (void)state;
  static cache before[CACHES], after[CACHES];
  model m;
  berth_error err;
  model_start(&m, "cpu", 2);
  OK(run_tokens(&m, 0, 2, 0, &err));
  read_caches(&m, before);
  test_expect_error(run_tokens(&m, 2, 2, CAPACITY - 1, &err), BERTH_INVALID, &err, "node 'next_");
  assert_non_null(strstr(err.message, "2 rows at position 63 do not fit a capacity of 64"));
  test_expect_error(run_tokens(&m, 2, 2, -1, &err), BERTH_INVALID, &err, "2 rows at position -1 do not fit");
  read_caches(&m, after);
  assert_memory_equal(before, after, sizeof before);
  model_step(&m, 2, 2, got);
  model_finish(&m);
}

/* GPUs cannot say so: rows go nowhere, lengths are brought into range. */
static void check_out_of_range(const char *device) {
  static cache before[CACHES], after[CACHES];
  model m;
  berth_error err;
  if (strcmp(device, "cpu") == 0) return;
  model_start(&m, device, 1);
  for (int32_t t = 0; t < CAPACITY; t++) OK(run_tokens(&m, t, 1, t, &err));
  read_caches(&m, before);
  OK(run_tokens(&m, 0, 1, CAPACITY + 9, &err));
  OK(run_tokens(&m, 0, 1, -7, &err));
  read_caches(&m, after);
  assert_memory_equal(before, after, sizeof before);
  model_finish(&m);
}

static void gpus_leave_out_what_does_not_fit(void **state) {
  (void)state;
  on_every_device(check_out_of_range);
}

/* ---- A ring ---- */

#define STEPS 30
#define CACHED(rows, write, attend)                                                                           \
  "graph \"g\" { input %q : f32[1, 16] input %k : f32[1, 16] input %v : f32[1, 16] input %position : i32[]\n" \
  "  state %keys : f32[" rows ", 16] = zeros state %values : f32[" rows                                       \
  ", 16] = zeros\n"                                                                                           \
  "  const %one : i32[] = [1] const %room : i32[] = [" rows                                                   \
  "] %many = add(%position, %one)\n"                                                                          \
  "  %length = min(%many, %room) %k1 = write_rows(%keys, %k, %position) {" write                              \
  "}\n"                                                                                                       \
  "  %v1 = write_rows(%values, %v, %position) {" write                                                        \
  "} update %keys = %k1 update %values = %v1\n"                                                               \
  "  %y = attention(%q, %k1, %v1, _, _, %length) {heads = 2" attend "} output \"y\" = %y }"

static berth_session *start_text(berth_context *ctx, const char *text, const char *device, berth_graph **graph) {
  berth_error err;
  berth_session *session;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  *graph = session_parse(ctx, text);
  desc.device = device;
  OK(berth_session_create(*graph, &desc, &session, &err));
  return session;
}

static void ring_step(berth_session *session, int32_t position, float *y) {
  static const char *const inputs[] = {"q", "k", "v"};
  berth_error err;
  uint64_t seed = 100 + (uint64_t)position;
  for (int i = 0; i < 3; i++) {
    float row[16];
    for (int k = 0; k < 16; k++) row[k] = test_random_f32(&seed);
    OK(berth_session_write(session, inputs[i], row, sizeof row, &err));
  }
  OK(berth_session_write(session, "position", &position, sizeof position, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, 16 * sizeof *y, &err));
}

/* A ring of 8 rows holds what a window of 8 sees of a cache of all rows. */
static void check_ring(const char *device) {
  float of_window[16], of_ring[16];
  berth_context *ctx = test_context();
  berth_graph *graphs[2];
  berth_session *window =
      start_text(ctx, CACHED("30", "", ", mode = \"sliding_window\", window = 8"), device, &graphs[0]);
  berth_session *ring = start_text(ctx, CACHED("8", "ring = 1", ""), device, &graphs[1]);
  for (int32_t t = 0; t < STEPS; t++) {
    ring_step(window, t, of_window);
    ring_step(ring, t, of_ring);
    session_assert_close(of_ring, of_window, 16);
  }
  berth_session_destroy(window);
  berth_session_destroy(ring);
  for (int i = 0; i < 2; i++) berth_graph_destroy(graphs[i]);
  berth_context_destroy(ctx);
}

static void a_ring_is_a_sliding_window(void **state) {
  (void)state;
  on_every_device(check_ring);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_by_token_is_a_prefill_of_all),
      cmocka_unit_test(chunks_are_a_prefill_of_all),
      cmocka_unit_test(caches_are_not_copied),
      cmocka_unit_test(steps_allocate_nothing),
      cmocka_unit_test(the_cpu_names_positions_that_do_not_fit),
      cmocka_unit_test(gpus_leave_out_what_does_not_fit),
      cmocka_unit_test(a_ring_is_a_sliding_window),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
