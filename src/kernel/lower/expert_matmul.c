/* expert_matmul: a tile whose batches, the uses of experts, have one row each, and whose weights are chosen by loading
 * the expert's number. A number out of range is a run-time error on other devices; a GPU cannot report it, and uses the
 * nearest valid one. */
#include "base/blocks.h"
#include "kernel/lower/tile.h"

/* The offset of a use's weights. */
static berth__x experts_base(const berth__tile *tile, berth__kernel *k, berth__x use) {
  const berth_tensor *w = &tile->l->call->in[BERTH__EXPERTS_WEIGHTS];
  const berth__x given = berth__l_load(tile->l, k, BERTH__EXPERTS_WHICH, use);
  const berth__x inside = berth__x_min(k, given, berth__x_i32(k, w->dim[0] - 1));
  return berth__x_affine(k, berth__x_max(k, inside, berth__x_i32(k, 0)), w->stride[0], 0);
}

berth_status berth__lower_expert_matmul(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__EXPERTS_X], *w = &l->call->in[BERTH__EXPERTS_WEIGHTS],
                     *out = &l->call->out[0];
  berth__tile tile;
  berth__tile_epilogue epilogue;
  if (berth__type_is_block(w->type)) BERTH__TRY(berth__l_check_blocks(w->type, err));
  berth__tile_init(&tile, l, BERTH__NUM_F32);
  tile.left.operand = BERTH__EXPERTS_X;
  tile.right.operand = BERTH__EXPERTS_WEIGHTS;
  for (uint32_t axis = 0; axis < 2; axis++) {
    berth__tile_axis(&tile.batch, out->dim[axis], axis, 1);
    tile.left.batch[axis] = axis + 1 < x->rank ? x->stride[axis] : 0;
  }
  berth__tile_axis(&tile.rows, 1, 0, 0);
  berth__tile_axis(&tile.columns, out->dim[2], 2, 1);
  berth__tile_axis(&tile.depth, w->dim[2], 0, 0);
  tile.left.depth[0] = x->stride[x->rank - 1];
  tile.right.line[0] = w->stride[1];
  tile.right.depth[0] = w->stride[2];
  tile.right.base = experts_base;
  BERTH__TRY(berth__tile_epilogue_read(&tile, &epilogue, BERTH__TILE_NONE, 0, NULL, 0, NULL, NULL, err));
  return berth__tile_lower(&tile, err);
}
