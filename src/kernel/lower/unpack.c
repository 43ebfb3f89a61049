/* unpack and unpack_rows: decode quantised elements (block types) to f32, four per thread. */
#include "kernel/lower/blocks.h"

static const berth__l_table tree = {.kind = BERTH__TABLE_TREE};

static void unpack_store(const berth__lowering *l, berth__kernel *k, berth__x index, const berth__x *values) {
  for (int64_t i = 0; i < 4; i++)
    berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], berth__x_affine(k, index, 1, i)), values[i]);
}

berth_status berth__lower_unpack(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *out = &l->call->out[0];
  berth__x values[4] = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE};
  if (berth__count(out) == 0) return BERTH_OK;
  BERTH__TRY(berth__l_check_blocks(x->type, err));
  berth__kernel *k = berth__l_begin(l, berth_type_name(x->type));
  const berth__x index = berth__x_affine(k, berth__l_each_alone(l, k, berth__count(out) / 4), 4, 0);
  berth__l_load_block_quad(l, k, 0, tree, berth__l_place_flat(k, x, index), values);
  unpack_store(l, k, index, values);
  return berth__l_end(l, k, err);
}

/* An index out of range is clamped, like in gather. */
berth_status berth__lower_unpack_rows(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__UNPACK_ROWS_X], *ids = &l->call->in[BERTH__UNPACK_ROWS_IDS];
  const berth_tensor *out = &l->call->out[0];
  berth__x values[4] = {BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE, BERTH__X_NONE};
  if (berth__count(out) == 0 || berth__count(x) == 0) return BERTH_OK;
  BERTH__TRY(berth__l_check_blocks(x->type, err));
  berth__kernel *k = berth__l_begin(l, berth_type_name(x->type));
  const berth__x index = berth__x_affine(k, berth__l_each_alone(l, k, berth__count(out) / 4), 4, 0);
  const berth__x width = berth__x_i32(k, x->dim[1]), zero = berth__x_i32(k, 0);
  const berth__x item = berth__x_div(k, index, width);
  berth__x row = berth__l_load(l, k, BERTH__UNPACK_ROWS_IDS, berth__l_place_flat(k, ids, item));
  row = berth__x_select(k, berth__x_lt(k, row, zero), berth__x_affine(k, row, 1, x->dim[0]), row);
  row = berth__x_max(k, berth__x_min(k, row, berth__x_i32(k, x->dim[0] - 1)), zero);
  const berth__x place = berth__x_add(k, berth__x_affine(k, row, x->dim[1], 0), berth__x_rem(k, index, width));
  berth__l_load_block_quad(l, k, BERTH__UNPACK_ROWS_X, tree, place, values);
  unpack_store(l, k, index, values);
  return berth__l_end(l, k, err);
}
