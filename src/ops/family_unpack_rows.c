/* unpack_rows: picks rows of a matrix in blocks by index, and decodes only these to f32: a gather of an unpack. Items
 * are rows. */
#include "base/blocks.h"
#include "base/storage.h"
#include "ops/gather.h"
#include "ops/registry.h"

static berth_status unpack_rows_infer(berth__infer *infer, berth_error *err) {
  const berth_type type = infer->in_type[BERTH__UNPACK_ROWS_X];
  if (!berth__type_is_block(type))
    return berth__fail(err, BERTH_INVALID, "x is %s, expected a type whose elements lie in blocks, such as q8_0",
                       berth_type_name(type));
  BERTH__TRY(berth__want_rank(infer, BERTH__UNPACK_ROWS_X, 2, 2, err));
  BERTH__TRY(berth__gather_infer(infer, 0, err));
  infer->out_type[0] = BERTH_F32;
  return BERTH_OK;
}

static int64_t unpack_rows_items(const berth_op_call *call) { return berth__gather_items(call, 0); }

static berth_status unpack_rows_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[BERTH__UNPACK_ROWS_X];
  const int64_t width = x->dim[1];
  const uint64_t bytes = berth__storage_size(berth_type_storage(x->type), (uint64_t)width);
  for (int64_t item = call->begin; item < call->end; item++) {
    int64_t row = 0;
    BERTH__TRY(berth__read_index(&call->in[BERTH__UNPACK_ROWS_IDS], item, x->dim[0], 0, &row, err));
    berth__blocks_decode(x->type, (const uint8_t *)x->data + (uint64_t)row * bytes, (uint64_t)width,
                         (float *)call->out[0].data + item * width);
  }
  return BERTH_OK;
}

const berth__family berth__family_unpack_rows = {.infer = unpack_rows_infer,
                                                 .items = unpack_rows_items,
                                                 .kernel = unpack_rows_kernel,
                                                 .takes_blocks = 1u << BERTH__UNPACK_ROWS_X,
                                                 .takes_unaligned = true};
