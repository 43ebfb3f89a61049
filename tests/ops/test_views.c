/* Views against copies: every op that can be a view is run on tensors of random shapes and layouts whose elements are
 * their own places in memory. So the kernel's result says where each element lies, and the view must say the same; and
 * where these places are an even grid, there must be a view. */
#include "ops/op.h"
#include "support.h"

#define MAX_ELEMENTS 4096
#define ROUNDS 3000

typedef struct trial {
  uint64_t *random;
  const berth__op *op;
  berth_attr attrs[4];
  int64_t ints[4][BERTH_MAX_RANK];
  berth_dim dims[BERTH_MAX_RANK];
  berth_tensor in;
  int32_t memory[MAX_ELEMENTS];
  uint32_t n_out;
  berth__shape shape[4];
  int views, copies; /* how the outputs of all rounds could be had */
} trial;

static int64_t below(uint64_t *random, int64_t n) { return (int64_t)(test_random(random) % (uint64_t)n); }

/* ---- Operands ------------------------------------------------------------------------------------------------- */

/* Axes in any order, gaps after some, and now and then an axis that stands still. */
static void lay_out(trial *t) {
  int64_t next = 1;
  uint32_t left = (1u << t->in.rank) - 1;
  while (left != 0) {
    uint32_t axis = (uint32_t)below(t->random, t->in.rank);
    if (below(t->random, 3) > 0)
      for (axis = t->in.rank; axis-- > 0 && !(left >> axis & 1u);) continue; /* mostly as they stand */
    if (!(left >> axis & 1u)) continue;
    left &= ~(1u << axis);
    t->in.stride[axis] = below(t->random, 12) == 0 ? 0 : next;
    if (t->in.stride[axis] != 0 && t->in.dim[axis] > 0) next *= t->in.dim[axis];
    if (below(t->random, 4) == 0) next += 1;
  }
}

static void make_operand(trial *t, uint32_t max_rank) {
  t->in = (berth_tensor){.data = t->memory, .type = BERTH_I32, .rank = 1 + (uint32_t)below(t->random, max_rank)};
  for (uint32_t axis = 0; axis < t->in.rank; axis++)
    t->in.dim[axis] = below(t->random, 25) == 0 ? 0 : 1 + below(t->random, 4);
  lay_out(t);
}

/* ---- Attributes ----------------------------------------------------------------------------------------------- */

static void give_ints(trial *t, uint32_t attr, uint32_t count) {
  t->attrs[attr].count = count;
  t->attrs[attr].ints = t->ints[attr];
}

static void give_target(trial *t, uint32_t attr, uint32_t rank, const int64_t *dim) {
  for (uint32_t axis = 0; axis < rank; axis++) t->dims[axis] = (berth_dim){NULL, dim[axis]};
  t->attrs[attr].count = rank;
  t->attrs[attr].dims = t->dims;
}

/* A random way to write the number of elements as a product. */
static void aim_reshape(trial *t) {
  int64_t dim[BERTH_MAX_RANK];
  uint32_t rank = 0;
  make_operand(t, 5);
  int64_t left = berth__count(&t->in);
  while (rank + 1 < BERTH_MAX_RANK && (left > 1 || below(t->random, 3) == 0)) {
    int64_t factor = 1 + below(t->random, 12);
    dim[rank] = left % factor == 0 && left > 0 ? factor : 1;
    left /= dim[rank++];
  }
  dim[rank++] = left;
  give_target(t, 0, rank, dim);
  t->attrs[1].i = 1;
}

static void aim_flatten(trial *t) {
  make_operand(t, 5);
  t->attrs[0].i = below(t->random, t->in.rank + 1);
}

static void aim_squeeze(trial *t) {
  uint32_t count = 0;
  make_operand(t, 5);
  for (uint32_t axis = 0; axis < t->in.rank; axis++)
    if (t->in.dim[axis] == 1 && below(t->random, 2)) t->ints[0][count++] = axis;
  give_ints(t, 0, count); /* none: all of them */
}

static void aim_unsqueeze(trial *t) {
  make_operand(t, 5);
  t->ints[0][0] = below(t->random, t->in.rank + 2);
  t->ints[0][1] = (t->ints[0][0] + 1) % (t->in.rank + 2);
  give_ints(t, 0, 2);
}

static void aim_transpose(trial *t) {
  make_operand(t, 5);
  for (uint32_t axis = 0; axis < t->in.rank; axis++) {
    uint32_t other = (uint32_t)below(t->random, axis + 1);
    t->ints[0][axis] = t->ints[0][other];
    t->ints[0][other] = axis;
  }
  give_ints(t, 0, below(t->random, 4) == 0 ? 0 : t->in.rank);
}

static void aim_narrow(trial *t) {
  make_operand(t, 4);
  for (uint32_t axis = 0; axis < t->in.rank; axis++) {
    t->ints[1][axis] = below(t->random, 9) - 4;
    t->ints[2][axis] = below(t->random, 9) - 4;
    t->ints[3][axis] = 1 + below(t->random, 3);
    if (below(t->random, 6) == 0) t->ints[3][axis] = -t->ints[3][axis];
  }
  give_ints(t, 1, t->in.rank);
  give_ints(t, 2, t->in.rank);
  give_ints(t, 3, t->in.rank);
}

static void aim_split(trial *t) {
  make_operand(t, 4);
  const int64_t axis = below(t->random, t->in.rank);
  t->attrs[0].i = axis;
  t->n_out = 1 + (uint32_t)below(t->random, 3);
  int64_t left = t->in.dim[axis];
  for (uint32_t k = 0; k < t->n_out; k++) {
    t->ints[1][k] = k + 1 == t->n_out ? left : below(t->random, left + 1);
    left -= t->ints[1][k];
  }
  const bool can_be_equal = t->in.dim[axis] % t->n_out == 0;
  give_ints(t, 1, can_be_equal && below(t->random, 2) ? 0 : t->n_out);
}

static void aim_expand(trial *t) {
  int64_t dim[BERTH_MAX_RANK];
  make_operand(t, 4);
  dim[0] = 1 + below(t->random, 3);
  for (uint32_t axis = 0; axis < t->in.rank; axis++)
    dim[1 + axis] = t->in.dim[axis] == 1 ? 1 + below(t->random, 3) : t->in.dim[axis];
  give_target(t, 0, t->in.rank + 1, dim);
}

/* ---- Rounds --------------------------------------------------------------------------------------------------- */

static int64_t resolve(const berth__infer *infer, const berth_dim *dim) {
  (void)infer;
  return dim->extent;
}

static void infer(trial *t) {
  berth_error err = {BERTH_OK, ""};
  berth_type out_type[4];
  berth__shape in = {.rank = t->in.rank};
  memcpy(in.dim, t->in.dim, sizeof in.dim);
  berth__infer query = {.op = t->op,
                        .in_type = &t->in.type,
                        .in_shape = &in,
                        .n_in = 1,
                        .n_out = t->n_out,
                        .attrs = t->attrs,
                        .out_type = out_type,
                        .out_shape = t->shape,
                        .resolve = resolve};
  TEST_OK(t->op->family->infer(&query, &err));
}

static void copy_all(trial *t, berth_tensor *out) {
  berth_error err = {BERTH_OK, ""};
  berth_op_call call = {.in = &t->in,
                        .out = out,
                        .n_in = 1,
                        .n_out = t->n_out,
                        .attrs = t->attrs,
                        .n_attrs = t->op->family->n_attrs,
                        .user = berth__op_user(t->op)};
  call.end = t->op->family->items(&call);
  TEST_OK(t->op->family->kernel(&call, &err));
}

/* Whether places[index] = places[0] + sum of index * step, with steps of 0 or more. */
static bool is_grid(const berth__shape *shape, const int32_t *places, int64_t count) {
  int64_t contiguous[BERTH_MAX_RANK], step[BERTH_MAX_RANK];
  const int64_t *strides[1] = {step};
  berth__walk walk;
  if (count == 0) return true;
  berth__contiguous_strides(shape->rank, shape->dim, contiguous);
  for (uint32_t axis = 0; axis < shape->rank; axis++) {
    step[axis] = shape->dim[axis] > 1 ? places[contiguous[axis]] - places[0] : 0;
    if (step[axis] < 0) return false;
  }
  berth__walk_start(&walk, shape->rank, shape->dim, 1, strides, 0);
  for (int64_t i = 0; i < count; i++, berth__walk_next(&walk))
    if (places[i] != places[0] + walk.index[0]) return false;
  return true;
}

static void check_output(trial *t, uint32_t out, const int32_t *places) {
  const berth__shape *shape = &t->shape[out];
  int64_t offset = -1, stride[BERTH_MAX_RANK], count = 1;
  const int64_t *strides[1] = {stride};
  berth__walk walk;
  for (uint32_t axis = 0; axis < shape->rank; axis++) count *= shape->dim[axis];
  if (!t->op->family->view(&t->in, t->attrs, shape, BERTH_I32, out, &offset, stride)) {
    const bool may_copy = t->op->code == BERTH__OP_split && t->attrs[1].count == 0;
    if (!may_copy) assert_false(is_grid(shape, places, count));
    t->copies++;
    return;
  }
  assert_in_range(offset, 0, MAX_ELEMENTS);
  berth__walk_start(&walk, shape->rank, shape->dim, 1, strides, 0);
  for (int64_t i = 0; i < count; i++, berth__walk_next(&walk)) assert_int_equal(offset + walk.index[0], places[i]);
  t->views++;
}

static void one_round(trial *t, void (*aim)(trial *t)) {
  static int32_t results[4][MAX_ELEMENTS];
  berth_tensor out[4];
  t->n_out = 1;
  for (uint32_t k = 0; k < t->op->family->n_attrs; k++) t->attrs[k] = t->op->family->attrs[k];
  aim(t);
  infer(t);
  for (uint32_t k = 0; k < t->n_out; k++) {
    out[k] = (berth_tensor){.data = results[k], .type = BERTH_I32, .rank = t->shape[k].rank};
    memcpy(out[k].dim, t->shape[k].dim, sizeof out[k].dim);
    berth__contiguous_strides(out[k].rank, out[k].dim, out[k].stride);
  }
  copy_all(t, out);
  for (uint32_t k = 0; k < t->n_out; k++) check_output(t, k, results[k]);
}

/* Returns how many outputs had to be copied. */
static int check(berth__op_code code, void (*aim)(trial *t)) {
  static trial t;
  uint64_t random = 1 + (uint64_t)code;
  memset(&t, 0, sizeof t);
  t.random = &random;
  t.op = berth__op_builtin(code);
  for (int32_t i = 0; i < MAX_ELEMENTS; i++) t.memory[i] = i;
  for (int round = 0; round < ROUNDS; round++) one_round(&t, aim);
  assert_true(t.views > ROUNDS / 4);
  return t.copies;
}

static void reshape_views(void **state) {
  (void)state;
  assert_true(check(BERTH__OP_reshape, aim_reshape) > ROUNDS / 20);
}

static void flatten_views(void **state) {
  (void)state;
  assert_true(check(BERTH__OP_flatten, aim_flatten) > ROUNDS / 20);
}

static void squeeze_and_unsqueeze_are_always_views(void **state) {
  (void)state;
  assert_int_equal(check(BERTH__OP_squeeze, aim_squeeze), 0);
  assert_int_equal(check(BERTH__OP_unsqueeze, aim_unsqueeze), 0);
}

static void transpose_and_expand_are_always_views(void **state) {
  (void)state;
  assert_int_equal(check(BERTH__OP_transpose, aim_transpose), 0);
  assert_int_equal(check(BERTH__OP_expand, aim_expand), 0);
}

static void narrow_views(void **state) {
  (void)state;
  assert_true(check(BERTH__OP_narrow, aim_narrow) > 0); /* steps backwards */
}

static void split_views(void **state) {
  (void)state;
  check(BERTH__OP_split, aim_split);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reshape_views),
      cmocka_unit_test(flatten_views),
      cmocka_unit_test(squeeze_and_unsqueeze_are_always_views),
      cmocka_unit_test(transpose_and_expand_are_always_views),
      cmocka_unit_test(narrow_views),
      cmocka_unit_test(split_views),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
