/* write_rows: one thread per element of the rows. If the result overwrites x, that is all; otherwise x is copied first.
 * Rows stored as q8_0 have one thread per block. A position that does not fit is a run-time error on other devices;
 * here the rows are dropped. */
#include "kernel/lower/write_rows.h"

#include "base/blocks.h"
#include "kernel/lower/copy.h"

static berth__x position_of(const berth__lowering *l, berth__kernel *k, const berth__write_rows *w,
                            const berth__x *at) {
  const berth__x place = w->n_positions > 1 ? berth__x_affine(k, at[0], w->position_stride, 0) : berth__x_i32(k, 0);
  return berth__l_load(l, k, BERTH__WRITE_ROWS_POSITION, place);
}

berth__x berth__l_open_fitting(berth__kernel *k, const berth__write_rows *w, berth__x position, berth__x i) {
  const berth__x zero = berth__x_i32(k, 0), capacity = berth__x_i32(k, w->capacity);
  if (!w->ring) {
    const berth__x last = berth__x_i32(k, w->capacity - w->n);
    berth__x_if(k, berth__x_and(k, berth__x_le(k, zero, position), berth__x_le(k, position, last)));
    return berth__x_add(k, position, i);
  }
  berth__x_if(k, berth__x_le(k, zero, position));
  const berth__x row = berth__x_add(k, berth__x_rem(k, position, capacity), i);
  return berth__x_select(k, berth__x_lt(k, row, capacity), row, berth__x_affine(k, row, 1, -w->capacity));
}

/* ---- Rows as q8_0 ---- */

#define Q8_0_ELEMENTS 32
#define Q8_0_HALVES 17 /* 16-bit words: the scale, and two elements each */

static berth__x write_rows_element(const berth__lowering *l, berth__kernel *k, berth__x first, berth__x i) {
  const int64_t stride = l->call->in[BERTH__WRITE_ROWS_ROWS].stride[l->call->in[BERTH__WRITE_ROWS_ROWS].rank - 1];
  return berth__l_load(l, k, BERTH__WRITE_ROWS_ROWS, berth__x_add(k, first, berth__x_affine(k, i, stride, 0)));
}

/* The largest magnitude of a block; NaN is ignored. */
static berth__x write_rows_largest(const berth__lowering *l, berth__kernel *k, berth__x first) {
  const berth__x most = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, Q8_0_ELEMENTS);
  const berth__x x = berth__x1(k, BERTH__INST_abs, write_rows_element(l, k, first, i)), so_far = berth__x_get(k, most);
  berth__x_set(k, most, berth__x_select(k, berth__x_lt(k, so_far, x), x, so_far));
  berth__x_end(k);
  return berth__x_get(k, most);
}

/* The nearest integer of -127 to 127, halves away from 0; NaN becomes 0. As 8 bits of a u32. */
static berth__x write_rows_byte(berth__kernel *k, berth__x x) {
  const berth__x half = berth__x_f32(k, 0.5f), one = berth__x_f32(k, 1), zero = berth__x_f32(k, 0);
  x = berth__x_select(k, berth__x_is_nan(k, x), zero, x);
  x = berth__x_max(k, berth__x_f32(k, -127), berth__x_min(k, berth__x_f32(k, 127), x));
  const berth__x whole = berth__x1(k, BERTH__INST_trunc, x), rest = berth__x_sub(k, x, whole);
  const berth__x up = berth__x_select(k, berth__x_le(k, half, rest), one, zero);
  const berth__x down = berth__x_select(k, berth__x_le(k, rest, berth__x_f32(k, -0.5f)), one, zero);
  const berth__x nearest = berth__x_sub(k, berth__x_add(k, whole, up), down);
  const berth__x integer = berth__x_convert(k, BERTH__NUM_I32, nearest);
  return berth__x_and(k, berth__x_bits(k, BERTH__NUM_U32, integer), berth__x_u32(k, 255));
}

/* One thread per block. */
static void write_rows_block(const berth__lowering *l, berth__kernel *k, berth__x first, berth__x block) {
  const uint32_t result = berth__operand_out(l->call, 0);
  const berth__x zero = berth__x_f32(k, 0), to = berth__x_affine(k, block, Q8_0_HALVES, 0);
  const berth__x largest = write_rows_largest(l, k, first);
  const berth__x scale = berth__x2(k, BERTH__INST_quotient, largest, berth__x_f32(k, 127));
  const berth__x inverse = berth__x2(k, BERTH__INST_quotient, berth__x_f32(k, 1), scale);
  const berth__x by = berth__x_select(k, berth__x_eq(k, scale, zero), zero, inverse);
  berth__l_store_bits(l, k, result, BERTH_U16, to, berth__x1(k, BERTH__INST_pack_half, scale));
  const berth__x pair = berth__x_loop_n(k, Q8_0_ELEMENTS / 2);
  berth__x byte[2];
  for (int i = 0; i < 2; i++) {
    const berth__x x = write_rows_element(l, k, first, berth__x_affine(k, pair, 2, i));
    byte[i] = write_rows_byte(k, berth__x_mul(k, x, by));
  }
  const berth__x high = berth__x2(k, BERTH__INST_shl, byte[1], berth__x_u32(k, 8));
  berth__l_store_bits(l, k, result, BERTH_U16, berth__x_add(k, to, berth__x_affine(k, pair, 1, 1)),
                      berth__x_or(k, byte[0], high));
  berth__x_end(k);
}

/* Copies the blocks of x, unless they are already in place. */
static berth_status write_rows_copy_blocks(berth__lowering *l, berth_error *err) {
  const int64_t halves = berth__count(&l->call->out[0]) / Q8_0_ELEMENTS * Q8_0_HALVES;
  if (berth__l_is_placed(l, BERTH__WRITE_ROWS_X, 0) || halves == 0) return BERTH_OK;
  if (halves > INT32_MAX) return berth__fail(err, BERTH_UNSUPPORTED, "a cache has more bytes than kernels count");
  berth__kernel *k = berth__l_begin(l, NULL);
  if (k == NULL) return berth__l_end(l, k, err);
  const berth__x at = berth__l_each_alone(l, k, halves);
  const uint32_t x = berth__l_buffer(l, k, berth__operand_in(BERTH__WRITE_ROWS_X), BERTH_U16);
  berth__l_store_bits(l, k, berth__operand_out(l->call, 0), BERTH_U16, at, berth__x_load(k, x, at));
  return berth__l_end(l, k, err);
}

static berth_status write_rows_lower_blocks(berth__lowering *l, const berth__write_rows *w, berth_error *err) {
  const berth_tensor *rows = &l->call->in[BERTH__WRITE_ROWS_ROWS], *out = &l->call->out[0];
  const uint32_t last = rows->rank - 1;
  int64_t dim[BERTH_MAX_RANK];
  berth__x at[BERTH_MAX_RANK];
  BERTH__TRY(write_rows_copy_blocks(l, err));
  if (berth__count(rows) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, "rows of q8_0");
  if (k == NULL) return berth__l_end(l, k, err);
  k->bytes = berth__l_bytes(l, BERTH__WRITE_ROWS_ROWS) * (1 + Q8_0_HALVES / (2.0 * Q8_0_ELEMENTS));
  memcpy(dim, rows->dim, sizeof dim);
  dim[last] /= Q8_0_ELEMENTS;
  berth__l_unravel(k, berth__l_each_alone(l, k, berth__count(rows) / Q8_0_ELEMENTS), rows->rank, dim, at);
  at[last] = berth__x_affine(k, at[last], Q8_0_ELEMENTS, 0);
  const berth__x from = berth__l_place(k, rows, at);
  at[w->axis] = berth__l_open_fitting(k, w, position_of(l, k, w, at), at[w->axis]);
  const berth__x place = berth__l_place(k, out, at);
  write_rows_block(l, k, from, berth__x_div(k, place, berth__x_i32(k, Q8_0_ELEMENTS)));
  return berth__l_end(l, k, err);
}

berth_status berth__lower_write_rows(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[BERTH__WRITE_ROWS_X], *rows = &call->in[BERTH__WRITE_ROWS_ROWS];
  const berth_tensor *out = &call->out[0];
  berth__write_rows w;
  berth__x at[BERTH_MAX_RANK];
  berth__write_rows_of(call, &w);
  if (berth__type_is_block(x->type)) return write_rows_lower_blocks(l, &w, err);
  BERTH__TRY(berth__l_copy_all(
      l, &(berth__l_copy){.rank = x->rank, .dim = x->dim, .from_stride = x->stride, .to_stride = out->stride}, err));
  if (berth__count(rows) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, "rows");
  if (k == NULL) return berth__l_end(l, k, err);
  k->bytes = 2 * berth__l_bytes(l, BERTH__WRITE_ROWS_ROWS);
  berth__l_unravel(k, berth__l_each_alone(l, k, berth__count(rows)), rows->rank, rows->dim, at);
  const berth__x from = berth__l_place(k, rows, at);
  at[w.axis] = berth__l_open_fitting(k, &w, position_of(l, k, &w, at), at[w.axis]);
  const berth__x to = berth__l_place(k, out, at);
  if (rows->type == x->type)
    berth__l_store_raw(l, k, 0, to, berth__l_load_raw(l, k, BERTH__WRITE_ROWS_ROWS, from));
  else /* f32 is stored as f16 or bf16 */
    berth__l_store(l, k, 0, to, berth__l_load(l, k, BERTH__WRITE_ROWS_ROWS, from));
  return berth__l_end(l, k, err);
}
