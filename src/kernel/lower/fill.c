/* Results that depend on shapes and a few numbers only: shape, size, range. */
#include "kernel/lower/elements.h"

/* shape and size: known when the kernel is made. */
static int64_t lower_fill_entry_of(const berth__lowering *l, int64_t i) {
  const berth_tensor *in = &l->call->in[0];
  if (l->op->code == BERTH__OP_size) return berth__count(in);
  const int64_t start = l->call->attrs[BERTH__SHAPE_START].i < 0 ? l->call->attrs[BERTH__SHAPE_START].i + in->rank
                                                                 : l->call->attrs[BERTH__SHAPE_START].i;
  return in->dim[(start < 0 ? 0 : start) + i];
}

berth_status berth__lower_shape(berth__lowering *l, berth_error *err) {
  const int64_t count = berth__count(&l->call->out[0]);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count);
  berth__x value = berth__x_i32(k, lower_fill_entry_of(l, 0));
  for (int64_t i = 1; i < count; i++)
    value = berth__x_select(k, berth__x_eq(k, index, berth__x_i32(k, i)), berth__x_i32(k, lower_fill_entry_of(l, i)),
                            value);
  berth__l_store(l, k, 0, berth__l_place_flat(k, &l->call->out[0], index), value);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_range(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  const int64_t count = berth__count(out);
  if (count == 0) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count), zero = berth__x_i32(k, 0);
  const berth__x start = berth__l_load(l, k, BERTH__RANGE_START, zero),
                 delta = berth__l_load(l, k, BERTH__RANGE_DELTA, zero);
  const berth__x steps = berth__x_mul(k, berth__x_convert(k, berth__l_number(out->type), index), delta);
  berth__l_store(l, k, 0, berth__l_place_flat(k, out, index), berth__x_add(k, start, steps));
  return berth__l_end(l, k, err);
}
