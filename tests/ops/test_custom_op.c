/* Ops that a user registers with a context. */
#include "ops/registry.h"
#include "support.h"

/* ---- An op: x * factor + its place in the row, through scratch ------------------------------------------------- */

static berth_status scale_infer(const berth_op_infer *call, berth_error *err) {
  (void)err;
  assert_int_equal(call->n_attrs, 2);
  call->out_type[0] = call->in_type[0];
  call->out_shape[0] = call->in_shape[0];
  return BERTH_OK;
}

static int64_t scale_items(const berth_op_call *call) { return call->in[0].dim[0]; }

static uint64_t scale_scratch(const berth_op_call *call) {
  assert_null(call->in[0].data);
  return (uint64_t)call->in[0].dim[1] * sizeof(float);
}

static berth_status scale_kernel(const berth_op_call *call, berth_error *err) {
  int64_t n = call->in[0].dim[1];
  float *row = call->scratch;
  (void)err;
  ++*(int *)call->user;
  for (int64_t item = call->begin; item < call->end; item++) {
    const float *x = (const float *)call->in[0].data + item * n;
    for (int64_t i = 0; i < n; i++) row[i] = x[i] * (float)call->attrs[0].f + (float)i;
    memcpy((float *)call->out[0].data + item * n, row, (size_t)n * sizeof *row);
  }
  return BERTH_OK;
}

static const int64_t default_axes[] = {1, 2, 3};
static const berth_attr scale_attrs[] = {
    {.name = "factor", .kind = BERTH_ATTR_FLOAT, .f = 2.0},
    {.name = "axes", .kind = BERTH_ATTR_INTS, .count = 3, .ints = default_axes},
};

static berth_op_desc scale_desc(int *calls) {
  berth_op_desc desc = BERTH_OP_DESC_INIT;
  desc.name = "test.scale";
  desc.min_in = desc.max_in = 1;
  desc.attrs = scale_attrs;
  desc.n_attrs = 2;
  desc.in_place = 1;
  desc.infer = scale_infer;
  desc.items = scale_items;
  desc.scratch = scale_scratch;
  desc.kernel = scale_kernel;
  desc.user = calls;
  return desc;
}

/* ---- A graph of two names, as inference sees it --------------------------------------------------------------- */

static const char *const dim_names[] = {"batch", "seq"};

static const char *name_of_dim(const berth__infer *infer, int64_t dim) {
  (void)infer;
  return dim_names[berth__dim_index(dim)];
}

static int64_t resolve_dim(const berth__infer *infer, const berth_dim *dim) {
  (void)infer;
  for (uint32_t i = 0; i < 2; i++)
    if (strcmp(dim->name, dim_names[i]) == 0) return berth__dim_named(i);
  return BERTH__DIM_UNKNOWN;
}

static berth_status infer_op(const berth__op *op, berth__shape in, berth__shape *out, berth_type *type,
                             berth_error *err) {
  berth_type in_type = BERTH_F32;
  berth__infer infer = {.op = op,
                        .in_type = &in_type,
                        .in_shape = &in,
                        .n_in = 1,
                        .n_out = 1,
                        .attrs = op->family->attrs,
                        .out_type = type,
                        .out_shape = out,
                        .resolve = resolve_dim,
                        .dim_name = name_of_dim};
  return op->family->infer(&infer, err);
}

/* ---- Registering and finding ---------------------------------------------------------------------------------- */

static void a_registered_op_is_found(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  int calls = 0;
  uint32_t before = berth_op_count(ctx);
  berth_op_desc desc = scale_desc(&calls);
  (void)state;
  assert_int_equal(before, berth_op_count(NULL));
  assert_null(berth__op_find(ctx, "test.scale"));
  TEST_OK(berth_op_register(ctx, &desc, &err));
  assert_int_equal(berth_op_count(ctx), before + 1);
  assert_string_equal(berth_op_name(ctx, before), "test.scale");
  assert_null(berth_op_name(ctx, before + 1));
  const berth__op *op = berth__op_find(ctx, "test.scale");
  assert_non_null(op);
  assert_int_equal(op->code, BERTH__OP_CUSTOM);
  assert_ptr_equal(berth__op_user(op), &calls);
  assert_null(berth__op_find(NULL, "test.scale"));
  test_context_done(ctx, &alloc);
}

static void the_descriptor_is_copied_deeply(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  int calls = 0;
  char name[] = "test.copy", attr_name[] = "text", text[] = "abc", dim_name[] = "batch";
  int64_t ints[] = {4, 5};
  double floats[] = {0.5, 1.5};
  berth_dim dims[] = {{dim_name, 0}, {NULL, 7}};
  berth_attr attrs[] = {berth_attr_string(attr_name, text), berth_attr_ints("ints", ints, 2),
                        berth_attr_floats("floats", floats, 2), berth_attr_dims("dims", dims, 2),
                        berth_attr_int("int", 3)};
  berth_op_desc desc = scale_desc(&calls);
  (void)state;
  desc.name = name;
  desc.attrs = attrs;
  desc.n_attrs = 5;
  TEST_OK(berth_op_register(ctx, &desc, &err));
  memset(name, 'x', sizeof name - 1), memset(attr_name, 'x', sizeof attr_name - 1), memset(text, 'x', sizeof text - 1);
  memset(dim_name, 'x', sizeof dim_name - 1), memset(ints, 0, sizeof ints), memset(floats, 0, sizeof floats);
  memset(dims, 0, sizeof dims), memset(attrs, 0, sizeof attrs);
  const berth__op *op = berth__op_find(ctx, "test.copy");
  assert_non_null(op);
  const berth_attr *kept = op->family->attrs;
  assert_int_equal(op->family->n_attrs, 5);
  assert_string_equal(kept[0].name, "text");
  assert_string_equal(kept[0].s, "abc");
  assert_int_equal(kept[1].ints[1], 5);
  assert_true(kept[2].floats[1] == 1.5);
  assert_string_equal(kept[3].dims[0].name, "batch");
  assert_int_equal(kept[3].dims[1].extent, 7);
  assert_int_equal(kept[4].i, 3);
  test_context_done(ctx, &alloc);
}

static void built_in_ops_come_first(void **state) {
  (void)state;
  assert_string_equal(berth_op_name(NULL, 0), "identity");
  assert_null(berth_op_name(NULL, berth_op_count(NULL)));
  assert_null(berth__op_find(NULL, NULL));
  assert_null(berth__op_find(NULL, "no_such_op"));
  assert_null(berth__op_builtin(BERTH__OP_COUNT));
  uint32_t n_public = 0;
  for (uint32_t i = 0; i < BERTH__OP_COUNT; i++) {
    const berth__op *op = berth__op_builtin((berth__op_code)i);
    assert_ptr_equal(berth__op_find(NULL, op->name), op);
    assert_ptr_equal(berth__op_user(op), op);
    if (op->tier == BERTH__PUBLIC) assert_string_equal(berth_op_name(NULL, n_public++), op->name);
    assert_non_null(op->family->infer);
    assert_non_null(op->family->kernel);
  }
  assert_int_equal(berth_op_count(NULL), n_public);
}

/* What rewriting alone makes is no op for users: it is neither listed nor taken. */
static void ops_that_rewriting_makes_are_not_public(void **state) {
  static const char *const made[] = {"chain", "product", "conv_last", "pack_weights", "qproduct"};
  berth_context *ctx = test_context();
  const berth_dim dims[] = {{.extent = 4}, {.extent = 4}};
  const berth_shape shape = {.rank = 2, .dim = {dims[0], dims[1]}};
  berth_graph *graph;
  berth_value x;
  berth_error err;
  (void)state;
  TEST_OK(berth_graph_create(ctx, "g", &graph, &err));
  TEST_OK(berth_graph_input(graph, "x", BERTH_F32, shape, &x, &err));
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    const berth_value in[] = {x, x};
    berth_value out = x;
    test_expect_error(berth_graph_add(graph, made[i], in, 2, NULL, 0, &out, 1, &err), BERTH_UNSUPPORTED, &err,
                      "only rewriting makes it");
    assert_int_equal(out, BERTH_VALUE_NONE);
    assert_int_equal(berth__op_find(NULL, made[i])->tier, BERTH__MADE);
    for (uint32_t k = 0; k < berth_op_count(ctx); k++) assert_string_not_equal(berth_op_name(ctx, k), made[i]);
  }
  assert_int_equal(berth_graph_n_nodes(graph), 0);
  berth_graph_destroy(graph);
  berth_context_destroy(ctx);
}

/* ---- Refused descriptors -------------------------------------------------------------------------------------- */

static void expect_refused(berth_context *ctx, const berth_op_desc *desc, const char *part) {
  berth_error err = {BERTH_OK, ""};
  uint32_t before = berth_op_count(ctx);
  test_expect_error(berth_op_register(ctx, desc, &err), BERTH_INVALID, &err, part);
  assert_int_equal(berth_op_count(ctx), before);
}

static void wrong_descriptors_are_refused(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  int calls = 0;
  berth_op_desc good = scale_desc(&calls), d;
  (void)state;
  expect_refused(NULL, &good, "context");
  expect_refused(ctx, NULL, "descriptor");
  d = good, d.struct_size = 0, expect_refused(ctx, &d, "berth_op_desc");
  d = good, d.name = NULL, expect_refused(ctx, &d, "needs a name");
  d = good, d.name = "", expect_refused(ctx, &d, "needs a name");
  d = good, d.name = "matmul", expect_refused(ctx, &d, "'matmul' is built in");
  d = good, d.infer = NULL, expect_refused(ctx, &d, "no infer");
  d = good, d.kernel = NULL, expect_refused(ctx, &d, "no kernel");
  d = good, d.n_out = 0, expect_refused(ctx, &d, "0 outputs");
  d = good, d.n_out = 255, expect_refused(ctx, &d, "255 outputs");
  d = good, d.min_in = 2, expect_refused(ctx, &d, "at least 2 and at most 1");
  d = good, d.attrs = NULL, expect_refused(ctx, &d, "attrs is NULL");
  TEST_OK(berth_op_register(ctx, &good, &err));
  expect_refused(ctx, &good, "already registered");
  test_context_done(ctx, &alloc);
}

static void wrong_attributes_are_refused(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  int calls = 0;
  berth_attr attrs[2] = {scale_attrs[0], scale_attrs[1]};
  berth_op_desc d = scale_desc(&calls);
  (void)state;
  d.attrs = attrs;
  attrs[1] = attrs[0], expect_refused(ctx, &d, "'factor' is declared twice");
  attrs[1].name = NULL, expect_refused(ctx, &d, "attribute 1 has no name");
  attrs[1] = scale_attrs[1], attrs[1].kind = (berth_attr_kind)9, expect_refused(ctx, &d, "unknown kind 9");
  attrs[1] = scale_attrs[1], attrs[1].ints = NULL, expect_refused(ctx, &d, "no default value");
  attrs[1] = berth_attr_string("text", NULL), expect_refused(ctx, &d, "no default value");
  test_context_done(ctx, &alloc);
}

/* ---- Inference ------------------------------------------------------------------------------------------------ */

static void dimensions_pass_through_inference(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  int calls = 0;
  berth_op_desc desc = scale_desc(&calls);
  berth__shape in = {4, {3, berth__dim_named(1), BERTH__DIM_UNKNOWN, berth__dim_named(0)}}, out = {0};
  berth_type type = BERTH_TYPE_NONE;
  (void)state;
  TEST_OK(berth_op_register(ctx, &desc, &err));
  TEST_OK(infer_op(berth__op_find(ctx, "test.scale"), in, &out, &type, &err));
  assert_int_equal(type, BERTH_F32);
  assert_true(berth__shape_equal(&in, &out));
  test_context_done(ctx, &alloc);
}

typedef struct answer {
  berth_status status;
  berth_type type;
  berth_shape shape;
} answer;

static berth_status give_answer(const berth_op_infer *call, berth_error *err) {
  const answer *a = call->user;
  if (a->status != BERTH_OK) return berth__fail(err, a->status, "the op does not like this");
  call->out_type[0] = a->type;
  call->out_shape[0] = a->shape;
  return BERTH_OK;
}

static void wrong_answers_are_refused(void **state) {
  test_alloc alloc = {0};
  berth_context *ctx = test_context_counting(&alloc);
  berth_error err;
  answer a = {BERTH_UNSUPPORTED, BERTH_F32, BERTH_SHAPE(2, 3)};
  berth_op_desc desc = scale_desc(NULL);
  berth__shape in = {1, {5}}, out = {0};
  berth_type type = BERTH_TYPE_NONE;
  (void)state;
  desc.infer = give_answer;
  desc.user = &a;
  TEST_OK(berth_op_register(ctx, &desc, &err));
  const berth__op *op = berth__op_find(ctx, "test.scale");
  test_expect_error(infer_op(op, in, &out, &type, &err), BERTH_UNSUPPORTED, &err, "does not like");
  a = (answer){BERTH_OK, BERTH_TYPE_NONE, BERTH_SHAPE(2)};
  test_expect_error(infer_op(op, in, &out, &type, &err), BERTH_INVALID, &err, "no type");
  a = (answer){BERTH_OK, BERTH_F16, BERTH_SHAPE(2, -4)};
  test_expect_error(infer_op(op, in, &out, &type, &err), BERTH_INVALID, &err, "extent -4");
  a = (answer){BERTH_OK, BERTH_F16, BERTH_SHAPE(1, 1, 1, 1, 1, 1, 1, 1, 1)};
  test_expect_error(infer_op(op, in, &out, &type, &err), BERTH_INVALID, &err, "rank 9");
  a = (answer){BERTH_OK, BERTH_F16, BERTH_SHAPE(2, 3)};
  a.shape.dim[1].name = "seq";
  TEST_OK(infer_op(op, in, &out, &type, &err));
  assert_int_equal(type, BERTH_F16);
  assert_int_equal(out.dim[0], 2);
  assert_int_equal(out.dim[1], berth__dim_named(1));
  test_context_done(ctx, &alloc);
}

/* ---- Running -------------------------------------------------------------------------------------------------- */

static void the_kernel_runs_with_its_own_pointer(void **state) {
  berth_context *ctx = test_context();
  berth_error err;
  int calls = 0;
  float x[] = {1, 2, 3, 4, 5, 6}, y[6] = {0}, scratch[3];
  berth_op_desc desc = scale_desc(&calls);
  berth_tensor in = {.type = BERTH_F32, .rank = 2, .dim = {2, 3}, .stride = {3, 1}}, out = in;
  (void)state;
  TEST_OK(berth_op_register(ctx, &desc, &err));
  const berth__op *op = berth__op_find(ctx, "test.scale");
  berth_op_call call = {.in = &in,
                        .out = &out,
                        .n_in = 1,
                        .n_out = 1,
                        .attrs = op->family->attrs,
                        .n_attrs = 2,
                        .user = berth__op_user(op)};
  assert_int_equal(op->family->scratch(&call), sizeof scratch);
  in.data = x, out.data = y, call.scratch = scratch;
  call.end = op->family->items(&call);
  assert_int_equal(call.end, 2);
  TEST_OK(op->family->kernel(&call, &err));
  assert_int_equal(calls, 1);
  for (int i = 0; i < 6; i++) assert_true(y[i] == x[i] * 2 + (float)(i % 3));
  berth_context_destroy(ctx);
}

static berth_status register_and_infer(berth_context *ctx, berth_error *err, void *user) {
  int64_t ints[] = {1};
  double floats[] = {1};
  berth_dim dims[] = {{"batch", 0}};
  berth_attr attrs[] = {berth_attr_string("s", "text"), berth_attr_ints("i", ints, 1)};
  berth_attr more[] = {berth_attr_floats("f", floats, 1), berth_attr_dims("d", dims, 1)};
  berth_op_desc desc = scale_desc(user);
  berth__shape in = {2, {3, berth__dim_named(0)}}, out;
  berth_type type;
  desc.attrs = attrs;
  BERTH__TRY(berth_op_register(ctx, &desc, err));
  desc.name = "test.other";
  desc.attrs = more;
  BERTH__TRY(berth_op_register(ctx, &desc, err));
  return infer_op(berth__op_find(ctx, "test.scale"), in, &out, &type, err);
}

static void memory_may_run_out_anywhere(void **state) {
  int calls = 0;
  (void)state;
  assert_true(test_fail_each_allocation(register_and_infer, &calls) >= 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_registered_op_is_found),
      cmocka_unit_test(the_descriptor_is_copied_deeply),
      cmocka_unit_test(built_in_ops_come_first),
      cmocka_unit_test(ops_that_rewriting_makes_are_not_public),
      cmocka_unit_test(wrong_descriptors_are_refused),
      cmocka_unit_test(wrong_attributes_are_refused),
      cmocka_unit_test(dimensions_pass_through_inference),
      cmocka_unit_test(wrong_answers_are_refused),
      cmocka_unit_test(the_kernel_runs_with_its_own_pointer),
      cmocka_unit_test(memory_may_run_out_anywhere),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
