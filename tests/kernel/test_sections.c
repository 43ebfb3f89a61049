/* Long sums with few results, whose depth is cut into sections: workgroups sum these into scratch, and a second kernel
 * adds them up. Against the reference kernel of the op; scratch has the bytes that a plan would count. */
#include <math.h>

#include "against.h"
#include "kernel/lower/tile.h"
#include "run.h"

#define TWO(a, b) "graph \"g\" { input %a : " a " input %b : " b " "
#define THREE(a, b, c) TWO(a, b) "input %c : " c " "
#define OUT " output \"o\" = %o }"

static void products(void **state) {
  (void)state;
  check_against(TWO("f32[70, 1024]", "f32[1024, 72]") "%o = matmul(%a, %b)" OUT, &limits_large, "merge", 1e-4);
  check_against(TWO("f32[70, 1024]", "f32[1024, 72]") "%o = matmul(%a, %b)" OUT, &limits_lanes, "merge", 1e-4);
  check_against(TWO("f32[70, 1024]", "f32[1024, 72]") "%o = matmul(%a, %b)" OUT, &limits_small, "merge", 1e-4);
  /* batches on both sides, on one, and rows of several axes */
  check_against(TWO("f32[2, 3, 30, 768]", "f32[3, 768, 40]") "%o = matmul(%a, %b)" OUT, &limits_large, "merge", 1e-4);
  check_against(TWO("f32[3, 30, 768]", "f32[768, 52]") "%o = matmul(%a, %b)" OUT, &limits_large, "merge", 1e-4);
  /* a bias, what is added and an epilogue, which see whole sums */
  check_against(THREE("f32[2, 40, 768]", "f32[768, 64]", "f32[64]") "input %d : f32[2, 40, 64] input %e : f32[40, 1] "
                "%o = product(%a, %b, %c, %d, %e) {columns = 64, adds = 1, code = [1, 0, 1, 0, 22, 2, 0, 0]}" OUT,
                &limits_large, "merge", 1e-4);
  check_against(TWO("f32[66, 768]", "f32[9, 768, 8]") "%o = product(%a, %b) {columns = 67, panel = 8}" OUT,
                &limits_large, "merge", 1e-4);
}

static void convolutions(void **state) {
  (void)state;
  check_against(THREE("f32[1, 128, 9, 7]", "f32[70, 128, 3, 3]", "f32[70]") "%o = conv(%a, %b, %c) "
                "{pads = [1, 1, 1, 1], code = [22, 0, 0, 0]}" OUT, &limits_large, "merge", 1e-4);
  check_against(TWO("f32[2, 256, 8, 8]", "f32[96, 128, 3, 3]") "%o = conv(%a, %b) "
                "{group = 2, strides = [2, 1], pads = [1, 0, 1, 2]}" OUT, &limits_large, "merge", 1e-4);
  check_against(TWO("f32[1, 1024, 9, 9]", "f32[64, 1024, 1, 1]") "%o = conv(%a, %b)" OUT, &limits_large, "merge", 1e-4);
  check_against(TWO("f32[1, 256, 8, 8]", "f32[256, 40, 2, 2]") "%o = conv_transpose(%a, %b) {strides = [2, 2]}" OUT,
                &limits_large, "merge", 1e-4);
  check_against(THREE("f32[1, 9, 9, 128]", "f32[2, 1152, 40]", "f32[72]") "%o = conv_last(%a, %b, %c) {kernel = [3, 3], "
                "channels = 72, panel = 40, pads = [1, 1, 1, 1], code = [22, 0, 0, 0]}" OUT,
                &limits_large, "merge", 1e-4);
}

/* Results that share words are stored as words where they lie so. */
static void narrow_results(void **state) {
  (void)state;
  check_words(TWO("f16[70, 1024]", "f16[1024, 72]") "%o = matmul(%a, %b)" OUT, &limits_large, "merge", 3e-2);
  check_narrow(TWO("bf16[70, 1024]", "bf16[1024, 73]") "%o = matmul(%a, %b)" OUT, &limits_large, "merge", 3e-1);
}

/* By matrix units, and by threads that load by fours: each form with sections, as it is and expanded. */
static void units(void **state) {
  static const struct {
    berth_compute compute;
    double tolerance;
  } kinds[] = {{BERTH_COMPUTE_F32, 1e-4},
               {BERTH_COMPUTE_TF32X3, 1e-4},
               {BERTH_COMPUTE_TF32, 1e-2},
               {BERTH_COMPUTE_F16, 1e-2},
               {BERTH_COMPUTE_BF16, 1e-1}};
  (void)state;
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    check_matrix(TWO("f32[70, 2048]", "f32[2048, 72]") "%o = matmul(%a, %b)" OUT, kinds[i].compute, false,
                 3 * kinds[i].tolerance);
    check_matrix(THREE("f32[1, 9, 9, 256]", "f32[2, 2304, 40]", "f32[72]") "%o = conv_last(%a, %b, %c) {kernel = "
                 "[3, 3], channels = 72, panel = 40, pads = [1, 1, 1, 1], code = [22, 0, 0, 0]}" OUT,
                 kinds[i].compute, false, 3 * kinds[i].tolerance);
  }
  check_matrix(TWO("bf16[72, 2048]", "bf16[2048, 80]") "%o = matmul(%a, %b)" OUT, BERTH_COMPUTE_F32, true, 3e-1);
}

/* ---- How many there are ---- */

typedef struct shape_case {
  int64_t rows, columns, depth;
  berth_compute compute;
  bool has_warpgroups, is_cut;
} shape_case;

static uint32_t sections_of(const shape_case *s, const berth__kernel_limits *limits) {
  const berth_tensor tensors[3] = {
      {.type = BERTH_F32, .rank = 2, .dim = {s->rows, s->depth}, .stride = {s->depth, 1}},
      {.type = BERTH_F32, .rank = 2, .dim = {s->depth, s->columns}, .stride = {s->columns, 1}},
      {.type = BERTH_F32, .rank = 2, .dim = {s->rows, s->columns}, .stride = {s->columns, 1}}};
  const berth_op_call call = {.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  const uint64_t scratch = berth__lower_scratch(berth__op_builtin(BERTH__OP_matmul), &call, limits);
  const uint64_t results = 4 * (uint64_t)(s->rows * s->columns);
  assert_int_equal(scratch % results, 0);
  return scratch == 0 ? 1 : (uint32_t)(scratch / results);
}

/* Where workgroups are enough, sums are short, or results so few that the threads of a workgroup share them, nothing is
 * cut; nor where a CPU plays the GPU. */
static void where_it_pays(void **state) {
  static const shape_case shapes[] = {
      {512, 2048, 8192, BERTH_COMPUTE_BF16, true, true},   {196, 256, 2304, BERTH_COMPUTE_BF16, true, true},
      {49, 512, 4608, BERTH_COMPUTE_F32, false, true},     {768, 768, 8192, BERTH_COMPUTE_BF16, true, true},
      {512, 16384, 2048, BERTH_COMPUTE_BF16, true, false}, {3136, 64, 64, BERTH_COMPUTE_BF16, true, false},
      {4096, 4096, 4096, BERTH_COMPUTE_F32, false, false}, {8, 2048, 8192, BERTH_COMPUTE_F32, false, false},
      {49, 512, 4601, BERTH_COMPUTE_F32, false, false},    {40, 40, 4096, BERTH_COMPUTE_F32, false, false}};
  (void)state;
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    const shape_case *s = &shapes[i];
    berth__kernel_limits limits = limits_lanes;
    limits.multiplies = BERTH__MATRIX_UNITS;
    limits.tile_bytes = 114688;
    limits.large_bytes = 229376;
    limits.group_size = 256;
    limits.compute = s->compute;
    limits.has_warpgroups = s->has_warpgroups;
    if ((sections_of(s, &limits) > 1) != s->is_cut)
      fail_msg("%lld x %lld of %lld: %u sections", (long long)s->rows, (long long)s->columns, (long long)s->depth,
               sections_of(s, &limits));
    assert_int_equal(sections_of(s, &limits_plain), 1);
  }
}

/* ---- Weights in blocks ---- */

#define LINES 72
#define DEPTH 1024
#define BLOCK 32
#define BLOCK_BYTES 34

/* Sections are whole blocks. Numbers are whole and sums small enough that every order of adding gives the same. */
static void blocks(void **state) {
  static float x[LINES * DEPTH], result[LINES * LINES], scratch[16 * LINES * LINES];
  static uint8_t weights[LINES * DEPTH / BLOCK * BLOCK_BYTES];
  const berth_tensor tensors[3] = {{.type = BERTH_F32, .rank = 2, .dim = {LINES, DEPTH}, .stride = {DEPTH, 1}},
                                   {.type = BERTH_Q8_0, .rank = 2, .dim = {LINES, DEPTH}, .stride = {DEPTH, 1}},
                                   {.type = BERTH_F32, .rank = 2, .dim = {LINES, LINES}, .stride = {LINES, 1}}};
  const berth_op_call call = {.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  berth_context *ctx = test_context();
  berth__lowering l = {.ctx = ctx, .limits = &limits_large, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call};
  berth__tile_epilogue epilogue;
  berth__tile tile;
  berth_error err;
  (void)state;
  for (int64_t i = 0; i < LINES * DEPTH; i++) {
    uint8_t *block = weights + i / BLOCK * BLOCK_BYTES;
    x[i] = (float)(i % 7 - 3);
    block[1] = 0x3c; /* a factor of 1 */
    block[2 + i % BLOCK] = (uint8_t)(i % 5);
  }
  berth__tile_init(&tile, &l, BERTH__NUM_F32);
  berth__tile_axis(&tile.rows, LINES, 0, 1);
  berth__tile_axis(&tile.columns, LINES, 1, 1);
  berth__tile_axis(&tile.depth, DEPTH, 0, 0);
  tile.left.line[0] = tile.right.line[0] = DEPTH;
  tile.left.depth[0] = tile.right.depth[0] = 1;
  TEST_OK(berth__tile_epilogue_read(&tile, &epilogue, BERTH__TILE_NONE, 0, NULL, 0, NULL, NULL, &err));
  assert_true(berth__tile_sections(&tile) > 1 && DEPTH / berth__tile_sections(&tile) % BLOCK == 0);
  TEST_OK(berth__tile_lower_sections(&tile, &err));
  assert_int_equal(l.n_kernels, 2);
  for (size_t n = 0; n < l.n_kernels; n++) {
    uint32_t *words[BERTH__KERNEL_BUFFERS];
    uint64_t counts[BERTH__KERNEL_BUFFERS];
    for (uint32_t i = 0; i < l.kernels[n]->n_buffers; i++) {
      const berth__kernel_buffer *buffer = &l.kernels[n]->buffers[i];
      void *const data[3] = {x, weights, result};
      const uint64_t sizes[3] = {sizeof x, sizeof weights, sizeof result};
      const bool is_scratch = buffer->operand == BERTH__OPERAND_SCRATCH;
      words[i] = is_scratch ? (uint32_t *)(void *)scratch : data[buffer->operand];
      counts[i] = (is_scratch ? berth__tile_scratch(&tile) : sizes[buffer->operand]) /
                  berth_type_storage(buffer->storage).bytes;
    }
    TEST_OK(run_kernel(l.kernels[n], words, counts, &err));
  }
  for (int64_t i = 0; i < LINES; i++)
    for (int64_t j = 0; j < LINES; j++) {
      float sum = 0;
      for (int64_t d = 0; d < DEPTH; d++) sum += x[i * DEPTH + d] * (float)((j * DEPTH + d) % 5);
      assert_true(result[i * LINES + j] == sum);
    }
  berth__lowering_free(&l);
  berth_context_destroy(ctx);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(products),       cmocka_unit_test(convolutions),
                                     cmocka_unit_test(narrow_results), cmocka_unit_test(units),
                                     cmocka_unit_test(where_it_pays),  cmocka_unit_test(blocks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
