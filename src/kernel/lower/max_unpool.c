/* max_unpool: zeros everywhere, and then every element at its place. Two elements of one place are equal where x is
 * what max_pool gave with the places. Otherwise two threads store different values into it: one of them is lost and,
 * where elements share a word, bits of both may stay; the interpreter says so. */
#include "base/math.h"
#include "kernel/lower/copy.h"

/* The shape that was pooled, in which the places count. */
static void lower_max_unpool_pooled_shape(const berth_op_call *call, int64_t *dim) {
  const berth_tensor *x = &call->in[0];
  const berth_attr *attr = call->attrs;
  const uint32_t spatial = x->rank - 2;
  memcpy(dim, x->dim, sizeof x->dim);
  for (uint32_t axis = 0; axis < spatial; axis++) {
    const int64_t stride = attr[BERTH__MAX_UNPOOL_STRIDES].count != 0 ? attr[BERTH__MAX_UNPOOL_STRIDES].ints[axis] : 1,
                  in = x->dim[2 + axis];
    dim[2 + axis] = (in > 0 ? in - 1 : 0) * stride + attr[BERTH__MAX_UNPOOL_KERNEL].ints[axis];
    if (attr[BERTH__MAX_UNPOOL_PADS].count != 0)
      dim[2 + axis] -= attr[BERTH__MAX_UNPOOL_PADS].ints[axis] + attr[BERTH__MAX_UNPOOL_PADS].ints[spatial + axis];
  }
}

static berth_status lower_max_unpool_clear(berth__lowering *l, berth_error *err) {
  const berth_tensor *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, "clear");
  const berth__x i = berth__l_each(l, k, berth__count(out));
  const berth__number type = berth__l_number(out->type);
  berth__l_store(l, k, 0, berth__l_place_flat(k, out, i), berth__x_convert(k, type, berth__x_i32(k, 0)));
  return berth__l_end(l, k, err);
}

/* Places outside the result, which the reference refuses, are left out. */
static berth_status lower_max_unpool_put(berth__lowering *l, const int64_t *pooled, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *places = &l->call->in[1], *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, "put");
  const berth__x i = berth__l_each(l, k, berth__count(x)), zero = berth__x_i32(k, 0);
  const berth__x place = berth__l_load(l, k, 1, berth__l_place_flat(k, places, i));
  berth__x at[BERTH_MAX_RANK], rest = place, inside = berth__x_le(k, zero, place);
  for (uint32_t axis = out->rank; axis-- > 0;) {
    const berth__x extent = berth__x_i32(k, pooled[axis]);
    at[axis] = axis == 0 ? rest : berth__x_rem(k, rest, extent);
    rest = berth__x_div(k, rest, extent);
    inside = berth__x_and(k, inside, berth__x_lt(k, at[axis], berth__x_i32(k, out->dim[axis])));
  }
  berth__x_if(k, inside);
  berth__l_store_raw(l, k, 0, berth__l_place(k, out, at), berth__l_load_raw(l, k, 0, berth__l_place_flat(k, x, i)));
  return berth__l_end(l, k, err);
}

berth_status berth__lower_max_unpool(berth__lowering *l, berth_error *err) {
  int64_t pooled[BERTH_MAX_RANK], total = 1;
  lower_max_unpool_pooled_shape(l->call, pooled);
  for (uint32_t axis = 0; axis < l->call->in[0].rank; axis++)
    if (!berth__mul_extent(total, pooled[axis], &total)) total = INT64_MAX;
  if (total > INT32_MAX)
    return berth__fail(err, BERTH_UNSUPPORTED, "its places count further than the 2^31 of kernels");
  BERTH__TRY(lower_max_unpool_clear(l, err));
  return berth__count(&l->call->in[0]) != 0 && total > 0 ? lower_max_unpool_put(l, pooled, err) : BERTH_OK;
}
