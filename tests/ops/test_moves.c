/* What cases cannot say about the ops that move elements: named dimensions in attributes, and indices that only a run
 * can find to be out of range. */
#include "ops/op.h"
#include "support.h"

#define UNKNOWN BERTH__DIM_UNKNOWN
/* The graph's names: resolve() knows batch, seq and heads. */
static const char *const names[] = {"batch", "seq", "heads"};
#define BATCH (-1)
#define SEQ (-2)
#define HEADS (-3)

static const char *name_of(const berth__infer *infer, int64_t dim) {
  (void)infer;
  return names[berth__dim_index(dim)];
}

static int64_t resolve(const berth__infer *infer, const berth_dim *dim) {
  (void)infer;
  for (uint32_t k = 0; dim->name && k < 3; k++)
    if (strcmp(dim->name, names[k]) == 0) return berth__dim_named(k);
  return dim->name ? UNKNOWN : dim->extent;
}

typedef struct query {
  const char *op;
  berth__shape in;
  berth_attr attrs[2]; /* by name; the others have their defaults */
  uint32_t n_out;
} query;

/* Infers into out_shape; the status is the op's. */
static berth_status infer(const query *q, berth__shape *out_shape, berth_error *err) {
  const berth__op *op = berth__op_find(NULL, q->op);
  berth_attr attrs[16];
  berth_type type = BERTH_F32, out_type[4];
  assert_non_null(op);
  for (uint32_t k = 0; k < op->family->n_attrs; k++) {
    attrs[k] = op->family->attrs[k];
    for (uint32_t given = 0; given < 2; given++)
      if (q->attrs[given].name && strcmp(q->attrs[given].name, attrs[k].name) == 0) attrs[k] = q->attrs[given];
  }
  berth__infer call = {.op = op,
                       .in_type = &type,
                       .in_shape = &q->in,
                       .n_in = 1,
                       .n_out = q->n_out ? q->n_out : 1,
                       .attrs = attrs,
                       .out_type = out_type,
                       .out_shape = out_shape,
                       .resolve = resolve,
                       .dim_name = name_of};
  return op->family->infer(&call, err);
}

static void expect_shape(const query *q, berth__shape want) {
  berth__shape got[4];
  berth_error err = {BERTH_OK, ""};
  TEST_OK(infer(q, got, &err));
  assert_int_equal(got[0].rank, want.rank);
  for (uint32_t axis = 0; axis < want.rank; axis++) assert_int_equal(got[0].dim[axis], want.dim[axis]);
}

static void expect_failure(const query *q, const char *part) {
  berth__shape got[4];
  berth_error err = {BERTH_OK, ""};
  test_expect_error(infer(q, got, &err), BERTH_INVALID, &err, part);
}

static berth_attr target(uint32_t count, const berth_dim *dims) {
  return (berth_attr){.name = "shape", .kind = BERTH_ATTR_DIMS, .count = count, .dims = dims};
}

static berth_attr ints(const char *name, uint32_t count, const int64_t *values) {
  return (berth_attr){.name = name, .kind = BERTH_ATTR_INTS, .count = count, .ints = values};
}

static void reshape_takes_named_dimensions(void **state) {
  (void)state;
  const berth__shape in = {.rank = 3, .dim = {BATCH, SEQ, 12}};
  const berth_dim by_name[] = {{"batch", 0}, {"seq", 0}, {NULL, 3}, {NULL, -1}};
  expect_shape(&(query){"reshape", in, {target(4, by_name)}, 1}, (berth__shape){4, {BATCH, SEQ, 3, 4}});
  const berth_dim copied[] = {{NULL, 0}, {NULL, -1}, {NULL, 12}};
  expect_shape(&(query){"reshape", in, {target(3, copied)}, 1}, (berth__shape){3, {BATCH, SEQ, 12}});
  const berth_dim joined[] = {{NULL, -1}, {NULL, 12}};
  expect_shape(&(query){"reshape", in, {target(2, joined)}, 1}, (berth__shape){2, {UNKNOWN, 12}});
  const berth_dim moved[] = {{"seq", 0}, {NULL, -1}};
  expect_shape(&(query){"reshape", in, {target(2, moved)}, 1}, (berth__shape){2, {SEQ, UNKNOWN}});
  const berth_dim other[] = {{"heads", 0}, {NULL, -1}};
  expect_shape(&(query){"reshape", in, {target(2, other)}, 1}, (berth__shape){2, {HEADS, UNKNOWN}});
}

static void reshape_finds_what_names_cannot_mend(void **state) {
  (void)state;
  const berth__shape in = {.rank = 3, .dim = {BATCH, SEQ, 12}};
  const berth_dim fewer[] = {{"seq", 0}, {"batch", 0}, {NULL, 8}};
  expect_failure(&(query){"reshape", in, {target(3, fewer)}, 1}, "12 elements cannot take a shape of 8 elements");
  const berth_dim uneven[] = {{"seq", 0}, {"batch", 0}, {NULL, 5}, {NULL, -1}};
  expect_failure(&(query){"reshape", in, {target(4, uneven)}, 1}, "12 elements do not split into parts of 5");
}

static void expand_takes_named_dimensions(void **state) {
  (void)state;
  const berth_dim dims[] = {{"batch", 0}, {NULL, 1}, {NULL, 4}};
  expect_shape(&(query){"expand", {.rank = 2, .dim = {SEQ, 1}}, {target(3, dims)}, 1},
               (berth__shape){3, {BATCH, SEQ, 4}});
}

static void squeeze_without_axes_needs_fixed_dimensions(void **state) {
  (void)state;
  expect_shape(&(query){"squeeze", {.rank = 4, .dim = {1, 3, 1, 2}}, {{0}}, 1}, (berth__shape){2, {3, 2}});
  expect_failure(&(query){"squeeze", {.rank = 2, .dim = {1, BATCH}}, {{0}}, 1},
                 "dimension 1 ('batch') is bound after loading");
  expect_failure(&(query){"squeeze", {.rank = 2, .dim = {UNKNOWN, 1}}, {{0}}, 1}, "dimension 0 ('?')");
}

static void narrow_keeps_what_it_takes_whole(void **state) {
  (void)state;
  const int64_t starts[] = {0, 1}, ends[] = {INT64_MAX, INT64_MAX};
  expect_shape(
      &(query){"narrow", {.rank = 2, .dim = {BATCH, SEQ}}, {ints("starts", 2, starts), ints("ends", 2, ends)}, 1},
      (berth__shape){2, {BATCH, UNKNOWN}});
}

static void windows_keep_what_they_do_not_change(void **state) {
  (void)state;
  const int64_t kernel[] = {3, 3}, pads[] = {1, 0, 1, 0};
  expect_shape(&(query){"max_pool",
                        {.rank = 4, .dim = {BATCH, 8, SEQ, HEADS}},
                        {ints("kernel", 2, kernel), ints("pads", 4, pads)},
                        1},
               (berth__shape){4, {BATCH, 8, SEQ, UNKNOWN}});
}

static void equal_parts_must_fill_the_axis(void **state) {
  (void)state;
  expect_shape(&(query){"split", {.rank = 1, .dim = {4}}, {{0}}, 3}, (berth__shape){1, {2}}); /* 2, 2, 0 */
  expect_failure(&(query){"split", {.rank = 1, .dim = {5}}, {{0}}, 4}, "5 elements does not split into 4 parts of 2");
}

/* ---- Indices -------------------------------------------------------------------------------------------------- */

typedef struct indexed {
  berth_tensor in[3], out[1];
  float data[6], updates[3], result[9];
  int64_t indices[3];
} indexed;

static void expect_index_error(const char *name, int64_t extent, int64_t index, const char *part) {
  indexed x = {.indices = {0, index, 0}};
  berth_error err = {BERTH_OK, ""};
  const berth__op *op = berth__op_find(NULL, name);
  x.in[0] = (berth_tensor){.data = x.data, .type = BERTH_F32, .rank = 1, .dim = {extent}, .stride = {1}};
  x.in[1] = (berth_tensor){.data = x.indices, .type = BERTH_I64, .rank = 1, .dim = {3}, .stride = {1}};
  x.in[2] = (berth_tensor){.data = x.updates, .type = BERTH_F32, .rank = 1, .dim = {3}, .stride = {1}};
  x.out[0] = (berth_tensor){.data = x.result, .type = BERTH_F32, .rank = 1, .stride = {1}};
  x.out[0].dim[0] = strcmp(name, "scatter") == 0 ? extent : 3;
  berth_op_call call = {.in = x.in,
                        .out = x.out,
                        .n_in = strcmp(name, "scatter") == 0 ? 3 : 2,
                        .n_out = 1,
                        .attrs = op->family->attrs,
                        .n_attrs = op->family->n_attrs,
                        .user = berth__op_user(op)};
  call.end = op->family->items(&call);
  test_expect_error(op->family->kernel(&call, &err), BERTH_INVALID, &err, part);
}

static void indices_out_of_range_are_named(void **state) {
  static const char *const ops[] = {"gather", "embedding", "scatter"};
  (void)state;
  for (uint32_t k = 0; k < 3; k++) {
    expect_index_error(ops[k], 5, 5, "index 5 at position 1 is out of range for axis 0 of extent 5");
    expect_index_error(ops[k], 5, -6, "index -6 at position 1");
    expect_index_error(ops[k], 5, INT64_MIN, "index -9223372036854775808 at position 1");
    expect_index_error(ops[k], 0, 0, "index 0 at position 0 is out of range for axis 0 of extent 0");
  }
}

/* ---- Concat --------------------------------------------------------------------------------------------------- */

static void concat_leaves_parts_that_are_in_their_place(void **state) {
  float first[2] = {1, 2}, result[5] = {0, 0, 3, 4, 5};
  const berth__op *op = berth__op_builtin(BERTH__OP_concat);
  const berth_tensor in[2] = {{.data = first, .type = BERTH_F32, .rank = 1, .dim = {2}, .stride = {1}},
                              {.data = result + 2, .type = BERTH_F32, .rank = 1, .dim = {3}, .stride = {1}}};
  const berth_tensor out = {.data = result, .type = BERTH_F32, .rank = 1, .dim = {5}, .stride = {1}};
  const berth_op_call call = {.in = in,
                              .out = &out,
                              .n_in = 2,
                              .n_out = 1,
                              .attrs = op->family->attrs,
                              .n_attrs = op->family->n_attrs,
                              .end = 5,
                              .user = berth__op_user(op)};
  berth_error err = {BERTH_OK, ""};
  (void)state;
  TEST_OK(op->family->kernel(&call, &err));
  for (int i = 0; i < 5; i++) assert_true(result[i] == (float)(i + 1));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reshape_takes_named_dimensions),
      cmocka_unit_test(reshape_finds_what_names_cannot_mend),
      cmocka_unit_test(expand_takes_named_dimensions),
      cmocka_unit_test(squeeze_without_axes_needs_fixed_dimensions),
      cmocka_unit_test(narrow_keeps_what_it_takes_whole),
      cmocka_unit_test(windows_keep_what_they_do_not_change),
      cmocka_unit_test(equal_parts_must_fill_the_axis),
      cmocka_unit_test(indices_out_of_range_are_named),
      cmocka_unit_test(concat_leaves_parts_that_are_in_their_place),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
