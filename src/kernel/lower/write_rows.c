/* write_rows: one thread per element of the rows. Where the result is written over x, that is all; otherwise x is
 * copied first. A position that does not fit is an error of a run elsewhere; here the rows go nowhere. */
#include "ops/write_rows.h"

#include "kernel/lower/copy.h"

static berth__x position_of(const berth__lowering *l, berth__kernel *k, const berth__write_rows *w,
                            const berth__x *at) {
  const berth__x place = w->n_positions > 1 ? berth__x_affine(k, at[0], w->position_stride, 0) : berth__x_i32(k, 0);
  return berth__l_load(l, k, BERTH__WRITE_ROWS_POSITION, place);
}

/* Opens an `if` that holds where the rows fit; gives the row of x for row `i`. */
static berth__x open_fitting(berth__kernel *k, const berth__write_rows *w, berth__x position, berth__x i) {
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

berth_status berth__lower_write_rows(berth__lowering *l, berth_error *err) {
  const berth_op_call *call = l->call;
  const berth_tensor *x = &call->in[BERTH__WRITE_ROWS_X], *rows = &call->in[BERTH__WRITE_ROWS_ROWS];
  const berth_tensor *out = &call->out[0];
  berth__write_rows w;
  berth__x at[BERTH_MAX_RANK];
  berth__write_rows_of(call, &w);
  BERTH__TRY(berth__l_copy_all(
      l, &(berth__l_copy){.rank = x->rank, .dim = x->dim, .from_stride = x->stride, .to_stride = out->stride}, err));
  if (berth__count(rows) == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, "rows");
  if (k == NULL) return berth__l_end(l, k, err);
  k->bytes = 2 * berth__l_bytes(l, BERTH__WRITE_ROWS_ROWS);
  berth__l_unravel(k, berth__l_each_alone(l, k, berth__count(rows)), rows->rank, rows->dim, at);
  const berth__x from = berth__l_place(k, rows, at);
  at[w.axis] = open_fitting(k, &w, position_of(l, k, &w, at), at[w.axis]);
  berth__l_store_raw(l, k, 0, berth__l_place(k, out, at), berth__l_load_raw(l, k, BERTH__WRITE_ROWS_ROWS, from));
  return berth__l_end(l, k, err);
}
