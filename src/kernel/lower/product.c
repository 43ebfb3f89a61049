/* matmul and product. */
#include "ops/product.h"
#include "base/blocks.h"
#include "kernel/lower/blocks.h"
#include "kernel/lower/tile.h"
#include "ops/epilogue.h"

/* The strides of a stack of matrices over the batch axes of the result. */
static void lower_product_batch_strides(const berth_tensor *tensor, uint32_t rank, const int64_t *dim,
                                        int64_t *stride) {
  berth_tensor stack = *tensor;
  stack.rank = tensor->rank > 2 ? tensor->rank - 2 : 0;
  berth__broadcast_strides(&stack, rank, dim, stride);
}

static bool are_zero(const int64_t *stride, uint32_t n) {
  for (uint32_t i = 0; i < n; i++)
    if (stride[i] != 0) return false;
  return true;
}

/* The batch axes of the result, and both sides' strides along them. If the second matrix is the same for all batches,
 * the rows of all batches are rows of one product. */
static void describe_batch(berth__tile *tile, uint32_t rank, bool is_packed) {
  const berth_op_call *call = tile->l->call;
  const int64_t *dim = call->out[0].dim;
  int64_t left[BERTH_MAX_RANK], right[BERTH_MAX_RANK] = {0};
  lower_product_batch_strides(&call->in[0], rank, dim, left);
  if (!is_packed) lower_product_batch_strides(&call->in[1], rank, dim, right);
  const bool is_one = are_zero(right, rank);
  for (uint32_t axis = 0; axis < rank; axis++) {
    berth__tile_axis(is_one ? &tile->rows : &tile->batch, dim[axis], axis, 1);
    (is_one ? tile->left.line : tile->left.batch)[axis] = left[axis];
    tile->right.batch[axis] = right[axis];
  }
}

static void describe_rows(berth__tile *tile, bool is_row) {
  const berth_tensor *a = &tile->l->call->in[0], *out = &tile->l->call->out[0];
  const uint32_t axis = tile->rows.rank;
  const bool has_columns = tile->l->call->in[1].rank > 1;
  tile->left.depth[0] = a->stride[a->rank - 1];
  tile->left.line[axis] = is_row ? 0 : a->stride[a->rank - 2];
  berth__tile_axis(&tile->rows, is_row ? 1 : a->dim[a->rank - 2], out->rank - 1 - (has_columns ? 1 : 0),
                   is_row ? 0 : 1);
  berth__tile_axis(&tile->depth, a->dim[a->rank - 1], 0, 0);
}

static void describe_matmul(berth__tile *tile, berth__lowering *l) {
  const berth_tensor *a = &l->call->in[0], *b = &l->call->in[1], *out = &l->call->out[0];
  const bool is_row = a->rank == 1, is_column = b->rank == 1;
  berth__tile_init(tile, l, berth__l_number(a->type));
  describe_batch(tile, out->rank - (is_row ? 0 : 1) - (is_column ? 0 : 1), false);
  describe_rows(tile, is_row);
  tile->right.depth[0] = b->stride[is_column ? 0 : b->rank - 2];
  tile->right.line[0] = is_column ? 0 : b->stride[b->rank - 1];
  berth__tile_axis(&tile->columns, is_column ? 1 : b->dim[b->rank - 1], is_column ? 0 : out->rank - 1,
                   is_column ? 0 : 1);
}

uint64_t berth__scratch_of_matmul(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__lowering l = {.limits = limits, .call = call};
  berth__tile tile;
  describe_matmul(&tile, &l);
  return berth__tile_scratch(&tile);
}

berth_status berth__lower_matmul(berth__lowering *l, berth_error *err) {
  berth__tile tile;
  berth__tile_epilogue epilogue;
  describe_matmul(&tile, l);
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, BERTH__TILE_NONE, 0, NULL, 0, NULL, NULL, err));
  return berth__tile_lower_sections(&tile, err);
}

static void describe_product(berth__tile *tile, berth__lowering *l) {
  const berth_attr *attr = l->call->attrs;
  const berth_tensor *w = &l->call->in[BERTH__PRODUCT_WEIGHT], *out = &l->call->out[0];
  const bool is_packed = attr[BERTH__PRODUCT_PANEL].i > 0, is_blocks = berth__type_is_block(w->type);
  berth__tile_init(tile, l, BERTH__NUM_F32);
  tile->has_weight = true;
  describe_batch(tile, out->rank - 2, is_packed);
  describe_rows(tile, false);
  tile->right.depth[0] = w->stride[w->rank - (is_blocks ? 1 : 2)]; /* blocks run along K */
  tile->right.line[0] = w->stride[w->rank - (is_blocks ? 2 : 1)];
  tile->right.panel = attr[BERTH__PRODUCT_PANEL].i;
  tile->right.panel_stride = is_packed ? w->stride[0] : 0;
  berth__tile_axis(&tile->columns, out->dim[out->rank - 1], out->rank - 1, 1);
}

uint64_t berth__scratch_of_product(const berth_op_call *call, const berth__kernel_limits *limits) {
  berth__lowering l = {.limits = limits, .call = call};
  berth__tile tile;
  describe_product(&tile, &l);
  return berth__tile_scratch(&tile);
}

berth_status berth__lower_fused_product(berth__lowering *l, berth_error *err) {
  const berth_attr *attr = l->call->attrs;
  const berth_tensor *w = &l->call->in[BERTH__PRODUCT_WEIGHT], *out = &l->call->out[0];
  if (berth__type_is_block(w->type)) BERTH__TRY(berth__l_check_blocks(w->type, err));
  if ((attr[BERTH__PRODUCT_PANEL].i > 0 && w->type != BERTH_F32) || attr[BERTH__PRODUCT_ROUNDS].i != 0)
    return berth__fail(err, BERTH_UNSUPPORTED, "weights that are packed as %s are for kernels of the CPU",
                       berth_type_name(w->type));
  berth__tile tile;
  berth__tile_epilogue epilogue;
  describe_product(&tile, l);
  tile.is_exact = attr[BERTH__PRODUCT_EXACT].i != 0;
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, BERTH__PRODUCT_BIAS, out->rank - 1, &attr[BERTH__PRODUCT_ADDS],
                                       berth__epilogue_first(&attr[BERTH__PRODUCT_ADDS]), &attr[BERTH__PRODUCT_CODE],
                                       &attr[BERTH__PRODUCT_NUMBERS], err));
  return berth__tile_lower_sections(&tile, err);
}
