/* The checked mode finds the kernel that writes where it may not, and names its node. */
#include <stdbool.h>

#include "support.h"

/* Where the op of these tests writes besides its result. */
typedef enum mischief {
  NONE,
  BEHIND,  /* just after its result */
  FAR,     /* at `target`, wherever that is */
  OPERAND, /* into its operand */
  FAILS    /* not at all: it returns an error */
} mischief;

typedef struct plot {
  mischief kind;
  unsigned char *target;
  size_t n_calls;
} plot;

static berth_status infer_same(const berth_op_infer *call, berth_error *err) {
  (void)err;
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

/* The sanitizer would stop the program at the stray write; here the check after the step must find it. A loop over
 * volatile bytes, since memcpy and memset are watched as well. */
__attribute__((no_sanitize("address"))) static void scribble(volatile unsigned char *at) {
  for (int i = 0; i < 4; i++) at[i] = (unsigned char)(at[i] ^ 0x5a);
}

static berth_status kernel(const berth_op_call *call, berth_error *err) {
  plot *p = call->user;
  const float *in = call->in[0].data;
  float *out = call->out[0].data;
  int64_t n = call->out[0].dim[0];
  p->n_calls++;
  for (int64_t i = 0; i < n; i++) out[i] = in[i] + 1;
  switch (p->kind) {
    case NONE: break;
    case BEHIND: scribble((unsigned char *)(out + n)); break;
    case FAR: scribble(p->target); break;
    case OPERAND: scribble(call->in[0].data); break;
    case FAILS:
      if (err != NULL) {
        err->status = BERTH_UNSUPPORTED;
        strcpy(err->message, "it does not want to");
      }
      return BERTH_UNSUPPORTED;
  }
  return BERTH_OK;
}

typedef struct fixture {
  berth_context *ctx;
  berth_graph *graph;
  berth_session *session;
  berth_error err;
  plot plot;
} fixture;

/* a is dead when bad runs, b is alive, w is a weight. */
static const char text[] =
    "graph \"checked\" { input %x : f32[25] param %w : f32[25]\n"
    "  %a = add(%x, %w)  %b = exp(%a)  %bad = test.bad(%b)  %c = add(%bad, %b)  %y = mul(%c, %w) output \"y\" = %y }";

static void start(fixture *f, const char *graph_text, uint32_t flags) {
  berth_error err;
  float w[25], x[25];
  memset(f, 0, sizeof *f);
  f->ctx = test_context();
  berth_op_desc op = BERTH_OP_DESC_INIT;
  op.name = "test.bad";
  op.min_in = op.max_in = 1;
  op.infer = infer_same;
  op.kernel = kernel;
  op.user = &f->plot;
  TEST_OK(berth_op_register(f->ctx, &op, &err));
  TEST_OK(berth_graph_parse(f->ctx, graph_text, strlen(graph_text), &f->graph, &err));
  berth_session_desc desc = BERTH_SESSION_DESC_INIT;
  berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
  plan.flags = flags | BERTH_PLAN_REFERENCE; /* nothing is fused */
  desc.plan = &plan;
  desc.flags = BERTH_SESSION_CHECKED;
  TEST_OK(berth_session_create(f->graph, &desc, &f->session, &err));
  for (int i = 0; i < 25; i++) w[i] = (float)i / 25, x[i] = (float)-i / 25;
  TEST_OK(berth_session_set_param(f->session, "w", w, sizeof w, &err));
  TEST_OK(berth_session_write(f->session, "x", x, sizeof x, &err));
}

static void finish(fixture *f) {
  berth_session_destroy(f->session);
  berth_graph_destroy(f->graph);
  berth_context_destroy(f->ctx);
}

static unsigned char *place_of(fixture *f, const char *name) {
  berth_arena *arena = berth_session_arena(f->session);
  return (unsigned char *)berth_arena_data(arena) + berth_arena_offset(arena, berth_graph_find(f->graph, name));
}

static void run_well(fixture *f) {
  float y[25];
  berth_error err;
  f->plot.kind = NONE;
  TEST_OK(berth_session_run(f->session, &err));
  TEST_OK(berth_session_read(f->session, "y", y, sizeof y, &err));
  for (int i = 0; i < 25; i++) {
    float w = (float)i / 25, want = 3 * w; /* exp(0) = 1, and 1 + 1 beside it */
    assert_true(y[i] > want - 1e-5f && y[i] < want + 1e-5f);
  }
}

static void run_badly(fixture *f, mischief kind, const char *part) {
  f->plot.kind = kind;
  f->err = (berth_error){BERTH_OK, ""};
  test_expect_error(berth_session_run(f->session, &f->err), BERTH_INTERNAL, &f->err, "node 'bad' (test.bad)");
  if (strstr(f->err.message, part) == NULL) fail_msg("the message has no \"%s\": %s", part, f->err.message);
  f->plot.kind = NONE;
  assert_int_equal(berth_session_run(f->session, NULL), BERTH_OK);
}

static void lets_good_kernels_pass(void **state) {
  fixture f;
  (void)state;
  start(&f, text, 0);
  run_well(&f);
  run_well(&f);
  assert_int_equal(f.plot.n_calls, 2);
  finish(&f);
}

static void finds_a_write_behind_the_result(void **state) {
  fixture f;
  (void)state;
  start(
      &f,
      "graph \"g\" { input %x : f32[25] param %w : f32[25] %a = add(%x, %w) %bad = test.bad(%a) output \"y\" = %bad }",
      0);
  run_badly(&f, BEHIND, "belongs to nobody at step 1 (behind 'bad')");
  finish(&f);
}

/* An input, the last buffer or an output: whatever lies after it, there is a guard between. */
static void finds_a_write_into_a_dead_region(void **state) {
  fixture f;
  (void)state;
  start(&f, text, BERTH_PLAN_NO_INPLACE);
  berth_slot y = BERTH_SLOT_INIT, bad = BERTH_SLOT_INIT, b = BERTH_SLOT_INIT;
  const berth_plan *plan = berth_session_plan(f.session);
  assert_int_equal(berth_plan_slot(plan, berth_graph_find(f.graph, "y"), &y, &f.err), BERTH_OK);
  assert_int_equal(berth_plan_slot(plan, berth_graph_find(f.graph, "bad"), &bad, &f.err), BERTH_OK);
  assert_int_equal(berth_plan_slot(plan, berth_graph_find(f.graph, "b"), &b, &f.err), BERTH_OK);
  berth_arena *arena = berth_session_arena(f.session);
  unsigned char *base = berth_arena_data(arena);
  uint64_t size = berth_arena_size(arena);
  bool is_live = bad.offset + bad.size == size || b.offset + b.size == size;
  if (!is_live) {
    f.plot.target = base + size - 4;
    run_badly(&f, FAR, "belongs to nobody");
  }
  f.plot.target = place_of(&f, "x") + 25 * 4; /* the guard of the input */
  run_badly(&f, FAR, "belongs to nobody at step 2 (behind 'x')");
  run_well(&f);
  finish(&f);
}

static void finds_a_write_into_a_live_buffer(void **state) {
  fixture f;
  (void)state;
  start(&f, text, BERTH_PLAN_NO_INPLACE);
  f.plot.kind = OPERAND;
  run_badly(&f, OPERAND, "wrote into 'b', which is not one of its results");
  f.plot.target = place_of(&f, "x") + 96; /* the last element */
  run_badly(&f, FAR, "wrote into 'x', which is not one of its results");
  finish(&f);
}

static void finds_a_write_into_weights(void **state) {
  fixture f;
  (void)state;
  start(&f, text, 0);
  f.plot.target = place_of(&f, "w");
  run_badly(&f, FAR, "wrote into 'w', which is not one of its results");
  finish(&f);
}

static void passes_on_what_a_kernel_says(void **state) {
  fixture f;
  (void)state;
  start(&f, text, 0);
  f.plot.kind = FAILS;
  test_expect_error(berth_session_run(f.session, &f.err), BERTH_UNSUPPORTED, &f.err,
                    "node 'bad' (test.bad): it does not want to");
  assert_int_equal(berth_session_run(f.session, NULL), BERTH_UNSUPPORTED);
  run_well(&f);
  finish(&f);
}

/* After an error nothing is poisoned: inputs can be written, the arena read and everything freed. */
static void the_session_is_whole_after_an_error(void **state) {
  fixture f;
  float x[25] = {0};
  (void)state;
  start(&f, text, 0);
  f.plot.kind = FAR;
  f.plot.target = place_of(&f, "w");
  test_expect_error(berth_session_run(f.session, &f.err), BERTH_INTERNAL, &f.err, NULL);
  berth_arena *arena = berth_session_arena(f.session);
  unsigned char *bytes = berth_arena_data(arena), sum = 0;
  for (uint64_t i = 0; i < berth_arena_size(arena); i++) sum = (unsigned char)(sum + bytes[i]);
  bytes[berth_arena_size(arena) - 1] = sum;
  assert_int_equal(berth_session_write(f.session, "x", x, sizeof x, &f.err), BERTH_OK);
  finish(&f);
}

/* Without checked mode, nothing is verified. */
static void only_in_checked_mode(void **state) {
  fixture f;
  berth_error err;
  berth_session *plain;
  float w[25] = {0};
  (void)state;
  start(&f, text, 0);
  TEST_OK(berth_session_create(f.graph, NULL, &plain, &err));
  TEST_OK(berth_session_set_param(plain, "w", w, sizeof w, &err));
  berth_arena *arena = berth_session_arena(plain);
  f.plot.kind = FAR;
  f.plot.target = (unsigned char *)berth_arena_data(arena) + berth_arena_offset(arena, berth_graph_find(f.graph, "w"));
  TEST_OK(berth_session_run(plain, &err));
  berth_session_destroy(plain);
  finish(&f);
}

/* Views, in-place chains, concats born in place, several results, scratch and reused bytes raise no false alarm. */
static const char *const good_graphs[] = {
    "graph \"v\" { input %x : f32[4, 25] %t = transpose(%x) {perm = [1, 0]} %m = matmul(%x, %t) %s = softmax(%m)\n"
    " %n = narrow(%s) {starts = [1], ends = [3]} %r = relu(%n) output \"r\" = %r output \"s\" = %s }",
    "graph \"c\" { input %x : f32[2, 8] %a = exp(%x) %b = neg(%x) %c = concat(%a, %b) {axis = 0} %p, %q = split(%c) "
    "{axis = 0}\n"
    " %z = add(%p, %q) output \"z\" = %z output \"q\" = %q }",
    "graph \"a\" { input %x : f32[2, 2, 16, 8] %y = attention(%x, %x, %x) {mode = \"causal\"} %k, %i = top_k(%y) {k = "
    "3}\n"
    " %l = layer_norm(%y) output \"k\" = %k output \"l\" = %l output \"i\" = %i }",
    "graph \"s\" { input %x : f32[3] %a = relu(%x) %b = exp(%a) %c = neg(%b) %d = abs(%c) %e = add(%d, %d) output "
    "\"e\" = %e }",
    "graph \"b\" { input %x : u8[5] input %f : f16[7] %c = cast(%x) {to = \"f64\"} %s = reduce_sum(%c) %h = neg(%f) %n "
    "= abs(%h)\n"
    " output \"s\" = %s output \"n\" = %n }",
};

static void raises_no_false_alarm(void **state) {
  static const uint32_t flags[] = {0,
                                   BERTH_PLAN_NO_REUSE,
                                   BERTH_PLAN_INPUTS_DIE,
                                   BERTH_PLAN_NO_INPLACE,
                                   BERTH_PLAN_NO_CONCAT,
                                   BERTH_PLAN_NO_STRIDED};
  (void)state;
  for (size_t g = 0; g < sizeof good_graphs / sizeof good_graphs[0]; g++) {
    for (size_t k = 0; k < 12; k++) {
      berth_error err;
      berth_graph *graph;
      berth_session *session;
      berth_session_desc desc = BERTH_SESSION_DESC_INIT;
      berth_plan_desc plan = BERTH_PLAN_DESC_INIT;
      berth_context *ctx = test_context();
      plan.flags = flags[k % 6];
      plan.align = k < 6 ? 16 : 256;
      desc.plan = &plan;
      desc.flags = BERTH_SESSION_CHECKED;
      TEST_OK(berth_graph_parse(ctx, good_graphs[g], strlen(good_graphs[g]), &graph, &err));
      TEST_OK(berth_session_create(graph, &desc, &session, &err));
      for (int round = 0; round < 2; round++) TEST_OK(berth_session_run(session, &err));
      berth_session_destroy(session);
      berth_graph_destroy(graph);
      berth_context_destroy(ctx);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lets_good_kernels_pass),
      cmocka_unit_test(finds_a_write_behind_the_result),
      cmocka_unit_test(finds_a_write_into_a_dead_region),
      cmocka_unit_test(finds_a_write_into_a_live_buffer),
      cmocka_unit_test(finds_a_write_into_weights),
      cmocka_unit_test(passes_on_what_a_kernel_says),
      cmocka_unit_test(the_session_is_whole_after_an_error),
      cmocka_unit_test(only_in_checked_mode),
      cmocka_unit_test(raises_no_false_alarm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
