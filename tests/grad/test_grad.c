/* berth_graph_grad, apart from its rules: what it refuses and how, graphs that are not bound yet, quantised numbers;
 * and berth_graph_train. */
#include <math.h>
#include <stdio.h>

#include "check.h"

static berth_graph *parse(berth_context *ctx, const char *text) {
  berth_graph *graph;
  berth_error err;
  OK(berth_graph_parse(ctx, text, strlen(text), &graph, &err));
  return graph;
}

static berth_session *session_of(const berth_graph *graph, const berth_dim *dims, size_t n_dims) {
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  plan.dims = dims;
  plan.n_dims = n_dims;
  desc.plan = &plan;
  OK(berth_session_create(graph, &desc, &session, &err));
  OK(berth_plan_check(berth_session_plan(session), &err));
  return session;
}

/* ---- What is refused: the graph stays as it was ---- */

static void refuse(const char *text, const char *loss, const char *of, berth_status want, const char *part) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx, text), *before = parse(ctx, text);
  const berth_value value = berth_graph_find(graph, of);
  berth_value gradient;
  berth_error err;
  test_expect_error(berth_graph_grad(graph, berth_graph_find(graph, loss), &value, 1, &gradient, &err), want, &err,
                    part);
  assert_true(berth_graph_equal(graph, before) && gradient == BERTH_VALUE_NONE);
  berth_graph_destroy(graph);
  berth_graph_destroy(before);
  test_context_done(ctx, &alloc);
}

static void an_op_without_a_rule_is_named_with_its_node(void **state) {
  (void)state;
  refuse(
      "graph \"g\" { input %x : f32[3] %e = exp(%x) %bits = bitcast(%e) {to = \"f32\"}\n"
      "%y = reduce_sum(%bits) {keepdims = 0} output \"y\" = %y }",
      "y", "x", BERTH_UNSUPPORTED, "node 'bits' (bitcast): there is no rule");
}

/* Bound, its extents have bounds, and every rule but its own goes on with them. */
static void a_loop_that_makes_a_value_longer_is_refused(void **state) {
  (void)state;
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph =
      parse(ctx,
            "graph \"g\" { input %x : f32[1] const %t : i64[] = [3] const %yes : bool[] = [1]\n"
            "%round, %starts, %v = loop_begin(%t, %yes, %x) {grows = [0, 0, 1]} %w = concat(%v, %x) {axis = 0}\n"
            "%rounds, %again, %last = loop_end(%round, %starts, %t, %yes, %v, %w) {grows = [0, 0, 1]}\n"
            "const %i : i64[] = [0] %y = gather(%last, %i) {axis = 0} output \"y\" = %y }");
  berth_graph *bound;
  berth_value gradient;
  berth_error err;
  OK(berth_graph_bind(graph, NULL, 0, &bound, &err));
  const berth_value x = berth_graph_find(bound, "x");
  test_expect_error(berth_graph_grad(bound, berth_graph_find(bound, "y"), &x, 1, &gradient, &err), BERTH_UNSUPPORTED,
                    &err, "makes a carried value longer");
  berth_graph_destroy(bound);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void what_is_no_loss_is_refused(void **state) {
  (void)state;
  refuse("graph \"g\" { input %x : f32[3] %y = exp(%x) output \"y\" = %y }", "y", "x", BERTH_INVALID,
         "a loss must be a scalar");
  refuse("graph \"g\" { input %x : i32[1] %y = neg(%x) output \"y\" = %y }", "y", "x", BERTH_INVALID,
         "a loss must be a scalar");
  refuse("graph \"g\" { input %i : i32[1] input %x : f32[] %y = exp(%x) output \"y\" = %y }", "y", "i", BERTH_INVALID,
         "only floats have gradients");
}

static void an_extent_that_a_rule_needs_is_asked_for(void **state) {
  (void)state;
  refuse(
      "graph \"g\" { input %x : f32[n, 3] input %z : f32[m, 3] %a = add(%x, %z) %y = reduce_sum(%a) {keepdims = 0} "
      "output \"y\" = %y }",
      "y", "x", BERTH_UNSUPPORTED, "bind the graph first");
}

/* ---- What works ---- */

static void what_the_loss_does_not_depend_on_has_no_gradient(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph =
      parse(ctx,
            "graph \"g\" { input %x : f32[3] input %w : f32[3] input %z : f32[3] %f = floor(%z)\n"
            "%m = mul(%x, %w) %n = add(%m, %f) %y = reduce_sum(%n) {keepdims = 0} output \"y\" = %y }");
  const berth_value of[] = {berth_graph_find(graph, "x"), berth_graph_find(graph, "z"), berth_graph_find(graph, "y")};
  berth_value grads[3];
  berth_error err;
  (void)state;
  OK(berth_graph_grad(graph, berth_graph_find(graph, "y"), of, 3, grads, &err));
  assert_true(grads[0] != BERTH_VALUE_NONE && grads[1] == BERTH_VALUE_NONE && grads[2] != BERTH_VALUE_NONE);
  assert_true(grads[0] == berth_graph_find(graph, "x.grad"));
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* A batch that is bound later, at two sizes: the mean's divisor follows it. */
static void gradients_are_taken_before_dimensions_are_bound(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx,
                             "graph \"g\" { input %x : f32[n, 2] param %w : f32[2, 3] param %b : f32[3]\n"
                             "%h = matmul(%x, %w) %a = add(%h, %b) %s = softmax(%a) %q = mul(%s, %s)\n"
                             "%y = reduce_mean(%q) {keepdims = 0} output \"y\" = %y }");
  const float w[] = {0.1f, 0.2f, -0.3f, 0.4f, -0.5f, 0.6f}, b[] = {0, 0.1f, -0.1f};
  const berth_value of[] = {berth_graph_find(graph, "w"), berth_graph_find(graph, "b")};
  berth_value grads[2];
  berth_error err;
  float x[12], got[2][3];
  (void)state;
  OK(berth_graph_grad(graph, berth_graph_find(graph, "y"), of, 2, grads, &err));
  OK(berth_graph_output(graph, "dw", grads[0], &err));
  OK(berth_graph_output(graph, "db", grads[1], &err));
  const berth_dim three = {"n", 3}, six = {"n", 6};
  berth_session *session = session_of(graph, &three, 1);
  OK(berth_session_set_param(session, "w", w, sizeof w, &err));
  OK(berth_session_set_param(session, "b", b, sizeof b, &err));
  for (int i = 0; i < 12; i++) x[i] = (float)(i % 6) / 5 - 0.4f; /* the second half is the first again */
  OK(berth_session_write(session, "x", x, sizeof x / 2, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "db", got[0], sizeof got[0], &err));
  OK(berth_session_bind(session, &six, 1, &err));
  OK(berth_session_write(session, "x", x, sizeof x, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "db", got[1], sizeof got[1], &err));
  for (int i = 0; i < 3; i++) assert_true(fabsf(got[0][i] - got[1][i]) < 1e-6f && fabsf(got[0][i]) > 1e-4f);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* Through numbers of 8 bits as if nothing had been rounded; nothing passes where the range ends. */
static void rounding_is_left_out(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx,
                             "graph \"g\" { input %x : f32[4] const %s : f32[] = [0.5] const %z : u8[] = [10]\n"
                             "%q = quantize(%x, %s, %z) %f = dequantize(%q, %s, %z) %m = mul(%f, %x)\n"
                             "%y = reduce_sum(%m) {keepdims = 0} output \"y\" = %y }");
  const berth_value x = berth_graph_find(graph, "x");
  const float in[] = {1.2f, -4.9f, -6, 300}, want[] = {1.0f + 1.2f, -5.0f - 4.9f, -5, 122.5f};
  float got[4];
  berth_value gradient;
  berth_error err;
  (void)state;
  OK(berth_graph_grad(graph, berth_graph_find(graph, "y"), &x, 1, &gradient, &err));
  OK(berth_graph_output(graph, "dx", gradient, &err));
  berth_session *session = session_of(graph, NULL, 0);
  OK(berth_session_write(session, "x", in, sizeof in, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "dx", got, sizeof got, &err));
  for (int i = 0; i < 4; i++)
    if (fabsf(got[i] - want[i]) > 1e-5f) fail_msg("element %d is %g and not %g", i, (double)got[i], (double)want[i]);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

#define NET                                                                                          \
  "graph \"g\" { input %x : f32[4, 2] input %t : f32[4, 1] param %w : f32[2, 8] param %b : f32[8]\n" \
  "param %v : f32[8, 1] param %unused : f32[3] %h = matmul(%x, %w) %a = add(%h, %b) %r = tanh(%a)\n" \
  "%o = matmul(%r, %v) %e = sub(%o, %t) %q = mul(%e, %e) %loss = reduce_mean(%q) {keepdims = 0}\n"   \
  "output \"loss\" = %loss }"

static berth_status grad_and_train(berth_context *ctx, berth_error *err, void *user) {
  berth_graph *graph = NULL;
  berth_status status = berth_graph_parse(ctx, NET, strlen(NET), &graph, err);
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  (void)user;
  desc.clip = 1;
  if (status == BERTH_OK) status = berth_graph_train(graph, berth_graph_find(graph, "loss"), &desc, err);
  if (status != BERTH_OK && graph != NULL) { /* as it was */
    assert_int_equal(berth_graph_n_params(graph), 4);
    assert_int_equal(berth_graph_n_states(graph), 0);
    assert_int_equal(berth_graph_n_inputs(graph), 2);
  }
  berth_graph_destroy(graph);
  return status;
}

static void memory_may_run_out_at_any_time(void **state) {
  (void)state;
  assert_true(test_fail_each_allocation(grad_and_train, NULL) > 50);
}

/* ---- Training ---- */

static const float points[] = {0, 0, 0, 1, 1, 0, 1, 1}, truth[] = {0, 1, 1, 0};

static float train(const char *device, const berth_train_desc *desc, float rate, int steps) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx, NET);
  berth_session_desc how = BERTH_SESSION_DESC_INIT;
  berth_session *session;
  berth_error err;
  uint64_t seed = 7;
  float weights[24], loss = 0;
  int64_t count = 0;
  OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), desc, &err));
  assert_int_equal(berth_graph_n_params(graph), 1); /* unused */
  how.device = device;
  OK(berth_session_create(graph, &how, &session, &err));
  OK(berth_session_set_param(session, "unused", weights, 12, &err));
  for (int i = 0; i < 24; i++) weights[i] = test_random_f32(&seed);
  OK(berth_session_state_write(session, "w", weights, 64, &err));
  OK(berth_session_state_write(session, "v", weights + 16, 32, &err));
  OK(berth_session_write(session, "x", points, sizeof points, &err));
  OK(berth_session_write(session, "t", truth, sizeof truth, &err));
  OK(berth_session_write(session, "learning_rate", &rate, sizeof rate, &err));
  OK(berth_session_run(session, &err));
  const uint64_t calls = alloc.calls;
  for (int i = 1; i < steps; i++) OK(berth_session_run(session, &err));
  if (device == NULL) assert_int_equal(alloc.calls, calls); /* a step allocates nothing */
  OK(berth_session_read(session, "loss", &loss, sizeof loss, &err));
  OK(berth_session_state_read(session, "train.step", &count, sizeof count, &err));
  assert_int_equal(count, steps);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
  return loss;
}

static void a_small_net_learns_exclusive_or(void **state) {
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  (void)state;
  desc.weight_decay = 0;
  assert_true(train(NULL, &desc, 0.05f, 300) < 1e-3f);
  assert_true(train(test_gpu(), &desc, 0.05f, 40) < 0.2f);
  desc.clip = 0.1;
  assert_true(train(NULL, &desc, 0.05f, 300) < 1e-2f);
  desc.optimizer = BERTH_OPTIMIZER_SGD;
  desc.clip = 0;
  assert_true(train(NULL, &desc, 0.1f, 600) < 1e-2f);
  desc.momentum = 0;
  assert_true(train(NULL, &desc, 0.1f, 100) < 0.3f);
}

/* Weights and moments are updated where they lie: every next value is in the place of its state. */
static void updates_lie_over_their_states(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx, NET);
  berth_error err;
  (void)state;
  OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), NULL, &err));
  berth_session *session = session_of(graph, NULL, 0);
  const berth_plan *plan = berth_session_plan(session);
  assert_int_equal(berth_graph_n_states(graph), 10); /* three params with two moments each, and the count */
  for (uint32_t i = 0; i < berth_graph_n_states(graph); i++) {
    const berth_value held = berth_graph_state_at(graph, i);
    berth_slot before = BERTH_SLOT_INIT, after = BERTH_SLOT_INIT;
    OK(berth_plan_slot(plan, held, &before, &err));
    OK(berth_plan_slot(plan, berth_graph_next(graph, held), &after, &err));
    assert_int_equal(before.offset, after.offset);
  }
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* What rows are added up in starts as zeros, which a run makes: as constants they would stay in the arena. */
static void zeros_that_gradients_are_added_to_are_no_weights(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx,
                             "graph \"g\" { input %i : i64[5] param %table : f32[2000, 32]\n"
                             "%e = embedding(%table, %i) %q = mul(%e, %e) %y = reduce_sum(%q) {keepdims = 0}\n"
                             "output \"y\" = %y }");
  berth_error err;
  (void)state;
  OK(berth_graph_train(graph, berth_graph_find(graph, "y"), NULL, &err));
  berth_session *session = session_of(graph, NULL, 0);
  const berth_plan_info info = test_plan_info(berth_session_plan(session));
  assert_true(info.state_size >= 3 * 2000 * 32 * 4 && info.weights_size < 10000);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* A table that embeddings and the last product share: what the embeddings give is added in the product's gradient. */
static void a_shared_table_has_one_gradient_of_its_size(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx,
                             "graph \"g\" { input %i : i64[5] input %l : i64[5] param %table : f32[4000, 16]\n"
                             "%e = embedding(%table, %i) %t = transpose(%table) {perm = [1, 0]}\n"
                             "%logits = matmul(%e, %t) %c = cross_entropy(%logits, %l)\n"
                             "%y = reduce_mean(%c) {keepdims = 0} output \"y\" = %y }");
  const uint64_t table = 4000 * 16 * 4, logits = 5 * 4000 * 4;
  berth_train_desc how = BERTH_TRAIN_DESC_INIT;
  berth_error err;
  (void)state;
  how.optimizer = BERTH_OPTIMIZER_SGD;
  how.momentum = 0;
  OK(berth_graph_train(graph, berth_graph_find(graph, "y"), &how, &err));
  berth_session *session = session_of(graph, NULL, 0);
  const berth_plan_info info = test_plan_info(berth_session_plan(session));
  assert_true(info.activations_size < table + 2 * logits);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

/* 2 x 4 heads of 256 queries and keys: their scores would take 2 MiB. */
static void no_scores_of_attention_are_in_memory(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph =
      parse(ctx,
            "graph \"g\" { input %x : f32[2, 256, 32] param %w : f32[32, 96] %p = matmul(%x, %w)\n"
            "%q, %k, %v = split(%p) {axis = 2} %a = attention(%q, %k, %v) {heads = 4, mode = \"causal\"}\n"
            "%s = mul(%a, %a) %y = reduce_mean(%s) {keepdims = 0} output \"y\" = %y }");
  berth_error err;
  (void)state;
  OK(berth_graph_train(graph, berth_graph_find(graph, "y"), NULL, &err));
  berth_session *session = session_of(graph, NULL, 0);
  const berth_plan_info info = test_plan_info(berth_session_plan(session));
  assert_true(info.activations_size + info.scratch_size < 2 * 4 * 256 * 256 * 4);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

static void a_label_that_is_no_class_is_named(void **state) {
  berth_context *ctx = test_context();
  berth_graph *graph = parse(ctx,
                             "graph \"g\" { input %x : f32[2, 4] input %l : i64[2] input %d : f32[2]\n"
                             "%y = cross_entropy(%x, %l) %g = cross_entropy_grad(%x, %l, %d)\n"
                             "output \"y\" = %y output \"g\" = %g }");
  const float x[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const int64_t wrong[2][2] = {{1, 4}, {-1, 2}}, right[2] = {-100, 3};
  static const char *const said[] = {"label 4 of row 1 is not one of 4 classes", "label -1 of row 0"};
  berth_error err;
  float y[2];
  (void)state;
  berth_session *session = session_of(graph, NULL, 0);
  OK(berth_session_write(session, "x", x, sizeof x, &err));
  OK(berth_session_write(session, "d", x, 2 * sizeof *x, &err));
  for (int i = 0; i < 2; i++) {
    OK(berth_session_write(session, "l", wrong[i], sizeof wrong[i], &err));
    test_expect_error(berth_session_run(session, &err), BERTH_INVALID, &err, said[i]);
  }
  OK(berth_session_write(session, "l", right, sizeof right, &err));
  OK(berth_session_run(session, &err));
  OK(berth_session_read(session, "y", y, sizeof y, &err));
  assert_true(y[0] == 0 && y[1] > 0.4401f && y[1] < 0.4403f);
  berth_session_destroy(session);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

static void params_that_are_not_named_stay_as_they_are(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_graph *graph = parse(ctx, NET);
  berth_error err;
  berth_train_desc desc = BERTH_TRAIN_DESC_INIT;
  berth_value v = berth_graph_find(graph, "v");
  (void)state;
  desc.params = &v;
  desc.n_params = 1;
  OK(berth_graph_train(graph, berth_graph_find(graph, "loss"), &desc, &err));
  assert_int_equal(berth_graph_n_params(graph), 3); /* the others are frozen */
  test_expect_error(berth_graph_train(graph, berth_graph_find(graph, "loss"), &desc, &err), BERTH_INVALID, &err,
                    "is not a param");
  desc.beta1 = 1;
  test_expect_error(berth_graph_train(graph, berth_graph_find(graph, "loss"), &desc, &err), BERTH_INVALID, &err,
                    "out of range");
  berth_graph_destroy(graph);
  test_context_done(ctx, &alloc);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_op_without_a_rule_is_named_with_its_node),
      cmocka_unit_test(a_loop_that_makes_a_value_longer_is_refused),
      cmocka_unit_test(what_is_no_loss_is_refused),
      cmocka_unit_test(an_extent_that_a_rule_needs_is_asked_for),
      cmocka_unit_test(what_the_loss_does_not_depend_on_has_no_gradient),
      cmocka_unit_test(gradients_are_taken_before_dimensions_are_bound),
      cmocka_unit_test(rounding_is_left_out),
      cmocka_unit_test(memory_may_run_out_at_any_time),
      cmocka_unit_test(a_small_net_learns_exclusive_or),
      cmocka_unit_test(updates_lie_over_their_states),
      cmocka_unit_test(zeros_that_gradients_are_added_to_are_no_weights),
      cmocka_unit_test(a_shared_table_has_one_gradient_of_its_size),
      cmocka_unit_test(no_scores_of_attention_are_in_memory),
      cmocka_unit_test(a_label_that_is_no_class_is_named),
      cmocka_unit_test(params_that_are_not_named_stay_as_they_are),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
