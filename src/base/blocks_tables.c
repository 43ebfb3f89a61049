/* The tables of formats. */
#include "base/blocks.h"

#define BERTH__BLOCK_POINT(code) code,
const uint16_t berth__block_grid[256] = {
#include "base/blocks_grid.def"
};
#undef BERTH__BLOCK_POINT

/* A byte for each coordinate, the first one lowest. */
#define BYTE_OF(code, j) ((8 + 17 * ((uint64_t)(code) >> 2 * (j)&3) + ((uint64_t)(code) >> 2 * (j)&3) / 2) << 8 * (j))
#define BERTH__BLOCK_POINT(code)                                                                                    \
  BYTE_OF(code, 0) | BYTE_OF(code, 1) | BYTE_OF(code, 2) | BYTE_OF(code, 3) | BYTE_OF(code, 4) | BYTE_OF(code, 5) | \
      BYTE_OF(code, 6) | BYTE_OF(code, 7),
const uint64_t berth__block_points_iq2_xs[512] = {
#include "base/blocks_grid_iq2_xs.def"
};
const uint64_t berth__block_points_iq2_s[1024] = {
#include "base/blocks_grid_iq2_s.def"
};
#undef BERTH__BLOCK_POINT
#undef BYTE_OF

#define DIGIT(code, j) ((uint32_t)(code) >> 3 * (j)&7)
#define BYTE_OF(code, j) ((4 + 8 * DIGIT(code, j) + (DIGIT(code, j) + 1) / 8 * 2) << 8 * (j))
#define BERTH__BLOCK_POINT(code) BYTE_OF(code, 0) | BYTE_OF(code, 1) | BYTE_OF(code, 2) | BYTE_OF(code, 3),
const uint32_t berth__block_points_iq3_xxs[256] = {
#include "base/blocks_grid_iq3_xxs.def"
};
#undef BYTE_OF
#define BYTE_OF(code, j) ((1 + 2 * DIGIT(code, j)) << 8 * (j))
const uint32_t berth__block_points_iq3_s[512] = {
#include "base/blocks_grid_iq3_s.def"
};
#undef BERTH__BLOCK_POINT
#undef BYTE_OF
#undef DIGIT

const int8_t berth__block_curve[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* One sign bit, two exponent bits, one mantissa bit: 0, 1/2, 1, 3/2, 2, 3, 4, 6. */
const int8_t berth__block_floats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
