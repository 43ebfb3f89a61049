/* pack_weights and pack_weights_i8: one thread per element of the result. */
#include "kernel/lower.h"
#include "ops/bytes.h"
#include "ops/product.h"

/* The position of column `column` in the panels' first row; *is_there: whether the column exists. */
static berth__x column_at(const berth__lowering *l, berth__kernel *k, berth__x panel, berth__x in_panel,
                          berth__x *is_there) {
  _Static_assert(
      (int)BERTH__PACK_I8_PANEL == (int)BERTH__PACK_PANEL && (int)BERTH__PACK_I8_GROUPS == (int)BERTH__PACK_GROUPS,
      "both ops have these");
  const berth_tensor *w = &l->call->in[0], *out = &l->call->out[0];
  const int64_t groups = l->call->attrs[BERTH__PACK_I8_GROUPS].i, each = w->dim[w->rank - 1] / groups;
  const berth__x panels = berth__x_i32(k, out->dim[0] / groups);
  const berth__x in_group = berth__x_add(
      k, berth__x_affine(k, berth__x_rem(k, panel, panels), l->call->attrs[BERTH__PACK_I8_PANEL].i, 0), in_panel);
  *is_there = berth__x_lt(k, in_group, berth__x_i32(k, each));
  const berth__x first = berth__x_affine(k, berth__x_div(k, panel, panels), each, 0);
  return berth__x_add(k, first, berth__x_min(k, in_group, berth__x_i32(k, each - 1)));
}

static int64_t lower_pack_rows_of(const berth_tensor *w) {
  int64_t rows = 1;
  for (uint32_t axis = 0; axis + 1 < w->rank; axis++) rows *= w->dim[axis];
  return rows;
}

static berth__x lower_pack_element_at(berth__kernel *k, const berth_tensor *w, berth__x row, berth__x column) {
  berth_tensor rows = *w;
  rows.rank -= 1;
  return berth__x_add(k, berth__l_place_flat(k, &rows, row), berth__x_affine(k, column, w->stride[w->rank - 1], 0));
}

static berth__x byte_at(const berth__lowering *l, berth__kernel *k, berth__x row, berth__x column) {
  const berth_tensor *w = &l->call->in[0];
  const berth__x loaded =
      berth__x_convert(k, BERTH__NUM_I32, berth__l_load(l, k, 0, lower_pack_element_at(k, w, row, column)));
  return berth__x_affine(k, loaded, 1, w->type == BERTH_U8 ? -BERTH__BYTES_SHIFT : 0);
}

/* One byte of the sum of a column's rows. */
static berth__x byte_of_sum(const berth__lowering *l, berth__kernel *k, berth__x column, berth__x byte) {
  const berth__x sum = berth__x_variable(k, berth__x_i32(k, 0));
  const berth__x row = berth__x_loop_n(k, lower_pack_rows_of(&l->call->in[0]));
  berth__x_set(k, sum, berth__x_add(k, berth__x_get(k, sum), byte_at(l, k, row, column)));
  berth__x_end(k);
  return berth__x2(k, BERTH__INST_shr, berth__x_get(k, sum), berth__x_affine(k, byte, 8, 0));
}

/* The element of the result at [panel, group of rows, column of the panel, row of the group]. */
static berth__x packed_byte(const berth__lowering *l, berth__kernel *k, const berth__x *at) {
  const int64_t rows = lower_pack_rows_of(&l->call->in[0]), groups = berth__bytes_groups(rows);
  const berth__x zero = berth__x_i32(k, 0), value = berth__x_variable(k, zero);
  berth__x is_there;
  const berth__x column = column_at(l, k, at[0], at[2], &is_there);
  const berth__x row = berth__x_add(k, berth__x_affine(k, at[1], 4, 0), at[3]);
  berth__x_if(k, is_there);
  berth__x_if(k, berth__x_eq(k, at[1], berth__x_i32(k, groups)));
  berth__x_set(k, value, byte_of_sum(l, k, column, at[3]));
  berth__x_else(k);
  const berth__x is_row = berth__x_lt(k, row, berth__x_i32(k, rows));
  const berth__x inside = berth__x_min(k, row, berth__x_i32(k, rows - 1));
  berth__x_set(k, value, berth__x_select(k, is_row, byte_at(l, k, inside, column), zero));
  berth__x_end(k);
  berth__x_end(k);
  return berth__x_get(k, value);
}

berth_status berth__lower_pack_weights_i8(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t count = berth__count(out);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[4];
  berth__l_unravel(k, berth__l_each(l, k, count), 4, out->dim, at);
  const bool has_rows = berth__count(&l->call->in[0]) != 0;
  berth__l_store(l, k, 0, berth__l_place(k, out, at), has_rows ? packed_byte(l, k, at) : berth__x_i32(k, 0));
  return berth__l_end(l, k, err);
}

/* ---- pack_weights ---- */

/* An element of an operand with one element per column, or one for all. */
static berth__x of_column(const berth__lowering *l, berth__kernel *k, uint32_t operand, berth__x column) {
  const berth_tensor *of = &l->call->in[operand];
  const berth__x place = of->dim[0] == 1 ? berth__x_i32(k, 0) : berth__x_affine(k, column, of->stride[0], 0);
  return berth__x_convert(k, BERTH__NUM_F32, berth__l_load(l, k, operand, place));
}

static berth__x packed_number(const berth__lowering *l, berth__kernel *k, berth__x row, berth__x column) {
  const berth__x place = lower_pack_element_at(k, &l->call->in[BERTH__PACK_WEIGHT], row, column);
  berth__x value = berth__x_convert(k, BERTH__NUM_F32, berth__l_load(l, k, BERTH__PACK_WEIGHT, place));
  if (berth__l_has(l, BERTH__PACK_ZERO)) value = berth__x_sub(k, value, of_column(l, k, BERTH__PACK_ZERO, column));
  return berth__l_has(l, BERTH__PACK_SCALE) ? berth__x_mul(k, value, of_column(l, k, BERTH__PACK_SCALE, column))
                                            : value;
}

/* [panels, rows, panel], or pairs of rows of bf16: [panels, rows / 2, panel, 2]. */
berth_status berth__lower_pack_weights(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t count = berth__count(out), rows = lower_pack_rows_of(&l->call->in[BERTH__PACK_WEIGHT]);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  berth__x at[4], is_there;
  const berth__x index = berth__l_each(l, k, count), zero = berth__x_f32(k, 0);
  berth__l_unravel(k, index, out->rank, out->dim, at);
  const berth__x row = out->rank == 4 ? berth__x_add(k, berth__x_affine(k, at[1], 2, 0), at[3]) : at[1];
  const berth__x column = column_at(l, k, at[0], at[2], &is_there);
  is_there = berth__x_and(k, is_there, berth__x_lt(k, row, berth__x_i32(k, rows)));
  const berth__x value =
      rows == 0 ? zero : packed_number(l, k, berth__x_min(k, row, berth__x_i32(k, rows - 1)), column);
  berth__l_store(l, k, 0, berth__l_place_flat(k, out, index), berth__x_select(k, is_there, value, zero));
  return berth__l_end(l, k, err);
}
