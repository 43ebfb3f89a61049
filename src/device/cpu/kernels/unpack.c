/* unpack and unpack_rows: unpacks blocks in loops that are vectorised for this instruction set. */
#include "base/storage.h"
#include "device/cpu/kernels/blocks.h"
#include "ops/gather.h"

static bool unpack_takes(const berth_op_call *call) {
  return blocks_split_of(call->in[0].type) != NULL && berth__is_contiguous(&call->in[0]);
}

static int64_t unpack_blocks(const berth_op_call *call) {
  return berth__count(&call->out[0]) / (int64_t)berth_type_storage(call->in[0].type).elements;
}

/* A product and its sum are rounded separately (cmake/Kernels.cmake), as in the reference kernel. */
static void unpack_some(berth_type type, const uint8_t *from, int64_t blocks, float *to) {
  const blocks_split split = blocks_split_of(type);
  const berth_storage storage = berth_type_storage(type);
  const int group = (int)berth__block_group(type), groups = (int)storage.elements / group;
  berth__block_parts p;
  for (int g = 0; g < BERTH__BLOCK_GROUPS_MAX; g++) p.offset[g] = -0.0f;
  for (int64_t b = 0; b < blocks; b++, from += storage.bytes) {
    split(from, &p);
    for (int g = 0; g < groups; g++)
      for (int i = 0; i < group; i++) *to++ = p.factor[g] * (float)p.q[g * group + i] + p.offset[g];
  }
}

static berth_status unpack_run(const berth_op_call *call, berth_error *err) {
  const berth_storage storage = berth_type_storage(call->in[0].type);
  (void)err;
  unpack_some(call->in[0].type, (const uint8_t *)call->in[0].data + call->begin * storage.bytes,
              call->end - call->begin, (float *)call->out[0].data + call->begin * storage.elements);
  return BERTH_OK;
}

static int64_t unpack_rows_items(const berth_op_call *call) { return berth__count(&call->in[BERTH__UNPACK_ROWS_IDS]); }

static berth_status unpack_rows_run(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__UNPACK_ROWS_X];
  const berth_storage storage = berth_type_storage(x->type);
  const int64_t width = x->dim[1], blocks = width / storage.elements;
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t row = 0;
    BERTH__TRY(berth__read_index(&call->in[BERTH__UNPACK_ROWS_IDS], item, x->dim[0], 0, &row, err));
    unpack_some(x->type, (const uint8_t *)x->data + row * blocks * storage.bytes, blocks,
                (float *)call->out[0].data + item * width);
  }
  return BERTH_OK;
}

const berth__cpu_kernel BERTH__PER_ISA(berth__kernels_unpack)[] = {
    {"unpack", BERTH__OP_unpack, unpack_takes, unpack_blocks, NULL, NULL, unpack_run, NULL, true, NULL},
    {"unpack_rows", BERTH__OP_unpack_rows, unpack_takes, unpack_rows_items, NULL, NULL, unpack_rows_run, NULL, false,
     NULL},
    {0},
};
