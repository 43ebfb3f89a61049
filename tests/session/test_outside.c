/* Sessions that read memory outside their arena, take weights with their graph, and are cloned. */
#include <pthread.h>
#include <stdlib.h>

#include "sessions.h"

/* ---- Outside the arena ---------------------------------------------------------------------------------------- */

static const uint32_t all_outside =
    BERTH_PLAN_PARAMS_OUTSIDE | BERTH_PLAN_INPUTS_OUTSIDE | BERTH_PLAN_CONSTANTS_OUTSIDE;

static void reads_what_lies_outside(void **state) {
  fixture inside, f;
  berth_error err;
  float want[12], y[12];
  void *data;
  size_t size;
  (void)state;
  session_start(&inside);
  session_run(inside.session, 2, want);
  session_start_with(&f, session_text, 2, all_outside, 0);
  OK(berth_session_use(f.session, "w", session_w, sizeof session_w, &err));
  REFUSED(berth_session_run(f.session, &err), "input 'x' lies outside the arena and has no memory yet");
  REFUSED(berth_session_write(f.session, "x", session_x, 64, &err), "outside");
  REFUSED(berth_session_input_data(f.session, 0, &data, &size, &err), "outside");
  REFUSED(berth_session_use(f.session, "x", session_x, 63, &err), "'x'");
  REFUSED(berth_session_use(f.session, "x", NULL, 64, &err), "NULL");
  REFUSED(berth_session_use(f.session, "x", (const char *)session_x + 1, 64, &err), "aligned");
  OK(berth_session_use(f.session, "x", session_x, 64, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  session_assert_close(y, want, 12);
  static const float other[6] = {0, 0, 0, 0, 0, 100};
  REFUSED(berth_session_use(f.session, "c", other, sizeof other, &err), "no input or param 'c'");
  session_finish(&inside);
  session_finish(&f);
}

/* set_param copies: the caller's array may go. */
static void copies_params_outside(void **state) {
  fixture inside, f;
  berth_error err;
  float want[12], y[12], copy[48];
  (void)state;
  session_start(&inside);
  session_run(inside.session, 2, want);
  session_start_with(&f, session_text, 2, BERTH_PLAN_PARAMS_OUTSIDE, 0);
  memcpy(copy, session_w, sizeof session_w);
  OK(berth_session_set_param(f.session, "w", copy, sizeof copy, &err));
  memset(copy, 0, sizeof copy);
  session_run(f.session, 2, y);
  session_assert_close(y, want, 12);
  OK(berth_session_set_param(f.session, "w", copy, sizeof copy, &err));
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  session_bind(f.session, 3);
  session_bind(f.session, 2);
  session_run(f.session, 2, y);
  session_assert_close(y, want, 12);
  session_finish(&inside);
  session_finish(&f);
}

/* The memory of an input was given for one shape; under a larger one it must be named again. */
static void inputs_outside_are_named_for_each_shape(void **state) {
  fixture f;
  berth_error err;
  float y[12];
  (void)state;
  session_start_with(&f, session_text, 2, BERTH_PLAN_INPUTS_OUTSIDE, 0);
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  float *exact = malloc(64);
  assert_non_null(exact);
  memcpy(exact, session_x, 64);
  OK(berth_session_use(f.session, "x", exact, 64, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_bind(f.session, (berth_dim[]){{"n", 8}}, 1, &err));
  REFUSED(berth_session_run(f.session, &err), "input 'x'");
  OK(berth_session_use(f.session, "x", session_x, 256, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", (float[48]){0}, 192, &err));
  session_bind(f.session, 2);
  OK(berth_session_use(f.session, "x", exact, 64, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  free(exact);
  session_finish(&f);
}

/* Outputs that show an input or a part of it, wherever that lies. */
static void outputs_may_show_inputs(void **state) {
  static const char views[] =
      "graph \"v\" { input %x : f32[n, 8] %r = narrow(%x) {starts = [1], ends = [2]} %t = transpose(%x) {perm = [1, "
      "0]}\n"
      " output \"x\" = %x output \"r\" = %r output \"t\" = %t }";
  (void)state;
  for (int k = 0; k < 2; k++) {
    fixture f;
    berth_error err;
    float out[16];
    const void *data = &f;
    size_t size = 1;
    session_start_with(&f, views, 2, k == 0 ? 0 : BERTH_PLAN_INPUTS_OUTSIDE, 0);
    if (k == 1) {
      REFUSED(berth_session_read(f.session, "x", out, 64, &err), "output 0 shows 'x'");
      REFUSED(berth_session_output_data(f.session, 1, &data, &size, &err), "output 1 shows 'x'");
      assert_true(data == NULL && size == 0);
      OK(berth_session_use(f.session, "x", session_x, 64, &err));
    } else {
      OK(berth_session_write(f.session, "x", session_x, 64, &err));
    }
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "x", out, 64, &err));
    assert_memory_equal(out, session_x, 64);
    OK(berth_session_read(f.session, "r", out, 32, &err));
    assert_memory_equal(out, session_x + 8, 32);
    OK(berth_session_output_data(f.session, 1, &data, &size, &err));
    assert_int_equal(size, 32);
    assert_memory_equal(data, session_x + 8, 32);
    if (k == 1) assert_ptr_equal(data, session_x + 8);
    OK(berth_session_read(f.session, "t", out, 64, &err));
    for (int i = 0; i < 16; i++) assert_true(out[i] == session_x[i % 2 * 8 + i / 2]);
    session_finish(&f);
  }
}

static void runs_graphs_without_nodes(void **state) {
  fixture f;
  berth_error err;
  float out[4];
  (void)state;
  session_start_with(
      &f,
      "graph \"e\" { input %x : f32[4] param %w : f32[4] const %c : f32[1] = [7] output \"x\" = %x output \"w\" = %w"
      " output \"c\" = %c }",
      0, 0, 0);
  OK(berth_session_set_param(f.session, "w", session_w, 16, &err));
  OK(berth_session_write(f.session, "x", session_x, 16, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "x", out, 16, &err));
  assert_memory_equal(out, session_x, 16);
  OK(berth_session_read(f.session, "w", out, 16, &err));
  assert_memory_equal(out, session_w, 16);
  OK(berth_session_read(f.session, "c", out, 4, &err));
  assert_true(out[0] == 7);
  session_finish(&f);
}

/* ---- Clones --------------------------------------------------------------------------------------------------- */

static void clones_are_independent(void **state) {
  fixture f;
  berth_error err;
  berth_session *clone;
  float y[12], again[12], zero[48] = {0};
  (void)state;
  session_start(&f);
  session_bind(f.session, 5);
  session_bind(f.session, 2);
  session_run(f.session, 2, y);
  OK(berth_session_clone(f.session, &clone, &err));
  assert_ptr_not_equal(berth_arena_data(berth_session_arena(clone)), berth_arena_data(berth_session_arena(f.session)));
  OK(berth_session_read(clone, "y", again, sizeof again, &err)); /* the same state, outputs too */
  assert_memory_equal(y, again, sizeof y);
  OK(berth_session_set_param(f.session, "w", zero, sizeof zero, &err));
  OK(berth_session_run(clone, &err));
  OK(berth_session_read(clone, "y", again, sizeof again, &err));
  assert_memory_equal(y, again, sizeof y);
  berth_session_destroy(f.session);
  f.session = clone;
  session_bind(clone, 5);
  session_bind(clone, 2);
  session_run(clone, 2, again);
  assert_memory_equal(y, again, sizeof y);
  test_expect_error(berth_session_clone(NULL, &clone, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_session_clone(f.session, NULL, &err), BERTH_INVALID, &err, NULL);
  session_finish(&f);
}

static void clones_know_what_is_not_set(void **state) {
  fixture f;
  berth_error err;
  berth_session *clone;
  (void)state;
  session_start_with(&f, session_text, 2, 0, 0);
  OK(berth_session_clone(f.session, &clone, &err));
  REFUSED(berth_session_run(clone, &err), "param 'w'");
  OK(berth_session_set_param(clone, "w", session_w, sizeof session_w, &err));
  OK(berth_session_run(clone, &err));
  REFUSED(berth_session_run(f.session, &err), "param 'w'");
  berth_session_destroy(clone);
  session_finish(&f);
}

/* What was set last counts: a copy, then the caller's memory. */
static void clones_take_what_lies_outside(void **state) {
  fixture f;
  berth_error err;
  berth_session *clone;
  float y[12], again[12], zero[48] = {0};
  (void)state;
  session_start_with(&f, session_text, 2, all_outside, 0);
  OK(berth_session_set_param(f.session, "w", zero, sizeof zero, &err));
  OK(berth_session_use(f.session, "w", session_w, sizeof session_w, &err));
  OK(berth_session_use(f.session, "x", session_x, 64, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  OK(berth_session_clone(f.session, &clone, &err));
  OK(berth_session_run(clone, &err));
  OK(berth_session_read(clone, "y", again, sizeof again, &err));
  assert_memory_equal(y, again, sizeof y);
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  berth_session_destroy(clone);
  OK(berth_session_clone(f.session, &clone, &err));
  OK(berth_session_set_param(f.session, "w", zero, sizeof zero, &err)); /* the clone has a copy of its own */
  OK(berth_session_run(clone, &err));
  OK(berth_session_read(clone, "y", again, sizeof again, &err));
  assert_memory_equal(y, again, sizeof y);
  berth_session_destroy(clone);
  session_finish(&f);
}

/* ---- Weights from a file ---- */

/* The params come with the graph; graph and weights may go before the session. */
static void takes_attached_weights(void **state) {
  static const char header[] = "{\"w\":{\"dtype\":\"F32\",\"shape\":[8,6],\"data_offsets\":[0,192]}}";
  static _Alignas(64) unsigned char file[8 + sizeof header - 1 + 192];
  static const uint32_t flags[] = {0, BERTH_PLAN_PARAMS_OUTSIDE};
  float want[12], y[12];
  fixture f;
  (void)state;
  session_start(&f);
  session_run(f.session, 2, want);
  session_finish(&f);
  memset(file, 0, 8);
  file[0] = sizeof header - 1;
  memcpy(file + 8, header, sizeof header - 1);
  memcpy(file + 8 + sizeof header - 1, session_w, sizeof session_w);
  for (int k = 0; k < 2; k++) {
    berth_error err;
    berth_weights *weights;
    berth_session *clone;
    berth_session_desc desc = BERTH_SESSION_DESC_INIT;
    berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
    memset(&f, 0, sizeof f);
    f.ctx = test_context_counting(&f.alloc);
    f.graph = session_parse(f.ctx, session_text);
    OK(berth_weights_from_memory(f.ctx, file, sizeof file, &weights, &err));
    OK(berth_graph_attach(f.graph, weights, &err));
    berth_weights_destroy(weights);
    plan.flags = flags[k];
    plan.dims = (berth_dim[]){{"n", 2}};
    plan.n_dims = 1;
    desc.plan = &plan;
    OK(berth_session_create(f.graph, &desc, &f.session, &err));
    berth_graph_destroy(f.graph);
    f.graph = NULL;
    session_run(f.session, 2, y);
    session_assert_close(y, want, 12);
    OK(berth_session_clone(f.session, &clone, &err));
    berth_session_destroy(f.session);
    f.session = clone;
    session_bind(clone, 9);
    session_bind(clone, 2);
    session_run(clone, 2, y);
    session_assert_close(y, want, 12);
    session_finish(&f);
  }
}

/* ---- Threads ---- */

typedef struct worker {
  pthread_t thread;
  berth_session *session;
  float y[12];
  berth_status status;
} worker;

/* Binding allocates from the context that all of them share, and constants are shared between their graphs. */
static void *work(void *argument) {
  worker *w = argument;
  for (int64_t round = 0; round < 10 && w->status == BERTH_OK; round++) {
    w->status = berth_session_bind(w->session, (berth_dim[]){{"n", round + 3}}, 1, NULL);
    if (w->status == BERTH_OK) w->status = berth_session_bind(w->session, (berth_dim[]){{"n", 2}}, 1, NULL);
    if (w->status == BERTH_OK) w->status = berth_session_write(w->session, "x", session_x, 64, NULL);
    if (w->status == BERTH_OK) w->status = berth_session_run(w->session, NULL);
  }
  if (w->status == BERTH_OK) w->status = berth_session_read(w->session, "y", w->y, sizeof w->y, NULL);
  berth_session_destroy(w->session);
  return NULL;
}

static void clones_run_beside_each_other(void **state) {
  fixture f;
  berth_error err;
  float want[12];
  worker workers[4] = {0};
  (void)state;
  session_start(&f);
  session_run(f.session, 2, want);
  for (int i = 0; i < 4; i++) OK(berth_session_clone(f.session, &workers[i].session, &err));
  for (int i = 0; i < 4; i++) assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
  for (int i = 0; i < 4; i++) {
    assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    assert_int_equal(workers[i].status, BERTH_OK);
    assert_memory_equal(workers[i].y, want, sizeof want);
  }
  session_finish(&f);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads_what_lies_outside),
      cmocka_unit_test(copies_params_outside),
      cmocka_unit_test(inputs_outside_are_named_for_each_shape),
      cmocka_unit_test(outputs_may_show_inputs),
      cmocka_unit_test(runs_graphs_without_nodes),
      cmocka_unit_test(clones_are_independent),
      cmocka_unit_test(clones_know_what_is_not_set),
      cmocka_unit_test(clones_take_what_lies_outside),
      cmocka_unit_test(takes_attached_weights),
      cmocka_unit_test(clones_run_beside_each_other),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
