/* Sessions: one arena, one set of weights, a program for every shape. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "sessions.h"

static void runs_and_reads(void **state) {
  fixture f;
  berth_error err;
  float y[12], again[12], z[16];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, y);
  for (int row = 0; row < 2; row++) {
    float sum = 0;
    for (int i = 0; i < 6; i++) sum += y[row * 6 + i];
    assert_true(sum > 0.9999f && sum < 1.0001f);
  }
  OK(berth_session_write_at(f.session, 0, session_x, 64, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read_at(f.session, 0, again, sizeof again, &err));
  assert_memory_equal(y, again, sizeof y);
  OK(berth_session_read_at(f.session, 1, z, sizeof z, &err));
  for (int i = 0; i < 16; i++) assert_true(z[i] == (session_x[i] > 0 ? session_x[i] : 0));
  session_finish(&f);
}

static void gives_the_bytes_themselves(void **state) {
  fixture f;
  berth_error err;
  float y[12];
  void *in;
  const void *out;
  size_t size;
  (void)state;
  session_start(&f);
  session_run(f.session, 2, y);
  OK(berth_session_input_data(f.session, 0, &in, &size, &err));
  assert_int_equal(size, 64);
  memcpy(in, session_x, 64);
  OK(berth_session_run(f.session, &err));
  OK(berth_session_output_data(f.session, 0, &out, &size, &err));
  assert_int_equal(size, sizeof y);
  assert_memory_equal(out, y, sizeof y);
  test_expect_error(berth_session_input_data(f.session, 1, &in, &size, &err), BERTH_INVALID, &err, "no input number 1");
  test_expect_error(berth_session_output_data(f.session, 2, &out, &size, &err), BERTH_INVALID, &err,
                    "no output number 2");
  assert_true(in == NULL && out == NULL && size == 0);
  test_expect_error(berth_session_output_data(f.session, 0, NULL, &size, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_session_output_data(f.session, 0, &out, NULL, &err), BERTH_INVALID, &err, NULL);
  test_expect_error(berth_session_input_data(f.session, 0, NULL, &size, &err), BERTH_INVALID, &err, NULL);
  session_finish(&f);
}

/* A cache that the model takes and gives back longer lies inside the longer one; [2, 3, 4] joined along `axis`. */
static void check_cache(int64_t axis, uint32_t flags, bool has_gaps) {
  fixture f;
  berth_error err;
  const int64_t blocks = axis == 0 ? 1 : 2, old = 24 / blocks, fresh = axis == 0 ? 12 : 4;
  float past[24], new[12], present[36];
  char text[256];
  void *data;
  size_t size;
  (void)snprintf(text, sizeof text,
                 "graph \"kv\" { input %%past : f32[2, 3, 4] input %%new : f32[%s, 4] %%x = relu(%%new)\n"
                 " %%present = concat(%%past, %%x) {axis = %d} output \"present\" = %%present }",
                 axis == 0 ? "1, 3" : "2, 1", (int)axis);
  session_start_with(&f, text, 0, flags, 1);
  for (int i = 0; i < 24; i++) past[i] = (float)(i + 1);
  for (int run = 0; run < 3; run++) {
    for (int i = 0; i < 12; i++) new[i] = (float)((i + run) % 5 - 2);
    if (run == 0 || (flags & BERTH_PLAN_INPUTS_DIE))
      OK(berth_session_write(f.session, "past", past, sizeof past, &err));
    OK(berth_session_write(f.session, "new", new, (size_t)(blocks * fresh) * sizeof *new, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "present", present, (size_t)(24 + blocks * fresh) * sizeof *present, &err));
    for (int64_t b = 0; b < blocks; b++) {
      const float *at = present + b * (old + fresh);
      assert_memory_equal(at, past + b * old, (size_t)old * sizeof *at);
      for (int64_t i = 0; i < fresh; i++) assert_true(at[old + i] == (new[b * fresh + i] > 0 ? new[b * fresh + i] : 0));
    }
  }
  if (has_gaps)
    REFUSED(berth_session_input_data(f.session, 0, &data, &size, &err), "lies with gaps");
  else
    OK(berth_session_input_data(f.session, 0, &data, &size, &err));
  session_finish(&f);
}

static void keeps_a_cache_inside_the_longer_one(void **state) {
  (void)state;
  check_cache(0, 0, false);
  check_cache(0, BERTH_PLAN_INPUTS_DIE, false);
  check_cache(1, 0, false);
  check_cache(1, BERTH_PLAN_INPUTS_DIE, true);
  check_cache(1, BERTH_PLAN_INPUTS_DIE | BERTH_PLAN_NO_STRIDED, false);
}

static void refuses_to_run_without_weights(void **state) {
  fixture f;
  berth_error err;
  (void)state;
  session_start_with(&f, session_text, 2, 0, 0);
  test_expect_error(berth_session_run(f.session, &err), BERTH_INVALID, &err, "param 'w' has no weights yet");
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  OK(berth_session_run(f.session, &err));
  session_finish(&f);
}

static void refuses_wrong_names_and_sizes(void **state) {
  fixture f;
  berth_error err;
  float y[12], before[12];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, before);
  REFUSED(berth_session_set_param(f.session, "v", session_w, sizeof session_w, &err), "no param 'v'");
  REFUSED(berth_session_set_param(f.session, "x", session_x, 64, &err), "no param 'x'");
  REFUSED(berth_session_set_param(f.session, "w", session_w, sizeof session_w - 1, &err),
          "param 'w' is f32[8, 6] and has 192 bytes, but 191");
  REFUSED(berth_session_set_param(f.session, "w", NULL, sizeof session_w, &err), "NULL");
  REFUSED(berth_session_set_param(f.session, NULL, session_w, sizeof session_w, &err), "name");
  REFUSED(berth_session_set_param(NULL, "w", session_w, sizeof session_w, &err), "session");
  REFUSED(berth_session_write(f.session, "y", session_x, 64, &err), "no input 'y'");
  REFUSED(berth_session_write(f.session, "w", session_x, 64, &err), "no input 'w'");
  REFUSED(berth_session_write(f.session, "x", session_x, 65, &err), "input 'x'");
  REFUSED(berth_session_write(f.session, "x", session_x, 0, &err), "input 'x'");
  REFUSED(berth_session_write(f.session, "x", NULL, 64, &err), "NULL");
  REFUSED(berth_session_write_at(f.session, 1, session_x, 64, &err), "no input number 1; it has 1");
  REFUSED(berth_session_write_at(f.session, UINT32_MAX, session_x, 64, &err), "no input number");
  REFUSED(berth_session_read(f.session, "x", y, 64, &err), "no output 'x'");
  REFUSED(berth_session_read(f.session, "y", y, 47, &err), "output 'y'");
  REFUSED(berth_session_read(f.session, "y", NULL, 48, &err), "NULL");
  REFUSED(berth_session_read_at(f.session, 2, y, 48, &err), "no output number 2; it has 2");
  REFUSED(berth_session_use(f.session, "x", session_x, 64, &err), "'x' lies in the arena");
  REFUSED(berth_session_use(f.session, "q", session_x, 64, &err), "'q'");
  REFUSED(berth_session_use(f.session, "y", session_x, 64, &err), "'y'");
  REFUSED(berth_session_run(NULL, &err), "session");
  REFUSED(berth_session_bind(NULL, NULL, 0, &err), "session");
  REFUSED(berth_session_bind(f.session, NULL, 1, &err), "dimensions");
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", y, sizeof y, &err));
  assert_memory_equal(y, before, sizeof y);
  session_finish(&f);
}

static void refuses_wrong_descriptors(void **state) {
  berth_error err;
  berth_session *session;
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = session_parse(ctx, session_text);
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  REFUSED(berth_session_create(graph, NULL, &session, &err), "'n'");
  assert_null(session);
  REFUSED(berth_session_create(NULL, NULL, &session, &err), "graph");
  REFUSED(berth_session_create(graph, NULL, NULL, &err), "pointer");
  desc.struct_size = 3;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "berth_session_desc");
  desc = (berth_session_desc)BERTH_SESSION_DESC_INIT;
  desc.plan = &plan;
  plan.struct_size = 1;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INVALID, &err, "berth_plan_desc");
  plan = (berth_plan_desc)BERTH_PLAN_DESC_INIT;
  desc.device = "abacus";
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_UNSUPPORTED, &err, "abacus");
  desc.device = NULL;
  plan.dims = (berth_dim[]){{"n", 2}};
  plan.n_dims = 1;
  plan.budget = 64;
  test_expect_error(berth_session_create(graph, &desc, &session, &err), BERTH_INFEASIBLE, &err, "64");
  plan.budget = 0;
  plan.align = 48;
  REFUSED(berth_session_create(graph, &desc, &session, &err), "48");
  berth_session_destroy(NULL);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* ---- Bindings ------------------------------------------------------------------------------------------------- */

static void binds_several_shapes(void **state) {
  fixture f;
  berth_error err;
  static float small[12], large[32 * 6], again[32 * 6], other[3 * 6];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, small);
  uint64_t size = berth_arena_size(berth_session_arena(f.session));
  session_bind(f.session, 32);
  assert_true(berth_arena_size(berth_session_arena(f.session)) > size);
  session_run(f.session, 32, large);
  assert_memory_equal(large, small, sizeof small); /* rows do not know of each other; the weights came over */
  size = berth_arena_size(berth_session_arena(f.session));
  for (int round = 0; round < 3; round++) {
    session_bind(f.session, 2);
    session_run(f.session, 2, again);
    assert_memory_equal(again, small, sizeof small);
    session_bind(f.session, 3);
    session_run(f.session, 3, other);
    assert_memory_equal(other, large, sizeof other);
    session_bind(f.session, 32);
    session_run(f.session, 32, again);
    assert_memory_equal(again, large, sizeof large);
  }
  assert_int_equal(berth_arena_size(berth_session_arena(f.session)), size);
  assert_int_equal(berth_plan_arena_size(berth_session_plan(f.session)), size);
  OK(berth_plan_check(berth_session_plan(f.session), &err));
  session_finish(&f);
}

static void a_failed_bind_changes_nothing(void **state) {
  fixture f;
  berth_error err;
  float y[12], again[12];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, y);
  const berth_plan *plan = berth_session_plan(f.session);
  REFUSED(berth_session_bind(f.session, NULL, 0, &err), "'n'");
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{"m", 1}}, 1, &err), "'m'");
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{"n", -1}}, 1, &err), "-1");
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{NULL, 1}}, 1, &err), "name");
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{"n", 2}, {"n", 2}}, 2, &err), "twice");
  REFUSED(berth_session_bind(f.session, (berth_dim[]){{"n", INT64_MAX}}, 1, &err), NULL);
  test_expect_error(berth_session_bind(f.session, (berth_dim[]){{"n", INT64_C(1) << 50}}, 1, &err), BERTH_DEVICE_NOMEM,
                    &err, NULL);
  assert_ptr_equal(berth_session_plan(f.session), plan);
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", again, sizeof again, &err));
  assert_memory_equal(y, again, sizeof y);
  session_finish(&f);
}

static void params_set_under_one_shape_hold_for_all(void **state) {
  fixture f;
  berth_error err;
  float y[18], want[18];
  static float other[48];
  (void)state;
  session_start(&f);
  session_bind(f.session, 3);
  session_bind(f.session, 2);
  for (int i = 0; i < 48; i++) other[i] = -session_w[i];
  OK(berth_session_set_param(f.session, "w", other, sizeof other, &err));
  session_bind(f.session, 3);
  session_run(f.session, 3, y);
  berth_session *fresh;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.dims = (berth_dim[]){{"n", 3}};
  plan.n_dims = 1;
  desc.plan = &plan;
  OK(berth_session_create(f.graph, &desc, &fresh, &err));
  OK(berth_session_set_param(fresh, "w", other, sizeof other, &err));
  session_run(fresh, 3, want);
  assert_memory_equal(y, want, sizeof y);
  berth_session_destroy(fresh);
  session_finish(&f);
}

static void the_session_keeps_its_graph(void **state) {
  fixture f;
  float y[12];
  (void)state;
  session_start(&f);
  berth_graph_destroy(f.graph);
  f.graph = NULL;
  session_bind(f.session, 1);
  session_bind(f.session, 2);
  session_run(f.session, 2, y);
  session_finish(&f);
}

static void takes_empty_dimensions(void **state) {
  fixture f;
  berth_error err;
  float y[12];
  const void *data;
  size_t size = 1;
  (void)state;
  session_start(&f);
  session_bind(f.session, 0);
  OK(berth_session_write(f.session, "x", NULL, 0, &err));
  OK(berth_session_run(f.session, &err));
  OK(berth_session_read(f.session, "y", NULL, 0, &err));
  OK(berth_session_output_data(f.session, 0, &data, &size, &err));
  assert_int_equal(size, 0);
  session_bind(f.session, 2);
  session_run(f.session, 2, y);
  session_finish(&f);
}

/* ---- The rest ------------------------------------------------------------------------------------------------- */

typedef struct seen {
  uint32_t n, next_step;
  uint32_t nodes[8];
} seen;

static void look(void *user, uint32_t step, uint32_t node, const berth_tensor *out, uint32_t n_out, double ms) {
  seen *s = user;
  assert_true(s->n == 0 || step >= s->next_step);
  assert_true(n_out == 1 && out[0].data != NULL && out[0].type == BERTH_F32 && ms >= 0);
  s->next_step = step + 1;
  s->nodes[s->n++ % 8] = node;
}

static void observers_see_every_step(void **state) {
  fixture f;
  berth_error err;
  float y[12];
  seen s = {0};
  (void)state;
  session_start_with(&f, session_text, 2, BERTH_PLAN_REFERENCE, 0); /* nothing is fused */
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  berth_session_observe(f.session, look, &s);
  session_run(f.session, 2, y);
  assert_int_equal(s.n, 4);
  for (uint32_t i = 0; i < 4; i++) assert_int_equal(s.nodes[i], i);
  berth_session_observe(f.session, NULL, NULL);
  OK(berth_session_run(f.session, &err));
  assert_int_equal(s.n, 4);
  session_finish(&f);
}

static const char wide[] =
    "graph \"w\" { input %x : f32[n, 64] const %k : f32[1] = [0.37]\n"
    "  %a = mul(%x, %k) %b = exp(%a) %t = transpose(%b) {perm = [1, 0]} %m = matmul(%b, %t) %s = softmax(%m)\n"
    "  %l = layer_norm(%s) %r = reduce_sum(%l) {axes = [1]} %g = gelu(%s) %c = cumsum(%g) {axis = 0}\n"
    "  %v, %i = top_k(%c) {k = 3} output \"s\" = %s output \"l\" = %l output \"r\" = %r output \"c\" = %c output \"v\" "
    "= %v }";

static void threads_do_not_change_a_bit(void **state) {
  enum {
    N = 200
  };
  static float input[N * 64], first[N * N], out[N * N];
  uint64_t seed = 9;
  berth_error err;
  (void)state;
  for (int i = 0; i < N * 64; i++) input[i] = test_random_f32(&seed);
  static const uint32_t threads[] = {1, 2, 4, 7};
  for (int k = 0; k < 4; k++) {
    fixture f;
    session_start_with(&f, wide, N, 0, threads[k]);
    assert_int_equal(berth_session_n_threads(f.session), threads[k]);
    OK(berth_session_write(f.session, "x", input, sizeof input, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "c", k == 0 ? first : out, sizeof out, &err));
    if (k != 0) assert_memory_equal(first, out, sizeof out);
    session_finish(&f);
  }
}

/* A kernel that prepares scratch for all pieces of a step: every step of every run has weights of its own. */
static const char depthwise[] =
    "graph \"d\" { input %x : u8[n, 14, 14, 300] input %v : i8[3, 3, 300] input %w : i8[3, 3, 300]\n"
    "  const %s : f32[] = [0.25] const %z : u8[] = [128]\n"
    "  %a = qdepthwise(%x, %v, %s, %z) {kernel = [3, 3], pads = [1, 1, 1, 1], to = \"u8\", out_scale = 50.0}\n"
    "  %b = qdepthwise(%a, %w, %s, %z) {kernel = [3, 3], pads = [1, 1, 1, 1], to = \"u8\", out_scale = 50.0}\n"
    "  output \"y\" = %b }";

static void fill_bytes(uint8_t *bytes, size_t n, uint64_t seed) {
  for (size_t i = 0; i < n; i++) bytes[i] = (uint8_t)(test_random_f32(&seed) * 120);
}

static void run_depthwise(berth_session *session, uint64_t seed, uint8_t *y, size_t size) {
  static uint8_t x[14 * 14 * 300], v[9 * 300], w[9 * 300];
  berth_error err;
  fill_bytes(x, sizeof x, seed);
  fill_bytes(v, sizeof v, seed + 1);
  fill_bytes(w, sizeof w, seed + 2);
  OK(berth_session_write(session, "x", x, sizeof x, &err));
  OK(berth_session_write(session, "v", v, sizeof v, &err));
  OK(berth_session_write(session, "w", w, sizeof w, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, size, &err));
}

static void scratch_is_prepared_for_every_step(void **state) {
  static uint8_t first[14 * 14 * 300], out[14 * 14 * 300];
  static const uint32_t threads[] = {1, 1, 2, 4, 7};
  (void)state;
  for (int k = 0; k < 5; k++) {
    fixture f;
    session_start_with(&f, depthwise, 1, 0, threads[k]);
    if (k > 0) run_depthwise(f.session, 50, out, sizeof out);
    run_depthwise(f.session, 9, k == 0 ? first : out, sizeof out);
    if (k > 0) assert_memory_equal(first, out, sizeof out);
    session_finish(&f);
  }
}

static void uses_the_callers_memory(void **state) {
  fixture f;
  berth_error err;
  float y[12], want[12];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, want);
  uint64_t size = berth_arena_size(berth_session_arena(f.session));
  berth_session_destroy(f.session);
  void *memory = aligned_alloc(64, (size_t)(size + 63) / 64 * 64);
  assert_non_null(memory);
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  plan.dims = (berth_dim[]){{"n", 2}};
  plan.n_dims = 1;
  desc.plan = &plan;
  desc.memory = memory;
  desc.memory_size = size - 1;
  REFUSED(berth_session_create(f.graph, &desc, &f.session, &err), "bytes");
  desc.memory_size = size;
  OK(berth_session_create(f.graph, &desc, &f.session, &err));
  assert_ptr_equal(berth_arena_data(berth_session_arena(f.session)), memory);
  OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
  session_run(f.session, 2, y);
  assert_memory_equal(y, want, sizeof y);
  test_expect_error(berth_session_bind(f.session, (berth_dim[]){{"n", 99}}, 1, &err), BERTH_INFEASIBLE, &err,
                    "memory given");
  session_bind(f.session, 1); /* a smaller one fits */
  session_bind(f.session, 2);
  session_run(f.session, 2, y);
  assert_memory_equal(y, want, sizeof y);
  berth_session *clone;
  OK(berth_session_clone(f.session, &clone, &err));
  assert_ptr_not_equal(berth_arena_data(berth_session_arena(clone)), memory);
  session_run(clone, 2, y);
  assert_memory_equal(y, want, sizeof y);
  berth_session_destroy(clone);
  berth_session_destroy(f.session);
  f.session = NULL;
  free(memory);
  session_finish(&f);
}

/* ---- Kernels that fail ---- */

static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static int64_t rows(const berth_op_call *call) { return call->out[0].dim[0]; }

/* Fails from the row on whose number `user` points to. */
static berth_status fail_late(const berth_op_call *call, berth_error *err) {
  const int64_t *first_bad = call->user;
  float *out = call->out[0].data;
  for (int64_t row = call->begin; row < call->end; row++) {
    if (row >= *first_bad) {
      err->status = BERTH_INVALID;
      snprintf(err->message, sizeof err->message, "row %lld is bad", (long long)row);
      return BERTH_INVALID;
    }
    for (int64_t i = 0; i < call->out[0].dim[1]; i++) out[row * call->out[0].dim[1] + i] = 1;
  }
  return BERTH_OK;
}

/* Whatever thread comes first, the message is about the lowest item. */
static void the_first_failure_speaks(void **state) {
  int64_t first_bad = 5;
  berth_error err;
  berth_session *session;
  berth_op_desc op = BERTH_OP_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  (void)state;
  berth_context *ctx = test_context();
  op.name = "test.late";
  op.min_in = op.max_in = 1;
  op.infer = infer_same;
  op.items = rows;
  op.kernel = fail_late;
  op.user = &first_bad;
  OK(berth_op_register(ctx, &op, &err));
  berth_graph *graph =
      session_parse(ctx, "graph \"f\" { input %x : f32[64, 4096] %bad = test.late(%x) output \"y\" = %bad }");
  desc.n_threads = 4;
  OK(berth_session_create(graph, &desc, &session, &err));
  for (int round = 0; round < 50; round++) {
    first_bad = round;
    char want[64];
    snprintf(want, sizeof want, "node 'bad' (test.late): row %d is bad", round);
    REFUSED(berth_session_run(session, &err), want);
    assert_int_equal(berth_session_run(session, NULL), BERTH_INVALID);
  }
  first_bad = 64;
  OK(berth_session_run(session, &err));
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* A plan for activations elsewhere, inputs that die, no reuse, every order: all the same result. */
static void options_do_not_change_the_result(void **state) {
  static const uint32_t flags[] = {BERTH_PLAN_INPUTS_DIE,    BERTH_PLAN_NO_REUSE,   BERTH_PLAN_NO_INPLACE,
                                   BERTH_PLAN_NO_CONCAT,     BERTH_PLAN_NO_STRIDED, BERTH_PLAN_F32_UNIFORM,
                                   BERTH_PLAN_PARAMS_OUTSIDE};
  fixture f;
  berth_error err;
  float want[12], y[12];
  (void)state;
  session_start(&f);
  session_run(f.session, 2, want);
  session_finish(&f);
  for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++) {
    session_start_with(&f, session_text, 2, flags[i], 0);
    OK(berth_session_set_param(f.session, "w", session_w, sizeof session_w, &err));
    session_run(f.session, 2, y);
    session_assert_close(y, want, 12);
    session_bind(f.session, 20);
    session_bind(f.session, 2);
    session_run(f.session, 2, y);
    session_assert_close(y, want, 12);
    session_finish(&f);
  }
}

/* Four bytes per element, whatever the type; the host sees every value in its own. */
/* A transposed view with an axis of one element counts as contiguous, whatever that axis's stride is. */
static void an_axis_of_one_element_may_have_any_stride(void **state) {
  static const char text[] =
      "graph \"g\" { input %x : f32[1, 3, 5] const %i : i64[3, 1, 1] = [4, 0, 2] "
      "%t = transpose(%x) {perm = [1, 0, 2]} %y = gather_nd(%t, %i) {batch_dims = 2} output \"y\" = %y }";
  float x[15], y[3];
  (void)state;
  for (int i = 0; i < 15; i++) x[i] = (float)i;
  for (uint32_t flags = 0; flags <= BERTH_PLAN_REFERENCE; flags += BERTH_PLAN_REFERENCE) {
    berth_error err;
    fixture f;
    session_start_with(&f, text, 0, flags, 0);
    OK(berth_session_write(f.session, "x", x, sizeof x, &err));
    OK(berth_session_run(f.session, &err));
    OK(berth_session_read(f.session, "y", y, sizeof y, &err));
    assert_true(y[0] == 4 && y[1] == 5 && y[2] == 12);
    session_finish(&f);
  }
}

static void uniform_plans_take_every_type(void **state) {
  const uint16_t x[4] = {0xbc00, 0x3c00, 0x4000, 0xc200}, want[4] = {0, 0x3c00, 0x4000, 0}; /* -1 1 2 -3 */
  uint16_t y[4];
  berth_error err;
  berth_session *session;
  (void)state;
  berth_context *ctx = test_context();
  berth_graph *graph = session_parse(ctx, "graph \"u\" { input %x : f16[4] %y = relu(%x) output \"y\" = %y }");
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  plan.flags = BERTH_PLAN_F32_UNIFORM;
  desc.plan = &plan;
  OK(berth_session_create(graph, &desc, &session, &err));
  OK(berth_session_write(session, "x", x, sizeof x, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, sizeof y, &err));
  assert_memory_equal(y, want, sizeof y);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

typedef struct stages {
  char said[256]; /* each stage once, in their order */
  const char *last;
  uint64_t done, total;
} stages;

static void note_stage(void *user, const char *stage, uint64_t done, uint64_t total) {
  stages *s = user;
  if (s->last == NULL || strcmp(s->last, stage) != 0) {
    strncat(s->said, stage, sizeof s->said - strlen(s->said) - 1);
    strncat(s->said, ";", sizeof s->said - strlen(s->said) - 1);
  } else {
    assert_true(done >= s->done && total == s->total);
  }
  s->last = stage;
  s->done = done;
  s->total = total;
  if (total != 0) assert_true(done <= total);
}

static void says_how_far_it_is(void **state) {
  (void)state;
  static const char text[] =
      "graph \"p\" { input %x : f32[2, 8] param %w : f32[8, 6] %y = matmul(%x, %w) output \"y\" = %y }";
  stages heard = {.said = ""};
  berth_context_desc desc = BERTH_CONTEXT_DESC_INIT;
  berth_context *ctx;
  berth_session *session;
  berth_weights *weights;
  berth_error err;
  unsigned char file[8 + 64 + sizeof session_w] = {64};
  snprintf((char *)file + 8, 65, "{\"w\":{\"dtype\":\"F32\",\"shape\":[8,6],\"data_offsets\":[0,192]}}    ");
  memset(file + 8 + strlen((const char *)file + 8), ' ', 64 - strlen((const char *)file + 8));
  memcpy(file + 8 + 64, session_w, sizeof session_w);
  desc.progress = note_stage;
  desc.user = &heard;
  OK(berth_context_create(&desc, &ctx, &err));
  berth_graph *graph = session_parse(ctx, text);
  OK(berth_weights_from_memory(ctx, file, sizeof file, &weights, &err));
  OK(berth_graph_attach(graph, weights, &err));
  OK(berth_session_create(graph, NULL, &session, &err));
  assert_string_equal(heard.said, "planning;compiling kernels;writing weights;preparing weights;");
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_weights_destroy(weights);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(runs_and_reads),
      cmocka_unit_test(gives_the_bytes_themselves),
      cmocka_unit_test(keeps_a_cache_inside_the_longer_one),
      cmocka_unit_test(refuses_to_run_without_weights),
      cmocka_unit_test(refuses_wrong_names_and_sizes),
      cmocka_unit_test(refuses_wrong_descriptors),
      cmocka_unit_test(binds_several_shapes),
      cmocka_unit_test(a_failed_bind_changes_nothing),
      cmocka_unit_test(params_set_under_one_shape_hold_for_all),
      cmocka_unit_test(the_session_keeps_its_graph),
      cmocka_unit_test(takes_empty_dimensions),
      cmocka_unit_test(observers_see_every_step),
      cmocka_unit_test(threads_do_not_change_a_bit),
      cmocka_unit_test(scratch_is_prepared_for_every_step),
      cmocka_unit_test(uses_the_callers_memory),
      cmocka_unit_test(the_first_failure_speaks),
      cmocka_unit_test(options_do_not_change_the_result),
      cmocka_unit_test(an_axis_of_one_element_may_have_any_stride),
      cmocka_unit_test(uniform_plans_take_every_type),
      cmocka_unit_test(says_how_far_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
