/* The tables of formats. */
#include "base/blocks.h"

#define BERTH__BLOCK_POINT(code) code,
const uint16_t berth__block_grid[256] = {
#include "base/blocks_grid.def"
};
#undef BERTH__BLOCK_POINT

const int8_t berth__block_curve[16] = {-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113};

/* One sign bit, two exponent bits, one mantissa bit: 0, 1/2, 1, 3/2, 2, 3, 4, 6. */
const int8_t berth__block_floats[16] = {0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12};
