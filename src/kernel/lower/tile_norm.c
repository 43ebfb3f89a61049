/* Normalises rows inside a product: x / root * scale times w equals (x * scale times w) / root, and the threads that
 * compute the sum see all elements that the root depends on. */
#include "kernel/lower/tile.h"

berth__x berth__tile_norm_factor(const berth__tile *tile, berth__kernel *k, berth__x squares) {
  const berth__x mean = berth__x_div(k, squares, berth__x_f32(k, (float)berth__tile_count(&tile->depth)));
  const berth__x more = berth__x_add(k, mean, berth__x_f32(k, (float)tile->epsilon));
  return berth__x_div(k, berth__x_f32(k, 1), berth__x1(k, BERTH__INST_sqrt, more));
}

berth__x berth__tile_norm_scale(const berth__tile *tile, berth__kernel *k, berth__x depth) {
  const int64_t stride = tile->l->call->in[tile->scale].stride[0];
  return berth__l_load(tile->l, k, tile->scale, berth__x_affine(k, depth, stride, 0));
}

void berth__tile_norm_square(berth__kernel *k, berth__x variable, const berth__x *values, uint32_t n) {
  berth__x sum = berth__x_get(k, variable);
  for (uint32_t i = 0; i < n; i++) sum = berth__x3(k, BERTH__INST_fma, values[i], values[i], sum);
  berth__x_set(k, variable, sum);
}
