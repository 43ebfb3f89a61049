/* The forms of a tile with sizes that shapes of tests would never choose. */
#include <math.h>
#include <stdlib.h>

#include "kernel/lower/tile.h"
#include "run.h"

#define ROWS 150
#define COLUMNS 139
#define DEPTH 50

static const berth__kernel_limits limits = {
    .group_size = 1024, .lanes = 32, .shared_bytes = 49152, .shares_well = true};
static float left[ROWS * DEPTH], right[DEPTH * COLUMNS], result[ROWS * COLUMNS];

static void fill(void) {
  uint64_t seed = 3;
  for (size_t i = 0; i < ROWS * DEPTH; i++) left[i] = test_random_f32(&seed);
  for (size_t i = 0; i < DEPTH * COLUMNS; i++) right[i] = test_random_f32(&seed);
  for (size_t i = 0; i < ROWS * COLUMNS; i++) result[i] = NAN;
}

static void compare(void) {
  for (size_t i = 0; i < ROWS; i++)
    for (size_t j = 0; j < COLUMNS; j++) {
      double sum = 0;
      for (size_t k = 0; k < DEPTH; k++) sum += (double)left[i * DEPTH + k] * (double)right[k * COLUMNS + j];
      if (!(fabs(sum - (double)result[i * COLUMNS + j]) < 1e-5))
        fail_msg("row %zu, column %zu: %g, expected %g", i, j, (double)result[i * COLUMNS + j], sum);
    }
}

static void store(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  berth__l_store(tile->l, k, 0, place[0], sum);
}

static void run(const berth__lowering *l) {
  const berth__kernel *k = l->kernels[0];
  float *const data[3] = {left, right, result};
  static const uint64_t sizes[3] = {ROWS * DEPTH, DEPTH * COLUMNS, ROWS * COLUMNS};
  uint32_t *words[3];
  uint64_t counts[3];
  berth_error err;
  assert_int_equal(l->n_kernels, 1);
  for (uint32_t i = 0; i < k->n_buffers; i++) {
    words[i] = (uint32_t *)(void *)data[k->buffers[i].operand];
    counts[i] = sizes[k->buffers[i].operand];
  }
  TEST_OK(run_kernel(k, words, counts, &err));
}

typedef berth_status (*form_fn)(berth__tile *tile, const berth__tile_form *form, berth_error *err);

static void check(form_fn make, const berth__tile_form *form) {
  const berth_tensor tensors[3] = {{.type = BERTH_F32, .rank = 2, .dim = {ROWS, DEPTH}, .stride = {DEPTH, 1}},
                                   {.type = BERTH_F32, .rank = 2, .dim = {DEPTH, COLUMNS}, .stride = {COLUMNS, 1}},
                                   {.type = BERTH_F32, .rank = 2, .dim = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}}};
  const berth_op_call call = {.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  berth_context *ctx = test_context();
  berth__lowering l = {.ctx = ctx, .limits = &limits, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call};
  berth__tile tile;
  berth_error err;
  fill();
  berth__tile_init(&tile, &l, BERTH__NUM_F32);
  tile.finish = store;
  berth__tile_axis(&tile.rows, ROWS, 0, 1);
  berth__tile_axis(&tile.columns, COLUMNS, 1, 1);
  berth__tile_axis(&tile.depth, DEPTH, 0, 0);
  tile.left.line[0] = DEPTH;
  tile.left.depth[0] = 1;
  tile.right.line[0] = 1;
  tile.right.depth[0] = COLUMNS;
  TEST_OK(make(&tile, form, &err));
  run(&l);
  compare();
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

static void shared_forms(void **state) {
  static const berth__tile_form forms[] = {{8, 8, 16, 16, 16}, {8, 8, 16, 16, 8},  {4, 4, 16, 16, 32},
                                           {4, 4, 16, 16, 16}, {2, 2, 16, 16, 32}, {1, 1, 16, 16, 32},
                                           {4, 4, 8, 8, 16},   {2, 2, 8, 8, 16},   {3, 2, 5, 7, 9}};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(berth__tile_shared, &forms[i]);
}

static void register_forms(void **state) {
  static const berth__tile_form forms[] = {{.thread_rows = 8, .thread_columns = 8},
                                           {.thread_rows = 1, .thread_columns = 4},
                                           {.thread_rows = 5, .thread_columns = 3}};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(berth__tile_registers, &forms[i]);
}

static void split_forms(void **state) {
  static const berth__tile_form forms[] = {{1, 1, 32, 16, 0}, {4, 1, 128, 2, 0}, {2, 1, 7, 8, 0}, {3, 1, 1, 9, 0}};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(berth__tile_split, &forms[i]);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_forms), cmocka_unit_test(register_forms),
                                     cmocka_unit_test(split_forms)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
