/* The forms of a tile with sizes that shapes of tests would never choose. */
#include <math.h>
#include <stdlib.h>

#include "base/blocks.h"
#include "packed.h"
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

/* Pieces are whole rounds of the threads of a part. */
static void deep_forms(void **state) {
  static const berth__tile_form forms[] = {{4, 4, 8, 8, 16}, {2, 2, 8, 8, 16}, {1, 3, 4, 2, 8}, {2, 2, 4, 4, 2}};
  (void)state;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) check(berth__tile_deep, &forms[i]);
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

/* ---- Weights in blocks ---- */

static void packed_compare(const packed_data *d, berth_type type, size_t rows) {
  for (size_t i = 0; i < rows; i++)
    for (size_t j = 0; j < MANY; j++) {
      double sum = 0, most = 0;
      for (size_t k = 0; k < WIDE; k++) {
        sum += (double)d->x[i * WIDE + k] * (double)d->weights[j * WIDE + k];
        most += fabs((double)d->x[i * WIDE + k] * (double)d->weights[j * WIDE + k]);
      }
      if (!(fabs(sum - (double)d->result[i * MANY + j]) <= 2e-6 * most))
        fail_msg("%s, row %zu, column %zu: %g, expected %g", berth_type_name(type), i, j,
                 (double)d->result[i * MANY + j], sum);
    }
}

/* What a loop of the kernel does for each weight of a slice: instructions, and loads of words. */
static void packed_count(const berth__kernel *k, double weights, double *insts, double *loads) {
  size_t first = 0, end = 0;
  for (size_t i = 0; i < k->n_insts && end == 0; i++) {
    if (k->insts[i].code == BERTH__INST_loop && first == 0) first = i + 1;
    if (k->insts[i].code == BERTH__INST_end && first != 0 && k->insts[i].depth == k->insts[first - 1].depth) end = i;
  }
  *insts = *loads = 0;
  for (size_t i = first; i < end; i++) {
    const uint8_t code = k->insts[i].code;
    if (code == BERTH__INST_constant || code == BERTH__INST_part || code == BERTH__INST_get) continue;
    *insts += 1 / weights;
    if (code == BERTH__INST_load || code == BERTH__INST_quad) *loads += 1 / weights;
  }
}

static void packed_check(packed_data *d, berth_type type, uint32_t rows, uint32_t before,
                         const berth__kernel_limits *with) {
  berth_context *ctx = test_context();
  berth__lowering l;
  for (size_t i = 0; i < MOST * MANY; i++) d->result[i] = NAN;
  packed_lower(&l, type, rows, WIDE, before, with, ctx);
  packed_run(d, &l, type, before);
  packed_compare(d, type, rows);
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

/* Rows enough for every form; weights that begin with a word, and inside one. */
static void packed_forms(void **state) {
  static const berth__kernel_limits plain = {.group_size = 256, .lanes = 8, .shared_bytes = 32768};
  static const berth__kernel_limits least = {.group_size = 16, .lanes = 4, .shared_bytes = 16384, .shares_well = true};
  static const uint32_t rows[] = {1, 2, 4, 9, MOST};
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  (void)state;
  for (size_t t = 0; t < N_PACKED; t++) {
    packed_fill(d, packed_types[t], 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) packed_check(d, packed_types[t], rows[i], 0, &limits);
    packed_check(d, packed_types[t], 1, 0, &plain);
    packed_check(d, packed_types[t], 9, 0, &plain);
    packed_check(d, packed_types[t], 3, 0, &least);
    if (berth_type_storage(packed_types[t]).elements == 1) continue;
    for (uint32_t before = 1; before < 4; before++) {
      packed_fill(d, packed_types[t], before);
      packed_check(d, packed_types[t], 1, before, &limits);
    }
  }
  free(d);
}

/* Multiplied by fours, weights are unpacked into the tile that f32 would be copied to. */
static void packed_fours(void **state) {
  static const uint32_t rows[] = {9, 40, MOST};
  berth__kernel_limits fours = limits;
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  (void)state;
  fours.multiplies = BERTH__MATRIX_UNITS;
  fours.tile_bytes = 114688;
  for (size_t t = 0; t <= N_PACKED; t++) {
    const berth_type type = t < N_PACKED ? packed_types[t] : BERTH_F32;
    berth_context *ctx = test_context();
    berth__lowering l;
    packed_fill(d, type, 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) packed_check(d, type, rows[i], 0, &fours);
    packed_lower(&l, type, MOST, WIDE, 0, &fours, ctx);
    assert_non_null(strstr(l.kernels[0]->name, "fours"));
    berth__lowering_free(&l);
    berth_context_destroy(ctx);
  }
  free(d);
}

/* A row's weights are contiguous: words hold two columns, if rows are made of whole words. */
static void narrow_fours(void **state) {
  static const int64_t columns[] = {MANY + 1, MANY};
  berth__kernel_limits fours = limits;
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  (void)state;
  fours.multiplies = BERTH__MATRIX_UNITS;
  fours.tile_bytes = 114688;
  packed_is_deep = false;
  for (size_t t = 0; t < 4; t++) {
    const berth_type type = t % 2 == 0 ? BERTH_F16 : BERTH_BF16;
    const int64_t depth = MANY * WIDE / columns[t / 2] / 16 * 16;
    berth_context *ctx = test_context();
    berth__lowering l;
    packed_fill(d, type, 0);
    packed_lower_of(&l, type, MOST, columns[t / 2], depth, 0, &fours, ctx);
    assert_non_null(strstr(l.kernels[0]->name, "fours"));
    packed_run(d, &l, type, 0);
    for (size_t i = 0; i < MOST; i++)
      for (size_t j = 0; j < (size_t)columns[t / 2]; j++) {
        double sum = 0;
        for (size_t k = 0; k < (size_t)depth; k++)
          sum += (double)d->x[i * (size_t)depth + k] * (double)d->weights[k * (size_t)columns[t / 2] + j];
        assert_true(fabs(sum - (double)d->result[i * (size_t)columns[t / 2] + j]) <= 1e-3);
      }
    berth__lowering_free(&l);
    berth_context_destroy(ctx);
  }
  packed_is_deep = true;
  free(d);
}

static const berth__kernel_limits early_limits = {.group_size = 256,
                                                  .lanes = 32,
                                                  .exchanges = true,
                                                  .begins_early = true,
                                                  .shared_bytes = 49152,
                                                  .shares_well = true};

/* Where kernels begin early: the form that is chosen, rows that do not fit shared memory, and workgroups that go on
 * with further columns. */
static void packed_early(void **state) {
  static const berth__kernel_limits few = {
      .group_size = 64, .lanes = 8, .exchanges = true, .begins_early = true, .shared_bytes = 8192, .shares_well = true};
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  (void)state;
  for (size_t t = 0; t <= N_PACKED; t++) {
    const berth_type type = t < N_PACKED ? packed_types[t] : BERTH_F32;
    packed_fill(d, type, 0);
    for (uint32_t rows = 1; rows <= 4; rows++) packed_check(d, type, rows, 0, &early_limits);
    packed_check(d, type, 4, 0, &few);
    for (uint32_t rows = 1; rows < 3; rows++) {
      const berth__tile_form form = {.thread_rows = rows, .thread_columns = 2, .group_rows = 8, .group_columns = 4};
      packed_form = &form;
      packed_groups = 2;
      packed_check(d, type, rows, 0, rows == 1 ? &early_limits : &few);
      packed_form = NULL;
    }
  }
  free(d);
}

/* A block has two slices, for two lanes, which have the sums of four rows. */
static void there_may_be_more_sums_than_lanes(void **state) {
  enum {
    SHORT = 32,
    ROWS_OF_IT = 4
  };
  packed_data *d = calloc(1, sizeof *d);
  berth_context *ctx = test_context();
  berth__lowering l;
  assert_non_null(d);
  (void)state;
  packed_fill(d, BERTH_Q8_0, 0);
  for (size_t i = 0; i < ROWS_OF_IT * MANY; i++) d->result[i] = NAN;
  packed_lower_of(&l, BERTH_Q8_0, ROWS_OF_IT, MANY, SHORT, 0, &early_limits, ctx);
  packed_run(d, &l, BERTH_Q8_0, 0);
  for (size_t i = 0; i < ROWS_OF_IT; i++)
    for (size_t j = 0; j < MANY; j++) {
      double sum = 0;
      for (size_t k = 0; k < SHORT; k++) sum += (double)d->x[i * SHORT + k] * (double)d->weights[j * SHORT + k];
      assert_true(fabs(sum - (double)d->result[i * MANY + j]) <= 1e-4);
    }
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
  free(d);
}

/* The bytes of the rows in shared memory, which is the first of so many arrays. */
static uint32_t packed_staged(berth_type type, const berth__kernel_limits *with, uint32_t arrays) {
  berth_context *ctx = test_context();
  berth__lowering l;
  packed_lower(&l, type, 2, WIDE, 0, with, ctx);
  assert_int_equal(l.kernels[0]->n_shared, arrays);
  const uint32_t bytes = 4 * l.kernels[0]->shared[0].count;
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
  return bytes;
}

/* Rows in shared memory: by fewer threads than quads, by more, and by a number that does not divide them; with their
 * totals, and where there is no room for these. */
static void rows_are_staged_by_any_number_of_threads(void **state) {
  static const berth_type types[] = {BERTH_Q8_0, BERTH_Q4_0, BERTH_Q4_K, BERTH_Q6_K};
  static const uint32_t sets[] = {1, 6, 24};
  packed_data *d = calloc(1, sizeof *d);
  assert_non_null(d);
  (void)state;
  packed_groups = 2;
  for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
    packed_fill(d, types[t], 0);
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
      const berth__tile_form form = {.thread_rows = 2, .thread_columns = 1, .group_rows = 8, .group_columns = sets[i]};
      const uint32_t parts = 2 * form.group_columns * 4 * (8 + 1 + 8 + 1);
      berth__kernel_limits room = early_limits;
      room.lanes = form.group_rows;
      packed_form = &form;
      const uint32_t rows = packed_staged(types[t], &room, types[t] == BERTH_Q8_0 ? 1 : 2);
      packed_check(d, types[t], 2, 0, &room);
      room.shared_bytes = rows + parts + 2 * WIDE - 4;
      assert_int_equal(packed_staged(types[t], &room, 1), rows);
      packed_check(d, types[t], 2, 0, &room);
    }
  }
  packed_form = NULL;
  free(d);
}

/* Weights are loaded before a kernel waits, and the rows after that. */
static void weights_come_before_the_rows(void **state) {
  berth_context *ctx = test_context();
  (void)state;
  for (size_t t = 0; t < N_PACKED; t++) {
    berth__lowering l;
    packed_lower(&l, packed_types[t], 1, WIDE, 0, &early_limits, ctx);
    const berth__kernel *k = l.kernels[0];
    for (uint32_t i = 0; i < k->n_buffers; i++)
      assert_int_equal(k->buffers[i].is_early, k->buffers[i].is_read && k->buffers[i].operand == 1);
    berth__lowering_free(&l);
  }
  berth_context_destroy(ctx);
}

/* Tables of formats lie beside the pieces: limits that are just enough for those alone are not. */
static void tables_are_counted(void **state) {
  berth_context *ctx = test_context();
  (void)state;
  for (size_t t = 0; t < N_PACKED; t++)
    for (uint32_t bytes = 2048; bytes <= 17408; bytes += 64) {
      const berth__kernel_limits with = {.group_size = 256, .lanes = 32, .shared_bytes = bytes, .shares_well = true};
      berth__lowering l;
      uint64_t shared = 0;
      packed_lower(&l, packed_types[t], MOST, WIDE, 0, &with, ctx);
      for (uint32_t i = 0; i < l.kernels[0]->n_shared; i++) shared += 4 * (uint64_t)l.kernels[0]->shared[i].count;
      if (shared > bytes)
        fail_msg("%s takes %llu of %u shared bytes", berth_type_name(packed_types[t]), (unsigned long long)shared,
                 bytes);
      berth__lowering_free(&l);
    }
  berth_context_destroy(ctx);
}

static uint64_t packed_shared(berth_type type, uint32_t rows, uint32_t bytes, berth_context *ctx) {
  const berth__kernel_limits with = {.group_size = 256, .lanes = 32, .shared_bytes = bytes, .shares_well = true};
  berth__lowering l;
  uint64_t shared = 0;
  packed_lower(&l, type, rows, 2048, 0, &with, ctx);
  for (uint32_t i = 0; i < l.kernels[0]->n_shared; i++) shared += 4 * (uint64_t)l.kernels[0]->shared[i].count;
  berth__lowering_free(&l);
  return shared;
}

/* Few rows lie in shared memory where there is room for them, beside tables and parts of sums. */
static void rows_are_staged_where_they_fit(void **state) {
  berth_context *ctx = test_context();
  (void)state;
  for (size_t t = 0; t < N_PACKED; t++)
    for (uint32_t rows = 1; rows <= 4; rows++) {
      for (uint32_t bytes = 16384; bytes <= 65536; bytes += 512) {
        const uint64_t shared = packed_shared(packed_types[t], rows, bytes, ctx);
        if (shared > bytes)
          fail_msg("%s takes %llu of %u shared bytes", berth_type_name(packed_types[t]), (unsigned long long)shared,
                   bytes);
      }
      assert_true(packed_shared(packed_types[t], rows, 16384 + rows * 2560 * 4, ctx) >= 2048 * 4 * (uint64_t)rows);
    }
  berth_context_destroy(ctx);
}

/* Many rows and few columns: blocks are still read as such, and not element by element. */
static void blocks_stay_on_their_side(void **state) {
  berth_context *ctx = test_context();
  (void)state;
  for (size_t t = 0; t < N_PACKED; t++) {
    berth__lowering l;
    if (berth_type_storage(packed_types[t]).elements == 1) continue;
    packed_lower_of(&l, packed_types[t], MOST, 3, WIDE, 0, &limits, ctx);
    assert_null(strstr(l.kernels[0]->name, "split"));
    berth__lowering_free(&l);
  }
  berth_context_destroy(ctx);
}

/* Elements that i32 can count, of more bytes than it can. */
static void bytes_past_31_bits_are_refused(void **state) {
  const berth_tensor tensors[3] = {
      {.type = BERTH_F32, .rank = 2, .dim = {1, 65536}, .stride = {65536, 1}},
      {.type = BERTH_Q8_0, .rank = 2, .dim = {31744, 65536}, .stride = {65536, 1}},
      {.type = BERTH_F32, .rank = 2, .dim = {1, 31744}, .stride = {31744, 1}},
  };
  const berth_op_call call = {.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  berth_context *ctx = test_context();
  berth__lowering l = {.ctx = ctx, .limits = &limits, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call};
  berth_error err;
  (void)state;
  test_expect_error(berth__lower_call(&l, &err), BERTH_UNSUPPORTED, &err, "blocks have more bytes than");
  assert_int_equal(l.n_kernels, 0);
  berth_context_destroy(ctx);
}

/* The lines of memory, of 32 numbers, that 32 neighbouring lanes touch when they load x, for each weight. */
static double packed_lines(berth_type type) {
  const berth_storage storage = berth_type_storage(type);
  const berth__l_slices slices = storage.elements == 1 ? (berth__l_slices){1, 2, 2, 2} : berth__l_slices_of(type);
  const uint32_t elements = storage.elements == 1 ? 8 : storage.elements;
  berth_context *ctx = test_context();
  berth__kernel *k;
  berth_error err;
  uint32_t lines = 0;
  TEST_OK(berth__kernel_create(ctx, "lines", &k, &err));
  for (uint32_t i = 0; i < slices.n_quads; i++) {
    bool is_seen[256] = {false};
    for (uint32_t lane = 0; lane < 32; lane++) {
      uint32_t quad = i;
      if (storage.elements > 1)
        assert_true(berth__x_is_constant(
            k, berth__l_slice_quad(k, &slices, berth__x_i32(k, lane % slices.per_block), i), &quad));
      const uint32_t line = (lane / slices.per_block * elements + 4 * quad) / 32;
      lines += !is_seen[line];
      is_seen[line] = true;
    }
  }
  berth__kernel_destroy(k);
  berth_context_destroy(ctx);
  return lines / (32.0 * 4 * slices.n_quads);
}

/* One row against one column, which shares nothing with others: what a weight costs at most. Of the loads, a quarter
 * for each weight are those of x. */
static void packed_costs(void **state) {
  static const struct {
    berth_type type;
    double insts, loads, lines;
  } bounds[] = {{BERTH_Q8_0, 7.7, 0.63, 0.13},   {BERTH_Q4_0, 7.8, 0.5, 0.13},      {BERTH_Q4_1, 6.8, 0.44, 0.13},
                {BERTH_Q5_0, 10.4, 0.63, 0.13},  {BERTH_Q5_1, 8.9, 0.5, 0.13},      {BERTH_Q2_K, 8.1, 0.41, 0.07},
                {BERTH_Q3_K, 11.1, 0.6, 0.07},   {BERTH_Q4_K, 7.8, 0.32, 0.13},     {BERTH_Q5_K, 8.9, 0.35, 0.13},
                {BERTH_Q6_K, 10.7, 0.69, 0.07},  {BERTH_IQ2_XXS, 12.7, 0.38, 0.25}, {BERTH_IQ4_NL, 7.7, 0.5, 0.13},
                {BERTH_IQ4_XS, 8, 0.57, 0.13},   {BERTH_MXFP4, 8.5, 0.57, 0.13},    {BERTH_IQ2_XS, 13.3, 0.41, 0.25},
                {BERTH_IQ2_S, 12.8, 0.47, 0.25}, {BERTH_IQ3_XXS, 9.9, 0.44, 0.25},  {BERTH_IQ3_S, 10.6, 0.5, 0.25},
                {BERTH_F16, 3.7, 0.38, 0.07},    {BERTH_BF16, 4.2, 0.38, 0.07}};
  berth_context *ctx = test_context();
  (void)state;
  for (size_t t = 0; t < sizeof bounds / sizeof *bounds; t++) {
    const bool is_plain = berth_type_storage(bounds[t].type).elements == 1;
    const double lines = packed_lines(bounds[t].type);
    double insts = 0, loads = 0;
    berth__lowering l;
    packed_lower(&l, bounds[t].type, 1, 65536, 0, &limits, ctx);
    packed_count(l.kernels[0], is_plain ? 8 : 4 * berth__l_slices_of(bounds[t].type).n_quads, &insts, &loads);
    berth__lowering_free(&l);
    print_message("# %s: %.2f instructions, %.3f loads and %.3f lines of x a weight\n", berth_type_name(bounds[t].type),
                  insts, loads, lines);
    assert_true(insts <= bounds[t].insts);
    assert_true(loads <= bounds[t].loads);
    assert_true(lines <= bounds[t].lines);
  }
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(shared_forms),
                                     cmocka_unit_test(deep_forms),
                                     cmocka_unit_test(register_forms),
                                     cmocka_unit_test(split_forms),
                                     cmocka_unit_test(packed_forms),
                                     cmocka_unit_test(packed_fours),
                                     cmocka_unit_test(narrow_fours),
                                     cmocka_unit_test(packed_early),
                                     cmocka_unit_test(there_may_be_more_sums_than_lanes),
                                     cmocka_unit_test(weights_come_before_the_rows),
                                     cmocka_unit_test(tables_are_counted),
                                     cmocka_unit_test(rows_are_staged_where_they_fit),
                                     cmocka_unit_test(rows_are_staged_by_any_number_of_threads),
                                     cmocka_unit_test(bytes_past_31_bits_are_refused),
                                     cmocka_unit_test(blocks_stay_on_their_side),
                                     cmocka_unit_test(packed_costs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
