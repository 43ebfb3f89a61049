/* pack_blocks: weights of four bits, as other formats store them, become blocks (q4_0f, q4_1f).
 * fields [N, B, P]  u8: rows of B groups of 2 P elements; each byte holds two neighbours, the first in its low half
 * scale  [N, B]     f32, f16 or bf16: of each group
 *   zero?  what stands for 0: floats [N, B], or u8 [N, (B + 1) / 2] with two groups in a byte, the first in its low
 * half. Without it 8 does, and the blocks have no offset The result has the first `columns` elements of each row: [N,
 * columns], which is a multiple of 32, as is 2 P. An item is a row. */
#include "base/blocks.h"
#include "base/storage.h"
#include "ops/operand.h"
#include "ops/pack_blocks.h"
#include "ops/registry.h"

static const berth_attr attrs[] = {[BERTH__PACK_BLOCKS_COLUMNS] = {.name = "columns", .kind = BERTH_ATTR_INT}};

/* Blocks of the result must not reach across groups. */
static berth_status pack_blocks_check_columns(const berth__infer *infer, int64_t columns, berth_error *err) {
  const berth__shape *fields = &infer->in_shape[BERTH__PACK_BLOCKS_FIELDS];
  const int64_t groups = fields->dim[1], bytes = fields->dim[2];
  if (columns < 0 || columns % 32 != 0)
    return berth__fail(err, BERTH_INVALID, "`columns` is %lld, expected a multiple of 32", (long long)columns);
  if (!berth__dim_is_fixed(groups) || !berth__dim_is_fixed(bytes)) return BERTH_OK;
  if (bytes % 16 != 0)
    return berth__fail(err, BERTH_INVALID, "groups of fields have %lld bytes, expected a multiple of 16",
                       (long long)bytes);
  if (columns / 2 > 0 && (bytes == 0 || (columns / 2 - 1) / bytes >= groups))
    return berth__fail(err, BERTH_INVALID, "`columns` is %lld, more than the elements of a row of fields",
                       (long long)columns);
  return BERTH_OK;
}

static berth_status pack_blocks_check_type(const berth__infer *infer, uint32_t k, berth_error *err) {
  const berth_type type = infer->in_type[k];
  if (k == BERTH__PACK_BLOCKS_ZERO && type == BERTH_U8) return BERTH_OK;
  if (type == BERTH_F16 || type == BERTH_BF16) return BERTH_OK;
  return berth__want_type(infer, k, BERTH_F32, err);
}

/* Scales and zero points, one per group; zero points of u8 two per byte. */
static berth_status pack_blocks_check_groups(const berth__infer *infer, uint32_t k, berth_error *err) {
  const berth__shape *fields = &infer->in_shape[BERTH__PACK_BLOCKS_FIELDS], *of = &infer->in_shape[k];
  const int64_t groups = fields->dim[1];
  const bool is_halved = infer->in_type[k] == BERTH_U8 && berth__dim_is_fixed(groups);
  int64_t same;
  BERTH__TRY(pack_blocks_check_type(infer, k, err));
  BERTH__TRY(berth__want_rank(infer, k, 2, 2, err));
  BERTH__TRY(berth__same_dim(fields->dim[0], of->dim[0], "rows of fields and their scales", &same, err));
  if (infer->in_type[k] == BERTH_U8 && !is_halved) return BERTH_OK;
  return berth__same_dim(
      is_halved ? groups / 2 + groups % 2 : groups, of->dim[1],
      is_halved ? "pairs of groups of fields and their zero points" : "groups of fields and their scales", &same, err);
}

static berth_status pack_blocks_infer(berth__infer *infer, berth_error *err) {
  const berth__shape *fields = &infer->in_shape[BERTH__PACK_BLOCKS_FIELDS];
  const int64_t columns = infer->attrs[BERTH__PACK_BLOCKS_COLUMNS].i;
  const bool has_zero = berth__infer_has(infer, BERTH__PACK_BLOCKS_ZERO);
  BERTH__TRY(berth__want_type(infer, BERTH__PACK_BLOCKS_FIELDS, BERTH_U8, err));
  BERTH__TRY(berth__want_rank(infer, BERTH__PACK_BLOCKS_FIELDS, 3, 3, err));
  BERTH__TRY(pack_blocks_check_groups(infer, BERTH__PACK_BLOCKS_SCALE, err));
  if (has_zero) BERTH__TRY(pack_blocks_check_groups(infer, BERTH__PACK_BLOCKS_ZERO, err));
  BERTH__TRY(pack_blocks_check_columns(infer, columns, err));
  infer->out_type[0] = has_zero ? BERTH_Q4_1F : BERTH_Q4_0F;
  infer->out_shape[0] = (berth__shape){.rank = 2, .dim = {fields->dim[0], columns}};
  return BERTH_OK;
}

float berth__pack_blocks_zero(const berth_tensor *zero, int64_t row, int64_t group) {
  const int64_t at = row * zero->stride[0];
  if (zero->type != BERTH_U8) return (float)berth__load_f64(zero, at + group * zero->stride[1]);
  const uint8_t both = ((const uint8_t *)zero->data)[at + group / 2 * zero->stride[1]];
  return (float)(group % 2 == 0 ? both & 15 : both >> 4);
}

static int64_t pack_blocks_items(const berth_op_call *call) { return call->out[0].dim[0]; }

static void pack_blocks_element(const berth_tensor *fields, int64_t row, int64_t column, uint8_t *block) {
  const int64_t group = column / 2 / fields->dim[2], byte = column / 2 % fields->dim[2], i = column % 32;
  const uint8_t both =
      ((const uint8_t *)fields->data)[row * fields->stride[0] + group * fields->stride[1] + byte * fields->stride[2]];
  const int four = column % 2 == 0 ? both & 15 : both >> 4;
  block[i % 16] = (uint8_t)(i < 16 ? four : block[i % 16] | four << 4);
}

static berth_status pack_blocks_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *fields = &call->in[BERTH__PACK_BLOCKS_FIELDS], *scale = &call->in[BERTH__PACK_BLOCKS_SCALE],
                     *zero = &call->in[BERTH__PACK_BLOCKS_ZERO];
  const bool has_zero = berth__call_has(call, BERTH__PACK_BLOCKS_ZERO);
  const int64_t columns = call->out[0].dim[1], bytes = berth_type_storage(call->out[0].type).bytes;
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++) {
    for (int64_t block = 0; block < columns / 32; block++) {
      uint8_t *to = (uint8_t *)call->out[0].data + (row * (columns / 32) + block) * bytes;
      const int64_t group = block * 16 / fields->dim[2];
      const float by = (float)berth__load_f64(scale, row * scale->stride[0] + group * scale->stride[1]);
      berth__block_store_f32(to, by);
      if (has_zero) berth__block_store_f32(to + 4, -(berth__pack_blocks_zero(zero, row, group) * by));
      to += has_zero ? 8 : 4;
      for (int64_t i = 0; i < 32; i++) pack_blocks_element(fields, row, block * 32 + i, to);
    }
  }
  return BERTH_OK;
}

const berth__family berth__family_pack_blocks = {.attrs = attrs,
                                                 .n_attrs = BERTH__PACK_BLOCKS_ATTRS,
                                                 .required = 1u << BERTH__PACK_BLOCKS_COLUMNS,
                                                 .infer = pack_blocks_infer,
                                                 .items = pack_blocks_items,
                                                 .kernel = pack_blocks_kernel};
