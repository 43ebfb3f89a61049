#include "kernel/lower/order.h"

/* The bits of an f32 are in ascending order for positive numbers, and in descending order for negative ones. */
static berth__x lower_order_float_key(berth__kernel *k, berth__x value) {
  const berth__x zero = berth__x_i32(k, 0), all = berth__x_i32(k, INT32_MAX);
  const berth__x bits = berth__x_bits(k, BERTH__NUM_I32, value);
  const berth__x turned = berth__x2(k, BERTH__INST_xor, bits, all);
  const berth__x key = berth__x_select(k, berth__x_lt(k, bits, zero), turned, bits);
  return berth__x_select(k, berth__x_eq(k, value, berth__x_f32(k, 0)), zero, key);
}

berth__x berth__l_key(berth__kernel *k, berth__x value, bool smallest, bool nan_wins) {
  if (k == NULL || k->status != BERTH_OK) return BERTH__X_NONE;
  const berth__number number = (berth__number)berth__x_inst(k, value)->type;
  const berth__x best = berth__x_i32(k, INT32_MAX), worst = berth__x_i32(k, INT32_MIN);
  berth__x key = value;
  if (number == BERTH__NUM_F32) key = lower_order_float_key(k, value);
  if (number == BERTH__NUM_U32)
    key = berth__x_bits(k, BERTH__NUM_I32, berth__x2(k, BERTH__INST_xor, value, berth__x_u32(k, 0x80000000u)));
  if (smallest) key = berth__x1(k, BERTH__INST_not, key);
  if (number != BERTH__NUM_F32) return key;
  return berth__x_select(k, berth__x_is_nan(k, value), smallest && !nan_wins ? worst : best, key);
}
