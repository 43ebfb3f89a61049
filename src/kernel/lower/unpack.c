/* unpack: elements that lie in blocks as f32, a thread each. */
#include "kernel/lower/blocks.h"

berth_status berth__lower_unpack(berth__lowering *l, berth_error *err) {
  const berth_tensor *x = &l->call->in[0], *out = &l->call->out[0];
  if (berth__count(out) == 0) return BERTH_OK;
  BERTH__TRY(berth__l_check_blocks(x->type, err));
  berth__kernel *k = berth__l_begin(l, berth_type_name(x->type));
  const berth__x index = berth__l_each(l, k, berth__count(out));
  const berth__x value = berth__l_load_block(l, k, 0, berth__l_place_flat(k, x, index));
  berth__l_store(l, k, 0, berth__l_place_flat(k, out, index), value);
  return berth__l_end(l, k, err);
}
