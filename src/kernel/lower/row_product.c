/* row_product: a product of few rows (GEMV) that normalises its rows first, or that has two right sides. */
#include "base/blocks.h"
#include "kernel/lower/tile.h"

typedef struct row_end {
  berth__tile_epilogue epilogue; /* only a bias */
  berth__chain chain;
  berth__x second;
} row_end;

static void row_product_finish(const berth__tile *tile, berth__kernel *k, const berth__x *place, berth__x sum) {
  const row_end *end = tile->user;
  const berth__x operands[] = {berth__tile_epilogue_value(tile, &end->epilogue, k, place, sum), end->second};
  berth__l_store(tile->l, k, 0, place[0],
                 end->chain.n_steps != 0 ? berth__l_chain(k, &end->chain, operands) : operands[0]);
}

static void row_product_weight(const berth__tile *tile, uint32_t operand, berth__tile_side *side) {
  const berth_tensor *w = &tile->l->call->in[operand];
  const bool is_blocks = berth__type_is_block(w->type);
  side->operand = operand;
  side->depth[0] = w->stride[is_blocks ? 1 : 0];
  side->line[0] = w->stride[is_blocks ? 0 : 1];
}

/* The rows of all batches are rows of one product. */
static void row_product_describe(berth__tile *tile) {
  const berth_op_call *call = tile->l->call;
  const berth_tensor *x = &call->in[BERTH__ROW_PRODUCT_X];
  for (uint32_t axis = 0; axis + 1 < x->rank; axis++) {
    berth__tile_axis(&tile->rows, x->dim[axis], axis, 1);
    tile->left.line[axis] = x->stride[axis];
  }
  berth__tile_axis(&tile->depth, x->dim[x->rank - 1], 0, 0);
  tile->left.depth[0] = x->stride[x->rank - 1];
  row_product_weight(tile, BERTH__ROW_PRODUCT_WEIGHT, &tile->right);
  berth__tile_axis(&tile->columns, call->out[0].dim[x->rank - 1], x->rank - 1, 1);
}

berth_status berth__lower_row_product(berth__lowering *l, berth_error *err) {
  const berth_attr *attr = l->call->attrs;
  const bool has_second = berth__l_has(l, BERTH__ROW_PRODUCT_SECOND);
  const berth_type type = l->call->in[BERTH__ROW_PRODUCT_WEIGHT].type;
  if (berth__type_is_block(type)) BERTH__TRY(berth__l_check_blocks(type, err));
  berth__tile tile;
  row_end end = {.second = BERTH__X_NONE};
  berth__tile_init(&tile, l, BERTH__NUM_F32);
  row_product_describe(&tile);
  BERTH__TRY(berth__tile_epilogue_read(&tile, &end.epilogue, BERTH__ROW_PRODUCT_BIAS, l->call->out[0].rank - 1, NULL, 0,
                                       NULL, NULL, err));
  if (attr[BERTH__ROW_PRODUCT_CODE].count != 0)
    BERTH__TRY(berth__chain_read(&attr[BERTH__ROW_PRODUCT_CODE], &attr[BERTH__ROW_PRODUCT_NUMBERS], has_second ? 2 : 1,
                                 &end.chain, err));
  if (berth__l_has(l, BERTH__ROW_PRODUCT_SCALE)) tile.scale = BERTH__ROW_PRODUCT_SCALE;
  tile.is_exact = attr[BERTH__ROW_PRODUCT_EXACT].i != 0;
  tile.epsilon = attr[BERTH__ROW_PRODUCT_EPSILON].f;
  tile.user = &end;
  tile.finish = row_product_finish;
  if (!has_second) return berth__tile_lower(&tile, err);
  tile.second = BERTH__ROW_PRODUCT_SECOND;
  tile.second_side = tile.right;
  row_product_weight(&tile, BERTH__ROW_PRODUCT_SECOND, &tile.second_side);
  tile.second_sum = &end.second;
  return berth__tile_lower(&tile, err);
}
