/* Convolutions with channels last, as tiles: rows are the pixels of the result, columns its channels. */
#ifndef BERTH_KERNEL_LOWER_CONV_LAST_H
#define BERTH_KERNEL_LOWER_CONV_LAST_H

#include "kernel/lower/tile.h"
#include "ops/conv_last.h"

void berth__l_last_pixels(berth__tile *tile, const berth__last *last);
/* A weight packed by pack_weights or pack_weights_i8; for the latter, depth is counted in rows. */
void berth__l_last_packed(berth__tile *tile, const berth__last *last, int64_t group);

#endif
