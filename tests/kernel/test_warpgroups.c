/* Products by warpgroups, whose tiles lie in rows of 128 bytes and are done with late: as they are and expanded, with
 * the right side along the depth and across it, and with what is added at the end, which threads with many sums load in
 * rounds. */
#include <math.h>

#include "base/half.h"
#include "kernel/lower/tile.h"
#include "run.h"

#define ROWS 150
#define COLUMNS 144
#define DEPTH 136

static const berth__kernel_limits limits = {.group_size = 256,
                                            .lanes = 32,
                                            .shared_bytes = 49152,
                                            .shares_well = true,
                                            .multiplies = BERTH__MATRIX_UNITS,
                                            .tile_bytes = 114688,
                                            .large_bytes = 229376,
                                            .has_warpgroups = true};
static uint16_t left[ROWS * DEPTH], right[COLUMNS * DEPTH];
static float added[ROWS * COLUMNS], result[ROWS * COLUMNS], first[ROWS * COLUMNS];

static double element(const uint16_t *x, int64_t line, int64_t line_stride, int64_t depth, int64_t depth_stride) {
  return (double)berth__bf16_to_f32(x[line * line_stride + depth * depth_stride]);
}

static void compare(const berth__tile *tile) {
  for (int64_t i = 0; i < ROWS; i++)
    for (int64_t j = 0; j < COLUMNS; j++) {
      double sum = 0;
      for (int64_t d = 0; d < DEPTH; d++)
        sum += element(left, i, tile->left.line[0], d, tile->left.depth[0]) *
               element(right, j, tile->right.line[0], d, tile->right.depth[0]);
      sum += (double)added[i * COLUMNS + j];
      if (!(fabs(sum - (double)result[i * COLUMNS + j]) < 1e-4))
        fail_msg("row %lld, column %lld: %g, expected %g", (long long)i, (long long)j, (double)result[i * COLUMNS + j],
                 sum);
    }
}

static void run(const berth__lowering *l) {
  const berth__kernel *k = l->kernels[0];
  void *const data[4] = {left, right, added, result};
  static const uint64_t counts[4] = {sizeof left / 2, sizeof right / 2, ROWS * COLUMNS, ROWS * COLUMNS};
  uint32_t *words[4];
  uint64_t sizes[4];
  berth_error err;
  assert_int_equal(l->n_kernels, 1);
  for (uint32_t i = 0; i < k->n_buffers; i++) {
    words[i] = data[k->buffers[i].operand];
    sizes[i] = counts[k->buffers[i].operand];
  }
  for (size_t i = 0; i < ROWS * COLUMNS; i++) result[i] = NAN;
  TEST_OK(run_kernel(k, words, sizes, &err));
}

static void check_as(bool right_deep, uint32_t rows, uint32_t columns, uint32_t slots, bool is_staged) {
  const int64_t column = right_deep ? DEPTH : 1, down = right_deep ? 1 : COLUMNS;
  const berth_tensor tensors[4] = {{.type = BERTH_BF16, .rank = 2, .dim = {ROWS, DEPTH}, .stride = {DEPTH, 1}},
                                   {.type = BERTH_BF16, .rank = 2, .dim = {DEPTH, COLUMNS}, .stride = {down, column}},
                                   {.type = BERTH_F32, .rank = 2, .dim = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}},
                                   {.type = BERTH_F32, .rank = 2, .dim = {ROWS, COLUMNS}, .stride = {COLUMNS, 1}}};
  const berth_op_call call = {.in = tensors, .out = tensors + 3, .n_in = 3, .n_out = 1};
  const berth_attr adds = {.i = 1};
  const berth__matrix_form form = {
      .rows = rows, .columns = columns, .threads = 2 * rows, .depth = 64, .slots = slots, .parts = 1, .is_late = true};
  berth_context *ctx = test_context();
  berth__lowering l = {.ctx = ctx, .limits = &limits, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call};
  static const uint64_t at[4] = {0, 0, 0, 8}; /* runs of 16 bytes do not begin there */
  if (!is_staged) l.at = at;
  berth__tile tile;
  berth__tile_epilogue epilogue;
  berth_error err;
  berth__tile_init(&tile, &l, BERTH__NUM_F32);
  TEST_OK(berth__tile_epilogue_read(&tile, &epilogue, BERTH__TILE_NONE, 0, &adds, 3, NULL, NULL, &err));
  berth__tile_axis(&tile.rows, ROWS, 0, 1);
  berth__tile_axis(&tile.columns, COLUMNS, 1, 1);
  berth__tile_axis(&tile.depth, DEPTH, 0, 0);
  tile.left.line[0] = DEPTH;
  tile.left.depth[0] = 1;
  tile.right.line[0] = column;
  tile.right.depth[0] = down;
  TEST_OK(berth__tile_matrix(&tile, BERTH_COMPUTE_BF16, &form, &err));
  assert_true(l.kernels[0]->sums[0].is_late);
  assert_int_equal(count_of(l.kernels[0], BERTH__INST_quad_store) > 0, is_staged);
  run(&l);
  memcpy(first, result, sizeof first);
  TEST_OK(berth__kernel_expand(&l.kernels[0], &err));
  run(&l);
  assert_memory_equal(first, result, sizeof first);
  compare(&tile);
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

static void check(bool right_deep, uint32_t rows, uint32_t columns, uint32_t slots) {
  check_as(right_deep, rows, columns, slots, true);
  check_as(right_deep, rows, columns, slots, false);
}

static void both_ways(void **state) {
  uint64_t seed = 5;
  (void)state;
  for (size_t i = 0; i < sizeof left / 2; i++) left[i] = berth__f32_to_bf16(test_random_f32(&seed));
  for (size_t i = 0; i < sizeof right / 2; i++) right[i] = berth__f32_to_bf16(test_random_f32(&seed));
  for (size_t i = 0; i < sizeof added / 4; i++) added[i] = test_random_f32(&seed);
  check(false, 128, 128, 3);
  check(true, 128, 128, 3);
  check(false, 128, 256, 4);
  check(true, 192, 256, 4);
  check(false, 128, 192, 5);
}

/* A slot is written to while the product of it may go on: after the next one it is done with. */
static void late_slots(void **state) {
  (void)state;
  for (int is_early = 0; is_early < 2; is_early++) {
    berth_context *ctx = test_context();
    berth__kernel *k;
    berth_error err;
    uint32_t out[4] = {0}, *words[1] = {out};
    TEST_OK(berth__kernel_create(ctx, "late", &k, &err));
    k->group_size = 128;
    k->n_groups = 1;
    const uint32_t buffer = berth__kernel_buffer_of(k, 0, BERTH_F32);
    const berth__x thread = berth__x_thread(k), zero = berth__x_f32(k, 0);
    berth__kernel_sums sums = {.kind = BERTH_COMPUTE_BF16, .together = 1, .group_rows = 8, .is_late = true};
    for (int side = 0; side < 2; side++)
      *(side == 0 ? &sums.left : &sums.right) = berth__kernel_tile_of(k, &(berth__tile_desc){.kind = sums.kind,
                                                                                             .storage = BERTH_BF16,
                                                                                             .lines = 64,
                                                                                             .depth = 64,
                                                                                             .slots = 3,
                                                                                             .is_deep = true,
                                                                                             .is_for_warpgroup = true});
    const uint32_t number = berth__kernel_sums_of(k, &sums);
    for (uint32_t side = 0; side < 2; side++) {
      const berth__x i = berth__x_loop_n(k, 3 * 64 * 64 / 128);
      berth__x_shared_store(k, side == 0 ? sums.left.array : sums.right.array,
                            berth__x_add(k, berth__x_affine(k, i, 128, 0), thread), zero);
      berth__x_end(k);
    }
    for (int64_t slot = 0; slot < 3; slot++) {
      berth__x_barrier(k);
      /* the slot before the last is free, the last one is not */
      if (slot == 2)
        berth__x_shared_store(k, sums.left.array, berth__x_affine(k, thread, 1, is_early != 0 ? 64 * 64 : 0), zero);
      berth__x_multiply(k, number, berth__x_i32(k, slot));
    }
    const berth__x each = berth__x_each(k, number);
    berth__x_if(k, berth__x_eq(k, berth__x_sum_row(k, each), berth__x_i32(k, 0)));
    berth__x_if(k, berth__x_lt(k, berth__x_sum_column(k, each), berth__x_i32(k, 4)));
    berth__x_store(k, buffer, berth__x_sum_column(k, each), berth__x_sum(k, each, 0));
    berth__x_end(k);
    berth__x_end(k);
    berth__x_end(k);
    TEST_OK(berth__kernel_finish(k, &err));
    if (is_early != 0)
      test_expect_error(run_kernel(k, words, (const uint64_t[]){4}, &err), BERTH_INTERNAL, &err, "no barrier between");
    else
      TEST_OK(run_kernel(k, words, (const uint64_t[]){4}, &err));
    berth__kernel_destroy(k);
    berth_context_destroy(ctx);
  }
}

/* An array over the tiles of sums: after a barrier, if the products that may still read them have settled; what it held
 * is lost when the tiles are written to again. */
typedef enum over_case {
  OVER_FINE,
  OVER_UNSETTLED,
  OVER_NO_BARRIER,
  OVER_LOST
} over_case;

static berth__kernel *make_over(berth_context *ctx, over_case which) {
  berth__kernel *k = kernel_of(ctx, "over", 128, 2);
  const uint32_t out = berth__kernel_buffer_of(k, 0, BERTH_F32);
  const berth__x thread = berth__x_thread(k), zero = berth__x_f32(k, 0), two = berth__x_f32(k, 2);
  berth__kernel_sums sums = {.kind = BERTH_COMPUTE_BF16, .together = 1, .group_rows = 8, .is_late = true};
  for (int side = 0; side < 2; side++)
    *(side == 0 ? &sums.left : &sums.right) = berth__kernel_tile_of(k, &(berth__tile_desc){.kind = sums.kind,
                                                                                           .storage = BERTH_BF16,
                                                                                           .lines = 64,
                                                                                           .depth = 64,
                                                                                           .slots = 1,
                                                                                           .is_deep = true,
                                                                                           .is_for_warpgroup = true});
  const uint32_t number = berth__kernel_sums_of(k, &sums);
  const uint32_t over = berth__kernel_shared_over(k, BERTH__NUM_F32, 128, sums.left.array);
  assert_int_equal(berth__kernel_shared_bytes(k), 2 * 64 * 64 * 2);
  assert_int_equal(berth__kernel_shared_at(k, over), 0);
  assert_true(berth__kernel_shared_meet(k, over, sums.left.array));
  assert_false(berth__kernel_shared_meet(k, over, sums.right.array));
  for (uint32_t side = 0; side < 2; side++) {
    const berth__x i = berth__x_loop_n(k, 64 * 64 / 128);
    berth__x_shared_store(k, side == 0 ? sums.left.array : sums.right.array,
                          berth__x_add(k, berth__x_affine(k, i, 128, 0), thread), zero);
    berth__x_end(k);
  }
  berth__x_barrier(k);
  berth__x_multiply(k, number, berth__x_i32(k, 0));
  if (which != OVER_UNSETTLED) berth__x_settle(k, number);
  if (which != OVER_NO_BARRIER) berth__x_barrier(k);
  berth__x_shared_store(k, over, thread, two);
  berth__x_barrier(k);
  if (which == OVER_LOST) {
    berth__x_shared_store(k, sums.left.array, thread, zero);
    berth__x_barrier(k);
  }
  berth__x_store(k, out, berth__x_add(k, berth__x_affine(k, berth__x_group(k), 128, 0), thread),
                 berth__x_shared_load(k, over, thread));
  return k;
}

static void arrays_over_others(void **state) {
  (void)state;
  for (int which = OVER_FINE; which <= OVER_LOST; which++) {
    berth_context *ctx = test_context();
    berth_error err;
    float out[256] = {0};
    uint32_t *words[1] = {(uint32_t *)(void *)out};
    berth__kernel *k = make_over(ctx, (over_case)which);
    TEST_OK(berth__kernel_finish(k, &err));
    if (which == OVER_UNSETTLED || which == OVER_NO_BARRIER) {
      test_expect_error(run_kernel(k, words, (const uint64_t[]){256}, &err), BERTH_INTERNAL, &err,
                        "no barrier between");
    } else {
      TEST_OK(run_kernel(k, words, (const uint64_t[]){256}, &err));
      for (int i = 0; i < 256; i++) assert_true(which == OVER_LOST ? isnan(out[i]) : out[i] == 2);
    }
    berth__kernel_destroy(k);
    berth_context_destroy(ctx);
  }
}

/* A product of bf16 of this shape. */
static void describe(berth__tile *tile, berth__lowering *l, int64_t rows, int64_t columns, int64_t depth) {
  static berth_tensor tensors[3];
  static berth_op_call call;
  tensors[0] = (berth_tensor){.type = BERTH_BF16, .rank = 2, .dim = {rows, depth}, .stride = {depth, 1}};
  tensors[1] = (berth_tensor){.type = BERTH_BF16, .rank = 2, .dim = {depth, columns}, .stride = {columns, 1}};
  tensors[2] = (berth_tensor){.type = BERTH_BF16, .rank = 2, .dim = {rows, columns}, .stride = {columns, 1}};
  call = (berth_op_call){.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  *l = (berth__lowering){.limits = &limits, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call};
  berth__tile_init(tile, l, BERTH__NUM_F32);
  berth__tile_axis(&tile->rows, rows, 0, 1);
  berth__tile_axis(&tile->columns, columns, 1, 1);
  berth__tile_axis(&tile->depth, depth, 0, 0);
  tile->left.line[0] = depth;
  tile->left.depth[0] = 1;
  tile->right.line[0] = 1;
  tile->right.depth[0] = columns;
}

/* Large tiles for large products; a long sum makes one round of workgroups rather than a second that is nearly empty;
 * small products are for single warps. */
static void choices(void **state) {
  berth__lowering l;
  berth__tile tile;
  berth__matrix_form form;
  (void)state;
  describe(&tile, &l, 8192, 8192, 8192);
  assert_true(berth__tile_matrix_form(&tile, BERTH_COMPUTE_BF16, &form));
  assert_true(form.is_late && form.rows * form.columns >= 128 * 256);
  describe(&tile, &l, 768, 3072, 8192);
  assert_true(berth__tile_matrix_form(&tile, BERTH_COMPUTE_BF16, &form));
  assert_true(form.is_late && berth__tile_groups(&tile, form.rows, form.columns) <= 132);
  describe(&tile, &l, 256, 256, 256);
  assert_true(berth__tile_matrix_form(&tile, BERTH_COMPUTE_BF16, &form));
  assert_false(form.is_late);
}

/* Bands of rows of tiles are inside of the result; a side that the cache keeps is one band. */
static void bands(void **state) {
  static const int64_t shapes[][3] = {{150, 144, 136}, {9000, 300, 64}, {5000, 9000, 2048}, {3000, 90000, 768}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    berth__lowering l;
    berth__tile tile;
    describe(&tile, &l, shapes[i][0], shapes[i][1], shapes[i][2]);
    const int64_t most = (shapes[i][0] + 127) / 128, band = berth__tile_band(&tile, 128, 256);
    assert_true(band >= 1 && band <= most);
    if (i == 3) assert_int_equal(band, most); /* the right side comes from memory once */
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(both_ways), cmocka_unit_test(late_slots),
                                     cmocka_unit_test(arrays_over_others), cmocka_unit_test(choices),
                                     cmocka_unit_test(bands)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
