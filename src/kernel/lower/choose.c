/* choose: all of one operand or all of the other. If the chosen side cannot be made, a run is an error on the CPU; a
 * kernel cannot report that, so floats become NaN. */
#include "kernel/lower/copy.h"

static bool is_placed(const berth__lowering *l, uint32_t side) {
  return berth__l_has(l, side) && berth__l_is_placed(l, side, 0);
}

#define NOT_A_NUMBER 0x7fc00000u

/* Nothing if the side is already in its place. */
static void copy_side(const berth__lowering *l, berth__kernel *k, uint32_t side, berth__x index) {
  if (is_placed(l, side)) return;
  const berth__x place = berth__l_place_flat(k, &l->call->out[0], index);
  const berth__x value = berth__l_has(l, side)
                             ? berth__l_load_raw(l, k, side, berth__l_place_flat(k, &l->call->in[side], index))
                             : berth__x_u32(k, NOT_A_NUMBER);
  berth__l_store_raw(l, k, 0, place, value);
}

berth_status berth__lower_choose(berth__lowering *l, berth_error *err) {
  const int64_t count = berth__count(&l->call->out[0]);
  const char *reason = l->call->attrs[BERTH__CHOOSE_REASON].s;
  const bool is_float = berth__l_number(l->call->out[0].type) == BERTH__NUM_F32;
  for (uint32_t side = BERTH__CHOOSE_THEN; side <= BERTH__CHOOSE_ELSE; side++)
    if (!berth__l_has(l, side) && !is_float)
      return berth__fail(err, BERTH_UNSUPPORTED,
                         "one of its sides cannot be built, and a GPU kernel that reached it could not report that%s%s",
                         reason[0] != '\0' ? ": " : "", reason);
  if (count == 0 || (is_placed(l, BERTH__CHOOSE_THEN) && is_placed(l, BERTH__CHOOSE_ELSE))) return BERTH_OK;
  berth__kernel *k = berth__l_begin(l, NULL);
  const berth__x index = berth__l_each(l, k, count);
  berth__x_if(k, berth__l_load(l, k, BERTH__CHOOSE_CONDITION, berth__x_i32(k, 0)));
  copy_side(l, k, BERTH__CHOOSE_THEN, index);
  berth__x_else(k);
  copy_side(l, k, BERTH__CHOOSE_ELSE, index);
  berth__x_end(k);
  return berth__l_end(l, k, err);
}
