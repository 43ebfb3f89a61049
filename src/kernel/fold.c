/* Constant folding: instructions with known operands are computed while the kernel is built. */
#include "kernel/lanes.h"
#include "kernel/maker.h"

/* Each device gives its own result for an f32 that does not fit the integer, so that is not folded. */
static bool kernel_fold_fits(berth__number type, float value) {
  if (type == BERTH__NUM_I32) return value > -2147483648.0f && value < 2147483648.0f;
  return type != BERTH__NUM_U32 || (value > -1.0f && value < 4294967296.0f);
}

bool berth__fold(berth__inst_code code, berth__number type, berth__number from, const uint32_t *in, uint32_t *out) {
  berth__lane result, a = {.u = in[0]}, b = {.u = in[1]}, c = {.u = in[2]};
  if (code == BERTH__INST_convert && from == BERTH__NUM_F32 && !kernel_fold_fits(type, a.f)) return false;
  if (!berth__lanes_compute(code, type, from, &result, &a, &b, &c, 1)) return false;
  *out = result.u;
  return true;
}
