#include "conv_shapes.h"
#include "ops/chain.h"

void check_tails(fast_case c, uint32_t attr, const int64_t *out, const berth__cpu_isa *isa) {
  c.attrs[attr] = (berth_attr)FAST_INTS("code", BERTH__CHAIN_clamp, 0, 1, 2);
  c.attrs[attr + 1] = (berth_attr)FAST_FLOATS("numbers", -1.0, 6.0);
  fast_check_on(&c, isa);
  c.attrs[attr] =
      (berth_attr)FAST_INTS("code", BERTH__CHAIN_mul, 0, 2, 0, BERTH__CHAIN_add, 3, 1, 0, BERTH__CHAIN_relu, 4, 0, 0);
  c.attrs[attr + 1] = (berth_attr){.name = NULL};
  c.in[3] = (fast_operand)F32(out[0], out[1], out[2], out[3]);
  c.in[4] = (fast_operand)F32(out[3]);
  c.absolute *= 3;
  fast_check_on(&c, isa);
}
