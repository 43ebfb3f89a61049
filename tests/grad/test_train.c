/* Training beyond the plain step: gradients of several runs, weights of 16 bits, adapters beside frozen weights. */
#include <math.h>
#include <stdio.h>

#include "check.h"

typedef struct trained {
  test_alloc alloc;
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
} trained;

static void open_text(trained *t, const char *text) {
  berth_error err;
  *t = (trained){0};
  t->ctx = test_context_counting(&t->alloc);
  OK(berth_graph_parse(t->ctx, text, strlen(text), &t->graph, &err));
}

static void open_session(trained *t, const char *device, const berth_train_desc *desc) {
  berth_session_desc how = BERTH_SESSION_DESC_INIT;
  berth_error err;
  how.device = device;
  OK(berth_graph_train(t->graph, berth_graph_find(t->graph, "loss"), desc, &err));
  OK(berth_graph_verify(t->graph, &err));
  OK(berth_session_create(t->graph, &how, &t->session, &err));
  OK(berth_plan_check(berth_session_plan(t->session), &err));
}

static void close_all(trained *t) {
  berth_session_destroy(t->session);
  berth_graph_destroy(t->graph);
  test_context_done(t->ctx, &t->alloc);
}

static void run_step(trained *t, float rate) {
  berth_error err;
  OK(berth_session_write(t->session, "learning_rate", &rate, sizeof rate, &err));
  OK(berth_session_run(t->session, &err));
}

static int64_t count_of(trained *t, const char *name) {
  int64_t count = -1;
  berth_error err;
  OK(berth_session_state_read(t->session, name, &count, sizeof count, &err));
  return count;
}

/* ---- Several runs make a step ---- */

#define NET_OF_ROWS(n)                                                                        \
  "graph \"net\" { input %x : f32[" #n ", 3] input %t : f32[" #n                              \
  ", 2] param %w : f32[3, 4] param %v : f32[4, 2]\n"                                          \
  "%h = matmul(%x, %w) %a = tanh(%h) %y = matmul(%a, %v) %e = sub(%y, %t) %q = mul(%e, %e)\n" \
  "%loss = reduce_mean(%q) {keepdims = 0} output \"loss\" = %loss }"

#define ROWS 6
#define STEPS 4

static float rows_x[STEPS][ROWS * 3], rows_t[STEPS][ROWS * 2], start_w[12], start_v[8];

static void fill_rows(void) {
  uint64_t seed = 11;
  for (int s = 0; s < STEPS; s++) {
    for (int i = 0; i < ROWS * 3; i++) rows_x[s][i] = test_random_f32(&seed);
    for (int i = 0; i < ROWS * 2; i++) rows_t[s][i] = 3 * test_random_f32(&seed);
  }
  for (int i = 0; i < 12; i++) start_w[i] = test_random_f32(&seed);
  for (int i = 0; i < 8; i++) start_v[i] = test_random_f32(&seed);
}

/* The weights after some steps, each of `runs` runs with their share of the rows. */
static void train_rows(const char *device, berth_train_desc desc, uint32_t runs, float w[12], float v[8]) {
  trained t;
  berth_error err;
  const size_t rows = ROWS / runs;
  open_text(&t, runs == 1 ? NET_OF_ROWS(6) : runs == 2 ? NET_OF_ROWS(3) : NET_OF_ROWS(2));
  desc.accumulate = runs;
  open_session(&t, device, &desc);
  OK(berth_session_state_write(t.session, "w", start_w, sizeof start_w, &err));
  OK(berth_session_state_write(t.session, "v", start_v, sizeof start_v, &err));
  for (int s = 0; s < STEPS; s++)
    for (uint32_t r = 0; r < runs; r++) {
      OK(berth_session_state_read(t.session, "w", w, sizeof start_w, &err));
      OK(berth_session_write(t.session, "x", &rows_x[s][r * rows * 3], rows * 12, &err));
      OK(berth_session_write(t.session, "t", &rows_t[s][r * rows * 2], rows * 8, &err));
      const uint64_t calls = t.alloc.calls;
      run_step(&t, 0.05f);
      if (device == NULL) assert_int_equal(t.alloc.calls, calls);
      float now[12];
      OK(berth_session_state_read(t.session, "w", now, sizeof now, &err));
      assert_int_equal(memcmp(now, w, sizeof now) == 0, r + 1 < runs); /* the last run alone changes weights */
    }
  assert_int_equal(count_of(&t, "train.step"), STEPS);
  if (runs > 1) assert_int_equal(count_of(&t, "train.run"), STEPS * (int)runs);
  OK(berth_session_state_read(t.session, "w", w, sizeof start_w, &err));
  OK(berth_session_state_read(t.session, "v", v, sizeof start_v, &err));
  close_all(&t);
}

static void check_runs(const char *device, const berth_train_desc *desc) {
  float w[3][12], v[3][8];
  for (uint32_t runs = 1; runs <= 3; runs++) {
    train_rows(device, *desc, runs, w[runs - 1], v[runs - 1]);
    for (int i = 0; i < 12; i++) assert_true(fabsf(w[runs - 1][i] - w[0][i]) < 2e-5f);
    for (int i = 0; i < 8; i++) assert_true(fabsf(v[runs - 1][i] - v[0][i]) < 2e-5f);
  }
}

static void runs_that_are_averaged_are_one_of_all_their_rows(void **state) {
  (void)state;
  fill_rows();
  for (int gpu = 0; gpu < 2; gpu++) {
    berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
    const char *device = gpu ? test_gpu() : NULL;
    check_runs(device, &desc);
    desc.clip = 0.05; /* well below the norms that there are */
    check_runs(device, &desc);
    desc.optimizer = BERTH_OPTIMIZER_SGD;
    check_runs(device, &desc);
    desc.momentum = desc.clip = 0;
    check_runs(device, &desc);
  }
}

/* ---- Weights of 16 bits ---- */

static void check_master(const char *device, const char *text, berth_type type) {
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  const float ones[4] = {1, 1, 1, 1}, x[4] = {1, -1, 2, 0.5f};
  uint16_t narrow[4], input[4], got[4];
  float master[4], rounded[4];
  trained t;
  berth_error err;
  open_text(&t, text);
  desc.optimizer = BERTH_OPTIMIZER_SGD;
  desc.momentum = desc.weight_decay = 0;
  open_session(&t, device, &desc);
  OK(berth_from_f32(type, ones, 4, narrow, &err));
  OK(berth_from_f32(type, x, 4, input, &err));
  OK(berth_session_state_write(t.session, "w", narrow, sizeof narrow, &err));
  OK(berth_session_state_write(t.session, "w.master", ones, sizeof ones, &err));
  OK(berth_session_write(t.session, "x", input, sizeof input, &err));
  for (int i = 0; i < 64; i++) run_step(&t, 0.0009765625f); /* 2^-10: steps that 16 bits alone would round away */
  OK(berth_session_state_read(t.session, "w.master", master, sizeof master, &err));
  OK(berth_session_state_read(t.session, "w", got, sizeof got, &err));
  OK(berth_from_f32(type, master, 4, narrow, &err));
  OK(berth_to_f32(type, got, 4, rounded, &err));
  assert_memory_equal(got, narrow, sizeof got); /* the copy, rounded */
  for (int i = 0; i < 4; i++) assert_true(fabsf(master[i] - (1 - 0.0625f * x[i])) < 1e-6f);
  close_all(&t);
}

static void weights_of_16_bits_have_a_copy_that_small_steps_add_up_in(void **state) {
  static const char text[] =
      "graph \"g\" { input %%x : %s[4] param %%w : %s[4] %%p = mul(%%x, %%w) %%s = cast(%%p) {to = \"f32\"}\n"
      "%%loss = reduce_sum(%%s) {keepdims = 0} output \"loss\" = %%loss }";
  char full[300];
  (void)state;
  for (int gpu = 0; gpu < 2; gpu++) {
    snprintf(full, sizeof full, text, "bf16", "bf16");
    check_master(gpu ? test_gpu() : NULL, full, BERTH_BF16);
    snprintf(full, sizeof full, text, "f16", "f16");
    check_master(gpu ? test_gpu() : NULL, full, BERTH_F16);
  }
}

/* ---- Adapters ---- */

static const char products[] =
    "graph \"p\" { input %x : f32[n, 6] param %w : f32[6, 4] param %u : f32[3, 4] param %table : f32[5, 3]\n"
    "param %tied : f32[3, 3]\n"
    "%h = matmul(%x, %w) %r = relu(%h) %ut = transpose(%u) {perm = [1, 0]} %y = matmul(%r, %ut)\n"
    "%matmul_7 = matmul(%y, %tied) %b = add(%matmul_7, %y) %c = add(%tied, %tied) %s = reduce_sum(%c) {keepdims = 0}\n"
    "%f = mul(%b, %s) output \"f\" = %f }";

static float model_w[24], model_u[12], model_tied[9], model_x[12];

static berth_session *session_of_products(const berth_graph *graph) {
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  const berth_dim n = {"n", 2};
  berth_session *session;
  berth_error err;
  plan.dims = &n;
  plan.n_dims = 1;
  desc.plan = &plan;
  OK(berth_session_create(graph, &desc, &session, &err));
  OK(berth_session_set_param(session, "w", model_w, sizeof model_w, &err));
  OK(berth_session_set_param(session, "u", model_u, sizeof model_u, &err));
  OK(berth_session_set_param(session, "tied", model_tied, sizeof model_tied, &err));
  OK(berth_session_set_param(session, "table", (float[15]){0}, 60, &err));
  return session;
}

static void run_products(berth_session *session, float out[6]) {
  berth_error err;
  OK(berth_session_write(session, "x", model_x, sizeof model_x, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "f", out, 6 * sizeof *out, &err));
}

static void set_adapter(berth_session *session, const char *name, const float *data, size_t count) {
  berth_error err;
  OK(berth_session_set_param(session, name, data, count * sizeof *data, &err));
}

/* Merging the adapter would change what the graph gives of the matrix itself. */
static void a_matrix_that_is_an_output_has_no_adapter(void **state) {
  static const char text[] =
      "graph \"o\" { input %x : f32[2, 6] param %w : f32[4, 6] %t = transpose(%w) %y = matmul(%x, %t)\n"
      "output \"y\" = %y output \"t\" = %t }";
  berth_lora_desc desc = BERTH_LORA_DESC_INIT;
  berth_context *ctx = test_context();
  berth_graph *graph, *adapted;
  berth_error err;
  (void)state;
  desc.rank = 2;
  OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  test_expect_error(berth_graph_lora(graph, &desc, &adapted, &err), BERTH_INVALID, &err, "has no product");
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* With B = 0 nothing changes; with others, as if factor A B had been added to the matrix. */
static void an_adapter_is_a_matrix_that_is_added(void **state) {
  berth_lora_desc desc = BERTH_LORA_DESC_INIT;
  float a[24], b[8], c[8], d[6], before[6], same[6], adapted[6], merged[6];
  uint64_t seed = 5;
  trained t;
  berth_graph *graph = NULL;
  berth_error err;
  (void)state;
  for (int i = 0; i < 24; i++) model_w[i] = test_random_f32(&seed), a[i] = test_random_f32(&seed);
  for (int i = 0; i < 12; i++) model_u[i] = test_random_f32(&seed), model_x[i] = test_random_f32(&seed);
  for (int i = 0; i < 9; i++) model_tied[i] = test_random_f32(&seed);
  for (int i = 0; i < 8; i++) b[i] = test_random_f32(&seed), c[i] = test_random_f32(&seed);
  for (int i = 0; i < 6; i++) d[i] = test_random_f32(&seed);
  open_text(&t, products);
  desc.rank = 2;
  desc.alpha = 3;
  OK(berth_graph_lora(t.graph, &desc, &graph, &err));
  OK(berth_graph_verify(graph, &err));
  assert_int_equal(berth_graph_n_params(graph), 8); /* w and u; tied is read in another way too */
  berth_session *session = session_of_products(t.graph), *other = session_of_products(graph);
  run_products(session, before);
  set_adapter(other, "w.lora_a", a, 12);
  set_adapter(other, "w.lora_b", (float[8]){0}, 8);
  set_adapter(other, "u.lora_a", c, 8);
  set_adapter(other, "u.lora_b", (float[6]){0}, 6);
  run_products(other, same);
  assert_memory_equal(same, before, sizeof before);
  set_adapter(other, "w.lora_b", b, 8);
  set_adapter(other, "u.lora_b", d, 6);
  run_products(other, adapted);
  for (int i = 0; i < 6; i++)
    for (int k = 0; k < 4; k++) model_w[i * 4 + k] += 1.5f * (a[i * 2] * b[k] + a[i * 2 + 1] * b[4 + k]);
  for (int i = 0; i < 4; i++)
    for (int k = 0; k < 3; k++) model_u[k * 4 + i] += 1.5f * (c[i * 2] * d[k] + c[i * 2 + 1] * d[3 + k]);
  OK(berth_session_set_param(session, "w", model_w, sizeof model_w, &err));
  OK(berth_session_set_param(session, "u", model_u, sizeof model_u, &err));
  run_products(session, merged);
  for (int i = 0; i < 6; i++) {
    assert_true(fabsf(adapted[i] - merged[i]) < 1e-4f * (1 + fabsf(merged[i])));
    assert_true(fabsf(adapted[i] - before[i]) > 1e-4f);
  }
  berth_session_destroy(session);
  berth_session_destroy(other);
  berth_graph_destroy(graph);
  close_all(&t);
}

static void what_gets_no_adapter_is_named(void **state) {
  berth_lora_desc desc = BERTH_LORA_DESC_INIT;
  berth_graph *graph = NULL;
  berth_error err;
  trained t;
  (void)state;
  open_text(&t, products);
  berth_value asked = berth_graph_find(t.graph, "tied");
  desc.params = &asked;
  desc.n_params = 1;
  test_expect_error(berth_graph_lora(t.graph, &desc, &graph, &err), BERTH_INVALID, &err,
                    "param 'tied' cannot have an adapter");
  assert_null(graph);
  asked = berth_graph_find(t.graph, "x");
  test_expect_error(berth_graph_lora(t.graph, &desc, &graph, &err), BERTH_INVALID, &err, "is not a param");
  asked = berth_graph_find(t.graph, "u");
  OK(berth_graph_lora(t.graph, &desc, &graph, &err));
  assert_int_equal(berth_graph_n_params(graph), 6);
  berth_graph_destroy(graph);
  desc.rank = 0;
  test_expect_error(berth_graph_lora(t.graph, &desc, &graph, &err), BERTH_INVALID, &err, "at least 1");
  close_all(&t);
  open_text(&t, "graph \"g\" { input %x : f32[2] %y = relu(%x) output \"y\" = %y }");
  test_expect_error(berth_graph_lora(t.graph, NULL, &graph, &err), BERTH_INVALID, &err, "has no product");
  close_all(&t);
  open_text(
      &t,
      "graph \"g\" { input %x : f32[2, 3] param %w : f32[3, 4] %t = transpose(%w) {perm = [0, 1]}\n" /* as it was */
      "%y = matmul(%x, %t) output \"y\" = %y }");
  test_expect_error(berth_graph_lora(t.graph, NULL, &graph, &err), BERTH_INVALID, &err, "has no product");
  close_all(&t);
}

/* What is not trained stays a param, which a prelude prepares; adapters alone are states. */
static void frozen_weights_stay_in_the_prelude(void **state) {
  static const char text[] =
      "graph \"p\" { input %x : f32[32, 64] param %w : f32[64, 64] %h = matmul(%x, %w) %q = mul(%h, %h)\n"
      "%loss = reduce_mean(%q) {keepdims = 0} output \"loss\" = %loss }";
  berth_lora_desc lora = BERTH_LORA_DESC_INIT;
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  berth_graph *graph = NULL;
  berth_value params[2];
  berth_error err;
  trained t;
  (void)state;
  open_text(&t, text);
  lora.rank = 2;
  OK(berth_graph_lora(t.graph, &lora, &graph, &err));
  berth_graph_destroy(t.graph);
  t.graph = graph;
  params[0] = berth_graph_find(graph, "w.lora_a");
  params[1] = berth_graph_find(graph, "w.lora_b");
  desc.params = params;
  desc.n_params = 2;
  open_session(&t, NULL, &desc);
  const berth_plan_info info = test_plan_info(berth_session_plan(t.session));
  assert_int_equal(berth_graph_n_states(graph), 7); /* two with two moments each, and the count */
  assert_true(info.state_size < 4 * 64 * 64);
  assert_true(info.weights_size >= 4 * 64 * 64 && info.weights_size < 3 * 4 * 64 * 64);
  close_all(&t);
}

static berth_status try_all(berth_context *ctx, berth_error *err, void *user) {
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  berth_lora_desc lora = BERTH_LORA_DESC_INIT;
  berth_graph *graph = NULL, *adapted = NULL;
  (void)user;
  berth_status status = berth_graph_parse(ctx, NET_OF_ROWS(2), strlen(NET_OF_ROWS(2)), &graph, err);
  if (status == BERTH_OK) status = berth_graph_lora(graph, &lora, &adapted, err);
  desc.accumulate = 2;
  desc.clip = 1;
  if (status == BERTH_OK) status = berth_graph_train(adapted, berth_graph_find(adapted, "loss"), &desc, err);
  if (status == BERTH_NOMEM && adapted != NULL) { /* as it was */
    assert_int_equal(berth_graph_n_params(adapted), 6);
    assert_int_equal(berth_graph_n_states(adapted), 0);
  }
  berth_graph_destroy(adapted);
  berth_graph_destroy(graph);
  return status;
}

static void memory_may_run_out_at_any_time(void **state) {
  (void)state;
  test_fail_each_allocation(try_all, NULL);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_that_are_averaged_are_one_of_all_their_rows),
      cmocka_unit_test(weights_of_16_bits_have_a_copy_that_small_steps_add_up_in),
      cmocka_unit_test(a_matrix_that_is_an_output_has_no_adapter),
      cmocka_unit_test(an_adapter_is_a_matrix_that_is_added),
      cmocka_unit_test(what_gets_no_adapter_is_named),
      cmocka_unit_test(frozen_weights_stay_in_the_prelude),
      cmocka_unit_test(memory_may_run_out_at_any_time),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
