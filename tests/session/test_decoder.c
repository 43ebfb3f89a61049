/* A decoder that writes into caches with a capacity: one plan for every token. Token by token it gives what a prefill
 * of all tokens gives, in chunks too, on every device that is there. */
#include <math.h>
#include <stdio.h>

#include "sessions.h"

#define WIDTH 32
#define CAPACITY 64
#define KEYS 16 /* two heads of 8 that four of the queries share */
#define LAYERS 2

#define LAYER(l, x, y)                                                                               \
  "  %n" l " = rms_norm(%" x ") %q" l " = matmul(%n" l ", %wq" l ") %k" l " = matmul(%n" l ", %wk" l \
  ")\n"                                                                                              \
  "  %v" l " = matmul(%n" l ", %wv" l ") %r" l " = rope(%q" l                                        \
  ", %positions) {heads = 4}\n"                                                                      \
  "  %t" l " = rope(%k" l                                                                            \
  ", %positions) {heads = 2}\n"                                                                      \
  "  %all_keys" l " = write_rows(%keys" l ", %t" l                                                   \
  ", %position)\n"                                                                                   \
  "  %all_values" l " = write_rows(%values" l ", %v" l                                               \
  ", %position)\n"                                                                                   \
  "  %a" l " = attention(%r" l ", %all_keys" l ", %all_values" l                                     \
  ", _, _, %length)"                                                                                 \
  " {heads = 4, kv_heads = 2, mode = \"causal\"}\n"                                                  \
  "  %p" l " = matmul(%a" l ", %wo" l ") %" y " = add(%" x ", %p" l                                  \
  ")\n"                                                                                              \
  "  output \"keys" l "\" = %all_keys" l " output \"values" l "\" = %all_values" l "\n"

#define SOURCES(l)                                                          \
  "  param %wq" l " : f32[32, 32] param %wk" l " : f32[32, 16] param %wv" l \
  " : f32[32, 16]\n"                                                        \
  "  param %wo" l " : f32[32, 32] input %keys" l " : f32[64, 16] input %values" l " : f32[64, 16]\n"

static const char decoder[] =
    "graph \"decoder\" { input %x : f32[n, 32] input %positions : i32[n] input %position : i32[] input %length : "
    "i32[]\n" SOURCES("0") SOURCES("1") LAYER("0", "x", "y0") LAYER("1", "y0", "y1") "  output \"y\" = %y1 }";

static float tokens[CAPACITY * WIDTH];

typedef struct model {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  float caches[2 * LAYERS][CAPACITY * KEYS]; /* what a run left, for the next one */
} model;

static const char *const caches[2 * LAYERS] = {"keys0", "values0", "keys1", "values1"};

static void set_weights(berth_session *session) {
  static const char *const names[] = {"wq0", "wk0", "wv0", "wo0", "wq1", "wk1", "wv1", "wo1"};
  berth_error err;
  float weights[WIDTH * WIDTH];
  uint64_t seed = 3;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const size_t count = WIDTH * (size_t)(names[i][1] == 'q' || names[i][1] == 'o' ? WIDTH : KEYS);
    for (size_t k = 0; k < count; k++) weights[k] = 0.3f * test_random_f32(&seed);
    OK(berth_session_set_param(session, names[i], weights, count * sizeof *weights, &err));
  }
  for (size_t i = 0; i < CAPACITY * WIDTH; i++) tokens[i] = test_random_f32(&seed);
}

static void model_start(model *m, const char *device, int64_t n) {
  berth_error err;
  berth_dim dim = {"n", n};
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  memset(m, 0, sizeof *m);
  m->ctx = test_context_counting(&m->alloc);
  m->graph = session_parse(m->ctx, decoder);
  plan.flags = BERTH_PLAN_INPUTS_DIE;
  plan.dims = &dim;
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.device = device;
  OK(berth_session_create(m->graph, &desc, &m->session, &err));
  set_weights(m->session);
}

static void model_finish(model *m) {
  berth_session_destroy(m->session);
  berth_graph_destroy(m->graph);
  test_context_done(m->ctx, &m->alloc);
}

static void write_step(model *m, int32_t position, int32_t n) {
  berth_error err;
  int32_t positions[CAPACITY];
  const int32_t length = position + n;
  for (int32_t i = 0; i < n; i++) positions[i] = position + i;
  OK(berth_session_write(m->session, "x", tokens + position * WIDTH, (size_t)n * WIDTH * sizeof *tokens, &err));
  OK(berth_session_write(m->session, "positions", positions, (size_t)n * sizeof *positions, &err));
  OK(berth_session_write(m->session, "position", &position, sizeof position, &err));
  OK(berth_session_write(m->session, "length", &length, sizeof length, &err));
  for (int i = 0; i < 2 * LAYERS; i++)
    OK(berth_session_write(m->session, caches[i], m->caches[i], sizeof m->caches[i], &err));
}

/* Tokens [position, position + n), whose rows of the result go to y. */
static void model_step(model *m, int32_t position, int32_t n, float *y) {
  berth_error err;
  write_step(m, position, n);
  OK(berth_session_run(m->session, &err));
  OK(berth_session_read(m->session, "y", y, (size_t)n * WIDTH * sizeof *y, &err));
  for (int i = 0; i < 2 * LAYERS; i++)
    OK(berth_session_read(m->session, caches[i], m->caches[i], sizeof m->caches[i], &err));
}

static void prefill(const char *device, float *y) {
  model m;
  model_start(&m, device, CAPACITY);
  model_step(&m, 0, CAPACITY, y);
  model_finish(&m);
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

static void check_token_by_token(const char *device) {
  static float want[CAPACITY * WIDTH], got[CAPACITY * WIDTH];
  model m;
  prefill("cpu", want);
  prefill(device, got);
  session_assert_close(got, want, CAPACITY * WIDTH);
  memset(got, 0, sizeof got);
  model_start(&m, device, 1);
  for (int32_t t = 0; t < CAPACITY; t++) model_step(&m, t, 1, got + t * WIDTH);
  session_assert_close(got, want, CAPACITY * WIDTH);
  model_finish(&m);
}

static void token_by_token_is_a_prefill_of_all(void **state) {
  (void)state;
  on_every_device(check_token_by_token);
}

static void check_chunks(const char *device) {
  static float want[CAPACITY * WIDTH], got[CAPACITY * WIDTH];
  model m;
  prefill(device, want);
  model_start(&m, device, 24);
  model_step(&m, 0, 24, got);
  model_step(&m, 24, 24, got + 24 * WIDTH);
  session_bind(m.session, 1);
  for (int32_t t = 48; t < 56; t++) model_step(&m, t, 1, got + t * WIDTH);
  session_bind(m.session, 8);
  model_step(&m, 56, 8, got + 56 * WIDTH);
  session_assert_close(got, want, CAPACITY * WIDTH);
  model_finish(&m);
}

static void chunks_are_a_prefill_of_all(void **state) {
  (void)state;
  on_every_device(check_chunks);
}

/* Each cache has one place: what is written lies over what was there. */
static void check_places(const char *device) {
  model m;
  berth_error err;
  model_start(&m, device, 1);
  for (int i = 0; i < 2 * LAYERS; i++) {
    char name[32];
    berth_slot before = BERTH_SLOT_INIT, after = BERTH_SLOT_INIT;
    snprintf(name, sizeof name, "all_%s", caches[i]);
    const berth_plan *plan = berth_session_plan(m.session);
    OK(berth_plan_slot(plan, berth_graph_find(m.graph, caches[i]), &before, &err));
    OK(berth_plan_slot(plan, berth_graph_find(m.graph, name), &after, &err));
    assert_true(before.size == after.size);
    assert_true(before.offset == after.offset);
  }
  model_finish(&m);
}

static void caches_are_not_copied(void **state) {
  (void)state;
  on_every_device(check_places);
}

static void steps_allocate_nothing(void **state) {
  (void)state;
  float y[WIDTH];
  model m;
  berth_error err;
  model_start(&m, "cpu", 1);
  model_step(&m, 0, 1, y);
  const uint64_t calls = m.alloc.calls;
  for (int32_t t = 1; t < CAPACITY; t++) {
    write_step(&m, t, 1);
    OK(berth_session_run(m.session, &err));
  }
  assert_int_equal(m.alloc.calls, calls);
  model_finish(&m);
}

static void refuses(model *m, int32_t position, int32_t length, const char *part) {
  berth_error err;
  write_step(m, 0, 1);
  OK(berth_session_write(m->session, "position", &position, sizeof position, &err));
  OK(berth_session_write(m->session, "length", &length, sizeof length, &err));
  test_expect_error(berth_session_run(m->session, &err), BERTH_INVALID, &err, part);
}

static void the_cpu_names_positions_and_lengths_that_do_not_fit(void **state) {
  (void)state;
  float y[WIDTH];
  model m;
  model_start(&m, "cpu", 1);
  refuses(&m, CAPACITY, 1, "1 rows at position 64 do not fit a capacity of 64");
  refuses(&m, -1, 1, "node 'all_");
  refuses(&m, 0, 0, "a length of 0 is not within 1 and the capacity of 64");
  refuses(&m, 0, CAPACITY + 1, "node 'a0'");
  model_step(&m, 0, 1, y);
  model_finish(&m);
}

/* GPUs cannot say so: rows go nowhere, lengths are brought into range. */
static void check_out_of_range(const char *device) {
  float y[WIDTH], with_all[WIDTH];
  const int32_t far = CAPACITY, more = CAPACITY + 9;
  model m;
  berth_error err;
  if (strcmp(device, "cpu") == 0) return;
  model_start(&m, device, 1);
  for (int32_t t = 0; t < CAPACITY; t++) model_step(&m, t, 1, with_all);
  write_step(&m, CAPACITY - 1, 1);
  OK(berth_session_write(m.session, "position", &far, sizeof far, &err));
  OK(berth_session_write(m.session, "length", &more, sizeof more, &err));
  OK(berth_session_run(m.session, &err));
  OK(berth_session_read(m.session, "y", y, sizeof y, &err));
  session_assert_close(y, with_all, WIDTH);
  for (int i = 0; i < 2 * LAYERS; i++) {
    float after[CAPACITY * KEYS];
    OK(berth_session_read(m.session, caches[i], after, sizeof after, &err));
    assert_memory_equal(after, m.caches[i], sizeof after);
  }
  model_finish(&m);
}

static void gpus_leave_out_what_does_not_fit(void **state) {
  (void)state;
  on_every_device(check_out_of_range);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(token_by_token_is_a_prefill_of_all),
      cmocka_unit_test(chunks_are_a_prefill_of_all),
      cmocka_unit_test(caches_are_not_copied),
      cmocka_unit_test(steps_allocate_nothing),
      cmocka_unit_test(the_cpu_names_positions_and_lengths_that_do_not_fit),
      cmocka_unit_test(gpus_leave_out_what_does_not_fit),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
