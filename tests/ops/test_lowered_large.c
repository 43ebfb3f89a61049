/* Kernels whose form depends on how much there is to do, against the reference kernels: tiles that are turned, scatters
 * that walk, ranges that several workgroups find. */
#include <stdio.h>
#include <stdlib.h>

#include "lowered.h"
#include "support.h"

static const berth__kernel_limits wide = {.group_size = 256, .lanes = 32, .shared_bytes = 32768, .shares_well = true};

static op_tensor tensor(berth_type type, uint32_t rank, const int64_t *dim) {
  op_tensor t = {.type = type, .rank = rank, .count = 1};
  for (uint32_t i = 0; i < rank; i++) t.count *= t.dim[i] = dim[i];
  t.size = (size_t)t.count * berth_type_size(type);
  t.data = calloc(t.size + 1, 1);
  return t;
}

/* Numbers that look like any, all different in their neighbourhood. */
static void fill(op_tensor *t, int64_t modulus) {
  const berth_tensor whole = {.data = t->data, .type = t->type};
  for (int64_t i = 0; i < t->count; i++) berth__store_i64(&whole, i, (i * 7919 + 12345) % modulus - modulus / 2);
}

static berth_tensor of_call(const op_tensor *t) {
  berth_tensor tensor = {.data = t->data, .type = t->type, .rank = t->rank};
  memcpy(tensor.dim, t->dim, sizeof t->dim);
  berth__contiguous_strides(t->rank, t->dim, tensor.stride);
  return tensor;
}

/* Fills the results of a case by the reference kernel. */
static void run_reference(op_case *c) {
  const berth__op *op = berth__op_find(NULL, c->op);
  berth_tensor in[OP_CASE_MAX], out[OP_CASE_MAX];
  berth_attr attrs[OP_CASE_MAX];
  berth_error err;
  for (uint32_t i = 0; i < c->n_in; i++) in[i] = of_call(&c->in[i]);
  for (uint32_t i = 0; i < c->n_out; i++) out[i] = of_call(&c->out[i]);
  for (uint32_t i = 0; i < op->family->n_attrs; i++) {
    attrs[i] = op->family->attrs[i];
    for (uint32_t g = 0; g < c->n_attrs; g++)
      if (strcmp(c->attrs[g].name, attrs[i].name) == 0) attrs[i] = c->attrs[g];
  }
  berth_op_call call = {.in = in,
                        .out = out,
                        .n_in = c->n_in,
                        .n_out = c->n_out,
                        .attrs = attrs,
                        .n_attrs = op->family->n_attrs,
                        .user = berth__op_user(op)};
  call.end = berth__op_items(op, &call);
  call.scratch = op->family->scratch != NULL ? calloc(1, op->family->scratch(&call) + 1) : NULL;
  TEST_OK(op->family->kernel(&call, &err));
  free(call.scratch);
}

static void check(op_case *c) {
  berth_context *ctx = test_context();
  run_reference(c);
  assert_int_equal(lowered_run(ctx, c, &wide), LOWERED_HOLDS);
  for (uint32_t i = 0; i < c->n_in; i++) free(c->in[i].data);
  for (uint32_t i = 0; i < c->n_out; i++) free(c->out[i].data);
  berth_context_destroy(ctx);
}

static op_case case_of(const char *name, const char *op) {
  return (op_case){.name = (char *)(uintptr_t)name, .op = (char *)(uintptr_t)op, .file = (char *)(uintptr_t)__FILE__};
}

/* ---- Moves ---- */

static void transposes_go_through_tiles(void **state) {
  static const int64_t perms[][4] = {{0, 1, 3, 2}, {0, 2, 3, 1}, {3, 2, 1, 0}, {2, 0, 3, 1}, {0, 3, 1, 2}};
  const int64_t dim[4] = {2, 37, 3, 65};
  (void)state;
  for (size_t p = 0; p < sizeof perms / sizeof *perms; p++)
    for (int integers = 0; integers < 2; integers++) {
      const berth_type type = integers ? BERTH_I16 : BERTH_F32;
      int64_t turned[4];
      for (int i = 0; i < 4; i++) turned[i] = dim[perms[p][i]];
      op_case c = case_of("transpose", "transpose");
      c.attrs[c.n_attrs++] = berth_attr_ints("perm", perms[p], 4);
      c.in[c.n_in++] = tensor(type, 4, dim);
      c.out[c.n_out++] = tensor(type, 4, turned);
      fill(&c.in[0], 9973);
      check(&c);
    }
}

static void many_parts_take_several_kernels(void **state) {
  (void)state;
  for (int splits = 0; splits < 2; splits++) {
    op_case c = case_of("parts", splits ? "split" : "concat");
    int64_t parts[OP_CASE_MAX], extent = 0;
    op_tensor *part = splits ? c.out : c.in, *whole = splits ? c.in : c.out;
    for (uint32_t i = 0; i < OP_CASE_MAX; i++) {
      parts[i] = (int64_t)i % 5;
      extent += parts[i];
      part[i] = tensor(BERTH_F32, 3, (int64_t[]){3, parts[i], 4});
      fill(&part[i], 101 + i);
    }
    whole[0] = tensor(BERTH_F32, 3, (int64_t[]){3, extent, 4});
    if (splits) fill(&whole[0], 9973);
    c.n_in = splits ? 1 : OP_CASE_MAX;
    c.n_out = splits ? OP_CASE_MAX : 1;
    c.attrs[c.n_attrs++] = berth_attr_int("axis", 1);
    if (splits) c.attrs[c.n_attrs++] = berth_attr_ints("parts", parts, OP_CASE_MAX);
    check(&c);
  }
}

/* ---- Scatters ---- */

static void scatter_of(const char *op, const char *reduction, const int64_t *x, uint32_t rank, const int64_t *indices,
                       uint32_t indices_rank, const int64_t *updates, uint32_t updates_rank, int64_t range) {
  op_case c = case_of("scatter", op);
  c.attrs[c.n_attrs++] = berth_attr_string("reduction", reduction);
  if (strcmp(op, "scatter") == 0) c.attrs[c.n_attrs++] = berth_attr_int("axis", 1);
  c.in[c.n_in++] = tensor(BERTH_F32, rank, x);
  c.in[c.n_in++] = tensor(BERTH_I64, indices_rank, indices);
  c.in[c.n_in++] = tensor(BERTH_F32, updates_rank, updates);
  c.out[c.n_out++] = tensor(BERTH_F32, rank, x);
  fill(&c.in[0], 97);
  fill(&c.in[1], range);
  fill(&c.in[2], 89);
  check(&c);
}

static void scatters_walk_where_elements_are_many(void **state) {
  static const char *const reductions[] = {"none", "add", "mul", "max", "min"};
  (void)state;
  for (int r = 0; r < 5; r++) {
    const int64_t x[] = {3000, 80}, indices[] = {700, 9}, few[] = {6, 1}, slices[] = {6, 80};
    scatter_of("scatter", reductions[r], x, 2, indices, 2, indices, 2, 30);
    scatter_of("scatter_nd", reductions[r], x, 2, few, 2, slices, 2, 5);
  }
}

/* ---- What lies in its place ---- */

/* Lowers a call with places, and counts kernels that read operand 0. */
static void lower_placed(const char *name, const berth_attr *attr, const berth_tensor *in, uint32_t n_in,
                         const berth_tensor *out, const uint64_t *at, size_t *n_kernels, size_t *n_reading) {
  berth_context *ctx = test_context();
  const berth__op *op = berth__op_find(ctx, name);
  berth_error err;
  const berth_op_call call = {
      .in = in, .out = out, .n_in = n_in, .n_out = 1, .attrs = attr, .n_attrs = 1, .user = berth__op_user(op)};
  berth__lowering l = {.ctx = ctx, .limits = &wide, .op = op, .call = &call, .at = at};
  TEST_OK(berth__lower_call(&l, &err));
  *n_kernels = l.n_kernels;
  *n_reading = 0;
  for (size_t i = 0; i < l.n_kernels; i++)
    for (uint32_t b = 0; b < l.kernels[i]->n_buffers; b++) *n_reading += l.kernels[i]->buffers[b].operand == 0;
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

static berth_tensor plain(berth_type type, uint32_t rank, const int64_t *dim) {
  berth_tensor t = {.type = type, .rank = rank};
  memcpy(t.dim, dim, rank * sizeof *dim);
  berth__contiguous_strides(rank, dim, t.stride);
  return t;
}

static void parts_in_their_place_are_not_copied(void **state) {
  (void)state;
  const berth_attr axis = berth_attr_int("axis", 1);
  berth_tensor in[] = {plain(BERTH_F32, 2, (int64_t[]){2, 3}), plain(BERTH_F32, 2, (int64_t[]){2, 5})};
  const berth_tensor out = plain(BERTH_F32, 2, (int64_t[]){2, 8});
  size_t n_kernels, n_reading;
  in[0].stride[0] = 8; /* as a part of the result lies */
  lower_placed("concat", &axis, in, 2, &out, (uint64_t[]){64, 1024, 64}, &n_kernels, &n_reading);
  assert_int_equal(n_kernels, 1);
  assert_int_equal(n_reading, 0);
  lower_placed("concat", &axis, in, 2, &out, (uint64_t[]){64, 1024, 68}, &n_kernels, &n_reading);
  assert_int_equal(n_reading, 1);
  in[1].stride[0] = 8;
  lower_placed("concat", &axis, in, 2, &out, (uint64_t[]){64, 64 + 3 * 4, 64}, &n_kernels, &n_reading);
  assert_int_equal(n_kernels, 0);
}

/* A row that goes into a large cache: the cache stays where it is. */
static void caches_are_not_copied(void **state) {
  (void)state;
  const berth_attr reduction = berth_attr_string("reduction", "none");
  const int64_t cache[] = {4096, 64};
  const berth_tensor in[] = {plain(BERTH_F32, 2, cache), plain(BERTH_I64, 2, (int64_t[]){1, 1}),
                             plain(BERTH_F32, 2, (int64_t[]){1, 64})};
  const berth_tensor out = plain(BERTH_F32, 2, cache);
  size_t n_kernels, n_reading;
  lower_placed("scatter_nd", &reduction, in, 3, &out, (uint64_t[]){0, 1u << 24, 2u << 24, 0}, &n_kernels, &n_reading);
  assert_int_equal(n_kernels, 1);
  assert_int_equal(n_reading, 0);
  lower_placed("scatter_nd", &reduction, in, 3, &out, NULL, &n_kernels, &n_reading);
  assert_int_equal(n_reading, 1);
}

/* ---- quantize_range ---- */

static void ranges_are_found_by_several_workgroups(void **state) {
  (void)state;
  op_case c = case_of("range", "quantize_range");
  c.in[c.n_in++] = tensor(BERTH_F32, 1, (int64_t[]){50001});
  c.out[c.n_out++] = tensor(BERTH_F32, 0, NULL);
  c.out[c.n_out++] = tensor(BERTH_U8, 0, NULL);
  fill(&c.in[0], 40009);
  check(&c);
}

/* ---- Elements and sums ---- */

/* Workgroups with several rounds of elements, the last of which are not there; and words of two of them. */
static void very_many_elements_take_rounds(void **state) {
  (void)state;
  for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
    const berth_type type = is_narrow ? BERTH_BF16 : BERTH_F32;
    const int64_t count = (is_narrow ? 2 : 1) * (int64_t)(1 << 18) + 77;
    op_case c = case_of("neg", "neg");
    c.in[c.n_in++] = tensor(type, 1, &count);
    c.out[c.n_out++] = tensor(type, 1, &count);
    fill(&c.in[0], 251);
    check(&c);
  }
}

/* Threads of optimisers that have several elements, the last of which may not be there; and where nothing is applied.
 */
static void add_scalar(op_case *c, berth_type type, double value) {
  c->in[c->n_in] = tensor(type, 0, NULL);
  const berth_tensor scalar = {.data = c->in[c->n_in++].data, .type = type};
  berth__store_f64(&scalar, 0, value);
}

static void add_elements(op_case *c, int64_t count, int64_t modulus) {
  c->in[c->n_in] = tensor(BERTH_F32, 1, &count);
  fill(&c->in[c->n_in++], modulus);
}

static void optimizer_step(bool is_adamw, int64_t count, int applies) {
  op_case c = case_of("step", is_adamw ? "adamw" : "sgd");
  add_elements(&c, count, 101);
  add_elements(&c, count, 103);
  if (is_adamw) add_elements(&c, count, 107);
  if (is_adamw) add_elements(&c, count, 109);
  for (int64_t i = 0; i < count && is_adamw; i++) ((float *)c.in[BERTH__ADAMW_SQUARE].data)[i] += 60; /* not negative */
  add_scalar(&c, BERTH_F32, 0.125);                                                                   /* the rate */
  if (is_adamw) add_scalar(&c, BERTH_I64, 3);
  if (!is_adamw) add_elements(&c, count, 107);
  add_scalar(&c, BERTH_F32, 0.5);
  add_scalar(&c, BERTH_I64, applies);
  for (int i = 0; i < (is_adamw ? 3 : 2); i++) c.out[c.n_out++] = tensor(BERTH_F32, 1, &count);
  c.relative = 1e-5;
  check(&c);
}

static void optimizers_load_several_elements(void **state) {
  (void)state;
  for (int64_t count = 1 << 18; count < (1 << 18) + 100; count += 77)
    for (int applies = 0; applies < 2; applies++) {
      optimizer_step(false, count, applies);
      optimizer_step(true, count, applies);
    }
}

/* Rows that are summed over lie across: pieces of them, the last one shorter, have threads of their own. */
static void sums_across_are_found_in_pieces(void **state) {
  static const int64_t axes[1] = {0};
  (void)state;
  for (int is_mean = 0; is_mean < 2; is_mean++) {
    op_case c = case_of("across", is_mean ? "reduce_mean" : "reduce_sum");
    c.attrs[c.n_attrs++] = berth_attr_ints("axes", axes, 1);
    c.attrs[c.n_attrs++] = berth_attr_int("keepdims", 0);
    c.in[c.n_in++] = tensor(BERTH_F32, 2, (int64_t[]){701, 33});
    c.out[c.n_out++] = tensor(BERTH_F32, 1, (int64_t[]){33});
    c.relative = 1e-5;
    fill(&c.in[0], 101);
    check(&c);
  }
}

/* ---- rope ---- */

/* Positions so far out that an angle in f32 would be off by a visible part of a turn. */
static void rope_is_right_at_far_positions(void **state) {
  (void)state;
  for (int interleaved = 0; interleaved < 2; interleaved++) {
    op_case c = case_of("rope", "rope");
    c.attrs[c.n_attrs++] = berth_attr_int("interleaved", interleaved);
    c.in[c.n_in++] = tensor(BERTH_F32, 4, (int64_t[]){1, 2, 5, 20});
    c.in[c.n_in++] = tensor(BERTH_I64, 1, (int64_t[]){5});
    c.out[c.n_out++] = tensor(BERTH_F32, 4, (int64_t[]){1, 2, 5, 20});
    fill(&c.in[0], 7);
    memcpy(c.in[1].data, (int64_t[]){0, -3, 4095, 131071, 100000001}, 5 * sizeof(int64_t));
    check(&c);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(transposes_go_through_tiles),
      cmocka_unit_test(many_parts_take_several_kernels),
      cmocka_unit_test(scatters_walk_where_elements_are_many),
      cmocka_unit_test(parts_in_their_place_are_not_copied),
      cmocka_unit_test(caches_are_not_copied),
      cmocka_unit_test(ranges_are_found_by_several_workgroups),
      cmocka_unit_test(very_many_elements_take_rounds),
      cmocka_unit_test(optimizers_load_several_elements),
      cmocka_unit_test(sums_across_are_found_in_pieces),
      cmocka_unit_test(rope_is_right_at_far_positions),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
