#include "packed.h"

#include "base/blocks.h"
#include "base/half.h"
#include "run.h"

const berth_type packed_types[N_PACKED] = {BERTH_Q8_0,    BERTH_Q4_0,    BERTH_Q4_1,   BERTH_Q5_0,  BERTH_Q5_1,
                                           BERTH_Q2_K,    BERTH_Q3_K,    BERTH_Q4_K,   BERTH_Q5_K,  BERTH_Q6_K,
                                           BERTH_IQ2_XXS, BERTH_IQ4_NL,  BERTH_IQ4_XS, BERTH_MXFP4, BERTH_IQ2_XS,
                                           BERTH_IQ2_S,   BERTH_IQ3_XXS, BERTH_IQ3_S,  BERTH_F16,   BERTH_BF16};
static uint64_t packed_bytes(berth_type type, uint64_t elements) {
  const berth_storage storage = berth_type_storage(type);
  return elements / storage.elements * storage.bytes;
}

/* Random bytes, but for the scales of formats, which are numbers of an ordinary size. */
void packed_fill(packed_data *d, berth_type type, uint32_t before) {
  static const struct {
    berth_type type;
    uint8_t halves[2];
  } scales[] = {{BERTH_Q8_0, {0, 0}},   {BERTH_Q4_0, {0, 0}},     {BERTH_Q4_1, {0, 2}},     {BERTH_Q5_0, {0, 0}},
                {BERTH_Q5_1, {0, 2}},   {BERTH_Q2_K, {80, 82}},   {BERTH_Q3_K, {108, 108}}, {BERTH_Q4_K, {0, 2}},
                {BERTH_Q5_K, {0, 2}},   {BERTH_Q6_K, {208, 208}}, {BERTH_IQ2_XXS, {0, 0}},  {BERTH_IQ4_NL, {0, 0}},
                {BERTH_IQ4_XS, {0, 0}}, {BERTH_IQ2_XS, {0, 0}},   {BERTH_IQ2_S, {0, 0}},    {BERTH_IQ3_XXS, {0, 0}},
                {BERTH_IQ3_S, {0, 0}}};
  const berth_storage storage = berth_type_storage(type);
  uint8_t *bytes = (uint8_t *)d->blocks + before;
  uint64_t seed = 5;
  for (size_t i = 0; i < MOST * WIDE; i++) d->x[i] = test_random_f32(&seed);
  for (size_t i = 0; i < sizeof d->blocks; i++) ((uint8_t *)d->blocks)[i] = (uint8_t)(test_random_f32(&seed) * 127);
  for (size_t i = 0; i < MANY * WIDE && type == BERTH_F32; i++) {
    d->weights[i] = test_random_f32(&seed);
    memcpy(&d->blocks[i], &d->weights[i], sizeof d->weights[i]);
  }
  if (type == BERTH_F32) return;
  for (uint64_t at = 0; at < packed_bytes(type, MANY * WIDE); at += storage.bytes) {
    if (type == BERTH_MXFP4) bytes[at] = (uint8_t)(120 + at % 5);
    if (storage.elements == 1) bytes[at + 1] = (uint8_t)((bytes[at + 1] & 0x83) | 0x34); /* a number near 1 */
    for (size_t i = 0; i < sizeof scales / sizeof *scales; i++)
      for (int h = 0; h < 2 && scales[i].type == type; h++) {
        bytes[at + scales[i].halves[h]] = (uint8_t)at;
        bytes[at + scales[i].halves[h] + 1] = 0x24; /* about 1/64 */
      }
  }
  for (size_t i = 0; i < MANY * WIDE && storage.elements == 1; i++) {
    const uint16_t half = (uint16_t)(bytes[2 * i] | bytes[2 * i + 1] << 8);
    d->weights[i] = type == BERTH_F16 ? berth__f16_to_f32(half) : berth__bf16_to_f32(half);
  }
  berth__blocks_decode(type, bytes, MANY * WIDE, d->weights);
}

static void packed_store(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  berth__l_store(tile->l, k, 0, place[0], sum);
}

void packed_run(packed_data *d, const berth__lowering *l, berth_type type, uint32_t before) {
  for (size_t n = 0; n < l->n_kernels; n++) {
    const berth__kernel *k = l->kernels[n];
    uint32_t *words[8];
    uint64_t counts[8];
    berth_error err;
    for (uint32_t i = 0; i < k->n_buffers; i++) {
      const uint32_t operand = k->buffers[i].operand;
      words[i] = operand == 0 ? (uint32_t *)(void *)d->x : operand == 1 ? d->blocks : (uint32_t *)(void *)d->result;
      counts[i] = operand == 0   ? (uint64_t)berth__count(&l->call->in[0])
                  : operand == 1 ? (before + packed_bytes(type, (uint64_t)berth__count(&l->call->in[1])) + 3) / 4
                                 : sizeof d->result / sizeof *d->result;
      counts[i] *= berth__storage_per_word(k->buffers[i].storage);
    }
    TEST_OK(run_kernel(k, words, counts, &err));
  }
}

const berth__tile_form *packed_form;
uint32_t packed_groups;
bool packed_in_bytes;
bool packed_is_deep = true;

void packed_lower_of(berth__lowering *l, berth_type type, uint32_t rows, int64_t columns, int64_t depth,
                     uint32_t before, const berth__kernel_limits *with, berth_context *ctx) {
  static berth_tensor tensors[3];
  static berth_op_call call;
  static uint64_t at[3];
  berth__tile tile;
  berth_error err;
  tensors[0] = (berth_tensor){.type = BERTH_F32, .rank = 2, .dim = {rows, depth}, .stride = {depth, 1}};
  tensors[1] = (berth_tensor){.type = type, .rank = 2, .dim = {columns, depth}, .stride = {depth, 1}};
  tensors[2] = (berth_tensor){.type = BERTH_F32, .rank = 2, .dim = {rows, columns}, .stride = {columns, 1}};
  call = (berth_op_call){.in = tensors, .out = tensors + 2, .n_in = 2, .n_out = 1};
  at[1] = before;
  *l =
      (berth__lowering){.ctx = ctx, .limits = with, .op = berth__op_builtin(BERTH__OP_matmul), .call = &call, .at = at};
  berth__tile_init(&tile, l, BERTH__NUM_F32);
  tile.finish = packed_store;
  berth__tile_axis(&tile.rows, rows, 0, 1);
  berth__tile_axis(&tile.columns, columns, 1, 1);
  berth__tile_axis(&tile.depth, depth, 0, 0);
  tile.left.line[0] = depth;
  tile.left.depth[0] = 1;
  tile.right.line[0] = packed_is_deep ? depth : 1;
  tile.right.depth[0] = packed_is_deep ? 1 : columns;
  tile.in_bytes = packed_form != NULL && packed_in_bytes;
  TEST_OK(packed_form != NULL ? berth__tile_packed(&tile, packed_form, packed_groups, &err)
                              : berth__tile_lower(&tile, &err));
  assert_int_equal(l->n_kernels, 1);
}

void packed_lower(berth__lowering *l, berth_type type, uint32_t rows, int64_t depth, uint32_t before,
                  const berth__kernel_limits *with, berth_context *ctx) {
  packed_lower_of(l, type, rows, MANY, depth, before, with, ctx);
}
