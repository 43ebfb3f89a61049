/* embedding: rows of a table, looked up by id. */
#include "ops/gather.h"
#include "ops/registry.h"

static berth_status embedding_infer(berth__infer *infer, berth_error *err) {
  return berth__gather_infer(infer, 0, err);
}

static int64_t embedding_items(const berth_op_call *call) { return berth__gather_items(call, 0); }

static berth_status embedding_kernel(const berth_op_call *call, berth_error *err) {
  return berth__gather_kernel(call, 0, err);
}

const berth__family berth__family_embedding = {
    .infer = embedding_infer, .items = embedding_items, .kernel = embedding_kernel};
