/* choose: all of one operand or all of the other. */
#include "loop/lower/copy.h"

enum {
  CONDITION,
  THEN,
  ELSE
};

/* Nothing where the side lies in its place already. */
static void copy_side(const berth__lowering *l, berth__kernel *k, uint32_t side, berth__x index) {
  if (berth__l_is_placed(l, side, 0)) return;
  const berth__x value = berth__l_load_raw(l, k, side, berth__l_place_flat(k, &l->call->in[side], index));
  berth__l_store_raw(l, k, 0, berth__l_place_flat(k, &l->call->out[0], index), value);
}

berth_status berth__lower_choose(berth__lowering *l, berth_error *err) {
  const int64_t count = berth__count(&l->call->out[0]);
  const char *reason = l->call->attrs[0].s;
  for (uint32_t side = THEN; side <= ELSE; side++)
    if (!berth__l_has(l, side))
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "one of its sides cannot be made, and a kernel that comes to it could not say so%s%s",
                         reason[0] != '\0' ? ": " : "", reason);
  if (count == 0 || (berth__l_is_placed(l, THEN, 0) && berth__l_is_placed(l, ELSE, 0))) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count);
  berth__x_if(k, berth__l_load(l, k, CONDITION, berth__x_i32(k, 0)));
  copy_side(l, k, THEN, index);
  berth__x_else(k);
  copy_side(l, k, ELSE, index);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}
