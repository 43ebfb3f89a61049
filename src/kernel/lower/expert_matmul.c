/* expert_matmul: one thread an element of the result. A number that names no expert is an error of a run elsewhere; a
 * GPU has no way to say so, and takes the nearest that is there. */
#include "base/blocks.h"
#include "kernel/lower/blocks.h"

static berth__x experts_weight(const berth__lowering *l, berth__kernel *k, berth__x place) {
  return berth__type_is_block(l->call->in[BERTH__EXPERTS_WEIGHTS].type)
             ? berth__l_load_block(l, k, BERTH__EXPERTS_WEIGHTS, place)
             : berth__l_load(l, k, BERTH__EXPERTS_WEIGHTS, place);
}

static void experts_work(const berth__lowering *l, berth__kernel *k) {
  const berth_op_call *call = l->call;
  k->flops = 2 * (double)berth__count(&call->out[0]) * (double)call->in[BERTH__EXPERTS_WEIGHTS].dim[2];
  for (uint32_t i = 0; i <= call->n_in; i++) k->bytes += berth__l_bytes(l, i); /* the last is the result */
}

berth_status berth__lower_expert_matmul(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[BERTH__EXPERTS_X], *w = &l->call->in[BERTH__EXPERTS_WEIGHTS],
                     *out = &l->call->out[0];
  const int64_t columns = w->dim[2];
  berth__x at[3];
  if (berth__count(out) == 0) return BERTH_OK;
  if (berth__type_is_block(w->type)) BERTH__TRY(berth__l_check_blocks(w->type, err));
  berth__kernel *k = berth__l_begin(l, berth_type_name(w->type));
  if (k == NULL) return berth__l_end(l, k, err);
  experts_work(l, k);
  const berth__x item = berth__l_each(l, k, berth__count(out));
  berth__l_unravel(k, item, 3, out->dim, at);
  const berth__x use = berth__x_add(k, berth__x_affine(k, at[0], out->dim[1], 0), at[1]);
  const berth__x given = berth__l_load(l, k, BERTH__EXPERTS_WHICH, use);
  const berth__x inside = berth__x_min(k, given, berth__x_i32(k, w->dim[0] - 1));
  const berth__x expert = berth__x_max(k, inside, berth__x_i32(k, 0));
  const berth__x row = berth__x_add(k, berth__x_affine(k, expert, w->dim[1], 0), at[2]);
  const berth__x sum = berth__x_variable(k, berth__x_f32(k, 0));
  const berth__x i = berth__x_loop_n(k, columns);
  const berth__x source = berth__x_affine(k, x->rank == 3 ? use : at[0], columns, 0);
  const berth__x left = berth__l_load(l, k, BERTH__EXPERTS_X, berth__x_add(k, source, i));
  const berth__x right = experts_weight(l, k, berth__x_add(k, berth__x_affine(k, row, columns, 0), i));
  berth__x_set(k, sum, berth__x3(k, BERTH__INST_fma, left, right, berth__x_get(k, sum)));
  berth__x_end(k);
  berth__l_store(l, k, 0, berth__l_place_flat(k, out, item), berth__x_get(k, sum));
  return berth__l_end(l, k, err);
}
