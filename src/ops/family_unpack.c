/* unpack: decodes elements in blocks (q8_0, ...) to f32. Items are blocks. With the attribute `exact`, products that
 * read the blocks directly must not round their other operand: without it, kernels may make bytes of it. */
#include "base/blocks.h"
#include "base/storage.h"
#include "ops/op.h"

static const berth_attr attrs[BERTH__UNPACK_ATTRS] = {
    [BERTH__UNPACK_EXACT] = {.name = "exact", .kind = BERTH_ATTR_INT}};

static berth_status unpack_infer(berth__infer *infer, berth_error *err) {
  if (!berth__type_is_block(infer->in_type[0]))
    return berth__fail(err, BERTH_INVALID, "x is %s, expected a type whose elements lie in blocks, such as q8_0",
                       berth_type_name(infer->in_type[0]));
  infer->out_type[0] = BERTH_F32;
  infer->out_shape[0] = infer->in_shape[0];
  return BERTH_OK;
}

static int64_t unpack_items(const berth_op_call *call) {
  return berth__count(&call->out[0]) / (int64_t)berth_type_storage(call->in[0].type).elements;
}

static berth_status unpack_kernel(const berth_op_call *call, berth_error *err) {
  const berth_tensor *x = &call->in[0];
  const berth_storage storage = berth_type_storage(x->type);
  float *out = call->out[0].data;
  (void)err;
  const uint64_t first = (uint64_t)call->begin * storage.elements, end = (uint64_t)call->end * storage.elements;
  berth__blocks_decode(x->type, (const uint8_t *)x->data + berth__storage_size(storage, first), end - first,
                       out + first);
  return BERTH_OK;
}

const berth__family berth__family_unpack = {.attrs = attrs,
                                            .n_attrs = BERTH__UNPACK_ATTRS,
                                            .infer = unpack_infer,
                                            .items = unpack_items,
                                            .kernel = unpack_kernel,
                                            .takes_blocks = 1u,
                                            .takes_unaligned = true};
