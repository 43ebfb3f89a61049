/* max_unpool: every element at its position, and zeros elsewhere. Several elements may have the same position: the last
 * of them counts, as in the reference kernel, whatever the order of the threads. So elements are not scattered: each
 * position has a word for its owner, the index of an element plus 1, which is updated by atomic maximum, and finally
 * takes the owner's value. */
#include "base/math.h"
#include "base/storage.h"
#include "kernel/lower/copy.h"

/* The shape before pooling, to which the positions refer. */
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

/* The words of the owners: the result itself if it has a word per element, otherwise scratch. */
typedef struct owners {
  berth_tensor tensor;
  bool are_results;
} owners;

static owners lower_max_unpool_owners(const berth__lowering *l) {
  const berth__storage storage = berth__l_storage_of(l, berth__operand_out(l->call, 0));
  owners o = {.tensor = l->call->out[0], .are_results = berth__storage_per_word(storage) == 1};
  if (!o.are_results) berth__contiguous_strides(o.tensor.rank, o.tensor.dim, o.tensor.stride);
  return o;
}

static uint32_t owners_buffer(const berth__lowering *l, berth__kernel *k, const owners *o) {
  return o->are_results ? berth__l_buffer(l, k, berth__operand_out(l->call, 0), BERTH_U32)
                        : berth__l_scratch(k, BERTH_U32);
}

/* Plans are made before storages are known: a result of a narrow type may be stored in words after all. */
uint64_t berth__scratch_of_max_unpool(const berth_op_call *call, const berth__kernel_limits *limits) {
  (void)limits;
  const berth_tensor *out = &call->out[0];
  const bool is_narrow = berth__storage_per_word(berth__l_storage(out->type)) > 1;
  return is_narrow ? berth__storage_size(berth_type_storage(BERTH_U32), (uint64_t)berth__count(out)) : 0;
}

static berth_status lower_max_unpool_clear(berth__lowering *l, const owners *o, berth_error *err) {
  berth__kernel *k = berth__l_begin(l, "clear");
  const berth__x i = berth__l_each_alone(l, k, berth__count(&o->tensor));
  berth__x_store(k, owners_buffer(l, k, o), berth__l_place_flat(k, &o->tensor, i), berth__x_u32(k, 0));
  return berth__l_end(l, k, err);
}

/* Positions outside the result, which the reference kernel refuses, are skipped. */
static berth_status lower_max_unpool_claim(berth__lowering *l, const owners *o, const int64_t *pooled,
                                           berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *places = &l->call->in[1], *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, "claim");
  const berth__x i = berth__l_each_alone(l, k, berth__count(x)), zero = berth__x_i32(k, 0);
  const berth__x place = berth__l_load(l, k, 1, berth__l_place_flat(k, places, i));
  berth__x at[BERTH_MAX_RANK], rest = place, inside = berth__x_le(k, zero, place);
  for (uint32_t axis = out->rank; axis-- > 0;) {
    const berth__x extent = berth__x_i32(k, pooled[axis]);
    at[axis] = axis == 0 ? rest : berth__x_rem(k, rest, extent);
    rest = berth__x_div(k, rest, extent);
    inside = berth__x_and(k, inside, berth__x_lt(k, at[axis], berth__x_i32(k, out->dim[axis])));
  }
  berth__x_if(k, inside);
  const berth__x owner = berth__x_convert(k, BERTH__NUM_U32, berth__x_affine(k, i, 1, 1));
  berth__x_store_max(k, owners_buffer(l, k, o), berth__l_place(k, &o->tensor, at), owner);
  return berth__l_end(l, k, err);
}

/* Each element of the result takes its owner's value, or 0. `o` is NULL if nothing has an owner. */
static berth_status lower_max_unpool_take(berth__lowering *l, const owners *o, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *out = &l->call->out[0];
  berth__kernel *k = berth__l_begin(l, "take");
  const berth__x i = berth__l_each(l, k, berth__count(out));
  berth__x value = berth__x_u32(k, 0);
  if (o != NULL) {
    const berth__x one = berth__x_u32(k, 1);
    const berth__x owner = berth__x_load(k, owners_buffer(l, k, o), berth__l_place_flat(k, &o->tensor, i));
    const berth__x from = berth__x_convert(k, BERTH__NUM_I32, berth__x_sub(k, berth__x_max(k, owner, one), one));
    const berth__x held = berth__l_load_raw(l, k, 0, berth__l_place_flat(k, x, from));
    value = berth__x_select(k, berth__x_eq(k, owner, value), value, held);
  }
  berth__l_store_raw(l, k, 0, berth__l_place_flat(k, out, i), value);
  return berth__l_end(l, k, err);
}

berth_status berth__lower_max_unpool(berth__lowering *l, berth_error *err) {
  int64_t pooled[BERTH_MAX_RANK], total = 1;
  lower_max_unpool_pooled_shape(l->call, pooled);
  for (uint32_t axis = 0; axis < l->call->in[0].rank; axis++)
    if (!berth__mul_extent(total, pooled[axis], &total)) total = INT64_MAX;
  if (total > INT32_MAX)
    return berth__fail(err, BERTH_UNSUPPORTED, "its places count further than the 2^31 of kernels");
  if (berth__count(&l->call->out[0]) == 0) return BERTH_OK;
  if (berth__count(&l->call->in[0]) == 0 || total <= 0) return lower_max_unpool_take(l, NULL, err);
  const owners o = lower_max_unpool_owners(l);
  BERTH__TRY(lower_max_unpool_clear(l, &o, err));
  BERTH__TRY(lower_max_unpool_claim(l, &o, pooled, err));
  return lower_max_unpool_take(l, &o, err);
}
