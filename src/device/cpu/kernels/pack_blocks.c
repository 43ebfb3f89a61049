/* pack_blocks: a block of 32 elements at a time, in loops that are vectorised for this instruction set. */
#include "ops/pack_blocks.h"
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "ops/operand.h"

static bool pack_blocks_takes(const berth_op_call *call) {
  return berth__is_contiguous(&call->in[BERTH__PACK_BLOCKS_FIELDS]);
}

static int64_t pack_blocks_items(const berth_op_call *call) { return call->out[0].dim[0]; }

/* 16 bytes of neighbours become low halves, elements 0 to 15, and high halves, elements 16 to 31. */
static inline void pack_blocks_halves(const uint8_t *restrict from, uint8_t *restrict to) {
  uint8_t four[32];
  for (int i = 0; i < 16; i++) {
    four[2 * i] = from[i] & 15;
    four[2 * i + 1] = from[i] >> 4;
  }
  for (int i = 0; i < 16; i++) to[i] = (uint8_t)(four[i] | four[16 + i] << 4);
}

static berth_status pack_blocks_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *fields = &call->in[BERTH__PACK_BLOCKS_FIELDS], *scale = &call->in[BERTH__PACK_BLOCKS_SCALE],
                     *zero = &call->in[BERTH__PACK_BLOCKS_ZERO];
  const bool has_zero = berth__call_has(call, BERTH__PACK_BLOCKS_ZERO);
  const int64_t blocks = call->out[0].dim[1] / 32, in_group = fields->dim[2] / 16,
                bytes = berth_type_storage(call->out[0].type).bytes;
  (void)err;
  for (int64_t row = call->begin; row < call->end; row++) {
    const uint8_t *from = (const uint8_t *)fields->data + row * fields->stride[0];
    uint8_t *to = (uint8_t *)call->out[0].data + row * blocks * bytes;
    for (int64_t b = 0; b < blocks; b++, from += 16, to += bytes) {
      const int64_t group = b / in_group;
      const float by = (float)berth__load_f64(scale, row * scale->stride[0] + group * scale->stride[1]);
      berth__block_store_f32(to, by);
      if (has_zero) berth__block_store_f32(to + 4, -(berth__pack_blocks_zero(zero, row, group) * by));
      pack_blocks_halves(from, to + bytes - 16);
    }
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_pack_blocks)[] = {
    {"pack_blocks", BERTH__OP_pack_blocks, pack_blocks_takes, pack_blocks_items, NULL, NULL, pack_blocks_run, NULL,
     true, NULL},
    {0},
};
